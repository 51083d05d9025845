"""Local search over groups, by moves and joins; with more than two classes from many starts.

Of more than two classes no order of the modalities is enough to cut along.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from tabsym.modl import kernels_groups as kernels
from tabsym.modl.cuts import is_cheaper
from tabsym.modl.grouping import (
    Grouping,
    GroupSearch,
    GroupTask,
    Units,
    by_main_axis,
    by_share,
    sum_by,
    without_gaps,
)

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_MAX_POLISHES, _MAX_SWEEPS = 40, 40  # rounds of moves and joins, and sweeps of moves in each: time for cost
# all of these trade time for cost; benchmarks/modl/exact.py shows both, of up to 20 categories
_SEARCHED = 3  # granularities that are searched thoroughly, those whose quick starts are best
_EQUAL_CELLS = 32
_MAX_JOINED = 300  # units, or cells that starts cut together, from which greedy joins begin
_MAX_ORDERS = 12  # classes along whose shares the units are cut
_MANY_UNITS = 2000  # of more than these a single start has to do
_MANY_ORDERS, _MANY_POLISHED = 3, 2  # of many units: classes, and starts that are polished
_RESTARTS, _RESTARTS_OF_FEW, _FEW_UNITS = 8, 40, 32  # of up to 32 units a restart takes less than a millisecond
_MAX_RESTARTS = 1000  # within a time limit


def cheapest(*groupings: Grouping) -> Grouping:
    """The one that costs least, of equal ones the first."""
    return min(groupings, key=lambda one: one.cost)


# -- moves and joins -------------------------------------------------------------------------------


def polish(task: GroupTask, start: Grouping, rng: np.random.RandomState) -> Grouping:
    """Moves and joins until neither helps; never worse than the start."""
    best = start
    for _ in range(_MAX_POLISHES):
        if time.monotonic() > task.deadline:
            break
        moved = _move(task, best, rng)
        joined = _join(task, moved)
        if joined.cost >= best.cost - 1e-9:
            return cheapest(best, moved, joined)
        best = joined
    return best


def _move(task: GroupTask, start: Grouping, rng: np.random.RandomState) -> Grouping:
    """Sweeps of single moves, as long as the cost falls."""
    best, units = start, task.units
    for _ in range(_MAX_SWEEPS):
        if time.monotonic() > task.deadline:
            break
        n = int(best.labels.max()) + 1
        labels = best.labels.astype(np.int64)
        groups = sum_by(labels, units.counts, n + 2)
        sizes = np.bincount(labels, minlength=n + 2).astype(np.int64)
        costs = np.zeros(n + 2)
        kernels.group_costs(groups, task.table, costs)
        costs[sizes == 0] = 0.0
        prices, garbage_price = _prices(task, best, n)
        order = rng.permutation(len(units))
        moves = kernels.move_units(
            units.counts, units.weights, order, prices, -1 if best.garbage is None else best.garbage, garbage_price,
            task.min_rows, task.table, labels, groups, sizes, costs,
        )  # fmt: skip
        if moves == 0:
            return best
        after = task.price(labels)
        if after.cost >= best.cost - 1e-9:
            return best
        best = after
    return best


def _prices(task: GroupTask, grouping: Grouping, n: int) -> tuple[Floats, float]:
    """What the prior asks for each further group, and for each modality that leaves the garbage."""
    n_known = min(len(task.prior), n + 2)
    prices = np.full(n + 3, np.inf)
    if grouping.garbage is None:
        prices[2 : n_known + 1] = np.diff(task.prior[:n_known]) - task.ln_classes
        return prices[: n_known + 1], 0.0
    size = int(task.units.weights[grouping.labels == grouping.garbage].sum())
    priors = task.garbage_priors(n + 2, size)[1:]
    with np.errstate(invalid="ignore"):
        prices[3:] = np.where(np.isfinite(priors[1:]), np.diff(priors) - task.ln_classes, np.inf)
    prices[3] = 0.0 if not np.isfinite(prices[3]) else prices[3]
    less = task.garbage_prior(n, size - 1)
    return prices, less - task.garbage_prior(n, size) if np.isfinite(less) else 0.0


def _join(task: GroupTask, start: Grouping) -> Grouping:
    """Joins of groups, cheapest first; the best number of groups on the way."""
    n = int(start.labels.max()) + 1
    if n < 3:
        return start
    merged, totals = _join_path(sum_by(start.labels, task.units.counts, n), task.table)
    if start.garbage is None:
        step = _cheapest_step(task, totals)
        steps = range(step, step + 1) if step else range(0)
    else:  # each step is priced in full, as the garbage changes with it
        steps = range(1, min(len(merged), 8) + 1)
    return cheapest(start, *(task.price(_follow(merged[:step], n)[start.labels]) for step in steps))


def _join_path(groups: Floats, table: Floats) -> tuple[Indices, Floats]:
    """Greedy joins down to one group: the pairs (K - 1, 2), and the cost of the parts (without constants) at K .. 1."""
    n = len(groups)
    costs = np.empty(n)
    kernels.group_costs(groups, table, costs)
    merged, totals = np.zeros((n - 1, 2), dtype=np.int64), np.empty(n)
    kernels.merge_groups(
        groups.copy(), table, costs, np.full((n, n), np.inf), np.zeros(n, dtype=np.bool_), merged, totals
    )
    return merged, totals


def _cheapest_step(task: GroupTask, totals: Floats) -> int:
    """How many joins make the cheapest grouping on the way from K groups to one, garbage groups left aside."""
    numbers = np.arange(len(totals), 0, -1)
    cost = totals - numbers * task.ln_classes + task.prior[np.minimum(numbers, len(task.prior)) - 1]
    cost[numbers > len(task.prior)] = np.inf
    return int(np.argmin(cost))


def _follow(merged: Indices, n: int) -> Indices:
    """The label of each of n groups after these joins."""
    labels = np.arange(n)
    for a, b in merged:
        labels[labels == b] = a
    return without_gaps(labels)


# -- many starts -----------------------------------------------------------------------------------


def search_many_classes(search: GroupSearch, families: list[Units], start: Grouping) -> Grouping:
    """The best grouping from many starts, at the granularities whose quick starts are best."""
    quick: list[tuple[Grouping, GroupTask]] = []
    for units in families:
        task = search.task(search.joined(units))
        quick.append((_quick_start(task, search.rng), task))
        if time.monotonic() > search.deadline:
            break
    quick.sort(key=lambda one: one[0].cost)
    best = start
    for first, task in quick[:_SEARCHED]:
        better = _searched_thoroughly(task, first, search.rng, insists=search.insists)
        if is_cheaper(better.cost, best.cost):
            best = better.of_modalities(task.units)
    return best


def _quick_start(task: GroupTask, rng: np.random.RandomState) -> Grouping:
    """The best of cuts along the main axis, of equal cells and, for not too many units, of greedy joins, polished."""
    best = cheapest(task.cut_along(by_main_axis(task.units.counts)), polish(task, equal_cells(task), rng))
    if len(task.units) <= _MANY_UNITS and time.monotonic() < task.deadline:
        joins = polish(task, _by_joins(task, [best]), rng)
        best = cheapest(polish(task, best, rng), joins)
    return best


def _searched_thoroughly(task: GroupTask, first: Grouping, rng: np.random.RandomState, *, insists: bool) -> Grouping:
    """Starts along each class's share and by greedy joins, each polished; then perturbed restarts of the best."""
    counts, n_units = task.units.counts, len(task.units)
    many = n_units > _MANY_UNITS
    starts = [first]
    for j in np.argsort(-counts.sum(axis=0))[: _MANY_ORDERS if many else _MAX_ORDERS]:
        if time.monotonic() < task.deadline:
            starts.append(task.cut_along(by_share(counts, j)))
    if time.monotonic() < task.deadline:
        starts.append(_by_joins(task, starts))
    starts.sort(key=lambda one: one.cost)
    best = cheapest(*[polish(task, one, rng) for one in starts[: _MANY_POLISHED if many else None]])
    restarts = _RESTARTS_OF_FEW if n_units <= _FEW_UNITS else 0 if many else _RESTARTS
    for _ in range(_MAX_RESTARTS if insists else restarts):
        if time.monotonic() >= task.deadline:
            break
        best = cheapest(best, polish(task, _perturbed(task, best, rng), rng))
    return best


def equal_cells(task: GroupTask) -> Grouping:
    """Cells of equal size along the main axis: more than there will be groups, for moves and joins to sort out.

    Where the prior of a second group alone outweighs what any two groups save, cuts find nothing.
    """
    order = by_main_axis(task.units.counts)
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
    merged, totals = _join_path(sum_by(cells, counts, n), task.table)
    return task.price(_follow(merged[: _cheapest_step(task, totals)], n)[cells])


def _perturbed(task: GroupTask, best: Grouping, rng: np.random.RandomState) -> Grouping:
    """The best grouping with a tenth of its units, at least two, in other groups."""
    labels = best.labels.copy()
    some = rng.permutation(len(labels))[: max(2, len(labels) // 10)]
    labels[some] = rng.randint(0, min(labels.max() + 2, len(task.prior)), size=len(some))
    return task.price(labels)
