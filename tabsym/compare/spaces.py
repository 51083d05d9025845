"""Where ``--tune`` looks for better settings of each booster: about what their own guides name first."""

from __future__ import annotations

from typing import Any

from scipy.stats import loguniform, randint, uniform

BOOSTERS: dict[str, dict[str, Any]] = {
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


def space_of(booster: str, prefix: str) -> dict[str, Any]:
    """The settings of a booster, as a pipeline names them; nothing for one that is not known."""
    return {f"{prefix}__{name}": values for name, values in BOOSTERS.get(booster, {}).items()}
