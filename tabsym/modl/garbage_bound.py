"""No grouping of two classes with a garbage group costs less: a bound, raised until it meets the best model known.

The prior depends on how many modalities v are informative, that is not in the
garbage, and in how many groups k they are. For each pair the cost of the parts
is bounded from below in two ways:

- by what any partition into k + 1 groups costs (tight where v is large);
- for a price per informative modality, by the least of parts and price, less price * v.

The second is an integral over the garbage's share, of what the best groups beside it leave (`tabsym.modl.shares`).
What is lost: a modality may be in a group at one of its likely shares and not at another. That is nothing where
few modalities are on the verge, and from hundredths to a few nats in all where many are. And runs may be empty: the
modalities outside the garbage can be regrouped into at most as many groups that follow one another in class shares, at
no more cost; for those that are missing then nothing is asked here but their price in the prior.

The groups that the best price comes from are a model, often better than those that searches find: they are offered
as one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tabsym.modl.garbage import mean_price
from tabsym.modl.garbage_integrals import GarbageIntegrals
from tabsym.modl.ground import Ground, Grouping
from tabsym.modl.hull import Bounds, is_cheaper
from tabsym.modl.local import polish
from tabsym.modl.search import OutOfTime
from tabsym.modl.shares import ByShare

Floats = NDArray[np.float64]

# all of these trade time for nats of the gap, which benchmarks/modl/garbage.py shows
_MOST_COUNTED = 12
"""Beyond so many informative groups one column stands for all: the gain of any number, the prior of one more."""
_MOST_UNITS = 3000
"""Of more modalities of different counts the first integral alone would take minutes."""
_MOST_PRICES = 12
_WORTH_POLISHING = 1.001  # times the best cost: models that may become better


def bound_garbage(
    grounds: list[Ground],
    bounds: Bounds,
    best: Grouping,
    rng: np.random.RandomState,
    most_work: float,
) -> tuple[Grouping, float]:
    """The best grouping known by then, and a cost that none with a garbage group is below.

    Parameters
    ----------
    grounds : of single modalities at each granularity, none joined
    bounds : on the parts of any groups of the finest modalities, in a row or not: prices are not negative
    best : the best grouping so far, which the bound shall meet
    rng : of the order of moves
    most_work : float
        Values of integrands looked at, about 3e8 a second.
    """
    lower, price = np.inf, None
    for ground in grounds:
        if time.monotonic() > ground.deadline:
            return best, -np.inf
        try:
            bound = _BoundAt(ground, bounds, best, most_work / len(grounds), rng, price)
        except OutOfTime:
            return best, -np.inf
        lower = min(lower, bound.raised())
        price = next(reversed(bound.lines), price)  # what was enough here is likely to be enough there
        if bound.best is not best:
            best = bound.best.of_modalities(ground.units)
    return best, lower


_NOTHING = Grouping(np.inf, np.empty(0, dtype=np.int64))
_NO_MOVES = np.random.RandomState(0)  # nothing is moved for a first bound, and making one takes as long as the bound


def first_bound(ground: Ground, bounds: Bounds) -> float:
    """What a grouping with a garbage group costs at least, by what any grouping into as many groups does."""
    try:
        bound = _BoundAt(ground, bounds, _NOTHING, 0.0, _NO_MOVES)
    except OutOfTime:
        return -np.inf
    return float((bound.of_parts + bound.priors).min()) if len(bound.groups) else np.inf


@dataclass
class _BoundAt:
    """The bound at one granularity; numbers of groups are in columns (2 .. K, and more), v = 2 .. n - 1 in rows."""

    ground: Ground
    bounds: Bounds
    best: Grouping
    most_work: float
    rng: np.random.RandomState
    first_price: float | None = None
    lines: dict[float, Floats] = field(default_factory=dict)  # by price: parts and price cost at least (K,)

    def __post_init__(self) -> None:
        n, limit = len(self.ground.units), self.ground.max_parts
        most = n - 1 if limit is None else min(n - 1, limit - 1)
        self.groups = np.arange(2, min(_MOST_COUNTED, most) + 1)  # beside the garbage
        self.informative = np.arange(2, n)
        self.more = most > _MOST_COUNTED
        if not len(self.groups):
            return
        self.priors = np.array([self._priors(int(v)) for v in self.informative])
        numbers = np.append(self.groups, self.groups[-1] + 1) if self.more else self.groups
        any_parts = self._any_parts(numbers.astype(np.float64) + 1.0, most + 1.0)
        self.of_parts = np.tile(any_parts, (len(self.informative), 1))

    def _priors(self, v: int) -> Floats:
        """Of v informative modalities in 2 .. K groups; the prior of more is at least that of one more.

        Thousands of numbers take seconds.
        """
        if v % 64 == 0 and time.monotonic() > self.ground.deadline:
            raise OutOfTime
        most = len(self.groups) + 2 + int(self.more)
        return self.ground.all_with_garbage(most, len(self.ground.units) - v)[2:]

    def _any_parts(self, numbers: Floats, most: float) -> Floats:
        """What the parts of any grouping into so many groups cost at least; the last: into as many or more."""
        below = self.bounds.below(numbers)
        if self.more:
            below[-1] = self.bounds.below(np.arange(numbers[-1], most + 1)).min()
        return np.maximum(below, 0.0)

    def raised(self) -> float:
        """The bound, raised price by price until it meets the best cost, or further prices do not help."""
        if not len(self.groups):
            return np.inf
        units: ByShare | None = None
        while True:
            costs = self.of_parts + self.priors
            row, column = np.unravel_index(np.argmin(costs), costs.shape)
            lower = float(costs[row, column])
            if not is_cheaper(lower, self.best.cost) or len(self.lines) >= _MOST_PRICES:
                return lower
            price = self._next_price(int(self.informative[row]), int(column))
            if price is None or self.most_work <= 0:
                return lower
            if units is None:
                units = ByShare(self.ground.units.counts)
                integrals = GarbageIntegrals(units, self.most_work, self.ground.deadline)
            if len(units.counts) > _MOST_UNITS:
                return lower
            found = integrals.least(price, int(self.groups[-1]), self._needed(price))
            if found is None:
                return lower
            self.lines[price] = found.least[: costs.shape[1]]
            np.maximum(self.of_parts, self.lines[price] - price * self.informative[:, None], out=self.of_parts)
            self._offer(units, found.share, price)

    def _needed(self, price: float) -> Floats:
        """What parts and price must cost at least, by number of groups, for the bound to meet the best cost."""
        needed = self.best.cost - self.priors + price * self.informative[:, None]
        needed = np.where(self.of_parts + self.priors < self.best.cost, needed, -np.inf).max(axis=0)
        return needed if self.more else np.append(needed, -np.inf)

    def _offer(self, units: ByShare, share: float, price: float) -> None:
        """Take the groups that are best at this price, if they are better than the best model."""
        most = int(self.groups[-1])
        models = [self.ground.price(labels) for labels in units.groups(units.costs(share), price, most)]
        if not models:  # at this price nothing is better off outside the garbage
            return
        found = min(models, key=lambda one: one.cost)
        if found.cost < _WORTH_POLISHING * self.best.cost:
            found = polish(self.ground, found, self.rng)
        if is_cheaper(found.cost, self.best.cost):
            self.best = found

    def _next_price(self, v: int, column: int) -> float | None:
        """The first: above the prior's mean rise with v; then between those beside the best for this v, or beyond."""
        if not self.lines:
            return self.first_price or 0.25 + 1.5 * mean_price(self.ground)
        prices = sorted(self.lines)
        place = int(np.argmax([self.lines[price][column] - price * v for price in prices]))
        price = prices[place]
        at_start, at_end = place == 0, place == len(prices) - 1
        if at_start and at_end:
            at_end = 4 * v < len(self.informative)  # few are informative at a high price
            at_start = not at_end
        if at_start or at_end:
            return None if price < 0.02 else (1.6 if at_end else 0.55) * price
        below, above = prices[place - 1], prices[place + 1]
        if above - below < 0.1 * price:
            return None
        return 0.5 * (price + (below if price - below > above - price else above))
