"""Fit by Newton's method: solver input from an initialized model, and the fitted model from the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from tabsym.design.model_spec import Block, ModelSpec
from tabsym.design.model_spec import Rows as LaidRows
from tabsym.design.units import TargetUnits, with_sizes
from tabsym.losses.kernels import HUBER
from tabsym.losses.loss import deviance_and_likelihood
from tabsym.models.config import Config
from tabsym.models.data import Sampler, Training, lay_training, robust_spread, training_loss
from tabsym.models.identified import (
    centering_weights,
    has_mean_by_category,
    identify,
    is_random_effect,
    joint_covariance_of,
    with_joint_covariances,
    with_joint_covariances_of_formula,
)
from tabsym.models.model import WideModel
from tabsym.models.newton_terms import (
    given_precisions,
    in_users_target,
    in_users_units,
    solver_terms,
    with_keys,
    without_idle,
)
from tabsym.models.separation import completely_separated, with_separation, without_doubt
from tabsym.models.start import Coded, begin, scores_of, task_of, with_state
from tabsym.solvers.newton import Newton
from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.certainty import Certainty
from tabsym.solvers.newton.fit import MAX_HELD_OUT, Optimum, Posterior, SolverResult, find_optimum, posterior_of
from tabsym.solvers.newton.formulas import fit_formula
from tabsym.solvers.newton.terms import Prior, SolverTerm
from tabsym.solvers.sgd.loop import Outcome
from tabsym.threads import threads_for_rows
from tabsym.warn import show_progress, warn_user

Floats = NDArray[np.float64]
Rng = np.random.RandomState


def solve(
    config: Config, model: WideModel, coded: Coded, rng: Rng, sampler: Sampler | None = None
) -> tuple[WideModel, Outcome]:
    """The model at its optimum; `sampler`: of the rows of `coded`."""
    by_blocks = is_sum_of_blocks(model.spec)
    _refuse_options(config, model, by_blocks=by_blocks)
    with threads_for_rows(config.n_jobs):
        model, rows, units, ridge = _begun(config, model, coded)
        model = counted(model, coded.count_rows(model.spec))
        if by_blocks:
            terms, optimum = _by_blocks(config, ridge, model, coded, rows, units, rng, sampler)
            if not config.newton.posterior:
                fitted, losses = _at_optimum(model, terms, optimum), [optimum.solver.mean_loss()] * optimum.n_sweeps
                return fitted, Outcome(fitted.state, 0, losses, [], optimum.interrupted)

            def likely(fitted: WideModel, certainty: Certainty) -> Certainty:
                return _with_likelihood(fitted, certainty, optimum.solver.scores(), coded.training, units)

            return conclude(config, model, terms, optimum, units, rng, likely)
        answer = fit_formula(model.spec, rows, task_of(model), config.newton, ridge, model.state[:, 0], rng)
        dispersion = answer.certainty.dispersion
        answer = in_users_target(answer, units)
        fitted = with_state(model, model.columns.blank(answer.coefs_scaled.ravel()), 0)
        certainty = in_users_units(fitted, answer)
        weights = centering_weights(model, by_category=is_random_effect(model, answer.certainty.variances))
        fitted = identify(fitted, weights)
        if answer.whole is not None:
            certainty = with_joint_covariances_of_formula(fitted, certainty, answer.whole, dispersion, weights)
        scores = scores_of(model, rows, answer.coefs_scaled)
        fitted = replace(fitted, certainty=_with_likelihood(fitted, certainty, scores, coded.training, units))
        least = float(training_loss(model).predict(scores).min(initial=np.inf))
        fitted, outcome = _ended(config, fitted, answer, answer.interrupted, least)
        if answer.whole is not None:
            _warn_of_aliases(config.caller, fitted, model.spec.blocks)
        return fitted, outcome


def _refuse_options(config: Config, model: WideModel, *, by_blocks: bool) -> None:
    """A `ValueError` for options that the kind of spec, or the number of classes, has no use for."""
    newton = config.newton
    if newton.samples and (model.n_outputs > 1 or not by_blocks):
        raise ValueError(
            "n_posterior_samples is for sums of terms and one linear predictor; leave it out for more than two classes "
            "and for formulas that multiply or share terms."
        )
    if by_blocks and newton.starts != Newton.starts:
        raise ValueError(
            f"n_init={newton.starts} has no effect on a sum of terms, whose optimum is one; it is for formulas that "
            "multiply: leave it out."
        )
    if newton.penalties and not by_blocks:
        raise ValueError(
            "alpha by term is for sums of terms; give 'auto' or a number for formulas that multiply or share terms."
        )
    if config.monotonic is not None and not by_blocks:
        raise ValueError(
            "monotonic_cst is for sums of terms, and the formula multiplies or shares terms; leave it out."
        )


def conclude(
    config: Config,
    model: WideModel,
    terms: list[SolverTerm],
    optimum: Optimum,
    units: TargetUnits,
    rng: Rng,
    with_likelihood: Callable[[WideModel, Certainty], Certainty],
) -> tuple[WideModel, Outcome]:
    """The fitted model of a sum of terms at its optimum; `with_likelihood` adds that of the training rows."""
    by_category = has_mean_by_category(model.spec, terms, optimum.solver)
    weights = centering_weights(model, by_category=by_category)
    whole = joint_covariance_of(model, optimum.solver, weights, by_category)
    if whole is not None:
        optimum.components.count_jointly(whole.edf)
    posterior = posterior_of(optimum, config.newton, rng)
    answer = _answered(model, terms, optimum, posterior)
    if not posterior.drawn:
        warn_user(
            f"{config.caller} ended its draws of the posterior short: deviations may be too small; give "
            "alpha='auto' or a larger one.",
            ConvergenceWarning,
        )
    answer = in_users_target(answer, units)
    fitted = with_state(model, model.columns.blank(answer.coefs_scaled.ravel()), 0)
    certainty = in_users_units(fitted, answer)
    fitted = identify(fitted, weights)
    certainty = with_joint_covariances(fitted, certainty, optimum, weights, by_category, whole)
    fitted = replace(fitted, certainty=with_likelihood(fitted, certainty))
    least, certain = optimum.solver.least_predicted(), without_doubt(model, optimum.solver)
    complete = completely_separated(optimum.solver)
    fitted, outcome = _ended(config, fitted, answer, optimum.interrupted, least, certain, complete)
    aliased = optimum.aliased or [index for index, term in enumerate(terms) if term.prior is Prior.FLAT]
    _warn_of_aliases(config.caller, fitted, [model.spec.blocks[terms[index].block] for index in aliased])
    return fitted, outcome


def _ended(
    config: Config,
    fitted: WideModel,
    answer: SolverResult,
    interrupted: bool,
    least: float,
    certain: NDArray[np.bool_] | None = None,
    complete: NDArray[np.bool_] | None = None,
) -> tuple[WideModel, Outcome]:
    """The model without idle terms, and warnings of what went wrong; the last three: see `with_separation`."""
    if not answer.converged and not interrupted:
        warn_user(
            f"{config.caller} ended short of the optimum after {answer.n_sweeps} iterations in all; give "
            f"max_iter={10 * config.newton.max_passes}, or a larger tol.",
            ConvergenceWarning,
        )
    if np.isnan(answer.certainty.dispersion):
        warn_user(
            f"{config.caller}: the model has as many coefficients as the rows can determine, so that no residual "
            "degrees of freedom are left: dispersion_, standard deviations and p are NaN; give more rows, fewer terms, "
            "or penalties (alpha='auto', or a number)."
        )
    fitted = without_idle(with_separation(config.caller, fitted, answer.loss, least, certain, complete))
    show_progress(config.verbose, f"{answer.n_sweeps} iterations, mean loss {answer.loss:.6g}")
    return fitted, Outcome(fitted.state, 0, [answer.loss] * answer.n_sweeps, [], interrupted)


def _warn_of_aliases(caller: str, model: WideModel, aliased: Sequence[Block]) -> None:
    """Warn of terms without penalties that determine each other, so that their coefficients are not unique.

    Of the terms at the start, of which the fitted model may lack some.
    """
    assert model.certainty is not None
    sd = model.certainty.sd
    slopes = {factor.block for term in model.spec.fitted_terms if term.numeric is not None for factor in term.factors}
    told = [index for index in slopes if model.theta[model.spec.coefs(index)].any()]  # those of constant columns are 0
    left = {block.name: index for index, block in enumerate(model.spec.blocks) if block.columns or index in told}
    names = [
        block.name
        for block in aliased
        if block.name in left
        and block.name not in model.certainty.separated
        and np.isinf(sd[model.spec.coefs(left[block.name])]).any()
        and np.isinf(model.certainty.variances[left[block.name]])
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
    model: WideModel, certainty: Certainty, scores: Floats, training: Training, units: TargetUnits
) -> Certainty:
    """Add deviance and log likelihood of the training rows; scores (n, K) on the training scale, in `units`."""
    margins = scores * model.units.scale + model.units.centre + np.log(units.of_target)
    own, likely = deviance_and_likelihood(
        model.loss, margins, training.y, training.weight, certainty.dispersion, training.copies
    )
    return replace(certainty, deviance=own, log_likelihood=likely)


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


def _answered(model: WideModel, terms: list[SolverTerm], optimum: Optimum, posterior: Posterior) -> SolverResult:
    """Arrange the solver result by the coefficients of the model."""
    spec, coefs_scaled = model.spec, model.state[:, 0].reshape(-1, model.n_outputs)
    solver, components = optimum.solver, optimum.components
    found, sd = np.empty_like(coefs_scaled), np.zeros_like(coefs_scaled)
    samples = np.empty((len(coefs_scaled), posterior.samples[0].shape[1])) if posterior.samples else None
    variances, edf = np.empty(len(terms)), np.empty(len(terms))
    for number, term in enumerate(terms):
        own = spec.coefs(term.block)
        found[own], sd[own] = solver.theta[number], posterior.sd[number]
        variances[term.block], edf[term.block] = components.variance(number), components.edf[number]
        if samples is not None and posterior.samples:
            samples[own] = posterior.samples[number]
    joint = np.nan if components.used_jointly is None else components.used_jointly
    certainty = Certainty(
        variances, edf, components.pearson, sd, samples, working=components.dispersion, joint_edf=joint
    )
    together = None
    if posterior.together is not None:
        flat = components.posteriors.flat
        together = np.array([spec.coefs(terms[number].block).start for number in flat]), posterior.together
    return SolverResult(found, certainty, solver.mean_loss(), optimum.n_sweeps, optimum.converged, together)


def counted(model: WideModel, found: tuple[NDArray[np.int64], Floats]) -> WideModel:
    """The model with the number of training rows of each coefficient, and their weight."""
    return replace(model, counts=found[0], weights=found[1])
