"""The best grid where one side has few values: every partition of it, each with the best one of the other side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from tabsym.modl.costs import groups_and_granularity, intervals_and_granularity
from tabsym.modl.ends import ends_of
from tabsym.modl.grid import Grid, Options, Rows, as_grid, dear, one_cell
from tabsym.modl.partition import Partition
from tabsym.modl.subsets import MOST_SUBSETS
from tabsym.modl.units import sum_by

Places = NDArray[np.int64]
TargetGiven = Callable[[Places], Places]

# partitions of the few, and the searches that each asks for of the many: time for exact grids
FEW_TARGETS, MOST_VALUES_BESIDE = 9, 64
"""Up to so many distinct targets each of their 256 partitions is looked at, beside so many distinct values or less."""
FEW_VALUES, FEW_SYMBOLS, MOST_TARGETS_BESIDE = 6, 5, 1024
"""Numbers of values or of categories up to which all 31 or 51 partitions are tried, and of distinct targets."""


def every_grid(rows: Rows, options: Options, deadline: float, target_given: TargetGiven) -> Grid | None:
    """The best grid of two parts or more; None where there are too many to look at, or no time.

    `target_given` (parts) finds the best intervals of the target for these parts of the column. Infinitely dear
    where the constraints leave no two parts.
    """
    few = FEW_SYMBOLS if options.symbolic else FEW_VALUES
    most = MOST_SUBSETS if options.symbolic else MOST_VALUES_BESIDE
    if rows.n_sources <= few and rows.n_targets <= MOST_TARGETS_BESIDE and not options.monotonic:
        found = (_of_source(rows, options, labels, target_given) for labels in _every_source(rows, options))
    elif rows.n_targets <= FEW_TARGETS and rows.n_sources <= most:
        found = (_of_target(rows, options, labels) for labels in every_cut(rows.n_targets))
    else:
        return None
    best = dear(one_cell(rows, options))
    for one in found:
        if time.monotonic() > deadline:
            return None
        best = min(best, one, key=lambda one: one.cost)
    return best


def _of_target(rows: Rows, options: Options, labels: Places) -> Grid:
    """The best parts of the column for these intervals of the target."""
    source = options.partition(rows.table(None, labels), quick=False)
    if source.n_parts < 2:
        return dear(one_cell(rows, options))
    return as_grid(rows, options, source, labels)


def _of_source(rows: Rows, options: Options, labels: Places, target_given: TargetGiven) -> Grid:
    """The best intervals of the target for these parts of the column."""
    sizes = np.bincount(rows.source, rows.weight, minlength=rows.n_sources)[:, None].astype(np.float64)
    if options.symbolic:
        cost, granularity = groups_and_granularity(sizes, labels, options.criterion, options.n_candidates)
    else:
        cost, granularity = intervals_and_granularity(sizes, ends_of(labels), options.criterion, options.n_candidates)
    # of one class the cost is the prior
    counts = sum_by(labels, sizes, int(labels.max()) + 1)
    source = Partition(options.criterion, labels, counts, cost, cost, -np.inf, granularity)
    return as_grid(rows, options, source, target_given(labels))


def _every_source(rows: Rows, options: Options) -> Iterator[Places]:
    """The partitions of the column that its options allow, but for the one into a single part."""
    sizes = np.bincount(rows.source, rows.weight, minlength=rows.n_sources)
    for labels in every_set(rows.n_sources) if options.symbolic else every_cut(rows.n_sources):
        n_parts = int(labels.max()) + 1
        enough = np.bincount(labels, sizes).min() >= options.min_part_count
        if 1 < n_parts <= (options.max_parts or n_parts) and enough:
            yield labels


def every_cut(n: int) -> Iterator[Places]:
    """Every partition of n values in order into intervals, as labels (n,)."""
    for cuts in range(2 ** (n - 1)):
        yield np.append(0, np.cumsum([cuts >> place & 1 for place in range(n - 1)])).astype(np.int64)


def every_set(n: int) -> Iterator[Places]:
    """Every partition of n categories, as labels (n,): each category in a group there is, or in a new one."""
    labels = [[0]]
    for _ in range(n - 1):
        labels = [[*one, group] for one in labels for group in range(max(one) + 2)]
    yield from (np.array(one, dtype=np.int64) for one in labels)
