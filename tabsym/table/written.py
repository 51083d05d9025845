"""Column types and symbols as plain values and back, for files that hold no code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

_POLARS_OPTIONS = {
    "Datetime": ("time_unit", "time_zone"),
    "Duration": ("time_unit",),
    "Decimal": ("precision", "scale"),
    "Enum": ("categories",),
}
"""What polars' types are made with, of those that have options and can be a column here."""


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
        categories = None if dtype.categories is None else _written_categories(dtype.categories)
        return ["categories", categories, bool(dtype.ordered)]
    if isinstance(dtype, pd.StringDtype):
        return ["text", dtype.storage, dtype.na_value is pd.NA]
    if isinstance(dtype, pd.ArrowDtype):
        return ["pandas arrow", _arrow_bytes(dtype.pyarrow_dtype)]
    return ["pandas", str(dtype)]


def read_type(written: list[Any]) -> Any:
    """The type again.

    Raises
    ------
    ValueError
        It is none.
    """
    kind, *rest = written
    if kind == "numpy":
        return np.dtype(str(rest[0]))
    if kind == "categories":
        return pd.CategoricalDtype(None if rest[0] is None else _read_categories(*rest[0]), rest[1])
    if kind == "text":
        return pd.StringDtype(rest[0], na_value=pd.NA if rest[1] else np.nan)
    if kind == "pandas":
        return pd.api.types.pandas_dtype(str(rest[0]))
    if kind == "arrow":
        return _arrow_type(rest[0])
    if kind == "pandas arrow":
        return pd.ArrowDtype(_arrow_type(rest[0]))
    if kind == "polars":
        return _polars_type(*rest)
    raise ValueError(f"{kind!r} is no kind of column type.")


def written_symbols(symbols: NDArray[Any]) -> NDArray[Any]:
    """Symbols (l,), those that are pandas' own as lists, which no symbol is."""
    return _each(_written_symbol, symbols) if {type(one) for one in symbols} & _PANDAS else symbols


def read_symbols(written: NDArray[Any]) -> NDArray[Any]:
    """The symbols (l,) again."""
    return _each(_read_symbol, written) if any(type(one) is list for one in written) else written


def written_list(symbols: list[Any]) -> list[Any]:
    """The same of a list."""
    return [_written_symbol(symbol) for symbol in symbols]


def read_list(written: list[Any]) -> list[Any]:
    """The list again."""
    return [_read_symbol(one) for one in written]


_PANDAS = {pd.Timestamp, pd.Timedelta, pd.Period, pd.Interval}


def _each(change: Callable[[Any], Any], values: NDArray[Any]) -> NDArray[Any]:
    out = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        out[place] = change(value)
    return out


def _written_symbol(symbol: Any) -> Any:
    if isinstance(symbol, pd.Timestamp):
        return ["moment", int(symbol.asm8.view("i8")), symbol.unit, None if symbol.tz is None else str(symbol.tz)]
    if isinstance(symbol, pd.Timedelta):
        return ["duration", int(symbol.asm8.view("i8")), symbol.unit]
    if isinstance(symbol, pd.Period):
        return ["period", int(symbol.ordinal), symbol.freqstr]
    if isinstance(symbol, pd.Interval):
        return ["interval", _written_symbol(symbol.left), _written_symbol(symbol.right), symbol.closed]
    return symbol


def _read_symbol(written: Any) -> Any:
    if type(written) is not list:
        return written
    kind, *rest = written
    if kind == "moment":
        moment = pd.Timestamp(np.datetime64(rest[0], rest[1]))
        return moment if rest[2] is None else moment.tz_localize("UTC").tz_convert(rest[2])
    if kind == "duration":
        return pd.Timedelta(np.timedelta64(rest[0], rest[1]))
    if kind == "period":
        return pd.Period(ordinal=rest[0], freq=rest[1])
    if kind == "interval":
        return pd.Interval(_read_symbol(rest[0]), _read_symbol(rest[1]), rest[2])
    raise ValueError(f"{kind!r} is no kind of category.")


def _written_categories(categories: pd.Index) -> list[Any]:
    """Values and their type; intervals by their bounds."""
    if isinstance(categories, pd.IntervalIndex):
        left, right = _written_categories(categories.left), _written_categories(categories.right)
        return [[left, right, categories.closed], "intervals"]
    if isinstance(categories.dtype, np.dtype) and categories.dtype != object:
        return [categories.to_numpy(), ["numpy", categories.dtype.str]]
    if isinstance(categories, (pd.DatetimeIndex, pd.PeriodIndex)):
        return [categories.asi8, written_type(categories.dtype, "pandas")]
    symbols = written_symbols(categories.astype(object).to_numpy())
    return [symbols, written_type(categories.dtype, "pandas")]


def _read_categories(values: Any, written: Any) -> pd.Index:
    if written == "intervals":
        left, right, closed = values
        return pd.IntervalIndex.from_arrays(_read_categories(*left), _read_categories(*right), closed=closed)
    dtype = read_type(written)
    if isinstance(dtype, pd.PeriodDtype):
        freq = str(dtype)[len("period[") : -1]
        return pd.PeriodIndex([pd.Period(ordinal=int(one), freq=freq) for one in values], dtype=dtype)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return pd.DatetimeIndex(np.asarray(values).view(f"M8[{dtype.unit}]")).tz_localize("UTC").tz_convert(dtype.tz)
    return pd.Index(read_symbols(values), dtype=dtype)


def _arrow_bytes(dtype: Any) -> bytes:
    import pyarrow as pa

    return bytes(pa.schema([("column", dtype)]).serialize())


def _arrow_type(written: bytes) -> Any:
    import pyarrow as pa

    return pa.ipc.read_schema(pa.py_buffer(bytes(written))).field(0).type


def _polars_type(name: str, options: dict[str, Any]) -> Any:
    import polars as pl

    found = getattr(pl, str(name), None)
    if not (isinstance(found, type) and issubclass(found, pl.DataType)):
        raise ValueError(f"{name!r} is no type of polars.")
    return found(**options)
