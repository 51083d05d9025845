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


@kernel
def keep_evident(starts, order, fold, kept_starts, kept_order):
    """Only the rows of symbols that rows of more than one fold have: others can neither teach nor gain. How many."""
    n_kept, n_groups = 0, 0
    for s in range(len(starts) - 1):
        is_mixed = False
        for at in range(starts[s] + 1, starts[s + 1]):
            is_mixed |= fold[order[at]] != fold[order[starts[s]]]
        if is_mixed:
            for at in range(starts[s], starts[s + 1]):
                kept_order[n_kept] = order[at]
                n_kept += 1
            n_groups += 1
            kept_starts[n_groups] = n_kept
    return n_groups, n_kept


@part
def _gain_of_step(pull, bend, own_pull, own_bend, penalty):
    """What the step -pull / (bend + penalty) gains on other rows, and the variance of that over the dispersion."""
    step = -pull / (bend + penalty)
    return -step * (own_pull + 0.5 * step * own_bend), step * step * own_bend


@kernel
def gain_of_cross(starts, order, cells, pulls, penalty, sums):
    """What a shrunken Newton step per cell, made of the other fold, gains on the held-out rows: for two folds, one output.

    The sum over rows, and its variance given the steps where gradients vary as
    much as the curvature says (as they do under a logistic model that holds).
    `pulls` are in the order of `order`.
    """
    gain, variance = 0.0, 0.0
    n_cells = len(sums)
    for s in range(len(starts) - 1):
        first, end = starts[s], starts[s + 1]
        for at in range(first, end):
            cell = cells[order[at]]
            if cell >= 0:
                sums[cell, 0] += pulls[at, 0]
                sums[cell, 1] += pulls[at, 1]
                sums[cell, 2] += pulls[at, 2]
                sums[cell, 3] += pulls[at, 3]
        everywhere = 2 * (end - first) > n_cells
        for at in range(n_cells // 2 if everywhere else end - first):
            cell = 2 * at if everywhere else cells[order[first + at]] & ~1
            if cell >= 0:
                if sums[cell, 1] > 0.0 and sums[cell + 1, 1] > 0.0:  # rows in both folds
                    g, v = _gain_of_step(sums[cell + 1, 0], sums[cell + 1, 1], sums[cell, 0], sums[cell, 1], penalty)
                    gain += g
                    variance += v
                    g, v = _gain_of_step(sums[cell, 2], sums[cell, 3], sums[cell + 1, 2], sums[cell + 1, 3], penalty)
                    gain += g
                    variance += v
                for place in range(cell, cell + 2):
                    sums[place, 0] = 0.0
                    sums[place, 1] = 0.0
                    sums[place, 2] = 0.0
                    sums[place, 3] = 0.0
    return gain, variance


@kernel
def gain_of_cross_in_general(starts, order, cells, pulls, penalty, n_folds, sums):
    """`gain_of_cross` for any number of folds and outputs."""
    gain, variance = 0.0, 0.0
    n_outputs = pulls.shape[1] // (2 * n_folds)
    for s in range(len(starts) - 1):
        first, end = starts[s], starts[s + 1]
        for at in range(first, end):
            cell = cells[order[at]]
            if cell >= 0:
                for k in range(pulls.shape[1]):
                    sums[cell, k] += pulls[at, k]
        for at in range(first, end):
            if cells[order[at]] < 0:
                continue
            cell = cells[order[at]] // n_folds * n_folds
            for v in range(n_folds):
                if sums[cell + v, 1] > 0.0:
                    for k in range(2 * v * n_outputs, 2 * (v + 1) * n_outputs, 2):
                        pull, bend = 0.0, 0.0
                        for u in range(n_folds):
                            if u != v:
                                pull += sums[cell + u, k]
                                bend += sums[cell + u, k + 1]
                        if bend > 0.0:
                            more = _gain_of_step(pull, bend, sums[cell + v, k], sums[cell + v, k + 1], penalty)
                            gain += more[0]
                            variance += more[1]
            for place in range(cell, cell + n_folds):
                for k in range(pulls.shape[1]):
                    sums[place, k] = 0.0
    return gain, variance


@kernel
def add_steps(starts, order, cells, fold, pulls, penalty, n_folds, sums, scores):
    """Add the steps of `gain_of_cross` to the scores (n, F K) of all rows; `pulls` in the order of the rows."""
    width = pulls.shape[1]
    n_outputs = scores.shape[1] // n_folds
    for s in range(len(starts) - 1):
        first, end = starts[s], starts[s + 1]
        for at in range(first, end):
            i = order[at]
            if cells[i] >= 0:
                for k in range(width):
                    sums[cells[i], k] += pulls[i, k]
        for at in range(first, end):
            i = order[at]
            if cells[i] >= 0:
                cell = cells[i] - fold[i]
                if width == 4:  # two folds, one output
                    scores[i, 0] -= sums[cell + 1, 0] / (sums[cell + 1, 1] + penalty)
                    scores[i, 1] -= sums[cell, 2] / (sums[cell, 3] + penalty)
                else:
                    for k in range(scores.shape[1]):
                        pull, bend = 0.0, penalty
                        for u in range(n_folds):
                            if u != k // n_outputs:
                                pull += sums[cell + u, 2 * k]
                                bend += sums[cell + u, 2 * k + 1]
                        scores[i, k] -= pull / bend
        for at in range(first, end):
            cell = cells[order[at]]
            if cell >= 0:
                for k in range(width):
                    sums[cell, k] = 0.0


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
