"""Kernels of block coordinate descent for multiclass: rows are stored as probabilities.

Shapes, for n rows, K classes, q coefficients of the current term: codes (n,) int32 below q, -1 for none; x (n,), the
numeric factor of the coefficient, empty for 1; values (n, K): the probabilities of the rows.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import kernel, kernels_by, move_and_sum_row, unsigned

MIN_PROBABILITY = 1e-9
"""Lower bound of Hessians, as for one linear predictor: a class that is nearly certain still counts a little."""


ROUNDING = 1e-14
"""Smallest pivot of a positive definite matrix, relative to its diagonal."""


@kernel
def collect_classes(codes, x, y, weight, values, diagonal, gradient, curvature):
    """Sum gradients and Hessians (q, K) by coefficient for the multinomial loss, of one model; sums are overwritten.

    The Hessian is an upper bound, diag(p) for diag(p) - pp', whose steps differ from Newton steps by a constant common
    to all classes; ``diagonal``: p (1 - p) instead, the Hessian's diagonal.
    """
    gradient[:] = 0.0
    curvature[:] = 0.0
    for i in range(len(codes)):
        if codes[i] >= 0:
            c, label = unsigned(codes[i]), int(y[i])
            w = weight[i] if len(weight) else 1.0
            factor = x[i] if len(x) else 1.0
            for k in range(values.shape[1]):
                p = values[i, k]
                gradient[c, k] += w * factor * (p - 1.0 if k == label else p)
                curvature[c, k] += w * factor * factor * max(p * (1.0 - p) if diagonal else p, MIN_PROBABILITY)


@kernel
def move_classes(codes, x, steps, values):
    """Add their coefficient's steps (q, K) to the rows, stored as probabilities; `steps` may be overwritten."""
    if not len(x):
        for c in range(len(steps)):
            for k in range(steps.shape[1]):
                steps[c, k] = np.exp(steps[c, k])
    for i in range(len(codes)):
        if codes[i] >= 0:
            c = unsigned(codes[i])
            total = 0.0
            for k in range(values.shape[1]):
                values[i, k] *= np.exp(steps[c, k] * x[i]) if len(x) else steps[c, k]
                total += values[i, k]
            scale = 1.0 / total
            for k in range(values.shape[1]):
                values[i, k] *= scale


@kernels_by
def move_and_sum_classes(n_classes):
    """Apply the steps (1 + q, K) of the term `before`, as factors, and sum probabilities by the next term.

    For terms without a numeric factor; sums (1 + q, K) are overwritten. The first element of both is for rows without a
    coefficient. The number of classes is known when it is compiled, so that a row's are vectors.
    """

    def move_and_sum_classes(before, steps, codes, weight, values, sums):
        sums[:] = 0.0
        for i in range(len(codes)):
            w = weight[i] if len(weight) else 1.0
            move_and_sum_row(
                n_classes, values, unsigned(i), steps, unsigned(before[i] + 1), w, sums, unsigned(codes[i] + 1)
            )

    return move_and_sum_classes


@kernel
def step_classes(gradient, curvature, theta, precision, max_step, right, steps):
    """Steps (q, K) of coefficients with a ridge penalty, each at most `max_step` in size; theta is updated by them.

    By the bound diag(s) - ss' / n of a coefficient's Hessian, for s the sum of the probabilities of its n rows, which
    is exact where these are equal. Its inverse with the penalty is a rank-one update (Sherman and Morrison). The
    simpler bound diag(s) converges slowly where rows are nearly certain (`benchmarks/evidence/constants.md`). `right`
    (q, K) is set to the negative gradient, penalty included.
    """
    for e in range(theta.shape[0]):
        total, left = 0.0, 0.0
        for k in range(theta.shape[1]):
            right[e, k] = -gradient[e, k] - precision * theta[e, k]
            both = curvature[e, k] + precision
            fraction = curvature[e, k] / both if both > 0.0 else 0.0
            total += fraction * right[e, k]
            left += fraction * precision
        common = total / left if left > 0.0 else 0.0
        for k in range(theta.shape[1]):
            both = curvature[e, k] + precision
            step = (right[e, k] + common * curvature[e, k]) / both if both > 0.0 else 0.0
            steps[e, k] = min(max(step, -max_step), max_step)
            theta[e, k] += steps[e, k]


@kernel
def collect_matrices(codes, weights, values, sums):
    """Add the Hessian matrices of rows, diag(p) - pp' times weights (n,), empty for 1, to those of their coefficients.

    As lower triangles (1 + q, K (K + 1) / 2), row by row; 0: no coefficient.
    """
    for i in range(len(codes)):
        c, at = unsigned(codes[i] + 1), 0
        for k in range(values.shape[1]):
            p = values[i, k] * weights[i] if len(weights) else values[i, k]
            for h in range(k):
                sums[c, at + h] -= p * values[i, h]
            sums[c, at + k] += p - p * values[i, k]
            at += k + 1


@kernel
def matrices_of_rows(values, matrices):
    """Lower triangles (n, K (K + 1) / 2) of the Hessian matrices of rows, diag(p) - pp'."""
    for i in range(len(values)):
        at = 0
        for k in range(values.shape[1]):
            p = values[i, k]
            for h in range(k):
                matrices[i, at + h] = -p * values[i, h]
            matrices[i, at + k] = p - p * p
            at += k + 1


@kernel
def sum_matrices(codes, weights, matrices, sums):
    """Add rows of `matrices` (n, T), times weights (n,), empty for 1, to coefficients (1 + q, T); 0: none."""
    if len(weights):
        for i in range(len(codes)):
            c = unsigned(codes[i] + 1)
            for j in range(matrices.shape[1]):
                sums[c, j] += weights[i] * matrices[i, j]
    else:
        for i in range(len(codes)):
            c = unsigned(codes[i] + 1)
            for j in range(matrices.shape[1]):
                sums[c, j] += matrices[i, j]


@kernel
def add_ridge_posteriors(hessians, shared, precision, factor, solved, taken, follow):
    """Sums over the coefficients of a term with a ridge penalty that `posteriors_classes.ridge_of_classes` needs.

    With H a coefficient's Hessian (K, K), of `hessians` (q, T), S its cross-derivatives with the unpenalized terms (K,
    f K), of `shared` (f, q, T), both as lower triangles, and V = H + precision: adds S'V^-1 S to `taken` and S'V^-2 S
    to `follow` (f K, f K); returns the sum of the traces of V^-1. By Cholesky factors, LL' = V; `factor` (K, K) and
    `solved` (K, f K + K), for L^-1 (S, 1), are work space.
    """
    k, n_shared, trace = len(factor), len(taken), 0.0
    for e in range(len(hessians)):
        at = 0
        for i in range(k):
            for j in range(i + 1):
                left = hessians[e, at] + (precision if j == i else 0.0)
                for h in range(j):
                    left -= factor[i, h] * factor[j, h]
                min_pivot = ROUNDING * (hessians[e, at] + precision)
                factor[i, j] = np.sqrt(max(left, min_pivot)) if j == i else left / factor[j, j]
                at += 1
        for f in range(len(shared)):
            at = 0
            for i in range(k):
                for j in range(i + 1):
                    solved[i, f * k + j] = solved[j, f * k + i] = shared[f, e, at]
                    at += 1
        for i in range(k):
            for j in range(k):
                solved[i, n_shared + j] = 1.0 if j == i else 0.0
            for h in range(i):
                times = factor[i, h]
                for j in range(n_shared + h + 1):  # L^-1 is a lower triangle
                    solved[i, j] -= times * solved[h, j]
            scale = 1.0 / factor[i, i]
            for j in range(n_shared + i + 1):
                solved[i, j] *= scale
            for j in range(n_shared, n_shared + i + 1):
                trace += solved[i, j] * solved[i, j]
        for i in range(k):
            for a in range(n_shared):
                times = solved[i, a]
                for b in range(n_shared):
                    taken[a, b] += times * solved[i, b]
        for i in range(k - 1, -1, -1):
            for h in range(i + 1, k):
                times = factor[h, i]
                for j in range(n_shared):
                    solved[i, j] -= times * solved[h, j]
            scale = 1.0 / factor[i, i]
            for j in range(n_shared):
                solved[i, j] *= scale
            for a in range(n_shared):
                times = solved[i, a]
                for b in range(n_shared):
                    follow[a, b] += times * solved[i, b]
    return trace
