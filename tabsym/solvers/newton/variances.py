"""Shrinkage by evidence: one variance per block, estimated from the table.

Parametric empirical Bayes. The coefficients of a block are normal about 0 (differences of neighbours are, for a walk),
with a variance that the rows tell: `Evidence.move` moves it to (sum of squares) / (effective number of coefficients),
as in Wood and Fasiolo (2017), "A generalized Fellner-Schall method for smoothing parameter estimation", equation 4. The
effective number is q - tr(V) / variance, where V is the block's posterior covariance, joint with what is not penalized
(intercept, slopes), given the other blocks. In the Gaussian case of one block the fixed point is the REML estimate;
behind a link it is penalized quasi-likelihood's, whose curvature is held fixed as the variance moves.

Where most categories have few rows, and above all where the loss is logistic, that is not to be trusted: a category
seen once fits its own row, and a likelihood behind a link cannot tell its variance from 0, nor from 1. Such blocks are
left to `heldout`.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from tabsym.losses.kernels import LOGISTIC, MULTINOMIAL
from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.fixed_effects import rank_of
from tabsym.solvers.newton.kernels_coefs import move_precisions
from tabsym.solvers.newton.posteriors import SingleOutputPosteriors, TermPosterior, TermPosteriors
from tabsym.solvers.newton.posteriors_classes import MulticlassPosteriors
from tabsym.solvers.newton.terms import Prior

Floats = NDArray[np.float64]

FIRST_VARIANCE = 1.0 / 3.0
"""Where variances start, over the dispersion: a category of three rows of curvature 1 is believed half."""

SILENT = 0.02
"""A block whose coefficients come to so little together, effectively, is taken out."""

MAX_CHANGE = math.log(30.0)
"""Of a logarithm of a variance at once."""

MAX_RATIO = 0.95
"""Of an update to the one before it, for extrapolation: on its way to 0 a variance shrinks by the same each time."""

ALIKE = 1.1
"""Updates that grow by more are not yet on a straight way."""

EXTRAPOLATED_ROWS = 10_000
"""Of larger tables updates are taken as they are: variances move predictions by less there, and those of interactions
that are stopped early predict better (log-loss of kick .05 %, of adult .03 %, RMSE of rossmann .3 %; five folds)."""

STILL, STANDING = 30.0, 3.0
"""Variances are settled where an update moves the effective coefficients, and a sweep lowers the objective, by less
than this times the tolerance, per row (coefficients: per class too): a variance is an estimate of a few digits, the
parameters that follow are not. With twice as much, fits take a twentieth to an eighth less time, and amazon loses .0002
of AUC; rossmann is .5 % worse on one seed, .3 % better on two."""


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
        ratio = np.where((ratio > 0.0) & (ratio < ALIKE), np.minimum(ratio, MAX_RATIO), 0.0)
        self._last[at] = np.where(ratio > 0.0, 0.0, moved)
        return np.asarray(1.0 / (1.0 - ratio))


class Evidence:
    """The variances of the terms of one model, and the dispersion of its rows.

    Parameters
    ----------
    solver : BlockDescent
        Of one model; its `precision` is set.
    """

    def __init__(self, solver: BlockDescent) -> None:
        self.solver = solver
        self.has_dispersion = solver.loss.code not in (LOGISTIC, MULTINOMIAL)
        self.dispersion = self.pearson = 1.0
        self.edf = np.array([float(term.size * solver.n_outputs) for term in solver.terms])
        if solver.together:  # a constant column, or one flag of two that are the same, takes no degree of freedom
            self.edf[solver.together] *= rank_of(solver.flat_columns) / len(solver.together)
        self.aitken = Aitken(len(solver.terms))
        self.posteriors: TermPosteriors = (
            MulticlassPosteriors if solver.loss.code == MULTINOMIAL else SingleOutputPosteriors
        )(solver)

    def start(self) -> None:
        """Variances to begin with."""
        for index, term in enumerate(self.solver.terms):
            if term.prior is not Prior.FLAT:
                self.solver.precision[index] = 1.0 / FIRST_VARIANCE

    def find(self, free: Collection[int], tol: float, most: int, *, passing: Collection[int] = ()) -> tuple[int, bool]:
        """Sweep, and move the variances of the terms at `free`, until they converge.

        Those of `passing`, some of `free`, need not stand: others will be found for them. How many sweeps it took, at
        most `most` but for those before a last look, and whether they stand.
        """
        n_sweeps = 0
        self.aitken = Aitken(len(self.solver.terms))
        while n_sweeps < most:
            n_sweeps += self.posteriors.n_sweeps
            for _ in range(self.posteriors.n_sweeps):
                decrease = self.solver.sweep()
            change = self.move(free, passing)
            if change < STILL * tol and decrease < STANDING * tol * self.solver.scale(self.dispersion):
                return n_sweeps, True
        return n_sweeps, False

    def move(self, free: Collection[int], passing: Collection[int] = ()) -> float:
        """One update of the dispersion and of the variances at `free`.

        The largest change of a block's effective coefficients that follows, per row and class: about what the fit is
        moved by. But for those of `passing`.
        """
        solver, change = self.solver, 0.0
        indices = [index for index in free if not solver.dropped[index]]
        at = np.array(indices, dtype=np.intp)
        weighed = self.posteriors.weigh(indices)
        self.edf[at] = weighed[:, 0]
        if self.has_dispersion:
            change = self._move_dispersion()
        moving, before = np.empty(len(at)), solver.precision[at]
        move_precisions(
            at, weighed, self.posteriors.held, self.dispersion, SILENT, MAX_CHANGE, solver.precision, moving
        )
        if len(solver.y) <= EXTRAPOLATED_ROWS:
            moved = np.log(solver.precision[at] / before)
            times = self.aitken.times(at, moved)
            solver.precision[at] = before * np.exp(np.clip(times * moved, -MAX_CHANGE, MAX_CHANGE))
            moving *= times
        for index in at[weighed[:, 0] < SILENT]:
            solver.drop(index)
            self.edf[index] = 0.0
        for index, own in zip(indices, moving.tolist(), strict=True):
            if index not in passing:
                change = max(change, own / (solver.total * solver.n_outputs))
        return change

    def posterior(self, index: int) -> TermPosterior:
        """The posterior of a term as things stand; its effective coefficients are kept."""
        found, solver = self.posteriors.of(index), self.solver
        self.edf[index] = found.edf
        if solver.precision[index] == 0.0 and solver.recentering.level_of(index) is not None:
            self.edf[index] -= solver.n_outputs  # its mean is the intercept's
        return found

    def variance(self, index: int) -> float:
        """The prior variance of a term, in units of training; infinite where nothing holds it back."""
        precision = self.solver.precision[index]
        if self.solver.dropped[index]:
            return 0.0
        return self.dispersion / precision if precision > 0 else np.inf

    def take_pearson(self) -> None:
        """Pearson's statistic over the residual degrees of freedom, once variances have converged."""
        if self.has_dispersion:
            self.pearson = self._for_freedom_left(self.solver.pearson())

    def _for_freedom_left(self, a_row: float) -> float:
        """A dispersion for the degrees of freedom that are left."""
        solver = self.solver
        used = float(self.edf[~solver.dropped].sum())
        left = max(solver.total - used, 0.05 * solver.total)
        return float(max(a_row * solver.total / left, 1e-12 * solver.target_scale))

    def _move_dispersion(self) -> float:
        """The dispersion that variances go by, over the residual degrees of freedom; how far that moved the edf."""
        solver = self.solver
        used = float(self.edf[~solver.dropped].sum())
        now = self._for_freedom_left(solver.dispersion())
        change = abs(math.log(now / self.dispersion)) * used / solver.total
        self.dispersion = now
        return change
