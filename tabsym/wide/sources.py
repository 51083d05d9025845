"""Where the codes of a block come from: alphabets, flags, intervals, crosses of such sources, and their rarity."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import Categories, Cross, count_column
from tabsym.codes.coding import Stairs, interval_codes, stairs

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Symbols:
    """The alphabet of a column, or of several whose symbols are the same things (home and away)."""

    columns: tuple[str, ...]
    alphabet: Categories

    def __len__(self) -> int:
        return len(self.alphabet)


@dataclass(frozen=True)
class Flag:
    """One entry, there where a numeric column is missing."""

    column: str

    def __len__(self) -> int:
        return 1


@dataclass(frozen=True)
class Bins:
    """Right-closed intervals of a numeric column, the first for missing values where training had any.

    Attributes
    ----------
    bounds : (I - 1,)
        Upper bounds of all intervals of numbers but the last, ascending.
    labels : (I,) or (I + 1,)
        The intervals as text, "Missing" first where `missing`.
    """

    column: str
    bounds: Floats
    labels: tuple[str, ...]
    missing: bool

    def __len__(self) -> int:
        return len(self.labels)

    def codes(self, values: Floats) -> NDArray[np.int32]:
        """The interval of each value; a missing one that training had not is UNSEEN."""
        own = 1 if self.missing else 0
        return interval_codes(self._stairs, values, missing=own - 1, first=own)

    @cached_property
    def _stairs(self) -> Stairs:
        return stairs(self.bounds)

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}  # caches are made again


@dataclass(frozen=True)
class Crossing:
    """Observed combinations: of the source at `left` with the symbols at `right`."""

    left: int
    right: int
    cross: Cross

    def __len__(self) -> int:
        return len(self.cross)


FEW_ROWS = 4
"""Counts of rows up to this one have an entry each; beyond, there are two to every doubling."""


LEAST_ROWS = 30
"""Of training in a class of counts, at least; with fewer it is one with its neighbours. Later rows of a symbol stand
one class above their training rows, so that one of 4 rows decided about nearly a whole table of 60."""


@dataclass(frozen=True)
class Rarity:
    """How many training rows the entry of another source has, in classes: what being rare says by itself.

    In training a row counts the others only, so that the count 0 is what an unseen symbol has, and no surprise. Later
    rows of a symbol stand where its own rows stood in training, as its own number was fitted beside that class; those
    of a symbol seen once stand at 1, and not with the unseen. (All counts whole: titanic's log-loss .410, not .405,
    amazon's .1393, not .1390; once seen as unseen: amazon's AUC .888, not .894. Elsewhere level.)

    Attributes
    ----------
    of : int
        The place of the other source.
    columns : tuple of str
        Through which it is read.
    counts : (entries of the other,) int64
    lowest : (C,) int64
        The least count of each class, from 0 on.
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

    def grow(self, codes: NDArray[np.signedinteger]) -> tuple[Rarity, NDArray[np.int32]]:
        """With the training rows as the other source codes them; their classes (n,), each without itself."""
        counts = np.zeros(int(codes.max(initial=-1)) + 1, dtype=np.int64)
        count_column(codes, counts)
        others = np.append(np.maximum(counts - 1, 0), 0)  # the last is read by rows without an entry, whose code is -1
        lowest = self.lowest if len(self) else with_rows(classes_of_counts(int(others.max())), others[codes])
        grown = replace(self, counts=counts, lowest=lowest)
        return grown, grown._classes(others)[codes]

    def codes(self, codes: NDArray[np.signedinteger]) -> NDArray[np.int32]:
        """The classes (n,) of rows that had no part in training."""
        if not len(self.counts):
            return np.zeros(len(codes), dtype=np.int32)
        seen = self.counts[codes]  # row by row, as one row may be all there is
        return self._classes(np.where(codes >= 0, np.where(seen > 1, seen - 1, seen), 0))

    def _classes(self, counts: NDArray[np.int64]) -> NDArray[np.int32]:
        most = int(counts.max(initial=0))
        if most < len(counts):  # fewer counts are possible than there are
            return self._of_counts(np.arange(most + 1))[counts]
        return self._of_counts(counts)

    def _of_counts(self, counts: NDArray[np.int64]) -> NDArray[np.int32]:
        return (np.searchsorted(self.lowest, counts, side="right") - 1).astype(np.int32)


def classes_of_counts(most: int) -> NDArray[np.int64]:
    """The least count of each class up to the count `most`: 0, 1, 2, 3, 4, 6, 8, 12, 16, 23, ..."""
    halves = np.arange(2 * np.log2(FEW_ROWS) + 1, 2 * np.log2(max(most, 1)) + 1)
    lowest = np.concatenate([np.arange(FEW_ROWS + 1), np.ceil(2.0 ** (halves / 2)).astype(np.int64)])
    return np.asarray(lowest[lowest <= most])


def with_rows(lowest: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The least counts of classes, of which each has `LEAST_ROWS` of rows with counts (n,), as far as there are any."""
    by_count = np.bincount(counts, minlength=int(lowest[-1]) + 1)
    rows = np.add.reduceat(by_count, lowest)
    kept, n_rows = [], LEAST_ROWS  # of the class that is filled, from the lowest on
    for least, own in zip(lowest, rows, strict=True):
        if n_rows >= LEAST_ROWS:
            kept.append(least)
            n_rows = 0
        n_rows += own
    if n_rows < LEAST_ROWS and len(kept) > 1:
        kept.pop()
    return np.asarray(kept, dtype=np.int64)


Source = Symbols | Flag | Bins | Crossing | Rarity
