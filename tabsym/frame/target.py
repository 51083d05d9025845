"""What belongs to the rows of a table, checked: the target, the labels of rows, weights and `class_weight`.

In classification, where the variance of a row is known, weights such as ``class_weight="balanced"`` say how much a row
matters, not that it was seen several times: a rare class whose rows weigh ten times as much has no more rows. Taken for
repeated rows, they let each of them have a bin of its own (benchmarks/weights.md).
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from numbers import Complex, Real
from os import PathLike
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import type_of_target

from tabsym.frame.columns import FIRST_ROUNDED
from tabsym.frame.frames import as_array
from tabsym.frame.meaning import MAX_CLASSES, kind_of_whole_numbers
from tabsym.frame.read import is_stream
from tabsym.frame.storage import TOO_WIDE, as_given, library_of
from tabsym.messages import Number, check_option, plural, warn_user

TARGET_TYPES = ("auto", "classes", "continuous")

_LARGEST = 1e150  # the square of more than 1.3e154 is infinite; the rest is room for sums over rows
_NUMBERS = (Real, Decimal, np.bool_)
_MOMENTS = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


@dataclass(frozen=True)
class Target:
    """A classification target: `codes` (n,) into the sorted `classes`."""

    codes: NDArray[np.int32]
    classes: NDArray[Any]

    def weighed(self, weight: NDArray[np.float64] | None) -> Target:
        """Without classes whose rows all have weight 0."""
        if weight is None:
            return self
        return self.without(np.bincount(self.codes, weight, minlength=len(self.classes)) == 0.0)

    def without(self, absent: NDArray[np.bool_]) -> Target:
        """Without classes (n_classes,) that are absent, as where all their rows have weight 0; these get any code."""
        present = np.flatnonzero(~absent)
        if len(present) == len(self.classes):
            return self
        codes = np.minimum(np.searchsorted(present, self.codes), len(present) - 1)
        return Target(codes.astype(np.int32), self.classes[present])


_FIRST_CALL = "pass all classes in the first call of partial_fit (classes=...)"


def check_classes(
    y: Any, n_rows: int, *, classes: Any = None, caller: str = "tabsym", remedy: str = _FIRST_CALL
) -> Target:
    """Check a classification target and code it.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
    n_rows : int
        Rows of the table.
    classes : array-like, optional
        All the classes there can be (for `partial_fit`); default: those in `y`.
    caller : str
        Who asks, for messages.
    remedy : str
        What to do about a class that is not in `classes`, for messages.

    Raises
    ------
    ValueError
        Missing or infinite values, another length, a continuous target, one
        class only, a class that is not in `classes`.
    """
    values = check_target(y, n_rows, caller)
    with np.errstate(invalid="ignore"):  # of numbers beyond 2**63, which scikit-learn casts
        is_continuous = values.dtype.kind == "f" and type_of_target(values) == "continuous"
    if is_continuous:
        raise ValueError(
            "Unknown label type: continuous. The target holds continuous values, which are not classes; "
            "use a regressor, or bin the target."
        )
    if classes is None:
        uniques, codes = _unique(values)
        if len(uniques) < 2:
            listed = ", ".join(map(repr, uniques.tolist()))
            raise ValueError(
                f"{caller} needs at least 2 classes, but the target has 1 class only ({listed}); "
                "choose another target or more rows."
            )
        return Target(codes.astype(np.int32), uniques)
    known = np.unique(column_or_1d(as_given(classes)))
    uniques, codes = _unique(values)
    code_of = {label: code for code, label in enumerate(known.tolist())}
    position = np.array([code_of.get(label, -1) for label in uniques.tolist()], dtype=np.int32)[codes]
    if (position < 0).any():
        unknown = values[position < 0].tolist()[0]
        raise ValueError(f"The target holds {unknown!r}, which is not among the classes {known.tolist()}; {remedy}.")
    return Target(position, known)


def check_regression_target(y: Any, n_rows: int, *, caller: str = "tabsym") -> NDArray[np.float64]:
    """Check a numeric target: (n_rows,) finite floats, or a `ValueError`.

    Integers, floats, decimals and booleans (as 0 and 1, which is how
    scikit-learn's regressors take them) are numbers, in object arrays too.
    Text is not, whatever it looks like, nor are dates and durations, whose
    unit would be a guess.
    """
    values = check_target(y, n_rows, caller)
    kind = _kind_of_target(values)
    if kind == "complex":
        raise ValueError("Complex data not supported: the target holds complex numbers.")
    if kind == "moments":
        raise ValueError(
            f"The target of {caller} must be numeric, but holds dates or durations such as {_first(values)}; convert "
            "it to a number in a unit of your choice, e.g. (y - y.min()).dt.total_seconds()."
        )
    if kind != "numbers":
        raise ValueError(
            f"The target of {caller} must be numeric, but holds values such as {_first(values)}; "
            "use a classifier, or convert the target, e.g. with pd.to_numeric."
        )
    try:
        numbers = values.astype(np.float64)
    except OverflowError:  # an int of more than 308 digits
        numbers = np.array([float(value) if abs(value) <= _LARGEST else np.inf for value in values.tolist()])
    large = np.abs(numbers) > _LARGEST
    if large.any():  # losses square the target: what has no finite square would end as NaN in every prediction
        row = int(np.argmax(large))
        size = f"{numbers[row]:g}" if np.isfinite(numbers[row]) else "an integer too large for a float"
        raise ValueError(
            f"Row {row} of the target is {size}, and its square is no finite number; "
            f"divide the target by a constant so that no value is above {_LARGEST:g} in size."
        )
    return numbers


def _kind_of_target(values: NDArray[Any]) -> str:
    """What a target holds: numbers, moments (dates, durations), complex numbers, or other things."""
    if values.dtype != object:
        return {"c": "complex", "M": "moments", "m": "moments"}.get(
            values.dtype.kind, "numbers" if values.dtype.kind in "biuf" else "other"
        )
    types = {type(value) for value in values.tolist()}
    if any(issubclass(cls, _MOMENTS) for cls in types):
        return "moments"
    if any(issubclass(cls, Complex) and not issubclass(cls, Real) for cls in types):
        return "complex"
    return "numbers" if all(issubclass(cls, _NUMBERS) for cls in types) else "other"


def _first(values: NDArray[Any]) -> str:
    return repr(values[0].item() if isinstance(values[0], (np.str_, np.bytes_)) else values[0])


def check_target(y: Any, n_rows: int, caller: str = "tabsym") -> NDArray[Any]:
    """Check a target of any kind: (n_rows,) values, none missing or infinite, or a `ValueError`."""
    if y is None:
        raise ValueError(
            f"{caller} requires y to be passed, but the target y is None; pass the target as the second argument."
        )
    series = nw.from_native(y, pass_through=True, allow_series=True)
    if isinstance(series, nw.DataFrame):
        y = as_array(series.to_native())
    elif isinstance(series, nw.Series):
        y = _series_values(series)
    elif isinstance(y, pd.api.extensions.ExtensionArray):  # what a nullable column keeps, by itself
        return check_target(pd.Series(y), n_rows, caller)
    values = column_or_1d(as_given(y), warn=True)
    if len(values) != n_rows:
        raise ValueError(
            f"The table has {plural(n_rows, 'row')} and the target {plural(len(values), 'value')}: found input "
            f"variables with inconsistent numbers of samples: [{n_rows}, {len(values)}]."
        )
    missing = pd.isna(values)
    if missing.any():
        raise ValueError(
            f"Input y contains NaN: the target is missing in {int(missing.sum())} row(s), first in row "
            f"{int(np.argmax(missing))}; drop these rows or fill them in."
        )
    if values.dtype == object and pd.api.types.infer_dtype(values) == "mixed":
        nested = [value for value in values if isinstance(value, (list, tuple, dict, set, np.ndarray))]
        if nested:
            raise TypeError(
                f"The target holds nested values such as {nested[0]!r}; give a label or number for each row."
            )
    plain = of_plain_type(values)
    if plain.dtype.kind == "f" or pd.api.types.infer_dtype(plain, skipna=False) == "floating":
        infinite = np.isinf(plain.astype(np.float64))
    else:
        infinite = np.zeros(len(plain), dtype=np.bool_)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise ValueError(
            f"Input y contains infinity or a value too large: row {row} of the target is infinite; drop or replace it."
        )
    return plain


def of_plain_type(values: NDArray[Any]) -> NDArray[Any]:
    """Objects that are all booleans, integers or decimals as numpy's: scikit-learn's scores know no others."""
    if values.dtype != object:
        return values
    content = pd.api.types.infer_dtype(values, skipna=False)
    if content == "boolean":
        return values.astype(bool)
    if content == "integer":
        try:
            return values.astype(np.int64)
        except OverflowError:
            return values
    if content == "decimal":
        numbers = values.astype(np.float64)
        whole = (numbers == np.floor(numbers)).all() and np.abs(numbers).max() < FIRST_ROUNDED
        return numbers.astype(np.int64) if whole else numbers
    return values


def plain_labels(y: Any) -> Any:
    """A target to score or to fit another library's model by: booleans and numbers as numpy's, others as they are."""
    if isinstance(y, (list, tuple)) and y and isinstance(y[0], Decimal):
        y = np.array(y)
    if isinstance(y, np.ndarray):
        return of_plain_type(as_given(y)) if y.ndim == 1 else y
    if isinstance(y, pd.api.extensions.ExtensionArray):
        y = pd.Series(y)
    series = nw.from_native(y, pass_through=True, allow_series=True)
    if isinstance(series, nw.Series):
        values = _series_values(series)
    elif library_of(y) == "pyarrow" and not isinstance(series, nw.DataFrame):
        values = np.asarray(y)
    else:
        return y
    plain = of_plain_type(values)
    return plain if plain.dtype.kind in "biuf" else y


def labels_to_score(y: Any, predicted: NDArray[Any]) -> tuple[Any, Any]:
    """Labels and those predicted as scikit-learn's scores take them: dates and other objects of one type by codes."""
    plain = plain_labels(y)
    labels = np.asarray(plain)
    if predicted.dtype != object or labels.ndim > 1:
        return plain, predicted
    both = np.concatenate([labels.astype(object), predicted])
    if len(set(map(type, both))) > 1:
        return plain, predicted
    codes = pd.factorize(both)[0]
    return codes[: len(labels)], codes[len(labels) :]


def _series_values(series: nw.Series[Any]) -> NDArray[Any]:
    native = series.to_native()
    if isinstance(native, pd.Series):
        if isinstance(native.dtype, pd.CategoricalDtype):
            native = native.astype(native.cat.categories.dtype)
        if native.hasnans or pd.api.types.is_string_dtype(native.dtype):
            return np.asarray(native.astype(object))
        return native.to_numpy()
    if isinstance(series.dtype, (nw.Categorical, nw.Enum)):
        if series.implementation.is_pyarrow():  # whose dictionaries may be of numbers
            return _series_values(nw.from_native(native.cast(native.type.value_type), series_only=True))
        series = series.cast(nw.String)
    if str(series.dtype) in TOO_WIDE:
        return np.array(series.to_list())
    return np.asarray(series.to_numpy())


def _unique(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    codes, uniques = pd.factorize(values)  # a hash: np.unique would sort every row
    types = {type(value) for value in uniques}
    if len(types) > 1:
        names = sorted(t.__name__ for t in types)
        raise TypeError(f"The target mixes types ({', '.join(names)}); convert it to one type, e.g. astype(str).")
    order = np.argsort(uniques)
    rank = np.empty(len(uniques), dtype=np.int32)
    rank[order] = np.arange(len(uniques))
    return np.asarray(uniques[order]), rank[codes]


def holds_classes(
    values: NDArray[Any], target_type: str, caller: str, name: str = "", *, few_are_classes: bool = False,
    rows: NDArray[np.float64] | None = None,
) -> bool:  # fmt: skip
    """Whether a checked target (n,) holds classes, by `target_type`.

    "auto": text and booleans are classes, numbers with a fraction and more than two dates are not; whole numbers by
    `kind_of_whole_numbers`, and a warning says so where they could be either. `name`: of the target, if it has one.
    `few_are_classes`: up to `MAX_CLASSES` whole numbers are classes without a guess, if only classes are possible.
    `rows` (n,): of each value, where they were counted or weighted; whole numbers of none are absent.
    """
    if target_type != "auto":
        return target_type == "classes"
    if values.dtype.kind in "OMm":
        content = _kind_of_target(values)
        if content == "moments":  # whose unit would be a guess: more than two are refused as numbers
            return len(pd.unique(values)) <= 2
        if content == "numbers":
            try:
                values = values.astype(np.float64)
            except OverflowError:  # which is said where a regression's target is checked
                return False
    if values.dtype.kind in "OUSb":
        return True
    if values.dtype.kind == "f" and (values != np.floor(values)).any():
        return False
    if rows is not None:
        values, rows = values[rows > 0], rows[rows > 0]
    kind = kind_of_whole_numbers(values.astype(np.float64), name, rows)
    n_distinct = len(pd.unique(values))
    if few_are_classes and n_distinct <= MAX_CLASSES:
        return True
    if 2 < n_distinct <= MAX_CLASSES:
        decided, alternative = ("classes", "continuous") if kind == "classes" else ("continuous", "classes")
        meaning = "class labels" if kind == "classes" else f"{kind}, a continuous target"
        warn_user(
            f"{caller} takes the {n_distinct} whole numbers of the target, {values.min():g} to {values.max():g}, for "
            f"{meaning}; give target_type={alternative!r} if they are not, or target_type={decided!r} if they are."
        )
    return kind == "classes"


def name_of_target(y: Any) -> str:
    """The name of a series; "" where it has none."""
    name = getattr(y, "name", None)
    return name if isinstance(name, str) else ""


def split_target(X: Any, y: Any, caller: str = "tabsym") -> tuple[Any, Any]:
    """The features and the target, where `y` is the name of a column of `X`; else both as they are.

    A lazy frame is collected once, so that features and target are of the same rows in the same order: two collects
    of an engine without row order need not agree.

    Parameters
    ----------
    X : dataframe, or a lazy frame of any library that narwhals reads
    y : str or array-like of shape (n_rows,)

    Raises
    ------
    ValueError
        There is no such column, or the indexes of pandas contradict each other.
    TypeError
        `X` is no table with names, or `y` is lazy.
    """
    if not isinstance(y, str):
        if y is None:
            return X, y
        if isinstance(nw.from_native(y, pass_through=True, allow_series=True), nw.LazyFrame):
            raise TypeError(f"y is lazy ({type(y).__name__}); name its column instead: {caller}().fit(table, 'NAME').")
        check_same_rows(X, y=y)
        return X, y
    if is_stream(X):
        return X, y
    frame = nw.from_native(X, pass_through=True)
    if isinstance(X, (str, PathLike)):
        raise TypeError(
            f"X is a path, {str(X)!r}, which {caller} does not read; give the table, e.g. pandas.read_parquet(path), "
            "or to WideSGDClassifier and WideSGDRegressor the stream pyarrow.dataset.dataset(path)."
        )
    if not isinstance(frame, (nw.DataFrame, nw.LazyFrame)):
        raise TypeError(f"y={y!r} names a column, and X is no table with names; pass y as an array.")
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    check_named(y, frame.columns, "to predict")
    return frame.drop(y).to_native(), frame[y].to_native()


def split_columns(X: Any, y: Any, sample_weight: Any, caller: str = "tabsym") -> tuple[Any, Any, Any]:
    """As `split_target`, with `sample_weight`, which can be the name of a column, too."""
    if isinstance(sample_weight, str):
        frame = nw.from_native(X, pass_through=True)
        if not isinstance(frame, (nw.DataFrame, nw.LazyFrame)):
            raise TypeError(
                f"sample_weight={sample_weight!r} names a column, and X is no table with names; pass an array."
            )
        frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
        check_named(sample_weight, frame.columns, "of weights")
        X, sample_weight = frame.drop(sample_weight).to_native(), frame[sample_weight].to_native()
    return *split_target(X, y, caller), sample_weight


def check_named(name: str, names: list[str], purpose: str) -> None:
    """A `ValueError` where a table has no column of this name."""
    if name not in names:
        first = ", ".join(map(repr, names[:5]))
        raise ValueError(f"There is no column {name!r} {purpose}; the table's first columns are {first}.")


def check_same_rows(X: Any, **by_row: Any) -> None:
    """A `ValueError` where a series or frame of pandas has other row labels than the pandas table X.

    All else is matched by position: arrays, lists and other frames have no labels. Rows in another order
    are the danger: nothing else tells them from rows in order. A table numbered from 0 can have been made anew from
    rows of another (skrub does so for each column, and hands y on as it is); it has labels only where the other's are
    the same ones in another order.

    Parameters
    ----------
    X : table
    by_row : array-like of shape (n_rows,) or None
        By the name of the argument, for the message.

    Raises
    ------
    ValueError
        Names the first row whose labels differ. (Other lengths are checked elsewhere.)
    """
    index = _labels(X)
    if index is None:
        return
    is_numbered_anew = isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(len(index)))
    for name, values in by_row.items():
        labels = _labels(values)
        if labels is None or len(labels) != len(index) or index.equals(labels):
            continue
        if is_numbered_anew and not (labels.is_unique and labels.isin(index).all()):
            continue
        for row, (label, other_label) in enumerate(zip(index, labels, strict=True)):
            missing = pd.isna(label), pd.isna(other_label)
            if missing[0] != missing[1] if any(missing) else label != other_label:
                raise ValueError(
                    f"X and {name} have different indexes: row {row} is {label!r} in X and {other_label!r} in {name}; "
                    f"put them in one order with {name}.loc[X.index], or where their rows go together as they are pass "
                    f"{name}.to_numpy(), which has no labels."
                )


def check_length(y: Any, n_rows: int) -> None:
    """A `ValueError` where a target that is not looked at has another number of rows than the table."""
    if y is not None and hasattr(y, "__len__") and len(y) != n_rows:
        raise ValueError(
            f"The table has {plural(n_rows, 'row')} and y {len(y):,}; transform does not need y: leave it out."
        )


def _labels(data: Any) -> pd.Index | None:
    return data.index if isinstance(data, (pd.Series, pd.DataFrame)) else None


# -- weights of rows, and `class_weight` -----------------------------------------------------------

Floats = NDArray[np.float64]
Copies = NDArray[np.int64] | None
"""How many rows each row stands for (n,), by which its weight is multiplied; None for one each."""

DIGITS = 40
"""Of weights relative to each other, in bits."""

MIN_WEIGHT = 1e-302
"""Numbers of rows over smaller sums of weights are too large, and numbers below 2e-308 have fewer digits."""

MAX_SUM_OF_SQUARES = 1e304
"""Numbers are up to 1.8e308; the rest is room for differences and products with numbers of columns."""

MOST_COPIES = 2.0**53
"""Larger whole numbers are no floats."""


def check_weights(sample_weight: Any, n_rows: int, name: str = "sample_weight") -> Floats | None:
    """Check sample weights: (n_rows,) finite, >= 0, not all (close to) 0, their sum finite; None stays None."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, str):
        raise TypeError(f"{name}={sample_weight!r} is text; pass the numbers, such as X[{sample_weight!r}].")
    weights = _as_numbers(sample_weight, f"{name} must hold numbers, one for each row")
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar; pass one weight for each row.")
    if weights.shape[0] != n_rows:
        raise ValueError(f"{name}.shape == ({weights.shape[0]},), expected ({n_rows},): pass one weight for each row.")
    if not np.isfinite(weights).all():
        raise ValueError(f"{name} contains NaN or infinity; every weight must be a finite number.")
    if (weights < 0).any():
        raise ValueError(f"{name} contains a negative value; weights must be 0 or more.")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total):
        raise ValueError(f"{name} is up to {weights.max():g}, too large to be added up; divide it by a number.")
    if not weights.any():
        raise ValueError(f"{name} is zero for every row; at least one row must count.")
    if weights.max() < MIN_WEIGHT:
        raise ValueError(f"{name} is at most {weights.max():g}, too small to divide by; multiply it by a number.")
    return weights


def refuse_large_sums(y: Floats, weight: Floats | None, caller: str) -> None:
    """A `ValueError` where squares of a target (n,) times weights (n,), which `caller` adds up, are no numbers."""
    if weight is None:
        return
    with np.errstate(over="ignore"):
        total = np.dot(weight, np.square(y))
    if not total < MAX_SUM_OF_SQUARES:
        raise ValueError(
            f"{caller} adds up squares of the target times sample_weight, which are up to {weight.max():g} and make "
            f"{total:g}; divide the weights or the target by a number."
        )


def _as_numbers(values: Any, needed: str) -> Floats:
    """Values as float64; an error, `needed` and why, where they are none, also for durations, moments and complex."""
    array = np.asarray(as_given(values))
    if array.dtype.kind in "mMc":
        raise TypeError(f"{needed} (its type is {array.dtype}).")
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{needed} ({error}).") from error


def check_frequencies(freq_weights: Any, n_rows: int) -> NDArray[np.int64] | None:
    """Check how many rows each row stands for: (n_rows,) whole numbers >= 0, not all 0; None stays None."""
    if freq_weights is None:
        return None
    given = _as_numbers(freq_weights, "freq_weights must hold whole numbers, one for each row")
    if given.shape != (n_rows,):
        raise ValueError(
            f"freq_weights has shape {given.shape} and the table {plural(n_rows, 'row')}; pass one number for each."
        )
    wrong = ~((given >= 0.0) & (given == np.floor(given)) & (given < MOST_COPIES))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"freq_weights is {given[row]:g} in row {row}, and it says how many rows that one stands for: give whole "
            "numbers from 0 on; weights of another kind are sample_weight."
        )
    if not given.any():
        raise ValueError("freq_weights is zero for every row; at least one row must be there.")
    return given.astype(np.int64)


def relative_weights(weights: Floats | None, copies: Copies = None) -> Floats | None:
    """Weights (n,) over the mean of those above 0, of `copies` (n,) each, to twelve digits; None stays None.

    Sums of them are numbers of rows, whatever the unit of the weights; twelve digits are the same in each unit.
    """
    if weights is None:
        return None
    largest = weights.max()  # so that no sum of tiny or huge ones is rounded to 0 or beyond numbers
    fractions = weights / largest
    some = fractions > 0
    mean = np.average(fractions[some], weights=None if copies is None else copies[some])
    digits, exponents = np.frexp(fractions / mean)
    return np.ldexp(np.round(np.ldexp(digits, DIGITS)), exponents - DIGITS)


LIGHT = 0.1
"""Mean weight of the rows below which weights are proportions rather than numbers of rows."""


def warn_of_light_weights(weight: Floats | None, taker: str, effect: str) -> None:
    """A `UserWarning` where weights (n,) add up to far fewer rows than there are, and `taker` counts rows by them."""
    if weight is not None:
        warn_of_light_total(int(np.count_nonzero(weight)), float(weight.sum()), taker, effect)


def warn_of_light_total(n_rows: int, total: float, taker: str, effect: str) -> None:
    """The same by the number of rows of weight above 0, and the sum of the weights."""
    if total < LIGHT * n_rows:
        warn_user(
            f"The weights of {plural(n_rows, 'row')} add up to {total:.4g}, which {taker} takes for the number of "
            f"rows, so that {effect}; if weights are proportions, multiply them by the number of rows: "
            "sample_weight * len(sample_weight) / sample_weight.sum().",
        )


def weights_of_classes(class_weight: Any, classes: NDArray[Any], totals: Floats) -> Floats:
    """The weight (n_classes,) of each class, by the total weight of its rows (n_classes,), see `totals_of_classes`.

    Raises
    ------
    ValueError
        `class_weight` names another class, holds another number than one from 0 on, or is not known.
    """
    if isinstance(class_weight, Mapping):
        number = Number(at_least=0)
        given = {
            label: check_option(f"class_weight[{label!r}]", weight, [number]) for label, weight in class_weight.items()
        }
        unknown = [label for label in given if label not in classes.tolist()]
        if unknown:
            raise ValueError(
                f"class_weight names {unknown[0]!r}, which is no class of the target; leave it out: the classes are "
                f"{classes.tolist()}."
            )
        return np.array([given.get(label, 1.0) for label in classes.tolist()], dtype=np.float64)
    if isinstance(class_weight, str) and class_weight == "balanced":
        return totals.sum() / (np.count_nonzero(totals) * np.where(totals > 0.0, totals, 1.0))
    raise ValueError(
        f"class_weight={class_weight!r} is not known; use 'balanced', a mapping from class to number, or None."
    )


def totals_of_classes(codes: NDArray[Any], n_classes: int, weight: Floats | None, copies: Copies = None) -> Floats:
    """The total weight (n_classes,) of the rows (n,) of each class, each as often as it has copies."""
    if weight is None:
        weight = np.ones(len(codes))
    return np.asarray(np.bincount(codes, weight if copies is None else weight * copies, n_classes), dtype=np.float64)


def weights_within_classes(y: NDArray[np.generic], weight: Floats, copies: Copies = None) -> Floats:
    """Weights (n,) over their mean in each class of `y` (n,), that of its copies.

    Class weights change the intercept only, as in case-control studies (Prentice and Pyke 1979): what the other
    terms are is decided without them.
    """
    codes = np.unique(y, return_inverse=True)[1].ravel()
    means = np.bincount(codes, weight) / np.bincount(codes, copies)
    return np.asarray(weight / means[codes])


def design_effect(weight: Floats, copies: Copies = None) -> float:
    """Kish's design effect (1965, "Survey Sampling", section 11.7): rows over the rows that weights are worth.

    1 for equal weights, and for none.
    """
    if not len(weight):
        return 1.0
    n_rows = len(weight) if copies is None else copies.sum()
    squares = np.square(weight) if copies is None else np.square(weight) / copies
    return float(squares.sum() * n_rows / weight.sum() ** 2)


def of_one_copy(weight: Floats, copies: Copies) -> Floats:
    """The weight (n,) of one copy of each row, as it was before it was multiplied by the number of copies.

    Empty for none. Weights have fewer digits than numbers (`relative_weights`): division gives them back.
    """
    if copies is None or not len(weight):
        return weight
    digits, exponents = np.frexp(weight / copies)
    return np.ldexp(np.round(np.ldexp(digits, DIGITS)), exponents - DIGITS)
