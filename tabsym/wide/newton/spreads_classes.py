"""What the posterior of a piece is like where there are several classes, which pull at each other.

Jointly with the intercepts of the classes, and slopes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tabsym.wide.newton.kernels_classes import LEAST, collect_matrices, matrices_of_rows, sum_matrices
from tabsym.wide.newton.kernels_walk import spread_walk_of_classes
from tabsym.wide.newton.pieces import NEXT_TO_NOTHING, Piece, Prior
from tabsym.wide.newton.spreads import Spreads, inverse_of
from tabsym.wide.newton.standing import ManyClasses
from tabsym.wide.newton.turns import Turns

Floats = NDArray[np.float64]

MOST_NUMBERS = 4_000_000
"""Curvature matrices of rows are kept between blocks (32 MB at most), which then take a fifth of the time; above this
each block makes its own."""


class SpreadsOfClasses(Spreads):
    """For the multinomial loss."""

    def __init__(self, turns: Turns) -> None:
        super().__init__(turns)
        self._of_rows = np.empty((0, 0))
        self._known_at = -1

    def of_flat(self) -> dict[int, Floats]:
        """Each by itself."""
        own = {place: self.turns.own_curvature(place) for place in self._flat}
        return {place: np.divide(1.0, h, out=np.zeros_like(h), where=h > 0) for place, h in own.items()}

    def weigh(self, place: int) -> tuple[float, float]:
        """The same without the variances, of which only their part in the penalty is asked here."""
        turns, piece = self.turns, self.turns.pieces[place]
        penalised = self._posterior(place).penalised
        effective = max(piece.held * turns.n_outputs - turns.precision[place] * penalised, 0.0)
        return effective, piece.length(turns.theta[place])

    def _variances(self, place: int) -> tuple[Floats, float]:
        """Variances (q, K), and the trace that the penalty has part in, of classes, which pull at each other."""
        found = self._posterior(place)
        if self.turns.pieces[place].prior is Prior.WALK:
            found = found.beside_level()
        return found.variances(), found.penalised

    def _posterior(self, place: int) -> Posterior:
        piece, precision = self.turns.pieces[place], self.turns.precision[place]
        own = self._matrices(piece, piece.x * piece.x)
        shared, whole = self._shared_of_classes(piece, own)
        return (walk_of_classes if piece.prior is Prior.WALK else _ridge_of_classes)(
            piece, own, shared, precision, whole
        )

    def _shared_of_classes(self, piece: Piece, own: Floats) -> tuple[Floats, Floats]:
        """What entries share with the flat pieces (q, K, f K), and X'HX of those (f K, f K); own (q, K, K)."""
        if self._is_intercept_alone and not len(piece.x) and (piece.codes >= 0).all():
            return own, own.sum(axis=0)
        columns = [self._column(flat)[:, 0] for flat in self._flat]
        shared = [self._matrices(piece, piece.x * one if len(piece.x) else one) for one in columns]
        nothing = np.zeros((piece.size, self.turns.n_outputs, 0))
        return np.concatenate([nothing, *shared], axis=2), self._flat_information_of_classes(columns)

    def _flat_information_of_classes(self, columns: list[Floats]) -> Floats:
        """X'HX (f K, f K) of the flat pieces, f by f matrices of classes."""
        everyone = Piece(-1, np.zeros(len(self.turns.y), dtype=np.int32), np.empty(0), 1, Prior.FLAT)
        return (
            np.block([[self._matrices(everyone, one * other)[0] for other in columns] for one in columns])
            if columns
            else np.zeros((0, 0))
        )

    def _matrices(self, piece: Piece, factor: Floats) -> Floats:
        """Curvature matrices (q, K, K) by entry, of rows times their weight and `factor` (n,), empty for 1."""
        k, rows, weight = self.turns.n_outputs, self.turns.rows, self.turns.weight
        assert isinstance(rows, ManyClasses)
        share = weight * factor if len(weight) and len(factor) else factor if len(factor) else weight
        if len(self.turns.y) * k * (k + 1) > 2 * MOST_NUMBERS:
            own = np.zeros((piece.size, k, k))
            collect_matrices(piece.codes, share, rows.probabilities, own)
            return own
        sums = np.zeros((1 + piece.size, k * (k + 1) // 2))
        sum_matrices(piece.codes, share, self._matrices_of_rows(rows), sums)
        return sums[1:, _triangle(k)]

    def _matrices_of_rows(self, rows: ManyClasses) -> Floats:
        """Lower triangles of the curvature matrices (n, K (K + 1) / 2), made once until rows move."""
        if self._known_at != self.turns.n_moves:
            k = self.turns.n_outputs
            if not len(self._of_rows):
                self._of_rows = np.empty((len(self.turns.y), k * (k + 1) // 2))
            matrices_of_rows(rows.probabilities, self._of_rows)
            self._known_at = self.turns.n_moves
        return self._of_rows


@dataclass(frozen=True)
class Posterior:
    """The posterior of a piece, jointly with the flat pieces.

    Attributes
    ----------
    own : (q, K, K)
        Covariances of entries given the flat pieces.
    followed : (q, K, f K)
        How entries follow those.
    flat : (f K, f K)
        Covariance of those.
    penalised : float
        The trace that the penalty has part in.
    """

    own: Floats
    followed: Floats
    flat: Floats
    penalised: float

    def beside_level(self) -> Posterior:
        """Of numbers beside the mean of their classes: what is common to all says nothing to the rows."""
        k = self.own.shape[1]
        beside = np.eye(k) - 1.0 / k
        followed = self.followed - self.followed.mean(axis=1, keepdims=True)
        return Posterior(beside @ self.own @ beside, followed, self.flat, self.penalised)

    def variances(self) -> Floats:
        """Of entries (q, K)."""
        with_flat = ((self.followed @ self.flat) * self.followed).sum(axis=2)
        return np.einsum("qkk->qk", self.own) + np.asarray(with_flat)


@cache
def _triangle(k: int) -> NDArray[np.int64]:
    """Where the numbers of a symmetric matrix (k, k) are in its lower triangle, row after row."""
    row, column = np.indices((k, k))
    low, high = np.minimum(row, column), np.maximum(row, column)
    return np.asarray(high * (high + 1) // 2 + low)


def _inner(left: Floats, right: Floats) -> Floats:
    """The sum over entries of left' right, (q, K, f) and (q, K, g): (f, g)."""
    rows = left.shape[0] * left.shape[1]
    return np.asarray(left.reshape(rows, left.shape[2]).T @ right.reshape(rows, right.shape[2]))


def _ridge_of_classes(piece: Piece, own: Floats, shared: Floats, precision: float, whole: Floats) -> Posterior:
    held = own + precision * np.eye(own.shape[1])
    inverse = np.asarray(np.linalg.inv(held), dtype=np.float64) if precision > 0 else _beside_level(held)
    followed = inverse @ shared
    flat = inverse_of(whole - _inner(shared, followed), np.diag(whole))
    penalised = float(np.einsum("qkk->", inverse)) + float((_inner(followed, followed) * flat).sum())
    return Posterior(inverse, followed, flat, penalised)


def _beside_level(own: Floats) -> Floats:
    """Inverses of curvature matrices (q, K, K) but for what is common to all classes, which says nothing to the rows.

    A class that a symbol never meets is as uncertain as the least curvature of a row makes it.
    """
    k = own.shape[1]
    beside = np.eye(k) - 1.0 / k
    return np.asarray(beside @ np.linalg.inv(own + LEAST * np.eye(k)) @ beside)


def walk_of_classes(piece: Piece, own: Floats, shared: Floats, precision: float, whole: Floats) -> Posterior:
    """Of a walk, whose level nothing holds (`Posterior.beside_level`); own (q, K, K)."""
    q, k = own.shape[:2]
    ridge = 1e-6 * float(np.einsum("qkk->", own)) / (q * k)  # enough to invert by, of levels that nothing holds
    inverse, followed = np.empty_like(own), np.empty_like(shared)
    apart, walk = slice(0, piece.apart), slice(piece.apart, None)
    inverse[apart] = np.linalg.inv(own[apart] + (precision + ridge) * np.eye(k))
    followed[apart] = inverse[apart] @ shared[apart]
    level = ridge + precision * NEXT_TO_NOTHING
    jumps = spread_walk_of_classes(own[walk], shared[walk], precision, level, inverse[walk], followed[walk])
    flat = inverse_of(whole - _inner(shared, followed), np.diag(whole), least=1e-3)  # beside rounding
    pulled = piece.pull_back(followed.reshape(q, -1), 1.0).reshape(followed.shape)
    penalised = float(jumps) + float(np.einsum("qkk->", inverse[apart]))
    return Posterior(inverse, followed, flat, penalised + float((_inner(pulled, followed) * flat).sum()))
