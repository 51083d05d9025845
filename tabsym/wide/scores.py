"""Scores, slopes and gradients of one row, inlined into the kernels; shapes as in `kernels`."""

from __future__ import annotations

import numpy as np

from tabsym.jit import inlined
from tabsym.wide.slopes import loss_of_one, slopes_of_many


@inlined
def entry_of_slot(i, s, codes, columns, entries):
    """The entry that slot s selects for row i; -1 unseen."""
    column = columns[s]
    if column < 0:
        return entries[s]
    code = np.int64(codes[i, column])
    return code + entries[s] if code >= 0 else np.int64(-1)


@inlined
def _product(i, k, t, skip, rows, program, neutral, n_outputs, state):
    """The product of term t without the factor in slot `skip` (-1: of all)."""
    value = program.constants[t]
    if program.numeric[t] >= 0:
        value *= rows.x[i, program.numeric[t]]
    for s in range(program.starts[t], program.starts[t + 1]):
        if s != skip:
            entry = entry_of_slot(i, s, rows.codes, program.columns, program.entries)
            value *= state[entry * n_outputs + k, 0] if entry >= 0 else neutral[s, k]
    return value


@inlined
def additive_score(i, k, rows, program, n_outputs, state):
    """Output k of the terms that are no products."""
    total = 0.0
    for j in range(program.n_plain):
        entry = rows.codes[i, j]
        if entry >= 0:
            total += state[entry * n_outputs + k, 0]
    for j in range(len(program.slopes)):
        total += rows.x[i, j] * state[program.slopes[j] * n_outputs + k, 0]
    for j in range(len(program.scalars)):
        total += state[program.scalars[j] * n_outputs + k, 0]
    if len(rows.offset):
        total += rows.offset[i * n_outputs + k]
    return total


@inlined
def additive_scores(i, rows, program, state, scores):
    """`additive_score` of all outputs (K,): those of an entry lie together."""
    n_outputs = len(scores)
    scores[:] = 0.0
    for j in range(program.n_plain):
        first = np.int64(rows.codes[i, j]) * n_outputs
        if first >= 0:
            for k in range(n_outputs):
                scores[k] += state[first + k, 0]
    for j in range(len(program.slopes)):
        first, number = program.slopes[j] * n_outputs, rows.x[i, j]
        for k in range(n_outputs):
            scores[k] += number * state[first + k, 0]
    for j in range(len(program.scalars)):
        first = program.scalars[j] * n_outputs
        for k in range(n_outputs):
            scores[k] += state[first + k, 0]
    if len(rows.offset):
        for k in range(n_outputs):
            scores[k] += rows.offset[i * n_outputs + k]


@inlined
def score_of_row(i, k, rows, program, neutral, n_outputs, state):
    """Output k of the score of row i; an unseen symbol adds nothing, or multiplies by its slot's neutral value."""
    total = additive_score(i, k, rows, program, n_outputs, state)
    for t in range(len(program.constants)):
        total += _product(i, k, t, -1, rows, program, neutral, n_outputs, state)
    return total


@inlined
def slopes_of_row(i, rows, program, neutral, rule, slope, state):
    """dloss/dscore of row i into slope (K,); the loss."""
    n_outputs = len(slope)
    for k in range(n_outputs):
        slope[k] = score_of_row(i, k, rows, program, neutral, n_outputs, state)
    if n_outputs > 1:
        return slopes_of_many(slope, int(rows.y[i]))
    value, slope[0], _ = loss_of_one(slope[0], rows.y[i], rule.loss, rule.parameter)
    return value


@inlined
def product_gradients(i, k, pull, rows, program, neutral, n_outputs, state, work):
    """Gradients of row i's product terms by slot; an entry selected twice is united in the first slot that does."""
    entry_of, gradient_of = work.entry_of, work.gradient_of
    for t in range(len(program.constants)):
        for s in range(program.starts[t], program.starts[t + 1]):
            entry_of[s] = entry_of_slot(i, s, rows.codes, program.columns, program.entries)
            gradient_of[s] = pull * _product(i, k, t, s, rows, program, neutral, n_outputs, state)
    for p in range(len(program.twins)):  # slots that can select the same entry, each with those before it
        s, earlier = program.twins[p, 0], program.twins[p, 1]
        if entry_of[s] >= 0 and entry_of[earlier] == entry_of[s]:
            gradient_of[earlier] += gradient_of[s]
            entry_of[s] = -1
