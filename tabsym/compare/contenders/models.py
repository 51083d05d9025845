"""Contenders that are no boosters: the baselines, and the wide models, alone and in stacks."""

from __future__ import annotations

from functools import partial
from typing import Any

from scipy.stats import loguniform
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler

from tabsym.compare.contenders import Contender
from tabsym.compare.contenders.boosters import LABELS, LIGHTGBM
from tabsym.compare.table.prepare import CLASSES
from tabsym.integrations import available

# -- baselines ---------------------------------------------------------------------------------------


def _constant(task: str, random_state: int, n_jobs: int) -> Any:
    return DummyClassifier(strategy="prior") if task in CLASSES else DummyRegressor()


def _linear(task: str, random_state: int, n_jobs: int) -> Any:
    from tabsym.encoders import OneHotEncoder

    model: Any = LogisticRegression(max_iter=200)
    if task == "regression":
        model = Ridge(solver="sparse_cg")
    elif task == "count":  # its penalty is weighed against the mean of the rows: the default, 1, leaves a constant
        model = PoissonRegressor(alpha=1e-4, max_iter=200)
    return Pipeline(
        [
            ("encode", OneHotEncoder(sparse_output=True)),
            # keep_empty_features: a column without any value would change the number of columns
            ("impute", SimpleImputer(keep_empty_features=True)),
            ("scale", MaxAbsScaler()),
            ("model", model),
        ]
    )


def _space_of_linear(task: str) -> dict[str, Any]:
    if task in CLASSES:
        return {"model__C": loguniform(1e-3, 1e2)}
    return {"model__alpha": loguniform(1e-2, 1e3) if task == "regression" else loguniform(1e-7, 1e-1)}


def _naive_bayes(task: str, random_state: int, n_jobs: int) -> Any:
    """Khiops'."""
    from tabsym.naive_bayes import SelectiveNaiveBayesClassifier

    return SelectiveNaiveBayesClassifier()


# -- wide models: the solved one and the stacks select their loss by the ranking metric --------------

_SCORERS = {"rmse": "neg_root_mean_squared_error", "mae": "neg_mean_absolute_error"}
"""What losses are chosen by, for the metric that ranks."""


def _scorer(metric: str) -> str:
    return _SCORERS.get(metric, _SCORERS["rmse"])


def _solved(task: str, random_state: int, n_jobs: int, metric: str) -> Any:
    from tabsym.models import WideClassifier, WideRegressor

    if task in CLASSES:
        return WideClassifier(random_state=random_state, n_jobs=n_jobs)
    options = {"loss": "poisson"} if task == "count" else {"scoring": _scorer(metric)}
    return WideRegressor(random_state=random_state, n_jobs=n_jobs, **options)


def _space_of_solved(task: str) -> dict[str, Any]:
    return {"numeric": ["smooth", "linear", "modl" if task in CLASSES else "quantile"], "count_effect": [True, False]}


def _online(task: str, random_state: int, n_jobs: int, **options: Any) -> Any:
    from tabsym.models import WideSGDClassifier, WideSGDRegressor

    if task in CLASSES:
        return WideSGDClassifier(random_state=random_state, n_jobs=n_jobs, **options)
    if task == "count":
        options["loss"] = "poisson"
    return WideSGDRegressor(random_state=random_state, n_jobs=n_jobs, **options)


def _with_crosses(task: str, random_state: int, n_jobs: int) -> Any:
    """Its treatment of numbers was chosen on ten tables (benchmarks/README.md): never significantly worse than slopes.

    Bins by MODL in classification, quantiles in regression.
    """
    numeric = "modl" if task in CLASSES else "quantile"
    return _online(task, random_state, n_jobs, interactions="auto", numeric=numeric)


def _space_of_online(task: str) -> dict[str, Any]:
    return {
        "numeric": ["linear", "quantile", "modl"],
        "alpha": loguniform(1e-8, 1e-3),
        "max_iter": ["auto", 2, 5, 10, 20],
    }


def _stack(library: str | None, task: str, random_state: int, n_jobs: int, metric: str) -> Any:
    """The defaults of `WideBoost*`, which has LightGBM; `library`: with the booster of another one."""
    from tabsym.stacking import WideBoostClassifier, WideBoostRegressor
    from tabsym.stacking.layer import default_wide, gentle_booster

    is_class = task in CLASSES
    wide = default_wide(is_class, random_state, n_jobs)
    if task == "count":
        wide.set_params(loss="poisson")
    elif not is_class:
        wide.set_params(scoring=_scorer(metric))
    booster = None if library is None else gentle_booster(library, is_class, random_state, n_jobs)
    kind = WideBoostClassifier if is_class else WideBoostRegressor
    # of scikit-learn's boosters none starts from margins
    mode = "feature" if library == "hist-gradient-boosting" else "auto"
    return kind(wide, booster, mode=mode, random_state=random_state, n_jobs=n_jobs)


def _space_of_stack(task: str) -> dict[str, Any]:
    return {"codes": ["ordinal", "native", "group"]}


def _wide_over(library: str) -> Contender:
    """A stack with the booster of another library than LightGBM."""
    label = LABELS.get(library, library)
    requires = {} if library == "hist-gradient-boosting" else {library: f"tabsym[{library}]"}
    return Contender(
        f"wide-{library}", f"Wide model + {label}", partial(_stack, library), _space_of_stack, requires, 63,
        for_metric=True, by_name=True,
    )  # fmt: skip


CONTENDERS = [
    Contender("constant", "Baseline (constant)", _constant, order=0),
    Contender("onehot-linear", "One-hot + linear model", _linear, _space_of_linear, order=20),
    Contender(
        "naive-bayes", "Selective naive Bayes (MODL)", _naive_bayes,
        lambda task: {"prior_weight": loguniform(1e-3, 10)}, order=21, tasks=CLASSES, by_name=True,
    ),
    Contender("wide", "Wide model", _solved, _space_of_solved, order=13, for_metric=True),
    Contender("wide-crosses", "Wide model online, interactions chosen", _with_crosses, _space_of_online, order=12),
    Contender("wide-additive", "Wide model online, additive", _online, _space_of_online, order=10),
    Contender(
        "wide-pairs", "Wide model online, all pairs", partial(_online, interactions="pairwise"), _space_of_online,
        order=11,
    ),
    Contender(
        "wide-lightgbm", "Wide model + LightGBM", partial(_stack, None), _space_of_stack, LIGHTGBM, 45,
        for_metric=True,
    ),
    *(_wide_over(library) for library in ["hist-gradient-boosting", *available()] if library != "lightgbm"),
]  # fmt: skip
