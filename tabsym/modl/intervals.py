"""Optimal discretization: ordered blocks of class counts into intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tabsym.modl import kernels_ordered as kernels
from tabsym.modl.criterion import interval_prior, most_granularity, null_prior, parts_cost
from tabsym.modl.ends import labels_of
from tabsym.modl.hull import Best, Bounds
from tabsym.modl.monotone import MONOTONE_GRID, MonotonePasses
from tabsym.modl.partition import Partition
from tabsym.modl.quantiles import quantile_boundaries
from tabsym.modl.search import Task, deadline_of, descend_cuts, exact_cuts, make_task, take_one_cut

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

MOST_EXACT = 4096
"""Up to this many blocks the optimum is certified; beyond, only if `time_limit` gives the time."""
MOST_COUNTS = 8 * MOST_EXACT**2
"""Blocks squared times classes: of more classes the optimum is certified for fewer blocks, for as much work."""
COARSE = 11
"""Larger columns are first cut on the grid of 2**COARSE quantiles (of many classes on a coarser one), then each cut
finds its exact place."""
QUICK_GRID = 9
_IDLE = 3  # granularities without a better model, after which a search without a proof ends
_NEAR = 64  # places of a finer grid that a cut found on the coarser one may move by


def discretize(
    counts: Floats,
    *,
    criterion: str = "khiops",
    n_candidates: int = 1,
    max_parts: int | None = None,
    min_part_count: float = 1,
    monotonic: bool = False,
    time_limit: float | None = None,
    value: Floats | None = None,
    quick: bool = False,
    least_parts: int = 1,
    prove: bool = True,
) -> Partition:
    """The intervals of least cost, with a lower bound on what any intervals cost.

    Parameters
    ----------
    counts : (B, J)
        Rows of each class at each distinct value, in ascending order.
    criterion : {"khiops", "page"}
    n_candidates : int
        Columns among which this one is a candidate; enters "khiops" only.
    max_parts : int or None
        At most so many intervals.
    min_part_count : float
        At least so many rows in an interval.
    monotonic : bool
        Whether the share of the second of two classes must rise, or fall, from interval to interval.
    time_limit : float or None
        Seconds. None: the optimum is certified up to 4,096 blocks, and approached beyond. A number: the
        search goes on towards a certificate for any number of blocks, and returns the best by then.
    value : (B,) or None
        What `monotonic` is about, summed at each distinct value: a regression's target. None: the second class.
    quick : bool
        A good model on a grid of 512 quantiles, without a bound.
    least_parts : {1, 2}
        2: the best of two intervals or more, even if one costs less; infinitely dear where there are none.

    prove : bool
        False: without a bound, and without the searches that only a proof needs. The parts are the same but for numbers
        of parts to which no price leads.

    Returns
    -------
    Partition
    """
    counts = np.asarray(counts, dtype=np.float64)
    task = make_task(counts, float(min_part_count), deadline_of(time_limit))
    if monotonic:
        task = replace(task, value=task.cumulative[1] if value is None else np.concatenate([[0.0], np.cumsum(value)]))
    n_rows = float(task.sizes[-1])
    null = null_prior(criterion, n_rows=n_rows) + parts_cost(counts.sum(axis=0)[None, :])
    best = Best(null if least_parts < 2 else np.inf, np.array([task.n_blocks], dtype=np.int64))
    search = _Search(task, criterion, n_candidates, max_parts, best, n_rows, least_parts, prove)
    if least_parts > 1 and not monotonic:
        search.take_one_cut()
    if quick:
        lower = search.quick()
    elif monotonic:
        lower = search.monotone()
    elif criterion == "page":
        lower = search.page(time_limit is not None)
    else:
        lower = search.khiops(time_limit is not None)
    lower = min(lower, best.cost)
    return Partition(
        criterion=criterion,
        labels=labels_of(best.ends, task.n_blocks),
        counts=task.part_counts(best.ends),
        cost=best.cost,
        null_cost=null,
        lower_bound=lower,
        granularity=best.tag,
    )


@dataclass
class _Search:
    """One search: the task, the criterion and the best model so far."""

    task: Task
    criterion: str
    n_candidates: int
    max_parts: int | None
    best: Best
    n_rows: float
    least_parts: int = 1
    prove: bool = True

    @property
    def most_exact(self) -> int:
        """Blocks up to which the optimum is certified."""
        return min(MOST_EXACT, math.isqrt(MOST_COUNTS // self.task.n_classes))

    @property
    def most_proved(self) -> int:
        """Blocks up to which all are looked at; without a proof so many as a first look takes."""
        return self.most_exact if self.prove else 2**self.coarse

    @property
    def coarse(self) -> int:
        """Granularity of a first look."""
        return min(COARSE, self.most_exact.bit_length() - 1)

    def prior(self, n_blocks: int, granularity: int = 0) -> Floats:
        most = n_blocks if self.max_parts is None else min(n_blocks, self.max_parts)
        prior = interval_prior(
            self.criterion, most, n_rows=self.n_rows, n_candidates=self.n_candidates, granularity=granularity
        )
        prior[: self.least_parts - 1] = np.inf
        return np.asarray(prior)

    def take_one_cut(self) -> None:
        """The best two intervals: searches by prices may find one, or many."""
        grids = self.grids() if self.criterion == "khiops" else {0: self.merged(np.arange(1, self.task.n_blocks + 1))}
        for granularity, ends in grids.items():
            prior = self.prior(len(ends), granularity)
            if len(prior) > 1:
                take_one_cut(self.task, ends, float(prior[1]), self.best, granularity)

    def quick(self) -> float:
        """A good model on a grid of 512 quantiles."""
        sizes = self.task.sizes
        if self.criterion == "page":
            ends = self.merged(quantile_boundaries(sizes, QUICK_GRID))
            descend_cuts(self.task, ends, self.prior(len(ends)), self.best, 0)
            return -np.inf
        for granularity in range(2, min(most_granularity(self.n_rows), QUICK_GRID) + 1):
            ends = self.merged(quantile_boundaries(sizes, granularity))
            descend_cuts(self.task, ends, self.prior(len(ends), granularity), self.best, granularity)
        return -np.inf

    # -- page ---------------------------------------------------------------------------------

    def page(self, insist: bool) -> float:
        """Search under "page"; the lower bound reached."""
        fine = self.merged(np.arange(1, self.task.n_blocks + 1))
        if len(fine) > self.most_proved:
            self.approach(fine, 0)
            if not insist:
                return -np.inf
        return self.exact(fine, 0, Bounds())

    # -- khiops -------------------------------------------------------------------------------

    def khiops(self, insist: bool) -> float:
        """Search every granularity; first the coarse, which find good models, then from the finest, which bound."""
        grids = self.grids()
        small = [g for g in grids if len(grids[g]) <= self.most_proved]
        for granularity in small:
            if not self.prove and self.best.tag and granularity > self.best.tag + _IDLE:
                break
            if len(grids[granularity]) <= 2**self.coarse:
                prior = self.prior(len(grids[granularity]), granularity)
                descend_cuts(self.task, grids[granularity], prior, self.best, granularity)
        large = [g for g in grids if g not in small]
        for granularity in large:
            self.slide_at(grids[granularity], granularity, _NEAR)
        if large and self.best.tag in large:
            self.approach(grids[self.best.tag], self.best.tag)
        if not self.prove:
            return -np.inf
        order = sorted(grids if insist else small, reverse=True)
        if not order:
            return self.best.cost
        lower, bounds = np.inf, Bounds()
        for granularity in order:
            lower = min(lower, self.exact(grids[granularity], granularity, bounds))
        return lower if insist or not large else -np.inf

    def grids(self) -> dict[int, Places]:
        """Boundaries where cuts may lie, by granularity, without those that no optimum needs."""
        sizes, grids = self.task.sizes, {}
        last = np.empty(0, dtype=np.int64)
        for granularity in range(1, most_granularity(self.n_rows) + 1):
            boundaries = self.merged(quantile_boundaries(sizes, granularity))
            if not np.array_equal(boundaries, last):  # else the coarser granularity says the same for less
                grids[granularity] = last = boundaries
        return grids

    # -- pieces -------------------------------------------------------------------------------

    def merged(self, boundaries: Places) -> Places:
        """Without boundaries between pure blocks of a class: no optimum cuts there, unless parts have a least size."""
        if self.task.least > 1:
            return boundaries
        pure = np.empty(len(boundaries), dtype=np.int64)
        kernels.pure_classes(self.task.cumulative, boundaries, pure)
        return boundaries[np.append((pure[1:] != pure[:-1]) | (pure[1:] < 0), True)]

    def exact(self, boundaries: Places, granularity: int, bounds: Bounds) -> float:
        """The lower bound over these boundaries; the best model is kept up to date."""
        return exact_cuts(
            self.task, boundaries, self.prior(len(boundaries), granularity), self.best, bounds, granularity
        )

    def approach(self, boundaries: Places, granularity: int) -> None:
        """A model near the optimum: exact on a coarse grid, each cut moved to its place; again around the cuts."""
        sizes = self.task.sizes
        coarse = quantile_boundaries(sizes, self.coarse, boundaries)
        prior = self.prior(len(boundaries), granularity)
        for _ in range(2):
            descend_cuts(self.task, self.merged(coarse), prior, self.best, granularity)
            self.slide_at(boundaries, granularity)
            coarse = self._around(self.best.ends, boundaries)

    def slide_at(self, boundaries: Places, granularity: int, reach: int | None = None) -> None:
        """Move the best model's cuts to their best places among these boundaries, at most `reach` places a sweep."""
        ends = self.best.ends
        if len(ends) < 2:
            return
        allowed = np.concatenate([[0], boundaries])
        moved = _nearest(ends, boundaries)
        if len(moved) != len(ends):
            return
        kernels.slide_cuts(
            self.task.cumulative,
            self.task.table,
            self.task.shift,
            allowed,
            reach or len(allowed),
            self.task.least,
            moved,
        )
        moved = np.unique(moved)
        if (np.diff(self.task.sizes[np.concatenate([[0], moved])]) < self.task.least).any():
            return
        cost = self.task.cost(moved) + float(self.prior(len(moved), granularity)[-1])
        if cost < self.best.cost:
            self.best.cost, self.best.ends, self.best.tag = cost, moved, granularity

    def _around(self, ends: Places, boundaries: Places) -> Places:
        """A coarse grid, and finer places around each cut."""
        coarse = quantile_boundaries(self.task.sizes, self.coarse - 1, boundaries)
        places = np.searchsorted(boundaries, ends[:-1])
        steps = np.unique(np.concatenate([np.arange(5), 2 ** np.arange(3, 14)]))
        windows = places[:, None] + np.concatenate([-steps, steps])[None, :]
        if windows.size > 2**self.coarse:
            windows = places[:, None] + np.arange(-1, 2)[None, :]
        windows = windows[(windows >= 0) & (windows < len(boundaries))]
        return np.unique(np.concatenate([coarse, boundaries[windows.ravel()], ends]))

    def monotone(self) -> float:
        """Search among monotone partitions, rising and falling; the lower bound, up to 2**10 boundaries."""
        grids = self.grids() if self.criterion == "khiops" else {0: self.merged(np.arange(1, self.task.n_blocks + 1))}
        lower, reduced = np.inf, False
        for rising in (True, False):
            bounds = Bounds()
            for granularity in sorted(grids, reverse=True):
                boundaries = grids[granularity]
                if len(boundaries) > 2**MONOTONE_GRID:
                    boundaries, reduced = quantile_boundaries(self.task.sizes, MONOTONE_GRID, boundaries), True
                prior = self.prior(len(boundaries), granularity)
                passes = MonotonePasses(self.task, boundaries, rising)
                bound = exact_cuts(self.task, boundaries, prior, self.best, bounds, granularity, passes)
                lower = min(lower, bound)
        return -np.inf if reduced else lower


def _nearest(ends: Places, boundaries: Places) -> Places:
    """The boundaries nearest in number to these ends, each once."""
    place = np.clip(np.searchsorted(boundaries, ends), 0, len(boundaries) - 1)
    return np.unique(boundaries[place])
