"""The scikit-learn faces of the models."""

from tabsym.estimators.wide import WideClassifier, WideRegressor

__all__ = ["WideClassifier", "WideRegressor"]
