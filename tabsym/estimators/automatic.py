"""Training options from a configuration: what "auto" comes to for an optimizer, a model and a number of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tabsym.estimators.config import Config
from tabsym.wide.layout import Layout
from tabsym.wide.optimizers import Adam, Newton, RMSprop
from tabsym.wide.options import Options
from tabsym.wide.rates import is_known_to_do, rule_of_thumb

AUTO_VISITS = 125_000
MOST_EPOCHS, LEAST_EPOCHS = 50, 2
"""The passes of the default training of additive models: as many as show AUTO_VISITS rows, within these bounds.

More of them fit what rare symbols have by chance; see ``benchmarks/defaults.py``.
"""

MOST_EPOCHS_CHOSEN = 5
"""At most, where crosses were chosen, by shrunken steps: training does not shrink the cells of few rows."""

MOST_VISITS, MOST_VISITS_FULL = 8_000_000, 400_000_000
MOST_PASSES, MOST_PASSES_FULL, LEAST_PASSES = 1_000, 4_000, 10
"""Other trainings go on until the loss has settled, at most for as many passes as show MOST_VISITS rows, within bounds.

MOST_VISITS_FULL, and MOST_PASSES_FULL, in batches of all rows, where a pass is one update: most of these fits end long
before, but gradients over all rows ("mean") need thousands of updates for products and dots, whatever the rows.
"""

MOST_DEARER = 10
"""Where every entry moves at every update: so many times the work of others, as a tenth of it ends far from an optimum.
"""

FORGOTTEN = 0.5
"""Beyond this share of what Adam and RMSprop remember, in updates, lie the rows of a symbol that is no rarer than most:
those of rarer ones are further apart."""

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
    if is_usual:  # studied so, benchmarks/defaults.py
        options = replace(options, cooling=0.0)
    if config.learning_rate is None:
        options = options.with_automatic_rate(TRIES)
    if config.epochs is not None:
        return options.with_epochs(config.epochs)
    if by_count:
        epochs = auto_epochs(n_rows)
        return options.with_epochs(min(epochs, MOST_EPOCHS_CHOSEN) if chosen else epochs, short=SHORT)
    full = config.batch_size is None or config.batch_size >= n_rows
    visits, most = (MOST_VISITS_FULL, MOST_PASSES_FULL) if full else (MOST_VISITS, MOST_PASSES)
    return options.with_epochs(int(np.clip(visits // n_rows, LEAST_PASSES, most)), converges=True)


def within_work(options: Options, layout: Layout, n_rows: int) -> Options:
    """Fewer passes at most where every entry moves at every update, now that the entries are known (`layout`).

    Raises
    ------
    ValueError
        No number of them would do: gradients are forgotten between two rows.
    """
    if options.converges and options.is_dense and isinstance(options.optimizer, (Adam, RMSprop)):
        symbols, batch = max((len(source) for source in layout.sources), default=1), options.batch(n_rows)
        _refuse_forgetting(options.optimizer, symbols, batch)
    dearer = options.dearer_by(layout.n_entries, n_rows)
    if not options.converges or dearer == 1:
        return options
    most = max(LEAST_PASSES, MOST_DEARER * options.epochs // dearer)
    return options.with_epochs(min(options.epochs, most), converges=True)


def _refuse_forgetting(optimizer: Adam | RMSprop, symbols: int, batch: int) -> None:
    """A symbol's step is divided by the root of what is remembered of its squared gradients: nothing, in the end.

    Refused where its rows lie, on average, further apart than FORGOTTEN of that: such fits of the study ended up to
    58 % above the optimum, others of these optimizers up to 31 %.
    """
    kept = optimizer.betas[1] if isinstance(optimizer, Adam) else optimizer.alpha
    memory = 1.0 / (1.0 - kept) if kept < 1.0 else np.inf
    if symbols / batch > FORGOTTEN * memory:
        enough = max(32, 2 ** int(np.ceil(np.log2(4.0 * symbols / memory))))
        raise ValueError(
            f"{type(optimizer).__name__} with gradient='mean' remembers squared gradients for {memory:.0f} updates, "
            f"and in batches of {batch} row(s) those of rare ones of {symbols:,} symbols are as far apart; give "
            f"gradient='gse', batch_size={enough}, optimizer='adagrad', or epochs by hand."
        )


def piece_options(config: Config, layout: Layout) -> Options:
    """The options of `partial_fit`: one pass, at one rate."""
    options = _options(config, layout).with_epochs(1)
    return options.for_piece()


def auto_epochs(n_rows: int) -> int:
    """The passes of ``epochs="auto"`` by default: small tables need more for as many updates."""
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
