"""The feature columns as contenders get them: text, numbers and booleans, dates in parts; the same for later rows."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.encoders.dates import date_columns, day_and_month, format_of, moments_of, parts_that_vary
from tabsym.table import Kind, read_table

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
    table = read_table(frame, who="compare")
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
        raise ValueError(f"Column {name!r} contained numbers in training and now contains {_shown(value)}.") from None


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
            raise ValueError(f"Column {name!r} contained True and False in training and now contains {_shown(value)}.")
    return np.array(found, dtype=np.float64 if series.isna().any() else bool)


def _text(series: pd.Series) -> pd.Series:
    """Each value as text; whole numbers alike, whatever type they come in."""
    return pd.Series([None if pd.isna(value) else _word(value) for value in series.tolist()], dtype="str")


def _word(value: Any) -> str:
    if isinstance(value, _NUMBERS) and not isinstance(value, bool) and np.isfinite(float(value)):
        return f"{value:.0f}" if float(value).is_integer() else str(value)
    return str(value)


def _shown(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)
