"""Optimizers: names and defaults are torch.optim's, the update steps are in `rules`.

The state of a coefficient is one row of numbers, the coefficient first, so that an update touches one cache line. Under
``gradient="gse"`` all of it, the step count too, is per coefficient: an absent gradient is not a zero gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tabsym.solvers.sgd.rules import ADAGRAD_CODE, ADAM_CODE, RMSPROP_CODE, SGD_CODE


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
        Columns of the number of updates and of the running mean, -1 where none is kept.
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
    def shown(self) -> int:
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
