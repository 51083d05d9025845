"""Block coordinate descent: each term takes its exact Newton step while the other terms stay fixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tabsym.design.content import ShuffledRows
from tabsym.design.sources import rows_by_code
from tabsym.frame.target import Copies, design_effect, of_one_copy
from tabsym.jit import parts_of
from tabsym.losses.loss import HUBER, MULTINOMIAL, SQUARED, Loss, settled_shift
from tabsym.solvers.newton.dispersion import WeightBins, lowest_positive, pearson_sums, sum_slopes
from tabsym.solvers.newton.rows import ONE_MODEL, MulticlassRows, SingleOutputRows
from tabsym.solvers.newton.steps import JointSteps, Recentering, SmallTerms, columns_of, length_of_step, rank_of
from tabsym.solvers.newton.terms import Prior, SolverTerm, content_of_terms

Floats = NDArray[np.float64]

MAX_STEP = 2.0
"""The largest change of a coefficient in one step where the loss is not quadratic: far from the optimum the Hessian
there is a poor guide to the length of the step."""

PARABOLAS = SQUARED, HUBER
"""Losses that lie below the parabola of their gradient and Hessian everywhere, so that a full step always lowers
them."""


LITTLE = 1e-7
"""A shift of the intercept that leaves less than this squared of what it corrects."""

SampledRows = tuple[list[SolverTerm], Floats, Floats, Floats, Copies]
"""Terms, target (n,), weights (n,), empty for none, offset (n, K), and copies (n,)."""


class ContentSampler(Protocol):
    """What draws a sample of many rows by their content, faster than by that of all terms."""

    @property
    def rows(self) -> ShuffledRows: ...


def taken(rows: SampledRows, some: ShuffledRows) -> SampledRows:
    """Some of the rows, and of their copies."""
    terms, y, weight, start, copies = rows
    at = some.rows
    if len(weight):
        weight = of_one_copy(weight, copies)[at] * (1 if some.copies is None else some.copies)
    return [term.at(at) for term in terms], y[at], weight, start[at], some.copies


def target_scale_of(y: Floats, weight: Floats, loss: Loss) -> float:
    """The variance of the targets (n,), 1 where it is 0; for Huber's loss at most delta squared.

    Under Huber's loss a few outliers can make up nearly all of the variance.
    """
    weights = weight if len(weight) and weight.any() else None
    variance = float(np.average(np.square(y - np.average(y, weights=weights)), weights=weights)) or 1.0
    return min(variance, loss.parameter**2) if loss.code == HUBER else variance


class BlockDescent:
    """The coefficients of all terms, and the linear predictors of the rows.

    Parameters
    ----------
    terms : sequence of Term
    y, weight : (n,)
        In the scale of training; weight empty for none.
    start : (n, K)
        Linear predictors before any term: the offset.
    loss : Loss
    column : (n,) int8
        The model whose training rows include the row; empty for one model of all rows.
    n_models : int
    copies : (n,) or None
        How many equal rows each row represents, whose weights `weight` adds up; None for one each.
    """

    sampler: ContentSampler | None = None
    makes_posteriors: Callable[[Any], Any] | None = None
    makes_information: Callable[..., Any] | None = None
    """How posteriors and information are summed where rows are not here: `partitioned`."""

    def __init__(
        self,
        terms: Sequence[SolverTerm],
        y: Floats,
        weight: Floats,
        start: Floats,
        loss: Loss,
        column: NDArray[np.int8] = ONE_MODEL,
        n_models: int = 1,
        copies: Copies = None,
    ) -> None:
        self.terms, self.y, self.weight, self.loss = list(terms), y, weight, loss
        self.copies, self.n_rows = copies, len(y) if copies is None else int(copies.sum())
        self.start = start
        self.n_outputs = start.shape[1]
        self.rows: SingleOutputRows | MulticlassRows
        if loss.code == MULTINOMIAL:
            self.rows = MulticlassRows(y, weight, start)
        else:
            self.rows = SingleOutputRows(y, weight, start[:, 0], loss, column, n_models)
        self.total = float(weight.sum()) if len(weight) else float(len(y))
        self.covers = np.array([term.codes.min(initial=0) >= 0 for term in self.terms])
        self.target_scale = target_scale_of(y - start[:, 0], weight, loss) if loss.scales else 1.0
        self._start_at_zero()

    def _start_at_zero(self) -> None:
        """Set all coefficients to 0, without penalties."""
        self.theta = [np.zeros((term.size, self.rows.width)) for term in self.terms]
        self.curvature = [np.zeros((term.size, self.rows.width)) for term in self.terms]
        self.precision = np.zeros(len(self.terms))
        self.is_bound = False  # whether terms keep to their constraint
        self.dropped = np.zeros(len(self.terms), dtype=np.bool_)
        self.n_moves = 0
        self.recentering = Recentering(self)
        self._max_step = np.inf if self.loss.code in PARABOLAS else MAX_STEP
        unpenalized = [index for index, term in enumerate(self.terms) if term.prior is Prior.FLAT]
        self._joint: JointSteps | None = None
        self.report: Callable[[float], None] = lambda decrease: None  # called with the decrease of every iteration
        self.together = (
            unpenalized if len(unpenalized) > 1 or any(len(self.terms[index].x) for index in unpenalized) else []
        )

    @property
    def active(self) -> list[int]:
        """The terms that are not dropped."""
        return [index for index in range(len(self.terms)) if not self.dropped[index]]

    @property
    def row_weights(self) -> Floats:
        """The weights (n,) of the rows, 1 where none are given."""
        return self.weight if len(self.weight) else np.ones(len(self.y))

    def update_blocks(self) -> float:
        """Update every term once; the decrease of the objective per row, by its quadratic approximation."""
        decrease = self._update_together() if self.together else 0.0
        small = self.small
        if small is not None:
            n_moves, more = small.update_blocks(self.dropped, self.precision, self._max_step)
            self.n_moves, decrease = self.n_moves + n_moves, decrease + more
        done = {*self.together, *(small.indices if small else ())}
        decrease += sum(
            self.update_block(index)
            for index in range(len(self.terms))
            if index not in done and not self.dropped[index]
        )
        self.recentering.recenter(decrease)
        self.report(decrease / self.total)
        return decrease / self.total

    def is_constrained(self, index: int) -> bool:
        """Whether a term takes steps within its constraint."""
        return self.is_bound and self.terms[index].is_monotone

    @cached_property
    def small(self) -> SmallTerms | None:
        """The small terms: the first of those that are updated one by one, which are ordered by size."""
        alone = [
            index for index in range(len(self.terms)) if index not in self.together and not self.is_constrained(index)
        ]
        indices = list(takewhile(lambda index: SmallTerms.fits(self.terms[index]), alone))
        if len(indices) < 2 or not isinstance(self.rows, SingleOutputRows) or len(parts_of(len(self.y))) > 1:
            return None
        return SmallTerms(indices, self.terms, self.rows, self.theta, self.curvature)

    def iterate(self, tol: float, max_iter: int, *, surely: bool = False) -> tuple[int, bool]:
        """Iterate until the objective decreases by less than `tol` per row; iterations, and convergence.

        `surely`: require too that the decreases, extrapolated as a geometric series, sum to less than `tol`. Where
        convergence is slow, each iteration lowers the objective by little while much remains.
        """
        before = np.inf
        for n_iterations in range(1, max_iter + 1):
            decrease = self.update_blocks()
            left = decrease * decrease / (before - decrease) if before > decrease and surely else decrease
            if max(decrease, left) < tol * self.scale():
                return n_iterations, True
            before = decrease
        return max_iter, False

    def polish(self, dispersion: float, close: float, max_iter: int) -> int:
        """Iterate until decreases, extrapolated, have coefficients within `close` of their standard errors.

        The remaining decrease of the objective, over the dispersion, is half the square of that distance in standard
        errors. Where terms nearly determine each other more remains than the decreases show (`joint`). At most
        `max_iter` iterations; returns their number.
        """
        before, enough = np.inf, 0.5 * close**2 * dispersion
        for n_iterations in range(1, max_iter + 1):
            decrease = self.total * self.update_blocks()
            left = decrease * decrease / (before - decrease) if before > decrease else decrease
            if max(decrease, left) < enough:
                return n_iterations
            before = decrease
        return max_iter

    def balance(self) -> None:
        """Shift the intercept so that the predictions sum to the targets, where the link is canonical."""
        index = self.recentering.intercept
        if index is None or not self.loss.canonical:
            return
        weight = self.weight if len(self.weight) else None
        for _ in range(2):  # the second step corrects the first up to rounding
            scores = self.scores()
            shift = settled_shift(self.loss, scores, self.y, weight)
            if np.isfinite(shift).all():
                self.theta[index] = self.theta[index] + shift
                self.rows.set_predictor(scores + shift)
                self.n_moves += 1
            if np.abs(shift).max() < LITTLE:
                return

    def scale(self, dispersion: float | None = None) -> float:
        """The unit in which changes of the loss are measured; the dispersion is computed where it is not given.

        For regression the variance of the targets; behind a log link, where targets have a mean of 1, the dispersion
        where it is above 1.
        """
        if self.loss.scales or self.loss.for_classes:
            return self.target_scale
        return max(1.0, self.dispersion() if dispersion is None else dispersion)

    def dispersion(self) -> float:
        """The sum of the rows' squared gradients over the sum of their Hessians, not corrected for degrees of freedom.

        Behind a log link rows with a small mean count less here than in Pearson's statistic, which few such rows can
        dominate; variance components based on that one are too small (`benchmarks/evidence/constants.md`).
        """
        assert isinstance(self.rows, SingleOutputRows)
        squares, curvature = self.rows.sum_gradients()
        return squares / curvature

    @cached_property
    def _weight_bins(self) -> WeightBins:
        return WeightBins.of(self.weight, self.copies)

    def sums_by_weight(self, unit: float) -> Floats:
        """Sums over the rows by their weight, of squared residuals in this unit (`dispersion.WeightBins`)."""
        return self._weight_bins.sums(*self.grads(), self.weight, unit)

    def expected_curvature(self) -> Floats:
        """Fisher information of the rows (n,), times their weight, for losses with one linear predictor.

        It is the Hessian of the Newton steps, except where a log link is not canonical (gamma, tweedie): there the
        observed Hessian depends on the target.
        """
        power = self.loss.variance_power
        if power is None or self.loss.canonical:
            return self.grads()[1]
        weight = self.row_weights
        return np.asarray(weight * np.exp((2.0 - power) * self.scores()[:, 0]))

    def pearson(self) -> tuple[float, float]:
        """Pearson's statistic per row, of squared residuals over the variance function; the mean of Fletcher's terms.

        Without a log link it equals `dispersion`, but for Huber's loss, which has no variance function: there it is
        what makes variances those of M-estimators, as `sum_slopes`.
        """
        squares, hessians, slopes, terms = self.pearson_sums()
        return squares * hessians / slopes**2, terms / self.total

    def pearson_sums(self) -> tuple[float, float, float, float]:
        """Sums over rows of squares, of Hessians, of second derivatives, and of Fletcher's terms, for `pearson`."""
        power = self.loss.variance_power
        if power is not None:
            squares, terms = pearson_sums(power, self.grads()[0], self.expected_curvature(), self.weight)
            return squares, self.total, self.total, terms
        assert isinstance(self.rows, SingleOutputRows)
        squares, hessians = self.rows.sum_gradients()
        slopes = sum_slopes(self.grads()[1], self.weight) if self.loss.code == HUBER else hessians
        return squares, hessians, slopes, 0.0

    def update_block(self, index: int) -> float:
        """The Newton step of one term; returns half its Newton decrement."""
        term, theta, precision = self.terms[index], self.theta[index], self.precision[index]
        if isinstance(self.rows, SingleOutputRows) and term.prior is not Prior.WALK and not self.is_constrained(index):
            ridge = 0.0 if term.prior is Prior.FLAT else precision
            hessians = self.curvature[index]
            self.n_moves += 1
            self.curvature[index], decrease = self.rows.update_ridge_block(term, theta, hessians, ridge, self._max_step)
            return decrease
        gradient, curvature = self.rows.collect(term)
        self.curvature[index] = curvature
        step = term.step_of_classes if self.loss.code == MULTINOMIAL else term.step
        if self.is_constrained(index):
            step = term.monotone_step
        steps, decrease = step(gradient, curvature, theta, precision, self._max_step)
        self._move_rows(index, steps)
        return decrease

    def _update_together(self) -> float:
        """A joint Newton step of the unpenalized coefficients; returns half its Newton decrement, or the like."""
        scores = self.scores()
        self.rows.set_predictor(scores)
        gradient = self.rows.slopes_together(self.joint_columns)
        if self._joint is None or self._joint.is_old:
            information = self.rows.information_together(self.joint_columns)
            self._joint = JointSteps(information, is_constant=self.loss.code == SQUARED)
            for number, index in enumerate(self.together):
                self.curvature[index] = information[:, number, number][None]
        signs = np.array([self.terms[index].sign if self.is_constrained(index) else 0 for index in self.together])
        theta = np.concatenate([self.theta[index] for index in self.together])
        steps = self._joint.steps(gradient) if not signs.any() else self._joint.steps_within(gradient, theta, signs)
        delta_eta = self.rows.delta_eta(self.joint_columns, steps)
        farthest = float(np.abs(delta_eta).max(initial=0.0))
        fraction = length_of_step(
            farthest,
            self._max_step,
            lambda fraction: self.mean_loss_at(scores + fraction * delta_eta if fraction else scores),
        )
        self._joint.note(farthest)
        for number, index in enumerate(self.together):
            self.theta[index] = self.theta[index] + fraction * steps[number]
        self.rows.set_predictor(scores + fraction * delta_eta)
        self.n_moves += 1
        return 0.5 * fraction * abs(float((gradient * steps).sum()))

    @cached_property
    def joint_columns(self) -> Floats:
        """The design matrix (n, f) of the terms that are updated jointly."""
        return columns_of([self.terms[index] for index in self.together], len(self.y))

    def drop(self, index: int) -> None:
        """Drop a term: its coefficients become 0, and it is updated no more."""
        if not self.dropped[index]:
            steps = -self.theta[index]
            self.theta[index] += steps
            self._move_rows(index, steps)
            self.dropped[index], self.precision[index] = True, np.inf

    def hessian_diagonal(self, index: int) -> Floats:
        """The Hessian's diagonal (q, W); the curvature of a multinomial step is an upper bound instead."""
        if self.loss.code != MULTINOMIAL:
            return self.curvature[index]
        return self.rows.hessian_diagonal(self.terms[index])  # type: ignore[union-attr]

    def mean_loss(self) -> float:
        """Mean loss of the rows, each under its model."""
        return self.mean_loss_at(self.scores())

    def mean_deviance(self) -> float:
        """Mean deviance of the rows: twice the excess of their loss over that of a perfect prediction."""
        return 2.0 * (self.mean_loss() - self.mean_least)

    @cached_property
    def mean_least(self) -> float:
        """Mean loss of a perfect prediction."""
        return self.mean_of(self.loss.least(self.y))

    def scores(self) -> Floats:
        """Linear predictors (n, K) of the rows, each under its model."""
        scores = self.rows.scores()
        if self.rows.max_score < np.inf and not (np.abs(scores) < self.rows.max_score).all():
            return self.rows.scores_by_sums(self.terms, self.theta)
        return scores

    def least_predicted(self) -> float:
        """The smallest probability of a class, or the smallest mean behind a log link, of any row."""
        return float(self.loss.predict(self.scores()).min(initial=np.inf))

    def mean_loss_at(self, scores: Floats) -> float:
        """Mean loss of the rows at other linear predictors (n, K)."""
        return self.mean_of(self.loss.values(scores, self.y))

    def mean_of(self, losses: Floats) -> float:
        """Weighted mean of the rows' losses (n,)."""
        return float(np.average(losses, weights=self.weight if len(self.weight) else None))

    def grads(self) -> tuple[Floats, Floats]:
        """Gradients and Hessians (n,) of the rows, times their weights, for losses with one linear predictor."""
        assert isinstance(self.rows, SingleOutputRows)
        return self.rows.grads()

    def gradients(self, indices: Sequence[int]) -> list[Floats]:
        """Gradients (q,) of the coefficients of terms, for losses with one linear predictor."""
        slopes, _ = self.grads()
        gradients = []
        for term in (self.terms[index] for index in indices):
            seen = term.codes >= 0
            row_gradients = (slopes * term.x if len(term.x) else slopes)[seen]
            gradients.append(
                np.asarray(np.bincount(term.codes[seen], row_gradients, minlength=term.size), dtype=np.float64)
            )
        return gradients

    def count_rows(self, index: int) -> Floats:
        """The number of rows (q,) of each coefficient of a term."""
        term = self.terms[index]
        return rows_by_code(term.codes, term.size, self.copies).astype(np.float64)

    def count_positive(self) -> int:
        """How many rows have a target above 0."""
        positive = self.y > 0.0
        return int(np.count_nonzero(positive) if self.copies is None else self.copies[positive].sum())

    def lowest_positive(self) -> float:
        """The mean of the lowest positive targets, as many as are 0; 0 without either (`lowest_positive`)."""
        return lowest_positive(self.y, self.weight, self.copies)[0]

    def design_effect(self) -> float:
        """That of the weights of rows; see `frame.weights`."""
        return design_effect(self.weight, self.copies)

    def rank_together(self) -> int:
        """The rank of the design of the terms that are updated jointly."""
        return rank_of(self.joint_columns)

    def sample(self, max_rows: int, rng: np.random.RandomState) -> SampledRows:
        """Terms, target, weights, offset and copies of all rows, or of a random sample of `max_rows` of more."""
        rows: SampledRows = self.terms, self.y, self.weight, self.start, self.copies
        if self.n_rows <= max_rows:
            return rows
        if self.sampler is not None:
            rows = taken(rows, self.sampler.rows)
            if self.sampler.rows.n_rows <= max_rows:
                return rows
        some = ShuffledRows.of(content_of_terms(*rows), rows[-1], rng).thin(max_rows, rng)
        return taken(rows, some.take(np.argsort(some.rows)))

    def put(self, theta: Sequence[Floats]) -> None:
        """Continue from other coefficients."""
        self.theta = [np.array(values, order="C") for values in theta]
        self.__dict__.pop("small", None)  # its arrays are views of the coefficients before
        self.rows.set_predictor(self.rows.scores_by_sums(self.terms, self.theta))
        self.n_moves += 1

    def _move_rows(self, index: int, steps: Floats) -> None:
        self.n_moves += 1
        self.rows.move(self.terms[index], steps)
