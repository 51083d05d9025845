"""CatBoost, with categories passed natively.

Symbols go as text, with words for missing and unseen ones: CatBoost refuses
NaN in a categorical column, and polars 2 Categorical ends the process.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from catboost import CatBoostClassifier, CatBoostRegressor
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from tabsym.encoders import NativeCategories, answer_of


class _Native(BaseEstimator):
    """NativeCategories, then CatBoost told which columns are categories (known after the first step only)."""

    def __init__(self, booster: Any) -> None:
        self.booster = booster

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit CatBoost on a table of any kind."""
        self.categories_ = NativeCategories(output="text").fit(X)
        names = tuple(self.categories_.categorical_)
        frame = self.categories_.transform(X)
        self.booster_ = clone(self.booster).fit(frame, y, cat_features=list(names), sample_weight=sample_weight)
        return self

    def predict(self, X: Any) -> Any:
        """Predicted values or classes (n_rows,)."""
        check_is_fitted(self, "booster_")
        frame = self.categories_.transform(X)
        if self.booster_.get_params().get("loss_function") == "Poisson":  # else it answers with the logarithm
            return answer_of(partial(self.booster_.predict, prediction_type="Exponent"), frame).ravel()
        return answer_of(self.booster_.predict, frame).ravel()


class NativeCatBoostClassifier(ClassifierMixin, _Native):
    """CatBoost classifier on any table."""

    @property
    def classes_(self) -> Any:
        """The classes, sorted."""
        return self.booster_.classes_

    def predict_proba(self, X: Any) -> Any:
        """Class probabilities (n_rows, n_classes)."""
        check_is_fitted(self, "booster_")
        return answer_of(self.booster_.predict_proba, self.categories_.transform(X))


class NativeCatBoostRegressor(RegressorMixin, _Native):
    """CatBoost regressor on any table."""


class CatBoostAdapter:
    """What tabsym asks of CatBoost."""

    name = "catboost"
    label = "CatBoost native"

    def native(self, task: str, *, random_state: int | None = None, n_jobs: int | None = None) -> Any:
        """CatBoost with its own treatment of categories, at its defaults; takes any table.

        Parameters
        ----------
        task : {"binary", "multiclass", "regression", "count"}
        random_state : int, optional
        n_jobs : int, optional
            Threads.

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym_catboost import adapter
        >>> X = pd.DataFrame({"a": ["u", "v"] * 50})
        >>> model = adapter.native("regression").fit(X, [0.0, 1.0] * 50)
        >>> len(model.predict(pd.DataFrame({"a": ["u", "v", "new"]})))
        3
        """
        kind = NativeCatBoostRegressor if task in ("regression", "count") else NativeCatBoostClassifier
        return kind(self.booster(task, random_state, n_jobs))

    def booster(self, task: str, random_state: int | None = None, n_jobs: int | None = None) -> Any:
        """The plain estimator for a task, at its defaults, silent and writing no files."""
        kind = CatBoostRegressor if task in ("regression", "count") else CatBoostClassifier
        options: dict[str, Any] = {"verbose": False, "allow_writing_files": False}
        if task == "count":
            options["loss_function"] = "Poisson"
        if random_state is not None:
            options["random_seed"] = random_state
        if n_jobs is not None:
            options["thread_count"] = n_jobs
        return kind(**options)

    def raw_scores(self, booster: Any, frame: Any) -> Any:
        """Scores (n_rows, ...) before the link, of a fitted estimator and the frame that it takes."""
        return booster.predict(frame, prediction_type="RawFormulaVal")


adapter = CatBoostAdapter()
