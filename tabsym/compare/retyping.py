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

from tabsym.compare.cell_types import not_read, quoted, with_plain_types
from tabsym.compare.number_format import (
    GROUP_MARKS,
    Cell,
    NumberFormat,
    are_thousands,
    choose_separators,
    is_plain,
    looks_ambiguous,
    number_of,
    split_cell,
    unit_factors,
)
from tabsym.compare.reading import ReadOptions, is_text_file, read
from tabsym.compare.text import listed
from tabsym.encoders.dates import holds_days, moments_of, moments_of_words
from tabsym.frame.meaning import means_missing

_MIN_NUMBERS = 0.5  # of the cells of a column of numbers, the other ones being words for missing
_MAX_OTHER_CELLS, _MAX_OTHER_WORDS = 0.2, 3  # of words that are not known to mean missing
_MAX_TYPING_ERRORS = 0.01  # of the cells, whatever they hold
_MIN_DISTINCT = 10  # numbers, beside words that are not known to mean missing
_MAX_CLASSES = 20  # of a target of text
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
    """

    formats: dict[str, NumberFormat] = field(default_factory=dict)
    booleans: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    na_values: dict[str, list[str]] = field(default_factory=dict)
    sep: str | None = None
    encoding: str | None = None

    def read(self, table: Any) -> pd.DataFrame:
        """A later table, from a file or a frame of any kind, with its columns as they were read in training."""
        is_text = isinstance(table, (str, Path)) and is_text_file(table)
        options = ReadOptions(sep=self.sep, encoding=self.encoding) if is_text else ReadOptions()
        return self.apply(read(table, options).frame)

    def apply(self, frame: pd.DataFrame) -> pd.DataFrame:
        """A table with its columns as they were read in training; cells that are no numbers now stay as they are."""
        frame = with_plain_types(without(frame, self.na_values), [])
        changed: dict[str, pd.Series] = {}
        for name in frame.columns:
            column = frame[name]
            if not _holds_text(column):
                continue
            if name in self.booleans:
                changed[name] = _as_booleans(column)
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
    prefer = options.decimal or _usual_decimal(text, separator)
    out: dict[str, pd.Series] = {}
    booleans: list[str] = []
    formats: dict[str, NumberFormat] = {}
    whole: list[str] = []
    for name, counts in text.items():
        plain = untyped and name not in options.numeric and (prefer == "." or name in options.categorical)
        plain = plain and options.thousands != "."
        if plain and counts and _all_plain(counts):
            out[name] = pd.to_numeric(frame[name])
            notes += _doubt(name, list(counts), options)
            continue
        if not counts or name in options.categorical:
            continue
        if {cell.strip().lower() for cell in counts} <= set(_BOOLEANS) and name not in options.numeric:
            booleans.append(name)
            out[name] = _as_booleans(frame[name])
            continue
        many = name == target and len(counts) > _MAX_CLASSES
        result = _Reader(name, counts, options, prefer, untyped or many, name == target).read()
        if isinstance(result, str):
            notes += [] if name == target and len(counts) <= _MAX_CLASSES else [result]
        elif isinstance(result, _Whole):
            whole.append(name)
        elif result is not None:
            formats[name], line = result
            numbers, strange = formats[name].parse(frame[name])
            numbers[strange] = np.nan
            out[name] = pd.Series(numbers, index=frame.index)
            if line:
                notes.append(line)
    if whole:
        notes.append(
            f"{_columns(whole)} numbers as text and {'is' if len(whole) == 1 else 'are'} read as text; "
            f"use --numeric {quote(','.join(whole[:5]))} to read numbers."
        )
    frame = frame.assign(**out) if out else frame
    number_columns = [name for name in frame.columns if name not in formats and _is_number(frame[name])]
    return frame, Retyping(formats, booleans, number_columns, dict(options.na_values), options.sep, options.encoding)


class _Whole:
    """The verdict on a typed column of text whose cells are all plain numbers."""


@dataclass(frozen=True)
class _Reader:
    """The decision on one text column."""

    name: str
    counts: dict[str, int]
    options: ReadOptions
    prefer: str
    untyped: bool
    is_target: bool

    def read(self) -> tuple[NumberFormat, str] | str | _Whole | None:
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
            return self._left(factors) if not forced else self._refuse_mixed(factors)
        if not forced and _are_bounds([cell for cell, _ in cells.values()]):
            return self._left("its cells are bounds on either side of a number")
        digits: dict[str, int] = {}
        for cell, times in cells.values():
            digits[cell.digits] = digits.get(cell.digits, 0) + times
        decimal, thousands = self._separators(
            digits, scaled=len({factors[cell.unit] for cell, _ in cells.values()}) > 1
        )
        good = {text for text, (cell, _) in cells.items() if number_of(cell.digits, decimal, thousands) is not None}
        other = {text: times for text, times in self.counts.items() if text not in good}
        unknown = {text: times for text, times in other.items() if not means_missing(text)}
        values = {number_of(cells[text][0].digits, decimal, thousands) for text in good}
        if not good or (not forced and not self._few(unknown, total, len(values))):
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
            return _Whole()
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

    def _separators(self, digits: dict[str, int], *, scaled: bool) -> tuple[str, str]:
        """The separators; `scaled`: larger units save large numbers, so that points in "1.610k" are of decimals."""
        asked, mark = self.options.decimal, self.options.thousands
        if asked or mark:
            decimal = asked or ("," if mark == "." else ".")
            return decimal, mark if mark is not None else ("," if decimal == "." else ".") + GROUP_MARKS
        if are_thousands(list(digits)) and not scaled:
            return ",", "." + GROUP_MARKS
        if looks_ambiguous(list(digits)) == "." and self.prefer == ".":
            return ".", "," + GROUP_MARKS
        return choose_separators(digits, self.prefer)

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
            return f"Target {self.name!r} is read as numbers{said}{classes if len(good) <= _MAX_CLASSES else ''}."
        return f"Column {self.name!r} is read as numbers{said}; use --categorical {quote(self.name)} to keep the text."

    def _left(self, why: str) -> str:
        return (
            f"Column {self.name!r} looks like numbers but is read as text, as {why}; "
            f"use --numeric {quote(self.name)} to read numbers."
        )

    def _refuse(self, words: Mapping[str, int]) -> str:
        raise ValueError(
            f"Column {self.name!r} is in numeric, but most of its cells are not numbers ({quoted(words)}); "
            "remove it from numeric (--numeric)."
        )

    def _refuse_mixed(self, why: str) -> str:
        raise ValueError(f"Column {self.name!r} is in numeric, but {why}; convert them to one unit first.")


def _all_plain(counts: Mapping[str, int]) -> bool:
    """Whether all cells are numbers as programs write them, and none is a code with leading zeros."""
    plain = all(is_plain(text) and not (text[0] == "0" and text.isdigit() and len(text) > 1) for text in counts)
    return plain and not are_thousands(list(counts))


def _are_bounds(cells: Sequence[Cell]) -> bool:
    """Whether cells such as "<=50" and ">50" part the values in two, so that the signs are what matters."""
    sides: dict[str, set[str]] = {}
    for cell in cells:
        sides.setdefault(cell.digits, set()).add(cell.about[:1])
    return any({"<", ">"} <= signs or {"≤", ">"} <= signs or {"<", "≥"} <= signs for signs in sides.values())


def _doubt(name: str, cells: list[str], options: ReadOptions) -> list[str]:
    """A line on numbers of three decimals, all of which may be thousands."""
    if options.decimal or looks_ambiguous(cells) != ".":
        return []
    shown = next(cell for cell in sorted(cells, key=lambda cell: not cell.endswith("0")) if "." in cell)
    return [f"Column {name!r} is read as numbers with decimal points, {shown!r} read as {float(shown):g}; "
            "use --decimal , if they are thousands."]  # fmt: skip


def _usual_decimal(text: Mapping[str, Mapping[str, int]], separator: str) -> str:
    """The decimal separator of the columns that leave no doubt; of a file with semicolons a comma in a tie."""
    votes = {".": 0, ",": 0}
    for counts in text.values():
        cells = [cell.digits for cell in map(split_cell, counts) if cell is not None]
        if len(cells) < len(counts) / 2:
            continue
        for mark, other in ((".", ","), (",", ".")):
            votes[mark] += any(
                number_of(cell, mark, other) is not None and number_of(cell, other, mark) is None for cell in cells
            )
    if votes["."] == votes[","]:
        return "," if separator == ";" else "."
    return max(votes, key=lambda mark: votes[mark])


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
