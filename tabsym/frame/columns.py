"""Named columns with a kind, what every later layer sees of the user's table; and which of them an estimator takes.

A column keeps what the user's own library stores, because the fastest way
from values to codes is the dataframe's own hash: nothing is converted before
it is needed, and each conversion happens once. A narwhals series is made only
for those who ask for one: wrapping a column takes longer than coding a row.

float64 rounds whole numbers beyond 2**53, and moments between microseconds. `exact_values` has such numbers as complex
ones, the float64 in the real part and in the imaginary part what rounding left over. Rounding keeps the order, and
numpy orders complex numbers by the real part first: so they sort, compare and are searched for as the numbers that they
stand for.

An estimator remembers the columns of fit, and `match_features` checks that they came again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from numbers import Integral
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from tabsym.frame.storage import (
    PER_DAY,
    Floats,
    Measure,
    arrow_in,
    library_of,
    measure_of,
    moments_of,
    stored_in,
    to_numbers,
)
from tabsym.messages import plural, warn_user

Numbers = NDArray[np.float64] | NDArray[np.complex128]

FIRST_ROUNDED = 2.0**53
LARGEST = float(np.finfo(np.float64).max)
_NANOSECONDS = PER_DAY["ns"]


class Kind(StrEnum):
    """What the values of a column are, as far as their type determines it: a guess that fit makes."""

    CATEGORICAL = "categorical"
    NUMERIC = "numeric"
    BOOLEAN = "boolean"  # a number to encoders (left alone) where none is missing, a category to wide models


@dataclass(frozen=True)
class Column:
    """One column: its name, its kind and the user's own series.

    `infinite_as_largest`: infinite values are not an error, but the largest finite numbers.
    """

    name: str
    kind: Kind
    series: nw.Series[Any]
    infinite_as_largest: bool = False

    @classmethod
    def of_stored(cls, name: str, kind: Kind, stored: Any, wrap: Callable[[], nw.Series[Any]]) -> Column:
        """A column of what its library stores; `wrap` makes the series, if that is ever asked for."""
        column = object.__new__(cls)
        column.__dict__.update(name=name, kind=kind, stored=stored, _wrap=wrap)
        return column

    def __getattr__(self, attribute: str) -> Any:
        """The series, where it was not made yet: Python comes here only for what is not there."""
        if attribute != "series" or "_wrap" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {attribute!r}")
        return self.__dict__.setdefault("series", self._wrap())

    def __len__(self) -> int:
        return len(self.stored)

    def renamed(self, name: str) -> Column:
        """The same values under another name."""
        column = copy(self)
        column.__dict__.pop("values", None)  # their messages name the column
        column.__dict__["name"] = name
        return column

    @cached_property
    def stored(self) -> Any:
        """What the library stores: a pandas array, a polars series or an Arrow array."""
        return stored_in(self.series)

    @cached_property
    def measure(self) -> Measure:
        """What `values` stand for: numbers, dates (days since 1970, in UTC) or durations (days)."""
        return measure_of(self.stored)

    def check_measure(self, fitted: Measure | str) -> None:
        """A `TypeError` where the values cannot be compared with those of fit: numbers where those were dates."""
        if str(fitted) == str(self.measure):
            return
        missing = np.isnan(self.values)
        if not missing.all():
            cell = self.series[int(np.argmin(missing))]
            cell = cell.item() if isinstance(cell, np.number) else cell
            raise TypeError(
                f"Column {self.name!r} held {fitted} in fit and holds {self.measure} now (such as {cell!r}); convert "
                "it to the type it had."
            )

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """Values as float64, missing as NaN; dates and durations in days.

        Whatever the kind is, numbers are read as such (objects, decimals,
        booleans, categories of numbers), and a column of missing values of
        any type is all NaN. Text is never parsed.

        Raises
        ------
        ValueError
            Where a value is infinite or no number; the message names its row.
        """
        out = to_numbers(self.stored, self.name)
        if np.isinf(out).any():
            if self.infinite_as_largest:
                return np.clip(out, -LARGEST, LARGEST)
            raise ValueError(
                f"Column {self.name!r} contains infinity; replace infinite values by missing ones "
                "or by a large finite number. (Input X contains infinity.)"
            )
        return out

    @cached_property
    def is_empty(self) -> bool:
        """Whether all values are missing, whatever the type: then the type is not reliable either."""
        if self.kind is Kind.CATEGORICAL:
            return bool(self.series.is_null().all())
        return bool(np.isnan(to_numbers(self.stored, self.name)).all())

    @property
    def holds_text(self) -> bool:
        """Whether the values are text, by type or, of objects and categories, by the first one."""
        if self.kind is not Kind.CATEGORICAL:
            return False
        if isinstance(self.series.dtype, (nw.String, nw.Enum)):
            return True
        first = self.series.drop_nulls().head(1).to_list()
        return isinstance(first[0], str) if first else isinstance(self.series.dtype, nw.Categorical)

    def as_numbers(self) -> Column:
        """A column that held numbers in fit: where all its values are missing now, its type may not say so."""
        is_numeric = self.kind is not Kind.CATEGORICAL or not self.is_empty
        return self if is_numeric else Column(self.name, Kind.NUMERIC, self.series)

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which of `values` are missing, of infinite ones too."""
        return np.isnan(to_numbers(self.stored, self.name))


@dataclass(frozen=True)
class Table:
    """Named columns of equal length, and where they came from.

    `native` is the object the user gave: the frame that a transformer copies
    untouched columns from, and whose kind (pandas, polars, ...) its output has.
    """

    columns: tuple[Column, ...]
    n_rows: int
    native: Any
    named: bool  # False where the names were made here (arrays and lists)

    def __len__(self) -> int:
        return self.n_rows

    @property
    def names(self) -> list[str]:
        """Of the columns, in order."""
        return [column.name for column in self.columns]

    def __getitem__(self, name: str) -> Column:
        return self._by_name[name]

    def with_infinite_as_largest(self) -> Table:
        """The same table, whose infinite numbers are the largest finite ones."""
        columns = tuple(copy(column) for column in self.columns)
        for column in columns:
            column.__dict__.pop("values", None)
            column.__dict__["infinite_as_largest"] = True
        return replace(self, columns=columns)

    def taken(self, rows: NDArray[Any]) -> Table:
        """Some rows, whose columns keep their kinds; they are of no frame."""
        columns = tuple(_rows_of(column, rows) for column in self.columns)
        return Table(columns, n_rows=len(rows), native=None, named=self.named)

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}


def _rows_of(column: Column, rows: NDArray[Any]) -> Column:
    """Some rows of a column, of what is stored: libraries take none of text views and of swapped bytes."""
    stored = column.stored
    arrow = arrow_in(stored)
    if arrow is not None and "view" in str(arrow.type):
        stored = arrow.cast({"string_view": "large_string", "binary_view": "large_binary"}[str(arrow.type)])
    in_pandas = library_of(stored) in ("pandas", "numpy")
    series = nw.from_native(pd.Series(stored, dtype=stored.dtype) if in_pandas else stored, series_only=True)
    return replace(column, series=series[rows])


def exact_values(column: Column, *, always: bool = False) -> Numbers:
    """The values (n,) of a column as float64, NaN for missing; complex, where that tells some less well apart.

    `always`: also moments that float64 tells apart, to be compared with some that it does not.
    """
    values = column.values
    if column.measure.name == "numbers":
        rests = _of_numbers(column, values)
    else:
        rests = _of_moments(column, values, always=always)
    return values if rests is None else with_rests(values, rests)


def with_rests(values: Floats, rests: Floats) -> NDArray[np.complex128]:
    """Numbers (n,) of what float64 makes of them and what that leaves over."""
    out = np.empty(len(values), dtype=np.complex128)
    out.real, out.imag = values, np.where(np.isfinite(values), rests, 0.0)
    return out


def exact_number(value: float, remainder: float) -> int | float:
    """The number that both stand for: whole ones of any length."""
    return int(value) + int(remainder) if value.is_integer() else value


def nanoseconds_of(day: float, remainder: float) -> int:
    """Nanoseconds since 1970 of a moment in days and what these leave over."""
    whole = int(np.floor(day))
    return whole * _NANOSECONDS + round((day - whole) * _NANOSECONDS + remainder)


def exact_parts(value: Any) -> tuple[float, float]:
    """What float64 makes of a number, or of a moment or duration as days, and what that leaves over."""
    if isinstance(value, (pd.Timestamp, pd.Timedelta)):
        whole, part = divmod(int(value.asm8.view("i8")) * _NANOSECONDS_PER[value.unit], _NANOSECONDS)
        day = whole + part / _NANOSECONDS
        return day, float(_left_over(day, whole, part))
    return float(value), _rest(value)


def halfway(below: Numbers, above: Numbers, measure: Measure) -> tuple[Floats, Floats]:
    """Halfway between numbers (n,), and what float64 leaves over of that; of whole ones the whole part.

    `below`: -inf stays, to part missing from the rest.
    """
    middles: list[tuple[float, float]] = []
    for low, high in zip(below.tolist(), above.tolist(), strict=True):
        if np.isneginf(low.real):
            middles.append((low.real, 0.0))
        elif measure.name != "numbers":
            moment = (nanoseconds_of(low.real, low.imag) + nanoseconds_of(high.real, high.imag)) // 2
            whole, part = divmod(moment, _NANOSECONDS)
            day = whole + part / _NANOSECONDS
            middles.append((day, _left_over(day, whole, part)))
        else:
            lower, upper = exact_number(low.real, low.imag), exact_number(high.real, high.imag)
            middle = (
                (lower + upper) // 2 if isinstance(lower, int) and isinstance(upper, int) else lower / 2 + upper / 2
            )
            middles.append((float(middle), _rest(middle)))
    values, rests = np.array(middles, dtype=np.float64).reshape(-1, 2).T
    return values, rests


def _of_numbers(column: Column, values: Floats) -> Floats | None:
    large = np.flatnonzero(np.abs(values) >= FIRST_ROUNDED)
    if not len(large) or column.series.dtype.is_float():
        return None
    rests, some = np.zeros(len(values)), column.series[large]
    numbers = some.to_numpy()
    if numbers.dtype.kind in "iu":  # by their halves, which float64 holds
        floats, bits = numbers.astype(np.float64), numbers.dtype.type(32)
        upper = np.floor(floats / 2.0**32)
        high, low = numbers >> bits, (numbers - ((numbers >> bits) << bits)).astype(np.float64)
        rests[large] = (high.astype(np.float64) - upper) * 2.0**32 + (low - (floats - upper * 2.0**32))
    else:
        rests[large] = [_rest(number) for number in some.to_list()]
    return rests if rests.any() else None


_NANOSECONDS_PER = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def _rest(number: Any) -> float:
    if not isinstance(number, (Integral, Decimal)):  # such as a float among objects
        return 0.0
    if np.isinf(float(number)):  # a decimal that is, or is too large: it counts as the largest
        return 0.0
    whole = int(number)
    return float(whole - int(float(whole)))


def _of_moments(column: Column, values: Floats, *, always: bool) -> Floats | None:
    moments = moments_of(column.stored)
    if moments is None or np.isnan(values).all():
        return None
    unit, _ = np.datetime_data(moments.dtype)
    if unit not in PER_DAY:
        return np.zeros(len(values)) if always else None  # whole days and more, which float64 holds
    parts = moments.view(np.int64)
    if not always:
        step = 1 if unit == "ns" and (parts[~np.isnat(moments)] % 1000).any() else 1000
        if unit in ("s", "ms") or np.spacing(np.nanmax(np.abs(values))) * _NANOSECONDS < step:
            return None
    whole, remainder = np.divmod(parts, PER_DAY[unit])  # of NaT, too: `with_rests` leaves it out
    return _left_over(values, whole, remainder * (_NANOSECONDS // PER_DAY[unit]))


def _left_over(days: Any, whole: Any, part: Any) -> Any:
    """Nanoseconds that days as float64 leave over of whole days and nanoseconds of the next."""
    day = np.floor(days)
    return (whole - day) * _NANOSECONDS + part - (days - day) * _NANOSECONDS


class TableEstimator(BaseEstimator):
    """An estimator of tables: with text, categories and missing values."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def remember_features(estimator: Any, table: Table) -> None:
    """Set `n_features_in_`, and `feature_names_in_` where the user named the columns by text."""
    estimator.n_features_in_ = len(table.names)
    for attribute in ("feature_names_in_", "_names_made"):
        estimator.__dict__.pop(attribute, None)
    if table.named:
        estimator.feature_names_in_ = np.asarray(table.names, dtype=object)
    else:
        estimator._names_made = table.names  # that the fitted parts know the columns by


def match_features(estimator: Any, table: Table) -> Table:
    """The table with the columns of fit, in order, or a `ValueError` that names them.

    Where only one of the two had names (a frame then an array, or the other way
    round), columns are matched by position with scikit-learn's warning. Names that are no text count as none, as they
    do there, but those of fit in another order are refused.
    """
    caller = type(estimator).__name__
    fitted = getattr(estimator, "feature_names_in_", None)
    if fitted is not None and table.named and list(fitted) != table.names:
        raise ValueError(_difference(list(fitted), table.names))
    if len(table.names) != estimator.n_features_in_:
        raise ValueError(
            f"X has {len(table.names)} features, but {caller} is expecting {estimator.n_features_in_} features as "
            "input."
        )
    if fitted is None:
        if table.named:
            warn_user(f"X has feature names, but {caller} was fitted without feature names")
        elif not hasattr(estimator, "_names_made"):  # of an older file
            return table
        names = table.names
        made = getattr(estimator, "_names_made", None) or [f"x{index}" for index in range(len(names))]
        numbered = names == [str(index) for index in range(len(names))] and set(names) != set(made)
        moved = not numbered and any(
            name in made and name != fitted_name for name, fitted_name in zip(names, made, strict=True)
        )
        if moved and not table.named:  # some names of fit are at other positions
            raise ValueError(_difference(made, names))
        return table if names == made else _renamed(table, made)
    if table.named:
        return table
    warn_user(f"X does not have valid feature names, but {caller} was fitted with feature names")
    return _renamed(table, list(fitted))


def select_features(estimator: Any, table: Table) -> Table:
    """The columns of fit, in the order of fit, and no others.

    All, if the table has no names and fit's had some; after a fit without names (x0, x1, ... of arrays) by these, where
    the table has them all.
    """
    fitted, known = getattr(estimator, "feature_names_in_", None), set(table.names)
    if fitted is None:
        fitted = getattr(estimator, "_names_made", None)
        if fitted is None or not known.issuperset(fitted):
            return table
    elif not table.named:
        return table
    if list(fitted) == table.names:
        return table
    return replace(table, columns=tuple(table[name] for name in fitted if name in known))


def _renamed(table: Table, names: list[str]) -> Table:
    columns = tuple(column.renamed(name) for column, name in zip(table.columns, names, strict=True))
    native = nw.from_native(table.native, eager_only=True)
    return replace(table, columns=columns, native=native.rename(dict(zip(table.names, names, strict=True))).to_native())


def _difference(fitted: list[str], given: list[str]) -> str:
    lines = ["The feature names should match those that were passed during fit."]
    known, now = set(fitted), set(given)
    unexpected = [name for name in given if name not in known]
    missing = [name for name in fitted if name not in now]
    if unexpected:
        lines += ["Feature names unseen at fit time:", *_listed(unexpected)]
    if missing:
        lines += ["Feature names seen at fit time, yet now missing:", *_listed(missing)]
    if not unexpected and not missing:
        lines.append("Feature names must be in the same order as they were in fit.")
    return "\n".join(lines) + "\n"


def _listed(names: list[str]) -> list[str]:
    lines = [f"- {name}" for name in sorted(names)[:5]]
    return [*lines, "- ..."] if len(names) > 5 else lines


def categorical_columns(
    table: Table, cols: Any, *, booleans: bool, whole: bool = True, option: str = "cols"
) -> list[Column]:
    """The columns to treat as categories: those named in `cols`, or by kind where that is None.

    Without `cols` a boolean column with missing values is one, in every library: pandas makes objects of it. So is a
    column without any value, whose type is no guide to what comes later.

    Parameters
    ----------
    cols : name, position, sequence of them, "all" or None
        Positions count where the table has no names of its own (arrays). "all" is every column, also
        where one of them is called so: ``["all"]`` is that one.
    booleans : bool
        Whether, without `cols`, boolean columns are categories that have no missing values.
    whole : bool
        False: the table is a piece of a longer one, in which a column may have values yet.
    option : str
        What the user calls `cols`, in messages.
    """
    if cols is None:
        chosen = []
        for column in table.columns:
            if column.kind is Kind.BOOLEAN:
                is_category = booleans or bool(column.missing.any())
            else:
                is_category = column.kind is Kind.CATEGORICAL or (whole and column.is_empty)
            if is_category:
                chosen.append(column)
        return chosen
    if isinstance(cols, str) and cols == "all":
        return list(table.columns)
    listed = [cols] if np.isscalar(cols) else cols
    if not isinstance(listed, Iterable):  # such as scikit-learn's selectors of columns
        raise TypeError(
            f"{option}={cols!r} is not possible; use a list of columns (names, or positions for arrays), one of them, "
            "or 'all'."
        )
    wanted = {_resolve(table, col, option) for col in listed}
    return [column for column in table.columns if column.name in wanted]


def _resolve(table: Table, col: Any, option: str) -> str:
    is_position = isinstance(col, (int, np.integer)) and not isinstance(col, bool)
    if is_position and str(col) not in table.names and not table.named:
        if not 0 <= col < len(table.names):
            raise ValueError(f"{option} asks for column {col}, but the table has {plural(len(table.names), 'column')}.")
        return table.names[int(col)]
    if (str(col) if is_position or not table.named else col) not in table.names:  # names of pandas may be no text
        listed = ", ".join(map(repr, table.names[:10])) + (", ..." if len(table.names) > 10 else "")
        raise ValueError(f"{option} names column {col!r}, which is not in the table; it has {listed}.")
    return str(col)
