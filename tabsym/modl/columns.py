"""Fitted partitions of columns, in the column's own values: intervals with bounds, groups with categories; as text."""

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
from tabsym.frame.dtypes import read_list, read_symbols, written_list, written_symbols
from tabsym.modl.grid import GridRows, Sources
from tabsym.modl.groups import group
from tabsym.modl.intervals import discretize
from tabsym.modl.joint_cuts import cut_jointly
from tabsym.modl.partition import Partition, Settings

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
    symbols : (M,)
        All categories, in the order of the table; then those that it lacks and the user names.
    labels_of : (M,)
        The group of each.
    default : int
        The group of the least frequent category, Khiops' default for unknown ones.
    """

    partition: Partition
    target: PartTargets
    groups: list[list[Any]]
    symbols: NDArray[Any]
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
        return self.__dict__ | {"groups": groups, "symbols": written_symbols(self.symbols)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        groups = [read_list(members) for members in state["groups"]]
        self.__dict__.update(state, groups=groups, symbols=read_symbols(state["symbols"]))


def search_column(table: Contingency, settings: Settings, *, classes: bool) -> Intervals | Groups:
    """The optimal intervals or groups of a column.

    Parameters
    ----------
    table : Contingency
    settings : Settings
    classes : bool
        Whether the targets are classes, or numbers.
    """
    if classes:
        partition = (discretize if table.is_numeric else group)(table.dense(), settings)
        target = target_of_classes(table, partition.counts)
    else:
        grid = cut_jointly(*grid_of(table, settings))
        partition = grid.source
        target = target_of_numbers(table, partition.labels, partition.counts, grid.target_labels)
    return intervals_of(table, partition, target) if table.is_numeric else groups_of(table, partition, target)


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
    symbolic = not table.is_numeric
    settings = replace(settings, monotonic=settings.monotonic and not symbolic)
    rows = GridRows(row, column, len(table.values), len(table.targets), data)
    sums = np.bincount(row, data * np.asarray(table.targets, dtype=np.float64)[column], minlength=len(table.values))
    return rows, Sources(symbolic, settings, sums.astype(np.float64) if settings.monotonic else None)


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
    return Groups(
        partition, target, members, table.values, partition.labels, int(partition.labels[int(np.argmin(sizes))])
    )


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
