"""Optimal discretization: ordered blocks of class counts into intervals.

Cuts lie on the grids of quantiles, one for each granularity. Those of up to some thousand blocks are searched exactly
(`cuts`); of more they are refined from coarse to fine. Monotone intervals have a search of their own.

Quick cuts of the same blocks by one set of classes after another are good models in a fraction of a millisecond: what
depends on the sizes of the blocks alone is made once, and one call of a kernel cuts at all grids.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tabsym.modl import kernels
from tabsym.modl.criterion import interval_prior, max_granularity, null_prior, parts_cost
from tabsym.modl.cuts import (
    Best,
    Bounds,
    Cuts,
    CutTask,
    PricedSearch,
    deadline_of,
    descend_cuts,
    exact_cuts,
    ln_constant,
    one_cut_costs,
    take_one_cut,
)
from tabsym.modl.partition import COARSE_GRID, Partition, Quantiles, Settings, labels_of, quantile_boundaries

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

MAX_EXACT = 4096
"""Up to this many blocks the optimum is certified; beyond, only if `time_limit` gives the time that it takes."""
MAX_COUNTS = 8 * MAX_EXACT**2
"""Blocks squared times classes: of more classes the optimum is certified for fewer blocks, for as much work."""
MONOTONE_GRID = 10
"""Monotone cuts lie on the grid of 2**MONOTONE_GRID quantiles: the search holds a table over pairs of boundaries."""
_COARSE_MONOTONE = 7
"""Without a proof monotone cuts are searched on the grid of 2**7 quantiles, then around the cuts found there: a search
takes as long as pairs of boundaries."""
_MAX_IDLE, _CHEAP = 3, 512
"""Granularities without a better model, after which a search without a proof ends: time for cost. Grids of up to
`_CHEAP` boundaries are searched in any case: where most values are equal, as in targets that are mostly 0, coarse
granularities have no place for the cuts among the others."""
_SLIDE_REACH = 64  # boundaries of a finer grid by which a cut of the coarser one may move in an iteration, to save time
_REFINEMENTS = 2  # on a coarse grid, then around the cuts found there: time for cost


def discretize(
    counts: Floats,
    settings: Settings | None = None,
    *,
    value: Floats | None = None,
    min_parts: int = 1,
    quantiles: Quantiles | None = None,
) -> Partition:
    """The intervals of least cost, with a lower bound on what any intervals cost.

    Parameters
    ----------
    counts : (B, J)
        Rows of each class at each distinct value, in ascending order.
    settings : Settings, optional
        Without `prove` the parts are the same but for numbers of parts to which no price leads, and monotone
        ones, which are near the optimum.
    value : (B,) or None
        The quantity that `monotonic` constrains, summed at each distinct value: in regression the target. None: the
        second class.
    min_parts : {1, 2}
        2: the best of two intervals or more, even if one costs less; of infinite cost where there are none.
    quantiles : Quantiles, optional
        Of these blocks, from a search before by other classes.

    Returns
    -------
    Partition
    """
    settings = Settings() if settings is None else settings
    counts = np.asarray(counts, dtype=np.float64)
    task = CutTask.of(counts, float(settings.min_part_count), deadline_of(settings.time_limit))
    if settings.monotonic:
        task = replace(task, value=task.cumulative[1] if value is None else np.concatenate([[0.0], np.cumsum(value)]))
    null = null_prior(settings.criterion, n_rows=float(task.sizes[-1])) + parts_cost(counts.sum(axis=0)[None, :])
    best = Best(null if min_parts < 2 else np.inf, np.array([task.n_blocks], dtype=np.int64))
    search = _IntervalSearch(task, settings, min_parts, best, quantiles or Quantiles(task.sizes))
    if min_parts > 1 and not settings.monotonic:
        search.take_one_cut()
    if settings.monotonic:
        lower = search.monotonic()
    elif settings.criterion == "page":
        lower = search.of_page()
    else:
        lower = search.of_khiops()
    best = search.best
    return Partition(
        criterion=settings.criterion,
        labels=labels_of(best.ends, task.n_blocks),
        counts=task.part_counts(best.ends),
        cost=best.cost,
        null_cost=null,
        lower_bound=min(lower, best.cost),
        granularity=best.granularity,
    )


@dataclass
class _IntervalSearch:
    """What is cut, under which criterion and constraints, and the best model so far; searches return lower bounds."""

    task: CutTask
    settings: Settings
    min_parts: int
    best: Best
    quantiles: Quantiles

    @property
    def n_rows(self) -> float:
        """Rows, or the sum of their weights."""
        return float(self.task.sizes[-1])

    @property
    def insists(self) -> bool:
        """Whether time is given for a proof, however many blocks there are."""
        return self.settings.time_limit is not None

    @property
    def max_exact(self) -> int:
        """Blocks up to which the optimum is certified."""
        return min(MAX_EXACT, math.isqrt(MAX_COUNTS // self.task.n_classes))

    @property
    def max_searched(self) -> int:
        """Blocks up to which all boundaries are searched; without a proof as many as a first look takes."""
        return self.max_exact if self.settings.is_thorough else 2**self.coarse_grid

    @property
    def coarse_grid(self) -> int:
        """Granularity of a first look; of many classes a coarser one."""
        return min(COARSE_GRID, self.max_exact.bit_length() - 1)

    def prior(self, n_blocks: int, granularity: int = 0) -> Floats:
        """The priors of 1, 2, ... intervals of a number of blocks."""
        prior = interval_prior(
            self.settings.criterion, min(n_blocks, self.settings.max_parts or n_blocks), n_rows=self.n_rows,
            n_candidates=self.settings.n_candidates, granularity=granularity,
        )  # fmt: skip
        if self.min_parts > 1:
            prior = prior.copy()
            prior[: self.min_parts - 1] = np.inf
        return prior

    def grids(self) -> dict[int, Indices]:
        """Boundaries where cuts may lie, by granularity, without those that no optimum needs; under "page" all."""
        if self.settings.criterion == "page":
            return {0: self.merged(np.arange(1, self.task.n_blocks + 1))}
        grids: dict[int, Indices] = {}
        last = np.empty(0, dtype=np.int64)
        for granularity in range(1, max_granularity(self.n_rows) + 1):
            boundaries = self.merged(self.quantiles.boundaries(granularity))
            if not np.array_equal(boundaries, last):  # else the coarser granularity has the same at a lower cost
                grids[granularity] = last = boundaries
        return grids

    def merged(self, boundaries: Indices) -> Indices:
        """Without boundaries between pure blocks of a class: no optimum cuts there, without a minimum size of parts."""
        return boundaries if self.task.min_rows > 1 else self.task.between_unlike(boundaries)

    # -- searches of one grid ------------------------------------------------------------------

    def descend(self, boundaries: Indices, prior: Floats, granularity: int) -> None:
        descend_cuts(self.task, boundaries, prior, self.best, granularity)

    def exact(self, boundaries: Indices, granularity: int, bounds: Bounds, search: PricedSearch | None = None) -> float:
        prior = self.prior(len(boundaries), granularity)
        return exact_cuts(self.task, boundaries, prior, self.best, bounds, granularity, search)

    def refine(self, boundaries: Indices, granularity: int) -> None:
        """A model near the optimum: exact on a coarse grid, each cut moved to its place; again around the cuts."""
        coarse = quantile_boundaries(self.task.sizes, self.coarse_grid, boundaries)
        prior = self.prior(len(boundaries), granularity)
        for _ in range(_REFINEMENTS):
            if self.settings.max_parts is None:
                self.descend(self.merged(coarse), prior, granularity)
            else:
                self.exact(self.merged(coarse), granularity, Bounds())
            self.slide(boundaries, granularity)
            coarse = self._around(self.best.ends, boundaries, self.coarse_grid)

    def slide(self, boundaries: Indices, granularity: int, reach: int | None = None) -> None:
        """Move the best model's cuts to the best of these boundaries, at most `reach` of them per iteration."""
        task, best = self.task, self.best
        if len(best.ends) < 2:
            return
        allowed = np.concatenate([[0], boundaries])
        nearest = np.clip(np.searchsorted(boundaries, best.ends), 0, len(boundaries) - 1)
        moved = np.unique(boundaries[nearest])
        if len(moved) != len(best.ends):
            return
        kernels.slide_cuts(
            task.cumulative, task.table, task.shift, allowed, reach or len(allowed), task.min_rows, moved
        )
        moved = np.unique(moved)
        if (np.diff(task.sizes[np.concatenate([[0], moved])]) < task.min_rows).any():
            return
        cost = task.cost(moved) + float(self.prior(len(moved), granularity)[-1])
        if cost < best.cost:
            best.cost, best.ends, best.granularity = cost, moved, granularity

    def _around(self, ends: Indices, boundaries: Indices, grid: int) -> Indices:
        """A grid coarser than 2**grid quantiles, and finer boundaries around each cut."""
        coarse = quantile_boundaries(self.task.sizes, grid - 1, boundaries)
        index = np.searchsorted(boundaries, ends[:-1])
        steps = np.unique(np.concatenate([np.arange(5), 2 ** np.arange(3, 14)]))
        windows = index[:, None] + np.concatenate([-steps, steps])[None, :]
        if windows.size > 2**self.coarse_grid:
            windows = index[:, None] + np.arange(-1, 2)[None, :]
        windows = windows[(windows >= 0) & (windows < len(boundaries))]
        return np.unique(np.concatenate([coarse, boundaries[windows.ravel()], ends]))

    # -- searches of all grids -----------------------------------------------------------------

    def take_one_cut(self) -> None:
        """The best two intervals: searches by prices may find one, or many."""
        costs = one_cut_costs(self.task, np.arange(1, self.task.n_blocks + 1))
        for granularity, ends in self.grids().items():
            take_one_cut(costs[ends[:-1] - 1], ends, self.prior(len(ends), granularity), self.best, granularity)

    def of_page(self) -> float:
        """Search under "page"."""
        fine = self.grids()[0]
        if len(fine) > self.max_searched:
            self.refine(fine, 0)
            if not self.insists:
                return -np.inf
        return self.exact(fine, 0, Bounds())

    def of_khiops(self) -> float:
        """Search every granularity; first the coarse, which find good models, then from the finest, which bound."""
        best, grids = self.best, self.grids()
        small = [g for g in grids if len(grids[g]) <= self.max_searched]
        for granularity in small:
            is_idle = best.granularity and granularity > best.granularity + _MAX_IDLE
            if not self.settings.is_thorough and is_idle and len(grids[granularity]) > _CHEAP:
                break
            if len(grids[granularity]) <= 2**self.coarse_grid:
                self.descend(grids[granularity], self.prior(len(grids[granularity]), granularity), granularity)
        large = [g for g in grids if g not in small]
        for granularity in large:
            self.slide(grids[granularity], granularity, _SLIDE_REACH)
        if large and best.granularity in large:
            self.refine(grids[best.granularity], best.granularity)
        if not self.settings.is_thorough:
            return -np.inf
        order = sorted(grids if self.insists else small, reverse=True)
        if not order:
            return best.cost
        bounds = Bounds()
        lower = min(self.exact(grids[granularity], granularity, bounds) for granularity in order)
        return lower if self.insists or not large else -np.inf

    def monotonic(self) -> float:
        """Search partitions that rise, those that fall, or both; the bound, up to 2**MONOTONE_GRID boundaries."""
        directions = (True, False) if self.settings.direction == 0 else (self.settings.direction > 0,)
        if not self.settings.is_thorough and self.settings.max_parts is None:
            self.best = min([self.best, *map(self._near_monotonic, directions)], key=lambda best: best.cost)
            return -np.inf
        lower, reduced = np.inf, False
        grids = self.grids()
        for rising in directions:
            bounds = Bounds()
            for granularity in sorted(grids, reverse=True):
                boundaries = grids[granularity]
                if len(boundaries) > 2**MONOTONE_GRID:
                    boundaries, reduced = quantile_boundaries(self.task.sizes, MONOTONE_GRID, boundaries), True
                search = _MonotoneSearch(self.task, boundaries, rising)
                lower = min(lower, self.exact(boundaries, granularity, bounds, search))
        return -np.inf if reduced else lower

    def _near_monotonic(self, rising: bool) -> Best:
        """A model near the optimum: from the coarsest granularity on, until finer ones do not help."""
        best = Best(self.best.cost, self.best.ends)
        for granularity, boundaries in self.grids().items():
            is_idle = best.granularity and granularity > best.granularity + _MAX_IDLE
            if is_idle and len(boundaries) > 2**_COARSE_MONOTONE:
                break
            prior = self.prior(len(boundaries), granularity)
            searched = quantile_boundaries(self.task.sizes, _COARSE_MONOTONE, boundaries)
            for _ in range(_REFINEMENTS):
                search = _MonotoneSearch(self.task, searched, rising)
                descend_cuts(self.task, searched, prior, best, granularity, search)
                if len(searched) == len(boundaries):
                    break
                searched = self._around(best.ends, boundaries, _COARSE_MONOTONE)
        return best


class _MonotoneSearch(PricedSearch):
    """Priced searches over partitions in which the class proportion or mean target only rises, or only falls."""

    def __init__(self, task: CutTask, boundaries: Indices, rising: bool) -> None:
        super().__init__(task, boundaries)
        assert self.task.value is not None
        self.value = self.task.value if rising else -self.task.value

    def solve(self, price: float) -> Cuts:
        """The monotone partition of least cost + price * parts."""
        task, n = self.task, self.task.n_blocks
        cost, before = np.full((n + 1, n + 1), np.inf), np.zeros((n + 1, n + 1), dtype=np.int32)
        room = np.zeros(n + 1, dtype=np.int64), np.zeros(n + 1), np.zeros(n + 1, dtype=np.int64)
        kernels.monotone_cuts(
            task.cumulative, self.value, task.table, task.shift, price - self.ln_classes, task.min_rows, cost, before,
            *room,
        )  # fmt: skip
        first, last, ends = int(np.argmin(cost[:, n])), n, [n]
        total = float(cost[first, n])
        while first > 0:
            first, last = int(before[first, last]), first
            ends.append(last)
        cuts = np.array(ends[::-1], dtype=np.int64)
        return Cuts(total - price * len(cuts), self.boundaries[cuts - 1])

    def by_number(self, max_parts: int) -> list[Cuts] | None:
        """Not known here."""
        return None


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
        descends = np.ones(1, dtype=np.bool_)
        return CutGrids(boundaries[None, :], np.array([len(boundaries)]), prior[None, :], descends, [0])

    def cut(self, counts: Floats, table: Floats, *, min_rows: float = 1.0, of_target: bool = False) -> Best:
        """The best partition of two parts or more that is found of blocks with these class counts (B, J)."""
        n_blocks, n_classes = counts.shape
        sums = np.empty((n_blocks + 1, n_classes), dtype=np.int64 if len(table) else np.float64)
        ends = np.zeros(n_blocks, dtype=np.int64)
        n = self.boundaries.shape[1] + 1
        cost, grid, n_parts = kernels.cut_grids(
            np.ascontiguousarray(counts), sums, table, 0 if of_target else n_classes - 1,
            0.0 if of_target else ln_constant(n_classes), min_rows, self.boundaries, self.n_ends, self.descends,
            self.priors, np.empty((n, n_classes), sums.dtype), np.empty(n, sums.dtype), np.empty((3, n)),
            np.empty((2, n), np.int64), np.empty(n_classes, np.int64), ends,
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
        for position, (granularity, _) in enumerate(distinct):
            boundaries[position, : len(ends[position])] = ends[position]
            prior = interval_prior(
                settings.criterion, min(len(ends[position]), shape[1]), n_rows=self.n_rows,
                n_candidates=settings.n_candidates, granularity=granularity,
            )  # fmt: skip
            priors[position, 1 : len(prior)] = prior[1:]  # one part is not asked for
        self.grids = CutGrids(
            boundaries, np.array([len(grid_ends) for grid_ends in ends]), priors,
            np.array([grid <= QUICK_GRID for _, grid in distinct]), [granularity for granularity, _ in distinct],
        )  # fmt: skip

    def partition(self, counts: Floats, table: Floats) -> Partition:
        """Two or more intervals for these class counts (B, J); of infinite cost where there are none."""
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
