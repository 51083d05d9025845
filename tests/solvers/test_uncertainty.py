"""How certain numbers and predictions are, against dense algebra and known answers: slopes by symbol, draws, unseen."""

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tabsym import WideClassifier, WideRegressor
from tabsym.losses import Tweedie
from tabsym.models import identified
from tabsym.solvers.newton import information, uncertainty
from tabsym.solvers.newton.information import StackedTerms
from tabsym.solvers.newton.kernels_coefs import ridge_variances
from tabsym.solvers.newton.kernels_rows import nests, subtract_shared
from tabsym.solvers.newton.terms import Prior, SolverTerm
from tests.formulas import TAKES_UP, TERMS
from tests.options import ADDITIVE, GLM
from tests.oracles import variances as naive_evidence
from tests.oracles.variances import walk_beside_missing
from tests.solver import inner, precision_of, working

pytestmark = pytest.mark.slow

EXACT = {"tol": 3e-7, "max_iter": 5000, "count_effect": False}
LOSSES = ["squared_error", "logistic", "poisson"]


def estimator(loss, *formula, **options):
    """Of the loss, without the effect of counts."""
    options = {"count_effect": False} | options
    if loss == "logistic":
        return WideClassifier(*formula, **options)
    return WideRegressor(*formula, loss=loss, **options)


def draw(loss, score, rng):
    if loss == "squared_error":
        return score + rng.normal(size=len(score))
    if loss == "poisson":
        return rng.poisson(np.exp(0.4 * score)).astype(float)
    return (rng.random(len(score)) < expit(score)).astype(int)


def curvature_of_rows(loss, model, X):
    """Of each row at the model, over the dispersion."""
    if loss == "squared_error":
        return np.full(len(X), 1.0 / model.dispersion_)
    if loss == "logistic":
        p = model.predict_proba(X)[:, 1]
        return p * (1 - p)
    return model.predict(X) / model.dispersion_


def indicators(column, categories):
    return (column.to_numpy()[:, None] == np.asarray(categories)).astype(float)


# -- slopes by symbol beside a lone intercept ---------------------------------------------


def slopes_by_symbol(loss, seed, mean=2.0, n=400, size=8):
    rng = np.random.default_rng(seed)
    s, x = rng.integers(0, size, n), rng.normal(mean, 1.0, n)
    numbers = rng.normal(0.0, 0.5, size)
    y = draw(loss, 0.5 + numbers[s] * x, rng)
    return pd.DataFrame({"s": [f"s{code}" for code in s], "x": x}), y


@pytest.mark.parametrize("mean", [0.0, 2.0, 10.0])
def test_slopes_by_symbol_have_the_variance_of_restricted_likelihood(mean):
    X, y = slopes_by_symbol("squared_error", 1, mean, n=120)
    Z = indicators(X["s"], sorted(X["s"].unique())) * X[["x"]].to_numpy()
    variance, phi = naive_evidence.maximise_reml(y, np.ones((len(y), 1)), Z)
    model = WideRegressor("w[s]*x + b[1]", loss="squared_error", **EXACT).fit(X, y)
    assert model.variances_.loc["w", "variance"] == pytest.approx(variance, rel=1e-3)
    assert model.dispersion_ == pytest.approx(phi, rel=1e-3)


@pytest.mark.parametrize("alpha", [0.0, 0.02, "auto"])
@pytest.mark.parametrize("loss", LOSSES)
def test_slopes_by_symbol_and_their_intercept_are_as_uncertain_as_dense_algebra_says(loss, alpha):
    X, y = slopes_by_symbol(loss, 2, n=600)
    model = inner(estimator(loss, "w[s]*x + b[1]", alpha=alpha, **EXACT), standardize=False).fit(X, y)
    categories = sorted(X["s"].unique())
    design = np.column_stack([indicators(X["s"], categories) * X[["x"]].to_numpy(), np.ones(len(X))])
    hessians = curvature_of_rows(loss, model, X)
    rows = len(X) * alpha / (1.0 if loss == "logistic" else model.dispersion_) if alpha != "auto" else 0.0
    held = precision_of(model, "w") if alpha == "auto" else rows
    penalty = np.diag([*np.full(len(categories), held), 0.0])
    want = np.sqrt(np.diag(np.linalg.inv(design.T @ (hessians[:, None] * design) + penalty)))
    found = [*model.coefs_["w"]["sd"].loc[categories], model.coefs_["b"]["sd"].iloc[0]]
    np.testing.assert_allclose(found, want, rtol=2e-3)
    if alpha == "auto":
        own = np.linalg.inv(design.T @ (hessians[:, None] * design) + penalty)[:-1, :-1]
        assert model.variances_.loc["w", "edf"] == pytest.approx(len(categories) - held * np.trace(own), rel=1e-3)


@pytest.mark.parametrize("samples", [0, 400])
def test_a_slope_of_which_rows_say_nothing_is_not_known(samples):
    """One symbol has x = 0 in all rows: without a penalty its number is anything, and the others' are what they are."""
    X, y = slopes_by_symbol("squared_error", 3, n=600)
    gone = X["s"] == "s3"
    X.loc[gone, "x"] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        options = {"loss": "squared_error", "alpha": 0.0, "count_effect": False, "n_posterior_samples": samples}
        model = WideRegressor("w[s]*x + b[1]", **options).fit(X, y)
        known = WideRegressor("w[s]*x + b[1]", **options).fit(X[~gone], y[~gone])
    assert model.coefs_["w"]["value"]["s3"] == 0.0
    assert np.isinf(model.coefs_["w"]["sd"]["s3"])
    others = known.coefs_["w"].index
    np.testing.assert_allclose(model.coefs_["w"]["sd"][others], known.coefs_["w"]["sd"][others], rtol=0.2)
    assert np.isfinite(model.dispersion_)
    categories = sorted(others)
    design = np.column_stack([indicators(X["s"], categories) * X[["x"]].to_numpy(), np.ones(len(X))])
    rest = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    assert model.dispersion_ == pytest.approx(rest @ rest / (len(y) - len(categories) - 1), rel=1e-3)
    plt = pytest.importorskip("matplotlib.pyplot")
    dotted = [line for line in model.plot_term("w").get_lines() if line.get_linestyle() == ":"]
    assert len(dotted) == 1  # from one side to the other
    plt.close("all")
    if samples:
        new = pd.DataFrame({"s": ["s3", "s3", "s1"], "x": [0.0, 1.0, 1.0]})
        _, std = model.predict(new, return_std=True)
        assert np.isfinite(std).tolist() == [True, False, True]


def test_coefficients_by_category_at_the_raw_zero_of_a_number():
    """Both are held at its mean, and shown at its zero: less mean times slope, about the mean over categories."""
    X, y = slopes_by_symbol("squared_error", 4, mean=3.0, n=900)
    model = WideRegressor("a[s] + w[s]*x + b[1]", loss="squared_error", alpha=0.01, **EXACT).fit(X, y)
    categories = sorted(X["s"].unique())
    centre, posterior, q = X["x"].mean(), X["x"].std(ddof=0), len(categories)
    one_hot = indicators(X["s"], categories)
    scaled = (X["x"].to_numpy()[:, None] - centre) / posterior
    design = np.column_stack([one_hot, one_hot * scaled, np.ones(len(X))])
    held = np.diag([*np.full(2 * q, 0.01 * len(X)), 0.0])
    covariance = model.dispersion_ * np.linalg.inv(design.T @ design + held)
    beside = np.eye(q) - 1.0 / q
    shown = np.column_stack([beside, -centre / posterior * beside, np.zeros(q)])
    want = np.sqrt(np.diag(shown @ covariance @ shown.T))
    np.testing.assert_allclose(model.coefs_["a"]["sd"].loc[categories], want, rtol=1e-6)
    slopes = np.column_stack([np.zeros((q, q)), np.eye(q) / posterior, np.zeros(q)])
    want = np.sqrt(np.diag(slopes @ covariance @ slopes.T))
    np.testing.assert_allclose(model.coefs_["w"]["sd"].loc[categories], want, rtol=1e-6)


def test_categories_take_up_what_centring_their_slopes_moves_where_not_all_are_joint(monkeypatch):
    """Of too many coefficients for one matrix: as uncertain as the number at its mean and mean times slope."""
    monkeypatch.setattr(identified, "MAX_NUMBERS", 0)
    X, y = slopes_by_symbol("squared_error", 4, mean=3.0, n=900)
    model = WideRegressor("a[s] + w[s]*x + b[1]", loss="squared_error", alpha=0.01, **EXACT)
    found, centre = model.fit(X, y).coefs_, X["x"].mean()
    about = clone(model).fit(X.assign(x=X["x"] - centre), y).coefs_
    slopes = about["w"]["sd"][found["w"].index]
    np.testing.assert_allclose(found["w"]["sd"], slopes, rtol=1e-6)
    want = np.hypot(about["a"]["sd"], centre * about["w"]["sd"])
    np.testing.assert_allclose(found["a"]["sd"], want[found["a"].index], rtol=1e-6)


# -- any sum ------------------------------------------------------------------------------


def a_sum(seed):
    """Some of the terms, a table, and what it is fitted with."""
    rng = np.random.default_rng(seed)
    names = [str(name) for name in rng.choice(list(TERMS)[:-1], rng.integers(1, 5), replace=False)]
    names += ["b[1]"] * (rng.random() < 0.7)
    if not any(TERMS[name][1] for name in names):
        names.append("a[s]")
    n, loss = int(rng.integers(200, 700)), str(rng.choice([*LOSSES, "gamma"]))
    X = pd.DataFrame({"s": rng.choice(list("abcdef"), n), "t": rng.choice(list("pqrs"), n)})
    X["x"], X["z"] = rng.normal(rng.choice([0.0, 2.0]), 1.0, n), rng.uniform(0.5, 1.5, n)
    score = np.zeros(n)
    for _, categories, by in (TERMS[name] for name in names):
        codes = categories and X.groupby(list(categories)).ngroup()
        score += (rng.normal(0.0, 0.4, 24)[codes] if categories else 0.3) * by(X)
    y = rng.gamma(2.0, np.exp(0.4 * score) / 2.0) if loss == "gamma" else draw(loss, score, rng)
    weight = rng.uniform(0.5, 2.0, n) if rng.random() < 0.5 else np.ones(n)
    offset = 0.3 * rng.normal(size=n) if rng.random() < 0.5 else np.zeros(n)
    return " + ".join(names), names, X, y, loss, weight, offset, "auto" if rng.random() < 0.6 else 0.05


def dense_parts(model, names, X, y, loss, weight, offset, alpha):
    """Over the dispersion: curvature (n,) of rows, unpenalized columns, and (columns, precision) of blocks.

    Blocks without information are left out.
    """
    if loss == "logistic":
        p = model.predict_proba(X, offset=offset)[:, 1]
        hessians = p * (1 - p)
    else:
        mean = model.predict(X, offset=offset)
        hessians = {"squared_error": np.ones(len(X)), "poisson": mean, "gamma": 1.0 + 0 * mean}[
            loss
        ] / model.dispersion_
    dispersion = 1.0 if loss == "logistic" else model.dispersion_
    flat, blocks = {}, {}
    for name in names:
        block, categories, by = TERMS[name]
        factor = np.broadcast_to(by(X), len(X))[:, None]
        if categories is None:
            flat[block] = factor
            continue
        own = X[categories] if isinstance(categories, str) else pd.Series([*zip(*(X[one] for one in categories))])
        one_hot = np.column_stack([[value == key for value in own] for key in model.coefs_[block].index])
        if alpha != "auto":
            blocks[block] = one_hot * factor, 0.05 * len(X) / dispersion
        elif model.variances_.loc[block, "variance"] > 0:
            blocks[block] = one_hot * factor, precision_of(model, block)
        else:
            assert not model.coefs_[block]["value"].any()
            assert model.coefs_[block]["sd"].isna().all()  # too little is known of it, and not that it is 0
    return weight / weight.mean() * hessians, flat, blocks


def inverse_beside(hessians, Z, held, F):
    """Covariance of a block's numbers and of the unpenalized ones."""
    both = np.column_stack([Z, F])
    held = np.broadcast_to(held, Z.shape[1])
    return np.linalg.inv(both.T @ (hessians[:, None] * both) + np.diag([*held, *np.zeros(F.shape[1])]))


def shown_deviations(hessians, flat, blocks):
    """Of all coefficients together, blocks about their mean over categories: by block (q,)."""
    columns = {**{block: Z for block, (Z, _) in blocks.items()}, **flat}
    design = np.column_stack([*columns.values()])
    held = np.concatenate([np.full(Z.shape[1], own) for Z, own in blocks.values()] + [np.zeros(len(flat))])
    covariance = np.linalg.inv(design.T @ (hessians[:, None] * design) + np.diag(held))
    starts = dict(zip(columns, np.cumsum([0, *(Z.shape[1] for Z in columns.values())])))
    shown = np.eye(len(covariance))
    for block, (Z, _) in blocks.items():
        if TAKES_UP.get(block) in flat:
            own = slice(starts[block], starts[block] + Z.shape[1])
            shown[own, own] -= 1.0 / Z.shape[1]
    found = np.sqrt(np.diag(shown @ covariance @ shown.T))
    return {block: found[starts[block] : starts[block] + Z.shape[1]] for block, Z in columns.items()}


@pytest.mark.parametrize("seed", range(40))
def test_any_sum_is_as_uncertain_as_dense_algebra_says(seed):
    """All terms together, about their means; effective degrees of freedom of each term among all."""
    formula, names, *data, alpha = a_sum(seed)
    X, y, loss, weight, offset = data
    model = inner(estimator(loss, formula, alpha=alpha, **EXACT), standardize=False)
    model.fit(X, y, sample_weight=weight, offset=offset)
    hessians, flat, blocks = dense_parts(model, names, *data, alpha)
    for block, want in shown_deviations(hessians, flat, blocks).items():
        np.testing.assert_allclose(model.coefs_[block]["sd"], want, rtol=2e-3, err_msg=formula)
    if alpha == "auto":
        F = np.column_stack([np.empty((len(X), 0)), *flat.values()])
        for block, (Z, held) in blocks.items():
            others = [other for other in blocks if other != block]
            together = np.column_stack([Z, *(blocks[other][0] for other in others)])
            sizes = [Z.shape[1], *(blocks[other][0].shape[1] for other in others)]
            precisions = np.repeat([held, *(blocks[other][1] for other in others)], sizes)
            own = inverse_beside(hessians, together, precisions, F)[: Z.shape[1], : Z.shape[1]]
            edf = Z.shape[1] - held * np.trace(own)
            assert model.variances_.loc[block, "edf"] == pytest.approx(edf, rel=2e-3, abs=2e-3), formula


@pytest.mark.parametrize("seed", range(80, 95))
def test_draws_of_any_sum_are_of_the_whole_posterior(seed):
    formula, names, *data, alpha = a_sum(seed)
    X, y, loss, weight, offset = data
    options = {"alpha": alpha, "n_posterior_samples": 1000, "tol": 3e-6, "max_iter": 2000}
    model = inner(estimator(loss, formula, **options), standardize=False)
    model.fit(X, y, sample_weight=weight, offset=offset)
    hessians, flat, blocks = dense_parts(model, names, *data, alpha)
    F = np.column_stack([np.empty((len(X), 0)), *flat.values()])
    Z = np.column_stack([np.empty((len(X), 0)), *(columns for columns, _ in blocks.values())])
    held = np.concatenate([np.empty(0), *(np.full(columns.shape[1], own) for columns, own in blocks.values())])
    for block, want in shown_deviations(hessians, flat, blocks).items():
        np.testing.assert_allclose(model.coefs_[block]["sd"], want, rtol=2e-3, err_msg=formula)
    observed = hessians * (y / model.predict(X, offset=offset) if loss == "gamma" else 1.0)
    covariance = inverse_beside(observed, Z, held, F)
    predicted, std = (model.decision_function if loss == "logistic" else model.predict)(
        X, offset=offset, return_std=True
    )
    std = std / predicted if loss in ("poisson", "gamma") else std
    design = np.column_stack([Z, F])
    want = np.sqrt(np.einsum("ia,ab,ib->i", design, covariance, design))
    np.testing.assert_allclose(std, want, rtol=0.15, err_msg=formula)
    assert np.mean(std) == pytest.approx(np.mean(want), rel=0.06), formula


# -- draws --------------------------------------------------------------------------------


def cut(x, labels):
    """Indicators (n, q) of intervals by their labels, a first one for missing values."""
    apart = int(labels[0] == "Missing")
    bounds = np.array([float(label.split(";")[1].strip(" ]")) for label in labels[apart:-1]])
    codes = np.where(np.isnan(x), 0, np.searchsorted(bounds, np.nan_to_num(x), side="left") + apart)
    return np.eye(len(labels))[codes], apart


@pytest.mark.parametrize("missing", [False, True], ids=["", "missing"])
@pytest.mark.parametrize("loss", LOSSES)
def test_draws_of_smooth_intervals_are_of_the_whole_posterior(loss, missing):
    rng = np.random.default_rng(1)
    x, c = rng.integers(0, 50, 1500).astype(float), rng.integers(0, 8, 1500)
    score = np.sin(x / 6) + rng.normal(size=8)[c]
    y = draw(loss, score, rng)
    X = pd.DataFrame({"c": [f"c{code}" for code in c], "x": np.where(missing & (rng.random(1500) < 0.1), np.nan, x)})
    options = ADDITIVE | {"numeric": "smooth", "n_posterior_samples": 1000, "tol": 1e-5, "max_iter": 2000}
    model = estimator(loss, **options)
    model.fit(X, y)
    categories = sorted(X["c"].unique())
    intervals, apart = cut(X["x"].to_numpy(), list(model.coefs_["x"].index))
    assert apart == missing
    design = np.column_stack([indicators(X["c"], categories), intervals, np.ones(1500)])
    variance = model.variances_["variance"]
    held = walk_beside_missing(intervals.shape[1], apart)
    penalty = np.zeros((design.shape[1],) * 2)
    penalty[:8, :8] = np.eye(8) / variance["c"]
    penalty[8:-1, 8:-1] = held / variance["x"]
    hessians = curvature_of_rows(loss, model, X)
    whole = np.linalg.pinv(design.T @ (hessians[:, None] * design) + penalty, hermitian=True, rcond=1e-11)
    ask = model.decision_function if loss == "logistic" else model.predict
    predicted, std = ask(X, return_std=True)
    want = np.sqrt(np.einsum("ia,ab,ib->i", design, whole, design)) * (predicted if loss == "poisson" else 1.0)
    np.testing.assert_allclose(std, want, rtol=0.12)
    assert np.mean(std / want) == pytest.approx(1.0, abs=0.03)
    own, share = whole[8:-1, 8:-1], intervals.mean(axis=0)
    beside = np.eye(len(own)) - share  # about their mean over rows, which is in the intercept
    own = beside @ own @ beside.T
    np.testing.assert_allclose(model.coefs_["x"]["sd"], np.sqrt(np.diag(own)), rtol=0.12)


@pytest.mark.parametrize("loss", ["squared_error", "logistic"])
def test_draws_of_an_intercept_at_the_raw_zero_of_a_number(loss):
    """It takes up what centring the number moves, and is as uncertain as that makes it."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"x": rng.normal(5.0, 1.0, 800), "c": rng.choice(list("abc"), 800)})
    y = draw(loss, 0.5 * (X["x"].to_numpy() - 5), rng)
    model = estimator(loss, **ADDITIVE, alpha=0.01, n_posterior_samples=2000).fit(X, y)
    exact = estimator(loss, **ADDITIVE, alpha=0.01).fit(X, y)
    found = model.coefs_["(intercept)"]["sd"].iloc[0]
    assert found == pytest.approx(exact.coefs_["(intercept)"]["sd"].iloc[0], rel=0.06)
    assert found > 4 * model.coefs_["x"]["sd"].iloc[0]


def test_draws_are_of_the_curvature_where_the_fit_ends(monkeypatch):
    """After a first sweep: that of the first block's update was another, before the others moved."""
    monkeypatch.setattr("tabsym.solvers.newton.fit.finish", lambda *_, **__: (0, False))
    rng = np.random.default_rng(9)
    X = pd.DataFrame({name: rng.choice(list("pqrst"), 900) for name in "uv"})
    score = sum(X[name].map(dict(zip("pqrst", rng.normal(0, 1.5, 5)))) for name in "uv").to_numpy()
    y = rng.poisson(np.exp(score)).astype(float)
    with pytest.warns(ConvergenceWarning):
        model = WideRegressor(loss="poisson", **ADDITIVE, alpha=0.05, max_iter=1, n_posterior_samples=1500)
        model.fit(X, y)
    design = np.column_stack([*(indicators(X[name], list("pqrst")) for name in "uv"), np.ones(900)])
    mean = model.predict(X)
    rows = 0.05 * len(X)  # of the mean loss, where a row of the target's mean counts as one
    whole = design.T @ (mean[:, None] * design) + np.diag([*np.full(10, rows), 0.0])
    beside = np.kron(np.eye(2), np.eye(5) - 0.2)
    own = beside @ np.linalg.inv(whole)[:10, :10] @ beside
    want = np.sqrt(model.dispersion_ * np.diag(own))
    found = np.concatenate([model.coefs_[name]["sd"].loc[list("pqrst")] for name in "uv"])
    np.testing.assert_allclose(found, want, rtol=2e-3)


@pytest.mark.parametrize("seed", [35, 88, 153, 215])
def test_draws_where_a_huge_outlier_was_moved_after_its_update(seed):
    """Steps by the curvature of a coefficient's last update grew from sweep to sweep, to 1e119."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({name: rng.integers(0, size, 300).astype(str) for name, size in zip("abc", (150, 3, 40))})
    y = rng.standard_cauchy(300) * 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        drawn = WideRegressor(loss="huber", **GLM, n_posterior_samples=16).fit(X, y)
        exact = WideRegressor(loss="huber", **GLM).fit(X, y)
    for name in X:
        ratio = drawn.coefs_[name]["sd"] / exact.coefs_[name]["sd"]
        assert 0.9 < ratio.median() < 5  # the others are held in what is exact
        assert ratio.max() < 100


def test_draws_that_end_short_are_told_of(monkeypatch):
    X, y = slopes_by_symbol("squared_error", 5)
    X["t"] = np.random.default_rng(0).choice(list("abcdefgh"), len(X))
    monkeypatch.setattr(uncertainty, "MAX_STEPS", 1)
    with pytest.warns(ConvergenceWarning, match=r"draws of the posterior short: .* alpha='auto' or a larger one\.$"):
        WideRegressor(loss="squared_error", **ADDITIVE, n_posterior_samples=8).fit(X, y)


# -- what was never seen ------------------------------------------------------------------


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("formula", ["w[s]*x + b[1]", "3*a[s] + b[1]", "-2*w[s]*x + 3*a[s] + b[1]"])
def test_an_unseen_symbol_has_its_variance_times_what_multiplies_it(formula, standardize):
    X, y = slopes_by_symbol("squared_error", 6, mean=5.0, n=900)
    options = {"count_effect": False, "n_posterior_samples": 400, "tol": 3e-5}
    model = WideRegressor(formula, loss="squared_error", **options)
    inner(model, standardize=standardize).fit(X, y)
    x = np.array([0.0, 1.0, 5.0, 10.0])
    _, std = model.predict(pd.DataFrame({"s": "never", "x": x}), return_std=True)
    variance, categories = model.variances_["variance"], sorted(X["s"].unique())
    centre = X["x"].mean() if standardize and "a[s]" in formula else 0.0  # where `a` is held to 0
    columns, held = [], []
    for block, factor in {"w": X["x"].to_numpy()[:, None] - centre, "a": 3.0}.items():
        if f"{block}[s]" in formula:
            columns.append(
                indicators(X["s"], categories) * factor * (-2.0 if "-2*" in formula and block == "w" else 1.0)
            )
            held += [1.0 / variance[block]] * len(categories)
    design = np.column_stack([*columns, np.ones(len(X))])
    whole = np.linalg.inv(design.T @ design / model.dispersion_ + np.diag([*held, 0.0]))
    want = whole[-1, -1]  # of the level that new categories are drawn about
    if "x" in formula:
        want = want + (variance["w"] if formula[0] == "w" else 4 * variance["w"]) * (x - centre) ** 2
    if "a[s]" in formula:
        want = want + 9 * variance["a"]
    np.testing.assert_allclose(std, np.sqrt(want + 0 * x), rtol=0.06)


def test_an_unseen_pair_of_seen_symbols_has_the_variance_of_its_cross():
    rng = np.random.default_rng(7)
    X = pd.DataFrame({name: rng.choice(list("abcdef"), 900) for name in "uv"})
    X = X[(X["u"] != "a") | (X["v"] != "b")].reset_index(drop=True)
    cells = {pair: rng.normal() for pair in {*zip(X["u"], X["v"])}}
    y = np.array([cells[pair] for pair in zip(X["u"], X["v"])]) + 0.3 * rng.normal(size=len(X))
    options = ADDITIVE | {"interactions": "pairwise"}
    model = WideRegressor(loss="squared_error", **options, n_posterior_samples=400).fit(X, y)
    _, seen = model.predict(pd.DataFrame({"u": ["a"], "v": ["c"]}), return_std=True)
    _, std = model.predict(pd.DataFrame({"u": ["a"], "v": ["b"]}), return_std=True)
    assert seen[0] ** 2 < 0.1
    assert std[0] ** 2 == pytest.approx(model.variances_.loc["u:v", "variance"], rel=0.5)
    assert std[0] ** 2 > model.variances_.loc["u:v", "variance"]


# -- kernels ------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [0.0, 3.0])
def test_variances_of_entries_are_those_of_the_whole_inverse(more):
    """Jointly with a level that `more` other information is on."""
    rng = np.random.default_rng(8)
    curvature, found = rng.uniform(0.2, 4.0, 6), np.empty(6)
    total = ridge_variances(curvature, 2.5, more, 1e-5, found)
    whole = np.diag([*(curvature + 2.5), curvature.sum() + more])
    whole[-1, :-1] = whole[:-1, -1] = curvature
    want = np.diag(np.linalg.inv(whole))[:-1]
    np.testing.assert_allclose(found, want, rtol=1e-12)
    assert total == pytest.approx(want.sum())


# -- sums of terms that others are nested in ----------------------------------------------


def selections(rng, sizes, n, missing=0.1):
    """Codes (n,), some -1, and factors (n,) of terms, as the kernels take them, and their design (n, p)."""
    codes = [np.where(rng.random(n) < missing, -1, rng.integers(0, size, n)).astype(np.int32) for size in sizes]
    factors = [rng.normal(size=n) if number % 2 else np.empty(0) for number in range(len(sizes))]
    blocks = [
        (own[:, None] == np.arange(size)) * (x[:, None] if len(x) else 1.0)
        for own, size, x in zip(codes, sizes, factors, strict=True)
    ]
    terms = [SolverTerm(0, own, x, size, Prior.RIDGE) for own, size, x in zip(codes, sizes, factors, strict=True)]
    return terms, np.hstack(blocks)


@pytest.mark.parametrize("is_slope", [False, True])
@pytest.mark.parametrize("precision", [0.0, 0.7])
def test_a_term_is_eliminated_row_by_row_as_by_matrices(is_slope, precision):
    rng, n = np.random.default_rng(0), 300
    others, design = selections(rng, [3, 5, 2], n)
    one, own = selections(rng, [1, 60] if is_slope else [60], n, missing=0.2)
    term, own, values = one[-1], own[:, -60:], rng.uniform(0.1, 2.0, n)
    order, ends = np.argsort(term.codes, kind="stable").astype(np.int32), np.arange(60)
    order = order[np.count_nonzero(term.codes < 0) :]
    ends = np.searchsorted(term.codes[order], ends, side="right")
    matrix, alone, work = design.T @ (values[:, None] * design), np.empty(60), np.zeros((3, design.shape[1]))
    information, shared = values @ np.square(own) + precision, own.T @ (values[:, None] * design)
    want = np.divide(1.0, information, out=np.zeros(60), where=information > 0.0)
    wanted = matrix - shared.T @ (want[:, None] * shared)
    subtract_shared(order, ends, term.x, *StackedTerms(others).arrays, values, precision, alone, work, matrix)
    np.testing.assert_allclose(alone, want, rtol=1e-12)
    lower = np.tril_indices(len(matrix))
    np.testing.assert_allclose(matrix[lower], wanted[lower], rtol=1e-10, atol=1e-10)
    assert not work[[0, 2]].any()


def test_what_is_nested_is_told_by_the_rows():
    rng = np.random.default_rng(1)
    fine = np.concatenate([np.arange(8), rng.integers(-1, 8, 200)]).astype(np.int32)
    above = np.array([0, 0, 1, -1, 2, 1, 1, 2], dtype=np.int32)
    parent = np.empty(8, dtype=np.int32)
    assert nests(fine, np.where(fine < 0, -1, above[fine]).astype(np.int32), parent)
    assert parent.tolist() == above.tolist()
    assert not nests(fine, np.where(fine < 0, 0, above[fine]).astype(np.int32), parent)
    other = np.where(fine < 0, -1, above[fine]).astype(np.int32)
    other[-1] = 3
    assert fine[-1] >= 0
    assert not nests(fine, other, parent)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("constant", ["MAX_CACHED", "MAX_SHARED_OF_PARTS"])
def test_deviations_are_the_same_however_rows_are_summed(loss, constant, monkeypatch):
    """Of interactions at several numbers of bins, which are nested in each other, beside slopes and missing numbers."""
    rng, n = np.random.default_rng(2), 3000
    X = pd.DataFrame({"s": rng.choice(list("abcdefgh"), n), "x": rng.normal(size=n), "z": rng.uniform(size=n)})
    X.loc[rng.random(n) < 0.1, "x"] = np.nan
    y = draw(loss, 2.0 * np.sin(2.0 * X["x"].fillna(1.0)) * (X["s"] < "d") + X["z"], rng)
    model = estimator(loss, interactions=[("s", "x"), ("x", "z")])
    monkeypatch.setattr(identified, "MAX_NUMBERS", 0)
    monkeypatch.setattr(uncertainty, "MAX_SMALL", 20)
    monkeypatch.setattr(information, "MAX_OTHERS", 20)
    monkeypatch.setattr(information, "MAX_CACHED", 1.0)
    kept, found = [], information.Information._from_finer
    monkeypatch.setattr(
        information.Information, "_from_finer", lambda *given: kept.append(one := found(*given)) or one
    )  # fmt: skip
    first = model.fit(X, y).coef_table()
    assert any(one is not None for one in kept)
    monkeypatch.setattr(information, constant, 0)
    second = clone(model).fit(X, y).coef_table()
    np.testing.assert_allclose(second["sd"], first["sd"], rtol=1e-9)


@pytest.mark.parametrize(
    ("loss", "stores", "limit"),
    [
        ("squared_error", 60, None),
        ("poisson", 60, 100_000),
        ("squared_error", 130, 100_000),
        ("poisson", 130, None),
    ],
)
def test_small_terms_are_joint_with_a_larger_one_that_contains_them(loss, stores, limit, monkeypatch):
    """Regions of stores of store x article: beside dense algebra; from 100 stores on they were given the stores."""
    rng, n, articles = np.random.default_rng(0), 4000, 12
    store, article = rng.integers(0, stores, n), rng.integers(0, articles, n)
    region = rng.permutation(np.arange(stores) % 5)[store]
    cell = store * articles + article
    eta = rng.normal(0, 0.5, stores)[store] + rng.normal(0, 0.3, stores * articles)[cell]
    y = eta + rng.normal(0, 0.7, n) if loss == "squared_error" else rng.poisson(np.exp(eta))
    names = {"region": region, "store": store, "cell": cell}
    X = pd.DataFrame({name: pd.Series(codes).map(lambda code: f"v{code}") for name, codes in names.items()})
    monkeypatch.setattr(identified, "MAX_NUMBERS", 0)
    if limit is not None:
        monkeypatch.setattr(uncertainty, "MAX_FACTOR_TOGETHER", limit)
    model = WideRegressor(loss=loss, interactions=None, count_effect=False).fit(X, y)
    held = [(name, model.variances_.loc[name, "variance"]) for name in ("region", "store", "cell")]
    blocks = [np.eye(model.coefs_[name].shape[0])[model.coefs_[name].index.get_indexer(X[name])] for name, _ in held]
    design = np.column_stack([np.ones(n), *blocks])
    precisions = np.concatenate([[0.0], *(np.full(block.shape[1], 1 / v) for block, (_, v) in zip(blocks, held))])
    weight = np.ones(n) if loss == "squared_error" else model.predict(X)
    information = (design * weight[:, None]).T @ design / working(model)
    covariance = np.linalg.inv(information + np.diag(precisions)) * model.dispersion_ / working(model)
    start = 1
    for block, (name, _) in zip(blocks, held):
        own = covariance[start : start + block.shape[1], start : start + block.shape[1]]
        centred = np.eye(len(own)) - 1.0 / len(own)
        wanted = np.sqrt(np.diag(centred @ own @ centred.T))
        np.testing.assert_allclose(model.coefs_[name]["sd"], wanted, rtol=0.01)
        mother = {key: rest.iloc[0] for key, rest in X.groupby(name)["store"]} if name == "cell" else {}
        index = model.coefs_[name].index
        sisters = [at for at in range(len(index)) if mother.get(index[at]) == mother.get(index[0])]
        for at in {1, len(own) - 1, *sisters[1:4]}:
            difference = np.sqrt(own[0, 0] + own[at, at] - 2 * own[0, at])
            found = model.contrast(name, index[0], index[at])["sd"]
            if limit is None:
                assert found == pytest.approx(difference, rel=0.01)
            else:  # what is not kept of a large covariance makes differences wider, and variances stay
                assert found > 0.99 * difference
        start += block.shape[1]


def test_a_variance_of_0_has_no_covariances_in_the_root():
    """By rounding it may be below 0, with covariances beside it; they were divided by it."""
    matrix = np.array([[-1e-17, 1e-9, 0.0], [1e-9, 4.0, 1.0], [0.0, 1.0, 2.0]])
    with np.errstate(all="raise"):
        root = uncertainty.root_of(matrix)
    np.testing.assert_allclose(root @ root.T, [[0.0, 0.0, 0.0], [0.0, 4.0, 1.0], [0.0, 1.0, 2.0]], rtol=1e-12, atol=0)


@pytest.mark.parametrize("base", [-1.0, -2.5])
def test_weights_of_classes_do_not_make_coefficients_certain(base):
    """Beside the sandwich of dense algebra; they were those of rows that are repeated, half as large."""
    rng = np.random.default_rng(0)
    n = 4000
    g, x = rng.integers(0, 8, n), rng.normal(size=n)
    y = rng.random(n) < 1 / (1 + np.exp(-(base + 0.1 * g + 0.4 * x)))
    table = pd.DataFrame({"g": g.astype(str), "x": x})
    options = GLM | {"numeric": "linear"}
    model = WideClassifier(**options, class_weight="balanced").fit(table, y)
    weight = np.where(y, n / 2 / y.sum(), n / 2 / (~y).sum())
    design, p = np.column_stack([np.eye(8)[g], x]), model.predict_proba(table)[:, 1]
    inverse = np.linalg.inv((design * (weight * p * (1 - p))[:, None]).T @ design)
    covariance = inverse @ (design * np.square(weight * (y - p))[:, None]).T @ design @ inverse
    assert model.coefs_["x"]["sd"].iloc[0] == pytest.approx(np.sqrt(covariance[8, 8]), rel=0.12)
    by = np.eye(9)[3] - np.eye(9)[5]
    assert model.contrast("g", "3", "5")["sd"] == pytest.approx(np.sqrt(by @ covariance @ by), rel=0.12)
    plain = WideClassifier(**options).fit(table, y, sample_weight=weight)
    assert plain.coefs_["x"]["sd"].iloc[0] < 0.96 * model.coefs_["x"]["sd"].iloc[0]
    pd.testing.assert_series_equal(plain.coefs_["x"]["value"], model.coefs_["x"]["value"], rtol=1e-6)


@pytest.mark.parametrize("noise", ["normal", "t2"])
def test_deviations_by_hubers_loss_are_those_of_statsmodels(noise):
    rng = np.random.default_rng(0)
    x = rng.normal(size=1000)
    e = rng.normal(size=1000) if noise == "normal" else rng.standard_t(2, 1000)
    table = pd.DataFrame({"x": x, "y": 0.4 * x + e})
    model = WideRegressor("y ~ s[1]*x + c[1]", loss="huber", alpha=0.0).fit(table)
    peer = sm.RLM(table["y"], sm.add_constant(x), M=sm.robust.norms.HuberT(1.35)).fit()
    assert model.coefs_["s"]["sd"].iloc[0] == pytest.approx(peer.bse.iloc[1], rel=0.03)


@pytest.mark.parametrize("power", [1.2, 1.5, 1.9, 2.0])
def test_deviations_of_predictions_behind_a_log_link_are_those_of_a_glm(power):
    """By the expected information: the Hessian of gamma and tweedie goes with the targets."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"g": rng.choice(list("abcdef"), 200), "h": rng.choice(list("uvwxyz"), 200)})
    y = np.exp(1 + 0.5 * (X["g"] == "a") - 0.5 * (X["h"] == "u")) * rng.gamma(0.4, 2.5, 200)
    y = y if power == 2.0 else y * (rng.random(200) < 0.7)
    loss = "gamma" if power == 2.0 else Tweedie(power)
    options = {"alpha": 0.0, "n_posterior_samples": 2000, "count_effect": False}
    model = WideRegressor("w[g] + v[h] + c[1]", loss=loss, **options).fit(X, y)
    predicted, sd = model.predict(X, return_std=True)
    design = pd.get_dummies(X, drop_first=True, dtype=float).assign(constant=1.0).to_numpy()
    link = sm.families.links.Log()
    family = sm.families.Gamma(link) if power == 2.0 else sm.families.Tweedie(link, var_power=power)
    fit = sm.GLM(y, design, family=family).fit(scale="X2")
    wanted = np.sqrt(np.einsum("ij,jk,ik->i", design, fit.cov_params(), design))
    np.testing.assert_allclose(sd / predicted, wanted, rtol=0.06)
