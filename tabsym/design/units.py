"""Standardization: between the user's units and those of training, both ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tabsym.design.layout import Layout

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


@dataclass(frozen=True)
class Units:
    """What scales a layout for training.

    Attributes
    ----------
    centre, scale : float
        The score was trained as (score - centre) / scale: behind a log link the centre is the logarithm of the target's
        unit, its mean, and the scale 1; for losses of differences both are the target's; for those of classes 0 and 1.
    means, spreads : (numerics,)
        Numeric factors were trained as (factor - mean) / spread.
    fills : (numerics,)
        What a missing value stands for.
    sizes : (blocks,)
        What a parameter of 1 in training is to the user.
    constants : (learned terms,)
        Of the terms in training.
    """

    centre: float
    scale: float
    means: Floats
    spreads: Floats
    fills: Floats
    sizes: Floats
    constants: Floats

    @cached_property
    def scales(self) -> list[bool]:
        """Whether each numeric factor is anything but itself in training."""
        return ((self.means != 0.0) | (self.spreads != 1.0)).tolist()

    def to_training(self, layout: Layout, theta: Floats) -> Floats:
        """Parameters (coefficients, K) of training, from the user's."""
        phi = theta - self._shifts(layout, theta)
        return phi / self.sizes_of_entries(layout)

    def to_user(self, layout: Layout, phi: Floats) -> Floats:
        """Parameters (coefficients, K) in the user's units, from training's."""
        theta = phi * self.sizes_of_entries(layout)
        if self.centre == 0.0 and not layout.homes:  # nothing is shifted
            return theta
        return theta + self._shifts(layout, theta)

    def sizes_of_entries(self, layout: Layout) -> Floats:
        """What a parameter of 1 in training is to the user, by coefficient (coefficients, 1), or (1, 1) where all are
        alike.
        """
        if (self.sizes == self.sizes[:1]).all():
            return self.sizes[:1, None]
        return np.repeat(self.sizes, layout.sizes)[:, None]

    def _shifts(self, layout: Layout, theta: Floats) -> Floats:
        """What homes (coefficients, K) hold for the user beyond training; of theta, no home is read."""
        shifts = np.zeros_like(theta)
        if layout.constant is not None:
            own = layout.coefs(layout.constant.factors[0].block)
            shifts[own] += self.centre / layout.constant.constant
        for index, home in layout.homes.items():
            term = layout.learned[index]
            assert term.numeric is not None
            moved = np.asarray(term.constant * self.means[term.numeric])
            for factor in term.factors:
                moved = moved * theta[layout.coefs(factor.block)]
            shifts[layout.coefs(home.factors[0].block)] -= moved / home.constant
        return shifts


def users_units(layout: Layout, numerics: Sequence[Moments]) -> Units:
    """The user's own; a missing number stands for the mean."""
    n = len(layout.numerics)
    fills = np.array([moments.mean for moments in numerics], dtype=np.float64)
    sizes, constants = np.ones(len(layout.blocks)), np.array([term.constant for term in layout.learned])
    return Units(0.0, 1.0, np.zeros(n), np.ones(n), fills, sizes, constants)


def find_units(layout: Layout, target: Moments | None, numerics: Sequence[Moments], *, log_link: bool = False) -> Units:
    """Units in which target and numeric factors have size one, from their moments; None for a target left alone.

    Without an intercept, which takes up what centring moves, a target behind a log link is left alone too.
    """
    units = users_units(layout, numerics)
    centre, scale = 0.0, 1.0
    if log_link:
        if target is not None and layout.constant is not None and target.mean > 0.0:
            centre = float(np.log(target.mean))
    elif target is not None:
        centre = target.mean if layout.constant is not None else 0.0
        scale = target.spread_about(centre)
    means, spreads = units.means.copy(), units.spreads.copy()
    for index, term in enumerate(layout.learned):
        if term.numeric is not None:
            means[term.numeric] = numerics[term.numeric].mean if index in layout.homes else 0.0
            spreads[term.numeric] = numerics[term.numeric].spread_about(means[term.numeric])
    return with_sizes(layout, replace(units, centre=centre, scale=scale, means=means, spreads=spreads))


def with_sizes(layout: Layout, units: Units) -> Units:
    """Sizes of blocks that bring the constants of training to 1, or as near as they come on a log scale."""
    sizes, constants = np.ones(len(layout.blocks)), np.ones(len(layout.learned))
    shared = []
    for index, term in enumerate(layout.learned):
        spread = 1.0 if term.numeric is None else units.spreads[term.numeric]
        constants[index] = term.constant * spread / units.scale
        if layout.stands_alone(term):
            sizes[term.factors[0].block] = 1.0 / constants[index]
            constants[index] = 1.0  # exactly
        else:
            shared.append(index)
    if shared:
        blocks = sorted({factor.block for index in shared for factor in layout.learned[index].factors})
        times = np.zeros((len(shared), len(blocks)))
        for row, index in enumerate(shared):
            for factor in layout.learned[index].factors:
                times[row, blocks.index(factor.block)] += 1.0
        logs, *_ = np.linalg.lstsq(times, -np.log(np.abs(constants[shared])), rcond=None)
        sizes[blocks] = np.exp(logs)
        constants[shared] *= np.exp(times @ logs)
    return replace(units, sizes=sizes, constants=constants)
