"""The boosters over columns that MODL grouped: symbols that do the same to the target are one category.

A few groups where there were thousands of symbols: trees have less to memorise, and
HistGradientBoosting's limit of 255 categories is no limit any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline

from tabsym.compare.contenders import Contender
from tabsym.compare.contenders.native import HistClassifier
from tabsym.encoders import MODLEncoder, NativeCategories, NativePipeline
from tabsym.integrations import available, load_adapter

_ORDER = {"lightgbm": 41, "xgboost": 42, "catboost": 61}


def _groups(task: str, random_state: int) -> MODLEncoder:
    kind = "continuous" if task == "regression" else "classes"
    return MODLEncoder(numeric="passthrough", target_type=kind, random_state=random_state)


def _over(name: str) -> Callable[[str, int, int], Any]:
    return lambda task, seed, jobs: make_pipeline(
        _groups(task, seed), load_adapter(name).native(task, random_state=seed, n_jobs=jobs)
    )


def _hist(task: str, random_state: int, n_jobs: int) -> Any:
    kind = HistGradientBoostingRegressor if task == "regression" else HistClassifier
    booster = kind(random_state=random_state, categorical_features="from_dtype")
    return make_pipeline(
        _groups(task, random_state), NativePipeline([("categories", NativeCategories()), ("booster", booster)])
    )


_LABELS = {"lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost"}

CONTENDERS = [
    Contender("modl-hist-gradient-boosting", "MODL groups + HistGradientBoosting", _hist, order=40),
    *(
        Contender(
            f"modl-{name}",
            f"MODL groups + {_LABELS.get(name, name)}",
            _over(name),
            requires={name: f"tabsym[{name}]"},
            order=_ORDER.get(name, 55),
        )
        for name in available()
    ),
]
