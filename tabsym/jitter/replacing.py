"""Rows of a user's table with other categories in some columns: of the kind the user gave, its types kept.

A column that gets other categories is made longer by them, once; whatever rows and categories are asked for later are
then places in it, which every library takes by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.frame import Column, Table, library_of_frame, restored, type_of

Places = NDArray[np.integer]


@dataclass(frozen=True)
class Longer:
    """A column at a place of a table, with categories below its rows."""

    place: int
    values: Any
    n_rows: int

    def where(self, rows: Places, symbol: Places) -> Places:
        """Places of the categories asked for, by number; below 0 the row's own."""
        return np.where(symbol < 0, rows, self.n_rows + symbol)


def source_of(X: Any, table: Table) -> Any:
    """What rows are taken from: the user's own frame or array; of lists an array; of all else a frame of it."""
    if isinstance(X, np.ndarray) and X.ndim == 2:
        return X
    if isinstance(X, (list, tuple)) and len(X) and isinstance(X[0], (list, tuple, np.ndarray)):
        rows = np.empty((len(X), len(X[0])), dtype=object)
        rows[:] = [list(row) for row in X]
        return rows
    if isinstance(X, pd.DataFrame):
        return X
    native = table.native
    if library_of_frame(native) != "pandas" or isinstance(native, pd.DataFrame):
        return native
    return nw.from_native(native, eager_only=True).to_pandas()


def longer(source: Any, place: int, column: Column, symbols: Sequence[Any], known: set[Any]) -> Longer:
    """A column of the source with categories below; levels of its type that are not `known` are no longer there."""
    below = _objects(symbols)
    if isinstance(source, np.ndarray):
        return Longer(place, _of_array(source[:, place], below), len(source))
    kind, library = type_of(column), library_of_frame(source)
    made = {"pandas": _of_pandas, "polars": _of_polars, "pyarrow": _of_arrow}[library]
    return Longer(place, made(_at(source, place), below, kind, known), len(source))


def take(source: Any, rows: Places) -> Any:
    """Rows of a source."""
    if isinstance(source, pd.DataFrame):
        return source.iloc[rows]
    if library_of_frame(source) == "pyarrow":
        return source.take(rows)
    return source[rows]


def replaced(source: Any, rows: Places, columns: Sequence[Longer], symbols: Sequence[Places]) -> Any:
    """Rows of a source, each of the columns with the categories of these numbers (below 0: the row's own)."""
    part = take(source, rows)
    if isinstance(part, np.ndarray):
        part = part.astype(np.result_type(part, *(one.values for one in columns)))
    elif isinstance(part, pd.DataFrame):
        part = part.copy()
    for one, symbol in zip(columns, symbols, strict=True):
        part = _with_column(part, one, one.where(rows, symbol))
    return part


def without_strange_levels(source: Any, known: dict[int, set[Any]]) -> Any:
    """A source whose categories, of the columns at these places, are all known; the source itself where they are."""
    if not isinstance(source, pd.DataFrame):
        return source
    out = source
    for place, symbols in known.items():
        dtype = source.dtypes.iloc[place]
        if isinstance(dtype, pd.CategoricalDtype) and not set(dtype.categories) <= symbols:
            out = source.copy(deep=False) if out is source else out
            kept = [level for level in dtype.categories if level in symbols]
            levels = pd.Index(kept, dtype=dtype.categories.dtype)
            out.isetitem(place, source.iloc[:, place].cat.set_categories(levels).array)
    return out


def _with_column(part: Any, one: Longer, places: Places) -> Any:
    if isinstance(part, np.ndarray):
        part[:, one.place] = one.values[places]
        return part
    if isinstance(part, pd.DataFrame):
        column: Any = one.values.iloc[places].set_axis(part.index)  # as an array, objects would become text
        part.isetitem(one.place, column)
        return part
    if library_of_frame(part) == "polars":
        return part.with_columns(one.values.gather(places).alias(part.columns[one.place]))
    values, dtype = one.values.take(places), part.schema.field(one.place).type
    if _is_dictionary(dtype):
        values = values.dictionary_encode()
    return part.set_column(one.place, part.column_names[one.place], values)


def _at(source: Any, place: int) -> Any:
    if isinstance(source, pd.DataFrame):
        return source.iloc[:, place]
    return source.to_series(place) if library_of_frame(source) == "polars" else source.column(place)


def _objects(symbols: Sequence[Any]) -> NDArray[Any]:
    out = np.empty(len(symbols), dtype=object)
    out[:] = list(symbols)
    return out


def _of_array(values: NDArray[Any], below: NDArray[Any]) -> NDArray[Any]:
    if values.dtype == object:
        return np.concatenate([values, _with_missing_of(values, below)])
    if values.dtype.kind in "US" and not any(symbol is None for symbol in below):
        return np.concatenate([values, below.astype(values.dtype.kind)])
    if values.dtype.kind in "biuf":
        return np.concatenate([values, np.array([np.nan if one is None else one for one in below.tolist()])])
    return np.concatenate([values.astype(object), below])


def _with_missing_of(values: Any, below: NDArray[Any]) -> NDArray[Any]:
    """None as the missing value that a column of objects has, NaN where it has none."""
    empty = np.array([symbol is None for symbol in below], dtype=bool)
    if not empty.any():
        return below
    missing = pd.isna(values)
    out = below.copy()
    out[empty] = values[int(np.argmax(missing))] if missing.any() else np.nan
    return out


def _of_pandas(series: pd.Series, below: NDArray[Any], kind: Any, known: set[Any]) -> pd.Series:
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        levels = [level for level in dtype.categories if level in known]
        have = set(levels)
        levels += [symbol for symbol in below.tolist() if symbol is not None and symbol not in have]
        index = _index(levels, dtype.categories.dtype)
        more: Any = pd.Series(pd.Categorical(below, categories=index, ordered=dtype.ordered))
        series = series.cat.set_categories(index)
    elif pd.api.types.is_object_dtype(dtype):
        more = pd.Series(_with_missing_of(series.array, below), dtype=object)
    else:
        more = restored(below, kind, "pandas")
    return pd.concat([series, more], ignore_index=True)


def _index(levels: list[Any], dtype: Any) -> pd.Index:
    try:
        return pd.Index(levels, dtype=dtype)
    except (TypeError, ValueError):  # categories that the type of the levels cannot hold
        return pd.Index(levels, dtype=object)


def _of_polars(series: Any, below: NDArray[Any], kind: Any, known: set[Any]) -> Any:
    import polars as pl

    if isinstance(series.dtype, pl.Enum) and not set(below.tolist()) <= {None, *series.dtype.categories}:
        series, more = series.cast(pl.String), pl.Series(below.tolist(), dtype=pl.String)
    else:
        more = restored(below, kind, "polars")
    if series.dtype == pl.Null:
        series = series.cast(more.dtype)
    elif series.dtype != more.dtype:
        series, more = series.cast(pl.String), more.cast(pl.String)
    return pl.concat([series.alias("x"), more.alias("x")])


def _of_arrow(values: Any, below: NDArray[Any], kind: Any, known: set[Any]) -> Any:
    import pyarrow as pa

    more = restored(below, kind, "pyarrow")
    plain = values.type.value_type if _is_dictionary(values.type) else values.type
    if pa.types.is_null(plain):
        plain = more.type
    return pa.chunked_array([*values.cast(plain).chunks, *more.cast(plain).chunks], type=plain)


def _is_dictionary(dtype: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(dtype))
