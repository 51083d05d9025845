"""Growing a tree by the best split of each node, and rows down a tree: arrays in, arrays out, nothing checked.

Growing: `cells` (p, n) holds numbers (NaN: missing) and codes of categories. Each row of `orders` (p, n) has the rows
sorted by one column, NaN last; a node is a range of places [begin, end), the same in every column, and a split
partitions every order, stably: nothing is sorted twice, and the categories of a node are runs. `sums` (4, K) has per
class (or of the target, less the node's mean) the sum of the node, its left side, scratch, and the rows with a missing
number.

`rules`: 0 whether y holds classes, 1 whether the criterion is entropy, 2 rows a side needs, 3 weight a side needs,
4 rows a split needs, 5 greatest depth, 6 least gain, 7 columns to draw, 8 rows that a category's sums are drawn to the
mean by (below 0: found from the data), 9 rows per weight.
`node`: 0 weight, 1 mean, 2 what counts as a tie, 3 score, 4 spread of the target.
`best`: 0 score, 1 column, 2 threshold, 3 whether missing goes left, 4 categories on the left, 5 weight on the left.

Nodes are numbered in the order they are visited, a left side before its right side. Per node `nodes` (cap, 8) holds
column (-1: leaf), left, right, begin, end, whether what it has not seen goes left, where its categories begin and how
many they are; `numbers` (cap, 5) threshold, impurity, weight, gain and mean.

Rows down a tree: `cells` (p, n) holds numbers (NaN: missing) and codes of categories (below 0: never seen). Of the
tree, per node: `feature` (-1: leaf), `threshold`, `left`, `right`, `other_left` (where what the node has not seen goes)
and `pointer`, which says where its `categories` are, ascending, with their side `to_left`.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import inlined, kernel

_EVEN = 1e10  # means of categories closer than this part of the spread are the same: sums depend on the order of rows
_TURNS = 50  # of the power iteration, at most


@inlined
def _add(sums, side, y, weight, row, mean, classes):
    if classes:
        sums[side, int(y[row])] += weight[row]
    else:
        sums[side, 0] += weight[row] * (y[row] - mean)


@inlined
def _part(total, weight, entropy):
    """What one class adds to the score of a side."""
    if entropy:
        return total * np.log2(total) if total > 0.0 else 0.0
    return total * total / weight


@inlined
def _score(sums, left, node, entropy):
    """The more, the purer both sides are: their impurity times weight, less what is the same for all splits."""
    right = node[0] - left
    score = -(left * np.log2(left) + right * np.log2(right)) if entropy else 0.0
    for k in range(sums.shape[1]):
        score += _part(sums[1, k], left, entropy) + _part(sums[0, k] - sums[1, k], right, entropy)
    return score


@inlined
def _is_better(sums, count, n, left, node, rules, best):
    """Whether a split is allowed and better than the best; if so it becomes the best."""
    if count < rules[2] or n - count < rules[2] or left < rules[3] or node[0] - left < rules[3]:
        return False
    score = _score(sums, left, node, rules[1] > 0)
    if score <= best[0] + node[2]:
        return False
    best[0], best[5] = score, left
    return True


@kernel
def describe(orders, begin, end, y, weight, rules, sums, node):
    """Sums and impurity of a node into `sums[0]` and `node`; whether its targets differ."""
    classes, first, differ = rules[0] > 0, y[orders[0, begin]], False
    node[0], node[1] = 0.0, 0.0
    for position in range(begin, end):
        row = orders[0, position]
        node[0] += weight[row]
        node[1] += weight[row] * (y[row] - first)
        differ = differ or y[row] != first
    node[1] = first + node[1] / node[0]
    sums[0] = 0.0
    squares = 0.0
    for position in range(begin, end):
        row = orders[0, position]
        _add(sums, 0, y, weight, row, node[1], classes)
        squares += weight[row] * (1.0 if classes else (y[row] - node[1]) ** 2)
    node[3] = -node[0] * np.log2(node[0]) if rules[1] > 0 else 0.0
    for k in range(sums.shape[1]):
        node[3] += _part(sums[0, k], node[0], rules[1] > 0)
    impurity = -node[3] if rules[1] > 0 else squares - node[3]
    node[2] = 1e-12 * abs(impurity)
    node[4] = 1.0 if classes else np.sqrt(squares / node[0])
    return max(impurity / node[0], 0.0) if differ else 0.0, differ


@kernel
def search_numbers(cells, f, orders, begin, end, y, weight, rules, sums, node, best):
    """The best threshold of column f, halfway between values; missing numbers on the side that is better."""
    classes, n, known = rules[0] > 0, end - begin, end
    sums[3] = 0.0
    missing = 0.0
    while known > begin and np.isnan(cells[f, orders[f, known - 1]]):
        known -= 1
        row = orders[f, known]
        _add(sums, 3, y, weight, row, node[1], classes)
        missing += weight[row]
    for side in range(2 if known < end else 1):  # missing right, then left
        left, count = missing * side, (end - known) * side
        for k in range(sums.shape[1]):
            sums[1, k] = sums[3, k] * side
        for position in range(begin, known):
            row = orders[f, position]
            if position > begin:
                low, high = cells[f, orders[f, position - 1]], cells[f, row]
                if high > low and _is_better(sums, count, n, left, node, rules, best):
                    middle = low / 2 + high / 2
                    best[1], best[2], best[3] = f, middle if low <= middle < high else low, side
            _add(sums, 1, y, weight, row, node[1], classes)
            left += weight[row]
            count += 1
        if side == 0 and begin < known < end and _is_better(sums, count, n, left, node, rules, best):
            best[1], best[2], best[3] = f, np.inf, 0


@kernel
def find_runs(cells, f, orders, begin, end, y, weight, rules, node, runs, starts):
    """The node's categories by code: where each begins, `runs` (m, 1 + K) its weight and sums; m."""
    m, last = 0, -1.0
    for position in range(begin, end):
        row = orders[f, position]
        if cells[f, row] != last:
            last = cells[f, row]
            starts[m] = position
            runs[m] = 0.0
            m += 1
        runs[m - 1, 0] += weight[row]
        if rules[0] > 0:
            runs[m - 1, 1 + int(y[row])] += weight[row]
        else:
            runs[m - 1, 1] += weight[row] * (y[row] - node[1])
    starts[m] = end
    return m


@kernel
def _noise(runs, m, rules, sums, node):
    """Weight at which a category's own mean counts half: the variance within categories over the one between them."""
    n_classes, scale = sums.shape[1], rules[9]
    squares, between, sizes = node[4] * node[4] * node[0], 0.0, 0.0
    if rules[0] > 0:
        squares = node[0]
        for k in range(n_classes):
            squares -= sums[0, k] * sums[0, k] / node[0]
    for c in range(m):
        sizes += runs[c, 0] * runs[c, 0]
        for k in range(n_classes):
            apart = runs[c, 1 + k] - runs[c, 0] * sums[0, k] / node[0]
            between += apart * apart / runs[c, 0]
    rows = scale * node[0]
    if rows <= m * (1 + 1e-9):
        return np.inf
    within = max(squares - between, 0.0) * scale / (rows - m)
    truth = (between * scale - (m - 1) * within) / (rows - scale * sizes / node[0])
    return within / truth / scale if truth > 1e-12 * squares / node[0] else np.inf


@kernel
def draw_runs(runs, m, rules, sums, node):
    """Shrink the categories' sums towards the mean of categories, by their rows; the total stays that of the node.

    A category of few rows has an uncertain mean: without this, columns of many categories win by chance. Whether there
    is anything to draw: not where categories differ no more than by chance.
    """
    smooth = rules[8] / rules[9] if rules[8] >= 0 else _noise(runs, m, rules, sums, node)
    if np.isinf(smooth):
        return False
    for k in range(sums.shape[1]):
        total, known, overall = 0.0, 0.0, sums[0, k] / node[0]
        for c in range(m):
            share = runs[c, 0] / (runs[c, 0] + smooth)
            total += share * runs[c, 1 + k]
            known += share * runs[c, 0]
        mean = total / known
        for c in range(m):
            share = runs[c, 0] / (runs[c, 0] + smooth)
            runs[c, 1 + k] = runs[c, 0] * overall + share * (runs[c, 1 + k] - runs[c, 0] * mean)
    return True


@kernel
def _set_axis(runs, m, sums, node, axis):
    """The direction `axis[0]` (K,) along which the class shares differ most: their first principal component.

    By power iteration from the category that differs most. `axis[1]`: scratch; `axis[2]`: the node's shares.
    """
    n_classes, most = axis.shape[1], -1.0
    for k in range(n_classes):
        axis[2, k] = sums[0, k] / node[0]
    for c in range(m):
        size = 0.0
        for k in range(n_classes):
            size += (runs[c, 1 + k] / runs[c, 0] - axis[2, k]) ** 2
        if size * runs[c, 0] > most * (1 + 1e-9):
            most = size * runs[c, 0]
            for k in range(n_classes):
                axis[0, k] = runs[c, 1 + k] / runs[c, 0] - axis[2, k]
    for _ in range(_TURNS):
        axis[1] = 0.0
        for c in range(m):
            along = 0.0
            for k in range(n_classes):
                along += axis[0, k] * (runs[c, 1 + k] / runs[c, 0] - axis[2, k])
            for k in range(n_classes):
                axis[1, k] += along * (runs[c, 1 + k] - runs[c, 0] * axis[2, k])
        length, change = 0.0, 0.0
        for k in range(n_classes):
            length += axis[1, k] ** 2
        length = np.sqrt(length)
        if length <= 0.0:
            return
        for k in range(n_classes):
            change += abs(axis[1, k] / length - axis[0, k])
            axis[0, k] = axis[1, k] / length
        if change < 1e-9:
            return


@kernel
def set_keys(runs, m, sums, node, axis, keys):
    """Numbers that order the categories: mean target, share of the second of two classes, or position on the axis."""
    n_classes = axis.shape[1]
    if n_classes > 2:
        _set_axis(runs, m, sums, node, axis)
    for c in range(m):
        total = runs[c, 1] if n_classes == 1 else runs[c, n_classes] - runs[c, 0] * sums[0, n_classes - 1] / node[0]
        if n_classes > 2:
            total = 0.0
            for k in range(n_classes):
                total += axis[0, k] * (runs[c, 1 + k] - runs[c, 0] * axis[2, k])
        keys[c] = np.rint(total / runs[c, 0] / node[4] * _EVEN)


@kernel
def sort(keys, m, ranks):
    """Indices 0..m-1 by ascending key into `ranks[0]`, equal keys in order; `ranks[1]`: scratch. A merge sort."""
    for c in range(m):
        ranks[0, c] = c
    now, width = 0, 1
    while width < m:
        for low in range(0, m, 2 * width):
            middle, high = min(low + width, m), min(low + 2 * width, m)
            a, b = low, middle
            for to in range(low, high):
                if a < middle and (b >= high or keys[ranks[now, a]] <= keys[ranks[now, b]]):
                    ranks[1 - now, to] = ranks[now, a]
                    a += 1
                else:
                    ranks[1 - now, to] = ranks[now, b]
                    b += 1
        now, width = 1 - now, 2 * width
    if now == 1:
        for c in range(m):
            ranks[0, c] = ranks[1, c]


@kernel
def search_categories(f, begin, end, rules, sums, node, best, runs, starts, ranks, m):
    """The best cut of the ordered categories of column f."""
    sums[1] = 0.0
    left, count = 0.0, 0
    for cut in range(1, m):
        run = ranks[0, cut - 1]
        for k in range(sums.shape[1]):
            sums[1, k] += runs[run, 1 + k]
        left += runs[run, 0]
        count += starts[run + 1] - starts[run]
        if _is_better(sums, count, end - begin, left, node, rules, best):
            best[1], best[4] = f, cut


DONE, NODES_FULL, CATEGORIES_FULL = 0, 1, 2


@inlined
def _draw(random, below):
    """A number below `below`, by xorshift."""
    random[0] ^= random[0] << np.uint64(13)
    random[0] ^= random[0] >> np.uint64(7)
    random[0] ^= random[0] << np.uint64(17)
    return int((random[0] >> np.uint64(11)) % np.uint64(below))


@kernel
def _order_categories(cells, f, orders, begin, end, y, weight, rules, sums, node, axis, runs, starts, keys, ranks):
    """The column's categories in the node, in order: how many, 0 where they are not to be split."""
    m = find_runs(cells, f, orders, begin, end, y, weight, rules, node, runs, starts)
    if rules[8] != 0 and not draw_runs(runs, m, rules, sums, node):
        return 0
    set_keys(runs, m, sums, node, axis, keys)
    sort(keys, m, ranks)
    return m


@kernel
def _search(
    cells, categorical, orders, begin, end, y, weight, rules, sums, node, best, axis, runs, starts, keys, ranks,
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
        if categorical[f]:
            m = _order_categories(
                cells, f, orders, begin, end, y, weight, rules, sums, node, axis, runs, starts, keys, ranks
            )
            search_categories(f, begin, end, rules, sums, node, best, runs, starts, ranks, m)
        else:
            search_numbers(cells, f, orders, begin, end, y, weight, rules, sums, node, best)


@inlined
def _mark_numbers(cells, f, orders, begin, end, best, side):
    for position in range(begin, end):
        row = orders[f, position]
        value = cells[f, row]
        side[row] = best[3] > 0 if np.isnan(value) else value <= best[2]


@inlined
def _mark_categories(cells, f, orders, m, best, side, starts, ranks, to, categories, to_left):
    """Which rows go left, and the node's categories with their side from position `to`."""
    for c in range(m):
        run = ranks[0, c]
        categories[to + run] = int(cells[f, orders[f, starts[run]]])
        to_left[to + run] = c < best[4]
        for position in range(starts[run], starts[run + 1]):
            side[orders[f, position]] = c < best[4]


@kernel
def _partition(orders, begin, end, side, scratch):
    """Rows that go left before those that go right, in every column's order; where the right ones begin."""
    middle = begin
    for f in range(orders.shape[0]):
        a, b = begin, 0
        for position in range(begin, end):
            row = orders[f, position]
            goes = side[row]
            orders[f, a] = row
            scratch[b] = row
            a += goes
            b += 1 - goes
        for position in range(b):
            orders[f, a + position] = scratch[position]
        middle = a
    return middle


@kernel
def grow(
    cells, categorical, y, weight, orders, rules, sums, node, best, axis, runs, starts, keys, ranks, columns, random,
    side, scratch, stack, used, nodes, numbers, categories, to_left,
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
        if used[2] + min(end - begin, len(keys)) > len(categories):
            return CATEGORIES_FULL
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
            cells, categorical, orders, begin, end, y, weight, rules, sums, node, best, axis, runs, starts, keys, ranks,
            columns, random,
        )  # fmt: skip
        gain = max(best[0] - node[3], 0.0)
        if best[1] < 0 or gain < rules[6] * (1 - 1e-12):
            continue
        f = int(best[1])
        left_weight = best[5]
        if categorical[f]:
            m = _order_categories(
                cells, f, orders, begin, end, y, weight, rules, sums, node, axis, runs, starts, keys, ranks
            )
            _mark_categories(cells, f, orders, m, best, side, starts, ranks, used[2], categories, to_left)
            nodes[t, 7] = m
            used[2] += m
        else:
            _mark_numbers(cells, f, orders, begin, end, best, side)
            numbers[t, 0] = best[2]
        missing = not categorical[f] and np.isnan(cells[f, orders[f, end - 1]])
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


# -- rows down a tree ------------------------------------------------------------------------------

MIXTURE, INDEPENDENT, COVER, STOP = 0, 1, 2, 3


@inlined
def _category_goes_left(code, t, other_left, pointer, categories, to_left):
    low, high = pointer[t], pointer[t + 1]
    while low < high:
        middle = (low + high) // 2
        if categories[middle] < code:
            low = middle + 1
        else:
            high = middle
    if low < pointer[t + 1] and categories[low] == code:
        return to_left[low] > 0
    return other_left[t] > 0


@inlined
def _goes_left(cells, i, t, feature, threshold, other_left, pointer, categories, to_left):
    value = cells[feature[t], i]
    if pointer[t + 1] > pointer[t]:
        return _category_goes_left(int(value), t, other_left, pointer, categories, to_left)
    return other_left[t] > 0 if np.isnan(value) else value <= threshold[t]


@kernel
def find_leaves(cells, feature, threshold, left, right, other_left, pointer, categories, to_left, leaves):
    """The leaf of each row (n,); unknown categories go where known ones that a node does not have go."""
    for i in range(cells.shape[1]):
        t = 0
        while feature[t] >= 0:
            goes = _goes_left(cells, i, t, feature, threshold, other_left, pointer, categories, to_left)
            t = left[t] if goes else right[t]
        leaves[i] = t


@inlined
def _divide(live, u, begin, end, t, donors, weights, first, other_left, pointer, categories, to_left):
    """Live donors that go left before those that go right: where the latter begin, and the weight of both."""
    middle, goes_weight, stays_weight = begin, 0.0, 0.0
    for position in range(begin, end):
        k = live[u, position]
        if _category_goes_left(donors[u, k], t, other_left, pointer, categories, to_left):
            live[u, position] = live[u, middle]
            live[u, middle] = k
            middle += 1
            goes_weight += weights[first + k]
        else:
            stays_weight += weights[first + k]
    return middle, goes_weight, stays_weight


@kernel
def spread_rows(
    cells, feature, threshold, left, right, other_left, pointer, categories, to_left, value, weight,
    mode, slot, which, donors, sizes, weights, firsts, live, stack, masses, out, heaviest,
):  # fmt: skip
    """Values of rows with unknown categories, which go down both branches: leaf values times their mass.

    Parameters
    ----------
    slot : (p,)
        Place of a column among those (U) with donors, -1: none.
    which : (U, n)
        Document of a row's category, -1 where the category was seen.
    donors : (U, most)
        Codes of the donors; `sizes` (U,) how many.
    weights : flat
        Of each document's donors; those of column u begin at ``firsts[u]``.
    live : (U, most)
        Scratch: donors by the side they took, so that those of a node are a range.
    stack : (depth + 2, 1 + 2 U)
        Scratch: node, and the ranges of live donors. masses: (depth + 2,).
    out : (n, K)
    heaviest : (n,)
        The leaf with most mass.
    """
    for i in range(cells.shape[1]):
        for u in range(which.shape[0]):
            count = 0
            if which[u, i] >= 0:
                for k in range(sizes[u]):
                    if weights[firsts[u] + which[u, i] * sizes[u] + k] > 0.0:
                        live[u, count] = k
                        count += 1
            stack[0, 1 + 2 * u], stack[0, 2 + 2 * u] = 0, count
        top, most = 0, -1.0
        stack[0, 0], masses[0] = 0, 1.0
        while top >= 0:
            t, f = stack[top, 0], feature[stack[top, 0]]
            unseen = f >= 0 and pointer[t + 1] > pointer[t] and cells[f, i] < 0
            if f < 0 or (unseen and mode == STOP):
                for k in range(value.shape[1]):
                    out[i, k] += masses[top] * value[t, k]
                if masses[top] > most * (1 + 1e-9):
                    most, heaviest[i] = masses[top], t
                top -= 1
                continue
            if not unseen:
                goes = _goes_left(cells, i, t, feature, threshold, other_left, pointer, categories, to_left)
                stack[top, 0] = left[t] if goes else right[t]
                continue
            u = slot[f]
            if mode == COVER:
                goes_weight, stays_weight = weight[left[t]], weight[right[t]]
            else:
                first = firsts[u] + which[u, i] * sizes[u]
                begin, end = stack[top, 1 + 2 * u], stack[top, 2 + 2 * u]
                middle, goes_weight, stays_weight = _divide(
                    live, u, begin, end, t, donors, weights, first, other_left, pointer, categories, to_left
                )
            if goes_weight > 0.0 and stays_weight > 0.0:
                for position in range(stack.shape[1]):
                    stack[top + 1, position] = stack[top, position]
                share = goes_weight / (goes_weight + stays_weight)
                masses[top + 1] = masses[top] * share
                masses[top] *= 1.0 - share
                stack[top, 0], stack[top + 1, 0] = right[t], left[t]
                if mode == MIXTURE:
                    stack[top, 1 + 2 * u], stack[top + 1, 2 + 2 * u] = middle, middle
                top += 1
            else:
                stack[top, 0] = left[t] if goes_weight > 0.0 else right[t]
