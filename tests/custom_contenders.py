"""What the tests of own contenders name by address."""

import os
import signal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from tabsym import WideRegressor


def factory(task, random_state):
    """A pipeline for the task."""
    model = Ridge(random_state=random_state) if task == "regression" else LogisticRegression(max_iter=300)
    return make_pipeline(OneHotEncoder(handle_unknown="ignore"), model)


factory.space = lambda task: {"ridge__alpha": [0.1, 1.0, 10.0]} if task == "regression" else {}

ready = make_pipeline(OneHotEncoder(handle_unknown="ignore"), Ridge())
rates = WideRegressor(loss="poisson", exposure_column="e")
by_place = make_pipeline(FunctionTransformer(np.asarray), Ridge())


class Mean(RegressorMixin, BaseEstimator):
    """Predicts `share` of the mean; fails, or kills its process, where asked to."""

    def __init__(self, share=1.0, fails=False, killed=False, columns=None):
        self.share = share
        self.fails = fails
        self.killed = killed
        self.columns = columns

    def fit(self, X, y, sample_weight=None):
        if self.killed:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fails:
            raise ValueError("no column 'x' here")
        if self.columns is not None:
            assert list(X.columns) == self.columns, list(X.columns)
        self.mean_ = np.average(y, weights=sample_weight)
        return self

    def predict(self, X):
        return np.full(len(X), self.share * self.mean_)


class Names(ClassifierMixin, BaseEstimator):
    """Knows the class from a column that says it, by the user's own names."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)[::-1]  # in an order of its own
        return self

    def predict_proba(self, X):
        return (np.asarray(X["says"])[:, None] == self.classes_).astype(float)
