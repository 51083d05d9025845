"""An adapter by somebody else, for a booster of stumps: all that it takes is an entry point (see pyproject.toml)."""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from tabsym.encoders import NativePipeline, coder_of
from tabsym.integrations.margins import MarginAdapter


class Stumps(RegressorMixin, BaseEstimator):
    """Boosts the squared error: every round parts one column, in turn, at its median."""

    def __init__(self, n_rounds=20, learning_rate=0.3):
        self.n_rounds = n_rounds
        self.learning_rate = learning_rate

    def fit(self, X, y, start=None):
        X = np.nan_to_num(np.asarray(X, dtype=float))
        self.constant_ = float(np.mean(y)) if start is None else 0.0
        left = y - (self.constant_ if start is None else start)
        self.rounds_ = []
        for turn in range(self.n_rounds):
            column = turn % X.shape[1]
            cut = np.median(X[:, column])
            above = X[:, column] > cut
            steps = [self.learning_rate * left[part].mean() if part.any() else 0.0 for part in (~above, above)]
            self.rounds_.append((column, cut, *steps))
            left = left - np.where(above, steps[1], steps[0])
        return self

    def staged(self, X):
        X = np.nan_to_num(np.asarray(X, dtype=float))
        total = np.full(len(X), self.constant_)
        for column, cut, below, above in self.rounds_:
            total = total + np.where(X[:, column] > cut, above, below)
            yield total

    def predict(self, X):
        return list(self.staged(X))[-1]


class StumpsAdapter(MarginAdapter):
    name = "stumps"
    label = "Stumps"
    unset = (None,)
    objectives = {}
    links = {}

    def owns(self, booster):
        return isinstance(booster, Stumps)

    def booster(self, task, random_state=None, n_jobs=None):
        return Stumps()

    def native(self, task, *, random_state=None, n_jobs=None):
        return NativePipeline([("categories", coder_of("ordinal", task)), ("booster", self.booster(task))])

    def objective_of(self, booster):
        return None

    def n_rounds(self, booster):
        return booster.n_rounds

    def with_rounds(self, booster, n_rounds):
        return Stumps(n_rounds, booster.learning_rate)

    def _fit(self, booster, rows, held_out, patience, options):
        booster.fit(rows.frame, rows.y, rows.margin, **options)

    def _sum_of_trees(self, booster, frame, on_margin):
        return booster.predict(frame)

    def _steps(self, booster, frame, every, on_margin):
        for done, scores in enumerate(booster.staged(frame), 1):
            if done % every == 0 or done == booster.n_rounds:
                yield scores


adapter = StumpsAdapter()
