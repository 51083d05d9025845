"""Tables larger than memory, batch by batch: Parquet files, Arrow datasets, polars' LazyFrames, DuckDB's relations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw

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
        self._source = _opened(source) if isinstance(source, (str, Path)) else source

    def count(self) -> int:
        """The number of rows; of a lazy frame, by a query."""
        if is_dataset(self._source):
            return int(self._source.count_rows())
        return int(nw.from_native(self._source).select(nw.len()).collect()["len"][0])

    def whole(self) -> Any:
        """All rows as one table."""
        return self._source.to_table() if is_dataset(self._source) else self._source

    def __iter__(self) -> Iterator[Any]:
        """The batches as Arrow tables, without empty ones."""
        import pyarrow as pa

        for batch in self._batches():
            if len(batch):
                yield batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])

    def _batches(self) -> Iterator[Any]:
        source = self._source
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
    found = ds.dataset(where, format="parquet")
    if not found.files:
        raise ValueError(f"The folder {str(path)!r} holds no Parquet files; give the path of one that does.")
    return found
