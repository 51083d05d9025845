"""The boosters with their own treatment of categories, through the adapters; HistGradientBoosting without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from tabsym.compare.contenders import Contender
from tabsym.compare.spaces import space_of
from tabsym.compare.task import CLASSES
from tabsym.encoders import NativeCategories, NativePipeline
from tabsym.integrations import available, load_adapter

_ORDER = {"lightgbm": 30, "xgboost": 31, "catboost": 60}
_LABELS = {"lightgbm": "LightGBM native", "xgboost": "XGBoost native", "catboost": "CatBoost native"}


class HistClassifier(HistGradientBoostingClassifier):
    """Its early stopping holds out rows of every class, and fails where a class has one row: then it is off."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> HistClassifier:
        if np.bincount(y).min() < 2:
            self.set_params(early_stopping=False)
        super().fit(X, y, sample_weight)
        return self


def hist_booster(task: str, random_state: int) -> Any:
    """HistGradientBoosting for a task, categories by their type."""
    if task in CLASSES:
        return HistClassifier(random_state=random_state, categorical_features="from_dtype")
    loss = "poisson" if task == "count" else "squared_error"
    return HistGradientBoostingRegressor(loss=loss, random_state=random_state, categorical_features="from_dtype")


def _hist(task: str, random_state: int, n_jobs: int) -> Any:
    booster = hist_booster(task, random_state)
    return NativePipeline([("categories", NativeCategories(max_levels=254)), ("booster", booster)])


def _native(name: str) -> Callable[[str, int, int], Any]:
    return lambda task, seed, jobs: load_adapter(name).native(task, random_state=seed, n_jobs=jobs)


CONTENDERS = [
    Contender(
        "hist-gradient-boosting",
        "HistGradientBoosting native (254 levels)",
        _hist,
        lambda task: space_of("hist", "booster"),
        order=29,
    ),
    *(
        Contender(
            name,
            _LABELS.get(name, f"{name} native"),
            _native(name),
            lambda task, name=name: space_of(name, "booster"),  # type: ignore[misc]
            requires={name: f"tabsym[{name}]"},
            order=_ORDER.get(name, 50),
        )
        for name in available()
    ),
]
