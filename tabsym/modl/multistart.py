"""Grouping with more than two classes: local search from many starts, as no order of the modalities is enough."""

from __future__ import annotations

import time

import numpy as np

from tabsym.modl.local import Ground, Grouping, cut_along, follow, join_path, polish
from tabsym.modl.units import by_main_axis, by_share, sum_by

_MOST_CLUSTERS = 300
_MOST_ORDERS = 12
_START_GROUPS = 32
_RESTARTS, _FEW_RESTARTS = 8, 40
_FEW = 32  # units up to which a restart takes less than a millisecond
_LARGE = 2000  # units from which a single start has to do


def quick_start(ground: Ground, rng: np.random.RandomState) -> Grouping:
    """The best of cuts along the main axis, of equal cells and, for not too many units, of greedy joins, polished."""
    found = cut_along(ground, by_main_axis(ground.units.counts))
    found = min(found, polish(ground, equal_cells(ground), rng), key=lambda one: one.cost)
    if len(ground.units) <= _LARGE and time.monotonic() < ground.deadline:
        joins = polish(ground, _by_joins(ground, [found]), rng)
        found = min(polish(ground, found, rng), joins, key=lambda one: one.cost)
    return found


def thorough(ground: Ground, first: Grouping, rng: np.random.RandomState, *, insist: bool) -> Grouping:
    """Starts along each class's share and by greedy joins, each polished; then perturbed restarts of the best."""
    counts = ground.units.counts
    starts = [first]
    classes = np.argsort(-counts.sum(axis=0))[:_MOST_ORDERS]
    large = len(ground.units) > _LARGE
    for j in classes[: 3 if large else None]:
        if time.monotonic() < ground.deadline:
            starts.append(cut_along(ground, by_share(counts, j)))
    if time.monotonic() < ground.deadline:
        starts.append(_by_joins(ground, starts))
    found = [polish(ground, one, rng) for one in sorted(starts, key=lambda one: one.cost)[: 2 if large else None]]
    best = min(found, key=lambda one: one.cost)
    tries, enough = 0, _FEW_RESTARTS if len(ground.units) <= _FEW else 0 if large else _RESTARTS
    while time.monotonic() < ground.deadline and (insist or tries < enough):
        best = min(best, polish(ground, _shaken(ground, best, rng), rng), key=lambda one: one.cost)
        tries += 1
        if insist and tries >= 1000:
            break
    return best


def equal_cells(ground: Ground) -> Grouping:
    """Cells of equal size along the main axis: more than there will be groups, for moves and joins to sort out.

    Where the prior of a second group alone outweighs what any two groups save, cuts find nothing.
    """
    order = by_main_axis(ground.units.counts)
    sizes = np.cumsum(ground.units.counts[order].sum(axis=1))
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = np.minimum(_START_GROUPS * sizes / (sizes[-1] + 1.0), len(ground.prior) - 1)
    return ground.price(labels)


def _by_joins(ground: Ground, starts: list[Grouping]) -> Grouping:
    """Greedy joins from single units, or from the cells that the starts cut together."""
    counts = ground.units.counts
    cells = np.arange(len(counts))
    if len(counts) > _MOST_CLUSTERS:
        cells = np.zeros(len(counts), dtype=np.int64)
        for one in sorted(starts, key=lambda one: one.cost):
            finer = np.unique(cells * (one.labels.max() + 1) + one.labels, return_inverse=True)[1].ravel()
            if finer.max() >= _MOST_CLUSTERS:
                break
            cells = finer
    n = int(cells.max()) + 1
    if n < 2:
        return ground.price(cells)
    merged, totals = join_path(sum_by(cells, counts, n), ground.table)
    numbers = np.arange(n, 0, -1)
    cost = totals - numbers * ground.ln_classes + ground.prior[np.minimum(numbers, len(ground.prior)) - 1]
    cost[numbers > len(ground.prior)] = np.inf
    return ground.price(follow(merged[: int(np.argmin(cost))], n)[cells])


def _shaken(ground: Ground, best: Grouping, rng: np.random.RandomState) -> Grouping:
    """The best grouping with a tenth of its units, at least two, in other groups."""
    labels = best.labels.copy()
    some = rng.permutation(len(labels))[: max(2, len(labels) // 10)]
    labels[some] = rng.randint(0, min(labels.max() + 2, len(ground.prior)), size=len(some))
    return ground.price(labels)
