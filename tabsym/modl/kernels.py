"""Searches over groups of units, with a garbage group or without, and over intervals of ordered blocks.

Arrays in, arrays out, nothing checked. Groups: `units` (U, J) hold class counts. `table` is ln k! for whole counts,
empty where ln Gamma must be computed. Costs of parts leave out the constant -ln (J - 1)!, which callers put into the
price of a part, or `ln_classes` into that of a model.

With a garbage group there are two classes, and units are in the order of their proportion of the second one. A group
with proportion q of it costs a unit -ln q for each row of the second class and -ln (1 - q) for each of the first; of a
group of free proportion the cost is -ln of the integral over q of exp(-cost). The integral is taken over cells of q, in
each of which the logarithm of what is integrated lies below a line.

Moves of units between groups, and joins of groups, lead to a local optimum. `weights` (U,): the modalities in each
unit; `labels` (U,): their groups 0, 1, ... `prior` (P,) is of 1, 2, ... groups without a garbage group; `by_size`
(V + 1,) is what the prior has of the size of a garbage group among V modalities (of length 0 where there is none),
`stars` (P,) what it has of the number of other groups, and `ln_derangements` (P,) what numbers of partitions are
computed from (`criterion.ln_partitions`).

Intervals: `cumulative` (J, B + 1) holds class counts summed over the blocks before each;
an interval is blocks first .. last - 1. `table` is ln k! for whole counts,
empty where ln Gamma must be computed. `shift` is added to the rows of a part before its
ln k!: J - 1 for classes, whose frequencies are coded too; 0 for the intervals of a regression's target. Costs of
parts leave out the constant -ln (J - 1)!, which callers put into the price of a part.
"""

from __future__ import annotations

import math

import numpy as np

from tabsym.jit import allocating_kernel, inlined, kernel, unsigned


@kernel
def best_subsets(units, table, min_rows, subset_cost, best, choice):
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
        subset_cost[subset] = cost + ln_factorial(total + n_classes - 1, table) if total >= min_rows else np.inf
    for k in range(best.shape[0]):
        for subset in range(n_subsets):
            best[k, subset] = np.inf
    best[0, 0] = 0.0
    for k in range(1, best.shape[0]):
        for subset in range(1, n_subsets):
            first = subset & -subset
            rest = subset ^ first
            inner = rest
            low, position = np.inf, 0
            while True:  # every group that holds the first unit
                group = inner | first
                value = best[k - 1, subset ^ group] + subset_cost[group]
                if value < low:
                    low, position = value, group
                if inner == 0:
                    break
                inner = (inner - 1) & rest
            best[k, subset] = low
            choice[k, subset] = position


@inlined
def _line_bound(x, y):
    """ln of the mean of exp over a line from x to y, at most: sinh(z) / z <= exp(z^2 / 6)."""
    upper = x if x > y else y
    bound = 0.5 * (x + y) + (x - y) * (x - y) / 24.0
    return bound if bound < upper else upper


@inlined
def _exp_bound(z):
    """exp(-z), at most, for z from 0: 1 / (1 + z / n)^n, which the machine computes for several z at once."""
    p = 1.0 + z * (1.0 / 256.0)
    for _ in range(8):
        p *= p
    return 1.0 / p


@kernel
def gains_in_cells(reward, counts, times, edges, at_left, at_right):
    """What the units before each place gain in a group of proportion q: lines over the cells of q that lie above it.

    A unit (U,) gains its `reward` less its cost there, or nothing outside the group; it counts `times`.
    The cost is convex in q, so its tangent at a cell's middle lies below it. `at_left`, `at_right` (Q, U + 1): sums
    over the units before, at the cell's ends.
    """
    for c in range(len(edges) - 1):
        half = 0.5 * (edges[c + 1] - edges[c])
        q = edges[c] + half
        ln_first, ln_second = np.log(1.0 - q), np.log(q)
        left, right = 0.0, 0.0
        at_left[c, 0] = at_right[c, 0] = 0.0
        for u in range(len(reward)):
            middle = reward[u] + counts[u, 0] * ln_first + counts[u, 1] * ln_second
            rise = half * (counts[u, 1] / q - counts[u, 0] / (1.0 - q))
            left += times[u] * max(middle - rise, 0.0)
            right += times[u] * max(middle + rise, 0.0)
            at_left[c, u + 1] = left
            at_right[c, u + 1] = right


@kernel
def gains_of_groups(at_left, at_right, edges, fewer, top, total, gains, best):
    """The most that 1 .. K groups gain together, each of a run of the units, into best[1:, U]; best[0]: any number.

    With `fewer`, runs may be empty.

    `gains` (U + 1, U + 1), `best` (K + 1, U + 1), `top` and `total` (U + 1,) are what it works in.
    """
    n = at_left.shape[1] - 1
    for i in range(n):
        for j in range(unsigned(i + 1), unsigned(n + 1)):
            top[j] = 0.0
            total[j] = 0.0
        for c in range(len(edges) - 1):
            for j in range(unsigned(i + 1), unsigned(n + 1)):
                x, y = at_left[c, j] - at_left[c, i], at_right[c, j] - at_right[c, i]
                largest = x if x > y else y
                top[j] = largest if largest > top[j] else top[j]
        for c in range(len(edges) - 1):
            width = edges[c + 1] - edges[c]
            for j in range(unsigned(i + 1), unsigned(n + 1)):
                x, y = at_left[c, j] - at_left[c, i], at_right[c, j] - at_right[c, i]
                total[j] += width * _exp_bound(top[j] - _line_bound(x, y))
        for j in range(unsigned(i + 1), unsigned(n + 1)):
            gains[i, j] = top[j] + np.log(total[j])
    for j in range(n + 1):
        largest = 0.0
        for i in range(j):
            largest = max(largest, best[0, i] + gains[i, j])
        best[0, j] = largest
    for j in range(n + 1):
        best[1, j] = gains[0, j] if j else (0.0 if fewer else -np.inf)
    for k in range(2, len(best)):
        for j in range(n + 1):
            largest = best[k - 1, j] if fewer else -np.inf
            for i in range(j):
                largest = max(largest, best[k - 1, i] + gains[i, j])
            best[k, j] = largest


@kernel
def label_runs(k, chosen, ends, reward, counts, edges, at_left, best, gains, labels):
    """The group 1 .. k of each unit in the best k runs, 0 for the garbage, into labels (U,)."""
    labels[:] = 0
    end = len(ends) - 1
    for group in range(k, 0, -1):
        start, top = 0, -np.inf
        for s in range(end if group > 1 else 0):
            value = best[group - 1, s] + gains[s, end]
            if value > top:
                start, top = s, value
        cell, top = 0, -np.inf  # the group's likeliest proportion
        for c in range(len(at_left)):
            value = at_left[c, end] - at_left[c, start]
            if value > top:
                cell, top = c, value
        q = 0.5 * (edges[cell] + edges[cell + 1])
        first, second = np.log(1.0 - q), np.log(q)
        for i in range(ends[start], ends[end]):
            u = chosen[i]
            if reward[i] > -(counts[u, 0] * first + counts[u, 1] * second):
                labels[u] = group
        end = start


# -- moves and joins ------------------------------------------------------------------------------


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
    units, weights, order, min_rows, ln_classes, prior, by_size, stars, ln_derangements, max_iter, table,
    labels, before, groups, sizes, modalities, costs,
):  # fmt: skip
    """Move each unit to the group where it costs least, in passes over `order`, as long as the cost falls; the cost.

    groups (K, J), sizes, modalities and costs (K,): room for as many groups as there can be. before (U,): room.
    """
    _fill(units, weights, labels, table, groups, sizes, modalities, costs)
    low, garbage = _price_of(len(groups), sizes, modalities, costs, ln_classes, prior, by_size, stars, ln_derangements)
    state = np.uint64(len(labels))
    for _ in range(max_iter):
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


# -- intervals of ordered blocks -------------------------------------------------------------------

PRUNE_EVERY = 8
"""Boundaries between looks at which starts can be given up: time for looks, or for starts that no optimum uses."""
MAX_SLIDES = 20
"""Passes over the cuts of a model, each moved between its neighbours: time for cost."""


@inlined
def ln_factorial(count, table):
    """`table` is ln k! for whole counts, empty where ln Gamma must be computed."""
    if len(table):
        return table[int(count)]
    return math.lgamma(count + 1.0)


@inlined
def _interval_cost(first, last, cumulative, table, shift):
    total, cost = 0.0, 0.0
    for j in range(cumulative.shape[0]):
        count = cumulative[j, last] - cumulative[j, first]
        total += count
        cost -= ln_factorial(count, table)
    return cost + ln_factorial(total + shift, table)


FEW = 3
"""The cost of an interval is brought up to date, not computed anew, where its last block has rows of fewer than one
class in this many: most searches have hundreds of classes, the intervals of a target, and few rows a block."""


@kernel
def best_cuts(
    sums, sizes, table, shift, price, min_rows, start, stop, best, before, alive, costs, changed, n_alive
):  # fmt: skip
    """Least of cost of parts + price * parts, over partitions into intervals of at least `min_rows` rows.

    sums (B + 1, J), whole numbers where the counts are, and sizes (B + 1,), their totals: the transpose of `cumulative`,
    as the counts of a boundary are read together.
    Fills best (B + 1,) and before (B + 1,) for the ends start .. stop - 1, given those before (so that a caller can look
    at the clock in between); best[0] = 0. alive (B + 1,) holds the n_alive boundaries where a last interval can start
    in an optimum; the new number of them is returned. costs (B + 1,) is by them, and stays the same between calls;
    changed (J,) is room to work in. A start is given up when, even
    without the cost of coding its frequencies, its interval up to here is no better than cutting here: ln multinomials are
    superadditive, so that holds for every longer interval too. (Not with a minimum size: a cut here may be too near.)
    """
    n_classes = sums.shape[1]
    if start == 1:
        costs[0] = best[0]
    for last in range(start, stop):
        low, arg = np.inf, 0
        n_changed = 0
        for j in range(n_classes):
            changed[n_changed] = j
            n_changed += sums[last, j] != sums[last - 1, j]
        for a in range(n_alive):
            first = alive[a]
            if FEW * n_changed < n_classes:
                cost = costs[a]
                for k in range(n_changed):
                    j = changed[k]
                    cost += ln_factorial(sums[last - 1, j] - sums[first, j], table)
                    cost -= ln_factorial(sums[last, j] - sums[first, j], table)
            else:
                cost = best[first]
                for j in range(n_classes):
                    cost -= ln_factorial(sums[last, j] - sums[first, j], table)
            costs[a] = cost
            total = sizes[last] - sizes[first]
            if total < min_rows:
                continue
            cost += ln_factorial(total + shift, table)
            if cost < low:
                low, arg = cost, first
        best[last] = low + price
        before[last] = arg
        if min_rows <= 1.0:
            n_kept = 0
            for a in range(n_alive):
                if costs[a] + ln_factorial(sizes[last] - sizes[alive[a]], table) < best[last]:
                    alive[n_kept], costs[n_kept] = alive[a], costs[a]
                    n_kept += 1
            n_alive = n_kept
        if best[last] < np.inf:
            alive[n_alive], costs[n_alive] = last, best[last]
            n_alive += 1
    return n_alive


@kernel
def best_cuts_two(zeros, ones, table, price, start, stop, best, before, alive, n_alive):
    """`best_cuts` for two classes of whole counts (int32 sums, zeros and ones): the most frequent case."""
    for last in range(start, stop):
        low, arg = np.inf, 0
        zero, one = zeros[last], ones[last]
        for a in range(n_alive):
            first = alive[a]
            n_zero, n_one = zero - zeros[first], one - ones[first]
            cost = best[first] + table[n_zero + n_one + 1] - table[n_zero] - table[n_one]
            if cost < low:
                low, arg = cost, first
        best[last] = low + price
        before[last] = arg
        if last % PRUNE_EVERY == 0:
            n_kept = 0
            for a in range(n_alive):
                first = alive[a]
                n_zero, n_one = zero - zeros[first], one - ones[first]
                if best[first] + table[n_zero + n_one] - table[n_zero] - table[n_one] < best[last]:
                    alive[n_kept] = first
                    n_kept += 1
            n_alive = n_kept
        alive[n_alive] = last
        n_alive += 1
    return n_alive


@inlined
def _is_cheaper(cost, than):
    return cost < than - 1e-11 * abs(than) if than < np.inf else cost < than


@inlined
def _single_cut(sums, sizes, n, table, shift, prior, min_rows, low, changed):
    """The cheapest single cut of blocks 0 .. n - 1 and its cost, where it is cheaper than `low`; else `low` and 0."""
    n_classes = sums.shape[1]
    position, of_classes = 0, 0.0
    for b in range(1, n):
        n_changed = 0
        for j in range(n_classes):
            changed[n_changed] = j
            n_changed += sums[b, j] != sums[b - 1, j]
        if b > 1 and FEW * n_changed < n_classes:
            for k in range(n_changed):
                j = changed[k]
                of_classes += ln_factorial(sums[b - 1, j], table) + ln_factorial(sums[n, j] - sums[b - 1, j], table)
                of_classes -= ln_factorial(sums[b, j], table) + ln_factorial(sums[n, j] - sums[b, j], table)
        else:
            of_classes = 0.0
            for j in range(n_classes):
                of_classes -= ln_factorial(sums[b, j], table) + ln_factorial(sums[n, j] - sums[b, j], table)
        left, right = sizes[b], sizes[n] - sizes[b]
        if left >= min_rows and right >= min_rows:
            cost = prior + of_classes + ln_factorial(left + shift, table) + ln_factorial(right + shift, table)
            if _is_cheaper(cost, low):
                low, position = cost, b
    return low, position


@kernel
def cut_grids(
    counts, sums, table, shift, ln_classes, min_rows, boundaries, n_ends, descends, priors, room, sizes, floats,
    positions, changed, ends,
):  # fmt: skip
    """A good partition into two parts or more at the boundaries of one of several grids: cost, grid, number of parts.

    counts (B, J) of the blocks; sums (B + 1, J), to be filled, as for `best_cuts`; boundaries (G, B), of which grid g has n_ends[g]; priors (G, P) of 1, 2, ...
    parts. At each grid the best single cut, which prices may miss; where it `descends`, parts are priced by the prior's
    slope where the best partition lies, until nothing changes. `ends` (B,) is where the parts end. room (B + 1, J),
    sizes (B + 1,), floats (3, B + 1), positions (2, B + 1) and changed (J,) are room to work in.
    """
    n_classes = sums.shape[1]
    for j in range(n_classes):
        sums[0, j] = 0
    for b in range(len(counts)):
        for j in range(n_classes):
            sums[b + 1, j] = sums[b, j] + counts[b, j]
    low, grid, n_parts = np.inf, 0, 0
    best, costs, tried = floats[0], floats[1], floats[2]
    before, alive = positions[0], positions[1]
    for g in range(len(n_ends)):
        n = n_ends[g]
        last_prior = min(n, priors.shape[1])
        if last_prior < 2:
            continue
        for b in range(n + 1):
            end = boundaries[g, b - 1] if b else 0
            sizes[b] = 0
            for j in range(n_classes):
                room[b, j] = sums[end, j]
                sizes[b] += sums[end, j]
        low, cut = _single_cut(room, sizes, n, table, shift, priors[g, 1] - 2.0 * ln_classes, min_rows, low, changed)
        if cut > 0:
            grid, n_parts = g, 2
            ends[0], ends[1] = boundaries[g, cut - 1], boundaries[g, n - 1]
        if not descends[g]:
            continue
        position, n_tried = min(max(8, n_parts - 1), last_prior - 1), 0
        while n_tried < n:
            up = min(position + 1, last_prior - 1)
            price = priors[g, up] - priors[g, up - 1]
            if not np.isfinite(price):
                price = 0.0
            known = False
            for t in range(n_tried):
                known = known or tried[t] == price
            if known:
                break
            tried[n_tried] = price
            n_tried += 1
            best[0], alive[0], one = 0.0, 0, min(1, n)  # a constant would be a type of its own
            best_cuts(
                room, sizes, table, shift, price - ln_classes, min_rows, one, n + 1, best, before, alive, costs, changed,
                one,
            )  # fmt: skip
            number, b = 0, n
            while b > 0:
                number += 1
                b = before[b]
            if number <= last_prior:
                cost = best[n] - price * number + priors[g, number - 1]
                if _is_cheaper(cost, low):
                    low, grid, n_parts = cost, g, number
                    b = n
                    for i in range(number - 1, -1, -1):
                        ends[i] = boundaries[g, b - 1]
                        b = before[b]
            position = max(min(number, last_prior) - 1, 1)
    return low, grid, n_parts


@kernel
def best_cuts_by_number(cumulative, table, shift, min_rows, best, before):
    """Least cost of parts for every number of parts: best and before (K + 1, B + 1); best[0] = inf but best[0, 0] = 0."""
    max_parts, n_blocks = best.shape[0] - 1, best.shape[1] - 1
    n_classes = cumulative.shape[0]
    for last in range(1, n_blocks + 1):
        for first in range(last):
            total, cost = 0.0, 0.0
            for j in range(n_classes):
                count = cumulative[j, last] - cumulative[j, first]
                total += count
                cost -= ln_factorial(count, table)
            if total < min_rows:
                continue
            cost += ln_factorial(total + shift, table)
            for k in range(1, min(max_parts, first + 1) + 1):
                value = best[k - 1, first] + cost
                if value < best[k, last]:
                    best[k, last] = value
                    before[k, last] = first


@kernel
def _position_among(values, value):
    """Where a number lies among others, ascending, or would lie: NumPy's search takes two seconds to compile."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def slide_cuts(cumulative, table, shift, allowed, reach, min_rows, ends):
    """Move each cut to its best place between its neighbours, at most `reach` places a pass, until none moves.

    `allowed` (A,): block boundaries where cuts may lie, ascending, 0 and B included; ends (I,) int64 is changed in place.
    """
    n_classes = cumulative.shape[0]
    n_iter = 0
    moved = True
    while moved and n_iter < MAX_SLIDES:
        moved = False
        n_iter += 1
        for i in range(len(ends) - 1):
            left = 0 if i == 0 else ends[i - 1]
            right = ends[i + 1]
            low, position = np.inf, ends[i]
            here = _position_among(allowed, ends[i])
            start = max(_position_among(allowed, left) + 1, here - reach)
            for a in range(start - 1, min(_position_among(allowed, right), here + reach + 1)):
                cut = allowed[a] if a >= start else ends[i]  # first where it is now
                if min_rows > 1.0 and a >= start:
                    before, after = 0.0, 0.0
                    for j in range(n_classes):
                        before += cumulative[j, cut] - cumulative[j, left]
                        after += cumulative[j, right] - cumulative[j, cut]
                    if before < min_rows or after < min_rows:
                        continue
                cost = 0.0
                for side in range(2):
                    first, last = (left, cut) if side == 0 else (cut, right)
                    cost += _interval_cost(first, last, cumulative, table, shift)
                if cost < low:
                    low, position = cost if a >= start else cost - 1e-9, cut
            if position != ends[i]:
                ends[i] = position
                moved = True


@kernel
def slide_targets(starts, parts, weights, table, pure, below, above, ends):
    """Move each cut between target intervals to its best place between its neighbours, until none moves.

    Rows are sorted by target: those of block b are starts[b] .. starts[b + 1] - 1 of `parts` (R,), their part of the
    source, and `weights` (R,) or empty. `ends` (I,) is changed in place. No cut is put between two blocks of rows of
    one and the same part. `pure` (B,) is room to work in, as are `below` and `above` (J,), counts on both sides of a cut.
    """
    for b in range(len(pure)):
        pure[b] = parts[starts[b]]
        for row in range(starts[b] + 1, starts[b + 1]):
            if parts[row] != pure[b]:
                pure[b] = -1
    n_iter = 0
    moved = True
    while moved and n_iter < MAX_SLIDES:
        moved = False
        n_iter += 1
        for i in range(len(ends) - 1):
            left = 0 if i == 0 else ends[i - 1]
            right = ends[i + 1]
            n_below, n_above, of_parts = 0.0, 0.0, 0.0
            for j in range(len(below)):
                below[j], above[j] = 0.0, 0.0
            for row in range(starts[left], starts[right]):
                weight = weights[row] if len(weights) else 1.0
                above[parts[row]] += weight
                n_above += weight
            for j in range(len(above)):
                of_parts -= ln_factorial(above[j], table)
            low, position = np.inf, ends[i]
            for cut in range(left + 1, right):
                for row in range(starts[cut - 1], starts[cut]):
                    j = parts[row]
                    weight = weights[row] if len(weights) else 1.0
                    of_parts += ln_factorial(below[j], table) + ln_factorial(above[j], table)
                    below[j] += weight
                    above[j] -= weight
                    of_parts -= ln_factorial(below[j], table) + ln_factorial(above[j], table)
                    n_below += weight
                    n_above -= weight
                cost = of_parts + ln_factorial(n_below, table) + ln_factorial(n_above, table)
                if cut == ends[i]:
                    cost -= 1e-9  # it stays where no other place is cheaper, but for rounding
                elif pure[cut] >= 0 and pure[cut] == pure[cut - 1]:
                    continue
                if cost < low:
                    low, position = cost, cut
            if position != ends[i]:
                ends[i] = position
                moved = True


@allocating_kernel
def monotone_cuts(cumulative, value, table, shift, price, min_rows, cost, before, order, low, arg):
    """`best_cuts` where value per row must not fall from interval to interval; the least cost, and its last interval.

    value (B + 1,): sums before each boundary. cost and before (B + 1, B + 1) are of the best partition whose last
    interval is first .. last - 1; order, low and arg (B + 1,) are room to work in.
    """
    n_classes, n = cumulative.shape[0], cumulative.shape[1] - 1
    for first in range(n):
        # intervals that end here, by their value per row, with the best cost of any up to each
        n_ended = 0
        if first > 0:
            for h in range(first):
                if cost[h, first] < np.inf:
                    order[n_ended] = h
                    n_ended += 1
            if n_ended == 0:
                continue
            means = np.empty(n_ended)
            for e in range(n_ended):
                means[e] = _mean(order[e], first, cumulative, value)
            by_mean = np.argsort(means)
            ended = order[:n_ended].copy()
            running, position = np.inf, 0
            for e in range(n_ended):
                h = ended[by_mean[e]]
                if cost[h, first] < running:
                    running, position = cost[h, first], h
                low[e], arg[e] = running, position
            means = means[by_mean]
        for last in range(first + 1, n + 1):
            total = 0.0
            part_cost = 0.0
            for j in range(n_classes):
                count = cumulative[j, last] - cumulative[j, first]
                total += count
                part_cost -= ln_factorial(count, table)
            if total < min_rows:
                continue
            part_cost += ln_factorial(total + shift, table) + price
            if first == 0:
                cost[first, last] = part_cost
                continue
            reach = np.searchsorted(means, _mean(first, last, cumulative, value) + 1e-12, side="right")
            if reach > 0:
                cost[first, last] = part_cost + low[reach - 1]
                before[first, last] = arg[reach - 1]


@inlined
def _mean(first, last, cumulative, value):
    total = 0.0
    for j in range(cumulative.shape[0]):
        total += cumulative[j, last] - cumulative[j, first]
    return (value[last] - value[first]) / total
