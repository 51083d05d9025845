"""What `WideRegressor` and `WideSGDRegressor` share: the loss by name or object, and predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from tabsym.estimators.checks import check_loss, check_offset, check_offset_of_loss, check_target_of_loss
from tabsym.estimators.config import Config
from tabsym.estimators.training_data import Training
from tabsym.estimators.wide_base import WideBase
from tabsym.table import check_regression_target, check_weights, split_target
from tabsym.table.read import as_rows
from tabsym.wide.constants import best_constant
from tabsym.wide.likelihood import deviance
from tabsym.wide.losses import Loss

Floats = NDArray[np.float64]


class WideRegressorBase(RegressorMixin, WideBase):
    """Not public."""

    losses: tuple[str, ...]
    """Those that there are, by name."""

    loss: Any

    def _named_loss(self) -> Loss:
        """The loss that the constructor names."""
        loss = check_loss(self.loss, self.losses)
        assert isinstance(loss, Loss)
        return loss

    def _names_no_loss(self) -> bool:
        return isinstance(self.loss, str) and self.loss == "auto"

    def _has_log_link(self) -> bool:
        return self._names_no_loss() or self._named_loss().log_link

    def _read(self, config: Config, X: Any, y: Any, sample_weight: Any, offset: Any) -> Training:
        """Rows for the loss that is named, checked."""
        rows = self._read_rows(config, X, y, sample_weight, offset)
        target = check_regression_target(rows.y, len(rows.table), who=type(self).__name__)
        check_target_of_loss(target, self._named_loss())
        training = rows.training(target, 1)
        check_offset_of_loss(training.offset, self._named_loss())
        return training

    def predict(self, X: Any, *, offset: Any = None, return_std: bool = False) -> Floats | tuple[Floats, Floats]:
        """Predicted values (n_rows,), in the units of the target; with a log link, the mean.

        With `return_std` also the standard deviations (n_rows,) of these values by their posterior, without the noise
        of single rows (`dispersion_`), after a fit with ``n_posterior_samples=32``; behind a log link
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
        if self._names_no_loss() or not self.model_.loss.log_link:
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
