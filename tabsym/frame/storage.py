"""What a library stores of a column (a pandas array, a polars series or an Arrow array), its type, and its numbers.

For a table of one row the wrapping is nearly all of the time (pandas takes
20 microseconds to make a series, narwhals 100 more), so a table is read
through this module, and series are made only for those who ask. Types are
looked up once for each type of a library, and are those of narwhals.

Numbers are float64: missing is NaN, dates and durations are days. Where the
type does not determine them (objects, categories, text), the values do:
numbers are read, and the first value that is none is refused with its row.
Text is never parsed: "1" may be a code.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PER_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
TOO_WIDE = ("Int128", "UInt128")  # polars' integers that numpy has not
_TEMPORAL = (nw.Date, nw.Datetime, nw.Duration)
DATES = ("date", "datetime", "datetime64")
"""What pandas calls objects that are dates."""
DURATIONS = ("timedelta", "timedelta64")


def library_of(thing: Any) -> str:
    """The library of a frame, a series, an array or a type: "pandas", "polars", "pyarrow", "numpy" or another."""
    return _library_of_class(thing.__class__)


@lru_cache(maxsize=256)
def _library_of_class(kind: type) -> str:
    libraries = [base.__module__.partition(".")[0] for base in kind.__mro__]
    return next((name for name in libraries if name in ("pandas", "polars", "pyarrow", "numpy")), libraries[0])


def as_given(values: Any) -> Any:
    """Lists, tuples and arrays of numpy as plain arrays of what they hold, missing values too; others as they are.

    numpy makes text of numbers and of missing values that stand next to text in a list, and shows what a mask hides;
    scikit-learn and pandas do not read its text of any length (StringDType), nor numbers with swapped bytes.
    """
    if isinstance(values, np.ma.MaskedArray):
        if not np.ma.getmaskarray(values).any():
            return values.data
        objects = values.data.astype(object)
        objects[values.mask] = None
        return objects
    if isinstance(values, np.ndarray):
        return values.astype(object) if values.dtype.kind == "T" else _usual(values)
    if not isinstance(values, (list, tuple)):
        return values
    array = np.asarray(values)
    if array.dtype.kind not in "US":
        return array
    objects = np.asarray(values, dtype=object)
    return array if pd.api.types.infer_dtype(objects.ravel(), skipna=False) in ("string", "bytes") else objects


def stored_in(series: nw.Series[Any]) -> Any:
    """What the library of a series stores; of other libraries than those three, as pandas would."""
    native = series.to_native()
    if series.implementation.is_polars() or series.implementation.is_pyarrow():
        return native
    if not isinstance(native, pd.Series):
        native = series.to_pandas()
    array = native.array
    return _usual(array.to_numpy() if isinstance(array, pd.arrays.NumpyExtensionArray) else array)


def _usual(array: Any) -> Any:
    """An array of pandas without what its hash tables and narwhals do not read: sparse values, swapped bytes."""
    if isinstance(array, pd.arrays.SparseArray):
        return array.to_dense()
    if isinstance(array, np.ndarray) and not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="))
    return array


def stored_columns(frame: Any) -> list[Any]:
    """What a pandas, polars or pyarrow frame stores, column by column; only to be read."""
    if not isinstance(frame, pd.DataFrame):
        return list(frame.get_columns() if library_of(frame) == "polars" else frame.columns)
    at = getattr(frame, "_get_column_array", None)  # 2 microseconds a column; no public way takes less than 20
    return [stored_in(series_at(frame, index)) if at is None else _usual(at(index)) for index in range(frame.shape[1])]


def series_at(frame: Any, index: int) -> nw.Series[Any]:
    """The column at an index as a narwhals series."""
    if isinstance(frame, pd.DataFrame):
        native = frame.iloc[:, index]
    else:
        native = frame.to_series(index) if library_of(frame) == "polars" else frame.column(index)
    return nw.from_native(native, series_only=True)


def arrow_in(stored: Any) -> Any:
    """The Arrow array that Arrow-backed pandas holds (pandas' `str` among them), or the one that this is; else None."""
    library = library_of(stored)
    if library == "pyarrow":
        return stored
    return getattr(stored, "_pa_array", None) if library == "pandas" else None


def object_array(values: Sequence[Any]) -> NDArray[Any]:
    """Values (n,) as an array of objects, whatever they are: numpy would look into them."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def dtype_of(stored: Any) -> Any:
    """The type as narwhals has it; objects are `Object`, whatever they are."""
    native = stored.type if library_of(stored) == "pyarrow" else stored.dtype
    if isinstance(native, pd.CategoricalDtype):  # its hash would go through all categories
        return nw.Categorical()
    return _dtype_in_narwhals(native)


@lru_cache(maxsize=512)
def _dtype_in_narwhals(native: Any) -> Any:
    if isinstance(native, pd.ArrowDtype):
        native = native.pyarrow_dtype
    if hasattr(native, "storage_type"):  # an extension type of Arrow, of whatever library, such as pandas' periods
        return nw.Unknown()
    library = library_of(native)
    if library == "pyarrow":
        import pyarrow as pa

        if pa.types.is_date64(native):  # which narwhals does not know, nor all decimals
            return nw.Date()
        if pa.types.is_decimal(native):
            return nw.Decimal()
        empty = pa.chunked_array([], type=native)
    elif library == "polars":
        import polars as pl

        empty = pl.Series(dtype=native)
    elif isinstance(native, pd.DatetimeTZDtype):  # narwhals does not read all names of time zones
        return nw.Datetime(native.unit, zone_name(native.tz))
    elif isinstance(native, np.dtype) and native.kind == "O":
        return nw.Object()
    else:
        empty = pd.Series([], dtype=native)
    return nw.from_native(empty, series_only=True).dtype


def zone_name(zone: Any) -> str | None:
    """The name by which pandas finds a time zone; UTC where it has none, as zones of dateutil do."""
    if zone is None:
        return None
    try:
        pd.Timestamp(0, tz=str(zone))
    except (KeyError, ValueError, TypeError, OSError):
        return "UTC"
    return str(zone)


@dataclass(frozen=True)
class Measure:
    """What the numbers of a column are: "numbers", "dates" or "durations"; `zone`: the time zone of dates, if any.

    Those of one text can be compared: dates of two zones, not dates with and without one.
    """

    name: str = "numbers"
    zone: str | None = None

    def __str__(self) -> str:
        return self.name if self.zone is None else f"{self.name} with a time zone"


NUMBERS = Measure()


def measure_of(stored: Any) -> Measure:
    """The measure of what a library stores; of categories, that of their values."""
    if isinstance(stored.dtype if library_of(stored) != "pyarrow" else None, pd.CategoricalDtype):
        return measure_of(stored.dtype.categories)
    arrow = arrow_in(stored)
    if arrow is not None and hasattr(arrow.type, "value_type"):
        dtype = _dtype_in_narwhals(arrow.type.value_type)
    else:
        dtype = dtype_of(stored)
    if isinstance(dtype, nw.Datetime):
        return Measure("dates", dtype.time_zone)
    if isinstance(dtype, (nw.Date, nw.Duration)):
        return Measure("dates" if isinstance(dtype, nw.Date) else "durations")
    content = pd.api.types.infer_dtype(stored, skipna=True) if isinstance(dtype, nw.Object) else ""
    if content in DURATIONS:
        return Measure("durations")
    if content not in DATES:
        return NUMBERS
    first = next((value for value in stored if not pd.isna(value)), None)
    return Measure("dates", zone_name(getattr(first, "tzinfo", None)))


def to_numbers(stored: Any, name: str) -> Floats:
    """The values (n,) of column `name`, locked: where they are float64 already they are the user's own memory.

    Raises
    ------
    ValueError
        Where a value is no number, with a message that names it and its row.
    """
    out = _converted(stored, name).view()
    out.flags.writeable = False
    return out


def moments_of(stored: Any) -> NDArray[Any] | None:
    """Dates or durations (n,) as numpy's, in UTC where they have a zone; None of what is neither by type or content."""
    if isinstance(dtype_of(stored), _TEMPORAL):
        if library_of(stored) == "polars":
            import polars as pl  # the caller holds a polars series, so it is there

            out: NDArray[Any] = (stored.cast(pl.Datetime("us")) if stored.dtype == pl.Date else stored).to_numpy()
            return out
        arrow = arrow_in(stored)
        return _without_zone(stored) if arrow is None else _numpy_of_arrow(arrow)
    is_object = isinstance(getattr(stored, "dtype", None), np.dtype) and stored.dtype == object
    return _moments_of_objects(stored) if is_object else None


def _moments_of_objects(values: NDArray[Any]) -> NDArray[Any] | None:
    content = pd.api.types.infer_dtype(values, skipna=True)
    if content in DATES:
        try:
            return _without_zone(pd.to_datetime(values, utc=True).array)
        except pd.errors.OutOfBoundsDatetime:  # pandas before 3 makes nanoseconds of all dates
            return np.array([_in_utc(value) for value in values], dtype="datetime64[us]")
    return pd.to_timedelta(values).to_numpy() if content in DURATIONS else None


def _in_utc(date: Any) -> Any:
    if pd.isna(date):
        return None
    return date if getattr(date, "tzinfo", None) is None else date.astimezone(datetime.UTC).replace(tzinfo=None)


def _converted(stored: Any, name: str) -> Floats:
    moments = moments_of(stored) if isinstance(dtype_of(stored), _TEMPORAL) else None
    if moments is not None:
        return days_of(moments)
    arrow = arrow_in(stored)
    if arrow is not None:
        return _of_arrow(arrow, name)
    if library_of(stored) == "polars":
        return _of_polars(stored, name)
    if isinstance(stored.dtype, pd.CategoricalDtype) or stored.dtype.kind not in "biuf":
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
    if pa.types.is_decimal(dtype):  # as its text: cast at once, 0.35 is a neighbour of 0.35
        arrow = arrow.cast(pa.string()).cast(pa.float64())
    elif pa.types.is_boolean(dtype):
        arrow = arrow.cast(pa.float64())
    elif not (pa.types.is_integer(dtype) or pa.types.is_floating(dtype)):
        return _of_objects(object_array(arrow.to_pylist()), name)
    return _floats(_numpy_of_arrow(arrow))


def _numpy_of_arrow(arrow: Any) -> NDArray[Any]:
    import pyarrow as pa

    return np.asarray(arrow.to_numpy() if isinstance(arrow, pa.ChunkedArray) else arrow.to_numpy(zero_copy_only=False))


def _of_polars(series: Any, name: str) -> Floats:
    import polars as pl  # the caller holds a polars series, so it is there

    dtype = series.dtype
    if (dtype.is_float() or dtype.is_integer()) and str(dtype) not in TOO_WIDE:
        return _floats(series.to_numpy())
    if dtype == pl.Boolean or dtype == pl.Decimal or str(dtype) in TOO_WIDE:
        return _floats(series.cast(pl.Float64).to_numpy())
    if dtype == pl.Null:
        return np.full(len(series), np.nan)
    return _of_objects(object_array(series.to_list()), name)


def _of_objects(values: NDArray[Any], name: str) -> Floats:
    """The numbers, or the moments, in an object array."""
    missing = np.asarray(pd.isna(values))
    out = np.full(len(values), np.nan)
    if missing.all():
        return out
    present = values[~missing]
    moments = _moments_of_objects(present)
    if moments is not None:
        out[~missing] = days_of(moments)
    elif pd.api.types.infer_dtype(present) in ("floating", "decimal", "boolean"):  # integers may be too large for numpy
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


def _without_zone(moments: Any) -> NDArray[Any]:
    """Moments of pandas as numpy's, in UTC where they have a zone."""
    if getattr(moments.dtype, "tz", None) is not None:
        moments = moments.tz_convert("UTC").tz_localize(None)
    return np.asarray(moments)


def days_of(moments: NDArray[Any]) -> Floats:
    """Days, in the unit that the moments have: nanoseconds would reach from 1677 to 2262 only."""
    unit, _ = np.datetime_data(moments.dtype)
    if unit not in PER_DAY:
        unit, moments = "s", moments.astype(f"{moments.dtype.kind}8[s]")
    whole, rest = np.divmod(moments.view(np.int64), PER_DAY[unit])
    return np.where(np.isnat(moments), np.nan, whole + rest / PER_DAY[unit])  # the same to the last bit in every unit
