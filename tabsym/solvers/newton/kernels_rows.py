"""Kernels of Newton's method by block coordinate descent: what a block's coefficients are pulled by, and how rows move
with their steps.

For losses of one score; those of several classes are in `kernels_classes`.

Shapes, for n rows and the block whose turn it is, of which a row selects one coefficient:
    codes (n,) int32: the place of the row's coefficient in arrays, less one; the first place is of rows without a
    coefficient (where there are several models, of which a row is seen by one, each has such a place, and coefficients
    of its own); x (n,), what the coefficient is multiplied by, empty for 1; values (n,): where rows are kept (see
    `slopes.stepped`); steps, theta and sums (places,); pulls (places, 2): slopes and curvatures, near each other in
    memory.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import inlined, kernel, unsigned
from tabsym.losses.kernels import GAMMA, HALVES, LOGISTIC, POISSON, SQUARED, gradients_at, stepped

MIN_HESSIAN = 1e-9
"""Curvatures are no smaller: a row whose class is certain still counts a little."""


@inlined
def _moved(value, step, x, i, loss):
    """Where a row stands after a step, times x."""
    if len(x) == 0:
        return stepped(value, step, loss)
    if loss in (LOGISTIC, GAMMA):
        return value * np.exp(-step * x[i])
    if loss == POISSON:
        return value * np.exp(step * x[i])
    if loss == HALVES:
        return value * np.exp(0.5 * step * x[i])
    return value + step * x[i]


@inlined
def _take_turn(before, x_before, steps, codes, x, y, weight, values, loss, parameter, grads):
    for i in range(len(codes)):
        value = _moved(values[i], steps[unsigned(before[i] + 1)], x_before, i, loss)
        values[i] = value
        slope, hess = gradients_at(value, y[i], loss, parameter, MIN_HESSIAN)
        if len(weight):
            slope *= weight[i]
            hess *= weight[i]
        if len(x):
            slope *= x[i]
            hess *= x[i] * x[i]
        at = unsigned(codes[i] + 1)
        grads[at, 0] += slope
        grads[at, 1] += hess


@inlined
def _take_plain_turn(before, steps, codes, y, values, loss, n_lanes, grads):
    """Without weights and numbers: a loop without questions takes half the time."""
    length, last = unsigned(len(grads) // n_lanes), unsigned(n_lanes - 1)
    for i in range(len(codes)):
        value = stepped(values[i], steps[unsigned(before[i] + 1)], loss)
        values[i] = value
        slope, hess = gradients_at(value, y[i], loss, 0.0, MIN_HESSIAN)
        at = unsigned(codes[i] + 1) + length * (unsigned(i) & last)
        grads[at, 0] += slope
        grads[at, 1] += hess


@inlined
def _take_turn_of(before, x_before, steps, codes, x, y, weight, values, loss, n_lanes, grads):
    """For a loss that the compiler knows."""
    if len(x_before) + len(x) + len(weight) > 0:
        _take_turn(before, x_before, steps, codes, x, y, weight, values, loss, 0.0, grads)
    else:
        _take_plain_turn(before, steps, codes, y, values, loss, n_lanes, grads)


@kernel
def take_turn(before, x_before, steps, codes, x, y, weight, values, loss, parameter, n_lanes, grads):
    """Move rows by the steps of the block `before`, and sum slopes and curvatures by the coefficients of the one after.

    In one pass, for losses of one score; pulls are set, not added to. Rows take turns at `n_lanes`, a power of 2, such
    arrays in a row, of which the first is the sum in the end: where all add to the same few numbers, each waits for
    the one before.
    """
    grads[:] = 0.0
    if loss == SQUARED:  # a loop each: which loss it is, is then known in it
        _take_turn_of(before, x_before, steps, codes, x, y, weight, values, SQUARED, n_lanes, grads)
    elif loss == LOGISTIC:
        _take_turn_of(before, x_before, steps, codes, x, y, weight, values, LOGISTIC, n_lanes, grads)
    elif loss == POISSON:
        _take_turn_of(before, x_before, steps, codes, x, y, weight, values, POISSON, n_lanes, grads)
    elif loss == GAMMA:
        _take_turn_of(before, x_before, steps, codes, x, y, weight, values, GAMMA, n_lanes, grads)
    elif loss == HALVES:
        _take_turn_of(before, x_before, steps, codes, x, y, weight, values, HALVES, n_lanes, grads)
    else:
        _take_turn(before, x_before, steps, codes, x, y, weight, values, loss, parameter, grads)
    length = len(grads) // n_lanes
    for at in range(length, len(grads)):
        grads[at % length, 0] += grads[at, 0]
        grads[at % length, 1] += grads[at, 1]


@kernel
def take_squared_turn(before, x_before, steps, codes, x, weight, values, n_lanes, slopes):
    """As `take_turn`, for the squared loss, whose curvatures never change: `slopes` (the length of `grads`) alone."""
    slopes[:] = 0.0
    length, last = unsigned(len(slopes) // n_lanes), unsigned(n_lanes - 1)
    if len(x_before) + len(x) + len(weight) > 0:
        for i in range(len(codes)):
            value = _moved(values[i], steps[unsigned(before[i] + 1)], x_before, i, SQUARED)
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


@kernel
def move(codes, x, steps, values, loss):
    """Move rows by their coefficient's step."""
    for i in range(len(codes)):
        values[i] = _moved(values[i], steps[unsigned(codes[i] + 1)], x, i, loss)


@kernel
def codes_of_models(codes, column, n_models, out):
    """The places of coefficients (n,), less one, where each has one for every model: `column` (n,) is the row's
    model.
    """
    width = np.int32(n_models)
    for i in range(len(codes)):
        out[i] = (codes[i] + np.int32(1)) * width + np.int32(column[i]) - np.int32(1)


@kernel
def add_entries(codes, x, theta, n_models, flip, scores):
    """Add to scores (n,) the coefficients (q W,) of rows, times x: of the W models the row's own, or with flip 1 the
    other.

    Rows without a coefficient have codes below W - 1, and nothing to add.
    """
    known = False
    for e in range(len(theta)):
        known |= theta[e] != 0.0
    if not known:  # as of many blocks before their first turn
        return
    first = np.int32(n_models - 1)
    for i in range(len(codes)):
        if codes[i] >= first:
            own = theta[unsigned(codes[i] - first) ^ unsigned(flip)]
            scores[i] += own * x[i] if len(x) else own


@kernel
def take_linear_turn(before, x_before, steps, codes, x, hessians, others, reach, sums):
    """Of two models: move `reach` (n,) by the steps of the block `before`, and sum what pulls at coefficients of the
    next.

    That is `reach` times `hessians` (n,) of the rows that a coefficient's model sees, less `others` (n,) of those it
    does not.
    """
    sums[:] = 0.0
    if len(x_before) + len(x) == 0:
        for i in range(len(codes)):
            value = reach[i] + steps[unsigned(before[i] + 1)]
            reach[i] = value
            at = unsigned(codes[i] + 1)
            sums[at] += value * hessians[i]
            sums[at ^ unsigned(1)] -= others[i]
    else:
        for i in range(len(codes)):
            step = steps[unsigned(before[i] + 1)]
            value = reach[i] + (step * x_before[i] if len(x_before) else step)
            reach[i] = value
            factor = x[i] if len(x) else 1.0
            at = unsigned(codes[i] + 1)
            sums[at] += value * hessians[i] * factor
            sums[at ^ unsigned(1)] -= others[i] * factor


@kernel
def row_gradients(values, y, weight, loss, parameter, slopes, hessians):
    """Slope and curvature (n,) of each row, times its weight, for losses of one score."""
    for i in range(len(y)):
        share = weight[i] if len(weight) else 1.0
        slope, hess = gradients_at(values[i], y[i], loss, parameter, MIN_HESSIAN)
        slopes[i], hessians[i] = share * slope, share * hess


@kernel
def sum_pulls(values, y, weight, loss, parameter, least):
    """Sums over rows: squares of slopes times their weights, and curvatures times theirs."""
    squares = hessians = 0.0
    for i in range(len(y)):
        share = weight[i] if len(weight) else 1.0
        slope, hess = gradients_at(values[i], y[i], loss, parameter, least)
        squares += share * slope * slope
        hessians += share * hess
    return squares, hessians


@kernel
def sum_rows(codes, x, numbers, sums):
    """Sum numbers (n, W) of rows, times x, by coefficient; sums are set."""
    sums[:] = 0.0
    for i in range(len(codes)):
        if codes[i] >= 0:
            c = unsigned(codes[i])
            for v in range(numbers.shape[1]):
                sums[c, v] += numbers[i, v] * (x[i] if len(x) else 1.0)


@kernel
def sum_products(codes, x, hessians, numbers, sums):
    """Sum bends * numbers (n, W) by coefficient; bends (n, W), or (n, 1) for all columns alike; sums are set."""
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


@kernel
def sum_pairs(left, right, values, sums):
    """Add values (n,) of rows to sums (q, r) at their coefficients of two blocks, codes (n,) each, -1 for none."""
    for i in range(len(values)):
        if left[i] >= 0 and right[i] >= 0:
            sums[left[i], right[i]] += values[i]
