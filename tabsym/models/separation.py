"""Separation: coefficients whose maximum likelihood estimates are infinite, as of a category without events."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from tabsym.losses.kernels import LOGISTIC, MULTINOMIAL, POISSON, TWEEDIE
from tabsym.models.identified import at_means_of_numbers, centering_weights, move_means
from tabsym.models.model import WideModel
from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.rows import MulticlassRows, SingleOutputRows
from tabsym.solvers.newton.terms import SolverTerm
from tabsym.warn import warn_user

Floats = NDArray[np.float64]

CERTAIN = 0.02
"""Mean log loss below which the training classes count as completely separated; of one among several, the variance
that is left of its indicator, over that without a model."""

FAR_SCORE, SHARE_OF_SCORE = 6.0, 0.3
"""Separation: the absolute contribution to the linear predictor above which targets are almost certain, and the ratio
of the standard deviation to it above which the coefficient is poorly determined. Where no row's prediction is that
certain, large coefficients cancel, as those of categories beside a number that these nearly determine."""

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
    found = np.zeros((model.spec.n_coefs, model.n_outputs), dtype=np.bool_)
    for index, term in enumerate(solver.terms):
        own, is_free = model.spec.coefs(term.block), solver.precision[index] == 0.0 and not solver.dropped[index]
        if is_free and model.spec.blocks[term.block].source is None:
            found[own] = _is_certain_off_the_mode(solver, term)
        elif is_free and not len(term.x):
            hessians, weights = solver.hessian_diagonal(index), model.weights[own][:, None]
            usual = hessians.sum(axis=0) / weights.sum()  # of a row: little where a class is rare
            found[own] = hessians < np.exp(-FAR_SCORE) * usual * weights
    return found


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
    """The model with infinite deviations where estimates are infinite, of which a warning tells.

    `loss`: the mean loss of the training rows; `least`: see `BlockDescent.least_predicted`; `certain`: see
    `without_doubt`; `complete`: see `completely_separated`. Differences of other categories keep their deviations, but
    not those from the mean of the term, which is infinite too.
    """
    certainty, spec = model.certainty, model.spec
    certain = np.zeros((spec.n_coefs, model.n_outputs), dtype=np.bool_) if certain is None else certain
    complete = np.zeros(model.n_outputs, dtype=np.bool_) if complete is None else complete
    complete = complete | (model.loss.for_classes and loss < CERTAIN)
    found = _separated(model, complete, certain) if least < np.exp(-FAR_SCORE) else {}
    if not found or certainty is None:
        if least < CERTAIN_IN_PRODUCTS:
            _warn_of_products(caller, model)
        return model
    names = tuple(spec.blocks[block].name for block in found)
    found |= _slopes_beside(model, found)
    move = np.zeros((spec.n_coefs, model.n_outputs))
    for block, is_infinite in found.items():  # different numbers, so that two of them have no known difference
        move[spec.coefs(block)] = is_infinite * (1.0 + np.arange(len(is_infinite)) / len(is_infinite))[:, None]
    if model.loss.code == MULTINOMIAL:
        move -= move.mean(axis=1, keepdims=True)
    by_rows = centering_weights(model, by_category=np.zeros(len(spec.blocks), dtype=np.bool_))
    move = move_means(spec, move, {block: by_rows[block] for block in found if block in by_rows})
    unknown = move.T[:, :, None]
    if certainty.unknown is not None:
        unknown = np.concatenate([certainty.unknown, unknown], axis=2)
    covariances = list(certainty.covariances)
    for block, own in enumerate(covariances):
        direction = move[spec.coefs(block)].T[:, :, None]
        if own is not None and direction.any():
            more = direction if own.unknown is None else np.concatenate([own.unknown, direction], axis=2)
            covariances[block] = replace(own, unknown=more)
    sd = np.where(move != 0.0, np.inf, certainty.sd)
    certainty = replace(certainty, sd=sd, covariances=tuple(covariances), unknown=unknown, separated=names)
    shown = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
    warn_user(
        f"{caller}: {shown} separate{'s' if len(names) == 1 else ''} the target completely (separation): the "
        "maximum likelihood estimates are infinite, and the coefficients shown are where the solver ended, with "
        "infinite standard deviations; penalize them (alpha='auto', or a number), or leave out the column that gives "
        "the target away.",
        ConvergenceWarning,
    )
    return replace(model, certainty=certainty)


def _separated(
    model: WideModel, complete: NDArray[np.bool_], certain: NDArray[np.bool_]
) -> dict[int, NDArray[np.bool_]]:
    """The coefficients (q, K) of unpenalized terms whose optimum is infinite, by block."""
    certainty, spec = model.certainty, model.spec
    if certainty is None or model.loss.code not in (LOGISTIC, MULTINOMIAL, POISSON, TWEEDIE):
        return {}
    found = {}
    for term in spec.fitted_terms:
        block = term.factors[0].block
        if not spec.stands_alone(term) or np.isfinite(certainty.variances[block]) or term == spec.intercept:
            continue
        own = spec.coefs(block)
        if term.numeric is not None and not complete.any():
            # others that are large may be of nearly collinear numbers, and cancel
            is_infinite = certain[own] & (certainty.sd[own] > SHARE_OF_SCORE * np.abs(model.theta[own]))
            if is_infinite.any():
                found[block] = is_infinite
            continue
        moments = None if term.numeric is None else model.numerics[term.numeric]
        size = 1.0 if moments is None else moments.spread_about(moments.mean)
        known = np.isfinite(certainty.sd[own]) | certain[own]
        if spec.blocks[block].source is not None:
            known &= model.counts[own][:, None] > 0
        theta, sd = (
            (model.theta[own], certainty.sd[own]) if moments is not None else _from_base(model, block, certain[own])
        )
        score, sd = size * np.abs(theta), size * sd
        is_infinite = known & (score > FAR_SCORE) & (sd > SHARE_OF_SCORE * score)
        is_infinite |= known & (score > CERTAIN_SCORE) & model.loss.for_classes  # where no information is left
        is_infinite |= certain[own] & (score > FAR_SCORE) & ~np.isfinite(certainty.sd[own])
        if term.numeric is not None:
            is_infinite &= complete | certain[own]
        if model.n_outputs > 1:  # all classes' differences from their mean are; a change of all alike would be none
            largest = np.arange(model.n_outputs) == score.argmax(axis=1)[:, None]
            is_infinite &= largest | ~is_infinite.all(axis=1, keepdims=True)
        if is_infinite.any():
            found[block] = is_infinite
    return found


def _slopes_beside(model: WideModel, found: dict[int, NDArray[np.bool_]]) -> dict[int, NDArray[np.bool_]]:
    """The unpenalized slopes of categories whose main effect is infinite: no row is informative of them either."""
    spec, certainty = model.spec, model.certainty
    assert certainty is not None
    slopes = {}
    for index, home in spec.centering_terms.items():
        term, is_infinite = spec.fitted_terms[index], found.get(home.factors[0].block)
        block = term.factors[0].block
        if is_infinite is not None and spec.stands_alone(term) and np.isinf(certainty.variances[block]):
            slopes[block] = is_infinite | found.get(block, False)
    return slopes


def _from_base(model: WideModel, block: int, certain: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Differences from the category that is known best, and their deviations (q, K).

    Not from the mean of the term, which one infinite coefficient takes with it.
    """
    certainty, own = model.certainty, model.spec.coefs(block)
    assert certainty is not None
    theta, covariance = at_means_of_numbers(model, block)
    if covariance is None or len(theta) == 1:
        return theta, certainty.sd[own]
    diagonal = np.where(np.isfinite(covariance.own), covariance.own, 0.0)
    factor = covariance.factor
    spread = diagonal.T + np.square(factor - factor.mean(axis=1, keepdims=True)).sum(axis=2)
    spread = np.where(np.isfinite(certainty.sd[own]).T, spread, np.inf)
    is_best = spread <= (1.0 + 1e-6) * spread.min(axis=1, keepdims=True)  # of two categories both
    uncertain = is_best & ~certain.T
    is_best = np.where(uncertain.any(axis=1, keepdims=True), uncertain, is_best)
    base, output = np.argmax(is_best * model.weights[own], axis=1), np.arange(model.n_outputs)
    between = np.square(factor - factor[output, base][:, None]).sum(axis=2).T
    return theta - theta[base, output], np.sqrt(diagonal + diagonal[base, output] + between)


def _warn_of_products(caller: str, model: WideModel) -> None:
    """Warn of unpenalized factors of products where a class is certain: their scales differ, and one cannot be told."""
    certainty, spec = model.certainty, model.spec
    if certainty is None or not model.loss.for_classes:
        return
    found = {
        f.block: spec.blocks[f.block].name for term in spec.fitted_terms if len(term.factors) > 1 for f in term.factors
    }
    names = [name for block, name in found.items() if not np.isfinite(certainty.variances[block])]
    if names:
        warn_user(
            f"{caller}: the classes of some rows are predicted with certainty (separation), so that coefficients of "
            f"{', '.join(map(repr, names[:5]))} or of other terms without penalties grow without end, and those shown "
            "are where the solver ended; penalize them (alpha='auto', or a number).",
            ConvergenceWarning,
        )
