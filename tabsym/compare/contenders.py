"""The contenders: what takes part in a comparison, and the built-in ones.

These are baselines, the wide models alone and in stacks, and the boosters.

A booster has its own treatment of categories through its adapter, MODL's groups, or target encodings. MODL makes one
group of categories with the same effect on the target. A few groups instead of thousands of categories: trees have less
to memorise, and HistGradientBoosting's limit of 255 categories is no limit any more. The target encodings are
category_encoders', and TIWS for known categories. Last come treatments of unknown categories.

What a contender needs is imported when it is made: a process imports no more than its own contender.

Contenders of the user's own are estimators and pipelines by name, or the address of something that makes one. A digest
says whether one has changed since an earlier run. No code of the user's is run, and none is imported, for that: it may
fail, and the process that runs it says so.
"""

from __future__ import annotations

import dis
import inspect
import sys
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import joblib
import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler

from tabsym.compare.ranking import CONSTANT
from tabsym.compare.table.prepare import CLASSES, TASKS
from tabsym.compare.text import MAX_FOLDER_NAME, folder_name, perhaps
from tabsym.integrations import available, load_adapter

Make = Callable[..., Any]
Space = Callable[[str], dict[str, Any]]


@dataclass(frozen=True)
class Contender:
    """A pipeline that takes part in a comparison.

    Attributes
    ----------
    name : str
        Its name in ``--contenders`` and in the results.
    label : str
        Its label in the report.
    make : callable (task, random_state, n_jobs) -> estimator
        The estimator, unfitted, at its defaults. It gets a pandas frame of text, number
        and boolean columns, classes coded 0, 1, ..., and must have `fit` and `predict`,
        for classes `predict_proba`.
    space : callable (task) -> dict of parameter -> list or scipy.stats distribution
        The search space of ``--tune``; parameters as `set_params` names them.
    requires : dict of module -> what to install
    order : int
        Cheap ones run first, so that a ranking appears early.
    raw : bool
        Whether it is the user's own, and gets their columns and class names instead of prepared ones.
    address : str or None
        Where a contender of the user's own comes from, as ``package.module:factory``.
    made_by : str or None
        Of a contender of the user's own: a digest of the file at its address, or of the estimator and its space.
    for_unseen : bool
        Whether it takes part only where whole categories of a column are held out; `make` then gets the name of that
        column as a fourth argument.
    for_metric : bool
        Whether `make` gets the name of the metric that ranks as a last argument.
    by_name : bool
        Whether it takes part only where it is named, as it is similar to another one.
    """

    name: str
    label: str
    make: Make
    space: Space = lambda task: {}
    requires: dict[str, str] = field(default_factory=dict)
    order: int = 50
    tasks: tuple[str, ...] = TASKS
    raw: bool = False
    address: str | None = None
    made_by: str | None = None
    for_unseen: bool = False
    for_metric: bool = False
    by_name: bool = False

    def estimator(self, task: str, random_state: int, n_jobs: int, unseen: str | None, metric: str = "") -> Any:
        """The estimator, unfitted; `unseen`: the column whose categories are held out, if there is one.

        `metric`: the name of the one that ranks, where that is known.
        """
        arguments: list[Any] = [task, random_state, n_jobs]
        if self.for_unseen:
            arguments.append(unseen)
        if self.for_metric:
            arguments.append(metric)
        return self.make(*arguments)

    def missing(self) -> str | None:
        """What to install, where a library that the contender needs is absent."""
        for module, remedy in self.requires.items():
            if find_spec(module) is None:
                return f"{self.label} was not run, as {module} is not installed: pip install {remedy!r}"
        return None


# -- boosters ----------------------------------------------------------------------------------------

LIGHTGBM = {"lightgbm": "tabsym[lightgbm]"}
"""What a contender with LightGBM requires."""
LABELS = {
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    "catboost": "CatBoost",
    "hist-gradient-boosting": "HistGradientBoosting",
}
_ORDERS = {"lightgbm": (30, 41, 37), "xgboost": (31, 42, 38), "catboost": (60, 61, 62)}
"""Of the booster itself, over groups, and jittered."""

_SPACES: dict[str, dict[str, Any]] = {
    "lightgbm": {
        "n_estimators": randint(50, 501),
        "learning_rate": loguniform(0.02, 0.3),
        "num_leaves": randint(8, 129),
        "min_child_samples": randint(5, 101),
        "colsample_bytree": uniform(0.5, 0.5),
        "reg_lambda": loguniform(1e-3, 10),
    },
    "xgboost": {
        "n_estimators": randint(50, 501),
        "learning_rate": loguniform(0.02, 0.3),
        "max_depth": randint(3, 11),
        "min_child_weight": loguniform(1, 50),
        "subsample": uniform(0.5, 0.5),
        "colsample_bytree": uniform(0.5, 0.5),
        "reg_lambda": loguniform(1e-1, 10),
    },
    "catboost": {
        "iterations": randint(100, 1001),
        "learning_rate": loguniform(0.02, 0.3),
        "depth": randint(4, 9),
        "l2_leaf_reg": loguniform(1, 30),
        "one_hot_max_size": [2, 10, 50],
    },
    "hist": {
        "max_iter": randint(50, 501),
        "learning_rate": loguniform(0.02, 0.3),
        "max_leaf_nodes": randint(8, 129),
        "min_samples_leaf": randint(5, 101),
        "l2_regularization": loguniform(1e-3, 10),
    },
}
"""Where ``--tune`` looks for better settings of each booster: about what their own guides name first."""


def space_of(booster: str, prefix: str) -> dict[str, Any]:
    """The settings of a booster, as a pipeline names them; nothing for one that is not known."""
    return {f"{prefix}__{name}": values for name, values in _SPACES.get(booster, {}).items()}


def _space_at(booster: str, prefix: str) -> Space:
    return lambda task: space_of(booster, prefix)


def hist_booster(task: str, random_state: int) -> Any:
    """HistGradientBoosting for a task, categories by their type."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    from tabsym.compare.estimators import HistClassifier

    if task in CLASSES:
        return HistClassifier(random_state=random_state, categorical_features="from_dtype")
    loss = "poisson" if task == "count" else "squared_error"
    return HistGradientBoostingRegressor(loss=loss, random_state=random_state, categorical_features="from_dtype")


def native_hist(task: str, random_state: int, n_jobs: int | None = None, *, max_levels: int | None = 254) -> Any:
    """HistGradientBoosting with its native categories, whose number it limits for each column."""
    from tabsym.encoders import NativeCategories, NativePipeline

    categories = NativeCategories() if max_levels is None else NativeCategories(max_levels=max_levels)
    return NativePipeline([("categories", categories), ("booster", hist_booster(task, random_state))])


def _native(booster: str, task: str, random_state: int, n_jobs: int) -> Any:
    return load_adapter(booster).native(task, random_state=random_state, n_jobs=n_jobs)


def _over_groups(native: Make, task: str, random_state: int, n_jobs: int) -> Any:
    from tabsym.encoders import MODLEncoder

    groups = MODLEncoder(numeric="passthrough", target_type=_target_type(task), prove=False, random_state=random_state)
    return Pipeline([("groups", groups), ("native", native(task, random_state, n_jobs))])


def _target_type(task: str) -> str:
    return "classes" if task in CLASSES else "continuous"


def _target_encoding(task: str, random_state: int, n_jobs: int) -> Any:
    from tabsym.compare.target_encoded import PlainPolynomialWrapper, PlainTargetEncoder

    encoder = PlainTargetEncoder()
    if task == "multiclass":  # it would average the class codes without a word
        encoder = PlainPolynomialWrapper(encoder)
    booster = load_adapter("lightgbm").booster(task, random_state, n_jobs)
    # as an array: LightGBM refuses some characters in column names
    return Pipeline([("encode", encoder), ("plain", FunctionTransformer(np.asarray)), ("booster", booster)])


def _space_of_target_encoding(task: str) -> dict[str, Any]:
    encoder = "encode__feature_encoder" if task == "multiclass" else "encode"
    return {f"{encoder}__smoothing": loguniform(1, 300)} | space_of("lightgbm", "booster")


def _tiws(task: str, random_state: int, n_jobs: int, **options: Any) -> Any:
    from tabsym.encoders import TIWSEncoder

    return TIWSEncoder(target_type=_target_type(task), random_state=random_state, n_jobs=n_jobs, **options)


def _over_tiws(task: str, random_state: int, n_jobs: int) -> Any:
    """TIWS for known categories."""
    encoder = _tiws(task, random_state, n_jobs, numeric="passthrough")
    booster = load_adapter("lightgbm").booster(task, random_state, n_jobs)
    return Pipeline([("encode", encoder), ("booster", booster)])


# -- unknown categories ------------------------------------------------------------------------------
# All with LightGBM, except jittering of each booster. They take part where whole categories of a column are held out,
# along with the boosters' own treatment.


def _without(X: Any, column: str) -> Any:
    return X.drop(columns=column)


def _blind(task: str, random_state: int, n_jobs: int, column: str) -> Any:
    without = FunctionTransformer(_without, kw_args={"column": column})
    return Pipeline([("without", without), ("native", _native("lightgbm", task, random_state, n_jobs))])


def _encoded(task: str, random_state: int, n_jobs: int, column: str, *, fill: str | None = None, **options: Any) -> Any:
    """`fill`: what the values of unknown categories are made of, where these are not the encoder's."""
    encoder = _tiws(task, random_state, n_jobs, cols=[column], **options)
    if fill is not None:
        from tabsym.compare.estimators import FilledEncoder

        encoder = FilledEncoder(encoder, column, by=fill)
    return Pipeline([("encode", encoder), ("native", _native("lightgbm", task, random_state, n_jobs))])


def _augmented(task: str, random_state: int, n_jobs: int, column: str) -> Any:
    from tabsym.jitter import AugmentedModel

    encoder = _tiws(task, random_state, n_jobs, cols=[column], indicator=True)
    return AugmentedModel(_native("lightgbm", task, random_state, n_jobs), encoder=encoder)


def _jittered(booster: str, task: str, random_state: int, n_jobs: int, column: str) -> Any:
    from tabsym.compare.estimators import Jittered

    encoder = _tiws(task, random_state, n_jobs, cols=[column])
    return Jittered(_native(booster, task, random_state, n_jobs), encoder, random_state)


def _of_library(library: str) -> list[Contender]:
    """The booster of a library that has an adapter: itself, over groups, and jittered."""
    label, requires = LABELS.get(library, library), {library: f"tabsym[{library}]"}
    order, order_of_groups, order_jittered = _ORDERS.get(library, (50, 55, 55))
    native = partial(_native, library)
    return [
        Contender(library, f"{label} native", native, _space_at(library, "booster"), requires, order),
        Contender(
            f"modl-{library}", f"MODL groups + {label}", partial(_over_groups, native),
            _space_at(library, "native__booster"), requires, order_of_groups,
        ),
        Contender(
            f"unseen-jitter-{library}", f"{label} jittered", partial(_jittered, library),
            _space_at(library, "estimator__booster"), requires, order_jittered, for_unseen=True,
        ),
    ]  # fmt: skip


def _unseen(name: str, label: str, make: Make, order: int, step: str = "native__booster") -> Contender:
    space = _space_at("lightgbm", step)
    return Contender(f"unseen-{name}", f"{label} + LightGBM", make, space, LIGHTGBM, order, for_unseen=True)


# -- baselines ---------------------------------------------------------------------------------------


def _linear(task: str, random_state: int, n_jobs: int) -> Any:
    from tabsym.encoders import OneHotEncoder

    model: Any = LogisticRegression(max_iter=200)
    if task == "regression":
        model = Ridge(solver="sparse_cg")
    elif task == "count":  # its penalty is relative to the mean loss of the rows: the default, 1, leaves a constant
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


# -- wide models: the solved one and the stacks select their loss by the ranking metric ---------------

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
    Contender(
        "constant", "Baseline (constant)",
        lambda task, *_: DummyClassifier(strategy="prior") if task in CLASSES else DummyRegressor(), order=0,
    ),
    Contender("onehot-linear", "One-hot + linear model", _linear, _space_of_linear, order=20),
    Contender(
        "naive-bayes", "Selective naive Bayes (MODL)", _naive_bayes,
        lambda task: {"prior_weight": loguniform(1e-3, 10)}, order=21, tasks=CLASSES, by_name=True,
    ),
    Contender(
        "wide", "Wide model", _solved,
        lambda task: {
            "numeric": ["smooth", "linear", "modl" if task in CLASSES else "quantile"], "count_effect": [True, False],
        },
        order=13, for_metric=True,
    ),
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
    Contender(
        "hist-gradient-boosting", "HistGradientBoosting native (254 levels)", native_hist, _space_at("hist", "booster"),
        order=29,
    ),
    Contender(
        "modl-hist-gradient-boosting", "MODL groups + HistGradientBoosting",
        partial(_over_groups, partial(native_hist, max_levels=None)), _space_at("hist", "native__booster"), order=40,
    ),
    Contender(
        "target-lightgbm", "Target encoding (category_encoders) + LightGBM", _target_encoding,
        _space_of_target_encoding, {"category_encoders": "tabsym[compare]", **LIGHTGBM}, 40,
    ),
    Contender(
        "tiws-lightgbm", "TIWS encoding + LightGBM", _over_tiws, _space_at("lightgbm", "booster"), LIGHTGBM, 46,
        by_name=True,
    ),
    _unseen("blind", "Without the column", _blind, 32),
    _unseen("mean", "Mean over categories", partial(_encoded, context="observed"), 33),
    _unseen("knn", "kNN of the rows", partial(_encoded, fill="knn"), 36),
    _unseen("names", "Similar names", partial(_encoded, fill="names"), 34),
    _unseen("tiws-printed", "TIWS as printed", partial(_encoded, method="poster"), 34),
    _unseen("documents", "TIWS (documents)", _encoded, 35),
    _unseen("augmented", "TIWS augmented", _augmented, 36, "estimator__booster"),
    *(contender for library in available() for contender in _of_library(library)),
]  # fmt: skip


def all_contenders() -> dict[str, Contender]:
    """Every built-in contender by name, cheap ones first."""
    return {contender.name: contender for contender in sorted(CONTENDERS, key=lambda c: (c.order, c.name))}


# -- contenders of the user's own ------------------------------------------------------------------

ALL = "all"
_CONSTANTS = (bool, int, float, str, bytes, tuple, frozenset, type(None))
_CONTENTS = (*_CONSTANTS, list, dict, set, np.ndarray)
_INSTALLED = (
    *(sysconfig.get_paths()[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib")),
    str(Path(__file__).parent.parent),
)
"""Folders of libraries, whose versions are not looked at, and of this package."""
_ORDER = 5  # after the constant, before all others


def choose(contenders: Any, task: str, *, unseen: bool = False) -> list[Contender]:
    """The contenders that take part, the baseline always among them; `unseen`: whether whole categories are held out.

    Raises
    ------
    ValueError, TypeError
        A name is not known, or what it stands for is no estimator.
    """
    known = all_contenders()
    if isinstance(contenders, str):
        raise TypeError(f"contenders must be a list, not the text {contenders!r}; pass contenders=[{contenders!r}].")
    named = [ALL] if contenders is None else contenders
    requested: dict[str, Any] = dict(named) if isinstance(named, Mapping) else dict.fromkeys(named)
    if not requested:
        raise ValueError(f"contenders is empty; name at least one, or leave it out for {ALL!r}.")
    chosen = {CONSTANT: known[CONSTANT]}
    for name, value in requested.items():
        if not isinstance(name, str):
            raise TypeError(
                f"contenders contains {name!r}; pass estimators in a dict with names: contenders={{'mine': ...}}."
            )
        if value is not None and (name in known or name == ALL or name in {c.label for c in known.values()}):
            raise ValueError(f"{name!r} is the name of a built-in contender; give yours another name.")
        if value is not None and len(folder_name(name).encode()) > MAX_FOLDER_NAME:
            raise ValueError(f"The contender's name {name[:40]!r}... is too long for a folder; give it a shorter one.")
        if value is not None:
            chosen[name] = _custom(str(name), value, task)
        elif name == ALL:
            of_all = {n: contender for n, contender in known.items() if not contender.by_name}
            fit = {n: contender for n, contender in of_all.items() if unseen or not contender.for_unseen}
            chosen |= {n: contender for n, contender in fit.items() if n not in requested}
        elif name in known and known[name].for_unseen and not unseen:
            raise ValueError(f"Contender {name!r} needs held-out categories; add unseen (--unseen).")
        elif name in known:
            chosen[name] = known[name]
        else:
            raise ValueError(
                f"There is no contender {name!r}{perhaps(name, list(known))}; there are {', '.join(known)}, "
                f"and {ALL!r} for all but those that take part only where they are named."
            )
    return sorted((c for c in chosen.values() if task in c.tasks), key=lambda c: (c.order, c.name))


def _custom(name: str, value: Any, task: str) -> Contender:
    """A contender from an estimator, (estimator, space), or an address."""
    if isinstance(value, str):
        if not all(value.partition(":")):
            raise ValueError(
                f"Contender {name!r} is {value!r}, which is not an address; write package.module:factory, where "
                "factory makes the estimator."
            )
        return from_address(name, value)
    model, space = value if isinstance(value, tuple) and len(value) == 2 else (value, {})
    _check_estimator(name, model, task)
    made_by = digest_of(model, space)
    return Contender(
        name, name, lambda task, seed, jobs: model, lambda task: space, order=_ORDER, raw=True, made_by=made_by
    )


def _check_estimator(name: str, model: Any, task: str) -> None:
    if isinstance(model, type) or not hasattr(model, "fit"):
        raise TypeError(
            f"Contender {name!r} is {model!r}, which is not an estimator; pass an instance with fit and predict."
        )
    if task in CLASSES and not hasattr(model, "predict_proba"):
        raise TypeError(
            f"Contender {name!r} has no predict_proba, which classes are scored by; "
            "wrap it in sklearn.calibration.CalibratedClassifierCV."
        )


def from_address(name: str, address: str) -> Contender:
    """A contender whose estimator something in an importable module makes.

    That is a function or class, called with those of `task`, `random_state` and `n_jobs` that it names, or an
    estimator itself. Its attribute `space`, a dict or a function of the task, says where ``--tune`` looks.
    """

    def make(task: str, random_state: int, n_jobs: int) -> Any:
        model = _load(address)
        if callable(model) and not isinstance(model, BaseEstimator):
            names = inspect.signature(model).parameters
            options = {"task": task, "random_state": random_state, "n_jobs": n_jobs}
            model = model(**{option: value for option, value in options.items() if option in names})
        _check_estimator(name, model, task)
        return model

    def space(task: str) -> dict[str, Any]:
        values = getattr(_load(address), "space", {})
        return values(task) if callable(values) else dict(values)

    made_by = digest_of_address(address)
    return Contender(name, name, make, space, order=_ORDER, raw=True, address=address, made_by=made_by)


def _load(address: str) -> Any:
    module, _, attribute = address.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as `python -m` does
    return attrgetter(attribute)(import_module(module))


def digest_of_address(address: str) -> str | None:
    """Of the file of the module at an address; None where there is none, as far as is known without importing.

    What the module imports is not looked at.
    """
    try:
        file = _file_of(address.partition(":")[0])
        return None if file is None else sha256(file.read_bytes()).hexdigest()
    except Exception:  # whatever hooks and folders of the user's do
        return None


def digest_of(*made_of: Any) -> str | None:
    """Of an estimator and what belongs to it, by their parameters; None where that is unknown.

    Functions by their code, arrays and frames by their content.
    """
    try:
        return str(joblib.hash([_contents(part) for part in made_of], hash_name="sha1"))
    except Exception:  # the user's own code may raise anything
        return None


def _file_of(module: str) -> Path | None:
    """The file of a module, found as the process finds it that runs it: in the working folder first."""
    where: list[str] | None = [str(Path.cwd()), *sys.path]
    spec = None
    for part in module.split("."):  # each by itself: a dotted name of a namespace would look for its parent's module
        spec = None if where is None else PathFinder.find_spec(part, where)
        if spec is None:
            return None
        positions = spec.submodule_search_locations
        where = None if positions is None else list(getattr(positions, "_path", positions))
    return None if spec is None or spec.origin is None else Path(spec.origin)


def _contents(value: Any, seen: list[Any] | None = None) -> Any:
    """What a parameter is, in lists, texts and digests that are the same in every process.

    `seen`: the functions and classes that are in it already, which may name each other; more are added.
    """
    seen = [] if seen is None else seen
    if isinstance(value, BaseEstimator):
        return [_contents(type(value), seen), _contents(value.get_params(deep=False), seen)]
    if isinstance(value, Mapping):
        return ["mapping", sorted([repr(_contents(name, seen)), _contents(item, seen)] for name, item in value.items())]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *(_contents(item, seen) for item in value)]
    if isinstance(value, (set, frozenset)):
        return ["set", *sorted(repr(_contents(item, seen)) for item in value)]
    if isinstance(value, type):
        return [_name_of(value), _class_contents(value, seen)] if _is_user_defined(value, seen) else _name_of(value)
    if isinstance(value, FunctionType):
        return [_name_of(value), _function_contents(value, seen)]
    if isinstance(value, partial):
        return ["partial", _contents([value.func, value.args, value.keywords], seen)]
    if isinstance(value, MethodType):
        return _contents([value.__func__, value.__self__], seen)
    if hasattr(value, "dist") and hasattr(value, "kwds"):  # frozen, of scipy, with the state of all random numbers
        return [str(value.dist.name), _contents([value.args, value.kwds], seen)]
    made_by = [_contents(type(value), seen)] if _is_user_defined(type(value), seen) else []
    return [joblib.hash(value, hash_name="sha1"), *made_by]


def _function_contents(value: FunctionType, seen: list[Any]) -> list[Any]:
    """The code of a function, and what it reads that is the user's own: functions and classes it calls, constants."""
    if any(value is item for item in seen):
        return []
    seen.append(value)
    read = {name: value.__globals__.get(name) for name in sorted(_names_in(value.__code__))}
    used = {name: item for name, item in read.items() if isinstance(item, _CONTENTS) or _is_user_defined(item, seen)}
    closure = [cell.cell_contents for cell in value.__closure__ or ()]
    return [_code_contents(value.__code__), _contents([value.__defaults__, value.__kwdefaults__, closure, used], seen)]


def _class_contents(value: type, seen: list[Any]) -> Any:
    """The methods and constants of a class, and of the user's own that it comes from."""
    seen.append(value)
    bases = [base for base in value.__mro__[1:] if _is_user_defined(base, seen)]
    inner = {
        name: getattr(member, "__func__", getattr(member, "fget", member))  # of class methods and properties
        for name, member in vars(value).items()
        if not (name.startswith("__") and isinstance(member, _CONSTANTS))
    }
    kept = {name: member for name, member in inner.items() if isinstance(member, (FunctionType, *_CONSTANTS))}
    return _contents([kept, bases], seen)


def _is_user_defined(value: Any, seen: list[Any]) -> bool:
    """Whether a function, a class or what is made of one is of no library, and not in `seen`."""
    if isinstance(value, ModuleType) or any(value is item for item in seen):
        return False
    kind = value if isinstance(value, (FunctionType, type)) else type(value)
    if kind.__module__ == "builtins":
        return False
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file is None or not any(Path(file).is_relative_to(position) for position in _INSTALLED)


def _names_in(code: CodeType) -> set[str]:
    """The global names that a function looks up, those of functions inside it too."""
    names = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(_names_in(item) for item in code.co_consts if isinstance(item, CodeType)))


def _code_contents(code: CodeType) -> list[Any]:
    constants = [_code_contents(item) if isinstance(item, CodeType) else _contents(item) for item in code.co_consts]
    return [code.co_code.hex(), list(code.co_names), constants]


def _name_of(what: Any) -> str:
    return f"{what.__module__}.{what.__qualname__}"
