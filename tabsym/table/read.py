"""Read any dataframe into a `Table`, and refuse what cannot be one, in a sentence.

pandas, polars, pyarrow and whatever else narwhals knows are taken as they are;
lazy frames are collected; a series, or a list of text, is a frame of one column;
arrays and nested lists get pandas columns named ``x0, x1, ...``. Nothing is copied
here but arrays.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils import check_array

from tabsym.table.columns import Table
from tabsym.table.kinds import Objects, column_of_series, columns_of
from tabsym.table.stored import library_of
from tabsym.table.streams import is_stream


def read_table(X: Any, *, who: str = "tabsym", allow_empty: bool = False, by_value: bool = False) -> Table:
    """Read `X` into named columns, symbolic, numeric or boolean.

    Parameters
    ----------
    X : dataframe, series, 2-D array or nested list, or text in one dimension
        pandas, polars (lazy too), pyarrow, or anything that narwhals reads. Text in one dimension is a column, as in
        category_encoders; numbers in one dimension are refused, as in scikit-learn.
    who : str
        Who asks, for messages.
    allow_empty : bool
        Whether a table of no rows is accepted (at transform: 0 rows out).
    by_value : bool
        Whether a column of objects is what its values are (numbers, booleans or symbols), as a column of
        their own type would be; else it is symbols, but for dates, durations and numbers of arrays.

    Returns
    -------
    Table

    Raises
    ------
    TypeError
        Sparse or complex input, a stream, nested values, mixed types in a column.
    ValueError
        No rows, no columns, duplicate column names, numbers in one dimension.
    """
    if by_value and isinstance(X, (list, tuple)):
        X = np.asarray(X, dtype=object)  # numpy would make text of the numbers in rows of both
    frame, names, named = _as_frame(X, who)
    n_rows = len(frame)
    if not names:
        raise ValueError(
            f"The table has 0 feature(s) (shape=({n_rows}, 0)) while a minimum of 1 is "
            f"required by {who}; pass at least one column."
        )
    if n_rows == 0 and not allow_empty:
        raise ValueError(
            f"The table has no rows: found array with 0 sample(s) while a minimum of 1 is required by {who}."
        )
    if isinstance(frame, nw.DataFrame):
        columns = tuple(column_of_series(name, frame[name]) for name in names)
        return Table(columns, n_rows, frame.to_native(), named)
    objects = Objects.VALUES if by_value else Objects.SYMBOLS if named else Objects.NUMBERS
    return Table(columns_of(frame, names, objects), n_rows, frame, named)


def _as_frame(X: Any, who: str) -> tuple[Any, list[str], bool]:
    """The frame of X, its column names, and whether those are the user's."""
    if isinstance(X, pd.DataFrame):
        return _named_frame(X)
    if not _is_read_as_it_is(X):
        _refuse_other_shapes(X, who)
        frame = nw.from_native(X, pass_through=True, allow_series=True)
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect()
        if isinstance(frame, nw.Series):
            return _frame_of_series(frame)
        if not isinstance(frame, nw.DataFrame):
            made = _frame_of_array(X, who)
            return made, list(made.columns), False
        X = frame.to_native()
        if isinstance(X, pd.DataFrame):
            return _named_frame(X)
        if not _is_read_as_it_is(X):
            return frame, frame.columns, True
    names = list(X.columns if library_of(X) == "polars" else X.column_names)
    _refuse_duplicates(names)
    return X, names, True


def _is_read_as_it_is(X: Any) -> bool:
    return nw.dependencies.is_polars_dataframe(X) or nw.dependencies.is_pyarrow_table(X)


def _refuse_other_shapes(X: Any, who: str) -> None:
    if sparse.issparse(X):
        raise TypeError(
            f"Sparse data was passed to {who}, but dense data is required: categories are coded from "
            "dataframe columns. Use X.toarray(), or pass the table from before one-hot encoding."
        )
    if is_stream(X):
        raise TypeError(
            f"{who} takes a table, and got a stream ({type(X).__name__}): pass a frame, as of dataset.to_table(), "
            "or one frame after another to partial_fit where there is one; the wide models fit streams."
        )


def _named_frame(X: pd.DataFrame) -> tuple[pd.DataFrame, list[str], bool]:
    """A pandas frame with text as column names, and whether they were text before."""
    names = X.columns.tolist()
    _refuse_duplicates(names)
    if all(isinstance(name, str) for name in names):
        return X, names, True
    _refuse_mixed_names(X.columns)
    names = [str(name) for name in names]
    _refuse_duplicates(names)
    return X.set_axis(names, axis=1), names, False


def _frame_of_series(series: nw.Series[Any]) -> tuple[Any, list[str], bool]:
    """A frame of one column, called as the series is; ``x0``, as in arrays, where it has no name."""
    if series.name not in (None, ""):
        return _as_frame(series.to_frame().to_native(), "")
    return series.alias("x0").to_frame().to_native(), ["x0"], False


def _frame_of_array(X: Any, who: str) -> pd.DataFrame:
    if _is_text(X):
        X = np.asarray(X, dtype=object)[:, None]
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


def _is_text(X: Any) -> bool:
    """Whether X is a list or array of one dimension that holds text and missing values, and some text."""
    if isinstance(X, np.ndarray):
        if X.ndim != 1 or X.dtype.kind not in "OUT":
            return False
    elif not isinstance(X, (list, tuple)):
        return False
    return pd.api.types.infer_dtype(list(X), skipna=True) == "string"


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
    if len(set(names)) < len(names):
        twice = [name for name, times in Counter(names).items() if times > 1]
        raise ValueError(f"Duplicate column name {twice[0]!r}: rename one of the columns so that every name is unique.")
