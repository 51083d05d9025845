"""Grouping with more than two classes: local search from many starts, as no order of the modalities is enough."""

from __future__ import annotations

import time

import numpy as np

from tabsym.modl.ground import Ground, Grouping, cut_along
from tabsym.modl.group_search import GroupSearch
from tabsym.modl.hull import is_cheaper
from tabsym.modl.local import cheapest_step, follow, join_path, polish
from tabsym.modl.units import Units, by_main_axis, by_share, sum_by, without_gaps

# all of these trade time for cost; benchmarks/modl/exact.py shows both, of up to 20 categories
_SEARCHED = 3  # granularities that are searched thoroughly, those whose quick starts are best
_EQUAL_CELLS = 32
_MOST_JOINED = 300  # units, or cells that starts cut together, from which greedy joins begin
_MOST_ORDERS = 12  # classes along whose shares the units are cut
_MANY_UNITS = 2000  # of more than these a single start has to do
_MANY_ORDERS, _MANY_POLISHED = 3, 2  # of many units: classes, and starts that are polished
_RESTARTS, _RESTARTS_OF_FEW, _FEW_UNITS = 8, 40, 32  # of up to 32 units a restart takes less than a millisecond
_MOST_RESTARTS = 1000  # within a time limit


def search_many_classes(search: GroupSearch, families: list[Units], start: Grouping) -> Grouping:
    """The best grouping from many starts, at the granularities whose quick starts are best."""
    quick: list[tuple[float, int, Ground, Grouping]] = []
    for units in families:
        ground = search.ground(search.joined(units))
        found = quick_start(ground, search.rng)
        quick.append((found.cost, len(quick), ground, found))
        if time.monotonic() > search.deadline:
            break
    quick.sort(key=lambda one: one[:2])
    best = start
    for _, _, ground, found in quick[:_SEARCHED]:
        better = thorough(ground, found, search.rng, insist=search.insist)
        if is_cheaper(better.cost, best.cost):
            best = better.of_modalities(ground.units)
    return best


def quick_start(ground: Ground, rng: np.random.RandomState) -> Grouping:
    """The best of cuts along the main axis, of equal cells and, for not too many units, of greedy joins, polished."""
    found = cut_along(ground, by_main_axis(ground.units.counts))
    found = min(found, polish(ground, equal_cells(ground), rng), key=lambda one: one.cost)
    if len(ground.units) <= _MANY_UNITS and time.monotonic() < ground.deadline:
        joins = polish(ground, _by_joins(ground, [found]), rng)
        found = min(polish(ground, found, rng), joins, key=lambda one: one.cost)
    return found


def thorough(ground: Ground, first: Grouping, rng: np.random.RandomState, *, insist: bool) -> Grouping:
    """Starts along each class's share and by greedy joins, each polished; then perturbed restarts of the best."""
    counts, many = ground.units.counts, len(ground.units) > _MANY_UNITS
    starts = [first]
    classes = np.argsort(-counts.sum(axis=0))[: _MANY_ORDERS if many else _MOST_ORDERS]
    for j in classes:
        if time.monotonic() < ground.deadline:
            starts.append(cut_along(ground, by_share(counts, j)))
    if time.monotonic() < ground.deadline:
        starts.append(_by_joins(ground, starts))
    starts.sort(key=lambda one: one.cost)
    found = [polish(ground, one, rng) for one in starts[: _MANY_POLISHED if many else None]]
    best = min(found, key=lambda one: one.cost)
    for _ in range(_MOST_RESTARTS if insist else _restarts(len(ground.units))):
        if time.monotonic() >= ground.deadline:
            break
        best = min(best, polish(ground, _shaken(ground, best, rng), rng), key=lambda one: one.cost)
    return best


def _restarts(n_units: int) -> int:
    """How many, without a time limit."""
    if n_units <= _FEW_UNITS:
        return _RESTARTS_OF_FEW
    return _RESTARTS if n_units <= _MANY_UNITS else 0


def equal_cells(ground: Ground) -> Grouping:
    """Cells of equal size along the main axis: more than there will be groups, for moves and joins to sort out.

    Where the prior of a second group alone outweighs what any two groups save, cuts find nothing.
    """
    order = by_main_axis(ground.units.counts)
    sizes = np.cumsum(ground.units.counts[order].sum(axis=1))
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = np.minimum(_EQUAL_CELLS * sizes / (sizes[-1] + 1.0), len(ground.prior) - 1)
    return ground.price(labels)


def _by_joins(ground: Ground, starts: list[Grouping]) -> Grouping:
    """Greedy joins from single units, or from the cells that the starts cut together."""
    counts = ground.units.counts
    cells = np.arange(len(counts))
    if len(counts) > _MOST_JOINED:
        cells = np.zeros(len(counts), dtype=np.int64)
        for one in sorted(starts, key=lambda one: one.cost):
            finer = without_gaps(cells * (one.labels.max() + 1) + one.labels)
            if finer.max() >= _MOST_JOINED:
                break
            cells = finer
    n = int(cells.max()) + 1
    if n < 2:
        return ground.price(cells)
    merged, totals = join_path(sum_by(cells, counts, n), ground.table)
    return ground.price(follow(merged[: cheapest_step(ground, totals)], n)[cells])


def _shaken(ground: Ground, best: Grouping, rng: np.random.RandomState) -> Grouping:
    """The best grouping with a tenth of its units, at least two, in other groups."""
    labels = best.labels.copy()
    some = rng.permutation(len(labels))[: max(2, len(labels) // 10)]
    labels[some] = rng.randint(0, min(labels.max() + 2, len(ground.prior)), size=len(some))
    return ground.price(labels)
