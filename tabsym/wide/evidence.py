"""What crosses are weighed on: rows under models each of which has not seen one fold, and columns sorted by symbol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tabsym.wide.curvature import logistic_pulls, newton_steps, pulls_of_rows
from tabsym.wide.gains import gain_of_cross, is_function, keep_evident, number_cells, sort_rows
from tabsym.wide.losses import Loss
from tabsym.wide.rules import LOGISTIC

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

PASSES = 2
"""Over all columns, of one Newton step each: more fit the rows seen too well to leave crosses their due."""

MAIN_PENALTY = 2.0
"""Ridge penalty of those steps: with 5, pairs of random columns get what rare symbols are owed."""

_NONE = np.empty(0)


@dataclass(frozen=True)
class CodeColumn:
    """A column that can be crossed: codes (n,) below `size`, -1 for none."""

    name: str
    codes: Codes
    size: int


class Evidence:
    """The rows that crosses are weighed on, under models each of which has not seen one fold.

    Parameters
    ----------
    scores : (K, n, F)
        Of all rows: output k of the model that has not seen fold v. Moved by `settle` and `add`.
    fold : (n,) int8
    y, weight : (n,)
        Target in units of training, and weights, empty for none.
    loss : Loss
    penalty : float
        Ridge penalty of the steps of crosses.
    """

    def __init__(
        self, scores: Floats, fold: NDArray[np.int8], y: Floats, weight: Floats, loss: Loss, penalty: float
    ) -> None:
        self.scores, self.fold, self.y, self.weight, self.loss = scores, fold, y, weight, loss
        self.penalty = penalty
        self.n_folds = scores.shape[2]
        self.total = float(weight.sum()) if len(weight) else float(len(y))
        self.pulls = np.empty((*scores.shape[:2], 2 * self.n_folds), dtype=np.float32)
        self._sums = np.zeros((len(y), self.pulls.shape[2]))  # a work array kept, as fresh memory is slow
        self._odds = np.empty(scores.shape[1:], dtype=np.float32)
        self._find_pulls()
        self.dispersion = self._dispersion()

    def settle(self, columns: Sequence[CodeColumn], numbers: Sequence[Floats] = ()) -> None:
        """Train the models: Newton steps of each number, then of each column, small alphabets first, by themselves."""
        one_symbol = np.zeros(len(self.y), dtype=np.int32)
        for _ in range(PASSES):
            for x in numbers:
                self._step(one_symbol, x, 1, MAIN_PENALTY)
            for column in sorted(columns, key=lambda column: column.size):
                self._step(column.codes, _NONE, column.size, MAIN_PENALTY)
        self.dispersion = self._dispersion()

    def weigh(self, left: Sorted, right: CodeColumn) -> tuple[float, float]:
        """Mean held-out gain per row of the cross of two columns, and its standard error."""
        starts, order = left.evident
        shape = min(left.most_rows, right.size), 2 * self.n_folds**2
        seen, sums = np.zeros(right.size, dtype=np.int64), np.zeros(shape)
        gain = variance = 0.0
        for pulls in self.pulls:
            own, more = gain_of_cross(
                starts, order, right.codes, self.fold, self.n_folds, pulls, self.penalty, seen, sums
            )
            gain += own
            variance += more
        return gain / self.total, float(np.sqrt(variance * self.dispersion)) / self.total

    def add(self, cells: CodeColumn) -> None:
        """Add the Newton steps of a cross to the scores."""
        self._step(cells.codes, _NONE, cells.size, self.penalty)

    def _step(self, codes: Codes, x: Floats, size: int, penalty: float) -> None:
        if size > len(self._sums):
            self._sums = np.zeros((size, self.pulls.shape[2]))
        for pulls, scores in zip(self.pulls, self.scores):
            newton_steps(codes, x, self.fold, self.n_folds, pulls, penalty, self._sums[:size], scores)
        self._find_pulls()

    def _find_pulls(self) -> None:
        """Gradients and curvatures at the scores as they are."""
        if self.loss.code == LOGISTIC:
            np.negative(self.scores[0], out=self._odds, casting="same_kind")
            with np.errstate(over="ignore"):
                np.exp(self._odds, out=self._odds)  # of many numbers at once, which no compiled loop does
            logistic_pulls(self._odds, self.y, self.weight, self.pulls[0])
        else:
            slope = np.empty(len(self.scores))
            pulls_of_rows(self.scores, self.y, self.weight, self.loss.code, self.loss.parameter, slope, self.pulls)

    def _dispersion(self) -> float:
        """Variance of gradients over their curvature: 1 for a logistic model that holds."""
        own = np.square(self.pulls[..., ::2], dtype=np.float64)
        if len(self.weight):
            own /= self.weight[:, None]
        return float(own.sum() / self.pulls[..., 1::2].sum(dtype=np.float64))


class Sorted:
    """A column whose rows lie together by symbol, ready to be crossed with others."""

    def __init__(self, column: CodeColumn, fold: NDArray[np.int8]) -> None:
        self.column, self._fold = column, fold

    @cached_property
    def rows(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """`starts` (symbols + 1,) and `order`: the rows that have a symbol, one symbol's after another's."""
        starts = np.zeros(self.column.size + 1, dtype=np.int64)
        order = np.empty(len(self.column.codes), dtype=np.int32)
        return starts, order[: sort_rows(self.column.codes, starts, order)]

    @cached_property
    def evident(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Only the rows of symbols that more than one fold has."""
        starts, order = (np.zeros_like(array) for array in self.rows)
        n_symbols, n_rows = keep_evident(*self.rows, self._fold, starts, order)
        return starts[: n_symbols + 1], order[:n_rows]

    @cached_property
    def most_rows(self) -> int:
        """Of any symbol."""
        return int(np.diff(self.rows[0]).max(initial=0))

    def cross(self, other: CodeColumn) -> CodeColumn:
        """The cross with another column as a column."""
        codes = np.full(len(self.column.codes), -1, dtype=np.int32)
        n_cells = number_cells(*self.rows, other.codes, np.zeros(other.size, dtype=np.int64), codes)
        return CodeColumn(f"{self.column.name}:{other.name}", codes, int(n_cells))

    def determines(self, other: CodeColumn, few: float) -> bool:
        """Whether the other column is a function of this one, but for so few rows."""
        return bool(is_function(*self.rows, other.codes, few, np.zeros(other.size, dtype=np.int64)))
