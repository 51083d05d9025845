"""Dates in cells: which format the text of a column has, and the moments that its cells stand for."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tabsym.frame.meaning import check_later_cells, means_missing
from tabsym.warn import warn_user

MIN_DATE_SHARE = 0.95
"""Of the cells of a column of dates; the others become missing."""

_DAYS = ("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%m-%d-%Y", "%d-%m-%Y", "%Y.%m.%d", "%d.%m.%y", "%m/%d/%y",
         "%d/%m/%y", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y",
         "%a, %d %b %Y")  # fmt: skip
_MONTHS = ("%Y-%m", "%Y/%m", "%m/%Y", "%b %Y", "%B %Y", "%b-%Y", "%b-%y")
"""Of dates without a day, which are the first of the month."""
_TIMES = (
    "",
    " %H:%M",
    " %H:%M:%S",
    " %H:%M:%S.%f",
    " %I:%M %p",
    " %I:%M:%S %p",
    "T%H:%M",
    "T%H:%M:%S",
    ", %H:%M",
    ", %H:%M:%S",
)
_SAMPLE = 200
_OFFSET = re.compile(r"(\d:\d{2}(?:\.\d+)?) ?(?:Z|UTC|[-+]\d{2}(?::?\d{2})?)\s*$", re.IGNORECASE)
_STARTS = (
    r"^(?:\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{1,2}\.?[ -][^\W\d_]{3,9}\.?[ -]\d{2,4}|[A-Za-z]{3,9},? \d{1,2},? "
    r"(?:[A-Za-z]{3,9} )?\d{4}|\d{4}[-/](?:0[1-9]|1[0-2])$|(?:0?[1-9]|1[0-2])/\d{4}$|[A-Za-z]{3,9}[ -](?:\d{4}|\d{2})$)"
)
_YEAR = r"(?<!\d)(?:1[5-9]|20|21|99)\d{2}(?!\d)"
_CLOCK = r"\d{1,3}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?[AaPp][Mm])?"


def format_of(column: pd.Series, dayfirst: bool | None = None) -> str | None:
    """The format of a column of dates: "moments" for a date type; None where it holds no dates."""
    if pd.api.types.is_datetime64_any_dtype(column) or holds_days(column):
        return "moments"
    is_text = pd.api.types.infer_dtype(column, skipna=True) in ("string", "categorical")
    return date_format(column.astype("str").where(column.notna()), dayfirst) if is_text else None


def has_offsets(column: pd.Series) -> bool:
    """Whether moments have a time zone, or an offset from UTC where they are text."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return not _has_days_alone(column) and column.dt.tz is not None
    return any(
        getattr(value, "tzinfo", None) is not None or (isinstance(value, str) and _OFFSET.search(value) is not None)
        for value in column.dropna().unique()
    )


def _has_days_alone(column: pd.Series) -> bool:
    """Whether a column is of Arrow's dates in pandas, which have no time of day."""
    return isinstance(column.dtype, pd.ArrowDtype) and str(column.dtype).startswith("date")


def holds_days(column: pd.Series) -> bool:
    """Whether a column of objects holds dates of Python, and missing values."""
    if not pd.api.types.is_object_dtype(column.dtype):
        return False
    present = column.dropna()
    return bool(len(present)) and all(isinstance(value, datetime.date) for value in present)


def moments_of(
    name: str, column: pd.Series, format_: str, *, later: bool = False, dayfirst: bool | None = None
) -> pd.Series:
    """The moments of a column of dates, in whatever type it comes; cells that are none become missing.

    Of a `later` table each is warned of, as the format was found in other cells. Where `format_` is "moments" that of
    text is found in the text, with the day first or not as `dayfirst` says.

    Raises
    ------
    ValueError
        Most of the cells are no dates.
    """
    present = column.dropna()
    if pd.api.types.is_datetime64_any_dtype(column):
        moments = column.astype("datetime64[us]") if _has_days_alone(column) else column
    elif len(present) and pd.api.types.infer_dtype(present) in (
        *("integer", "floating", "boolean", "decimal", "mixed-integer-float", "complex"),
    ):
        moments = pd.Series(pd.NaT, column.index, dtype="datetime64[us]")
    elif holds_days(column):
        moments = parse_dates(column, None)
    else:
        text, rest = text_and_rest(column)
        if format_ == "moments":
            format_ = date_format(text, dayfirst) or "ISO8601"
            order, is_open = day_and_month(format_, text) if later and dayfirst is None else ("", False)
            if is_open:
                warn_user(
                    f"Column {name!r} held dates in training, and now text such as {text.dropna().iloc[0]!r}, which is "
                    f"read with {order}; write dates like 2024-02-29 to leave no doubt."
                )
        moments, column = moments_of_cells(text, rest, format_), text.astype(object).where(rest.isna(), rest)
        present = column.dropna()
    lost = moments.isna().to_numpy() & column.notna().to_numpy()
    if later or lost.sum() > (1 - MIN_DATE_SHARE) * len(present):
        check_later_cells(name, column[lost].tolist(), len(present), "dates")
    return moments


def text_and_rest(column: pd.Series) -> tuple[pd.Series, pd.Series]:
    """The text (n,) of a column, without words that mean missing, and its other cells (n,)."""
    is_text = column.map(lambda cell: isinstance(cell, str)).astype(bool)
    return without_words(column.astype("str").where(is_text)), column.astype(object).mask(is_text)


def moments_of_cells(text: pd.Series, rest: pd.Series, format_: str) -> pd.Series:
    """The moments (n,) of text in a format, and of other cells that are dates."""
    moments = parse_dates(text, format_)
    if not holds_days(rest):
        return moments
    return moments.where(text.notna(), parse_dates(rest, None).astype(moments.dtype))


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
    counts = present.value_counts(sort=False)
    cells, times = pd.Series(counts.index), counts.to_numpy()
    best, most, left = None, 0, np.ones(len(cells), dtype=np.bool_)  # cells that the best format does not read
    for format_ in _candidates(sample, dayfirst):
        if not parse_dates(cells[left], format_).notna().any():
            continue
        found = parse_dates(cells, format_).notna().to_numpy()
        if (n_dates := int(times[found].sum())) > most:
            best, most, left = format_, n_dates, ~found
    return best if most >= MIN_DATE_SHARE * len(present) else None


def _candidates(sample: pd.Series, dayfirst: bool | None) -> list[str]:
    """Formats, the one under which most of a sample are dates first."""
    formats = [*_MONTHS, "ISO8601"]
    for day in _DAYS:
        first = day.index("%d") < day.index("%m") if "%m" in day and not day.startswith("%Y") else None
        if dayfirst is None or first is None or first is dayfirst:
            formats += [day + time for time in _TIMES]
    dates = {format_: int(parse_dates(sample, format_).notna().sum()) for format_ in formats}
    rank = sorted((format_ for format_ in formats if dates[format_]), key=lambda format_: -dates[format_])
    n_dates = dates[rank[0]] if rank else 0
    preferred = [format_ for format_ in rank if dates[format_] == n_dates]
    hyphens = [format_ for format_ in preferred if format_.startswith("%d-%m")]
    return [*hyphens, *(format_ for format_ in rank if format_ not in hyphens)]


def moments_of_words(words: Sequence[str]) -> pd.Series:
    """The moments of cells that are dates, each in a format of its own."""
    found = [
        parse_dates(word, date_format(word)) for word in (pd.Series([word]) for word in words) if date_format(word)
    ]
    return pd.concat(found).dropna() if found else pd.Series([], dtype="datetime64[us]")


def looks_like_dates(text: pd.Series) -> bool:
    """Whether cells begin as dates do, and most have a year of four digits, whatever their formats are."""
    sample = without_words(text).dropna().head(_SAMPLE)
    if not len(sample) or sample.str.contains(_STARTS, regex=True).mean() < MIN_DATE_SHARE:
        return False
    return bool(sample.str.contains(_YEAR, regex=True).mean() > 0.5)


def looks_like_times(text: pd.Series) -> bool:
    """Whether cells are times of day, or hours and minutes, such as 09:45."""
    sample = without_words(text).dropna().head(_SAMPLE)
    return bool(len(sample)) and bool(sample.str.fullmatch(_CLOCK).mean() >= MIN_DATE_SHARE)


def without_words(text: pd.Series) -> pd.Series:
    """Text without blanks around, and with missing values where words for them stand."""
    text = text.str.strip()
    return text.mask(text.map(lambda cell: isinstance(cell, str) and means_missing(cell)).astype(bool))


def day_and_month(format_: str, text: pd.Series) -> tuple[str, bool]:
    """In words, whether the day or the month comes first, "" where it is plain; and whether all cells leave a doubt."""
    if not format_.startswith(("%d", "%m")) or not {"%d", "%m"} <= {format_[:2], format_[3:5]}:
        return "", False
    fields = ("%d", "%m")
    swapped = format_.replace(fields[0], "\0").replace(fields[1], fields[0]).replace("\0", fields[1])
    doubt = bool(parse_dates(without_words(text).dropna(), swapped).notna().all())
    return "the day before the month" if format_.startswith("%d") else "the month before the day", doubt


def parse_dates(values: pd.Series, format_: str | None) -> pd.Series:
    """Moments of text in a format, or of dates of Python, at the clock time as written; missing where no date is."""
    if format_ is None:
        values = values.map(lambda value: value.replace(tzinfo=None) if getattr(value, "tzinfo", None) else value)
    elif format_ == "ISO8601":  # offsets of summer and winter would move the clock of one column
        values = values.str.replace(_OFFSET, r"\1", regex=True)
    moments = pd.to_datetime(values, format=format_, errors="coerce")
    if moments.dtype != "datetime64[ns]":
        return moments
    left = values[moments.isna()].dropna().unique()  # pandas before 3 makes nanoseconds of all dates
    far = {value: moment for value in left if (moment := _beyond_nanoseconds(value, format_)) is not None}
    if not far:
        return moments
    by_value = pd.Series(np.array(list(far.values()), dtype="datetime64[us]"), index=pd.Index(far, dtype=object))
    return moments.astype("datetime64[us]").fillna(values.astype(object).map(by_value))


def _beyond_nanoseconds(value: Any, format_: str | None) -> datetime.date | None:
    """The date of a cell in a year that nanoseconds, from 1677 to 2262, do not reach; None of any other cell."""
    try:
        if format_ == "ISO8601":
            value = datetime.datetime.fromisoformat(value)
        elif format_ is not None:
            value = datetime.datetime.strptime(value, format_)
    except ValueError:
        return None
    return value if isinstance(value, datetime.date) and not 1677 < value.year < 2262 else None
