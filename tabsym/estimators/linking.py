"""``loss="choose"``: squared loss, or one with a log link, by the score of rows held out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer

from tabsym.codes import RawCodes
from tabsym.estimators.config import Config
from tabsym.estimators.fitting import fit_model
from tabsym.estimators.training_data import Training
from tabsym.wide.crosses import Chosen
from tabsym.wide.losses import LOSSES, Loss
from tabsym.wide.optimizers import Newton

Floats = NDArray[np.float64]

FIRST = ("squared", "poisson")
"""Tried first: a sum, and a product of what symbols do; where the product is better, the other two with that link."""

OTHERS = ("gamma", "tweedie")

MOST_ROWS = 25_000
"""Losses are compared on a random sample of larger tables: on rossmann's and chicago_taxi's no worse than on all rows
(three random states, five folds each: between 1.2 % worse and .9 % better, mostly better), in half the time."""

HELD_OUT = 0.4
"""Of these, the share that they are compared on: with a fifth or a third of them the amounts are as good."""

ROUGHER = 10.0
"""Newton's tolerance is so much larger while losses are compared, which differ by more; and variances of rare symbols
are left to the evidence, without rows held out, in two thirds of the time."""

LEAST_ROWS = 30
"""With fewer, the loss is squared."""


def choose_loss(
    config: Config, training: Training, losses: dict[str, Loss], scoring: Any, rng: np.random.RandomState
) -> tuple[Loss, dict[str, float]]:
    """The loss of the best score on rows held out, and the scores, best first.

    Parameters
    ----------
    config : Config
    training : Training
    losses : mapping of str -> Loss
        By name, with their parameters.
    scoring : str or callable
        A scorer of scikit-learn, or its name; it is called with predictions alone, not with the table.
    rng : RandomState
    """
    if training.offset is not None:
        raise ValueError(
            "loss='choose' compares scales, and an offset belongs to one of them; name the loss beside an offset."
        )
    _find_scorer(scoring)
    n_rows = len(training.y)
    order = rng.permutation(n_rows)[:MOST_ROWS]
    possible = [name for name in (*FIRST, *OTHERS) if _fits(LOSSES[name], training.y)]
    if n_rows < LEAST_ROWS or training.y.min() == training.y.max():
        possible = ["squared"]
    if possible == ["squared"]:
        return losses["squared"], {"squared": np.nan}
    n_held_out = int(len(order) * HELD_OUT)
    held_out, seen = training.take(order[:n_held_out]), training.take(order[n_held_out:])
    found: dict[str, float] = {}
    raws: dict[str, RawCodes] = {}
    chosen: list[Chosen] | None = None
    for name in (name for name in FIRST if name in possible):
        found[name], chosen = _score(config, losses[name], seen, held_out, scoring, rng, raws)
    if found.get("poisson", -np.inf) > found["squared"]:
        for name in (name for name in OTHERS if name in possible):  # with its crosses: they have the same link
            found[name], _ = _score(config, losses[name], seen, held_out, scoring, rng, raws, chosen)
    ranked = sorted(found, key=lambda name: -found[name])
    return losses[ranked[0]], {name: found[name] for name in ranked}


def _fits(loss: Loss, y: Floats) -> bool:
    least = float(y.min())
    return least > loss.lowest if loss.lowest_open else least >= loss.lowest


def _score(
    config: Config,
    loss: Loss,
    seen: Training,
    held_out: Training,
    scoring: Any,
    rng: np.random.RandomState,
    raws: dict[str, RawCodes],
    chosen: list[Chosen] | None = None,
) -> tuple[float, list[Chosen] | None]:
    """The score of a loss, and the crosses where they are chosen: those given, if any."""
    scorer = _find_scorer(scoring)
    state = np.random.RandomState(rng.randint(2**31))  # each loss by itself, however many are tried
    if isinstance(config.optimizer, Newton):
        rough = replace(config.optimizer, tol=ROUGHER * config.optimizer.tol, draws=0, rare_rows=0)
        config = replace(config, optimizer=rough)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            fitted = fit_model(replace(config, verbose=0), seen, loss, 1, state, raws, chosen)
        except ValueError:  # it ran away
            return -np.inf, None
    predicted = loss.predict(fitted.model.margins(held_out.table, config.n_jobs))[:, 0]
    if not np.isfinite(predicted).all():
        return -np.inf, fitted.chosen
    weight = {} if held_out.weight is None else {"sample_weight": held_out.weight}
    try:
        score = float(scorer(_Known(predicted), np.zeros((len(predicted), 1)), held_out.y, **weight))
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"scoring={scoring!r} can't score numbers with these targets"
            f"{' and weights' if weight else ''} ({error}); use 'neg_root_mean_squared_error', "
            "'neg_mean_absolute_error' or another scorer of regressions."
        ) from error
    if np.isnan(score):
        raise ValueError(f"scoring={scoring!r} gave NaN; use a scorer that gives a number for every prediction.")
    return score, fitted.chosen


def _find_scorer(scoring: Any) -> Callable[..., float]:
    if callable(scoring):
        return scoring
    try:
        return get_scorer(scoring or "")
    except (ValueError, TypeError):
        raise ValueError(
            f"scoring={scoring!r} is not known; use "
            "'neg_root_mean_squared_error', 'neg_mean_absolute_error' or another "
            "scorer of scikit-learn."
        ) from None


class _Known(RegressorMixin, BaseEstimator):
    """Predictions that were made, as scorers want them."""

    def __init__(self, predicted: Floats) -> None:
        self.predicted = predicted

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Floats:
        return self.predicted
