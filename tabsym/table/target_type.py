"""Whether a target holds classes or a quantity: one rule for every encoder that has to choose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

TARGET_TYPES = ("auto", "classes", "continuous")
MOST_CLASSES = 100
"""Numeric targets with more distinct values are continuous, for target_type="auto"."""


def holds_classes(values: NDArray[Any], target_type: str) -> bool:
    """Whether a checked target (n,) holds classes, by `target_type`.

    "auto": text and booleans are classes; numbers are, unless one has a fraction or there are more than
    `MOST_CLASSES` of them.
    """
    if target_type != "auto":
        return target_type == "classes"
    if values.dtype == object and pd.api.types.infer_dtype(values) in ("floating", "mixed-integer-float", "decimal"):
        values = values.astype(np.float64)
    if values.dtype.kind in "OUSb":
        return True
    if values.dtype.kind == "f" and (values != np.floor(values)).any():
        return False
    return len(pd.unique(values)) <= MOST_CLASSES
