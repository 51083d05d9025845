"""Kernels that weigh crosses: what a number per observed pair would gain on rows held out.

Rows are sorted by the code of one column, once for all the pairs it is in.
The rows of a symbol then lie together, and the symbols of the other column
among them are summed in a small table of which only what was touched is read
and cleared: no pair is hashed or numbered.

Shapes, for n rows, F folds and K outputs: `order` (m,) the rows that have a
symbol, those of symbol s at ``starts[s] : starts[s + 1]``; `cells` (n,) the
code of the other column times F plus the row's fold, below 0 where there is no
symbol; `pulls` (2 F K wide): gradient and curvature, times the row's weight, at
2 (v K + k) those of output k under the model that has not seen fold v. The work
array `sums` (symbols * F, 2 F K) is zeros between calls.
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
def _gain_of_cell(cell, n_folds, n_outputs, penalty, sums):
    """The gain of a cell on its held-out rows, and its variance over the dispersion; the cell is cleared."""
    gain, variance = 0.0, 0.0
    first = cell * n_folds
    for v in range(n_folds):
        if sums[first + v, 1] > 0.0:  # some row is held out
            for k in range(v * n_outputs, (v + 1) * n_outputs):
                pull, bend = 0.0, 0.0
                for u in range(n_folds):
                    if u != v:
                        pull += sums[first + u, 2 * k]
                        bend += sums[first + u, 2 * k + 1]
                if bend > 0.0:
                    step = -pull / (bend + penalty)
                    gain -= step * (sums[first + v, 2 * k] + 0.5 * step * sums[first + v, 2 * k + 1])
                    variance += step * step * sums[first + v, 2 * k + 1]
    for place in range(first, first + n_folds):
        for k in range(sums.shape[1]):
            sums[place, k] = 0.0
    return gain, variance


@kernel
def gain_of_cross(starts, order, cells, pulls, penalty, n_folds, sums):
    """What a shrunken Newton step per cell, made of the other folds, gains on the held-out rows; `pulls` in `order`.

    The sum over rows, and its variance given the steps where gradients vary as
    much as the curvature says (as they do under a logistic model that holds).
    """
    gain, variance = 0.0, 0.0
    n_symbols = len(sums) // n_folds
    n_outputs = pulls.shape[1] // (2 * n_folds)
    for s in range(len(starts) - 1):
        first, end = starts[s], starts[s + 1]
        if end - first < 2:  # nothing to learn from
            continue
        if pulls.shape[1] == 4:  # two folds and one output, the default, in one go
            for at in range(first, end):
                place = cells[order[at]]
                if place >= 0:
                    sums[place, 0] += pulls[at, 0]
                    sums[place, 1] += pulls[at, 1]
                    sums[place, 2] += pulls[at, 2]
                    sums[place, 3] += pulls[at, 3]
        else:
            for at in range(first, end):
                place = cells[order[at]]
                if place >= 0:
                    for k in range(pulls.shape[1]):
                        sums[place, k] += pulls[at, k]
        everywhere = end - first > n_symbols
        for at in range(n_symbols if everywhere else end - first):
            place = at * n_folds if everywhere else cells[order[first + at]]
            if place >= 0:
                more, more_variance = _gain_of_cell(place // n_folds, n_folds, n_outputs, penalty, sums)
                gain += more
                variance += more_variance
    return gain, variance


@kernel
def add_steps(starts, order, cells, fold, pulls, penalty, n_folds, sums, scores):
    """Add the steps of `gain_of_cross` to the scores (n, F K) of all rows; `pulls` in the order of the rows."""
    n_outputs = scores.shape[1] // n_folds
    for s in range(len(starts) - 1):
        first, end = starts[s], starts[s + 1]
        for at in range(first, end):
            place = cells[order[at]]
            if place >= 0:
                for k in range(pulls.shape[1]):
                    sums[place, k] += pulls[order[at], k]
        for at in range(first, end):
            i = order[at]
            if cells[i] >= 0:
                place = cells[i] - fold[i]
                for v in range(n_folds):
                    for k in range(v * n_outputs, (v + 1) * n_outputs):
                        pull, bend = 0.0, penalty
                        for u in range(n_folds):
                            if u != v:
                                pull += sums[place + u, 2 * k]
                                bend += sums[place + u, 2 * k + 1]
                        scores[i, k] -= pull / bend
        for at in range(first, end):
            place = cells[order[at]]
            if place >= 0:
                for k in range(pulls.shape[1]):
                    sums[place, k] = 0.0


@kernel
def number_cells(starts, order, other, seen, codes):
    """Number the cells of a cross into codes (n,), which are -1 before.

    Returns how many there are, and the rows outside the largest cell of their
    symbol: where there are few, the other column is a function of this one.
    `seen` (symbols of the other column, 2) is zeros between calls.
    """
    n_cells, strays = 0, 0
    for s in range(len(starts) - 1):
        first, end = starts[s], starts[s + 1]
        largest, n_rows = 0, 0
        for at in range(first, end):
            i = order[at]
            symbol = other[i]
            if symbol < 0:
                continue
            if seen[symbol, 0] == 0:
                n_cells += 1
                seen[symbol, 0] = n_cells
            seen[symbol, 1] += 1
            n_rows += 1
            largest = max(largest, seen[symbol, 1])
            codes[i] = np.int32(seen[symbol, 0] - 1)
        strays += n_rows - largest
        for at in range(first, end):
            symbol = other[order[at]]
            if symbol >= 0:
                seen[symbol, 0] = 0
                seen[symbol, 1] = 0
    return n_cells, strays
