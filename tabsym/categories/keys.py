"""A number for each category that its text determines: the same in every process and dataframe."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray


def keys_of(symbols: Iterable[Any]) -> NDArray[np.uint64]:
    """The number (q,) of each."""
    texts = [_text(symbol) for symbol in symbols]
    try:
        return np.asarray(pd.util.hash_array(np.array(texts, dtype=object), categorize=False))
    except UnicodeEncodeError:  # halves of surrogate pairs
        plain = [text.encode("utf-8", "surrogatepass").decode("latin-1") for text in texts]
        return np.asarray(pd.util.hash_array(np.array(plain, dtype=object), categorize=False))


def _text(symbol: Any) -> str:
    if isinstance(symbol, float) and symbol.is_integer():
        return str(int(symbol))  # as the same number of a column of integers
    return str(symbol)
