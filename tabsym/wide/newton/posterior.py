"""What stays uncertain: draws of all parameters together, and the standard deviations that follow.

A draw is the solution of H z = r, with r normal of covariance H: the sum over rows of the root of their
curvature times a standard normal number, and of the penalty's root times another (Papandreou and Yuille 2010,
"Gaussian sampling by local perturbations"). So no Hessian is stored or factored: blocks take turns. The variance of an
entry is its variance given the others, known exactly, and that of its mean given the others, over the draws (Sidén,
Lindgren, Bolin and Villani 2018): a few dozen draws do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tabsym.wide.newton.flats import SAME, inverse_of
from tabsym.wide.newton.kernels_rows import add_to_rows, sum_products, sum_rows
from tabsym.wide.newton.pieces import Piece, Prior
from tabsym.wide.newton.turns import Turns

Floats = NDArray[np.float64]

NO_FACTOR = np.empty(0)

MOST_SWEEPS, STILL = 200, 1e-4
"""A solution stands where a sweep moves it by less than this share of its own length."""


class Draws:
    """Draws (q, M) of the parameters of each piece about the optimum, dispersion 1, for losses of one score.

    Parameters
    ----------
    turns : Turns
        Of one model, settled.
    n_draws : int
    rng : RandomState
    """

    def __init__(self, turns: Turns, n_draws: int, rng: np.random.RandomState) -> None:
        self.turns = turns
        self.bends = turns.pulls()[1][:, None]
        self.found = [np.zeros((piece.size, n_draws)) for piece in turns.pieces]
        self.reach = np.zeros((len(turns.y), n_draws))
        noise = rng.standard_normal((len(turns.y), n_draws)) * np.sqrt(self.bends)
        self.right = [self._perturb(place, noise, rng) for place in range(len(turns.pieces))]
        self._settle()

    def variances(self, place: int) -> Floats:
        """Posterior variances (q, 1) of a piece."""
        piece, draws = self.turns.pieces[place], self.found[place]
        if piece.prior is Prior.WALK:
            return np.asarray(np.square(draws).mean(axis=1, keepdims=True))
        curvature = self.turns.curvature[place]
        both = curvature + self.turns.precision[place]
        means = self._seen(piece, draws.shape) - curvature * draws
        own = np.divide(1.0, both, out=np.zeros_like(both), where=both > 0)  # 0: a number that says nothing
        return np.asarray(own + np.square(own * means).mean(axis=1, keepdims=True))

    def _perturb(self, place: int, noise: Floats, rng: np.random.RandomState) -> Floats:
        """The right side (q, M) of a piece."""
        piece, precision = self.turns.pieces[place], self.turns.precision[place]
        right = np.empty_like(self.found[place])
        sum_rows(piece.codes, piece.x, noise, right)
        if piece.prior is Prior.FLAT or not np.isfinite(precision):
            return right
        own = np.sqrt(precision) * rng.standard_normal(right.shape)
        if piece.prior is Prior.RIDGE:
            return np.asarray(right + own)
        right[: piece.apart] += own[: piece.apart]
        right[piece.apart : -1] -= own[piece.apart : -1]
        right[piece.apart + 1 :] += own[piece.apart : -1]
        return right

    def _settle(self) -> None:
        inverse = np.empty((0, 0))
        if self.turns.together:
            columns = self.turns.flat_columns
            information = columns.T @ (self.bends * columns)
            inverse = inverse_of(information, np.diag(information), SAME)
            for number, place in enumerate(self.turns.together):
                self.turns.curvature[place] = information[number, number].reshape(1, 1)
        for _ in range(MOST_SWEEPS):
            moved = self._turn_together(inverse) if self.turns.together else 0.0
            for place in range(len(self.found)):
                if not self.turns.silent[place] and place not in self.turns.together:
                    moved += self._turn(place)
            length = sum(float(np.square(found).sum()) for found in self.found)
            moved += sum(self._hand_up(place) for place in self.turns.sharing.held())
            if moved < STILL**2 * length:
                break

    def _turn_together(self, inverse: Floats) -> float:
        """What is not held back, by the inverse (f, f) of its information."""
        together, pieces = self.turns.together, self.turns.pieces
        left = [self.right[place] - self._seen(pieces[place], self.found[place].shape) for place in together]
        steps = inverse @ np.concatenate(left)
        for place, step in zip(together, steps, strict=True):
            self.found[place] += step
        self.reach += self.turns.flat_columns @ steps
        return float(np.square(steps).sum())

    def _turn(self, place: int) -> float:
        piece, found, precision = self.turns.pieces[place], self.found[place], self.turns.precision[place]
        right = self.right[place] - self._seen(piece, found.shape) - piece.pull_back(found, precision)
        steps = piece.solve(np.repeat(self.turns.curvature[place], found.shape[1], axis=1), precision, right)
        found += steps
        add_to_rows(piece.codes, piece.x, steps, self.reach)
        return float(np.square(steps).sum())

    def _hand_up(self, place: int) -> float:
        """Solve along what moves no row, as `Sharing` does: entries by as much less as what holds them has more.

        Between a block and the intercept, and a cross and its columns, turns alone would take as many sweeps as entries
        have rows for each that their prior counts for.
        """
        turns, own = self.turns, self.turns.precision[place]
        moved = 0.0
        for relation in turns.sharing.above(place):
            other, above, cells = relation.other, relation.above, relation.cells
            theirs = turns.precision[other]
            pull = self.right[other] - theirs * self.found[other] - self._summed(place, above, len(cells))
            shared = np.where(cells[:, None] > 0, pull / (theirs + own * cells[:, None]), 0.0)
            self.found[other] += shared
            self.found[place] -= shared[above]
            moved += float(np.square(shared).sum())
        level = turns.sharing.level_of(place)
        if level is not None:
            everything = np.zeros(len(self.found[place]), dtype=np.int32)
            pull = self.right[level] - self._summed(place, everything, 1)
            shared = pull / (own * len(self.found[place]))
            self.found[level] += shared
            self.found[place] -= shared
            moved += float(np.square(shared).sum())
        return moved

    def _summed(self, place: int, above: NDArray[np.int32], size: int) -> Floats:
        """What the right side of entries leaves of their penalty, summed (size, M) by what they lie within."""
        left = self.right[place] - self.turns.precision[place] * self.found[place]
        sums = np.empty((size, left.shape[1]))
        sum_rows(above, NO_FACTOR, left, sums)
        return sums

    def _seen(self, piece: Piece, shape: tuple[int, ...]) -> Floats:
        """What the rows' curvature makes of the draws, by entry."""
        seen = np.empty(shape)
        sum_products(piece.codes, piece.x, self.bends, self.reach, seen)
        return seen
