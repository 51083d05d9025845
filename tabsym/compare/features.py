"""The feature columns as contenders get them: text, numbers and booleans, dates in parts; the same for later rows.

Hints are on ids, codes stored as numbers, spellings that differ in case, and outlying values. A hint changes nothing;
it names the option that would.
"""

from __future__ import annotations

import numbers
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.compare.text import listed
from tabsym.encoders.dates import date_columns, day_and_month, format_of, moments_of, parts_that_vary, shown_value
from tabsym.frame import Kind, read_table
from tabsym.frame.meaning import CODE_NAMES, MIN_ROWS, is_code, whole_values, words_of

_NUMBERS = (numbers.Real, Decimal, np.number)


@dataclass(frozen=True)
class Features:
    """What each column is.

    `kinds`: "categories" (categories), "number", "boolean", "moments", or the format of the dates it holds as text.
    `parts`: of columns of dates, the parts that are used.
    """

    kinds: dict[str, str]
    parts: dict[str, list[str]] = field(default_factory=dict)

    def apply(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns of a table, prepared as in training.

        Raises
        ------
        ValueError
            A column is missing, or its values have another type.
        """
        columns: dict[str, Any] = {}
        for name, kind in self.kinds.items():
            if name not in frame.columns:
                raise ValueError(f"There is no column {name!r}, with which the model was trained.")
            if name in self.parts:
                columns |= date_columns(name, moments_of(name, frame[name], kind), self.parts[name], self.kinds)
            else:
                columns[name] = _column(name, frame[name], kind)
        return pd.DataFrame(columns)

    @property
    def dates(self) -> list[str]:
        """Columns that hold dates."""
        return list(self.parts)


def learn_features(
    frame: pd.DataFrame, categorical: Sequence[str], notes: list[str], *, dayfirst: bool | None = None
) -> Features:
    """What each column is; what is left out or taken in parts is said in `notes`."""
    table = read_table(frame, caller="compare")
    kinds: dict[str, str] = {}
    parts: dict[str, list[str]] = {}
    for column in table.columns:
        name, series = column.name, frame[column.name]
        if column.series.is_null().all():
            notes.append(f"Column {name!r} has no values and is left out.")
            continue
        kinds[name] = kind = _kind_of(series, column.kind, name in categorical, dayfirst)
        if kind not in ("categories", "number", "boolean"):
            moments = moments_of(name, series, kind)
            parts[name] = parts_that_vary(moments)
            notes.append(_note_of_dates(name, series, kind, moments, parts[name]))
    return Features(kinds, parts)


def _note_of_dates(name: str, series: pd.Series, kind: str, moments: pd.Series, parts: list[str]) -> str:
    order = day_and_month(kind, _text(series)) if kind not in ("moments", "ISO8601") else ""
    lost = series[moments.isna().to_numpy() & series.notna().to_numpy()]
    cells = "1 cell that is not a date" if len(lost) == 1 else f"{len(lost):,} cells that are not dates"
    missing = f"; {cells} ({str(lost.iloc[0])!r}) as missing" if len(lost) else ""
    used = ", ".join(["days", *parts[:-1]]) + f" and {parts[-1]}"
    return f"Column {name!r} contains dates{f' ({order})' if order else ''}: used as {used}{missing}."


def _kind_of(series: pd.Series, kind: Kind, as_categories: bool, dayfirst: bool | None) -> str:
    if as_categories:
        return "categories"
    if kind is Kind.SYMBOLIC:
        if _holds(series, bool, np.bool_) and not series.isna().any():
            return "boolean"
        if _holds(series, *_NUMBERS):
            return "number"
    date = format_of(series, dayfirst)
    if date is not None:
        return date
    if kind is Kind.SYMBOLIC:
        return "categories"
    return "boolean" if kind is Kind.BOOLEAN and not series.isna().any() else "number"


def _holds(series: pd.Series, *types: type) -> bool:
    """Whether a column of objects holds nothing but values of these types, and missing ones."""
    return series.dtype == object and all(isinstance(value, types) for value in series.dropna())


def _column(name: str, series: pd.Series, kind: str) -> Any:
    if kind == "categories":
        return _text(series)
    return _booleans(name, series) if kind == "boolean" else _numbers(name, series)


def _numbers(name: str, series: pd.Series) -> NDArray[np.float64]:
    column = read_table(series.to_frame(name), caller="compare", allow_empty=True)[name]
    if column.kind is not Kind.SYMBOLIC:
        return np.asarray(column.values, dtype=np.float64)
    return np.array([_number(name, value) for value in series.tolist()], dtype=np.float64)


def _number(name: str, value: Any) -> float:
    if pd.isna(value):
        return np.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"Column {name!r} contained numbers in training and now contains {shown_value(value)}."
        ) from None


def _booleans(name: str, series: pd.Series) -> NDArray[Any]:
    """True and False, however they are written; numbers where some are missing."""
    words = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False}
    found: list[Any] = []
    for value in series.tolist():
        if pd.isna(value):
            found.append(np.nan)
        elif str(value).strip().lower() in words:
            found.append(words[str(value).strip().lower()])
        else:
            raise ValueError(
                f"Column {name!r} contained True and False in training and now contains {shown_value(value)}."
            )
    return np.array(found, dtype=np.float64 if series.isna().any() else bool)


def _text(series: pd.Series) -> pd.Series:
    """Each value as text; whole numbers alike, whatever type they come in."""
    return pd.Series([None if pd.isna(value) else _word(value) for value in series.tolist()], dtype="str")


def _word(value: Any) -> str:
    if isinstance(value, _NUMBERS) and not isinstance(value, bool) and np.isfinite(float(value)):
        return f"{value:.0f}" if float(value).is_integer() else str(value)
    return str(value)


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
