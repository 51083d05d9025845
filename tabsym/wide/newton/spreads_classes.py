"""What the posterior of a piece is like where there are several classes, which pull at each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tabsym.wide.newton import posterior_classes
from tabsym.wide.newton.flats import inverse_of
from tabsym.wide.newton.kernels_classes import collect_matrices, matrices_of_rows, sum_matrices
from tabsym.wide.newton.pieces import Piece, Prior
from tabsym.wide.newton.posterior_classes import Entries, OfRidge, OfWalk, ridge_of_classes, triangle, walk_of_classes
from tabsym.wide.newton.spreads import Spreads
from tabsym.wide.newton.standing_classes import ManyClasses
from tabsym.wide.newton.turns import Turns

Floats = NDArray[np.float64]

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
        return len(self.turns.y) * k * (k + 1) <= 2 * posterior_classes.MOST_NUMBERS

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
