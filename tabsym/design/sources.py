"""Columns as codes: categories, missing-value flags, bins, interactions of these, and counts of training rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.categories import UNSEEN, Categories, Cross, RawCodes, count_column
from tabsym.categories.coding import SearchCache, interval_codes, search_cache
from tabsym.categories.kernels import take_numbers

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CategoricalSource:
    """The categories of a column, or of several columns that share their categories (home and away team).

    `closed`: these categories only, whatever others training has, as of an interaction within one category.
    """

    columns: tuple[str, ...]
    vocabulary: Categories
    closed: bool = False

    def __len__(self) -> int:
        return len(self.vocabulary)


@dataclass(frozen=True)
class Flag:
    """One coefficient for the rows in which a numeric column is missing."""

    column: str

    def __len__(self) -> int:
        return 1


@dataclass(frozen=True)
class Bins:
    """Right-closed bins of a numeric column, the first for missing values where training had any.

    Attributes
    ----------
    bounds : (I - 1,)
        Upper bounds of all bins of numbers but the last, ascending.
    labels : (I,) or (I + 1,)
        The bins as text, "Missing" first where `missing`.
    """

    column: str
    bounds: Floats
    labels: tuple[str, ...]
    missing: bool

    def __len__(self) -> int:
        return len(self.labels)

    def codes(self, values: Floats) -> NDArray[np.int32]:
        """The bin of each value; UNSEEN for a missing value where training had none."""
        first = 1 if self.missing else 0
        return interval_codes(self._search_cache, values, missing=first - 1, first=first)

    @cached_property
    def _search_cache(self) -> SearchCache:
        return search_cache(self.bounds)

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}  # cached properties are recomputed


@dataclass(frozen=True)
class Crossing:
    """The observed combinations of the source with index `left` and the categories at `right`."""

    left: int
    right: int
    interaction: Cross

    def __len__(self) -> int:
        return len(self.interaction)


FEW_ROWS = 4
"""Counts of rows up to this one have a coefficient each; above it there are two bins per doubling of the count."""


MIN_ROWS = 30
"""Minimum number of training rows in a bin of counts; smaller bins are merged with neighbours, because one of a few
rows would otherwise determine the effect of many later rows (`benchmarks/evidence/constants_models.md`)."""


MIN_CATEGORIES = 5
"""Minimum number of categories in a bin of counts: the effect of a bin of one or two would be that of these categories,
in which their coefficients, contrasts and tests lack it (`benchmarks/evidence/constants_models.md`)."""


@dataclass(frozen=True)
class CountEffect:
    """The number of training rows of another source's category, in bins, for the count effect.

    In training the count leaves out the row itself, so that 0 is the count of an unknown category too. At prediction a
    category has the count that its rows had in training, because its coefficient was fitted together with that bin; a
    category of one training row has the count 1, not 0 as unknown categories have
    (`benchmarks/evidence/constants_models.md`).

    Attributes
    ----------
    of : int
        Index of the other source.
    columns : tuple of str
        The columns that it codes.
    counts : (coefficients of the other,) int64
    lowest : (C,) int64
        The smallest count of each bin, from 0 on.
    """

    of: int
    columns: tuple[str, ...]
    counts: NDArray[np.int64]
    lowest: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lowest)

    @property
    def labels(self) -> tuple[str, ...]:
        ends = self.lowest[1:] - 1
        inside = [f"{a}" if a == b else f"{a} to {b}" for a, b in zip(self.lowest, ends)]
        return (*inside, f"{self.lowest[-1]} or more") if len(self) else ()

    def grow(
        self, codes: NDArray[np.signedinteger], copies: NDArray[np.int64] | None = None
    ) -> tuple[CountEffect, NDArray[np.int32]]:
        """Set the counts from the codes of the training rows; return the leave-one-out bins (n,) of these rows.

        `copies` (n,): how many rows each stands for.
        """
        counts = rows_by_code(codes, int(codes.max(initial=-1)) + 1, copies)
        grown = self.of_counts(counts, len(codes) if copies is None else int(copies.sum()))
        return grown, grown.codes_in_training(codes)

    def of_counts(self, counts: NDArray[np.int64], n_rows: int) -> CountEffect:
        """Set the counts (categories,) of `n_rows` training rows."""
        if len(self):
            return replace(self, counts=counts)
        # the last is for the code -1, of rows without a coefficient
        other_counts = np.append(np.maximum(counts - 1, 0), 0)
        # the smallest count of each bin up to it is 0, 1, 2, 3, 4, 6, 8, 12, 16, 23, ...
        largest = int(other_counts.max())
        halves = np.arange(2 * np.log2(FEW_ROWS) + 1, 2 * np.log2(max(largest, 1)) + 1)
        lowest = np.concatenate([np.arange(FEW_ROWS + 1), np.ceil(2.0 ** (halves / 2)).astype(np.int64)])
        lowest = lowest[lowest <= largest]
        by_count = np.zeros(max(int(lowest[-1]), largest) + 1, dtype=np.int64)
        np.add.at(by_count, other_counts, np.append(counts, n_rows - counts.sum()))
        categories = np.bincount(other_counts[:-1][counts > 0], minlength=len(by_count))
        return replace(self, counts=counts, lowest=merged_bins(lowest, by_count, categories))

    def codes_in_training(self, codes: NDArray[np.signedinteger]) -> NDArray[np.int32]:
        """The leave-one-out bins (n,) of training rows."""
        bins = np.empty(len(codes), dtype=np.int32)
        take_numbers(self._classes(np.append(np.maximum(self.counts - 1, 0), 0)), codes, bins)
        return bins

    def codes(self, codes: NDArray[np.signedinteger]) -> NDArray[np.int32]:
        """The bins (n,) of rows that were not in training."""
        if not len(self.counts):
            return np.zeros(len(codes), dtype=np.int32)
        seen = self.counts[codes]  # per row, not per category: prediction is often for a single row
        return self._classes(np.where(codes >= 0, np.where(seen > 1, seen - 1, seen), 0))

    def _classes(self, counts: NDArray[np.int64]) -> NDArray[np.int32]:
        largest = int(counts.max(initial=0))
        are_few = largest < len(counts)  # fewer possible counts than values
        asked = np.arange(largest + 1) if are_few else counts
        bins = (np.searchsorted(self.lowest, asked, side="right") - 1).astype(np.int32)
        return bins[counts] if are_few else bins


def rows_by_code(codes: NDArray[np.signedinteger], size: int, copies: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """The number of rows (size,) of each code, which is -1 for none."""
    counts = np.zeros(size, dtype=np.int64)
    if copies is None:
        count_column(codes, counts)
    else:
        seen = codes >= 0
        counts += np.bincount(codes[seen], copies[seen], size).astype(np.int64)
    return counts


def merged_bins(lowest: NDArray[np.int64], rows: NDArray[np.int64], categories: NDArray[np.int64]) -> NDArray[np.int64]:
    """The smallest count of merged bins: each has `MIN_ROWS` of the `rows`, and `MIN_CATEGORIES` of the `categories`,
    by count (counts,), where possible.
    """
    merged, n_rows, n_categories = [], MIN_ROWS, MIN_CATEGORIES  # of the bin being filled, from the lowest count on
    rows_of_bins, categories_of_bins = np.add.reduceat(rows, lowest), np.add.reduceat(categories, lowest)
    for least, bin_rows, bin_categories in zip(lowest, rows_of_bins, categories_of_bins, strict=True):
        if n_rows >= MIN_ROWS and n_categories >= MIN_CATEGORIES:
            merged.append(least)
            n_rows = n_categories = 0
        n_rows, n_categories = n_rows + bin_rows, n_categories + bin_categories
    if (n_rows < MIN_ROWS or n_categories < MIN_CATEGORIES) and len(merged) > 1:
        merged.pop()
    return np.asarray(merged, dtype=np.int64)


Source = CategoricalSource | Flag | Bins | Crossing | CountEffect


Codes = NDArray[np.signedinteger[Any]]
Columns = tuple[str, ...]


class Coder:
    """Encoder of a table by sources, which caches the codes by (source, columns); `grow` extends `sources`.

    `left` and `right` of a `Crossing`, and the `index` of a source here, are indices into `sources`.

    Parameters
    ----------
    sources : sequence of Source
    column_codes : mapping of column -> RawCodes
        The categorical columns, factorized.
    numbers : mapping of column -> (n,)
        The numeric columns of bins, flags and slopes.
    copies : (n,) or None
        How many rows each row stands for, where that is not one each.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        column_codes: Mapping[str, RawCodes],
        numbers: Mapping[str, NDArray[np.float64]],
        copies: NDArray[np.int64] | None = None,
    ) -> None:
        self.sources = list(sources)
        self.column_codes, self.numbers, self._copies = column_codes, numbers, copies
        self._codes: dict[tuple[int, Columns], Codes] = {}
        self._wide = any(isinstance(source, Crossing) for source in sources)  # interactions need int32 codes

    def code_categories(self) -> None:
        """Code the categorical columns now, and release their factorized form."""
        for index, source in enumerate(self.sources):
            if isinstance(source, CategoricalSource):
                for name in source.columns:
                    self.read(index, (name,))
        self.column_codes = {}

    def rows(self, part: slice) -> Coder:
        """The encoder of a slice of rows, after `code_categories`; bins, flags and interactions are coded per slice."""
        chunk = Coder(self.sources, {}, {name: column[part] for name, column in self.numbers.items()})
        chunk._codes = {key: codes[part] for key, codes in self._codes.items()}
        return chunk

    def take(
        self,
        rows: NDArray[np.signedinteger],
        copies: NDArray[np.int64] | None = None,
        sources: Sequence[Source] | None = None,
    ) -> Coder:
        """The encoder of `copies` of some rows, without cached codes; `sources`: other sources of the same columns."""
        column_codes = {name: raw.take(rows) for name, raw in self.column_codes.items()}
        numbers = {name: column[rows] for name, column in self.numbers.items()}
        return Coder(self.sources if sources is None else sources, column_codes, numbers, copies)

    def grow(self, reads: Iterable[tuple[int, Columns]]) -> None:
        """Add the new categories of the table to every source; interactions for the (source, columns) in `reads`."""
        crossed: dict[int, dict[Columns, None]] = {}  # the columns of each crossing
        for read, columns in reads:
            index, source, members = read, self.sources[read], columns
            while isinstance(source, (Crossing, CountEffect)):
                if isinstance(source, CountEffect):
                    index = source.of
                else:
                    crossed.setdefault(index, {})[members] = None
                    index, members = source.left, members[:-1]
                source = self.sources[index]
        for index, source in enumerate(self.sources):
            if isinstance(source, CategoricalSource) and not source.closed:
                vocabulary = source.vocabulary
                for name in source.columns:
                    vocabulary, grown_codes = vocabulary.grow(self.column_codes[name])
                    self._codes[index, (name,)] = self._as_wide(grown_codes)
                self.sources[index] = replace(source, vocabulary=vocabulary)
            elif isinstance(source, Crossing):
                interaction = source.interaction
                for columns in crossed.get(index, ()):
                    left, right = self.read(source.left, columns[:-1]), self.read(source.right, columns[-1:])
                    interaction, self._codes[index, columns] = interaction.grow(left, right)
                self.sources[index] = replace(source, interaction=interaction)
            elif isinstance(source, CountEffect):
                grown, codes = source.grow(self.read(source.of, source.columns), self._copies)
                self.sources[index], self._codes[index, source.columns] = grown, codes

    def read(self, index: int, columns: Columns) -> Codes:
        """The codes (n,) of a source for these columns; UNSEEN for categories without a code."""
        if (index, columns) not in self._codes:
            self._codes[index, columns] = self._transform(self.sources[index], columns)
        return self._codes[index, columns]

    def _transform(self, source: Source, columns: Columns) -> Codes:
        if isinstance(source, CategoricalSource):
            return self._as_wide(source.vocabulary.transform(self.column_codes[columns[0]]))
        if isinstance(source, Bins):
            return source.codes(self.numbers[source.column])
        if isinstance(source, Flag):
            return np.where(np.isnan(self.numbers[source.column]), 0, UNSEEN).astype(np.int32)
        if isinstance(source, CountEffect):
            return source.codes(self.read(source.of, columns))
        return source.interaction.transform(self.read(source.left, columns[:-1]), self.read(source.right, columns[-1:]))

    def _as_wide(self, codes: Codes) -> Codes:
        return codes.astype(np.int32, copy=False) if self._wide else codes
