"""What entries have in common, handed to what says the same: no row moves, and the penalty falls.

Of a cross, what the cells of a symbol share is the symbol's, as far as its own penalty lets it, and so it is with
slopes by city and by region; of any block that all rows have, what all entries share is the intercept's, and of slopes
by category their common slope's. Block coordinate descent alone converges slowly along these directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import count_column
from tabsym.losses.kernels import LOGISTIC
from tabsym.solvers.newton.fixed_effects import SAME, columns_of
from tabsym.solvers.newton.kernels_coefs import hand_level_up, hand_up
from tabsym.solvers.newton.terms import Prior

if TYPE_CHECKING:
    from tabsym.solvers.newton.block_descent import Turns

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
    """A piece whose entries each lie within one of another, `above` (q,) says which, and `cells` (p,) how many do.

    `wait`: sweeps from one time that they hand up to the next, of which `left` are to go.
    """

    place: int
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


class Sharing:
    """Which pieces hand what to which, and in which sweeps.

    Parameters
    ----------
    turns : Turns
    """

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._little = LITTLE if turns.loss.code == LOGISTIC else 0.0
        places = {piece.block: place for place, piece in enumerate(turns.pieces)}
        self._relations = [
            [self._relation(place, places[block], above) for block, above in piece.within.items()]
            for place, piece in enumerate(turns.pieces)
        ]
        ones = (place for place, piece in enumerate(turns.pieces) if piece.prior is Prior.FLAT and piece.is_constant)
        self._intercept = next((place for place in ones if turns.covers[place]), None)
        self._slopes: dict[int, Floats | None] = {}
        self._plan: list[tuple[int, list[Relation], int | None, Floats | None]] = []
        self._ridges = np.array([piece.prior is Prior.RIDGE for piece in turns.pieces])
        self._planned_for = np.zeros(len(turns.pieces), dtype=np.bool_)

    def slope_of(self, place: int) -> Floats | None:
        """What the flat pieces that step together, (f,), rise by for slopes by category that all fall by 1.

        None where these rows are no sum of theirs: there is no common slope. One of a centred number is, beside an
        intercept.
        """
        turns = self._turns
        if not len(turns.pieces[place].x) or not turns.together:
            return None
        if place not in self._slopes:
            multiplied = columns_of([turns.pieces[place]], len(turns.y))[:, 0]
            found = np.asarray(np.linalg.lstsq(turns.flat_columns, multiplied, rcond=SAME)[0], dtype=np.float64)
            left = np.linalg.norm(multiplied - turns.flat_columns @ found)
            self._slopes[place] = found if left <= SAME_SLOPE * np.linalg.norm(multiplied) else None
        return self._slopes[place]

    def _hand_slope_up(self, place: int, slope: Floats) -> None:
        """Hand the mean of slopes by category to what is multiplied by the same number."""
        theta = self._turns.theta
        mean = theta[place].mean(axis=0)
        theta[place] -= mean
        for other, by in zip(self._turns.together, slope.tolist(), strict=True):
            theta[other] = theta[other] + by * mean

    @property
    def intercept(self) -> int | None:
        """The place of the intercept."""
        return self._intercept

    def hand_up(self, fall: float) -> None:
        """Once for all pieces whose time has come, after a sweep that lowered the objective by `fall`."""
        turns = self._turns
        held = self.held()
        if not np.array_equal(held, self._planned_for):
            self._plan = [
                (place, self.above(place), self.level_of(place), self.slope_of(place))
                for place in np.flatnonzero(held).tolist()
            ]
            self._planned_for = held
        # small ones first: the other way round usedcars is .5 % worse
        for place, relations, level, slope in self._plan:
            for relation in relations:
                if relation.is_due():
                    relation.wait_on(is_little=self._hand_up_cells(relation) < self._little * fall)
            if level is not None:
                hand_level_up(turns.theta[place], turns.theta[level])
            if slope is not None:
                self._hand_slope_up(place, slope)

    def _hand_up_cells(self, relation: Relation) -> float:
        """What the penalty falls by."""
        turns, place, other = self._turns, relation.place, relation.other
        theta, upper = turns.theta[place], turns.theta[other]
        work = np.empty_like(upper)
        own, theirs = turns.precision[place], turns.precision[other]
        return float(hand_up(relation.above, relation.cells, own, theirs, theta, upper, work))

    def held(self) -> NDArray[np.bool_]:
        """Whether each piece hands up: each entry by itself is held back, and none is held at 0."""
        turns = self._turns
        return self._ridges & ~turns.silent & (turns.precision > 0.0) & (turns.precision < np.inf)

    def above(self, place: int) -> list[Relation]:
        """Those of a piece.

        None to one that another of these lies within, which hands on what it was handed, one sweep later.
        """
        is_held = self.held()
        held = [relation for relation in self._relations[place] if is_held[relation.other]]
        passed_on = {further.other for relation in held for further in self._relations[relation.other]}
        return [relation for relation in held if relation.other not in passed_on]

    def level_of(self, place: int) -> int | None:
        """The place of the intercept, where all rows have an entry of the piece, so that the level of both is one."""
        return self._intercept if not len(self._turns.pieces[place].x) and self._turns.covers[place] else None

    def _relation(self, place: int, other: int, above: NDArray[np.int32]) -> Relation:
        cells = np.zeros(self._turns.pieces[other].size)
        count_column(above, cells)
        return Relation(place, other, above, cells)
