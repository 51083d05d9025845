"""What the posterior of a piece is like, given the other pieces of symbols and jointly with what is not held back.

A number and slopes by the same column, ``w[g] + v[g]*x``, are joint too: each category's have a small matrix of their
own, so that their variances are those of restricted maximum likelihood. In units where the dispersion is one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tabsym.losses.kernels import SQUARED
from tabsym.solvers.newton.block_descent import Turns
from tabsym.solvers.newton.fixed_effects import NOTHING_LEFT, ROUNDING, SAME, columns_of, inverse_of
from tabsym.solvers.newton.kernels_coefs import spread_ridge, weigh_ridge
from tabsym.solvers.newton.kernels_rows import sum_products
from tabsym.solvers.newton.kernels_walk import solve_walk, walk_variances, weigh_walk
from tabsym.solvers.newton.terms import NEXT_TO_NOTHING, Piece, Prior

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """What the posterior of a piece is like: variances (q, K), their part in the penalty, and effective entries."""

    variances: Floats
    penalised: float
    effective: float


class Spreads(ABC):
    """The posteriors of the pieces of one model.

    Parameters
    ----------
    turns : Turns
        Whose parameters, curvatures and precisions are read as they stand.
    """

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.flat = [place for place, piece in enumerate(turns.pieces) if piece.prior is Prior.FLAT]
        self.held = np.array([float(piece.held * turns.n_outputs) for piece in turns.pieces])

    @property
    @abstractmethod
    def n_sweeps(self) -> int:
        """Between two looks: the dearer a look, the more."""

    def of(self, place: int) -> Spread:
        """Of one piece."""
        variances, penalised = self._variances(place)
        unknown = int(np.isinf(variances).sum())
        return Spread(variances, penalised, self._effective(place, penalised) - unknown)

    def weigh(self, places: Sequence[int]) -> Floats:
        """Of pieces at `places` (a,): effective entries, and the sum of squares that the prior holds small (a, 2)."""
        turns = self.turns
        both = [(self.of(place).effective, turns.pieces[place].length(turns.theta[place])) for place in places]
        return np.array(both).reshape(-1, 2)

    def _effective(self, place: int, penalised: float) -> float:
        return max(float(self.held[place] - self.turns.precision[place] * penalised), 0.0)

    @abstractmethod
    def of_flat(self) -> Floats:
        """Covariances (f, f, K) of what is not held back, given the block that leaves it the least certain."""

    @abstractmethod
    def _variances(self, place: int) -> tuple[Floats, float]:
        """Variances (q, K) of a piece, and the trace that its penalty has part in."""

    @cached_property
    def _is_intercept_alone(self) -> bool:
        pieces = self.turns.pieces
        return len(self.flat) == 1 and not len(pieces[self.flat[0]].x)

    def _shares_all(self, place: int) -> bool:
        """Whether all that nothing holds back is an intercept, whose curvature is that of a piece's entries."""
        return self._is_intercept_alone and not len(self.turns.pieces[place].x)

    @cached_property
    def _columns(self) -> Floats:
        """What the flat pieces, which are one number each, are multiplied by (n, f)."""
        return columns_of([self.turns.pieces[flat] for flat in self.flat], len(self.turns.y))


class SpreadsOfOne(Spreads):
    """For losses of one score."""

    n_sweeps = 1

    def __init__(self, turns: Turns) -> None:
        super().__init__(turns)
        self._known: dict[tuple[str, int], Floats] = {}
        self._known_at = -1

    def of_flat(self) -> Floats:
        """Exact for one block of symbols."""
        turns = self.turns
        whole = self._flat_information()
        inverses = [inverse_of(whole, np.diag(whole), SAME)]
        for place, piece in enumerate(turns.pieces):
            tells = turns.precision[place] > 0 or len(piece.x) > 0  # else its entries leave nothing of the level
            if piece.prior is Prior.RIDGE and not turns.silent[place] and tells:
                left = self._with_flat(place, self._curvature(place), turns.precision[place])[2]
                inverses.append(inverse_of(left, np.diag(whole), ROUNDING))
        return max(inverses, key=lambda one: float(np.trace(one)))[:, :, None]

    def weigh(self, places: Sequence[int]) -> Floats:
        """The same in one go where there is nothing but an intercept that is not held back: this is asked most."""
        turns = self.turns
        if not self._is_intercept_alone or self._families:
            return super().weigh(places)
        weighed, alone = np.empty((len(places), 2)), set(places)
        if turns.small is not None:
            turns.small.weigh(places, turns.precision, turns.covers, self._level_information(), weighed)
            alone.difference_update(turns.small.places)
        for number, place in enumerate(places):
            if place in alone:
                weighed[number] = self._weigh(place)
        at = np.array(places, dtype=np.intp)
        weighed[:, 0] = np.maximum(self.held[at] - turns.precision[at] * weighed[:, 0], 0.0)
        return weighed

    def _weigh(self, place: int) -> tuple[float, float]:
        """The variances' part in the penalty, and the length, beside nothing but an intercept."""
        turns, piece = self.turns, self.turns.pieces[place]
        curvature, theta, precision = turns.curvature[place], turns.theta[place], turns.precision[place]
        if not self._shares_all(place):
            return self._variances(place)[1], piece.length(theta)
        if piece.prior is Prior.RIDGE:
            return weigh_ridge(curvature, theta, precision, self._beside(place, curvature), ROUNDING)
        forward, backward, space = np.empty((3, piece.size))
        return weigh_walk(
            curvature, theta, piece.apart, precision, NEXT_TO_NOTHING, forward, backward, space[:, None], np.empty(1)
        )

    def _variances(self, place: int) -> tuple[Floats, float]:
        """Variances (q, 1), and the trace that the penalty has part in, for losses of one score."""
        piece, precision = self.turns.pieces[place], self.turns.precision[place]
        family = [other for other in self._families.get(place, []) if not self.turns.silent[other]]
        if len(family) > 1:
            variances = self._variances_of_family(family)[:, [family.index(place)]]
            return variances, float(variances[np.isfinite(variances)].sum())
        curvature = self._curvature(place)
        if piece.prior is Prior.RIDGE and self._shares_all(place):
            variances = np.empty((piece.size, 1))
            more = self._beside(place, curvature)
            total = spread_ridge(curvature[:, 0], precision, more, ROUNDING, variances[:, 0])
            return variances, float(total)
        if piece.prior is Prior.WALK:
            variances, penalised = _walk_spread(piece, curvature, precision)
        else:
            variances = _alone(curvature, precision)
            penalised = float(variances[np.isfinite(variances)].sum())
        shared, pulled, left = self._with_flat(place, curvature, precision)
        if shared.shape[1]:
            least = NOTHING_LEFT if piece.prior is Prior.WALK else ROUNDING
            covariance = inverse_of(left, self._flat_sizes(place, shared), least)
            variances = variances + np.einsum("qf,fg,qg->q", pulled, covariance, pulled)[:, None]
            penalised += float((piece.pull_back(pulled, 1.0) * (pulled @ covariance)).sum())
        return variances, penalised

    @cached_property
    def _families(self) -> dict[int, list[int]]:
        """Of pieces that the same column selects, one of them multiplied by a number: all of those, by place."""
        pieces = self.turns.pieces
        ridges = [place for place, piece in enumerate(pieces) if piece.prior is Prior.RIDGE]
        found: dict[int, list[int]] = {}
        for place in ridges:
            own = pieces[place]
            if len(own.x) and place not in found:
                alike = [
                    other
                    for other in ridges
                    if pieces[other].size == own.size and np.array_equal(pieces[other].codes, own.codes)
                ]
                found.update(dict.fromkeys(alike, alike) if len(alike) > 1 else {})
        return found

    def _variances_of_family(self, family: list[int]) -> Floats:
        """Posterior variances (q, m) of m pieces that one column selects, jointly with each other and what is flat."""
        turns, m = self.turns, len(family)
        own = np.empty((turns.pieces[family[0]].size, m, m))
        for i, one in enumerate(family):
            for j, other in enumerate(family[: i + 1]):
                own[:, i, j] = own[:, j, i] = self._between(one, other)
        own += np.diag(turns.precision[family])
        told = np.einsum("qmm->qm", own).min(axis=1) > 0.0  # else neither a row nor the prior says anything
        inverse = np.full_like(own, np.inf)
        inverse[told] = np.linalg.pinv(own[told], rcond=SAME, hermitian=True)
        variances = np.einsum("qmm->qm", inverse).copy()
        if self.flat:
            shared = np.stack([self._shared(place) for place in family], axis=1)[told]
            pulled, whole = inverse[told] @ shared, self._flat_information()
            left = whole - np.einsum("qmf,qmg->fg", shared, pulled)
            covariance = inverse_of(left, np.diag(whole), ROUNDING)
            variances[told] += np.einsum("qmf,fg,qmg->qm", pulled, covariance, pulled)
        return variances

    def _between(self, one: int, other: int) -> Floats:
        """Curvature (q,) that the entries of two pieces which one column selects share."""
        left, right = self.turns.pieces[one], self.turns.pieces[other]

        def sum_them() -> Floats:
            sums = np.empty((left.size, 1))
            by = right.x[:, None] if len(right.x) else np.ones_like(self._bends())
            sum_products(left.codes, left.x, self._bends(), by, sums)
            return sums

        return self._now(f"between {one}", other, sum_them)[:, 0]

    def _with_flat(self, place: int, curvature: Floats, precision: float) -> tuple[Floats, Floats, Floats]:
        """What entries share with the flat pieces (q, f), how they follow those (q, f), the information left (f, f)."""
        piece = self.turns.pieces[place]
        if not self.flat:
            return np.zeros((piece.size, 0)), np.zeros((piece.size, 0)), np.zeros((0, 0))
        shared = curvature if self._shares_all(place) else self._shared(place)
        pulled = piece.solve(np.repeat(curvature, shared.shape[1], axis=1), precision, shared)
        if not self._shares_all(place):
            return shared, pulled, self._flat_information() - shared.T @ pulled
        # all from the piece's own curvatures, as others are of another moment
        left = float((curvature * (1.0 - pulled)).sum()) + self._beside(place, curvature)
        return shared, pulled, np.array([[left]])

    def _beside(self, place: int, curvature: Floats) -> float:
        """Information on the intercept from rows without an entry of the piece."""
        if self.turns.covers[place]:
            return 0.0
        return max(self._level_information() - float(curvature.sum()), 0.0)

    def _flat_sizes(self, place: int, shared: Floats) -> Floats:
        """Information on each flat piece by itself (f,)."""
        return shared.sum(axis=0) if self._shares_all(place) else np.diag(self._flat_information())

    def _shared(self, place: int) -> Floats:
        """Curvature that the entries share with the flat pieces (q, f)."""
        piece = self.turns.pieces[place]

        def sum_them() -> Floats:
            sums = np.empty((piece.size, len(self.flat)))
            sum_products(piece.codes, piece.x, self._bends(), self._columns, sums)
            return sums

        return self._now("shared", place, sum_them)

    def _curvature(self, place: int) -> Floats:
        """Curvature (q, 1) of the entries: of their last turn where all is of that moment, else where rows stand."""
        piece = self.turns.pieces[place]
        if self._shares_all(place):
            return self.turns.curvature[place]

        def sum_them() -> Floats:
            sums = np.empty((piece.size, 1))
            sum_products(piece.codes, piece.x * piece.x, self._bends(), np.ones_like(self._bends()), sums)
            return sums

        return self._now("curvature", place, sum_them)

    def _level_information(self) -> float:
        """Curvature of the intercept at its last turn."""
        return float(self.turns.curvature[self.flat[0]][0, 0])

    def _flat_information(self) -> Floats:
        """X'HX (f, f) of the flat pieces."""
        columns = self._columns
        return self._now("information", -1, lambda: np.asarray(columns.T @ (self._bends() * columns)))

    def _bends(self) -> Floats:
        """Curvatures (n, 1) of rows, times their weight."""
        return self._now("bends", -1, lambda: self.turns.pulls()[1][:, None])

    def _now(self, what: str, place: int, find: Callable[[], Floats]) -> Floats:
        """What rows' curvatures come to, found once until they change: with every move, but for squared loss."""
        if self._known_at != self.turns.n_moves and self.turns.loss.code != SQUARED:
            self._known.clear()
            self._known_at = self.turns.n_moves
        if (what, place) not in self._known:
            self._known[what, place] = find()
        return self._known[what, place]


def _alone(curvature: Floats, precision: float) -> Floats:
    """Variances of entries by themselves; infinite where neither a row nor the prior says anything."""
    both = curvature + precision
    return np.divide(1.0, both, out=np.full_like(both, np.inf), where=both > 0)


def _walk_spread(piece: Piece, curvature: Floats, precision: float) -> tuple[Floats, float]:
    """Variances (q, K) of a walk's entries and of those beside it, and the trace that its penalty has part in."""
    variances = np.empty_like(curvature)
    own, apart = np.ascontiguousarray(curvature[piece.apart :]), curvature[: piece.apart]
    inside, steps, pivots = np.empty_like(own), np.empty(own.shape[1]), np.empty(len(own))
    walk_variances(own, precision, NEXT_TO_NOTHING, pivots, np.empty(len(own)), inside, steps)
    level = np.full_like(own, 1.0 / max(len(own), 1))
    solve_walk(own, precision, NEXT_TO_NOTHING, level, pivots, level)
    alone, held = _alone(apart, piece.share_apart * precision), piece.share_apart * precision
    pull, of_mean = held * (1.0 - held * alone).sum(axis=0), level.mean(axis=0)
    taken = pull / (1.0 + pull * of_mean)
    of_mean = of_mean * (1.0 - taken * of_mean)
    variances[piece.apart :] = inside - taken * np.square(level)
    variances[: piece.apart] = alone + np.square(held * alone) * of_mean
    penalised = steps - (taken * np.square(np.diff(level, axis=0))).sum(axis=0)
    penalised += piece.share_apart * (alone + np.square(apart * alone) * of_mean).sum(axis=0)
    return variances, float(penalised.sum())
