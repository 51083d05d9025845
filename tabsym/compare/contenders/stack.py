"""The wide model at its best under a gentle LightGBM, at the defaults of `WideBoost*`."""

from __future__ import annotations

from typing import Any

from tabsym.compare.contenders import Contender
from tabsym.compare.contenders.wide import SCORERS
from tabsym.compare.task import CLASSES
from tabsym.stacking import WideBoostClassifier, WideBoostRegressor
from tabsym.stacking.defaults import default_wide


def _stack(task: str, random_state: int, n_jobs: int, metric: str) -> Any:
    is_class = task in CLASSES
    wide = default_wide(is_class, random_state, n_jobs)
    if task == "count":
        wide.set_params(loss="poisson")
    elif not is_class:
        wide.set_params(scoring=SCORERS.get(metric, SCORERS["rmse"]))
    kind = WideBoostClassifier if is_class else WideBoostRegressor
    return kind(wide, random_state=random_state, n_jobs=n_jobs)


CONTENDERS = [
    Contender(
        "wide-lightgbm",
        "Wide model + LightGBM",
        _stack,
        lambda task: {"codes": ["ordinal", "native", "group"]},
        requires={"lightgbm": "tabsym[lightgbm]"},
        order=45,
        for_metric=True,
    )
]
