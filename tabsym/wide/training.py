"""Training: rows held out, a course of passes, and another at a smaller rate where one runs away."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import row_numbers
from tabsym.wide.convergence import Reference
from tabsym.wide.course import Course, Diverged, Outcome
from tabsym.wide.descent import Descent, RowNumbers, Task
from tabsym.wide.options import Options
from tabsym.wide.program import Rows

Floats = NDArray[np.float64]

Split = tuple[RowNumbers, RowNumbers]

STEP_BACK = 4.0
"""An automatic rate that diverges is divided by this, and training begins again."""


def train(
    rows: Rows,
    entry_weight: Floats,
    state: Floats,
    task: Task,
    options: Options,
    rng: np.random.RandomState,
    n_steps: int = 0,
    split: Split | None = None,
) -> Outcome:
    """Train a copy of `state` (E * K, width) for up to `options.epochs` epochs.

    Ends early where `tol` is set and the loss has converged, or with
    `early_stopping`, by the loss of the held-out rows of `split`; then the best
    state is kept, the first included. Ctrl-C ends it after the epoch before,
    where there was one.

    Raises
    ------
    ValueError
        The loss ran away, or is not finite.
    """
    here, held_out = split or split_rows(len(rows.y), options, rng)
    descent = Descent(rows, here, entry_weight, state, task, options, rng, n_steps)
    reference = Reference(descent)
    rate = options.learning_rate
    for tries in range(options.tries, -1, -1):
        try:
            return Course(descent, reference, held_out, rate).run()
        except Diverged as diverged:
            if not tries:
                start = reference.start + reference.least
                raise ValueError(
                    f"Training diverged (the loss became {diverged.args[0]:.4g}, from {start:.4g}) with "
                    f"learning_rate={rate:g}; try a learning_rate ten times smaller."
                ) from None
        descent.restart()
        rate /= STEP_BACK
        descent.options = options.at_rate(rate)
    raise AssertionError("a try returns or raises")


def split_rows(n_rows: int, options: Options, rng: np.random.RandomState) -> Split:
    """The rows to train on, and those held out for early stopping."""
    everything = row_numbers(n_rows)
    if not options.early_stopping:
        return everything, everything[:0]
    n_held_out = int(np.ceil(options.validation_fraction * n_rows))
    if n_held_out >= n_rows:
        raise ValueError(
            f"early_stopping holds out {n_held_out} of {n_rows} row(s), which leaves none to train on; "
            "give more rows, a smaller validation_fraction or early_stopping=False."
        )
    held_out = np.zeros(n_rows, dtype=bool)
    held_out[rng.permutation(n_rows)[:n_held_out]] = True
    return everything[~held_out], everything[held_out]
