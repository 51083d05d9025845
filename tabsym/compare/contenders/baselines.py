"""The cheapest answers: a constant, and one-hot encoding under a linear model."""

from __future__ import annotations

from typing import Any

from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from tabsym.compare.contenders import Contender
from tabsym.encoders import OneHotEncoder


def _constant(task: str, random_state: int, n_jobs: int) -> Any:
    return DummyRegressor() if task == "regression" else DummyClassifier(strategy="prior")


def _linear(task: str, random_state: int, n_jobs: int) -> Any:
    model = Ridge(solver="sparse_cg") if task == "regression" else LogisticRegression(max_iter=200)
    # keep_empty_features: a column without any value would change the number of columns
    return make_pipeline(
        OneHotEncoder(sparse_output=True), SimpleImputer(keep_empty_features=True), MaxAbsScaler(), model
    )


CONTENDERS = [
    Contender("constant", "Constant", _constant, order=0),
    Contender("onehot-linear", "One-hot + linear model", _linear, order=20),
]
