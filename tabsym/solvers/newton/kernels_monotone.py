"""The Newton step of one term whose coefficients must not decrease along a chain: an exact quadratic program.

The objective of a step is quadratic, with a tridiagonal Hessian along the chain (of a walk; diagonal for a ridge
penalty), plus a rank-one part where unordered coefficients are centred on the mean of the walk (`kernels_walk`). Within
the constraint it is minimized by the primal active-set method (Nocedal and Wright 2006, "Numerical Optimization",
algorithm 16.3): neighbours that the constraint holds equal form a pool, the pools' values solve a smaller system of the
same form, a step ends where two pools meet, and a pool is divided where its multipliers show that both parts gain.
Pools are equal to the last digit.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import kernel

SAME = 1e-12
"""A multiplier above minus this, relative to the gradients that it is a sum of, is 0 up to rounding."""


@kernel
def pool_isotonic(values, weights, ends, sums, heavy):
    """The weighted isotonic regression of `values` (J,), in place: pool adjacent violators.

    `ends` (J,), int, and `sums`, `heavy` (J,) are work space.
    """
    n = 0
    for j in range(len(values)):
        ends[n], sums[n], heavy[n] = j + 1, values[j] * weights[j], weights[j]
        n += 1
        while n > 1 and sums[n - 2] * heavy[n - 1] > sums[n - 1] * heavy[n - 2]:
            sums[n - 2] += sums[n - 1]
            heavy[n - 2] += heavy[n - 1]
            ends[n - 2] = ends[n - 1]
            n -= 1
    start = 0
    for pool in range(n):
        for j in range(start, ends[pool]):
            values[j] = sums[pool] / heavy[pool]
        start = ends[pool]
    for j in range(1, len(values)):  # rounding
        values[j] = max(values[j], values[j - 1])


@kernel
def solve_pools(starts, n_pools, curvature, precision, ridge, of_mean, right, pivots, level, out):
    """The step of each pool (n_pools,): right / (curvature + ridge + walk + of_mean aa'), a its fraction of the chain.

    `starts` (n_pools + 1,): the first coefficient of each pool; curvature, right (J,) by coefficient. `precision`: of
    the differences of neighbouring pools; `pivots`, `level` (n_pools,) are work space.
    """
    n_coefs = starts[n_pools]
    for k in range(n_pools):
        size = starts[k + 1] - starts[k]
        pivots[k], out[k], level[k] = ridge * size, 0.0, size / n_coefs
        for j in range(starts[k], starts[k + 1]):
            pivots[k] += curvature[j]
            out[k] += right[j]
        pivots[k] += precision * ((1.0 if k > 0 else 0.0) + (1.0 if k < n_pools - 1 else 0.0))
        if k > 0 and pivots[k - 1] > 0.0:
            factor = precision / pivots[k - 1]
            pivots[k] -= factor * precision
            out[k] += factor * out[k - 1]
            level[k] += factor * level[k - 1]
    total, of_level = 0.0, 0.0
    for k in range(n_pools - 1, -1, -1):
        if k < n_pools - 1:
            out[k] += precision * out[k + 1]
            level[k] += precision * level[k + 1]
        out[k] = out[k] / pivots[k] if pivots[k] > 0.0 else 0.0
        level[k] = level[k] / pivots[k] if pivots[k] > 0.0 else 0.0
        fraction = (starts[k + 1] - starts[k]) / n_coefs
        total += fraction * out[k]
        of_level += fraction * level[k]
    if of_mean > 0.0:
        taken = of_mean * total / (1.0 + of_mean * of_level)
        for k in range(n_pools):
            out[k] -= taken * level[k]


@kernel
def chain_gradient(start, curvature, precision, ridge, of_mean, at, begin, out):
    """The negative gradient (J,) at values `at` of the quadratic whose negative gradient at `begin` is `start`."""
    n, mean = len(at), 0.0
    for j in range(n):
        mean += (at[j] - begin[j]) / n
    for j in range(n):
        step = at[j] - begin[j]
        out[j] = start[j] - (curvature[j] + ridge) * step - of_mean * mean / n
        if j > 0:
            out[j] -= precision * (step - (at[j - 1] - begin[j - 1]))
        if j < n - 1:
            out[j] -= precision * (step - (at[j + 1] - begin[j + 1]))


@kernel
def minimize_on_chain(
    right, curvature, precision, ridge, of_mean, begin, at, starts, gradient, pivots, level, moves, max_changes
):
    """Minimize a quadratic over nondecreasing values `at` (J,), from `begin` (J,), which are nondecreasing.

    `right` (J,): the negative gradient at `begin`. `starts` (J + 1,), int, gradient, pivots, level and moves (J,) are
    work space. Returns whether it ended within `max_changes` changes of the pools.
    """
    n = len(at)
    n_pools = 0
    for j in range(n):
        at[j] = begin[j]
        if j == 0 or begin[j] > begin[j - 1]:
            starts[n_pools] = j
            n_pools += 1
    starts[n_pools] = n
    for _ in range(max_changes):
        chain_gradient(right, curvature, precision, ridge, of_mean, at, begin, gradient)
        solve_pools(starts, n_pools, curvature, precision, ridge, of_mean, gradient, pivots, level, moves)
        fraction, meet = 1.0, -1
        for k in range(n_pools - 1):
            closer = moves[k] - moves[k + 1]
            gap = at[starts[k + 1]] - at[starts[k]]
            if closer > 0.0 and gap <= fraction * closer:
                fraction, meet = gap / closer, k
        for k in range(n_pools):
            value = at[starts[k]] + fraction * moves[k]
            for j in range(starts[k], starts[k + 1]):
                at[j] = value
        if meet >= 0:  # the two pools become one
            for j in range(starts[meet + 1], starts[meet + 2]):
                at[j] = at[starts[meet]]
            for k in range(meet + 1, n_pools):
                starts[k] = starts[k + 1]
            n_pools -= 1
            continue
        chain_gradient(right, curvature, precision, ridge, of_mean, at, begin, gradient)
        worst, pool, cut = 0.0, -1, -1
        for k in range(n_pools):
            low, size = 0.0, 0.0
            for j in range(starts[k], starts[k + 1]):
                size += abs(gradient[j]) + abs(right[j])
            for j in range(starts[k], starts[k + 1] - 1):
                low += gradient[j]  # negative: the first part gains by falling, and the rest by rising
                if low < worst and low < -SAME * size:
                    worst, pool, cut = low, k, j + 1
        if pool < 0:
            return True
        for k in range(n_pools, pool, -1):
            starts[k + 1] = starts[k]
        starts[pool + 1] = cut
        n_pools += 1
    return False


@kernel
def step_monotone(
    gradient, curvature, theta, chain, off_chain, precision, ridge, off_precision, is_walk, max_step, numbers, starts,
    steps
):  # fmt: skip
    """As `kernels_walk.step_walk` and `kernels_coefs.step_ridge`, with nondecreasing coefficients along `chain`.

    gradient, curvature, theta, steps (q,); `chain` (J,) and `off_chain` (q - J,): indices. `precision`: of the
    differences along the chain, 0 for a ridge penalty; `ridge`: of each coefficient of it; `off_precision`: of the
    other coefficients, for a walk about its mean. theta is updated in place, its chain nondecreasing before and after.
    `numbers` (8, J) and `starts` (J + 1,) are work space. Returns the decrease of the quadratic approximation.
    """
    n = len(chain)
    right, hessians, begin, at = numbers[0], numbers[1], numbers[2], numbers[3]
    mean, of_mean, recentered = 0.0, 0.0, 0.0
    for j in range(n):
        begin[j] = theta[chain[j]]
        hessians[j] = curvature[chain[j]]
        right[j] = -gradient[chain[j]] - ridge * begin[j]
        mean += begin[j] / n
    for j in range(n - 1):
        jump = precision * (begin[j + 1] - begin[j])
        right[j] += jump
        right[j + 1] -= jump
    for e in off_chain:
        both = curvature[e] + off_precision
        centre = mean if is_walk else 0.0
        steps[e] = -gradient[e] - off_precision * (theta[e] - centre)  # its negative gradient
        if is_walk and both > 0.0:
            of_mean += off_precision * curvature[e] / both
            recentered += off_precision * (theta[e] - centre) + off_precision * steps[e] / both
    for j in range(n):
        right[j] += recentered / n
    minimize_on_chain(
        right, hessians, precision, ridge, of_mean, begin, at, starts, numbers[4], numbers[5], numbers[6], numbers[7],
        20 * n + 20,
    )  # fmt: skip
    chain_gradient(right, hessians, precision, ridge, of_mean, at, begin, numbers[4])
    decrease, moved = 0.0, 0.0
    for j in range(n):
        step = at[j] - begin[j]
        decrease += 0.5 * (right[j] + numbers[4][j]) * step
        moved += step / n
    for e in off_chain:
        both = curvature[e] + off_precision
        toward = steps[e]
        if both > 0.0:
            decrease += 0.5 * toward * toward / both
            steps[e] = (toward + (off_precision * moved if is_walk else 0.0)) / both
        else:
            steps[e] = 0.0
        steps[e] = min(max(steps[e], -max_step), max_step)
        theta[e] += steps[e]
    before = -np.inf
    for j in range(n):
        value = begin[j] + min(max(at[j] - begin[j], -max_step), max_step) if max_step < np.inf else at[j]
        value = max(value, before)  # rounding
        before = value
        theta[chain[j]] = value
        steps[chain[j]] = value - begin[j]
    return decrease
