"""LightGBM, with categories passed natively.

Unknown and missing categories reach LightGBM as NaN, which it sends to the side
of a split that does not list them; polars and Arrow categories, on which it
aborts the process, never reach it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier, LGBMRegressor, early_stopping

from tabsym.encoders import NativePipeline, coder_of
from tabsym.integrations.margins import BoosterRows, MarginAdapter, check_task

__all__ = ["LightGBMAdapter", "adapter"]

_ROUNDS = ("num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees", "num_round", "num_rounds", "nrounds",
           "num_boost_round", "max_iter")  # fmt: skip


class LightGBMAdapter(MarginAdapter):
    """What tabsym asks of LightGBM."""

    name = "lightgbm"
    label = "LightGBM native"
    unset = (None,)
    objective_names = ("objective", "objective_type", "app", "application", "loss")
    kind_names = ("boosting_type", "boosting", "boost")
    kinds_without_sums = dict.fromkeys(["rf", "random_forest"], "averages its trees")
    without_margins = ("boost_from_average", "pred_early_stop")  # which looks at the sum of trees without the margin
    filled_in = ("init_score", "eval_init_score")
    of_links = {"reg_sqrt": (False, False), "sigmoid": (1.0, True)}
    objectives = {
        "absolute_error": {"objective": "regression_l1"},
        "quantile": {"objective": "quantile", "alpha": "{parameter}"},
        "poisson": {"objective": "poisson"},
        "gamma": {"objective": "gamma"},
        "tweedie": {"objective": "tweedie", "tweedie_variance_power": "{parameter}"},
    }
    links = (
        dict.fromkeys(["binary"], "logistic")
        | dict.fromkeys(["multiclass", "softmax"], "softmax")
        | dict.fromkeys(["poisson", "gamma", "tweedie"], "log")
        | dict.fromkeys(
            ["regression", "regression_l2", "l2", "mse", "mean_squared_error", "rmse", "regression_l1", "l1", "mae",
             "mean_absolute_error", "huber", "fair", "quantile", "mape"],
            "identity",
        )
    )  # fmt: skip

    def native(
        self,
        task: str,
        *,
        random_state: int | None = None,
        n_jobs: int | None = None,
        codes: Any = "native",
    ) -> NativePipeline:
        """LightGBM with its own treatment of categories, at its defaults; takes any table.

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
        >>> from tabsym_lightgbm import adapter
        >>> X = pd.DataFrame({"a": ["u", "v"] * 50})
        >>> model = adapter.native("regression").fit(X, [0.0, 1.0] * 50)
        >>> model.predict(pd.DataFrame({"a": ["u", "v", "new"]})).round(1)[:2].tolist()
        [0.0, 1.0]
        """
        booster = self.booster(task, random_state, n_jobs)
        return NativePipeline([("categories", coder_of(codes, task, random_state)), ("booster", booster)])

    def booster(self, task: str, random_state: int | None = None, n_jobs: int | None = None) -> Any:
        """The plain estimator for a task, at its defaults and silent."""
        check_task(task)
        options: dict[str, Any] = {"random_state": random_state, "n_jobs": n_jobs, "verbosity": -1}
        if task == "count":
            return LGBMRegressor(objective="poisson", **options)
        return LGBMRegressor(**options) if task == "regression" else LGBMClassifier(**options)

    def objective_of(self, booster: Any) -> str | None:
        """The objective that an estimator names."""
        return booster.get_params()["objective"]

    def n_rounds(self, booster: Any) -> int:
        """The rounds that an estimator asks for."""
        params = booster.get_params()
        return int(next((params[name] for name in _ROUNDS if name in params), params["n_estimators"]))

    def with_rounds(self, booster: Any, n_rounds: int) -> Any:
        """A clone that asks for other rounds."""
        params = {name: value for name, value in booster.get_params().items() if name not in _ROUNDS}
        return type(booster)(**params | {"n_estimators": n_rounds})

    def _fit(
        self, booster: Any, rows: BoosterRows, held_out: BoosterRows | None, patience: int | None, options: dict
    ) -> None:
        if held_out is not None:
            options |= {"eval_set": [(held_out.frame, held_out.y)]}
            if held_out.margin is not None:
                options |= {"eval_init_score": [held_out.margin]}
            if patience is not None:
                stop = early_stopping(patience, verbose=False)
                options |= {"callbacks": [*options.get("callbacks", []), stop]}
        booster.fit(rows.frame, rows.y, sample_weight=rows.weight, init_score=rows.margin, **options)

    def _sum_of_trees(self, booster: Any, frame: Any, on_margin: bool) -> Any:
        # boosting from init_score has no constant of its own, and predict knows nothing of init_score
        return booster.predict(frame, raw_score=True) / self._n_averaged(booster)

    def _contributions(self, booster: Any, frame: Any, on_margin: bool) -> Any:
        found = np.asarray(booster.predict(frame, pred_contrib=True)) / self._n_averaged(booster)
        n_columns = booster.booster_.num_feature() + 1
        return found if found.shape[1] == n_columns else found.reshape(len(found), -1, n_columns)

    def _n_averaged(self, booster: Any) -> int:
        """What scores are divided by: LightGBM's raw scores of a forest are sums, and its predictions means."""
        params = booster.get_params()
        is_forest = any(str(params.get(name)) in self.kinds_without_sums for name in self.kind_names)
        return max(booster.booster_.current_iteration(), 1) if is_forest else 1

    def _steps(self, booster: Any, frame: Any, every: int, on_margin: bool) -> Iterator[Any]:
        total: Any = 0.0
        core, rows = booster.booster_, _as_array(booster, frame)
        threads = max(booster.n_jobs or 0, 0)
        for start in range(0, core.current_iteration(), every):
            some = core.predict(rows, raw_score=True, start_iteration=start, num_iteration=every, num_threads=threads)
            total = total + np.asarray(some)
            yield total


def _as_array(booster: Any, frame: Any) -> Any:
    """A frame as the numbers that LightGBM makes of it, made once: a path of 40 steps costs as much as a fit otherwise.

    The frame itself, where its categories are not those of training.
    """
    if not isinstance(frame, pd.DataFrame):
        return frame
    known = booster.booster_.pandas_categorical or []
    of_type = [name for name, kind in frame.dtypes.items() if isinstance(kind, pd.CategoricalDtype)]
    if [list(frame[name].cat.categories) for name in of_type] != [list(one) for one in known]:
        return frame
    columns = {name: frame[name].to_numpy(np.float64) for name in frame if name not in of_type}
    for name in of_type:
        codes = frame[name].cat.codes.to_numpy(np.float64)
        columns[name] = np.where(codes < 0, np.nan, codes)
    return np.column_stack([columns[name] for name in frame])


adapter = LightGBMAdapter()
