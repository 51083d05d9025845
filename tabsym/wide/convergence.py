"""What a loss is compared with: that of perfect predictions, of the best constant, and of the first parameters.

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
"""So many rows tell from what loss training starts, where nothing but its divergence is judged by that."""

FEW_ROWS = 20
"""Of so few rows or less the losses of an epoch tell little: twice the loss at the start is no divergence, or more."""

TINY = 1e-12
"""Of a loss in units of training: less is rounding."""

LITTLE = 1e-4
"""Of the loss at the start: a fall by less is none, as of targets without noise."""

SHORTEST = 4
"""A curve of fewer epochs says nothing of whether it still falls."""

OPTIMISM = 0.2
"""Each parameter fits noise, by half a unit of log-likelihood: a fall by this share of that is none."""


class Reference:
    """What training losses are measured against.

    Attributes
    ----------
    least : float
        The mean loss of perfect predictions.
    start : float
        The mean loss above `least` where training starts: of the best constant or the first parameters, whichever is
        more; of a sample of rows until more depends on it.
    lowest : float
        Whichever is less.
    """

    def __init__(self, descent: Descent) -> None:
        members, weight = descent.members, descent.rows.weight
        self.least = _least_loss(descent.task, descent.rows.y[members], weight[members] if len(weight) else weight)
        self._descent = descent
        by_gain = descent.options.tol is not None
        self._measure(members if by_gain else members[:: max(1, len(members) // SAMPLE)])

    def _measure(self, members: RowNumbers) -> None:
        """Look where training starts, by these rows."""
        descent, task = self._descent, self._descent.task
        rows = take_rows(descent.rows, members, task.n_outputs)
        offset = rows.offset.reshape(-1, task.n_outputs) if len(rows.offset) else None
        constant = best_constant(task.loss, rows.y, rows.shares, task.n_outputs, offset)
        flat = np.tile(constant, (len(rows.y), 1)) + (0.0 if offset is None else offset)
        starts = [task.mean_loss(flat, rows)]
        starts.append(task.mean_loss(descent.margins(rows, at_start=True), rows) + descent.penalty(at_start=True))
        least = _least_loss(task, rows.y, rows.weight)
        self.start, self.lowest = (max(loss - least, 0.0) for loss in (max(starts), min(starts)))
        self.is_sampled = len(members) < len(descent.members)

    def has_diverged(self, loss: float) -> bool:
        """Whether a mean loss runs away; rare large targets that a sample missed are looked for before that is said."""
        if self._is_far(loss) and np.isfinite(loss) and self.is_sampled:
            self._measure(self._descent.members)
        return self._is_far(loss)

    def _is_far(self, loss: float) -> bool:
        descent = self._descent
        most = descent.options.divergence * (1.0 + FEW_ROWS / len(descent.members)) * self.start + TINY
        return not loss - self.least <= most

    def gain(self, loss: float) -> float:
        """What training has taken off the loss."""
        return max(self.least + self.lowest - loss, 0.0)

    def is_falling(self, curve: list[float], share: float) -> bool:
        """Whether the last quarter of the epochs lowered the loss by more than this share of it, and than by noise."""
        if len(curve) < SHORTEST:
            return False
        quarter = len(curve) // 4
        fall = float(np.mean(curve[-2 * quarter : -quarter]) - np.mean(curve[-quarter:]))
        excess, descent = min(curve[-2:]) - self.least, self._descent
        unit = 0.5 if descent.task.loss.for_classes else excess  # in which others have no unit but their noise
        noise = OPTIMISM * len(descent.state) / len(descent.members) * unit
        return fall > share * excess + noise + LITTLE * self.start


def _least_loss(task: Task, y: Floats, weight: Floats) -> float:
    """The mean loss of perfect predictions."""
    if not task.loss.log_link:  # all others have a least of zero
        return 0.0
    return float(np.average(task.loss.least(y), weights=weight if weight.any() else None))
