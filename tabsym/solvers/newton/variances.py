"""Variance components: one per term, estimated from the table by REML, or by the loss of held-out rows.

The coefficients of a term (of a walk: the differences of neighbours) are normal about 0 with a common variance.
`VarianceComponents.move` updates it to (sum of squares) / (effective degrees of freedom), as in Wood and Fasiolo
(2017), "A generalized Fellner-Schall method for smoothing parameter estimation", equation 4. The effective
degrees of freedom are q - tr(V) / variance, where V is the term's posterior covariance, joint with the
unpenalized coefficients (intercept, slopes), given the other terms; in models of few terms jointly with these
(`JointPosteriors`). In the Gaussian case with one term, or jointly, the fixed point is the REML estimate; behind a
link it is that of penalized quasi-likelihood, which keeps the Hessian fixed while the variance changes.

The estimate is unreliable where most categories have few rows, above all for the logistic loss: a category seen once
fits its own row, and the likelihood is then nearly flat in the variance. Such terms, and a factor of all those of
several classes, are left to the held-out loss (`HeldOut`, `MulticlassHalves`).

Each of two models is fitted to one half of the rows and evaluated on the other. The derivative of that held-out loss by
the logarithm of a term's precision follows from the derivative of the optimum, at the cost of one more linear solve for
all terms together: with g the gradient of the held-out loss by the coefficients and H the Hessian of the objective,
d loss / d log(precision) = -(H^-1 g)' (gradient of the term's penalty). Each logarithm then takes a few steps against
the sign of its derivative, longer while the sign stays (Riedmiller and Braun 1993, Rprop).

Behind a log link a category that is missing in the other half counts with its mean under the prior, exp(half the
variance) times the others', rather than with its median. Otherwise a loss that is minimal at the mean would favour
small variances, which move the intercept to that mean and shrink the categories that were seen
(`benchmarks/evidence/constants.md`, "prior mean").
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tabsym.design.content import Keys, ShuffledRows
from tabsym.frame.target import Copies
from tabsym.losses.loss import LOGISTIC, MULTINOMIAL, Loss
from tabsym.solvers.newton.block_descent import BlockDescent, SampledRows, taken
from tabsym.solvers.newton.dispersion import MIN_LEFT, NONE_LEFT, UNEVEN, PowerOfWeights, WorkingDispersion, for_sparse
from tabsym.solvers.newton.information import information_of
from tabsym.solvers.newton.kernels_coefs import move_precisions
from tabsym.solvers.newton.kernels_rows import move_and_sum_linear
from tabsym.solvers.newton.posteriors import SingleOutputPosteriors, TermPosterior, TermPosteriors
from tabsym.solvers.newton.posteriors_classes import MulticlassPosteriors
from tabsym.solvers.newton.rows import MulticlassRows, SingleOutputRows
from tabsym.solvers.newton.terms import Prior, SolverTerm, unordered_ratio

Floats = NDArray[np.float64]

FIRST_VARIANCE = 1.0 / 3.0
"""Initial variances, over the dispersion: the coefficient of a category with three rows of Hessian 1 is shrunk by
half."""

OF_POOLED, OF_ZERO = 1.0, 0.5
"""Degrees of freedom of a prior of the variances where there is hardly any information: of one at the variance that all
terms have together, and of one at 0.

By restricted likelihood a column of two categories is kept if its effect is above a standard error: with few events or
rows and many columns the effects of columns without one add up (`benchmarks/evidence/README.md`, "Little
information").
"""

MANY_EVENTS, MANY_PER_TERM = 60, 5
"""The number of events, and of rows or events per term, from which on variances have no prior."""

MIN_EDF = 0.02
"""A term with fewer effective degrees of freedom than this is dropped."""

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


def prior_of_variances(loss: Loss, n_rows: int, n_positive: int, n_terms: int) -> float:
    """The weight of the prior of variances, from 0 to 1; `n_terms`: the number of penalized terms.

    Events are rows of the less frequent of two classes, or positive targets behind a log link, if most are 0. Several
    classes have none: their variances are multiplied by a factor that held-out rows give.
    """
    if loss.code == MULTINOMIAL:
        return 0.0
    n_informed, share = n_rows, 0.0
    if loss.code == LOGISTIC or (loss.log_link and 2 * n_positive < n_rows):
        n_informed = min(n_positive, n_rows - n_positive)
        share = 1.0 - n_informed / MANY_EVENTS
    return max(share, 1.0 - n_informed / (MANY_PER_TERM * max(n_terms, 1)), 0.0)


def with_prior(edf: Floats, squares: Floats, weight: float, units: Floats) -> tuple[Floats, Floats]:
    """Degrees of freedom and sums of squares (terms,) with those of the prior, for updates of the variances.

    `units` (terms,): by which variances of the coefficients are multiplied to be those of a term's parameters.
    """
    if weight == 0.0 or not edf.any():
        return edf, squares
    pooled = float((squares / units).sum() / edf.sum())
    return edf + weight * (OF_POOLED + OF_ZERO), squares + weight * OF_POOLED * pooled * units


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
        n_penalized = sum(term.prior is not Prior.FLAT for term in solver.terms)
        self.prior = prior_of_variances(solver.loss, solver.n_rows, solver.count_positive(), n_penalized)
        self._units = np.array([
            unordered_ratio(term.size - term.n_unordered) if term.prior is Prior.WALK else 1.0 for term in solver.terms
        ])  # fmt: skip
        if not self.has_dispersion:  # weights of classes are no repeated rows, of which there would be more
            self.dispersion = solver.design_effect()
        self.edf = np.array([float(term.size * solver.n_outputs) for term in solver.terms])
        if solver.together:  # a constant or duplicate column takes none
            self.edf[solver.together] *= solver.rank_together() / len(solver.together)
        self.used_jointly: float | None = None
        self._given: list[int] = []
        self._constant_loss = 0.0
        self._working: WorkingDispersion | None = None
        self._power: PowerOfWeights | None = None
        self.aitken = Aitken(len(solver.terms))
        usual = MulticlassPosteriors if solver.loss.code == MULTINOMIAL else SingleOutputPosteriors
        self.posteriors: TermPosteriors = (solver.makes_posteriors or usual)(solver)

    def start(self) -> None:
        """Set the initial variances, at the coefficients of the constant model."""
        solver = self.solver
        if solver.loss.log_link:
            self._working = WorkingDispersion.of(
                solver.loss, solver.total, solver.n_rows, solver.count_positive(), solver.lowest_positive(),
                solver.dispersion(),
            )  # fmt: skip
        if self.has_dispersion and solver.design_effect() > UNEVEN:
            self._power = PowerOfWeights(solver.sums_by_weight(solver.dispersion()))
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

    def keep(self, tuned: Sequence[int]) -> None:
        """Leave the precisions of the terms at `tuned` as they are from now on; the dispersion counts what they use.

        Their degrees of freedom were those at other precisions, and the dispersion by these would be another one than
        that of the model.
        """
        self._given += [index for index in tuned if index not in self._given]

    def find(
        self, free: Collection[int], tol: float, max_iter: int, *, passing: Collection[int] = ()
    ) -> tuple[int, bool]:
        """Alternate iterations and updates of the variances of the terms at `free` until both converge.

        Terms in `passing`, some of `free`, are not checked for convergence: they are estimated again later. Returns the
        number of iterations, at most `max_iter` plus those before a last update, and whether the estimates converged.
        """
        n_iterations = 0
        self.aitken = Aitken(len(self.solver.terms), UPDATES_BETWEEN if self.posteriors.is_joint else 1)
        while n_iterations < max_iter:
            n_iterations += self.posteriors.n_iterations
            for _ in range(self.posteriors.n_iterations):
                decrease = self.solver.update_blocks()
            change = self.move(free, passing)
            enough = tol * self.tolerance_factor()
            if change < STILL * enough and decrease < STANDING * enough * self.solver.scale(self.dispersion):
                return n_iterations, True
        return n_iterations, False

    def move(self, free: Collection[int], passing: Collection[int] = ()) -> float:
        """One update of the dispersion and of the variances at `free`.

        Returns the largest resulting change of a term's effective degrees of freedom, per row and class, which is about
        the change of the fit; terms in `passing` are left out of it.
        """
        solver, change = self.solver, 0.0
        indices = [index for index in free if not solver.dropped[index]]
        at = np.array(indices, dtype=np.intp)
        evaluated = self.posteriors.evaluate(indices)
        self.edf[at] = evaluated[:, 0]
        if self.has_dispersion:
            for index in self._given:
                self.posterior(index)
            change = self._move_dispersion()
        moving, before = np.empty(len(at)), solver.precision[at]
        used, squares = np.ascontiguousarray(evaluated.T)
        edf, squares = with_prior(used, squares, self.prior, self._units[at])
        move_precisions(
            at, used, edf, squares, self.posteriors.n_penalized, self.dispersion, MIN_EDF, MAX_CHANGE,
            solver.precision, moving,
        )  # fmt: skip
        if solver.n_rows <= EXTRAPOLATED_ROWS or solver.loss.code == MULTINOMIAL:
            moved = np.log(solver.precision[at] / before)
            times = self.aitken.times(at, moved)
            solver.precision[at] = before * np.exp(np.clip(times * moved, -MAX_CHANGE, MAX_CHANGE))
            moving *= times
        for index in at[evaluated[:, 0] < MIN_EDF]:
            solver.drop(index)
            self.edf[index] = 0.0
        for index, edf_change in zip(indices, moving.tolist(), strict=True):
            if index not in passing:
                change = max(change, edf_change / (solver.total * solver.n_outputs))
        return change

    def tolerance_factor(self) -> float:
        """1; for several classes the larger, the better they are separated (`SEPARATED`)."""
        if self.solver.loss.code != MULTINOMIAL:
            return 1.0
        of_new_rows = self.solver.mean_loss() + float(self.edf.sum()) / self.solver.total  # as in Akaike's AIC
        return max(self._constant_loss / max(of_new_rows, 1e-9), 1.0) ** SEPARATED

    def posterior(self, index: int) -> TermPosterior:
        """The posterior of a term at the current coefficients; its effective degrees of freedom are stored."""
        posterior, solver = self.posteriors.of(index), self.solver
        self.edf[index] = posterior.edf
        if solver.precision[index] == 0.0 and solver.recentering.level_of(index) is not None:
            self.edf[index] -= solver.n_outputs  # its mean is confounded with the intercept
        return posterior

    def count_unpenalized(self) -> list[int]:
        """Count the degrees of freedom of the unpenalized terms jointly; returns these terms where they are collinear.

        Counted one by one, each term has all its coefficients, so that an interaction's main effects are counted twice,
        and of several classes one more than are identified.
        """
        solver = self.solver
        free = [index for index in solver.active if solver.precision[index] == 0.0]
        if not free or (solver.loss.code != MULTINOMIAL and all(solver.terms[i].prior is Prior.FLAT for i in free)):
            return []
        alone = [solver.terms[i].size - (solver.recentering.level_of(i) not in (None, i)) for i in free]
        rank_of_design, informed = information_of(solver, {}).rank(free)
        rank = sum(alone) if rank_of_design is None else rank_of_design
        classes = solver.n_outputs - (solver.loss.code == MULTINOMIAL)
        self.edf[free] = np.array(alone) * (classes * rank / sum(alone))
        return free if rank < min(informed, sum(alone)) else []

    def count_jointly(self, used: float) -> None:
        """Take the effective degrees of freedom of all terms together, which are fewer than the sum of those of each.

        Given the other terms, the degrees of freedom that terms have in common are counted in each of them, as in
        interactions and their main effects: the sum can exceed the number of rows. Where nothing is penalized
        `count_unpenalized` has the rank, which is a whole number.
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
        """A dispersion per row, rescaled to the residual degrees of freedom; NaN where there are none."""
        left = self._freedom_left(used)
        if left < NONE_LEFT:
            return np.nan
        return float(max(a_row * self.solver.total / left, 1e-12 * self.solver.target_scale))

    def _freedom_left(self, used: float | None = None) -> float:
        """The residual degrees of freedom; penalized terms leave at least `MIN_LEFT` of what unpenalized ones leave."""
        solver = self.solver
        if used is None:
            used = float(self.edf[~solver.dropped].sum())
        free = float(self.edf[~solver.dropped & (solver.precision == 0.0)].sum())
        return max(solver.total - used, MIN_LEFT * (solver.total - free))

    def _move_dispersion(self) -> float:
        """Update the dispersion, over the residual degrees of freedom; the change of the edf by that."""
        solver = self.solver
        now = self._for_freedom_left(solver.dispersion())
        if not np.isfinite(now):  # a saturated model: its variances are estimated with this dispersion
            now = max(solver.dispersion() / MIN_LEFT, 1e-12 * solver.target_scale)
        elif self._working is not None:
            deviance = self._for_freedom_left(solver.mean_deviance()) if self._working.by_deviance else np.nan
            now = self._working(now, deviance, self._freedom_left())
        used = float(self.edf[~solver.dropped].sum())
        if self._power is not None and self._power.value < 1.0:  # else the sums are not needed
            now *= self._power.inflation(solver.sums_by_weight(now), used / solver.total)
        change = abs(math.log(now / self.dispersion)) * used / solver.total
        self.dispersion = now
        return change


MANY_ENTRIES = 100
"""Terms with fewer coefficients keep the variance by REML, which is the better estimate for few categories."""

MIN_EVALUATIONS, MIN_EVALUATIONS_OF_CLASSES = 5, 4
"""Evaluations of the precisions, at least; for regression, and for classification. For regression they start at the
estimate by REML, which can be far from the held-out optimum (`benchmarks/evidence/constants.md`)."""

AS_GOOD, AS_GOOD_OF_CLASSES = 1, 2
"""Precisions are the geometric mean of this many best evaluations: steps are coarse, so that a mean of two is better
for classification; for regression they are still on their way (`benchmarks/evidence/constants.md`)."""

MAX_EVALUATIONS, MUCH, CERTAIN = 12, 0.02, 2.0
"""Evaluations go on, up to this many, while the last one lowers the loss by this fraction of it and by this many
standard errors: the variances started far off. Where they gain less, stopping early ranks rows better
(`benchmarks/evidence/constants.md`)."""

FIRST_STEP, FIRST_STEP_OF_CLASSES, MAX_STEP, LONGER, SHORTER = 1.0, 0.7, 1.5, 1.2, 0.5
"""Rprop's steps of the logarithm of a precision: first, largest, and the factors by which they grow and shrink."""

FIRST_ITERATIONS, ITERATIONS = 4, 2
FIRST_ITERATIONS_OF_CLASSES, ITERATIONS_OF_CLASSES = 3, 1
"""Iterations of the models, before the first evaluation and between two: the sign of the derivative needs no
convergence.

Regression needs more of them than classification (`benchmarks/evidence/constants.md`).
"""

MIN_PRECISION, MAX_PRECISION = 1e-3, 1e5
"""Bounds of a precision, over the Hessian of a row of average weight and the dispersion."""

MAX_DOUBLINGS, MAX_ITERATIONS_OF_HALF = 10, 12
"""Several classes: how often all variances are doubled at most, and the most iterations of the models for each; they
are doubled while that lowers the held-out loss by `CERTAIN` standard errors."""

MAX_RISE = 5.0
"""The largest difference between the logarithms of a mean and of the median: a factor of 150."""


class HeldOut:
    """Two models, each trained on half of the rows, and the held-out loss of the rows.

    Parameters
    ----------
    solver : BlockDescent
        Of two models, for a loss with one linear predictor.
    dispersion : float
        A variance is this over its precision.
    """

    def __init__(self, solver: BlockDescent, dispersion: float) -> None:
        assert isinstance(solver.rows, SingleOutputRows)
        self.solver, self.rows, self.dispersion = solver, solver.rows, dispersion
        self._adjoint = [np.zeros_like(theta) for theta in solver.theta]
        self._delta_eta = np.zeros(len(solver.y))
        self._sums = np.empty((1 + max(term.size for term in solver.terms)) * self.rows.width)

    def tune(self, free: Sequence[int]) -> Floats:
        """Precisions of the terms at `free`, the geometric mean of the best of a few evaluations."""
        solver, free = self.solver, list(free)
        logs = np.log([solver.precision[index] for index in free])
        for_classes = solver.loss.for_classes
        min_evaluations, n_best = (
            (MIN_EVALUATIONS_OF_CLASSES, AS_GOOD_OF_CLASSES) if for_classes else (MIN_EVALUATIONS, AS_GOOD)
        )
        first, more = (
            (FIRST_ITERATIONS_OF_CLASSES, ITERATIONS_OF_CLASSES) if for_classes else (FIRST_ITERATIONS, ITERATIONS)
        )
        steps = np.full(len(free), FIRST_STEP_OF_CLASSES if for_classes else FIRST_STEP)
        before = np.zeros(len(free))
        new = {index: self._is_new(index) for index in free} if solver.loss.log_link else {}
        evaluations: list[tuple[float, Floats]] = []
        best_losses = np.full(len(solver.y), np.inf)  # the losses of the best evaluation
        for number in range(MAX_EVALUATIONS):
            for index, log in zip(free, logs, strict=True):
                solver.precision[index] = float(np.exp(log))
            for _ in range(more if number else first):
                solver.update_blocks()
            rises = {index: self._rise(index) * is_new for index, is_new in new.items()}
            scores = np.asarray(sum(rises.values(), self.scores()))
            losses = solver.loss.values(scores[:, None], solver.y)
            evaluations.append((solver.mean_of(losses), logs))
            goes_on = number + 1 < min_evaluations or self._is_much_better(losses, best_losses)
            if not goes_on or number + 1 == MAX_EVALUATIONS:
                break
            if evaluations[-1][0] == min(loss for loss, _ in evaluations):
                best_losses = losses
            signs = np.sign(self._slopes(free, scores, rises))
            steps = np.where(signs * before > 0, np.minimum(LONGER * steps, MAX_STEP), steps)
            steps = np.where(signs * before < 0, SHORTER * steps, steps)
            before = signs
            logs = np.clip(logs - signs * steps, np.log(MIN_PRECISION), np.log(MAX_PRECISION))
        best = sorted(evaluations, key=lambda evaluation: evaluation[0])[:n_best]
        return np.exp(np.mean([logs for _, logs in best], axis=0))

    def of_all_rows(self, index: int) -> Floats:
        """Approximate coefficients (q, 1) of a term for one model of all rows: combined from both by their Hessians.

        The other terms stay fixed, and the Hessians are those at the current coefficients.
        """
        hessians, precision = self.solver.curvature[index], self.solver.precision[index]
        known = self.solver.theta[index] * (hessians + precision)
        return (known[:, :1] + known[:, 1:]) / (hessians[:, :1] + hessians[:, 1:] + precision)

    def _is_much_better(self, losses: Floats, than: Floats) -> bool:
        """Whether losses (n,) are lower than the losses `than` in the mean, by much and significantly."""
        weight = self.solver.weight if len(self.solver.weight) else np.ones(len(losses))
        gains = weight * (than - losses)
        return bool(gains.sum() > MUCH * abs(float(weight @ than))) and _is_certain(gains, self.solver.copies, CERTAIN)

    def scores(self) -> Floats:
        """Held-out linear predictors (n,) of the rows."""
        return self.rows.scores_by_sums(self.solver.terms, self.solver.theta, flip=True)[:, 0]

    def _is_new(self, index: int) -> Floats:
        """1 for rows (n,) whose coefficient has no row in the other half, else 0; times x squared."""
        term, solver = self.solver.terms[index], self.solver
        pairs = 2 * np.maximum(term.codes, 0) + self.rows.column
        has = term.codes >= 0
        counted = has & (solver.weight > 0.0) if len(solver.weight) else has
        seen = np.bincount(pairs[counted], minlength=2 * term.size)
        new = has & (seen[pairs ^ 1] == 0)
        return new * np.square(term.x) if len(term.x) else new.astype(np.float64)

    def _rise(self, index: int) -> float:
        """The logarithm of an unseen coefficient's mean over its median, 1: half the variance."""
        return min(0.5 * self.dispersion / float(self.solver.precision[index]), MAX_RISE)

    def _slopes(self, free: Sequence[int], scores: Floats, rises: Mapping[int, Floats]) -> Floats:
        """Derivatives of the held-out loss, at `scores`, by the logarithms of the precisions at `free`, up to a factor.

        `rises` (n,) by index: the shift of linear predictors for unseen coefficients, which decreases as precisions
        grow.

        The linear solve is approximate, continued by one iteration per evaluation, since signs alone are used; more
        iterations do not help (`benchmarks/evidence/constants.md`).
        """
        solver, rows = self.solver, self.rows
        row_gradients, _ = rows.gradients_for(scores)
        _, hessians = rows.grads()
        active = solver.active
        before, steps = solver.terms[0], np.zeros_like(solver.theta[0])
        for index in active:
            term, adjoint, precision = solver.terms[index], self._adjoint[index], solver.precision[index]
            gradient = self._move_and_sum(before, steps, term, hessians, row_gradients)
            before = term
            steps, _ = term.step(gradient, solver.curvature[index], adjoint, precision)
        self._move_and_sum(before, steps, before, hessians, row_gradients)
        grads = (solver.terms[index].penalty_gradient(solver.theta[index], solver.precision[index]) for index in free)
        slopes = [-float((self._adjoint[index] * grad).sum()) for index, grad in zip(free, grads, strict=True)]
        for number, index in enumerate(free):
            if index in rises and self._rise(index) < MAX_RISE:
                slopes[number] -= float(row_gradients @ rises[index])
        return np.array(slopes)

    def _move_and_sum(
        self, before: SolverTerm, steps: Floats, term: SolverTerm, hessians: Floats, row_gradients: Floats
    ) -> Floats:
        """Apply the steps of one term to the rows' part of z; the residual of Hz = g by another term (q, 2)."""
        rows, sums = self.rows, self._sums[: (1 + term.size) * self.rows.width]
        move_and_sum_linear(
            rows.codes(before), before.x, rows.padded(steps), rows.codes(term), term.x, hessians, row_gradients,
            self._delta_eta, sums,
        )  # fmt: skip
        return rows.by_coef(sums)


class MulticlassHalves:
    """Two models, each trained on half of the rows, that find a common factor of all variances for several classes.

    Variances by REML are too small where classes are well separated: the Hessian at the optimum, for a class that a
    category hardly ever has, is small but not 0, and so counts degrees of freedom that no sum of squares goes with
    (`benchmarks/evidence/README.md`, "Several classes").

    Parameters
    ----------
    solver : BlockDescent
        Of all rows; its precisions, dropped terms and unpenalized coefficients are where the models start.
    rows : SampledRows
    dealt : Dealt
    column : (n,) int8
        Of these rows, the model whose training rows include each.
    """

    def __init__(
        self, solver: BlockDescent, rows: SampledRows, shuffled: ShuffledRows, column: NDArray[np.int8]
    ) -> None:
        first, second = (shuffled.take(column == half) for half in range(2))
        self._rows, self._halves = rows, [_Half(solver, rows, first, second), _Half(solver, rows, second, first)]

    def factor(self, free: Sequence[int], tol: float) -> float:
        """The factor of the variances at `free`: doubled while that lowers the held-out loss significantly.

        `tol`: of the models' iterations, per row.
        """
        factor, losses = 1.0, self._losses(tol)
        for _ in range(MAX_DOUBLINGS):
            for half in self._halves:
                half.model.precision[list(free)] /= 2.0
            wider = self._losses(tol)
            if not _is_certain(losses - wider, self._rows[-1], CERTAIN):
                break
            factor, losses = 2.0 * factor, wider
        return factor

    def _losses(self, tol: float) -> Floats:
        """Held-out losses (n,) of the rows, times their weight."""
        losses = np.zeros(len(self._rows[1]))
        for half in self._halves:
            np.add.at(losses, half.indices, half.losses(tol))
        return losses


class _Half:
    """A model of its training rows, and the held-out rows, of which those count whose classes it has seen."""

    def __init__(self, solver: BlockDescent, rows: SampledRows, training: ShuffledRows, held_out: ShuffledRows) -> None:
        terms, y, weight, start, copies = taken(rows, training)
        seen = np.unique(y[weight > 0.0] if len(weight) else y)
        self.model = BlockDescent(terms, y, weight, start, solver.loss, copies=copies)
        self.model.precision, self.model.dropped = solver.precision.copy(), solver.dropped.copy()
        pairs = zip(terms, solver.theta, strict=True)
        self.model.put([theta if term.prior is Prior.FLAT else np.zeros_like(theta) for term, theta in pairs])
        self.indices = held_out.rows
        self._terms, self._y, weight, start, _ = taken(rows, held_out)
        weight = weight if len(weight) else np.ones(len(self._y))
        self._weight = np.where(np.isin(self._y, seen), weight, 0.0)
        self._held_out = MulticlassRows(self._y, self._weight, start)

    def losses(self, tol: float) -> Floats:
        """Losses of the held-out rows, times their weight, once the model has converged."""
        self.model.iterate(tol, MAX_ITERATIONS_OF_HALF, surely=True)
        scores = self._held_out.scores_by_sums(self._terms, self.model.theta)
        return self._weight * self.model.loss.values(scores, self._y)


def _is_certain(gains: Floats, copies: Copies, errors: float) -> bool:
    """Whether the sum of gains (n,), of rows with `copies` (n,), is above a number `errors` of its standard errors."""
    number = np.ones(len(gains)) if copies is None else copies.astype(np.float64)
    total = float(gains.sum())
    return total > errors * float(np.sqrt(number @ np.square(gains / number - total / number.sum())))


def halves_of(
    content: Keys, copies: Copies, classes: Floats | None, rng: np.random.RandomState
) -> tuple[ShuffledRows, NDArray[np.int8]]:
    """Rows, as they are ordered, and the model whose training rows include each: halves, stratified by class.

    Without stratification the variances vary more with the random state (`benchmarks/evidence/constants.md`).
    """
    order = ShuffledRows.of(content, copies, rng)
    stratum = None if classes is None else classes[order.rows].astype(np.int16)  # radix sort, for 16-bit integers
    return ShuffledRows.in_order(*order.deal(2, rng, stratum))
