"""Newton sweeps over an additive model: block after block, each entry to the ridge optimum given all the others.

Stochastic steps stop early on entries with few rows; sweeps settle them, at
the cost of a few epochs. Three sweeps over amazon's chosen crosses reach what
thirty do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tabsym.wide.kernels import predict_margins
from tabsym.wide.newton import SMOOTH, move_scalar, move_symbols
from tabsym.wide.losses import Loss
from tabsym.wide.program import Rows
from tabsym.wide.rules import MULTINOMIAL, SQUARED
from tabsym.wide.training import Task

Floats = NDArray[np.float64]

MOST = 2.0
"""The longest step, in units of the score, where the loss is not quadratic."""


def can_refine(loss: Loss) -> bool:
    """Whether a loss has the curvature that Newton steps need."""
    return loss.code in (*SMOOTH, MULTINOMIAL)


def refine(rows: Rows, state: Floats, task: Task, penalty: float, sweeps: int) -> Floats:
    """Parameters (entries * K, 1) after `sweeps` sweeps from the first column of `state`, which is left as it is.

    For programs without products. `penalty` is ridge's, on the entries of symbols, per row of weight 1.
    """
    program, loss = task.program, task.loss
    values = np.ascontiguousarray(state[:, :1])
    if not sweeps or not len(rows.y):
        return values
    scores = np.empty((len(rows.y), task.n_outputs))
    predict_margins(rows, program, task.neutral, values, scores)
    columns = np.ascontiguousarray(rows.codes.T)
    spans = [_span(column) for column in columns]
    numbers = np.ascontiguousarray(rows.x.T)
    most = np.inf if loss.code == SQUARED else MOST
    sums = np.empty((max([1, *(size for _, size in spans)]) * task.n_outputs, 2))
    slope, bend = np.empty(task.n_outputs), np.empty(task.n_outputs)
    alone = np.empty(0)
    fixed = [*zip(numbers, program.slopes), *((alone, entry) for entry in program.scalars)]
    given = (rows.y, rows.weight, loss.code, loss.parameter)
    for _ in range(sweeps):
        for column, (start, size) in zip(columns, spans):
            move_symbols(column, start, size, *given, penalty, most, sums, slope, bend, scores, values)
        for x, entry in fixed:
            move_scalar(x, int(entry), *given, most, sums, slope, bend, scores, values)
    return values


def _span(column: NDArray[np.int32]) -> tuple[int, int]:
    """The first entry that a column selects, and how many from there on it may select."""
    present = column[column >= 0]
    return (int(present.min()), int(present.max() - present.min()) + 1) if len(present) else (0, 0)
