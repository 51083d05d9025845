"""Intervals of large columns near the optimum: coarse cuts, each moved to its place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tabsym.modl import kernels_ordered as kernels
from tabsym.modl.interval_search import IntervalSearch
from tabsym.modl.quantiles import quantile_boundaries
from tabsym.modl.search import descend_cuts

Places = NDArray[np.int64]

_TIMES = 2  # on a coarse grid, then around the cuts found there: time for cost


def approach(search: IntervalSearch, boundaries: Places, granularity: int) -> None:
    """A model near the optimum: exact on a coarse grid, each cut moved to its place; again around the cuts."""
    coarse = quantile_boundaries(search.task.sizes, search.coarse_grid, boundaries)
    prior = search.prior(len(boundaries), granularity)
    for _ in range(_TIMES):
        descend_cuts(search.task, search.merged(coarse), prior, search.best, granularity)
        slide_at(search, boundaries, granularity)
        coarse = _around(search, search.best.ends, boundaries)


def slide_at(search: IntervalSearch, boundaries: Places, granularity: int, reach: int | None = None) -> None:
    """Move the best model's cuts to their best places among these boundaries, at most `reach` places a sweep."""
    task, best = search.task, search.best
    if len(best.ends) < 2:
        return
    allowed = np.concatenate([[0], boundaries])
    moved = _nearest(best.ends, boundaries)
    if len(moved) != len(best.ends):
        return
    kernels.slide_cuts(task.cumulative, task.table, task.shift, allowed, reach or len(allowed), task.least, moved)
    moved = np.unique(moved)
    if (np.diff(task.sizes[np.concatenate([[0], moved])]) < task.least).any():
        return
    cost = task.cost(moved) + float(search.prior(len(moved), granularity)[-1])
    if cost < best.cost:
        best.cost, best.ends, best.tag = cost, moved, granularity


def _around(search: IntervalSearch, ends: Places, boundaries: Places) -> Places:
    """A coarse grid, and finer places around each cut."""
    coarse = quantile_boundaries(search.task.sizes, search.coarse_grid - 1, boundaries)
    places = np.searchsorted(boundaries, ends[:-1])
    steps = np.unique(np.concatenate([np.arange(5), 2 ** np.arange(3, 14)]))
    windows = places[:, None] + np.concatenate([-steps, steps])[None, :]
    if windows.size > 2**search.coarse_grid:
        windows = places[:, None] + np.arange(-1, 2)[None, :]
    windows = windows[(windows >= 0) & (windows < len(boundaries))]
    return np.unique(np.concatenate([coarse, boundaries[windows.ravel()], ends]))


def _nearest(ends: Places, boundaries: Places) -> Places:
    """The boundaries nearest in number to these ends, each once."""
    place = np.clip(np.searchsorted(boundaries, ends), 0, len(boundaries) - 1)
    return np.unique(boundaries[place])
