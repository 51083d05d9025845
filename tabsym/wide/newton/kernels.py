"""Kernels of Newton's method by turns: what a block's entries are pulled by, and how rows move with their steps.

Shapes, for n rows, K outputs, F models, W = F * K columns, q entries of the block whose turn it is:
    codes (n,) int32 below q, -1 for none;  x (n,), what the entry is multiplied by, empty for 1;
    values (n, W): where rows stand, column v * K + k for output k of model v (see below);
    gradient, curvature, steps (q, W);  fold (n,) int8: the one model that does not see the row, -1 for none.
Rows stand at their scores; under the logistic loss at exp(-score), under the multinomial loss at their
probabilities, so that a step takes an exp per entry, and none per row.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import inlined, kernel, unsigned
from tabsym.wide.slopes import LOGISTIC, loss_of_one

LEAST = 1e-9
"""Curvatures are no smaller: a row whose class is certain still counts a little."""


@inlined
def _pulls(value, target, loss, parameter):
    """Slope and curvature of a row's loss, from where it stands."""
    if loss == LOGISTIC:
        p = 1.0 / (1.0 + value)
        return (p - 1.0 if target > 0 else p), max(p * (1.0 - p), LEAST)
    _, slope, bend = loss_of_one(value, target, loss, parameter)
    return slope, max(bend, LEAST)


@kernel
def collect(codes, x, y, weight, fold, values, loss, parameter, gradient, curvature):
    """Sum slopes and curvatures by entry, for losses of one score (W = F); sums are set, not added to."""
    gradient[:] = 0.0
    curvature[:] = 0.0
    for i in range(len(codes)):
        if codes[i] >= 0:
            c = unsigned(codes[i])
            share = weight[i] if len(weight) else 1.0
            factor = x[i] if len(x) else 1.0
            for v in range(values.shape[1]):
                if fold[i] != v:
                    slope, bend = _pulls(values[i, v], y[i], loss, parameter)
                    gradient[c, v] += share * factor * slope
                    curvature[c, v] += share * factor * factor * bend


@kernel
def move(codes, x, steps, values, loss):
    """Move rows by their entry's step; `steps` may be overwritten."""
    if loss == LOGISTIC and not len(x):
        for c in range(len(steps)):
            for v in range(steps.shape[1]):
                steps[c, v] = np.exp(-steps[c, v])
    for i in range(len(codes)):
        if codes[i] >= 0:
            c = unsigned(codes[i])
            for v in range(values.shape[1]):
                if loss != LOGISTIC:
                    values[i, v] += steps[c, v] * (x[i] if len(x) else 1.0)
                elif len(x):
                    values[i, v] *= np.exp(-steps[c, v] * x[i])
                else:
                    values[i, v] *= steps[c, v]


@kernel
def collect_classes(codes, x, y, weight, values, diagonal, gradient, curvature):
    """`collect` for the multinomial loss, of one model (W = K).

    The curvature is that of a bound, diag(p), above diag(p) - pp', and so near it that its steps differ from Newton's
    by a number common to all classes; ``diagonal``: p (1 - p) instead, what a class has by itself.
    """
    gradient[:] = 0.0
    curvature[:] = 0.0
    for i in range(len(codes)):
        if codes[i] >= 0:
            c, own = unsigned(codes[i]), int(y[i])
            share = weight[i] if len(weight) else 1.0
            factor = x[i] if len(x) else 1.0
            for k in range(values.shape[1]):
                p = values[i, k]
                gradient[c, k] += share * factor * (p - 1.0 if k == own else p)
                curvature[c, k] += share * factor * factor * max(p * (1.0 - p) if diagonal else p, LEAST)


@kernel
def move_classes(codes, x, steps, values):
    """`move` for the multinomial loss; `steps` may be overwritten."""
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
            for k in range(values.shape[1]):
                values[i, k] /= total


@kernel
def collect_matrices(codes, share_of, values, own):
    """Add the curvature matrices of rows, diag(p) - pp' times their share (n,), to those of their entries (q, K, K)."""
    n_classes = values.shape[1]
    for i in range(len(codes)):
        if codes[i] >= 0:
            c = unsigned(codes[i])
            for k in range(n_classes):
                p = share_of[i] * values[i, k]
                own[c, k, k] += p
                for other in range(k + 1):
                    own[c, k, other] -= p * values[i, other]
    for c in range(len(own)):
        for k in range(n_classes):
            for other in range(k):
                own[c, other, k] = own[c, k, other]


@kernel
def pulls_of_rows(values, y, weight, loss, parameter, slopes, bends):
    """Slope and curvature (n, W) of each row, times its weight, for losses of one score."""
    for i in range(len(y)):
        share = weight[i] if len(weight) else 1.0
        for v in range(values.shape[1]):
            slope, bend = _pulls(values[i, v], y[i], loss, parameter)
            slopes[i, v], bends[i, v] = share * slope, share * bend


@kernel
def sum_rows(codes, x, numbers, sums):
    """Sum numbers (n, W) of rows, times x, by entry; sums are set."""
    sums[:] = 0.0
    for i in range(len(codes)):
        if codes[i] >= 0:
            c = unsigned(codes[i])
            for v in range(numbers.shape[1]):
                sums[c, v] += numbers[i, v] * (x[i] if len(x) else 1.0)


@kernel
def sum_products(codes, x, bends, numbers, sums):
    """Sum bends * numbers (n, W) by entry; bends (n, W), or (n, 1) for all columns alike; sums are set."""
    sums[:] = 0.0
    shared = bends.shape[1] == 1
    for i in range(len(codes)):
        if codes[i] >= 0:
            c = unsigned(codes[i])
            factor = x[i] if len(x) else 1.0
            for v in range(numbers.shape[1]):
                sums[c, v] += factor * bends[i, 0 if shared else v] * numbers[i, v]


@kernel
def add_to_rows(codes, x, steps, numbers):
    """Add the steps of entries, times x, to numbers (n, W) of rows."""
    for i in range(len(codes)):
        if codes[i] >= 0:
            c = unsigned(codes[i])
            for v in range(numbers.shape[1]):
                numbers[i, v] += steps[c, v] * (x[i] if len(x) else 1.0)


@kernel
def solve_walk(curvature, precision, ridge, right, pivots, out):
    """Solve (diag(curvature + ridge) + precision D'D) out = right for each column (q, W), D the differences.

    `pivots` (q,) is what the kernel works in.
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


@kernel
def walk_variances(curvature, precision, ridge, forward, backward, variances, steps):
    """Of the inverse of `solve_walk`'s matrix: its diagonal (q, W), and the sums of the variances of differences.

    `forward`, `backward` (q,) are what the kernel works in; `steps` (W,).
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
