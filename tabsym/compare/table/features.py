"""The feature columns as contenders get them: text, numbers and booleans, dates in parts; the same for later rows.

Hints are on ids, codes stored as numbers, spellings that differ in case, and outlying values. A hint changes nothing;
it names the option that would.
"""

from __future__ import annotations

import numbers
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from shlex import quote
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.compare.table.retyping import word_of
from tabsym.compare.text import columns_that, listed
from tabsym.encoders.dates import date_columns, parts_that_vary
from tabsym.frame import Kind, read_table
from tabsym.frame.meaning import (
    CODE_NAMES,
    MIN_ROWS,
    check_later_cells,
    day_and_month,
    format_of,
    has_offsets,
    is_code,
    looks_like_dates,
    looks_like_times,
    moments_of,
    whole_values,
    words_of,
)
from tabsym.messages import plural

_NUMBERS = (numbers.Real, Decimal, np.number)


@dataclass(frozen=True)
class Features:
    """What each column is.

    `kinds`: "categories", "number", "boolean", "moments", or the format of the dates it holds as text.
    `parts`: of columns of dates, the parts that are used. `dayfirst`: as the user said of dates in text.
    """

    kinds: dict[str, str]
    parts: dict[str, list[str]] = field(default_factory=dict)
    dayfirst: bool | None = None

    def apply(self, frame: pd.DataFrame, *, later: bool = False) -> pd.DataFrame:
        """The columns of a table, prepared as in training; a warning says which cells of a `later` one do not fit.

        Raises
        ------
        ValueError
            A column is missing, or most of its cells have another type.
        """
        columns: dict[str, Any] = {}
        refuse_absent(frame, self.kinds)
        for name, kind in self.kinds.items():
            if name in self.parts:
                moments = moments_of(name, frame[name], kind, later=later, dayfirst=self.dayfirst)
                columns |= date_columns(name, moments, self.parts[name], self.kinds)
            elif kind == "categories":
                columns[name] = _text(frame[name])
            elif kind == "boolean":
                columns[name] = _booleans(name, frame[name])
            else:
                columns[name] = numbers_of(name, frame[name])
        return pd.DataFrame(columns)


def refuse_absent(frame: pd.DataFrame, names: Iterable[str]) -> None:
    """A `ValueError` where a table lacks columns of the training."""
    absent = [name for name in names if name not in frame.columns]
    if absent:
        several = f"are no columns {listed(absent)}" if len(absent) > 1 else f"is no column {absent[0]!r}"
        raise ValueError(f"There {several}, with which the model was trained; add what is missing to the table.")


def is_number(values: pd.Series) -> bool:
    """Whether a column holds numbers, booleans not among them."""
    return pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)


def without_infinity(frame: pd.DataFrame, categorical: Sequence[str], notes: list[str]) -> pd.DataFrame:
    """The columns with infinite numbers missing, as such words are in text; `categorical` ones stay as they are."""
    changed: dict[str, pd.Series] = {}
    for name in frame.columns:
        infinite = infinite_in(frame[name])
        if name in categorical or not infinite.any():
            continue
        changed[name], times = frame[name].mask(infinite), int(infinite.sum())
        cells = plural(times, "infinite value")
        notes.append(f"Column {name!r} has {cells}, which {'counts' if times == 1 else 'count'} as missing.")
    return frame.assign(**changed) if changed else frame


def infinite_in(series: pd.Series) -> pd.Series:
    """Which values (n,) of a column are infinite numbers."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        positions = np.flatnonzero(infinite_in(series.cat.categories.to_series()))
        return series.cat.codes.isin(positions)
    if series.dtype == object:
        return series.map(lambda value: isinstance(value, float | np.floating) and bool(np.isinf(value))).astype(bool)
    if series.dtype.kind != "f":
        return pd.Series(False, series.index)
    return pd.Series(np.isinf(series.to_numpy(dtype=np.float64, na_value=np.nan)), series.index)


def learn_features(
    frame: pd.DataFrame, categorical: Sequence[str], notes: list[str], *, dayfirst: bool | None = None,
    formats: Mapping[str, str] | None = None,
) -> Features:  # fmt: skip
    """What each column is; what is left out or taken in parts is said in `notes`.

    `formats`: those that text among the dates of columns had.
    """
    table = read_table(frame, caller="compare")
    kinds: dict[str, str] = {}
    parts: dict[str, list[str]] = {}
    for column in table.columns:
        name, series = column.name, frame[column.name]
        if column.series.is_null().all():
            notes.append(f"Column {name!r} has no values and is left out.")
            continue
        kind = _kind_of(series, column.kind, name in categorical, dayfirst)
        kinds[name] = kind = (formats or {}).get(name, kind)
        if kind not in ("categories", "number", "boolean"):
            moments = moments_of(name, series, kind)
            parts[name] = parts_that_vary(moments)
            notes.append(_note_of_dates(name, series, kind, moments, parts[name]))
        elif kind == "categories" and name not in categorical:
            notes += _note_of_text(name, _text(series))
    return Features(kinds, parts, dayfirst)


def _note_of_text(name: str, text: pd.Series) -> list[str]:
    """That text looks like dates, times or numbers among other signs, whose order is not used."""
    if looks_like_times(text):
        return [f"Column {name!r} contains times such as {text.dropna().iloc[0]!r} and is read as text; write hours or "
                "minutes as numbers to use their order."]  # fmt: skip
    if not looks_like_dates(text):
        return _note_of_numbers(name, text)
    cells = text.dropna().unique().tolist()
    by_shape = {re.sub(r"\d", "0", cell): cell for cell in reversed(cells)}
    shown = " and ".join(map(repr, list(dict.fromkeys([*reversed(by_shape.values()), *cells]))[:2]))
    return [f"Column {name!r} looks like dates but is read as text, as no known format fits all cells ({shown}); write "
            "them like 2024-02-29 to use them as dates."]  # fmt: skip


def _note_of_numbers(name: str, text: pd.Series) -> list[str]:
    """That nearly all cells are one number or two among the same few signs, as "#12", "No. 12", "10-20" or "2h 30m"."""
    cells = text.dropna()
    if cells.nunique() < _MIN_NUMBERS:
        return []
    shapes = cells.str.replace(_NUMBER, "0", regex=True).str.strip()
    usual = shapes.value_counts(normalize=True).head(_MAX_SHAPES)
    if usual.sum() < _MIN_SHAPED or not usual.index.str.contains("0").all() or usual.index.str.contains(_CODE).any():
        return []
    shown = cells[(shapes == usual.index[0]).to_numpy()].iloc[0]
    return [f"Column {name!r} has numbers among other signs, such as {shown!r}, and is read as text; write the numbers "
            "alone, in columns of their own, to use their order."]  # fmt: skip


def _note_of_dates(name: str, series: pd.Series, kind: str, moments: pd.Series, parts: list[str]) -> str:
    order, is_open = day_and_month(kind, _text(series)) if kind not in ("moments", "ISO8601") else ("", False)
    if is_open:
        option = "--no-dayfirst" if order.startswith("the day") else "--dayfirst"
        order += f", though all cells could be read the other way: {option}"
    lost = series[moments.isna().to_numpy() & series.notna().to_numpy()]
    cells = plural(len(lost), "cell that is not a date", "cells that are not dates")
    missing = f"; {cells} ({str(lost.iloc[0])!r}) as missing" if len(lost) else ""
    used = ", ".join(["days", *parts[:-1]]) + f" and {parts[-1]}"
    clock = "; its times are those of the local clock as written, without the offset from UTC"
    return (
        f"Column {name!r} contains dates{f' ({order})' if order else ''}: used as {used}"
        f"{clock if has_offsets(series) else ''}{missing}."
    )


def _kind_of(series: pd.Series, kind: Kind, as_categories: bool, dayfirst: bool | None) -> str:
    if as_categories:
        return "categories"
    if kind is Kind.CATEGORICAL:
        if _holds(series, bool, np.bool_) and not series.isna().any():
            return "boolean"
        if _holds(series, *_NUMBERS):
            return "number"
    date = format_of(series, dayfirst)
    if date is not None:
        return date
    if kind is Kind.CATEGORICAL:
        return "categories"
    return "boolean" if kind is Kind.BOOLEAN and not series.isna().any() else "number"


def _holds(series: pd.Series, *types: type) -> bool:
    """Whether a column of objects holds nothing but values of these types, and missing ones."""
    return series.dtype == object and all(isinstance(value, types) for value in series.dropna())


def numbers_of(name: str, series: pd.Series) -> NDArray[np.float64]:
    """The numbers (n,) of a column, in whatever type they come; others and infinite ones are missing (a warning)."""
    if series.dtype.kind == "m":
        series = series.dt.total_seconds()
    if not pd.api.types.is_numeric_dtype(series):
        return np.array(_converted(name, series, _finite, "numbers"), dtype=np.float64)
    infinite = infinite_in(series)
    check_later_cells(name, series[infinite].tolist(), int(series.notna().sum()), "finite numbers")
    return np.asarray(series.mask(infinite).to_numpy(dtype=np.float64, na_value=np.nan))


def _finite(value: Any) -> float:
    number = float(value)
    if np.isinf(number):
        raise ValueError
    return number


def _booleans(name: str, series: pd.Series) -> Any:
    """True and False, however they are written; of the type that has missing flags where some are."""
    words = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False}
    cells = _converted(name, series, lambda value: words[str(value).strip().lower()], "True and False")
    if all(isinstance(value, bool) for value in cells):
        return np.array(cells, dtype=bool)
    return pd.array([value if isinstance(value, bool) else None for value in cells], dtype="boolean")


def _converted(name: str, series: pd.Series, convert: Callable[[Any], Any], what: str) -> list[Any]:
    """Each cell converted; NaN where it is missing, or cannot be, which is warned of."""
    converted, lost = [], []
    for value in series.tolist():
        try:
            converted.append(np.nan if pd.isna(value) else convert(value))
        except (TypeError, ValueError, KeyError, OverflowError):
            converted.append(np.nan)
            lost.append(value)
    check_later_cells(name, lost, int(series.notna().sum()), what)
    return converted


def _text(series: pd.Series) -> pd.Series:
    """Each value as text; whole numbers alike, whatever type they come in."""
    return pd.Series([None if pd.isna(value) else word_of(value) for value in series.tolist()], dtype="str")


_NUMBER = r"\d+(?:[.,]\d+)*"
_CODE = r"[^\W\d_]0|^0+$|0.*0.*0"
"""Of cells without numbers in them: letters before digits, as in codes, digits alone, and three numbers or more."""
_MIN_NUMBERS, _MAX_SHAPES, _MIN_SHAPED = 10, 3, 0.95
_NEAR_UNIQUE = 0.95  # a column with more distinct values than this fraction of the rows is an id
_MIN_DATES = 10  # different numbers that may all be dates
_DATES_IN_NUMBERS = (
    ("%Y%m%d", 1900_01_01, 2100_12_31),
    ("", 946_684_800, 2_051_222_400),
    ("", 946_684_800e3, 2_051_222_400e3),
)
"""A format, "" for time since 1970, and the first and the last number: of the years 2000 to 2035 for time."""
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
    if not classes and is_number(target):
        said += _far(str(target.name), target)
    y = np.asarray(pd.factorize(target)[0] == 0 if classes else target, dtype=np.float64)
    ids, codes = [], []
    for name in X.columns:
        column = X[name]
        if name in taken or isinstance(column.dtype, pd.CategoricalDtype) or column.dtype == bool:
            continue
        if is_number(column):
            dates = _dates_in_numbers(name, column)
            said += dates or _far(name, column)
            if dates:
                continue
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
        have = columns_that(ids, "has", "have")
        them, they = ("it", "it is") if len(ids) == 1 else ("them", "they are")
        said.append(
            f"{have} a different value in nearly every row, as ids have; if {they} not predictive, leave {them} out: "
            f"--drop {quote(','.join(ids[:5]))}."
        )
    if codes:
        what = "whole numbers that look like codes, and"
        said.append(
            f"{columns_that(codes, f'has {what} is', f'have {what} are')} read as numbers; if they are codes: "
            f"--categorical {quote(','.join(codes[:5]))}."
        )
    return said


def _dates_in_numbers(name: str, column: pd.Series) -> list[str]:
    """That whole numbers may be dates: year, month and day in a row, or seconds or milliseconds since 1970."""
    values = np.unique(whole_values(column.to_numpy(dtype=np.float64, na_value=np.nan)))
    if len(values) < _MIN_DATES:
        return []
    for form, low, high in _DATES_IN_NUMBERS:
        if not low <= values[0] <= values[-1] <= high:
            continue
        if form:
            moments = pd.to_datetime(pd.Series(values).map("{:.0f}".format), format=form, errors="coerce")
        else:
            moments = pd.Series(pd.to_datetime(values, unit="s" if high < 1e12 else "ms"))
        if moments.notna().all():
            shown = f"{values[0]:.0f} for {moments[0]:%Y-%m-%d}"
            return [f"Column {name!r} has whole numbers that look like dates ({shown}) and is read as numbers; "
                    "if they are dates, write them like that."]  # fmt: skip
    return []


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
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    far = _far_value(
        values, lambda value, low: _SENTINEL.fullmatch(f"{value:g}") is not None and (value > 0 or low >= 0), but=0.0
    )
    if far is None:
        return []
    value, share, low, high = far
    return [_note_of_far(name, f"{value:g}", share, f"{low:g} to {high:g}", f"{value:g}")]


def far_dates(raw: pd.DataFrame, X: pd.DataFrame, dates: Sequence[str]) -> list[str]:
    """As `_far`, of dates: the first and the last days of years stand for "never" in many a table.

    Parameters
    ----------
    raw, X : pandas.DataFrame
        The columns as they are written, and as features, in days.
    dates : sequence of str
        Columns of dates.
    """
    said = []
    for name in dates:
        days = np.floor(X[name].to_numpy(dtype=np.float64))
        far = _far_value(days, lambda value, _: _day(value)[5:] in ("01-01", "12-30", "12-31"))
        if far is not None:
            value, share, low, high = far
            cell = raw[name].iloc[int(np.argmax(days == value))]
            written = cell.strip() if isinstance(cell, str) else _day(value)
            said.append(_note_of_far(name, _day(value), share, f"{_day(low)} to {_day(high)}", written))
    return said


def _day(days: float) -> str:
    return str(np.datetime64(int(days), "D"))


def _note_of_far(name: str, value: str, share: float, others: str, written: str) -> str:
    option = f"{name}={written}"
    return (
        f"Column {name!r} has the value {value} in {share:.0%} of its rows, far from its other values ({others}); if "
        f"it means missing: --na-values {quote(option)}."
    )


def _far_value(
    values: NDArray[np.float64], is_sentinel: Callable[[float, float], bool], *, but: float | None = None
) -> tuple[float, float, float, float] | None:
    """The smallest or largest value (n,) where it is frequent and far off, its share, and the range of the others.

    `is_sentinel` takes the value and the lowest of the others; `but` is never such a value.
    """
    values = values[np.isfinite(values)]
    if len(values) < MIN_ROWS:
        return None
    for value, end in ((values.min(), -1), (values.max(), 1)):
        others = values[values != value]
        share = 1 - len(others) / len(values)
        if value == but or not _FAR_SHARE <= share <= _MAX_FAR_SHARE or len(np.unique(others[:1000])) < 3:
            continue
        low, high = others.min(), others.max()
        gap = low - value if end < 0 else value - high
        limit = _FAR_GAP_OF_SENTINEL if is_sentinel(value, low) else _FAR_GAP
        if gap > limit * max(high - low, 1e-300) and gap > 0:
            return value, share, low, high
    return None
