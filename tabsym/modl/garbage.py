"""Khiops' garbage group: modalities that are not worth a name of their own in the model.

A model with a garbage group pays for each of the other modalities by name, and nothing for
those in the garbage, so it is the cheaper one where few of many modalities say something.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from tabsym.modl.hull import TOLERANCE, Best, Bounds
from tabsym.modl.local import Ground, Grouping, labels_along, line_up, polish
from tabsym.modl.search import Passes, descend_cuts
from tabsym.modl.units import Units, by_main_axis, by_share

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

_MOST_BESIDE = 10  # groups of the starts whose largest group is the garbage
_MOST_INFORMATIVE_GROUPS = 64
_POLISHED = 6
_START_CELLS = 256  # places where these starts may cut
_MOST_BOUNDED = 64  # modalities for which the bound looks at the informative modalities one by one
_SHARE_CELLS = 300


def look_for_garbage(
    grounds: list[Ground], best: Grouping, granularity: int, rng: np.random.RandomState
) -> tuple[Grouping, int]:
    """The best grouping, with a garbage group or without: starts at every granularity, the most promising polished."""
    found = [
        (start.cost, place, ground, start)
        for place, ground in enumerate(grounds)
        for start in [*_uninformative_as_garbage(ground), *_largest_as_garbage(ground)]
    ]
    found.sort(key=lambda one: one[:2])
    for _, _, ground, start in found[:_POLISHED]:
        better = polish(ground, start, rng)
        if better.cost < best.cost - TOLERANCE * abs(best.cost):
            best = Grouping(better.cost, better.labels[ground.units.labels], better.garbage)
            granularity = ground.units.granularity
    return best, granularity


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


def _largest_as_garbage(ground: Ground) -> list[Grouping]:
    """Cuts along the main axis into few groups, the one with most modalities as the garbage."""
    order = by_main_axis(ground.units.counts)
    task, ends = line_up(ground, order, _START_CELLS)
    most = min(_MOST_BESIDE, len(ends), ground.max_parts or _MOST_BESIDE)
    found = (Passes(task, ends).by_number(most) or [])[2:]
    starts = [ground.price(labels_along(order, one.ends)) for one in found]
    return sorted((one for one in starts if one.garbage is not None), key=lambda one: one.cost)[:2]


def _beside_garbage(ground: Ground, chosen: Places) -> Grouping:
    """The best cuts of the chosen units along the main axis, the others in one more group."""
    units = ground.units
    size = int(units.weights.sum() - units.weights[chosen].sum())
    order = chosen[by_main_axis(units.counts[chosen])]
    most = min(len(order), _MOST_INFORMATIVE_GROUPS if ground.max_parts is None else ground.max_parts - 1)
    prior = ground.all_with_garbage(most + 1, size)[1:]
    if most < 2 or not np.isfinite(prior[1]):
        return Grouping(np.inf, np.zeros(len(units), dtype=np.int64))
    prior[0] = prior[1]
    part = Ground(Units(units.counts[order], units.weights[order], np.arange(len(order)), len(order)), prior,
                  ground.table, ground.least, ground.n_candidates, False, ground.deadline)  # fmt: skip
    task, ends = line_up(part, np.arange(len(order)))
    best = Best(np.inf, np.array([len(order)]), 0)
    descend_cuts(task, ends, prior[: len(ends)], best, 0)
    labels = np.full(len(units), len(best.ends), dtype=np.int64)
    labels[order] = np.searchsorted(best.ends, np.arange(len(order)), side="right")
    return ground.price(labels)


def _telling(units: Units) -> Floats:
    """What each modality's own class shares save over the shares of all, in nats per modality."""
    sizes = units.counts.sum(axis=1)
    base = units.counts.sum(axis=0) / sizes.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(units.counts > 0, np.log(units.counts / sizes[:, None] / base), 0.0)
    gain = (units.counts * ratio).sum(axis=1) - 0.5 * (units.counts.shape[1] - 1) * np.log(sizes)
    return np.asarray(gain / units.weights)


# -- a bound, for two classes ------------------------------------------------------------------


def garbage_bound(grounds: list[Ground], bounds: Bounds) -> float:
    """No grouping of two classes with a garbage group costs less.

    `grounds`: of single modalities, none joined; `bounds`: those on the parts of any groups of the finest.
    """
    return min((_bound_at(ground, bounds) for ground in grounds), default=np.inf)


def _bound_at(ground: Ground, bounds: Bounds) -> float:
    """The bound at one granularity: the least over the numbers of informative modalities v and of groups.

    The parts cost at least what any partition into so many groups costs, and at least what they would
    if each of the v most telling modalities had its own class shares for free (`_parts_by_informative`).
    """
    units = ground.units
    n, most = len(units), min(_MOST_INFORMATIVE_GROUPS, len(units))
    groups = np.arange(1.0, most + 1)
    parts = bounds.below(groups)
    if n > _MOST_BOUNDED:  # the prior rises with v: each group beside the garbage has one informative modality
        priors = np.array([ground.with_garbage(k, n - k + 1) for k in range(1, most + 1)])
        covers_more = priors[-1] - priors[-2] >= parts[-2] - parts[-1]  # further groups cost more than they save
        return float((parts + priors).min()) if covers_more else -np.inf
    exact = Passes(*line_up(ground, by_share(units.counts, 1))).by_number(most)
    if exact:
        parts = np.array([one.parts_cost for one in exact])
    alone, least = _parts_by_informative(units.counts)
    in_garbage = np.cumsum(np.sort(units.counts.sum(axis=1)))[n - np.arange(1, n + 1) - 1]
    surplus = np.maximum(0.0, 0.5 * np.log((np.append(n, in_garbage) + 1) / 2))  # C(n, k) >= its usual bound
    lower = np.inf
    for v in range(2, n):
        separate = alone[v] + (groups - 1) * least + surplus[v]
        lower = min(lower, float((np.maximum(parts, separate) + ground.all_with_garbage(most, n - v)).min()))
    return lower


def _parts_by_informative(counts: Floats) -> tuple[Floats, float]:
    """For v = 0 .. n informative modalities: the least -ln likelihood, and the least surplus of a group over it.

    The garbage has one share q of the second class, sought in cells over each of which the least is
    taken; an informative modality has its own. A group costs at least what one of its
    modalities does alone, and the likelihoods of the others.
    """
    sizes = counts.sum(axis=1)
    own = _minus_ln_likelihood(counts, counts[:, 1] / sizes)
    edges = np.concatenate([[0.0], 1 / (1 + np.exp(-np.linspace(-12, 12, _SHARE_CELLS))), [1.0]])
    cost = _minus_ln_likelihood(counts, np.clip(counts[:, 1] / sizes, edges[:-1, None], edges[1:, None]))
    saved = np.sort(np.maximum(cost - own, 0.0), axis=1)[:, ::-1]
    best = cost.sum(axis=1)[:, None] - np.cumsum(np.insert(saved, 0, 0.0, axis=1), axis=1)
    surplus = gammaln(sizes + 2) - gammaln(counts + 1).sum(axis=1) - own
    return best.min(axis=0), float(surplus.min())


def _minus_ln_likelihood(counts: Floats, share: Floats) -> Floats:
    """Of two classes (U, 2), where the second one has these shares (..., U)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(counts[:, 0] > 0, counts[:, 0] * np.log(1 - share), 0.0)
        second = np.where(counts[:, 1] > 0, counts[:, 1] * np.log(share), 0.0)
    return np.asarray(-(first + second))
