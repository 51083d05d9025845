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

SAMPLE = 1_000
"""So many rows tell what loss training starts from."""

FEW_ROWS = 20
"""Of so few rows or less the losses of a pass tell little: twice that loss is borne with, or more."""

SETTLED = 0.003
"""The loss stands still when the last quarter of the passes lowered it by a smaller share of it."""

LITTLE = 1e-4
"""Of the loss at the start: what is left of that is not sought any more, as of targets without noise."""

NEAR, FAR = 0.004, 0.015
"""Shares of the loss that single Newton steps would take off it: at an optimum for all purposes; to be told of."""

SHORTEST = 4
LEAST_PASSES, LEAST_UPDATES = 12, 100
"""A curve of fewer passes tells nothing; nor, of whether it stands still, one of fewer than these."""

TINY = 1e-12
"""Of a loss in units of training: less is rounding."""

OPTIMISM = 0.25
"""A parameter fits noise, by half a unit of log-likelihood in all; training need not see more than the rest of that."""


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
        The share of the loss, or of a unit of log-likelihood, that parameters may yet take off it by fitting noise.
    least_passes : int
        Before these nothing is said of where the loss goes.
    """

    least: float
    start: float
    bearable: float
    noise: float
    is_likelihood: bool
    least_passes: int

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
        least_passes = max(LEAST_PASSES, -(-LEAST_UPDATES // descent.updates_of_a_pass))
        return cls(least, start, bearable, noise, not task.loss.scales, least_passes)

    def excess(self, loss: float) -> float:
        """What a mean loss is above that of perfect predictions."""
        return loss - self.least

    def has_diverged(self, loss: float) -> bool:
        return not np.isfinite(loss) or self.excess(loss) > self.bearable

    def stands_still(self, curve: list[float]) -> bool:
        """Whether passes no longer move the loss, by its curve since training, or a new round of it, began."""
        if len(curve) < self.least_passes:
            return False
        return self._fall(curve) < SETTLED * (self.excess(min(curve[-2:])) + LITTLE * self.start)

    def is_falling(self, curve: list[float], share: float) -> bool:
        """Whether the last passes still lowered the loss by more than this share of it, and than noise explains."""
        if len(curve) < SHORTEST:
            return False
        last = self.excess(min(curve[-2:]))
        return self._fall(curve) > self.allowed(last, share)

    def allowed(self, excess: float, share: float) -> float:
        """What may be left of a loss for it to be at its optimum but for this share."""
        noise = self.noise * (0.5 if self.is_likelihood else excess)
        return share * excess + noise + LITTLE * self.start

    @staticmethod
    def _fall(curve: list[float]) -> float:
        """By how much the last quarter of the passes lies below the quarter before, in the mean."""
        quarter = max(1, len(curve) // 4)
        return float(np.mean(curve[-2 * quarter : -quarter]) - np.mean(curve[-quarter:]))
