"""One compiled call updates several small terms: separate calls would take longer than the updates themselves."""

from __future__ import annotations

import numpy as np

from tabsym.jit import call_at, kernel, matrix_at
from tabsym.solvers.newton.kernels_coefs import step_ridge, weigh_ridge
from tabsym.solvers.newton.kernels_rows import take_squared_turn
from tabsym.solvers.newton.kernels_walk import step_walk, weigh_walk


@kernel
def take_turns(
    turn_at, squared, blocks, before_at, steps, codes_at, like, nothing, starts, walks, aparts, precisions, ridge, most,
    y, weight, values, parameter, rate, n_models, lanes, known, theta, curvature, gradient, right, pivots, level, grads,
    slopes, moves,
):  # fmt: skip
    """Newton steps of `blocks` (b,) one after the other, as `take_turn` and a step each; the decrease of the objective.

    `turn_at` is the address of `take_turn` of the loss, so that this is compiled once for all losses; `squared`,
    whether it is the squared loss. The rows are first updated by the `steps` of the term whose codes are at the address
    `before_at`; the pending update of the last term is left in `moves[(b - 1) % 2]`. By term: `codes_at`, addresses of
    codes (n,); `starts`, the offsets of its coefficients in `theta` and `curvature`, those of several models side by
    side; `walks`, `aparts`, `precisions`; `lanes`, the number of accumulators per coefficient; `known`, whether the
    Hessian is known (it is constant for the squared loss). Rows are stored as exp(rate * score), or that times the
    target, and as the score where the rate is 0. `like` has the dtype of codes; `nothing` is empty. gradient, right,
    pivots, level, grads and slopes are work space.
    """
    n, decrease = len(y), 0.0
    before = matrix_at(before_at, 1, n, like)[0]
    for turn in range(len(blocks)):
        block = blocks[turn]
        codes = matrix_at(codes_at[block], 1, n, like)[0]
        start, size = starts[block], starts[block + 1] - starts[block]
        own, hessians, toward = theta[start : start + size], curvature[start : start + size], gradient[:size]
        indices, n_lanes = size + n_models, lanes[block]
        if squared and known[block]:
            sums = slopes[: n_lanes * indices]
            take_squared_turn(before, nothing, steps, codes, nothing, weight, values, n_lanes, sums)
            for e in range(size):
                toward[e] = sums[n_models + e]
        else:
            both = grads[: n_lanes * indices]
            call_at(
                    turn_at, (before, nothing, steps, codes, nothing, y, weight, values, parameter, n_lanes, both)
                )  # fmt: skip
            for e in range(size):
                toward[e], hessians[e] = both[n_models + e, 0], both[n_models + e, 1]
            known[block] = True
        moved = moves[turn % 2, :indices]
        moved[:n_models] = 0.0
        if walks[block]:
            shape = (size // n_models, n_models)
            decrease += step_walk(
                toward.reshape(shape), hessians.reshape(shape), own.reshape(shape), aparts[block],
                precisions[block], ridge, most, right[:size].reshape(shape), pivots[:size],
                level[:size].reshape(shape), moved[n_models:].reshape(shape),
            )  # fmt: skip
        else:
            step_ridge(toward, hessians, own, precisions[block], most, right[:size], moved[n_models:])
            for e in range(size):
                decrease += 0.5 * right[e] * moved[n_models + e]
        if rate != 0.0:
            for e in range(indices):
                moved[e] = np.exp(rate * moved[e])
        before, steps = codes, moved
    return decrease


@kernel
def weigh_blocks(
    blocks, starts, walks, aparts, precisions, covers, information, ridge, least, theta, curvature, work, jumps,
    weighed,
):  # fmt: skip
    """For each of `blocks` (b,) of one model, into `weighed` (b, 2), what `weigh_ridge` or `weigh_walk` returns.

    `covers`: whether all rows have a coefficient; `information` on the intercept; the others are as in `take_turns`.
    `work` (4, coefficients) and `jumps` (1,) are work space.
    """
    for turn in range(len(blocks)):
        block = blocks[turn]
        start, size = starts[block], starts[block + 1] - starts[block]
        own, hessians = theta[start : start + size].reshape(size, 1), curvature[start : start + size].reshape(size, 1)
        more = 0.0
        if not covers[block]:
            for e in range(size):
                more += hessians[e, 0]
            more = max(information - more, 0.0)
        if walks[block]:
            weighed[turn, 0], weighed[turn, 1] = weigh_walk(
                hessians, own, aparts[block], precisions[block], ridge, work[0, :size], work[1, :size],
                work[2, :size].reshape(size, 1), jumps,
            )  # fmt: skip
        else:
            weighed[turn, 0], weighed[turn, 1] = weigh_ridge(hessians, own, precisions[block], more, least)
