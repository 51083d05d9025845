"""Posterior samples of all coefficients jointly, and the standard deviations that follow.

A sample is the solution of H z = r, with r normal of covariance H: the sum over rows of the square root of their
Hessian times a standard normal number, and of the penalty's square root times another (Papandreou and Yuille 2010,
"Gaussian sampling by local perturbations"). No Hessian is stored or factored: conjugate gradients need its product with
a vector, one pass over the codes of each term. The variance of a coefficient is that given the others, known exactly,
plus that of its conditional mean, over the samples (Sidén, Lindgren, Bolin and Villani 2018): a few dozen suffice.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.kernels_rows import add_to_rows, sum_products, sum_rows
from tabsym.solvers.newton.posteriors import diagonal_of
from tabsym.solvers.newton.steps import SAME, inverse_of
from tabsym.solvers.newton.terms import Prior, SolverTerm

Floats = NDArray[np.float64]

MAX_STEPS, STILL, GAINED = 1000, 0.01, 1e-3
"""A sample has converged where its residual, in the norm of each term by itself, is below this fraction of the right
side, and where a step gains no more than `GAINED` of the total gain. The latter covers directions that the penalty
alone determines, as between a column's main effects and its interactions: there the residual is small and steps are
long."""

NOTHING = 1e-12
"""Relative to the same, squared: smaller residuals are rounding, where the means are all that was to be solved."""


class _Levels:
    """The image under a matrix H of the means of some terms, and the inverse of H restricted to them.

    Parameters
    ----------
    blocks : list of slice
        The terms' coefficients among all.
    size : int
        Number of all coefficients.
    grad : callable
        H times vectors (coefficients, M).
    """

    def __init__(self, blocks: list[slice], size: int, grad: Callable[[Floats], Floats]) -> None:
        self._blocks = blocks
        columns = np.zeros((size, len(blocks)))
        for number, own in enumerate(blocks):
            columns[own, number] = 1.0
        self._weighted = grad(columns)
        matrix = self._sums(self._weighted)
        self._inverse = inverse_of(matrix, np.diag(matrix), SAME)

    def solve(self, right: Floats) -> Floats:
        """The means (coefficients, M) that solve H z = `right` within their span."""
        return self._add(np.zeros_like(right), self._inverse @ self._sums(right))

    def beside(self, numbers: Floats) -> Floats:
        """Vectors (coefficients, M) made H-orthogonal to the means."""
        return self._add(numbers.copy(), -self._inverse @ (self._weighted.T @ numbers))

    def _sums(self, numbers: Floats) -> Floats:
        return np.array([numbers[own].sum(axis=0) for own in self._blocks]).reshape(-1, numbers.shape[1])

    def _add(self, numbers: Floats, levels: Floats) -> Floats:
        for own, level in zip(self._blocks, levels, strict=True):
            numbers[own] += level
        return numbers


class PosteriorSamples:
    """Posterior samples (q, M) by term, less the optimum, dispersion 1, for one linear predictor.

    Parameters
    ----------
    solver : BlockDescent
        Of one model, converged.
    n_samples : int
    rng : RandomState

    Attributes
    ----------
    found : list of (q, M)
    converged : bool
        Whether all samples converged.
    """

    def __init__(self, solver: BlockDescent, n_samples: int, rng: np.random.RandomState) -> None:
        self.solver = solver
        self._hessians = solver.expected_curvature()[:, None]
        # at the current linear predictors; that of a term's last step is older
        self._curvature = [diagonal_of(term, self._hessians) for term in solver.terms]
        self._inverse = self._inverse_together()
        self._active = [index for index in range(len(solver.terms)) if not solver.dropped[index]]
        starts = np.cumsum([0, *(term.size for term in solver.terms)])
        self._own = [slice(start, end) for start, end in pairwise(starts.tolist())]
        level = [self._own[index] for index in self._active if solver.terms[index].prior is not Prior.WALK]
        self._levels = _Levels(level, starts[-1], self._hessian_times)
        noise = rng.standard_normal((len(self._hessians), n_samples))
        noise *= np.sqrt(self._hessians)
        right = np.concatenate([self._perturb(index, noise, rng) for index in range(len(solver.terms))])
        found, self.converged = self._solve(right)
        self.found = [found[own] for own in self._own]
        self._move_means()
        self._reach = self._scores(found)

    def variances(self, index: int) -> Floats:
        """Posterior variances (q, 1) of a term; infinite where neither data nor prior are informative."""
        term, samples = self.solver.terms[index], self.found[index]
        if term.prior is Prior.WALK:
            return np.asarray(np.square(samples).mean(axis=1, keepdims=True))
        curvature = self._curvature[index]
        both = curvature + self.solver.precision[index]
        means = self._sum(term, self._reach) - curvature * samples
        own = np.divide(1.0, both, out=np.zeros_like(both), where=both > 0)
        found = np.asarray(own + np.square(own * means).mean(axis=1, keepdims=True))
        if term.prior is Prior.FLAT:
            return found  # 0 for a constant column next to an intercept
        return np.where(both > 0, found, np.inf)

    def _perturb(self, index: int, noise: Floats, rng: np.random.RandomState) -> Floats:
        """The right side (q, M) of a term: all together are normal, and their covariance is the Hessian."""
        term, precision = self.solver.terms[index], self.solver.precision[index]
        right = np.empty((term.size, noise.shape[1]))
        sum_rows(term.codes, term.x, noise, right)
        if term.prior is Prior.FLAT or not np.isfinite(precision):
            return right
        own = np.sqrt(precision) * rng.standard_normal(right.shape)
        if term.prior is Prior.RIDGE:
            return np.asarray(right + own)
        beside = np.sqrt(term.share_apart) * own[: term.apart]
        right[: term.apart] += beside
        right[term.apart :] -= beside.sum(axis=0) / max(term.size - term.apart, 1)
        right[term.apart : -1] -= own[term.apart : -1]
        right[term.apart + 1 :] += own[term.apart : -1]
        return right

    def _solve(self, right: Floats) -> tuple[Floats, bool]:
        """The samples (coefficients, M), and whether they converged: preconditioned conjugate gradients.

        The means of terms are solved exactly, and deflated (Saad, Yeung, Erhel and Guyomarc'h 2000): an increase of one
        mean with a decrease of another is determined by the penalty alone, which is tiny where categories have many
        rows or a large variance. Conjugate gradients would stop before they resolve such directions.
        """
        whole = (right * self._by_blocks(right)).sum(axis=0)
        found = self._levels.solve(right)
        left = right - self._hessian_times(found)
        toward = self._by_blocks(left)
        way, size = self._levels.beside(toward), (left * toward).sum(axis=0)
        gain, total = np.where(size > NOTHING * whole, np.inf, 0.0), np.zeros(len(size))
        for _ in range(MAX_STEPS):
            if ((size <= STILL**2 * whole) & (gain <= GAINED * total)).all():
                return found, True
            moved = self._hessian_times(way)
            step = _share(np.where(size > NOTHING * whole, size, 0.0), (way * moved).sum(axis=0))
            gain = step * size
            total += gain
            found += step * way
            left -= step * moved
            toward = self._by_blocks(left)
            before, size = size, (left * toward).sum(axis=0)
            way = self._levels.beside(toward) + _share(size, before) * way
        return found, False

    def _move_means(self) -> None:
        """Move the mean of each walk to the intercept: the two are confounded."""
        for index in self._active:
            term, level = self.solver.terms[index], self.solver.recentering.level_of(index)
            if term.prior is Prior.WALK and level is not None:
                mean = np.average(self.found[index], axis=0, weights=self._curvature[index][:, 0])
                self.found[index] -= mean
                self.found[level] += mean

    def _by_blocks(self, right: Floats) -> Floats:
        """The block-diagonal preconditioner: one block per term, and one for the unpenalized coefficients."""
        solver, out = self.solver, np.zeros_like(right)
        for index in self._active:
            own, term = self._own[index], solver.terms[index]
            curvature = np.repeat(self._curvature[index], right.shape[1], axis=1)
            out[own] = term.solve(curvature, solver.precision[index], right[own])
        if solver.together:
            flat = [self._own[index].start for index in solver.together]
            out[flat] = self._inverse @ right[flat]
        return out

    def _hessian_times(self, numbers: Floats) -> Floats:
        """The Hessian times vectors (coefficients, M)."""
        scores, out = self._scores(numbers), np.zeros_like(numbers)
        for index in self._active:
            own, term = self._own[index], self.solver.terms[index]
            out[own] = self._sum(term, scores) + term.penalty_gradient(numbers[own], self.solver.precision[index])
        return out

    def _scores(self, numbers: Floats) -> Floats:
        """Linear predictors (n, M) of coefficients (coefficients, M)."""
        scores = np.zeros((len(self._hessians), numbers.shape[1]))
        for index in self._active:
            term = self.solver.terms[index]
            add_to_rows(term.codes, term.x, numbers[self._own[index]], scores)
        return scores

    def _sum(self, term: SolverTerm, scores: Floats) -> Floats:
        """Linear predictors (n, M) times the rows' Hessians, summed by coefficient."""
        sums = np.empty((term.size, scores.shape[1]))
        sum_products(term.codes, term.x, self._hessians, scores, sums)
        return sums

    def _inverse_together(self) -> Floats:
        """Inverse of the information on the unpenalized coefficients, where that is more than an intercept."""
        if not self.solver.together:
            return np.empty((0, 0))
        columns = self.solver.flat_columns
        information = columns.T @ (self._hessians * columns)
        return inverse_of(information, np.diag(information), SAME)


def _share(numbers: Floats, of: Floats) -> Floats:
    return np.divide(numbers, of, out=np.zeros_like(numbers), where=of > 0)
