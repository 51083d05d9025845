"""Kernels over rows: gradients and Hessians by coefficient, updates of linear predictors, and sums by pairs.

First those for losses with one linear predictor, then for multiclass.

Shapes, for n rows and the current term, of which a row selects one coefficient:
    codes (n,) int32: the index of the row's coefficient in arrays, less one; the first element of these is for rows
    without a coefficient (with several models, each row being in one, each model has such an element, and coefficients
    of its own); x (n,), the numeric factor of the coefficient, empty for 1; values (n,): transformed linear predictors
    (see `losses.loss.stepped`); steps, theta and sums (indices,); grads (indices, 2): gradients and Hessians, next
    to each other in memory.

Those of joint covariances sum by pairs of coefficients, and multiply sparse matrices. Several terms come in one call,
by the addresses `codes_at` and `x_at` (t,) of their codes and numeric factors (n,), 0 for a factor of 1; `starts` (t,)
are the indices of their first coefficients. `codes_like` and `x_like` have the dtypes at these addresses. Codes are -1
for rows without a coefficient.

For multiclass rows are stored as probabilities. Shapes, for n rows, K classes, q coefficients of the current term:
codes (n,) int32 below q, -1 for none; x (n,), the numeric factor of the coefficient, empty for 1; values (n, K): the
probabilities of the rows.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import inlined, kernel, kernels_by, move_and_sum_row, unsigned, vector_at
from tabsym.losses.loss import GAMMA, LOGISTIC, POISSON, TWEEDIE_1_5, gradients_at, stepped

MIN_HESSIAN = 1e-14
"""Lower bound of Hessians: a row whose class is nearly certain still counts a little. Times the square of a number that
is a million standard deviations out it must be negligible next to the information of other rows."""


@inlined
def _moved(value, step, x, i, loss):
    """The transformed linear predictor after a step, times x."""
    if len(x) == 0:
        return stepped(value, step, loss)
    if loss in (LOGISTIC, GAMMA):
        return value * np.exp(-step * x[i])
    if loss == POISSON:
        return value * np.exp(step * x[i])
    if loss == TWEEDIE_1_5:
        return value * np.exp(0.5 * step * x[i])
    return value + step * x[i]


@kernels_by
def move_and_sum(loss, is_plain):
    """Apply the steps of the term `before` to the rows, and sum gradients and Hessians by the next term.

    In one pass, for losses with one linear predictor; `grads` is overwritten. `is_plain`: without weights and numeric
    factors, where a loop without branches takes half the time. Its rows use `n_lanes` accumulators, a power of 2, in
    turn, of which the first holds the sum in the end: with few coefficients, additions to one would wait for each
    other.
    """

    def move_and_sum(before, x_before, steps, codes, x, y, weight, values, parameter, n_lanes, grads):
        for at in range(len(grads)):
            grads[at, 0] = grads[at, 1] = 0.0
        length, last = unsigned(len(grads) // n_lanes), unsigned(n_lanes - 1)
        for i in range(len(codes)):
            step, at = steps[unsigned(before[i] + 1)], unsigned(codes[i] + 1)
            value = stepped(values[i], step, loss) if is_plain else _moved(values[i], step, x_before, i, loss)
            values[i] = value
            slope, hess = gradients_at(value, y[i], loss, parameter, MIN_HESSIAN)
            if is_plain:
                at += length * (unsigned(i) & last)
            else:
                if len(weight):
                    slope *= weight[i]
                    hess *= weight[i]
                if len(x):
                    slope *= x[i]
                    hess *= x[i] * x[i]
            grads[at, 0] += slope
            grads[at, 1] += hess
        for at in range(length, len(grads)):
            grads[at % length, 0] += grads[at, 0]
            grads[at % length, 1] += grads[at, 1]

    return move_and_sum


@kernel
def move_and_sum_squared(before, x_before, steps, codes, x, weight, values, n_lanes, slopes):
    """As `move_and_sum`, for the squared loss, whose Hessians are constant: `slopes` (the length of `grads`) alone."""
    slopes[:] = 0.0
    length, last = unsigned(len(slopes) // n_lanes), unsigned(n_lanes - 1)
    if len(x_before) + len(x) + len(weight) > 0:
        for i in range(len(codes)):
            step = steps[unsigned(before[i] + 1)]
            value = values[i] + (step * x_before[i] if len(x_before) else step)
            values[i] = value
            if len(weight):
                value *= weight[i]
            slopes[unsigned(codes[i] + 1)] += value * x[i] if len(x) else value
    else:
        for i in range(len(codes)):
            value = values[i] + steps[unsigned(before[i] + 1)]
            values[i] = value
            slopes[unsigned(codes[i] + 1) + length * (unsigned(i) & last)] += value
    for at in range(len(slopes) // n_lanes, len(slopes)):
        slopes[at % (len(slopes) // n_lanes)] += slopes[at]


@kernels_by
def move(loss):
    """Add their coefficient's step to the linear predictors."""

    def move(codes, x, steps, values):
        for i in range(len(codes)):
            values[i] = _moved(values[i], steps[unsigned(codes[i] + 1)], x, i, loss)

    return move


@kernel
def codes_of_models(codes, column, n_models, out):
    """Indices of coefficients (n,), less one, where each model has its own: `column` (n,) is the row's model."""
    width = np.int32(n_models)
    for i in range(len(codes)):
        out[i] = (codes[i] + np.int32(1)) * width + np.int32(column[i]) - np.int32(1)


@kernel
def add_coefs(codes, x, theta, n_models, flip, scores):
    """Add to scores (n,) the coefficients (q W,) of rows, times x: the row's model's, or with flip 1 the other's.

    Rows without a coefficient have codes below W - 1, and nothing is added.
    """
    known = False
    for e in range(len(theta)):
        known |= theta[e] != 0.0
    if not known:  # as for many terms before their first step
        return
    first = np.int32(n_models - 1)
    for i in range(len(codes)):
        if codes[i] >= first:
            coef = theta[unsigned(codes[i] - first) ^ unsigned(flip)]
            scores[i] += coef * x[i] if len(x) else coef


@kernel
def move_and_sum_linear(before, x_before, steps, codes, x, hessians, gradients, delta_eta, sums):
    """For two models: add the steps of the term `before` to `delta_eta` (n,); sum residuals by the next term.

    The residual is `delta_eta` times `hessians` (n,) over the rows of a coefficient's model, less `gradients` (n,)
    over the other rows.
    """
    sums[:] = 0.0
    if len(x_before) + len(x) == 0:
        for i in range(len(codes)):
            value = delta_eta[i] + steps[unsigned(before[i] + 1)]
            delta_eta[i] = value
            at = unsigned(codes[i] + 1)
            sums[at] += value * hessians[i]
            sums[at ^ unsigned(1)] -= gradients[i]
    else:
        for i in range(len(codes)):
            step = steps[unsigned(before[i] + 1)]
            value = delta_eta[i] + (step * x_before[i] if len(x_before) else step)
            delta_eta[i] = value
            factor = x[i] if len(x) else 1.0
            at = unsigned(codes[i] + 1)
            sums[at] += value * hessians[i] * factor
            sums[at ^ unsigned(1)] -= gradients[i] * factor


@kernels_by
def row_gradients(loss):
    """Gradient and Hessian (n,) of each row, times its weight, for losses with one linear predictor."""

    def row_gradients(values, y, weight, parameter, slopes, hessians):
        for i in range(len(y)):
            w = weight[i] if len(weight) else 1.0
            slope, hess = gradients_at(values[i], y[i], loss, parameter, MIN_HESSIAN)
            slopes[i], hessians[i] = w * slope, w * hess

    return row_gradients


@kernels_by
def sum_gradients(loss):
    """Weighted sums over rows: squared gradients, and Hessians."""

    def sum_gradients(values, y, weight, parameter, min_hessian):
        squares = hessians = 0.0
        for i in range(len(y)):
            w = weight[i] if len(weight) else 1.0
            slope, hess = gradients_at(values[i], y[i], loss, parameter, min_hessian)
            squares += w * slope * slope
            hessians += w * hess
        return squares, hessians

    return sum_gradients


@kernel
def sum_rows(codes, x, numbers, sums):
    """Sum numbers (n, W) of rows, times x, by coefficient; sums are overwritten."""
    sums[:] = 0.0
    for i in range(len(codes)):
        if codes[i] >= 0:
            c = unsigned(codes[i])
            for v in range(numbers.shape[1]):
                sums[c, v] += numbers[i, v] * (x[i] if len(x) else 1.0)


@kernel
def sum_products(codes, x, hessians, numbers, sums):
    """Sum hessians * numbers (n, W) by coefficient; hessians (n, W), or (n, 1); sums are overwritten."""
    sums[:] = 0.0
    shared = hessians.shape[1] == 1
    for i in range(len(codes)):
        if codes[i] >= 0:
            c = unsigned(codes[i])
            factor = x[i] if len(x) else 1.0
            for v in range(numbers.shape[1]):
                sums[c, v] += factor * hessians[i, 0 if shared else v] * numbers[i, v]


@kernel
def add_to_rows(codes, x, steps, numbers):
    """Add the steps of coefficients, times x, to numbers (n, W) of rows."""
    for i in range(len(codes)):
        if codes[i] >= 0:
            c = unsigned(codes[i])
            for v in range(numbers.shape[1]):
                numbers[i, v] += steps[c, v] * (x[i] if len(x) else 1.0)


# -- pairs of coefficients ----------------------------------------------------------------------


@kernel
def sum_pairs(codes_at, x_at, starts, codes_like, x_like, values, products, sums):
    """Add values (n,) of rows to sums (p, p) by pairs of coefficients of several terms; the sums are symmetric.

    `products` (n,) is work space, empty where no term has a numeric factor. Then two blocks of the matrix are summed in
    one pass: the additions to them do not wait for each other.
    """
    n, row_values = len(values), products if len(products) else values
    for a in range(len(codes_at)):
        left, first, b = vector_at(codes_at[a], n, codes_like), starts[a], 0
        while b <= a:
            if len(products):
                x_a, x_b = vector_at(x_at[a], n, x_like), vector_at(x_at[b], n, x_like)
                for i in range(n):
                    products[i] = values[i] * (x_a[i] if x_at[a] != 0 else 1.0)
                    products[i] *= x_b[i] if x_at[b] != 0 else 1.0
            following = b + 1 if b < a and not len(products) else b
            right, more = vector_at(codes_at[b], n, codes_like), vector_at(codes_at[following], n, codes_like)
            second, third = starts[b], starts[following]
            for i in range(n):
                if left[i] >= 0:
                    at, value = unsigned(first + left[i]), row_values[i]
                    if right[i] >= 0:
                        sums[at, unsigned(second + right[i])] += value
                    if following != b and more[i] >= 0:
                        sums[at, unsigned(third + more[i])] += value
            b = following + 1
    for i in range(len(sums)):
        for j in range(i):
            sums[j, i] = sums[i, j]


@kernel
def sum_cross(codes, x, codes_at, x_at, starts, codes_like, x_like, values, diagonal, sums):
    """Add values (n,) of rows to sums (q, p) by the coefficients of one term and of several others.

    Adds those by the one term alone to its diagonal (q,). x (n,): its numeric factor, empty for 1.
    """
    n = len(values)
    for i in range(n):
        if codes[i] >= 0:
            value = values[i] * x[i] if len(x) else values[i]
            diagonal[codes[i]] += value * x[i] if len(x) else value
            for t in range(len(codes_at)):
                code = vector_at(codes_at[t], n, codes_like)[i]
                if code >= 0:
                    factor = vector_at(x_at[t], n, x_like)[i] if x_at[t] != 0 else 1.0
                    sums[codes[i], starts[t] + code] += value * factor


@kernel
def nests(codes, coarser, parent):
    """Whether each code (n,) has one of `coarser` (n,) in all its rows: then parent (q,) is that, -1 for none.

    Rows without a code must have none of the coarser ones.
    """
    unknown = -2
    for c in range(len(parent)):
        parent[c] = unknown
    for i in range(len(codes)):
        if codes[i] < 0:
            if coarser[i] >= 0:
                return False
        elif parent[codes[i]] == unknown:
            parent[codes[i]] = coarser[i]
        elif parent[codes[i]] != coarser[i]:
            return False
    return True


@kernel
def sum_children(parent, diagonal, sums, parent_diagonal, parent_sums):
    """Add the sums by `sum_cross` of coefficients (q,) to those of the ones that they are nested in, `parent` (q,)."""
    for c in range(len(parent)):
        if parent[c] >= 0:
            parent_diagonal[parent[c]] += diagonal[c]
            for j in range(parent_sums.shape[1]):
                parent_sums[parent[c], j] += sums[c, j]


@kernel
def subtract_shared(order, ends, x, codes_at, x_at, starts, codes_like, x_like, values, precision, alone, work, matrix):
    """As `sum_cross` and `subtract_square`, without sums for all coefficients (q,) of the one term at a time.

    `order`: the rows by the term's code, those of each up to `ends` (q,). `alone` (q,) is set to the inverse of the
    term's diagonal information, with its `precision`, 0 where there is none. `work` (3, p) is work space, zeros before.
    """
    n, first = len(values), 0
    sums, touched, last = work
    for c in range(len(ends)):
        information, n_touched = precision, 0
        for at in range(first, ends[c]):
            i = unsigned(order[at])
            value = values[i] * x[i] if len(x) else values[i]
            information += value * x[i] if len(x) else value
            for t in range(len(codes_at)):
                code = vector_at(codes_at[t], n, codes_like)[i]
                if code >= 0:
                    j = starts[t] + code
                    if last[j] == 0.0:
                        last[j] = 1.0
                        touched[n_touched] = j
                        n_touched += 1
                    sums[j] += value * (vector_at(x_at[t], n, x_like)[i] if x_at[t] != 0 else 1.0)
        alone[c] = 1.0 / information if information > 0.0 else 0.0
        for a in range(n_touched):
            j = int(touched[a])
            value = alone[c] * sums[j]
            for b in range(n_touched):
                if touched[b] <= j:
                    h = int(touched[b])
                    matrix[j, h] -= value * sums[h]
        for a in range(n_touched):
            sums[int(touched[a])] = last[int(touched[a])] = 0.0
        first = ends[c]


@kernel
def subtract_square(sums, by, matrix):
    """Subtract sums' diag(by) sums from the lower triangle of a matrix (p, p); sums (q, p), zeros are skipped."""
    for c in range(len(sums)):
        for j in range(sums.shape[1]):
            if sums[c, j] != 0.0:
                value = by[c] * sums[c, j]
                for h in range(j + 1):
                    matrix[j, h] -= value * sums[c, h]


@kernel
def multiply(sums, by, matrix, start, product):
    """Set a product (q, r) to diag(by) sums matrix plus a row `start` (r,); sums (q, p), zeros are skipped."""
    for c in range(len(sums)):
        for h in range(len(start)):
            product[c, h] = start[h]
        for j in range(sums.shape[1]):
            if sums[c, j] != 0.0:
                value = by[c] * sums[c, j]
                for h in range(matrix.shape[1]):
                    product[c, h] += value * matrix[j, h]


# -- multiclass: rows as probabilities -------------------------------------------------------------

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
