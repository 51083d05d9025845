"""The exact search over cuts of ordered blocks, for intervals and for categories in the order of their class shares."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from tabsym.modl import kernels_ordered as kernels
from tabsym.modl.criterion import ln_factorials, parts_cost, target_intervals_cost
from tabsym.modl.hull import Best, Bounds, Found, certify, descend, is_cheaper, take

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

_MOST_BY_NUMBER = 6e8  # costs that a search by number of parts may look at: time for proofs where no price leads
_CLOCK_EVERY = 512  # boundaries between looks at the clock


class OutOfTime(Exception):
    """The time limit passed inside a search."""


@dataclass(frozen=True)
class Task:
    """What is cut: sums of class counts (J, B + 1) before each block boundary, and the constraints.

    `value` (B + 1,): sums before each boundary of what must be monotone per row; None where nothing must.
    `of_target`: whether the blocks are of a regression's target, and the classes the parts of its source.
    """

    cumulative: Floats
    table: Floats
    least: float
    deadline: float
    value: Floats | None = None
    of_target: bool = False

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

    def part_counts(self, ends: Places) -> Floats:
        """Class counts (I, J) of the intervals that end at these boundaries."""
        return np.ascontiguousarray(np.diff(self.cumulative[:, np.concatenate([[0], ends])], axis=1).T)

    def cost(self, ends: Places) -> float:
        counts = self.part_counts(ends)
        return target_intervals_cost(counts) if self.of_target else parts_cost(counts)

    def at(self, boundaries: Places) -> Task:
        """The same rows in coarser blocks, which end at these boundaries (without 0, with B)."""
        places = np.concatenate([[0], boundaries])
        value = None if self.value is None else self.value[places]
        return replace(self, cumulative=np.ascontiguousarray(self.cumulative[:, places]), value=value)


def make_task(counts: Floats, least: float, deadline: float, table: Floats | None = None) -> Task:
    """The task of blocks' class counts (B, J); the `table` of ln k! may be one made before."""
    cumulative = np.zeros((counts.shape[1], len(counts) + 1))
    np.cumsum(counts.T, axis=1, out=cumulative[:, 1:])
    return Task(cumulative, factorials_of(cumulative) if table is None else table, least, deadline)


def between_unlike(task: Task, boundaries: Places) -> Places:
    """Boundaries but those between two blocks of rows of one and the same class."""
    pure = np.empty(len(boundaries), dtype=np.int64)
    kernels.pure_classes(task.cumulative, boundaries, pure)
    return boundaries[np.append((pure[1:] != pure[:-1]) | (pure[1:] < 0), True)]


def factorials_of(cumulative: Floats) -> Floats:
    """ln k! for counts with these sums (J, B + 1): a table where they are whole, empty where they are not."""
    return ln_factorials(float(cumulative[:, -1].sum()), len(cumulative), whole=kernels.all_whole(cumulative))


def ln_constant(n_classes: int) -> float:
    """ln (J - 1)!, which the kernels leave out of the cost of a part."""
    return float(np.log(np.arange(1, n_classes)).sum())


def deadline_of(time_limit: float | None) -> float:
    return time.monotonic() + (np.inf if time_limit is None else time_limit)


class Searchable(Protocol):
    """What finds the best cuts at a price per part."""

    def solve(self, price: float) -> Found: ...

    def by_number(self, most: int) -> list[Found] | None: ...


def exact_cuts(
    task: Task,
    boundaries: Places,
    prior: Floats,
    best: Best,
    bounds: Bounds,
    tag: int,
    passes: Searchable | None = None,
) -> float:
    """The lower bound over cuts at these boundaries, raised until it meets the best cost or time is out.

    `bounds` may come from finer boundaries, whose bounds hold here too; `best` is kept up to date.
    `passes`: a search under further constraints.
    """
    if len(prior) < 2:
        return best.cost
    constrained = passes is not None or task.least > 1
    passes = Passes(task, boundaries) if passes is None else passes
    known = {1: task.cost(boundaries[-1:])}
    if not constrained:
        known[len(boundaries)] = task.cost(boundaries)
    try:
        if not bounds.prices:
            descend(passes.solve, prior, best, bounds, tag, task.deadline)
        if constrained:
            found = passes.solve(0.0)
            take(found, 0.0, prior, best, bounds, tag)
            known[len(found.ends)] = found.parts_cost
        return certify(passes.solve, passes.by_number, prior, best, bounds, known, tag, task.deadline)
    except OutOfTime:
        return float(np.min(bounds.with_prior(prior)))


def descend_cuts(task: Task, boundaries: Places, prior: Floats, best: Best, tag: int) -> None:
    """A good model with cuts at these boundaries."""
    most = min(len(boundaries), len(prior))
    if most > 1:
        try:
            descend(Passes(task, boundaries).solve, prior[:most], best, Bounds(), tag, task.deadline)
        except OutOfTime:
            return


def take_one_cut(task: Task, boundaries: Places, prior: float, best: Best, tag: int) -> None:
    """The best two intervals, which searches by prices may miss: they find what lies on the hull."""
    if len(boundaries) < 2:
        return
    left = task.cumulative[:, boundaries[:-1]]
    right = task.cumulative[:, -1:] - left
    sizes = left.sum(axis=0), right.sum(axis=0)
    cost = sum(
        gammaln(size + task.shift + 1) - gammaln(side + 1).sum(axis=0)
        for side, size in zip((left, right), sizes, strict=True)
    )
    cost = np.where(np.minimum(*sizes) < task.least, np.inf, cost)
    place = int(np.argmin(cost))
    total = float(cost[place]) - 2 * task.ln_constant + prior
    if is_cheaper(total, best.cost):
        best.cost, best.ends, best.tag = total, np.array([boundaries[place], boundaries[-1]]), tag


class Passes:
    """Priced searches over fixed boundaries, in the task's own block numbers."""

    def __init__(self, task: Task, boundaries: Places) -> None:
        self.boundaries = boundaries
        self.task = task.at(boundaries)
        self.ln_classes = task.ln_constant
        n = self.task.n_blocks
        self.best, self.before, self.alive = np.empty(n + 1), np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
        two = task.n_classes == 2 and not task.of_target and len(task.table) > 0 and task.least <= 1
        self.two = self.task.cumulative.astype(np.int32) if two else None

    def solve(self, price: float) -> Found:
        """The partition of least cost + price * parts."""
        task, n = self.task, self.task.n_blocks
        own = price - self.ln_classes
        self.best[0], self.best[1:] = 0.0, np.inf
        self.alive[0], n_alive = 0, 1
        for start in range(1, n + 1, _CLOCK_EVERY):
            stop = min(n + 1, start + _CLOCK_EVERY)
            if self.two is not None:
                n_alive = kernels.best_cuts_two(
                    self.two[0], self.two[1], task.table, own, start, stop, self.best, self.before, self.alive, n_alive
                )
            else:
                n_alive = kernels.best_cuts(
                    task.cumulative, task.table, task.shift, own, task.least, start, stop, self.best, self.before,
                    self.alive, n_alive,
                )  # fmt: skip
            if time.monotonic() > task.deadline:
                raise OutOfTime
        ends = _trace(self.before, n)
        return Found(float(self.best[n]) - price * len(ends), self.boundaries[ends - 1])

    def by_number(self, most: int) -> list[Found] | None:
        """The best partitions into 1 .. most parts; None where that would take too long."""
        task, n = self.task, self.task.n_blocks
        if 0.5 * n * n * max(most, task.n_classes) > _MOST_BY_NUMBER:
            return None
        best = np.full((most + 1, n + 1), np.inf)
        best[0, 0] = 0.0
        before = np.zeros((most + 1, n + 1), dtype=np.int32)
        kernels.best_cuts_by_number(task.cumulative, task.table, task.shift, task.least, best, before)
        found = []
        for k in range(1, most + 1):
            ends, last = np.empty(k, dtype=np.int64), n
            for i in range(k, 0, -1):
                ends[i - 1] = last
                last = before[i, last]
            found.append(Found(float(best[k, n]) - k * self.ln_classes, self.boundaries[ends - 1]))
        return found


def _trace(before: Places, last: int) -> Places:
    ends = []
    while last > 0:
        ends.append(last)
        last = int(before[last])
    return np.array(ends[::-1], dtype=np.int64)
