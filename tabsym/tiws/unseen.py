"""Unknown categories of a table, with what their rows say of them: a call's rows, each alone, or earlier ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tabsym.codes import UNSEEN, RawCodes
from tabsym.table.dtypes import read_list, written_list
from tabsym.tiws.column import Unseen
from tabsym.tiws.counts import documents_of_rows

Floats = NDArray[np.float64]

CONTEXTS = ("batch", "row", "observed")


@dataclass(frozen=True)
class Observed:
    """Documents (m, words) of unknown categories of one column from rows without targets, and how many rows (m,)."""

    documents: sparse.csr_array
    symbols: list[Any] = field(default_factory=list)
    rows: Floats = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def none(cls, n_words: int) -> Observed:
        return cls(sparse.csr_array((0, n_words)))

    def __add__(self, other: Unseen) -> Observed:
        """With the rows of further documents."""
        place = {symbol: i for i, symbol in enumerate(self.symbols)}
        for symbol in other.symbols:
            place.setdefault(symbol, len(place))
        at = np.array([place[symbol] for symbol in other.symbols], dtype=np.int64)
        size = len(place), self.documents.shape[1]
        old = sparse.csr_array((self.documents.data, self.documents.indices, self._pointer(size[0])), shape=size)
        new = sparse.csr_array((np.ones(len(at)), (at, np.arange(len(at)))), shape=(size[0], len(at))) @ other.documents
        rows = np.bincount(at, other.rows, minlength=size[0]).astype(np.float64)
        rows[: len(self.rows)] += self.rows
        return Observed(sparse.csr_array(old + new), list(place), rows)

    def places(self, symbols: list[Any]) -> NDArray[np.int64]:
        """Where categories are among these; -1: nowhere."""
        place = {symbol: i for i, symbol in enumerate(self.symbols)}
        return np.array([place.get(symbol, -1) for symbol in symbols], dtype=np.int64)

    def placed(self, places: NDArray[np.int64], n_words: int, keep: NDArray[np.bool_]) -> Observed:
        """By new numbers of the words (words,), of the categories to `keep`."""
        cells = self.documents[np.flatnonzero(keep)].tocoo()
        shape = int(keep.sum()), n_words
        documents = sparse.coo_array((cells.data, (cells.row, places[cells.col])), shape=shape).tocsr()
        symbols = [symbol for symbol, kept in zip(self.symbols, keep, strict=True) if kept]
        return Observed(documents, symbols, self.rows[keep])

    def all(self) -> Unseen:
        return Unseen(self.documents, self.symbols, self.rows)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"symbols": written_list(self.symbols)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, symbols=read_list(state["symbols"]))

    def _pointer(self, n: int) -> NDArray[Any]:
        pointer = self.documents.indptr
        return np.append(pointer, np.full(n + 1 - len(pointer), pointer[-1], dtype=pointer.dtype))


@dataclass(frozen=True)
class UnseenRows:
    """Rows of a table with an unknown category in one column, and the document `which` (rows,) that each goes by."""

    rows: NDArray[np.int64]
    which: NDArray[np.int64]
    unseen: Unseen


def no_rows(n_words: int) -> UnseenRows:
    """Where every category was seen."""
    none = np.empty(0, dtype=np.int64)
    return UnseenRows(none, none, Observed.none(n_words).all())


def unseen_rows(
    codes: NDArray[np.integer], raw: RawCodes, words: list[NDArray[np.int32]], offsets: NDArray[np.int64],
    context: str, observed: Observed,
) -> UnseenRows:  # fmt: skip
    """The rows whose code is UNSEEN, with documents by `context`.

    Parameters
    ----------
    codes : (n,)
        In the column's alphabet.
    raw : RawCodes
        Of the column.
    words : list of (n,)
        Words of all columns.
    offsets : (p + 1,)
        Where each column's words begin.
    context : {"batch", "row", "observed"}
    observed : Observed
    """
    rows = np.flatnonzero(codes == UNSEEN)
    found, which = np.unique(raw.codes[rows], return_inverse=True)  # -1, missing, is a category like another
    symbols = [None if code < 0 else raw.symbols[code] for code in found.tolist()]
    which = which.ravel()
    if context == "row":
        symbols, which = [symbols[place] for place in which.tolist()], np.arange(len(rows))
    seen_before = observed.places(symbols)
    before = sparse.vstack([observed.documents, sparse.csr_array((1, int(offsets[-1])))], format="csr")[seen_before]
    counts = np.append(observed.rows, 0.0)[seen_before]
    if context == "observed":
        return UnseenRows(rows, which, Unseen(before, symbols, counts))
    now = documents_of_rows([column[rows] for column in words], offsets, which, len(symbols))
    counts = counts + np.bincount(which, minlength=len(symbols))
    return UnseenRows(rows, which, Unseen(sparse.csr_array(before + now), symbols, counts))
