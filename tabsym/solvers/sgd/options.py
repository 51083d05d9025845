"""How to train online: every choice made, as plain values; the schedules of the learning rate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tabsym.losses import kernels as slopes
from tabsym.losses.loss import Loss
from tabsym.solvers.sgd import rules
from tabsym.solvers.sgd.optimizers import Adagrad, Optimizer, StateColumns
from tabsym.solvers.sgd.rules import Rule

SCHEDULES = ("constant", "optimal", "invscaling", "adaptive")
ADAPTIVE_FACTOR, ADAPTIVE_END = 5.0, 1e-6


def schedule_numbers(
    schedule: str, power_t: float, l2: float, loss: Loss, cap: float | None = None
) -> tuple[int, float, float]:
    """(code, parameter, start) as `rules.Rule` wants them; "optimal" starts at a rate of `cap` at most."""
    if schedule == "invscaling":
        return rules.INVSCALING, power_t, 0.0
    if schedule == "optimal":
        start = _bottou_start(l2, loss)
        return rules.OPTIMAL, l2, start if cap is None else max(start, 1.0 / (cap * l2))
    return rules.CONSTANT, 0.0, 0.0


def _bottou_start(l2: float, loss: Loss) -> float:
    """scikit-learn's t0: the first rate moves a typical weight by no more than itself."""
    typical = float(np.sqrt(1.0 / np.sqrt(l2)))
    steepest = 0.5
    if loss.code != slopes.MULTINOMIAL:
        steepest = abs(float(loss.rows(np.array([[-typical]]), np.ones(1))[1][0]))
    return float(1.0 / (typical / max(1.0, steepest) * l2))


ROW = 10
"""So many coefficients a row moves, about."""


@dataclass(frozen=True)
class Options:
    """How to train; names as in the estimators.

    Attributes
    ----------
    learning_rate : float
        The starting rate.
    optimal_cap : float or None
        The highest rate of the schedule "optimal", which starts at its own.
    tries : int
        How often a rate that diverges is divided by `training.STEP_BACK` before that is an error.
    cools : bool
        Whether the rate falls to zero over the last epochs, beside what the schedule does.
    cooling : float
        The share of all epochs over which it does, one at least.
    tol : float or None
        Training ends when the loss has not improved by this share of what it has fallen by (see `course`).
    short : float or None
        The share of the loss by which the last epochs may lower it without a warning; None for never a warning.
    divergence : float
        A loss above the start's by this factor has diverged.
    """

    optimizer: Optimizer
    learning_rate: float
    schedule: str = "constant"
    power_t: float = 0.5
    gradient: str = "gse"
    batch_size: int | None = 1  # None: all rows
    epochs: int = 1
    l1: float = 0.0
    l2: float = 0.0
    average: bool = False
    shuffle: bool = True
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    tol: float | None = None
    verbose: int = 0
    optimal_cap: float | None = None
    tries: int = 0
    cools: bool = False
    cooling: float = 0.2
    short: float | None = None
    divergence: float = 2.0

    @property
    def is_dense(self) -> bool:
        return self.gradient == "mean"

    @property
    def must_sweep(self) -> bool:
        """Whether absent coefficients move at every update in a way that only moving them all gets right."""
        return self.is_dense and (self.l1 > 0 or self.l2 > 0)

    @property
    def is_lazy(self) -> bool:
        """Whether absent coefficients take the steps they missed when they are next read."""
        moves = self.optimizer.moves_on or self.average or self.schedule in ("optimal", "invscaling")
        return self.is_dense and moves and not self.must_sweep

    @cached_property
    def columns(self) -> StateColumns:
        """What the state of a coefficient keeps."""
        keep_steps = self.is_lazy or self.schedule in ("optimal", "invscaling")
        return StateColumns.plan(self.optimizer, keep_steps=keep_steps, keep_mean=self.average)

    def at_rate(self, rate: float) -> Options:
        """The same at another rate."""
        return replace(self, learning_rate=rate, optimal_cap=None if self.optimal_cap is None else rate)

    def with_automatic_rate(self, tries: int) -> Options:
        """A rate that may be made smaller, and that falls to zero at the end of a constant schedule."""
        return replace(self, tries=tries, cools=self.schedule != "adaptive" and not self.average)

    @property
    def n_cooling(self) -> int:
        """Over how many epochs, at most, the rate falls to zero at the end."""
        return max(1, round(self.epochs * self.cooling)) if self.cools and not self.early_stopping else 0

    def for_piece(self) -> Options:
        """For rows that are not all: nothing is held out, and a few of them may fit badly."""
        return replace(self, early_stopping=False, tol=None, divergence=1e3)

    def batch(self, n_rows: int) -> int:
        """Rows of a batch, of so many rows."""
        return max(1, n_rows if self.batch_size is None else min(self.batch_size, n_rows))

    def dearer_by(self, n_coefs: int, n_rows: int) -> int:
        """How many rows' work an update is for each of its rows: all coefficients move at each where absent ones
        must.
        """
        return max(1, n_coefs // (ROW * self.batch(n_rows))) if self.must_sweep else 1

    def rule(self, loss: Loss, rate: float) -> Rule:
        """The options as the kernels read them."""
        code, parameter, start = schedule_numbers(self.schedule, self.power_t, self.l2, loss, self.optimal_cap)
        eps, beta1, beta2 = self.optimizer.coefficients
        return Rule(
            loss=loss.code,
            parameter=loss.parameter,
            optimizer=self.optimizer.code,
            rate=rate,
            schedule=code,
            schedule_parameter=parameter,
            schedule_start=start,
            l1=self.l1,
            l2=self.l2,
            eps=eps,
            beta1=beta1,
            beta2=beta2,
            nesterov=bool(getattr(self.optimizer, "nesterov", False)),
            step_column=self.columns.step,
            mean_column=self.columns.mean,
            lazy=self.is_lazy,
            simple=isinstance(self.optimizer, Adagrad) and self.l1 == self.l2 == 0 and self.columns.step < 0,
        )
