"""Kernels that weigh crosses: what a number per observed pair would gain on rows held out.

Rows are sorted by the code of one column, once for all the pairs it is in, and
within a symbol by whether they are held out; then the rows of a symbol lie
together, and the symbols of the other column among them are summed in a small
table of which only what was touched is read and cleared. No pair is hashed or
numbered.

Shapes, for n rows and K outputs: `order` (m,) the rows that have a symbol; those
of symbol s from ``starts[2 s]`` on, of which those from ``starts[2 s + 1]`` on
are held out; `pulls` (n, 2 K): gradient and curvature, times the row's weight,
of output k at 2 k. The work array `sums` (symbols, 2 K) is zeros between
calls, over the symbols of the other column.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import kernel, part


@kernel
def sort_rows(codes, held_out, starts, order):
    """Counting sort of the rows by code; `starts` (2 symbols + 1,) are zeros before. How many rows have a symbol."""
    for i in range(len(codes)):
        if codes[i] >= 0:
            starts[2 * codes[i] + held_out[i]] += 1
    total = 0
    for place in range(len(starts)):
        total += starts[place]
        starts[place] = total  # an end, which the next loop brings to its start
    for i in range(len(codes) - 1, -1, -1):
        if codes[i] >= 0:
            place = 2 * codes[i] + held_out[i]
            starts[place] -= 1
            order[starts[place]] = i
    return total


@part
def _sum_cells(first, end, order, other, pulls, sums):
    """Sum the rows first..end by symbol of the other column."""
    for at in range(first, end):
        i = order[at]
        symbol = other[i]
        if symbol >= 0:
            for k in range(pulls.shape[1]):
                sums[symbol, k] += pulls[i, k]


@part
def _clear_cells(first, end, order, other, sums):
    for at in range(first, end):
        symbol = other[order[at]]
        if symbol >= 0:
            for k in range(sums.shape[1]):
                sums[symbol, k] = 0.0


@kernel
def gain_of_cross(starts, order, other, pulls, penalty, sums):
    """What a shrunken Newton step per cell gains on the held-out rows: the sum, and the sum of squares over rows."""
    gain, squares = 0.0, 0.0
    for s in range(len(starts) // 2):
        first, middle, end = starts[2 * s], starts[2 * s + 1], starts[2 * s + 2]
        if first == middle or middle == end:  # nothing to learn from, or nothing to gain on
            continue
        _sum_cells(first, middle, order, other, pulls, sums)
        for at in range(middle, end):
            i = order[at]
            symbol = other[i]
            if symbol >= 0:
                own = 0.0
                for k in range(0, pulls.shape[1], 2):
                    step = -sums[symbol, k] / (sums[symbol, k + 1] + penalty)
                    own -= step * (pulls[i, k] + 0.5 * step * pulls[i, k + 1])
                gain += own
                squares += own * own
        _clear_cells(first, middle, order, other, sums)
    return gain, squares


@kernel
def add_steps(starts, order, other, pulls, penalty, sums, scores):
    """Add the steps of `gain_of_cross` to the scores (n, K) of all rows."""
    for s in range(len(starts) // 2):
        first, middle, end = starts[2 * s], starts[2 * s + 1], starts[2 * s + 2]
        if first == middle:
            continue
        _sum_cells(first, middle, order, other, pulls, sums)
        for at in range(first, end):
            i = order[at]
            symbol = other[i]
            if symbol >= 0:
                for k in range(scores.shape[1]):
                    scores[i, k] -= sums[symbol, 2 * k] / (sums[symbol, 2 * k + 1] + penalty)
        _clear_cells(first, middle, order, other, sums)


@kernel
def number_cells(starts, order, other, seen, codes):
    """Number the cells of a cross into codes (n,), which are -1 before.

    Returns how many there are, and the rows outside the largest cell of their
    symbol: where there are few, the other column is a function of this one.
    `seen` (symbols of the other column, 2) is zeros between calls.
    """
    n_cells, strays = 0, 0
    for s in range(len(starts) // 2):
        first, end = starts[2 * s], starts[2 * s + 2]
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
