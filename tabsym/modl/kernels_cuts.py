"""Searches over intervals of ordered blocks: arrays in, arrays out, nothing checked.

`cumulative` (J, B + 1) holds class counts summed over the blocks before each;
an interval is blocks first .. last - 1. `table` is ln k! for whole counts,
empty where ln Gamma must be computed. `shift` is added to the rows of a part before its
ln k!: J - 1 for classes, whose frequencies are coded too; 0 for the intervals of a regression's target. Costs of
parts leave out the constant -ln (J - 1)!, which callers put into the price of a part.
"""

from __future__ import annotations

import math

import numpy as np

from tabsym.jit import allocating_kernel, inlined, kernel

PRUNE_EVERY = 8
"""Boundaries between looks at which starts can be given up: time for looks, or for starts that no optimum uses."""
MAX_SLIDES = 20
"""Sweeps over the cuts of a model, each moved between its neighbours: time for cost."""


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


@kernel
def best_cuts(sums, sizes, table, shift, price, min_rows, start, stop, best, before, alive, costs, n_alive):
    """Least of cost of parts + price * parts, over partitions into intervals of at least `min_rows` rows.

    sums (B + 1, J), whole numbers where the counts are, and sizes (B + 1,), their totals: the transpose of `cumulative`,
    as the counts of a boundary are read together.
    Fills best (B + 1,) and before (B + 1,) for the ends start .. stop - 1, given those before (so that a caller can look
    at the clock in between); best[0] = 0. alive (B + 1,) holds the n_alive boundaries where a last interval can start
    in an optimum; the new number of them is returned. costs (B + 1,) is room to work in. A start is given up when, even
    without the cost of coding its frequencies, its interval up to here is no better than cutting here: ln multinomials are
    superadditive, so that holds for every longer interval too. (Not with a minimum size: a cut here may be too near.)
    """
    n_classes = sums.shape[1]
    for last in range(start, stop):
        low, arg = np.inf, 0
        for a in range(n_alive):
            first = alive[a]
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
                    alive[n_kept] = alive[a]
                    n_kept += 1
            n_alive = n_kept
        if best[last] < np.inf:
            alive[n_alive] = last
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


@kernel
def cut_grids(
    sums, table, shift, ln_classes, min_rows, boundaries, n_ends, descends, priors, room, sizes, floats, positions, ends
):
    """A good partition into two parts or more at the boundaries of one of several grids: cost, grid, number of parts.

    sums (B + 1, J) as for `best_cuts`; boundaries (G, B), of which grid g has n_ends[g]; priors (G, P) of 1, 2, ...
    parts. At each grid the best single cut, which prices may miss; where it `descends`, parts are priced by the prior's
    slope where the best partition lies, until nothing changes. `ends` (B,) is where the parts end. room (B + 1, J),
    sizes (B + 1,), floats (3, B + 1) and places (2, B + 1) are room to work in.
    """
    n_classes = sums.shape[1]
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
        for b in range(1, n):
            left, right = sizes[b], sizes[n] - sizes[b]
            if left >= min_rows and right >= min_rows:
                cost = priors[g, 1] - 2.0 * ln_classes
                for side in range(2):
                    cost += ln_factorial((left if side == 0 else right) + shift, table)
                    for j in range(n_classes):
                        cost -= ln_factorial(room[b, j] if side == 0 else room[n, j] - room[b, j], table)
                if _is_cheaper(cost, low):
                    low, grid, n_parts = cost, g, 2
                    ends[0], ends[1] = boundaries[g, b - 1], boundaries[g, n - 1]
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
                room, sizes, table, shift, price - ln_classes, min_rows, one, n + 1, best, before, alive, costs, one
            )
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
def all_whole(cumulative):
    """Whether all counts are whole numbers."""
    for j in range(cumulative.shape[0]):
        for b in range(cumulative.shape[1]):
            if cumulative[j, b] != math.floor(cumulative[j, b]):
                return False
    return True


@kernel
def pure_classes(cumulative, boundaries, out):
    """The class of each block between these boundaries that holds one class only, else -1, into out."""
    first = 0
    for b in range(len(boundaries)):
        last = boundaries[b]
        only_class = -1
        for j in range(cumulative.shape[0]):
            if cumulative[j, last] > cumulative[j, first]:
                if only_class >= 0:
                    only_class = -1
                    break
                only_class = j
        out[b] = only_class
        first = last


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
    """Move each cut to its best place between its neighbours, at most `reach` places a sweep, until none moves.

    `allowed` (A,): block boundaries where cuts may lie, ascending, 0 and B included; ends (I,) int64 is changed in place.
    """
    n_classes = cumulative.shape[0]
    sweeps = 0
    moved = True
    while moved and sweeps < MAX_SLIDES:
        moved = False
        sweeps += 1
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
