"""Local search over groupings: single moves and joins, from any start."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from tabsym.modl import kernels_grouped as kernels
from tabsym.modl.ground import Ground, Grouping
from tabsym.modl.units import sum_by, without_gaps

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

_MOST_POLISHES, _MOST_SWEEPS = 40, 40  # rounds of moves and joins, and sweeps of moves in each: time for cost


def polish(ground: Ground, start: Grouping, rng: np.random.RandomState) -> Grouping:
    """Moves and joins until neither helps; never worse than the start."""
    best = start
    for _ in range(_MOST_POLISHES):
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
    step = cheapest_step(ground, totals)
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


def cheapest_step(ground: Ground, totals: Floats) -> int:
    """How many joins make the cheapest grouping on the way from K groups to one, garbage groups left aside."""
    numbers = np.arange(len(totals), 0, -1)
    cost = totals - numbers * ground.ln_classes + ground.prior[np.minimum(numbers, len(ground.prior)) - 1]
    cost[numbers > len(ground.prior)] = np.inf
    return int(np.argmin(cost))


def follow(merged: Places, n: int) -> Places:
    """The label of each of n groups after these joins."""
    labels = np.arange(n)
    for a, b in merged:
        labels[labels == b] = a
    return without_gaps(labels)
