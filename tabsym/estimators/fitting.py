"""Fit, in short: plan, code, train, settle; and going on where a model stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import RawCodes
from tabsym.estimators.automatic import piece_options, training_options, within_work
from tabsym.estimators.config import Config
from tabsym.estimators.crossing import find_crosses
from tabsym.estimators.planning import plan_bins, plan_layout
from tabsym.estimators.training_data import (
    Training,
    lay_training,
    mean_weights,
    numeric_moments,
    rows_by_entry,
    training_loss,
    weight_by_entry,
    with_spread,
)
from tabsym.wide.constants import best_constant, settled_shift
from tabsym.wide.course import Outcome
from tabsym.wide.crosses import AutoCrosses, Chosen
from tabsym.wide.descent import Task, storage_order
from tabsym.wide.kernels import predict_margins
from tabsym.wide.layout import Codes, Layout, Numbers, Read
from tabsym.wide.losses import Loss
from tabsym.wide.model import WideModel
from tabsym.wide.moments import Moments
from tabsym.wide.options import Options
from tabsym.wide.program import Rows
from tabsym.wide.rates import is_known_to_do, search_rate
from tabsym.wide.start import given_blocks, grow_model, starting_parameters, with_init, with_state
from tabsym.wide.training import train
from tabsym.wide.units import Units, find_units, users_units

Floats = NDArray[np.float64]
Rng = np.random.RandomState


@dataclass(frozen=True)
class Fitted:
    """What a call to fit comes to; `chosen`: the crosses, where they were chosen."""

    model: WideModel
    outcome: Outcome
    chosen: list[Chosen] | None = None


def fit_model(config: Config, training: Training, loss: Loss, n_outputs: int, rng: Rng) -> Fitted:
    """A model of all rows, from scratch."""
    training = training.weighted_rows()
    raws: dict[str, RawCodes] = {}  # columns are coded once
    bins = plan_bins(config, training, loss)
    auto = config.interactions if isinstance(config.interactions, AutoCrosses) else None
    crosses: Any = config.interactions
    chosen = None
    if auto is not None:
        plain = plan_layout(config, training, 1, bins)
        chosen = _choose_crosses(config, auto, plain, training, loss, n_outputs, raws, rng)
        crosses = [cross.columns for cross in chosen]
    layout = plan_layout(config, training, crosses, bins)
    options = training_options(config, layout, len(training.y), chosen=bool(chosen))
    model, coded = _blank(config, options, layout, training, loss, n_outputs, raws, rng)
    options = within_work(options, model.layout, len(training.y))
    rows = coded.lay(model, options, rng, config.n_jobs)
    del coded  # what training does not need is not kept while it runs
    model = _begin(model, rows, config)
    model, outcome = _advance(model, rows, options, rng, search=config.learning_rate is None)
    if config.learning_rate is None or config.epochs is None:  # otherwise the descent is left as it was asked for
        model = _settle(model, rows)
    return Fitted(model, outcome, chosen)


def continue_model(
    config: Config, model: WideModel | None, training: Training, loss: Loss, n_outputs: int, rng: Rng
) -> Fitted:
    """A model after one pass over some more rows; None for a model that has seen none."""
    training = training.weighted_rows()
    if model is None:
        config.refuse_pieces()
        layout = plan_layout(config, training, config.interactions)  # type: ignore[arg-type]
        options = piece_options(config, layout)
        model, coded = _blank(config, options, layout, training, loss, n_outputs, {}, rng)
        rows = coded.lay(model, options, rng, config.n_jobs)
        model = _begin(model, rows, config)
    else:
        options = piece_options(config, model.layout)
        if options.columns != model.columns:
            raise ValueError(
                "The optimizer, schedule, gradient or average changed since the model was started, and its state does "
                "not fit them; set them back, or fit from scratch."
            )
        model, coded = _go_on(config, options, model, training, rng)
        rows = coded.lay(model, options, rng, config.n_jobs)
    return Fitted(*_advance(model, rows, options, rng, search=False))


@dataclass(frozen=True)
class Coded:
    """A training table as a layout codes it, before it is laid down for the kernels."""

    codes: Mapping[Read, Codes]
    numbers: Numbers
    training: Training

    def lay(self, model: WideModel, options: Options, rng: Rng, n_jobs: int | None) -> Rows:
        """The rows in the order in which training wants them."""
        order = storage_order(len(self.training.y), len(model.layout.reads), options.shuffle, rng)
        return lay_training(model, self.codes, self.numbers, self.training, order, n_jobs)


def _blank(
    config: Config,
    options: Options,
    layout: Layout,
    training: Training,
    loss: Loss,
    n_outputs: int,
    raws: dict[str, RawCodes],
    rng: Rng,
) -> tuple[WideModel, Coded]:
    """The model before training, its intercept at 0; `raws` keeps the coded columns."""
    layout, codes = layout.grow(training.table, config.n_jobs, raws)
    numbers = layout.numbers(training.table)
    training = training.with_fixed(layout, numbers, n_outputs)
    numerics = numeric_moments(layout, numbers, len(training.y), training.weight)
    target = Moments.of(training.differences, training.weight) if loss.scales else None
    phi = starting_parameters(layout, codes, n_outputs, rng)
    model = WideModel(
        layout,
        with_spread(loss, training),
        n_outputs,
        theta=phi,
        counts=np.zeros(layout.n_entries, dtype=np.int64),
        units=_units(config, layout, target, numerics),
        columns=options.columns,
        state=options.columns.blank(phi.ravel()),
        weights=np.zeros(layout.n_entries),
        target=target,
        numerics=numerics,
        unit_weight=1.0 if training.weight is None else float(training.weight.mean()),
    )
    return model, Coded(codes, numbers, training)


def _begin(model: WideModel, rows: Rows, config: Config) -> WideModel:
    """The blank model with its parameters where training starts: those given, and the best intercept beside them."""
    layout, k = model.layout, model.n_outputs
    phi = with_init(model, model.state[:, 0].reshape(-1, k), config.init)
    constant = None if layout.constant is None else layout.constant.factors[0].block
    if constant is not None and constant not in given_blocks(layout, config.init):
        offset = rows.offset.reshape(-1, k) if len(rows.offset) else None
        start = offset if config.init is None else _scores(model, rows, phi)
        weight = rows.weight if len(rows.weight) else None
        phi[layout.entries(constant)] = best_constant(training_loss(model), rows.y, weight, k, start)
    return replace(model, state=model.columns.blank(phi.ravel()), theta=model.units.to_user(layout, phi))


def _units(config: Config, layout: Layout, target: Moments | None, numerics: tuple[Moments, ...]) -> Units:
    return find_units(layout, target, numerics) if config.standardize else users_units(layout, numerics)


def _scores(model: WideModel, rows: Rows, phi: Floats) -> Floats:
    """Scores (n, K) of training rows, in units of training, with their offset."""
    out = np.empty((len(rows.y), model.n_outputs))
    task = _task(model)
    predict_margins(rows, task.program, task.neutral, np.ascontiguousarray(phi).reshape(-1, 1), out)
    return out


def _go_on(config: Config, options: Options, model: WideModel, training: Training, rng: Rng) -> tuple[WideModel, Coded]:
    """The model grown to the symbols of more rows, in the units of all rows so far."""
    layout, codes = model.layout.grow(training.table, config.n_jobs)
    numbers = layout.numbers(training.table)
    training = training.with_fixed(layout, numbers, model.n_outputs)
    more = numeric_moments(layout, numbers, len(training.y), training.weight)
    numerics = tuple(one + other for one, other in zip(model.numerics, more, strict=True))
    target = None if model.target is None else model.target + Moments.of(training.differences, training.weight)
    units = _units(config, layout, target, numerics)
    model = replace(model, target=target, numerics=numerics)
    model = grow_model(model, layout, units, codes, rng, model.n_steps if options.is_dense else 0)
    if training.weight is None and (model.weights != model.counts).any():  # others were weighted
        training = replace(training, weight=np.ones(len(training.y)))
    return model, Coded(codes, numbers, training)


def _task(model: WideModel) -> Task:
    return Task(model.program.program, training_loss(model), model.n_outputs)


def _advance(model: WideModel, rows: Rows, options: Options, rng: Rng, *, search: bool) -> tuple[WideModel, Outcome]:
    """The model trained on rows, and its counts."""
    layout, task = model.layout, _task(model)
    counts = rows_by_entry(rows.codes, layout)
    weights = weight_by_entry(rows.codes, rows.weight, layout) if len(rows.weight) else counts.astype(np.float64)
    entry_weight = np.empty(0)
    if len(rows.weight):
        entry_weight = np.ones(layout.n_entries)
        if not options.is_dense:  # relative to the rows before, else these would cancel their own weight
            before = model.counts > 0
            totals = np.where(before, model.weights, weights), np.where(before, model.counts, counts)
            entry_weight = mean_weights(layout, *totals)
    model = replace(model, counts=model.counts + counts, weights=model.weights + weights)
    if search and not is_known_to_do(options, layout):
        options = options.at_rate(search_rate(rows, entry_weight, model.state, task, options, rng))
    outcome = train(rows, entry_weight, model.state, task, options, rng, model.n_steps)
    return with_state(model, outcome.state, outcome.n_steps), outcome


def _settle(model: WideModel, rows: Rows) -> WideModel:
    """The intercept moved such that predictions add up to the targets, where the loss wants that."""
    constant = model.layout.constant
    if constant is None or not model.loss.canonical:
        return model
    shown = model.state[:, model.columns.shown]
    weight = rows.weight if len(rows.weight) else None
    shift = settled_shift(training_loss(model), _scores(model, rows, shown), rows.y, weight)
    first = model.layout.entries(constant.factors[0].block).start * model.n_outputs
    state = model.state.copy()
    for column in {0, model.columns.shown}:
        state[first : first + model.n_outputs, column] += shift
    return with_state(model, state, model.n_steps)


def _choose_crosses(
    config: Config,
    auto: AutoCrosses,
    layout: Layout,
    training: Training,
    loss: Loss,
    n_outputs: int,
    raws: dict[str, RawCodes],
    rng: Rng,
) -> list[Chosen]:
    """The crosses of ``interactions="auto"``; `raws` keeps the coded columns."""
    options = training_options(config, layout, len(training.y))
    model, coded = _blank(config, options, layout, training, loss, n_outputs, raws, rng)
    rows = lay_training(model, None, coded.numbers, coded.training, None, config.n_jobs)
    return find_crosses(training_loss(model), n_outputs, model.layout, coded.codes, rows, auto, rng, config.n_jobs)
