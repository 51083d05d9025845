"""Khiops' garbage group: modalities that are not worth a name of their own in the model.

A model with a garbage group pays for each of the other modalities by name, and nothing for
those in the garbage, so it is the cheaper one where few of many modalities are informative.

Of two classes: exp(-cost) of a group is the integral of the likelihood over its class proportion. With the garbage's
proportion fixed, a modality in the garbage has a cost of its own, and each other group gains what it takes from there.
Those groups follow one another in the order of class proportions (their costs are concave in the class counts), each
with some modalities of its run: at each proportion of the group those that are cheaper in it, with the price of a
modality that is not in the garbage. The best runs come from dynamic programming over the modalities.

What no grouping of two classes with a garbage group costs less than, is a bound that is raised until it meets the best
model known. The prior depends on how many modalities v are informative, that is not in the garbage, and in how many
groups k they are. For each pair the cost of the parts is bounded from below in two ways:

- by what any partition into k + 1 groups costs (tight where v is large);
- for a price per informative modality, by the least of parts and price, less price * v.

The second is an integral over the garbage's proportion, of what the best other groups leave (`ByProportion`).
What is lost: a modality may be in a group at one of its likely proportions and not at another. That is nothing where
few modalities are on the verge, and from hundredths to a few nats in all where many are. And runs may be empty: the
modalities outside the garbage can be regrouped into at most as many groups that follow one another in class
proportions, at no more cost; for those that are missing then nothing is added here but their price in the prior.

The groups that the best price comes from are a model, often better than those that searches find: they are offered
as one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from tabsym.modl import kernels
from tabsym.modl.cuts import Bounds, OutOfTime, PricedSearch, is_cheaper
from tabsym.modl.grouping import Grouping, GroupTask, by_main_axis, by_proportion, costs_of_groups, polish
from tabsym.modl.partition import cheapest, labels_along, labels_of

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

BOUND_CELLS = 48, 96
"""Cells of the proportions of groups, of all and of where nearly all rows are: time for nats of the gap."""

# all of these trade time for cost; benchmarks/modl/garbage.py shows both, of two classes
_PRICES = 0.6, 1.2, 2.0, 3.0, 4.5, 7.0  # nats for a modality that is not in the garbage
_PROPORTION_CELLS = 24, 48  # of the proportions of groups: half as fine as for bounds
_MAX_RUN_ENDS = 49  # places where runs of modalities may end
_GROUPS_AT_FIRST, _GROUPS_SETTLED = 4, 6  # without the garbage, of all models and of the best
_WORTH_SETTLING = 1.01  # times the best cost: models that may become better
_MAX_SETTLED, _MAX_ROUNDS = 8, 4  # models that are settled and polished, and rounds of settling
_MAX_TRIED = 64  # modalities of which every two are tried outside a garbage, and the median proportion
_MAX_POLISHED = 12  # starts of more than two classes
_MAX_INFORMATIVE_GROUPS = 64  # without the categories that are hardly informative
_MAX_START_GROUPS, _START_PLACES = 10, 256  # of cuts whose largest group is the garbage, and where they may lie
# all of these trade time for nats of the gap, which benchmarks/modl/garbage.py shows
_MAX_COUNTED = 12
"""Beyond this number of informative groups one column of the table is for all: the gain of any number, the prior of
one more."""
_MAX_UNITS = 3000
"""Of more modalities of different counts the first integral alone would take minutes."""
_MAX_BOUND_PRICES = 12
_WORTH_POLISHING = 1.001  # times the best cost: models that may become better
_FIRST_CELLS = 12  # of the garbage's proportion
_MIN_LOWERING = 0.02  # nats by which a cell's halves must lower the bound to be halved again
_MIN_LN_FRACTION = -6.0  # ln of a cell's fraction of the integral from which it is worth halving


def search_garbage(tasks: list[GroupTask], best: Grouping, *, quick: bool = False) -> Grouping:
    """The best grouping, with a garbage group or without: starts at every granularity, the most promising polished.

    `tasks`: of two classes with no modalities joined, of more if they are not too many. Of those that are
    proportional, which are one without a garbage group, the frequent ones may be informative alone.
    """
    for task, start in _starts(tasks, best.cost, quick):
        if time.monotonic() > task.search.deadline:
            break
        best = task.better(best, polish(task, start, task.search.rng))
    return best


def _starts(tasks: list[GroupTask], cost: float, quick: bool) -> list[tuple[GroupTask, Grouping]]:
    if tasks and tasks[0].units.counts.shape[1] == 2:
        pairs = [] if quick else [(task, start) for task in tasks for start in _two_outside(task)[:1]]
        return _cheaper_outside(tasks, _WORTH_SETTLING * cost, quick) + pairs
    starts = [
        (task, start)
        for task in tasks
        if time.monotonic() < task.search.deadline
        for start in [*_two_outside(task), *_uninformative_as_garbage(task), *_largest_as_garbage(task)]
    ]
    return sorted(starts, key=lambda pair: pair[1].cost)[:_MAX_POLISHED]


def _cheaper_outside(tasks: list[GroupTask], max_cost: float, quick: bool) -> list[tuple[GroupTask, Grouping]]:
    """Of two classes: the best groups with a garbage, each with its task, if they cost at most so much.

    At prices from low to high, as the prior is concave in the number of informative modalities: there are several
    local optima. The best few get the proportion and the price of their own garbage.
    """
    candidates: list[tuple[GroupTask, Grouping, ByProportion]] = []
    for task in tasks:
        modalities = ByProportion(task.units.counts, max_ends=_MAX_RUN_ENDS, cells=_PROPORTION_CELLS)
        proportions = _likely_proportions(task.units.counts)[: 1 if quick else None]
        models = [
            _best_at_proportion(task, modalities, proportion, price, _GROUPS_AT_FIRST)
            for position, proportion in enumerate(proportions)
            for price in (_PRICES[1::2] if quick or position else _PRICES)
        ]
        best = cheapest(*models)
        if best.cost <= max_cost:
            candidates.append((task, best, modalities))
        if time.monotonic() > task.search.deadline:
            break
    candidates.sort(key=lambda candidate: candidate[1].cost)
    return [(task, _settled(task, modalities, model)) for task, model, modalities in candidates[:_MAX_SETTLED]]


def _best_at_proportion(
    task: GroupTask, modalities: ByProportion, proportion: float, price: float, max_groups: int
) -> Grouping:
    """The best 2 .. `max_groups` groups and a garbage of this class proportion, at this price per modality outside."""
    n = len(task.units)
    max_groups = min(max_groups, n - 2, (task.search.settings.max_parts or n) - 1)
    models = [task.price(labels) for labels in modalities.groups(modalities.costs(proportion), price, max_groups)]
    return cheapest(*models, Grouping(np.inf, np.zeros(n, dtype=np.int64)))


def _settled(task: GroupTask, modalities: ByProportion, best: Grouping) -> Grouping:
    """In rounds, the proportion and the price are those of the garbage before, as long as the cost falls."""
    units = task.units
    for _ in range(_MAX_ROUNDS):
        if best.garbage is None:
            return best
        inside = best.labels == best.garbage
        n_groups, size = int(best.labels.max()) + 1, int(units.weights[inside].sum())
        rise = task.garbage_prior(n_groups, size - 1) - task.garbage_prior(n_groups, size)
        price = rise if np.isfinite(rise) and rise > _PRICES[0] else _PRICES[0]
        better = _best_at_proportion(task, modalities, _proportion(units.counts[inside]), price, _GROUPS_SETTLED)
        if not is_cheaper(better.cost, best.cost):
            return best
        best = better
    return best


def _proportion(counts: Floats) -> float:
    """Of the second class, away from 0 and 1."""
    return float((counts[:, 1].sum() + 0.5) / (counts.sum() + 1.0))


def _likely_proportions(counts: Floats) -> list[float]:
    """Of a garbage: that of all rows, and of the modality in the middle: a few large ones may be far from it."""
    proportion = _proportion(counts)
    if len(counts) > _MAX_TRIED:
        return [proportion]
    middle = counts[by_proportion(counts, 1)[len(counts) // 2]]
    return [proportion, _proportion(middle[None, :])]


def _uninformative_as_garbage(task: GroupTask) -> list[Grouping]:
    """The modalities that are most informative each, 2, 4, 8, 16, ... of them; the rest garbage."""
    units, sizes = task.units, task.units.counts.sum(axis=1)
    base = units.counts.sum(axis=0) / sizes.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(units.counts > 0, np.log(units.counts / sizes[:, None] / base), 0.0)
    # what each modality's class proportions save over those of all, in nats per modality
    gain = (units.counts * ratio).sum(axis=1) - 0.5 * (units.counts.shape[1] - 1) * np.log(sizes)
    order = np.argsort(-gain / units.weights, kind="stable")
    informative = np.cumsum(units.weights[order])
    starts: list[Grouping] = []
    wanted, last = 2.0, 0
    while wanted < units.n_modalities:
        n = int(np.searchsorted(informative, wanted)) + 1
        wanted *= 2.0
        if n < 2 or n >= len(units) or n == last:
            continue
        last = n
        starts.append(_others_as_garbage(task, order[:n]))
    return sorted(starts, key=lambda start: start.cost)[:2]


def _two_outside(task: GroupTask) -> list[Grouping]:
    """Two modalities with a group each, all others garbage: the best of all pairs, where those are not too many."""
    units, n = task.units, len(task.units)
    if n > _MAX_TRIED or n < 4 or len(task.prior) < 3:
        return []
    a, b = np.triu_indices(n, 1)
    alone = costs_of_groups(units.counts)
    cost = alone[a] + alone[b] + costs_of_groups(units.counts.sum(axis=0) - units.counts[a] - units.counts[b])
    starts = []
    for position in np.argsort(cost, kind="stable")[:2]:
        labels = np.zeros(n, dtype=np.int64)
        labels[a[position]], labels[b[position]] = 1, 2
        starts.append(task.price(labels))
    return starts


def _largest_as_garbage(task: GroupTask) -> list[Grouping]:
    """Cuts along the main axis into few groups, the one with most modalities as the garbage."""
    order = by_main_axis(task.units.counts)
    cut_task, ends = task.line_up(order, _START_PLACES)
    max_groups = min(_MAX_START_GROUPS, len(ends), task.search.settings.max_parts or _MAX_START_GROUPS)
    cuts = (PricedSearch(cut_task, ends).by_number(max_groups) or [])[2:]
    starts = [task.price(labels_along(order, partition.ends)) for partition in cuts]
    return sorted((start for start in starts if start.garbage is not None), key=lambda start: start.cost)[:2]


def _others_as_garbage(task: GroupTask, chosen: Indices) -> Grouping:
    """The best cuts of the chosen units along the main axis, the others in one more group."""
    units = task.units
    size = int(units.weights.sum() - units.weights[chosen].sum())
    order = chosen[by_main_axis(units.counts[chosen])]
    max_groups = min(len(order), _MAX_INFORMATIVE_GROUPS, (task.search.settings.max_parts or len(units)) - 1)
    prior = task.garbage_priors(max_groups + 1, size)[1:].copy()
    if max_groups < 2 or not np.isfinite(prior[1]):
        return Grouping(np.inf, np.zeros(len(units), dtype=np.int64))
    prior[0] = prior[1]
    ends = task.best_ends(order, prior)
    labels = np.full(len(units), len(ends), dtype=np.int64)
    labels[order] = labels_of(ends, len(order))
    return task.price(labels)


# -- gains of groups of two classes with a garbage group of a given proportion --------------------------


class _Runs(NamedTuple):
    """The work of a dynamic program over the units `chosen` (n,), cut only at `ends` (m + 1,)."""

    chosen: Indices
    ends: Indices
    reward: Floats
    at_left: Floats
    gains: Floats
    best: Floats


class ByProportion:
    """Modalities of two classes in the order of the proportion of the second; equal ones are one that counts as often.

    Parameters
    ----------
    counts : (U, 2)
    max_ends : int or None
        Maximum number of positions at which runs end; None: anywhere, which bounds need.
    cells : (int, int)
        Cells of the proportions of groups: of all, and of where nearly all rows are.
    """

    def __init__(self, counts: Floats, max_ends: int | None = None, cells: tuple[int, int] = BOUND_CELLS) -> None:
        distinct, same, times = np.unique(counts, axis=0, return_inverse=True, return_counts=True)
        order = by_proportion(distinct, 1)
        self.counts, self.times = np.ascontiguousarray(distinct[order]), times[order].astype(np.float64)
        self.position = np.argsort(order)[same.ravel()]  # of each unit
        rows, second = self.counts.sum(axis=1), self.counts[:, 1]
        proportion = second / rows
        self.min_costs = -xlogy(second, proportion) - xlog1py(self.counts[:, 0], -proportion)
        self.max_ends = max_ends
        self.edges = _edges_of_cells(proportion, rows * self.times, *cells)
        self.work = 0.0

    def costs(self, proportion: float) -> Floats:
        """What each costs in a group of this proportion."""
        return np.asarray(-self.counts @ np.log([1.0 - proportion, proportion]))

    def gained(self, cost: Floats, price: float, max_groups: int) -> Floats:
        """The most that 2 .. K groups or fewer gain over a garbage with these costs, then any number of groups."""
        runs = self._runs(cost, price, max_groups, fewer=True)
        return np.zeros(max_groups) if runs is None else np.append(runs.best[2:, -1], runs.best[0, -1])

    def groups(self, cost: Floats, price: float, max_groups: int) -> list[Indices]:
        """For 2 .. K groups, as far as there are: the best group of each unit (U,), 0 for the garbage."""
        runs = self._runs(cost, price, max_groups, fewer=False)
        if runs is None:
            return []
        labelings = []
        for k in range(2, min(max_groups, len(runs.ends) - 1) + 1):
            labels = np.empty(len(self.counts), dtype=np.int64)
            kernels.label_runs(
                k, runs.chosen, runs.ends, runs.reward, self.counts, self.edges, runs.at_left, runs.best, runs.gains,
                labels,
            )  # fmt: skip
            labelings.append(labels[self.position])
        return labelings

    def _runs(self, cost: Floats, price: float, max_groups: int, *, fewer: bool) -> _Runs | None:
        reward = cost - price
        chosen = np.flatnonzero(reward > self.min_costs)  # with others nothing is gained, whatever the proportion
        if len(chosen) == 0:
            return None
        shape = len(self.edges) - 1, len(chosen) + 1
        at_left, at_right = np.empty(shape), np.empty(shape)
        kernels.gains_in_cells(reward[chosen], self.counts[chosen], self.times[chosen], self.edges, at_left, at_right)
        ends = np.arange(len(chosen) + 1)
        if self.max_ends is not None and len(ends) > self.max_ends:
            ends = np.unique(np.linspace(0, len(chosen), self.max_ends).astype(np.int64))
            at_left, at_right = np.ascontiguousarray(at_left[:, ends]), np.ascontiguousarray(at_right[:, ends])
        n = len(ends)
        gains, best = np.zeros((n, n)), np.zeros((max_groups + 1, n))
        kernels.gains_of_groups(at_left, at_right, self.edges, fewer, np.empty(n), np.empty(n), gains, best)
        self.work += len(at_left) * n * (n - 1) / 2
        return _Runs(chosen, ends, reward[chosen], at_left, gains, best)


def proportions_along(angles: Floats) -> Floats:
    """Proportions between which estimates from as many rows distinguish equally well, along angles from 0 to pi / 2."""
    return np.asarray(np.sin(angles) ** 2)


def _edges_of_cells(proportion: Floats, rows: Floats, n_coarse: int, n_fine: int) -> Floats:
    """Where cells of the proportions of groups end, finer where nearly all rows are."""
    angles, position = np.arcsin(np.sqrt(proportion)), np.cumsum(rows) / rows.sum()
    low, high = angles[np.minimum(np.searchsorted(position, [0.02, 0.98]), len(angles) - 1)]
    spread = 2.0 / np.sqrt(rows.sum())  # four standard errors of the proportion of all
    fine = np.linspace(max(0.0, low - spread), min(np.pi / 2, high + spread), n_fine + 1)
    edges = np.unique(proportions_along(np.concatenate([np.linspace(0.0, np.pi / 2, n_coarse + 1), fine])))
    inside = edges[(edges > 1e-12) & (edges < 1.0 - 1e-12)]  # none so near 0 or 1 that its cell's middle is there
    return np.concatenate([[0.0], inside, [1.0]])


# -- a bound on what models with a garbage group cost -----------------------------------------------


def bound_garbage(
    tasks: list[GroupTask], bounds: Bounds, best: Grouping, rng: np.random.RandomState, max_work: float
) -> tuple[Grouping, float]:
    """The best grouping known by then, and a cost that none with a garbage group is below.

    Parameters
    ----------
    tasks : of single modalities at each granularity, none joined
    bounds : on the parts of any groups of the finest modalities, in a row or not: prices are not negative
    best : the best grouping so far, which the bound shall meet
    rng : of the order of moves
    max_work : float
        Evaluations of integrands, about 3e8 a second.
    """
    lower, price = np.inf, None
    for task in tasks:
        if time.monotonic() > task.search.deadline:
            return best, -np.inf
        try:
            bound = _BoundAt(task, bounds, best, price)
        except OutOfTime:
            return best, -np.inf
        lower = min(lower, bound.raised(max_work / len(tasks), rng))
        price = next(reversed(bound.lines), price)  # what was enough here is likely to be enough there
        if bound.best is not best:
            best = bound.best.of_modalities(task.units)
    return best, lower


def first_bound(task: GroupTask, bounds: Bounds) -> float:
    """What a grouping with a garbage group costs at least, by what any grouping into as many groups does."""
    try:
        bound = _BoundAt(task, bounds)
    except OutOfTime:
        return -np.inf
    return float((bound.of_parts + bound.priors).min()) if len(bound.groups) else np.inf


@dataclass
class _BoundAt:
    """The bound at one granularity; numbers of groups are in columns (2 .. K, and more), v = 2 .. n - 1 in rows."""

    task: GroupTask
    bounds: Bounds
    best: Grouping = field(default_factory=lambda: Grouping(np.inf, np.empty(0, dtype=np.int64)))
    first_price: float | None = None
    lines: dict[float, Floats] = field(default_factory=dict)  # by price: parts and price cost at least (K,)

    def __post_init__(self) -> None:
        n, limit = len(self.task.units), self.task.search.settings.max_parts
        max_groups = n - 1 if limit is None else min(n - 1, limit - 1)
        self.groups = np.arange(2, min(_MAX_COUNTED, max_groups) + 1)  # without the garbage
        self.informative = np.arange(2, n)
        self.more = max_groups > _MAX_COUNTED
        if not len(self.groups):
            return
        self.priors = np.array([self._priors(int(v)) for v in self.informative])
        numbers = np.append(self.groups, self.groups[-1] + 1) if self.more else self.groups
        below = self.bounds.below(numbers.astype(np.float64) + 1.0)  # the least cost of this number of groups
        if self.more:  # the last: into as many or more
            below[-1] = self.bounds.below(np.arange(numbers[-1] + 1.0, max_groups + 2.0)).min()
        self.of_parts = np.tile(np.maximum(below, 0.0), (len(self.informative), 1))

    def _priors(self, v: int) -> Floats:
        """Of v informative modalities in 2 .. K groups; the prior of more is at least that of one more.

        Thousands of numbers take seconds.
        """
        if v % 64 == 0 and time.monotonic() > self.task.search.deadline:
            raise OutOfTime
        max_groups = len(self.groups) + 2 + int(self.more)
        return self.task.garbage_priors(max_groups, len(self.task.units) - v)[2:]

    def raised(self, max_work: float, rng: np.random.RandomState) -> float:
        """The bound, raised price by price until it meets the best cost, or further prices do not help."""
        if not len(self.groups):
            return np.inf
        units: ByProportion | None = None
        deadline = self.task.search.deadline
        while True:
            costs = self.of_parts + self.priors
            row, column = np.unravel_index(np.argmin(costs), costs.shape)
            lower = float(costs[row, column])
            if not is_cheaper(lower, self.best.cost) or len(self.lines) >= _MAX_BOUND_PRICES:
                return lower
            price = self._next_price(int(self.informative[row]), int(column))
            if price is None or max_work <= 0:
                return lower
            units = ByProportion(self.task.units.counts) if units is None else units
            if len(units.counts) > _MAX_UNITS:
                return lower
            needed = self._needed(price)
            bound = bound_by_integral(units, price, int(self.groups[-1]), needed, max_work=max_work, deadline=deadline)
            if bound is None:
                return lower
            self.lines[price] = bound[0][: costs.shape[1]]
            np.maximum(self.of_parts, self.lines[price] - price * self.informative[:, None], out=self.of_parts)
            self._offer(units, bound[1], price, rng)

    def _needed(self, price: float) -> Floats:
        """What parts and price must cost at least, by number of groups, for the bound to meet the best cost."""
        needed = self.best.cost - self.priors + price * self.informative[:, None]
        needed = np.where(self.of_parts + self.priors < self.best.cost, needed, -np.inf).max(axis=0)
        return needed if self.more else np.append(needed, -np.inf)

    def _offer(self, units: ByProportion, proportion: float, price: float, rng: np.random.RandomState) -> None:
        """Take the groups that are best at this price, if they are better than the best model."""
        models = [
            self.task.price(labels) for labels in units.groups(units.costs(proportion), price, int(self.groups[-1]))
        ]
        if not models:  # at this price nothing is better off outside the garbage
            return
        model = cheapest(*models)
        if model.cost < _WORTH_POLISHING * self.best.cost:
            model = polish(self.task, model, rng)
        if is_cheaper(model.cost, self.best.cost):
            self.best = model

    def _next_price(self, v: int, column: int) -> float | None:
        """The first: above the prior's mean rise with v; then between neighbours of the best for this v, or beyond."""
        if not self.lines:
            n, prior = len(self.task.units), self.task.garbage_prior
            rise = max(prior(3, 1) - prior(3, n - 2), 0.0) / (n - 2)  # with two groups and the garbage
            return self.first_price or 0.25 + 1.5 * rise
        prices = sorted(self.lines)
        position = int(np.argmax([self.lines[price][column] - price * v for price in prices]))
        price = prices[position]
        at_start, at_end = position == 0, position == len(prices) - 1
        if at_start and at_end:
            at_end = 4 * v < len(self.informative)  # few are informative at a high price
            at_start = not at_end
        if at_start or at_end:
            return None if price < 0.02 else (1.6 if at_end else 0.55) * price
        below, above = prices[position - 1], prices[position + 1]
        if above - below < 0.1 * price:
            return None
        return 0.5 * (price + (below if price - below > above - price else above))


class _ProportionCell(NamedTuple):
    """A cell of the garbage's proportion, in angles, and the ln of what it holds at most, by number of groups."""

    start: float
    end: float
    mass: Floats


def bound_by_integral(
    units: ByProportion, price: float, max_groups: int, needed: Floats, *, max_work: float = np.inf,
    deadline: float = np.inf,
) -> tuple[Floats, float] | None:  # fmt: skip
    """What parts and price cost at least, and the garbage's proportion where two groups gain most.

    For 2 .. `max_groups` informative groups, then any number of them; None if there is no time for a first look. Cells
    of the proportion are halved where most is to be had, until what is `needed` is reached.
    """

    def is_spent() -> bool:
        return units.work > max_work or time.monotonic() > deadline

    def cell_of(start: float, end: float) -> _ProportionCell:
        return _ProportionCell(start, end, _mass(units, start, end, price, max_groups))

    cells: list[_ProportionCell] = []
    for ends in pairwise(np.linspace(0.0, np.pi / 2, _FIRST_CELLS + 1)):
        if is_spent():
            return None
        cells.append(cell_of(*ends))
    finished: list[_ProportionCell] = []
    while True:
        mass = np.logaddexp.reduce([cell.mass for cell in cells + finished], axis=0)
        short = -mass < needed
        ln_fractions = [float((cell.mass - mass)[short].max()) if short.any() else -np.inf for cell in cells]
        position = int(np.argmax(ln_fractions)) if cells else 0
        if not cells or ln_fractions[position] < _MIN_LN_FRACTION or is_spent():
            likely = max(cells + finished, key=lambda cell: float(cell.mass[0]))
            return -mass, float(proportions_along(np.array(0.5 * (likely.start + likely.end))))
        cell = cells.pop(position)
        middle = 0.5 * (cell.start + cell.end)
        halves = [cell_of(cell.start, middle), cell_of(middle, cell.end)]
        lowered = cell.mass - np.logaddexp(halves[0].mass, halves[1].mass)
        (finished if float(lowered[short].max()) < _MIN_LOWERING else cells).extend(halves)


def _mass(units: ByProportion, start: float, end: float, price: float, max_groups: int) -> Floats:
    """Upper bound of ln of the integral of exp(-parts - price) over a cell of the proportion, by number of groups.

    In the cell the cost of a modality in the garbage lies above its tangent; what is gained outside
    it is convex along the tangent, so its logarithm lies below the line between the ends.
    """
    q_start, q_end = proportions_along(np.array([start, end]))
    q, half = 0.5 * (q_start + q_end), 0.5 * (q_end - q_start)
    cost, rise = units.costs(q), half * (units.counts @ [1.0 / (1.0 - q), -1.0 / q])
    left, right = (
        units.gained(at_end, price, max_groups) - units.times @ at_end for at_end in (cost - rise, cost + rise)
    )
    return np.asarray(np.log(2.0 * half) + _ln_mean_exp(left, right))


def _ln_mean_exp(x: Floats, y: Floats) -> Floats:
    """ln of the mean of exp over a line from x to y."""
    d = np.abs(x - y)
    wide = np.where(d > 1e-9, d, 1.0)
    return np.asarray(np.maximum(x, y) + np.where(d > 1e-9, np.log(-np.expm1(-wide) / wide), 0.0))
