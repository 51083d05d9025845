"""What the state of a class must be where its own `__setstate__` or `__del__` believes it: boosters, histogram trees.

A booster's bytes go to its library's loader alone. A forged handle would be freed as memory, so nothing else is taken
in its place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tabsym.export.archive import BadFile

_LIGHTGBM = {
    "_handle", "_network", "_train_data_name", "_profile", "best_iteration", "best_score", "name_valid_sets",
    "params", "pandas_categorical", "_Booster__need_reload_eval_info", "_Booster__inner_predict_buffer",
    "_Booster__is_predicted_cur_iter", "_Booster__name_inner_eval", "_Booster__higher_better_inner_eval",
    "_Booster__num_inner_eval", "_Booster__num_class", "_Booster__num_dataset", "_Booster__init_predictor",
    "_Booster__attr", "_Booster__set_objective_to_none", "train_set_version",
}  # fmt: skip
_WORDS = {"lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost"}


def homes_of(cls: type) -> set[str]:
    """Full names of a class and of all that it comes from."""
    return {f"{base.__module__}.{base.__qualname__}" for base in cls.__mro__}


def check_state(name: str, homes: set[str], state: Any, *, allow_boosters: bool) -> None:
    """Refuse a state that an object must not be given; `homes`: full names of its class and of what that comes from.

    Raises
    ------
    BadFile
        It has the wrong kind, or bytes of a booster that the caller does not allow.
    """
    if type(state) is dict:
        wrong = [key for key in state if not isinstance(key, str) or (key.startswith("__") and key != "__model")]
    else:
        wrong = [] if state is None else [f"a {type(state).__name__} in place of attributes"]
    if wrong:
        raise BadFile(f"gives a {name} {str(wrong[0])[:80]!r}, which is no attribute")
    if "lightgbm.basic.Booster" in homes:
        _check_booster("lightgbm", _is_lightgbm(state), allow_boosters)
    elif "xgboost.core.Booster" in homes:
        _check_booster("xgboost", _is_xgboost(state), allow_boosters)
    elif homes & _CATBOOST:
        if state is None or {"_test_eval", "_test_evals"} & set(state):
            raise BadFile("has a model of CatBoost that is none")
        if "__model" in state:
            _check_booster("catboost", type(state["__model"]) is bytes, allow_boosters)


_CATBOOST = {"catboost.core._CatBoostBase", "catboost.core.CatBoostClassifier", "catboost.core.CatBoostRegressor"}
_CATBOOST |= {"tabsym.NativeCatBoostClassifier", "tabsym.NativeCatBoostRegressor"}


def _check_booster(library: str, is_one: bool, allowed: bool) -> None:
    if not is_one:
        raise BadFile(f"has a model of {_WORDS[library]} that is none")
    if not allowed:
        raise BadFile(
            f"holds a model of {_WORDS[library]} in the library's own bytes, which its own reader would take; if you "
            "trust where the file comes from, load it with allow_boosters=True"
        )


def _is_lightgbm(state: Any) -> bool:
    """Text of a model in place of the handle, no network, and nothing that is not a booster's."""
    return (
        isinstance(state, dict)
        and set(state) <= _LIGHTGBM
        and isinstance(state.get("_handle"), str)
        and state["_handle"].startswith("tree\n")
        and state.get("_network", False) is False
    )


def _is_xgboost(state: Any) -> bool:
    return isinstance(state, dict) and set(state) <= _XGBOOST and type(state.get("handle")) is bytearray


_XGBOOST = {"handle", "feature_names", "feature_types", "best_iteration", "best_score"}


def check_instance(instance: Any) -> None:
    """Refuse what was built where its numbers would be believed as places in memory.

    Raises
    ------
    BadFile
        A tree of scikit-learn's histogram boosting leads out of itself.
    """
    homes = homes_of(type(instance))
    if "sklearn.ensemble._hist_gradient_boosting.gradient_boosting.BaseHistGradientBoosting" in homes:
        for stage in vars(instance).get("_predictors", []):
            for tree in stage:
                _check_tree(tree, instance)


def _check_tree(tree: Any, booster: Any) -> None:
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

    state = getattr(tree, "__dict__", {})
    nodes, sets = state.get("nodes"), state.get("raw_left_cat_bitsets")
    width = vars(booster).get("_n_features", getattr(booster, "n_features_in_", 0))
    if not (isinstance(nodes, np.ndarray) and nodes.dtype == PREDICTOR_RECORD_DTYPE and nodes.ndim == 1 and len(nodes)):
        raise BadFile("has a tree of histogram boosting that is none")
    inner = nodes[nodes["is_leaf"] == 0]
    place = np.flatnonzero(nodes["is_leaf"] == 0)
    by_set = inner[inner["is_categorical"] != 0]
    right = (
        isinstance(width, int)
        and all((inner[side] > place).all() and (inner[side] < len(nodes)).all() for side in ("left", "right"))
        and (inner["feature_idx"] >= 0).all()
        and (inner["feature_idx"] < width).all()
        and (not len(by_set) or (isinstance(sets, np.ndarray) and (by_set["bitset_idx"] < len(sets)).all()))
    )
    if not right:
        raise BadFile("has a tree of histogram boosting that leads out of itself")
