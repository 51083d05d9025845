"""Growing a tree: arrays in, arrays out, nothing checked. Read `kernels_search` first, which has most of the names.

Nodes are numbered in the order they are visited, a left side before its right side. Per node `nodes` (cap, 8) holds
column (-1: leaf), left, right, begin, end, whether what it has not seen goes left, where its categories begin and how
many they are; `numbers` (cap, 5) threshold, impurity, weight, gain and mean.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import inlined, kernel
from tabsym.jitter.kernels_search import describe, draw_runs, find_runs, search_numbers, search_symbols, set_keys, sort

DONE, NODES_FULL, SYMBOLS_FULL = 0, 1, 2


@inlined
def _draw(random, below):
    """A number below `below`, by xorshift."""
    random[0] ^= random[0] << np.uint64(13)
    random[0] ^= random[0] >> np.uint64(7)
    random[0] ^= random[0] << np.uint64(17)
    return int((random[0] >> np.uint64(11)) % np.uint64(below))


@kernel
def _order_symbols(cells, f, orders, begin, end, y, weight, rules, sums, node, axis, runs, starts, keys, ranks):
    """The column's categories in the node, in order: how many, 0 where they are not to be split."""
    m = find_runs(cells, f, orders, begin, end, y, weight, rules, node, runs, starts)
    if rules[8] != 0 and not draw_runs(runs, m, rules, sums, node):
        return 0
    set_keys(runs, m, sums, node, axis, keys)
    sort(keys, m, ranks)
    return m


@kernel
def _search(
    cells, symbolic, orders, begin, end, y, weight, rules, sums, node, best, axis, runs, starts, keys, ranks,
    columns, random,
):  # fmt: skip
    """The best split over the columns, or over as many drawn ones as `rules` say: more, until one splits."""
    best[0], best[1] = -np.inf, -1.0
    p, wanted = len(columns), rules[7]
    for drawn in range(p):
        if drawn >= wanted and best[1] >= 0:
            return
        if wanted < p:
            other = drawn + _draw(random, p - drawn)
            columns[drawn], columns[other] = columns[other], columns[drawn]
        f = columns[drawn]
        if cells[f, orders[f, begin]] == cells[f, orders[f, end - 1]]:  # all the same; NaN is not
            continue
        if symbolic[f]:
            m = _order_symbols(
                cells, f, orders, begin, end, y, weight, rules, sums, node, axis, runs, starts, keys, ranks
            )
            search_symbols(f, begin, end, rules, sums, node, best, runs, starts, ranks, m)
        else:
            search_numbers(cells, f, orders, begin, end, y, weight, rules, sums, node, best)


@inlined
def _mark_numbers(cells, f, orders, begin, end, best, side):
    for place in range(begin, end):
        row = orders[f, place]
        value = cells[f, row]
        side[row] = best[3] > 0 if np.isnan(value) else value <= best[2]


@inlined
def _mark_symbols(cells, f, orders, m, best, side, starts, ranks, to, symbols, to_left):
    """Which rows go left, and the node's categories with their side from place `to`."""
    for c in range(m):
        run = ranks[0, c]
        symbols[to + run] = int(cells[f, orders[f, starts[run]]])
        to_left[to + run] = c < best[4]
        for place in range(starts[run], starts[run + 1]):
            side[orders[f, place]] = c < best[4]


@kernel
def _partition(orders, begin, end, side, scratch):
    """Rows that go left before those that go right, in every column's order; where the right ones begin."""
    middle = begin
    for f in range(orders.shape[0]):
        a, b = begin, 0
        for place in range(begin, end):
            row = orders[f, place]
            goes = side[row]
            orders[f, a] = row
            scratch[b] = row
            a += goes
            b += 1 - goes
        for place in range(b):
            orders[f, a + place] = scratch[place]
        middle = a
    return middle


@kernel
def grow(
    cells, symbolic, y, weight, orders, rules, sums, node, best, axis, runs, starts, keys, ranks, columns, random,
    side, scratch, stack, used, nodes, numbers, symbols, to_left,
):  # fmt: skip
    """Grow until nothing is left to split, or until an array is full: enlarge it and call again.

    stack (depth + 2, 4) has begin, end, depth and twice the parent, plus one on its right; `used` how many places of
    stack, nodes and categories are taken. side, scratch (n,).
    """
    while used[0] > 0:
        begin, end, depth = stack[used[0] - 1, 0], stack[used[0] - 1, 1], stack[used[0] - 1, 2]
        parent, t = stack[used[0] - 1, 3], used[1]
        if t >= len(nodes):
            return NODES_FULL
        if used[2] + min(end - begin, len(keys)) > len(symbols):
            return SYMBOLS_FULL
        used[0] -= 1
        used[1] += 1
        if parent >= 0:
            nodes[parent // 2, 1 + parent % 2] = t
        impurity, differ = describe(orders, begin, end, y, weight, rules, sums, node)
        nodes[t, 0], nodes[t, 1], nodes[t, 2], nodes[t, 3], nodes[t, 4] = -1, -1, -1, begin, end
        nodes[t, 5], nodes[t, 6], nodes[t, 7] = 0, used[2], 0
        numbers[t, 0], numbers[t, 1], numbers[t, 2], numbers[t, 3] = np.nan, impurity, node[0], 0.0
        numbers[t, 4] = node[1]
        n = end - begin
        if not differ or depth >= rules[5] or n < rules[4] or n < 2 * rules[2] or node[0] < 2 * rules[3]:
            continue
        _search(
            cells, symbolic, orders, begin, end, y, weight, rules, sums, node, best, axis, runs, starts, keys, ranks,
            columns, random,
        )  # fmt: skip
        gain = max(best[0] - node[3], 0.0)
        if best[1] < 0 or gain < rules[6] * (1 - 1e-12):
            continue
        f = int(best[1])
        left_weight = best[5]
        if symbolic[f]:
            m = _order_symbols(
                cells, f, orders, begin, end, y, weight, rules, sums, node, axis, runs, starts, keys, ranks
            )
            _mark_symbols(cells, f, orders, m, best, side, starts, ranks, used[2], symbols, to_left)
            nodes[t, 7] = m
            used[2] += m
        else:
            _mark_numbers(cells, f, orders, begin, end, best, side)
            numbers[t, 0] = best[2]
        missing = not symbolic[f] and np.isnan(cells[f, orders[f, end - 1]])
        nodes[t, 0] = f
        nodes[t, 5] = best[3] > 0 if missing else left_weight > node[0] / 2 * (1 + 1e-12)
        numbers[t, 3] = gain
        middle = _partition(orders, begin, end, side, scratch)
        for right in range(1, -1, -1):
            top = used[0]
            stack[top, 0] = middle if right else begin
            stack[top, 1] = end if right else middle
            stack[top, 2], stack[top, 3] = depth + 1, 2 * t + right
            used[0] += 1
    return DONE
