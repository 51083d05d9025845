"""Searches over intervals of ordered blocks: arrays in, arrays out, nothing checked.

`cumulative` (J, B + 1) holds class counts summed over the blocks before each;
an interval is blocks first .. last - 1. `table` is ln k! for whole counts,
empty where ln Gamma must be computed. `shift` is added to the rows of a part before its
ln k!: J - 1 for classes, whose shares are coded too; 0 for the intervals of a regression's target. Costs of
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
def best_cuts(cumulative, table, shift, price, least, start, stop, best, before, alive, n_alive):
    """Least of cost of parts + price * parts, over partitions into intervals of at least `least` rows.

    Fills best (B + 1,) and before (B + 1,) for the ends start .. stop - 1, given those before (so that a caller can look
    at the clock in between); best[0] = 0. alive (B + 1,) holds the n_alive boundaries where a last interval can start
    in an optimum; the new number of them is returned. A start is given up when, even without the cost of coding its
    shares, its interval up to here is no better than cutting here: ln multinomials are superadditive,
    so that holds for every longer interval too. (Not with a least size: a cut here may be too near.)
    """
    n_classes = cumulative.shape[0]
    for last in range(start, stop):
        low, arg = np.inf, 0
        for a in range(n_alive):
            first = alive[a]
            total, cost = 0.0, best[first]
            for j in range(n_classes):
                count = cumulative[j, last] - cumulative[j, first]
                total += count
                cost -= ln_factorial(count, table)
            if total < least:
                continue
            cost += ln_factorial(total + shift, table)
            if cost < low:
                low, arg = cost, first
        best[last] = low + price
        before[last] = arg
        kept = 0
        for a in range(n_alive):
            first = alive[a]
            keep = least > 1.0 or last % PRUNE_EVERY != 0
            if not keep:
                total, cost = 0.0, best[first]
                for j in range(n_classes):
                    count = cumulative[j, last] - cumulative[j, first]
                    total += count
                    cost -= ln_factorial(count, table)
                keep = cost + ln_factorial(total, table) < best[last]
            if keep:
                alive[kept] = first
                kept += 1
        n_alive = kept
        if best[last] < np.inf:
            alive[n_alive] = last
            n_alive += 1
    return n_alive


@kernel
def best_cuts_two(zeros, ones, table, price, start, stop, best, before, alive, n_alive):
    """`best_cuts` for two classes of whole counts (int32 sums, zeros and ones): what is asked for most."""
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
            kept = 0
            for a in range(n_alive):
                first = alive[a]
                n_zero, n_one = zero - zeros[first], one - ones[first]
                if best[first] + table[n_zero + n_one] - table[n_zero] - table[n_one] < best[last]:
                    alive[kept] = first
                    kept += 1
            n_alive = kept
        alive[n_alive] = last
        n_alive += 1
    return n_alive


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
        found = -1
        for j in range(cumulative.shape[0]):
            if cumulative[j, last] > cumulative[j, first]:
                if found >= 0:
                    found = -1
                    break
                found = j
        out[b] = found
        first = last


@kernel
def best_cuts_by_number(cumulative, table, shift, least, best, before):
    """Least cost of parts for every number of parts: best and before (K + 1, B + 1); best[0] = inf but best[0, 0] = 0."""
    most, n_blocks = best.shape[0] - 1, best.shape[1] - 1
    n_classes = cumulative.shape[0]
    for last in range(1, n_blocks + 1):
        for first in range(last):
            total, cost = 0.0, 0.0
            for j in range(n_classes):
                count = cumulative[j, last] - cumulative[j, first]
                total += count
                cost -= ln_factorial(count, table)
            if total < least:
                continue
            cost += ln_factorial(total + shift, table)
            for k in range(1, min(most, first + 1) + 1):
                value = best[k - 1, first] + cost
                if value < best[k, last]:
                    best[k, last] = value
                    before[k, last] = first


@kernel
def slide_cuts(cumulative, table, shift, allowed, reach, least, ends):
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
            low = _interval_cost(left, ends[i], cumulative, table, shift) + _interval_cost(
                ends[i], right, cumulative, table, shift
            )
            low -= 1e-9
            place = ends[i]
            here = np.searchsorted(allowed, ends[i])
            start = max(np.searchsorted(allowed, left) + 1, here - reach)
            for a in range(start, min(np.searchsorted(allowed, right), here + reach + 1)):
                cut = allowed[a]
                if least > 1.0:
                    before, after = 0.0, 0.0
                    for j in range(n_classes):
                        before += cumulative[j, cut] - cumulative[j, left]
                        after += cumulative[j, right] - cumulative[j, cut]
                    if before < least or after < least:
                        continue
                cost = _interval_cost(left, cut, cumulative, table, shift) + _interval_cost(
                    cut, right, cumulative, table, shift
                )
                if cost < low:
                    low, place = cost, cut
            if place != ends[i]:
                ends[i] = place
                moved = True


@allocating_kernel
def monotone_cuts(cumulative, value, table, shift, price, least, cost, before, order, low, arg):
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
            running, place = np.inf, 0
            for e in range(n_ended):
                h = ended[by_mean[e]]
                if cost[h, first] < running:
                    running, place = cost[h, first], h
                low[e], arg[e] = running, place
            means = means[by_mean]
        for last in range(first + 1, n + 1):
            total = 0.0
            own = 0.0
            for j in range(n_classes):
                count = cumulative[j, last] - cumulative[j, first]
                total += count
                own -= ln_factorial(count, table)
            if total < least:
                continue
            own += ln_factorial(total + shift, table) + price
            if first == 0:
                cost[first, last] = own
                continue
            reach = np.searchsorted(means, _mean(first, last, cumulative, value) + 1e-12, side="right")
            if reach > 0:
                cost[first, last] = own + low[reach - 1]
                before[first, last] = arg[reach - 1]


@inlined
def _mean(first, last, cumulative, value):
    total = 0.0
    for j in range(cumulative.shape[0]):
        total += cumulative[j, last] - cumulative[j, first]
    return (value[last] - value[first]) / total
