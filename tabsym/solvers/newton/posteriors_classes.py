"""Posterior covariances of one term for multiclass models, jointly with the unpenalized coefficients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.certainty import MAX_FACTOR, TermCovariance, covariance_of, root_of, without_rounding
from tabsym.solvers.newton.information import MAX_COEFS, inverse, penalty_of
from tabsym.solvers.newton.kernels_classes import (
    MIN_PROBABILITY,
    add_ridge_posteriors,
    collect_matrices,
    matrices_of_rows,
    sum_matrices,
)
from tabsym.solvers.newton.kernels_walk import spread_walk_of_classes
from tabsym.solvers.newton.posteriors import TermPosteriors
from tabsym.solvers.newton.rows import MulticlassRows
from tabsym.solvers.newton.steps import inverse_of
from tabsym.solvers.newton.terms import NEXT_TO_NOTHING, Prior, SolverTerm

Floats = NDArray[np.float64]

MAX_NUMBERS = 4_000_000
"""Up to this size the rows' Hessian matrices are cached between terms (32 MB), which makes them five times as fast;
above, each term recomputes them. Matrices of coefficients are processed in chunks of an eighth of it."""


@dataclass(frozen=True)
class ClassHessians:
    """Hessian matrices of coefficients, and cross-derivatives with the unpenalized terms, as lower triangles (q, T).

    `shared`: by unpenalized term; None where that is the intercept alone, for which they are the same.
    """

    own: Floats
    shared: list[Floats] | None
    n_classes: int

    def chunks(self) -> Iterator[tuple[slice, Floats, Floats]]:
        """Chunks of coefficients: their indices, their matrices (q, K, K) and cross-derivatives (q, K, f K).

        With many categories and classes the matrices of all together would be far larger than the table.
        """
        step = max(1, MAX_NUMBERS // (8 * self.n_classes**2))
        for first in range(0, len(self.own), step):
            some = slice(first, first + step)
            yield some, *self._matrices(some)

    def all(self) -> tuple[Floats, Floats]:
        """The same for all coefficients."""
        return self._matrices(slice(None))

    def stacked(self) -> Floats:
        """The cross-derivatives with each unpenalized term (f, q, T)."""
        if self.shared is None:
            return self.own[None]
        return np.stack(self.shared) if self.shared else np.empty((0, *self.own.shape))

    def _matrices(self, some: slice) -> tuple[Floats, Floats]:
        square = triangle(self.n_classes)
        own = np.ascontiguousarray(self.own[some][:, square])  # kernels need contiguous arrays
        if self.shared is None:
            return own, own
        shared = [one[some][:, square] for one in self.shared]
        return own, np.concatenate([np.zeros((len(own), self.n_classes, 0)), *shared], axis=2)


@dataclass(frozen=True)
class OfWalk:
    """The posterior of a walk, jointly with the unpenalized terms.

    Attributes
    ----------
    own : (q, K, K)
        Covariances of the coefficients given the unpenalized terms.
    followed : (q, K, f K)
        Regression of the coefficients on those.
    flat : (f K, f K)
        Covariance of those.
    penalized : float
        The trace that enters the penalty.
    """

    own: Floats
    followed: Floats
    flat: Floats
    penalized: float

    def variances(self) -> Floats:
        """Variances of the coefficients (q, K) less their mean over classes, which is not identified."""
        k = self.own.shape[1]
        beside = np.eye(k) - 1.0 / k
        followed = self.followed - self.followed.mean(axis=1, keepdims=True)
        return _variances(beside @ self.own @ beside, followed, self.flat)


@dataclass(frozen=True)
class OfRidge:
    """The posterior of coefficients with a ridge penalty, jointly with the unpenalized terms.

    Attributes
    ----------
    coefs : Entries
    precision : float
    left : (f K, f K)
        The information on the unpenalized terms that remains given the coefficients.
    flat : (f K, f K)
        Its inverse.
    penalized : float
        The trace that enters the penalty.
    """

    coefs: ClassHessians
    precision: float
    left: Floats
    flat: Floats
    penalized: float

    def variances(self) -> Floats:
        """Variances of the coefficients (q, K) less their mean over classes, which is not identified."""
        return np.concatenate([_variances(own, followed, self.flat) for own, followed in self._centred()])

    def _centred(self) -> Iterator[tuple[Floats, Floats]]:
        """Chunks of covariances (q, K, K) given the unpenalized terms, and regressions on these, less the mean."""
        beside = np.eye(self.coefs.n_classes) - 1.0 / self.coefs.n_classes
        for _, own, shared in self.coefs.chunks():
            inverse = beside @ _inverse(own, self.precision)
            yield inverse @ beside, inverse @ shared

    def covariance(self, *, joint: bool) -> TermCovariance:
        """Their covariance, joint with that of the unpenalized terms or given these."""
        root, own, factors = root_of(self.flat), [], []
        for matrices, followed in self._centred():
            own.append(np.einsum("qkk->qk", matrices))
            if joint:
                factors.append((followed @ root).transpose(1, 0, 2))
        alone = np.concatenate(own)
        factor = np.concatenate(factors, axis=1) if joint else np.zeros((alone.shape[1], len(alone), 0))
        return TermCovariance(alone, factor)


@cache
def triangle(k: int) -> NDArray[np.int64]:
    """Indices of a symmetric matrix (k, k) in its lower triangle, row by row."""
    row, column = np.indices((k, k))
    low, high = np.minimum(row, column), np.maximum(row, column)
    return np.asarray(high * (high + 1) // 2 + low)


def _inner(left: Floats, right: Floats) -> Floats:
    """The sum over coefficients of left' right, (q, K, f) and (q, K, g): (f, g)."""
    rows = left.shape[0] * left.shape[1]
    return np.asarray(left.reshape(rows, left.shape[2]).T @ right.reshape(rows, right.shape[2]))


def _variances(own: Floats, followed: Floats, flat: Floats) -> Floats:
    with_flat = ((followed @ flat) * followed).sum(axis=2)
    return np.einsum("qkk->qk", own) + np.asarray(with_flat)


def ridge_of_classes(coefs: ClassHessians, precision: float, whole: Floats) -> OfRidge:
    """For coefficients with a ridge penalty; whole (f K, f K) is the information on the unpenalized terms."""
    taken, follow, alone = np.zeros_like(whole), np.zeros_like(whole), 0.0
    if precision > 0.0:
        k = coefs.n_classes
        factor, solved = np.empty((k, k)), np.empty((k, len(whole) + k))
        alone = add_ridge_posteriors(coefs.own, coefs.stacked(), precision, factor, solved, taken, follow)
    else:
        for _, own, crossed in coefs.chunks():
            inverse = _beside_level(own)
            followed = inverse @ crossed
            taken += _inner(crossed, followed)
            follow += _inner(followed, followed)
            alone += float(np.einsum("qkk->", inverse))
    left = whole - taken
    flat = inverse_of(left, np.diag(whole))
    return OfRidge(coefs, precision, left, flat, alone + float((follow * flat).sum()))


def _inverse(own: Floats, precision: float) -> Floats:
    held = own + precision * np.eye(own.shape[1])
    return np.asarray(np.linalg.inv(held), dtype=np.float64) if precision > 0 else _beside_level(held)


def _beside_level(own: Floats) -> Floats:
    """Inverses of Hessian matrices (q, K, K) without the direction common to all classes, which is not identified.

    The variance for a class that a category never has is bounded by the smallest Hessian of a row.
    """
    k = own.shape[1]
    beside = np.eye(k) - 1.0 / k
    return np.asarray(beside @ np.linalg.inv(own + MIN_PROBABILITY * np.eye(k)) @ beside)


def walk_of_classes(term: SolverTerm, own: Floats, shared: Floats, precision: float, whole: Floats) -> OfWalk:
    """For a walk and the coefficients apart from it, whose common mean is unpenalized; own (q, K, K)."""
    q, k = own.shape[:2]
    ridge = 1e-6 * float(np.einsum("qkk->", own)) / (q * k)  # makes unpenalized means invertible
    inverse, followed = np.empty_like(own), np.empty_like(shared)
    walk, beside, eye = slice(term.n_unordered, None), term.unordered_ratio * precision, np.eye(k)
    alone = np.linalg.inv(own[: term.n_unordered] + (beside + ridge) * eye)  # given the mean of the walk
    recentered = shared[walk] + beside * (alone @ shared[: term.n_unordered]).sum(axis=0) / (q - term.n_unordered)
    # jointly with the mean of the walk, on which the coefficients apart are centred, as in `kernels_walk`
    solved = np.concatenate([recentered, np.broadcast_to(eye / (q - term.n_unordered), own[walk].shape)], axis=2)
    left, loose = np.empty((2, *own[walk].shape))
    jumps = spread_walk_of_classes(
        own[walk], precision, ridge + precision * NEXT_TO_NOTHING, left, loose, np.empty((k, k)),
        np.empty(solved.shape[1:]), inverse[walk], solved,
    )  # fmt: skip
    level, of_mean = solved[:, :, -k:], solved[:, :, -k:].mean(axis=0)
    grad = (beside * eye - beside * beside * alone).sum(axis=0)
    taken = np.linalg.solve(eye + grad @ of_mean, grad)
    mean = solved[:, :, :-k].mean(axis=0)
    followed[walk] = solved[:, :, :-k] - level @ (taken @ mean)
    followed[: term.n_unordered] = alone @ (shared[: term.n_unordered] + beside * (mean - of_mean @ taken @ mean))
    of_mean = of_mean - of_mean @ taken @ of_mean
    inverse[walk] -= level @ taken @ level.transpose(0, 2, 1)
    inverse[: term.n_unordered] = alone + beside * beside * (alone @ of_mean @ alone)
    away, step = beside * alone - eye, np.diff(level, axis=0)
    apart = alone + away @ of_mean @ away.transpose(0, 2, 1)
    flat = inverse_of(whole - _inner(shared, followed), np.diag(whole), tol=1e-3)  # above rounding
    gradient = term.penalty_gradient(followed.reshape(q, -1), 1.0).reshape(followed.shape)
    penalized = float(jumps) - float(np.einsum("qik,kl,qil->", step, taken, step))
    penalized += term.unordered_ratio * float(np.einsum("qkk->", apart))
    return OfWalk(inverse, followed, flat, penalized + float((_inner(gradient, followed) * flat).sum()))


def _dense_covariance(own: Floats, shared: Floats, whole: Floats, penalty: Floats) -> TermCovariance:
    """Of coefficients that a penalty (q, q) ties together, jointly with the unpenalized terms.

    own (q, K, K), shared (q, K, f K) and whole (f K, f K) are the information.
    """
    q, k = own.shape[:2]
    n_all = q + len(whole) // k
    information = np.zeros((n_all, k, n_all, k))
    for index in range(q):
        information[index, :, index] = own[index]
    for one in range(k):
        information[:q, one, :q, one] += penalty
    information[:q, :, q:] = shared.reshape(q, k, -1, k)
    information[q:, :, :q] = shared.reshape(q, k, -1, k).transpose(2, 3, 0, 1)
    information[q:, :, q:] = whole.reshape(n_all - q, k, n_all - q, k)
    level = float(np.einsum("qkk->", own)) / (q * k)
    for one in range(k):  # neither the mean nor what is common to all classes is identified: both are held at 0
        information[:q, one, :q, one] += level / q
        for index in range(n_all):
            information[index, one, index] += level / k
    found, untold, unknown = inverse(information.reshape(n_all * k, n_all * k))
    beside = np.kron(np.eye(n_all), np.eye(k) - 1.0 / k)
    blocks = (beside @ found @ beside).reshape(n_all, k, n_all, k)
    matrices = np.array([blocks[:q, one, :q, one] for one in range(k)])
    unknown = without_rounding(beside @ unknown).reshape(n_all, k, -1)[:q].transpose(1, 0, 2)
    return covariance_of(matrices, np.asarray(untold.reshape(n_all, k)[:q].any(axis=1)), unknown)


COMMON = 1e-9
"""Relative to the information on the unpenalized coefficients: along the direction common to all classes it is 0 up to
rounding."""

SWEEPS, SWEEPS_OF_MANY = 2, 4
"""Iterations between two updates of the variances; more with many rows and classes, where an update is expensive."""


class MulticlassPosteriors(TermPosteriors):
    """For the multinomial loss."""

    def __init__(self, solver: BlockDescent) -> None:
        super().__init__(solver)
        self._of_rows = np.empty((0, 0))
        self._information: Floats | None = None
        self._known_at = -1

    def of_flat(self) -> Floats:
        """For coefficients less their mean over classes, which is not identified."""
        solver, f, k = self.solver, len(self.flat), self.solver.n_outputs
        whole, beside = self._unpenalized_information(), np.kron(np.eye(f), np.eye(k) - 1.0 / k)

        def given(left: Floats) -> Floats:
            inverse = beside @ inverse_of(left, np.diag(whole), tol=COMMON) @ beside
            return np.einsum("ikjk->ijk", inverse.reshape(f, k, f, k))

        found: list[Floats] = [given(whole)]
        free: list[Floats] = []
        for index, term in enumerate(solver.terms):
            if term.prior is Prior.RIDGE and not solver.dropped[index]:
                left = given(ridge_of_classes(self._coefs(term), solver.precision[index], whole).left)
                (found if solver.precision[index] > 0 else free).append(left)
        widest = max(found, key=lambda one: float(np.einsum("iik->", one)))
        for at, index in enumerate(self.flat):  # the intercept is confounded with terms without a penalty
            for one in free if len(solver.terms[index].x) else []:
                if one[at, at].sum() > widest[at, at].sum():
                    widest[at], widest[:, at] = one[at], one[:, at]
        return widest

    def evaluate(self, indices: Sequence[int]) -> Floats:
        """The same without the variances, of which only the trace that enters the penalty is needed."""
        return np.array([self._evaluate(index) for index in indices]).reshape(-1, 2)

    def _evaluate(self, index: int) -> tuple[float, float]:
        penalized = self._posterior(index).penalized
        return self._effective(index, penalized), self.solver.terms[index].length(self.solver.theta[index])

    def _variances(self, index: int) -> tuple[Floats, float]:
        """Variances (q, K), and the trace that enters the penalty; classes are coupled."""
        found = self._posterior(index)
        return found.variances(), found.penalized

    def covariance(self, index: int) -> TermCovariance | None:
        """Posterior covariance of a term's coefficients, jointly with the unpenalized ones and given the others.

        None where it is too large. Beyond `MAX_FACTOR` numbers coefficients with a ridge penalty are independent: given
        the unpenalized ones, too.
        """
        term, k = self.solver.terms[index], self.solver.n_outputs
        if term.prior is Prior.RIDGE:
            found = self._posterior(index)
            assert isinstance(found, OfRidge)
            return found.covariance(joint=term.size * k * len(found.flat) <= MAX_FACTOR)
        if term.prior is Prior.FLAT or term.size * k > MAX_COEFS:
            return None
        own, shared = self._coefs(term).all()
        return _dense_covariance(
            own, shared, self._unpenalized_information(), penalty_of(term, self.solver.precision[index])
        )

    def _posterior(self, index: int) -> OfWalk | OfRidge:
        term, precision = self.solver.terms[index], self.solver.precision[index]
        coefs, whole = self._coefs(term), self._unpenalized_information()
        if term.prior is Prior.WALK:
            return walk_of_classes(term, *coefs.all(), precision, whole)
        return ridge_of_classes(coefs, precision, whole)

    def _coefs(self, term: SolverTerm) -> ClassHessians:
        own = self._triangles(term.codes, term.x * term.x, term.size)
        if self._is_intercept_alone and not len(term.x) and (term.codes >= 0).all():
            return ClassHessians(own, None, self.solver.n_outputs)
        return ClassHessians(own, self.shared_triangles(term), self.solver.n_outputs)

    def shared_triangles(self, term: SolverTerm) -> list[Floats]:
        """Cross-derivatives of a term's coefficients and each unpenalized term, as lower triangles (q, T)."""
        return [self._triangles(term.codes, term.x * one if len(term.x) else one, term.size) for one in self._columns.T]

    def _unpenalized_information(self) -> Floats:
        """X'HX (f K, f K) of the unpenalized terms, f by f matrices of classes, cached until the predictors change."""
        self._forget()
        if self._information is None:
            k, columns = self.solver.n_outputs, self._columns.T
            everyone = np.zeros(len(self.solver.y), dtype=np.int32)
            found = np.zeros((len(columns), k, len(columns), k))
            for i, one in enumerate(columns):
                for j, other in enumerate(columns[: i + 1]):
                    found[i, :, j] = found[j, :, i] = self._triangles(everyone, one * other, 1)[0][triangle(k)]
            self._information = found.reshape(len(columns) * k, len(columns) * k)
        return self._information

    @property
    def n_sweeps(self) -> int:
        return SWEEPS if self.keeps_matrices else SWEEPS_OF_MANY

    @property
    def keeps_matrices(self) -> bool:
        """Whether the rows' Hessian matrices are cached for all terms."""
        k = self.solver.n_outputs
        return len(self.solver.y) * k * (k + 1) <= 2 * MAX_NUMBERS

    def _triangles(self, codes: NDArray[np.int32], factor: Floats, size: int) -> Floats:
        """Lower triangles (q, K (K + 1) / 2) of the coefficients' Hessian matrices.

        Summed over rows times their weight and `factor` (n,), empty for 1.
        """
        k, rows, weight = self.solver.n_outputs, self.solver.rows, self.solver.weight
        assert isinstance(rows, MulticlassRows)
        share = weight * factor if len(weight) and len(factor) else factor if len(factor) else weight
        sums = np.zeros((1 + size, k * (k + 1) // 2))
        if self.keeps_matrices:
            sum_matrices(codes, share, self._matrices_of_rows(rows), sums)
        else:
            collect_matrices(codes, share, rows.probabilities, sums)
        return sums[1:]

    def _matrices_of_rows(self, rows: MulticlassRows) -> Floats:
        """Lower triangles of the rows' Hessian matrices (n, K (K + 1) / 2), cached until the predictors change."""
        self._forget()
        if not len(self._of_rows):
            k = self.solver.n_outputs
            self._of_rows = np.empty((len(self.solver.y), k * (k + 1) // 2))
            matrices_of_rows(rows.probabilities, self._of_rows)
        return self._of_rows

    def _forget(self) -> None:
        """Clear what was computed for earlier linear predictors."""
        if self._known_at != self.solver.n_moves:
            self._of_rows, self._information, self._known_at = np.empty((0, 0)), None, self.solver.n_moves
