"""What the cells of a column are: decimals, durations, dates beside text, and numbers that are written as text.

The first three are types that a text file does not have, and become what its columns would be, so that a column is the
same from CSV, Excel, Parquet, JSON and frames, in training and in `predict`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from shlex import quote
from typing import Any

import numpy as np
import pandas as pd

from tabsym.compare.table.files import ReadOptions
from tabsym.compare.table.number_format import (
    Cell,
    NumberFormat,
    is_plain,
    looks_ambiguous,
    number_of,
    separators_of,
    split_cell,
    unit_factors,
)
from tabsym.encoders.dates import (
    MIN_DATE_SHARE,
    date_format,
    holds_days,
    moments_of_cells,
    text_and_rest,
    without_words,
)
from tabsym.frame.meaning import means_missing
from tabsym.plots.style import cut

_SAMPLE = 200
_MIDNIGHT = re.compile(r"\d{4}-\d\d-\d\d[ T]00:00:00(?:\.0+)?")
_DURATION = (
    r"(?:-?\d+ days?(?:,? (?=[-+\d])|$))?(?:[-+]?\d{1,2}:\d{2}:\d{2}(?:\.\d+)?)?"
    r"|-?P(?:\d+D)?T(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?"
)
_IS_DURATION = r"^\s*-?(?:\d+ days?\b|P[\dT])"  # "09:45:00" alone may be a time of day


@dataclass
class PlainTypes:
    """A table with decimals as floats, durations in seconds, and dates among text as moments; and which these are.

    `durations`: columns of them, text such as "0 days 00:05:00" among them; `dates`: column -> the format of its text.
    """

    frame: pd.DataFrame
    durations: list[str]
    dates: dict[str, str]


def with_plain_types(
    frame: pd.DataFrame, notes: list[str], categorical: Sequence[str] = (), dayfirst: bool | None = None
) -> PlainTypes:
    """Find these columns; `notes` are added to, columns of `categorical` stay as they are."""
    changed: dict[str, pd.Series] = {}
    found = PlainTypes(frame, [], {})
    for name, column in _without_plain_types(frame, categorical):
        if are_decimals(column):
            changed[name] = _as_floats(column)
            continue
        durations, dates = _durations(column), _dates_among_text(column, dayfirst)
        if durations is not None:
            changed[name], lost = durations
            found.durations.append(name)
            missing = f"; {not_read(lost, 'a duration', 'durations')} as missing" if lost else ""
            notes.append(f"Column {name!r} contains durations and is read as numbers, in seconds{missing}.")
        elif dates is not None:
            changed[name], found.dates[name], lost = dates
            if lost:
                notes.append(f"Column {name!r} contains dates, and {not_read(lost, 'a date', 'dates')} as missing.")
    found.frame = frame.assign(**changed) if changed else frame
    return found


def _without_plain_types(frame: pd.DataFrame, categorical: Sequence[str]) -> list[tuple[str, pd.Series]]:
    """Columns that are no numbers of a plain type, nor categories by the user's word."""
    return [
        (name, frame[name])
        for name in frame.columns
        if name not in categorical and frame[name].dtype.kind not in "biuf"
    ]


def as_in_training(frame: pd.DataFrame, durations: Sequence[str], categorical: Sequence[str]) -> pd.DataFrame:
    """A later table with decimals as floats, and the columns of `durations` in seconds, as far as cells are durations.

    What text means was decided in training: other rows of a table have no part in it.
    """
    changed: dict[str, pd.Series] = {}
    for name, column in _without_plain_types(frame, categorical):
        if are_decimals(column):
            changed[name] = _as_floats(column)
        elif column.dtype.kind == "m" or pd.api.types.infer_dtype(column, skipna=True) in ("timedelta", "timedelta64"):
            changed[name] = pd.to_timedelta(column).dt.total_seconds().astype(np.float64)
        elif name in durations:
            text, _ = text_and_rest(column)
            good = text.str.fullmatch(_DURATION).fillna(False).astype(bool)
            seconds = pd.to_timedelta(text.where(good)).dt.total_seconds().astype(np.float64)
            changed[name] = seconds if good.all() else seconds.astype(object).where(good, column)
    return frame.assign(**changed) if changed else frame


def word_of(value: Any) -> str:
    """A value as text, in whatever type a file or frame has it: 3 for 3.0, 0.5 for 0.50, the day alone for midnight."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return str(int(value))  # all its digits
    if isinstance(value, Decimal | float | np.floating) and (number := Decimal(str(value))).is_finite():
        text = f"{number:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    text = str(value)
    return text[:10] if _MIDNIGHT.fullmatch(text) else text


def _as_floats(decimals: pd.Series) -> pd.Series:
    """As a text file gives them."""
    cells = decimals.astype(object).where(decimals.notna(), None)
    return pd.to_numeric(cells.map(str, na_action="ignore"))


def are_decimals(column: pd.Series) -> bool:
    """Whether a column holds decimals, of Arrow or of Python."""
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


def _dates_among_text(column: pd.Series, dayfirst: bool | None) -> tuple[pd.Series, str, dict[str, int]] | None:
    """The moments (n,) of a column of objects that holds dates and text, its format, and which text is none, how often.

    None where the column holds other cells, or more than 5 % are neither dates nor words for missing.
    """
    if column.dtype != object or not pd.api.types.infer_dtype(column, skipna=True).startswith("mixed"):
        return None
    text, rest = text_and_rest(column)
    if not (column.notna() & rest.isna()).any() or not holds_days(rest):
        return None
    format_ = date_format(text[text.str.contains(r"\d", na=False)], dayfirst)
    moments = moments_of_cells(text, rest, format_ or "ISO8601")
    if (text.notna() & moments.isna()).sum() > (1 - MIN_DATE_SHARE) * column.notna().sum():
        return None
    return moments, format_ or "moments", _counted(column[column.notna() & moments.isna()])


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


_MIN_NUMBERS = 0.5  # of the cells of a column of numbers, the other ones being words for missing
_MAX_OTHER_CELLS, _MAX_OTHER_WORDS = 0.2, 3  # of words that are not known to mean missing
_INFINITE = re.compile(r"\s*[-+]?inf(?:inity)?\s*", re.IGNORECASE)  # missing, as infinite numbers are
_MAX_TYPING_ERRORS = 0.01  # of the cells, whatever they hold
_MIN_DISTINCT = 10  # numbers, beside words that are not known to mean missing
MAX_CLASSES = 20
"""Of a target of text."""


class PlainNumbers:
    """The answer for a typed column of text whose cells are all plain numbers: it stays text."""


@dataclass(frozen=True)
class TextColumn:
    """A column of text, by its distinct cells: whether it is one of numbers, and how they are written.

    `prefer`: the decimal separator where its cells leave a doubt; `untyped`: of a file without types, such as CSV.
    """

    name: str
    counts: dict[str, int]
    options: ReadOptions
    prefer: str
    untyped: bool
    is_target: bool

    def read(self) -> tuple[NumberFormat, str] | str | PlainNumbers | None:
        """The format and a note; a note that the column is read as text; None where it is plainly text."""
        forced = self.name in self.options.numeric
        cells, words = self._split()
        total = sum(self.counts.values())
        numeric = sum(times for _, times in cells.values())
        known = sum(times for word, times in words.items() if means_missing(word))
        if not numeric or (numeric < _MIN_NUMBERS * (total - (known if forced else 0)) and not forced):
            return self._refuse(words) if forced else None
        factors = unit_factors(list(cells.values()))
        if isinstance(factors, str):
            return self._left(factors, "convert them to one unit") if not forced else self._refuse_mixed(factors)
        if not forced and _are_bounds([cell for cell, _ in cells.values()]):
            return self._left("its cells are bounds on either side of a number")
        digits: dict[str, int] = {}
        for cell, times in cells.values():
            digits[cell.digits] = digits.get(cell.digits, 0) + times
        scaled = len({factors[cell.unit] for cell, _ in cells.values()}) > 1
        asked = self.options.decimal, self.options.thousands
        decimal, thousands = separators_of(digits, *asked, prefer=self.prefer, scaled=scaled)
        good = {text for text, (cell, _) in cells.items() if number_of(cell.digits, decimal, thousands) is not None}
        other = {text: times for text, times in self.counts.items() if text not in good}
        unknown = {text: times for text, times in other.items() if not means_missing(text)}
        values = {number_of(cells[text][0].digits, decimal, thousands) for text in good}
        doubtful = {text: times for text, times in unknown.items() if not _INFINITE.fullmatch(text)}
        if not good or (not forced and not self._few(doubtful, total, len(values))):
            if forced:
                return self._refuse(unknown)
            return (
                self._left(f"{sum(unknown.values()):,} of its cells are not, such as {quoted(unknown)}")
                if good
                else None
            )
        if not forced and self._codes(good, cells, decimal, thousands):
            zeros = any(text.strip().startswith("0") and len(text.strip()) > 1 for text in good)
            why = "leading zeros, as codes have" if zeros else "several spellings of one number, as codes have"
            return self._left(f"they have {why}")
        plain = not other and all(is_plain(text) and "." not in text for text in good)
        if plain and not forced and not self.untyped:
            return PlainNumbers()
        example = max(good, key=lambda text: (not is_plain(text), self.counts[text], text))
        format_ = NumberFormat(
            decimal, thousands, factors, tuple(sorted(text.strip().lower() for text in unknown)), example
        )
        return format_, self._note(format_, good, cells, other, digits)

    def _split(self) -> tuple[dict[str, tuple[Cell, int]], dict[str, int]]:
        cells, words = {}, {}
        for text, times in self.counts.items():
            cell = split_cell(text)
            if cell is None:
                words[text] = times
            else:
                cells[text] = (cell, times)
        return cells, words

    def _few(self, unknown: dict[str, int], total: int, n_values: int) -> bool:
        """Whether words that are not known to mean missing are few enough to mean it all the same."""
        cells = sum(unknown.values())
        if not cells:
            return True
        if n_values < _MIN_DISTINCT:
            return False
        return cells <= _MAX_TYPING_ERRORS * total or (
            len(unknown) <= _MAX_OTHER_WORDS and cells <= _MAX_OTHER_CELLS * total
        )

    def _codes(self, good: set[str], cells: dict[str, tuple[Cell, int]], decimal: str, thousands: str) -> bool:
        """Whether plain numbers are codes: leading zeros, or in a typed column several spellings of one number."""
        plain = [cells[text][0].digits for text in good if is_plain(text.strip())]
        if len(plain) < len(good):
            return False
        if any(digits.startswith("0") and digits[1:].isdigit() for digits in plain):
            return True
        values = {number_of(digits, decimal, thousands) for digits in plain}
        return not self.untyped and len(set(plain)) > len(values)

    def _note(
        self, format_: NumberFormat, good: set[str], cells: dict[str, tuple[Cell, int]], other: dict[str, int],
        digits: dict[str, int],
    ) -> str:  # fmt: skip
        """One line on how the column was read; nothing of plain numbers in a file without types."""
        how = []
        if not all(is_plain(text) for text in good):
            how.append(f"written as {format_.example!r}")
        ambiguous = looks_ambiguous(list(digits))
        if ambiguous and any(cell.count(ambiguous) > 1 for cell in digits):  # no decimal separator
            ambiguous = None
        if ambiguous and self.options.decimal is None and self.options.thousands is None:
            shown = next(cell for cell in digits if ambiguous in cell)
            value = number_of(shown, format_.decimal, format_.thousands)
            option = "--thousands" if ambiguous == format_.decimal else "--decimal"
            how.append(f"{shown!r} read as {value:,.15g}; use {option} {ambiguous} for the other reading")
        if any(cells[text][0].about for text in good):
            how.append("signs such as '<' ignored")
        scaled = sorted(unit for unit, factor in format_.factors.items() if factor != 1.0)
        if scaled:
            how.append("with " + ", ".join(f"{unit!r} as {format_.factors[unit]:,.10g} times" for unit in scaled[:5]))
        blank = {text: times for text, times in other.items() if text.strip()}
        if blank:
            how.append(f"{not_read(blank, 'a number', 'numbers')} as missing")
        if not how and self.untyped:
            return ""
        said = f" ({'; '.join(how)})" if how else " (its type is text)"
        if self.is_target:
            classes = f"; as classes (--task {'binary' if len(good) == 2 else 'multiclass'}) they keep their text"
            return f"Target {self.name!r} is read as numbers{said}{classes if len(good) <= MAX_CLASSES else ''}."
        return f"Column {self.name!r} is read as numbers{said}; use --categorical {quote(self.name)} to keep the text."

    def _left(self, why: str, remedy: str = "") -> str:
        remedy = remedy or f"use --numeric {quote(self.name)}"
        return f"Column {self.name!r} looks like numbers but is read as text, as {why}; {remedy} to read numbers."

    def _refuse(self, words: Mapping[str, int]) -> str:
        raise ValueError(
            f"Column {self.name!r} is in numeric, but most of its cells are not numbers ({quoted(words)}); "
            "remove it from numeric (--numeric)."
        )

    def _refuse_mixed(self, why: str) -> str:
        raise ValueError(f"Column {self.name!r} is in numeric, but {why}; convert them to one unit first.")


def _are_bounds(cells: Sequence[Cell]) -> bool:
    """Whether cells such as "<=50" and ">50" part the values in two, so that the signs are what matters."""
    sides: dict[str, set[str]] = {}
    for cell in cells:
        sides.setdefault(cell.digits, set()).add(cell.about[:1])
    return any({"<", ">"} <= signs or {"≤", ">"} <= signs or {"<", "≥"} <= signs for signs in sides.values())
