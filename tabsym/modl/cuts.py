"""The exact search over cuts of ordered blocks: intervals, and categories in the order of their class proportions.

Let F(I) be the least cost of the parts of any partition into I parts. A search with a price p per part finds
L(p) = min F(I) + p I, so F(I) >= L(p) - p I for every I at once: each bounds all numbers of parts from below. With the
prior of the model added, the least of the bounds is a lower bound on the optimum, and the price that is searched next
is that of the number of parts that could still beat the best one known, on the lower convex hull of cost against
number.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from tabsym.modl import kernels
from tabsym.modl.criterion import ln_factorials, parts_cost, target_intervals_cost

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

TOLERANCE = 1e-11
"""Relative: costs closer than this are equal."""
_MAX_PRICES = 60  # time for a certificate
_MAX_WORK_BY_NUMBER = 6e8  # costs that a search by number of parts may look at: time for proofs where no price leads
_CLOCK_EVERY = 512  # boundaries between looks at the clock


class OutOfTime(Exception):
    """The time limit passed inside a search."""


def deadline_of(time_limit: float | None) -> float:
    """The time at which a search ends."""
    return time.monotonic() + (np.inf if time_limit is None else time_limit)


def is_cheaper(cost: float, than: float) -> bool:
    """Whether a cost is lower by more than rounding; any is lower than an infinite one."""
    return bool(cost < (than - TOLERANCE * abs(than) if math.isfinite(than) else than))


# -- what is cut ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class CutTask:
    """What is cut: sums of class counts (J, B + 1) before each block boundary, and the constraints.

    `table`: ln k! for whole counts, empty for others; `min_rows`: of a part.
    `value` (B + 1,): sums before each boundary of what must be monotone per row; None where nothing must.
    `of_target`: whether the blocks are of a regression's target, and the classes the parts of its source.
    """

    cumulative: Floats
    table: Floats
    min_rows: float
    deadline: float
    value: Floats | None = None
    of_target: bool = False

    @staticmethod
    def of(counts: Floats, min_rows: float, deadline: float, table: Floats | None = None) -> CutTask:
        """Blocks of these class counts (B, J); the `table` may be one made before."""
        cumulative = np.zeros((counts.shape[1], len(counts) + 1))
        np.cumsum(counts.T, axis=1, out=cumulative[:, 1:])
        return CutTask(cumulative, factorials_of(cumulative) if table is None else table, min_rows, deadline)

    @property
    def n_blocks(self) -> int:
        return self.cumulative.shape[1] - 1

    @property
    def n_classes(self) -> int:
        return self.cumulative.shape[0]

    @property
    def shift(self) -> int:
        """What the kernels add to the rows of a part."""
        return 0 if self.of_target else self.n_classes - 1

    @property
    def ln_constant(self) -> float:
        """What the kernels leave out of the cost of a part."""
        return 0.0 if self.of_target else ln_constant(self.n_classes)

    @cached_property
    def sizes(self) -> Floats:
        """Rows before each boundary (B + 1,)."""
        return np.asarray(self.cumulative.sum(axis=0))

    def part_counts(self, ends: Indices) -> Floats:
        """Class counts (I, J) of the intervals that end at these boundaries."""
        return np.ascontiguousarray(np.diff(self.cumulative[:, np.concatenate([[0], ends])], axis=1).T)

    def cost(self, ends: Indices) -> float:
        """What the intervals that end at these boundaries cost, but for the prior."""
        counts = self.part_counts(ends)
        return target_intervals_cost(counts) if self.of_target else parts_cost(counts)

    def at(self, boundaries: Indices) -> CutTask:
        """The same rows in coarser blocks, which end at these boundaries (without 0, with B)."""
        positions = np.concatenate([[0], boundaries])
        value = None if self.value is None else self.value[positions]
        return replace(self, cumulative=np.ascontiguousarray(self.cumulative[:, positions]), value=value)

    def between_unlike(self, boundaries: Indices) -> Indices:
        """Boundaries but those between two blocks of rows of one and the same class: no optimum cuts there."""
        has_class = np.diff(self.cumulative[:, np.concatenate([[0], boundaries])], axis=1) > 0.0
        pure = np.where(has_class.sum(axis=0) == 1, has_class.argmax(axis=0), -1)
        return boundaries[np.append((pure[1:] != pure[:-1]) | (pure[1:] < 0), True)]


def factorials_of(cumulative: Floats) -> Floats:
    """ln k! for counts with these sums (J, B + 1): a table where they are whole, empty where they are not."""
    is_whole = bool((cumulative == np.floor(cumulative)).all())
    return ln_factorials(float(cumulative[:, -1].sum()), len(cumulative), whole=is_whole)


def ln_constant(n_classes: int) -> float:
    """ln (J - 1)!, which the kernels leave out of the cost of a part."""
    return float(np.log(np.arange(1, n_classes)).sum())


# -- what a search finds ---------------------------------------------------------------------------


class Cuts(NamedTuple):
    """A partition: the cost of its parts, and where they end."""

    parts_cost: float
    ends: Indices


@dataclass
class Bounds:
    """Lower bounds on F from searches at prices: pairs (price, least of cost + price * parts)."""

    prices: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, price: float, value: float) -> None:
        """Take in the result of a search."""
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
    """The best model so far: its cost, where its parts end, and Khiops' granularity."""

    cost: float
    ends: Indices
    granularity: int = 0

    def offer(self, cuts: Cuts, prior: Floats, granularity: int) -> None:
        """Take these cuts where, with the prior of 1, 2, ... parts, they are cheaper."""
        n_parts = len(cuts.ends)
        if n_parts <= len(prior) and np.isfinite(cuts.parts_cost):
            cost = cuts.parts_cost + float(prior[n_parts - 1])
            if is_cheaper(cost, self.cost):
                self.cost, self.ends, self.granularity = cost, cuts.ends, granularity


# -- searches --------------------------------------------------------------------------------------


class PricedSearch:
    """Searches over fixed boundaries at a price per part, in the task's own block numbers."""

    def __init__(self, task: CutTask, boundaries: Indices) -> None:
        self.boundaries = boundaries
        self.task = task.at(boundaries)
        self.ln_classes = task.ln_constant
        n = self.task.n_blocks
        self.best, self.before, self.alive = np.empty(n + 1), np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
        self.costs = np.empty(n + 1)
        whole = len(task.table) > 0
        two = task.n_classes == 2 and not task.of_target and whole and task.min_rows <= 1
        self.two = self.task.cumulative.astype(np.int32) if two else None
        if not two:
            self.sums = np.ascontiguousarray(self.task.cumulative.T, dtype=np.int64 if whole else np.float64)
            self.sizes = self.sums.sum(axis=1)
            self.changed = np.empty(task.n_classes, np.int64)

    def solve(self, price: float) -> Cuts:
        """The partition of least cost + price * parts."""
        task, n = self.task, self.task.n_blocks
        of_part = price - self.ln_classes
        self.best[0], self.best[1:] = 0.0, np.inf
        self.alive[0], n_alive = 0, 1
        for start in range(1, n + 1, _CLOCK_EVERY):
            stop = min(n + 1, start + _CLOCK_EVERY)
            state = start, stop, self.best, self.before, self.alive
            if self.two is not None:
                n_alive = kernels.best_cuts_two(self.two[0], self.two[1], task.table, of_part, *state, n_alive)
            else:
                n_alive = kernels.best_cuts(
                    self.sums, self.sizes, task.table, task.shift, of_part, task.min_rows, *state, self.costs,
                    self.changed, n_alive,
                )  # fmt: skip
            if time.monotonic() > task.deadline:
                raise OutOfTime
        ends, last = [], n
        while last > 0:
            ends.append(last)
            last = int(self.before[last])
        return Cuts(float(self.best[n]) - price * len(ends), self.boundaries[np.array(ends[::-1], dtype=np.int64) - 1])

    def by_number(self, max_parts: int) -> list[Cuts] | None:
        """The best partitions into 1 .. `max_parts` parts; None where that would take too long."""
        task, n = self.task, self.task.n_blocks
        if 0.5 * n * n * max(max_parts, task.n_classes) > _MAX_WORK_BY_NUMBER:
            return None
        best = np.full((max_parts + 1, n + 1), np.inf)
        best[0, 0] = 0.0
        before = np.zeros((max_parts + 1, n + 1), dtype=np.int32)
        kernels.best_cuts_by_number(task.cumulative, task.table, task.shift, task.min_rows, best, before)
        cuts = []
        for k in range(1, max_parts + 1):
            ends, last = np.empty(k, dtype=np.int64), n
            for i in range(k, 0, -1):
                ends[i - 1] = last
                last = before[i, last]
            cuts.append(Cuts(float(best[k, n]) - k * self.ln_classes, self.boundaries[ends - 1]))
        return cuts


def exact_cuts(
    task: CutTask, boundaries: Indices, prior: Floats, best: Best, bounds: Bounds, granularity: int,
    search: PricedSearch | None = None,
) -> float:  # fmt: skip
    """The lower bound over cuts at these boundaries, raised until it meets the best cost or time is out.

    `bounds` may come from finer boundaries, whose bounds hold here too; `best` is kept up to date.
    `search`: one under further constraints.
    """
    if len(prior) < 2:
        return best.cost
    constrained = search is not None or task.min_rows > 1
    search = PricedSearch(task, boundaries) if search is None else search
    known = {1: task.cost(boundaries[-1:])}
    if not constrained:
        known[len(boundaries)] = task.cost(boundaries)
    try:
        if not bounds.prices:
            descend(search, prior, best, bounds, granularity)
        if constrained:
            cuts = solve_at(search, 0.0, prior, best, bounds, granularity)
            known[len(cuts.ends)] = cuts.parts_cost
        return certify(search, prior, best, bounds, known, granularity, task.deadline)
    except OutOfTime:
        return float(np.min(bounds.with_prior(prior)))


def descend_cuts(
    task: CutTask, boundaries: Indices, prior: Floats, best: Best, granularity: int, search: PricedSearch | None = None
) -> None:
    """A good model with cuts at these boundaries; `search`: one under further constraints."""
    max_parts = min(len(boundaries), len(prior))
    if max_parts > 1:
        try:
            search = PricedSearch(task, boundaries) if search is None else search
            descend(search, prior[:max_parts], best, Bounds(), granularity)
        except OutOfTime:
            return


def one_cut_costs(task: CutTask, boundaries: Indices) -> Floats:
    """What two parts cost that are cut at each of these boundaries but the last."""
    left = task.cumulative[:, boundaries[:-1]]
    right = task.cumulative[:, -1:] - left
    sizes = left.sum(axis=0), right.sum(axis=0)
    cost = sum(
        _ln_factorial(size + task.shift, task.table) - _ln_factorial(side, task.table).sum(axis=0)
        for side, size in zip((left, right), sizes, strict=True)
    )
    return np.where(np.minimum(*sizes) < task.min_rows, np.inf, cost) - 2 * task.ln_constant


def _ln_factorial(counts: Floats, table: Floats) -> Floats:
    return table[counts.astype(np.intp)] if len(table) else np.asarray(gammaln(counts + 1))


def take_one_cut(costs: Floats, boundaries: Indices, prior: Floats, best: Best, granularity: int) -> None:
    """The best two intervals, which searches by prices may miss: they find what lies on the hull."""
    if len(boundaries) > 1:
        position = int(np.argmin(costs))
        cuts = Cuts(float(costs[position]), np.array([boundaries[position], boundaries[-1]]))
        best.offer(cuts, prior, granularity)


# -- prices and numbers of parts -------------------------------------------------------------------


def descend(search: PricedSearch, prior: Floats, best: Best, bounds: Bounds, granularity: int) -> None:
    """Price parts by the prior's slope where the best partition lies, until nothing changes: three prices or so."""
    position = min(max(8, len(best.ends) - 1), len(prior) - 1)
    tried: set[float] = set()
    while position >= 1 and time.monotonic() < search.task.deadline:
        price = _slope(prior, position)
        if price in tried:
            return
        tried.add(price)
        cuts = solve_at(search, price, prior, best, bounds, granularity)
        position = min(len(cuts.ends) - 1, len(prior) - 1) or 1


def certify(
    search: PricedSearch, prior: Floats, best: Best, bounds: Bounds, known: dict[int, float], granularity: int,
    deadline: float,
) -> float:  # fmt: skip
    """Raise the lower bound until it meets the best cost; the bound reached.

    `known`: F at the least and the greatest number of parts. Numbers that lie above the hull, where prices do not lead,
    are searched `by_number`.
    """
    tried: set[float] = set()
    for _ in range(_MAX_PRICES):
        lower = bounds.with_prior(prior)
        for number, cost in known.items():
            if number <= len(prior):
                lower[number - 1] = max(lower[number - 1], cost + prior[number - 1])
        position = int(np.argmin(lower))
        if not is_cheaper(float(lower[position]), best.cost) or time.monotonic() > deadline:
            return min(float(lower[position]), best.cost)
        price = _bracket(position + 1, known)
        if price is None or price in tried:
            open_ = [number for number, bound in enumerate(lower, 1) if is_cheaper(float(bound), best.cost)]
            by_number = search.by_number(open_[-1])
            if not by_number:
                return float(lower[position])
            for number, partition in enumerate(by_number, 1):
                known[number] = partition.parts_cost
                best.offer(partition, prior, granularity)
            continue
        tried.add(price)
        cuts = solve_at(search, price, prior, best, bounds, granularity)
        known[len(cuts.ends)] = cuts.parts_cost
    return min(float(lower[position]), best.cost)


def solve_at(search: PricedSearch, price: float, prior: Floats, best: Best, bounds: Bounds, granularity: int) -> Cuts:
    """The best cuts at a price; the bound and the model that they are, are noted."""
    cuts = search.solve(price)
    bounds.add(price, cuts.parts_cost + price * len(cuts.ends))
    best.offer(cuts, prior, granularity)
    return cuts


def _slope(prior: Floats, position: int) -> float:
    """What the prior grows by from `position` parts to one more, the last at position + 1; 0 if impossible."""
    up = min(position + 1, len(prior) - 1)
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
