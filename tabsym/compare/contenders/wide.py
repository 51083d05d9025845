"""The wide models, without and with crosses of pairs."""

from __future__ import annotations

from typing import Any

from tabsym.compare.contenders import Contender
from tabsym.estimators import WideClassifier, WideRegressor


def _wide(task: str, random_state: int, n_jobs: int, interactions: int) -> Any:
    kind = WideRegressor if task == "regression" else WideClassifier
    return kind(interactions=interactions, random_state=random_state, n_jobs=n_jobs)


CONTENDERS = [
    Contender("wide", "Wide model", lambda task, seed, jobs: _wide(task, seed, jobs, 1), order=10),
    Contender("wide-pairs", "Wide model, all pairs", lambda task, seed, jobs: _wide(task, seed, jobs, 2), order=11),
]
