"""Target encodings with LightGBM: category_encoders', and TIWS for known categories; `unseen` has unknown ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import loguniform
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from tabsym.compare.contenders import Contender
from tabsym.compare.contenders.boosters import space_of
from tabsym.compare.task import CLASSES
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


def _tiws(task: str, random_state: int, n_jobs: int) -> Any:
    from tabsym.encoders import TIWSEncoder

    kind = "classes" if task in CLASSES else "continuous"
    encoder = TIWSEncoder(target_type=kind, numeric="passthrough", random_state=random_state, n_jobs=n_jobs)
    booster = load_adapter("lightgbm").booster(task, random_state, n_jobs)
    return Pipeline([("encode", encoder), ("booster", booster)])


CONTENDERS = [
    Contender(
        "target-lightgbm",
        "Target encoding (category_encoders) + LightGBM",
        _target_encoding,
        _space,
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
