"""What the classifiers share: a score of labels as any library has them."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassifierMixin

from tabsym.table import plain_labels


class LabelClassifier(ClassifierMixin):
    """scikit-learn's mixin, whose `score` takes the labels that `fit` takes; not public."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows whose class is predicted.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
        """
        return float(super().score(X, plain_labels(y), sample_weight))
