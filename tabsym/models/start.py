"""Initialization of a model: the coded table, its standardization, and the initial coefficients.

Also their extension to new categories and another standardization, and their state after training.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.categories import UNSEEN, RawCodes, count_column
from tabsym.categories.coding import first_rows
from tabsym.design.model_spec import Codes, ModelSpec, Numbers, Read, Rows
from tabsym.design.sources import Coder, CountEffect, rows_by_code
from tabsym.design.units import Moments, Units, find_units, users_units
from tabsym.losses.loss import Loss, best_constant
from tabsym.messages import plural
from tabsym.models.checks import Init
from tabsym.models.config import Config
from tabsym.models.data import Training, lay_training, numeric_moments, training_loss, with_spread
from tabsym.models.model import WideModel, coefficient_frame, scale_names, source_of
from tabsym.solvers.newton import Newton
from tabsym.solvers.sgd.kernels import predict_margins
from tabsym.solvers.sgd.loop import Task, storage_order
from tabsym.solvers.sgd.options import SGD, Options, StateColumns

Floats = NDArray[np.float64]

Rng = np.random.RandomState

COMMON_ROWS = 50.0
"""Terms with at least this many rows per category, on average, get no count effect."""

NO_SGD_STATE = StateColumns.plan(SGD(), keep_steps=False, keep_mean=False)
"""The state columns of a model that is not trained by SGD."""


@dataclass(frozen=True)
class Coded:
    """A training table coded by a spec, before its rows are arranged for the kernels."""

    codes: Mapping[Read, Codes]
    numbers: Numbers
    training: Training

    def lay(self, model: WideModel, options: Options, rng: Rng, n_jobs: int | None) -> Rows:
        """The rows as the kernels take them, in the order of training."""
        order = storage_order(len(self.training.y), len(model.spec.reads), options.shuffle, rng)
        return lay_training(model, self.codes, self.numbers, self.training, order, n_jobs)

    def count_rows(self, spec: ModelSpec) -> tuple[NDArray[np.int64], Floats]:
        """The number and weight of the training rows of each coefficient; a row counts once per coefficient."""
        weight, copies = self.training.weight, self.training.copies
        counts, weights = np.zeros(spec.n_coefs, dtype=np.int64), np.zeros(spec.n_coefs)
        for index, block in enumerate(spec.blocks):
            n = spec.sizes[index] // block.rank
            n_rows, total = np.zeros(n, dtype=np.int64), np.zeros(n)
            columns = [np.asarray(self.codes[read]) for read in spec.reads if read.block == index]
            if len(columns) == 1 and weight is None:
                count_column(columns[0], n_rows)
                total += n_rows
                columns = []
            for number, codes in enumerate(columns):
                first = codes >= 0
                for before in columns[:number]:
                    first &= codes != before
                n_rows += rows_by_code(np.where(first, codes, -1), n, copies)
                total += np.bincount(codes[first], None if weight is None else weight[first], minlength=n)
            coefs = spec.coefs(index)
            counts[coefs], weights[coefs] = np.repeat(n_rows, block.rank), np.repeat(total, block.rank)
        return counts, weights


def initial_model(
    config: Config,
    columns: StateColumns,
    spec: ModelSpec,
    training: Training,
    loss: Loss,
    n_outputs: int,
    column_codes: dict[str, RawCodes],
    rng: Rng,
) -> tuple[WideModel, Coded]:
    """The model before training, its intercept 0, and the coded table; `column_codes`: cache of factorized columns."""
    coder = spec.coder(training.table, config.n_jobs, column_codes, training.copies)
    spec, coded = code_table(config, spec, coder, training, n_outputs)
    return initial_model_of(config, columns, spec, coded, loss, n_outputs, rng), coded


def code_table(
    config: Config, spec: ModelSpec, coder: Coder, training: Training, n_outputs: int
) -> tuple[ModelSpec, Coded]:
    """The spec with the categories of the table of `coder`, and the coded table."""
    spec = spec.grow(coder)
    if config.has_count_effects:
        spec = spec.without(frequent_count_effects(spec, training.n_rows))
    return spec, Coded(spec.code(coder), coder.numbers, training.with_fixed(spec, coder.numbers, n_outputs))


def initial_model_of(
    config: Config, columns: StateColumns, spec: ModelSpec, coded: Coded, loss: Loss, n_outputs: int, rng: Rng
) -> WideModel:
    """The model before training, for a coded table."""
    training = coded.training
    numerics = numeric_moments(spec, coded.numbers, len(training.y), training.weight)
    target = target_moments(config, loss, training)
    coefs_scaled = starting_parameters(spec, coded.codes, n_outputs, rng)
    unit = 1.0 if training.unit_weight is None else training.unit_weight
    return untrained_model(config, columns, spec, with_spread(loss, training), coefs_scaled, target, numerics, unit)


def untrained_model(
    config: Config,
    columns: StateColumns,
    spec: ModelSpec,
    loss: Loss,
    coefs_scaled: Floats,
    target: Moments | None,
    numerics: tuple[Moments, ...],
    unit_weight: float,
) -> WideModel:
    """The model with coefficients (coefficients, K) on the training scale that no row was counted for yet."""
    units = choose_units(config, spec, loss, target, numerics)
    return WideModel(
        spec,
        loss,
        coefs_scaled.shape[1],
        theta=units.to_user(spec, coefs_scaled),
        counts=np.zeros(spec.n_coefs, dtype=np.int64),
        units=units,
        columns=columns,
        state=columns.blank(coefs_scaled.ravel()),
        weights=np.zeros(spec.n_coefs),
        target=target,
        numerics=numerics,
        unit_weight=unit_weight,
    )


def frequent_count_effects(spec: ModelSpec, n_rows: int) -> list[int]:
    """The count effects of terms that have many rows per category, where the count has little effect."""
    return [
        index
        for index in range(len(spec.blocks))
        if isinstance(source := source_of(spec, index), CountEffect)
        and (len(source) < 2 or n_rows >= COMMON_ROWS * len(source.counts))
    ]


def begin(model: WideModel, rows: Rows, config: Config) -> WideModel:
    """Set the initial coefficients: `coef_init` where given, and the optimal intercept given these."""
    spec, k = model.spec, model.n_outputs
    coefs_scaled, given = model.state[:, 0].reshape(-1, k), set[int]()
    if config.init is not None:
        coefs_scaled, given = with_init(model, coefs_scaled, config.init), given_blocks(spec, config.init)
    constant = None if spec.intercept is None else spec.intercept.factors[0].block
    if constant is not None and constant not in given:
        offset = rows.offset.reshape(-1, k) if len(rows.offset) else None
        start = offset if config.init is None else scores_of(model, rows, coefs_scaled)
        weight = rows.weight if len(rows.weight) else None
        coefs_scaled[spec.coefs(constant)] = best_constant(training_loss(model), rows.y, weight, k, start)
    return replace(
        model, state=model.columns.blank(coefs_scaled.ravel()), theta=model.units.to_user(spec, coefs_scaled)
    )


def target_moments(config: Config, loss: Loss, training: Training) -> Moments | None:
    """The moments that standardize the target: of its residuals from the offset, or of itself with a log link.

    None for no scaling: in classification, and for Newton's method with a log link, which uses `TargetUnits`.
    """
    if loss.scales:
        return Moments.of(training.differences, training.weight)
    if loss.log_link and not isinstance(config.optimizer, Newton):
        return Moments.of(training.y, training.weight)
    return None


def choose_units(
    config: Config, spec: ModelSpec, loss: Loss, target: Moments | None, numerics: tuple[Moments, ...]
) -> Units:
    if not config.standardize:
        return users_units(spec, numerics)
    return find_units(spec, target, numerics, log_link=loss.log_link)


def scores_of(model: WideModel, rows: Rows, coefs_scaled: Floats) -> Floats:
    """Linear predictors (n, K) of training rows, on the training scale, with the offset."""
    out = np.empty((len(rows.y), model.n_outputs))
    task = task_of(model)
    predict_margins(rows, task.program, task.neutral, np.ascontiguousarray(coefs_scaled).reshape(-1, 1), out)
    return out


def task_of(model: WideModel) -> Task:
    return Task(model.program.program, training_loss(model), model.n_outputs)


VECTOR_SPREAD = 0.1
"""Standard deviation of the random initial latent vectors, on the training scale: equal vectors would remain equal."""


def starting_parameters(
    spec: ModelSpec, codes: Mapping[Read, Codes], n_outputs: int, rng: np.random.RandomState
) -> Floats:
    """Initial coefficients (coefficients, K) on the training scale; the intercept is 0.

    The random vectors are assigned in the order of first appearance of the categories in the rows, so that the order of
    categories in a data frame has no effect.
    """
    coefs_scaled = np.empty((spec.n_coefs, n_outputs))
    for index, block in enumerate(spec.blocks):
        coefs = spec.coefs(index)
        coefs_scaled[coefs] = block.start
        if block.rank > 1:
            values = rng.normal(0.0, VECTOR_SPREAD, (spec.sizes[index] // block.rank, block.rank * n_outputs))
            ranks = _ranks(spec, index, codes)
            coefs_scaled[coefs] = values[ranks].reshape(-1, n_outputs)
    return coefs_scaled


def _ranks(spec: ModelSpec, index: int, codes: Mapping[Read, Codes]) -> NDArray[np.int64]:
    """The rank of each category of a block in order of first appearance (categories,)."""
    n_categories = spec.sizes[index] // spec.blocks[index].rank
    first = np.full(n_categories, -1, dtype=np.int64)
    for read in (read for read in spec.reads if read.block == index):
        known = first >= 0
        later = first_rows(codes[read], n_categories)
        n_before = int(first.max(initial=-1)) + 1
        first[~known & (later >= 0)] = later[~known & (later >= 0)] + n_before
    first[first < 0] = np.iinfo(np.int64).max
    ranks = np.empty(n_categories, dtype=np.int64)
    ranks[np.argsort(first, kind="stable")] = np.arange(n_categories)
    return ranks


def given_blocks(spec: ModelSpec, init: Init) -> set[int]:
    """The indices of the blocks that `init` sets."""
    if init is None:
        return set()
    if not isinstance(init, Mapping):
        return set(range(len(spec.blocks)))
    return {index for index, block in enumerate(spec.blocks) if block.name in init}


def with_init(model: WideModel, coefs_scaled: Floats, init: Init) -> Floats:
    """Initial coefficients (coefficients, K) on the training scale, with those of `init`, on the original scale.

    A block that compensates for centring, and is not given, keeps its initial value on the training scale.

    Raises
    ------
    ValueError
        For an unknown block, a frame without the right columns, or a value that is not finite.
    """
    spec, given = model.spec, given_blocks(model.spec, init)
    if init is None:
        return coefs_scaled
    names = [block.name for block in spec.blocks]
    scales = scale_names(spec)
    if isinstance(init, Mapping):
        for name in init:
            if name not in names and name not in scales.values():
                raise ValueError(f"coef_init names the term {name!r}, which the model has not; it has {sorted(names)}.")
    theta = model.units.to_user(spec, coefs_scaled)
    for index in given:
        value = init[names[index]] if isinstance(init, Mapping) else init
        coefs = spec.coefs(index)
        theta[coefs] = _given_values(model, index, value, theta[coefs])
    for index, name in scales.items():  # the scale of a product multiplies its first factor
        if isinstance(init, Mapping) and name in init:
            theta[spec.coefs(index)] *= _scales(init[name], name, model.n_outputs)
    started = model.units.to_training(spec, theta)
    for main_effect in spec.centering_blocks - given:
        started[spec.coefs(main_effect)] = coefs_scaled[spec.coefs(main_effect)]
    return started


def _scales(value: float | pd.Series | pd.DataFrame, name: str, n_outputs: int) -> float | Floats:
    """One number, or those of all classes (K,)."""
    if not isinstance(value, (pd.Series, pd.DataFrame)):
        return value
    scales = value.to_numpy(dtype=np.float64).ravel()
    if len(scales) not in (1, n_outputs):
        raise ValueError(
            f"coef_init[{name!r}] holds {plural(len(scales), 'number')}; give one, or {n_outputs}, one for each class."
        )
    return scales


def _given_values(model: WideModel, index: int, value: float | pd.Series | pd.DataFrame, start: Floats) -> Floats:
    """The values (coefficients, K) of one block; categories that are not given keep their initial value."""
    block, name = model.spec.blocks[index], model.spec.blocks[index].name
    if not isinstance(value, (pd.Series, pd.DataFrame)):
        return np.full_like(start, value)
    width = block.rank * model.n_outputs
    frame = value.to_frame() if isinstance(value, pd.Series) else value.iloc[:, :width]
    if frame.shape[1] != width:
        raise ValueError(f"coef_init[{name!r}] has {frame.shape[1]} column(s) of values, and the term {width}.")
    try:
        numbers = frame.to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"coef_init[{name!r}] holds values that are no numbers; convert them first.") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"coef_init[{name!r}] holds a value that is not finite; leave such categories out.")
    if block.source is None:
        if len(frame) != 1:
            is_slope = name in {numeric.label for numeric in model.spec.numerics}
            slope = ", or the coefs_ of a model with numeric='linear'" if is_slope else ""
            raise ValueError(
                f"coef_init[{name!r}] has {len(frame)} rows, and the term is a single number; give one row{slope}."
            )
        return numbers.reshape(-1, model.n_outputs)
    keys = coefficient_frame(model, index, [str(k) for k in range(model.n_outputs)]).index
    if frame.index.nlevels != keys.nlevels or not frame.index.is_unique:
        raise ValueError(f"coef_init[{name!r}] must be indexed by the term's categories, once each, as coefs_ are.")
    known = {by_value(key): at for at, key in enumerate(frame.index)}
    indices = np.array([known.get(by_value(key), UNSEEN) for key in keys], dtype=np.int64)
    out = start.reshape(len(keys), width).copy()
    out[indices >= 0] = numbers[indices[indices >= 0]]
    return out.reshape(-1, model.n_outputs)


def by_value(category: Any) -> Any:
    """A category by value, a missing one as None, also in a combination."""
    if isinstance(category, tuple):
        return tuple(map(by_value, category))
    return None if pd.isna(category) else category


def grow_model(
    model: WideModel, spec: ModelSpec, units: Units, codes: Mapping[Read, Codes], rng: np.random.RandomState, steps: int
) -> WideModel:
    """Extend the model to a new spec and standardization: old coefficients keep their value, new ones are neutral.

    `steps`: the number of past updates that a new coefficient is credited with (all for "mean", none for GSE).
    """
    k, old = model.n_outputs, model.spec
    fresh = starting_parameters(spec, codes, k, rng) if spec.sizes != old.sizes else None
    theta = np.zeros((spec.n_coefs, k))
    averages = theta.copy()
    state = np.tile(model.columns.blank(np.zeros(1), steps), (spec.n_coefs * k, 1))
    counts = np.zeros(spec.n_coefs, dtype=np.int64)
    weights = np.zeros(spec.n_coefs)
    last, mean = model.theta, None
    if model.columns.mean >= 0:
        last, mean = model.units.to_user(old, model.state[:, 0].reshape(-1, k)), model.theta
    for index, block in enumerate(spec.blocks):
        before, now = old.coefs(index), spec.coefs(index)
        end = now.start + (before.stop - before.start)
        theta[now.start : end] = last[before]
        averages[now.start : end] = last[before] if mean is None else mean[before]
        state[now.start * k : end * k] = model.state[before.start * k : before.stop * k]
        counts[now.start : end] = model.counts[before]
        weights[now.start : end] = model.weights[before]
        if end == now.stop:
            continue
        if block.rank > 1 and fresh is not None:
            theta[end : now.stop] = fresh[end : now.stop] * units.sizes[index]
        elif block.source is not None:
            theta[end : now.stop] = model.neutral(index)[0]
        averages[end : now.stop] = theta[end : now.stop]
    state[:, 0] = units.to_training(spec, theta).ravel()
    if mean is not None:
        state[:, model.columns.mean] = units.to_training(spec, averages).ravel()
    reported = theta if mean is None else averages
    return replace(
        model, spec=spec, units=units, theta=reported, state=state, counts=counts, weights=weights, uncertainty=None
    )


def with_state(model: WideModel, state: Floats, n_steps: int) -> WideModel:
    """The model after training; unchanged coefficients keep their value exactly, without rounding."""
    k, column = model.n_outputs, model.columns.predicted
    before = model.units.to_user(model.spec, model.state[:, column].reshape(-1, k))
    after = model.units.to_user(model.spec, state[:, column].reshape(-1, k))
    return replace(model, state=state, theta=np.where(after == before, model.theta, after), n_steps=n_steps)
