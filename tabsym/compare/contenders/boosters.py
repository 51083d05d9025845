"""The boosters: with their own treatment of categories through the adapters, over MODL's groups, and target encodings.

MODL makes one group of categories with the same effect on the target. A few groups instead of thousands of categories:
trees have less to memorise, and HistGradientBoosting's limit of 255 categories is no limit any more. The target
encodings are category_encoders', and TIWS for known categories. Last come treatments of unknown categories.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from tabsym.compare.contenders import Contender, Make, Space
from tabsym.compare.table.prepare import CLASSES
from tabsym.integrations import available, load_adapter

LIGHTGBM = {"lightgbm": "tabsym[lightgbm]"}
"""What a contender with LightGBM requires."""
LABELS = {
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    "catboost": "CatBoost",
    "hist-gradient-boosting": "HistGradientBoosting",
}
_ORDERS = {"lightgbm": (30, 41, 37), "xgboost": (31, 42, 38), "catboost": (60, 61, 62)}
"""Of the booster itself, over groups, and jittered."""

_SPACES: dict[str, dict[str, Any]] = {
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
    return {f"{prefix}__{name}": values for name, values in _SPACES.get(booster, {}).items()}


def _space_at(booster: str, prefix: str) -> Space:
    return lambda task: space_of(booster, prefix)


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


def _native(booster: str, task: str, random_state: int, n_jobs: int) -> Any:
    return load_adapter(booster).native(task, random_state=random_state, n_jobs=n_jobs)


def _over_groups(native: Make, task: str, random_state: int, n_jobs: int) -> Any:
    from tabsym.encoders import MODLEncoder

    groups = MODLEncoder(numeric="passthrough", target_type=_target_type(task), prove=False, random_state=random_state)
    return Pipeline([("groups", groups), ("native", native(task, random_state, n_jobs))])


def _target_type(task: str) -> str:
    return "classes" if task in CLASSES else "continuous"


def _target_encoding(task: str, random_state: int, n_jobs: int) -> Any:
    from tabsym.compare.target_encoded import PlainPolynomialWrapper, PlainTargetEncoder

    encoder = PlainTargetEncoder()
    if task == "multiclass":  # it would average the class codes without a word
        encoder = PlainPolynomialWrapper(encoder)
    booster = load_adapter("lightgbm").booster(task, random_state, n_jobs)
    # as an array: LightGBM refuses some characters in column names
    return Pipeline([("encode", encoder), ("plain", FunctionTransformer(np.asarray)), ("booster", booster)])


def _space_of_target_encoding(task: str) -> dict[str, Any]:
    encoder = "encode__feature_encoder" if task == "multiclass" else "encode"
    return {f"{encoder}__smoothing": loguniform(1, 300)} | space_of("lightgbm", "booster")


def _tiws(task: str, random_state: int, n_jobs: int, **options: Any) -> Any:
    from tabsym.encoders import TIWSEncoder

    return TIWSEncoder(target_type=_target_type(task), random_state=random_state, n_jobs=n_jobs, **options)


def _over_tiws(task: str, random_state: int, n_jobs: int) -> Any:
    """TIWS for known categories."""
    encoder = _tiws(task, random_state, n_jobs, numeric="passthrough")
    booster = load_adapter("lightgbm").booster(task, random_state, n_jobs)
    return Pipeline([("encode", encoder), ("booster", booster)])


# -- unknown categories ------------------------------------------------------------------------------
# All with LightGBM, except jittering of each booster. They take part where whole categories of a column are held out,
# along with the boosters' own treatment.


def _without(X: Any, column: str) -> Any:
    return X.drop(columns=column)


def _blind(task: str, random_state: int, n_jobs: int, column: str) -> Any:
    without = FunctionTransformer(_without, kw_args={"column": column})
    return Pipeline([("without", without), ("native", _native("lightgbm", task, random_state, n_jobs))])


def _encoded(task: str, random_state: int, n_jobs: int, column: str, *, fill: str | None = None, **options: Any) -> Any:
    """`fill`: what the values of unknown categories are made of, where these are not the encoder's."""
    encoder = _tiws(task, random_state, n_jobs, cols=[column], **options)
    if fill is not None:
        from tabsym.compare.estimators import FilledEncoder

        encoder = FilledEncoder(encoder, column, by=fill)
    return Pipeline([("encode", encoder), ("native", _native("lightgbm", task, random_state, n_jobs))])


def _augmented(task: str, random_state: int, n_jobs: int, column: str) -> Any:
    from tabsym.jitter import AugmentedModel

    encoder = _tiws(task, random_state, n_jobs, cols=[column], indicator=True)
    return AugmentedModel(_native("lightgbm", task, random_state, n_jobs), encoder=encoder)


def _jittered(booster: str, task: str, random_state: int, n_jobs: int, column: str) -> Any:
    from tabsym.compare.estimators import Jittered

    encoder = _tiws(task, random_state, n_jobs, cols=[column])
    return Jittered(_native(booster, task, random_state, n_jobs), encoder, random_state)


def _of_library(library: str) -> list[Contender]:
    """The booster of a library that has an adapter: itself, over groups, and jittered."""
    label, requires = LABELS.get(library, library), {library: f"tabsym[{library}]"}
    order, order_of_groups, order_jittered = _ORDERS.get(library, (50, 55, 55))
    native = partial(_native, library)
    return [
        Contender(library, f"{label} native", native, _space_at(library, "booster"), requires, order),
        Contender(
            f"modl-{library}", f"MODL groups + {label}", partial(_over_groups, native),
            _space_at(library, "native__booster"), requires, order_of_groups,
        ),
        Contender(
            f"unseen-jitter-{library}", f"{label} jittered", partial(_jittered, library),
            _space_at(library, "estimator__booster"), requires, order_jittered, for_unseen=True,
        ),
    ]  # fmt: skip


def _unseen(name: str, label: str, make: Make, order: int, step: str = "native__booster") -> Contender:
    space = _space_at("lightgbm", step)
    return Contender(f"unseen-{name}", f"{label} + LightGBM", make, space, LIGHTGBM, order, for_unseen=True)


CONTENDERS = [
    Contender(
        "hist-gradient-boosting", "HistGradientBoosting native (254 levels)", native_hist, _space_at("hist", "booster"),
        order=29,
    ),
    Contender(
        "modl-hist-gradient-boosting", "MODL groups + HistGradientBoosting",
        partial(_over_groups, partial(native_hist, max_levels=None)), _space_at("hist", "native__booster"), order=40,
    ),
    Contender(
        "target-lightgbm", "Target encoding (category_encoders) + LightGBM", _target_encoding,
        _space_of_target_encoding, {"category_encoders": "tabsym[compare]", **LIGHTGBM}, 40,
    ),
    Contender(
        "tiws-lightgbm", "TIWS encoding + LightGBM", _over_tiws, _space_at("lightgbm", "booster"), LIGHTGBM, 46,
        by_name=True,
    ),
    _unseen("blind", "Without the column", _blind, 32),
    _unseen("mean", "Mean over categories", partial(_encoded, context="observed"), 33),
    _unseen("knn", "kNN of the rows", partial(_encoded, fill="knn"), 36),
    _unseen("names", "Similar names", partial(_encoded, fill="names"), 34),
    _unseen("tiws-printed", "TIWS as printed", partial(_encoded, method="poster"), 34),
    _unseen("documents", "TIWS (documents)", _encoded, 35),
    _unseen("augmented", "TIWS augmented", _augmented, 36, "estimator__booster"),
    *(contender for library in available() for contender in _of_library(library)),
]  # fmt: skip
