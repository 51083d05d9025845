"""Text columns that hold numbers or booleans: which they are, how they are written, and one line that says so.

The same cells give the same columns whether a file or a frame holds them, with one exception: whole numbers and plain
decimal codes that a frame or a typed file holds as text stay text, as their type says, and this is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import pandas as pd

from tabsym.compare.cell_types import MAX_CLASSES, PlainNumbers, TextColumn, are_decimals, with_plain_types
from tabsym.compare.number_format import (
    NumberFormat,
    are_thousands,
    is_plain,
    looks_ambiguous,
    usual_decimal,
)
from tabsym.compare.reading import ReadOptions, has_sheet, is_text_file, is_workbook, read
from tabsym.compare.text import listed
from tabsym.encoders.dates import holds_days, moments_of, moments_of_words
from tabsym.frame.columns import FIRST_ROUNDED

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
    """

    formats: dict[str, NumberFormat] = field(default_factory=dict)
    booleans: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    na_values: dict[str, list[str]] = field(default_factory=dict)
    sep: str | None = None
    encoding: str | None = None
    categorical: list[str] = field(default_factory=list)
    sheet: str | None = None

    def options_for(self, table: Any) -> ReadOptions:
        """How to read a later table, from a file or a frame of any kind; a workbook may lack the sheet of training."""
        is_file = isinstance(table, (str, Path))
        if is_file and is_text_file(table):
            return ReadOptions(sep=self.sep, encoding=self.encoding)
        if is_file and self.sheet is not None and is_workbook(table) and has_sheet(table, self.sheet):
            return ReadOptions(sheet=self.sheet)
        return ReadOptions()

    def read(self, table: Any) -> pd.DataFrame:
        """A later table, from a file or a frame of any kind, with its columns as they were read in training."""
        return self.apply(read(table, self.options_for(table)).frame)

    def apply(self, frame: pd.DataFrame) -> pd.DataFrame:
        """A table with its columns as they were read in training; cells that are no numbers now stay as they are."""
        frame = with_plain_types(without(frame, self.na_values), [], self.categorical)
        changed: dict[str, pd.Series] = {}
        for name in frame.columns:
            column = frame[name]
            if not _holds_text(column):
                continue
            if name in self.booleans:
                changed[name] = _as_booleans(column)
            elif name in self.categorical and name in self.numbers:
                changed[name] = column.astype(object).map(_as_decimal, na_action="ignore")
            elif name in self.formats or name in self.numbers:
                numbers, strange = self.formats.get(name, _PLAIN).parse(column)
                parsed = pd.Series(numbers, index=column.index)
                changed[name] = parsed.astype(object).where(~strange, column) if strange.any() else parsed
        return frame.assign(**changed) if changed else frame


def without(frame: pd.DataFrame, na_values: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """The frame with what the user said is missing left out; numbers are compared as numbers, dates as dates."""
    if not na_values:
        return frame
    changed: dict[str, pd.Series] = {}
    for name in frame.columns:
        words = [*na_values.get("", ()), *na_values.get(name, ())]
        column = frame[name]
        if not words:
            continue
        if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
            meant = [float(word) for word in words if is_plain(word)]
            missing = column.isin(meant)
        elif pd.api.types.is_datetime64_any_dtype(column) or holds_days(column):
            missing = moments_of(name, column, "moments").isin(moments_of_words(words))
        else:
            missing = column.astype(object).map(lambda value: isinstance(value, str) and value.strip() in words)  # noqa: B023
            missing = missing.astype(bool)
        if missing.any():
            changed[name] = column.mask(missing)
    return frame.assign(**changed) if changed else frame


def read_typed(
    table: Any,
    options: ReadOptions | None = None,
    notes: list[str] | None = None,
    target: str | None = None,
) -> tuple[pd.DataFrame, Retyping]:
    """Read a dataframe or a file, its text columns of numbers as numbers; see `read` and `retype`."""
    options, notes = options or ReadOptions(), [] if notes is None else notes
    source = read(table, options)
    notes.extend(source.notes)
    return retype(source.frame, options, source.untyped, source.separator, notes, target)


def retype(
    frame: pd.DataFrame,
    options: ReadOptions,
    untyped: bool,
    separator: str,
    notes: list[str],
    target: str | None = None,
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

    Raises
    ------
    ValueError
        A column in `numeric` contains mostly text.
    """
    frame = with_plain_types(without(frame, options.na_values), notes, options.categorical)
    text = {name: _cells(frame[name]) for name in frame.columns if _holds_text(frame[name])}
    prefer = options.decimal or usual_decimal(text, separator)
    out: dict[str, pd.Series] = {}
    booleans: list[str] = []
    formats: dict[str, NumberFormat] = {}
    whole: list[str] = []
    for name, counts in text.items():
        plain = untyped and name not in options.numeric and (prefer == "." or name in options.categorical)
        plain = plain and options.thousands != "."
        if plain and counts and _all_plain(counts):
            numbers = pd.to_numeric(frame[name])
            if name in options.categorical and _are_rounded(numbers):
                continue  # which would be one category for several
            out[name] = numbers
            notes += _doubt(name, list(counts), options)
            continue
        if not counts or name in options.categorical:
            continue
        if {cell.strip().lower() for cell in counts} <= set(_BOOLEANS) and name not in options.numeric:
            booleans.append(name)
            out[name] = _as_booleans(frame[name])
            continue
        many = name == target and len(counts) > MAX_CLASSES
        result = TextColumn(name, counts, options, prefer, untyped or many, name == target).read()
        if isinstance(result, str):
            notes += [] if name == target and len(counts) <= MAX_CLASSES else [result]
        elif isinstance(result, PlainNumbers):
            whole.append(name)
        elif result is not None:
            formats[name], line = result
            parsed, strange = formats[name].parse(frame[name])
            parsed[strange] = np.nan
            out[name] = pd.Series(parsed, index=frame.index)
            if line:
                notes.append(line)
    if whole:
        notes.append(
            f"{_columns(whole)} numbers as text and {'is' if len(whole) == 1 else 'are'} read as text; "
            f"use --numeric {quote(','.join(whole[:5]))} to read numbers."
        )
    booleans += [name for name in frame.columns if name not in out and _is_boolean(frame[name])]
    frame = frame.assign(**out) if out else frame
    number_columns = [
        name for name in frame.columns if name not in formats and (_is_number(frame[name]) or are_decimals(frame[name]))
    ]
    return frame, Retyping(
        formats, booleans, number_columns, dict(options.na_values), options.sep, options.encoding,
        list(options.categorical), options.sheet,
    )  # fmt: skip


def _as_decimal(cell: Any) -> Any:
    """A number in text with all its digits; other cells as they are."""
    return Decimal(cell.strip()) if isinstance(cell, str) and is_plain(cell) else cell


def _are_rounded(numbers: pd.Series) -> bool:
    """Whether whole numbers have lost digits, as beside missing cells."""
    return numbers.dtype.kind == "f" and bool((numbers.abs() >= FIRST_ROUNDED).any())


def _is_boolean(column: pd.Series) -> bool:
    """Whether a column that is no text holds booleans, and missing values."""
    return not _holds_text(column) and pd.api.types.infer_dtype(column, skipna=True) == "boolean"


def _all_plain(counts: Mapping[str, int]) -> bool:
    """Whether all cells are numbers as programs write them, and none is a code with leading zeros."""
    plain = all(is_plain(text) and not (text[0] == "0" and text.isdigit() and len(text) > 1) for text in counts)
    return plain and not are_thousands(list(counts))


def _doubt(name: str, cells: list[str], options: ReadOptions) -> list[str]:
    """A line on numbers of three decimals, all of which may be thousands."""
    if options.decimal or looks_ambiguous(cells) != ".":
        return []
    shown = next(cell for cell in sorted(cells, key=lambda cell: not cell.endswith("0")) if "." in cell)
    return [f"Column {name!r} is read as numbers with decimal points, {shown!r} read as {float(shown):g}; "
            "use --decimal , if they are thousands."]  # fmt: skip


def _holds_text(column: pd.Series) -> bool:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return bool(pd.api.types.infer_dtype(dtype.categories) == "string")
    if not pd.api.types.is_object_dtype(dtype):
        return bool(pd.api.types.is_string_dtype(dtype))
    content = pd.api.types.infer_dtype(column, skipna=True)
    return content == "string" or (content.startswith("mixed") and any(isinstance(value, str) for value in column))


def _cells(column: pd.Series) -> dict[str, int]:
    """Distinct cells as text -> how often; nothing where some are neither text nor numbers."""
    counts: dict[str, int] = {}
    for value, times in column.value_counts(dropna=True, sort=False).items():
        if not isinstance(value, (str, int, float, np.number, Decimal)) or isinstance(value, bool):
            return {}
        text = str(value.item() if isinstance(value, np.generic) else value)
        counts[text] = counts.get(text, 0) + int(times)
    return {text: times for text, times in counts.items() if times}


def _as_booleans(column: pd.Series) -> pd.Series:
    values = [_BOOLEANS.get(value.strip().lower(), value) if isinstance(value, str) else value for value in column]
    out = pd.Series([None if pd.isna(value) else value for value in values], index=column.index, dtype=object)
    return out.astype(bool) if all(isinstance(value, bool) for value in out) else out


def _columns(names: Sequence[str]) -> str:
    return f"Column {names[0]!r} holds" if len(names) == 1 else f"Columns {listed(names)} hold"


def _is_number(column: pd.Series) -> bool:
    dtype = column.dtype.categories.dtype if isinstance(column.dtype, pd.CategoricalDtype) else column.dtype
    return pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
