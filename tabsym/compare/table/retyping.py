"""Text columns that hold numbers or booleans: which they are, how they are written, and one line that says so.

The same cells give the same columns whether a file or a frame holds them, with one exception: whole numbers and plain
decimal codes that a frame or a typed file holds as text stay text, as their type says, and this is reported.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import pandas as pd

from tabsym.compare.table.files import ReadOptions, has_sheet, is_text_file, is_workbook, options_of_text, read
from tabsym.compare.table.number_format import (
    MAX_CLASSES,
    NumberFormat,
    PlainNumbers,
    TextColumn,
    are_thousands,
    is_plain,
    looks_ambiguous,
    not_read,
    separators_of,
    usual_decimal,
)
from tabsym.compare.text import columns_that
from tabsym.frame.columns import FIRST_ROUNDED
from tabsym.frame.meaning import (
    MIN_DATE_SHARE,
    date_format,
    format_of,
    holds_days,
    moments_of,
    moments_of_cells,
    moments_of_words,
    parse_dates,
    text_and_rest,
    without_words,
)

_SCALARS = (str, int, float, np.number, np.bool_, Decimal, datetime.date, datetime.time, datetime.timedelta)
_BOOLEANS = {"true": True, "false": False}
_PLAIN = NumberFormat(".", "", {"": 1.0})


@dataclass(frozen=True)
class Retyping:
    """What was decided of text columns, for later tables.

    Attributes
    ----------
    formats : dict of str -> NumberFormat
        Columns of text that are read as numbers.
    booleans : list of str
        Columns of the texts "true" and "false".
    numbers : list of str
        Columns of numbers that needed no reading; a word for missing in later rows is missing.
    na_values : dict of str -> list of str
        What the user said is missing, by column; "" is every column.
    sep, encoding : str or None
        Of text files, as the user gave them.
    categorical : list of str
        Columns that the user said are categories.
    sheet : str or None
        Of workbooks, as the user named it.
    durations : sequence of str
        Columns that were read in seconds.
    decimal, thousands : str or None
        Separators as the user gave them, for columns that needed no reading.
    dates : dict of str -> str
        Columns of dates and text, and the format of their text.
    """

    formats: dict[str, NumberFormat] = field(default_factory=dict)
    booleans: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    na_values: dict[str, list[str]] = field(default_factory=dict)
    sep: str | None = None
    encoding: str | None = None
    categorical: list[str] = field(default_factory=list)
    sheet: str | None = None
    durations: Sequence[str] = ()
    decimal: str | None = None
    thousands: str | None = None
    dates: dict[str, str] = field(default_factory=dict)

    def options_for(self, table: Any) -> ReadOptions:
        """How to read a later table, from a file or a frame of any kind.

        A workbook may lack the sheet of training, a text file have another separator or encoding.
        """
        is_file = isinstance(table, (str, Path))
        if is_file and is_text_file(table):
            return options_of_text(table, self.sep, self.encoding)
        if is_file and self.sheet is not None and is_workbook(table) and has_sheet(table, self.sheet):
            return ReadOptions(sheet=self.sheet)
        return ReadOptions()

    def read(self, table: Any) -> pd.DataFrame:
        """A later table, from a file or a frame of any kind, with its columns as they were read in training."""
        return self.apply(read(table, self.options_for(table)).frame)

    def apply(self, frame: pd.DataFrame) -> pd.DataFrame:
        """A table with its columns as they were read in training; cells that are no numbers now stay as they are."""
        frame = as_in_training(without(frame, self.na_values), self.durations, self.categorical)
        changed: dict[str, pd.Series] = {}
        for name in frame.columns:
            column = frame[name]
            if not _holds_text(column):
                continue
            if name in self.booleans:
                changed[name] = _as_booleans(column)
            elif name in self.categorical and name in self.numbers:
                changed[name] = column.astype(object).map(  # with all its digits
                    lambda cell: Decimal(cell.strip()) if isinstance(cell, str) and is_plain(cell) else cell,
                    na_action="ignore",
                )
            elif name in self.formats or name in self.numbers:
                numbers, strange = self.formats.get(name, self._plain).parse(column)
                parsed = pd.Series(numbers, index=column.index)
                changed[name] = parsed.astype(object).where(~strange, column) if strange.any() else parsed
            elif _mixes_text(column):
                changed[name] = _as_words(column)
        frame = frame.assign(**changed) if changed else frame
        return without(frame, self.na_values)

    @property
    def _plain(self) -> NumberFormat:
        """How later text of columns of numbers is read."""
        if self.decimal is None and self.thousands is None:
            return _PLAIN
        return NumberFormat(*separators_of({}, self.decimal, self.thousands, prefer=".", scaled=False), {"": 1.0})


def without(
    frame: pd.DataFrame, na_values: Mapping[str, Sequence[str]], used: set[tuple[str, str]] | None = None
) -> pd.DataFrame:
    """The frame with what the user said is missing left out; numbers are compared as numbers, dates as dates.

    Called before text is read, and after: "-200.0" is text that is not "-200", and a number that is. `used`: words that
    some cell is, by key of `na_values`, are added.
    """
    changed: dict[str, pd.Series] = {}
    for name in frame.columns if na_values else ():
        words = [*na_values.get("", ()), *na_values.get(name, ())]
        column = frame[name]
        if words and (missing := _are_meant(column, words)).any():
            changed[name] = column.mask(missing)
            if used is not None:
                given = ((key, word) for key in ("", name) for word in na_values.get(key, ()))
                used |= {(key, word) for key, word in given if _are_meant(column[missing], [word]).any()}
    return frame.assign(**changed) if changed else frame


def _are_meant(column: pd.Series, words: Sequence[str]) -> pd.Series:
    """Which cells (n,) are among words, numbers and dates."""
    days = moments_of_words(words)
    if len(days) and (format_ := format_of(column)) is not None:
        if format_ == "moments":
            return moments_of(str(column.name), column, format_).isin(days)
        text = column.astype("str").where(column.notna()).str.strip()
        return text.isin(words) | parse_dates(text, format_).isin(days)
    numbers = {float(word) for word in words if is_plain(word)}
    if column.dtype.kind in "iuf":
        return column.isin(numbers).astype(bool)
    codes, distinct = pd.factorize(column.astype(object), use_na_sentinel=True)

    def is_one(cell: Any) -> bool:
        if isinstance(cell, bool | np.bool_):
            return str(cell).lower() in {word.lower() for word in words}
        if isinstance(cell, int | float | np.number | Decimal):
            return float(cell) in numbers
        return isinstance(cell, str) and cell.strip() in words

    among = np.array([*map(is_one, distinct), False])
    return pd.Series(among[codes], index=column.index)


def retype(
    frame: pd.DataFrame,
    options: ReadOptions,
    untyped: bool,
    separator: str,
    notes: list[str],
    target: str | None = None,
    unsaid: Collection[str] = (),
) -> tuple[pd.DataFrame, Retyping]:
    """Read the text columns of a table that hold numbers or booleans.

    Parameters
    ----------
    frame : pandas.DataFrame
    options : ReadOptions
        What the user decided.
    untyped : bool
        Whether the columns come from a file that has no types, such as CSV.
    separator : str
        Of the fields of such a file, "" elsewhere; a semicolon makes decimal commas likely.
    notes : list of str
        Sentences are added, one for each column whose reading is not obvious.
    target : str, optional
        The column to predict: text of whole numbers is numbers there if they are too many to be classes.
    unsaid : collection of str
        Columns without sentences, as the user leaves them out.

    Raises
    ------
    ValueError
        A column in `numeric` contains mostly text.
    """
    used: set[tuple[str, str]] = set()
    frame = without(frame, options.na_values, used)
    frame, durations, dates = _with_plain_types(frame, notes, options.categorical, options.dayfirst, unsaid)
    text = {name: _cells(frame[name]) for name in frame.columns if _holds_text(frame[name])}
    prefer = options.decimal or usual_decimal(text, separator)
    out: dict[str, pd.Series] = {}
    booleans: list[str] = []
    formats: dict[str, NumberFormat] = {}
    whole: list[str] = []
    mixed = [name for name in text if _mixes_text(frame[name])]  # whose numbers show that the text may be numbers, too
    for name, counts in text.items():
        free = untyped or name in mixed
        points = options.thousands != "." and (prefer == "." or name in options.categorical)
        if free and points and name not in options.numeric and counts and _all_plain(counts):
            numbers = pd.to_numeric(frame[name])
            is_rounded = numbers.dtype.kind == "f" and (numbers.abs() >= FIRST_ROUNDED).any()
            if name in options.categorical and (_versions(counts) or is_rounded):
                continue  # which would be one category for several
            out[name] = numbers
            notes += [] if name in unsaid else _doubt(name, list(counts), options)
            continue
        if not counts or name in options.categorical:
            continue
        if {cell.strip().lower() for cell in counts} <= set(_BOOLEANS) and name not in options.numeric:
            booleans.append(name)
            out[name] = _as_booleans(frame[name])
            continue
        many = name == target and len(counts) > MAX_CLASSES
        result = TextColumn(name, counts, options, prefer, free or many, name == target).read()
        if isinstance(result, str):
            notes += [] if name in unsaid or (name == target and len(counts) <= MAX_CLASSES) else [result]
        elif isinstance(result, PlainNumbers):
            whole.append(name)
        elif result is not None:
            formats[name], line = result
            parsed, strange = formats[name].parse(frame[name])
            parsed[strange] = np.nan
            out[name] = pd.Series(parsed, index=frame.index)
            if line and name not in unsaid:
                notes.append(line)
    notes += _read_as_text([name for name in whole if name not in unsaid], "numbers as text and")
    others = [name for name in frame.columns if name not in out and not _holds_text(frame[name])]
    booleans += [name for name in others if pd.api.types.infer_dtype(frame[name], skipna=True) == "boolean"]
    words = {name: _as_words(frame[name]) for name in mixed if name not in out}
    unnamed = [name for name in words if name not in unsaid and not any(repr(name) in note for note in notes)]
    notes += _read_as_text(unnamed, "text and other cells, and")
    frame = frame.assign(**out, **words) if out or words else frame
    frame = without(frame, options.na_values, used)
    notes += [
        f"No cell of {f'column {name!r}' if name else 'the table'} is {word!r}, which na_values (--na-values) names."
        for name, words in options.na_values.items()
        for word in words
        if (name, word) not in used
    ]
    number_columns = [
        name for name in frame.columns if name not in formats and (_is_number(frame[name]) or are_decimals(frame[name]))
    ]
    return frame, Retyping(
        formats, booleans, number_columns, dict(options.na_values), options.sep, options.encoding,
        list(options.categorical), options.sheet, durations, options.decimal, options.thousands, dates,
    )  # fmt: skip


def _read_as_text(names: Sequence[str], what: str) -> list[str]:
    """That these columns hold more than plain text; nothing where there are none."""
    if not names:
        return []
    them = columns_that(names, f"holds {what} is", f"hold {what} are")
    return [f"{them} read as text; use --numeric {quote(','.join(names[:5]))} to read numbers."]


def _all_plain(counts: Mapping[str, int]) -> bool:
    """Whether all cells are numbers as programs write them, and none is a code with leading zeros."""
    plain = all(is_plain(text) and not (text[0] == "0" and text.isdigit() and len(text) > 1) for text in counts)
    return plain and not are_thousands(list(counts))


def _versions(cells: Collection[str]) -> tuple[str, str] | None:
    """Two cells that differ in zeros at the end, such as "1.1" and "1.10": numbers of one column are written alike."""
    known = frozenset(cells)
    for cell in cells:
        shorter = cell.rstrip("0")
        while "." in shorter and "e" not in shorter.lower() and shorter != cell:
            if shorter in known and not shorter.endswith("."):
                return shorter, cell
            shorter += "0"
    return None


def _doubt(name: str, cells: list[str], options: ReadOptions) -> list[str]:
    """Lines on numbers of three decimals, all of which may be thousands, and on numbers that may be versions."""
    lines, versions = [], _versions(cells)
    if versions:
        lines.append(
            f"Column {name!r} is read as numbers, so that {versions[0]!r} and {versions[1]!r} are the same; "
            f"use --categorical {quote(name)} to tell them apart."
        )
    if not options.decimal and looks_ambiguous(cells) == ".":
        shown = next(cell for cell in sorted(cells, key=lambda cell: not cell.endswith("0")) if "." in cell)
        lines.append(
            f"Column {name!r} is read as numbers with decimal points, {shown!r} read as {float(shown):g}; "
            "use --decimal , if they are thousands."
        )
    return lines


def _holds_text(column: pd.Series) -> bool:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return bool(pd.api.types.infer_dtype(dtype.categories) == "string")
    if not pd.api.types.is_object_dtype(dtype):
        return bool(pd.api.types.is_string_dtype(dtype))
    content = pd.api.types.infer_dtype(column, skipna=True)
    return content == "string" or (content.startswith("mixed") and any(isinstance(value, str) for value in column))


def _mixes_text(column: pd.Series) -> bool:
    """Whether a column of objects holds text as well as numbers, booleans or dates."""
    if not pd.api.types.is_object_dtype(column.dtype) or pd.api.types.infer_dtype(column, skipna=True) == "string":
        return False
    kinds = {type(value) for value in column.dropna()}
    if str not in kinds or not all(issubclass(kind, _SCALARS) for kind in kinds):
        return False
    return not holds_days(text_and_rest(column)[1])  # which are dates, as far as they are text


def _as_words(column: pd.Series) -> pd.Series:
    """Each cell as text, as a text file would have it."""
    return column.map(word_of, na_action="ignore").astype(object)


def _cells(column: pd.Series) -> dict[str, int]:
    """Distinct cells as text -> how often; nothing where some are neither text, booleans nor numbers."""
    counts: dict[str, int] = {}
    for value, times in column.value_counts(dropna=True, sort=False).items():
        if not isinstance(value, (str, int, float, np.number, np.bool_, Decimal)):
            return {}
        text = str(value.item() if isinstance(value, np.generic) else value)
        counts[text] = counts.get(text, 0) + int(times)
    return {text: times for text, times in counts.items() if times}


def _as_booleans(column: pd.Series) -> pd.Series:
    values = [_BOOLEANS.get(value.strip().lower(), value) if isinstance(value, str) else value for value in column]
    out = pd.Series([None if pd.isna(value) else value for value in values], index=column.index, dtype=object)
    return out.astype(bool) if all(isinstance(value, bool) for value in out) else out


def _is_number(column: pd.Series) -> bool:
    dtype = column.dtype.categories.dtype if isinstance(column.dtype, pd.CategoricalDtype) else column.dtype
    return pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)


# -- types that text files do not have -----------------------------------------------------------------
# Decimals, durations, and dates among text become what the columns of a text file would be, so that a column is the
# same from CSV, Excel, Parquet, JSON and frames, in training and in `predict`.

_SAMPLE = 200
_MIDNIGHT = re.compile(r"\d{4}-\d\d-\d\d[ T]00:00:00(?:\.0+)?")
_DURATION = (
    r"(?:-?\d+ days?(?:,? (?=[-+\d])|$))?(?:[-+]?\d{1,2}:\d{2}:\d{2}(?:\.\d+)?)?"
    r"|-?P(?:\d+D)?T(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?"
)
_IS_DURATION = r"^\s*-?(?:\d+ days?\b|P[\dT])"  # "09:45:00" alone may be a time of day


def _with_plain_types(
    frame: pd.DataFrame, notes: list[str], categorical: Sequence[str], dayfirst: bool | None, unsaid: Collection[str]
) -> tuple[pd.DataFrame, list[str], dict[str, str]]:
    """A table with decimals as floats, durations in seconds, and dates among text as moments; and which these are.

    Columns of durations, text such as "0 days 00:05:00" among them; columns of dates -> the format of their text.
    `notes` are added to, but not of columns in `unsaid`; columns of `categorical` stay as they are.
    """
    changed: dict[str, pd.Series] = {}
    in_seconds: list[str] = []
    formats: dict[str, str] = {}
    for name, column in _without_plain_types(frame, categorical):
        if are_decimals(column):
            changed[name] = _as_floats(column)
            continue
        durations, dates = _durations(column), _dates_among_text(column, dayfirst)
        if durations is not None:
            changed[name], lost = durations
            in_seconds.append(name)
            missing = f"; {not_read(lost, 'a duration', 'durations')} as missing" if lost else ""
            if name not in unsaid:
                notes.append(f"Column {name!r} contains durations and is read as numbers, in seconds{missing}.")
        elif dates is not None:
            changed[name], formats[name], lost = dates
            if lost and name not in unsaid:
                notes.append(f"Column {name!r} contains dates, and {not_read(lost, 'a date', 'dates')} as missing.")
    return frame.assign(**changed) if changed else frame, in_seconds, formats


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
