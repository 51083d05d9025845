"""The population stability index: how the rows of two samples spread over the parts of columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.categories import UNSEEN
from tabsym.encoders.lookups import MISSING
from tabsym.validation import check_option

_EMPTY = 0.5  # rows that a part without rows counts as


@dataclass(frozen=True)
class Sample:
    """The part of each row (n,) by column, negative where it is NaN; and the weights (n,) of the rows."""

    parts: Mapping[str, NDArray[Any]]
    weight: NDArray[np.float64] | None = None

    def rows(self, column: str, n: int) -> NDArray[np.float64]:
        """Rows of each part, then of missing values and unknown categories that are encoded as NaN; weights have a
        mean of 1 among those above 0."""
        parts = self.parts[column]
        places = np.where(parts == MISSING, n, np.where(parts == UNSEEN, n + 1, parts)).astype(np.int64)
        weight = None if self.weight is None else self.weight / self.weight[self.weight > 0].mean()
        return np.bincount(places, weight, minlength=n + 2).astype(np.float64)


def stability_table(labels: Mapping[str, list[str]], before: Sample, after: Sample, by: str) -> pd.DataFrame:
    """The index by column or by part."""
    check_option("by", by, ("column", "part"))
    for sample in (before, after):
        if any(not len(parts) for parts in sample.parts.values()):
            raise ValueError("psi needs rows in both samples, and one has none.")
    found = [_of_column(name, own, before, after) for name, own in labels.items()]
    head = pd.DataFrame({"column": pd.Series(dtype=str), "part": [], "expected": [], "actual": [], "psi": []})
    table = pd.concat(found, ignore_index=True) if found else head
    if by == "part":
        return table
    total = table.groupby("column", sort=False)["psi"].sum().sort_values(ascending=False, kind="stable")
    return total.reset_index()


def _of_column(name: str, labels: list[str], before: Sample, after: Sample) -> pd.DataFrame:
    rows = [sample.rows(name, len(labels)) for sample in (before, after)]
    either = (rows[0] > 0) | (rows[1] > 0)
    expected, actual = (np.where(either & (one == 0), _EMPTY, one) / one.sum() for one in rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        psi = np.where(either, (actual - expected) * np.log(actual / expected), 0.0)
    names = [*labels, "(missing)", "(unknown)"]
    table = pd.DataFrame({"column": name, "part": names, "expected": expected, "actual": actual, "psi": psi})
    return table[either | (np.arange(len(names)) < len(labels))]
