"""MODL's Level of each column, for the report on classes: the share of the target's code length that it saves."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd

from tabsym.compare.prepare import Prepared
from tabsym.compare.task import CLASSES

MAX_ROWS = 100_000
SECONDS = 30.0
"""No further column is begun after so long."""


def column_levels(prepared: Prepared, seed: int) -> list[dict[str, Any]]:
    """By column, best first: Level, number of parts, and the parts as text; of some rows, as far as time allows."""
    from tabsym.encoders import MODLEncoder

    if prepared.task not in CLASSES:  # partitions of two numbers take far longer: few rows, in which little is visible
        return []
    X, y = _with_dates(prepared), prepared.y
    if len(y) > MAX_ROWS:
        rows = np.sort(np.random.RandomState(seed).permutation(len(y))[:MAX_ROWS])
        X, y = X.iloc[rows], y[rows]
    if len(np.unique(y)) < 2:
        return []
    out, begin = [], time.monotonic()
    for name in X.columns:
        if time.monotonic() - begin > SECONDS:
            break
        encoder = MODLEncoder(n_candidates=1, target_type="classes", cols="all", random_state=seed).fit(X[[name]], y)
        fitted = encoder.partitions_[name]
        level, parts = encoder.levels_[name], fitted.partition.n_parts
        out.append({"column": name, "level": level, "parts": parts, "labels": fitted.labels})
    return sorted(out, key=lambda one: -one["level"])


def _with_dates(prepared: Prepared) -> pd.DataFrame:
    """Days as the dates they are, so that intervals are of dates."""
    days = {name: pd.to_datetime(prepared.X[name], unit="D").dt.round("s") for name in prepared.features.dates}
    return prepared.X.assign(**days) if days else prepared.X
