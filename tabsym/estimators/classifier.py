"""What `WideClassifier` and `WideSGDClassifier` share: classes, their weights, and predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if

from tabsym.estimators.checks import check_number
from tabsym.estimators.classifying import LabelClassifier
from tabsym.estimators.config import Config
from tabsym.estimators.training_data import GivenRows
from tabsym.estimators.wide_base import WideBase
from tabsym.table import check_classes, plain_labels, split_target
from tabsym.wide.losses import LOSSES, Loss

Floats = NDArray[np.float64]


def _has_probabilities(classifier: Any) -> bool:
    """Whether there is `predict_proba`: a sentence says why not."""
    fitted = getattr(classifier, "model_", None)
    if (getattr(classifier, "loss", "") if fitted is None else fitted.loss.name) == "hinge":
        raise AttributeError("The hinge loss has no probabilities; use decision_function, or loss='log_loss'.")
    return True


class WideClassifierBase(LabelClassifier, WideBase):
    """Not public."""

    class_weight: Any
    classes_: NDArray[Any]

    def _fit_classes(self, config: Config, X: Any, y: Any, sample_weight: Any, offset: Any) -> None:
        """Fit from scratch on a table."""
        rows = self._read_rows(config, X, y, sample_weight, offset)
        target = check_classes(rows.y, len(rows.table), who=type(self).__name__)
        classes, codes = target.classes, target.codes
        rows = self._with_class_weight(rows, classes, codes)
        kept = np.ones(len(rows.table), dtype=bool) if rows.weight is None else rows.weight > 0
        if np.count_nonzero(np.bincount(codes[kept])) < 2:
            raise ValueError("After dropping rows of weight 0 the target has 1 class only; give both classes weight.")
        loss, n_outputs = self._loss_of_classes(len(classes))
        interrupted = self._fit(config, rows.training(codes.astype(np.float64), n_outputs), loss, n_outputs)
        self.classes_ = classes
        if interrupted is not None:
            raise interrupted

    def _with_class_weight(self, rows: GivenRows, classes: NDArray[Any], codes: NDArray[Any]) -> GivenRows:
        """The rows with weights that `class_weight` multiplies."""
        if self.class_weight is None:
            return rows
        if isinstance(self.class_weight, Mapping):
            given = {
                label: check_number(f"class_weight[{label!r}]", value, 0, None)
                for label, value in self.class_weight.items()
            }
            unknown = [label for label in given if label not in classes.tolist()]
            if unknown:
                raise ValueError(
                    f"class_weight names {unknown[0]!r}, which is no class of the target; leave it out: the classes "
                    f"are {classes.tolist()}."
                )
            by_class = np.array([given.get(label, 1.0) for label in classes.tolist()])
        elif isinstance(self.class_weight, str) and self.class_weight == "balanced":
            by_class = compute_class_weight("balanced", classes=np.arange(len(classes)), y=codes)
        else:
            raise ValueError(
                f"class_weight={self.class_weight!r} is not known; use 'balanced', a mapping from class to number, or "
                "None."
            )
        weight = by_class[codes]
        return replace(rows, weight=weight if rows.weight is None else rows.weight * weight)

    def _loss_of_classes(self, n_classes: int) -> tuple[Loss, int]:
        """The loss and how many linear predictors it has."""
        return (LOSSES["logistic"], 1) if n_classes == 2 else (LOSSES["multinomial"], n_classes)

    def decision_function(
        self, X: Any, *, offset: Any = None, return_std: bool = False
    ) -> Floats | tuple[Floats, Floats]:
        """Scores before the link: (n_rows,) for two classes, else (n_rows, n_classes).

        With `return_std` also their posterior standard deviations (n_rows,): of two classes, after a fit with
        ``n_posterior_samples=32``.
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

    def _output_names(self) -> list[str]:
        if self.model_.n_outputs == 1:
            return ["value"]
        return [str(label) for label in self.classes_]
