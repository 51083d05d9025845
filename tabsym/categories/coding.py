"""From a column to small integers, by the dataframe's own hash or by bin edges; and code columns side by side.

This is where the time of coding goes, so each kind of column takes the
fastest way it has: category codes are read as they are stored, Arrow strings
(pandas' `str`, pyarrow) are dictionary-encoded without the GIL, polars
casts to its Categorical, everything else goes through `pandas.factorize`.
Rows are looped over in Python only where they are few: a dictionary is used
where the hash tables of the libraries take longer to set up than to use.
One million strings with 10 to 100,000 categories take 15 to 60 ms a column,
category columns 2 ms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from tabsym.categories.kernels import count_codes, find_intervals, gather_columns, mark_used
from tabsym.frame import Column, Kind
from tabsym.frame.read import is_missing
from tabsym.frame.storage import arrow_in, library_of, object_array
from tabsym.jit import in_threads

Codes = NDArray[np.signedinteger[Any]]
CategoriesAt = Callable[[Sequence[int] | NDArray[Any]], NDArray[Any]]
Floats = NDArray[np.float64]
SearchCache = tuple[Floats, Floats]

FEW = 64
"""Up to this number of rows or categories are looked up one by one."""
MIN_WIDTH = 16
"""Size of a block of `search_cache`, which the processor compares in a few steps."""
_THREAD_ROWS = 100_000  # below this, starting threads costs more than it saves
_SPARSE = 4  # above this number of codes per row, the codes that occur are hashed instead of marked


@dataclass(frozen=True)
class RawCodes:
    """`codes` (n,) into `categories`, -1 for missing.

    Categories are distinct, and in order of first appearance; those of pandas'
    categories, polars' Enums and Arrow's dictionaries in category order. Codes are int32, or
    as small as pandas keeps those of categories: fresh memory for a copy
    would cost more than reading them.
    """

    codes: NDArray[np.signedinteger[Any]]
    categories: NDArray[Any]

    def keys(self) -> NDArray[np.uint64]:
        """A number for each category (q,) that its text determines."""
        return keys_of(self.categories.tolist())

    def take(self, rows: NDArray[np.signedinteger[Any]]) -> RawCodes:
        """Of some of the rows: categories that occur in none of them are left out."""
        return RawCodes(*renumber_used(self.codes[rows], lambda used: self.categories[used]))


def encode_columns(columns: Sequence[Column], n_jobs: int | None = None) -> list[RawCodes]:
    """Code each column on its own; in threads where that pays and `n_jobs` allows."""
    if not columns or len(columns[0]) < _THREAD_ROWS:
        return [encode_column(column) for column in columns]
    return in_threads(encode_column, columns, n_jobs)


def encode_column(column: Column) -> RawCodes:
    """Code one column of any kind.

    Raises
    ------
    TypeError
        Where a value cannot be a category (a list, a dict) or types are mixed.
    ValueError
        Where it is a date that Python has not.
    """
    stored = column.stored
    if isinstance(stored, pd.Categorical):
        categories = stored.categories
        return RawCodes(*renumber_used(stored.codes, lambda used: _categories_at(categories, used)))
    arrow, is_polars = arrow_in(stored), library_of(stored) == "polars"
    may_be_dates = is_polars and column.kind is not Kind.CATEGORICAL  # whose type, if an Enum, is not to be asked
    if may_be_dates and getattr(stored.dtype, "time_unit", None) == "ns":  # of which Python's own types lose digits
        arrow = stored.to_arrow()
    if arrow is not None:
        try:
            return _encode_arrow(arrow, column.name)
        except OverflowError:
            _refuse_far_dates(column.name)
    if may_be_dates and _holds_far_dates(stored):
        _refuse_far_dates(column.name)
    if is_polars and len(stored) > 1 and _is_enum(stored):
        return _encode_polars(stored, column, in_order=True)
    if len(stored) <= FEW:
        return _encode_values(column.name, stored.to_list() if is_polars else stored.tolist())
    if is_polars:
        return _encode_polars(stored, column)
    return _factorize(column.name, stored)


def _categories_at(categories: pd.Index, used: Sequence[int] | NDArray[Any]) -> NDArray[Any]:
    if len(used) == 1:  # a row's category: faster one by one
        return plain_categories([categories[used[0]]])
    return plain_categories(categories if len(used) == len(categories) else categories.take(used))


def _encode_values(name: str, values: list[Any]) -> RawCodes:
    """A few values, looked up one by one."""
    code_of: dict[Any, int] = {}
    try:
        codes = [
            -1 if type(value) is not str and is_missing(value) else code_of.setdefault(value, len(code_of))
            for value in values
        ]
    except TypeError:
        _refuse_nested(name)
    return RawCodes(np.array(codes, dtype=np.int32), plain_categories(list(code_of)))


def _factorize(name: str, values: Any) -> RawCodes:
    try:
        codes, categories = pd.factorize(values)
    except TypeError:
        _refuse_nested(name)
    return RawCodes(codes.astype(np.int32, copy=False), plain_categories(categories))


def _refuse_nested(name: str) -> NoReturn:
    raise TypeError(
        f"Column {name!r} holds nested values (lists, dicts or the like), an argument must be a string or a "
        "number: turn each value into one."
    ) from None


def _refuse_far_dates(name: str) -> NoReturn:
    raise ValueError(
        f"Column {name!r} holds dates before the year 1 or after 9999 (as the infinity of databases is), which are no "
        "categories; make them missing, or the column text."
    ) from None


def _holds_far_dates(series: Any) -> bool:
    """Whether dates of polars are none of Python's, on which its conversion would end with a panic."""
    import polars as pl

    if not isinstance(series.dtype, pl.Date | pl.Datetime) or (first := series.to_physical().min()) is None:
        return False
    units = {"ms": 10**3, "us": 10**6, "ns": 10**9}
    a_day = 86_400 * units[series.dtype.time_unit] if isinstance(series.dtype, pl.Datetime) else 1
    epoch = date(1970, 1, 1).toordinal()
    least, last = ((day.toordinal() - epoch) * a_day for day in (date.min, date.max))
    return not least <= first <= series.to_physical().max() < last + a_day


def _is_enum(series: Any) -> bool:
    """Whether a polars series has declared categories; its type itself would make Python text of them all."""
    from polars import Enum, selectors

    return bool(series.to_frame().select(selectors.by_dtype(Enum)).width)


def _encode_polars(series: Any, column: Column, *, in_order: bool = False) -> RawCodes:
    import polars as pl  # the caller holds a polars series, so it is there

    if column.kind is not Kind.CATEGORICAL:
        numbers = series.dtype.is_float() or (series.dtype.is_integer() and not series.null_count())
        return _factorize(column.name, series.to_numpy() if numbers else object_array(series.to_list()))
    physical = series.to_physical()  # asked of this, as the type of an Enum holds all its categories
    if physical.dtype == pl.String:
        series = series.cast(pl.Categorical)
        physical = series.to_physical()
    if not physical.dtype.is_integer():
        return _factorize(column.name, object_array(series.to_list()))
    # Physical codes of Categorical are global to the session; renumber those that occur.
    codes, used = pd.factorize(physical.cast(pl.Int64).fill_null(-1).to_numpy())
    first = np.full(len(used), 0, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    if in_order:
        order = np.argsort(used)
        codes, used, first = np.argsort(order)[codes], used[order], first[order]
    categories, present = plain_categories(series.gather(first).to_list()), used >= 0
    if present.all():
        return RawCodes(codes.astype(np.int32), categories)
    renumber = np.where(present, np.cumsum(present) - 1, -1).astype(np.int32)
    return RawCodes(renumber[codes], categories[present])


def _encode_arrow(arrow: Any, name: str) -> RawCodes:
    import pyarrow as pa  # the caller holds an Arrow array, so it is there

    if pa.types.is_dictionary(arrow.type):
        array, dictionaries = _one_array(arrow), []

        def categories_at(used: Sequence[int] | NDArray[Any]) -> NDArray[Any]:
            whole = array.dictionary
            dictionaries.append(whole if len(used) == len(whole) else whole.take(pa.array(used, pa.int64())))
            return _plain_of_arrow(dictionaries[0])

        codes, categories = renumber_used(_indices(array), categories_at)
        # Arrow does not promise that those of a dictionary are distinct, and that none is missing
        may_repeat = (
            dictionaries[0].null_count
            or pa.types.is_floating(dictionaries[0].type)
            or len(dictionaries[0].unique()) < len(dictionaries[0])
        )
        if not may_repeat:
            return RawCodes(codes, categories)
        arrow = array.cast(array.type.value_type)
    if len(arrow) <= FEW or pa.types.is_null(arrow.type) or isinstance(arrow.type, pa.BaseExtensionType):
        return _encode_values(name, arrow.to_pylist())
    if pa.types.is_floating(arrow.type):  # Arrow tells -0.0 from 0.0, and NaN from missing
        return _factorize(name, np.asarray(_one_array(arrow).to_numpy(zero_copy_only=False)))
    if pa.types.is_decimal(arrow.type) and arrow.type.bit_width < 128:  # which Arrow does not hash
        arrow = arrow.cast(pa.decimal128(arrow.type.precision, arrow.type.scale))
    array = _one_array(arrow).dictionary_encode()
    return RawCodes(_indices(array), _plain_of_arrow(array.dictionary))


def _plain_of_arrow(values: Any) -> NDArray[Any]:
    import pyarrow as pa

    if pa.types.is_temporal(values.type) or len(values) <= FEW:  # numpy would make integers of nanoseconds
        return plain_categories(values.to_pylist())
    return plain_categories(values.to_numpy(zero_copy_only=False))


def _indices(array: Any) -> NDArray[Any]:
    import pyarrow as pa

    return np.asarray(array.indices.cast(pa.int32()).fill_null(-1).to_numpy(zero_copy_only=False))


def _one_array(arrow: Any) -> Any:
    """The one array of a chunked array, without copying where there is one chunk already."""
    if not hasattr(arrow, "num_chunks"):
        return arrow
    return arrow.chunk(0) if arrow.num_chunks == 1 else arrow.combine_chunks()


def renumber_used(codes: Codes, categories_at: CategoriesAt) -> tuple[Codes, NDArray[Any]]:
    """A library's own codes (n,), numbered among those that occur, in category order, and the categories of these.

    Parameters
    ----------
    codes : (n,)
        Into the declared categories, below 0 for missing.
    categories_at : callable
        The categories at given codes (ascending, distinct), as an object array.

    Returns
    -------
    codes : (n,)
        The same array where every code up to the highest occurs.
    categories : (used,)
    """
    if len(codes) <= FEW:
        code_list = codes.tolist()
        occurring = sorted({code for code in code_list if code >= 0})
        number = {code: position for position, code in enumerate(occurring)}
        return np.array([number.get(code, -1) for code in code_list], dtype=np.int32), categories_at(occurring)
    size = int(codes.max()) + 1
    if size > _SPARSE * len(codes):
        position, used = pd.factorize(codes)
        order = np.argsort(used)
        order = order[used[order] >= 0]
        rank = np.full(len(used), -1, dtype=np.int32)
        rank[order] = np.arange(len(order))
        return rank[position], categories_at(used[order])
    marked = mark_used(codes, size)
    if marked.all():
        return codes, categories_at(np.arange(size))
    renumber = np.append(np.cumsum(marked) - 1, -1).astype(np.int32)
    return renumber[codes], categories_at(np.flatnonzero(marked))


def plain_categories(categories: Any) -> NDArray[Any]:
    """Plain Python values in an object array: no pandas, no numpy scalars in fitted state, and no -0.0."""
    values = categories if isinstance(categories, list) else categories.tolist()
    if values and type(values[0]) is not str:
        values = [_plain(value) for value in values]
    return object_array(values)


def _plain(value: Any) -> Any:
    if isinstance(value, (np.bool_, np.integer, np.floating, np.str_, np.bytes_)) and not isinstance(
        value, np.timedelta64
    ):
        value = value.item()
    return 0.0 if type(value) is float and value == 0 else value  # -0.0 equals it, and is written otherwise


def search_cache(bounds: Floats) -> SearchCache:
    """Ascending bounds in flights of one width, the last filled up with infinity; and the last of each flight but it.

    With as many flights as a flight is wide, a number is compared with few of them.
    """
    width = MIN_WIDTH * math.ceil(math.sqrt(max(len(bounds), 1)) / MIN_WIDTH)
    steps = np.full(width * (len(bounds) // width + 1), np.inf)
    steps[: len(bounds)] = bounds
    return steps, steps[width - 1 : -width : width].copy()


def interval_codes(climbed: SearchCache, values: Floats, *, missing: int, first: int = 0) -> NDArray[np.int32]:
    """Codes (n,) of the right-closed intervals of values, from `first` on; NaN is `missing`.

    `climbed`: the `search_cache` of the upper bounds of all intervals but the last.
    """
    codes = np.empty(len(values), dtype=np.int32)
    find_intervals(values, *climbed, first, missing, codes)
    return codes


def keys_of(categories: Iterable[Any]) -> NDArray[np.uint64]:
    """A number (q,) for each category that its text determines: the same in every process and dataframe."""
    texts = [category if type(category) is str else _text(category) for category in categories]
    try:
        return np.asarray(pd.util.hash_array(np.array(texts, dtype=object), categorize=False))
    except UnicodeEncodeError:  # halves of surrogate pairs
        plain = [text.encode("utf-8", "surrogatepass").decode("latin-1") for text in texts]
        return np.asarray(pd.util.hash_array(np.array(plain, dtype=object), categorize=False))


def _text(category: Any) -> str:
    """The text of a category, the same for values that are equal, whatever library or time zone they come in."""
    if isinstance(category, float) and category.is_integer():
        return str(int(category))  # as the same number of a column of integers
    if isinstance(category, Decimal):
        text = format(category, "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    if isinstance(category, timedelta):
        return f"{category.days} {category.seconds} {category.microseconds} {getattr(category, 'nanoseconds', 0)}"
    if isinstance(category, datetime) and category.tzinfo is not None:
        return str(category.astimezone(UTC))
    return f"{category} 00:00:00" if type(category) is date else str(category)


_CHUNK = 1 << 14
_MAX_ENTRIES = np.iinfo(np.int32).max


def first_rows(codes: Codes, n_codes: int) -> NDArray[np.int64]:
    """The first row of each code (n_codes,), -1 of a code that no row has."""
    first = np.full(n_codes + 1, -1, dtype=np.int64)  # the last is that of -1, rows without a code
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # NumPy keeps the last of several values
    return first[:-1]


def row_numbers(n_rows: int) -> NDArray[np.signedinteger[Any]]:
    """0 .. n_rows - 1, in four bytes each where that is enough."""
    return np.arange(n_rows, dtype=np.int32 if n_rows <= np.iinfo(np.int32).max else np.int64)


def csr(
    data: NDArray[np.generic], indices: NDArray[np.integer], pointer: NDArray[np.integer], shape: tuple[int, int]
) -> sparse.csr_array:
    """A matrix whose indices are of 32 bits where these suffice: trees of scikit-learn take no others."""
    kind = sparse.get_index_dtype(maxval=max(len(data), *shape))
    index_arrays = (indices.astype(kind, copy=False), pointer.astype(kind, copy=False))
    return sparse.csr_array((data, *index_arrays), shape=shape)


def gather(
    columns: Sequence[NDArray[np.signedinteger[Any]]],
    starts: Sequence[int] | NDArray[np.int64],
    strides: Sequence[int],
    n_rows: int,
    order: NDArray[np.signedinteger[Any]] | None = None,
    n_jobs: int | None = None,
) -> NDArray[np.int32]:
    """Code columns (n,) side by side (n, columns), rows in `order`: ``start + stride * code``, -1 unseen."""
    if order is not None and len(order) * len(columns) > _CHUNK:
        # whole rows are put in order, as a row is one place in memory and its codes in the columns are many
        return np.take(gather(columns, starts, strides, n_rows, None, n_jobs), order, axis=0, mode="clip")
    rows = row_numbers(n_rows) if order is None else order
    codes = np.empty((len(rows), len(columns)), dtype=np.int32)

    def fill(first: int) -> None:  # a tile of the matrix stays in cache while its columns are written
        chunk = slice(first, first + _CHUNK)
        for index, column in enumerate(columns):
            gather_columns(column, rows[chunk], starts[index], strides[index], codes[chunk], index)

    in_threads(fill, range(0, len(rows), _CHUNK), n_jobs)
    return codes


@dataclass(frozen=True)
class CodeMatrix:
    """What one-hot encoding would be, without the zeros: `codes` (n, blocks) int32 into all entries, -1 where unseen.

    Block j owns the entries ``offsets[j] : offsets[j + 1]``. Row i of a one-hot matrix of b blocks has b ones; their
    indices, four bytes each, are kept in row-major order: a row's codes share a cache line, which is what online
    training reads. One million rows by ten columns are 40 MB; as CSR they are 160 MB, dense 8 MB times the categories.
    """

    codes: NDArray[np.int32]
    offsets: NDArray[np.int64]

    @classmethod
    def assemble(cls, columns: Sequence[NDArray[np.int32]], sizes: Sequence[int], n_rows: int) -> CodeMatrix:
        """Put code columns (n,) of `sizes` categories together."""
        offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
        if offsets[-1] > _MAX_ENTRIES:
            raise ValueError(
                f"The terms have {offsets[-1]:,} coefficients together, more than {_MAX_ENTRIES:,}; "
                "use fewer columns or interactions."
            )
        return cls(gather(columns, offsets, [1] * len(columns), n_rows), offsets)

    @property
    def n_entries(self) -> int:
        return int(self.offsets[-1])

    def counts(self) -> NDArray[np.int64]:
        """Rows that select each entry (n_entries,)."""
        return count_codes(self.codes, self.n_entries)

    def to_csr(self, dtype: type = np.float64) -> sparse.csr_array:
        """The one-hot matrix (n, n_entries), as CSR; an unseen category is a block of zeros."""
        present = self.codes >= 0
        pointer = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
        indices = self.codes[present]
        data: NDArray[Any] = np.ones(len(indices), dtype=dtype)
        return csr(data, indices, pointer, (len(self.codes), self.n_entries))
