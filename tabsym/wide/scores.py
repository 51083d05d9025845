"""Scores, slopes and gradients of one row, inlined into the kernels; shapes as in `kernels`.

Every function here takes the arrays of a program one by one.
"""

from __future__ import annotations

import numpy as np

from tabsym.jit import part
from tabsym.wide.rules import slope_of_one


@part
def _term(i, k, t, skip, codes, x, starts, constants, numeric, columns, entries, neutral, n_outputs, state):
    """The product of term t without the factor in slot `skip` (-1: of all)."""
    value = constants[t]
    if numeric[t] >= 0:
        value *= x[i, numeric[t]]
    for s in range(starts[t], starts[t + 1]):
        if s != skip:
            entry = entry_of_slot(i, s, codes, columns, entries)
            value *= state[entry * n_outputs + k, 0] if entry >= 0 else neutral[s, k]
    return value


@part
def entry_of_slot(i, s, codes, columns, entries):
    """The entry that slot s selects for row i; -1 unseen."""
    column = columns[s]
    if column < 0:
        return entries[s]
    code = np.int64(codes[i, column])
    return code + entries[s] if code >= 0 else np.int64(-1)


@part
def additive_score(i, k, codes, x, n_plain, slopes, scalars, n_outputs, state):
    """Output k of the terms that are no products."""
    total = 0.0
    for j in range(n_plain):
        entry = codes[i, j]
        if entry >= 0:
            total += state[entry * n_outputs + k, 0]
    for j in range(len(slopes)):
        total += x[i, j] * state[slopes[j] * n_outputs + k, 0]
    for j in range(len(scalars)):
        total += state[scalars[j] * n_outputs + k, 0]
    return total


@part
def score_of_row(
    i, k, codes, x, offset, n_plain, slopes, scalars, starts, constants, numeric, columns, entries, neutral, n_outputs,
    state,
):  # fmt: skip
    """Output k of the score of row i; an unseen symbol adds nothing, or multiplies by its slot's neutral value."""
    total = additive_score(i, k, codes, x, n_plain, slopes, scalars, n_outputs, state)
    if len(offset):
        total += offset[i]
    for t in range(len(constants)):
        total += _term(i, k, t, -1, codes, x, starts, constants, numeric, columns, entries, neutral, n_outputs, state)
    return total


@part
def slopes_of_many(scores, target):
    """Scores (K,) -> softmax minus indicator, in place; the loss."""
    top = scores[0]
    for k in range(1, len(scores)):
        top = max(top, scores[k])
    own = scores[target]
    total = 0.0
    for k in range(len(scores)):
        scores[k] = np.exp(scores[k] - top)
        total += scores[k]
    for k in range(len(scores)):
        scores[k] /= total
    scores[target] -= 1.0
    return np.log(total) + top - own


@part
def slopes_of_row(
    i, codes, x, y, offset, n_plain, slopes, scalars, starts, constants, numeric, columns, entries, neutral, rule, slope,
    state,
):  # fmt: skip
    """dloss/dscore of row i into slope (K,); the loss."""
    n_outputs = len(slope)
    for k in range(n_outputs):
        slope[k] = score_of_row(
            i, k, codes, x, offset, n_plain, slopes, scalars, starts, constants, numeric, columns, entries, neutral,
            n_outputs, state,
        )  # fmt: skip
    if n_outputs > 1:
        return slopes_of_many(slope, int(y[i]))
    slope[0], value = slope_of_one(slope[0], y[i], rule.loss, rule.parameter)
    return value


@part
def product_gradients(
    i, k, pull, codes, x, starts, constants, numeric, columns, entries, shared, neutral, n_outputs, state, entry_of,
    gradient_of,
):  # fmt: skip
    """Gradients of row i's product terms by slot; an entry selected twice is united in its first slot."""
    for t in range(len(constants)):
        for s in range(starts[t], starts[t + 1]):
            entry_of[s] = entry_of_slot(i, s, codes, columns, entries)
            gradient_of[s] = pull * _term(
                i, k, t, s, codes, x, starts, constants, numeric, columns, entries, neutral, n_outputs, state
            )
    if shared:
        for s in range(1, len(entry_of)):
            for earlier in range(s):
                if entry_of[earlier] == entry_of[s] and entry_of[s] >= 0:
                    gradient_of[earlier] += gradient_of[s]
                    entry_of[s] = -1
                    break
