"""Where rows stand under the parameters, and what that pulls entries by: for the multinomial loss."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from tabsym.wide.newton.kernels_classes import LEAST, collect_classes, move_classes, take_classes_turn
from tabsym.wide.newton.pieces import Piece
from tabsym.wide.newton.standing import FAR

Floats = NDArray[np.float64]


class ManyClasses:
    """Rows of the multinomial loss, at their probabilities: a step takes an exp per entry, and none per row.

    As for one score, steps wait for the next pass over the rows.

    Parameters
    ----------
    y, weight : (n,)
        Weight empty for none.
    start : (n, K)
        Scores before any piece.
    """

    def __init__(self, y: Floats, weight: Floats, start: Floats) -> None:
        self.y, self.weight, self.start = y, weight, start
        self.width, self.far = start.shape[1], FAR
        self._values = np.asarray(softmax(start, axis=1))
        self._scales = np.empty(len(start))
        self._waiting: tuple[Piece, Floats] | None = None
        self._classes: dict[int, Floats] = {}  # weights of rows (q, K) by entry and class, of blocks

    @property
    def probabilities(self) -> Floats:
        """Of the classes (n, K)."""
        self._catch_up()
        return self._values

    def collect(self, piece: Piece) -> tuple[Floats, Floats]:
        """Sums of slopes (q, K) by entry, and curvatures of a bound."""
        if self._waiting is None or len(piece.x) or len(self._waiting[0].x):
            return self._collect(piece, diagonal=False)
        (before, steps), self._waiting = self._waiting, None
        sums = np.empty((1 + piece.size, self.width))
        factors = np.ones((1 + before.size, self.width))
        np.exp(steps, out=factors[1:])
        take_classes_turn(before.codes, factors, piece.codes, self.weight, self._values, self._scales, sums)
        return sums[1:] - self._classes_of(piece), np.maximum(sums[1:], LEAST)

    def slopes_together(self, columns: Floats) -> Floats:
        """Slopes (f, K) of numbers that columns (n, f) are multiplied by."""
        gradient = columns.T @ self._weighed()
        for k in range(self.width):
            own = self.y == k
            gradient[:, k] -= columns[own].T @ (self.weight[own] if len(self.weight) else np.ones(int(own.sum())))
        return gradient

    def information_together(self, columns: Floats) -> Floats:
        """Information (K, f, f) on these numbers, of the bound."""
        return np.array([columns.T @ (one[:, None] * columns) for one in self._weighed().T])

    def _weighed(self) -> Floats:
        return self.probabilities * (self.weight[:, None] if len(self.weight) else 1.0)

    def reach(self, columns: Floats, steps: Floats) -> Floats:
        """What steps (f, K) of these numbers add to the scores (n, K)."""
        return columns @ steps

    def move(self, piece: Piece, steps: Floats) -> None:
        """Move rows by their entries' steps (q, K)."""
        self._catch_up()
        self._waiting = piece, steps.copy()

    def own_curvature(self, piece: Piece) -> Floats:
        """Curvature (q, K) of each entry by itself."""
        return self._collect(piece, diagonal=True)[1]

    def scores(self) -> Floats:
        """Scores (n, K), up to a number common to the classes."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.probabilities))

    def scores_by_sums(self, pieces: list[Piece], theta: list[Floats]) -> Floats:
        """Scores (n, K) of rows added up piece by piece."""
        scores = self.start.copy()
        for piece, values in zip(pieces, theta, strict=True):
            own = np.concatenate([np.zeros((1, self.width)), values])[piece.codes + 1]
            scores += own * piece.x[:, None] if len(piece.x) else own
        return scores

    def stand_at(self, scores: Floats) -> None:
        """Let rows stand at scores (n, K)."""
        self._waiting, self._values = None, np.asarray(softmax(scores, axis=1))

    def _collect(self, piece: Piece, *, diagonal: bool) -> tuple[Floats, Floats]:
        gradient, curvature = np.empty((2, piece.size, self.width))
        collect_classes(piece.codes, piece.x, self.y, self.weight, self.probabilities, diagonal, gradient, curvature)
        return gradient, curvature

    def _catch_up(self) -> None:
        if self._waiting is not None:
            piece, steps = self._waiting
            move_classes(piece.codes, piece.x, steps, self._values)
            self._waiting = None

    def _classes_of(self, piece: Piece) -> Floats:
        if piece.block not in self._classes:
            cells = (1 + piece.codes.astype(np.int64)) * self.width + self.y.astype(np.int64)
            sums = np.bincount(cells, self.weight if len(self.weight) else None, (1 + piece.size) * self.width)
            self._classes[piece.block] = sums.reshape(-1, self.width)[1:].astype(np.float64)
        return self._classes[piece.block]
