"""Regression: the column and the target are cut together, as a grid.

Given the target's intervals, the column's parts are found as for classes; given
the column's parts, the target's intervals are found by the same passes. The
two alternate, from several numbers of target intervals, until the cost of the
grid stops falling: no bound is known for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from tabsym.modl import kernels_ordered as kernels
from tabsym.modl.criterion import ln_universal, null_prior, parts_cost, target_prior
from tabsym.modl.groups import group
from tabsym.modl.hull import Best
from tabsym.modl.intervals import discretize, quantile_boundaries
from tabsym.modl.partition import Partition
from tabsym.modl.search import descend_cuts, make_task

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

STARTS = (2, 3, 5, 8, 12, 20, 32)
"""Numbers of equally frequent target intervals from which the search starts."""
SOURCE_GRID, TARGET_GRID = 12, 10
"""Columns of more than 2**12 distinct values are cut on the grid of so many quantiles, targets of 2**10 likewise."""
_MOST_TARGET_PARTS = 256
_MOST_ROUNDS = 12


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

    def table(self, source: Places | None, target: Places | None) -> Floats:
        """Rows by part of the source and of the target, whose codes have these labels (None: themselves)."""
        a = self.source if source is None else source[self.source]
        b = self.target if target is None else target[self.target]
        n_a = self.n_sources if source is None else int(source.max()) + 1
        n_b = self.n_targets if target is None else int(target.max()) + 1
        flat = np.bincount(a.astype(np.int64) * n_b + b, self.weight, minlength=n_a * n_b)
        return np.asarray(flat.reshape(n_a, n_b), dtype=np.float64)


@dataclass(frozen=True)
class Options:
    """How the column is partitioned."""

    symbolic: bool
    criterion: str
    n_candidates: int
    max_parts: int | None
    min_part_count: float
    monotonic: bool
    value: Floats | None  # sums of the target at each distinct value, for monotone intervals
    random_state: int = 0

    def partition(self, counts: Floats, *, quick: bool) -> Partition:
        """The column's parts, given rows by target interval (B, T)."""
        if self.symbolic:
            return group(
                counts, criterion=self.criterion, n_candidates=self.n_candidates, max_parts=self.max_parts,
                min_part_count=self.min_part_count, random_state=self.random_state, quick=quick,
            )  # fmt: skip
        return discretize(
            counts, criterion=self.criterion, n_candidates=self.n_candidates, max_parts=self.max_parts,
            min_part_count=self.min_part_count, monotonic=self.monotonic, value=self.value,
            quick=quick and not self.monotonic,
        )  # fmt: skip


@dataclass(frozen=True)
class Grid:
    """A joint partition: the column's (its cost and bound are the grid's), and the target's intervals.

    `target_labels` (S,): the target interval of each distinct target.
    """

    source: Partition
    target_labels: Places


def cut_jointly(rows: Rows, options: Options) -> Grid:
    """The grid of least cost that the alternation finds; one cell where the column says nothing of the target."""
    n_rows = float(len(rows.source) if rows.weight is None else rows.weight.sum())
    null = _null_cost(options.criterion, n_rows, rows, options.symbolic)
    half, source_labels = (rows, np.arange(rows.n_sources)) if options.symbolic else _coarser_source(rows)
    coarse, target_labels = _coarser_target(half)
    chosen = _coarser_options(options, source_labels)
    best: tuple[float, Partition | None, Places] = (null, None, np.zeros(coarse.n_targets, dtype=np.int64))
    for ends in _starts(coarse):
        best = min(best, _alternate(coarse, chosen, _labels(ends, coarse.n_targets), n_rows), key=lambda one: one[0])
    best = (best[0], best[1], best[2][target_labels])
    if best[1] is not None:
        best = min(best, _finish(half, chosen, best[2], n_rows), key=lambda one: one[0])
    return _as_grid(rows, options, best, null, source_labels)


def _starts(rows: Rows) -> list[Places]:
    """Target intervals of equal size, some to many; where the target has few values, each its own."""
    sizes = np.bincount(rows.target, rows.weight, minlength=rows.n_targets)
    found = [_equal_parts(sizes, start) for start in STARTS if start <= rows.n_targets]
    return [*found, np.arange(1, rows.n_targets + 1)] if rows.n_targets <= max(STARTS) else found


def _alternate(rows: Rows, options: Options, labels: Places, n_rows: float) -> tuple[float, Partition | None, Places]:
    """Source given target, target given source, until the cost stops falling."""
    best: tuple[float, Partition | None, Places] = (np.inf, None, labels)
    for _ in range(_MOST_ROUNDS):
        source = options.partition(rows.table(None, labels), quick=True)
        cost = _joint_cost(options.criterion, source, n_rows)
        if cost >= best[0] - 1e-9:
            break
        best = (cost, source, labels)
        labels = _cut_target(rows, options, source, n_rows)
        if labels.max() == 0:
            break
    return best


def _finish(rows: Rows, options: Options, labels: Places, n_rows: float) -> tuple[float, Partition | None, Places]:
    """The full search of the column's parts, then the target's cuts moved among all its values."""
    source = options.partition(rows.table(None, labels), quick=False)
    best: tuple[float, Partition | None, Places] = (_joint_cost(options.criterion, source, n_rows), source, labels)
    if source.n_parts < 2:
        return best
    counts = rows.table(source.labels, None).T
    task = replace(make_task(np.ascontiguousarray(counts), 1.0, np.inf), of_target=True)
    ends = np.append(np.flatnonzero(np.diff(labels)) + 1, rows.n_targets)
    kernels.slide_cuts(
        task.cumulative, task.table, task.shift, np.arange(rows.n_targets + 1), rows.n_targets, 1.0, ends
    )
    labels = _labels(ends, rows.n_targets)
    moved = replace(source, counts=rows.table(source.labels, labels))
    prior = source.cost - parts_cost(source.counts)
    moved = replace(moved, cost=prior + parts_cost(moved.counts))
    return min(best, (_joint_cost(options.criterion, moved, n_rows), moved, labels), key=lambda one: one[0])


def _cut_target(rows: Rows, options: Options, source: Partition, n_rows: float) -> Places:
    counts = np.ascontiguousarray(rows.table(source.labels, None).T)
    task = replace(make_task(counts, 1.0, np.inf), of_target=True)
    most = min(rows.n_targets, _MOST_TARGET_PARTS)
    prior = target_prior(options.criterion, most, source.counts.sum(axis=1), n_rows)
    if not np.isfinite(prior[0]):
        prior[0] = prior[1]  # a single interval is no grid; the passes need a number
    best = Best(np.inf, np.array([rows.n_targets]), 0)
    descend_cuts(task, np.arange(1, rows.n_targets + 1), prior, best, 0)
    return _labels(best.ends, rows.n_targets)


def _joint_cost(criterion: str, source: Partition, n_rows: float) -> float:
    """The cost of the grid: the source's prior and parts, the number of target intervals, and the ranks within them."""
    n_targets = source.counts.shape[1]
    within = float(gammaln(source.counts.sum(axis=0) + 1).sum())
    if criterion == "page":
        return source.cost + float(np.log(n_rows)) + within
    if source.n_parts < 2 or n_targets < 2:
        return np.inf
    return source.cost + float(ln_universal(n_targets - 1, n_rows - 1)[0]) + within


def _null_cost(criterion: str, n_rows: float, rows: Rows, symbolic: bool) -> float:
    prior = null_prior(criterion, n_rows=n_rows, n_modalities=rows.n_sources if symbolic else None)
    return prior + float(gammaln(n_rows + 1)) + (float(np.log(n_rows)) if criterion == "page" else 0.0)


def _coarser_source(rows: Rows) -> tuple[Rows, Places]:
    """Sources on a grid of quantiles where there are many, rows of equal source and target added up."""
    if rows.n_sources <= 2**SOURCE_GRID:
        return rows, np.arange(rows.n_sources)
    labels = _cells(rows.source, rows.weight, rows.n_sources, SOURCE_GRID)
    return replace(rows, source=labels[rows.source], n_sources=int(labels[-1]) + 1), labels


def _coarser_target(rows: Rows) -> tuple[Rows, Places]:
    """Targets on a grid of quantiles, rows of one cell added up."""
    if rows.n_targets <= 2**TARGET_GRID:
        return rows, np.arange(rows.n_targets)
    labels = _cells(rows.target, rows.weight, rows.n_targets, TARGET_GRID)
    n = int(labels[-1]) + 1
    flat = rows.source.astype(np.int64) * n + labels[rows.target]
    if rows.n_sources * n > len(flat):
        return replace(rows, target=labels[rows.target], n_targets=n), labels
    total = np.bincount(flat, rows.weight, minlength=rows.n_sources * n)
    cells = np.flatnonzero(total)
    return Rows(cells // n, cells % n, rows.n_sources, n, total[cells].astype(np.float64)), labels


def _cells(codes: NDArray[np.integer], weight: Floats | None, n: int, grid: int) -> Places:
    """The cell of each code on the grid of 2**grid quantiles."""
    sizes = np.bincount(codes, weight, minlength=n)
    return _labels(quantile_boundaries(np.concatenate([[0.0], np.cumsum(sizes)]), grid), n)


def _coarser_options(options: Options, labels: Places) -> Options:
    if options.value is None:
        return options
    return replace(options, value=np.bincount(labels, options.value).astype(np.float64))


def _equal_parts(sizes: NDArray[Any], n: int) -> Places:
    """The boundaries at or above n - 1 equally spaced quantiles, and the last."""
    before = np.cumsum(sizes)
    wanted = before[-1] * np.arange(1, n) / n
    return np.unique(np.append(np.searchsorted(before, wanted) + 1, len(sizes)))


def _labels(ends: Places, n: int) -> Places:
    """The part of each of n blocks, of parts that end there."""
    return np.searchsorted(ends, np.arange(n), side="right")


def _as_grid(
    rows: Rows, options: Options, best: tuple[float, Partition | None, Places], null: float, source_labels: Places
) -> Grid:
    cost, source, target = best
    if source is None or source.n_parts < 2:
        counts = rows.table(np.zeros(rows.n_sources, dtype=np.int64), np.zeros(rows.n_targets, dtype=np.int64))
        one = Partition(options.criterion, np.zeros(rows.n_sources, dtype=np.int64), counts, null, null, -np.inf)
        return Grid(one, np.zeros(rows.n_targets, dtype=np.int64))
    found = replace(source, labels=source.labels[source_labels], cost=cost, null_cost=null, lower_bound=-np.inf)
    return Grid(found, target)
