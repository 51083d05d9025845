"""What the numbers of a column stand for: plain numbers, dates or durations; `Column.values` has the latter in days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tabsym.table.stored import arrow_in, library_of

DATES = ("date", "datetime", "datetime64")
"""What pandas calls objects that are dates."""
DURATIONS = ("timedelta", "timedelta64")


@dataclass(frozen=True)
class Measure:
    """`name` is "numbers", "dates" or "durations"; `zone`: of dates, their time zone, None where they have none."""

    name: str = "numbers"
    zone: str | None = None

    def __str__(self) -> str:
        return self.name if self.zone is None else f"{self.name} with a time zone"

    def goes_with(self, other: Measure) -> bool:
        """Whether numbers of both can be compared: dates of two zones can, dates with and without one cannot."""
        return str(self) == str(other)


NUMBERS = Measure()


def measure_of(stored: Any) -> Measure:
    """The measure of what a library stores."""
    arrow = arrow_in(stored)
    if arrow is not None:
        return _of_arrow(arrow.type)
    dtype = stored.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return measure_of(dtype.categories)
    if library_of(stored) == "polars":
        return _of_polars(dtype)
    if pd.api.types.is_object_dtype(dtype):
        return _of_objects(stored)
    zone = getattr(dtype, "tz", None)
    names = {"M": "dates", "m": "durations"}
    return Measure(names.get(dtype.kind, "numbers"), None if zone is None else _zone_name(zone))


def _of_arrow(dtype: Any) -> Measure:
    import pyarrow as pa  # the caller holds an Arrow array, so it is there

    if pa.types.is_dictionary(dtype):
        return _of_arrow(dtype.value_type)
    if pa.types.is_timestamp(dtype):
        return Measure("dates", dtype.tz)
    if pa.types.is_date(dtype):
        return Measure("dates")
    return Measure("durations") if pa.types.is_duration(dtype) else Measure()


def _of_polars(dtype: Any) -> Measure:
    import polars as pl  # the caller holds a polars series, so it is there

    if dtype == pl.Datetime:
        return Measure("dates", dtype.time_zone)
    if dtype == pl.Date:
        return Measure("dates")
    return Measure("durations") if dtype == pl.Duration else Measure()


def _of_objects(values: Sequence[Any]) -> Measure:
    holds = pd.api.types.infer_dtype(values, skipna=True)
    if holds in DURATIONS:
        return Measure("durations")
    if holds not in DATES:
        return Measure()
    first = next((value for value in values if not pd.isna(value)), None)
    zone = getattr(first, "tzinfo", None)
    return Measure("dates", None if zone is None else _zone_name(zone))


def _zone_name(zone: Any) -> str:
    """The name by which pandas finds the zone; UTC where it has none, as zones of dateutil do."""
    try:
        pd.Timestamp(0, tz=str(zone))
    except (KeyError, ValueError, TypeError, OSError):
        return "UTC"
    return str(zone)
