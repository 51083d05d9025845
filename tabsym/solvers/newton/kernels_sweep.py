"""One compiled call updates several small terms: separate calls would take longer than the updates themselves.

Kernels that not every fit needs are called by their addresses, 0 where they are not needed: the others are compiled
without them.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import call_at, kernel, vector_at
from tabsym.solvers.newton.kernels_coefs import step_ridge, weigh_ridge


@kernel
def take_turns(
    turn_at, squared_at, walk_at, blocks, before_at, steps, codes_at, like, nothing, starts, walks, aparts, shares,
    precisions, ridge, most, y, weight, values, parameter, rate, n_models, lanes, known, theta, curvature, gradient,
    right, pivots, level, grads, slopes, moves,
):  # fmt: skip
    """Newton steps of `blocks` (b,) one after the other, as `take_turn` and a step each; the decrease of the objective.

    Addresses of kernels: `turn_at`, of `take_turn`; `squared_at`, of `take_squared_turn` for the squared loss;
    `walk_at`, of `step_walk` where there are walks. The rows are first updated by the `steps` of the term whose codes
    are at the address `before_at`; the pending update of the last term is left in `moves[(b - 1) % 2]`. By term:
    `codes_at`, addresses of codes (n,); `starts`, the offsets of its coefficients in `theta` and `curvature`, those of
    several models side by side; `walks`, `aparts`, `shares`, `precisions`; `lanes`, the number of accumulators per
    coefficient; `known`, whether the Hessian is known (it is constant for the squared loss). Rows are stored as
    exp(rate * score), or that times the target, and as the score where the rate is 0. `like` has the dtype of codes;
    `nothing` is empty. gradient, right, pivots, level, grads and slopes are work space.
    """
    n, decrease = len(y), 0.0
    before = vector_at(before_at, n, like)
    for turn in range(len(blocks)):
        block = blocks[turn]
        codes = vector_at(codes_at[block], n, like)
        start, size = starts[block], starts[block + 1] - starts[block]
        own, hessians, toward = theta[start : start + size], curvature[start : start + size], gradient[:size]
        indices, n_lanes = size + n_models, lanes[block]
        if squared_at != 0 and known[block]:
            sums = slopes[: n_lanes * indices]
            call_at(squared_at, (before, nothing, steps, codes, nothing, weight, values, n_lanes, sums), None)
            for e in range(size):
                toward[e] = sums[n_models + e]
        else:
            both = grads[: n_lanes * indices]
            call_at(
                turn_at, (before, nothing, steps, codes, nothing, y, weight, values, parameter, n_lanes, both), None
            )  # fmt: skip
            for e in range(size):
                toward[e], hessians[e] = both[n_models + e, 0], both[n_models + e, 1]
            known[block] = True
        moved = moves[turn % 2, :indices]
        for e in range(n_models):
            moved[e] = 0.0
        if walks[block]:
            decrease += call_at(
                walk_at,
                (toward, hessians, own, aparts[block], n_models, shares[block], precisions[block], ridge, most, right,
                 pivots, level[:size], moved[n_models:]),
                0.0,
            )  # fmt: skip
        else:
            step_ridge(toward, hessians, own, precisions[block], most, right, moved[n_models:])
            for e in range(size):
                decrease += 0.5 * right[e] * moved[n_models + e]
        if rate != 0.0:
            for e in range(indices):
                moved[e] = np.exp(rate * moved[e])
        before, steps = codes, moved
    return decrease


@kernel
def weigh_blocks(
    walk_at, blocks, starts, walks, aparts, shares, precisions, covers, information, ridge, least, theta, curvature,
    forward, space, weighed,
):  # fmt: skip
    """For each of `blocks` (b,) of one model, into `weighed` (b, 2), what `weigh_ridge` or `weigh_walk` returns.

    `walk_at`: the address of `weigh_walk`; `covers`: whether all rows have a coefficient; `information` on the
    intercept; the others are as in `take_turns`. `forward` and `space` (coefficients,) are work space.
    """
    for turn in range(len(blocks)):
        block = blocks[turn]
        start, end = starts[block], starts[block + 1]
        own, hessians = theta[start:end], curvature[start:end]
        if walks[block]:
            found = call_at(
                walk_at,
                (hessians, own, aparts[block], shares[block], precisions[block], ridge, forward, space[: len(own)]),
                (0.0, 0.0),
            )  # fmt: skip
        else:
            more = 0.0
            if not covers[block]:
                for e in range(len(own)):
                    more += hessians[e]
                more = max(information - more, 0.0)
            found = weigh_ridge(hessians, own, precisions[block], more, least)
        weighed[turn, 0], weighed[turn, 1] = found
