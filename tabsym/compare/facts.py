"""What the results of a comparison rest on besides its options: data, versions, machine."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pandas as pd

from tabsym.compare.prepare import Prepared
from tabsym.compare.splits import Split

_LIBRARIES = (
    "tabsym", "numpy", "scipy", "scikit-learn", "pandas", "numba", "lightgbm", "xgboost", "catboost",
    "category-encoders",
)  # fmt: skip


def facts_of(prepared: Prepared) -> dict[str, Any]:
    """What the settings of the results say besides the options."""
    return {
        "data": _fingerprint(prepared),
        "task": prepared.task,
        "rows": len(prepared.y),
        "columns": {column: _describe(prepared.X[column]) for column in prepared.X},
        "classes": prepared.classes,
        "notes": prepared.notes,
        "versions": _versions(),
        "machine": _machine(),
    }


def _machine() -> str:
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _fingerprint(prepared: Prepared) -> str:
    digest = hashlib.sha256(pd.util.hash_pandas_object(prepared.X, index=False).to_numpy().tobytes())
    for role in ("y", "weight", "exposure", "offset"):
        numbers = getattr(prepared, role)
        if numbers is not None:
            digest.update(role.encode())  # the same numbers as weights and as exposures are not the same data
            digest.update(np.ascontiguousarray(numbers).tobytes())
    return digest.hexdigest()[:16]


def fingerprint_of_splits(splits: Sequence[Split]) -> str:
    """Which rows are trained on and tested in each fold, in short."""
    digest = hashlib.sha256()
    for rows in (rows for split in splits for rows in split):
        digest.update(f"{len(rows)} rows".encode())
        digest.update(np.ascontiguousarray(rows, dtype=np.int64).tobytes())
    return digest.hexdigest()[:16]


def _describe(column: pd.Series) -> str:
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_numeric_dtype(column):
        return "boolean" if pd.api.types.is_bool_dtype(column) else "number"
    return f"{column.nunique(dropna=False):,} categories"


def _versions() -> dict[str, str]:
    out = {}
    for library in _LIBRARIES:
        try:
            out[library] = version(library)
        except PackageNotFoundError:
            continue
    return out
