"""What the posterior of a piece is like where there are several classes, which pull at each other.

Jointly with the intercepts of the classes, and slopes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tabsym.wide.newton.kernels_classes import LEAST, collect_matrices
from tabsym.wide.newton.kernels_walk import spread_walk_of_classes
from tabsym.wide.newton.pieces import NEXT_TO_NOTHING, Piece, Prior
from tabsym.wide.newton.spreads import Spreads, inverse_of
from tabsym.wide.newton.standing import ManyClasses

Floats = NDArray[np.float64]


class SpreadsOfClasses(Spreads):
    """For the multinomial loss."""

    def of_flat(self) -> dict[int, Floats]:
        """Each by itself."""
        own = {place: self.turns.own_curvature(place) for place in self._flat}
        return {place: np.divide(1.0, h, out=np.zeros_like(h), where=h > 0) for place, h in own.items()}

    def _variances(self, place: int) -> tuple[Floats, float]:
        """Variances (q, K), and the trace that the penalty has part in, of classes, which pull at each other."""
        piece, precision = self.turns.pieces[place], self.turns.precision[place]
        q, k = piece.size, self.turns.n_outputs
        own = self._matrices(piece.codes, self._share(piece.x, piece.x), q)
        shared, whole = self._shared_of_classes(piece, own)
        if piece.prior is Prior.WALK:
            return _walk_of_classes(piece, own, shared, precision, whole)
        held = own + precision * np.eye(k)
        inverse = np.linalg.inv(held) if precision > 0 else _beside_level(held)
        pulled = inverse @ shared
        left = inverse_of(whole - np.einsum("qkf,qkg->fg", shared, pulled), np.diag(whole))
        variances = np.einsum("qkk->qk", inverse + pulled @ left @ pulled.transpose(0, 2, 1))
        return variances, float(variances.sum())

    def _shared_of_classes(self, piece: Piece, own: Floats) -> tuple[Floats, Floats]:
        """What entries share with the flat pieces (q, K, f K), and X'HX of those (f K, f K); own (q, K, K)."""
        if self._is_intercept_alone and not len(piece.x) and (piece.codes >= 0).all():
            return own, own.sum(axis=0)
        columns = [self._column(flat)[:, 0] for flat in self._flat]
        shared = [self._matrices(piece.codes, self._share(piece.x, one), piece.size) for one in columns]
        nothing = np.zeros((piece.size, self.turns.n_outputs, 0))
        return np.concatenate([nothing, *shared], axis=2), self._flat_information_of_classes(columns)

    def _flat_information_of_classes(self, columns: list[Floats]) -> Floats:
        """X'HX (f K, f K) of the flat pieces, f by f matrices of classes."""
        everyone = np.zeros(len(self.turns.y), dtype=np.int32)
        return (
            np.block(
                [[self._matrices(everyone, self._share(one, other), 1)[0] for other in columns] for one in columns]
            )
            if columns
            else np.zeros((0, 0))
        )

    def _matrices(self, codes: NDArray[np.int32], share: Floats, size: int) -> Floats:
        """Curvature matrices (size, K, K) by entry, of rows times their share."""
        k, rows = self.turns.n_outputs, self.turns.rows
        assert isinstance(rows, ManyClasses)
        own = np.zeros((size, k, k))
        collect_matrices(codes, share, rows.probabilities, own)
        return own

    def _share(self, *factors: Floats) -> Floats:
        """Weight times factors (n,), of which empty ones are 1."""
        weight = self.turns.weight
        share = weight.copy() if len(weight) else np.ones(len(self.turns.y))
        for factor in factors:
            if len(factor):
                share *= factor
        return share


def _beside_level(own: Floats) -> Floats:
    """Inverses of curvature matrices (q, K, K) but for what is common to all classes, which says nothing to the rows.

    A class that a symbol never meets is as uncertain as the least curvature of a row makes it.
    """
    k = own.shape[1]
    beside = np.eye(k) - 1.0 / k
    return np.asarray(beside @ np.linalg.inv(own + LEAST * np.eye(k)) @ beside)


def _walk_of_classes(
    piece: Piece, own: Floats, shared: Floats, precision: float, whole: Floats
) -> tuple[Floats, float]:
    """Variances (q, K), and the trace that its penalty has part in, of a walk of classes; own (q, K, K).

    Variances are of numbers beside the mean of their classes: what is common to all classes says nothing to the rows,
    and the level of a walk is held by nothing else.
    """
    q, k = own.shape[:2]
    ridge = 1e-6 * float(np.einsum("qkk->", own)) / (q * k)  # enough to invert by, of levels that nothing holds
    inverse, followed = np.empty_like(own), np.empty_like(shared)
    apart, walk = slice(0, piece.apart), slice(piece.apart, None)
    inverse[apart] = np.linalg.inv(own[apart] + (precision + ridge) * np.eye(k))
    followed[apart] = inverse[apart] @ shared[apart]
    level = ridge + precision * NEXT_TO_NOTHING
    jumps = spread_walk_of_classes(own[walk], shared[walk], precision, level, inverse[walk], followed[walk])
    left = inverse_of(whole - np.einsum("qkf,qkg->fg", shared, followed), np.diag(whole), least=1e-3)  # beside rounding
    beside, with_flat = np.eye(k) - 1.0 / k, followed - followed.mean(axis=1, keepdims=True)
    variances = np.einsum("ak,qkl,al->qa", beside, inverse, beside, optimize=True)
    variances += np.einsum("qkf,fg,qkg->qk", with_flat, left, with_flat, optimize=True)
    pulled = piece.pull_back(followed.reshape(q, -1), 1.0).reshape(followed.shape)
    penalised = float(jumps) + float(np.einsum("qkk->", inverse[apart]))
    return variances, penalised + float(np.einsum("qkf,fg,qkg->", pulled, left, followed))
