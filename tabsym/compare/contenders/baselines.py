"""The baselines: a constant prediction, one-hot encoding with a linear model, and Khiops' naive Bayes."""

from __future__ import annotations

from typing import Any

from scipy.stats import loguniform
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler

from tabsym.compare.contenders import Contender
from tabsym.compare.table.prepare import CLASSES


def _constant(task: str, random_state: int, n_jobs: int) -> Any:
    return DummyClassifier(strategy="prior") if task in CLASSES else DummyRegressor()


def _linear(task: str, random_state: int, n_jobs: int) -> Any:
    from tabsym.encoders import OneHotEncoder

    model: Any = LogisticRegression(max_iter=200)
    if task == "regression":
        model = Ridge(solver="sparse_cg")
    elif task == "count":  # its penalty is weighed against the mean of the rows: the default, 1, leaves a constant
        model = PoissonRegressor(alpha=1e-4, max_iter=200)
    return Pipeline(
        [
            ("encode", OneHotEncoder(sparse_output=True)),
            # keep_empty_features: a column without any value would change the number of columns
            ("impute", SimpleImputer(keep_empty_features=True)),
            ("scale", MaxAbsScaler()),
            ("model", model),
        ]
    )


def _naive_bayes(task: str, random_state: int, n_jobs: int) -> Any:
    from tabsym.naive_bayes import SelectiveNaiveBayesClassifier

    return SelectiveNaiveBayesClassifier()


def _space(task: str) -> dict[str, Any]:
    if task in CLASSES:
        return {"model__C": loguniform(1e-3, 1e2)}
    return {"model__alpha": loguniform(1e-2, 1e3) if task == "regression" else loguniform(1e-7, 1e-1)}


CONTENDERS = [
    Contender("constant", "Baseline (constant)", _constant, order=0),
    Contender("onehot-linear", "One-hot + linear model", _linear, _space, order=20),
    Contender(
        "naive-bayes",
        "Selective naive Bayes (MODL)",
        _naive_bayes,
        lambda task: {"prior_weight": loguniform(1e-3, 10)},
        order=21,
        tasks=CLASSES,
        by_name=True,
    ),
]
