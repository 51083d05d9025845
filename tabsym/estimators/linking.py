"""``loss="choose"``: squared loss, or one with a log link, by the score of rows held out.

Crosses that ``interactions="auto"`` would look for are left out of the comparison: over thirty targets the losses so
chosen are as good in the median (benchmarks/evidence/losses.py), in a quarter of the time.
"""

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
from tabsym.estimators.beginning import NO_MEMORY, Coded, blank_of
from tabsym.estimators.config import Config
from tabsym.estimators.fitting import code_for_newton, fit_model
from tabsym.estimators.planning import plan_cuts
from tabsym.estimators.solving import solve
from tabsym.estimators.training_data import Training
from tabsym.wide.coding import Coder
from tabsym.wide.crosses import AutoCrosses
from tabsym.wide.layout import Layout
from tabsym.wide.losses import LOSSES, Loss
from tabsym.wide.model import WideModel
from tabsym.wide.optimizers import Newton

Floats = NDArray[np.float64]

FIRST = ("squared", "poisson")
"""Tried first: a sum, and a product of what symbols do; where the product is better, the other two with that link."""

OTHERS = ("gamma", "tweedie")

MOST_ROWS = 25_000
"""Losses are compared on a random sample of larger tables, which is hardly worse than all rows."""

HELD_OUT = 0.4
"""Of these, the share that they are compared on: with a fifth or a third of them the amounts are as good."""

ROUGH = 1e-3
"""Newton's tolerance, at least, while losses are compared, which differ by more; and variances of rare symbols are left
to the evidence, without rows held out."""

SMALL, SPLITS = 5_000, 2
"""Of fewer rows the scores are the mean of so many splits, whose held-out rows differ: on generated tables of 1,500
rows the error above that of the best loss is half of one split's, of 300 rows four fifths; of 6,000 the same."""

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
    trials = [_Trial(_rough(config), *split, scoring, rng) for split in _splits(training, order)]

    def scores(names: tuple[str, ...]) -> dict[str, float]:
        return {n: float(np.mean([trial.score(losses[n]) for trial in trials])) for n in names if n in possible}

    found = scores(FIRST)
    if found.get("poisson", -np.inf) > found["squared"]:
        found |= scores(OTHERS)
    ranked = sorted(found, key=lambda name: -found[name])
    return losses[ranked[0]], {name: found[name] for name in ranked}


def _splits(training: Training, order: NDArray[np.int64]) -> list[tuple[Training, Training]]:
    """Rows to fit and rows to score; of small tables several times over, on other rows each time."""
    n_held_out = int(len(order) * HELD_OUT)
    n_splits = SPLITS if len(order) < SMALL else 1
    turned = [np.roll(order, -split * n_held_out) for split in range(n_splits)]
    return [(training.take(rows[n_held_out:]), training.take(rows[:n_held_out])) for rows in turned]


def _fits(loss: Loss, y: Floats) -> bool:
    least = float(y.min())
    return least > loss.lowest if loss.lowest_open else least >= loss.lowest


def _rough(config: Config) -> Config:
    """How models are fitted while losses are compared: without crosses that are chosen, and less settled."""
    if isinstance(config.optimizer, Newton):
        rough = replace(config.optimizer, tol=max(config.optimizer.tol, ROUGH), draws=0, rare_rows=0)
        config = replace(config, optimizer=rough)
    interactions = 1 if isinstance(config.interactions, AutoCrosses) else config.interactions
    return replace(config, interactions=interactions, verbose=0)


class _Trial:
    """Models of one loss after the other, fitted to the same rows and scored on others; each table is coded once."""

    def __init__(
        self, config: Config, seen: Training, held_out: Training, scoring: Any, rng: np.random.RandomState
    ) -> None:
        self.config, self.seen, self.held_out, self.scoring, self.rng = config, seen, held_out, scoring, rng
        self.scorer = _find_scorer(scoring)
        self._raws: dict[str, RawCodes] = {}
        self._coded: tuple[Layout, Coded] | None = None
        self._coder: Coder | None = None

    def score(self, loss: Loss) -> float:
        """The score of a loss on the rows held out; minus infinity where it runs away."""
        state = np.random.RandomState(self.rng.randint(2**31))  # each loss by itself, however many are tried
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                model = self._fit(loss, state)
            except ValueError:  # it ran away
                return -np.inf
        table, n_jobs = self.held_out.table, self.config.n_jobs
        self._coder = self._coder or model.coder(table, n_jobs)
        predicted = loss.predict(model.margins(table, n_jobs, self._coder))[:, 0]
        return self._score(predicted) if np.isfinite(predicted).all() else -np.inf

    def _fit(self, loss: Loss, rng: np.random.RandomState) -> WideModel:
        config, newton = self.config, self.config.optimizer
        if not isinstance(newton, Newton):
            return fit_model(config, self.seen, loss, 1, rng, self._raws).model
        if self._coded is None:
            cuts = plan_cuts(config, self.seen, loss)
            self._coded = code_for_newton(config, self.seen, 1, config.interactions, cuts, self._raws)
        layout, coded = self._coded
        return solve(config, newton, blank_of(config, NO_MEMORY, layout, coded, loss, 1, rng), coded, rng)[0]

    def _score(self, predicted: Floats) -> float:
        y, weight = self.held_out.y, self.held_out.weight
        weights = {} if weight is None else {"sample_weight": weight}
        try:
            score = float(self.scorer(_Known(predicted), np.zeros((len(predicted), 1)), y, **weights))
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(
                f"scoring={_name_of(self.scoring)} can't score numbers with these targets"
                f"{' and weights' if weights else ''} ({_in_users_words(error)}); use 'neg_root_mean_squared_error', "
                "'neg_mean_absolute_error' or another scorer of regressions."
            ) from error
        if np.isnan(score):
            raise ValueError(
                f"scoring={_name_of(self.scoring)} gave NaN; use a scorer that gives a number for every prediction."
            )
        return score


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


def _name_of(scoring: Any) -> str:
    """As the user wrote it, or the name of the function."""
    return repr(scoring) if isinstance(scoring, str) else getattr(scoring, "__name__", type(scoring).__name__)


def _in_users_words(error: Exception) -> str:
    """What a scorer says, without its stop and without the name of what stands for the model here."""
    return str(error).rstrip(".").replace(_Known.__name__, "the model")


class _Known(RegressorMixin, BaseEstimator):
    """Predictions that were made, as scorers want them."""

    def __init__(self, predicted: Floats) -> None:
        self.predicted = predicted

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Floats:
        return self.predicted
