"""Kernels that weigh crosses: what a number per observed pair would gain on rows held out.

Rows are sorted by the code of one column, once for all the pairs it is in;
then the rows of a symbol lie together, and the symbols of the other column
among them are summed in a small table of which only what was touched is read
and cleared. No pair is hashed or numbered.

Shapes, for n rows, F folds and K outputs: `order` (m,) the rows that have a
symbol, those of symbol s at ``starts[s] : starts[s + 1]``; in that order
`fold` (m,), the fold that holds the row out, and `pulls` (m, 2 F K): at
2 (v K + k) gradient and curvature, times the row's weight, of output k under
the model that has not seen fold v. The work arrays `sums` (symbols, 4 F K),
rest and own side by side, and `hits` (symbols,) are zeros between calls, over
the symbols of the other column; `touched` (symbols,).
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import kernel, part


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
def _sum_cells(first, end, order, other, fold, pulls, n_folds, n_outputs, sums, hits, touched):
    """Sum the rows first..end by symbol of the other column, apart for held-out rows; how many symbols occur."""
    n_touched = 0
    for at in range(first, end):
        symbol = other[order[at]]
        if symbol < 0:
            continue
        if hits[symbol] == 0:
            touched[n_touched] = symbol
            n_touched += 1
        hits[symbol] += 1
        for v in range(n_folds):
            own = 2 if fold[at] == v else 0
            for k in range(v * n_outputs, (v + 1) * n_outputs):
                sums[symbol, 4 * k + own] += pulls[at, 2 * k]
                sums[symbol, 4 * k + own + 1] += pulls[at, 2 * k + 1]
    return n_touched


@kernel
def gain_of_cross(starts, order, other, fold, pulls, penalty, n_folds, n_outputs, sums, hits, touched):
    """What a shrunken Newton step per cell, made of the other folds, gains on the held-out rows, summed.

    Also the cells that occur, and the rows outside the largest cell of their symbol:
    where there are few, the other column is a function of this one.
    """
    gain, cells, strays = 0.0, 0, 0
    for s in range(len(starts) - 1):
        n_rows = starts[s + 1] - starts[s]
        if n_rows == 1:  # nothing to learn from
            cells += 1
            continue
        n_touched = _sum_cells(
            starts[s], starts[s + 1], order, other, fold, pulls, n_folds, n_outputs, sums, hits, touched
        )
        cells += n_touched
        largest = 0
        for t in range(n_touched):
            symbol = touched[t]
            largest = max(largest, hits[symbol])
            for at in range(0, 4 * n_folds * n_outputs, 4):
                if hits[symbol] > 1 and sums[symbol, at + 3] > 0.0:
                    step = -sums[symbol, at] / (sums[symbol, at + 1] + penalty)
                    gain -= step * (sums[symbol, at + 2] + 0.5 * step * sums[symbol, at + 3])
                sums[symbol, at] = 0.0
                sums[symbol, at + 1] = 0.0
                sums[symbol, at + 2] = 0.0
                sums[symbol, at + 3] = 0.0
            hits[symbol] = 0
        strays += n_rows - largest
    return gain, cells, strays


@kernel
def steps_of_cross(starts, order, other, fold, pulls, penalty, n_folds, n_outputs, sums, hits, touched, steps):
    """The steps of `gain_of_cross` for each row into steps (n, F K), zeros before: column v K + k has not seen v."""
    for s in range(len(starts) - 1):
        n_touched = _sum_cells(
            starts[s], starts[s + 1], order, other, fold, pulls, n_folds, n_outputs, sums, hits, touched
        )
        for at in range(starts[s], starts[s + 1]):
            symbol = other[order[at]]
            if symbol >= 0:
                for k in range(n_folds * n_outputs):
                    steps[order[at], k] = -sums[symbol, 4 * k] / (sums[symbol, 4 * k + 1] + penalty)
        for t in range(n_touched):
            hits[touched[t]] = 0
            for at in range(4 * n_folds * n_outputs):
                sums[touched[t], at] = 0.0


@kernel
def number_cells(starts, order, other, hits, touched, codes):
    """Number the cells of a cross into codes (n,), -1 where a row has none; how many there are.

    `hits` are zeros between calls.
    """
    n_cells = 0
    for s in range(len(starts) - 1):
        n_touched = 0
        for at in range(starts[s], starts[s + 1]):
            symbol = other[order[at]]
            if symbol < 0:
                continue
            if hits[symbol] == 0:
                touched[n_touched] = symbol
                n_touched += 1
                n_cells += 1
                hits[symbol] = n_cells
            codes[order[at]] = np.int32(hits[symbol] - 1)
        for t in range(n_touched):
            hits[touched[t]] = 0
    return n_cells
