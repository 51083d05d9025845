"""The end of a fit: joint Newton steps of all coefficients.

Block coordinate descent converges slowly where terms nearly determine each other, and its decreases are no bound on
what is left. Up to some hundred coefficients the information is a dense matrix. Where some are unpenalized, more are
solved for without the largest term, whose own information is diagonal, and which is eliminated: the others by a dense
matrix where they are few, else by conjugate gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, block_diag, cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from tabsym.losses.loss import MULTINOMIAL
from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.information import (
    MAX_COEFS,
    MAX_SHARED,
    information_of,
    inverse_or,
    largest_ridge,
    penalty_of,
)
from tabsym.solvers.newton.terms import Prior, SolverTerm

Floats = NDArray[np.float64]

MAX_STEPS, MAX_SCORING_STEPS, MAX_HALVINGS = 8, 30, 10
"""The most Newton steps, more where the information is not the Hessian (gamma, tweedie) and convergence linear; and the
most halvings of a step that does not lower the objective."""

SLOW = 1e-3
"""Steps by the information of an earlier one converge too slowly where the Newton decrement falls to more than this
fraction; the information is then computed again."""

HARDLY_PENALIZED = 0.1
"""Given penalties below this, over the mean information on a coefficient, leave directions with hardly any curvature
where two large terms are weakly connected, as workers and firms by those who move."""

NEGLIGIBLE, FALLING, MAX_MORE = 1e-3, 0.8, 50
"""Large models without slopes: joint steps follow unless iterations lower the objective by less than the first, over
what is enough, each by less than the second times the one before, and within the third number of them."""

RIDGE_OF_DIAGONAL = 1e-10
"""Relative ridge on the diagonal: the mean of a term may be confounded with the intercept."""

MAX_ENTRIES, SOLVED = 100_000_000, 1e-6
"""Numbers in the sparse design up to which conjugate gradients are used, and the relative residual where they end."""

MIN_PRODUCTS, MAX_PRODUCTS, MAX_VISITED = 300, 3_000, 1_000_000_000
"""Conjugate gradients take as many products as visit the last number of entries of the information, within the others,
for a step, which is not taken if they are not enough, as where classes are separated."""


def finish(solver: BlockDescent, dispersion: float, close: float, *, estimated: bool = False) -> tuple[int, bool]:
    """Joint Newton steps until no coefficient moves by more than `close` of its standard errors.

    Returns the number of steps, and of iterations before them, and whether that is so: not known of models that are
    left as they are, which are large ones without unpenalized coefficients. Coefficients that a constraint holds equal
    stay equal, and others stay within it. The information is that of the first step as long as they converge by it (the
    chord method): it takes four times as long as their gradients. `estimated`: whether the variances of some terms are.
    """
    indices = solver.active
    if not indices:
        return 0, True
    enough = 0.5 * close**2 * dispersion
    system_of = _system_for(solver, indices, enough, estimated=estimated)
    if system_of is None:
        return _finish_unpenalized(solver, enough), False
    n_iterations = 0
    if isinstance(system_of, partial) and not solver.together:
        n_iterations, is_done = _iterate_on(solver, enough)
        if is_done:
            return n_iterations, True
    max_steps = MAX_STEPS if solver.loss.canonical or not solver.loss.log_link else MAX_SCORING_STEPS
    n_steps, is_done = _take_steps(solver, indices, system_of, enough, max_steps)
    return n_iterations + n_steps, is_done


def _take_steps(
    solver: BlockDescent,
    indices: list[int],
    system_of: Callable[[BlockDescent, list[int]], _System],
    enough: float,
    max_steps: int,
) -> tuple[int, bool]:
    """Joint Newton steps of some terms, at most `max_steps`; their number, and whether these have converged."""
    solver.put(list(solver.theta))  # without the rounding errors of linear predictors that were far off on the way
    before, system = np.inf, system_of(solver, indices)
    for n_steps in range(max_steps):
        gradients = _gradients(solver, indices)
        steps, decrease = system.steps(gradients)
        if n_steps and (solver.is_bound or not decrease <= SLOW * before):
            system = system_of(solver, indices)
            steps, decrease = system.steps(gradients)
        before = decrease
        if not decrease > enough:
            return n_steps, len(steps) > 0
        if not _take(solver, indices, steps):
            return n_steps, False
    return max_steps, False


def _finish_unpenalized(solver: BlockDescent, enough: float) -> int:
    """Joint steps of the slopes of several classes, where all terms are too many; the number of iterations.

    Block updates divide by an upper bound of the Hessian, which is far above it where a slope separates a class well.
    Where it separates one completely, the slopes are infinite, and a few steps suffice to report that.
    """
    n_iterations, left = 0, MAX_STEPS
    if solver.loss.code != MULTINOMIAL or solver.n_outputs * len(solver.together) > MAX_COEFS:
        return n_iterations
    while solver.together and left > 0:
        n_steps, _ = _take_steps(solver, solver.together, _DenseInformation.of, enough, left)
        left -= max(n_steps, 1)
        n_iterations += 1 + n_steps
        if solver.total * solver.update_blocks() < enough and not n_steps:
            break
    return n_iterations


def _system_for(
    solver: BlockDescent, indices: list[int], enough: float, *, estimated: bool
) -> Callable[[BlockDescent, list[int]], _System] | None:
    """How terms move together; None for large models whose terms are all penalized, or by estimated variances.

    Among these no direction is nearly without curvature, and steps of one term after the other suffice. `enough`: the
    Newton decrement, halved, that may be left.
    """
    terms = solver.terms
    ridges = [index for index in indices if terms[index].prior is Prior.RIDGE]
    n_coefs = sum(terms[index].size for index in indices)
    if solver.n_outputs * n_coefs <= MAX_COEFS:
        return _DenseInformation.of
    hardly = 0.0 if estimated else HARDLY_PENALIZED
    two = sorted(ridges, key=lambda index: -terms[index].size)[:2]
    is_free = bool(solver.together) or any(solver.precision[index] == 0.0 for index in ridges)
    is_free |= all(solver.precision[index] <= hardly * float(solver.curvature[index].mean()) for index in two)
    if not is_free or solver.is_bound or not ridges:
        return None
    largest = max(terms[index].size for index in ridges)
    n_other_coefs, k = n_coefs - largest, solver.n_outputs
    if solver.loss.code == MULTINOMIAL:
        fits = k * n_other_coefs <= MAX_COEFS and k * k * n_other_coefs * largest <= MAX_SHARED
        return _eliminated_of_classes if fits and solver.makes_information is None else None
    if n_other_coefs <= MAX_COEFS and n_other_coefs * largest <= MAX_SHARED:
        return _eliminated
    is_small = solver.makes_information is None and len(solver.y) * len(indices) <= MAX_ENTRIES
    return partial(_by_conjugate_gradients, enough=enough) if is_small and (solver.together or not estimated) else None


def _iterate_on(solver: BlockDescent, enough: float) -> tuple[int, bool]:
    """Iterate while each lowers the objective by much less than the one before; iterations, and whether it is at rest.

    What converges slowly is all that is left in the end: where the decrease falls to a thousandth of `enough`, there is
    none to speak of. Joint steps take longer than many iterations.
    """
    before = np.inf
    for n_iterations in range(1, MAX_MORE + 1):
        decrease = solver.total * solver.update_blocks()
        if decrease < NEGLIGIBLE * enough:
            return n_iterations, True
        if decrease > FALLING * before:
            break
        before = decrease
    return n_iterations, False


def _split_largest(solver: BlockDescent, indices: list[int]) -> tuple[int, list[int]]:
    """The largest ridge term, and the others."""
    largest = largest_ridge(solver.terms, indices)
    assert largest is not None, "such systems are for models that have one"
    return largest, [index for index in indices if index != largest]


def _factor_of(information: Floats, size: Floats) -> tuple[Floats, bool] | None:
    """The factorized information, overwritten, with a ridge relative to `size` (p,); None where it is singular."""
    information[np.diag_indices_from(information)] += np.where(size > 0.0, RIDGE_OF_DIAGONAL * size, 1.0)
    try:
        return cho_factor(information, lower=True, overwrite_a=True)
    except (LinAlgError, ValueError):
        return None


def _gradients(solver: BlockDescent, indices: list[int]) -> list[Floats]:
    """Gradients (q, K) of the terms, with penalties."""
    if solver.loss.code == MULTINOMIAL:
        gradients = [solver.rows.collect(solver.terms[index])[0] for index in indices]
    else:
        gradients = [gradient[:, None] for gradient in solver.gradients(indices)]
    return [
        gradient + solver.terms[index].penalty_gradient(solver.theta[index], solver.precision[index])
        for index, gradient in zip(indices, gradients, strict=True)
    ]


@dataclass(frozen=True)
class _DenseInformation:
    """The factorized information (m, m) on the moves that keep to the constraints (p, m); None where it is singular.

    Of K classes (K p, K p), class by class, and without constraints.
    """

    factor: tuple[Floats, bool] | None
    face: Floats | None

    @classmethod
    def of(cls, solver: BlockDescent, indices: list[int]) -> _DenseInformation:
        """The system of the terms at `indices`, at the current coefficients."""
        information = information_of(solver, _free_means(solver, indices)).of(indices)
        face = None
        if solver.is_bound:  # the moves that keep to the constraints that hold with equality
            pairs = [(solver.terms[index], solver.theta[index]) for index in indices]
            face = block_diag(*(term.face(coefs) if term.is_monotone else np.eye(term.size) for term, coefs in pairs))
            information = face.T @ information @ face
        return cls(_factor_of(information, np.diag(information)), face)

    def steps(self, gradients: list[Floats]) -> tuple[list[Floats], float]:
        """Newton steps of the terms, and half the Newton decrement; 0 where the system cannot be solved."""
        gradient = np.concatenate(gradients).T.ravel()
        if self.face is not None:
            gradient = self.face.T @ gradient
        if self.factor is None or not np.isfinite(gradient).all():
            return [], 0.0
        moves = -cho_solve(self.factor, gradient)
        decrease = -0.5 * float(gradient @ moves)
        ends = np.cumsum([len(block) for block in gradients])
        moves = moves if self.face is None else self.face @ moves
        return np.split(moves.reshape(-1, ends[-1]).T, ends[:-1]), decrease


@dataclass(frozen=True)
class _Eliminated:
    """The same where the largest ridge term is eliminated, whose information is diagonal (as within a panel's units).

    `index`: of the term among all; `alone` (q,): the inverse of its information; `shared` (q, p): with the others;
    `solve`: of what is left of the others' (p, p), None where it cannot.
    """

    index: int
    alone: Floats
    shared: Any
    solve: Callable[[Floats], Floats | None]

    def steps(self, gradients: list[Floats]) -> tuple[list[Floats], float]:
        """Newton steps of the terms, and half the Newton decrement; 0 where the system cannot be solved."""
        largest_gradient, other_gradients = (
            gradients[self.index][:, 0],
            [*gradients[: self.index], *gradients[self.index + 1 :]],
        )
        gradient = np.concatenate(other_gradients)[:, 0]
        is_finite = np.isfinite(gradient).all() and np.isfinite(largest_gradient).all()
        moves = self.solve(self.shared.T @ (self.alone * largest_gradient) - gradient) if is_finite else None
        if moves is None:
            return [], 0.0
        of_largest = -self.alone * (largest_gradient + self.shared @ moves)
        decrease = -0.5 * float(gradient @ moves + largest_gradient @ of_largest)
        steps = np.split(moves[:, None], np.cumsum([len(block) for block in other_gradients])[:-1])
        return [*steps[: self.index], of_largest[:, None], *steps[self.index :]], decrease


def _eliminated(solver: BlockDescent, indices: list[int]) -> _Eliminated:
    """With a dense matrix of the other terms."""
    largest, other_terms = _split_largest(solver, indices)
    information = information_of(solver, _free_means(solver, other_terms))
    diagonal, shared = information.cross_information(largest, other_terms)
    alone, left = inverse_or(0.0, diagonal), information.of(other_terms)
    size = np.diag(left).copy()
    left -= shared.T @ (alone[:, None] * shared)
    factor = _factor_of(left, size)
    return _Eliminated(
        indices.index(largest), alone, shared, lambda known: None if factor is None else cho_solve(factor, known)
    )


@dataclass(frozen=True)
class _EliminatedOfClasses:
    """The same of several classes, whose information on a coefficient of the largest term is a matrix of classes.

    `alone` (q, K, K): their inverses; `shared` (q, K, K p): with the others, class by class.
    """

    index: int
    alone: Floats
    shared: Floats
    factor: tuple[Floats, bool] | None

    def steps(self, gradients: list[Floats]) -> tuple[list[Floats], float]:
        """Newton steps of the terms, and half the Newton decrement; 0 where the system cannot be solved."""
        largest_gradient, other_gradients = (
            gradients[self.index],
            [*gradients[: self.index], *gradients[self.index + 1 :]],
        )
        gradient = np.concatenate(other_gradients).T.ravel()
        if self.factor is None or not (np.isfinite(gradient).all() and np.isfinite(largest_gradient).all()):
            return [], 0.0
        follows = np.einsum("qkl,ql->qk", self.alone, largest_gradient)
        moves = cho_solve(self.factor, np.einsum("qkm,qk->m", self.shared, follows) - gradient)
        of_largest = -np.einsum("qkl,ql->qk", self.alone, largest_gradient + self.shared @ moves)
        decrease = -0.5 * float(gradient @ moves + (largest_gradient * of_largest).sum())
        ends = np.cumsum([len(block) for block in other_gradients])[:-1]
        steps = np.split(moves.reshape(largest_gradient.shape[1], -1).T, ends)
        return [*steps[: self.index], of_largest, *steps[self.index :]], decrease


_System = _DenseInformation | _Eliminated | _EliminatedOfClasses
"""The linear system of a joint Newton step."""


def _eliminated_of_classes(solver: BlockDescent, indices: list[int]) -> _EliminatedOfClasses:
    """With a dense matrix of the other terms."""
    (largest, other_terms), k = _split_largest(solver, indices), solver.n_outputs
    information = information_of(solver, _free_means(solver, other_terms))
    blocks, shared = information.cross_information_of_classes(largest, other_terms)
    penalized = blocks + (
        solver.precision[largest] + RIDGE_OF_DIAGONAL * np.einsum("qkk->q", blocks)[:, None, None]
    ) * np.eye(k)
    # the direction common to all classes
    penalized += np.full((k, k), 1.0 / k) * np.einsum("qkk->q", blocks)[:, None, None]
    alone = np.linalg.inv(np.where(np.einsum("qkk->q", penalized)[:, None, None] > 0.0, penalized, np.eye(k)))
    left = information.of(other_terms)
    size = np.diag(left).copy()
    flat = shared.reshape(-1, shared.shape[2])
    left = left - flat.T @ (alone @ shared).reshape(flat.shape)
    return _EliminatedOfClasses(indices.index(largest), alone, shared, _factor_of(left, size))


def _by_conjugate_gradients(solver: BlockDescent, indices: list[int], enough: float) -> _Eliminated:
    """With sparse matrices, where other terms are large too; unknowns are scaled by the diagonal of what is left."""
    largest, other_terms = _split_largest(solver, indices)
    values = solver.expected_curvature()
    largest_design = _design(solver.terms[largest])
    design = sparse.hstack([_design(solver.terms[index]) for index in other_terms]).tocsr()
    weighted = sparse.csr_array(design * values[:, None])
    penalties = sparse.block_diag([_penalty(solver.terms[index], solver.precision[index]) for index in other_terms])
    other_information = sparse.csr_array(design.T @ weighted + penalties)
    alone = inverse_or(0.0, (largest_design * largest_design).T @ values + solver.precision[largest])
    shared, size = sparse.csr_array(largest_design.T @ weighted), other_information.diagonal()
    least = np.where(size > 0.0, RIDGE_OF_DIAGONAL * size, 1.0)
    diagonal = np.maximum(size - (shared * shared).T @ alone, 0.0) + least

    def left(moves: Floats) -> Floats:
        return np.asarray(other_information @ moves - shared.T @ (alone * (shared @ moves)))

    whole = LinearOperator((len(size),) * 2, matvec=left, dtype=np.float64)
    scaled = LinearOperator((len(size),) * 2, matvec=lambda moves: moves / diagonal, dtype=np.float64)

    max_iterations = int(np.clip(MAX_VISITED // (other_information.nnz + 2 * shared.nnz), MIN_PRODUCTS, MAX_PRODUCTS))
    largest_known = 0.0

    def solve(known: Floats) -> Floats | None:
        nonlocal largest_known  # the gradients of later steps are what was left of the first
        largest_known = max(largest_known, float(np.linalg.norm(known)))
        solution, n_products = cg(
            whole, known, rtol=SOLVED, atol=1e-3 * SOLVED * largest_known, maxiter=max_iterations, M=scaled
        )
        is_solved = not n_products or 0.5 * float(known @ solution) <= enough  # where none are connected it stagnates
        return np.asarray(solution) if is_solved else None

    return _Eliminated(indices.index(largest), alone, shared, solve)


def _penalty(term: SolverTerm, precision: float) -> sparse.sparray:
    """That of `penalty_of`, sparse."""
    if term.prior is Prior.WALK:
        return sparse.csr_array(penalty_of(term, precision))
    return sparse.diags_array(np.full(term.size, precision if term.prior is Prior.RIDGE else 0.0))


def _design(term: SolverTerm) -> sparse.csr_array:
    """The columns (n, q) of a term."""
    rows = np.flatnonzero(term.codes >= 0)
    values = term.x[rows] if len(term.x) else np.ones(len(rows))
    return sparse.csr_array((values, (rows, term.codes[rows])), shape=(len(term.codes), term.size))


def _free_means(solver: BlockDescent, indices: list[int]) -> dict[int, Floats]:
    """The weights of means that the intercept has, too, and no penalty: steps do not change them."""
    free = [i for i in indices if solver.terms[i].prior is Prior.WALK or solver.precision[i] == 0.0]
    sizes = {i: solver.terms[i].size for i in free if solver.recentering.level_of(i) not in (None, i)}
    return {index: np.full(size, 1.0 / size) for index, size in sizes.items()}


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
    theta, before = list(solver.theta), objective_of(solver, indices)
    share = _share_within(solver, indices, steps) if solver.is_bound else 1.0
    for _ in range(MAX_HALVINGS):
        moved = list(theta)
        for index, step in zip(indices, steps, strict=True):
            moved[index] = theta[index] + share * step
            if solver.is_constrained(index):  # up to rounding it is there
                moved[index] = solver.terms[index].feasible(moved[index], solver.curvature[index])
        solver.put(moved)
        if objective_of(solver, indices) <= before:
            return True
        share *= 0.5
    solver.put(theta)
    return False


def objective_of(solver: BlockDescent, indices: list[int]) -> float:
    """The loss of the rows plus the penalties."""
    penalties = (solver.precision[index] * solver.terms[index].length(solver.theta[index]) for index in indices)
    with np.errstate(over="ignore", invalid="ignore"):
        return solver.total * solver.mean_loss() + 0.5 * sum(penalties)
