"""The pieces of few entries, which take their turns in one call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tabsym.wide.newton.flats import ROUNDING
from tabsym.wide.newton.kernels_sweep import take_turns, weigh_blocks
from tabsym.wide.newton.pieces import NEXT_TO_NOTHING, Piece, Prior
from tabsym.wide.newton.standing import LANES, OneScore, lanes_of

Floats = NDArray[np.float64]

_CODES = np.empty(0, dtype=np.int32)
_NOTHING = np.empty(0)

FEW_FOR_CALLS = 2048
"""Entries, up to which steps by themselves would take longer to call than the exp of each one by one does here."""


class SmallPieces:
    """Pieces of few entries that nothing multiplies, side by side.

    Parameters
    ----------
    places : sequence of int
        Theirs among all.
    pieces : sequence of Piece
        All of them.
    rows : OneScore
    theta, curvature : list of (q, W)
        Of all pieces; those of these become parts of one array, and are moved in place.
    """

    def __init__(
        self,
        places: Sequence[int],
        pieces: Sequence[Piece],
        rows: OneScore,
        theta: list[Floats],
        curvature: list[Floats],
    ) -> None:
        self.places, self.rows = list(places), rows
        self._at = np.array(self.places, dtype=np.intp)
        self._blocks = {place: block for block, place in enumerate(self.places)}
        self._pieces = [pieces[place] for place in places]
        width = rows.width
        self._starts = np.cumsum([0, *(piece.size * width for piece in self._pieces)])
        self._theta, self._curvature = (self._side_by_side(one) for one in (theta, curvature))
        self._codes = [rows.codes(piece) for piece in self._pieces]  # kept, as kernels read them by their addresses
        self._codes_at = np.array([_address(codes) for codes in self._codes], dtype=np.intp)
        self._walks = np.array([piece.prior is Prior.WALK for piece in self._pieces])
        self._free = np.array([piece.prior is Prior.FLAT for piece in self._pieces])
        self._aparts = np.array([piece.apart for piece in self._pieces])
        self._lanes = np.array([lanes_of(piece.size) for piece in self._pieces])
        self._known = np.zeros(len(places), dtype=np.bool_)
        most = int(np.diff(self._starts).max(initial=0)) + width
        self._work, self._moves = np.empty((4, most)), np.empty((2, most))
        self._pulls, self._slopes = np.empty((LANES * most, 2)), np.empty(LANES * most)

    @staticmethod
    def is_one(piece: Piece) -> bool:
        """Whether a piece is one."""
        return piece.size <= FEW_FOR_CALLS and not len(piece.x)

    def _side_by_side(self, values: list[Floats]) -> Floats:
        flat = np.concatenate([values[place].ravel() for place in self.places])
        for place, start, end in zip(self.places, self._starts, self._starts[1:], strict=False):
            values[place] = flat[start:end].reshape(values[place].shape)
        return flat

    def sweep(self, silent: NDArray[np.bool_], precision: Floats, most: float) -> tuple[int, float]:
        """A turn for each that is not silent: how many there were, and what they lower the objective by."""
        blocks = np.flatnonzero(~silent[self._at])
        if not len(blocks):
            return 0, 0.0
        rows = self.rows
        before, steps = rows.hand_over(self._pieces[blocks[0]], plain=True)
        held = precision[self._at]
        held[self._free] = 0.0
        gradient, right, pivots, level = self._work
        fall = take_turns(
            blocks, _address(rows.codes(before)), steps, self._codes_at, _CODES, _NOTHING, self._starts, self._walks,
            self._aparts, held, NEXT_TO_NOTHING, most, rows.y, rows.weight, *rows.kept(), rows.width, self._lanes,
            self._known, self._theta, self._curvature, gradient, right, pivots, level, self._pulls, self._slopes,
            self._moves,
        )  # fmt: skip
        last = self._pieces[blocks[-1]]
        rows.take_over(last, self._moves[(len(blocks) - 1) % 2, : (1 + last.size) * rows.width].copy())
        return len(blocks), float(fall)

    def weigh(
        self, places: Sequence[int], precision: Floats, covers: NDArray[np.bool_], information: float, weighed: Floats
    ) -> None:
        """Of those that are among `places` (a,): the variances' part in the penalty, and the length, into (a, 2).

        Of one model; `information` on the number that all rows have, with which the variances are joint.
        """
        asked = np.array([self._blocks.get(place, -1) for place in places], dtype=np.intp)
        mine = asked >= 0
        own = np.empty((np.count_nonzero(mine), 2))
        weigh_blocks(
            asked[mine], self._starts, self._walks, self._aparts, precision[self._at], covers[self._at], information,
            NEXT_TO_NOTHING, ROUNDING, self._theta, self._curvature, self._work, np.empty(1), own,
        )  # fmt: skip
        weighed[mine] = own


def _address(codes: NDArray[np.int32]) -> int:
    return int(codes.__array_interface__["data"][0])
