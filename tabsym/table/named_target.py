"""A target that is named instead of passed: a column of the table, which is no feature then."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw

from tabsym.table.streams import is_stream


def split_target(X: Any, y: Any, who: str = "tabsym") -> tuple[Any, Any]:
    """The features and the target, where `y` is the name of a column of `X`; else both as they are.

    A lazy frame is collected once, so that features and target are of the same rows in the same order: two collects
    of an engine without row order need not agree.

    Parameters
    ----------
    X : dataframe, or a lazy frame of any library that narwhals reads
    y : str or array-like of shape (n_rows,)

    Raises
    ------
    ValueError
        There is no such column.
    TypeError
        `X` is no table with names, or `y` is lazy.
    """
    if not isinstance(y, str):
        if y is not None and _is_lazy(y):
            raise TypeError(f"y is lazy ({type(y).__name__}); name its column instead: {who}().fit(table, 'NAME').")
        return X, y
    if is_stream(X):
        return X, y
    frame = nw.from_native(X, pass_through=True)
    if not isinstance(frame, (nw.DataFrame, nw.LazyFrame)):
        raise TypeError(f"y={y!r} names a column, and X is no table with names; pass y as an array.")
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if y not in frame.columns:
        names = ", ".join(map(repr, frame.columns[:5]))
        raise ValueError(f"There is no column {y!r} to predict; the table's first columns are {names}.")
    return frame.drop(y).to_native(), frame[y].to_native()


def _is_lazy(y: Any) -> bool:
    return isinstance(nw.from_native(y, pass_through=True, allow_series=True), nw.LazyFrame)
