"""Calibration: predicted and observed means, by quantiles of the prediction."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tabsym.compare.prepare import Prepared
from tabsym.compare.results import load_prediction
from tabsym.compare.splits import Split
from tabsym.compare.task import CLASSES

Floats = NDArray[np.float64]

PARTS = 10


def reliability(name: str, prepared: Prepared, splits: list[Split], folder: Path) -> Floats | None:
    """Mean prediction and mean outcome (parts, 2) of a contender's test rows, the lowest predictions first.

    Of classes: probabilities of the second one; of more classes, of every class in turn, together. None where
    predictions are not at hand.
    """
    predicted, came, weights = [], [], []
    for fold, (_, test) in enumerate(splits):
        prediction = load_prediction(folder, name, fold)
        if prediction is None or len(prediction) != len(test):
            return None
        y = prepared.y[test]
        w = np.ones(len(test)) if prepared.weight is None else prepared.weight[test]
        if prepared.task in CLASSES:
            places = [1] if prepared.task == "binary" else range(prediction.shape[1])
            for place in places:
                predicted.append(prediction[:, place])
                came.append((y == place).astype(np.float64))
                weights.append(w)
        else:  # for counts with exposure, the rates
            exposure = np.ones(len(y)) if prepared.exposure is None else prepared.exposure[test]
            predicted.append(prediction / exposure)
            came.append(y / exposure)
            weights.append(w * exposure)
    return _in_parts(np.concatenate(predicted), np.concatenate(came), np.concatenate(weights))


def _in_parts(predicted: Floats, came: Floats, weight: Floats) -> Floats:
    """Parts of about equal weight in the order of the prediction; equal predictions stay together."""
    distinct, place = np.unique(predicted, return_inverse=True)
    mass = np.bincount(place, weight, minlength=len(distinct))
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    part = np.minimum((middle * PARTS).astype(np.int64), PARTS - 1)[place]
    total = np.bincount(part, weight, minlength=PARTS)
    kept = total > 0
    sums = [np.bincount(part, weight * values, minlength=PARTS)[kept] / total[kept] for values in (predicted, came)]
    return np.stack(sums, axis=1)
