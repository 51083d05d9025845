"""Khiops' garbage group: modalities that are not worth a name of their own in the model.

A model with a garbage group pays for each of the other modalities by name, and nothing for
those in the garbage, so it is the cheaper one where few of many modalities are informative.

Of two classes: exp(-cost) of a group is the integral of the likelihood over its class share. With the garbage's share
held fixed, a modality in the garbage has a cost of its own, and each other group gains what it takes from there. Those
groups follow one another in the order of class shares (their costs are concave in the class counts), each with some
modalities of its run: at each share of the group those that are cheaper in it, with the price of a modality that is not
in the garbage. The best runs come from dynamic programming over the modalities.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from tabsym.modl import kernels_groups as kernels
from tabsym.modl.cuts import PricedSearch, is_cheaper
from tabsym.modl.grouping import (
    Grouping,
    GroupingUnits,
    GroupTask,
    by_main_axis,
    by_share,
    costs_of_groups,
    labels_along,
)
from tabsym.modl.local_search import cheapest, polish
from tabsym.modl.partition import labels_of

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

BOUND_CELLS = 48, 96
"""Cells of the shares of groups, of all and of where nearly all rows are: time for nats of the gap."""

# all of these trade time for cost; benchmarks/modl/garbage.py shows both, of two classes
_PRICES = 0.6, 1.2, 2.0, 3.0, 4.5, 7.0  # nats for a modality that is not in the garbage
_SHARE_CELLS = 24, 48  # of the shares of groups: half as fine as for bounds
_MAX_RUN_ENDS = 49  # places where runs of modalities may end
_GROUPS_AT_FIRST, _GROUPS_SETTLED = 4, 6  # beside the garbage, of all models and of the best
_WORTH_SETTLING = 1.01  # times the best cost: models that may become better
_MAX_SETTLED, _MAX_ROUNDS = 8, 4  # models that are settled and polished, and rounds of settling
_MAX_TRIED = 64  # modalities of which every two are tried beside a garbage, and the share of the one in the middle
_MAX_POLISHED = 12  # starts of more than two classes
_MAX_INFORMATIVE_GROUPS = 64  # beside the categories that are hardly informative
_MAX_START_GROUPS, _START_PLACES = 10, 256  # of cuts whose largest group is the garbage, and where they may lie


def look_for_garbage(
    tasks: list[GroupTask], best: Grouping, rng: np.random.RandomState, *, few: bool = False
) -> Grouping:
    """The best grouping, with a garbage group or without: starts at every granularity, the most promising polished.

    `tasks`: of two classes with no modalities joined, of more if they are not too many. Of those that are
    proportional, which are one without a garbage group, the frequent ones may be informative alone.
    """
    for task, start in _starts(tasks, best.cost, few):
        if time.monotonic() > task.deadline:
            break
        better = polish(task, start, rng)
        if is_cheaper(better.cost, best.cost):
            best = better.of_modalities(task.units)
    return best


def _starts(tasks: list[GroupTask], cost: float, few: bool) -> list[tuple[GroupTask, Grouping]]:
    if tasks and tasks[0].units.counts.shape[1] == 2:
        pairs = [] if few else [(task, start) for task in tasks for start in _two_outside(task)[:1]]
        return _cheaper_outside(tasks, _WORTH_SETTLING * cost, few) + pairs
    starts = [
        (task, start)
        for task in tasks
        if time.monotonic() < task.deadline
        for start in [*_two_outside(task), *_uninformative_as_garbage(task), *_largest_as_garbage(task)]
    ]
    return sorted(starts, key=lambda one: one[1].cost)[:_MAX_POLISHED]


def _cheaper_outside(tasks: list[GroupTask], max_cost: float, few: bool) -> list[tuple[GroupTask, Grouping]]:
    """Of two classes: the best groups beside a garbage, each with its task, if they cost at most so much.

    At prices from low to high, as the prior is concave in the number of informative modalities: there are several
    local optima. The best few get the share and the price of their own garbage.
    """
    found: list[tuple[GroupTask, Grouping, ByShare]] = []
    for task in tasks:
        by_share = ByShare(task.units.counts, max_ends=_MAX_RUN_ENDS, cells=_SHARE_CELLS)
        shares = _likely_shares(task.units.counts)[: 1 if few else None]
        models = [
            _beside_share(task, by_share, share, price, _GROUPS_AT_FIRST)
            for position, share in enumerate(shares)
            for price in (_PRICES[1::2] if few or position else _PRICES)
        ]
        best = cheapest(*models)
        if best.cost <= max_cost:
            found.append((task, best, by_share))
        if time.monotonic() > task.deadline:
            break
    found.sort(key=lambda one: one[1].cost)
    return [(task, _settled(task, by_share, one)) for task, one, by_share in found[:_MAX_SETTLED]]


def _beside_share(task: GroupTask, by_share: ByShare, share: float, price: float, max_groups: int) -> Grouping:
    """The best 2 .. `max_groups` groups beside a garbage of this class share, at this price of a modality not in it."""
    n = len(task.units)
    max_groups = min(max_groups, n - 2, (task.max_parts or n) - 1)
    models = [task.price(labels) for labels in by_share.groups(by_share.costs(share), price, max_groups)]
    return cheapest(*models, Grouping(np.inf, np.zeros(n, dtype=np.int64)))


def _settled(task: GroupTask, by_share: ByShare, best: Grouping) -> Grouping:
    """In rounds, the share and the price are those of the garbage before, as long as the cost falls."""
    units = task.units
    for _ in range(_MAX_ROUNDS):
        if best.garbage is None:
            return best
        inside = best.labels == best.garbage
        n_groups, size = int(best.labels.max()) + 1, int(units.weights[inside].sum())
        rise = task.garbage_prior(n_groups, size - 1) - task.garbage_prior(n_groups, size)
        price = rise if np.isfinite(rise) and rise > _PRICES[0] else _PRICES[0]
        better = _beside_share(task, by_share, _share(units.counts[inside]), price, _GROUPS_SETTLED)
        if not is_cheaper(better.cost, best.cost):
            return best
        best = better
    return best


def _share(counts: Floats) -> float:
    """Of the second class, away from 0 and 1."""
    return float((counts[:, 1].sum() + 0.5) / (counts.sum() + 1.0))


def _likely_shares(counts: Floats) -> list[float]:
    """Of a garbage: that of all rows, and of the modality in the middle: a few large ones may be far from it."""
    share = _share(counts)
    if len(counts) > _MAX_TRIED:
        return [share]
    middle = counts[by_share(counts, 1)[len(counts) // 2]]
    return [share, _share(middle[None, :])]


def _uninformative_as_garbage(task: GroupTask) -> list[Grouping]:
    """The modalities with the most to tell apart from the rest, 2, 4, 8, 16, ... of them; the rest garbage."""
    units = task.units
    order = np.argsort(-_gain_of_own_shares(units), kind="stable")
    informative = np.cumsum(units.weights[order])
    starts: list[Grouping] = []
    wanted, last = 2.0, 0
    while wanted < units.n_modalities:
        n = int(np.searchsorted(informative, wanted)) + 1
        wanted *= 2.0
        if n < 2 or n >= len(units) or n == last:
            continue
        last = n
        starts.append(_beside_garbage(task, order[:n]))
    return sorted(starts, key=lambda one: one.cost)[:2]


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
    max_groups = min(_MAX_START_GROUPS, len(ends), task.max_parts or _MAX_START_GROUPS)
    cuts = (PricedSearch(cut_task, ends).by_number(max_groups) or [])[2:]
    starts = [task.price(labels_along(order, one.ends)) for one in cuts]
    return sorted((one for one in starts if one.garbage is not None), key=lambda one: one.cost)[:2]


def _beside_garbage(task: GroupTask, chosen: Indices) -> Grouping:
    """The best cuts of the chosen units along the main axis, the others in one more group."""
    units = task.units
    size = int(units.weights.sum() - units.weights[chosen].sum())
    order = chosen[by_main_axis(units.counts[chosen])]
    max_groups = min(len(order), _MAX_INFORMATIVE_GROUPS, (task.max_parts or len(units)) - 1)
    prior = task.garbage_priors(max_groups + 1, size)[1:].copy()
    if max_groups < 2 or not np.isfinite(prior[1]):
        return Grouping(np.inf, np.zeros(len(units), dtype=np.int64))
    prior[0] = prior[1]
    ends = task.best_ends(order, prior)
    labels = np.full(len(units), len(ends), dtype=np.int64)
    labels[order] = labels_of(ends, len(order))
    return task.price(labels)


def _gain_of_own_shares(units: GroupingUnits) -> Floats:
    """What each modality's own class shares save over the shares of all, in nats per modality."""
    sizes = units.counts.sum(axis=1)
    base = units.counts.sum(axis=0) / sizes.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(units.counts > 0, np.log(units.counts / sizes[:, None] / base), 0.0)
    gain = (units.counts * ratio).sum(axis=1) - 0.5 * (units.counts.shape[1] - 1) * np.log(sizes)
    return np.asarray(gain / units.weights)


# -- gains of groups of two classes beside a garbage group of a given share ------------------------


class _Runs(NamedTuple):
    """The work of a dynamic program over the units `who` (n,), cut only at `ends` (m + 1,)."""

    who: Indices
    ends: Indices
    reward: Floats
    at_left: Floats
    at_right: Floats
    gains: Floats
    best: Floats


class ByShare:
    """Modalities of two classes in the order of the share of the second; equal ones are one that counts as often.

    Parameters
    ----------
    counts : (U, 2)
    max_ends : int or None
        Runs end at so many places at most; None: anywhere, which bounds need.
    cells : (int, int)
        Cells of the shares of groups: of all, and of where nearly all rows are.
    """

    def __init__(self, counts: Floats, max_ends: int | None = None, cells: tuple[int, int] = BOUND_CELLS) -> None:
        distinct, same, times = np.unique(counts, axis=0, return_inverse=True, return_counts=True)
        order = by_share(distinct, 1)
        self.counts, self.times = np.ascontiguousarray(distinct[order]), times[order].astype(np.float64)
        self.position = np.argsort(order)[same.ravel()]  # of each unit
        rows, second = self.counts.sum(axis=1), self.counts[:, 1]
        share = second / rows
        self.min_costs = -xlogy(second, share) - xlog1py(self.counts[:, 0], -share)  # of each, at its own share
        self.max_ends = max_ends
        self.edges = _edges_of_cells(share, rows * self.times, *cells)
        self.work = 0.0

    def costs(self, share: float) -> Floats:
        """What each costs in a group of this share."""
        return np.asarray(-self.counts @ np.log([1.0 - share, share]))

    def gained(self, cost: Floats, price: float, max_groups: int) -> Floats:
        """The most that 2 .. K groups or fewer gain over a garbage with these costs, then any number of groups."""
        runs = self._runs(cost, price, max_groups, fewer=True)
        return np.zeros(max_groups) if runs is None else np.append(runs.best[2:, -1], runs.best[0, -1])

    def groups(self, cost: Floats, price: float, max_groups: int) -> list[Indices]:
        """For 2 .. K groups, as far as there are: the best group of each unit (U,), 0 for the garbage."""
        runs = self._runs(cost, price, max_groups, fewer=False)
        if runs is None:
            return []
        found = []
        for k in range(2, min(max_groups, len(runs.ends) - 1) + 1):
            labels = np.empty(len(self.counts), dtype=np.int64)
            kernels.label_runs(
                k, runs.who, runs.ends, runs.reward, self.counts, self.edges, runs.at_left, runs.best, runs.gains,
                labels,
            )  # fmt: skip
            found.append(labels[self.position])
        return found

    def _runs(self, cost: Floats, price: float, max_groups: int, *, fewer: bool) -> _Runs | None:
        reward = cost - price
        who = np.flatnonzero(reward > self.min_costs)  # nothing is gained with the others, whatever their group's share
        if len(who) == 0:
            return None
        shape = len(self.edges) - 1, len(who) + 1
        at_left, at_right = np.empty(shape), np.empty(shape)
        kernels.gains_in_cells(reward[who], self.counts[who], self.times[who], self.edges, at_left, at_right)
        ends = np.arange(len(who) + 1)
        if self.max_ends is not None and len(ends) > self.max_ends:
            ends = np.unique(np.linspace(0, len(who), self.max_ends).astype(np.int64))
            at_left, at_right = np.ascontiguousarray(at_left[:, ends]), np.ascontiguousarray(at_right[:, ends])
        n = len(ends)
        gains, best = np.zeros((n, n)), np.zeros((max_groups + 1, n))
        kernels.gains_of_groups(at_left, at_right, self.edges, fewer, np.empty(n), np.empty(n), gains, best)
        self.work += len(at_left) * n * (n - 1) / 2
        return _Runs(who, ends, reward[who], at_left, at_right, gains, best)


def shares_along(angles: Floats) -> Floats:
    """Shares that estimates from as many rows tell apart equally well, along angles from 0 to pi / 2."""
    return np.asarray(np.sin(angles) ** 2)


def _edges_of_cells(share: Floats, rows: Floats, n_coarse: int, n_fine: int) -> Floats:
    """Where cells of the shares of groups end, finer where nearly all rows are."""
    angles, position = np.arcsin(np.sqrt(share)), np.cumsum(rows) / rows.sum()
    low, high = angles[np.minimum(np.searchsorted(position, [0.02, 0.98]), len(angles) - 1)]
    spread = 2.0 / np.sqrt(rows.sum())  # four standard errors of the share of all
    fine = np.linspace(max(0.0, low - spread), min(np.pi / 2, high + spread), n_fine + 1)
    edges = np.unique(shares_along(np.concatenate([np.linspace(0.0, np.pi / 2, n_coarse + 1), fine])))
    inside = edges[(edges > 1e-12) & (edges < 1.0 - 1e-12)]  # none so near 0 or 1 that its cell's middle is there
    return np.concatenate([[0.0], inside, [1.0]])
