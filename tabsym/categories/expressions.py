"""Expressions of lazy frames: which values are missing, and in which bin a number or a date lies."""

from __future__ import annotations

import datetime
import math
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from tabsym.frame.storage import PER_DAY

Floats = NDArray[np.float64]


def is_missing(frame: nw.LazyFrame[Any], name: str) -> nw.Expr:
    """Whether the values of a column are null or NaN, which are one here."""
    column = nw.col(name)
    return column.is_null() | column.is_nan() if frame.collect_schema()[name].is_float() else column.is_null()


def by_bin(frame: nw.LazyFrame[Any], name: str, bounds: Floats, values: list[list[Any]]) -> list[nw.Expr]:
    """Of each list of values (I,) the one of the bin in which a column's value lies.

    `bounds` (I - 1,): the upper bounds of all bins but the last, ascending; dates and durations count days, as
    `Column.values` does. The caller handles missing values.
    """
    dtype, column = frame.collect_schema()[name], nw.col(name)
    if isinstance(dtype, nw.Date):
        first = datetime.date(1970, 1, 1)
        days = [first + datetime.timedelta(days=math.floor(bound)) for bound in bounds.tolist()]
        return [pick_bin(column, days, one) for one in values]
    column = column.cast(nw.Float64) if dtype.is_numeric() else _days(column, dtype, frame.implementation.is_polars())
    return [pick_bin(column, bounds.tolist(), one) for one in values]


def number_of_bin(frame: nw.LazyFrame[Any], name: str, bounds: Floats) -> nw.Expr:
    """How many of the ascending bounds lie below the values of a column; see `by_bin`."""
    return by_bin(frame, name, bounds, [list(range(len(bounds) + 1))])[0]


def _days(column: nw.Expr, dtype: Any, in_polars: bool) -> nw.Expr:
    """Moments and durations in days, to the last bit as those of a collected column."""
    fine = in_polars and dtype.time_unit == "ns"  # other engines have no finer than microseconds in narwhals
    unit = "ns" if fine else "us"
    if isinstance(dtype, nw.Datetime) and in_polars:
        parts = column.dt.timestamp(unit)  # type: ignore[arg-type]
    else:
        zone = datetime.UTC if isinstance(dtype, nw.Datetime) and dtype.time_zone is not None else None
        if isinstance(dtype, nw.Datetime):
            column = column - nw.lit(datetime.datetime(1970, 1, 1, tzinfo=zone))
        parts = column.dt.total_nanoseconds() if fine else column.dt.total_microseconds()
    per_day = PER_DAY[unit]
    rest = (parts % per_day + per_day) % per_day  # whatever the engine makes of negative ones
    return ((parts - rest) / per_day).cast(nw.Float64) + rest.cast(nw.Float64) / float(per_day)


def pick_bin(column: nw.Expr, bounds: list[Any], values: list[Any]) -> nw.Expr:
    """One of the values (I,) by the bin of a column, whose upper bounds (I - 1,) are of its type: by bisection."""
    if all(value == values[0] for value in values):
        return nw.lit(values[0])
    middle = len(bounds) // 2
    low, high = (
        pick_bin(column, bounds[:middle], values[: middle + 1]),
        pick_bin(column, bounds[middle + 1 :], values[middle + 1 :]),
    )
    return nw.when(column <= nw.lit(bounds[middle])).then(low).otherwise(high)
