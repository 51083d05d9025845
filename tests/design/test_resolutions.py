"""Interactions of smooth numbers: coefficients at several numbers of bins, surfaces and curves in formulas."""

import numpy as np
import pandas as pd
import pytest

from tabsym import WideClassifier, WideRegressor, WideSGDRegressor, load, save
from tabsym.design.formula import FormulaError


def table(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    x, z = rng.uniform(-2, 2, n), np.where(rng.random(n) < 0.05, np.nan, rng.gamma(2.0, 1.0, n))
    return pd.DataFrame({"x": x, "z": z, "g": rng.choice(list("abc"), n)}), rng


def cut(values, n_bins):
    """Equal-frequency bins by quantiles that are values, right-closed, as categories; missing values have their own."""
    known = np.sort(values[~np.isnan(values)])
    at = np.ceil(np.arange(1, n_bins) / n_bins * len(known)).astype(int) - 1
    bounds = np.unique(known[at])
    return np.where(np.isnan(values), "none", np.searchsorted(bounds, values, side="left").astype(str))


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_a_surface_is_the_sum_of_its_bins_by_hand(weighted):
    X, rng = table()
    y = np.sin(2 * X["x"]) * np.log1p(X["z"].fillna(0.0)) + 0.3 * rng.normal(size=len(X))
    weight = np.full(len(X), 2.0) if weighted else None
    options = {"loss": "squared_error", "count_effect": False}
    ours = WideRegressor("y ~ te(x, z) + b[1]", **options).fit(X.assign(y=y), sample_weight=weight)
    by_hand = X.assign(y=y)
    for name in "xz":
        for n_bins in (4, 16, 32):
            by_hand[f"{name}{n_bins}"] = cut(X[name].to_numpy(), n_bins)
    formula = "y ~ f[x32, z32] + v[x4, z4] + w[x16, z16] + b[1] + s(x) + s(z)"
    other = WideRegressor(formula, **options).fit(by_hand, sample_weight=weight)
    np.testing.assert_allclose(ours.predict(X), other.predict(by_hand), atol=2e-5)
    assert list(ours.coefs_) == ["te(x, z)", "te(x, z) (4 bins)", "te(x, z) (16 bins)", "b", "s(x)", "s(z)"]
    sums = [ours.coefs_[name]["rows"].sum() for name in list(ours.coefs_)[:3]]
    assert sums == [len(X)] * 3


def test_named_interactions_of_a_model_without_formula_are_the_same():
    X, rng = table()
    y = X["x"] * (X["g"] == "a") + 0.3 * rng.normal(size=len(X))
    options = {"loss": "squared_error", "count_effect": False}
    ours = WideRegressor(interactions=[("g", "x")], **options).fit(X[["g", "x"]], y)
    formula = WideRegressor("y ~ w[g] + s(x, by=g) + b[1]", **options).fit(X.assign(y=y))
    np.testing.assert_allclose(ours.predict(X[["g", "x"]]), formula.predict(X), atol=2e-5)
    assert "g:x (4 bins)" in ours.coefs_
    assert "g:x (16 bins)" in ours.coefs_


@pytest.mark.parametrize("kind", [WideRegressor, WideClassifier])
def test_numbers_that_matter_only_together_are_found(kind):
    X, rng = table(2000)
    score = 2 * np.sign(X["x"] * (X["z"].fillna(1.6) - 1.6))
    y = score + rng.normal(size=len(X)) if kind is WideRegressor else rng.random(len(X)) < 1 / (1 + np.exp(-score))
    model = kind().fit(X, y)
    assert model.interactions_["interaction"].tolist()[0] in ("x:z", "z:x")
    means = model.predict(X) if kind is WideRegressor else model.decision_function(X)
    assert np.corrcoef(means, score)[0, 1] > 0.9


@pytest.mark.slow
def test_parts_of_an_interaction_are_one_contribution_and_add_up(tmp_path):
    X, rng = table()
    y = X["x"] * X["z"].fillna(0.0) + 0.3 * rng.normal(size=len(X))
    model = WideRegressor(loss="squared_error", interactions=[("x", "z")]).fit(X, y)
    parts = model.explain(X)
    assert "x:z" in parts
    assert not any("bins" in name for name in parts)
    np.testing.assert_allclose(parts.sum(axis=1), model.predict(X), atol=1e-9)
    assert "bins" not in model.summary().splitlines()[1]
    loaded = load(save(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.slow
def test_a_picture_of_an_interaction_is_of_the_sum_of_its_parts():
    X, rng = table()
    y = X["x"] * X["z"].fillna(0.0) + 0.1 * rng.normal(size=len(X))
    model = WideRegressor(loss="squared_error", interactions=[("x", "z")]).fit(X, y)
    grid = np.ma.filled(model.plot_term("x:z").images[0].get_array().astype(float), np.nan)
    assert grid.shape == (32, 33)
    parts = model.explain(X)["x:z"].to_numpy()
    at = int(cut(X["x"].to_numpy(), 32)[0]), int(cut(X["z"].to_numpy(), 32)[0]) + 1
    rarity = model.coefs_["count of x:z"]["value"]
    assert rarity.min() - 1e-9 <= parts[0] - grid[at] <= rarity.max() + 1e-9
    assert sum(":" in str(name) for name in [axes.get_title(loc="left") for axes in model.plot()]) <= 2


def test_without_estimated_variances_there_is_one_block():
    X, rng = table(500)
    y = X["x"] + rng.normal(size=len(X))
    given = WideRegressor(alpha=1.0, interactions=[("x", "z")]).fit(X, y)
    assert not any("bins" in name for name in given.coefs_)
    quantiles = WideRegressor(numeric="quantile", interactions=[("x", "z")]).fit(X, y)
    assert not any("bins" in name for name in quantiles.coefs_)


def test_numbers_of_few_values_have_no_coarser_bins():
    X, rng = table(500)
    X = pd.DataFrame({"two": rng.integers(0, 2, 500) + 0.5, "x": X["x"], "g": X["g"]})
    y = X["x"] * X["two"] + rng.normal(size=500)
    model = WideRegressor(interactions=[("two", "g"), ("two", "x")]).fit(X, y)
    assert [name for name in model.coefs_ if name.startswith("two:")] == [
        "two:g", "two:x", "two:x (4 bins)", "two:x (16 bins)",
    ]  # fmt: skip
    assert len(model.coefs_["two:x (4 bins)"]) == 8


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("te(x)", "Expected ',' between the two numbers of te"),
        ("te(x, x)", "names 'x' twice"),
        ("te(x, z, g)", "te\\(\\) takes two numbers"),
        ("te(x, g)", "te\\(x, g\\) is for numbers, and column 'g' is none"),
        ("s(x, z)", "a surface of two numbers is te\\(x, z\\)"),
        ("s(x, z=g)", "takes by= and a categorical column"),
        ("s(x, by=x)", "names 'x' twice"),
        ("s(g, by=x)", "column 'g' is none"),
    ],
)
def test_wrong_surfaces_say_what_to_write(formula, message):
    X, _ = table(100)
    with pytest.raises(FormulaError, match=message):
        WideRegressor(f"y ~ {formula}").fit(X.assign(y=1.0))


@pytest.mark.parametrize("formula", ["te(x, z) * w[g]", "s(x, by=g) * z"])
def test_surfaces_are_not_multiplied(formula):
    X, rng = table(200)
    with pytest.raises(ValueError, match=r"in a formula that is a sum of terms.*write f\["):
        WideRegressor(f"y ~ {formula}").fit(X.assign(y=rng.normal(size=200)))


@pytest.mark.slow
def test_curves_are_there_once():
    X, rng = table(300)
    y = rng.normal(size=300)
    for formula in ("s(x) + te(x, z) + s(x, by=g)", "te(x, z) + s(x, by=g) + s(z)", "s(x, by=g) + te(x, z)"):
        names = list(WideRegressor(f"y ~ {formula} + b[1]").fit(X.assign(y=y)).coefs_)
        assert names.count("s(x)") == names.count("s(z)") == 1


def test_online_surfaces_take_bins_by_quantiles():
    X, rng = table(500)
    y = X["x"] * X["z"].fillna(0.0) + 0.1 * rng.normal(size=500)
    model = WideSGDRegressor("y ~ te(x, z) + b[1]", numeric="quantile", max_iter=3, random_state=0).fit(X.assign(y=y))
    assert list(model.coefs_) == ["te(x, z)", "b", "s(x)", "s(z)"]
