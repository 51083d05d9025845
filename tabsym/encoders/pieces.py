"""Encoded rows in whatever container they come: named, cut, put together again.

An encoder may give a pandas, polars or pyarrow frame, an array or a sparse
matrix; the functions here are all that cross-fitting needs of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse


def is_frame(data: Any) -> bool:
    """Whether `data` is a dataframe of any library."""
    return isinstance(nw.from_native(data, pass_through=True), nw.DataFrame)


def take_rows(data: Any, rows: NDArray[Any]) -> Any:
    """The rows of a frame or array, in its own kind; pandas keeps its index."""
    if isinstance(data, pd.DataFrame):
        return data.iloc[rows]  # narwhals would refuse columns named by numbers
    if is_frame(data):
        return nw.from_native(_without_views(data), eager_only=True)[rows, :].to_native()
    return data[rows]


def _without_views(data: Any) -> Any:
    """An Arrow table whose columns of views are plain text and bytes: Arrow takes no rows of views."""
    if type(data).__module__.partition(".")[0] != "pyarrow":
        return data
    import pyarrow as pa

    plain = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    if not any(one.type in plain for one in data.schema):
        return data
    return data.cast(pa.schema([one.with_type(plain.get(one.type, one.type)) for one in data.schema]))


def column_names(data: Any, encoder: Any) -> list[Any]:
    """The names of the columns of `data`, made by the fitted `encoder`; numbers where nobody knows."""
    if isinstance(data, pd.DataFrame):
        return list(data.columns)
    if is_frame(data):
        return list(nw.from_native(data, eager_only=True).columns)
    names = list(encoder.get_feature_names_out()) if hasattr(encoder, "get_feature_names_out") else []
    return names if len(names) == data.shape[1] else list(range(data.shape[1]))


def pick_columns(data: Any, names: list[Any], wanted: list[Any]) -> Any:
    """The `wanted` ones of the columns called `names`, in that order."""
    if names == wanted:
        return data
    if isinstance(data, pd.DataFrame):
        return data[wanted]
    if is_frame(data):
        return nw.from_native(data, eager_only=True).select(wanted).to_native()
    place = {name: position for position, name in enumerate(names)}
    return data[:, [place[name] for name in wanted]]


def columns_of(data: Any) -> list[NDArray[Any]]:
    """The columns (n,) of a frame or array, none of a sparse matrix."""
    if sparse.issparse(data):
        return []
    if isinstance(data, pd.DataFrame):
        return [data.iloc[:, place].to_numpy() for place in range(data.shape[1])]
    if is_frame(data):
        frame = nw.from_native(data, eager_only=True)
        return [frame[name].to_numpy() for name in frame.columns]
    return list(np.asarray(data).T)


def with_untouched(out: Any, given: Any, encoded: Any) -> Any:
    """Rows `out`, with those columns of `encoded`, which has the same columns, that equal a column of `given`."""
    wanted = columns_of(given)
    same = [place for place, one in enumerate(columns_of(encoded)) if any(_is_same(one, other) for other in wanted)]
    if not same:
        return out
    if isinstance(out, pd.DataFrame):
        out = out.copy()
        for place in same:
            out.isetitem(place, encoded.iloc[:, place].array)
        return out
    if is_frame(out):
        frame, other = (nw.from_native(one, eager_only=True) for one in (out, encoded))
        return frame.with_columns(*(other[other.columns[place]] for place in same)).to_native()
    out = out.astype(np.result_type(out, encoded))
    out[:, same] = encoded[:, same]
    return out


def _is_same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    if one.dtype.kind in "biuf" and other.dtype.kind in "biuf":
        return np.array_equal(one.astype(np.float64), other.astype(np.float64), equal_nan=True)
    return pd.Series(one, dtype=object).equals(pd.Series(other, dtype=object))


def gather(pieces: Sequence[Any], order: NDArray[Any]) -> Any:
    """The pieces under each other, then the rows in `order`."""
    first = pieces[0]
    if isinstance(first, pd.DataFrame):
        return _stack_pandas(pieces).iloc[order]
    if is_frame(first):
        return _stack_frames(pieces)[order, :].to_native()
    if sparse.issparse(first):
        return sparse.vstack(pieces, format="csr")[order]
    return np.concatenate(pieces)[order]


def _stack_pandas(pieces: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Under each other, numbered anew; category columns get all pieces' categories (pandas would make objects)."""
    stacked = {}
    for name in pieces[0].columns:
        columns = [piece[name] for piece in pieces]
        if all(isinstance(column.dtype, pd.CategoricalDtype) for column in columns):
            categories = _united([column.cat.categories for column in columns])
            ordered = all(column.dtype == columns[0].dtype and column.cat.ordered for column in columns)
            dtype = pd.CategoricalDtype(categories, ordered=ordered)
            columns = [column.astype(dtype) for column in columns]
        stacked[name] = pd.concat(columns, ignore_index=True)
    return pd.DataFrame(stacked, index=range(sum(map(len, pieces))), copy=False)


def _united(all_categories: Sequence[pd.Index]) -> pd.Index:
    """Categories in order of first appearance."""
    out = all_categories[0]
    for categories in all_categories[1:]:
        out = out.append(categories.difference(out, sort=False))
    return out


def _stack_frames(pieces: Sequence[Any]) -> nw.DataFrame[Any]:
    """Under each other; columns whose types differ between pieces get one that holds them all."""
    frames = [nw.from_native(piece, eager_only=True) for piece in pieces]
    casts = {}
    for name in frames[0].columns:
        dtypes = [frame[name].dtype for frame in frames]
        if any(dtype != dtypes[0] for dtype in dtypes):
            casts[name] = _common_type([frame[name] for frame in frames])
    changes = [nw.col(name).cast(dtype) for name, dtype in casts.items()]
    return nw.concat([frame.with_columns(*changes) for frame in frames])


def _common_type(columns: Sequence[nw.Series[Any]]) -> Any:
    if all(column.dtype.is_numeric() for column in columns):
        return nw.Float64
    if all(isinstance(column.dtype, nw.Enum) for column in columns):
        return nw.Enum(list(dict.fromkeys(symbol for column in columns for symbol in column.cat.get_categories())))
    return nw.String
