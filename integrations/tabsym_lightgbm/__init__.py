"""LightGBM, with categories passed natively.

Unseen and missing symbols reach LightGBM as NaN, which it sends to the side
of a split that does not list them; polars and Arrow categories, on which it
aborts the process, never reach it.
"""

from __future__ import annotations

from typing import Any

from lightgbm import LGBMClassifier, LGBMRegressor

from tabsym.encoders import NativeCategories, NativePipeline
from tabsym.jitter.trees import Trees
from tabsym_lightgbm.trees import read_trees


class LightGBMAdapter:
    """What tabsym asks of LightGBM."""

    name = "lightgbm"
    label = "LightGBM native"

    def native(self, task: str, *, random_state: int | None = None, n_jobs: int | None = None) -> NativePipeline:
        """LightGBM with its own treatment of categories, at its defaults; takes any table.

        Parameters
        ----------
        task : {"binary", "multiclass", "regression", "count"}
        random_state : int, optional
        n_jobs : int, optional
            Threads.

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym_lightgbm import adapter
        >>> X = pd.DataFrame({"a": ["u", "v"] * 50})
        >>> model = adapter.native("regression").fit(X, [0.0, 1.0] * 50)
        >>> model.predict(pd.DataFrame({"a": ["u", "v", "new"]})).round(1)[:2].tolist()
        [0.0, 1.0]
        """
        booster = self.booster(task, random_state, n_jobs)
        return NativePipeline([("categories", NativeCategories()), ("booster", booster)])

    def booster(self, task: str, random_state: int | None = None, n_jobs: int | None = None) -> Any:
        """The plain estimator for a task, at its defaults and silent."""
        options: dict[str, Any] = {"random_state": random_state, "n_jobs": n_jobs, "verbosity": -1}
        if task == "count":
            return LGBMRegressor(objective="poisson", **options)
        return LGBMRegressor(**options) if task == "regression" else LGBMClassifier(**options)

    def raw_scores(self, booster: Any, frame: Any) -> Any:
        """Scores (n_rows, ...) before the link, of a fitted estimator and the frame that it takes."""
        return booster.predict(frame, raw_score=True)

    def read_trees(self, booster: Any) -> Trees:
        """The trees of a fitted estimator, as arrays."""
        return read_trees(booster)


adapter = LightGBMAdapter()
