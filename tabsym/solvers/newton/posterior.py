"""What stays uncertain: draws of all parameters together, and the standard deviations that follow.

A draw is the solution of H z = r, with r normal of covariance H: the sum over rows of the root of their
curvature times a standard normal number, and of the penalty's root times another (Papandreou and Yuille 2010,
"Gaussian sampling by local perturbations"). No Hessian is stored or factored: conjugate gradients want what it makes of
a draw, a pass over the codes of each block. The variance of an entry is its variance given the others, known exactly,
and that of its mean given the others, over the draws (Sidén, Lindgren, Bolin and Villani 2018): a few dozen draws do.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tabsym.solvers.newton.block_descent import Turns
from tabsym.solvers.newton.fixed_effects import SAME, inverse_of
from tabsym.solvers.newton.kernels_rows import add_to_rows, sum_products, sum_rows
from tabsym.solvers.newton.terms import Piece, Prior

Floats = NDArray[np.float64]

MOST_STEPS, STILL, GAINED = 1000, 0.01, 1e-3
"""A draw stands where what is left of its right side, in the norm of each block by itself, is less than this share of
it, and where a step gains no more than that share of what all did. The latter is what tells of directions in which
penalties are all there is, as from a column's symbols to the cells of its cross: of the right side they are next to
nothing, and steps along them are long."""

NOTHING = 1e-12
"""Of the same, squared: rounding is left where levels are all there is."""


class _Levels:
    """What a matrix H makes of the levels of some blocks, 1 for each of their entries, and its inverse among these.

    Parameters
    ----------
    blocks : list of slice
        Their entries among all.
    size : int
        All entries.
    pull : callable
        H times numbers (entries, M).
    """

    def __init__(self, blocks: list[slice], size: int, pull: Callable[[Floats], Floats]) -> None:
        self._blocks = blocks
        columns = np.zeros((size, len(blocks)))
        for number, own in enumerate(blocks):
            columns[own, number] = 1.0
        self._pulled = pull(columns)
        matrix = self._sums(self._pulled)
        self._inverse = inverse_of(matrix, np.diag(matrix), SAME)

    def solve(self, right: Floats) -> Floats:
        """The levels (entries, M) that H makes nearest to `right`."""
        return self._add(np.zeros_like(right), self._inverse @ self._sums(right))

    def beside(self, numbers: Floats) -> Floats:
        """Numbers (entries, M) less levels, so that H leaves none."""
        return self._add(numbers.copy(), -self._inverse @ (self._pulled.T @ numbers))

    def _sums(self, numbers: Floats) -> Floats:
        return np.array([numbers[own].sum(axis=0) for own in self._blocks]).reshape(-1, numbers.shape[1])

    def _add(self, numbers: Floats, levels: Floats) -> Floats:
        for own, level in zip(self._blocks, levels, strict=True):
            numbers[own] += level
        return numbers


class Draws:
    """Draws (q, M) of the parameters of each piece about the optimum, dispersion 1, for losses of one score.

    Parameters
    ----------
    turns : Turns
        Of one model, settled.
    n_draws : int
    rng : RandomState

    Attributes
    ----------
    found : list of (q, M)
    settled : bool
        Whether all draws stand.
    """

    def __init__(self, turns: Turns, n_draws: int, rng: np.random.RandomState) -> None:
        self.turns = turns
        self._bends = turns.pulls()[1][:, None]
        self._curvature = [self._curvature_of(piece) for piece in turns.pieces]
        self._inverse = self._inverse_together()
        self._loud = [place for place in range(len(turns.pieces)) if not turns.silent[place]]
        starts = np.cumsum([0, *(piece.size for piece in turns.pieces)])
        self._own = [slice(start, end) for start, end in pairwise(starts.tolist())]
        level = [self._own[place] for place in self._loud if turns.pieces[place].prior is not Prior.WALK]
        self._levels = _Levels(level, starts[-1], self._pull)
        found, self.settled = self._solve(self._right_sides(n_draws, rng))
        self.found = [found[own] for own in self._own]
        self._hand_levels_up()
        self._reach = self._scores(found)

    def variances(self, place: int) -> Floats:
        """Posterior variances (q, 1) of a piece; infinite where neither a row nor the prior says anything."""
        piece, draws = self.turns.pieces[place], self.found[place]
        if piece.prior is Prior.WALK:
            return np.asarray(np.square(draws).mean(axis=1, keepdims=True))
        curvature = self._curvature[place]
        both = curvature + self.turns.precision[place]
        means = self._sum(piece, self._reach) - curvature * draws
        own = np.divide(1.0, both, out=np.zeros_like(both), where=both > 0)
        found = np.asarray(own + np.square(own * means).mean(axis=1, keepdims=True))
        if piece.prior is Prior.FLAT:
            return found  # 0: a number that is the same in all rows, beside an intercept
        return np.where(both > 0, found, np.inf)

    def _right_sides(self, n_draws: int, rng: np.random.RandomState) -> Floats:
        """Normal numbers (entries, M) of the Hessian's covariance."""
        noise = rng.standard_normal((len(self._bends), n_draws))
        noise *= np.sqrt(self._bends)
        return np.concatenate([self._perturb(place, noise, rng) for place in range(len(self.turns.pieces))])

    def _perturb(self, place: int, noise: Floats, rng: np.random.RandomState) -> Floats:
        """The right side (q, M) of a piece."""
        piece, precision = self.turns.pieces[place], self.turns.precision[place]
        right = np.empty((piece.size, noise.shape[1]))
        sum_rows(piece.codes, piece.x, noise, right)
        if piece.prior is Prior.FLAT or not np.isfinite(precision):
            return right
        own = np.sqrt(precision) * rng.standard_normal(right.shape)
        if piece.prior is Prior.RIDGE:
            return np.asarray(right + own)
        beside = np.sqrt(piece.share_apart) * own[: piece.apart]
        right[: piece.apart] += beside
        right[piece.apart :] -= beside.sum(axis=0) / max(piece.size - piece.apart, 1)
        right[piece.apart : -1] -= own[piece.apart : -1]
        right[piece.apart + 1 :] += own[piece.apart : -1]
        return right

    def _solve(self, right: Floats) -> tuple[Floats, bool]:
        """The draws (entries, M) for right sides, and whether they stand: conjugate gradients, each by itself.

        Levels are solved exactly, and the rest beside them (deflation; Saad, Yeung, Erhel and Guyomarc'h 2000): one
        block's up and another's down is told by penalties alone, which are next to nothing where symbols have many
        rows or a large variance. Steps that want the rows' share first would end before they got there.
        """
        whole = (right * self._by_blocks(right)).sum(axis=0)
        found = self._levels.solve(right)
        left = right - self._pull(found)
        toward = self._by_blocks(left)
        way, size = self._levels.beside(toward), (left * toward).sum(axis=0)
        gain, total = np.where(size > NOTHING * whole, np.inf, 0.0), np.zeros(len(size))
        for _ in range(MOST_STEPS):
            if ((size <= STILL**2 * whole) & (gain <= GAINED * total)).all():
                return found, True
            pulled = self._pull(way)
            step = _share(np.where(size > NOTHING * whole, size, 0.0), (way * pulled).sum(axis=0))
            gain = step * size
            total += gain
            found += step * way
            left -= step * pulled
            toward = self._by_blocks(left)
            before, size = size, (left * toward).sum(axis=0)
            way = self._levels.beside(toward) + _share(size, before) * way
        return found, False

    def _hand_levels_up(self) -> None:
        """Give the level of each walk to the intercept: no row and no difference tells the one from the other."""
        for place in self._loud:
            piece, level = self.turns.pieces[place], self.turns.sharing.level_of(place)
            if piece.prior is Prior.WALK and level is not None:
                mean = np.average(self.found[place], axis=0, weights=self._curvature[place][:, 0])
                self.found[place] -= mean
                self.found[level] += mean

    def _by_blocks(self, right: Floats) -> Floats:
        """The solution where each block is alone, but for what is not held back, which is together."""
        turns, out = self.turns, np.zeros_like(right)
        for place in self._loud:
            own, piece = self._own[place], turns.pieces[place]
            curvature = np.repeat(self._curvature[place], right.shape[1], axis=1)
            out[own] = piece.solve(curvature, turns.precision[place], right[own])
        if turns.together:
            flat = [self._own[place].start for place in turns.together]
            out[flat] = self._inverse @ right[flat]
        return out

    def _pull(self, numbers: Floats) -> Floats:
        """What the Hessian makes of numbers (entries, M)."""
        scores, out = self._scores(numbers), np.zeros_like(numbers)
        for place in self._loud:
            own, piece = self._own[place], self.turns.pieces[place]
            out[own] = self._sum(piece, scores) + piece.pull_back(numbers[own], self.turns.precision[place])
        return out

    def _scores(self, numbers: Floats) -> Floats:
        """What numbers (entries, M) come to in rows (n, M)."""
        scores = np.zeros((len(self._bends), numbers.shape[1]))
        for place in self._loud:
            piece = self.turns.pieces[place]
            add_to_rows(piece.codes, piece.x, numbers[self._own[place]], scores)
        return scores

    def _sum(self, piece: Piece, scores: Floats) -> Floats:
        """Scores (n, M) of rows, times their curvature, by entry."""
        sums = np.empty((piece.size, scores.shape[1]))
        sum_products(piece.codes, piece.x, self._bends, scores, sums)
        return sums

    def _curvature_of(self, piece: Piece) -> Floats:
        """Curvature (q, 1) of the entries where all rows stand now; that of their last turn is of another moment."""
        own = np.empty((piece.size, 1))
        sum_products(piece.codes, piece.x * piece.x, self._bends, np.ones_like(self._bends), own)
        return own

    def _inverse_together(self) -> Floats:
        """Of the information on what is not held back, where that is more than an intercept."""
        if not self.turns.together:
            return np.empty((0, 0))
        columns = self.turns.flat_columns
        information = columns.T @ (self._bends * columns)
        return inverse_of(information, np.diag(information), SAME)


def _share(numbers: Floats, of: Floats) -> Floats:
    return np.divide(numbers, of, out=np.zeros_like(numbers), where=of > 0)
