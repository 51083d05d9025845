"""Integrals over the garbage's share: what parts cost at least beside it, at a price per modality outside."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tabsym.modl.shares import ByShare, shares_along

Floats = NDArray[np.float64]

# all of these trade time for nats of the gap, which benchmarks/modl/garbage.py shows
_FIRST_CELLS = 12  # of the share
_LEAST_LOWERING = 0.02  # nats by which a cell's halves must lower the bound to be halved again
_LEAST_LN_SHARE = -6.0  # ln of a cell's share of the integral from which it is worth halving


class Least(NamedTuple):
    """What parts and price cost at least, by number of groups; the garbage's share where two groups gain most."""

    least: Floats
    share: float


class GarbageIntegrals:
    """Integrals over the garbage's share."""

    def __init__(self, units: ByShare, most_work: float, deadline: float) -> None:
        self.units, self.most_work, self.deadline = units, most_work, deadline

    @property
    def spent(self) -> bool:
        """Whether the work or the time is used up."""
        return self.units.work > self.most_work or time.monotonic() > self.deadline

    def least(self, price: float, most: int, needed: Floats) -> Least | None:
        """For 2 .. `most` informative groups, then any number of them; None if there is no time for a first look.

        Cells of the share are halved where most is to be had, until what is `needed` is reached.
        """
        cells: list[_Cell] = []
        for start, end in pairwise(np.linspace(0.0, np.pi / 2, _FIRST_CELLS + 1)):
            if self.spent:
                return None
            cells.append(_Cell(start, end, self._mass(start, end, price, most)))
        settled: list[_Cell] = []
        while True:
            mass = np.logaddexp.reduce([cell.mass for cell in cells + settled], axis=0)
            short = -mass < needed
            share = [float((cell.mass - mass)[short].max()) if short.any() else -np.inf for cell in cells]
            place = int(np.argmax(share)) if cells else 0
            if not cells or share[place] < _LEAST_LN_SHARE or self.spent:
                likely = max(cells + settled, key=lambda cell: float(cell.mass[0]))
                return Least(-mass, float(shares_along(np.array(0.5 * (likely.start + likely.end)))))
            cell = cells.pop(place)
            middle = 0.5 * (cell.start + cell.end)
            halves = [_Cell(a, b, self._mass(a, b, price, most)) for a, b in ((cell.start, middle), (middle, cell.end))]
            lowered = cell.mass - np.logaddexp(halves[0].mass, halves[1].mass)
            (settled if float(lowered[short].max()) < _LEAST_LOWERING else cells).extend(halves)

    def _mass(self, start: float, end: float, price: float, most: int) -> Floats:
        """ln of the integral of exp(-parts - price) over a cell of the garbage's share, at most, by number of groups.

        In the cell the cost of a modality in the garbage lies above its tangent; what is gained beside
        it is convex along the tangent, so its logarithm lies below the line between the ends.
        """
        q_start, q_end = shares_along(np.array([start, end]))
        q, half = 0.5 * (q_start + q_end), 0.5 * (q_end - q_start)
        cost, rise = self.units.costs(q), half * (self.units.counts @ [1.0 / (1.0 - q), -1.0 / q])
        left, right = (
            self.units.gained(at_end, price, most) - self.units.times @ at_end for at_end in (cost - rise, cost + rise)
        )
        return np.asarray(np.log(2.0 * half) + _ln_mean_exp(left, right))


@dataclass(frozen=True)
class _Cell:
    """A cell of the garbage's share, in angles, and the ln of what it holds at most, by number of groups."""

    start: float
    end: float
    mass: Floats


def _ln_mean_exp(x: Floats, y: Floats) -> Floats:
    """ln of the mean of exp over a line from x to y."""
    d = np.abs(x - y)
    wide = np.where(d > 1e-9, d, 1.0)
    return np.asarray(np.maximum(x, y) + np.where(d > 1e-9, np.log(-np.expm1(-wide) / wide), 0.0))
