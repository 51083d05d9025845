"""A model made to answer for categories it has never seen, by those that they resemble."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from tabsym.jitter.answers import Answers, Call
from tabsym.jitter.batch import Batch
from tabsym.jitter.calibrating import Calibration
from tabsym.jitter.sampling import calibrated
from tabsym.jitter.state import check_options, described, guarded, is_fitted, parts, summary, treatments
from tabsym.jitter.wrapper import Wrapper

_WHO = "JitterPredictor"


def _model_has(method: str) -> Any:
    return available_if(lambda self: hasattr(getattr(self, "model_", self.model), method))


class JitterPredictor(Wrapper):
    """Any trained model, with an answer for categories that are not in the training data.

    Rows whose categories were all seen go through the model as they are. Where a category was not, the model is asked
    about the row with each of the known categories that it resembles ("donors") in its place, and the answers are
    averaged by how much it resembles them. Unknown categories never reach the model.

    Parameters
    ----------
    model : estimator
        Takes tables as they are: a pipeline, a booster of an adapter (``adapter.native(task)``). Fitted, it is used as
        it is, also in clones; else `fit` fits a clone.
    encoder : TIWSEncoder
        Finds donors, by what the other columns say of a category. Fitted on the table that the model learned from, or
        to be fitted.
    average : {"probability", "raw"}, default "probability"
        What is averaged: predicted probabilities (of regressors predictions), or scores before the link.
    max_donors : int or None, default 64
        At most so many donors of a value, the heaviest; None: all. More than 64 took longer and were no better; after
        `calibrate`, which looks at 64, they were worse (measured: ``benchmarks/unseen``). Of several unknown values in
        a row so many that at most 2,500 combinations remain.
    columns : list of str, one of them, or None, default None
        Columns to treat, of those that the encoder encodes. None: all of them. Unknown values of other columns go to
        the model as they are (those that the encoder encodes as missing ones, where the model is XGBoost without a
        guard: it may take them for their neighbours).

    Attributes
    ----------
    classes_ : ndarray
        Of classifiers, the model's.
    calibration_ : dict of str -> Calibration
        By column, after `calibrate`: the rate chosen, losses and what is used.
    model_, encoder_ : estimators
        After `fit`.

    Notes
    -----
    Averages are in float64; where no category is unknown, answers are the model's own, of its type.

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
        y : array-like of shape (n_rows,)

        Returns
        -------
        self
        """
        check_options(self)
        self.encoder_ = self.encoder if is_fitted(self.encoder) else clone(self.encoder).fit(X, y)
        self.model_ = self.model if is_fitted(self.model) else clone(self.model).fit(X, y)
        treatments(self)
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

        Each of some rows is answered with the donors of its category, the category itself left out and in the part of
        an unknown one (of many donors the 64 that any rate ranks highest). A column whose donors do not beat the
        model's own treatment of an unknown category, by a standard error over categories, goes back to that treatment.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
            Best of rows that the model was not fitted on. Rows with unknown values are not used.
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
        loss : {"log_loss", "squared_error", "poisson"}, optional
            Of classifiers and of regressors the first and the second.
        n_rows : int, default 800
            Rows to use, of all classes and categories.
        random_state : int, RandomState or None, default 0

        Returns
        -------
        self
        """
        check_options(self)
        model, encoder = parts(self)
        names, data = list(treatments(self)), (X, y, sample_weight)
        found = calibrated(_WHO, model, encoder, names, self.average, data, loss, n_rows, random_state)
        self.calibration_ = found
        return self

    # -- using --------------------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False, n_draws: int | None = None, random_state: Any = None) -> Any:
        """Predicted values or classes.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
            With the columns of fit; 0 rows are allowed.
        return_std : bool, default False
            Also return the standard deviation (n_rows,) of donors' answers (of classifiers: of the probability of the
            class predicted); 0 where all was seen.
        n_draws : int, optional
            Draw so many donors of each unknown value instead of weighing all of them; a draw's stay through the model.
        random_state : int, RandomState or None
            Of the draws.

        Returns
        -------
        ndarray of shape (n_rows, ...), or that and the standard deviation

        Raises
        ------
        ValueError, TypeError
            In a sentence that names the column or the option.
        """
        return self._answers(X, return_std, n_draws, random_state).values()

    @_model_has("predict_proba")
    def predict_proba(
        self, X: Any, return_std: bool = False, n_draws: int | None = None, random_state: Any = None
    ) -> Any:
        """Class probabilities (n_rows, n_classes); options as of `predict`."""
        return self._answers(X, return_std, n_draws, random_state).probabilities()

    @_model_has("decision_function")
    def decision_function(
        self, X: Any, return_std: bool = False, n_draws: int | None = None, random_state: Any = None
    ) -> Any:
        """Scores, averaged over donors whatever `average` says; options as of `predict`."""
        return self._answers(X, return_std, n_draws, random_state).scores()

    def donors(self, X: Any, column: str, n_donors: int = 5) -> pd.DataFrame:
        """The donors of the unknown categories of a column, the heaviest first.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        column : str
        n_donors : int, default 5
            At most so many for each.

        Returns
        -------
        pandas.DataFrame
            Columns category, donor, weight (of those that are asked about they sum to 1; `max_donors`) and rows (the
            donor's). No rows for a column that calibration gave back to the model's own treatment.
        """
        check_options(self)
        return described(self, X, column, n_donors)

    def describe(self) -> pd.DataFrame:
        """What is used for each column, and what calibration found, a row each.

        Returns
        -------
        pandas.DataFrame
            Columns column, used ("jitter", or "default": the model's own treatment), rate, name_rate, and mean losses
            default, uncalibrated and calibrated with the standard error of the difference of calibrated and default,
            and the rows and categories looked at.
        """
        return summary(self)

    # -- pieces -------------------------------------------------------------------------------

    def _answers(self, X: Any, return_std: bool, n_draws: int | None, random_state: Any) -> Answers:
        check_options(self)
        model, encoder = parts(self)
        batch = Batch.of(X, encoder, guarded(self), _WHO)
        seed = check_random_state(random_state).randint(2**31)
        call = Call(self.average, self.max_donors, return_std, n_draws, np.random.default_rng(seed))
        return Answers(model, batch, call.checked())
