"""A column and a regression's target cut together: from coarse cells to all values.

Given the target's intervals the column's parts are those of classes, and given the column's parts the target's
intervals are exact cuts. The two alternate from many starts, on coarse cells; the best go on over all
values. Where one side has few values, every partition of it is looked at, with the best one of the other
side: that alone certifies an optimum. No bound is known for larger grids.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tabsym.modl.ends import labels_of
from tabsym.modl.grid import Grid, Options, Rows, one_cell, with_target
from tabsym.modl.grid_search import GridSearch
from tabsym.modl.grid_small import every_grid
from tabsym.modl.grid_starts import MOST_CHANGED_SYMBOLS, changed, near, starts
from tabsym.modl.hull import is_cheaper
from tabsym.modl.quantiles import quantile_boundaries
from tabsym.modl.search import deadline_of

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

# all of these trade time for cost; benchmarks/modl/regression.py shows both
START_GRID = 7
"""Starts are cut on the grid of 2**7 quantiles of the column and of the target."""
SOURCE_GRID, TARGET_GRID = 12, 10
"""Columns of more than 2**12 distinct values are cut on the grid of so many quantiles, targets of 2**10 likewise."""
MOST_CHANGES = 12
"""Rounds in which the best model on coarse cells is changed, as long as that helps."""
MOST_FINISHED = 3
"""So many of the best models go on over all values."""
MOST_CHANGED_AGAIN = 3
"""Rounds in which the best of them is changed, as long as that helps."""
MOST_FINISHED_SYMBOLS = 2000
"""Of more categories than these the best model alone goes on."""


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
    coarser = options.coarser(source_cells)
    fine = GridSearch(rows.coarser(source_cells, target_cells), coarser, deadline)
    full = GridSearch(rows.coarser(source_cells, None), coarser, deadline)
    best = _searched(_Resolutions(fine, full, target_cells), null)
    if best is null:
        return null
    return replace(best, source=replace(best.source, labels=_of_values(best.source.labels, source_cells)))


@dataclass(frozen=True)
class _Resolutions:
    """The column against cells of the target, and against all its values; `cells`: that of each value, None: itself."""

    fine: GridSearch
    full: GridSearch
    cells: Places | None

    def finished(self, labels: Places) -> Grid:
        """From intervals of cells: full searches of both sides in turn, then the target's cuts among all its values."""
        best = self.fine.alternate(labels, quick=False)
        if not np.isfinite(best.cost):
            return best
        labels = _of_values(best.target_labels, self.cells)
        best = with_target(self.full.rows, self.full.options, best.source, best.prior, labels)
        return best if self.cells is None else self.full.slide(best)

    def changed(self, best: Grid) -> list[Grid]:
        """Models with more target cuts than this one, with fewer, or with some elsewhere, on cells."""
        return self.fine.from_each(changed(self.fine, best.source.labels, _of_cells(best.target_labels, self.cells)))


def _searched(search: _Resolutions, null: Grid) -> Grid:
    """The best models on coarse cells over all values, the best of those changed; `null` where nothing is cheaper."""
    fine, best = search.fine, null
    alone = not fine.options.prove or (fine.options.symbolic and fine.rows.n_sources > MOST_FINISHED_SYMBOLS)
    for start in _coarse_models(fine)[: 1 if alone else MOST_FINISHED]:
        if best is not null and time.monotonic() > fine.deadline:
            break
        best = min(best, search.finished(start), key=lambda one: one.cost)
    if best is null or not fine.options.prove:
        return best
    if fine.options.symbolic and MOST_CHANGED_SYMBOLS < fine.rows.n_sources <= MOST_FINISHED_SYMBOLS:
        best = _changed_nearby(search, best)
    return search.full.settled(_changed_again(search, best))


def _coarse_models(fine: GridSearch) -> list[Places]:
    """Target intervals, of the fine cells, of models from all starts on coarse cells: those of the cheapest first."""
    rows, options = fine.rows, fine.options
    source_cells = None if options.symbolic else _cells(rows.source, rows.weight, rows.n_sources, START_GRID)
    target_cells = _cells(rows.target, rows.weight, rows.n_targets, START_GRID)
    search = GridSearch(rows.coarser(source_cells, target_cells), options.coarser(source_cells), fine.deadline)
    found = search.from_each(starts(search))
    best = min(found, key=lambda one: one.cost)
    for _ in range(MOST_CHANGES if options.prove else 0):
        further = search.from_each(changed(search, best.source.labels, best.target_labels))
        found += further
        better = min(further, key=lambda one: one.cost, default=best)
        if not is_cheaper(better.cost, best.cost) or time.monotonic() > fine.deadline:
            break
        best = better
    found.sort(key=lambda one: one.cost)
    labels = [_of_values(one.target_labels, target_cells) for one in found if np.isfinite(one.cost)]
    return list({one.tobytes(): one for one in labels}.values())  # each but once


def _changed_again(search: _Resolutions, best: Grid) -> Grid:
    """The best model, or a cheaper one with more target cuts, or one less, over all values."""
    for _ in range(MOST_CHANGED_AGAIN):
        before = best.cost
        for one in sorted(search.changed(best), key=lambda one: one.cost)[:MOST_FINISHED]:
            if is_cheaper(one.cost, best.cost) and time.monotonic() < search.fine.deadline:
                best = min(best, search.finished(one.target_labels), key=lambda one: one.cost)
        if not is_cheaper(best.cost, before):
            break
    return best


def _changed_nearby(search: _Resolutions, best: Grid) -> Grid:
    """The best model of many categories, or a cheaper one with similar groups: a search for new ones takes a second."""
    fine, start = search.fine, best
    labels = _of_cells(best.target_labels, search.cells)
    near_best = fine.nearby(best.source, labels)
    for round_ in range(MOST_CHANGES):
        models = [near_best]
        for other in near(fine, labels, round_):
            if time.monotonic() > fine.deadline:
                break
            models.append(fine.nearby(near_best.source, other))
        found = min(models, key=lambda one: one.cost)
        if not is_cheaper(found.cost, near_best.cost):
            break
        near_best, labels = found, found.target_labels
    return min(start, search.finished(labels), key=lambda one: one.cost)


def _cells(codes: NDArray[np.integer], weight: Floats | None, n: int, grid: int) -> Places | None:
    """The cell of each code on the grid of 2**grid quantiles; None where there are no more codes than that."""
    if n <= 2**grid:
        return None
    sizes = np.bincount(codes, weight, minlength=n)
    return labels_of(quantile_boundaries(np.concatenate([[0.0], np.cumsum(sizes)]), grid), n)


def _of_values(labels: Places, cells: Places | None) -> Places:
    """The label of each value, from that of its cell."""
    return labels if cells is None else labels[cells]


def _of_cells(labels: Places, cells: Places | None) -> Places:
    """The label of each cell: that of its first value."""
    return labels if cells is None else labels[np.append(0, np.flatnonzero(np.diff(cells)) + 1)]
