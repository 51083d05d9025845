"""The boosters: with their own treatment of categories through the adapters, over MODL's groups, and target encodings.

MODL makes one group of categories with the same effect on the target. A few groups instead of thousands of categories:
trees have less to memorise, and HistGradientBoosting's limit of 255 categories is no limit any more. The target
encodings are category_encoders', and TIWS for known categories; `unseen` has unknown ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from tabsym.compare.contenders import Contender
from tabsym.compare.table.prepare import CLASSES
from tabsym.integrations import available, load_adapter

LABELS = {"lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost"}
_ORDER = {"lightgbm": 30, "xgboost": 31, "catboost": 60}
_ORDER_OF_GROUPS = {"lightgbm": 41, "xgboost": 42, "catboost": 61}

SPACES: dict[str, dict[str, Any]] = {
    "lightgbm": {
        "n_estimators": randint(50, 501),
        "learning_rate": loguniform(0.02, 0.3),
        "num_leaves": randint(8, 129),
        "min_child_samples": randint(5, 101),
        "colsample_bytree": uniform(0.5, 0.5),
        "reg_lambda": loguniform(1e-3, 10),
    },
    "xgboost": {
        "n_estimators": randint(50, 501),
        "learning_rate": loguniform(0.02, 0.3),
        "max_depth": randint(3, 11),
        "min_child_weight": loguniform(1, 50),
        "subsample": uniform(0.5, 0.5),
        "colsample_bytree": uniform(0.5, 0.5),
        "reg_lambda": loguniform(1e-1, 10),
    },
    "catboost": {
        "iterations": randint(100, 1001),
        "learning_rate": loguniform(0.02, 0.3),
        "depth": randint(4, 9),
        "l2_leaf_reg": loguniform(1, 30),
        "one_hot_max_size": [2, 10, 50],
    },
    "hist": {
        "max_iter": randint(50, 501),
        "learning_rate": loguniform(0.02, 0.3),
        "max_leaf_nodes": randint(8, 129),
        "min_samples_leaf": randint(5, 101),
        "l2_regularization": loguniform(1e-3, 10),
    },
}
"""Where ``--tune`` looks for better settings of each booster: about what their own guides name first."""


def space_of(booster: str, prefix: str) -> dict[str, Any]:
    """The settings of a booster, as a pipeline names them; nothing for one that is not known."""
    return {f"{prefix}__{name}": values for name, values in SPACES.get(booster, {}).items()}


def hist_booster(task: str, random_state: int) -> Any:
    """HistGradientBoosting for a task, categories by their type."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    from tabsym.compare.estimators import HistClassifier

    if task in CLASSES:
        return HistClassifier(random_state=random_state, categorical_features="from_dtype")
    loss = "poisson" if task == "count" else "squared_error"
    return HistGradientBoostingRegressor(loss=loss, random_state=random_state, categorical_features="from_dtype")


def native_hist(task: str, random_state: int, n_jobs: int | None = None, *, max_levels: int | None = 254) -> Any:
    """HistGradientBoosting with categories as it takes them: at most so many levels of a column."""
    from tabsym.encoders import NativeCategories, NativePipeline

    categories = NativeCategories() if max_levels is None else NativeCategories(max_levels=max_levels)
    return NativePipeline([("categories", categories), ("booster", hist_booster(task, random_state))])


def _native(name: str) -> Callable[[str, int, int], Any]:
    return lambda task, seed, jobs: load_adapter(name).native(task, random_state=seed, n_jobs=jobs)


def _over_groups(native: Callable[[str, int, int], Any]) -> Callable[[str, int, int], Any]:
    def make(task: str, random_state: int, n_jobs: int) -> Any:
        from tabsym.encoders import MODLEncoder

        kind = "classes" if task in CLASSES else "continuous"
        groups = MODLEncoder(numeric="passthrough", target_type=kind, prove=False, random_state=random_state)
        return Pipeline([("groups", groups), ("native", native(task, random_state, n_jobs))])

    return make


def _target_encoding(task: str, random_state: int, n_jobs: int) -> Any:
    from tabsym.compare.target_encoded import PlainPolynomialWrapper, PlainTargetEncoder

    encoder = PlainTargetEncoder()
    if task == "multiclass":  # it would average the class codes without a word
        encoder = PlainPolynomialWrapper(encoder)
    booster = load_adapter("lightgbm").booster(task, random_state, n_jobs)
    # as an array: LightGBM refuses some characters in column names
    return Pipeline([("encode", encoder), ("plain", FunctionTransformer(np.asarray)), ("booster", booster)])


def _target_space(task: str) -> dict[str, Any]:
    encoder = "encode__feature_encoder" if task == "multiclass" else "encode"
    return {f"{encoder}__smoothing": loguniform(1, 300)} | space_of("lightgbm", "booster")


def _tiws(task: str, random_state: int, n_jobs: int) -> Any:
    from tabsym.encoders import TIWSEncoder

    kind = "classes" if task in CLASSES else "continuous"
    encoder = TIWSEncoder(target_type=kind, numeric="passthrough", random_state=random_state, n_jobs=n_jobs)
    booster = load_adapter("lightgbm").booster(task, random_state, n_jobs)
    return Pipeline([("encode", encoder), ("booster", booster)])


CONTENDERS = [
    Contender(
        "hist-gradient-boosting",
        "HistGradientBoosting native (254 levels)",
        native_hist,
        lambda task: space_of("hist", "booster"),
        order=29,
    ),
    Contender(
        "modl-hist-gradient-boosting",
        "MODL groups + HistGradientBoosting",
        _over_groups(lambda task, seed, jobs: native_hist(task, seed, max_levels=None)),
        lambda task: space_of("hist", "native__booster"),
        order=40,
    ),
    Contender(
        "target-lightgbm",
        "Target encoding (category_encoders) + LightGBM",
        _target_encoding,
        _target_space,
        requires={"category_encoders": "tabsym[compare]", "lightgbm": "tabsym[lightgbm]"},
        order=40,
    ),
    Contender(
        "tiws-lightgbm",
        "TIWS encoding + LightGBM",
        _tiws,
        lambda task: space_of("lightgbm", "booster"),
        requires={"lightgbm": "tabsym[lightgbm]"},
        order=46,
        by_name=True,
    ),
]
for _name in available():
    _requires = {_name: f"tabsym[{_name}]"}
    CONTENDERS += [
        Contender(
            _name,
            f"{LABELS.get(_name, _name)} native",
            _native(_name),
            lambda task, name=_name: space_of(name, "booster"),  # type: ignore[misc]
            requires=_requires,
            order=_ORDER.get(_name, 50),
        ),
        Contender(
            f"modl-{_name}",
            f"MODL groups + {LABELS.get(_name, _name)}",
            _over_groups(_native(_name)),
            lambda task, name=_name: space_of(name, "native__booster"),  # type: ignore[misc]
            requires=_requires,
            order=_ORDER_OF_GROUPS.get(_name, 55),
        ),
    ]
