"""The cost of a given partition or grid, whoever made it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from tabsym.modl.criterion import (
    GARBAGE_FROM,
    garbage_priors,
    group_prior,
    interval_prior,
    ln_universal,
    max_granularity,
    null_prior,
    parts_cost,
)
from tabsym.modl.grouping import GroupingUnits, sum_by, units_by_granularity
from tabsym.modl.partition import quantile_boundaries

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


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
    if granularity is None:
        return intervals_and_granularity(counts, ends, criterion, n_candidates)[0]
    table, positions = np.asarray(counts, dtype=np.float64), np.asarray(ends, dtype=np.int64)
    return _cost_of_intervals(table, positions, criterion, n_candidates, granularity)


def intervals_and_granularity(
    counts: ArrayLike, ends: Sequence[int] | Indices, criterion: str, n_candidates: int
) -> tuple[float, int]:
    """The cost as `interval_cost` has it, and Khiops' granularity where it is least (0 under "page")."""
    table, positions = np.asarray(counts, dtype=np.float64), np.asarray(ends, dtype=np.int64)
    granularity = 0
    if criterion == "khiops" and len(positions) > 1:
        sizes = np.concatenate([[0.0], np.cumsum(table.sum(axis=1))])
        finest = max_granularity(float(table.sum()))
        on_grid = (g for g in range(1, finest) if np.isin(positions, quantile_boundaries(sizes, g)).all())
        granularity = next(on_grid, finest)  # the prior rises with the granularity
    return _cost_of_intervals(table, positions, criterion, n_candidates, granularity), granularity


def _cost_of_intervals(table: Floats, ends: Indices, criterion: str, n_candidates: int, granularity: int) -> float:
    of_parts = parts_cost(np.add.reduceat(table, np.append(0, ends[:-1]), axis=0))
    known: dict[str, Any] = {"n_rows": float(table.sum()), "n_candidates": n_candidates, "granularity": granularity}
    if len(ends) == 1:
        return of_parts + null_prior(criterion, n_rows=known["n_rows"])
    return of_parts + float(interval_prior(criterion, len(ends), **known)[-1])


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
    if granularity is None:
        return groups_and_granularity(counts, labels, criterion, n_candidates)[0]
    table, groups, n = _grouped(counts, labels)
    left = len(table) if n_modalities is None else n_modalities
    known: dict[str, Any] = {"n_rows": float(table.sum()), "n_candidates": n_candidates, "granularity": granularity}
    of_parts = parts_cost(sum_by(groups, table, n))
    if n == 1:
        return of_parts + null_prior(criterion, n_rows=known["n_rows"], n_modalities=len(table))
    return of_parts + float(group_prior(criterion, n, n_modalities=left, **known)[-1])


def groups_and_granularity(
    counts: ArrayLike, labels: Sequence[int] | Indices, criterion: str, n_candidates: int
) -> tuple[float, int]:
    """The cost as `grouping_cost` has it, and Khiops' granularity where it is least (0 under "page")."""
    table, groups, n = _grouped(counts, labels)
    n_rows = float(table.sum())
    of_parts = parts_cost(sum_by(groups, table, n))
    if n == 1:
        return of_parts + null_prior(criterion, n_rows=n_rows, n_modalities=len(table)), 0
    known: dict[str, Any] = {"n_rows": n_rows, "n_candidates": n_candidates}
    if criterion == "page":
        return of_parts + float(group_prior(criterion, n, n_modalities=len(table), **known)[-1]), 0
    best, granularity = np.inf, 0
    for units in units_by_granularity(table):
        of_unit = np.zeros(len(units), dtype=np.int64)
        of_unit[units.labels] = groups
        if not np.array_equal(of_unit[units.labels], groups):
            continue  # the catch-all would be torn apart
        prior = _prior_of_groups(of_unit, n, units, known)
        if prior < best:
            best, granularity = prior, units.granularity
    return of_parts + best, granularity


def _prior_of_groups(of_unit: Indices, n: int, units: GroupingUnits, known: dict[str, Any]) -> float:
    """Khiops' prior of n groups of these units, with the largest as garbage group or without one."""
    left, best = units.n_modalities, np.inf
    if n <= left:
        best = float(group_prior("khiops", n, n_modalities=left, granularity=units.granularity, **known)[-1])
    if n >= 3 and left >= GARBAGE_FROM:
        largest = int(np.bincount(of_unit).max())  # the prior falls with the size of the garbage
        other = garbage_priors(n, largest, n_modalities=left, granularity=units.granularity, **known)
        best = min(best, float(other[-1]))
    return best


def _grouped(counts: ArrayLike, labels: Sequence[int] | Indices) -> tuple[Floats, Indices, int]:
    """The counts, the labels without gaps, and how many groups they are."""
    groups = np.unique(np.asarray(labels), return_inverse=True)[1].ravel()
    return np.asarray(counts, dtype=np.float64), groups, int(groups.max()) + 1


# -- grids of a column and a continuous target ------------------------------------------------------


def target_cost(criterion: str, sizes: Floats, n_rows: float) -> float:
    """What target intervals of these sizes (T,) cost beside the cells of the grid: how many, and the ranks within."""
    within = float(gammaln(sizes + 1).sum())
    if criterion == "page":
        return within + float(np.log(n_rows))
    if len(sizes) < 2:
        return np.inf
    return within + ln_universal(len(sizes) - 1, n_rows - 1)


def null_grid_cost(criterion: str, n_rows: float, n_modalities: int | None) -> float:
    """One part, one interval; `n_modalities` for categories, None for numbers."""
    prior = null_prior(criterion, n_rows=n_rows, n_modalities=n_modalities)
    return prior + float(gammaln(n_rows + 1)) + (float(np.log(n_rows)) if criterion == "page" else 0.0)
