"""Named columns with a kind: what every later layer sees of the user's table.

A column keeps the user's own series (as a narwhals series), because the
fastest way from values to codes is the dataframe's own hash: nothing is
converted before it is needed, and each conversion happens once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

_NANOSECONDS_PER_DAY = 86_400 * 1_000_000_000


class Kind(StrEnum):
    """What the values of a column are."""

    SYMBOLIC = "symbolic"
    NUMERIC = "numeric"
    BOOLEAN = "boolean"  # a number to encoders (left alone), a symbol to wide models


@dataclass(frozen=True)
class Column:
    """One column: its name, its kind and the user's own series."""

    name: str
    kind: Kind
    series: nw.Series[Any]

    def __len__(self) -> int:
        return len(self.series)

    @property
    def is_moment(self) -> bool:
        """Whether the values are dates or times of day on dates: `values` are days since 1970 then."""
        return self.series.dtype in (nw.Date, nw.Datetime)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """Values as float64, missing as NaN; dates and durations in days.

        Raises
        ------
        ValueError
            Where a value is infinite, or where the column holds text.
        """
        if self.kind is Kind.SYMBOLIC:
            raise ValueError(
                f"Column {self.name!r} holds symbols where numbers are needed; "
                "encode it first, or convert it to numbers."
            )
        out = _to_float(self.series, self.name)
        if np.isinf(out).any():
            raise ValueError(
                f"Column {self.name!r} contains infinity; replace infinite values by missing ones "
                "or by a large finite number. (Input X contains infinity.)"
            )
        return out


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


def _to_float(series: nw.Series[Any], name: str) -> NDArray[np.float64]:
    dtype = series.dtype
    if dtype == nw.Date:
        series = series.cast(nw.Datetime("us"))
        dtype = series.dtype
    if dtype == nw.Datetime or dtype == nw.Duration:
        return _days(series)
    native = series.to_native()
    if series.implementation.is_pandas():
        return np.asarray(native.to_numpy(dtype=np.float64, na_value=np.nan))
    if dtype == nw.Boolean or dtype == nw.Decimal:
        series = series.cast(nw.Float64)
    out = series.to_numpy()
    try:
        return np.ascontiguousarray(out, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"Column {name!r} of type {dtype} cannot be read as numbers; convert it first.") from None


def _days(series: nw.Series[Any]) -> NDArray[np.float64]:
    moments = series.to_numpy()
    if moments.dtype == object:  # pandas with a time zone: go through UTC
        moments = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None).to_numpy()
    unit = "timedelta64[ns]" if moments.dtype.kind == "m" else "datetime64[ns]"
    moments = moments.astype(unit)
    days = moments.view(np.int64) / _NANOSECONDS_PER_DAY
    return np.where(np.isnat(moments), np.nan, days)
