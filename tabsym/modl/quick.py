"""Quick cuts of the same blocks by one set of classes after another: good models in a fraction of a millisecond.

What depends on the sizes of the blocks alone is made once: the grids of quantiles and their priors. One call of a
kernel then cuts at all grids.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabsym.modl import kernels_cuts as kernels
from tabsym.modl.criterion import interval_prior, max_granularity, null_prior, parts_cost
from tabsym.modl.cuts import Best, ln_constant
from tabsym.modl.partition import Partition, Quantiles, Settings, labels_of

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

QUICK_GRID = 9
"""Quick searches cut on the grid of 2**9 quantiles: time for how near they come."""


@dataclass(frozen=True)
class CutGrids:
    """Where blocks can be cut, and what numbers of parts cost.

    `boundaries` (G, B), of which each grid has `n_ends` (G,); `priors` (G, P) of 1, 2, ... parts; `descends` (G,):
    whether there are to be more parts than two.
    """

    boundaries: Indices
    n_ends: Indices
    priors: Floats
    descends: NDArray[np.bool_]
    granularities: list[int]

    @staticmethod
    def of_one(boundaries: Indices, prior: Floats) -> CutGrids:
        """The only grid."""
        one = np.ones(1, dtype=np.bool_)
        return CutGrids(boundaries[None, :], np.array([len(boundaries)]), prior[None, :], one, [0])

    def cut(self, counts: Floats, table: Floats, *, min_rows: float = 1.0, of_target: bool = False) -> Best:
        """The best partition of two parts or more that is found of blocks with these class counts (B, J)."""
        n_blocks, n_classes = counts.shape
        sums = np.zeros((n_blocks + 1, n_classes), dtype=np.int64 if len(table) else np.float64)
        np.cumsum(counts, axis=0, out=sums[1:], dtype=sums.dtype)
        ends = np.zeros(n_blocks, dtype=np.int64)
        n = self.boundaries.shape[1] + 1
        cost, grid, n_parts = kernels.cut_grids(
            sums, table, 0 if of_target else n_classes - 1, 0.0 if of_target else ln_constant(n_classes), min_rows,
            self.boundaries, self.n_ends, self.descends, self.priors, np.empty((n, n_classes), sums.dtype),
            np.empty(n, sums.dtype), np.empty((3, n)), np.empty((2, n), np.int64), ends,
        )  # fmt: skip
        return Best(cost, ends[:n_parts] if n_parts else np.array([n_blocks]), self.granularities[grid])


class QuickIntervals:
    """Good intervals of blocks of these sizes (B,), without a bound, on grids of up to 512 quantiles."""

    def __init__(self, quantiles: Quantiles, settings: Settings) -> None:
        self.settings = settings
        self.n_rows = float(quantiles.sizes[-1])
        last = max_granularity(self.n_rows)
        grids = [(0, QUICK_GRID), (0, last)] if settings.criterion == "page" else [(g, g) for g in range(1, last + 1)]
        distinct: list[tuple[int, int]] = []
        for granularity, grid in grids:  # all of few blocks are the same grid from some granularity on
            if not distinct or len(quantiles.boundaries(grid)) > len(quantiles.boundaries(distinct[-1][1])):
                distinct.append((granularity, grid))
        ends = [quantiles.boundaries(grid) for _, grid in distinct]
        n_blocks = len(quantiles.sizes) - 1
        shape = len(distinct), min(n_blocks, settings.max_parts or n_blocks, 2**QUICK_GRID)
        boundaries, priors = np.zeros((len(distinct), n_blocks), dtype=np.int64), np.full(shape, np.inf)
        for place, (granularity, _) in enumerate(distinct):
            boundaries[place, : len(ends[place])] = ends[place]
            prior = interval_prior(
                settings.criterion, min(len(ends[place]), shape[1]), n_rows=self.n_rows,
                n_candidates=settings.n_candidates, granularity=granularity,
            )  # fmt: skip
            priors[place, 1 : len(prior)] = prior[1:]  # one part is not asked for
        self.grids = CutGrids(
            boundaries, np.array([len(one) for one in ends]), priors,
            np.array([grid <= QUICK_GRID for _, grid in distinct]), [granularity for granularity, _ in distinct],
        )  # fmt: skip

    def partition(self, counts: Floats, table: Floats) -> Partition:
        """Two or more intervals for these class counts (B, J); infinitely dear where there are none."""
        best = self.grids.cut(counts, table, min_rows=float(self.settings.min_part_count))
        starts = np.concatenate([[0], best.ends[:-1]])
        prior = null_prior(self.settings.criterion, n_rows=self.n_rows)
        return Partition(
            criterion=self.settings.criterion,
            labels=labels_of(best.ends, len(counts)),
            counts=np.add.reduceat(counts, starts, axis=0),
            cost=best.cost,
            null_cost=prior + parts_cost(counts.sum(axis=0)[None, :]),
            lower_bound=-np.inf,
            granularity=best.granularity,
        )
