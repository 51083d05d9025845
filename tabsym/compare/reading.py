"""A table from a file or a dataframe, as pandas; text is kept distinct from missing cells."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import json
import lzma
import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import pandas as pd

_SNIFFED = 20_000  # characters by which the separator of a text file is guessed
_SEPARATORS = ",;\t|"
_NAMED_SEPARATOR = re.compile(r'"?sep=(?P<separator>[^\w\s"]|\t)"?[ \t]*(?:\r\n?|\n)', re.IGNORECASE)
_PACKED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_TEXT = (".csv", ".tsv", ".txt")
_ENDINGS = ".csv, .tsv, .parquet, .arrow, .jsonl, .json or .xlsx (also compressed, such as .csv.gz)"


@dataclass(frozen=True)
class ReadOptions:
    """The user's options for reading a table.

    Attributes
    ----------
    numeric, categorical : sequence of str
        Columns to read as numbers, and columns of numbers to read as categories.
    na_values : dict of str -> list of str
        Column, or "" for all -> cells that mean missing.
    decimal, thousands : str or None
        Separators of numbers in text; None: found by column.
    sep, encoding : str or None
        Of a text file; None: found.
    dayfirst : bool or None
        Whether 03/04 is the third of April; None: found where some day is after the 12th, else the month comes first.
    """

    numeric: Sequence[str] = ()
    categorical: Sequence[str] = ()
    na_values: dict[str, list[str]] = field(default_factory=dict)
    decimal: str | None = None
    thousands: str | None = None
    sep: str | None = None
    encoding: str | None = None
    dayfirst: bool | None = None


@dataclass(frozen=True)
class Source:
    """A table as it was found: `untyped` columns are all text; `separator` of fields, "" where there is none."""

    frame: pd.DataFrame
    untyped: bool = False
    separator: str = ""
    notes: tuple[str, ...] = ()


def read(table: Any, options: ReadOptions | None = None) -> Source:
    """Read a dataframe of any kind, or a file by its ending, without a guess at what its text means.

    Raises
    ------
    ValueError
        The file is no table, or its ending is not known.
    FileNotFoundError
        There is no such file.
    """
    options = options or ReadOptions()
    if isinstance(table, (str, Path)):
        return read_path(table, options)
    if isinstance(table, pd.DataFrame):
        return Source(_named(table))
    if nw.dependencies.is_pyarrow_table(table):  # narwhals has no frame of equal names to say so of
        _check_names(table.column_names)
    frame = nw.from_native(table)
    notes: tuple[str, ...] = ()
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
        notes = (f"The lazy table was collected: {len(frame):,} rows.",)
    return Source(_named(frame.to_pandas()), notes=notes)


def name_of_file(path: str | Path) -> str:
    """The name of a file without its endings."""
    path = Path(path)
    return Path(path.stem).stem if path.suffix.lower() in (*_PACKED, ".zip") else path.stem


def is_text_file(path: str | Path) -> bool:
    """Whether a file is CSV or the like, by its ending."""
    path = Path(path)
    ending = Path(path.stem).suffix if path.suffix.lower() in (*_PACKED, ".zip") else path.suffix
    return ending.lower() in _TEXT


def read_path(path: str | Path, options: ReadOptions | None = None) -> Source:
    """Read CSV, TSV, Parquet, Arrow (Feather), JSON (lines) or Excel, by the file's ending."""
    path, options = Path(path), options or ReadOptions()
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    packed = path.suffix.lower() in (*_PACKED, ".zip")
    ending = Path(path.stem).suffix.lower() if packed else path.suffix.lower()
    data = _unpacked(path) if packed else None
    try:
        if ending in _TEXT:
            return _read_text(path, ending, data if data is not None else path.read_bytes(), options)
        return _read_typed(path, ending, data, options)
    except _EqualNamesError as error:
        raise _EqualNamesError(error.name, f"the header of {path.name}") from None


def _read_typed(path: Path, ending: str, data: bytes | None, options: ReadOptions) -> Source:
    """A file whose cells have types, by a library."""
    refuse_text_options(path, options)
    for endings, parse in _PARSERS.items():
        if ending in endings:
            try:
                return parse(path if data is None else io.BytesIO(data))
            except ModuleNotFoundError as error:
                raise ModuleNotFoundError(
                    f'Reading {ending} needs {error.name}: pip install "tabsym[compare]"', name=error.name
                ) from None
            except _EqualNamesError:
                raise
            except (ValueError, TypeError, KeyError, OSError, zipfile.BadZipFile) as error:
                what = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise ValueError(
                    f"{path.name} cannot be read as {ending} ({what}); write it again, or give it the right ending."
                ) from None
    raise ValueError(f"{path.name} has an unknown ending; use {_ENDINGS}.")


def refuse_text_options(path: Path, options: ReadOptions) -> None:
    """A `ValueError` where an option for text files is given for one that is none."""
    for name in ("sep", "encoding"):
        if getattr(options, name) is not None:
            raise ValueError(f"{name} (--{name}) is for text files such as CSV; leave it out for {path.name}.")


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns by text without blanks around, as headers of files are read: settings know no other names."""
    names = [str(name).strip() for name in frame.columns]
    named = frame if names == frame.columns.tolist() else frame.set_axis(names, axis=1)
    _check_names(named.columns.tolist())
    return named


class _EqualNamesError(ValueError):
    """Two columns have one name; `where` they were found."""

    def __init__(self, name: str, where: str = "the table") -> None:
        super().__init__(f"Column {name!r} appears twice in {where}; rename one of the two.")
        self.name = name


def _check_names(names: Sequence[str]) -> None:
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise _EqualNamesError(twice[0])


def _unpacked(path: Path) -> bytes:
    try:
        if path.suffix.lower() == ".zip":
            with zipfile.ZipFile(path) as archive:
                names = [name for name in archive.namelist() if not name.endswith("/")]
                if len(names) != 1:
                    raise ValueError(f"it holds {len(names)} files, not one")
                return archive.read(names[0])
        with _PACKED[path.suffix.lower()](path) as file:
            return bytes(file.read())
    except (OSError, EOFError, ValueError, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path.name} cannot be decompressed ({error}); compress it again, or pass it uncompressed."
        ) from None


def _json(source: Any) -> Source:
    """Records, or one list a column; an object around a single list of records is opened."""
    text = (source.read() if hasattr(source, "read") else Path(source).read_bytes()).decode("utf-8-sig")
    try:
        body = json.loads(text, object_pairs_hook=_record)
    except ValueError:
        return _json_lines(io.BytesIO(text.encode()))
    if isinstance(body, dict) and len(body) == 1 and isinstance(next(iter(body.values())), list):
        body = next(iter(body.values()))
    if isinstance(body, dict) and body and all(isinstance(value, dict) for value in body.values()):
        body = {name: list(value.values()) for name, value in body.items()}
    if not isinstance(body, (list, dict)) or not body or (isinstance(body, list) and not isinstance(body[0], dict)):
        raise ValueError("it is neither a list of records nor lists by column")
    return Source(_named(pd.DataFrame(body)))


def _record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        _check_names([name for name, _ in pairs])
    return record


def _json_lines(source: Any) -> Source:
    text = (source.read() if hasattr(source, "read") else Path(source).read_bytes()).decode("utf-8-sig")
    records = [json.loads(line, object_pairs_hook=_record) for line in text.splitlines() if line.strip()]
    if not records or not all(isinstance(record, dict) for record in records):
        raise ValueError("its lines are not one record each")
    return Source(_named(pd.DataFrame(records)))


def _excel(source: Any) -> Source:
    """The first sheet that has rows; cells as they are stored, so that a text "NA" stays text."""
    import openpyxl

    workbook = openpyxl.load_workbook(source, read_only=True, data_only=True)
    filled = []
    for sheet in workbook.worksheets:
        rows = [row for row in sheet.iter_rows(values_only=True) if any(cell is not None for cell in row)]
        if rows:
            filled.append((sheet.title, rows))
    if not filled:
        raise ValueError("it has no sheet with rows")
    title, rows = filled[0]
    notes = [] if len(filled) == 1 else [f"Sheet {title!r} was read, the first of {len(filled)} with rows."]
    width = max(len(row) for row in rows)
    header = [*rows[0], *[None] * (width - len(rows[0]))]
    names, kept = _header([str(name) if name is not None else "" for name in header], notes,
                          lambda place: all(len(row) <= place or row[place] is None for row in rows[1:]))  # fmt: skip
    _check_names(names)
    columns = {
        name: pd.Series([row[place] if place < len(row) else None for row in rows[1:]], dtype=object).infer_objects()
        for name, place in zip(names, kept, strict=True)
    }
    return Source(pd.DataFrame(columns), notes=tuple(notes))


def _parquet(source: Any) -> pd.DataFrame:
    from pyarrow import parquet

    _check_names(parquet.read_schema(source).names)  # to read them fails in words of its own
    return pd.read_parquet(source)


def _typed(parse: Callable[[Any], pd.DataFrame]) -> Callable[[Any], Source]:
    return lambda source: Source(_named(parse(source)))


_PARSERS: dict[tuple[str, ...], Callable[[Any], Source]] = {
    (".parquet", ".pq"): _typed(_parquet),
    (".arrow", ".feather", ".ipc"): _typed(pd.read_feather),
    (".jsonl", ".ndjson"): _json_lines,
    (".json",): _json,
    (".xlsx", ".xlsm"): _excel,
}


def _read_text(path: Path, ending: str, data: bytes, options: ReadOptions) -> Source:
    text = _decoded(path, data, options.encoding)
    if not text.strip():
        raise ValueError(f"{path.name} is empty; pass a file with a header and rows.")
    notes: list[str] = []
    asked = options.sep
    named = _NAMED_SEPARATOR.match(text)
    if named:  # as spreadsheets write it, and read it without showing it
        text, asked = text[named.end() :], asked or named["separator"]
        notes.append(f"The first line names the separator {named['separator']!r} and is no row.")
    separator = _separator(text, ending, asked)
    blanks = _blanks_follow(text, separator)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=blanks)
    header = [name.strip() for name in next(row for row in rows if row)]
    width = _check_rows(path, rows, separator, len(header))
    try:
        with warnings.catch_warnings():  # of empty fields at the end of lines
            warnings.simplefilter("ignore", pd.errors.ParserWarning)
            frame = pd.read_csv(
                io.StringIO(text, newline=""), sep=separator, dtype="str", skipinitialspace=blanks, index_col=False,
                keep_default_na=False, na_values=[""], header=None, skiprows=0,
                names=range(width),
            )  # fmt: skip
    except pd.errors.ParserError as error:
        what = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise ValueError(
            f"{path.name} is not a table of equal rows, read with {separator!r} between fields ({what}); "
            "correct that line, or quote the field."
        ) from None
    frame = frame.iloc[1:, : len(header)].reset_index(drop=True)
    if re.search(rf'(?:^|{re.escape(separator)})""(?:{re.escape(separator)}|\r?$)', text, re.MULTILINE):
        frame = _with_empty_text(frame, text, separator)
    if width > len(header):
        notes.append(f"Rows end in {separator!r} and the header does not; what follows it is empty and was left out.")
    names, kept = _header(header, notes, lambda place: bool(frame[place].isna().all()))
    _check_names(names)
    return Source(frame[kept].set_axis(names, axis=1), True, separator, tuple(notes))


def _header(names: Sequence[str], notes: list[str], is_empty: Callable[[int], bool]) -> tuple[list[str], list[int]]:
    """Names of columns and their places; blank columns without a name are left out, other ones are named."""
    out, kept, blank = [], [], 0
    for place, name in enumerate(names):
        if not name.strip() and is_empty(place):
            blank += 1
            continue
        out.append(name.strip())
        kept.append(place)
        if not name.strip():
            number = place + 1
            while f"column {number}" in names:
                number += 1
            out[-1] = f"column {number}"
            notes.append(f"Column {place + 1} has no name in the header and is called 'column {number}'.")
    if blank:
        words = "1 blank column without a name was" if blank == 1 else f"{blank} blank columns without a name were"
        notes.append(f"{words} left out.")
    return out, kept


def _decoded(path: Path, data: bytes, encoding: str | None) -> str:
    """The text of a file; spreadsheets write UTF-16 as well, with a mark that says so."""
    if encoding is not None:
        try:
            return data.decode(encoding)
        except LookupError:
            raise ValueError(f"encoding={encoding!r} is not known; use one such as utf-8 or cp1252.") from None
        except UnicodeError as error:
            raise ValueError(f"{path.name} is not encoded as {encoding} ({error}); pass another encoding.") from None
    utf16 = data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    try:
        return data.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeError:
        return data.decode("cp1252", errors="replace")


def _separator(text: str, ending: str, asked: str | None) -> str:
    if asked is not None:
        separator = {"tab": "\t", "\\t": "\t"}.get(asked, asked)
        if len(separator) != 1 or separator in '\r\n"':
            raise ValueError(f"sep={asked!r} is not possible; use one character, such as ';', or 'tab'.")
        return separator
    if ending == ".tsv":
        return "\t"
    line = next(line for line in text.splitlines() if line.strip())
    try:
        return csv.Sniffer().sniff(text[:_SNIFFED], delimiters=_SEPARATORS).delimiter
    except csv.Error:
        bare = re.sub(r'"[^"]*"', "", line)
        return max(_SEPARATORS, key=bare.count) if any(sign in bare for sign in _SEPARATORS) else ","


def _blanks_follow(text: str, separator: str) -> bool:
    """Whether a blank after each separator belongs to the file's style and not to the cells."""
    line = re.sub(r'"[^"]*"', "", next(line for line in text.splitlines() if line.strip()))
    return separator + " " in line


def _check_rows(path: Path, rows: Any, separator: str, n_columns: int) -> int:
    """The number of fields of the longest row; those beyond the header are empty, else columns may have shifted."""
    width = n_columns
    try:
        for row in rows:
            width = max(width, len(row))
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
    return width


def _with_empty_text(frame: pd.DataFrame, text: str, separator: str) -> pd.DataFrame:
    """Put back the empty text of quoted fields, which pandas does not distinguish from missing."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    width = frame.shape[1]
    try:
        table = arrow.read_csv(
            io.BytesIO(text.encode()),
            arrow.ReadOptions(column_names=[str(place) for place in range(width)], skip_rows=0, block_size=1 << 30),
            arrow.ParseOptions(delimiter=separator, newlines_in_values=True),
            arrow.ConvertOptions(
                column_types={str(place): pa.string() for place in range(width)}, strings_can_be_null=True,
                quoted_strings_can_be_null=False, null_values=[""],
            ),
        )  # fmt: skip
    except (pa.ArrowInvalid, pa.ArrowCapacityError):  # of rows that are shorter: then all empty fields are missing
        return frame
    table = table.slice(1)
    if len(table) != len(frame):
        return frame
    out = {}
    for place in range(width):
        known = table.column(place).is_valid().to_pandas().to_numpy(dtype=bool)
        empty = frame[place].isna().to_numpy() & known
        out[place] = frame[place].mask(pd.Series(empty, index=frame.index), "") if empty.any() else frame[place]
    return pd.DataFrame(out)
