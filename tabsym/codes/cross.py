"""Crosses: one code for each combination of symbols that occurs.

A cross of two code columns numbers the observed pairs; a cross of higher
order is a cross of a cross, so any order is a chain of pairs and
``(a, b, c)`` reuses the codes of ``(a, b)``. A pair that holds an unseen
symbol, or that never occurred, is unseen.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.codes.kernels import find_pairs, hash_keys, number_pairs


@dataclass(frozen=True)
class Cross:
    """The observed pairs of two code columns, in code order: `keys` = left * 2**32 + right."""

    keys: NDArray[np.int64]

    @classmethod
    def fit(cls, left: NDArray[np.int32], right: NDArray[np.int32]) -> tuple[Cross, NDArray[np.int32]]:
        """The cross of two code columns (n,), and its codes (n,)."""
        return cls(np.empty(0, dtype=np.int64)).grow(left, right)

    def __len__(self) -> int:
        return len(self.keys)

    def transform(self, left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.int32]:
        """Codes (n,) of pairs; UNSEEN where a pair, or a symbol in it, is not known."""
        codes = np.empty(len(left), dtype=np.int32)
        find_pairs(left, right, self.keys, *self._hashed, codes)
        return codes

    @cached_property
    def _hashed(self) -> tuple[NDArray[np.int32], np.uint64]:
        """The hash table of the keys, made once: filling it takes longer than a few rows."""
        return hash_keys(self.keys)

    def __getstate__(self) -> dict[str, Any]:
        return {"keys": self.keys}  # the table is made again

    def grow(self, left: NDArray[np.int32], right: NDArray[np.int32]) -> tuple[Cross, NDArray[np.int32]]:
        """This cross with the new pairs appended, and the codes (n,)."""
        codes, keys = number_pairs(left, right, self.keys)
        return Cross(keys), codes

    def pairs(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The left and right codes of each code of the cross."""
        return (self.keys >> 32).astype(np.int32), (self.keys & 0xFFFFFFFF).astype(np.int32)
