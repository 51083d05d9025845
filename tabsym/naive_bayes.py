"""`SelectiveNaiveBayesClassifier`: Khiops' classifier, a naive Bayes over MODL's intervals and groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from tabsym.encoders import MODLEncoder
from tabsym.frame import (
    Table,
    check_classes,
    check_same_rows,
    check_weights,
    match_features,
    read_table,
    remember_features,
    split_target,
)
from tabsym.models.targets import LabelClassifier
from tabsym.modl.naive_bayes import MAX_ITER, NaiveBayes, cost_of_partition, fit_naive_bayes
from tabsym.validation import Instance, Number, check_declared_options
from tabsym.warn import warn_user

Floats = NDArray[np.float64]


class SelectiveNaiveBayesClassifier(LabelClassifier, BaseEstimator):
    """Naive Bayes over the intervals and groups that `MODLEncoder` finds, with a weight for each column.

    As in Khiops, a class has the score ln P(class) + sum of weight * ln P(interval or group | class). The weights,
    between 0 and 1, minimise the log loss of the training rows plus `prior_weight` times the sum of weight * cost of
    the column's partition: a column that others make superfluous has weight 0, and copies of a column share a weight.
    There is nothing to tune; the model is a table for each column.

    Parameters
    ----------
    encoder : MODLEncoder or None, default None
        Finds the intervals and groups, and says what becomes of missing values and unknown categories: by default they
        lie below all numbers, and in the group of the least frequent category. With "return_nan" the column is left
        out for that row. A clone of it is fitted; its options that concern output are not used. None:
        ``MODLEncoder()``.
    prior_weight : float, default 0.1
        Weight of the costs of partitions, in nats: 0.1 is Khiops'. 0: no prior; more: fewer columns.

    Attributes
    ----------
    weights_ : dict of str -> float
        The weight of each column, greatest first; 0 for those not used.
    feature_importances_ : ndarray of shape (n_columns,)
        The mean absolute contribution of each column to the log odds of a class (its Shapley value), of sum 1.
    encoder_ : MODLEncoder
        Fitted: `partitions_`, `levels_`, `describe()`.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    n_iter_ : int
        Iterations in which the weights were found.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_columns,)
        Where the columns have names.

    Notes
    -----
    The costs are those of Khiops 11 under ``criterion="khiops"``. It raises the weights in the prior to the power of
    .95 and searches by random steps; here the prior is linear, which makes the problem convex. P(part | class) is
    smoothed by 1 / (N + 1) rows, probabilities of classes by 1 / (2 n_classes) rows, as there. Rows of weight 2 are the
    same as repeated rows; those of weight 0 count as absent. The method is of Boulle, "Compression-based averaging of
    selective naive Bayes classifiers" (JMLR 8, 2007), the weights of Hue and Boulle, "Fractional naive Bayes" (2024).

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import SelectiveNaiveBayesClassifier
    >>> X = pd.DataFrame({"age": [*range(100)] * 2, "colour": ["red", "blue"] * 100})
    >>> y = ["old" if age > 60 else "young" for age in X["age"]]
    >>> model = SelectiveNaiveBayesClassifier().fit(X, y)
    >>> {name: round(weight, 2) for name, weight in model.weights_.items()}
    {'age': 0.7, 'colour': 0.0}
    >>> model.predict(pd.DataFrame({"age": [30, 80], "colour": ["red", "grey"]})).tolist()
    ['young', 'old']
    """

    _allowed_options: Mapping[str, tuple[Any, ...]] = {
        "encoder": (Instance(MODLEncoder, "a MODLEncoder"), None),
        "prior_weight": (Number(at_least=0),),
    }

    model_: NaiveBayes

    def __init__(self, *, encoder=None, prior_weight=0.1):
        self.encoder = encoder
        self.prior_weight = prior_weight

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SelectiveNaiveBayesClassifier:
        """Find the intervals and groups of each column, and the weights of the columns.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
            Two classes or more.
        sample_weight : array-like of shape (n_rows,), optional
            A row of weight 2 counts as two rows; rows of weight 0 count as absent.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            With the name of the column or option.
        """
        check_declared_options(self)
        X, y = split_target(X, y, type(self).__name__)
        check_same_rows(X, y=y, sample_weight=sample_weight)
        table = read_table(X, caller=type(self).__name__)
        target = check_classes(y, len(table), caller=type(self).__name__)
        weight = check_weights(sample_weight, len(table))
        encoder = MODLEncoder() if self.encoder is None else clone(self.encoder)
        encoder.set_params(output="group", sparse_output=False, target_type="classes")
        encoder.fit(table.native, target.classes[target.codes], weight)
        columns = {name: one for name, one in encoder.partitions_.items() if one.partition.n_parts > 1}
        counts = [fitted.partition.counts for fitted in columns.values()]
        costs = self.prior_weight * np.array([cost_of_partition(fitted) for fitted in columns.values()])
        rows = np.arange(len(table)) if weight is None else np.flatnonzero(weight > 0)
        codes = np.unique(target.codes[rows], return_inverse=True)[1]
        parts = [part[rows] for part in _parts(encoder, table, list(columns))]
        model = fit_naive_bayes(parts, codes, counts, costs, None if weight is None else weight[rows])
        if model.n_iter >= MAX_ITER:
            warn_user(f"The weights have not converged in {MAX_ITER} iterations.", ConvergenceWarning)
        remember_features(self, table)
        self._columns = list(columns)
        self.model_ = model
        self.encoder_ = encoder
        self.classes_ = encoder.classes_
        self.n_iter_ = model.n_iter
        used = dict(zip(columns, model.weights.tolist(), strict=True))
        self.weights_ = dict(sorted(((n, used.get(n, 0.0)) for n in table.names), key=lambda one: -one[1]))
        shown = dict(zip(columns, model.contributions(counts).tolist(), strict=True))
        total = sum(shown.values()) or 1.0
        self.feature_importances_ = np.array([shown.get(name, 0.0) / total for name in table.names])
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities, in the order of `classes_`.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        table = self._read_as_fitted(X)
        return self.model_.probabilities(_parts(self.encoder_, table, self._columns), len(table))

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the class probabilities.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def _read_as_fitted(self, X: Any) -> Table:
        check_is_fitted(self, "model_")
        check_same_rows(X)
        return match_features(self, read_table(X, caller=type(self).__name__, allow_empty=True))


def _parts(encoder: MODLEncoder, table: Table, names: list[str]) -> list[NDArray[np.int64]]:
    """The part of each row in these columns; -1 where the encoder has "return_nan"."""
    found = encoder._parts(table)
    return [np.maximum(found[name], -1) for name in names]
