"""Fitted partitions of columns, in the column's own values: intervals with bounds, groups with categories; as text.

Parts that the user gives, by cut points, groups or special codes, are priced as those that are searched for. A special
code's part costs what the classes in it cost. The other rows, the rest, have the parts of the user, or the best ones,
at the cost that the criterion has for the rest alone. A part without rows costs nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from tabsym.categories.contingency import Contingency
from tabsym.frame import NUMBERS, Measure, Numbers, exact_number, halfway, nanoseconds_of, with_rests
from tabsym.frame.dtypes import read_list, read_objects, written_list, written_objects
from tabsym.frame.storage import object_array
from tabsym.modl.criterion import groups_and_granularity, intervals_and_granularity, null_prior, parts_cost
from tabsym.modl.cuts import is_cheaper
from tabsym.modl.grid import MAX_ROUNDS, Grid, GridRows, Shared, Sources
from tabsym.modl.groups import group
from tabsym.modl.intervals import discretize
from tabsym.modl.joint_cuts import cut_jointly, with_best_target
from tabsym.modl.partition import Given, Partition, Settings, cheapest, ends_of

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
_SECONDS_PER_DAY = 86_400
_MAX_WHOLE = 1e13  # whole numbers in a label are written in full up to here
_MAX_NANOSECONDS = 2**63
_MAX_SHOWN = 60  # characters of a group's label


@dataclass(frozen=True)
class PartTargets:
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

    Behind them are the parts of special codes, if there are any.

    Attributes
    ----------
    bounds : (I - 1,)
        Upper bounds of all intervals but the last; -inf separates missing values from the rest. I counts no parts of
        special codes.
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
    specials : tuple of tuples
        The special codes of each part of them, NaN for missing; `middles` has the first of each.
    special_rests : tuple of tuples
        Rounding errors of `specials`, where there are any; else empty.
    """

    partition: Partition
    target: PartTargets
    bounds: Floats
    missing: bool
    middles: Floats
    error: float = 0.0
    measure: Measure = NUMBERS
    bound_rests: Floats | None = None
    middle_rests: Floats | None = None
    specials: tuple[tuple[float, ...], ...] = ()
    special_rests: tuple[tuple[float, ...], ...] = ()

    def parts(self, values: Numbers) -> NDArray[np.int64]:
        """The interval of each value (n,), NaN for missing; complex numbers as `tabsym.frame.columns` has them."""
        bounds = exact_numbers(self.bounds, self.bound_rests)
        parts = np.searchsorted(bounds, np.where(np.isnan(values), -np.inf, values), side="left")
        for part, codes in enumerate(self._exact_specials(), len(self.bounds) + 1):
            for code in codes:
                parts[np.isnan(values) if np.isnan(code) else values == code] = part
        return parts

    @cached_property
    def labels(self) -> list[str]:
        """The intervals as text, such as ``]21.5; 23.5]`` or ``]2020-01-31; 2020-04-30]``, dates in their own zone."""
        labels = interval_labels(self.bounds, missing=self.missing, measure=self.measure, rests=self.bound_rests)
        return labels + [self._special_label(codes) for codes in self._exact_specials()]

    def _exact_specials(self) -> tuple[tuple[complex, ...], ...]:
        """Special codes, with their rounding errors where values are compared exactly."""
        if not self.special_rests or self.bound_rests is None:
            return self.specials
        every = zip(self.specials, self.special_rests, strict=True)
        return tuple(tuple(complex(*number) for number in zip(*pair, strict=True)) for pair in every)

    def _special_label(self, codes: tuple[complex, ...]) -> str:
        """Special codes as text, such as ``{-999}``."""
        if len(codes) == 1 and np.isnan(codes[0]):
            return "Missing"
        known = np.array([code for code in codes if not np.isnan(code)])
        if np.iscomplexobj(known):
            texts = [_exact(code.real, code.imag, self.measure) for code in known.tolist()]
        elif self.measure.name == "dates":
            texts = _dates(known, self.measure.zone)
        else:
            texts = [_plain(code) for code in known.tolist()]
        return f"{{{', '.join(texts + ['Missing'] * (len(codes) - len(known)))}}}"


@dataclass(frozen=True)
class Groups:
    """Groups of a categorical column, the one with the most rows first; those that the user gave in their order.

    Attributes
    ----------
    groups : list of lists
        Their categories, the most frequent first; missing as None.
    categories : (M,)
        All categories, in the order of the table; then those that it lacks and the user names.
    labels_of : (M,)
        The group of each.
    default : int
        The group of the least frequent category, Khiops' default for unknown ones.
    """

    partition: Partition
    target: PartTargets
    groups: list[list[Any]]
    categories: NDArray[Any]
    labels_of: NDArray[np.int64]
    default: int

    @cached_property
    def labels(self) -> list[str]:
        """The groups as text, such as ``{a, b}``, long ones cut, and numbered where two are cut to the same."""
        texts = [_group_label(members) for members in self.groups]
        repeated = {text for text, times in Counter(texts).items() if times > 1}
        return [f"{text} #{i + 1}" if text in repeated else text for i, text in enumerate(texts)]

    def __getstate__(self) -> dict[str, Any]:
        groups = [written_list(members) for members in self.groups]
        return self.__dict__ | {"groups": groups, "categories": written_objects(self.categories)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        groups = [read_list(members) for members in state["groups"]]
        self.__dict__.update(state, groups=groups, categories=read_objects(state["categories"]))


def target_of_classes(table: Contingency, counts: Floats) -> PartTargets:
    """The classes in parts with these counts (I, J); a part without rows has the mean of all."""
    means, deviations = None, None
    if counts.shape[1] == 2:
        rows = counts.sum(axis=1)
        overall = counts[:, 1].sum() / rows.sum()
        means = np.where(rows > 0, counts[:, 1] / np.where(rows > 0, rows, 1.0), overall)
        deviations = np.sqrt(means * (1 - means))
    return PartTargets(table.targets.tolist(), True, counts, means, deviations)


def grid_of(table: Contingency, settings: Settings) -> tuple[GridRows, Sources]:
    """What is cut jointly."""
    cells = sparse.coo_array(table.counts)
    row, column, data = cells.row, cells.col, cells.data
    categorical = not table.is_numeric
    settings = replace(settings, monotonic=settings.monotonic and not categorical)
    rows = GridRows(row, column, len(table.values), len(table.targets), data)
    sums = np.bincount(row, data * np.asarray(table.targets, dtype=np.float64)[column], minlength=len(table.values))
    return rows, Sources(categorical, settings, sums.astype(np.float64) if settings.monotonic else None)


def target_of_numbers(table: Contingency, labels: Indices, counts: Floats, target_labels: Indices) -> PartTargets:
    """The target in parts (of each value: B), by its intervals (of each target: T); without rows that of all rows."""
    cells = sparse.coo_array(table.counts)
    values, n = np.asarray(table.targets, dtype=np.float64), len(counts)
    sums = np.bincount(cells.row, cells.data * values[cells.col], minlength=len(table.values))
    with np.errstate(over="ignore"):  # squares of very large targets
        squares = np.bincount(cells.row, cells.data * values[cells.col] ** 2, minlength=len(table.values))
    of_parts = [np.bincount(labels, total, minlength=n) for total in (table.sizes, sums, squares)]
    with np.errstate(over="ignore", invalid="ignore"):
        sizes, sums, squares = (np.where(of_parts[0] > 0, total, total.sum()) for total in of_parts)
        means = sums / sizes
        variances = squares / sizes - means**2
    ends = np.flatnonzero(np.diff(target_labels)) + 1
    cuts = _midpoints(values[ends - 1], values[ends])
    return PartTargets(interval_labels(cuts), False, counts, means, np.sqrt(np.maximum(variances, 0.0)), cuts)


def intervals_of(table: Contingency, partition: Partition, target: PartTargets) -> Intervals:
    """Intervals with bounds halfway between the values of a table."""
    assert table.lows is not None
    ends = np.flatnonzero(np.diff(partition.labels)) + 1
    below, above = table.values[ends - 1], table.lows[ends]
    if (table.values[:-1].real == table.lows[1:].real).any():  # what float64 rounds to one number
        bounds, rests = halfway(below, above, table.measure)
    else:
        bounds, rests = _midpoints(below.real, above.real), None
    middle = table.values[positions_of_middles(table, partition.labels, partition.n_parts)]
    middles = np.where(np.isfinite(middle.real), middle.real, np.nan)
    return Intervals(
        partition, target, bounds, bool(np.isneginf(table.values[0].real)), middles, table.error, table.measure,
        bound_rests=rests, middle_rests=middle.imag if np.iscomplexobj(middle) else None,
    )  # fmt: skip


def positions_of_middles(table: Contingency, labels: Indices, n: int) -> Indices:
    """The value (n,) of the median row of each part; of parts without rows, a neighbouring one."""
    sizes = table.sizes
    ends = np.searchsorted(labels, np.arange(n), side="right")
    total = np.bincount(labels, sizes, minlength=n)
    half = np.cumsum(total) - total / 2
    starts = np.append(0, ends[:-1])
    positions = np.clip(np.searchsorted(np.cumsum(sizes), half), starts, np.maximum(ends, starts + 1) - 1)
    return np.minimum(positions, len(sizes) - 1)


def groups_of(table: Contingency, partition: Partition, target: PartTargets) -> Groups:
    """Groups of the categories of a table."""
    sizes = table.sizes
    order = np.argsort(-sizes, kind="stable")
    members: list[list[Any]] = [[] for _ in range(partition.n_parts)]
    for i in order:
        members[partition.labels[i]].append(table.values[i])
    default = int(partition.labels[int(np.argmin(sizes))])
    return Groups(partition, target, members, table.values, partition.labels, default)


def exact_numbers(values: Floats, rests: Floats | None) -> Numbers:
    """Numbers with what float64 leaves over, where that is known."""
    return values if rests is None else with_rests(values, rests)


def _midpoints(below: Floats, above: Floats) -> Floats:
    """Halfway between neighbouring values, never reaching the upper one."""
    middle = np.where(np.isneginf(below), -np.inf, below / 2 + above / 2)
    return np.asarray(np.where(middle >= above, below, middle))


# -- parts as text ---------------------------------------------------------------------------------


def interval_labels(
    bounds: Floats, *, missing: bool = False, measure: Measure = NUMBERS, rests: Floats | None = None
) -> list[str]:
    """Right-closed intervals as text, such as ``]21.5; 23.5]`` or ``]2020-01-31; 2020-04-30]``.

    Parameters
    ----------
    bounds : (I - 1,)
        Upper bounds of all intervals but the last; -inf parts missing from the rest.
    missing : bool
        Whether missing values lie in the first interval.
    measure : Measure
        What the bounds stand for. Dates, which are days since 1970 in UTC, are written in their own time zone,
        with the offset where two are the same without it (when clocks are set back).
    rests : (I - 1,) or None
        What the bounds leave over of numbers that float64 rounds: these are written in full.
    """
    if len(bounds) and np.isneginf(bounds[0]):
        return ["Missing", *interval_labels(bounds[1:], measure=measure, rests=None if rests is None else rests[1:])]
    if rests is not None and len(bounds):
        ends = [_exact(bound, rest, measure) for bound, rest in zip(bounds.tolist(), rests.tolist(), strict=True)]
    else:
        ends = _dates(bounds, measure.zone) if measure.name == "dates" else _numbers(bounds)
    lows, highs = ["]-inf", *(f"]{end}" for end in ends)], [*(f"{end}]" for end in ends), "+inf["]
    texts = [f"{low}; {high}" for low, high in zip(lows, highs, strict=True)]
    return [f"Missing or {texts[0]}", *texts[1:]] if missing else texts


def _plain(code: float) -> str:
    """A number as it is written, also where it is one of single precision."""
    if code.is_integer():
        return f"{code:.0f}" if abs(code) < _MAX_WHOLE else repr(code)
    single = np.float32(code)
    return str(single) if float(single) == code else repr(code)


def _exact(bound: float, rest: float, measure: Measure) -> str:
    """A bound in full: whole numbers of any length, moments to the nanosecond, durations as such."""
    if measure.name == "numbers":
        return str(exact_number(bound, rest))
    moment = nanoseconds_of(bound, rest)
    stored = np.int64(moment if abs(moment) < _MAX_NANOSECONDS else moment // 1000)
    unit = "ns" if abs(moment) < _MAX_NANOSECONDS else "us"
    if measure.name == "durations":
        return str(pd.Timedelta(stored.view(f"m8[{unit}]")))
    utc = pd.Timestamp(stored.view(f"M8[{unit}]"))
    return str(utc if measure.zone is None else utc.tz_localize("UTC").tz_convert(measure.zone))


def _dates(days: Floats, zone: str | None) -> list[str]:
    """Days since 1970 as dates, or as dates and times; halves, as lie between whole days, as the day they end."""
    utc = pd.to_datetime(np.floor(np.round(days * _SECONDS_PER_DAY, 3)).astype("datetime64[s]"), utc=True)
    moments = utc.tz_convert(zone or "UTC")
    seconds = moments.tz_localize(None).to_numpy().astype("datetime64[s]")
    exact = np.round(days * _SECONDS_PER_DAY, 3)
    if (exact == np.floor(exact)).all() and (seconds.astype(np.int64) % (_SECONDS_PER_DAY // 2) == 0).all():
        return [str(day) for day in seconds.astype("datetime64[D]")]
    whole = (seconds == seconds.astype("datetime64[m]")).all()
    texts = [str(moment).replace("T", " ") for moment in seconds.astype("datetime64[m]" if whole else "datetime64[s]")]
    if zone is not None and len(set(texts)) < len(texts):
        texts = [str(moment) for moment in moments]
    return texts if len(set(texts)) == len(texts) else _numbers(days)


def _numbers(values: Floats) -> list[str]:
    """As few digits as distinguish all of them; halves of whole numbers, as lie between whole ones, in full."""
    small = np.where(np.abs(values) < _MAX_WHOLE, values, 0.5 / 3.0)  # twice the others may be infinite
    exact = small * 2 == np.floor(small * 2)
    for digits in (6, 9, 12):
        texts = [f"{value:.{15 if full else digits}g}" for value, full in zip(values, exact, strict=True)]
        if len(set(texts)) == len(texts):
            return texts
    return [repr(float(value)) for value in values]


def _group_label(members: list[Any]) -> str:
    names = ["Missing" if member is None else str(member) for member in members]
    text = names[0] if names else ""
    for name in names[1:]:
        if len(text) + len(name) + 2 > _MAX_SHOWN:
            return f"{{{text}, ... ({len(names)})}}"
        text += f", {name}"
    return f"{{{text}}}"


# -- parts that the user gives ---------------------------------------------------------------------

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
    if settings.given is not None:
        return _GivenColumn(table, settings, settings.given).fitted(classes=classes)
    if classes:
        partition = (discretize if table.is_numeric else group)(table.dense(), settings)
        target = target_of_classes(table, partition.counts)
    else:
        grid = cut_jointly(*grid_of(table, settings))
        partition = grid.source
        target = target_of_numbers(table, partition.labels, partition.counts, grid.target_labels)
    return intervals_of(table, partition, target) if table.is_numeric else groups_of(table, partition, target)


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
            criterion, none = self.settings.criterion, np.zeros((n, 0))
            partition = Partition(criterion, labels, none, cost, cost, WITHOUT_SEARCH, granularity)
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
        shape = n_rest + len(self.given.specials), int(grid.target_labels.max()) + 1
        counts = self.table.summed(grid.source.labels, grid.target_labels, shape)
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
        codes = tuple(tuple(np.nan if np.isneginf(x.real) else float(x.real) for x in part) for part in specials)
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
        categories, labels, groups = result.categories.tolist(), partition.labels.tolist(), result.groups
        n = partition.n_parts - len(self.given.specials)
        known = {plain(category) for category in categories}
        for position, members in [*enumerate(self.given.splits or ()), *enumerate(self.given.specials, n)]:
            new = [member for member in members if member not in known]
            groups[position] += new
            categories += new
            labels += [position] * len(new)
        default = 0
        if len(self.free):
            default = int(partition.labels[self.free[int(np.argmin(self.rest.sizes))]])
            named = len(self.given.splits) if self.given.splits is not None else n
            default = named if named < n else default  # the group of the categories that the user does not name
        return replace(
            result,
            groups=groups,
            categories=object_array(categories),
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
