"""Posteriors of all terms together, for variance components: those of REML, nested terms included.

The effective degrees of freedom of a term are jointly with all others then (Wood and Fasiolo 2017, equation 4). Given
the others, as in `posteriors`, those of a term that another one contains are too many, and its variance too small: of
schools beside classes within schools most or all of it went to the classes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tabsym.losses.kernels import MULTINOMIAL
from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.information import (
    are_few_beside_largest,
    information_of,
    inverse,
    inverse_or,
    largest_ridge,
    penalty_of,
)
from tabsym.solvers.newton.posteriors import SingleOutputPosteriors, TermPosteriors
from tabsym.solvers.newton.terms import Prior

Floats = NDArray[np.float64]


def are_possible(solver: BlockDescent) -> bool:
    """Whether the terms are few enough for joint posteriors."""
    return solver.loss.code != MULTINOMIAL and are_few_beside_largest(solver.terms, range(len(solver.terms)))


class JointPosteriors(SingleOutputPosteriors):
    """Of the terms of one model together; the largest term is eliminated, whose information is diagonal."""

    is_joint = True

    def __init__(self, solver: BlockDescent) -> None:
        super().__init__(solver)
        self._found: dict[int, tuple[Floats, float]] = {}
        self._found_at: tuple[int, bytes] = (-1, b"")

    def weigh(self, indices: Sequence[int]) -> Floats:
        """The same as of any posteriors: each counts its degrees of freedom jointly with the others."""
        return TermPosteriors.weigh(self, indices)

    def _variances(self, index: int) -> tuple[Floats, float]:
        """Variances (q, 1), and the trace that enters the penalty."""
        at = self.solver.n_moves, self.solver.precision.tobytes()
        if at != self._found_at or index not in self._found:
            self._found, self._found_at = self._of_all(), at
        return self._found[index]

    def _levels(self, indices: Sequence[int]) -> Floats:
        """Directions (p, m) of the levels of walks, which the intercept can take where all rows have a coefficient."""
        solver, intercept = self.solver, self.solver.recentering.intercept
        ends = np.cumsum([solver.terms[index].size for index in indices])
        found = []
        for index, end in zip(indices, ends, strict=True):
            term = solver.terms[index]
            if term.prior is Prior.WALK and intercept in indices and solver.recentering.level_of(index) == intercept:
                direction = np.zeros(ends[-1])
                direction[end - term.size : end] = 1.0
                direction[ends[indices.index(intercept)] - 1] = -1.0
                found.append(direction)
        return np.array(found).T

    def _of_all(self) -> dict[int, tuple[Floats, float]]:
        solver = self.solver
        active = [index for index in range(len(solver.terms)) if not solver.dropped[index]]
        largest = largest_ridge(solver.terms, active)
        others, information = [index for index in active if index != largest], information_of(solver, {})
        left, found = information.of(others), dict[int, tuple[Floats, float]]()
        if largest is not None:
            own, shared = information.beside(largest, others)
            alone = inverse_or(0.0, own)
            follows = alone[:, None] * shared
            left = left - shared.T @ follows
        covariance = inverse(left, self._levels(others))[0]
        if largest is not None:
            variances = inverse_or(np.inf, own) + np.einsum("qp,pr,qr->q", follows, covariance, follows, optimize=True)
            found[largest] = variances[:, None], float(variances[np.isfinite(variances)].sum())
        ends = np.cumsum([0, *(solver.terms[index].size for index in others)])
        for number, index in enumerate(others):
            own = covariance[ends[number] : ends[number + 1], ends[number] : ends[number + 1]]
            trace = float(np.trace(own))
            if solver.terms[index].prior is Prior.WALK:
                trace = float((penalty_of(solver.terms[index], 1.0) * own).sum())
            found[index] = np.diag(own)[:, None].copy(), trace
        return found
