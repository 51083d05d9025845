"""The search for the best grid of a column and a regression's target.

Given the target's intervals the column's parts are those of classes, and given the column's parts the target's
intervals are exact cuts. The two alternate from many starts, on coarse cells; the best go on over all
values. Where one side has few values, every partition of it is looked at, with the best one of the other
side: that alone certifies an optimum. No bound is known for larger grids.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tabsym.modl import kernels_ordered as kernels
from tabsym.modl.criterion import target_prior
from tabsym.modl.ends import ends_of, labels_of
from tabsym.modl.grid import Grid, Options, Rows, as_grid, dear, one_cell, with_target
from tabsym.modl.grid_small import every_grid
from tabsym.modl.hull import Best, Bounds, is_cheaper
from tabsym.modl.partition import Partition
from tabsym.modl.quantiles import quantile_boundaries
from tabsym.modl.search import Task, deadline_of, descend_cuts, exact_cuts, make_task, take_one_cut

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

STARTS = (2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Numbers of equally frequent parts, of the target or the column, from which the search starts."""
COARSE = 7
"""Starts are cut on the grid of 2**COARSE quantiles of the column and of the target."""
SOURCE_GRID, TARGET_GRID = 12, 10
"""Columns of more than 2**12 distinct values are cut on the grid of so many quantiles, targets of 2**10 likewise."""
MOST_TARGET_PARTS = 256
MOST_ROUNDS = 12
FINISHED = 3
"""So many of the best models go on over all values."""
FEW_GROUPS = 8
"""Up to so many groups every two are joined."""
SHAKEN = 12
"""So many models are made from one with part of its target cuts elsewhere."""
CHANGED = 3
"""So often is the best of them changed cut by cut, as long as that helps."""
MANY, TOO_MANY = 200, 2000
"""Of more symbols than these target cuts are not changed one by one, and the best model alone goes on."""


def cut_jointly(rows: Rows, options: Options) -> Grid:
    """The grid of least cost that the search finds; one cell where the column says nothing of the target."""
    null = one_cell(rows, options)
    if min(rows.n_sources, rows.n_targets) < 2 or options.max_parts == 1:
        return replace(null, source=replace(null.source, lower_bound=null.cost))
    deadline = deadline_of(options.time_limit)
    whole = GridSearch(rows, options, deadline)
    known = every_grid(rows, options, deadline, partial(whole.target_given, quick=False))
    if known is not None:
        best = known if is_cheaper(known.cost, null.cost) else null
        return replace(best, source=replace(best.source, lower_bound=best.cost))
    source_cells = None if options.symbolic else _cells(rows.source, rows.weight, rows.n_sources, SOURCE_GRID)
    target_cells = _cells(rows.target, rows.weight, rows.n_targets, TARGET_GRID)
    fine = GridSearch(rows.coarser(source_cells, target_cells), options.coarser(source_cells), deadline)
    starts = [replace(one, target_labels=_of_cells(one.target_labels, target_cells)) for one in _coarse_models(fine)]
    half = GridSearch(rows.coarser(source_cells, None), options.coarser(source_cells), deadline)
    best = null
    finished = 1 if not options.prove or (options.symbolic and rows.n_sources > TOO_MANY) else FINISHED
    for start in _distinct(starts)[:finished]:
        if best is not null and time.monotonic() > deadline:
            break
        best = min(best, _finished(fine, half, start, target_cells), key=lambda one: one.cost)
    if best is null:
        return null
    if options.prove:
        best = half.settled(_changed_once_more(fine, half, best, target_cells))
    labels = _of_cells(best.source.labels, source_cells)
    return replace(best, source=replace(best.source, labels=labels))


def _coarse_models(fine: GridSearch) -> list[Grid]:
    """Models from all starts on coarse cells, the cheapest first; their target labels are those of the fine cells."""
    rows, options = fine.rows, fine.options
    source_cells = None if options.symbolic else _cells(rows.source, rows.weight, rows.n_sources, COARSE)
    target_cells = _cells(rows.target, rows.weight, rows.n_targets, COARSE)
    search = GridSearch(rows.coarser(source_cells, target_cells), options.coarser(source_cells), fine.deadline)
    found = search.from_each(search.starts())
    best = min(found, key=lambda one: one.cost)
    for _ in range(MOST_ROUNDS if options.prove else 0):
        further = search.from_each(search.changed(best.source.labels, best.target_labels))
        found += further
        better = min(further, key=lambda one: one.cost, default=best)
        if not is_cheaper(better.cost, best.cost) or time.monotonic() > fine.deadline:
            break
        best = better
    found.sort(key=lambda one: one.cost)
    return [
        replace(one, target_labels=_of_cells(one.target_labels, target_cells)) for one in found if np.isfinite(one.cost)
    ]


def _finished(fine: GridSearch, half: GridSearch, start: Grid, target_cells: Places | None) -> Grid:
    """A model over all values: full searches of both sides in turn, then the target's cuts among all its values."""
    labels = start.target_labels if target_cells is None else start.target_labels[_first_of(target_cells)]
    best = fine.alternate(labels, quick=False)
    if not np.isfinite(best.cost):
        return best
    best = with_target(half.rows, half.options, best.source, best.prior, _of_cells(best.target_labels, target_cells))
    if target_cells is not None:
        best = half.slide(best)
    return best


def _changed_once_more(fine: GridSearch, half: GridSearch, best: Grid, target_cells: Places | None) -> Grid:
    """The best model, or a cheaper one with more target cuts, or one less, over all values."""
    for _ in range(CHANGED):
        before = best.cost
        labels = best.target_labels if target_cells is None else best.target_labels[_first_of(target_cells)]
        further = fine.from_each(fine.changed(best.source.labels, labels))
        for one in sorted(further, key=lambda one: one.cost)[:FINISHED]:
            if is_cheaper(one.cost, best.cost) and time.monotonic() < fine.deadline:
                start = replace(one, target_labels=_of_cells(one.target_labels, target_cells))
                best = min(best, _finished(fine, half, start, target_cells), key=lambda one: one.cost)
        if not is_cheaper(best.cost, before):
            break
    return best


@dataclass
class GridSearch:
    """A search at one resolution of the column and the target."""

    rows: Rows
    options: Options
    deadline: float = np.inf
    seen: set[bytes] = field(default_factory=set)  # target intervals that were started from

    def starts(self) -> Iterator[Places]:
        """Target intervals to start from: of equal size, and the best ones for column parts of equal size."""
        rows = self.rows
        sizes = np.bincount(rows.target, rows.weight, minlength=rows.n_targets)
        for start in STARTS:
            if start <= rows.n_targets:
                yield labels_of(_equal_parts(sizes, start), rows.n_targets)
        if rows.n_targets <= max(STARTS):
            yield np.arange(rows.n_targets)
        order = self._sources_in_order()
        sizes = np.bincount(rows.source, rows.weight, minlength=rows.n_sources)[order]
        for start in STARTS:
            if start <= rows.n_sources:
                parts = np.empty(rows.n_sources, dtype=np.int64)
                parts[order] = labels_of(_equal_parts(sizes, start), rows.n_sources)
                yield self.target_given(parts, quick=True)

    def changed(self, parts: Places, labels: Places) -> Iterator[Places]:
        """Target intervals beside these: with more cuts, with fewer, with some elsewhere; the best of joined parts."""
        n, ends = len(labels), ends_of(labels)
        sizes = np.bincount(self.rows.target, self.rows.weight, minlength=n)
        for start in STARTS:
            if start <= n:
                yield labels_of(np.union1d(ends, _equal_parts(sizes, start)), n)
        if self.rows.n_sources > MANY and self.options.symbolic:
            return
        rng = np.random.RandomState(self.options.random_state)
        for _ in range(SHAKEN):  # some cuts gone, as many or fewer elsewhere
            kept = ends[:-1][rng.random_sample(len(ends) - 1) < rng.random_sample()]
            fresh = _equal_parts(sizes, 2 * n)[:-1] if n < 32 else _equal_parts(sizes, 32)[:-1]
            new = rng.choice(fresh, rng.randint(len(ends) + 1)) if len(fresh) else fresh
            yield labels_of(np.unique(np.concatenate([kept, new, ends[-1:]])), n)
        for a, b in self._neighbours(int(parts.max()) + 1):
            fewer = np.where(parts == b, a, parts)
            yield self.target_given(np.unique(fewer, return_inverse=True)[1].ravel(), quick=True)
        for place in range(len(ends) - 1):
            left, here, right = ends[place - 1] if place else 0, ends[place], ends[place + 1]
            others = np.delete(ends, place)
            yield labels_of(others, n)
            if place > 0:
                yield labels_of(np.delete(others, place - 1), n)
            for there in {here - 1, here + 1, (left + here) // 2, (here + right + 1) // 2} - {left, here, right}:
                yield labels_of(np.union1d(others, there), n)

    def _neighbours(self, n: int) -> list[tuple[int, int]]:
        """Parts of the column that can be joined."""
        if not self.options.symbolic:
            return [(a, a + 1) for a in range(n - 1)]
        return list(combinations(range(n), 2)) if n <= FEW_GROUPS else []

    def _sources_in_order(self) -> Places:
        """Values as they are; modalities by their mean rank of the target."""
        rows = self.rows
        if not self.options.symbolic:
            return np.arange(rows.n_sources)
        weight = np.ones(len(rows.source)) if rows.weight is None else rows.weight
        before = np.cumsum(np.bincount(rows.target, weight, minlength=rows.n_targets))
        ranks = np.bincount(rows.source, weight * before[rows.target], minlength=rows.n_sources)
        return np.argsort(ranks / np.bincount(rows.source, weight, minlength=rows.n_sources), kind="stable")

    def from_each(self, starts: Iterator[Places]) -> list[Grid]:
        """The models that these lead to, of the first one at least, until time is out; each start but once."""
        found: list[Grid] = []
        for labels in starts:
            if labels.tobytes() not in self.seen:
                self.seen.add(labels.tobytes())
                found.append(self.alternate(labels))
            if found and time.monotonic() > self.deadline:
                break
        return found

    def alternate(self, labels: Places, *, quick: bool = True) -> Grid:
        """Source given target, target given source, until the cost stops falling."""
        best = dear(one_cell(self.rows, self.options))
        for _ in range(MOST_ROUNDS):
            if labels.max() == 0:
                break
            source = self.source_given(labels, quick=quick)
            if source.n_parts < 2:
                break
            given = as_grid(self.rows, self.options, source, labels)
            labels = self.target_given(source.labels, quick=quick)
            found = min(as_grid(self.rows, self.options, source, labels), given, key=lambda one: one.cost)
            if not is_cheaper(found.cost, best.cost):
                break
            best, labels = found, found.target_labels
            if time.monotonic() > self.deadline:
                break
        return best

    def source_given(self, labels: Places, *, quick: bool) -> Partition:
        """The column's parts for these intervals of the target."""
        left = None if np.isinf(self.deadline) else max(0.0, self.deadline - time.monotonic())
        return self.options.partition(self.rows.table(None, labels), quick=quick, time_limit=left)

    def target_given(self, parts: Places, *, quick: bool) -> Places:
        """The target's intervals for these parts of the column."""
        task, boundaries = self._target_task(parts)
        most = min(len(boundaries), MOST_TARGET_PARTS)
        if most < 2:
            return np.zeros(self.rows.n_targets, dtype=np.int64)
        sizes = np.bincount(parts[self.rows.source], self.rows.weight).astype(np.float64)
        prior = target_prior(self.options.criterion, most, sizes, self.rows.total)
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
        for _ in range(MOST_ROUNDS):
            if time.monotonic() > self.deadline:
                break
            source = self.source_given(best.target_labels, quick=False)
            if source.n_parts < 2:
                break
            found = self.slide(as_grid(self.rows, self.options, source, best.target_labels))
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
        return with_target(self.rows, self.options, grid.source, grid.prior, labels)

    def _target_task(self, parts: Places) -> tuple[Task, Places]:
        """The target's values as blocks, and where an optimum may cut: not within rows of one part."""
        counts = np.ascontiguousarray(self.rows.table(parts, None).T)
        task = replace(make_task(counts, 1.0, self.deadline), of_target=True)
        boundaries = np.arange(1, self.rows.n_targets + 1)
        pure = np.empty(len(boundaries), dtype=np.int64)
        kernels.pure_classes(task.cumulative, boundaries, pure)
        return task, boundaries[np.append((pure[1:] != pure[:-1]) | (pure[1:] < 0), True)]


def _distinct(grids: list[Grid]) -> list[Grid]:
    """Without those whose target intervals are those of a cheaper one."""
    seen: dict[bytes, Grid] = {}
    for one in grids:
        seen.setdefault(one.target_labels.tobytes(), one)
    return list(seen.values())


def _cells(codes: NDArray[np.integer], weight: Floats | None, n: int, grid: int) -> Places | None:
    """The cell of each code on the grid of 2**grid quantiles; None where there are no more codes than that."""
    if n <= 2**grid:
        return None
    sizes = np.bincount(codes, weight, minlength=n)
    return labels_of(quantile_boundaries(np.concatenate([[0.0], np.cumsum(sizes)]), grid), n)


def _of_cells(labels: Places, cells: Places | None) -> Places:
    return labels if cells is None else labels[cells]


def _first_of(cells: Places) -> Places:
    """The first code of each cell."""
    return np.append(0, np.flatnonzero(np.diff(cells)) + 1)


def _equal_parts(sizes: NDArray[np.floating] | NDArray[np.integer], n: int) -> Places:
    """The boundaries at or above n - 1 equally spaced quantiles, and the last."""
    before = np.cumsum(sizes)
    wanted = before[-1] * np.arange(1, n) / n
    return np.unique(np.append(np.searchsorted(before, wanted) + 1, len(sizes)))
