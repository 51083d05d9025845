"""The population stability index: how the rows of two samples spread over the parts of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.categories import UNSEEN
from tabsym.encoders.lookups import MISSING
from tabsym.validation import check_option

_EMPTY = 0.5  # rows that a part without rows counts as


def stability_table(
    labels: Mapping[str, list[str]], before: Mapping[str, NDArray[Any]], after: Mapping[str, NDArray[Any]], by: str
) -> pd.DataFrame:
    """The index by column or by part, from the part of each row of both samples; negative where it is NaN."""
    check_option("by", by, ("column", "part"))
    for sample in (before, after):
        if any(not len(parts) for parts in sample.values()):
            raise ValueError("psi needs rows in both samples, and one has none.")
    found = [_of_column(name, own, before[name], after[name]) for name, own in labels.items()]
    head = pd.DataFrame({"column": pd.Series(dtype=str), "part": [], "expected": [], "actual": [], "psi": []})
    table = pd.concat(found, ignore_index=True) if found else head
    if by == "part":
        return table
    total = table.groupby("column", sort=False)["psi"].sum().sort_values(ascending=False, kind="stable")
    return total.reset_index()


def _of_column(name: str, labels: list[str], before: NDArray[Any], after: NDArray[Any]) -> pd.DataFrame:
    rows = [_rows(parts, len(labels)) for parts in (before, after)]
    either = (rows[0] > 0) | (rows[1] > 0)
    expected, actual = (np.where(either & (one == 0), _EMPTY, one) / one.sum() for one in rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        psi = np.where(either, (actual - expected) * np.log(actual / expected), 0.0)
    names = [*labels, "(missing)", "(unknown)"]
    table = pd.DataFrame({"column": name, "part": names, "expected": expected, "actual": actual, "psi": psi})
    return table[either | (np.arange(len(names)) < len(labels))]


def _rows(parts: NDArray[Any], n: int) -> NDArray[np.float64]:
    """Rows of each part, then of missing values and unknown categories that are encoded as NaN."""
    places = np.where(parts == MISSING, n, np.where(parts == UNSEEN, n + 1, parts))
    return np.bincount(places.astype(np.int64), minlength=n + 2).astype(np.float64)
