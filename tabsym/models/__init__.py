"""The wide estimators."""

from tabsym.models.wide import WideClassifier, WideRegressor
from tabsym.models.wide_sgd import WideSGDClassifier, WideSGDRegressor

__all__ = ["WideClassifier", "WideRegressor", "WideSGDClassifier", "WideSGDRegressor"]
