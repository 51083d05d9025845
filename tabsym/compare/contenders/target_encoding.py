"""category_encoders' target encoding under LightGBM: what many people do today."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from tabsym.compare.contenders import Contender
from tabsym.integrations import load_adapter


def _target_encoding(task: str, random_state: int, n_jobs: int) -> Any:
    from category_encoders import TargetEncoder
    from category_encoders.wrapper import PolynomialWrapper

    encoder = TargetEncoder()
    if task == "multiclass":  # it would average the class codes without a word
        encoder = PolynomialWrapper(encoder)
    booster = load_adapter("lightgbm").booster(task, random_state, n_jobs)
    # as an array: LightGBM refuses some characters in column names
    return make_pipeline(encoder, FunctionTransformer(np.asarray), booster)


CONTENDERS = [
    Contender(
        "target-lightgbm",
        "Target encoding (category_encoders) + LightGBM",
        _target_encoding,
        requires={"category_encoders": "tabsym[compare]", "lightgbm": "tabsym[lightgbm]"},
        order=40,
    )
]
