"""What partitions cost, in nats: the priors of both criteria, and given partitions and grids, whoever made them.

``page`` is the criterion as its documentation prints it (Boulle 2006), ``khiops`` as
Khiops 11 runs it. Both add the same cost of the parts to a prior of
the model; a prior here is a vector over the number of parts, so that a
search can look at all of them at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from tabsym.modl.partition import quantile_boundaries, sum_by

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

CRITERIA = ("khiops", "page")
LN2 = math.log(2.0)
_ADDED = 2_000  # terms of the universal code's sum that Khiops adds one by one
_FIFTH_LOG = 65_536  # 2**2**2**2, from where a fifth iterated logarithm is positive
MAX_TABLE = 20_000_000
"""Up to this many rows ln k! comes from a table, memory for time; beyond, and for fractional counts, from lgamma."""


# -- Rissanen's universal code of the whole numbers ------------------------------------------


def log2_star(k: NDArray[np.float64] | float) -> Floats:
    """log2 k + log2 log2 k + ..., over the positive terms."""
    rest = np.array(k, dtype=np.float64, ndmin=1)
    total = np.zeros_like(rest)
    while True:
        rest = np.log2(rest, out=np.zeros_like(rest), where=rest > 1.0)
        if not (rest > 0).any():
            return total
        total += rest


@lru_cache(maxsize=1)
def _code_sums() -> Floats:
    """Sums of 2**-log2*(j) over j <= m, at place m - 1."""
    return np.cumsum(np.exp2(-_stars()))


def ln_code_sum(m: float) -> float:
    """ln of the sum of 2**-log2*(j) over j <= m.

    Beyond 2,000 terms by the integral, as Khiops has it (7e-7 above the sum, so that costs agree to
    the last digit): 2**-log2*(x) is the derivative of (ln 2)**k times the k-th iterated logarithm.
    """
    m = max(1, math.floor(m))
    sums = _code_sums()
    if m <= _ADDED:
        return math.log(sums[m - 1])
    total = sums[-1] + LN2**4 * (_iterated_log(min(m, _FIFTH_LOG), 4) - _iterated_log(_ADDED, 4))
    if m > _FIFTH_LOG:
        total += LN2**5 * _iterated_log(m, 5)
    return math.log(total)


@lru_cache(maxsize=8)
def _ln_code_sums(last: int) -> Floats:
    """`ln_code_sum` of m = 1 .. last."""
    return np.array([ln_code_sum(m) for m in range(1, last + 1)])


def _iterated_log(x: float, times: int) -> float:
    for _ in range(times):
        x = math.log2(x)
    return x


def ln_universal(k: int, m: float) -> float:
    """R(k; m): the length in nats of Rissanen's code of k, of the whole numbers from 1 to m."""
    star = float(_stars()[k - 1]) if k <= _ADDED else float(log2_star(float(k))[0])
    return LN2 * star + ln_code_sum(m)


def ln_universal_to(max_parts: int, m: float) -> Floats:
    """R(k; m) for k = 1 .. max_parts."""
    stars = _stars()[:max_parts] if max_parts <= _ADDED else log2_star(np.arange(1.0, max_parts + 1))
    return LN2 * stars + ln_code_sum(m)


@lru_cache(maxsize=1)
def _stars() -> Floats:
    return log2_star(np.arange(1.0, _ADDED + 1))


# -- partitions of a set ---------------------------------------------------------------------


@lru_cache(maxsize=256)  # searches ask again; what they get is not to be written to
def ln_partitions(n: int, max_parts: int) -> Floats:
    """ln B(n, g) for g = 1 .. max_parts: partitions of n things into at most g groups.

    B(n, g) = sum_k k**n / k! D(g - k), D(r) = sum_{j <= r} (-1)**j / j!, which are never
    negative: no term cancels another, whatever n is.
    """
    powers = n * np.log(np.arange(1.0, max_parts + 1)) - gammaln(np.arange(2.0, max_parts + 2))
    ln_derangements = _ln_derangements(max_parts)
    number = np.arange(max_parts)
    rest = number[:, None] - number[None, :]  # of g groups, k: g - k
    terms = np.where(rest >= 0, powers[None, :] + ln_derangements[np.maximum(rest, 0)], -np.inf)
    top = terms.max(axis=1)
    ln_numbers = np.asarray(top + np.log(np.exp(terms - top[:, None]).sum(axis=1)))
    ln_numbers.flags.writeable = False
    return ln_numbers


def _ln_derangements(max_parts: int) -> Floats:
    """ln D(r) for r = 0 .. max_parts - 1: D(r) is the fraction of permutations of r things without a fixed point."""
    order = np.arange(max_parts)
    fractions = np.cumsum(np.where(order % 2 == 0, 1.0, -1.0) * np.exp(-gammaln(order + 1.0)))
    fractions[1:2] = 0.0
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(fractions))


# -- priors ------------------------------------------------------------------------------------


def max_granularity(n_rows: float) -> int:
    """Khiops' largest granularity: ceil(log2 N)."""
    return max(1, math.ceil(math.log2(max(n_rows, 2.0)) - 1e-11))  # weights may add up to 16 and a hair


def null_prior(criterion: str, *, n_rows: float, n_modalities: int | None = None) -> float:
    """The prior of one part; `n_modalities` for categories, None for numbers."""
    if criterion == "khiops":
        return LN2
    if n_modalities is None:
        return math.log(n_rows)
    return math.log(n_modalities)  # B(M, 1) = 1


_MAX_CACHED = 4096


def interval_prior(criterion: str, max_parts: int, *, n_rows: float, n_candidates: int, granularity: int = 0) -> Floats:
    """Priors of 1 .. max_parts intervals, not to be written to; khiops' on the grid of 2**granularity quantiles."""
    prior = _cached_prior if max_parts <= _MAX_CACHED else _interval_prior
    return prior(criterion, max_parts, n_rows, n_candidates, granularity)


def _interval_prior(criterion: str, max_parts: int, n_rows: float, n_candidates: int, granularity: int) -> Floats:
    parts = np.arange(1, max_parts + 1, dtype=np.float64)
    if criterion == "page":
        choose = gammaln(n_rows + parts) - gammaln(parts) - gammaln(n_rows + 1)
        prior = math.log(n_rows) + np.asarray(choose)
    else:
        prior = np.full(max_parts, np.inf)
        prior[0] = LN2
        cells = min(2.0**granularity, n_rows)
        if max_parts > 1 and cells >= 2:
            cuts = parts[1:] - 1
            prior[1:] = _khiops_selection(n_candidates, granularity, n_rows) + ln_universal_to(max_parts - 1, cells - 1)
            prior[1:] += cuts * math.log(cells - 1) - gammaln(cuts + 1)
            prior[1:][cuts > cells - 1] = np.inf
    prior.flags.writeable = False
    return prior


_cached_prior = lru_cache(maxsize=128)(_interval_prior)  # searches by other classes ask again


def group_prior(
    criterion: str, max_parts: int, *, n_rows: float, n_modalities: int, n_candidates: int, granularity: int = 0
) -> Floats:
    """Priors of 1 .. max_parts groups of `n_modalities` categories (under khiops: those left at the granularity)."""
    if criterion == "page":
        return math.log(n_modalities) + ln_partitions(n_modalities, max_parts)
    prior = np.full(max_parts, np.inf)
    prior[0] = LN2
    if max_parts < 2:
        return prior
    prior[1:] = _khiops_selection(n_candidates, granularity, n_rows) + _ln_whether_garbage(n_modalities)
    prior[1:] += ln_universal_to(max_parts - 1, n_modalities - 1) + ln_partitions(n_modalities, max_parts)[1:]
    return prior


GARBAGE_FROM = 7
"""Khiops considers a garbage group from this number of modalities on."""


def _ln_whether_garbage(n_modalities: int) -> float:
    """The cost of whether there is a garbage group: none at the smallest number of modalities that can have one."""
    return LN2 if n_modalities > GARBAGE_FROM else 0.0


@lru_cache(maxsize=8192)  # columns of as many categories ask the same; what they get is not to be written to
def garbage_priors(
    max_parts: int, garbage: int, *, n_rows: float, n_modalities: int, n_candidates: int, granularity: int
) -> Floats:
    """Khiops' priors of 1 .. max_parts groups, one of which is the garbage and holds `garbage` modalities."""
    rest = n_modalities - garbage
    prior = np.full(max_parts, np.inf)
    last = min(max_parts, rest + 1)
    if n_modalities < GARBAGE_FROM or garbage < 1 or last < 3:
        return prior
    groups = np.arange(2, last)  # without the garbage
    prior[2:last] = _khiops_selection(n_candidates, granularity, n_rows) + _ln_whether_garbage(n_modalities)
    prior[2:last] += ln_universal_to(len(groups), rest - 1) + ln_partitions(rest, last - 1)[1:]
    prior[2:last] += ln_universal(rest - 1, n_modalities - 2) + rest * math.log(n_modalities)
    prior[2:last] -= math.lgamma(rest + 1)
    prior.flags.writeable = False
    return prior


class GroupPrices(NamedTuple):
    """What searches compute Khiops' priors of groups from; see `kernels`."""

    by_size: Floats
    stars: Floats
    ln_derangements: Floats


@lru_cache(maxsize=64)  # searches ask again; what they get is not to be written to
def group_prices(
    max_parts: int, *, n_rows: float, n_modalities: int, n_candidates: int, granularity: int, garbage: bool
) -> GroupPrices:
    """Of up to this number of groups; `garbage`: whether one of them may be the garbage."""
    by_size = np.empty(0)
    if garbage:
        by_size = np.full(n_modalities + 1, np.inf)
        rest = np.arange(2, n_modalities)
        prior = _khiops_selection(n_candidates, granularity, n_rows) + _ln_whether_garbage(n_modalities)
        prior += ln_code_sum(n_modalities - 2)
        sums = _ln_code_sums(n_modalities - 2)
        named = LN2 * log2_star((rest - 1).astype(np.float64)) + rest * math.log(n_modalities) - gammaln(rest + 1.0)
        by_size[n_modalities - rest] = prior + sums + named
    return GroupPrices(by_size, LN2 * log2_star(np.arange(1.0, max_parts + 1)), _ln_derangements(max_parts))


def _khiops_selection(n_candidates: int, granularity: int, n_rows: float) -> float:
    """Khiops' cost of using a column at all, and of its granularity."""
    return LN2 + math.log(n_candidates) + ln_universal(granularity, max_granularity(n_rows))


# -- parts -------------------------------------------------------------------------------------


_CLASSES = 512  # tables with the same number of rows and up to this number of classes are the same


def ln_factorials(total: float, n_classes: int, *, whole: bool) -> Floats:
    """ln k! for k = 0 .. total + classes, for the kernels; empty where they shall use lgamma."""
    if not whole or total > MAX_TABLE:
        return np.empty(0)
    return _ln_factorials(int(total) + max(_CLASSES, 1 << (n_classes - 1).bit_length()))


@lru_cache(maxsize=8)
def _ln_factorials(last: int) -> Floats:
    table = np.empty(last + 1)
    table[0] = 0.0
    np.cumsum(np.log(np.arange(1.0, len(table))), out=table[1:])
    table.flags.writeable = False
    return table


def parts_cost(counts: NDArray[np.float64]) -> float:
    """Cost of the class counts (parts, J) of all parts: sum ln C(N_i + J - 1, J - 1) + ln N_i! / prod N_ij!."""
    sizes, n_classes = counts.sum(axis=1), counts.shape[1]
    total = gammaln(sizes + n_classes).sum() - len(counts) * math.lgamma(n_classes)
    return float(total - gammaln(counts[counts > 0] + 1).sum())  # most counts are 0 where there are many classes


def target_intervals_cost(counts: NDArray[np.float64]) -> float:
    """What target intervals add to a joint grid, by their rows in each source part (T, I): sum ln N_j! / prod N_ij!."""
    return float(gammaln(counts.sum(axis=1) + 1).sum() - gammaln(counts[counts > 0] + 1).sum())


def target_prior(criterion: str, max_parts: int, source_sizes: NDArray[np.float64], n_rows: float) -> Floats:
    """Priors of 1 .. max_parts target intervals: their number, and their frequencies in parts of these sizes (I,).

    How many: R(T - 1; N - 1) under khiops, where one is the null model; ln N under page.
    """
    number = np.arange(1, max_parts, dtype=np.float64)
    sizes, times = np.unique(source_sizes, return_counts=True)
    # one interval more: a factor (N_i + T) / T for each part of N_i rows
    factors = times @ np.log(sizes[:, None] + number) - len(source_sizes) * np.log(number)
    prior = np.append(0.0, np.cumsum(factors))
    if criterion == "page":
        return np.asarray(prior + math.log(n_rows))
    prior[0] = np.inf
    if max_parts > 1:
        prior[1:] += ln_universal_to(max_parts - 1, n_rows - 1)
    return np.asarray(prior)


# -- modalities at each granularity --------------------------------------------------------------


class Lumps(NamedTuple):
    """What modalities of some sizes are at a granularity: `labels` (M,), that of each; `n`, how many."""

    granularity: int
    labels: Indices
    n: int


def lumps_by_granularity(sizes: Floats) -> list[Lumps]:
    """Khiops' granularities, coarse to fine: modalities of fewer than ceil(N / 2**G) rows are one; no repetitions."""
    total = float(sizes.sum())
    lumps: list[Lumps] = []
    for granularity in range(1, max_granularity(total) + 1):
        infrequent = sizes < math.ceil(total / 2**granularity - 1e-9)
        n = len(sizes) if not infrequent.any() else int((~infrequent).sum()) + 1
        if n > 1 and not (lumps and lumps[-1].n == n):
            lumps.append(Lumps(granularity, np.where(infrequent, n - 1, np.cumsum(~infrequent) - 1), n))
    return lumps


# -- given partitions ----------------------------------------------------------------------------


def interval_cost(
    counts: ArrayLike,
    ends: Sequence[int],
    *,
    criterion: str = "khiops",
    n_candidates: int = 1,
    granularity: int | None = None,
) -> float:
    """The cost in nats of cutting ordered blocks into these intervals.

    Parameters
    ----------
    counts : (B, J)
        Rows of each class at each distinct value, ascending.
    ends : sequence of int
        The block after the last of each interval; the last is B.
    criterion : {"khiops", "page"}
    n_candidates : int
    granularity : int or None
        Khiops' granularity; None: the least cost over those whose quantile grid has all the cuts. Where none
        has them, the finest (every cut has its own position there).

    Returns
    -------
    float

    Examples
    --------
    >>> round(interval_cost([[6, 0], [1, 5]], [1, 2], criterion="page"), 4)
    10.7334
    """
    if granularity is None:
        return intervals_and_granularity(counts, ends, criterion, n_candidates)[0]
    table, positions = np.asarray(counts, dtype=np.float64), np.asarray(ends, dtype=np.int64)
    return _cost_of_intervals(table, positions, criterion, n_candidates, granularity)


def intervals_and_granularity(
    counts: ArrayLike, ends: Sequence[int] | Indices, criterion: str, n_candidates: int
) -> tuple[float, int]:
    """The cost as `interval_cost` has it, and Khiops' granularity where it is least (0 under "page")."""
    table, positions = np.asarray(counts, dtype=np.float64), np.asarray(ends, dtype=np.int64)
    granularity = 0
    if criterion == "khiops" and len(positions) > 1:
        sizes = np.concatenate([[0.0], np.cumsum(table.sum(axis=1))])
        finest = max_granularity(float(table.sum()))
        on_grid = (g for g in range(1, finest) if np.isin(positions, quantile_boundaries(sizes, g)).all())
        granularity = next(on_grid, finest)  # the prior rises with the granularity
    return _cost_of_intervals(table, positions, criterion, n_candidates, granularity), granularity


def _cost_of_intervals(table: Floats, ends: Indices, criterion: str, n_candidates: int, granularity: int) -> float:
    of_parts = parts_cost(np.add.reduceat(table, np.append(0, ends[:-1]), axis=0))
    known: dict[str, Any] = {"n_rows": float(table.sum()), "n_candidates": n_candidates, "granularity": granularity}
    if len(ends) == 1:
        return of_parts + null_prior(criterion, n_rows=known["n_rows"])
    return of_parts + float(interval_prior(criterion, len(ends), **known)[-1])


def grouping_cost(
    counts: ArrayLike,
    labels: Sequence[int],
    *,
    criterion: str = "khiops",
    n_candidates: int = 1,
    granularity: int | None = None,
    n_modalities: int | None = None,
) -> float:
    """The cost in nats of these groups of modalities.

    Parameters
    ----------
    counts : (M, J)
        Rows of each class with each modality.
    labels : sequence of int
        The group of each modality.
    criterion, n_candidates
        As in `interval_cost`.
    granularity, n_modalities : int or None
        Khiops' granularity, and how many modalities there are left at it. None: the least cost over the
        granularities that catch together only modalities of one group, and over garbage groups.

    Returns
    -------
    float

    Examples
    --------
    >>> round(grouping_cost([[6, 0], [1, 5], [2, 9]], [0, 1, 1], criterion="page"), 4)
    13.8433
    """
    if granularity is None:
        return groups_and_granularity(counts, labels, criterion, n_candidates)[0]
    table, groups, n = _grouped(counts, labels)
    left = len(table) if n_modalities is None else n_modalities
    known: dict[str, Any] = {"n_rows": float(table.sum()), "n_candidates": n_candidates, "granularity": granularity}
    of_parts = parts_cost(sum_by(groups, table, n))
    if n == 1:
        return of_parts + null_prior(criterion, n_rows=known["n_rows"], n_modalities=len(table))
    return of_parts + float(group_prior(criterion, n, n_modalities=left, **known)[-1])


def groups_and_granularity(
    counts: ArrayLike, labels: Sequence[int] | Indices, criterion: str, n_candidates: int
) -> tuple[float, int]:
    """The cost as `grouping_cost` has it, and Khiops' granularity where it is least (0 under "page")."""
    table, groups, n = _grouped(counts, labels)
    n_rows = float(table.sum())
    of_parts = parts_cost(sum_by(groups, table, n))
    if n == 1:
        return of_parts + null_prior(criterion, n_rows=n_rows, n_modalities=len(table)), 0
    known: dict[str, Any] = {"n_rows": n_rows, "n_candidates": n_candidates}
    if criterion == "page":
        return of_parts + float(group_prior(criterion, n, n_modalities=len(table), **known)[-1]), 0
    best, granularity = np.inf, 0
    for lumps in lumps_by_granularity(table.sum(axis=1)):
        of_lump = np.zeros(lumps.n, dtype=np.int64)
        of_lump[lumps.labels] = groups
        if np.array_equal(of_lump[lumps.labels], groups):  # else the group of the infrequent ones would be split
            prior = _prior_of_groups(of_lump, n, lumps.granularity, known)
            if prior < best:
                best, granularity = prior, lumps.granularity
    return of_parts + best, granularity


def _prior_of_groups(of_lump: Indices, n: int, granularity: int, known: dict[str, Any]) -> float:
    """Khiops' prior of n groups of these lumps, with the largest as garbage group or without one."""
    n_lumps, best = len(of_lump), np.inf
    if n <= n_lumps:
        best = float(group_prior("khiops", n, n_modalities=n_lumps, granularity=granularity, **known)[-1])
    if n >= 3 and n_lumps >= GARBAGE_FROM:
        largest = int(np.bincount(of_lump).max())  # the prior falls with the size of the garbage
        with_garbage = garbage_priors(n, largest, n_modalities=n_lumps, granularity=granularity, **known)
        best = min(best, float(with_garbage[-1]))
    return best


def _grouped(counts: ArrayLike, labels: Sequence[int] | Indices) -> tuple[Floats, Indices, int]:
    """The counts, the labels without gaps, and how many groups they are."""
    groups = np.unique(np.asarray(labels), return_inverse=True)[1].ravel()
    return np.asarray(counts, dtype=np.float64), groups, int(groups.max()) + 1


# -- grids of a column and a continuous target ------------------------------------------------------


def target_cost(criterion: str, sizes: Floats, n_rows: float) -> float:
    """What target intervals of these sizes (T,) add to the cost of the grid's cells: how many, and the ranks within."""
    cost_of_ranks = float(gammaln(sizes + 1).sum())
    if criterion == "page":
        return cost_of_ranks + float(np.log(n_rows))
    if len(sizes) < 2:
        return np.inf
    return cost_of_ranks + ln_universal(len(sizes) - 1, n_rows - 1)


def null_grid_cost(criterion: str, n_rows: float, n_modalities: int | None) -> float:
    """One part, one interval; `n_modalities` for categories, None for numbers."""
    prior = null_prior(criterion, n_rows=n_rows, n_modalities=n_modalities)
    return prior + float(gammaln(n_rows + 1)) + (float(np.log(n_rows)) if criterion == "page" else 0.0)
