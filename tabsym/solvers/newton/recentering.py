"""What coefficients have in common, handed to what says the same: no row moves, and the penalty falls.

Of an interaction, what the cells of a category share is the category's, as far as its own penalty lets it, and so it is
with slopes by city and by region; of any block that all rows have, what all coefficients share is the intercept's, and
of slopes by category their common slope's. Block coordinate descent alone converges slowly along these directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import count_column
from tabsym.losses.kernels import LOGISTIC
from tabsym.solvers.newton.fixed_effects import SAME, columns_of
from tabsym.solvers.newton.kernels_coefs import hand_level_up, recenter
from tabsym.solvers.newton.terms import Prior

if TYPE_CHECKING:
    from tabsym.solvers.newton.block_descent import BlockDescent

Floats = NDArray[np.float64]

LITTLE, MOST_WAIT = 3e-4, 8
"""Cells that hand up less than this share of what the sweep lowers the objective by wait twice as many sweeps until
they do so again, up to so many; others half as many. Of amazon's hundred relations (all triples in) two in five hand up
more, were none to wait: its fit takes a tenth less time, and scores of two classes are level. Of amounts and of more
classes none waits: it saves no time there, usedcars is .1 to .3 % worse (six seeds of five folds), covtype_small's
coarse intervals by .0013; at 1e-3 rossmann is .3 % worse, too, and amazon by .0001."""


SAME_SLOPE = 1e-9
"""Of a number by which slopes differ from a sum of others: rounding."""


@dataclass
class Relation:
    """A term whose coefficients each lie within one of another, `above` (q,) says which, and `cells` (p,) how many do.

    `wait`: sweeps from one time that they hand up to the next, of which `left` are to go.
    """

    index: int
    other: int
    above: NDArray[np.int32]
    cells: Floats
    wait: int = 1
    left: int = 1

    def is_due(self) -> bool:
        """Whether the time has come; to be asked once a sweep."""
        self.left -= 1
        return self.left == 0

    def wait_on(self, *, is_little: bool) -> None:
        """Wait for the next time, longer where there was little to hand up."""
        self.wait = min(2 * self.wait, MOST_WAIT) if is_little else max(self.wait // 2, 1)
        self.left = self.wait


class Recentering:
    """Which terms hand what to which, and in which sweeps.

    Parameters
    ----------
    solver : BlockDescent
    """

    def __init__(self, solver: BlockDescent) -> None:
        self._solver = solver
        self._little = LITTLE if solver.loss.code == LOGISTIC else 0.0
        indices = {term.block: index for index, term in enumerate(solver.terms)}
        self._relations = [
            [self._relation(index, indices[block], above) for block, above in term.within.items()]
            for index, term in enumerate(solver.terms)
        ]
        ones = (index for index, term in enumerate(solver.terms) if term.prior is Prior.FLAT and term.is_constant)
        self._intercept = next((index for index in ones if solver.covers[index]), None)
        self._slopes: dict[int, Floats | None] = {}
        self._plan: list[tuple[int, list[Relation], int | None, Floats | None]] = []
        self._ridges = np.array([term.prior is Prior.RIDGE for term in solver.terms])
        self._planned_for = np.zeros(len(solver.terms), dtype=np.bool_)

    def slope_of(self, index: int) -> Floats | None:
        """What the flat terms that step together, (f,), rise by for slopes by category that all fall by 1.

        None where these rows are no sum of theirs: there is no common slope. One of a centred number is, beside an
        intercept.
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

    def _hand_slope_up(self, index: int, slope: Floats) -> None:
        """Hand the mean of slopes by category to what is multiplied by the same number."""
        theta = self._solver.theta
        mean = theta[index].mean(axis=0)
        theta[index] -= mean
        for other, by in zip(self._solver.together, slope.tolist(), strict=True):
            theta[other] = theta[other] + by * mean

    @property
    def intercept(self) -> int | None:
        """The place of the intercept."""
        return self._intercept

    def recenter(self, decrease: float) -> None:
        """Once for all terms whose time has come, after a sweep that lowered the objective by `decrease`."""
        solver = self._solver
        held = self.held()
        if not np.array_equal(held, self._planned_for):
            self._plan = [
                (index, self.above(index), self.level_of(index), self.slope_of(index))
                for index in np.flatnonzero(held).tolist()
            ]
            self._planned_for = held
        # small ones first: the other way round usedcars is .5 % worse
        for index, relations, level, slope in self._plan:
            for relation in relations:
                if relation.is_due():
                    relation.wait_on(is_little=self._hand_up_cells(relation) < self._little * decrease)
            if level is not None:
                hand_level_up(solver.theta[index], solver.theta[level])
            if slope is not None:
                self._hand_slope_up(index, slope)

    def _hand_up_cells(self, relation: Relation) -> float:
        """What the penalty falls by."""
        solver, index, other = self._solver, relation.index, relation.other
        theta, upper = solver.theta[index], solver.theta[other]
        work = np.empty_like(upper)
        own, theirs = solver.precision[index], solver.precision[other]
        return float(recenter(relation.above, relation.cells, own, theirs, theta, upper, work))

    def held(self) -> NDArray[np.bool_]:
        """Whether each term hands up: each coefficient by itself is penalized, and none is held at 0."""
        solver = self._solver
        return self._ridges & ~solver.dropped & (solver.precision > 0.0) & (solver.precision < np.inf)

    def above(self, index: int) -> list[Relation]:
        """Those of a term.

        None to one that another of these lies within, which hands on what it was handed, one sweep later.
        """
        is_held = self.held()
        held = [relation for relation in self._relations[index] if is_held[relation.other]]
        passed_on = {further.other for relation in held for further in self._relations[relation.other]}
        return [relation for relation in held if relation.other not in passed_on]

    def level_of(self, index: int) -> int | None:
        """The place of the intercept, where all rows have a coefficient of the term, so that the level of both is
        one.
        """
        return self._intercept if not len(self._solver.terms[index].x) and self._solver.covers[index] else None

    def _relation(self, index: int, other: int, above: NDArray[np.int32]) -> Relation:
        cells = np.zeros(self._solver.terms[other].size)
        count_column(above, cells)
        return Relation(index, other, above, cells)
