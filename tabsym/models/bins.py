"""The bins of numeric columns: how many and where, for each value of `numeric` and for the search of interactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tabsym.categories import RawCodes
from tabsym.categories.contingency import ROUNDING_OF_SHARES, code_numbers
from tabsym.design.plan import LEVELS, Levels
from tabsym.design.sources import Bins
from tabsym.frame import Column, Kind, categorical_columns
from tabsym.frame.target import Copies, design_effect, weights_within_classes
from tabsym.jit import in_threads
from tabsym.losses.loss import Loss
from tabsym.messages import warn_user
from tabsym.models.checks import Treatment, columns_of, name_of
from tabsym.models.config import Config
from tabsym.models.data import Sampler, Training
from tabsym.modl import Intervals, Settings, fit_column
from tabsym.modl.columns import interval_labels
from tabsym.solvers.newton import Newton

Floats = NDArray[np.float64]

QUANTILES = 32
"""Maximum number of bins for numeric="quantile"."""

MIN_FINE, MAX_FINE, FINE_OF_ROOT = 64, 1024, 1.5
"""Maximum number of equal-frequency bins for numeric="smooth": 1.5 times the root of the rows, within these
limits (benchmarks/bins.md). Of classes the least, to which MODL's edges are added: a walk of more bins shrinks the
jumps that these mark."""

SEARCHED_BINS = 8
"""Maximum number of equal-frequency bins of a smooth number while interactions are chosen: with more, most cells have
too few rows to show a gain (benchmarks/interactions/README.md)."""


class Ordered:
    """A numeric column with its values in ascending order, for the bins of equal frequency.

    Parameters
    ----------
    column : Column
    weight : (n,) or None
    copies : (n,) or None
        How many rows each stands for, in whose weight they are counted.
    """

    def __init__(self, column: Column, weight: Floats | None, copies: Copies = None) -> None:
        present = ~np.isnan(column.values)
        values = column.values[present]
        self.column, self._below = column, None
        self.n_rows = len(values) if copies is None else int(copies[present].sum())
        self._whole = True  # whether weights are numbers of rows
        if weight is None:
            self._values = np.sort(values)
            return
        present_weight, order = weight[present], np.argsort(values, kind="stable")
        self._values, self._below = values[order], np.cumsum(present_weight[order])
        self._whole = copies is not None and bool((present_weight == copies[present]).all())

    def quantiles(self, n_parts: int) -> Floats:
        """The n - 1 inner quantiles for n bins, and the largest value; empty where all values are missing."""
        if not len(self._values):
            return np.empty(0)
        shares = np.arange(1, n_parts) / n_parts
        if self._below is None:  # as numpy's "inverted_cdf"
            indices = np.maximum(np.ceil(len(self._values) * shares - 1.0).astype(np.intp), 0)
        elif self._whole:
            indices = np.searchsorted(self._below, np.ceil(self._below[-1] * shares - 1.0), side="right")
        else:
            indices = np.searchsorted(self._below, (shares - ROUNDING_OF_SHARES) * self._below[-1])
        return np.append(rounded_up(self.column, self._values[indices]), self._values[-1])

    @property
    def n_fine(self) -> int:
        """How many fine bins it has at most in regression, by its rows with a value; a multiple of `QUANTILES`."""
        return min(max(int(FINE_OF_ROOT * np.sqrt(self.n_rows)), MIN_FINE), MAX_FINE) // QUANTILES * QUANTILES

    def cut(self, n_parts: int) -> Bins:
        """Bins of equal frequency."""
        return _bins(self.column, _distinct(self.quantiles(n_parts)))

    def cut_finely(self, coarse: Bins | None) -> Bins:
        """Many equal-frequency bins, with the edges of the coarse bins, where the target may jump."""
        cuts = _distinct(self.quantiles(MIN_FINE))
        return _bins(self.column, cuts if coarse is None else np.union1d(cuts, coarse.bounds))

    def cut_twice(self) -> tuple[Bins, Bins]:
        """Equal-frequency bins, and as many fine ones as `n_fine`, which include their edges."""
        quantiles = self.quantiles(self.n_fine)
        every = self.n_fine // QUANTILES
        return _bins(self.column, _distinct(quantiles, every)), _bins(self.column, _distinct(quantiles))

    def cut_levels(self, coarse: Bins | None) -> dict[int, Bins]:
        """Equal-frequency bins for each of `LEVELS`, where these differ from each other and from the coarse ones."""
        quantiles = self.quantiles(LEVELS[-1])
        distinct: dict[int, Bins] = {}
        for n_bins in LEVELS:
            bins = _bins(self.column, _distinct(quantiles, LEVELS[-1] // n_bins))
            if not any(
                np.array_equal(bins.bounds, earlier.bounds) for earlier in (*distinct.values(), *filter(None, [coarse]))
            ):
                distinct[n_bins] = bins
        return distinct


def cut_by_modl(
    columns: Sequence[Column], y: Floats, weight: Floats | None, *, classes: bool, n_jobs: int | None,
    prove: bool = True,
) -> list[Bins]:  # fmt: skip
    """MODL's bins of numeric columns; a column that MODL finds uninformative is left out, and gets a slope.

    Without a proof of optimality (`prove`, of classes only) MODL's bins are a heuristic's, in a fraction of the time,
    and held-out errors hardly change (`benchmarks/evidence/constants_models.md`, `benchmarks/growth.md`).

    Parameters
    ----------
    columns : numeric columns of the training table
    y : (n,)
        Class codes, or a numeric target.
    weight : (n,) or None
    classes : bool
    n_jobs : int or None
    prove : bool
    """
    targets, codes = np.unique(y, return_inverse=True)

    def cut(column: Column) -> Bins | None:
        table = code_numbers(column.values, column.measure).count(codes.ravel(), targets, weight)
        fitted = fit_column(table, Settings(prove=prove and classes), classes=classes)
        assert isinstance(fitted, Intervals)
        return _bins(column, rounded_up(column, fitted.bounds)) if fitted.partition.n_parts > 1 else None

    return [bins for bins in in_threads(cut, columns, n_jobs) if bins is not None]


def _distinct(quantiles: Floats, every: int = 1) -> Floats:
    """The distinct bin edges at every `every`-th quantile, below the largest value."""
    cuts = quantiles[every - 1 :: every]
    return np.unique(cuts[cuts < quantiles[-1:]])


DIGITS, MAX_POWER, ROUGH = 14, 22, 0.02
"""Significant digits of bin edges; the largest power of 10 that a float holds exactly; and how exactly floats of this
size hold the part of the last digit."""


def rounded_up(column: Column, edges: Floats) -> Floats:
    """Bin edges, which are sorted values of a column of numbers, with 14 digits.

    Files such as Excel's keep 16, and a value may come back from there a bit larger: it would be in the next bin. Whole
    numbers, dates and durations stay exact, and so do edges that would move by more than a thousandth of a bin.
    """
    if column.measure.name != "numbers":
        return edges
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        power = DIGITS - 1 - np.floor(np.log10(np.abs(edges)))
        digits = np.ceil(edges * 10.0**power - ROUGH)
        above = np.where(digits / 10.0**power < edges, digits + 1.0, digits) / 10.0**power
        distinct, index = np.unique(edges, return_inverse=True)
        widths = np.append(np.diff(distinct), np.inf)
        widths[-1] = widths[-2:].min(initial=np.inf)
        is_short = (np.abs(power) <= MAX_POWER) & (above - edges <= 1e-3 * widths[index])
        return np.where((edges != np.floor(edges)) & is_short, above, edges)


def _bins(column: Column, bounds: Floats) -> Bins:
    """Bins with these edges; missing values, where there are any, have their own bin."""
    finite = bounds[np.isfinite(bounds)] + 0.0  # no -0.0, which depends on the order of rows
    missing = bool(np.isnan(column.values).any())
    labels = ("Missing",) if missing else ()
    return Bins(column.name, finite, (*labels, *interval_labels(finite, measure=column.measure)), missing)


@dataclass(frozen=True)
class NumericBins:
    """Bins of the numeric columns.

    Attributes
    ----------
    coarse : for interactions
    fine : of smooth columns, for their main effects
    levels : of smooth columns, those of `LEVELS`, for interactions too
    searched : of smooth columns, those by which interactions are chosen
    """

    coarse: Sequence[Bins] = ()
    fine: Sequence[Bins] = ()
    levels: Levels = field(default_factory=dict)
    searched: Mapping[str, Bins] = field(default_factory=dict)


@dataclass(frozen=True)
class Precomputed:
    """Precomputed bins and factorized columns of a training table, shared by several fits to it.

    Attributes
    ----------
    cuts : NumericBins
        The bins of its numeric columns.
    column_codes : dict of column -> RawCodes
        Cache of the factorized columns.
    sampler : Sampler or None
        Of the rows, where these are all that are fitted.
    """

    cuts: NumericBins
    column_codes: dict[str, RawCodes]
    sampler: Sampler | None = None

    @classmethod
    def of(cls, cuts: NumericBins, training: Training, rng: np.random.RandomState) -> Precomputed:
        """Of all weighted rows of a fit."""
        column_codes: dict[str, RawCodes] = {}
        return cls(cuts, column_codes, Sampler(training, column_codes, rng))


def plan_cuts(config: Config, training: Training, loss: Loss) -> NumericBins:
    """The bins for the option `numeric`; the edges of the coarse bins are among those of the fine ones."""
    names = (training.given or training.table).names
    config = replace(config, numeric_of={name_of(given, names): how for given, how in config.numeric_of.items()})
    if config.formula is None:
        columns = [column for column in columns_by_kind(config, training)[1] if column.kind is not Kind.CATEGORICAL]
    else:
        columns = _binned_by_formula(config, training)
    known = [column.name for column in columns]
    for name in config.numeric_of:
        if name not in known:
            what = "is a categorical column" if name in training.table.names else "is no column of the table"
            what = "is fixed" if name in config.fixed else what
            raise ValueError(f"numeric names {name!r}, which {what}; the numeric columns are {known}.")
    by_way: dict[Treatment, list[Column]] = {}
    for column in columns:
        by_way.setdefault(config.numeric_for(column.name), []).append(column)
    coarse: dict[str, Bins] = {}
    fine: dict[str, Bins] = {}
    smooth: list[Ordered] = []
    for how, way_columns in by_way.items():
        if how == "linear":
            continue
        if how == "smooth":
            smooth = [Ordered(column, training.weight, training.copies) for column in way_columns]
            cuts = _cut_smooth(smooth, training, loss, config.n_jobs)
        else:
            cuts = _cut(how, way_columns, training, loss, config.n_jobs)
        coarse |= {bins.column: bins for bins in cuts.coarse}
        fine |= {bins.column: bins for bins in cuts.fine}
    levels, searched = {}, {}
    for ordered in smooth:
        name = ordered.column.name
        levels[name], searched[name] = ordered.cut_levels(coarse.get(name)), ordered.cut(SEARCHED_BINS)
    return NumericBins(
        [coarse[name] for name in known if name in coarse],
        [fine[name] for name in known if name in fine],
        levels,
        searched,
    )


def _cut(how: Treatment, columns: list[Column], training: Training, loss: Loss, n_jobs: int | None) -> NumericBins:
    """The bins of columns for one value of `numeric`, which is not "smooth"."""
    if isinstance(how, tuple):
        cuts = np.array(how)
        for column in columns:
            values = column.values[~np.isnan(column.values)]
            if len(values) and not np.ptp(np.searchsorted(cuts, values)):
                warn_user(
                    f"numeric[{column.name!r}] has cut points from {cuts[0]:g} to {cuts[-1]:g}, and all values of the "
                    f"column, from {values.min():g} to {values.max():g}, are in one interval; give cut points between "
                    "them."
                )
        return NumericBins([_bins(column, cuts) for column in columns])
    if how == "modl":
        counted = _counted(training, loss)
        return NumericBins(cut_by_modl(columns, training.y, counted, classes=loss.for_classes, n_jobs=n_jobs))
    return NumericBins([Ordered(column, training.weight, training.copies).cut(QUANTILES) for column in columns])


def _cut_smooth(columns: Sequence[Ordered], training: Training, loss: Loss, n_jobs: int | None) -> NumericBins:
    """The bins of smooth columns."""
    if not loss.for_classes:
        pairs = [column.cut_twice() for column in columns]
        return NumericBins([coarse for coarse, _ in pairs], [fine for _, fine in pairs])
    raw_columns = [ordered.column for ordered in columns]
    counted = _counted(training, loss)
    coarse = cut_by_modl(raw_columns, training.y, counted, classes=True, n_jobs=n_jobs, prove=False)
    by_column, fine = {bins.column: bins for bins in coarse}, []
    for ordered in columns:
        by_modl = by_column.get(ordered.column.name)
        fine.append(ordered.cut_finely(by_modl))
        if by_modl is None:  # of no gain by itself, but perhaps in interactions
            coarse.append(ordered.cut(LEVELS[-1]))
    return NumericBins(coarse, fine)


def _counted(training: Training, loss: Loss) -> Floats | None:
    """The weights by which MODL counts rows: of classes without those of the classes."""
    if not loss.for_classes or training.weight is None:
        return training.weight
    counted = weights_within_classes(training.y, training.weight, training.copies)
    return np.asarray(counted / design_effect(counted, training.copies))


def _binned_by_formula(config: Config, training: Training) -> list[Column]:
    """Numeric columns in brackets of a formula with fractional values, or named by `numeric`; others are categories."""
    in_brackets = {name for term in config.free_terms for ref in term.blocks for name in ref.columns}
    columns = [training.table[name] for name in training.table.names if name in in_brackets]
    numbers = [column for column in columns if column.kind is Kind.NUMERIC]
    smooth = {name for term in config.free_terms for ref in term.blocks for name in ref.smooth}
    for name in sorted(smooth):
        if config.numeric_for(name) == "linear":
            raise ValueError(
                f"s({name}) has no effect with numeric='linear', which gives numbers no bins; use "
                f"numeric='quantile', or write b[1] * {name} for a slope."
            )
    binned = []
    for column in numbers:
        values = column.values[np.isfinite(column.values)]
        has_fractions = column.measure.name == "numbers" and (values != np.floor(values)).any()
        if column.name in smooth or column.name in config.numeric_of or has_fractions:
            binned.append(column)
    default = "smooth" if isinstance(config.optimizer, Newton) else "linear"
    if not binned and config.numeric != default:
        raise ValueError(
            f"numeric={config.numeric!r} has no effect, as the formula has no column of fractions in brackets; leave "
            "it out, or name columns: numeric={'price': 'quantile'}."
        )
    return binned


def columns_by_kind(config: Config, training: Training, *, whole: bool = True) -> tuple[list[Column], list[Column]]:
    """The categorical columns, including empty ones, and the other columns, without fixed ones."""
    cols = columns_of(config.cols, (training.given or training.table).names)
    if training.given is not None and isinstance(cols, list):  # a mask includes the offset's column
        cols = [name for name in cols if name not in training.given.names or name in training.table.names]
    chosen = categorical_columns(training.table, cols, booleans=True, whole=whole, option="categorical_features")
    names = {column.name for column in chosen}
    categorical: list[Column] = []
    numeric: list[Column] = []
    for column in training.table.columns:
        if column.name not in config.fixed:
            is_empty = whole and config.cols is not None and column.is_empty
            (categorical if column.name in names or is_empty else numeric).append(column)
    return categorical, numeric
