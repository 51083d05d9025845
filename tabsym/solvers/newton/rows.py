"""Linear predictors of all rows, and the gradients and Hessians that they give coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from tabsym.losses.kernels import SQUARED
from tabsym.losses.loss import RATES, Loss, as_kept, keep, scores_of_kept
from tabsym.solvers.newton.kernels_classes import MIN_PROBABILITY, collect_classes, move_classes, take_classes_turn
from tabsym.solvers.newton.kernels_coefs import step_pulled, step_ridge, sum_products_of
from tabsym.solvers.newton.kernels_rows import (
    MIN_HESSIAN,
    add_entries,
    codes_of_models,
    move,
    row_gradients,
    sum_pulls,
    take_squared_turn,
    take_turn,
)
from tabsym.solvers.newton.terms import SolverTerm

Floats = NDArray[np.float64]

ONE_MODEL = np.empty(0, dtype=np.int8)
"""The models that see the rows, where there is one that sees all."""

LANES, FEW_ENTRIES = 4, 256
"""Sums of blocks of so few coefficients are kept so many times over while rows are added up."""

FAR = 600.0
"""Rows whose score's exp would be beyond numbers, or nearly, stand this side of it; where they are is told by sums."""


def lanes_of(size: int) -> int:
    """How many sums are kept for each of so many coefficients."""
    return LANES if size <= FEW_ENTRIES else 1


class SingleOutputRows:
    """Rows of a loss with one score, each under the one model that sees it.

    The steps of a term wait for the next pass over the rows: one pass moves them and collects for the next term.

    Parameters
    ----------
    y, weight : (n,)
        Weight empty for none.
    start : (n,)
        Scores before any term.
    loss : Loss
    column : (n,) int8
        The model that sees the row; empty for one.
    n_models : int
    """

    def __init__(
        self, y: Floats, weight: Floats, start: Floats, loss: Loss, column: NDArray[np.int8], n_models: int
    ) -> None:
        self.y, self.weight, self.start, self.column = y, weight, start, column
        self._code, self._parameter = as_kept(loss)
        self.width = n_models
        self.far = FAR / abs(RATES[self._code]) if self._code in RATES else np.inf
        self._values = self._stand(start)
        self._waiting: tuple[SolverTerm, Floats] | None = None
        self._curvatures: dict[int, Floats] = {}  # of blocks, where they never change
        self._sums = np.empty((0, 2))  # kept, as fresh memory takes longer than what is done in it
        self._moves, self._rights = np.empty(0), np.empty(0)
        self._codes: dict[int, NDArray[np.int32]] = {}  # of blocks, where there are several models

    def collect(self, term: SolverTerm) -> tuple[Floats, Floats]:
        """Sums of slopes and curvatures (q, W) by coefficient."""
        if term.block in self._curvatures:
            before, steps = self.hand_over(term)
            length, n_lanes = (1 + term.size) * self.width, lanes_of(term.size)
            slopes = np.empty(n_lanes * length)
            take_squared_turn(
                self.codes(before), before.x, steps, self.codes(term), term.x, self.weight, self._values, n_lanes,
                slopes,
            )  # fmt: skip
            return self.by_entry(slopes[:length]), self._curvatures[term.block]
        grads = self._collect(term)
        gradient, curvature = self.by_entry(grads[:, 0]), self.by_entry(grads[:, 1].copy())
        if self._code == SQUARED:
            self._curvatures[term.block] = curvature
        return gradient, curvature

    def _collect(self, term: SolverTerm) -> Floats:
        """Slopes and curvatures summed by places of coefficients ((1 + q) W, 2), as kernels write them; in work
        space.
        """
        before, steps = self.hand_over(term)
        length, n_lanes = (1 + term.size) * self.width, lanes_of(term.size)
        if len(self._sums) < n_lanes * length:
            self._sums = np.empty((n_lanes * length, 2))
        grads = self._sums[: n_lanes * length]
        take_turn(
            self.codes(before), before.x, steps, self.codes(term), term.x, self.y, self.weight, self._values,
            self._code, self._parameter, n_lanes, grads,
        )  # fmt: skip
        return grads[:length]

    def take_ridge_turn(
        self, term: SolverTerm, theta: Floats, curvature: Floats, precision: float, most: float
    ) -> tuple[Floats, float]:
        """A turn of a term whose coefficients are penalized each by itself: their curvatures, and half the decrement.

        theta (q, W) moves in place, and curvature (q, W), which may be returned, is written over; rows move later.
        """
        right = self._right(theta.size)
        if self._code == SQUARED:  # whose curvatures are found once
            gradient, curvature = self.collect(term)
            steps, rate = self._free_moves(term), 1.0
            own = steps[self.width :]
            step_ridge(gradient.ravel(), curvature.ravel(), theta.ravel(), precision, most, right, own)
        else:
            rate = 1.0 if len(term.x) else RATES.get(self._code, 1.0)
            grads = self._collect(term)[self.width :]
            steps = self._free_moves(term)
            own = steps[self.width :]
            step_pulled(grads.ravel(), precision, most, rate, theta.ravel(), curvature.ravel(), right, own)
        decrease = 0.5 * float(sum_products_of(right, own)) / rate
        if self._code in RATES and not len(term.x):
            np.exp(steps, out=steps)  # by several at once, in a quarter of the time that one after the other takes
        self._waiting = term, steps
        return curvature, decrease

    def _right(self, length: int) -> Floats:
        """Work space for what pulls at coefficients."""
        if len(self._rights) < length:
            self._rights = np.empty(length)
        return self._rights[:length]

    def _free_moves(self, term: SolverTerm) -> Floats:
        """Work space for the steps of a term as kernels read them, 0 for rows without a coefficient; once none wait."""
        length = (1 + term.size) * self.width
        if len(self._moves) < length:
            self._moves = np.empty(length)
        steps = self._moves[:length]
        steps[: self.width] = 0.0
        return steps

    def hand_over(self, term: SolverTerm, *, plain: bool = False) -> tuple[SolverTerm, Floats]:
        """The term whose steps wait, and these, for a pass that will move rows by them; of `term`, none, if none do.

        `plain`: not of one that something multiplies, by whose steps rows are moved at once.
        """
        if plain and self._waiting is not None and len(self._waiting[0].x):
            self._catch_up()
        waiting, self._waiting = self._waiting, None
        return waiting or (term, self._steps(term, np.zeros((term.size, self.width))))

    def take_over(self, term: SolverTerm, steps: Floats) -> None:
        """Let the steps of a term wait, as kernels read them."""
        self._waiting = term, steps

    def kept(self) -> tuple[Floats, int, float, float]:
        """Where rows are kept (n,), the loss and the parameter that say how, and the rate of the exp, or 0 for none."""
        return self._values, self._code, self._parameter, RATES.get(self._code, 0.0)

    def codes(self, term: SolverTerm) -> NDArray[np.int32]:
        """Places (n,) of the coefficients of rows, less one, among those of all models."""
        if not len(self.column):
            return term.codes
        if term.block not in self._codes:
            self._codes[term.block] = np.empty(len(term.codes), dtype=np.int32)
            codes_of_models(term.codes, self.column, self.width, self._codes[term.block])
        return self._codes[term.block]

    def slopes_together(self, columns: Floats) -> Floats:
        """Slopes (f, W) of numbers that columns (n, f) are multiplied by."""
        slopes, _ = self.grads()
        return np.column_stack([columns[seen].T @ slopes[seen] for seen in self._seen()])

    def information_together(self, columns: Floats) -> Floats:
        """Information (W, f, f) on these numbers."""
        _, hessians = self.grads()
        return np.array([columns[seen].T @ (hessians[seen, None] * columns[seen]) for seen in self._seen()])

    def _seen(self) -> list[Any]:
        """The rows that each model sees."""
        return [self.column == model for model in range(self.width)] if len(self.column) else [slice(None)]

    def reach(self, columns: Floats, steps: Floats) -> Floats:
        """What steps (f, W) of these numbers add to the scores (n, 1)."""
        if not len(self.column):
            return columns @ steps
        return np.asarray((columns * steps.T[self.column]).sum(axis=1, keepdims=True))

    def move(self, term: SolverTerm, steps: Floats) -> None:
        """Move rows by their coefficients' steps (q, W)."""
        self._catch_up()
        self._waiting = term, self._steps(term, steps)

    def own_curvature(self, term: SolverTerm) -> Floats:
        """Curvature (q, W) of each coefficient."""
        return self.collect(term)[1]

    def scores(self) -> Floats:
        """Scores (n, 1)."""
        return scores_of_kept(self._caught_up(), self.y, self._code)[:, None]

    def stand_at(self, scores: Floats) -> None:
        """Let rows stand at scores (n, 1)."""
        self._waiting, self._values = None, self._stand(scores[:, 0])

    def grads(self) -> tuple[Floats, Floats]:
        """Slopes and curvatures (n,) of rows times their weights."""
        return self._grads(self._caught_up())

    def sum_pulls(self) -> tuple[float, float]:
        """Sums over rows of squared slopes and of curvatures, times their weights."""
        return sum_pulls(self._caught_up(), self.y, self.weight, self._code, self._parameter, MIN_HESSIAN)

    def pulls_at(self, scores: Floats) -> tuple[Floats, Floats]:
        """The same at other scores (n,)."""
        return self._grads(self._stand(scores))

    def scores_by_sums(self, terms: list[SolverTerm], theta: list[Floats], *, flip: bool = False) -> Floats:
        """Scores (n, 1) of rows added up term by term, of two models under the other one where `flip` is set."""
        scores = self.start.copy()
        for term, values in zip(terms, theta, strict=True):
            add_entries(self.codes(term), term.x, values.ravel(), self.width, int(flip), scores)
        return scores[:, None]

    def padded(self, numbers: Floats) -> Floats:
        """Numbers (q, W) of coefficients as kernels read them: 0 before them, for rows without a coefficient."""
        padded = np.zeros((1 + len(numbers)) * self.width)
        padded[self.width :] = numbers.ravel()
        return padded

    def by_entry(self, sums: Floats) -> Floats:
        """Sums (q, W) of coefficients as kernels wrote them."""
        return sums[self.width :].reshape(-1, self.width)

    def _steps(self, term: SolverTerm, steps: Floats) -> Floats:
        """Steps (q, W) as kernels move rows by them."""
        rate = 0.0 if len(term.x) else RATES.get(self._code, 0.0)
        if rate == 0.0:
            return self.padded(steps)
        factors = np.ones((1 + term.size) * self.width)
        own = np.multiply(steps.ravel(), rate, out=factors[self.width :])
        np.exp(own, out=own)  # by several at once, in a quarter of the time that one after the other takes
        return factors

    def _caught_up(self) -> Floats:
        self._catch_up()
        return self._values

    def _catch_up(self) -> None:
        if self._waiting is not None:
            term, steps = self._waiting
            move(self.codes(term), term.x, steps, self._values, self._code)
            self._waiting = None

    def _grads(self, values: Floats) -> tuple[Floats, Floats]:
        slopes, hessians = np.empty((2, len(values)))
        row_gradients(values, self.y, self.weight, self._code, self._parameter, slopes, hessians)
        return slopes, hessians

    def _stand(self, scores: Floats) -> Floats:
        return keep(scores, self.y, self._code, FAR + 1.0)


class MulticlassRows:
    """Rows of the multinomial loss, at their probabilities: a step takes an exp per coefficient, and none per row.

    As for one score, steps wait for the next pass over the rows.

    Parameters
    ----------
    y, weight : (n,)
        Weight empty for none.
    start : (n, K)
        Scores before any term.
    """

    def __init__(self, y: Floats, weight: Floats, start: Floats) -> None:
        self.y, self.weight, self.start = y, weight, start
        self.width, self.far = start.shape[1], FAR
        self._values = np.asarray(softmax(start, axis=1))
        self._scales = np.empty(len(start))
        self._waiting: tuple[SolverTerm, Floats] | None = None
        self._classes: dict[int, Floats] = {}  # weights of rows (q, K) by coefficient and class, of blocks

    @property
    def probabilities(self) -> Floats:
        """Of the classes (n, K)."""
        self._catch_up()
        return self._values

    def collect(self, term: SolverTerm) -> tuple[Floats, Floats]:
        """Sums of slopes (q, K) by coefficient, and curvatures of a bound."""
        if self._waiting is None or len(term.x) or len(self._waiting[0].x):
            return self._collect(term, diagonal=False)
        (before, steps), self._waiting = self._waiting, None
        sums = np.empty((1 + term.size, self.width))
        factors = np.ones((1 + before.size, self.width))
        np.exp(steps, out=factors[1:])
        take_classes_turn(before.codes, factors, term.codes, self.weight, self._values, self._scales, sums)
        return sums[1:] - self._classes_of(term), np.maximum(sums[1:], MIN_PROBABILITY)

    def slopes_together(self, columns: Floats) -> Floats:
        """Slopes (f, K) of numbers that columns (n, f) are multiplied by."""
        gradient = columns.T @ self._weighed()
        for k in range(self.width):
            own = self.y == k
            gradient[:, k] -= columns[own].T @ (self.weight[own] if len(self.weight) else np.ones(int(own.sum())))
        return gradient

    def information_together(self, columns: Floats) -> Floats:
        """Information (K, f, f) on these numbers, of the bound."""
        return np.array([columns.T @ (one[:, None] * columns) for one in self._weighed().T])

    def _weighed(self) -> Floats:
        return self.probabilities * (self.weight[:, None] if len(self.weight) else 1.0)

    def reach(self, columns: Floats, steps: Floats) -> Floats:
        """What steps (f, K) of these numbers add to the scores (n, K)."""
        return columns @ steps

    def move(self, term: SolverTerm, steps: Floats) -> None:
        """Move rows by their coefficients' steps (q, K)."""
        self._catch_up()
        self._waiting = term, steps.copy()

    def own_curvature(self, term: SolverTerm) -> Floats:
        """Curvature (q, K) of each coefficient by itself."""
        return self._collect(term, diagonal=True)[1]

    def scores(self) -> Floats:
        """Scores (n, K), up to a number common to the classes."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.probabilities))

    def scores_by_sums(self, terms: list[SolverTerm], theta: list[Floats]) -> Floats:
        """Scores (n, K) of rows added up term by term."""
        scores = self.start.copy()
        for term, values in zip(terms, theta, strict=True):
            own = np.concatenate([np.zeros((1, self.width)), values])[term.codes + 1]
            scores += own * term.x[:, None] if len(term.x) else own
        return scores

    def stand_at(self, scores: Floats) -> None:
        """Let rows stand at scores (n, K)."""
        self._waiting, self._values = None, np.asarray(softmax(scores, axis=1))

    def _collect(self, term: SolverTerm, *, diagonal: bool) -> tuple[Floats, Floats]:
        gradient, curvature = np.empty((2, term.size, self.width))
        collect_classes(term.codes, term.x, self.y, self.weight, self.probabilities, diagonal, gradient, curvature)
        return gradient, curvature

    def _catch_up(self) -> None:
        if self._waiting is not None:
            term, steps = self._waiting
            move_classes(term.codes, term.x, steps, self._values)
            self._waiting = None

    def _classes_of(self, term: SolverTerm) -> Floats:
        if term.block not in self._classes:
            cells = (1 + term.codes.astype(np.int64)) * self.width + self.y.astype(np.int64)
            sums = np.bincount(cells, self.weight if len(self.weight) else None, (1 + term.size) * self.width)
            self._classes[term.block] = sums.reshape(-1, self.width)[1:].astype(np.float64)
        return self._classes[term.block]
