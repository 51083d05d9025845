"""Intervals whose class share or mean target only rises, or only falls."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tabsym.modl import kernels_ordered as kernels
from tabsym.modl.hull import Bounds, Found
from tabsym.modl.interval_search import IntervalSearch
from tabsym.modl.quantiles import quantile_boundaries
from tabsym.modl.search import Task, exact_cuts

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

MONOTONE_GRID = 10
"""Monotone cuts lie on the grid of 2**MONOTONE_GRID quantiles: the search holds a table over pairs of boundaries."""


def search_monotone(search: IntervalSearch) -> float:
    """Search partitions that rise, and those that fall; the lower bound, up to 2**MONOTONE_GRID boundaries."""
    lower, reduced = np.inf, False
    grids = search.grids()
    for rising in (True, False):
        bounds = Bounds()
        for granularity in sorted(grids, reverse=True):
            boundaries = grids[granularity]
            if len(boundaries) > 2**MONOTONE_GRID:
                boundaries, reduced = quantile_boundaries(search.task.sizes, MONOTONE_GRID, boundaries), True
            prior = search.prior(len(boundaries), granularity)
            passes = MonotonePasses(search.task, boundaries, rising)
            bound = exact_cuts(search.task, boundaries, prior, search.best, bounds, granularity, passes)
            lower = min(lower, bound)
    return -np.inf if reduced else lower


class MonotonePasses:
    """Priced searches as `search.Passes`, over partitions in one direction."""

    def __init__(self, task: Task, boundaries: Places, rising: bool) -> None:
        self.boundaries = boundaries
        self.task = task.at(boundaries)
        assert self.task.value is not None
        self.value = self.task.value if rising else -self.task.value
        self.ln_classes = task.ln_constant

    def solve(self, price: float) -> Found:
        """The monotone partition of least cost + price * parts."""
        task, n = self.task, self.task.n_blocks
        cost, before = np.full((n + 1, n + 1), np.inf), np.zeros((n + 1, n + 1), dtype=np.int32)
        room = np.zeros(n + 1, dtype=np.int64), np.zeros(n + 1), np.zeros(n + 1, dtype=np.int64)
        kernels.monotone_cuts(
            task.cumulative,
            self.value,
            task.table,
            task.shift,
            price - self.ln_classes,
            task.least,
            cost,
            before,
            *room,
        )
        first, last, ends = int(np.argmin(cost[:, n])), n, [n]
        total = float(cost[first, n])
        while first > 0:
            first, last = int(before[first, last]), first
            ends.append(last)
        found = np.array(ends[::-1], dtype=np.int64)
        return Found(total - price * len(found), self.boundaries[found - 1])

    def by_number(self, most: int) -> list[Found] | None:
        """Not known here."""
        return None
