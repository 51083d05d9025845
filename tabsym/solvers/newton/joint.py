"""Posterior covariances of the coefficients, of all terms jointly where they are few enough.

The inverse of the penalized Fisher information at the optimum, given the variance components (Wood 2017, "Generalized
Additive Models", section 6.10; without penalties, the covariance of a GLM). Up to `MAX_COEFS` coefficients it is exact.
Beyond, it is that of a term jointly with the intercept and the smallest terms (`MAX_BESIDE` coefficients), given the
others; that of these small terms is joint with the largest term.

In the scale of training, where the dispersion is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.certainty import TermCovariance, without_rounding
from tabsym.solvers.newton.information import MAX_COEFS, information_of, inverse, root_of_inverse
from tabsym.solvers.newton.kernels_joint import multiply, subtract_square
from tabsym.solvers.newton.terms import Prior, SolverTerm

Floats = NDArray[np.float64]

MAX_BESIDE = 100
"""Coefficients of the small terms that a term of a larger model is joint with."""

MAX_FACTOR = 100_000
"""The most numbers that are stored of the covariance of one term."""

MAX_VISITS = 200_000_000
"""Rows times pairs of terms and of classes to sum over, above which multiclass covariances are not computed."""

ALMOST_ZERO = 1e-14, 1e-12, 1e-10
"""Tried in turn: this fraction of the largest variance is added to the diagonal for the Cholesky factor of a singular
matrix."""


@dataclass(frozen=True, eq=False)
class Whole:
    """Covariances of all coefficients, and what the rows do not determine.

    Attributes
    ----------
    matrix : (K, p, p)
    untold : (p,)
        The coefficients without any information.
    unknown : (K, p, r)
        A basis of the directions in which coefficients can change together without a change of the fit.
    """

    matrix: Floats
    untold: NDArray[np.bool_]
    unknown: Floats


def whole_covariance(solver: BlockDescent, indices: Sequence[int], shares: dict[int, Floats]) -> Whole | None:
    """Joint covariance of the terms at `indices`, in their order; None where they are too many."""
    information = information_of(solver, shares)
    p = sum(solver.terms[index].size for index in indices)
    if p * information.k > MAX_COEFS or (information.k > 1 and information.visits(indices) > MAX_VISITS):
        return None
    k = information.k
    found, untold, unknown = inverse(information.of(indices))
    if k > 1:  # less the mean over classes, which is not identified
        beside = np.kron(np.eye(k) - 1.0 / k, np.eye(p))
        found, unknown = beside @ found @ beside, without_rounding(beside @ unknown)
    blocks, untold = found.reshape(k, p, k, p), np.any(untold.reshape(k, p), axis=0)
    return Whole(np.array([blocks[one, :, one] for one in range(k)]), untold, unknown.reshape(k, p, -1))


class Parts:
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
        self.beside = _first_of(ordered, solver.terms, MAX_BESIDE)
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
        return len(self._matrix) * self._terms[self._largest].size <= MAX_FACTOR

    def __call__(
        self, sizes: Floats, means: dict[int, Floats]
    ) -> tuple[dict[int, TermCovariance], Callable[[dict[int, Floats]], float]]:
        """Covariances by index, and a function for the variance of a linear combination, with weights (q,) by index.

        The covariances are of the coefficients times `sizes` (by index), less their mean where `means` has weights (q,)
        for it; the variances of the coefficients as they are.
        """
        found = {index: self._of_other(index, sizes[index], means.get(index)) for index in self.others}
        left, shared, alone = self._matrix.copy(), None, None
        if self._largest is not None:
            own, shared = self._shared(self._largest, len(left))
            alone = _inverse_or(0.0, own)
            subtract_square(shared, alone, left)
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
            if self._largest in by and shared is not None and alone is not None:
                c -= (alone * by[self._largest]) @ shared
                more = float(np.square(by[self._largest]) @ alone)
            return float(c @ matrix @ c) + more

        return found, variance

    def _of_other(self, index: int, size: float, mean: Floats | None) -> TermCovariance:
        """Covariance of a term that is not among the small ones, given the others that are not; as `__call__`."""
        term, width = self._terms[index], len(self._matrix)
        while width > 1 and width * term.size > MAX_FACTOR:
            width = int(self._starts[self._starts < width][-1]) or 1
        own, shared = self._shared(index, width)
        left = self._matrix[:width, :width].copy()
        if term.prior is Prior.RIDGE:
            alone = _inverse_or(0.0, own)
            subtract_square(shared, alone, left)
            root = size * root_of_inverse(left)
            start = np.zeros(root.shape[1]) if mean is None else -((mean * alone) @ shared) @ root
            factor = np.empty((term.size, root.shape[1]))
            multiply(shared, alone, root, start, factor)
            own = size**2 * _inverse_or(np.inf, own)
            return TermCovariance(own[:, None], factor[None], np.empty(0) if mean is None else mean)
        matrix, untold, unknown = inverse(self._information.of([index]))
        follows = matrix @ shared
        factor = follows @ root_of_inverse(left - shared.T @ follows)
        return covariance_of((matrix + factor @ factor.T)[None], untold, unknown[None]).shown(size, mean)

    def _shared(self, index: int, width: int) -> tuple[Floats, Floats]:
        """The diagonal (q,) of a term's information, and what it shares with the first small ones (q, width)."""
        beside = [one for one, start in zip(self.beside, self._starts, strict=False) if start < width]
        return self._information.beside(index, beside)


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


def _inverse_or(otherwise: float, numbers: Floats) -> Floats:
    """1 over the positive numbers."""
    return np.divide(1.0, numbers, out=np.full_like(numbers, otherwise), where=numbers > 0.0)


def _first_of(ordered: Sequence[int], terms: Sequence[SolverTerm], most: int) -> list[int]:
    found: list[int] = []
    total = 0
    for index in ordered:
        total += terms[index].size
        if found and total > most and terms[index].prior is not Prior.FLAT:
            break
        found.append(index)
    return found
