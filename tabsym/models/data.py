"""The validated arguments of fit, their conversion to the training scale, a sample of them, and offset columns.

The spread of a target, of which Huber's delta is a multiple, is estimated here too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.categories import RawCodes, count_codes
from tabsym.design.content import ShuffledRows, bits_of, content_of
from tabsym.design.formula import Formula
from tabsym.design.model_spec import Codes, ModelSpec, Numbers, Read, Rows
from tabsym.design.plan import used_columns
from tabsym.design.units import Moments, Order, fixed_score, lay_rows
from tabsym.frame import NUMBERS, Kind, Table, check_weights, relative_weights
from tabsym.frame.storage import as_given
from tabsym.frame.target import Copies, of_one_copy
from tabsym.losses.loss import HUBER, Loss
from tabsym.messages import plural
from tabsym.models.checks import check_offset, name_of, nearest
from tabsym.models.model import WideModel
from tabsym.solvers.sgd.kernels import sum_by_entry

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OffsetColumn:
    """The column of a fitted model's offset.

    Attributes
    ----------
    name : str
    is_exposure : bool
        Whether the offset is the logarithm of the column.
    """

    name: str
    is_exposure: bool

    @property
    def option(self) -> str:
        return "exposure_column" if self.is_exposure else "offset_column"

    def __str__(self) -> str:
        return f"{self.option}={self.name!r}"

    def split(self, table: Table) -> tuple[Table, Floats]:
        """The table without the column, and the offset (n,); a `ValueError` where it is missing or not a number."""
        if self.name not in table.names:
            raise ValueError(f"{self.option}={self.name!r} is not in the table, and fit had it; add the column.")
        if table[self.name].measure != NUMBERS:
            raise ValueError(f"{self.option}={self.name!r} holds {table[self.name].measure}; make numbers of them.")
        values = table[self.name].values
        wrong = np.isnan(values) | ((values <= 0.0) if self.is_exposure else False)
        if wrong.any():
            row = int(np.argmax(wrong))
            text = "a missing value" if np.isnan(values[row]) else f"{values[row]:g}"
            needed = "a number above 0" if self.is_exposure else "a number"
            raise ValueError(f"{self.option}={self.name!r} holds {text} in row {row}; give {needed} in each row.")
        features = replace(table, columns=tuple(column for column in table.columns if column.name != self.name))
        return features, np.log(values) if self.is_exposure else values


def offset_column_of(estimator: Any, table: Table, offset: Any) -> OffsetColumn | None:
    """The offset or exposure column that the constructor names, in a training table; None without one."""
    option, value = "offset_column", getattr(estimator, "offset_column", None)
    exposure = getattr(estimator, "exposure_column", None)
    if exposure is not None:
        if value is not None:
            raise ValueError(
                "offset_column and exposure_column both say what is added to the linear predictor; give one."
            )
        option, value = "exposure_column", exposure
    if value is None:
        return None
    if offset is not None:
        column = f"the logarithm of {value!r}" if option == "exposure_column" else repr(value)
        raise ValueError(
            f"offset= and {option}={value!r} are given; leave {option} out and add {column} to offset=, in fit and in "
            "predict."
        )
    if not table.named:
        value = name_of(value, table.names)
        value = str(value) if str(value) in table.names else value  # names of pandas may be no text
    if value not in table.names:
        nearest_names = ", ".join(map(repr, nearest(value, table.names)))
        raise ValueError(f"{option}={value!r} is no column of the table; there is {nearest_names}.")
    return OffsetColumn(str(value), option == "exposure_column")


NORMAL_DEVIATION = 0.6933
"""Interquartile mean of the absolute values of a standard normal variable."""

LARGEST = 1e150
"""Maximum absolute value of a number: squares overflow above 1.3e154; the margin is for sums over rows."""


@dataclass(frozen=True)
class Training:
    """The validated arguments of fit: table, target, and weights (n,) and offset (n, K) where given."""

    table: Table
    y: Floats
    weight: Floats | None
    offset: Floats | None
    given: Table | None = None
    """The table with the offset column, where there is one."""
    offset_column: OffsetColumn | None = None
    unit_weight: float | None = None
    """The sample weight that is 1 in `weight`; None where `weight` is as the user gave it."""
    copies: Copies = None
    """How many rows each row stands for (n,), whose weights `weight` adds up once there is a `unit_weight`."""

    def weighted_rows(self, unit: float | None = None) -> Training:
        """Remove the rows of weight zero, and scale the weights by `unit`, or to mean 1, times the copies.

        Weights multiplied by a constant are then the same numbers, so that the fit is identical.
        """
        if self.unit_weight is not None or (self.weight is None and self.copies is None):
            return self
        if self.weight is None:
            return replace(self, weight=_times(None, self.copies), unit_weight=1.0)
        some = self if self.weight.all() else self.take(np.flatnonzero(self.weight > 0))
        assert some.weight is not None
        if unit is not None:
            return replace(some, weight=some.weight / unit, unit_weight=unit)
        is_constant = (some.weight == some.weight[0]).all()
        weight = None if is_constant else relative_weights(some.weight, some.copies)
        mean = float(np.average(some.weight, weights=some.copies))
        return replace(some, weight=_times(weight, some.copies), unit_weight=mean)

    @property
    def n_rows(self) -> int:
        """The number of rows, of a row with copies that of these."""
        return len(self.y) if self.copies is None else int(self.copies.sum())

    @property
    def n_weighted(self) -> int:
        """The number of rows whose weight is not 0."""
        if self.weight is None:
            return self.n_rows
        return int(np.count_nonzero(self.weight) if self.copies is None else self.copies[self.weight > 0].sum())

    @property
    def weight_of_one(self) -> Floats | None:
        """The weight (n,) of one copy of each row, of weighted rows."""
        return None if self.weight is None else of_one_copy(self.weight, self.copies)

    def directions_of(self, given: Mapping[Any, int] | Sequence[int] | None) -> dict[str, int]:
        """The direction of `monotonic_cst`, 1 or -1, of each constrained feature."""
        if given is None:
            return {}
        names = (self.given or self.table).names
        if not isinstance(given, Mapping):
            if len(given) != len(names):
                raise ValueError(
                    f"monotonic_cst has {plural(len(given), 'direction')}, and the table has "
                    f"{plural(len(names), 'column')}; give one for each, 0 for none, or a mapping from column to 1 or "
                    "-1."
                )
            given = dict(zip(names, given, strict=True))
        directions = {name_of(name, names): direction for name, direction in given.items()}
        features = self.table.names
        for name, direction in directions.items():
            if name not in features and (direction or name not in names):
                nearest_names = ", ".join(map(repr, nearest(name, features)))
                raise ValueError(
                    f"monotonic_cst names {name!r}, which is no feature of the model; there is {nearest_names}."
                )
        return {name: direction for name, direction in directions.items() if direction}

    def sums(self) -> dict[str, float]:
        """The mean sample weight of weighted rows, and weighted sums by which fits to other rows, targets or offsets
        are distinguished.
        """
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        if self.unit_weight is None and self.copies is not None:
            weight = weight * self.copies
        mean = float(weight.sum() / self.n_weighted) if self.unit_weight is None else self.unit_weight
        offset = np.zeros(len(self.y))
        if self.offset is not None and self.offset.shape[1] > 1:  # what all classes have in common has no effect
            centred = self.offset - self.offset.mean(axis=1, keepdims=True)
            # without rounding of what they share
            centred[np.abs(centred) <= 1e-12 * np.abs(self.offset).max(initial=0.0)] = 0.0
            offset = centred @ np.arange(self.offset.shape[1])
        elif self.offset is not None:
            offset = self.offset[:, 0]
        times = np.ones(len(self.y)) if self.copies is None else self.copies.astype(np.float64)
        copy_weight = np.ones(len(self.y))  # the sample weight of one copy of each row, as the user gave it
        if self.weight is not None:
            copy_weight = (
                self.weight if self.unit_weight is None else of_one_copy(self.weight, self.copies) * self.unit_weight
            )
            times = np.where(copy_weight > 0.0, times, 0.0)
        with np.errstate(over="ignore"):  # sums beyond numbers only make fits the same to what compares them
            return {
                "sample weights": mean,
                "squared sample weights": float(times @ np.square(copy_weight)),
                "targets of rows": float(times @ self.y),
                "targets": float(weight @ self.y),
                "squared targets": float(weight @ np.square(self.y)),
                "offsets": float(weight @ offset),
                "squared offsets": float(weight @ np.square(offset)),
                "offsets times targets": float(weight @ (offset * self.y)),
            }

    def take(self, rows: NDArray[np.signedinteger[Any]]) -> Training:
        """A subset of the rows."""
        return replace(self.targets(rows), table=self.table.taken(rows))

    def targets(self, rows: NDArray[np.signedinteger[Any]], copies: Copies = None) -> Training:
        """A subset of the rows without their columns, which are coded elsewhere; `copies`: some of each row's."""
        table = replace(self.table, columns=(), n_rows=len(rows))
        copies = self.copies[rows] if copies is None and self.copies is not None else copies
        weight = None if self.weight is None else self.weight[rows]
        if self.unit_weight is not None:  # with mean 1 over this subset
            copy_weight = self.weight_of_one
            weight = _times(None if copy_weight is None else relative_weights(copy_weight[rows], copies), copies)
        offset = None if self.offset is None else self.offset[rows]
        return Training(table, self.y[rows], weight, offset, self.given, self.offset_column, self.unit_weight, copies)

    def with_fixed(self, spec: ModelSpec, numbers: Numbers, n_outputs: int) -> Training:
        """Add the formula terms without coefficients to the offset."""
        fixed = fixed_score(spec, numbers, len(self.y))
        if not len(fixed):
            return self
        added = np.repeat(fixed[:, None], n_outputs, axis=1)
        return replace(self, offset=added if self.offset is None else added + self.offset)

    @property
    def differences(self) -> Floats:
        """The target minus its offset, for one linear predictor."""
        return self.y if self.offset is None else self.y - self.offset[:, 0]


def _times(weight: Floats | None, copies: Copies) -> Floats | None:
    """The weights (n,) of all copies of each row."""
    if copies is None:
        return weight
    return copies.astype(np.float64) if weight is None else weight * copies


@dataclass(frozen=True)
class GivenRows:
    """The arguments of fit before validation of the target: see `Training`."""

    table: Table
    y: Any
    weight: Floats | None
    offset: Any
    given: Table | None
    offset_column: OffsetColumn | None
    copies: Copies = None

    def without_classes(self, absent: NDArray[np.bool_]) -> GivenRows:
        """Leave out columns of the offset whose class is `absent` (n_classes,); of two that are left their difference.

        The offset of two classes is one column, the second's less the first's.
        """
        if self.offset is None or not absent.any() or np.shape(as_given(self.offset))[1:] != absent.shape:
            return self
        offset = check_offset(self.offset, len(self.table), len(absent))[:, ~absent]
        return replace(self, offset=offset[:, 1] - offset[:, 0] if offset.shape[1] == 2 else offset)

    def training(self, y: Floats, n_outputs: int) -> Training:
        """With the validated target, for `n_outputs` linear predictors."""
        offset = None if self.offset is None else check_offset(self.offset, len(self.table), n_outputs)
        return Training(self.table, y, self.weight, offset, self.given, self.offset_column, copies=self.copies)


def read_rows(
    formula: Formula | None, table: Table, y: Any, sample_weight: Any, offset_column: OffsetColumn | None
) -> tuple[Table, Any, Any]:
    """The columns that a model uses, its target (from the table where `y` is None), and validated weights.

    `offset_column`: a column to keep that no term uses.
    """
    if y is None and formula is not None and formula.target is not None:
        if formula.target not in table.names:
            raise ValueError(f"The formula's target {formula.target!r} is not in the table; add it, or pass y.")
        y = table[formula.target].series
        if offset_column is not None and offset_column.name == formula.target:
            raise ValueError(f"{offset_column} is the formula's target, too; name another column.")
    if formula is not None:
        used = used_columns(formula, table)
        if offset_column is not None and offset_column.name in used:
            raise ValueError(
                f"{offset_column} is in the formula, too; give the formula a copy of the column, under another name."
            )
        used += [] if offset_column is None else [offset_column.name]
        table = replace(table, columns=tuple(table[name] for name in dict.fromkeys(used)))
    return table, y, check_weights(sample_weight, len(table))


def with_spread(loss: Loss, training: Training) -> Loss:
    """For huber, delta on the scale of the target instead of in units of its spread; other losses unchanged."""
    if loss.code != HUBER:
        return loss
    return replace(loss, parameter=loss.parameter * robust_spread(training))


def robust_spread(training: Training) -> float:
    """A robust scale of the target.

    The interquartile mean of the absolute deviations of the target (without its offset) from its interquartile mean,
    over the same for a standard normal variable; where it is 0, the standard deviation. Unlike a median it is
    continuous in the weights.
    """
    y, weight = training.differences, training.weight
    middle = _interquartile_mean(y, weight)
    scale = _interquartile_mean(np.abs(y - middle), weight) / NORMAL_DEVIATION
    return scale or Moments.of(y, weight).spread_about(middle)


def _interquartile_mean(values: Floats, weight: Floats | None) -> float:
    """The mean of the middle half of the weight, in the order of the values."""
    order = np.argsort(values)
    share = np.ones(len(values)) if weight is None else weight[order]
    end = np.cumsum(share) / share.sum()
    inside = np.clip(end, 0.25, 0.75)
    return float(np.average(values[order], weights=np.diff(inside, prepend=0.25)))


def numeric_moments(spec: ModelSpec, numbers: Numbers, n_rows: int, weight: Floats | None) -> tuple[Moments, ...]:
    """Moments of the numeric factors; a `ValueError` names a factor whose square overflows."""
    moments = []
    for numeric in spec.numerics:
        values = np.broadcast_to(numeric.values(numbers), (n_rows,))
        large = np.abs(values) > LARGEST
        if large.any():
            raise ValueError(
                f"{numeric.label!r} is {values[large][0]:g} in row {int(np.argmax(large))}, whose square is no finite "
                f"number; drop the value, or divide the column so that none is above {LARGEST:g} in size."
            )
        moments.append(Moments.of(values, weight))
    return tuple(moments)


def training_loss(model: WideModel) -> Loss:
    """The loss on the training scale."""
    if model.loss.code != HUBER:
        return model.loss
    return replace(model.loss, parameter=model.loss.parameter / model.units.scale)


def lay_training(
    model: WideModel,
    codes: Mapping[Read, Codes] | None,
    numbers: Numbers,
    training: Training,
    order: Order,
    n_jobs: int | None,
) -> Rows:
    """A coded table for the kernels, on the training scale, rows in `order`; without codes where they are None.

    Weights are relative to the model's `unit_weight`.
    """
    units = model.units
    rows = lay_rows(model.spec, model.program, units, codes, numbers, len(training.y), order, n_jobs)
    y, empty = training.y, np.empty(0)
    if model.loss.log_link:
        y = y / np.exp(units.centre)
    elif (units.centre, units.scale) != (0.0, 1.0):
        y = (y - units.centre) / units.scale
    weight = empty if training.weight is None else training.weight
    offset = None if training.offset is None else training.offset / units.scale
    if order is not None:
        y = y[order]
        weight = weight[order] if len(weight) else weight
        offset = None if offset is None else offset[order]
    return rows._replace(y=y, weight=weight, offset=empty if offset is None else np.ascontiguousarray(offset).ravel())


def rows_by_coef(codes: NDArray[np.int32], spec: ModelSpec) -> NDArray[np.int64]:
    """Number of rows that use each coefficient (coefficients,); a row counts once per coefficient."""
    if len(spec.reads) == len({read.block for read in spec.reads}):
        return count_codes(codes, spec.n_coefs)
    return weight_by_coef(codes, np.empty(0), spec).astype(np.int64)


def weight_by_coef(codes: NDArray[np.int32], weight: Floats, spec: ModelSpec) -> Floats:
    """Total weight of the rows that use each coefficient (coefficients,)."""
    total = np.zeros(spec.n_coefs)
    sum_by_entry(codes, weight, np.full(spec.n_coefs, -1, dtype=np.int64), total)
    return total


def mean_weights(spec: ModelSpec, weights: Floats, counts: NDArray[np.int64]) -> Floats:
    """The mean weight of the rows of each coefficient (coefficients,), 1 where there are none.

    A weighted batch under GSE divides by (rows in the batch) * (mean weight of the category's rows). Over all rows that
    is the sum of the category's weights; for one row it keeps the row's weight, which division by the weight of the
    batch itself would cancel.
    """
    mean = np.divide(weights, counts, out=np.ones(len(weights)), where=counts > 0)
    for index, block in enumerate(spec.blocks):
        if block.rank > 1:  # codes index the first component of a vector
            coefs = spec.coefs(index)
            mean[coefs] = np.repeat(mean[coefs][:: block.rank], block.rank)
    return mean


MOST_ROWS = 200_000
"""Interactions and variances of infrequent categories are evaluated on random samples of this size of larger tables."""


class Sampler:
    """The sample of a training table of more than `MOST_ROWS` rows.

    Rows are not sorted, and numbers count by their bits: sorting all rows would take longer than a step on the sample.

    Parameters
    ----------
    training : Training
        With weighted rows.
    column_codes : mapping of column -> RawCodes
        Its categorical columns, factorized when the sample is first used.
    rng : RandomState
    """

    def __init__(self, training: Training, column_codes: Mapping[str, RawCodes], rng: np.random.RandomState) -> None:
        self._training, self._column_codes = training, column_codes
        self.is_needed = training.n_rows > MOST_ROWS
        self._seed = rng.randint(2**31) if self.is_needed else 0

    def for_most(self, max_rows: int) -> Sampler | None:
        """The sampler, if the table has more than this number of rows."""
        return self if self.is_needed and max_rows <= MOST_ROWS else None

    @cached_property
    def rows(self) -> ShuffledRows:
        """About `MOST_ROWS` of the rows."""
        training = self._training
        codes = ((name, raw.codes, raw.keys()) for name, raw in self._column_codes.items())
        given: list[tuple[str, NDArray[np.float64]]] = [
            (column.name, column.values)
            for column in training.table.columns
            if column.kind is Kind.NUMERIC and column.name not in self._column_codes
        ]
        offset = (
            [] if training.offset is None else [(f"offset {k}", values) for k, values in enumerate(training.offset.T)]
        )
        exact = [*((f"column {name}", values) for name, values in given), *offset, ("target", training.y)]
        weight = training.weight_of_one
        content = content_of(len(training.y), codes, [] if weight is None else [("weight", weight)])
        for name, values in exact:
            content += bits_of(name, values)
        return ShuffledRows.sampled(content, training.copies, MOST_ROWS, np.random.RandomState(self._seed))
