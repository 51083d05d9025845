"""Wide models over Dask: rows stay on the workers, and sums by coefficient travel."""

from __future__ import annotations

from tabsym_dask.estimators import DaskWideClassifier, DaskWideRegressor

__all__ = ["DaskWideClassifier", "DaskWideRegressor"]
