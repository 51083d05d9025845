"""From output columns of ones to a matrix, dense or CSR, and back to the table without making zeros.

A CSR matrix is written row by row into arrays of the right length, as stacking
blocks holds every entry three times. A row of NaN has an entry in every
output column of its category: what such rows take is known, and refused where
it would be beyond all proportion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from tabsym.categories import csr
from tabsym.encoders.onehot.column import NANS, ZEROS, OneHotColumn
from tabsym.frame import (
    Column,
    StoredType,
    Table,
    frame_of,
    library_of_frame,
    read_table,
    restored,
    restored_column,
)
from tabsym.warn import warn_user

Indices = NDArray[np.int64]

MAX_NANS = 1 << 22
"""NaN entries that a sparse matrix may hold in any case: 50 MB."""
NANS_PER_ONE = 16
"""NaN entries for each entry that the matrix has without them, above which it is refused."""
_TILE = 1 << 18  # entries that are written at once


@dataclass(frozen=True)
class Ones:
    """The columns of one category: the index of each row's one (n,) among `width`, ZEROS or NANS."""

    name: str
    indices: NDArray[np.int32]
    width: int

    def keep(self, kept: list[int]) -> Ones:
        """With these output columns only."""
        if len(kept) == self.width:
            return self
        renumber = np.full(self.width + 2, ZEROS, dtype=np.int32)
        renumber[kept] = np.arange(len(kept))
        renumber[NANS] = NANS
        return Ones(self.name, renumber[self.indices], len(kept))

    def sizes(self) -> NDArray[np.int64]:
        """Entries in each row (n,)."""
        return np.where(self.indices == NANS, self.width, self.indices >= 0)


def dense_columns(ones: Ones, dtype: DTypeLike) -> list[NDArray[np.generic]]:
    """The output columns (n,), one by one."""
    block = np.zeros((ones.width, len(ones.indices)), dtype=dtype)
    rows = np.flatnonzero(ones.indices >= 0)
    block[ones.indices[rows], rows] = 1
    empty = np.flatnonzero(ones.indices == NANS)
    if len(empty):
        block[:, empty] = np.nan
    return list(block)


def sparse_matrix(blocks: list[Ones | sparse.csr_array], n_rows: int, dtype: DTypeLike) -> sparse.csr_array:
    """All columns side by side; blocks that are matrices have one column, of numbers.

    Raises
    ------
    ValueError
        Where rows of NaN have more entries than `MAX_NANS`, and than `NANS_PER_ONE` times all others.
    """
    _refuse_nans([block for block in blocks if isinstance(block, Ones)], n_rows)
    sizes = [block.sizes() if isinstance(block, Ones) else np.diff(block.indptr) for block in blocks]
    pointer = np.zeros(n_rows + 1, dtype=np.int64)
    for size in sizes:
        pointer[1:] += size
    np.cumsum(pointer, out=pointer)
    indices, data = np.empty(pointer[-1], dtype=np.int32), np.ones(pointer[-1], dtype=dtype)
    at, first = pointer[:-1].copy(), 0
    for block, size in zip(blocks, sizes, strict=True):
        if isinstance(block, Ones):
            _write(block, at, first, indices, data)
        else:
            rows = np.flatnonzero(size)
            indices[at[rows]], data[at[rows]] = first, block.data
        at += size
        first += block.width if isinstance(block, Ones) else 1
    return csr(data, indices, pointer, (n_rows, first))


def _write(
    ones: Ones, at: NDArray[np.int64], first: int, indices: NDArray[np.int32], data: NDArray[np.generic]
) -> None:
    rows = np.flatnonzero(ones.indices >= 0)
    indices[at[rows]] = first + ones.indices[rows]
    across = np.arange(ones.width)
    empty, step = np.flatnonzero(ones.indices == NANS), max(_TILE // max(ones.width, 1), 1)
    for start in range(0, len(empty), step):
        entries = at[empty[start : start + step], None] + across
        indices[entries], data[entries] = first + across, np.nan


def _refuse_nans(blocks: list[Ones], n_rows: int) -> None:
    numbers = [int((block.indices == NANS).sum()) * block.width for block in blocks]
    if sum(numbers) <= max(MAX_NANS, NANS_PER_ONE * n_rows * len(blocks)):
        return
    worst = int(np.argmax(numbers))
    block = blocks[worst]
    raise ValueError(
        f"Rows of NaN would take {sum(numbers):,} entries of the sparse matrix, {numbers[worst]:,} of them in column "
        f"{block.name!r} ({numbers[worst] // block.width:,} rows, {block.width:,} output columns); set handle_unknown "
        "and handle_missing to 'value' or 'indicator', which take one entry a row at most."
    )


# -- back to the table ------------------------------------------------------------------------------


class DenseEncoding:
    """The columns of a frame or an array, read from left to right."""

    def __init__(self, table: Table) -> None:
        self.n_rows, self.n_columns = len(table), len(table.names)
        self.native = table.native if table.named else None
        self._columns: Iterator[Column] = iter(table.columns)

    def untouched(self, kind: StoredType, library: str) -> Any:
        """The next column, which was not encoded."""
        return restored_column(next(self._columns), kind, library, named=self.native is not None)

    def indices(self, width: int) -> Indices:
        """The greatest of the next columns in each row (n,), the first of equal ones; ZEROS or NANS where none is."""
        indices, best = np.full(self.n_rows, ZEROS), np.zeros(self.n_rows)
        for place in range(width):
            values = next(self._columns).values
            indices[np.isnan(values) & (best == 0)] = NANS
            better = values > best
            indices[better], best[better] = place, values[better]
        return indices


class SparseEncoding:
    """The same of a sparse matrix."""

    native = None

    def __init__(self, matrix: Any) -> None:
        self._matrix = sparse.csr_array(matrix)
        self.n_rows, self.n_columns = self._matrix.shape
        self._next = 0

    def untouched(self, kind: StoredType, library: str) -> Any:
        self._next += 1
        values = self._matrix[:, [self._next - 1]].toarray().ravel()
        return restored(np.asarray(values, dtype=np.float64), kind, library)

    def indices(self, width: int) -> Indices:
        indices = np.full(self.n_rows, ZEROS)
        first, self._next = self._next, self._next + width
        for rows in self._tiles():
            _find_places(sparse.coo_array(self._matrix[rows, first : self._next]), indices[rows])
        return indices

    def _tiles(self) -> Iterator[slice]:
        """Rows of so few entries together that copies of them do not matter, as rows of NaN are long."""
        pointer, start = self._matrix.indptr, 0
        while start < self.n_rows:
            stop = int(np.searchsorted(pointer, pointer[start] + _TILE))
            stop = min(max(stop, start + 1), self.n_rows)
            yield slice(start, stop)
            start = stop


def _find_places(block: sparse.coo_array, indices: Indices) -> None:
    indices[block.row[np.isnan(block.data)]] = NANS
    found = np.flatnonzero(block.data > 0)
    order = found[np.lexsort((-block.col[found], block.data[found], block.row[found]))]
    indices[block.row[order]] = block.col[order]  # of a row's entries the last is kept: the greatest


def encoding_of(X: Any, caller: str) -> DenseEncoding | SparseEncoding:
    """What a user gives to be decoded."""
    return SparseEncoding(X) if sparse.issparse(X) else DenseEncoding(read_table(X, caller=caller, allow_empty=True))


def restored_frame(
    encoding: DenseEncoding | SparseEncoding, types: dict[str, StoredType], states: dict[str, OneHotColumn]
) -> Any:
    """The table: of the encoding's kind, or, where that is no frame, of the kind of fit.

    Parameters
    ----------
    encoding : DenseEncoding or SparseEncoding
    types : dict of str -> StoredType
        Of all columns, in order.
    states : dict of str -> OneHotColumn
        Of the encoded ones.
    """
    native = encoding.native
    library = next(iter(types.values())).library if native is None else library_of_frame(native)
    columns, doubtful = {}, []
    for name, kind in types.items():
        if name in states:
            indices = encoding.indices(len(states[name].names))
            if states[name].missing_index == states[name].unknown_index == NANS and (indices == NANS).any():
                doubtful.append(name)
            columns[name] = restored(states[name].categories_at(indices), kind, library)
        else:
            columns[name] = encoding.untouched(kind, library)
    if doubtful:
        warn_user(
            f"Rows of NaN in the encoding of column {', '.join(map(repr, doubtful))} were missing or unknown, which it "
            "does not distinguish; they come back as missing.",
        )
    return frame_of(columns, library, native.index if isinstance(native, pd.DataFrame) else None)
