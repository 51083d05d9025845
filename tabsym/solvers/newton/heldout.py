"""Variances by the held-out loss: of terms with few rows per category, and a factor of all those of several classes.

Each of two models is fitted to one half of the rows and evaluated on the other. The derivative of that held-out loss by
the logarithm of a term's precision follows from the derivative of the optimum, at the cost of one more linear solve for
all terms together: with g the gradient of the held-out loss by the coefficients and H the Hessian of the objective,
d loss / d log(precision) = -(H^-1 g)' (gradient of the term's penalty). Each logarithm then takes a few steps against
the sign of its derivative, longer while the sign stays (Riedmiller and Braun 1993, Rprop).

Behind a log link a category that is missing in the other half counts with its mean under the prior, exp(half the
variance) times the others', rather than with its median. Otherwise a loss that is minimal at the mean would favour
small variances, which move the intercept to that mean and shrink the categories that were seen
(`benchmarks/evidence/constants.md`, "prior mean").

Why not by REML: see `variances`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tabsym.design.content import Dealt, Keys
from tabsym.frame.weights import Copies
from tabsym.solvers.newton.block_descent import BlockDescent, SampledRows, taken
from tabsym.solvers.newton.kernels_rows import take_linear_turn
from tabsym.solvers.newton.rows import MulticlassRows, SingleOutputRows
from tabsym.solvers.newton.terms import Prior, SolverTerm

Floats = NDArray[np.float64]

MANY_ENTRIES = 100
"""Terms with fewer coefficients keep the variance by REML, which is the better estimate for few categories."""

LOOKS, LOOKS_OF_CLASSES = 5, 4
"""Evaluations of the precisions, at least; for regression, and for classification. For regression they start at the
estimate by REML, which can be far from the held-out optimum (`benchmarks/evidence/constants.md`)."""

AS_GOOD, AS_GOOD_OF_CLASSES = 1, 2
"""Precisions are the geometric mean of this many best evaluations: steps are coarse, so that a mean of two is better
for classification; for regression they are still on their way (`benchmarks/evidence/constants.md`)."""

MAX_LOOKS, MUCH, CERTAIN = 12, 0.02, 2.0
"""Evaluations go on, up to this many, while the last one lowers the loss by this fraction of it and by this many
standard errors: the variances started far off. Where they gain less, stopping early ranks rows better
(`benchmarks/evidence/constants.md`)."""

FIRST_STEP, FIRST_STEP_OF_CLASSES, MAX_STEP, LONGER, SHORTER = 1.0, 0.7, 1.5, 1.2, 0.5
"""Rprop's steps of the logarithm of a precision: first, largest, and the factors by which they grow and shrink."""

FIRST_SWEEPS, SWEEPS = 4, 2
FIRST_SWEEPS_OF_CLASSES, SWEEPS_OF_CLASSES = 3, 1
"""Iterations of the models, before the first evaluation and between two: the sign of the derivative needs no
convergence.

Regression needs more of them than classification (`benchmarks/evidence/constants.md`).
"""

MIN_PRECISION, MAX_PRECISION = 1e-3, 1e5
"""Bounds of a precision, over the Hessian of a row of average weight and the dispersion."""

MAX_DOUBLINGS, MAX_SWEEPS_OF_HALF = 10, 12
"""Several classes: how often all variances are doubled at most, and the most iterations of the models for each; they
are doubled while that lowers the held-out loss by `CERTAIN` standard errors."""

MAX_RISE = 5.0
"""The most by which the logarithm of a mean exceeds that of the median: a factor of 150."""


class HeldOut:
    """Two models of half the rows each, and the held-out loss of the rows.

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
        self._reach = np.zeros(len(solver.y))
        self._sums = np.empty((1 + max(term.size for term in solver.terms)) * self.rows.width)

    def tune(self, free: Sequence[int]) -> Floats:
        """Precisions of the terms at `free`, the geometric mean of the best of a few evaluations."""
        solver, free = self.solver, list(free)
        logs = np.log([solver.precision[index] for index in free])
        for_classes = solver.loss.for_classes
        n_looks, n_best = (LOOKS_OF_CLASSES, AS_GOOD_OF_CLASSES) if for_classes else (LOOKS, AS_GOOD)
        first, more = (FIRST_SWEEPS_OF_CLASSES, SWEEPS_OF_CLASSES) if for_classes else (FIRST_SWEEPS, SWEEPS)
        steps = np.full(len(free), FIRST_STEP_OF_CLASSES if for_classes else FIRST_STEP)
        before = np.zeros(len(free))
        new = {index: self._is_new(index) for index in free} if solver.loss.log_link else {}
        looks: list[tuple[float, Floats]] = []
        rows = np.full(len(solver.y), np.inf)  # the losses of the best evaluation
        for look in range(MAX_LOOKS):
            for index, log in zip(free, logs, strict=True):
                solver.precision[index] = float(np.exp(log))
            for _ in range(more if look else first):
                solver.sweep()
            rises = {index: self._rise(index) * is_new for index, is_new in new.items()}
            scores = np.asarray(sum(rises.values(), self.scores()))
            own = solver.loss.values(scores[:, None], solver.y)
            looks.append((solver.mean_of(own), logs))
            goes_on = look + 1 < n_looks or self._is_much_better(own, rows)
            if not goes_on or look + 1 == MAX_LOOKS:
                break
            if looks[-1][0] == min(loss for loss, _ in looks):
                rows = own
            signs = np.sign(self._slopes(free, scores, rises))
            steps = np.where(signs * before > 0, np.minimum(LONGER * steps, MAX_STEP), steps)
            steps = np.where(signs * before < 0, SHORTER * steps, steps)
            before = signs
            logs = np.clip(logs - signs * steps, np.log(MIN_PRECISION), np.log(MAX_PRECISION))
        best = sorted(looks, key=lambda look: look[0])[:n_best]
        return np.exp(np.mean([logs for _, logs in best], axis=0))

    def of_all_rows(self, index: int) -> Floats:
        """Approximate coefficients (q, 1) of a term for one model of all rows: combined from both by their Hessians.

        The other terms stay fixed, and the Hessians are those at the current coefficients.
        """
        hessians, precision = self.solver.curvature[index], self.solver.precision[index]
        known = self.solver.theta[index] * (hessians + precision)
        return (known[:, :1] + known[:, 1:]) / (hessians[:, :1] + hessians[:, 1:] + precision)

    def _is_much_better(self, losses: Floats, than: Floats) -> bool:
        """Whether losses (n,) are lower than others in the mean, by much and significantly."""
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
        theirs, _ = rows.gradients_for(scores)
        _, hessians = rows.grads()
        active = [index for index in range(len(solver.terms)) if not solver.dropped[index]]
        before, steps = solver.terms[0], np.zeros_like(solver.theta[0])
        for index in active:
            term, adjoint, precision = solver.terms[index], self._adjoint[index], solver.precision[index]
            gradient = self._turn(before, steps, term, hessians, theirs)
            before = term
            steps, _ = term.step(gradient, solver.curvature[index], adjoint, precision)
        self._turn(before, steps, before, hessians, theirs)
        grads = (solver.terms[index].penalty_gradient(solver.theta[index], solver.precision[index]) for index in free)
        slopes = [-float((self._adjoint[index] * grad).sum()) for index, grad in zip(free, grads, strict=True)]
        for number, index in enumerate(free):
            if index in rises and self._rise(index) < MAX_RISE:
                slopes[number] -= float(theirs @ rises[index])
        return np.array(slopes)

    def _turn(self, before: SolverTerm, steps: Floats, term: SolverTerm, hessians: Floats, theirs: Floats) -> Floats:
        """Apply the steps of one term to the rows' part of z; the residual of Hz = g by another term (q, 2)."""
        rows, sums = self.rows, self._sums[: (1 + term.size) * self.rows.width]
        take_linear_turn(
            rows.codes(before), before.x, rows.padded(steps), rows.codes(term), term.x, hessians, theirs, self._reach,
            sums,
        )  # fmt: skip
        return rows.by_entry(sums)


class MulticlassHalves:
    """Two models of half the rows each, for several classes, that find a common factor of all variances.

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

    def __init__(self, solver: BlockDescent, rows: SampledRows, dealt: Dealt, column: NDArray[np.int8]) -> None:
        first, second = (dealt.take(column == own) for own in range(2))
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
            np.add.at(losses, half.others, half.losses(tol))
        return losses


class _Half:
    """A model of its own rows, and the others, of which those count whose classes it has seen."""

    def __init__(self, solver: BlockDescent, rows: SampledRows, own: Dealt, others: Dealt) -> None:
        terms, y, weight, start, copies = taken(rows, own)
        seen = np.unique(y[weight > 0.0] if len(weight) else y)
        self.model = BlockDescent(terms, y, weight, start, solver.loss, copies=copies)
        self.model.precision, self.model.dropped = solver.precision.copy(), solver.dropped.copy()
        pairs = zip(terms, solver.theta, strict=True)
        self.model.put([theta if term.prior is Prior.FLAT else np.zeros_like(theta) for term, theta in pairs])
        self.others = others.rows
        self._terms, self._y, weight, start, _ = taken(rows, others)
        weight = weight if len(weight) else np.ones(len(self._y))
        self._weight = np.where(np.isin(self._y, seen), weight, 0.0)
        self._held_out = MulticlassRows(self._y, self._weight, start)

    def losses(self, tol: float) -> Floats:
        """Losses of the others, times their weight, once the model has converged."""
        self.model.iterate(tol, MAX_SWEEPS_OF_HALF, surely=True)
        scores = self._held_out.scores_by_sums(self._terms, self.model.theta)
        return self._weight * self.model.loss.values(scores, self._y)


def _is_certain(gains: Floats, copies: Copies, errors: float) -> bool:
    """Whether the sum of gains (n,), of rows with `copies` (n,), is above a number `errors` of its standard errors."""
    number = np.ones(len(gains)) if copies is None else copies.astype(np.float64)
    total = float(gains.sum())
    return total > errors * float(np.sqrt(number @ np.square(gains / number - total / number.sum())))


def halves_of(
    content: Keys, copies: Copies, classes: Floats | None, rng: np.random.RandomState
) -> tuple[Dealt, NDArray[np.int8]]:
    """Rows, as they are ordered, and the model whose training rows include each: halves, stratified by class.

    Without stratification the variances vary more with the random state (`benchmarks/evidence/constants.md`).
    """
    order = Dealt.shuffled(content, copies, rng)
    stratum = None if classes is None else classes[order.rows].astype(np.int16)  # radix sort, for 16-bit integers
    return Dealt.in_order(*order.deal(2, rng, stratum))
