"""A wide model under a booster.

It depends on `integrations`, whose adapters give it boosters, and is not among the estimators: imports run one way,
and a stack needs encoders and adapters.
"""

from tabsym.stacking.boost import WideBoostClassifier, WideBoostRegressor

__all__ = ["WideBoostClassifier", "WideBoostRegressor"]
