"""Weighted mean and spread of a column, which add up over tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STILL = 1e-12
"""A spread that is a smaller share of the mean is rounding, and the column a constant."""


@dataclass(frozen=True)
class Moments:
    """Total weight, mean, and sum of squares about the mean."""

    weight: float = 0.0
    mean: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, values: Floats, weight: Floats | None) -> Moments:
        """Of a column (n,); missing values are left out."""
        present = ~np.isnan(values)
        if not present.all():
            values = values[present]
            weight = None if weight is None else weight[present]
        total = float(len(values)) if weight is None else float(weight.sum())
        if total == 0.0:
            return cls()
        if values.min() == values.max():  # what rounding leaves of it would be a number like any other
            return cls(total, float(values[0]), 0.0)
        mean = float(np.average(values, weights=weight))
        squares = np.square(values - mean)
        return cls(total, mean, float(squares.sum() if weight is None else squares @ weight))

    def __add__(self, other: Moments) -> Moments:
        """Of both tables together."""
        total = self.weight + other.weight
        if total == 0.0:
            return self
        step = other.mean - self.mean
        mean = self.mean + step * (other.weight / total)
        squares = self.squares + other.squares + step**2 * (self.weight * other.weight / total)
        return Moments(total, mean, squares)

    def spread_about(self, centre: float) -> float:
        """Root mean square of the differences to a centre; 1 for a column that does not differ from it."""
        if self.weight == 0.0:
            return 1.0
        spread = float(np.sqrt(self.squares / self.weight + (self.mean - centre) ** 2))
        return spread if spread > STILL * abs(self.mean) else 1.0
