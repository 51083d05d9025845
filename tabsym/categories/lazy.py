"""From a lazy frame to counts: its engine groups the rows, and only the groups are collected.

DuckDB relations, LazyFrames of polars, and frames of Dask, ibis and PySpark hold more rows than
memory does; groups are as many as categories. Their keys are collected in the engine's own types and then coded as
columns of a collected table are, so that categories are the same values: NaN and null one category, decimals, dates
and booleans of their types.

Numbers of very many distinct values are counted in cells of neighbouring values of nearly equal size, quantiles that
the engine finds by ranking them.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from tabsym.categories.categories import Categories
from tabsym.categories.coding import RawCodes, encode_column
from tabsym.categories.contingency import ROUNDING_OF_SHARES, Contingency
from tabsym.frame import Column, Kind, Table, as_lazy, check_named, check_weights, read_table
from tabsym.frame.storage import PER_DAY, object_array
from tabsym.frame.target import warn_of_light_total

Floats = NDArray[np.float64]


def is_missing(frame: nw.LazyFrame[Any], name: str) -> nw.Expr:
    """Whether the values of a column are null or NaN, which are one here."""
    column = nw.col(name)
    return column.is_null() | column.is_nan() if frame.collect_schema()[name].is_float() else column.is_null()


def by_bin(frame: nw.LazyFrame[Any], name: str, bounds: Floats, values: list[list[Any]]) -> list[nw.Expr]:
    """Of each list of values (I,) the one of the bin in which a column's value lies.

    `bounds` (I - 1,): the upper bounds of all bins but the last, ascending; dates and durations count days, as
    `Column.values` does. The caller handles missing values.
    """
    dtype, column = frame.collect_schema()[name], nw.col(name)
    if dtype.is_numeric():
        column, limits = column.cast(nw.Float64), [nw.lit(bound) for bound in bounds.tolist()]
    else:
        limits = [_moment(bound, dtype, frame.implementation) for bound in bounds.tolist()]
    return [pick_bin(column, limits, bin_values) for bin_values in values]


def number_of_bin(frame: nw.LazyFrame[Any], name: str, bounds: Floats) -> nw.Expr:
    """How many of the ascending bounds lie below the values of a column; see `by_bin`."""
    return by_bin(frame, name, bounds, [list(range(len(bounds) + 1))])[0]


def _moment(days: float, dtype: Any, engine: nw.Implementation) -> nw.Expr:
    """The last value of a column of dates, moments or durations that is at most `days`, as `Column.values` has it.

    A column is compared with it, as few engines tell how many microseconds a duration has.
    """
    first = datetime.date(1970, 1, 1)
    if isinstance(dtype, nw.Date):
        return nw.lit(first + datetime.timedelta(days=math.floor(days)))
    unit = dtype.time_unit if engine.is_polars() else "us"  # other engines have no finer in narwhals
    number = _last_at_most(days, PER_DAY[unit])
    if engine.is_polars():
        return nw.lit(number).cast(dtype)
    since = datetime.timedelta(microseconds=number)
    if not isinstance(dtype, nw.Datetime):  # durations of Spark have a type that narwhals does not know
        return nw.lit(since)
    zone = None if dtype.time_zone is None else datetime.UTC
    moment = datetime.datetime(first.year, first.month, first.day, tzinfo=zone) + since
    if zone is None and engine.is_spark_like():  # which takes it for one of this process's time zone
        return nw.lit(moment.isoformat(" ")).cast(dtype)
    return nw.lit(moment)


def _last_at_most(days: float, per_day: int) -> int:
    """The greatest number of parts of a day that is at most `days`, as doubles round both."""
    number = math.floor(days) * per_day + math.floor(days % 1.0 * per_day)
    while number // per_day + number % per_day / per_day > days:
        number -= 1
    while (number + 1) // per_day + (number + 1) % per_day / per_day <= days:
        number += 1
    return number


def pick_bin(column: nw.Expr, bounds: list[nw.Expr], values: list[Any]) -> nw.Expr:
    """One of the values (I,) by the bin of a column, whose upper bounds (I - 1,) are of its type: by bisection."""
    if all(value == values[0] for value in values):
        return nw.lit(values[0])
    middle = len(bounds) // 2
    low, high = (
        pick_bin(column, bounds[:middle], values[: middle + 1]),
        pick_bin(column, bounds[middle + 1 :], values[middle + 1 :]),
    )
    return nw.when(column <= bounds[middle]).then(low).otherwise(high)


MAX_VALUES = 10_000
"""Numeric columns of more distinct values are counted in this number of cells of neighbouring values."""
MAX_TARGET_CELLS = 1_000
"""Continuous targets of more distinct values are taken in this number of cells, each at its mean."""
_CELL = "tabsym_cell"


class UnreadColumn(Column):
    """A column of a lazy frame: its type, and if that is not of categories in how many rows a value is missing."""

    n_missing: int
    n_rows: int

    @classmethod
    def of(cls, column: Column, n_missing: int, n_rows: int) -> UnreadColumn:
        out = object.__new__(cls)
        out.__dict__.update(column.__dict__, n_missing=n_missing, n_rows=n_rows)
        return out

    @property
    def is_empty(self) -> bool:
        return self.n_missing == self.n_rows

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Whether any is: of no row in particular."""
        return np.array([self.n_missing > 0])


@dataclass(frozen=True)
class LazyRows:
    """The rows of a lazy frame of weight above 0, to be counted by its engine.

    Attributes
    ----------
    frame : LazyFrame
    table : Table
        The features without their rows: `UnreadColumn`.
    target, weight : str or None
        Names of columns that are no features.
    caller : str
        Who asks, for messages.
    cells : dict of str -> int
        The columns that were counted in cells so far, and in how many at most.
    """

    frame: nw.LazyFrame[Any]
    table: Table
    target: str | None
    weight: str | None
    caller: str
    cells: dict[str, int] = field(default_factory=dict)

    def groups(self, keys: Sequence[nw.Expr], *, range_of: str | None = None, **sums: nw.Expr) -> nw.DataFrame[Any]:
        """Collected groups: their keys `k0`, `k1`, ...; `n` rows, or weight; sums by name, times weights.

        `range_of`: a column whose least and greatest values, `low` and `high`, are wanted.
        """
        weight = None if self.weight is None else nw.col(self.weight).cast(nw.Float64)
        columns = [key.alias(f"k{position}") for position, key in enumerate(keys)]
        columns += [(expr if weight is None else expr * weight).alias(name) for name, expr in sums.items()]
        wanted = [nw.len().alias("n") if weight is None else nw.col("w").sum().alias("n")]
        wanted += [nw.col(name).sum().alias(name) for name in sums]
        if weight is not None:
            columns.append(weight.alias("w"))
        if range_of is not None:
            columns += [nw.col(range_of).alias("low"), nw.col(range_of).alias("high")]
            wanted += [nw.col("low").min(), nw.col("high").max()]
        names = [f"k{position}" for position in range(len(keys))]
        return collected(self.frame.select(*columns).group_by(names).agg(*wanted))

    def total(self, **sums: nw.Expr) -> dict[str, float]:
        """Numbers over all rows, as the engine aggregates them."""
        totals = collected(self.frame.select(*(expr.alias(name) for name, expr in sums.items()))).rows(named=True)[0]
        return {name: float(value or 0) for name, value in totals.items()}

    def warn_of_light_weights(self, taker: str, effect: str) -> None:
        """As the function of this name."""
        if self.weight is not None:
            totals = self.total(n=nw.len(), weight=nw.col(self.weight).cast(nw.Float64).sum())
            warn_of_light_total(int(totals["n"]), totals["weight"], taker, effect)

    def read(self, groups: nw.DataFrame[Any], key: str, name: str) -> Column:
        """A key of collected groups as the column of that name."""
        return read_table(groups.select(nw.col(key).alias(name)).to_native(), caller=self.caller)[name]

    def counted(self, name: str) -> tuple[RawCodes, Floats]:
        """The categories of a column in their order, and the rows of each code; those of category types in theirs."""
        groups = self.groups([nw.col(name)])
        column = self.read(groups, "k0", name)
        return _in_order(column), sizes_of(groups)

    def present(self, name: str) -> LazyRows:
        """The rows in which a column is not missing."""
        return replace(self, frame=self.frame.filter(~is_missing(self.frame, name)))

    def absent(self, name: str) -> LazyRows:
        """The rows in which a column is missing."""
        return replace(self, frame=self.frame.filter(is_missing(self.frame, name)))

    def is_number(self, name: str) -> bool:
        """Whether a column is of a numeric type."""
        return bool(self.frame.collect_schema()[name].is_numeric())

    def n_distinct(self, name: str) -> int:
        return int(self.total(n=nw.col(name).n_unique())["n"])

    def in_cells(self, name: str, n_cells: int) -> tuple[LazyRows, str]:
        """The rows in which a column is not missing, and the name of another that has the cell of each.

        Cells are of neighbouring values of nearly equal size; equal values lie in one.
        """
        present, cell = self.present(name), f"{_CELL}_{name}"
        n_rows = int(present.total(n=nw.len())["n"])
        rank = nw.col(name).rank("min").cast(nw.Int64) - 1
        try:
            frame = present.frame.with_columns((rank * n_cells // n_rows).alias(cell))
        except NotImplementedError as error:
            self._refuse_quantiles(name, error)
        self.cells[name] = n_cells
        return replace(present, frame=frame), cell

    def _refuse_quantiles(self, name: str, error: NotImplementedError) -> NoReturn:
        raise TypeError(
            f"The quantiles of column {name!r} are needed, which narwhals cannot ask of "
            f"{self.frame.implementation.name.lower()}: round the column to fewer values, give edges of your own, or "
            f"collect the frame. ({error})"
        ) from None

    def quantiles(self, name: str, shares: Floats) -> Floats:
        """As `numpy.quantile` of a numeric column, by the weights, with method "inverted_cdf": values that occur."""
        rows, number = self.present(name), nw.col(name)
        if self.weight is None:
            n_rows = rows.total(n=nw.len())["n"]
            reached, wanted = number.cum_count().over(order_by=name), np.maximum(np.ceil(n_rows * shares - 1) + 1, 1)
        else:
            weight = nw.col(self.weight).cast(nw.Float64)
            n_rows = rows.total(n=weight.sum())["n"]
            reached, wanted = weight.cum_sum().over(order_by=name) / n_rows, shares - ROUNDING_OF_SHARES
        if not n_rows:
            return np.empty(0)
        asked = [
            nw.when(nw.col(_CELL) >= float(least)).then(number).min().alias(f"q{position}")
            for position, least in enumerate(wanted)
        ]
        try:
            result = collected(rows.frame.select(number, reached.alias(_CELL)).select(*asked))
        except NotImplementedError as error:
            self._refuse_quantiles(name, error)
        return np.array([self.read(result, column, name).values[0] for column in result.columns])

    def mean(self, name: str) -> float:
        """Of a column of numbers, by the weights."""
        value = nw.col(name).cast(nw.Float64)
        weight = nw.lit(1.0) if self.weight is None else nw.col(self.weight).cast(nw.Float64)
        totals = self.total(sum=(value * weight).sum(), n=nw.len() if self.weight is None else weight.sum())
        return totals["sum"] / totals["n"]

    def has_missing(self, name: str) -> bool:
        return bool(self.absent(name).total(n=nw.len())["n"])

    def numbers_by_target(self, name: str, target: LazyTarget) -> Contingency | None:
        """A numeric column of too many values in cells, by the target; None where each value can be counted."""
        if self.n_distinct(name) <= MAX_VALUES:
            return None
        rows, cell = self.in_cells(name, MAX_VALUES)
        groups = rows.groups([nw.col(cell), target.key], range_of=name)
        cells, codes = np.unique(groups["k0"].to_numpy(), return_inverse=True)
        low, high = self.read(groups, "low", name), self.read(groups, "high", name)
        lows, highs = np.full(len(cells), np.inf), np.full(len(cells), -np.inf)
        np.minimum.at(lows, codes, low.values)
        np.maximum.at(highs, codes, high.values)
        targets, sizes = target.codes(self, groups, "k1"), sizes_of(groups)
        missing = self.absent(name).groups([target.key])
        if len(missing):
            codes, lows, highs = codes + 1, np.append(-np.inf, lows), np.append(-np.inf, highs)
            codes = np.append(codes, np.zeros(len(missing), dtype=np.int64))
            targets = np.append(targets, target.codes(self, missing, "k0"))
            sizes = np.append(sizes, sizes_of(missing))
        return Contingency.of_cells(highs, lows, (codes, targets, sizes), target.values, low.measure)

    def refuse_missing(self, name: str) -> None:
        """A `ValueError` where the column has a missing value."""
        if self.has_missing(name):
            raise ValueError(
                f"Column {name!r} holds missing values; fill them in, or set handle_missing to something other than "
                "'error'."
            )


@dataclass(frozen=True)
class LazyTarget:
    """The target of lazy rows as a key of groups: codes of its distinct `values` (T,).

    `code_of` (categories,): the code of each category that the key can have.
    """

    key: nw.Expr
    values: NDArray[Any]
    vocabulary: Categories
    code_of: NDArray[np.int64]

    @classmethod
    def of(cls, key: nw.Expr, values: NDArray[Any], column: Column, codes: NDArray[np.integer[Any]]) -> LazyTarget:
        """By a collected column of the key's distinct values, and the code (m,) of each."""
        raw = encode_column(column)
        code_of = np.zeros(len(raw.categories), dtype=np.int64)
        code_of[raw.codes] = codes
        return cls(key, values, Categories(column.name, raw.categories), code_of)

    def codes(self, rows: LazyRows, groups: nw.DataFrame[Any], key: str) -> NDArray[np.int64]:
        """The code of each collected group."""
        return self.code_of[self.vocabulary.transform(encode_column(rows.read(groups, key, self.vocabulary.name)))]


def lazy_rows(X: Any, y: Any, sample_weight: Any, caller: str, *, supervised: bool) -> LazyRows | None:
    """The rows of a lazy frame, checked; None where X is none, or a target is needed and is not the name of a column.

    Raises
    ------
    ValueError
        A column that was named is not there, or holds missing values; weights that are none.
    TypeError
        `sample_weight` is no name: rows of an engine have no order.
    """
    frame = as_lazy(X)
    if frame is None or (supervised and not isinstance(y, str)):
        return None
    target = y if isinstance(y, str) else None
    if sample_weight is not None and not isinstance(sample_weight, str):
        raise TypeError(
            f"sample_weight is {type(sample_weight).__name__}, and X a lazy frame, whose rows have no order; name the "
            "column of the weights: sample_weight='NAME'."
        )
    names = list(frame.columns)
    for name, purpose in ((target, "to predict"), (sample_weight, "of weights")):
        if name is not None:
            check_named(name, names, purpose)
    n_rows = int(collected(frame.select(nw.len().alias("n"))).rows()[0][0])
    features = [name for name in names if name not in (target, sample_weight)]
    if not features:
        raise ValueError(
            f"{caller} needs at least one column besides those named for target and weights; there is none."
        )
    empty = read_table(frame.select(features).head(0).collect().to_native(), caller=caller, allow_empty=n_rows > 0)
    asked = [column.name for column in empty.columns if column.kind is not Kind.CATEGORICAL]
    n_missing = _missing_in(frame, [*asked, *(name for name in (target, sample_weight) if name is not None)])
    if supervised and target is not None and n_missing[target]:
        raise ValueError(
            f"Input y contains NaN: the target is missing in {n_missing[target]} row(s); drop these rows or fill them "
            "in."
        )
    columns = tuple(UnreadColumn.of(column, n_missing.get(column.name, 0), n_rows) for column in empty.columns)
    if sample_weight is not None:
        frame = _weighted(frame, sample_weight, n_missing[sample_weight])
    return LazyRows(frame, replace(empty, columns=columns, n_rows=n_rows), target, sample_weight, caller)


def with_finite_numbers(frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """The same rows, infinite numbers as the largest finite ones of their type."""
    schema = frame.collect_schema()
    bounds = {
        name: float(np.finfo(np.float32 if dtype == nw.Float32 else np.float64).max)
        for name, dtype in schema.items()
        if dtype.is_float()
    }
    if not bounds:
        return frame
    clipped = {name: nw.col(name).clip(-bound, bound) for name, bound in bounds.items()}
    return frame.with_columns(  # narwhals before 2.26 clips DuckDB's missing numbers to a bound
        *(nw.when(~nw.col(name).is_null()).then(clip).alias(name) for name, clip in clipped.items())
    )


def collected(frame: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
    """What an engine makes of a query; polars by batches of rows, as its other way reads all of them first."""
    return frame.collect(engine="streaming") if frame.implementation.is_polars() else frame.collect()


def sizes_of(groups: nw.DataFrame[Any]) -> Floats:
    """Rows, or weight, of collected groups."""
    return np.asarray(groups["n"].to_numpy()).astype(np.float64)


def _missing_in(frame: nw.LazyFrame[Any], names: list[str]) -> dict[str, int]:
    """The number of missing values in each of these columns."""
    if not names:
        return {}
    counts = [is_missing(frame, name).cast(nw.Int64).sum().alias(f"m{position}") for position, name in enumerate(names)]
    totals = collected(frame.select(*counts)).rows()[0]
    return {name: int(number or 0) for name, number in zip(names, totals, strict=True)}


def _weighted(frame: nw.LazyFrame[Any], name: str, n_missing: int) -> nw.LazyFrame[Any]:
    """The rows of weight above 0, or an error where weights are none."""
    weight = nw.col(name).cast(nw.Float64)
    ends = collected(frame.select(weight.min().alias("low"), weight.max().alias("high"))).rows()[0]
    check_weights(np.array([np.nan] if n_missing else ends, dtype=np.float64), 1 if n_missing else 2)
    return frame.filter(weight > 0)


def _in_order(column: Column) -> RawCodes:
    """The codes of distinct values (m,), whose categories are in order: an engine's groups come in any."""
    raw, dtype = encode_column(column), column.series.dtype
    in_polars = column.series.implementation.is_polars()
    if isinstance(dtype, nw.Enum) or (isinstance(dtype, nw.Categorical) and not in_polars):
        return raw  # of declared categories, in their order
    order = sorted(range(len(raw.categories)), key=raw.categories.tolist().__getitem__)
    rank = np.full(len(order) + 1, -1, dtype=np.int32)
    rank[order] = np.arange(len(order))
    return RawCodes(rank[raw.codes], object_array([raw.categories[position] for position in order]))
