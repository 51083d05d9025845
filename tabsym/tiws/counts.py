"""From a table to counts that add up: columns as words, pairs of words, and the target by category.

A word is a column and one of its categories, or one of its intervals of numbers. What was missing in fit is a word of
its own; a category that is not in the training data is none. Of a lazy frame the same are grouped by its engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from tabsym.categories import (
    UNSEEN,
    Categories,
    Contingency,
    PairCounts,
    RawCodes,
    code_numbers,
    count_pairs,
    encode_column,
    encode_columns,
)
from tabsym.categories.contingency import ROUNDING_OF_SHARES
from tabsym.categories.lazy import LazyRows, LazyTarget, is_missing, number_of_bin, sizes_of
from tabsym.frame import NUMBERS, Column, Kind, Measure, Table
from tabsym.frame.storage import object_array
from tabsym.jit import in_threads
from tabsym.modl import Intervals, Settings, fit_column
from tabsym.tiws.unknown import Sums

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]


@dataclass(frozen=True)
class CategoryWords:
    """The words of a column of categories, in the order of their text, missing last."""

    vocabulary: Categories

    @property
    def name(self) -> str:
        return self.vocabulary.name

    @classmethod
    def of(cls, name: str, raw: RawCodes, rows: NDArray[np.int64] | None = None) -> CategoryWords:
        """Those that occur in some rows, all if None, of a coded column."""
        codes = raw.codes if rows is None else raw.codes[rows]
        categories = raw.categories if rows is None else raw.categories[np.unique(codes[codes >= 0])]
        return cls(_by_text(name, [*categories.tolist(), *([None] if (codes < 0).any() else [])]))

    def __len__(self) -> int:
        return len(self.vocabulary)

    def codes(self, column: Column) -> Codes:
        """The word of each row (n,), UNSEEN where it is none."""
        return self.vocabulary.transform(encode_column(column))

    def joined(self, other: CategoryWords) -> CategoryWords:
        """The words of both."""
        return CategoryWords(
            _by_text(
                self.vocabulary.name, [*self.vocabulary.categories.tolist(), *other.vocabulary.categories.tolist()]
            )
        )

    def positions_in(self, other: CategoryWords) -> NDArray[np.int64]:
        """Where the words are among those of the other, which has them all."""
        position = {category: code for code, category in enumerate(other.vocabulary.categories.tolist())}
        return np.array([position[category] for category in self.vocabulary.categories.tolist()], dtype=np.int64)


@dataclass(frozen=True)
class NumberWords:
    """The words of a column of numbers: the number of edges below the value; missing is the last of them.

    `missing`: whether fit saw missing values; if not, they are no word. `uncut`: numbers were not asked for, and no
    value is a word, missing ones neither.
    """

    name: str
    edges: Floats
    missing: bool
    measure: Measure = NUMBERS
    uncut: bool = False

    def __len__(self) -> int:
        return 0 if self.uncut else len(self.edges) + 1 + self.missing

    def codes(self, column: Column) -> Codes:
        """The word of each row (n,), UNSEEN where it is none."""
        if self.uncut:
            return np.full(len(column.missing), UNSEEN, dtype=np.int32)
        column.check_measure(self.measure)
        values = column.values
        bins = np.searchsorted(self.edges, values, side="left")  # NaN: beyond all edges
        return np.where(np.isnan(values), len(self.edges) + 1 if self.missing else UNSEEN, bins).astype(np.int32)

    def joined(self, other: NumberWords) -> NumberWords:
        """The words of both, which have the same edges."""
        return self if self.missing else replace(self, missing=other.missing)

    def seen_in(self, column: Column, rows: NDArray[np.int64] | None) -> NumberWords:
        """Whether some rows, all if None, have missing values too."""
        if self.uncut:
            return self
        values = column.values
        return replace(self, missing=self.missing or bool(np.isnan(values if rows is None else values[rows]).any()))

    def positions_in(self, other: NumberWords) -> NDArray[np.int64]:
        """Where the words are among those of the other: missing is last in both."""
        return np.arange(len(self), dtype=np.int64)


Words = CategoryWords | NumberWords

DECILES = np.arange(1, 10) / 10


def deciles(values: Floats, weight: Floats | None = None) -> Floats:
    """The distinct inner deciles of numbers (n,) that are not missing, with weights (n,): nine edges at most."""
    present = ~np.isnan(values)
    values = values[present]
    if not len(values):
        return np.empty(0)
    if weight is None:
        return np.unique(np.quantile(values, DECILES, method="inverted_cdf"))
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[present][order])
    return np.unique(values[order][np.searchsorted(reached, (DECILES - ROUNDING_OF_SHARES) * reached[-1])])


def _by_text(name: str, categories: list[Any]) -> Categories:
    distinct = list(dict.fromkeys(categories))
    distinct.sort(key=lambda category: (category is None, str(category)))
    return Categories(name, object_array(distinct))


@dataclass(frozen=True)
class TableCounts:
    """Words of all columns, their pairs, and by number of an encoded column the sums of the target."""

    words: tuple[Words, ...]
    pairs: PairCounts
    sums: dict[int, Sums]

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each column's words begin among all words (p + 1,)."""
        return self.pairs.offsets

    def __add__(self, other: TableCounts) -> TableCounts:
        """The counts of both tables' rows; bins of numbers must be the same."""
        words = tuple(a.joined(b) for a, b in zip(self.words, other.words, strict=True))  # type: ignore[arg-type]
        a, b = self.placed(words), other.placed(words)
        sums = {j: a.sums[j] + b.sums[j].counted_from(a.sums[j].origin) for j in a.sums}
        return TableCounts(words, a.pairs + b.pairs, sums)

    def placed(self, words: Sequence[Words]) -> TableCounts:
        """The same counts by the codes of more words."""
        positions = self.positions_among(words)
        sizes = [len(column_words) for column_words in words]
        sums = {j: column_sums.placed(positions[j], sizes[j]) for j, column_sums in self.sums.items()}
        return TableCounts(tuple(words), self.pairs.grown(sizes, positions), sums)

    def positions_among(self, words: Sequence[Words]) -> list[NDArray[np.int64]]:
        """The new codes of each column's words."""
        return [old.positions_in(new) for old, new in zip(self.words, words, strict=True)]  # type: ignore[arg-type]


def refuse_strange(numeric: Any, names: list[str]) -> None:
    """A `ValueError` where the option names a column that is not there."""
    strange = [name for name in numeric if name not in names] if isinstance(numeric, Mapping) else []
    if strange:
        have = ", ".join(map(repr, names))
        raise ValueError(f"numeric names {strange[0]!r}, and there is no such column; there are {have}.")


def counted_rows(weight: Floats | None) -> NDArray[np.int64] | None:
    """The rows of weight above 0; None where they are all."""
    return None if weight is None or (weight > 0).all() else np.flatnonzero(weight > 0)


def documents_of_rows(
    codes: Sequence[NDArray[np.integer[Any]]],
    offsets: NDArray[np.int64],
    group: NDArray[np.integer[Any]],
    n_groups: int,
) -> sparse.csr_array:
    """Counts (groups, words) of words in the rows of each group.

    Parameters
    ----------
    codes : sequence of (n,)
        Words of the rows, by column; below 0 for none.
    offsets : (p + 1,)
        Where each column's words begin.
    group : (n,)
    n_groups : int
    """
    rows, words = [], []
    for position, column in enumerate(codes):
        known = column >= 0
        rows.append(group[known])
        words.append(column[known].astype(np.int64) + offsets[position])
    row, word = np.concatenate(rows), np.concatenate(words)
    shape = n_groups, int(offsets[-1])
    return sparse.coo_array((np.ones(len(row)), (row, word)), shape=shape).tocsr()


@dataclass(frozen=True)
class ContextCounting:
    """How a table is counted: TIWSEncoder's options of these names."""

    numeric: str | Mapping[str, Any]
    n_jobs: int | None

    def first_piece(
        self, table: Table, encoded: list[str], target: tuple[Floats, bool], weight: Floats | None, *, whole: bool
    ) -> TableCounts:
        """Words made from this table; `target`: (n, q) and whether it holds classes; `whole`: no piece follows."""
        refuse_strange(self.numeric, table.names)
        keep = counted_rows(weight)
        categorical = {c.name for c in table.columns if c.kind is not Kind.NUMERIC or (whole and c.is_empty)}
        words = self._words(table, categorical.union(encoded), target, weight, keep)
        return self.count(table, words, encoded, target[0], weight)

    def count(
        self, table: Table, words: tuple[Words, ...], encoded: list[str], y: Floats, weight: Floats | None,
        origin: Floats | None = None,
    ) -> TableCounts:  # fmt: skip
        """The counts of a table whose every category is a word."""
        rows = counted_rows(weight)
        codes = codes_of(table, words, self.n_jobs)
        if rows is not None and weight is not None:
            codes, y, weight = [column[rows] for column in codes], y[rows], weight[rows]
        positions = {column.name: position for position, column in enumerate(table.columns)}
        numbers = [positions[name] for name in encoded]
        if origin is None:
            origin = np.zeros(y.shape[1]) if y.shape[1] > 1 else np.average(y, axis=0, weights=weight)
        sizes = [len(column_words) for column_words in words]
        sums = {j: Sums.count(codes[j], y, weight, sizes[j], origin) for j in numbers}
        return TableCounts(words, count_pairs(codes, sizes, weight, numbers, self.n_jobs), sums)

    def new_words(self, table: Table, words: tuple[Words, ...], weight: Floats | None) -> tuple[Words, ...]:
        """The words of before and those of a further piece."""
        keep = counted_rows(weight)
        grown: list[Words] = []
        for column, before in zip(table.columns, words, strict=True):
            if isinstance(before, CategoryWords):
                grown.append(before.joined(CategoryWords.of(column.name, encode_columns([column])[0], keep)))
            else:
                grown.append(before.seen_in(column.as_numbers(), keep))
        return tuple(grown)

    def _words(
        self, table: Table, names: set[str], target: tuple[Floats, bool], weight: Floats | None, keep: Any
    ) -> tuple[Words, ...]:
        """`names`: of the columns whose values are words as they are."""
        categorical = [c for c in table.columns if c.name in names]
        column_codes = dict(zip([c.name for c in categorical], encode_columns(categorical, self.n_jobs), strict=True))
        cut_by = None

        def words_of(column: Column) -> Words:
            if column.name in column_codes:
                return CategoryWords.of(column.name, column_codes[column.name], keep)
            uncut = isinstance(how := self.how(column.name), str) and how == "passthrough"
            bins = NumberWords(column.name, np.empty(0), False, column.measure, uncut)
            if not bins.uncut:
                values = column.values if keep is None else column.values[keep]
                edges = self._edges(column, values, cut_by, weight if keep is None or weight is None else weight[keep])
                bins = replace(bins, edges=edges)
            return bins.seen_in(column, keep)

        if any(column.name not in column_codes and self.how(column.name) == "modl" for column in table.columns):
            rows = slice(None) if keep is None else keep
            cut_by = _cells(target[0][rows], target[1], None if weight is None else weight[rows])
        return tuple(in_threads(words_of, table.columns, self.n_jobs))

    def how(self, name: str) -> Any:
        """How a numeric column is cut: a word, or its edges."""
        return self.numeric.get(name, "passthrough") if isinstance(self.numeric, Mapping) else self.numeric

    def _edges(self, column: Column, values: Floats, cut_by: Any, weight: Floats | None) -> Floats:
        how = self.how(column.name)
        if not isinstance(how, str):
            return np.asarray(how, dtype=np.float64)
        if how == "quantile":
            return deciles(values, weight)
        return _supervised_edges(code_numbers(values).count(cut_by[0], cut_by[1], weight))


def _supervised_edges(table: Contingency) -> Floats:
    """The inner bounds of MODL's intervals."""
    intervals = fit_column(table, Settings(prove=False), classes=True)
    assert isinstance(intervals, Intervals)
    return np.asarray(intervals.bounds[np.isfinite(intervals.bounds)])


def codes_of(table: Table, words: tuple[Words, ...], n_jobs: int | None = None) -> list[NDArray[np.int32]]:
    """The word of each row (n,), by column."""

    def code(pair: tuple[Column, Words]) -> NDArray[np.int32]:
        column, one = pair
        return one.codes(column if isinstance(one, CategoryWords) else column.as_numbers())

    return list(in_threads(code, list(zip(table.columns, words, strict=True)), n_jobs if len(table) > 100_000 else 1))


def _cells(y: Floats, is_classes: bool, weight: Floats | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Classes, or the decile of a number, by which bins are cut: codes (n,) and their numbers."""
    codes = y.argmax(axis=1) if is_classes else np.searchsorted(deciles(y[:, 0], weight), y[:, 0], side="left")
    codes = pd.factorize(codes, sort=True)[0]
    return codes, np.arange(codes.max() + 1)


def count_lazily(
    counting: ContextCounting, rows: LazyRows, encoded: list[str], target: LazyTarget | None
) -> TableCounts:
    """The counts of a lazy frame; `target`: its classes, None for numbers."""
    refuse_strange(counting.numeric, rows.table.names)
    words = _lazy_words(counting, rows, encoded, target)
    positions = {column.name: position for position, column in enumerate(rows.table.columns)}
    numbers = [positions[name] for name in encoded]
    sums = {j: _sums(rows, words[j], target) for j in numbers}
    chosen = set(numbers)
    blocks = {
        (left, right): _block(rows, words[left], words[right])
        for right in range(len(words))
        for left in range(right)
        if left in chosen or right in chosen
    }
    return TableCounts(words, PairCounts(tuple(len(column_words) for column_words in words), blocks), sums)


# -- words -----------------------------------------------------------------------------------------


def _lazy_words(
    counting: ContextCounting, rows: LazyRows, encoded: list[str], target: LazyTarget | None
) -> tuple[Words, ...]:
    cut_by = None
    words: list[Words] = []
    for column in rows.table.columns:
        name, how = column.name, counting.how(column.name)
        if column.kind is not Kind.NUMERIC or column.is_empty or name in encoded:
            groups = rows.groups([nw.col(name)])
            words.append(CategoryWords.of(name, encode_column(rows.read(groups, "k0", name))))
            continue
        uncut = isinstance(how, str) and how == "passthrough"
        missing = not uncut and bool(column.missing.any()) and rows.has_missing(name)
        bins = NumberWords(name, np.empty(0), missing, column.measure, uncut)
        if not isinstance(how, str):
            bins = replace(bins, edges=np.asarray(how, dtype=np.float64))
        elif how == "quantile":
            bins = replace(bins, edges=np.unique(rows.quantiles(name, DECILES)))
        elif how == "modl":
            cut_by = cut_by or target or _deciles_of_target(rows)
            table = rows.numbers_by_target(name, cut_by)
            if table is None:
                groups = rows.groups([nw.col(name), cut_by.key])
                coded = code_numbers(rows.read(groups, "k0", name).values)
                table = coded.count(cut_by.codes(rows, groups, "k1"), cut_by.values, sizes_of(groups))
            bins = replace(bins, edges=_supervised_edges(table))
        words.append(bins)
    return tuple(words)


def _deciles_of_target(rows: LazyRows) -> LazyTarget:
    """By which bins are cut where the target is a number."""
    assert rows.target is not None
    edges = np.unique(rows.quantiles(rows.target, DECILES))
    key = number_of_bin(rows.frame, rows.target, edges)
    groups = rows.groups([key])
    column = rows.read(groups, "k0", rows.target)
    order = np.argsort(column.values)
    return LazyTarget.of(key, np.arange(len(order)), column, np.argsort(order))


# -- counts ----------------------------------------------------------------------------------------


def _key(rows: LazyRows, word: Words) -> nw.Expr:
    """The value of a column of categories, the number of the bin of one of numbers."""
    if isinstance(word, CategoryWords):
        return nw.col(word.name)
    last, bins = len(word.edges) + 1, number_of_bin(rows.frame, word.name, word.edges)
    return nw.when(is_missing(rows.frame, word.name)).then(nw.lit(last)).otherwise(bins)


def _codes(rows: LazyRows, groups: nw.DataFrame, key: str, word: Words) -> NDArray[np.int64]:
    """The word of each collected group."""
    if isinstance(word, CategoryWords):
        return word.vocabulary.transform(encode_column(rows.read(groups, key, word.name))).astype(np.int64)
    return groups[key].to_numpy().astype(np.int64)


def _block(rows: LazyRows, left: Words, right: Words) -> sparse.csr_array:
    if not len(left) or not len(right):
        return sparse.csr_array((len(left), len(right)), dtype=np.int32 if rows.weight is None else np.float64)
    groups = rows.groups([_key(rows, left), _key(rows, right)])
    data = sizes_of(groups) if rows.weight is not None else sizes_of(groups).astype(np.int32)
    where = _codes(rows, groups, "k0", left), _codes(rows, groups, "k1", right)
    block = sparse.coo_array((data, where), shape=(len(left), len(right))).tocsr()
    block.sort_indices()
    return block


def _sums(rows: LazyRows, word: Words, target: LazyTarget | None) -> Sums:
    """Of the classes, or of the number that the target is, by the words of a column."""
    if target is not None:
        groups = rows.groups([_key(rows, word), target.key])
        y = np.eye(len(target.values))[target.codes(rows, groups, "k1")]
        return Sums.count(_codes(rows, groups, "k0", word), y, sizes_of(groups), len(word), np.zeros(y.shape[1]))
    assert rows.target is not None
    number = nw.col(rows.target).cast(nw.Float64)
    origin = rows.mean(rows.target)
    groups = rows.groups([_key(rows, word)], sum=number - origin, square=(number - origin) * (number - origin))
    codes = _codes(rows, groups, "k0", word)

    def by_word(values: NDArray[Any]) -> Floats:
        return np.bincount(codes, values, minlength=len(word)).astype(np.float64)

    sums, squares = (by_word(groups[name].to_numpy())[:, None] for name in ("sum", "square"))
    return Sums(by_word(sizes_of(groups)), sums, squares, np.array([origin]))
