"""What ``loss="auto"`` chooses by: a scorer of scikit-learn, asked for the score of predictions that were made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import get_scorer

Floats = NDArray[np.float64]


def _root_mean_square(errors: Floats, weight: Floats | None) -> float:
    return float(np.sqrt(np.average(np.square(errors), weights=weight)))


def _mean_absolute(errors: Floats, weight: Floats | None) -> float:
    return float(np.average(np.abs(errors), weights=weight))


PLAIN_ERRORS = {"neg_root_mean_squared_error": _root_mean_square, "neg_mean_absolute_error": _mean_absolute}
"""What is asked for most, without scikit-learn's checks: they take a fifth of the time of fitting a small model."""


class Scoring:
    """A score of predictions, the higher the better.

    Parameters
    ----------
    scoring : str or callable
        A scorer of scikit-learn, or its name; it is called with predictions alone, not with the table.

    Raises
    ------
    ValueError
        Where the name is not known.
    """

    def __init__(self, scoring: Any) -> None:
        self._scoring = scoring
        self._errors = PLAIN_ERRORS.get(scoring) if isinstance(scoring, str) else None
        self._scorer = _find_scorer(scoring) if self._errors is None else None

    def score(self, predicted: Floats, y: Floats, weight: Floats | None) -> float:
        """Of predictions (n,), which are finite, for targets (n,); a `ValueError` where there is no such number."""
        if self._scorer is None:
            assert self._errors is not None
            return -self._errors(predicted - y, weight)
        weights = {} if weight is None else {"sample_weight": weight}
        try:
            score = float(self._scorer(_Predicted(predicted), np.zeros((len(predicted), 1)), y, **weights))
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(
                f"scoring={_name_of(self._scoring)} can't score numbers with these targets"
                f"{' and weights' if weights else ''} ({_in_users_words(error)}); use 'neg_root_mean_squared_error', "
                "'neg_mean_absolute_error' or another scorer of regressions."
            ) from error
        if np.isnan(score):
            raise ValueError(
                f"scoring={_name_of(self._scoring)} gave NaN; use a scorer that gives a number for every prediction."
            )
        return score


def _find_scorer(scoring: Any) -> Callable[..., float]:
    if callable(scoring):
        return scoring
    try:
        return get_scorer(scoring or "")
    except (ValueError, TypeError):
        raise ValueError(
            f"scoring={scoring!r} is not known; use "
            "'neg_root_mean_squared_error', 'neg_mean_absolute_error' or another "
            "scorer of scikit-learn."
        ) from None


def _name_of(scoring: Any) -> str:
    """As the user wrote it, or the name of the function."""
    return repr(scoring) if isinstance(scoring, str) else getattr(scoring, "__name__", type(scoring).__name__)


def _in_users_words(error: Exception) -> str:
    """What a scorer says, without its stop and without the name of what stands for the model here."""
    return str(error).rstrip(".").replace(_Predicted.__name__, "the model")


class _Predicted(RegressorMixin, BaseEstimator):
    """Predictions that were made, as scorers want them."""

    def __init__(self, predicted: Floats) -> None:
        self.predicted = predicted

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Floats:
        return self.predicted
