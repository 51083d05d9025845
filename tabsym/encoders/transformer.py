"""What every transformer of tables says of its input, to scikit-learn and to those who name its columns."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, TransformerMixin


class TableTransformer(TransformerMixin, BaseEstimator):
    """Base of all that read categories from tables; not public."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _check_input_features(self, input_features: Any) -> None:
        """A `ValueError` where names given to `get_feature_names_out` are not those of fit."""
        if input_features is None:
            return
        given = list(input_features)
        fitted = getattr(self, "feature_names_in_", None)
        if fitted is not None and given != list(fitted):
            raise ValueError("input_features is not equal to feature_names_in_; leave it out.")
        if len(given) != self.n_features_in_:
            raise ValueError(
                f"input_features should have length equal to number of features ({self.n_features_in_}), "
                f"got {len(given)}."
            )
