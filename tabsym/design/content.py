"""The content of rows as one number each, by which the Newton solver and the search deal rows to held-out parts.

A table, the same rows in another order, and each distinct row once with its frequency have the same parts. Numbers
count by their rank, so that units do not matter, and categories by their text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.categories.coding import keys_of
from tabsym.categories.kernels import number_repeats
from tabsym.design.sources import CategoricalSource, Crossing, Source
from tabsym.jit import by_parts, by_rows, parts_of

Floats = NDArray[np.float64]
Keys = NDArray[np.uint64]
Counts = NDArray[np.int64]

_ODD = np.uint64(0x9E3779B97F4A7C15)


def mixed(numbers: Keys) -> Keys:
    """Numbers that look random, different for different ones (the end of splitmix64)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(numbers ^ (numbers >> np.uint64(31)))


def keys_of_source(sources: Sequence[Source], index: int, columns: Sequence[str]) -> Keys:
    """A number for each code of a source of some columns, that its meaning determines: not the order of rows.

    Nor that of the columns, as of an interaction.
    """
    source = sources[index]
    if isinstance(source, CategoricalSource):
        return source.vocabulary.keys
    if not isinstance(source, Crossing):
        return np.arange(len(source), dtype=np.uint64)

    def keys_of_part(part: int, names: Sequence[str]) -> Keys:
        keys = keys_of_source(sources, part, names)
        return keys if isinstance(sources[part], Crossing) else _salted(f"of {names[0]}", keys)

    left, right = source.interaction.pairs()
    return np.asarray(keys_of_part(source.left, columns[:-1])[left] + keys_of_part(source.right, columns[-1:])[right])


SAME_NUMBER = 1e-12
"""Numbers whose difference is less than this part of their range are equal: what rounding makes of .1 + .2 and .3
depends on the mean that is subtracted, and that on the order of the rows."""


def ranks_of(values: Floats) -> tuple[NDArray[np.signedinteger[Any]], int]:
    """The rank of each number (n,) among the distinct ones, and how many there are; missing ones are the last."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    if high - low <= len(values) and (values == np.floor(values)).all():  # not where some are missing
        numbers = (values - low).astype(np.int64)
        seen = np.bincount(numbers) > 0
        return (np.cumsum(seen) - 1)[numbers], int(np.count_nonzero(seen))
    codes, distinct = pd.factorize(values)  # a hash: np.unique would sort every row
    order = np.argsort(distinct)
    gaps = np.diff(distinct[order], prepend=-np.inf)
    ranked = np.cumsum(gaps > SAME_NUMBER * gaps[1:].sum()) - 1
    size = int(ranked.max(initial=-1)) + 1
    ranks = np.full(len(distinct) + 1, size)  # code -1, of missing ones, selects the last
    ranks[order] = ranked
    return ranks[codes], size + int(codes.min(initial=0) < 0)


Coded = tuple[str, NDArray[np.signedinteger[Any]], Keys]


def content_of(n_rows: int, coded: Iterable[Coded], numbers: Iterable[tuple[str, Floats]]) -> Keys:
    """A number for each row (n,): of equal content, equal numbers.

    Parameters
    ----------
    n_rows : int
    coded : iterable of (name, (n,), (q,))
        Codes, -1 for none, and a number for each code.
    numbers : iterable of (name, (n,))
    """
    content = np.zeros(n_rows, dtype=np.uint64)
    for name, codes, keys in coded:
        table = _salted(f"codes {name}", np.append(keys, np.uint64(len(keys))))
        by_parts(lambda _, rows: np.add(content[rows], table[codes[rows]], out=content[rows]), n_rows)  # noqa: B023
    for name, values in numbers:
        ranks, size = ranks_of(values)
        content += _salted(f"number {name}", np.arange(size, dtype=np.uint64))[ranks]
    return content


def bits_of(name: str, values: Floats) -> Keys:
    """What numbers (n,) add to the content by their bits, whatever their rank: faster for many, in one unit."""

    def bits_of_part(values: Floats) -> Keys:
        bits = np.where(np.isnan(values), np.nan, values + 0.0).view(np.uint64)  # +0.0 is not -0.0
        return _salted(f"number {name}", bits)

    return by_rows(bits_of_part, values)


def _salted(name: str, keys: Keys) -> Keys:
    return mixed(mixed(keys + _ODD) + _key_of(name))


@lru_cache(maxsize=1024)  # a fit asks for that of each column some ten times
def _key_of(name: str) -> np.uint64:
    return np.uint64(keys_of([name])[0])


def content_of_rows(
    coded: Iterable[Coded], numbers: Iterable[tuple[str, Floats]], y: Floats, weight: Floats, offset: Floats,
) -> Keys:  # fmt: skip
    """The same with target (n,), weight of a copy (n,) and offset (n, K); the last two may be empty."""
    named = [(f"column {name}", values) for name, values in numbers]
    named.append(("target", y))
    if len(weight) and weight.min() < weight.max():
        named.append(("weight", weight))
    if len(offset):
        named += [(f"offset {k}", values) for k, values in enumerate(offset.reshape(len(y), -1).T)]
    return content_of(len(y), coded, named)


MANY_COPIES = 32
"""Up to this number of equal rows are assigned one by one, more by random counts."""


@dataclass(frozen=True)
class ShuffledRows:
    """Rows in a random order of their content, those of equal content next to each other, with their copies.

    Copies are dealt at random, each for itself, as different rows are. Dealt evenly by content, the parts would be
    copies of each other: what is noise in one would be confirmed by the other.

    Attributes
    ----------
    rows : (m,) intp
    content : (m,) uint64
    copies : (m,) int64 or None
        How many rows each stands for; None for one each.
    """

    rows: NDArray[np.intp]
    content: Keys
    copies: Counts | None

    @classmethod
    def of(cls, content: Keys, copies: Counts | None, rng: np.random.RandomState) -> ShuffledRows:
        """All rows, whose content and copies (n,) are given."""
        content = _random_keys(content, rng)
        order = np.argsort(content)
        return cls(order, content[order], None if copies is None else copies[order])

    @classmethod
    def sampled(cls, content: Keys, copies: Counts | None, max_copies: int, rng: np.random.RandomState) -> ShuffledRows:
        """About `max_copies` copies of all rows, in the order of the rows."""
        return cls(np.arange(len(content)), _random_keys(content, rng), copies).thin(max_copies, rng)

    @property
    def n_rows(self) -> int:
        """The number of copies."""
        return len(self.rows) if self.copies is None else int(self.copies.sum())

    def take(self, at: NDArray[Any], copies: Counts | None = None) -> ShuffledRows:
        """Some of the rows (indices or a mask), with fewer copies (of these) where they are given."""
        if copies is None and self.copies is not None:
            copies = self.copies[at]
        return ShuffledRows(self.rows[at], self.content[at], copies)

    def is_first(self) -> NDArray[np.bool_]:
        """Whether each row (m,) is the first of its content."""
        return np.append(True, self.content[1:] != self.content[:-1])[: len(self.rows)]

    def thin(self, max_copies: int, rng: np.random.RandomState) -> ShuffledRows:
        """About `max_copies` copies, at random."""
        n_rows = self.n_rows
        if n_rows <= max_copies:
            return self
        copies = _Copies(self, rng)
        n_sampled = rng.binomial(copies.large_counts, max_copies / n_rows)
        n_retained = min(max(max_copies - int(n_sampled.sum()), 0), len(copies.keys))
        retained = (
            np.argpartition(copies.keys, n_retained - 1)[:n_retained] if n_retained else np.zeros(0, dtype=np.intp)
        )
        counts = copies.counts(retained) + copies.overlap(np.zeros_like(n_sampled), n_sampled)
        return self.take(counts > 0, None if self.copies is None else counts[counts > 0])

    def deal(
        self, n_parts: int, rng: np.random.RandomState, stratum: NDArray[np.signedinteger[Any]] | None = None
    ) -> tuple[ShuffledRows, NDArray[np.int8]]:
        """Deal copies to parts of equal size, and of equal size within each stratum (m,), which is one of a content.

        Rows with copies in several parts are there once for each.
        """
        copies = _Copies(self, rng)
        order = np.argsort(copies.keys)
        if stratum is not None:
            order = order[np.argsort(stratum[copies.row[order]], kind="stable")]
        shares = np.empty((n_parts, len(self.rows)), dtype=np.int64)
        ends = np.zeros(len(copies.large_counts), dtype=np.int64)
        for number in range(n_parts):
            starts = ends
            ends = starts + rng.binomial(copies.large_counts - starts, 1.0 / (n_parts - number))
            shares[number] = copies.counts(order[number::n_parts]) + copies.overlap(starts, ends)
        at, part = np.nonzero(shares.T)
        return self.take(at, None if self.copies is None else shares[part, at]), part.astype(np.int8)

    def in_order(self, part: NDArray[np.int8]) -> tuple[ShuffledRows, NDArray[np.int8]]:
        """In the order of the rows in their table, for memory locality, with the part of each."""
        order = np.argsort(self.rows, kind="stable")
        return self.take(order), part[order]


def _random_keys(content: Keys, rng: np.random.RandomState, number: Counts | None = None) -> Keys:
    """Random numbers for rows (n,), the same for the same content and number (n,) of the copy."""
    salt, random_keys = np.uint64(rng.randint(2**31)), np.empty(len(content), dtype=np.uint64)

    def draw_part(part: int, rows: slice) -> None:
        of_copies = 0 if number is None else (number[rows].view(np.uint64) + np.uint64(1)) * _ODD
        random_keys[rows] = mixed((content[rows] + of_copies) ^ salt)

    by_parts(draw_part, len(content))
    return random_keys


class _Copies:
    """The copies of rows: one by one (u,), with the index of the `row` of each, and those of contents with `many`."""

    def __init__(self, shuffled: ShuffledRows, rng: np.random.RandomState) -> None:
        n, content, self._copies = len(shuffled.rows), shuffled.content, shuffled.copies
        self.n_rows = n
        ordered = by_rows(np.sort, content)
        if len(parts_of(n)) > 1:
            ordered.sort(kind="stable")  # which merges sorted parts
        repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
        self._before, self.large_counts = np.zeros(n, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._number: NDArray[np.int64] | None = None
        if len(repeated) or self._copies is not None:
            self._find_many(content, repeated)
        if self._copies is None and self._number is None:
            self.row, number = np.arange(n), self._before
        else:
            copies = np.ones(n, dtype=np.int64) if self._copies is None else self._copies
            n_listed = copies if self._number is None else np.where(self._number < 0, copies, 0)
            self.row = np.repeat(np.arange(n), n_listed)
            number = (
                np.arange(len(self.row)) - np.repeat(np.cumsum(n_listed) - n_listed, n_listed) + self._before[self.row]
            )
            content = content[self.row]
        self.keys = _random_keys(content, rng, number)

    def _find_many(self, content: Keys, repeated: Keys) -> None:
        """Number the copies of repeated contents, and the contents that have many."""
        n, copies = len(content), self._copies
        slots = np.zeros(1 << (2 * len(repeated) + 1).bit_length(), dtype=np.int64)
        totals, group = np.zeros(len(repeated), dtype=np.int64), np.empty(n, dtype=np.int64)
        number_repeats(
            content, np.empty(0, dtype=np.int64) if copies is None else copies, repeated, slots, totals, self._before,
            group,
        )  # fmt: skip
        alone = np.ones(n, dtype=np.int64) if copies is None else copies
        n_equal = np.where(group >= 0, totals[group] if len(totals) else 0, alone)
        is_many = n_equal > MANY_COPIES
        if is_many.any():
            _, first, number = np.unique(content[is_many], return_index=True, return_inverse=True)
            self.large_counts, self._number = n_equal[is_many][first], np.full(n, -1)
            self._number[is_many] = number.ravel()

    def counts(self, units: NDArray[np.intp]) -> Counts:
        """How many of the copies that are dealt one by one, `units`, are of each row (m,)."""
        return np.bincount(self.row[units], minlength=self.n_rows)

    def overlap(self, starts: Counts, ends: Counts) -> Counts | int:
        """How many copies of each row (m,) are among those from `starts` (c,) up to `ends` of contents of many."""
        if self._number is None:
            return 0
        copies = 1 if self._copies is None else self._copies
        low = np.maximum(starts[self._number], self._before)
        high = np.minimum(ends[self._number], self._before + copies)
        return np.where(self._number >= 0, np.maximum(high - low, 0), 0)
