"""Variance components by REML: one per term, estimated from the table (parametric empirical Bayes).

The coefficients of a term (of a walk: the differences of neighbours) are normal about 0 with a common variance.
`VarianceComponents.move` updates it to (sum of squares) / (effective degrees of freedom), as in Wood and Fasiolo
(2017), "A generalized Fellner-Schall method for smoothing parameter estimation", equation 4. The effective
degrees of freedom are q - tr(V) / variance, where V is the term's posterior covariance, joint with the
unpenalized coefficients (intercept, slopes), given the other terms; in models of few terms jointly with these
(`posteriors_joint`). In the Gaussian case with one term, or jointly, the fixed point is the REML estimate; behind a
link it is that of penalized quasi-likelihood, which keeps the Hessian fixed while the variance changes.

The estimate is unreliable where most categories have few rows, above all for the logistic loss: a category seen once
fits its own row, and the likelihood is then nearly flat in the variance. Such terms are left to `heldout`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from tabsym.losses.kernels import LOGISTIC, MULTINOMIAL
from tabsym.solvers.newton.block_descent import BlockDescent, for_sparse
from tabsym.solvers.newton.information import information_of
from tabsym.solvers.newton.kernels_coefs import move_precisions
from tabsym.solvers.newton.posteriors import SingleOutputPosteriors, TermPosterior, TermPosteriors
from tabsym.solvers.newton.posteriors_classes import MulticlassPosteriors
from tabsym.solvers.newton.terms import Prior

Floats = NDArray[np.float64]

FIRST_VARIANCE = 1.0 / 3.0
"""Initial variances, over the dispersion: the coefficient of a category with three rows of Hessian 1 is shrunk by
half."""

SILENT = 0.02
"""A term with fewer effective degrees of freedom than this is dropped."""

LEAST_DISPERSION, FEW_POSITIVE = 0.1, 100
"""Behind a log link, where most targets are 0, the dispersion is at least the first times that of the constant model,
and `FEW_POSITIVE` over the number of positive targets (at most 1) where that is more. Zeros whose means go to 0 have no
residual, and where ids or many bins fit the few others the dispersion would go to 0, and with it all shrinkage
(`benchmarks/evidence/README.md`, "Many zeros")."""

MAX_CHANGE = math.log(30.0)
"""The largest change of the logarithm of a variance in one update."""

MAX_RATIO = 0.95
"""The largest ratio of successive updates in extrapolation: on its way to 0 a logarithm moves by the same each time."""

UPDATES_BETWEEN = 3
"""Updates between two extrapolations where degrees of freedom are joint, and one moves those of the other terms."""

ALIKE = 1.1
"""Updates whose ratio is above this do not converge linearly yet, and are not extrapolated."""

EXTRAPOLATED_ROWS = 10_000
"""Tables up to this size extrapolate the updates, and all tables of several classes, whose iterations are expensive. Of
larger ones variances change predictions by less, and those of interactions predict better when stopped early
(`benchmarks/evidence/constants.md`)."""

STILL, STANDING = 30.0, 3.0
"""Variances have converged where an update changes the effective degrees of freedom, and an iteration lowers the
objective, by less than this times the tolerance, per row (degrees of freedom: per class too). A variance is needed to a
few digits only; larger factors save little time (`benchmarks/evidence/constants.md`)."""

SEPARATED = 2.0
"""Several classes: the tolerance grows with this power of the loss of the constant model over that which the model is
expected to have of new rows. Where classes are well separated, most variances by REML go on falling towards 0, and the
closer they come the worse they predict (`benchmarks/evidence/README.md`, "Several classes")."""


class Aitken:
    """Aitken extrapolation of updates that shrink by a constant ratio to their limit, `wait` updates after the last.

    Fellner and Schall's updates converge linearly, and arbitrarily slowly near a variance of 0, so that the size of an
    update does not measure the distance to the limit (`benchmarks/evidence/constants.md`, "Aitken").
    """

    def __init__(self, size: int, wait: int = 1) -> None:
        self._last, self._since, self._wait = np.zeros(size), np.zeros(size, dtype=np.int64), wait

    def times(self, at: NDArray[np.intp], moved: Floats) -> Floats:
        """Factors for the changes of logarithms `moved` (a,) at indices `at`, 1 where they are not extrapolated."""
        last = self._last[at]
        ratio = np.divide(moved, last, out=np.zeros(len(at)), where=last != 0.0)
        is_due = self._since[at] >= self._wait
        ratio = np.where((ratio > 0.0) & (ratio < ALIKE) & is_due, np.minimum(ratio, MAX_RATIO), 0.0)
        self._last[at] = np.where(ratio > 0.0, 0.0, moved)
        self._since[at] = np.where(ratio > 0.0, 0, self._since[at] + 1)
        return np.asarray(1.0 / (1.0 - ratio))


class VarianceComponents:
    """The variance components of one model, and the dispersion of its rows.

    Parameters
    ----------
    solver : BlockDescent
        Of one model; its `precision` is set.
    """

    def __init__(self, solver: BlockDescent) -> None:
        self.solver = solver
        self.has_dispersion = solver.loss.code not in (LOGISTIC, MULTINOMIAL)
        self.dispersion = self.pearson = 1.0
        if not self.has_dispersion:  # weights of classes are no repeated rows, of which there would be more
            self.dispersion = solver.design_effect()
        self.edf = np.array([float(term.size * solver.n_outputs) for term in solver.terms])
        if solver.together:  # a constant or duplicate column takes none
            self.edf[solver.together] *= solver.rank_together() / len(solver.together)
        self.used_jointly: float | None = None
        self._given: list[int] = []
        self._least_dispersion, self._constant_loss = 0.0, 0.0
        self.aitken = Aitken(len(solver.terms))
        usual = MulticlassPosteriors if solver.loss.code == MULTINOMIAL else SingleOutputPosteriors
        self.posteriors: TermPosteriors = (solver.makes_posteriors or usual)(solver)

    def start(self) -> None:
        """Set the initial variances, at the coefficients of the constant model."""
        solver = self.solver
        positive = solver.count_positive() if solver.loss.log_link else 0
        if 0 < 2 * positive < solver.n_rows:
            self._least_dispersion = max(LEAST_DISPERSION, min(FEW_POSITIVE / positive, 1.0)) * solver.dispersion()
        if solver.loss.code == MULTINOMIAL:
            self._constant_loss = solver.mean_loss()
        for index, term in enumerate(self.solver.terms):
            if term.prior is not Prior.FLAT:
                self.solver.precision[index] = 1.0 / FIRST_VARIANCE

    def take(self, given: Mapping[int, float]) -> None:
        """Take the precisions of some terms as given; their degrees of freedom leave the dispersion fewer from now on.

        Those of unpenalized terms are the rank of their design, whatever the coefficients are.
        """
        self.solver.precision[list(given)] = list(given.values())
        self._given = [index for index, precision in given.items() if precision > 0.0]
        if given and self.has_dispersion:
            self.count_unpenalized()

    def find(self, free: Collection[int], tol: float, most: int, *, passing: Collection[int] = ()) -> tuple[int, bool]:
        """Alternate iterations and updates of the variances of the terms at `free` until both converge.

        Terms in `passing`, some of `free`, are not checked for convergence: they are estimated again later. Returns the
        number of iterations, at most `most` plus those before a last update, and whether the estimates converged.
        """
        n_sweeps = 0
        self.aitken = Aitken(len(self.solver.terms), UPDATES_BETWEEN if self.posteriors.is_joint else 1)
        while n_sweeps < most:
            n_sweeps += self.posteriors.n_sweeps
            for _ in range(self.posteriors.n_sweeps):
                decrease = self.solver.sweep()
            change = self.move(free, passing)
            enough = tol * self.tolerance_factor()
            if change < STILL * enough and decrease < STANDING * enough * self.solver.scale(self.dispersion):
                return n_sweeps, True
        return n_sweeps, False

    def move(self, free: Collection[int], passing: Collection[int] = ()) -> float:
        """One update of the dispersion and of the variances at `free`.

        Returns the largest resulting change of a term's effective degrees of freedom, per row and class, which is about
        the change of the fit; terms in `passing` are left out of it.
        """
        solver, change = self.solver, 0.0
        indices = [index for index in free if not solver.dropped[index]]
        at = np.array(indices, dtype=np.intp)
        weighed = self.posteriors.weigh(indices)
        self.edf[at] = weighed[:, 0]
        if self.has_dispersion:
            for index in self._given:
                self.posterior(index)
            change = self._move_dispersion()
        moving, before = np.empty(len(at)), solver.precision[at]
        move_precisions(
            at, weighed, self.posteriors.held, self.dispersion, SILENT, MAX_CHANGE, solver.precision, moving
        )
        if solver.n_rows <= EXTRAPOLATED_ROWS or solver.loss.code == MULTINOMIAL:
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

    def tolerance_factor(self) -> float:
        """1; for several classes the larger, the better they are separated (`SEPARATED`)."""
        if self.solver.loss.code != MULTINOMIAL:
            return 1.0
        of_new_rows = self.solver.mean_loss() + float(self.edf.sum()) / self.solver.total  # as in Akaike's AIC
        return max(self._constant_loss / max(of_new_rows, 1e-9), 1.0) ** SEPARATED

    def posterior(self, index: int) -> TermPosterior:
        """The posterior of a term at the current coefficients; its effective degrees of freedom are stored."""
        found, solver = self.posteriors.of(index), self.solver
        self.edf[index] = found.edf
        if solver.precision[index] == 0.0 and solver.recentering.level_of(index) is not None:
            self.edf[index] -= solver.n_outputs  # its mean is confounded with the intercept
        return found

    def count_unpenalized(self) -> list[int]:
        """Count the degrees of freedom of the unpenalized terms together; these, where some determine others.

        By itself each term counts all its coefficients, and so an interaction's main effects are counted twice, and of
        several classes one more than are identified.
        """
        solver = self.solver
        free = [i for i in range(len(solver.terms)) if not solver.dropped[i] and solver.precision[i] == 0.0]
        if not free or (solver.loss.code != MULTINOMIAL and all(solver.terms[i].prior is Prior.FLAT for i in free)):
            return []
        alone = [solver.terms[i].size - (solver.recentering.level_of(i) not in (None, i)) for i in free]
        found, informed = information_of(solver, {}).rank(free)
        rank = sum(alone) if found is None else found
        classes = solver.n_outputs - (solver.loss.code == MULTINOMIAL)
        self.edf[free] = np.array(alone) * (classes * rank / sum(alone))
        return free if rank < min(informed, sum(alone)) else []

    def count_jointly(self, used: float) -> None:
        """Take the effective degrees of freedom of all terms together, which are fewer than the sum of those of each.

        Given the others, what terms share is counted in each of them, as by interactions and their main effects: there
        were more than rows. Where nothing is penalized `count_unpenalized` has the rank, which is a whole number.
        """
        if self._is_penalized():
            self.used_jointly = used
            self.take_pearson()

    def _is_penalized(self) -> bool:
        return bool((self.solver.precision[~self.solver.dropped] > 0.0).any())

    def variance(self, index: int) -> float:
        """The prior variance of a term, in the scale of training; infinite where it is unpenalized."""
        precision = self.solver.precision[index]
        if self.solver.dropped[index]:
            return 0.0
        return self.dispersion / precision if precision > 0 else np.inf

    def take_pearson(self) -> None:
        """Store Pearson's statistic over the residual degrees of freedom, once variances have converged."""
        if self.has_dispersion:
            statistic, fletcher = self.solver.pearson()
            if self._is_penalized():  # without penalties that of a GLM
                statistic = for_sparse(statistic, fletcher)
            self.pearson = self._for_freedom_left(statistic, self.used_jointly)

    def _for_freedom_left(self, a_row: float, used: float | None = None) -> float:
        """A dispersion per row, rescaled to the residual degrees of freedom."""
        solver = self.solver
        if used is None:
            used = float(self.edf[~solver.dropped].sum())
        left = max(solver.total - used, 0.05 * solver.total)
        return float(max(a_row * solver.total / left, 1e-12 * solver.target_scale))

    def _move_dispersion(self) -> float:
        """Update the dispersion, over the residual degrees of freedom; the change of the edf by that."""
        solver = self.solver
        used = float(self.edf[~solver.dropped].sum())
        now = max(self._for_freedom_left(solver.dispersion()), self._least_dispersion)
        change = abs(math.log(now / self.dispersion)) * used / solver.total
        self.dispersion = now
        return change
