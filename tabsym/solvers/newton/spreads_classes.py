"""Posterior covariances of one term for several classes, jointly with the unpenalized coefficients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tabsym.solvers.newton.block_descent import Turns
from tabsym.solvers.newton.fixed_effects import inverse_of
from tabsym.solvers.newton.kernels_classes import LEAST_PROBABILITY, collect_matrices, matrices_of_rows, sum_matrices
from tabsym.solvers.newton.kernels_walk import spread_walk_of_classes
from tabsym.solvers.newton.rows import ManyClasses
from tabsym.solvers.newton.spreads import Spreads
from tabsym.solvers.newton.terms import NEXT_TO_NOTHING, Piece, Prior

Floats = NDArray[np.float64]

MOST_NUMBERS = 4_000_000
"""Curvature matrices of rows are kept between blocks (32 MB at most), which then take a fifth of the time; above this
each block makes its own. Matrices of entries are handled an eighth of it at a time."""


@dataclass(frozen=True)
class Entries:
    """The curvature matrices of a block's entries, and what they share with the flat pieces, as lower triangles (q, T).

    `shared`: of each flat piece; None where it is the intercept alone, and the same.
    """

    own: Floats
    shared: list[Floats] | None
    n_classes: int

    def chunks(self) -> Iterator[tuple[slice, Floats, Floats]]:
        """Some entries after the others: which, their matrices (q, K, K) and what they share (q, K, f K).

        Of many symbols and classes the matrices of all at once would be far larger than the table.
        """
        step = max(1, MOST_NUMBERS // (8 * self.n_classes**2))
        for first in range(0, len(self.own), step):
            some = slice(first, first + step)
            yield some, *self._matrices(some)

    def all(self) -> tuple[Floats, Floats]:
        """The same of all entries."""
        return self._matrices(slice(None))

    def _matrices(self, some: slice) -> tuple[Floats, Floats]:
        square = triangle(self.n_classes)
        own = np.ascontiguousarray(self.own[some][:, square])  # an index lays it out as it likes, kernels do not
        if self.shared is None:
            return own, own
        shared = [one[some][:, square] for one in self.shared]
        return own, np.concatenate([np.zeros((len(own), self.n_classes, 0)), *shared], axis=2)


@dataclass(frozen=True)
class OfWalk:
    """The posterior of a walk, jointly with the flat pieces.

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

    def variances(self) -> Floats:
        """Of entries (q, K), beside the mean of their classes: what is common to all says nothing to the rows."""
        k = self.own.shape[1]
        beside = np.eye(k) - 1.0 / k
        followed = self.followed - self.followed.mean(axis=1, keepdims=True)
        return _variances(beside @ self.own @ beside, followed, self.flat)


@dataclass(frozen=True)
class OfRidge:
    """The posterior of entries that are held back each by itself, jointly with the flat pieces.

    Attributes
    ----------
    entries : Entries
    precision : float
    left : (f K, f K)
        The information on the flat pieces that is left beside the entries.
    flat : (f K, f K)
        Its inverse.
    penalised : float
        The trace that the penalty has part in.
    """

    entries: Entries
    precision: float
    left: Floats
    flat: Floats
    penalised: float

    def variances(self) -> Floats:
        """Of entries (q, K)."""
        found = []
        for _, own, shared in self.entries.chunks():
            inverse = _inverse(own, self.precision)
            found.append(_variances(inverse, inverse @ shared, self.flat))
        return np.concatenate(found)


@cache
def triangle(k: int) -> NDArray[np.int64]:
    """Where the numbers of a symmetric matrix (k, k) are in its lower triangle, row after row."""
    row, column = np.indices((k, k))
    low, high = np.minimum(row, column), np.maximum(row, column)
    return np.asarray(high * (high + 1) // 2 + low)


def _inner(left: Floats, right: Floats) -> Floats:
    """The sum over entries of left' right, (q, K, f) and (q, K, g): (f, g)."""
    rows = left.shape[0] * left.shape[1]
    return np.asarray(left.reshape(rows, left.shape[2]).T @ right.reshape(rows, right.shape[2]))


def _variances(own: Floats, followed: Floats, flat: Floats) -> Floats:
    with_flat = ((followed @ flat) * followed).sum(axis=2)
    return np.einsum("qkk->qk", own) + np.asarray(with_flat)


def ridge_of_classes(entries: Entries, precision: float, whole: Floats) -> OfRidge:
    """Of entries held back each by itself; whole (f K, f K) is the information on the flat pieces."""
    taken, follow, alone = np.zeros_like(whole), np.zeros_like(whole), 0.0
    for _, own, shared in entries.chunks():
        inverse = _inverse(own, precision)
        followed = inverse @ shared
        taken += _inner(shared, followed)
        follow += _inner(followed, followed)
        alone += float(np.einsum("qkk->", inverse))
    left = whole - taken
    flat = inverse_of(left, np.diag(whole))
    return OfRidge(entries, precision, left, flat, alone + float((follow * flat).sum()))


def _inverse(own: Floats, precision: float) -> Floats:
    held = own + precision * np.eye(own.shape[1])
    return np.asarray(np.linalg.inv(held), dtype=np.float64) if precision > 0 else _beside_level(held)


def _beside_level(own: Floats) -> Floats:
    """Inverses of curvature matrices (q, K, K) but for what is common to all classes, which says nothing to the rows.

    A class that a symbol never meets is as uncertain as the least curvature of a row makes it.
    """
    k = own.shape[1]
    beside = np.eye(k) - 1.0 / k
    return np.asarray(beside @ np.linalg.inv(own + LEAST_PROBABILITY * np.eye(k)) @ beside)


def walk_of_classes(piece: Piece, own: Floats, shared: Floats, precision: float, whole: Floats) -> OfWalk:
    """Of a walk, and what is held to its mean; the level of both nothing holds; own (q, K, K)."""
    q, k = own.shape[:2]
    ridge = 1e-6 * float(np.einsum("qkk->", own)) / (q * k)  # enough to invert by, of levels that nothing holds
    inverse, followed = np.empty_like(own), np.empty_like(shared)
    walk, beside, eye = slice(piece.apart, None), piece.share_apart * precision, np.eye(k)
    alone = np.linalg.inv(own[: piece.apart] + (beside + ridge) * eye)  # given the mean of the walk
    handed = shared[walk] + beside * (alone @ shared[: piece.apart]).sum(axis=0) / (q - piece.apart)
    # beside the flat pieces, what the mean of the walk says: entries apart are held to it, as in `kernels_walk`
    both = np.concatenate([handed, np.broadcast_to(eye / (q - piece.apart), own[walk].shape)], axis=2)
    solved = np.empty_like(both)
    jumps = spread_walk_of_classes(
        own[walk], both, precision, ridge + precision * NEXT_TO_NOTHING, inverse[walk], solved
    )  # fmt: skip
    level, of_mean = solved[:, :, -k:], solved[:, :, -k:].mean(axis=0)
    pull = (beside * eye - beside * beside * alone).sum(axis=0)
    taken = np.linalg.solve(eye + pull @ of_mean, pull)
    mean = solved[:, :, :-k].mean(axis=0)
    followed[walk] = solved[:, :, :-k] - level @ (taken @ mean)
    followed[: piece.apart] = alone @ (shared[: piece.apart] + beside * (mean - of_mean @ taken @ mean))
    of_mean = of_mean - of_mean @ taken @ of_mean
    inverse[walk] -= level @ taken @ level.transpose(0, 2, 1)
    inverse[: piece.apart] = alone + beside * beside * (alone @ of_mean @ alone)
    away, step = beside * alone - eye, np.diff(level, axis=0)
    apart = alone + away @ of_mean @ away.transpose(0, 2, 1)
    flat = inverse_of(whole - _inner(shared, followed), np.diag(whole), least=1e-3)  # beside rounding
    pulled = piece.pull_back(followed.reshape(q, -1), 1.0).reshape(followed.shape)
    penalised = float(jumps) - float(np.einsum("qik,kl,qil->", step, taken, step))
    penalised += piece.share_apart * float(np.einsum("qkk->", apart))
    return OfWalk(inverse, followed, flat, penalised + float((_inner(pulled, followed) * flat).sum()))


COMMON = 1e-9
"""Of the information on what is not held back: along what is common to all classes there is none but rounding."""

SWEEPS, SWEEPS_OF_MANY = 2, 4
"""Between two looks; where there are many rows and classes a look is dearer."""


class SpreadsOfClasses(Spreads):
    """For the multinomial loss."""

    def __init__(self, turns: Turns) -> None:
        super().__init__(turns)
        self._of_rows = np.empty((0, 0))
        self._information: Floats | None = None
        self._known_at = -1

    def of_flat(self) -> Floats:
        """Of numbers beside the mean of their classes: what is common to all says nothing to the rows."""
        turns = self.turns
        whole = self._flat_information()
        found = [whole]
        for place, piece in enumerate(turns.pieces):
            if piece.prior is Prior.RIDGE and not turns.silent[place] and turns.precision[place] > 0:
                found.append(ridge_of_classes(self._entries(piece), turns.precision[place], whole).left)
        beside = np.kron(np.eye(len(self.flat)), np.eye(turns.n_outputs) - 1.0 / turns.n_outputs)
        inverses = [beside @ inverse_of(one, np.diag(whole), least=COMMON) @ beside for one in found]
        widest = max(inverses, key=lambda one: float(np.trace(one)))
        return np.einsum("ikjk->ijk", widest.reshape(2 * (len(self.flat), turns.n_outputs)))

    def weigh(self, places: Sequence[int]) -> Floats:
        """The same without the variances, of which only their part in the penalty is asked here."""
        return np.array([self._weigh(place) for place in places]).reshape(-1, 2)

    def _weigh(self, place: int) -> tuple[float, float]:
        penalised = self._posterior(place).penalised
        return self._effective(place, penalised), self.turns.pieces[place].length(self.turns.theta[place])

    def _variances(self, place: int) -> tuple[Floats, float]:
        """Variances (q, K), and the trace that the penalty has part in, of classes, which pull at each other."""
        found = self._posterior(place)
        return found.variances(), found.penalised

    def _posterior(self, place: int) -> OfWalk | OfRidge:
        piece, precision = self.turns.pieces[place], self.turns.precision[place]
        entries, whole = self._entries(piece), self._flat_information()
        if piece.prior is Prior.WALK:
            return walk_of_classes(piece, *entries.all(), precision, whole)
        return ridge_of_classes(entries, precision, whole)

    def _entries(self, piece: Piece) -> Entries:
        own = self._triangles(piece.codes, piece.x * piece.x, piece.size)
        if self._is_intercept_alone and not len(piece.x) and (piece.codes >= 0).all():
            return Entries(own, None, self.turns.n_outputs)
        shared = [
            self._triangles(piece.codes, piece.x * one if len(piece.x) else one, piece.size) for one in self._columns.T
        ]
        return Entries(own, shared, self.turns.n_outputs)

    def _flat_information(self) -> Floats:
        """X'HX (f K, f K) of the flat pieces, f by f matrices of classes, made once until rows move."""
        self._forget()
        if self._information is None:
            k, columns = self.turns.n_outputs, self._columns.T
            everyone = np.zeros(len(self.turns.y), dtype=np.int32)
            found = np.zeros((len(columns), k, len(columns), k))
            for i, one in enumerate(columns):
                for j, other in enumerate(columns[: i + 1]):
                    found[i, :, j] = found[j, :, i] = self._triangles(everyone, one * other, 1)[0][triangle(k)]
            self._information = found.reshape(len(columns) * k, len(columns) * k)
        return self._information

    @property
    def n_sweeps(self) -> int:
        return SWEEPS if self.keeps_matrices else SWEEPS_OF_MANY

    @property
    def keeps_matrices(self) -> bool:
        """Whether the rows' curvature matrices are made once for all blocks."""
        k = self.turns.n_outputs
        return len(self.turns.y) * k * (k + 1) <= 2 * MOST_NUMBERS

    def _triangles(self, codes: NDArray[np.int32], factor: Floats, size: int) -> Floats:
        """Lower triangles (q, K (K + 1) / 2) of the entries' curvature matrices.

        Of rows times their weight and `factor` (n,), empty for 1.
        """
        k, rows, weight = self.turns.n_outputs, self.turns.rows, self.turns.weight
        assert isinstance(rows, ManyClasses)
        share = weight * factor if len(weight) and len(factor) else factor if len(factor) else weight
        sums = np.zeros((1 + size, k * (k + 1) // 2))
        if self.keeps_matrices:
            sum_matrices(codes, share, self._matrices_of_rows(rows), sums)
        else:
            collect_matrices(codes, share, rows.probabilities, sums)
        return sums[1:]

    def _matrices_of_rows(self, rows: ManyClasses) -> Floats:
        """Lower triangles of the rows' curvature matrices (n, K (K + 1) / 2), made once until rows move."""
        self._forget()
        if not len(self._of_rows):
            k = self.turns.n_outputs
            self._of_rows = np.empty((len(self.turns.y), k * (k + 1) // 2))
            matrices_of_rows(rows.probabilities, self._of_rows)
        return self._of_rows

    def _forget(self) -> None:
        """What was made of the rows where they stood before."""
        if self._known_at != self.turns.n_moves:
            self._of_rows, self._information, self._known_at = np.empty((0, 0)), None, self.turns.n_moves
