"""Estimated variances where there is hardly any information: missing values, ids, uninformative columns, means."""

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import statsmodels.formula.api as smf
from pyarrow import dataset
from sklearn.metrics import mean_poisson_deviance, mean_tweedie_deviance

from tabsym import WideClassifier, WideRegressor, WideSGDRegressor
from tabsym.losses import Tweedie
from tabsym.solvers.newton.dispersion import lowest_positive
from tabsym.solvers.newton.terms import unordered_ratio
from tests.options import ADDITIVE, GLM
from tests.oracles.variances import held_of_missing, walk_beside_missing
from tests.solver import inner

SMOOTH = ADDITIVE | {"numeric": "smooth"}


# -- missing values beside a smooth number ------------------------------------------------


def test_missing_values_are_held_as_intervals_lie_about_their_mean():
    """By hand: of two intervals that differ by d each is d / 2 from the mean, a quarter of the difference's square."""
    assert unordered_ratio(2) == 4.0
    assert unordered_ratio(3) == pytest.approx(9 / 4)
    for n_intervals in (2, 3, 10, 64):
        assert unordered_ratio(n_intervals) == pytest.approx(held_of_missing(n_intervals), rel=1e-9)


def with_missing(n_missing, seed):
    """A slope, and missing values whose rows stand elsewhere; amounts and classes."""
    rng = np.random.default_rng(seed)
    x, gone = rng.normal(size=3000), np.arange(3000) < n_missing
    y = np.where(gone, 4.0, 2 * x) + rng.normal(size=3000)
    chance = np.where(gone, 0.98, 1 / (1 + np.exp(-2 * x)))
    return pd.DataFrame({"x": np.where(gone, np.nan, x)}), y, rng.random(3000) < chance


def one_missing(n_missing, seed=0):
    """A wave, and one or some missing values of 2,000 rows, 3.6 above the others; another such number beside it."""
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(2, 2000))
    y = 2 * np.sin(x) + 0.5 * z + rng.normal(size=2000)
    x[:n_missing], y[:n_missing] = np.nan, y.mean() + 3.6
    z[n_missing : 2 * n_missing] = np.nan
    return pd.DataFrame({"x": x, "z": z}), y


def indicators(model, X, name):
    """Of the bins (n, q) that coefficients are of, by their bounds; missing values first."""
    high, x = model.coefs_[name]["high"].to_numpy(), X[name].to_numpy()
    return np.eye(len(high))[np.where(np.isnan(x), 0, 1 + np.searchsorted(high[1:-1], x, side="left"))]


@pytest.mark.parametrize("names", [["x"], ["x", "z"]], ids=["one number", "two numbers"])
@pytest.mark.parametrize("n_missing", [1, 10])
@pytest.mark.parametrize("tol", [1e-3, 3e-7])
def test_missing_values_are_where_dense_algebra_has_them(tol, n_missing, names):
    """At the model's own variances, whatever the tolerance; what nothing penalises is any number."""
    X, y = one_missing(n_missing)
    model = WideRegressor(loss="squared_error", **SMOOTH, tol=tol, max_iter=3000).fit(X[names], y)
    blocks = [indicators(model, X, name) for name in names]
    design, variances = np.column_stack([*blocks, np.ones(len(y))]), model.variances_["variance"]
    penalty, start = np.zeros((design.shape[1],) * 2), 0
    for name, block in zip(names, blocks, strict=True):
        own = slice(start, start := start + block.shape[1])
        penalty[own, own] = walk_beside_missing(block.shape[1], 1) * model.dispersion_ / variances[name]
    whole = np.linalg.pinv(design.T @ design + penalty, hermitian=True, rcond=1e-12)
    want = design @ whole @ design.T @ y
    sd = np.sqrt(model.dispersion_ * np.einsum("ia,ab,ib->i", design, whole, design))
    assert np.abs((model.predict(X[names]) - want) / sd).max() < 1e-3


def test_one_missing_value_is_shrunk_by_a_definite_amount():
    """Its coefficient was the intercept's to give: 1.0 by default, 3.5 at a small tolerance."""
    X, y = one_missing(1)
    X, found = X[["x"]], []
    for options in ({}, {"tol": 3e-7, "max_iter": 3000}):
        model = WideRegressor(loss="squared_error", **SMOOTH, **options).fit(X, y)
        missing = model.coefs_["x"].iloc[0]
        n_intervals = len(model.coefs_["x"]) - 1
        prior = model.variances_.loc["x", "variance"] / held_of_missing(n_intervals)
        shrunk = prior / (prior + model.dispersion_)  # of one row
        mean_of_bins = model.predict(X).mean() + model.coefs_["x"]["value"].iloc[1:].mean()
        assert model.predict(X.head(1))[0] - mean_of_bins == pytest.approx(shrunk * (y[0] - mean_of_bins), abs=0.05)
        found.append([missing["value"], missing["sd"]])
    assert found[0][0] == pytest.approx(found[1][0], abs=0.03 * found[1][1])  # the variance has a few digits


def test_a_few_missing_values_are_believed():
    found = []
    for seed in range(5):
        X, y, kinds = with_missing(10, seed)
        amount = WideRegressor(loss="squared_error", **SMOOTH).fit(X, y).predict(X.head(1))
        chance = WideClassifier(**SMOOTH).fit(X, kinds).predict_proba(X.head(1))[:, 1]
        found.append([amount[0] - y[:10].mean(), chance[0] - kinds[:10].mean()])
    amount, chance = np.abs(np.mean(found, axis=0))
    assert amount < 0.5  # held as neighbours are: 1.1
    assert chance < 0.25  # .4


@pytest.mark.slow
@pytest.mark.parametrize("numeric", ["smooth", "quantile", "modl"])
def test_missing_values_that_training_had_not_are_uncertain(numeric):
    """As far as the number moves what is predicted, about its mean."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=3000)
    options = ADDITIVE | {"numeric": numeric}
    model = WideRegressor(loss="squared_error", **options, n_posterior_samples=32)
    model.fit(pd.DataFrame({"x": x}), 2 * x + rng.normal(size=3000))
    _, std = model.predict(pd.DataFrame({"x": [np.nan, 0.0]}), return_std=True)
    assert std[1] < 0.3
    assert 0.7 < std[0] < 5.0


def test_blocks_of_all_kinds_are_compared_by_the_spread_of_their_numbers():
    rng = np.random.default_rng(0)
    x, s = rng.uniform(-3, 3, 5000), rng.integers(0, 50, 5000)
    y = 5 * np.sin(x) + 0.5 * rng.normal(size=50)[s] + rng.normal(size=5000)
    model = WideRegressor(loss="squared_error", **SMOOTH).fit(pd.DataFrame({"x": x, "s": s.astype(str)}), y)
    found = model.variances_
    assert list(found.index[:2]) == ["x", "s"]
    n_intervals = len(model.coefs_["x"])
    jumps = np.diff(np.eye(n_intervals), axis=0)
    posterior = np.linalg.pinv(jumps.T @ jumps) * found.loc["x", "variance"]
    assert found.loc["x", "sd"] == pytest.approx(np.sqrt(np.mean(np.diag(posterior))))
    assert found.loc["s", "sd"] == pytest.approx(np.sqrt(found.loc["s", "variance"]))
    assert f"{found.loc['x', 'sd']:.4g}" in model.summary()


# -- columns that no row can tell from noise ----------------------------------------------


def ids(n_rows, n_pairs, rng):
    """A symbol for each row, but for so many pairs."""
    own = np.arange(n_rows)
    own[:n_pairs] = own[n_pairs : 2 * n_pairs]
    return np.array([f"i{one}" for one in rng.permutation(own)])


@pytest.mark.parametrize("seed", range(8))
def test_an_id_says_nothing(seed):
    """Its variance and that of the rows are one number, which was shared out by chance."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"id": ids(3000, 0, rng), "g": rng.integers(0, 5, 3000).astype(str)})
    model = WideRegressor(loss="squared_error", **ADDITIVE, random_state=seed).fit(X, rng.normal(size=3000))
    assert model.variances_.loc["id", "variance"] == 0.0
    assert model.dispersion_ == pytest.approx(1.0, abs=0.1)


def test_a_column_with_some_pairs_may_say_something():
    rng = np.random.default_rng(1)
    own = ids(3000, 450, rng)
    effect = dict(zip(own, 2 * rng.normal(size=3000)))
    y = np.array([effect[one] for one in own]) + 0.5 * rng.normal(size=3000)
    model = WideRegressor(loss="squared_error", **ADDITIVE).fit(pd.DataFrame({"id": own}), y)
    assert model.variances_.loc["id", "variance"] > 1.0


# -- uninformative columns, and equal ones ------------------------------------------------


def some_zeros(kind, seed):
    """A table with nearly as many cells as rows, of whose targets some are 0: counts, rates, sums, closed days."""
    rng = np.random.default_rng(seed)
    shops, days = rng.normal(0, 0.6, 30), dict(zip("uvwxyz", rng.normal(0, 0.6, 6), strict=True))

    def rows(n):
        X = pd.DataFrame({"shop": rng.integers(0, 30, n).astype(str), "day": rng.choice(list("uvwxyz"), n)})
        X["x"], X["z"] = rng.normal(size=n), rng.exponential(size=n)
        mean = np.exp(shops[X["shop"].astype(int)] + X["day"].map(days) + 0.4 * np.sin(X["x"]) - 0.2 * X["z"])
        exposure = rng.gamma(2.0, 0.5, n) + 0.1 if kind == "rates" else np.ones(n)
        counts = rng.poisson(mean * exposure)
        if kind == "sums":
            return X, 7.0 * np.array([rng.gamma(4.0 * one, 0.25) if one else 0.0 for one in counts]), exposure
        if kind == "closed":
            return X, mean * rng.gamma(40.0, 1.0 / 40.0, n) * (X["day"] != "u"), exposure
        return X, counts / exposure, exposure

    return rows(150), rows(3_000)


@pytest.mark.parametrize("kind", ["counts", "rates", "sums", "closed"])
@pytest.mark.parametrize("seed", range(3))
def test_targets_some_of_which_are_zero_do_not_end_all_shrinkage(kind, seed):
    """Zeros have no residual where their mean goes to 0, and the dispersion fell to a thousandth with them.

    New rows were predicted up to a million times worse than by one number.
    """
    (X, y, weight), (new_X, new_y, new_weight) = some_zeros(kind, seed)
    model = WideRegressor(loss="poisson", interactions=[("shop", "day")], count_effect=False)
    model.fit(X, y, sample_weight=weight)
    constant = np.full(len(new_y), np.average(y, weights=weight))
    worst = mean_poisson_deviance(new_y, constant, sample_weight=new_weight)
    assert mean_poisson_deviance(new_y, model.predict(new_X), sample_weight=new_weight) < worst


@pytest.mark.parametrize("seed", [0, 1])
def test_amounts_some_of_which_are_zero_keep_the_shrinkage_of_a_surface(seed):
    """By tweedie's loss: new rows were predicted far worse than by one number."""
    (X, y, _), (new_X, new_y, _) = some_zeros("sums", seed)
    rng = np.random.default_rng(seed)
    y, new_y = (own * (rng.random(len(own)) < 0.9) for own in (y, new_y))
    model = WideRegressor("te(x, z) + f[shop] + h[day] + c[1]", loss=Tweedie(1.5)).fit(X, y)
    worst = mean_tweedie_deviance(new_y, np.full(len(new_y), y.mean()), power=1.5)
    assert mean_tweedie_deviance(new_y, model.predict(new_X), power=1.5) < 1.5 * worst


def test_the_lowest_positive_targets_are_as_many_as_the_zeros():
    """By hand, the larger mean of targets and of their products with weights; copies are rows."""
    y = np.array([0.0, 5.0, 3.0, 0.0, 1.0, 9.0])
    assert lowest_positive(y, np.empty(0), None) == (2.0, 2)
    assert lowest_positive(y, np.array([1.0, 0.1, 1.0, 1.0, 1.0, 1.0]), None) == (2.0, 2)  # more than of products
    assert lowest_positive(np.array([0.0, 0.5, 9.0]), np.array([1.0, 4.0, 1.0]), None) == (2.0, 1)  # of products
    copies = np.array([1, 1, 3, 3, 2, 7])
    repeated = lowest_positive(np.repeat(y, copies), np.empty(0), None)
    assert lowest_positive(y, copies.astype(float), copies) == repeated == (2.0, 4)
    assert lowest_positive(y[1:3], np.empty(0), None) == (0.0, 0)
    assert lowest_positive(np.zeros(3), np.empty(0), None) == (0.0, 3)


def test_constant_numbers_and_equal_flags_take_no_degree_of_freedom():
    rng = np.random.default_rng(1)
    c = rng.integers(0, 6, 30)
    X = pd.DataFrame({"c": [f"s{i}" for i in c]})
    y = rng.normal(size=6)[c] + rng.normal(size=30)
    exact = {"loss": "squared_error", "count_effect": False, "tol": 3e-7, "max_iter": 9999}
    options = ADDITIVE | exact
    alone = WideRegressor(**options).fit(X, y)
    constants = WideRegressor(**options).fit(X.assign(k=7.5, k2=1.0, k3=0.0), y)
    assert constants.dispersion_ == pytest.approx(alone.dispersion_, rel=1e-6)
    formulas = "w[c]*x + b[1] + s[1]*k", "w[c]*x + b[1]"
    Z = X.assign(x=rng.normal(size=30), k=7.5)
    beside, by_itself = (WideRegressor(f"y ~ {one}", **exact).fit(Z, y) for one in formulas)
    assert beside.dispersion_ == pytest.approx(by_itself.dispersion_, rel=1e-6)
    formulas = "dot(w[c], v[d], rank=1) + b[1] + s[1]*k", "dot(w[c], v[d], rank=1) + b[1]"
    Z = Z.assign(d=rng.choice(list("uv"), 30))
    beside, by_itself = (WideRegressor(one, loss="squared_error").fit(Z, y) for one in formulas)
    assert beside.dispersion_ == pytest.approx(by_itself.dispersion_, rel=1e-3)
    np.testing.assert_allclose(constants.predict(X.assign(k=7.5, k2=1.0, k3=0.0)), alone.predict(X), atol=1e-6)
    gone = np.where(rng.random(30) < 0.3, np.nan, rng.normal(size=30))
    one, two = X.assign(a=gone), X.assign(a=gone, b=2 * gone + 1)
    once, twice = (WideRegressor(**options).fit(table, y) for table in (one, two))
    assert twice.dispersion_ == pytest.approx(once.dispersion_, rel=1e-6)


def test_numbers_far_from_zero_are_as_certain_without_standardizing():
    rng = np.random.default_rng(0)
    c = rng.integers(0, 20, 300)
    X = pd.DataFrame({"c": [f"s{i}" for i in c], "year": 2000.0 + c + rng.integers(0, 3, 300)})
    y = 0.5 * (X["year"] - 2010) + rng.normal(size=20)[c] + rng.normal(size=300)
    found = [inner(WideRegressor(loss="squared_error", **ADDITIVE), standardize=one).fit(X, y) for one in (True, False)]
    variances = [one.variances_.loc["c", "variance"] for one in found]
    assert variances[1] == pytest.approx(variances[0], rel=0.01)
    np.testing.assert_allclose(*(one.coefs_["c"]["sd"] for one in found), rtol=0.02)


@pytest.mark.parametrize("numeric", ["quantile", "smooth"])
def test_a_number_that_is_always_missing_leaves_the_rest_certain(numeric):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"c": rng.choice(list("abc"), 40), "x": np.nan})
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        options = GLM | {"numeric": numeric}
        amount = WideRegressor(loss="squared_error", **options).fit(X, rng.normal(size=40))
        kinds = WideClassifier(**options).fit(X, rng.random(40) < 0.5)
    assert np.isfinite(amount.dispersion_)
    assert np.isfinite(amount.coefs_["c"]["sd"]).all()
    for model in (amount, kinds):
        assert not model.coefs_["x"]["sd"].isna().any()


def test_vectors_that_rows_cannot_tell_apart_have_no_nan():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"c": rng.choice(list("abcd"), 60), "d": rng.choice(list("uvw"), 60)})
    y = rng.normal(size=60) + (X["c"] == "a")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = WideRegressor("dot(u[c],v[d],rank=9)+b[1]", loss="squared_error", alpha=0.0).fit(X, y)
    assert not model.coefs_["u"].isna().any(axis=None)
    assert not model.coefs_["v"].isna().any(axis=None)


# -- levels, which hardly a row tells -----------------------------------------------------


@pytest.mark.parametrize("crosses", [1, 2])
@pytest.mark.parametrize(("n_rows", "noise"), [(300, 1.0), (300, 0.1), (300, 0.01), (20_000, 1.0)])
@pytest.mark.slow
def test_draws_know_that_levels_of_blocks_are_not_told(n_rows, noise, crosses):
    """One block up and another down: the less noise, and the more rows, the less the steps of draws see of it."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(list("abcdefgh"), n_rows), "b": rng.choice(list("uvwxyz"), n_rows)})
    keys = [X["a"], X["b"], X["a"] + X["b"]][: 2 * crosses - 1]
    y = 10 + noise * rng.normal(size=n_rows)
    for key in keys:
        categories = key.unique()
        y = y + key.map(dict(zip(categories, rng.normal(size=len(categories))))).to_numpy()
    options = ADDITIVE | {"interactions": "pairwise" if crosses == 2 else None}
    model = WideRegressor(loss="squared_error", **options, n_posterior_samples=500).fit(X, y)
    columns, held, found = [np.ones(n_rows)], [0.0], [model.coefs_["(intercept)"]["sd"].iloc[0]]
    blocks = []
    for name, key in zip(["a", "b", "a:b"], keys):
        frame, variance = model.coefs_[name], model.variances_.loc[name, "variance"]
        if variance == 0.0:
            assert frame["sd"].isna().all()
            continue
        own = slice(len(held), len(held) + len(frame))
        blocks.append(own)
        for labels, sd in zip(frame.index, frame["sd"]):
            columns.append((key == "".join(labels)).to_numpy(dtype=float))
            held.append(model.dispersion_ / variance)
            found.append(sd)
    design = np.column_stack(columns)
    beside = np.eye(len(held))
    for own in blocks:  # about their mean
        beside[own, own] -= 1 / (own.stop - own.start)
    wanted = np.sqrt(model.dispersion_ * np.diag(beside @ np.linalg.inv(design.T @ design + np.diag(held)) @ beside))
    np.testing.assert_allclose(found, wanted, rtol=0.2)


# -- what people see ----------------------------------------------------------------------


def test_decimals_are_numbers_in_every_frame():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, 400).round(2)
    y = 3 * np.sin(x) + 0.3 * rng.normal(size=400)
    exact = [Decimal(str(one)) for one in x]
    frames = pd.DataFrame({"x": x}), pd.DataFrame({"x": exact}), pl.DataFrame({"x": exact})
    found = [WideRegressor(loss="squared_error", **SMOOTH).fit(frame, y) for frame in frames]
    for model, frame in zip(found, frames):
        assert len(model.coefs_["x"]) > 20
        np.testing.assert_allclose(model.predict(frame), found[0].predict(frames[0]), rtol=1e-12)


def test_long_symbols_leave_room_for_their_bars():
    X = pd.DataFrame({"n": ["x" * k for k in range(1, 121)] * 5})
    model = WideRegressor(loss="squared_error", **ADDITIVE, alpha=1e-3).fit(
        X, np.random.default_rng(0).normal(size=600)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a spec that collapsed
        axes = model.plot_term("n")
        axes.figure.canvas.draw()
    box = axes.get_window_extent()
    assert box.width > 0.4 * axes.figure.bbox.width
    for text in (axes.title, axes._left_title, axes._right_title, *axes.get_yticklabels()):
        assert text.get_window_extent().x0 >= 0
        assert text.get_window_extent().x1 <= axes.figure.bbox.width + 1


def test_sentences_offer_what_helps():
    X, y = pd.DataFrame({"a": list("ab") * 5}), np.arange(10.0)
    with pytest.raises(ValueError, match=r"interactions=None has no meaning with a formula; leave it out, or"):
        WideRegressor("w[a]", interactions=None).fit(X, y)
    with pytest.raises(ValueError, match=r"count_effect=False has no effect on a formula that .*; leave it out\.$"):
        WideRegressor("w[a] * v[a]", loss="squared_error", count_effect=False).fit(X, y)
    with pytest.raises(ValueError, match=r"use 'auto', .*'tweedie' or an object"):
        WideRegressor(loss="mse").fit(X, y)


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
@pytest.mark.parametrize("kind", [WideRegressor, WideSGDRegressor])
def test_offsets_that_are_no_logarithms_are_refused(loss, kind):
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame({"a": rng.choice(list("abc"), 60)}), rng.poisson(3.0, 60) + 1.0
    with pytest.raises(ValueError, match=r"offset goes from 1 to 5000, .*offset=np.log\(exposure\)"):
        kind(loss=loss).fit(X, y, offset=np.linspace(1, 5000, 60))
    model = kind(loss=loss, **(ADDITIVE if kind is WideRegressor else {"max_iter": 5})).fit(
        X, y, offset=np.linspace(-250, 250, 60)
    )
    assert np.isfinite(model.coefs_["a"]["value"]).all()


@pytest.mark.parametrize("loss", ["squared_error", "gamma", "poisson"])
@pytest.mark.parametrize("in_parts", [False, True])
def test_a_given_penalty_leaves_the_variances_of_other_terms(loss, in_parts, monkeypatch):
    """A term that is shrunk to nothing has no degrees of freedom; its estimate, given, is the same fit."""
    if in_parts:
        monkeypatch.setattr("tabsym.models.wide.SAMPLE_ROWS", 0)
    rng = np.random.default_rng(1)
    n = 400
    g, h = rng.integers(0, 12, n), np.r_[np.arange(380), rng.integers(0, 380, n - 380)]
    k = rng.integers(0, 30, n)
    y = rng.normal(0, 0.5, 12)[g] + rng.normal(0, 0.4, 30)[k] + rng.normal(0, 1, n)
    y = y if loss == "squared_error" else rng.poisson(np.exp(y + 1)) if loss == "poisson" else np.exp(y)
    X = pd.DataFrame({"g": [f"g{one}" for one in g], "k": [f"k{one}" for one in k], "h": [f"h{one}" for one in h]})
    options = {"loss": loss, "interactions": None, "count_effect": False, "tol": 1e-8}

    def variances(alpha, *columns):
        own = X[list(columns)].assign(y=y)
        rows = dataset.dataset(pa.Table.from_pandas(own, preserve_index=False)) if in_parts else own
        model = WideRegressor(alpha=alpha, **options).fit(rows, "y")
        return model.variances_["variance"][["g", "k"]].to_numpy(float), model

    alone, model = variances("auto", "g", "k")
    np.testing.assert_allclose(variances({"h": 1e6}, "g", "k", "h")[0], alone, rtol=1e-4)
    scale = model.model_.uncertainty.working / model.model_.uncertainty.dispersion
    estimated = scale * model.dispersion_ / (alone[1] * n)
    again, other = variances({"k": estimated}, "g", "k")
    if loss == "squared_error":
        np.testing.assert_allclose(again, alone, rtol=1e-3)
        np.testing.assert_allclose(other.predict(X[["g", "k"]]), model.predict(X[["g", "k"]]), rtol=1e-3)


def test_factors_without_a_penalty_have_the_degrees_of_freedom_of_their_design():
    """As indicator columns with slopes: the mean of each factor is the intercept's."""
    rng = np.random.default_rng(1)
    n, names = 60, [f"f{one}" for one in range(8)]
    factors = rng.integers(0, 3, (n, 8))
    g = rng.integers(0, 10, n)
    y = rng.normal(0, 1, 10)[g] + sum(rng.normal(0, 1, 3)[own] for own in factors.T) + rng.normal(0, 1, n)
    X = pd.DataFrame(factors.astype(str), columns=names).assign(g=g.astype(str))
    D = X[["g"]].assign(**{f"{one}_{k}": (X[one] == k).astype(float) for one in names for k in "12"})
    options = {"loss": "squared_error", "interactions": None, "count_effect": False, "tol": 1e-8}
    model = WideRegressor(alpha=dict.fromkeys(names, 0.0), **options).fit(X, y)
    dummies = WideRegressor(numeric="linear", **options).fit(D, y)
    fit = smf.mixedlm("y ~ " + "+".join(names), X.assign(y=y), groups="g").fit()
    for one in (model, dummies):
        assert one.variances_.loc["g", "variance"] == pytest.approx(float(fit.cov_re.iloc[0, 0]), rel=1e-3)
    np.testing.assert_allclose(model.predict(X), dummies.predict(D), rtol=1e-5, atol=1e-5)
