"""From an encoding back to the table: which output column is the one, found without making zeros."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from tabsym.encoders.onehot.column import NANS, ZEROS, OneHotColumn
from tabsym.table import (
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

Places = NDArray[np.int64]
_TILE = 1 << 18


class DenseEncoding:
    """The columns of a frame or an array, read from left to right."""

    def __init__(self, table: Table) -> None:
        self.n_rows, self.n_columns = len(table), len(table.names)
        self.native = table.native if table.named else None
        self._columns: Iterator[Column] = iter(table.columns)

    def untouched(self, kind: StoredType, library: str) -> Any:
        """The next column, which was not encoded."""
        return restored_column(next(self._columns), kind, library, named=self.native is not None)

    def places(self, width: int) -> Places:
        """The greatest of the next columns in each row (n,), the first of equal ones; ZEROS or NANS where none is."""
        places, best = np.full(self.n_rows, ZEROS), np.zeros(self.n_rows)
        for place in range(width):
            values = next(self._columns).values
            places[np.isnan(values) & (best == 0)] = NANS
            better = values > best
            places[better], best[better] = place, values[better]
        return places


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

    def places(self, width: int) -> Places:
        places = np.full(self.n_rows, ZEROS)
        first, self._next = self._next, self._next + width
        for rows in self._tiles():
            _find_places(sparse.coo_array(self._matrix[rows, first : self._next]), places[rows])
        return places

    def _tiles(self) -> Iterator[slice]:
        """Rows of so few entries together that copies of them do not matter, as rows of NaN are long."""
        pointer, start = self._matrix.indptr, 0
        while start < self.n_rows:
            stop = int(np.searchsorted(pointer, pointer[start] + _TILE))
            stop = min(max(stop, start + 1), self.n_rows)
            yield slice(start, stop)
            start = stop


def _find_places(block: sparse.coo_array, places: Places) -> None:
    places[block.row[np.isnan(block.data)]] = NANS
    found = np.flatnonzero(block.data > 0)
    order = found[np.lexsort((-block.col[found], block.data[found], block.row[found]))]
    places[block.row[order]] = block.col[order]  # of a row's entries the last is kept: the greatest


def encoding_of(X: Any, who: str) -> DenseEncoding | SparseEncoding:
    """What a user gives to be decoded."""
    return SparseEncoding(X) if sparse.issparse(X) else DenseEncoding(read_table(X, who=who, allow_empty=True))


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
            places = encoding.places(len(states[name].names))
            if states[name].missing_place == states[name].unknown_place == NANS and (places == NANS).any():
                doubtful.append(name)
            columns[name] = restored(states[name].symbols_at(places), kind, library)
        else:
            columns[name] = encoding.untouched(kind, library)
    if doubtful:
        warn_user(
            f"Rows of NaN in the encoding of column {', '.join(map(repr, doubtful))} were missing or unknown, which it "
            "does not distinguish; they come back as missing.",
        )
    return frame_of(columns, library, native.index if isinstance(native, pd.DataFrame) else None)
