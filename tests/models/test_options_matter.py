"""Every option of the wide models: another value than the default changes the fitted model, or is refused."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest

from tabsym import WideClassifier, WideRegressor, WideSGDClassifier, WideSGDRegressor
from tabsym.interactions import AutoInteractions
from tabsym.losses import Huber, Quantile, Tweedie
from tabsym.optimizers import SGD

pytestmark = pytest.mark.slow

N = 600
RNG = np.random.default_rng(4)
WIDE = np.minimum((RNG.pareto(0.6, N) * 6).astype(int), 250)
X = pd.DataFrame(
    {
        "a": RNG.choice(list("abcdef"), N),
        "b": [f"v{code}" for code in WIDE],
        "x": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)),
        "z": RNG.normal(size=N),
        "k": RNG.integers(0, 5, N),
        "d": RNG.choice(list("pq"), N),
        "e": RNG.uniform(0.5, 2.0, N),
    }
)
COUNTS = X["b"].map(X["b"].value_counts()).to_numpy()
SCORE = (
    X["a"].map(dict(zip("abcdef", RNG.normal(size=6), strict=True))).to_numpy()
    + 0.3 * np.log(COUNTS)
    + np.sin(2 * X["z"])
    + np.nan_to_num(0.5 * X["x"])
    + 0.8 * ((X["a"] == "a") & (X["k"] > 2))
).to_numpy()
SCORE = SCORE + np.where((X["a"] < "c") == (X["d"] == "p"), 0.0, 2.0)
AMOUNTS = np.exp(0.5 * SCORE + 0.4 * RNG.standard_t(4, N))
CLASSES = np.where(SCORE - SCORE.mean() + RNG.logistic(size=N) > 0.8, "yes", "no")
NEW = X.head(40).assign(b="never seen")

COMMON = {
    "categorical_features": ["all", ["a", "b", "k"]],
    "offset_column": ["e"],
    "handle_unknown": ["error", "similar"],
}
SOLVED = COMMON | {
    "formula": ["w[a] + v[b] + c[1]", "w[a] * v[b] + c[1]"],
    "numeric": ["linear", "modl", "quantile", {"x": "linear"}, {"x": [0.0]}],
    "interactions": [None, "pairwise", [("a", "b")], AutoInteractions(significance=0.5)],
    "alpha": [0.0, 0.01, {"a": 1.0}],
    "count_effect": [False],
    "monotonic_cst": [{"x": -1}],
    "fixed": [{"a": {"b": 0.5}}],
    "n_posterior_samples": [8],
    "n_init": [1, 5],
    "max_iter": [1],
    "tol": [1e-8, 0.3],
    "random_state": [1],
}
ONLINE = COMMON | {
    "formula": ["w[a] + v[b] + c[1]", "w[a] * v[b] + c[1]"],
    "numeric": ["modl", "quantile", {"x": "quantile"}, {"x": [0.0]}],
    "interactions": ["auto", "pairwise", [("a", "b")]],
    "optimizer": ["sgd", "rmsprop", "adam", SGD(momentum=0.5)],
    "learning_rate": [0.01],
    "schedule": ["invscaling", "adaptive", "optimal"],
    "power_t": [0.2],
    "gradient": ["mean"],
    "batch_size": [16, "full"],
    "alpha": [0.01],
    "l1_ratio": [0.5],
    "max_iter": [3],
    "tol": [0.1],
    "early_stopping": [True],
    "validation_fraction": [0.3],
    "n_iter_no_change": [2],
    "average": [True],
    "shuffle": [False],
    "standardize": [False],
    "coef_init": [{"a": 0.7}],
    "random_state": [1],
}
OPTIONS = {
    WideClassifier: SOLVED | {"class_weight": ["balanced", {"yes": 3.0}]},
    WideRegressor: SOLVED
    | {
        "loss": ["squared_error", "huber", "poisson", "gamma", "tweedie", Huber(2.0), Tweedie(1.2)],
        "scoring": ["neg_mean_absolute_error"],
        "exposure_column": ["e"],
    },
    WideSGDClassifier: ONLINE | {"loss": ["hinge"], "class_weight": ["balanced", {"yes": 3.0}]},
    WideSGDRegressor: ONLINE
    | {
        "loss": ["absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie", Quantile(0.8), Tweedie(1.2)],
        "exposure_column": ["e"],
    },
}
NO_EFFECT_ON_A_FIT = {"n_jobs", "verbose"}


def fingerprint(kind, **options):
    """All that a fitted model says of rows, in numbers; None where the options are refused."""
    given = {"random_state": 0} | options if "SGD" in kind.__name__ else options
    y = CLASSES if "Classifier" in kind.__name__ else AMOUNTS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = kind(**given).fit(X, y)
        except ValueError as error:
            assert len(str(error)) > 30, error
            return None
        ask = model.decision_function if y is CLASSES else model.predict
        said = [ask(X), [model.n_features_in_, len(model.coefs_)]]
        said.append(np.concatenate([frame.to_numpy(float, na_value=-1.0).ravel() for frame in model.coefs_.values()]))
        if hasattr(model, "losses_"):
            said.append(model.losses_["score"])
        try:
            said.append(ask(NEW))
        except ValueError:
            said.append([np.inf])
        if options.get("n_posterior_samples"):
            said.append(ask(X, return_std=True)[1])
    return np.concatenate([np.ravel(one) for one in said])


@pytest.fixture(scope="module")
def plain():
    return {kind: fingerprint(kind) for kind in OPTIONS}


@pytest.mark.parametrize("kind", OPTIONS, ids=lambda kind: kind.__name__)
def test_every_option_is_here(kind):
    assert set(OPTIONS[kind]) == set(inspect.signature(kind).parameters) - NO_EFFECT_ON_A_FIT


def values_of_options():
    """The first value of every option of each class; the others of options that two classes share for one of them."""
    for kind, options in OPTIONS.items():
        for name, values in options.items():
            alone = name not in (SOLVED if kind in (WideClassifier, WideRegressor) else ONLINE)
            other = kind in (WideRegressor, WideSGDRegressor)
            yield from (
                (kind, name, one) for place, one in enumerate(values) if alone or not place or place % 2 == other
            )


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    values_of_options(),
    ids=lambda one: one.__name__ if isinstance(one, type) else str(one),
)
def test_a_value_changes_the_fit_or_is_refused(kind, name, value, plain):
    found = fingerprint(kind, **{name: value})
    assert found is None or found.shape != plain[kind].shape or not np.array_equal(found, plain[kind])
