"""Options of the solved models by identities: what two ways of asking for the same come to."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.class_weight import compute_class_weight

from tabsym import WideClassifier, WideRegressor, WideSGDClassifier
from tabsym.losses import Quantile
from tabsym.optimizers import SGD
from tests.options import ADDITIVE

PLAIN = {"interactions": None, "count_effect": False}

N = 800
RNG = np.random.default_rng(1)
X = pd.DataFrame(
    {
        "a": RNG.choice(list("abcdef"), N, p=[0.4, 0.2, 0.2, 0.1, 0.06, 0.04]),
        "b": RNG.integers(0, 30, N).astype(str),
        "x": RNG.normal(size=N),
        "z": RNG.normal(size=N),
    }
)
EFFECT = X["a"].map(dict(zip("abcdef", [-1.0, 0.0, 0.5, 1.0, 2.0, -2.0], strict=True))).to_numpy() + np.sin(2 * X["x"])
EFFECT = EFFECT.to_numpy()
AMOUNTS = EFFECT + 0.5 * RNG.normal(size=N)
TWO = np.where(EFFECT + RNG.logistic(size=N) > 1, "yes", "no")


@pytest.mark.parametrize("alpha", [0.0, 0.003, 0.1])
@pytest.mark.parametrize(("kind", "y"), [(WideRegressor, AMOUNTS), (WideClassifier, TWO)])
def test_a_penalty_of_every_term_is_a_number(kind, y, alpha):
    named = {} if kind is WideClassifier else {"loss": "squared_error"}
    one = kind(alpha=alpha, **{**ADDITIVE, "numeric": "quantile"}, **named, tol=1e-5).fit(X, y)
    each = dict.fromkeys(X, alpha)
    two = kind(alpha=each, **{**ADDITIVE, "numeric": "quantile"}, **named, tol=1e-5).fit(X, y)
    for name in X:
        np.testing.assert_allclose(two.coefs_[name]["value"], one.coefs_[name]["value"], atol=2e-4)
        np.testing.assert_allclose(two.coefs_[name]["sd"], one.coefs_[name]["sd"], rtol=2e-2)


def test_a_penalty_of_one_term_leaves_the_others_to_be_estimated():
    free = WideRegressor(loss="squared_error", **ADDITIVE).fit(X, AMOUNTS)
    strong = WideRegressor(loss="squared_error", alpha={"a": 100.0}, **ADDITIVE).fit(X, AMOUNTS)
    assert strong.coefs_["a"]["value"].abs().max() < 0.02
    assert strong.variances_.loc["b", "variance"] >= 0.0
    alike = free.dispersion_ / free.variances_.loc["a", "variance"] / N
    same = WideRegressor(loss="squared_error", alpha={"a": alike}, **ADDITIVE)
    np.testing.assert_allclose(same.fit(X, AMOUNTS).predict(X), free.predict(X), atol=1e-2)


@pytest.mark.parametrize("how", ["linear", "modl", "quantile", "smooth"])
def test_numeric_by_column_is_that_of_all(how):
    one = WideRegressor(loss="squared_error", interactions=None, numeric=how).fit(X, AMOUNTS)
    two = WideRegressor(loss="squared_error", interactions=None, numeric={"x": how, "z": how}).fit(X, AMOUNTS)
    np.testing.assert_allclose(two.predict(X), one.predict(X), rtol=1e-12)


def test_numeric_of_some_columns():
    model = WideRegressor(loss="squared_error", interactions=None, numeric={"z": "linear"}).fit(X, AMOUNTS)
    assert len(model.coefs_["z"]) == 1
    assert len(model.coefs_["x"]) > 30


@pytest.mark.parametrize(("kind", "y"), [(WideRegressor, AMOUNTS), (WideClassifier, TWO)])
def test_a_formula_that_adds_all_columns_is_the_model_without_one(kind, y):
    named = {} if kind is WideClassifier else {"loss": "squared_error"}
    one = kind(interactions=None, numeric={"x": "quantile", "z": "quantile"}, **named).fit(X, y)
    two = kind("u[a] + v[b] + f[x] + g[z] + m[1]", numeric="quantile", **named).fit(X, y)
    ask = "decision_function" if kind is WideClassifier else "predict"
    np.testing.assert_allclose(getattr(two, ask)(X), getattr(one, ask)(X), atol=1e-3)


@pytest.mark.parametrize("kind", [WideClassifier, WideSGDClassifier])
@pytest.mark.parametrize("given", ["balanced", {"yes": 3.0}, {"yes": 2.0, "no": 0.5}])
def test_class_weights_are_sample_weights(kind, given):
    weight = RNG.uniform(0.5, 2.0, N)
    one = kind(class_weight=given, random_state=0).fit(X, TWO, weight)
    classes = np.unique(TWO)
    by_class = compute_class_weight(given, classes=classes, y=TWO, sample_weight=weight)[np.searchsorted(classes, TWO)]
    two = kind(random_state=0).fit(X, TWO, weight * by_class)
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), rtol=1e-12)


@pytest.mark.parametrize("kind", [WideClassifier, WideSGDClassifier])
def test_balanced_classes_are_those_of_repeated_rows(kind):
    """A weight of 2 is two rows; with scikit-learn's linear models they are the same too."""
    weight = np.random.default_rng(7).integers(0, 4, N) + 2 * (TWO == "yes")
    rows = np.repeat(np.arange(N), weight)
    options = {"numeric": "linear", "class_weight": "balanced", "interactions": None}
    if kind is WideClassifier:
        options |= {"alpha": 1e-3, "count_effect": False, "tol": 1e-8}
    else:
        options |= {"optimizer": SGD(), "learning_rate": 0.5, "max_iter": 300, "batch_size": "full"}
    one = kind(**options, random_state=0).fit(X, TWO, weight)
    two = kind(**options, random_state=0).fit(X.iloc[rows].reset_index(drop=True), TWO[rows])
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-6)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ("even", "use 'balanced', a mapping"),
        ({"maybe": 2.0}, "names 'maybe', which is no class of the target; leave it out"),
        ({"yes": "2"}, "use a number of at least 0"),
        ({"yes": -1.0}, "use a number of at least 0"),
        ({"yes": 0.0}, "1 class only"),
    ],
)
def test_class_weights_that_cannot_be(given, match):
    with pytest.raises(ValueError, match=match):
        WideClassifier(class_weight=given).fit(X, TWO)


def test_importances_are_the_shares_of_variance():
    model = WideRegressor(loss="squared_error", **{**ADDITIVE, "numeric": "smooth"}).fit(X, AMOUNTS)
    parts = model.explain(X)[list(X)].var(ddof=0)
    np.testing.assert_allclose(model.feature_importances_, parts / parts.sum(), rtol=1e-6, atol=1e-12)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    array = WideRegressor(loss="squared_error", **ADDITIVE).fit(
        X[["x", "z"]].to_numpy(), 3 * X["z"].to_numpy() + AMOUNTS
    )
    assert array.feature_importances_.argmax() == 1
    with pytest.raises(AttributeError, match="sums of terms only"):
        _ = WideRegressor("w[a] * v[b] + m[1]", loss="squared_error").fit(X, AMOUNTS).feature_importances_


def slopes_and_levels():
    """Lines by category over the same values of a number far from 0, so that slopes and numbers are independent."""
    rng = np.random.default_rng(0)
    grid = [list("aabcd"), np.linspace(10, 11, 20), [3.0, 4.0, 5.0, 6.0]]
    table = pd.MultiIndex.from_product(grid, names=["g", "z", "x"]).to_frame(index=False)
    slope, level = ({"a": 2.0, "b": -1.0, "c": 3.5, "d": 1.5}, {"a": 1.0, "b": 0.3, "c": -0.2, "d": -0.5})
    y = table["g"].map(slope) * (table["z"] - 10.5) + table["g"].map(level) + 0.1 * rng.normal(size=len(table))
    return table, y


@pytest.mark.parametrize(
    "formula",
    [
        "c[1] + (z || g)",
        "c[1] + s[1]*z + (z || g)",
        "w[g] + v[g]*z + s[1]*z + c[1]",
        "w[g] + v[g]*z + 0.5*s[1]*z",
        "w[g] + 2*v[g]*z + u[g]*x + s[1]*z + c[1]",
        "v[g]*z + s[1]*z + c[1]",
        "v[g]*z + c[1]",
    ],
)
@pytest.mark.parametrize("has_levels", [True, False])  # without, `w` and the like are dropped
def test_shares_beside_slopes_by_category_are_those_of_the_explanations(formula, has_levels):
    table, y = slopes_and_levels()
    y = y if has_levels else y - y.groupby(table["g"]).transform("mean")
    model = WideRegressor(formula, loss="squared_error").fit(table, y)
    parts = model.explain(table).var(ddof=0)
    shares = model.term_table()["share"]
    want = (parts / parts.sum()).reindex(shares.index).fillna(0.0)
    np.testing.assert_allclose(shares, want, atol=1e-9)
    by_column = pd.Series(model.feature_importances_, model.feature_names_in_)
    assert by_column["z"] == pytest.approx(want.get("s", 0.0) + (want.get("v", 0.0) + want.get("z | g", 0.0)) / 2)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("all_have_missing", [False, True])
def test_shares_count_rows_with_a_missing_number_as_the_explanations_do(weighted, all_have_missing):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(3, 1, 400), "z": rng.normal(size=400)})
    table.loc[:120, "x"] = np.nan
    if all_have_missing:
        table.loc[200:, "z"] = np.nan
    y = table["x"].fillna(1.0) + table["z"].fillna(3.0) + 0.1 * rng.normal(size=400)
    weight = rng.uniform(0.5, 3.0, 400) if weighted else None
    model = WideRegressor(loss="squared_error", **{**ADDITIVE, "numeric": "linear"})
    model.fit(table, y, sample_weight=weight)
    made = model.explain(table)
    away = made - np.average(made, axis=0, weights=weight)
    parts = pd.Series(np.average(np.square(away), axis=0, weights=weight), made.columns)
    shares = model.term_table()["share"]
    assert shares["x is missing"] > 0.01
    np.testing.assert_allclose(shares, (parts / parts.sum())[shares.index], atol=1e-9)


def test_exposures_are_compared_by_losses_with_a_log_link():
    exposure = RNG.uniform(0.5, 3.0, N)
    table, y = X.assign(e=exposure), RNG.poisson(exposure * np.exp(0.5 * EFFECT)).astype(float)
    model = WideRegressor(exposure_column="e").fit(table, y)
    assert "squared_error" not in set(model.losses_["loss"])
    named = WideRegressor(exposure_column="e", loss=model.loss_).fit(table, y)
    np.testing.assert_allclose(model.predict(table), named.predict(table), rtol=1e-12)
    with pytest.raises(ValueError, match="name the loss"):
        WideRegressor(offset_column="e").fit(table, y)
    with pytest.raises(ValueError, match="needs values of at least 0"):
        WideRegressor(exposure_column="e").fit(table, y - 5)


def test_columns_by_position_and_by_mask():
    """Of frames and of arrays, as scikit-learn takes them; an offset's column beside them."""
    named = WideRegressor(loss="squared_error", categorical_features=["a", "b"], numeric={"x": "linear"}, **PLAIN)
    want = named.fit(X, AMOUNTS).predict(X)
    array = X.to_numpy(dtype=object)
    for chosen in ([0, 1], [True, True, False, False], np.array([True, True, False, False])):
        other = clone(named).set_params(categorical_features=chosen, numeric={2: "linear"})
        np.testing.assert_allclose(clone(other).fit(X, AMOUNTS).predict(X), want, rtol=1e-12)
        np.testing.assert_allclose(clone(other).fit(array, AMOUNTS).predict(array), want, rtol=1e-9)
    beside = clone(named).set_params(categorical_features=[False, True, True, False, False], offset_column="e")
    table = X.assign(e=0.0)[["e", *X]]
    np.testing.assert_allclose(beside.fit(table, AMOUNTS).predict(table), want, rtol=1e-12)
    with pytest.raises(ValueError, match="a mask of 2 columns, and the table has 4"):
        clone(named).set_params(categorical_features=[True, False]).fit(X, AMOUNTS)


@pytest.mark.parametrize("loss", ["absolute_error", "quantile", Quantile(0.9)])
def test_losses_without_a_second_derivative_are_those_of_online_models(loss):
    with pytest.raises(ValueError, match="no second derivative to solve by; use WideSGDRegressor"):
        WideRegressor(loss=loss).fit(X, AMOUNTS)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"alpha": None}, "use 'auto', a number of at least 0 or a mapping"),
        ({"verbose": "yes"}, "verbose='yes' is not possible; use a whole"),
    ],
)
def test_options_that_cannot_be(options, match):
    with pytest.raises(ValueError, match=match):
        WideRegressor(**options).fit(X, AMOUNTS)


def interacting():
    rng = np.random.default_rng(1)
    g, h = rng.integers(0, 8, 500), rng.integers(0, 6, 500)
    y = rng.normal(0, 0.7, 8)[g] + rng.normal(0, 0.7, (8, 6))[g, h] + rng.normal(0, 0.6, 500)
    return pd.DataFrame({"g": [f"g{one}" for one in g], "h": [f"h{one}" for one in h]}), y


@pytest.mark.parametrize("interactions", [[("g", "h")], "pairwise", "auto"])
def test_penalties_of_interactions_are_named_in_any_order(interactions):
    X, y = interacting()
    options = {"loss": "squared_error", "interactions": interactions, "count_effect": False}
    made = [WideRegressor(alpha={name: 1.0}, **options).fit(X, y).predict(X) for name in ("g:h", "h:g")]
    np.testing.assert_array_equal(*made)
    assert np.abs(made[0] - WideRegressor(**options).fit(X, y).predict(X)).max() > 0.1
    with pytest.raises(ValueError, match="alpha names 'h:g' twice"):
        WideRegressor(alpha={"g:h": 1.0, "h:g": 1e-4}, **options).fit(X, y)
    for name in ("g:nothing", "nothing", "g:h:nothing", "count of nothing", "gg:h", "count of gg", "g:g", "g:h:h"):
        with pytest.raises(ValueError, match=f"alpha names {name!r}, and there is no such term"):
            WideRegressor(alpha={name: 1.0}, **options).fit(X, y)


def test_penalties_of_terms_without_a_penalty():
    X, y = interacting()
    X["x"] = np.arange(len(X)) / len(X)
    values = dict.fromkeys(set(X["g"]), 0.5)
    cases = [
        ({"fixed": {"g": values}}, "g", "whose coefficients are given by fixed"),
        ({"formula": "u[g] + s[1] * x + c[1]", "fixed": {"s": 2.0}}, "s", "whose coefficients are given by fixed"),
        ({"formula": "u[g] + x + c[1]"}, "x", "which has no coefficient in the formula"),
        ({"formula": "u[g] + s[1] * x + c[1]"}, "s", r"which has no penalty \(intercept and slopes have none\)"),
        ({}, "(intercept)", r"which has no penalty \(intercept and slopes have none\)"),
    ]
    for options, name, says in cases:
        with pytest.raises(ValueError, match=rf"alpha names '{re.escape(name)}', {says}.*leave it out"):
            WideRegressor(loss="squared_error", alpha={name: 1.0}, **options).fit(X, y)


def test_penalties_of_interactions_that_are_absent():
    """Where they were searched a warning tells; elsewhere the name is an error."""
    X, y = interacting()
    y = X["g"].map(dict(zip(sorted(set(X["g"])), range(8), strict=True))) + np.random.default_rng(0).normal(size=500)
    with pytest.warns(UserWarning, match="alpha names 'h:g', which the model does not have; it has no effect"):
        WideRegressor(loss="squared_error", alpha={"h:g": 1.0}).fit(X, y)
    with pytest.raises(ValueError, match="alpha names 'g:h', and there is no such term"):
        WideRegressor(loss="squared_error", alpha={"g:h": 1.0}, interactions=None).fit(X, y)
    rows = X.assign(y=y)
    for name in ("1 | g:h", "u:v", "count of q"):
        with pytest.raises(ValueError, match=f"alpha names '{re.escape(name)}'"):
            WideRegressor("y ~ c[1] + (1 | g)", loss="squared_error", alpha={name: 1.0}).fit(rows)
    named = [
        WideRegressor("y ~ c[1] + (1 | g/h)", loss="squared_error", alpha={name: 1.0})
        for name in ("1 | g:h", "1 | h:g")
    ]
    np.testing.assert_array_equal(*(model.fit(rows).predict(X) for model in named))
