"""`JitterPredictor`: a model that predicts rows with unknown categories by the known ones that those resemble."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from tabsym.encoders import TIWSEncoder
from tabsym.frame import match_features, plain_labels, read_table, split_target
from tabsym.jitter.averaging import CALLER, Answers, Batch, Treatment, is_fitted, road_of, with_tags_of
from tabsym.jitter.calibration import Calibration, calibrated
from tabsym.jitter.replacing import kept_donors
from tabsym.models.targets import score_of
from tabsym.validation import Number, check_declared_options, check_option

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
        return self._answers(X, return_std, n_draws, random_state).values()

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
        return self._answers(X, return_std, n_draws, random_state).probabilities()

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
        return self._answers(X, return_std, n_draws, random_state).scores()

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
        for symbol, (positions, shares) in zip(unseen.symbols, kept, strict=True):
            for position, share in zip(positions[:n_donors], shares[:n_donors], strict=True):
                donor = fitted.donors[position]
                records.append([symbol, fitted.symbols[donor], share, fitted.sums.rows[donor]])
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
        return score_of(getattr(self, "model_", self.model), y, self.predict(X), sample_weight)

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

    def _answers(self, X: Any, return_std: bool, n_draws: int | None, random_state: Any) -> Answers:
        self._check_options()
        check_option("n_draws", n_draws, [COUNT, None])
        model, encoder = self._fitted_parts()
        treated = self._treatments()
        if road_of(model) == "missing":  # unknown values of the other columns become missing: XGBoost may get them
            treated = {name: treated.get(name, Treatment("missing")) for name in encoder.columns_}
        batch = Batch.of(X, encoder, treated)
        seed = check_random_state(random_state).randint(2**31)
        random = np.random.default_rng(seed)
        return Answers(model, batch, self.average, self.max_donors, return_std, n_draws, random)

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
