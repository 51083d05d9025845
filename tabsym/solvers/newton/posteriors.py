"""The posterior of one term, given the other penalized terms and jointly with the unpenalized coefficients.

Intercepts and slopes by the same column, ``w[g] + v[g]*x``, are joint too: each category has a small matrix, so that
their variance components are those of REML. In the scale where the dispersion is one.

In models of few terms posteriors are of all terms together (`JointPosteriors`): those of REML, nested terms included.
The effective degrees of freedom of a term are jointly with all others then (Wood and Fasiolo 2017, equation 4). Given
the others those of a term that another one contains are too many, and its variance too small: with effects of schools
and of classes within schools, most or all of the schools' variance went to the classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tabsym.losses.loss import MULTINOMIAL, SQUARED
from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.information import (
    can_be_joint,
    information_of,
    inverse,
    inverse_or,
    largest_ridge,
    penalty_of,
)
from tabsym.solvers.newton.kernels_coefs import evaluate_ridge, ridge_variances
from tabsym.solvers.newton.kernels_rows import sum_products
from tabsym.solvers.newton.kernels_walk import evaluate_walk, solve_walk, walk_variances
from tabsym.solvers.newton.steps import NOTHING_LEFT, ROUNDING, SAME, columns_of, inverse_of
from tabsym.solvers.newton.terms import NEXT_TO_NOTHING, Prior, SolverTerm, side_by_side

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TermPosterior:
    """The posterior of a term: variances (q, K), their trace in the penalty, effective degrees of freedom."""

    variances: Floats
    penalized: float
    edf: float


class TermPosteriors(ABC):
    """The posteriors of the terms of one model.

    Parameters
    ----------
    solver : BlockDescent
        Its current coefficients, Hessians and precisions are used.
    """

    is_joint = False
    """Whether degrees of freedom are jointly with the other penalized terms."""

    def __init__(self, solver: BlockDescent) -> None:
        self.solver = solver
        self.flat = [index for index, term in enumerate(solver.terms) if term.prior is Prior.FLAT]
        self.n_penalized = np.array([float(term.n_penalized * solver.n_outputs) for term in solver.terms])

    @property
    @abstractmethod
    def n_iterations(self) -> int:
        """Iterations between two updates of the variances: more where an update is expensive."""

    def of(self, index: int) -> TermPosterior:
        """The posterior of one term."""
        variances, penalized = self._variances(index)
        unknown = int(np.isinf(variances).sum())
        return TermPosterior(variances, penalized, self._effective(index, penalized) - unknown)

    def evaluate(self, indices: Sequence[int]) -> Floats:
        """Effective degrees of freedom and the sum of squares in the penalty (a, 2) of the terms at `indices` (a,)."""
        solver = self.solver
        both = [(self.of(index).edf, solver.terms[index].length(solver.theta[index])) for index in indices]
        return np.array(both).reshape(-1, 2)

    def _effective(self, index: int, penalized: float) -> float:
        return max(float(self.n_penalized[index] - self.solver.precision[index] * penalized), 0.0)

    @abstractmethod
    def _variances(self, index: int) -> tuple[Floats, float]:
        """Variances (q, K) of a term, and the trace that enters its penalty."""

    @cached_property
    def _is_intercept_alone(self) -> bool:
        terms = self.solver.terms
        return len(self.flat) == 1 and not len(terms[self.flat[0]].x)

    def _hessian_is_cross(self, index: int) -> bool:
        """Whether the intercept alone is unpenalized: a term's Hessian is then its cross-derivative."""
        return self._is_intercept_alone and not len(self.solver.terms[index].x)

    @cached_property
    def _columns(self) -> Floats:
        """The design matrix (n, f) of the unpenalized terms."""
        return columns_of([self.solver.terms[index] for index in self.flat], len(self.solver.y))


class SingleOutputPosteriors(TermPosteriors):
    """For losses with one linear predictor."""

    n_iterations = 1

    def __init__(self, solver: BlockDescent) -> None:
        super().__init__(solver)
        self._known: dict[tuple[str, int], Floats] = {}
        self._known_at = -1

    def evaluate(self, indices: Sequence[int]) -> Floats:
        """The same by compiled kernels, in the frequent case that the intercept is the only unpenalized coefficient."""
        solver = self.solver
        if not self._is_intercept_alone or self._families:
            return super().evaluate(indices)
        evaluated, alone = np.empty((len(indices), 2)), set(indices)
        if solver.small is not None:
            solver.small.evaluate(indices, solver.precision, solver.covers, self._level_information(), evaluated)
            alone.difference_update(solver.small.indices)
        for number, index in enumerate(indices):
            if index in alone:
                evaluated[number] = self._evaluate(index)
        at = np.array(indices, dtype=np.intp)
        evaluated[:, 0] = np.maximum(self.n_penalized[at] - solver.precision[at] * evaluated[:, 0], 0.0)
        return evaluated

    def _evaluate(self, index: int) -> tuple[float, float]:
        """The trace of the variances in the penalty, and the sum of squares, jointly with the intercept alone."""
        solver, term = self.solver, self.solver.terms[index]
        curvature, theta, precision = solver.curvature[index], solver.theta[index], solver.precision[index]
        if not self._hessian_is_cross(index):
            return self._variances(index)[1], term.length(theta)
        if term.prior is Prior.RIDGE:
            return evaluate_ridge(
                curvature.ravel(), theta.ravel(), precision, self._uncovered_information(index, curvature), ROUNDING
            )
        forward, space = np.empty((2, term.size))
        return evaluate_walk(
            curvature.ravel(), theta.ravel(), term.n_unordered, term.unordered_ratio, precision, NEXT_TO_NOTHING,
            forward, space,
        )  # fmt: skip

    def _variances(self, index: int) -> tuple[Floats, float]:
        """Variances (q, 1), and the trace that enters the penalty."""
        term, precision = self.solver.terms[index], self.solver.precision[index]
        family = [i for i in self._families.get(index, []) if not self.solver.dropped[i]]
        if len(family) > 1:
            variances = self._variances_of_family(family)[:, [family.index(index)]]
            return variances, float(variances[np.isfinite(variances)].sum())
        curvature = self._curvature(index)
        if term.prior is Prior.RIDGE and self._hessian_is_cross(index):
            variances = np.empty((term.size, 1))
            more = self._uncovered_information(index, curvature)
            total = ridge_variances(curvature[:, 0], precision, more, ROUNDING, variances[:, 0])
            return variances, float(total)
        if term.prior is Prior.WALK:
            variances, penalized = _walk_posterior(term, curvature, precision)
        else:
            variances = _alone(curvature, precision)
            penalized = float(variances[np.isfinite(variances)].sum())
        shared, followed, left = self._with_unpenalized(index, curvature, precision)
        if shared.shape[1]:
            tol = NOTHING_LEFT if term.prior is Prior.WALK else ROUNDING
            sizes = shared.sum(axis=0) if self._hessian_is_cross(index) else np.diag(self._unpenalized_information())
            covariance = inverse_of(left, sizes, tol)
            variances = variances + np.einsum("qf,fg,qg->q", followed, covariance, followed)[:, None]
            penalized += float((term.penalty_gradient(followed, 1.0) * (followed @ covariance)).sum())
        return variances, penalized

    @cached_property
    def _families(self) -> dict[int, list[int]]:
        """By index, all terms by the same categorical column, where one of them is a slope."""
        terms = self.solver.terms
        ridges = [index for index, term in enumerate(terms) if term.prior is Prior.RIDGE]
        families: dict[int, list[int]] = {}
        for index in ridges:
            term = terms[index]
            if len(term.x) and index not in families:
                alike = [i for i in ridges if terms[i].size == term.size and np.array_equal(terms[i].codes, term.codes)]
                families.update(dict.fromkeys(alike, alike) if len(alike) > 1 else {})
        return families

    def _variances_of_family(self, family: list[int]) -> Floats:
        """Joint posterior variances (q, m) of m terms by one column and the unpenalized ones."""
        solver, m = self.solver, len(family)
        hessians = np.empty((solver.terms[family[0]].size, m, m))
        for i, a in enumerate(family):
            for j, b in enumerate(family[: i + 1]):
                hessians[:, i, j] = hessians[:, j, i] = self._between(a, b)
        hessians += np.diag(solver.precision[family])
        is_informed = np.einsum("qmm->qm", hessians).min(axis=1) > 0.0  # else neither data nor prior are informative
        inverse = np.full_like(hessians, np.inf)
        inverse[is_informed] = np.linalg.pinv(hessians[is_informed], rcond=SAME, hermitian=True)
        variances = np.einsum("qmm->qm", inverse).copy()
        if self.flat:
            shared = np.stack([self._shared(index) for index in family], axis=1)[is_informed]
            followed, whole = inverse[is_informed] @ shared, self._unpenalized_information()
            left = whole - np.einsum("qmf,qmg->fg", shared, followed)
            covariance = inverse_of(left, np.diag(whole), ROUNDING)
            variances[is_informed] += np.einsum("qmf,fg,qmg->qm", followed, covariance, followed)
        return variances

    def _between(self, a: int, b: int) -> Floats:
        """The cross-derivative (q,) of the coefficients of two terms by one column."""
        left, right = self.solver.terms[a], self.solver.terms[b]

        def sum_them() -> Floats:
            sums = np.empty((left.size, 1))
            by = right.x[:, None] if len(right.x) else np.ones_like(self._hessians())
            sum_products(left.codes, left.x, self._hessians(), by, sums)
            return sums

        return self._now(f"between {a}", b, sum_them)[:, 0]

    def _with_unpenalized(self, index: int, curvature: Floats, precision: float) -> tuple[Floats, Floats, Floats]:
        """Cross-derivatives (q, f) with the unpenalized terms, their solution (q, f), information left (f, f)."""
        term = self.solver.terms[index]
        if not self.flat:
            return np.zeros((term.size, 0)), np.zeros((term.size, 0)), np.zeros((0, 0))
        shared = curvature if self._hessian_is_cross(index) else self._shared(index)
        followed = term.solve(np.repeat(curvature, shared.shape[1], axis=1), precision, shared)
        if not self._hessian_is_cross(index):
            return shared, followed, self._unpenalized_information() - shared.T @ followed
        # all from the Hessian of this term, as those of other terms were computed at other coefficients
        left = float((curvature * (1.0 - followed)).sum()) + self._uncovered_information(index, curvature)
        return shared, followed, np.array([[left]])

    def _uncovered_information(self, index: int, curvature: Floats) -> float:
        """Information on the intercept from rows without a coefficient of the term."""
        if self.solver.covers[index]:
            return 0.0
        return max(self._level_information() - float(curvature.sum()), 0.0)

    def _shared(self, index: int) -> Floats:
        """Cross-derivatives of the coefficients and the unpenalized terms (q, f)."""
        term = self.solver.terms[index]

        def sum_them() -> Floats:
            sums = np.empty((term.size, len(self.flat)))
            sum_products(term.codes, term.x, self._hessians(), self._columns, sums)
            return sums

        return self._now("shared", index, sum_them)

    def _curvature(self, index: int) -> Floats:
        """The Hessian's diagonal (q, 1): of the last step if the intercept's is too, else the current one."""
        if self._hessian_is_cross(index):
            return self.solver.curvature[index]
        return self.sum_curvature(index)

    def sum_curvature(self, index: int) -> Floats:
        """The Hessian's current diagonal (q, 1)."""
        return self._now("curvature", index, lambda: diagonal_of(self.solver.terms[index], self._hessians()))

    def _level_information(self) -> float:
        """The intercept's Hessian at its last step."""
        return float(self.solver.curvature[self.flat[0]][0, 0])

    def _unpenalized_information(self) -> Floats:
        """X'HX (f, f) of the unpenalized terms."""
        columns = self._columns
        return self._now("information", -1, lambda: np.asarray(columns.T @ (self._hessians() * columns)))

    def _hessians(self) -> Floats:
        """Hessians (n, 1) of the rows, times their weight."""
        return self._now("hessians", -1, lambda: self.solver.grads()[1][:, None])

    def _now(self, what: str, index: int, find: Callable[[], Floats]) -> Floats:
        """A sum over the rows' Hessians, cached until these change: with every update, except under squared loss."""
        if self._known_at != self.solver.n_moves and self.solver.loss.code != SQUARED:
            self._known.clear()
            self._known_at = self.solver.n_moves
        if (what, index) not in self._known:
            self._known[what, index] = find()
        return self._known[what, index]


def diagonal_of(term: SolverTerm, hessians: Floats) -> Floats:
    """The Hessian's diagonal (q, 1) by those of the rows (n, 1)."""
    sums = np.empty((term.size, 1))
    sum_products(term.codes, term.x * term.x, hessians, np.ones_like(hessians), sums)
    return sums


def _alone(curvature: Floats, precision: float) -> Floats:
    """Variances of independent coefficients; infinite where neither data nor prior are informative."""
    both = curvature + precision
    return np.divide(1.0, both, out=np.full_like(both, np.inf), where=both > 0)


def _walk_posterior(term: SolverTerm, curvature: Floats, precision: float) -> tuple[Floats, float]:
    """Variances (q, 1) of the coefficients of a walk and the unordered ones, and the trace that enters the penalty."""
    variances = np.empty_like(curvature)
    walk, unordered = curvature[term.n_unordered :].ravel(), curvature[: term.n_unordered]
    inside, pivots = np.empty((2, len(walk)))
    steps = walk_variances(walk, 0, precision, NEXT_TO_NOTHING, pivots, inside)
    level = np.full((len(walk), 1), 1.0 / max(len(walk), 1))
    solve_walk(walk, 0, 1, precision, NEXT_TO_NOTHING, level.ravel(), pivots, level.ravel())
    alone, unordered_precision = _alone(unordered, term.unordered_ratio * precision), term.unordered_ratio * precision
    grad, of_mean = unordered_precision * (1.0 - unordered_precision * alone).sum(axis=0), level.mean(axis=0)
    taken = grad / (1.0 + grad * of_mean)
    of_mean = of_mean * (1.0 - taken * of_mean)
    variances[term.n_unordered :] = inside[:, None] - taken * np.square(level)
    variances[: term.n_unordered] = alone + np.square(unordered_precision * alone) * of_mean
    penalized = steps - (taken * np.square(np.diff(level, axis=0))).sum(axis=0)
    penalized += term.unordered_ratio * (alone + np.square(unordered * alone) * of_mean).sum(axis=0)
    return variances, float(penalized.sum())


def are_possible(solver: BlockDescent) -> bool:
    """Whether the terms are few enough for joint posteriors."""
    return solver.loss.code != MULTINOMIAL and can_be_joint(solver.terms, range(len(solver.terms)))


class JointPosteriors(TermPosteriors):
    """Of all terms of one model jointly; the largest ridge term is eliminated, as its information is diagonal."""

    is_joint = True
    n_iterations = 1

    def __init__(self, solver: BlockDescent) -> None:
        super().__init__(solver)
        self._cache: dict[int, tuple[Floats, float]] = {}
        self._cached_at: tuple[int, bytes] = (-1, b"")

    def _variances(self, index: int) -> tuple[Floats, float]:
        """Variances (q, 1), and the trace that enters the penalty."""
        solver = self.solver
        now = solver.n_moves, solver.precision.tobytes()
        if now == self._cached_at and index in self._cache:
            return self._cache[index]
        active = solver.active
        largest = largest_ridge(solver.terms, active)
        other_terms, information = [i for i in active if i != largest], information_of(solver, {})
        left, self._cache, self._cached_at = information.of(other_terms), {}, now
        if largest is not None:
            diagonal, shared = information.cross_information(largest, other_terms)
            alone = inverse_or(0.0, diagonal)
            follows = alone[:, None] * shared
            left = left - shared.T @ follows
        covariance = inverse(left, self._levels(other_terms))[0]
        if largest is not None:
            more = np.einsum("qp,pr,qr->q", follows, covariance, follows, optimize=True)
            variances = inverse_or(np.inf, diagonal) + more
            self._cache[largest] = variances[:, None], float(variances[np.isfinite(variances)].sum())
        for i, at in zip(other_terms, side_by_side(solver.terms, other_terms), strict=True):
            block = covariance[at, at]
            trace = float(np.trace(block))
            if solver.terms[i].prior is Prior.WALK:
                trace = float((penalty_of(solver.terms[i], 1.0) * block).sum())
            self._cache[i] = np.diag(block)[:, None].copy(), trace
        return self._cache[index]

    def _levels(self, indices: Sequence[int]) -> Floats:
        """Directions (p, m) of the levels of walks, which the intercept can take where all rows have a coefficient."""
        solver, intercept = self.solver, self.solver.recentering.intercept
        blocks = side_by_side(solver.terms, indices)
        directions = []
        for index, block in zip(indices, blocks, strict=True):
            is_walk = solver.terms[index].prior is Prior.WALK
            if is_walk and intercept in indices and solver.recentering.level_of(index) == intercept:
                direction = np.zeros(blocks[-1].stop)
                direction[block], direction[blocks[indices.index(intercept)]] = 1.0, -1.0
                directions.append(direction)
        return np.array(directions).T
