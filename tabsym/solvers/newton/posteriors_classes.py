"""Posterior covariances of one term for multiclass models, jointly with the unpenalized coefficients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.information import MAX_COEFS, are_unidentified, inverse, penalty_of
from tabsym.solvers.newton.kernels_rows import (
    MIN_PROBABILITY,
    add_ridge_posteriors,
    collect_matrices,
    matrices_of_rows,
    sum_matrices,
)
from tabsym.solvers.newton.kernels_walk import walk_covariances_of_classes
from tabsym.solvers.newton.posteriors import TermPosteriors
from tabsym.solvers.newton.rows import MulticlassRows
from tabsym.solvers.newton.steps import inverse_of
from tabsym.solvers.newton.terms import NEXT_TO_NOTHING, Prior, SolverTerm
from tabsym.solvers.newton.uncertainty import MAX_FACTOR, TermCovariance, covariance_of, root_of, without_rounding

Floats = NDArray[np.float64]

MAX_NUMBERS = 4_000_000
"""Up to this size the rows' Hessian matrices are cached between terms (32 MB), which makes them five times as fast;
above, each term recomputes them. Matrices of coefficients are processed in chunks of an eighth of it."""


@dataclass(frozen=True)
class ClassHessians:
    """Hessian matrices of coefficients, and cross-derivatives with the unpenalized terms, as lower triangles (q, T).

    `shared`: by unpenalized term; None where that is the intercept alone, for which they are the same.
    """

    hessians: Floats
    shared: list[Floats] | None
    n_classes: int

    def chunks(self) -> Iterator[tuple[slice, Floats, Floats]]:
        """Chunks of coefficients: their indices, their matrices (q, K, K) and cross-derivatives (q, K, f K).

        With many categories and classes the matrices of all together would be far larger than the table.
        """
        step = max(1, MAX_NUMBERS // (8 * self.n_classes**2))
        for first in range(0, len(self.hessians), step):
            some = slice(first, first + step)
            yield some, *self._matrices(some)

    def all(self) -> tuple[Floats, Floats]:
        """The same for all coefficients."""
        return self._matrices(slice(None))

    def stacked(self) -> Floats:
        """The cross-derivatives with each unpenalized term (f, q, T)."""
        if self.shared is None:
            return self.hessians[None]
        return np.stack(self.shared) if self.shared else np.empty((0, *self.hessians.shape))

    def _matrices(self, some: slice) -> tuple[Floats, Floats]:
        square = triangle(self.n_classes)
        hessians = np.ascontiguousarray(self.hessians[some][:, square])  # kernels need contiguous arrays
        if self.shared is None:
            return hessians, hessians
        shared = [triangles[some][:, square] for triangles in self.shared]
        return hessians, np.concatenate([np.zeros((len(hessians), self.n_classes, 0)), *shared], axis=2)


@dataclass(frozen=True)
class OfWalk:
    """The posterior of a walk, jointly with the unpenalized terms.

    Attributes
    ----------
    covariances : (q, K, K)
        Covariances of the coefficients given the unpenalized terms.
    followed : (q, K, f K)
        Regression of the coefficients on those.
    unpenalized : (f K, f K)
        Covariance of those.
    penalized : float
        The trace that enters the penalty.
    """

    covariances: Floats
    followed: Floats
    unpenalized: Floats
    penalized: float

    def variances(self) -> Floats:
        """Variances of the coefficients (q, K) less their mean over classes, which is not identified."""
        k = self.covariances.shape[1]
        centring = np.eye(k) - 1.0 / k
        followed = self.followed - self.followed.mean(axis=1, keepdims=True)
        return _variances(centring @ self.covariances @ centring, followed, self.unpenalized)


@dataclass(frozen=True)
class OfRidge:
    """The posterior of coefficients with a ridge penalty, jointly with the unpenalized terms.

    Attributes
    ----------
    coefs : ClassHessians
    precision : float
    left : (f K, f K)
        The information on the unpenalized terms that remains given the coefficients.
    unpenalized : (f K, f K)
        Its inverse.
    penalized : float
        The trace that enters the penalty.
    """

    coefs: ClassHessians
    precision: float
    left: Floats
    unpenalized: Floats
    penalized: float

    def variances(self) -> Floats:
        """Variances of the coefficients (q, K) less their mean over classes, which is not identified."""
        return np.concatenate(
            [_variances(covariances, followed, self.unpenalized) for covariances, followed in self._centred()]
        )

    def _centred(self) -> Iterator[tuple[Floats, Floats]]:
        """Chunks of covariances (q, K, K) given the unpenalized terms, and regressions on these, less the mean."""
        centring = np.eye(self.coefs.n_classes) - 1.0 / self.coefs.n_classes
        for _, hessians, shared in self.coefs.chunks():
            inverse = centring @ _inverse(hessians, self.precision)
            yield inverse @ centring, inverse @ shared

    def covariance(self, *, joint: bool) -> TermCovariance:
        """Their covariance, joint with that of the unpenalized terms or given these."""
        root, variances, factors = root_of(self.unpenalized), [], []
        for matrices, followed in self._centred():
            variances.append(np.einsum("qkk->qk", matrices))
            if joint:
                factors.append((followed @ root).transpose(1, 0, 2))
        alone = np.concatenate(variances)
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


def _variances(covariances: Floats, followed: Floats, unpenalized: Floats) -> Floats:
    more = ((followed @ unpenalized) * followed).sum(axis=2)
    return np.einsum("qkk->qk", covariances) + np.asarray(more)


def ridge_of_classes(coefs: ClassHessians, precision: float, whole: Floats) -> OfRidge:
    """For coefficients with a ridge penalty; whole (f K, f K) is the information on the unpenalized terms."""
    taken, follow, alone = np.zeros_like(whole), np.zeros_like(whole), 0.0
    if precision > 0.0:
        k = coefs.n_classes
        factor, solved = np.empty((k, k)), np.empty((k, len(whole) + k))
        alone = add_ridge_posteriors(coefs.hessians, coefs.stacked(), precision, factor, solved, taken, follow)
    else:  # a trace enters no penalty
        for _, hessians, crossed in coefs.chunks():
            taken += _inner(crossed, _inverse_but_level(hessians) @ crossed)
    left = whole - taken
    unpenalized = inverse_of(left, np.diag(whole))
    return OfRidge(coefs, precision, left, unpenalized, alone + float((follow * unpenalized).sum()))


def _inverse(hessians: Floats, precision: float) -> Floats:
    penalized = hessians + precision * np.eye(hessians.shape[1])
    return np.asarray(np.linalg.inv(penalized), dtype=np.float64) if precision > 0 else _inverse_but_level(penalized)


def _inverse_but_level(hessians: Floats) -> Floats:
    """Inverses of Hessian matrices (q, K, K) without the direction common to all classes, which is not identified.

    The variance for a class that a category never has is bounded by the smallest Hessian of a row.
    """
    k = hessians.shape[1]
    centring = np.eye(k) - 1.0 / k
    return np.asarray(centring @ np.linalg.inv(hessians + MIN_PROBABILITY * np.eye(k)) @ centring)


def walk_of_classes(term: SolverTerm, hessians: Floats, shared: Floats, precision: float, whole: Floats) -> OfWalk:
    """For a walk and its unordered coefficients, whose common mean is unpenalized; hessians (q, K, K).

    tau: the precision of the unordered coefficients about the mean of the walk.
    """
    q, k = hessians.shape[:2]
    ridge = 1e-6 * float(np.einsum("qkk->", hessians)) / (q * k)  # makes unpenalized means invertible
    inverse, followed = np.empty_like(hessians), np.empty_like(shared)
    walk, tau, eye = slice(term.n_unordered, None), term.unordered_ratio * precision, np.eye(k)
    alone = np.linalg.inv(hessians[: term.n_unordered] + (tau + ridge) * eye)  # given the mean of the walk
    recentered = shared[walk] + tau * (alone @ shared[: term.n_unordered]).sum(axis=0) / (q - term.n_unordered)
    # jointly with the mean of the walk, on which the unordered coefficients are centred, as in `kernels_walk`
    solved = np.concatenate([recentered, np.broadcast_to(eye / (q - term.n_unordered), hessians[walk].shape)], axis=2)
    left, loose = np.empty((2, *hessians[walk].shape))
    jumps = walk_covariances_of_classes(
        hessians[walk], precision, ridge + precision * NEXT_TO_NOTHING, left, loose, np.empty((k, k)),
        np.empty(solved.shape[1:]), inverse[walk], solved,
    )  # fmt: skip
    level, of_mean = solved[:, :, -k:], solved[:, :, -k:].mean(axis=0)
    grad = (tau * eye - tau * tau * alone).sum(axis=0)
    taken = np.linalg.solve(eye + grad @ of_mean, grad)
    mean = solved[:, :, :-k].mean(axis=0)
    followed[walk] = solved[:, :, :-k] - level @ (taken @ mean)
    followed[: term.n_unordered] = alone @ (shared[: term.n_unordered] + tau * (mean - of_mean @ taken @ mean))
    of_mean = of_mean - of_mean @ taken @ of_mean
    inverse[walk] -= level @ taken @ level.transpose(0, 2, 1)
    inverse[: term.n_unordered] = alone + tau * tau * (alone @ of_mean @ alone)
    away, step = tau * alone - eye, np.diff(level, axis=0)
    unordered = alone + away @ of_mean @ away.transpose(0, 2, 1)
    unpenalized = inverse_of(whole - _inner(shared, followed), np.diag(whole), tol=1e-3)  # above rounding
    gradient = term.penalty_gradient(followed.reshape(q, -1), 1.0).reshape(followed.shape)
    penalized = float(jumps) - float(np.einsum("qik,kl,qil->", step, taken, step))
    penalized += term.unordered_ratio * float(np.einsum("qkk->", unordered))
    return OfWalk(inverse, followed, unpenalized, penalized + float((_inner(gradient, followed) * unpenalized).sum()))


def _dense_covariance(hessians: Floats, shared: Floats, whole: Floats, penalty: Floats) -> TermCovariance:
    """Of coefficients that a penalty (q, q) ties together, jointly with the unpenalized terms.

    hessians (q, K, K), shared (q, K, f K) and whole (f K, f K) are the information.
    """
    q, k = hessians.shape[:2]
    n_all = q + len(whole) // k
    information = np.zeros((n_all, k, n_all, k))
    for index in range(q):
        information[index, :, index] = hessians[index]
    for c in range(k):
        information[:q, c, :q, c] += penalty
    information[:q, :, q:] = shared.reshape(q, k, -1, k)
    information[q:, :, :q] = shared.reshape(q, k, -1, k).transpose(2, 3, 0, 1)
    information[q:, :, q:] = whole.reshape(n_all - q, k, n_all - q, k)
    level = float(np.einsum("qkk->", hessians)) / (q * k)
    for c in range(k):  # neither the mean nor what is common to all classes is identified: both are constrained to 0
        information[:q, c, :q, c] += level / q
        for index in range(n_all):
            information[index, c, index] += level / k
    matrix = information.reshape(n_all * k, n_all * k)
    covariance, uninformed, unknown = inverse(matrix)
    unidentified = are_unidentified(matrix, unknown).reshape(n_all, k)[:q].any(axis=1, keepdims=True)
    centring = np.kron(np.eye(n_all), np.eye(k) - 1.0 / k)
    blocks = (centring @ covariance @ centring).reshape(n_all, k, n_all, k)
    matrices = np.array([blocks[:q, c, :q, c] for c in range(k)])
    unknown = without_rounding(centring @ unknown).reshape(n_all, k, -1)[:q].transpose(1, 0, 2)
    without_rows = np.asarray(uninformed.reshape(n_all, k)[:q].any(axis=1))
    return covariance_of(matrices, without_rows, unknown, np.repeat(unidentified, k, axis=1))


COMMON = 1e-9
"""Relative to the information on the unpenalized coefficients: along the direction common to all classes it is 0 up to
rounding."""

ITERATIONS, ITERATIONS_OF_MANY = 2, 4
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
        whole, centring = self._unpenalized_information(), np.kron(np.eye(f), np.eye(k) - 1.0 / k)

        def given(left: Floats) -> Floats:
            inverse = centring @ inverse_of(left, np.diag(whole), tol=COMMON) @ centring
            return np.einsum("ikjk->ijk", inverse.reshape(f, k, f, k))

        penalized: list[Floats] = [given(whole)]
        free: list[Floats] = []
        for index, term in enumerate(solver.terms):
            if term.prior is Prior.RIDGE and not solver.dropped[index]:
                left = given(ridge_of_classes(self._coefs(term), solver.precision[index], whole).left)
                (penalized if solver.precision[index] > 0 else free).append(left)
        widest = max(penalized, key=lambda matrix: float(np.einsum("iik->", matrix)))
        for at, index in enumerate(self.flat):  # the intercept is confounded with terms without a penalty
            for matrix in free if len(solver.terms[index].x) else []:
                if matrix[at, at].sum() > widest[at, at].sum():
                    widest[at], widest[:, at] = matrix[at], matrix[:, at]
        return widest

    def evaluate(self, indices: Sequence[int]) -> Floats:
        """The same without the variances, of which only the trace that enters the penalty is needed."""
        solver, penalized = self.solver, [self._posterior(index).penalized for index in indices]
        both = [
            (self._effective(index, block), solver.terms[index].length(solver.theta[index]))
            for index, block in zip(indices, penalized, strict=True)
        ]
        return np.array(both).reshape(-1, 2)

    def _variances(self, index: int) -> tuple[Floats, float]:
        """Variances (q, K), and the trace that enters the penalty; classes are coupled."""
        posterior = self._posterior(index)
        return posterior.variances(), posterior.penalized

    def covariance(self, index: int) -> TermCovariance | None:
        """Posterior covariance of a term's coefficients, jointly with the unpenalized ones and given the others.

        None where it is too large. Beyond `MAX_FACTOR` numbers coefficients with a ridge penalty are independent: given
        the unpenalized ones, too.
        """
        term, k = self.solver.terms[index], self.solver.n_outputs
        if term.prior is Prior.RIDGE:
            posterior = self._posterior(index)
            assert isinstance(posterior, OfRidge)
            return posterior.covariance(joint=term.size * k * len(posterior.unpenalized) <= MAX_FACTOR)
        if term.prior is Prior.FLAT or term.size * k > MAX_COEFS:
            return None
        hessians, shared = self._coefs(term).all()
        return _dense_covariance(
            hessians, shared, self._unpenalized_information(), penalty_of(term, self.solver.precision[index])
        )

    def _posterior(self, index: int) -> OfWalk | OfRidge:
        term, precision = self.solver.terms[index], self.solver.precision[index]
        coefs, whole = self._coefs(term), self._unpenalized_information()
        if term.prior is Prior.WALK:
            return walk_of_classes(term, *coefs.all(), precision, whole)
        return ridge_of_classes(coefs, precision, whole)

    def _coefs(self, term: SolverTerm) -> ClassHessians:
        hessians = self._triangles(term.codes, term.x * term.x, term.size)
        if self._is_intercept_alone and not len(term.x) and (term.codes >= 0).all():
            return ClassHessians(hessians, None, self.solver.n_outputs)
        return ClassHessians(hessians, self.shared_triangles(term), self.solver.n_outputs)

    def shared_triangles(self, term: SolverTerm) -> list[Floats]:
        """Cross-derivatives of a term's coefficients and each unpenalized term, as lower triangles (q, T)."""
        return [
            self._triangles(term.codes, term.x * column if len(term.x) else column, term.size)
            for column in self._columns.T
        ]

    def _unpenalized_information(self) -> Floats:
        """X'HX (f K, f K) of the unpenalized terms, f by f matrices of classes, cached until the predictors change."""
        self._forget()
        if self._information is None:
            k, columns = self.solver.n_outputs, self._columns.T
            everyone = np.zeros(len(self.solver.y), dtype=np.int32)
            information = np.zeros((len(columns), k, len(columns), k))
            for i, left in enumerate(columns):
                for j, right in enumerate(columns[: i + 1]):
                    information[i, :, j] = information[j, :, i] = self._triangles(everyone, left * right, 1)[0][
                        triangle(k)
                    ]
            self._information = information.reshape(len(columns) * k, len(columns) * k)
        return self._information

    @property
    def n_iterations(self) -> int:
        return ITERATIONS if self.keeps_matrices else ITERATIONS_OF_MANY

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
        weights = weight * factor if len(weight) and len(factor) else factor if len(factor) else weight
        sums = np.zeros((1 + size, k * (k + 1) // 2))
        if self.keeps_matrices:
            self._forget()
            if not len(self._of_rows):  # of the rows, cached until the predictors change
                self._of_rows = np.empty((len(self.solver.y), k * (k + 1) // 2))
                matrices_of_rows(rows.probabilities, self._of_rows)
            sum_matrices(codes, weights, self._of_rows, sums)
        else:
            collect_matrices(codes, weights, rows.probabilities, sums)
        return sums[1:]

    def _forget(self) -> None:
        """Clear what was computed for earlier linear predictors."""
        if self._known_at != self.solver.n_moves:
            self._of_rows, self._information, self._known_at = np.empty((0, 0)), None, self.solver.n_moves
