"""The wide models: with intervals and chosen crosses, plainly additive, and with all pairs.

What the first one does with numbers was chosen on ten tables (benchmarks/README.md): intervals by MODL
for classes, quantiles for amounts, both never detectably worse than slopes.
"""

from __future__ import annotations

from typing import Any

from tabsym.compare.contenders import Contender
from tabsym.estimators import WideClassifier, WideRegressor


def _wide(task: str, random_state: int, n_jobs: int, **options: Any) -> Any:
    kind = WideRegressor if task == "regression" else WideClassifier
    return kind(random_state=random_state, n_jobs=n_jobs, **options)


def _chosen(task: str, random_state: int, n_jobs: int) -> Any:
    numeric = "quantile" if task == "regression" else "modl"
    return _wide(task, random_state, n_jobs, interactions="auto", numeric=numeric)


CONTENDERS = [
    Contender("wide", "Wide model, chosen crosses", _chosen, order=12),
    Contender("wide-additive", "Wide model, additive", _wide, order=10),
    Contender(
        "wide-pairs",
        "Wide model, all pairs",
        lambda task, seed, jobs: _wide(task, seed, jobs, interactions=2),
        order=11,
    ),
]
