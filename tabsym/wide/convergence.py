"""Whether training goes anywhere: a loss that falls, one that has settled, one that runs away.

Losses are compared by what they are above the loss of a perfect prediction
(half a deviance), so shares of them mean the same for every loss and target.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tabsym.wide.constants import best_constant
from tabsym.wide.descent import Descent, RowNumbers, Task, take_rows

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
"""At an optimum for all purposes: single Newton steps would take less of the loss; the last passes took less of it."""

REST = 0.04
"""More of the loss that a few steps of L-BFGS find is told of: about 5 % above an optimum, as they find most of it."""

SHORTEST = 4
LEAST_PASSES, LEAST_UPDATES = 12, 100
"""A curve of fewer passes tells nothing; nor, of whether it stands still, one of fewer than these."""

TINY = 1e-12
"""Of a loss in units of training: less is rounding."""

OPTIMISM = 0.2
"""A parameter fits noise, by half a unit of log-likelihood in all; training need not see more than the rest of that."""


class Ground:
    """What losses are measured against; starting losses are those of a sample until more depends on them.

    Attributes
    ----------
    least : float
        The mean loss of perfect predictions.
    start : float
        The mean loss above that where training starts: of the best constant or the first parameters, whichever is more.
    noise : float
        The share of the loss, or of a unit of log-likelihood, that parameters may yet take off it by fitting noise.
    is_likelihood : bool
        Whether the loss is one, in units of its own; others are in those of the target, of which noise is a share.
    least_passes : int
        Before these nothing is said of where the loss goes.
    """

    def __init__(self, descent: Descent) -> None:
        task, members = descent.task, descent.members
        weight = descent.rows.weight
        self.least = _least_loss(task, descent.rows.y[members], weight[members] if len(weight) else weight)
        self.noise = OPTIMISM * len(descent.state) / len(members)
        self.is_likelihood = not task.loss.scales
        self.least_passes = max(LEAST_PASSES, -(-LEAST_UPDATES // descent.updates_of_a_pass))
        self._descent = descent
        self._measure(members[:: max(1, len(members) // SAMPLE)])

    def _measure(self, members: RowNumbers) -> None:
        """Look where training starts, by these rows."""
        descent, task = self._descent, self._descent.task
        rows = take_rows(descent.rows, members, task.n_outputs)
        offset = rows.offset.reshape(-1, task.n_outputs) if len(rows.offset) else None
        constant = best_constant(task.loss, rows.y, rows.shares, task.n_outputs, offset)
        flat = np.tile(constant, (len(rows.y), 1)) + (0.0 if offset is None else offset)
        starts = [task.mean_loss(flat, rows)]
        starts.append(task.mean_loss(descent.margins(rows, at_start=True), rows) + descent.penalty(at_start=True))
        self.start = max(max(starts) - _least_loss(task, rows.y, rows.weight), 0.0)
        self.is_sampled = len(members) < len(descent.members)

    @property
    def bearable(self) -> float:
        """A mean loss so far above that of perfect predictions has diverged."""
        descent = self._descent
        return descent.options.divergence * (1.0 + FEW_ROWS / len(descent.members)) * self.start + TINY

    def excess(self, loss: float) -> float:
        """What a mean loss is above that of perfect predictions."""
        return loss - self.least

    def has_diverged(self, loss: float) -> bool:
        """Whether a mean loss runs away; rare large targets that a sample missed are looked for before that is said."""
        if self.excess(loss) > self.bearable and np.isfinite(loss) and self.is_sampled:
            self._measure(self._descent.members)
        return not self.excess(loss) <= self.bearable

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
        return share * excess + self._noise(excess) + LITTLE * self.start

    def rest(self, excess: float) -> float:
        """What may be left of a loss without a word."""
        return REST * excess + LITTLE * self.start

    def rest_with_noise(self, excess: float) -> float:
        """What may be left of a loss for training to end."""
        return max(self.rest(excess), self._noise(excess))

    def fits_noise(self, excess: float) -> bool:
        """Whether parameters fit more by chance than may be left without a word."""
        return self._noise(excess) > self.rest(excess)

    def _noise(self, excess: float) -> float:
        return self.noise * (0.5 if self.is_likelihood else excess)

    @staticmethod
    def _fall(curve: list[float]) -> float:
        """By how much the last quarter of the passes lies below the quarter before, in the mean."""
        quarter = max(1, len(curve) // 4)
        return float(np.mean(curve[-2 * quarter : -quarter]) - np.mean(curve[-quarter:]))


def _least_loss(task: Task, y: Floats, weight: Floats) -> float:
    """The mean loss of perfect predictions."""
    if not task.loss.log_link:  # all others have a least of zero
        return 0.0
    return float(np.average(task.loss.least(y), weights=weight if weight.any() else None))
