"""A table from a file or a dataframe, as pandas, or a sample of its rows, as many as requested or as fit into memory.

Text is kept distinct from missing cells.

Of text files (CSV and the like) encoding, separator and header are found, and cells are text.
"""

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
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.compare.text import listed, perhaps
from tabsym.frame.read import Batches, is_dataset, is_larger_than_memory
from tabsym.messages import plural

_PACKED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_TEXT, _WORKBOOKS = (".csv", ".tsv", ".txt"), (".xlsx", ".xlsm")
_ENDINGS = ".csv, .tsv, .parquet, .arrow, .feather, .jsonl, .json or .xlsx (also compressed, such as .csv.gz)"


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
        Separators of numbers in text; None: detected by column.
    sep, encoding : str or None
        Of a text file; None: detected.
    dayfirst : bool or None
        Whether 03/04 is the third of April; None: it is where some day is after the 12th, else the month comes first.
    sheet : str or None
        Of a workbook; None: the first that has rows.
    """

    numeric: Sequence[str] = ()
    categorical: Sequence[str] = ()
    na_values: dict[str, list[str]] = field(default_factory=dict)
    decimal: str | None = None
    thousands: str | None = None
    sep: str | None = None
    encoding: str | None = None
    dayfirst: bool | None = None
    sheet: str | None = None


@dataclass(frozen=True)
class Source:
    """A table as it was read: `untyped` columns are all text; `separator` of fields, "" where there is none."""

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
    refuse_options(table, options)
    if isinstance(table, (str, Path)):
        return read_path(table, options)
    if isinstance(table, pd.DataFrame):
        labels = [str(name) for name in table.index.names if name is not None and name not in table.columns]
        said = f"The index {listed(labels)} of the frame is no column; use table.reset_index() to make it one."
        return Source(_named(table), notes=(said,) if labels else ())
    if nw.dependencies.is_pyarrow_table(table):  # narwhals has no frame of equal names to say so of
        _check_names(table.column_names)
    frame = nw.from_native(table)
    notes: tuple[str, ...] = ()
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
        notes = (f"The lazy table was collected: {plural(len(frame), 'row')}.",)
    return Source(_named(with_labels(frame.to_pandas())), notes=notes)


def name_of_file(path: str | Path) -> str:
    """The name of a file without its endings."""
    path = Path(path)
    return Path(path.stem).stem if path.suffix.lower() in (*_PACKED, ".zip") else path.stem


def is_text_file(path: str | Path) -> bool:
    """Whether a file is CSV or the like, by its ending."""
    return _ending(Path(path)) in _TEXT


def is_workbook(path: str | Path) -> bool:
    """Whether a file is one of Excel's, by its ending."""
    return _ending(Path(path)) in _WORKBOOKS


def options_of_text(path: str | Path, sep: str | None, encoding: str | None) -> ReadOptions:
    """The separator and encoding of another text file, as far as they are this one's, too.

    Text in UTF-8 is hardly ever valid by chance, and a header without the separator has another one.
    """
    if sep is None and encoding is None:
        return ReadOptions()
    path = Path(path)
    data = _unpacked(path) if _ending(path) != path.suffix.lower() else path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
        encoding = encoding if data.isascii() or "\0" in text else None
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    is_there = sep is not None and {"tab": "\t", "\\t": "\t"}.get(sep, sep) in text.split("\n", 1)[0]
    return ReadOptions(sep=sep if is_there else None, encoding=encoding)


def _ending(path: Path) -> str:
    return (Path(path.stem).suffix if path.suffix.lower() in (*_PACKED, ".zip") else path.suffix).lower()


def read_path(path: str | Path, options: ReadOptions | None = None) -> Source:
    """Read CSV, TSV, Parquet, Arrow (Feather), JSON (lines) or Excel, by the file's ending."""
    path, options = Path(path), options or ReadOptions()
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    ending = _ending(path)
    data = _unpacked(path) if ending != path.suffix.lower() else None
    try:
        if ending in _TEXT:
            data = path.read_bytes() if data is None else data
            frame, separator, notes = read_text(path, ending, data, sep=options.sep, encoding=options.encoding)
            _check_names(frame.columns.tolist())
            return Source(frame, True, separator, notes)
        return _read_typed(path, ending, data, options)
    except _EqualNamesError as error:
        raise _EqualNamesError(error.name, f"the header of {path.name}") from None


def _read_typed(path: Path, ending: str, data: bytes | None, options: ReadOptions) -> Source:
    """A file whose cells have types, by a library."""
    for endings, parse in _PARSERS.items():
        if ending in endings:
            source = path if data is None else io.BytesIO(data)
            try:
                return _excel(source, options.sheet) if parse is _excel else parse(source)
            except ModuleNotFoundError as error:
                raise ModuleNotFoundError(
                    f'Reading {ending} needs {error.name}: pip install "tabsym[compare]"', name=error.name
                ) from None
            except (_EqualNamesError, _NoSheetError):
                raise
            except (ValueError, TypeError, KeyError, OSError, zipfile.BadZipFile) as error:
                what = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise ValueError(
                    f"{path.name} cannot be read as {ending} ({what}); write it again, or give it the right ending."
                ) from None
    raise ValueError(f"{path.name} has an unknown ending; use {_ENDINGS}.")


def refuse_options(table: Any, options: ReadOptions) -> None:
    """A `ValueError` where an option for text files or workbooks is given for another file, or a table."""
    is_file = isinstance(table, (str, Path))
    what = Path(table).name if is_file else f"a {type(table).__name__}"
    if not (is_file and is_text_file(table)) and (options.sep is not None or options.encoding is not None):
        name = "encoding" if options.sep is None else "sep"
        raise ValueError(f"{name} (--{name}) is for text files such as CSV; leave it out for {what}.")
    if not (is_file and is_workbook(table)) and options.sheet is not None:
        raise ValueError(f"sheet (--sheet) is for Excel workbooks; leave it out for {what}.")


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
                    raise ValueError(f"it holds {plural(len(names), 'file')}, not one")
                return archive.read(names[0])
        with _PACKED[path.suffix.lower()](path) as file:
            return bytes(file.read())
    except (OSError, EOFError, ValueError, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path.name} cannot be decompressed ({error}); compress it again, or pass it uncompressed."
        ) from None


def _json(source: Any) -> Source:
    """Records, or one list or object of rows a column; an object around a single list of records is opened."""
    text = (source.read() if hasattr(source, "read") else Path(source).read_bytes()).decode("utf-8-sig")
    try:
        body = json.loads(text, object_pairs_hook=_record)
    except ValueError:
        return _json_lines(io.BytesIO(text.encode()))
    if isinstance(body, dict) and len(body) == 1 and isinstance(next(iter(body.values())), list):
        body = next(iter(body.values()))
    if isinstance(body, dict) and body and all(isinstance(value, dict) for value in body.values()):
        rows = dict.fromkeys(key for value in body.values() for key in value)
        body = {name: [value.get(key) for key in rows] for name, value in body.items()}
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
    records = [json.loads(line, object_pairs_hook=_record) for line in lines_of(text) if line.strip()]
    if not records or not all(isinstance(record, dict) for record in records):
        raise ValueError("its lines are not one record each")
    return Source(_named(pd.DataFrame(records)))


def has_sheet(path: str | Path, name: str) -> bool:
    """Whether a workbook has a sheet of this name; not where it cannot be read, of which `read` says why."""
    path = Path(path)
    try:
        source = path if _ending(path) == path.suffix.lower() else io.BytesIO(_unpacked(path))
        return name in _workbook(source).sheetnames
    except (ValueError, KeyError, OSError, zipfile.BadZipFile):
        return False


def _workbook(source: Any) -> Any:
    import openpyxl

    return openpyxl.load_workbook(source, read_only=True, data_only=True)


class _NoSheetError(ValueError):
    """A workbook does not have the sheet that was requested."""


def _excel(source: Any, asked: str | None = None) -> Source:
    """The sheet `asked` for, or the first that has rows; cells as they are stored, so that a text "NA" stays text."""
    filled = []
    for sheet in _workbook(source).worksheets:
        rows = [row for row in sheet.iter_rows(values_only=True) if any(cell is not None for cell in row)]
        if rows:
            filled.append((sheet.title, rows))
    if not filled:
        raise ValueError("it has no sheet with rows")
    names_of_sheets = [name for name, _ in filled]
    if asked is not None and asked not in names_of_sheets:
        raise _NoSheetError(
            f"The workbook has no sheet {asked!r} with rows{perhaps(asked, names_of_sheets)}; "
            f"there are {listed(names_of_sheets)}."
        )
    title, rows = filled[0 if asked is None else names_of_sheets.index(asked)]
    notes = []
    if len(filled) > 1 and asked is None:
        others = listed(names_of_sheets[1:])
        notes = [f"Sheet {title!r} was read, and not {others}; name another one by sheet (--sheet)."]
    columns = [list(column) for column in zip_longest(*rows)]  # rows may end before the header does, or after it
    header = ["" if column[0] is None else str(column[0]) for column in columns]
    names, kept = name_columns(header, notes, lambda at: all(cell is None for cell in columns[at][1:]))
    _check_names(names)
    cells = {name: pd.Series(columns[at][1:], dtype=object) for name, at in zip(names, kept, strict=True)}
    return Source(pd.DataFrame(cells).infer_objects(), notes=tuple(notes))


def _parquet(source: Any) -> pd.DataFrame:
    from pyarrow import parquet

    _check_names(parquet.read_schema(source).names)  # to read them fails in words of its own
    return pd.read_parquet(source)


def with_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame of an Arrow table with the columns that were the index of the pandas frame it was written from.

    pandas makes an index of them again, by what it wrote into the file's metadata; other libraries have them as
    columns. Labels without a name, and plain row numbers, are no columns.
    """
    if isinstance(frame.index, pd.RangeIndex):
        return frame
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    return frame.reset_index(level=named) if named else frame


def _typed(parse: Callable[[Any], pd.DataFrame]) -> Callable[[Any], Source]:
    return lambda source: Source(_named(with_labels(parse(source))))


_PARSERS: dict[tuple[str, ...], Callable[[Any], Source]] = {
    (".parquet", ".pq"): _typed(_parquet),
    (".arrow", ".feather", ".ipc"): _typed(pd.read_feather),
    (".jsonl", ".ndjson"): _json_lines,
    (".json",): _json,
    _WORKBOOKS: _excel,
}


# -- a sample of the rows ----------------------------------------------------------------------------

COPIES = 10
"""Times a table as pandas that a comparison takes: features, encodings, and the processes' own."""
_MAX_CLASSES = 20  # distinct values of a target by which rows are stratified
_SPARE = 1.2  # rows that are kept per row of the sample, so that each class has enough
_OF_RARE = 200  # rows of each class that are kept in any case
_MANY = 5.0  # standard deviations by which the rows kept may be fewer than expected
_MEASURED = 10_000  # rows by which the size of one is known


@dataclass(frozen=True)
class Whole:
    """All rows of a table of which a sample is compared."""

    table: Any
    options: ReadOptions

    def frames(self) -> Iterator[pd.DataFrame]:
        """The rows, batch by batch where they are read so."""
        batches = _batches_of(self.table)
        for batch in [self.table] if batches is None else batches:
            yield read(batch, self.options if batches is None else None).frame


def read_some(
    table: Any, options: ReadOptions, target: str, max_rows: int | None, seed: int
) -> tuple[Source, Whole | None, str]:
    """As `read`, of a table of more rows a sample, stratified by the target's few classes.

    Returns also all rows, None where these are all, and a note on the sample, "" where there is none.

    Parameters
    ----------
    table : dataframe, path, or what is read in batches (Parquet, folders of it, Arrow datasets, lazy frames)
    options : ReadOptions
    target : str
    max_rows : int or None
        None: as many as fit into memory where the table is read in batches, else all.
    seed : int
        Of the rows that are drawn.
    """
    batches, whole = _batches_of(table), Whole(table, options)
    if batches is not None:
        refuse_options(table, options)
        n_rows, first = batches.count(), next(iter(batches), None)
        n_wanted = max_rows or _rows_that_fit(first)
        if n_rows > n_wanted:
            frame, by = _sample(batches, target, n_rows, n_wanted, seed)
            why = "" if max_rows else ", as more may not fit into memory"
            return read(frame), whole, _note(n_rows, len(frame), by, why)
        if is_dataset(table) or _is_folder(table):  # which `read` does not know
            return read(batches.whole()), None, ""
    source = read(table, options)
    n_rows = len(source.frame)
    if max_rows is None or n_rows <= max_rows:
        return source, None, ""
    values = source.frame[target] if target in source.frame.columns else pd.Series(dtype=object)
    counts = values.value_counts(dropna=False).to_dict() if len(values) else {}
    positions = _chosen(values, _generator(seed).random(n_rows), counts, max_rows)
    some = source.frame.iloc[positions].reset_index(drop=True)
    by = target if _has_classes(counts) else None
    return replace(source, frame=some), whole, _note(n_rows, len(positions), by, "")


def _note(n_rows: int, n_drawn: int, by: str | None, why: str) -> str:
    """`by`: the target by which rows are stratified, None for rows at random."""
    sample = f"random sample of {n_drawn:,}" if by is None else f"sample of {n_drawn:,}, stratified by {by!r},"
    return (
        f"The table has {n_rows:,} rows, of which a {sample} is compared{why}; a winner that is the plain wide model "
        "is trained on all rows, others on the sample; --max-rows sets another number."
    )


def _is_folder(table: Any) -> bool:
    return isinstance(table, (str, Path)) and Path(table).is_dir()


def _batches_of(table: Any) -> Batches | None:
    """What is read in batches: folders and files of Parquet, datasets, lazy frames of polars and DuckDB."""
    if not isinstance(table, (str, Path)):
        return Batches(table) if is_larger_than_memory(table) else None
    path = Path(table)
    if _is_folder(path):
        return Batches(path)
    try:
        return Batches(path) if path.suffix.lower() in (".parquet", ".pq") and path.is_file() else None
    except (OSError, ValueError):  # damaged, of which `read` has words
        return None


def _rows_that_fit(first: Any) -> int:
    """How many rows such as the `first` ones a comparison has memory for."""
    import psutil  # which a base install lacks

    if first is None:
        return 1
    some = first.slice(0, _MEASURED).to_pandas()
    size = max(float(some.memory_usage(deep=True, index=False).sum()) / len(some), 1.0)
    return max(int(psutil.virtual_memory().available / COPIES / size), 1)


def _sample(batches: Batches, target: str, n_rows: int, n_wanted: int, seed: int) -> tuple[pd.DataFrame, str | None]:
    """In one pass: each row gets a random key, and rows of small keys are kept, also of each class.

    Returns the rows, and the target where they are stratified by it.
    """
    import pyarrow as pa
    import pyarrow.compute  # an attribute of `pa` from then on

    expected = _SPARE * n_wanted + _MANY * np.sqrt(_SPARE * n_wanted)
    rng, limit = _generator(seed), expected / n_rows
    tables, keys, counts = [], [], dict[Any, int]()
    smallest: dict[Any, NDArray[np.float64]] = {}  # keys of each class, of the rows so far
    for batch in batches:
        drawn = rng.random(batch.num_rows)
        is_drawn = drawn < limit
        if target in batch.column_names and len(counts) <= _MAX_CLASSES:
            values = batch[target].combine_chunks()
            if pa.types.is_dictionary(values.type):  # which may have values that no row has
                values = values.cast(values.type.value_type)
            coded = pa.compute.dictionary_encode(values, null_encoding="encode")
            codes, classes = coded.indices.to_numpy(zero_copy_only=False), coded.dictionary.to_pylist()
            for code, value in enumerate(map(_key, classes)):  # NaN is another object in each batch
                rows = np.flatnonzero(codes == code)
                counts[value] = counts.get(value, 0) + len(rows)
                if len(counts) > _MAX_CLASSES:
                    break
                least = np.sort(np.concatenate([smallest.get(value, np.empty(0)), drawn[rows]]))[:_OF_RARE]
                smallest[value] = least
                is_drawn[rows] |= drawn[rows] <= least[-1]
        tables.append(batch.take(np.flatnonzero(is_drawn)))
        keys.append(drawn[is_drawn])
    frame = with_labels(pa.concat_tables(tables).to_pandas()).reset_index(drop=True)
    values = frame[target] if target in frame.columns else pd.Series(dtype=object)
    positions = _chosen(values, np.concatenate(keys), counts, n_wanted)
    return frame.iloc[positions].reset_index(drop=True), target if _has_classes(counts) else None


def _has_classes(counts: dict[Any, int]) -> bool:
    """Whether values of the target are few enough to stratify by them."""
    return 0 < len(counts) <= _MAX_CLASSES


def _chosen(values: pd.Series, keys: NDArray[np.float64], counts: dict[Any, int], n_wanted: int) -> NDArray[np.intp]:
    """Positions of rows of small keys (n,), in order; of each class of the target its part, with few of them."""
    order = np.argsort(keys, kind="stable")
    if not _has_classes(counts):
        return np.sort(order[:n_wanted])
    codes, classes = pd.factorize(values, use_na_sentinel=False)
    whole = {_key(value): times for value, times in counts.items()}
    exact = np.array([whole.get(_key(value), 0) for value in classes.tolist()], dtype=np.float64)
    exact *= n_wanted / max(sum(counts.values()), 1)
    quotas = np.maximum(np.floor(exact), exact > 0)
    for position in np.argsort(quotas - exact, kind="stable")[: max(int(n_wanted - quotas.sum()), 0)]:
        quotas[position] += 1
    while quotas.sum() > max(n_wanted, 1) and quotas.max() > 1:  # where many classes have one row
        quotas[np.argmax(quotas)] -= 1
    ranks = pd.Series(codes[order]).groupby(codes[order]).cumcount().to_numpy()
    return np.sort(order[ranks < quotas[codes[order]]])


def _generator(seed: int) -> np.random.Generator:
    """Random numbers that are not those by which the table may have been made, with a seed such as 0."""
    return np.random.default_rng([seed, 20_261])


def _key(value: Any) -> Any:
    return None if pd.isna(value) else value


# -- text files (CSV and the like) -----------------------------------------------------------------

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
        rows_are = f"{plural(len(short), 'row')} {'has' if len(short) == 1 else 'have'}"
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
        words = plural(blank, "blank column without a name was", "blank columns without a name were")
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
    """The field separator: as requested, by the file's extension, or that which fits best."""
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
    for position in range(width):
        known = table.column(position).is_valid().to_pandas().to_numpy(dtype=bool)
        empty = frame[position].isna().to_numpy() & known
        if empty.any():
            frame[position] = frame[position].mask(empty, "")
    return frame
