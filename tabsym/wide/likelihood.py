"""Deviance and likelihood of a fit, in the user's units."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from tabsym.wide import slopes
from tabsym.wide.losses import Loss

Floats = NDArray[np.float64]


def deviance(loss: Loss, margins: Floats, y: Floats, weight: Floats | None) -> float:
    """Twice the loss above that of a perfect prediction, summed over rows by their relative weight."""
    above = loss.values(margins, y) - loss.least(y)
    return 2.0 * float(above.sum() if weight is None else above @ weight)


def log_likelihood(loss: Loss, margins: Floats, y: Floats, weight: Floats | None, dispersion: float) -> float:
    """Of targets (n,) at linear predictors (n, K); NaN for losses that are no likelihood in closed form.

    Of the squared loss at the variance that is most likely, as of ordinary least squares; of gamma at the dispersion.
    """
    w = np.ones(len(y)) if weight is None else weight
    if loss.code == slopes.SQUARED:
        total = float(w.sum())
        spread = deviance(loss, margins, y, weight) / total
        return -0.5 * total * (np.log(2.0 * np.pi * spread) + 1.0) if spread > 0.0 else np.inf
    if loss.code in (slopes.LOGISTIC, slopes.MULTINOMIAL):
        return -0.5 * deviance(loss, margins, y, weight)
    if loss.code == slopes.POISSON:
        return -float(w @ (loss.values(margins, y) + gammaln(y + 1.0)))
    if loss.code == slopes.GAMMA and dispersion > 0.0:
        shape, ratio = w / dispersion, y * np.exp(-margins[:, 0])
        return float((shape * (np.log(shape * ratio) - ratio) - gammaln(shape) - np.log(y)).sum())
    return np.nan
