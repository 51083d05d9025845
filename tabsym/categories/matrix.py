"""The code matrix: what one-hot encoding would be, without the zeros.

Row i of a one-hot matrix of b blocks has b ones. The code matrix keeps their
indices, four bytes each, in row-major order: a row's codes share a cache line,
which is what online training reads. One million rows by ten columns are
40 MB; as CSR they are 160 MB, dense 8 bytes times the alphabet sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tabsym.categories.kernels import count_codes, gather_columns
from tabsym.categories.threads import in_threads

_TILE = 1 << 14
_MAX_ENTRIES = np.iinfo(np.int32).max


def row_numbers(n_rows: int) -> NDArray[np.signedinteger[Any]]:
    """0 .. n_rows - 1, in four bytes each where that is enough."""
    return np.arange(n_rows, dtype=np.int32 if n_rows <= np.iinfo(np.int32).max else np.int64)


def csr(
    data: NDArray[np.generic], indices: NDArray[np.integer], pointer: NDArray[np.integer], shape: tuple[int, int]
) -> sparse.csr_array:
    """A matrix whose indices are of 32 bits where these suffice: trees of scikit-learn take no others."""
    kind = sparse.get_index_dtype(maxval=max(len(data), *shape))
    index_arrays = (indices.astype(kind, copy=False), pointer.astype(kind, copy=False))
    return sparse.csr_array((data, *index_arrays), shape=shape)


def gather(
    columns: Sequence[NDArray[np.signedinteger[Any]]],
    starts: Sequence[int] | NDArray[np.int64],
    strides: Sequence[int],
    n_rows: int,
    order: NDArray[np.signedinteger[Any]] | None = None,
    n_jobs: int | None = None,
) -> NDArray[np.int32]:
    """Code columns (n,) side by side (n, columns), rows in `order`: ``start + stride * code``, -1 unseen."""
    if order is not None and len(order) * len(columns) > _TILE:
        # whole rows are put in order, as a row is one place in memory and its codes in the columns are many
        return np.take(gather(columns, starts, strides, n_rows, None, n_jobs), order, axis=0, mode="clip")
    rows = row_numbers(n_rows) if order is None else order
    codes = np.empty((len(rows), len(columns)), dtype=np.int32)

    def fill(first: int) -> None:  # a tile of the matrix stays in cache while its columns are written
        tile = slice(first, first + _TILE)
        for index, column in enumerate(columns):
            gather_columns(column, rows[tile], starts[index], strides[index], codes[tile], index)

    in_threads(fill, range(0, len(rows), _TILE), n_jobs)
    return codes


@dataclass(frozen=True)
class CodeMatrix:
    """`codes` (n, blocks) int32 into all entries together; -1 where unseen.

    Block j owns the entries ``offsets[j] : offsets[j + 1]``.
    """

    codes: NDArray[np.int32]
    offsets: NDArray[np.int64]

    @classmethod
    def assemble(
        cls,
        columns: Sequence[NDArray[np.int32]],
        sizes: Sequence[int],
        n_rows: int,
        order: NDArray[np.int64] | None = None,
        n_jobs: int | None = None,
    ) -> CodeMatrix:
        """Put code columns (n,) with alphabets of `sizes` together, rows in `order`."""
        offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
        if offsets[-1] > _MAX_ENTRIES:
            raise ValueError(
                f"The terms have {offsets[-1]:,} coefficients together, more than {_MAX_ENTRIES:,}; "
                "use fewer columns or interactions."
            )
        return cls(gather(columns, offsets, [1] * len(columns), n_rows, order, n_jobs), offsets)

    @property
    def n_entries(self) -> int:
        return int(self.offsets[-1])

    def counts(self) -> NDArray[np.int64]:
        """Rows that select each entry (n_entries,)."""
        return count_codes(self.codes, self.n_entries)

    def to_csr(self, dtype: type = np.float64) -> sparse.csr_array:
        """The one-hot matrix (n, n_entries), as CSR; an unseen symbol is a block of zeros."""
        present = self.codes >= 0
        pointer = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
        indices = self.codes[present]
        data: NDArray[Any] = np.ones(len(indices), dtype=dtype)
        return csr(data, indices, pointer, (len(self.codes), self.n_entries))
