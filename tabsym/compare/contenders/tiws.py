"""TIWS target encoding with LightGBM, for known categories; see `unseen` for unknown ones."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline

from tabsym.compare.contenders import Contender
from tabsym.compare.spaces import space_of
from tabsym.compare.task import CLASSES
from tabsym.encoders import TIWSEncoder
from tabsym.integrations import load_adapter


def _tiws(task: str, random_state: int, n_jobs: int) -> Any:
    kind = "classes" if task in CLASSES else "continuous"
    encoder = TIWSEncoder(target_type=kind, numeric="passthrough", random_state=random_state, n_jobs=n_jobs)
    booster = load_adapter("lightgbm").booster(task, random_state, n_jobs)
    return Pipeline([("encode", encoder), ("booster", booster)])


CONTENDERS = [
    Contender(
        "tiws-lightgbm",
        "TIWS encoding + LightGBM",
        _tiws,
        lambda task: space_of("lightgbm", "booster"),
        requires={"lightgbm": "tabsym[lightgbm]"},
        order=46,
        by_name=True,
    )
]
