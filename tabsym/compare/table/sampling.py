"""A sample of the rows of a table: as many as were asked for, or as fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.compare.table.files import ReadOptions, Source, read, refuse_options, with_labels
from tabsym.frame.read import Batches, is_dataset, is_larger_than_memory

COPIES = 10
"""Times a table as pandas that a comparison takes: features, encodings, and the processes' own."""
_MAX_CLASSES = 20  # distinct values of a target by which rows are stratified
_SPARE = 1.2  # rows that are held per row of the sample, so that each class has enough
_OF_RARE = 200  # rows of each class that are held in any case
_MANY = 5.0  # standard deviations by which the rows held may be fewer than expected
_MEASURED = 10_000  # rows by which the size of one is known


@dataclass(frozen=True)
class Whole:
    """All rows of a table of which a sample is compared."""

    table: Any
    options: ReadOptions

    def frames(self) -> Iterator[pd.DataFrame]:
        """The rows, batch by batch where they are read so."""
        batches = _batches_of(self.table)
        for one in [self.table] if batches is None else batches:
            yield read(one, self.options if batches is None else None).frame


@dataclass(frozen=True)
class Sampled(Source):
    """Some rows of a table; `whole`: all of them, None where these are all."""

    whole: Whole | None = None


def read_some(table: Any, options: ReadOptions, target: str, max_rows: int | None, seed: int) -> tuple[Sampled, str]:
    """As `read`, and what to say of it: of a table of more rows a sample, stratified by the target's few classes.

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
        most = max_rows or _rows_that_fit(first)
        if n_rows > most:
            frame, by = _sample(batches, target, n_rows, most, seed)
            why = "" if max_rows else ", as more may not fit into memory"
            return _of(read(frame), whole), _note(n_rows, len(frame), by, why)
        if is_dataset(table) or _is_folder(table):  # which `read` does not know
            return _of(read(batches.whole())), ""
    source = read(table, options)
    n_rows = len(source.frame)
    if max_rows is None or n_rows <= max_rows:
        return _of(source), ""
    values = source.frame[target] if target in source.frame.columns else pd.Series(dtype=object)
    counts = values.value_counts(dropna=False).to_dict() if len(values) else {}
    positions = _chosen(values, _generator(seed).random(n_rows), counts, max_rows)
    some = source.frame.iloc[positions].reset_index(drop=True)
    by = target if _has_classes(counts) else None
    return _of(replace(source, frame=some), whole), _note(n_rows, len(positions), by, "")


def _of(source: Source, whole: Whole | None = None) -> Sampled:
    return Sampled(source.frame, source.untyped, source.separator, source.notes, whole)


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


def _sample(batches: Batches, target: str, n_rows: int, most: int, seed: int) -> tuple[pd.DataFrame, str | None]:
    """In one pass: each row gets a random key, and rows of small keys are held, also of each class.

    Returns the rows, and the target where they are stratified by it.
    """
    import pyarrow as pa
    import pyarrow.compute  # an attribute of `pa` from then on

    expected = _SPARE * most + _MANY * np.sqrt(_SPARE * most)
    rng, limit = _generator(seed), expected / n_rows
    tables, keys, counts = [], [], dict[Any, int]()
    smallest: dict[Any, NDArray[np.float64]] = {}  # keys of each class, of the rows so far
    for batch in batches:
        drawn = rng.random(batch.num_rows)
        held = drawn < limit
        if target in batch.column_names and len(counts) <= _MAX_CLASSES:
            values = batch[target].combine_chunks()
            if pa.types.is_dictionary(values.type):  # which may have values that no row has
                values = values.cast(values.type.value_type)
            coded = pa.compute.dictionary_encode(values, null_encoding="encode")
            codes, classes = coded.indices.to_numpy(zero_copy_only=False), coded.dictionary.to_pylist()
            for code, value in enumerate(map(_key, classes)):  # NaN is another object in each batch
                own = np.flatnonzero(codes == code)
                counts[value] = counts.get(value, 0) + len(own)
                if len(counts) > _MAX_CLASSES:
                    break
                least = np.sort(np.concatenate([smallest.get(value, np.empty(0)), drawn[own]]))[:_OF_RARE]
                smallest[value] = least
                held[own] |= drawn[own] <= least[-1]
        tables.append(batch.take(np.flatnonzero(held)))
        keys.append(drawn[held])
    frame = with_labels(pa.concat_tables(tables).to_pandas()).reset_index(drop=True)
    values = frame[target] if target in frame.columns else pd.Series(dtype=object)
    positions = _chosen(values, np.concatenate(keys), counts, most)
    return frame.iloc[positions].reset_index(drop=True), target if _has_classes(counts) else None


def _has_classes(counts: dict[Any, int]) -> bool:
    """Whether values of the target are few enough to stratify by them."""
    return 0 < len(counts) <= _MAX_CLASSES


def _chosen(values: pd.Series, keys: NDArray[np.float64], counts: dict[Any, int], most: int) -> NDArray[np.intp]:
    """Places of rows of small keys (n,), in order; of each class of the target its part, with few of them."""
    order = np.argsort(keys, kind="stable")
    if not _has_classes(counts):
        return np.sort(order[:most])
    codes, classes = pd.factorize(values, use_na_sentinel=False)
    whole = {_key(value): times for value, times in counts.items()}
    exact = np.array([whole.get(_key(value), 0) for value in classes.tolist()], dtype=np.float64)
    exact *= most / max(sum(counts.values()), 1)
    quotas = np.maximum(np.floor(exact), exact > 0)
    for position in np.argsort(quotas - exact, kind="stable")[: max(int(most - quotas.sum()), 0)]:
        quotas[position] += 1
    while quotas.sum() > max(most, 1) and quotas.max() > 1:  # where many classes have one row
        quotas[np.argmax(quotas)] -= 1
    ranks = pd.Series(codes[order]).groupby(codes[order]).cumcount().to_numpy()
    return np.sort(order[ranks < quotas[codes[order]]])


def _generator(seed: int) -> np.random.Generator:
    """Random numbers that are not those by which the table may have been made, with a seed such as 0."""
    return np.random.default_rng([seed, 20_261])


def _key(value: Any) -> Any:
    return None if pd.isna(value) else value
