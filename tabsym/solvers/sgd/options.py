"""Options of online training, as plain values; schedules of the learning rate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tabsym.losses import kernels
from tabsym.losses.loss import Loss
from tabsym.solvers.sgd import rules
from tabsym.solvers.sgd.optimizers import Adagrad, Optimizer, StateColumns
from tabsym.solvers.sgd.rules import Rule

SCHEDULES = ("constant", "optimal", "invscaling", "adaptive")
ADAPTIVE_FACTOR, ADAPTIVE_END = 5.0, 1e-6


def schedule_numbers(
    schedule: str, power_t: float, l2: float, loss: Loss, cap: float | None = None
) -> tuple[int, float, float]:
    """(code, parameter, start) for `rules.Rule`; "optimal" starts at a rate of `cap` at most."""
    if schedule == "invscaling":
        return rules.INVSCALING, power_t, 0.0
    if schedule == "optimal":
        start = _bottou_start(l2, loss)
        return rules.OPTIMAL, l2, start if cap is None else max(start, 1.0 / (cap * l2))
    return rules.CONSTANT, 0.0, 0.0


def _bottou_start(l2: float, loss: Loss) -> float:
    """scikit-learn's t0: the first step changes a typical weight by no more than itself."""
    typical = float(np.sqrt(1.0 / np.sqrt(l2)))
    steepest = 0.5
    if loss.code != kernels.MULTINOMIAL:
        steepest = abs(float(loss.rows(np.array([[-typical]]), np.ones(1))[1][0]))
    return float(1.0 / (typical / max(1.0, steepest) * l2))


ROW = 10
"""The approximate number of coefficients that a row updates."""


@dataclass(frozen=True)
class Options:
    """Options of training; names as in the estimators.

    Attributes
    ----------
    learning_rate : float
        The initial rate.
    optimal_cap : float or None
        The highest rate of the schedule "optimal", which starts at its own.
    tries : int
        How often a rate that diverges is divided by `loop.STEP_BACK` before an error is raised.
    cools : bool
        Whether the rate decays to zero over the last epochs, in addition to the schedule.
    cooling : float
        The fraction of all epochs over which it does, at least one epoch.
    tol : float or None
        Training ends when the loss has not improved by this fraction of its decrease so far (see `loop`).
    short : float or None
        The fraction of the loss by which the last epochs may lower it without a warning; None for never a warning.
    scaled : bool
        Whether numbers are standardized. Where they are not, a loss that no longer falls may be far from its optimum.
    divergence : float
        A loss above the initial one by this factor has diverged.
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
    scaled: bool = True
    divergence: float = 2.0

    @property
    def is_dense(self) -> bool:
        return self.gradient == "mean"

    @property
    def must_sweep(self) -> bool:
        """Whether coefficients without a row change at every update, and all must be updated each time."""
        return self.is_dense and (self.l1 > 0 or self.l2 > 0)

    @property
    def is_lazy(self) -> bool:
        """Whether coefficients without a row take deferred steps when they are next used."""
        moves = self.optimizer.moves_on or self.average or self.schedule in ("optimal", "invscaling")
        return self.is_dense and moves and not self.must_sweep

    @cached_property
    def columns(self) -> StateColumns:
        """The spec of a coefficient's state."""
        keep_steps = self.is_lazy or self.schedule in ("optimal", "invscaling")
        return StateColumns.plan(self.optimizer, keep_steps=keep_steps, keep_mean=self.average)

    def at_rate(self, rate: float) -> Options:
        """The same at another rate."""
        return replace(self, learning_rate=rate, optimal_cap=None if self.optimal_cap is None else rate)

    def with_automatic_rate(self, tries: int) -> Options:
        """With a rate that may be reduced, and that decays to zero at the end of a constant schedule."""
        return replace(self, tries=tries, cools=self.schedule != "adaptive" and not self.average)

    @property
    def n_cooling(self) -> int:
        """The most epochs over which the rate decays to zero at the end."""
        return max(1, round(self.epochs * self.cooling)) if self.cools and not self.early_stopping else 0

    def for_piece(self) -> Options:
        """For a batch of a stream: no rows are held out, and a few of them may fit badly."""
        return replace(self, early_stopping=False, tol=None, divergence=1e3)

    def batch(self, n_rows: int) -> int:
        """Rows of a batch, for a table of `n_rows` rows."""
        return max(1, n_rows if self.batch_size is None else min(self.batch_size, n_rows))

    def dearer_by(self, n_coefs: int, n_rows: int) -> int:
        """The cost of an update relative to its rows: all coefficients are updated where `must_sweep`."""
        return max(1, n_coefs // (ROW * self.batch(n_rows))) if self.must_sweep else 1

    def rule(self, loss: Loss, rate: float) -> Rule:
        """The options as passed to kernels."""
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
