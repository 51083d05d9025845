"""From what a library stores to float64, for whatever is numbers: missing is NaN, dates and durations are days.

Types decide where they can. Where they cannot (objects, categories, text), the
values do: numbers are read, and the first value that is none is refused with
its row. Text is never parsed: "1" may be a code.
"""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.table.measure import DATES, DURATIONS
from tabsym.table.stored import arrow_in, library_of

Floats = NDArray[np.float64]

PER_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
_TOO_WIDE = ("Int128", "UInt128")  # polars' integers that numpy has not
_NUMBERS = ("floating", "decimal", "boolean")  # what numpy converts at once; integers may be too large for it


def to_numbers(stored: Any, name: str) -> Floats:
    """The values (n,) of column `name`, locked: where they are float64 already they are the user's own memory.

    Raises
    ------
    ValueError
        Where a value is no number, in a sentence that names it and its row.
    """
    out = _converted(stored, name).view()
    out.flags.writeable = False
    return out


def moments_of(stored: Any) -> NDArray[Any] | None:
    """Dates or durations (n,) as numpy's, in UTC where they have a zone; None of what is neither by type or content."""
    if arrow_in(stored) is not None or not pd.api.types.is_object_dtype(stored.dtype):
        return _typed_moments(stored)
    content, values = pd.api.types.infer_dtype(stored, skipna=True), np.asarray(stored, dtype=object)
    if content in DATES:
        return _without_zone(pd.to_datetime(values, utc=True).array)
    return pd.to_timedelta(values).to_numpy() if content in DURATIONS else None


def _typed_moments(stored: Any) -> NDArray[Any] | None:
    """Dates or durations (n,) of a type that says so."""
    arrow = arrow_in(stored)
    if arrow is not None:
        import pyarrow as pa  # the caller holds an Arrow array, so it is there

        is_moment = pa.types.is_temporal(arrow.type) and not pa.types.is_time(arrow.type)
        return _numpy_of_arrow(arrow) if is_moment else None
    if library_of(stored) == "polars":
        import polars as pl  # the caller holds a polars series, so it is there

        if stored.dtype not in (pl.Date, pl.Datetime, pl.Duration):
            return None
        found: NDArray[Any] = (stored.cast(pl.Datetime("us")) if stored.dtype == pl.Date else stored).to_numpy()
        return found
    is_moment = not isinstance(stored.dtype, pd.CategoricalDtype) and stored.dtype.kind in "mM"
    return _without_zone(stored) if is_moment else None


def _converted(stored: Any, name: str) -> Floats:
    moments = _typed_moments(stored)
    if moments is not None:
        return _days(moments)
    arrow = arrow_in(stored)
    if arrow is not None:
        return _of_arrow(arrow, name)
    if library_of(stored) == "polars":
        return _of_polars(stored, name)
    kind = stored.dtype.kind
    if isinstance(stored.dtype, pd.CategoricalDtype) or kind not in "biuf":
        return _of_objects(np.asarray(stored, dtype=object), name)
    if isinstance(stored, np.ndarray):
        return _floats(stored)
    return _floats(stored.to_numpy(dtype=np.float64, na_value=np.nan))


def _floats(values: NDArray[Any]) -> Floats:
    return np.ascontiguousarray(values, dtype=np.float64)


def _of_arrow(arrow: Any, name: str) -> Floats:
    import pyarrow as pa  # the caller holds an Arrow array, so it is there

    dtype = arrow.type
    if pa.types.is_null(dtype):
        return np.full(len(arrow), np.nan)
    if pa.types.is_boolean(dtype) or pa.types.is_decimal(dtype):
        arrow = arrow.cast(pa.float64())
    elif not (pa.types.is_integer(dtype) or pa.types.is_floating(dtype)):
        return _of_objects(_object_array(arrow.to_pylist()), name)
    return _floats(_numpy_of_arrow(arrow))


def _numpy_of_arrow(arrow: Any) -> NDArray[Any]:
    import pyarrow as pa

    return np.asarray(arrow.to_numpy() if isinstance(arrow, pa.ChunkedArray) else arrow.to_numpy(zero_copy_only=False))


def _of_polars(series: Any, name: str) -> Floats:
    import polars as pl  # the caller holds a polars series, so it is there

    dtype = series.dtype
    if (dtype.is_float() or dtype.is_integer()) and str(dtype) not in _TOO_WIDE:
        return _floats(series.to_numpy())
    if dtype == pl.Boolean or dtype == pl.Decimal or str(dtype) in _TOO_WIDE:
        return _floats(series.cast(pl.Float64).to_numpy())
    if dtype == pl.Null:
        return np.full(len(series), np.nan)
    return _of_objects(_object_array(series.to_list()), name)


def _of_objects(values: NDArray[Any], name: str) -> Floats:
    """The numbers, or the moments, in an object array."""
    missing = np.asarray(pd.isna(values))
    out = np.full(len(values), np.nan)
    if missing.all():
        return out
    present = values[~missing]
    content = pd.api.types.infer_dtype(present)
    if content in DATES:
        out[~missing] = _days(_without_zone(pd.to_datetime(present, utc=True).array))
    elif content in DURATIONS:
        out[~missing] = _days(pd.to_timedelta(present).to_numpy())
    elif content in _NUMBERS:
        out[~missing] = present.astype(np.float64)
    else:
        for row in np.flatnonzero(~missing).tolist():
            out[row] = _number(values[row], name, row)
    return out


def _number(value: Any, name: str, row: int) -> float:
    """A value of a mixture as a number."""
    if isinstance(value, (Real, Decimal, np.bool_)):
        try:
            return float(value)
        except OverflowError:
            pass
    raise ValueError(
        f"Column {name!r} holds text where numbers are needed (such as {value!r} in row {row}); "
        "encode it first, or convert it to numbers."
    )


def _object_array(values: list[Any]) -> NDArray[Any]:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _without_zone(moments: Any) -> NDArray[Any]:
    """Moments of pandas as numpy's, in UTC where they have a zone."""
    if getattr(moments.dtype, "tz", None) is not None:
        moments = moments.tz_convert("UTC").tz_localize(None)
    return np.asarray(moments)


def _days(moments: NDArray[Any]) -> Floats:
    """Days, in the unit that the moments have: nanoseconds would reach from 1677 to 2262 only."""
    unit, _ = np.datetime_data(moments.dtype)
    if unit not in PER_DAY:
        unit, moments = "s", moments.astype(f"{moments.dtype.kind}8[s]")
    whole, rest = np.divmod(moments.view(np.int64), PER_DAY[unit])
    return np.where(np.isnat(moments), np.nan, whole + rest / PER_DAY[unit])  # the same to the last bit in every unit
