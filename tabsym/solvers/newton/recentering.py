"""Recentering: the mean of a term's coefficients moves to a coarser term; predictions stay, and the penalty decreases.

The mean of an interaction's coefficients over a category moves to that category's main effect, as far as the penalty of
this one allows, and likewise slopes by city to slopes by region; the mean of all coefficients of a term that every row
has moves to the intercept, and that of slopes by category to their common slope (hierarchical centering, Gelfand, Sahu
and Carlin 1995). Block coordinate descent alone converges slowly along these directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tabsym.categories import count_column
from tabsym.losses.kernels import LOGISTIC
from tabsym.losses.loss import Loss
from tabsym.solvers.newton.fixed_effects import SAME, columns_of
from tabsym.solvers.newton.kernels_coefs import recenter, recenter_to_intercept
from tabsym.solvers.newton.terms import Prior, SolverTerm

Floats = NDArray[np.float64]

MIN_DECREASE, MAX_WAIT = 3e-4, 8
"""Two classes: an interaction whose recentering lowers the penalty by less than this fraction of the iteration's
decrease is recentered half as often, at least every eighth iteration; otherwise twice as often (`benchmarks/evidence`,
"Waiting")."""


SAME_SLOPE = 1e-9
"""A relative difference below this, of a slope from a sum of other columns, is rounding."""


class SolverState(Protocol):
    """What recentering uses of a solver: its terms, their coefficients and precisions."""

    terms: list[SolverTerm]
    y: Floats
    loss: Loss
    theta: list[Floats]
    precision: Floats
    dropped: NDArray[np.bool_]
    covers: NDArray[np.bool_]
    together: list[int]

    @property
    def flat_columns(self) -> Floats: ...


@dataclass
class Relation:
    """A term each of whose coefficients is nested in one coefficient of another term.

    `parent` (q,): the index of that coefficient; `n_children` (p,): the number of nested coefficients of each parent.
    `wait`: iterations between two recenterings, of which `left` remain.
    """

    index: int
    other: int
    parent: NDArray[np.int32]
    n_children: Floats
    wait: int = 1
    left: int = 1

    def is_due(self) -> bool:
        """Whether to recenter in this iteration; called once per iteration."""
        self.left -= 1
        return self.left == 0

    def wait_on(self, *, is_small: bool) -> None:
        """Set the interval to the next recentering, longer where the decrease was small."""
        self.wait = min(2 * self.wait, MAX_WAIT) if is_small else max(self.wait // 2, 1)
        self.left = self.wait


class Recentering:
    """The terms that are recentered, their parents, and the iterations in which it happens.

    Parameters
    ----------
    solver : SolverState
    """

    def __init__(self, solver: SolverState) -> None:
        self._solver = solver
        self._min_decrease = MIN_DECREASE if solver.loss.code == LOGISTIC else 0.0
        indices = {term.block: index for index, term in enumerate(solver.terms)}
        self._relations = [
            [self._relation(index, indices[block], parent) for block, parent in term.within.items()]
            for index, term in enumerate(solver.terms)
        ]
        ones = (index for index, term in enumerate(solver.terms) if term.prior is Prior.FLAT and term.is_constant)
        self.intercept = next((index for index in ones if solver.covers[index]), None)
        self._slopes: dict[int, Floats | None] = {}
        self._plan: list[tuple[int, list[Relation], int | None, Floats | None]] = []
        self._ridges = np.array([term.prior is Prior.RIDGE for term in solver.terms])
        self._planned_for = np.zeros(len(solver.terms), dtype=np.bool_)

    def slope_of(self, index: int) -> Floats | None:
        """The changes (f,) of the jointly updated terms that compensate a shift of all slopes by category by -1.

        None where the numeric column is no linear combination of theirs: then there is no common slope. A centred
        column is one, together with the intercept.
        """
        solver = self._solver
        if not len(solver.terms[index].x) or not solver.together:
            return None
        if index not in self._slopes:
            multiplied = columns_of([solver.terms[index]], len(solver.y))[:, 0]
            found = np.asarray(np.linalg.lstsq(solver.flat_columns, multiplied, rcond=SAME)[0], dtype=np.float64)
            left = np.linalg.norm(multiplied - solver.flat_columns @ found)
            self._slopes[index] = found if left <= SAME_SLOPE * np.linalg.norm(multiplied) else None
        return self._slopes[index]

    def _recenter_slopes(self, index: int, slope: Floats) -> None:
        """Move the mean of slopes by category to the common slope of the same column."""
        theta = self._solver.theta
        mean = theta[index].mean(axis=0)
        theta[index] -= mean
        for other, by in zip(self._solver.together, slope.tolist(), strict=True):
            theta[other] = theta[other] + by * mean

    def recenter(self, decrease: float) -> None:
        """Recenter the terms that are due, after an iteration that lowered the objective by `decrease`."""
        solver = self._solver
        held = self.recentered()
        if not np.array_equal(held, self._planned_for):
            self._plan = [
                (index, self.above(index, held), self.level_of(index), self.slope_of(index))
                for index in np.flatnonzero(held).tolist()
            ]
            self._planned_for = held
        # small terms first, which predicts better (`benchmarks/evidence/constants.md`)
        for index, relations, level, slope in self._plan:
            for relation in relations:
                if relation.is_due():
                    relation.wait_on(is_small=self._recenter_interaction(relation) < self._min_decrease * decrease)
            if level is not None:
                recenter_to_intercept(solver.theta[index], solver.theta[level])
            if slope is not None:
                self._recenter_slopes(index, slope)

    def _recenter_interaction(self, relation: Relation) -> float:
        """Recenter an interaction; returns the decrease of the penalty."""
        solver, index, other = self._solver, relation.index, relation.other
        theta, upper = solver.theta[index], solver.theta[other]
        work = np.empty_like(upper)
        own, theirs = solver.precision[index], solver.precision[other]
        return float(recenter(relation.parent, relation.n_children, own, theirs, theta, upper, work))

    def recentered(self) -> NDArray[np.bool_]:
        """Which terms are recentered: ridge terms that are penalized and not dropped."""
        solver = self._solver
        return self._ridges & ~solver.dropped & (solver.precision > 0.0) & (solver.precision < np.inf)

    def above(self, index: int, recentered: NDArray[np.bool_]) -> list[Relation]:
        """The relations of a term to its nearest parent terms, of those that are `recentered` too.

        A parent of one of these is skipped: it receives the mean from that one in the next iteration.
        """
        held = [relation for relation in self._relations[index] if recentered[relation.other]]
        passed_on = {further.other for relation in held for further in self._relations[relation.other]}
        return [relation for relation in held if relation.other not in passed_on]

    def level_of(self, index: int) -> int | None:
        """The index of the intercept where every row has a coefficient: the two means are confounded then."""
        return self.intercept if not len(self._solver.terms[index].x) and self._solver.covers[index] else None

    def _relation(self, index: int, other: int, parent: NDArray[np.int32]) -> Relation:
        n_children = np.zeros(self._solver.terms[other].size)
        count_column(parent, n_children)
        return Relation(index, other, parent, n_children)
