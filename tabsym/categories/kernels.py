"""Kernels over codes: arrays in, arrays out, nothing checked."""

from __future__ import annotations

import numpy as np

from tabsym.jit import allocating_kernel, kernel, unsigned

_EMPTY = np.int32(-1)
_HASH = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: Knuth's multiplicative hash


@allocating_kernel
def _slot(key, table, keys, shift):
    """Where `key` lies in the open-addressing table, or the empty place where it belongs."""
    mask = len(table) - 1
    at = np.int64((np.uint64(key) * _HASH) >> shift)
    while table[at] != _EMPTY and keys[table[at]] != key:
        at = (at + 1) & mask
    return at


@allocating_kernel
def _empty_table(capacity):
    """A table of a power of two of places, at most half full, and its hash shift."""
    bits = 4
    while (1 << bits) < 2 * capacity:
        bits += 1
    return np.full(1 << bits, _EMPTY, np.int32), np.uint64(64 - bits)


@allocating_kernel
def _fill_table(table, keys, n_keys, shift):
    for code in range(n_keys):
        table[_slot(keys[code], table, keys, shift)] = code


@allocating_kernel
def number_pairs(left, right, keys, n_keys, codes):
    """Number the pairs (left, right) into codes (n,), the first `n_keys` of `keys` (at least n more) first.

    New ones are appended to `keys`; returns how many there are then.
    """
    n = len(left)
    table, shift = _empty_table(max(16, n_keys))
    _fill_table(table, keys, n_keys, shift)
    for i in range(n):
        if left[i] < 0 or right[i] < 0:
            codes[i] = -1
            continue
        key = (np.int64(left[i]) << 32) | np.int64(right[i])
        at = _slot(key, table, keys, shift)
        if table[at] == _EMPTY:
            keys[n_keys] = key
            table[at] = n_keys
            codes[i] = n_keys
            n_keys += 1
            if 2 * n_keys > len(table):
                table, shift = _empty_table(2 * n_keys)
                _fill_table(table, keys, n_keys, shift)
        else:
            codes[i] = table[at]
    return n_keys


@allocating_kernel
def hash_keys(keys):
    """The hash table of keys, and its hash shift."""
    table, shift = _empty_table(max(16, len(keys)))
    _fill_table(table, keys, len(keys), shift)
    return table, shift


@allocating_kernel
def find_pairs(left, right, keys, table, shift, codes):
    """Codes (n,) of the pairs (left, right) in hashed keys, -1 where there is none."""
    for i in range(len(left)):
        if left[i] < 0 or right[i] < 0:
            codes[i] = -1
        else:
            codes[i] = table[_slot((np.int64(left[i]) << 32) | np.int64(right[i]), table, keys, shift)]


@kernel
def gather_columns(column, order, start, stride, out, index):
    """Write one code column, reordered, as ``start + stride * code`` into column `index` of `out`."""
    for i in range(len(order)):
        code = np.int64(column[order[i]])
        out[i, index] = start + stride * code if code >= 0 else -1


@allocating_kernel
def count_codes(codes, n_entries):
    """How often each global code of a matrix (n, blocks) occurs."""
    counts = np.zeros(n_entries, np.int64)
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            if codes[i, j] >= 0:
                counts[codes[i, j]] += 1
    return counts


@kernel
def count_column(codes, counts):
    """Add to counts (n_categories,) how often each category occurs in a code column."""
    for i in range(len(codes)):
        if codes[i] >= 0:
            counts[unsigned(codes[i])] += 1


@kernel
def number_repeats(content, copies, repeated, slots, totals, before, group):
    """Find the rows (n,) of `repeated` contents (g,): the group of each, -1 for none, and the copies in rows before.

    `copies` (n,) or empty for one each; `slots` (a power of 2 above g), `totals` (g,) and `before` (n,) are zeros.
    """
    mask = unsigned(len(slots) - 1)
    for g in range(len(repeated)):
        s = repeated[g] & mask
        while slots[s] != 0:
            s = (s + unsigned(1)) & mask
        slots[s] = g + 1
    for i in range(len(content)):
        s = content[i] & mask
        while slots[s] != 0 and repeated[slots[s] - 1] != content[i]:
            s = (s + unsigned(1)) & mask
        g = slots[s] - 1
        group[i] = g
        if g >= 0:
            before[i] = totals[g]
            totals[g] += copies[i] if len(copies) else 1


@kernel
def take_numbers(numbers, at, out):
    """Write the number at each index (n,), of which -1 is the last; NumPy would first copy the indices as int64."""
    for i in range(len(at)):
        out[i] = numbers[at[i]]


@allocating_kernel
def mark_used(codes, n_categories):
    """Whether each category occurs in a code column (n_categories,)."""
    used = np.zeros(n_categories, np.bool_)
    for i in range(len(codes)):
        if codes[i] >= 0:
            used[codes[i]] = True
    return used


@kernel
def find_intervals(values, steps, heads, first, missing, codes):
    """Codes (n,) of the intervals of values: `first` + how many bounds are below, `missing` for NaN.

    `steps` and `heads` as of `coding.search_cache`. A few bounds are all compared, which is faster than to look up the
    right ones: the processor need not guess.
    """
    width = len(steps) // (len(heads) + 1)
    for i in range(len(values)):
        value = values[i]
        below = np.int64(0)
        for head in heads:
            below += head < value
        base = unsigned(below * width)
        below *= width
        for j in range(width):
            below += steps[base + unsigned(j)] < value
        codes[i] = missing if np.isnan(value) else first + below


@kernel
def order_by_code(codes, cursors, order):
    """Row numbers by their code, ascending within one; `cursors` (n_codes,) starts, and is where each code's rows end.

    Rows with a code below 0 are left out.
    """
    for row in range(len(codes)):
        code = codes[row]
        if code >= 0:
            order[cursors[code]] = row
            cursors[code] += 1


@kernel
def count_row_pairs(order, ends, left, weight, starts, cursors, rights, weights, pointer):
    """Sums of weights by (left code, right code), as a CSR matrix with ascending columns.

    Parameters
    ----------
    order : (n,)
        Rows, those of the first right code first.
    ends : (n_right,)
        Where each right code's rows end in `order`.
    left : (n,)
        Codes; rows with one below 0 are left out.
    weight : (n,) or (1,)
        Of the rows; one number for all.
    starts, cursors : (n_left,)
        Where each left code's rows begin among all rows by left code, twice: `cursors` is changed.
    rights, weights : (n,)
        Columns and entries of the matrix afterwards; the first ``pointer[-1]`` count.
    pointer : (n_left + 1,)
    """
    is_by_row = len(weight) > 1
    at = 0
    for right in range(len(ends)):
        for position in range(at, ends[right]):
            row = order[position]
            code = left[row]
            if code >= 0:
                to = cursors[code]
                rights[to] = right
                weights[to] = weight[row] if is_by_row else weight[0]
                cursors[code] = to + 1
        at = ends[right]
    written = 0
    pointer[0] = 0
    for code in range(len(cursors)):
        begin = written
        for position in range(starts[code], cursors[code]):
            if written > begin and rights[written - 1] == rights[position]:
                weights[written - 1] += weights[position]
            else:
                rights[written] = rights[position]
                weights[written] = weights[position]
                written += 1
        pointer[code + 1] = written
