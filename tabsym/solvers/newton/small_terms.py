"""Terms of few coefficients, updated one after the other in one compiled call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tabsym.intrinsics import address_of, address_of_kernel
from tabsym.losses.kernels import SQUARED
from tabsym.solvers.newton.fixed_effects import ROUNDING
from tabsym.solvers.newton.kernels_coefs import take_turns, weigh_blocks
from tabsym.solvers.newton.kernels_rows import take_squared_turn, take_turn
from tabsym.solvers.newton.kernels_walk import step_walk, weigh_walk
from tabsym.solvers.newton.rows import LANES, SingleOutputRows, lanes_of
from tabsym.solvers.newton.terms import NEXT_TO_NOTHING, Prior, SolverTerm

Floats = NDArray[np.float64]

_CODES = np.empty(0, dtype=np.int32)
_CODES.flags.writeable = False
_NOTHING = np.empty(0)

FEW_FOR_CALLS = 2048
"""Terms of up to this many coefficients are updated in one compiled call: a call for each would cost more than it
saves."""


class SmallTerms:
    """Terms of few coefficients without a numeric factor, updated one after the other in one compiled call.

    Parameters
    ----------
    indices : sequence of int
        Their indices among all terms.
    terms : sequence of Term
        All terms.
    rows : SingleOutputRows
    theta, curvature : list of (q, W)
        Of all terms; those of the small terms become views of one array, which is updated in place.
    """

    def __init__(
        self,
        indices: Sequence[int],
        terms: Sequence[SolverTerm],
        rows: SingleOutputRows,
        theta: list[Floats],
        curvature: list[Floats],
    ) -> None:
        self.indices, self.rows = list(indices), rows
        self._at = np.array(self.indices, dtype=np.intp)
        self._blocks = {index: block for block, index in enumerate(self.indices)}
        self._terms = [terms[index] for index in indices]
        width = rows.width
        self._starts = np.cumsum([0, *(term.size * width for term in self._terms)])
        self._theta, self._curvature = (self._side_by_side(one) for one in (theta, curvature))
        self._codes = [rows.codes(term) for term in self._terms]  # kept alive: kernels read them by address
        self._codes_at = np.array([address_of(codes) for codes in self._codes], dtype=np.intp)
        self._walks = np.array([term.prior is Prior.WALK for term in self._terms])
        self._free = np.array([term.prior is Prior.FLAT for term in self._terms])
        self._aparts = np.array([term.apart for term in self._terms])
        self._lanes = np.array([lanes_of(term.size) for term in self._terms])
        self._known = np.zeros(len(indices), dtype=np.bool_)
        most = int(np.diff(self._starts).max(initial=0)) + width
        self._shares = np.array([term.share_apart for term in self._terms])
        self._work, self._moves = np.empty((4, most)), np.empty((2, most))
        self._grads, self._slopes = np.empty((LANES * most, 2)), np.empty(LANES * most)

    @staticmethod
    def is_one(term: SolverTerm) -> bool:
        """Whether a term is small and has no numeric factor."""
        return term.size <= FEW_FOR_CALLS and not len(term.x)

    def _side_by_side(self, values: list[Floats]) -> Floats:
        flat = np.concatenate([values[index].ravel() for index in self.indices])
        for index, start, end in zip(self.indices, self._starts, self._starts[1:], strict=False):
            values[index] = flat[start:end].reshape(values[index].shape)
        return flat

    def sweep(self, dropped: NDArray[np.bool_], precision: Floats, most: float) -> tuple[int, float]:
        """Update each term that is not dropped; the number of updates, and the decrease of the objective."""
        blocks = np.flatnonzero(~dropped[self._at])
        if not len(blocks):
            return 0, 0.0
        rows = self.rows
        before, steps = rows.hand_over(self._terms[blocks[0]], plain=True)
        held = precision[self._at]
        held[self._free] = 0.0
        gradient, right, pivots, level = self._work
        decrease = take_turns(
            _address_of_turn(rows.code, not len(rows.weight)), _address_of_squared() if rows.code == SQUARED else 0,
            _address_of_step() if self._walks.any() else 0, blocks, address_of(rows.codes(before)), steps,
            self._codes_at, _CODES, _NOTHING, self._starts, self._walks, self._aparts, self._shares, held,
            NEXT_TO_NOTHING, most, rows.y, rows.weight, *rows.kept(), rows.width, self._lanes, self._known,
            self._theta, self._curvature, gradient, right, pivots, level, self._grads, self._slopes, self._moves,
        )  # fmt: skip
        last = self._terms[blocks[-1]]
        rows.take_over(last, self._moves[(len(blocks) - 1) % 2, : (1 + last.size) * rows.width].copy())
        return len(blocks), float(decrease)

    def weigh(
        self, indices: Sequence[int], precision: Floats, covers: NDArray[np.bool_], information: float, weighed: Floats
    ) -> None:
        """Degrees of freedom in the penalty and sum of squares, into (a, 2), of small terms among `indices` (a,).

        For one model; `information` is that on the intercept, with which the posterior variances are joint.
        """
        asked = np.array([self._blocks.get(index, -1) for index in indices], dtype=np.intp)
        mine = asked >= 0
        own, (forward, space) = np.empty((np.count_nonzero(mine), 2)), self._work[:2]
        weigh_blocks(
            _address_of_weigh() if self._walks.any() else 0, asked[mine], self._starts, self._walks, self._aparts,
            self._shares, precision[self._at], covers[self._at], information, NEXT_TO_NOTHING, ROUNDING, self._theta,
            self._curvature, forward, space, own,
        )  # fmt: skip
        weighed[mine] = own


@cache
def _address_of_turn(loss: int, is_plain: bool) -> int:
    """The address of `take_turn`, for `take_turns`."""
    examples = (_CODES, *[_NOTHING] * 2, _CODES, *[_NOTHING] * 4, 0.0, 0, np.empty((0, 2)))
    return address_of_kernel(take_turn(loss, is_plain), examples)


@cache
def _address_of_squared() -> int:
    return address_of_kernel(take_squared_turn, (_CODES, *[_NOTHING] * 2, _CODES, *[_NOTHING] * 3, 0, _NOTHING))


@cache
def _address_of_step() -> int:
    return address_of_kernel(step_walk, (*[_NOTHING] * 3, 0, 0, *[0.0] * 4, *[_NOTHING] * 4))


@cache
def _address_of_weigh() -> int:
    return address_of_kernel(weigh_walk, (*[_NOTHING] * 2, 0, *[0.0] * 3, *[_NOTHING] * 2))
