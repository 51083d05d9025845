"""Metrics: scores of predictions, and the contributions of rows, for standard errors; folds scored by them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from sklearn import metrics

from tabsym.compare.splits import Indices, Split, SplitPlan
from tabsym.compare.table.prepare import CLASSES, Prepared

Floats = NDArray[np.float64]

_SMALLEST = 1e-12  # of predicted counts, as none of them may be 0 where a logarithm is taken
_EPSILON = float(np.finfo(np.float64).eps)  # of probabilities, as in scikit-learn


@dataclass(frozen=True)
class Metric:
    """A score: its name, whether larger is better, and how to compute it.

    Parameters
    ----------
    name : str
    larger_is_better : bool
    score : callable (y, p) or (y, p, weight) -> float
        Regression: values and predictions (n,). Classification: codes (n,) of the sorted classes, and probabilities
        (n, classes). `weight` (n,) is passed if the comparison has weights; the callable must then take it.
    by_row : callable (y, p, weight) -> array of shape (n,), optional
        The contribution of each row; the score is their weighted mean. For scores that are not means, such as the
        AUC, a first-order approximation (influence values). Without it, tests use the scores of the folds only.

    Examples
    --------
    >>> import numpy as np
    >>> from tabsym.compare import Metric
    >>> cost = Metric("cost", larger_is_better=False, score=lambda y, p: float(np.mean(np.maximum(y - p, 0))))
    >>> cost.of(np.array([1.0, 2.0]), np.array([0.0, 3.0]), None)
    0.5
    """

    name: str
    larger_is_better: bool
    score: Callable[..., float]
    by_row: Callable[[Floats, Floats, Floats | None], Floats] | None = None

    def of(self, y: Floats, p: Floats, weight: Floats | None) -> float:
        """The score of these predictions.

        Parameters
        ----------
        y : ndarray of shape (n_rows,)
        p : ndarray
            Predictions, or probabilities.
        weight : ndarray of shape (n_rows,) or None

        Returns
        -------
        float
        """
        return float(self.score(y, p) if weight is None else self.score(y, p, weight))


def _squares(y: Floats, p: Floats, w: Floats | None) -> Floats:
    return (y - p) ** 2


def _rmse(y: Floats, p: Floats, w: Floats | None = None) -> float:
    return float(np.sqrt(np.average(_squares(y, p, w), weights=w)))


def _rmse_rows(y: Floats, p: Floats, w: Floats | None) -> Floats:
    """The square root's slope is 1 / (2 rmse)."""
    rmse = max(_rmse(y, p, w), 1e-300)
    return np.asarray(rmse + (_squares(y, p, w) - rmse**2) / (2 * rmse))


def _errors(y: Floats, p: Floats, w: Floats | None) -> Floats:
    return np.abs(y - p)


def _r2(y: Floats, p: Floats, w: Floats | None = None) -> float:
    """One row has no variance to explain."""
    return float(metrics.r2_score(y, p, sample_weight=w)) if len(y) > 1 else float("nan")


def _r2_rows(y: Floats, p: Floats, w: Floats | None) -> Floats:
    """1 less a ratio of two means, both of which the rows move."""
    squares, off = _squares(y, p, w), (y - np.average(y, weights=w)) ** 2
    variance = max(float(np.average(off, weights=w)), 1e-300)
    ratio = float(np.average(squares, weights=w)) / variance
    return np.asarray(1 - squares / variance + ratio * (off / variance - 1))


def _deviances(y: Floats, p: Floats, w: Floats | None) -> Floats:
    p = np.maximum(p, _SMALLEST)
    return np.asarray(2 * (xlogy(y, y / p) - y + p))


def _surprises(y: Floats, p: Floats, w: Floats | None) -> Floats:
    """- ln of the probability of what came, the probabilities made to add up to 1."""
    observed = p[np.arange(len(y)), y.astype(np.int64)] / np.maximum(p.sum(axis=1), _SMALLEST)
    return np.asarray(-np.log(np.clip(observed, _EPSILON, 1.0)))


def _hits(y: Floats, p: Floats, w: Floats | None) -> Floats:
    return np.asarray((p.argmax(axis=1) == y).astype(np.float64))


def _briers(y: Floats, p: Floats, w: Floats | None) -> Floats:
    """Of two classes those of the second one, as scikit-learn has it."""
    if p.shape[1] == 2:
        return np.asarray((p[:, 1] - y) ** 2)
    return np.asarray((p**2).sum(axis=1) - 2 * p[np.arange(len(y)), y.astype(np.int64)] + 1)


def _auc_rows(y: Floats, p: Floats, w: Floats | None) -> Floats:
    """By the share of the other class that each row is rightly apart from, ties half (DeLong et al. 1988)."""
    score, positive = p[:, 1], y == 1
    w = np.ones(len(y)) if w is None else w
    order = np.argsort(score, kind="stable")
    first, last = (np.searchsorted(score[order], score, side=side) for side in ("left", "right"))
    right = np.empty(len(y))
    for of_class, sign in ((positive, 1), (~positive, -1)):
        others = np.append(0.0, np.cumsum(np.where(of_class, 0.0, w)[order]))
        below = (others[first] + others[last])[of_class] / (2 * max(others[-1], 1e-300))
        right[of_class] = below if sign > 0 else 1 - below
    auc = np.average(right[positive], weights=w[positive])
    class_weight = np.where(positive, w[positive].sum(), w[~positive].sum())
    return np.asarray(auc + (right - auc) * w.sum() / class_weight)


def _mean(name: str, rows: Callable[[Floats, Floats, Floats | None], Floats], *, larger_is_better: bool) -> Metric:
    """A metric that is the mean of what the rows add."""

    def score(y: Floats, p: Floats, w: Floats | None = None) -> float:
        return float(np.average(rows(y, p, w), weights=w))

    return Metric(name, larger_is_better, score, rows)


def _of_scikit(score: Callable[..., Any], column: int) -> Callable[..., float]:
    return lambda y, p, w=None: float(score(y, p[:, column], sample_weight=w))


_LOG_LOSS = _mean("log_loss", _surprises, larger_is_better=False)
_ACCURACY = _mean("accuracy", _hits, larger_is_better=True)
_BRIER = _mean("brier", _briers, larger_is_better=False)
_RMSE = Metric("rmse", False, _rmse, _rmse_rows)
_MAE = _mean("mae", _errors, larger_is_better=False)

METRICS: dict[str, dict[str, Metric]] = {
    task: {metric.name: metric for metric in known}
    for task, known in {
        "binary": [
            Metric("auc", True, _of_scikit(metrics.roc_auc_score, 1), _auc_rows),
            _LOG_LOSS,
            Metric("average_precision", True, _of_scikit(metrics.average_precision_score, 1)),
            _BRIER,
            _ACCURACY,
        ],
        "multiclass": [_LOG_LOSS, _BRIER, _ACCURACY],
        "regression": [_RMSE, _MAE, Metric("r2", True, _r2, _r2_rows)],
        "count": [_mean("poisson_deviance", _deviances, larger_is_better=False), _RMSE, _MAE],
    }.items()
}
"""Metrics by task; the first of each is what ranks by default."""


def choose_metric(task: str, name: str | Metric | None) -> Metric:
    """The ranking metric of a task, or the user's own.

    Raises
    ------
    ValueError
        The name is not that of a metric of the task.
    """
    known = METRICS[task]
    if isinstance(name, Metric):
        return name
    if name is None:
        return next(iter(known.values()))
    if callable(name):
        raise ValueError(
            "A custom metric needs a name and a direction; pass "
            "metric=tabsym.compare.Metric('cost', larger_is_better=False, score=function)."
        )
    if name not in known:
        raise ValueError(f"metric={name!r} is not known for {task} targets; use {', '.join(known)}.")
    return known[name]


def all_scores(task: str, ranking: Metric, y: Floats, p: Floats, weight: Floats | None) -> dict[str, float | None]:
    """Every metric of the task, and the ranking one; None for another one that these rows are too few for.

    Raises
    ------
    ValueError
        A prediction or the ranking score is not a finite number, or another one is infinite.
    """
    if not np.isfinite(p).all():
        raise ValueError("The predictions contain NaN or infinity.")
    scores = {metric.name: metric.of(y, p, weight) for metric in {**METRICS[task], ranking.name: ranking}.values()}
    if np.isinf(list(scores.values())).any() or np.isnan(scores[ranking.name]):
        raise ValueError("A score is not finite: the target or the predictions are too large.")
    return {name: None if np.isnan(score) else score for name, score in scores.items()}


def try_metric(metric: Metric, y: Floats, n_classes: int, weight: Floats | None) -> None:
    """Call a metric of the user's own with uninformative guesses, before anything is trained.

    Raises
    ------
    ValueError
        It fails, in the words of its own error.
    """
    try:
        metric.of(y, _guess(y, n_classes), weight)
    except Exception as error:
        how = "(y, p)" if weight is None else "(y, p, weight)"
        raise ValueError(
            f"metric {metric.name!r} fails when called with {how}: {type(error).__name__}: {error}"
        ) from None


def score_fold(prepared: Prepared, test: Indices, prediction: Floats, metric: Metric) -> dict[str, Any]:
    """Scores, and totals of what was predicted and what came (of each class, or in one)."""
    y = prepared.y[test]
    weight = None if prepared.weight is None else prepared.weight[test]
    scores = all_scores(prepared.task, metric, y, prediction, weight)
    of_row = prepared.weights(test)
    if prepared.task in CLASSES:
        observed = np.bincount(y, of_row, minlength=len(prepared.classes))
        predicted = (prediction * of_row[:, None]).sum(axis=0)
        if prepared.task == "binary":  # of the second class: the first is what it leaves
            observed, predicted = observed[1:], predicted[1:]
    else:
        observed, predicted = np.array([(y * of_row).sum()]), np.array([(prediction * of_row).sum()])
    return {"scores": scores, "observed": observed.tolist(), "predicted": predicted.tolist()}


def refuse_unscorable(prepared: Prepared, plan: SplitPlan, splits: Sequence[Split], metric: Metric) -> None:
    """Look whether every fold has weight and can be scored, before anything is trained.

    Raises
    ------
    ValueError
        A fold's training or test rows all have weight 0, or are too few for the metric that ranks.
    """
    for fold, (train, test) in enumerate(splits):
        name = f"fold {fold + 1}"
        if plan.how == "column":
            name = f"fold {prepared.frame[plan.column].iloc[test[0]]} of {plan.column!r}"
        for what, rows in (("training", train), ("test", test)):
            if prepared.weight is not None and not prepared.weight[rows].any():
                raise ValueError(
                    f"All {what} rows of {name} have weight 0 in column {prepared.roles.weight!r}; "
                    "give some of them weight, drop the rows of weight 0, or choose another split."
                )
        if METRICS[prepared.task].get(metric.name) is not metric:
            continue
        y, weight = prepared.y[test], None if prepared.weight is None else prepared.weight[test]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # of scikit-learn, which says the same as the refusal
            score = metric.of(y, _guess(y, len(prepared.classes)), weight)
        if np.isnan(score):  # that of uninformative predictions: no others have one either
            raise ValueError(
                f"metric={metric.name!r} cannot be computed on the test rows of {name} ({len(test):,} of them); "
                "use fewer folds, another split, or another metric."
            )


def _guess(y: Floats, n_classes: int) -> Floats:
    """Uninformative predictions: equal probabilities, or the mean."""
    return np.full((len(y), n_classes), 1 / n_classes) if n_classes else np.full(len(y), float(np.mean(y)))
