"""Variances of blocks whose symbols have few rows each: by the loss of rows held out.

Two models, each fitted to one half of the rows, tell the other half. How the loss there moves with the logarithm of
a block's precision follows from the optimum's derivative, and costs one more linear solve for all blocks
together: with g the gradient of the held-out loss by the parameters and H the Hessian of the objective,
d loss / d log(precision) = -(H^-1 g)' (penalty's gradient of the block). Each logarithm then takes a few steps against
the sign of its slope, longer while the sign stays (Riedmiller and Braun 1993, Rprop).

Why not by evidence: in `variances`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tabsym.wide.newton.kernels import add_to_rows, sum_products, sum_rows
from tabsym.wide.newton.turns import Turns

Floats = NDArray[np.float64]

MANY_ENTRIES = 100
"""Blocks with fewer entries are left to the evidence, which few symbols tell better than rows held out."""

LOOKS = 6
FIRST_STEP, MOST_STEP, LONGER, SHORTER = 0.7, 1.5, 1.2, 0.5
"""Steps of the logarithm of a precision."""

FIRST_SWEEPS, SWEEPS = 4, 2
"""Of the models, before the first look and between two: they need not be settled to tell which way is down."""

LEAST, MOST = 1e-3, 1e5
"""Of a precision, over the curvature of a row of average weight and the dispersion."""


class HeldOut:
    """Models that have not seen one half of the rows each, and the loss of the rows by the one that has not.

    Parameters
    ----------
    turns : Turns
        Of two models, with the fold of each row.
    """

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self._rows = np.arange(len(turns.y))
        self._own = turns.fold.astype(np.int64)
        self._adjoint = [np.zeros_like(theta) for theta in turns.theta]
        self._reach = np.zeros_like(turns.values)

    def tune(self, free: Sequence[int]) -> Floats:
        """Precisions of the pieces at `free`, the best of a few looks."""
        turns, free = self.turns, list(free)
        logs = np.log([turns.precision[place] for place in free])
        steps, before = np.full(len(free), FIRST_STEP), np.zeros(len(free))
        best, found = np.inf, logs
        for look in range(LOOKS):
            for place, log in zip(free, logs, strict=True):
                turns.precision[place] = float(np.exp(log))
            n_sweeps = SWEEPS if look else FIRST_SWEEPS
            for _ in range(n_sweeps):
                turns.sweep()
            loss = self.loss()
            if loss < best:
                best, found = loss, logs
            signs = np.sign(self._slopes(n_sweeps)[free])
            steps = np.where(signs * before > 0, np.minimum(LONGER * steps, MOST_STEP), steps)
            steps = np.where(signs * before < 0, SHORTER * steps, steps)
            before = signs
            logs = np.clip(logs - signs * steps, np.log(LEAST), np.log(MOST))
        return np.exp(found)

    def loss(self) -> float:
        """The mean loss of rows under the model that has not seen them."""
        turns = self.turns
        margins = turns.scores()[self._rows, self._own][:, None]
        return float(
            np.average(turns.loss.values(margins, turns.y), weights=turns.weight if len(turns.weight) else None)
        )

    def _slopes(self, n_sweeps: int) -> Floats:
        """How the held-out loss moves with the logarithm of each piece's precision (pieces,), up to a factor."""
        turns = self.turns
        slopes, bends = turns.pulls()
        theirs = np.zeros_like(slopes)
        theirs[self._rows, self._own] = slopes[self._rows, self._own]
        bends[self._rows, self._own] = 0.0
        right, curvature = [], []
        for piece, theta in zip(turns.pieces, turns.theta, strict=True):
            right.append(np.empty_like(theta))
            curvature.append(np.empty_like(theta))
            sum_rows(piece.codes, piece.x, theirs, right[-1])
            sum_products(piece.codes, piece.x * piece.x, bends, np.ones_like(bends), curvature[-1])
        for _ in range(n_sweeps):
            for place in range(len(turns.pieces)):
                if not turns.silent[place]:
                    self._solve(place, bends, curvature[place], right[place])
        return np.array([
            -float((adjoint * piece.pull_back(theta, precision)).sum())
            for piece, theta, adjoint, precision in zip(
                turns.pieces, turns.theta, self._adjoint, turns.precision, strict=True
            )
        ])  # fmt: skip

    def _solve(self, place: int, bends: Floats, curvature: Floats, right: Floats) -> None:
        """A turn of one piece at H z = g, of which the rows' share of z is in `_reach`."""
        turns, piece, adjoint = self.turns, self.turns.pieces[place], self._adjoint[place]
        seen = np.empty_like(adjoint)
        sum_products(piece.codes, piece.x, bends, self._reach, seen)
        precision = turns.precision[place]
        steps = piece.solve(curvature, precision, right - seen - piece.pull_back(adjoint, precision))
        adjoint += steps
        add_to_rows(piece.codes, piece.x, steps, self._reach)


def folds_of(n_rows: int, rng: np.random.RandomState) -> NDArray[np.int8]:
    """Each row's half."""
    return (rng.permutation(n_rows) % 2).astype(np.int8)
