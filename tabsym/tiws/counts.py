"""All that is counted of a table: pairs of words, and of each encoded column the target by category. Counts add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tabsym.codes import PairCounts
from tabsym.tiws.sums import Sums
from tabsym.tiws.words import Words

Floats = NDArray[np.float64]


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
        places = self.places_among(words)
        sizes = [len(one) for one in words]
        sums = {j: one.placed(places[j], sizes[j]) for j, one in self.sums.items()}
        return TableCounts(tuple(words), self.pairs.grown(sizes, places), sums)

    def places_among(self, words: Sequence[Words]) -> list[NDArray[np.int64]]:
        """The new codes of each column's words."""
        return [old.places_in(new) for old, new in zip(self.words, words, strict=True)]  # type: ignore[arg-type]


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
    for place, column in enumerate(codes):
        known = column >= 0
        rows.append(group[known])
        words.append(column[known].astype(np.int64) + offsets[place])
    row, word = np.concatenate(rows), np.concatenate(words)
    shape = n_groups, int(offsets[-1])
    return sparse.coo_array((np.ones(len(row)), (row, word)), shape=shape).tocsr()
