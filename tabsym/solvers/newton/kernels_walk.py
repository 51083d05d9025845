"""Kernels of first-order random walks: ordered coefficients, penalized by the differences of neighbours.

With one linear predictor the system is a tridiagonal matrix T, for multiclass one of blocks (K, K), as classes are
coupled. Coefficients apart from the walk, missing values, are centred on its mean a'theta, a = 1 / J for each of its J
coefficients. Eliminated, they leave T + k aa' (Sherman and Morrison 1950), so that they cost one more right side, a.
The mean of all coefficients is not penalized: it is confounded with the intercept.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import allocating_kernel, kernel

ALIKE = 1e-6
"""Relative ridge along the direction common to all classes, which is not identified: makes the matrices invertible."""


@kernel
def solve_walk(curvature, first, width, precision, ridge, right, pivots, out):
    """Solve (diag(curvature + ridge) + precision D'D) out = right for one column, D the differences.

    Arrays of all columns are flattened, (q W,), W the `width`; the column's walk begins at `first`. `pivots` is work
    space.
    """
    share = value = 0.0
    for at in range(first, len(curvature), width):
        n_beside = (at > first) + (at + width < len(curvature))
        pivot = curvature[at] + ridge + precision * n_beside - share * precision
        value = right[at] + share * value
        pivots[at], out[at] = pivot, value
        share = precision / pivot
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
def solve_beside_walk(curvature, first, width, share, precision, ridge, right, pivots, level, out):
    """As `solve_walk`, where the coefficients before `first` are centred on the mean of the others, which are a walk.

    `share`: the precision of the coefficients apart over the walk's; `pivots` and `level` (q W,) are work space.
    """
    n_walk = len(curvature) // width - first // width
    beside, recentered, grad = precision * share, 0.0, 0.0
    for at in range(first % width, first, width):
        both = curvature[at] + beside
        if both > 0.0:
            recentered += right[at] * beside / both
            grad += beside * curvature[at] / both
    for at in range(first, len(curvature), width):
        out[at], level[at] = right[at] + recentered / n_walk, 1.0 / n_walk
    solve_walk(curvature, first, width, precision, ridge, out, pivots, out)
    if first < width:
        return
    solve_walk(curvature, first, width, precision, ridge, level, pivots, level)
    mean = mean_of_walk(out, first, width) / (1.0 + grad * mean_of_walk(level, first, width))
    for at in range(first % width, first, width):
        both = curvature[at] + beside
        out[at] = (right[at] + beside * mean) / both if both > 0.0 else 0.0
    for at in range(first, len(curvature), width):
        out[at] -= grad * mean * level[at]


@kernel
def step_walk(
    gradient, curvature, theta, apart, width, share, precision, ridge, most, right, pivots, level, steps
):  # fmt: skip
    """As `step_ridge`, for a walk on whose mean the first `apart` coefficients are centred: the joint step of all.

    `share` is as in `solve_beside_walk`; `right`, `pivots` and `level` (q W,) are work space.
    """
    n_walk, beside = len(theta) // width - apart, precision * share
    for v in range(width):
        first = apart * width + v
        mean, recentered, jump = mean_of_walk(theta, first, width), 0.0, 0.0
        for at in range(v, first, width):
            grad = beside * (theta[at] - mean)
            right[at] = -gradient[at] - grad
            recentered += grad
        for at in range(first, len(theta), width):
            right[at] = recentered / n_walk - gradient[at] - ridge * theta[at] - jump
            if at + width < len(theta):
                jump = precision * (theta[at + width] - theta[at])
                right[at] += jump
        solve_beside_walk(curvature, first, width, share, precision, ridge, right, pivots, level, steps)
    decrease = 0.0
    for at in range(len(theta)):
        step = min(max(steps[at], -most), most)
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
        n_beside = (at > first) + (at + 1 < len(curvature))
        both = curvature[at] + ridge + precision * n_beside
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
def weigh_walk(curvature, theta, apart, share, precision, ridge, forward, space):
    """As `weigh_ridge`, for a walk on whose mean the first `apart` coefficients are centred; see `solve_beside_walk`.

    The intercept needs no correction: the mean of all coefficients is not penalized, and absorbs it. `forward` and
    `space` (q,) are work space.
    """
    q, width, length = len(curvature), np.int64(1), 0.0  # kernels would be compiled anew for a constant
    penalized = walk_variances(curvature, apart, precision, ridge, forward, space)
    for e in range(apart + 1, q):
        length += (theta[e] - theta[e - 1]) ** 2
    if apart == 0:
        return penalized, length
    for e in range(apart, q):
        space[e] = 1.0 / (q - apart)
    solve_walk(curvature, apart, width, precision, ridge, space, forward, space)
    mean, of_mean, grad = mean_of_walk(theta, apart, width), mean_of_walk(space, apart, width), 0.0
    for e in range(apart):
        if curvature[e] > 0.0:
            grad += curvature[e] * share * precision / (curvature[e] + share * precision)
    beside = 1.0 / (1.0 + grad * of_mean)
    for e in range(apart + 1, q):
        penalized -= grad * beside * (space[e] - space[e - 1]) ** 2
    for e in range(apart):
        own = 1.0 / (curvature[e] + share * precision)
        penalized += share * (own + (curvature[e] * own) ** 2 * of_mean * beside)
        length += share * (theta[e] - mean) ** 2
    return penalized, length


@allocating_kernel
def spread_walk_of_classes(own, shared, precision, level, covariances, followed):
    """Of the inverse of own + level + precision D'D, by blocks (K, K): diagonal, variance of differences.

    own (q, K, K) Hessians, shared (q, K, F). Sets `covariances` (q, K, K), the diagonal blocks, and `followed` (q, K,
    F), the inverse times `shared`; returns the sum of the variances of the differences of neighbours. With F_j what
    remains of coefficient j's block after elimination of those before it, H_j = F_j - precision: H_j = own_j + level +
    precision F_(j-1)^-1 H_(j-1), which avoids cancellation where means are unpenalized.
    """
    q, k = own.shape[0], own.shape[1]
    eye = np.eye(k)
    left = np.empty_like(own)  # F^-1
    loose = np.empty_like(own)  # F^-1 H = 1 - precision F^-1
    for j in range(q):
        held = own[j] + level * eye
        followed[j] = shared[j]
        if j > 0:
            held += precision * loose[j - 1]
            followed[j] += precision * (left[j - 1] @ followed[j - 1])
        left[j] = np.linalg.inv(held + precision * eye if j < q - 1 else held)
        loose[j] = left[j] @ held
    covariances[q - 1] = left[q - 1]
    followed[q - 1] = left[q - 1] @ followed[q - 1]
    jumps = 0.0
    for j in range(q - 2, -1, -1):
        after = covariances[j + 1]
        followed[j] = left[j] @ (followed[j] + precision * followed[j + 1])
        covariances[j] = left[j] + precision * precision * (left[j] @ after @ left[j])
        jumps += np.trace(left[j] + loose[j] @ after @ loose[j].T)
    return jumps


@allocating_kernel
def step_walk_of_classes(gradient, curvature, theta, apart, share, precision, ridge, most, right, steps):
    """As `kernels_classes.step_classes`, for a walk on whose mean the first `apart` coefficients are centred.

    Block tridiagonal elimination, with blocks (K, K), from the first coefficient on.
    """
    q, k = theta.shape
    n_walk, beside, eye = max(q - apart, 1), share * precision, np.eye(k)
    left = np.empty((q, k, k))  # inverses of the blocks after elimination of those before
    level = np.empty((q, k, k))  # the solution for a
    mean, recentered, grad = np.zeros(k), np.zeros(k), np.zeros((k, k))
    for e in range(apart, q):
        mean += theta[e] / n_walk
    for e in range(apart):
        right[e] = -gradient[e] - beside * (theta[e] - mean)
        recentered += beside * (theta[e] - mean)
    for e in range(apart, q):
        right[e] = recentered / n_walk - gradient[e] - ridge * theta[e]
    recentered[:] = 0.0
    for e in range(apart, q - 1):
        jump = precision * (theta[e + 1] - theta[e])
        right[e] += jump
        right[e + 1] -= jump
    for e in range(q):
        n_rows = curvature[e].sum()
        held = np.zeros((k, k))
        if n_rows > 0.0:
            held -= np.outer(curvature[e], curvature[e]) * ((1.0 - ALIKE) / n_rows)
        ends = (1.0 if e > apart else 0.0) + (1.0 if e < q - 1 else 0.0)
        for v in range(k):
            held[v, v] += curvature[e, v] + ridge + (beside if e < apart else precision * ends)
        if e > apart:
            held -= precision * precision * left[e - 1]
        left[e] = np.linalg.inv(held)
        if e < apart:
            recentered += beside * (left[e] @ right[e])
            grad += beside * eye - beside * beside * left[e]
            continue
        steps[e], level[e] = right[e] + recentered / n_walk, eye / n_walk
        if e > apart:
            steps[e] += precision * (left[e - 1] @ steps[e - 1])
            level[e] += precision * (left[e - 1] @ level[e - 1])
    of_mean = np.zeros((k, k))
    mean[:] = 0.0
    for e in range(q - 1, apart - 1, -1):
        if e < q - 1:
            steps[e] += precision * steps[e + 1]
            level[e] += precision * level[e + 1]
        steps[e], level[e] = left[e] @ steps[e], left[e] @ level[e]
        mean += steps[e] / n_walk
        of_mean += level[e] / n_walk
    if apart > 0:
        taken = np.linalg.solve(eye + grad @ of_mean, grad @ mean)
        mean -= of_mean @ taken
        for e in range(apart, q):
            steps[e] -= level[e] @ taken
        for e in range(apart):
            steps[e] = left[e] @ (right[e] + beside * mean)
    for e in range(q):
        for v in range(k):
            steps[e, v] = min(max(steps[e, v], -most), most)
            theta[e, v] += steps[e, v]
