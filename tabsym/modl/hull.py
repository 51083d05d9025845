"""How many parts: a search over the lower convex hull of cost against number, with a certificate.

Let F(I) be the least cost of the parts of any partition into I parts. A pass
with a price p per part finds L(p) = min F(I) + p I, so F(I) >= L(p) - p I for every
I at once: each pass bounds all numbers of parts from below. With the prior of
the model added, the least of the bounds is a lower bound on the optimum, and
the search prices next what could still beat the best known.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

TOLERANCE = 1e-11
"""Relative: costs closer than this are equal."""
_MOST_PASSES = 60  # time for a certificate


def is_cheaper(cost: float, than: float) -> bool:
    """Whether a cost is lower by more than rounding; any is lower than an infinite one."""
    return bool(cost < (than - TOLERANCE * abs(than) if math.isfinite(than) else than))


class Found(NamedTuple):
    """A partition: the cost of its parts, and where they end."""

    parts_cost: float
    ends: Places


@dataclass
class Bounds:
    """Lower bounds on F from passes: pairs (price, least of cost + price * parts)."""

    prices: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, price: float, value: float) -> None:
        self.prices.append(price)
        self.values.append(value)

    def of_any_parts(self) -> Bounds:
        """Those of prices that are not negative: they hold for parts that are not in a row, too.

        If such parts cost no less than as many or fewer that are in a row, as groups of two classes do.
        """
        pairs = [(price, value) for price, value in zip(self.prices, self.values, strict=True) if price >= 0]
        return Bounds([price for price, _ in pairs], [value for _, value in pairs])

    def below(self, numbers: Floats) -> Floats:
        """The greatest bound known for each number of parts."""
        out = np.full(len(numbers), -np.inf)
        for price, value in zip(self.prices, self.values, strict=True):
            np.maximum(out, value - price * numbers, out=out)
        return out

    def with_prior(self, prior: Floats) -> Floats:
        """The greatest bound known on models of 1, 2, ... parts with this prior; infinite where that is."""
        below = self.below(np.arange(1.0, len(prior) + 1))
        return np.where(np.isfinite(prior), below, np.inf) + prior


@dataclass
class Best:
    """The best model so far: its cost, its partition and whatever says which family it is of."""

    cost: float
    ends: Places
    tag: int = 0


def descend(
    solve: Callable[[float], Found], prior: Floats, best: Best, bounds: Bounds, tag: int, deadline: float
) -> None:
    """Price parts by the prior's slope where the best partition lies, until nothing changes: three passes or so."""
    place = min(max(8, len(best.ends) - 1), len(prior) - 1)
    tried: set[float] = set()
    while place >= 1 and time.monotonic() < deadline:
        price = _slope(prior, place)
        if price in tried:
            return
        tried.add(price)
        found = solve(price)
        take(found, price, prior, best, bounds, tag)
        place = min(len(found.ends) - 1, len(prior) - 1) or 1


def certify(
    solve: Callable[[float], Found],
    by_number: Callable[[int], list[Found] | None],
    prior: Floats,
    best: Best,
    bounds: Bounds,
    known: dict[int, float],
    tag: int,
    deadline: float,
) -> float:
    """Raise the lower bound until it meets the best cost; the bound reached.

    `known`: F at the least and the greatest number of parts. `by_number(k)` gives the best partitions
    into 1 .. k parts, for numbers that lie above the hull, where prices do not lead.
    """
    tried: set[float] = set()
    for _ in range(_MOST_PASSES):
        lower = bounds.with_prior(prior)
        for number, cost in known.items():
            if number <= len(prior):
                lower[number - 1] = max(lower[number - 1], cost + prior[number - 1])
        place = int(np.argmin(lower))
        if not is_cheaper(float(lower[place]), best.cost) or time.monotonic() > deadline:
            return min(float(lower[place]), best.cost)
        price = _bracket(place + 1, known)
        if price is None or price in tried:
            open_ = [number for number, bound in enumerate(lower, 1) if is_cheaper(float(bound), best.cost)]
            found = by_number(open_[-1])
            if not found:
                return float(lower[place])
            for number, one in enumerate(found, 1):
                known[number] = one.parts_cost
                _offer(one, number, prior, best, tag)
            continue
        tried.add(price)
        found_one = solve(price)
        known[len(found_one.ends)] = found_one.parts_cost
        take(found_one, price, prior, best, bounds, tag)
    return min(float(lower[place]), best.cost)


def take(found: Found, price: float, prior: Floats, best: Best, bounds: Bounds, tag: int) -> None:
    """Note what a pass found."""
    bounds.add(price, found.parts_cost + price * len(found.ends))
    _offer(found, len(found.ends), prior, best, tag)


def _offer(found: Found, number: int, prior: Floats, best: Best, tag: int) -> None:
    if number <= len(prior) and np.isfinite(found.parts_cost):
        cost = found.parts_cost + float(prior[number - 1])
        if is_cheaper(cost, best.cost):
            best.cost, best.ends, best.tag = cost, found.ends, tag


def _slope(prior: Floats, place: int) -> float:
    """The prior's increase from `place` parts to one more, at place + 1 the last; 0 where so many are impossible."""
    up = min(place + 1, len(prior) - 1)
    low, high = float(prior[up - 1]), float(prior[up])
    return high - low if math.isfinite(low) and math.isfinite(high) else 0.0


def _bracket(number: int, known: dict[int, float]) -> float | None:
    """The slope between the known numbers of parts around `number`; None where it is known itself."""
    if number in known:
        return None
    below = [k for k in known if k < number]
    above = [k for k in known if k > number]
    if not below or not above:
        return None
    a, b = max(below), min(above)
    return (known[a] - known[b]) / (b - a)
