"""Rows down a tree: arrays in, arrays out, nothing checked.

`cells` (p, n) holds numbers (NaN: missing) and codes of categories (below 0: never seen). Of the tree, per node:
`feature` (-1: leaf), `threshold`, `left`, `right`, `other_left` (where what the node has not seen goes) and `pointer`,
which says where its `symbols` are, ascending, with their side `to_left`.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import inlined, kernel

MIXTURE, INDEPENDENT, COVER, STOP = 0, 1, 2, 3


@inlined
def _symbol_goes_left(code, t, other_left, pointer, symbols, to_left):
    low, high = pointer[t], pointer[t + 1]
    while low < high:
        middle = (low + high) // 2
        if symbols[middle] < code:
            low = middle + 1
        else:
            high = middle
    if low < pointer[t + 1] and symbols[low] == code:
        return to_left[low] > 0
    return other_left[t] > 0


@inlined
def _goes_left(cells, i, t, feature, threshold, other_left, pointer, symbols, to_left):
    value = cells[feature[t], i]
    if pointer[t + 1] > pointer[t]:
        return _symbol_goes_left(int(value), t, other_left, pointer, symbols, to_left)
    return other_left[t] > 0 if np.isnan(value) else value <= threshold[t]


@kernel
def find_leaves(cells, feature, threshold, left, right, other_left, pointer, symbols, to_left, leaves):
    """The leaf of each row (n,); unknown categories go where known ones that a node does not have go."""
    for i in range(cells.shape[1]):
        t = 0
        while feature[t] >= 0:
            goes = _goes_left(cells, i, t, feature, threshold, other_left, pointer, symbols, to_left)
            t = left[t] if goes else right[t]
        leaves[i] = t


@inlined
def _divide(live, u, begin, end, t, donors, weights, first, other_left, pointer, symbols, to_left):
    """Live donors that go left before those that go right: where the latter begin, and the weight of both."""
    middle, goes_weight, stays_weight = begin, 0.0, 0.0
    for position in range(begin, end):
        k = live[u, position]
        if _symbol_goes_left(donors[u, k], t, other_left, pointer, symbols, to_left):
            live[u, position] = live[u, middle]
            live[u, middle] = k
            middle += 1
            goes_weight += weights[first + k]
        else:
            stays_weight += weights[first + k]
    return middle, goes_weight, stays_weight


@kernel
def spread_rows(
    cells, feature, threshold, left, right, other_left, pointer, symbols, to_left, value, weight,
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
                goes = _goes_left(cells, i, t, feature, threshold, other_left, pointer, symbols, to_left)
                stack[top, 0] = left[t] if goes else right[t]
                continue
            u = slot[f]
            if mode == COVER:
                goes_weight, stays_weight = weight[left[t]], weight[right[t]]
            else:
                first = firsts[u] + which[u, i] * sizes[u]
                begin, end = stack[top, 1 + 2 * u], stack[top, 2 + 2 * u]
                middle, goes_weight, stays_weight = _divide(
                    live, u, begin, end, t, donors, weights, first, other_left, pointer, symbols, to_left
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
