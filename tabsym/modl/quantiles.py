"""Grids of quantiles: the boundaries between blocks where cuts may lie at a granularity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

COARSE_GRID = 11
"""A first look at very many blocks is on the grid of 2**11 quantiles: time for how near it comes."""
TIE = 1e-11
"""Of all rows: boundaries of fractional weights that are as near to a quantile but for so much are equally near."""


def quantile_boundaries(sizes: Floats, granularity: int, among: Places | None = None) -> Places:
    """Boundaries nearest to the 2**granularity quantiles; the last boundary is always one.

    `sizes` (B + 1,): rows before each boundary; `among`: the boundaries to choose from, all if None.
    """
    boundaries = np.arange(1, len(sizes)) if among is None else among
    places, total = sizes[boundaries], float(sizes[-1])
    cells = 2**granularity
    if cells >= total or len(boundaries) == 1:
        return boundaries
    which = np.arange(1, cells) if cells <= 8 * len(places) else _next_to(places, cells, total)
    targets = total * which / cells
    above = np.minimum(np.searchsorted(places, targets), len(places) - 1)
    below = np.maximum(above - 1, 0)
    up, down = places[above] - targets, targets - places[below]
    hair = 0.0 if (places == np.floor(places)).all() else TIE * total  # fractions do not add up to the last digit
    tied = np.abs(down - up) <= hair
    nearer = np.where(np.where(tied, targets <= total / 2 + hair, down < up), below, above)
    nearer = np.where(above == 0, 0, nearer)
    nearer = np.append(nearer, len(boundaries) - 1)  # ascending
    return np.asarray(boundaries[nearer[np.append(nearer[1:] != nearer[:-1], True)]])


def _next_to(places: Floats, cells: int, total: float) -> Floats:
    """Of very many quantiles those next to a boundary: no boundary is nearest to others only."""
    below = np.floor(places * (cells / total))
    return np.unique(np.clip(below[:, None] + np.arange(-1, 3)[None, :], 1, cells - 1))


def ends_of_equal_parts(sizes: NDArray[np.number], n: int) -> Places:
    """The boundaries at or above n - 1 equally spaced quantiles, and the last, of blocks of these sizes (B,)."""
    before = np.cumsum(sizes)
    wanted = before[-1] * np.arange(1, n) / n
    return np.unique(np.append(np.searchsorted(before, wanted) + 1, len(sizes)))
