"""What a target of whole numbers holds: the one rule of the package, for encoders and for `compare`."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_CLASSES = 20
"""More whole numbers than these are amounts."""

_CLASS_NAMES = re.compile(r"class|label|type|species|categor|cluster|segment|kind|group", re.IGNORECASE)


def kind_of_whole_numbers(numbers: NDArray[np.float64], name: str = "", rows: NDArray[np.float64] | None = None) -> str:
    """What whole numbers (n,) of a target are taken for: "classes", "counts", "ratings" or "amounts".

    Two values are classes, more than `MAX_CLASSES` amounts. Between these: counts where they start at 0 and become
    ever rarer, ratings where four or more in a row rise and fall in frequency once; else, or where the name of the
    target is one of classes ("type", "label"), classes. `rows` (n,): of each number, where they were counted.
    """
    values = np.unique(numbers)
    if len(values) <= 2:
        return "classes"
    if len(values) > MAX_CLASSES:
        return "amounts"
    low, high = int(values[0]), int(values[-1])
    if _CLASS_NAMES.search(name):
        return "classes"
    times = np.bincount((numbers - low).astype(np.int64), rows) if high - low < 10 * MAX_CLASSES else np.zeros(0)
    if _like_counts(low, times):
        return "counts"
    return "ratings" if _like_ratings(times) else "classes"


def _like_counts(low: int, times: NDArray[Any]) -> bool:
    """From 0 on, most often 0 or 1, and ever rarer; three values only where each is at most half as frequent."""
    if low != 0 or len(times) < 3:
        return False
    top = int(np.argmax(times))
    falls = _steps(times[top:])
    if top > 1 or (falls > 0).any() or times[-1] > times[top] / 2:
        return False
    return len(times) > 3 or bool((times[1:] <= times[:-1] / 2).all())


def _like_ratings(times: NDArray[Any]) -> bool:
    """Four or more values in a row whose frequencies rise and fall once at most: codes of classes go up and down."""
    if len(times) < 4 or not times.all():
        return False
    steps = _steps(times)
    steps = steps[steps != 0]
    return len(steps) > 0 and int((steps[1:] != steps[:-1]).sum()) <= 1


def _steps(times: NDArray[Any]) -> NDArray[np.float64]:
    """Whether each frequency is above (1) or below (-1) the one before, or within two standard errors of it (0)."""
    change = np.diff(times).astype(np.float64)
    return np.sign(change) * (np.abs(change) > 2 * np.sqrt(times[1:] + times[:-1]))
