"""Codes that a library keeps already: categories, dictionaries. What is declared and never occurs costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.codes.few import FEW, number_categories
from tabsym.codes.kernels import mark_used

Codes = NDArray[np.signedinteger[Any]]
SymbolsAt = Callable[[Sequence[int] | NDArray[Any]], NDArray[Any]]

_SPARSE = 4  # from so many times as many codes as rows, those that occur are hashed instead of marked


def renumber_used(codes: Codes, symbols_at: SymbolsAt) -> tuple[Codes, NDArray[Any]]:
    """Codes (n,) numbered among those that occur, in category order, and the symbols of these.

    Parameters
    ----------
    codes : (n,)
        Into the declared symbols, below 0 for missing.
    symbols_at : callable
        The symbols at given codes (ascending, distinct), as an object array.

    Returns
    -------
    codes : (n,)
        The same array where every code up to the highest occurs.
    symbols : (used,)
    """
    if len(codes) <= FEW:
        numbered, used = number_categories(codes.tolist())
        return np.array(numbered, dtype=np.int32), symbols_at(used)
    size = int(codes.max()) + 1
    if size > _SPARSE * len(codes):
        return _renumber_by_hash(codes, symbols_at)
    marked = mark_used(codes, size)
    if marked.all():
        return codes, symbols_at(np.arange(size))
    renumber = np.append(np.cumsum(marked) - 1, -1).astype(np.int32)
    return renumber[codes], symbols_at(np.flatnonzero(marked))


def _renumber_by_hash(codes: Codes, symbols_at: SymbolsAt) -> tuple[Codes, NDArray[Any]]:
    place, found = pd.factorize(codes)
    order = np.argsort(found)
    order = order[found[order] >= 0]
    rank = np.full(len(found), -1, dtype=np.int32)
    rank[order] = np.arange(len(order))
    return rank[place], symbols_at(found[order])
