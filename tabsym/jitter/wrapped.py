"""What a wrapped model shows of itself: its raw scores, its link, and how it takes unknown categories.

XGBoost 3.1 and 3.2 take an unknown category for a neighbour in sort order without a word, so no unknown level reaches
it: behind `NativeCategories` the category is missing there anyway, and elsewhere a missing value is asked about
instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from tabsym.encoders import NativeCategories
from tabsym.integrations import available, load_adapter

ROWS_FOR_LINK = 64
"""By which a link is found."""

Floats = NDArray[np.float64]
Ask = Callable[[Any], Any]
Link = Callable[[Floats], Floats]

LINKS: dict[str, Callable[[Floats], Floats]] = {
    "identity": lambda score: score,
    "logistic": lambda score: np.stack([expit(-score), expit(score)], axis=1) if score.ndim == 1 else expit(score),
    "softmax": lambda score: softmax(score, axis=1),
    "exponential": np.exp,
}
_NEAR = 1e-4  # of float32


def parts_of(model: Any) -> tuple[Ask | None, Any]:
    """What makes a table ready for a model's last estimator (None: nothing does), and that estimator."""
    if isinstance(model, Pipeline):
        return (model[:-1].transform if len(model.steps) > 1 else None), model.steps[-1][1]
    if isinstance(getattr(model, "categories_", None), NativeCategories):  # CatBoost's adapter
        return model.categories_.transform, model.booster_
    return None, model


def library(estimator: Any) -> str:
    """The package that an estimator is of."""
    names = [kind.__module__.partition(".")[0] for kind in type(estimator).__mro__]
    return next((name for name in names if name in ("lightgbm", "xgboost", "catboost")), names[0])


def is_native(model: Any) -> bool:
    """Whether a model reads tables through `NativeCategories`, which makes unknown categories missing."""
    if isinstance(model, Pipeline):
        return isinstance(model.steps[0][1], NativeCategories)
    return isinstance(getattr(model, "categories_", None), NativeCategories)


def raw_scores(model: Any) -> Ask | None:
    """What gives a model's raw scores of a table; None: nothing does."""
    if hasattr(model, "decision_function"):
        found: Ask = model.decision_function
        return found
    ready, booster = parts_of(model)
    name = library(booster)
    score: Any = None
    if isinstance(booster, HistGradientBoostingRegressor):
        score = _hist_scores
    elif name in available():
        score = getattr(load_adapter(name), "raw_scores", None)
    if score is None:
        return None
    return lambda X: score(booster, X if ready is None else ready(X))


def _hist_scores(booster: Any, frame: Any) -> Floats:
    """Scores before the link, which a `HistGradientBoostingRegressor` does not tell."""
    scores = booster._raw_predict(frame)
    return np.asarray(scores[:, 0] if scores.shape[1] == 1 else scores)


def link_of(scores: Floats, answers: Floats) -> Callable[[Floats], Floats] | None:
    """The link under which these scores are these answers; None: it is none of the usual ones."""
    scores, answers = np.asarray(scores, dtype=np.float64), np.asarray(answers, dtype=np.float64)
    names = ["identity", "exponential"] if answers.ndim == 1 else ["softmax", "logistic"]
    if answers.ndim == 2 and scores.ndim == 1:
        names = ["logistic"]
    for name in names:
        with np.errstate(over="ignore"):
            made = LINKS[name](scores)
        if made.shape == answers.shape and np.allclose(made, answers, rtol=_NEAR, atol=_NEAR):
            return LINKS[name]
    return None


Road = Literal["model", "missing"]
"""Unknown values go to the model as they are, or as missing ones."""


def road_of(model: Any) -> Road:
    """The road for a model."""
    return "model" if is_native(model) or not any(library(part) == "xgboost" for part in _parts(model)) else "missing"


def placeholder(symbols: Sequence[Any], road: Road) -> Any:
    """A category that none of these is; None, a missing value, on the road of that name and where none can be made."""
    if road == "missing":
        return None
    present = [symbol for symbol in symbols if symbol is not None]
    if all(isinstance(symbol, str) for symbol in present):
        known, name = set(present), "(never seen)"
        while name in known:
            name = f"({name})"
        return name
    if all(isinstance(symbol, (int, float, np.number)) and not isinstance(symbol, bool) for symbol in present):
        return type(present[0])(max(present) + 1)
    return None


def _parts(model: Any) -> Iterator[Any]:
    yield model
    if hasattr(model, "get_params"):
        for value in model.get_params(deep=True).values():
            yield from value if isinstance(value, (list, tuple)) else (value,)


def found_link(scores: Any, answers: Any) -> Callable[[Floats], Floats]:
    """The link between a model's scores and answers, or a `ValueError`."""
    link = link_of(scores, answers)
    if link is None:
        raise ValueError(
            "average='raw' needs a model whose predictions follow from its scores by a "
            "logistic, softmax, exponential or no link, unlike this one; use average='probability'."
        )
    return link


def score_of(model: Any) -> Ask:
    """What gives a model's raw scores, or a `ValueError`."""
    score = raw_scores(model)
    if score is None:
        raise ValueError(
            f"average='raw' needs a model with raw scores, and {name_of(model)} has none; use average='probability'."
        )
    return score


def name_of(model: Any) -> str:
    """What a model is called; of a pipeline its last step."""
    steps = getattr(model, "steps", None)
    return type(steps[-1][1] if steps else model).__name__


def is_fitted(estimator: Any) -> bool:
    """Whether an estimator can answer; CatBoost has its own way to say so."""
    own = getattr(estimator, "is_fitted", None)
    if callable(own):
        return bool(own())
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True
