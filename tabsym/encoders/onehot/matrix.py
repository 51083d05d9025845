"""From places to 0/1 columns: dense ones, or one CSR matrix written in place.

The matrix is written row by row into arrays of the right length, as stacking
blocks holds every entry three times. A row of NaN has an entry in every
output column of its category: what such rows take is known, and refused where
it would be beyond all proportion.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from tabsym.codes import csr
from tabsym.encoders.onehot.column import NANS, ZEROS

MOST_NANS = 1 << 22
"""NaN entries that a sparse matrix may hold in any case: 50 MB."""
NANS_PER_ONE = 16
"""NaN entries for each entry that the matrix has without them, above which it is refused."""
_TILE = 1 << 18  # entries that are written at once


@dataclass(frozen=True)
class Ones:
    """The columns of one category: the place of each row's one (n,) among `width`, ZEROS or NANS."""

    name: str
    places: NDArray[np.int32]
    width: int

    def keep(self, kept: list[int]) -> Ones:
        """With these output columns only."""
        if len(kept) == self.width:
            return self
        renumber = np.full(self.width + 2, ZEROS, dtype=np.int32)
        renumber[kept] = np.arange(len(kept))
        renumber[NANS] = NANS
        return Ones(self.name, renumber[self.places], len(kept))

    def sizes(self) -> NDArray[np.int64]:
        """Entries in each row (n,)."""
        return np.where(self.places == NANS, self.width, self.places >= 0)


def dense_columns(ones: Ones, dtype: DTypeLike) -> list[NDArray[np.generic]]:
    """The output columns (n,), one by one."""
    block = np.zeros((ones.width, len(ones.places)), dtype=dtype)
    rows = np.flatnonzero(ones.places >= 0)
    block[ones.places[rows], rows] = 1
    empty = np.flatnonzero(ones.places == NANS)
    if len(empty):
        block[:, empty] = np.nan
    return list(block)


def sparse_matrix(blocks: list[Ones | sparse.csr_array], n_rows: int, dtype: DTypeLike) -> sparse.csr_array:
    """All columns side by side; blocks that are matrices have one column, of numbers.

    Raises
    ------
    ValueError
        Where rows of NaN have more entries than `MOST_NANS`, and than `NANS_PER_ONE` times all others.
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
    rows = np.flatnonzero(ones.places >= 0)
    indices[at[rows]] = first + ones.places[rows]
    across = np.arange(ones.width)
    empty, step = np.flatnonzero(ones.places == NANS), max(_TILE // max(ones.width, 1), 1)
    for start in range(0, len(empty), step):
        entries = at[empty[start : start + step], None] + across
        indices[entries], data[entries] = first + across, np.nan


def _refuse_nans(blocks: list[Ones], n_rows: int) -> None:
    numbers = [int((block.places == NANS).sum()) * block.width for block in blocks]
    if sum(numbers) <= max(MOST_NANS, NANS_PER_ONE * n_rows * len(blocks)):
        return
    worst = int(np.argmax(numbers))
    block = blocks[worst]
    raise ValueError(
        f"Rows of NaN would take {sum(numbers):,} entries of the sparse matrix, {numbers[worst]:,} of them in column "
        f"{block.name!r} ({numbers[worst] // block.width:,} rows, {block.width:,} output columns); set handle_unknown "
        "and handle_missing to 'value' or 'indicator', which take one entry a row at most."
    )
