"""The wide model and the booster of a stack where the user names none; chosen in benchmarks/stacking."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from tabsym.integrations import load_adapter
from tabsym.models import WideClassifier, WideRegressor

GENTLE = {"n_estimators": 300, "learning_rate": 0.05}
SMALL = {"num_leaves": 7, "min_child_samples": 50}
"""Trees on top of margins, which hold most of what there is to say."""

GENTLE_OTHERS: dict[str, dict[str, Any]] = {
    "xgboost": GENTLE | {"max_depth": 3, "min_child_weight": 10},
    "catboost": {"iterations": 300, "learning_rate": 0.05, "depth": 3},
}
"""The like in the terms of other libraries; not studied by themselves."""


def default_wide(is_class: bool, random_state: int | None, n_jobs: int | None) -> Any:
    """The wide model by default."""
    return (WideClassifier if is_class else WideRegressor)(random_state=random_state, n_jobs=n_jobs)


def gentle_booster(library: str, is_class: bool, random_state: int | None, n_jobs: int | None) -> Any:
    """The booster of a library by its adapter, or HistGradientBoosting, as gentle and small as the default one."""
    if library == "hist-gradient-boosting":
        return _hist(is_class, random_state)
    booster = load_adapter(library).booster("binary" if is_class else "regression", random_state, n_jobs)
    return booster.set_params(**GENTLE_OTHERS.get(library, {}))


def default_booster(is_class: bool, random_state: int | None, n_jobs: int | None, *, small: bool = True) -> Any:
    """A gentle LightGBM, or HistGradientBoosting where that is not installed; `small`: for the top of margins."""
    if find_spec("lightgbm") is None:
        return _hist(is_class, random_state)
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMClassifier if is_class else LGBMRegressor
    options = GENTLE | SMALL if small else GENTLE
    return kind(random_state=random_state, n_jobs=n_jobs, verbosity=-1, **options)


def _hist(is_class: bool, random_state: int | None) -> Any:
    kind: Any = HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor
    gentle: dict[str, Any] = {"max_iter": GENTLE["n_estimators"], "learning_rate": GENTLE["learning_rate"]}
    return kind(early_stopping=False, categorical_features="from_dtype", random_state=random_state, **gentle)
