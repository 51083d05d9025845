"""Coefficients as people read them: identified, with the deviation of what is shown, beside statsmodels' GLM."""

import re
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from scipy.linalg import block_diag
from scipy.stats import chi2, f, f_oneway, norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tabsym import WideClassifier, WideRegressor, WideSGDClassifier, WideSGDRegressor
from tabsym.export import from_spec, to_spec
from tabsym.models.inspection import coef_table
from tabsym.solvers.newton import Newton, uncertainty
from tests.options import ADDITIVE, GLM

N = 1200
FAMILIES = {
    "squared_error": sm.families.Gaussian(),
    "poisson": sm.families.Poisson(),
    "gamma": sm.families.Gamma(sm.families.links.Log()),
    "logistic": sm.families.Binomial(),
}
SQUARED = {"loss": "squared_error"}
SUM = SQUARED | ADDITIVE
GRADIENTS = [{}, {"optimizer": "adam"}, {"gradient": "mean", "batch_size": 8}, {"average": True}, {"optimizer": "sgd"}]


def estimator(loss, **options):
    return WideClassifier(**options) if loss == "logistic" else WideRegressor(loss=loss, **options)


def trained(options):
    """A solved model where the options are of one, else one by gradient steps; fitted by the caller."""
    kind = WideRegressor if "count_effect" in options else WideSGDRegressor
    return kind(random_state=0, **options)


def made(loss, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.choice(list("pqrs"), N), "b": rng.choice(list("uvw"), N, p=[0.7, 0.2, 0.1])})
    X["x"] = rng.normal(3.0, 2.0, N)
    score = X["a"].map(dict(zip("pqrs", rng.normal(0, 0.5, 4)))) + X["b"].map(dict(zip("uvw", (0, 0.4, -0.3))))
    score = (score + 0.1 * X["x"]).to_numpy()
    offset, weight = rng.normal(0, 0.3, N), rng.uniform(0.5, 2.0, N)
    total = score + offset
    if loss == "squared_error":
        y = total + rng.normal(size=N)
    elif loss == "logistic":
        y = (rng.random(N) < 1 / (1 + np.exp(-total))).astype(int)
    else:
        y = rng.poisson(np.exp(total)).astype(float) if loss == "poisson" else rng.gamma(2.0, np.exp(total) / 2)
    return X, y, offset, weight / weight.mean()


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("loss", FAMILIES)
@pytest.mark.slow
def test_contrasts_and_slopes_are_those_of_a_glm(loss, weighted):
    """By default options: no tolerance is asked for."""
    X, y, offset, weight = made(loss)
    weight = weight if weighted else np.ones(N)
    model = estimator(loss, **GLM).fit(X, y, sample_weight=weight, offset=offset)
    glm = smf.glm("y ~ a + b + x", X.assign(y=y), family=FAMILIES[loss], offset=offset, var_weights=weight)
    fit = glm.fit(scale=1.0 if loss == "logistic" else "X2", tol=1e-12)
    test = fit.t_test("b[T.w] - b[T.v] = 0")
    for found, value, sd in (
        (model.contrast("a", "q", "p"), fit.params["a[T.q]"], fit.bse["a[T.q]"]),
        (model.contrast("b", "w", "v"), test.effect[0], test.sd[0, 0]),
        (model.coefs_["x"].iloc[0], fit.params["x"], fit.bse["x"]),
    ):
        assert found["value"] == pytest.approx(value, abs=1e-3 * sd)
        if loss in ("logistic", "poisson") or not weighted:
            assert found["sd"] == pytest.approx(sd, rel=1e-4)
    assert model.deviance_ == pytest.approx(fit.deviance, rel=1e-6)
    if loss != "logistic":
        assert model.dispersion_ == pytest.approx(fit.pearson_chi2 / (weight.sum() - 7), rel=1e-6)
    other = glm.fit(tol=1e-12, scale=fit.scale if loss == "gamma" else None)
    if loss == "squared_error":  # at the variance of maximum likelihood, and not at one of 1
        other = smf.wls("left ~ a + b + x", X.assign(left=y - offset), weights=weight).fit()
    assert model.aic_ == pytest.approx(other.aic, abs=1e-3)
    base = model.coef_table(base={"a": "p", "b": "u"}).set_index(["term", "category"])
    assert base.loc[("a", "r"), "value"] == pytest.approx(fit.params["a[T.r]"], abs=1e-3 * fit.bse["a[T.r]"])
    low, high = fit.conf_int().loc["a[T.r]"]
    if not weighted and loss != "squared_error":
        assert base.loc[("a", "r"), ["lower", "upper"]].tolist() == pytest.approx([low, high], abs=1e-3)
        assert base.loc[("a", "r"), "p"] == pytest.approx(fit.pvalues["a[T.r]"], abs=1e-3)
        assert base.loc[("a", "r"), "relativity"] == pytest.approx(np.exp(fit.params["a[T.r]"]), rel=1e-3)


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "logistic"])
def test_several_contrasts_are_those_of_a_glm(loss):
    X, y, _, _ = made(loss)
    model = estimator(loss, **GLM).fit(X, y)
    glm = smf.glm("y ~ a + b + x", X.assign(y=y), family=FAMILIES[loss])
    fit = glm.fit(scale=1.0 if loss == "logistic" else "X2", tol=1e-12, use_t=False)
    to_base = model.contrast("a", ["q", "r", "s"], "p", level=0.9)
    pairs = model.contrast("a", ["q", "r"], ["s", "q"], level=0.9)
    assert to_base.index.tolist() == ["q - p", "r - p", "s - p"]
    assert pairs.index.tolist() == ["q - s", "r - q"]
    for found, test in (
        (to_base, fit.t_test("a[T.q] = 0, a[T.r] = 0, a[T.s] = 0")),
        (pairs, fit.t_test("a[T.q] - a[T.s] = 0, a[T.r] - a[T.q] = 0")),
    ):
        wanted = np.column_stack([test.effect, test.sd, test.conf_int(alpha=0.1), test.pvalue])
        np.testing.assert_allclose(found[["value", "sd", "lower", "upper", "p"]], wanted, atol=1e-3)
    pd.testing.assert_series_equal(model.contrast("a", "r", "p", level=0.9), to_base.loc["r - p"], check_names=False)


def test_contrasts_of_classes_and_what_is_refused():
    X, y, _ = product()
    model = WideClassifier(**ADDITIVE).fit(X, pd.cut(y, 3, labels=list("lmh")).astype(str))
    found = model.contrast("s", ["b", "c"], "a")
    assert found.index.tolist() == [(f"{one} - a", label) for one in "bc" for label in "hlm"]
    pd.testing.assert_frame_equal(found.loc["c - a"], model.contrast("s", "c", "a"), check_names=False)
    for a, b, words in (
        (["b"], ["a", "c"], "a holds 1 category and b 2"),
        ("b", ["a"], "give a list for a"),
        ([], "a", "no cat"),
    ):
        with pytest.raises(ValueError, match=words):
            model.contrast("s", a, b)
    with pytest.raises(ValueError, match="level=95 is not possible"):
        model.contrast("s", "a", "b", level=95)


@pytest.mark.parametrize(("n", "shown"), [(5, "'a', 'b', 'c', 'd', 'e'."), (6, "'a', 'b', 'c', 'd', 'e', ...")])
def test_an_unknown_category_is_told_the_first_five(n, shown):
    X = pd.DataFrame({"k": list("abcdef")[:n] * 20})
    model = WideRegressor(**SQUARED, **GLM).fit(X, np.arange(len(X)) % n * 1.0)
    with pytest.raises(ValueError, match=re.escape(f"Term 'k' has no category 'z'; it has {shown}")):
        model.contrast("k", "z", "a")


@pytest.mark.parametrize("loss", ["poisson", "logistic", "tweedie"])
@pytest.mark.parametrize("one_matrix", [True, False])
@pytest.mark.parametrize("tol", [1e-3, 1e-5, 1e-9])
def test_what_a_separated_category_is_compared_with_has_an_infinite_deviation(loss, one_matrix, tol, monkeypatch):
    """With a small tolerance no information is left on it, so that its deviation is infinite by itself."""
    if not one_matrix:
        monkeypatch.setattr(uncertainty, "MAX_COEFS", 0)
    X, y, _, _ = made(loss)
    y = np.where(X["a"] == "q", 0, y)
    with pytest.warns(ConvergenceWarning, match="'a' separates the target .* with infinite standard deviations"):
        model = estimator(loss, **GLM, tol=tol).fit(X, y)
    kept = (X["a"] != "q").to_numpy()  # rows that the limit is decided by
    rest = estimator(loss, **GLM).fit(X[kept], y[kept])
    table = model.coef_table(base={"a": "p", "b": "u"}).set_index(["term", "category"])
    wanted = rest.coef_table(base={"a": "p", "b": "u"}).set_index(["term", "category"])
    q = table.loc[("a", "q")]
    assert (q["sd"], q["lower"], q["upper"]) == (np.inf, -np.inf, np.inf) and np.isnan(q["p"])
    rows = wanted.index if one_matrix else wanted.index[:-1]  # the intercept, without its covariance with the term
    scale = np.sqrt(rest.dispersion_ / model.dispersion_)
    np.testing.assert_allclose(table.loc[rows, "value"], wanted.loc[rows, "value"], atol=2e-3)
    np.testing.assert_allclose(scale * table.loc[rows, "sd"], wanted.loc[rows, "sd"], rtol=1e-2)
    assert np.isinf(model.coefs_["a"]["sd"]).all() and np.isfinite(model.coefs_["b"]["sd"]).all()
    assert np.isinf(model.contrast("a", "q", "r")["sd"]) and model.contrast("a", "s", "r")["sd"] < 1.0
    assert "separation: without a penalty the estimates of a are infinite" in model.summary()
    assert np.isnan(model.term_table().loc["a", "p"]) and model.term_table().loc["b", "p"] < 1.0


@pytest.mark.parametrize("one_matrix", [True, False])
@pytest.mark.parametrize(("formula", "times"), [("b[1] + u[1] * x", (1, 1)), ("2 * b[1] + 3 * u[1] * x", (2, 3))])
def test_deviations_beside_a_slope_are_those_of_least_squares(formula, times, one_matrix, monkeypatch):
    """The slope's column is centred in training, which goes to a constant that may have a factor of its own."""
    if not one_matrix:
        monkeypatch.setattr(uncertainty, "MAX_COEFS", 0)
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(3.0, 1.0, 200)})
    y = 1.0 + 2.0 * X["x"] + rng.normal(size=200)
    model, wanted = WideRegressor(**SQUARED, formula=formula, alpha=0).fit(X, y), sm.OLS(y, sm.add_constant(X)).fit()
    found = np.array([model.coefs_[name][["value", "sd"]].iloc[0] for name in "bu"]) * np.array(times)[:, None]
    np.testing.assert_allclose(found, np.column_stack([wanted.params, wanted.bse]), rtol=1e-6)


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "logistic"])
def test_the_intercept_of_base_categories_is_that_of_a_glm(loss):
    """A treatment contrast's intercept; it stayed at the means of the terms."""
    X, y, _, _ = made(loss)
    model = estimator(loss, **GLM).fit(X, y)
    glm = smf.glm("y ~ C(a, Treatment('q')) + C(b, Treatment('v')) + x", X.assign(y=y), family=FAMILIES[loss])
    fit = glm.fit(scale=1.0 if loss == "logistic" else "X2", tol=1e-12)
    found = model.coef_table(base={"a": "q", "b": "v"}).set_index("term").loc["(intercept)"]
    assert found["value"] == pytest.approx(fit.params["Intercept"], abs=1e-3 * fit.bse["Intercept"])
    assert found["sd"] == pytest.approx(fit.bse["Intercept"], rel=1e-4)
    assert [found["lower"], found["upper"]] == pytest.approx(norm.interval(0.95, found["value"], found["sd"]))
    with pytest.raises(ValueError, match="base names 'x', which has one coefficient and no categories"):
        model.coef_table(base={"x": None})


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "logistic"])
def test_wald_tests_of_terms_are_those_of_a_glm(loss):
    X, y, offset, _ = made(loss)
    found = estimator(loss, **GLM).fit(X, y, offset=offset).term_table()
    glm = smf.glm("y ~ a + b + x", X.assign(y=y), family=FAMILIES[loss], offset=offset)
    fit = glm.fit(scale=1.0 if loss == "logistic" else "X2", tol=1e-12, use_t=loss != "logistic")
    wanted = fit.wald_test_terms(scalar=True).table.loc[["a", "b", "x"]]
    assert set(found.index) == {"a", "b", "x"}  # without the intercept
    found, df = found.loc[wanted.index], wanted["df_constraint"].to_numpy(dtype=float)
    statistic = found["statistic"] * (df if loss == "logistic" else 1.0)
    np.testing.assert_allclose(statistic, wanted["statistic"].astype(float), rtol=1e-3)
    np.testing.assert_allclose(found[["edf", "df"]], np.column_stack([df, df]), rtol=1e-6)
    np.testing.assert_allclose(found["p"], wanted["pvalue"].astype(float), rtol=5e-3)
    assert found["df_residual"].isna().all() if loss == "logistic" else (found["df_residual"] == N - 7).all()


def test_the_test_of_groups_of_equal_size_is_the_analysis_of_variance():
    """However strong the penalty is."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"g": np.repeat([f"g{i:02}" for i in range(12)], 20)})
    y = 0.3 * rng.normal(size=12).repeat(20) + rng.normal(size=240)
    wanted = f_oneway(*y.reshape(12, 20))
    for alpha in (0.0, "auto", 0.5):
        found = WideRegressor(**SUM | {"alpha": alpha}, tol=1e-6).fit(X, y)
        row, scale = found.term_table().loc["g"], found.dispersion_ / (y.reshape(12, 20).var(axis=1, ddof=1).mean())
        assert row["df"] == pytest.approx(11.0)
        assert row["statistic"] * scale == pytest.approx(wanted.statistic, rel=1e-4)
    row = WideRegressor(**SUM | {"alpha": 0.0}).fit(X, y).term_table().loc["g"]
    assert row["p"] == pytest.approx(wanted.pvalue, rel=1e-4)


@pytest.mark.parametrize("one_matrix", [True, False])
def test_tests_of_random_effects_beside_dense_algebra(monkeypatch, one_matrix):
    """The covariance of the coefficients of a term without an effect, by the marginal one of the target."""
    if not one_matrix:
        monkeypatch.setattr(uncertainty, "MAX_COEFS", 0)
    rng = np.random.default_rng(0)
    n, q = 900, 130
    codes, small = np.r_[np.arange(q), rng.integers(0, q, n - q)], rng.choice(list("pqr"), n)
    X = pd.DataFrame({"big": [f"{one:04}" for one in codes], "c": small, "x": rng.normal(size=n)})
    y = 0.6 * rng.normal(size=q)[codes] + 0.5 * (small == "p") + rng.normal(size=n)
    model = WideRegressor(**SUM, tol=1e-6, max_iter=2000).fit(X, y)
    phi, variance = model.dispersion_, model.variances_["variance"]
    blocks = {"x": X[["x"]].to_numpy(), "c": dummies(X["c"], list("pqr"))}
    blocks["big"] = dummies(X["big"], sorted(set(X["big"])))
    design, prior, marginal, at = [np.ones((n, 1))], [0.0], {}, {}
    for name, own in blocks.items():
        at[name] = slice(len(prior), len(prior) + own.shape[1])
        prior += [phi / variance[name] if name in variance.index else 0.0] * own.shape[1]
        design.append(own)
        marginal[name] = variance[name] * own @ own.T if name in variance.index else np.zeros((n, n))
    design = np.column_stack(design)
    hat = np.linalg.solve(design.T @ design + np.diag(prior), design.T)
    covariance = phi * np.linalg.inv(design.T @ design + np.diag(prior))
    table = model.term_table()
    for name, own in at.items():
        others = phi * np.eye(n) + sum(marginal[one] for one in blocks if one != name)
        width = own.stop - own.start
        mean = np.eye(width) - (1.0 / width if width > 1 else 0.0)
        inverse = np.linalg.pinv(mean @ covariance[own, own] @ mean, hermitian=True, rcond=1e-10)
        weights = np.linalg.eigvals(inverse @ mean @ hat[own] @ others @ hat[own].T @ mean).real
        theta = mean @ hat[own] @ y
        edf, df = weights.sum(), weights.sum() ** 2 / np.square(weights).sum()
        assert table.loc[name, "statistic"] == pytest.approx(theta @ inverse @ theta / edf, rel=2e-3)
        assert table.loc[name, "df"] == pytest.approx(df, rel=2e-3)


@pytest.mark.parametrize("alpha", [1e-6, 0.02, "auto"])
@pytest.mark.parametrize("loss", FAMILIES)
def test_degrees_of_freedom_of_terms_that_overlap_are_counted_once(loss, alpha):
    """Of an interaction and its main effects, against the trace of the dense hat matrix."""
    X, y, offset, weight = made(loss)
    X, y, offset, weight = X[:300], y[:300], offset[:300], weight[:300] / weight[:300].mean()
    options = ADDITIVE | {"interactions": [("a", "b")], "alpha": alpha, "tol": 1e-7, "max_iter": 2000}
    model = estimator(loss, **options).fit(X, y, sample_weight=weight, offset=offset)
    margins = model.decision_function(X, offset=offset) if loss == "logistic" else model.predict(X, offset=offset)
    mean = 1.0 / (1.0 + np.exp(-margins)) if loss == "logistic" else margins
    variance = {"logistic": mean * (1.0 - mean), "poisson": mean, "gamma": mean**2}.get(loss, np.ones(300))
    columns = {"a": X["a"], "b": X["b"], "a:b": X["a"] + X["b"]}
    columns = {name: own for name, own in columns.items() if model.variances_.loc[name, "variance"] > 0.0}
    blocks = [dummies(own, sorted(set(own))) for own in columns.values()]
    design = np.column_stack([np.ones(300), X["x"] - X["x"].mean(), *blocks])
    curvature = weight * (np.ones(300) if loss == "gamma" else variance)  # expected
    information = design.T @ (curvature[:, None] * design)
    working = model.model_.uncertainty.working if loss != "logistic" else np.square(weight).mean()
    found = [300 * alpha] * len(blocks) if alpha != "auto" else working / model.variances_.loc[[*columns], "variance"]
    held = np.diag(np.repeat([0.0, *found], [2, *(own.shape[1] for own in blocks)]))
    edf = np.trace(np.linalg.pinv(information + held, hermitian=True, rcond=1e-12) @ information)
    if loss != "logistic":
        pearson = weight @ (np.square(y - mean) / variance)
        fletcher = weight @ ((y - mean) / mean) / 300 if loss == "poisson" else 0.0
        assert model.dispersion_ == pytest.approx(pearson / (300 - edf) / (1.0 + fletcher), rel=1e-4)
        np.testing.assert_allclose(model.term_table()["df_residual"].dropna(), 300 - edf, rtol=1e-4)
    assert model.bic_ - model.aic_ == pytest.approx((np.log(300) - 2.0) * edf, rel=1e-4)


@pytest.mark.slow
def test_wald_tests_of_terms_without_an_effect_are_small_as_often_as_they_say():
    """Of a categorical column and a smooth; a term that is dropped has no p."""
    found = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        g, h = rng.choice(12, 300, p=rng.dirichlet(np.ones(12))), rng.integers(0, 6, 300)
        X = pd.DataFrame({"g": np.char.add("g", g.astype(str)), "h": np.char.add("h", h.astype(str))})
        X["z"] = rng.normal(size=300)
        y = 0.5 * rng.normal(size=6)[h] + rng.normal(size=300)
        found.append(WideRegressor(**SUM | {"numeric": "smooth"}).fit(X, y).term_table()["p"])
    p = pd.DataFrame(found)
    assert p["h"].lt(0.01).mean() > 0.9
    for name in "gz":
        assert p[name].isna().mean() > 0.3
        for level in (0.05, 0.2):
            assert abs(p[name].lt(level).mean() - level) < 4 * np.sqrt(level * (1 - level) / 150)


def test_terms_that_have_no_test_say_nan():
    X, y, truth = product()
    assert WideRegressor("g[s]*h[c]", **SQUARED).fit(X, y).term_table()["p"].isna().all()
    three = WideClassifier(**ADDITIVE).fit(X, pd.cut(y, 3, labels=list("lmh")).astype(str))
    assert three.term_table()["p"].isna().all()
    fixed = WideRegressor(**SUM, fixed={"s": truth}).fit(X, y).term_table()
    assert np.isnan(fixed.loc["s", "p"]) and fixed.loc["c", "p"] < 1e-6
    with pytest.raises(AttributeError, match="term_table is there after a fit of WideClassifier or WideRegressor"):
        WideSGDRegressor(random_state=0).fit(X, y).term_table()


@pytest.mark.parametrize("base", ["largest", {"a": "q"}, {"a": "q", "b": "v"}])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (WideRegressor, ADDITIVE | {"loss": "poisson"}),
        (WideRegressor, SUM | {"interactions": "pairwise"}),
        (WideClassifier, ADDITIVE),
        (WideSGDRegressor, {"random_state": 0}),
        (WideRegressor, {"formula": "a[a] + b[b] + v[b]*x + x[1]*x + c[1]", "loss": "squared_error"}),
    ],
)
def test_values_from_a_base_and_the_intercept_add_up_to_the_linear_predictor(kind, options, base):
    X, y, _, _ = made("poisson")
    y = np.minimum(y, 2) if kind is WideClassifier else y
    model = kind(**options).fit(X, y)
    wanted = (
        model.explain(X).T.groupby(level="class", sort=False).sum().T
        if kind is WideClassifier
        else (model.explain(X).sum(axis=1).to_frame())
    )
    table = model.coef_table(base=base)
    table["class"] = table.get("class", "all")
    totals = []
    for _, own in table.groupby("class", sort=False):
        values = own.set_index(["term", "category"])["value"]
        total = np.full(N, values[own["term"].isin(["(intercept)", "c"]).to_numpy()].iloc[0])
        pairs = pd.Series(list(zip(X["a"], X["b"])))
        for name, keys in {"a": X["a"], "b": X["b"], "v": X["b"], "a:b": pairs}.items():
            if name in values.index.get_level_values(0):
                total += keys.map(values[name].to_dict()).to_numpy() * (X["x"].to_numpy() if name == "v" else 1.0)
        totals.append(total + X["x"].to_numpy() * values["x"].iloc[0])
    np.testing.assert_allclose(np.column_stack(totals), wanted.to_numpy(), atol=1e-8)


NO_HOME = "base names 'v'.* can take up that of a base category; leave it out, and compare its categories by contrast"


@pytest.mark.parametrize("formula", ["v[a]*x + c[1]", "v[a]*x + w[a]", "v[a] + w[b]", "v[a]*w[b] + c[1]"])
def test_terms_whose_base_nothing_can_take_up_keep_their_values(formula):
    X, y, _, _ = made("poisson")
    counts = {} if "*w[b]" in formula else {"count_effect": False}  # which a penalized formula has an intercept beside
    model = WideRegressor(formula, loss="squared_error", **counts).fit(X, y)
    pd.testing.assert_frame_equal(model.coef_table(base="largest"), model.coef_table())
    with pytest.raises(ValueError, match=NO_HOME):
        model.coef_table(base={"v": X["a"].iloc[0]})
    base, other = list(model.coefs_["v"].index[:2])
    value = model.coefs_["v"]["value"]
    assert model.contrast("v", other, base)["value"] == pytest.approx(value[other] - value[base])


def test_effects_of_classes_without_an_intercept_add_up_from_the_largest():
    X, y, _, _ = made("poisson")
    model = WideClassifier("v[a] + w[b]", count_effect=False).fit(X, np.minimum(y, 1))
    with pytest.raises(ValueError, match=NO_HOME):
        model.coef_table(base={"v": X["a"].iloc[0]})
    value = model.coef_table(base="largest").set_index(["term", "category"])["value"]
    total = X["a"].map(value["v"].to_dict()) + X["b"].map(value["w"].to_dict())
    np.testing.assert_allclose(total, model.decision_function(X), atol=1e-9)


def test_a_base_that_differences_cancel_needs_no_intercept():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"home": rng.choice(list("abcd"), 200), "away": rng.choice(list("abcd"), 200)})
    power = {"a": 1.0, "b": 0.5, "c": -0.5, "d": -1.0}
    y = X["home"].map(power) - X["away"].map(power) + rng.normal(size=200)
    model = WideRegressor("w[home] - w[away]", loss="squared_error").fit(X, y)
    value = model.coef_table(base={"w": "b"}).set_index("category")["value"].to_dict()
    assert value["b"] == 0.0
    np.testing.assert_allclose(X["home"].map(value) - X["away"].map(value), model.predict(X), atol=1e-9)


@pytest.mark.slow
def test_the_intercept_of_base_categories_has_the_deviation_of_the_prediction_there():
    """Beside dense algebra, where effects are random; from samples; and nearly, where a matrix would be too large."""
    rng = np.random.default_rng(0)
    n, q = 6000, 30
    codes = rng.integers(0, q, n)
    X = pd.DataFrame({"g": [f"{one:04}" for one in codes], "c": rng.choice(list("pqr"), n)})
    y = rng.normal(size=q)[codes] + (X["c"] == "p") + rng.normal(size=n)
    base = {"g": "0003", "c": "p"}

    def deviations(model, keys):
        design = np.column_stack([np.ones((n, 1)), dummies(X["c"], list("pqr")), dummies(X["g"], keys)])
        held = model.dispersion_ / model.variances_["variance"]
        penalty = np.diag(np.r_[0.0, np.full(3, held["c"]), np.full(len(keys), held["g"])])
        row = np.r_[1.0, 1.0, 0.0, 0.0, np.array(keys) == "0003"]
        return np.sqrt(model.dispersion_ * row @ np.linalg.solve(design.T @ design + penalty, row))

    def found(model):
        return model.coef_table(base=base).set_index("term").loc["(intercept)", "sd"]

    keys = [f"{one:04}" for one in range(q)]
    model = WideRegressor(**SUM, tol=1e-6, max_iter=2000).fit(X, y)
    assert found(model) == pytest.approx(deviations(model, keys), rel=1e-4)
    drawn = WideRegressor(**SUM, n_posterior_samples=1000).fit(X, y)
    assert found(drawn) == pytest.approx(deviations(drawn, keys), rel=0.1)
    codes = np.r_[np.arange(900), rng.integers(0, 900, n - 900)]
    X["g"], y = [f"{one:04}" for one in codes], rng.normal(size=900)[codes] + (X["c"] == "p") + rng.normal(size=n)
    large = WideRegressor(**SUM).fit(X, y)
    assert found(large) == pytest.approx(deviations(large, [f"{one:04}" for one in range(900)]), rel=0.05)


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "logistic"])
@pytest.mark.parametrize("options", [GLM, ADDITIVE, ADDITIVE | {"numeric": "smooth"}])
def test_totals_add_up(loss, options):
    X, y, offset, weight = made(loss, 1)
    model = estimator(loss, **options).fit(X, y, sample_weight=weight, offset=offset)
    mean = model.predict_proba(X, offset=offset)[:, 1] if loss == "logistic" else model.predict(X, offset=offset)
    assert weight @ mean == pytest.approx(weight @ y, rel=1e-6)


def sparse_effect(share, n=1000):
    rng = np.random.default_rng(0)
    k = np.where(rng.random(n) < share, "van", "car")
    return pd.DataFrame({"k": k, "z": rng.choice(["FR", "IT", "ES"], n)}), np.where(k == "van", 20.0, 10.0)


@pytest.mark.parametrize("options", [*GRADIENTS, SQUARED | GLM, SUM], ids=str)
@pytest.mark.parametrize("constant", [False, True])
def test_an_unknown_category_of_a_column_that_says_nothing_moves_nothing(options, constant):
    X, y = sparse_effect(0.9)
    if constant:
        X["z"] = "FR"
    model = trained(options).fit(X, y)
    assert model.predict(pd.DataFrame({"k": ["van"], "z": ["DE"]})) == pytest.approx(20.0, abs=0.05)
    if options != SUM:
        for term in "kz":
            frame = model.coefs_[term]
            assert np.average(frame["value"], weights=frame["rows"]) == pytest.approx(0.0, abs=1e-9)
    else:
        assert model.coefs_["k"]["value"].mean() == pytest.approx(0.0, abs=1e-9)


def test_an_unknown_category_in_a_stream_moves_nothing():
    X, y = sparse_effect(0.9)
    model = WideSGDRegressor(random_state=0)
    for part in range(5):
        model.partial_fit(X[part::5], y[part::5])
    assert model.predict(pd.DataFrame({"k": ["van"], "z": ["DE"]})) == pytest.approx(20.0, abs=0.3)
    assert np.average(model.coefs_["z"]["value"], weights=model.coefs_["z"]["rows"]) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("options", GRADIENTS, ids=str)
def test_a_number_that_training_lacked_is_no_shift_where_it_is_there(options):
    """Its flag of missing values was on in all rows: it is a part of the intercept."""
    X, y = sparse_effect(0.5)
    X = X.assign(n=np.where(np.arange(len(X)) % 2, np.nan, np.nan))
    model = WideSGDRegressor(random_state=0, **options).fit(X, y)
    new = pd.DataFrame({"k": ["van"], "z": ["FR"], "n": [1.0]})
    assert model.predict(new) == pytest.approx(20.0, abs=0.1)


def test_deviations_of_two_categories_are_those_of_their_difference():
    """177 standard errors were drawn as one: the level of a term is the intercept's."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"fuel": rng.choice(["petrol", "diesel"], 5000), "z": rng.choice(list("abcdefgh"), 5000)})
    y = 100 + 5 * (X["fuel"] == "diesel") + rng.normal(size=5000)
    model = WideRegressor(**SUM).fit(X, y)
    assert model.contrast("fuel", "diesel", "petrol")["sd"] == pytest.approx(2 / np.sqrt(5000), rel=0.02)
    assert model.coefs_["fuel"]["sd"].to_numpy() == pytest.approx(1 / np.sqrt(5000), rel=0.02)


def test_a_term_that_is_switched_off_does_not_claim_certainty():
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"a": rng.choice(list("abcdef"), 3000), "id": np.arange(3000).astype(str)})
    model = WideRegressor(**SUM).fit(X, rng.normal(size=3000) + (X["a"] == "a"))
    assert model.variances_.loc["id", "variance"] == 0.0
    assert model.coefs_["id"]["sd"].isna().all()
    assert "id" not in model.explain(X.head(2))
    assert "dropped (variance estimated as 0)" in model.summary()
    assert np.isnan(model.contrast("id", "0", "1")["sd"])


def product(seed=0, n=600):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"s": rng.choice(list("abcd"), n), "c": rng.choice(["red", "blue", "rust"], n)})
    s, c = dict(zip("abcd", (1, 0.5, 1.5, 2.0))), {"red": 1, "blue": 1.5, "rust": 0.6}
    return X, (5 * X["s"].map(s) * X["c"].map(c)).to_numpy() + rng.normal(size=n), s


@pytest.mark.parametrize(
    ("kind", "options"),
    [(WideSGDRegressor, {}), (WideRegressor, SQUARED | {"alpha": 0.0}), (WideRegressor, SQUARED)],
)
def test_factors_of_a_product_have_mean_1_and_one_scale(kind, options):
    X, y, _ = product()
    model = kind("g[s]*h[c]", random_state=0, **options).fit(X, y)
    for term in "gh":
        frame = model.coefs_[term]
        assert np.average(frame["value"], weights=frame["rows"]) == pytest.approx(1.0)
    scale = model.coefs_["scale of g*h"]["value"].iloc[0]
    assert scale == pytest.approx(y.mean(), rel=0.1)
    read = scale * model.coefs_["g"]["value"][X["s"]].to_numpy() * model.coefs_["h"]["value"][X["c"]].to_numpy()
    np.testing.assert_allclose(model.predict(X), read, rtol=1e-9)
    np.testing.assert_allclose(model.with_coefs(model.coefs_).predict(X), read, rtol=1e-9)
    again = WideSGDRegressor("g[s]*h[c]", coef_init=model.coefs_, max_iter=1, learning_rate=1e-12).fit(X, y)
    np.testing.assert_allclose(again.predict(X), read, rtol=1e-6)


def test_a_factor_that_is_squared_is_so_in_the_scale_too():
    X, y, _ = product()
    model = WideSGDRegressor("g[s]*h[c]*h[c]", random_state=0).fit(X, y)
    (scale,) = [model.coefs_[name]["value"].iloc[0] for name in model.coefs_ if name.startswith("scale of")]
    read = scale * model.coefs_["g"]["value"][X["s"]].to_numpy() * model.coefs_["h"]["value"][X["c"]].to_numpy() ** 2
    np.testing.assert_allclose(model.predict(X), read, rtol=1e-9)
    for term in "gh":
        frame = model.coefs_[term]
        assert np.average(frame["value"], weights=frame["rows"]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("kind", "formula"),
    [
        (WideClassifier, "g[s]*h[c] + b[1]"),
        (WideClassifier, "t[1]*g[s]*h[c] + b[1]"),
        (WideClassifier, "g[s]*h[c]*x + b[1]"),
        (WideSGDClassifier, "g[s]*h[c] + b[1]"),
        (WideSGDClassifier, "t[1]*g[s]*h[c] + b[1]"),
    ],
)
def test_factors_of_a_product_have_mean_1_and_one_scale_for_each_class(kind, formula):
    X, y, _ = product(n=900)
    X["x"] = np.random.default_rng(1).normal(2.0, 0.5, 900)
    labels = np.array(["low", "mid", "high"])[np.digitize(y * X["x"] / 2.0, [3.0, 7.0])]
    options = {"alpha": 0.01} if kind is WideClassifier else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = kind(formula, random_state=0, **options).fit(X, labels)
    classes = model.classes_.tolist()
    for term in "gh":
        frame = model.coefs_[term]
        for label in classes:
            assert np.average(frame[label], weights=frame["rows"]) == pytest.approx(1.0)
    (name,) = [one for one in model.coefs_ if one.startswith("scale of ")]
    scale = model.coefs_[name][classes].to_numpy()
    read = scale * model.coefs_["g"][classes].loc[X["s"]].to_numpy() * model.coefs_["h"][classes].loc[X["c"]].to_numpy()
    if formula.startswith("t"):
        assert (model.coefs_["t"][classes] == 1.0).all(axis=None)
        assert not model.coefs_["t"].isna().any(axis=None)
    read = (read * X[["x"]].to_numpy() if "x" in formula else read) + model.coefs_["b"][classes].to_numpy()
    shown = model.decision_function(X)
    differences = (read - read[:, :1]) - (shown - shown[:, :1])
    np.testing.assert_allclose(differences, 0.0, atol=1e-9)
    np.testing.assert_allclose(model.with_coefs(model.coefs_).predict_proba(X), model.predict_proba(X), atol=1e-12)
    halved = model.with_coefs({name: model.coefs_[name] / 2}).decision_function(X)
    rest = model.coefs_["b"][classes].to_numpy()
    expected = (read - rest) / 2 + rest
    np.testing.assert_allclose(halved - halved[:, :1], expected - expected[:, :1], atol=1e-9)


@pytest.mark.parametrize("alpha", [1e-3, 1e-2])
def test_deviations_of_factors_of_classes_are_joint(alpha):
    """Beside dense algebra: Gauss-Newton's information of all classes, and the delta method for factors over their
    mean. Given the other classes they were two to four times too small.
    """
    rng, n, k = np.random.default_rng(0), 2000, 3
    X = pd.DataFrame({"s": rng.choice(list("abcd"), n, p=[0.4, 0.3, 0.2, 0.1]), "c": rng.choice(["x", "y", "z"], n)})
    first = X["s"].map(dict(zip("abcd", (1, 1.5, 0.5, 1.2)))) * X["c"].map(dict(zip("xyz", (1, 1.5, 0.6))))
    second = X["s"].map(dict(zip("abcd", (1, 0.7, 1.3, 1)))) * X["c"].map(dict(zip("xyz", (1.2, 0.8, 1.0))))
    chance = np.exp(np.column_stack([first, 0.8 * second, -first]))
    chance /= chance.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > chance.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    model = WideClassifier("g[s]*h[c] + b[1]", alpha=alpha, random_state=0).fit(X, y)
    spec, theta = model.model_.spec, model.model_.theta
    assert "scale of g*h" in model.coefs_
    own = {block.name: spec.coefs(index) for index, block in enumerate(spec.blocks)}
    rows = {name: (X[column].to_numpy()[:, None] == model.coefs_[name].index.to_numpy()).astype(float)
            for name, column in (("g", "s"), ("h", "c"))}  # fmt: skip
    weights = {name: one.mean(axis=0) for name, one in rows.items()}

    def linear(z):
        t = z.reshape(-1, k)
        return (rows["g"] @ t[own["g"]] * (rows["h"] @ t[own["h"]]) + t[own["b"]]).ravel()

    def shown(z):
        t = z.reshape(-1, k).copy()
        for name in "gh":
            t[own[name]] /= weights[name] @ t[own[name]]
        return t.ravel()

    def slopes(function, z):
        steps = 1e-6 * np.eye(len(z))
        return np.array([(function(z + step) - function(z - step)) / 2e-6 for step in steps]).T

    z = theta.ravel()
    by = slopes(linear, z).reshape(n, k, -1)
    fitted = model.predict_proba(X)
    between = np.einsum("nkp,nk->np", by, fitted)
    information = np.einsum("nkp,nk,nkq->pq", by, fitted, by) - between.T @ between
    penalty = np.zeros_like(theta)
    penalty[own["g"]] = penalty[own["h"]] = alpha * n
    covariance = np.linalg.pinv(information + np.diag(penalty.ravel()), rcond=1e-9)
    jacobian = slopes(shown, z)
    wanted = np.sqrt(np.diag(jacobian @ covariance @ jacobian.T)).reshape(-1, k)
    for name in "gh":
        found = model.coefs_[name][[f"sd {label}" for label in model.classes_]].to_numpy()
        np.testing.assert_allclose(found, wanted[own[name]], rtol=0.02)


@pytest.mark.slow
def test_deviations_of_factors_cover_the_truth():
    scores = []
    for seed in range(40):
        X, y, truth = product(seed, 300)
        frame = WideRegressor("g[s]*h[c]", alpha=0.0, **SQUARED).fit(X, y).coefs_["g"]
        mean = X["s"].map(truth).mean()
        scores += [(frame.loc[key, "value"] - truth[key] / mean) / frame.loc[key, "sd"] for key in "abcd"]
    assert np.std(scores) == pytest.approx(1.0, abs=0.15)


def test_slopes_of_explanations_count_from_the_mean():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"c": rng.choice(list("ab"), 3000), "year": rng.integers(1990, 2020, 3000)})
    y = 100 + 3 * (X["year"] - 2005) + 5 * (X["c"] == "a")
    for model in (WideSGDRegressor(), WideRegressor(**SUM)):
        model.fit(X, y)
        parts = model.explain(X)
        np.testing.assert_allclose(parts.sum(axis=1), model.predict(X), rtol=1e-9)
        assert parts["year"].mean() == pytest.approx(0.0, abs=1e-6)
        assert parts["(intercept)"].iloc[0] == pytest.approx(y.mean(), abs=0.5)


def test_bins_have_exact_bounds_and_are_found_by_a_number():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": np.where(rng.random(2000) < 0.1, np.nan, rng.normal(size=2000))})
    model = WideRegressor(**SUM | {"numeric": "smooth"}).fit(X, np.sin(X["x"].fillna(0)))
    frame = model.coefs_["x"]
    assert np.isnan(frame["low"].iloc[0])
    assert (frame["low"].iloc[1], frame["high"].iloc[-1]) == (-np.inf, np.inf)
    assert (frame["high"].iloc[1:-1].to_numpy() == frame["low"].iloc[2:].to_numpy()).all()
    inside = X["x"].between(frame["low"].iloc[5], frame["high"].iloc[5], inclusive="right")
    assert inside.sum() == frame["rows"].iloc[5]
    value = model.contrast("x", 1.0, -1.0)["value"]
    assert value == pytest.approx(np.subtract(*model.predict(pd.DataFrame({"x": [1.0, -1.0]}))))


def test_a_combination_of_an_interaction_is_found_by_numbers_in_bins_and_by_labels():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"g": rng.choice(list("ab"), 900), "x": np.where(np.arange(900) % 9, rng.uniform(0, 9, 900), np.nan)}
    )
    X["h"] = rng.choice(list("uv"), 900)
    y = np.where((X["g"] == "a") & (X["x"] > 4), 2.0, 0.0) + rng.normal(size=900)
    options = {"interactions": [("g", "x"), ("h", "g", "x")], "numeric": {"x": [4.0]}, "count_effect": False}
    model = WideRegressor(**SQUARED, **options, alpha=0.1).fit(X, y)
    for term, key in (("g:x", ("a",)), ("h:g:x", ("u", "a"))):
        for number, label in ((4.0, "]-inf; 4]"), (np.nextafter(4.0, 5.0), "]4; +inf["), (np.nan, "Missing")):
            frame = model.coefs_[term]
            wanted = frame.loc[(*key, label), "value"] - frame.loc[(*key[:-1], "b", label), "value"]
            for one in (number, label):
                assert model.contrast(term, (*key, one), (*key[:-1], "b", one))["value"] == pytest.approx(wanted)
    table = model.coef_table(base={"g:x": ("a", 7)}).set_index(["term", "category"])
    assert table["value"].to_dict()["g:x", ("a", "]4; +inf[")] == 0.0  # pandas 2 takes the tuple for two categories
    changed = model.with_coefs({"g:x": {("a", 7): 5.0}})
    assert changed.coefs_["g:x"].loc[("a", "]4; +inf["), "value"] == pytest.approx(5.0)
    with pytest.raises(ValueError, match=r"Term 'g:x' has no category \('c', '\]4; \+inf\['\)"):
        model.contrast("g:x", ("c", 7), ("a", 7))


def test_coefficients_of_ones_own_predict():
    X, y = sparse_effect(0.9)
    model = WideRegressor(**SQUARED, **GLM).fit(X, y)
    own = model.with_coefs({"(intercept)": 1.0, "k": {"van": 2.0, "car": -2.0}, "z": {"FR": 0.5}})
    assert own.predict(pd.DataFrame({"k": ["van"], "z": ["FR"]})) == pytest.approx(3.5)
    assert model.predict(pd.DataFrame({"k": ["van"], "z": ["FR"]})) == pytest.approx(20.0)
    with pytest.raises(ValueError, match="no category 'bus'"):
        model.with_coefs({"k": {"bus": 1.0}})
    with pytest.raises(ValueError, match="no term 'kk'"):
        model.with_coefs({"kk": 1.0})
    with pytest.raises(ValueError, match="no term 'kk'"):
        model.contrast("kk", "a", "b")
    for wrong in (np.nan, "high", None):
        with pytest.raises(ValueError, match=r"coefs\['k'\] holds no finite number for 'van'; give one"):
            model.with_coefs({"k": {"van": wrong}})
    with pytest.raises(ValueError, match=r"coefs\['k'\] holds 3 numbers for 'van'; give 1, or one for all"):
        model.with_coefs({"k": {"van": [1.0, 2.0, 3.0]}})
    for key in ({"van": 1}, np.array([1, 2]), ["bus"], "bus"):
        with pytest.raises(ValueError, match="Term 'k' has no category"):
            model.contrast("k", key, "car")


# -- codes and rows -----------------------------------------------------------------------


def test_whole_numbers_that_look_like_codes_are_told_of():
    rng = np.random.default_rng(0)
    codes = rng.choice(np.arange(10_000, 90_000, 997), 2000)
    y = rng.normal(size=90_000)[codes] + rng.normal(size=2000)
    with pytest.warns(
        UserWarning, match=r"'shop' holds whole numbers that look like codes.*categorical_features=\['c', 'shop'\]"
    ):
        WideSGDRegressor().fit(pd.DataFrame({"shop": codes, "c": rng.choice(list("ab"), 2000)}), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WideSGDRegressor(categorical_features="all").fit(pd.DataFrame({"shop": codes}), y)
        WideSGDRegressor().fit(pd.DataFrame({"shop": codes.astype(str)}), y)
        WideSGDRegressor().fit(pd.DataFrame({"amount": codes}), codes / 1000 + rng.normal(size=2000))


def _rounded(number, decimal, thousands=""):
    return f"{number:,.2f}".translate(str.maketrans({",": thousands, ".": decimal}))


@pytest.mark.parametrize("kind", [WideSGDRegressor, WideRegressor])
@pytest.mark.parametrize(
    ("write", "missing"),
    [
        (lambda v: _rounded(v, ","), None),
        (lambda v: _rounded(v, ",", "."), None),
        (lambda v: _rounded(v, ".", ","), "-"),
        (lambda v: _rounded(v, ".", "'"), "n/a"),
        (lambda v: _rounded(v, "."), None),
        (lambda v: _rounded(v, ",") if v % 3 > 1 else f"{v // 1:.0f}", None),
    ],
    ids=["comma", "points and comma", "commas and point", "apostrophes", "plain", "whole numbers among them"],
)
def test_text_of_numbers_is_told_of_with_code_that_converts_it(write, missing, kind):
    numbers = np.round(np.random.default_rng(0).uniform(1, 9e5, 200), 2)
    X = pd.DataFrame({"price": [write(number) for number in numbers], "town": ["a", "b"] * 100})
    X.loc[3, "price"] = missing
    with pytest.warns(UserWarning, match=r"Column 'price' is text of numbers \(.*, \.\.\.\)") as caught:
        kind(max_iter=2).fit(X, numbers)
    (said,) = [str(one.message) for one in caught if "text of" in str(one.message)]
    code = re.search(r"e\.g\. with (.*), or pass it as a category", said)[1]
    found = eval(code, {"X": X, "pd": pd})  # noqa: S307
    present = np.delete(np.arange(200), 3)
    np.testing.assert_allclose(found[present], numbers[present], atol=1.0)  # whole numbers are rounded down


@pytest.mark.parametrize(
    "write",
    [
        lambda v: f"${v:,.2f}",
        lambda v: f"-$ {v:.2f}",
        lambda v: _rounded(v, ",", ".") + " \u20ac",
        lambda v: f"\u20ac\u00a0{v:.2f}",
        lambda v: f"EUR {v:.0f}",
        lambda v: f"{v:,.0f}".replace(",", " ") + " kr",
        lambda v: f"{v:.0f}%",
        lambda v: f"{v:.1f} %" if v > 3e5 else f"{v:.1f}",
    ],
    ids=["dollars", "below 0", "euros", "euros in front", "whole euros", "kronor", "percent", "percent of most"],
)
@pytest.mark.parametrize("others", [["free"] * 8, []], ids=["with others", "alone"])
def test_amounts_and_percentages_are_told_of_with_code_that_converts_them(write, others):
    """They were categories without a word, "$1,200.50" and "12 %"."""
    numbers = np.round(np.random.default_rng(0).uniform(1, 9e5, 200), 2)
    X = pd.DataFrame({"price": [write(number) for number in numbers[len(others) :]] + others})
    with pytest.warns(UserWarning, match=r"Column 'price' is text of numbers \(.*, \.\.\.\)") as caught:
        WideRegressor(loss="squared_error").fit(X, numbers)
    (said,) = [str(one.message) for one in caught if "text of" in str(one.message)]
    found = eval(re.search(r"e\.g\. with (.*), or pass it as a category", said)[1], {"X": X, "pd": pd})  # noqa: S307
    sign = -1.0 if X["price"][0].startswith("-") else 1.0
    assert found.isna().sum() == len(others)
    np.testing.assert_allclose(found.dropna(), sign * numbers[len(others) :], atol=1.0)


@pytest.mark.parametrize(
    "write",
    [
        lambda v: f"{v:.1f}k",
        lambda v: f"${v:.2f}M",
        lambda v: f"{'$' if v < 200 else 'EUR '}{v:.2f}",
        lambda v: f"${1000 + round(v):,}",
    ],
    ids=["thousands", "millions of dollars", "two currencies", "a comma of either meaning"],
)
def test_amounts_of_several_units_are_told_of_without_code(write):
    values = np.random.default_rng(0).uniform(1, 500, 200)
    X = pd.DataFrame({"price": [write(value) for value in values]})
    with pytest.warns(UserWarning, match=r"'price' is text of numbers .*; convert it to numbers, or pass it"):
        WideRegressor(loss="squared_error").fit(X, values)


@pytest.mark.parametrize("format_", ["%d.%m.%Y", "%Y-%m-%d", "%m/%d/%Y", "%Y-%m-%dT%H:%M:%S", "%d.%m.%Y %H:%M"])
def test_text_of_dates_is_told_of_with_code_that_converts_it(format_):
    days = pd.Series(pd.date_range("2021-01-05", periods=100))
    X = pd.DataFrame({"day": days.dt.strftime(format_)})
    with pytest.warns(UserWarning, match=r"Column 'day' is text of dates \('.*', \.\.\.\)") as caught:
        WideRegressor().fit(X, np.arange(100.0))
    (said,) = [str(one.message) for one in caught if "text of" in str(one.message)]
    code = re.search(r"e\.g\. with (.*), or pass it as a category", said)[1]
    assert (eval(code, {"X": X, "pd": pd}) == days).all()  # noqa: S307


def test_other_text_and_columns_that_the_user_has_decided_on_are_not_told_of():
    rng = np.random.default_rng(0)
    n = 400
    prices = [_rounded(v, ",") for v in rng.uniform(1, 800, n)]
    silent = pd.DataFrame(
        {
            "code": rng.integers(1, 9000, n).astype(str),
            "zip": [f"{v:05d}" for v in rng.integers(1, 90_000, n)],
            "nace": [f"{a:02d}.{b:02d}" for a, b in zip(*rng.integers(1, 90, (2, n)), strict=True)],
            "icd": rng.choice([f"{a}.{b}" for a in range(250, 300) for b in range(9)] + ["V57"] * 20, n),
            "size": rng.choice(["1,5", "2,0", "2,5"], n),
            "range": [f"{v}-{v + 5}" for v in rng.integers(1, 900, n)],
            "ip": [".".join(map(str, v)) for v in rng.integers(0, 256, (n, 4))],
            "clock": [f"{v // 60:02d}:{v % 60:02d}" for v in rng.integers(0, 1440, n)],
            "category": pd.Categorical(prices),
            "id": [f"A-{v}" for v in rng.integers(1, 900, n)],
            "euro id": [f"EUR{v:05d}" for v in rng.integers(1, 90_000, n)],
            "seat": [f"{v}{'AKM'[v % 3]}" for v in rng.integers(1, 90, n)],
            "load": [f"{v}K" for v in rng.integers(1, 900, n)],
            "rarely": [f"{v}%" if v % 5 else f"q{v}" for v in rng.integers(1, 900, n)],
            "whole": [str(v) if v % 3 else f"{v}%" for v in rng.integers(1, 900, n)],
            "few": rng.choice([f"{v}%" for v in range(10)], n),
        }
    )
    y, price = rng.normal(size=n), pd.DataFrame({"price": prices})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WideRegressor(interactions=None).fit(silent, y)
        WideRegressor(categorical_features=["price"]).fit(price, y)
        WideRegressor(categorical_features="all").fit(price, y)
        WideRegressor("w[price] + b[1]").fit(price, y)
    for frame in (pl.DataFrame(price.to_dict("list")), price.to_numpy()):  # whose libraries have other code
        with pytest.warns(
            UserWarning, match=r"is text of numbers .* 3\d\d categories; convert it to numbers, or pass it"
        ):
            WideRegressor().fit(frame, y)


def test_thousands_that_may_be_decimals_are_told_of_without_code():
    X = pd.DataFrame({"n": [f"{v:,}" for v in range(1000, 9000, 40)]})
    with pytest.warns(
        UserWarning, match=r"Column 'n' is text of numbers \('1,000', \.\.\.\).*; convert it to numbers, or"
    ):
        WideRegressor().fit(X, np.arange(200.0))


def test_a_dict_or_a_list_of_them_predicts():
    X, y = sparse_effect(0.9)
    model = WideRegressor(**SQUARED, **GLM).fit(X.assign(n=1.0 * np.arange(len(X))), y)
    row = {"z": "FR", "more": 3, "n": 4.0, "k": "van"}
    want = model.predict(pd.DataFrame([{"k": "van", "z": "FR", "n": 4.0}]))
    assert model.predict(row) == pytest.approx(want)
    assert model.predict([row, row]) == pytest.approx([*want, *want])
    assert model.explain(row).sum(axis=1).to_numpy() == pytest.approx(want)
    with pytest.raises(ValueError, match=r"missing:\n- k"):
        model.predict({"z": "FR", "n": 4.0})


# -- offsets ------------------------------------------------------------------------------


def claims():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 5, 3000).astype(str)})
    years = rng.uniform(0.01, 1, 3000)
    return X, years, rng.poisson(years * 0.2 * (1 + X["a"].astype(int))).astype(float)


@pytest.mark.parametrize("kind", [WideSGDRegressor, WideRegressor])
@pytest.mark.parametrize("name", ["exposure_column", "offset_column"])
def test_an_offset_that_is_a_column_is_no_other_one(name, kind):
    X, years, y = claims()
    table = X.assign(e=years, claims=y + 1.0)
    for formula in ("w[a] + s[1] * e + c[1]", "w[a] + v[e] + c[1]", "w[a] + log(e) * s[1] + c[1]", "c[1] + (e || a)"):
        with pytest.raises(ValueError, match=rf"{name}='e' is in the formula, too; give the formula a copy"):
            kind(formula, loss="poisson", **{name: "e"}).fit(table, y)
    with pytest.raises(ValueError, match=rf"{name}='claims' is the formula's target, too"):
        kind("claims ~ w[a] + c[1]", loss="poisson", **{name: "claims"}).fit(table)
    with pytest.raises(ValueError, match=rf"{name}='e' holds dates; make numbers of them"):
        kind(loss="poisson", **{name: "e"}).fit(table.assign(e=pd.Timestamp("2024-01-01")), y)
    copied = kind("w[a] + s[1] * f + c[1]", loss="poisson", **{name: "e"}).fit(table.assign(f=table["e"]), y)
    assert "s" in copied.coefs_


@pytest.mark.parametrize(
    ("kind", "options"),
    [(WideSGDRegressor, {}), (WideRegressor, GLM), (WideSGDRegressor, {"formula": "w[a] + b[1]"})],
    ids=["online", "solved", "formula"],
)
@pytest.mark.parametrize("name", ["exposure_column", "offset_column"])
def test_an_offset_that_is_a_column_goes_with_the_table(name, kind, options):
    from sklearn.model_selection import cross_val_predict, cross_val_score

    X, years, y = claims()
    table = X.assign(e=years if name == "exposure_column" else np.log(years))
    options = {"loss": "poisson", "random_state": 0, **options}
    model = kind(**options, **{name: "e"}).fit(table, y)
    plain = kind(**options).fit(X, y, offset=np.log(years))
    np.testing.assert_allclose(model.predict(table), plain.predict(X, offset=np.log(years)), rtol=1e-9)
    assert model.score(table, y) == pytest.approx(plain.score(X, y, offset=np.log(years)))
    assert (cross_val_score(kind(**options, **{name: "e"}), table, y) > 0.05).all()
    held = cross_val_predict(kind(**options, **{name: "e"}), table, y)
    assert np.corrcoef(held, years)[0, 1] > 0.5
    parts = model.explain(table.head(5))
    np.testing.assert_allclose(np.exp(parts.sum(axis=1)), model.predict(table.head(5)))
    assert parts["(offset)"].to_numpy() == pytest.approx(np.log(years[:5]))
    with pytest.raises(ValueError, match=f"{name}='e' is not in the table"):
        model.predict(X)
    with pytest.raises(ValueError, match="a missing value in row 1"):
        model.predict(table.head(3).assign(e=[0.5, np.nan, 0.5]))
    with pytest.raises(ValueError, match=r"leave .* out and add"):
        kind(**options, **{name: "e"}).fit(table, y, offset=np.log(years))


def test_an_exposure_by_position_of_weighted_rows_and_of_batches():
    X, years, y = claims()
    array = np.column_stack([X["a"].astype(float), years])
    model = WideRegressor(loss="poisson", exposure_column=1, categorical_features=[0], **GLM)
    weight = np.where(np.arange(3000) % 3, 1.0, 0.0)
    kept = weight > 0
    got = model.fit(array, y, sample_weight=weight).predict(array[:4])
    want = WideRegressor(loss="poisson", categorical_features=[0], **GLM)
    want.fit(array[kept, :1], y[kept], offset=np.log(years[kept]))
    np.testing.assert_allclose(got, want.predict(array[:4, :1], offset=np.log(years[:4])))
    stream = WideSGDRegressor(loss="poisson", exposure_column="e", random_state=0)
    other = WideSGDRegressor(loss="poisson", random_state=0)
    for part in range(3):
        rows = slice(part, None, 3)
        stream.partial_fit(X[rows].assign(e=years[rows]), y[rows])
        other.partial_fit(X[rows], y[rows], offset=np.log(years[rows]))
    np.testing.assert_allclose(stream.predict(X.assign(e=years)), other.predict(X, offset=np.log(years)))


def rows_of(frame):
    """A frame as what rows may come as: with the order of its columns, and by their names."""
    in_order = [frame.to_numpy(), frame.to_numpy().tolist(), frame, pl.DataFrame(frame), frame.set_axis([7, 8], axis=1)]
    return [*in_order, frame.to_dict("list"), frame.to_dict("records"), frame.iloc[0].to_dict()]


@pytest.mark.filterwarnings("ignore:X (has|does not have) .*feature names")
@pytest.mark.parametrize("kind", [WideRegressor, WideSGDRegressor])
@pytest.mark.parametrize(
    ("fitted_on", "name"),
    [("array", 1), ("array", "x1"), ("numbers", 1), ("numbers", "1"), ("others", 8), ("others", 1), ("frame", "e")],
)
def test_the_column_of_an_exposure_is_found_as_the_features_are(kind, fitted_on, name):
    """By name where both tables have names, by position otherwise."""
    X, years, y = claims()
    frame = pd.DataFrame({"a": X["a"].astype(float), "e": years})
    tables = {
        "array": frame.to_numpy(),
        "numbers": frame.set_axis([0, 1], axis=1),
        "others": frame.set_axis([7, 8], axis=1),
        "frame": frame,
    }
    fixed = {"random_state": 0, "loss": "poisson"}
    want = kind(**fixed).fit(frame[["a"]], y, offset=np.log(years)).predict(frame[["a"]], offset=np.log(years))
    model = kind(**fixed, exposure_column=name).fit(tables[fitted_on], y)
    for given in rows_of(frame):
        got = model.predict(given)
        np.testing.assert_allclose(got, want[: len(got)], rtol=1e-9)


@pytest.mark.parametrize("exposure", [None, 3, "x3"])
def test_a_formula_fitted_on_an_array_predicts_that_array(exposure):
    X, years, y = claims()
    codes = np.unique(X["a"], return_inverse=True)[1].astype(float)
    array = np.column_stack([np.zeros(len(y)), codes, np.ones(len(y)), years])
    frame = pd.DataFrame({"x1": codes, "x3": years})
    options = {"formula": "y ~ w[x1] + c[1]", "loss": "poisson"}
    name = None if exposure is None else "x3"
    want = WideRegressor(**options, exposure_column=name).fit(frame, y).predict(frame)
    model = WideRegressor(**options, exposure_column=exposure).fit(array, y)
    np.testing.assert_allclose(model.predict(array), want, rtol=1e-12)
    by_name = [{f"x{index}": row[index] for index in (3, 1, 0, 2)} for row in array[:5].tolist()]
    with pytest.warns(UserWarning, match="X has feature names, but WideRegressor was fitted without feature names"):
        np.testing.assert_allclose(model.predict(by_name), want[:5], rtol=1e-12)


def test_numbers_that_are_names_of_columns_are_those_and_not_positions():
    X, _, y = claims()
    table = pd.DataFrame({1: np.unique(X["a"], return_inverse=True)[1].astype(float), 0: np.linspace(0.0, 1.0, len(y))})
    for options in ({"categorical_features": [1]}, {"categorical_features": ["1"]}):
        model = WideRegressor(loss="poisson", numeric="linear", **options).fit(table, y)
        assert len(model.coefs_["1"]) >= table[1].nunique() > len(model.coefs_["0"])
    with pytest.raises(ValueError, match=r"monotonic_cst names .*5, which is no feature"):
        WideRegressor(loss="poisson", monotonic_cst={5: 1}).fit(table, y)


def test_offsets_that_say_two_things_are_refused():
    X, years, y = claims()
    table = X.assign(e=years)
    for options, sentence in (
        ({"exposure_column": "e", "loss": "squared_error"}, "for a loss with a log link"),
        ({"exposure_column": "e", "offset_column": "e", "loss": "poisson"}, "give one"),
        ({"exposure_column": "ee", "loss": "poisson"}, "no column of the table"),
    ):
        for kind in (WideRegressor, WideSGDRegressor):
            with pytest.raises(ValueError, match=sentence):
                kind(**options).fit(table, y)
    with pytest.raises(ValueError, match="compares losses of different links, and offset_column='e' belongs to one"):
        WideRegressor(offset_column="e").fit(table, y)


def test_an_exposure_leaves_the_losses_with_a_log_link_to_choose_from():
    X, years, y = claims()
    model = WideRegressor(exposure_column="e", **ADDITIVE).fit(X.assign(e=years), y)
    assert set(model.losses_["loss"]) <= {"poisson", "tweedie"}
    named = WideRegressor(loss=model.loss_, exposure_column="e", **ADDITIVE).fit(X.assign(e=years), y)
    np.testing.assert_allclose(model.predict(X.assign(e=years)), named.predict(X.assign(e=years)), rtol=1e-6)


def test_predictions_without_the_offset_of_training_are_told_of():
    X, years, y = claims()
    model = WideRegressor(loss="poisson", **GLM).fit(X, y, offset=np.log(years))
    with pytest.warns(UserWarning, match="fitted with offset=, and predicts without one"):
        model.predict(X)
    with pytest.warns(UserWarning, match="fitted with offset=, and explains predictions without one; .* offset_column"):
        model.explain(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WideRegressor(loss="poisson", exposure_column="e", **GLM).fit(X.assign(e=years), y).explain(X.assign(e=years))


@pytest.mark.parametrize(("loss", "power"), [("poisson", 1), ("gamma", 2), ("tweedie", 1.5)])
def test_the_score_of_a_named_log_link_is_the_deviance_explained(loss, power):
    from sklearn.metrics import d2_tweedie_score, r2_score

    X, _, y = claims()
    y, weight = y + (0.1 if loss == "gamma" else 0.0), np.linspace(0.5, 2, len(y))
    model = WideRegressor(loss=loss, **GLM).fit(X, y)
    want = d2_tweedie_score(y, model.predict(X), power=power, sample_weight=weight)
    assert model.score(X, y, sample_weight=weight) == pytest.approx(want)
    assert model.score(X.assign(y=y), "y") == pytest.approx(d2_tweedie_score(y, model.predict(X), power=power))
    assert model.loss_ == loss
    with pytest.raises(ValueError, match=f"loss={loss!r} needs values"):
        model.score(X, -1.0 - y)
    squared = WideRegressor(**SQUARED, **GLM).fit(X, y)
    assert squared.score(X, y) == pytest.approx(r2_score(y, squared.predict(X)))


@pytest.mark.parametrize("loss", ["poisson", "tweedie"])
def test_the_score_where_all_targets_are_0_is_0_in_any_units(loss):
    """No constant is the best, and none explains more than its own limit, a deviance of 0."""
    X, years, y = claims()
    weight = (y == 0).astype(float)
    for unit in (1.0, 1000.0):
        model = WideRegressor(loss=loss, **GLM).fit(X, unit * y)
        assert model.score(X, 0.0 * y) == 0.0
        assert model.score(X, 0.0 * y, offset=np.log(years)) == 0.0
        assert model.score(X, unit * y, weight) == 0.0  # of the rows that count
        assert model.score(X, unit * y) > 0.0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.slow
def test_separation_is_told_of_where_a_category_has_no_event(seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.normal(1e5, 10.0, 800), "c": rng.choice(list("abc"), 800)})
    y = rng.random(800) < (0.01 if seed < 3 else 0.3)
    y[:2] = [True, False]
    for none in (False, True):
        target = y & (X["c"] != "a") if none else y
        empty = not target.groupby(X["c"]).any().all() if none else not pd.Series(y).groupby(X["c"]).any().all()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            WideClassifier(**GLM).fit(X, target)
            WideRegressor(loss="poisson", **GLM).fit(X, target.astype(float))
        assert sum("'c' separates the target" in str(one.message) for one in told) == 2 * empty
        assert not any("'x'" in str(one.message) for one in told)


@pytest.mark.parametrize("loss", ["poisson", "logistic"])
@pytest.mark.parametrize("separated", ["p", "q", "pq", "prs"])
@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
def test_separated_categories_of_any_share_leave_the_others_their_deviations(loss, separated, tol):
    """One of most rows, or several, had taken the mean of the term so far off that all categories seemed separated."""
    X, y, _, _ = made(loss)
    rng = np.random.default_rng(1)
    X["a"] = rng.choice(list("pqrstu"), N, p=[0.5, 0.2, 0.1, 0.1, 0.05, 0.05])
    is_separated = X["a"].isin(list(separated)).to_numpy()
    with pytest.warns(ConvergenceWarning, match="'a' separates the target"):
        model = estimator(loss, **GLM, tol=tol).fit(X, np.where(is_separated, 0, y))
    glm = smf.glm("y ~ C(a, Treatment('u')) + b + x", X.assign(y=y)[~is_separated], family=FAMILIES[loss]).fit()
    for one in set("pqrst") - set(separated):
        found, name = model.contrast("a", one, "u"), f"C(a, Treatment('u'))[T.{one}]"
        assert found["value"] == pytest.approx(glm.params[name], abs=0.02 * glm.bse[name])
        assert found["sd"] == pytest.approx(np.sqrt(model.dispersion_) * glm.bse[name], rel=1e-2)
    assert all(np.isinf(model.contrast("a", one, "u")["sd"]) for one in separated)
    assert np.isfinite(model.coef_table(base={"a": "u"})["sd"].iloc[-1])  # the intercept


@pytest.mark.parametrize("loss", ["poisson", "logistic"])
@pytest.mark.parametrize("formula", ["w[a] + v[a] * x + c[1]", "c[1] + s[1] * x + (1 | a) + (0 + x | a)"])
@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
def test_slopes_of_a_separated_category_leave_the_others_their_deviations(loss, formula, tol):
    """The slope in a category without events cannot be told: its variance of 1e12 was in those of the others."""
    X, y, _, _ = made(loss)
    is_separated = (X["a"] == "q").to_numpy()
    slopes = "v" if formula.startswith("w") else "x | a"
    with pytest.warns(ConvergenceWarning, match="separates the target"):
        model = estimator(loss, formula=formula, alpha=0.0, tol=tol).fit(X, np.where(is_separated, 0, y))
    glm = smf.glm("y ~ C(a) * x", X.assign(y=y)[~is_separated], family=FAMILIES[loss]).fit()
    for one in "rs":
        found, name = model.contrast(slopes, one, "p"), f"C(a)[T.{one}]:x"
        assert found["value"] == pytest.approx(glm.params[name], abs=1e-3 * glm.bse[name])
        assert found["sd"] == pytest.approx(np.sqrt(model.dispersion_) * glm.bse[name], rel=1e-4)
    assert np.isinf(model.contrast(slopes, "q", "p")["sd"])
    assert np.isinf(model.coefs_[slopes].loc["q", "sd"])


@pytest.mark.parametrize("loss", ["poisson", "logistic"])
def test_intercepts_beside_slopes_of_a_separated_category_leave_the_others_their_deviations(loss):
    """At a number of 0, five standard deviations away, those differed by 2 %."""
    X, y, _, _ = made(loss)
    is_separated = (X["a"] == "q").to_numpy()
    X["x"] = X["x"] + 50.0
    with pytest.warns(ConvergenceWarning, match="'w' separates the target"):
        model = estimator(loss, formula="w[a] + v[a] * x + c[1]", alpha=0.0, tol=1e-7)
        model.fit(X, np.where(is_separated, 0, y))
    glm = smf.glm("y ~ C(a) * I(x - 50)", X.assign(y=y)[~is_separated], family=FAMILIES[loss]).fit(tol=1e-12)
    for one in "rs":
        test = glm.t_test(f"C(a)[T.{one}] - 50 * C(a)[T.{one}]:I(x - 50) = 0")
        found = model.contrast("w", one, "p")
        assert found["sd"] == pytest.approx(np.sqrt(model.dispersion_) * test.sd[0, 0], rel=1e-3)


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_a_separated_category_that_comes_first_where_events_are_rare(tol):
    """All categories are predicted with certainty then: the others' differences are known all the same."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"g": rng.choice(list("abcd"), 60_000)})
    X.loc[0, "g"] = "a"
    y = pd.Series(rng.random(60_000) < np.where(X["g"] == "a", 0.0, 0.002))
    with pytest.warns(ConvergenceWarning, match="'g' separates the target"):
        model = WideClassifier(**GLM, tol=tol).fit(X, y)
    events, rows = y.groupby(X["g"]).sum(), X["g"].value_counts()
    known = np.sqrt(sum(1 / events[one] + 1 / (rows[one] - events[one]) for one in "bc"))
    assert model.contrast("g", "b", "c")["sd"] == pytest.approx(known, rel=1e-3)
    assert np.isinf(model.contrast("g", "a", "c")["sd"])


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_separated_categories_of_several_classes_leave_the_others_their_deviations(tol):
    """A class of .3 %, which the first category of the table never has."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"g": rng.choice(list("abcd"), 40_000)})
    X.loc[0, "g"] = "a"
    y = np.where(rng.random(40_000) < np.where(X["g"] == "a", 0.0, 0.003), 2, rng.integers(0, 2, 40_000))
    with pytest.warns(ConvergenceWarning, match="'g' separates the target"):
        model = WideClassifier(**GLM, tol=tol).fit(X, y)
    kept = (X["g"] != "a").to_numpy()
    rest = WideClassifier(**GLM).fit(X[kept], y[kept])
    found, wanted = model.contrast("g", "b", "c"), rest.contrast("g", "b", "c")
    np.testing.assert_allclose(found["sd"], wanted["sd"], rtol=1e-2)
    assert np.isinf(model.contrast("g", "a", "c")["sd"]).all()


@pytest.mark.parametrize("tol", [1e-3, 1e-5])
def test_separated_categories_of_two_terms_and_several_classes_leave_the_others_their_deviations(tol):
    """Beside dense algebra: near the optimum those of all categories were infinite, far from it none."""
    rng, n = np.random.default_rng(105), 700
    X = pd.DataFrame({"a": rng.choice(list("pqrst"), n), "b": rng.choice(list("uvw"), n), "x": rng.normal(size=n)})
    eta = (0.5 * (X["a"] == "p") + 0.4 * X["x"] - 0.4 * (X["b"] == "u")).to_numpy()
    y = np.argmax(np.column_stack([eta, -eta, 0 * eta]) + rng.gumbel(size=(n, 3)), axis=1)
    never = ((X["a"] == "s") | (X["b"] == "v")).to_numpy() & (y == 2)
    y[never] = 0
    with pytest.warns(ConvergenceWarning, match="'w', 'v' separate the target"):
        model = WideClassifier("w[a] + v[b] + s[1]*x + c[1]", alpha=0.0, count_effect=False, tol=tol).fit(X, y)
    p = model.predict_proba(X)
    design = np.column_stack(
        [*(X["a"] == one for one in "pqrst"), *(X["b"] == one for one in "uvw"), X["x"], np.ones(n)]
    )
    design = design.astype(float)
    whole = np.block([[design.T @ (design * (p[:, [k]] * ((k == m) - p[:, [m]]))) for m in range(3)] for k in range(3)])
    kept = np.setdiff1d(np.arange(30), [20 + 3, 20 + 6])  # without the third class of s and v, which is impossible
    covariance = np.linalg.pinv(whole[np.ix_(kept, kept)], rcond=1e-9, hermitian=True)
    for term, (one, other), at in (("w", "pq", (0, 1)), ("w", "rt", (2, 4)), ("v", "uw", (5, 7))):
        for k in range(3):
            by = np.zeros(30)
            for m in range(3):
                by[10 * m + np.array(at)] = ((k == m) - 1 / 3) * np.array([1.0, -1.0])
            wanted = np.sqrt(by[kept] @ covariance @ by[kept])
            assert model.contrast(term, one, other)["sd"].iloc[k] == pytest.approx(wanted, rel=2e-3)
    assert np.isinf(model.contrast("w", "s", "p")["sd"]).all() and np.isinf(model.contrast("v", "v", "u")["sd"]).all()
    assert np.isinf(model.coefs_["w"][["sd 0", "sd 1", "sd 2"]]).all(axis=None)


@pytest.mark.parametrize("loss", ["poisson", "logistic"])
@pytest.mark.parametrize("formula", ["w[a] + v[a] * x + c[1]", "c[1] + s[1] * x + (1 | a) + (0 + x | a)"])
@pytest.mark.parametrize("tol", [1e-3, 1e-7])
def test_intercepts_far_from_all_rows_are_no_separation(loss, formula, tol):
    """Of years since 0 each category's intercept is 2,000 slopes away; one without events is separated all the same."""
    X, y, offset, _ = made(loss)
    X["x"] = 10.0 * X["x"] + 2000.0
    term = "w" if formula.startswith("w") else "1 | a"
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        model = estimator(loss, formula=formula, alpha=0.0).fit(X, y, offset=offset)
    glm = smf.glm("y ~ a * I(x - 2030)", X.assign(y=y), family=FAMILIES[loss], offset=offset)
    fit = glm.fit(scale=1.0 if loss == "logistic" else "X2", tol=1e-12)
    for one in "qrs":
        test = fit.t_test(f"a[T.{one}] - 2030 * a[T.{one}]:I(x - 2030) = 0")
        found = model.contrast(term, one, "p")
        assert found["value"] == pytest.approx(test.effect[0], abs=1e-3 * test.sd[0, 0])
        assert found["sd"] == pytest.approx(test.sd[0, 0], rel=1e-3)
    with pytest.warns(ConvergenceWarning, match=f"'{re.escape(term)}' separates the target"):
        model = estimator(loss, formula=formula, alpha=0.0, tol=tol)
        model.fit(X, np.where(X["a"] == "q", 0, y), offset=offset)
    assert np.isinf(model.contrast(term, "q", "p")["sd"]) and np.isfinite(model.contrast(term, "r", "p")["sd"])


def test_separation_by_a_slope_is_told_of():
    X = pd.DataFrame({"x": np.linspace(-1, 1, 300), "c": list("abc") * 100})
    with pytest.warns(ConvergenceWarning, match=r"'x' separates the target completely \(separation\)"):
        WideClassifier(**ADDITIVE).fit(X, X["x"] > 0.2)


@pytest.mark.parametrize("options", [GLM, ADDITIVE], ids=["none", "auto"])
@pytest.mark.parametrize("share", [0.3, 0.02])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_a_slope_that_tells_one_of_three_classes_is_told_of(options, share, tol):
    """The others, which it does not tell, and the slope of another number keep their deviations."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"x": rng.normal(size=1_500), "z": rng.normal(size=1_500)})
    others = np.where(rng.random(1_500) < 1.0 / (1.0 + np.exp(-X["z"])), "q", "r")
    cut = np.quantile(X["x"], 1.0 - share)
    options = options | {"tol": tol}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = WideClassifier(**options).fit(X, np.where(X["x"] > cut, "p", others))
    assert any("'x' separates the target completely (separation)" in str(one.message) for one in caught)
    table = model.coef_table().set_index(["term", "class"])
    assert np.isinf(table.loc[("x", "p"), "sd"]) and np.isnan(table.loc[("x", "p"), "p"])
    between = np.diff(model.coefs_["z"][["r", "q"]].to_numpy())[0, 0]
    assert between == pytest.approx(1.0, abs=0.25) and np.isfinite(table.loc[("z", "q"), "sd"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        far = rng.random(1_500) < 1.0 / (1.0 + np.exp(-8.0 * (X["x"] - cut)))  # well told, not with certainty
        WideClassifier(**options).fit(X, np.where(far, "p", others))


@pytest.mark.slow
@pytest.mark.parametrize("n_categories", [12, 700], ids=["few", "many"])
def test_slopes_of_several_classes_beside_penalized_terms_are_at_their_optimum(n_categories):
    """Of a class that a slope tells well, whose coefficients the rows' bound of the Hessian hardly moves; or wholly."""
    rng = np.random.default_rng(1)
    n = 6_000
    X = pd.DataFrame({"x": rng.normal(size=n)})
    effects = {}
    for name in ("a", "b"):
        codes = rng.integers(0, n_categories, n)
        X[name], effects[name] = [f"{name}{code}" for code in codes], rng.normal(size=n_categories)[codes]
    others = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-effects["a"] - effects["b"])), "q", "r")
    cut = np.quantile(X["x"], 0.7)
    y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-8.0 * (X["x"] - cut))), "p", others)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = WideClassifier(**ADDITIVE).fit(X, y)
    left = (y[:, None] == model.classes_) - model.predict_proba(X)
    gradient = X["x"].to_numpy() @ left  # of a coefficient without penalty: 0 at the optimum
    assert np.abs(gradient * model.coefs_["x"][["sd p", "sd q", "sd r"]].to_numpy()[0]).max() < 0.05
    with pytest.warns(ConvergenceWarning, match="'x' separates the target completely"):
        model = WideClassifier(**ADDITIVE).fit(X, np.where(X["x"] > cut, "p", others))
    assert np.isinf(model.coefs_["x"]["sd p"]).all()


@pytest.mark.slow
def test_classes_may_be_called_as_columns_are():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=600)})
    y = np.where(X["x"] > 0.5, "high", np.where(X["x"] < -0.5, "low", "rows"))
    y = np.where(rng.random(600) < 0.2, "low", y)
    model = WideClassifier(**ADDITIVE | {"numeric": "smooth"}).fit(X, y)
    assert list(model.coefs_["x"].columns)[:3] == ["high", "low", "rows"]
    table = model.coef_table()
    bins = table[(table["term"] == "x") & (table["class"] == "low")]
    assert (bins["low"] < bins["high"]).all()
    assert bins["rows"].sum() == 600
    assert model.contrast("x", 2.0, -2.0).loc["high", "value"] > 0


# -- against dense algebra, where terms are many ------------------------------------------


def shown(columns, held, means):
    """Deviations of columns with penalties (p, p) and unit noise; `means`: (places, weights, whether home takes it)."""
    design = np.column_stack(columns)
    by = np.eye(design.shape[1])
    for places, weights, home in means:
        by[np.ix_(places, places)] -= weights
        if home is not None:
            by[home, places] += weights
    return by, by @ np.linalg.inv(design.T @ design + held) @ by.T


def dummies(column, keys):
    return (column.to_numpy()[:, None] == np.asarray(keys, dtype=object)).astype(float)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", ["auto", 0.0])
def test_deviations_beside_one_large_column_are_exact(alpha):
    """More coefficients than one matrix is made of: the large column is eliminated."""
    rng = np.random.default_rng(0)
    n, q = 8000, 1300
    big = np.r_[np.arange(q), rng.integers(0, q, n - q)]
    X = pd.DataFrame({"big": [f"{one:04}" for one in big], "c": rng.choice(list("pqr"), n), "x": rng.normal(3, 1, n)})
    y = rng.normal(size=q)[big] + (X["c"] == "p") + 0.5 * X["x"] + rng.normal(size=n)
    model = WideRegressor(**SUM | {"alpha": alpha}, tol=1e-5, max_iter=1000).fit(X, y)
    keys, small = sorted(X["big"].unique()), list("pqr")
    columns = [np.ones((n, 1)), X[["x"]].to_numpy(), dummies(X["c"], small), dummies(X["big"], keys)]
    c, b = np.arange(2, 5), np.arange(5, 5 + q)
    held = np.zeros((5 + q, 5 + q))
    if alpha == "auto":
        for name, own in (("c", c), ("big", b)):
            held[own, own] = model.dispersion_ / model.variances_.loc[name, "variance"]
        means = [(c, 1 / 3, None), (b, 1 / q, None)]
    else:
        weights = [X["c"].value_counts(normalize=True)[small].to_numpy(), np.bincount(big) / n]
        means = [(c, weights[0], 0), (b, weights[1], 0)]
        for own, weight in zip((c, b), weights):  # any constraint: it changes nothing that is told
            held[np.ix_(own, own)] += n * np.outer(weight, weight)
    _, covariance = shown(columns, held, means)
    covariance *= model.dispersion_
    sd = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(model.coefs_["big"]["sd"].loc[keys], sd[b], rtol=1e-4)
    np.testing.assert_allclose(model.coefs_["c"]["sd"].loc[small], sd[c], rtol=1e-4)
    assert model.coefs_["x"]["sd"].iloc[0] == pytest.approx(sd[1], rel=1e-4)
    assert model.coefs_["(intercept)"]["sd"].iloc[0] == pytest.approx(sd[0], rel=1e-4)
    for i, j in ((0, 1), (5, 700)):
        between = covariance[b[i], b[i]] + covariance[b[j], b[j]] - 2 * covariance[b[i], b[j]]
        assert model.contrast("big", keys[i], keys[j])["sd"] == pytest.approx(np.sqrt(between), rel=1e-4)


@pytest.mark.parametrize("n_samples", [0, 16])
def test_samples_of_the_posterior_leave_exact_deviations_as_they_are(n_samples, monkeypatch):
    """Of one categorical column, in a model that is too large for one matrix."""
    monkeypatch.setattr(uncertainty, "MAX_COEFS", 0)
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"g": rng.choice(list("abcde"), 400), "x": rng.normal(size=400)})
    y = (X["g"] == "a") + 0.3 * X["x"] + rng.normal(size=400)
    model = WideRegressor(**SQUARED, **GLM, n_posterior_samples=n_samples).fit(X, y)
    least = smf.ols("y ~ C(g, Treatment('a')) + x", X.assign(y=y)).fit()
    found = [model.contrast("g", one, "a")["sd"] for one in "bcde"]
    np.testing.assert_allclose(found, least.bse.iloc[1:5], rtol=1e-4)


@pytest.mark.parametrize("beside", [True, False])
def test_deviations_of_two_large_columns_are_given_the_other(beside, monkeypatch):
    """Each about its mean, jointly with the intercept and the small column, or given that too where it is too large."""
    if not beside:
        monkeypatch.setattr(uncertainty, "MAX_FACTOR", 2_000)
    rng = np.random.default_rng(1)
    n, q = 6000, 700
    X = pd.DataFrame({name: [f"{one:04}" for one in np.r_[np.arange(q), rng.integers(0, q, n - q)]] for name in "ab"})
    X["c"] = rng.choice(list("pqr"), n)
    X["a"] = X["a"].to_numpy()[rng.permutation(n)]
    y = rng.normal(size=q)[X["a"].astype(int)] + rng.normal(size=q)[X["b"].astype(int)] + rng.normal(size=n)
    y += X["c"].map({"p": 0.0, "q": 1.0, "r": -1.0}).to_numpy()
    without_folds = partial(Newton.to, rare_rows=0)
    monkeypatch.setattr(Newton, "to", without_folds)
    model = WideRegressor(**SUM, tol=1e-5, max_iter=1000).fit(X, y)
    keys, small = sorted(X["a"].unique()), list("pqr")
    held = model.dispersion_ / model.variances_["variance"]
    assert np.isfinite(held["c"])
    parts = [np.ones((n, 1)), dummies(X["c"], small)] if beside else [np.ones((n, 1))]
    first = sum(part.shape[1] for part in parts)
    penalty = np.diag(np.r_[0.0, np.full(first - 1, held["c"]), np.full(q, held["a"])])
    own = np.arange(first, first + q)
    _, covariance = shown([*parts, dummies(X["a"], keys)], penalty, [(own, 1 / q, None)])
    sd = np.sqrt(model.dispersion_ * np.diag(covariance))[own]
    np.testing.assert_allclose(model.coefs_["a"]["sd"].loc[keys], sd, rtol=1e-4)


def test_deviations_of_bins_know_of_missing_values():
    """Neighbours differ by the variance; what is missing has the penalty of an entry about the mean of the walk."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 12, 900).astype(float)
    y = np.sin(x / 3) + rng.normal(size=900)
    x[rng.random(900) < 0.1] = np.nan
    model = WideRegressor(**SUM | {"numeric": "smooth"}, tol=3e-7, max_iter=4000)
    frame = model.fit(pd.DataFrame({"x": x}), y).coefs_["x"]
    places = np.where(np.isnan(x), 0, 1 + np.searchsorted(frame["high"].to_numpy()[1:], np.nan_to_num(x)))
    q = len(frame)
    codes = np.eye(q)[places]
    walk, m = np.zeros((q, q)), q - 1
    jumps = np.diff(np.eye(q)[1:], axis=0)
    walk += jumps.T @ jumps
    missing = np.r_[1.0, np.full(m, -1.0 / m)]
    walk += 6.0 * m / (m**2 - 1.0) * np.outer(missing, missing)  # over the variance of neighbours: that about the mean
    held = np.zeros((1 + q, 1 + q))
    held[1:, 1:] = model.dispersion_ / model.variances_.loc["x", "variance"] * walk
    weights = codes.mean(axis=0)
    held[1:, 1:] += 900 * np.outer(weights, weights)
    _, covariance = shown([np.ones((900, 1)), codes], held, [(np.arange(1, 1 + q), weights, 0)])
    wanted = np.sqrt(model.dispersion_ * np.diag(covariance))[1:]
    np.testing.assert_allclose(frame["sd"], wanted, rtol=1e-3)


def test_the_deviance_explained_knows_the_offset():
    from sklearn.metrics import mean_poisson_deviance

    X, years, y = claims()
    model = WideRegressor(loss="poisson", exposure_column="e", **GLM).fit(X.assign(e=years), y)
    constant = mean_poisson_deviance(y, years * y.sum() / years.sum())
    own = mean_poisson_deviance(y, model.predict(X.assign(e=years)))
    assert model.score(X.assign(e=years), y) == pytest.approx(1 - own / constant)


def test_large_coefficients_that_are_known_are_no_separation():
    """A category without an event behind an offset far off, and one whose few events are rare but there."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"c": np.repeat(list("ab"), 40_000)})
    y = rng.random(80_000) < np.where(X["c"] == "a", 0.0005, 0.9995)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = WideClassifier(**GLM).fit(X, y)
    assert model.coefs_["c"]["value"].abs().min() > 6.0


@pytest.mark.parametrize("loss", FAMILIES)
def test_coefficients_that_say_nearly_the_same_are_at_the_optimum(loss):
    """A price that its group tells but for a few per cent: sweeps of turns ended .1 standard errors away."""
    rng = np.random.default_rng(3)
    group, size = rng.integers(0, 25, N), rng.integers(0, 4, N)
    price = rng.uniform(1.0, 9.0, 25)[group] * rng.uniform(0.98, 1.02, N)
    X = pd.DataFrame({"g": [f"g{one:02}" for one in group], "s": [f"s{one}" for one in size], "price": price})
    score = rng.normal(0, 0.4, 25)[group] + 0.3 * size + 0.2 * price - 1.0
    mean = np.exp(score)
    y = {
        "squared_error": lambda: score + rng.normal(size=N),
        "poisson": lambda: rng.poisson(mean).astype(float),
        "gamma": lambda: rng.gamma(2.0, mean / 2),
        "logistic": lambda: (rng.random(N) < 1 / (1 + np.exp(0.5 - score / 2))).astype(int),
    }[loss]()
    model = estimator(loss, **GLM).fit(X, y)
    fit = smf.glm("y ~ g + s + price", X.assign(y=y), family=FAMILIES[loss]).fit(
        scale=1.0 if loss == "logistic" else "X2", tol=1e-13, maxiter=200
    )
    slope = model.coefs_["price"].iloc[0]
    assert slope["value"] == pytest.approx(fit.params["price"], abs=1e-3 * fit.bse["price"])
    for name in X["g"].unique():
        if name != "g00":
            own = model.contrast("g", name, "g00")
            assert own["value"] == pytest.approx(fit.params[f"g[T.{name}]"], abs=1e-3 * fit.bse[f"g[T.{name}]"])
            assert own["sd"] == pytest.approx(fit.bse[f"g[T.{name}]"], rel=1e-4)


def test_a_penalty_given_is_at_its_optimum_beside_dense_algebra():
    """Of the squared loss, where nearly the same is said twice: a ridge beside a slope without one."""
    rng = np.random.default_rng(5)
    group = rng.integers(0, 30, N)
    price = rng.uniform(1.0, 9.0, 30)[group] + rng.normal(0, 0.05, N)
    weight = rng.uniform(0.5, 2.0, N)
    X = pd.DataFrame({"g": [f"g{one:02}" for one in group], "price": price})
    y = rng.normal(0, 1.0, 30)[group] + price + rng.normal(size=N)
    model = WideRegressor(**SUM | {"alpha": 1e-4}).fit(X, y, sample_weight=weight)
    share = weight / weight.mean()
    design = np.column_stack([np.eye(30)[group], np.ones(N), price])
    penalty = np.diag([1e-4 * N] * 30 + [0.0, 0.0])
    want = np.linalg.solve(design.T @ (share[:, None] * design) + penalty, design.T @ (share * y))
    found = model.coefs_["g"].sort_index()["value"].to_numpy()
    np.testing.assert_allclose(found, want[:30] - want[:30].mean(), atol=1e-3)
    np.testing.assert_allclose(model.predict(X), design @ want, atol=1e-3)


def three_classes():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"g": rng.choice(list("pqrstu"), 1500), "x": rng.normal(size=1500)})
    effects = {"p": 0.0, "q": 0.3, "r": -0.5, "s": 0.2, "t": 0.4, "u": -0.4}
    score = np.outer(X["x"], [0.0, 0.5, -0.4]) + np.outer(X["g"].map(effects), [0.0, 1.0, -1.0])
    p = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    return X, (rng.random((1500, 1)) > p.cumsum(axis=1)).sum(axis=1)


def test_several_classes_are_those_of_a_multinomial_logit():
    """Coefficients sum to 0 over the classes; statsmodels' are differences to the first class."""
    X, y = three_classes()
    model = WideClassifier(alpha=0.0, tol=1e-6, **ADDITIVE).fit(X, y)
    design = sm.add_constant(pd.get_dummies(X["g"], drop_first=True).astype(float).assign(x=X["x"]))
    logit = sm.MNLogit(y, design).fit(disp=0, tol=1e-12, maxiter=100)
    centring = (np.eye(3) - 1 / 3)[:, 1:]
    for name, frame in (("x", model.coefs_["x"]), ("s", model.contrast("g", "s", "p"))):
        places = [(str(k), name) for k in (1, 2)]
        want = centring @ logit.params.loc[name]
        sd = np.sqrt(np.diag(centring @ logit.cov_params().loc[places, places].to_numpy() @ centring.T))
        found = frame.to_numpy().ravel() if name == "x" else frame["value"].to_numpy()
        np.testing.assert_allclose(found[:3], want, atol=1e-3 * sd.min())
        np.testing.assert_allclose(found[3:] if name == "x" else frame["sd"], sd, rtol=1e-4)


@pytest.mark.parametrize("kind", [WideClassifier, WideSGDClassifier])
def test_coefficients_of_several_classes_sum_to_zero(kind):
    X, y = three_classes()
    options = {"alpha": 0.0} if kind is WideClassifier else {"random_state": 0}
    model = kind(**options).fit(X, y)
    for name in model.coefs_:
        np.testing.assert_allclose(model.coefs_[name].iloc[:, :3].sum(axis=1), 0.0, atol=1e-12)
    formula = kind("w[g] * v[g] + b[1]", **({} if kind is WideClassifier else {"random_state": 0})).fit(X, y)
    np.testing.assert_allclose(formula.coefs_["b"].iloc[:, :3].sum(axis=1), 0.0, atol=1e-12)


def test_names_of_terms_are_listed_without_frames_and_a_column_leads_to_its_term():
    X = pd.DataFrame({"taxi": ["a", "b", "c"] * 20, "pay": ["x", "y"] * 30})
    y = np.arange(60.0)
    model = WideRegressor("gamma[taxi] + mu[pay] + c[1]", loss="squared_error").fit(X, y)
    assert repr(model.coefs_.keys()) == "dict_keys(['gamma', 'mu', 'c'])"
    with pytest.raises(KeyError, match="the coefficients of column 'taxi' are in the term 'gamma'"):
        model.coefs_["taxi"]


@pytest.mark.parametrize("n_numbers", [9, 10])
def test_of_many_terms_an_unknown_name_lists_ten(n_numbers):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(50, n_numbers)), columns=[f"x{j}" for j in range(n_numbers)])
    model = WideRegressor(loss="squared_error", **GLM).fit(X, X.sum(axis=1))
    with pytest.raises(KeyError) as told:
        model.coefs_["z"]
    names, more = ", ".join(map(repr, list(model.coefs_)[:10])), ", ..." if n_numbers == 10 else ""
    assert told.value.args[0] == f"There is no term 'z'; there is {names}{more}."


def softmax_information(design, p):
    """Fisher information (q K, q K) of a multinomial logit, coefficient by coefficient of (q, K)."""
    k = p.shape[1]
    blocks = [[design.T @ ((p[:, i] * ((i == j) - p[:, j]))[:, None] * design) for j in range(k)] for i in range(k)]
    q = design.shape[1]
    return np.array(blocks).transpose(2, 0, 3, 1).reshape(q * k, q * k)


def test_contrasts_of_several_classes_and_many_coefficients_are_those_of_dense_algebra():
    """They had no deviation: one large column beside the intercept and a slope, all jointly."""
    rng = np.random.default_rng(0)
    n, q, k = 4000, 300, 3
    g = np.r_[np.arange(q), rng.integers(0, q, n - q)]
    X = pd.DataFrame({"g": [f"{one:03}" for one in g], "x": rng.normal(size=n)})
    score = rng.normal(size=(q, k))[g] + np.outer(X["x"], [0.0, 0.5, -0.5])
    y = (score + rng.gumbel(size=(n, k))).argmax(axis=1)
    model = WideClassifier(**ADDITIVE, tol=1e-6).fit(X, y)
    keys = sorted(X["g"].unique())
    design = np.column_stack([np.ones(n), X["x"], dummies(X["g"], keys)])
    held = np.diag(np.repeat(np.r_[0.0, 0.0, np.full(q, 1.0 / model.variances_.loc["g", "variance"])], k))
    common = np.kron(np.eye(2 + q), np.full((k, k), 1.0 / k))  # no direction of the probabilities
    covariance = np.linalg.inv(softmax_information(design, model.predict_proba(X)) + held + common * n)
    for a, b in ((0, 1), (17, 200)):
        row = np.zeros((2 + q, k))
        found = model.contrast("g", keys[a], keys[b])["sd"]
        for one in range(k):
            row[:] = 0.0
            row[2 + a], row[2 + b] = np.eye(k)[one] - 1 / k, 1 / k - np.eye(k)[one]
            assert found.iloc[one] == pytest.approx(np.sqrt(row.ravel() @ covariance @ row.ravel()), rel=2e-2)
            row[2 + b] = 0.0
            shown = model.coefs_["g"].loc[keys[a], f"sd {one}"]  # less the mean over the classes, as the value
            assert shown == pytest.approx(np.sqrt(row.ravel() @ covariance @ row.ravel()), rel=2e-2)


def test_contrasts_of_many_factors_of_a_product_take_one_covariance(monkeypatch):
    """It is of all categories: for each pair anew, the time would grow with their square."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 30, 600).astype(str), "b": rng.choice(list("xyz"), 600)})
    y = (2.0 + X["a"].astype(int) % 3) * X["b"].map({"x": 1.0, "y": 1.5, "z": 2.0}) + rng.normal(0, 0.1, 600)
    model = WideRegressor("f[a] * g[b] + c[1]", loss="squared_error").fit(X, y)
    names, made, covariance = list(model.coefs_["f"].index), [], coef_table.covariance_of_factor
    pairs = [model.contrast("f", one, names[0])["sd"] for one in names]
    monkeypatch.setattr(coef_table, "covariance_of_factor", lambda *given: made.append(1) or covariance(*given))
    np.testing.assert_array_equal(model.contrast("f", names, names[0])["sd"], pairs)
    assert len(made) == 1 and np.isfinite(pairs).all() and pairs[1] > 0.0


@pytest.mark.parametrize("kind", ["bins", "categories"])
def test_contrasts_of_classes_are_the_same_term_by_term(kind, monkeypatch):
    """Of one term nothing is conditioned on: the joint covariance is the same."""
    rng = np.random.default_rng(0)
    x = np.where(rng.random(1500) < 0.1, np.nan, rng.normal(size=1500))
    y = (np.outer(np.sin(2 * np.nan_to_num(x, nan=1.0)), [1, 0, -1]) + rng.gumbel(size=(1500, 3))).argmax(axis=1)
    X = pd.DataFrame({"x": x if kind == "bins" else np.where(np.isnan(x), "none", np.floor(2 * x).astype(str))})
    pairs = [(-1.0, 1.0), (0.0, 0.1), (np.nan, 0.0)] if kind == "bins" else [("-1.0", "1.0"), ("none", "0.0")]
    options = ADDITIVE | {"numeric": "smooth"} if kind == "bins" else ADDITIVE
    whole = WideClassifier(**options).fit(X, y)
    monkeypatch.setattr(uncertainty, "MAX_COEFS", 0)
    parts = WideClassifier(**options).fit(X, y)
    for pair in pairs:
        wanted = whole.contrast("x", *pair)
        np.testing.assert_allclose(parts.contrast("x", *pair)["sd"], wanted["sd"], rtol=1e-5)
        assert wanted["sd"].gt(0).all()


@pytest.mark.parametrize("loss", FAMILIES)
def test_unpenalized_coefficients_beside_one_penalized_term_are_the_same_term_by_term(loss, monkeypatch):
    X, y, _, _ = made(loss)
    X = pd.DataFrame({"a": X["a"], "x": X["x"] + 2.0 * X["a"].rank(method="dense")})  # hardly told apart
    options = GLM | {"alpha": {"a": 3.0}}
    whole = estimator(loss, **options).fit(X, y)
    monkeypatch.setattr(uncertainty, "MAX_COEFS", 0)
    parts = estimator(loss, **options).fit(X, y)
    for name in ("x", "(intercept)"):
        np.testing.assert_allclose(parts.coefs_[name]["sd"], whole.coefs_[name]["sd"], rtol=1e-4, err_msg=name)


@pytest.mark.parametrize("loss", FAMILIES)
def test_nested_fits_are_tested_as_statsmodels_does(loss):
    X, y, _, _ = made(loss)
    larger = estimator(loss, **GLM).fit(X, y)
    smaller = estimator(loss, **GLM).fit(X.drop(columns="b"), y)
    found = larger.likelihood_ratio_test(smaller)
    scale = None if loss in ("poisson", "logistic") else "X2"
    fits = [smf.glm(f"y ~ a {b} + x", X.assign(y=y), family=FAMILIES[loss]).fit(scale=scale) for b in ("+ b", "")]
    gain = fits[1].deviance - fits[0].deviance
    if scale is None:
        statistic, p = gain, chi2.sf(gain, 2)
        assert larger.bic_ == pytest.approx(fits[0].bic_llf, rel=1e-6)
    else:
        statistic = gain / 2 / fits[0].scale
        p = f.sf(statistic, 2, N - 7)
        assert found["df_residual"] == N - 7
    assert found["df"] == 2
    assert found["statistic"] == pytest.approx(statistic, rel=1e-3)
    assert found["p"] == pytest.approx(p, rel=1e-2)
    with pytest.raises(ValueError, match=r"has the term '\[b\]', and no term of this one contains it"):
        smaller.likelihood_ratio_test(larger)
    with pytest.raises(ValueError, match=r"The terms 'a'.* are penalized, and the test is of maximum likelihood"):
        estimator(loss, **ADDITIVE).fit(X, y).likelihood_ratio_test(smaller)
    with pytest.raises(ValueError, match="are to 1,200 and 1,199 rows; fit both to the same rows"):
        larger.likelihood_ratio_test(estimator(loss, **GLM).fit(X[1:], y[1:]))


def test_the_share_of_unknown_categories_is_read_off_the_coefficients():
    """As docs/unknown_categories.md has it: also of columns that are dropped, of missing values and of categories."""
    X = pd.DataFrame({"a": list("pqrs") * 50, "b": ["u", None] * 100, "c": pd.Categorical(list("mmnn") * 50)})
    X["x"] = np.random.default_rng(0).normal(size=200)
    model = WideRegressor(loss="squared_error").fit(X, np.arange(200) % 4)
    new = X.head(10).assign(a=["new", None, *"pqrspqrs"], c=pd.Categorical(["m"] * 9 + ["o"]))
    known = {name: frame.index for name, frame in model.coefs_.items() if name in new and "low" not in frame}
    unknown = pd.DataFrame({name: ~new[name].isin(index) for name, index in known.items()})
    assert unknown.mean().to_dict() == {"a": 0.2, "b": 0.0, "c": 0.1}
    assert unknown.any(axis=1).tolist() == [True, True, *[False] * 7, True]


def test_a_base_category_may_be_missing_or_an_interval_as_it_is_printed():
    draw = np.random.default_rng(0)
    X = pd.DataFrame({"b": ["u", "v", None, "w"] * 50, "age": pd.cut(np.arange(200) % 40, [-1, 10, 20, 40])})
    y = draw.normal(size=200) + (X["b"] == "u")
    model = WideRegressor("f[b] + g[age] + c[1]", alpha=0.0).fit(X, y)
    for base, alike in (({"f": None}, {"f": np.nan}), ({"g": "(10, 20]"}, {"g": pd.Interval(10, 20)})):
        table = model.coef_table(base=base)
        pd.testing.assert_frame_equal(table, model.coef_table(base=alike))
        (name,) = base
        assert (table.loc[table["term"] == name, "value"] == 0.0).sum() == 1
        assert not np.allclose(table["value"], model.coef_table()["value"])


SLOPES = ["w[g] + v[g]*z + s[1]*z + c[1]", "w[g] + v[g]*z + c[1]", "c[1] + s[1]*z + (z || g)", "v[g]*z + s[1]*z + c[1]",
          "w[g] + v[g]*z", "(z || g)", "w[g] + v[g]*z + s[1]*z"]  # fmt: skip


CASES = [(loss, alpha) for loss in ("squared_error", "poisson", "log_loss") for alpha in ("auto", 0.01, 0.0)]
CASES = [(formula, *case) for formula in SLOPES for case in [*CASES, ("online", 0.0), ("l1", 0.0)]]
CASES += [(text, "squared_error", {term: 0.0}) for text in SLOPES if "w[g] + v[g]" in text for term in "wv"]
COUNTED = ("w[g] + v[g]*z", "(z || g)", "w[g] + v[g]*z + s[1]*z")
"""Formulas that get an intercept where they are penalized and have a count effect."""


@pytest.mark.parametrize(("formula", "loss", "alpha"), CASES)
def test_an_unknown_category_is_the_mean_of_the_known_ones_beside_slopes_of_a_number_far_from_zero(
    formula, loss, alpha
):
    """Over what the main effect's mean is 0 over: categories under a penalty, else, and without an intercept, rows."""
    rng, n = np.random.default_rng(0), 800
    X = pd.DataFrame({"g": rng.choice(list("abcd"), n, p=[0.6, 0.2, 0.15, 0.05]), "z": rng.uniform(10, 11, n)})
    score = X["g"].map({"a": 2.0, "b": -1.0, "c": 0.5, "d": -1.5}) * (X["z"] - 10.5)
    score = score + X["g"].map({"a": 0.5, "b": 0.0, "c": 0.3, "d": 1.0})
    y = {"poisson": rng.poisson(np.exp(score)), "log_loss": (score + rng.logistic(size=n) > 0).astype(int)}
    sparse = WideSGDRegressor(formula, random_state=0, alpha=1e-3, l1_ratio=0.5)
    counts = {"count_effect": False} if alpha != 0.0 and formula in COUNTED else {}
    options = {"alpha": alpha, **counts}
    model = {"log_loss": WideClassifier(formula, **options), "online": WideSGDRegressor(formula, random_state=0)}
    model = (model | {"l1": sparse}).get(
        loss, WideRegressor(formula, loss=loss if loss in FAMILIES else "squared_error", **options)
    )
    model.fit(X, y.get(loss, score + 0.3 * rng.normal(size=n)))

    def score_of(categories, model=model):
        rows = pd.DataFrame({"g": categories, "z": np.tile([10.0, 11.0], len(categories) // 2)})
        found = model.decision_function(rows) if loss == "log_loss" else model.predict(rows)
        return np.log(found) if loss == "poisson" else np.asarray(found)

    known = score_of(list("aabbccdd")).reshape(4, 2)
    by_category = "c[1]" in formula and alpha not in (0.0, {"w": 0.0})
    weights = None if by_category else X["g"].value_counts().sort_index()
    np.testing.assert_allclose(score_of(["new"] * 2), np.average(known, axis=0, weights=weights), atol=1e-8)
    explained = model.explain(pd.DataFrame({"g": ["new"] * 2, "z": [10.0, 11.0]}))
    np.testing.assert_allclose(explained.sum(axis=1), score_of(["new"] * 2), atol=1e-8)
    np.testing.assert_allclose(score_of(["new"] * 2, from_spec(to_spec(model))), score_of(["new"] * 2), atol=1e-9)


@pytest.mark.parametrize("formula", ["(1 | h)", "w[h]"])
@pytest.mark.parametrize("seed", range(6))
def test_a_count_effect_has_an_intercept_beside_it(formula, seed):
    """The level was the count effect's: new categories were predicted as 0 where that was dropped, and as 10 else."""
    rng = np.random.default_rng(seed)
    h = (rng.pareto(1.0, 400) * 3).astype(int) % 60 if seed % 2 else rng.choice(40, 400)
    X, y = pd.DataFrame({"h": h.astype(str)}), 10.0 + rng.normal(0, 0.6, 60)[h] + rng.normal(size=400)
    model = WideRegressor(formula, loss="squared_error").fit(X, y)
    named = WideRegressor(f"c[1] + {formula}", loss="squared_error").fit(X, y)
    rows = pd.DataFrame({"h": ["new", *X["h"][:9]]})
    np.testing.assert_allclose(model.predict(rows), named.predict(rows), rtol=1e-4)
    assert model.variances_["variance"].iloc[0] == pytest.approx(named.variances_["variance"].iloc[0], rel=0.01)
    assert 9.0 < model.predict(rows)[0] < 11.0
    without = WideRegressor(formula, loss="squared_error", count_effect=False).fit(X, y)
    assert list(without.coefs_) == [formula.strip("()").removesuffix("[h]")]


@pytest.mark.parametrize(
    ("formula", "name", "slope"),
    [("w[g] + v[g]*x + s[1]*x + c[1]", "w", "v"), ("c[1] + s[1]*x + (x || g)", "1 | g", "x | g")],
)
def test_tests_of_intercepts_by_category_do_not_depend_on_the_origin_of_slopes(formula, name, slope):
    """Their prior is at the mean of the number: dense algebra there, whatever the number is measured from."""
    rng = np.random.default_rng(0)
    n, size = 600, 25
    g, x = rng.integers(0, size, n), rng.uniform(0, 6, n)
    slopes = 0.3 + rng.normal(0, 0.1, size)
    y = rng.normal(0, 0.5, size)[g] + slopes[g] * (x - 3) + rng.normal(size=n)
    found = []
    for shift in (-x.mean(), 0.0, 3.0, 2000.0):
        model = WideRegressor(formula, loss="squared_error", count_effect=False)
        model.fit(pd.DataFrame({"g": g.astype(str), "x": x + shift}), y)
        found.append(model.term_table())
    of_w, of_v = (model.variances_.loc[one, "variance"] for one in (name, slope))
    indicators, centred = np.eye(size)[g], (x - x.mean())[:, None]
    design = np.hstack([indicators, indicators * centred, centred, np.ones((n, 1))])
    prior = np.diag(np.r_[np.full(size, 1 / of_w), np.full(size, 1 / of_v), 0, 0])
    covariance = np.linalg.inv(design.T @ design / model.dispersion_ + prior)
    theta = covariance @ design.T @ y / model.dispersion_
    between = np.linalg.svd(np.ones((1, size)))[2][1:]
    own = between @ covariance[:size, :size] @ between.T
    shrunk = np.eye(size - 1) - own / of_w
    statistic = (between @ theta[:size]) @ np.linalg.solve(own, between @ theta[:size]) / np.trace(shrunk)
    for table in found:
        assert table.loc[name, "statistic"] == pytest.approx(statistic, rel=1e-3)
        assert table.loc[name, "df"] == pytest.approx(np.trace(shrunk) ** 2 / np.trace(shrunk @ shrunk), rel=1e-3)
        assert table.loc[name, "df"] > table.loc[name, "edf"]


@pytest.mark.parametrize("n_bins", [4, 16])
def test_a_column_whose_name_is_that_of_bins_is_a_term_of_its_own(n_bins):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.choice(list("abcd"), 500), "band": rng.choice(list("pq"), 500)})
    y = X["age"].map(dict(zip("abcd", range(4), strict=True))) + 2.0 * (X["band"] == "p") + rng.normal(size=500)
    plain = WideRegressor(loss="squared_error", interactions=None).fit(X, y)
    named = {"band": f"age ({n_bins} bins)"}
    model = WideRegressor(loss="squared_error", interactions=None).fit(X.rename(columns=named), y)
    np.testing.assert_allclose(model.feature_importances_, plain.feature_importances_)
    found = model.explain(X.rename(columns=named))
    pd.testing.assert_frame_equal(found, plain.explain(X).rename(columns=named)[found.columns])


def test_a_column_called_offset_beside_the_offset():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"(offset)": rng.choice(list("pq"), 300), "e": rng.normal(size=300)})
    y = 3.0 * (X["(offset)"] == "p") + X["e"] + rng.normal(size=300)
    model = WideRegressor(loss="squared_error", offset_column="e").fit(X, y)
    np.testing.assert_allclose(model.explain(X).sum(axis=1), model.predict(X))


@pytest.mark.parametrize(
    ("formula", "names"),
    [
        ("b[1] + u[g] * v[h] + 2 * u[g]", ["b", "u[g] * v[h]", "2 * u[g]"]),
        ("3 * b[1] - u[g] * v[h] + p[g]", ["b", "-1 * u[g] * v[h]", "p"]),
    ],
)
def test_contributions_are_called_as_their_terms_read(formula, names):
    """A block of one term alone gives its name, and else a term is written out, with its constant but for 1."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"g": rng.choice(list("ab"), 300), "h": rng.choice(list("cde"), 300)})
    y = (X["g"] == "a") * 2.0 + (X["h"] == "c") * (X["g"] == "b") + rng.normal(size=300)
    model = WideRegressor(formula, **SQUARED).fit(X, y)
    assert model.explain(X).columns.tolist() == names
    np.testing.assert_allclose(model.explain(X).sum(axis=1), model.predict(X), rtol=1e-9)


@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson"])
def test_the_score_of_a_constant_beside_an_offset_is_0(loss):
    rng = np.random.default_rng(0)
    offset = (0.3 if loss == "poisson" else 5.0) * rng.normal(size=1000)
    y = rng.poisson(np.exp(offset)) if loss == "poisson" else offset + rng.normal(size=1000)
    X = pd.DataFrame({"a": rng.choice(list("ABC"), 1000)})
    model = WideRegressor("c[1]", loss=loss).fit(X, y, offset=offset)
    assert model.score(X, y, offset=offset) == pytest.approx(0.0, abs=1e-3)
    named = WideRegressor("c[1]", loss=loss, offset_column="o").fit(X.assign(o=offset), y)
    assert named.score(X.assign(o=offset), y) == pytest.approx(model.score(X, y, offset=offset))
    kept = rng.random(1000) < 0.5
    weighted = model.score(X, y, kept.astype(float), offset=offset)
    assert weighted == pytest.approx(model.score(X[kept], y[kept], offset=offset[kept]))


@pytest.mark.parametrize("kind", ["text", "boolean"])
def test_the_largest_category_may_be_the_missing_one(kind):
    """Its coefficient was the base for the intercept alone, so that all rows were off."""
    rng = np.random.default_rng(0)
    values = rng.choice([0, 1, 2], 600, p=[0.2, 0.2, 0.6])
    own = np.array(["a", "b", None], dtype=object)[values] if kind == "text" else np.array([True, False, None])[values]
    X = pd.DataFrame({"g": pd.array(own, dtype="boolean") if kind == "boolean" else own})
    y = np.array([1.0, 2.0, 3.0])[values] + 0.1 * rng.normal(size=600)
    model = WideRegressor(loss="squared_error", interactions=None).fit(X, y)
    table = model.coef_table(base="largest")
    base = table.loc[table["term"] == "(intercept)", "value"].iloc[0]
    rows = table[table["term"] == "g"]
    values = dict(zip(rows["category"].map(str), rows["value"], strict=True))
    assert values["None"] == 0.0
    wanted = [base + values[str(one)] for one in own]
    np.testing.assert_allclose(model.predict(X), wanted)


def test_columns_of_classes_are_read_by_name():
    """Frames in another order of the classes: coefficients, and offsets of fit and of predict."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(list("pqr"), 400), "b": rng.choice(list("tu"), 400)})
    y = np.where(rng.random(400) < 0.2, "c", np.where(X["a"] == "p", "a", "b"))
    offset = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc"))
    model = WideClassifier(interactions=None).fit(X, y, offset=offset)
    for other in (offset[["c", "a", "b"]], pl.from_pandas(offset).select("b", "c", "a"), offset.to_numpy()):
        again = WideClassifier(interactions=None).fit(X, y, offset=other)
        np.testing.assert_array_equal(again.predict_proba(X, offset=other), model.predict_proba(X, offset=offset))
    online = [
        WideSGDClassifier(random_state=0, max_iter=2).partial_fit(X, y, offset=one)
        for one in (offset, offset[list("cab")])
    ]
    np.testing.assert_array_equal(*(one.predict_proba(X, offset=offset) for one in online))
    sgd = WideSGDClassifier(random_state=0, max_iter=2)
    starts = [{"a": model.coefs_["a"]}, {"a": model.coefs_["a"][list("bca")]}]
    online = [clone(sgd).set_params(coef_init=start).fit(X, y) for start in starts]
    online += [clone(sgd).set_params(coef_init=start).partial_fit(X, y) for start in starts]
    for one, other in zip(online[::2], online[1::2], strict=True):
        np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    own = model.coefs_["a"]
    same = model.with_coefs({"a": own[["c", "sd a", "b", "a"]]})
    np.testing.assert_allclose(same.predict_proba(X, offset=offset), model.predict_proba(X, offset=offset), rtol=1e-9)
    with pytest.raises(ValueError, match=r"coefs\['a'\] has the columns .* name one for each"):
        model.with_coefs({"a": own[["a", "b", "sd c"]].rename(columns={"sd c": "d"})})
    with pytest.raises(ValueError, match=r"offset has the columns .* name one for each"):
        model.predict(X, offset=offset.rename(columns={"c": "d"}))
    numbers = np.searchsorted(["a", "b", "c"], y) + 1  # classes 1, 2, 3 beside columns 0, 1, 2
    WideClassifier(interactions=None).fit(X, numbers, offset=pd.DataFrame(offset.to_numpy()))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_likelihood_ratios_under_class_weights_are_those_of_their_deviations(n_classes):
    """A row of a rare class weighs more, and is no more rows: Kish's effect is that of Wald's test."""
    rng = np.random.default_rng(0)
    small = 0
    for _ in range(25):
        X = pd.DataFrame({"a": rng.choice(list("abcdef"), 800)})
        u = rng.random(800)
        y = u < 0.1 if n_classes == 2 else np.where(u < 0.05, 0, np.where(u < 0.5, 1, 2))
        options = {"alpha": 0.0, "class_weight": "balanced"}
        larger, smaller = (WideClassifier(text, **options).fit(X, y) for text in ("f[a] + c[1]", "c[1]"))
        small += larger.likelihood_ratio_test(smaller)["p"] < 0.05
    assert small <= 5  # some 15 without


CURVES = pd.DataFrame({"x": np.random.default_rng(0).uniform(size=2000), "g": np.tile(list("abcd"), 500)})
CURVED = 3.0 * CURVES["x"] * (CURVES["g"] == "a") + np.random.default_rng(1).normal(0, 0.1, 2000)


@pytest.mark.parametrize(("formula", "term"), [("s(x, by=g)", "s(x, by=g)"), (None, "g:x")])
def test_contrasts_of_curves_add_up_all_resolutions(formula, term):
    """The finest part alone said -.0001 with p .97, where predictions were 2.7 apart."""
    options = {"formula": formula, "loss": "squared_error", "count_effect": False}
    options |= {} if formula else {"interactions": [("g", "x")]}
    model = WideRegressor(**options, n_posterior_samples=400).fit(CURVES, CURVED)
    rows = pd.DataFrame({"x": [0.9, 0.1, 0.9], "g": ["a", "a", "b"]})
    explained = model.explain(rows)[term].to_numpy()
    one = model.contrast(term, ("a", 0.9), ("b", 0.9))
    assert one["value"] == pytest.approx(explained[0] - explained[2], abs=1e-9)
    several = model.contrast(term, [("a", 0.9), ("a", 0.1)], ("b", 0.9))
    np.testing.assert_allclose(several["value"], explained[:2] - explained[2], atol=1e-9)
    if formula:
        assert abs(one["value"] - 2.7) < 4 * one["sd"] < 0.3
    part = model.contrast(f"{term} (4 bins)", ("a", 0.9), ("b", 0.9))  # of a part, by its own name
    assert part["value"] != one["value"] and np.isfinite(part["sd"])
    with pytest.warns(UserWarning, match="adds up 3 terms .*known after a fit with n_posterior_samples=32 only"):
        unknown = WideRegressor(**options).fit(CURVES, CURVED).contrast(term, ("a", 0.9), ("b", 0.9))
    assert unknown["value"] == pytest.approx(one["value"]) and np.isnan(unknown["sd"])
    with pytest.raises(ValueError, match=rf"Term '{re.escape(term)}' has no category \('new', 0.9\)"):
        model.contrast(term, ("new", 0.9), ("b", 0.9))


def curves_of_noise(n_samples):
    """Models of curves by category of a target that depends on neither, by the parts that are not dropped."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.uniform(size=500), "g": rng.choice(list("pqr"), 500)})
    found = {}
    for _ in range(25):
        model = WideRegressor("s(x, by=g) + c[1]", loss="squared_error", n_posterior_samples=n_samples)
        model.fit(X, rng.normal(size=500))
        variances = model.variances_["variance"].filter(like="by=g")
        found.setdefault(tuple(variances.index[variances > 0.0]), model)
    return found


@pytest.mark.parametrize("n_samples", [0, 32])
def test_contrasts_of_dropped_terms_have_no_deviation(n_samples):
    """That of curves of which all parts were dropped was 0 by samples, where that of a part and of any term is NaN."""
    models = curves_of_noise(n_samples)
    term, pair = "s(x, by=g)", (("p", 0.1), ("p", 0.9))
    for name in (term, f"{term} (4 bins)"):
        with pytest.warns(UserWarning, match=re.escape(f"contrast of '{name}' is 0 without a standard deviation")):
            none = models[()].contrast(name, *pair)
        assert none["value"] == 0.0 and none[["sd", "lower", "upper", "p"]].isna().all()
    table = models[()].coef_table()
    assert table.loc[table["term"].str.startswith(term), "sd"].isna().all()
    assert not any(column.startswith(term) for column in models[()].explain(CURVES.head(2).replace({"g": {"a": "p"}})))
    (part, model) = next((live[0], model) for live, model in models.items() if len(live) == 1 and live[0] != term)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pd.testing.assert_series_equal(model.contrast(term, *pair), model.contrast(part, *pair), check_names=False)
    assert model.contrast(term, *pair)["sd"] > 0.0
    with pytest.raises(ValueError, match=rf"Term '{re.escape(term)}' has no category \('new', 0.1\)"):
        model.contrast(term, ("new", 0.1), pair[1])


def centre_of_bin(label):
    low, high = map(float, label.strip("[]").split(";"))
    return (low + high) / 2.0


def test_contrasts_of_pairs_of_bins_without_rows_are_not_certain():
    """Where all coarser parts are dropped, nothing is known of them; it was 0 with a deviation of 0."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(500, 2)), columns=["x", "z"])
    for _ in range(25):
        model = WideRegressor("te(x, z) + c[1]", loss="squared_error", n_posterior_samples=32)
        model.fit(X, rng.normal(size=500))
        if (model.variances_["variance"].filter(like="te(") > 0.0).tolist() == [True, False, False]:
            break
    held = {tuple(map(centre_of_bin, label)) for label in model.coefs_["te(x, z)"].index}
    (xs, zs), finite = map(set, zip(*held, strict=True)), [pair for pair in held if np.isfinite(pair).all()]
    absent = next((x, z) for x in xs for z in zs if (x, z) not in held and np.isfinite([x, z]).all())
    present = finite[0]
    with pytest.warns(UserWarning, match=r"No training row of 'te\(x, z\)' had .* the standard deviation"):
        found = model.contrast("te(x, z)", absent, present)
    assert found["value"] != 0.0 and np.isnan(found["sd"])


@pytest.mark.slow
def test_deviations_of_contrasts_of_curves_are_those_of_the_joint_posterior():
    """Of dense algebra: precisions by the variances, one level for each term in the null space left to the data."""
    model = WideRegressor("s(x, by=g)", loss="squared_error", count_effect=False, n_posterior_samples=1500).fit(
        CURVES, CURVED
    )
    sd = model.contrast("s(x, by=g)", ("a", 0.9), ("b", 0.9))["sd"]
    blocks, penalties, moves = [], [], []
    for name, frame in model.coefs_.items():
        variance = model.variances_["variance"].get(name)
        if name == "(intercept)" or variance is None or not variance > 0:
            continue
        ends = None
        columns, shift = [], []
        for key in frame.index:
            group, label = key if isinstance(key, tuple) else (None, key)
            low, high = (float(end) for end in label.strip("[]").split(";"))
            inside = (CURVES["x"] > low) & (CURVES["x"] <= high)
            columns.append((inside & (CURVES["g"] == group if group else True)).to_numpy(float))
            shift.append((low < 0.9 <= high) * ({"a": 1.0, "b": -1.0}.get(group, 0.0) if group else 0.0))
        size = len(columns)
        if name == "s(x)":  # a random walk
            steps = np.diff(np.eye(size), axis=0)
            ends = steps.T @ steps / variance
        blocks.append(np.column_stack(columns))
        penalties.append(np.eye(size) / variance if ends is None else ends)
        moves += shift
    design = np.hstack(blocks)
    hessian = design.T @ design / model.dispersion_ + block_diag(*penalties)
    exact = np.sqrt(np.array(moves) @ np.linalg.pinv(hessian, hermitian=True) @ np.array(moves))
    assert sd == pytest.approx(exact, rel=0.08)


@pytest.mark.parametrize("options", [GLM, ADDITIVE, ADDITIVE | {"alpha": 5.0}])
@pytest.mark.parametrize("n_samples", [0, 2000])
def test_the_intercept_of_base_categories_without_a_joint_covariance(options, n_samples, monkeypatch):
    """By terms, or by samples: of orthogonal terms all are the same, and without penalties least squares."""
    X = pd.DataFrame({"k": np.tile(list("uvw"), 100), "g": np.repeat(list("pq"), 150)})
    y = 1.0 + (X["k"] == "u") + (X["g"] == "p") + np.random.default_rng(0).normal(size=300)
    found = []
    for most in (uncertainty.MAX_COEFS, 0):
        monkeypatch.setattr(uncertainty, "MAX_COEFS", most)
        model = WideRegressor(**SQUARED, **options, n_posterior_samples=n_samples * (most == 0)).fit(X, y)
        assert bool(model.model_.uncertainty.joint.size) == (most > 0)
        found.append(model.coef_table(base={"k": "v", "g": "q"}).set_index("term").loc["(intercept)", ["value", "sd"]])
    assert found[1]["value"] == pytest.approx(found[0]["value"], rel=1e-6)
    assert found[1]["sd"] == pytest.approx(found[0]["sd"], rel=0.1 if n_samples else 1e-4)
    if options is GLM:
        design = np.column_stack([np.ones(300), X["k"] == "u", X["k"] == "w", X["g"] == "p"]).astype(float)
        wanted = sm.OLS(y, design).fit()
        assert found[0].tolist() == pytest.approx([wanted.params["const"], wanted.bse["const"]], rel=1e-5)


def test_factors_of_a_product_are_tested_against_one_and_their_differences_against_none():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"k": rng.choice(list("uvw"), 300), "h": rng.choice(list("rst"), 300)})
    size = X["k"].map({"u": 1.5, "v": 1.0, "w": 0.5}) * X["h"].map({"r": 1.2, "s": 1.0, "t": 0.8})
    model = WideRegressor("a[k] * b[h]", **SQUARED, alpha=0.1).fit(X, 5.0 * size + rng.normal(size=300))
    table = model.coef_table().iloc[:6]
    assert table["p"].to_numpy() == pytest.approx(2.0 * norm.sf(np.abs(table["value"] - 1.0) / table["sd"]))
    contrast = model.contrast("b", "r", "s")
    assert contrast["p"] == pytest.approx(2.0 * norm.sf(abs(contrast["value"]) / contrast["sd"]))
    assert table["p"].min() < 0.01 < table["p"].max()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_tables_of_terms_count_the_coefficients_of_all_classes(n_classes):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"k": rng.choice(list("uvw"), 300), "g": rng.choice(list("pqrs"), 300)})
    y = (rng.integers(0, n_classes, 300) + (X["k"] == "u") + (X["g"] == "p")) % n_classes
    model = WideClassifier(**ADDITIVE).fit(X, y)
    n_outputs = n_classes if n_classes > 2 else 1
    for table in (model.variances_, model.term_table()):
        assert table["coefficients"].to_dict() == {"k": 3 * n_outputs, "g": 4 * n_outputs}


# -- standard deviations of sums of coefficients ----------------------------------------------------


def model_of(uncertain, n_coefs, fixed=()):
    """As much of a fitted model as the deviations of sums read: a block of one coefficient each."""
    blocks = [SimpleNamespace(fixed=block in fixed) for block in range(n_coefs)]
    spec = SimpleNamespace(blocks=blocks, sizes=[1] * n_coefs)
    return SimpleNamespace(
        uncertainty=uncertain, spec=spec, n_outputs=2 if uncertain is None else uncertain.sd.shape[1]
    )


def uncertain(sd, **more):
    return uncertainty.Uncertainty(np.ones(len(sd)), np.ones(len(sd)), 1.0, sd, more.pop("samples", None), **more)


WEIGHTS = {0: 1.0, 3: -0.5, 1: 2.0}


def test_the_deviation_of_a_sum_is_by_the_joint_covariance_of_each_class():
    """Of coefficients by their place in it; dropped and given ones have none."""
    root = np.random.default_rng(0).normal(size=(2, 4, 4))
    joint = root @ root.transpose(0, 2, 1)
    sd = np.ones((5, 2))
    sd[4] = np.nan
    made = uncertain(sd, joint=joint, joint_index=np.array([2, 0, -1, 3, -1]))
    place, weights = [2, 3, 0], np.array([1.0, -0.5, 2.0])
    wanted = [np.sqrt(weights @ joint[k][np.ix_(place, place)] @ weights) for k in range(2)]
    for multiples in (WEIGHTS, WEIGHTS | {4: 9.0}, WEIGHTS | {2: 9.0}):
        found = coef_table._deviation_of_sum(model_of(made, 5, fixed=[2]), multiples, 0)
        np.testing.assert_allclose(found, wanted)


def test_a_sum_is_uncertain_where_the_fit_leaves_some_direction_of_it_open():
    """Two directions are open, c0 - c1 and c2 - c3, and c4 by itself: sums along each are known."""
    unknown = np.zeros((2, 6, 2))
    unknown[0, [0, 1], 0], unknown[0, [2, 3], 1] = [1.0, -1.0 + 1e-9], [3e3, -3e3 + 1e-5]  # up to rounding
    sd = np.ones((6, 2))
    sd[[0, 1, 2, 3, 4], 0] = np.inf
    made = uncertain(sd, joint=np.stack([np.eye(6)] * 2), joint_index=np.arange(6), unknown=unknown)
    model = model_of(made, 6)
    known = [{0: 1.0, 1: 1.0}, {2: 0.5, 3: 0.5}, {0: 1.0, 1: 1.0, 2: 1.0, 3: 1.0, 5: 2.0}, {5: 1.0}]
    for multiples in known:
        found = coef_table._deviation_of_sum(model, multiples, 5)
        np.testing.assert_allclose(found, np.linalg.norm(list(multiples.values())))
    for multiples in (
        {0: 1.0},
        {0: 1.0, 1: 1.0, 2: 1.0},
        {2: 1.0, 3: 1.0, 0: 1.0},
        {0: 1.0, 1: -1.0},
        {4: 1.0, 5: 1.0},
    ):
        found = coef_table._deviation_of_sum(model, multiples, 5)
        np.testing.assert_allclose(found, [np.inf, np.linalg.norm(list(multiples.values()))])


def test_without_a_joint_covariance_terms_count_as_uncorrelated():
    sd = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [0.5, 0.25]])
    weights = np.array([1.0, -0.5, 2.0])
    wanted = np.sqrt(np.square(weights) @ np.square(sd[[0, 3, 1]]))
    np.testing.assert_allclose(coef_table._deviation_of_sum(model_of(uncertain(sd), 4), WEIGHTS, 0), wanted)
    total = np.full((4, 2), np.nan)
    total[0], total[1] = [7.0, np.nan], [8.0, 8.0]  # of the scalar that is asked for, in the class that has one
    found = coef_table._deviation_of_sum(model_of(uncertain(sd, total_sd=total), 4), WEIGHTS, 0)
    first = np.sqrt(49.0 + np.square(weights[1:]) @ np.square(sd[[3, 1], 0]))
    np.testing.assert_allclose(found, [first, wanted[1]])
    infinite = np.where(np.arange(4)[:, None] == 1, np.inf, sd)
    for more in ({}, {"joint": np.stack([np.eye(4)] * 2), "joint_index": np.arange(4)}):  # nor the directions
        assert np.isinf(coef_table._deviation_of_sum(model_of(uncertain(infinite, **more), 4), WEIGHTS, 0)).all()
    samples = np.random.default_rng(0).normal(size=(4, 9))
    found = coef_table._deviation_of_sum(model_of(uncertain(sd[:, :1], samples=samples), 4), WEIGHTS, 0)
    sums = [sum(weight * samples[coef, draw] for coef, weight in WEIGHTS.items()) for draw in range(9)]
    np.testing.assert_allclose(found, [np.sqrt(np.mean(np.square(sums)))])
    assert np.isnan(coef_table._deviation_of_sum(model_of(None, 4), WEIGHTS, 0)).tolist() == [True, True]
