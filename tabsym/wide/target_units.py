"""Targets made 1 behind a log link: where curvature is in units of the target, variances and tolerances are too.

Rates of 1e-5 would say nothing beside a first variance, and their sums settle at once; sales of thousands would not
feel the penalty that crosses are weighed with (rossmann's poisson model had 8 % more error than squared loss, and has 4
% less in units of its own). In units of their mean, models are the same in any unit.

Dividing the target by m moves scores by log m, which the offset takes up, so that no parameter changes; the loss, its
curvature and the dispersion are divided by m for poisson, and by m ** (2 - power) for tweedie; gamma's have no unit.
Losses that scale have targets of spread 1 instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabsym.wide.losses import Loss
from tabsym.wide.program import Rows
from tabsym.wide.slopes import GAMMA, POISSON, TWEEDIE

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TargetUnits:
    """The target's unit, what a loss of 1 in it is in the user's, and what is added to that."""

    of_target: float = 1.0
    of_loss: float = 1.0
    added: float = 0.0

    @classmethod
    def of(cls, rows: Rows, loss: Loss) -> TargetUnits:
        """The mean of the rows, for losses behind a log link."""
        mean = float(np.average(rows.y, weights=rows.shares)) if loss.code in (POISSON, GAMMA, TWEEDIE) else 0.0
        if mean <= 0.0:
            return cls()
        if loss.code == POISSON:
            return cls(mean, mean, -mean * float(np.log(mean)))
        if loss.code == GAMMA:
            return cls(mean, 1.0, float(np.log(mean)))
        return cls(mean, mean ** (2.0 - loss.parameter))

    def rows(self, rows: Rows) -> Rows:
        """The rows in these units."""
        if self.of_target == 1.0:
            return rows
        offset = rows.offset if len(rows.offset) else np.zeros(len(rows.y))
        return rows._replace(y=rows.y / self.of_target, offset=offset - np.log(self.of_target))

    def users_loss(self, loss: float) -> float:
        """The mean loss in the user's units."""
        return self.of_loss * loss + self.added
