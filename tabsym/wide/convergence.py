"""Whether training goes anywhere: a loss that falls, one that has settled, one that runs away.

Losses are compared by what they are above the loss of a perfect prediction
(half a deviance), so shares of them mean the same for every loss and target.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabsym.wide.constants import best_constant
from tabsym.wide.descent import Descent, take_rows

Floats = NDArray[np.float64]

SAMPLE = 10_000
"""So many rows tell what loss training starts from."""

FEW_ROWS = 20
"""Of so few rows or less the losses of a pass tell little: twice that loss is borne with, or more."""

SETTLED = 0.003
"""Training has converged when the last quarter of its passes lowered the loss by a smaller share of it."""

LITTLE = 1e-3
"""Neither is anything said of a smaller share of the loss at the start, as of targets without noise."""

TINY = 1e-12
"""Of a loss in units of training: less is rounding."""

LEAST_PASSES = 4

OPTIMISM = 0.25
"""A parameter fits noise, by half a unit of log-likelihood in all; training need not see all of that."""


@dataclass(frozen=True)
class Ground:
    """What losses are measured against.

    Attributes
    ----------
    least : float
        The mean loss of perfect predictions.
    start : float
        The mean loss above that where training starts: of the best constant or the first parameters, whichever is more.
    bearable : float
        A higher mean loss above that has diverged.
    noise : float
        What fitting noise may lower the mean loss by.
    """

    least: float
    start: float
    bearable: float
    noise: float

    @classmethod
    def under(cls, descent: Descent) -> Ground:
        """Found on a sample of the rows."""
        rows, task = descent.rows, descent.task
        step = max(1, len(descent.members) // SAMPLE)
        rows = take_rows(rows, descent.members[::step], task.n_outputs)
        weight = rows.weight if len(rows.weight) and rows.weight.any() else None
        offset = rows.offset.reshape(-1, task.n_outputs) if len(rows.offset) else None
        constant = best_constant(task.loss, rows.y, weight, task.n_outputs, offset)
        flat = np.tile(constant, (len(rows.y), 1)) + (0.0 if offset is None else offset)
        least = float(np.average(task.loss.least(rows.y), weights=weight))
        starts = [
            float(np.average(task.loss.values(np.ascontiguousarray(margins), rows.y), weights=weight))
            for margins in (flat, descent.margins(rows))
        ]
        noise = OPTIMISM * len(descent.state) / len(descent.members)
        start = max(max(starts) - least, 0.0)
        bearable = descent.options.patience * (1.0 + FEW_ROWS / len(descent.members)) * start + TINY
        return cls(least, start, bearable, noise)

    def excess(self, loss: float) -> float:
        """What a mean loss is above that of perfect predictions."""
        return loss - self.least

    def has_diverged(self, loss: float) -> bool:
        return not np.isfinite(loss) or self.excess(loss) > self.bearable

    def is_settled(self, curve: list[float]) -> bool:
        """Whether passes no longer lower the loss."""
        if len(curve) < LEAST_PASSES:
            return False
        return self._fall(curve) < SETTLED * self.excess(min(curve[-2:])) + SETTLED * LITTLE * self.start

    def is_short(self, curve: list[float], share: float) -> bool:
        """Whether the last passes still lowered the loss by more than this share of it, and than noise explains."""
        if len(curve) < LEAST_PASSES:
            return False
        last = self.excess(min(curve[-2:]))
        likelihood = self.noise * min(1.0, last) if self.least == 0.0 else self.noise
        return self._fall(curve) > share * last + likelihood + LITTLE * self.start

    @staticmethod
    def _fall(curve: list[float]) -> float:
        """By how much the last quarter of the passes lies below the quarter before, in the mean."""
        quarter = max(1, len(curve) // 4)
        return float(np.mean(curve[-2 * quarter : -quarter]) - np.mean(curve[-quarter:]))
