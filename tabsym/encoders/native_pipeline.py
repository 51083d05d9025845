"""A booster behind `NativeCategories`, as one estimator that takes any table, of no rows too.

LightGBM and HistGradientBoosting refuse a table of no rows, XGBoost gives it
two classes where there are three, CatBoost writes complaints. So no booster is
asked: the answer for no rows is the one for a made-up row, without that row,
which has the shape and type of all its other answers, whatever the options.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if

from tabsym.encoders.native import MISSING_TEXT
from tabsym.table import plain_labels


def answer_of(ask: Callable[..., Any], frame: pd.DataFrame, **options: Any) -> Any:
    """Predictions by a method of a fitted booster for a frame of `NativeCategories`, which may have no rows.

    Parameters
    ----------
    ask : callable
        Such as ``booster.predict_proba``.
    frame : DataFrame of shape (n_rows, n_columns)
    options : dict
        The booster's own, such as ``raw_score=True`` for margins.

    Returns
    -------
    ndarray of shape (n_rows, ...)
    """
    if len(frame):
        return ask(frame, **options)
    blank = frame.reset_index(drop=True).reindex([0])  # missing everywhere, of the same types
    text = blank.select_dtypes(exclude=["number", "category"]).columns
    blank[text] = MISSING_TEXT
    return ask(blank, **options)[:0]


def _booster_has(method: str) -> Any:
    return available_if(lambda pipeline: hasattr(pipeline.steps[-1][1], method))


class NativePipeline(Pipeline):
    """A scikit-learn `Pipeline` of `NativeCategories` and a booster, whose tables may have no rows.

    Parameters
    ----------
    steps : list of (name, estimator)
        The last one is the booster.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from tabsym.encoders import NativeCategories, NativePipeline
    >>> X = pd.DataFrame({"colour": ["red", "blue", "green"] * 20})
    >>> booster = HistGradientBoostingClassifier(max_iter=5)
    >>> model = NativePipeline([("categories", NativeCategories()), ("booster", booster)])
    >>> model.fit(X, X["colour"]).predict_proba(X.head(0)).shape
    (0, 3)
    """

    def fit(self, X: Any, y: Any = None, **params: Any) -> NativePipeline:
        """Fit the steps; booleans of any library are numpy's to the booster, and come back as such."""
        super().fit(X, plain_labels(y), **params)
        return self

    @_booster_has("score")
    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> float:
        """The booster's own score: accuracy or R2."""
        return float(super().score(X, plain_labels(y), sample_weight, **params))

    @_booster_has("predict")
    def predict(self, X: Any, **options: Any) -> Any:
        """Predicted values or classes (n_rows,); options are the booster's, such as those that ask for margins."""
        return answer_of(self.steps[-1][1].predict, self[:-1].transform(X), **options)

    @_booster_has("predict_proba")
    def predict_proba(self, X: Any, **options: Any) -> Any:
        """Class probabilities (n_rows, n_classes)."""
        return answer_of(self.steps[-1][1].predict_proba, self[:-1].transform(X), **options)

    @_booster_has("decision_function")
    def decision_function(self, X: Any, **options: Any) -> Any:
        """Margins (n_rows,), of several classes (n_rows, n_classes)."""
        return answer_of(self.steps[-1][1].decision_function, self[:-1].transform(X), **options)
