"""Shrinkage by evidence: one variance per block, estimated from the table.

Parametric empirical Bayes. The entries of a block are normal about 0 (differences of neighbours are, for a walk), with
a variance that the rows tell: `fellner_schall` moves it to (sum of squares) / (effective number of entries), as in
Wood and Fasiolo (2017), "A generalized Fellner-Schall method for smoothing parameter estimation", equation 4. The
effective number is q - tr(V) / variance, where V is the block's posterior covariance, joint with what is
not held back (intercept, slopes), given the other blocks. In the Gaussian case of one block the fixed
point is the REML estimate; behind a link it is penalised quasi-likelihood's, whose curvature is held fixed as the
variance moves.

Where most symbols have few rows, and above all where the loss is logistic, that is not to be trusted: a symbol seen
once fits its own row, and a likelihood behind a link cannot tell its variance from 0, nor from 1. Such blocks are
left to `heldout`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tabsym.wide.newton.kernels import collect_matrices, spread_ridge, sum_products
from tabsym.wide.newton.kernels_walk import spread_walk_of_classes, walk_variances
from tabsym.wide.newton.pieces import NEXT_TO_NOTHING, Piece, Prior
from tabsym.wide.newton.standing import ManyClasses
from tabsym.wide.newton.turns import Turns
from tabsym.wide.slopes import LOGISTIC, MULTINOMIAL, SQUARED

Floats = NDArray[np.float64]

FIRST_VARIANCE = 1.0 / 3.0
"""Where variances start, over the dispersion: a symbol of three rows of curvature 1 is believed half."""

SILENT = 0.02
"""A block whose entries come to so little together, effectively, is taken out."""

MOST_CHANGE = np.log(30.0)
"""Of a logarithm of a variance at once."""

NOTHING_LEFT = 1e-5
"""Of the information on what is not held back, beside a block that says the same."""

SWEEPS, SWEEPS_OF_CLASSES = 1, 4
"""Between two looks at the variances; of several classes a look is dear."""

STILL, STANDING = 30.0, 3.0
"""Variances are settled where an update moves the effective entries, and a sweep lowers the objective, by less than
this times the tolerance, per row: a variance is an estimate of a few digits, the parameters that follow are not."""


@dataclass(frozen=True)
class Spread:
    """What the posterior of a piece is like: variances (q, K), their part in the penalty, and effective entries."""

    variances: Floats
    penalised: float
    effective: float


class Evidence:
    """The variances of the pieces of one model, and the dispersion of its rows.

    Parameters
    ----------
    turns : Turns
        Of one model; its `precision` is set.
    """

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.has_dispersion = turns.loss.code not in (LOGISTIC, MULTINOMIAL)
        self.dispersion = 1.0
        self.effective = np.array([float(piece.size * turns.n_outputs) for piece in turns.pieces])
        self._flat = [place for place, piece in enumerate(turns.pieces) if piece.prior is Prior.FLAT]
        self._known: dict[tuple[str, int], Floats] = {}
        self._known_at = -1

    def start(self) -> None:
        """Variances to begin with."""
        for place, piece in enumerate(self.turns.pieces):
            if piece.prior is not Prior.FLAT:
                self.turns.precision[place] = 1.0 / FIRST_VARIANCE

    def find(self, free: Collection[int], tol: float, most: int) -> int:
        """Sweep, and move the variances of the pieces at `free`, until they stand still: how many sweeps it took."""
        between = SWEEPS_OF_CLASSES if self.turns.loss.code == MULTINOMIAL else SWEEPS
        n_sweeps = 0
        for _ in range(most):
            n_sweeps += between
            for _ in range(between):
                fall = self.turns.sweep()
            change = self.move(free)
            if change < STILL * tol and fall < STANDING * tol * max(1.0, self.dispersion):
                break
        return n_sweeps

    def move(self, free: Collection[int]) -> float:
        """One update of the dispersion and of the variances at `free`.

        The largest change of a block's effective entries that follows, per row: about what the fit is moved by.
        """
        turns, change = self.turns, 0.0
        spreads = {place: self.spread(place) for place in free if not turns.silent[place]}
        if self.has_dispersion:
            change = self._move_dispersion()
        for place, spread in spreads.items():
            if spread.effective < SILENT:
                turns.silence(place)
                self.effective[place] = 0.0
                continue
            length = turns.pieces[place].length(turns.theta[place])
            now = self.dispersion * spread.effective / max(length, 1e-300)
            moved = float(np.clip(np.log(now / turns.precision[place]), -MOST_CHANGE, MOST_CHANGE))
            turns.precision[place] *= np.exp(moved)
            held = turns.pieces[place].held * turns.n_outputs
            change = max(change, abs(moved) * spread.effective * (1.0 - spread.effective / held) / turns.total)
        return change

    def spread(self, place: int) -> Spread:
        """The posterior of a piece given the other pieces of symbols, jointly with what is not held back.

        In units where the dispersion is one; of several classes jointly with their intercepts alone.
        """
        piece, precision = self.turns.pieces[place], self.turns.precision[place]
        if self.turns.loss.code == MULTINOMIAL:
            variances, penalised = self._spread_of_classes(piece, precision)
        else:
            variances, penalised = self._spread_of_one(place, piece, precision)
        effective = max(piece.held * self.turns.n_outputs - precision * penalised, 0.0)
        self.effective[place] = effective
        return Spread(variances, penalised, effective)

    def _spread_of_one(self, place: int, piece: Piece, precision: float) -> tuple[Floats, float]:
        """Variances (q, 1), and the trace that the penalty has part in, for losses of one score."""
        curvature = self.turns.curvature[place] if self._is_intercept_alone else self._curvature_now(place)
        if piece.prior is Prior.RIDGE and self._is_intercept_alone:
            variances = np.empty((piece.size, 1))
            more = self._beside(place, curvature)
            total = spread_ridge(curvature[:, 0], precision, more, NOTHING_LEFT, variances[:, 0])
            return variances, float(total)
        if piece.prior is Prior.WALK:
            variances, penalised = _walk_spread(piece, curvature, precision)
        else:
            variances = 1.0 / (curvature + precision)
            penalised = float(variances.sum())
        shared, pulled, left = self._with_flat(place, curvature, precision)
        if shared.shape[1]:
            covariance = _inverse(left, self._flat_sizes(shared))
            variances = variances + np.einsum("qf,fg,qg->q", pulled, covariance, pulled)[:, None]
            penalised += float((piece.pull_back(pulled, 1.0) * (pulled @ covariance)).sum())
        return variances, penalised

    def _with_flat(self, place: int, curvature: Floats, precision: float) -> tuple[Floats, Floats, Floats]:
        """What entries share with the flat pieces (q, f), how they follow those (q, f), the information left (f, f)."""
        piece = self.turns.pieces[place]
        if not self._flat:
            return np.zeros((piece.size, 0)), np.zeros((piece.size, 0)), np.zeros((0, 0))
        shared = curvature if self._is_intercept_alone else self._shared(place)
        pulled = piece.solve(np.repeat(curvature, shared.shape[1], axis=1), precision, shared)
        if not self._is_intercept_alone:
            return shared, pulled, self._flat_information() - shared.T @ pulled
        # all from the piece's own curvatures, as others are of another moment
        left = float((curvature * (1.0 - pulled)).sum()) + self._beside(place, curvature)
        return shared, pulled, np.array([[left]])

    def _beside(self, place: int, curvature: Floats) -> float:
        """Information on the intercept from rows without an entry of the piece."""
        if self.turns.covers[place]:
            return 0.0
        return max(float(self._flat_information()[0, 0] - curvature.sum()), 0.0)

    def _spread_of_classes(self, piece: Piece, precision: float) -> tuple[Floats, float]:
        """Variances (q, K), and the trace that the penalty has part in, of classes, which pull at each other."""
        q, k = piece.size, self.turns.n_outputs
        own = self._matrices(piece.codes, self._share(piece.x, piece.x), q)
        shared, whole = self._shared_of_classes(piece, own)
        if piece.prior is Prior.WALK:
            return _walk_of_classes(piece, own, shared, precision, whole)
        held = own + precision * np.eye(k)
        inverse = np.linalg.inv(held) if precision > 0 else np.linalg.pinv(held, hermitian=True)
        pulled = inverse @ shared
        left = _inverse(whole - np.einsum("qkf,qkg->fg", shared, pulled), np.diag(whole))
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

    def variance(self, place: int) -> float:
        """The prior variance of a piece, in units of training; infinite where nothing holds it back."""
        precision = self.turns.precision[place]
        if self.turns.silent[place]:
            return 0.0
        return self.dispersion / precision if precision > 0 else np.inf

    def flat_variances(self) -> dict[int, Floats]:
        """Variances (1, K) of what is not held back, given the block that leaves it the least certain.

        Exact for one block of symbols, but for slopes of several classes; in units where the dispersion is one.
        """
        turns = self.turns
        if turns.loss.code == MULTINOMIAL:
            return {place: 1.0 / turns.own_curvature(place) for place in self._flat}
        found = [self._flat_information()]
        for place, piece in enumerate(turns.pieces):
            if piece.prior is Prior.RIDGE and not turns.silent[place] and turns.precision[place] > 0:
                curvature = turns.curvature[place] if self._is_intercept_alone else self._curvature_now(place)
                found.append(self._with_flat(place, curvature, turns.precision[place])[2])
        inverses = [np.diag(np.linalg.pinv(one, hermitian=True)) for one in found]
        widest = max(inverses, key=lambda one: float(one.sum()))
        return {place: widest[number].reshape(1, 1) for number, place in enumerate(self._flat)}

    def _move_dispersion(self) -> float:
        """Variance of gradients over their curvature, for the degrees of freedom that are left."""
        turns = self.turns
        slopes, bends = turns.pulls()
        weight = turns.weight if len(turns.weight) else 1.0
        used = sum(effective for effective, silent in zip(self.effective, turns.silent, strict=True) if not silent)
        left = max(turns.total - used, 0.05 * turns.total)
        share = float((np.square(slopes) / weight).sum() / bends.sum())
        now = max(share * turns.total / left, 1e-12)
        change = abs(np.log(now / self.dispersion)) * used / turns.total
        self.dispersion = now
        return float(change)

    def _flat_sizes(self, shared: Floats) -> Floats:
        """Information on each flat piece by itself (f,)."""
        return shared.sum(axis=0) if self._is_intercept_alone else np.diag(self._flat_information())

    def _shared(self, place: int) -> Floats:
        """Curvature that the entries share with the flat pieces (q, f)."""
        piece = self.turns.pieces[place]

        def sum_them() -> Floats:
            sums = np.empty((piece.size, len(self._flat)))
            sum_products(piece.codes, piece.x, self._bends(), self._columns, sums)
            return sums

        return self._now("shared", place, sum_them)

    def _curvature_now(self, place: int) -> Floats:
        """Curvature (q, 1) of the entries where the rows stand, after the turns of other pieces."""
        piece = self.turns.pieces[place]

        def sum_them() -> Floats:
            sums = np.empty((piece.size, 1))
            sum_products(piece.codes, piece.x * piece.x, self._bends(), np.ones_like(self._bends()), sums)
            return sums

        return self._now("curvature", place, sum_them)

    @property
    def _is_intercept_alone(self) -> bool:
        pieces = self.turns.pieces
        return len(self._flat) == 1 and not len(pieces[self._flat[0]].x)

    def _flat_information(self) -> Floats:
        """X'HX (f, f) of the flat pieces."""
        if self._is_intercept_alone:
            return self.turns.curvature[self._flat[0]]
        columns = self._columns
        return self._now("information", -1, lambda: np.asarray(columns.T @ (self._bends() * columns)))

    @cached_property
    def _columns(self) -> Floats:
        """What the flat pieces are multiplied by (n, f)."""
        return np.concatenate([self._column(flat) for flat in self._flat], axis=1)

    def _column(self, flat: int) -> Floats:
        """What a flat piece, which is one number, is multiplied by in each row (n, 1)."""
        piece = self.turns.pieces[flat]
        numbers = piece.x if len(piece.x) else np.ones(len(piece.codes))
        return np.where(piece.codes >= 0, numbers, 0.0)[:, None]

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


def _inverse(left: Floats, sizes: Floats, least: float = NOTHING_LEFT) -> Floats:
    """The inverse of the information that is left of `sizes`; along what nothing is left of, 0.

    The level of a walk is nobody's: the intercept takes it, and it has no part in a penalty.
    """
    if left.shape == (1, 1):
        return np.array([[1.0 / left[0, 0] if left[0, 0] > least * sizes[0] else 0.0]])
    root = np.sqrt(np.maximum(sizes, 1e-300))
    lengths, axes = np.linalg.eigh(left / np.outer(root, root))
    inverse = np.where(lengths > least, 1.0 / np.maximum(lengths, least), 0.0)
    return np.asarray((axes * inverse) @ axes.T / np.outer(root, root))


def _walk_spread(piece: Piece, curvature: Floats, precision: float) -> tuple[Floats, float]:
    """Variances (q, K) of a walk's entries, and the trace that its penalty has part in."""
    variances = 1.0 / (curvature + precision)
    penalised = float(variances[: piece.apart].sum())
    own = np.ascontiguousarray(curvature[piece.apart :])
    inside, steps = np.empty_like(own), np.empty(own.shape[1])
    walk_variances(own, precision, NEXT_TO_NOTHING, np.empty(len(own)), np.empty(len(own)), inside, steps)
    variances[piece.apart :] = inside
    return variances, penalised + float(steps.sum())


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
    left = _inverse(whole - np.einsum("qkf,qkg->fg", shared, followed), np.diag(whole), least=1e-3)  # beside rounding
    beside, with_flat = np.eye(k) - 1.0 / k, followed - followed.mean(axis=1, keepdims=True)
    variances = np.einsum("ak,qkl,al->qa", beside, inverse, beside, optimize=True)
    variances += np.einsum("qkf,fg,qkg->qk", with_flat, left, with_flat, optimize=True)
    pulled = piece.pull_back(followed.reshape(q, -1), 1.0).reshape(followed.shape)
    penalised = float(jumps) + float(np.einsum("qkk->", inverse[apart]))
    return variances, penalised + float(np.einsum("qkf,fg,qkg->", pulled, left, followed))
