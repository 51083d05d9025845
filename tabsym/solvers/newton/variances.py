"""Shrinkage by evidence: one variance per block, estimated from the table.

Parametric empirical Bayes. The entries of a block are normal about 0 (differences of neighbours are, for a walk), with
a variance that the rows tell: `Evidence.move` moves it to (sum of squares) / (effective number of entries), as in
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

import math
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from tabsym.losses.kernels import LOGISTIC, MULTINOMIAL
from tabsym.solvers.newton.block_descent import Turns
from tabsym.solvers.newton.fixed_effects import rank_of
from tabsym.solvers.newton.kernels_coefs import move_precisions
from tabsym.solvers.newton.spreads import Spread, Spreads, SpreadsOfOne
from tabsym.solvers.newton.spreads_classes import SpreadsOfClasses
from tabsym.solvers.newton.terms import Prior

Floats = NDArray[np.float64]

FIRST_VARIANCE = 1.0 / 3.0
"""Where variances start, over the dispersion: a symbol of three rows of curvature 1 is believed half."""

SILENT = 0.02
"""A block whose entries come to so little together, effectively, is taken out."""

MOST_CHANGE = math.log(30.0)
"""Of a logarithm of a variance at once."""

MOST_RATIO = 0.95
"""Of an update to the one before it, for extrapolation: on its way to 0 a variance shrinks by the same each time."""

ALIKE = 1.1
"""Updates that grow by more are not yet on a straight way."""

EXTRAPOLATED_ROWS = 10_000
"""Of larger tables updates are taken as they are: variances move predictions by less there, and those of interactions
that are stopped early predict better (log-loss of kick .05 %, of adult .03 %, RMSE of rossmann .3 %; five folds)."""

STILL, STANDING = 30.0, 3.0
"""Variances are settled where an update moves the effective entries, and a sweep lowers the objective, by less than
this times the tolerance, per row (entries: per class too): a variance is an estimate of a few digits, the parameters
that follow are not. With twice as much, fits take a twentieth to an eighth less time, and amazon loses .0002 of AUC;
rossmann is .5 % worse on one seed, .3 % better on two."""


class Aitken:
    """Extrapolation of updates that shrink by a constant ratio to where they lead, every other update at most.

    Fellner and Schall's updates converge linearly, near a variance of 0 as slowly as one likes: what an update moves
    says little about what is left. Extrapolated (Aitken's process), fits of fifty small tables take 18 sweeps for 22,
    and end at a third of the distance from where they would go in the end.
    """

    def __init__(self, size: int) -> None:
        self._last = np.zeros(size)

    def times(self, at: NDArray[np.intp], moved: Floats) -> Floats:
        """How many times as far as `moved` (a,), the change of logarithms at places `at`, they should move."""
        last = self._last[at]
        ratio = np.divide(moved, last, out=np.zeros(len(at)), where=last != 0.0)
        ratio = np.where((ratio > 0.0) & (ratio < ALIKE), np.minimum(ratio, MOST_RATIO), 0.0)
        self._last[at] = np.where(ratio > 0.0, 0.0, moved)
        return np.asarray(1.0 / (1.0 - ratio))


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
        self.dispersion = self.pearson = 1.0
        self.effective = np.array([float(piece.size * turns.n_outputs) for piece in turns.pieces])
        if turns.together:  # a constant column, or one flag of two that are the same, takes no degree of freedom
            self.effective[turns.together] *= rank_of(turns.flat_columns) / len(turns.together)
        self.aitken = Aitken(len(turns.pieces))
        self.spreads: Spreads = (SpreadsOfClasses if turns.loss.code == MULTINOMIAL else SpreadsOfOne)(turns)

    def start(self) -> None:
        """Variances to begin with."""
        for place, piece in enumerate(self.turns.pieces):
            if piece.prior is not Prior.FLAT:
                self.turns.precision[place] = 1.0 / FIRST_VARIANCE

    def find(self, free: Collection[int], tol: float, most: int, *, passing: Collection[int] = ()) -> tuple[int, bool]:
        """Sweep, and move the variances of the pieces at `free`, until they stand still.

        Those of `passing`, some of `free`, need not stand: others will be found for them. How many sweeps it took, at
        most `most` but for those before a last look, and whether they stand.
        """
        n_sweeps = 0
        self.aitken = Aitken(len(self.turns.pieces))
        while n_sweeps < most:
            n_sweeps += self.spreads.n_sweeps
            for _ in range(self.spreads.n_sweeps):
                fall = self.turns.sweep()
            change = self.move(free, passing)
            if change < STILL * tol and fall < STANDING * tol * self.turns.scale(self.dispersion):
                return n_sweeps, True
        return n_sweeps, False

    def move(self, free: Collection[int], passing: Collection[int] = ()) -> float:
        """One update of the dispersion and of the variances at `free`.

        The largest change of a block's effective entries that follows, per row and class: about what the fit is moved
        by. But for those of `passing`.
        """
        turns, change = self.turns, 0.0
        places = [place for place in free if not turns.silent[place]]
        at = np.array(places, dtype=np.intp)
        weighed = self.spreads.weigh(places)
        self.effective[at] = weighed[:, 0]
        if self.has_dispersion:
            change = self._move_dispersion()
        moving, before = np.empty(len(at)), turns.precision[at]
        move_precisions(at, weighed, self.spreads.held, self.dispersion, SILENT, MOST_CHANGE, turns.precision, moving)
        if len(turns.y) <= EXTRAPOLATED_ROWS:
            moved = np.log(turns.precision[at] / before)
            times = self.aitken.times(at, moved)
            turns.precision[at] = before * np.exp(np.clip(times * moved, -MOST_CHANGE, MOST_CHANGE))
            moving *= times
        for place in at[weighed[:, 0] < SILENT]:
            turns.silence(place)
            self.effective[place] = 0.0
        for place, own in zip(places, moving.tolist(), strict=True):
            if place not in passing:
                change = max(change, own / (turns.total * turns.n_outputs))
        return change

    def spread(self, place: int) -> Spread:
        """The posterior of a piece as things stand; its effective entries are kept."""
        found, turns = self.spreads.of(place), self.turns
        self.effective[place] = found.effective
        if turns.precision[place] == 0.0 and turns.sharing.level_of(place) is not None:
            self.effective[place] -= turns.n_outputs  # its mean is the intercept's
        return found

    def variance(self, place: int) -> float:
        """The prior variance of a piece, in units of training; infinite where nothing holds it back."""
        precision = self.turns.precision[place]
        if self.turns.silent[place]:
            return 0.0
        return self.dispersion / precision if precision > 0 else np.inf

    def take_pearson(self) -> None:
        """Pearson's statistic over the residual degrees of freedom, once variances have converged."""
        if self.has_dispersion:
            self.pearson = self._for_freedom_left(self.turns.pearson())

    def _for_freedom_left(self, a_row: float) -> float:
        """A dispersion for the degrees of freedom that are left."""
        turns = self.turns
        used = float(self.effective[~turns.silent].sum())
        left = max(turns.total - used, 0.05 * turns.total)
        return float(max(a_row * turns.total / left, 1e-12 * turns.spread))

    def _move_dispersion(self) -> float:
        """The dispersion that variances go by, over the residual degrees of freedom; how far that moved the edf."""
        turns = self.turns
        used = float(self.effective[~turns.silent].sum())
        now = self._for_freedom_left(turns.dispersion())
        change = abs(math.log(now / self.dispersion)) * used / turns.total
        self.dispersion = now
        return change
