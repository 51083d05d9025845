"""Identified coefficients and their posterior standard deviations; separation.

Each term sums to zero over its categories, with weights (a sum-to-zero constraint): its mean is in the intercept.
Coefficients whose maximum likelihood estimates are infinite, as of a category without events, are found and reported.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from tabsym.design.model_spec import ModelSpec
from tabsym.design.sources import Flag
from tabsym.design.units import Units
from tabsym.losses.loss import LOGISTIC, MULTINOMIAL, POISSON, TWEEDIE
from tabsym.messages import warn_user
from tabsym.models.model import WideModel, products_of, source_of
from tabsym.models.start import with_state
from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.fit import Optimum
from tabsym.solvers.newton.information import UNIDENTIFIED
from tabsym.solvers.newton.posteriors_classes import MulticlassPosteriors
from tabsym.solvers.newton.rows import MulticlassRows, SingleOutputRows
from tabsym.solvers.newton.terms import Prior, SolverTerm
from tabsym.solvers.newton.uncertainty import (
    CovariancesByTerm,
    JointCovariance,
    TermCovariance,
    Uncertainty,
    covariance_of,
    whole_covariance,
)

Floats = NDArray[np.float64]


def centering_weights(model: WideModel, *, by_category: NDArray[np.bool_]) -> dict[int, Floats]:
    """The weights (coefficients of the block,), of sum 1, of the mean of each block of `ModelSpec.means`.

    `by_category` (blocks,): whether all coefficients of a block have equal weight. A block without rows has no mean.
    """
    by_block, spec = {}, model.spec
    for mean in spec.means:
        source = source_of(spec, mean.block)
        if isinstance(source, Flag) and any(  # of a number that is missing in some training rows only
            moments.weight > 0.0
            for numeric, moments in zip(spec.numerics, model.numerics, strict=True)
            if source.column in numeric.columns
        ):
            continue
        coefs = spec.coefs(mean.block)
        weights = np.ones(coefs.stop - coefs.start) if by_category[mean.block] else model.weights[coefs]
        total = weights.sum()
        if total > 0.0:
            by_block[mean.block] = weights / total
    return by_block


def move_means(spec: ModelSpec, theta: Floats, weights: dict[int, Floats], not_moved: Collection[int] = ()) -> Floats:
    """Coefficients (coefficients, K) with the means of blocks moved to scalars, as the intercept; linear in `theta`.

    `not_moved`: blocks whose mean is subtracted but not moved. For standard deviations: the mean of random effects is 0
    under their prior, and the intercept is that of the population, as in mixed models.
    """
    theta = theta.copy()
    for mean in spec.means:
        if mean.block not in weights:
            continue
        coefs = spec.coefs(mean.block)
        level = weights[mean.block] @ theta[coefs]
        theta[coefs] -= level
        if mean.moved_to is not None and mean.block not in not_moved:
            theta[spec.coefs(mean.moved_to)] += mean.times * level
    return theta


def identify(model: WideModel, weights: dict[int, Floats]) -> WideModel:
    """Recenter the model: move the means of its terms to the intercept, on both scales.

    With several classes coefficients are also centred over the classes, as softmax is invariant to a common shift.
    Coefficients that are averaged over their updates and the current ones are moved alike: the mean of those to come
    would add the levels of both otherwise.
    """
    k, units, spec, column = model.n_outputs, model.units, model.spec, model.columns.predicted
    state = model.state.copy()
    before = units.to_user(spec, state[:, column].reshape(-1, k))
    theta = move_means(spec, before, weights)
    if model.loss.code == MULTINOMIAL:
        additive = np.ones(spec.n_coefs, dtype=np.bool_)  # of blocks that no term multiplies by another one
        for factor in (factor for term in spec.fitted_terms if len(term.factors) > 1 for factor in term.factors):
            additive[spec.coefs(factor.block)] = False
        theta[additive] -= theta[additive].mean(axis=1, keepdims=True)
    state[:, column] = units.to_training(spec, theta).ravel()
    if column:
        current = units.to_user(spec, state[:, 0].reshape(-1, k)) + (theta - before)
        state[:, 0] = units.to_training(spec, current).ravel()
    by_category = tuple(
        (block, bool((block_weights == block_weights[0]).all())) for block, block_weights in weights.items()
    )
    return replace(with_state(model, state, model.n_steps), centred=by_category)


Weights = dict[int, Floats]

MAX_NUMBERS = 4_000_000
"""Maximum size of the matrix that maps training-scale to reported coefficients."""


def has_mean_by_category(spec: ModelSpec, terms: Sequence[SolverTerm], solver: BlockDescent) -> NDArray[np.bool_]:
    """Whether the mean of each block (blocks,) weights categories equally: those with a ridge penalty."""
    by_category = np.zeros(len(spec.blocks), dtype=np.bool_)
    for index, term in enumerate(terms):
        by_category[term.block] = term.prior is Prior.RIDGE and solver.precision[index] > 0.0
    return by_category


def is_random_effect(model: WideModel, variances: Floats) -> NDArray[np.bool_]:
    """Whether a block (blocks,) of a formula is a random effect, by its variance, infinite for unpenalized ones."""
    return np.isfinite(variances) & np.array([block.source is not None for block in model.spec.blocks])


def joint_covariance_of(
    model: WideModel, solver: BlockDescent, weights: Weights, by_category: NDArray[np.bool_]
) -> JointCovariance | None:
    """The joint covariance of terms that are not dropped, with the means in `weights`; None where it is too large."""
    active, means = solver.active, _weights_by_term(solver, weights, by_category)
    n_numbers = model.spec.n_coefs * sum(solver.terms[index].size for index in active)
    return whole_covariance(solver, active, means) if active and n_numbers <= MAX_NUMBERS else None


def _weights_by_term(solver: BlockDescent, weights: Weights, by_category: NDArray[np.bool_]) -> dict[int, Floats]:
    """The weights of the means that are not identified, by term."""
    by_term = {}
    for index in solver.active:
        block = solver.terms[index].block
        if block in weights and not by_category[block]:
            by_term[index] = weights[block]
    return by_term


def with_joint_covariances(
    model: WideModel,
    uncertainty: Uncertainty,
    optimum: Optimum,
    weights: Weights,
    by_category: NDArray[np.bool_],
    whole: JointCovariance | None,
) -> Uncertainty:
    """Add the joint posterior covariances of all coefficients, as far as they are computable.

    Parameters
    ----------
    model : WideModel
    uncertainty : Uncertainty
        On the original scale, each block by itself.
    optimum : Optimum
    weights : dict of block -> (q,)
        The weights of the means that are moved to the intercept.
    by_category : (blocks,)
        See `has_mean_by_category`.
    whole : JointCovariance or None
        See `joint_covariance_of`.
    """
    spec, solver, dispersion = model.spec, optimum.solver, optimum.components.pearson
    terms, active = solver.terms, solver.active
    random_effects = np.flatnonzero(by_category).tolist()
    by_block: dict[int, TermCovariance] = {}
    sd = uncertainty.sd.copy()
    total_sd, joint = uncertainty.total_sd, dict[str, Any]()
    if whole is not None:
        blocks = [terms[index].block for index in active]
        by_block, joint = _of_whole(model, blocks, whole, dispersion, weights, random_effects)
    elif active and model.n_outputs == 1:
        parts = CovariancesByTerm(solver, active, _weights_by_term(solver, weights, by_category))
        if uncertainty.samples is not None and not parts.is_exact:
            by_block = _of_samples(spec, uncertainty.samples, weights, random_effects)
        else:
            total_sd = np.full_like(sd, np.nan)
            by_block = _of_parts(model, parts, terms, weights, sd, total_sd, dispersion, random_effects)
    elif isinstance(optimum.components.posteriors, MulticlassPosteriors):
        by_block = _of_classes(model, optimum.components.posteriors, active)
    for block, covariance in by_block.items() if whole is not None or model.n_outputs == 1 else ():
        sd[spec.coefs(block)] = np.sqrt(np.maximum(covariance.variances(), 0.0))
    for index in np.flatnonzero(solver.dropped):
        sd[spec.coefs(terms[index].block)] = np.nan
        by_block.pop(terms[index].block, None)
    covariances = tuple(by_block.get(block) for block in range(len(spec.blocks)))
    return replace(uncertainty, sd=sd, covariances=covariances, total_sd=total_sd, **joint)


def with_joint_covariances_of_formula(
    model: WideModel, uncertainty: Uncertainty, whole: JointCovariance, dispersion: float, weights: Weights
) -> Uncertainty:
    """Add the joint posterior covariances of all coefficients of a formula's model."""
    spec, sd = model.spec, uncertainty.sd.copy()
    random_effects = np.flatnonzero(is_random_effect(model, uncertainty.variances)).tolist()
    whole = replace(
        whole,
        unknown=np.array([_as_shown(model, directions, weights, k) for k, directions in enumerate(whole.unknown)]),
    )
    by_block, joint = _of_whole(model, range(len(spec.blocks)), whole, dispersion, weights, random_effects)
    for block, covariance in by_block.items():
        sd[spec.coefs(block)] = np.sqrt(np.maximum(covariance.variances(), 0.0))
    return replace(uncertainty, sd=sd, covariances=tuple(by_block.values()), **joint)


SHOWN = 1e-3
"""Of what it is a difference of: a change of a shown coefficient below this is rounding."""


def _as_shown(model: WideModel, unknown: Floats, weights: Weights, k: int) -> Floats:
    """Directions (coefficients, r) without information, on the training scale, as shown coefficients change along them.

    Which are differences from the mean of their term, and factors of products over their mean, of linear predictor k.
    """
    spec, units = model.spec, replace(model.units, centre=0.0)
    change, size = np.zeros_like(unknown), np.zeros_like(unknown)
    for block in range(len(spec.blocks)):  # one by one, as what they have in common cancels up to rounding
        part, coefs = np.zeros_like(unknown), spec.coefs(block)
        part[coefs] = unknown[coefs]
        part = units.to_user(spec, part)
        size += np.abs(part)
        part = move_means(spec, part, weights)
        change, size = change + part, size + np.abs(part)
    for product in products_of(model):
        for block, level in product.means.items():
            coefs = spec.coefs(block)
            of_rows = model.weights[coefs] if spec.blocks[block].source is not None else np.ones(1)
            change[coefs] -= model.theta[coefs, k, None] / level[k] * (of_rows / of_rows.sum() @ change[coefs])
    for block in range(len(spec.blocks)):
        coefs = spec.coefs(block)
        change[coefs][np.abs(change[coefs]) <= SHOWN * size[coefs].max(axis=0)] = 0.0
    return units.to_training(spec, change)


def _of_whole(
    model: WideModel,
    blocks: Sequence[int],
    whole: JointCovariance,
    dispersion: float,
    weights: Weights,
    random_effects: Collection[int],
) -> tuple[dict[int, TermCovariance], dict[str, Any]]:
    """From the joint covariance of some blocks on the training scale; and `Uncertainty.joint` and `joint_index`."""
    spec = model.spec
    coefs = np.concatenate([np.arange(spec.coefs(block).start, spec.coefs(block).stop) for block in blocks])
    units = replace(model.units, centre=0.0)  # a shift has no variance

    def converted(rows: Floats, not_moved: Collection[int] = ()) -> Floats:
        padded = np.zeros((spec.n_coefs, rows.shape[1]))
        padded[coefs] = rows
        return move_means(spec, units.to_user(spec, padded), weights, not_moved)[coefs]

    joint = np.array([converted(converted(dispersion * matrix).T) for matrix in whole.matrix])
    fixed = [converted(dispersion * matrix, random_effects) for matrix in whole.matrix]
    scalars = {mean.moved_to for mean in spec.means}

    def converted_directions(unknown: Floats) -> Floats:
        padded = np.zeros((len(unknown), spec.n_coefs, unknown.shape[2]))
        padded[:, coefs] = unknown
        return np.array([_without_rounding(spec, units, directions) for directions in padded])

    everywhere, unidentified = converted_directions(whole.unknown), None
    unknown = everywhere[:, coefs]
    if whole.unidentified is not None:
        unidentified = np.any(converted_directions(whole.unknown * whole.unidentified[:, None])[:, coefs], axis=2).T
    by_block, start = {}, 0
    for block in blocks:
        at = slice(start, start + spec.sizes[block])
        matrices = joint[:, at, at]
        if block in scalars:
            matrices = np.array([converted(matrix[at].T, random_effects)[at] for matrix in fixed])
        unidentified_coefs = None
        if unidentified is not None:  # of many categories each has little of a direction, and all are in it
            length = np.square(unknown[:, at]).sum(axis=(0, 2))
            is_large = (length > UNIDENTIFIED * length.max()) & (len(length) > 1)
            unidentified_coefs = unidentified[at] | is_large[:, None]
        by_block[block] = covariance_of(
            np.ascontiguousarray(matrices), whole.uninformed[at], unknown[:, at], unidentified_coefs
        )
        start += spec.sizes[block]
    index = np.full(spec.n_coefs, -1)
    index[coefs] = np.arange(len(coefs))
    fields = {"joint": joint, "joint_index": index}
    return by_block, fields | {"unknown": everywhere} if unknown.any() else fields


def _without_rounding(spec: ModelSpec, units: Units, directions: Floats) -> Floats:
    """Directions (coefficients, r) on the original scale, without what is left of changes that cancel.

    As in the intercept, of two slopes of nearly the same column that change in opposite directions.
    """
    change, size = np.zeros_like(directions), np.zeros_like(directions)
    for block in range(len(spec.blocks)):
        part, coefs = np.zeros_like(directions), spec.coefs(block)
        part[coefs] = directions[coefs]
        part = units.to_user(spec, part)
        change, size = change + part, size + np.abs(part)
    return np.where(np.abs(change) > SHOWN * size, change, 0.0)


def _of_classes(model: WideModel, posteriors: MulticlassPosteriors, active: Sequence[int]) -> dict[int, TermCovariance]:
    """Of larger models for several classes: each term given the other penalized ones, as its deviations are.

    Classes have no dispersion.
    """
    moved = model.spec.centering_blocks
    by_block = {}
    for index in active:
        block = posteriors.solver.terms[index].block
        covariance = None if block in moved else posteriors.covariance(index)
        if covariance is not None:
            by_block[block] = covariance.rescaled(float(model.units.sizes[block]), None)
    return by_block


def _of_samples(
    spec: ModelSpec, samples: Floats, weights: Weights, random_effects: Collection[int]
) -> dict[int, TermCovariance]:
    """From posterior samples (coefficients, M) of the deviations from the optimum, on the original scale."""
    deviations = move_means(spec, samples, weights, random_effects) / np.sqrt(samples.shape[1])
    by_block = {}
    for block in range(len(spec.blocks)):
        block_deviations = deviations[spec.coefs(block)]
        by_block[block] = TermCovariance(np.zeros((len(block_deviations), 1)), block_deviations[None])
    return by_block


def _of_parts(
    model: WideModel,
    parts: CovariancesByTerm,
    terms: Sequence[SolverTerm],
    weights: Weights,
    sd: Floats,
    total_sd: Floats,
    dispersion: float,
    random_effects: Collection[int],
) -> dict[int, TermCovariance]:
    """Block by block; `sd` and `total_sd` (coefficients, 1) are set for the scalars that means and centring are moved
    to, `total_sd` with the means of random effects.
    """
    spec, units = model.spec, model.units
    sizes = np.array([units.sizes[term.block] for term in terms]) * np.sqrt(dispersion)
    weights_by_index = {index: weights[term.block] for index, term in enumerate(terms) if term.block in weights}
    covariances, variance = parts(sizes, weights_by_index)
    moved = spec.centering_blocks
    moved |= {mean.moved_to for mean in spec.means if mean.moved_to is not None and mean.block in weights}
    position_of = {term.block: index for index, term in enumerate(terms)}
    by_block = {}
    for index, covariance in covariances.items():
        block = terms[index].block
        if block not in moved:
            by_block[block] = covariance
        elif terms[index].size == 1:
            fixed = {moved_block: by for moved_block, by in weights.items() if moved_block not in random_effects}
            for means, into in ((fixed, sd), (weights, total_sd)):
                by = _row_of_centering(spec, units, means, block)
                total = variance({position_of[summand]: by[summand] for summand in by if summand in position_of})
                into[spec.coefs(block)] = np.sqrt(max(dispersion * total, 0.0))
    return by_block


def _row_of_centering(spec: ModelSpec, units: Units, weights: Weights, scalar: int) -> dict[int, Floats]:
    """Weights, by block, of the training-scale coefficients in a scalar that means and centring are moved to."""
    row: dict[int, Floats] = {scalar: np.ones(1) * units.sizes[scalar]}

    def add(block: int, by: Floats) -> None:
        row[block] = row.get(block, 0.0) + by * units.sizes[block]

    def add_centring(of: int, by: Floats) -> None:
        for index, term in spec.centering_terms.items():
            if term.factors[0].block == of:
                slope = spec.fitted_terms[index]
                add(slope.factors[0].block, -by * slope.constant * units.means[slope.numeric] / term.constant)

    add_centring(scalar, np.ones(1))
    for mean in spec.means:
        if mean.moved_to == scalar and mean.block in weights:
            add(mean.block, mean.times * weights[mean.block])
            add_centring(mean.block, mean.times * weights[mean.block])
    return row


def at_means_of_numbers(model: WideModel, block: int) -> tuple[Floats, TermCovariance | None]:
    """Coefficients of a block (q, K), with slopes by its categories where the numbers are at their means.

    The coefficients themselves are those for a number of 0, often far from all rows: they and their deviations are
    large there. And their covariance, None where that is not known, as of many coefficients.
    """
    spec, coefs, uncertainty = model.spec, model.spec.coefs(block), model.uncertainty
    assert uncertainty is not None
    theta, covariance = model.theta[coefs], uncertainty.covariances[block] if uncertainty.covariances else None
    times = {}
    for index, term in spec.centering_terms.items():
        slope = spec.fitted_terms[index]
        if term.factors[0].block == block and slope.numeric is not None:
            times[slope.factors[0].block] = slope.constant * model.numerics[slope.numeric].mean / term.constant
    if spec.blocks[block].source is None or not times:
        return theta, covariance
    theta = theta + sum(by * model.theta[spec.coefs(slope)] for slope, by in times.items())
    if not uncertainty.joint.size:
        return theta, None
    q, parts = len(theta), {block: 1.0} | times
    by = np.concatenate([size * np.eye(q) for size in parts.values()], axis=1)
    at = uncertainty.joint_index[np.concatenate([np.arange(spec.n_coefs)[spec.coefs(part)] for part in parts])]
    by, at = by[:, at >= 0], at[at >= 0]
    matrices = by @ uncertainty.joint[:, at][:, :, at] @ by.T
    return theta, covariance_of(matrices, np.zeros(q, dtype=np.bool_), np.empty((len(matrices), q, 0)))


# -- separation ------------------------------------------------------------------------------------

CERTAIN = 0.02
"""Mean log loss below which the training classes count as completely separated; of one among several, the variance
that is left of its indicator, over that without a model."""

FAR_SCORE, SHARE_OF_SCORE = 6.0, 0.3
"""Separation: the absolute contribution to the linear predictor above which targets are almost certain, and the ratio
of the standard deviation to it above which the coefficient is poorly determined. Where no row's prediction is that
certain, large coefficients cancel, as those of categories next to a number that these nearly determine."""

CERTAIN_SCORE = 30.0
"""The contribution, of classes, that is infinite whatever its deviation: of probabilities that round to 0 none is
left."""

CERTAIN_IN_PRODUCTS = 1e-12
"""The least probability of a class below which a formula that multiplies counts as separated."""


def without_doubt(model: WideModel, solver: BlockDescent) -> NDArray[np.bool_]:
    """Mask (coefficients, K) of unpenalized coefficients of which all informative rows are predicted with certainty.

    Of a sum of terms: those of categories, and slopes of numbers that mostly have one value, such as indicators. The
    further an iteration goes, the less information is left, and rounding leaves none at all.
    """
    certain = np.zeros((model.spec.n_coefs, model.n_outputs), dtype=np.bool_)
    for index, term in enumerate(solver.terms):
        coefs, is_free = model.spec.coefs(term.block), solver.precision[index] == 0.0 and not solver.dropped[index]
        if is_free and model.spec.blocks[term.block].source is None:
            certain[coefs] = _is_certain_off_the_mode(solver, term)
        elif is_free and not len(term.x):
            hessians, weights = solver.hessian_diagonal(index), model.weights[coefs][:, None]
            usual = hessians.sum(axis=0) / weights.sum()  # of a row: little where a class is rare
            certain[coefs] = hessians < np.exp(-FAR_SCORE) * usual * weights
    return certain


def completely_separated(solver: BlockDescent) -> NDArray[np.bool_]:
    """Which of several classes (K,) the model tells from all others with certainty; of rows in memory."""
    rows = solver.rows
    if not isinstance(rows, MulticlassRows):
        return np.zeros(rows.width, dtype=np.bool_)
    weight = rows.weight if len(rows.weight) else np.ones(len(rows.y))
    shares = np.bincount(rows.y.astype(np.int64), weight, minlength=rows.width) / weight.sum()
    left = weight @ (rows.probabilities * (1.0 - rows.probabilities)) / weight.sum()
    return np.asarray(left < CERTAIN * shares * (1.0 - shares))


def _is_certain_off_the_mode(solver: BlockDescent, term: SolverTerm) -> bool:
    """Whether the rows where a number has another value than most have no information: the intercept fits the others.

    Of one linear predictor, and of rows in memory.
    """
    if not len(term.x) or not isinstance(solver.rows, SingleOutputRows):
        return False
    values, counts = np.unique(term.x, return_counts=True)
    if 2 * counts.max() < len(term.x):
        return False
    squares, hessians = np.square(term.x - values[counts.argmax()]), solver.grads()[1]
    weight = solver.rows.weight if len(solver.rows.weight) else np.ones(len(squares))
    usual = hessians.sum() / weight.sum()
    return bool(0.0 < hessians @ squares < np.exp(-FAR_SCORE) * usual * (weight @ squares))


def with_separation(
    caller: str,
    model: WideModel,
    loss: float,
    least: float,
    certain: NDArray[np.bool_] | None,
    complete: NDArray[np.bool_] | None,
) -> WideModel:
    """The model with infinite deviations where estimates are infinite, with a warning.

    `loss`: the mean loss of the training rows; `least`: see `BlockDescent.least_predicted`; `certain`: see
    `without_doubt`; `complete`: see `completely_separated`. Differences of other categories keep their deviations, but
    not those from the mean of the term, which is infinite too.
    """
    uncertainty, spec = model.uncertainty, model.spec
    certain = np.zeros((spec.n_coefs, model.n_outputs), dtype=np.bool_) if certain is None else certain
    complete = np.zeros(model.n_outputs, dtype=np.bool_) if complete is None else complete
    complete = complete | (model.loss.for_classes and loss < CERTAIN)
    separated = _separated(model, complete, certain) if least < np.exp(-FAR_SCORE) else {}
    if not separated or uncertainty is None:
        if least < CERTAIN_IN_PRODUCTS:
            _warn_of_products(caller, model)
        return model
    names = tuple(spec.blocks[block].name for block in separated)
    separated |= _slopes_beside(model, separated)
    move = np.zeros((spec.n_coefs, model.n_outputs))
    for block, is_infinite in separated.items():  # different numbers, so that two of them have no known difference
        move[spec.coefs(block)] = is_infinite * (1.0 + np.arange(len(is_infinite)) / len(is_infinite))[:, None]
    if model.loss.code == MULTINOMIAL:
        move -= move.mean(axis=1, keepdims=True)
    by_rows = centering_weights(model, by_category=np.zeros(len(spec.blocks), dtype=np.bool_))
    move = move_means(spec, move, {block: by_rows[block] for block in separated if block in by_rows})
    unknown = move.T[:, :, None]
    if uncertainty.unknown is not None:
        unknown = np.concatenate([uncertainty.unknown, unknown], axis=2)
    covariances = list(uncertainty.covariances)
    for block, covariance in enumerate(covariances):
        direction = move[spec.coefs(block)].T[:, :, None]
        if covariance is not None and direction.any():
            more = direction if covariance.unknown is None else np.concatenate([covariance.unknown, direction], axis=2)
            covariances[block] = replace(covariance, unknown=more)
    sd = np.where(move != 0.0, np.inf, uncertainty.sd)
    uncertainty = replace(uncertainty, sd=sd, covariances=tuple(covariances), unknown=unknown, separated=names)
    listed = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
    warn_user(
        f"{caller}: {listed} separate{'s' if len(names) == 1 else ''} the target completely (separation): the "
        "maximum likelihood estimates are infinite, and the coefficients shown are where the solver ended, with "
        "infinite standard deviations; penalize them (alpha='auto', or a number), or leave out the column that gives "
        "the target away.",
        ConvergenceWarning,
    )
    return replace(model, uncertainty=uncertainty)


def _separated(
    model: WideModel, complete: NDArray[np.bool_], certain: NDArray[np.bool_]
) -> dict[int, NDArray[np.bool_]]:
    """The coefficients (q, K) of unpenalized terms whose optimum is infinite, by block."""
    uncertainty, spec = model.uncertainty, model.spec
    if uncertainty is None or model.loss.code not in (LOGISTIC, MULTINOMIAL, POISSON, TWEEDIE):
        return {}
    infinite = {}
    for term in spec.fitted_terms:
        block = term.factors[0].block
        if not spec.stands_alone(term) or np.isfinite(uncertainty.variances[block]) or term == spec.intercept:
            continue
        coefs = spec.coefs(block)
        if term.numeric is not None and not complete.any():
            # others that are large may be of nearly collinear numbers, and cancel
            is_infinite = certain[coefs] & (uncertainty.sd[coefs] > SHARE_OF_SCORE * np.abs(model.theta[coefs]))
            if is_infinite.any():
                infinite[block] = is_infinite
            continue
        moments = None if term.numeric is None else model.numerics[term.numeric]
        size = 1.0 if moments is None else moments.spread_about(moments.mean)
        known = np.isfinite(uncertainty.sd[coefs]) | certain[coefs]
        if spec.blocks[block].source is not None:
            known &= model.counts[coefs][:, None] > 0
        theta, sd = (
            (model.theta[coefs], uncertainty.sd[coefs])
            if moments is not None
            else _from_base(model, block, certain[coefs])
        )
        score, sd = size * np.abs(theta), size * sd
        is_infinite = known & (score > FAR_SCORE) & (sd > SHARE_OF_SCORE * score)
        is_infinite |= known & (score > CERTAIN_SCORE) & model.loss.for_classes  # where no information is left
        is_infinite |= certain[coefs] & (score > FAR_SCORE) & ~np.isfinite(uncertainty.sd[coefs])
        if term.numeric is not None:
            is_infinite &= complete | certain[coefs]
        if model.n_outputs > 1:  # all classes' differences from their mean are; a change of all alike would be none
            largest = np.arange(model.n_outputs) == score.argmax(axis=1)[:, None]
            is_infinite &= largest | ~is_infinite.all(axis=1, keepdims=True)
        if is_infinite.any():
            infinite[block] = is_infinite
    return infinite


def _slopes_beside(model: WideModel, separated: dict[int, NDArray[np.bool_]]) -> dict[int, NDArray[np.bool_]]:
    """The unpenalized slopes of categories whose main effect is infinite: no row is informative of them either."""
    spec, uncertainty = model.spec, model.uncertainty
    assert uncertainty is not None
    slopes = {}
    for index, main_effect in spec.centering_terms.items():
        term, is_infinite = spec.fitted_terms[index], separated.get(main_effect.factors[0].block)
        block = term.factors[0].block
        if is_infinite is not None and spec.stands_alone(term) and np.isinf(uncertainty.variances[block]):
            slopes[block] = is_infinite | separated.get(block, False)
    return slopes


def _from_base(model: WideModel, block: int, certain: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Differences from the category that is known best, and their deviations (q, K).

    Not from the mean of the term, which one infinite coefficient takes with it.
    """
    uncertainty, coefs = model.uncertainty, model.spec.coefs(block)
    assert uncertainty is not None
    theta, covariance = at_means_of_numbers(model, block)
    if covariance is None or len(theta) == 1:
        return theta, uncertainty.sd[coefs]
    diagonal = np.where(np.isfinite(covariance.diagonal), covariance.diagonal, 0.0)
    factor = covariance.factor
    variance = diagonal.T + np.square(factor - factor.mean(axis=1, keepdims=True)).sum(axis=2)
    variance = np.where(np.isfinite(uncertainty.sd[coefs]).T, variance, np.inf)
    is_best = variance <= (1.0 + 1e-6) * variance.min(axis=1, keepdims=True)  # of two categories both
    uncertain = is_best & ~certain.T
    is_best = np.where(uncertain.any(axis=1, keepdims=True), uncertain, is_best)
    base, output = np.argmax(is_best * model.weights[coefs], axis=1), np.arange(model.n_outputs)
    between = np.square(factor - factor[output, base][:, None]).sum(axis=2).T
    return theta - theta[base, output], np.sqrt(diagonal + diagonal[base, output] + between)


def _warn_of_products(caller: str, model: WideModel) -> None:
    """Warn of unpenalized factors of products where a class is certain: their scales differ, and none is identified."""
    uncertainty, spec = model.uncertainty, model.spec
    if uncertainty is None or not model.loss.for_classes:
        return
    factors = {
        f.block: spec.blocks[f.block].name for term in spec.fitted_terms if len(term.factors) > 1 for f in term.factors
    }
    names = [name for block, name in factors.items() if not np.isfinite(uncertainty.variances[block])]
    if names:
        warn_user(
            f"{caller}: the classes of some rows are predicted with certainty (separation), so that coefficients of "
            f"{', '.join(map(repr, names[:5]))} or of other terms without penalties grow without end, and those shown "
            "are where the solver ended; penalize them (alpha='auto', or a number).",
            ConvergenceWarning,
        )
