"""Fit to a table larger than memory: rows are coded once, into memory maps, over which the solver goes.

Bins and interactions come from a sample; counts and the optimum are sums over all parts. Anonymous memory holds one
batch, the sample, and the coefficients; the files take 4 bytes a row for each term, 8 for each number, and 16 for the
target and the linear predictor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from tabsym.categories import UNSEEN, Categories, Cross
from tabsym.design.model_spec import ModelSpec
from tabsym.design.plan import used_columns
from tabsym.design.sources import CategoricalSource, CountEffect, Crossing
from tabsym.design.units import TargetUnits
from tabsym.frame import check_classes, check_named, read_table
from tabsym.frame.read import Batches
from tabsym.frame.target import weights_of_classes
from tabsym.jit import one_blas_thread, threads_for_rows
from tabsym.losses.loss import HUBER, Loss, best_constant
from tabsym.messages import plural, show_progress
from tabsym.models.bins import Precomputed
from tabsym.models.checks import check_target_of_loss, columns_of
from tabsym.models.config import Config
from tabsym.models.data import Training, offset_column_of, training_loss
from tabsym.models.fitting import Fitted, plan_terms
from tabsym.models.model import WideModel
from tabsym.models.out_of_core.cache import RowCache, check_has_fingerprint, fingerprint_of, folder_of_fit
from tabsym.models.out_of_core.parts import SAMPLE_ROWS, InFiles, Part, Reader, ReadTable, RowSample, TermOfPart, Wanted
from tabsym.models.solving import (
    conclude,
    counted,
    given_precisions,
    is_sum_of_blocks,
    refuse_starts,
    with_keys,
)
from tabsym.models.start import NO_SGD_STATE, frequent_count_effects, starting_parameters, untrained_model
from tabsym.models.stream import target_name
from tabsym.solvers.newton.fit import find_optimum
from tabsym.solvers.newton.partitioned import DescentInParts, Engine, OneAfterTheOther
from tabsym.solvers.newton.terms import Prior, SolverTerm
from tabsym.solvers.newton.uncertainty import Uncertainty

Floats = NDArray[np.float64]
Rng = np.random.RandomState


def wanted_of(estimator: Any, config: Config, names: list[str], first: Any, y: Any, sample_weight: Any) -> Wanted:
    """What a fit reads of a table with these columns, of which `first` are some rows."""
    target = target_name(y, estimator.formula)
    check_named(target, names, "to predict")
    if sample_weight is not None and not isinstance(sample_weight, str):
        raise ValueError(
            "sample_weight of a table that is read in batches is the name of one of its columns, "
            f"sample_weight='weight', and not an array ({type(sample_weight).__name__})."
        )
    if sample_weight is not None:
        check_named(sample_weight, names, "for sample_weight")
    features = [name for name in names if name not in (target, sample_weight)]
    table = read_table(first.select(features), caller=config.caller)
    column = offset_column_of(estimator, table, None)
    coded: set[str] = set()
    if config.formula is not None:
        extra = [] if column is None else [column.name]
        features = list(dict.fromkeys([*used_columns(config.formula, table), *extra]))
        coded = {name for term in config.free_terms for ref in term.blocks for name in ref.columns}
    loss = None
    if not is_classifier(estimator) and not estimator._names_no_loss():
        loss = estimator._named_loss()
    feature_names = [name for name in features if column is None or name != column.name]
    categorical = columns_of(config.cols, features)
    if isinstance(categorical, list):
        categorical = [name for name in categorical if name in feature_names]
    if config.formula is not None:
        categorical = None
    return Wanted(
        target, sample_weight, features, column, categorical, coded, is_classifier(estimator), config.caller,
        lambda values: None if loss is None else check_target_of_loss(values, loss),
    )  # fmt: skip


def fit_out_of_core(
    estimator: Any, batches: Batches, y: Any, sample_weight: Any, cache_dir: Any = None
) -> KeyboardInterrupt | None:
    """Fit an estimator to a table in batches; the interrupt, if any, to be raised once it is fitted."""
    config = estimator._config()
    refuse_options(config, estimator)
    if cache_dir is not None:
        check_has_fingerprint(batches.source)
    with folder_of_fit(cache_dir) as (folder, cache):
        read, parts = _read(estimator, config, batches, y, sample_weight, folder, cache)
        return fit_read(estimator, config, read, OneAfterTheOther(parts))


def _read(
    estimator: Any, config: Config, batches: Batches, y: Any, sample_weight: Any, folder: Path, cache: RowCache | None
) -> tuple[ReadTable, list[Part]]:
    """The rows, coded into files now or before."""
    rows = iter(batches)
    first = next(rows, None)
    if first is None:
        raise ValueError(_no_rows(config))
    wanted = wanted_of(estimator, config, first.column_names, first.slice(0, 1_000), y, sample_weight)
    if cache is None:
        return _coded(estimator, config, chain([first], rows), wanted, InFiles(folder))
    fingerprint = fingerprint_of(batches.source, wanted, SAMPLE_ROWS, _seed_of(estimator))
    coded = cache.find(fingerprint, wanted, store := InFiles(folder))
    if coded is not None:
        show_progress(
            config.verbose, f"{plural(sum(map(len, coded[1])), 'coded row')} of an earlier fit taken from cache_dir"
        )
    else:
        new_rows = _coded(estimator, config, chain([first], rows), wanted, InFiles(cache.rows))
        coded = cache.keep(fingerprint, *new_rows, store)
    for part in coded[1]:  # of an earlier fit with another loss
        wanted.check(part.y)
    return coded


def _coded(
    estimator: Any, config: Config, batches: Iterable[Any], wanted: Wanted, store: InFiles
) -> tuple[ReadTable, list[Part]]:
    """Code the rows into files."""
    reader, parts = Reader(wanted, RowSample(SAMPLE_ROWS, np.random.RandomState([_seed_of(estimator), 0])), store), []
    for batch in batches:
        part = reader.read(batch)
        if part is not None:
            parts.append(part)
            show_progress(config.verbose, f"{plural(sum(map(len, parts)), 'row')} coded")
    part = reader.rest()
    if part is not None:
        parts.append(part)
    if not parts:
        raise ValueError(_no_rows(config))
    return reader.result(), parts


def _no_rows(config: Config) -> str:
    return (
        f"The table has no rows of positive weight: found array with 0 sample(s) while a minimum of 1 is required "
        f"by {config.caller}."
    )


def _seed_of(estimator: Any) -> int:
    """Of the random numbers that choose the sample: others than those of the fit."""
    state = estimator.random_state
    return int(state) if isinstance(state, (int, np.integer)) else 0


def fit_read(estimator: Any, config: Config, read: ReadTable, engine: Engine) -> KeyboardInterrupt | None:
    """Fit an estimator to coded rows; its attributes are set at the end."""
    wanted, sample, rng = read.wanted, read.sample, check_random_state(estimator.random_state)
    weight = None if wanted.weight is None else np.asarray(sample[wanted.weight].to_numpy(), dtype=np.float64)
    rows = estimator._read_rows(config, sample.select(wanted.columns), sample[wanted.target], weight, None)
    of_class, classes = None, None
    if wanted.is_classifier:
        classes, sizes, of_class = _number_classes(estimator, read, engine)
        loss, n_outputs = estimator._loss_of_classes(len(classes))
        codes = check_classes(rows.y, len(rows.table), classes=classes, caller=config.caller).codes
        rows = estimator._with_class_weight(rows, classes, codes, sizes)
        training, precomputed = rows.training(codes.astype(np.float64), n_outputs), None
    else:
        n_outputs = 1
        loss, training, precomputed, losses = estimator._loss_and_training(config, rows)
    unit = _scale_weights(engine, of_class)
    totals = engine.total("target_sums")
    parts = TableInParts(engine, read.vocabularies, int(totals[0]), unit)
    with threads_for_rows(config.n_jobs):
        fitted = fit_parts(config, training, parts, loss, n_outputs, rng, precomputed)
    interrupted = estimator._adopt_fit(config, fitted, training, int(totals[0]), sums_of(totals, unit))
    if classes is not None:
        estimator.classes_ = classes
    else:
        estimator._losses = losses
    return interrupted


def _number_classes(
    estimator: Any, read: ReadTable, engine: Engine
) -> tuple[NDArray[Any], Floats | None, Floats | None]:
    """The classes, sorted, by which the parts' targets are numbered from now on; with `class_weight` their totals and
    the weight of each.
    """
    import pyarrow as pa

    kind = getattr(read.class_type, "value_type", read.class_type)
    classes = pa.chunked_array([pa.array(read.classes.categories.tolist(), type=kind)])
    target = check_classes(classes, len(classes), caller=read.wanted.caller)
    engine.every("renumber_classes", target.codes.astype(np.float64))
    if estimator.class_weight is None:
        return target.classes, None, None
    (totals,) = engine.total("totals_of_classes", len(target.classes))
    of_class = weights_of_classes(estimator.class_weight, target.classes, totals)
    if not of_class.all():  # whose rows the parts have read, and count
        absent = target.classes[of_class == 0.0].tolist()[0]
        raise ValueError(
            f"class_weight gives class {absent!r} the weight 0, which is for tables in memory; leave its rows out of "
            "the table."
        )
    return target.classes, totals, of_class


def _scale_weights(engine: Engine, of_class: Floats | None) -> float:
    """Scale the weights of all parts to mean 1, and drop them where they are equal; the mean weight."""
    ranges = engine.every("weight_range", of_class)
    total, n_rows = sum(of_part[0] for of_part in ranges), engine.total("target_sums")[0]
    low, high = min(of_part[1] for of_part in ranges), max(of_part[2] for of_part in ranges)
    engine.every("scale_weights", of_class, total / n_rows, low == high)
    return float(total / n_rows)


def sums_of(totals: tuple[float, ...], unit: float) -> dict[str, float]:
    """As `Training.sums`; `unit`: the sample weight that counts 1 in `totals`."""
    names = ("targets", "squared targets", "offsets", "squared offsets", "offsets times targets")
    *weighted, of_rows, squares = map(float, totals[2:])
    sums = {"sample weights": unit, "squared sample weights": unit**2 * squares, "targets of rows": of_rows}
    return sums | {name: unit * total for name, total in zip(names, weighted, strict=True)}


ROWS_FOR_START = 100_000
"""Rows of a random sample whose best constant is where the intercept starts."""


@dataclass(frozen=True)
class TableInParts:
    """A training table in parts.

    Attributes
    ----------
    engine : Engine
        Which calls each `Part`.
    vocabularies : mapping of column -> Categories
        Of the columns that are coded.
    n_rows : int
    unit_weight : float
        The sample weight that is 1 in the parts.
    """

    engine: Engine
    vocabularies: Mapping[str, Categories]
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
        config.verbose,
        f"{plural(len(spec.blocks), 'term')} coded: {plural(spec.n_coefs, 'coefficient')}, "
        f"{plural(parts.n_rows, 'row')}",
    )
    model = _blank(config, spec, parts, loss, n_outputs, rng)
    model = counted(model, parts.engine.total("count_terms", spec))
    _, weight, total, *_ = parts.engine.total("target_sums")
    by = float(np.exp(model.units.centre)) if model.loss.log_link else 1.0
    units = TargetUnits.of_mean(total / weight / by, model.loss)
    terms = with_keys(spec, _joined(parts.engine.every("load", model, units)))
    solver = DescentInParts(parts.engine, terms, training_loss(model), n_outputs)
    theta = _start(model, terms, solver)
    ridge = None if config.ridge is None else config.ridge / units.of_loss
    fixed = given_precisions(spec, terms, config.newton, solver.total, units, may_lack=config.may_lack)
    optimum = find_optimum(solver, config.newton, ridge, theta, rng, fixed)

    def likely(fitted: WideModel, uncertainty: Uncertainty) -> Uncertainty:
        shift = fitted.units.centre + float(np.log(units.of_target))
        deviance, likelihood = solver.likelihood(fitted.loss, fitted.units.scale, shift, uncertainty.dispersion)
        return replace(uncertainty, deviance=deviance, log_likelihood=likelihood)

    fitted, training_result = conclude(config, model, terms, optimum, units, rng, likely)
    return Fitted(fitted, training_result, chosen)


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
    shared = any(isinstance(source, CategoricalSource) and len(source.columns) > 1 for source in spec.sources)
    if not is_sum_of_blocks(spec) or by_number or shared:
        raise ValueError(
            f"The formula of {config.caller} multiplies or shares terms, or has slopes by category, which need "
            "all rows in memory; fit a sum of terms of one column or interaction each, such as "
            "w[a] + w[a, b] + s[1]*x, or a table."
        )
    refuse_starts(config.newton)
    assert loss.code != HUBER


def grow_by_parts(config: Config, spec: ModelSpec, parts: TableInParts) -> ModelSpec:
    """The spec with the categories and combinations of all rows, by which the parts are coded."""
    engine, sources = parts.engine, list(spec.sources)
    engine.every("begin", sources)
    columns_of = {index: read.columns for read in spec.reads if (index := spec.blocks[read.block].source) is not None}
    for index in reversed(range(len(sources))):  # the columns of crossings that only larger ones use
        source = sources[index]
        if isinstance(source, Crossing) and index in columns_of:
            columns_of.setdefault(source.left, columns_of[index][:-1])
    for index, source in enumerate(sources):
        columns, code = columns_of.get(index, ()), UNSEEN
        if isinstance(source, CategoricalSource):
            (name,) = source.columns
            none = Categories(name, np.array([None], dtype=object))
            vocabulary = parts.vocabularies.get(name, none)
            if source.closed:
                (category,) = source.vocabulary.inverse(np.zeros(1, dtype=np.intp))
                code = vocabulary.inverse(np.arange(len(vocabulary))).tolist().index(category)
            else:
                sources[index] = replace(source, vocabulary=vocabulary)
        elif isinstance(source, Crossing):
            keys = merge_keys(engine.every("keys_of_pairs", index, columns))
            sources[index] = replace(source, interaction=Cross(keys))
        elif isinstance(source, CountEffect):
            size = len(sources[source.of])
            (counts,) = engine.total("count_codes", source.of, source.columns, size)
            sources[index] = source.of_counts(counts, parts.n_rows)
        if not isinstance(source, (CategoricalSource, Crossing, CountEffect)):
            continue
        engine.every("take_source", index, sources[index], columns, code)
    spec = replace(spec, sources=tuple(sources))
    return spec.without(frequent_count_effects(spec, parts.n_rows)) if config.has_count_effects else spec


def merge_keys(keys_of_parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The distinct keys of all parts, in the order in which they occur."""
    every = np.concatenate(keys_of_parts)
    first = np.unique(every, return_index=True)[1]
    return np.asarray(every[np.sort(first)])


def _blank(config: Config, spec: ModelSpec, parts: TableInParts, loss: Loss, n_outputs: int, rng: Rng) -> WideModel:
    """The model before training: as `start.initial_model_of`, by sums."""
    moments = parts.engine.every("moments", spec, loss.scales)
    numerics = tuple(reduce(add, of_parts) for of_parts in zip(*(of_parts for of_parts, _ in moments), strict=True))
    of_target = reduce(add, (target for _, target in moments)) if loss.scales else None
    coefs_scaled = starting_parameters(spec, {}, n_outputs, rng)
    return untrained_model(config, NO_SGD_STATE, spec, loss, coefs_scaled, of_target, numerics, parts.unit_weight)


def _joined(terms_of_parts: Sequence[Sequence[TermOfPart]]) -> list[SolverTerm]:
    """The terms of all rows, without these: parents of coefficients are those in whichever part has them."""
    terms = []
    for of_parts in zip(*terms_of_parts, strict=True):
        blocks = set.intersection(*(set(part.parents) for part in of_parts))
        within = {block: np.maximum.reduce([part.parents[block] for part in of_parts]) for block in blocks}
        terms.append(
            replace(of_parts[0].term, within={block: within[block] for block in of_parts[0].parents if block in within})
        )
    return terms


def _start(model: WideModel, terms: Sequence[SolverTerm], solver: DescentInParts) -> list[Floats]:
    """Coefficients at the start: the intercept at the best constant of a sample."""
    theta = [np.zeros((term.size, model.n_outputs)) for term in terms]
    constant = next((i for i, term in enumerate(terms) if term.prior is Prior.FLAT and term.is_constant), None)
    if constant is not None:
        _, y, weight, start, _ = solver.sample(ROWS_FOR_START, np.random.RandomState(0))
        offset = start if start.any() else None
        sample_weight = weight if len(weight) else None
        theta[constant] = best_constant(training_loss(model), y, sample_weight, model.n_outputs, offset).reshape(1, -1)
    return theta
