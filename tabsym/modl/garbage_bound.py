"""No grouping of two classes with a garbage group costs less: a bound, raised until it meets the best model known.

The prior depends on how many modalities v are informative, that is not in the
garbage, and in how many groups k they are. For each pair the cost of the parts
is bounded from below in two ways:

- by what any partition into k + 1 groups costs (tight where v is large);
- for a price per informative modality, by the least of parts and price, less price * v.

The second is an integral over the garbage's share, of what the best groups beside it leave (`garbage.ByShare`).
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
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tabsym.modl.cuts import Bounds, OutOfTime, is_cheaper
from tabsym.modl.garbage import ByShare, shares_along
from tabsym.modl.grouping import Grouping, GroupTask
from tabsym.modl.local_search import cheapest, polish

Floats = NDArray[np.float64]

# all of these trade time for nats of the gap, which benchmarks/modl/garbage.py shows
_MAX_COUNTED = 12
"""Beyond so many informative groups one column stands for all: the gain of any number, the prior of one more."""
_MAX_UNITS = 3000
"""Of more modalities of different counts the first integral alone would take minutes."""
_MAX_PRICES = 12
_WORTH_POLISHING = 1.001  # times the best cost: models that may become better
_FIRST_CELLS = 12  # of the garbage's share
_MIN_LOWERING = 0.02  # nats by which a cell's halves must lower the bound to be halved again
_MIN_LN_SHARE = -6.0  # ln of a cell's share of the integral from which it is worth halving


def bound_garbage(
    tasks: list[GroupTask], bounds: Bounds, best: Grouping, rng: np.random.RandomState, max_work: float
) -> tuple[Grouping, float]:
    """The best grouping known by then, and a cost that none with a garbage group is below.

    Parameters
    ----------
    tasks : of single modalities at each granularity, none joined
    bounds : on the parts of any groups of the finest modalities, in a row or not: prices are not negative
    best : the best grouping so far, which the bound shall meet
    rng : of the order of moves
    max_work : float
        Values of integrands looked at, about 3e8 a second.
    """
    lower, price = np.inf, None
    for task in tasks:
        if time.monotonic() > task.deadline:
            return best, -np.inf
        try:
            bound = _BoundAt(task, bounds, best, price)
        except OutOfTime:
            return best, -np.inf
        lower = min(lower, bound.raised(max_work / len(tasks), rng))
        price = next(reversed(bound.lines), price)  # what was enough here is likely to be enough there
        if bound.best is not best:
            best = bound.best.of_modalities(task.units)
    return best, lower


def first_bound(task: GroupTask, bounds: Bounds) -> float:
    """What a grouping with a garbage group costs at least, by what any grouping into as many groups does."""
    try:
        bound = _BoundAt(task, bounds)
    except OutOfTime:
        return -np.inf
    return float((bound.of_parts + bound.priors).min()) if len(bound.groups) else np.inf


@dataclass
class _BoundAt:
    """The bound at one granularity; numbers of groups are in columns (2 .. K, and more), v = 2 .. n - 1 in rows."""

    task: GroupTask
    bounds: Bounds
    best: Grouping = field(default_factory=lambda: Grouping(np.inf, np.empty(0, dtype=np.int64)))
    first_price: float | None = None
    lines: dict[float, Floats] = field(default_factory=dict)  # by price: parts and price cost at least (K,)

    def __post_init__(self) -> None:
        n, limit = len(self.task.units), self.task.max_parts
        max_groups = n - 1 if limit is None else min(n - 1, limit - 1)
        self.groups = np.arange(2, min(_MAX_COUNTED, max_groups) + 1)  # beside the garbage
        self.informative = np.arange(2, n)
        self.more = max_groups > _MAX_COUNTED
        if not len(self.groups):
            return
        self.priors = np.array([self._priors(int(v)) for v in self.informative])
        numbers = np.append(self.groups, self.groups[-1] + 1) if self.more else self.groups
        any_parts = self._any_parts(numbers.astype(np.float64) + 1.0, max_groups + 1.0)
        self.of_parts = np.tile(any_parts, (len(self.informative), 1))

    def _priors(self, v: int) -> Floats:
        """Of v informative modalities in 2 .. K groups; the prior of more is at least that of one more.

        Thousands of numbers take seconds.
        """
        if v % 64 == 0 and time.monotonic() > self.task.deadline:
            raise OutOfTime
        max_groups = len(self.groups) + 2 + int(self.more)
        return self.task.garbage_priors(max_groups, len(self.task.units) - v)[2:]

    def _any_parts(self, numbers: Floats, max_groups: float) -> Floats:
        """What the parts of any grouping into so many groups cost at least; the last: into as many or more."""
        below = self.bounds.below(numbers)
        if self.more:
            below[-1] = self.bounds.below(np.arange(numbers[-1], max_groups + 1)).min()
        return np.maximum(below, 0.0)

    def raised(self, max_work: float, rng: np.random.RandomState) -> float:
        """The bound, raised price by price until it meets the best cost, or further prices do not help."""
        if not len(self.groups):
            return np.inf
        units: ByShare | None = None
        while True:
            costs = self.of_parts + self.priors
            row, column = np.unravel_index(np.argmin(costs), costs.shape)
            lower = float(costs[row, column])
            if not is_cheaper(lower, self.best.cost) or len(self.lines) >= _MAX_PRICES:
                return lower
            price = self._next_price(int(self.informative[row]), int(column))
            if price is None or max_work <= 0:
                return lower
            if units is None:
                units = ByShare(self.task.units.counts)
                integrals = GarbageIntegrals(units, max_work, self.task.deadline)
            if len(units.counts) > _MAX_UNITS:
                return lower
            integral = integrals.least(price, int(self.groups[-1]), self._needed(price))
            if integral is None:
                return lower
            self.lines[price] = integral.least[: costs.shape[1]]
            np.maximum(self.of_parts, self.lines[price] - price * self.informative[:, None], out=self.of_parts)
            self._offer(units, integral.share, price, rng)

    def _needed(self, price: float) -> Floats:
        """What parts and price must cost at least, by number of groups, for the bound to meet the best cost."""
        needed = self.best.cost - self.priors + price * self.informative[:, None]
        needed = np.where(self.of_parts + self.priors < self.best.cost, needed, -np.inf).max(axis=0)
        return needed if self.more else np.append(needed, -np.inf)

    def _offer(self, units: ByShare, share: float, price: float, rng: np.random.RandomState) -> None:
        """Take the groups that are best at this price, if they are better than the best model."""
        models = [self.task.price(labels) for labels in units.groups(units.costs(share), price, int(self.groups[-1]))]
        if not models:  # at this price nothing is better off outside the garbage
            return
        model = cheapest(*models)
        if model.cost < _WORTH_POLISHING * self.best.cost:
            model = polish(self.task, model, rng)
        if is_cheaper(model.cost, self.best.cost):
            self.best = model

    def _next_price(self, v: int, column: int) -> float | None:
        """The first: above the prior's mean rise with v; then between those beside the best for this v, or beyond."""
        if not self.lines:
            return self.first_price or 0.25 + 1.5 * self._mean_price()
        prices = sorted(self.lines)
        position = int(np.argmax([self.lines[price][column] - price * v for price in prices]))
        price = prices[position]
        at_start, at_end = position == 0, position == len(prices) - 1
        if at_start and at_end:
            at_end = 4 * v < len(self.informative)  # few are informative at a high price
            at_start = not at_end
        if at_start or at_end:
            return None if price < 0.02 else (1.6 if at_end else 0.55) * price
        below, above = prices[position - 1], prices[position + 1]
        if above - below < 0.1 * price:
            return None
        return 0.5 * (price + (below if price - below > above - price else above))

    def _mean_price(self) -> float:
        """How much the prior of two groups beside the garbage rises with each modality not in it, on average."""
        n = len(self.task.units)
        return max(self.task.garbage_prior(3, 1) - self.task.garbage_prior(3, n - 2), 0.0) / (n - 2)


class Integral(NamedTuple):
    """What parts and price cost at least, by number of groups; the garbage's share where two groups gain most."""

    least: Floats
    share: float


class GarbageIntegrals:
    """Integrals over the garbage's share."""

    def __init__(self, units: ByShare, max_work: float, deadline: float) -> None:
        self.units, self.max_work, self.deadline = units, max_work, deadline

    @property
    def spent(self) -> bool:
        """Whether the work or the time is used up."""
        return self.units.work > self.max_work or time.monotonic() > self.deadline

    def least(self, price: float, max_groups: int, needed: Floats) -> Integral | None:
        """For 2 .. `max_groups` informative groups, then any number of them; None if there is no time for a first look.

        Cells of the share are halved where most is to be had, until what is `needed` is reached.
        """
        cells: list[_ShareCell] = []
        for start, end in pairwise(np.linspace(0.0, np.pi / 2, _FIRST_CELLS + 1)):
            if self.spent:
                return None
            cells.append(_ShareCell(start, end, self._mass(start, end, price, max_groups)))
        finished: list[_ShareCell] = []
        while True:
            mass = np.logaddexp.reduce([cell.mass for cell in cells + finished], axis=0)
            short = -mass < needed
            share = [float((cell.mass - mass)[short].max()) if short.any() else -np.inf for cell in cells]
            position = int(np.argmax(share)) if cells else 0
            if not cells or share[position] < _MIN_LN_SHARE or self.spent:
                likely = max(cells + finished, key=lambda cell: float(cell.mass[0]))
                return Integral(-mass, float(shares_along(np.array(0.5 * (likely.start + likely.end)))))
            cell = cells.pop(position)
            middle = 0.5 * (cell.start + cell.end)
            halves = [
                _ShareCell(a, b, self._mass(a, b, price, max_groups))
                for a, b in ((cell.start, middle), (middle, cell.end))
            ]
            lowered = cell.mass - np.logaddexp(halves[0].mass, halves[1].mass)
            (finished if float(lowered[short].max()) < _MIN_LOWERING else cells).extend(halves)

    def _mass(self, start: float, end: float, price: float, max_groups: int) -> Floats:
        """ln of the integral of exp(-parts - price) over a cell of the garbage's share, at most, by number of groups.

        In the cell the cost of a modality in the garbage lies above its tangent; what is gained beside
        it is convex along the tangent, so its logarithm lies below the line between the ends.
        """
        q_start, q_end = shares_along(np.array([start, end]))
        q, half = 0.5 * (q_start + q_end), 0.5 * (q_end - q_start)
        cost, rise = self.units.costs(q), half * (self.units.counts @ [1.0 / (1.0 - q), -1.0 / q])
        left, right = (
            self.units.gained(at_end, price, max_groups) - self.units.times @ at_end
            for at_end in (cost - rise, cost + rise)
        )
        return np.asarray(np.log(2.0 * half) + _ln_mean_exp(left, right))


@dataclass(frozen=True)
class _ShareCell:
    """A cell of the garbage's share, in angles, and the ln of what it holds at most, by number of groups."""

    start: float
    end: float
    mass: Floats


def _ln_mean_exp(x: Floats, y: Floats) -> Floats:
    """ln of the mean of exp over a line from x to y."""
    d = np.abs(x - y)
    wide = np.where(d > 1e-9, d, 1.0)
    return np.asarray(np.maximum(x, y) + np.where(d > 1e-9, np.log(-np.expm1(-wide) / wide), 0.0))
