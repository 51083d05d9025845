"""Kernels of block coordinate descent over coefficients: Newton steps, posterior variances, recentering.

Shapes, for q coefficients of a term and W models or classes: theta (q, W), or flattened (q W,).

One compiled call, `update_small_blocks`, updates several small terms: separate calls would take longer than the updates
themselves. Kernels that not every fit needs are called by their addresses, 0 where they are not needed: the others are
compiled without them.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import call_at, inlined, kernel, unsigned, vector_at


@kernel
def step_ridge(gradient, curvature, theta, precision, max_step, right, steps):
    """Newton steps (q W,) of coefficients with a ridge penalty, of at most `max_step` in size; theta is updated too.

    `right` (q W,) is set to the negative gradient, penalty included. There is no sum in the loop, so that it is
    vectorized.
    """
    for e in range(len(theta)):
        right[e] = -gradient[e] - precision * theta[e]
        both = curvature[e] + precision
        step = right[e] / both
        step = step if both > 0.0 else 0.0
        step = max_step if step > max_step else step
        step = -max_step if step < -max_step else step
        theta[e] += step
        steps[e] = step


@kernel
def step_of_pairs(grads, precision, max_step, rate, theta, curvature, right, steps):
    """As `step_ridge`, from gradients and Hessians side by side (2 q W,); Hessians are stored, steps times `rate`.

    With the two in columns of a matrix the loop would not be vectorized, and take four times as long.
    """
    for e in range(len(theta)):
        hess = grads[2 * e + 1]
        toward = -grads[2 * e] - precision * theta[e]
        both = hess + precision
        step = toward / both
        step = step if both > 0.0 else 0.0
        step = max_step if step > max_step else step
        step = -max_step if step < -max_step else step
        theta[e] += step
        curvature[e] = hess
        right[e] = toward
        steps[e] = rate * step


@kernel
def sum_products_of(left, right):
    """Inner product of two arrays (q W,); BLAS would start threads for long ones, which may be busy."""
    first = second = third = fourth = 0.0  # four accumulators, so that additions overlap
    for e in range(len(left)):
        first, second, third, fourth = second, third, fourth, first + left[e] * right[e]
    return first + second + third + fourth


@kernel
def ridge_variances(curvature, precision, more, tol, variances):
    """Posterior variances (q,) of ridge coefficients, jointly with the intercept; the sum of the finite ones.

    `more`: information on the intercept from rows without a coefficient; where less than `tol` of it remains given the
    coefficients, the intercept counts as known. Infinite where neither data nor penalty are informative.
    """
    left, size = more, 0.0
    for e in range(len(curvature)):
        both = curvature[e] + precision
        left += curvature[e] * (precision / both if both > 0.0 else 0.0)
        size += curvature[e]
    of_level = 1.0 / left if left > tol * size else 0.0
    total = 0.0
    for e in range(len(curvature)):
        both = curvature[e] + precision
        if both > 0.0:
            variances[e] = 1.0 / both + (curvature[e] / both) ** 2 * of_level
            total += variances[e]
        else:
            variances[e] = np.inf
    return total


@kernel
def evaluate_ridge(curvature, theta, precision, more, tol):
    """The sum of `ridge_variances`'s variances, and the sum of squares; curvature and theta (q,)."""
    left, size, alone, followed, length = more, 0.0, 0.0, 0.0, 0.0
    for e in range(len(curvature)):
        hess = curvature[e]
        variance = 1.0 / (hess + precision) if hess + precision > 0.0 else 0.0
        left += hess * (precision * variance)
        size += hess
        alone += variance
        followed += (hess * variance) ** 2
        length += theta[e] ** 2
    of_level = 1.0 / left if left > tol * size else 0.0
    return alone + followed * of_level, length


@kernel
def move_precisions(indices, used, edf, squares, n_penalized, dispersion, min_edf, max_change, precision, moving):
    """Fellner-Schall update of the precisions (P,) at `indices` (a,), each by at most `max_change` on the log scale.

    `used` (a,): effective degrees of freedom, below `min_edf` of which the precision stays; `edf` and `squares` (a,):
    these and the sums of squares, with those of a prior; `n_penalized` (P,): numbers of penalized coefficients.
    `moving` (a,) is set to the resulting change of the degrees of freedom.
    """
    for at in range(len(indices)):
        index = indices[at]
        moving[at] = 0.0
        if used[at] < min_edf:
            continue
        now = dispersion * edf[at] / max(squares[at], 1e-300)
        moved = min(max(np.log(max(now / precision[index], 1e-300)), -max_change), max_change)
        precision[index] *= np.exp(moved)
        moving[at] = abs(moved) * used[at] * (1.0 - used[at] / n_penalized[index])


@inlined
def _recenter(parent, n_children, precision, parent_precision, theta, upper, shared, width):
    shared[:] = 0.0
    for c in range(len(parent)):
        p = unsigned(parent[c])
        for v in range(width):
            shared[p, v] += theta[c, v]
    gain = 0.0
    for p in range(len(n_children)):
        both = precision * n_children[p] + parent_precision
        for v in range(width):
            moved = (precision * shared[p, v] - parent_precision * upper[p, v]) / both
            moved = moved if n_children[p] > 0.0 else 0.0
            gain += 0.5 * both * moved * moved
            shared[p, v] = moved
            upper[p, v] += moved
    for c in range(len(parent)):
        p = unsigned(parent[c])
        for v in range(width):
            theta[c, v] -= shared[p, v]
    return gain


@kernel
def recenter(parent, n_children, precision, parent_precision, theta, upper, shared):
    """Transfer the mean of coefficients (q, W) to their parents, `parent` (q,), in upper (p, W), as the penalty allows.

    `n_children` (p,): number of children of each parent; `precision` is that of the coefficients, `parent_precision`
    that of the parents; `shared` (p, W) is work space. Returns the decrease of the penalty.
    """
    if theta.shape[1] == 1:  # a width known at compile time halves the time
        return _recenter(parent, n_children, precision, parent_precision, theta, upper, shared, 1)
    if theta.shape[1] == 2:
        return _recenter(parent, n_children, precision, parent_precision, theta, upper, shared, 2)
    return _recenter(parent, n_children, precision, parent_precision, theta, upper, shared, theta.shape[1])


@kernel
def recenter_to_intercept(theta, level):
    """Transfer the mean of coefficients (q, W) to the intercept, level (1, W)."""
    for v in range(theta.shape[1]):
        first = second = third = fourth = 0.0  # as in `sum_products_of`
        for e in range(theta.shape[0]):
            first, second, third, fourth = second, third, fourth, first + theta[e, v]
        mean = (first + second + third + fourth) / theta.shape[0]
        level[0, v] += mean
        for e in range(theta.shape[0]):
            theta[e, v] -= mean


@kernel
def update_small_blocks(
    sum_at, squared_at, walk_at, blocks, before_at, steps, codes_at, like, nothing, starts, walks, n_unordered, ratios,
    precisions, ridge, max_step, y, weight, values, parameter, rate, n_models, lanes, known, theta, curvature, gradient,
    right, pivots, level, grads, slopes, moves,
):  # fmt: skip
    """Newton steps of `blocks` (b,) one after the other, by `move_and_sum` and a step; the decrease of the objective.

    Addresses of kernels: `sum_at`, of `move_and_sum`; `squared_at`, of `move_and_sum_squared` for the squared loss;
    `walk_at`, of `step_walk` where there are walks. The rows are first updated by the `steps` of the term whose codes
    are at the address `before_at`; the pending update of the last term is left in `moves[(b - 1) % 2]`. By term:
    `codes_at`, addresses of codes (n,); `starts`, the offsets of its coefficients in `theta` and `curvature`, those of
    several models side by side; `walks`, `n_unordered`, `ratios` (`terms.unordered_ratio`), `precisions`; `lanes`, the
    number of accumulators per coefficient; `known`, whether the Hessian is known (it is constant for the squared loss).
    Rows are stored as exp(rate * score), or that times the target, and as the score where the rate is 0. `like` has the
    dtype of codes; `nothing` is empty. gradient, right, pivots, level, grads and slopes are work space.
    """
    n, decrease = len(y), 0.0
    before = vector_at(before_at, n, like)
    for number in range(len(blocks)):
        block = blocks[number]
        codes = vector_at(codes_at[block], n, like)
        start, size = starts[block], starts[block + 1] - starts[block]
        block_theta, hessians, toward = theta[start : start + size], curvature[start : start + size], gradient[:size]
        indices, n_lanes = size + n_models, lanes[block]
        if squared_at != 0 and known[block]:
            sums = slopes[: n_lanes * indices]
            call_at(squared_at, (before, nothing, steps, codes, nothing, weight, values, n_lanes, sums), None)
            for e in range(size):
                toward[e] = sums[n_models + e]
        else:
            both = grads[: n_lanes * indices]
            call_at(
                sum_at, (before, nothing, steps, codes, nothing, y, weight, values, parameter, n_lanes, both), None
            )  # fmt: skip
            for e in range(size):
                toward[e], hessians[e] = both[n_models + e, 0], both[n_models + e, 1]
            known[block] = True
        moved = moves[number % 2, :indices]
        for e in range(n_models):
            moved[e] = 0.0
        if walks[block]:
            decrease += call_at(
                walk_at,
                (toward, hessians, block_theta, n_unordered[block], n_models, ratios[block], precisions[block], ridge,
                 max_step, right, pivots, level[:size], moved[n_models:]),
                0.0,
            )  # fmt: skip
        else:
            step_ridge(toward, hessians, block_theta, precisions[block], max_step, right, moved[n_models:])
            for e in range(size):
                decrease += 0.5 * right[e] * moved[n_models + e]
        if rate != 0.0:
            for e in range(indices):
                moved[e] = np.exp(rate * moved[e])
        before, steps = codes, moved
    return decrease


@kernel
def evaluate_blocks(
    walk_at, blocks, starts, walks, n_unordered, ratios, precisions, covers, information, ridge, tol, theta, curvature,
    forward, space, evaluated,
):  # fmt: skip
    """What `evaluate_ridge` or `evaluate_walk` returns of each of `blocks` (b,) of one model, into `evaluated` (b, 2).

    `walk_at`: the address of `evaluate_walk`; `covers`: whether all rows have a coefficient; `information` on the
    intercept; the others are as in `update_small_blocks`. `forward` and `space` (coefficients,) are work space.
    """
    for number in range(len(blocks)):
        block = blocks[number]
        start, end = starts[block], starts[block + 1]
        block_theta, hessians = theta[start:end], curvature[start:end]
        if walks[block]:
            result = call_at(
                walk_at,
                (hessians, block_theta, n_unordered[block], ratios[block], precisions[block], ridge, forward,
                 space[: len(block_theta)]),
                (0.0, 0.0),
            )  # fmt: skip
        else:
            more = 0.0
            if not covers[block]:
                for e in range(len(block_theta)):
                    more += hessians[e]
                more = max(information - more, 0.0)
            result = evaluate_ridge(hessians, block_theta, precisions[block], more, tol)
        evaluated[number, 0], evaluated[number, 1] = result
