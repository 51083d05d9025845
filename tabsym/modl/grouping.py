"""What searches for groups of categories have in common.

Modalities at each granularity, priors and costs of groups; and moves and joins of groups, to a local optimum.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from tabsym.modl import kernels
from tabsym.modl.criterion import (
    GARBAGE_FROM,
    GroupPrices,
    Lumps,
    garbage_priors,
    group_prices,
    group_prior,
    lumps_by_granularity,
    null_prior,
    parts_cost,
)
from tabsym.modl.cuts import CutTask, deadline_of, factorials_of, is_cheaper, ln_constant
from tabsym.modl.intervals import CutGrids
from tabsym.modl.partition import Settings, cheapest, labels_along, quantile_boundaries, sum_by, without_gaps

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
State = tuple[Floats, Indices, Floats, Floats]  # of groups: class counts, units, modalities, costs

MAX_GROUPS = 512
"""Numbers of groups that have a prior: time, for models of more groups."""
MAX_CUT_PLACES = 1024
"""With more units in an order, cuts are at this number of quantiles: faster, but less exact."""
_MAX_POLISHES, _MAX_ITER = 40, 40  # rounds of moves and joins, and iterations of moves in each
_MORE_GROUPS = 4  # that moves may make in a round
_MAX_WORK = 10**8  # counts that are read between looks at the clock


def by_proportion(counts: Floats, of: int) -> Indices:
    """Units in the order of their proportion of one class."""
    return np.argsort(counts[:, of] / counts.sum(axis=1), kind="stable")


def by_main_axis(counts: Floats) -> Indices:
    """Units along the main axis of their class proportions (the first of correspondence analysis)."""
    sizes, classes = counts.sum(axis=1), counts.sum(axis=0)
    present = classes > 0
    proportions = counts[:, present] / sizes[:, None]
    deviation = (proportions - classes[present] / sizes.sum()) / np.sqrt(classes[present] / sizes.sum())
    scatter = (deviation * sizes[:, None]).T @ deviation
    return np.argsort(deviation @ np.linalg.eigh(scatter)[1][:, -1], kind="stable")


def costs_of_groups(groups: Floats) -> Floats:
    """What each group costs, but for what is the same for all."""
    return np.asarray(gammaln(groups.sum(axis=1) + groups.shape[1]) - gammaln(groups + 1).sum(axis=1))


# -- what is grouped -------------------------------------------------------------------------------


@dataclass(frozen=True)
class GroupingUnits:
    """What is grouped: modalities, or sets of them that no optimum separates.

    Attributes
    ----------
    counts : (U, J)
    weights : (U,)
        Modalities in each unit, as the prior counts them (those below the granularity are one).
    labels : (M,)
        The unit of each modality.
    n_modalities : int
        As the prior counts them.
    granularity : int
    """

    counts: Floats
    weights: Floats
    labels: Indices
    n_modalities: int
    granularity: int = 0

    @staticmethod
    def at(lumps: Lumps, counts: Floats) -> GroupingUnits:
        """Modalities with these rows of each class, at a granularity."""
        sums = sum_by(lumps.labels, counts, lumps.n)
        return GroupingUnits(sums, np.ones(lumps.n), lumps.labels, lumps.n, lumps.granularity)

    def __len__(self) -> int:
        return len(self.counts)

    def joined(self, labels: Indices) -> GroupingUnits:
        """Units joined by `labels` (U,)."""
        n = int(labels.max()) + 1
        weights = np.bincount(labels, self.weights, minlength=n).astype(np.float64)
        counts = sum_by(labels, self.counts, n)
        return GroupingUnits(counts, weights, labels[self.labels], self.n_modalities, self.granularity)


def join_proportional(units: GroupingUnits) -> GroupingUnits:
    """Join units with equal class proportions.

    The cost of a part is concave along every direction, so moving parts of one direction between
    two groups is best at an end: all in one.
    """
    counts = units.counts
    if not (counts == np.floor(counts)).all() or len(counts) < 2 or counts.max() > 2.0**53:  # these have no last digit
        return units
    divisor = np.gcd.reduce(counts.astype(np.int64), axis=1)
    reduced = np.ascontiguousarray(counts.astype(np.int64) // divisor[:, None])
    if reduced.shape[1] == 2 and reduced.max() < 2**31:  # two numbers as one sort much faster than two
        keys = reduced[:, 0] * (reduced.max() + 1) + reduced[:, 1]
        return units.joined(np.unique(keys, return_inverse=True)[1].ravel())
    keys = reduced @ np.random.RandomState(0).randint(1, 2**62, reduced.shape[1])  # so do many: equal rows, equal keys
    _, first, labels = np.unique(keys, return_index=True, return_inverse=True)
    if not (reduced[first[labels.ravel()]] == reduced).all():  # other rows, too
        labels = np.unique(reduced, axis=0, return_inverse=True)[1]
    return units.joined(labels.ravel())


@dataclass(frozen=True)
class Grouping:
    """A model: its cost, the group of each unit or modality, which group is the garbage, and Khiops' granularity."""

    cost: float
    labels: Indices
    garbage: int | None = None
    granularity: int = 0

    def of_modalities(self, units: GroupingUnits) -> Grouping:
        """With the group of each modality, from that of each of the units."""
        return Grouping(self.cost, self.labels[units.labels], self.garbage, units.granularity)


class GroupSearch:
    """What is grouped, under which criterion and constraints, at every granularity."""

    def __init__(
        self, counts: Floats, settings: Settings, min_parts: int = 1, lumps: list[Lumps] | None = None
    ) -> None:
        self.counts = np.ascontiguousarray(counts, dtype=np.float64)
        self.settings = settings
        self.min_parts = min_parts
        self.min_rows = float(settings.min_part_count)
        self.deadline = deadline_of(settings.time_limit)
        self.n_rows = float(self.counts.sum())
        self.table = factorials_of(np.ascontiguousarray(np.cumsum(self.counts, axis=0).T))
        prior = null_prior(settings.criterion, n_rows=self.n_rows, n_modalities=len(self.counts))
        self.null = prior + parts_cost(self.counts.sum(axis=0)[None, :])
        self._lumps = lumps
        self._priors: dict[tuple[int, int, int], Floats] = {}

    @cached_property
    def rng(self) -> np.random.RandomState:
        """Of the order of moves and of starts; made on first use, as that takes as long as a small column."""
        return np.random.RandomState(self.settings.random_state)

    @property
    def insists(self) -> bool:
        """Whether time is given for further starts and for proofs."""
        return self.settings.time_limit is not None

    @property
    def is_thorough(self) -> bool:
        """Whether there are many starts; few where the search is a round of a grid's, of which there are others."""
        return self.settings.prove or self._lumps is None

    @property
    def one_group(self) -> Grouping:
        """Where a search starts."""
        cost = self.null if self.min_parts < 2 else np.inf
        return Grouping(cost, np.zeros(len(self.counts), dtype=np.int64))

    @property
    def has_garbage(self) -> bool:
        """Whether models with a garbage group are searched."""
        return self.settings.criterion == "khiops" and len(self.counts) >= GARBAGE_FROM

    def families(self) -> list[GroupingUnits]:
        """What the modalities can be at each granularity (under "page": themselves)."""
        n = len(self.counts)
        if self.settings.criterion == "page":
            return [GroupingUnits(self.counts, np.ones(n), np.arange(n), n)]
        lumps = lumps_by_granularity(self.counts.sum(axis=1)) if self._lumps is None else self._lumps
        return [GroupingUnits.at(lumps_at, self.counts) for lumps_at in lumps]

    def joined(self, units: GroupingUnits) -> GroupingUnits:
        """Proportional modalities as one, which no optimum parts, unless groups have a minimum size."""
        return join_proportional(units) if self.min_rows <= 1 else units

    def task(self, units: GroupingUnits, max_groups: int = MAX_GROUPS) -> GroupTask:
        """The search for groups of these units; priors of 1 .. K groups are kept, as searches ask again."""
        n = min(len(units), max_groups)
        n = min(n, self.settings.max_parts or n)
        key = units.granularity, units.n_modalities, n
        if key not in self._priors:
            prior = group_prior(
                self.settings.criterion, n, n_rows=self.n_rows, n_modalities=units.n_modalities,
                n_candidates=self.settings.n_candidates, granularity=units.granularity,
            )  # fmt: skip
            prior[: self.min_parts - 1] = np.inf
            self._priors[key] = prior
        return GroupTask(self, units, self._priors[key])


@dataclass(frozen=True)
class GroupTask:
    """A search for groups of some units: at one granularity. `prior`: of 1 .. K groups."""

    search: GroupSearch
    units: GroupingUnits
    prior: Floats

    @cached_property
    def ln_classes(self) -> float:
        return ln_constant(self.units.counts.shape[1])

    @cached_property
    def n_rows(self) -> float:
        return float(self.units.counts.sum())

    @property
    def has_garbage(self) -> bool:
        return self.search.settings.criterion == "khiops" and self.units.n_modalities >= GARBAGE_FROM

    @cached_property
    def prices(self) -> GroupPrices:
        """What the kernels compute priors from."""
        return group_prices(
            len(self.prior), n_rows=self.n_rows, n_modalities=self.units.n_modalities,
            n_candidates=self.search.settings.n_candidates, granularity=self.units.granularity,
            garbage=self.has_garbage,
        )  # fmt: skip

    def garbage_priors(self, n_groups: int, size: int) -> Floats:
        """Khiops' priors of 1 .. `n_groups` groups one of which is the garbage, of `size` modalities."""
        return garbage_priors(
            n_groups, size, n_rows=self.n_rows, n_modalities=self.units.n_modalities,
            n_candidates=self.search.settings.n_candidates, granularity=self.units.granularity,
        )  # fmt: skip

    def garbage_prior(self, n_groups: int, size: int) -> float:
        """The last of `garbage_priors`."""
        return float(self.garbage_priors(n_groups, size)[-1])

    def better(self, best: Grouping, grouping: Grouping) -> Grouping:
        """The best grouping of the modalities, or one of the units that is cheaper."""
        return grouping.of_modalities(self.units) if is_cheaper(grouping.cost, best.cost) else best

    def price(self, labels: Indices) -> Grouping:
        """The cost of a grouping, with the best choice of garbage or none; groups that are too small are joined."""
        labels = without_gaps(labels)
        if self.search.min_rows > 1:
            labels = self._enlarged(labels)
        n = int(labels.max()) + 1
        of_parts = parts_cost(sum_by(labels, self.units.counts, n))
        cost, garbage = float(self.prior[n - 1]) if n <= len(self.prior) else np.inf, None
        if self.has_garbage and 3 <= n <= len(self.prior):
            sizes = np.bincount(labels, self.units.weights, minlength=n)
            largest = int(np.argmax(sizes))  # the prior falls with the size of the garbage
            with_garbage = self.garbage_prior(n, int(sizes[largest]))
            if with_garbage < cost:
                cost, garbage = with_garbage, largest
        return Grouping(of_parts + cost, labels, garbage)

    def _enlarged(self, labels: Indices) -> Indices:
        """Each group of fewer than `min_rows` rows in the one where that costs least."""
        groups = sum_by(labels, self.units.counts, int(labels.max()) + 1)
        sizes, absent = groups.sum(axis=1), np.zeros(len(groups), dtype=bool)
        while absent.sum() < len(groups) - 1 and (sizes[~absent] < self.search.min_rows).any():
            small = int(np.argmin(np.where(absent, np.inf, sizes)))
            rise = costs_of_groups(groups + groups[small]) - costs_of_groups(groups)
            rise[absent] = np.inf
            rise[small] = np.inf
            into = int(np.argmin(rise))
            groups[into] += groups[small]
            sizes[into] += sizes[small]
            absent[small] = True
            labels = np.where(labels == small, into, labels)
        return without_gaps(labels)

    def line_up(self, order: Indices, positions: int = MAX_CUT_PLACES) -> tuple[CutTask, Indices]:
        """The units in this order, and where they may be cut: anywhere, or at a number of quantiles (a power of 2)."""
        task = CutTask.of(self.units.counts[order], self.search.min_rows, self.search.deadline, self.search.table)
        if len(order) <= positions:
            return task, np.arange(1, len(order) + 1)
        return task, quantile_boundaries(task.sizes, positions.bit_length() - 1)

    def cut_along(self, order: Indices, positions: int = MAX_CUT_PLACES) -> Grouping:
        """The best cuts of the units in this order, at a number of positions."""
        return self.price(labels_along(order, self.best_ends(order, self.prior, positions)))

    def best_ends(self, order: Indices, prior: Floats, positions: int = MAX_CUT_PLACES) -> Indices:
        """Where the parts end that these units, in this order, are cut into at best, by a prior of 1, 2, ... parts."""
        counts = self.units.counts[order]
        if len(order) <= positions:
            ends = np.arange(1, len(order) + 1)
        else:
            ends = quantile_boundaries(np.append(0.0, np.cumsum(counts.sum(axis=1))), positions.bit_length() - 1)
        return CutGrids.of_one(ends, prior).cut(counts, self.search.table, min_rows=self.search.min_rows).ends


# -- moves and joins -------------------------------------------------------------------------------


def polish(task: GroupTask, start: Grouping, rng: np.random.RandomState) -> Grouping:
    """Moves and joins until neither helps; never worse than the start."""
    labels, cost, order = start.labels.astype(np.int64), start.cost, rng.permutation(len(task.units))
    for _ in range(_MAX_POLISHES):
        if time.monotonic() > task.search.deadline:
            break
        after, labels, state = move(task, labels, order)
        if len(state[0]) > 2:
            joined, groups = join(task, state)
            if joined < after:
                after, labels = joined, groups[labels]
        if not after < cost - 1e-9:
            break
        cost = after
    return cheapest(start, task.price(labels))


def move(task: GroupTask, labels: Indices, order: Indices) -> tuple[float, Indices, State]:
    """Moves of single units, as long as the cost decreases: it, the group of each unit, and the state of the groups."""
    counts, n = task.units.counts, int(labels.max()) + 1 + _MORE_GROUPS
    labels = labels.copy()
    groups, sizes, modalities, costs = np.zeros((n, counts.shape[1])), np.zeros(n, np.int64), np.zeros(n), np.zeros(n)
    cost = kernels.settle_units(
        counts, task.units.weights, order, task.search.min_rows, task.ln_classes, task.prior, *task.prices,
        max(1, min(_MAX_ITER, _MAX_WORK // (counts.size * n))), task.search.table, labels, np.empty_like(labels),
        groups, sizes, modalities, costs,
    )  # fmt: skip
    occupied = sizes > 0
    return cost, without_gaps(labels), (groups[occupied], sizes[occupied], modalities[occupied], costs[occupied])


def state_of(task: GroupTask, labels: Indices) -> State:
    """The state of these groups."""
    n = int(labels.max()) + 1
    groups, modalities = sum_by(labels, task.units.counts, n), np.bincount(labels, task.units.weights, minlength=n)
    return groups, np.bincount(labels, minlength=n), modalities.astype(np.float64), costs_of_groups(groups)


def join(task: GroupTask, state: State) -> tuple[float, Indices]:
    """Greedy joins down to one group: the least cost on the way, and what each group becomes there."""
    n = len(state[0])
    merged = np.zeros((n - 1, 2), dtype=np.int64)
    cost, joins = kernels.join_groups(
        task.ln_classes, task.prior, *task.prices, task.search.table, *state, np.full((n, n), np.inf), merged
    )
    labels = np.arange(n)
    for a, b in merged[:joins]:
        labels[labels == b] = a
    return cost, without_gaps(labels)
