"""Kernels of ordered coefficients: first-order random walks, penalized by differences of neighbours; monotone steps.

With one linear predictor the system is a tridiagonal matrix T, for multiclass one of blocks (K, K), as classes are
coupled. Unordered coefficients outside the walk, of missing values, are centred on its mean a'theta, a = 1 / J for each
of its J coefficients. Eliminated, they leave T + k aa' (Sherman and Morrison 1950), so that they cost one more right
side, a. The mean of all coefficients is not penalized: it is confounded with the intercept.

The Newton step of a term whose coefficients must not decrease along a chain is an exact quadratic program: the
objective of a step is quadratic, with a tridiagonal Hessian along the chain (of a walk; diagonal for a ridge penalty),
plus a rank-one part where unordered coefficients are centred on the mean of the walk. Within the constraint it is
minimized by the primal active-set method (Nocedal and Wright 2006, "Numerical Optimization", algorithm 16.3):
neighbours that the constraint holds equal form a pool, the pools' values solve a smaller system of the same form, a
step ends where two pools meet, and a pool is divided where its multipliers show that both parts gain. Pools are equal
to the last digit.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import kernel
from tabsym.solvers.newton.kernels_rows import ROUNDING

ALIKE = 1e-6
"""Relative ridge along the direction common to all classes, which is not identified: makes the matrices invertible."""


@kernel
def solve_walk(curvature, first, width, precision, ridge, right, pivots, out):
    """Solve (diag(curvature + ridge) + precision D'D) out = right for one column, D the differences.

    Arrays of all columns are flattened, (q W,), W the `width`; the column's walk begins at `first`. `pivots` is work
    space.
    """
    factor = value = 0.0
    for at in range(first, len(curvature), width):
        n_neighbours = (at > first) + (at + width < len(curvature))
        pivot = curvature[at] + ridge + precision * n_neighbours - factor * precision
        value = right[at] + factor * value
        pivots[at], out[at] = pivot, value
        factor = precision / pivot
    value = 0.0
    for at in range(len(curvature) - width + first % width, first - 1, -width):
        value = (out[at] + precision * value) / pivots[at]
        out[at] = value


@kernel
def mean_of_walk(theta, first, width):
    """The mean of one column of theta, flattened, over the coefficients of the walk."""
    total = 0.0
    for at in range(first, len(theta), width):
        total += theta[at]
    return total / max(len(theta) // width - first // width, 1)


@kernel
def solve_centred_walk(curvature, first, width, ratio, precision, ridge, right, pivots, level, out):
    """As `solve_walk`, where the unordered coefficients, those before `first`, are centred on the mean of the walk.

    `ratio`: the precision of the unordered coefficients over the walk's; `pivots` and `level` (q W,) are work space.
    """
    n_walk = len(curvature) // width - first // width
    unordered_precision, recentered, grad = precision * ratio, 0.0, 0.0
    for at in range(first % width, first, width):
        both = curvature[at] + unordered_precision
        if both > 0.0:
            recentered += right[at] * unordered_precision / both
            grad += unordered_precision * curvature[at] / both
    for at in range(first, len(curvature), width):
        out[at], level[at] = right[at] + recentered / n_walk, 1.0 / n_walk
    solve_walk(curvature, first, width, precision, ridge, out, pivots, out)
    if first < width:
        return
    solve_walk(curvature, first, width, precision, ridge, level, pivots, level)
    mean = mean_of_walk(out, first, width) / (1.0 + grad * mean_of_walk(level, first, width))
    for at in range(first % width, first, width):
        both = curvature[at] + unordered_precision
        out[at] = (right[at] + unordered_precision * mean) / both if both > 0.0 else 0.0
    for at in range(first, len(curvature), width):
        out[at] -= grad * mean * level[at]


@kernel
def step_walk(
    gradient, curvature, theta, n_unordered, width, ratio, precision, ridge, max_step, right, pivots, level, steps
):  # fmt: skip
    """As `step_ridge`, for a walk on whose mean the first `n_unordered` coefficients are centred: the joint step.

    `ratio` is as in `solve_centred_walk`; `right`, `pivots` and `level` (q W,) are work space.
    """
    n_walk, unordered_precision = len(theta) // width - n_unordered, precision * ratio
    for v in range(width):
        first = n_unordered * width + v
        mean, recentered, jump = mean_of_walk(theta, first, width), 0.0, 0.0
        for at in range(v, first, width):
            grad = unordered_precision * (theta[at] - mean)
            right[at] = -gradient[at] - grad
            recentered += grad
        for at in range(first, len(theta), width):
            right[at] = recentered / n_walk - gradient[at] - ridge * theta[at] - jump
            if at + width < len(theta):
                jump = precision * (theta[at + width] - theta[at])
                right[at] += jump
        solve_centred_walk(curvature, first, width, ratio, precision, ridge, right, pivots, level, steps)
    decrease = 0.0
    for at in range(len(theta)):
        step = min(max(steps[at], -max_step), max_step)
        theta[at] += step
        steps[at] = step
        decrease += abs(step * right[at])
    return 0.5 * decrease


@kernel
def walk_variances(curvature, first, precision, ridge, forward, variances):
    """From the inverse of `solve_walk`'s matrix, of one column: its diagonal, and the variances of differences, summed.

    `forward` (q,) is work space.
    """
    left = 0.0
    for at in range(first, len(curvature)):
        n_neighbours = (at > first) + (at + 1 < len(curvature))
        both = curvature[at] + ridge + precision * n_neighbours
        variances[at], forward[at] = both, both - left
        left = precision * precision / forward[at]
    left = 0.0
    for at in range(len(curvature) - 1, first - 1, -1):
        backward = variances[at] - left
        variances[at] = 1.0 / (forward[at] - variances[at] + backward)
        left = precision * precision / backward
    jumps = 0.0
    for at in range(first, len(curvature) - 1):  # cov(j, j + 1) = precision / forward[j] * var(j + 1)
        jumps += variances[at] + variances[at + 1] * (1.0 - 2.0 * precision / forward[at])
    return jumps


@kernel
def evaluate_walk(curvature, theta, n_unordered, ratio, precision, ridge, forward, space):
    """As `evaluate_ridge`, for a walk on whose mean the first `n_unordered` are centred (`solve_centred_walk`).

    The intercept needs no correction: the mean of all coefficients is not penalized, and absorbs it. `forward` and
    `space` (q,) are work space.
    """
    q, width, length = len(curvature), np.int64(1), 0.0  # kernels would be compiled anew for a constant
    penalized = walk_variances(curvature, n_unordered, precision, ridge, forward, space)
    for e in range(n_unordered + 1, q):
        length += (theta[e] - theta[e - 1]) ** 2
    if n_unordered == 0:
        return penalized, length
    for e in range(n_unordered, q):
        space[e] = 1.0 / (q - n_unordered)
    solve_walk(curvature, n_unordered, width, precision, ridge, space, forward, space)
    mean, of_mean, grad = mean_of_walk(theta, n_unordered, width), mean_of_walk(space, n_unordered, width), 0.0
    for e in range(n_unordered):
        if curvature[e] > 0.0:
            grad += curvature[e] * ratio * precision / (curvature[e] + ratio * precision)
    shrinkage = 1.0 / (1.0 + grad * of_mean)
    for e in range(n_unordered + 1, q):
        penalized -= grad * shrinkage * (space[e] - space[e - 1]) ** 2
    for e in range(n_unordered):
        variance = 1.0 / (curvature[e] + ratio * precision)
        penalized += ratio * (variance + (curvature[e] * variance) ** 2 * of_mean * shrinkage)
        length += ratio * (theta[e] - mean) ** 2
    return penalized, length


@kernel
def invert_definite(matrix, inverse):
    """Invert a positive definite matrix (K, K) by its Cholesky factor, which overwrites its lower triangle."""
    k = len(matrix)
    for i in range(k):
        min_pivot = ROUNDING * matrix[i, i]
        for j in range(i + 1):
            left = matrix[i, j]
            for h in range(j):
                left -= matrix[i, h] * matrix[j, h]
            matrix[i, j] = np.sqrt(max(left, min_pivot)) if j == i else left / matrix[j, j]
    for i in range(k):  # of the factor, a lower triangle
        for j in range(i):
            total = 0.0
            for h in range(j, i):
                total -= matrix[i, h] * inverse[h, j]
            inverse[i, j] = total / matrix[i, i]
        inverse[i, i] = 1.0 / matrix[i, i]
    for i in range(k):
        for j in range(i + 1):
            total = 0.0
            for h in range(i, k):
                total += inverse[h, i] * inverse[h, j]
            inverse[i, j] = inverse[j, i] = total


@kernel
def add_product(times, left, right, out):
    """Add `times` left (K, K) right (K, F) to `out`."""
    for i in range(len(left)):
        for h in range(len(left)):
            factor = times * left[i, h]
            for j in range(right.shape[1]):
                out[i, j] += factor * right[h, j]


@kernel
def eliminate(matrix, right):
    """Solve for the columns of `right` (K, F), which the solution overwrites, by elimination with row pivots."""
    k = len(matrix)
    for c in range(k):
        best = c
        for i in range(c + 1, k):
            if abs(matrix[i, c]) > abs(matrix[best, c]):
                best = i
        for j in range(k):
            matrix[c, j], matrix[best, j] = matrix[best, j], matrix[c, j]
        for j in range(right.shape[1]):
            right[c, j], right[best, j] = right[best, j], right[c, j]
        for i in range(k):
            if i != c:
                factor = matrix[i, c] / matrix[c, c]
                for j in range(c, k):
                    matrix[i, j] -= factor * matrix[c, j]
                for j in range(right.shape[1]):
                    right[i, j] -= factor * right[c, j]
    for i in range(k):
        for j in range(right.shape[1]):
            right[i, j] /= matrix[i, i]


@kernel
def walk_covariances_of_classes(hessians, precision, level, left, loose, block, wide, covariances, followed):
    """Of the inverse of hessians + level + precision D'D, by blocks (K, K): diagonal, variance of differences.

    `hessians`: (q, K, K). Sets `covariances` (q, K, K), the diagonal blocks, and multiplies `followed` (q, K, F) by
    the inverse; returns the sum of the variances of the differences of neighbours. With F_j what remains of coefficient
    j's block after elimination of those before it, H_j = F_j - precision: H_j = hessians_j + level + precision
    F_(j-1)^-1 H_(j-1), which avoids cancellation where means are unpenalized. Work space: `left`, for F^-1, and
    `loose`, for F^-1 H, (q, K, K), `block` (K, K) and `wide` (K, F).
    """
    q, k = hessians.shape[0], hessians.shape[1]
    for j in range(q):
        for u in range(k):
            for v in range(k):
                block[u, v] = hessians[j, u, v] + (level if u == v else 0.0)
                if j > 0:  # symmetric but for rounding
                    block[u, v] += 0.5 * precision * (loose[j - 1, u, v] + loose[j - 1, v, u])
                covariances[j, u, v] = block[u, v]  # a copy
            if j < q - 1:
                block[u, u] += precision
        invert_definite(block, left[j])
        loose[j] = 0.0
        add_product(1.0, left[j], covariances[j], loose[j])
        if j > 0:
            add_product(precision, left[j - 1], followed[j - 1], followed[j])
    jumps = 0.0
    for j in range(q - 1, -1, -1):
        for u in range(k):
            for v in range(followed.shape[2]):
                wide[u, v] = followed[j, u, v]
                if j < q - 1:
                    wide[u, v] += precision * followed[j + 1, u, v]
        followed[j] = 0.0
        add_product(1.0, left[j], wide, followed[j])
        for u in range(k):
            for v in range(k):
                covariances[j, u, v] = left[j, u, v]
        if j < q - 1:
            block[:] = 0.0
            add_product(1.0, left[j], covariances[j + 1], block)
            add_product(precision * precision, block, left[j], covariances[j])
            block[:] = 0.0
            add_product(1.0, loose[j], covariances[j + 1], block)
            for u in range(k):
                jumps += left[j, u, u]
                for v in range(k):
                    jumps += block[u, v] * loose[j, u, v]
    return jumps


@kernel
def set_right_sides(gradient, theta, n_unordered, unordered_precision, precision, ridge, right):
    """Negative gradients (q, K), penalty included, of a walk on whose mean the first `n_unordered` are centred."""
    q, k = theta.shape
    n_walk = max(q - n_unordered, 1)
    for v in range(k):
        mean, recentered = 0.0, 0.0
        for e in range(n_unordered, q):
            mean += theta[e, v] / n_walk
        for e in range(n_unordered):
            right[e, v] = -gradient[e, v] - unordered_precision * (theta[e, v] - mean)
            recentered += unordered_precision * (theta[e, v] - mean)
        for e in range(n_unordered, q):
            right[e, v] = recentered / n_walk - gradient[e, v] - ridge * theta[e, v]
        for e in range(n_unordered, q - 1):
            jump = precision * (theta[e + 1, v] - theta[e, v])
            right[e, v] += jump
            right[e + 1, v] -= jump


@kernel
def step_walk_of_classes(
    gradient, curvature, theta, n_unordered, ratio, precision, ridge, max_step, left, level, blocks, right, steps
):
    """As `kernels_rows.step_classes`, for a walk on whose mean the first `n_unordered` are centred.

    Block tridiagonal elimination, with blocks (K, K), from the first coefficient on. Work space: `left` (q, K, K), for
    the inverses of the blocks after elimination of those before, `level` (q, K, 1 + K), for the solution and that for
    a, and `blocks` (3, K, 1 + K).
    """
    q, k = theta.shape
    n_walk, unordered_precision = max(q - n_unordered, 1), ratio * precision
    block, grad, means = blocks[0, :, :k], blocks[1, :, :k], blocks[2]  # the means of both solutions
    grad[:] = 0.0
    set_right_sides(gradient, theta, n_unordered, unordered_precision, precision, ridge, right)
    means[:] = 0.0  # first what the unordered coefficients add to the right side of the walk
    for e in range(q):
        n_rows = 0.0
        for v in range(k):
            n_rows += curvature[e, v]
        common = (1.0 - ALIKE) / n_rows if n_rows > 0.0 else 0.0
        ends = (1.0 if e > n_unordered else 0.0) + (1.0 if e < q - 1 else 0.0)
        for u in range(k):
            for v in range(k):
                block[u, v] = -common * curvature[e, u] * curvature[e, v]
                if e > n_unordered:
                    block[u, v] -= precision * precision * left[e - 1, u, v]
            block[u, u] += curvature[e, u] + ridge + (unordered_precision if e < n_unordered else precision * ends)
        invert_definite(block, left[e])
        if e < n_unordered:
            for u in range(k):
                grad[u, u] += unordered_precision
                for v in range(k):
                    means[u, 0] += unordered_precision * left[e, u, v] * right[e, v]
                    grad[u, v] -= unordered_precision * unordered_precision * left[e, u, v]
            continue
        for u in range(k):
            level[e, u, 0] = right[e, u] + means[u, 0] / n_walk
            for v in range(k):
                level[e, u, 1 + v] = 1.0 / n_walk if u == v else 0.0
        if e > n_unordered:
            add_product(precision, left[e - 1], level[e - 1], level[e])
    means[:] = 0.0
    for e in range(q - 1, n_unordered - 1, -1):
        for u in range(k):
            for v in range(1 + k):
                blocks[0, u, v] = level[e, u, v] + (precision * level[e + 1, u, v] if e < q - 1 else 0.0)
        level[e] = 0.0
        add_product(1.0, left[e], blocks[0], level[e])
        for u in range(k):
            for v in range(1 + k):
                means[u, v] += level[e, u, v] / n_walk
    taken = blocks[0, :, :1]
    if n_unordered > 0:
        system = left[n_unordered]  # not needed any more
        for u in range(k):
            taken[u, 0] = 0.0
            for v in range(k):
                system[u, v] = 1.0 if u == v else 0.0
        add_product(1.0, grad, means[:, 1:], system)
        add_product(1.0, grad, means[:, :1], taken)
        eliminate(system, taken)
        add_product(-1.0, means[:, 1:], taken, means[:, :1])
    for e in range(q):
        for u in range(k):
            step = level[e, u, 0] if e >= n_unordered else 0.0
            for v in range(k):
                if e < n_unordered:
                    step += left[e, u, v] * (right[e, v] + unordered_precision * means[v, 0])
                elif n_unordered > 0:
                    step -= level[e, u, 1 + v] * taken[v, 0]
            steps[e, u] = min(max(step, -max_step), max_step)
            theta[e, u] += steps[e, u]


# -- steps under a monotone constraint -------------------------------------------------------------

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
