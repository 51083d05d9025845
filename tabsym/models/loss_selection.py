"""``loss="auto"``: squared error, or a loss with a log link, by the score of held-out rows."""

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

from tabsym.codes.threads import one_blas_thread
from tabsym.design.layout import Layout
from tabsym.design.sources import Coder
from tabsym.interactions.search import AutoInteractions
from tabsym.losses.loss import LOSSES, Loss
from tabsym.models.begin import NO_MEMORY, blank_of, code_table
from tabsym.models.config import Config
from tabsym.models.data import Training
from tabsym.models.fitting import Known
from tabsym.models.planning import plan_cuts, plan_layout
from tabsym.models.solving import solve_parameters
from tabsym.solvers.sgd.optimizers import ROUGHLY_CLOSE

Floats = NDArray[np.float64]


def _root_mean_square(errors: Floats, weight: Floats | None) -> float:
    return float(np.sqrt(np.average(np.square(errors), weights=weight)))


def _mean_absolute(errors: Floats, weight: Floats | None) -> float:
    return float(np.average(np.abs(errors), weights=weight))


PLAIN_ERRORS = {"neg_root_mean_squared_error": _root_mean_square, "neg_mean_absolute_error": _mean_absolute}
"""What is asked for most, without scikit-learn's checks: they take a fifth of the time of fitting a small model."""


class Scoring:
    """A score of predictions, the higher the better.

    Parameters
    ----------
    scoring : str or callable
        A scorer of scikit-learn, or its name; it is called with predictions alone, not with the table.

    Raises
    ------
    ValueError
        Where the name is not known.
    """

    def __init__(self, scoring: Any) -> None:
        self._scoring = scoring
        self._errors = PLAIN_ERRORS.get(scoring) if isinstance(scoring, str) else None
        self._scorer = _find_scorer(scoring) if self._errors is None else None

    def score(self, predicted: Floats, y: Floats, weight: Floats | None) -> float:
        """Of predictions (n,), which are finite, for targets (n,); a `ValueError` where there is no such number."""
        if self._scorer is None:
            assert self._errors is not None
            return -self._errors(predicted - y, weight)
        weights = {} if weight is None else {"sample_weight": weight}
        try:
            score = float(self._scorer(_Predicted(predicted), np.zeros((len(predicted), 1)), y, **weights))
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(
                f"scoring={_name_of(self._scoring)} can't score numbers with these targets"
                f"{' and weights' if weights else ''} ({_in_users_words(error)}); use 'neg_root_mean_squared_error', "
                "'neg_mean_absolute_error' or another scorer of regressions."
            ) from error
        if np.isnan(score):
            raise ValueError(
                f"scoring={_name_of(self._scoring)} gave NaN; use a scorer that gives a number for every prediction."
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
    return str(error).rstrip(".").replace(_Predicted.__name__, "the model")


class _Predicted(RegressorMixin, BaseEstimator):
    """Predictions that were made, as scorers want them."""

    def __init__(self, predicted: Floats) -> None:
        self.predicted = predicted

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Floats:
        return self.predicted


Places = NDArray[np.int64]

FIRST = ("squared_error", "poisson")
"""Tried first: a sum, and a product of what categories do; where the product is better, others with that link."""

OTHERS = ("gamma", "tweedie")

TELLING = 5_000
"""With so many rows only that one of the others is tried whose variance goes with the mean as that of rows held out:
over fifteen targets the error is as far above that of the best loss (2.46 % for 2.44 % by both). Of fewer rows both
are tried: on generated tables of 300 it would be 1.55 % for 1.44 %."""

MOST_ROWS = 25_000
"""Losses are compared on a random sample of larger tables, which is hardly worse than all rows."""

HELD_OUT = 0.4
"""Of these, the share that they are compared on: with a fifth or a third of them the amounts are as good."""

SMALL, SPLITS = 5_000, 2
"""Of fewer rows the scores are the mean of so many splits, whose held-out rows differ: on generated tables of 1,500
rows the error above the best loss's is three fifths of one split's, of 300 rows nine tenths; of 6,000 the same."""

GAMMAS_POWER = 2.0
"""Of the mean, that the variance goes with: poisson's is 1, tweedie's between, as it is asked for."""

LEAST_RESIDUAL = 1e-3
"""Of what was predicted: the logarithm of a residual of nearly 0 says nothing."""

ROUGH, ROUGH_OF_SMALL = 1e-3, 1e-4
"""Newton's tolerance, at least, while losses are compared, which differ by more, and that of small tables, of which
each row weighs more; variances of rare categories are left to the evidence, without rows held out."""

LEAST_ROWS = 30
"""With fewer, the loss is squared."""


@one_blas_thread()
def choose_loss(
    config: Config, training: Training, losses: dict[str, Loss], scoring: Any, rng: np.random.RandomState
) -> tuple[Loss, dict[str, float], Known]:
    """The loss of the best score on rows held out, the scores, best first, and what was learned of the table.

    Parameters
    ----------
    config : Config
    training : Training
        Of rows that all have a weight.
    losses : mapping of str -> Loss
        By name, with their parameters.
    scoring : str or callable
        A scorer of scikit-learn, or its name; it is called with predictions alone, not with the table.
    rng : RandomState
    """
    by = Scoring(scoring)
    n_rows = len(training.y)
    order = rng.permutation(n_rows)[:MOST_ROWS]
    possible = [name for name in losses if _fits(LOSSES[name], training.y)]
    if n_rows < LEAST_ROWS or training.y.min() == training.y.max():
        possible = possible[:1]
    known = Known(plan_cuts(config, training, losses["poisson"]), {})  # bins are those of every regression loss
    if len(possible) == 1:
        return losses[possible[0]], {possible[0]: np.nan}, known
    trials = _trials(_rough(config, n_rows), training, order, known, by, rng)

    def score(name: str) -> float:
        try:
            return float(np.mean([trial.score(losses[name]) for trial in trials]))
        except ValueError:
            if name == "squared_error":  # deviances have no score for predictions below 0
                return -np.inf
            raise

    def scores(names: tuple[str, ...]) -> dict[str, float]:
        return {name: score(name) for name in names if name in possible}

    found = scores(FIRST)
    if found.get("poisson", -np.inf) > found.get("squared_error", -np.inf):
        found |= scores(OTHERS if n_rows < TELLING or "gamma" not in possible else (_nearest(trials[0], losses),))
    ranked = sorted(found, key=lambda name: -found[name])
    return losses[ranked[0]], {name: found[name] for name in ranked}, known


def _nearest(trial: _Trial, losses: dict[str, Loss]) -> str:
    """Of the other losses, gamma and tweedie, the one whose variance goes with the mean as that of rows held out."""
    power = power_of_variance(trial.predicted["poisson"], trial.held_out.y, trial.held_out.weight)
    return "gamma" if power > (GAMMAS_POWER + losses["tweedie"].parameter) / 2.0 else "tweedie"


def power_of_variance(predicted: Floats, y: Floats, weight: Floats | None) -> float:
    """The power of the mean that variances go with, by rows (n,) and what was predicted for them, above 0.

    Twice the slope of the logarithm of residuals by that of predictions: a few outliers hardly move it.
    """
    predicted = np.maximum(predicted, np.finfo(float).tiny)
    logs = np.log(predicted)
    residuals = np.log(np.maximum(np.abs(y - predicted), LEAST_RESIDUAL * predicted))
    apart = logs - np.average(logs, weights=weight)
    if weight is not None:
        apart *= weight
    spread = float(apart @ logs)
    return 2.0 * float(apart @ residuals) / spread if spread > 0.0 else 1.0


def _splits(order: Places) -> list[tuple[Places, Places]]:
    """Rows to fit and rows to score; of small tables several times over, on other rows each time."""
    n_held_out = int(len(order) * HELD_OUT)
    n_splits = SPLITS if len(order) < SMALL else 1
    turned = [np.roll(order, -split * n_held_out) for split in range(n_splits)]
    return [(rows[n_held_out:], rows[:n_held_out]) for rows in turned]


def _fits(loss: Loss, y: Floats) -> bool:
    least = float(y.min())
    return least > loss.lowest if loss.lowest_open else least >= loss.lowest


def _rough(config: Config, n_rows: int) -> Config:
    """How models are fitted while losses are compared: without interactions that are chosen, and less settled."""
    tol = max(config.newton.tol, ROUGH if n_rows >= SMALL else ROUGH_OF_SMALL)
    close = max(config.newton.close, ROUGHLY_CLOSE)
    rough = replace(config.newton, tol=tol, close=close, samples=0, rare_rows=0, verbose=0)
    config = replace(config, optimizer=rough)
    interactions = 1 if isinstance(config.interactions, AutoInteractions) else config.interactions
    return replace(config, interactions=interactions, verbose=0)


def _trials(
    config: Config, training: Training, order: Places, known: Known, scoring: Scoring, rng: np.random.RandomState
) -> list[_Trial]:
    layout = plan_layout(config, training, config.interactions, known.cuts)  # type: ignore[arg-type]
    coder = layout.coder(training.table, config.n_jobs, known.raws)
    training.with_fixed(layout, coder.numbers, 1)  # what has no finite value is told of by its row in the whole table
    return [_Trial(config, training, split, scoring, rng, layout, coder) for split in _splits(order)]


class _Trial:
    """Models of one loss after the other, fitted to the same rows and scored on others.

    The rows are coded once, from the columns of the whole table: `layout` is planned, but knows no categories; `coder`
    is of the whole table.
    """

    def __init__(
        self,
        config: Config,
        training: Training,
        split: tuple[Places, Places],
        scoring: Scoring,
        rng: np.random.RandomState,
        layout: Layout,
        coder: Coder,
    ) -> None:
        self.config, self.scoring, self.rng = config, scoring, rng
        self.predicted: dict[str, Floats] = {}  # by a loss, of the rows held out
        seen, self.held_out = training.targets(split[0]), training.targets(split[1])
        self._layout, self._coded = code_table(config, layout, coder.take(split[0]), seen, 1)
        self._coder = coder.take(split[1], self._layout.sources)

    def score(self, loss: Loss) -> float:
        """The score of a loss on the rows held out; minus infinity where it runs away."""
        state = np.random.RandomState(self.rng.randint(2**31))  # each loss by itself, however many are tried
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                predicted = loss.predict(self._margins(loss, state))[:, 0]
            except ValueError:  # it ran away
                return -np.inf
        self.predicted[loss.name] = predicted
        if not np.isfinite(predicted).all():
            return -np.inf
        return self.scoring.score(predicted, self.held_out.y, self.held_out.weight)

    def _margins(self, loss: Loss, rng: np.random.RandomState) -> Floats:
        """Linear predictors (n, 1) of the held-out rows by a model of the others."""
        blank = blank_of(self.config, NO_MEMORY, self._layout, self._coded, loss, 1, rng)
        model = solve_parameters(self.config, self.config.newton, blank, self._coded, rng)
        margins = model.margins_of(self._coder, len(self.held_out.y), self.config.n_jobs)
        return margins if self.held_out.offset is None else margins + self.held_out.offset
