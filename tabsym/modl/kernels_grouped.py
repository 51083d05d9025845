"""Searches over groups of units without an order: arrays in, arrays out, nothing checked.

`groups` (K, J) and `units` (U, J) hold class counts. `table` is ln k! for whole counts, empty where ln Gamma
must be computed. Costs of parts leave out the constant -ln (J - 1)!, which callers put into the price of a part.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import inlined, kernel
from tabsym.modl.factorials import ln_factorial


@inlined
def _joined_cost(groups, a, b, table):
    """Cost of groups a and b as one."""
    total, cost = 0.0, 0.0
    for j in range(groups.shape[1]):
        count = groups[a, j] + groups[b, j]
        total += count
        cost -= ln_factorial(count, table)
    return cost + ln_factorial(total + groups.shape[1] - 1, table)


@inlined
def _cost_with(groups, k, units, u, sign, table):
    """Cost of group k with unit u added (sign 1) or taken away (sign -1)."""
    total, cost = 0.0, 0.0
    for j in range(groups.shape[1]):
        count = groups[k, j] + sign * units[u, j]
        total += count
        cost -= ln_factorial(count, table)
    return cost + ln_factorial(total + groups.shape[1] - 1, table)


@inlined
def _cost_of(groups, k, table):
    total, cost = 0.0, 0.0
    for j in range(groups.shape[1]):
        total += groups[k, j]
        cost -= ln_factorial(groups[k, j], table)
    return cost + ln_factorial(total + groups.shape[1] - 1, table)


@kernel
def group_costs(groups, table, out):
    """Cost of the parts (K, J), each without its constant, into out (K,)."""
    for k in range(len(groups)):
        out[k] = _cost_of(groups, k, table)


@kernel
def move_units(units, weights, order, prices, garbage, garbage_price, least, table, labels, groups, sizes, costs):
    """Move each unit to the group where it costs least, once through `order`; the number of moves.

    units (U, J) class counts; weights (U,) modalities in each; labels (U,) their groups; groups (K, J) class counts,
    sizes (K,) units in each, costs (K,): all kept up to date. prices (K + 1,): the prior's increase at each number of
    groups, paid back when a group becomes empty and paid when an empty one is used. A unit in the group `garbage`
    (-1: none) earns garbage_price per modality.
    """
    n_groups = 0
    for k in range(len(groups)):
        n_groups += sizes[k] > 0
    moves = 0
    for u in order:
        home = labels[u]
        without = _cost_with(groups, home, units, u, -1.0, table)
        leave = (without if sizes[home] > 1 else 0.0) - costs[home]
        if least > 1.0 and sizes[home] > 1:
            rest = 0.0
            for j in range(groups.shape[1]):
                rest += groups[home, j] - units[u, j]
            if rest < least:
                continue
        if sizes[home] == 1:
            if home == garbage:
                continue
            leave -= prices[n_groups]
        if home == garbage:
            leave += garbage_price * weights[u]
        low, place, tried_empty = -1e-9, home, False
        for k in range(len(groups)):
            if k == home:
                continue
            if sizes[k] == 0:
                if tried_empty or k == garbage or sizes[home] == 1 or least > 1.0 or n_groups + 1 >= len(prices):
                    continue
                tried_empty = True
                gain = leave + _cost_with(groups, k, units, u, 1.0, table) + prices[n_groups + 1]
            else:
                gain = leave + _cost_with(groups, k, units, u, 1.0, table) - costs[k]
                if k == garbage:
                    gain -= garbage_price * weights[u]
            if gain < low:
                low, place = gain, k
        if place == home:
            continue
        n_groups += (sizes[place] == 0) - (sizes[home] == 1)
        labels[u] = place
        sizes[home] -= 1
        sizes[place] += 1
        for j in range(groups.shape[1]):
            groups[home, j] -= units[u, j]
            groups[place, j] += units[u, j]
        costs[home] = _cost_of(groups, home, table) if sizes[home] else 0.0
        costs[place] = _cost_of(groups, place, table)
        moves += 1
    return moves


@kernel
def merge_groups(groups, table, costs, gains, alive, merged, totals):
    """Join the pair of groups that costs least to join, until one is left.

    groups (K, J) and costs (K,) are used up; gains (K, K) and alive (K,) are room to work in. merged (K - 1, 2): the
    second joined the first; totals (K,): cost of the parts before each join, and at the end.
    """
    n = len(groups)
    total = 0.0
    for a in range(n):
        alive[a] = True
        total += costs[a]
        for b in range(a + 1, n):
            gains[a, b] = _joined_cost(groups, a, b, table) - costs[a] - costs[b]
    totals[0] = total
    for step in range(n - 1):
        low, a, b = np.inf, 0, 0
        for i in range(n):
            if alive[i]:
                for j in range(i + 1, n):
                    if alive[j] and gains[i, j] < low:
                        low, a, b = gains[i, j], i, j
        merged[step, 0], merged[step, 1] = a, b
        total += low
        totals[step + 1] = total
        alive[b] = False
        for j in range(groups.shape[1]):
            groups[a, j] += groups[b, j]
        costs[a] = _cost_of(groups, a, table)
        for i in range(n):
            if alive[i] and i != a:
                gain = _joined_cost(groups, a, i, table) - costs[a] - costs[i]
                if i < a:
                    gains[i, a] = gain
                else:
                    gains[a, i] = gain


@kernel
def best_subsets(units, table, least, subset_cost, best, choice):
    """Least cost of the parts for every subset of the units and every number of groups.

    subset_cost (2**U,): cost of each subset as one group; best (K + 1, 2**U); choice (K + 1, 2**U): the group that holds
    the subset's first unit.
    """
    n_units, n_classes = units.shape
    n_subsets = 1 << n_units
    for subset in range(1, n_subsets):
        total, cost = 0.0, 0.0
        for j in range(n_classes):
            count = 0.0
            for u in range(n_units):
                if subset >> u & 1:
                    count += units[u, j]
            total += count
            cost -= ln_factorial(count, table)
        subset_cost[subset] = cost + ln_factorial(total + n_classes - 1, table) if total >= least else np.inf
    for k in range(best.shape[0]):
        for subset in range(n_subsets):
            best[k, subset] = np.inf
    best[0, 0] = 0.0
    for k in range(1, best.shape[0]):
        for subset in range(1, n_subsets):
            first = subset & -subset
            rest = subset ^ first
            inner = rest
            low, place = np.inf, 0
            while True:  # every group that holds the first unit
                group = inner | first
                value = best[k - 1, subset ^ group] + subset_cost[group]
                if value < low:
                    low, place = value, group
                if inner == 0:
                    break
                inner = (inner - 1) & rest
            best[k, subset] = low
            choice[k, subset] = place
