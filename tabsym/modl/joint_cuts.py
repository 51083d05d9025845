"""A column and a regression's target cut together: from coarse cells to all values.

The searches for the column's parts and for the target's intervals alternate from many starts, on coarse cells; the best
go on over all values. Where one side has few values, every partition of it is tried: that alone certifies an
optimum. No bound is known for larger grids.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from tabsym.modl.cuts import deadline_of, is_cheaper
from tabsym.modl.grid import (
    Grid,
    GridRows,
    GridSearch,
    Sources,
    at_infinite_cost,
    every_grid,
    one_cell,
    with_target,
)
from tabsym.modl.partition import (
    Partition,
    cheapest,
    ends_of,
    ends_of_equal_parts,
    labels_along,
    labels_of,
    quantile_boundaries,
    without_gaps,
)

Indices = NDArray[np.int64]
Floats = NDArray[np.float64]

# all of these trade time for cost; benchmarks/modl/regression.py shows both
START_NUMBERS = (2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Numbers of equally frequent intervals of the target, or parts of the column, from which the search starts."""
MAX_JOINED_BY_TWO = 8
"""Up to this number of groups every two are joined."""
MAX_JOINED = 128
"""Of more cuts than these, of the column or the target, those that are cheapest to remove are changed, without a
proof."""
SHAKEN = 12
"""Number of models that are made from one by moving some of its target cuts."""
MAX_CHANGED_CATEGORIES = 200
"""Of more categories than these target cuts are not changed one by one but with groups near those found."""
MANY_INTERVALS, MANY_INTERVALS_OF_CATEGORIES = 8, 24
"""Models of this many target intervals and more are compared with ones of numbers between `START_NUMBERS` and above; of
categories, whose groups many starts find, only near the largest of these."""
POWERS_OF_TWO = (16, 32, 64, 128, 256)
START_GRID = 7
"""Starts are cut on the grid of 2**7 quantiles of the column and of the target."""
SOURCE_GRID, TARGET_GRID = 12, 10
"""Columns of more than 2**12 distinct values are cut on the grid of 2**12 quantiles, targets at 2**10."""
MAX_CHANGES = 12
"""Rounds in which the best model on coarse cells is changed, as long as that helps."""
MAX_CHANGES_QUICK = 2
"""Likewise without a proof, of a number; of categories none."""
MAX_NEAR = 5
"""Number of models of categories that are refined, with groups near those found, without a lower bound; then the best
alone."""
MAX_ABOVE_NULL = 5.0
"""A model that costs more than an uninformative column by more than this number of nats is dropped."""
MAX_CHANGES_WHERE_CUT, MAX_FURTHER = 4, 12
"""Rounds in which the best is changed then, and how many of the changed models go on after their first round."""
MIDDLE_GRID = 9
"""Changes are then on the grid of 2**9 quantiles, and on all cells so near to the target's cuts:"""
NEAR_A_CUT = (0, 1, 2, 3, 5, 8, 13, 21)
MAX_FINISHED = 3
"""Number of the best models that are refined over all values."""
MAX_CHANGED_AGAIN = 3
"""Rounds in which the best of them is changed, as long as that helps."""
MAX_FINISHED_CATEGORIES = 2000
"""Of more categories than these the best model alone goes on."""


def starts(search: GridSearch) -> Iterator[Indices]:
    """Target intervals to start from: of equal size, and the best ones for parts of equal size."""
    rows = search.rows
    for number in START_NUMBERS:
        if number <= rows.n_targets:
            yield labels_of(ends_of_equal_parts(rows.target_sizes, number), rows.n_targets)
    if rows.n_targets <= max(START_NUMBERS):
        yield np.arange(rows.n_targets)
    order = _by_mean_rank(rows) if search.sources.categorical else np.arange(rows.n_sources)
    for number in START_NUMBERS:
        if number <= rows.n_sources:
            parts = labels_along(order, ends_of_equal_parts(rows.source_sizes[order], number))
            yield search.target_given(parts, quick=True)


def changed(search: GridSearch, parts: Indices, labels: Indices) -> Iterator[Indices]:
    """Changes of these target intervals: with more cuts, with fewer, with some elsewhere; the best of joined parts."""
    rows = search.rows
    yield from _with_more_cuts(labels, rows.target_sizes)
    if rows.n_sources > MAX_CHANGED_CATEGORIES and search.sources.categorical:
        return
    yield from _shaken(labels, rows.target_sizes, np.random.RandomState(search.sources.settings.random_state))
    table, most = rows.table(parts, labels), None if search.sources.is_thorough else MAX_JOINED
    joined = set(_cheapest_joins(table.T, most, shift=table.shape[1] - 1).tolist())
    for a, b in _neighbours(int(parts.max()) + 1, categorical=search.sources.categorical):
        if search.sources.categorical or a in joined:
            yield search.target_given(without_gaps(np.where(parts == b, a, parts)), quick=True)
    yield from _cut_by_cut(labels, _cheapest_joins(table, most))


def near(search: GridSearch, labels: Indices, round_: int) -> Iterator[Indices]:
    """Changes of these target intervals, for categories whose groups are near: with more, fewer, or other cuts."""
    sizes, seed = search.rows.target_sizes, [search.sources.settings.random_state, round_]
    yield from _with_more_cuts(labels, sizes)
    yield from _shaken(labels, sizes, np.random.RandomState(seed))
    yield from _cut_by_cut(labels, np.arange(labels.max()))


def _with_more_cuts(labels: Indices, sizes: NDArray[np.number]) -> Iterator[Indices]:
    """With those of each number of equally frequent intervals, too."""
    for number in START_NUMBERS:
        if number <= len(labels):
            yield labels_of(np.union1d(ends_of(labels), ends_of_equal_parts(sizes, number)), len(labels))


def _shaken(labels: Indices, sizes: NDArray[np.number], rng: np.random.RandomState) -> Iterator[Indices]:
    """Some cuts gone, as many or fewer elsewhere: at 32 quantiles, of fewer targets at nearly every boundary."""
    n, ends = len(labels), ends_of(labels)
    positions = ends_of_equal_parts(sizes, 2 * n if n < 32 else 32)[:-1]
    for _ in range(SHAKEN):
        remaining = ends[:-1][rng.random_sample(len(ends) - 1) < rng.random_sample()]
        new = rng.choice(positions, rng.randint(len(ends) + 1)) if len(positions) else positions
        yield labels_of(np.unique(np.concatenate([remaining, new, ends[-1:]])), n)


def _cheapest_joins(table: Floats, most: int | None, shift: int = 0) -> Indices:
    """Which intervals (T, I) to join to the next one: all, or those of `most` joins that raise the cost least.

    `shift`, added to the rows of an interval: the number of classes less 1 where their frequencies are coded too.
    """
    n_joins = table.shape[1] - 1
    if most is None or n_joins <= most:
        return np.arange(n_joins)

    def costs(counts: Floats) -> Floats:
        return np.asarray(gammaln(counts.sum(axis=0) + shift + 1.0) - gammaln(counts + 1.0).sum(axis=0))

    apart = costs(table)
    return np.sort(np.argsort(costs(table[:, 1:] + table[:, :-1]) - apart[1:] - apart[:-1], kind="stable")[:most])


def _cut_by_cut(labels: Indices, cuts: Indices, *, elsewhere: bool = True) -> Iterator[Indices]:
    """Without each of these `cuts`, without it and the one before, and with it `elsewhere` between its neighbours."""
    n, ends = len(labels), ends_of(labels)
    for position in cuts.tolist():
        remaining = np.delete(ends, position)
        yield labels_of(remaining, n)
        if position > 0:
            yield labels_of(np.delete(remaining, position - 1), n)
        if elsewhere:
            left = ends[position - 1] if position else 0
            for there in _elsewhere(left, ends[position], ends[position + 1]):
                yield labels_of(np.union1d(remaining, there), n)


def _elsewhere(left: int, here: int, right: int) -> list[int]:
    """Indices between two neighbours: in the middle of either side, and 1, 4, 16, ... cells away.

    Steps of 2, 4, 8, ... take up to half as long again and found nothing more on nine columns but one (2e-5).
    """
    candidates, step = {(left + here) // 2, (here + right + 1) // 2}, 1
    while step < right - left:
        candidates |= {here - step, here + step}
        step *= 4
    return sorted(position for position in candidates if left < position < right and position != here)


def _neighbours(n: int, *, categorical: bool) -> list[tuple[int, int]]:
    """Parts of the column that can be joined, by the number of parts."""
    if not categorical:
        return [(a, a + 1) for a in range(n - 1)]
    return list(combinations(range(n), 2)) if n <= MAX_JOINED_BY_TWO else []


def _by_mean_rank(rows: GridRows) -> Indices:
    """Modalities in the order of their mean rank of the target."""
    weight = np.ones(len(rows.source)) if rows.weight is None else rows.weight
    before = np.cumsum(rows.target_sizes)
    before = np.ldexp(before, -np.frexp(before[-1])[1])  # at most 1, to the last digit
    ranks = np.bincount(rows.source, weight * before[rows.target], minlength=rows.n_sources)
    return np.argsort(ranks / rows.source_sizes, kind="stable")


def cut_jointly(rows: GridRows, sources: Sources) -> Grid:
    """The grid of least cost that the search finds; one cell where the column is uninformative."""
    null = one_cell(rows, sources)
    if min(rows.n_sources, rows.n_targets) < 2 or sources.settings.max_parts == 1:
        return replace(null, source=replace(null.source, lower_bound=null.cost))
    deadline = deadline_of(sources.settings.time_limit)
    whole = GridSearch(rows, sources, deadline)
    known = every_grid(rows, sources, deadline, partial(whole.target_given, quick=False))
    if known is not None:
        best = known if is_cheaper(known.cost, null.cost) else null
        return replace(best, source=replace(best.source, lower_bound=best.cost))
    source_cells = None if sources.categorical else _cells(rows.source_sizes, SOURCE_GRID)
    target_cells = _cells(rows.target_sizes, TARGET_GRID)
    coarser = sources.coarser(source_cells)
    fine = GridSearch(rows.coarser(source_cells, target_cells), coarser, deadline)
    full = GridSearch(rows.coarser(source_cells, None), coarser, deadline)
    best = _searched(_Resolutions(fine, full, target_cells), null)
    if best is null:
        return null
    return replace(best, source=replace(best.source, labels=_of_values(best.source.labels, source_cells)))


def with_best_target(rows: GridRows, sources: Sources, source: Partition, prior: float) -> Grid:
    """These parts of the column, of this prior, with the best intervals of the target; of many, near the best."""
    cells = _cells(rows.target_sizes, TARGET_GRID)
    labels = GridSearch(rows.coarser(None, cells), sources).target_given(source.labels, quick=False)
    grid = with_target(rows, sources, source, prior, _of_values(labels, cells))
    return grid if cells is None else GridSearch(rows, sources).slide(grid)


@dataclass(frozen=True)
class _Resolutions:
    """The column against cells of the target, and against all its values; `cells`: that of each value, None: itself."""

    fine: GridSearch
    full: GridSearch
    cells: Indices | None

    def finished(self, labels: Indices, near: Partition | None = None) -> Grid:
        """From intervals of cells: full searches of both sides in turn, then the target's cuts among all its values."""
        best = self.fine.alternate(labels, quick=False, near=near)
        if not np.isfinite(best.cost):
            return best
        labels = _of_values(best.target_labels, self.cells)
        best = with_target(self.full.rows, self.full.sources, best.source, best.prior, labels)
        return best if self.cells is None else self.full.slide(best)

    def changed(self, best: Grid) -> list[Grid]:
        """Models with more target cuts than this one, with fewer, or with some elsewhere, on cells."""
        return self.fine.from_each(changed(self.fine, best.source.labels, _of_cells(best.target_labels, self.cells)))

    def changed_where_cut(self, best: Grid) -> list[Grid]:
        """Up to three cheaper models with more target cuts or fewer, on cells that are fine where this one is cut."""
        fine, labels = self.fine, _of_cells(best.target_labels, self.cells)
        cells = _near_cuts(fine.rows, labels)
        source_cells = None
        if not fine.sources.categorical:
            source_cells = _cells(fine.rows.source_sizes, MIDDLE_GRID)
        rows, labels = fine.rows.coarser(source_cells, cells), _of_cells(labels, cells)
        search = GridSearch(rows, fine.sources.coarser(source_cells), fine.deadline)
        start = best if fine.sources.categorical else search.alternate(labels)
        cuts = _cheapest_joins(rows.table(start.source.labels, labels), MAX_JOINED)
        more, fewer = _with_more_cuts(labels, rows.target_sizes), _cut_by_cut(labels, cuts, elsewhere=False)
        grids = search.from_changes(start, chain(more, fewer), MAX_FURTHER)
        cheaper = sorted((grid for grid in grids if is_cheaper(grid.cost, start.cost)), key=lambda grid: grid.cost)
        return [replace(grid, target_labels=grid.target_labels[cells]) for grid in cheaper[:MAX_FINISHED]]


def _searched(search: _Resolutions, null: Grid) -> Grid:
    """The best models on coarse cells over all values, the best of those changed; `null` where nothing is cheaper."""
    fine, best = search.fine, null
    if not fine.sources.is_thorough:
        return _without_proof(search, null)
    alone = fine.sources.categorical and fine.rows.n_sources > MAX_FINISHED_CATEGORIES
    for start, _ in _coarse_models(fine)[: 1 if alone else MAX_FINISHED]:
        if best is not null and time.monotonic() > fine.deadline:
            break
        best = cheapest(best, search.finished(start))
    if best is null:
        return null
    coarse = fine.alternate(_of_cells(best.target_labels, search.cells))
    other = _of_other_numbers(fine, coarse)
    if other is not coarse:
        best = cheapest(best, search.finished(other.target_labels))
    if fine.sources.categorical and MAX_CHANGED_CATEGORIES < fine.rows.n_sources <= MAX_FINISHED_CATEGORIES:
        best = _changed_nearby(search, best)
    return search.full.settled(_changed_again(search, best))


def _without_proof(search: _Resolutions, null: Grid) -> Grid:
    """The best model on coarse cells over all values, or a changed one; `null` where nothing is cheaper."""
    fine, best, first = search.fine, at_infinite_cost(null), 0
    categorical = fine.sources.categorical
    models = _coarse_models(fine)[: MAX_NEAR if categorical else MAX_FINISHED]
    for position, (labels, source) in enumerate(models):
        if position > 0 and time.monotonic() > fine.deadline:
            break
        grid = fine.alternate(labels, near=source) if categorical else fine.alternate(labels, quick=False)
        if grid.cost < best.cost:
            best, first = grid, position
    if best.cost > null.cost + MAX_ABOVE_NULL:
        return null
    best = _of_other_numbers(fine, best)
    best = search.finished(best.target_labels, near=best.source if categorical else None)
    if not categorical:
        best = _changed_again(search, best)
    if categorical and first > 0 and time.monotonic() < fine.deadline:
        best = cheapest(best, search.finished(models[0][0]))
    for _ in range(MAX_CHANGES_WHERE_CUT):
        before = best.cost
        for changed_grid in search.changed_where_cut(best):
            if time.monotonic() < fine.deadline:
                grid = search.finished(changed_grid.target_labels, near=changed_grid.source if categorical else None)
                best = cheapest(best, grid)
        if not is_cheaper(best.cost, before):
            break
    return cheapest(null, best)


def _of_other_numbers(fine: GridSearch, best: Grid) -> Grid:
    """This model, or where it has many target intervals a cheaper one that starts from about as many or more.

    Powers of two first, whose quantiles are the cheapest to describe, then numbers on both sides of the best, by ever
    smaller factors: a column that nearly determines the target has about as many intervals as the root of the number of
    rows, all equally frequent.
    """
    n_intervals = int(best.target_labels.max()) + 1
    if n_intervals < (MANY_INTERVALS_OF_CATEGORIES if fine.sources.categorical else MANY_INTERVALS):
        return best

    def from_equal_parts(number: float) -> Grid:
        ends = ends_of_equal_parts(fine.rows.target_sizes, min(round(number), fine.rows.n_targets))
        return fine.alternate(labels_of(ends, fine.rows.n_targets))

    number, step = float(n_intervals), 2.0**0.5
    for power in POWERS_OF_TWO:
        if power > n_intervals / 2:
            grid = from_equal_parts(power)
            if is_cheaper(grid.cost, best.cost):
                best, number = grid, float(power)
    while number * (step - 1.0) > 1.0:
        for nearby in (number / step, number * step):
            grid = from_equal_parts(nearby)
            if is_cheaper(grid.cost, best.cost):
                best, number = grid, nearby
                break
        else:
            step = step**0.5
    return best


def _coarse_models(fine: GridSearch) -> list[tuple[Indices, Partition]]:
    """Target intervals, of the fine cells, of models from all starts on coarse cells: those of the cheapest first."""
    rows, sources = fine.rows, fine.sources
    source_cells = None if sources.categorical else _cells(rows.source_sizes, START_GRID)
    target_cells = _cells(rows.target_sizes, START_GRID)
    search = GridSearch(rows.coarser(source_cells, target_cells), sources.coarser(source_cells), fine.deadline)
    grids = search.from_each(starts(search))
    best = cheapest(*grids)
    quick = 0 if sources.categorical else MAX_CHANGES_QUICK
    for _ in range(MAX_CHANGES if sources.is_thorough else quick):
        further = search.from_each(changed(search, best.source.labels, best.target_labels))
        grids += further
        better = min(further, key=lambda grid: grid.cost, default=best)
        if not is_cheaper(better.cost, best.cost) or time.monotonic() > fine.deadline:
            break
        best = better
    grids.sort(key=lambda grid: grid.cost)
    labels = [(_of_values(grid.target_labels, target_cells), grid.source) for grid in grids if np.isfinite(grid.cost)]
    once = {target.tobytes(): (target, source) for target, source in reversed(labels)}
    return list(once.values())[::-1]


def _changed_again(search: _Resolutions, best: Grid) -> Grid:
    """The best model, or a cheaper one with more target cuts, or one less, over all values."""
    for _ in range(MAX_CHANGED_AGAIN):
        before = best.cost
        for grid in sorted(search.changed(best), key=lambda grid: grid.cost)[:MAX_FINISHED]:
            if is_cheaper(grid.cost, best.cost) and time.monotonic() < search.fine.deadline:
                best = cheapest(best, search.finished(grid.target_labels))
        if not is_cheaper(best.cost, before):
            break
    return best


def _changed_nearby(search: _Resolutions, best: Grid) -> Grid:
    """The best model of many categories, or a cheaper one with similar groups: a search for new ones takes a second."""
    fine, start = search.fine, best
    labels = _of_cells(best.target_labels, search.cells)
    near_best = fine.alternate(labels, near=best.source)
    for round_ in range(MAX_CHANGES):
        models = [near_best]
        for start_labels in near(fine, labels, round_):
            if time.monotonic() > fine.deadline:
                break
            models.append(fine.alternate(start_labels, near=near_best.source))
        cheapest_model = cheapest(*models)
        if not is_cheaper(cheapest_model.cost, near_best.cost):
            break
        near_best, labels = cheapest_model, cheapest_model.target_labels
    return cheapest(start, search.finished(labels))


def _cells(sizes: NDArray[np.number], grid: int) -> Indices | None:
    """The cell of each code on the grid of 2**grid quantiles; None where there are no more codes than that."""
    if len(sizes) <= 2**grid:
        return None
    return labels_of(quantile_boundaries(np.concatenate([[0.0], np.cumsum(sizes)]), grid), len(sizes))


def _near_cuts(rows: GridRows, labels: Indices) -> Indices:
    """The cell of each target on the middle grid, and finer where these target intervals are cut."""
    n = rows.n_targets
    sizes = np.concatenate([[0.0], np.cumsum(rows.target_sizes)])
    steps = np.array(NEAR_A_CUT)
    near = (ends_of(labels)[:-1, None] + np.concatenate([-steps, steps])[None, :]).ravel()
    ends = np.concatenate([quantile_boundaries(sizes, MIDDLE_GRID), near[(near > 0) & (near < n)]])
    return labels_of(np.unique(ends), n)


def _of_values(labels: Indices, cells: Indices | None) -> Indices:
    """The label of each value, from that of its cell."""
    return labels if cells is None else labels[cells]


def _of_cells(labels: Indices, cells: Indices | None) -> Indices:
    """The label of each cell: that of its first value."""
    return labels if cells is None else labels[np.append(0, np.flatnonzero(np.diff(cells)) + 1)]
