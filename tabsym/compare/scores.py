"""A fold's predictions scored: every metric, and predicted beside observed totals."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.compare.metrics import METRICS, Metric, all_scores
from tabsym.compare.prepare import Prepared
from tabsym.compare.splits import Places, Plan, Split
from tabsym.compare.task import CLASSES

Floats = NDArray[np.float64]


def score_fold(prepared: Prepared, test: Places, prediction: Floats, metric: Metric) -> dict[str, Any]:
    """Scores, and totals of what was predicted and what came (of each class, or in one)."""
    y = prepared.y[test]
    weight = None if prepared.weight is None else prepared.weight[test]
    scores = all_scores(prepared.task, metric, y, prediction, weight)
    of_row = np.ones(len(y)) if weight is None else weight
    if prepared.task in CLASSES:
        observed = np.bincount(y, of_row, minlength=len(prepared.classes))
        predicted = (prediction * of_row[:, None]).sum(axis=0)
        if prepared.task == "binary":  # of the second class: the first is what it leaves
            observed, predicted = observed[1:], predicted[1:]
    else:
        observed, predicted = np.array([(y * of_row).sum()]), np.array([(prediction * of_row).sum()])
    return {"scores": scores, "observed": observed.tolist(), "predicted": predicted.tolist()}


def refuse_unscorable(prepared: Prepared, plan: Plan, splits: Sequence[Split], metric: Metric) -> None:
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
        if METRICS[prepared.task].get(metric.name) is metric and np.isnan(_score_of_guess(prepared, test, metric)):
            raise ValueError(
                f"metric={metric.name!r} cannot be computed on the test rows of {name} ({len(test):,} of them); "
                "use fewer folds, another split, or another metric."
            )


def _score_of_guess(prepared: Prepared, test: Places, metric: Metric) -> float:
    """The score of predictions that say nothing: NaN where no prediction of these rows has one."""
    y, weight = prepared.y[test], None if prepared.weight is None else prepared.weight[test]
    n_classes = len(prepared.classes)
    guess = np.full((len(y), n_classes), 1 / n_classes) if n_classes else np.full(len(y), float(np.mean(y)))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of scikit-learn, which says the same as the refusal
        return metric.of(y, guess, weight)
