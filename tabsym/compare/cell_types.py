"""Cells whose types a text file does not have: decimals, durations, and dates beside text, as its columns would be.

So that a column is the same from CSV, Excel, Parquet, JSON and frames, in training and in `predict`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from tabsym.encoders.dates import MIN_DATE_SHARE, date_format, holds_days, parse_dates, without_words
from tabsym.plots.style import cut

_SAMPLE = 200
_DURATION = (
    r"(?:-?\d+ days?(?:,? (?=[-+\d])|$))?(?:[-+]?\d{1,2}:\d{2}:\d{2}(?:\.\d+)?)?"
    r"|-?P(?:\d+D)?T(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?"
)
_IS_DURATION = r"^\s*-?(?:\d+ days?\b|P[\dT])"  # "09:45:00" alone may be a time of day


def with_plain_types(frame: pd.DataFrame, notes: list[str], categorical: Sequence[str] = ()) -> pd.DataFrame:
    """Decimals as floats, durations in seconds (text such as "0 days 00:05:00", too), and words among dates missing.

    `notes` are added to; columns of `categorical` stay as they are.
    """
    changed: dict[str, pd.Series] = {}
    for name in frame.columns:
        column = frame[name]
        if name in categorical or column.dtype.kind in "biuf":
            continue
        if _are_decimals(column):
            cells = column.astype(object).where(column.notna(), None)
            changed[name] = pd.to_numeric(cells.map(str, na_action="ignore"))  # as a text file gives them
            continue
        durations, dates = _durations(column), _dates_among_text(column)
        if durations is not None:
            changed[name], lost = durations
            missing = f"; {not_read(lost, 'a duration', 'durations')} as missing" if lost else ""
            notes.append(f"Column {name!r} contains durations and is read as numbers, in seconds{missing}.")
        elif dates is not None:
            changed[name], lost = dates
            if lost:
                notes.append(f"Column {name!r} contains dates, and {not_read(lost, 'a date', 'dates')} as missing.")
    return frame.assign(**changed) if changed else frame


def _are_decimals(column: pd.Series) -> bool:
    if isinstance(column.dtype, pd.ArrowDtype):
        return str(column.dtype).startswith("decimal")
    return column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "decimal"


def _durations(column: pd.Series) -> tuple[pd.Series, dict[str, int]] | None:
    """Durations (n,) in seconds, and which text is none -> how often; None where a column holds others."""
    lost: dict[str, int] = {}
    content = pd.api.types.infer_dtype(column, skipna=True)
    if content in ("string", "categorical"):
        if not column.dropna().head(_SAMPLE).astype("str").str.contains(_IS_DURATION, regex=True).any():
            return None
        text = without_words(column.astype("str").where(column.notna()))
        good = text.str.fullmatch(_DURATION).fillna(False).astype(bool)
        if good.sum() < MIN_DATE_SHARE * text.notna().sum():
            return None
        lost, column = _counted(column[~good]), text.where(good)
    elif column.dtype.kind != "m" and content not in ("timedelta", "timedelta64"):
        return None
    return pd.to_timedelta(column).dt.total_seconds().astype(np.float64), lost


def _counted(cells: pd.Series) -> dict[str, int]:
    """Distinct cells, blank ones left out -> how often."""
    counts = cells.astype("str").value_counts()
    return {str(cell): int(times) for cell, times in counts.items() if str(cell).strip()}


def _dates_among_text(column: pd.Series) -> tuple[pd.Series, dict[str, int]] | None:
    """The moments (n,) of a column of objects that holds dates and text, and which text is none -> how often.

    None where the column holds other cells, or more than 5 % are neither dates nor words for missing.
    """
    if column.dtype != object or not pd.api.types.infer_dtype(column, skipna=True).startswith("mixed"):
        return None
    is_text = column.map(lambda value: isinstance(value, str)).astype(bool)
    if not is_text.any() or not holds_days(column[~is_text]):
        return None
    text = without_words(column[is_text].astype("str"))
    format_ = date_format(text[text.str.contains(r"\d", na=False)])
    written = parse_dates(text, format_) if format_ else pd.Series(pd.NaT, text.index)
    moments = parse_dates(column.mask(is_text), None)
    moments = moments.where(~is_text, written.reindex(column.index).astype(moments.dtype))
    if (text.notna() & written.isna()).sum() > (1 - MIN_DATE_SHARE) * column.notna().sum():
        return None
    return moments, _counted(column[is_text][written.isna()])


def not_read(words: Mapping[str, int], one: str, several: str) -> str:
    """Cells that are not what the column is, in words."""
    times = sum(words.values())
    cells = f"1 cell that is not {one}" if times == 1 else f"{times:,} cells that are not {several}"
    return f"{cells} ({quoted(words)})"


def quoted(words: Mapping[str, int]) -> str:
    """The most frequent words, five at most."""
    most = sorted(words, key=lambda word: -words[word])
    shown = ", ".join(repr(cut(word, 30)) for word in most[:5])
    return shown + (f" and {len(words) - 5:,} more" if len(words) > 5 else "")
