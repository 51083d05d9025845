"""Words, pairs and sums of a lazy frame: as `tabsym.tiws.counts` has them of a table, grouped by the frame's engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tabsym.categories import Contingency, PairCounts, code_numbers, encode_column
from tabsym.categories.expressions import is_missing, number_of_bin
from tabsym.categories.lazy import LazyRows, LazyTarget, sizes_of
from tabsym.frame import Column, Kind
from tabsym.modl import Intervals, Settings, fit_column
from tabsym.tiws.counts import DECILES, Bins, Counting, Symbols, TableCounts, Words, refuse_strange
from tabsym.tiws.regression import Sums

Floats = NDArray[np.float64]


def count_lazily(counting: Counting, rows: LazyRows, encoded: list[str], target: LazyTarget | None) -> TableCounts:
    """The counts of a lazy frame; `target`: its classes, None for numbers."""
    refuse_strange(counting.numeric, rows.table.names)
    words = _words(counting, rows, encoded, target)
    places = {column.name: place for place, column in enumerate(rows.table.columns)}
    numbers = [places[name] for name in encoded]
    sums = {
        j: _sums_of_numbers(rows, words[j]) if target is None else _sums_of_classes(rows, words[j], target)
        for j in numbers
    }
    chosen = set(numbers)
    blocks = {
        (left, right): _block(rows, words[left], words[right])
        for right in range(len(words))
        for left in range(right)
        if left in chosen or right in chosen
    }
    return TableCounts(words, PairCounts(tuple(len(one) for one in words), blocks), sums)


# -- words -----------------------------------------------------------------------------------------


def _words(counting: Counting, rows: LazyRows, encoded: list[str], target: LazyTarget | None) -> tuple[Words, ...]:
    cut_by = None
    words: list[Words] = []
    for column in rows.table.columns:
        name, how = column.name, counting.how(column.name)
        if column.kind is not Kind.NUMERIC or column.is_empty or name in encoded:
            groups = rows.groups([nw.col(name)])
            words.append(Symbols.of(name, encode_column(rows.read(groups, "k0", name))))
            continue
        missing = bool(column.missing.any()) and rows.has_missing(name)
        bins = Bins(name, np.empty(0), missing, column.measure, isinstance(how, str) and how == "passthrough")
        if not isinstance(how, str):
            bins = replace(bins, edges=np.asarray(how, dtype=np.float64))
        elif how == "quantile":
            bins = replace(bins, edges=np.unique(rows.quantiles(name, DECILES)))
        elif how == "modl":
            cut_by = cut_by or target or _deciles_of_target(rows)
            bins = replace(bins, edges=_supervised_edges(rows, column, cut_by))
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


def _supervised_edges(rows: LazyRows, column: Column, cut_by: LazyTarget) -> Floats:
    table = rows.numbers_by_target(column.name, cut_by) or _by_value(rows, column.name, cut_by)
    intervals = fit_column(table, Settings(prove=False), classes=True)
    assert isinstance(intervals, Intervals)
    return np.asarray(intervals.bounds[np.isfinite(intervals.bounds)])


def _by_value(rows: LazyRows, name: str, cut_by: LazyTarget) -> Contingency:
    groups = rows.groups([nw.col(name), cut_by.key])
    coded = code_numbers(rows.read(groups, "k0", name).values)
    return coded.count(cut_by.codes(rows, groups, "k1"), cut_by.values, sizes_of(groups))


# -- counts ----------------------------------------------------------------------------------------


def _key(rows: LazyRows, word: Words) -> nw.Expr:
    """The value of a column of categories, the number of the bin of one of numbers."""
    if isinstance(word, Symbols):
        return nw.col(word.name)
    last = len(word.edges) + 1
    bins = nw.lit(0) if word.uncut else number_of_bin(rows.frame, word.name, word.edges)
    return nw.when(is_missing(rows.frame, word.name)).then(nw.lit(last)).otherwise(bins)


def _codes(rows: LazyRows, groups: nw.DataFrame, key: str, word: Words) -> NDArray[np.int64]:
    """The word of each collected group."""
    if isinstance(word, Symbols):
        return word.alphabet.transform(encode_column(rows.read(groups, key, word.name))).astype(np.int64)
    return groups[key].to_numpy().astype(np.int64)


def _block(rows: LazyRows, left: Words, right: Words) -> sparse.csr_array:
    groups = rows.groups([_key(rows, left), _key(rows, right)])
    data = sizes_of(groups) if rows.weight is not None else sizes_of(groups).astype(np.int32)
    where = _codes(rows, groups, "k0", left), _codes(rows, groups, "k1", right)
    block = sparse.coo_array((data, where), shape=(len(left), len(right))).tocsr()
    block.sort_indices()
    return block


def _sums_of_classes(rows: LazyRows, word: Words, target: LazyTarget) -> Sums:
    groups = rows.groups([_key(rows, word), target.key])
    y = np.eye(len(target.values))[target.codes(rows, groups, "k1")]
    return Sums.count(_codes(rows, groups, "k0", word), y, sizes_of(groups), len(word), np.zeros(y.shape[1]))


def _sums_of_numbers(rows: LazyRows, word: Words) -> Sums:
    assert rows.target is not None
    y = nw.col(rows.target).cast(nw.Float64)
    origin = rows.mean(rows.target)
    groups = rows.groups([_key(rows, word)], sum=y - origin, square=(y - origin) * (y - origin))
    codes = _codes(rows, groups, "k0", word)

    def by_word(values: NDArray[Any]) -> Floats:
        return np.bincount(codes, values, minlength=len(word)).astype(np.float64)

    sums, squares = (by_word(groups[name].to_numpy())[:, None] for name in ("sum", "square"))
    return Sums(by_word(sizes_of(groups)), sums, squares, np.array([origin]))
