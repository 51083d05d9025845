"""What rows held out lose, and gain over something simpler, with the standard error of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabsym.stacking.layer import Rows

Floats = NDArray[np.float64]

ERRORS = 1.0
"""What is more than the wide model must gain so many standard errors: of 0, .5, 1, 1.5 and 2 the one at which no table
of ten lost to its better part in benchmarks/stacking/rules.py (mean -2.22 %; -2.27 at 0, -1.90 at 2)."""


@dataclass(frozen=True)
class Tally:
    """What rows lose, and gain over something simpler: `sums` of w, w loss, w gain, w^2, w^2 gain, w^2 gain^2."""

    sums: Floats

    @classmethod
    def of(cls, lost: Floats, before: Floats, rows: Rows) -> Tally:
        """Losses (n,), and those (n,) of what is simpler."""
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        gain, square = before - lost, weight**2
        parts = [weight, weight * lost, weight * gain, square, square * gain, square * gain**2]
        return cls(np.array([part.sum() for part in parts]))

    @classmethod
    def total(cls, parts: Sequence[Tally]) -> Tally:
        return cls(np.sum([part.sums for part in parts], axis=0))

    @property
    def loss(self) -> float:
        return float(self.sums[1] / self.sums[0])

    @property
    def gain(self) -> float:
        return float(self.sums[2] / self.sums[0])

    @property
    def error(self) -> float:
        """The standard error of the gain; of one row there is none."""
        gain = self.gain
        if self.sums[0] ** 2 < 1.5 * self.sums[3]:
            return np.inf
        square = self.sums[5] - 2 * gain * self.sums[4] + gain**2 * self.sums[3]
        return float(np.sqrt(max(square, 0.0)) / self.sums[0])

    @property
    def is_certain(self) -> bool:
        """Whether the gain is worth what it takes."""
        return self.gain > ERRORS * self.error
