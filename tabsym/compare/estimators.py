"""Estimators of the contenders that no library has; contenders import them when they are made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import get_tags

from tabsym.compare.fitting import weights_for
from tabsym.encoders import TIWSEncoder
from tabsym.jitter import JitterPredictor
from tabsym.tiws.similarity import NameReader

Floats = NDArray[np.float64]

NEIGHBOURS = 40
MAX_NEIGHBOURS = 10_000
"""Training rows, drawn at random, among which the nearest are looked for."""
HELD_OUT = 0.2
"""Of the training rows, by which it is calibrated; the model is then fitted on all of them."""


class HistClassifier(HistGradientBoostingClassifier):
    """Its early stopping holds out rows of every class, and fails where a class has one row: then it is off."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> HistClassifier:
        """Fit, without early stopping where a class has one row."""
        if np.bincount(y).min() < 2:
            self.set_params(early_stopping=False)
        super().fit(X, y, sample_weight)
        return self


class FilledEncoder(TransformerMixin, BaseEstimator):
    """A fitted encoder's values for known categories; for unknown ones the mean target of near rows or similar names.

    Parameters
    ----------
    encoder : TIWSEncoder
        For one column.
    column : str
    by : {"knn", "names"}
        "knn": of the 40 training rows that are nearest in the other columns; "names": of known categories, by
        the cosine of n-grams of their names.
    """

    def __init__(self, encoder, column, by="knn"):
        self.encoder = encoder
        self.column = column
        self.by = by

    def fit(self, X: pd.DataFrame, y: Any, sample_weight: Any = None) -> FilledEncoder:
        """Fit the encoder, and what finds near rows."""
        self.fit_transform(X, y, sample_weight)
        return self

    def fit_transform(self, X: pd.DataFrame, y: Any, sample_weight: Any = None) -> pd.DataFrame:
        """Training rows cross-fitted."""
        self.encoder_: TIWSEncoder = clone(self.encoder)
        out = self.encoder_.fit_transform(X, y, sample_weight)
        if self.by == "knn":
            self._remember_rows(X, np.asarray(y), sample_weight)
        return out

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """Rows with a known category as the encoder has them."""
        out = self.encoder_.transform(X)
        rows = self.encoder_.unseen_rows(X, self.column).rows
        if not len(rows):
            return out
        state = self.encoder_.columns_[self.column]
        values = self._by_rows(X.iloc[rows]) if self.by == "knn" else self._by_names(X[self.column].iloc[rows])
        for name, position in zip(state.names, state.shown, strict=False):
            column = out[name].to_numpy(copy=True)
            column[rows] = values[:, position]
            out[name] = column
        return out

    def __getstate__(self) -> dict[str, Any]:
        """The rows in place of the search among them, whose tree is memory that no file should bring along."""
        state = dict(super().__getstate__())
        if "search_" in state:
            state["search_"] = self.search_._fit_X, self.search_.n_neighbors
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "search_" in state:
            points, n_neighbors = state["search_"]
            state["search_"] = NearestNeighbors(n_neighbors=n_neighbors).fit(points)
        super().__setstate__(state)

    def _remember_rows(self, X: pd.DataFrame, y: NDArray[Any], weight: Any) -> None:
        few = np.random.default_rng(0).permutation(len(X))[:MAX_NEIGHBOURS]
        others = X.drop(columns=self.column).iloc[few]
        texts = [name for name in others if not pd.api.types.is_numeric_dtype(others[name])]
        self.points_ = _Points(texts).fit(others)
        self.search_ = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(few))).fit(self.points_.transform(others))
        classes = getattr(self.encoder_, "classes_", None)
        self.targets_ = y[few, None].astype(float) if classes is None else (y[few, None] == classes).astype(float)
        self.weight_ = np.ones(len(few)) if weight is None else np.asarray(weight, dtype=np.float64)[few]

    def _by_rows(self, X: pd.DataFrame) -> Floats:
        near = self.search_.kneighbors(self.points_.transform(X.drop(columns=self.column)), return_distance=False)
        weight = self.weight_[near][:, :, None] + 1e-300  # plain where all have weight 0
        return np.asarray((self.targets_[near] * weight).sum(axis=1) / weight.sum(axis=1))

    def _by_names(self, categories: pd.Series) -> Floats:
        fitted = self.encoder_.columns_[self.column].fitted
        reader = NameReader.fit(fitted.categories)
        codes, distinct = pd.factorize(categories, use_na_sentinel=False)
        texts = [None if pd.isna(category) else category for category in distinct]
        alike = reader(texts).cosines(reader(fitted.categories)) + 1e-9
        return np.asarray((alike @ fitted.estimates / alike.sum(axis=1, keepdims=True))[codes])


class _Points(TransformerMixin, BaseEstimator):
    """Rows as points: one-hot columns of unit distance, numbers in units of their spread, missing ones at the mean."""

    def __init__(self, texts):
        self.texts = texts

    def fit(self, X: pd.DataFrame, y: Any = None) -> _Points:
        self.hot_ = OneHotEncoder(handle_unknown="ignore", max_categories=200, sparse_output=False)
        if self.texts:
            self.hot_.fit(X[self.texts].astype(str))
        self.scale_ = (
            StandardScaler().fit(X.drop(columns=self.texts).astype(float)) if len(self.texts) < X.shape[1] else None
        )
        return self

    def transform(self, X: pd.DataFrame) -> NDArray[np.float32]:
        parts = [self.hot_.transform(X[self.texts].astype(str)) / np.sqrt(2)] if self.texts else []
        if self.scale_ is not None:
            parts.append(np.nan_to_num(self.scale_.transform(X.drop(columns=self.texts).astype(float))))
        return np.hstack([np.zeros((len(X), 1)), *parts]).astype(np.float32)


class Jittered(BaseEstimator):
    """`JitterPredictor` over a model, calibrated on rows that the model had not seen, and then fitted on all.

    Parameters
    ----------
    estimator : pipeline
        Takes tables as they are.
    encoder : TIWSEncoder
    random_state : int
        Of the held-out rows.
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
        arguments = weights_for(model, weight[rows])
        if not arguments and (weight != 1.0).any():
            raise ValueError(f"the fit of {type(model).__name__} takes no sample_weight")
        model.fit(X.iloc[rows], y[rows], **arguments)
        encoder = clone(self.encoder).fit(X.iloc[rows], y[rows], weight[rows])
        return JitterPredictor(model, encoder).fit(X, y)
