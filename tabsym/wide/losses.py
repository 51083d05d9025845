"""Losses: each knows its link, its code in the kernels, its targets, and the best constant to start from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, softmax

from tabsym.wide import rules

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Loss:
    """A loss by name.

    Attributes
    ----------
    name : str
    code : int
        What the kernels know it by (functions as arguments would miss numba's disk cache).
    scales : bool
        Whether the target may be centred and scaled inside: the loss is about differences.
    log_link : bool
        Whether the prediction is exp(score).
    lowest : float
        The least valid target; `lowest_open` where that itself is not valid.
    parameter : float
        huber's delta (in units of the target), the quantile, tweedie's power.
    """

    name: str
    code: int
    scales: bool = False
    log_link: bool = False
    lowest: float = -np.inf
    lowest_open: bool = False
    parameter: float = 0.0

    @property
    def for_classes(self) -> bool:
        return self.code in (rules.LOGISTIC, rules.HINGE, rules.MULTINOMIAL)

    def best_constant(self, y: Floats, weights: Floats | None, n_outputs: int) -> Floats:
        """The margin (n_outputs,) that minimises the loss where nothing else is known.

        Classes are smoothed by half a row each, so that a class not met yet
        (in `partial_fit`) has a finite margin.
        """
        if self.for_classes:
            counts = np.bincount(y.astype(np.int64), weights, max(n_outputs, 2)) + 0.5
            log_share = np.log(counts / counts.sum())
            if self.code == rules.HINGE:
                return np.array([1.0 if counts[1] > counts[0] else -1.0])
            return log_share[1:] - log_share[:1] if self.code == rules.LOGISTIC else log_share
        if self.log_link:
            mean = np.average(y, weights=weights)
            return np.array([np.log(mean) if mean > 0 else 0.0])
        if self.code == rules.HUBER:
            bounds = (float(y.min()), float(y.max()))
            found = minimize_scalar(
                lambda c: np.average(self.values(np.full((len(y), 1), c), y), weights=weights), bounds=bounds
            )
            return np.array([found.x])
        if self.code in (rules.ABSOLUTE, rules.QUANTILE):
            share = self.parameter if self.code == rules.QUANTILE else 0.5
            return np.array([np.quantile(y, share, weights=weights, method="inverted_cdf")])
        return np.array([np.average(y, weights=weights)])

    def predict(self, margins: Floats) -> Floats:
        """The inverse link: margins (n, n_outputs) -> values (n, 1) or probabilities (n, classes)."""
        if self.code == rules.LOGISTIC:
            positive = expit(margins[:, 0])
            return np.column_stack([1.0 - positive, positive])
        if self.code == rules.MULTINOMIAL:
            return np.asarray(softmax(margins, axis=1))
        return np.exp(margins) if self.log_link else margins

    def values(self, margins: Floats, y: Floats) -> Floats:
        """The loss of each row (n,)."""
        if self.code == rules.MULTINOMIAL:
            own = np.take_along_axis(margins, y.astype(np.int64)[:, None], axis=1)[:, 0]
            return np.asarray(np.logaddexp.reduce(margins, axis=1) - own)
        score = margins[:, 0]
        error, p = score - y, self.parameter
        match self.code:
            case rules.SQUARED:
                return 0.5 * error**2
            case rules.LOGISTIC:
                return np.logaddexp(0.0, np.where(y > 0, -score, score))
            case rules.HINGE:
                return np.maximum(0.0, 1.0 - np.where(y > 0, score, -score))
            case rules.ABSOLUTE:
                return np.abs(error)
            case rules.HUBER:
                return np.where(np.abs(error) <= p, 0.5 * error**2, p * (np.abs(error) - 0.5 * p))
            case rules.QUANTILE:
                return np.where(error < 0, -p * error, (1 - p) * error)
            case rules.POISSON:
                return np.exp(score) - y * score
            case rules.GAMMA:
                return score + y * np.exp(-score)
        return np.exp((2 - p) * score) / (2 - p) - y * np.exp((1 - p) * score) / (1 - p)  # tweedie


LOSSES = {
    loss.name: loss
    for loss in [
        Loss("squared", rules.SQUARED, scales=True),
        Loss("absolute", rules.ABSOLUTE, scales=True),
        Loss("huber", rules.HUBER, scales=True, parameter=1.35),
        Loss("quantile", rules.QUANTILE, scales=True, parameter=0.5),
        Loss("poisson", rules.POISSON, log_link=True, lowest=0.0),
        Loss("gamma", rules.GAMMA, log_link=True, lowest=0.0, lowest_open=True),
        Loss("tweedie", rules.TWEEDIE, log_link=True, lowest=0.0, parameter=1.5),
        Loss("logistic", rules.LOGISTIC),
        Loss("hinge", rules.HINGE),
        Loss("multinomial", rules.MULTINOMIAL),
    ]
}
"""The losses by name; formulas with p the prediction and s the score, p = s or exp(s):

squared (y - p)**2 / 2; absolute |y - p|; huber, squared within delta and linear beyond;
quantile q (y - p) above, (1 - q)(p - y) below; poisson p - y s; gamma s + y / p;
tweedie p**(2 - k) / (2 - k) - y p**(1 - k) / (1 - k) with 1 < k < 2; logistic (two classes);
hinge max(0, 1 - (+-1) s); multinomial (softmax).
"""
