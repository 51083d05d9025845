"""Tables larger than memory, batch by batch: Parquet files and folders, Arrow datasets, polars' LazyFrames, DuckDB's
relations."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw

from tabsym.frame.frames import without_views
from tabsym.frame.read import is_dataset

BATCH_ROWS = 1 << 18


class Batches:
    """A table that is read in batches, again and again.

    Parameters
    ----------
    source : pyarrow.dataset.Dataset, polars.LazyFrame, duckdb.DuckDBPyRelation, or a path
        The path of a Parquet file, or of a folder of them.
    """

    def __init__(self, source: Any) -> None:
        self.source = _opened(source) if isinstance(source, (str, Path)) else source

    def count(self) -> int:
        """The number of rows; of a lazy frame, by a query."""
        if is_dataset(self.source):
            return int(self.source.count_rows())
        return int(nw.from_native(self.source).select(nw.len()).collect()["len"][0])

    def whole(self) -> Any:
        """All rows as one table."""
        return self.source.to_table() if is_dataset(self.source) else self.source

    def without_rows(self) -> Any:
        """Its columns as an Arrow table of no rows."""
        if is_dataset(self.source):
            return self.source.schema.empty_table()
        return nw.from_native(self.source).head(0).collect("pyarrow").to_native()

    def __iter__(self) -> Iterator[Any]:
        """The batches as Arrow tables, without empty ones, and with plain text where the source has views."""
        import pyarrow as pa

        for batch in self._batches():
            if len(batch):
                yield without_views(batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch]))

    def _batches(self) -> Iterator[Any]:
        source = self.source
        if is_dataset(source):
            return iter(source.to_batches(batch_size=BATCH_ROWS, use_threads=False, **_bounded(source)))
        if nw.dependencies.is_polars_lazyframe(source):
            return (batch.to_arrow() for batch in source.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True))
        reader = getattr(source, "to_arrow_reader", None) or source.fetch_record_batch  # of DuckDB before 1.5
        return iter(reader(BATCH_ROWS))


def _bounded(source: Any) -> dict[str, Any]:
    """Options by which no more is read than was asked for: threads would be ahead by most of a file of Parquet."""
    import pyarrow.dataset as ds

    options: dict[str, Any] = {"batch_readahead": 0, "fragment_readahead": 0}
    if isinstance(getattr(source, "format", None), ds.ParquetFileFormat):
        options["fragment_scan_options"] = ds.ParquetFragmentScanOptions(pre_buffer=False)
    return options


def is_larger_than_memory(X: Any) -> bool:
    """Whether `X` is of those that `Batches` reads."""
    if isinstance(X, (str, Path)):
        return True
    return is_dataset(X) or nw.dependencies.is_polars_lazyframe(X) or _is_relation(X)


def _is_relation(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] in ("duckdb", "_duckdb") and hasattr(X, "fetch_record_batch")


def _opened(path: str | Path) -> Any:
    """The Arrow dataset at a path."""
    import pyarrow.dataset as ds

    where = Path(path)
    if not where.exists():
        raise ValueError(f"There is no file or folder {str(path)!r}; give the path of a Parquet file, or of a folder.")
    if where.is_file() and where.suffix not in (".parquet", ".pq"):
        raise ValueError(
            f"{str(path)!r} is no Parquet file; read it by pyarrow.dataset, polars or DuckDB, and pass what these give."
        )
    return ds.dataset(where, format="parquet") if where.is_file() else _opened_folder(where)


def _opened_folder(where: Path) -> Any:
    """The Arrow dataset of all Parquet files in a folder, with the columns that names such as ``year=2024`` hold."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    found = ds.dataset(where, format="parquet")
    if not found.files:
        raise ValueError(f"The folder {str(where)!r} holds no Parquet files; give the path of one that does.")
    folders = [part for file in found.files for part in Path(os.path.relpath(file, where)).parent.parts]
    in_names = {part.partition("=")[0] for part in folders if "=" in part}
    partitioning = None if in_names <= set(found.schema.names) else "hive"  # some tools write them to the files, too
    found = ds.dataset(where, format="parquet", partitioning=partitioning)
    types = _types_of_columns(found, where)
    fields = [field.with_type(types.get(field.name, field.type)) for field in found.schema]
    schema = pa.schema(fields, metadata=found.schema.metadata)
    same = schema.equals(found.schema)
    return found if same else ds.dataset(where, schema, format="parquet", partitioning=partitioning)


def _types_of_columns(found: Any, where: Path) -> dict[str, Any]:
    """The type of each column that holds the values of all files; a `ValueError` where a file lacks one.

    Arrow takes the columns and types of the first file, and leaves out what only other files have.
    """
    from pyarrow.dataset import get_partition_keys

    types: dict[str, Any] = {}
    first, known = "", set[str]()
    for fragment in found.get_fragments():
        file = os.path.relpath(fragment.path, where)
        schema = fragment.physical_schema
        names = {*schema.names, *get_partition_keys(fragment.partition_expression)}
        names = {name for name in names if not _ROW_NUMBERS.fullmatch(name)}
        first, known = first or file, known or names
        for name in sorted(names ^ known):
            has, lacks = (first, file) if name in known else (file, first)
            raise ValueError(
                f"Column {name!r} is in {has} and not in {lacks} of the folder {str(where)!r}; write its files with "
                "the same columns, or give the path of one file."
            )
        for name, one in zip(schema.names, schema.types, strict=True):
            types[name] = _common_type(types.get(name, one), one)
            if types[name] is None:
                raise ValueError(
                    f"Column {name!r} is of the type {one} in {file}, and of another in other files of the folder "
                    f"{str(where)!r}; write its files with the same types."
                )
    return types


_ROW_NUMBERS = re.compile(r"__index_level_\d+__")  # pandas writes these of frames from which rows were taken


def _common_type(one: Any, other: Any) -> Any:
    """The type that holds the values of both; None where none does."""
    import pyarrow as pa

    if one == other:
        return one
    plain = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in (one, other)]
    try:
        both = pa.unify_schemas([pa.schema([("x", kind)]) for kind in plain], promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return None
    return both.field("x").type
