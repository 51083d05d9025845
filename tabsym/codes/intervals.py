"""Which interval a number lies in."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tabsym.codes.kernels import find_intervals

Floats = NDArray[np.float64]
Stairs = tuple[Floats, Floats]

LEAST_WIDTH = 16
"""Of a flight: the processor compares so many numbers in a few steps."""


def stairs(bounds: Floats) -> Stairs:
    """Ascending bounds in flights of one width, the last filled up with infinity; and the last of each flight but it.

    With as many flights as a flight is wide, a number is compared with few of them.
    """
    width = LEAST_WIDTH * math.ceil(math.sqrt(max(len(bounds), 1)) / LEAST_WIDTH)
    steps = np.full(width * (len(bounds) // width + 1), np.inf)
    steps[: len(bounds)] = bounds
    return steps, steps[width - 1 : -width : width].copy()


def interval_codes(climbed: Stairs, values: Floats, *, missing: int, first: int = 0) -> NDArray[np.int32]:
    """Codes (n,) of the right-closed intervals of values, from `first` on; NaN is `missing`.

    `climbed`: the `stairs` of the upper bounds of all intervals but the last.
    """
    codes = np.empty(len(values), dtype=np.int32)
    find_intervals(values, *climbed, first, missing, codes)
    return codes
