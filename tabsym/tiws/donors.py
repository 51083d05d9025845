"""Donors: the known categories that an unknown one resembles, with weights that sum to 1.

The weight of a donor falls with its distance, by a rate chosen by leaving each known category out, and with how little
is known of it (rho_k = n_k / (n_k + s2 / tau2)).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tabsym.tiws.likeness import Geometry, median_distance
from tabsym.tiws.sums import Components, Sums, drawn

Floats = NDArray[np.float64]

RATES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""g, per median squared distance of seen documents."""
NAME_RATES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""The same for names, per unit of 1 - cosine."""
FEWEST_TO_TUNE = 4
"""Of fewer known categories all donors of one are alike: one left out leaves two at most."""


@dataclass(frozen=True)
class DonorRule:
    """How weights follow from distances: `rate` per `unit`, `name_rate`; `known` (l,) is each donor's rho."""

    rate: float
    name_rate: float
    unit: float
    known: Floats

    @classmethod
    def fit(cls, sums: Sums, components: Components, geometry: Geometry) -> DonorRule:
        """The rates that best predict left-out categories' targets; `geometry`: of categories with each other."""
        rule = cls(0.0, 0.0, median_distance(geometry.distances) or 1.0, _known(sums.rows, components))
        if len(sums.rows) < FEWEST_TO_TUNE:
            return rule
        estimates = drawn(sums, components.centre, components.ratio)
        sure = 1 / (components.between + components.within / sums.rows)
        centre = components.centre
        return min(
            rule.others(geometry), key=lambda one: one.left_out_error(geometry, sums.means, estimates, centre, sure)
        )

    def of(self, rows: Floats, components: Components) -> DonorRule:
        """The same rule for donors of so many rows (l,)."""
        return replace(self, known=_known(rows, components))

    def others(self, geometry: Geometry) -> list[DonorRule]:
        """The rules to choose from."""
        names = NAME_RATES if geometry.names is not None else (0.0,)
        return [DonorRule(rate, name, self.unit, self.known) for rate in RATES for name in names]

    def weights(self, geometry: Geometry, own: NDArray[np.integer] | None = None) -> Floats:
        """Of donors (l,) for each category (m, l); `own` (m,): a donor that is left out, below 0 for none."""
        pull = -self.rate * geometry.distances / self.unit
        if self.name_rate:
            assert geometry.names is not None
            pull = pull - self.name_rate * (1 - geometry.names)
        with np.errstate(divide="ignore"):
            pull = pull + np.log(self.known)
        if own is not None:
            held = np.flatnonzero(own >= 0)
            pull[held, own[held]] = -np.inf
        top = pull.max(axis=1, keepdims=True)
        weights = np.exp(pull - np.where(np.isfinite(top), top, 0.0))
        total = weights.sum(axis=1, keepdims=True)
        return np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1 / weights.shape[1])

    def left_out_error(
        self, geometry: Geometry, means: Floats, estimates: Floats, centre: Floats, sure: Floats
    ) -> float:
        """Of categories foretold by the others, as far as that is worth: ``centre + lambda (foretold - centre)``."""
        foretold = self.weights(geometry, np.arange(len(means))) @ estimates - centre
        share = worth(foretold, means - centre, sure)
        return float((sure[:, None] * (means - centre - share * foretold) ** 2).sum())


def _known(rows: Floats, components: Components) -> Floats:
    """rho: how much of a category's estimate is its own."""
    return rows / (rows + components.ratio)


def worth(foretold: Floats, truth: Floats, sure: Floats) -> float:
    """The share in [0, 1] of what is foretold (l, q) that comes nearest to the truth (l, q), with weights (l,)."""
    square = float((sure[:, None] * foretold**2).sum())
    return float(np.clip((sure[:, None] * foretold * truth).sum() / square, 0.0, 1.0)) if square > 0 else 0.0
