"""Standardization: conversion between the original scale and the training scale, of coefficients, rows and target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.categories import gather
from tabsym.design.model_spec import Codes, Compiled, ModelSpec, Numbers, Read, Rows
from tabsym.losses.loss import Loss

Floats = NDArray[np.float64]

STILL = 1e-12
"""A standard deviation below this fraction of the mean is rounding error; the column counts as constant."""


@dataclass(frozen=True)
class Moments:
    """Total weight, mean, and sum of squares about the mean."""

    weight: float = 0.0
    mean: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, values: Floats, weight: Floats | None) -> Moments:
        """Moments of a column (n,); missing values are left out."""
        present = ~np.isnan(values)
        if not present.all():
            values = values[present]
            weight = None if weight is None else weight[present]
        total = float(len(values)) if weight is None else float(weight.sum())
        if total == 0.0:
            return cls()
        if values.min() == values.max():  # exactly 0: a sum of rounding errors would count as a variance
            return cls(total, float(values[0]), 0.0)
        mean = float(np.average(values, weights=weight))
        squares = np.square(values - mean)
        return cls(total, mean, float(squares.sum() if weight is None else squares @ weight))

    def __add__(self, other: Moments) -> Moments:
        """The moments of both tables together."""
        total = self.weight + other.weight
        if total == 0.0:
            return self
        step = other.mean - self.mean
        mean = self.mean + step * (other.weight / total)
        squares = self.squares + other.squares + step**2 * (self.weight * other.weight / total)
        return Moments(total, mean, squares)

    def spread_about(self, centre: float) -> float:
        """Root mean square of the deviations from `centre`; 1 for a column that is constant at it."""
        if self.weight == 0.0:
            return 1.0
        rms = float(np.sqrt(self.squares / self.weight + (self.mean - centre) ** 2))
        return rms if rms > STILL * abs(self.mean) else 1.0


@dataclass(frozen=True)
class Units:
    """The standardization of a spec for training.

    Attributes
    ----------
    centre, scale : float
        Training uses (linear predictor - centre) / scale. With a log link the centre is the log of the target's mean
        and the scale 1; for losses of residuals both are moments of the target; for classification 0 and 1.
    means, spreads : (numerics,)
        Training uses (factor - mean) / spread for numeric factors.
    fills : (numerics,)
        The values that replace missing ones.
    sizes : (blocks,)
        Original-scale value of a training-scale coefficient of 1.
    constants : (terms with coefficients,)
        The constants of the terms on the training scale.
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
        """Whether each numeric factor is shifted or scaled in training."""
        return ((self.means != 0.0) | (self.spreads != 1.0)).tolist()

    def to_training(self, spec: ModelSpec, theta: Floats) -> Floats:
        """Coefficients (coefficients, K) from original to training scale."""
        coefs_scaled = theta - self._shifts(spec, theta)
        return coefs_scaled / self.sizes_of_coefs(spec)

    def to_user(self, spec: ModelSpec, coefs_scaled: Floats) -> Floats:
        """Coefficients (coefficients, K) from training to original scale."""
        theta = coefs_scaled * self.sizes_of_coefs(spec)
        if self.centre == 0.0 and not spec.centering_terms:  # no centring
            return theta
        return theta + self._shifts(spec, theta)

    def sizes_of_coefs(self, spec: ModelSpec) -> Floats:
        """Original-scale value of a training-scale coefficient of 1 (coefficients, 1); (1, 1) where all are equal."""
        if (self.sizes == self.sizes[:1]).all():
            return self.sizes[:1, None]
        return np.repeat(self.sizes, spec.sizes)[:, None]

    def _shifts(self, spec: ModelSpec, theta: Floats) -> Floats:
        """Coefficients (coefficients, K) that compensate for centring; `theta` is not used at these terms."""
        shifts = np.zeros_like(theta)
        if spec.intercept is not None:
            intercept_coefs = spec.coefs(spec.intercept.factors[0].block)
            shifts[intercept_coefs] += self.centre / spec.intercept.constant
        for index, main_effect in spec.centering_terms.items():
            term = spec.fitted_terms[index]
            assert term.numeric is not None
            moved = np.asarray(term.constant * self.means[term.numeric])
            for factor in term.factors:
                moved = moved * theta[spec.coefs(factor.block)]
            shifts[spec.coefs(main_effect.factors[0].block)] -= moved / main_effect.constant
        return shifts


def users_units(spec: ModelSpec, numerics: Sequence[Moments]) -> Units:
    """No standardization; missing numbers are replaced by the mean."""
    n = len(spec.numerics)
    fills = np.array([moments.mean for moments in numerics], dtype=np.float64)
    sizes, constants = np.ones(len(spec.blocks)), np.array([term.constant for term in spec.fitted_terms])
    return Units(0.0, 1.0, np.zeros(n), np.ones(n), fills, sizes, constants)


def find_units(
    spec: ModelSpec, target: Moments | None, numerics: Sequence[Moments], *, log_link: bool = False
) -> Units:
    """Standardize target and numeric factors to standard deviation 1, by their moments; target None: not scaled.

    Without an intercept, which compensates for centring, a target with a log link is not scaled either.
    """
    units = users_units(spec, numerics)
    centre, scale = 0.0, 1.0
    if log_link:
        if target is not None and spec.intercept is not None and target.mean > 0.0:
            centre = float(np.log(target.mean))
    elif target is not None:
        centre = target.mean if spec.intercept is not None else 0.0
        scale = target.spread_about(centre)
    means, spreads = units.means.copy(), units.spreads.copy()
    for index, term in enumerate(spec.fitted_terms):
        if term.numeric is not None:
            means[term.numeric] = numerics[term.numeric].mean if index in spec.centering_terms else 0.0
            spreads[term.numeric] = numerics[term.numeric].spread_about(means[term.numeric])
    return with_sizes(spec, replace(units, centre=centre, scale=scale, means=means, spreads=spreads))


def with_sizes(spec: ModelSpec, units: Units) -> Units:
    """Add scales of blocks that make the constants in training 1, or nearly so by least squares of their logarithms."""
    sizes, constants = np.ones(len(spec.blocks)), np.ones(len(spec.fitted_terms))
    shared = []
    for index, term in enumerate(spec.fitted_terms):
        numeric_scale = 1.0 if term.numeric is None else units.spreads[term.numeric]
        constants[index] = term.constant * numeric_scale / units.scale
        if spec.stands_alone(term):
            sizes[term.factors[0].block] = 1.0 / constants[index]
            constants[index] = 1.0  # without rounding error
        else:
            shared.append(index)
    if shared:
        blocks = sorted({factor.block for index in shared for factor in spec.fitted_terms[index].factors})
        times = np.zeros((len(shared), len(blocks)))
        for row, index in enumerate(shared):
            for factor in spec.fitted_terms[index].factors:
                times[row, blocks.index(factor.block)] += 1.0
        logs, *_ = np.linalg.lstsq(times, -np.log(np.abs(constants[shared])), rcond=None)
        sizes[blocks] = np.exp(logs)
        constants[shared] *= np.exp(times @ logs)
    return replace(units, sizes=sizes, constants=constants)


Order = NDArray[np.signedinteger[Any]] | None

_EMPTY = np.empty(0)


def lay_rows(
    spec: ModelSpec,
    compiled: Compiled,
    units: Units,
    codes: Mapping[Read, Codes] | None,
    numbers: Numbers,
    n_rows: int,
    order: Order,
    n_jobs: int | None,
) -> Rows:
    """Codes (none where None) and standardized numeric factors of `n_rows` rows, in `order`; the rest is empty."""
    columns: list[Codes] = []
    starts, strides = [], []
    if codes is not None:
        for read in compiled.reads:
            columns.append(codes[read])
            starts.append(spec.starts[read.block])
            strides.append(spec.blocks[read.block].rank)
    matrix = gather(columns, starts, strides, n_rows, order, n_jobs)
    x = np.empty((n_rows, len(compiled.numerics)))
    for j, index in enumerate(compiled.numerics):
        values = spec.numerics[index].values(numbers)
        if spec.numerics[index].missing_ok:
            missing = np.isnan(values)
            if missing.any():
                values = np.where(missing, units.fills[index], values)
        if units.scales[index]:
            values = (values - units.means[index]) / units.spreads[index]
        x[:, j] = values if order is None or not values.ndim else values[order]
    return Rows(matrix, x, _EMPTY, _EMPTY, _EMPTY)


def fixed_score(spec: ModelSpec, numbers: Numbers, n_rows: int) -> Floats:
    """The sum of the terms without coefficients (n_rows,), on the original scale; empty where there are none."""
    total = _EMPTY
    for term in spec.offset_terms:
        value = np.full(n_rows, term.constant)
        if term.numeric is not None:
            value = value * spec.numerics[term.numeric].values(numbers)
        total = value if not len(total) else total + value
    return total


@dataclass(frozen=True)
class TargetUnits:
    """Unit of the target, unit of the loss, and a constant to add to the loss, on the original scale."""

    of_target: float = 1.0
    of_loss: float = 1.0
    added: float = 0.0

    @classmethod
    def of(cls, rows: Rows, loss: Loss) -> TargetUnits:
        """The mean target as the unit, for losses with a log link; else 1."""
        mean = 0.0 if loss.variance_power is None else float(np.average(rows.y, weights=rows.shares))
        return cls.of_mean(mean, loss)

    @classmethod
    def of_mean(cls, mean: float, loss: Loss) -> TargetUnits:
        """The same by the mean target."""
        power = loss.variance_power
        if mean <= 0.0 or power is None:
            return cls()
        added = {1.0: -mean * float(np.log(mean)), 2.0: float(np.log(mean))}.get(power, 0.0)
        return cls(mean, mean ** (2.0 - power), added)

    def rows(self, rows: Rows) -> Rows:
        """Convert rows to these units."""
        if self.of_target == 1.0:
            return rows
        offset = rows.offset if len(rows.offset) else np.zeros(len(rows.y))
        return rows._replace(y=rows.y / self.of_target, offset=offset - np.log(self.of_target))
