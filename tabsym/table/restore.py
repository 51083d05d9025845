"""The type that a column had in fit, and values put back into it: what `inverse_transform` promises.

Values come as symbols (an object array, None for missing) or as float64, in
which dates and durations are days, to the microsecond. Where the type cannot
hold them (a missing value among numpy's integers), they get the nearest type
that can, as the library itself would choose it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.table.columns import Column
from tabsym.table.stored import library_of

_MICROSECONDS_PER_DAY = 86_400 * 1_000_000


@dataclass(frozen=True)
class StoredType:
    """A column's type as its library writes it; `library` is "pandas", "polars" or "pyarrow".

    `holds` says what the objects are in a column of objects, in the words of `pandas.api.types.infer_dtype`.
    """

    library: str
    dtype: Any
    holds: str = ""


def type_of(column: Column) -> StoredType:
    """The type of a column."""
    stored = column.stored
    library = library_of(stored)
    if library in ("polars", "pyarrow"):
        return StoredType(library, stored.dtype if library == "polars" else stored.type)
    holds = pd.api.types.infer_dtype(stored, skipna=True) if stored.dtype == object else ""
    return StoredType("pandas", stored.dtype, holds)


def restored(values: NDArray[Any], kind: StoredType, library: str) -> Any:
    """Values (n,) as what a library stores, of the type in fit where it is the library of fit.

    Returns
    -------
    pandas series, polars series or Arrow array
    """
    make = _MAKERS[library]
    if library != kind.library:
        return make(values, None)
    try:
        return make(values, kind)
    except (TypeError, ValueError, OverflowError, ArithmeticError):  # such as symbols that are no category of the type
        return make(values, None)


def library_of_frame(frame: Any) -> str:
    """ "pandas", "polars" or "pyarrow", of which the first stands for all others."""
    library = library_of(frame)
    return library if library in _MAKERS else "pandas"


def frame_of(columns: dict[str, Any], library: str, index: pd.Index | None = None) -> Any:
    """A frame of columns as `restored` makes them, or of series of narwhals."""
    native = {n: one.to_native() if isinstance(one, nw.Series) else one for n, one in columns.items()}
    if library == "polars":
        import polars as pl

        return pl.DataFrame(native)
    if library == "pyarrow":
        import pyarrow as pa

        return pa.table(native)
    index = pd.RangeIndex(len(next(iter(native.values())))) if index is None else index
    return pd.DataFrame({name: pd.Series(one).set_axis(index) for name, one in native.items()}, index=index)


def _pandas(values: NDArray[Any], kind: StoredType | None) -> pd.Series:
    if kind is None:
        return pd.Series(values).infer_objects()
    dtype = kind.dtype
    if values.dtype != object:
        return _pandas_of_numbers(values, kind)
    missing = np.asarray(pd.isna(values))
    if missing.any() and isinstance(dtype, np.dtype) and dtype.kind in "biu":  # which have no missing value
        return pd.Series(values, dtype=object if dtype.kind == "b" else np.float64)
    if isinstance(dtype, pd.CategoricalDtype) and not pd.Index(values[~missing]).isin(dtype.categories).all():
        raise ValueError("pandas would make missing values of them")
    return pd.Series(values, dtype=object).astype(dtype)


def _pandas_of_numbers(values: NDArray[Any], kind: StoredType) -> pd.Series:
    dtype, series = kind.dtype, pd.Series(values)
    if pd.api.types.is_object_dtype(dtype):
        return _objects_of_numbers(values, kind.holds)
    if isinstance(dtype, pd.ArrowDtype):
        return pd.Series(pd.array(_arrow_of_numbers(values, dtype.pyarrow_dtype), dtype=dtype))
    if dtype.kind in "mM":
        moments = pd.Series(_moments(values, dtype.kind))
        return (moments.dt.tz_localize("UTC") if isinstance(dtype, pd.DatetimeTZDtype) else moments).astype(dtype)
    if dtype.kind in "biu" and (values != np.floor(values)).any():
        return series.astype(dtype) if isinstance(dtype, pd.api.extensions.ExtensionDtype) else series
    return series.astype(dtype)


def _objects_of_numbers(values: NDArray[Any], holds: str) -> pd.Series:
    if holds == "date":
        return pd.Series(_moments(values, "M")).dt.date
    if holds in ("datetime", "datetime64", "timedelta", "timedelta64"):
        return pd.Series(_moments(values, "m" if "delta" in holds else "M")).astype(object)
    return pd.Series(values)


def _polars(values: NDArray[Any], kind: StoredType | None) -> Any:
    import polars as pl  # the column was of polars, so it is there

    if kind is None:
        return pl.Series(values=values.tolist(), strict=False)
    dtype = kind.dtype
    if values.dtype == object:
        return pl.Series(values=values.tolist(), dtype=dtype)
    if dtype in (pl.Date, pl.Datetime, pl.Duration):
        series = pl.Series(values=_moments(values, "m" if dtype == pl.Duration else "M"))
        if dtype == pl.Datetime and dtype.time_zone:
            series = series.dt.replace_time_zone("UTC").dt.convert_time_zone(dtype.time_zone)
        return series.cast(dtype)
    return pl.Series(values=values).fill_nan(None).cast(dtype)


def _arrow(values: NDArray[Any], kind: StoredType | None) -> Any:
    import pyarrow as pa  # the column was of Arrow, so it is there

    if kind is None:
        return pa.chunked_array([pa.array(values.tolist())])
    if values.dtype != object:
        return pa.chunked_array([_arrow_of_numbers(values, kind.dtype)])
    if pa.types.is_dictionary(kind.dtype):
        return pa.chunked_array([pa.array(values.tolist(), kind.dtype.value_type).dictionary_encode().cast(kind.dtype)])
    return pa.chunked_array([pa.array(values.tolist(), kind.dtype)])


def _arrow_of_numbers(values: NDArray[Any], dtype: Any) -> Any:
    import pyarrow as pa

    if not pa.types.is_temporal(dtype):
        return pa.array(values, from_pandas=True).cast(dtype)
    moments = pa.array(_moments(values, "m" if pa.types.is_duration(dtype) else "M"))
    return moments.cast(dtype, safe=False)


def _moments(days: NDArray[Any], kind: str) -> NDArray[Any]:
    """Days since 1970 as datetime64 (`kind` "M") or timedelta64 ("m"), to the microsecond: they are floats."""
    whole = np.where(np.isnan(days), 0, np.round(days * _MICROSECONDS_PER_DAY)).astype(np.int64)
    out = whole.view(f"{kind}8[us]")
    return np.where(np.isnan(days), np.array("NaT", dtype=out.dtype), out)


_MAKERS = {"pandas": _pandas, "polars": _polars, "pyarrow": _arrow}
