"""Counts that add up over pieces of a table: a column's values by the target's, and pairs of categories.

For p columns and n rows there are at most n p (p - 1) / 2 distinct pairs, and each is kept once: the symmetric matrix
Z'Z of one-hot columns without its diagonal blocks, as one sparse block for each two columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tabsym.categories.kernels import count_row_pairs, order_by_code
from tabsym.frame import NUMBERS, Measure, Numbers
from tabsym.jit import in_threads

Floats = NDArray[np.float64]
Counts: TypeAlias = Any  # ndarray of float64, or csr_array

SKETCH_ABOVE = 1_048_576
"""Numeric tables with more distinct values are kept as this number of bins of neighbouring values."""
ROUNDING_OF_SHARES = 1e-10
"""A sum of weights that falls short of a share of all by less, relatively, reaches it: sums of the same weights in
another unit or order, or of equal rows taken together, differ by less."""
_MAX_DENSE_TARGETS = 64


@dataclass(frozen=True)
class Contingency:
    """Rows, or sums of their weights, by a column's value and by the target's.

    Attributes
    ----------
    values : (B,)
        Numeric columns: float64, ascending, missing as -inf (infinite values are errors elsewhere); complex where
        float64 rounds (`tabsym.frame.columns`).
        Categorical columns: objects, missing as None; in the order of their text, whatever that of the rows is.
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

    def sketched(self) -> Contingency:
        """About `SKETCH_ABOVE` cells of neighbouring values at most, of nearly equal size; missing keeps its own."""
        if self.lows is None or len(self.values) <= SKETCH_ABOVE:
            return self
        sizes = self.sizes
        cell = np.floor((np.cumsum(sizes) - sizes) * SKETCH_ABOVE / sizes.sum()).astype(np.int64)
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
        values, counts = self.values, _cells(codes, target, exact_weights(weight), len(self.values), len(targets))
        is_present = np.bincount(codes, minlength=len(values)) > 0
        if not is_present.all():
            values, counts = values[is_present], counts[is_present]
        return Contingency(
            values, values if self.is_numeric else None, targets, counts, measure=self.measure
        ).sketched()


def exact_weights(weight: Floats | None) -> Floats | None:
    """Weights (n,) in units of a power of two, of which sums are exact: else the order of rows would decide ties.

    The unit is 1e-15 of the sum of all.
    """
    if weight is None or (weight == np.floor(weight)).all():
        return weight
    unit = 2.0 ** max(np.floor(np.log2(weight.sum())) - 50, -1074.0)
    return np.asarray(np.maximum(np.rint(weight / unit), 1.0) * unit)


def code_numbers(values: Numbers, measure: Measure = NUMBERS) -> CodedValues:
    """A numeric column: values (n,), NaN for missing."""
    if np.isnan(values).any():
        values = np.where(np.isnan(values), -np.inf, values)
    order = np.argsort(values, kind="stable")  # several times as fast where a value is frequent
    ascending = values[order]
    first = np.empty(len(values), dtype=bool)
    first[0] = True
    np.not_equal(ascending[1:], ascending[:-1], out=first[1:])
    codes = np.empty(len(values), dtype=np.int64)
    codes[order] = np.cumsum(first) - 1
    return CodedValues(codes, ascending[first], True, measure)


def code_categories(codes: NDArray[np.integer[Any]], categories: NDArray[Any]) -> CodedValues:
    """A categorical column: codes (n,) into categories, -1 for missing."""
    named = np.empty(len(categories) + 1, dtype=object)
    named[:-1], named[-1] = categories, None
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
        rows = [np.array([index[v] for v in table.values.tolist()], dtype=np.int64) for table in (a, b)]
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
        _regrouped(table.counts, row, np.searchsorted(targets, table.targets), len(values), len(targets))
        for table, row in zip((a, b), rows, strict=True)
    )
    measure = b.measure if a.is_missing_only else a.measure
    return Contingency(values, lows, targets, counts, a.error + b.error, measure).sketched()


def _by_text(categories: NDArray[Any]) -> NDArray[np.int64]:
    """Where the categories lie in the order of their text, missing last."""
    texts = [(category is None, str(category)) for category in categories.tolist()]
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


Codes = NDArray[np.signedinteger[Any]]

_FEW_ROWS = 20_000  # below, threads cost more than they save


@dataclass(frozen=True)
class PairCounts:
    """Rows, or sums of their weights, by the categories of two columns.

    Attributes
    ----------
    sizes : tuple of int
        Categories of each column.
    blocks : dict of (int, int) -> csr_array
        By the numbers of two columns, the lower first: (categories of the first, categories of the second).
    """

    sizes: tuple[int, ...]
    blocks: dict[tuple[int, int], sparse.csr_array]

    def __getstate__(self) -> dict[str, Any]:
        """Blocks as a list, since files of JSON know no keys of two numbers."""
        return {
            "sizes": self.sizes,
            "blocks": [(first, second, block) for (first, second), block in self.blocks.items()],
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        blocks = state["blocks"]
        if not isinstance(blocks, dict):  # as of pickles before they were a list
            blocks = {(first, second): block for first, second, block in blocks}
        self.__dict__.update(sizes=tuple(state["sizes"]), blocks=blocks)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each column's words begin among the words of all columns, and where they end (p + 1,)."""
        return np.concatenate([[0], np.cumsum(self.sizes, dtype=np.int64)]).astype(np.int64)

    @property
    def n_pairs(self) -> int:
        """Distinct pairs that occur."""
        return sum(block.nnz for block in self.blocks.values())

    def documents(self, column: int, categories: NDArray[Any] | None = None) -> sparse.csr_array:
        """Counts (categories, words of all columns) of the rows of each category of a column, of all if None.

        The column's own words stay empty.
        """
        parts = []
        n = self.sizes[column] if categories is None else len(categories)
        for word_column, size in enumerate(self.sizes):
            if (column, word_column) in self.blocks:
                block = self.blocks[column, word_column]
                parts.append(block if categories is None else block[categories])
            elif (word_column, column) in self.blocks:
                block = self.blocks[word_column, column]
                parts.append((block if categories is None else block[:, categories]).T.tocsr())
            else:
                parts.append(sparse.csr_array((n, size)))
        return sparse.hstack(parts, format="csr")

    def totals(self, column: int) -> Floats:
        """Counts (words of all columns,) in the rows that have a category of this column; its own words' are 0."""
        parts = []
        for word_column, size in enumerate(self.sizes):
            if (column, word_column) in self.blocks:
                parts.append(np.asarray(self.blocks[column, word_column].sum(axis=0)).ravel())
            elif (word_column, column) in self.blocks:
                parts.append(np.asarray(self.blocks[word_column, column].sum(axis=1)).ravel())
            else:
                parts.append(np.zeros(size))
        return np.concatenate(parts).astype(np.float64)

    def grown(self, sizes: Sequence[int], renumber: Sequence[NDArray[np.int64]]) -> PairCounts:
        """The same counts under other codes: `renumber[j]` (categories,) of column j, which then has `sizes[j]`."""
        blocks = {}
        for (left, right), block in self.blocks.items():
            cells = block.tocoo()
            where = renumber[left][cells.row], renumber[right][cells.col]
            blocks[left, right] = sparse.coo_array((cells.data, where), shape=(sizes[left], sizes[right])).tocsr()
        return PairCounts(tuple(sizes), blocks)

    def __add__(self, other: PairCounts) -> PairCounts:
        """The counts of both, under the same codes."""
        return PairCounts(self.sizes, {which: block + other.blocks[which] for which, block in self.blocks.items()})


def count_pairs(
    columns: Sequence[Codes],
    sizes: Sequence[int],
    weight: Floats | None = None,
    wanted: Sequence[int] | None = None,
    n_jobs: int | None = None,
) -> PairCounts:
    """Count the pairs of every two columns.

    Parameters
    ----------
    columns : sequence of (n,)
        Codes; a row whose code is below 0 is in no pair of that column.
    sizes : sequence of int
        Categories of each column.
    weight : (n,), optional
        Of the rows, above 0.
    wanted : sequence of int, optional
        Columns whose documents are wanted; pairs of two others are not counted. None: all.
    n_jobs : int, optional
        Threads.
    """
    chosen = set(range(len(columns))) if wanted is None else set(wanted)
    each = np.ones(1, dtype=np.int32) if weight is None else weight

    def count_with(right: int) -> dict[tuple[int, int], sparse.csr_array]:
        lefts = [j for j in range(right) if right in chosen or j in chosen]
        if not lefts:
            return {}
        ends, cursors = _ends(columns[right], sizes[right])
        order = np.empty(int(ends[-1]) if sizes[right] else 0, dtype=np.int32)  # rows by code
        order_by_code(columns[right], cursors, order)
        return {(left, right): _block(columns[left], sizes[left], order, ends, sizes[right], each) for left in lefts}

    n_rows = len(columns[0]) if columns else 0
    counted = in_threads(count_with, range(len(columns)), n_jobs if n_rows >= _FEW_ROWS else 1)
    blocks = {which: block for blocks_of_column in counted for which, block in blocks_of_column.items()}
    return PairCounts(tuple(int(size) for size in sizes), blocks)


def _ends(codes: Codes, n_codes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the rows of each code end and begin, of all rows by code."""
    sizes = np.bincount(codes[codes >= 0] if (codes < 0).any() else codes, minlength=n_codes)
    ends = np.cumsum(sizes)
    return ends, ends - sizes


def _block(
    left: Codes, n_left: int, order: NDArray[np.int32], ends: NDArray[np.int64], n_right: int, weight: NDArray[Any]
) -> sparse.csr_array:
    """Counts by the codes of two columns: `order` are the rows by code of the right one, which end at `ends`."""
    n = len(left)
    rights = np.empty(n, dtype=np.int32)
    weights = np.empty(n, dtype=np.int32 if weight.dtype == np.int32 else np.float64)
    pointer = np.empty(n_left + 1, dtype=np.int32)
    starts = _ends(left, n_left)[1]
    each = weight.astype(weights.dtype)
    count_row_pairs(order, ends, left, each, starts, starts.copy(), rights, weights, pointer)
    n_cells = int(pointer[-1])
    return sparse.csr_array((weights[:n_cells].copy(), rights[:n_cells].copy(), pointer), shape=(n_left, n_right))
