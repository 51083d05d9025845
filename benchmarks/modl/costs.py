"""What a partition costs under a MODL criterion, from the part of each row: the same measure for every method."""

from __future__ import annotations

import numpy as np
import pandas as pd
from tables import is_numeric


def partition_cost(
    column: pd.Series, parts: np.ndarray, y: np.ndarray, n_classes: int, criterion: str, n_candidates: int = 1
) -> float:
    """The cost of one column's partition; NaN where it is none of the criterion's models.

    Parameters
    ----------
    column : Series of n rows
    parts : ndarray of shape (n,)
        The part of each row.
    y : ndarray of shape (n,)
        Class codes.
    """
    from tabsym.modl import grouping_cost, interval_cost

    values, order = _values(column)
    counts = np.zeros((order, n_classes), dtype=np.int64)
    np.add.at(counts, (values, y), 1)
    part = np.full(order, -1, dtype=np.int64)
    part[values] = parts
    if (part[values] != parts).any():
        return float("nan")  # two rows of one value in different parts
    labels = np.unique(part, return_inverse=True)[1]
    if not is_numeric(column):
        return float(grouping_cost(counts, labels, criterion=criterion, n_candidates=n_candidates))
    ends = np.append(np.flatnonzero(np.diff(labels)) + 1, order)
    if len(ends) != labels.max() + 1:
        return float("nan")  # a part with a hole, such as missing values among middle ones
    return float(interval_cost(counts, ends, criterion=criterion, n_candidates=n_candidates))


def _values(column: pd.Series) -> tuple[np.ndarray, int]:
    """The number of each row's value and how many there are; numbers in order, missing below all."""
    codes, found = pd.factorize(column, sort=is_numeric(column))
    missing = codes < 0
    if missing.any():
        codes = codes + 1
    return codes, len(found) + int(missing.any())
