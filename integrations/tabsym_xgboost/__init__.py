"""XGBoost, with categories passed natively.

Unknown categories are made missing before XGBoost sees them: 3.1 and 3.2 map an
unknown pandas category to a neighbour in sort order silently (mended in
dmlc/xgboost #12193), and raise on others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from xgboost import DMatrix, XGBClassifier, XGBRegressor, XGBRFClassifier, XGBRFRegressor

from tabsym.encoders import NativePipeline, coder_of
from tabsym.integrations.margins import BoosterRows, MarginAdapter, check_task, codes_of
from tabsym.messages import check_option

__all__ = ["XGBLabelClassifier", "XGBoostAdapter", "adapter"]

_SPLITS = {"own": {}, "partition": {"max_cat_to_onehot": 1}, "onehot": {"max_cat_to_onehot": 2**31 - 1}}
"""What a split asks of a category: as XGBoost's default, whether it is in a subset, or whether it is one of them."""


class XGBLabelClassifier(XGBClassifier):
    """XGBClassifier for class labels of any kind, which it codes itself: XGBoost wants 0, 1, ...

    Examples
    --------
    >>> import numpy as np
    >>> from tabsym_xgboost import XGBLabelClassifier
    >>> X = np.arange(20.0)[:, None]
    >>> model = XGBLabelClassifier(n_estimators=5).fit(X, ["low"] * 10 + ["high"] * 10)
    >>> model.predict(X[[0, -1]]).tolist()
    ['low', 'high']
    """

    _labels: NDArray[Any] | None = None

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, eval_set: Any = None, **options: Any) -> Any:
        """As XGBoost's, with labels of any kind, in `eval_set` too."""
        labels, codes = np.unique(np.asarray(y), return_inverse=True)
        self._labels = None  # XGBoost asks for its own meanwhile
        if eval_set is not None:
            eval_set = [(one, codes_of(target, labels)) for one, target in eval_set]
        super().fit(X, codes, sample_weight=sample_weight, eval_set=eval_set, **options)
        self._labels = labels
        return self

    def predict(self, X: Any, *, output_margin: bool = False, **options: Any) -> NDArray[Any]:
        """The labels (n_rows,), or margins."""
        predicted = super().predict(X, output_margin=output_margin, **options)
        return (
            predicted if output_margin or self._labels is None else self._labels[np.asarray(predicted, dtype=np.int64)]
        )

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, sorted."""
        return super().classes_ if self._labels is None else self._labels


class XGBoostAdapter(MarginAdapter):
    """What tabsym asks of XGBoost."""

    name = "xgboost"
    label = "XGBoost native"
    unset = (None, "reg:squarederror", "binary:logistic")
    kind_names = ("booster",)
    without_margins = ("base_score",)
    filled_in = ("base_margin", "base_margin_eval_set")
    kinds_without_sums = {"gblinear": "has no trees", "dart": "does not add its trees to a margin in `predict`"}
    objectives = {
        "absolute_error": {"objective": "reg:absoluteerror"},
        "quantile": {"objective": "reg:quantileerror", "quantile_alpha": "{parameter}"},
        "poisson": {"objective": "count:poisson"},
        "gamma": {"objective": "reg:gamma"},
        "tweedie": {"objective": "reg:tweedie", "tweedie_variance_power": "{parameter}"},
    }
    links = (
        dict.fromkeys(["binary:logistic", "binary:logitraw"], "logistic")
        | dict.fromkeys(["multi:softprob", "multi:softmax"], "softmax")
        | dict.fromkeys(["count:poisson", "reg:gamma", "reg:tweedie"], "log")
        | dict.fromkeys(
            ["reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror", "reg:quantileerror"], "identity"
        )
    )

    def native(
        self,
        task: str,
        *,
        random_state: int | None = None,
        n_jobs: int | None = None,
        codes: Any = "native",
        splits: Literal["own", "partition", "onehot"] = "own",
    ) -> NativePipeline:
        """XGBoost with its own treatment of categories, at its defaults; takes any table and any class labels.

        Parameters
        ----------
        task : {"binary", "multiclass", "regression", "count"}
        random_state : int, optional
        n_jobs : int, optional
            Threads.
        codes : {"native", "group", "ordinal"} or transformer, default "native"
            How categories are passed: as they are, as MODL's groups, or as their rank by frequency.
        splits : {"own", "partition", "onehot"}, default "own"
            How categories are split: as XGBoost's defaults have it, always by subsets, or always one from all others.

        Examples
        --------
        >>> import pandas as pd
        >>> from tabsym_xgboost import adapter
        >>> X = pd.DataFrame({"a": ["u", "v"] * 50})
        >>> model = adapter.native("regression").fit(X, [0.0, 1.0] * 50)
        >>> model.predict(pd.DataFrame({"a": ["u", "v", "new"]})).round(1)[:2].tolist()
        [0.0, 1.0]
        """
        check_option("splits", splits, _SPLITS)
        booster = self.booster(task, random_state, n_jobs).set_params(**_SPLITS[splits])
        return NativePipeline([("categories", coder_of(codes, task, random_state)), ("booster", booster)])

    def booster(self, task: str, random_state: int | None = None, n_jobs: int | None = None) -> Any:
        """The plain estimator for a task, at its defaults, with categories enabled."""
        check_task(task)
        options: dict[str, Any] = {"random_state": random_state, "n_jobs": n_jobs, "enable_categorical": True}
        if task == "count":
            return XGBRegressor(objective="count:poisson", **options)
        return XGBRegressor(**options) if task == "regression" else XGBLabelClassifier(**options)

    def objective_of(self, booster: Any) -> str | None:
        """The objective that an estimator names, or XGBoost's default, which cannot be told from it."""
        return booster.get_params()["objective"]

    def n_rounds(self, booster: Any) -> int:
        """The rounds that an estimator asks for."""
        return int(booster.get_num_boosting_rounds())

    def with_rounds(self, booster: Any, n_rounds: int) -> Any:
        """A clone that asks for other rounds, without early stopping."""
        rounds = {"n_estimators": n_rounds}
        if isinstance(booster, (XGBRFClassifier, XGBRFRegressor)):  # whose trees are one round
            if n_rounds != 1:
                raise ValueError(f"{type(booster).__name__} has one round, and {n_rounds} are asked for; ask for 1.")
            rounds = {}
        return type(booster)(**booster.get_params() | rounds | {"early_stopping_rounds": None})

    def _fit(
        self, booster: Any, rows: BoosterRows, held_out: BoosterRows | None, patience: int | None, options: dict
    ) -> None:
        booster.set_params(enable_categorical=True)
        if patience is not None:
            booster.set_params(early_stopping_rounds=patience)
        if held_out is not None:
            options |= {"eval_set": [(held_out.frame, held_out.y)]}
            if held_out.margin is not None:
                options |= {"base_margin_eval_set": [held_out.margin]}
        options = {"verbose": False} | options
        booster.fit(rows.frame, rows.y, sample_weight=rows.weight, base_margin=rows.margin, **options)

    def _sum_of_trees(self, booster: Any, frame: Any, on_margin: bool) -> Any:
        # the margin itself is added in float64 outside: XGBoost would round the sum to float32
        zero = _zero_margin(booster, len(frame)) if on_margin else None
        return booster.predict(frame, output_margin=True, base_margin=zero)

    def _contributions(self, booster: Any, frame: Any, on_margin: bool) -> Any:
        zero = _zero_margin(booster, len(frame)) if on_margin else None
        data = DMatrix(
            frame, base_margin=zero, missing=booster.missing, nthread=booster.n_jobs, enable_categorical=True
        )
        return booster.get_booster().predict(data, pred_contribs=True, iteration_range=(0, _n_best(booster)))

    def _steps(self, booster: Any, frame: Any, every: int, on_margin: bool) -> Iterator[Any]:
        total: Any = 0.0
        n_rounds = _n_best(booster) or booster.get_booster().num_boosted_rounds()
        zero = _zero_margin(booster, len(frame))
        for start in range(0, n_rounds, every):
            base = None if start == 0 and not on_margin else zero
            rounds = (start, min(start + every, n_rounds))
            some = booster.predict(frame, output_margin=True, base_margin=base, iteration_range=rounds)
            total = total + np.asarray(some, dtype=np.float64)
            yield total


def _n_best(booster: Any) -> int:
    """The rounds up to the best one, which XGBoost predicts by after early stopping; 0: all."""
    best = getattr(booster, "best_iteration", None)
    return 0 if best is None else int(best) + 1


def _zero_margin(booster: Any, n_rows: int) -> Any:
    n_classes = getattr(booster, "n_classes_", 2)
    return np.zeros(n_rows if n_classes <= 2 else (n_rows, n_classes))


adapter = XGBoostAdapter()
