"""What a library stores of a column, without the wrapping: a pandas array, a polars series or an Arrow array.

For a table of one row the wrapping is nearly all of the time (pandas takes
20 microseconds to make a series, narwhals 100 more), so a table is read
through this module, and series are made only for those who ask.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd


def library_of(thing: Any) -> str:
    """The library that a frame, a series or an array is of: "pandas", "polars", "pyarrow", "numpy" or another."""
    return _library_of_type(thing.__class__)


@lru_cache(maxsize=256)
def _library_of_type(kind: type) -> str:
    libraries = [base.__module__.partition(".")[0] for base in kind.__mro__]
    return next((name for name in libraries if name in ("pandas", "polars", "pyarrow", "numpy")), libraries[0])


def stored_in(series: nw.Series[Any]) -> Any:
    """What the library of a series stores; of other libraries than those three, as pandas would."""
    native = series.to_native()
    if series.implementation.is_polars() or series.implementation.is_pyarrow():
        return native
    if not isinstance(native, pd.Series):
        native = series.to_pandas()
    array = native.array
    return array.to_numpy() if isinstance(array, pd.arrays.NumpyExtensionArray) else array


def stored_columns(frame: Any) -> list[Any]:
    """What a pandas, polars or pyarrow frame stores, column by column; only to be read."""
    if isinstance(frame, pd.DataFrame):
        return _pandas_columns(frame)
    return list(frame.get_columns() if library_of(frame) == "polars" else frame.columns)


def _pandas_columns(frame: pd.DataFrame) -> list[Any]:
    at = getattr(frame, "_get_column_array", None)  # 2 microseconds a column; no public way takes less than 20
    if at is None:
        return [stored_in(series_at(frame, place)) for place in range(frame.shape[1])]
    return [at(place) for place in range(frame.shape[1])]


def series_at(frame: Any, place: int) -> nw.Series[Any]:
    """The column at a place as a narwhals series."""
    if isinstance(frame, pd.DataFrame):
        native = frame.iloc[:, place]
    elif library_of(frame) == "polars":
        native = frame.to_series(place)
    else:
        native = frame.column(place)
    return nw.from_native(native, series_only=True)


def wrapper_of(frame: Any, place: int) -> Any:
    """What makes the series at a place when it is called."""
    return partial(series_at, frame, place)


def arrow_in(stored: Any) -> Any:
    """The Arrow array that Arrow-backed pandas holds (pandas' `str` among them), or the one that this is; else None."""
    library = library_of(stored)
    if library == "pyarrow":
        return stored
    return getattr(stored, "_pa_array", None) if library == "pandas" else None


def objects_of(stored: Any) -> Any:
    """Objects of polars as an object array, as pandas has them; all else as it is."""
    if library_of(stored) != "polars" or not stored.dtype.is_object():
        return stored
    values = np.empty(len(stored), dtype=object)
    values[:] = stored.to_list()
    return values
