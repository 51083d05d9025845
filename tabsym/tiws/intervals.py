"""Intervals for unknown categories: conformal over categories, which are taken to be exchangeable.

How far each known category's mean was from what the others said of it, in units of what was to be expected, is what an
unknown one's is taken to be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tabsym.tiws.regression import Solution

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Conformal:
    """Scores (l, q), ascending, of known categories left out; `within`: a row's variance about its category's mean."""

    scores: Floats
    within: float

    @classmethod
    def of(cls, solution: Solution) -> Conformal:
        """From each category left out in turn."""
        sums, within = solution.regression.sums, solution.regression.components.within
        left_out = solution.held_out(np.arange(len(sums.rows)))
        spread = np.sqrt(left_out.variances + within / sums.rows)[:, None]
        away = np.abs(sums.means - left_out.values)
        scores = np.where(spread > 0, away / np.where(spread > 0, spread, 1.0), 0.0)
        return cls(np.sort(scores, axis=0), within)

    def half_width(self, variances: Floats, rows: Floats, level: float) -> Floats:
        """Of the interval (m, q) for the mean over `rows` (m,) rows of categories with error `variances` (m,)."""
        place = int(np.ceil(level * (len(self.scores) + 1) - 1e-9)) - 1
        score = self.scores[min(place, len(self.scores) - 1)]
        if place >= len(self.scores):  # more than the known categories can say: at least what normal ones would need
            score = np.maximum(score, stats.norm.isf((1 - level) / 2))
        with np.errstate(divide="ignore"):
            spread = np.sqrt(variances + np.where(rows > 0, self.within / rows, 0.0))
        return np.asarray(score * spread[:, None])
