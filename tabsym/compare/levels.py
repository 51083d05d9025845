"""What each column says about the target on its own: MODL's Level, for the report."""

from __future__ import annotations

from typing import Any

import numpy as np

from tabsym.compare.prepare import Prepared

MOST_ROWS = 100_000


def column_levels(prepared: Prepared, seed: int) -> list[dict[str, Any]]:
    """By column, best first: Level, number of parts, and the parts as text; of at most 100,000 rows."""
    from tabsym.encoders import MODLEncoder

    X, y = prepared.X, prepared.y
    if len(y) > MOST_ROWS:
        rows = np.sort(np.random.RandomState(seed).permutation(len(y))[:MOST_ROWS])
        X, y = X.iloc[rows], y[rows]
    kind = "continuous" if prepared.task == "regression" else "classes"
    if kind == "classes" and len(np.unique(y)) < 2:
        return []
    encoder = MODLEncoder(n_candidates=1, target_type=kind, random_state=seed).fit(X, y)
    partitions = encoder.partitions_
    return [
        {"column": name, "level": level, "parts": partitions[name].partition.n_parts, "labels": partitions[name].labels}
        for name, level in encoder.levels_.items()
    ]
