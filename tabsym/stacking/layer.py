"""A booster over coded columns, on top of margins, with them as columns, or without; default boosters; contributions.

Of a stack, the contributions are those of the terms of its wide model and of the columns of its boosters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype
from scipy.special import logsumexp
from sklearn.base import clone, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from tabsym.encoders import coder_of
from tabsym.encoders.native import fit_coder
from tabsym.frame import read_table
from tabsym.frame.frames import pick_columns, take_rows
from tabsym.integrations import available, load_adapter
from tabsym.integrations.margins import link_of, set_weights_of_codes
from tabsym.losses.loss import Loss
from tabsym.models import WideClassifier, WideRegressor
from tabsym.models.data import OffsetColumn
from tabsym.models.inspection.explain import OFFSET, columns_of_terms
from tabsym.stacking.directions import OPTIONS, Directions, Orders, constrained, numbered, refuse_broken

Floats = NDArray[np.float64]
Mode = Literal["margin", "feature", "alone"]

_MIN_VALUE = 1e-7  # a probability, or a fraction of the mean, below which logarithms are meaningless


@dataclass(frozen=True)
class Plan:
    """A booster over the wide model, or without it, unfitted.

    Attributes
    ----------
    booster : estimator
    mode : "margin", on top of margins; "feature", with margins as columns; "alone", without them
    codes : how categories are coded (`coder_of`)
    task : "binary", "multiclass" or "regression"
    columns : those of the table that the booster sees, None for all
    classes : the labels of the classes 0, 1, ..., None for numbers
    directions : of columns, which the booster keeps as the wide model does; None without any
    offset : the column of the wide model's offset, from which a booster without margins starts; None without one
    variant : what distinguishes it from a plan of the same mode that was tried before
    """

    booster: Any
    mode: Mode
    codes: Any
    task: str
    columns: list[str] | None = None
    random_state: int | None = None
    offset: OffsetColumn | None = None
    variant: str = field(default="", compare=False)
    classes: NDArray[Any] | None = field(default=None, compare=False)
    directions: Directions | None = field(default=None, compare=False)


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

    offset: OffsetColumn | None = None  # of files of former commits
    orders: Orders = {}

    def __init__(self, plan: Plan, loss: Loss, rows: StackRows, n_rounds: int | None = None):
        self.mode = plan.mode
        self.columns = plan.columns
        self.offset = plan.offset
        self.orders = {} if plan.directions is None else plan.directions.orders
        self.loss = loss
        adapter = adapter_of(plan.booster)
        self._codes = plan.codes
        self._library = None if adapter is None else adapter.name
        is_hist = isinstance(plan.booster, HIST)
        is_catboost = self._library == "catboost"
        self.coder = coder_of(
            plan.codes, plan.task, plan.random_state, text=is_catboost, max_levels=254 if is_hist else None
        )
        target = rows.y
        if plan.task == "multiclass" and plan.classes is not None:  # an encoder may take their numbers for quantities
            target = plan.classes.astype(str)[rows.y]
        coded = fit_coder(self.coder, self._chosen(rows.X), target, rows.weight)
        frame = self._with_margins(coded, rows.margins)
        booster = matched(plan.booster, loss, plan.mode)
        if plan.classes is not None:
            set_weights_of_codes(booster, plan.classes)
        if plan.directions is None:
            self.booster = self._fitted(booster, frame, rows, n_rounds)
            return
        directions = plan.directions.of_frame(self._chosen(rows.X), frame, self.users_names(coded.columns), plan.codes)
        if can_be_constrained(booster):
            library = "sklearn" if is_hist else str(self._library)
            booster = constrained(booster, library, directions, frame.columns.tolist())
        self.booster = self._fitted(booster, frame, rows, n_rounds)
        refuse_broken(self._added, frame, directions, self.booster)

    def scores(self, X: Any, margins: Floats) -> Floats:
        """Scores (n, K), the margins included."""
        if not len(margins):
            return margins
        frame = self.frame(X, margins)
        start = self.start(X, margins)
        added = self._added(frame, start)
        return added if start is None or self._library is not None else start + added

    def _added(self, frame: pd.DataFrame, start: Floats | None = None) -> Floats:
        """What the booster predicts of its frame (n, K), from a start where its library adds to that."""
        if self._library is None:
            return self._predicted_scores(frame)
        adapter: Any = load_adapter(self._library)
        if start is None and self.starts:
            start = np.zeros((len(frame), 1))
        return _columns(adapter.raw_scores(self.booster, frame, _shaped(start)))

    def start(self, X: Any, margins: Floats) -> Floats | None:
        """The scores (n, K) from which the booster starts: the margins, or their offset; None for none."""
        if self.mode == "margin":
            return margins
        return None if self.offset is None else self.offset.split(read_table(X, allow_empty=True))[1][:, None]

    @property
    def starts(self) -> bool:
        """Whether the booster starts from scores, so that it predicts what is added to them."""
        return self.mode == "margin" or self.offset is not None

    @property
    def max_categories(self) -> int:
        """The maximum number of categories of a column, of those passed as they are."""
        known = getattr(self.coder, "vocabularies_", {}).values()
        return max((len(categories) for categories, _ in known), default=0)

    def frame(self, X: Any, margins: Floats) -> pd.DataFrame:
        """What the booster sees of a table."""
        return self._with_margins(self.coder.transform(self._chosen(X)), margins)

    def _with_margins(self, frame: pd.DataFrame, margins: Floats) -> pd.DataFrame:
        """Coded columns, and the margins where they are columns."""
        if self.mode != "feature":
            return frame
        of_margins = pd.DataFrame(margins, frame.index, margin_names(frame.columns, margins.shape[1]))
        return pd.concat([frame, of_margins], axis=1)

    def contributions(self, frame: Any) -> Floats:
        """What the columns of `frame`, and a constant, add to the scores (n, K, n_columns + 1), without margins.

        A `ValueError` for a booster that has none.
        """
        if self._library is not None and hasattr(adapter := load_adapter(self._library), "contributions"):
            return np.asarray(adapter.contributions(self.booster, frame, on_margin=self.starts))
        raise ValueError(
            f"{type(self.booster).__name__} has no contributions of columns; use a booster of LightGBM, XGBoost or "
            "CatBoost, or sklearn.inspection.permutation_importance."
        )

    def path(self, X: Any, margins: Floats, every: int) -> Iterator[tuple[int, Floats]]:
        """(rounds, scores) after every few rounds; of an estimator without rounds the last only."""
        frame = self.frame(X, margins)
        start = self.start(X, margins)
        first = np.zeros_like(margins) if start is None else start
        if self._library is not None:
            adapter: Any = load_adapter(self._library)
            for rounds, added in adapter.path(self.booster, frame, every, on_margin=self.starts):
                yield rounds, first + _columns(added)
        elif isinstance(self.booster, HIST):
            for rounds, added in _hist_path(self.booster, frame, every, self.loss):
                yield rounds, first + added
        else:
            yield rounds_of(self.booster), self.scores(X, margins)

    def _fitted(self, booster: Any, frame: pd.DataFrame, rows: StackRows, n_rounds: int | None) -> Any:
        start = self.start(rows.X, rows.margins)
        if self._library is not None:
            adapter: Any = load_adapter(self._library)
            on = _shaped(start)
            if n_rounds is None:
                return adapter.fit_margin(booster, frame, rows.y, on, sample_weight=rows.weight)
            return adapter.fit_rounds(booster, n_rounds, frame, rows.y, on, sample_weight=rows.weight)
        if n_rounds is not None and isinstance(booster, HIST):
            booster = clone(booster).set_params(max_iter=n_rounds, early_stopping=False)
        if isinstance(booster, HIST):  # scikit-learn 1.9 fails on columns of no number, which no tree splits either way
            empty = [name for name in frame.columns if is_numeric_dtype(frame[name]) and frame[name].isna().all()]
            frame = frame.assign(**dict.fromkeys(empty, 0.0)) if empty else frame
        target = rows.y if start is None else rows.y - start[:, 0]
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
        return numbered(X if self.columns is None else pick_columns(X, [], self.columns), self.orders)

    def users_names(self, coded: Iterable[Any]) -> list[str]:
        """What the user calls the coded columns."""
        last = self.coder.steps[-1][1] if isinstance(self.coder, Pipeline) else self.coder
        names = getattr(last, "names_", {})
        return [str(names.get(name, name)) for name in coded]

    def _predicted_scores(self, frame: Any) -> Floats:
        """Scores (n, K) of an estimator without an adapter, by what it predicts."""
        if not is_classifier(self.booster):
            predicted = np.asarray(self.booster.predict(frame), dtype=np.float64)[:, None]
            return predicted if self.starts else _scores_of_values(predicted, self.loss)
        chances = np.asarray(self.booster.predict_proba(frame))
        logs = np.log(np.maximum(chances, _MIN_VALUE))
        return logs[:, 1:] - logs[:, :1] if chances.shape[1] == 2 else logs


HIST = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)


def adapter_of(booster: Any) -> Any:
    """The adapter of a booster's library; None where it has none."""
    tops = {kind.__module__.partition(".")[0] for kind in type(booster).__mro__}
    for name in available():
        if name in tops and hasattr(adapter := load_adapter(name), "fit_margin"):
            return adapter
    # of a third party, whose library may have another name than its adapter; those that fail to load own nothing here
    third_party = [name for name in available() if name not in ("lightgbm", "xgboost", "catboost")]
    adapters = (load_adapter(name) for name in third_party)
    return next((adapter for adapter in adapters if hasattr(adapter, "owns") and adapter.owns(booster)), None)


def reads_categories(booster: Any) -> bool:
    """Whether a booster takes categories as they are: those of the adapters and HistGradientBoosting do."""
    return adapter_of(booster) is not None or isinstance(booster, HIST)


def can_be_constrained(booster: Any) -> bool:
    """Whether a booster takes directions of columns by an option that is known."""
    adapter = adapter_of(booster)
    return isinstance(booster, HIST) if adapter is None else adapter.name in OPTIONS


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
    """Names for columns of margins, other than those that are taken."""
    stem, names = "wide", [str(name) for name in taken]
    while any(name.startswith(stem) for name in names):
        stem += "_"
    return [stem] if n_margins == 1 else [f"{stem}{position}" for position in range(n_margins)]


def _shaped(start: Floats | None) -> Floats | None:
    """The scores that a booster starts from, as adapters take them."""
    return start[:, 0] if start is not None and start.shape[1] == 1 else start


def _columns(scores: Any) -> Floats:
    array = np.asarray(scores, dtype=np.float64)
    return array[:, None] if array.ndim == 1 else array


def _scores_of_values(values: Floats, loss: Loss) -> Floats:
    if not loss.log_link:
        return values
    return np.log(np.maximum(values, _MIN_VALUE * max(float(np.abs(values).mean()), _MIN_VALUE)))


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
"""Trees on top of margins, which explain most already."""

GENTLE_BY_LIBRARY: dict[str, dict[str, Any]] = {
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
    return booster.set_params(**GENTLE_BY_LIBRARY.get(library, {}))


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


def margins_of(wide: Any, X: Any, classes: NDArray[Any] | None) -> Floats:
    """Scores (n, K) of a fitted wide model before its link: K is 1 for numbers and for two classes.

    A class that the model has not seen is as probable as one row more would have made it.
    """
    scores = wide._margins(X)
    if classes is None:
        return np.asarray(scores)
    if len(classes) == 2:
        return np.asarray(scores if scores.shape[1] == 1 else scores[:, 1:] - scores[:, :1])
    if scores.shape[1] == 1:  # two classes of several, in this fold
        scores = np.column_stack([np.zeros(len(scores)), scores[:, 0]])
    unseen = logsumexp(scores, axis=1) - np.log(1.0 + wide.n_rows_seen_ / max(wide.n_iter_, 1))
    out = np.repeat(unseen[:, None], len(classes), axis=1)
    out[:, np.searchsorted(classes, wide.classes_)] = scores
    return out


# -- what scores are made of ------------------------------------------------------------------


Layers = list[tuple[float, Layer | None]]
"""Weights of components, and their boosters; None for the wide model alone."""
CONSTANT, WIDE = "(intercept)", "(wide)"

MAX_ROWS = 500
"""`feature_importances_` are of this many training rows at most. Of ten samples the fractions were .013 off those of
all rows of amazon at most, .029 of adult, where all rows would take as long as the fit."""


@dataclass(frozen=True)
class TrainingSample:
    """The training rows that `feature_importances_` are of: names of their columns, table, weights."""

    names: list[str]
    X: Any
    weight: Floats | None

    @classmethod
    def of(cls, names: list[str], X: Any, weight: Floats | None, seed: int) -> TrainingSample:
        """Of a table, all rows or as many as are enough."""
        positions = np.arange(X.shape[0])
        if len(positions) > MAX_ROWS:
            positions = np.sort(np.random.RandomState(seed).choice(len(positions), MAX_ROWS, replace=False))
        return cls(names, take_rows(X, positions), None if weight is None else weight[positions])


def importances_of(wide: Any, layers: Layers, rows: TrainingSample, classes: NDArray[Any] | None) -> Floats | str:
    """The fractions of columns (n_columns,) in the scores of some rows; a sentence where they are unknown."""
    try:
        contributions = contributions_of(wide, layers, rows.X, classes)
    except ValueError as error:
        return str(error)
    columns = columns_of_terms(wide.model_)
    by_column = {name: np.zeros_like(next(iter(contributions.values()))) for name in rows.names}
    of_wide: Floats | None = None
    for (part, term), values in contributions.items():
        if part == "wide":
            _divide(by_column, columns.get(term, ()), values)  # the offset is no column's
        elif term == WIDE:
            of_wide = values
        elif term in by_column:
            by_column[term] += values
        elif term != CONSTANT:
            return f"codes makes columns such as {term!r}, which the table has not; see explain(X)."
    sizes = _sizes(by_column, rows.weight)
    if of_wide is not None:
        alone = {name: np.zeros_like(of_wide) for name in rows.names}
        for term, values in _terms(wide, rows.X, classes).items():
            _divide(alone, columns.get(term, ()), values)
        of_columns = _sizes(alone, rows.weight)
        sizes += _sizes({WIDE: of_wide}, rows.weight) * of_columns / (float(of_columns.sum()) or 1.0)
    return sizes / (float(sizes.sum()) or 1.0)


def _divide(by_column: dict[str, Floats], columns: tuple[str, ...], values: Floats) -> None:
    """Add a term's contributions to those of its columns, in equal parts."""
    for name in columns:
        by_column[name] += values / len(columns)


def _sizes(by_column: dict[str, Floats], weight: Floats | None) -> Floats:
    """The mean absolute contribution of each column, over rows, summed over classes."""
    return np.array([float(np.average(np.abs(values).sum(axis=1), weights=weight)) for values in by_column.values()])


def contributions_of(wide: Any, layers: Layers, X: Any, classes: NDArray[Any] | None) -> dict[tuple[str, str], Floats]:
    """(part, term or column) -> contribution (n, K)."""
    contributions: dict[tuple[str, str], Floats] = {}
    wide_weight = sum(weight for weight, layer in layers if layer is None or layer.mode == "margin")
    if wide_weight:
        contributions = {("wide", name): wide_weight * values for name, values in _terms(wide, X, classes).items()}
    if all(layer is None for _, layer in layers):
        return contributions
    margins = margins_of(wide, X, classes)
    for weight, layer in layers:
        if layer is None:
            continue
        frame = layer.frame(X, margins)
        n_coded = frame.shape[1] - (margins.shape[1] if layer.mode == "feature" else 0)
        names = [*layer.users_names(frame.columns[:n_coded]), *[WIDE] * (frame.shape[1] - n_coded), CONSTANT]
        empty = np.zeros((0, margins.shape[1], len(names)))  # the libraries take no table without rows
        made = weight * layer.contributions(frame) if len(frame) else empty
        start = layer.start(X, margins) if layer.mode == "alone" else None
        if start is not None:
            contributions["wide", OFFSET] = weight * start + contributions.get(("wide", OFFSET), np.zeros_like(start))
        for position, name in enumerate(names):
            before = contributions.get(("booster", name))
            contributions["booster", name] = made[:, :, position] if before is None else before + made[:, :, position]
    return contributions


def _terms(wide: Any, X: Any, classes: NDArray[Any] | None) -> dict[str, Floats]:
    """The contributions (n, K) of the wide model's terms, on the scale of `margins_of`."""
    frame = wide.explain(X)
    n_outputs = wide.model_.n_outputs
    names = list(frame.columns.get_level_values(0))[::n_outputs]
    values = frame.to_numpy(dtype=np.float64).reshape(len(frame), len(names), n_outputs)
    if classes is not None and len(classes) == 2 and n_outputs == 2:
        values = values[:, :, 1:] - values[:, :, :1]
    return {str(name): values[:, position] for position, name in enumerate(names)}
