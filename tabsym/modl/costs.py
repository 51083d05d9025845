"""The cost of a given partition, whoever made it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tabsym.modl.criterion import (
    GARBAGE_ABOVE,
    garbage_prior,
    group_prior,
    interval_prior,
    most_granularity,
    null_prior,
    parts_cost,
)
from tabsym.modl.intervals import quantile_boundaries
from tabsym.modl.units import sum_by, units_by_granularity


def interval_cost(
    counts: ArrayLike,
    ends: Sequence[int],
    *,
    criterion: str = "khiops",
    n_candidates: int = 1,
    granularity: int | None = None,
) -> float:
    """The cost in nats of cutting ordered blocks into these intervals.

    Parameters
    ----------
    counts : (B, J)
        Rows of each class at each distinct value, ascending.
    ends : sequence of int
        The block after the last of each interval; the last is B.
    criterion : {"khiops", "page"}
    n_candidates : int
    granularity : int or None
        Khiops' granularity; None: the least cost over those whose quantile grid has all the cuts. Where none
        has them, the finest (every cut can be told apart there).

    Returns
    -------
    float

    Examples
    --------
    >>> round(interval_cost([[6, 0], [1, 5]], [1, 2], criterion="page"), 4)
    10.7334
    """
    table = np.asarray(counts, dtype=np.float64)
    places = np.asarray(ends, dtype=np.int64)
    n_rows, n = float(table.sum()), len(places)
    parts = parts_cost(np.add.reduceat(table, np.append(0, places[:-1]), axis=0))
    if n == 1:
        return parts + null_prior(criterion, n_rows=n_rows)
    known: dict[str, Any] = {"n_rows": n_rows, "n_candidates": n_candidates}
    if criterion == "page":
        return parts + float(interval_prior(criterion, n, **known)[-1])
    if granularity is None:
        sizes = np.concatenate([[0.0], np.cumsum(table.sum(axis=1))])
        finest = most_granularity(n_rows)
        on_grid = (g for g in range(1, finest) if np.isin(places, quantile_boundaries(sizes, g)).all())
        granularity = next(on_grid, finest)  # the prior rises with the granularity
    return parts + float(interval_prior(criterion, n, granularity=granularity, **known)[-1])


def grouping_cost(
    counts: ArrayLike,
    labels: Sequence[int],
    *,
    criterion: str = "khiops",
    n_candidates: int = 1,
    granularity: int | None = None,
    n_modalities: int | None = None,
) -> float:
    """The cost in nats of these groups of modalities.

    Parameters
    ----------
    counts : (M, J)
        Rows of each class with each modality.
    labels : sequence of int
        The group of each modality.
    criterion, n_candidates
        As in `interval_cost`.
    granularity, n_modalities : int or None
        Khiops' granularity, and how many modalities there are left at it. None: the least cost over the
        granularities that catch together only modalities of one group, and over garbage groups.

    Returns
    -------
    float

    Examples
    --------
    >>> round(grouping_cost([[6, 0], [1, 5], [2, 9]], [0, 1, 1], criterion="page"), 4)
    13.8433
    """
    table = np.asarray(counts, dtype=np.float64)
    groups = np.unique(np.asarray(labels), return_inverse=True)[1].ravel()
    n, n_rows = int(groups.max()) + 1, float(table.sum())
    parts = parts_cost(sum_by(groups, table, n))
    if n == 1:
        return parts + null_prior(criterion, n_rows=n_rows, n_modalities=len(table))
    known: dict[str, Any] = {"n_rows": n_rows, "n_candidates": n_candidates}
    if criterion == "page":
        return parts + float(group_prior(criterion, n, n_modalities=len(table), **known)[-1])
    if granularity is not None:
        left = len(table) if n_modalities is None else n_modalities
        return parts + float(group_prior(criterion, n, n_modalities=left, granularity=granularity, **known)[-1])
    best = np.inf
    for units in units_by_granularity(table):
        of_unit = np.zeros(len(units), dtype=np.int64)
        of_unit[units.labels] = groups
        if not np.array_equal(of_unit[units.labels], groups):
            continue  # the catch-all would be torn apart
        left = units.n_modalities
        if n <= left:
            prior = group_prior(criterion, n, n_modalities=left, granularity=units.granularity, **known)
            best = min(best, float(prior[-1]))
        if n >= 3 and left > GARBAGE_ABOVE:
            largest = int(np.bincount(of_unit).max())  # the prior falls with the size of the garbage
            other = garbage_prior(n, largest, n_modalities=left, granularity=units.granularity, **known)
            best = min(best, other)
    return parts + best
