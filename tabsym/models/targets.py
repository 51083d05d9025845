"""Base classes of the classifiers and the regressors: their targets, losses and predictions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if

from tabsym.frame import (
    check_classes,
    check_regression_target,
    check_weights,
    labels_to_score,
    split_target,
)
from tabsym.frame.frames import as_rows
from tabsym.frame.target import totals_of_classes, weights_of_classes
from tabsym.losses.loss import LOSSES, Loss, best_constant, deviance
from tabsym.models.base import WideBase
from tabsym.models.checks import by_class, check_loss, check_offset, check_offset_of_loss, check_target_of_loss
from tabsym.models.config import Config
from tabsym.models.constraints import with_classes
from tabsym.models.data import GivenRows, Training


def score_of(estimator: Any, y: Any, predicted: NDArray[Any], sample_weight: Any) -> float:
    """Accuracy; R²; or D² by the loss with a log link that `_power_of_score` of the estimator stands for."""
    from sklearn.metrics import accuracy_score, d2_tweedie_score, r2_score  # 0.1 s, which a fit does without

    target, predicted = labels_to_score(y, predicted)
    while isinstance(estimator, Pipeline):
        estimator = estimator[-1]
    power = getattr(estimator, "_power_of_score", lambda: None)()
    if power is not None:
        weighted = target if sample_weight is None else np.asarray(sample_weight) * target
        if not np.any(weighted):  # the deviance of ever smaller constants falls to 0, by which D² is divided
            return 0.0
        return float(d2_tweedie_score(target, predicted, sample_weight=sample_weight, power=power))
    measure = accuracy_score if is_classifier(estimator) else r2_score
    return float(measure(target, predicted, sample_weight=sample_weight))


class ScoredAsFitted:
    """A `score` that accepts the same targets as `fit`, in front of scikit-learn's mixins; not public."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of a classifier; R², the fraction of variance explained, of a regressor.

        D², the fraction of deviance explained, where the wide model names a loss with a log link.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,), or the name of its column in X
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
        """
        X, y = split_target(X, y, type(self).__name__)
        return score_of(self, y, self.predict(X), sample_weight)  # type: ignore[attr-defined]


class LabelClassifier(ScoredAsFitted, ClassifierMixin):
    """scikit-learn's `ClassifierMixin`, with that score; not public."""


class NumberRegressor(ScoredAsFitted, RegressorMixin):
    """scikit-learn's `RegressorMixin`, with that score; not public."""


Floats = NDArray[np.float64]


def _has_probabilities(classifier: Any) -> bool:
    """Whether there is `predict_proba`; the `AttributeError` names the reason."""
    fitted = getattr(classifier, "model_", None)
    if (getattr(classifier, "loss", "") if fitted is None else fitted.loss.name) == "hinge":
        raise AttributeError("The hinge loss has no probabilities; use decision_function, or loss='log_loss'.")
    return True


class WideClassifierBase(LabelClassifier, WideBase):
    """Base class of the classifiers; not public."""

    class_weight: Any
    classes_: NDArray[Any]

    def _fit_classes(
        self, config: Config, X: Any, y: Any, sample_weight: Any, offset: Any, freq_weights: Any = None
    ) -> None:
        """Fit from scratch on a table."""
        rows = self._read_rows(config, X, y, sample_weight, offset, freq_weights)
        target = check_classes(rows.y, len(rows.table), caller=type(self).__name__)
        rows = replace(rows, offset=by_class(rows.offset, target.classes, "offset"))
        rows = self._with_class_weight(rows, target.classes, target.codes)
        if rows.weight is not None:
            totals = totals_of_classes(target.codes, len(target.classes), rows.weight)
            if np.count_nonzero(totals) < 2:
                raise ValueError(
                    "After dropping rows of weight 0 the target has 1 class only; give both classes weight."
                )
            rows, target = rows.without_classes(totals == 0.0), target.without(totals == 0.0)
        classes, codes = target.classes, target.codes
        loss, n_outputs = self._loss_of_classes(len(classes))
        if len(classes) > 2:
            config = with_classes(config, classes)
        interrupted = self._fit(config, rows.training(codes.astype(np.float64), n_outputs), loss, n_outputs)
        self.classes_ = classes
        if interrupted is not None:
            raise interrupted

    def _with_class_weight(
        self, rows: GivenRows, classes: NDArray[Any], codes: NDArray[Any], totals: Floats | None = None
    ) -> GivenRows:
        """The rows with weights multiplied by `class_weight`; `totals`: the weight of each class, of a sample."""
        self._class_effect = self._mean_class_weight = 1.0
        if self.class_weight is None:
            return rows
        if totals is None:
            totals = totals_of_classes(codes, len(classes), rows.weight, rows.copies)
        of_class = weights_of_classes(self.class_weight, classes, totals)
        if (of_class * totals).any():
            total, mean = totals[of_class > 0.0].sum(), totals @ of_class  # a class of weight 0 takes no part
            self._class_effect = float(total * (totals @ of_class**2) / mean**2)  # Kish's
            self._mean_class_weight = float(mean / total)
        weight = of_class[codes]
        return replace(rows, weight=weight if rows.weight is None else rows.weight * weight)

    def _loss_of_classes(self, n_classes: int) -> tuple[Loss, int]:
        """The loss and its number of linear predictors."""
        return (LOSSES["logistic"], 1) if n_classes == 2 else (LOSSES["multinomial"], n_classes)

    def decision_function(
        self, X: Any, *, offset: Any = None, return_std: bool = False
    ) -> Floats | tuple[Floats, Floats]:
        """Linear predictors of the rows.

        With `return_std` also their posterior standard deviations: for two classes, after a fit with
        ``n_posterior_samples=32``.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        offset : array-like of shape (n_rows,), optional
            Added to the linear predictor, as in `fit`.
        return_std : bool, default False

        Returns
        -------
        ndarray of shape (n_rows,), for more than two classes (n_rows, n_classes)
        sd : ndarray of shape (n_rows,)
            With `return_std` only.
        """
        if return_std:
            return self.decision_function(X, offset=offset), self._score_deviations(X)  # type: ignore[return-value]
        margins = self._margins(X, offset)
        if self.model_.n_outputs == 1:
            return margins[:, 0]
        return margins[:, 1] - margins[:, 0] if len(self.classes_) == 2 else margins

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any, *, offset: Any = None) -> Floats:
        """Class probabilities, in the order of `classes_`; not for the hinge loss.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        offset : array-like of shape (n_rows,), optional
            Added to the linear predictor, as in `fit`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        margins = self._margins(X, offset)
        return self.model_.loss.predict(margins)

    def predict(self, X: Any, *, offset: Any = None) -> NDArray[Any]:
        """The most probable class of each row.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        offset : array-like of shape (n_rows,), optional
            Added to the linear predictor, as in `fit`.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        margins = self._margins(X, offset)
        indices = (margins[:, 0] > 0).astype(int) if self.model_.n_outputs == 1 else margins.argmax(axis=1)
        return np.asarray(self.classes_[indices])

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
        from sklearn.metrics import accuracy_score

        X, y = split_target(X, y, type(self).__name__)
        predicted = self.predict(X, offset=offset)
        return float(accuracy_score(*labels_to_score(y, predicted), sample_weight=sample_weight))

    def _output_names(self) -> list[str]:
        if self.model_.n_outputs == 1:
            return ["value"]
        return [str(label) for label in self.classes_]


class WideRegressorBase(RegressorMixin, WideBase):
    """Base class of the regressors; not public."""

    losses: tuple[str, ...]
    """Names of the valid losses."""

    loss: Any

    def _named_loss(self) -> Loss:
        """The loss given in the constructor."""
        loss = check_loss(self.loss, self.losses)
        assert isinstance(loss, Loss)
        return loss

    def _names_no_loss(self) -> bool:
        return isinstance(self.loss, str) and self.loss == "auto"

    def _power_of_score(self) -> float | None:
        """The variance power of the loss, where the user named one with a log link; `score` is D² then."""
        if self._names_no_loss() or not self._named_loss().log_link:
            return None
        return self._named_loss().variance_power

    def _has_log_link(self) -> bool:
        return self._names_no_loss() or self._named_loss().log_link

    def _read(self, config: Config, X: Any, y: Any, sample_weight: Any, offset: Any) -> Training:
        """The rows, validated for the given loss."""
        return self._training(self._read_rows(config, X, y, sample_weight, offset))

    def _training(self, rows: GivenRows) -> Training:
        """The target and offset of rows, validated for the given loss."""
        target = check_regression_target(rows.y, len(rows.table), caller=type(self).__name__)
        check_target_of_loss(target, self._named_loss())
        training = rows.training(target, 1)
        check_offset_of_loss(training.offset, self._named_loss())
        return training

    def predict(self, X: Any, *, offset: Any = None, return_std: bool = False) -> Floats | tuple[Floats, Floats]:
        """Predicted values, in the units of the target; with a log link, the mean.

        With `return_std` also their posterior standard deviations, without the noise of single rows (`dispersion_`),
        after a fit with ``n_posterior_samples=32``; with a log link, the mean times the standard deviation of the
        linear predictor.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        offset : array-like of shape (n_rows,), optional
            Added to the linear predictor, as in `fit`.
        return_std : bool, default False

        Returns
        -------
        ndarray of shape (n_rows,)
        sd : ndarray of shape (n_rows,)
            With `return_std` only.
        """
        margins = self._margins(X, offset)
        predicted = self.model_.loss.predict(margins)[:, 0]
        if not return_std:
            return predicted
        sd = self._score_deviations(X)
        return predicted, predicted * sd if self.model_.loss.log_link else sd

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> float:
        """R²; for a `loss` with a log link, D²: the fraction of deviance explained.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,), or the name of its column in X
        sample_weight : array-like of shape (n_rows,), optional
        offset : array-like of shape (n_rows,), optional
            For the model and for the constant baseline; with ``loss="auto"`` and a log link for the model only.

        Returns
        -------
        float
            1 at best, 0 for a constant (Hastie, Tibshirani and Wainwright 2015, "Statistical Learning with Sparsity",
            equation 3.11).
        """
        from sklearn.metrics import r2_score

        X, y = split_target(X, y, type(self).__name__)
        if self._names_no_loss() and self.model_.loss.log_link:
            return float(r2_score(y, self.predict(X, offset=offset), sample_weight=sample_weight))
        rows = as_rows(X)
        table, col_offset = self._read_to_predict(rows)
        given = (
            col_offset if col_offset is not None else None if offset is None else check_offset(offset, len(table), 1)
        )
        added = None if given is None else np.asarray(given, dtype=np.float64).reshape(-1, 1)
        target = check_regression_target(y, len(table), caller=type(self).__name__)
        if not self.model_.loss.log_link:
            start = 0.0 if added is None else added[:, 0]
            predicted = self._margins(rows, offset)[:, 0]
            return float(r2_score(target - start, predicted - start, sample_weight=sample_weight))
        weight, loss = check_weights(sample_weight, len(table)), self.model_.loss
        check_target_of_loss(target, loss)
        margins = self._margins(rows, offset)
        worst = 0.0  # where all targets are 0: of a constant that is ever smaller
        if (target if weight is None else weight * target).any():
            constant = np.full_like(margins, best_constant(loss, target, weight, 1, added)[0])
            worst = deviance(loss, constant if added is None else constant + added, target, weight)
        explained = deviance(loss, margins, target, weight)
        if worst <= 0.0:
            return 1.0 if explained <= 0.0 else 0.0
        return 1.0 - explained / worst
