"""Models made to answer for symbols never seen in training: by what they say of the symbols that those resemble."""

from tabsym.jitter.augmented import AugmentedModel
from tabsym.jitter.predictor import JitterPredictor
from tabsym.jitter.tree_estimators import JitterTreeClassifier, JitterTreeRegressor

__all__ = ["AugmentedModel", "JitterPredictor", "JitterTreeClassifier", "JitterTreeRegressor"]
