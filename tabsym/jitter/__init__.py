"""Models that predict rows with unknown categories by the known categories that those resemble."""

from tabsym.jitter.augmented import AugmentedModel
from tabsym.jitter.predictor import JitterPredictor
from tabsym.jitter.tree_estimators import JitterTreeClassifier, JitterTreeRegressor

__all__ = ["AugmentedModel", "JitterPredictor", "JitterTreeClassifier", "JitterTreeRegressor"]
