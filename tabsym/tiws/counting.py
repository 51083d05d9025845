"""From a table to counts of words: which columns, as which words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.codes import code_numbers, count_pairs, encode_columns
from tabsym.codes.threads import in_threads
from tabsym.modl import Intervals, Settings, fit_column
from tabsym.table import Column, Kind, Table
from tabsym.tiws.counts import TableCounts
from tabsym.tiws.sums import Sums
from tabsym.tiws.words import Bins, Symbols, Words, as_numbers, deciles

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Counting:
    """How a table is counted: TIWSEncoder's options of these names."""

    numeric: str | Mapping[str, Any]
    n_jobs: int | None

    def first_piece(
        self, table: Table, encoded: list[str], target: tuple[Floats, bool], weight: Floats | None, *, whole: bool
    ) -> TableCounts:
        """Words made from this table; `target`: (n, q) and whether it holds classes; `whole`: no piece follows."""
        edges = self.numeric if isinstance(self.numeric, Mapping) else {}
        strange = [name for name in edges if name not in table.names]
        if strange:
            have = ", ".join(map(repr, table.names))
            raise ValueError(f"numeric has edges for {strange[0]!r}, and there is no such column; there are {have}.")
        keep = None if weight is None or (weight > 0).all() else np.flatnonzero(weight > 0)
        symbolic = {c.name for c in table.columns if c.kind is not Kind.NUMERIC or (whole and c.is_empty)}
        words = self._words(table, symbolic.union(encoded), target, weight, keep)
        return self.count(table, words, encoded, target[0], weight)

    def count(
        self, table: Table, words: tuple[Words, ...], encoded: list[str], y: Floats, weight: Floats | None,
        origin: Floats | None = None,
    ) -> TableCounts:  # fmt: skip
        """The counts of a table whose every category is a word."""
        rows = None if weight is None or (weight > 0).all() else np.flatnonzero(weight > 0)
        codes = codes_of(table, words, self.n_jobs)
        if rows is not None and weight is not None:
            codes, y, weight = [column[rows] for column in codes], y[rows], weight[rows]
        places = {column.name: place for place, column in enumerate(table.columns)}
        numbers = [places[name] for name in encoded]
        if origin is None:
            origin = np.zeros(y.shape[1]) if y.shape[1] > 1 else np.average(y, axis=0, weights=weight)
        sizes = [len(one) for one in words]
        sums = {j: Sums.count(codes[j], y, weight, sizes[j], origin) for j in numbers}
        return TableCounts(words, count_pairs(codes, sizes, weight, numbers, self.n_jobs), sums)

    def new_words(self, table: Table, words: tuple[Words, ...], weight: Floats | None) -> tuple[Words, ...]:
        """The words of before and those of a further piece."""
        keep = None if weight is None or (weight > 0).all() else np.flatnonzero(weight > 0)
        grown: list[Words] = []
        for column, before in zip(table.columns, words, strict=True):
            if isinstance(before, Symbols):
                grown.append(before.joined(Symbols.of(column.name, encode_columns([column])[0], keep)))
            else:
                grown.append(before.seen_in(as_numbers(column), keep))
        return tuple(grown)

    def _words(
        self, table: Table, names: set[str], target: tuple[Floats, bool], weight: Floats | None, keep: Any
    ) -> tuple[Words, ...]:
        """`names`: of the columns whose values are words as they are."""
        symbolic = [c for c in table.columns if c.name in names]
        raws = dict(zip([c.name for c in symbolic], encode_columns(symbolic, self.n_jobs), strict=True))
        cut_by = None

        def words_of(column: Column) -> Words:
            if column.name in raws:
                return Symbols.of(column.name, raws[column.name], keep)
            bins = Bins(column.name, np.empty(0), False, column.measure, self._is_uncut(column.name))
            if not bins.uncut:
                values = column.values if keep is None else column.values[keep]
                edges = self._edges(column, values, cut_by, weight if keep is None or weight is None else weight[keep])
                bins = replace(bins, edges=edges)
            return bins.seen_in(column, keep)

        if self.numeric == "modl" and len(raws) < len(table.columns):
            cut_by = _cells(target[0] if keep is None else target[0][keep], target[1])
        return tuple(in_threads(words_of, table.columns, self.n_jobs))

    def _is_uncut(self, name: str) -> bool:
        return name not in self.numeric if isinstance(self.numeric, Mapping) else self.numeric == "passthrough"

    def _edges(self, column: Column, values: Floats, cut_by: Any, weight: Floats | None) -> Floats:
        if isinstance(self.numeric, Mapping):
            return np.asarray(self.numeric[column.name], dtype=np.float64)
        if self.numeric == "quantile":
            return deciles(values)
        table = code_numbers(values).count(cut_by[0], cut_by[1], weight)
        intervals = fit_column(table, Settings(prove=False), classes=True)
        assert isinstance(intervals, Intervals)
        return np.asarray(intervals.bounds[np.isfinite(intervals.bounds)])


def codes_of(table: Table, words: tuple[Words, ...], n_jobs: int | None = None) -> list[NDArray[np.int32]]:
    """The word of each row (n,), by column."""

    def code(pair: tuple[Column, Words]) -> NDArray[np.int32]:
        column, one = pair
        return one.codes(column if isinstance(one, Symbols) else as_numbers(column))

    return list(in_threads(code, list(zip(table.columns, words, strict=True)), n_jobs if len(table) > 100_000 else 1))


def _cells(y: Floats, is_classes: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """Classes, or the decile of a number, by which bins are cut: codes (n,) and their numbers."""
    if is_classes:
        codes = y.argmax(axis=1)
    else:
        codes = np.searchsorted(np.unique(np.quantile(y[:, 0], np.arange(1, 10) / 10)), y[:, 0], side="left")
    codes = pd.factorize(codes, sort=True)[0]
    return codes, np.arange(codes.max() + 1)
