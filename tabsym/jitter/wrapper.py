"""What a predictor around a model says of itself to scikit-learn: what the model says."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags

from tabsym.jitter.state import is_fitted
from tabsym.table import plain_labels


class Wrapper(BaseEstimator):
    """Base of a predictor with a `model` and an `encoder`; not public."""

    model: Any
    encoder: Any
    model_: Any
    encoder_: Any

    def predict(self, X: Any) -> Any:
        """Predicted values or classes."""
        raise NotImplementedError

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of a classifier, R2 of a regressor."""
        measure = accuracy_score if is_classifier(self) else r2_score
        return float(measure(plain_labels(y), self.predict(X), sample_weight=sample_weight))

    @property
    def classes_(self) -> NDArray[Any]:
        """The model's classes."""
        return getattr(self, "model_", self.model).classes_

    @property
    def n_features_in_(self) -> int:
        """Columns of the table."""
        return int(getattr(self, "encoder_", self.encoder).n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Their names."""
        return getattr(self, "encoder_", self.encoder).feature_names_in_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_") or (is_fitted(self.model) and is_fitted(self.encoder))

    def __sklearn_clone__(self) -> Any:
        """Fitted parts stay as they are."""
        options = self.get_params(deep=False)
        for name in ("model", "encoder"):
            options[name] = options[name] if is_fitted(options[name]) else clone(options[name])
        return type(self)(**options)

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(self.model)
        tags.estimator_type = own.estimator_type
        tags.classifier_tags, tags.regressor_tags = own.classifier_tags, own.regressor_tags
        tags.target_tags.required = True
        tags.input_tags.allow_nan = own.input_tags.allow_nan
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags
