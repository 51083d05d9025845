"""The uncertainty of a Newton fit: variance components, posterior standard deviations, posterior samples."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


ORTHOGONAL = 1e-5
"""Relative to the directions' own size: components below this are rounding."""


@dataclass(frozen=True, eq=False)
class TermCovariance:
    """Posterior covariance of a term's coefficients, for each of K linear predictors: diagonal plus low rank.

    Attributes
    ----------
    own : (q, K)
        The diagonal; infinite where neither data nor prior are informative.
    factor : (K, q, r)
        The other summand is this times its transpose.
    shares : (q,)
        Weights of the mean that coefficients are measured from; empty where that is in `factor`.
    unknown : (K, q, r) or None
        Of a model whose terms determine each other, a basis of the directions in which coefficients can change without
        a change of the fit: what is orthogonal to them has a variance (an estimable function), all else has none.
        Of the coefficients as they are, not about their mean.
    """

    own: Floats
    factor: Floats
    shares: Floats = field(default_factory=lambda: np.empty(0))
    unknown: Floats | None = None

    def variances(self) -> Floats:
        """Variances of the coefficients (q, K)."""
        found = self.own + np.einsum("kqr,kqr->qk", self.factor, self.factor)
        if self.unknown is not None:
            found[self.unknown.any(axis=2).T] = np.inf
        if not len(self.shares):
            return np.asarray(found)
        posterior = np.where(np.isfinite(self.own), self.own, 0.0)
        return np.asarray(found - 2.0 * self.shares[:, None] * posterior + np.square(self.shares) @ posterior)

    def of_difference(self, a: int, b: int) -> Floats:
        """Variance of the difference of two coefficients (K,)."""
        if a == b:
            return np.zeros(self.own.shape[1])
        between = self.factor[:, a] - self.factor[:, b]
        found = np.asarray(self.own[a] + self.own[b] + np.square(between).sum(axis=1))
        if self.unknown is not None:
            ends = self.unknown[:, [a, b]]
            found[np.abs(ends[:, 0] - ends[:, 1]).max(axis=1) > ORTHOGONAL * np.abs(ends).max(axis=(1, 2))] = np.inf
        return found

    def shown(self, size: float, mean: Floats | None) -> TermCovariance:
        """Covariance of the coefficients times a number, less their mean with weights `mean` (q,) if given."""
        factor, shares = size * self.factor, self.shares
        if mean is not None:
            factor, shares = factor - (mean @ factor)[:, None], mean if self.own.any() else shares
        return TermCovariance(self.own * size**2, factor, shares, self.unknown)


def without_rounding(unknown: Floats) -> Floats:
    """Directions whose components that are only rounding are 0."""
    return np.where(np.abs(unknown) > ORTHOGONAL * np.abs(unknown).max(initial=0.0), unknown, 0.0)


@dataclass(frozen=True, eq=False)
class Certainty:
    """The uncertainty of a fit, in the user's units.

    Attributes
    ----------
    variances : (blocks,)
        Variance component of each term, of differences of neighbours for an ordered one: infinite where it is
        unpenalized, 0 where the term was dropped.
    edf : (blocks,)
        Effective degrees of freedom of each term.
    dispersion : float
        Variance of a row's gradient over its Hessian; for the squared loss the residual variance.
    sd : (coefficients, K)
        Posterior standard deviations of the coefficients as they are shown: about the mean of their term, where that is
        in the intercept. NaN where the term is dropped: its coefficients are 0 for lack of information.
    samples : (coefficients, M) or None
        Posterior samples minus the coefficients.
    covariances : tuple of TermCovariance or None
        Of each term, where they are known.
    joint : (K, p, p)
        Posterior covariance of all coefficients, with the means of all terms in the intercept, of random effects too:
        linear predictors have the variance of their sums. Empty where the model is too large for it.
    joint_index : (coefficients,)
        The index of each coefficient in `joint`; -1 where it has none.
    unknown : (K, coefficients, r) or None
        With a `joint` that is singular, a basis of the directions in which coefficients can change without a change of
        the fit.
    total_sd : (coefficients, K)
        Standard deviations of the scalars that means are moved to, with the means of all terms; NaN elsewhere. Only
        where there is no `joint`.
    working : float
        The dispersion that variances were estimated with; NaN for `dispersion` itself.
    deviance, log_likelihood : float
        Of the training rows.
    separated : tuple of str
        Names of the unpenalized terms with infinite estimates.
    """

    variances: Floats
    edf: Floats
    dispersion: float
    sd: Floats
    samples: Floats | None
    covariances: tuple[TermCovariance | None, ...] = ()
    joint: Floats = field(default_factory=lambda: np.empty((0, 0, 0)))
    joint_index: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    total_sd: Floats = field(default_factory=lambda: np.empty((0, 0)))
    unknown: Floats | None = None
    working: float = np.nan
    deviance: float = np.nan
    log_likelihood: float = np.nan
    separated: tuple[str, ...] = ()
