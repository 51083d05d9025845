"""Columns whose parts the user gives, by cut points, groups or special codes; priced as those that are searched for.

A special code's part costs what the classes in it cost. The other rows, the rest, have the parts of the user, or the
best ones, at the cost that the criterion has for the rest alone. A part without rows costs nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.categories.contingency import Contingency
from tabsym.frame import Numbers
from tabsym.frame.storage import object_array
from tabsym.modl.columns import (
    Groups,
    Intervals,
    exact_numbers,
    grid_of,
    groups_of,
    intervals_of,
    positions_of_middles,
    search_column,
    target_of_classes,
    target_of_numbers,
)
from tabsym.modl.criterion import groups_and_granularity, intervals_and_granularity, null_prior, parts_cost
from tabsym.modl.cuts import is_cheaper
from tabsym.modl.grid import MAX_ROUNDS, Grid, GridRows, Shared, Sources
from tabsym.modl.groups import group
from tabsym.modl.intervals import discretize
from tabsym.modl.joint_cuts import cut_jointly, with_best_target
from tabsym.modl.partition import Given, Partition, Settings, cheapest, ends_of

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
MAX_TURNED = 4096
"""In regression parts of more values are those found without special codes: time, for costs lower by some 1e-6."""
WITHOUT_SEARCH = -np.inf
"""The lower bound of a cost that nothing is known about."""


def fit_column(table: Contingency, settings: Settings, *, classes: bool) -> Intervals | Groups:
    """The intervals or groups of a column: the optimal ones, or those of the user, as far as `settings.given` has them.

    Parameters
    ----------
    table : Contingency
    settings : Settings
    classes : bool
        Whether the targets are classes, or numbers.
    """
    if settings.given is None:
        return search_column(table, settings, classes=classes)
    return _GivenColumn(table, settings, settings.given).fitted(classes=classes)


class _GivenColumn:
    """A column, its rows with special codes separate from the rest."""

    def __init__(self, table: Contingency, settings: Settings, given: Given) -> None:
        specials = _as_stored(table, given.specials) if table.is_numeric else given.specials
        self.table, self.settings, self.given = table, replace(settings, given=None), replace(given, specials=specials)
        self.special_of = _special_of(table, specials)
        self.free = np.flatnonzero(self.special_of < 0)
        counts = table.counts[self.free]
        lows = None if table.lows is None else table.lows[self.free]
        self.rest = replace(table, values=table.values[self.free], lows=lows, counts=counts)

    def fitted(self, *, classes: bool) -> Intervals | Groups:
        """The given parts, and the best ones of the values that no given part has."""
        labels, n = self._given_labels() if self.given.splits is not None else (None, 0)
        if not len(self.free) and labels is None:
            labels, n = np.empty(0, dtype=np.int64), 1
        if classes:
            partition = self._of_classes(labels, n)
            target = target_of_classes(self.table, partition.counts)
        else:
            partition, target_labels = self._of_numbers(labels, n)
            target = target_of_numbers(self.table, partition.labels, partition.counts, target_labels)
        if self.table.is_numeric:
            return self._intervals(partition, target)
        return self._groups(partition, target)

    # -- which part each value is in --------------------------------------------------------------

    def _given_labels(self) -> tuple[Indices, int]:
        """The user's part of each value of the rest, and how many there are."""
        assert self.given.splits is not None
        if self.table.is_numeric:
            bounds = self._bounds()
            return np.searchsorted(bounds, self.rest.values, side="left").astype(np.int64), len(bounds) + 1
        n = len(self.given.splits)
        labels = _part_of(self.rest.values, self.given.splits, n)
        return labels, n + bool((labels == n).any()) or 1

    def _labels(self, labels: Indices, n: int) -> Indices:
        """The part of each value, from that of each value of the rest, which has n."""
        all_labels = self.special_of + n
        all_labels[self.free] = labels
        return all_labels

    # -- classes ------------------------------------------------------------------------------------

    def _of_classes(self, labels: Indices | None, n: int) -> Partition:
        counts = self.table.dense()
        rest = counts[self.free]
        if labels is None:
            partition = (discretize if self.table.is_numeric else group)(rest, self.settings)
        else:
            cost, granularity = self._cost_of_rest(rest, labels)
            partition = Partition(
                self.settings.criterion, labels, np.zeros((n, 0)), cost, cost, WITHOUT_SEARCH, granularity
            )
        all_labels = self._labels(partition.labels, partition.n_parts)
        n_parts = partition.n_parts + len(self.given.specials)
        of_parts = self.table.summed(all_labels, np.arange(counts.shape[1]), (n_parts, counts.shape[1]))
        specials_cost = parts_cost(of_parts[partition.n_parts :])
        n_modalities = None if self.table.is_numeric else len(counts)
        null = null_prior(self.settings.criterion, n_rows=float(counts.sum()), n_modalities=n_modalities)
        return replace(
            partition,
            labels=all_labels,
            counts=of_parts,
            cost=partition.cost + specials_cost,
            null_cost=null + parts_cost(counts.sum(axis=0)[None, :]),
            lower_bound=partition.lower_bound + specials_cost,
            bound_without_garbage=partition.bound_without_garbage + specials_cost,
        )

    def _cost_of_rest(self, counts: Floats, labels: Indices) -> tuple[float, int]:
        """The cost of the rest in these parts, and Khiops' granularity; of one class (B, 1) the prior alone."""
        criterion, n_candidates = self.settings.criterion, self.settings.n_candidates
        if not len(labels):
            return null_prior(criterion, n_rows=1.0, n_modalities=1), 0
        if self.table.is_numeric:
            return intervals_and_granularity(counts, ends_of(labels), criterion, n_candidates)
        return groups_and_granularity(counts, labels, criterion, n_candidates)

    # -- numbers --------------------------------------------------------------------------------------

    def _of_numbers(self, labels: Indices | None, n: int) -> tuple[Partition, Indices]:
        """The partition, and the target's interval of each target."""
        if labels is not None:
            grid, n_rest = self._grid(labels, n), n
        else:
            grid = self._searched_grid()
            n_rest = int(grid.source.labels[self.free].max()) + 1
        counts = self.table.summed(
            grid.source.labels,
            grid.target_labels,
            (n_rest + len(self.given.specials), int(grid.target_labels.max()) + 1),
        )
        return replace(grid.source, counts=counts), grid.target_labels

    def _searched_grid(self) -> Grid:
        """The rest in the best parts for the target's intervals, these for the parts, and so on; or in one part."""
        occur = np.flatnonzero(self.rest.target_sizes > 0)
        rest = replace(self.rest, targets=self.rest.targets[occur], counts=self.rest.counts[:, occur])
        rows, sources = grid_of(rest, self.settings)
        labels = cut_jointly(rows, sources).source.labels
        starts = [np.zeros(len(self.free), dtype=np.int64), labels]
        best, second = sorted((self._grid(start, int(start.max()) + 1) for start in starts), key=lambda grid: grid.cost)
        if rows.n_sources > MAX_TURNED:
            return best
        rows, sources = grid_of(self.rest, self.settings)
        return cheapest(self._turned(best, rows, sources), self._turned(second, rows, sources))

    def _turned(self, best: Grid, rows: GridRows, sources: Sources) -> Grid:
        """A grid, or a cheaper one that the best parts for its target's intervals lead to."""
        shared = Shared(rows, sources.settings)
        for _ in range(MAX_ROUNDS):
            source = sources.partition(rows.table(None, best.target_labels), shared, quick=False)
            if source.n_parts < 2:
                break
            new = self._grid(source.labels, source.n_parts)
            if not is_cheaper(new.cost, best.cost):
                break
            best = new
        return best

    def _grid(self, labels: Indices, n: int) -> Grid:
        """The best intervals of the target for n parts of the rest; at the null cost where there is one target."""
        rows, sources = grid_of(self.table, self.settings)
        all_labels = self._labels(labels, n)
        known, compact = np.unique(all_labels, return_inverse=True)
        prior, granularity = self._cost_of_rest(self.rest.sizes[:, None], labels)
        null = sources.null_cost(rows)
        of_null = Partition(
            self.settings.criterion, all_labels, np.zeros((n, 1)), null, null, WITHOUT_SEARCH, granularity
        )
        if len(known) < 2 or rows.n_targets < 2:
            return Grid(of_null, np.zeros(rows.n_targets, dtype=np.int64))
        grid = with_best_target(rows, sources, replace(of_null, labels=compact.astype(np.int64)), prior)
        return replace(grid, source=replace(grid.source, labels=all_labels))

    # -- in the column's own values ---------------------------------------------------------------------

    def _intervals(self, partition: Partition, target: Any) -> Intervals:
        labels, specials = partition.labels[self.free], self.given.specials
        n = partition.n_parts - len(specials)
        codes = tuple(
            tuple(np.nan if np.isneginf(code.real) else float(code.real) for code in part) for part in specials
        )
        over = tuple(tuple(float(code.imag) for code in part) for part in specials)
        if self.given.splits is None and len(self.free):
            intervals = intervals_of(self.rest, replace(partition, labels=labels, counts=partition.counts[:n]), target)
            bounds = exact_numbers(intervals.bounds, intervals.bound_rests)
            middles = exact_numbers(intervals.middles, intervals.middle_rests)
        else:
            bounds = self._bounds()
            middles = self._middles(bounds, labels, n)
            missing = bool(len(self.free)) and bool(np.isneginf(self.rest.values[0].real))
            intervals = Intervals(
                partition, target, bounds.real, missing, middles.real, self.table.error, self.table.measure
            )
        middles = np.append(middles, [complex(part[0], rests[0]) for part, rests in zip(codes, over, strict=True)])
        if np.iscomplexobj(self.table.values):  # then values are compared exactly
            intervals = replace(intervals, bound_rests=bounds.imag + np.zeros(len(bounds)), middle_rests=middles.imag)
        over = over if np.any([rest != 0.0 for part in over for rest in part]) else ()
        return replace(intervals, partition=partition, middles=middles.real, specials=codes, special_rests=over)

    def _bounds(self) -> Numbers:
        """The user's cut points; without what float64 leaves over where it distinguishes all values."""
        bounds = np.array(self.given.splits or (), dtype=np.complex128)
        return bounds if np.iscomplexobj(self.table.values) else bounds.real

    def _middles(self, bounds: Numbers, labels: Indices, n: int) -> Numbers:
        """The median row's value of each interval; without rows its finite bound."""
        middles = np.append(bounds, bounds[-1:] if len(bounds) else np.nan)
        if len(labels):
            has_rows = np.bincount(labels, minlength=n) > 0
            middles[has_rows] = self.rest.values[positions_of_middles(self.rest, labels, n)][has_rows]
        return np.where(np.isfinite(middles), middles, np.nan)

    def _groups(self, partition: Partition, target: Any) -> Groups:
        result = groups_of(self.table, partition, target)
        symbols, labels, groups = result.symbols.tolist(), partition.labels.tolist(), result.groups
        n = partition.n_parts - len(self.given.specials)
        known = {plain(symbol) for symbol in symbols}
        for position, members in [*enumerate(self.given.splits or ()), *enumerate(self.given.specials, n)]:
            new = [category for category in members if category not in known]
            groups[position] += new
            symbols += new
            labels += [position] * len(new)
        default = 0
        if len(self.free):
            default = int(partition.labels[self.free[int(np.argmin(self.rest.sizes))]])
            named = len(self.given.splits) if self.given.splits is not None else n
            default = named if named < n else default  # the group of the categories that the user does not name
        return replace(
            result,
            groups=groups,
            symbols=object_array(symbols),
            labels_of=np.array(labels, dtype=np.int64),
            default=default,
        )


def plain(value: Any) -> Any:
    """A category as it is compared: missing as None, numbers of numpy as those of Python."""
    if isinstance(value, np.datetime64):  # whose nanoseconds would be numbers
        value = pd.Timestamp(value)
    if isinstance(value, np.timedelta64):
        value = pd.Timedelta(value)
    if isinstance(value, np.generic):
        value = value.item()
    return None if value is None or value is pd.NaT or (isinstance(value, float) and np.isnan(value)) else value


def _as_stored(table: Contingency, specials: tuple[tuple[Any, ...], ...]) -> tuple[tuple[Any, ...], ...]:
    """Special codes as the values of a numeric column are: in single precision where it has them so."""

    def stored(code: Any) -> Any:
        if np.iscomplexobj(code) or not abs(code) < float(np.finfo(np.float32).max) or code in table.values:
            return code
        single = float(np.float32(code))
        return single if single in table.values else code

    return tuple(tuple(map(stored, codes)) for codes in specials)


def _special_of(table: Contingency, specials: tuple[tuple[Any, ...], ...]) -> Indices:
    """Which special codes' part each value is in (B,), -1 for none."""
    part_of_value = np.full(len(table.values), -1, dtype=np.int64)
    if table.is_numeric:
        for part, codes in enumerate(specials):
            known = np.array(codes) if np.iscomplexobj(table.values) else np.real(codes)
            part_of_value[np.isin(table.values, known)] = part
        return part_of_value
    return _part_of(table.values, specials, -1)


def _part_of(categories: NDArray[Any], parts: tuple[tuple[Any, ...], ...], default: int) -> Indices:
    """The part that has each category (B,); `default` for those that none has."""
    part_of = {category: part for part, members in enumerate(parts) for category in members}
    return np.array([part_of.get(plain(category), default) for category in categories.tolist()], dtype=np.int64)
