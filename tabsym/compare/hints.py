"""Hints on columns: ids, codes stored as numbers, spellings that differ in case, outlying values.

A hint changes nothing; it names the option that would.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from tabsym.compare.words import listed
from tabsym.table.meaning import CODE_NAMES, MIN_ROWS, is_code, whole_values, words_of

_NEAR_UNIQUE = 0.95  # of the rows, so many different values: an id
_FAR_SHARE, _MAX_FAR_SHARE = 0.01, 0.5  # of the rows
_FAR_GAP, _FAR_GAP_OF_SENTINEL = 0.5, 0.1  # of the range of the other values
_SENTINEL = re.compile(r"-?9{2,}|-1|-[1-9]0*")


def hints(X: pd.DataFrame, target: pd.Series, *, classes: bool, taken: Sequence[str]) -> list[str]:
    """Sentences on features and target.

    Parameters
    ----------
    X : pandas.DataFrame
        The features, as they are read.
    target : pandas.Series of shape (n,)
        Without missing values.
    classes : bool
        Whether the target is taken as classes.
    taken : sequence of str
        Columns that the user decided on; nothing is asked about these.
    """
    said = _case(target, f"Classes of {target.name!r}") if classes else []
    if not classes and pd.api.types.is_numeric_dtype(target) and not pd.api.types.is_bool_dtype(target):
        said += _far(str(target.name), target)
    y = np.asarray(pd.factorize(target)[0] == 0 if classes else target, dtype=np.float64)
    ids, codes = [], []
    for name in X.columns:
        column = X[name]
        if name in taken or isinstance(column.dtype, pd.CategoricalDtype) or column.dtype == bool:
            continue
        if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
            said += _far(name, column)
            if _is_row_number(name, column):
                ids.append(name)
            elif is_code(name, column.to_numpy(dtype=np.float64, na_value=np.nan), y):
                codes.append(name)
        elif pd.api.types.infer_dtype(column, skipna=True) == "string":
            if len(column) >= MIN_ROWS and column.nunique() >= _NEAR_UNIQUE * len(column):
                ids.append(name)
            else:
                said += _case(column, f"Categories of column {name!r}")
    if ids:
        them, they = ("it", "it is") if len(ids) == 1 else ("them", "they are")
        said.append(
            f"{_columns(ids)} a different value in nearly every row, as ids have; if {they} not predictive, "
            f"leave {them} out: --drop {','.join(ids[:5])}."
        )
    if codes:
        said.append(
            f"{_columns(codes)} whole numbers that look like codes, and {'is' if len(codes) == 1 else 'are'} read as "
            f"numbers; if they are codes: --categorical {','.join(codes[:5])}."
        )
    return said


def _columns(names: Sequence[str]) -> str:
    return f"Column {names[0]!r} has" if len(names) == 1 else f"Columns {listed(names)} have"


def _is_row_number(name: str, column: pd.Series) -> bool:
    """Whether whole numbers are nearly all different, and name rows: dense, in order, or by the column's name."""
    values = whole_values(column.to_numpy(dtype=np.float64, na_value=np.nan))
    distinct = np.unique(values)
    if len(column) < MIN_ROWS or len(distinct) < _NEAR_UNIQUE * len(column):
        return False
    dense = distinct[-1] - distinct[0] < 2 * len(distinct)
    steps = np.diff(values)
    in_order = bool((steps > 0).all() or (steps < 0).all())
    return dense or in_order or CODE_NAMES.search(words_of(name)) is not None


def _case(column: pd.Series, what: str) -> list[str]:
    """Values that differ in case or in blanks at their ends only."""
    values = [value for value in column.dropna().unique() if isinstance(value, str)]
    by_folded: dict[str, list[str]] = {}
    for value in values:
        by_folded.setdefault(" ".join(value.split()).casefold(), []).append(value)
    same = [sorted(group) for group in by_folded.values() if len(group) > 1]
    if not same:
        return []
    shown = "; ".join(" and ".join(map(repr, group[:3])) for group in same[:5])
    more = f"; and {len(same) - 5:,} more" if len(same) > 5 else ""
    return [
        f"{what} differ in case or blanks only: {shown}{more}; if they mean the same, change the table so that they "
        "are equal."
    ]


def _far(name: str, column: pd.Series) -> list[str]:
    """A value that more than one row in a hundred has, far from all other values: often a code for missing."""
    values = column.dropna().to_numpy(dtype=np.float64)
    values = values[np.isfinite(values)]
    if len(values) < MIN_ROWS:
        return []
    for value, end in ((values.min(), -1), (values.max(), 1)):
        others = values[values != value]
        share = 1 - len(others) / len(values)
        if value == 0 or not _FAR_SHARE <= share <= _MAX_FAR_SHARE or len(np.unique(others[:1000])) < 3:
            continue
        low, high = others.min(), others.max()
        gap = low - value if end < 0 else value - high
        sentinel = _SENTINEL.fullmatch(f"{value:g}") is not None and (value > 0 or low >= 0)
        if gap > (_FAR_GAP_OF_SENTINEL if sentinel else _FAR_GAP) * max(high - low, 1e-300) and gap > 0:
            return [
                f"Column {name!r} has the value {value:g} in {share:.0%} of its rows, far from its other values "
                f"({low:g} to {high:g}); if it means missing: --na-values {name}={value:g}."
            ]
    return []
