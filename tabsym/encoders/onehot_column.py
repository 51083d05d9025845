"""A column as output columns of ones: which category has which, the matrix of them, and the way back to the table.

A CSR matrix is written row by row into arrays of the right length, as stacking blocks holds every entry three times. A
row of NaN has an entry in every output column of its category: what such rows take is known, and refused where it would
be beyond all proportion.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from tabsym.categories import UNSEEN, Categories, RawCodes, csr
from tabsym.categories.coding import plain_symbols
from tabsym.encoders.base import codes_in
from tabsym.encoders.onehot_options import InfrequentRule, OneHotOptions
from tabsym.frame import (
    Column,
    StoredType,
    Table,
    frame_of,
    library_of_frame,
    read_table,
    restored,
    restored_column,
)
from tabsym.warn import warn_user

Indices = NDArray[np.int64]

ZEROS, NANS = -1, -2
"""Indices of rows that have no one: all zeros, or all NaN."""
MAX_NANS = 1 << 22
"""NaN entries that a sparse matrix may hold in any case: 50 MB."""
NANS_PER_ONE = 16
"""NaN entries for each entry that the matrix has without them, above which it is refused."""
_TILE = 1 << 18  # entries that are written at once


@dataclass(frozen=True)
class OneHotColumn:
    """State of one column.

    Attributes
    ----------
    alphabet : Categories
        All categories, those without an output column of their own too.
    names : list of str
        Output columns: of categories in code order, of the infrequent ones together, then the flags. Unique over all
        columns after `with_unique_names`.
    index_of : (M,)
        The output column of each category; ZEROS for what was dropped.
    missing_index, unknown_index : int
        The output column of a missing value that is no category, and of an unknown one; or ZEROS, or NANS.
    category_of : (outputs,)
        The code that each output column stands for on the way back; UNSEEN for flags.
    dropped : int
        The code that a row of zeros stands for, UNSEEN where nothing was dropped.
    infrequent : (R,)
        Codes of the categories that share an output column.
    """

    alphabet: Categories
    names: list[str]
    index_of: NDArray[np.int32]
    missing_index: int
    unknown_index: int
    category_of: NDArray[np.int64]
    dropped: int
    infrequent: NDArray[np.int64]

    @property
    def n_category_columns(self) -> int:
        """Output columns that are no flags, which come first."""
        return int((self.category_of != UNSEEN).sum())

    def indices(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
        """The output column of each row's one (n,), ZEROS or NANS."""
        table = np.append(self.index_of, [self.missing_index, self.unknown_index]).astype(np.int32)
        return np.asarray(table[codes])  # MISSING, -2, and UNSEEN, -1, read the last two

    def categories_at(self, indices: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """The categories (n,) for which indices stand; None where that is not known."""
        codes = np.append(self.category_of, [UNSEEN, self.dropped])[indices]  # NANS and ZEROS read the last two
        return self.alphabet.inverse(codes)


def learn_column(name: str, raw: RawCodes, weight: NDArray[np.float64] | None, options: OneHotOptions) -> OneHotColumn:
    """The state of a column from its codes, and from the weights of its rows, all 1 if None."""
    alphabet, codes = _alphabet(name, raw, options)
    counts = np.bincount(codes[codes >= 0], None if weight is None else weight[codes >= 0], minlength=len(alphabet))
    n_rows = len(codes) if weight is None else float(weight.sum())
    infrequent = find_infrequent(counts, n_rows, alphabet.missing_code, options.infrequent)
    group_of, labels, category_of = _group(alphabet, counts, infrequent, options)
    drop = _dropped_group(name, alphabet, group_of, options)
    kept = [group for group in range(len(labels)) if group != drop]
    index_of = np.append(np.full(len(labels), ZEROS), ZEROS)
    index_of[kept] = np.arange(len(kept))
    labels = [labels[group] for group in kept]
    unknown_index = missing_index = ZEROS
    if options.unknown == "return_nan":
        unknown_index = NANS
    elif options.unknown == "infrequent" and len(infrequent):
        unknown_index = int(index_of[group_of[infrequent[0]]])
    if options.handle_missing == "return_nan":
        missing_index = NANS
    flags = []
    if options.handle_missing == "indicator":
        missing_index = len(kept)
        flags.append("nan" if options.by_category else "-2")
    if options.unknown == "indicator":
        unknown_index = len(kept) + len(flags)
        flags.append("-1")
    names = [options.combine(name, label) for label in [*labels, *flags]]
    return OneHotColumn(
        alphabet, names, index_of[group_of].astype(np.int32), missing_index, unknown_index,
        np.append(category_of[kept], np.full(len(flags), UNSEEN)).astype(np.int64),
        UNSEEN if drop is None else int(category_of[drop]), infrequent,
    )  # fmt: skip


def constant_names(state: OneHotColumn, raw: RawCodes) -> list[str]:
    """Output columns that are the same in all rows, found by counting."""
    indices = state.indices(codes_in(state.alphabet, raw))
    if (indices == NANS).any():
        return []
    ones = np.bincount(indices[indices >= 0], minlength=len(state.names))
    return [state.names[position] for position in np.flatnonzero((ones == 0) | (ones == len(indices)))]


def _alphabet(name: str, raw: RawCodes, options: OneHotOptions) -> tuple[Categories, NDArray[np.int32]]:
    """The categories asked for, or those that occur, and each row's code; missing is one under "value" only."""
    missing_is_category = options.handle_missing == "value"
    given = options.categories.get(name)
    if given is None:
        present = raw.codes if missing_is_category else raw.codes[raw.codes >= 0]
        alphabet, _ = Categories.fit(name, RawCodes(present, raw.symbols))
        return alphabet, alphabet.transform(raw)
    alphabet = Categories(name, _given_categories(name, given, missing_is_category))
    try:
        codes = alphabet.transform(raw)
    except TypeError:
        raise TypeError(
            f"categories of column {name!r} hold values such as {alphabet.symbols[0]!r} and the column such as "
            f"{raw.symbols[0]!r}; give categories of the column's type."
        ) from None
    unknown = (codes == UNSEEN) & (raw.codes >= 0)
    if options.unknown == "error" and unknown.any():
        value = raw.symbols[raw.codes[np.argmax(unknown)]]
        raise ValueError(
            f"Column {name!r} holds {value!r} (row {int(np.argmax(unknown))}), which is not among its categories; "
            "add it to them, or set handle_unknown to something other than 'error'."
        )
    return alphabet, codes


def _given_categories(name: str, given: list[Any], missing_is_category: bool) -> NDArray[Any]:
    if not all(isinstance(one, Hashable) for one in given):
        raise TypeError(f"categories of column {name!r} hold nested values; give a list of categories for each column.")
    symbols = plain_symbols([None if pd.api.types.is_scalar(one) and pd.isna(one) else one for one in given])
    if len(set(symbols.tolist())) < len(symbols):
        raise ValueError(f"categories of column {name!r} hold a value twice; name each once.")
    if None in symbols.tolist() and not missing_is_category:
        raise ValueError(
            f"categories of column {name!r} hold a missing value, which is a category under handle_missing='value' "
            "only; leave it out, or set handle_missing='value'."
        )
    return symbols


def _group(
    alphabet: Categories, counts: NDArray[Any], infrequent: NDArray[np.int64], options: OneHotOptions
) -> tuple[NDArray[np.int64], list[Any], NDArray[np.int64]]:
    """The group of each category, each group's label and the category it stands for; infrequent ones last, in one."""
    common = np.setdiff1d(np.arange(len(alphabet)), infrequent)
    group_of = np.full(len(alphabet), len(common))
    group_of[common] = np.arange(len(common))
    labels: list[Any] = alphabet.symbols[common].tolist()
    category_of = common
    if len(infrequent):
        labels.append(options.infrequent.name_of(alphabet.symbols[infrequent]))
        category_of = np.append(common, infrequent[np.argmax(counts[infrequent])])
    if not options.by_category:
        labels = [str(position + 1) for position in range(len(labels))]
    return group_of, labels, category_of


def _dropped_group(name: str, alphabet: Categories, group_of: NDArray[np.int64], options: OneHotOptions) -> int | None:
    n_groups = int(group_of.max()) + 1 if len(group_of) else 0
    if isinstance(options.drop, str):
        return 0 if n_groups and (options.drop == "first" or n_groups == 2) else None
    if options.drop is None or name not in options.drop:
        return None
    value = options.drop[name]
    code = next((code for code, symbol in enumerate(alphabet.symbols.tolist()) if symbol == value), None)
    if code is None:
        raise ValueError(f"drop names {value!r} of column {name!r}, which is none of its categories; drop one that is.")
    if (group_of == group_of[code]).sum() > 1:
        raise ValueError(
            f"drop names {value!r} of column {name!r}, which is among its infrequent categories; drop another one, or "
            "do not group it."
        )
    return int(group_of[code])


def with_unique_names(states: dict[str, OneHotColumn]) -> dict[str, OneHotColumn]:
    """The columns with category_encoders' way of naming outputs whose names clash: by trailing #."""
    taken: set[str] = set()
    out = {}
    for name, state in states.items():
        names = []
        for new in state.names:
            while new in taken:
                new += "#"  # noqa: PLW2901
            taken.add(new)
            names.append(new)
        out[name] = replace(state, names=names)
    return out


def find_infrequent(counts: NDArray[Any], n_rows: float, missing: int, rule: InfrequentRule) -> NDArray[np.int64]:
    """Codes of the infrequent categories.

    Parameters
    ----------
    counts : (M,)
        Rows, or weights, of each category.
    n_rows : float
        Of the whole column.
    missing : int
        The code of the missing category, below 0 where there is none.
    rule : InfrequentRule
    """
    infrequent = np.zeros(len(counts), dtype=bool)
    if rule.smallest is not None:
        whole = isinstance(rule.smallest, Integral)
        infrequent = counts < (rule.smallest if whole else rule.smallest * n_rows)
    if missing >= 0 and rule.with_missing is not True:
        infrequent[missing] = rule.with_missing == "force" and bool(infrequent.any())
    infrequent |= _beyond(counts, infrequent, missing, rule)
    named = np.ones(len(counts), dtype=bool)
    if missing >= 0:
        named[missing] = False
    if rule.needs_two and (infrequent.sum() < 2 or infrequent[named].all() or not counts[infrequent].sum() > 0):
        infrequent[:] = False
    return np.flatnonzero(infrequent)


def _beyond(
    counts: NDArray[Any], infrequent: NDArray[np.bool_], missing: int, rule: InfrequentRule
) -> NDArray[np.bool_]:
    """The smallest categories, so that no more than `at_most` output columns are left; of equal ones the first."""
    out = np.zeros(len(counts), dtype=bool)
    if rule.at_most is None or len(counts) - infrequent.sum() + infrequent.any() <= rule.at_most:
        return out
    kept_apart = missing if missing >= 0 and rule.with_missing is False else -1
    order = [code for code in np.argsort(counts, kind="stable").tolist() if code != kept_apart]
    common = rule.at_most - 1 - (kept_apart >= 0)
    out[order[: max(len(order) - common, 0)] if common > 0 else order] = True
    if missing >= 0 and rule.with_missing == "force":
        out[missing] = True
    return out


# -- the matrix ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ones:
    """The columns of one category: the index of each row's one (n,) among `width`, ZEROS or NANS."""

    name: str
    indices: NDArray[np.int32]
    width: int

    def keep(self, kept: list[int]) -> Ones:
        """With these output columns only."""
        if len(kept) == self.width:
            return self
        renumber = np.full(self.width + 2, ZEROS, dtype=np.int32)
        renumber[kept] = np.arange(len(kept))
        renumber[NANS] = NANS
        return Ones(self.name, renumber[self.indices], len(kept))

    def sizes(self) -> NDArray[np.int64]:
        """Entries in each row (n,)."""
        return np.where(self.indices == NANS, self.width, self.indices >= 0)


def dense_columns(ones: Ones, dtype: DTypeLike) -> list[NDArray[np.generic]]:
    """The output columns (n,), one by one."""
    block = np.zeros((ones.width, len(ones.indices)), dtype=dtype)
    rows = np.flatnonzero(ones.indices >= 0)
    block[ones.indices[rows], rows] = 1
    empty = np.flatnonzero(ones.indices == NANS)
    if len(empty):
        block[:, empty] = np.nan
    return list(block)


def sparse_matrix(blocks: list[Ones | sparse.csr_array], n_rows: int, dtype: DTypeLike) -> sparse.csr_array:
    """All columns side by side; blocks that are matrices have one column, of numbers.

    Raises
    ------
    ValueError
        Where rows of NaN have more entries than `MAX_NANS`, and than `NANS_PER_ONE` times all others.
    """
    _refuse_nans([block for block in blocks if isinstance(block, Ones)], n_rows)
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
    empty, step = np.flatnonzero(ones.indices == NANS), max(_TILE // max(ones.width, 1), 1)
    for start in range(0, len(empty), step):
        entries = at[empty[start : start + step], None] + across
        indices[entries], data[entries] = first + across, np.nan


def _refuse_nans(blocks: list[Ones], n_rows: int) -> None:
    numbers = [int((block.indices == NANS).sum()) * block.width for block in blocks]
    if sum(numbers) <= max(MAX_NANS, NANS_PER_ONE * n_rows * len(blocks)):
        return
    worst = int(np.argmax(numbers))
    block = blocks[worst]
    raise ValueError(
        f"Rows of NaN would take {sum(numbers):,} entries of the sparse matrix, {numbers[worst]:,} of them in column "
        f"{block.name!r} ({numbers[worst] // block.width:,} rows, {block.width:,} output columns); set handle_unknown "
        "and handle_missing to 'value' or 'indicator', which take one entry a row at most."
    )


# -- back to the table ------------------------------------------------------------------------------


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
        indices = np.full(self.n_rows, ZEROS)
        first, self._next = self._next, self._next + width
        for rows in self._tiles():
            _find_positions(sparse.coo_array(self._matrix[rows, first : self._next]), indices[rows])
        return indices

    def _tiles(self) -> Iterator[slice]:
        """Rows of so few entries together that copies of them do not matter, as rows of NaN are long."""
        pointer, start = self._matrix.indptr, 0
        while start < self.n_rows:
            stop = int(np.searchsorted(pointer, pointer[start] + _TILE))
            stop = min(max(stop, start + 1), self.n_rows)
            yield slice(start, stop)
            start = stop


def _find_positions(block: sparse.coo_array, indices: Indices) -> None:
    indices[block.row[np.isnan(block.data)]] = NANS
    found = np.flatnonzero(block.data > 0)
    order = found[np.lexsort((-block.col[found], block.data[found], block.row[found]))]
    indices[block.row[order]] = block.col[order]  # of a row's entries the last is kept: the greatest


def encoding_of(X: Any, caller: str) -> DenseEncoding | SparseEncoding:
    """What a user gives to be decoded."""
    return SparseEncoding(X) if sparse.issparse(X) else DenseEncoding(read_table(X, caller=caller, allow_empty=True))


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
            "does not distinguish; they come back as missing.",
        )
    return frame_of(columns, library, native.index if isinstance(native, pd.DataFrame) else None)
