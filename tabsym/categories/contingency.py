"""Contingency tables: a column's values by the target's, which add up over pieces of a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tabsym.frame import NUMBERS, Measure, Numbers

Floats = NDArray[np.float64]
Counts: TypeAlias = Any  # ndarray of float64, or csr_array

SKETCH_ABOVE = 1_048_576
"""Numeric tables with more distinct values are kept as so many cells of neighbouring values."""
_MAX_DENSE_TARGETS = 64


@dataclass(frozen=True)
class Contingency:
    """Rows, or sums of their weights, by a column's value and by the target's.

    Attributes
    ----------
    values : (B,)
        Numeric columns: float64, ascending, missing as -inf (infinite values are errors elsewhere); complex where
        float64 rounds (`tabsym.frame.columns`).
        Symbolic columns: objects, missing as None; in the order of their text, whatever that of the rows is.
    lows : (B,) or None
        Numeric columns: the least value that a row of the table stands for, `values` being the greatest.
        Equal but in a sketch.
    targets : (T,)
        Distinct targets, ascending.
    counts : (B, T)
        Dense for classes, CSR for the targets of a regression.
    error : float
        Rows by which a sketch can misplace a cut.
    measure : Measure
        What the values of a numeric column stand for.
    """

    values: NDArray[Any]
    lows: NDArray[Any] | None
    targets: NDArray[Any]
    counts: Counts
    error: float = 0.0
    measure: Measure = NUMBERS

    @classmethod
    def of_cells(
        cls, highs: Floats, lows: Floats, cells: tuple[NDArray[Any], NDArray[Any], Floats], targets: NDArray[Any],
        measure: Measure,
    ) -> Contingency:  # fmt: skip
        """Numbers in cells from `lows` to `highs` (B,); `cells`: of each count the cell, the target and the rows."""
        counts = _cells(*cells, len(highs), len(targets))
        several = np.bincount(cells[0], cells[2], minlength=len(highs))[lows != highs]
        return cls(highs, lows, targets, counts, float(several.max(initial=0.0)), measure)

    @property
    def is_numeric(self) -> bool:
        return self.lows is not None

    @property
    def is_missing_only(self) -> bool:
        """Whether there is no value but the missing one."""
        return len(self.values) == 1 and bool(
            np.isneginf(self.values[0].real) if self.is_numeric else self.values[0] is None
        )

    @property
    def sizes(self) -> Floats:
        """Rows of each value (B,)."""
        return np.asarray(self.counts.sum(axis=1)).ravel()

    @property
    def target_sizes(self) -> Floats:
        """Rows of each target (T,)."""
        return np.asarray(self.counts.sum(axis=0)).ravel()

    def dense(self) -> Floats:
        return self.counts.toarray() if sparse.issparse(self.counts) else np.asarray(self.counts)

    def summed(self, rows: NDArray[np.int64], columns: NDArray[np.integer[Any]], shape: tuple[int, int]) -> Floats:
        """Counts by new numbers of the values (B,) and of the targets (T,)."""
        counts = _regrouped(self.counts, rows, columns, *shape)
        return counts.toarray() if sparse.issparse(counts) else np.asarray(counts)

    def sketched(self, max_cells: int | None = None) -> Contingency:
        """At most about so many cells of neighbouring values, of nearly equal size; missing keeps its own."""
        max_cells = SKETCH_ABOVE if max_cells is None else max_cells
        if self.lows is None or len(self.values) <= max_cells:
            return self
        sizes = self.sizes
        cell = np.floor((np.cumsum(sizes) - sizes) * max_cells / sizes.sum()).astype(np.int64)
        if np.isneginf(self.values[0].real):
            cell[1:] += 1
        first = np.append(True, cell[1:] != cell[:-1])
        label, last = np.cumsum(first) - 1, np.append(first[1:], True)
        several = self.lows[first] != self.values[last]  # a cell of one value misplaces nothing
        largest = float((np.bincount(label, sizes) * several).max())
        return replace(
            self,
            values=self.values[last],
            lows=self.lows[first],
            counts=_regrouped(self.counts, label, np.arange(len(self.targets)), int(label[-1]) + 1, len(self.targets)),
            error=self.error + largest,
        )


@dataclass(frozen=True)
class CodedValues:
    """The distinct values (B,) of a column as a table orders them, and the value of each row: codes (n,) into them.

    To sort and to hash takes longer than to count: a column is coded once, and then counted for the rows of each fold.
    """

    codes: NDArray[np.integer[Any]]
    values: NDArray[Any]
    is_numeric: bool
    measure: Measure = NUMBERS

    def count(
        self,
        target: NDArray[np.integer[Any]],
        targets: NDArray[Any],
        weight: Floats | None = None,
        rows: NDArray[np.int64] | None = None,
    ) -> Contingency:
        """The table of some rows, all if None: target (n,) codes into targets, weight (n,) above 0 in these rows.

        Values that the rows do not hold are left out.
        """
        codes = self.codes
        if rows is not None:
            codes, target = codes[rows], target[rows]
            weight = None if weight is None else weight[rows]
        values, counts = self.values, _cells(codes, target, weight, len(self.values), len(targets))
        held = np.bincount(codes, minlength=len(values)) > 0
        if not held.all():
            values, counts = values[held], counts[held]
        return Contingency(
            values, values if self.is_numeric else None, targets, counts, measure=self.measure
        ).sketched()


def code_numbers(values: Numbers, measure: Measure = NUMBERS) -> CodedValues:
    """A numeric column: values (n,), NaN for missing."""
    if np.isnan(values).any():
        values = np.where(np.isnan(values), -np.inf, values)
    order = np.argsort(values)
    ascending = values[order]
    first = np.empty(len(values), dtype=bool)
    first[0] = True
    np.not_equal(ascending[1:], ascending[:-1], out=first[1:])
    codes = np.empty(len(values), dtype=np.int64)
    codes[order] = np.cumsum(first) - 1
    return CodedValues(codes, ascending[first], True, measure)


def code_symbols(codes: NDArray[np.integer[Any]], symbols: NDArray[Any]) -> CodedValues:
    """A symbolic column: codes (n,) into symbols, -1 for missing."""
    named = np.empty(len(symbols) + 1, dtype=object)
    named[:-1], named[-1] = symbols, None
    order = _by_text(named)  # missing stays last
    rank = np.empty(len(named), dtype=np.int64)
    rank[order] = np.arange(len(named))
    return CodedValues(rank[codes], named[order], False)  # -1 reads the last place


def merge_tables(a: Contingency, b: Contingency) -> Contingency:
    """The table of both tables' rows."""
    targets = np.union1d(a.targets, b.targets)
    if a.lows is None or b.lows is None:
        uniques = list(dict.fromkeys([*a.values.tolist(), *b.values.tolist()]))
        values = np.empty(len(uniques), dtype=object)
        values[:] = uniques
        values = values[_by_text(values)]
        index = {value: i for i, value in enumerate(values.tolist())}
        rows = [np.array([index[v] for v in one.values.tolist()], dtype=np.int64) for one in (a, b)]
        lows = None
    else:
        highs, all_lows = np.concatenate([a.values, b.values]), np.concatenate([a.lows, b.lows])
        order = np.lexsort((all_lows, highs))
        high, low = highs[order], all_lows[order]  # -inf, missing, equals itself
        same = (high[1:] == high[:-1]) & (low[1:] == low[:-1])
        first = np.append(True, ~same)
        label = np.empty(len(order), dtype=np.int64)
        label[order] = np.cumsum(first) - 1
        values, lows = highs[order][first], all_lows[order][first]
        rows = [label[: len(a.values)], label[len(a.values) :]]
    counts = sum(
        _regrouped(one.counts, row, np.searchsorted(targets, one.targets), len(values), len(targets))
        for one, row in zip((a, b), rows, strict=True)
    )
    measure = b.measure if a.is_missing_only else a.measure
    return Contingency(values, lows, targets, counts, a.error + b.error, measure).sketched()


def _by_text(symbols: NDArray[Any]) -> NDArray[np.int64]:
    """Where the symbols lie in the order of their text, missing last."""
    texts = [(symbol is None, str(symbol)) for symbol in symbols.tolist()]
    return np.array(sorted(range(len(texts)), key=texts.__getitem__), dtype=np.int64)


def _cells(
    rows: NDArray[np.integer[Any]],
    columns: NDArray[np.integer[Any]],
    weight: Floats | None,
    n_rows: int,
    n_columns: int,
) -> Counts:
    if n_columns > _MAX_DENSE_TARGETS:
        data = np.ones(len(rows)) if weight is None else weight
        return sparse.coo_array((data, (rows, columns)), shape=(n_rows, n_columns)).tocsr()
    flat = rows.astype(np.int64) * n_columns + columns
    return np.bincount(flat, weight, minlength=n_rows * n_columns).reshape(n_rows, n_columns).astype(np.float64)


def _regrouped(
    counts: Counts, rows: NDArray[np.int64], columns: NDArray[np.integer[Any]], n_rows: int, n_columns: int
) -> Counts:
    """The counts with new row and column numbers, those with one number added."""
    if sparse.issparse(counts) or n_columns > _MAX_DENSE_TARGETS:
        cells = sparse.coo_array(counts)
        return sparse.coo_array((cells.data, (rows[cells.row], columns[cells.col])), shape=(n_rows, n_columns)).tocsr()
    out = np.zeros((n_rows, n_columns))
    for j, column in enumerate(columns):
        out[:, column] += np.bincount(rows, counts[:, j], minlength=n_rows)
    return out
