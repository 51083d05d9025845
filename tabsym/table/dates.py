"""Dates: the format in which text holds them, and the parts of a moment that models use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tabsym.table.missing import means_missing

MIN_DATE_SHARE = 0.95
"""Of the cells of a column of dates; the others become missing."""
PARTS = ("month", "week", "weekday", "hour", "minute")
"""Parts of a moment besides its day, in this order."""

_DAYS = ("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%m-%d-%Y", "%d-%m-%Y", "%Y.%m.%d", "%d.%m.%y", "%m/%d/%y",
         "%d/%m/%y", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y",
         "%a, %d %b %Y")  # fmt: skip
_TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p", "T%H:%M", "T%H:%M:%S", ", %H:%M")
_CODES = {"month": "%m", "week": "%V", "weekday": "%a", "hour": "%H", "minute": "%M"}
_SAMPLE = 200
_STARTS = (
    r"^\s*(?:\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{1,2}[ -][A-Za-z]{3,9}[ -]\d{2,4}|[A-Za-z]{3,9},? \d{1,2},? "
    r"(?:[A-Za-z]{3,9} )?\d{4})"
)


def date_format(text: pd.Series, dayfirst: bool | None = None) -> str | None:
    """The format in which text holds dates; None where it does not.

    Parameters
    ----------
    text : pandas.Series of shape (n,)
    dayfirst : bool, optional
        Whether 03/04 is the third of April. By default the format is taken under which most cells are dates, in a tie
        the one with the month first for slashes, with the day first for points and hyphens.
    """
    present = without_words(text).dropna()
    sample = present.head(_SAMPLE)
    if not len(sample) or sample.str.contains(_STARTS, regex=True).mean() < MIN_DATE_SHARE:
        return None
    for format_ in _candidates(sample, dayfirst):
        if parse_dates(present, format_).notna().sum() >= MIN_DATE_SHARE * len(present):
            return format_
    return None


def _candidates(sample: pd.Series, dayfirst: bool | None) -> list[str]:
    """Formats, the one under which most of a sample are dates first."""
    formats = ["ISO8601"]
    for day in _DAYS:
        first = day.index("%d") < day.index("%m") if "%m" in day and not day.startswith("%Y") else None
        if dayfirst is None or first is None or first is dayfirst:
            formats += [day + time for time in _TIMES]
    dates = {format_: int(parse_dates(sample, format_).notna().sum()) for format_ in formats}
    rank = sorted((format_ for format_ in formats if dates[format_]), key=lambda format_: -dates[format_])
    most = dates[rank[0]] if rank else 0
    preferred = [format_ for format_ in rank if dates[format_] == most]
    hyphens = [format_ for format_ in preferred if format_.startswith("%d-%m")]
    return [*hyphens, *(format_ for format_ in rank if format_ not in hyphens)]


def without_words(text: pd.Series) -> pd.Series:
    """Text with missing values where words for them stand."""
    return text.mask(text.map(lambda cell: isinstance(cell, str) and means_missing(cell)).astype(bool))


def day_and_month(format_: str, text: pd.Series) -> str:
    """In words, whether the day or the month comes first, and whether cells leave a doubt; "" where it is plain."""
    if not format_.startswith(("%d", "%m")) or "%m" not in format_:
        return ""
    day_is_first = format_.startswith("%d")
    fields = ("%d", "%m")
    swapped = format_.replace(fields[0], "\0").replace(fields[1], fields[0]).replace("\0", fields[1])
    present = without_words(text).dropna()
    doubt = parse_dates(present, swapped).notna().all()
    words = "the day before the month" if day_is_first else "the month before the day"
    if not doubt:
        return words
    option = "--no-dayfirst" if day_is_first else "--dayfirst"
    return f"{words}, though all cells could be read the other way: {option}"


def parse_dates(values: pd.Series, format_: str | None) -> pd.Series:
    """Moments of text in a format, or of dates of Python; missing where a cell is no date."""
    try:
        moments = pd.to_datetime(values, format=format_, errors="coerce")
    except ValueError:  # offsets that differ
        moments = pd.to_datetime(values, format=format_, errors="coerce", utc=True)
    if not pd.api.types.is_datetime64_any_dtype(moments):
        moments = pd.to_datetime(values, format=format_, errors="coerce", utc=True)
    return moments


def parts_that_vary(moments: pd.Series) -> list[str]:
    """Month, week and weekday; hour and minute where there is more than one time of day, as far as they vary."""
    moments = _local(moments).dropna()
    if moments.dt.normalize().eq(moments).all() or moments.dt.strftime("%H:%M:%S").nunique() < 2:
        return ["month", "week", "weekday"]
    return ["month", "week", "weekday", "hour", *(["minute"] if moments.dt.minute.nunique() > 1 else [])]


def names_of_parts(name: str, parts: Sequence[str], taken: Any) -> list[str]:
    """Names for the parts of a column that no other column has."""
    names = [f"{name} {part}" for part in parts]
    while any(part in taken for part in names):
        names = [f"{part}'" for part in names]
    return names


def date_columns(name: str, moments: pd.Series, parts: Sequence[str], taken: Any) -> dict[str, Any]:
    """The columns of a date: days since 1970 (n,) under its own name, and each part as text (n,)."""
    moments = _local(moments)
    days = (moments - pd.Timestamp(0)) / pd.Timedelta(days=1)
    columns: dict[str, Any] = {name: days.to_numpy(dtype=np.float64, na_value=np.nan)}
    for part, column in zip(parts, names_of_parts(name, parts, taken), strict=True):
        columns[column] = moments.dt.strftime(_CODES[part]).astype("str").array
    return columns


def _local(moments: pd.Series) -> pd.Series:
    return moments.dt.tz_localize(None) if moments.dt.tz is not None else moments
