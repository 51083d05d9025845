"""Losses: each knows its link, its code in the kernels, and the best constant to start from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

SQUARED, LOGISTIC, MULTINOMIAL = 0, 1, 2


@dataclass(frozen=True)
class Loss:
    """A loss by name.

    Attributes
    ----------
    name : str
    code : int
        What the kernels know it by (functions as arguments would miss numba's disk cache).
    """

    name: str
    code: int

    def best_constant(
        self, y: NDArray[np.float64], weights: NDArray[np.float64] | None, n_outputs: int
    ) -> NDArray[np.float64]:
        """The margin (n_outputs,) that minimises the loss where nothing else is known.

        Classes are smoothed by half a row each, so that a class not met yet
        (in `partial_fit`) has a finite margin.
        """
        if self.code == SQUARED:
            return np.array([np.average(y, weights=weights)])
        counts = np.bincount(y.astype(np.int64), weights, max(n_outputs, 2)) + 0.5
        log_share = np.log(counts / counts.sum())
        return log_share[1:] - log_share[:1] if self.code == LOGISTIC else log_share

    def predict(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """The inverse link: margins (n, n_outputs) -> values (n, 1) or probabilities (n, classes)."""
        if self.code == SQUARED:
            return margins
        if self.code == LOGISTIC:
            positive = expit(margins[:, 0])
            return np.column_stack([1.0 - positive, positive])
        return np.asarray(softmax(margins, axis=1))

    def values(self, margins: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        """The loss of each row (n,)."""
        if self.code == SQUARED:
            return np.asarray(0.5 * (margins[:, 0] - y) ** 2)
        if self.code == LOGISTIC:
            return np.logaddexp(0.0, np.where(y > 0, -margins[:, 0], margins[:, 0]))
        own = np.take_along_axis(margins, y.astype(np.int64)[:, None], axis=1)[:, 0]
        return np.asarray(np.logaddexp.reduce(margins, axis=1) - own)


LOSSES = {
    "squared": Loss("squared", SQUARED),
    "logistic": Loss("logistic", LOGISTIC),
    "multinomial": Loss("multinomial", MULTINOMIAL),
}
"""The losses by name: (1/2)(y - p)**2, logistic (two classes), multinomial (softmax)."""
