"""A booster over coded columns: on top of margins, beside them, or without them; and the default boosters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype
from sklearn.base import clone, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.utils.validation import has_fit_parameter

from tabsym.encoders import coder_of
from tabsym.encoders.native import fit_coder
from tabsym.frame.frames import pick_columns
from tabsym.integrations import available, load_adapter
from tabsym.integrations.margins import link_of
from tabsym.losses.loss import Loss
from tabsym.models import WideClassifier, WideRegressor

Floats = NDArray[np.float64]
Mode = Literal["margin", "feature", "alone"]

_MIN_VALUE = 1e-7  # a probability, or a share of the mean, below which logarithms are meaningless


@dataclass(frozen=True)
class Plan:
    """What stands over the wide model, unfitted.

    Attributes
    ----------
    booster : estimator
    mode : "margin", on top of margins; "feature", with margins as columns; "alone", without them
    codes : how categories are coded (`coder_of`)
    task : "binary", "multiclass" or "regression"
    columns : those of the table that the booster sees, None for all
    classes : the labels of the classes 0, 1, ..., None for numbers
    variant : what distinguishes it from a plan of the same mode that was tried before
    """

    booster: Any
    mode: Mode
    codes: Any
    task: str
    columns: list[str] | None = None
    random_state: int | None = None
    variant: str = field(default="", compare=False)
    classes: NDArray[Any] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class StackRows:
    """Rows of training or of evaluation: table, target (classes as 0, 1, ...), margins (n, K), weights."""

    X: Any
    y: NDArray[Any]
    margins: Floats
    weight: Floats | None

    def __len__(self) -> int:
        return len(self.y)


class Layer:
    """A fitted `Plan`: scores (n, K) on the scale of the wide model's margins."""

    def __init__(self, plan: Plan, loss: Loss, rows: StackRows, n_rounds: int | None = None):
        self.mode = plan.mode
        self.columns = plan.columns
        self.loss = loss
        adapter = adapter_of(plan.booster)
        self._codes = plan.codes
        self._library = None if adapter is None else adapter.name
        is_hist = isinstance(plan.booster, HIST)
        self.coder = coder_of(
            plan.codes,
            plan.task,
            plan.random_state,
            text=self._library == "catboost",
            max_levels=254 if is_hist else None,
        )
        target = rows.y
        if plan.task == "multiclass" and plan.classes is not None:  # an encoder may take their numbers for quantities
            target = plan.classes.astype(str)[rows.y]
        coded = fit_coder(self.coder, self._chosen(rows.X), target, rows.weight)
        frame = self._with_margins(coded, rows.margins)
        self.booster = self._fitted(matched(plan.booster, loss, plan.mode), frame, rows, n_rounds)

    def scores(self, X: Any, margins: Floats) -> Floats:
        """Scores (n, K), the margins included."""
        if not len(margins):
            return margins
        frame = self.frame(X, margins)
        if self._library is not None:
            adapter = load_adapter(self._library)
            on = margins if self.mode == "margin" else None
            shaped = margins[:, 0] if on is not None and margins.shape[1] == 1 else on
            return _columns(adapter.raw_scores(self.booster, frame, shaped))  # type: ignore[attr-defined]
        added = self._own_scores(frame)
        return margins + added if self.mode == "margin" else added

    @property
    def most_categories(self) -> int:
        """The most categories that a column has, of those passed as they are."""
        known = getattr(self.coder, "alphabets_", {}).values()
        return max((len(categories) for categories, _ in known), default=0)

    def frame(self, X: Any, margins: Floats) -> pd.DataFrame:
        """What the booster sees of a table."""
        return self._with_margins(self.coder.transform(self._chosen(X)), margins)

    def _with_margins(self, frame: pd.DataFrame, margins: Floats) -> pd.DataFrame:
        """Coded columns, and margins beside them where they are columns."""
        if self.mode != "feature":
            return frame
        made = {
            name: margins[:, position] for position, name in enumerate(margin_names(frame.columns, margins.shape[1]))
        }
        return pd.concat([frame, pd.DataFrame(made, index=frame.index)], axis=1)

    def contributions(self, frame: Any) -> Floats:
        """What the columns of `frame`, and a constant, add to the scores (n, K, n_columns + 1), without margins.

        A `ValueError` for a booster that has none.
        """
        if self._library is not None and hasattr(adapter := load_adapter(self._library), "contributions"):
            return np.asarray(adapter.contributions(self.booster, frame, on_margin=self.mode == "margin"))
        raise ValueError(
            f"{type(self.booster).__name__} has no contributions of columns; use a booster of LightGBM, XGBoost or "
            "CatBoost, or sklearn.inspection.permutation_importance."
        )

    def path(self, X: Any, margins: Floats, every: int) -> Iterator[tuple[int, Floats]]:
        """(rounds, scores) after every few rounds; of an estimator without rounds the last only."""
        frame = self.frame(X, margins)
        on = self.mode == "margin"
        start = margins if on else np.zeros_like(margins)
        if self._library is not None:
            adapter: Any = load_adapter(self._library)
            for rounds, added in adapter.path(self.booster, frame, every, on_margin=on):
                yield rounds, start + _columns(added)
        elif isinstance(self.booster, HIST):
            for rounds, added in _hist_path(self.booster, frame, every, self.loss):
                yield rounds, start + added
        else:
            yield rounds_of(self.booster), self.scores(X, margins)

    def _fitted(self, booster: Any, frame: pd.DataFrame, rows: StackRows, n_rounds: int | None) -> Any:
        if self._library is not None:
            adapter: Any = load_adapter(self._library)
            on = None
            if self.mode == "margin":
                on = rows.margins[:, 0] if rows.margins.shape[1] == 1 else rows.margins
            if n_rounds is None:
                return adapter.fit_margin(booster, frame, rows.y, on, sample_weight=rows.weight)
            return adapter.fit_rounds(booster, n_rounds, frame, rows.y, on, sample_weight=rows.weight)
        if n_rounds is not None and isinstance(booster, HIST):
            booster = clone(booster).set_params(max_iter=n_rounds, early_stopping=False)
        if isinstance(booster, HIST):
            frame = _without_empty(frame)
        target = rows.y - rows.margins[:, 0] if self.mode == "margin" else rows.y
        if rows.weight is not None and not has_fit_parameter(booster, "sample_weight"):
            raise TypeError(
                f"{type(booster).__name__} takes no sample_weight in fit; leave it out, or use one that does."
            )
        extra = {} if rows.weight is None else {"sample_weight": rows.weight}
        try:
            return clone(booster).fit(frame, target, **extra)
        except ValueError as error:
            if "contains NaN" in str(error):
                raise ValueError(
                    f"{type(booster).__name__} does not accept missing values; use a pipeline that imputes them, or "
                    "another booster."
                ) from error
            if "could not convert string" not in str(error):
                raise
            raise ValueError(
                f"{type(booster).__name__} cannot read the categories of codes={self._codes!r} ({error}); "
                "use codes='ordinal', or a pipeline that encodes them."
            ) from error

    def _chosen(self, X: Any) -> Any:
        return X if self.columns is None else pick_columns(X, [], self.columns)

    def _own_scores(self, frame: Any) -> Floats:
        """Scores (n, K) of an estimator without an adapter, by what it predicts."""
        if not is_classifier(self.booster):
            predicted = np.asarray(self.booster.predict(frame), dtype=np.float64)[:, None]
            return predicted if self.mode == "margin" else _scores_of_values(predicted, self.loss)
        return _scores_of_chances(np.asarray(self.booster.predict_proba(frame)))


HIST = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)


def adapter_of(booster: Any) -> Any:
    """The adapter of a booster's library; None where it has none."""
    tops = {kind.__module__.partition(".")[0] for kind in type(booster).__mro__}
    for name in available():
        if name in tops and hasattr(adapter := load_adapter(name), "fit_margin"):
            return adapter
    # of a third party, whose library may have another name than its adapter; those that fail to load own nothing here
    others = [name for name in available() if name not in ("lightgbm", "xgboost", "catboost")]
    found = (load_adapter(name) for name in others)
    return next((one for one in found if hasattr(one, "owns") and one.owns(booster)), None)


def reads_categories(booster: Any) -> bool:
    """Whether a booster takes categories as they are: those of the adapters and HistGradientBoosting do."""
    return adapter_of(booster) is not None or isinstance(booster, HIST)


def fresh(booster: Any) -> Any:
    """An unfitted booster with the same options."""
    adapter = adapter_of(booster)
    return getattr(adapter, "fresh", clone)(booster)


def matched(booster: Any, loss: Loss, mode: str) -> Any:
    """A clone whose objective has the link of a wide model's loss, or a `ValueError`."""
    link = link_of(loss)
    adapter = adapter_of(booster)
    if adapter is not None:
        return adapter.matched(booster, loss)
    if mode == "margin" and (link != "identity" or is_classifier(booster)):
        raise ValueError(
            f"{type(booster).__name__} cannot start from margins with the link {link!r}; use mode='feature', or a "
            "booster of LightGBM, XGBoost or CatBoost."
        )
    if is_classifier(booster) and not hasattr(booster, "predict_proba"):
        raise ValueError(f"{type(booster).__name__} has no predict_proba; use a booster that has it.")
    if isinstance(booster, HistGradientBoostingRegressor) and link == "log" and booster.loss == "squared_error":
        return clone(booster).set_params(loss="gamma" if loss.name == "gamma" else "poisson")
    return clone(booster)


def rounds_of(booster: Any) -> int:
    """The rounds that an unfitted booster asks for; 1 for an estimator without rounds."""
    adapter = adapter_of(booster)
    if adapter is not None:
        return adapter.n_rounds(booster)
    return int(booster.max_iter) if isinstance(booster, HIST) else 1


def margin_names(taken: Iterable[Any], n_margins: int) -> list[str]:
    """Names for columns of margins, beside those that are taken."""
    stem, others = "wide", [str(name) for name in taken]
    while any(name.startswith(stem) for name in others):
        stem += "_"
    return [stem] if n_margins == 1 else [f"{stem}{position}" for position in range(n_margins)]


def _columns(scores: Any) -> Floats:
    found = np.asarray(scores, dtype=np.float64)
    return found[:, None] if found.ndim == 1 else found


def _scores_of_chances(chances: Floats) -> Floats:
    logs = np.log(np.maximum(chances, _MIN_VALUE))
    return logs[:, 1:] - logs[:, :1] if chances.shape[1] == 2 else logs


def _scores_of_values(values: Floats, loss: Loss) -> Floats:
    if not loss.log_link:
        return values
    return np.log(np.maximum(values, _MIN_VALUE * max(float(np.abs(values).mean()), _MIN_VALUE)))


def _without_empty(frame: pd.DataFrame) -> pd.DataFrame:
    """With columns of no number constant: scikit-learn 1.9 fails on them, and no tree splits them either way."""
    empty = [name for name in frame.columns if is_numeric_dtype(frame[name]) and frame[name].isna().all()]
    return frame.assign(**dict.fromkeys(empty, 0.0)) if empty else frame


def _hist_path(booster: Any, frame: Any, every: int, loss: Loss) -> Iterator[tuple[int, Floats]]:
    is_class = is_classifier(booster)
    staged = booster.staged_decision_function(frame) if is_class else booster.staged_predict(frame)
    total = booster.n_iter_
    for done, scores in enumerate(staged, 1):
        if done % every == 0 or done == total:
            values = _columns(scores)
            yield done, values if is_class else _scores_of_values(values, loss)


GENTLE = {"n_estimators": 150, "learning_rate": 0.1}
"""As good as 300 rounds of .05, which take twice the time (benchmarks/stacking)."""
SMALL = {"num_leaves": 7, "min_child_samples": 50}
"""Trees on top of margins, which hold most of what there is to say."""

GENTLE_OTHERS: dict[str, dict[str, Any]] = {
    "xgboost": GENTLE | {"max_depth": 3, "min_child_weight": 10},
    "catboost": {"iterations": GENTLE["n_estimators"], "learning_rate": GENTLE["learning_rate"], "depth": 3},
}
"""The like in the terms of other libraries; not studied by themselves."""


def default_wide(is_class: bool, random_state: int | None, n_jobs: int | None) -> Any:
    """The wide model by default."""
    return (WideClassifier if is_class else WideRegressor)(random_state=random_state, n_jobs=n_jobs)


def gentle_booster(library: str, is_class: bool, random_state: int | None, n_jobs: int | None) -> Any:
    """The booster of a library by its adapter, or HistGradientBoosting, as gentle and small as the default one."""
    if library == "hist-gradient-boosting":
        return _hist(is_class, random_state)
    booster = load_adapter(library).booster("binary" if is_class else "regression", random_state, n_jobs)
    return booster.set_params(**GENTLE_OTHERS.get(library, {}))


def default_booster(is_class: bool, random_state: int | None, n_jobs: int | None, *, small: bool = True) -> Any:
    """A gentle LightGBM, or HistGradientBoosting where that is not installed; `small`: for the top of margins."""
    if find_spec("lightgbm") is None:
        return _hist(is_class, random_state)
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMClassifier if is_class else LGBMRegressor
    options = GENTLE | SMALL if small else GENTLE
    return kind(random_state=random_state, n_jobs=n_jobs, verbosity=-1, **options)


def _hist(is_class: bool, random_state: int | None) -> Any:
    kind: Any = HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor
    gentle: dict[str, Any] = {"max_iter": GENTLE["n_estimators"], "learning_rate": GENTLE["learning_rate"]}
    return kind(early_stopping=False, categorical_features="from_dtype", random_state=random_state, **gentle)
