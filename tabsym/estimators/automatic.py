"""Training options from a configuration: what "auto" comes to for an optimizer, a model and a number of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tabsym.estimators.config import Config
from tabsym.wide.layout import Layout
from tabsym.wide.optimizers import Newton
from tabsym.wide.options import Options
from tabsym.wide.rates import is_known_to_do, rule_of_thumb

AUTO_VISITS = 125_000
MOST_EPOCHS, LEAST_EPOCHS = 50, 2
"""The passes of the default training of additive models: as many as show AUTO_VISITS rows, within these bounds.

More of them fit what rare symbols have by chance; see ``benchmarks/defaults.py``.
"""

MOST_EPOCHS_CHOSEN = 5
"""At most, where crosses were chosen, by shrunken steps: training does not shrink the cells of few rows."""

MAX_EPOCHS, TOL = 1_000, 1e-3
"""Other trainings go on until the loss has converged, as scikit-learn's SGD does, for at most this number of epochs."""

SLOW = 4.0
"""A given rate that is smaller than the automatic one by this factor needs passes of its own, not so many by count."""

SHORT = 0.05
"""Passes by count ended too soon where the last of them lowered the loss by more than this share of it."""

TRIES = 12
"""How often an automatic rate that diverges is made smaller."""


def training_options(config: Config, layout: Layout, n_rows: int, *, chosen: bool = False) -> Options:
    """The options of `fit`; `chosen`: whether crosses were chosen by evidence."""
    options = _options(config, layout)
    is_usual = is_known_to_do(options, layout) and config.schedule == "constant"
    by_count = (
        is_usual
        and not _stops_itself(config)
        and options.learning_rate * SLOW > rule_of_thumb(options.optimizer, layout)
    )
    if is_usual and (by_count or config.epochs is not None):  # studied so, benchmarks/defaults.py
        options = replace(options, cooling=0.0)
    if config.learning_rate is None:
        options = options.with_automatic_rate(TRIES)
    if config.epochs is not None:
        return replace(options, epochs=config.epochs)
    if by_count:
        _refuse_patience(config)
        epochs = auto_epochs(n_rows)
        return replace(options, epochs=min(epochs, MOST_EPOCHS_CHOSEN) if chosen else epochs, short=SHORT)
    return replace(options, epochs=MAX_EPOCHS, tol=TOL if config.tol is None else config.tol)


def _refuse_patience(config: Config) -> None:
    if config.n_iter_no_change != Config.n_iter_no_change:
        raise ValueError(
            f"n_iter_no_change={config.n_iter_no_change} has no effect where epochs go by the number of rows, as the "
            "default optimizer's on sums do; give tol or early_stopping=True, or leave it out."
        )


def piece_options(config: Config, layout: Layout) -> Options:
    """The options of `partial_fit`: one pass, at one rate."""
    return replace(_options(config, layout), epochs=1).for_piece()


def auto_epochs(n_rows: int) -> int:
    """The passes of ``max_iter="auto"`` by default: small tables need more for as many updates."""
    return int(np.clip(-(-AUTO_VISITS // n_rows), LEAST_EPOCHS, MOST_EPOCHS))


def _stops_itself(config: Config) -> bool:
    return config.early_stopping or config.tol is not None


def _options(config: Config, layout: Layout) -> Options:
    assert not isinstance(config.optimizer, Newton), "solved, not trained"
    automatic = config.learning_rate is None
    rate = rule_of_thumb(config.optimizer, layout) if config.learning_rate is None else config.learning_rate
    return Options(
        optimizer=config.optimizer,
        learning_rate=rate,
        optimal_cap=rate if automatic and config.schedule == "optimal" else None,
        schedule=config.schedule,
        power_t=config.power_t,
        gradient=config.gradient,
        batch_size=config.batch_size,
        l1=config.l1,
        l2=config.l2,
        average=config.average,
        shuffle=config.shuffle,
        early_stopping=config.early_stopping,
        validation_fraction=config.validation_fraction,
        n_iter_no_change=config.n_iter_no_change,
        tol=config.tol,
        verbose=config.verbose,
    )
