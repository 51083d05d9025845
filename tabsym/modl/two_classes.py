"""Groups of two classes: cuts of the modalities in the order of class shares, as the cost of a part is concave."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tabsym.modl.ground import CUT_PLACES, Grouping, labels_along
from tabsym.modl.group_search import GroupSearch
from tabsym.modl.hull import Best, Bounds
from tabsym.modl.quantiles import COARSE_GRID, quantile_boundaries
from tabsym.modl.search import Task, descend_cuts, exact_cuts, make_task, take_one_cut
from tabsym.modl.units import Units, by_share

Places = NDArray[np.int64]

_MOST_FIRST = 4 * CUT_PLACES  # units of which a first look cuts anywhere: time for a better model to start from


class CutGroups(NamedTuple):
    """The best groups in a row, a cost that none are below, and bounds on the parts of any groups whatever."""

    best: Grouping
    lower: float
    bounds: Bounds


class _Lined(NamedTuple):
    """Units in the order of their class shares, as a task."""

    units: Units
    order: Places
    task: Task
    ends: Places


def cut_by_share(search: GroupSearch, families: list[Units], start: Grouping) -> CutGroups:
    """The best groups without garbage at any granularity: exact, if groups have no least size."""
    lines = [_lined_up(search, units) for units in families]
    best = Best(start.cost, np.empty(0, dtype=np.int64), -1)
    for place, line in enumerate(lines):
        _first_look(search, line, best, place)
    lower, all_bounds, bounds = np.inf, Bounds(), Bounds()
    for place in range(len(lines) - 1, -1, -1):  # bounds of the finest hold for the coarser
        units, _, task, ends = lines[place]
        prior = search.prior(units)
        lower = min(lower, exact_cuts(task, ends, prior, best, all_bounds, place))
        if place == len(lines) - 1:  # what coarser modalities add to the bounds does not hold for these
            bounds = all_bounds.of_any_parts()
        if len(prior) < len(units) and search.max_parts is None:  # the prior rises beyond its last number
            beyond = np.arange(len(prior) + 1.0, len(units) + 1)
            lower = min(lower, float(all_bounds.below(beyond).min() + prior[-1]))
    if best.tag < 0:
        return CutGroups(start, lower, bounds)
    line = lines[best.tag]
    found = Grouping(best.cost, labels_along(line.order, best.ends))
    return CutGroups(found.of_modalities(line.units), lower, bounds)


def _lined_up(search: GroupSearch, units: Units) -> _Lined:
    joined = search.joined(units)
    order = by_share(joined.counts, 1)
    task = make_task(joined.counts[order], search.least, search.deadline, search.table)
    return _Lined(joined, order, task, np.arange(1, len(joined) + 1))


def _first_look(search: GroupSearch, line: _Lined, best: Best, tag: int) -> None:
    """A good model, for the exact search to beat."""
    prior = search.prior(line.units)
    if search.least_parts > 1 and len(prior) > 1:
        take_one_cut(line.task, line.ends, float(prior[1]), best, tag)
    few = len(line.ends) <= _MOST_FIRST
    descend_cuts(line.task, line.ends if few else quantile_boundaries(line.task.sizes, COARSE_GRID), prior, best, tag)
