"""Options of online training, as plain values: optimizers, schedules of the learning rate, and all of them together.

Names and defaults of optimizers are torch.optim's, the update steps are in `rules`. The state of a coefficient is one
row of numbers, the coefficient first, so that an update touches one cache line. Under ``gradient="gse"`` all of it, the
step count too, is per coefficient: an absent gradient is not a zero gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tabsym.losses.loss import MULTINOMIAL, Loss
from tabsym.solvers.sgd import rules
from tabsym.solvers.sgd.rules import ADAGRAD_CODE, ADAM_CODE, RMSPROP_CODE, SGD_CODE, Rule


@dataclass(frozen=True)
class _Optimizer:
    """The interface of optimizers to the kernels; names as in `rules.Rule`."""

    code: ClassVar[int]
    counts_steps: ClassVar[bool] = False

    @property
    def memory(self) -> NDArray[np.float64]:
        """The optimizer state of a coefficient without updates."""
        return np.zeros(0)

    @property
    def coefficients(self) -> tuple[float, float, float]:
        """(eps, beta1, beta2)."""
        return 0.0, 0.0, 0.0

    @property
    def moves_on(self) -> bool:
        """Whether an update with a zero gradient changes anything."""
        return False


@dataclass(frozen=True)
class SGD(_Optimizer):
    """Stochastic gradient descent: ``v = momentum * v + g; theta -= lr * v``.

    Parameters
    ----------
    momentum : float, default 0.0
    nesterov : bool, default False
        Then ``theta -= lr * (g + momentum * v)``.

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import WideSGDRegressor
    >>> from tabsym.optimizers import SGD
    >>> X = pd.DataFrame({"shop": ["a", "b"] * 200})
    >>> model = WideSGDRegressor(optimizer=SGD(momentum=0.5), random_state=0).fit(X, [1.0, 2.0] * 200)
    >>> model.predict(X[:2]).round(1).tolist()
    [1.0, 2.0]
    """

    code = SGD_CODE
    momentum: float = 0.0
    nesterov: bool = False

    @property
    def memory(self) -> NDArray[np.float64]:
        """Initial state of a coefficient."""
        return np.zeros(1 if self.momentum else 0)

    @property
    def coefficients(self) -> tuple[float, float, float]:
        """Its constants, as the kernel takes them."""
        return 0.0, self.momentum, 0.0

    @property
    def moves_on(self) -> bool:
        """Whether a coefficient moves on where its gradient is zero."""
        return self.momentum > 0


@dataclass(frozen=True)
class Adagrad(_Optimizer):
    """Adagrad: ``s += g**2; theta -= lr * g / (sqrt(s) + eps)``.

    Parameters
    ----------
    initial_accumulator_value : float, default 1.0
        Initial s. torch.optim starts at 0, where the first step of every
        coefficient has length `lr` whatever its gradient: with long-tailed
        columns most coefficients are updated only a few times, so that this costs much
        (`benchmarks/evidence/constants.md`). TensorFlow starts at 0.1.
    eps : float, default 1e-10

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import WideSGDRegressor
    >>> from tabsym.optimizers import Adagrad
    >>> X = pd.DataFrame({"shop": ["a", "b"] * 200})
    >>> optimizer = Adagrad(initial_accumulator_value=0.1)
    >>> model = WideSGDRegressor(optimizer=optimizer, random_state=0).fit(X, [1.0, 2.0] * 200)
    >>> model.predict(X[:2]).round(1).tolist()
    [1.0, 2.0]
    """

    code = ADAGRAD_CODE
    initial_accumulator_value: float = 1.0
    eps: float = 1e-10

    @property
    def memory(self) -> NDArray[np.float64]:
        """Initial state of a coefficient."""
        return np.array([self.initial_accumulator_value])

    @property
    def coefficients(self) -> tuple[float, float, float]:
        """Its constants, as the kernel takes them."""
        return self.eps, 0.0, 0.0


@dataclass(frozen=True)
class RMSprop(_Optimizer):
    """RMSprop: ``s = alpha * s + (1 - alpha) * g**2; theta -= lr * g / (sqrt(s) + eps)``.

    Parameters
    ----------
    alpha : float, default 0.99
    eps : float, default 1e-8

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import WideSGDRegressor
    >>> from tabsym.optimizers import RMSprop
    >>> X = pd.DataFrame({"shop": ["a", "b"] * 200})
    >>> model = WideSGDRegressor(optimizer=RMSprop(alpha=0.9), random_state=0).fit(X, [1.0, 2.0] * 200)
    >>> model.predict(X[:2]).round(1).tolist()
    [1.0, 2.0]
    """

    code = RMSPROP_CODE
    alpha: float = 0.99
    eps: float = 1e-8

    @property
    def memory(self) -> NDArray[np.float64]:
        """Initial state of a coefficient."""
        return np.zeros(1)

    @property
    def coefficients(self) -> tuple[float, float, float]:
        """Its constants, as the kernel takes them."""
        return self.eps, 0.0, self.alpha

    @property
    def moves_on(self) -> bool:
        """Whether a coefficient moves on where its gradient is zero."""
        return True


@dataclass(frozen=True)
class Adam(_Optimizer):
    """Adam (Kingma and Ba 2015), as torch.optim writes it.

    Parameters
    ----------
    betas : (float, float), default (0.9, 0.999)
    eps : float, default 1e-8

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import WideSGDRegressor
    >>> from tabsym.optimizers import Adam
    >>> X = pd.DataFrame({"shop": ["a", "b"] * 200})
    >>> model = WideSGDRegressor(optimizer=Adam(betas=(0.9, 0.99)), random_state=0).fit(X, [1.0, 2.0] * 200)
    >>> model.predict(X[:2]).round(1).tolist()
    [1.0, 2.0]
    """

    code = ADAM_CODE
    counts_steps = True
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    @property
    def memory(self) -> NDArray[np.float64]:
        """Initial state of a coefficient."""
        return np.zeros(2)

    @property
    def coefficients(self) -> tuple[float, float, float]:
        """Its constants, as the kernel takes them."""
        return self.eps, *self.betas

    @property
    def moves_on(self) -> bool:
        """Whether a coefficient moves on where its gradient is zero."""
        return True


Optimizer = SGD | Adagrad | RMSprop | Adam

OPTIMIZERS: dict[str, Optimizer] = {
    "sgd": SGD(),
    "adagrad": Adagrad(),
    "rmsprop": RMSprop(),
    "adam": Adam(),
}
"""The optimizers by name, with their defaults."""


@dataclass(frozen=True, eq=False)
class StateColumns:
    """The spec of a coefficient's state: the coefficient in column 0, then optimizer state, steps, running mean.

    Attributes
    ----------
    fresh : (width,)
        The state of a coefficient without updates, with value 0.
    step, mean : int
        Columns of the number of updates and of the running mean, -1 where there is none.
    """

    fresh: NDArray[np.float64] = field(repr=False)
    step: int
    mean: int

    @classmethod
    def plan(cls, optimizer: Optimizer, *, keep_steps: bool, keep_mean: bool) -> StateColumns:
        memory = optimizer.memory
        width = 1 + len(memory)
        keep_steps = keep_steps or keep_mean or optimizer.counts_steps
        step = width if keep_steps else -1
        mean = width + keep_steps if keep_mean else -1
        fresh = np.concatenate([[0.0], memory, np.zeros(int(keep_steps) + int(keep_mean))])
        return cls(fresh, step, mean)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, StateColumns)
            and (self.step, self.mean) == (other.step, other.mean)
            and np.array_equal(self.fresh, other.fresh)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def predicted(self) -> int:
        """The column used for predictions."""
        return max(self.mean, 0)

    def blank(self, values: NDArray[np.float64], steps: int = 0) -> NDArray[np.float64]:
        """State (rows, width) of coefficients that start at `values` (rows,) and have had `steps` updates."""
        state = np.tile(self.fresh, (len(values), 1))
        state[:, 0] = values
        if self.mean >= 0:
            state[:, self.mean] = values
        if self.step >= 0:
            state[:, self.step] = steps
        return state


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
    if loss.code != MULTINOMIAL:
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
        The highest rate of the schedule "optimal", whose first rate follows from the penalty.
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
    def updates_all(self) -> bool:
        """Whether coefficients without a row change at every update, and all must be updated each time."""
        return self.is_dense and (self.l1 > 0 or self.l2 > 0)

    @property
    def is_lazy(self) -> bool:
        """Whether coefficients without a row take deferred steps when they are next used."""
        moves = self.optimizer.moves_on or self.average or self.schedule in ("optimal", "invscaling")
        return self.is_dense and moves and not self.updates_all

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
        """The largest number of epochs over which the rate decays to zero at the end."""
        return max(1, round(self.epochs * self.cooling)) if self.cools and not self.early_stopping else 0

    def for_piece(self) -> Options:
        """For a batch of a stream: no rows are held out, and a few of them may fit badly."""
        return replace(self, early_stopping=False, tol=None, divergence=1e3)

    def batch(self, n_rows: int) -> int:
        """Rows of a batch, for a table of `n_rows` rows."""
        return max(1, n_rows if self.batch_size is None else min(self.batch_size, n_rows))

    def dearer_by(self, n_coefs: int, n_rows: int) -> int:
        """The cost of an update relative to its rows: all coefficients are updated where `updates_all`."""
        return max(1, n_coefs // (ROW * self.batch(n_rows))) if self.updates_all else 1

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
