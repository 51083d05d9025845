"""One search for a grid, at one resolution: the column's parts and the target's intervals in turn."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tabsym.modl import kernels_ordered as kernels
from tabsym.modl.criterion import target_prior
from tabsym.modl.ends import ends_of, labels_of
from tabsym.modl.grid import Grid, Options, Rows, as_grid, dear, one_cell, with_target
from tabsym.modl.hull import Best, Bounds, is_cheaper
from tabsym.modl.partition import Partition
from tabsym.modl.search import Task, between_unlike, descend_cuts, exact_cuts, make_task, take_one_cut

Places = NDArray[np.int64]

MOST_TARGET_INTERVALS = 256
"""Numbers of target intervals that have a prior: time, for models of more intervals."""
MOST_TURNS = 12
"""Searches of either side in turn, or moves of cuts after them: time for cost."""


@dataclass
class GridSearch:
    """A search at one resolution of the column and the target."""

    rows: Rows
    options: Options
    deadline: float = np.inf
    seen: set[bytes] = field(default_factory=set)  # target intervals that were started from

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
        for _ in range(MOST_TURNS):
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

    def nearby(self, source: Partition, labels: Places) -> Grid:
        """Groups near these for other intervals of the target, and so on in turn: quick where both are."""
        best = dear(one_cell(self.rows, self.options))
        for _ in range(MOST_TURNS):
            if labels.max() == 0:
                break
            source = self.options.regroup(self.rows.table(None, labels), source)
            if source.n_parts < 2:
                break
            given = as_grid(self.rows, self.options, source, labels)
            labels = self.target_given(source.labels, quick=True)
            found = min(as_grid(self.rows, self.options, source, labels), given, key=lambda one: one.cost)
            if not is_cheaper(found.cost, best.cost):
                break
            best, labels = found, found.target_labels
        return best

    def source_given(self, labels: Places, *, quick: bool) -> Partition:
        """The column's parts for these intervals of the target."""
        left = None if np.isinf(self.deadline) else max(0.0, self.deadline - time.monotonic())
        return self.options.partition(self.rows.table(None, labels), quick=quick, time_limit=left)

    def target_given(self, parts: Places, *, quick: bool) -> Places:
        """The target's intervals for these parts of the column."""
        task, boundaries = self._target_task(parts)
        most = min(len(boundaries), MOST_TARGET_INTERVALS)
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
        for _ in range(MOST_TURNS):
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
        return task, between_unlike(task, np.arange(1, self.rows.n_targets + 1))
