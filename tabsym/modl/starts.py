"""Target intervals from which searches for grids start, and those beside the ones found."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tabsym.modl.grid import GridSearch, Rows
from tabsym.modl.grouping import without_gaps
from tabsym.modl.partition import ends_of, ends_of_equal_parts, labels_of

Indices = NDArray[np.int64]

# all of these trade time for cost; benchmarks/modl/regression.py shows both
START_NUMBERS = (2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Numbers of equally frequent intervals of the target, or parts of the column, from which the search starts."""
MAX_JOINED_BY_TWO = 8
"""Up to so many groups every two are joined."""
SHAKEN = 12
"""So many models are made from one with some of its target cuts elsewhere."""
MAX_CHANGED_SYMBOLS = 200
"""Of more categories than these target cuts are not changed one by one but with groups near those found."""


def starts(search: GridSearch) -> Iterator[Indices]:
    """Target intervals to start from: of equal size, and the best ones for parts of equal size."""
    rows = search.rows
    sizes = np.bincount(rows.target, rows.weight, minlength=rows.n_targets)
    for number in START_NUMBERS:
        if number <= rows.n_targets:
            yield labels_of(ends_of_equal_parts(sizes, number), rows.n_targets)
    if rows.n_targets <= max(START_NUMBERS):
        yield np.arange(rows.n_targets)
    for number in START_NUMBERS:
        if number <= rows.n_sources:
            yield search.target_given(_equal_parts(search, number), quick=True)


def _equal_parts(search: GridSearch, number: int) -> Indices:
    """Parts of the column of equal size (B,): of categories, in the order of their mean rank of the target."""
    rows = search.rows
    order = _by_mean_rank(rows) if search.sources.symbolic else np.arange(rows.n_sources)
    sizes = np.bincount(rows.source, rows.weight, minlength=rows.n_sources)[order]
    parts = np.empty(rows.n_sources, dtype=np.int64)
    parts[order] = labels_of(ends_of_equal_parts(sizes, min(number, rows.n_sources)), rows.n_sources)
    return parts


def changed(search: GridSearch, parts: Indices, labels: Indices) -> Iterator[Indices]:
    """Target intervals beside these: with more cuts, with fewer, with some elsewhere; the best of joined parts."""
    rows = search.rows
    sizes = np.bincount(rows.target, rows.weight, minlength=len(labels))
    yield from _with_more_cuts(labels, sizes)
    if rows.n_sources > MAX_CHANGED_SYMBOLS and search.sources.symbolic:
        return
    yield from _shaken(labels, sizes, np.random.RandomState(search.sources.settings.random_state))
    for a, b in _neighbours(int(parts.max()) + 1, symbolic=search.sources.symbolic):
        yield search.target_given(without_gaps(np.where(parts == b, a, parts)), quick=True)
    yield from _cut_by_cut(labels)


def near(search: GridSearch, labels: Indices, round_: int) -> Iterator[Indices]:
    """Target intervals beside these, for categories whose groups are near: with more cuts, fewer, some elsewhere."""
    sizes = np.bincount(search.rows.target, search.rows.weight, minlength=len(labels))
    yield from _with_more_cuts(labels, sizes)
    yield from _shaken(labels, sizes, np.random.RandomState([search.sources.settings.random_state, round_]))
    yield from _cut_by_cut(labels)


def cuts_more_or_fewer(labels: Indices, sizes: NDArray[np.number]) -> Iterator[Indices]:
    """Target intervals with more cuts, without each cut, and without it and the one before."""
    yield from _with_more_cuts(labels, sizes)
    yield from _fewer_cuts(labels)


def _with_more_cuts(labels: Indices, sizes: NDArray[np.number]) -> Iterator[Indices]:
    """With those of each number of equally frequent intervals, too."""
    for number in START_NUMBERS:
        if number <= len(labels):
            yield labels_of(np.union1d(ends_of(labels), ends_of_equal_parts(sizes, number)), len(labels))


def _shaken(labels: Indices, sizes: NDArray[np.number], rng: np.random.RandomState) -> Iterator[Indices]:
    """Some cuts gone, as many or fewer elsewhere: at 32 quantiles, of fewer targets at nearly every boundary."""
    n, ends = len(labels), ends_of(labels)
    places = ends_of_equal_parts(sizes, 2 * n if n < 32 else 32)[:-1]
    for _ in range(SHAKEN):
        kept = ends[:-1][rng.random_sample(len(ends) - 1) < rng.random_sample()]
        new = rng.choice(places, rng.randint(len(ends) + 1)) if len(places) else places
        yield labels_of(np.unique(np.concatenate([kept, new, ends[-1:]])), n)


def _cut_by_cut(labels: Indices) -> Iterator[Indices]:
    """Without each cut, without it and the one before, and with it elsewhere between its neighbours."""
    n, ends = len(labels), ends_of(labels)
    for place in range(len(ends) - 1):
        left, here, right = ends[place - 1] if place else 0, ends[place], ends[place + 1]
        others = np.delete(ends, place)
        yield labels_of(others, n)
        if place > 0:
            yield labels_of(np.delete(others, place - 1), n)
        for there in _elsewhere(left, here, right):
            yield labels_of(np.union1d(others, there), n)


def _fewer_cuts(labels: Indices) -> Iterator[Indices]:
    """Without each cut, and without it and the one before."""
    n, ends = len(labels), ends_of(labels)
    for place in range(len(ends) - 1):
        others = np.delete(ends, place)
        yield labels_of(others, n)
        if place > 0:
            yield labels_of(np.delete(others, place - 1), n)


def _elsewhere(left: int, here: int, right: int) -> list[int]:
    """Indices between two neighbours: in the middle of either side, and 1, 4, 16, ... cells away.

    Steps of 2, 4, 8, ... take up to half as long again and found nothing more on nine columns but one (2e-5).
    """
    found, step = {(left + here) // 2, (here + right + 1) // 2}, 1
    while step < right - left:
        found |= {here - step, here + step}
        step *= 4
    return sorted(place for place in found if left < place < right and place != here)


def _neighbours(n: int, *, symbolic: bool) -> list[tuple[int, int]]:
    """Parts of the column, of so many, that can be joined."""
    if not symbolic:
        return [(a, a + 1) for a in range(n - 1)]
    return list(combinations(range(n), 2)) if n <= MAX_JOINED_BY_TWO else []


def _by_mean_rank(rows: Rows) -> Indices:
    """Modalities in the order of their mean rank of the target."""
    weight = np.ones(len(rows.source)) if rows.weight is None else rows.weight
    before = np.cumsum(np.bincount(rows.target, weight, minlength=rows.n_targets))
    ranks = np.bincount(rows.source, weight * before[rows.target], minlength=rows.n_sources)
    return np.argsort(ranks / np.bincount(rows.source, weight, minlength=rows.n_sources), kind="stable")
