"""Fits to other rows of the same table, with the loss of an earlier fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from tabsym.models.config import defaults_of

Floats = NDArray[np.float64]


def with_loss_of(wide: Any, fitted: Any) -> Any:
    """Set the loss that the other fit selected, so that all folds have the same scale."""
    if getattr(wide, "loss", None) != "auto":
        return wide
    options = {"scoring": defaults_of(type(wide))["scoring"]}  # `scoring` is for "auto" only
    return clone(wide).set_params(loss=fitted.loss_, **options)


def fit_for_margins(wide: Any, X: Any, y: NDArray[Any], weight: Floats | None) -> Any:
    """Fit a clone of a wide model that predicts alike, without what else a fit finds."""
    model = clone(wide)
    model._only_predicts = True
    return model.fit(X, y, sample_weight=weight)
