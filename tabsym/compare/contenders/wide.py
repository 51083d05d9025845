"""The wide models: `WideClassifier()` and `WideRegressor()`, and online with interactions chosen, none, and all pairs.

The second one's treatment of numbers was chosen on ten tables (benchmarks/README.md): bins by MODL in
classification, quantiles in regression, both never significantly worse than slopes. The first one selects its loss by
the ranking metric.
"""

from __future__ import annotations

from typing import Any

from scipy.stats import loguniform

from tabsym.compare.contenders import Contender
from tabsym.compare.task import CLASSES
from tabsym.models import WideClassifier, WideRegressor, WideSGDClassifier, WideSGDRegressor

SCORERS = {"rmse": "neg_root_mean_squared_error", "mae": "neg_mean_absolute_error"}
"""What losses are chosen by, for the metric that ranks."""


def _solved(task: str, random_state: int, n_jobs: int, metric: str) -> Any:
    if task in CLASSES:
        return WideClassifier(random_state=random_state, n_jobs=n_jobs)
    options = {"loss": "poisson"} if task == "count" else {"scoring": SCORERS.get(metric, SCORERS["rmse"])}
    return WideRegressor(random_state=random_state, n_jobs=n_jobs, **options)


def _online(task: str, random_state: int, n_jobs: int, **options: Any) -> Any:
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
]
