"""What every search for intervals starts from: the blocks, where cuts may lie at each granularity, and the priors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabsym.modl.criterion import interval_prior, most_granularity
from tabsym.modl.hull import Best, Bounds
from tabsym.modl.quantiles import COARSE_GRID, quantile_boundaries
from tabsym.modl.search import Task, between_unlike, exact_cuts

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

MOST_EXACT = 4096
"""Up to this many blocks the optimum is certified; beyond, only if `time_limit` gives the time that it takes."""
MOST_COUNTS = 8 * MOST_EXACT**2
"""Blocks squared times classes: of more classes the optimum is certified for fewer blocks, for as much work."""


@dataclass
class IntervalSearch:
    """What is cut, under which criterion and constraints, and the best model so far."""

    task: Task
    criterion: str
    n_candidates: int
    max_parts: int | None
    least_parts: int
    prove: bool
    best: Best

    @property
    def n_rows(self) -> float:
        """Rows, or the sum of their weights."""
        return float(self.task.sizes[-1])

    @property
    def most_exact(self) -> int:
        """Blocks up to which the optimum is certified."""
        return min(MOST_EXACT, math.isqrt(MOST_COUNTS // self.task.n_classes))

    @property
    def most_looked_at(self) -> int:
        """Blocks up to which all are looked at; without a proof so many as a first look takes."""
        return self.most_exact if self.prove else 2**self.coarse_grid

    @property
    def coarse_grid(self) -> int:
        """Granularity of a first look; of many classes a coarser one."""
        return min(COARSE_GRID, self.most_exact.bit_length() - 1)

    def prior(self, n_blocks: int, granularity: int = 0) -> Floats:
        """The priors of 1, 2, ... intervals of so many blocks."""
        most = n_blocks if self.max_parts is None else min(n_blocks, self.max_parts)
        prior = interval_prior(
            self.criterion, most, n_rows=self.n_rows, n_candidates=self.n_candidates, granularity=granularity
        )
        prior[: self.least_parts - 1] = np.inf
        return np.asarray(prior)

    def grids(self) -> dict[int, Places]:
        """Boundaries where cuts may lie, by granularity, without those that no optimum needs; under "page" all."""
        if self.criterion == "page":
            return {0: self.merged(np.arange(1, self.task.n_blocks + 1))}
        sizes, grids = self.task.sizes, {}
        last = np.empty(0, dtype=np.int64)
        for granularity in range(1, most_granularity(self.n_rows) + 1):
            boundaries = self.merged(quantile_boundaries(sizes, granularity))
            if not np.array_equal(boundaries, last):  # else the coarser granularity says the same for less
                grids[granularity] = last = boundaries
        return grids

    def merged(self, boundaries: Places) -> Places:
        """Without boundaries between pure blocks of a class: no optimum cuts there, unless parts have a least size."""
        return boundaries if self.task.least > 1 else between_unlike(self.task, boundaries)

    def exact(self, boundaries: Places, granularity: int, bounds: Bounds) -> float:
        """The lower bound over these boundaries; the best model is kept up to date."""
        return exact_cuts(
            self.task, boundaries, self.prior(len(boundaries), granularity), self.best, bounds, granularity
        )
