"""What each test row adds to the difference of two contenders: thousands of rows say more than five folds."""

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
    best: str, others: list[str], prepared: Prepared, splits: list[Split], metric: Metric, folder: Path
) -> dict[str, Pair]:
    """By contender, how its rows differ from the best's; without those whose predictions or rows cannot be had."""
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
            pairs[name] = _pair(differences, prepared.weight, splits)
    return pairs


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


def _pair(differences: list[Floats], weight: Floats | None, splits: list[Split]) -> Pair:
    """The variance that the choice of rows gives the mean difference, and the difference of a fold."""
    n = 1 + max(int(test.max()) for _, test in splits)
    total, times = np.zeros(n), np.zeros(n, dtype=np.int64)
    within = []
    for difference, (_, test) in zip(differences, splits, strict=True):
        w = np.ones(len(test)) if weight is None else weight[test]
        off = w / w.sum() * (difference - np.average(difference, weights=w))
        within.append(float((off**2).sum()) * len(test) / max(len(test) - 1, 1))
        total[test] += off  # a row's share of its fold's score, less the fold's mean
        times[test] += 1
    tested = times > 0
    rows = float((total[tested] ** 2).sum()) / len(splits) ** 2
    return Pair(rows, float(np.mean(within)), int(tested.sum()))
