"""A booster with its own treatment of categories, with `JitterPredictor` for unknown categories."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.model_selection import train_test_split
from sklearn.utils import get_tags

from tabsym.compare.fitting import weights_for
from tabsym.jitter import JitterPredictor

HELD_OUT = 0.2
"""Of the training rows, by which it is calibrated; the model is then fitted on all of them."""


class Jittered(BaseEstimator):
    """`JitterPredictor` over a model, calibrated on rows that the model had not seen, and then fitted on all.

    Parameters
    ----------
    estimator : pipeline
        Takes tables as they are.
    encoder : TIWSEncoder
    random_state : int
        Of the rows held out.
    """

    def __init__(self, estimator, encoder, random_state=0):
        self.estimator = estimator
        self.encoder = encoder
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Jittered:
        """Calibrate on a part of the rows, and fit on all."""
        y = np.asarray(y)
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        classes = y if is_classifier(self.estimator) and np.unique(y, return_counts=True)[1].min() > 1 else None
        train, held_out = train_test_split(
            np.arange(len(y)), test_size=HELD_OUT, stratify=classes, random_state=self.random_state
        )
        part = self._predictor(X, y, weight, train)
        part.calibrate(X.iloc[held_out], y[held_out], weight[held_out], random_state=self.random_state)
        self.predictor_ = self._predictor(X, y, weight, np.arange(len(y)))
        self.predictor_.calibration_ = part.calibration_
        if hasattr(self.predictor_, "classes_"):
            self.classes_ = self.predictor_.classes_
        return self

    def predict(self, X: Any) -> Any:
        """Predicted values or classes."""
        return self.predictor_.predict(X)

    def predict_proba(self, X: Any) -> Any:
        """Class probabilities."""
        return self.predictor_.predict_proba(X)

    def _predictor(self, X: Any, y: Any, weight: Any, rows: Any) -> JitterPredictor:
        model = clone(self.estimator)
        model.fit(X.iloc[rows], y[rows], **weights_for(model, weight[rows]))
        encoder = clone(self.encoder).fit(X.iloc[rows], y[rows], weight[rows])
        return JitterPredictor(model, encoder).fit(X, y)
