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
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, block_diag, cho_factor, cho_solve
from scipy.linalg.lapack import dpotrf, dpotri, dtrtri

from tabsym.losses.kernels import MULTINOMIAL
from tabsym.solvers.newton.block_descent import BlockDescent, address_of
from tabsym.solvers.newton.certainty import TermCovariance, without_rounding
from tabsym.solvers.newton.kernels_joint import mirror, multiply, subtract_square, sum_beside, sum_pairs
from tabsym.solvers.newton.terms import Prior, SolverTerm

Floats = NDArray[np.float64]

MAX_COEFS, MAX_BESIDE = 1_200, 100
"""Coefficients of all classes up to which the covariance is one matrix, and of the small terms that a term of a larger
model is joint with."""

MAX_FACTOR = 100_000
"""The most numbers that are stored of the covariance of one term."""

MAX_SHARED = 20_000_000
"""The most numbers that a term shares with others for which the rank of all is found."""

MAX_VISITS = 200_000_000
"""Rows times pairs of terms and of classes to sum over, above which multiclass covariances are not computed."""

SINGULAR = 1e-9
"""Eigenvalues below this, of an information matrix scaled to diagonal 1, count as 0."""

ALMOST_ZERO = 1e-14, 1e-12, 1e-10
"""Tried in turn: this fraction of the largest variance is added to the diagonal for the Cholesky factor of a singular
matrix."""

UNTOLD = 1e-2
"""A coefficient is not identified where more than this fraction of its squared length lies in the null space of the
information."""


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


class Columns:
    """Terms side by side, for the kernels of several terms.

    Parameters
    ----------
    terms : sequence of Term
    """

    def __init__(self, terms: Sequence[SolverTerm]) -> None:
        self._kept = [(np.ascontiguousarray(term.codes), np.ascontiguousarray(term.x)) for term in terms]
        ends = np.cumsum([0, *(term.size for term in terms)])
        self.size, self.starts = int(ends[-1]), ends[:-1]
        codes_at = np.array([address_of(codes) for codes, _ in self._kept], dtype=np.intp)
        x_at = np.array([address_of(x) if len(x) else 0 for _, x in self._kept], dtype=np.intp)
        self.arrays = codes_at, x_at, self.starts, np.empty(0, dtype=np.int32), np.empty(0)

    def sum_pairs(self, values: Floats) -> Floats:
        """The sums (p, p) of the rows' values (n,) by pairs of coefficients."""
        sums = np.zeros((self.size, self.size))
        products = np.empty(len(values) if self.arrays[1].any() else 0)
        sum_pairs(*self.arrays, values, products, sums)
        return sums


class Information:
    """The penalized Fisher information, term by term.

    Parameters
    ----------
    solver : BlockDescent
        At the optimum.
    shares : dict of index -> (q,)
        Weights of the means that are not identified: they are constrained to 0, which changes no identified quantity.
    """

    def __init__(self, solver: BlockDescent, shares: dict[int, Floats]) -> None:
        self.solver, self.shares = solver, shares
        self.k = solver.n_outputs if solver.loss.code == MULTINOMIAL else 1

    @cached_property
    def _weight(self) -> Floats:
        return self.solver.weight if len(self.solver.weight) else np.ones(len(self.solver.y))

    @cached_property
    def _probabilities(self) -> Floats:
        return self.solver.rows.probabilities  # type: ignore[union-attr]

    @cached_property
    def _of_rows(self) -> Floats:
        return self.solver.expected_curvature()

    def _curvature(self, k: int, m: int) -> Floats:
        """The rows' Hessians (n,) by the linear predictors of two classes."""
        if self.solver.loss.code != MULTINOMIAL:
            return self._of_rows
        one, other = self._probabilities[:, k], self._probabilities[:, m]
        return np.asarray(self._weight * one * ((1.0 if k == m else 0.0) - other))

    def beside(self, index: int, others: Sequence[int]) -> tuple[Floats, Floats]:
        """The information without penalty between a term and others (q, p), and its own diagonal with it (q,)."""
        own, sums = self.sum_beside(index, others)
        return own + self.solver.precision[index], sums

    def sum_beside(
        self, index: int, others: Sequence[int], found: tuple[Floats, Floats] | None = None
    ) -> tuple[Floats, Floats]:
        """The sums over rows in `beside`, added to those of other rows."""
        term, columns = self.solver.terms[index], Columns([self.solver.terms[other] for other in others])
        own, sums = found or (np.zeros(term.size), np.zeros((term.size, columns.size)))
        sum_beside(term.codes, term.x, *columns.arrays, self._curvature(0, 0), own, sums)
        return own, sums

    def penalty(self, index: int) -> Floats:
        """The penalty matrix (q, q) of a term."""
        return penalty_of(self.solver.terms[index], self.solver.precision[index])

    def of(self, indices: Sequence[int]) -> Floats:
        """The information on several terms (K p, K p), class by class, with penalties and constraints."""
        whole, k = self.sum_pairs(indices), self.k
        ends = np.cumsum([0, *(self.solver.terms[index].size for index in indices)]).tolist()
        own = [slice(a, b) for a, b in pairwise(ends)]
        for i, index in enumerate(indices):
            self._hold(whole, own[i], index)
        return whole.reshape(k * ends[-1], k * ends[-1])

    def sum_pairs(self, indices: Sequence[int]) -> Floats:
        """The sums over rows in `of` (K, p, K, p)."""
        columns, k = Columns([self.solver.terms[index] for index in indices]), self.k
        p = columns.size
        if k == 1:
            return columns.sum_pairs(self._curvature(0, 0)).reshape(1, p, 1, p)
        whole = np.empty((k, p, k, p))
        for one in range(k):
            for other in range(one + 1):
                whole[one, :, other] = whole[other, :, one] = columns.sum_pairs(self._curvature(one, other))
        return whole

    def rank(self, indices: Sequence[int]) -> tuple[int | None, int]:
        """The rank of the design of terms, see `rank_of_terms`, and how many coefficients are informed, each alone."""
        solver = self.solver
        terms = [solver.terms[index] for index in indices]
        weight = solver.weight if len(solver.weight) else np.ones(len(solver.y))
        return rank_of_terms(terms, weight), sum(informed(term, weight) for term in terms)

    def _hold(self, whole: Floats, own: slice, index: int) -> None:
        """Add a term's penalty, and constrain its mean, and the direction common to all classes."""
        k, size = self.k, own.stop - own.start
        level = max(float(np.trace(whole[0, own, 0, own])), 1e-300)
        for one in range(k):
            whole[one, own, one, own] += self.penalty(index)
            if index in self.shares:
                whole[one, own, one, own] += level * np.outer(self.shares[index], self.shares[index])
        if k > 1 and not (self.solver.terms[index].prior is Prior.RIDGE and self.solver.precision[index] > 0.0):
            for one in range(k):
                for other in range(k):
                    whole[one, own, other, own] += level / size * np.eye(size)

    def visits(self, indices: Sequence[int]) -> float:
        """The number of rows visited to compute the information on terms."""
        return 0.5 * len(self.solver.y) * len(indices) ** 2 * self.k**2


def information_of(solver: BlockDescent, shares: dict[int, Floats]) -> Information:
    """The penalized information of a model, by sums over its rows, wherever these are."""
    return (solver.makes_information or Information)(solver, shares)


def rank_of_terms(terms: Sequence[SolverTerm], weight: Floats) -> int | None:
    """The rank of the design of terms side by side, of rows with weights (n,); None where they are too many.

    The largest term is eliminated first: a row selects one of its coefficients, so that its information is diagonal.
    """
    *small, largest = sorted(terms, key=lambda term: term.size)
    columns = Columns(small)
    if columns.size > MAX_COEFS or columns.size * largest.size > MAX_SHARED:
        return None
    own, shared = np.zeros(largest.size), np.zeros((largest.size, columns.size))
    sum_beside(largest.codes, largest.x, *columns.arrays, weight, own, shared)
    whole = columns.sum_pairs(weight)
    told, size = own > 0.0, np.diag(whole)
    root = np.sqrt(np.where(size > 0.0, size, 1.0))
    left = whole - (shared[told] / own[told, None]).T @ shared[told]
    return int(told.sum()) + int(np.count_nonzero(np.linalg.eigvalsh(left / np.outer(root, root)) > SINGULAR))


def informed(term: SolverTerm, weight: Floats) -> int:
    """How many coefficients of a term occur in rows of positive weight, with a number that is not 0."""
    size = weight * np.square(term.x) if len(term.x) else weight
    return int(np.count_nonzero(np.bincount(term.codes + 1, size, minlength=term.size + 1)[1:]))


def penalty_of(term: SolverTerm, precision: float) -> Floats:
    """The penalty matrix (q, q) of a term."""
    if term.prior is Prior.FLAT:
        return np.zeros((1, 1))
    if term.prior is Prior.RIDGE:
        return np.asarray(precision * np.eye(term.size))
    jumps, beside = np.diff(np.eye(term.size)[term.apart :], axis=0), np.eye(term.size)[: term.apart]
    beside[:, term.apart :] = -1.0 / max(term.size - term.apart, 1)
    return np.asarray(precision * (jumps.T @ jumps + term.share_apart * beside.T @ beside))


def inverse(information: Floats) -> tuple[Floats, NDArray[np.bool_], Floats]:
    """The pseudoinverse (p, p), which coefficients (p,) have no information, and the null space (p, r) of the others.

    Variances are right for combinations of coefficients that are orthogonal to the null space.
    """
    scaled, root, told = _scaled(information)
    upper = _cholesky(scaled)
    unknown: Floats = np.empty((len(root), 0))
    if upper is not None:
        found = dpotri(upper, overwrite_c=1)[0].T
        mirror(found)
    else:
        axes, unknown = _known_axes(scaled)
        found = axes @ axes.T
    found[~told] = found[:, ~told] = 0.0
    found /= root[:, None]
    found /= root
    return found, ~told, unknown / root[:, None]


def _root_of_inverse(information: Floats) -> Floats:
    """R (p, r), contiguous, with RR' the inverse; of the information the lower triangle is read."""
    scaled, root, told = _scaled(information)
    upper = _cholesky(scaled)
    found = _known_axes(scaled)[0] if upper is None else dtrtri(upper, overwrite_c=1)[0]
    found[~told] = 0.0
    return np.ascontiguousarray(found / root[:, None])


def _scaled(information: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """The information scaled to diagonal 1, the roots (p,) of its diagonal, and where (p,) that is positive."""
    size = np.diag(information)
    told = size > 0.0
    root = np.sqrt(np.where(told, size, 1.0))
    scaled = information / root[:, None]
    scaled /= root
    scaled[~told, ~told] = 1.0
    return scaled, root, told


def _cholesky(scaled: Floats) -> Floats | None:
    """U with U'U a matrix of diagonal 1, by its lower triangle; None where it is singular, or nearly."""
    upper, info = dpotrf(scaled.T)
    if info != 0 or np.square(np.diag(upper)).min(initial=1.0) < SINGULAR:
        return None
    return np.asarray(upper)


def _known_axes(scaled: Floats) -> tuple[Floats, Floats]:
    """R (p, r) with RR' the pseudoinverse of a singular matrix, and its null space (p, p - r)."""
    lengths, axes = np.linalg.eigh(scaled)
    known = lengths > SINGULAR
    unknown = axes[:, ~known]
    unknown[np.square(unknown).sum(axis=1) <= UNTOLD] = 0.0
    return axes[:, known] / np.sqrt(lengths[known]), unknown


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
            root = size * _root_of_inverse(left)
            start = np.zeros(root.shape[1]) if mean is None else -((mean * alone) @ shared) @ root
            factor = np.empty((term.size, root.shape[1]))
            multiply(shared, alone, root, start, factor)
            own = size**2 * _inverse_or(np.inf, own)
            return TermCovariance(own[:, None], factor[None], np.empty(0) if mean is None else mean)
        matrix, untold, unknown = inverse(self._information.of([index]))
        follows = matrix @ shared
        factor = follows @ _root_of_inverse(left - shared.T @ follows)
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


MAX_STEPS, MAX_HALVINGS = 8, 10
"""The most Newton steps, and the most halvings of a step that does not lower the objective."""

RIDGE_OF_DIAGONAL = 1e-10
"""Relative ridge on the diagonal: the mean of a term may be confounded with the intercept."""


def finish(solver: BlockDescent, dispersion: float, close: float) -> int:
    """Joint Newton steps until no coefficient moves by more than `close` of its standard errors; the number of steps.

    Coefficients that a constraint holds equal stay equal, and others stay within it. For models with one linear
    predictor and up to some hundred coefficients; others are left as they are.
    """
    indices = [index for index in range(len(solver.terms)) if not solver.dropped[index]]
    if solver.loss.code == MULTINOMIAL or sum(solver.terms[index].size for index in indices) > MAX_COEFS:
        return 0
    for n_steps in range(MAX_STEPS):
        steps, decrease = _steps(solver, indices)
        if not decrease > 0.5 * close**2 * dispersion or not _take(solver, indices, steps):
            return n_steps
    return MAX_STEPS


def _steps(solver: BlockDescent, indices: list[int]) -> tuple[list[Floats], float]:
    """Newton steps of the terms, and half the Newton decrement; 0 where the system cannot be solved."""
    gradients = [
        own + solver.terms[index].penalty_gradient(solver.theta[index], solver.precision[index])[:, 0]
        for index, own in zip(indices, solver.gradients(indices), strict=True)
    ]
    gradient = np.concatenate(gradients)
    information = information_of(solver, {}).of(indices)
    face = _face(solver, indices) if solver.is_bound else None
    if face is not None:
        information, gradient = face.T @ information @ face, face.T @ gradient
    size = np.diag(information)
    information[np.diag_indices_from(information)] += np.where(size > 0.0, RIDGE_OF_DIAGONAL * size, 1.0)
    try:
        moves = -cho_solve(cho_factor(information, lower=True, overwrite_a=True), gradient)
    except (LinAlgError, ValueError):
        return [], 0.0
    decrease = -0.5 * float(gradient @ moves)
    ends = np.cumsum([len(one) for one in gradients])[:-1]
    return [move[:, None] for move in np.split(moves if face is None else face @ moves, ends)], decrease


def _face(solver: BlockDescent, indices: list[int]) -> Floats:
    """The moves (p, m) of all coefficients that keep to the constraints that hold with equality."""
    terms, theta = solver.terms, solver.theta
    own = [terms[i].face(theta[i]) if terms[i].is_monotone else np.eye(terms[i].size) for i in indices]
    return np.asarray(block_diag(*own))


def _share_within(solver: BlockDescent, indices: list[int], steps: list[Floats]) -> float:
    """The largest fraction, up to 1, of steps that stays within the constraints."""
    share = 1.0
    for index, step in zip(indices, steps, strict=True):
        term, theta = solver.terms[index], solver.theta[index]
        room = np.concatenate([np.abs(theta[:, 0]) * abs(term.sign), np.diff(theta[term.chain, 0])])
        closer = np.concatenate([-term.sign * step[:, 0], -np.diff(step[term.chain, 0])])
        if (closer > 0.0).any():
            share = min(share, float((room[closer > 0.0] / closer[closer > 0.0]).min()))
    return share


def _take(solver: BlockDescent, indices: list[int], steps: list[Floats]) -> bool:
    """Take the step, halved until the objective decreases; whether it does."""
    theta, before = list(solver.theta), _objective(solver, indices)
    share = _share_within(solver, indices, steps) if solver.is_bound else 1.0
    for _ in range(MAX_HALVINGS):
        moved = list(theta)
        for index, step in zip(indices, steps, strict=True):
            moved[index] = theta[index] + share * step
            if solver.is_held(index):  # up to rounding it is there
                moved[index] = solver.terms[index].feasible(moved[index], solver.curvature[index])
        solver.put(moved)
        if _objective(solver, indices) <= before:
            return True
        share *= 0.5
    solver.put(theta)
    return False


def _objective(solver: BlockDescent, indices: list[int]) -> float:
    """The loss of the rows plus the penalties."""
    penalties = (solver.precision[index] * solver.terms[index].length(solver.theta[index]) for index in indices)
    with np.errstate(over="ignore", invalid="ignore"):
        return solver.total * solver.mean_loss() + 0.5 * sum(penalties)
