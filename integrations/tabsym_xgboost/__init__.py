"""XGBoost, with categories passed natively.

Unseen symbols are made missing before XGBoost sees them: 3.1 and 3.2 map an
unseen pandas category to a neighbour in sort order without a word (mended in
dmlc/xgboost #12193), and raise on others.
"""

from __future__ import annotations

from typing import Any

from xgboost import XGBClassifier, XGBRegressor

from tabsym.encoders import NativeCategories, NativePipeline
from tabsym.jitter.trees import Trees
from tabsym_xgboost.trees import read_trees


class XGBoostAdapter:
    """What tabsym asks of XGBoost."""

    name = "xgboost"
    label = "XGBoost native"

    def native(self, task: str, *, random_state: int | None = None, n_jobs: int | None = None) -> NativePipeline:
        """XGBoost with its own treatment of categories, at its defaults; takes any table.

        Classes must be coded 0, 1, ... (scikit-learn's `LabelEncoder`), as for XGBoost itself.

        Parameters
        ----------
        task : {"binary", "multiclass", "regression", "count"}
        random_state : int, optional
        n_jobs : int, optional
            Threads.

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym_xgboost import adapter
        >>> X = pd.DataFrame({"a": ["u", "v"] * 50})
        >>> model = adapter.native("regression").fit(X, [0.0, 1.0] * 50)
        >>> model.predict(pd.DataFrame({"a": ["u", "v", "new"]})).round(1)[:2].tolist()
        [0.0, 1.0]
        """
        booster = self.booster(task, random_state, n_jobs)
        return NativePipeline([("categories", NativeCategories()), ("booster", booster)])

    def booster(self, task: str, random_state: int | None = None, n_jobs: int | None = None) -> Any:
        """The plain estimator for a task, at its defaults, with categories enabled."""
        options: dict[str, Any] = {"random_state": random_state, "n_jobs": n_jobs, "enable_categorical": True}
        if task == "count":
            return XGBRegressor(objective="count:poisson", **options)
        return XGBRegressor(**options) if task == "regression" else XGBClassifier(**options)

    def raw_scores(self, booster: Any, frame: Any) -> Any:
        """Scores (n_rows, ...) before the link, of a fitted estimator and the frame that it takes."""
        return booster.predict(frame, output_margin=True)

    def read_trees(self, booster: Any) -> Trees:
        """The trees of a fitted estimator, as arrays."""
        return read_trees(booster)


adapter = XGBoostAdapter()
