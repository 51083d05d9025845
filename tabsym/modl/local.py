"""Local search over groupings: single moves and joins, from any start."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from tabsym.modl import kernels_grouped as kernels
from tabsym.modl.criterion import garbage_priors, parts_cost
from tabsym.modl.ends import labels_of
from tabsym.modl.hull import Best
from tabsym.modl.quantiles import quantile_boundaries
from tabsym.modl.search import Task, descend_cuts, ln_constant, make_task, take_one_cut
from tabsym.modl.units import Units, sum_by, without_gaps

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

CELLS = 1024
_MOST_SWEEPS = 40


@dataclass(frozen=True)
class Grouping:
    """A model: its cost, the group of each unit, and which group is the garbage."""

    cost: float
    labels: Places
    garbage: int | None = None


@dataclass(frozen=True)
class Ground:
    """What a local search stands on: the units, the prior of 1 .. K groups, and Khiops' prior with garbage."""

    units: Units
    prior: Floats
    table: Floats
    least: float
    n_candidates: int
    has_garbage: bool
    deadline: float = np.inf
    max_parts: int | None = None

    @property
    def ln_classes(self) -> float:
        return ln_constant(self.units.counts.shape[1])

    def with_garbage(self, n_groups: int, size: int) -> float:
        """Khiops' prior where one of the groups is the garbage, of `size` modalities."""
        return float(self.all_with_garbage(n_groups, size)[-1])

    def all_with_garbage(self, most: int, size: int) -> Floats:
        """`with_garbage` for 1 .. most groups."""
        return garbage_priors(
            most,
            size,
            n_rows=float(self.units.counts.sum()),
            n_modalities=self.units.n_modalities,
            n_candidates=self.n_candidates,
            granularity=self.units.granularity,
        )

    def price(self, labels: Places) -> Grouping:
        """The cost of a grouping, with the best choice of garbage or none; groups that are too small are joined."""
        labels = without_gaps(labels)
        if self.least > 1:
            labels = self._enlarged(labels)
        n = int(labels.max()) + 1
        parts = parts_cost(sum_by(labels, self.units.counts, n))
        cost, garbage = float(self.prior[n - 1]) if n <= len(self.prior) else np.inf, None
        if self.has_garbage and 3 <= n <= len(self.prior):
            sizes = np.bincount(labels, self.units.weights, minlength=n)
            largest = int(np.argmax(sizes))  # the prior falls with the size of the garbage
            other = self.with_garbage(n, int(sizes[largest]))
            if other < cost:
                cost, garbage = other, largest
        return Grouping(parts + cost, labels, garbage)

    def _enlarged(self, labels: Places) -> Places:
        """Each group of fewer than `least` rows in the one where that costs least."""
        groups = sum_by(labels, self.units.counts, int(labels.max()) + 1)
        sizes, absent = groups.sum(axis=1), np.zeros(len(groups), dtype=bool)
        while absent.sum() < len(groups) - 1 and (sizes[~absent] < self.least).any():
            small = int(np.argmin(np.where(absent, np.inf, sizes)))
            rise = costs_of_groups(groups + groups[small]) - costs_of_groups(groups)
            rise[absent] = np.inf
            rise[small] = np.inf
            into = int(np.argmin(rise))
            groups[into] += groups[small]
            sizes[into] += sizes[small]
            absent[small] = True
            labels = np.where(labels == small, into, labels)
        return without_gaps(labels)


def costs_of_groups(groups: Floats) -> Floats:
    """What each group costs, but for what is the same for all."""
    return np.asarray(gammaln(groups.sum(axis=1) + groups.shape[1]) - gammaln(groups + 1).sum(axis=1))


def cut_along(ground: Ground, order: Places, cells: int = CELLS) -> Grouping:
    """The best cuts of the units in this order, at so many places."""
    task, ends = line_up(ground, order, cells)
    best = Best(np.inf, np.array([len(order)]), 0)
    if len(ground.prior) > 1:
        take_one_cut(task, ends, float(ground.prior[1]), best, 0)
    descend_cuts(task, ends, ground.prior, best, 0)
    return ground.price(labels_along(order, best.ends))


def line_up(ground: Ground, order: Places, cells: int = CELLS) -> tuple[Task, Places]:
    """The units in this order as a task, and where it may be cut: anywhere, or at so many quantiles (a power of 2)."""
    task = make_task(ground.units.counts[order], ground.least, ground.deadline, ground.table)
    if len(order) <= cells:
        return task, np.arange(1, len(order) + 1)
    return task, quantile_boundaries(task.sizes, cells.bit_length() - 1)


def labels_along(order: Places, ends: Places) -> Places:
    """The part of each unit, where the units in this order are cut at these ends."""
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = labels_of(ends, len(order))
    return labels


def polish(ground: Ground, start: Grouping, rng: np.random.RandomState) -> Grouping:
    """Moves and joins until neither helps; never worse than the start."""
    best = start
    for _ in range(_MOST_SWEEPS):
        if time.monotonic() > ground.deadline:
            break
        moved = _move(ground, best, rng)
        joined = _join(ground, moved)
        if joined.cost >= best.cost - 1e-9:
            return min((best, moved, joined), key=lambda one: one.cost)
        best = joined
    return best


def _move(ground: Ground, start: Grouping, rng: np.random.RandomState) -> Grouping:
    """Sweeps of single moves, as long as the cost falls."""
    best = start
    units, n_units = ground.units, len(ground.units)
    for _ in range(_MOST_SWEEPS):
        if time.monotonic() > ground.deadline:
            break
        n = int(best.labels.max()) + 1
        slots = n + 2
        labels = best.labels.astype(np.int64)
        groups = sum_by(labels, units.counts, slots)
        sizes = np.bincount(labels, minlength=slots).astype(np.int64)
        costs = np.zeros(slots)
        kernels.group_costs(groups, ground.table, costs)
        costs[sizes == 0] = 0.0
        prices, garbage_price = _prices(ground, best, n)
        order = rng.permutation(n_units)
        moves = kernels.move_units(
            units.counts, units.weights, order, prices, -1 if best.garbage is None else best.garbage, garbage_price,
            ground.least, ground.table, labels, groups, sizes, costs,
        )  # fmt: skip
        if moves == 0:
            return best
        after = ground.price(labels)
        if after.cost >= best.cost - 1e-9:
            return best
        best = after
    return best


def _prices(ground: Ground, grouping: Grouping, n: int) -> tuple[Floats, float]:
    """What the prior asks for each further group, and for each modality that leaves the garbage."""
    most = min(len(ground.prior), n + 2)
    prices = np.full(n + 3, np.inf)
    if grouping.garbage is None:
        prices[2 : most + 1] = np.diff(ground.prior[:most]) - ground.ln_classes
        return prices[: most + 1], 0.0
    size = int(ground.units.weights[grouping.labels == grouping.garbage].sum())
    priors = ground.all_with_garbage(n + 2, size)[1:]
    with np.errstate(invalid="ignore"):
        prices[3:] = np.where(np.isfinite(priors[1:]), np.diff(priors) - ground.ln_classes, np.inf)
    prices[3] = 0.0 if not np.isfinite(prices[3]) else prices[3]
    less = ground.with_garbage(n, size - 1)
    price = less - ground.with_garbage(n, size) if np.isfinite(less) else 0.0
    return prices, price


def _join(ground: Ground, start: Grouping) -> Grouping:
    """Joins of groups, cheapest first; the best number of groups on the way."""
    n = int(start.labels.max()) + 1
    if n < 3:
        return start
    groups = sum_by(start.labels, ground.units.counts, n)
    merged, totals = join_path(groups, ground.table)
    if start.garbage is not None:
        return _join_beside_garbage(ground, start, merged)
    numbers = np.arange(n, 0, -1)
    cost = totals - numbers * ground.ln_classes + ground.prior[np.minimum(numbers, len(ground.prior)) - 1]
    cost[numbers > len(ground.prior)] = np.inf
    step = int(np.argmin(cost))
    if step == 0:
        return start
    return min(start, ground.price(follow(merged[:step], n)[start.labels]), key=lambda one: one.cost)


def _join_beside_garbage(ground: Ground, start: Grouping, merged: Places) -> Grouping:
    """As with `_join`, each step priced in full, as the garbage changes with it."""
    n, best = int(start.labels.max()) + 1, start
    for step in range(1, min(len(merged), 8) + 1):
        best = min(best, ground.price(follow(merged[:step], n)[start.labels]), key=lambda one: one.cost)
    return best


def join_path(groups: Floats, table: Floats) -> tuple[Places, Floats]:
    """Greedy joins down to one group: the pairs (K - 1, 2), and the cost of the parts (without constants) at K .. 1."""
    n = len(groups)
    costs = np.empty(n)
    kernels.group_costs(groups, table, costs)
    merged, totals = np.zeros((n - 1, 2), dtype=np.int64), np.empty(n)
    kernels.merge_groups(
        groups.copy(), table, costs, np.full((n, n), np.inf), np.zeros(n, dtype=np.bool_), merged, totals
    )
    return merged, totals


def follow(merged: Places, n: int) -> Places:
    """The label of each of n groups after these joins."""
    labels = np.arange(n)
    for a, b in merged:
        labels[labels == b] = a
    return without_gaps(labels)
