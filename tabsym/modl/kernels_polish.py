"""Moves of units between groups and joins of groups, to a local optimum: arrays in, arrays out, nothing checked.

`units` (U, J) hold class counts, `weights` (U,) the modalities in each, `labels` (U,) their groups 0, 1, ... Costs of
parts leave out the constant -ln (J - 1)!, `ln_classes`, until a model is priced. `prior` (P,) is of 1, 2, ... groups
without a garbage group; `by_size` (V + 1,) is what the prior has of the size of a garbage group among V modalities (of
length 0 where there is none), `stars` (P,) what it has of the number of other groups, and `ln_derangements` (P,) what
numbers of partitions are computed from (`criterion.ln_partitions`).
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import inlined, kernel
from tabsym.modl.kernels_cuts import ln_factorial


@inlined
def _cost_with(groups, k, units, u, sign, table):
    """Cost of group k with unit u added (sign 1) or taken away (sign -1)."""
    total, cost = 0.0, 0.0
    for j in range(groups.shape[1]):
        count = groups[k, j] + sign * units[u, j]
        total += count
        cost -= ln_factorial(count, table)
    return cost + ln_factorial(total + groups.shape[1] - 1, table)


@kernel
def _cost_of(groups, k, table):
    total, cost = 0.0, 0.0
    for j in range(groups.shape[1]):
        total += groups[k, j]
        cost -= ln_factorial(groups[k, j], table)
    return cost + ln_factorial(total + groups.shape[1] - 1, table)


@inlined
def _joined_cost(groups, a, b, table):
    """Cost of groups a and b as one."""
    total, cost = 0.0, 0.0
    for j in range(groups.shape[1]):
        count = groups[a, j] + groups[b, j]
        total += count
        cost -= ln_factorial(count, table)
    return cost + ln_factorial(total + groups.shape[1] - 1, table)


@kernel
def garbage_prior(n, size, by_size, stars, ln_derangements):
    """The prior of n groups one of which is the garbage and holds `size` modalities."""
    rest, n_others = len(by_size) - 1 - size, n - 1
    if size < 1 or n_others < 2 or n_others > rest or n > len(stars):
        return np.inf
    top = -np.inf
    ln_kth = 0.0
    for k in range(1, n_others + 1):
        ln_kth += np.log(k)
        top = max(top, rest * np.log(k) - ln_kth + ln_derangements[n_others - k])
    total, ln_kth = 0.0, 0.0
    for k in range(1, n_others + 1):
        ln_kth += np.log(k)
        total += np.exp(rest * np.log(k) - ln_kth + ln_derangements[n_others - k] - top)
    return by_size[size] + stars[n_others - 2] + top + np.log(total)


@kernel
def _priced(n, largest, prior, by_size, stars, ln_derangements):
    """The prior of n groups: with the one of `largest` modalities as the garbage, or without one."""
    cost = prior[n - 1] if n <= len(prior) else np.inf
    garbage = -1.0
    if len(by_size) > 0 and n >= 3 and n <= len(prior):
        with_garbage = garbage_prior(n, largest, by_size, stars, ln_derangements)
        if with_garbage < cost:
            cost, garbage = with_garbage, 1.0
    return cost, garbage


@kernel
def _fill(units, weights, labels, table, groups, sizes, modalities, costs):
    """Class counts, units, modalities and costs of the groups that these labels make."""
    for k in range(len(groups)):
        sizes[k] = 0
        modalities[k] = 0.0
        for j in range(groups.shape[1]):
            groups[k, j] = 0.0
    for u in range(len(labels)):
        k = labels[u]
        sizes[k] += 1
        modalities[k] += weights[u]
        for j in range(groups.shape[1]):
            groups[k, j] += units[u, j]
    for k in range(len(groups)):
        costs[k] = _cost_of(groups, k, table) if sizes[k] else 0.0


@kernel
def _price_of(n_groups, sizes, modalities, costs, ln_classes, prior, by_size, stars, ln_derangements):
    """The cost of groups, and which is the garbage (-1: none)."""
    total, n, position = 0.0, np.int64(0), -1  # a plain 0 would be compiled for as a type of its own
    for k in range(n_groups):
        if sizes[k]:
            n += 1
            total += costs[k] - ln_classes
            if position < 0 or modalities[k] > modalities[position]:
                position = k
    of_number, garbage = _priced(n, int(modalities[position]), prior, by_size, stars, ln_derangements)
    return total + of_number, position if garbage > 0 else -1


@kernel
def _changes(n, garbage, size, ln_classes, prior, by_size, stars, ln_derangements):
    """What one group more costs, what one less saves, and what a modality costs that leaves the garbage."""
    left = 0.0
    if garbage < 0:
        now = prior[n - 1] if n <= len(prior) else np.inf
        more = prior[n] if n < len(prior) else np.inf
        fewer = prior[n - 2] if n > 1 else np.inf
    else:
        now = garbage_prior(n, size, by_size, stars, ln_derangements)
        more = garbage_prior(n + 1, size, by_size, stars, ln_derangements)
        fewer = garbage_prior(n - 1, size, by_size, stars, ln_derangements)
        less = garbage_prior(n, size - 1, by_size, stars, ln_derangements)
        if less < np.inf:
            left = less - now
    opened = more - now - ln_classes if more < np.inf else np.inf
    closed = now - fewer - ln_classes if fewer < np.inf else -np.inf
    return opened, closed, left


@inlined
def _must_stay(groups, sizes, units, u, current, garbage, closed, min_rows):
    """Whether a unit cannot leave its group: the garbage, or one of a minimum size, would be left without."""
    if sizes[current] == 1:
        return current == garbage or closed == -np.inf
    if min_rows <= 1.0:
        return False
    rest = 0.0
    for j in range(groups.shape[1]):
        rest += groups[current, j] - units[u, j]
    return rest < min_rows


@kernel
def _position_of(u, current, garbage, opened, closed, left, min_rows, units, weights, groups, sizes, costs, table):
    """The group where a unit costs least: its current one unless another one is cheaper."""
    leave = -costs[current]
    if sizes[current] > 1:
        leave += _cost_with(groups, current, units, u, -1.0, table)
    else:
        leave -= closed
    if current == garbage:
        leave += left * weights[u]
    low, position, tried_empty = -1e-9, current, False
    for k in range(len(groups)):
        if k == current:
            continue
        change = leave + opened
        if sizes[k] == 0:
            if tried_empty or sizes[current] == 1 or min_rows > 1.0 or opened == np.inf:
                continue
            tried_empty = True
        else:
            change = leave - costs[k]
            if k == garbage:
                change -= left * weights[u]
        change += _cost_with(groups, k, units, u, 1.0, table)
        if change < low:
            low, position = change, k
    return position


@inlined
def _move(u, current, position, units, weights, table, labels, groups, sizes, modalities, costs):
    """Move a unit from its current group to another."""
    labels[u] = position
    sizes[current] -= 1
    sizes[position] += 1
    modalities[current] -= weights[u]
    modalities[position] += weights[u]
    for j in range(groups.shape[1]):
        groups[current, j] -= units[u, j]
        groups[position, j] += units[u, j]
    for k in (current, position):
        costs[k] = _cost_of(groups, k, table) if sizes[k] else 0.0


@inlined
def _shuffle(order, state):
    """Put `order` into another order, by random numbers (of Knuth's generator) that go on from this state."""
    for i in range(len(order) - 1, 0, -1):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        position = int((state >> np.uint64(33)) % np.uint64(i + 1))
        order[i], order[position] = order[position], order[i]
    return state


@kernel
def settle_units(
    units, weights, order, min_rows, ln_classes, prior, by_size, stars, ln_derangements, max_sweeps, table,
    labels, before, groups, sizes, modalities, costs,
):  # fmt: skip
    """Move each unit to the group where it costs least, in sweeps through `order`, as long as the cost falls; the cost.

    groups (K, J), sizes, modalities and costs (K,): room for as many groups as there can be. before (U,): room.
    """
    _fill(units, weights, labels, table, groups, sizes, modalities, costs)
    low, garbage = _price_of(len(groups), sizes, modalities, costs, ln_classes, prior, by_size, stars, ln_derangements)
    state = np.uint64(len(labels))
    for _ in range(max_sweeps):
        n_groups, moves, stale = np.int64(0), 0, True
        opened, closed, left = np.inf, 0.0, 0.0
        for k in range(len(groups)):
            n_groups += sizes[k] > 0
        for u in range(len(labels)):
            before[u] = labels[u]
        for u in order:
            current = labels[u]
            if stale:
                size = int(modalities[max(garbage, 0)])
                opened, closed, left = _changes(
                    n_groups, garbage, size, ln_classes, prior, by_size, stars, ln_derangements
                )
                stale = False
            if _must_stay(groups, sizes, units, u, current, garbage, closed, min_rows):
                continue
            position = _position_of(
                u, current, garbage, opened, closed, left, min_rows, units, weights, groups, sizes, costs, table
            )
            if position != current:
                stale = current == garbage or position == garbage or sizes[position] == 0 or sizes[current] == 1
                n_groups += (sizes[position] == 0) - (sizes[current] == 1)
                _move(u, current, position, units, weights, table, labels, groups, sizes, modalities, costs)
                moves += 1
        if moves == 0:
            break
        after, new_garbage = _price_of(
            len(groups), sizes, modalities, costs, ln_classes, prior, by_size, stars, ln_derangements
        )
        if not after < low - 1e-9:
            for u in range(len(labels)):
                labels[u] = before[u]
            _fill(units, weights, labels, table, groups, sizes, modalities, costs)
            break
        low, garbage = after, new_garbage
        state = _shuffle(order, state)
    return low


@kernel
def join_groups(
    ln_classes, prior, by_size, stars, ln_derangements, table, groups, sizes, modalities, costs, gains, merged
):
    """Join the pair of groups that costs least to join, until one is left: the cheapest model on the way.

    Its cost, and how many joins lead to it; merged (K - 1, 2): the second joined the first. `groups`, `sizes`, `modalities`
    and `costs` (K,), of which none is empty, are used up; gains (K, K) is room.
    """
    n = len(sizes)
    total = 0.0
    for a in range(n):
        total += costs[a] - ln_classes
        for b in range(a + 1, n):
            gains[a, b] = _joined_cost(groups, a, b, table) - costs[a] - costs[b]
    low, best = np.inf, 0
    for step in range(n - 1):
        lowest, a, b = np.inf, 0, 0
        for i in range(n):
            if sizes[i]:
                for j in range(i + 1, n):
                    if sizes[j] and gains[i, j] < lowest:
                        lowest, a, b = gains[i, j], i, j
        merged[step, 0], merged[step, 1] = a, b
        total += lowest + ln_classes
        sizes[b] = 0
        modalities[a] += modalities[b]
        modalities[b] = 0.0
        for j in range(groups.shape[1]):
            groups[a, j] += groups[b, j]
        costs[a] = _cost_of(groups, merged[step, 0], table)  # its type is a variable's
        largest = 0.0
        for i in range(n):
            largest = max(largest, modalities[i])
            if sizes[i] and i != a:
                gain = _joined_cost(groups, a, i, table) - costs[a] - costs[i]
                if i < a:
                    gains[i, a] = gain
                else:
                    gains[a, i] = gain
        of_number, _ = _priced(n - 1 - step, int(largest), prior, by_size, stars, ln_derangements)
        if total + of_number < low:
            low, best = total + of_number, step + 1
    return low, best
