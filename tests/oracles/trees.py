"""Splits of a tree, slow and obvious: every threshold, every subset of symbols, written from the definition alone.

A column is a list; None is a missing symbol (a symbol like another), NaN a missing number. `y` holds class numbers
(`n_classes` of them) or, with n_classes 0, the target.
"""

import math
from itertools import combinations

import numpy as np


def impurity(y, weight, criterion, n_classes):
    """Gini index, entropy in bits, or variance of some rows."""
    total = weight.sum()
    if n_classes == 0:
        mean = (weight * y).sum() / total
        return (weight * (y - mean) ** 2).sum() / total
    shares = [weight[y == k].sum() / total for k in range(n_classes)]
    if criterion == "gini":
        return 1 - sum(share**2 for share in shares)
    return -sum(share * math.log2(share) for share in shares if share > 0)


def number_sides(column):
    """Every way to send rows left by a threshold, with what is missing on either side."""
    values = np.array(column, dtype=float)
    missing = np.isnan(values)
    found = np.unique(values[~missing])
    for low in found[:-1]:
        left = values <= low
        yield left
        if missing.any():
            yield left | missing
    if missing.any() and len(found):
        yield ~missing


def symbol_sides(column):
    """Every way to send symbols left, each pair of sides once."""
    categories = sorted(set(column), key=str)
    first, rest = categories[0], categories[1:]
    for many in range(len(rest)):
        for others in combinations(rest, many):
            left = {first, *others}
            yield np.array([category in left for category in column])


def gain_of(left, y, weight, criterion, n_classes):
    """By how much a split lowers impurity times weight."""
    parts = [impurity(y[side], weight[side], criterion, n_classes) * weight[side].sum() for side in (left, ~left)]
    return impurity(y, weight, criterion, n_classes) * weight.sum() - sum(parts)


def best_gain(columns, categorical, y, weight, criterion, n_classes, min_rows=1, min_weight=0.0):
    """The most that any allowed split gains; None where there is none."""
    best = None
    for column, is_symbolic in zip(columns, categorical, strict=True):
        for left in symbol_sides(column) if is_symbolic else number_sides(column):
            if min(left.sum(), (~left).sum()) < min_rows:
                continue
            if min(weight[left].sum(), weight[~left].sum()) < min_weight:
                continue
            gain = gain_of(left, y, weight, criterion, n_classes)
            best = gain if best is None else max(best, gain)
    return best


def drawn_targets(column, y, weight):
    """Targets of rows moved so that each symbol's mean is drawn to the mean of symbols by s2 / tau2; None for noise.

    Method of moments: s2 within symbols, tau2 between them. The weighted mean of all rows stays where it was.
    """
    categories = sorted(set(column), key=str)
    inside = [np.array([value == category for value in column]) for category in categories]
    n = np.array([weight[rows].sum() for rows in inside])
    means = np.array([(weight[rows] * y[rows]).sum() for rows in inside]) / n
    mean = (n * means).sum() / n.sum()
    if n.sum() <= len(n):
        return None
    s2 = sum((weight[rows] * (y[rows] - m) ** 2).sum() for rows, m in zip(inside, means)) / (n.sum() - len(n))
    tau2 = ((n * (means - mean) ** 2).sum() - (len(n) - 1) * s2) / (n.sum() - (n**2).sum() / n.sum())
    if tau2 <= 0:
        return None
    share = n / (n + s2 / tau2)
    centre = (share * n * means).sum() / (share * n).sum()
    out = np.zeros(len(y))
    for rows, m, own in zip(inside, means, share):
        out[rows] = mean + own * (m - centre)
    return out


def walk(tree, row, codes_of):
    """The nodes on a row's way: `row` a list of values, `codes_of` per column symbol -> code, None for numbers."""
    node, way = 0, [0]
    while tree.feature[node] >= 0:
        f = tree.feature[node]
        value = row[f]
        if codes_of[f] is not None:
            code = codes_of[f].get(value)
            if code in tree.left_categories(node):
                left = True
            elif code in tree.right_categories(node):
                left = False
            else:
                left = tree.other_left[node]
        elif math.isnan(value):
            left = tree.other_left[node]
        else:
            left = value <= tree.threshold[node]
        node = int(tree.left[node] if left else tree.right[node])
        way.append(node)
    return way


def mixture(tree, row, codes_of, donors):
    """The prediction of a row whose symbols in `donors` (column -> {symbol: weight}) are replaced by each of theirs."""
    if not donors:
        return tree.value[walk(tree, row, codes_of)[-1]]
    column, weights = next(iter(donors.items()))
    rest = {other: one for other, one in donors.items() if other != column}
    total = 0.0
    for category, weight in weights.items():
        replaced = [category if place == column else value for place, value in enumerate(row)]
        total = total + weight * mixture(tree, replaced, codes_of, rest)
    return total
