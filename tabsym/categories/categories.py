"""The categories of a column, or the combinations of several columns, and their codes.

Codes count up in order of first appearance (for columns of a category type: in
category order), so categories can be added without renumbering. Missing, where
it occurred, is a category of its own, held as None. Categories are matched by
value: a column may be of a category type at fit and text at transform.

A cross of two code columns numbers the observed pairs; a cross of higher order
is a cross of a cross, so any order is a chain of pairs and ``(a, b, c)`` reuses
the codes of ``(a, b)``. A pair that holds an unknown category, or that never
occurred, is unknown.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.categories.coding import FEW, RawCodes, keys_of
from tabsym.categories.kernels import find_pairs, hash_keys, number_pairs
from tabsym.frame.columns import Column, Kind
from tabsym.frame.dtypes import read_objects, written_objects
from tabsym.frame.storage import object_array

UNSEEN = -1
"""The code of a category that is not in the vocabulary."""

_FAMILIES = {  # a bool is an int and a datetime a date: the first that fits
    "booleans": (bool, np.bool_),
    "text": (str,),
    "bytes": (bytes,),
    "durations": (datetime.timedelta, np.timedelta64),
    "numbers": (int, float, np.integer, np.floating),
    "moments": (datetime.datetime, np.datetime64),
}


@dataclass(frozen=True)
class Categories:
    """The categories of one column, in code order; None stands for missing."""

    name: str
    categories: NDArray[Any]

    @classmethod
    def fit(cls, name: str, raw: RawCodes) -> tuple[Categories, NDArray[np.int32]]:
        """The vocabulary of a column, and the column's codes."""
        vocabulary, codes = cls(name, np.empty(0, dtype=object)).grow(raw)
        return vocabulary, codes

    def __len__(self) -> int:
        return len(self.categories)

    @property
    def has_missing(self) -> bool:
        return self.missing_code != UNSEEN

    @cached_property
    def missing_code(self) -> int:
        """The code of missing, or UNSEEN where none occurred."""
        return next((code for code, category in enumerate(self.categories) if category is None), UNSEEN)

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """A number for each category (q,) that its text determines."""
        return keys_of(self.categories.tolist())

    # Caches, made when they are first needed and never pickled. Two threads may both make one: they make the same.

    @cached_property
    def _index(self) -> pd.Index:
        return pd.Index(self.categories, dtype=object)

    @cached_property
    def _code_of(self) -> dict[Any, int]:
        """What the index says, for a few categories: it answers in nanoseconds."""
        return {category: code for code, category in enumerate(self.categories.tolist())}

    @cached_property
    def _family(self) -> str | None:
        return _family(self.categories)

    def transform(self, raw: RawCodes) -> NDArray[np.int32]:
        """Codes (n,) of a coded column; UNSEEN for categories that are not in the vocabulary."""
        if len(raw.codes) == 1:
            code = self.missing_code  # of a single row: for one answer, arrays take longer to make than to use
            if raw.codes[0] >= 0:
                code = self._code_of.get(raw.categories[raw.codes[0]], UNSEEN)
                if code == UNSEEN:
                    self._refuse_other_family(raw.categories)
            return np.array([code], dtype=np.int32)
        return self._apply(self._positions(raw.categories), self.missing_code, raw.codes)

    def grow(self, raw: RawCodes) -> tuple[Categories, NDArray[np.int32]]:
        """This vocabulary with the new categories of a column appended, and the column's codes."""
        position = self._positions(raw.categories)
        new = np.flatnonzero(position == UNSEEN)
        has_missing = (raw.codes < 0).any()
        if not len(new) and (self.has_missing or not has_missing):
            return self, self._apply(position, self.missing_code, raw.codes)  # nothing new: keep the index
        position[new] = len(self) + np.arange(len(new), dtype=np.int32)
        categories = np.concatenate([self.categories, raw.categories[new]])
        missing = self.missing_code
        if not len(self) and not has_missing:
            return Categories(self.name, categories), raw.codes  # the first table's codes are those of the vocabulary
        if missing == UNSEEN and has_missing:
            missing = len(categories)
            categories = _with_missing(categories)
        return Categories(self.name, categories), self._apply(position, missing, raw.codes)

    def refuse_late_numbers(self, column: Column) -> None:
        """A `TypeError` for numbers in a column that had no value so far: each would be a category.

        For columns that are categorical by their type.
        """
        is_empty = all(category is None for category in self.categories)
        if is_empty and column.kind is Kind.NUMERIC and not column.is_empty:
            raise TypeError(
                f"Column {self.name!r} had no value in the rows before, nor the type of a number, and holds "
                f"{column.measure} now; give it that type from the first rows on, or name it among the categorical "
                "columns."
            )

    def inverse(self, codes: NDArray[np.integer]) -> NDArray[Any]:
        """The categories (n,) of codes; None for missing and for UNSEEN."""
        return np.asarray(_with_missing(self.categories)[codes])

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "categories": written_objects(self.categories)}  # caches are made again

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, categories=read_objects(state["categories"]))

    def _positions(self, categories: NDArray[Any]) -> NDArray[np.int32]:
        self._refuse_other_family(categories)
        if not len(self) or not len(categories):
            return np.full(len(categories), UNSEEN, dtype=np.int32)
        if len(categories) <= FEW:
            code_of = self._code_of
            return np.array([code_of.get(category, UNSEEN) for category in categories.tolist()], dtype=np.int32)
        return self._index.get_indexer(pd.Index(categories, dtype=object)).astype(np.int32)

    @staticmethod
    def _apply(position: NDArray[np.int32], missing: int, codes: NDArray[Any]) -> NDArray[np.int32]:
        table = np.empty(len(position) + 1, dtype=np.int32)
        table[:-1] = position
        table[-1] = missing  # a code of -1 reads the last place
        return table[codes]

    def _refuse_other_family(self, categories: NDArray[Any]) -> None:
        """Text where fit saw numbers would be silently unseen, all of it: refuse."""
        family, fitted_family = _family(categories), self._family
        if family and fitted_family and family != fitted_family:
            raise TypeError(
                f"Column {self.name!r} held {fitted_family} in fit and holds {family} now (such as {categories[0]!r}); "
                "convert it to the type it had."
            )


def _with_missing(categories: NDArray[Any]) -> NDArray[Any]:
    return np.append(categories, object_array([None]))


def _family(categories: NDArray[Any]) -> str | None:
    first = next((category for category in categories if category is not None), None)
    if first is None:
        return None
    zone = " with a time zone" if getattr(first, "tzinfo", None) is not None else ""
    return _family_of(first.__class__) + zone


@lru_cache(maxsize=256)
def _family_of(kind: type) -> str:
    return next((name for name, kinds in _FAMILIES.items() if issubclass(kind, kinds)), kind.__name__)


@dataclass(frozen=True)
class Cross:
    """The observed pairs of two code columns, in code order: `keys` = left * 2**32 + right."""

    keys: NDArray[np.int64]

    @classmethod
    def fit(cls, left: NDArray[np.int32], right: NDArray[np.int32]) -> tuple[Cross, NDArray[np.int32]]:
        """The cross of two code columns (n,), and its codes (n,)."""
        return cls(np.empty(0, dtype=np.int64)).grow(left, right)

    def __len__(self) -> int:
        return len(self.keys)

    def transform(self, left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.int32]:
        """Codes (n,) of pairs; UNSEEN where a pair, or a category in it, is not known."""
        codes = np.empty(len(left), dtype=np.int32)
        find_pairs(left, right, self.keys, *self._hashed, codes)
        return codes

    @cached_property
    def _hashed(self) -> tuple[NDArray[np.int32], np.uint64]:
        """The hash table of the keys, made once: filling it takes longer than a few rows."""
        return hash_keys(self.keys)

    def __getstate__(self) -> dict[str, Any]:
        return {"keys": self.keys}  # the table is made again

    def grow(self, left: NDArray[np.int32], right: NDArray[np.int32]) -> tuple[Cross, NDArray[np.int32]]:
        """This cross with the new pairs appended, and the codes (n,)."""
        keys = np.empty(len(self.keys) + len(left), dtype=np.int64)
        keys[: len(self.keys)] = self.keys
        codes = np.empty(len(left), dtype=np.int32)
        n_keys = number_pairs(left, right, keys, len(self.keys), codes)
        return Cross(keys[:n_keys].copy()), codes

    def pairs(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The left and right codes of each code of the cross."""
        return (self.keys >> 32).astype(np.int32), (self.keys & 0xFFFFFFFF).astype(np.int32)
