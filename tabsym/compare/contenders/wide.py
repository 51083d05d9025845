"""The wide models: at their best, with chosen crosses by gradient steps, plainly additive, and with all pairs.

What the second one does with numbers was chosen on ten tables (benchmarks/README.md): intervals by MODL
for classes, quantiles for amounts, both never detectably worse than slopes. The first one shrinks by evidence, has
smooth intervals and rarity, and chooses between sums and products by the metric that ranks (benchmarks/evidence).
"""

from __future__ import annotations

from typing import Any

from scipy.stats import loguniform

from tabsym.compare.contenders import Contender
from tabsym.compare.task import CLASSES
from tabsym.estimators import WideClassifier, WideRegressor

SCORERS = {"rmse": "neg_root_mean_squared_error", "mae": "neg_mean_absolute_error"}
"""What losses are chosen by, for the metric that ranks."""


def _wide(task: str, random_state: int, n_jobs: int, **options: Any) -> Any:
    if task in CLASSES:
        return WideClassifier(random_state=random_state, n_jobs=n_jobs, **options)
    if task == "count":
        options["loss"] = "poisson"
    return WideRegressor(random_state=random_state, n_jobs=n_jobs, **options)


def _chosen(task: str, random_state: int, n_jobs: int) -> Any:
    numeric = "modl" if task in CLASSES else "quantile"
    return _wide(task, random_state, n_jobs, interactions="auto", numeric=numeric)


def _best(task: str, random_state: int, n_jobs: int, metric: str) -> Any:
    options: dict[str, Any] = {"optimizer": "newton", "l2": "evidence", "numeric": "smooth", "rarity": True}
    if task == "regression":
        options |= {"loss": "choose", "scoring": SCORERS.get(metric, SCORERS["rmse"])}
    return _wide(task, random_state, n_jobs, interactions="auto", **options)


def _space_of_best(task: str) -> dict[str, Any]:
    return {"numeric": ["smooth", "linear", "modl" if task in CLASSES else "quantile"], "rarity": [True, False]}


def _space(task: str) -> dict[str, Any]:
    return {
        "numeric": ["linear", "quantile", "modl"],
        "l2": loguniform(1e-8, 1e-3),
        "epochs": ["auto", 2, 5, 10, 20],
    }


CONTENDERS = [
    Contender("wide", "Wide model at its best", _best, _space_of_best, order=13, for_metric=True),
    Contender("wide-crosses", "Wide model, chosen crosses", _chosen, _space, order=12),
    Contender("wide-additive", "Wide model, additive", _wide, _space, order=10),
    Contender(
        "wide-pairs",
        "Wide model, all pairs",
        lambda task, seed, jobs: _wide(task, seed, jobs, interactions=2),
        _space,
        order=11,
    ),
]
