"""Linear predictors of all rows, and the gradients and Hessians of coefficients at these."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from tabsym.jit import by_parts, parts_of
from tabsym.losses.loss import RATES, SQUARED, Loss, as_kept, keep, scores_of_kept
from tabsym.solvers.newton.kernels_coefs import step_of_pairs, step_ridge, sum_products_of
from tabsym.solvers.newton.kernels_rows import (
    MIN_HESSIAN,
    MIN_PROBABILITY,
    add_coefs,
    codes_of_models,
    collect_classes,
    move,
    move_and_sum,
    move_and_sum_classes,
    move_and_sum_squared,
    move_classes,
    row_gradients,
    sum_gradients,
)
from tabsym.solvers.newton.terms import SolverTerm

Floats = NDArray[np.float64]

ONE_MODEL = np.empty(0, dtype=np.int8)
"""No assignment of rows to models: one model is trained on all rows."""

LANES, MAX_LANED = 4, 256
"""Terms of up to `MAX_LANED` coefficients have this many accumulators for each sum, so that additions overlap."""

FAR = 600.0
"""Linear predictors are clipped here, where exp nearly overflows; where any are, they are summed anew from the
terms."""


def lanes_of(size: int) -> int:
    """The number of accumulators per coefficient for a term of `size` coefficients."""
    return LANES if size <= MAX_LANED else 1


def _added(sums: list[Floats]) -> Floats:
    """The sum of those of parts, in the first one's memory."""
    for more in sums[1:]:
        sums[0] += more
    return sums[0]


class SingleOutputRows:
    """Rows of a loss with one linear predictor, each in the training rows of one model.

    The update of a term stays pending until the next pass over the rows, which applies it and sums gradients and
    Hessians for the next term.

    Parameters
    ----------
    y, weight : (n,)
        Weight empty for none.
    start : (n,)
        Linear predictors before any term.
    loss : Loss
    column : (n,) int8
        The model whose training rows include the row; empty for one.
    n_models : int
    """

    def __init__(
        self, y: Floats, weight: Floats, start: Floats, loss: Loss, column: NDArray[np.int8], n_models: int
    ) -> None:
        self.y, self.weight, self.start, self.column = y, weight, start, column
        self.code, self._parameter = as_kept(loss)
        self.width = n_models
        self.max_score = FAR / abs(RATES[self.code]) if self.code in RATES else np.inf
        self._values = self._transform(start)
        self._pending: tuple[SolverTerm, Floats] | None = None
        self._curvatures: dict[int, Floats] = {}  # by term, where they never change
        self._sums = np.empty((0, 2))  # reused: allocating takes longer than the sums
        self._moves, self._rights = np.empty(0), np.empty(0)  # work space for updates and negative gradients
        self._codes: dict[int, NDArray[np.int32]] = {}  # by term, where there are several models

    def collect(self, term: SolverTerm) -> tuple[Floats, Floats]:
        """Sums of gradients and Hessians (q, W) by coefficient."""
        if term.block in self._curvatures:
            before, steps = self.pending_update(term)
            length, n_lanes = (1 + term.size) * self.width, lanes_of(term.size)
            earlier, codes, values = self.codes(before), self.codes(term), self._values

            def take_part(number: int, rows: slice) -> Floats:
                slopes = np.empty(n_lanes * length)
                move_and_sum_squared(
                    earlier[rows], before.x[rows], steps, codes[rows], term.x[rows], self.weight[rows], values[rows],
                    n_lanes, slopes,
                )  # fmt: skip
                return slopes[:length]

            return self.by_coef(_added(by_parts(take_part, len(codes)))), self._curvatures[term.block]
        grads = self._collect(term)
        gradient, curvature = self.by_coef(grads[:, 0]), self.by_coef(grads[:, 1].copy())
        if self.code == SQUARED:
            self._curvatures[term.block] = curvature
        return gradient, curvature

    def _collect(self, term: SolverTerm) -> Floats:
        """Gradients and Hessians by coefficient ((1 + q) W, 2), in the shape that kernels take; work space."""
        before, steps = self.pending_update(term)
        length, n_lanes = (1 + term.size) * self.width, lanes_of(term.size)
        space = n_lanes * length
        if len(self._sums) < len(parts_of(len(self.y))) * space:
            self._sums = np.empty((len(parts_of(len(self.y))) * space, 2))
        kernel = move_and_sum(self.code, len(before.x) + len(term.x) + len(self.weight) == 0)
        earlier, codes, values = self.codes(before), self.codes(term), self._values

        def take_part(number: int, rows: slice) -> Floats:
            grads = self._sums[number * space : (number + 1) * space]
            kernel(
                earlier[rows], before.x[rows], steps, codes[rows], term.x[rows], self.y[rows], self.weight[rows],
                values[rows], self._parameter, n_lanes, grads,
            )  # fmt: skip
            return grads[:length]

        return _added(by_parts(take_part, len(self.y)))

    def update_ridge_block(
        self, term: SolverTerm, theta: Floats, curvature: Floats, precision: float, max_step: float
    ) -> tuple[Floats, float]:
        """Newton step of a term with a ridge penalty or none: the Hessian's diagonal, and half the Newton decrement.

        theta (q, W) is updated in place, and curvature (q, W), which may be returned, is overwritten; the update of the
        rows stays pending.
        """
        if len(self._rights) < theta.size:
            self._rights = np.empty(theta.size)
        right = self._rights[: theta.size]
        if self.code == SQUARED:  # its Hessians never change
            gradient, curvature = self.collect(term)
            steps, rate = self._free_moves(term), 1.0
            coef_steps = steps[self.width :]
            step_ridge(gradient.ravel(), curvature.ravel(), theta.ravel(), precision, max_step, right, coef_steps)
        else:
            rate = 1.0 if len(term.x) else RATES.get(self.code, 1.0)
            grads = self._collect(term)[self.width :]
            steps = self._free_moves(term)
            coef_steps = steps[self.width :]
            step_of_pairs(grads.ravel(), precision, max_step, rate, theta.ravel(), curvature.ravel(), right, coef_steps)
        decrease = 0.5 * float(sum_products_of(right, coef_steps)) / rate
        if self.code in RATES and not len(term.x):
            np.exp(steps, out=steps)  # vectorized: a quarter of the time of a scalar loop
        self._pending = term, steps
        return curvature, decrease

    def _free_moves(self, term: SolverTerm) -> Floats:
        """Work space for a term's update in the shape that kernels take, its first part 0; none may be pending."""
        length = (1 + term.size) * self.width
        if len(self._moves) < length:
            self._moves = np.empty(length)
        steps = self._moves[:length]
        steps[: self.width] = 0.0
        return steps

    def pending_update(self, term: SolverTerm, *, plain: bool = False) -> tuple[SolverTerm, Floats]:
        """The pending update and its term, for a pass that will apply it; `term` and zeros if there is none.

        `plain`: apply the update of a term with a numeric factor at once instead.
        """
        if plain and self._pending is not None and len(self._pending[0].x):
            self._apply_pending()
        pending, self._pending = self._pending, None
        return pending or (term, self._steps(term, np.zeros((term.size, self.width))))

    def set_pending(self, term: SolverTerm, steps: Floats) -> None:
        """Store the pending update of a term, in the shape that kernels take."""
        self._pending = term, steps

    def transformed(self) -> tuple[Floats, float, float]:
        """Transformed linear predictors (n,), the parameter of their loss, and the factor in the exp, 0 for none."""
        return self._values, self._parameter, RATES.get(self.code, 0.0)

    def codes(self, term: SolverTerm) -> NDArray[np.int32]:
        """Indices (n,), less one, of the rows' coefficients among those of all models."""
        if not len(self.column):
            return term.codes
        if term.block not in self._codes:
            self._codes[term.block] = np.empty(len(term.codes), dtype=np.int32)
            codes_of_models(term.codes, self.column, self.width, self._codes[term.block])
        return self._codes[term.block]

    def slopes_together(self, columns: Floats) -> Floats:
        """Gradient (f, W) of the coefficients of a design matrix (n, f)."""
        slopes, _ = self.grads()
        return np.column_stack([columns[seen].T @ slopes[seen] for seen in self._seen()])

    def information_together(self, columns: Floats) -> Floats:
        """Information (W, f, f) on these coefficients."""
        _, hessians = self.grads()
        return np.array([columns[seen].T @ (hessians[seen, None] * columns[seen]) for seen in self._seen()])

    def _seen(self) -> list[Any]:
        """The training rows of each model."""
        return [self.column == model for model in range(self.width)] if len(self.column) else [slice(None)]

    def delta_eta(self, columns: Floats, steps: Floats) -> Floats:
        """The change of the linear predictors (n, 1) by steps (f, W) of these coefficients."""
        if not len(self.column):
            return columns @ steps
        return np.asarray((columns * steps.T[self.column]).sum(axis=1, keepdims=True))

    def move(self, term: SolverTerm, steps: Floats) -> None:
        """Add their coefficients' steps (q, W) to the linear predictors; this stays pending."""
        self._apply_pending()
        self._pending = term, self._steps(term, steps)

    def scores(self) -> Floats:
        """Linear predictors (n, 1)."""
        values = self._apply_pending()
        if self.code not in RATES and self.code != SQUARED:
            return values[:, None]
        scores = np.empty(len(values))

        def read_part(number: int, rows: slice) -> None:
            scores[rows] = scores_of_kept(values[rows], self.y[rows], self.code)

        by_parts(read_part, len(values))
        return scores[:, None]

    def set_predictor(self, scores: Floats) -> None:
        """Set the linear predictors (n, 1)."""
        self._pending, self._values = None, self._transform(scores[:, 0])

    def grads(self) -> tuple[Floats, Floats]:
        """Gradients and Hessians (n,) of the rows, times their weights."""
        return self._grads(self._apply_pending())

    def sum_gradients(self) -> tuple[float, float]:
        """Sums over rows of squared gradients and of Hessians, times their weights."""
        values, summed = self._apply_pending(), sum_gradients(self.code)
        sums = by_parts(
            lambda _, rows: summed(values[rows], self.y[rows], self.weight[rows], self._parameter, MIN_HESSIAN),
            len(values),
        )
        squares, hessians = zip(*sums, strict=True)
        return sum(squares), sum(hessians)

    def gradients_for(self, scores: Floats) -> tuple[Floats, Floats]:
        """The gradients and Hessians at other linear predictors (n,)."""
        return self._grads(self._transform(scores))

    def scores_by_sums(self, terms: list[SolverTerm], theta: list[Floats], *, flip: bool = False) -> Floats:
        """Linear predictors (n, 1) summed from the terms; of two models, those of the other one where `flip` is set."""
        scores = self.start.copy()
        for term, values in zip(terms, theta, strict=True):
            if not values.any():  # those that were dropped are 0
                continue
            codes, x, coefs = self.codes(term), term.x, values.ravel()
            by_parts(
                lambda _, rows: add_coefs(codes[rows], x[rows], coefs, self.width, int(flip), scores[rows]),  # noqa: B023
                len(scores),
            )
        return scores[:, None]

    def padded(self, numbers: Floats) -> Floats:
        """Coefficients (q, W) in the shape that kernels take: preceded by zeros, for rows without a coefficient."""
        padded = np.zeros((1 + len(numbers)) * self.width)
        padded[self.width :] = numbers.ravel()
        return padded

    def by_coef(self, sums: Floats) -> Floats:
        """Sums (q, W) by coefficient, from the shape that kernels take."""
        return sums[self.width :].reshape(-1, self.width)

    def _steps(self, term: SolverTerm, steps: Floats) -> Floats:
        """Steps (q, W) in the spec and transform in which kernels apply them."""
        rate = 0.0 if len(term.x) else RATES.get(self.code, 0.0)
        if rate == 0.0:
            return self.padded(steps)
        factors = np.ones((1 + term.size) * self.width)
        coef_factors = np.multiply(steps.ravel(), rate, out=factors[self.width :])
        np.exp(coef_factors, out=coef_factors)  # vectorized: a quarter of the time of a scalar loop
        return factors

    def _apply_pending(self) -> Floats:
        """The transformed linear predictors, after the pending update."""
        if self._pending is not None:
            term, steps = self._pending
            codes, values, moved = self.codes(term), self._values, move(self.code)
            by_parts(lambda _, rows: moved(codes[rows], term.x[rows], steps, values[rows]), len(values))
            self._pending = None
        return self._values

    def _grads(self, values: Floats) -> tuple[Floats, Floats]:
        slopes, hessians = np.empty((2, len(values)))
        fill = row_gradients(self.code)
        by_parts(
            lambda _, rows: fill(
                values[rows], self.y[rows], self.weight[rows], self._parameter, slopes[rows], hessians[rows]
            ),
            len(values),
        )
        return slopes, hessians

    def _transform(self, scores: Floats) -> Floats:
        values = np.empty(len(scores))

        def transform_part(number: int, rows: slice) -> None:
            values[rows] = keep(scores[rows], self.y[rows], self.code, FAR + 1.0)

        by_parts(transform_part, len(scores))
        return values


class MulticlassRows:
    """Rows of the multinomial loss, stored as probabilities: an update takes one exp per coefficient, and none per row.

    As with one linear predictor, updates stay pending until the next pass over the rows.

    Parameters
    ----------
    y, weight : (n,)
        Weight empty for none.
    start : (n, K)
        Linear predictors before any term.
    """

    def __init__(self, y: Floats, weight: Floats, start: Floats) -> None:
        self.y, self.weight, self.start = y, weight, start
        self.width, self.max_score = start.shape[1], FAR
        self._values = np.asarray(softmax(start, axis=1))
        self._pending: tuple[SolverTerm, Floats] | None = None
        self._classes: dict[int, Floats] = {}  # by term: weights of rows (q, K) by coefficient and class

    @property
    def probabilities(self) -> Floats:
        """Class probabilities (n, K)."""
        self._apply_pending()
        return self._values

    def collect(self, term: SolverTerm) -> tuple[Floats, Floats]:
        """Sums of gradients (q, K) by coefficient, and an upper bound of the Hessian."""
        if self._pending is None or len(term.x) or len(self._pending[0].x):
            return self._collect(term, diagonal=False)
        (before, steps), self._pending = self._pending, None
        factors = np.ones((1 + before.size, self.width))
        np.exp(steps, out=factors[1:])
        values, kernel = self._values, move_and_sum_classes(self.width)

        def take_part(number: int, rows: slice) -> Floats:
            sums = np.empty((1 + term.size, self.width))
            kernel(before.codes[rows], factors, term.codes[rows], self.weight[rows], values[rows], sums)
            return sums

        sums = _added(by_parts(take_part, len(values)))
        return sums[1:] - self._classes_of(term), np.maximum(sums[1:], MIN_PROBABILITY)

    def slopes_together(self, columns: Floats) -> Floats:
        """Gradient (f, K) of the coefficients of a design matrix (n, f)."""
        gradient = columns.T @ self._evaluated()
        for k in range(self.width):
            is_class = self.y == k
            gradient[:, k] -= columns[is_class].T @ (
                self.weight[is_class] if len(self.weight) else np.ones(int(is_class.sum()))
            )
        return gradient

    def information_together(self, columns: Floats) -> Floats:
        """Upper bound of the information (K, f, f) on these coefficients."""
        return np.array([columns.T @ (weights[:, None] * columns) for weights in self._evaluated().T])

    def _evaluated(self) -> Floats:
        return self.probabilities * (self.weight[:, None] if len(self.weight) else 1.0)

    def delta_eta(self, columns: Floats, steps: Floats) -> Floats:
        """The change of the linear predictors (n, K) by steps (f, K) of these coefficients."""
        return columns @ steps

    def move(self, term: SolverTerm, steps: Floats) -> None:
        """Add their coefficients' steps (q, K) to the linear predictors; this stays pending."""
        self._apply_pending()
        self._pending = term, steps.copy()

    def hessian_diagonal(self, term: SolverTerm) -> Floats:
        """The Hessian's diagonal (q, K)."""
        return self._collect(term, diagonal=True)[1]

    def scores(self) -> Floats:
        """Linear predictors (n, K), up to a constant common to the classes."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.probabilities))

    def scores_by_sums(self, terms: list[SolverTerm], theta: list[Floats]) -> Floats:
        """Linear predictors (n, K) summed from the terms."""
        scores = self.start.copy()
        for term, values in zip(terms, theta, strict=True):
            if values.any():  # those that were dropped are 0
                coefs = np.concatenate([np.zeros((1, self.width)), values])[term.codes + 1]
                scores += coefs * term.x[:, None] if len(term.x) else coefs
        return scores

    def set_predictor(self, scores: Floats) -> None:
        """Set the linear predictors (n, K)."""
        self._pending, self._values = None, np.asarray(softmax(scores, axis=1))

    def _collect(self, term: SolverTerm, *, diagonal: bool) -> tuple[Floats, Floats]:
        probabilities = self.probabilities

        def collect_part(number: int, rows: slice) -> Floats:
            sums = np.empty((2, term.size, self.width))
            collect_classes(
                term.codes[rows], term.x[rows], self.y[rows], self.weight[rows], probabilities[rows], diagonal, *sums
            )
            return sums

        gradient, curvature = _added(by_parts(collect_part, len(probabilities)))
        return gradient, curvature

    def _apply_pending(self) -> None:
        if self._pending is not None:
            term, steps = self._pending
            values = self._values
            by_parts(
                lambda _, rows: move_classes(term.codes[rows], term.x[rows], steps.copy(), values[rows]), len(values)
            )
            self._pending = None

    def _classes_of(self, term: SolverTerm) -> Floats:
        if term.block not in self._classes:
            cells = (1 + term.codes.astype(np.int64)) * self.width + self.y.astype(np.int64)
            sums = np.bincount(cells, self.weight if len(self.weight) else None, (1 + term.size) * self.width)
            self._classes[term.block] = sums.reshape(-1, self.width)[1:].astype(np.float64)
        return self._classes[term.block]
