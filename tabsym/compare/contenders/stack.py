"""Stacks of the wide model and a booster: LightGBM by default, the others where they are named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tabsym.compare.contenders import Contender
from tabsym.compare.contenders.wide import SCORERS
from tabsym.compare.task import CLASSES
from tabsym.integrations import available
from tabsym.stacking import WideBoostClassifier, WideBoostRegressor
from tabsym.stacking.layer import default_wide, gentle_booster

_LABELS = {"xgboost": "XGBoost", "catboost": "CatBoost", "hist-gradient-boosting": "HistGradientBoosting"}


def _stack(library: str | None = None) -> Callable[[str, int, int, str], Any]:
    """The defaults of `WideBoost*`; `library`: with the booster of another one."""

    def make(task: str, random_state: int, n_jobs: int, metric: str) -> Any:
        """An unfitted stack for a task, whose wide model chooses its loss by the metric."""
        is_class = task in CLASSES
        wide = default_wide(is_class, random_state, n_jobs)
        if task == "count":
            wide.set_params(loss="poisson")
        elif not is_class:
            wide.set_params(scoring=SCORERS.get(metric, SCORERS["rmse"]))
        booster = None if library is None else gentle_booster(library, is_class, random_state, n_jobs)
        kind = WideBoostClassifier if is_class else WideBoostRegressor
        # of scikit-learn's boosters none starts from margins
        mode = "feature" if library == "hist-gradient-boosting" else "auto"
        return kind(wide, booster, mode=mode, random_state=random_state, n_jobs=n_jobs)

    return make


def _space(task: str) -> dict[str, Any]:
    return {"codes": ["ordinal", "native", "group"]}


def _over(library: str) -> Contender:
    requires = {} if library == "hist-gradient-boosting" else {library: f"tabsym[{library}]"}
    label = f"Wide model + {_LABELS.get(library, library)}"
    return Contender(
        f"wide-{library}", label, _stack(library), _space, requires=requires, order=63, for_metric=True, by_name=True
    )


CONTENDERS = [
    Contender(
        "wide-lightgbm",
        "Wide model + LightGBM",
        _stack(),
        _space,
        requires={"lightgbm": "tabsym[lightgbm]"},
        order=45,
        for_metric=True,
    ),
    *(_over(library) for library in ["hist-gradient-boosting", *available()] if library != "lightgbm"),
]
