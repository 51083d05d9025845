"""The end of a fit: joint Newton steps of all coefficients, and the optimum within monotone constraints.

The constrained optimum is found from the one without constraints, whose variances are kept. Where that keeps to the
constraints, it is the constrained optimum too, as the objective is convex. Otherwise block coordinate descent goes on
from the nearest coefficients that do: each step is the minimum of its quadratic approximation within the constraint of
its term (`kernels_monotone`), and the constraints of different terms are separate, so that the descent ends at the
constrained optimum (Tseng 2001, "Convergence of a block coordinate descent method for nondifferentiable minimization").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, block_diag, cho_factor, cho_solve

from tabsym.losses.kernels import MULTINOMIAL
from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.information import MAX_COEFS, MAX_SHARED, information_of, inverse_or
from tabsym.solvers.newton.terms import Prior
from tabsym.solvers.sgd.optimizers import Newton

Floats = NDArray[np.float64]

MAX_STEPS, MAX_HALVINGS = 8, 10
"""The most Newton steps, and the most halvings of a step that does not lower the objective."""

SLOW = 1e-3
"""Steps by the information of an earlier one converge too slowly where the Newton decrement falls to more than this
fraction; the information is then computed again."""

RIDGE_OF_DIAGONAL = 1e-10
"""Relative ridge on the diagonal: the mean of a term may be confounded with the intercept."""


def finish(solver: BlockDescent, dispersion: float, close: float) -> tuple[int, bool]:
    """Joint Newton steps until no coefficient moves by more than `close` of its standard errors.

    Returns the number of steps, and whether that is so: it is not known of models that are too large. Coefficients that
    a constraint holds equal stay equal, and others stay within it. For models with up to some hundred coefficients, of
    all classes together, or so many beside the largest term where some are unpenalized; others are left as they are.
    The information is that of the first step as long as they converge by it (the chord method): it takes four times as
    long as their gradients.
    """
    indices = [index for index in range(len(solver.terms)) if not solver.dropped[index]]
    if not indices:
        return 0, True
    system_of: Callable[[BlockDescent, list[int]], _System | _Eliminated]
    if solver.n_outputs * sum(solver.terms[index].size for index in indices) <= MAX_COEFS:
        system_of = _System.of
    elif _can_eliminate(solver, indices):
        system_of = _Eliminated.of
    else:
        return 0, False
    solver.put(list(solver.theta))  # without the rounding errors of linear predictors that were far off on the way
    before, system = np.inf, system_of(solver, indices)
    for n_steps in range(MAX_STEPS):
        gradients = _gradients(solver, indices)
        steps, decrease = system.steps(gradients)
        if n_steps and (solver.is_bound or not decrease <= SLOW * before):
            system = system_of(solver, indices)
            steps, decrease = system.steps(gradients)
        before = decrease
        if not decrease > 0.5 * close**2 * dispersion:
            return n_steps, len(steps) > 0
        if not _take(solver, indices, steps):
            return n_steps, False
    return MAX_STEPS, False


def _gradients(solver: BlockDescent, indices: list[int]) -> list[Floats]:
    """Gradients (q, K) of the terms, with penalties."""
    if solver.loss.code == MULTINOMIAL:
        found = [solver.rows.collect(solver.terms[index])[0] for index in indices]
    else:
        found = [own[:, None] for own in solver.gradients(indices)]
    return [
        own + solver.terms[index].penalty_gradient(solver.theta[index], solver.precision[index])
        for index, own in zip(indices, found, strict=True)
    ]


@dataclass(frozen=True)
class _System:
    """The factorized information (m, m) on the moves that keep to the constraints (p, m); None where it is singular.

    Of K classes (K p, K p), class by class, and without constraints.
    """

    factor: tuple[Floats, bool] | None
    face: Floats | None

    @classmethod
    def of(cls, solver: BlockDescent, indices: list[int]) -> _System:
        """The system of the terms at `indices`, at the current coefficients."""
        information = information_of(solver, _free_means(solver, indices)).of(indices)
        face = _face(solver, indices) if solver.is_bound else None
        if face is not None:
            information = face.T @ information @ face
        size = np.diag(information)
        information[np.diag_indices_from(information)] += np.where(size > 0.0, RIDGE_OF_DIAGONAL * size, 1.0)
        try:
            return cls(cho_factor(information, lower=True, overwrite_a=True), face)
        except (LinAlgError, ValueError):
            return cls(None, face)

    def steps(self, gradients: list[Floats]) -> tuple[list[Floats], float]:
        """Newton steps of the terms, and half the Newton decrement; 0 where the system cannot be solved."""
        gradient = np.concatenate(gradients).T.ravel()
        if self.face is not None:
            gradient = self.face.T @ gradient
        if self.factor is None or not np.isfinite(gradient).all():
            return [], 0.0
        moves = -cho_solve(self.factor, gradient)
        decrease = -0.5 * float(gradient @ moves)
        ends = np.cumsum([len(one) for one in gradients])
        moves = moves if self.face is None else self.face @ moves
        return np.split(moves.reshape(-1, ends[-1]).T, ends[:-1]), decrease


def _can_eliminate(solver: BlockDescent, indices: list[int]) -> bool:
    """Whether more coefficients can move together: where some are unpenalized, all but a large term are few.

    Among penalized terms no direction is nearly without curvature, and steps of one term after the other suffice.
    """
    is_free = bool(solver.together) or any(solver.precision[index] == 0.0 for index in _ridges(solver, indices))
    if not is_free or solver.is_bound or solver.loss.code == MULTINOMIAL or not _ridges(solver, indices):
        return False
    sizes = [solver.terms[index].size for index in indices]
    largest = max(solver.terms[index].size for index in _ridges(solver, indices))
    beside = sum(sizes) - largest
    return beside <= MAX_COEFS and beside * largest <= MAX_SHARED


def _ridges(solver: BlockDescent, indices: list[int]) -> list[int]:
    return [index for index in indices if solver.terms[index].prior is Prior.RIDGE]


@dataclass(frozen=True)
class _Eliminated:
    """The same where the largest ridge term is eliminated, whose information is diagonal (as within a panel's units).

    `alone` (q,): its inverse; `shared` (q, p): with the others; `factor`: of what is left of the others' (p, p); None
    where that is singular. `index`: of the term among all.
    """

    index: int
    alone: Floats
    shared: Floats
    factor: tuple[Floats, bool] | None

    @classmethod
    def of(cls, solver: BlockDescent, indices: list[int]) -> _Eliminated:
        """The system of the terms at `indices`, at the current coefficients."""
        largest = max(_ridges(solver, indices), key=lambda index: solver.terms[index].size)
        others = [index for index in indices if index != largest]
        information = information_of(solver, _free_means(solver, others))
        own, shared = information.beside(largest, others)
        alone, left = inverse_or(0.0, own), information.of(others)
        size = np.diag(left).copy()
        left -= shared.T @ (alone[:, None] * shared)
        left[np.diag_indices_from(left)] += np.where(size > 0.0, RIDGE_OF_DIAGONAL * size, 1.0)
        try:
            return cls(indices.index(largest), alone, shared, cho_factor(left, lower=True, overwrite_a=True))
        except (LinAlgError, ValueError):
            return cls(indices.index(largest), alone, shared, None)

    def steps(self, gradients: list[Floats]) -> tuple[list[Floats], float]:
        """Newton steps of the terms, and half the Newton decrement; 0 where the system cannot be solved."""
        own, others = gradients[self.index][:, 0], [*gradients[: self.index], *gradients[self.index + 1 :]]
        gradient = np.concatenate(others)[:, 0]
        if self.factor is None or not np.isfinite(gradient).all() or not np.isfinite(own).all():
            return [], 0.0
        moves = -cho_solve(self.factor, gradient - self.shared.T @ (self.alone * own))
        of_largest = -self.alone * (own + self.shared @ moves)
        decrease = -0.5 * float(gradient @ moves + own @ of_largest)
        steps = np.split(moves[:, None], np.cumsum([len(one) for one in others])[:-1])
        return [*steps[: self.index], of_largest[:, None], *steps[self.index :]], decrease


def _free_means(solver: BlockDescent, indices: list[int]) -> dict[int, Floats]:
    """The weights of means that the intercept has, too, and no penalty: steps do not change them."""
    free = [i for i in indices if solver.terms[i].prior is Prior.WALK or solver.precision[i] == 0.0]
    sizes = {i: solver.terms[i].size for i in free if solver.recentering.level_of(i) not in (None, i)}
    return {index: np.full(size, 1.0 / size) for index, size in sizes.items()}


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


MAX_ROUNDS = 30
"""The most times that joint steps of the coefficients that are free are followed by an iteration that frees others."""


def is_within(solver: BlockDescent) -> bool:
    """Whether all terms keep to their constraints."""
    return all(
        term.is_feasible(theta) for term, theta in zip(solver.terms, solver.theta, strict=True) if term.is_monotone
    )


def bind(solver: BlockDescent) -> None:
    """Move the terms into their constraints, for good; nothing where they are there."""
    if is_within(solver):
        return
    solver.is_bound = True
    every = zip(solver.terms, solver.theta, solver.curvature, strict=True)
    solver.put([term.feasible(theta, own) if term.is_monotone else theta for term, theta, own in every])


def iterate_within(
    solver: BlockDescent, newton: Newton, max_more: int, dispersion: float, *, surely: bool
) -> tuple[int, bool]:
    """Iterate to the optimum within the constraints; the number of iterations, and whether they converged.

    As `BlockDescent.iterate` and then `BlockDescent.polish`, up to `max_more` times; joint steps follow once, or until
    the bound is reached where those are as many as for the former.
    """
    bind(solver)
    if not solver.is_bound:
        return 0, True
    n_sweeps, converged = solver.iterate(newton.tol, newton.max_passes, surely=surely)
    n_sweeps += solver.polish(dispersion, newton.close, max_more)[0]
    n_rounds = 1 if max_more < newton.max_passes else MAX_ROUNDS
    for _ in range(n_rounds):
        n_sweeps += 1 + finish(solver, dispersion, newton.close)[0]
        if solver.total * solver.sweep() < 0.5 * newton.close**2 * dispersion:
            return n_sweeps, converged
    return n_sweeps, converged and n_rounds == 1
