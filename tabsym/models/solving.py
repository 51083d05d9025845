"""Fit by Newton's method: a model's terms for the solver, the fit, and the results on the original scale."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from tabsym.design.content import keys_of_source
from tabsym.design.model_spec import Block, ModelSpec
from tabsym.design.model_spec import Rows as LaidRows
from tabsym.design.plan import RARITY
from tabsym.design.sources import Bins, CategoricalSource, CountEffect, Crossing, Flag
from tabsym.design.units import TargetUnits, with_sizes
from tabsym.jit import by_rows, threads_for_rows
from tabsym.losses.loss import HUBER, deviance_and_likelihood
from tabsym.messages import plural, show_progress, warn_user
from tabsym.models.config import Config
from tabsym.models.constraints import order_of
from tabsym.models.data import Sampler, Training, lay_training, robust_spread, training_loss
from tabsym.models.identified import (
    centering_weights,
    completely_separated,
    has_mean_by_category,
    identify,
    is_random_effect,
    joint_covariance_of,
    with_joint_covariances,
    with_joint_covariances_of_formula,
    with_separation,
    without_doubt,
)
from tabsym.models.model import WideModel, source_of
from tabsym.models.start import Coded, begin, scores_of, task_of, with_state
from tabsym.solvers.newton import Newton
from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.fit import MAX_HELD_OUT, Optimum, Posterior, SolverResult, find_optimum, posterior_of
from tabsym.solvers.newton.formulas import fit_formula
from tabsym.solvers.newton.terms import Prior, SolverTerm
from tabsym.solvers.newton.uncertainty import Uncertainty
from tabsym.solvers.sgd.loop import TrainingResult

Floats = NDArray[np.float64]
Rng = np.random.RandomState


def solve(
    config: Config, model: WideModel, coded: Coded, rng: Rng, sampler: Sampler | None = None
) -> tuple[WideModel, TrainingResult]:
    """The model at its optimum; `sampler`: of the rows of `coded`."""
    by_blocks = is_sum_of_blocks(model.spec)
    _refuse_options(config, model, by_blocks=by_blocks)
    with threads_for_rows(config.n_jobs):
        model, rows, units, ridge = _begun(config, model, coded)
        model = counted(model, coded.count_rows(model.spec))
        if by_blocks:
            terms, optimum = _by_blocks(config, ridge, model, coded, rows, units, rng, sampler)
            if not config.newton.posterior:
                fitted, losses = _at_optimum(model, terms, optimum), [optimum.solver.mean_loss()] * optimum.n_iterations
                return fitted, TrainingResult(fitted.state, 0, losses, [], optimum.interrupted)

            def likely(fitted: WideModel, uncertainty: Uncertainty) -> Uncertainty:
                return _with_likelihood(fitted, uncertainty, optimum.solver.scores(), coded.training, units)

            return conclude(config, model, terms, optimum, units, rng, likely)
        copies = coded.training.copies
        result = fit_formula(model.spec, rows, task_of(model), config.newton, ridge, model.state[:, 0], rng, copies)
        dispersion = result.uncertainty.dispersion
        result = in_users_target(result, units)
        fitted = with_state(model, model.columns.blank(result.coefs_scaled.ravel()), 0)
        uncertainty = in_users_units(fitted, result)
        weights = centering_weights(model, by_category=is_random_effect(model, result.uncertainty.variances))
        fitted = identify(fitted, weights)
        if result.whole is not None:
            uncertainty = with_joint_covariances_of_formula(fitted, uncertainty, result.whole, dispersion, weights)
        scores = scores_of(model, rows, result.coefs_scaled)
        fitted = replace(fitted, uncertainty=_with_likelihood(fitted, uncertainty, scores, coded.training, units))
        least = float(training_loss(model).predict(scores).min(initial=np.inf))
        fitted, training_result = _ended(config, fitted, result, result.interrupted, least)
        if result.whole is not None:
            _warn_of_aliases(config.caller, fitted, model.spec.blocks)
        return fitted, training_result


def _refuse_options(config: Config, model: WideModel, *, by_blocks: bool) -> None:
    """A `ValueError` for options that the kind of spec, or the number of classes, has no use for."""
    newton = config.newton
    if newton.samples and (model.n_outputs > 1 or not by_blocks):
        raise ValueError(
            "n_posterior_samples is for sums of terms and one linear predictor; leave it out for more than two classes "
            "and for formulas that multiply or share terms."
        )
    if by_blocks:
        refuse_starts(newton)
    if newton.penalties and not by_blocks:
        raise ValueError(
            "alpha by term is for sums of terms; give 'auto' or a number for formulas that multiply or share terms."
        )
    if config.monotonic is not None and not by_blocks:
        raise ValueError(
            "monotonic_cst is for sums of terms, and the formula multiplies or shares terms; leave it out."
        )


def refuse_starts(newton: Newton) -> None:
    """A `ValueError` for a number of starts of a sum of terms."""
    if newton.starts != Newton.starts:
        raise ValueError(
            f"n_init={newton.starts} has no effect on a sum of terms, whose optimum is one; it is for formulas that "
            "multiply: leave it out."
        )


def conclude(
    config: Config,
    model: WideModel,
    terms: list[SolverTerm],
    optimum: Optimum,
    units: TargetUnits,
    rng: Rng,
    with_likelihood: Callable[[WideModel, Uncertainty], Uncertainty],
) -> tuple[WideModel, TrainingResult]:
    """The fitted model of a sum of terms at its optimum; `with_likelihood` adds that of the training rows."""
    by_category = has_mean_by_category(model.spec, terms, optimum.solver)
    weights = centering_weights(model, by_category=by_category)
    whole = joint_covariance_of(model, optimum.solver, weights, by_category)
    if whole is not None:
        optimum.components.count_jointly(whole.edf)
    posterior = posterior_of(optimum, config.newton, rng)
    result = _result_of(model, terms, optimum, posterior)
    if not posterior.drawn:
        warn_user(
            f"{config.caller} ended its draws of the posterior short: deviations may be too small; give "
            "alpha='auto' or a larger one.",
            ConvergenceWarning,
        )
    result = in_users_target(result, units)
    fitted = with_state(model, model.columns.blank(result.coefs_scaled.ravel()), 0)
    uncertainty = in_users_units(fitted, result)
    fitted = identify(fitted, weights)
    uncertainty = with_joint_covariances(fitted, uncertainty, optimum, weights, by_category, whole)
    fitted = replace(fitted, uncertainty=with_likelihood(fitted, uncertainty))
    least, certain = optimum.solver.least_predicted(), without_doubt(model, optimum.solver)
    complete = completely_separated(optimum.solver)
    fitted, training_result = _ended(config, fitted, result, optimum.interrupted, least, certain, complete)
    aliased = optimum.aliased or [index for index, term in enumerate(terms) if term.prior is Prior.FLAT]
    _warn_of_aliases(config.caller, fitted, [model.spec.blocks[terms[index].block] for index in aliased])
    return fitted, training_result


def _ended(
    config: Config,
    fitted: WideModel,
    result: SolverResult,
    interrupted: bool,
    least: float,
    certain: NDArray[np.bool_] | None = None,
    complete: NDArray[np.bool_] | None = None,
) -> tuple[WideModel, TrainingResult]:
    """The model without idle terms, and warnings of what went wrong; the last three: see `with_separation`."""
    if not result.converged and not interrupted:
        warn_user(
            f"{config.caller} ended short of the optimum after {plural(result.n_iterations, 'iteration')} in all; give "
            f"max_iter={10 * config.newton.max_passes}, or a larger tol.",
            ConvergenceWarning,
        )
    if np.isnan(result.uncertainty.dispersion):
        warn_user(
            f"{config.caller}: the model has as many coefficients as the rows can determine, so that no residual "
            "degrees of freedom are left: dispersion_, standard deviations and p are NaN; give more rows, fewer terms, "
            "or penalties (alpha='auto', or a number)."
        )
    fitted = without_idle(with_separation(config.caller, fitted, result.loss, least, certain, complete))
    show_progress(config.verbose, f"{plural(result.n_iterations, 'iteration')}, mean loss {result.loss:.6g}")
    return fitted, TrainingResult(fitted.state, 0, [result.loss] * result.n_iterations, [], interrupted)


def _warn_of_aliases(caller: str, model: WideModel, aliased: Sequence[Block]) -> None:
    """Warn of terms without penalties that determine each other, so that their coefficients are not unique.

    Of the terms at the start, of which the fitted model may lack some.
    """
    assert model.uncertainty is not None
    sd = model.uncertainty.sd
    slopes = {factor.block for term in model.spec.fitted_terms if term.numeric is not None for factor in term.factors}
    # the slopes of constant columns are 0
    nonzero = [index for index in slopes if model.theta[model.spec.coefs(index)].any()]
    left = {block.name: index for index, block in enumerate(model.spec.blocks) if block.columns or index in nonzero}
    names = [
        block.name
        for block in aliased
        if block.name in left
        and block.name not in model.uncertainty.separated
        and np.isinf(sd[model.spec.coefs(left[block.name])]).any()
        and np.isinf(model.uncertainty.variances[left[block.name]])
    ]
    if names:
        first = next((name for name in names if model.spec.blocks[left[name]].columns), None)  # slopes have no penalty
        remedy = f"alpha={{{first!r}: ...}} or 'auto'" if is_sum_of_blocks(model.spec) else "alpha='auto' or a number"
        warn_user(
            f"{caller}: without penalties the coefficients of {', '.join(map(repr, names[:5]))} are not unique, as "
            "terms determine each other, and their standard deviations are infinite; predictions, aic_ and tests are "
            f"not affected. Leave out what another term contains{'' if first is None else f', or give {remedy}'}."
        )


def _with_likelihood(
    model: WideModel, uncertainty: Uncertainty, scores: Floats, training: Training, units: TargetUnits
) -> Uncertainty:
    """Add deviance and log likelihood of the training rows; scores (n, K) on the training scale, in `units`."""
    margins = scores * model.units.scale + model.units.centre + np.log(units.of_target)
    deviance, likely = deviance_and_likelihood(
        model.loss, margins, training.y, training.weight, uncertainty.dispersion, training.copies
    )
    return replace(uncertainty, deviance=deviance, log_likelihood=likely)


def solve_parameters(config: Config, model: WideModel, coded: Coded, rng: Rng) -> WideModel:
    """The model at its optimum for prediction only, without a posterior."""
    if not is_sum_of_blocks(model.spec):
        return solve(config, model, coded, rng)[0]
    model, rows, units, ridge = _begun(config, model, coded)
    terms, optimum = _by_blocks(config, ridge, model, coded, rows, units, rng)
    return _at_optimum(counted(model, coded.count_rows(model.spec)), terms, optimum)


def _at_optimum(model: WideModel, terms: list[SolverTerm], optimum: Optimum) -> WideModel:
    """The fitted model of a sum of terms without a posterior."""
    coefs_scaled = np.empty((model.spec.n_coefs, model.n_outputs))
    for term, theta in zip(terms, optimum.solver.theta, strict=True):
        coefs_scaled[model.spec.coefs(term.block)] = theta
    fitted = with_state(model, model.columns.blank(coefs_scaled.ravel()), 0)
    by_category = has_mean_by_category(model.spec, terms, optimum.solver)
    return identify(fitted, centering_weights(model, by_category=by_category))


def _begun(config: Config, model: WideModel, coded: Coded) -> tuple[WideModel, LaidRows, TargetUnits, float | None]:
    """The initialized model, its rows with the target in `TargetUnits`, and the ridge penalty in these units."""
    by_blocks = is_sum_of_blocks(model.spec)
    order = np.arange(len(coded.training.y)) if not by_blocks else None
    codes = None if by_blocks and config.init is None else coded.codes
    if model.loss.code == HUBER and config.standardize:
        scaled = replace(model.units, scale=robust_spread(coded.training))  # outliers inflate the standard deviation
        model = replace(model, units=with_sizes(model.spec, scaled))
    rows = lay_training(model, codes, coded.numbers, coded.training, order, config.n_jobs)
    model = begin(model, rows, config)
    units = TargetUnits.of(rows, training_loss(model))
    ridge = None if config.ridge is None else config.ridge / units.of_loss
    return model, units.rows(rows), units, ridge


def is_sum_of_blocks(spec: ModelSpec) -> bool:
    """Whether every term has one block of rank 1 that no other term uses: the predictor is then a sum of blocks."""
    return all(spec.stands_alone(term) and spec.blocks[term.factors[0].block].rank == 1 for term in spec.fitted_terms)


def _by_blocks(
    config: Config,
    ridge: float | None,
    model: WideModel,
    coded: Coded,
    rows: LaidRows,
    units: TargetUnits,
    rng: Rng,
    sampler: Sampler | None = None,
) -> tuple[list[SolverTerm], Optimum]:
    """The optimum by block coordinate descent; rows in `units`."""
    spec, k = model.spec, model.n_outputs
    terms = with_keys(spec, solver_terms(model, coded, rows))
    offset = rows.offset.reshape(-1, k) if len(rows.offset) else np.zeros((len(rows.y), k))
    coefs_scaled = model.state[:, 0].reshape(-1, k)
    start = [coefs_scaled[spec.coefs(term.block)] for term in terms]
    total = float(rows.weight.sum()) if len(rows.weight) else float(len(rows.y))
    fixed = given_precisions(spec, terms, config.newton, total, units, may_lack=config.may_lack)
    solver = BlockDescent(terms, rows.y, rows.weight, offset, training_loss(model), copies=coded.training.copies)
    solver.sampler = sampler and sampler.for_most(MAX_HELD_OUT)
    return terms, find_optimum(solver, config.newton, ridge, start, rng, fixed)


def _result_of(model: WideModel, terms: list[SolverTerm], optimum: Optimum, posterior: Posterior) -> SolverResult:
    """Arrange the solver result by the coefficients of the model."""
    spec, coefs_scaled = model.spec, model.state[:, 0].reshape(-1, model.n_outputs)
    solver, components = optimum.solver, optimum.components
    theta, sd = np.empty_like(coefs_scaled), np.zeros_like(coefs_scaled)
    samples = np.empty((len(coefs_scaled), posterior.samples[0].shape[1])) if posterior.samples else None
    variances, edf = np.empty(len(terms)), np.empty(len(terms))
    for number, term in enumerate(terms):
        coefs = spec.coefs(term.block)
        theta[coefs], sd[coefs] = solver.theta[number], posterior.sd[number]
        variances[term.block], edf[term.block] = components.variance(number), components.edf[number]
        if samples is not None and posterior.samples:
            samples[coefs] = posterior.samples[number]
    joint = np.nan if components.used_jointly is None else components.used_jointly
    uncertainty = Uncertainty(
        variances, edf, components.pearson, sd, samples, working=components.dispersion, joint_edf=joint
    )
    together = None
    if posterior.together is not None:
        flat = components.posteriors.flat
        together = np.array([spec.coefs(terms[number].block).start for number in flat]), posterior.together
    return SolverResult(theta, uncertainty, solver.mean_loss(), optimum.n_iterations, optimum.converged, together)


def counted(model: WideModel, totals: tuple[NDArray[np.int64], Floats]) -> WideModel:
    """The model with the number of training rows of each coefficient, and their weight."""
    return replace(model, counts=totals[0], weights=totals[1])


# -- terms for the solver, and results on the original scale ---------------------------------------

_EMPTY = np.empty(0)
_NO_CHAIN = np.empty(0, dtype=np.intp)


def solver_terms(model: WideModel, coded: Coded, rows: LaidRows) -> list[SolverTerm]:
    """The terms for the solver, unpenalized first, then by size, then by the names of their columns, not their order.

    Where variances of two terms explain the same, their order decides which of them does.
    """
    spec, numerics = model.spec, model.program.numerics
    terms = []
    for constant, term in zip(model.units.constants, spec.fitted_terms, strict=True):
        factor = term.factors[0]
        x = _EMPTY
        if term.numeric is not None:
            x = constant * rows.x[:, numerics.index(term.numeric)]
        elif constant != 1.0:
            x = np.full(len(rows.y), constant)
        source = source_of(spec, factor.block)
        if source is None:
            codes = np.zeros(len(rows.y), dtype=np.int32)
        else:
            codes = by_rows(
                lambda column: np.ascontiguousarray(column, dtype=np.int32), coded.codes[factor.read]
            ).view()
        codes.flags.writeable = False  # as those of frames are: kernels are compiled once for all terms
        prior, n_unordered = prior_of(spec, factor.block)
        direction = spec.blocks[factor.block].monotone
        chain = (
            order_of(source)[::direction] if direction and isinstance(source, (Bins, CategoricalSource)) else _NO_CHAIN
        )
        sign = direction if source is None else 0
        terms.append(
            SolverTerm(factor.block, codes, x, spec.sizes[factor.block], prior, n_unordered, chain=chain, sign=sign)
        )
    numbers = {
        term.factors[0].block: spec.numerics[term.numeric].label
        for term in spec.fitted_terms
        if term.numeric is not None
    }

    def rank_of(term: SolverTerm) -> tuple[bool, int, list[str], str, str]:
        if term.prior is Prior.FLAT:  # these take joint steps, in any order
            return False, term.size, [], "", ""
        block = spec.blocks[term.block]
        return True, term.size, sorted(block.columns), numbers.get(term.block, ""), block.name

    terms.sort(key=rank_of)
    sources = {term.block: spec.blocks[term.block].source for term in terms}
    made_of = {
        block: frozenset() if source is None else _made_of(spec, source, spec.blocks[block].columns)
        for block, source in sources.items()
    }
    whole = {term.block for term in terms if not len(term.x) and term.codes.min(initial=0) >= 0}
    return [replace(term, within=_within(spec, term, terms, made_of, whole)) for term in terms]


def with_keys(spec: ModelSpec, terms: list[SolverTerm]) -> list[SolverTerm]:
    """The terms, with what their coefficients mean in any order of rows, where codes follow that."""
    keyed = []
    for term in terms:
        block, keys = spec.blocks[term.block], None
        if block.source is not None and isinstance(source_of(spec, term.block), (CategoricalSource, Crossing)):
            keys = partial(keys_of_source, spec.sources, block.source, block.columns)
        name = block.name.replace(":".join(block.columns), ":".join(sorted(block.columns)))
        keyed.append(replace(term, name=name, keys=keys))
    return keyed


def _within(
    spec: ModelSpec,
    term: SolverTerm,
    terms: list[SolverTerm],
    made_of: dict[int, frozenset[tuple[int, str]]],
    whole: set[int],
) -> dict[int, NDArray[np.int32]]:
    """The parents of each coefficient of an interaction, by block: of main effects and lower-order interactions.

    For slopes by category, the slopes of the same column by a coarser category. `whole`: the blocks with a coefficient
    for every row and no numeric factor.
    """
    if len(term.x) and term.prior is Prior.RIDGE:
        return _coarser_slopes(term, terms)
    if not isinstance(source_of(spec, term.block), Crossing) or term.block not in whole:
        return {}
    parents: dict[int, NDArray[np.int32]] = {}
    a_row = np.zeros(term.size, dtype=np.intp)  # one row per coefficient
    a_row[term.codes] = np.arange(len(term.codes))
    for candidate in terms:
        if candidate.block not in whole or not made_of[candidate.block] < made_of[term.block]:
            continue
        if candidate.prior is Prior.RIDGE and not isinstance(source_of(spec, candidate.block), CountEffect):
            parents[candidate.block] = candidate.codes[a_row]
    return parents


def _coarser_slopes(term: SolverTerm, terms: list[SolverTerm]) -> dict[int, NDArray[np.int32]]:
    """Slopes of the same column by a categorical column that is a function of the term's, as regions are of cities."""
    parents: dict[int, NDArray[np.int32]] = {}
    if term.codes.min(initial=0) < 0:
        return parents
    for candidate in terms:
        if candidate.prior is not Prior.RIDGE or candidate.size >= term.size or not np.array_equal(candidate.x, term.x):
            continue
        above = np.zeros(term.size, dtype=np.int32)
        above[term.codes] = candidate.codes
        if candidate.codes.min(initial=0) >= 0 and np.array_equal(above[term.codes], candidate.codes):
            parents[candidate.block] = above
    return parents


def _made_of(spec: ModelSpec, index: int, columns: tuple[str, ...]) -> frozenset[tuple[int, str]]:
    """The sources and columns that determine the code of a source."""
    source = spec.sources[index]
    if isinstance(source, Crossing):
        return _made_of(spec, source.left, columns[:-1]) | _made_of(spec, source.right, columns[-1:])
    return frozenset({(index, columns[0])})


def prior_of(spec: ModelSpec, index: int) -> tuple[Prior, int]:
    """The prior of a block's coefficients, and how many first ones are apart from a random walk."""
    source = source_of(spec, index)
    if source is None or isinstance(source, Flag):
        return Prior.FLAT, 0
    n_unordered = int(isinstance(source, Bins) and source.missing)
    if spec.blocks[index].ordered and len(source) - n_unordered > 1:
        return Prior.WALK, n_unordered
    return Prior.RIDGE, 0


def given_precisions(
    spec: ModelSpec, terms: list[SolverTerm], newton: Newton, total: float, units: TargetUnits, *, may_lack: bool
) -> dict[int, float] | None:
    """The precisions by index of their term that ``alpha`` by term gives; `total`: the weight of all rows.

    `may_lack`: see `Config`; an interaction that was not chosen gives a warning.
    """
    if newton.penalties is None:
        return None
    precisions = {}
    for name, alpha in newton.penalties.items():
        index = _term_named(name, spec, terms, may_lack=may_lack)
        if index is None:
            if newton.posterior:
                warn_user(f"alpha names {name!r}, which the model does not have; it has no effect.")
            continue
        if terms[index].prior is Prior.FLAT:
            raise ValueError(
                f"alpha names {name!r}, which has no penalty (intercept and slopes have none); leave it out."
            )
        if index in precisions:
            raise ValueError(f"alpha names {name!r} twice, as its columns come in any order; name it once.")
        precisions[index] = alpha * total / units.of_loss
    return precisions


def _term_named(name: str, spec: ModelSpec, terms: list[SolverTerm], *, may_lack: bool) -> int | None:
    """The index of a term by its name, in which the columns of an interaction come in any order; None for one that may
    be absent.
    """
    indices = {spec.blocks[term.block].name: index for index, term in enumerate(terms)}
    alike = {_parts_of(full_name): index for full_name, index in indices.items()}
    match = indices.get(name, alike.get(_parts_of(name)))
    if match is not None:
        return match
    columns = {column for block in spec.blocks for column in block.columns}
    counted, (_, parts) = name.startswith(RARITY), _parts_of(name)
    known = all(
        any(re.fullmatch(f"{re.escape(column)}( .*|=.*)?", part) for column in columns) for part in parts
    )  # or bins
    known &= len(set(parts)) == len(parts)  # no interaction has a column twice
    if known and (counted or (may_lack and len(parts) > 1)):  # a count effect may have been left out
        return None
    given = [spec.numerics[term.numeric].label for term in spec.terms if not term.factors and term.numeric is not None]
    if name in given:
        raise ValueError(
            f"alpha names {name!r}, which has no coefficient in the formula, and no penalty; leave it out."
        )
    raise ValueError(f"alpha names {name!r}, and there is no such term; there is {sorted(indices)}.")


def _parts_of(name: str) -> tuple[str, tuple[str, ...]]:
    """What stands before the columns of a term's name, as in ``1 | a:b`` or ``count of a:b``, and these in order."""
    start = RARITY if name.startswith(RARITY) else ""
    *before, columns = name.removeprefix(start).split(" | ")
    return start + " | ".join(before), tuple(sorted(columns.split(":")))


def in_users_target(result: SolverResult, units: TargetUnits) -> SolverResult:
    """Convert dispersion and loss to the units of the target; coefficients and posterior do not depend on them."""
    uncertainty, by = result.uncertainty, units.of_loss
    uncertainty = replace(uncertainty, dispersion=by * uncertainty.dispersion, working=by * uncertainty.working)
    return replace(result, uncertainty=uncertainty, loss=by * result.loss + units.added)


def in_users_units(model: WideModel, result: SolverResult) -> Uncertainty:
    """Convert the posterior to the original scale, with the uncertainty of terms that compensate for centring."""
    spec, units, uncertainty = model.spec, model.units, result.uncertainty
    sd, samples = uncertainty.sd * units.sizes_of_coefs(spec), uncertainty.samples
    if samples is not None:
        samples = units.to_user(spec, samples) - units.to_user(spec, np.zeros_like(samples))
        moved = spec.centering_blocks
        for coefs in (spec.coefs(block) for block in moved):
            sd[coefs] = np.sqrt(np.square(samples[coefs]).mean(axis=1, keepdims=True))
    elif spec.centering_terms:
        variances = np.square(sd)
        for index, main_effect in spec.centering_terms.items():
            term = spec.fitted_terms[index]
            share = term.constant * units.means[term.numeric] / main_effect.constant
            coefs = spec.coefs(main_effect.factors[0].block)
            if share != 0.0:
                variances[coefs] += np.square(share * sd[spec.coefs(term.factors[0].block)])
        if result.together is not None:
            _put_main_effects_together(model, *result.together, variances)
        sd = np.sqrt(variances)
    by = units.scale**2
    return replace(
        uncertainty,
        variances=uncertainty.variances * np.square(units.sizes),
        sd=sd,
        samples=samples,
        dispersion=uncertainty.dispersion * by,
        working=uncertainty.working * by,
    )


def _put_main_effects_together(
    model: WideModel, coefs: NDArray[np.int64], covariances: Floats, variances: Floats
) -> None:
    """Set the variances (coefficients, K) of scalars that compensate for centring unpenalized coefficients only."""
    spec, units = model.spec, model.units
    main_effects: dict[int, set[int]] = {}
    for index, main_effect in spec.centering_terms.items():
        slopes = {spec.coefs(factor.block).start for factor in spec.fitted_terms[index].factors}
        main_effects.setdefault(spec.coefs(main_effect.factors[0].block).start, set()).update(slopes)
    known = set(coefs.tolist())
    alone = [main_effect for main_effect, slopes in main_effects.items() if main_effect in known and slopes <= known]
    if not alone:
        return
    for k in range(covariances.shape[2]):
        lengths, axes = np.linalg.eigh(covariances[:, :, k])
        root = np.zeros((spec.n_coefs, len(coefs)))
        root[coefs] = axes * np.sqrt(np.maximum(lengths, 0.0))
        moved = units.to_user(spec, root) - units.to_user(spec, np.zeros_like(root))
        variances[alone, k] = np.square(moved[alone]).sum(axis=1)


def without_idle(model: WideModel) -> WideModel:
    """Remove the dropped count effects."""
    spec, uncertainty = model.spec, model.uncertainty
    assert uncertainty is not None
    idle = [
        index
        for index in range(len(spec.blocks))
        if isinstance(source_of(spec, index), CountEffect) and uncertainty.variances[index] == 0.0
    ]
    if not idle:
        return model
    retained = np.setdiff1d(np.arange(len(spec.blocks)), idle)
    lean = spec.without(idle)

    def of_retained(values: NDArray[Any]) -> NDArray[Any]:
        """The values of the remaining coefficients, K rows each or one."""
        wide = len(values) // spec.n_coefs
        slices = (spec.coefs(index) for index in retained)
        return np.concatenate([values[coefs.start * wide : coefs.stop * wide] for coefs in slices])

    learned = [term.factors[0].block not in idle for term in spec.fitted_terms]
    units = replace(model.units, sizes=model.units.sizes[retained], constants=model.units.constants[learned])
    uncertainty = replace(
        uncertainty,
        variances=uncertainty.variances[retained],
        edf=uncertainty.edf[retained],
        sd=of_retained(uncertainty.sd),
        samples=None if uncertainty.samples is None else of_retained(uncertainty.samples),
        covariances=tuple(uncertainty.covariances[index] for index in retained) if uncertainty.covariances else (),
        joint_index=of_retained(uncertainty.joint_index) if len(uncertainty.joint_index) else uncertainty.joint_index,
        total_sd=of_retained(uncertainty.total_sd) if len(uncertainty.total_sd) else uncertainty.total_sd,
        unknown=None
        if uncertainty.unknown is None
        else np.array([of_retained(directions) for directions in uncertainty.unknown]),
    )
    return replace(
        model,
        spec=lean,
        units=units,
        theta=of_retained(model.theta),
        counts=of_retained(model.counts),
        weights=of_retained(model.weights),
        state=of_retained(model.state),
        uncertainty=uncertainty,
    )
