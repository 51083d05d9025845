"""Named columns with a kind: what every later layer sees of the user's table.

A column keeps what the user's own library stores, because the fastest way
from values to codes is the dataframe's own hash: nothing is converted before
it is needed, and each conversion happens once. A narwhals series is made only
for those who ask for one: wrapping a column takes longer than coding a row.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from tabsym.table.measure import Measure, measure_of
from tabsym.table.numbers import to_numbers
from tabsym.table.stored import stored_in


class Kind(StrEnum):
    """What the values of a column are, as far as their type says: a guess that fit makes."""

    SYMBOLIC = "symbolic"
    NUMERIC = "numeric"
    BOOLEAN = "boolean"  # a number to encoders (left alone) where none is missing, a symbol to wide models


@dataclass(frozen=True)
class Column:
    """One column: its name, its kind and the user's own series."""

    name: str
    kind: Kind
    series: nw.Series[Any]

    @classmethod
    def of_stored(cls, name: str, kind: Kind, stored: Any, wrap: Callable[[], nw.Series[Any]]) -> Column:
        """A column of what its library stores; `wrap` makes the series, if that is ever asked for."""
        column = object.__new__(cls)
        column.__dict__.update(name=name, kind=kind, stored=stored, _wrap=wrap)
        return column

    def __getattr__(self, attribute: str) -> Any:
        """The series, where it was not made yet: Python comes here only for what is not there."""
        if attribute != "series" or "_wrap" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {attribute!r}")
        return self.__dict__.setdefault("series", self._wrap())

    def __len__(self) -> int:
        return len(self.stored)

    def renamed(self, name: str) -> Column:
        """The same values under another name."""
        column = copy(self)
        column.__dict__.pop("values", None)  # their messages name the column
        column.__dict__["name"] = name
        return column

    @cached_property
    def stored(self) -> Any:
        """What the library stores: a pandas array, a polars series or an Arrow array."""
        return stored_in(self.series)

    @cached_property
    def measure(self) -> Measure:
        """What `values` stand for: numbers, dates (days since 1970, in UTC) or durations (days)."""
        return measure_of(self.stored)

    def check_measure(self, fitted: Measure) -> None:
        """A `TypeError` where the values cannot be compared with those of fit: numbers where those were dates."""
        if fitted.goes_with(self.measure):
            return
        missing = np.isnan(self.values)
        if not missing.all():
            raise TypeError(
                f"Column {self.name!r} held {fitted} in fit and holds {self.measure} now (such as "
                f"{self.series[int(np.argmin(missing))]!r}); convert it to the type it had."
            )

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """Values as float64, missing as NaN; dates and durations in days.

        Whatever the kind says, numbers are read as such (objects, decimals,
        booleans, categories of numbers), and a column of missing values of
        any type is all NaN. Text is never parsed.

        Raises
        ------
        ValueError
            Where a value is infinite or no number; the message names its row.
        """
        out = to_numbers(self.stored, self.name)
        if np.isinf(out).any():
            raise ValueError(
                f"Column {self.name!r} contains infinity; replace infinite values by missing ones "
                "or by a large finite number. (Input X contains infinity.)"
            )
        return out

    @property
    def is_empty(self) -> bool:
        """Whether all values are missing, whatever the type: such a column tells nothing, not what it holds either."""
        if self.kind is Kind.SYMBOLIC:
            return bool(self.series.is_null().all())
        return bool(np.isnan(to_numbers(self.stored, self.name)).all())

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which of `values` are missing, of infinite ones too."""
        return np.isnan(to_numbers(self.stored, self.name))


@dataclass(frozen=True)
class Table:
    """Named columns of equal length, and where they came from.

    `native` is the object the user gave: the frame that a transformer copies
    untouched columns from, and whose kind (pandas, polars, ...) its output has.
    """

    columns: tuple[Column, ...]
    n_rows: int
    native: Any
    named: bool  # False where the names were made here (arrays and lists)

    def __len__(self) -> int:
        return self.n_rows

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def __getitem__(self, name: str) -> Column:
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}
