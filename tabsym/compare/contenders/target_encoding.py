"""category_encoders' target encoding under LightGBM: what many people do today."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import make_pipeline

from tabsym.compare.contenders import Contender
from tabsym.integrations import load_adapter


def _target_encoding(task: str, random_state: int, n_jobs: int) -> Any:
    from category_encoders import TargetEncoder
    from category_encoders.wrapper import PolynomialWrapper

    encoder = TargetEncoder()
    if task == "multiclass":  # it would average the class codes without a word
        encoder = PolynomialWrapper(encoder)
    return make_pipeline(encoder, load_adapter("lightgbm").booster(task, random_state, n_jobs)).set_output(
        transform="default"
    )


CONTENDERS = [
    Contender(
        "target-lightgbm",
        "Target encoding (category_encoders) + LightGBM",
        _target_encoding,
        requires={"category_encoders": "tabsym[compare]", "lightgbm": "tabsym[lightgbm]"},
        order=40,
    )
]
