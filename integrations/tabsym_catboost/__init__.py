"""CatBoost, with categories passed natively.

Categories go as text, with words for missing and unknown ones: CatBoost refuses
NaN in a categorical column, and polars 2 Categorical ends the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from catboost import CatBoostClassifier, CatBoostRegressor, Pool
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from tabsym.encoders import answer_of, coder_of
from tabsym.encoders.native import fit_coder
from tabsym.frame import plain_labels
from tabsym.integrations.margins import BoosterRows, MarginAdapter, check_task
from tabsym.models.targets import LabelClassifier


class _Native(BaseEstimator):
    """NativeCategories, then CatBoost told which columns are categories (known after the first step only)."""

    def __init__(self, booster: Any, codes: Any = "native") -> None:
        self.booster = booster
        self.codes = codes

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit CatBoost on a table of any kind."""
        y = plain_labels(y)
        task = "regression" if isinstance(self, RegressorMixin) else "multiclass"
        self.categories_ = coder_of(self.codes, task, 0, text=True)
        frame = fit_coder(self.categories_, X, y, sample_weight)
        names = categorical_names(frame)
        self.booster_ = clone(self.booster).fit(frame, y, cat_features=names, sample_weight=sample_weight)
        return self

    def predict(self, X: Any) -> Any:
        """Predicted values or classes (n_rows,)."""
        check_is_fitted(self, "booster_")
        frame = self.categories_.transform(X)
        if self.booster_.get_params().get("loss_function") == "Poisson":  # else it answers with the logarithm
            return answer_of(partial(self.booster_.predict, prediction_type="Exponent"), frame).ravel()
        return answer_of(self.booster_.predict, frame).ravel()


class NativeCatBoostClassifier(LabelClassifier, _Native):
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


def categorical_names(frame: Any) -> list[str]:
    """The columns of a frame that hold text, which CatBoost must be told of."""
    if not isinstance(frame, pd.DataFrame):
        return []
    return [
        str(name) for name, kind in frame.dtypes.items() if not isinstance(kind, np.dtype) or kind.kind not in "fiub"
    ]


_ROUNDS = ("n_estimators", "num_boost_round", "num_trees", "iterations")
_DEFAULT_ROUNDS = 1000


class CatBoostAdapter(MarginAdapter):
    """What tabsym asks of CatBoost."""

    name = "catboost"
    label = "CatBoost native"
    unset = (None, "RMSE")
    objective_names = ("loss_function", "objective")
    without_margins = ("boost_from_average",)
    of_links = {"class_names": (None, True)}  # in another order than the sorted labels
    filled_in = ("baseline", "sample_weight", "cat_features")
    objectives = {
        "absolute_error": {"loss_function": "MAE"},
        "quantile": {"loss_function": "Quantile:alpha={parameter}"},
        "poisson": {"loss_function": "Poisson"},
        # CatBoost has no gamma; Tweedie with a power of nearly 2 has the same link and nearly the same variance
        "gamma": {"loss_function": "Tweedie:variance_power=1.99"},
        "tweedie": {"loss_function": "Tweedie:variance_power={parameter}"},
    }
    links = (
        dict.fromkeys(["Logloss", "CrossEntropy"], "logistic")
        | dict.fromkeys(["MultiClass"], "softmax")
        | dict.fromkeys(["Poisson", "Tweedie"], "log")
        | dict.fromkeys(["RMSE", "MAE", "Quantile", "Huber", "MAPE", "Lq", "Expectile", "LogCosh"], "identity")
    )

    def native(
        self, task: str, *, random_state: int | None = None, n_jobs: int | None = None, codes: Any = "native"
    ) -> Any:
        """CatBoost with its own treatment of categories, at its defaults; takes any table.

        Parameters
        ----------
        task : {"binary", "multiclass", "regression", "count"}
        random_state : int, optional
        n_jobs : int, optional
            Threads.
        codes : {"native", "group", "ordinal"} or transformer, default "native"
            How categories are passed: as they are, as MODL's groups, or as their rank by frequency.

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
        return kind(self.booster(task, random_state, n_jobs), codes)

    def booster(self, task: str, random_state: int | None = None, n_jobs: int | None = None) -> Any:
        """The plain estimator for a task, at its defaults, silent and writing no files."""
        check_task(task)
        kind = CatBoostRegressor if task in ("regression", "count") else CatBoostClassifier
        options: dict[str, Any] = {"verbose": False, "allow_writing_files": False}
        if task == "count":
            options["loss_function"] = "Poisson"
        if random_state is not None:
            options["random_seed"] = random_state
        if n_jobs is not None:
            options["thread_count"] = n_jobs
        return kind(**options)

    def objective_of(self, booster: Any) -> str | None:
        """The objective that an estimator names, without its numbers."""
        params = booster.get_params()
        named = next((params[name] for name in reversed(self.objective_names) if params.get(name) is not None), None)
        return None if named is None else str(named).partition(":")[0]

    def n_rounds(self, booster: Any) -> int:
        """The rounds that an estimator asks for."""
        params = booster.get_params()
        return int(next((params[name] for name in _ROUNDS if params.get(name) is not None), _DEFAULT_ROUNDS))

    def with_rounds(self, booster: Any, n_rounds: int) -> Any:
        """A clone that asks for other rounds, without early stopping."""
        stops = (*_ROUNDS, "early_stopping_rounds", "od_type", "od_wait", "od_pval", "use_best_model")
        params = {name: value for name, value in booster.get_params().items() if name not in stops}
        return type(booster)(**params | {"iterations": n_rounds})

    def fit_rounds(
        self, booster: Any, n_rounds: int, X: Any, y: Any, margin: Any = None, *, sample_weight: Any = None
    ) -> Any:
        """As `fit_margin`, cut after some rounds.

        Fewer rounds cannot be asked for: CatBoost would choose another learning rate.
        """
        full = self.with_rounds(booster, self.n_rounds(booster))
        fitted = self.fit_margin(full, X, y, margin, sample_weight=sample_weight)
        fitted.shrink(ntree_end=min(n_rounds, fitted.tree_count_))
        return fitted

    def fresh(self, booster: Any) -> Any:
        """An unfitted booster with the same options, but `cat_features`."""
        # which columns are categories the frame says: the user's own `cat_features` may name numbers here
        params = {name: value for name, value in booster.get_params().items() if name != "cat_features"}
        return type(booster)(**params)

    def _fit(
        self, booster: Any, rows: BoosterRows, held_out: BoosterRows | None, patience: int | None, options: dict
    ) -> None:
        if held_out is not None:
            options |= {"eval_set": _pool(held_out), "early_stopping_rounds": patience}
        booster.fit(_pool(rows), **options)

    def _sum_of_trees(self, booster: Any, frame: Any, on_margin: bool) -> Any:
        # boosting from a baseline has no constant of its own
        return booster.predict(frame, prediction_type="RawFormulaVal")

    def _contributions(self, booster: Any, frame: Any, on_margin: bool) -> Any:
        pool = Pool(frame, cat_features=categorical_names(frame) or None)
        return booster.get_feature_importance(pool, type="ShapValues")

    def _steps(self, booster: Any, frame: Any, every: int, on_margin: bool) -> Iterator[Any]:
        return booster.staged_predict(frame, prediction_type="RawFormulaVal", eval_period=every)


def _pool(rows: BoosterRows) -> Pool:
    names = categorical_names(rows.frame)
    return Pool(rows.frame, rows.y, cat_features=names or None, weight=rows.weight, baseline=rows.margin)


adapter = CatBoostAdapter()
