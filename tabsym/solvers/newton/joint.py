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
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, block_diag, cho_factor, cho_solve
from scipy.linalg.lapack import dpotrf, dpotri

from tabsym.losses.kernels import MULTINOMIAL
from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.certainty import TermCovariance
from tabsym.solvers.newton.kernels_rows import sum_pairs
from tabsym.solvers.newton.terms import Prior, SolverTerm

Floats = NDArray[np.float64]

MAX_COEFS, MAX_BESIDE = 800, 100
"""Coefficients of all classes up to which the covariance is one matrix, and of the small terms that a term of a larger
model is joint with."""

MAX_FACTOR = 100_000
"""The most numbers that are stored of the covariance of one term."""

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
    """Covariances (K, p, p) of all coefficients, and which of these (p,) are not identified."""

    matrix: Floats
    untold: NDArray[np.bool_]


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
        if solver.loss.code == MULTINOMIAL:
            self._weight = solver.weight if len(solver.weight) else np.ones(len(solver.y))
            self._probabilities = solver.rows.probabilities  # type: ignore[union-attr]
        else:
            self._of_rows = solver.expected_curvature()

    def _curvature(self, k: int, m: int) -> Floats:
        """The rows' Hessians (n,) by the linear predictors of two classes."""
        if self.solver.loss.code != MULTINOMIAL:
            return self._of_rows
        one, other = self._probabilities[:, k], self._probabilities[:, m]
        return np.asarray(self._weight * one * ((1.0 if k == m else 0.0) - other))

    def between(self, one: int, other: int, k: int = 0, m: int = 0) -> Floats:
        """The information without penalty between two terms (q, r)."""
        terms = self.solver.terms
        left, right = terms[one], terms[other]
        values = self._curvature(k, m)
        for term in (left, right):
            if len(term.x):
                values = values * term.x
        sums = np.zeros((left.size, right.size))
        sum_pairs(left.codes, right.codes, np.ascontiguousarray(values), sums)
        return sums

    def diagonal(self, index: int) -> Floats:
        """The diagonal of a ridge term (q,), with its penalty."""
        term = self.solver.terms[index]
        seen = term.codes >= 0
        values = self._curvature(0, 0) * (np.square(term.x) if len(term.x) else 1.0)
        return np.bincount(term.codes[seen], values[seen], minlength=term.size) + self.solver.precision[index]

    def penalty(self, index: int) -> Floats:
        """The penalty matrix (q, q) of a term."""
        return penalty_of(self.solver.terms[index], self.solver.precision[index])

    def of(self, indices: Sequence[int]) -> Floats:
        """The information on several terms (K p, K p), class by class, with penalties and constraints."""
        terms, k = self.solver.terms, self.k
        starts = np.cumsum([0, *(terms[index].size for index in indices)])
        p = int(starts[-1])
        whole = np.zeros((k, p, k, p))
        own = [slice(a, b) for a, b in pairwise(starts.tolist())]
        for one in range(k):
            for other in range(one + 1):
                for i, left in enumerate(indices):
                    for j in range(len(indices)) if other < one else range(i + 1):
                        block = self.between(left, indices[j], one, other)
                        whole[one, own[i], other, own[j]] = block
                        whole[other, own[j], one, own[i]] = block.T
        for i, index in enumerate(indices):
            self._hold(whole, own[i], index)
        return whole.reshape(k * p, k * p)

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


def penalty_of(term: SolverTerm, precision: float) -> Floats:
    """The penalty matrix (q, q) of a term."""
    if term.prior is Prior.FLAT:
        return np.zeros((1, 1))
    if term.prior is Prior.RIDGE:
        return np.asarray(precision * np.eye(term.size))
    jumps, beside = np.diff(np.eye(term.size)[term.apart :], axis=0), np.eye(term.size)[: term.apart]
    beside[:, term.apart :] = -1.0 / max(term.size - term.apart, 1)
    return np.asarray(precision * (jumps.T @ jumps + term.share_apart * beside.T @ beside))


def inverse(information: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """The inverse (p, p), and which coefficients (p,) are not identified; the variances of these are meaningless."""
    size = np.diag(information)
    told = size > 0.0
    root = np.sqrt(np.where(told, size, 1.0))
    scaled = information / np.outer(root, root)
    scaled[~told, ~told] = 1.0
    found, missing = _inverse_of_positive(scaled), ~told
    if found is None:
        lengths, axes = np.linalg.eigh(scaled)
        known = lengths > SINGULAR
        found = (axes[:, known] / lengths[known]) @ axes[:, known].T
        missing = ~told | (np.square(axes[:, ~known]).sum(axis=1) > UNTOLD)
    found[~told] = found[:, ~told] = 0.0
    return found / np.outer(root, root), missing


def _inverse_of_positive(scaled: Floats) -> Floats | None:
    """The inverse of a matrix of diagonal 1; None where it is singular, or nearly."""
    lower, info = dpotrf(scaled, lower=1)
    if info != 0 or np.square(np.diag(lower)).min(initial=1.0) < SINGULAR:
        return None
    found, info = dpotri(lower, lower=1)
    if info != 0:
        return None
    return np.asarray(np.tril(found) + np.tril(found, -1).T)


def whole_covariance(solver: BlockDescent, indices: Sequence[int], shares: dict[int, Floats]) -> Whole | None:
    """Joint covariance of the terms at `indices`, in their order; None where they are too many."""
    information = Information(solver, shares)
    p = sum(solver.terms[index].size for index in indices)
    if p * information.k > MAX_COEFS or (information.k > 1 and information.visits(indices) > MAX_VISITS):
        return None
    k = information.k
    found, untold = inverse(information.of(indices))
    if k > 1:  # less the mean over classes, which is not identified
        beside = np.kron(np.eye(k) - 1.0 / k, np.eye(p))
        found = beside @ found @ beside
    blocks = found.reshape(k, p, k, p)
    return Whole(np.array([blocks[one, :, one] for one in range(k)]), np.any(untold.reshape(k, p), axis=0))


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
        self._information = Information(solver, shares)
        self._terms, self._shares = solver.terms, shares
        ordered = sorted(
            indices, key=lambda index: (solver.terms[index].prior is not Prior.FLAT, solver.terms[index].size)
        )
        self.beside = _first_of(ordered, solver.terms, MAX_BESIDE)
        self.others = [index for index in ordered if index not in self.beside]
        self._matrix = self._information.of(self.beside)
        sizes = [solver.terms[index].size for index in self.beside]
        self._starts = np.cumsum([0, *sizes])
        self._largest = next(
            (index for index in reversed(self.others) if self._terms[index].prior is Prior.RIDGE), None
        )

    @property
    def is_exact(self) -> bool:
        """Whether no term is conditioned on: there is one other term, and its information is diagonal."""
        if len(self.others) != 1 or self._largest is None:
            return False
        return len(self._matrix) * self._terms[self._largest].size <= MAX_FACTOR

    def __call__(self) -> tuple[dict[int, TermCovariance], Callable[[dict[int, Floats]], float]]:
        """Covariances by index, and a function for the variance of a linear combination, with weights (q,) by index."""
        found = {index: self._of_other(index) for index in self.others}
        left, taken, own = self._matrix, None, None
        if self._largest is not None:
            shared = self._shared(self._largest, len(self._matrix))
            own = self._information.diagonal(self._largest)
            taken = _divided(shared, own)
            left = left - taken @ shared.T
        matrix, untold = inverse(left)
        for number, index in enumerate(self.beside):
            at = slice(self._starts[number], self._starts[number + 1])
            found[index] = covariance_of(matrix[at, at][None], untold[at])

        def variance(by: dict[int, Floats]) -> float:
            c = np.zeros(len(matrix))
            for number, index in enumerate(self.beside):
                if index in by:
                    c[self._starts[number] : self._starts[number + 1]] = by[index]
            alone = 0.0
            if self._largest in by and taken is not None and own is not None:
                c -= taken @ by[self._largest]
                alone = float(_divided(np.square(by[self._largest]), own).sum())
            return float(c @ matrix @ c) + alone

        return found, variance

    def _of_other(self, index: int) -> TermCovariance:
        """Covariance of a term that is not among the small ones, given the others that are not."""
        term, width = self._terms[index], len(self._matrix)
        while width > 1 and width * term.size > MAX_FACTOR:
            width = int(self._starts[self._starts < width][-1]) or 1
        shared = self._shared(index, width)
        if term.prior is Prior.RIDGE:
            own = self._information.diagonal(index)
            follows = _divided(shared, own).T
            alone = np.divide(1.0, own, out=np.full_like(own, np.inf), where=own > 0.0)
            left, _ = inverse(self._matrix[:width, :width] - shared @ follows)
            return TermCovariance(alone[:, None], (follows @ root_of(left))[None])
        matrix, untold = inverse(self._information.of([index]))
        follows = matrix @ shared.T
        left, _ = inverse(self._matrix[:width, :width] - shared @ follows)
        return covariance_of((matrix + follows @ left @ follows.T)[None], untold)

    def _shared(self, index: int, width: int) -> Floats:
        """Information between the first small terms, of `width` coefficients, and one other term (width, q)."""
        beside = [one for one, start in zip(self.beside, self._starts, strict=False) if start < width]
        return np.concatenate([self._information.between(one, index) for one in beside])


def covariance_of(matrices: Floats, untold: NDArray[np.bool_]) -> TermCovariance:
    """From matrices (K, q, q), and which coefficients (q,) are not identified."""
    own = np.zeros(matrices.shape[1:2] + matrices.shape[:1])
    own[untold] = np.inf
    return TermCovariance(own, np.array([root_of(one) for one in matrices]))


def root_of(matrix: Floats) -> Floats:
    """R with RR' = a matrix that is positive semidefinite up to rounding."""
    shift = np.diag(matrix).max(initial=0.0)
    for share in ALMOST_ZERO:
        lower, info = dpotrf(matrix + share * shift * np.eye(len(matrix)), lower=1)
        if info == 0:
            return np.asarray(np.tril(lower))
    lengths, axes = np.linalg.eigh(matrix)
    return np.asarray(axes * np.sqrt(np.maximum(lengths, 0.0)))


def _divided(numbers: Floats, by: Floats) -> Floats:
    return np.divide(numbers, by, out=np.zeros_like(numbers), where=by > 0.0)


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
    slopes, _ = solver.grads()
    gradients = []
    for index in indices:
        term = solver.terms[index]
        seen = term.codes >= 0
        own = (slopes * term.x if len(term.x) else slopes)[seen]
        grad = term.penalty_gradient(solver.theta[index], solver.precision[index])[:, 0]
        gradients.append(np.bincount(term.codes[seen], own, minlength=term.size) + grad)
    gradient = np.concatenate(gradients)
    information = Information(solver, {}).of(indices)
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
