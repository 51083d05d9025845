"""What each column says about the target on its own: MODL's Level, for the report."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tabsym.compare.prepare import Prepared
from tabsym.compare.task import CLASSES

MOST_ROWS = 100_000


def column_levels(prepared: Prepared, seed: int) -> list[dict[str, Any]]:
    """By column, best first: Level, number of parts, and the parts as text; of at most 100,000 rows."""
    from tabsym.encoders import MODLEncoder

    X, y = _with_dates(prepared), prepared.y
    if prepared.exposure is not None:
        y = y / prepared.exposure
    if len(y) > MOST_ROWS:
        rows = np.sort(np.random.RandomState(seed).permutation(len(y))[:MOST_ROWS])
        X, y = X.iloc[rows], y[rows]
    kind = "classes" if prepared.task in CLASSES else "continuous"
    if len(np.unique(y)) < 2:
        return []
    encoder = MODLEncoder(n_candidates=1, target_type=kind, cols="all", random_state=seed).fit(X, y)
    partitions = encoder.partitions_
    return [
        {"column": name, "level": level, "parts": partitions[name].partition.n_parts, "labels": partitions[name].labels}
        for name, level in encoder.levels_.items()
    ]


def _with_dates(prepared: Prepared) -> pd.DataFrame:
    """Days as the dates they are, so that intervals are of dates."""
    days = {name: pd.to_datetime(prepared.X[name], unit="D").dt.round("s") for name in prepared.features.dates}
    return prepared.X.assign(**days) if days else prepared.X
