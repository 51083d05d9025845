"""Held-out gains of candidate interactions: the rows under models each of which was trained without one fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from tabsym.frame.target import Copies
from tabsym.interactions.kernels import (
    add_cells,
    add_steps,
    gain_of_cells,
    gains_of_rows,
    is_function,
    logistic_gradients,
    newton_steps,
    row_gradients,
    softmax_gradients,
    sort_rows,
    stored_gradients,
    sum_cells,
)
from tabsym.losses.loss import (
    GAMMA,
    LOGISTIC,
    MULTINOMIAL,
    POISSON,
    RATES,
    SQUARED,
    TWEEDIE_1_5,
    Loss,
    as_kept,
    keep,
    scores_of_kept,
)

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

MAX_STEP = 20.0
"""The largest change of a linear predictor in one step: odds may become 0 or infinite, but never 0 times infinite."""

FAR = 40.0
"""Behind a log link, linear predictors are clipped here at the start, since gradients are stored in single
precision."""


BATCH_ROWS = 256
"""Rows of several classes that are updated together."""


class FoldModels:
    """Cross-fitted models: linear predictors (K, n, F) of the rows, and gradients and Hessians (K, n, 2 F) there."""

    step_dtype: type = np.float64

    def __init__(self, scores: Floats, y: Floats, weight: Floats, loss: Loss) -> None:
        self._scores, self._y, self._weight, self._loss = scores, y, weight, loss
        self.grads = np.empty((*scores.shape[:2], 2 * scores.shape[2]), dtype=np.float32)
        self._find_gradients()

    def add(self, codes: Codes, x: Floats, steps: Floats) -> None:
        """Add steps (K, categories, F) to the linear predictors."""
        for steps_of_output, scores in zip(steps, self._scores):
            add_steps(codes, x, steps_of_output, scores)
        self._find_gradients()

    def current_scores(self) -> Floats:
        """The current linear predictors."""
        return self._scores.copy()

    def _find_gradients(self) -> None:
        slope, loss = np.empty(len(self._scores)), self._loss
        row_gradients(self._scores, self._y, self._weight, loss.code, loss.parameter, slope, self.grads)


class _LogisticModels(FoldModels):
    """For the logistic loss: exp(-score) of the rows is stored, so that a step takes no exp per row."""

    step_dtype = np.float32

    def add(self, codes: Codes, x: Floats, steps: Floats) -> None:
        codes, steps = _by_row(codes, x, steps)
        self._grow(codes, steps[0])

    def _find_gradients(self) -> None:
        self._target = (self._y > 0).astype(np.float32)
        self._odds = np.ones(self._scores.shape[1:], dtype=np.float32)
        self._grow(np.arange(self._scores.shape[1], dtype=np.int32), self._scores[0])

    def _grow(self, codes: Codes, steps: Floats) -> None:
        growth = np.negative(steps, dtype=np.float32, casting="same_kind")
        np.exp(np.clip(growth, -MAX_STEP, MAX_STEP, out=growth), out=growth)
        gradients_here = logistic_gradients(growth.shape[1])
        gradients_here(codes, growth, self._target, self._weight, self._odds, self.grads[0])

    def current_scores(self) -> Floats:
        return -np.log(self._odds, dtype=np.float64)[None]


class _StoredModels(FoldModels):
    """For squared loss, stored as residuals, and for log links, stored as an exp of the linear predictor."""

    def add(self, codes: Codes, x: Floats, steps: Floats) -> None:
        codes, steps = _by_row(codes, x, steps)
        growth = steps[0]
        if self._rate is not None:
            growth = np.exp(np.clip(self._rate * growth, -MAX_STEP, MAX_STEP))
        self._grow(codes, growth)

    def _find_gradients(self) -> None:
        self._code, _ = as_kept(self._loss)
        self._rate, scores = RATES.get(self._code), self._scores[0]
        self._values = keep(scores, self._y[:, None], self._code, FAR)
        neutral = np.full((1, scores.shape[1]), 0.0 if self._rate is None else 1.0)
        self._grow(np.zeros(len(scores), dtype=np.int32), neutral)

    def _grow(self, codes: Codes, growth: Floats) -> None:
        gradients_here = stored_gradients(self._code, growth.shape[1])
        gradients_here(codes, growth, self._y, self._weight, self._values, self.grads[0])

    def current_scores(self) -> Floats:
        return scores_of_kept(self._values, self._y[:, None], self._code)[None]


class _SoftmaxModels(FoldModels):
    """For multiclass: probabilities are stored, so that a step takes one exp per category, none per row."""

    def add(self, codes: Codes, x: Floats, steps: Floats) -> None:
        codes, steps = _by_row(codes, x, steps)
        growth = np.exp(np.clip(steps, -MAX_STEP, MAX_STEP))
        totals = np.empty((BATCH_ROWS, growth.shape[2]))
        gradients_here = softmax_gradients(growth.shape[2])
        gradients_here(codes, growth, self._y, self._weight, self._values, totals, self.grads)

    def _find_gradients(self) -> None:
        super()._find_gradients()
        self._values = np.ascontiguousarray(softmax(self._scores, axis=0))

    def current_scores(self) -> Floats:
        """Up to a constant common to the classes."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._values))


def _by_row(codes: Codes, x: Floats, steps: Floats) -> tuple[Codes, Floats]:
    """Codes and steps (K, categories, F); for a slope of a numeric column x, one step for each row."""
    return (np.arange(len(x), dtype=np.int32), x[:, None] * steps) if len(x) else (codes, steps)


def models_of(loss: Loss) -> type[FoldModels]:
    """The class of cross-fitted models for a loss, with the cheapest representation."""
    if loss.code == LOGISTIC:
        return _LogisticModels
    if loss.code == MULTINOMIAL:
        return _SoftmaxModels
    return _StoredModels if as_kept(loss)[0] in (SQUARED, POISSON, GAMMA, TWEEDIE_1_5) else FoldModels


MAIN_PENALTIES = 2.0, 2.0, 20.0
"""Ridge penalties of the Newton steps of main effects, one iteration over all columns each.

The last iteration lets coefficients of frequent categories converge, and hardly changes those of infrequent
ones, which would overfit (`benchmarks/evidence/constants.md`). With fewer iterations, interactions are credited with
main effects.
"""

THINNED = 4
"""The first evaluation uses one in this many of the categories that rows are sorted by, or of the rows where there are
few categories."""

MIN_CATEGORIES_SAMPLED = 200
"""From this many categories on, categories are sampled instead of rows, so that interaction levels keep their rows."""

N_ROW_PAIRS = 128
"""The number of row pairs by which two columns are compared at first."""

_NONE = np.empty(0)
_NO_COPIES = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class CodeColumn:
    """A column that can be part of an interaction: codes (n,) below `size`, -1 for none.

    `categories` (size,): the code that each has in the table; of bins -1, but for that of missing values. None for bins
    without one.
    """

    name: str
    codes: Codes
    size: int
    categories: NDArray[np.intp] | None = None


@dataclass(frozen=True)
class _WorkArrays:
    """Reused work arrays to evaluate an interaction: sums (n, 2 F^2 + F), codes (n,), steps (K, n, F)."""

    sums: Floats
    codes: Codes
    steps: Floats


@dataclass(frozen=True)
class EvaluatedInteraction:
    """An evaluated interaction: mean held-out gain per row, its standard error, number of levels, and the steps."""

    gain: float
    error: float
    n_cells: int
    work: _WorkArrays

    @property
    def codes(self) -> Codes:
        return self.work.codes

    @property
    def steps(self) -> Floats:
        """(K, levels, F)"""
        return self.work.steps[:, : self.n_cells]


class HeldOutGains:
    """The rows that interactions are evaluated on, under models each of which was trained without one fold.

    Parameters
    ----------
    scores : (K, n, F)
        Linear predictors of all rows: output k of the model trained without fold v. `fit_main_effects` and `add` change
        them.
    fold : (n,) int8
    y, weight : (n,)
        Target in the scale of training, and weights, empty for none.
    loss : Loss
    copies : (n,) or None
        How many rows each row stands for, whose weights `weight` adds up; None for one each.
    glanced : (n,) or None
        How many of these a first look takes; None for all.
    """

    def __init__(
        self,
        scores: Floats,
        fold: NDArray[np.int8],
        y: Floats,
        weight: Floats,
        loss: Loss,
        copies: Copies = None,
        glanced: NDArray[np.int64] | None = None,
    ) -> None:
        self.models = models_of(loss)(scores, y, weight, loss)
        self.fold, self.weight = fold, weight
        self.n_folds = scores.shape[2]
        self.copies, self._glanced = copies, glanced
        self.n_rows = len(y) if copies is None else int(copies.sum())
        self.total = float(weight.sum()) if len(weight) else float(len(y))
        self._spare: list[_WorkArrays] = []

    def fit_main_effects(self, columns: Sequence[CodeColumn], numbers: Sequence[Floats] = ()) -> None:
        """Train the models: Newton steps of each numeric, then each categorical column, small ones first."""
        same = CodeColumn("", np.zeros(len(self.fold), dtype=np.int32), 1)
        columns = sorted(columns, key=lambda column: column.size)
        sums = np.zeros((max(column.size for column in [same, *columns]), 2 * self.n_folds))
        for penalty in MAIN_PENALTIES:
            for x in numbers:
                self._step(same, x, penalty, sums)
            for column in columns:
                self._step(column, _NONE, penalty, sums)
        self.__dict__.pop("_glanced_grads", None)

    @cached_property
    def _glanced_grads(self) -> NDArray[np.float32]:
        """The gradients and Hessians of the copies that a first look takes."""
        grads = self.models.grads
        if self.copies is None or self._glanced is None:
            return grads
        return grads * (self._glanced / self.copies).astype(np.float32)[:, None]

    def evaluate(
        self, left: Sorted, right: CodeColumn, penalty: float, *, thinned: bool = False
    ) -> EvaluatedInteraction:
        """The held-out gain of the interaction of two columns by steps with this ridge penalty; `thinned`: on a sample.

        The sample is of categories, with all their rows, where the left column has many, else of all rows. The gain is
        smaller accordingly.
        """
        starts, order = left.rows
        by_category, derivatives, times = 1, self.models.grads, _NO_COPIES if self.copies is None else self.copies
        if thinned and len(starts) > MIN_CATEGORIES_SAMPLED:
            by_category = THINNED
        elif thinned and self._glanced is not None:
            starts, order = left.rows_where(self._glanced)
            derivatives, times = self._glanced_grads, times if self.copies is None else self._glanced
        seen, work = np.zeros(right.size, dtype=np.int64), self._spare.pop() if self._spare else None
        if work is None:
            n, k, dtype = len(self.fold), len(self.models.grads), self.models.step_dtype
            sums = np.zeros((n, 2 * self.n_folds**2 + self.n_folds))
            work = _WorkArrays(sums, np.empty(n, dtype=np.int32), np.empty((k, n, self.n_folds), dtype=dtype))
        codes = work.codes[:0] if thinned and len(derivatives) == 1 else work.codes
        codes.fill(-1)
        gain, variance, n_cells = 0.0, 0.0, 0
        for output, (grads, steps_of_output) in enumerate(zip(derivatives, work.steps)):
            if output == 0:
                n_cells = sum_cells(self.n_folds)(
                    starts, order, right.codes, self.fold, times, grads, by_category, seen, work.sums, codes
                )
            else:  # of the other classes, by the same levels
                add_cells(self.n_folds)(codes, self.fold, times, grads, work.sums)
            of_output, more = gain_of_cells(self.n_folds)(work.sums, penalty, steps_of_output[:n_cells])
            gain += of_output
            variance += more
        k = len(derivatives)
        if k > 1:  # gradients of the classes of a row add up to 0
            variance *= k / (k - 1)
        error = float(np.sqrt(variance)) / self.total
        return EvaluatedInteraction(gain / self.total, error, n_cells, work)

    def gains_of_rows(self, evaluated: EvaluatedInteraction, rows: NDArray[np.signedinteger[Any]]) -> Floats:
        """What each of `rows` (r,) adds to the gain of an interaction that is not yet added.

        For all rows their sum is the gain times the weight of all rows.
        """
        totals = np.zeros(len(rows))
        for grads, steps in zip(self.models.grads, evaluated.steps):
            gains_of_rows(rows, evaluated.codes, self.fold, grads, steps, totals)
        return totals

    def drop(self, evaluated: EvaluatedInteraction) -> None:
        """Reuse the work arrays of this interaction for the next one; only its gain stays valid."""
        self._spare.append(evaluated.work)

    def add(self, evaluated: EvaluatedInteraction) -> None:
        """Add the steps of an interaction, evaluated on all rows, to the linear predictors; keeps its codes."""
        self.models.add(evaluated.codes, _NONE, evaluated.steps)
        self.__dict__.pop("_glanced_grads", None)
        self._spare.append(replace(evaluated.work, codes=np.empty_like(evaluated.codes)))

    def _step(self, column: CodeColumn, x: Floats, penalty: float, sums: Floats) -> None:
        """Update the models by a Newton step per category, or by a slope of x; `sums`: work array of zeros."""
        steps: Floats = np.empty((len(self.models.grads), column.size, self.n_folds), dtype=self.models.step_dtype)
        for grads, steps_of_output in zip(self.models.grads, steps):
            newton_steps(self.n_folds)(column.codes, x, self.fold, grads, penalty, sums[: column.size], steps_of_output)
        self.models.add(column.codes, x, steps)


class Sorted:
    """A column with its rows sorted by category, the first operand of an interaction; `copies` (n,) of each row."""

    def __init__(self, column: CodeColumn, copies: Copies = None) -> None:
        self.column, self._copies = column, copies
        coded = column.codes >= 0
        self.n_rows = int(np.count_nonzero(coded) if copies is None else copies[coded].sum())
        self._some: tuple[NDArray[np.int64], NDArray[np.int32]] | None = None

    @cached_property
    def rows(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """`starts` (categories + 1,) and `order`: the rows that have a category, sorted by category."""
        starts = np.zeros(self.column.size + 1, dtype=np.int64)
        order = np.empty(len(self.column.codes), dtype=np.int32)
        return starts, order[: sort_rows(self.column.codes, starts, order)]

    def rows_where(self, weights: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The same of the rows where `weights` (n,), the same in each call, are not 0."""
        if self._some is None:
            starts, order = self.rows
            is_included = weights[order] > 0
            self._some = np.append(0, np.cumsum(is_included))[starts], order[is_included]
        return self._some

    def fraction_together(self, other: CodeColumn) -> float:
        """The fraction of sampled row pairs of one category that have equal categories in `other`; 1 without pairs."""
        first, second = self._pairs
        return float(np.count_nonzero(other.codes[first] == other.codes[second])) / len(first) if len(first) else 1.0

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Pairs of rows of the same category, evenly spaced over the categories' rows."""
        order = self.rows[1]
        ends = None if self._copies is None else np.cumsum(self._copies[order])
        n_rows = len(order) if ends is None else int(ends[-1]) if len(ends) else 0
        indices = np.linspace(0, max(n_rows - 2, 0), num=min(N_ROW_PAIRS, n_rows // 2)).astype(np.int64)
        both = np.array([indices, indices + 1])
        first, second = order[both if ends is None else np.searchsorted(ends, both, side="right")]
        together = self.column.codes[first] == self.column.codes[second]
        return first[together], second[together]

    def determines(self, other: CodeColumn, max_exceptions: float) -> bool:
        """Whether the other column is a function of this one, with up to `max_exceptions` rows as exceptions."""
        copies = np.empty(0, dtype=np.int64) if self._copies is None else self._copies
        return bool(is_function(*self.rows, other.codes, copies, max_exceptions, np.zeros(other.size, dtype=np.int64)))
