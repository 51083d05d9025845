"""Rows through trees: on one way, or spread over several where a symbol was not seen."""

import numpy as np

from tabsym.jit import inlined, kernel

MIXTURE, INDEPENDENT, COVER, STOP = 0, 1, 2, 3
ZERO_IS_ZERO, ZERO_IS_MISSING, NAN_IS_MISSING = 0, 1, 2


@inlined
def goes_left(x, node, threshold, categorical, missing, default_left, start, size, listed, listed_left):
    """Whether a value goes left at a node."""
    if categorical[node]:
        if np.isnan(x):
            return default_left[node]
        code = int(x)
        found = False
        if 0 <= code < 32 * size[node]:
            found = ((listed[start[node] + code // 32] >> np.uint32(code % 32)) & np.uint32(1)) == 1
        return found == listed_left
    if np.isnan(x):
        if missing[node] != 0:
            return default_left[node]
        x = 0.0
    if missing[node] == 1 and -1.0000000180025095e-35 <= x <= 1.0000000180025095e-35:
        return default_left[node]
    return x <= threshold[node]


@inlined
def live_on(
    i, level, parent, to_left, split_at, document, widths, live, threshold, categorical, missing, default_left, start,
    size, listed, listed_left,
):  # fmt: skip
    """Let those donors live on, one level down, that a split sends to a side; the mass left of all columns."""
    mass = 1.0
    for u in range(document.shape[1]):
        if document[i, u] < 0:
            continue
        total = 0.0
        for k in range(widths[u]):
            here = live[level - 1, u, k]
            if u == split_at and here != 0.0:
                x = np.nan if k == widths[u] - 1 else float(k)
                is_left = goes_left(
                    x, parent, threshold, categorical, missing, default_left, start, size, listed, listed_left
                )
                if is_left != to_left:
                    here = 0.0
            live[level, u, k] = here
            total += here
        mass *= total
    return mass


@inlined
def left_share(
    which, width, weights, node, threshold, categorical, missing, default_left, start, size, listed, listed_left
):
    """What the donors weigh that a split sends left."""
    share = 0.0
    for k in range(width):
        x = np.nan if k == width - 1 else float(k)
        if goes_left(x, node, threshold, categorical, missing, default_left, start, size, listed, listed_left):
            share += weights[which, k]
    return share


@kernel
def route_rows(
    route, matrix, document, unseen_at, widths, weights,
    roots, outputs, feature, threshold, left, right, categorical, missing, default_left, start, size, listed,
    listed_left, value, inner, cover, stack, mass_of, live, out,
):  # fmt: skip
    """Add to `out` (n, outputs) what trees say of rows.

    `matrix` (n, p): numbers and codes. `unseen_at` (p,): the place among columns with unseen values, or -1. `document`
    (n, columns): which of the `weights` (documents, codes + 1; missing last in its column's width) a row's value goes
    by, -1 where it was seen. `stack` (depth, 4), `mass_of` (depth,), `live` (levels, columns, codes + 1): to work in.
    """
    columns = document.shape[1]
    for i in range(matrix.shape[0]):
        for u in range(columns):
            if document[i, u] >= 0:
                for k in range(widths[u]):
                    live[0, u, k] = weights[document[i, u], k]
        for t in range(roots.shape[0]):
            stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = roots[t], 0, -1, 0
            mass_of[0] = 1.0
            top = 0
            while top >= 0:
                node, level, parent, side = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
                mass = mass_of[top]
                top -= 1
                if parent >= 0:
                    mass = live_on(
                        i, level, parent, side == 1, unseen_at[feature[parent]], document, widths, live, threshold,
                        categorical, missing, default_left, start, size, listed, listed_left,
                    )  # fmt: skip
                    if mass <= 0.0:
                        continue
                f = feature[node]
                if f < 0:
                    out[i, outputs[t]] += mass * value[node]
                    continue
                place = unseen_at[f]
                if place < 0 or document[i, place] < 0:
                    top += 1
                    is_left = goes_left(
                        matrix[i, f], node, threshold, categorical, missing, default_left, start, size, listed,
                        listed_left,
                    )  # fmt: skip
                    stack[top, 0] = left[node] if is_left else right[node]
                    stack[top, 1], stack[top, 2], stack[top, 3] = level, -1, 0
                    mass_of[top] = mass
                elif route == STOP:
                    out[i, outputs[t]] += mass * inner[node]
                elif route == MIXTURE:
                    for side in range(2, 0, -1):
                        top += 1
                        stack[top, 0] = left[node] if side == 1 else right[node]
                        stack[top, 1], stack[top, 2], stack[top, 3] = level + 1, node, side
                else:
                    if route == COVER:
                        both = cover[left[node]] + cover[right[node]]
                        share = cover[left[node]] / both if both > 0.0 else 0.5
                    else:
                        share = left_share(
                            document[i, place], widths[place], weights, node, threshold, categorical, missing,
                            default_left, start, size, listed, listed_left,
                        )  # fmt: skip
                    for side in range(2, 0, -1):
                        part = share if side == 1 else 1.0 - share
                        if part > 0.0:
                            top += 1
                            stack[top, 0] = left[node] if side == 1 else right[node]
                            stack[top, 1], stack[top, 2], stack[top, 3] = level, -1, 0
                            mass_of[top] = mass * part
