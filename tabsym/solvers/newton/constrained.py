"""The optimum within monotone constraints.

It is found from the one without constraints, whose variances are kept. Where that keeps to the constraints, it is the
constrained optimum too, as the objective is convex. Otherwise block coordinate descent goes on from the nearest
coefficients that do: each step is the minimum of its quadratic approximation within the constraint of its term
(`kernels_monotone`), and the constraints of different terms are separate, so that the descent ends at the constrained
optimum (Tseng 2001, "Convergence of a block coordinate descent method for nondifferentiable minimization").
"""

from __future__ import annotations

from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.joint import finish
from tabsym.solvers.sgd.optimizers import Newton

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
