"""What each column says about the target on its own: MODL's Level, for the report."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd

from tabsym.compare.prepare import Prepared
from tabsym.compare.task import CLASSES

MOST_ROWS, MOST_ROWS_OF_AMOUNTS = 100_000, 2_000
"""Of the table; a regression's target is cut together with each column, which takes far longer."""
SECONDS = 30.0
"""No further column is begun after so long."""


def most_rows(task: str) -> int:
    """How many rows are looked at."""
    return MOST_ROWS if task in CLASSES else MOST_ROWS_OF_AMOUNTS


def column_levels(prepared: Prepared, seed: int) -> list[dict[str, Any]]:
    """By column, best first: Level, number of parts, and the parts as text; of some rows, as far as time allows."""
    from tabsym.encoders import MODLEncoder

    X, y = _with_dates(prepared), prepared.y
    if prepared.exposure is not None:
        y = y / prepared.exposure
    most = most_rows(prepared.task)
    if len(y) > most:
        rows = np.sort(np.random.RandomState(seed).permutation(len(y))[:most])
        X, y = X.iloc[rows], y[rows]
    kind = "classes" if prepared.task in CLASSES else "continuous"
    if len(np.unique(y)) < 2:
        return []
    out, begin = [], time.monotonic()
    for name in X.columns:
        if time.monotonic() - begin > SECONDS:
            break
        encoder = MODLEncoder(n_candidates=1, target_type=kind, cols="all", random_state=seed).fit(X[[name]], y)
        fitted = encoder.partitions_[name]
        level, parts = encoder.levels_[name], fitted.partition.n_parts
        out.append({"column": name, "level": level, "parts": parts, "labels": fitted.labels})
    return sorted(out, key=lambda one: -one["level"])


def _with_dates(prepared: Prepared) -> pd.DataFrame:
    """Days as the dates they are, so that intervals are of dates."""
    days = {name: pd.to_datetime(prepared.X[name], unit="D").dt.round("s") for name in prepared.features.dates}
    return prepared.X.assign(**days) if days else prepared.X
