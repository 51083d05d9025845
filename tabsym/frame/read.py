"""Read any dataframe into a `Table`, and raise an error with a message for what cannot be one.

pandas, polars, pyarrow and whatever else narwhals knows are taken as they are;
lazy frames are collected (encoders that only count have their engine count instead);
a series, or a list of text, is a frame of one column;
arrays and nested lists get pandas columns named ``x0, x1, ...``. Nothing is copied
here but arrays.

The kind of a column follows from its type; from its values where that is
"object". What objects are depends on the caller, see `Objects`. To encoders and
wide models a column of objects holds categories, as in category_encoders, unless
it holds booleans, or comes from an array, all columns of which have one type. To
the native boosters (`NativeCategories`) it is what its values are, so that a
column means the same in fit and in predict whatever type carries it.

Tables larger than memory are read in `Batches`: Parquet files and folders, Arrow
datasets, polars' LazyFrames, DuckDB's relations.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import Enum
from functools import lru_cache, partial
from numbers import Real
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from tabsym.frame.columns import Column, Kind, Table
from tabsym.frame.frames import with_large_wholes, without_views
from tabsym.frame.storage import (
    DATES,
    DURATIONS,
    as_given,
    dtype_of,
    library_of,
    object_array,
    series_at,
    stored_columns,
)

_SAMPLE = 100  # objects that start with this number of texts are text: checking all takes as long as coding
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")
_MIXED = ("mixed", "mixed-integer")
_BYTES = ("binary", "large_binary", "fixed_size_binary")  # how types are called that narwhals has no use for here


class Objects(Enum):
    """What objects are, but dates, durations and decimals, which are numbers always, and booleans."""

    CATEGORIES = "categories"
    NUMBERS = "numbers"  # where they can be, else categories
    VALUES = "values"  # numbers of any sorts or categories; polars' Object and bytes are read, too


def read_table(X: Any, *, caller: str = "tabsym", allow_empty: bool = False, by_value: bool = False) -> Table:
    """Read `X` into named columns, categorical, numeric or boolean.

    Parameters
    ----------
    X : dataframe, series, 2-D array or nested list, or text in one dimension
        pandas, polars (lazy too), pyarrow, or anything that narwhals reads. Text in one dimension is a column, as in
        category_encoders; numbers in one dimension are refused, as in scikit-learn.
    caller : str
        Who asks, for messages.
    allow_empty : bool
        Whether a table of no rows is accepted (at transform: 0 rows out).
    by_value : bool
        Whether a column of objects is what its values are (numbers, booleans or categories), as a column of
        their own type would be; else it holds categories, but for dates, durations and numbers of arrays.

    Returns
    -------
    Table

    Raises
    ------
    TypeError
        Sparse or complex input, a stream, nested values, mixed types in a column.
    ValueError
        No rows, no columns, duplicate column names, numbers in one dimension.
    """
    if by_value and isinstance(X, (list, tuple)):
        X = np.asarray(X, dtype=object)  # numpy would make text of the numbers in rows of both
    frame, names, named = _as_frame(X, caller)
    n_rows = len(frame)
    if not names:
        raise ValueError(
            f"The table has 0 feature(s) (shape=({n_rows}, 0)) while a minimum of 1 is "
            f"required by {caller}; pass at least one column."
        )
    if n_rows == 0 and not allow_empty:
        raise ValueError(
            f"The table has no rows: found array with 0 sample(s) while a minimum of 1 is required by {caller}."
        )
    if isinstance(frame, nw.DataFrame):
        kinds = [_kind_of_dtype(frame[name].dtype) or _kind_by_values(name, frame[name]) for name in names]
        columns = tuple(Column(name, kind, frame[name]) for name, kind in zip(names, kinds, strict=True))
        return Table(columns, n_rows, frame.to_native(), named)
    objects = Objects.VALUES if by_value else Objects.CATEGORIES if named else Objects.NUMBERS
    return Table(_columns_of(frame, names, objects), n_rows, frame, named)


def _columns_of(frame: Any, names: list[str], objects: Objects) -> tuple[Column, ...]:
    """The columns of a pandas, polars or pyarrow frame."""
    enums: set[str] = set()
    if library_of(frame) == "polars":  # to ask an Enum for its type makes Python text of all its categories
        from polars import Enum, selectors

        enums = set(frame.select(selectors.by_dtype(Enum)).columns)
    out = []
    for index, (name, stored) in enumerate(zip(names, stored_columns(frame), strict=True)):
        if name in enums:
            kind = Kind.CATEGORICAL
        else:
            if objects is Objects.VALUES and isinstance(dtype_of(stored), nw.Object) and library_of(stored) == "polars":
                stored = object_array(stored.to_list())  # noqa: PLW2901
            if isinstance(stored, np.ndarray) and stored.dtype.kind == "O":
                kind = _kind_of_objects(name, stored, objects)
            else:
                by_type = _kind_of_dtype(dtype_of(stored))
                if by_type is None and objects is Objects.VALUES:
                    stored_dtype = stored.type if library_of(stored) == "pyarrow" else stored.dtype
                    by_type = Kind.CATEGORICAL if str(stored_dtype).lower().startswith(_BYTES) else None
                kind = by_type or _kind_by_values(name, series_at(frame, index))
        out.append(Column.of_stored(name, kind, stored, partial(series_at, frame, index)))
    return tuple(out)


@lru_cache(maxsize=512)
def _kind_of_dtype(dtype: Any) -> Kind | None:
    """The kind of all columns of a type; None where only the values determine it."""
    if dtype == nw.Boolean:
        return Kind.BOOLEAN
    if dtype.is_numeric() or isinstance(dtype, (nw.Date, nw.Datetime, nw.Duration)):
        return Kind.NUMERIC
    return Kind.CATEGORICAL if isinstance(dtype, (nw.String, nw.Categorical, nw.Enum)) else None


def _kind_by_values(name: str, series: nw.Series[Any]) -> Kind:
    """The kind where the type is of a rare sort, or a refusal."""
    dtype = series.dtype
    if dtype.is_nested():
        raise TypeError(f"Column {name!r} holds nested values ({dtype}); explode it or turn each value into a string.")
    native = series.to_native()
    if isinstance(native, pd.Series):
        if native.dtype.kind == "c":
            _refuse_complex(name)
        return Kind.NUMERIC if native.dtype.kind in "iuf" else Kind.CATEGORICAL
    if series.is_null().all():
        return Kind.CATEGORICAL
    known = native.type if library_of(native) == "pyarrow" else native.dtype
    raise TypeError(
        f"Column {name!r} has the type {known}, which is neither categorical nor numeric; convert it first."
    )


def _kind_of_objects(name: str, values: Any, objects: Objects) -> Kind:
    """Objects are categories of one type, or what `objects` determines."""
    if pd.api.types.infer_dtype(values[:_SAMPLE], skipna=True) == "string":
        return Kind.CATEGORICAL
    content = pd.api.types.infer_dtype(values, skipna=True)
    if objects is Objects.VALUES and content in _MIXED:  # NaT is missing among numbers, too; decimals go with floats
        values = values[~np.asarray(pd.isna(values))]
        content = "floating" if all(map(_is_number, values)) else pd.api.types.infer_dtype(values)
    if content in _MIXED:
        _refuse_content(name, values)
    if content == "complex":
        _refuse_complex(name)
    if content in (*DATES, *DURATIONS, "decimal") or (objects is not Objects.CATEGORIES and content in _NUMBERS):
        return Kind.NUMERIC
    return Kind.BOOLEAN if content == "boolean" else Kind.CATEGORICAL


def _is_number(value: Any) -> bool:
    return isinstance(value, (Real, Decimal)) and not isinstance(value, bool)


def check_one_type(name: str, categories: NDArray[Any]) -> None:
    """A `TypeError` where the categories of a coded column are of several types, or nested.

    `read_table` sees no mixture that begins after the first text, and none in categories.
    """
    if pd.api.types.infer_dtype(categories, skipna=True) in _MIXED and not all(map(_is_number, categories)):
        _refuse_content(name, categories)


def _refuse_complex(name: str) -> None:
    raise ValueError(f"Complex data not supported: column {name!r} holds complex numbers; pass real columns.")


def _refuse_content(name: str, values: Any) -> None:
    present = [value for value in values.tolist() if not is_missing(value)]
    first = present[0]
    types = {type(value): value for value in reversed(present)}
    nested = [t for t in types if issubclass(t, (list, dict, set, tuple, np.ndarray))]
    if nested:
        raise TypeError(
            f"Column {name!r} holds nested values (such as {types[nested[0]]!r}); an argument must be a string "
            "or a number: turn each value into one."
        )
    if len(types) > 1:
        other_values = [value for t, value in types.items() if t is not type(first)]
        # numbers go with each other
        second = min(other_values, key=lambda value: _is_number(value) and _is_number(first))
        raise TypeError(
            f"Column {name!r} mixes types: {first!r} is {type(first).__name__} and {second!r} is "
            f"{type(second).__name__}; convert the column to one type, e.g. with astype(str)."
        )


def is_missing(value: Any) -> bool:
    """Whether one value is missing: None, NaN, NaT, NA."""
    return pd.api.types.is_scalar(value) and bool(pd.isna(value))


def _as_frame(X: Any, caller: str) -> tuple[Any, list[str], bool]:
    """The frame of X, its column names, and whether those are the user's."""
    if isinstance(X, pd.DataFrame):
        return _named_frame(X)
    if not _is_read_as_it_is(X):
        _refuse_other_shapes(X, caller)
        frame = nw.from_native(X, pass_through=True, allow_series=True)
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect()
        if isinstance(frame, nw.Series):  # a frame of one column, called as the series is, or as columns of arrays are
            if frame.name in (None, ""):
                return frame.alias("x0").to_frame().to_native(), ["x0"], False
            return _as_frame(frame.to_frame().to_native(), "")
        if not isinstance(frame, nw.DataFrame):
            made = _frame_of_array(X, caller)
            return made, list(made.columns), False
        X = frame.to_native()
        if isinstance(X, pd.DataFrame):
            return _named_frame(X)
        if not _is_read_as_it_is(X):
            return frame, frame.columns, True
    names = list(X.columns if library_of(X) == "polars" else X.column_names)
    _refuse_duplicates(names)
    return X, names, True


def as_lazy(X: Any) -> nw.LazyFrame[Any] | None:
    """The lazy frame that `X` is, of any library that narwhals reads; None where it is something else."""
    if isinstance(X, (pd.DataFrame, np.ndarray, Mapping, list, tuple)) or _is_read_as_it_is(X):  # narwhals takes longer
        return None
    frame = nw.from_native(X, pass_through=True)
    return frame if isinstance(frame, nw.LazyFrame) else None


def _is_read_as_it_is(X: Any) -> bool:
    return nw.dependencies.is_polars_dataframe(X) or nw.dependencies.is_pyarrow_table(X)


def _refuse_other_shapes(X: Any, caller: str) -> None:
    if sparse.issparse(X):
        raise TypeError(
            f"Sparse data was passed to {caller}, but dense data is required: categories are coded from "
            "dataframe columns. Use X.toarray(), or pass the table from before one-hot encoding."
        )
    if isinstance(X, Mapping) or (isinstance(X, (list, tuple)) and len(X) and isinstance(X[0], Mapping)):
        raise TypeError(f"{caller} takes a table, and got dicts; make one of them: pandas.DataFrame(X).")
    if getattr(getattr(X, "dtype", None), "names", None) is not None:
        raise TypeError(f"{caller} takes a table, and got a structured array; make one of it: pandas.DataFrame(X).")
    if is_stream(X):
        raise TypeError(
            f"{caller} takes a table, and got a stream ({type(X).__name__}): pass a frame, as of dataset.to_table(), "
            "or one frame after another to partial_fit where there is one; the wide models fit streams."
        )


def _named_frame(X: pd.DataFrame) -> tuple[pd.DataFrame, list[str], bool]:
    """A pandas frame with text as column names, and whether they were text before."""
    names = X.columns.tolist()
    _refuse_duplicates(names)
    if all(isinstance(name, str) for name in names):
        return X, names, True
    if any(isinstance(name, str) for name in names):
        kinds = sorted({type(name).__name__ for name in X.columns})
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your "
            f"input has {kinds} as feature name / column name types. If you want feature names to "
            "be stored and validated, you must convert them all to strings, by using "
            "X.columns = X.columns.astype(str) for example."
        )
    names = [str(name) for name in names]
    _refuse_duplicates(names)
    return X.set_axis(names, axis=1), names, False


def _frame_of_array(X: Any, caller: str) -> pd.DataFrame:
    if _is_text(X):
        X = np.asarray(X, dtype=object)[:, None]
    array = check_array(
        as_given(X),
        dtype=None,
        ensure_all_finite=False,
        ensure_min_samples=0,
        ensure_min_features=0,
        estimator=caller,
    )
    frame = pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])])
    if array.dtype != object:
        return frame
    return with_large_wholes(frame.infer_objects(), lambda name: frame[name].tolist())


def _is_text(X: Any) -> bool:
    """Whether X is a list or array of one dimension that holds text and missing values, and some text."""
    if isinstance(X, np.ndarray):
        if X.ndim != 1 or X.dtype.kind not in "OUT":
            return False
    elif not isinstance(X, (list, tuple)):
        return False
    return pd.api.types.infer_dtype(list(X), skipna=True) == "string"


def _refuse_duplicates(names: list[Any]) -> None:
    if len(set(names)) < len(names):
        twice = [name for name, times in Counter(names).items() if times > 1]
        raise ValueError(f"Duplicate column name {twice[0]!r}: rename one of the columns so that every name is unique.")


def is_stream(X: Any) -> bool:
    """Whether `X` is a dataset of record batches, or an iterator of frames, instead of a table."""
    if isinstance(X, (list, tuple, str)) or nw.dependencies.is_into_dataframe(X):
        return False
    return is_dataset(X) or isinstance(X, Iterator) or (hasattr(X, "read_next_batch") and not hasattr(X, "shape"))


def is_dataset(X: Any) -> bool:
    """Whether `X` is a pyarrow dataset, which can be read more than once."""
    return hasattr(X, "to_batches") and hasattr(X, "count_rows")


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

        source = self.source
        if is_dataset(source):
            batches: Any = source.to_batches(batch_size=BATCH_ROWS, use_threads=False, **_bounded(source))
        elif nw.dependencies.is_polars_lazyframe(source):
            record_batches = source.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True)
            batches = (batch.to_arrow() for batch in record_batches)
        else:
            reader = getattr(source, "to_arrow_reader", None) or source.fetch_record_batch  # of DuckDB before 1.5
            batches = reader(BATCH_ROWS)
        for batch in batches:
            if len(batch):
                yield without_views(batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch]))


def _bounded(source: Any) -> dict[str, Any]:
    """Options by which no more is read than was requested: threads would be ahead by most of a file of Parquet."""
    import pyarrow.dataset as ds

    options: dict[str, Any] = {"batch_readahead": 0, "fragment_readahead": 0}
    if isinstance(getattr(source, "format", None), ds.ParquetFileFormat):
        options["fragment_scan_options"] = ds.ParquetFragmentScanOptions(pre_buffer=False)
    return options


def is_larger_than_memory(X: Any) -> bool:
    """Whether `X` is of those that `Batches` reads."""
    if isinstance(X, (str, Path)):
        return True
    is_relation = type(X).__module__.partition(".")[0] in ("duckdb", "_duckdb") and hasattr(X, "fetch_record_batch")
    return is_relation or is_dataset(X) or nw.dependencies.is_polars_lazyframe(X)


def _opened(path: str | Path) -> Any:
    """The Arrow dataset at a path; of a folder with the columns that names such as ``year=2024`` hold."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    where = Path(path)
    if not where.exists():
        raise ValueError(f"There is no file or folder {str(path)!r}; give the path of a Parquet file, or of a folder.")
    if where.is_file() and where.suffix not in (".parquet", ".pq"):
        raise ValueError(
            f"{str(path)!r} is no Parquet file; read it by pyarrow.dataset, polars or DuckDB, and pass what these give."
        )
    dataset = ds.dataset(where, format="parquet")
    if where.is_file():
        return dataset
    if not dataset.files:
        raise ValueError(f"The folder {str(where)!r} holds no Parquet files; give the path of one that does.")
    folders = [part for file in dataset.files for part in Path(os.path.relpath(file, where)).parent.parts]
    in_names = {part.partition("=")[0] for part in folders if "=" in part}
    partitioning = None if in_names <= set(dataset.schema.names) else "hive"  # some tools write them to the files, too
    dataset = ds.dataset(where, format="parquet", partitioning=partitioning)
    types = _types_of_columns(dataset, where)
    fields = [field.with_type(types.get(field.name, field.type)) for field in dataset.schema]
    schema = pa.schema(fields, metadata=dataset.schema.metadata)
    same = schema.equals(dataset.schema)
    return dataset if same else ds.dataset(where, schema, format="parquet", partitioning=partitioning)


def _types_of_columns(dataset: Any, where: Path) -> dict[str, Any]:
    """The type of each column that holds the values of all files; a `ValueError` where a file lacks one.

    Arrow takes the columns and types of the first file, and leaves out what only other files have.
    """
    from pyarrow.dataset import get_partition_keys

    types: dict[str, Any] = {}
    first, known = "", set[str]()
    for fragment in dataset.get_fragments():
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
        for name, dtype in zip(schema.names, schema.types, strict=True):
            types[name] = _common_type(types.get(name, dtype), dtype)
            if types[name] is None:
                raise ValueError(
                    f"Column {name!r} is of the type {dtype} in {file}, and of another in other files of the folder "
                    f"{str(where)!r}; write its files with the same types."
                )
    return types


_ROW_NUMBERS = re.compile(r"__index_level_\d+__")  # pandas writes these of frames from which rows were taken


def _common_type(left: Any, right: Any) -> Any:
    """The type that holds the values of both; None where none does."""
    import pyarrow as pa

    if left == right:
        return left
    plain = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in (left, right)]
    try:
        both = pa.unify_schemas([pa.schema([("x", kind)]) for kind in plain], promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return None
    return both.field("x").type
