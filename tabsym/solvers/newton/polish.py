"""The end of a fit: joint Newton steps of all coefficients, and the optimum within monotone constraints.

The constrained optimum is found from the one without constraints, whose variances are kept. Where that keeps to the
constraints, it is the constrained optimum too, as the objective is convex. Otherwise block coordinate descent goes on
from the nearest coefficients that do: each step is the minimum of its quadratic approximation within the constraint of
its term (`kernels_monotone`), and the constraints of different terms are separate, so that the descent ends at the
constrained optimum (Tseng 2001, "Convergence of a block coordinate descent method for nondifferentiable minimization").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, block_diag, cho_factor, cho_solve

from tabsym.losses.kernels import MULTINOMIAL
from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.information import MAX_COEFS, information_of
from tabsym.solvers.sgd.optimizers import Newton

Floats = NDArray[np.float64]

MAX_STEPS, MAX_HALVINGS = 8, 10
"""The most Newton steps, and the most halvings of a step that does not lower the objective."""

SLOW = 1e-3
"""Steps by the information of an earlier one converge too slowly where the Newton decrement falls to more than this
fraction; the information is then computed again."""

RIDGE_OF_DIAGONAL = 1e-10
"""Relative ridge on the diagonal: the mean of a term may be confounded with the intercept."""


def finish(solver: BlockDescent, dispersion: float, close: float) -> int:
    """Joint Newton steps until no coefficient moves by more than `close` of its standard errors; the number of steps.

    Coefficients that a constraint holds equal stay equal, and others stay within it. For models with up to some hundred
    coefficients, of all classes together; others are left as they are. The information is that of the first
    step as long as they converge by it (the chord method): it takes four times as long as their gradients.
    """
    indices = [index for index in range(len(solver.terms)) if not solver.dropped[index]]
    if solver.n_outputs * sum(solver.terms[index].size for index in indices) > MAX_COEFS:
        return 0
    before, system = np.inf, _System.of(solver, indices)
    for n_steps in range(MAX_STEPS):
        gradients = _gradients(solver, indices)
        steps, decrease = system.steps(gradients)
        if n_steps and (solver.is_bound or not decrease <= SLOW * before):
            system = _System.of(solver, indices)
            steps, decrease = system.steps(gradients)
        before = decrease
        if not decrease > 0.5 * close**2 * dispersion or not _take(solver, indices, steps):
            return n_steps
    return MAX_STEPS


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
        information = information_of(solver, {}).of(indices)
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

    As `BlockDescent.iterate` and then `BlockDescent.polish`, up to `max_more` times; where these are as many as for the
    former, joint steps follow if the bound is not reached.
    """
    bind(solver)
    if not solver.is_bound:
        return 0, True
    n_sweeps, converged = solver.iterate(newton.tol, newton.max_passes, surely=surely)
    more, is_close = solver.polish(dispersion, newton.close, max_more)
    n_sweeps += more
    if is_close or max_more < newton.max_passes:
        return n_sweeps, converged
    for _ in range(MAX_ROUNDS):
        n_sweeps += 1 + finish(solver, dispersion, newton.close)
        if solver.total * solver.sweep() < 0.5 * newton.close**2 * dispersion:
            return n_sweeps, converged
    return n_sweeps, False
