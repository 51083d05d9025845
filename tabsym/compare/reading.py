"""A table from a file or a dataframe, as pandas."""

from __future__ import annotations

import codecs
import csv
import io
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import pandas as pd


def read(table: Any, as_text: Mapping[str, bool] | None = None) -> pd.DataFrame:
    """A dataframe of any kind, or a file by its ending, as a pandas frame; `as_text`: see `read_path`."""
    if isinstance(table, (str, Path)):
        return read_path(table, as_text)
    if isinstance(table, pd.DataFrame):
        return _named(table)
    frame = nw.from_native(table)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    return _named(frame.to_pandas())


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns by text: files and settings know no other names."""
    return frame if all(isinstance(name, str) for name in frame.columns) else frame.rename(columns=str)


def read_path(path: str | Path, as_text: Mapping[str, bool] | None = None) -> pd.DataFrame:
    """Read CSV, TSV, Parquet, Arrow (Feather) or JSON lines, by the file's ending.

    `as_text` says of columns of text files whether they are text, as in "1.10", or numbers; of others it is guessed.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    ending = path.suffix.lower()
    if ending in (".csv", ".tsv", ".txt"):
        return _read_text(path, as_text or {})
    for endings, parse in _PARSERS.items():
        if ending in endings:
            try:
                return parse(path)
            except ValueError as error:  # pyarrow's own errors are some
                what = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise ValueError(
                    f"{path.name} cannot be read as {ending} ({what}); write it anew, or give it its right ending."
                ) from None
    raise ValueError(f"{path.name} has an ending that is not known; use .csv, .tsv, .parquet, .arrow or .jsonl.")


_PARSERS: dict[tuple[str, ...], Callable[[Path], pd.DataFrame]] = {
    (".parquet", ".pq"): pd.read_parquet,
    (".arrow", ".feather", ".ipc"): pd.read_feather,
    (".jsonl", ".ndjson"): lambda path: pd.read_json(path, lines=True, dtype=False),
}


def _read_text(path: Path, as_text: Mapping[str, bool]) -> pd.DataFrame:
    text, encoding = _decoded(path)
    if path.suffix.lower() == ".tsv":
        separator = "\t"
    else:
        try:
            separator = csv.Sniffer().sniff(text[:20_000], delimiters=",;\t|").delimiter
        except csv.Error:
            separator = ","
    if not text.strip():
        raise ValueError(f"{path.name} is empty; give a file with a header and rows.")
    header = next(csv.reader(text.splitlines(), delimiter=separator, skipinitialspace=True))
    for name in header:
        if header.count(name) > 1:
            raise ValueError(f"Column {name!r} appears twice in the header of {path.name}; rename one of the two.")
    _refuse_longer_rows(path, text, separator, len(header))
    try:
        with warnings.catch_warnings():  # of empty fields at the end of lines
            warnings.simplefilter("ignore", pd.errors.ParserWarning)
            frame = pd.read_csv(
                path, sep=separator, encoding=encoding, encoding_errors="replace", dtype="str", skipinitialspace=True,
                index_col=False,
            )  # fmt: skip
    except pd.errors.ParserError as error:
        what = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise ValueError(
            f"{path.name} is not a table of equal rows, read with {separator!r} between fields ({what}); "
            "mend that line, or quote the field."
        ) from None
    for name in frame.columns:
        if as_text.get(name):
            continue
        column = _decimal_points(frame[name]) if separator == ";" else frame[name]
        frame[name] = _numbers(column) if name in as_text else _numbers_where_numbers(column)
    return frame


def _decoded(path: Path) -> tuple[str, str]:
    """The text of a file, and how it is encoded; spreadsheets write UTF-16 as well, with a mark that says so."""
    with path.open("rb") as file:
        mark = file.read(2)
    encoding = "utf-16" if mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
    try:
        return path.read_text(encoding=encoding), encoding
    except UnicodeError:
        return path.read_text(encoding="cp1252", errors="replace"), "cp1252"


def _refuse_longer_rows(path: Path, text: str, separator: str, n_columns: int) -> None:
    """More fields than the header names would be dropped, or shift the columns; empty ones at the end are none."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    for row in rows:
        if any(row[n_columns:]):
            raise ValueError(
                f"{path.name} is not a table of equal rows, read with {separator!r} between fields (line "
                f"{rows.line_num} has {len(row)} fields, the header {n_columns}); mend that line, or quote the field."
            )


def _decimal_points(column: pd.Series) -> pd.Series:
    """Numbers written with a decimal comma, as they are where semicolons separate."""
    present = column.dropna()
    if present.empty or not present.str.fullmatch(r"[-+]?\d+(,\d+)?").all():
        return column
    return column.str.replace(",", ".", regex=False)


def _numbers_where_numbers(column: pd.Series) -> pd.Series:
    """Numbers as numbers, but codes with leading zeros stay text."""
    present = column.dropna()
    if present.empty or present.str.fullmatch(r"0\d+").any():
        return column
    numbers = pd.to_numeric(column, errors="coerce")
    return numbers if numbers.notna().sum() == len(present) else column


def _numbers(column: pd.Series) -> pd.Series:
    """Whatever is a number as one, also with leading zeros; what is none stays text, to be named later."""
    numbers = pd.to_numeric(column, errors="coerce")
    strange = numbers.isna() & column.notna()
    return numbers.astype(object).where(~strange, column) if strange.any() else numbers
