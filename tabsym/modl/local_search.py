"""Local search over groups, by moves and joins; with more than two classes from many starts.

Of more than two classes no order of the modalities is enough to cut along.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from tabsym.modl import kernels_polish as kernels
from tabsym.modl.cuts import is_cheaper
from tabsym.modl.grouping import (
    Grouping,
    GroupingUnits,
    GroupSearch,
    GroupTask,
    by_main_axis,
    by_share,
    costs_of_groups,
    sum_by,
    without_gaps,
)

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
State = tuple[Floats, Indices, Floats, Floats]  # of groups: class counts, units, modalities, costs

_MAX_POLISHES, _MAX_SWEEPS = 40, 40  # rounds of moves and joins, and sweeps of moves in each: time for cost
_MORE_GROUPS = 4  # that moves may make in a round
_MAX_WORK = 10**8  # counts that are looked at between looks at the clock
# all of these trade time for cost; benchmarks/modl/exact.py shows both, of up to 20 categories
_SEARCHED, _SEARCHED_IN_TURNS = 3, 1  # granularities that are searched thoroughly: those whose quick starts are best
_EQUAL_CELLS = 32
_MAX_JOINED = 300  # units, or cells that starts cut together, from which greedy joins begin
_MAX_ORDERS = 12  # classes along whose shares the units are cut
_MANY_UNITS = 2000  # of more than these a single start has to do
_MANY_ORDERS, _MANY_POLISHED = 3, 2  # of many units: classes, and starts that are polished
_RESTARTS, _RESTARTS_IN_TURNS = 16, 8
_RESTARTS_OF_FEW, _FEW_UNITS = 40, 32  # of up to 32 units a restart takes less than a millisecond
_MAX_RESTARTS = 1000  # within a time limit


def cheapest(*groupings: Grouping) -> Grouping:
    """The one that costs least, of equal ones the first."""
    return min(groupings, key=lambda one: one.cost)


# -- moves and joins -------------------------------------------------------------------------------


def polish(task: GroupTask, start: Grouping, rng: np.random.RandomState) -> Grouping:
    """Moves and joins until neither helps; never worse than the start."""
    labels, cost, order = start.labels.astype(np.int64), start.cost, rng.permutation(len(task.units))
    for _ in range(_MAX_POLISHES):
        if time.monotonic() > task.deadline:
            break
        after, labels, state = move(task, labels, order)
        if len(state[0]) > 2:
            joined, groups = join(task, state)
            if joined < after:
                after, labels = joined, groups[labels]
        if not after < cost - 1e-9:
            break
        cost = after
    return cheapest(start, task.price(labels))


def move(task: GroupTask, labels: Indices, order: Indices) -> tuple[float, Indices, State]:
    """Sweeps of single moves, as long as the cost falls: it, the group of each unit, and what the groups hold."""
    counts, n = task.units.counts, int(labels.max()) + 1 + _MORE_GROUPS
    labels = labels.copy()
    groups, sizes, holds, costs = np.zeros((n, counts.shape[1])), np.zeros(n, np.int64), np.zeros(n), np.zeros(n)
    cost = kernels.settle_units(
        counts, task.units.weights, order, task.min_rows, task.ln_classes, task.prior, *task.prices,
        max(1, min(_MAX_SWEEPS, _MAX_WORK // (counts.size * n))), task.table, labels, np.empty_like(labels),
        groups, sizes, holds, costs,
    )  # fmt: skip
    kept = sizes > 0
    return cost, without_gaps(labels), (groups[kept], sizes[kept], holds[kept], costs[kept])


def state_of(task: GroupTask, labels: Indices) -> State:
    """What these groups hold."""
    n = int(labels.max()) + 1
    groups, holds = sum_by(labels, task.units.counts, n), np.bincount(labels, task.units.weights, minlength=n)
    return groups, np.bincount(labels, minlength=n), holds.astype(np.float64), costs_of_groups(groups)


def join(task: GroupTask, state: State) -> tuple[float, Indices]:
    """Greedy joins down to one group: the least cost on the way, and what each group becomes there."""
    n = len(state[0])
    merged = np.zeros((n - 1, 2), dtype=np.int64)
    cost, joins = kernels.join_groups(
        task.ln_classes, task.prior, *task.prices, task.table, *state, np.full((n, n), np.inf), merged
    )
    return cost, _follow(merged[:joins], n)


def _follow(merged: Indices, n: int) -> Indices:
    """The label of each of n groups after these joins."""
    labels = np.arange(n)
    for a, b in merged:
        labels[labels == b] = a
    return without_gaps(labels)


# -- many starts -----------------------------------------------------------------------------------


def search_many_classes(search: GroupSearch, families: list[GroupingUnits], start: Grouping) -> Grouping:
    """The best grouping from many starts, at the granularities whose quick starts are best."""
    quick: list[tuple[Grouping, GroupTask]] = []
    for units in families:
        task = search.task(search.joined(units))
        quick.append((_quick_start(task, search.rng), task))
        if time.monotonic() > search.deadline:
            break
    quick.sort(key=lambda one: one[0].cost)
    best = start
    for first, task in quick[: _SEARCHED if search.is_thorough else _SEARCHED_IN_TURNS]:
        better = _searched_thoroughly(task, first, search.rng, insists=search.insists)
        if is_cheaper(better.cost, best.cost):
            best = better.of_modalities(task.units)
    return best


def _quick_start(task: GroupTask, rng: np.random.RandomState) -> Grouping:
    """The best of cuts along the main axis, of equal cells and, for not too many units, of greedy joins, polished."""
    order = by_main_axis(task.units.counts)
    best = cheapest(task.cut_along(order), polish(task, equal_cells(task, order), rng))
    if task.is_thorough and len(task.units) <= _MANY_UNITS and time.monotonic() < task.deadline:
        joins = polish(task, _by_joins(task, [best]), rng)
        return cheapest(polish(task, best, rng), joins)
    return best


def _searched_thoroughly(task: GroupTask, first: Grouping, rng: np.random.RandomState, *, insists: bool) -> Grouping:
    """Starts along each class's share and by greedy joins, each polished; then perturbed restarts of the best."""
    counts, n_units = task.units.counts, len(task.units)
    many, few = n_units > _MANY_UNITS, n_units <= _FEW_UNITS
    orders = _MAX_ORDERS if task.is_thorough and not many else _MANY_ORDERS
    starts = [first]
    for j in np.argsort(-counts.sum(axis=0))[:orders]:
        if time.monotonic() < task.deadline:
            starts.append(task.cut_along(by_share(counts, j)))
    if time.monotonic() < task.deadline:
        starts.append(_by_joins(task, starts))
    starts.sort(key=lambda one: one.cost)
    best = cheapest(*[polish(task, one, rng) for one in starts[: _MANY_POLISHED if many else None]])
    restarts = _RESTARTS_IN_TURNS
    if task.is_thorough:
        restarts = _RESTARTS_OF_FEW if few else _RESTARTS
    for _ in range(_MAX_RESTARTS if insists else 0 if many else restarts):
        if time.monotonic() >= task.deadline:
            break
        best = cheapest(best, polish(task, _perturbed(task, best, rng), rng))
    return best


def equal_cells(task: GroupTask, order: Indices) -> Grouping:
    """Cells of equal size along the main axis `order`: more than there will be groups, for moves and joins to sort out.

    Where the prior of a second group alone outweighs what any two groups save, cuts find nothing.
    """
    sizes = np.cumsum(task.units.counts[order].sum(axis=1))
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = np.minimum(_EQUAL_CELLS * sizes / (sizes[-1] + 1.0), len(task.prior) - 1)
    return task.price(labels)


def _by_joins(task: GroupTask, starts: list[Grouping]) -> Grouping:
    """Greedy joins from single units, or from the cells that the starts cut together."""
    counts = task.units.counts
    cells = np.arange(len(counts))
    if len(counts) > _MAX_JOINED:
        cells = np.zeros(len(counts), dtype=np.int64)
        for one in sorted(starts, key=lambda one: one.cost):
            finer = without_gaps(cells * (one.labels.max() + 1) + one.labels)
            if finer.max() >= _MAX_JOINED:
                break
            cells = finer
    n = int(cells.max()) + 1
    if n < 2:
        return task.price(cells)
    return task.price(join(task, state_of(task, cells))[1][cells])


def _perturbed(task: GroupTask, best: Grouping, rng: np.random.RandomState) -> Grouping:
    """The best grouping with a tenth of its units, at least two, in other groups."""
    labels = best.labels.copy()
    some = rng.permutation(len(labels))[: max(2, len(labels) // 10)]
    labels[some] = rng.randint(0, min(labels.max() + 2, len(task.prior)), size=len(some))
    return task.price(labels)
