"""Blocks in a row that are cut into parts: from where the parts end to the part of each block, and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]


def labels_of(ends: Places, n: int) -> Places:
    """The part of each of n blocks (n,), of parts that end there."""
    return np.searchsorted(ends, np.arange(n), side="right")


def ends_of(labels: Places) -> Places:
    """Where parts end (I,): the block after the last of each, from the part of each block, ascending."""
    return np.append(np.flatnonzero(np.diff(labels)) + 1, len(labels)).astype(np.int64)
