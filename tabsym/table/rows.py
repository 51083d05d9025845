"""Rows that are no table yet: a dict, or a list of them, as services get them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd


class FromRows(pd.DataFrame):
    """A table of rows that came by name: in any order, and with more columns than needed."""

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame


def as_rows(X: Any) -> Any:
    """A table of one row from a dict, of several from a list of dicts or a dict of columns; others as they are."""
    if isinstance(X, Mapping):
        columns = all(isinstance(value, (list, tuple)) or hasattr(value, "__array__") for value in X.values())
        return FromRows(dict(X) if columns and X else [dict(X)])
    if isinstance(X, (list, tuple)) and len(X) and all(isinstance(row, Mapping) for row in X):
        return FromRows([dict(row) for row in X])
    return X
