"""What makes the comparison fair: the same folds and metrics for all."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import metrics
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

Floats = NDArray[np.float64]
Split = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class Metric:
    """A score: its name, whether larger is better, and how to compute it.

    Regression: from values (n,). Classes: from codes (n,) and probabilities (n, classes).
    """

    name: str
    larger_is_better: bool
    score: Callable[[Floats, Floats], float]


def _rmse(y: Floats, p: Floats) -> float:
    return float(np.sqrt(metrics.mean_squared_error(y, p)))


def _log_loss(y: Floats, p: Floats) -> float:
    return float(metrics.log_loss(y, p, labels=np.arange(p.shape[1])))


METRICS: dict[str, dict[str, Metric]] = {
    "binary": {
        "auc": Metric("auc", True, lambda y, p: float(metrics.roc_auc_score(y, p[:, 1]))),
        "log_loss": Metric("log_loss", False, _log_loss),
        "average_precision": Metric(
            "average_precision", True, lambda y, p: float(metrics.average_precision_score(y, p[:, 1]))
        ),
        "accuracy": Metric("accuracy", True, lambda y, p: float(np.mean(p.argmax(axis=1) == y))),
    },
    "multiclass": {
        "log_loss": Metric("log_loss", False, _log_loss),
        "accuracy": Metric("accuracy", True, lambda y, p: float(np.mean(p.argmax(axis=1) == y))),
    },
    "regression": {
        "rmse": Metric("rmse", False, _rmse),
        "mae": Metric("mae", False, lambda y, p: float(metrics.mean_absolute_error(y, p))),
        "r2": Metric("r2", True, lambda y, p: float(metrics.r2_score(y, p))),
    },
}
"""Metrics by task; the first of each is what ranks by default."""


def choose_metric(task: str, name: str | None) -> Metric:
    """The ranking metric of a task."""
    known = METRICS[task]
    if name is None:
        return next(iter(known.values()))
    if name not in known:
        raise ValueError(f"metric={name!r} is not known for {task} targets; use {', '.join(known)}.")
    return known[name]


def make_splits(
    X: pd.DataFrame, y: NDArray[np.generic], task: str, *, folds: int, repeats: int, seed: int, unseen: str | None
) -> list[Split]:
    """The folds of every repeat, one after another: (train rows, test rows).

    With `unseen`, whole symbols of that column are held out, so that no test
    row has a symbol of its training rows there.
    """
    if folds < 2:
        raise ValueError(f"folds={folds} is not possible; use at least 2.")
    if folds > len(y):
        raise ValueError(f"folds={folds} is more than the {len(y)} rows; use fewer.")
    splits: list[Split] = []
    for repeat in range(repeats):
        state = seed + repeat
        if unseen is not None:
            groups = _groups(X, unseen, folds)
            splits += GroupKFold(folds, shuffle=True, random_state=state).split(X, y, groups)
        elif task == "regression":
            splits += KFold(folds, shuffle=True, random_state=state).split(X)
        else:
            with warnings.catch_warnings():  # a class rarer than folds is dealt with: see worker.run_fold
                warnings.simplefilter("ignore", UserWarning)
                splits += StratifiedKFold(folds, shuffle=True, random_state=state).split(X, y)
    if task != "regression":
        _refuse_one_class(splits, y)
    return splits


def _groups(X: pd.DataFrame, unseen: str, folds: int) -> NDArray[np.int64]:
    if unseen not in X.columns:
        raise ValueError(
            f"There is no column {unseen!r} to hold symbols out of; there are {', '.join(map(repr, X.columns))}."
        )
    if pd.api.types.is_float_dtype(X[unseen]):
        raise ValueError(
            f"Column {unseen!r} is read as a number; to hold its symbols out, let it be read as symbols: "
            f"symbolic=[{unseen!r}] (--symbolic {unseen})."
        )
    codes, symbols = pd.factorize(X[unseen], use_na_sentinel=False)
    if len(symbols) < folds:
        raise ValueError(f"Column {unseen!r} has {len(symbols)} symbols, fewer than {folds} folds; use fewer folds.")
    return np.asarray(codes)


def _refuse_one_class(splits: list[Split], y: NDArray[np.generic]) -> None:
    for train, test in splits:
        if len(np.unique(y[train])) < 2 or (len(np.unique(y)) == 2 and len(np.unique(y[test])) < 2):
            raise ValueError("A fold has one class only; use fewer folds, more rows or another --unseen column.")
