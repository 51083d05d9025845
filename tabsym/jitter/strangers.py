"""What a model itself says of a category it has never seen, asked by a road that is safe.

XGBoost 3.1 and 3.2 take an unknown category for a neighbour in sort order without a word, so no unknown level reaches
it: behind `NativeCategories` the category is missing there anyway, and elsewhere a missing value is asked about
instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from tabsym.jitter.scores import is_native, library

Road = Literal["model", "missing"]
"""Unknown values go to the model as they are, or as missing ones."""


def road_of(model: Any) -> Road:
    """The road for a model."""
    return "model" if is_native(model) or not any(library(part) == "xgboost" for part in _parts(model)) else "missing"


def stranger(symbols: Sequence[Any], road: Road) -> Any:
    """A category that none of these is; None, a missing value, on the road of that name and where none can be made."""
    if road == "missing":
        return None
    present = [symbol for symbol in symbols if symbol is not None]
    if all(isinstance(symbol, str) for symbol in present):
        known, name = set(present), "(never seen)"
        while name in known:
            name = f"({name})"
        return name
    if all(isinstance(symbol, (int, float, np.number)) and not isinstance(symbol, bool) for symbol in present):
        return type(present[0])(max(present) + 1)
    return None


def _parts(model: Any) -> Iterator[Any]:
    yield model
    if hasattr(model, "get_params"):
        for value in model.get_params(deep=True).values():
            yield from value if isinstance(value, (list, tuple)) else (value,)
