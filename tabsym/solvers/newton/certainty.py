"""The uncertainty of a Newton fit: variance components, posterior covariances, standard deviations and samples.

The covariances are of all terms jointly where they are few enough: the inverse of the penalized Fisher information at
the optimum, given the variance components (Wood 2017, "Generalized Additive Models", section 6.10; without penalties,
the covariance of a GLM). Up to `MAX_COEFS` coefficients, or `MAX_BESIDE` beside the largest term, it is exact. Beyond,
it is that of a term jointly with the intercept and the smallest terms (`FEW_BESIDE` coefficients), given the others;
that of these small terms is joint with the largest term. They are computed in the scale of training, where the
dispersion is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.information import (
    MAX_COEFS,
    are_few_beside_largest,
    information_of,
    inverse,
    inverse_or,
    largest_ridge,
    root_of_inverse,
)
from tabsym.solvers.newton.kernels_joint import multiply, subtract_square
from tabsym.solvers.newton.terms import Prior, SolverTerm

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
        known = np.where(np.isfinite(self.own), self.own, 0.0)
        return np.asarray(found - 2.0 * self.shares[:, None] * known + np.square(self.shares) @ known)

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
        Effective degrees of freedom of each term, given the others.
    dispersion : float
        Variance of a row's gradient over its Hessian; for the squared loss the residual variance.
    sd : (coefficients, K)
        Posterior standard deviations of the coefficients as they are shown: about the mean of their term, where that is
        in the intercept. NaN where the term is dropped: it has no effect for lack of information.
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
    joint_edf : float
        Effective degrees of freedom of all terms together; NaN for the sum of `edf`.
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
    joint_edf: float = np.nan

    def times(self, by: float) -> Certainty:
        """The uncertainty with variances of coefficients times a number."""
        root = float(np.sqrt(by))
        return replace(
            self,
            sd=root * self.sd,
            samples=None if self.samples is None else root * self.samples,
            covariances=tuple(None if one is None else one.shown(root, None) for one in self.covariances),
            joint=by * self.joint,
            total_sd=root * self.total_sd,
            working=(self.dispersion if np.isnan(self.working) else self.working) / by,  # with which priors are as much
        )

    @property
    def total_edf(self) -> float:
        """The effective degrees of freedom of all terms, together where they are known so."""
        return float(self.edf.sum()) if np.isnan(self.joint_edf) else self.joint_edf


FEW_BESIDE = 100
"""Coefficients of the small terms that a term of a still larger model is joint with."""

MAX_FACTOR, MAX_FACTOR_TOGETHER = 100_000, 1_000_000
"""The most numbers that are stored of the covariance of one term; of the largest, if all others are joint with it."""

MAX_VISITS = 200_000_000
"""Rows times pairs of terms and of classes to sum over, above which multiclass covariances are not computed."""

ALMOST_ZERO = 1e-14, 1e-12, 1e-10
"""Tried in turn: this fraction of the largest variance is added to the diagonal for the Cholesky factor of a singular
matrix."""


@dataclass(frozen=True, eq=False)
class JointCovariance:
    """Covariances of all coefficients, and what the rows do not determine.

    Attributes
    ----------
    matrix : (K, p, p)
    untold : (p,)
        The coefficients without any information.
    unknown : (K, p, r)
        A basis of the directions in which coefficients can change together without a change of the fit.
    edf : float
        Effective degrees of freedom of all coefficients together; NaN where they are not counted.
    """

    matrix: Floats
    untold: NDArray[np.bool_]
    unknown: Floats
    edf: float = np.nan


def whole_covariance(solver: BlockDescent, indices: Sequence[int], shares: dict[int, Floats]) -> JointCovariance | None:
    """Joint covariance of the terms at `indices`, in their order; None where they are too many."""
    information = information_of(solver, shares)
    p = sum(solver.terms[index].size for index in indices)
    if p * information.k > MAX_COEFS or (information.k > 1 and information.visits(indices) > MAX_VISITS):
        return None
    k = information.k
    of_rows = information.sum_pairs(indices)
    found, untold, unknown = inverse(information.held(of_rows.copy(), indices))
    edf = float(np.einsum("ij,ij->", found, of_rows.reshape(found.shape)))
    if k > 1:  # less the mean over classes, which is not identified
        beside = np.kron(np.eye(k) - 1.0 / k, np.eye(p))
        found, unknown = beside @ found @ beside, without_rounding(beside @ unknown)
    blocks, untold = found.reshape(k, p, k, p), np.any(untold.reshape(k, p), axis=0)
    return JointCovariance(np.array([blocks[one, :, one] for one in range(k)]), untold, unknown.reshape(k, p, -1), edf)


class CovariancesByTerm:
    """Covariances of larger models, term by term, for losses with one linear predictor.

    Parameters
    ----------
    solver : BlockDescent
    indices : sequence of int
        The terms that are not dropped.
    shares : dict of index -> (q,)
    """

    def __init__(self, solver: BlockDescent, indices: Sequence[int], shares: dict[int, Floats]) -> None:
        self._information = information_of(solver, shares)
        self._terms, self._shares = solver.terms, shares
        ordered = sorted(
            indices, key=lambda index: (solver.terms[index].prior is not Prior.FLAT, solver.terms[index].size)
        )
        self._together = are_few_beside_largest(solver.terms, indices)
        largest = largest_ridge(solver.terms, indices)
        if self._together:
            self.beside = [index for index in ordered if index != largest]
        else:
            self.beside = _first_of(ordered, solver.terms, FEW_BESIDE)
        self.others = [index for index in ordered if index not in self.beside]
        self._matrix = self._information.of(self.beside)
        self._starts = np.cumsum([0, *(solver.terms[index].size for index in self.beside)])
        self._largest = next(
            (index for index in reversed(self.others) if self._terms[index].prior is Prior.RIDGE), None
        )

    @property
    def is_exact(self) -> bool:
        """Whether no term is conditioned on: there is one other term, and its information is diagonal."""
        if len(self.others) != 1 or self._largest is None:
            return False
        return self._together or len(self._matrix) * self._terms[self._largest].size <= MAX_FACTOR

    def __call__(
        self, sizes: Floats, means: dict[int, Floats]
    ) -> tuple[dict[int, TermCovariance], Callable[[dict[int, Floats]], float]]:
        """Covariances by index, and a function for the variance of a linear combination, with weights (q,) by index.

        The covariances are of the coefficients times `sizes` (by index), less their mean where `means` has weights (q,)
        for it; the variances of the coefficients as they are.
        """
        largest_first = reversed(self.others)  # as terms that others are nested in come before these
        found = {index: self._of_other(index, sizes[index], means.get(index)) for index in largest_first}
        left, shared, alone = self._matrix.copy(), None, np.empty(0)
        if self._largest is not None:
            alone, shared = self._information.eliminate(self._largest, self.beside, left)
        matrix, untold, unknown = inverse(left)
        for number, index in enumerate(self.beside):
            at = slice(self._starts[number], self._starts[number + 1])
            covariance = covariance_of(matrix[at, at][None], untold[at], unknown[None, at])
            found[index] = covariance.shown(sizes[index], means.get(index))

        def variance(by: dict[int, Floats]) -> float:
            c = np.zeros(len(matrix))
            for number, index in enumerate(self.beside):
                if index in by:
                    c[self._starts[number] : self._starts[number + 1]] = by[index]
            more = 0.0
            if self._largest in by and shared is not None:
                c -= shared(alone * by[self._largest])
                more = float(np.square(by[self._largest]) @ alone)
            return float(c @ matrix @ c) + more

        return found, variance

    def _of_other(self, index: int, size: float, mean: Floats | None) -> TermCovariance:
        """Covariance of a term that is not among the small ones, given the others that are not; as `__call__`."""
        term, width = self._terms[index], len(self._matrix)
        while width > 1 and width * term.size > MAX_FACTOR and not self._together:
            width = int(self._starts[self._starts < width][-1]) or 1
        own, shared = self._shared(index, width)
        left = self._matrix[:width, :width].copy()
        if term.prior is Prior.RIDGE:
            alone = inverse_or(0.0, own)
            subtract_square(shared, alone, left)
            root = size * root_of_inverse(left)
            start = np.zeros(root.shape[1]) if mean is None else -((mean * alone) @ shared) @ root
            factor = np.empty((term.size, root.shape[1]))
            multiply(shared, alone, root, start, factor)
            own = size**2 * inverse_or(np.inf, own)
            if factor.size > MAX_FACTOR_TOGETHER:  # the variances stay exact, differences within a group are too wide
                factor, rest = _principal(factor, max(MAX_FACTOR_TOGETHER // len(factor), 1))
                own = own + rest
            return TermCovariance(own[:, None], factor[None], np.empty(0) if mean is None else mean)
        matrix, untold, unknown = inverse(self._information.of([index]))
        follows = matrix @ shared
        factor = follows @ root_of_inverse(left - shared.T @ follows)
        return covariance_of((matrix + factor @ factor.T)[None], untold, unknown[None]).shown(size, mean)

    def _shared(self, index: int, width: int) -> tuple[Floats, Floats]:
        """The diagonal (q,) of a term's information, and what it shares with the first small ones (q, width)."""
        beside = [one for one, start in zip(self.beside, self._starts, strict=False) if start < width]
        return self._information.beside(index, beside)


def _principal(factor: Floats, width: int) -> tuple[Floats, Floats]:
    """The largest principal components (q, width) of a factor (q, r) of a covariance, and the variances (q,) beside."""
    _, axes = np.linalg.eigh(factor.T @ factor)  # in ascending order
    turned = factor @ axes[:, ::-1]
    return np.ascontiguousarray(turned[:, :width]), np.square(turned[:, width:]).sum(axis=1)


def covariance_of(matrices: Floats, untold: NDArray[np.bool_], unknown: Floats) -> TermCovariance:
    """From matrices (K, q, q), which coefficients (q,) have no information, and the null space (K, q, r)."""
    own = np.zeros(matrices.shape[1:2] + matrices.shape[:1])
    own[untold] = np.inf
    factor = np.array([root_of(one) for one in matrices])
    return TermCovariance(own, factor, unknown=unknown if unknown.any() else None)


def root_of(matrix: Floats) -> Floats:
    """R with RR' = a matrix that is positive semidefinite up to rounding."""
    shift = np.diag(matrix).max(initial=0.0)
    for share in ALMOST_ZERO:
        lower, info = dpotrf(matrix + share * shift * np.eye(len(matrix)), lower=1)
        if info == 0:
            return np.asarray(np.tril(lower))
    lengths, axes = np.linalg.eigh(matrix)
    return np.asarray(axes * np.sqrt(np.maximum(lengths, 0.0)))


def _first_of(ordered: Sequence[int], terms: Sequence[SolverTerm], most: int) -> list[int]:
    found: list[int] = []
    total = 0
    for index in ordered:
        total += terms[index].size
        if found and total > most and terms[index].prior is not Prior.FLAT:
            break
        found.append(index)
    return found
