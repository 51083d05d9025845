"""The kind of a column: by its type, which is looked up once for each; by its values where that is "object"."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from tabsym.table.columns import Column, Kind
from tabsym.table.measure import DATES, DURATIONS
from tabsym.table.stored import library_of, series_at, stored_columns, wrapper_of

_NESTED = (nw.List, nw.Array, nw.Struct)
_SYMBOLIC = (nw.String, nw.Categorical, nw.Enum)
_TEMPORAL = (nw.Date, nw.Datetime, nw.Duration)
_ALL_MISSING = ("Null", "null", "null[pyarrow]")
_SAMPLE = 100  # objects that start with so many pieces of text are text: to look at all takes as long as to code them
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")


def columns_of(frame: Any, names: list[str], *, from_array: bool) -> tuple[Column, ...]:
    """The columns of a pandas, polars or pyarrow frame.

    Parameters
    ----------
    frame : frame
    names : list of str
    from_array : bool
        Whether the frame was made of an array, whose objects are numbers where they can be: all columns
        of an array have one type.
    """
    enums = _enums_of(frame)
    out = []
    for place, (name, stored) in enumerate(zip(names, stored_columns(frame), strict=True)):
        kind = Kind.SYMBOLIC if name in enums else _kind_of(name, stored, frame, place, from_array)
        out.append(Column.of_stored(name, kind, stored, wrapper_of(frame, place)))
    return tuple(out)


def _enums_of(frame: Any) -> set[str]:
    """The Enums of a polars frame: to ask one of them for its type makes Python text of all its categories."""
    if library_of(frame) != "polars":
        return set()
    from polars import Enum, selectors

    return set(frame.select(selectors.by_dtype(Enum)).columns)


def _kind_of(name: str, stored: Any, frame: Any, place: int, from_array: bool) -> Kind:
    dtype = stored.type if library_of(stored) == "pyarrow" else stored.dtype
    if isinstance(dtype, pd.CategoricalDtype):  # its hash would go through all categories
        return Kind.SYMBOLIC
    if isinstance(dtype, np.dtype) and dtype.kind == "O":
        return _kind_of_objects(name, stored, from_array=from_array)
    return kind_of_type(dtype) or _kind_by_values(name, series_at(frame, place))


@lru_cache(maxsize=512)
def kind_of_type(dtype: Any) -> Kind | None:
    """The kind of all columns of a library's type, but objects; None where only the values can say."""
    if str(dtype) in _ALL_MISSING:
        return Kind.SYMBOLIC
    if getattr(dtype, "kind", "") in ("m", "M"):  # of pandas: narwhals does not read all names of time zones
        return Kind.NUMERIC
    library = library_of(dtype)
    if library == "pyarrow":
        import pyarrow as pa

        empty = pa.chunked_array([], type=dtype)
    elif library == "polars":
        import polars as pl

        empty = pl.Series(dtype=dtype)
    else:
        empty = pd.Series([], dtype=dtype)
    return _kind_in_narwhals(nw.from_native(empty, series_only=True).dtype)


def _kind_in_narwhals(dtype: Any) -> Kind | None:
    if dtype == nw.Boolean:
        return Kind.BOOLEAN
    if dtype.is_numeric() or isinstance(dtype, _TEMPORAL):
        return Kind.NUMERIC
    return Kind.SYMBOLIC if isinstance(dtype, _SYMBOLIC) else None


def column_of_series(name: str, series: nw.Series[Any]) -> Column:
    """A column of some other library that narwhals reads."""
    return Column(name, _kind_in_narwhals(series.dtype) or _kind_by_values(name, series), series)


def _kind_by_values(name: str, series: nw.Series[Any]) -> Kind:
    """The kind where the type is of a rare sort, or a refusal."""
    dtype = series.dtype
    if isinstance(dtype, _NESTED):
        raise TypeError(f"Column {name!r} holds nested values ({dtype}); explode it or turn each value into a string.")
    native = series.to_native()
    if isinstance(native, pd.Series):
        if native.dtype.kind == "c":
            _refuse_complex(name)
        return Kind.NUMERIC if native.dtype.kind in "iuf" else Kind.SYMBOLIC
    if series.is_null().all():
        return Kind.SYMBOLIC
    raise TypeError(f"Column {name!r} has the type {dtype}, which is neither symbols nor numbers; convert it first.")


def _kind_of_objects(name: str, values: Any, *, from_array: bool) -> Kind:
    """Objects are symbols of one type, but dates and durations; numbers too where they come from an array."""
    if pd.api.types.infer_dtype(values[:_SAMPLE], skipna=True) == "string":
        return Kind.SYMBOLIC
    content = pd.api.types.infer_dtype(values, skipna=True)
    if content in ("mixed", "mixed-integer"):
        _refuse_content(name, values)
    if content == "complex":
        _refuse_complex(name)
    if content in (*DATES, *DURATIONS) or (from_array and content in _NUMBERS):
        return Kind.NUMERIC
    return Kind.SYMBOLIC


def _refuse_complex(name: str) -> None:
    raise ValueError(f"Complex data not supported: column {name!r} holds complex numbers; pass real columns.")


def _refuse_content(name: str, values: Any) -> None:
    present = [value for value in values.tolist() if not is_missing(value)]
    first = present[0]
    types = {type(value): value for value in reversed(present)}
    nested = [t for t in types if issubclass(t, (list, dict, set, tuple, np.ndarray))]
    if nested:
        raise TypeError(
            f"Column {name!r} holds nested values (such as {types[nested[0]]!r}); an argument must be a string "
            "or a number: turn each value into one."
        )
    if len(types) > 1:
        other = next(value for t, value in types.items() if t is not type(first))
        raise TypeError(
            f"Column {name!r} mixes types: {first!r} is {type(first).__name__} and {other!r} is "
            f"{type(other).__name__}; convert the column to one type, e.g. with astype(str)."
        )


def is_missing(value: Any) -> bool:
    """Whether one value is missing: None, NaN, NaT, NA."""
    return pd.api.types.is_scalar(value) and bool(pd.isna(value))
