"""Searches over all groups of few units, and over runs with a garbage group: arrays in, arrays out.

`units` (U, J) hold class counts. `table` is ln k! for whole counts, empty where ln Gamma
must be computed. Costs of parts leave out the constant -ln (J - 1)!, which callers put into the price of a part.
Nothing is checked.

With a garbage group there are two classes, and units are in the order of their proportion of the second one. A group with
proportion q of it costs a unit -ln q for each row of the second class and -ln (1 - q) for each of the first; of a group of
free proportion the cost is -ln of the integral over q of exp(-cost). The integral is taken over cells of q, in each of which
the logarithm of what is integrated lies below a line.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import inlined, kernel, unsigned
from tabsym.modl.kernels_cuts import ln_factorial


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
