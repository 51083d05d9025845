"""Kernels of second order: gradients and curvatures of rows."""

from __future__ import annotations

import numpy as np

from tabsym.jit import kernel, part
from tabsym.wide.rules import GAMMA, HUBER, LOGISTIC, POISSON, TWEEDIE, slope_of_one
from tabsym.wide.scores import slopes_of_many

LEAST = 1e-6
"""Curvatures are no smaller: a row whose class is certain still counts a little."""


@part
def _curvature(score, target, loss, parameter):
    """Second derivative of the loss by the score, or what stands for it (absolute, quantile, hinge: 1)."""
    value = 1.0
    if loss == HUBER:  # of the parabola that touches the loss here and lies above it elsewhere
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


@kernel
def pulls_of_rows(scores, y, weight, loss, parameter, n_outputs, slope, pulls):
    """Gradients and curvatures, times the row's weight, of scores (n, C) into pulls (n, 2 C): 2 c and 2 c + 1.

    The C scores are those of C / K models side by side. Softmax outputs move
    together, which twice the diagonal of their curvature bounds. `slope` (K,) is
    what the kernel works in.
    """
    for i in range(len(y)):
        share = weight[i] if len(weight) else 1.0
        for first in range(0, scores.shape[1], n_outputs):
            if loss == LOGISTIC:  # without the value of the loss
                p = 1.0 / (1.0 + np.exp(-scores[i, first]))
                pulls[i, 2 * first] = share * (p - (1.0 if y[i] > 0 else 0.0))
                pulls[i, 2 * first + 1] = share * max(p * (1.0 - p), LEAST)
            elif n_outputs == 1:
                score = scores[i, first]
                pull, value = slope_of_one(score, y[i], loss, parameter)
                pulls[i, 2 * first] = share * pull
                pulls[i, 2 * first + 1] = share * _curvature(score, y[i], loss, parameter)
            else:
                own = int(y[i])
                for k in range(n_outputs):
                    slope[k] = scores[i, first + k]
                slopes_of_many(slope, own)
                for k in range(n_outputs):
                    p = slope[k] + 1.0 if k == own else slope[k]
                    pulls[i, 2 * (first + k)] = share * slope[k]
                    pulls[i, 2 * (first + k) + 1] = share * max(2.0 * p * (1.0 - p), LEAST)
