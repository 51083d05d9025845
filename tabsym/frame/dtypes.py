"""The type that a column had in fit: values put back into it, and the type as plain values for files without code.

`inverse_transform` gives a column back in its type of fit. Values come as
categories (an object array, None for missing) or as float64, in which dates and
durations are days, to the microsecond. Where the type cannot hold them (a
missing value among numpy's integers), they get the nearest type that can, as
the library itself would choose it.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.frame.columns import FIRST_ROUNDED, Column, Kind
from tabsym.frame.storage import DURATIONS, Measure, library_of, object_array, zone_name

_MICROSECONDS_PER_DAY = 86_400 * 1_000_000
_WRITTEN = {pd.Timestamp, pd.Timedelta, pd.Period, pd.Interval, datetime.datetime}
"""Types of categories that files without code have as lists: pandas' own, and moments in a time zone."""
_POLARS_OPTIONS = {
    "Datetime": ("time_unit", "time_zone"),
    "Duration": ("time_unit",),
    "Decimal": ("precision", "scale"),
    "Enum": ("categories",),
}
"""What polars' types are made with, of those that have options and can be a column here."""


@dataclass(frozen=True)
class StoredType:
    """A column's type as its library writes it; `library` is "pandas", "polars" or "pyarrow".

    `holds` is what the objects are in a column of objects, in the words of `pandas.api.types.infer_dtype`.
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
    given = column.series.to_native()  # sparse ones are stored as dense ones are
    return StoredType("pandas", given.dtype if isinstance(given, pd.Series) else stored.dtype, column.measure, holds)


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
    except (
        TypeError,
        ValueError,
        OverflowError,
        ArithmeticError,
    ):  # such as values that are no category of the type
        return make(values, None)


def restored_column(column: Column, kind: StoredType, library: str, *, named: bool) -> Any:
    """A column of an encoding that was left alone: of a frame (`named`) as it is, of an array as it was."""
    if named:
        return column.series.to_native()
    if column.kind is not Kind.CATEGORICAL:
        return restored(column.values, kind, library)
    return restored(object_array(column.series.to_list()), kind, library)


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
    return pd.DataFrame({name: pd.Series(values).set_axis(index) for name, values in columns.items()}, index=index)


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
        if kind.holds == "date":
            return pd.Series(_moments(values, "M")).dt.date
        if kind.measure.name == "numbers":
            return series
        moments = pd.Series(_moments(values, "m" if kind.holds in DURATIONS else "M"))
        if kind.measure.zone is not None:
            moments = moments.dt.tz_localize("UTC").dt.tz_convert(kind.measure.zone)
        return moments.astype(object)
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


def _polars(values: NDArray[Any], kind: StoredType | None) -> Any:
    import polars as pl  # the column was of polars, so it is there

    if kind is None:
        return pl.Series(values=values.tolist(), strict=False)
    dtype = kind.dtype
    if values.dtype == object and getattr(dtype, "time_unit", None) == "ns":  # which polars rounds, of Python's types
        return pl.Series(values=[_nanoseconds(value) for value in values.tolist()], dtype=pl.Int64).cast(dtype)
    if values.dtype == object:
        return pl.Series(values=values.tolist(), dtype=dtype)
    if dtype in (pl.Date, pl.Datetime, pl.Duration):
        series = pl.Series(values=_moments(values, "m" if dtype == pl.Duration else "M"))
        if dtype == pl.Datetime and dtype.time_zone:
            series = series.dt.replace_time_zone("UTC").dt.convert_time_zone(dtype.time_zone)
        return series.cast(dtype)
    series = pl.Series(values=values).fill_nan(None)
    return series if dtype.is_integer() and not _are_exact_integers(values) else series.cast(dtype)


def _nanoseconds(value: Any) -> int | None:
    """A moment, since 1970, or a duration in whole nanoseconds; None for a missing one."""
    if value is None or pd.isna(value):
        return None
    if isinstance(value, datetime.timedelta):
        return int(pd.Timedelta(value).value)
    if not isinstance(value, datetime.datetime):
        raise TypeError(f"{value!r} is no moment.")
    return int(pd.Timestamp(value).value)


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
    return bool((present == np.floor(present)).all() and (np.abs(present) <= FIRST_ROUNDED).all())


def _moments(days: NDArray[Any], kind: str) -> NDArray[Any]:
    """Days since 1970 as datetime64 (`kind` "M") or timedelta64 ("m"), to the microsecond: they are floats."""
    whole = np.where(np.isnan(days), 0, np.round(days * _MICROSECONDS_PER_DAY)).astype(np.int64)
    out = whole.view(f"{kind}8[us]")
    return np.where(np.isnan(days), np.array("NaT", dtype=out.dtype), out)


_MAKERS = {"pandas": _pandas, "polars": _polars, "pyarrow": _arrow}


def written_type(dtype: Any, library: str) -> list[Any]:
    """A type of a library ("pandas", "polars" or "pyarrow") as a list of plain values, a word for its kind first."""
    if library == "pyarrow":
        return ["arrow", _arrow_bytes(dtype)]
    if library == "polars":
        options = {name: getattr(dtype, name) for name in _POLARS_OPTIONS.get(type(dtype).__name__, ())}
        if "categories" in options:
            options["categories"] = options["categories"].to_list()
        return ["polars", type(dtype).__name__, options]
    if isinstance(dtype, np.dtype):
        return ["numpy", dtype.str]
    if isinstance(dtype, pd.CategoricalDtype):
        categories = None if dtype.categories is None else written_categories(dtype.categories)
        return ["categories", categories, bool(dtype.ordered)]
    if isinstance(dtype, pd.StringDtype):
        return ["text", dtype.storage, dtype.na_value is pd.NA]
    if isinstance(dtype, pd.ArrowDtype):
        return ["pandas arrow", _arrow_bytes(dtype.pyarrow_dtype)]
    if isinstance(dtype, pd.SparseDtype):
        return ["sparse", written_type(dtype.subtype, "pandas"), dtype.fill_value]
    if isinstance(dtype, pd.DatetimeTZDtype):
        return ["pandas", f"datetime64[{dtype.unit}, {zone_name(dtype.tz)}]"]
    return ["pandas", str(dtype)]


def read_type(written: list[Any]) -> Any:
    """The type again.

    Raises
    ------
    ValueError
        It is none.
    """
    kind, *arguments = written
    if kind == "numpy":
        return np.dtype(str(arguments[0]))
    if kind == "categories":
        return pd.CategoricalDtype(None if arguments[0] is None else read_categories(*arguments[0]), arguments[1])
    if kind == "text":
        return pd.StringDtype(arguments[0], na_value=pd.NA if arguments[1] else np.nan)
    if kind == "sparse":
        return pd.SparseDtype(read_type(arguments[0]), arguments[1])
    if kind == "pandas":
        return pd.api.types.pandas_dtype(str(arguments[0]))
    if kind == "arrow":
        return _arrow_type(arguments[0])
    if kind == "pandas arrow":
        return pd.ArrowDtype(_arrow_type(arguments[0]))
    if kind == "polars":
        return _polars_type(*arguments)
    raise ValueError(f"{kind!r} is no kind of column type.")


def written_objects(categories: NDArray[Any]) -> NDArray[Any]:
    """Categories (l,), those of `_WRITTEN` as lists, which no category is."""
    return (
        object_array(written_list(list(categories)))
        if {type(category) for category in categories} & _WRITTEN
        else categories
    )


def read_objects(written: NDArray[Any]) -> NDArray[Any]:
    """The categories (l,) again."""
    return object_array(read_list(list(written))) if any(type(category) is list for category in written) else written


def written_list(categories: list[Any]) -> list[Any]:
    """The same of a list."""
    return [_written_object(category) for category in categories]


def read_list(written: list[Any]) -> list[Any]:
    """The list again."""
    return [_read_object(item) for item in written]


def _written_object(category: Any) -> Any:
    if isinstance(category, pd.Timestamp):
        return ["moment", int(category.asm8.view("i8")), category.unit, zone_name(category.tz)]
    if isinstance(category, datetime.datetime) and category.tzinfo is not None:
        return ["clock", category.astimezone(datetime.UTC).isoformat(), zone_name(category.tzinfo)]
    if isinstance(category, pd.Timedelta):
        return ["duration", int(category.asm8.view("i8")), category.unit]
    if isinstance(category, pd.Period):
        return ["period", int(category.ordinal), category.freqstr]
    if isinstance(category, pd.Interval):
        return ["interval", _written_object(category.left), _written_object(category.right), category.closed]
    return category


def _read_object(written: Any) -> Any:
    if type(written) is not list:
        return written
    kind, *arguments = written
    if kind == "moment":
        moment = pd.Timestamp(np.datetime64(arguments[0], arguments[1]))
        return moment if arguments[2] is None else moment.tz_localize("UTC").tz_convert(arguments[2])
    if kind == "clock":
        return pd.Timestamp(arguments[0]).tz_convert(arguments[1]).to_pydatetime()
    if kind == "duration":
        return pd.Timedelta(np.timedelta64(arguments[0], arguments[1]))
    if kind == "period":
        return pd.Period(ordinal=arguments[0], freq=arguments[1])
    if kind == "interval":
        return pd.Interval(_read_object(arguments[0]), _read_object(arguments[1]), arguments[2])
    raise ValueError(f"{kind!r} is no kind of category.")


def written_categories(categories: pd.Index) -> list[Any]:
    """Values and their type; intervals by their bounds."""
    if isinstance(categories, pd.IntervalIndex):
        left, right = written_categories(categories.left), written_categories(categories.right)
        return [[left, right, categories.closed], "intervals"]
    if isinstance(categories.dtype, np.dtype) and categories.dtype != object:
        return [categories.to_numpy(), ["numpy", categories.dtype.str]]
    if isinstance(categories, (pd.DatetimeIndex, pd.PeriodIndex)):
        return [categories.asi8, written_type(categories.dtype, "pandas")]
    return [written_objects(categories.astype(object).to_numpy()), written_type(categories.dtype, "pandas")]


def read_categories(values: Any, written: Any) -> pd.Index:
    """The categories of a pandas type from what a file has of them."""
    if written == "intervals":
        left, right, closed = values
        return pd.IntervalIndex.from_arrays(read_categories(*left), read_categories(*right), closed=closed)
    dtype = read_type(written)
    if isinstance(dtype, pd.PeriodDtype):
        freq = str(dtype)[len("period[") : -1]
        return pd.PeriodIndex([pd.Period(ordinal=int(number), freq=freq) for number in values], dtype=dtype)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return pd.DatetimeIndex(np.asarray(values).view(f"M8[{dtype.unit}]")).tz_localize("UTC").tz_convert(dtype.tz)
    return pd.Index(read_objects(values), dtype=dtype)


def _arrow_bytes(dtype: Any) -> bytes:
    import pyarrow as pa

    return bytes(pa.schema([("column", dtype)]).serialize())


def _arrow_type(written: bytes) -> Any:
    import pyarrow as pa

    return pa.ipc.read_schema(pa.py_buffer(bytes(written))).field(0).type


def _polars_type(name: str, options: dict[str, Any]) -> Any:
    import polars as pl

    kind_of_polars = getattr(pl, str(name), None)
    if not (isinstance(kind_of_polars, type) and issubclass(kind_of_polars, pl.DataType)):
        raise ValueError(f"{name!r} is no type of polars.")
    return kind_of_polars(**options)
