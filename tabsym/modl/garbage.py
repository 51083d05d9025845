"""Khiops' garbage group: modalities that are not worth a name of their own in the model.

A model with a garbage group pays for each of the other modalities by name, and nothing for
those in the garbage, so it is the cheaper one where few of many modalities say something.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from tabsym.modl.ends import labels_of
from tabsym.modl.ground import Ground, Grouping, costs_of_groups, labels_along, line_up
from tabsym.modl.hull import Best, is_cheaper
from tabsym.modl.local import polish
from tabsym.modl.search import Passes, descend_cuts
from tabsym.modl.shares import ByShare
from tabsym.modl.units import Units, by_main_axis, by_share

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

# all of these trade time for cost; benchmarks/modl/garbage.py shows both, of two classes
_PRICES = 0.6, 1.2, 2.0, 3.0, 4.5, 7.0  # nats for a modality that is not in the garbage
_SHARE_CELLS = 24, 48  # of the shares of groups: half as fine as for bounds
_MOST_RUN_ENDS = 49  # places where runs of modalities may end
_GROUPS_AT_FIRST, _GROUPS_SETTLED = 4, 6  # beside the garbage, of all models and of the best
_WORTH_SETTLING = 1.01  # times the best cost: models that may become better
_MOST_SETTLED, _MOST_ROUNDS = 8, 4  # models that are settled and polished, and rounds of settling
_MOST_TRIED = 64  # modalities of which every two are tried beside a garbage, and the share of the one in the middle
_MOST_POLISHED = 12  # starts of more than two classes
_MOST_INFORMATIVE_GROUPS = 64  # beside the modalities that say little
_MOST_START_GROUPS, _START_PLACES = 10, 256  # of cuts whose largest group is the garbage, and where they may lie


def look_for_garbage(
    grounds: list[Ground], best: Grouping, rng: np.random.RandomState, *, few: bool = False
) -> Grouping:
    """The best grouping, with a garbage group or without: starts at every granularity, the most promising polished.

    `grounds`: of two classes with no modalities joined, of more if they are not too many. Of those that are
    proportional, which are one without a garbage group, the frequent ones may be informative alone.
    """
    for ground, start in _starts(grounds, best.cost, few):
        if time.monotonic() > ground.deadline:
            break
        better = polish(ground, start, rng)
        if is_cheaper(better.cost, best.cost):
            best = better.of_modalities(ground.units)
    return best


def _starts(grounds: list[Ground], cost: float, few: bool) -> list[tuple[Ground, Grouping]]:
    if grounds and grounds[0].units.counts.shape[1] == 2:
        pairs = [] if few else [(ground, start) for ground in grounds for start in _two_outside(ground)[:1]]
        return _cheaper_outside(grounds, _WORTH_SETTLING * cost, few) + pairs
    found = [
        (start.cost, place, start)
        for place, ground in enumerate(grounds)
        if time.monotonic() < ground.deadline
        for start in [*_two_outside(ground), *_uninformative_as_garbage(ground), *_largest_as_garbage(ground)]
    ]
    found.sort(key=lambda one: one[:2])
    return [(grounds[place], start) for _, place, start in found[:_MOST_POLISHED]]


def _cheaper_outside(grounds: list[Ground], most_cost: float, few: bool) -> list[tuple[Ground, Grouping]]:
    """Of two classes: the best groups beside a garbage, each with its ground, if they cost at most so much.

    At prices from low to high, as the prior is concave in the number of informative modalities: there are several
    local optima. The best few get the share and the price of their own garbage.
    """
    found: list[tuple[Ground, Grouping, ByShare]] = []
    for ground in grounds:
        by_share = ByShare(ground.units.counts, most_ends=_MOST_RUN_ENDS, cells=_SHARE_CELLS)
        shares = _likely_shares(ground.units.counts)[: 1 if few else None]
        models = [
            _beside_share(ground, by_share, share, price, _GROUPS_AT_FIRST)
            for place, share in enumerate(shares)
            for price in (_PRICES[1::2] if few or place else _PRICES)
        ]
        best = min(models, key=lambda one: one.cost)
        if best.cost <= most_cost:
            found.append((ground, best, by_share))
        if time.monotonic() > ground.deadline:
            break
    found.sort(key=lambda one: one[1].cost)
    return [(ground, _settled(ground, by_share, one)) for ground, one, by_share in found[:_MOST_SETTLED]]


def _beside_share(ground: Ground, by_share: ByShare, share: float, price: float, most: int) -> Grouping:
    """The best 2 .. `most` groups beside a garbage of this class share, at this price of a modality not in it."""
    most = min(most, len(ground.units) - 2, (ground.max_parts or len(ground.units)) - 1)
    models = [ground.price(labels) for labels in by_share.groups(by_share.costs(share), price, most)]
    return min(models, key=lambda one: one.cost, default=Grouping(np.inf, np.zeros(len(ground.units), dtype=np.int64)))


def _settled(ground: Ground, by_share: ByShare, best: Grouping) -> Grouping:
    """In rounds, the share and the price are those of the garbage before, as long as the cost falls."""
    units = ground.units
    for _ in range(_MOST_ROUNDS):
        if best.garbage is None:
            return best
        inside = best.labels == best.garbage
        n_groups, size = int(best.labels.max()) + 1, int(units.weights[inside].sum())
        rise = ground.with_garbage(n_groups, size - 1) - ground.with_garbage(n_groups, size)
        price = rise if np.isfinite(rise) and rise > _PRICES[0] else _PRICES[0]
        found = _beside_share(ground, by_share, _share(units.counts[inside]), price, _GROUPS_SETTLED)
        if not is_cheaper(found.cost, best.cost):
            return best
        best = found
    return best


def mean_price(ground: Ground) -> float:
    """How much the prior of two groups beside the garbage rises with each modality that is not in it, on average."""
    n = len(ground.units)
    return max(ground.with_garbage(3, 1) - ground.with_garbage(3, n - 2), 0.0) / (n - 2)


def _share(counts: Floats) -> float:
    """Of the second class, away from 0 and 1."""
    return float((counts[:, 1].sum() + 0.5) / (counts.sum() + 1.0))


def _likely_shares(counts: Floats) -> list[float]:
    """Of a garbage: that of all rows, and of the modality in the middle: a few large ones may be far from it."""
    share = _share(counts)
    if len(counts) > _MOST_TRIED:
        return [share]
    middle = counts[by_share(counts, 1)[len(counts) // 2]]
    return [share, _share(middle[None, :])]


def _uninformative_as_garbage(ground: Ground) -> list[Grouping]:
    """The modalities with the most to tell apart from the rest, 2, 4, 8, 16, ... of them; the rest garbage."""
    units = ground.units
    order = np.argsort(-_telling(units), kind="stable")
    informative = np.cumsum(units.weights[order])
    starts: list[Grouping] = []
    wanted, last = 2.0, 0
    while wanted < units.n_modalities:
        n = int(np.searchsorted(informative, wanted)) + 1
        wanted *= 2.0
        if n < 2 or n >= len(units) or n == last:
            continue
        last = n
        starts.append(_beside_garbage(ground, order[:n]))
    return sorted(starts, key=lambda one: one.cost)[:2]


def _two_outside(ground: Ground) -> list[Grouping]:
    """Two modalities with a group each, all others garbage: the best of all pairs, where those are not too many."""
    units, n = ground.units, len(ground.units)
    if n > _MOST_TRIED or n < 4 or len(ground.prior) < 3:
        return []
    a, b = np.triu_indices(n, 1)
    own = costs_of_groups(units.counts)
    cost = own[a] + own[b] + costs_of_groups(units.counts.sum(axis=0) - units.counts[a] - units.counts[b])
    starts = []
    for place in np.argsort(cost, kind="stable")[:2]:
        labels = np.zeros(n, dtype=np.int64)
        labels[a[place]], labels[b[place]] = 1, 2
        starts.append(ground.price(labels))
    return starts


def _largest_as_garbage(ground: Ground) -> list[Grouping]:
    """Cuts along the main axis into few groups, the one with most modalities as the garbage."""
    order = by_main_axis(ground.units.counts)
    task, ends = line_up(ground, order, _START_PLACES)
    most = min(_MOST_START_GROUPS, len(ends), ground.max_parts or _MOST_START_GROUPS)
    found = (Passes(task, ends).by_number(most) or [])[2:]
    starts = [ground.price(labels_along(order, one.ends)) for one in found]
    return sorted((one for one in starts if one.garbage is not None), key=lambda one: one.cost)[:2]


def _beside_garbage(ground: Ground, chosen: Places) -> Grouping:
    """The best cuts of the chosen units along the main axis, the others in one more group."""
    units = ground.units
    size = int(units.weights.sum() - units.weights[chosen].sum())
    order = chosen[by_main_axis(units.counts[chosen])]
    most = min(len(order), _MOST_INFORMATIVE_GROUPS, (ground.max_parts or len(units)) - 1)
    prior = ground.all_with_garbage(most + 1, size)[1:].copy()
    if most < 2 or not np.isfinite(prior[1]):
        return Grouping(np.inf, np.zeros(len(units), dtype=np.int64))
    prior[0] = prior[1]
    outside = Ground(Units(units.counts[order], units.weights[order], np.arange(len(order)), len(order)), prior,
                  ground.table, ground.least, ground.n_candidates, False, ground.deadline)  # fmt: skip
    task, ends = line_up(outside, np.arange(len(order)))
    best = Best(np.inf, np.array([len(order)]), 0)
    descend_cuts(task, ends, prior[: len(ends)], best, 0)
    labels = np.full(len(units), len(best.ends), dtype=np.int64)
    labels[order] = labels_of(best.ends, len(order))
    return ground.price(labels)


def _telling(units: Units) -> Floats:
    """What each modality's own class shares save over the shares of all, in nats per modality."""
    sizes = units.counts.sum(axis=1)
    base = units.counts.sum(axis=0) / sizes.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(units.counts > 0, np.log(units.counts / sizes[:, None] / base), 0.0)
    gain = (units.counts * ratio).sum(axis=1) - 0.5 * (units.counts.shape[1] - 1) * np.log(sizes)
    return np.asarray(gain / units.weights)
