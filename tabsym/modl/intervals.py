"""Optimal discretization: ordered blocks of class counts into intervals.

Cuts lie on the grids of `interval_search`, one for each granularity. Those of up to some thousand blocks are searched
exactly (`search`, `hull`); of more the cuts are approached (`approach`). Monotone ones are in `monotone`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tabsym.modl.approach import approach, slide_at
from tabsym.modl.criterion import most_granularity, null_prior, parts_cost
from tabsym.modl.ends import labels_of
from tabsym.modl.hull import Best, Bounds
from tabsym.modl.interval_search import IntervalSearch
from tabsym.modl.monotone import search_monotone
from tabsym.modl.partition import Partition
from tabsym.modl.quantiles import quantile_boundaries
from tabsym.modl.search import deadline_of, descend_cuts, make_task, take_one_cut

Floats = NDArray[np.float64]

QUICK_GRID = 9
"""Quick searches cut on the grid of 2**9 quantiles: time for how near they come."""
_MOST_IDLE = 3  # granularities without a better model, after which a search without a proof ends: time for cost
_SLIDE_REACH = 64  # places of a finer grid that a cut found on the coarser one may move by in a sweep, for time


def discretize(
    counts: Floats,
    *,
    criterion: str = "khiops",
    n_candidates: int = 1,
    max_parts: int | None = None,
    min_part_count: float = 1,
    monotonic: bool = False,
    time_limit: float | None = None,
    value: Floats | None = None,
    quick: bool = False,
    least_parts: int = 1,
    prove: bool = True,
) -> Partition:
    """The intervals of least cost, with a lower bound on what any intervals cost.

    Parameters
    ----------
    counts : (B, J)
        Rows of each class at each distinct value, in ascending order.
    criterion : {"khiops", "page"}
    n_candidates : int
        Columns among which this one is a candidate; enters "khiops" only.
    max_parts : int or None
        Maximal number of intervals.
    min_part_count : float
        Minimal number of rows of an interval.
    monotonic : bool
        Whether the proportion of the second of two classes must be monotonic from interval to interval.
    time_limit : float or None
        Seconds. None: the optimum is certified up to 4,096 blocks, and approached beyond. A number: the
        search goes on towards a certificate for any number of blocks, and returns the best by then.
    value : (B,) or None
        The quantity that `monotonic` constrains, summed at each distinct value: in regression the target. None: the
        second class.
    quick : bool
        A good model on a grid of 512 quantiles, without a bound.
    least_parts : {1, 2}
        2: the best of two intervals or more, even if one costs less; infinitely dear where there are none.
    prove : bool
        False: without a bound, and without the searches that only a proof needs. The parts are the same but for numbers
        of parts to which no price leads.

    Returns
    -------
    Partition
    """
    counts = np.asarray(counts, dtype=np.float64)
    task = make_task(counts, float(min_part_count), deadline_of(time_limit))
    if monotonic:
        task = replace(task, value=task.cumulative[1] if value is None else np.concatenate([[0.0], np.cumsum(value)]))
    null = null_prior(criterion, n_rows=float(task.sizes[-1])) + parts_cost(counts.sum(axis=0)[None, :])
    best = Best(null if least_parts < 2 else np.inf, np.array([task.n_blocks], dtype=np.int64))
    search = IntervalSearch(task, criterion, n_candidates, max_parts, least_parts, prove, best)
    if least_parts > 1 and not monotonic:
        _take_one_cut(search)
    if quick:
        lower = _search_quickly(search)
    elif monotonic:
        lower = search_monotone(search)
    elif criterion == "page":
        lower = _search_page(search, insist=time_limit is not None)
    else:
        lower = _search_khiops(search, insist=time_limit is not None)
    return Partition(
        criterion=criterion,
        labels=labels_of(best.ends, task.n_blocks),
        counts=task.part_counts(best.ends),
        cost=best.cost,
        null_cost=null,
        lower_bound=min(lower, best.cost),
        granularity=best.tag,
    )


def _take_one_cut(search: IntervalSearch) -> None:
    """The best two intervals: searches by prices may find one, or many."""
    for granularity, ends in search.grids().items():
        prior = search.prior(len(ends), granularity)
        if len(prior) > 1:
            take_one_cut(search.task, ends, float(prior[1]), search.best, granularity)


def _search_quickly(search: IntervalSearch) -> float:
    """A good model on a grid of 512 quantiles; no bound."""
    finest = min(most_granularity(search.n_rows), QUICK_GRID)
    grids = {0: QUICK_GRID} if search.criterion == "page" else {g: g for g in range(2, finest + 1)}
    for granularity, grid in grids.items():
        ends = search.merged(quantile_boundaries(search.task.sizes, grid))
        descend_cuts(search.task, ends, search.prior(len(ends), granularity), search.best, granularity)
    return -np.inf


def _search_page(search: IntervalSearch, *, insist: bool) -> float:
    """Search under "page"; the lower bound reached."""
    fine = search.grids()[0]
    if len(fine) > search.most_looked_at:
        approach(search, fine, 0)
        if not insist:
            return -np.inf
    return search.exact(fine, 0, Bounds())


def _search_khiops(search: IntervalSearch, *, insist: bool) -> float:
    """Search every granularity; first the coarse, which find good models, then from the finest, which bound."""
    task, best, grids = search.task, search.best, search.grids()
    small = [g for g in grids if len(grids[g]) <= search.most_looked_at]
    for granularity in small:
        if not search.prove and best.tag and granularity > best.tag + _MOST_IDLE:
            break
        if len(grids[granularity]) <= 2**search.coarse_grid:
            prior = search.prior(len(grids[granularity]), granularity)
            descend_cuts(task, grids[granularity], prior, best, granularity)
    large = [g for g in grids if g not in small]
    for granularity in large:
        slide_at(search, grids[granularity], granularity, _SLIDE_REACH)
    if large and best.tag in large:
        approach(search, grids[best.tag], best.tag)
    if not search.prove:
        return -np.inf
    order = sorted(grids if insist else small, reverse=True)
    if not order:
        return best.cost
    lower, bounds = np.inf, Bounds()
    for granularity in order:
        lower = min(lower, search.exact(grids[granularity], granularity, bounds))
    return lower if insist or not large else -np.inf
