"""`WideSGDClassifier` and `WideSGDRegressor`: the wide models online, by stochastic gradient descent with GSE."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from tabsym.frame import NUMBERS, check_classes, match_features
from tabsym.frame.read import is_stream
from tabsym.losses.loss import LOSSES, Loss
from tabsym.messages import plural
from tabsym.models.base import WideBase
from tabsym.models.checks import by_class, check_loss
from tabsym.models.config import Config, online_config
from tabsym.models.constraints import with_classes
from tabsym.models.data import Training
from tabsym.models.docs import ONLINE_ATTRIBUTES, described, fill_in
from tabsym.models.fitting import continue_model
from tabsym.models.stream import find_classes, fit_stream, target_name
from tabsym.models.targets import WideClassifierBase, WideRegressorBase

Floats = NDArray[np.float64]


class WideSGDBase(WideBase):
    """Base class of the online models; not public."""

    def _config(self) -> Config:
        return online_config(self)

    def _rows_in_words(self) -> str:
        return f"{plural(self.n_rows_seen_, 'row')} in all, repeats counted"

    def _partial_fit(self, config: Config, training: Training, loss: Loss, n_outputs: int) -> None:
        """One epoch over one more batch of rows; a failure leaves the model unchanged."""
        if self.handle_unknown == "similar":
            raise ValueError(
                "handle_unknown='similar' is estimated from all rows at hand; call fit on a table, or leave it out."
            )
        first = not hasattr(self, "model_")
        if not first:
            if training.given is None or training.offset_column is None:
                table = match_features(self, training.table)
            else:
                table = training.offset_column.split(match_features(self, training.given))[0]
            self._check_measures(table)
            training = replace(training, table=table)
        rng = check_random_state(self.random_state) if first else deepcopy(self._rng)
        fitted = continue_model(config, None if first else self.model_, training, loss, n_outputs, rng)
        if first:
            self._remember(training)
        else:  # of columns that had no value before
            numbers = [training.table[name] for name in self.model_.spec.number_columns]
            valued = [column for column in numbers if column.measure != NUMBERS and not np.isnan(column.values).all()]
            self._moments = self._moments | {column.name: str(column.measure) for column in valued}
        self._similar = None
        self._rng = rng
        n_rows = len(training.y) if training.weight is None else int(np.count_nonzero(training.weight))
        seen = n_rows + (0 if first else self.n_rows_seen_)
        curve = ([] if first else self.loss_curve_) + fitted.training_result.loss_curve
        self._keep(fitted.model, curve, [], seen)


ONLINE = (
    "learning_rate schedule power_t gradient batch_size alpha_online l1_ratio max_iter_online tol_online "
    "early_stopping validation_fraction n_iter_no_change average shuffle standardize coef_init"
)


@fill_in(
    parameters=described(
        "formula categorical_features numeric_online interactions_online loss_classes optimizer class_weight "
        f"{ONLINE} handle_unknown offset_column random_state_online n_jobs verbose_online"
    ),
    attributes=ONLINE_ATTRIBUTES,
)
class WideSGDClassifier(WideSGDBase, WideClassifierBase):
    """Online classifier with one interpretable coefficient per category, trained by stochastic gradient.

    The linear predictor of a row is an intercept plus one coefficient for the category in each categorical column, one
    for each interaction, and a slope for each numeric column; a logistic or softmax link makes probabilities of it.
    Trained with the gradient estimator for symbolical features (GSE), row by row or in batches, on tables, on streams
    and by `partial_fit`. One-hot columns are never built. Where all rows fit in memory `WideClassifier` is better.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    {attributes}

    See Also
    --------
    WideClassifier : the same models solved to the optimum, with penalties that are estimated.

    References
    ----------
    Peseux, Berar, Paquet, Nicollet: Stochastic Gradient Descent with gradient
    estimator for symbolical features.

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import WideSGDClassifier
    >>> X = pd.DataFrame({"colour": ["red", "blue", "red", "green"] * 25})
    >>> y = ["sold", "kept", "sold", "kept"] * 25
    >>> model = WideSGDClassifier(random_state=0).fit(X, y)
    >>> model.predict(pd.DataFrame({"colour": ["red", "blue", "never seen"]})).tolist()
    ['sold', 'kept', 'kept']
    """

    def __init__(
        self,
        formula=None,
        *,
        categorical_features="from_dtype",
        numeric="linear",
        interactions=None,
        loss="log_loss",
        optimizer="adagrad",
        class_weight=None,
        learning_rate="auto",
        schedule="constant",
        power_t=0.5,
        gradient="gse",
        batch_size=1,
        alpha=0.0,
        l1_ratio=0.0,
        max_iter="auto",
        tol=None,
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=10,
        average=False,
        shuffle=True,
        standardize=True,
        coef_init=None,
        handle_unknown="neutral",
        offset_column=None,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        self.formula = formula
        self.categorical_features = categorical_features
        self.numeric = numeric
        self.interactions = interactions
        self.loss = loss
        self.optimizer = optimizer
        self.class_weight = class_weight
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.power_t = power_t
        self.gradient = gradient
        self.batch_size = batch_size
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.average = average
        self.shuffle = shuffle
        self.standardize = standardize
        self.coef_init = coef_init
        self.handle_unknown = handle_unknown
        self.offset_column = offset_column
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, offset: Any = None) -> WideSGDClassifier:
        """Fit from scratch.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns), or a stream
            A stream is a pyarrow dataset (a folder of Parquet files, say) or an iterator of
            frames: trained batch by batch, in memory that does not grow with the rows.
        y : array-like of shape (n_rows,); with a stream the name of its target column
            Classes: numbers, text or booleans. May be left out where the formula names the target.
        sample_weight : array-like of shape (n_rows,), optional
            Rows of weight 0 count as absent. A row's gradient is multiplied by its weight over the mean weight; under
            gse the mean over a category's rows is over the mean weight of that category.
        offset : array-like of shape (n_rows,), for more than two classes (n_rows, n_classes), optional
            Added to the linear predictor of each row; give it to `predict` too.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            In a sentence that names the column or argument; also where the indexes of pandas contradict each other.
        """
        if is_stream(X):
            name = target_name(y, self.formula)
            extras = {"sample_weight": sample_weight, "offset": offset}
            fit_stream(self, X, name, extras, {"classes": find_classes(X, name)})
            return self
        self._fit_classes(self._config(), X, y, sample_weight, offset)
        return self

    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None, *, offset: Any = None
    ) -> WideSGDClassifier:
        """One epoch over one more batch of rows; new categories enter with the neutral value 0.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,), or the name of its column in X
        classes : array-like, optional
            All the classes there can be; needed in the first call unless `y` holds them all.
        sample_weight : array-like of shape (n_rows,), optional
        offset : array-like of shape (n_rows,), for more than two classes (n_rows, n_classes), optional

        Returns
        -------
        self

        Notes
        -----
        Numeric columns are standardised by all the rows seen so far. Weights
        count relative to the mean weight of the first call. After each call the
        means of the terms are moved to the intercept, so that with a penalty
        the coefficients depend a little on how the rows are cut into calls.
        If the call fails, the model is as it was before.
        """
        config = self._config()
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} counts the classes of all rows, and partial_fit has some of them; "
                "give a mapping from class to number."
            )
        rows = self._read_rows(config, X, y, sample_weight, offset)
        fitted = hasattr(self, "model_")
        if fitted and classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"classes={list(classes)!r} is not the same as on last call to partial_fit, was: "
                f"{self.classes_.tolist()!r}; leave classes out."
            )
        known = self.classes_ if fitted else classes
        target = check_classes(rows.y, len(rows.table), classes=known, caller=type(self).__name__)
        rows = replace(rows, offset=by_class(rows.offset, target.classes, "offset"))
        rows = self._with_class_weight(rows, target.classes, target.codes)
        loss, n_outputs = self._loss_of_classes(len(target.classes))
        training = rows.training(target.codes.astype(np.float64), n_outputs)
        if n_outputs > 1:
            config = with_classes(config, target.classes)
        self._partial_fit(config, training, loss, n_outputs)
        self.classes_ = target.classes
        return self

    def _loss_of_classes(self, n_classes: int) -> tuple[Loss, int]:
        name = check_loss(self.loss, ("log_loss", "hinge"))
        if name == "log_loss":
            return super()._loss_of_classes(n_classes)
        if n_classes > 2:
            raise ValueError(f"loss='hinge' is for two classes and the target has {n_classes}; use 'log_loss'.")
        return LOSSES["hinge"], 1


@fill_in(
    parameters=described(
        f"formula categorical_features numeric_online interactions_online loss_online optimizer {ONLINE} "
        "handle_unknown offset_column exposure_column random_state_online n_jobs verbose_online"
    ),
    attributes=ONLINE_ATTRIBUTES,
)
class WideSGDRegressor(WideSGDBase, WideRegressorBase):
    """Online regressor with one interpretable coefficient per category, trained by stochastic gradient.

    The linear predictor of a row is an intercept plus one coefficient for the category in each categorical column, one
    for each interaction, and a slope for each numeric column. Trained with the gradient estimator for symbolical
    features (GSE), row by row or in batches, on tables, on streams and by `partial_fit`. One-hot columns are never
    built. Where all rows fit in memory `WideRegressor` is better.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    WideRegressor : the same models solved to the optimum, with penalties that are estimated.

    References
    ----------
    Peseux, Berar, Paquet, Nicollet: Stochastic Gradient Descent with gradient
    estimator for symbolical features.

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import WideSGDRegressor
    >>> X = pd.DataFrame({"size": ["S", "M", "L", "M"] * 50})
    >>> y = [10.0, 20.0, 30.0, 20.0] * 50
    >>> model = WideSGDRegressor(random_state=0).fit(X, y)
    >>> model.predict(pd.DataFrame({"size": ["S", "L"]})).round().tolist()
    [10.0, 30.0]
    """

    losses = tuple(name for name, loss in LOSSES.items() if not loss.for_classes)

    def __init__(
        self,
        formula=None,
        *,
        categorical_features="from_dtype",
        numeric="linear",
        interactions=None,
        loss="squared_error",
        optimizer="adagrad",
        learning_rate="auto",
        schedule="constant",
        power_t=0.5,
        gradient="gse",
        batch_size=1,
        alpha=0.0,
        l1_ratio=0.0,
        max_iter="auto",
        tol=None,
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=10,
        average=False,
        shuffle=True,
        standardize=True,
        coef_init=None,
        handle_unknown="neutral",
        offset_column=None,
        exposure_column=None,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        self.formula = formula
        self.categorical_features = categorical_features
        self.numeric = numeric
        self.interactions = interactions
        self.loss = loss
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.power_t = power_t
        self.gradient = gradient
        self.batch_size = batch_size
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.average = average
        self.shuffle = shuffle
        self.standardize = standardize
        self.coef_init = coef_init
        self.handle_unknown = handle_unknown
        self.offset_column = offset_column
        self.exposure_column = exposure_column
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, offset: Any = None) -> WideSGDRegressor:
        """Fit from scratch.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns), or a stream
            A stream is a pyarrow dataset (a folder of Parquet files, say) or an iterator of
            frames: trained batch by batch, in memory that does not grow with the rows.
        y : array-like of shape (n_rows,); with a stream the name of its target column
            Finite numbers. May be left out where the formula names the target.
        sample_weight : array-like of shape (n_rows,), optional
            Rows of weight 0 count as absent. A row's gradient is multiplied by its weight over the mean weight; under
            gse the mean over a category's rows is over the mean weight of that category.
        offset : array-like of shape (n_rows,), optional
            Added to the linear predictor of each row, as log(exposure) is for counts; give it to `predict` too.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            In a sentence that names the column or argument; also where the indexes of pandas contradict each other.
        """
        if is_stream(X):
            fit_stream(self, X, y, {"sample_weight": sample_weight, "offset": offset}, {})
            return self
        config, loss = self._config(), self._named_loss()
        interrupted = self._fit(config, self._read(config, X, y, sample_weight, offset), loss, 1)
        if interrupted is not None:
            raise interrupted
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, offset: Any = None) -> WideSGDRegressor:
        """One epoch over one more batch of rows; new categories enter with the neutral value 0.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,), or the name of its column in X
        sample_weight : array-like of shape (n_rows,), optional
        offset : array-like of shape (n_rows,), optional

        Returns
        -------
        self

        Notes
        -----
        Numeric columns and the target are standardised by all the rows seen so
        far. Weights count relative to the mean weight of the first call. After
        each call the means of the terms are moved to the intercept, so that
        with a penalty the coefficients depend a little on how the rows are cut
        into calls. If the call fails, the model is as it was before.
        """
        config, loss = self._config(), self._named_loss()
        self._partial_fit(config, self._read(config, X, y, sample_weight, offset), loss, 1)
        return self
