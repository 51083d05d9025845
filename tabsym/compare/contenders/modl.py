"""The boosters over columns that MODL grouped: categories with the same effect on the target are one group.

A few groups instead of thousands of categories: trees have less to memorise, and
HistGradientBoosting's limit of 255 categories is no limit any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.pipeline import Pipeline

from tabsym.compare.contenders import Contender
from tabsym.compare.contenders.native import hist_booster
from tabsym.compare.spaces import space_of
from tabsym.compare.task import CLASSES
from tabsym.encoders import MODLEncoder, NativeCategories, NativePipeline
from tabsym.integrations import available, load_adapter

_ORDER = {"lightgbm": 41, "xgboost": 42, "catboost": 61}
_LABELS = {"lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost"}


def _groups(task: str, random_state: int) -> MODLEncoder:
    kind = "classes" if task in CLASSES else "continuous"
    return MODLEncoder(numeric="passthrough", target_type=kind, prove=False, random_state=random_state)


def _over(name: str) -> Callable[[str, int, int], Any]:
    return lambda task, seed, jobs: Pipeline(
        [("groups", _groups(task, seed)), ("native", load_adapter(name).native(task, random_state=seed, n_jobs=jobs))]
    )


def _hist(task: str, random_state: int, n_jobs: int) -> Any:
    native = NativePipeline([("categories", NativeCategories()), ("booster", hist_booster(task, random_state))])
    return Pipeline([("groups", _groups(task, random_state)), ("native", native)])


CONTENDERS = [
    Contender(
        "modl-hist-gradient-boosting",
        "MODL groups + HistGradientBoosting",
        _hist,
        lambda task: space_of("hist", "native__booster"),
        order=40,
    ),
    *(
        Contender(
            f"modl-{name}",
            f"MODL groups + {_LABELS.get(name, name)}",
            _over(name),
            lambda task, name=name: space_of(name, "native__booster"),  # type: ignore[misc]
            requires={name: f"tabsym[{name}]"},
            order=_ORDER.get(name, 55),
        )
        for name in available()
    ),
]
