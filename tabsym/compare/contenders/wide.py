"""The wide models: `WideClassifier()` and `WideRegressor()`, online with interactions or without, and in stacks.

The stacks' booster is LightGBM by default, others where they are named. The online model's treatment of numbers was
chosen on ten tables (benchmarks/README.md): bins by MODL in classification, quantiles in regression, both never
significantly worse than slopes. The first one and the stacks select their loss by the ranking metric.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scipy.stats import loguniform

from tabsym.compare.contenders import Contender
from tabsym.compare.table.prepare import CLASSES
from tabsym.integrations import available

_LABELS = {"xgboost": "XGBoost", "catboost": "CatBoost", "hist-gradient-boosting": "HistGradientBoosting"}
_SCORERS = {"rmse": "neg_root_mean_squared_error", "mae": "neg_mean_absolute_error"}
"""What losses are chosen by, for the metric that ranks."""


def _scorer(metric: str) -> str:
    return _SCORERS.get(metric, _SCORERS["rmse"])


def _solved(task: str, random_state: int, n_jobs: int, metric: str) -> Any:
    from tabsym.models import WideClassifier, WideRegressor

    if task in CLASSES:
        return WideClassifier(random_state=random_state, n_jobs=n_jobs)
    options = {"loss": "poisson"} if task == "count" else {"scoring": _scorer(metric)}
    return WideRegressor(random_state=random_state, n_jobs=n_jobs, **options)


def _online(task: str, random_state: int, n_jobs: int, **options: Any) -> Any:
    from tabsym.models import WideSGDClassifier, WideSGDRegressor

    if task in CLASSES:
        return WideSGDClassifier(random_state=random_state, n_jobs=n_jobs, **options)
    if task == "count":
        options["loss"] = "poisson"
    return WideSGDRegressor(random_state=random_state, n_jobs=n_jobs, **options)


def _chosen(task: str, random_state: int, n_jobs: int) -> Any:
    numeric = "modl" if task in CLASSES else "quantile"
    return _online(task, random_state, n_jobs, interactions="auto", numeric=numeric)


def _space_of_solved(task: str) -> dict[str, Any]:
    return {"numeric": ["smooth", "linear", "modl" if task in CLASSES else "quantile"], "count_effect": [True, False]}


def _space(task: str) -> dict[str, Any]:
    return {
        "numeric": ["linear", "quantile", "modl"],
        "alpha": loguniform(1e-8, 1e-3),
        "max_iter": ["auto", 2, 5, 10, 20],
    }


def _stack(library: str | None = None) -> Callable[[str, int, int, str], Any]:
    """The defaults of `WideBoost*`; `library`: with the booster of another one."""

    def make(task: str, random_state: int, n_jobs: int, metric: str) -> Any:
        from tabsym.stacking import WideBoostClassifier, WideBoostRegressor
        from tabsym.stacking.layer import default_wide, gentle_booster

        is_class = task in CLASSES
        wide = default_wide(is_class, random_state, n_jobs)
        if task == "count":
            wide.set_params(loss="poisson")
        elif not is_class:
            wide.set_params(scoring=_scorer(metric))
        booster = None if library is None else gentle_booster(library, is_class, random_state, n_jobs)
        kind = WideBoostClassifier if is_class else WideBoostRegressor
        # of scikit-learn's boosters none starts from margins
        mode = "feature" if library == "hist-gradient-boosting" else "auto"
        return kind(wide, booster, mode=mode, random_state=random_state, n_jobs=n_jobs)

    return make


def _space_of_stack(task: str) -> dict[str, Any]:
    return {"codes": ["ordinal", "native", "group"]}


def _over(library: str) -> Contender:
    requires = {} if library == "hist-gradient-boosting" else {library: f"tabsym[{library}]"}
    return Contender(
        f"wide-{library}",
        f"Wide model + {_LABELS.get(library, library)}",
        _stack(library),
        _space_of_stack,
        requires=requires,
        order=63,
        for_metric=True,
        by_name=True,
    )


CONTENDERS = [
    Contender("wide", "Wide model", _solved, _space_of_solved, order=13, for_metric=True),
    Contender("wide-crosses", "Wide model online, interactions chosen", _chosen, _space, order=12),
    Contender("wide-additive", "Wide model online, additive", _online, _space, order=10),
    Contender(
        "wide-pairs",
        "Wide model online, all pairs",
        lambda task, seed, jobs: _online(task, seed, jobs, interactions="pairwise"),
        _space,
        order=11,
    ),
    Contender(
        "wide-lightgbm",
        "Wide model + LightGBM",
        _stack(),
        _space_of_stack,
        requires={"lightgbm": "tabsym[lightgbm]"},
        order=45,
        for_metric=True,
    ),
    *(_over(library) for library in ["hist-gradient-boosting", *available()] if library != "lightgbm"),
]
