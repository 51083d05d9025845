"""Slopes by category beside their common slope: what terms hand each other, beside dense algebra and statsmodels."""

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

from tabsym import WideClassifier, WideRegressor
from tests.solver import inner


def groups(n_groups, n_each, mean, seed):
    """Groups within five regions, a number about `mean`, two teams; slopes by group and by region."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), n_each)
    region, n = group % 5, len(group)
    x = rng.normal(mean, 1.0, n)
    home = rng.integers(0, 10, n)
    away = (home + 1 + rng.integers(0, 9, n)) % 10
    X = pd.DataFrame({"g": group, "r": region, "h": home, "a": away}).map("k{:03}".format).assign(x=x)
    score = 0.1 * x + rng.normal(size=n_groups)[group] * x + rng.normal(size=5)[region] * x
    return X, score, rng


def indicators(column):
    return (column.to_numpy()[:, None] == np.unique(column)).astype(float)


def random_effects(X, formula):
    """By block, the design (n, q) of the numbers that its variance is of."""
    by_x, centred = X[["x"]].to_numpy(), X[["x"]].to_numpy() - X["x"].mean()
    found = {"w": indicators(X["g"]) * by_x}
    if "u[g]" in formula:  # beside numbers by group, slopes are about the mean of the number
        found = {"u": indicators(X["g"]), "w": indicators(X["g"]) * centred}
    if "v[r]" in formula:
        found["v"] = indicators(X["r"]) * by_x
    if "t[h]" in formula:
        found["t"] = indicators(X["h"]) - indicators(X["a"])
    return found


def least_squares(model, X, y, formula):
    """Generalised least squares at the model's variances: slope and intercept, and best linear predictions."""
    designs, variances = random_effects(X, formula), model.variances_["variance"]
    covariance = model.dispersion_ * np.eye(len(y))
    for name, design in designs.items():
        covariance += variances[name] * design @ design.T
    inverse, fixed = np.linalg.inv(covariance), np.column_stack([X["x"], np.ones(len(y))])
    beta = np.linalg.solve(fixed.T @ inverse @ fixed, fixed.T @ inverse @ y)
    left = inverse @ (y - fixed @ beta)
    predicted = {name: variances[name] * design.T @ left for name, design in designs.items()}
    if "u" in predicted:  # shown at the raw zero of the number
        predicted["u"] = predicted["u"] - predicted["w"] * X["x"].mean()
    return beta, predicted


def errors(model, beta, predicted):
    """Of the common slope, and the worst of each random block about its mean, in the model's own deviations."""
    coefs = model.coefs_
    found = {"s": (coefs["s"]["value"].iloc[0] - beta[0]) / coefs["s"]["sd"].iloc[0]}
    for name, values in predicted.items():
        own = coefs[name].sort_index()
        found[name] = np.abs((own["value"] - (values - values.mean())) / own["sd"]).max()
    return pd.Series(found).abs()


@pytest.mark.parametrize("mean", [0.0, 2.0])
@pytest.mark.parametrize(
    "formula",
    [
        "y ~ w[g]*x + s[1]*x + b[1]",
        "y ~ u[g] + w[g]*x + s[1]*x + b[1]",
        "y ~ w[g]*x + v[r]*x + s[1]*x + b[1]",
    ],
)
def test_a_common_slope_is_that_of_generalised_least_squares(formula, mean):
    """By default settings. The slopes' mean and the common slope crept: .26 deviations were left."""
    X, score, rng = groups(30, 8, mean, 0)
    y = score + rng.normal(size=len(X))
    model = WideRegressor(formula=formula, loss="squared_error", count_effect=False).fit(X, y)
    beta, predicted = least_squares(model, X, y, formula)
    found = errors(model, beta, predicted)
    assert found["s"] < 1e-3
    assert found.max() < 3e-3
    assert model.n_iter_ < 30


@pytest.mark.parametrize("mean", [0.0, 2.0])
@pytest.mark.parametrize("more", ["", " + v[r]*x"], ids=["one", "nested"])
def test_so_it_is_beside_a_block_that_rows_read_twice(more, mean):
    """Which is descended by L-BFGS, to its tolerance: nested slopes were .06 deviations off."""
    formula = f"y ~ w[g]*x{more} + s[1]*x + t[h] - t[a] + b[1]"
    X, score, rng = groups(30, 8, mean, 1)
    y = score + (indicators(X["h"]) - indicators(X["a"])) @ rng.normal(size=10) + rng.normal(size=len(X))
    tight = WideRegressor(formula=formula, loss="squared_error", tol=3e-6).fit(X, y)
    assert errors(tight, *least_squares(tight, X, y, formula)).max() < 1e-3
    model = WideRegressor(formula=formula, loss="squared_error").fit(X, y)
    assert errors(model, *least_squares(model, X, y, formula)).max() < 0.01


@pytest.mark.slow
@pytest.mark.parametrize(("n_groups", "n_each", "mean"), [(30, 8, 2.0), (100, 4, 1.0)])
def test_random_intercepts_and_slopes_are_those_of_a_mixed_model(n_groups, n_each, mean):
    """Their variances by restricted likelihood; each given the other they were up to a quarter too small."""
    X, score, rng = groups(n_groups, n_each, mean, n_groups + n_each)
    X = X.assign(c=X["x"] - X["x"].mean())
    y = score + rng.normal(0.0, 1.0, n_groups)[pd.factorize(X["g"])[0]] + rng.normal(size=len(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = {"u": "0 + C(g)", "w": "0 + C(g):c"}
        mixed = smf.mixedlm("y ~ x", X.assign(y=y), groups="g", vc_formula=parts).fit(reml=True)
    assert mixed.converged
    model = WideRegressor("y ~ u[g] + w[g]*x + s[1]*x + b[1]", loss="squared_error", count_effect=False)
    inner(model, rare_rows=0).fit(X, y)  # variances by rows held out are others
    want = dict(zip(mixed.model.exog_vc.names, mixed.vcomp, strict=True))
    assert model.variances_["variance"][["u", "w"]].to_dict() == pytest.approx(want, rel=0.02)
    assert model.dispersion_ == pytest.approx(mixed.scale, rel=0.01)
    for name, of_mixed in (("s", "x"), ("b", "Intercept")):
        found = model.coefs_[name].iloc[0]
        assert found["value"] == pytest.approx(mixed.params[of_mixed], abs=0.01 * mixed.bse[of_mixed])
        assert found["sd"] == pytest.approx(mixed.bse[of_mixed], rel=0.02)


@pytest.mark.parametrize(("alpha", "more", "most"), [(0.01, " + v[r]*x", 0.01), ("auto", "", 0.05)])
@pytest.mark.parametrize("loss", ["logistic", "poisson", "gamma", "multinomial"])
def test_coefficients_are_those_of_a_small_tolerance(loss, alpha, more, most):
    """With a penalty given; and with variances, which have fewer digits."""
    X, score, rng = groups(30, 20, 1.0, 3)
    score = 0.4 * score
    if loss == "multinomial":
        y = np.argmax(np.column_stack([np.zeros(len(X)), score, -score]) + rng.gumbel(size=(len(X), 3)), axis=1)
    elif loss == "logistic":
        y = (rng.random(len(X)) < 1 / (1 + np.exp(-score))).astype(int)
    else:
        y = rng.poisson(np.exp(score)) if loss == "poisson" else np.exp(score) * rng.gamma(2.0, 0.5, len(X))
    kind = WideClassifier if loss in ("logistic", "multinomial") else WideRegressor
    options = {"formula": f"y ~ w[g]*x{more} + s[1]*x + b[1]", "alpha": alpha, "count_effect": False}
    options |= {} if kind is WideClassifier else {"loss": loss}
    found = kind(**options).fit(X, y)
    exact = kind(tol=3e-7, max_iter=5000, **options).fit(X, y)
    for name in exact.coefs_:
        one, other = found.coefs_[name], exact.coefs_[name]
        values = [column for column in one.columns if column != "rows" and not str(column).startswith("sd")]
        for value in values:
            sd = other[str(value).replace("value", "sd") if "value" in str(value) else f"sd {value}"]
            assert (np.abs(one[value] - other[value]) / sd).max() < most, (name, value)


def test_terms_by_different_numbers_hand_each_other_nothing():
    """Groups lie within regions, but slopes by one number are none by another."""
    X, score, rng = groups(30, 8, 0.0, 3)
    X["z"] = rng.normal(size=len(X))
    y = score + rng.normal(size=5)[X["r"].str[1:].astype(int)] * X["z"] + rng.normal(size=len(X))
    model = WideRegressor("w[g]*x + v[r]*z + b[1]", loss="squared_error").fit(X, y)
    designs = {"w": indicators(X["g"]) * X[["x"]].to_numpy(), "v": indicators(X["r"]) * X[["z"]].to_numpy()}
    covariance = model.dispersion_ * np.eye(len(y))
    random = sum(model.variances_.loc[name, "variance"] * one @ one.T for name, one in designs.items())
    inverse, ones = np.linalg.inv(covariance + random), np.ones(len(y))
    level = float(ones @ inverse @ y / (ones @ inverse @ ones))
    wanted = level + random @ inverse @ (y - level)
    np.testing.assert_allclose(model.predict(X), wanted, atol=2e-3 * y.std())
