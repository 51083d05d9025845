"""Kernels of second order: gradients and curvatures of rows, and Newton steps of the entries of a column.

`scores` (n, K); `state` (entries * K, width) as in `kernels`, of which the
first column moves. A step is shrunk by a ridge penalty and bounded by `most`:
the losses with a link are not quadratic.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import kernel, part
from tabsym.wide.rules import GAMMA, HUBER, LOGISTIC, POISSON, SQUARED, TWEEDIE, slope_of_one
from tabsym.wide.scores import slopes_of_many

LEAST = 1e-6
"""Curvatures are no smaller: a row whose class is certain still counts a little."""


@part
def _curvature(score, target, slope, loss, parameter):
    """Second derivative of the loss by the score, or what stands for it (absolute, quantile, hinge: 1)."""
    value = 1.0
    if loss == LOGISTIC:
        miss = abs(slope)
        value = miss * (1.0 - miss)
    elif loss == HUBER:
        size = abs(score - target)
        value = 1.0 if size <= parameter else parameter / size
    elif loss == POISSON:
        value = np.exp(score)
    elif loss == GAMMA:
        value = target * np.exp(-score)
    elif loss == TWEEDIE:
        value = (2.0 - parameter) * np.exp((2.0 - parameter) * score)
        value += (parameter - 1.0) * target * np.exp((1.0 - parameter) * score)
    return max(value, LEAST)


@part
def _pull(i, n_outputs, scores, y, loss, parameter, slope, bend):
    """Gradient and curvature of row i into slope (K,) and bend (K,).

    Softmax outputs move together, which twice the diagonal bounds.
    """
    if n_outputs == 1:
        slope[0], value = slope_of_one(scores[i, 0], y[i], loss, parameter)
        bend[0] = _curvature(scores[i, 0], y[i], slope[0], loss, parameter)
    else:
        own = int(y[i])
        for k in range(n_outputs):
            slope[k] = scores[i, k]
        slopes_of_many(slope, own)
        for k in range(n_outputs):
            p = slope[k] + 1.0 if k == own else slope[k]
            bend[k] = max(2.0 * p * (1.0 - p), LEAST)


@kernel
def pulls_of_rows(scores, y, weight, loss, parameter, slope, bend, pulls):
    """Gradients and curvatures (n, 2 K), times the row's weight, at scores (n, K)."""
    n_outputs = scores.shape[1]
    for i in range(len(y)):
        share = weight[i] if len(weight) else 1.0
        _pull(i, n_outputs, scores, y, loss, parameter, slope, bend)
        for k in range(n_outputs):
            pulls[i, 2 * k] = share * slope[k]
            pulls[i, 2 * k + 1] = share * bend[k]


@part
def _bounded(step, most):
    return max(-most, min(most, step))


@kernel
def move_symbols(codes, start, size, y, weight, loss, parameter, penalty, most, sums, slope, bend, scores, state):
    """A Newton step of the entries start..start + size that codes (n,) select; `scores` follow.

    `sums` (at least size * K, 2) is what the step works in.
    """
    n_outputs = scores.shape[1]
    for place in range(size * n_outputs):
        sums[place, 0] = 0.0
        sums[place, 1] = 0.0
    for i in range(len(codes)):
        if codes[i] >= 0:
            share = weight[i] if len(weight) else 1.0
            _pull(i, n_outputs, scores, y, loss, parameter, slope, bend)
            place = (codes[i] - start) * n_outputs
            for k in range(n_outputs):
                sums[place + k, 0] += share * slope[k]
                sums[place + k, 1] += share * bend[k]
    first = start * n_outputs
    for place in range(size * n_outputs):
        pull = sums[place, 0] + penalty * state[first + place, 0]
        step = _bounded(-pull / (sums[place, 1] + penalty), most) if sums[place, 1] > 0.0 else 0.0
        state[first + place, 0] += step
        sums[place, 0] = step
    for i in range(len(codes)):
        if codes[i] >= 0:
            place = (codes[i] - start) * n_outputs
            for k in range(n_outputs):
                scores[i, k] += sums[place + k, 0]


@kernel
def move_scalar(x, entry, y, weight, loss, parameter, most, sums, slope, bend, scores, state):
    """A Newton step, without penalty, of one entry times x (n,), or alone where x is empty; `scores` follow."""
    n_outputs = scores.shape[1]
    for k in range(n_outputs):
        sums[k, 0] = 0.0
        sums[k, 1] = 0.0
    for i in range(len(y)):
        share = weight[i] if len(weight) else 1.0
        value = x[i] if len(x) else 1.0
        _pull(i, n_outputs, scores, y, loss, parameter, slope, bend)
        for k in range(n_outputs):
            sums[k, 0] += share * slope[k] * value
            sums[k, 1] += share * bend[k] * value * value
    for k in range(n_outputs):
        step = _bounded(-sums[k, 0] / sums[k, 1], most) if sums[k, 1] > 0.0 else 0.0
        state[entry * n_outputs + k, 0] += step
        sums[k, 0] = step
    for i in range(len(y)):
        value = x[i] if len(x) else 1.0
        for k in range(n_outputs):
            scores[i, k] += sums[k, 0] * value


SMOOTH = (SQUARED, LOGISTIC, HUBER, POISSON, GAMMA, TWEEDIE)
"""Losses of one score with a curvature of their own."""
