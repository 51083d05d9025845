"""``loss="auto"``: selects squared error or a loss with a log link by the score on held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning

from tabsym.design.content import Keys, ShuffledRows, content_of_rows
from tabsym.design.model_spec import ModelSpec
from tabsym.design.sources import Coder
from tabsym.interactions.search import AutoInteractions
from tabsym.jit import one_blas_thread
from tabsym.losses.loss import LOSSES, Loss
from tabsym.models.bins import Precomputed, plan_cuts
from tabsym.models.checks import below_domain
from tabsym.models.config import Config, defaults_of
from tabsym.models.data import Training
from tabsym.models.fitting import build_spec
from tabsym.models.solving import solve_parameters
from tabsym.models.start import NO_SGD_STATE, code_table, initial_model_of
from tabsym.solvers.newton import ROUGHLY_CLOSE

Floats = NDArray[np.float64]


PLAIN_ERRORS: dict[str, Callable[[Floats, Floats | None], float]] = {
    "neg_root_mean_squared_error": lambda errors, weight: np.sqrt(np.average(np.square(errors), weights=weight)),
    "neg_mean_absolute_error": lambda errors, weight: np.average(np.abs(errors), weights=weight),
}
"""The most common scores, without scikit-learn's checks, which take long for small models
(`benchmarks/evidence/constants_models.md`)."""


class Scoring:
    """A scorer of predictions; higher is better.

    Parameters
    ----------
    scoring : str or callable
        A scorer of scikit-learn, or its name; it is called with predictions alone, not with the table.

    Raises
    ------
    ValueError
        For an unknown name.
    """

    def __init__(self, scoring: Any) -> None:
        self._scoring = scoring
        self._errors = PLAIN_ERRORS.get(scoring) if isinstance(scoring, str) else None
        self._scorer: Callable[..., float] | None = scoring if callable(scoring) else None
        if self._errors is None and self._scorer is None:
            from sklearn.metrics import get_scorer  # 0.1 s, which most fits do without

            try:
                self._scorer = get_scorer(scoring or "")
            except (ValueError, TypeError):
                raise ValueError(
                    f"scoring={scoring!r} is not known; use "
                    "'neg_root_mean_squared_error', 'neg_mean_absolute_error' or another "
                    "scorer of scikit-learn."
                ) from None

    def score(self, predicted: Floats, y: Floats, weight: Floats | None) -> float:
        """Score finite predictions (n,) for targets (n,); a `ValueError` where the score is undefined."""
        if self._scorer is None:
            assert self._errors is not None
            return -float(self._errors(predicted - y, weight))
        weights = {} if weight is None else {"sample_weight": weight}
        try:
            score = float(self._scorer(_Predicted(predicted), np.zeros((len(predicted), 1)), y, **weights))
        except (TypeError, ValueError, AttributeError) as error:
            words = str(error).rstrip(".").replace(_Predicted.__name__, "the model")  # without the internal name
            raise ValueError(
                f"scoring={_name_of(self._scoring)} can't score numbers with these targets"
                f"{' and weights' if weights else ''} ({words}); use 'neg_root_mean_squared_error', "
                "'neg_mean_absolute_error' or another scorer of regressions."
            ) from error
        if np.isnan(score):
            raise ValueError(
                f"scoring={_name_of(self._scoring)} gave NaN; use a scorer that gives a number for every prediction."
            )
        return score


def _name_of(scoring: Any) -> str:
    """The name as the user wrote it, or that of the function."""
    return repr(scoring) if isinstance(scoring, str) else getattr(scoring, "__name__", type(scoring).__name__)


class _Predicted(RegressorMixin, BaseEstimator):
    """Given predictions as a fitted estimator, for scikit-learn's scorers."""

    def __init__(self, predicted: Floats) -> None:
        self.predicted = predicted

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Floats:
        return self.predicted


FIRST = ("squared_error", "poisson")
"""The losses tried first: additive and multiplicative effects; if poisson is better, `OTHERS` are tried too."""

OTHERS, SPREAD = ("gamma", "tweedie"), 1.0
"""`OTHERS` are tried in any case where the standard deviation of the target is above `SPREAD` times its mean: poisson's
loss of targets of several orders of magnitude counts little but the largest
(`benchmarks/evidence/constants_models.md`)."""

TELLING = 5_000
"""From this number of rows on, only the one of `OTHERS` is tried whose variance function fits the held-out rows; on
smaller tables both are, because the estimate of the variance power is less reliable
(`benchmarks/evidence/constants_models.md`)."""

MAX_ROWS = 25_000
"""Losses of larger tables are compared on a random sample of this size, which is hardly worse than all rows."""

PARTS, HELD_OUT = 5, 2
"""Parts of these rows, and how many of them are held out; the selection depends little on it
(`benchmarks/evidence/constants_models.md`)."""

SMALL, SPLITS = 5_000, 2
"""With fewer rows the score is the mean over this number of splits, with different held-out rows, which helps on tables
of some thousand rows or less (`benchmarks/evidence/constants_models.md`)."""

GAMMAS_POWER = 2.0
"""The power of the mean in gamma's variance function; poisson's is 1, tweedie's lies between, as given."""

MIN_RESIDUAL = 1e-3
"""Minimum residual, relative to the prediction, for the logarithm of residuals in `power_of_variance`."""

ROUGH, ROUGH_OF_SMALL = 1e-3, 1e-4
"""Minimum tolerance of Newton's method while losses are compared, which differ by more, and that for small tables,
where each row has more influence; variances of infrequent terms are estimated by REML, without held-out rows."""

BLOCKS, ERRORS = 20, 1.73
"""Blocks of rows of the jackknife, and the standard errors by which tweedie must be ahead of poisson for whole numbers
(5 %, one-sided, of 19 degrees of freedom): the two hardly differ for counts, so that chance chose
(benchmarks/counts.md)."""

MIN_ROWS = 30
"""With fewer rows the loss is the squared error."""


@one_blas_thread()
def choose_loss(
    config: Config, training: Training, losses: dict[str, Loss], scoring: Any, rng: np.random.RandomState
) -> tuple[Loss, dict[str, float], Precomputed]:
    """The loss of the best held-out score, the scores, best first, and the precomputed bins and columns.

    Parameters
    ----------
    config : Config
    training : Training
        With rows of positive weight only.
    losses : mapping of str -> Loss
        By name, with their parameters.
    scoring : str or callable
        A scorer of scikit-learn, or its name; it is called with predictions alone, not with the table.
    rng : RandomState
    """
    by = Scoring(scoring)
    n_rows = training.n_rows
    possible = [name for name in losses if not below_domain(training.y, LOSSES[name]).any()]
    if n_rows < MIN_ROWS or training.y.min() == training.y.max():
        possible = possible[:1]
    cuts = plan_cuts(config, training, losses["poisson"])  # all regression losses have the same bins
    precomputed = Precomputed.of(cuts, training, rng)
    if len(possible) == 1:
        return losses[possible[0]], {possible[0]: np.nan}, precomputed
    trials = _trials(_rough(config, n_rows), training, precomputed, by, rng)

    def score(name: str) -> float:
        try:
            return float(np.mean([trial.score(losses[name]) for trial in trials]))
        except ValueError:
            if name == "squared_error":  # deviance scorers reject predictions below 0
                return -np.inf
            raise

    def scores(names: tuple[str, ...]) -> dict[str, float]:
        return {name: score(name) for name in names if name in possible}

    by_loss = scores(FIRST)
    by_poisson = by_loss.get("poisson", -np.inf)
    mean = np.average(training.y, weights=training.weight)
    variance = np.average(np.square(training.y - mean), weights=training.weight)
    is_dispersed = variance > (SPREAD * mean) ** 2
    if by_poisson > -np.inf and (by_poisson > by_loss.get("squared_error", -np.inf) or is_dispersed):
        by_loss |= scores(OTHERS if n_rows < TELLING or "gamma" not in possible else (_nearest(trials[0], losses),))
    ranked = sorted(by_loss, key=lambda name: -by_loss[name])
    best = ranked[0]
    if (
        best == "tweedie"
        and (training.y == np.floor(training.y)).all()
        and not _is_certain(trials, "tweedie", "poisson")
    ):
        best = "poisson"
    return losses[best], {name: by_loss[name] for name in ranked}, precomputed


def with_loss_of(wide: Any, fitted: Any) -> Any:
    """A clone with the loss that another fit selected, so that all folds have the same scale; `wide` if it has one."""
    if getattr(wide, "loss", None) != "auto":
        return wide
    options = {"scoring": defaults_of(type(wide))["scoring"]}  # `scoring` is for "auto" only
    return clone(wide).set_params(loss=fitted.loss_, **options)


def _is_certain(trials: list[_LossTrial], better: str, alternative: str) -> bool:
    """Whether the gain in the mean score of the trials is more than `ERRORS` times its jackknifed standard error."""
    gains = [trial.gain(better, alternative) for trial in trials]
    error = np.sqrt(sum(error**2 for _, error in gains))
    return float(sum(gain for gain, _ in gains)) > ERRORS * float(error)


def _nearest(trial: _LossTrial, losses: dict[str, Loss]) -> str:
    """The one of gamma and tweedie whose variance power is nearer to that of the held-out rows."""
    power = power_of_variance(trial.predicted["poisson"], trial.held_out.y, trial.held_out.weight)
    return "gamma" if power > (GAMMAS_POWER + losses["tweedie"].parameter) / 2.0 else "tweedie"


def power_of_variance(predicted: Floats, y: Floats, weight: Floats | None) -> float:
    """The power of the mean in the variance function, from rows (n,) and their predictions, above 0.

    Twice the regression slope of log absolute residuals on log predictions, which is robust to a few outliers.
    """
    predicted = np.maximum(predicted, np.finfo(float).tiny)
    logs = np.log(predicted)
    residuals = np.log(np.maximum(np.abs(y - predicted), MIN_RESIDUAL * predicted))
    deviations = logs - np.average(logs, weights=weight)
    if weight is not None:
        deviations *= weight
    sum_of_squares = float(deviations @ logs)
    return 2.0 * float(deviations @ residuals) / sum_of_squares if sum_of_squares > 0.0 else 1.0


def _splits(rows: ShuffledRows, rng: np.random.RandomState) -> list[tuple[ShuffledRows, ShuffledRows]]:
    """Training rows and held-out rows; for small tables several splits, with different held-out rows."""
    shuffled, part = rows.deal(PARTS, rng)
    n_splits = SPLITS if rows.n_rows < SMALL else 1
    held_out = [part // HELD_OUT == split for split in range(n_splits)]
    return [(shuffled.take(~is_held_out), shuffled.take(is_held_out)) for is_held_out in held_out]


def _content(training: Training, coder: Coder, rows: NDArray[np.intp]) -> Keys:
    """The content of some rows (m,) as it is before they are coded."""
    coded = ((name, raw.codes[rows], raw.keys()) for name, raw in coder.column_codes.items())
    numbers = ((name, values[rows]) for name, values in coder.numbers.items())
    weight, offset = (
        np.empty(0) if values is None else values[rows] for values in (training.weight_of_one, training.offset)
    )
    return content_of_rows(coded, numbers, training.y[rows], weight, offset)


_NO_CONTENT = np.empty(0, dtype=np.uint64)


def _rough(config: Config, n_rows: int) -> Config:
    """The configuration of fits while losses are compared: no interaction selection, and a looser tolerance.

    Where interactions will be searched, the model has other terms in the end, and variances are those that take least
    time.
    """
    tol = max(config.newton.tol, ROUGH if n_rows >= SMALL else ROUGH_OF_SMALL)
    close = max(config.newton.close, ROUGHLY_CLOSE)
    is_searched = isinstance(config.interactions, AutoInteractions)
    rough = replace(config.newton, tol=tol, close=close, samples=0, rare_rows=0, joint=not is_searched, verbose=0)
    return replace(config, optimizer=rough, interactions=1 if is_searched else config.interactions, verbose=0)


def _trials(
    config: Config,
    training: Training,
    precomputed: Precomputed,
    scoring: Scoring,
    rng: np.random.RandomState,
) -> list[_LossTrial]:
    spec = build_spec(config, training, config.interactions, precomputed.cuts)  # type: ignore[arg-type]
    coder = spec.coder(training.table, config.n_jobs, precomputed.column_codes)
    training.with_fixed(spec, coder.numbers, 1)  # errors give the row in the whole table
    sampler = precomputed.sampler and precomputed.sampler.for_most(MAX_ROWS)
    some = ShuffledRows(np.arange(len(training.y)), _NO_CONTENT, training.copies) if sampler is None else sampler.rows
    rows = ShuffledRows.of(_content(training, coder, some.rows), some.copies, rng).thin(MAX_ROWS, rng)
    rows = replace(rows, rows=some.rows[rows.rows])
    return [_LossTrial(config, training, split, scoring, rng, spec, coder) for split in _splits(rows, rng)]


class _LossTrial:
    """Fits of several losses to the same training rows, scored on the same held-out rows.

    The rows are coded once, from the columns of the whole table: `spec` has no categories yet; `coder` is that of
    the whole table.
    """

    def __init__(
        self,
        config: Config,
        training: Training,
        split: tuple[ShuffledRows, ShuffledRows],
        scoring: Scoring,
        rng: np.random.RandomState,
        spec: ModelSpec,
        coder: Coder,
    ) -> None:
        self.config, self.scoring, self.rng = config, scoring, rng
        self.predicted: dict[str, Floats] = {}  # predictions for the held-out rows, by loss
        seen, self.held_out = (training.targets(part.rows, part.copies) for part in split)
        self._spec, self._coded = code_table(config, spec, coder.take(split[0].rows, split[0].copies), seen, 1)
        self._coder, self._content = coder.take(split[1].rows, sources=self._spec.sources), split[1].content

    def score(self, loss: Loss) -> float:
        """The score of a loss on the held-out rows; minus infinity where the fit diverges."""
        state = np.random.RandomState(self.rng.randint(2**31))  # the same for a loss, whichever others are tried
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                predicted = loss.predict(self._margins(loss, state))[:, 0]
            except ValueError:  # it diverged
                return -np.inf
        self.predicted[loss.name] = predicted
        if not np.isfinite(predicted).all():
            return -np.inf
        return self.scoring.score(predicted, self.held_out.y, self.held_out.weight)

    def gain(self, better: str, alternative: str) -> tuple[float, float]:
        """The difference of the scores of two losses that were tried, and its standard error by leaving blocks out."""

        copy_weight, copies = self.held_out.weight_of_one, self.held_out.copies

        def difference(rows: ShuffledRows) -> float:
            weight = (
                None if copy_weight is None else copy_weight[rows.rows] * (1 if rows.copies is None else rows.copies)
            )
            y, predicted = (
                self.held_out.y[rows.rows],
                (self.predicted[name][rows.rows] for name in (better, alternative)),
            )
            first, second = (self.scoring.score(scores, y, weight) for scores in predicted)
            return first - second

        everything = ShuffledRows(np.arange(len(self.held_out.y)), self._content, copies)
        blocks = min(BLOCKS, everything.n_rows)
        shuffled, block = everything.deal(blocks, self.rng)
        parts = np.array([difference(shuffled.take(block != left_out)) for left_out in range(blocks)])
        return difference(everything), float(np.sqrt((blocks - 1) * parts.var()))

    def _margins(self, loss: Loss, rng: np.random.RandomState) -> Floats:
        """Linear predictors (n, 1) of the held-out rows."""
        blank = initial_model_of(self.config, NO_SGD_STATE, self._spec, self._coded, loss, 1, rng)
        model = solve_parameters(self.config, blank, self._coded, rng)
        margins = model.margins_of(self._coder, len(self.held_out.y), self.config.n_jobs)
        return margins if self.held_out.offset is None else margins + self.held_out.offset
