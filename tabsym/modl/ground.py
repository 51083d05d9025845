"""What groupings of units stand on: the units and their priors, what a grouping costs, and cuts along an order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from tabsym.modl.criterion import garbage_priors, parts_cost
from tabsym.modl.ends import labels_of
from tabsym.modl.hull import Best
from tabsym.modl.quantiles import quantile_boundaries
from tabsym.modl.search import Task, descend_cuts, ln_constant, make_task, take_one_cut
from tabsym.modl.units import Units, sum_by, without_gaps

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

CUT_PLACES = 1024
"""Of more units in an order, cuts lie at so many quantiles: time for how near each cut is to its best place."""


@dataclass(frozen=True)
class Grouping:
    """A model: its cost, the group of each unit or modality, which group is the garbage, and Khiops' granularity."""

    cost: float
    labels: Places
    garbage: int | None = None
    granularity: int = 0

    def of_modalities(self, units: Units) -> Grouping:
        """With the group of each modality, from that of each of the units."""
        return Grouping(self.cost, self.labels[units.labels], self.garbage, units.granularity)


@dataclass(frozen=True)
class Ground:
    """What a local search stands on: the units, the prior of 1 .. K groups, and Khiops' prior with garbage."""

    units: Units
    prior: Floats
    table: Floats
    least: float
    n_candidates: int
    has_garbage: bool
    deadline: float = np.inf
    max_parts: int | None = None

    @property
    def ln_classes(self) -> float:
        return ln_constant(self.units.counts.shape[1])

    def with_garbage(self, n_groups: int, size: int) -> float:
        """Khiops' prior where one of the groups is the garbage, of `size` modalities."""
        return float(self.all_with_garbage(n_groups, size)[-1])

    def all_with_garbage(self, most: int, size: int) -> Floats:
        """`with_garbage` for 1 .. most groups."""
        return garbage_priors(
            most,
            size,
            n_rows=float(self.units.counts.sum()),
            n_modalities=self.units.n_modalities,
            n_candidates=self.n_candidates,
            granularity=self.units.granularity,
        )

    def price(self, labels: Places) -> Grouping:
        """The cost of a grouping, with the best choice of garbage or none; groups that are too small are joined."""
        labels = without_gaps(labels)
        if self.least > 1:
            labels = self._enlarged(labels)
        n = int(labels.max()) + 1
        of_parts = parts_cost(sum_by(labels, self.units.counts, n))
        cost, garbage = float(self.prior[n - 1]) if n <= len(self.prior) else np.inf, None
        if self.has_garbage and 3 <= n <= len(self.prior):
            sizes = np.bincount(labels, self.units.weights, minlength=n)
            largest = int(np.argmax(sizes))  # the prior falls with the size of the garbage
            other = self.with_garbage(n, int(sizes[largest]))
            if other < cost:
                cost, garbage = other, largest
        return Grouping(of_parts + cost, labels, garbage)

    def _enlarged(self, labels: Places) -> Places:
        """Each group of fewer than `least` rows in the one where that costs least."""
        groups = sum_by(labels, self.units.counts, int(labels.max()) + 1)
        sizes, absent = groups.sum(axis=1), np.zeros(len(groups), dtype=bool)
        while absent.sum() < len(groups) - 1 and (sizes[~absent] < self.least).any():
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


def costs_of_groups(groups: Floats) -> Floats:
    """What each group costs, but for what is the same for all."""
    return np.asarray(gammaln(groups.sum(axis=1) + groups.shape[1]) - gammaln(groups + 1).sum(axis=1))


def cut_along(ground: Ground, order: Places, places: int = CUT_PLACES) -> Grouping:
    """The best cuts of the units in this order, at so many places."""
    task, ends = line_up(ground, order, places)
    best = Best(np.inf, np.array([len(order)]), 0)
    if len(ground.prior) > 1:
        take_one_cut(task, ends, float(ground.prior[1]), best, 0)
    descend_cuts(task, ends, ground.prior, best, 0)
    return ground.price(labels_along(order, best.ends))


def line_up(ground: Ground, order: Places, places: int = CUT_PLACES) -> tuple[Task, Places]:
    """The units in this order as a task, and where it may be cut: anywhere, or at so many quantiles (a power of 2)."""
    task = make_task(ground.units.counts[order], ground.least, ground.deadline, ground.table)
    if len(order) <= places:
        return task, np.arange(1, len(order) + 1)
    return task, quantile_boundaries(task.sizes, places.bit_length() - 1)


def labels_along(order: Places, ends: Places) -> Places:
    """The part of each unit, where the units in this order are cut at these ends."""
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = labels_of(ends, len(order))
    return labels
