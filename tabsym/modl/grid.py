"""Regression: the column and the target are cut together, as a grid.

The criterion is Khiops': the prior of the column's parts, the cost of the target's intervals within them as of
classes, R(T - 1; N - 1) for how many intervals there are, and ln N_j! for the ranks within each. Given the target's
intervals the column's parts are those of classes, and given the column's parts the target's intervals are exact cuts: a
search at one resolution of both finds either in turn. Where one side has few values, every partition of it is looked
at, with the best one of the other side.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.modl import kernels_cuts as kernels
from tabsym.modl.costs import groups_and_granularity, intervals_and_granularity, null_grid_cost, target_cost
from tabsym.modl.criterion import parts_cost, target_prior
from tabsym.modl.cuts import Best, Bounds, CutTask, descend_cuts, exact_cuts, is_cheaper, take_one_cut
from tabsym.modl.grouping import sum_by
from tabsym.modl.groups import MAX_SUBSETS, group, regroup
from tabsym.modl.intervals import discretize
from tabsym.modl.partition import Partition, Settings, ends_of, labels_of

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
TargetGiven = Callable[[Indices], Indices]

MAX_TARGET_INTERVALS = 256
"""Numbers of target intervals that have a prior: time, for models of more intervals."""
MAX_TURNS = 12
"""Searches of either side in turn, or moves of cuts after them: time for cost."""
# partitions of the few, and the searches that each asks for of the many: time for exact grids
FEW_TARGETS, MAX_VALUES_BESIDE = 9, 64
"""Up to so many distinct targets each of their 256 partitions is looked at, beside so many distinct values or less."""
FEW_VALUES, FEW_SYMBOLS, MAX_TARGETS_BESIDE = 6, 5, 1024
"""Numbers of values or of categories up to which all 31 or 51 partitions are tried, and of distinct targets."""


@dataclass(frozen=True)
class Rows:
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
        return float(len(self.source) if self.weight is None else self.weight.sum())

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
        flat = np.bincount(a.astype(np.int64) * n_b + b, self.weight, minlength=n_a * n_b)
        return np.asarray(flat.reshape(n_a, n_b), dtype=np.float64)

    def coarser(self, source: Indices | None, target: Indices | None) -> Rows:
        """With sources and targets joined by these labels, equal rows added up."""
        a, b, n_a, n_b = self._joined(source, target)
        if n_a * n_b > len(a):
            return Rows(a, b, n_a, n_b, self.weight)
        total = np.bincount(a.astype(np.int64) * n_b + b, self.weight, minlength=n_a * n_b)
        cells = np.flatnonzero(total)
        return Rows(cells // n_b, cells % n_b, n_a, n_b, total[cells].astype(np.float64))


@dataclass(frozen=True)
class Sources:
    """How the column is partitioned; `value`: sums of the target at each distinct value, for monotone intervals."""

    symbolic: bool
    settings: Settings
    value: Floats | None = None

    def partition(self, counts: Floats, *, quick: bool, time_limit: float | None = None) -> Partition:
        """The column's two or more parts, given rows by target interval (B, T); infinitely dear if there are none."""
        settings = replace(self.settings, time_limit=time_limit)
        if self.symbolic:
            return group(counts, settings, quick=quick, min_parts=2)
        quick = quick and not settings.monotonic
        return discretize(counts, settings, value=self.value, quick=quick, min_parts=2)

    def coarser(self, labels: Indices | None) -> Sources:
        """For distinct values joined by these labels."""
        if self.value is None or labels is None:
            return self
        return replace(self, value=np.bincount(labels, self.value).astype(np.float64))


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


def as_grid(rows: Rows, sources: Sources, source: Partition, target: Indices) -> Grid:
    """The column's parts, found for some intervals of the target as for classes, with these."""
    return with_target(rows, sources, source, source.cost - parts_cost(source.counts), target)


def with_target(rows: Rows, sources: Sources, source: Partition, prior: float, target: Indices) -> Grid:
    """The column's parts, of this prior, with these intervals of the target."""
    counts = rows.table(source.labels, target)
    cost = prior + parts_cost(counts) + target_cost(sources.settings.criterion, counts.sum(axis=0), rows.total)
    null = null_grid_cost(sources.settings.criterion, rows.total, rows.n_sources if sources.symbolic else None)
    found = replace(source, counts=counts, cost=cost, null_cost=null, lower_bound=-np.inf)
    return Grid(found, target, prior)


def one_cell(rows: Rows, sources: Sources) -> Grid:
    """The grid of an uninformative column."""
    source, target = np.zeros(rows.n_sources, dtype=np.int64), np.zeros(rows.n_targets, dtype=np.int64)
    null = null_grid_cost(sources.settings.criterion, rows.total, rows.n_sources if sources.symbolic else None)
    counts = np.array([[rows.total]])
    return Grid(Partition(sources.settings.criterion, source, counts, null, null, -np.inf), target)


def dear(grid: Grid) -> Grid:
    """The same as infinitely dear: any other is cheaper."""
    return replace(grid, source=replace(grid.source, cost=np.inf))


# -- one search ------------------------------------------------------------------------------------


@dataclass
class GridSearch:
    """A search at one resolution of the column and the target."""

    rows: Rows
    sources: Sources
    deadline: float = np.inf
    seen: set[bytes] = field(default_factory=set)  # target intervals that were started from

    def from_each(self, starts: Iterator[Indices]) -> list[Grid]:
        """The models that these lead to, of the first one at least, until time is out; each start but once."""
        found: list[Grid] = []
        for labels in starts:
            if labels.tobytes() not in self.seen:
                self.seen.add(labels.tobytes())
                found.append(self.alternate(labels))
            if found and time.monotonic() > self.deadline:
                break
        return found

    def alternate(self, labels: Indices, *, quick: bool = True) -> Grid:
        """Source given target, target given source, until the cost stops falling."""
        best = dear(one_cell(self.rows, self.sources))
        for _ in range(MAX_TURNS):
            if labels.max() == 0:
                break
            source = self.source_given(labels, quick=quick)
            if source.n_parts < 2:
                break
            given = as_grid(self.rows, self.sources, source, labels)
            labels = self.target_given(source.labels, quick=quick)
            found = min(as_grid(self.rows, self.sources, source, labels), given, key=lambda one: one.cost)
            if not is_cheaper(found.cost, best.cost):
                break
            best, labels = found, found.target_labels
            if time.monotonic() > self.deadline:
                break
        return best

    def nearby(self, source: Partition, labels: Indices) -> Grid:
        """Groups near these for other intervals of the target, and so on in turn: quick where both are."""
        best = dear(one_cell(self.rows, self.sources))
        for _ in range(MAX_TURNS):
            if labels.max() == 0:
                break
            source = regroup(self.rows.table(None, labels), source, self.sources.settings)
            if source.n_parts < 2:
                break
            given = as_grid(self.rows, self.sources, source, labels)
            labels = self.target_given(source.labels, quick=True)
            found = min(as_grid(self.rows, self.sources, source, labels), given, key=lambda one: one.cost)
            if not is_cheaper(found.cost, best.cost):
                break
            best, labels = found, found.target_labels
        return best

    def source_given(self, labels: Indices, *, quick: bool) -> Partition:
        """The column's parts for these intervals of the target."""
        left = None if np.isinf(self.deadline) else max(0.0, self.deadline - time.monotonic())
        return self.sources.partition(self.rows.table(None, labels), quick=quick, time_limit=left)

    def target_given(self, parts: Indices, *, quick: bool) -> Indices:
        """The target's intervals for these parts of the column."""
        task, boundaries = self._target_task(parts)
        max_parts = min(len(boundaries), MAX_TARGET_INTERVALS)
        if max_parts < 2:
            return np.zeros(self.rows.n_targets, dtype=np.int64)
        sizes = np.bincount(parts[self.rows.source], self.rows.weight).astype(np.float64)
        prior = target_prior(self.sources.settings.criterion, max_parts, sizes, self.rows.total)
        best = Best(np.inf, boundaries[-1:])
        take_one_cut(task, boundaries, float(prior[1]), best, 0)
        if quick:
            descend_cuts(task, boundaries, prior, best, 0)
        else:
            exact_cuts(task, boundaries, prior, best, Bounds(), 0)
        return labels_of(best.ends, self.rows.n_targets)

    def settled(self, grid: Grid) -> Grid:
        """The column's parts for the target's cuts as they lie now, those moved again, until neither helps."""
        best = grid
        for _ in range(MAX_TURNS):
            if time.monotonic() > self.deadline:
                break
            source = self.source_given(best.target_labels, quick=False)
            if source.n_parts < 2:
                break
            found = self.slide(as_grid(self.rows, self.sources, source, best.target_labels))
            if not is_cheaper(found.cost, best.cost):
                break
            best = found
        return best

    def slide(self, grid: Grid) -> Grid:
        """The target's cuts moved to their best places among all its values."""
        task, boundaries = self._target_task(grid.source.labels)
        ends = ends_of(grid.target_labels)
        kernels.slide_cuts(
            task.cumulative, task.table, task.shift, np.append(0, boundaries), len(boundaries), 1.0, ends
        )  # fmt: skip
        labels = labels_of(np.unique(ends), self.rows.n_targets)
        return with_target(self.rows, self.sources, grid.source, grid.prior, labels)

    def _target_task(self, parts: Indices) -> tuple[CutTask, Indices]:
        """The target's values as blocks, and where an optimum may cut: not within rows of one part."""
        counts = np.ascontiguousarray(self.rows.table(parts, None).T)
        task = replace(CutTask.of(counts, 1.0, self.deadline), of_target=True)
        return task, task.between_unlike(np.arange(1, self.rows.n_targets + 1))


# -- few values on one side: every grid ------------------------------------------------------------


def every_grid(rows: Rows, sources: Sources, deadline: float, target_given: TargetGiven) -> Grid | None:
    """The best grid of two parts or more; None where there are too many to look at, or no time.

    `target_given` (parts) finds the best intervals of the target for these parts of the column. Infinitely dear
    where the constraints leave no two parts.
    """
    few = FEW_SYMBOLS if sources.symbolic else FEW_VALUES
    max_sources = MAX_SUBSETS if sources.symbolic else MAX_VALUES_BESIDE
    if rows.n_sources <= few and rows.n_targets <= MAX_TARGETS_BESIDE and not sources.settings.monotonic:
        found = (_of_source(rows, sources, labels, target_given) for labels in _every_source(rows, sources))
    elif rows.n_targets <= FEW_TARGETS and rows.n_sources <= max_sources:
        found = (_of_target(rows, sources, labels) for labels in every_cut(rows.n_targets))
    else:
        return None
    best = dear(one_cell(rows, sources))
    for one in found:
        if time.monotonic() > deadline:
            return None
        best = min(best, one, key=lambda one: one.cost)
    return best


def _of_target(rows: Rows, sources: Sources, labels: Indices) -> Grid:
    """The best parts of the column for these intervals of the target."""
    source = sources.partition(rows.table(None, labels), quick=False)
    if source.n_parts < 2:
        return dear(one_cell(rows, sources))
    return as_grid(rows, sources, source, labels)


def _of_source(rows: Rows, sources: Sources, labels: Indices, target_given: TargetGiven) -> Grid:
    """The best intervals of the target for these parts of the column."""
    sizes = np.bincount(rows.source, rows.weight, minlength=rows.n_sources)[:, None].astype(np.float64)
    settings, ends = sources.settings, ends_of(labels)
    if sources.symbolic:
        cost, granularity = groups_and_granularity(sizes, labels, settings.criterion, settings.n_candidates)
    else:
        cost, granularity = intervals_and_granularity(sizes, ends, settings.criterion, settings.n_candidates)
    # of one class the cost is the prior
    counts = sum_by(labels, sizes, int(labels.max()) + 1)
    source = Partition(sources.settings.criterion, labels, counts, cost, cost, -np.inf, granularity)
    return as_grid(rows, sources, source, target_given(labels))


def _every_source(rows: Rows, sources: Sources) -> Iterator[Indices]:
    """The partitions of the column that its sources allow, but for the one into a single part."""
    sizes = np.bincount(rows.source, rows.weight, minlength=rows.n_sources)
    for labels in every_set(rows.n_sources) if sources.symbolic else every_cut(rows.n_sources):
        n_parts = int(labels.max()) + 1
        enough = np.bincount(labels, sizes).min() >= sources.settings.min_part_count
        if 1 < n_parts <= (sources.settings.max_parts or n_parts) and enough:
            yield labels


def every_cut(n: int) -> Iterator[Indices]:
    """Every partition of n values in order into intervals, as labels (n,)."""
    for cuts in range(2 ** (n - 1)):
        yield np.append(0, np.cumsum([cuts >> place & 1 for place in range(n - 1)])).astype(np.int64)


def every_set(n: int) -> Iterator[Indices]:
    """Every partition of n categories, as labels (n,): each category in a group there is, or in a new one."""
    labels = [[0]]
    for _ in range(n - 1):
        labels = [[*one, group] for one in labels for group in range(max(one) + 2)]
    yield from (np.array(one, dtype=np.int64) for one in labels)
