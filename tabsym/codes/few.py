"""A few rows: a dictionary, where the hash tables of the libraries take longer to set up than to use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.table.read import is_missing

FEW = 64
"""So many rows or symbols are looked up one by one."""


def number_values(values: list[Any]) -> tuple[list[int], list[Any]]:
    """Codes of values in order of first appearance, -1 for missing, and the distinct values.

    Raises
    ------
    TypeError
        Where a value cannot be hashed.
    """
    place: dict[Any, int] = {}
    codes = [
        -1 if type(value) is not str and is_missing(value) else place.setdefault(value, len(place)) for value in values
    ]
    return codes, list(place)


def number_categories(codes: list[int]) -> tuple[list[int], list[int]]:
    """Codes renumbered among those that occur, in their own order, and the codes that occur; below 0 is missing."""
    used = sorted({code for code in codes if code >= 0})
    place = {code: number for number, code in enumerate(used)}
    return [place.get(code, -1) for code in codes], used


def plain_symbols(symbols: Any) -> NDArray[Any]:
    """Plain Python values in an object array: no pandas, no numpy scalars in fitted state, and no -0.0."""
    values = symbols if isinstance(symbols, list) else symbols.tolist()
    if values and type(values[0]) is not str:
        values = [_plain(value) for value in values]
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _plain(value: Any) -> Any:
    if isinstance(value, (np.bool_, np.integer, np.floating, np.str_, np.bytes_)) and not isinstance(
        value, np.timedelta64
    ):
        value = value.item()
    return 0.0 if type(value) is float and value == 0 else value  # -0.0 equals it, and is written otherwise
