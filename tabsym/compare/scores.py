"""A fold's predictions scored: every metric, and predicted beside observed totals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.compare.metrics import Metric, all_scores
from tabsym.compare.prepare import Prepared
from tabsym.compare.splits import Places
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
