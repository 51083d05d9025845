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

from tabsym.jit import inlined, kernel, unsigned


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


@inlined
def _number(symbol, before, seen, n_cells):
    """The number of the cell of a symbol, from 1, and how many there are; `before`: were before its group of rows."""
    is_new = seen[symbol] <= before  # numbered for an earlier group, or never
    n_cells += is_new
    seen[symbol] = n_cells if is_new else seen[symbol]  # no branch, which would be a toss-up
    return seen[symbol], n_cells


@inlined
def _add_pulls(pulls, row, sums, cell, first, n_folds):
    """Add the pulls of a row, those under two models at once: the machine adds four numbers as fast as one."""
    for v in range(0, n_folds - 1, 2):
        k = unsigned(2 * v)
        a, b = pulls[row, k], pulls[row, k + unsigned(1)]
        c, d = pulls[row, k + unsigned(2)], pulls[row, k + unsigned(3)]
        at = first + k
        a, b = sums[cell, at] + a, sums[cell, at + unsigned(1)] + b
        c, d = sums[cell, at + unsigned(2)] + c, sums[cell, at + unsigned(3)] + d
        sums[cell, at], sums[cell, at + unsigned(1)] = a, b
        sums[cell, at + unsigned(2)], sums[cell, at + unsigned(3)] = c, d
    if n_folds % 2 == 1:
        k = unsigned(2 * n_folds - 2)
        sums[cell, first + k] += pulls[row, k]
        sums[cell, first + k + unsigned(1)] += pulls[row, k + unsigned(1)]


@inlined
def _sum_cells(starts, order, every_symbol, every_row, other, fold, n_folds, pulls, seen, sums, codes):
    n_cells = 0
    for s in range(0, len(starts) - 1, every_symbol):
        before = n_cells
        for at in range(starts[s], starts[s + 1], every_row):
            i = unsigned(order[at])
            if other[i] >= 0:
                number, n_cells = _number(unsigned(other[i]), before, seen, n_cells)
                if len(codes):
                    codes[i] = np.int32(number - 1)
                first = unsigned(2 * n_folds) * unsigned(fold[i])
                _add_pulls(pulls, i, sums, unsigned(number - 1), first, n_folds)
    for symbol in range(len(seen)):
        seen[symbol] = 0
    return n_cells


@kernel
def sum_cells(starts, order, every, other, fold, n_folds, pulls, seen, sums, codes):
    """Number the cells of a cross into codes (n,), -1 before, or empty, and add up their pulls; how many there are.

    Of a sample: every so manieth symbol that rows are sorted by, and row of a symbol; (1, 1) for all.
    `sums` (cells or more, 2 F^2), zeros before: the pulls of rows of fold u under the model that
    has not seen fold v at 2 (u F + v).
    """
    by_symbol, by_row = every
    if n_folds == 2 and by_symbol * by_row == 1:  # numbers that the compiler knows make short loops fast
        return _sum_cells(starts, order, 1, 1, other, fold, 2, pulls, seen, sums, codes)
    if n_folds == 2:
        return _sum_cells(starts, order, by_symbol, by_row, other, fold, 2, pulls, seen, sums, codes)
    if n_folds == 4 and by_symbol * by_row == 1:
        return _sum_cells(starts, order, 1, 1, other, fold, 4, pulls, seen, sums, codes)
    if n_folds == 4:
        return _sum_cells(starts, order, by_symbol, by_row, other, fold, 4, pulls, seen, sums, codes)
    return _sum_cells(starts, order, by_symbol, by_row, other, fold, n_folds, pulls, seen, sums, codes)


@inlined
def _gain_of_cells(sums, n_folds, penalty, steps):
    gain, variance = 0.0, 0.0
    for cell in range(len(steps)):
        for v in range(n_folds):
            pull, bend = 0.0, 0.0
            for u in range(n_folds):
                if u != v:
                    pull += sums[cell, 2 * (u * n_folds + v)]
                    bend += sums[cell, 2 * (u * n_folds + v) + 1]
            step = -pull / (bend + penalty)
            own = 2 * (v * n_folds + v)
            gain -= step * (sums[cell, own] + 0.5 * step * sums[cell, own + 1])
            variance += step * step * sums[cell, own + 1]
            steps[cell, v] = step
        for k in range(2 * n_folds * n_folds):
            sums[cell, k] = 0.0
    return gain, variance


@kernel
def gain_of_cells(sums, n_folds, penalty, steps):
    """What a shrunken Newton step per cell, made of the other folds, gains on the rows of each fold.

    The sum over rows, and its variance given the steps where gradients vary as much as the
    curvature says (as they do under a logistic model that holds). `sums`: as `sum_cells` leaves them, which are
    zeros after; the steps go into `steps` (cells, F). They are 0 where the other folds have no rows.
    """
    if n_folds == 2:  # so that loops over folds are unrolled
        return _gain_of_cells(sums, 2, penalty, steps)
    if n_folds == 4:
        return _gain_of_cells(sums, 4, penalty, steps)
    return _gain_of_cells(sums, n_folds, penalty, steps)


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
