"""Alphabets: the symbols of a column and their codes.

Codes count up in order of first appearance (for categories: in category
order), so an alphabet can grow without renumbering. Missing, where it
occurred, is a symbol of its own, held as None. Symbols are matched by value:
a column may be category at fit and text at transform.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.codes.few import FEW
from tabsym.codes.raw import RawCodes
from tabsym.table.dtypes import read_symbols, written_symbols

UNSEEN = -1
"""The code of a symbol that is not in the alphabet."""

_FAMILIES = {  # a bool is an int and a datetime a date: the first that fits
    "booleans": (bool, np.bool_),
    "text": (str,),
    "bytes": (bytes,),
    "durations": (datetime.timedelta, np.timedelta64),
    "numbers": (int, float, np.integer, np.floating),
    "moments": (datetime.datetime, np.datetime64),
}


@dataclass(frozen=True)
class Alphabet:
    """The symbols of one column, in code order; None stands for missing."""

    name: str
    symbols: NDArray[Any]

    @classmethod
    def fit(cls, name: str, raw: RawCodes) -> tuple[Alphabet, NDArray[np.int32]]:
        """The alphabet of a column, and the column's codes."""
        alphabet, codes = cls(name, np.empty(0, dtype=object)).grow(raw)
        return alphabet, codes

    def __len__(self) -> int:
        return len(self.symbols)

    @property
    def has_missing(self) -> bool:
        return self.missing_code != UNSEEN

    @cached_property
    def missing_code(self) -> int:
        """The code of missing, or UNSEEN where none occurred."""
        return next((code for code, symbol in enumerate(self.symbols) if symbol is None), UNSEEN)

    # Caches, made when they are first needed and never pickled. Two threads may both make one: they make the same.

    @cached_property
    def _index(self) -> pd.Index:
        return pd.Index(self.symbols, dtype=object)

    @cached_property
    def _code_of(self) -> dict[Any, int]:
        """What the index says, for a few symbols: it answers in nanoseconds."""
        return {symbol: code for code, symbol in enumerate(self.symbols.tolist())}

    @cached_property
    def _family(self) -> str | None:
        return _family(self.symbols)

    def transform(self, raw: RawCodes) -> NDArray[np.int32]:
        """Codes (n,) of a coded column; UNSEEN for symbols that are not in the alphabet."""
        if len(raw.codes) == 1:
            return np.array([self._code_of_row(raw)], dtype=np.int32)
        return self._apply(self._positions(raw.symbols), self.missing_code, raw.codes)

    def _code_of_row(self, raw: RawCodes) -> int:
        """The code of a single row: for one answer, arrays take longer to make than to use."""
        if raw.codes[0] < 0:
            return self.missing_code
        code = self._code_of.get(raw.symbols[raw.codes[0]], UNSEEN)
        if code == UNSEEN:
            self._refuse_other_family(raw.symbols)
        return code

    def grow(self, raw: RawCodes) -> tuple[Alphabet, NDArray[np.int32]]:
        """This alphabet with the new symbols of a column appended, and the column's codes."""
        position = self._positions(raw.symbols)
        new = np.flatnonzero(position == UNSEEN)
        has_missing = (raw.codes < 0).any()
        if not len(new) and (self.has_missing or not has_missing):
            return self, self._apply(position, self.missing_code, raw.codes)  # nothing new: keep the index
        position[new] = len(self) + np.arange(len(new), dtype=np.int32)
        symbols = np.concatenate([self.symbols, raw.symbols[new]])
        missing = self.missing_code
        if not len(self) and not has_missing:
            return Alphabet(self.name, symbols), raw.codes  # the first table's codes are the alphabet's
        if missing == UNSEEN and has_missing:
            missing = len(symbols)
            symbols = _with_missing(symbols)
        return Alphabet(self.name, symbols), self._apply(position, missing, raw.codes)

    def inverse(self, codes: NDArray[np.integer]) -> NDArray[Any]:
        """The symbols (n,) of codes; None for missing and for UNSEEN."""
        return np.asarray(_with_missing(self.symbols)[codes])

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "symbols": written_symbols(self.symbols)}  # caches are made again

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, symbols=read_symbols(state["symbols"]))

    def _positions(self, symbols: NDArray[Any]) -> NDArray[np.int32]:
        self._refuse_other_family(symbols)
        if not len(self) or not len(symbols):
            return np.full(len(symbols), UNSEEN, dtype=np.int32)
        if len(symbols) <= FEW:
            code_of = self._code_of
            return np.array([code_of.get(symbol, UNSEEN) for symbol in symbols.tolist()], dtype=np.int32)
        return self._index.get_indexer(pd.Index(symbols, dtype=object)).astype(np.int32)

    @staticmethod
    def _apply(position: NDArray[np.int32], missing: int, codes: NDArray[Any]) -> NDArray[np.int32]:
        table = np.empty(len(position) + 1, dtype=np.int32)
        table[:-1] = position
        table[-1] = missing  # a code of -1 reads the last place
        return table[codes]

    def _refuse_other_family(self, symbols: NDArray[Any]) -> None:
        """Text where fit saw numbers would be silently unseen, all of it: refuse."""
        here, there = _family(symbols), self._family
        if here and there and here != there:
            raise TypeError(
                f"Column {self.name!r} held {there} in fit and holds {here} now (such as {symbols[0]!r}); "
                "convert it to the type it had."
            )


def _with_missing(symbols: NDArray[Any]) -> NDArray[Any]:
    out = np.empty(len(symbols) + 1, dtype=object)
    out[:-1] = symbols
    out[-1] = None
    return out


def _family(symbols: NDArray[Any]) -> str | None:
    first = next((symbol for symbol in symbols if symbol is not None), None)
    return None if first is None else _family_of(first.__class__)


@lru_cache(maxsize=256)
def _family_of(kind: type) -> str:
    return next((name for name, kinds in _FAMILIES.items() if issubclass(kind, kinds)), kind.__name__)
