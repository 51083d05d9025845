"""Whether the labels of rows agree: pandas' indexes of a table and of what goes with it row by row."""

from __future__ import annotations

from typing import Any

import pandas as pd


def check_same_rows(X: Any, **by_row: Any) -> None:
    """A `ValueError` where a series or frame of pandas has other row labels than the pandas table X.

    All else is matched by position: arrays, lists and other frames have no labels. Rows in another order
    are the danger: nothing else tells them from rows in order. A table numbered from 0 can have been made anew from
    rows of another (skrub does so for each column, and hands y on as it is); it has labels only where the other's are
    the same ones in another order.

    Parameters
    ----------
    X : table
    by_row : array-like of shape (n_rows,) or None
        By the name of the argument, for the message.

    Raises
    ------
    ValueError
        Names the first row whose labels differ. (Other lengths are told elsewhere.)
    """
    index = _labels(X)
    if index is None:
        return
    for name, values in by_row.items():
        other = _labels(values)
        if other is None or len(other) != len(index) or index.equals(other):
            continue
        if _is_numbered_anew(index) and not (other.is_unique and other.isin(index).all()):
            continue
        for row, (one, another) in enumerate(zip(index, other, strict=True)):
            if _differ(one, another):
                raise ValueError(
                    f"X and {name} have different indexes: row {row} is {one!r} in X and {another!r} in {name}; put "
                    f"them in one order with {name}.loc[X.index], or where their rows go together as they are pass "
                    f"{name}.to_numpy(), which has no labels."
                )


def _is_numbered_anew(index: pd.Index) -> bool:
    return isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(len(index)))


def check_length(y: Any, n_rows: int) -> None:
    """A `ValueError` where a target that is not looked at has another number of rows than the table."""
    if y is not None and hasattr(y, "__len__") and len(y) != n_rows:
        raise ValueError(f"The table has {n_rows} rows and y {len(y)}; transform does not need y: leave it out.")


def _differ(one: Any, another: Any) -> bool:
    missing = [bool(pd.isna(one)), bool(pd.isna(another))]
    return missing[0] != missing[1] if any(missing) else bool(one != another)


def _labels(data: Any) -> pd.Index | None:
    return data.index if isinstance(data, (pd.Series, pd.DataFrame)) else None
