"""The rows of a coded table in the kernels' memory spec, and the target scaled to mean 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.categories import gather
from tabsym.design.model_spec import Codes, ModelSpec, Numbers, Read
from tabsym.design.program import Compiled, Rows
from tabsym.design.units import Units
from tabsym.losses.loss import Loss

Floats = NDArray[np.float64]
Order = NDArray[np.signedinteger[Any]] | None

_EMPTY = np.empty(0)


def lay_rows(
    spec: ModelSpec,
    compiled: Compiled,
    units: Units,
    codes: Mapping[Read, Codes] | None,
    numbers: Numbers,
    n_rows: int,
    order: Order = None,
    n_jobs: int | None = None,
) -> Rows:
    """Codes (none where None) and numeric factors of `n_rows` rows, in `order`; target and weights stay empty."""
    reads = [] if codes is None else [spec.reads[index] for index in compiled.reads]
    matrix = gather(
        [] if codes is None else [codes[read] for read in reads],
        starts=[spec.offsets[read.block] for read in reads],
        strides=[spec.blocks[read.block].rank for read in reads],
        n_rows=n_rows,
        order=order,
        n_jobs=n_jobs,
    )
    return Rows(matrix, lay_numbers(spec, compiled, units, numbers, n_rows, order), _EMPTY, _EMPTY, _EMPTY)


def lay_numbers(
    spec: ModelSpec, compiled: Compiled, units: Units, numbers: Numbers, n_rows: int, order: Order = None
) -> Floats:
    """The numeric factors (n_rows, d), standardized, in the order of a program."""
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
    return x


def fixed_score(spec: ModelSpec, numbers: Numbers, n_rows: int) -> Floats:
    """The sum of the terms without coefficients (n_rows,), on the original scale; empty where there are none."""
    total = _EMPTY
    for term in spec.fixed:
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

    def users_loss(self, loss: float) -> float:
        """The mean loss on the original scale."""
        return self.of_loss * loss + self.added
