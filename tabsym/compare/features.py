"""The feature columns as contenders get them: text, numbers and booleans, dates in parts; the same for later rows."""

from __future__ import annotations

import datetime
import numbers
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.table import Kind, read_table

_DATE_SHARE = 0.95
_DATE_FORMATS = ("ISO8601", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%d-%m-%Y")
_FEW_ROWS = 50
_NUMBERS = (numbers.Real, Decimal, np.number)


@dataclass(frozen=True)
class Features:
    """What each column is: "symbols", "number", "boolean", "moments", or the format of the dates it holds as text."""

    kinds: dict[str, str]

    def apply(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns as they were learned; one that is not there, or is something else now, is named.

        Raises
        ------
        ValueError
            A column is not there, or does not hold what it held.
        """
        columns: dict[str, Any] = {}
        for name, kind in self.kinds.items():
            if name not in frame.columns:
                raise ValueError(f"There is no column {name!r}, which the model was trained with.")
            columns |= _column(name, frame[name], kind, self.kinds)
        return pd.DataFrame(columns)

    @property
    def dates(self) -> list[str]:
        """Columns that hold dates."""
        return [name for name, kind in self.kinds.items() if kind not in ("symbols", "number", "boolean")]


def learn_features(frame: pd.DataFrame, symbolic: list[str], notes: list[str]) -> Features:
    """What each column is; what is left out or taken in parts is said in `notes`."""
    table = read_table(frame, who="compare")
    kinds: dict[str, str] = {}
    for column in table.columns:
        series = frame[column.name]
        if column.series.is_null().all():
            notes.append(f"Column {column.name!r} is empty and was left out.")
            continue
        kind = _kind_of(series, column.kind, column.name in symbolic)
        kinds[column.name] = kind
        if kind not in ("symbols", "number", "boolean"):
            notes.append(f"Column {column.name!r} holds dates: used as days, month and weekday.")
        elif kind == "symbols" and len(series) >= _FEW_ROWS and series.nunique() == len(series):
            notes.append(
                f"Column {column.name!r} has another symbol in every row, of which nothing can be learned; "
                f"leave it out: --drop {column.name}."
            )
    return Features(kinds)


def _kind_of(series: pd.Series, kind: Kind, as_symbols: bool) -> str:
    if as_symbols:
        return "symbols"
    if pd.api.types.is_datetime64_any_dtype(series) or _holds(series, datetime.date):
        return "moments"
    if kind is Kind.SYMBOLIC:
        if _holds(series, bool, np.bool_) and not series.isna().any():
            return "boolean"
        return "number" if _holds(series, *_NUMBERS) else date_format(_text(series)) or "symbols"
    if kind is Kind.BOOLEAN and not series.isna().any():
        return "boolean"
    return "number"


def _holds(series: pd.Series, *types: type) -> bool:
    """Whether a column of objects holds nothing but values of these types, and missing ones."""
    return series.dtype == object and all(isinstance(value, types) for value in series.dropna())


def _column(name: str, series: pd.Series, kind: str, taken: dict[str, str]) -> dict[str, Any]:
    if kind == "symbols":
        return {name: _text(series)}
    if kind == "boolean":
        return {name: _booleans(name, series)}
    if kind == "number":
        return {name: _numbers(name, series)}
    return _date_parts(name, _moments(name, series, kind), taken)


def _numbers(name: str, series: pd.Series) -> NDArray[np.float64]:
    column = read_table(series.to_frame(name), who="compare", allow_empty=True)[name]
    if column.kind is not Kind.SYMBOLIC:
        return np.asarray(column.values, dtype=np.float64)
    return np.array([_number(name, value) for value in series.tolist()], dtype=np.float64)


def _number(name: str, value: Any) -> float:
    if pd.isna(value):
        return np.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"Column {name!r} held numbers in training and now holds {_shown(value)}.") from None


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
            raise ValueError(f"Column {name!r} held True and False in training and now holds {_shown(value)}.")
    return np.array(found, dtype=np.float64 if series.isna().any() else bool)


def _moments(name: str, series: pd.Series, kind: str) -> pd.Series:
    """The dates of a column, in whatever type they come; a few that are none become missing."""
    present = series.dropna()
    if pd.api.types.is_datetime64_any_dtype(series):
        moments = series
    elif len(present) and (pd.api.types.is_numeric_dtype(series) or _holds(series, *_NUMBERS, bool)):
        raise ValueError(f"Column {name!r} held dates in training and now holds {_shown(present.iloc[0])}.")
    elif _holds(series, datetime.date):
        moments = _parsed(series, None)
    else:
        text = _text(series)
        moments = _parsed(text, kind if kind != "moments" else date_format(text) or "ISO8601")
    lost = (moments.isna().to_numpy() & series.notna().to_numpy()).nonzero()[0]
    if len(lost) > (1 - _DATE_SHARE) * len(present):
        raise ValueError(f"Column {name!r} held dates in training and now holds {_shown(series.iloc[lost[0]])}.")
    return moments


def _parsed(values: pd.Series, format_: str | None) -> pd.Series:
    try:
        moments = pd.to_datetime(values, format=format_, errors="coerce")
    except ValueError:  # offsets that differ
        moments = pd.to_datetime(values, format=format_, errors="coerce", utc=True)
    if not pd.api.types.is_datetime64_any_dtype(moments):
        moments = pd.to_datetime(values, format=format_, errors="coerce", utc=True)
    return moments


def _text(series: pd.Series) -> pd.Series:
    """Each value as text; whole numbers alike, whatever type they come in."""
    return pd.Series([None if pd.isna(value) else _word(value) for value in series.tolist()], dtype="str")


def _word(value: Any) -> str:
    if isinstance(value, _NUMBERS) and not isinstance(value, bool) and np.isfinite(float(value)):
        return f"{value:.0f}" if float(value).is_integer() else str(value)
    return str(value)


def _shown(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)


def date_format(text: pd.Series) -> str | None:
    """The format in which the text holds dates; None where it does not."""
    present = text.dropna()
    sample = present.head(200)
    looks = sample.str.contains(r"^\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}", regex=True)
    if not len(sample) or looks.mean() < _DATE_SHARE:
        return None
    for format_ in _DATE_FORMATS:
        if _parsed(present, format_).notna().sum() >= _DATE_SHARE * len(present):
            return format_
    return None


def _date_parts(name: str, moments: pd.Series, taken: dict[str, str]) -> dict[str, Any]:
    """Days, month and weekday, under names that no other column has."""
    moments = moments.dt.tz_localize(None) if moments.dt.tz is not None else moments
    days = (moments - pd.Timestamp(0)) / pd.Timedelta(days=1)
    month, weekday = f"{name} month", f"{name} weekday"
    while month in taken or weekday in taken:
        month, weekday = f"{month}'", f"{weekday}'"
    return {
        name: days.to_numpy(dtype=np.float64, na_value=np.nan),
        month: moments.dt.strftime("%m").astype("str").array,
        weekday: moments.dt.strftime("%a").astype("str").array,
    }
