"""Fitted partitions of columns, in the column's own values: intervals with bounds, groups with categories."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tabsym.codes import Contingency
from tabsym.modl.grid import Options, Rows
from tabsym.modl.groups import group
from tabsym.modl.intervals import discretize
from tabsym.modl.joint_cuts import cut_jointly
from tabsym.modl.labels import group_labels, interval_labels
from tabsym.modl.partition import Partition
from tabsym.table import NUMBERS, Measure, Numbers, halfway, with_rests
from tabsym.table.dtypes import read_list, read_symbols, written_list, written_symbols

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """Options of a search; without `prove` it returns a good model in a fraction of the time, as for folds."""

    criterion: str = "khiops"
    n_candidates: int = 1
    max_parts: int | None = None
    min_part_count: float = 1
    monotonic: bool = False
    time_limit: float | None = None
    random_state: int = 0
    prove: bool = True


@dataclass(frozen=True)
class Target:
    """The target in each part.

    Attributes
    ----------
    names : list
        The classes, or in regression the intervals of the target as text.
    is_classes : bool
    counts : (I, T)
        Rows of each class or target interval in each part.
    means, deviations : (I,)
        In regression of the target in each part; for two classes, of the second one's indicator.
    bounds : (T - 1,) or None
        In regression the upper bounds of the target's intervals but the last.
    """

    names: list[Any]
    is_classes: bool
    counts: Floats
    means: Floats | None
    deviations: Floats | None
    bounds: Floats | None = None


@dataclass(frozen=True)
class Intervals:
    """Intervals of a numeric column, right-closed; missing lies below all values.

    Attributes
    ----------
    bounds : (I - 1,)
        Upper bounds of all intervals but the last; -inf separates missing values from the rest.
    missing : bool
        Whether the training data had missing values.
    middles : (I,)
        The median training row's value of each interval, NaN for missing alone.
    error : float
        Number of rows by which a bound can be misplaced, where values were counted in bins.
    measure : Measure
        The physical type of the values; of dates `bounds` and `middles` are days since 1970, in UTC.
    bound_rests, middle_rests : (I - 1,), (I,) or None
        Rounding errors of `bounds` and `middles` for numbers that float64 rounds, such as 2**53 + 1; of timestamps in
        nanoseconds. None where float64 distinguishes all values.
    """

    partition: Partition
    target: Target
    bounds: Floats
    missing: bool
    middles: Floats
    error: float = 0.0
    measure: Measure = NUMBERS
    bound_rests: Floats | None = None
    middle_rests: Floats | None = None

    def parts(self, values: Numbers) -> NDArray[np.int64]:
        """The interval of each value (n,), NaN for missing; complex numbers as `tabsym.table.columns` has them."""
        bounds = self.bounds if self.bound_rests is None else with_rests(self.bounds, self.bound_rests)
        return np.searchsorted(bounds, np.where(np.isnan(values), -np.inf, values), side="left")

    @cached_property
    def labels(self) -> list[str]:
        """The intervals as text, such as ``]21.5; 23.5]`` or ``]2020-01-31; 2020-04-30]``, dates in their own zone."""
        return interval_labels(self.bounds, missing=self.missing, measure=self.measure, rests=self.bound_rests)


@dataclass(frozen=True)
class Groups:
    """Groups of a categorical column, the one with the most rows first.

    Attributes
    ----------
    groups : list of lists
        Their categories, the most frequent first; missing as None.
    symbols : (M,)
        All categories, in the order of the table.
    labels_of : (M,)
        The group of each.
    default : int
        The group of the least frequent category, Khiops' default for unknown ones.
    """

    partition: Partition
    target: Target
    groups: list[list[Any]]
    symbols: NDArray[Any]
    labels_of: NDArray[np.int64]
    default: int

    @cached_property
    def labels(self) -> list[str]:
        """The groups as text, such as ``{a, b}``, long ones cut."""
        return group_labels(self.groups)

    def __getstate__(self) -> dict[str, Any]:
        groups = [written_list(members) for members in self.groups]
        return self.__dict__ | {"groups": groups, "symbols": written_symbols(self.symbols)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        groups = [read_list(members) for members in state["groups"]]
        self.__dict__.update(state, groups=groups, symbols=read_symbols(state["symbols"]))


def fit_column(table: Contingency, settings: Settings, *, classes: bool) -> Intervals | Groups:
    """The optimal intervals or groups of a column.

    Parameters
    ----------
    table : Contingency
    settings : Settings
    classes : bool
        Whether the targets are classes, or numbers.
    """
    if classes:
        partition = _by_classes(table, settings)
        target = _classes(table, partition)
    else:
        partition, target = _by_grid(table, settings)
    return _intervals(table, partition, target) if table.is_numeric else _groups(table, partition, target)


def _by_classes(table: Contingency, settings: Settings) -> Partition:
    counts = table.dense()
    if table.is_numeric:
        return discretize(
            counts, criterion=settings.criterion, n_candidates=settings.n_candidates, max_parts=settings.max_parts,
            min_part_count=settings.min_part_count, monotonic=settings.monotonic, time_limit=settings.time_limit,
            prove=settings.prove,
        )  # fmt: skip
    return group(
        counts, criterion=settings.criterion, n_candidates=settings.n_candidates, max_parts=settings.max_parts,
        min_part_count=settings.min_part_count, time_limit=settings.time_limit, random_state=settings.random_state,
        prove=settings.prove,
    )  # fmt: skip


def _classes(table: Contingency, partition: Partition) -> Target:
    counts, means, deviations = partition.counts, None, None
    if counts.shape[1] == 2:
        means = counts[:, 1] / counts.sum(axis=1)
        deviations = np.sqrt(means * (1 - means))
    return Target(table.targets.tolist(), True, counts, means, deviations)


def _by_grid(table: Contingency, settings: Settings) -> tuple[Partition, Target]:
    cells = sparse.coo_array(table.counts)
    row, column, data = cells.row, cells.col, cells.data
    values = np.asarray(table.targets, dtype=np.float64)
    sums = np.bincount(row, data * values[column], minlength=len(table.values))
    with np.errstate(over="ignore"):  # squares of very large targets
        squares = np.bincount(row, data * values[column] ** 2, minlength=len(table.values))
    options = Options(
        not table.is_numeric, settings.criterion, settings.n_candidates, settings.max_parts, settings.min_part_count,
        settings.monotonic and table.is_numeric,
        sums.astype(np.float64) if settings.monotonic else None, settings.random_state, settings.time_limit,
        settings.prove,
    )  # fmt: skip
    grid = cut_jointly(Rows(row, column, len(table.values), len(values), data), options)
    labels, n = grid.source.labels, grid.source.n_parts
    sizes = np.bincount(labels, table.sizes, minlength=n)
    means = np.bincount(labels, sums, minlength=n) / sizes
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.bincount(labels, squares, minlength=n) / sizes - means**2
    ends = np.flatnonzero(np.diff(grid.target_labels)) + 1
    cuts = _midpoints(values[ends - 1], values[ends])
    deviations = np.sqrt(np.maximum(spread, 0.0))
    return grid.source, Target(interval_labels(cuts), False, grid.source.counts, means, deviations, cuts)


def _intervals(table: Contingency, partition: Partition, target: Target) -> Intervals:
    assert table.lows is not None
    ends = np.flatnonzero(np.diff(partition.labels)) + 1
    below, above = table.values[ends - 1], table.lows[ends]
    if (table.values[:-1].real == table.lows[1:].real).any():  # what float64 rounds to one number
        bounds, rests = halfway(below, above, table.measure)
    else:
        bounds, rests = _midpoints(below.real, above.real), None
    sizes = table.sizes
    starts = np.concatenate([[0], ends]).astype(np.int64)
    total = np.bincount(partition.labels, sizes)
    half = np.cumsum(total) - total / 2
    place = np.clip(np.searchsorted(np.cumsum(sizes), half), starts, np.append(ends, len(sizes)) - 1)
    middle = table.values[place]
    middles = np.where(np.isfinite(middle.real), middle.real, np.nan)
    return Intervals(
        partition, target, bounds, bool(np.isneginf(table.values[0].real)), middles, table.error, table.measure,
        bound_rests=rests, middle_rests=middle.imag if np.iscomplexobj(middle) else None,
    )  # fmt: skip


def _groups(table: Contingency, partition: Partition, target: Target) -> Groups:
    sizes = table.sizes
    order = np.argsort(-sizes, kind="stable")
    members: list[list[Any]] = [[] for _ in range(partition.n_parts)]
    for i in order:
        members[partition.labels[i]].append(table.values[i])
    return Groups(
        partition, target, members, table.values, partition.labels, int(partition.labels[int(np.argmin(sizes))])
    )


def _midpoints(below: Floats, above: Floats) -> Floats:
    """Halfway between neighbouring values, never reaching the upper one."""
    middle = np.where(np.isneginf(below), -np.inf, below / 2 + above / 2)
    return np.asarray(np.where(middle >= above, below, middle))
