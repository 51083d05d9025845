"""Columns as words: a word is a column and one of its categories, or one of its intervals of numbers.

What was missing in fit is a word of its own; a category that is not in the training data is none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import UNSEEN, Categories, RawCodes, encode_column
from tabsym.table import NUMBERS, Column, Kind, Measure

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]


@dataclass(frozen=True)
class Symbols:
    """The words of a column of categories, in the order of their text, missing last."""

    alphabet: Categories

    @property
    def name(self) -> str:
        return self.alphabet.name

    @classmethod
    def of(cls, name: str, raw: RawCodes, rows: NDArray[np.int64] | None = None) -> Symbols:
        """Those that occur in some rows, all if None, of a coded column."""
        codes = raw.codes if rows is None else raw.codes[rows]
        symbols = raw.symbols if rows is None else raw.symbols[np.unique(codes[codes >= 0])]
        return cls(_by_text(name, [*symbols.tolist(), *([None] if (codes < 0).any() else [])]))

    def __len__(self) -> int:
        return len(self.alphabet)

    def codes(self, column: Column) -> Codes:
        """The word of each row (n,), UNSEEN where it is none."""
        return self.alphabet.transform(encode_column(column))

    def joined(self, other: Symbols) -> Symbols:
        """The words of both."""
        return Symbols(
            _by_text(self.alphabet.name, [*self.alphabet.symbols.tolist(), *other.alphabet.symbols.tolist()])
        )

    def places_in(self, other: Symbols) -> NDArray[np.int64]:
        """Where the words are among those of the other, which has them all."""
        place = {symbol: code for code, symbol in enumerate(other.alphabet.symbols.tolist())}
        return np.array([place[symbol] for symbol in self.alphabet.symbols.tolist()], dtype=np.int64)


@dataclass(frozen=True)
class Bins:
    """The words of a column of numbers: the number of edges below the value; missing is the last of them.

    `missing`: whether fit saw missing values; if not, they are no word. `uncut`: numbers were not asked for, and are
    not looked at but for missing ones.
    """

    name: str
    edges: Floats
    missing: bool
    measure: Measure = NUMBERS
    uncut: bool = False

    def __len__(self) -> int:
        return len(self.edges) + 1 + self.missing

    def codes(self, column: Column) -> Codes:
        """The word of each row (n,), UNSEEN where it is none."""
        column.check_measure(self.measure)
        values = self.numbers(column)
        found = np.searchsorted(self.edges, values, side="left")  # NaN: beyond all edges
        return np.where(np.isnan(values), len(self.edges) + 1 if self.missing else UNSEEN, found).astype(np.int32)

    def numbers(self, column: Column) -> Floats:
        """What is cut (n,), missing as NaN; of a column that is not, infinite values do no harm."""
        return np.where(column.missing, np.nan, 0.0) if self.uncut else column.values

    def joined(self, other: Bins) -> Bins:
        """The words of both, which have the same edges."""
        return self if self.missing else replace(self, missing=other.missing)

    def seen_in(self, column: Column, rows: NDArray[np.int64] | None) -> Bins:
        """Whether some rows, all if None, have missing values too."""
        values = self.numbers(column)
        return replace(self, missing=self.missing or bool(np.isnan(values if rows is None else values[rows]).any()))

    def places_in(self, other: Bins) -> NDArray[np.int64]:
        """Where the words are among those of the other: missing is last in both."""
        return np.arange(len(self), dtype=np.int64)


Words = Symbols | Bins


def deciles(values: Floats) -> Floats:
    """The distinct inner deciles of numbers (n,): nine edges at most."""
    values = values[~np.isnan(values)]
    if not len(values):
        return np.empty(0)
    return np.unique(np.quantile(values, np.arange(1, 10) / 10))


def as_numbers(column: Column) -> Column:
    """A column that held numbers in fit: where all its values are missing now, its type may not say so."""
    if column.kind is Kind.SYMBOLIC and column.series.is_null().all():
        return Column(column.name, Kind.NUMERIC, column.series)
    return column


def _by_text(name: str, symbols: list[Any]) -> Categories:
    distinct = list(dict.fromkeys(symbols))
    distinct.sort(key=lambda symbol: (symbol is None, str(symbol)))
    ordered = np.empty(len(distinct), dtype=object)
    ordered[:] = distinct
    return Categories(name, ordered)
