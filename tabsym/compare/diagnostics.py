"""The held-out rows of contenders: what was predicted and observed. Counts with exposure are rates, weighted by it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tabsym.compare.prepare import Prepared
from tabsym.compare.results import load_prediction
from tabsym.compare.splits import Split
from tabsym.compare.task import CLASSES
from tabsym.plots.held import Held, in_parts

Floats = NDArray[np.float64]

TASKS = ("binary", "count", "regression")


def held_out(name: str, prepared: Prepared, splits: list[Split], folder: Path) -> list[Held] | None:
    """A contender's held-out rows by fold; None where predictions are gone, or there are more than two classes."""
    if prepared.task not in TASKS:
        return None
    folds = []
    for fold, (_, test) in enumerate(splits):
        prediction = load_prediction(folder, name, fold)
        if prediction is None or len(prediction) != len(test):
            return None
        weight = np.ones(len(test)) if prepared.weight is None else prepared.weight[test]
        observed = prepared.y[test].astype(np.float64)
        predicted = prediction[:, 1] if prepared.task == "binary" else prediction
        if prepared.exposure is not None:
            exposure = prepared.exposure[test]
            predicted, observed, weight = predicted / exposure, observed / exposure, weight * exposure
            predicted = predicted.astype(np.float32)  # a rate that was multiplied and divided again is the same rate
        folds.append(Held(test, np.asarray(predicted, dtype=np.float64), observed, weight))
    return folds


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
    return in_parts(np.concatenate(predicted), np.concatenate(came), np.concatenate(weights))
