"""learning_rate="auto": a rate by rule for the default optimizer, else the best of short trainings on a sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tabsym.categories import row_numbers
from tabsym.design.model_spec import ModelSpec
from tabsym.design.program import Rows
from tabsym.solvers.sgd.loop import Split
from tabsym.solvers.sgd.optimizers import SGD, Adagrad, Adam, Optimizer, RMSprop
from tabsym.solvers.sgd.options import Options
from tabsym.solvers.sgd.state import Task, Trainer

Floats = NDArray[np.float64]

RATE, MAX_RATE, MAX_PRODUCT_RATE = 3.0, 0.5, 0.1
"""Adagrad's rate is RATE / (terms of a row), at most MAX_RATE, or MAX_PRODUCT_RATE.

The terms of a row are updated together, so that the linear predictor changes by rate times their number in the first
steps (``benchmarks/defaults.py``). Factors of a product amplify each other's noise.
"""

FIRST_RATES = {Adagrad: 1.0, SGD: 0.5, RMSprop: 0.05, Adam: 0.1}
"""For other optimizers, relative to Adagrad's: the start of a search, and the rate of a stream, which has no search."""

SAMPLE, SAMPLE_SCORES = 8_192, 65_536
"""Rows of the sample that a search trains on, or linear predictors for multiclass."""

UPDATES, MIN_PASSES, MAX_PASSES = 300, 2, 30
"""The approximate number of updates of a trial, in epochs within these bounds."""

WIDE, NARROW, MAX_TRIALS = 4.0, 2.0, 12
"""Factors between the rates that are tried, first the wide one, then the narrow one about the best; and the most
trials."""


def rule_of_thumb(optimizer: Optimizer, spec: ModelSpec) -> float:
    """A rate from the optimizer and the number of terms alone."""
    most = MAX_RATE if spec.is_additive else MAX_PRODUCT_RATE
    own = next(factor for kind, factor in FIRST_RATES.items() if isinstance(optimizer, kind))
    rate = min(most, RATE / max(1, spec.n_terms)) * own
    if isinstance(optimizer, SGD):  # the terms of a row step in the same direction, and must not overshoot
        rate = min(rate, 0.5 / (1 + spec.n_terms)) * (1.0 - optimizer.momentum)
    return rate


def is_known_to_do(options: Options, spec: ModelSpec) -> bool:
    """Whether the rule of thumb is used without a search: for the default, with sums of main effects and slopes."""
    online = options.batch_size == 1 and not options.is_dense and options.schedule in ("constant", "adaptive")
    return isinstance(options.optimizer, Adagrad) and online and spec.is_plain


def search_rate(
    rows: Rows,
    split: Split,
    coef_weight: Floats,
    state: Floats,
    task: Task,
    options: Options,
    rng: np.random.RandomState,
) -> float:
    """The rate of the lowest loss after a short training on a sample, by hill climbing from ``options.learning_rate``.

    The loss is that of the sample; with early stopping that of the held-out rows at the best epoch, where another rate
    must be better by a standard error, and at most WIDE times the first: a large rate can fit the training rows in its
    first epoch, and a few held-out rows by chance, where a smaller one only needs more epochs.
    """
    members, held_out = split
    n_rows = len(members)
    dearer = options.dearer_by(len(task.program.is_fixed), n_rows)
    size = min(n_rows, max(512, min(SAMPLE, SAMPLE_SCORES // task.n_outputs) // dearer))
    sample = rows.take(members[np.sort(rng.permutation(n_rows)[:size])], task.n_outputs)
    judges = rows.take(held_out[:SAMPLE], task.n_outputs)
    seed = rng.randint(np.iinfo(np.int32).max)
    tried: dict[float, Floats] = {}

    def losses(rate: float) -> Floats:
        if rate not in tried:
            tried[rate] = _try(sample, judges, coef_weight, state, task, options.at_rate(rate), seed)
        return tried[rate]

    def is_better(rate: float, than: float) -> bool:
        if not np.isfinite(losses(than)).all():
            return bool(np.isfinite(losses(rate)).all())
        gain = losses(than) - losses(rate)
        with np.errstate(over="ignore"):  # for a rate far too large
            return bool(np.isfinite(gain).all() and gain.mean() > gain.std() / np.sqrt(len(gain)))

    best = options.learning_rate
    most = WIDE * best if options.early_stopping else np.inf
    for factor in (WIDE, NARROW):
        for step in (factor, 1.0 / factor):
            while len(tried) < MAX_TRIALS and best * step <= most and is_better(best * step, best):
                best *= step
        while not np.isfinite(losses(best)).all() and len(tried) < MAX_TRIALS:
            best /= factor**2
    return best


def _try(
    rows: Rows, judges: Rows, coef_weight: Floats, state: Floats, task: Task, options: Options, seed: int
) -> Floats:
    """The mean loss (1,) after a few epochs, the last with a decaying rate; infinite where it diverges.

    With early stopping the weighted loss of each of the rows `judges`, at the best epoch, and a constant rate.
    """
    trainer = Trainer(rows, row_numbers(len(rows.y)), coef_weight, state, task, options, np.random.RandomState(seed))
    n_epochs = int(np.clip(-(-UPDATES // trainer.updates_of_an_epoch), MIN_PASSES, MAX_PASSES))
    rate, best = options.learning_rate, np.array([np.inf])
    share = 1.0 if judges.shares is None else judges.shares / judges.shares.mean()
    with np.errstate(all="ignore"):
        for left in range(n_epochs, 0, -1):
            falls = left == 1 and options.cools and not options.early_stopping
            if not np.isfinite(trainer.one_epoch(rate, 0.0 if falls else None)):
                break
            if options.early_stopping:
                losses = share * task.loss.values(trainer.margins(judges), judges.y)
                best = losses if losses.mean() < best.mean() else best
            elif left == 1:
                best = np.array([task.mean_loss(trainer.margins(rows), rows) + trainer.penalty()])
    return best
