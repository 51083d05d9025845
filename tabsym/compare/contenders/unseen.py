"""Treatments of unknown categories: all with LightGBM, except jittering of each booster.

They take part where whole categories of a column are held out, along with the boosters' own treatment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from tabsym.compare.contenders import Contender
from tabsym.compare.contenders.boosters import LABELS, space_of
from tabsym.compare.table.prepare import CLASSES
from tabsym.integrations import available, load_adapter

_ORDER = {"lightgbm": 37, "xgboost": 38, "catboost": 62}

Make = Callable[[str, int, int, str], Any]


def _without(X: Any, column: str) -> Any:
    return X.drop(columns=column)


def _blind(task: str, random_state: int, n_jobs: int, column: str) -> Any:
    without = FunctionTransformer(_without, kw_args={"column": column})
    return Pipeline([("without", without), ("native", _lightgbm(task, random_state, n_jobs))])


def _encoded(**options: Any) -> Make:
    def make(task: str, random_state: int, n_jobs: int, column: str) -> Any:
        encoder = _encoder(task, random_state, n_jobs, column, **options)
        return Pipeline([("encode", encoder), ("native", _lightgbm(task, random_state, n_jobs))])

    return make


def _filled(by: str) -> Make:
    def make(task: str, random_state: int, n_jobs: int, column: str) -> Any:
        from tabsym.compare.estimators import FilledEncoder

        encoder = FilledEncoder(_encoder(task, random_state, n_jobs, column), column, by=by)
        return Pipeline([("encode", encoder), ("native", _lightgbm(task, random_state, n_jobs))])

    return make


def _augmented(task: str, random_state: int, n_jobs: int, column: str) -> Any:
    from tabsym.jitter import AugmentedModel

    encoder = _encoder(task, random_state, n_jobs, column, indicator=True)
    return AugmentedModel(_lightgbm(task, random_state, n_jobs), encoder=encoder)


def _jittered(name: str) -> Make:
    def make(task: str, random_state: int, n_jobs: int, column: str) -> Any:
        from tabsym.compare.estimators import Jittered

        booster = load_adapter(name).native(task, random_state=random_state, n_jobs=n_jobs)
        return Jittered(booster, _encoder(task, random_state, n_jobs, column), random_state)

    return make


def _encoder(task: str, random_state: int, n_jobs: int, column: str, **options: Any) -> Any:
    from tabsym.encoders import TIWSEncoder

    kind = "classes" if task in CLASSES else "continuous"
    return TIWSEncoder(cols=[column], target_type=kind, random_state=random_state, n_jobs=n_jobs, **options)


def _lightgbm(task: str, random_state: int, n_jobs: int) -> Any:
    return load_adapter("lightgbm").native(task, random_state=random_state, n_jobs=n_jobs)


def _contender(name: str, label: str, make: Make, order: int, step: str = "native__booster") -> Contender:
    return Contender(
        f"unseen-{name}",
        f"{label} + LightGBM",
        make,
        lambda task: space_of("lightgbm", step),
        requires={"lightgbm": "tabsym[lightgbm]"},
        order=order,
        for_unseen=True,
    )


CONTENDERS = [
    _contender("blind", "Without the column", _blind, 32),
    _contender("mean", "Mean over categories", _encoded(context="observed"), 33),
    _contender("knn", "kNN of the rows", _filled("knn"), 36),
    _contender("names", "Similar names", _filled("names"), 34),
    _contender("tiws-printed", "TIWS as printed", _encoded(method="poster"), 34),
    _contender("documents", "TIWS (documents)", _encoded(), 35),
    _contender("augmented", "TIWS augmented", _augmented, 36, "estimator__booster"),
    *(
        Contender(
            f"unseen-jitter-{name}",
            f"{LABELS.get(name, name)} jittered",
            _jittered(name),
            lambda task, name=name: space_of(name, "estimator__booster"),  # type: ignore[misc]
            requires={name: f"tabsym[{name}]"},
            order=_ORDER.get(name, 55),
            for_unseen=True,
        )
        for name in available()
    ),
]
