"""Fit and partial_fit: design building, coding, training, intercept correction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.design.model_spec import ModelSpec, Rows
from tabsym.design.plan import is_sum, plan_additive, plan_formula
from tabsym.design.sources import CategoricalSource
from tabsym.frame import Column, Kind
from tabsym.interactions.search import Chosen
from tabsym.jit import one_blas_thread
from tabsym.losses.loss import HUBER, Loss, settled_shift
from tabsym.messages import plural, show_progress
from tabsym.models.bins import NumericBins, Precomputed, columns_by_kind, plan_cuts
from tabsym.models.config import Config, piece_options, training_options
from tabsym.models.constraints import find_fixed, with_directions, with_fixed_scores, with_fixed_term
from tabsym.models.data import (
    Training,
    mean_weights,
    numeric_moments,
    rows_by_coef,
    training_loss,
    weight_by_coef,
)
from tabsym.models.identified import centering_weights, identify
from tabsym.models.interactions import (
    Crosses,
    members_of,
    named_interactions,
    refuse_constrained,
    search_interactions,
)
from tabsym.models.model import WideModel
from tabsym.models.solving import solve
from tabsym.models.start import (
    NO_SGD_STATE,
    Coded,
    begin,
    choose_units,
    grow_model,
    initial_model,
    scores_of,
    target_moments,
    task_of,
    with_state,
)
from tabsym.solvers.newton import Newton
from tabsym.solvers.sgd.loop import RowNumbers, Split, TrainingResult, is_known_to_do, search_rate, split_rows, train
from tabsym.solvers.sgd.options import Options

Floats = NDArray[np.float64]
Rng = np.random.RandomState
NO_BINS = NumericBins()


@dataclass(frozen=True)
class Fitted:
    """The result of a fit; `chosen`: the interactions, where they were selected."""

    model: WideModel
    training_result: TrainingResult
    chosen: list[Chosen] | None = None


@one_blas_thread()
def fit_model(
    config: Config,
    training: Training,
    loss: Loss,
    n_outputs: int,
    rng: Rng,
    precomputed: Precomputed | None = None,
) -> Fitted:
    """Fit a model to all rows, from scratch; `precomputed`: bins and columns of the rows of positive weight."""
    training = training.weighted_rows()
    if config.monotonic is not None and n_outputs > 1:
        raise ValueError(
            f"monotonic_cst is for regression and for two classes, and there are {n_outputs}: a direction of all of "
            "them together means nothing; leave it out, or fit one class against the others."
        )
    fixed = [find_fixed(config, name, value, training, n_outputs) for name, value in config.fixed.items()]
    if fixed:
        training = with_fixed_scores(training, fixed, n_outputs)
    precomputed = precomputed or Precomputed.of(plan_cuts(config, training, loss), training, rng)
    column_codes = precomputed.column_codes  # columns are factorized once
    spec, chosen = plan_terms(config, training, loss, n_outputs, rng, precomputed)
    if isinstance(config.optimizer, Newton):
        model, coded = initial_model(config, NO_SGD_STATE, spec, training, loss, n_outputs, column_codes, rng)
        size = f"{plural(len(model.spec.blocks), 'term')} coded: {plural(model.spec.n_coefs, 'coefficient')}"
        show_progress(config.verbose, f"{size}, {plural(training.n_rows, 'row')}")
        model, training_result = solve(config, model, coded, rng, precomputed.sampler)
        for term in fixed:
            model = with_fixed_term(model, term, training)
        return Fitted(model, training_result, chosen)
    options = training_options(config, spec, len(training.y), chosen=bool(chosen))
    model, coded = initial_model(config, options.columns, spec, training, loss, n_outputs, column_codes, rng)
    rows = coded.lay(model, options, rng, config.n_jobs)
    del coded  # free the memory before training
    model = begin(model, rows, config)
    split = split_rows(len(rows.y), options, rng)
    model, training_result = _advance(model, rows, options, rng, split, search=config.learning_rate is None)
    if config.learning_rate is None or config.epochs is None:  # given learning rate and epochs: no correction
        model = _settle(model, rows, split[1])
    return Fitted(_identified(config, model), training_result, chosen)


def plan_terms(
    config: Config,
    training: Training,
    loss: Loss,
    n_outputs: int,
    rng: Rng,
    precomputed: Precomputed | None,
    n_rows: int | None = None,
) -> tuple[ModelSpec, list[Chosen] | None]:
    """The spec, and the interactions where they are selected; `n_rows`: of the table that `training` is a sample of."""
    precomputed = precomputed or Precomputed(plan_cuts(config, training, loss), {})
    cuts = precomputed.cuts
    auto = config.crosses_for(loss, n_outputs, n_rows or training.n_rows)
    interactions: Any = config.interactions
    chosen: list[Chosen] | None = None
    if auto is not None:
        plain = build_spec(config, training, 1, NumericBins(cuts.coarse))
        chosen = search_interactions(config, auto, plain, precomputed, training, loss, n_outputs, rng)
        interactions = [members_of(interaction) for interaction in chosen]
        names = ", ".join(":".join(map(str, members)) for members in interactions[:5]) or "none"
        more = f" and {len(chosen) - 5} more" if len(chosen) > 5 else ""
        show_progress(config.verbose, f"interactions searched: {names}{more}")
    return build_spec(config, training, interactions, cuts), chosen


def build_spec(
    config: Config, training: Training, interactions: Crosses = 1, cuts: NumericBins = NO_BINS, *, whole: bool = True
) -> ModelSpec:
    """The spec of the formula; without one, of the columns, bins and interactions.

    `whole`: whether these are all training rows, so that a column without values will have none later.
    """
    levels = cuts.levels if config.by_evidence else {}  # with a variance each
    directions = training.directions_of(config.monotonic)
    if config.formula is not None:
        terms = config.free_terms
        if isinstance(config.optimizer, Newton) and not config.count_effect and not is_sum(terms):
            raise ValueError(
                "count_effect=False has no effect on a formula that multiplies or shares terms; leave it out."
            )
        effects, penalized = config.has_count_effects, config.ridge != 0.0
        spec = plan_formula(terms, cuts.coarse, cuts.fine, levels=levels, count_effect=effects, intercept=penalized)
        return with_directions(spec, directions, training) if directions else spec
    categorical, numeric = columns_by_kind(config, training, whole=whole)
    text = [column.name for column in numeric if column.kind is Kind.CATEGORICAL]
    if text:
        raise ValueError(
            f"Column {text[0]!r} holds text but is not in categorical_features; add it there, or drop it from the "
            "table."
        )
    if not isinstance(interactions, int):
        interactions = named_interactions(interactions, training, categorical, cuts, config)
        refuse_constrained(interactions, directions)
    uncrossed = set(directions)
    if whole and isinstance(interactions, int) and interactions > 1:  # pairs with a constant are main effects again
        uncrossed = {*uncrossed, *(column.name for column in categorical if _is_constant(column))}
        uncrossed |= {bins.column for bins in cuts.coarse if len(bins.bounds) + bins.missing < 1}
    spec = plan_additive(
        categorical,
        numeric,
        interactions=interactions,
        bins=cuts.coarse,
        fine=cuts.fine,
        levels=levels,
        count_effect=config.has_count_effects,
        main_only=uncrossed,
    )
    return with_directions(spec, directions, training) if directions else spec


def _is_constant(column: Column) -> bool:
    known = column.series.drop_nulls()
    return int(known.n_unique()) + (len(known) < len(column.series)) < 2


@one_blas_thread()
def continue_model(
    config: Config, model: WideModel | None, training: Training, loss: Loss, n_outputs: int, rng: Rng
) -> Fitted:
    """The model after one epoch over more rows; `model` is None in the first call."""
    training = training.weighted_rows(None if model is None else model.unit_weight)
    if model is None:
        config.refuse_pieces()
        spec = build_spec(config, training, config.interactions, whole=False)  # type: ignore[arg-type]
        options = piece_options(config, spec)
        model, coded = initial_model(config, options.columns, spec, training, loss, n_outputs, {}, rng)
        rows = coded.lay(model, options, rng, config.n_jobs)
        model = begin(model, rows, config)
    else:
        options = piece_options(config, model.spec)
        if loss.name != model.loss.name or (loss.code != HUBER and loss.parameter != model.loss.parameter):
            raise ValueError(
                f"The model was started with loss={model.loss.public_name!r}, and goes on by it, not by "
                f"{loss.public_name!r} or with "
                "another number; set it back, or fit from scratch."
            )
        if options.columns != model.columns:
            raise ValueError(
                "The optimizer, schedule, gradient or average changed since the model was started, and its state does "
                "not fit them; set them back, or fit from scratch."
            )
        model, coded = _go_on(config, options, model, training, rng)
        rows = coded.lay(model, options, rng, config.n_jobs)
    split = split_rows(len(rows.y), options, rng)
    model, training_result = _advance(model, rows, options, rng, split, search=False)
    return Fitted(_identified(config, model), training_result)


def _identified(config: Config, model: WideModel) -> WideModel:
    """Move the means of terms to the intercept; not with an l1 penalty, whose zeros would be lost.

    The means over rows; with a ridge penalty of mean gradients over categories, as at its optimum coefficients, and
    not rows, have the mean 0: other means moved after each of many calls of `partial_fit` would lead away from there.
    """
    if config.l1 > 0.0:
        return model
    by_category = config.l2 > 0.0 and config.gradient == "mean"
    return identify(model, centering_weights(model, by_category=np.full(len(model.spec.blocks), by_category)))


def _go_on(config: Config, options: Options, model: WideModel, training: Training, rng: Rng) -> tuple[WideModel, Coded]:
    """Extend the model by the categories of more rows, and update the standardization to all rows so far."""
    if config.formula is None and config.cols is None:
        for source in (source for source in model.spec.sources if isinstance(source, CategoricalSource)):
            for name in source.columns:
                source.vocabulary.refuse_late_numbers(training.table[name])
    coder = model.coder(training.table, config.n_jobs)
    spec, numbers = model.spec.grow(coder), coder.numbers
    codes = spec.code(coder)
    training = training.with_fixed(spec, numbers, model.n_outputs)
    if training.weight is None and (model.weights != model.counts).any():  # earlier rows were weighted
        training = replace(training, weight=np.full(len(training.y), 1.0 / model.unit_weight))
    more = numeric_moments(spec, numbers, len(training.y), training.weight)
    numerics = tuple(moments + batch_moments for moments, batch_moments in zip(model.numerics, more, strict=True))
    batch_target = None if model.target is None else target_moments(config, model.loss, training)
    target = None if batch_target is None or model.target is None else model.target + batch_target
    units = choose_units(config, spec, model.loss, target, numerics)
    model = replace(model, target=target, numerics=numerics)
    model = grow_model(model, spec, units, codes, rng, model.n_steps if options.is_dense else 0)
    return model, Coded(codes, numbers, training)


def _advance(
    model: WideModel, rows: Rows, options: Options, rng: Rng, split: Split, *, search: bool
) -> tuple[WideModel, TrainingResult]:
    """Train the model on rows; update its counts."""
    spec, task = model.spec, task_of(model)
    counts = rows_by_coef(rows.codes, spec)
    weights = weight_by_coef(rows.codes, rows.weight, spec) if len(rows.weight) else counts.astype(np.float64)
    coef_weight = np.empty(0)
    if len(rows.weight):
        coef_weight = np.ones(spec.n_coefs)
        if not options.is_dense:  # relative to earlier rows; else the rows would cancel their own weight
            before = model.counts > 0
            totals = np.where(before, model.weights, weights), np.where(before, model.counts, counts)
            coef_weight = mean_weights(spec, *totals)
    model = replace(model, counts=model.counts + counts, weights=model.weights + weights)
    if search and not is_known_to_do(options, spec):
        options = options.at_rate(search_rate(rows, split, coef_weight, model.state, task, options, rng))
    training_result = train(rows, coef_weight, model.state, task, options, rng, model.n_steps, split)
    return with_state(model, training_result.state, training_result.n_steps), training_result


def _settle(model: WideModel, rows: Rows, held_out: RowNumbers) -> WideModel:
    """Intercept correction: predictions add up to the targets, for losses with a canonical link.

    Not where it raises the loss of held-out rows: the predictions of training rows may be overfitted.
    """
    constant = model.spec.intercept
    if constant is None or not model.loss.canonical:
        return model
    coefs_scaled = model.state[:, model.columns.predicted]
    weight = rows.weight if len(rows.weight) else None
    scores = scores_of(model, rows, coefs_scaled)
    shift = settled_shift(training_loss(model), scores, rows.y, weight)
    if len(held_out):
        task, held_out_rows = task_of(model), rows.take(held_out, model.n_outputs)
        if task.mean_loss(scores[held_out] + shift, held_out_rows) > task.mean_loss(scores[held_out], held_out_rows):
            return model
    first = model.spec.coefs(constant.factors[0].block).start * model.n_outputs
    state = model.state.copy()
    for column in {0, model.columns.predicted}:
        state[first : first + model.n_outputs, column] += shift
    return with_state(model, state, model.n_steps)
