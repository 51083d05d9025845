"""A fit to a training table in parts: design from a sample, counts and the optimum by sums over all parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.categories import UNSEEN, Categories, Cross
from tabsym.design.model_spec import ModelSpec
from tabsym.design.sources import CountEffect, Crossing, Symbols
from tabsym.design.units import Moments, TargetUnits
from tabsym.losses.kernels import HUBER
from tabsym.losses.loss import Loss, best_constant
from tabsym.models.config import Config
from tabsym.models.data import Training, training_loss
from tabsym.models.fitting import Fitted, Precomputed, plan_terms
from tabsym.models.model import WideModel
from tabsym.models.newton_terms import given_precisions, with_keys
from tabsym.models.out_of_core.parts import TermOfPart
from tabsym.models.solving import conclude, counted, goes_by_turns
from tabsym.models.start import NO_MEMORY, choose_units, is_common, starting_parameters
from tabsym.solvers.newton.certainty import Certainty
from tabsym.solvers.newton.fit import find_optimum
from tabsym.solvers.newton.partitioned import DescentInParts, Engine
from tabsym.solvers.newton.terms import Prior, SolverTerm
from tabsym.threads import one_blas_thread
from tabsym.warn import show_progress

Floats = NDArray[np.float64]
Rng = np.random.RandomState

ROWS_FOR_START = 100_000
"""Rows of a random sample whose best constant is where the intercept starts."""


@dataclass(frozen=True)
class TableInParts:
    """A training table in parts.

    Attributes
    ----------
    engine : Engine
        Which asks each `Part`.
    alphabets : mapping of column -> Categories
        Of the columns that are coded.
    n_rows : int
    unit_weight : float
        The sample weight that is 1 in the parts.
    """

    engine: Engine
    alphabets: Mapping[str, Categories]
    n_rows: int
    unit_weight: float


def refuse_options(config: Config, estimator: Any) -> None:
    """A `ValueError` for options that need all rows at once."""
    what = {
        "fixed": bool(config.fixed),
        "monotonic_cst": config.monotonic is not None,
        "n_posterior_samples": config.newton.samples > 0,
        "handle_unknown": estimator.handle_unknown == "similar",
        "loss": getattr(getattr(estimator, "loss", None), "name", getattr(estimator, "loss", None)) == "huber",
    }
    for name, is_given in what.items():
        if is_given:
            raise ValueError(
                f"{name}={getattr(estimator, name)!r} needs all rows in memory, and these are fitted in parts; leave "
                "it out, or fit a table (dataset.to_table(), lazy_frame.collect()) or a sample of the rows."
            )


@one_blas_thread()
def fit_parts(
    config: Config,
    sample: Training,
    parts: TableInParts,
    loss: Loss,
    n_outputs: int,
    rng: Rng,
    precomputed: Precomputed | None = None,
) -> Fitted:
    """Fit a model: bins and interactions by a sample, everything else by all rows."""
    spec, chosen = plan_terms(config, sample.weighted_rows(), loss, n_outputs, rng, precomputed, parts.n_rows)
    _refuse_terms(config, spec, loss)
    spec = grow_by_parts(config, spec, parts)
    show_progress(
        config.verbose, f"{len(spec.blocks)} terms coded: {spec.n_coefs:,} coefficients, {parts.n_rows:,} rows"
    )
    model = _blank(config, spec, parts, loss, n_outputs, rng)
    model = counted(model, parts.engine.total("count_terms", spec))
    units = _units_of_target(model, parts)
    terms = with_keys(spec, _joined(parts.engine.every("load", model, units)))
    solver = DescentInParts(parts.engine, terms, training_loss(model), n_outputs)
    theta = _start(model, terms, solver)
    ridge = None if config.ridge is None else config.ridge / units.of_loss
    fixed = given_precisions(spec, terms, config.newton, solver.total, units, may_lack=config.may_lack)
    optimum = find_optimum(solver, config.newton, ridge, theta, rng, fixed)

    def likely(fitted: WideModel, certainty: Certainty) -> Certainty:
        shift = fitted.units.centre + float(np.log(units.of_target))
        own, likelihood = solver.likelihood(fitted.loss, fitted.units.scale, shift, certainty.dispersion)
        return replace(certainty, deviance=own, log_likelihood=likelihood)

    fitted, outcome = conclude(config, config.newton, model, terms, optimum, units, rng, likely)
    return Fitted(fitted, outcome, chosen)


def _refuse_terms(config: Config, spec: ModelSpec, loss: Loss) -> None:
    """A `ValueError` for formulas whose terms are not solved by sums over coefficients."""
    if spec.offset_terms:
        term = spec.offset_terms[0]
        name = f"{term.constant:g}" if term.numeric is None else spec.numerics[term.numeric].label
        raise ValueError(
            f"The formula of {config.caller} adds {name} without a coefficient, which needs all rows in memory; leave "
            "it out, name a column of it by offset_column, or fit a table."
        )
    by_number = any(
        term.numeric is not None and any(spec.blocks[factor.block].source is not None for factor in term.factors)
        for term in spec.fitted_terms
    )
    shared = any(isinstance(source, Symbols) and len(source.columns) > 1 for source in spec.sources)
    if not goes_by_turns(spec) or by_number or shared:
        raise ValueError(
            f"The formula of {config.caller} multiplies or shares terms, or has slopes by category, which need "
            "all rows in memory; fit a sum of terms of one column or interaction each, such as "
            "w[a] + w[a, b] + s[1]*x, or a table."
        )
    assert loss.code != HUBER


def grow_by_parts(config: Config, spec: ModelSpec, parts: TableInParts) -> ModelSpec:
    """The spec with the categories and combinations of all rows, by which the parts are coded."""
    engine, sources = parts.engine, list(spec.sources)
    engine.every("begin", sources)
    columns_of = {index: read.columns for read in spec.reads if (index := spec.blocks[read.block].source) is not None}
    _note_lefts(sources, columns_of)
    for index, source in enumerate(sources):
        columns, code = columns_of.get(index, ()), UNSEEN
        if isinstance(source, Symbols):
            (name,) = source.columns
            none = Categories(name, np.array([None], dtype=object))
            alphabet = parts.alphabets.get(name, none)
            if source.closed:
                (own,) = source.alphabet.inverse(np.zeros(1, dtype=np.intp))
                code = alphabet.inverse(np.arange(len(alphabet))).tolist().index(own)
            else:
                sources[index] = replace(source, alphabet=alphabet)
        elif isinstance(source, Crossing):
            keys = merge_keys(engine.every("keys_of_pairs", index, columns))
            sources[index] = replace(source, interaction=Cross(keys))
        elif isinstance(source, CountEffect):
            size = len(sources[source.of])
            (counts,) = engine.total("count_codes", source.of, source.columns, size)
            sources[index] = source.of_counts(counts, parts.n_rows)
        if not isinstance(source, (Symbols, Crossing, CountEffect)):
            continue
        engine.every("take_source", index, sources[index], columns, code)
    spec = replace(spec, sources=tuple(sources))
    return spec.without(is_common(spec, parts.n_rows)) if config.has_count_effects else spec


def _note_lefts(sources: Sequence[Any], columns_of: dict[int, tuple[str, ...]]) -> None:
    """The columns of crossings that only larger ones use."""
    for index in reversed(range(len(sources))):
        source = sources[index]
        if isinstance(source, Crossing) and index in columns_of:
            columns_of.setdefault(source.left, columns_of[index][:-1])


def merge_keys(found: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The distinct keys of all parts, in the order in which they occur."""
    every = np.concatenate(found)
    first = np.unique(every, return_index=True)[1]
    return np.asarray(every[np.sort(first)])


def _blank(config: Config, spec: ModelSpec, parts: TableInParts, loss: Loss, n_outputs: int, rng: Rng) -> WideModel:
    """The model before training: as `start.blank_of`, by sums."""
    numerics, target = reduce(_added, parts.engine.every("moments", spec, loss.scales))
    of_target = target if loss.scales else None
    phi = starting_parameters(spec, {}, n_outputs, rng)
    units = choose_units(config, spec, loss, of_target, numerics)
    return WideModel(
        spec,
        loss,
        n_outputs,
        theta=units.to_user(spec, phi),
        counts=np.zeros(spec.n_coefs, dtype=np.int64),
        units=units,
        columns=NO_MEMORY,
        state=NO_MEMORY.blank(phi.ravel()),
        weights=np.zeros(spec.n_coefs),
        target=of_target,
        numerics=numerics,
        unit_weight=parts.unit_weight,
    )


_Both = tuple[tuple[Moments, ...], Moments]


def _added(one: _Both, other: _Both) -> _Both:
    return tuple(a + b for a, b in zip(one[0], other[0], strict=True)), one[1] + other[1]


def _units_of_target(model: WideModel, parts: TableInParts) -> TargetUnits:
    _, weight, total, *_ = parts.engine.total("target_sums")
    by = float(np.exp(model.units.centre)) if model.loss.log_link else 1.0
    return TargetUnits.of_mean(total / weight / by, model.loss)


def _joined(found: Sequence[Sequence[TermOfPart]]) -> list[SolverTerm]:
    """The terms of all rows, without these: parents of coefficients are those in whichever part has them."""
    terms = []
    for own in zip(*found, strict=True):
        blocks = set.intersection(*(set(one.parents) for one in own))
        within = {block: np.maximum.reduce([one.parents[block] for one in own]) for block in blocks}
        terms.append(replace(own[0].term, within={block: within[block] for block in own[0].parents if block in within}))
    return terms


def _start(model: WideModel, terms: Sequence[SolverTerm], solver: DescentInParts) -> list[Floats]:
    """Coefficients at the start: the intercept at the best constant of a sample."""
    theta = [np.zeros((term.size, model.n_outputs)) for term in terms]
    constant = next((i for i, term in enumerate(terms) if term.prior is Prior.FLAT and term.is_constant), None)
    if constant is not None:
        _, y, weight, start, _ = solver.sample(ROWS_FOR_START, np.random.RandomState(0))
        own = start if start.any() else None
        shares = weight if len(weight) else None
        theta[constant] = best_constant(training_loss(model), y, shares, model.n_outputs, own).reshape(1, -1)
    return theta
