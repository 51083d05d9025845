"""Text files (CSV and the like): encoding, separator, header and cells, all as text."""

from __future__ import annotations

import codecs
import csv
import io
import re
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

_SNIFFED = 200  # rows by which the separator of a text file is guessed
_SEPARATORS = ";\t,|"  # of two that fit alike the first: commas are in numbers, too
_LISTED = re.compile(r"(?<!\d),|,(?!\d)|,(?!\d{3},)\d+,")  # a comma that is not that of a number
_NAMES = re.compile(r",(?! )")  # a comma between names; that of a unit has a blank behind it
_HEAD = 1 << 16  # characters in which such commas are looked for
_NAMED_SEPARATOR = re.compile(r'"?sep=(?P<separator>[^\w\s"]|\t)"?[ \t]*(?:\r\n?|\n)', re.IGNORECASE)


def read_text(
    path: Path, ending: str, data: bytes, *, sep: str | None, encoding: str | None
) -> tuple[pd.DataFrame, str, tuple[str, ...]]:
    """The columns, empty fields as missing and quoted empty ones as empty text; the separator; what was decided."""
    text = _decoded(path, data, encoding)
    notes: list[str] = []
    asked = sep
    named = _NAMED_SEPARATOR.match(text)
    if named:  # as spreadsheets write it, and read it without showing it
        text, asked = text[named.end() :], asked or named["separator"]
        notes.append(f"The first line names the separator {named['separator']!r} and is no row.")
    if not text.strip():
        raise ValueError(f"{path.name} is empty; pass a file with a header and rows.")
    separator = _separator(text, ending, asked)
    line = re.sub(r'"[^"]*"', "", next(line for line in lines_of(text) if line.strip()))
    blanks = separator + " " in line  # a blank after each separator is of the file's style and not of the cells
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=blanks)
    header = [name.strip() for name in next(row for row in rows if row)]
    width, short = _check_rows(path, rows, separator, header)
    try:
        with warnings.catch_warnings():  # of empty fields at the end of lines
            warnings.simplefilter("ignore", pd.errors.ParserWarning)
            frame = pd.read_csv(
                io.StringIO(text, newline=""), sep=separator, dtype="str", skipinitialspace=blanks, index_col=False,
                keep_default_na=False, na_values=[""], header=None,
                names=range(width),
            )  # fmt: skip
    except pd.errors.ParserError as error:
        what = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise ValueError(
            f"{path.name} is not a table of equal rows, read with {separator!r} between fields ({what}); "
            "correct that line, or quote the field."
        ) from None
    frame = frame.iloc[1:].reset_index(drop=True)
    quoted = re.search(rf'(?:^|{re.escape(separator)})""(?:{re.escape(separator)}|\r?$)', text, re.MULTILINE)
    if short:
        rows_are = "1 row has" if len(short) == 1 else f"{len(short):,} rows have"
        notes.append(
            f"{rows_are} fewer fields than the header, the first in line {short[0]}: what is not there"
            f"{', and quoted empty text,' if quoted else ''} is read as missing; if a line was cut, correct it."
        )
    elif quoted:
        frame = _with_empty_text(frame, text, separator)
    frame = frame.iloc[:, : len(header)]
    if width > len(header):
        notes.append(f"Rows end in {separator!r} and the header does not; what follows it is empty and was left out.")
    names, kept = name_columns(header, notes, lambda position: bool(frame[position].isna().all()))
    return frame[kept].set_axis(names, axis=1), separator, tuple(notes)


def lines_of(text: str) -> list[str]:
    """The lines of a file; unlike those of `str.splitlines`, cells may hold the other characters that end lines."""
    return re.split(r"[\r\n]", text)


def name_columns(
    names: Sequence[str], notes: list[str], is_empty: Callable[[int], bool]
) -> tuple[list[str], list[int]]:
    """Names of columns and their positions; blank columns without a name are left out, other ones are named."""
    out, kept, blank = [], [], 0
    for position, name in enumerate(names):
        if not name.strip() and is_empty(position):
            blank += 1
            continue
        out.append(name.strip())
        kept.append(position)
        if not name.strip():
            number = position + 1
            while f"column {number}" in names:
                number += 1
            out[-1] = f"column {number}"
            notes.append(f"Column {position + 1} has no name in the header and is called 'column {number}'.")
    if blank:
        words = "1 blank column without a name was" if blank == 1 else f"{blank} blank columns without a name were"
        notes.append(f"{words} left out.")
    return out, kept


def _decoded(path: Path, data: bytes, encoding: str | None) -> str:
    """The text of a file; spreadsheets write UTF-16 as well, with a mark that says so."""
    if encoding is not None:
        try:
            text = data.decode(encoding)
        except LookupError:
            raise ValueError(f"encoding={encoding!r} is not known; use one such as utf-8 or cp1252.") from None
        except UnicodeError as error:
            raise ValueError(f"{path.name} is not encoded as {encoding} ({error}); pass another encoding.") from None
        if b"\n" in data and len(lines_of(text)) < 2:  # any two bytes are a sign of UTF-16
            raise ValueError(f"{path.name} is not encoded as {encoding} (no line ends); pass another encoding.")
        return text
    utf16 = data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    try:
        return data.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeError:
        return data.decode("cp1252", errors="replace")


def _separator(text: str, ending: str, asked: str | None) -> str:
    """The field separator: as asked for, by the file's extension, or that which fits best."""
    if asked is not None:
        separator = {"tab": "\t", "\\t": "\t"}.get(asked, asked)
        if len(separator) != 1 or separator in '\r\n"':
            raise ValueError(f"sep={asked!r} is not possible; use one character, such as ';', or 'tab'.")
        return separator
    if ending == ".tsv":
        return "\t"
    fits = {sign: _fit(text, sign) for sign in _SEPARATORS}
    header, _, body = text.partition("\n")
    least = fits[","][1] + bool(_NAMES.search(header))  # fields by which a bar is not that of one name
    others = ";\t|" if fits["|"][1] >= least else ";\t"
    if any(fits[sign] >= (1.0, 2) for sign in others) and not _LISTED.search(body[:_HEAD]):
        fits[","] = 0.0, 0  # all commas below the header are within numbers
    return max(fits, key=fits.__getitem__) if any(n_columns for _, n_columns in fits.values()) else ","


def _fit(text: str, separator: str) -> tuple[float, int]:
    """How well a separator fits a file: the share of its first rows that have the header's fields, and their number.

    0 where the header has none outside of quotes: what separates cells of text is no sign of the file's. Fields beyond
    the header may be empty.
    """
    rows: list[list[str]] = []
    with suppress(csv.Error):
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            rows += [row] if any(map(str.strip, row)) else []
            if len(rows) > _SNIFFED:
                break
    n = len(rows[0]) if rows else 0
    if n < 2:
        return 0.0, 0
    fitting = [len(row) >= n and not any(row[n:]) for row in rows[1:]]
    return sum(fitting) / max(len(fitting), 1), n


def _check_rows(path: Path, rows: Any, separator: str, header: Sequence[str]) -> tuple[int, list[int]]:
    """The number of fields of the longest row, and the lines of rows with fewer fields than the header.

    Fields beyond the header are empty, else columns may have shifted.
    """
    n_columns = len(header)
    named = max((position for position, name in enumerate(header, start=1) if name), default=0)
    width, short = n_columns, []
    try:
        for row in rows:
            width = max(width, len(row))
            if len(row) < named and any(map(str.strip, row)):
                short.append(rows.line_num)
            if any(row[n_columns:]):
                raise ValueError(
                    f"{path.name} is not a table of equal rows, read with {separator!r} between fields (line "
                    f"{rows.line_num} has {len(row)} fields, the header {n_columns}); correct that line, quote "
                    "the field, or pass the separator (--sep)."
                )
    except csv.Error as error:
        raise ValueError(
            f"{path.name} is not a text table (line {rows.line_num}: {error}); give it the right ending."
        ) from None
    return width, short


def _with_empty_text(frame: pd.DataFrame, text: str, separator: str) -> pd.DataFrame:
    """Put back the empty text of quoted fields, which pandas does not distinguish from missing."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    width = frame.shape[1]
    other: list[Any] = []  # rows with another number of fields: the header, where rows end in a separator

    def leave_out(row: Any) -> str:
        other.append(row)
        return "skip"

    try:
        table = arrow.read_csv(
            io.BytesIO(text.encode()),
            arrow.ReadOptions(column_names=[str(position) for position in range(width)], block_size=1 << 30),
            arrow.ParseOptions(delimiter=separator, newlines_in_values=True, invalid_row_handler=leave_out),
            arrow.ConvertOptions(
                column_types={str(position): pa.string() for position in range(width)}, strings_can_be_null=True,
                quoted_strings_can_be_null=False, null_values=[""],
            ),
        )  # fmt: skip
    except (pa.ArrowInvalid, pa.ArrowCapacityError):
        return frame
    table = table if other else table.slice(1)
    if len(table) != len(frame):  # of rows that are not equal: then all empty fields are missing
        return frame
    out = {}
    for position in range(width):
        known = table.column(position).is_valid().to_pandas().to_numpy(dtype=bool)
        empty = frame[position].isna().to_numpy() & known
        out[position] = (
            frame[position].mask(pd.Series(empty, index=frame.index), "") if empty.any() else frame[position]
        )
    return pd.DataFrame(out)
