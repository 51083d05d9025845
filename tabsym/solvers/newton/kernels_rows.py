"""Kernels of block coordinate descent over rows: gradients and Hessians by coefficient, updates of linear predictors.

For losses with one linear predictor; those for multiclass are in `kernels_classes`.

Shapes, for n rows and the current term, of which a row selects one coefficient:
    codes (n,) int32: the index of the row's coefficient in arrays, less one; the first element of these is for rows
    without a coefficient (with several models, each row being in one, each model has such an element, and coefficients
    of its own); x (n,), the numeric factor of the coefficient, empty for 1; values (n,): transformed linear predictors
    (see `losses.kernels.stepped`); steps, theta and sums (indices,); grads (indices, 2): gradients and Hessians, next
    to each other in memory.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import inlined, kernel, kernels_by, unsigned
from tabsym.losses.kernels import GAMMA, LOGISTIC, POISSON, TWEEDIE_1_5, gradients_at, stepped

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
