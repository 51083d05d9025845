"""A model trained on rows with unknown categories, and the same model without the column."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from tabsym.categories import encode_column
from tabsym.encoders import TIWSEncoder
from tabsym.frame import (
    Column,
    Kind,
    assemble_frame,
    check_same_rows,
    check_target,
    check_weights,
    plain_labels,
    read_table,
    relative_weights,
    split_target,
    categorical_columns,
)
from tabsym.frame.frames import is_frame, take_rows
from tabsym.frame.storage import dtype_of, to_numbers
from tabsym.jitter.averaging import with_tags_of
from tabsym.messages import Number, check_option

Floats = NDArray[np.float64]

SHARE = 0.5
"""Of the rows, drawn at random, whose category is as if it had never been seen."""


def _estimator_has(method: str) -> Any:
    return available_if(lambda self: hasattr(getattr(self, "estimator_", self.estimator), method))


class AugmentedModel(MetaEstimatorMixin, BaseEstimator):
    """Any model over a `TIWSEncoder`, trained with one category of half of its rows made unknown.

    The model so learns how reliable the estimate of an unknown category is, given the other columns.
    `evaluate_unknown` compares it with the same model over plain encodings and with the one trained without the
    column, which is the baseline to beat.

    Parameters
    ----------
    estimator : estimator
        Takes numbers, such as a booster; or a pipeline for what the encoder leaves as it is, whose last step gets
        sample weights, if there are any.
    encoder : TIWSEncoder, optional
        Default: ``TIWSEncoder(indicator=True)``.

    Attributes
    ----------
    estimator_, encoder_ : fitted clones
    classes_ : ndarray
        Of classifiers.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_columns,)

    Notes
    -----
    Each row is used once, as it is or with an unknown category, at random. Each row twice with half its weight, as
    `TIWSEncoder.augment` gives them, is worse under models that count rows: LightGBM's categories overfit (log-loss
    .53 instead of .40 in one trial), and rows held out for early stopping have their copies in training.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from tabsym import AugmentedModel
    >>> X = pd.DataFrame({"model": list("abcdefgh") * 50, "kind": ["car", "van"] * 200})
    >>> y = [10.5, 20.5, 11.5, 21.5, 12.5, 22.5, 13.5, 23.5] * 50
    >>> model = AugmentedModel(HistGradientBoostingRegressor(random_state=0)).fit(X, y)
    >>> new = pd.DataFrame({"model": ["new", "other"], "kind": ["car", "van"]})
    >>> model.predict(new).round(-1).tolist()
    [10.0, 20.0]
    """

    estimator_: Any
    encoder_: Any

    def __init__(self, estimator, *, encoder=None):
        self.estimator = estimator
        self.encoder = encoder

    def __sklearn_tags__(self) -> Any:
        return with_tags_of(self.estimator, super().__sklearn_tags__())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> AugmentedModel:
        """Encode the rows, half of them with a category made unknown, and train a clone of the estimator.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,), or the name of its column in X
        sample_weight : array-like of shape (n_rows,), optional
            Only relative weights matter: encoder and estimator get them over the mean of those above 0.
        groups : array-like of shape (n_rows,), optional
            For an encoder whose `cv` keeps groups together.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            With the name of the column or the estimator.
        """
        encoder = self._encoder()
        X, y = split_target(X, y, type(self).__name__)
        check_same_rows(X, y=y, sample_weight=sample_weight)  # an index of the weights is lost below
        n = len(read_table(X, caller=type(self).__name__))
        relative = relative_weights(check_weights(sample_weight, n))
        rows, target, weight = encoder.augment(X, y, relative, groups)
        drawn = check_random_state(encoder.random_state).random_sample(n) < SHARE
        chosen = np.arange(n) + n * drawn
        each = None if relative is None else 2 * weight[chosen]
        self.estimator_ = self._trained(_plain(take_rows(rows, chosen)), target[chosen], each)
        self.encoder_ = encoder
        self.n_features_in_ = encoder.n_features_in_
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(encoder, "feature_names_in_"):
            self.feature_names_in_ = encoder.feature_names_in_
        if hasattr(self.estimator_, "classes_"):
            self.classes_ = self.estimator_.classes_
        return self

    def _trained(self, rows: Any, target: NDArray[Any], weight: Floats | None) -> Any:
        """A fitted clone of the estimator; where it takes no dates, a sentence names the column of them."""
        try:
            return _fitted(clone(self.estimator), rows, target, weight)
        except (TypeError, ValueError) as error:
            frame = nw.from_native(rows, pass_through=True)
            types = frame.schema.items() if isinstance(frame, nw.DataFrame) else ()
            dates = [name for name, dtype in types if dtype.is_temporal()]
            if not dates:
                raise
            raise TypeError(
                f"Column {dates[0]!r} holds dates or durations, which {type(self.estimator).__name__} does not "
                "take and the encoder leaves as it is; make a number of it, such as the days since a date, or drop it."
            ) from error

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicted values or classes.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        encoded = self._encoded(X)
        return self.estimator_.predict(encoded)

    @_estimator_has("predict_proba")
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Class probabilities.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        encoded = self._encoded(X)
        return self.estimator_.predict_proba(encoded)

    @_estimator_has("decision_function")
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Linear predictors of the rows.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,), of several classes (n_rows, n_classes)
        """
        encoded = self._encoded(X)
        return self.estimator_.decision_function(encoded)

    @_estimator_has("score")
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The estimator's own score: accuracy, R², or D² of a wide regressor whose options name a log link.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,), or the name of its column in X
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
        """
        check_is_fitted(self)
        X, y = split_target(X, y, type(self).__name__)
        encoded, y = self._encoded(X), plain_labels(y)
        if sample_weight is None:
            return float(self.estimator_.score(encoded, y))
        return float(self.estimator_.score(encoded, y, sample_weight=sample_weight))

    def evaluate_unknown(
        self, X: Any, y: Any, column: str, *, sample_weight: Any = None, folds: int = 5, random_state: int = 0
    ) -> pd.DataFrame:
        """Cross-validate with whole categories of a column held out.

        Parameters
        ----------
        X : dataframe of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,), or the name of its column in X
        column : str
            One that the encoder encodes.
        sample_weight : array-like of shape (n_rows,), optional
        folds : int, default 5
            Each category is held out once, with those of its fold.
        random_state : int, default 0
            Of the folds.

        Returns
        -------
        pandas.DataFrame
            For this model ("augmented"), the same over plain encodings ("encoded") and the same without the column
            ("without column"): mean loss (log-loss in classification, squared error in regression), the difference to
            "without column" and its standard error, clustered by category. The fitted model is unchanged.

        Examples
        --------
        >>> import pandas as pd
        >>> from sklearn.linear_model import LogisticRegression
        >>> from tabsym import AugmentedModel
        >>> X = pd.DataFrame({"model": list("abcdefgh") * 20, "kind": ["car", "van"] * 80})
        >>> y = [0, 1, 0, 1, 0, 1, 1, 0] * 20
        >>> model = AugmentedModel(LogisticRegression()).fit(X, y)
        >>> sorted(model.evaluate_unknown(X, y, "model", folds=2).iloc[:, 0])
        ['augmented', 'encoded', 'without column']
        """
        check_option("folds", folds, [Number(at_least=2, whole=True)])
        X, y = split_target(X, y, type(self).__name__)
        check_same_rows(X, y=y, sample_weight=sample_weight)
        table = read_table(X, caller=type(self).__name__)
        if column not in table.names:
            raise ValueError(f"There is no column {column!r}; there are {', '.join(map(repr, table.names))}.")
        target = check_target(y, len(table), type(self).__name__)
        weight = check_weights(sample_weight, len(table))
        each = np.ones(len(table)) if weight is None else weight
        categories = pd.factorize(encode_column(table[column]).codes)[0]  # by appearance, with missing ones
        group = np.random.default_rng(random_state).permutation(categories.max() + 1) % folds
        losses: dict[str, Floats] = {name: np.zeros(len(table)) for name in ("augmented", "encoded", "without column")}
        for fold in np.unique(group):
            out = group[categories] == fold
            train, test = np.flatnonzero(~out), np.flatnonzero(out)
            relative = None if weight is None else relative_weights(weight[train])
            seen = take_rows(table.native, train), target[train], relative
            new = take_rows(table.native, test)
            for name, (model, encode) in self._contestants(column, seen).items():
                losses[name][test] = _losses(model, encode(new), target[test])
        return _table_of(losses, categories, each)

    def _encoded(self, X: Any) -> Any:
        check_is_fitted(self)
        return _plain(self.encoder_.transform(X))

    def _encoder(self) -> TIWSEncoder:
        if self.encoder is None:
            return TIWSEncoder(indicator=True)
        if not isinstance(self.encoder, TIWSEncoder):
            raise TypeError(f"encoder must be a TIWSEncoder, not {self.encoder!r}.")
        return clone(self.encoder)

    def _contestants(self, column: str, seen: tuple[Any, NDArray[Any], Floats | None]) -> dict[str, Any]:
        """This model and those it is compared with, trained on the same rows, and what makes rows ready for each."""
        X, y, weight = seen
        encoded, without = self._encoder().set_params(indicator=False), self._encoder().set_params(indicator=False)

        def others_of(rows: Any) -> Any:
            return nw.from_native(rows, eager_only=True).drop(column).to_native()

        if without.cols is not None and not (isinstance(without.cols, str) and without.cols == "all"):
            named = [c.name for c in categorical_columns(read_table(X), without.cols, booleans=False)]
            without.set_params(cols=[name for name in named if name != column])
        if isinstance(without.numeric, dict):
            without.set_params(numeric={name: how for name, how in without.numeric.items() if name != column})
        plain = _fitted(clone(self.estimator), encoded.fit_transform(X, y, weight), y, weight)
        blind = _fitted(clone(self.estimator), without.fit_transform(others_of(X), y, weight), y, weight)
        return {
            "augmented": (clone(self).fit(X, y, sample_weight=weight), lambda rows: rows),
            "encoded": (plain, encoded.transform),
            "without column": (blind, lambda rows: without.transform(others_of(rows))),
        }


def _plain(rows: Any) -> Any:
    """Encoded rows whose decimals, sparse numbers and integers of 128 bits are floats.

    Boosters do not take their missing values, or a frame of sparse columns alone, and LightGBM would end the process
    over the integers.
    """
    if not is_frame(rows) or not rows.shape[1]:
        return rows
    table = read_table(rows, allow_empty=True)
    numbers = [column for column in table.columns if column.kind is not Kind.CATEGORICAL and _is_of_rare_type(column)]
    if not numbers:
        return rows
    return assemble_frame(table, {c.name: {c.name: to_numbers(c.stored, c.name)} for c in numbers})


def _is_of_rare_type(column: Column) -> bool:
    is_sparse = isinstance(getattr(column.series.to_native(), "dtype", None), pd.SparseDtype)
    return is_sparse or dtype_of(column.stored) in (nw.Decimal, nw.Int128, nw.UInt128)


def _losses(model: Any, X: Any, y: NDArray[Any]) -> Floats:
    """Of each row: log-loss or squared error."""
    if not is_classifier(model):
        return np.asarray((np.asarray(y, dtype=float) - model.predict(X)) ** 2)
    shares = model.predict_proba(X)
    position = np.minimum(np.searchsorted(model.classes_, y), len(model.classes_) - 1)
    known = model.classes_[position] == y
    chosen = np.where(known, shares[np.arange(len(y)), position], 0.0)
    return -np.log(np.maximum(chosen, _MIN_PROBABILITY))


_MIN_PROBABILITY = 1e-6  # of a class that a model rules out


def _table_of(losses: dict[str, Floats], categories: NDArray[np.integer], weight: Floats) -> pd.DataFrame:
    """Mean losses, and differences to blind with standard errors over categories (a jackknife)."""
    rows = np.bincount(categories, weight)
    records = []
    for name, values in losses.items():
        gain = np.bincount(categories, weight * (values - losses["without column"]))
        left_out = (gain.sum() - gain) / np.maximum(rows.sum() - rows, 1e-300)
        n = len(gain)
        error = np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())
        records.append([name, np.average(values, weights=weight), gain.sum() / rows.sum(), error])
    return pd.DataFrame(records, columns=["model", "loss", "difference", "standard_error"]).sort_values(
        "loss", ignore_index=True
    )


def _fitted(model: Any, X: Any, y: NDArray[Any], weight: Floats | None) -> Any:
    """Trained, with weights where there are any, which a pipeline's last step gets."""
    if weight is None:
        return model.fit(X, y)
    last = model.steps[-1] if hasattr(model, "steps") else None
    if last is not None:
        return model.fit(X, y, **{f"{last[0]}__sample_weight": weight})
    if not has_fit_parameter(model, "sample_weight"):
        raise TypeError(f"{type(model).__name__} takes no sample_weight in fit; leave it out, or use one that does.")
    return model.fit(X, y, sample_weight=weight)
