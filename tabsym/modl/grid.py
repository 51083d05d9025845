"""Regression: the column and the target are cut together, as a grid.

The criterion is Khiops': the prior of the column's parts, the cost of the target's intervals within them as of
classes, R(T - 1; N - 1) for how many intervals there are, and ln N_j! for the ranks within each. Given the target's
intervals the column's parts are those of classes, and given the column's parts the target's intervals are exact cuts: a
search at one resolution of both finds either in turn. Where one side has few values, every partition of it is tried,
with the best one of the other side.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.modl import kernels
from tabsym.modl.criterion import (
    Lumps,
    groups_and_granularity,
    intervals_and_granularity,
    ln_factorials,
    lumps_by_granularity,
    null_grid_cost,
    parts_cost,
    target_cost,
    target_prior,
)
from tabsym.modl.cuts import Best, Bounds, CutTask, exact_cuts, is_cheaper, one_cut_costs, take_one_cut
from tabsym.modl.groups import MAX_SUBSETS, group, regroup
from tabsym.modl.intervals import CutGrids, QuickIntervals, discretize
from tabsym.modl.partition import (
    Partition,
    Quantiles,
    Settings,
    cheapest,
    ends_of,
    labels_of,
    quantile_boundaries,
    sum_by,
)

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
TargetGiven = Callable[[Indices], Indices]

MAX_TARGET_INTERVALS = 256
"""Numbers of target intervals that have a prior: time, for models of more intervals."""
MAX_ROUNDS = 12
"""Searches of either side in turn, or moves of cuts after them: time for cost."""
COARSE_TARGETS = 8
"""Quick searches cut targets of more than 2 * 2**7 values at this number of quantiles, then near those cuts."""
NEAR_A_COARSE_CUT = np.arange(-8, 9)
QUICK_GRANULARITIES, LEARNED_FROM = 3, 6
"""Number of granularities at which quick searches group categories, from the sixth on those that were best before."""
# partitions of the side of few values, and the searches of the other side that each asks for: time for exact grids
MAX_TARGETS_ENUMERATED, MAX_VALUES_WITH_TARGETS = 9, 64
"""Each of the 256 partitions of up to 9 distinct targets is tried, of a column of up to 64 distinct values."""
MAX_VALUES_ENUMERATED, MAX_CATEGORIES_ENUMERATED, MAX_TARGETS_WITH_VALUES = 6, 5, 1024
"""Numbers of values or of categories up to which all 31 or 51 partitions are tried, and of distinct targets."""


_NOTHING = np.empty(0)


@dataclass(frozen=True)
class GridRows:
    """Rows of a column and a regression's target, as codes.

    `source` (n,) of distinct values in order, or of modalities; `target` (n,) of distinct targets in order;
    `weight` (n,) or None.
    """

    source: NDArray[np.integer]
    target: NDArray[np.integer]
    n_sources: int
    n_targets: int
    weight: Floats | None = None

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(len(self.source) if self.weight is None else self.weight.sum())

    @cached_property
    def source_sizes(self) -> NDArray[np.number]:
        """Rows of each source."""
        return np.bincount(self.source, self.weight, minlength=self.n_sources)

    @cached_property
    def target_sizes(self) -> NDArray[np.number]:
        """Rows of each target."""
        return np.bincount(self.target, self.weight, minlength=self.n_targets)

    @cached_property
    def by_target(self) -> tuple[Indices, Indices]:
        """Where the rows of each target start, (n_targets + 1,), among the rows in the order of their targets (n,)."""
        order = np.argsort(self.target, kind="stable")
        return np.searchsorted(self.target[order], np.arange(self.n_targets + 1)), order

    def _joined(self, source: Indices | None, target: Indices | None) -> tuple[Any, Any, int, int]:
        """Codes of the source and of the target by these labels, and how many there are."""
        a = self.source if source is None else source[self.source]
        b = self.target if target is None else target[self.target]
        n_a = self.n_sources if source is None else int(source.max()) + 1
        n_b = self.n_targets if target is None else int(target.max()) + 1
        return a, b, n_a, n_b

    def table(self, source: Indices | None, target: Indices | None) -> Floats:
        """Rows by part of the source and interval of the target, whose codes have these labels (None: themselves)."""
        a, b, n_a, n_b = self._joined(source, target)
        counts = np.bincount(a.astype(np.int64) * n_b + b, self.weight, minlength=n_a * n_b)
        return np.asarray(counts.reshape(n_a, n_b), dtype=np.float64)

    def of_targets(self, source: Indices) -> Floats:
        """Rows by target and part of the source (n_targets, I): the transpose of `table`, by rows in memory."""
        a, b, n_a, n_b = self._joined(source, None)
        counts = np.bincount(b.astype(np.int64) * n_a + a, self.weight, minlength=n_b * n_a)
        return np.asarray(counts.reshape(n_b, n_a), dtype=np.float64)

    def coarser(self, source: Indices | None, target: Indices | None) -> GridRows:
        """With sources and targets joined by these labels, equal rows added up."""
        a, b, n_a, n_b = self._joined(source, target)
        if n_a * n_b > len(a):
            return GridRows(a, b, n_a, n_b, self.weight)
        total = np.bincount(a.astype(np.int64) * n_b + b, self.weight, minlength=n_a * n_b)
        cells = np.flatnonzero(total)
        return GridRows(cells // n_b, cells % n_b, n_a, n_b, total[cells].astype(np.float64))


@dataclass(frozen=True)
class Sources:
    """How the column is partitioned; `value`: sums of the target at each distinct value, for monotone intervals."""

    categorical: bool
    settings: Settings
    value: Floats | None = None

    @property
    def is_thorough(self) -> bool:
        """Whether all that a proof needs is searched; groups under `max_parts` are the same without."""
        return self.settings.prove if self.categorical else self.settings.is_thorough

    def partition(self, counts: Floats, shared: Shared, *, quick: bool, time_limit: float | None = None) -> Partition:
        """The column's two or more parts, given rows by target interval (B, T); of infinite cost if there are none."""
        settings = replace(self.settings, time_limit=time_limit)
        if self.categorical and quick:
            partition = group(counts, settings, quick=True, min_parts=2, lumps=shared.quick_lumps)
            shared.note_granularity(partition)
            return partition
        if self.categorical:
            return group(counts, settings, min_parts=2, lumps=shared.lumps)
        if quick and not settings.monotonic:
            return shared.quick_intervals.partition(counts, shared.table(counts.shape[1]))
        return discretize(counts, settings, value=self.value, min_parts=2, quantiles=shared.quantiles)

    def null_cost(self, rows: GridRows) -> float:
        """What the grid of one cell costs."""
        return null_grid_cost(self.settings.criterion, rows.total, rows.n_sources if self.categorical else None)

    def coarser(self, labels: Indices | None) -> Sources:
        """For distinct values joined by these labels."""
        if self.value is None or labels is None:
            return self
        return replace(self, value=np.bincount(labels, self.value).astype(np.float64))


class Shared:
    """What searches of the same sources by other target intervals share: what depends on their rows alone."""

    def __init__(self, rows: GridRows, settings: Settings) -> None:
        self.rows, self.settings = rows, settings
        self._n_quick, self._best_at = 0, set[int]()

    @cached_property
    def sizes(self) -> Floats:
        """Rows of each source."""
        return self.rows.source_sizes.astype(np.float64)

    @cached_property
    def is_whole(self) -> bool:
        """Whether rows count as whole ones."""
        return self.rows.weight is None or bool((self.rows.weight == np.floor(self.rows.weight)).all())

    def table(self, n_classes: int) -> Floats:
        """ln k! for whole counts, empty for others."""
        return ln_factorials(self.rows.total, n_classes, whole=self.is_whole)

    @cached_property
    def lumps(self) -> list[Lumps]:
        """Categories at each granularity."""
        return lumps_by_granularity(self.sizes)

    @property
    def quick_lumps(self) -> list[Lumps]:
        """Categories at some granularities: after a few quick searches those that the best groups were found at."""
        if not self.settings.prove and self._n_quick >= LEARNED_FROM and self._best_at:
            return [lumps for lumps in self._some_lumps if lumps.granularity in self._best_at]
        return self._some_lumps

    def note_granularity(self, partition: Partition) -> None:
        """Keep at which granularity a quick search found its groups."""
        self._n_quick += 1
        if np.isfinite(partition.cost):
            self._best_at.add(partition.granularity)

    @cached_property
    def _some_lumps(self) -> list[Lumps]:
        return self.lumps[:: -max(1, len(self.lumps) // QUICK_GRANULARITIES)]

    @cached_property
    def quantiles(self) -> Quantiles:
        """Of distinct values."""
        return Quantiles(np.concatenate([[0.0], np.cumsum(self.sizes)]))

    @cached_property
    def quick_intervals(self) -> QuickIntervals:
        """Of distinct values."""
        return QuickIntervals(self.quantiles, self.settings)


@dataclass(frozen=True)
class Grid:
    """A joint partition: the column's (its cost and bound are the grid's), and the target's intervals.

    `target_labels` (S,): the target interval of each distinct target; `prior`: what the cost has of the column's parts
    alone, whatever the target's intervals are.
    """

    source: Partition
    target_labels: Indices
    prior: float = 0.0

    @property
    def cost(self) -> float:
        return self.source.cost


def as_grid(rows: GridRows, sources: Sources, source: Partition, target: Indices) -> Grid:
    """The column's parts, found for some intervals of the target as for classes, with these."""
    return with_target(rows, sources, source, source.cost - parts_cost(source.counts), target)


def with_target(rows: GridRows, sources: Sources, source: Partition, prior: float, target: Indices) -> Grid:
    """The column's parts, of this prior, with these intervals of the target."""
    counts = rows.table(source.labels, target)
    cost = prior + parts_cost(counts) + target_cost(sources.settings.criterion, counts.sum(axis=0), rows.total)
    partition = replace(source, counts=counts, cost=cost, null_cost=sources.null_cost(rows), lower_bound=-np.inf)
    return Grid(partition, target, prior)


def one_cell(rows: GridRows, sources: Sources) -> Grid:
    """The grid of an uninformative column."""
    source, target = np.zeros(rows.n_sources, dtype=np.int64), np.zeros(rows.n_targets, dtype=np.int64)
    null = sources.null_cost(rows)
    return Grid(Partition(sources.settings.criterion, source, np.array([[rows.total]]), null, null, -np.inf), target)


def at_infinite_cost(grid: Grid) -> Grid:
    """The same grid at infinite cost: any other is cheaper."""
    return replace(grid, source=replace(grid.source, cost=np.inf))


# -- one search ------------------------------------------------------------------------------------


@dataclass
class GridSearch:
    """A search at one resolution of the column and the target."""

    rows: GridRows
    sources: Sources
    deadline: float = np.inf
    seen: set[bytes] = field(default_factory=set)  # target intervals that were started from
    _rounds: dict[tuple[bytes, bool, bool], Grid | None] = field(default_factory=dict)

    def from_each(self, starts: Iterator[Indices]) -> list[Grid]:
        """The models that these lead to, of the first one at least, until time is out; each start but once."""
        grids: list[Grid] = []
        for labels in self._unseen(starts):
            grids.append(self.alternate(labels))
            if time.monotonic() > self.deadline:
                break
        return grids

    def from_changes(self, best: Grid, starts: Iterator[Indices], n: int) -> list[Grid]:
        """The models that these starts lead to, changes of the best: one round for each, all for the n cheapest."""
        start_groups = best.source if self.sources.categorical else None
        first: dict[bytes, Grid] = {}
        for labels in self._unseen(starts):
            grid = self._round(labels, near=start_groups)
            if grid is not None:
                first.setdefault(grid.target_labels.tobytes(), grid)
            if time.monotonic() > self.deadline:
                break
        ranked = sorted(first.values(), key=lambda grid: grid.cost)
        new = [grid for grid in ranked[:n] if grid.target_labels.tobytes() not in self.seen]
        self.seen.update(grid.target_labels.tobytes() for grid in new)
        groups = [None if start_groups is None else grid.source for grid in new]
        return [*(self.alternate(grid.target_labels, near=near) for grid, near in zip(new, groups)), *ranked]

    def _unseen(self, starts: Iterator[Indices]) -> Iterator[Indices]:
        """Those that no search began at before."""
        for labels in starts:
            if labels.tobytes() not in self.seen:
                self.seen.add(labels.tobytes())
                yield labels

    def alternate(self, labels: Indices, *, quick: bool = True, near: Partition | None = None) -> Grid:
        """Source given target, target given source, until the cost stops falling; `near`: by groups near these."""
        best = at_infinite_cost(one_cell(self.rows, self.sources))
        for _ in range(MAX_ROUNDS):
            grid = self._round(labels, quick=quick, near=near)
            if grid is None or not is_cheaper(grid.cost, best.cost):
                break
            best, labels, near = grid, grid.target_labels, None if near is None else grid.source
            if time.monotonic() > self.deadline:
                break
        return best

    def _round(self, labels: Indices, *, quick: bool = True, near: Partition | None = None) -> Grid | None:
        """The source given these intervals, then the target given that; kept, as half of all starts meet on the way."""
        key = labels.tobytes(), quick, near is None
        if key not in self._rounds:
            source = self._source_near(labels, near, quick=quick) if labels.max() > 0 else None
            grid = None
            if source is not None and source.n_parts > 1:
                targets = self.target_given(source.labels, quick=quick), labels
                grid = cheapest(*(as_grid(self.rows, self.sources, source, target) for target in targets))
            self._rounds[key] = grid
        return self._rounds[key]

    def _source_near(self, labels: Indices, near: Partition | None, *, quick: bool) -> Partition:
        if near is None:
            return self.source_given(labels, quick=quick)
        regrouped = regroup(self.rows.table(None, labels), near, self.sources.settings, self.shared.lumps)
        return regrouped if quick else cheapest(self.source_given(labels, quick=False), regrouped)

    def source_given(self, labels: Indices, *, quick: bool) -> Partition:
        """The column's parts for these intervals of the target."""
        left = None if np.isinf(self.deadline) else max(0.0, self.deadline - time.monotonic())
        return self.sources.partition(self.rows.table(None, labels), self.shared, quick=quick, time_limit=left)

    @cached_property
    def shared(self) -> Shared:
        """What searches of the column share."""
        return Shared(self.rows, self.sources.settings)

    def target_given(self, parts: Indices, *, quick: bool) -> Indices:
        """The target's intervals for these parts of the column."""
        n = self.rows.n_targets
        if quick:
            return labels_of(self._quick_target_ends(self.rows.of_targets(parts)), n)
        task, boundaries = self._target_task(parts)
        max_parts = min(len(boundaries), MAX_TARGET_INTERVALS)
        if max_parts < 2:
            return np.zeros(n, dtype=np.int64)
        prior = self._target_prior(max_parts, task.cumulative[:, -1:].T)
        best = Best(np.inf, boundaries[-1:])
        take_one_cut(one_cut_costs(task, boundaries), boundaries, prior, best, 0)
        exact_cuts(task, boundaries, prior, best, Bounds(), 0)
        return labels_of(best.ends, n)

    def _quick_target_ends(self, counts: Floats) -> Indices:
        """Where good target intervals end; of many targets on coarse cells first, then near the cuts found there."""
        table, n = self.shared.table(counts.shape[1]), len(counts)
        ends = self._coarse_targets
        prior = self._target_prior(min(len(ends), MAX_TARGET_INTERVALS), counts)
        cut_ends = CutGrids.of_one(ends, prior).cut(counts, table, of_target=True).ends
        if len(ends) == n or len(cut_ends) < 2:
            return cut_ends
        near = (cut_ends[:-1, None] + NEAR_A_COARSE_CUT).ravel()
        ends = np.union1d(ends, near[(near > 0) & (near < n)])
        if len(ends) > len(prior):
            prior = self._target_prior(min(len(ends), MAX_TARGET_INTERVALS), counts)
        return CutGrids.of_one(ends, prior).cut(counts, table, of_target=True).ends

    @cached_property
    def _coarse_targets(self) -> Indices:
        """All boundaries of targets, of many those next to quantiles."""
        n = self.rows.n_targets
        if n <= 2 * 2**COARSE_TARGETS:
            return np.arange(1, n + 1)
        return quantile_boundaries(np.append(0.0, np.cumsum(self.rows.target_sizes)), COARSE_TARGETS)

    def _target_prior(self, max_parts: int, counts: Floats) -> Floats:
        return target_prior(self.sources.settings.criterion, max_parts, counts.sum(axis=0), self.rows.total)

    def settled(self, grid: Grid) -> Grid:
        """The column's parts for the target's cuts as they lie now, those moved again, until neither helps."""
        best = grid
        for _ in range(MAX_ROUNDS):
            if time.monotonic() > self.deadline:
                break
            source = self.source_given(best.target_labels, quick=False)
            if source.n_parts < 2:
                break
            slid = self.slide(as_grid(self.rows, self.sources, source, best.target_labels))
            if not is_cheaper(slid.cost, best.cost):
                break
            best = slid
        return best

    def slide(self, grid: Grid) -> Grid:
        """The target's cuts moved to their best places among all its values."""
        rows, ends, n_parts = self.rows, ends_of(grid.target_labels), grid.source.n_parts
        starts, order = rows.by_target
        weight = _NOTHING if rows.weight is None else rows.weight[order]
        kernels.slide_targets(
            starts, grid.source.labels[rows.source[order]], weight, self.shared.table(n_parts),
            np.empty(rows.n_targets, np.int64), np.empty(n_parts), np.empty(n_parts), ends,
        )  # fmt: skip
        labels = labels_of(np.unique(ends), self.rows.n_targets)
        return with_target(self.rows, self.sources, grid.source, grid.prior, labels)

    def _target_task(self, parts: Indices) -> tuple[CutTask, Indices]:
        """The target's values as blocks, and where an optimum may cut: not within rows of one part."""
        counts = self.rows.of_targets(parts)
        task = replace(CutTask.of(counts, 1.0, self.deadline), of_target=True)
        return task, task.between_unlike(np.arange(1, self.rows.n_targets + 1))


# -- few values on one side: every grid ------------------------------------------------------------


def every_grid(rows: GridRows, sources: Sources, deadline: float, target_given: TargetGiven) -> Grid | None:
    """The best grid of two parts or more; None where there are too many, or no time.

    `target_given` (parts) finds the best intervals of the target for these parts of the column. Of infinite
    cost where the constraints leave no two parts.
    """
    max_enumerated = MAX_CATEGORIES_ENUMERATED if sources.categorical else MAX_VALUES_ENUMERATED
    max_sources = MAX_SUBSETS if sources.categorical else MAX_VALUES_WITH_TARGETS
    few_sources = rows.n_sources <= max_enumerated and rows.n_targets <= MAX_TARGETS_WITH_VALUES
    if few_sources and not sources.settings.monotonic:
        grids = (_of_source(rows, sources, labels, target_given) for labels in _every_source(rows, sources))
    elif rows.n_targets <= MAX_TARGETS_ENUMERATED and rows.n_sources <= max_sources:
        shared = Shared(rows, sources.settings)
        grids = (_of_target(rows, sources, shared, labels) for labels in every_cut(rows.n_targets))
    else:
        return None
    best = at_infinite_cost(one_cell(rows, sources))
    for grid in grids:
        if time.monotonic() > deadline:
            return None
        best = cheapest(best, grid)
    return best


def _of_target(rows: GridRows, sources: Sources, shared: Shared, labels: Indices) -> Grid:
    """The best parts of the column for these intervals of the target."""
    source = sources.partition(rows.table(None, labels), shared, quick=False)
    if source.n_parts < 2:
        return at_infinite_cost(one_cell(rows, sources))
    return as_grid(rows, sources, source, labels)


def _of_source(rows: GridRows, sources: Sources, labels: Indices, target_given: TargetGiven) -> Grid:
    """The best intervals of the target for these parts of the column."""
    sizes = rows.source_sizes[:, None].astype(np.float64)
    settings, ends = sources.settings, ends_of(labels)
    if sources.categorical:
        cost, granularity = groups_and_granularity(sizes, labels, settings.criterion, settings.n_candidates)
    else:
        cost, granularity = intervals_and_granularity(sizes, ends, settings.criterion, settings.n_candidates)
    # of one class the cost is the prior
    counts = sum_by(labels, sizes, int(labels.max()) + 1)
    source = Partition(sources.settings.criterion, labels, counts, cost, cost, -np.inf, granularity)
    return as_grid(rows, sources, source, target_given(labels))


def _every_source(rows: GridRows, sources: Sources) -> Iterator[Indices]:
    """The partitions of the column that its sources allow, but for the one into a single part."""
    for labels in every_set(rows.n_sources) if sources.categorical else every_cut(rows.n_sources):
        n_parts = int(labels.max()) + 1
        enough = np.bincount(labels, rows.source_sizes).min() >= sources.settings.min_part_count
        if 1 < n_parts <= (sources.settings.max_parts or n_parts) and enough:
            yield labels


def every_cut(n: int) -> Iterator[Indices]:
    """Every partition of n values in order into intervals, as labels (n,)."""
    for cuts in range(2 ** (n - 1)):
        yield np.append(0, np.cumsum([cuts >> position & 1 for position in range(n - 1)])).astype(np.int64)


def every_set(n: int) -> Iterator[Indices]:
    """Every partition of n categories, as labels (n,): each category in a group there is, or in a new one."""
    labels = [[0]]
    for _ in range(n - 1):
        labels = [[*partition, group] for partition in labels for group in range(max(partition) + 2)]
    yield from (np.array(partition, dtype=np.int64) for partition in labels)
