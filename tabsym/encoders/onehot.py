"""One-hot encoding: category_encoders' contract, and scikit-learn's options; dense, sparse or as codes.

A CSR matrix is written row by row into arrays of the right length, as stacking blocks holds every entry three times. A
row of NaN has an entry in every output column of its category: what such rows take is known, and refused where it would
be beyond all proportion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from tabsym.categories import UNSEEN, CodeMatrix, RawCodes, csr
from tabsym.encoders.base import ColumnEncoder, numeric_matrix
from tabsym.encoders.lookups import MISSING, ColumnLookup, unknown_in, with_missing
from tabsym.encoders.onehot_column import (
    ALLOWED,
    NANS,
    ZEROS,
    Indices,
    OneHotColumn,
    OneHotOptions,
    constant_names,
    learn_column,
    options_of,
    with_unique_names,
)
from tabsym.frame import (
    Column,
    StoredType,
    Table,
    as_array,
    frame_of,
    library_of_frame,
    read_table,
    restored,
    restored_column,
    split_columns,
    type_of,
)
from tabsym.messages import plural, warn_user

MAX_NANS = 1 << 22
"""NaN entries that a sparse matrix may hold in any case: 50 MB."""
NANS_PER_ONE = 16
"""NaN entries for each entry that the matrix has without them, above which it is refused."""
_CHUNK = 1 << 18  # entries that are written at once


class OneHotEncoder(ColumnEncoder):
    """One 0/1 column for each category; options and behaviour of category_encoders' encoder, and of scikit-learn's.

    Parameters
    ----------
    verbose : int, default 0
        Accepted for compatibility; nothing is printed.
    cols : list of str (or positions, for arrays), one of them, "all" or None, default None
        Columns to encode; None: text, object and category columns; "all": every column, numbers as categories
        (a column of that name alone is ``["all"]``). All others pass through untouched, in place.
    drop_invariant : bool, default False
        Drop output columns that are constant over the training rows.
    return_df : bool, default True
        Return a frame of the kind given (pandas for arrays); False: an array.
    handle_missing : {"value", "return_nan", "error", "indicator", "ignore"}, default "value"
        "value": missing gets a column of its own where it occurred in training, else all
        zeros. "indicator": a column ``c_-2`` that flags missing values, always there.
        "return_nan": NaN in every column of the row. "ignore": all zeros.
    handle_unknown : str, default "value"
        How categories that are not in the training data, or not in `categories`, are encoded; values of both libraries:

        ======================  =================  =====================================================
        value                   known from         the row's columns
        ======================  =================  =====================================================
        "value"                 category_encoders  all zeros
        "ignore"                scikit-learn       the same
        "indicator"             category_encoders  1 in a column ``c_-1``, always there
        "return_nan"            category_encoders  NaN
        "infrequent_if_exist"   scikit-learn       1 in the infrequent categories' column; without one all zeros
        "warn"                  scikit-learn       the same, with a warning that names the columns
        "error"                 both               an error
        ======================  =================  =====================================================
    use_cat_names : bool, default False
        Name columns after categories (``colour_red``) rather than by number (``colour_1``).
    sparse_output : bool, default False
        Return a CSR matrix; untouched columns must then be numeric.
    categories : "auto", list of lists or dict of str -> list, default "auto"
        The categories of each encoded column (in a dict: of some), in the order of their output columns.
    drop : {"first", "if_binary"}, list, dict of str -> category or None, default None
        A category of each column (in a dict: of some) without an output column: its rows are all zeros. "first": the
        first in `categories_`; "if_binary": that, in columns of two categories. As an unknown category's zeros could
        then mean the dropped one, `transform` warns of them; "ignore" for missing values does not.
    min_frequency : int or float, default None
        Categories of fewer rows (a float: of a smaller share of all rows) share one output column, the last.
    max_categories : int, default None
        Maximal number of output columns before `drop`, the least frequent categories sharing one; of equally
        frequent ones the first in the table share it.
    min_group_size : int or float, default None
        As `min_frequency`, by category_encoders' rule: a single infrequent category, and a column of
        infrequent categories only, are left as they are. Not together with the two options above.
    min_group_name : str, default None
        Name of the infrequent categories in the names of output columns. None: "infrequent", and with
        `min_group_size` their names joined by ``_``.
    combine_min_nan_groups : {True, False, "force"}, default None
        Whether missing, where it is a category, can be an infrequent one; "force": where there are others, it is. None:
        True.
    dtype : type of number, default None
        Of the 0/1 columns. None: int8, and float64 where NaN can occur and in sparse matrices.
    feature_name_combiner : "concat" or callable, default None
        Callable: the name of an output column from that of its column and the category (None: missing; of
        flags "-1", "nan"; of infrequent categories their name). "concat": as ``use_cat_names=True``. None: by
        `use_cat_names`.

    Attributes
    ----------
    categories_ : dict of str -> ndarray
        The categories of each encoded column, in the order of its output columns; None is missing.
    infrequent_categories_ : dict of str -> ndarray or None
        Those of them that are infrequent, by `min_frequency`, `max_categories` or `min_group_size`.
    drop_idx_ : dict of str -> int or None
        The index in `categories_` of the one that was dropped (of infrequent ones: the most frequent).
    mapping, category_mapping : list of dict
        The encoding of each category, as in category_encoders: a column's name ("col") and a frame ("mapping") with
        a row for each of `categories_`, numbered from 1, and for unknown (-1) and missing (-2) ones.
    invariant_cols_ : list of str
        Output columns left out by `drop_invariant`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_columns,)

    Notes
    -----
    Every parameter of scikit-learn's OneHotEncoder is here. Differences from it:

    - Columns: text, object and category columns are encoded and the others pass through in place (`cols`); there, all.
      ``cols="all"`` encodes all.
    - Defaults: `handle_unknown` "value", all zeros (there "error"); `sparse_output` False (True); `dtype` None, int8
      (float64); `feature_name_combiner` None, names by number, ``colour_1`` (there "concat", ``colour_red``:
      `use_cat_names`).
    - Output: a frame of the kind given (`return_df`); there, an array or a sparse matrix.
    - Order: categories are in order of first appearance; there, sorted. `categories` sets it.
    - Missing: None and NaN are one category; `handle_missing` decides; there, two categories as any other.
    - Attributes: `categories_`, `drop_idx_` and `infrequent_categories_` are dicts by column; there, lists and arrays.
    - Of equally frequent categories `max_categories` makes the first in the table infrequent; there, the first sorted.
    - ``max_categories=k`` keeps all of k categories; there, the least frequent of them is made infrequent.
    - The column of infrequent categories is called ``colour_infrequent`` (`min_group_name`); there,
      ``colour_infrequent_sklearn``.
    - In addition, from category_encoders: `drop_invariant`, `min_group_size`, `min_group_name`,
      `combine_min_nan_groups`, `verbose`; and ``fit(..., sample_weight)``.

    Categories are in order of first appearance, those of category columns in category order; of lazy frames, whose rows
    have no order, they are sorted, and so of equally frequent ones the first sorted are infrequent. Frequencies
    are sums of `sample_weight`. A sparse matrix with untouched columns is float64 unless `dtype` is of floats. In one,
    a row of NaN has an entry for each output column of its category: beyond 4,194,304 such entries (50 MB)
    and 16 for each row and encoded column, `transform` refuses; "value" and "indicator" take one a row.

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import OneHotEncoder
    >>> X = pd.DataFrame({"colour": ["red", "blue"], "price": [1.0, 2.0]})
    >>> OneHotEncoder(use_cat_names=True).fit_transform(X)
       colour_red  colour_blue  price
    0           1            0    1.0
    1           0            1    2.0
    """

    _counts_only = True
    _allowed_options = ALLOWED

    def __init__(
        self,
        *,
        verbose=0,
        cols=None,
        drop_invariant=False,
        return_df=True,
        handle_missing="value",
        handle_unknown="value",
        use_cat_names=False,
        sparse_output=False,
        categories="auto",
        drop=None,
        min_frequency=None,
        max_categories=None,
        min_group_size=None,
        min_group_name=None,
        combine_min_nan_groups=None,
        dtype=None,
        feature_name_combiner=None,
    ):
        self.verbose = verbose
        self.cols = cols
        self.drop_invariant = drop_invariant
        self.return_df = return_df
        self.handle_missing = handle_missing
        self.handle_unknown = handle_unknown
        self.use_cat_names = use_cat_names
        self.sparse_output = sparse_output
        self.categories = categories
        self.drop = drop
        self.min_frequency = min_frequency
        self.max_categories = max_categories
        self.min_group_size = min_group_size
        self.min_group_name = min_group_name
        self.combine_min_nan_groups = combine_min_nan_groups
        self.dtype = dtype
        self.feature_name_combiner = feature_name_combiner

    # -- what was fitted -------------------------------------------------------------

    @property
    def categories_(self) -> dict[str, NDArray[Any]]:
        """The categories of each encoded column."""
        check_is_fitted(self, "columns_")
        return {name: state.vocabulary.categories for name, state in self.columns_.items()}

    @property
    def infrequent_categories_(self) -> dict[str, NDArray[Any] | None]:
        """The infrequent categories of each encoded column, None where there are none."""
        check_is_fitted(self, "columns_")
        return {
            n: one.vocabulary.categories[one.infrequent] if len(one.infrequent) else None
            for n, one in self.columns_.items()
        }

    @property
    def drop_idx_(self) -> dict[str, int | None]:
        """The index in `categories_` of each column's dropped category."""
        check_is_fitted(self, "columns_")
        return {name: None if state.dropped == UNSEEN else state.dropped for name, state in self.columns_.items()}

    @property
    def mapping(self) -> list[dict[str, Any]]:
        """The encoding of each category: a dense frame for each column, made on access."""
        check_is_fitted(self, "columns_")
        return [{"col": name, "mapping": _mapping_of(state)} for name, state in self.columns_.items()]

    @property
    def category_mapping(self) -> list[dict[str, Any]]:
        """The same as `mapping`."""
        return self.mapping

    # -- using ----------------------------------------------------------------------

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, and encode the same table. A target that is named is no feature.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,), or the name of its column in X, optional
        **fit_params
            As of `fit`.

        Returns
        -------
        dataframe, array or sparse matrix, as of `transform`
        """
        if set(fit_params) <= {"sample_weight"} and (lazy := self._as_lazy(X, refit=True)) is not None:
            return self._fit_transform_lazily(lazy, y, fit_params.get("sample_weight"))
        X, y, sample_weight = split_columns(X, y, fit_params.pop("sample_weight", None), type(self).__name__)
        if sample_weight is not None:
            fit_params["sample_weight"] = sample_weight
        return super().fit_transform(X, y, **fit_params)

    def transform_codes(self, X: Any) -> CodeMatrix:
        """The encoded columns as a code matrix: the positions of the ones, without the zeros.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        CodeMatrix
            ``codes`` (n_rows, encoded columns); -1 where a row has no one, flags left out.

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import OneHotEncoder
        >>> X = pd.DataFrame({"size": ["S", "M", "S"]})
        >>> encoder = OneHotEncoder().fit(X)
        >>> encoder.transform_codes(X).codes[:, 0].tolist()
        [0, 1, 0]
        """
        table = self._read_as_fitted(X)
        sizes = [int((state.category_of != UNSEEN).sum()) for state in self.columns_.values()]  # flags come last
        indices = [self.columns_[name].indices(codes) for name, codes in self._codes(table).items()]
        codes = [np.where(one < size, np.maximum(one, -1), -1) for one, size in zip(indices, sizes, strict=True)]
        return CodeMatrix.assemble([one.astype(np.int32) for one in codes], sizes, len(table))

    def inverse_transform(self, X: Any) -> Any:
        """The table from its encoding, each column of the type it had in fit.

        Parameters
        ----------
        X : dataframe, array or sparse matrix of shape (n_rows, n_columns_out)
            As made by `transform`.

        Returns
        -------
        dataframe (array with ``return_df=False``)
            Of the kind of X; of arrays and sparse matrices, of the kind that fit was given. Rows of zeros are what
            `drop` dropped; without it, as rows of NaN, missing: which category they had is not in the encoding.
            Infrequent categories come back as the most frequent of them, which is encoded in the same way. Where
            missing and unknown categories are both rows of NaN, a warning names the columns that have such rows.

        Raises
        ------
        ValueError
            Another number of columns, or columns were dropped by `drop_invariant`.

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym import OneHotEncoder
        >>> X = pd.DataFrame({"size": ["S", "M", "S"]})
        >>> encoder = OneHotEncoder().fit(X)
        >>> encoder.inverse_transform(encoder.transform(X))["size"].tolist()
        ['S', 'M', 'S']
        """
        check_is_fitted(self, "columns_")
        if self.invariant_cols_:
            raise ValueError(
                f"drop_invariant dropped {self.invariant_cols_[0]!r}, so the table cannot be restored; "
                "fit with drop_invariant=False."
            )
        n_columns = len(self.get_feature_names_out())
        encoding: DenseEncoding | SparseEncoding
        if sparse.issparse(X):
            encoding = SparseEncoding(X)
        elif n_columns:
            encoding = DenseEncoding(read_table(X, caller=type(self).__name__, allow_empty=True))
        else:
            encoding = DenseEncoding(_without_columns(X))
        if encoding.n_columns != n_columns:
            raise ValueError(f"X has {plural(encoding.n_columns, 'column')}, but transform makes {n_columns}.")
        frame = restored_frame(encoding, self._types_in, self.columns_)
        return frame if self.return_df else as_array(frame)

    # -- pieces -----------------------------------------------------------------------

    def _prepare(self, table: Table, encoded: list[str], y: Any, weight: NDArray[np.float64] | None) -> None:
        self._options: OneHotOptions = options_of(self, encoded)
        self._types_in = {column.name: type_of(column) for column in table.columns}

    def _learn_column(self, name: str, raw: RawCodes, weight: NDArray[np.float64] | None) -> OneHotColumn:
        return learn_column(name, raw, weight, self._options)

    def _settle(self, states: dict[str, OneHotColumn]) -> dict[str, OneHotColumn]:
        return with_unique_names(states)

    def _codes(self, table: Table) -> dict[str, NDArray[np.int32]]:
        codes = super()._codes(table)
        if self.handle_unknown == "warn" or self.drop is not None:
            names = [name for name, column_codes in codes.items() if (column_codes == UNSEEN).any()]
            _warn_of_unknown(self.columns_, names, always=self.handle_unknown == "warn")
        return codes

    def _lazy_lookups(self, frame: nw.LazyFrame[Any]) -> dict[str, ColumnLookup]:
        lookups = super()._lazy_lookups(frame)
        if self.handle_unknown == "warn" or self.drop is not None:
            names = [name for name, lookup in lookups.items() if len(unknown_in(frame, lookup).head(1).collect())]
            _warn_of_unknown(self.columns_, names, always=self.handle_unknown == "warn")
        return lookups

    def _encode_column(self, state: OneHotColumn, codes: NDArray[np.int32]) -> list[NDArray[Any]]:
        return dense_columns(state.indices(codes), len(state.names), self._options.dtype)

    def _lookup(self, name: str, state: OneHotColumn) -> ColumnLookup:
        codes, coding = with_missing(state.vocabulary.categories.tolist(), self.handle_missing)
        names = self._kept_names(state)
        new = np.full(len(state.names) + 2, -1)  # ZEROS and NANS, -1 and -2, read the last two
        new[[state.names.index(new_name) for new_name in names]], new[-2] = np.arange(len(names)), -2
        values = new[state.indices(np.append(codes, UNSEEN))]
        return ColumnLookup(name, "category", names, coding, values, self.handle_unknown == "error")

    def _encode_table(self, table: Table) -> Any:
        if not self.sparse_output:
            return super()._encode_table(table)
        untouched = [name for name in table.names if name not in self.columns_]
        blocks: dict[str, Any] = numeric_matrix(table, untouched, type(self).__name__)
        for name, codes in self._codes(table).items():
            state = self.columns_[name]
            ones = Ones(name, state.indices(codes), len(state.names))
            blocks[name] = ones.without(state.names, set(self.invariant_cols_))
        _refuse_nans([block for block in blocks.values() if isinstance(block, Ones)], len(table))
        dtype: Any = self._options.dtype
        if untouched and np.dtype(dtype).kind != "f":
            dtype = np.float64
        return sparse_matrix([blocks[name] for name in table.names], len(table), dtype)

    def _find_invariant(self, column_codes: list[RawCodes]) -> list[str]:
        states = zip(self.columns_.values(), column_codes, strict=True)
        return [name for state, raw in states for name in constant_names(state, raw)]


def _warn_of_unknown(states: dict[str, OneHotColumn], names: list[str], *, always: bool) -> None:
    """A warning that names the columns with unknown categories: all if `always`, else those where zeros mislead."""
    how = "are encoded as infrequent categories, or as zeros where there are none"
    if not always:
        names = [n for n in names if states[n].unknown_index == ZEROS and states[n].dropped != UNSEEN]
        how = "are encoded as zeros, as the dropped category is"
    if names:
        warn_user(f"Found unknown categories in column {', '.join(map(repr, names))}, which {how}.")


def _mapping_of(state: OneHotColumn) -> pd.DataFrame:
    codes = np.append(np.arange(len(state.vocabulary)), [UNSEEN, MISSING])
    indices = state.indices(codes)
    columns = dense_columns(indices, len(state.names), np.float64 if (indices == NANS).any() else np.int64)
    return pd.DataFrame(dict(zip(state.names, columns, strict=True)), index=np.where(codes < 0, codes, codes + 1))


# -- the matrix ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ones:
    """The columns of one category: the index of each row's one (n,) among `width`, ZEROS or NANS."""

    name: str
    indices: NDArray[np.integer]
    width: int

    def without(self, names: list[str], dropped: set[str]) -> Ones:
        """Without the output columns of these names, of all of its own."""
        kept = [position for position, name in enumerate(names) if name not in dropped]
        if len(kept) == self.width:
            return self
        renumber = np.full(self.width + 2, ZEROS, dtype=np.int32)
        renumber[kept] = np.arange(len(kept))
        renumber[NANS] = NANS
        return Ones(self.name, renumber[self.indices], len(kept))

    def sizes(self) -> NDArray[np.int64]:
        """Entries in each row (n,)."""
        return np.where(self.indices == NANS, self.width, self.indices >= 0)


def dense_columns(indices: NDArray[np.int32], width: int, dtype: DTypeLike) -> list[NDArray[np.generic]]:
    """The output columns (n,), one by one, from the index of each row's one."""
    block = np.zeros((width, len(indices)), dtype=dtype)
    rows = np.flatnonzero(indices >= 0)
    block[indices[rows], rows] = 1
    empty = np.flatnonzero(indices == NANS)
    if len(empty):
        block[:, empty] = np.nan
    return list(block)


def sparse_matrix(blocks: list[Ones | sparse.csr_array], n_rows: int, dtype: DTypeLike) -> sparse.csr_array:
    """All columns side by side; blocks that are matrices have one column, of numbers."""
    sizes = [block.sizes() if isinstance(block, Ones) else np.diff(block.indptr) for block in blocks]
    pointer = np.zeros(n_rows + 1, dtype=np.int64)
    for size in sizes:
        pointer[1:] += size
    np.cumsum(pointer, out=pointer)
    indices, data = np.empty(pointer[-1], dtype=np.int32), np.ones(pointer[-1], dtype=dtype)
    at, first = pointer[:-1].copy(), 0
    for block, size in zip(blocks, sizes, strict=True):
        if isinstance(block, Ones):
            _write(block, at, first, indices, data)
        else:
            rows = np.flatnonzero(size)
            indices[at[rows]], data[at[rows]] = first, block.data
        at += size
        first += block.width if isinstance(block, Ones) else 1
    return csr(data, indices, pointer, (n_rows, first))


def _write(
    ones: Ones, at: NDArray[np.int64], first: int, indices: NDArray[np.int32], data: NDArray[np.generic]
) -> None:
    rows = np.flatnonzero(ones.indices >= 0)
    indices[at[rows]] = first + ones.indices[rows]
    across = np.arange(ones.width)
    empty, step = np.flatnonzero(ones.indices == NANS), max(_CHUNK // max(ones.width, 1), 1)
    for start in range(0, len(empty), step):
        entries = at[empty[start : start + step], None] + across
        indices[entries], data[entries] = first + across, np.nan


def _refuse_nans(blocks: list[Ones], n_rows: int) -> None:
    """A `ValueError` where rows of NaN have more entries than `MAX_NANS`, and than `NANS_PER_ONE` times all others."""
    numbers = [int((block.indices == NANS).sum()) * block.width for block in blocks]
    if sum(numbers) <= max(MAX_NANS, NANS_PER_ONE * n_rows * len(blocks)):
        return
    worst = int(np.argmax(numbers))
    block = blocks[worst]
    raise ValueError(
        f"Rows of NaN would take {sum(numbers):,} entries of the sparse matrix, {numbers[worst]:,} of them in column "
        f"{block.name!r} ({plural(numbers[worst] // block.width, 'row')}, {plural(block.width, 'output column')}); "
        "set handle_unknown and handle_missing to 'value' or 'indicator', which take one entry a row at most."
    )


# -- back to the table ------------------------------------------------------------------------------


def _without_columns(X: Any) -> Table:
    """An encoding of no columns, whose rows are all alike: `drop` dropped the only category of each column."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) != 2 or shape[1]:
        raise ValueError("transform makes no columns, as each column has one category, which was dropped; pass that.")
    if not isinstance(X, (pd.DataFrame, np.ndarray)):
        raise ValueError(
            f"transform makes no columns, and a frame of {library_of_frame(X)} without columns has no rows; encode "
            "with return_df=False, or pandas, or leave drop out."
        )
    return Table((), shape[0], X, isinstance(X, pd.DataFrame))


class DenseEncoding:
    """The columns of a frame or an array, read from left to right."""

    def __init__(self, table: Table) -> None:
        self.n_rows, self.n_columns = len(table), len(table.names)
        self.native = table.native if table.named else None
        self._columns: Iterator[Column] = iter(table.columns)

    def untouched(self, kind: StoredType, library: str) -> Any:
        """The next column, which was not encoded."""
        return restored_column(next(self._columns), kind, library, named=self.native is not None)

    def indices(self, width: int) -> Indices:
        """The greatest of the next columns in each row (n,), the first of equal ones; ZEROS or NANS where none is."""
        indices, best = np.full(self.n_rows, ZEROS), np.zeros(self.n_rows)
        for position in range(width):
            values = next(self._columns).values
            indices[np.isnan(values) & (best == 0)] = NANS
            better = values > best
            indices[better], best[better] = position, values[better]
        return indices


class SparseEncoding:
    """The same of a sparse matrix."""

    native = None

    def __init__(self, matrix: Any) -> None:
        self._matrix = sparse.csr_array(matrix)
        self.n_rows, self.n_columns = self._matrix.shape
        self._next = 0

    def untouched(self, kind: StoredType, library: str) -> Any:
        self._next += 1
        values = self._matrix[:, [self._next - 1]].toarray().ravel()
        return restored(np.asarray(values, dtype=np.float64), kind, library)

    def indices(self, width: int) -> Indices:
        """As of `DenseEncoding`, of the entries that are stored."""
        indices = np.full(self.n_rows, ZEROS)
        first, self._next = self._next, self._next + width
        pointer, start = self._matrix.indptr, 0
        while start < self.n_rows:  # rows of so few entries together that copies of them do not matter
            stop = int(np.searchsorted(pointer, pointer[start] + _CHUNK))
            rows = slice(start, min(max(stop, start + 1), self.n_rows))
            block, of_chunk = sparse.coo_array(self._matrix[rows, first : self._next]), indices[rows]
            of_chunk[block.row[np.isnan(block.data)]] = NANS
            above = np.flatnonzero(block.data > 0)
            order = above[np.lexsort((-block.col[above], block.data[above], block.row[above]))]
            of_chunk[block.row[order]] = block.col[order]  # of a row's entries the last is kept: the greatest
            start = rows.stop
        return indices


def restored_frame(
    encoding: DenseEncoding | SparseEncoding, types: dict[str, StoredType], states: dict[str, OneHotColumn]
) -> Any:
    """The table: of the encoding's kind, or, where that is no frame, of the kind of fit.

    Parameters
    ----------
    encoding : DenseEncoding or SparseEncoding
    types : dict of str -> StoredType
        Of all columns, in order.
    states : dict of str -> OneHotColumn
        Of the encoded ones.
    """
    native = encoding.native
    library = next(iter(types.values())).library if native is None else library_of_frame(native)
    columns, doubtful = {}, []
    for name, kind in types.items():
        if name in states:
            indices = encoding.indices(len(states[name].names))
            if states[name].missing_index == states[name].unknown_index == NANS and (indices == NANS).any():
                doubtful.append(name)
            columns[name] = restored(states[name].categories_at(indices), kind, library)
        else:
            columns[name] = encoding.untouched(kind, library)
    if doubtful:
        warn_user(
            f"Rows of NaN in the encoding of column {', '.join(map(repr, doubtful))} were missing or unknown, which it "
            "does not distinguish; they come back as missing."
        )
    return frame_of(columns, library, native.index if isinstance(native, pd.DataFrame) else None)
