"""Optimal grouping: modalities with class counts into groups.

Of few modalities every partition is evaluated, by dynamic programming over subsets. Of two classes the groups are cuts
along the class proportions, as the cost of a part is concave; of more no order of the modalities is enough to cut
along, and they are searched for from many starts. Khiops' criterion then searches for groups with a garbage group, and
bounds what those cost (`garbage`).
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tabsym.modl import kernels
from tabsym.modl.criterion import GARBAGE_FROM, Lumps
from tabsym.modl.cuts import Best, Bounds, CutTask, descend_cuts, exact_cuts, is_cheaper, one_cut_costs, take_one_cut
from tabsym.modl.garbage import bound_garbage, first_bound, search_garbage
from tabsym.modl.grouping import (
    MAX_CUT_PLACES,
    Grouping,
    GroupingUnits,
    GroupSearch,
    GroupTask,
    by_main_axis,
    by_proportion,
    join,
    polish,
    state_of,
)
from tabsym.modl.partition import (
    COARSE_GRID,
    Partition,
    Settings,
    cheapest,
    labels_along,
    quantile_boundaries,
    sum_by,
    without_gaps,
)

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

MAX_SUBSETS = 12
"""The number of modalities up to which every partition is evaluated, in about 3**12 steps for each number of groups."""
MAX_BOUNDED = 64
"""Up to this many modalities of two classes garbage groups are bounded without a time limit, too;
benchmarks/modl/garbage.py shows what bounds for more take."""
QUICK_GROUPS, QUICK_PLACES, QUICK_POLISH = 64, 128, 128
"""Of quick searches: the number of groups, of places to cut at, and of units up to which cuts are polished."""
_MAX_FIRST = 4 * MAX_CUT_PLACES  # units of which a first look cuts anywhere: time for a better model to start from
_MAX_LEFT = 9  # units that a coarse granularity leaves of which every partition is evaluated: time for a tight bound
_MAX_UNJOINED = 5000  # modalities of more classes that are tried one by one outside a garbage: time for cost
# all of these trade time for cost; benchmarks/modl/exact.py shows both, of up to 20 categories
_SEARCHED, _SEARCHED_IN_TURNS = 3, 1  # granularities that are searched thoroughly: those whose quick starts are best
_EQUAL_CELLS = 32
_MAX_JOINED = 300  # units, or cells that starts cut together, from which greedy joins begin
_MAX_ORDERS = 12  # classes along whose proportions the units are cut
_MANY_UNITS = 2000  # of more than these a single start has to do
_MANY_ORDERS, _MANY_POLISHED = 3, 2  # of many units: classes, and starts that are polished
_RESTARTS, _RESTARTS_IN_TURNS = 16, 8
_RESTARTS_IF_SMALL, _MAX_SMALL = 40, 32  # of up to 32 units a restart takes less than a millisecond
_MAX_RESTARTS = 1000  # within a time limit


class _Result(NamedTuple):
    """The best grouping, a cost that none is below, and one that none without a garbage group is below."""

    best: Grouping
    lower: float = -np.inf
    lower_without_garbage: float = -np.inf


def group(
    counts: Floats,
    settings: Settings | None = None,
    *,
    quick: bool = False,
    min_parts: int = 1,
    lumps: list[Lumps] | None = None,
) -> Partition:
    """The groups of least cost, with a lower bound on what any groups cost.

    Parameters
    ----------
    counts : (M, J)
        Rows of each class with each modality, each at least one row.
    settings : Settings, optional
        Without `prove` there are fewer starts for garbage groups, and no bound on them.
    quick : bool
        A good model from few starts, without a bound or a garbage group.
    min_parts : {1, 2}
        2: the best of two groups or more, even if one costs less; of infinite cost where there are none.
    lumps : list of Lumps, optional
        Of modalities of these sizes, from a search before by other classes.

    Returns
    -------
    Partition
        Groups in the order of their size in rows, the greatest first. The bound is tight up to 12
        modalities, garbage included, and for two classes without a minimum size; beyond 64 modalities it
        covers Khiops' garbage groups only with a time limit. Elsewhere it is -inf.
    """
    search = GroupSearch(counts, Settings() if settings is None else settings, min_parts, lumps)
    result = _searched_quickly(search) if quick else _searched(search)
    best = result.best
    first = np.unique(best.labels, return_index=True)[1]  # groups of one size: by their first modality
    order = np.lexsort((first, -np.bincount(best.labels, search.counts.sum(axis=1))))
    position = np.argsort(order)
    best = replace(
        best, labels=position[best.labels], garbage=None if best.garbage is None else int(position[best.garbage])
    )
    return _as_partition(search, best, result.lower, result.lower_without_garbage)


def regroup(counts: Floats, start: Partition, settings: Settings, lumps: list[Lumps]) -> Partition:
    """Two or more groups of the same modalities, by other classes: those of `start`, moved and joined as that pays."""
    search = GroupSearch(counts, replace(settings, time_limit=None), 2, lumps)
    if settings.criterion == "page":
        units = search.families()[0]
    else:
        units = GroupingUnits.at(
            next(lumps_at for lumps_at in lumps if lumps_at.granularity == start.granularity), search.counts
        )
    labels = np.zeros(len(units), dtype=np.int64)
    labels[units.labels] = start.labels  # which units there are depends on how frequent modalities are alone
    task = search.task(units)
    best = polish(task, task.price(labels), search.rng).of_modalities(units)
    return _as_partition(search, best, -np.inf, -np.inf)


def _as_partition(search: GroupSearch, best: Grouping, lower: float, lower_without_garbage: float) -> Partition:
    return Partition(
        criterion=search.settings.criterion,
        labels=best.labels,
        counts=sum_by(best.labels, search.counts, int(best.labels.max()) + 1),
        cost=best.cost,
        null_cost=search.null,
        lower_bound=min(lower, best.cost),
        granularity=best.granularity,
        garbage=best.garbage,
        bound_without_garbage=max(lower, lower_without_garbage),
    )


def _searched(search: GroupSearch) -> _Result:
    """Every partition of few modalities; of more the best without a garbage group, then with one."""
    start = search.one_group
    if len(search.counts) < 2 or search.settings.max_parts == 1:
        return _Result(start, start.cost)
    families = search.families()
    if len(search.counts) <= MAX_SUBSETS:
        best = every_partition(search, families, start)
        return _Result(best, best.cost)
    lower, bounds = -np.inf, Bounds()
    if search.counts.shape[1] == 2:
        best, lower, bounds = _cut_by_proportion(search, families, start)
        if search.min_rows > 1:  # cuts along the class proportions are then not all that has to be searched
            lower = -np.inf
    else:
        best = search_many_classes(search, families, start)
    if not search.has_garbage:
        return _Result(best, lower)
    return _with_garbage(search, families, _Result(best, lower, lower), bounds)


def _searched_quickly(search: GroupSearch) -> _Result:
    """A good grouping."""
    best = search.one_group
    for units in search.families():
        task = search.task(search.joined(units), QUICK_GROUPS)
        if len(task.prior) < 2:
            continue
        order = by_main_axis(task.units.counts)
        better = cheapest(task.cut_along(order, QUICK_PLACES), equal_cells(task, order))
        if len(task.units) <= QUICK_POLISH:
            better = polish(task, better, search.rng)
        if better.cost < best.cost and better.garbage is None:
            best = better.of_modalities(task.units)
    return _Result(best)


# -- few modalities: every partition ---------------------------------------------------------------


def every_partition(search: GroupSearch, families: list[GroupingUnits], best: Grouping) -> Grouping:
    """The best grouping, with a garbage group or without, of these units, or the best one known."""
    for units in families:
        task = search.task(units)
        if len(task.prior) > 1:
            best = task.better(best, _best_of_subsets(task))
    return best


def _best_of_subsets(task: GroupTask) -> Grouping:
    """The best groups of these units, of which there are two or more: exact for any number of classes."""
    n, prior = len(task.units), task.prior
    everything = 2**n - 1
    cost = np.full(2**n, np.inf)
    table = np.full((len(prior) + 1, 2**n), np.inf)
    choice = np.zeros((len(prior) + 1, 2**n), dtype=np.int64)
    kernels.best_subsets(task.units.counts, task.search.table, task.search.min_rows, cost, table, choice)
    totals = table[1:, -1] - np.arange(1, len(prior) + 1) * task.ln_classes + prior
    k = int(np.argmin(totals))
    best = Grouping(float(totals[k]), _chosen(choice, k + 1, everything, n))
    if not task.has_garbage:
        return best
    for garbage in range(1, everything):
        size, rest = garbage.bit_count(), everything - garbage
        for n_others in range(2, min(n - size, len(prior) - 1) + 1):
            total = cost[garbage] + table[n_others, rest] - (n_others + 1) * task.ln_classes
            if total < best.cost:
                total += task.garbage_prior(n_others + 1, size)
                if is_cheaper(total, best.cost):
                    labels = _chosen(choice, n_others, rest, n)
                    labels[[bool(garbage >> u & 1) for u in range(n)]] = n_others
                    best = Grouping(float(total), labels, n_others)
    return best


def _chosen(choice: Indices, k: int, subset: int, n: int) -> Indices:
    """Labels (n,) of the k groups that the subset program chose."""
    labels = np.zeros(n, dtype=np.int64)
    while k > 0:
        members = int(choice[k, subset])
        k -= 1
        labels[[bool(members >> u & 1) for u in range(n)]] = k
        subset ^= members
    return labels


# -- two classes: cuts along the class proportions --------------------------------------------------------


class _Line(NamedTuple):
    """Units in the order of their class proportions, and where they can be cut."""

    task: GroupTask
    order: Indices
    cuts: CutTask
    ends: Indices


def _cut_by_proportion(
    search: GroupSearch, families: list[GroupingUnits], start: Grouping
) -> tuple[Grouping, float, Bounds]:
    """The best groups without garbage at any granularity: exact, if groups have no minimum size.

    With a cost that none in a row are below, and bounds on the parts of any groups whatever.
    """
    best = Best(start.cost, np.empty(0, dtype=np.int64), -1)
    lines = []
    for units in families:
        task = search.task(search.joined(units))
        order = by_proportion(task.units.counts, 1)
        lines.append(_Line(task, order, *task.line_up(order, len(order))))
    for line in lines:  # a good model, for the exact search to beat
        prior, ends, granularity = line.task.prior, line.ends, line.task.units.granularity
        if search.min_parts > 1:
            take_one_cut(one_cut_costs(line.cuts, ends), ends, prior, best, granularity)
        if len(ends) > _MAX_FIRST:
            ends = quantile_boundaries(line.cuts.sizes, COARSE_GRID)
        descend_cuts(line.cuts, ends, prior, best, granularity)
    lower, all_bounds, bounds = np.inf, Bounds(), Bounds()
    for line in reversed(lines):  # bounds of the finest hold for the coarser
        prior, units = line.task.prior, line.task.units
        lower = min(lower, exact_cuts(line.cuts, line.ends, prior, best, all_bounds, units.granularity))
        if line is lines[-1]:  # what coarser modalities add to the bounds does not hold for these
            bounds = all_bounds.of_any_parts()
        if len(prior) < len(units) and search.settings.max_parts is None:  # the prior rises beyond its last number
            beyond = np.arange(len(prior) + 1.0, len(units) + 1)
            lower = min(lower, float(all_bounds.below(beyond).min() + prior[-1]))
    if best.granularity < 0:
        return start, lower, bounds
    line = next(line for line in lines if line.task.units.granularity == best.granularity)
    return Grouping(best.cost, labels_along(line.order, best.ends)).of_modalities(line.task.units), lower, bounds


# -- more classes: many starts ----------------------------------------------------------------------


def search_many_classes(search: GroupSearch, families: list[GroupingUnits], start: Grouping) -> Grouping:
    """The best grouping from many starts, at the granularities whose quick starts are best."""
    quick: list[tuple[Grouping, GroupTask]] = []
    for units in families:
        task = search.task(search.joined(units))
        quick.append((_quick_start(task), task))
        if time.monotonic() > search.deadline:
            break
    quick.sort(key=lambda pair: pair[0].cost)
    best = start
    for first, task in quick[: _SEARCHED if search.is_thorough else _SEARCHED_IN_TURNS]:
        best = task.better(best, _searched_thoroughly(task, first))
    return best


def _quick_start(task: GroupTask) -> Grouping:
    """The best of cuts along the main axis, of equal cells and, for not too many units, of greedy joins, polished."""
    rng, order = task.search.rng, by_main_axis(task.units.counts)
    best = cheapest(task.cut_along(order), polish(task, equal_cells(task, order), rng))
    if task.search.is_thorough and len(task.units) <= _MANY_UNITS and time.monotonic() < task.search.deadline:
        joins = polish(task, _by_joins(task, [best]), rng)
        return cheapest(polish(task, best, rng), joins)
    return best


def _searched_thoroughly(task: GroupTask, first: Grouping) -> Grouping:
    """Starts along each class's proportion and by greedy joins, each polished; then perturbed restarts of the best."""
    counts, n_units, rng = task.units.counts, len(task.units), task.search.rng
    is_large, is_small = n_units > _MANY_UNITS, n_units <= _MAX_SMALL
    orders = _MAX_ORDERS if task.search.is_thorough and not is_large else _MANY_ORDERS
    starts = [first]
    for j in np.argsort(-counts.sum(axis=0))[:orders]:
        if time.monotonic() < task.search.deadline:
            starts.append(task.cut_along(by_proportion(counts, j)))
    if time.monotonic() < task.search.deadline:
        starts.append(_by_joins(task, starts))
    starts.sort(key=lambda grouping: grouping.cost)
    best = cheapest(*[polish(task, grouping, rng) for grouping in starts[: _MANY_POLISHED if is_large else None]])
    restarts = _RESTARTS_IN_TURNS
    if task.search.is_thorough:
        restarts = _RESTARTS_IF_SMALL if is_small else _RESTARTS
    for _ in range(_MAX_RESTARTS if task.search.insists else 0 if is_large else restarts):
        if time.monotonic() >= task.search.deadline:
            break
        labels = best.labels.copy()
        some = rng.permutation(n_units)[: max(2, n_units // 10)]  # a tenth of the units, in other groups
        labels[some] = rng.randint(0, min(labels.max() + 2, len(task.prior)), size=len(some))
        best = cheapest(best, polish(task, task.price(labels), rng))
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
        for start in sorted(starts, key=lambda start: start.cost):
            finer = without_gaps(cells * (start.labels.max() + 1) + start.labels)
            if finer.max() >= _MAX_JOINED:
                break
            cells = finer
    n = int(cells.max()) + 1
    if n < 2:
        return task.price(cells)
    return task.price(join(task, state_of(task, cells))[1][cells])


# -- with a garbage group ----------------------------------------------------------------------------


def _with_garbage(search: GroupSearch, families: list[GroupingUnits], known: _Result, bounds: Bounds) -> _Result:
    """The best grouping and a bound, garbage groups included; `bounds`: on any groups of the finest modalities.

    Of two classes what any grouping costs is known, and where the column is hardly informative that is often enough.
    """
    best, lower, n = known.best, known.lower, len(search.counts)
    tasks = [search.task(units) for units in families if units.n_modalities >= GARBAGE_FROM]
    if np.isfinite(lower) and n <= MAX_BOUNDED:
        tasks = [task for task in tasks if is_cheaper(first_bound(task, bounds), best.cost)]
    join = search.counts.shape[1] > 2 and n > _MAX_UNJOINED
    joined = [search.task(search.joined(task.units)) for task in tasks] if join else tasks
    if tasks:
        best = search_garbage(joined, best, quick=not search.settings.prove)
    if tasks and np.isfinite(lower):
        lower_with = -np.inf
        if search.settings.prove and (search.insists or n <= MAX_BOUNDED):
            # exact for few modalities; the integrals for more, a tenth of a second each, where time is given for them
            small = [task.units for task in tasks if len(task.units) <= _MAX_LEFT]
            best = every_partition(search, small, best)
            max_work = np.inf if search.insists else 0.0
            best, lower_with = bound_garbage(tasks[len(small) :], bounds, best, search.rng, max_work)
        lower = min(lower, best.cost, lower_with)
    return known._replace(best=best, lower=lower)
