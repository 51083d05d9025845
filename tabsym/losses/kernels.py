"""The losses in kernels: value, gradient and Hessian by the linear predictor, each formula in one place.

Codes are those of `losses.LOSSES`; numba freezes module globals.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import inlined, kernel, kernels_by

ROUNDING = 1e-13
"""Residuals below this times 1 + abs(score) count as 0, so that the sign at a median, where a fit starts, is 0."""

SQUARED, LOGISTIC, MULTINOMIAL, ABSOLUTE, HUBER, QUANTILE, HINGE, POISSON, GAMMA, TWEEDIE = range(10)

TWEEDIE_1_5 = 100
"""Tweedie's loss of power 1.5 for rows stored as exp(score / 2), from which value and derivatives follow."""


@inlined
def _miss_of(score, target):
    """For the logistic loss: the margin, exp(-abs(margin)), and 1 - p of the class that occurred."""
    margin = score if target > 0 else -score
    small = np.exp(-abs(margin))
    return margin, small, (small if margin > 0 else 1.0) / (1.0 + small)


@inlined
def loss_of_one(score, target, loss, parameter):
    """(value, gradient, Hessian) of a loss with one linear predictor; where the second derivative is 0, a substitute.

    absolute, quantile, hinge: 1. huber: that of the parabola that touches the loss here and lies above it elsewhere.
    """
    if loss == LOGISTIC:
        margin, small, miss = _miss_of(score, target)
        value = np.log1p(small) + (0.0 if margin > 0 else -margin)
        return value, (-miss if target > 0 else miss), miss * (1.0 - miss)
    if loss == SQUARED:
        return 0.5 * (score - target) ** 2, score - target, 1.0
    return _other_loss(score, target, loss, parameter)


@inlined
def stepped(value, step, loss):
    """The stored transform of a row's linear predictor after a step of a coefficient without a numeric factor.

    Rows are stored as residuals (squared), exp(-score) (logistic), exp(score) (poisson), exp(score / 2) (TWEEDIE_1_5)
    or the target times exp(-score) (gamma), else as scores. Where that is an exp, the step is passed as an exp too,
    computed once per coefficient.
    """
    if loss in (LOGISTIC, POISSON, GAMMA, TWEEDIE_1_5):
        return value * step
    return value + step


@inlined
def gradients_at(value, target, loss, parameter, least):
    """Gradient and Hessian, at least `least`, of a row's loss from its stored transform."""
    if loss == SQUARED:
        return value, 1.0
    if loss == LOGISTIC:
        p = 1.0 / (1.0 + value)
        return (p - 1.0 if target > 0 else p), max(p * (1.0 - p), least)
    if loss == POISSON:
        return value - target, max(value, least)
    if loss == GAMMA:
        return 1.0 - value, max(value, least)
    if loss == TWEEDIE_1_5:
        share = target / value
        return value - share, max(0.5 * (value + share), least)
    _, slope, hess = _other_loss(value, target, loss, parameter)
    return slope, max(hess, least)


@kernel
def _other_loss(score, target, loss, parameter):
    if loss == HINGE:
        side = 1.0 if target > 0 else -1.0
        short = 1.0 - side * score
        return max(0.0, short), (-side if short > 0.0 else 0.0), 1.0
    error = score - target
    size = abs(error)
    if size <= ROUNDING * (1.0 + abs(score)):
        error = size = 0.0
    if loss == ABSOLUTE:
        return size, np.sign(error), 1.0
    if loss == HUBER:
        if size <= parameter:
            return 0.5 * error * error, error, 1.0
        return parameter * (size - 0.5 * parameter), np.copysign(parameter, error), parameter / size
    if loss == QUANTILE:
        if error < 0.0:
            return -parameter * error, -parameter, 1.0
        return (1.0 - parameter) * error, ((1.0 - parameter) if error > 0.0 else 0.0), 1.0
    if loss == POISSON:  # log links from here on
        mean = np.exp(score)
        return mean - target * score, mean - target, mean
    if loss == GAMMA:
        share = target * np.exp(-score)
        return score + share, 1.0 - share, share
    second = np.exp((2.0 - parameter) * score)  # tweedie, 1 < power < 2
    first = np.exp((1.0 - parameter) * score) if target > 0.0 else 0.0  # which may be infinite
    return (
        second / (2.0 - parameter) - target * first / (1.0 - parameter),
        second - target * first,
        (2.0 - parameter) * second + (parameter - 1.0) * target * first,
    )


@inlined
def slopes_of_many(scores, target):
    """Scores (K,) -> gradient, softmax minus indicator, in place; returns the loss."""
    top = scores[0]
    for k in range(1, len(scores)):
        top = max(top, scores[k])
    own = scores[target]
    total = 0.0
    for k in range(len(scores)):
        scores[k] = np.exp(scores[k] - top)
        total += scores[k]
    for k in range(len(scores)):
        scores[k] /= total
    scores[target] -= 1.0
    return np.log(total) + top - own


@kernels_by
def losses_of_rows(loss):
    """Value, gradient and Hessian (n,) of each row's loss, margins (n, 1)."""

    def losses_of_rows(margins, y, parameter, values, slopes, hessians):
        for i in range(len(y)):
            values[i], slopes[i], hessians[i] = loss_of_one(margins[i, 0], y[i], loss, parameter)

    return losses_of_rows


@kernels_by
def slope_of_shift(loss):
    """Sums over rows of the gradient and the Hessian of the loss at margins (n, 1) + shift."""

    def slope_of_shift(margins, y, weight, parameter, shift):
        slopes, hessians = 0.0, 0.0
        for i in range(len(y)):
            if loss == LOGISTIC:  # without the logarithm of its value
                _, _, miss = _miss_of(margins[i, 0] + shift, y[i])
                slope, hess = (-miss if y[i] > 0 else miss), miss * (1.0 - miss)
            else:
                _, slope, hess = loss_of_one(margins[i, 0] + shift, y[i], loss, parameter)
            share = weight[i] if len(weight) else 1.0
            slopes += share * slope
            hessians += share * hess
        return slopes, hessians

    return slope_of_shift


@kernel
def sum_softmax(odds, growth, share, p, predicted, hess):
    """Weighted sums of the softmax and of its derivative, into predicted (K,) and hess (K, K), at odds (n, K) * growth.

    `share` (n,) are the weights, `p` (K,) is work space. Probabilities near 0 are left out of the derivative, where
    they would take most of the time.
    """
    n_classes = len(growth)
    for k in range(n_classes):
        predicted[k] = 0.0
        for other in range(n_classes):
            hess[k, other] = 0.0
    for i in range(len(odds)):
        total = 0.0
        for k in range(n_classes):
            p[k] = odds[i, k] * growth[k]
            total += p[k]
        for k in range(n_classes):
            p[k] /= total
            own = share[i] * p[k]
            predicted[k] += own
            hess[k, k] += own
            if p[k] > 1e-9:
                for other in range(k + 1):
                    hess[k, other] -= own * p[other]
    for k in range(n_classes):
        for other in range(k):
            hess[other, k] = hess[k, other]
