"""Optimal grouping: modalities with class counts into groups.

Of few modalities every partition is looked at (`subsets`). Of two classes the groups are cuts along the class shares
(`two_classes`), of more they are searched for from many starts (`multistart`). Khiops' criterion then looks for
groups beside a garbage group (`garbage`), and bounds what those cost (`garbage_bound`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tabsym.modl.criterion import GARBAGE_FROM
from tabsym.modl.garbage import look_for_garbage
from tabsym.modl.garbage_bound import bound_garbage, first_bound
from tabsym.modl.ground import Grouping, cut_along
from tabsym.modl.group_search import GroupSearch
from tabsym.modl.hull import Bounds, is_cheaper
from tabsym.modl.local import polish
from tabsym.modl.multistart import equal_cells, search_many_classes
from tabsym.modl.partition import Partition
from tabsym.modl.search import deadline_of, factorials_of
from tabsym.modl.subsets import MOST_SUBSETS, every_partition
from tabsym.modl.two_classes import cut_by_share
from tabsym.modl.units import Units, by_main_axis, sum_by

Floats = NDArray[np.float64]

MOST_BOUNDED = 64
"""Up to this many modalities of two classes garbage groups are bounded without a time limit being asked for;
benchmarks/modl/garbage.py shows what bounds for more take."""
QUICK_GROUPS, QUICK_PLACES, QUICK_POLISH = 64, 128, 128
"""Quick searches look at so many groups, cut at so many places, and do not polish cuts of more units: time for cost."""
_MOST_LEFT = 9  # units that a coarse granularity leaves of which every partition is looked at: time for a tight bound
_MOST_UNJOINED = 5000  # modalities of more classes that are looked at one by one beside a garbage: time for cost


class _Searched(NamedTuple):
    """The best grouping found, a cost that none is below, and one that none without a garbage group is below."""

    best: Grouping
    lower: float = -np.inf
    lower_without_garbage: float = -np.inf


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
        covers Khiops' garbage groups only with a time limit. Elsewhere it is -inf.
    """
    counts = np.ascontiguousarray(counts, dtype=np.float64)
    search = GroupSearch(
        counts,
        criterion,
        n_candidates,
        max_parts,
        float(min_part_count),
        least_parts,
        deadline_of(time_limit),
        time_limit is not None,
        prove,
        random_state,
        factorials_of(np.ascontiguousarray(np.cumsum(counts, axis=0).T)),
    )
    found = _searched_quickly(search) if quick else _searched(search)
    best = found.best
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
        lower_bound=min(found.lower, best.cost),
        granularity=best.granularity,
        garbage=None if best.garbage is None else int(place[best.garbage]),
        bound_without_garbage=max(found.lower, found.lower_without_garbage),
    )


def regroup(
    counts: Floats,
    start: Partition,
    *,
    criterion: str,
    n_candidates: int,
    max_parts: int | None,
    min_part_count: float,
    random_state: int,
) -> Partition:
    """Two or more groups of the same modalities, by other classes: those of `start`, moved and joined as that pays."""
    counts = np.ascontiguousarray(counts, dtype=np.float64)
    search = GroupSearch(
        counts,
        criterion,
        n_candidates,
        max_parts,
        float(min_part_count),
        2,
        np.inf,
        False,
        False,
        random_state,
        factorials_of(np.ascontiguousarray(np.cumsum(counts, axis=0).T)),
    )
    units = next(units for units in search.families() if units.granularity == start.granularity)
    ground = search.ground(units)
    labels = np.zeros(len(units), dtype=np.int64)
    labels[units.labels] = start.labels  # which units there are depends on how frequent modalities are alone
    best = polish(ground, ground.price(labels), search.rng).of_modalities(units)
    groups = sum_by(best.labels, counts, int(best.labels.max()) + 1)
    return Partition(
        criterion=criterion,
        labels=best.labels,
        counts=groups,
        cost=best.cost,
        null_cost=search.null,
        lower_bound=-np.inf,
        granularity=best.granularity,
        garbage=best.garbage,
    )


def _searched(search: GroupSearch) -> _Searched:
    """Every partition of few modalities; of more the best without a garbage group, then beside one."""
    start = search.one_group
    if len(search.counts) < 2 or search.max_parts == 1:
        return _Searched(start, start.cost)
    families = search.families()
    if len(search.counts) <= MOST_SUBSETS:
        best = every_partition(search, families, start)
        return _Searched(best, best.cost)
    lower, bounds = -np.inf, Bounds()
    if search.counts.shape[1] == 2:
        best, lower, bounds = cut_by_share(search, families, start)
        if search.least > 1:  # cuts along the class shares are then not all that has to be looked at
            lower = -np.inf
    else:
        best = search_many_classes(search, families, start)
    if not search.has_garbage:
        return _Searched(best, lower)
    return _with_garbage(search, families, _Searched(best, lower, lower), bounds)


def _searched_quickly(search: GroupSearch) -> _Searched:
    """A good grouping at some granularities."""
    best = search.one_group
    families = search.families()
    for units in families[:: -max(1, len(families) // 3)]:
        ground = search.ground(search.joined(units), QUICK_GROUPS)
        if len(ground.prior) < 2:
            continue
        starts = [cut_along(ground, by_main_axis(ground.units.counts), QUICK_PLACES), equal_cells(ground)]
        found = min(starts, key=lambda one: one.cost)
        if len(ground.units) <= QUICK_POLISH:
            found = polish(ground, found, search.rng)
        if found.cost < best.cost and found.garbage is None:
            best = found.of_modalities(ground.units)
    return _Searched(best)


def _with_garbage(search: GroupSearch, families: list[Units], known: _Searched, bounds: Bounds) -> _Searched:
    """The best grouping and a bound, garbage groups included; `bounds`: on any groups of the finest modalities.

    Of two classes what any grouping costs is known, and where the column says little that is often enough.
    """
    best, lower = known.best, known.lower
    families = [units for units in families if units.n_modalities >= GARBAGE_FROM]
    if np.isfinite(lower) and len(search.counts) <= MOST_BOUNDED:
        least = [first_bound(search.ground(units), bounds) for units in families]
        families = [units for units, bound in zip(families, least, strict=True) if is_cheaper(bound, best.cost)]
    join = search.counts.shape[1] > 2 and len(search.counts) > _MOST_UNJOINED
    grounds = [search.ground(search.joined(units) if join else units) for units in families]
    if grounds:
        best = look_for_garbage(grounds, best, search.rng, few=not search.prove)
    if families and np.isfinite(lower):
        lower_with = -np.inf
        if search.prove and (search.insist or len(search.counts) <= MOST_BOUNDED):
            best, lower_with = _bounded_with_garbage(search, families, best, bounds)
        lower = min(lower, lower_with)
    return known._replace(best=best, lower=lower)


def _bounded_with_garbage(
    search: GroupSearch, families: list[Units], best: Grouping, bounds: Bounds
) -> tuple[Grouping, float]:
    """The best grouping known, and a bound on those with a garbage group: exact for few modalities.

    The integrals for more, a tenth of a second each, are computed only where a time limit asks for a proof.
    """
    few = [units for units in families if len(units) <= _MOST_LEFT]
    best = every_partition(search, few, best)
    grounds = [search.ground(units) for units in families[len(few) :]]
    most_work = np.inf if search.insist else 0.0
    found, lower = bound_garbage(grounds, bounds, best, search.rng, most_work)
    return found, min(best.cost, lower)
