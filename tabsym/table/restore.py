"""The type that a column had in fit, and values put back into it: what `inverse_transform` promises.

Values come as symbols (an object array, None for missing) or as float64, in
which dates and durations are days, to the microsecond. Where the type cannot
hold them (a missing value among numpy's integers), they get the nearest type
that can, as the library itself would choose it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.table.columns import Column, Kind
from tabsym.table.measure import DURATIONS, Measure
from tabsym.table.stored import library_of
from tabsym.table.written import read_type, written_type

_MICROSECONDS_PER_DAY = 86_400 * 1_000_000
_MOST_EXACT = 2**53


@dataclass(frozen=True)
class StoredType:
    """A column's type as its library writes it; `library` is "pandas", "polars" or "pyarrow".

    `holds` says what the objects are in a column of objects, in the words of `pandas.api.types.infer_dtype`.
    """

    library: str
    dtype: Any
    measure: Measure
    holds: str = ""

    def __getstate__(self) -> dict[str, Any]:
        """The type as plain values, for files that hold no code."""
        return {**self.__dict__, "dtype": written_type(self.dtype, self.library)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        written = isinstance(state["dtype"], list)  # a type itself in older pickles
        self.__dict__.update(state, dtype=read_type(state["dtype"]) if written else state["dtype"])


def type_of(column: Column) -> StoredType:
    """The type of a column."""
    stored = column.stored
    library = library_of(stored)
    if library in ("polars", "pyarrow"):
        return StoredType(library, stored.dtype if library == "polars" else stored.type, column.measure)
    holds = pd.api.types.infer_dtype(stored, skipna=True) if stored.dtype == object else ""
    return StoredType("pandas", stored.dtype, column.measure, holds)


def restored(values: NDArray[Any], kind: StoredType, library: str) -> Any:
    """Values (n,) as what a library stores, of the type in fit where it is the library of fit.

    Returns
    -------
    pandas series, polars series or Arrow array
    """
    make = _MAKERS[library]
    if library != kind.library:
        if values.dtype != object and kind.measure.name != "numbers":
            values = _moments(values, "M" if kind.measure.name == "dates" else "m")
        return make(values, None)
    try:
        return make(values, kind)
    except (TypeError, ValueError, OverflowError, ArithmeticError):  # such as symbols that are no category of the type
        return make(values, None)


def restored_column(column: Column, kind: StoredType, library: str, *, named: bool) -> Any:
    """A column of an encoding that was left alone: of a frame (`named`) as it is, of an array as it was."""
    if named:
        return column.series.to_native()
    if column.kind is not Kind.SYMBOLIC:
        return restored(column.values, kind, library)
    values = np.empty(len(column), dtype=object)
    values[:] = column.series.to_list()
    return restored(values, kind, library)


def library_of_frame(frame: Any) -> str:
    """ "pandas", "polars" or "pyarrow", of which the first stands for all others."""
    library = library_of(frame)
    return library if library in _MAKERS else "pandas"


def frame_of(columns: dict[str, Any], library: str, index: pd.Index | None = None) -> Any:
    """A frame of columns as `restored` makes them."""
    if library == "polars":
        import polars as pl

        return pl.DataFrame(columns)
    if library == "pyarrow":
        import pyarrow as pa

        return pa.table(columns)
    index = pd.RangeIndex(len(next(iter(columns.values())))) if index is None else index
    return pd.DataFrame({name: pd.Series(one).set_axis(index) for name, one in columns.items()}, index=index)


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
        return _objects_of_numbers(values, kind.holds, kind.measure)
    if isinstance(dtype, pd.ArrowDtype):
        return pd.Series(pd.array(_arrow_of_numbers(values, dtype.pyarrow_dtype), dtype=dtype))
    if dtype.kind in "mM":
        moments = pd.Series(_moments(values, dtype.kind))
        return (moments.dt.tz_localize("UTC") if isinstance(dtype, pd.DatetimeTZDtype) else moments).astype(dtype)
    if dtype.kind in "iu" and not _are_exact_integers(values):
        return series
    if dtype.kind in "biu" and isinstance(dtype, np.dtype) and np.isnan(values).any():  # which have no missing value
        return series
    return series.astype(dtype)


def _objects_of_numbers(values: NDArray[Any], holds: str, measure: Measure) -> pd.Series:
    if holds == "date":
        return pd.Series(_moments(values, "M")).dt.date
    if measure.name == "numbers":
        return pd.Series(values)
    moments = pd.Series(_moments(values, "m" if holds in DURATIONS else "M"))
    if measure.zone is not None:
        moments = moments.dt.tz_localize("UTC").dt.tz_convert(measure.zone)
    return moments.astype(object)


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
    series = pl.Series(values=values).fill_nan(None)
    return series if dtype.is_integer() and not _are_exact_integers(values) else series.cast(dtype)


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


def _are_exact_integers(values: NDArray[Any]) -> bool:
    """Whether floats are whole numbers that no other integer is rounded to, or missing."""
    present = values[~np.isnan(values)]
    return bool((present == np.floor(present)).all() and (np.abs(present) <= _MOST_EXACT).all())


def _moments(days: NDArray[Any], kind: str) -> NDArray[Any]:
    """Days since 1970 as datetime64 (`kind` "M") or timedelta64 ("m"), to the microsecond: they are floats."""
    whole = np.where(np.isnan(days), 0, np.round(days * _MICROSECONDS_PER_DAY)).astype(np.int64)
    out = whole.view(f"{kind}8[us]")
    return np.where(np.isnan(days), np.array("NaT", dtype=out.dtype), out)


_MAKERS = {"pandas": _pandas, "polars": _polars, "pyarrow": _arrow}
