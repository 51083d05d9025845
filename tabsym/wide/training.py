"""Training from its first pass to the last: when to stop, what to keep, what to say."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from tabsym.codes import row_numbers
from tabsym.wide.convergence import Ground
from tabsym.wide.descent import Descent, RowNumbers, Task, take_rows
from tabsym.wide.optimizers import Adagrad
from tabsym.wide.options import Options
from tabsym.wide.program import Rows
from tabsym.wide.schedules import ADAPTIVE_END, ADAPTIVE_FACTOR

Floats = NDArray[np.float64]

STEP_BACK = 4.0
"""An automatic rate that diverges is divided by this, and training begins again."""

COOLING = 0.25
"""Share of the passes over which an automatic rate falls to zero, where passes go on until the loss has settled."""


@dataclass(frozen=True)
class Outcome:
    """State after training, updates so far, and the mean losses: of each epoch, and of held-out rows after it."""

    state: Floats
    n_steps: int
    loss_curve: list[float]
    validation_curve: list[float]
    interrupted: bool = False


class _Diverged(Exception):
    """The loss that said so."""


def train(
    rows: Rows,
    entry_weight: Floats,
    state: Floats,
    task: Task,
    options: Options,
    rng: np.random.RandomState,
    n_steps: int = 0,
) -> Outcome:
    """Train a copy of `state` (E * K, width) for up to `options.epochs` epochs.

    Ends early where `options.converges` and the loss has settled, or where
    `tol` is set and the loss (of the held-out rows with `early_stopping`, else
    of training) has not fallen by `tol` in `n_iter_no_change` epochs; with
    `early_stopping` the best state is kept. Ctrl-C ends it after the epoch
    before, where there was one.

    Raises
    ------
    ValueError
        The loss ran away, or is not finite.
    """
    here, held_out = _split(len(rows.y), options, rng)
    descent = Descent(rows, here, entry_weight, state, task, options, rng, n_steps)
    ground = Ground.under(descent)
    rate = options.learning_rate
    for tries in range(options.tries, -1, -1):
        try:
            return _Course(descent, ground, held_out, rate).run()
        except _Diverged as diverged:
            if not tries:
                start = ground.start + ground.least
                raise ValueError(
                    f"Training diverged (the loss became {diverged.args[0]:.4g}, from {start:.4g}) with "
                    f"learning_rate={rate:g}; try a learning_rate ten times smaller."
                ) from None
        descent.restart()
        rate /= STEP_BACK
        descent.options = options.at_rate(rate)
    raise AssertionError("a try returns or raises")


@dataclass
class _Course:
    """One training at one starting rate."""

    descent: Descent
    ground: Ground
    held_out: RowNumbers
    rate: float
    curve: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    best: float = np.inf
    waited: int = 0

    def run(self) -> Outcome:
        options = self.descent.options
        self.kept = self.descent.state, self.descent.n_steps
        cools = options.cools and not options.early_stopping
        most = options.epochs - cools if not options.converges else round(options.epochs / (1 + COOLING))
        while len(self.curve) < most:
            if not self._step(self.rate):
                return self._outcome(interrupted=True)
            if self._is_over():
                break
        else:
            self._warn_if_short()
        n_cooling = max(1, round(COOLING * len(self.curve))) if cools and options.converges else int(cools)
        for left in range(n_cooling, 0, -1):
            if not self._step(self.rate * left / n_cooling, self.rate * (left - 1) / n_cooling):
                return self._outcome(interrupted=True)
        return self._outcome()

    def _step(self, rate: float, until: float | None = None) -> bool:
        """One pass, noted; whether it was not interrupted."""
        descent, options = self.descent, self.descent.options
        try:
            loss = descent.one_pass(rate, until)
        except KeyboardInterrupt:
            if not self.curve:
                raise
            return False
        self.curve.append(loss)
        if self.ground.has_diverged(loss):
            raise _Diverged(loss)
        if options.early_stopping:
            self.validation.append(self._held_out_loss())
        watched = (self.validation or self.curve)[-1]
        if options.verbose:
            print(f"epoch {len(self.curve)}/{options.epochs}  loss {watched:.6g}", file=sys.stderr)
        self.waited = 0 if watched < self.best - self._tolerance() else self.waited + 1
        if watched < self.best:
            self.best = watched
            if options.early_stopping:
                self.kept = descent.state.copy(), descent.n_steps
        return True

    def _tolerance(self) -> float:
        """By how much a loss must fall to have fallen."""
        options = self.descent.options
        if options.tol is not None:
            return options.tol
        return 1e-4 * abs(self.ground.excess(self.curve[-1])) if options.converges else 0.0

    def _is_over(self) -> bool:
        """Whether training should end before all its epochs are made; an adaptive rate falls first."""
        options = self.descent.options
        if self.waited >= options.n_iter_no_change:
            if options.schedule == "adaptive" and self.rate / ADAPTIVE_FACTOR >= ADAPTIVE_END:
                self.rate, self.waited = self.rate / ADAPTIVE_FACTOR, 0
            elif options.early_stopping or options.tol is not None or options.schedule == "adaptive":
                return True
        stops_itself = options.early_stopping or options.tol is not None or options.schedule == "adaptive"
        return options.converges and not stops_itself and self.ground.is_settled(self.curve)

    def _held_out_loss(self) -> float:
        rows = take_rows(self.descent.rows, self.held_out, self.descent.task.n_outputs)
        weights = rows.weight if len(rows.weight) and rows.weight.any() else None
        return float(np.average(self.descent.task.loss.values(self.descent.margins(rows), rows.y), weights=weights))

    def _warn_if_short(self) -> None:
        """Automatic passes ended while the loss was falling."""
        options = self.descent.options
        short = None if options.early_stopping else options.short
        if short is not None and self.ground.is_short(self.curve, short):
            warnings.warn(
                f"Training stopped after {len(self.curve)} passes (the most that epochs='auto' makes of so many rows) "
                f"while the loss was still falling; give more epochs, e.g. epochs={4 * len(self.curve)}"
                f"{_other_remedy(options)}.",
                ConvergenceWarning,
                stacklevel=2,
            )

    def _outcome(self, *, interrupted: bool = False) -> Outcome:
        if self.descent.options.early_stopping:
            state, n_steps = self.kept
        else:
            state, n_steps = self.descent.state, self.descent.n_steps
        return Outcome(state, n_steps, self.curve, self.validation, interrupted)


def _other_remedy(options: Options) -> str:
    if options.batch_size is None or options.batch_size > 1:
        return ", or a smaller batch_size" + (", or gradient='gse'" if options.is_dense else "")
    return "" if isinstance(options.optimizer, Adagrad) else ", or optimizer='adagrad', the default"


def _split(n_rows: int, options: Options, rng: np.random.RandomState) -> tuple[RowNumbers, RowNumbers]:
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
