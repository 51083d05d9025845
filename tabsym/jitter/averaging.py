"""Means and spreads of what a model says of a row with each of its donors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.jitter.mixture import Tile

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """Weighted means (r, ...) and standard deviations (r, ...)."""

    mean: Floats
    std: Floats


def averaged(tiles: Iterable[Tile], ask: Callable[[Any, Any], Any], n_rows: int) -> Spread:
    """Moments of what is answered, of rows in order; `ask` takes the rows of a tile and their donors.

    Sums are of differences to a row's first answer, so that equal answers have no spread at all.
    """
    first: Floats | None = None
    known = 0
    for rows, symbols, weights in tiles:
        values = np.asarray(ask(rows, symbols), dtype=np.float64)
        if first is None:
            first, sums, squares = (np.zeros((n_rows, *values.shape[1:])) for _ in range(3))
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        fresh = starts[rows[starts] >= known]
        first[rows[fresh]] = values[fresh]
        known = int(rows[-1]) + 1
        away = values - first[rows]
        weighed = weights.reshape(-1, *[1] * (values.ndim - 1)) * away
        sums[rows[starts]] += np.add.reduceat(weighed, starts, axis=0)
        squares[rows[starts]] += np.add.reduceat(weighed * away, starts, axis=0)
    if first is None:
        return Spread(np.zeros(n_rows), np.zeros(n_rows))
    return Spread(first + sums, np.sqrt(np.maximum(squares - sums**2, 0.0)))
