"""The uncertainty of a Newton fit: variance components, posterior covariances, standard deviations and samples.

The covariances are of all terms jointly where they are few enough: the inverse of the penalized Fisher information at
the optimum, given the variance components (Wood 2017, "Generalized Additive Models", section 6.10; without penalties,
the covariance of a GLM). Up to `MAX_COEFS` coefficients, or `MAX_OTHERS` of terms other than the largest, it is exact.
Beyond, it is that of a term jointly with the intercept and the smallest terms (`MAX_SMALL` coefficients), given the
others; that of these small terms is joint with the largest term. They are computed in the scale of training, where the
dispersion is 1.

A posterior sample of all coefficients is the solution of H z = r, with r normal of covariance H: the sum over rows of
the square root of their Hessian times a standard normal number, and of the penalty's square root times another
(Papandreou and Yuille 2010, "Gaussian sampling by local perturbations"). No Hessian is stored or factored: conjugate
gradients need its product with a vector, one pass over the codes of each term. The variance of a coefficient is that
given the others, known exactly, plus that of its conditional mean, over the samples (Sidén, Lindgren, Bolin and Villani
2018): a few dozen suffice.
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
    UNIDENTIFIED,
    are_unidentified,
    can_be_joint,
    information_of,
    inverse,
    inverse_or,
    largest_ridge,
    null_space_of,
    root_of_inverse,
)
from tabsym.solvers.newton.kernels_rows import add_to_rows, multiply, subtract_square, sum_products, sum_rows
from tabsym.solvers.newton.posteriors import diagonal_of
from tabsym.solvers.newton.steps import SAME, inverse_of
from tabsym.solvers.newton.terms import Prior, SolverTerm, side_by_side

Floats = NDArray[np.float64]


ORTHOGONAL = 1e-5
"""Relative to the size of the directions: components below this are rounding."""


@dataclass(frozen=True, eq=False)
class TermCovariance:
    """Posterior covariance of a term's coefficients, for each of K linear predictors: diagonal plus low rank.

    Attributes
    ----------
    diagonal : (q, K)
        The diagonal; infinite where neither data nor prior are informative.
    factor : (K, q, r)
        The other summand is this times its transpose.
    shares : (q,)
        Weights of the mean that coefficients are measured from; empty where that is in `factor`.
    unknown : (K, q, r) or None
        Of a model whose terms determine each other, a basis of the directions in which coefficients can change without
        a change of the fit: combinations orthogonal to them have a variance (estimable functions), all others have
        none. Of the coefficients as they are, not about their mean.
    unidentified : (q, K) or None
        Which coefficients have no variance of their own, as they are in `unknown` by more than a little: one of many
        categories that is confounded leaves the others theirs. None for all that are in it.
    """

    diagonal: Floats
    factor: Floats
    shares: Floats = field(default_factory=lambda: np.empty(0))
    unknown: Floats | None = None
    unidentified: NDArray[np.bool_] | None = None

    def variances(self) -> Floats:
        """Variances of the coefficients (q, K)."""
        variances = self.diagonal + np.einsum("kqr,kqr->qk", self.factor, self.factor)
        if self.unidentified is not None:
            variances[self.unidentified] = np.inf
        elif self.unknown is not None:
            variances[self.unknown.any(axis=2).T] = np.inf
        if not len(self.shares):
            return np.asarray(variances)
        known = np.where(np.isfinite(self.diagonal), self.diagonal, 0.0)
        return np.asarray(variances - 2.0 * self.shares[:, None] * known + np.square(self.shares) @ known)

    def of_difference(self, a: int, b: int) -> Floats:
        """Variance of the difference of two coefficients (K,)."""
        if a == b:
            return np.zeros(self.diagonal.shape[1])
        between = self.factor[:, a] - self.factor[:, b]
        variance = np.asarray(self.diagonal[a] + self.diagonal[b] + np.square(between).sum(axis=1))
        if self.unknown is not None:
            ends = self.unknown[:, [a, b]]
            variance[np.abs(ends[:, 0] - ends[:, 1]).max(axis=1) > ORTHOGONAL * np.abs(ends).max(axis=(1, 2))] = np.inf
        return variance

    def rescaled(self, size: float, mean: Floats | None) -> TermCovariance:
        """Covariance of the coefficients times a number, less their mean with weights `mean` (q,) if given."""
        factor, shares = size * self.factor, self.shares
        if mean is not None:
            factor, shares = factor - (mean @ factor)[:, None], mean if self.diagonal.any() else shares
        return TermCovariance(self.diagonal * size**2, factor, shares, self.unknown, self.unidentified)


def without_rounding(unknown: Floats) -> Floats:
    """Directions whose components that are only rounding are 0."""
    return np.where(np.abs(unknown) > ORTHOGONAL * np.abs(unknown).max(initial=0.0), unknown, 0.0)


@dataclass(frozen=True, eq=False)
class Uncertainty:
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

    def times(self, by: float) -> Uncertainty:
        """The uncertainty with variances of coefficients times a number."""
        root = float(np.sqrt(by))
        return replace(
            self,
            sd=root * self.sd,
            samples=None if self.samples is None else root * self.samples,
            covariances=tuple(
                None if covariance is None else covariance.rescaled(root, None) for covariance in self.covariances
            ),
            joint=by * self.joint,
            total_sd=root * self.total_sd,
            working=(self.dispersion if np.isnan(self.working) else self.working) / by,  # with which priors are as much
        )

    @property
    def total_edf(self) -> float:
        """The effective degrees of freedom of all terms, together where they are known so."""
        return float(self.edf.sum()) if np.isnan(self.joint_edf) else self.joint_edf


MAX_SMALL = 100
"""Coefficients of the small terms that a term of a still larger model is joint with."""

MAX_FACTOR, MAX_FACTOR_TOGETHER = 100_000, 1_000_000
"""The largest size of the stored covariance factor of a term; of the largest term, if all others are joint with it."""

MAX_VISITS = 200_000_000
"""Rows times pairs of terms and of classes to sum over, above which multiclass covariances are not computed."""

ALMOST_ZERO = 1e-14, 1e-12, 1e-10
"""Tried in turn: the fraction of each variance that is added to it for the Cholesky factor of a singular matrix."""


@dataclass(frozen=True, eq=False)
class JointCovariance:
    """Covariances of all coefficients, and the coefficients and directions that the rows do not determine.

    Attributes
    ----------
    matrix : (K, p, p)
    uninformed : (p,)
        The coefficients without any information.
    unknown : (K, p, r)
        A basis of the directions in which coefficients can change together without a change of the fit.
    edf : float
        Effective degrees of freedom of all coefficients together; NaN where they are not counted.
    unidentified : (p,) or None
        The coefficients that are in `unknown` by more than a little; None for all that are.
    """

    matrix: Floats
    uninformed: NDArray[np.bool_]
    unknown: Floats
    edf: float = np.nan
    unidentified: NDArray[np.bool_] | None = None


def whole_covariance(
    solver: BlockDescent, indices: Sequence[int], mean_weights: dict[int, Floats]
) -> JointCovariance | None:
    """Joint covariance of the terms at `indices`, in their order; None where they are too many."""
    information = information_of(solver, mean_weights)
    p = sum(solver.terms[index].size for index in indices)
    visits = 0.5 * len(solver.y) * len(indices) ** 2 * information.k**2
    if p * information.k > MAX_COEFS or (information.k > 1 and visits > MAX_VISITS):
        return None
    k = information.k
    of_rows = information.sum_pairs(indices)
    penalized = information.penalized(of_rows.copy(), indices)
    covariance, uninformed, unknown = inverse(penalized)
    unidentified = np.any(are_unidentified(penalized, unknown).reshape(k, p), axis=0)
    edf = float(np.einsum("ij,ij->", covariance, of_rows.reshape(covariance.shape)))
    if k > 1:  # less the mean over classes, which is not identified
        centring = np.kron(np.eye(k) - 1.0 / k, np.eye(p))
        covariance, unknown = centring @ covariance @ centring, without_rounding(centring @ unknown)
    blocks, uninformed = covariance.reshape(k, p, k, p), np.any(uninformed.reshape(k, p), axis=0)
    diagonal = np.array([blocks[c, :, c] for c in range(k)])
    return JointCovariance(diagonal, uninformed, unknown.reshape(k, p, -1), edf, unidentified)


class CovariancesByTerm:
    """Covariances of larger models, term by term, for losses with one linear predictor.

    Parameters
    ----------
    solver : BlockDescent
    indices : sequence of int
        The terms that are not dropped.
    mean_weights : dict of index -> (q,)
    """

    def __init__(self, solver: BlockDescent, indices: Sequence[int], mean_weights: dict[int, Floats]) -> None:
        self._information = information_of(solver, mean_weights)
        self._terms = solver.terms
        ordered = sorted(
            indices, key=lambda index: (solver.terms[index].prior is not Prior.FLAT, solver.terms[index].size)
        )
        self._together = can_be_joint(solver.terms, indices)
        largest = largest_ridge(solver.terms, indices)
        if self._together:
            self.small = [index for index in ordered if index != largest]
        else:
            total, self.small = 0, list[int]()
            for index in ordered:
                total += solver.terms[index].size
                if self.small and total > MAX_SMALL and solver.terms[index].prior is not Prior.FLAT:
                    break
                self.small.append(index)
        self.large = [index for index in ordered if index not in self.small]
        self._matrix = self._information.of(self.small)
        self._starts = np.cumsum([0, *(solver.terms[index].size for index in self.small)])
        self._largest = next((index for index in reversed(self.large) if self._terms[index].prior is Prior.RIDGE), None)

    @property
    def is_exact(self) -> bool:
        """Whether no term is conditioned on: there is one other term, and its information is diagonal."""
        if len(self.large) != 1 or self._largest is None:
            return False
        return self._together or len(self._matrix) * self._terms[self._largest].size <= MAX_FACTOR

    def __call__(
        self, sizes: Floats, means: dict[int, Floats]
    ) -> tuple[dict[int, TermCovariance], Callable[[dict[int, Floats]], float]]:
        """Covariances by index, and a function for the variance of a linear combination, with weights (q,) by index.

        The covariances are of the coefficients times `sizes` (by index), less their mean where `means` has weights (q,)
        for it; the variances of the coefficients as they are.
        """
        largest_first = reversed(self.large)  # as terms that others are nested in come before these
        covariances = {index: self._of_large(index, sizes[index], means.get(index)) for index in largest_first}
        left, shared, alone = self._matrix.copy(), None, np.empty(0)
        if self._largest is not None:
            alone, shared = self._information.eliminate(self._largest, self.small, left)
        matrix, uninformed, unknown = inverse(left)
        unidentified = are_unidentified(left, unknown)
        for number, index in enumerate(self.small):
            at = slice(self._starts[number], self._starts[number + 1])
            covariance = covariance_of(matrix[at, at][None], uninformed[at], unknown[None, at], unidentified[at, None])
            covariances[index] = covariance.rescaled(sizes[index], means.get(index))

        def variance(by: dict[int, Floats]) -> float:
            c = np.zeros(len(matrix))
            for number, index in enumerate(self.small):
                if index in by:
                    c[self._starts[number] : self._starts[number + 1]] = by[index]
            more = 0.0
            if self._largest in by and shared is not None:
                c -= shared(alone * by[self._largest])
                more = float(np.square(by[self._largest]) @ alone)
            return float(c @ matrix @ c) + more

        return covariances, variance

    def _of_large(self, index: int, size: float, mean: Floats | None) -> TermCovariance:
        """Covariance of a term that is not among the small ones, given the other large ones; as `__call__`."""
        term, width = self._terms[index], len(self._matrix)
        while width > 1 and width * term.size > MAX_FACTOR and not self._together:
            width = int(self._starts[self._starts < width][-1]) or 1
        diagonal, shared = self._shared(index, width)
        left = self._matrix[:width, :width].copy()
        if term.prior is Prior.RIDGE:
            alone = inverse_or(0.0, diagonal)
            subtract_square(shared, alone, left)
            root = size * root_of_inverse(left)
            start = np.zeros(root.shape[1]) if mean is None else -((mean * alone) @ shared) @ root
            factor = np.empty((term.size, root.shape[1]))
            multiply(shared, alone, root, start, factor)
            diagonal = size**2 * inverse_or(np.inf, diagonal)
            if factor.size > MAX_FACTOR_TOGETHER:  # the variances stay exact, differences within a group are too wide
                n_axes = max(MAX_FACTOR_TOGETHER // len(factor), 1)
                turned = factor @ np.linalg.eigh(factor.T @ factor)[1][:, ::-1]  # principal components, largest first
                factor, diagonal = turned[:, :n_axes].copy(), diagonal + np.square(turned[:, n_axes:]).sum(axis=1)
            shares = np.empty(0) if mean is None else mean
            null_space = null_space_of(left)
            follows = -alone[:, None] * (shared @ null_space)  # what makes up for a change of the small terms
            follows[np.abs(follows) <= ORTHOGONAL * alone[:, None] * (np.abs(shared) @ np.abs(null_space))] = 0.0
            if not follows.any():
                return TermCovariance(diagonal[:, None], factor[None], shares)
            length = np.square(follows).sum(axis=1)
            is_unidentified = length > UNIDENTIFIED * length.max()
            return TermCovariance(
                diagonal[:, None], factor[None], shares, size * follows[None], is_unidentified[:, None]
            )
        matrix, uninformed, unknown = inverse(self._information.of([index]))
        follows = matrix @ shared
        factor = follows @ root_of_inverse(left - shared.T @ follows)
        return covariance_of((matrix + factor @ factor.T)[None], uninformed, unknown[None]).rescaled(size, mean)

    def _shared(self, index: int, width: int) -> tuple[Floats, Floats]:
        """The diagonal (q,) of a term's information, and its cross-information with the first small ones (q, width)."""
        small = [i for i, start in zip(self.small, self._starts, strict=False) if start < width]
        return self._information.cross_information(index, small)


def covariance_of(
    matrices: Floats,
    uninformed: NDArray[np.bool_],
    unknown: Floats,
    unidentified: NDArray[np.bool_] | None = None,
) -> TermCovariance:
    """From matrices (K, q, q), which coefficients (q,) have no information, and the null space (K, q, r)."""
    diagonal = np.zeros(matrices.shape[1:2] + matrices.shape[:1])
    diagonal[uninformed] = np.inf
    factor = np.array([root_of(matrix) for matrix in matrices])
    if not unknown.any():
        return TermCovariance(diagonal, factor)
    return TermCovariance(diagonal, factor, unknown=unknown, unidentified=unidentified)


def root_of(matrix: Floats) -> Floats:
    """R with RR' = a matrix that is positive semidefinite up to rounding."""
    size = np.sqrt(np.maximum(np.diag(matrix), 0.0))[:, None]
    sizes = size * size.T  # what is added below is then little for the small variances, too
    alike = np.divide(matrix, sizes, out=np.zeros_like(matrix), where=sizes > 1e-300)  # with a variance of 0: rounding
    for fraction in ALMOST_ZERO:
        lower, info = dpotrf(alike + fraction * np.eye(len(matrix)), lower=1)
        if info == 0:
            return np.asarray(size * np.tril(lower))
    lengths, axes = np.linalg.eigh(alike)
    return np.asarray(size * axes * np.sqrt(np.maximum(lengths, 0.0)))


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
        for number, block in enumerate(blocks):
            columns[block, number] = 1.0
        self._weighted = grad(columns)
        matrix = self._sums(self._weighted)
        self._inverse = inverse_of(matrix, np.diag(matrix), SAME)

    def solve(self, right: Floats) -> Floats:
        """The means (coefficients, M) that solve H z = `right` within their span."""
        return self._add(np.zeros_like(right), self._inverse @ self._sums(right))

    def orthogonal(self, numbers: Floats) -> Floats:
        """Vectors (coefficients, M) made H-orthogonal to the means."""
        return self._add(numbers.copy(), -self._inverse @ (self._weighted.T @ numbers))

    def _sums(self, numbers: Floats) -> Floats:
        return np.array([numbers[block].sum(axis=0) for block in self._blocks]).reshape(-1, numbers.shape[1])

    def _add(self, numbers: Floats, levels: Floats) -> Floats:
        for block, level in zip(self._blocks, levels, strict=True):
            numbers[block] += level
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
        self._inverse: Floats = np.empty((0, 0))  # of the information on the unpenalized coefficients
        if solver.together:  # more than an intercept
            information = solver.joint_columns.T @ (self._hessians * solver.joint_columns)
            self._inverse = inverse_of(information, np.diag(information), SAME)
        self._active = solver.active
        self._blocks = side_by_side(solver.terms, range(len(solver.terms)))
        level = [self._blocks[index] for index in self._active if solver.terms[index].prior is not Prior.WALK]
        self._levels = _Levels(level, self._blocks[-1].stop, self._hessian_times)
        noise = rng.standard_normal((len(self._hessians), n_samples))
        noise *= np.sqrt(self._hessians)
        right = np.concatenate([self._perturb(index, noise, rng) for index in range(len(solver.terms))])
        solution, self.converged = self._solve(right)
        self.deviations = [solution[block] for block in self._blocks]
        self._move_means()
        self._delta_eta = self._scores(solution)

    def variances(self, index: int) -> Floats:
        """Posterior variances (q, 1) of a term; infinite where neither data nor prior are informative."""
        term, samples = self.solver.terms[index], self.deviations[index]
        if term.prior is Prior.WALK:
            return np.asarray(np.square(samples).mean(axis=1, keepdims=True))
        curvature = self._curvature[index]
        both = curvature + self.solver.precision[index]
        means = self._sum(term, self._delta_eta) - curvature * samples
        alone = np.divide(1.0, both, out=np.zeros_like(both), where=both > 0)
        variances = np.asarray(alone + np.square(alone * means).mean(axis=1, keepdims=True))
        if term.prior is Prior.FLAT:
            return variances  # 0 for a constant column next to an intercept
        return np.where(both > 0, variances, np.inf)

    def _perturb(self, index: int, noise: Floats, rng: np.random.RandomState) -> Floats:
        """The right side (q, M) of a term: all together are normal, and their covariance is the Hessian."""
        term, precision = self.solver.terms[index], self.solver.precision[index]
        right = np.empty((term.size, noise.shape[1]))
        sum_rows(term.codes, term.x, noise, right)
        if term.prior is Prior.FLAT or not np.isfinite(precision):
            return right
        prior_noise = np.sqrt(precision) * rng.standard_normal(right.shape)
        if term.prior is Prior.RIDGE:
            return np.asarray(right + prior_noise)
        unordered = np.sqrt(term.unordered_ratio) * prior_noise[: term.n_unordered]
        right[: term.n_unordered] += unordered
        right[term.n_unordered :] -= unordered.sum(axis=0) / max(term.size - term.n_unordered, 1)
        right[term.n_unordered : -1] -= prior_noise[term.n_unordered : -1]
        right[term.n_unordered + 1 :] += prior_noise[term.n_unordered : -1]
        return right

    def _solve(self, right: Floats) -> tuple[Floats, bool]:
        """The samples (coefficients, M), and whether they converged: preconditioned conjugate gradients.

        The means of terms are solved exactly, and deflated (Saad, Yeung, Erhel and Guyomarc'h 2000): an increase of one
        mean with a decrease of another is determined by the penalty alone, which is tiny where categories have many
        rows or a large variance. Conjugate gradients would stop before they resolve such directions.
        """
        whole = (right * self._by_blocks(right)).sum(axis=0)
        solution = self._levels.solve(right)
        left = right - self._hessian_times(solution)
        toward = self._by_blocks(left)
        way, size = self._levels.orthogonal(toward), (left * toward).sum(axis=0)
        gain, total = np.where(size > NOTHING * whole, np.inf, 0.0), np.zeros(len(size))
        for _ in range(MAX_STEPS):
            if ((size <= STILL**2 * whole) & (gain <= GAINED * total)).all():
                return solution, True
            moved = self._hessian_times(way)
            step = _ratio(np.where(size > NOTHING * whole, size, 0.0), (way * moved).sum(axis=0))
            gain = step * size
            total += gain
            solution += step * way
            left -= step * moved
            toward = self._by_blocks(left)
            before, size = size, (left * toward).sum(axis=0)
            way = self._levels.orthogonal(toward) + _ratio(size, before) * way
        return solution, False

    def _move_means(self) -> None:
        """Move the mean of each walk to the intercept: the two are confounded."""
        for index in self._active:
            term, level = self.solver.terms[index], self.solver.recentering.level_of(index)
            if term.prior is Prior.WALK and level is not None:
                mean = np.average(self.deviations[index], axis=0, weights=self._curvature[index][:, 0])
                self.deviations[index] -= mean
                self.deviations[level] += mean

    def _by_blocks(self, right: Floats) -> Floats:
        """The block-diagonal preconditioner: one block per term, and one for the unpenalized coefficients."""
        solver, out = self.solver, np.zeros_like(right)
        for index in self._active:
            block, term = self._blocks[index], solver.terms[index]
            curvature = np.repeat(self._curvature[index], right.shape[1], axis=1)
            out[block] = term.solve(curvature, solver.precision[index], right[block])
        if solver.together:
            unpenalized = [self._blocks[index].start for index in solver.together]
            out[unpenalized] = self._inverse @ right[unpenalized]
        return out

    def _hessian_times(self, numbers: Floats) -> Floats:
        """The Hessian times vectors (coefficients, M)."""
        scores, out = self._scores(numbers), np.zeros_like(numbers)
        for index in self._active:
            block, term = self._blocks[index], self.solver.terms[index]
            out[block] = self._sum(term, scores) + term.penalty_gradient(numbers[block], self.solver.precision[index])
        return out

    def _scores(self, numbers: Floats) -> Floats:
        """Linear predictors (n, M) of coefficients (coefficients, M)."""
        scores = np.zeros((len(self._hessians), numbers.shape[1]))
        for index in self._active:
            term = self.solver.terms[index]
            add_to_rows(term.codes, term.x, numbers[self._blocks[index]], scores)
        return scores

    def _sum(self, term: SolverTerm, scores: Floats) -> Floats:
        """Linear predictors (n, M) times the rows' Hessians, summed by coefficient."""
        sums = np.empty((term.size, scores.shape[1]))
        sum_products(term.codes, term.x, self._hessians, scores, sums)
        return sums


def _ratio(numbers: Floats, of: Floats) -> Floats:
    return np.divide(numbers, of, out=np.zeros_like(numbers), where=of > 0)
