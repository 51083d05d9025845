"""Read any dataframe into a `Table`, and refuse what cannot be one, in a sentence.

pandas, polars, pyarrow and whatever else narwhals knows are taken as they are;
lazy frames are collected; arrays and nested lists get pandas columns named
``x0, x1, ...``. Nothing is copied here but arrays.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils import check_array

from tabsym.table.columns import Column, Kind, Table
from tabsym.table.streams import is_stream

_NESTED = (nw.List, nw.Array, nw.Struct)
_SYMBOLIC = (nw.String, nw.Categorical, nw.Enum)
_TEMPORAL = (nw.Date, nw.Datetime, nw.Duration)


def read_table(X: Any, *, who: str = "tabsym", allow_empty: bool = False) -> Table:
    """Read `X` into named columns, symbolic, numeric or boolean.

    Parameters
    ----------
    X : dataframe, 2-D array or nested list
        pandas, polars (lazy too), pyarrow, or anything that narwhals reads.
    who : str
        Who asks, for messages.
    allow_empty : bool
        Whether a table of no rows is accepted (at transform: 0 rows out).

    Returns
    -------
    Table

    Raises
    ------
    TypeError
        Sparse or complex input, a stream, nested values, mixed types in a column.
    ValueError
        No rows, no columns, duplicate column names, one-dimensional input.
    """
    frame, named = _as_frame(X, who)
    native = frame.to_native()
    names = frame.columns
    if not names:
        raise ValueError(
            f"The table has 0 feature(s) (shape=({len(frame)}, 0)) while a minimum of 1 is "
            f"required by {who}; pass at least one column."
        )
    if len(frame) == 0 and not allow_empty:
        raise ValueError(
            f"The table has no rows: found array with 0 sample(s) while a minimum of 1 is required by {who}."
        )
    columns = tuple(_column(name, frame[name], from_array=not named) for name in names)
    return Table(columns=columns, n_rows=len(frame), native=native, named=named)


def _as_frame(X: Any, who: str) -> tuple[nw.DataFrame[Any], bool]:
    """The narwhals frame of X, and whether its column names are the user's."""
    if sparse.issparse(X):
        raise TypeError(
            f"Sparse data was passed to {who}, but dense data is required: symbols are coded from "
            "dataframe columns. Use X.toarray(), or pass the table from before one-hot encoding."
        )
    if is_stream(X):
        raise TypeError(
            f"{who} takes a table, and got a stream ({type(X).__name__}): pass a frame, as of dataset.to_table(), "
            "or one frame after another to partial_fit where there is one; the wide models fit streams."
        )
    if isinstance(X, pd.DataFrame):
        _refuse_duplicates(list(X.columns))
        if not all(isinstance(name, str) for name in X.columns):
            _refuse_mixed_names(X.columns)
            X = X.set_axis([str(name) for name in X.columns], axis=1)
            _refuse_duplicates(list(X.columns))
            return nw.from_native(X, eager_only=True), False
        return nw.from_native(X, eager_only=True), True
    if type(X).__module__.startswith("pyarrow"):  # narwhals would say it in other words
        _refuse_duplicates(list(getattr(X, "column_names", [])))
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, nw.DataFrame):
        return frame, True
    return nw.from_native(_frame_of_array(X, who), eager_only=True), False


def _frame_of_array(X: Any, who: str) -> pd.DataFrame:
    if isinstance(X, pd.Series) or isinstance(nw.from_native(X, pass_through=True, allow_series=True), nw.Series):
        raise ValueError(
            f"Expected 2D array, got a single column (Series) instead; {who} takes a table: pass a frame of one column."
        )
    array = check_array(
        X,
        dtype=None,
        ensure_all_finite=False,
        ensure_min_samples=0,
        ensure_min_features=0,
        estimator=who,
    )
    frame = pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])])
    return frame.infer_objects() if array.dtype == object else frame


def _refuse_mixed_names(names: pd.Index) -> None:
    if any(isinstance(name, str) for name in names):
        kinds = sorted({type(name).__name__ for name in names})
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your "
            f"input has {kinds} as feature name / column name types. If you want feature names to "
            "be stored and validated, you must convert them all to strings, by using "
            "X.columns = X.columns.astype(str) for example."
        )


def _refuse_duplicates(names: list[Any]) -> None:
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ValueError(f"Duplicate column name {twice[0]!r}: rename one of the columns so that every name is unique.")


def _column(name: str, series: nw.Series[Any], *, from_array: bool) -> Column:
    dtype = series.dtype
    if isinstance(dtype, _NESTED):
        raise TypeError(f"Column {name!r} holds nested values ({dtype}); explode it or turn each value into a string.")
    if dtype == nw.Boolean:
        return Column(name, Kind.BOOLEAN, series)
    if dtype.is_numeric() or isinstance(dtype, _TEMPORAL):
        return Column(name, Kind.NUMERIC, series)
    if isinstance(dtype, _SYMBOLIC):
        return Column(name, Kind.SYMBOLIC, series)
    native = series.to_native()
    if isinstance(native, pd.Series):
        if native.dtype.kind == "c":
            raise ValueError(f"Complex data not supported: column {name!r} holds complex numbers; pass real columns.")
        if native.dtype == object:
            return _object_column(name, native, from_array=from_array)
        return Column(name, Kind.NUMERIC if native.dtype.kind in "iuf" else Kind.SYMBOLIC, series)
    if series.is_null().all():  # polars Null, arrow null
        return Column(name, Kind.SYMBOLIC, series.cast(nw.String))
    raise TypeError(f"Column {name!r} has the type {dtype}, which is neither symbols nor numbers; convert it first.")


def _object_column(name: str, native: pd.Series, *, from_array: bool) -> Column:
    """An object column: symbols of one type; numbers where it came from an array."""
    content = pd.api.types.infer_dtype(native, skipna=True)
    if content in ("mixed", "mixed-integer"):
        _refuse_content(name, native)
    if content == "complex":
        raise ValueError(f"Complex data not supported: column {name!r} holds complex numbers; pass real columns.")
    if from_array and content in ("integer", "floating", "mixed-integer-float", "decimal"):
        native = native.astype(np.float64)
        return Column(name, Kind.NUMERIC, nw.from_native(native, series_only=True))
    return Column(name, Kind.SYMBOLIC, nw.from_native(native, series_only=True))


def _refuse_content(name: str, native: pd.Series) -> None:
    present = native.dropna()
    first = present.iloc[0]
    types = {type(value): value for value in present.iloc[::-1]}
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
