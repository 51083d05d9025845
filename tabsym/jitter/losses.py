"""Losses by which donors are chosen, of each row's answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.table import check_classes, check_regression_target

Floats = NDArray[np.float64]

_LEAST = 1e-15


@dataclass(frozen=True)
class Losses:
    """A loss by its name, and the target (n,) of all rows: places of classes, or numbers."""

    name: str
    target: NDArray[Any]

    @classmethod
    def check(cls, loss: str | None, y: Any, n_rows: int, classes: NDArray[Any] | None, who: str) -> Losses:
        """The loss of a task (`classes`: those of a classifier), or a `ValueError` that says what there is."""
        possible = ("log_loss",) if classes is not None else ("squared_error", "poisson")
        name = possible[0] if loss is None else loss
        if name not in possible:
            kind = "classifiers" if classes is not None else "regressors"
            raise ValueError(f"loss={loss!r} is not known for {kind}; use {' or '.join(map(repr, possible))}.")
        if classes is not None:
            remedy = "leave its rows out, or fit the model on all classes"
            return cls(name, check_classes(y, n_rows, classes=classes, who=who, remedy=remedy).codes)
        target = check_regression_target(y, n_rows, who=who)
        if name == "poisson" and (target < 0).any():
            raise ValueError("loss='poisson' needs a target without negative values; use 'squared_error'.")
        return cls(name, target)

    def of(self, answers: Floats, rows: NDArray[np.integer]) -> Floats:
        """Loss (n,) of the answers (n, ...) given for these rows."""
        truth = self.target[rows]
        if self.name == "log_loss":
            total = answers.sum(axis=1)
            return -np.log(np.clip(answers[np.arange(len(rows)), truth] / total, _LEAST, 1.0))
        if self.name == "squared_error":
            return np.asarray((answers - truth) ** 2)
        means = np.maximum(answers, _LEAST)
        logs = truth * np.log(np.where(truth > 0, truth, 1.0) / means)
        return np.asarray(2 * (logs - truth + means))
