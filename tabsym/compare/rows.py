"""The contribution of each test row to the difference of two contenders, for its variance over rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tabsym.compare.metrics import Metric
from tabsym.compare.prepare import Prepared
from tabsym.compare.results import load_prediction
from tabsym.compare.splits import Split
from tabsym.compare.verdicts import Pair

Floats = NDArray[np.float64]


def pairs_with(
    best: str, others: list[str], prepared: Prepared, splits: list[Split], metric: Metric, folder: Path,
    clusters: NDArray[np.int64] | None = None,
) -> dict[str, Pair]:  # fmt: skip
    """By contender, how its rows differ from the best's; without those whose predictions or rows cannot be had.

    `clusters` (n,): groups or categories that are held out whole, which then are the sampling units instead of rows.
    """
    if metric.by_row is None:
        return {}
    mine = _by_row(best, prepared, splits, metric, folder)
    if mine is None:
        return {}
    pairs = {}
    for name in others:
        theirs = _by_row(name, prepared, splits, metric, folder)
        if theirs is not None:
            differences = [b - a for a, b in zip(mine, theirs, strict=True)]
            pairs[name] = _pair(differences, prepared.weight, splits, clusters)
    return pairs


def clustered_errors(
    names: list[str], prepared: Prepared, splits: list[Split], metric: Metric, folder: Path, clusters: NDArray[np.int64]
) -> dict[str, float]:
    """By contender, the standard error of its score that comes from the choice of groups or categories."""
    errors = {}
    for name in names if metric.by_row is not None else []:
        scores = _by_row(name, prepared, splits, metric, folder)
        if scores is not None:
            errors[name] = float(np.sqrt(_pair(scores, prepared.weight, splits, clusters).rows))
    return errors


def _by_row(name: str, prepared: Prepared, splits: list[Split], metric: Metric, folder: Path) -> list[Floats] | None:
    """What each test row of each fold adds to a contender's score."""
    assert metric.by_row is not None
    out = []
    for fold, (_, test) in enumerate(splits):
        prediction = load_prediction(folder, name, fold)
        if prediction is None or len(prediction) != len(test):
            return None
        weight = None if prepared.weight is None else prepared.weight[test]
        out.append(metric.by_row(prepared.y[test], prediction, weight))
    return out


def _pair(
    differences: list[Floats],
    weight: Floats | None,
    splits: list[Split],
    clusters: NDArray[np.int64] | None = None,
) -> Pair:
    """The variance that the choice of rows (or clusters) gives the mean difference, and the difference of a fold."""
    n = 1 + max(int((test if clusters is None else clusters[test]).max()) for _, test in splits)
    total, times = np.zeros(n), np.zeros(n, dtype=np.int64)
    within = []
    for difference, (_, test) in zip(differences, splits, strict=True):
        w = np.ones(len(test)) if weight is None else weight[test]
        off = w / w.sum() * (difference - np.average(difference, weights=w))
        unit = test if clusters is None else clusters[test]
        held, place = np.unique(unit, return_inverse=True)
        share = np.bincount(place, off)  # a unit's share of its fold's score, less the fold's mean
        within.append(float((share**2).sum()) * len(held) / max(len(held) - 1, 1))
        total[held] += share
        times[held] += 1
    tested = times > 0
    rows = float((total[tested] ** 2).sum()) / len(splits) ** 2
    return Pair(rows, float(np.mean(within)), int(tested.sum()))
