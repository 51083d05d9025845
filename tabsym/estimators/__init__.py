"""The scikit-learn faces of the models."""

from tabsym.estimators.wide import WideClassifier, WideRegressor
from tabsym.estimators.wide_sgd import WideSGDClassifier, WideSGDRegressor

__all__ = ["WideClassifier", "WideRegressor", "WideSGDClassifier", "WideSGDRegressor"]
