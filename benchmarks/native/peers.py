"""Contenders that are not of the package: each a factory that `tabsym compare --contender NAME=peers:FACTORY` takes.

scikit-learn's TargetEncoder and our WideEncoder under LightGBM, and the interpretable peers EBM and GPBoost (see
requirements.txt). All at the defaults of their libraries; `space` says where they are tuned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import loguniform, randint
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, TargetEncoder

from tabsym import WideEncoder, WideSGDClassifier, WideSGDRegressor
from tabsym.compare.contenders import space_of
from tabsym.integrations import load_adapter

CLASSES = ("binary", "multiclass")
_MANY = 10  # symbols: GPBoost's columns of more are random effects


def _plain() -> FunctionTransformer:
    return FunctionTransformer(np.asarray)  # LightGBM refuses some characters in column names


def sklearn_target(task: str, random_state: int, n_jobs: int) -> Any:
    """scikit-learn's TargetEncoder, cross-fitted as it is, under LightGBM."""
    kind = task if task in CLASSES else "continuous"
    encoder = TargetEncoder(target_type=kind, random_state=random_state)
    encode = make_column_transformer((encoder, make_column_selector(dtype_include="str")), remainder="passthrough")
    booster = load_adapter("lightgbm").booster(task, random_state, n_jobs)
    return Pipeline([("encode", encode), ("plain", _plain()), ("booster", booster)])


def wide_encoder(task: str, random_state: int, n_jobs: int) -> Any:
    """What an online wide model learned of each symbol, out of fold, under LightGBM."""
    model = (WideSGDClassifier if task in CLASSES else WideSGDRegressor)(random_state=random_state)
    encoder = WideEncoder(model=model, random_state=random_state)
    booster = load_adapter("lightgbm").booster(task, random_state, n_jobs)
    return Pipeline([("encode", encoder), ("plain", _plain()), ("booster", booster)])


sklearn_target.space = wide_encoder.space = lambda task: space_of("lightgbm", "booster")


class _EBM(BaseEstimator):
    """InterpretML's explainable boosting, text as nominal and all else as continuous columns."""

    def __init__(self, learning_rate: Any = None, max_leaves: Any = None, interactions: Any = None, seed: int = 0):
        self.learning_rate = learning_rate
        self.max_leaves = max_leaves
        self.interactions = interactions
        self.seed = seed

    def fit(self, X: pd.DataFrame, y: Any) -> Any:
        from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

        kind = ExplainableBoostingClassifier if isinstance(self, ClassifierMixin) else ExplainableBoostingRegressor
        own = {name: getattr(self, name) for name in ("learning_rate", "max_leaves", "interactions")}
        own = {name: value for name, value in own.items() if value is not None}
        types = ["nominal" if is_text else "continuous" for is_text in _is_text(X)]
        self.model_ = kind(feature_types=types, random_state=self.seed, n_jobs=1, **own).fit(_objects(X), y)
        return self

    def predict(self, X: pd.DataFrame) -> Any:
        return self.model_.predict(_objects(X))


class EBMClassifier(ClassifierMixin, _EBM):
    @property
    def classes_(self) -> Any:
        return self.model_.classes_

    def predict_proba(self, X: pd.DataFrame) -> Any:
        return self.model_.predict_proba(_objects(X))


class EBMRegressor(RegressorMixin, _EBM):
    pass


def _is_text(X: pd.DataFrame) -> list[bool]:
    return [not pd.api.types.is_numeric_dtype(kind) for kind in X.dtypes]  # booleans are numbers here


def _objects(X: pd.DataFrame) -> pd.DataFrame:
    """Text as objects, missing as None; all else as floats."""
    columns = {}
    for is_text, name in zip(_is_text(X), X.columns, strict=True):
        values = X[name].astype(object) if is_text else X[name].astype(float)
        columns[name] = values.where(X[name].notna(), None) if is_text else values
    return pd.DataFrame(columns)


def ebm(task: str, random_state: int, n_jobs: int) -> Any:
    """EBM at its defaults."""
    return (EBMClassifier if task in CLASSES else EBMRegressor)(seed=random_state)


def ebm_additive(task: str, random_state: int, n_jobs: int) -> Any:
    """EBM without interactions: it does not end with them where symbols are many, as they are of pairs of symbols."""
    return ebm(task, random_state, n_jobs).set_params(interactions=0)


ebm_additive.space = lambda task: {"learning_rate": loguniform(0.002, 0.1), "max_leaves": [2, 3, 4]}
ebm.space = lambda task: ebm_additive.space(task) | {"interactions": [0, 5, 10, 20]}


class _GPBoost(BaseEstimator):
    """GPBoost: random effects of columns of many symbols, trees over the others.

    The columns of at most ten symbols are categories of the trees. Where no column is left for the trees they get one
    that is constant, so that random effects alone remain. Two classes: a Bernoulli likelihood with a logit link.
    Amounts are standardised: its least sum of Hessians in a leaf, 1e-3, is in units of one over the target's variance,
    and lets no tree split where amounts are large.
    """

    def __init__(self, n_rounds: int = 100, learning_rate: float = 0.1, num_leaves: int = 31, seed: int = 0):
        self.n_rounds = n_rounds
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.seed = seed

    def fit(self, X: pd.DataFrame, y: Any) -> Any:
        import gpboost

        is_class = isinstance(self, ClassifierMixin)
        self.classes_, y = np.unique(y, return_inverse=True) if is_class else (None, y)
        self.mean_, self.scale_ = (0.0, 1.0) if is_class else (float(np.mean(y)), float(np.std(y)))
        text = [name for name, is_text in zip(X.columns, _is_text(X), strict=True) if is_text]
        self.effects_ = [name for name in text if X[name].nunique(dropna=False) > _MANY]
        self.levels_ = {name: pd.Index(X[name].dropna().unique()) for name in text if name not in self.effects_}
        effects = self._effects(X)
        likelihood = "bernoulli_logit" if is_class else "gaussian"
        self.effects_model_ = None
        if self.effects_:
            self.effects_model_ = gpboost.GPModel(group_data=effects, likelihood=likelihood, num_parallel_threads=1)
        trees = self._trees(X)
        options = {"learning_rate": self.learning_rate, "num_leaves": self.num_leaves, "verbose": -1}
        options |= {"num_threads": 1, "seed": self.seed}
        if self.effects_model_ is None:
            options["objective"] = "binary" if is_class else "regression"
        categories = [place for place, name in enumerate(self._tree_columns(X)) if name in self.levels_] or "auto"
        data = gpboost.Dataset(
            trees, label=(np.asarray(y, dtype=float) - self.mean_) / self.scale_, categorical_feature=categories
        )
        self.model_ = gpboost.train(
            options, data, num_boost_round=self.n_rounds, gp_model=self.effects_model_, verbose_eval=False
        )
        return self

    def _answer(self, X: pd.DataFrame) -> Any:
        if self.effects_model_ is None:
            return self.model_.predict(self._trees(X))
        found = self.model_.predict(self._trees(X), group_data_pred=self._effects(X), predict_var=False)
        return found["response_mean"]

    def _effects(self, X: pd.DataFrame) -> Any:
        return X[self.effects_].astype(object).where(X[self.effects_].notna(), "(missing)").to_numpy(dtype=str)

    def _tree_columns(self, X: pd.DataFrame) -> list[str]:
        return [name for name in X.columns if name not in self.effects_]

    def _trees(self, X: pd.DataFrame) -> Any:
        columns = [
            self._coded(X, name) if name in self.levels_ else X[name].to_numpy(dtype=float)
            for name in self._tree_columns(X)
        ]
        return np.column_stack(columns) if columns else np.ones((len(X), 1))

    def _coded(self, X: pd.DataFrame, name: str) -> Any:
        codes = self.levels_[name].get_indexer(X[name]).astype(float)
        return np.where(codes < 0, np.nan, codes)


class GPBoostClassifier(ClassifierMixin, _GPBoost):
    def predict_proba(self, X: pd.DataFrame) -> Any:
        if len(self.classes_) != 2:
            raise ValueError("GPBoost has no likelihood of several classes")
        p = self._answer(X)
        return np.column_stack([1 - p, p])

    def predict(self, X: pd.DataFrame) -> Any:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class GPBoostRegressor(RegressorMixin, _GPBoost):
    def predict(self, X: pd.DataFrame) -> Any:
        return self.mean_ + self.scale_ * self._answer(X)


def gpboost(task: str, random_state: int, n_jobs: int) -> Any:
    """GPBoost at its defaults."""
    return (GPBoostClassifier if task in CLASSES else GPBoostRegressor)(seed=random_state)


gpboost.space = lambda task: {
    "n_rounds": randint(20, 501),
    "learning_rate": loguniform(0.01, 0.3),
    "num_leaves": randint(8, 129),
}
