"""How far training is from an optimum: gradient and curvature of the loss by entry, over all rows."""

from __future__ import annotations

import numpy as np

from tabsym.jit import inlined, kernel
from tabsym.wide.scores import product_gradients, score_of_row
from tabsym.wide.slopes import loss_of_one, slopes_of_many


@inlined
def _slopes_and_bends(i, rows, program, neutral, rule, state, work, bends):
    """First and second derivatives of row i's loss by its scores, into ``work.slope`` and `bends` (K,); the loss."""
    slope = work.slope
    n_outputs = len(slope)
    for k in range(n_outputs):
        slope[k] = score_of_row(i, k, rows, program, neutral, n_outputs, state)
    if n_outputs > 1:
        own = int(rows.y[i])
        value = slopes_of_many(slope, own)
        for k in range(n_outputs):
            p = slope[k] + 1.0 if k == own else slope[k]
            bends[k] = p * (1.0 - p)
    else:
        value, slope[0], bends[0] = loss_of_one(slope[0], rows.y[i], rule.loss, rule.parameter)
    return value


@kernel
def newton_sums(rows, members, program, neutral, rule, state, work, bends, gradient, curvature):
    """Add gradient and curvature (entries * K,) of the weighted loss of rows, as if entries moved one at a time.

    The sum of the losses.
    """
    n_outputs = len(work.slope)
    lost = 0.0
    for i in members:
        value = _slopes_and_bends(i, rows, program, neutral, rule, state, work, bends)
        share = rows.weight[i] if len(rows.weight) else 1.0
        lost += share * value
        for k in range(n_outputs):
            pull, bend = share * work.slope[k], share * bends[k]
            for j in range(program.n_plain):
                entry = np.int64(rows.codes[i, j])
                if entry >= 0:
                    gradient[entry * n_outputs + k] += pull
                    curvature[entry * n_outputs + k] += bend
            for j in range(len(program.slopes)):
                gradient[program.slopes[j] * n_outputs + k] += pull * rows.x[i, j]
                curvature[program.slopes[j] * n_outputs + k] += bend * rows.x[i, j] * rows.x[i, j]
            for j in range(len(program.scalars)):
                gradient[program.scalars[j] * n_outputs + k] += pull
                curvature[program.scalars[j] * n_outputs + k] += bend
            if len(program.constants):
                product_gradients(i, k, 1.0, rows, program, neutral, n_outputs, state, work)
                for s in range(len(work.entry_of)):
                    entry = work.entry_of[s]
                    if entry >= 0:
                        own = work.gradient_of[s]
                        gradient[entry * n_outputs + k] += pull * own
                        curvature[entry * n_outputs + k] += bend * own * own
    return lost
