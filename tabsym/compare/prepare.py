"""A user's table, made ready: read, target and task found, columns typed, all said in notes."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.table import Kind, read_table

_DATE_SHARE = 0.95
_MOST_CLASSES = 20
_FEW_ROWS = 50


@dataclass(frozen=True)
class Prepared:
    """Features (text, float and boolean columns), target, task, and notes on what was done.

    For classes, `y` are codes into `classes`.
    """

    X: pd.DataFrame
    y: NDArray[Any]
    task: str
    target: str
    classes: list[str]
    notes: list[str]


def read_path(path: str | Path) -> pd.DataFrame:
    """Read CSV, TSV, Parquet, Arrow (Feather) or JSON lines, by the file's ending."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    ending = path.suffix.lower()
    if ending in (".csv", ".tsv", ".txt"):
        return _read_text(path)
    if ending in (".parquet", ".pq"):
        return pd.read_parquet(path)
    if ending in (".arrow", ".feather", ".ipc"):
        return pd.read_feather(path)
    if ending in (".jsonl", ".ndjson"):
        return pd.read_json(path, lines=True, dtype=False)
    raise ValueError(f"{path.name} has an ending that is not known; use .csv, .tsv, .parquet, .arrow or .jsonl.")


def _read_text(path: Path) -> pd.DataFrame:
    try:
        text = path.read_text(encoding="utf-8-sig")
        encoding = "utf-8-sig"
    except UnicodeDecodeError:
        text = path.read_text(encoding="cp1252", errors="replace")
        encoding = "cp1252"
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
    try:
        frame = pd.read_csv(
            path, sep=separator, encoding=encoding, encoding_errors="replace", dtype="str", skipinitialspace=True
        )
    except pd.errors.ParserError as error:
        what = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise ValueError(
            f"{path.name} is not a table of equal rows, read with {separator!r} between fields ({what}); "
            "mend that line, or quote the field."
        ) from None
    if separator == ";":
        frame = frame.apply(_decimal_points)
    return frame.apply(_numbers_where_numbers)


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


def prepare(
    table: Any,
    target: str,
    *,
    task: str | None = None,
    drop: list[str] | None = None,
    symbolic: list[str] | None = None,
) -> Prepared:
    """Make a table ready for the comparison.

    Parameters
    ----------
    table : dataframe or path
    target : str
        Name of the target column.
    task : {"binary", "multiclass", "regression"}, optional
        Found from the target where it is not given.
    drop : list of str, optional
        Columns to leave out.
    symbolic : list of str, optional
        Numeric columns to treat as symbols (codes, ids).

    Raises
    ------
    ValueError
        The target or a named column is not there, or the target does not fit the task.
    """
    frame = read_path(table) if isinstance(table, (str, Path)) else _to_pandas(table)
    notes: list[str] = []
    for name in [target, *(drop or []), *(symbolic or [])]:
        if name not in frame.columns:
            raise ValueError(f"There is no column {name!r}; the table has {', '.join(map(repr, frame.columns))}.")
    if target in (drop or []):
        raise ValueError(f"{target!r} is the target and is to be dropped; leave it out of drop.")
    present = frame[target].notna().to_numpy()
    if not present.all():
        notes.append(f"{int((~present).sum()):,} rows without a target were left out.")
        frame = frame[present]
    y, classes, task = _target(frame[target], task, target)
    X = frame.drop(columns=[target, *(drop or [])]).reset_index(drop=True)
    for name in symbolic or []:
        X[name] = X[name].astype("string").astype("str")
    X = _plain(X, notes)
    if X.shape[1] == 0:
        raise ValueError("No feature column is left; drop fewer columns.")
    return Prepared(X, y, task, target, classes, notes)


def _to_pandas(table: Any) -> pd.DataFrame:
    if isinstance(table, pd.DataFrame):
        return table
    frame = nw.from_native(table)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    return frame.to_pandas()


def _target(y: pd.Series, task: str | None, name: str) -> tuple[NDArray[Any], list[str], str]:
    if not len(y):
        raise ValueError(f"Every row lacks the target {name!r}; there is nothing to compare.")
    numeric = pd.api.types.is_numeric_dtype(y) and not pd.api.types.is_bool_dtype(y)
    distinct = y.nunique()
    if distinct < 2:
        raise ValueError(f"The target {name!r} has one value only ({y.iloc[0]!r}); choose another target.")
    if task is None:
        whole = numeric and bool((y == y.round()).all())
        as_classes = not numeric or distinct == 2 or (whole and distinct <= _MOST_CLASSES)
        task = ("binary" if distinct == 2 else "multiclass") if as_classes else "regression"
    if task == "regression":
        if not numeric:
            raise ValueError(
                f"The target {name!r} is not numeric ({_stranger(y)}), so task='regression' does not fit; "
                "mend such values, or leave them blank."
            )
        values = y.to_numpy(dtype=np.float64)
        if not np.isfinite(values).all():
            raise ValueError(f"The target {name!r} holds an infinite value; drop such rows.")
        return values, [], task
    if task not in ("binary", "multiclass"):
        raise ValueError(f"task={task!r} is not known; use 'binary', 'multiclass' or 'regression'.")
    if task == "binary" and distinct > 2:
        raise ValueError(f"The target {name!r} has {distinct} classes, so task='binary' does not fit.")
    if numeric and distinct > max(_MOST_CLASSES, len(y) // 2):
        raise ValueError(f"The target {name!r} has {distinct} numeric values; use task='regression'.")
    if not numeric and distinct > max(_MOST_CLASSES, len(y) // 10):
        raise ValueError(
            f"The target {name!r} is text with {distinct:,} different values in {len(y):,} rows ({_stranger(y)}), too "
            "many to be classes; if it is a number, mend or blank the values that are not, else choose another target."
        )
    codes, classes = pd.factorize(y, sort=True)
    return codes.astype(np.int64), [str(value) for value in classes], task


def _stranger(y: pd.Series) -> str:
    """A value that is no number, and its row."""
    strange = pd.to_numeric(y, errors="coerce").isna().to_numpy()
    place = int(np.argmax(strange))
    return f"such as {str(y.iloc[place])!r} in row {y.index[place]}"


def _plain(X: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Every column as text, float or boolean; text that holds dates as days, month and weekday."""
    table = read_table(X, who="compare")
    columns: dict[str, Any] = {}
    for column in table.columns:
        series = column.series.to_native()
        if column.series.is_null().all():
            notes.append(f"Column {column.name!r} is empty and was left out.")
            continue
        if column.kind is Kind.SYMBOLIC:
            text = pd.Series([None if pd.isna(v) else str(v) for v in series.tolist()], dtype="str")
            moments = _dates(text)
            if moments is None:
                columns[column.name] = text
                if len(text) >= _FEW_ROWS and text.nunique() == len(text):
                    notes.append(
                        f"Column {column.name!r} has another symbol in every row, of which nothing can be learned; "
                        f"leave it out: --drop {column.name}."
                    )
            else:
                notes.append(f"Column {column.name!r} holds dates: used as days, month and weekday.")
                columns |= _date_parts(column.name, moments)
        elif pd.api.types.is_datetime64_any_dtype(series):
            notes.append(f"Column {column.name!r} holds dates: used as days, month and weekday.")
            columns |= _date_parts(column.name, series)
        elif column.kind is Kind.BOOLEAN and not column.series.is_null().any():
            columns[column.name] = series.astype(bool)
        else:
            columns[column.name] = column.values
    return pd.DataFrame(columns)


def _dates(text: pd.Series) -> pd.Series | None:
    present = text.dropna()
    sample = present.head(200)
    if not sample.str.contains(r"^\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}", regex=True).all():
        return None
    for format_ in ("ISO8601", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%d-%m-%Y"):
        moments = pd.to_datetime(text, format=format_, errors="coerce")
        if moments.notna().sum() >= _DATE_SHARE * len(present):
            return moments
    return None


def _date_parts(name: str, moments: pd.Series) -> dict[str, Any]:
    moments = moments.dt.tz_localize(None) if moments.dt.tz is not None else moments
    days = (moments - pd.Timestamp(0)) / pd.Timedelta(days=1)
    return {
        name: days.to_numpy(dtype=np.float64, na_value=np.nan),
        f"{name} month": moments.dt.strftime("%m").astype("str"),
        f"{name} weekday": moments.dt.strftime("%a").astype("str"),
    }
