"""Frames of any library, arrays and sparse matrices: made of rows, rows taken, columns picked, stacked, put together.

pandas in, pandas out; polars in, polars out. scikit-learn's encoders give
arrays and category_encoders know pandas only; a polars frame goes through
either and comes back as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from tabsym.frame.columns import FIRST_ROUNDED, Table
from tabsym.frame.storage import library_of


@dataclass(frozen=True)
class Labels:
    """A categorical column: codes (n,) into labels, negative for missing."""

    codes: NDArray[Any]
    labels: Sequence[str]
    ordered: bool = False

    def texts(self) -> list[str | None]:
        """The label of each row, None for missing."""
        named = [*self.labels, None]
        return [named[code] if code >= 0 else None for code in self.codes.tolist()]


Columns = Mapping[str, "NDArray[Any] | Labels"] | None


def assemble_frame(table: Table, replaced: Mapping[str, Columns]) -> Any:
    """A frame of `table`'s kind in which some columns were replaced, in place.

    Parameters
    ----------
    table : Table
        Where untouched columns (and pandas' index) come from.
    replaced : mapping of column name -> mapping of new column name -> values, or None
        Columns not named here, or None, pass through untouched.

    Returns
    -------
    frame
        pandas for pandas, arrays and lists; otherwise the library of the input.
    """
    _refuse_clashes(table.names, replaced)
    if isinstance(table.native, pd.DataFrame):
        return _assemble_pandas(table.native, table.names, replaced)
    frame = nw.from_native(table.native, eager_only=True)
    series: list[nw.Series[Any]] = []
    backend = frame.implementation
    for name in table.names:
        instead = replaced.get(name)
        if instead is None:
            series.append(frame[name])
            continue
        series.extend(_series(new, values, backend) for new, values in instead.items())
    return nw.to_native(frame.select(*series)) if series else nw.to_native(frame.select())


def _refuse_clashes(names: list[str], replaced: Mapping[str, Columns]) -> None:
    taken = {name for name in names if replaced.get(name) is None}
    for source, instead in replaced.items():
        for new in instead or ():
            if new in taken:
                raise ValueError(
                    f"Encoding column {source!r} makes a column {new!r}, which is there already; "
                    "rename one of the two source columns."
                )
            taken.add(new)


def _assemble_pandas(native: pd.DataFrame, names: list[str], replaced: Mapping[str, Columns]) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for position, name in enumerate(names):
        instead = replaced.get(name)
        if instead is None:
            columns[name] = native.iloc[:, position]
        else:
            for new, values in instead.items():
                with _naming(name):
                    made: Any = values
                    if isinstance(values, Labels):
                        dtype = _dtype(tuple(values.labels), values.ordered)
                        made = pd.Categorical.from_codes(np.maximum(values.codes, -1), dtype=dtype)
                    columns[new] = pd.Series(made, index=native.index)
    with _naming(next(iter(replaced), "")):  # what made the names
        return pd.DataFrame(columns, index=native.index, copy=False)


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """A `ValueError` that names the column whose text pandas, which stores it as UTF-8, has no place for."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise ValueError(
            f"Encoding column {name!r} makes text that is no valid Unicode, {error.object!a:.60}: it holds half of a "
            "pair of UTF-16; replace it, as by str.encode('utf-8', 'replace').decode()."
        ) from None


@lru_cache(maxsize=512)
def _dtype(labels: tuple[str, ...], ordered: bool) -> pd.CategoricalDtype:
    """Made once for the labels of a column: it takes longer than a row's transform otherwise."""
    return pd.CategoricalDtype(pd.Index(list(labels)), ordered=ordered)


def _series(name: str, values: NDArray[Any] | Labels, backend: Any) -> nw.Series[Any]:
    if not isinstance(values, Labels):
        return nw.new_series(name, values, backend=backend)
    texts = nw.new_series(name, values.texts(), dtype=nw.String(), backend=backend)
    return texts.cast(nw.Enum(list(values.labels)) if backend.is_polars() else nw.Categorical())


def as_array(frame: Any) -> NDArray[Any]:
    """A frame of any kind as one array (n, p): of objects where columns of time stand next to others.

    Between these and numbers numpy has no common type, or takes microseconds for numbers.
    """
    wrapped = nw.from_native(without_dictionaries(frame), eager_only=True)
    types = set(wrapped.schema.values())
    if not types:  # polars refuses
        return np.empty(wrapped.shape)
    if len(types) == 1 or not any(dtype.is_temporal() for dtype in types):
        return wrapped.to_numpy()
    out = np.empty(wrapped.shape, dtype=object)
    for index, column in enumerate(wrapped.iter_columns()):
        if column.dtype.is_temporal():
            native = column.to_native()
            out[:, index] = native.astype(object) if isinstance(native, pd.Series) else column.to_list()
        else:
            out[:, index] = column.to_numpy()
    return out


class FromRows(pd.DataFrame):
    """A table of rows that came by name: in any order, and with more columns than needed."""

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame


def as_rows(X: Any) -> Any:
    """A table of one row from a dict, of several from a list of dicts or a dict of columns; others as they are."""
    if isinstance(X, Mapping):
        columns = all(isinstance(value, (list, tuple)) or hasattr(value, "__array__") for value in X.values())
        if not (columns and X):
            return FromRows([dict(X)])
        return with_large_wholes(FromRows(dict(X)), X.__getitem__)
    if isinstance(X, (list, tuple)) and len(X) and all(isinstance(row, Mapping) for row in X):
        made = FromRows([dict(row) for row in X])
        if any(len(row) < made.shape[1] for row in X):
            lacking = {
                name: next((position for position, row in enumerate(X) if name not in row), None) for name in made
            }
            made.attrs[LACKING] = {name: position for name, position in lacking.items() if position is not None}
        return with_large_wholes(made, lambda name: [row.get(name) for row in X])
    return X


def with_large_wholes(made: pd.DataFrame, given: Callable[[Any], Any]) -> pd.DataFrame:
    """A frame whose whole numbers that float64 rounds are those that were `given`: pandas' may be floats."""
    for name, kind in zip(made.columns, made.dtypes, strict=True) if len(made) > 1 else ():
        if kind != np.float64 or not (np.abs(made[name].to_numpy()) >= FIRST_ROUNDED).any():
            continue
        values = given(name)
        if isinstance(getattr(values, "dtype", None), np.dtype) and values.dtype.kind != "O":
            continue
        plain = [None if pd.isna(value) else value for value in values]
        if all(value is None or (isinstance(value, Integral) and not isinstance(value, bool)) for value in plain):
            is_unsigned = max(value for value in plain if value is not None) > np.iinfo(np.int64).max
            made[name] = pd.array(plain, dtype="UInt64" if is_unsigned else "Int64")
    return made


LACKING = "lacking"
"""In `attrs` of rows that came by name: the first row without a name that others have, by name."""


def refuse_lacking(X: pd.DataFrame, names: Iterable[str]) -> None:
    """A `ValueError` for rows that came by name and lack one of `names`, which may be a typing error."""
    lacking = X.attrs.get(LACKING, {})
    for name in names:
        if name in lacking:
            raise ValueError(
                f"Row {lacking[name]} lacks {name!r}, which other rows have; give it in every row, as None where it is "
                "missing."
            )


def is_frame(data: Any) -> bool:
    """Whether `data` is a dataframe of any library."""
    return isinstance(nw.from_native(data, pass_through=True), nw.DataFrame)


def take_rows(data: Any, rows: NDArray[Any]) -> Any:
    """The rows of a frame or array, in its own kind; pandas keeps its index."""
    if isinstance(data, pd.DataFrame):
        return data.iloc[rows]  # narwhals would refuse columns named by numbers
    if is_frame(data):
        return nw.from_native(without_views(data), eager_only=True)[rows, :].to_native()
    return data[rows]


def take_of(values: Any, rows: NDArray[Any], n_rows: int) -> Any:
    """What some of `n_rows` rows have of a list, array, series or frame; all else, such as one number, as it is."""
    if not hasattr(values, "__len__") or isinstance(values, str) or len(values) != n_rows:
        return values
    if isinstance(values, (list, tuple)):
        return [values[row] for row in rows.tolist()]
    if isinstance(values, (pd.Series, pd.DataFrame)):
        return values.iloc[rows]
    if is_frame(values) or isinstance(values, np.ndarray):
        return take_rows(values, rows)
    series = nw.from_native(values, pass_through=True, allow_series=True)
    return series[rows].to_native() if isinstance(series, nw.Series) else np.asarray(values)[rows]


def without_views(data: Any) -> Any:
    """An Arrow table whose columns of views are plain text and bytes: Arrow takes no rows of views."""
    if library_of(data) != "pyarrow":
        return data
    import pyarrow as pa

    plain = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return _retyped(data, [plain.get(field.type, field.type) for field in data.schema])


def without_dictionaries(data: Any) -> Any:
    """An Arrow table whose dictionaries are plain columns, others as they are.

    numpy, and so scikit-learn, gets the last category of a dictionary where a value is missing.
    """
    if library_of(data) != "pyarrow":
        return data
    import pyarrow as pa

    types = [field.type for field in data.schema]
    return _retyped(data, [dtype.value_type if pa.types.is_dictionary(dtype) else dtype for dtype in types])


def _retyped(table: Any, types: list[Any]) -> Any:
    import pyarrow as pa

    if types == table.schema.types:
        return table
    return table.cast(pa.schema([field.with_type(dtype) for field, dtype in zip(table.schema, types, strict=True)]))


def column_names(data: Any, encoder: Any) -> list[Any]:
    """The names of the columns of `data`, made by the fitted `encoder`; numbers if they are unknown."""
    if isinstance(data, pd.DataFrame):
        return list(data.columns)
    if is_frame(data):
        return list(nw.from_native(data, eager_only=True).columns)
    names = list(encoder.get_feature_names_out()) if hasattr(encoder, "get_feature_names_out") else []
    return names if len(names) == data.shape[1] else list(range(data.shape[1]))


def pick_columns(data: Any, names: list[Any], wanted: list[Any]) -> Any:
    """The `wanted` ones of the columns called `names`, in that order."""
    if names == wanted:
        return data
    if isinstance(data, pd.DataFrame):
        return data[wanted]
    if is_frame(data):
        return nw.from_native(data, eager_only=True).select(wanted).to_native()
    index = {name: position for position, name in enumerate(names)}
    return data[:, [index[name] for name in wanted]]


def columns_of(data: Any) -> list[NDArray[Any]]:
    """The columns (n,) of a frame or array, none of a sparse matrix."""
    if sparse.issparse(data):
        return []
    if isinstance(data, pd.DataFrame):
        return [data.iloc[:, index].to_numpy() for index in range(data.shape[1])]
    if is_frame(data):
        frame = nw.from_native(without_dictionaries(data), eager_only=True)
        return [frame[name].to_numpy() for name in frame.columns]
    return list(np.asarray(data).T)


def with_untouched(out: Any, given: Any, encoded: Any) -> Any:
    """Rows `out`, with those columns of `encoded`, which has the same columns, that equal a column of `given`."""
    wanted = columns_of(given)
    same = [
        index
        for index, column in enumerate(columns_of(encoded))
        if any(_is_same(column, given_column) for given_column in wanted)
    ]
    if not same:
        return out
    if isinstance(out, pd.DataFrame):
        out = out.copy()
        for index in same:
            out.isetitem(index, encoded.iloc[:, index].array)
        return out
    if is_frame(out):
        frame, encoded_frame = (nw.from_native(native, eager_only=True) for native in (out, encoded))
        return frame.with_columns(*(encoded_frame[encoded_frame.columns[index]] for index in same)).to_native()
    out = out.astype(np.result_type(out, encoded))
    out[:, same] = encoded[:, same]
    return out


def _is_same(left: NDArray[Any], right: NDArray[Any]) -> bool:
    if left.dtype.kind in "biuf" and right.dtype.kind in "biuf":
        return np.array_equal(left.astype(np.float64), right.astype(np.float64), equal_nan=True)
    return pd.Series(left, dtype=object).equals(pd.Series(right, dtype=object))


def gather(chunks: Sequence[Any], order: NDArray[Any]) -> Any:
    """The chunks under each other, then the rows in `order`."""
    first = chunks[0]
    if isinstance(first, pd.DataFrame):
        return _stack_pandas(chunks).iloc[order]
    if is_frame(first):
        frames = [nw.from_native(chunk, eager_only=True) for chunk in chunks]
        changes = []  # columns whose types differ between chunks get one that holds them all
        for name in frames[0].columns:
            if any(frame[name].dtype != frames[0][name].dtype for frame in frames):
                changes.append(nw.col(name).cast(_common_type([frame[name] for frame in frames])))
        return nw.concat([frame.with_columns(*changes) for frame in frames])[order, :].to_native()
    if sparse.issparse(first):
        return sparse.vstack(chunks, format="csr")[order]
    return np.concatenate(chunks)[order]


def _stack_pandas(chunks: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Under each other, numbered anew; category columns get all chunks' categories (pandas would make objects)."""
    stacked = {}
    for name in chunks[0].columns:
        columns = [chunk[name] for chunk in chunks]
        if all(isinstance(column.dtype, pd.CategoricalDtype) for column in columns):
            categories = columns[0].cat.categories  # and those of the others, in order of first appearance
            for column in columns[1:]:
                categories = categories.append(column.cat.categories.difference(categories, sort=False))
            ordered = all(column.dtype == columns[0].dtype and column.cat.ordered for column in columns)
            dtype = pd.CategoricalDtype(categories, ordered=ordered)
            columns = [column.astype(dtype) for column in columns]
        stacked[name] = pd.concat(columns, ignore_index=True)
    return pd.DataFrame(stacked, index=range(sum(map(len, chunks))), copy=False)


def _common_type(columns: Sequence[nw.Series[Any]]) -> Any:
    if all(column.dtype.is_numeric() for column in columns):
        return nw.Float64
    if all(isinstance(column.dtype, nw.Enum) for column in columns):
        return nw.Enum(list(dict.fromkeys(category for column in columns for category in column.cat.get_categories())))
    return nw.String


def wants_pandas(encoder: Any) -> bool:
    """Whether the encoder, or one inside it, is of category_encoders, which reads no other frames."""
    steps = [encoder, *encoder.get_params().values()] if hasattr(encoder, "get_params") else [encoder]
    return any(base.__module__.startswith("category_encoders") for step in steps for base in type(step).__mro__)


def data_for(encoder: Any, X: Any, table: Table) -> Any:
    """The table X as the encoder reads it: pandas for category_encoders, frames as they are, else an array."""
    if isinstance(X, pd.DataFrame):
        return X
    if not table.named and (array := np.asarray(X)).ndim > 1:  # a series without a name is a frame all the same
        return array
    if isinstance(X, (list, tuple, np.ndarray)):  # text in one dimension is an array of one column
        return np.asarray(X, dtype=object)[:, None]
    if wants_pandas(encoder):
        return _to("pandas", table.native)
    return table.native if library_of(encoder) == "tabsym" else without_dictionaries(table.native)


def in_users_container(out: Any, encoder: Any, table: Table, data: Any, asked: str) -> Any:
    """What a fitted encoder made of `data`, in the container of the user's table, or in the requested one.

    Parameters
    ----------
    out : frame, array or sparse matrix
    encoder : transformer
        Fitted.
    table : Table
        Of the user, in whose kind of frame `out` comes back.
    data : frame or array
        As `data_for` gave it to the encoder: arrays stay arrays.
    asked : {"default", "pandas", "polars"}
        By set_output.
    """
    if sparse.issparse(out):
        return out
    kind = _kind_of(table.native)
    if isinstance(out, np.ndarray):
        if not is_frame(data) or not getattr(encoder, "return_df", True):
            return out
        names = column_names(out, encoder)
        if kind == "pandas":
            frame = pd.DataFrame(out, columns=names, index=table.native.index)
            out = frame.infer_objects() if out.dtype == object else frame
        else:
            columns = {str(name): out[:, index] for index, name in enumerate(names)}
            lists = {name: column.tolist() if column.dtype == object else column for name, column in columns.items()}
            backend = nw.from_native(table.native, eager_only=True).implementation
            out = nw.from_dict(lists, backend=backend).to_native()
    elif kind != "pandas" and wants_pandas(encoder):
        out = _to(kind, out)
    return out if asked == "default" else _to(asked, out)


def _kind_of(frame: Any) -> str:
    return str(nw.from_native(frame, eager_only=True).implementation.value)


def _to(kind: str, frame: Any) -> Any:
    """A frame as pandas, polars or pyarrow; itself where it is that already."""
    if _kind_of(frame) == kind:
        return frame
    source = nw.from_native(frame, eager_only=True)
    return {"pandas": source.to_pandas, "polars": source.to_polars, "pyarrow": source.to_arrow}[kind]()
