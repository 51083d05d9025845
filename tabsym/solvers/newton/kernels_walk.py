"""Kernels of first-order random walks: ordered coefficients, penalized by the differences of neighbours.

With one linear predictor the system is a tridiagonal matrix T, for multiclass one of blocks (K, K), as classes are
coupled. Coefficients apart from the walk, missing values, are centred on its mean a'theta, a = 1 / J for each of its J
coefficients. Eliminated, they leave T + k aa' (Sherman and Morrison 1950), so that they cost one more right side, a.
The mean of all coefficients is not penalized: it is confounded with the intercept.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import allocating_kernel, inlined, kernel

ALIKE = 1e-6
"""Relative ridge along the direction common to all classes, which is not identified: makes the matrices invertible."""


@inlined
def share_apart(n_walk):
    """The precision of coefficients apart from the walk over the walk's: that of its coefficients' variance.

    The coefficients of a walk of J, whose neighbours differ by a variance of 1, vary about their mean by (J^2 - 1) / (6
    J). The variance of the differences would shrink missing values too much (`benchmarks/evidence/constants.md`).
    """
    return 6.0 * n_walk / (n_walk * n_walk - 1.0) if n_walk > 1 else 1.0


@kernel
def solve_walk(curvature, precision, ridge, right, pivots, out):
    """Solve (diag(curvature + ridge) + precision D'D) out = right for each column (q, W), D the differences.

    `pivots` (q,) is work space.
    """
    n = len(curvature)
    for v in range(curvature.shape[1]):
        for j in range(n):
            ends = (1.0 if j > 0 else 0.0) + (1.0 if j < n - 1 else 0.0)
            pivots[j] = curvature[j, v] + ridge + precision * ends
            out[j, v] = right[j, v]
            if j > 0:
                share = precision / pivots[j - 1]
                pivots[j] -= share * precision
                out[j, v] += share * out[j - 1, v]
        for j in range(n - 1, -1, -1):
            after = precision * out[j + 1, v] if j < n - 1 else 0.0
            out[j, v] = (out[j, v] + after) / pivots[j]


@inlined
def mean_of_walk(theta, apart, v):
    """The mean of column v of theta (q, W) over the coefficients of the walk."""
    total = 0.0
    for e in range(apart, len(theta)):
        total += theta[e, v]
    return total / max(len(theta) - apart, 1)


@kernel
def solve_beside_walk(curvature, apart, precision, ridge, right, pivots, level, out):
    """As `solve_walk`, where the first `apart` coefficients are centred on the mean of the others, which are a walk.

    `pivots` (q,) and `level` (q, W) are work space.
    """
    q, n_models = curvature.shape
    n_walk = q - apart
    beside = precision * share_apart(n_walk)
    for v in range(n_models):
        recentered = 0.0
        for e in range(apart):
            both = curvature[e, v] + beside
            recentered += right[e, v] * beside / both if both > 0.0 else 0.0
        for e in range(apart, q):
            out[e, v] = right[e, v] + recentered / n_walk
            level[e, v] = 1.0 / n_walk
    solve_walk(curvature[apart:], precision, ridge, out[apart:], pivots[apart:], out[apart:])
    if apart == 0:
        return
    solve_walk(curvature[apart:], precision, ridge, level[apart:], pivots[apart:], level[apart:])
    for v in range(n_models):
        grad = 0.0
        for e in range(apart):
            both = curvature[e, v] + beside
            grad += beside * curvature[e, v] / both if both > 0.0 else 0.0
        mean = mean_of_walk(out, apart, v) / (1.0 + grad * mean_of_walk(level, apart, v))
        for e in range(apart):
            both = curvature[e, v] + beside
            out[e, v] = (right[e, v] + beside * mean) / both if both > 0.0 else 0.0
        for e in range(apart, q):
            out[e, v] -= grad * mean * level[e, v]


@kernel
def step_walk(gradient, curvature, theta, apart, precision, ridge, most, right, pivots, level, steps):
    """As `step_ridge`, for a walk on whose mean the first `apart` coefficients are centred: the joint step of all.

    `right` (q, W), `pivots` (q,) and `level` (q, W) are work space.
    """
    n = theta.shape[0]
    beside = precision * share_apart(n - apart)
    for v in range(theta.shape[1]):
        mean, recentered = mean_of_walk(theta, apart, v), 0.0
        for e in range(apart):
            grad = beside * (theta[e, v] - mean)
            right[e, v] = -gradient[e, v] - grad
            recentered += grad
        for e in range(apart, n):
            right[e, v] = recentered / (n - apart) - gradient[e, v] - ridge * theta[e, v]
        for e in range(apart, n - 1):
            jump = precision * (theta[e + 1, v] - theta[e, v])
            right[e, v] += jump
            right[e + 1, v] -= jump
    solve_beside_walk(curvature, apart, precision, ridge, right, pivots, level, steps)
    decrease = 0.0
    for e in range(n):
        for v in range(theta.shape[1]):
            step = min(max(steps[e, v], -most), most)
            theta[e, v] += step
            steps[e, v] = step
            decrease += abs(step * right[e, v])
    return 0.5 * decrease


@kernel
def walk_variances(curvature, precision, ridge, forward, backward, variances, steps):
    """From the inverse of `solve_walk`'s matrix: its diagonal (q, W), and the sums of the variances of differences.

    `forward`, `backward` (q,) are work space; `steps` (W,).
    """
    n = len(curvature)
    for v in range(curvature.shape[1]):
        for j in range(n):
            ends = (1.0 if j > 0 else 0.0) + (1.0 if j < n - 1 else 0.0)
            backward[j] = forward[j] = curvature[j, v] + ridge + precision * ends
            variances[j, v] = -forward[j]
            if j > 0:
                forward[j] -= precision * precision / forward[j - 1]
        for j in range(n - 2, -1, -1):
            backward[j] -= precision * precision / backward[j + 1]
        for j in range(n):
            variances[j, v] = 1.0 / (variances[j, v] + forward[j] + backward[j])
        steps[v] = 0.0
        for j in range(n - 1):  # cov(j, j + 1) = precision / forward[j] * var(j + 1)
            steps[v] += variances[j, v] + variances[j + 1, v] * (1.0 - 2.0 * precision / forward[j])


@kernel
def weigh_walk(curvature, theta, apart, precision, ridge, forward, backward, space, steps):
    """As `weigh_ridge`, for a walk on whose mean the first `apart` coefficients are centred.

    The intercept needs no correction: the mean of all coefficients is not penalized, and absorbs it. `forward` and
    `backward` (q,), `space` (q, 1) and `steps` (1,) are work space.
    """
    q, share = len(curvature), share_apart(len(curvature) - apart)
    walk_variances(curvature[apart:], precision, ridge, forward, backward, space[apart:], steps)
    penalized, length = steps[0], 0.0
    for e in range(apart + 1, q):
        length += (theta[e, 0] - theta[e - 1, 0]) ** 2
    if apart == 0:
        return penalized, length
    for e in range(apart, q):
        space[e, 0] = 1.0 / (q - apart)
    solve_walk(curvature[apart:], precision, ridge, space[apart:], forward, space[apart:])
    grad, mean = 0.0, mean_of_walk(theta, apart, 0)
    for e in range(apart):
        hessian = curvature[e, 0]
        grad += hessian * share * precision / (hessian + share * precision) if hessian > 0.0 else 0.0
    of_mean = mean_of_walk(space, apart, 0)
    beside = 1.0 / (1.0 + grad * of_mean)
    for e in range(apart + 1, q):
        penalized -= grad * beside * (space[e, 0] - space[e - 1, 0]) ** 2
    for e in range(apart):
        own = 1.0 / (curvature[e, 0] + share * precision)
        penalized += share * (own + (curvature[e, 0] * own) ** 2 * of_mean * beside)
        length += share * (theta[e, 0] - mean) ** 2
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
def step_walk_of_classes(gradient, curvature, theta, apart, precision, ridge, most, right, steps):
    """As `kernels_classes.step_classes`, for a walk on whose mean the first `apart` coefficients are centred.

    Block tridiagonal elimination, with blocks (K, K), from the first coefficient on.
    """
    q, k = theta.shape
    n_walk, beside, eye = max(q - apart, 1), share_apart(q - apart) * precision, np.eye(k)
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
