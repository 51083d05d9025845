"""The dispersion by which variance components are estimated behind a log link.

Pearson's statistic, which is reported, is too small where variances follow the residuals of few rows: a fit that
follows the largest amounts has a smaller dispersion, and by it larger variances, which let it follow them more
closely. The deviance of the same rows depends less on the largest, and a count has a dispersion of about 1 a priori
(`benchmarks/evidence/README.md`, "Few rows").
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, gammaln

from tabsym.losses.kernels import POISSON
from tabsym.losses.loss import Loss

N_ERRORS = 2.0
"""Standard errors of Pearson's statistic by which the dispersion may be larger than it says."""

LEAST, LARGEST = 1e-3, 1e3
"""Dispersions that are found from a deviance: below, both are the same up to a thousandth."""


def working_dispersion(estimate: float, deviance: float, left: float, loss: Loss, event: float) -> float:
    """An estimate by squared residuals, or up to the upper end of its confidence interval what else is likely.

    For gamma's and tweedie's loss that is the dispersion by the deviance, for counts that of Poisson's law. The
    variance of a squared residual over the dispersion squared is 2 + p (2 p - 1) dispersion, at a mean of 1, where the
    variance is the mean to the power p (Joergensen 1987).

    Parameters
    ----------
    estimate : float
        By squared residuals.
    deviance : float
        Over the residual degrees of freedom, as `estimate`.
    left : float
        The residual degrees of freedom.
    loss : Loss
        With a log link.
    event : float
        The dispersion of counts by Poisson's law, in the units of the target; 0 for others than counts.
    """
    power = loss.variance_power
    assert power is not None
    likely = event if loss.code == POISSON else dispersion_of_deviance(deviance, power)
    error = math.sqrt((2.0 + power * (2.0 * power - 1.0) * estimate) / left)
    return max(estimate, min(likely, estimate * (1.0 + N_ERRORS * error)))


def dispersion_of_deviance(deviance: float, power: float) -> float:
    """The dispersion at which a row of mean 1 has this expected deviance, the variance being mean to the `power`.

    For gamma's law (a power of 2) that is the maximum-likelihood estimate.
    """
    if deviance <= LEAST:
        return deviance
    if expected_deviance(LARGEST, power) <= deviance:
        return LARGEST
    log_ends = math.log(LEAST / 2.0), math.log(LARGEST)
    return math.exp(brentq(lambda log: expected_deviance(math.exp(log), power) - deviance, *log_ends, xtol=1e-4))


def expected_deviance(dispersion: float, power: float) -> float:
    """The expected deviance of a row of mean 1, by gamma's law (a power of 2) or Tweedie's (between 1 and 2).

    Of gamma's law with shape a it is 2 (log(a) - digamma(a)). Of a compound Poisson law the terms that are linear in
    the target y cancel in the mean, which leaves E[y^(2 - p)]: a sum over the numbers of events, of moments of gamma
    distributions (Joergensen 1987).
    """
    if power == 2.0:
        return 2.0 * float(-math.log(dispersion) - digamma(1.0 / dispersion))
    rate, shape = 1.0 / (dispersion * (2.0 - power)), (2.0 - power) / (power - 1.0)
    events = np.arange(1.0, rate + 12.0 * math.sqrt(rate) + 30.0)
    logs = events * math.log(rate) - rate - gammaln(events + 1.0)
    logs += (2.0 - power) * math.log(dispersion * (power - 1.0))
    logs += gammaln(events * shape + 2.0 - power) - gammaln(events * shape)
    return float(2.0 * (1.0 - np.exp(logs).sum()) / ((power - 1.0) * (2.0 - power)))
