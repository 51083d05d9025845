"""`JitterPredictor`: a model that predicts rows with unknown categories by known ones; its calibration on labels.

The rate at which donors' weights fall with distance is chosen by a model's own loss, as is whether donors help it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from tabsym.categories import UNSEEN
from tabsym.encoders import TIWSEncoder
from tabsym.frame import (
    Table,
    check_classes,
    check_regression_target,
    check_same_rows,
    check_weights,
    match_features,
    plain_labels,
    read_table,
    split_target,
    take_rows,
)
from tabsym.jitter.averaging import (
    CALLER,
    ROWS_FOR_LINK,
    AveragedPredictions,
    Batch,
    Predict,
    Treatment,
    UnknownAs,
    is_fitted,
    link_of,
    name_of,
    placeholder,
    score_of,
    unknown_as_of,
    with_tags_of,
)
from tabsym.jitter.replacing import CHUNK, kept_donors, longer, replaced, source_of, without_strange_levels
from tabsym.messages import Number, check_declared_options, check_option
from tabsym.models.targets import score_of as score_of_predictions
from tabsym.tiws.column import FittedColumn
from tabsym.tiws.counts import codes_of
from tabsym.tiws.similarity import Geometry, median_distance
from tabsym.tiws.unknown import MIN_TO_TUNE, DonorRule

AVERAGES = ("probability", "raw")
COUNT = Number(at_least=1, whole=True)


def _model_has(method: str) -> Any:
    return available_if(lambda self: hasattr(getattr(self, "model_", self.model), method))


class JitterPredictor(BaseEstimator):
    """Any trained model, with predictions for categories that are not in the training data.

    Rows of known categories are predicted by the model as they are. An unknown category is replaced by each of the
    known ones that it resembles ("donors": its nearest neighbours by context), and the predictions are averaged with
    the similarities as weights. Unknown categories never reach the model.

    Parameters
    ----------
    model : estimator
        Takes tables as they are: a pipeline, a booster of an adapter (``adapter.native(task)``). A fitted one is used
        as it is, also in clones; else `fit` fits a clone.
    encoder : TIWSEncoder
        Finds donors by the other columns of a category's rows. Fitted on the table that the model was trained on, or
        unfitted.
    average : {"probability", "raw"}, default "probability"
        What is averaged: predicted probabilities (of regressors predictions), or linear predictors before the link.
    max_donors : int or None, default 64
        Maximal number of donors of a value, the heaviest; None: all. More than 64 took longer and were no better; after
        `calibrate`, which uses 64, they were worse (measured: ``benchmarks/unseen``). With several unknown values in
        a row fewer, so that at most 2,500 combinations remain.
    columns : list of str, one of them, or None, default None
        Columns whose unknown categories are replaced, of those that the encoder encodes. None: all of them. Unknown
        values of other columns go to the model as they are (those that the encoder encodes as missing ones, where the
        model is XGBoost without a guard: it may take them for their neighbours).

    Attributes
    ----------
    classes_ : ndarray
        Of classifiers, the model's.
    calibration_ : dict of str -> Calibration
        By column, after `calibrate`: the kernel rate chosen, losses and what is used.
    model_, encoder_ : estimators
        After `fit`.

    Notes
    -----
    Averages are in float64; where no category is unknown, predictions are the model's own, of its dtype.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from tabsym import JitterPredictor, OneHotEncoder, TIWSEncoder
    >>> X = pd.DataFrame({"model": ["a", "b", "c", "d"] * 25, "kind": ["car", "van"] * 50})
    >>> y = [10.0, 20.0, 11.0, 21.0] * 25
    >>> encoder = TIWSEncoder(cols="model", target_type="continuous").fit(X, y)
    >>> model = make_pipeline(OneHotEncoder(), Ridge(alpha=0.001)).fit(X, y)
    >>> jitter = JitterPredictor(model, encoder)
    >>> new = pd.DataFrame({"model": ["a", "new", "other"], "kind": ["car", "car", "van"]})
    >>> jitter.predict(new).round(1).tolist()
    [10.0, 10.5, 20.5]
    """

    calibration_: dict[str, Calibration]
    model_: Any
    encoder_: Any

    _allowed_options = {"average": AVERAGES, "max_donors": (COUNT, None)}

    def __init__(self, model, encoder, *, average="probability", max_donors=64, columns=None):
        self.model = model
        self.encoder = encoder
        self.average = average
        self.max_donors = max_donors
        self.columns = columns

    # -- fitting ------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> JitterPredictor:
        """Fit clones of the model and the encoder, where they are not fitted.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,), or the name of its column in X

        Returns
        -------
        self
        """
        self._check_options()
        X, y = split_target(X, y, CALLER)
        self.encoder_ = self.encoder if is_fitted(self.encoder) else clone(self.encoder).fit(X, y)
        self.model_ = self.model if is_fitted(self.model) else clone(self.model).fit(X, plain_labels(y))
        self._treatments()
        self.__dict__.pop("calibration_", None)
        return self

    def calibrate(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        loss: str | None = None,
        n_rows: int = 800,
        random_state: Any = 0,
    ) -> JitterPredictor:
        """Choose how fast donors' weights fall with distance, by the model's own loss; and whether to use donors.

        Each of some rows is predicted with the donors of its category, which is left out and treated as unknown (at
        most 64 donors, those that any rate ranks highest). For a column whose donors are not better than the model's
        own treatment of an unknown category, by a standard error clustered by category, that treatment is used.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
            Preferably rows that the model was not fitted on. Rows with unknown values are not used.
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
        loss : {"log_loss", "squared_error", "poisson"}, optional
            Default: the first for classifiers, the second for regressors.
        n_rows : int, default 800
            Rows to use, of all classes and categories.
        random_state : int, RandomState or None, default 0

        Returns
        -------
        self

        Examples
        --------
        >>> import pandas as pd
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> from sklearn.pipeline import make_pipeline
        >>> from tabsym import JitterPredictor, OneHotEncoder, TIWSEncoder
        >>> X = pd.DataFrame({"car": list("aabbccdd") * 10, "body": ["van"] * 40 + ["city"] * 40})
        >>> X["body"] = X["car"].map({"a": "van", "b": "van", "c": "city", "d": "city"})
        >>> y = X["body"].map({"van": 9.0, "city": 1.0})
        >>> encoder = TIWSEncoder(cols=["car"]).fit(X, y)
        >>> model = make_pipeline(OneHotEncoder(), RandomForestRegressor(5, random_state=0)).fit(X, y)
        >>> jitter = JitterPredictor(model, encoder).fit(X, y)
        >>> jitter.calibrate(X, y, n_rows=40).describe()["column"].tolist()
        ['car']
        """
        self._check_options()
        model, encoder = self._fitted_parts()
        names, data = list(self._treatments()), (X, y, sample_weight)
        self.calibration_ = calibrated(model, encoder, names, self.average, data, loss, n_rows, random_state)
        return self

    # -- using --------------------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False, n_draws: int | None = None, random_state: Any = None) -> Any:
        """Predicted values or classes.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
            With the columns of fit; 0 rows are allowed.
        return_std : bool, default False
            Also return the standard deviation (n_rows,) of the predictions with each donor (for classifiers: of the
            probability of the predicted class); 0 for rows of known categories.
        n_draws : int, optional
            Number of donors to draw at random for each unknown value, instead of the weighted mean over all of them.
        random_state : int, RandomState or None
            Of the draws.

        Returns
        -------
        ndarray of shape (n_rows, ...), or that and the standard deviation

        Raises
        ------
        ValueError, TypeError
            With the name of the column or the option.
        """
        return self._averaged(X, return_std, n_draws, random_state).values()

    @_model_has("predict_proba")
    def predict_proba(
        self, X: Any, return_std: bool = False, n_draws: int | None = None, random_state: Any = None
    ) -> Any:
        """Class probabilities, averaged over donors.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        return_std : bool, default False
        n_draws : int, optional
        random_state : int, RandomState or None, default None
            As of `predict`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes); with `return_std` a pair of them
        """
        return self._averaged(X, return_std, n_draws, random_state).probabilities()

    @_model_has("decision_function")
    def decision_function(
        self, X: Any, return_std: bool = False, n_draws: int | None = None, random_state: Any = None
    ) -> Any:
        """Linear predictors, averaged over donors whatever `average` is.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        return_std : bool, default False
        n_draws : int, optional
        random_state : int, RandomState or None, default None
            As of `predict`.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes); with `return_std` a pair of them
        """
        return self._averaged(X, return_std, n_draws, random_state).scores()

    def donors(self, X: Any, column: str, n_donors: int = 5) -> pd.DataFrame:
        """The known categories that replace the unknown ones of a column (their donors), the heaviest first.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        column : str
        n_donors : int, default 5
            Maximal number for each.

        Returns
        -------
        pandas.DataFrame
            Columns category, donor, weight (of at most `max_donors` donors; they sum to 1) and rows (the donor's). No
            rows for a column that uses the model's own treatment after `calibrate`.

        Examples
        --------
        >>> import pandas as pd
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> from sklearn.pipeline import make_pipeline
        >>> from tabsym import JitterPredictor, OneHotEncoder, TIWSEncoder
        >>> X = pd.DataFrame({"car": list("aabbccdd") * 10, "body": ["van"] * 40 + ["city"] * 40})
        >>> X["body"] = X["car"].map({"a": "van", "b": "van", "c": "city", "d": "city"})
        >>> y = X["body"].map({"van": 9.0, "city": 1.0})
        >>> encoder = TIWSEncoder(cols=["car"]).fit(X, y)
        >>> model = make_pipeline(OneHotEncoder(), RandomForestRegressor(5, random_state=0)).fit(X, y)
        >>> jitter = JitterPredictor(model, encoder).fit(X, y)
        >>> new = pd.DataFrame({"car": ["new"], "body": ["van"]})
        >>> sorted(jitter.donors(new, "car", n_donors=2)["donor"])
        ['a', 'b']
        """
        self._check_options()
        encoder, treated = self._fitted_parts()[1], self._treatments()
        if column not in treated:
            raise ValueError(
                f"Column {column!r} is not among the columns of the predictor; there are "
                f"{', '.join(map(repr, treated))}."
            )
        labels = ["category", "donor", "weight", "rows"]
        if treated[column].used != "jitter":
            return pd.DataFrame([], columns=labels)
        table = match_features(encoder, read_table(X, caller=type(self).__name__, allow_empty=True))
        fitted, unseen = encoder.columns_[column].fitted, encoder.unseen_rows(table, column).unseen
        records = []
        kept = kept_donors(fitted.weights(unseen, rule=treated[column].rule), self.max_donors)
        for category, (positions, shares) in zip(unseen.categories, kept, strict=True):
            for position, share in zip(positions[:n_donors], shares[:n_donors], strict=True):
                donor = fitted.donors[position]
                records.append([category, fitted.categories[donor], share, fitted.sums.rows[donor]])
        return pd.DataFrame(records, columns=labels)

    def describe(self) -> pd.DataFrame:
        """The treatment of each column and the results of calibration, a row each.

        Returns
        -------
        pandas.DataFrame
            Columns column, used ("jitter", or "default": the model's own treatment), rate, name_rate, and mean losses
            default, uncalibrated and calibrated with the standard error of the difference of calibrated and default,
            and the numbers of rows and categories used.

        Examples
        --------
        >>> import pandas as pd
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> from sklearn.pipeline import make_pipeline
        >>> from tabsym import JitterPredictor, OneHotEncoder, TIWSEncoder
        >>> X = pd.DataFrame({"car": list("aabbccdd") * 10, "body": ["van"] * 40 + ["city"] * 40})
        >>> X["body"] = X["car"].map({"a": "van", "b": "van", "c": "city", "d": "city"})
        >>> y = X["body"].map({"van": 9.0, "city": 1.0})
        >>> encoder = TIWSEncoder(cols=["car"]).fit(X, y)
        >>> model = make_pipeline(OneHotEncoder(), RandomForestRegressor(5, random_state=0)).fit(X, y)
        >>> jitter = JitterPredictor(model, encoder).fit(X, y)
        >>> jitter.calibrate(X, y, n_rows=40).describe()[["column", "used"]]
          column     used
        0    car  default
        """
        records = []
        encoder = self._fitted_parts()[1]
        for name in self._treatments():
            one = getattr(self, "calibration_", {}).get(name)
            rule = encoder.columns_[name].fitted.rule if one is None or one.rule is None else one.rule
            losses = [np.nan] * 4 if one is None else [one.default, one.uncalibrated, one.calibrated, one.error]
            sizes = [0, 0] if one is None else [one.rows, one.categories]
            records.append([name, "jitter" if one is None else one.used, rule.rate, rule.name_rate, *losses, *sizes])
        labels = ["column", "used", "rate", "name_rate", "default", "uncalibrated", "calibrated", "error"]
        return pd.DataFrame(records, columns=[*labels, "rows", "categories"])

    # -- for scikit-learn -----------------------------------------------------------------------

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of a classifier; R² of a regressor, or D² where its `model` names a loss with a log link.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,), or the name of its column in X
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
        """
        X, y = split_target(X, y, CALLER)
        return score_of_predictions(getattr(self, "model_", self.model), y, self.predict(X), sample_weight)

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
        return with_tags_of(self.model, super().__sklearn_tags__())

    # -- pieces -------------------------------------------------------------------------------

    def _averaged(self, X: Any, return_std: bool, n_draws: int | None, random_state: Any) -> AveragedPredictions:
        self._check_options()
        check_option("n_draws", n_draws, [COUNT, None])
        model, encoder = self._fitted_parts()
        treated = self._treatments()
        if unknown_as_of(model) == "missing":  # unknown values of the other columns, too: XGBoost may get them
            treated = {name: treated.get(name, Treatment("missing")) for name in encoder.columns_}
        batch = Batch.of(X, encoder, treated)
        seed = check_random_state(random_state).randint(2**31)
        random = np.random.default_rng(seed)
        return AveragedPredictions(model, batch, self.average, self.max_donors, return_std, n_draws, random)

    def _check_options(self) -> None:
        """A `ValueError` or `TypeError` where an option is not known."""
        if not isinstance(self.encoder, TIWSEncoder):
            raise TypeError(f"encoder takes a TIWSEncoder, not {type(self.encoder).__name__}.")
        if not (hasattr(self.model, "predict") and hasattr(self.model, "fit")):
            raise TypeError(
                f"model takes an estimator with fit and predict, such as LGBMRegressor or XGBClassifier, not "
                f"{type(self.model).__name__}."
            )
        check_declared_options(self)

    def _fitted_parts(self) -> tuple[Any, TIWSEncoder]:
        """The fitted model and encoder, or a `NotFittedError`."""
        parts = []
        for name in ("model", "encoder"):
            part = getattr(self, f"{name}_", getattr(self, name))
            if not is_fitted(part):
                raise NotFittedError(f"The {name} of this {type(self).__name__} is not fitted; fit it, or call fit.")
            parts.append(part)
        return parts[0], parts[1]

    def _treatments(self) -> dict[str, Treatment]:
        """What becomes of unknown values, by column, or a `ValueError` that names what is not encoded."""
        encoder = self._fitted_parts()[1]
        chosen = [self.columns] if isinstance(self.columns, str) else self.columns
        names = list(encoder.columns_ if chosen is None else chosen)
        for name in names:
            if name not in encoder.columns_:
                have = ", ".join(map(repr, encoder.columns_))
                raise ValueError(
                    f"columns names {name!r}, which the encoder does not encode; it encodes {have or 'none'}."
                )
        results = getattr(self, "calibration_", {})
        return {name: results[name].treatment if name in results else Treatment() for name in names}


# -- calibration: the rate at which donors' weights fall -------------------------------------------

Floats = NDArray[np.float64]

_MIN_VALUE = 1e-15


@dataclass(frozen=True)
class Losses:
    """A loss by its name, and the target (n,) of all rows: indices of classes, or numbers."""

    name: str
    target: NDArray[Any]

    @classmethod
    def check(cls, loss: str | None, y: Any, n_rows: int, classes: NDArray[Any] | None) -> Losses:
        """The loss of a task (`classes`: those of a classifier), or a `ValueError` that says what there is."""
        possible = ("log_loss",) if classes is not None else ("squared_error", "poisson")
        name = possible[0] if loss is None else loss
        if name not in possible:
            kind = "classifiers" if classes is not None else "regressors"
            raise ValueError(f"loss={loss!r} is not known for {kind}; use {' or '.join(map(repr, possible))}.")
        if classes is not None:
            remedy = "leave its rows out, or fit the model on all classes"
            return cls(name, check_classes(y, n_rows, classes=classes, caller=CALLER, remedy=remedy).codes)
        target = check_regression_target(y, n_rows, caller=CALLER)
        if name == "poisson" and (target < 0).any():
            raise ValueError("loss='poisson' needs a target without negative values; use 'squared_error'.")
        return cls(name, target)

    def of(self, predictions: Floats, rows: NDArray[np.integer]) -> Floats:
        """Loss (n,) of the predictions (n, ...) given for these rows."""
        truth = self.target[rows]
        if self.name == "log_loss":
            total = predictions.sum(axis=1)
            return -np.log(np.clip(predictions[np.arange(len(rows)), truth] / total, _MIN_VALUE, 1.0))
        if self.name == "squared_error":
            return np.asarray((predictions - truth) ** 2)
        means = np.maximum(predictions, _MIN_VALUE)
        logs = truth * np.log(np.where(truth > 0, truth, 1.0) / means)
        return np.asarray(2 * (logs - truth + means))


Indices = NDArray[np.integer]

MAX_DONORS = 64
"""Of a category, those that any of the rules to choose from ranks highest, in calibration."""


ROUNDING = 1e-9
"""A gain below this share of the loss is none: of a model that does not use the column, donors change nothing."""


@dataclass(frozen=True)
class Calibration:
    """Result of calibration for a column.

    Attributes
    ----------
    used : {"jitter", "default"}
    rule : DonorRule or None
        None: the encoder's.
    default, uncalibrated, calibrated : float
        Mean losses of the model's own treatment (NaN where it has none), of the encoder's rule and of the chosen one.
    error : float
        Standard error, over categories, of the difference of calibrated and default.
    rows, categories : int
        Numbers used.
    road : {"model", "missing"}
        How unknown values go to the model under "default".
    """

    used: str
    rule: DonorRule | None
    default: float
    uncalibrated: float
    calibrated: float
    error: float
    rows: int
    categories: int
    unknown_as: UnknownAs

    @property
    def treatment(self) -> Treatment:
        """What becomes of the column's unknown values."""
        return Treatment(self.unknown_as) if self.used == "default" else Treatment("jitter", self.rule)


@dataclass(frozen=True)
class CalibrationSample:
    """Labelled rows of a table without unknown values; `codes` (n,) of the column's categories."""

    source: Any
    table: Table
    rows: Indices
    codes: Indices
    weight: Floats


@dataclass(frozen=True)
class ScoredModel:
    """A model as calibration sees it: scores that are averaged, what makes predictions of them, and their losses."""

    predict: Predict
    finish: Callable[[Floats], Floats]
    losses: Losses
    unknown_as: UnknownAs


def calibrate_column(fitted: FittedColumn, sample: CalibrationSample, model: ScoredModel) -> Calibration:
    """Choose a column's rule: each row is predicted with donors, its own category and its document left out."""
    categories, which = np.unique(sample.codes, return_inverse=True)
    positions, geometry = fitted.positions(fitted.donors, categories), fitted.between(fitted.as_unseen(categories))
    rules = _rules(fitted, geometry)
    chosen = _chosen(geometry, positions, rules)
    predictions = _with_donors(fitted, sample, model.predict, chosen[which])

    def loss(weights: Floats) -> Floats:
        some = np.take_along_axis(weights, chosen, axis=1)
        some = some / np.maximum(some.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        return model.losses.of(model.finish(np.einsum("ik,ik...->i...", some[which], predictions)), sample.rows)

    plain = loss(_plain(fitted, categories, geometry, positions))
    by_rule = [loss(rule.weights(geometry, positions)) for rule in rules]
    totals = [float(sample.weight @ losses) for losses in by_rule]
    best = int(np.argmin(totals)) if totals else -1
    keep_plain = best < 0 or sample.weight @ plain <= totals[best] * (1 + ROUNDING)
    calibrated = plain if keep_plain else by_rule[best]
    default = _default(fitted, sample, model)
    mean = partial(np.average, weights=sample.weight)
    error, is_better = float("nan"), True
    if default is not None:
        error = _error(calibrated - default, which, sample.weight)
        is_better = float(mean(default - calibrated)) > error + ROUNDING * float(mean(np.abs(default)))
    return Calibration(
        used="jitter" if is_better else "default",
        rule=None if keep_plain else rules[best],
        default=float("nan") if default is None else float(mean(default)),
        uncalibrated=float(mean(plain)),
        calibrated=float(mean(calibrated)),
        error=error,
        rows=len(sample.rows),
        categories=len(categories),
        unknown_as=model.unknown_as,
    )


def _rules(fitted: FittedColumn, geometry: Geometry) -> list[DonorRule]:
    """The rules to choose from; of few categories none, since all donors of one are alike then."""
    if len(fitted.donors) < MIN_TO_TUNE:
        return []
    rule = fitted.rule
    if fitted.method.method == "poster":  # which has no rule of its own
        rule = replace(rule, unit=median_distance(fitted.geometry.distances) or 1.0)
    return rule.others(geometry)


def _plain(fitted: FittedColumn, codes: Indices, geometry: Geometry, positions: Indices) -> Floats:
    """Weights by the encoder's own rule."""
    if fitted.method.method == "poster":
        return fitted.weights(fitted.as_unseen(codes), codes)
    return fitted.rule.weights(geometry, positions)


def _chosen(geometry: Geometry, positions: Indices, rules: list[DonorRule]) -> Indices:
    """Indices (m, k) of the donors of each category that are asked about."""
    m, donors = geometry.distances.shape
    if donors <= MAX_DONORS:
        return np.tile(np.arange(donors), (m, 1))
    rank = np.full((m, donors), donors)
    for rule in rules:
        order = np.argsort(-rule.weights(geometry, positions), axis=1, kind="stable")
        np.minimum(rank, np.argsort(order, axis=1, kind="stable"), out=rank)
    return np.argsort(rank, axis=1, kind="stable")[:, :MAX_DONORS]


def _with_donors(fitted: FittedColumn, sample: CalibrationSample, predict: Predict, chosen: Indices) -> Floats:
    """What the model says of each row with each donor: (n, k, ...)."""
    name = sample.table.names[fitted.number]
    categories = fitted.donor_categories
    column = longer(sample.source, fitted.number, sample.table[name], categories, set(fitted.categories))
    rows, donors = np.repeat(sample.rows, chosen.shape[1]), chosen.ravel()
    parts = [slice(first, first + CHUNK) for first in range(0, len(rows), CHUNK)]
    predictions = [np.asarray(predict(replaced(sample.source, rows[part], [column], [donors[part]]))) for part in parts]
    flat = np.concatenate(predictions).astype(np.float64)
    return flat.reshape(*chosen.shape, *flat.shape[1:])


def _default(fitted: FittedColumn, sample: CalibrationSample, model: ScoredModel) -> Floats | None:
    """Losses of the model's own treatment of an unknown category; None where it refuses one."""
    name = sample.table.names[fitted.number]
    category = placeholder(fitted.categories, model.unknown_as)
    known = set(fitted.categories) | {category}
    column = longer(sample.source, fitted.number, sample.table[name], [category], known)
    frame = replaced(sample.source, sample.rows, [column], [np.zeros(len(sample.rows), dtype=np.int64)])
    try:
        scores = np.asarray(model.predict(frame), dtype=np.float64)
    except (ValueError, TypeError, KeyError):
        return None
    return model.losses.of(model.finish(scores), sample.rows)


def _error(difference: Floats, group: Indices, weight: Floats) -> float:
    """Standard error of a weighted mean (n,) of which rows of a group go together; endless for a single group."""
    groups = int(group.max()) + 1
    if groups < 2:
        return float("inf")
    mean = np.average(difference, weights=weight)
    sums = np.bincount(group, weight * (difference - mean), minlength=groups)
    return float(np.sqrt(groups / (groups - 1) * (sums**2).sum()) / weight.sum())


def calibrated(
    model: Any, encoder: TIWSEncoder, names: list[str], average: str,
    data: tuple[Any, Any, Any], loss: str | None, n_rows: int, random_state: Any,
) -> dict[str, Calibration]:  # fmt: skip
    """The calibration of each column; `data`: table, target and weights."""
    X, y, sample_weight = data
    check_option("n_rows", n_rows, [Number(at_least=1, whole=True)])
    check_same_rows(X, y=y, sample_weight=sample_weight)
    table = match_features(encoder, read_table(X, caller=CALLER))
    weight = check_weights(sample_weight, len(table))
    weight = np.ones(len(table)) if weight is None else weight
    classes = np.asarray(model.classes_) if is_classifier(model) else None
    losses = Losses.check(loss, y, len(table), classes)
    codes = dict(zip(table.names, codes_of(table, encoder.counts_.words), strict=True))
    usable = weight > 0
    for name in encoder.columns_:
        usable &= codes[name] != UNSEEN
    rows = np.flatnonzero(usable)
    if not len(rows):
        raise ValueError(
            "Every row has an unknown category or weight 0; calibrate on rows with categories of the training data."
        )
    known = {one.fitted.number: set(one.fitted.categories) for one in encoder.columns_.values()}
    source = without_strange_levels(source_of(X, table), known)
    scored = _scored_model(model, average, losses, take_rows(source, rows[:ROWS_FOR_LINK]))
    random = check_random_state(random_state)
    by_column = {}
    for name in names:
        some = _stratified(rows, losses, codes[name], n_rows, random)
        sample = CalibrationSample(source, table, some, codes[name][some], weight[some])
        by_column[name] = calibrate_column(encoder.columns_[name].fitted, sample, scored)
    return by_column


def _scored_model(model: Any, average: str, losses: Losses, some: Any) -> ScoredModel:
    """The model as calibration asks it; `some` rows show its link."""
    if losses.name == "log_loss" and not hasattr(model, "predict_proba"):
        raise ValueError(f"calibrate needs predict_proba, which {name_of(model)} lacks; leave calibrate out.")
    prediction = model.predict_proba if losses.name == "log_loss" else model.predict
    if average == "probability":
        return ScoredModel(prediction, lambda predictions: predictions, losses, unknown_as_of(model))
    score = score_of(model)
    return ScoredModel(score, link_of(score(some), prediction(some)), losses, unknown_as_of(model))


def _stratified(rows: Indices, losses: Losses, codes: Indices, n_rows: int, random: Any) -> Indices:
    """Some of the rows, evenly from all classes and categories (of numbers: from all categories, small and large)."""
    if len(rows) <= n_rows:
        return rows
    target, category, tie = losses.target[rows], codes[rows], random.permutation(len(rows))
    by_class = losses.name == "log_loss"
    order = np.lexsort((tie, category, target) if by_class else (tie, target, category))
    at = ((np.arange(n_rows) + random.random_sample()) * len(rows) / n_rows).astype(np.int64)
    return np.sort(rows[order[at]])
