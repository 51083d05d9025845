"""Offsets and exposures that are columns of the table: no features, and passed on by every tool."""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.table import Table

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OffsetColumn:
    """The column of a fitted model's offset.

    Attributes
    ----------
    name : str
    is_exposure : bool
        Whether its logarithm is the offset.
    """

    name: str
    is_exposure: bool

    @property
    def option(self) -> str:
        return "exposure_column" if self.is_exposure else "offset_column"

    def __str__(self) -> str:
        return f"{self.option}={self.name!r}"

    def split(self, table: Table) -> tuple[Table, Floats]:
        """The table without the column, and the offset (n,); a `ValueError` where it is not there, or no number."""
        if self.name not in table.names:
            raise ValueError(f"{self.option}={self.name!r} is not in the table, and fit had it; add the column.")
        values = table[self.name].values
        wrong = np.isnan(values) | ((values <= 0.0) if self.is_exposure else False)
        if wrong.any():
            row = int(np.argmax(wrong))
            held = "a missing value" if np.isnan(values[row]) else f"{values[row]:g}"
            needed = "a number above 0" if self.is_exposure else "a number"
            raise ValueError(f"{self.option}={self.name!r} holds {held} in row {row}; give {needed} in each row.")
        rest = replace(table, columns=tuple(column for column in table.columns if column.name != self.name))
        return rest, np.log(values) if self.is_exposure else values


def offset_column_of(estimator: Any, table: Table, offset: Any) -> OffsetColumn | None:
    """What the constructor's arguments name in a training table; None for neither."""
    given = {name: getattr(estimator, name, None) for name in ("offset_column", "exposure_column")}
    named = [name for name, value in given.items() if value is not None]
    if not named:
        return None
    if len(named) > 1:
        raise ValueError("offset_column and exposure_column both say what is added to the linear predictor; give one.")
    (option,) = named
    if offset is not None:
        raise ValueError(f"offset= and {option}={given[option]!r} are given; leave one out.")
    value: Any = given[option]
    is_place = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and not table.named
    if is_place and 0 <= int(value) < len(table.names):
        value = table.names[int(value)]
    if value not in table.names:
        near = get_close_matches(str(value), table.names, n=3) or table.names[:5]
        raise ValueError(f"{option}={value!r} is no column of the table; there is {', '.join(map(repr, near))}.")
    return OffsetColumn(str(value), option == "exposure_column")
