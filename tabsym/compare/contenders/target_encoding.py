"""category_encoders' target encoding with LightGBM."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import loguniform
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from tabsym.compare.contenders import Contender
from tabsym.compare.spaces import space_of
from tabsym.integrations import load_adapter


def _target_encoding(task: str, random_state: int, n_jobs: int) -> Any:
    from tabsym.compare.target_encoded import PlainPolynomialWrapper, PlainTargetEncoder

    encoder = PlainTargetEncoder()
    if task == "multiclass":  # it would average the class codes without a word
        encoder = PlainPolynomialWrapper(encoder)
    booster = load_adapter("lightgbm").booster(task, random_state, n_jobs)
    # as an array: LightGBM refuses some characters in column names
    return Pipeline([("encode", encoder), ("plain", FunctionTransformer(np.asarray)), ("booster", booster)])


def _space(task: str) -> dict[str, Any]:
    encoder = "encode__feature_encoder" if task == "multiclass" else "encode"
    return {f"{encoder}__smoothing": loguniform(1, 300)} | space_of("lightgbm", "booster")


CONTENDERS = [
    Contender(
        "target-lightgbm",
        "Target encoding (category_encoders) + LightGBM",
        _target_encoding,
        _space,
        requires={"category_encoders": "tabsym[compare]", "lightgbm": "tabsym[lightgbm]"},
        order=40,
    )
]
