"""Counts of pairs of symbols: in how many rows the symbols of two columns meet. They add up over pieces of a table.

For p columns and n rows there are at most n p (p - 1) / 2 distinct pairs, and each is kept once: the symmetric matrix
Z'Z of one-hot columns without its diagonal blocks, as one sparse block for each two columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tabsym.categories.kernels import count_row_pairs, order_by_code
from tabsym.categories.threads import in_threads

Floats = NDArray[np.float64]
Codes = NDArray[np.signedinteger[Any]]

_FEW_ROWS = 20_000  # below, threads cost more than they save


@dataclass(frozen=True)
class PairCounts:
    """Rows, or sums of their weights, by the symbols of two columns.

    Attributes
    ----------
    sizes : tuple of int
        Symbols of each column.
    blocks : dict of (int, int) -> csr_array
        By the numbers of two columns, the lower first: (symbols of the first, symbols of the second).
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

    def documents(self, column: int, symbols: NDArray[Any] | None = None) -> sparse.csr_array:
        """Counts (symbols, words of all columns) of the rows of each symbol of a column, of all symbols if None.

        The column's own words stay empty.
        """
        parts = []
        n = self.sizes[column] if symbols is None else len(symbols)
        for other, size in enumerate(self.sizes):
            if (column, other) in self.blocks:
                block = self.blocks[column, other]
                parts.append(block if symbols is None else block[symbols])
            elif (other, column) in self.blocks:
                block = self.blocks[other, column]
                parts.append((block if symbols is None else block[:, symbols]).T.tocsr())
            else:
                parts.append(sparse.csr_array((n, size)))
        return sparse.hstack(parts, format="csr")

    def totals(self, column: int) -> Floats:
        """Counts (words of all columns,) in the rows that have a symbol of this column; its own words' are 0."""
        parts = []
        for other, size in enumerate(self.sizes):
            if (column, other) in self.blocks:
                parts.append(np.asarray(self.blocks[column, other].sum(axis=0)).ravel())
            elif (other, column) in self.blocks:
                parts.append(np.asarray(self.blocks[other, column].sum(axis=1)).ravel())
            else:
                parts.append(np.zeros(size))
        return np.concatenate(parts).astype(np.float64)

    def grown(self, sizes: Sequence[int], renumber: Sequence[NDArray[np.int64]]) -> PairCounts:
        """The same counts under other codes: `renumber[j]` (symbols,) of column j, which then has `sizes[j]`."""
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
        Symbols of each column.
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
        rows = _by_code(columns[right], sizes[right]) if lefts else None
        return {(left, right): _block(columns[left], sizes[left], rows, sizes[right], each) for left in lefts}

    n_rows = len(columns[0]) if columns else 0
    counted = in_threads(count_with, range(len(columns)), n_jobs if n_rows >= _FEW_ROWS else 1)
    blocks = {which: block for blocks_of_column in counted for which, block in blocks_of_column.items()}
    return PairCounts(tuple(int(size) for size in sizes), blocks)


def _by_code(codes: Codes, n_codes: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Rows by code, and where those of each code end (n_codes,)."""
    ends, cursors = _ends(codes, n_codes)
    order = np.empty(int(ends[-1]) if n_codes else 0, dtype=np.int32)
    order_by_code(codes, cursors, order)
    return order, ends


def _ends(codes: Codes, n_codes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the rows of each code end and begin, of all rows by code."""
    sizes = np.bincount(codes[codes >= 0] if (codes < 0).any() else codes, minlength=n_codes)
    ends = np.cumsum(sizes)
    return ends, ends - sizes


def _block(left: Codes, n_left: int, rows: Any, n_right: int, weight: NDArray[Any]) -> sparse.csr_array:
    order, ends = rows
    n = len(left)
    rights, weights = (
        np.empty(n, dtype=np.int32),
        np.empty(n, dtype=np.int32 if weight.dtype == np.int32 else np.float64),
    )
    pointer = np.empty(n_left + 1, dtype=np.int32)
    starts = _ends(left, n_left)[1]
    each = weight.astype(weights.dtype)
    count_row_pairs(order, ends, left, each, starts, starts.copy(), rights, weights, pointer)
    held = int(pointer[-1])
    return sparse.csr_array((weights[:held].copy(), rights[:held].copy(), pointer), shape=(n_left, n_right))
