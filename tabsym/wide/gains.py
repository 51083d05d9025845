"""Kernels that weigh crosses: what a number per observed pair would gain on rows held out.

Rows are sorted by the code of one column, once for all the pairs it is in.
The rows of a symbol then lie together, and the symbols of the other column
among them are numbered as they come, in a table small enough to stay near the
processor: no pair is hashed.

Shapes, for n rows and F folds: `order` (m,) the rows that have a symbol, those
of symbol s at ``starts[s] : starts[s + 1]``; `other` (n,) the codes of the
other column, -1 for none; `pulls` (n, 2 F): gradient and curvature, times the
row's weight, at 2 v and 2 v + 1 those under the model that has not seen fold v.
`seen` (symbols of the other column,) is zeros between calls.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import kernel, part, unsigned


@kernel
def sort_rows(codes, starts, order):
    """Counting sort of the rows by code; `starts` (symbols + 1,) are zeros before. How many rows have a symbol."""
    for i in range(len(codes)):
        if codes[i] >= 0:
            starts[codes[i]] += 1
    total = 0
    for s in range(len(starts)):
        total += starts[s]
        starts[s] = total  # the end of s, which the next loop brings to its start
    for i in range(len(codes) - 1, -1, -1):
        if codes[i] >= 0:
            starts[codes[i]] -= 1
            order[starts[codes[i]]] = i
    return total


@part
def _gain_of_step(pull, bend, own_pull, own_bend, penalty):
    """What the step -pull / (bend + penalty) gains on other rows, and the variance of that over the dispersion."""
    step = -pull / (bend + penalty)
    return -step * (own_pull + 0.5 * step * own_bend), step * step * own_bend


@part
def _gain_of_cell(sums, cell, n_folds, penalty):
    """Of the steps that the other folds teach each fold, which are 0 where they have no rows (no branch is quicker)."""
    gain, variance = 0.0, 0.0
    for v in range(n_folds):
        pull, bend = 0.0, 0.0
        for u in range(n_folds):
            if u != v:
                pull += sums[cell, 2 * (u * n_folds + v)]
                bend += sums[cell, 2 * (u * n_folds + v) + 1]
        place = 2 * (v * n_folds + v)
        own, more = _gain_of_step(pull, bend, sums[cell, place], sums[cell, place + 1], penalty)
        gain += own
        variance += more
    return gain, variance


@part
def _number(symbol, before, seen, n_cells):
    """The number of the cell of a symbol, from 1, and how many there are; `before`: were before its group of rows."""
    is_new = seen[symbol] <= before  # numbered for an earlier group, or never
    n_cells += is_new
    seen[symbol] = n_cells if is_new else seen[symbol]  # no branch, which would be a toss-up
    return seen[symbol], n_cells


@part
def _gain_of_cross(starts, order, every_symbol, every_row, other, fold, n_folds, pulls, penalty, seen, sums):
    gain, variance, n_cells = 0.0, 0.0, 0
    for s in range(0, len(starts) - 1, every_symbol):
        if starts[s + 1] - starts[s] < 2:  # one row can neither teach nor be taught
            continue
        before = n_cells
        for at in range(starts[s], starts[s + 1], every_row):
            i = unsigned(order[at])
            if other[i] >= 0:
                symbol = unsigned(other[i])
                number, n_cells = _number(symbol, before, seen, n_cells)
                cell = unsigned(number - before - 1)
                place = unsigned(2 * n_folds) * unsigned(fold[i])
                for k in range(2 * n_folds):
                    sums[cell, place + unsigned(k)] += pulls[i, k]
        for cell in range(n_cells - before):
            own, more = _gain_of_cell(sums, cell, n_folds, penalty)
            gain += own
            variance += more
            for k in range(2 * n_folds * n_folds):
                sums[cell, k] = 0.0
    for symbol in range(len(seen)):
        seen[symbol] = 0
    return gain, variance


@kernel
def gain_of_cross(starts, order, every, other, fold, n_folds, pulls, penalty, seen, sums):
    """What a shrunken Newton step per cell, made of the other folds, gains on the rows of each fold.

    Of a sample: every so manieth symbol that rows are sorted by, and row of a symbol; (1, 1) for all.

    The sum over rows, and its variance given the steps where gradients vary as
    much as the curvature says (as they do under a logistic model that holds).
    `sums` (the most cells of a symbol, 2 F^2): the pulls of rows of fold u under
    the model that has not seen fold v at 2 (u F + v); zeros between calls.
    """
    by_symbol, by_row = every
    if n_folds == 2 and by_symbol * by_row == 1:  # numbers that the compiler knows make short loops fast
        return _gain_of_cross(starts, order, 1, 1, other, fold, 2, pulls, penalty, seen, sums)
    if n_folds == 2:
        return _gain_of_cross(starts, order, by_symbol, by_row, other, fold, 2, pulls, penalty, seen, sums)
    return _gain_of_cross(starts, order, by_symbol, by_row, other, fold, n_folds, pulls, penalty, seen, sums)


@kernel
def is_function(starts, order, other, few, seen):
    """Whether the other column is a function of the one that rows are sorted by, but for so few rows.

    Those are the rows outside the most frequent pair of their symbol.
    """
    strays = 0
    for s in range(len(starts) - 1):
        largest, n_rows = 0, 0
        for at in range(starts[s], starts[s + 1]):
            symbol = other[order[at]]
            if symbol >= 0:
                seen[symbol] += 1
                n_rows += 1
                largest = max(largest, seen[symbol])
        for at in range(starts[s], starts[s + 1]):
            symbol = other[order[at]]
            if symbol >= 0:
                seen[symbol] = 0
        strays += n_rows - largest
        if strays > few:
            return False
    return True


@kernel
def number_cells(starts, order, other, seen, codes):
    """Number the cells of a cross into codes (n,), which are -1 before; how many there are."""
    n_cells = 0
    for s in range(len(starts) - 1):
        before = n_cells
        for at in range(starts[s], starts[s + 1]):
            i = unsigned(order[at])
            if other[i] >= 0:
                symbol = unsigned(other[i])
                number, n_cells = _number(symbol, before, seen, n_cells)
                codes[i] = np.int32(number - 1)
    for symbol in range(len(seen)):
        seen[symbol] = 0
    return n_cells
