"""Every partition of few modalities, by dynamic programming over subsets: exact for any number of classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tabsym.modl import kernels_grouped as kernels
from tabsym.modl.ground import Ground, Grouping
from tabsym.modl.group_search import GroupSearch
from tabsym.modl.hull import is_cheaper
from tabsym.modl.units import Units

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

MOST_SUBSETS = 12
"""Up to so many modalities every partition is looked at, in about 3**12 steps for each number of groups."""


def every_partition(search: GroupSearch, families: list[Units], best: Grouping) -> Grouping:
    """The best grouping, with a garbage group or without, of these units, or the best one known."""
    for units in families:
        ground = search.ground(units)
        found = _best_of(ground) if len(ground.prior) > 1 else None
        if found is not None and is_cheaper(found.cost, best.cost):
            best = found.of_modalities(units)
    return best


def _best_of(ground: Ground) -> Grouping:
    """The best groups of these units, of which there are two or more."""
    n, prior = len(ground.units), ground.prior
    cost = np.full(2**n, np.inf)
    table = np.full((len(prior) + 1, 2**n), np.inf)
    choice = np.zeros((len(prior) + 1, 2**n), dtype=np.int64)
    kernels.best_subsets(ground.units.counts, ground.table, ground.least, cost, table, choice)
    totals = table[1:, -1] - np.arange(1, len(prior) + 1) * ground.ln_classes + prior
    k = int(np.argmin(totals))
    best = Grouping(float(totals[k]), _chosen(choice, k + 1, 2**n - 1, n))
    return _beside_garbage(ground, best, cost, table, choice) if ground.has_garbage else best


def _beside_garbage(ground: Ground, best: Grouping, cost: Floats, table: Floats, choice: Places) -> Grouping:
    """The best groups beside each subset as the garbage, if they are better than the best without one."""
    n, ln_classes = len(ground.units), ground.ln_classes
    for subset in range(1, 2**n - 1):
        size, rest = subset.bit_count(), 2**n - 1 - subset
        for others in range(2, min(n - size, len(ground.prior) - 1) + 1):
            total = cost[subset] + table[others, rest] - (others + 1) * ln_classes
            if total < best.cost:
                total += ground.with_garbage(others + 1, size)
                if is_cheaper(total, best.cost):
                    labels = _chosen(choice, others, rest, n)
                    labels[[bool(subset >> u & 1) for u in range(n)]] = others
                    best = Grouping(float(total), labels, others)
    return best


def _chosen(choice: Places, k: int, subset: int, n: int) -> Places:
    """Labels (n,) of the groups that the subset program chose."""
    labels = np.zeros(n, dtype=np.int64)
    while k > 0:
        group = int(choice[k, subset])
        k -= 1
        for u in range(n):
            if group >> u & 1:
                labels[u] = k
        subset ^= group
    return labels
