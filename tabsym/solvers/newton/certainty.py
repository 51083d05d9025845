"""What a fit by Newton's method knows of its own certainty: variances of blocks, deviations of numbers, samples."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TermCovariance:
    """Of the coefficients of a block, for each of K scores: a diagonal, and a matrix times its transpose.

    Attributes
    ----------
    own : (q, K)
        The diagonal; infinite where neither a row nor the prior tells.
    factor : (K, q, r)
    shares : (q,)
        The weights of the mean that coefficients are measured from; empty where that is in `factor`.
    """

    own: Floats
    factor: Floats
    shares: Floats = field(default_factory=lambda: np.empty(0))

    def variances(self) -> Floats:
        """Of coefficients (q, K)."""
        found = self.own + np.square(self.factor).sum(axis=2).T
        if not len(self.shares):
            return np.asarray(found)
        posterior = np.where(np.isfinite(self.own), self.own, 0.0)
        return np.asarray(found - 2.0 * self.shares[:, None] * posterior + np.square(self.shares) @ posterior)

    def of_difference(self, a: int, b: int) -> Floats:
        """Of the difference of two coefficients (K,)."""
        if a == b:
            return np.zeros(self.own.shape[1])
        between = self.factor[:, a] - self.factor[:, b]
        return np.asarray(self.own[a] + self.own[b] + np.square(between).sum(axis=1))

    def about_mean(self, shares: Floats) -> TermCovariance:
        """Of coefficients less their mean by `shares` (q,)."""
        centre = np.einsum("q,kqr->kr", shares, self.factor)
        return replace(self, factor=self.factor - centre[:, None], shares=shares if self.own.any() else np.empty(0))

    def times(self, size: float) -> TermCovariance:
        """Of coefficients times a number."""
        return replace(self, own=self.own * size**2, factor=self.factor * abs(size))


@dataclass(frozen=True, eq=False)
class Certainty:
    """In the user's units.

    Attributes
    ----------
    variances : (blocks,)
        How far the numbers of a block, or neighbours of an ordered one, are spread: infinite where nothing holds
        them back, 0 where the block says nothing.
    edf : (blocks,)
        As how many free numbers those of a block count.
    dispersion : float
        Variance of a row's gradient over its curvature; for the squared loss that of the rows about their means.
    sd : (coefficients, K)
        Posterior standard deviations of the coefficients as they are shown: about the mean of their term, where that is
        in the intercept. NaN where the block is dropped: its coefficients are 0 as too little is known of them.
    samples : (coefficients, M) or None
        About the parameters, from their posterior.
    covariances : tuple of TermCovariance or None
        Of each block, where they are known.
    working : float
        The dispersion that variances were found with; NaN for `dispersion` itself.
    deviance, log_likelihood : float
        Of the training rows.
    """

    variances: Floats
    edf: Floats
    dispersion: float
    sd: Floats
    samples: Floats | None
    covariances: tuple[TermCovariance | None, ...] = ()
    working: float = np.nan
    deviance: float = np.nan
    log_likelihood: float = np.nan
