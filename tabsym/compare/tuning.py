"""Settings chosen inside a fold: the same budget for every contender, its defaults among the candidates.

Candidates are drawn at random from the contender's published space and are the same in every fold. Each is trained
on a part of the fold's training rows and scored on the rest, which is split off in the manner of the folds
themselves (`splits.Plan.inside`). The best is then trained on all of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterSampler

from tabsym.compare.fitting import Data, train
from tabsym.compare.metrics import Metric
from tabsym.compare.splits import Split

_MOST_SETTINGS = 10_000  # within a budget of seconds


@dataclass(frozen=True)
class Budget:
    """A number of settings, including the defaults, or of seconds in each fold; the defaults are always tried."""

    settings: int | None = None
    seconds: float | None = None

    def __str__(self) -> str:
        return f"{self.settings} settings" if self.seconds is None else f"{self.seconds:g} s"


@dataclass(frozen=True)
class Tuned:
    """The best settings (none: the defaults), how many were tried, how many of them failed, and seconds."""

    params: dict[str, Any]
    tried: int
    failed: int
    seconds: float


def read_budget(tune: int | float | str | None) -> Budget | None:
    """20 or "20": settings; "60s": seconds.

    Raises
    ------
    ValueError
        It is neither.
    """
    if tune is None:
        return None
    text = str(tune).strip()
    try:
        budget = Budget(seconds=float(text[:-1])) if text.endswith("s") else Budget(settings=int(text))
    except ValueError:
        budget = Budget(settings=0)
    if not (budget.seconds or budget.settings or 0) > 0:
        raise ValueError(
            f"tune={tune!r} is not a budget; use a number of settings, such as 20, or seconds, such as '60s'."
        )
    return budget


def tune(
    model: Any, space: dict[str, Any], data: Data, inside: Split, metric: Metric, budget: Budget, seed: int
) -> Tuned:
    """The settings with the best score on the rows split off."""
    begin = time.perf_counter()
    fit_on, score_on = data.rows(inside[0]), data.rows(inside[1])
    best: dict[str, Any] = {}
    best_score, tried, failed = np.inf, 0, 0
    for params in _candidates(space, budget, seed):
        if tried and budget.seconds is not None and time.perf_counter() - begin >= budget.seconds:
            break
        tried += 1
        try:
            score = _score(clone(model).set_params(**params), fit_on, score_on, metric)
        except (
            Exception
        ):  # settings that do not go together: no candidate; what fails at the defaults fails in the fold
            failed += 1
            continue
        if score < best_score:
            best, best_score = params, score
    return Tuned(best, tried, failed, time.perf_counter() - begin)


def _candidates(space: dict[str, Any], budget: Budget, seed: int) -> Iterator[dict[str, Any]]:
    """The defaults, then settings at random."""
    yield {}
    number = (budget.settings or _MOST_SETTINGS) - 1
    if space and number > 0:
        finite = all(isinstance(values, list) for values in space.values())
        if finite:  # the sampler would warn where the grid has fewer
            number = min(number, int(np.prod([len(values) for values in space.values()])))
        for params in ParameterSampler(space, number, random_state=seed):
            yield {name: value.item() if isinstance(value, np.generic) else value for name, value in params.items()}


def _score(model: Any, fit_on: Data, score_on: Data, metric: Metric) -> float:
    """Smaller is better."""
    prediction = train(model, fit_on).predict(score_on)
    score = metric.of(score_on.y, prediction, score_on.weight)
    if not np.isfinite(score):
        raise ValueError("the score is not finite")
    return -score if metric.larger_is_better else score
