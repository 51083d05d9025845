"""Optimizers: names and defaults are torch.optim's, the update rules are in `kernels`.

The state of an entry is one row of numbers, the parameter first, so that an
update touches one cache line. Under ``gradient="gse"`` everything in it,
Adam's step count too, belongs to the entry: an absent gradient is not a zero
gradient.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SGD_CODE, ADAGRAD_CODE, ADAM_CODE = 0, 1, 2
STEP_COLUMN = 3
"""Where Adam's state keeps the number of updates the entry has had."""


@dataclass(frozen=True)
class SGD:
    """Plain stochastic gradient descent: ``theta -= lr * g``."""

    @property
    def code(self) -> int:
        return SGD_CODE

    @property
    def hyper(self) -> NDArray[np.float64]:
        return np.zeros(3)

    @property
    def fresh(self) -> NDArray[np.float64]:
        """State of an entry that has not moved: the parameter, then what the rule remembers."""
        return np.zeros(1)


@dataclass(frozen=True)
class Adagrad:
    """Adagrad: ``s += g**2; theta -= lr * g / (sqrt(s) + eps)``.

    Parameters
    ----------
    initial_accumulator_value : float, default 1.0
        Where s starts. torch.optim starts at 0, where the first step of every
        entry has length `lr` whatever its gradient: with long-tailed
        alphabets most entries move only a few times, so that costs much
        (amazon with pairs, AUC in a first trial: .79 to .84 from 0, .875 from 0.1 or 1;
        the choice: ``benchmarks/defaults.py``). TensorFlow starts at 0.1.
    eps : float, default 1e-10
    """

    initial_accumulator_value: float = 1.0
    eps: float = 1e-10

    @property
    def code(self) -> int:
        return ADAGRAD_CODE

    @property
    def hyper(self) -> NDArray[np.float64]:
        return np.array([self.eps, 0.0, 0.0])

    @property
    def fresh(self) -> NDArray[np.float64]:
        return np.array([0.0, self.initial_accumulator_value])


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma and Ba 2015), as torch.optim writes it.

    Parameters
    ----------
    betas : (float, float), default (0.9, 0.999)
    eps : float, default 1e-8
    """

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    @property
    def code(self) -> int:
        return ADAM_CODE

    @property
    def hyper(self) -> NDArray[np.float64]:
        return np.array([self.eps, *self.betas])

    @property
    def fresh(self) -> NDArray[np.float64]:
        return np.zeros(STEP_COLUMN + 1)


Optimizer = SGD | Adagrad | Adam

OPTIMIZERS: dict[str, Optimizer] = {"sgd": SGD(), "adagrad": Adagrad(), "adam": Adam()}
"""The optimizers by name, with their defaults."""
