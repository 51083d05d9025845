"""A wide model under a booster.

It stands behind `integrations`, whose adapters it asks for boosters, not among the estimators: imports run one way,
and a stack needs encoders and adapters.
"""

from tabsym.stacking.boost import WideBoostClassifier, WideBoostRegressor

__all__ = ["WideBoostClassifier", "WideBoostRegressor"]
