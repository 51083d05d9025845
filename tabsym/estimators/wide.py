"""`WideClassifier` and `WideRegressor`: one interpretable number per symbol."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.metaestimators import available_if

from tabsym.estimators.checks import check_offset, check_offset_of_loss, check_target_of_loss
from tabsym.estimators.classifying import LabelClassifier
from tabsym.estimators.config import Config
from tabsym.estimators.docs import WIDE_ATTRIBUTES, WIDE_PARAMETERS, fill_in
from tabsym.estimators.linking import choose_loss
from tabsym.estimators.stream import find_classes, fit_stream, target_name
from tabsym.estimators.training_data import Training
from tabsym.estimators.wide_base import WideBase
from tabsym.table import check_classes, check_regression_target, check_weights, plain_labels, split_target
from tabsym.table.rows import as_rows
from tabsym.table.streams import is_stream
from tabsym.wide.constants import best_constant
from tabsym.wide.likelihood import deviance
from tabsym.wide.losses import LOSSES, Loss
from tabsym.wide.optimizers import Newton

Floats = NDArray[np.float64]


def _has_probabilities(classifier: Any) -> bool:
    """Whether there is `predict_proba`: a sentence says why not."""
    fitted = getattr(classifier, "model_", None)
    if (classifier.loss if fitted is None else fitted.loss.name) == "hinge":
        raise AttributeError("The hinge loss has no probabilities; use decision_function, or loss='logistic'.")
    return True


def _goes_by_pieces(model: Any) -> bool:
    """Whether there is `partial_fit`: a sentence says why not."""
    if model.optimizer == "newton" or isinstance(model.optimizer, Newton):
        raise AttributeError(
            "optimizer='newton' goes over all rows again and again; call fit on a table, or use another optimizer for "
            "streams and partial_fit."
        )
    if model.loss == "choose":
        raise AttributeError(
            "loss='choose' compares losses on rows held out, in fit on a table; name the loss for streams and "
            "partial_fit."
        )
    return True


@fill_in(parameters=WIDE_PARAMETERS, attributes=WIDE_ATTRIBUTES)
class WideClassifier(LabelClassifier, WideBase):
    """Classifier that learns one number per symbol (per class, where there are more than two).

    The score of a row is an intercept plus one number for the symbol in each
    symbolic column, one for each cross of columns (`interactions`), and a
    slope for each numeric column; a logistic or softmax link makes
    probabilities of it. One-hot encoding is never built: a row selects its
    numbers. Trained by stochastic gradient with the gradient estimator for
    symbolical features (GSE).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    {attributes}

    References
    ----------
    Peseux, Berar, Paquet, Nicollet: Stochastic Gradient Descent with gradient
    estimator for symbolical features.

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import WideClassifier
    >>> X = pd.DataFrame({{"colour": ["red", "blue", "red", "green"] * 25}})
    >>> y = ["sold", "kept", "sold", "kept"] * 25
    >>> model = WideClassifier(random_state=0).fit(X, y)
    >>> model.predict(pd.DataFrame({{"colour": ["red", "blue", "never seen"]}})).tolist()
    ['sold', 'kept', 'kept']
    >>> model.coefs_["colour"].round(1)["value"].gt(0).to_dict()
    {{'red': True, 'blue': False, 'green': False}}
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, offset: Any = None) -> WideClassifier:
        """Fit from scratch.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns), or a stream
            A stream is a pyarrow dataset (a folder of Parquet files, say) or an iterator of
            frames: trained piece by piece, in memory that does not grow with the rows.
        y : array-like of shape (n_rows,); with a stream the name of its target column
            Classes: numbers, text or booleans. May be left out where the formula names the target.
        sample_weight : array-like of shape (n_rows,), optional
            Rows of weight 0 count as absent.
        offset : array-like of shape (n_rows,), for the multinomial loss (n_rows, n_classes), optional
            Added to the scores of each row; give it to `predict` too.

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
        config = Config.of(self)
        rows = self._read_rows(config, X, y, sample_weight, offset)
        kept = np.ones(len(rows.table), dtype=bool) if rows.weight is None else rows.weight > 0
        target = check_classes(rows.y, len(rows.table), who=type(self).__name__)
        if np.count_nonzero(np.bincount(target.codes[kept])) < 2:
            raise ValueError("After dropping rows of weight 0 the target has 1 class only; give both classes weight.")
        classes, values = target.classes, target.codes.astype(np.float64)
        del target, kept
        loss, n_outputs = self._choose_loss(len(classes))
        interrupted = self._fit(config, rows.training(values, n_outputs), loss, n_outputs)
        self.classes_ = classes
        if interrupted is not None:
            raise interrupted
        return self

    @available_if(_goes_by_pieces)
    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None, *, offset: Any = None
    ) -> WideClassifier:
        """One epoch over one more batch of rows; new symbols enter with the neutral value 0.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
        classes : array-like, optional
            All the classes there can be; needed in the first call unless `y` holds them all.
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        self

        Notes
        -----
        Numeric columns are standardised by all the rows seen so far. Weights
        count relative to the mean weight of the first call. If the call fails,
        the model is as it was before.
        """
        config = Config.of(self)
        rows = self._read_rows(config, X, y, sample_weight, offset)
        fitted = hasattr(self, "model_")
        if fitted and classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"classes={list(classes)!r} is not the same as on last call to partial_fit, was: "
                f"{self.classes_.tolist()!r}; leave classes out."
            )
        known = self.classes_ if fitted else classes
        target = check_classes(rows.y, len(rows.table), classes=known, who=type(self).__name__)
        loss, n_outputs = self._choose_loss(len(target.classes))
        training = rows.training(target.codes.astype(np.float64), n_outputs)
        self._partial_fit(config, training, loss, n_outputs)
        self.classes_ = target.classes
        return self

    def decision_function(
        self, X: Any, *, offset: Any = None, return_std: bool = False
    ) -> Floats | tuple[Floats, Floats]:
        """Scores before the link: (n_rows,) for two classes, else (n_rows, n_classes).

        With `return_std` also their posterior standard deviations (n_rows,), after a fit with
        ``optimizer=Newton(draws=32)`` on two classes.
        """
        if return_std:
            return self.decision_function(X, offset=offset), self._score_deviations(X)  # type: ignore[return-value]
        margins = self._margins(X, offset)
        if self.model_.n_outputs == 1:
            return margins[:, 0]
        return margins[:, 1] - margins[:, 0] if len(self.classes_) == 2 else margins

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any, *, offset: Any = None) -> Floats:
        """Class probabilities (n_rows, n_classes), in the order of `classes_`; not for the hinge loss."""
        margins = self._margins(X, offset)
        return self.model_.loss.predict(margins)

    def predict(self, X: Any, *, offset: Any = None) -> NDArray[Any]:
        """The most probable class of each row (n_rows,)."""
        margins = self._margins(X, offset)
        places = (margins[:, 0] > 0).astype(int) if self.model_.n_outputs == 1 else margins.argmax(axis=1)
        return np.asarray(self.classes_[places])

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> float:
        """The accuracy of `predict`, weighted.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,), or the name of its column in X
        sample_weight : array-like of shape (n_rows,), optional
        offset : array-like of shape (n_rows,), optional

        Returns
        -------
        float
        """
        X, y = split_target(X, y, type(self).__name__)
        return float(accuracy_score(plain_labels(y), self.predict(X, offset=offset), sample_weight=sample_weight))

    def _choose_loss(self, n_classes: int) -> tuple[Loss, int]:
        name = self.loss
        if name == "auto":
            name = "logistic" if n_classes == 2 else "multinomial"
        if name not in ("logistic", "hinge", "multinomial"):
            raise ValueError(f"loss={name!r} is not known; use 'auto', 'logistic', 'hinge' or 'multinomial'.")
        if name != "multinomial" and n_classes > 2:
            raise ValueError(
                f"loss={name!r} is for two classes and the target has {n_classes}; use 'multinomial' or 'auto'."
            )
        return LOSSES[name], n_classes if name == "multinomial" else 1

    def _output_names(self) -> list[str]:
        if self.model_.n_outputs == 1:
            return ["value"]
        return [str(label) for label in self.classes_]


@fill_in(parameters=WIDE_PARAMETERS, attributes=WIDE_ATTRIBUTES)
class WideRegressor(RegressorMixin, WideBase):
    """Regressor that learns one number per symbol.

    The prediction is an intercept plus one number for the symbol in each
    symbolic column, one for each cross of columns (`interactions`), and a
    slope for each numeric column. One-hot encoding is never built: a row
    selects its numbers. Trained by stochastic gradient with the gradient
    estimator for symbolical features (GSE).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    References
    ----------
    Peseux, Berar, Paquet, Nicollet: Stochastic Gradient Descent with gradient
    estimator for symbolical features.

    Examples
    --------
    >>> import pandas as pd
    >>> from tabsym import WideRegressor
    >>> X = pd.DataFrame({{"size": ["S", "M", "L", "M"] * 50}})
    >>> y = [10.0, 20.0, 30.0, 20.0] * 50
    >>> model = WideRegressor(random_state=0).fit(X, y)
    >>> model.predict(pd.DataFrame({{"size": ["S", "L"]}})).round().tolist()
    [10.0, 30.0]
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, offset: Any = None) -> WideRegressor:
        """Fit from scratch.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns), or a stream
            A stream is a pyarrow dataset (a folder of Parquet files, say) or an iterator of
            frames: trained piece by piece, in memory that does not grow with the rows.
        y : array-like of shape (n_rows,); with a stream the name of its target column
            Finite numbers. May be left out where the formula names the target.
        sample_weight : array-like of shape (n_rows,), optional
            Rows of weight 0 count as absent.
        offset : array-like of shape (n_rows,), optional
            Added to the score of each row, as log(exposure) is for counts; give it to `predict` too.

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
        config = Config.of(self)
        if self.loss == "choose":
            return self._fit_best_link(config, X, y, sample_weight, offset)
        interrupted = self._fit(config, self._read(config, X, y, sample_weight, offset), self._choose_loss(), 1)
        self._losses: dict[str, float] | None = None
        if interrupted is not None:
            raise interrupted
        return self

    @available_if(_goes_by_pieces)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, offset: Any = None) -> WideRegressor:
        """One epoch over one more batch of rows; new symbols enter with the neutral value 0.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        self

        Notes
        -----
        Numeric columns and the target are standardised by all the rows seen so
        far. Weights count relative to the mean weight of the first call. If the
        call fails, the model is as it was before.
        """
        config = Config.of(self)
        self._partial_fit(config, self._read(config, X, y, sample_weight, offset), self._choose_loss(), 1)
        return self

    def predict(self, X: Any, *, offset: Any = None, return_std: bool = False) -> Floats | tuple[Floats, Floats]:
        """Predicted values (n_rows,), in the units of the target; with a log link, the mean.

        With `return_std` also the standard deviations (n_rows,) of these values by their posterior, without the noise
        of single rows (`dispersion_`), after a fit with ``optimizer=Newton(draws=32)``; behind a log link
        the mean times the deviation of the score.
        """
        margins = self._margins(X, offset)
        predicted = self.model_.loss.predict(margins)[:, 0]
        if not return_std:
            return predicted
        spread = self._score_deviations(X)
        return predicted, predicted * spread if self.model_.loss.log_link else spread

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> float:
        """R²; where `loss` names one with a log link, D²: the share of the deviance that the model explains.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,), or the name of its column in X
        sample_weight : array-like of shape (n_rows,), optional
        offset : array-like of shape (n_rows,), optional
            Of the model and of the constant that it is compared with.

        Returns
        -------
        float
            1 at best, 0 of a constant (Hastie, Tibshirani and Wainwright 2015, "Statistical Learning with Sparsity",
            equation 3.11).
        """
        X, y = split_target(X, y, type(self).__name__)
        if not (isinstance(self.loss, str) and self.loss == self.loss_ and self.model_.loss.log_link):
            return float(r2_score(y, self.predict(X, offset=offset), sample_weight=sample_weight))
        rows = as_rows(X)
        table, own = self._read_to_predict(rows)
        given = own if own is not None else None if offset is None else check_offset(offset, len(table), 1)
        added = None if given is None else np.asarray(given, dtype=np.float64).reshape(-1, 1)
        target = check_regression_target(y, len(table), who=type(self).__name__)
        weight, loss = check_weights(sample_weight, len(table)), self.model_.loss
        check_target_of_loss(target, loss)
        margins = self._margins(rows, offset)
        constant = np.full_like(margins, best_constant(loss, target, weight, 1, added)[0])
        worst = deviance(loss, constant if added is None else constant + added, target, weight)
        explained = deviance(loss, margins, target, weight)
        if worst <= 0.0:
            return 1.0 if explained <= 0.0 else 0.0
        return 1.0 - explained / worst

    def _fit_best_link(self, config: Config, X: Any, y: Any, sample_weight: Any, offset: Any) -> WideRegressor:
        """Compare losses on rows held out, then fit with the best."""
        rows = self._read_rows(config, X, y, sample_weight, offset)
        target = check_regression_target(rows.y, len(rows.table), who=type(self).__name__)
        training = rows.training(target, 1).weighted_rows()
        losses = {name: self._choose(name) for name in ("squared", "poisson", "gamma", "tweedie")}
        loss, scores, known = choose_loss(config, training, losses, self.scoring, self._draws(config))
        interrupted = self._fit(config, training, loss, 1, known)
        self._losses = scores
        if interrupted is not None:
            raise interrupted
        return self

    @property
    def losses_(self) -> pd.DataFrame:
        """The losses that ``loss="choose"`` compared, and their scores on rows held out, best first."""
        scores = getattr(self, "_losses", None)
        if scores is None:
            raise AttributeError("losses_ is there after a fit with loss='choose' only.")
        return pd.DataFrame({"loss": list(scores), "score": list(scores.values())})

    def _read(self, config: Config, X: Any, y: Any, sample_weight: Any, offset: Any) -> Training:
        rows = self._read_rows(config, X, y, sample_weight, offset)
        target = check_regression_target(rows.y, len(rows.table), who=type(self).__name__)
        check_target_of_loss(target, self._choose_loss())
        training = rows.training(target, 1)
        check_offset_of_loss(training.offset, self._choose_loss())
        return training

    def _choose_loss(self) -> Loss:
        if self.loss == "choose":
            raise ValueError(
                "loss='choose' compares losses on rows held out, in fit on a table; name the loss for streams and "
                "partial_fit."
            )
        known = ("auto", *(name for name, loss in LOSSES.items() if not loss.for_classes))
        if self.loss not in known:
            raise ValueError(f"loss={self.loss!r} is not known; use {', '.join(map(repr, known))} or 'choose'.")
        return self._choose("squared" if self.loss == "auto" else self.loss)
