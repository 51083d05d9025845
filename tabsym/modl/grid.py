"""Regression: the column and the target are cut together, as a grid. What a grid is, and what it costs.

The criterion is Khiops': the prior of the column's parts, the cost of the target's intervals within them as of
classes, R(T - 1; N - 1) for how many intervals there are, and ln N_j! for the ranks within each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from tabsym.modl.costs import grouping_cost, interval_cost
from tabsym.modl.criterion import ln_universal, null_prior, parts_cost
from tabsym.modl.ends import ends_of
from tabsym.modl.groups import group, regroup
from tabsym.modl.intervals import discretize
from tabsym.modl.partition import Partition

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """Rows of a column and a regression's target, as codes.

    `source` (n,) of distinct values in order, or of modalities; `target` (n,) of distinct targets in order;
    `weight` (n,) or None.
    """

    source: NDArray[np.integer]
    target: NDArray[np.integer]
    n_sources: int
    n_targets: int
    weight: Floats | None = None

    @property
    def total(self) -> float:
        return float(len(self.source) if self.weight is None else self.weight.sum())

    def table(self, source: Places | None, target: Places | None) -> Floats:
        """Rows by part of the source and interval of the target, whose codes have these labels (None: themselves)."""
        a = self.source if source is None else source[self.source]
        b = self.target if target is None else target[self.target]
        n_a = self.n_sources if source is None else int(source.max()) + 1
        n_b = self.n_targets if target is None else int(target.max()) + 1
        flat = np.bincount(a.astype(np.int64) * n_b + b, self.weight, minlength=n_a * n_b)
        return np.asarray(flat.reshape(n_a, n_b), dtype=np.float64)

    def coarser(self, source: Places | None, target: Places | None) -> Rows:
        """With sources and targets joined by these labels, equal rows added up."""
        a = self.source if source is None else source[self.source]
        b = self.target if target is None else target[self.target]
        n_a = self.n_sources if source is None else int(source.max()) + 1
        n_b = self.n_targets if target is None else int(target.max()) + 1
        if n_a * n_b > len(a):
            return Rows(a, b, n_a, n_b, self.weight)
        total = np.bincount(a.astype(np.int64) * n_b + b, self.weight, minlength=n_a * n_b)
        cells = np.flatnonzero(total)
        return Rows(cells // n_b, cells % n_b, n_a, n_b, total[cells].astype(np.float64))


@dataclass(frozen=True)
class Options:
    """How the column is partitioned."""

    symbolic: bool
    criterion: str
    n_candidates: int
    max_parts: int | None
    min_part_count: float
    monotonic: bool
    value: Floats | None  # sums of the target at each distinct value, for monotone intervals
    random_state: int = 0
    time_limit: float | None = None
    prove: bool = True

    def partition(self, counts: Floats, *, quick: bool, time_limit: float | None = None) -> Partition:
        """The column's two or more parts, given rows by target interval (B, T); infinitely dear if there are none."""
        if self.symbolic:
            return group(
                counts, criterion=self.criterion, n_candidates=self.n_candidates, max_parts=self.max_parts,
                min_part_count=self.min_part_count, random_state=self.random_state, quick=quick, least_parts=2,
                time_limit=time_limit, prove=self.prove,
            )  # fmt: skip
        return discretize(
            counts, criterion=self.criterion, n_candidates=self.n_candidates, max_parts=self.max_parts,
            min_part_count=self.min_part_count, monotonic=self.monotonic, value=self.value,
            quick=quick and not self.monotonic, least_parts=2, time_limit=time_limit,
            prove=self.prove,
        )  # fmt: skip

    def regroup(self, counts: Floats, start: Partition) -> Partition:
        """Categories' groups, given rows by target interval (B, T), near those of `start`."""
        return regroup(
            counts, start, criterion=self.criterion, n_candidates=self.n_candidates, max_parts=self.max_parts,
            min_part_count=self.min_part_count, random_state=self.random_state,
        )  # fmt: skip

    def coarser(self, labels: Places | None) -> Options:
        """For distinct values joined by these labels."""
        if self.value is None or labels is None:
            return self
        return replace(self, value=np.bincount(labels, self.value).astype(np.float64))


@dataclass(frozen=True)
class Grid:
    """A joint partition: the column's (its cost and bound are the grid's), and the target's intervals.

    `target_labels` (S,): the target interval of each distinct target; `prior`: what the cost has of the column's parts
    alone, whatever the target's intervals are.
    """

    source: Partition
    target_labels: Places
    prior: float = 0.0

    @property
    def cost(self) -> float:
        return self.source.cost


def target_cost(criterion: str, sizes: Floats, n_rows: float) -> float:
    """What target intervals of these sizes (T,) cost beside the cells of the grid: how many, and the ranks within."""
    within = float(gammaln(sizes + 1).sum())
    if criterion == "page":
        return within + float(np.log(n_rows))
    if len(sizes) < 2:
        return np.inf
    return within + ln_universal(len(sizes) - 1, n_rows - 1)


def null_grid_cost(criterion: str, n_rows: float, n_modalities: int | None) -> float:
    """One part, one interval; `n_modalities` for categories, None for numbers."""
    prior = null_prior(criterion, n_rows=n_rows, n_modalities=n_modalities)
    return prior + float(gammaln(n_rows + 1)) + (float(np.log(n_rows)) if criterion == "page" else 0.0)


def grid_cost(
    counts: ArrayLike,
    source_labels: Sequence[int],
    target_labels: Sequence[int],
    *,
    symbolic: bool = False,
    criterion: str = "khiops",
    n_candidates: int = 1,
) -> float:
    """The cost in nats of any grid of a column and a continuous target.

    Parameters
    ----------
    counts : (B, S)
        Rows with each distinct value (ascending) or modality, and each distinct target (ascending).
    source_labels : sequence of int
        The part of each value or modality; of values, ascending.
    target_labels : sequence of int
        The interval of each target, ascending.
    symbolic : bool
    criterion : {"khiops", "page"}
    n_candidates : int
        As in `interval_cost`.

    Returns
    -------
    float

    Examples
    --------
    >>> round(grid_cost([[2, 0], [0, 2]], [0, 1], [0, 1]), 4)
    5.2188
    """
    table = np.asarray(counts, dtype=np.float64)
    source, target = np.asarray(source_labels, dtype=np.int64), np.asarray(target_labels, dtype=np.int64)
    n_rows, n_parts = float(table.sum()), len(np.unique(source))
    if n_parts == 1:
        return null_grid_cost(criterion, n_rows, len(table) if symbolic else None)
    joined = np.stack([np.bincount(target, row) for row in table])
    if symbolic:
        of_parts = grouping_cost(joined, source.tolist(), criterion=criterion, n_candidates=n_candidates)
    else:
        of_parts = interval_cost(joined, ends_of(source).tolist(), criterion=criterion, n_candidates=n_candidates)
    return of_parts + target_cost(criterion, joined.sum(axis=0), n_rows)


def as_grid(rows: Rows, options: Options, source: Partition, target: Places) -> Grid:
    """The column's parts, found for some intervals of the target as for classes, with these."""
    return with_target(rows, options, source, source.cost - parts_cost(source.counts), target)


def with_target(rows: Rows, options: Options, source: Partition, prior: float, target: Places) -> Grid:
    """The column's parts, of this prior, with these intervals of the target."""
    counts = rows.table(source.labels, target)
    cost = prior + parts_cost(counts) + target_cost(options.criterion, counts.sum(axis=0), rows.total)
    null = null_grid_cost(options.criterion, rows.total, rows.n_sources if options.symbolic else None)
    found = replace(source, counts=counts, cost=cost, null_cost=null, lower_bound=-np.inf)
    return Grid(found, target, prior)


def one_cell(rows: Rows, options: Options) -> Grid:
    """The grid of an uninformative column."""
    source, target = np.zeros(rows.n_sources, dtype=np.int64), np.zeros(rows.n_targets, dtype=np.int64)
    null = null_grid_cost(options.criterion, rows.total, rows.n_sources if options.symbolic else None)
    counts = np.array([[rows.total]])
    return Grid(Partition(options.criterion, source, counts, null, null, -np.inf), target)


def dear(grid: Grid) -> Grid:
    """The same as infinitely dear: any other is cheaper."""
    return replace(grid, source=replace(grid.source, cost=np.inf))
