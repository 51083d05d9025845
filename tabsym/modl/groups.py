"""Optimal grouping: modalities with class counts into groups."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tabsym.modl import kernels_grouped as kernels
from tabsym.modl.criterion import GARBAGE_FROM, group_prior, null_prior, parts_cost
from tabsym.modl.garbage import look_for_garbage
from tabsym.modl.garbage_bound import bound_garbage, first_bound
from tabsym.modl.hull import Best, Bounds, is_cheaper
from tabsym.modl.local import CELLS, Ground, Grouping, cut_along, labels_along, polish
from tabsym.modl.multistart import equal_cells, quick_start, thorough
from tabsym.modl.partition import Partition
from tabsym.modl.quantiles import quantile_boundaries
from tabsym.modl.search import (
    deadline_of,
    descend_cuts,
    exact_cuts,
    factorials_of,
    ln_constant,
    make_task,
    take_one_cut,
)
from tabsym.modl.units import Units, by_main_axis, by_share, join_proportional, sum_by, units_by_granularity

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

MOST_SUBSETS = 12
"""Up to this many modalities every partition is looked at, by dynamic programming over subsets."""
MOST_GROUPS = 512
MOST_BOUNDED = 64
"""Up to this many modalities of two classes garbage groups are bounded without a time limit being asked for."""
QUICK_GROUPS, QUICK_CELLS, QUICK_POLISH = 64, 128, 128
"""Quick searches look at so many groups, cut at so many places, and leave the cuts of more units as they are."""
_FEW = 9
_MOST_SINGLE = 5000  # modalities of more than two classes that are looked at one by one beside a garbage group


def group(
    counts: Floats,
    *,
    criterion: str = "khiops",
    n_candidates: int = 1,
    max_parts: int | None = None,
    min_part_count: float = 1,
    time_limit: float | None = None,
    random_state: int = 0,
    quick: bool = False,
    least_parts: int = 1,
    prove: bool = True,
) -> Partition:
    """The groups of least cost, with a lower bound on what any groups cost.

    Parameters
    ----------
    counts : (M, J)
        Rows of each class with each modality, each at least one row.
    criterion, n_candidates, max_parts, min_part_count, time_limit
        As in `discretize`. With time, the multi-start search goes on with further starts.
    random_state : int
        Of the order of moves and of the starts.
    quick : bool
        A good model from few starts at few granularities, without a bound or a garbage group.
    least_parts : {1, 2}
        2: the best of two groups or more, even if one costs less; infinitely dear where there are none.
    prove : bool
        False: fewer starts for garbage groups, and no bound on them.

    Returns
    -------
    Partition
        Groups in the order of their size in rows, the greatest first. The bound is tight up to 12
        modalities, garbage included, and for two classes without a least size; beyond 64 modalities it
        covers Khiops' garbage groups only where a time limit says how long that may take. Elsewhere it is -inf.
    """
    counts = np.ascontiguousarray(counts, dtype=np.float64)
    search = _Search(
        counts,
        criterion,
        n_candidates,
        max_parts,
        float(min_part_count),
        deadline_of(time_limit),
        time_limit is not None,
        np.random.RandomState(random_state),
        factorials_of(np.ascontiguousarray(np.cumsum(counts, axis=0).T)),
        least_parts,
        prove,
    )
    best, granularity, lower = search.quick() if quick else search.run()
    first = np.unique(best.labels, return_index=True)[1]  # groups of one size: by their first modality
    order = np.lexsort((first, -np.bincount(best.labels, counts.sum(axis=1))))
    place = np.argsort(order)
    labels = place[best.labels]
    return Partition(
        criterion=criterion,
        labels=labels,
        counts=sum_by(labels, counts, len(order)),
        cost=best.cost,
        null_cost=search.null,
        lower_bound=min(lower, best.cost),
        granularity=granularity,
        garbage=None if best.garbage is None else int(place[best.garbage]),
        bound_without_garbage=max(lower, search.bound_without_garbage),
    )


@dataclass
class _Search:
    """One search over every granularity."""

    counts: Floats
    criterion: str
    n_candidates: int
    max_parts: int | None
    least: float
    deadline: float
    insist: bool
    rng: np.random.RandomState
    table: Floats
    least_parts: int = 1
    prove: bool = True
    bounds: Bounds = field(default_factory=Bounds)  # of two classes, on any groups of the finest modalities

    bound_without_garbage: float = -np.inf
    priors: dict[tuple[int, int, int], Floats] = field(default_factory=dict)

    @property
    def null(self) -> float:
        prior = null_prior(self.criterion, n_rows=float(self.counts.sum()), n_modalities=len(self.counts))
        return prior + parts_cost(self.counts.sum(axis=0)[None, :])

    @property
    def one_group(self) -> Grouping:
        """Where a search starts."""
        cost = self.null if self.least_parts < 2 else np.inf
        return Grouping(cost, np.zeros(len(self.counts), dtype=np.int64))

    def run(self) -> tuple[Grouping, int, float]:
        """The best grouping (labels by modality), its granularity, and the lower bound."""
        start = self.one_group
        if len(self.counts) < 2 or self.max_parts == 1:
            return start, 0, start.cost
        families = self.families()
        if len(self.counts) <= MOST_SUBSETS:
            return self.every_partition(families, start)
        if self.counts.shape[1] == 2:
            best, granularity, lower = self.two_classes(families, start)
            if self.least > 1:  # cuts along the class shares are then not all that has to be looked at
                lower = -np.inf
        else:
            best, granularity, lower = *self.many_classes(families, start), -np.inf
        if self.has_garbage:
            self.bound_without_garbage = lower
            best, granularity, lower = self.with_garbage(families, best, granularity, lower)
        return best, granularity, lower

    def quick(self) -> tuple[Grouping, int, float]:
        """A good grouping at some granularities."""
        best, granularity = self.one_group, 0
        families = self.families()
        for units in families[:: -max(1, len(families) // 3)]:
            ground = self.ground(self.joined(units), QUICK_GROUPS)
            if len(ground.prior) < 2:
                continue
            starts = [cut_along(ground, by_main_axis(ground.units.counts), QUICK_CELLS), equal_cells(ground)]
            found = min(starts, key=lambda one: one.cost)
            if len(ground.units) <= QUICK_POLISH:
                found = polish(ground, found, self.rng)
            if found.cost < best.cost and found.garbage is None:
                best = Grouping(found.cost, found.labels[ground.units.labels])
                granularity = ground.units.granularity
        return best, granularity, -np.inf

    @property
    def has_garbage(self) -> bool:
        return self.criterion == "khiops" and len(self.counts) >= GARBAGE_FROM

    def families(self) -> list[Units]:
        """What the modalities can be at each granularity (under "page": themselves)."""
        n = len(self.counts)
        if self.criterion == "page":
            return [Units(self.counts, np.ones(n), np.arange(n), n)]
        return units_by_granularity(self.counts)

    def prior(self, units: Units, most: int | None = None) -> Floats:
        """The priors of 1 .. most groups of these units; kept, as searches ask again."""
        most = min(len(units), MOST_GROUPS if most is None else most)
        if self.max_parts is not None:
            most = min(most, self.max_parts)
        key = units.granularity, units.n_modalities, most
        if key not in self.priors:
            prior = group_prior(
                self.criterion,
                most,
                n_rows=float(self.counts.sum()),
                n_modalities=units.n_modalities,
                n_candidates=self.n_candidates,
                granularity=units.granularity,
            )
            prior[: self.least_parts - 1] = np.inf
            self.priors[key] = prior
        return self.priors[key]

    def ground(self, units: Units, most: int | None = None) -> Ground:
        """What the local search over these units stands on."""
        with_garbage = self.criterion == "khiops" and units.n_modalities >= GARBAGE_FROM
        return Ground(
            units,
            self.prior(units, most),
            self.table,
            self.least,
            self.n_candidates,
            with_garbage,
            self.deadline,
            self.max_parts,
        )

    def joined(self, units: Units) -> Units:
        """Proportional modalities as one, which no optimum parts, unless groups have a least size."""
        return join_proportional(units) if self.least <= 1 else units

    # -- every partition, up to 12 modalities ---------------------------------------------------

    def every_partition(
        self, families: list[Units], start: Grouping, granularity: int = 0
    ) -> tuple[Grouping, int, float]:
        """Dynamic programming over subsets: exact for any number of classes, garbage included."""
        best = start
        for units in families:
            found = self._subsets(units)
            if found is not None and is_cheaper(found.cost, best.cost):
                best, granularity = Grouping(found.cost, found.labels[units.labels], found.garbage), units.granularity
        return best, granularity, best.cost

    def _subsets(self, units: Units) -> Grouping | None:
        n, prior = len(units), self.prior(units)
        if len(prior) < 2:
            return None
        ln_classes = ln_constant(self.counts.shape[1])
        cost = np.full(2**n, np.inf)
        table = np.full((len(prior) + 1, 2**n), np.inf)
        choice = np.zeros((len(prior) + 1, 2**n), dtype=np.int64)
        kernels.best_subsets(units.counts, self.table, self.least, cost, table, choice)
        numbers = np.arange(1, len(prior) + 1)
        totals = table[1:, -1] - numbers * ln_classes + prior
        k = int(np.argmin(totals))
        best = Grouping(float(totals[k]), _chosen(choice, k + 1, 2**n - 1, n))
        ground = self.ground(units)
        if not ground.has_garbage:
            return best
        for subset in range(1, 2**n - 1):
            size, rest = subset.bit_count(), 2**n - 1 - subset
            for others in range(2, min(n - size, len(prior) - 1) + 1):
                total = cost[subset] + table[others, rest] - (others + 1) * ln_classes
                if total < best.cost:
                    total += ground.with_garbage(others + 1, size)
                    if is_cheaper(total, best.cost):
                        labels = _chosen(choice, others, rest, n)
                        labels[[bool(subset >> u & 1) for u in range(n)]] = others
                        best = Grouping(float(total), labels, others)
        return best

    # -- two classes ------------------------------------------------------------------------------

    def two_classes(self, families: list[Units], start: Grouping) -> tuple[Grouping, int, float]:
        """Cuts of the modalities in the order of their class shares: exact, as the cost of a part is concave."""
        best = Best(start.cost, np.empty(0, dtype=np.int64), -1)
        tasks = []
        for units in families:
            joined = self.joined(units)
            order = by_share(joined.counts, 1)
            task = make_task(joined.counts[order], self.least, self.deadline, self.table)
            tasks.append((joined, order, task, np.arange(1, len(joined) + 1)))
        for place, (joined, _, task, ends) in enumerate(tasks):
            coarse = quantile_boundaries(task.sizes, 11) if len(ends) > 4 * CELLS else ends
            if self.least_parts > 1 and len(self.prior(joined)) > 1:
                take_one_cut(task, ends, float(self.prior(joined)[1]), best, place)
            descend_cuts(task, coarse, self.prior(joined), best, place)
        lower, bounds = np.inf, Bounds()
        for place in range(len(tasks) - 1, -1, -1):  # bounds of the finest hold for the coarser
            joined, _, task, ends = tasks[place]
            prior = self.prior(joined)
            lower = min(lower, exact_cuts(task, ends, prior, best, bounds, place))
            if place == len(tasks) - 1:  # what coarser modalities add to the bounds does not hold for these
                self.bounds = bounds.of_any_parts()
            if len(prior) < len(joined) and self.max_parts is None:  # the prior rises beyond its last number
                beyond = np.arange(len(prior) + 1.0, len(joined) + 1)
                lower = min(lower, float(bounds.below(beyond).min() + prior[-1]))
        if best.tag < 0:
            return start, 0, lower
        joined, order, task, _ = tasks[best.tag]
        labels = labels_along(order, best.ends)
        return Grouping(best.cost, labels[joined.labels]), joined.granularity, lower

    def with_garbage(
        self, families: list[Units], best: Grouping, granularity: int, lower: float
    ) -> tuple[Grouping, int, float]:
        """The best grouping, its granularity and a bound, garbage groups included.

        Of two classes what any grouping costs is known, and where the column says little that is often enough.
        """
        families = [units for units in families if units.n_modalities >= GARBAGE_FROM]
        if np.isfinite(lower) and len(self.counts) <= MOST_BOUNDED:
            least = [first_bound(self.ground(units), self.bounds) for units in families]
            families = [units for units, bound in zip(families, least, strict=True) if is_cheaper(bound, best.cost)]
        join = self.counts.shape[1] > 2 and len(self.counts) > _MOST_SINGLE
        grounds = [self.ground(self.joined(units) if join else units) for units in families]
        best, granularity = look_for_garbage(grounds, best, granularity, self.rng, few=not self.prove)
        if families and np.isfinite(lower):
            lower_with = -np.inf
            if self.prove:
                best, granularity, lower_with = self.beside_garbage(families, best, granularity)
            lower = min(lower, lower_with)
        return best, granularity, lower

    def beside_garbage(self, families: list[Units], best: Grouping, granularity: int) -> tuple[Grouping, int, float]:
        """The best grouping known, and a bound on those with a garbage group: exact for few modalities.

        The integrals for more, a tenth of a second each, are computed only where a time limit asks for a proof.
        """
        if len(self.counts) > MOST_BOUNDED and not self.insist:
            return best, granularity, -np.inf
        few = [units for units in families if len(units) <= _FEW]
        best, granularity, lower = self.every_partition(few, best, granularity)
        grounds = [self.ground(units) for units in families[len(few) :]]
        most_work = np.inf if self.insist else 0.0
        found = bound_garbage(grounds, self.bounds, best, granularity, self.rng, most_work)
        return found[0], found[1], min(lower, found[2])

    # -- more classes -----------------------------------------------------------------------------

    def many_classes(self, families: list[Units], start: Grouping) -> tuple[Grouping, int]:
        """Local search from many starts, at the granularities whose quick starts are best."""
        quick: list[tuple[float, int, Ground, Grouping]] = []
        for units in families:
            ground = self.ground(self.joined(units))
            found = quick_start(ground, self.rng)
            quick.append((found.cost, len(quick), ground, found))
            if time.monotonic() > self.deadline:
                break
        quick.sort(key=lambda one: one[:2])
        best, granularity = start, 0
        for _, _, ground, found in quick[:3]:
            better = thorough(ground, found, self.rng, insist=self.insist)
            if is_cheaper(better.cost, best.cost):
                best = Grouping(better.cost, better.labels[ground.units.labels], better.garbage)
                granularity = ground.units.granularity
        return best, granularity


def _chosen(choice: Places, k: int, subset: int, n: int) -> Places:
    """Labels (n,) of the groups that the subset program chose."""
    labels = np.zeros(n, dtype=np.int64)
    while k > 0:
        group = int(choice[k, subset])
        k -= 1
        for u in range(n):
            if group >> u & 1:
                labels[u] = k
        subset ^= group
    return labels
