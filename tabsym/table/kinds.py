"""The kind of a column: by its type, which is looked up once for each; by its values where that is "object".

What objects are depends on who asks, which is what `Objects` says. To encoders and wide models a
column of objects is symbols, as category_encoders has it, unless it holds booleans, or comes from an array,
all columns of which have one type. To the native boosters (`NativeCategories`) it is what its values are, so that
a column means the same in fit and in predict whatever type carries it.
"""

from __future__ import annotations

from decimal import Decimal
from enum import Enum
from functools import lru_cache
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.table.columns import Column, Kind
from tabsym.table.measure import DATES, DURATIONS
from tabsym.table.stored import library_of, objects_of, series_at, stored_columns, wrapper_of

_NESTED = (nw.List, nw.Array, nw.Struct)
_SYMBOLIC = (nw.String, nw.Categorical, nw.Enum)
_TEMPORAL = (nw.Date, nw.Datetime, nw.Duration)
_ALL_MISSING = ("Null", "null", "null[pyarrow]")
_SAMPLE = 100  # objects that start with so many pieces of text are text: to look at all takes as long as to code them
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")
_MIXED = ("mixed", "mixed-integer")
_RARE = {  # how types are called that narwhals does not know, or has no use for here
    "binary": Kind.SYMBOLIC,
    "large_binary": Kind.SYMBOLIC,
    "fixed_size_binary": Kind.SYMBOLIC,
    "decimal": Kind.NUMERIC,
}


class Objects(Enum):
    """What objects are, but dates, durations and decimals, which are numbers always, and booleans."""

    SYMBOLS = "symbols"
    NUMBERS = "numbers"  # where they can be, else symbols
    VALUES = "values"  # numbers of any sorts or symbols; polars' Object, bytes and wide decimals are read, too


def columns_of(frame: Any, names: list[str], objects: Objects) -> tuple[Column, ...]:
    """The columns of a pandas, polars or pyarrow frame.

    Parameters
    ----------
    frame : frame
    names : list of str
    objects : Objects
    """
    enums = _enums_of(frame)
    columns = stored_columns(frame)
    if objects is Objects.VALUES:
        columns = [objects_of(stored) for stored in columns]
    out = []
    for place, (name, stored) in enumerate(zip(names, columns, strict=True)):
        kind = Kind.SYMBOLIC if name in enums else _kind_of(name, stored, frame, place, objects)
        out.append(Column.of_stored(name, kind, stored, wrapper_of(frame, place)))
    return tuple(out)


def _enums_of(frame: Any) -> set[str]:
    """The Enums of a polars frame: to ask one of them for its type makes Python text of all its categories."""
    if library_of(frame) != "polars":
        return set()
    from polars import Enum, selectors

    return set(frame.select(selectors.by_dtype(Enum)).columns)


def _kind_of(name: str, stored: Any, frame: Any, place: int, objects: Objects) -> Kind:
    dtype = stored.type if library_of(stored) == "pyarrow" else stored.dtype
    if isinstance(dtype, pd.CategoricalDtype):  # its hash would go through all categories
        return Kind.SYMBOLIC
    if isinstance(dtype, np.dtype) and dtype.kind == "O":
        return _kind_of_objects(name, stored, objects)
    kind = kind_of_type(dtype)
    if kind is None and objects is Objects.VALUES:
        text = str(dtype).lower()
        kind = next((rare for start, rare in _RARE.items() if text.startswith(start)), None)
    return kind or _kind_by_values(name, series_at(frame, place))


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
    raise TypeError(
        f"Column {name!r} has the type {dtype}, which is neither categorical nor numeric; convert it first."
    )


def _kind_of_objects(name: str, values: Any, objects: Objects) -> Kind:
    """Objects are symbols of one type, or what `objects` says."""
    if pd.api.types.infer_dtype(values[:_SAMPLE], skipna=True) == "string":
        return Kind.SYMBOLIC
    content = pd.api.types.infer_dtype(values, skipna=True)
    if objects is Objects.VALUES and content in _MIXED:  # NaT is missing among numbers, too; decimals go with floats
        values = values[~np.asarray(pd.isna(values))]
        content = "floating" if all(map(_is_number, values)) else pd.api.types.infer_dtype(values)
    if content in _MIXED:
        _refuse_content(name, values)
    if content == "complex":
        _refuse_complex(name)
    if content in (*DATES, *DURATIONS, "decimal") or (objects is not Objects.SYMBOLS and content in _NUMBERS):
        return Kind.NUMERIC
    return Kind.BOOLEAN if content == "boolean" else Kind.SYMBOLIC


def _is_number(value: Any) -> bool:
    return isinstance(value, (Real, Decimal)) and not isinstance(value, bool)


def check_one_type(name: str, symbols: NDArray[Any]) -> None:
    """A `TypeError` where the symbols of a coded column are of several types, or nested.

    `read_table` sees no mixture that begins after the first text, and none in categories.
    """
    if pd.api.types.infer_dtype(symbols, skipna=True) in _MIXED and not all(map(_is_number, symbols)):
        _refuse_content(name, symbols)


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
