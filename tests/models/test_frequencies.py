"""Frequency weights: a table compressed by GROUP BY is fitted as its rows are, in any order of the rows."""

import warnings
from copy import deepcopy

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from tabsym import WideBoostRegressor, WideClassifier, WideEncoder, WideRegressor, WideSGDRegressor
from tabsym.design.content import ranks_of
from tabsym.interactions import AutoInteractions
from tabsym.models import loss_selection, wide
from tabsym.solvers.newton import fit as newton_fit
from tests.solver import inner

GIVEN, ESTIMATED, ORDER = 1e-10, 1e-6, 1e-8
CLOSE = {"tol": 1e-14, "max_iter": 2000}
TARGETS = {"squared_error": "amount", "poisson": "count", "gamma": "price", "huber": "amount", "tweedie": "count"}


def table_of(n=3000, seed=0, n_shops=10):
    """Distinct rows of two columns of symbols and two of numbers, with missing ones, targets, and frequencies."""
    rng = np.random.default_rng(seed)
    chances = 1.0 / np.arange(1, n_shops + 1) ** (n_shops > 100)
    X = pd.DataFrame({
        "shop": rng.choice([f"s{i}" for i in range(n_shops)], n, p=chances / chances.sum()),
        "kind": rng.choice(["a", "b", None], n, p=[0.5, 0.4, 0.1]),
        "x": rng.integers(0, 8, n) / 1.6,
        "z": rng.choice([-1.5, -0.0, 0.0, 0.3, np.nan], n),
    })  # fmt: skip
    effect = dict(zip([f"s{i}" for i in range(n_shops)], rng.normal(size=n_shops), strict=True))
    score = 0.5 * X["shop"].map(effect) + np.sin(X["x"]) + (X["kind"] == "a") * np.where(X["x"] > 3, 1.0, -0.5)
    X["amount"] = (score + rng.normal(size=n)).round()
    X["count"] = rng.poisson(np.exp(0.5 * score))
    X["price"] = np.exp(score + 0.3 * rng.normal(size=n)).round() + 0.5
    X["two"] = np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "yes", "no")
    X["three"] = np.argmax(np.stack([score, 0 * score, -score], 1) + rng.gumbel(size=(n, 3)), 1)
    X["weight"] = np.where(X["x"] > 2, 0.7, 0.1)
    X["area"] = np.where(X["z"] > 0, 0.5, 3.0)
    X["offset"] = np.where(X["kind"] == "a", 0.3, -0.3)
    return X


def grouped(rows, target):
    """GROUP BY, with a row that is not there."""
    names = [*FEATURES, "weight", "area", "offset", target]
    table = rows.groupby(names, dropna=False, sort=False).size().reset_index(name="freq")
    table["kind"] = table["kind"].astype(object).where(table["kind"].notna(), None)
    gone = table.iloc[:1].assign(freq=0, shop="closed")
    return pd.concat([table.iloc[:7], gone, table.iloc[7:]], ignore_index=True)


TABLE = table_of()
FEATURES = ["shop", "kind", "x", "z"]


def mixed(rows, seed):
    return rows.sample(frac=1.0, random_state=seed).reset_index(drop=True)


def fitted(model, table, target, *, compressed, features=FEATURES, weight=None, offset=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return deepcopy(model).fit(
            table[features], table[target], None if weight is None else table[weight],
            offset=None if offset is None else table[offset], freq_weights=table["freq"] if compressed else None,
        )  # fmt: skip


def assert_same(model, other, new, tol, *, certain=True):
    """Terms, coefficients, deviations, rows, variances, criteria and predictions."""
    assert [block.name for block in model.model_.spec.blocks] == [block.name for block in other.model_.spec.blocks]
    assert model.model_.loss.name == other.model_.loss.name
    close = {"rtol": tol, "atol": tol}
    for name, own in other.coefs_.items():
        found = model.coefs_[name].reindex(own.index)
        np.testing.assert_allclose(found.to_numpy(float), own.to_numpy(float), **close, err_msg=name)
    for one in ("aic_", "bic_", "deviance_", "log_likelihood_", "dispersion_"):
        exact = other.deviance_ < 1e-12 and one != "deviance_" and one != "dispersion_"  # then the log of rounding
        if hasattr(other, one) and not exact:
            np.testing.assert_allclose(getattr(model, one), getattr(other, one), **close, err_msg=one)
    if certain:
        table = other.variances_.select_dtypes("number")
        np.testing.assert_allclose(model.variances_.loc[table.index, table.columns], table, **close)
    asked = "predict_proba" if hasattr(other, "predict_proba") else "predict"
    np.testing.assert_allclose(getattr(model, asked)(new), getattr(other, asked)(new), **close)


def assert_as_rows(model, target, tol, rows=TABLE, **options):
    table, new = grouped(rows, target), rows[options.get("features", FEATURES)]
    one = fitted(model, table, target, compressed=True, **options)
    other = fitted(model, rows, target, compressed=False, **options)
    assert len(table) < 0.8 * len(rows)
    assert_same(one, other, new, tol)
    assert_same(fitted(model, mixed(table, 2), target, compressed=True, **options), one, new, max(tol, ORDER))
    return one


def model_of(loss, **options):
    return WideClassifier(**options) if loss in ("two", "three") else WideRegressor(loss=loss, **options)


LOSSES = ["squared_error", "poisson", "gamma", "two", "three"]


NUMERIC = [("linear", "weight"), ("quantile", None), ("smooth", None), ("smooth", "weight"), ("modl", "weight")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "numeric", "weight"),
    [(loss, *NUMERIC[(place + step) % 5]) for place, loss in enumerate(LOSSES) for step in (1, 2)],
)
def test_given_penalties(loss, numeric, weight):
    """Each loss with two ways of numbers, and each way with two losses: neither knows of the other."""
    model = model_of(loss, alpha=1e-2, numeric=numeric, interactions=[("shop", "kind")], **CLOSE)
    assert_as_rows(model, TARGETS.get(loss, loss), GIVEN, weight=weight)


@pytest.mark.parametrize(
    ("loss", "interactions"),
    [
        (loss, interactions)
        for place, loss in enumerate([*LOSSES, "huber", "tweedie"])
        for interactions in ((None, "pairwise")[place % 2], "auto")
    ],
)
def test_estimated_penalties(loss, interactions):
    assert_as_rows(model_of(loss, interactions=interactions), TARGETS.get(loss, loss), ESTIMATED, weight="weight")


@pytest.mark.parametrize("loss", ["squared_error", "gamma"])
def test_uneven_weights(loss):
    """Weights that are unrelated to the noise count by less than their numbers; of copies as of rows."""
    rows, target = TABLE.assign(weight=np.where(TABLE["area"] < 1.0, 20.0, 0.5)), TARGETS.get(loss, loss)
    model = assert_as_rows(model_of(loss, interactions=None), target, ESTIMATED, rows=rows, weight="weight")
    assert model.model_.uncertainty.working > 1.1 * model.dispersion_


RARE = table_of(4000, seed=5, n_shops=400)
RARE["x"], RARE["z"] = np.where(RARE["x"] > 2, 3.0, 1.0), np.where(RARE["z"] > 0, np.nan, 1.0)


@pytest.mark.parametrize("most", [None, 1500])
@pytest.mark.parametrize("target", ["amount", "price", "two"])
def test_infrequent_categories_by_rows_held_out(target, most, monkeypatch):
    seen, held_out = [], newton_fit.HeldOut
    monkeypatch.setattr(newton_fit, "HeldOut", lambda *given: seen.append(given[0]) or held_out(*given))
    if most:
        monkeypatch.setattr(newton_fit, "MAX_HELD_OUT", most)
    loss = {"amount": "squared_error", "price": "gamma"}.get(target, target)
    model = inner(model_of(loss, interactions=None), rare_rows=100)
    assert_as_rows(model, target, ESTIMATED, rows=RARE, features=["shop", "kind"], weight="weight")
    tuned = target != "amount"  # of squared error the estimate is exact
    assert {solver.n_rows for solver in seen} == ({most or len(RARE)} if tuned else set())


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [WideClassifier(), WideRegressor(), WideRegressor(count_effect=False)])
@pytest.mark.parametrize("rows", [TABLE, RARE], ids=["common", "rare"])
def test_the_defaults(rows, estimator):
    for target in ["two", "three"] if isinstance(estimator, WideClassifier) else ["amount", "count", "price"]:
        assert_as_rows(estimator, target, ESTIMATED, rows=rows)


@pytest.mark.slow
@pytest.mark.parametrize("sampled", [False, True])
def test_the_loss_is_chosen_as_by_the_rows(sampled, monkeypatch):
    if sampled:
        monkeypatch.setattr(loss_selection, "MAX_ROWS", 1000)
    for target in ["amount", "count", "price"]:
        table, model = grouped(TABLE, target), WideRegressor(interactions=None)
        one = fitted(model, table, target, compressed=True, weight="weight")
        for rows in (TABLE, mixed(TABLE, 4)):
            other = fitted(model, rows, target, compressed=False, weight="weight")
            assert one.losses_["loss"].tolist() == other.losses_["loss"].tolist()
            np.testing.assert_allclose(one.losses_["score"], other.losses_["score"], rtol=1e-6)
            assert_same(one, other, TABLE[FEATURES], ESTIMATED)


@pytest.mark.parametrize("most", [900, 200_000])
@pytest.mark.parametrize("target", ["amount", "count", "two", "three"])
def test_interactions_are_searched_as_among_the_rows(target, most):
    auto = AutoInteractions(max_rows=most, significance=0.5, rounds=2, folds=3)
    model = model_of({"amount": "squared_error", "count": "poisson"}.get(target, target), alpha=0.01, interactions=auto)
    for weight in (None, "weight"):
        one = fitted(model, grouped(TABLE, target), target, compressed=True, weight=weight).interactions_
        for rows in (TABLE, mixed(TABLE, 4)):
            other = fitted(model, rows, target, compressed=False, weight=weight).interactions_
            assert len(one) or most == 900
            pd.testing.assert_frame_equal(one, other, rtol=1e-5)


@pytest.mark.parametrize(
    ("model", "target", "options"),
    [
        (WideRegressor(loss="poisson", exposure_column="area"), "count", {"features": [*FEATURES, "area"]}),
        (WideRegressor(loss="poisson"), "count", {"offset": "offset"}),
        (WideRegressor(exposure_column="area"), "count", {"features": [*FEATURES, "area"], "weight": "weight"}),
        (WideClassifier(class_weight="balanced"), "three", {"weight": "weight"}),
        (WideClassifier(class_weight="balanced"), "two", {"offset": "offset"}),
        (WideClassifier("c[1] + u[shop] + v[shop, kind] + s[1]*x"), "two", {"features": ["shop", "kind", "x"]}),
        (WideRegressor("c[1] + s(x) + w[kind]*x", loss="squared_error"), "amount", {"features": ["kind", "x"]}),
        (
            WideRegressor(loss="squared_error", monotonic_cst={"x": 1}, interactions=None),
            "amount",
            {"weight": "weight"},
        ),
        (WideRegressor(loss="squared_error", fixed={"kind": {"a": 1.0, "b": 0.0}}), "amount", {}),
        (WideRegressor(loss="squared_error", alpha={"shop": 0.1}), "amount", {}),
        (WideRegressor(loss="squared_error", alpha=0.0, numeric="linear", count_effect=False), "amount", {}),
    ],
    ids=lambda value: None,
)
def test_options(model, target, options):
    assert_as_rows(model, target, ESTIMATED, **options)


@pytest.mark.parametrize("formula", ["c[1] + a[shop]*m[kind]", "dot(u[shop], v[kind], rank=2) + c[1]"])
def test_products_of_terms(formula):
    model = WideRegressor(formula, loss="squared_error", alpha=1e-3, tol=1e-12, max_iter=5000)
    for target in ["amount"]:
        one = fitted(model, grouped(TABLE, target), target, compressed=True)
        for rows in (TABLE, mixed(TABLE, 4)):
            other = fitted(model, rows, target, compressed=False)
            np.testing.assert_allclose(one.predict(TABLE[FEATURES]), other.predict(TABLE[FEATURES]), atol=1e-5)


@pytest.mark.parametrize(("loss", "weight"), [("squared_error", None), ("poisson", None), ("gamma", "weight")])
def test_products_with_estimated_penalties(loss, weight):
    """Uneven numbers of copies are no uneven weights, and count as rows and events."""
    target, rows = TARGETS.get(loss, loss), TABLE.loc[np.repeat(TABLE.index[:400], np.resize([1, 1, 1, 30], 400))]
    rows = rows.reset_index(drop=True)
    model = WideRegressor("c[1] + a[shop]*m[kind]", loss=loss, tol=1e-8, max_iter=5000)
    one = fitted(model, grouped(rows, target), target, compressed=True, weight=weight)
    other = fitted(model, rows, target, compressed=False, weight=weight)
    np.testing.assert_allclose(one.variances_["variance"], other.variances_["variance"], rtol=1e-2)
    np.testing.assert_allclose(one.predict(TABLE[FEATURES]), other.predict(TABLE[FEATURES]), rtol=1e-3, atol=1e-3)


def test_categories_without_a_coefficient_of_their_own():
    model = WideRegressor(loss="squared_error", handle_unknown="similar")
    one = fitted(model, grouped(RARE, "amount"), "amount", compressed=True)
    other = fitted(model, RARE, "amount", compressed=False)
    new = RARE[FEATURES].assign(shop="another shop")
    np.testing.assert_allclose(one.predict(new), other.predict(new), rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=10, deadline=None)
@given(data=st.data(), loss=st.sampled_from(["squared_error", "poisson", "gamma", "two", "auto"]))
@pytest.mark.slow
def test_small_tables_of_any_kind(data, loss):
    n = data.draw(st.integers(4, 30))
    column = st.sampled_from(["a", "b", "\ud800", "1", None, ""])  # the third is half of a surrogate pair
    X = pd.DataFrame({
        "c": pd.Series(data.draw(st.lists(column, min_size=n, max_size=n)), dtype=object),
        "x": data.draw(st.lists(st.sampled_from([0.0, -0.0, 1.5, 2.0, np.nan]), min_size=n, max_size=n)),
    })  # fmt: skip
    freq = np.array(data.draw(st.lists(st.integers(0, 6), min_size=n, max_size=n)))
    freq[:2] = [1, 2]
    y = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), dtype=float)
    y[:2] = [0, 1]
    y = y > 0 if loss == "two" else y + 0.5 if loss == "gamma" else y
    model = model_of(loss, alpha=0.1, **CLOSE)
    if loss == "squared_error" and data.draw(st.booleans()):  # without a slope that separates, which has no optimum
        model.set_params(numeric="linear")
    one = clone(model).fit(X, y, freq_weights=freq)
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(n), freq))
    other = clone(model).fit(X.iloc[order].reset_index(drop=True), y[order])
    assert_same(one, other, X, 1e-6)
    assert one._n_rows() == freq.sum()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_rows_that_are_not_there(frame):
    columns = {"a": ["x", "y", "z", "x"], "b": ["u", "v", "u", "u"]}
    model = WideRegressor(loss="squared_error", alpha=0.1)
    one = model.fit(frame(columns), [1.0, 2.0, 9.0, 3.0], [1.0, 2.0, 3.0, 4.0], freq_weights=[2, 1, 0, 1])
    assert one.coefs_["a"].index.tolist() == ["x", "y"]
    rows = pd.DataFrame(columns).iloc[[0, 0, 1, 3]]
    other = clone(model).fit(rows, [1.0, 1.0, 2.0, 3.0], [1.0, 1.0, 2.0, 4.0])
    assert_same(one, other, rows, 1e-9)
    assert clone(model).fit(frame(columns), [1.0, 2.0, 9.0, 3.0], freq_weights=[1, 1, 1, 1])._n_rows() == 4


@pytest.mark.parametrize(
    ("freq", "message"),
    [
        ([1, -2, 1], "freq_weights is -2 in row 1"),
        ([1, 1, 0.5], "freq_weights is 0.5 in row 2"),
        ([np.nan, 1, 1], "freq_weights is nan in row 0"),
        ([np.inf, 1, 1], "freq_weights is inf in row 0"),
        ([1, 1], "pass one number for each"),
        (3, "pass one number for each"),
        ([0, 0, 0], "freq_weights is zero for every row"),
        (["a", 1, 1], "must hold whole numbers"),
    ],
)
def test_wrong_frequencies_are_named(freq, message):
    X = pd.DataFrame({"a": list("xyz")})
    for model, y in ((WideRegressor(), [1.0, 2.0, 3.0]), (WideClassifier(), ["u", "v", "u"])):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, freq_weights=freq)


def test_models_without_frequencies_refuse_them():
    X, y = pd.DataFrame({"a": list("xyz")}), [1.0, 2.0, 3.0]
    for model in (WideSGDRegressor(), WideBoostRegressor(), WideEncoder()):
        with pytest.raises(TypeError, match="freq_weights"):
            model.fit(X, y, freq_weights=[1, 2, 3])


def test_tables_read_in_batches_refuse_them(monkeypatch):
    monkeypatch.setattr(wide, "SAMPLE_ROWS", 0)
    rows = ds.dataset(pa.table({"a": ["x", "y"] * 5, "y": [1.0, 2.0] * 5}))
    with pytest.raises(ValueError, match=r"freq_weights is for a table in memory.*to_table"):
        WideRegressor().fit(rows, "y", freq_weights=[1] * 10)
    monkeypatch.undo()
    assert WideRegressor().fit(rows, "y", freq_weights=[2] * 10)._n_rows() == 20


@pytest.mark.parametrize("target", ["amount", "count", "price", "two"])
def test_against_statsmodels(target):
    sm = pytest.importorskip("statsmodels.api")
    table = grouped(TABLE, target)
    table = table[(table["freq"] > 0) & table["z"].notna()]
    family = {"count": sm.families.Poisson(), "two": sm.families.Binomial()}.get(target, sm.families.Gaussian())
    family = sm.families.Gamma(sm.families.links.Log()) if target == "price" else family
    y = (table[target] == "yes").astype(float) if target == "two" else table[target]
    theirs = sm.GLM(y, sm.add_constant(table[["x", "z"]]), family=family, freq_weights=table["freq"]).fit(
        tol=1e-14, scale=None if target == "two" else "X2"
    )
    loss = {"amount": "squared_error", "count": "poisson", "price": "gamma"}.get(target, "two")
    model = model_of(loss, alpha=0.0, numeric="linear", interactions=None, **CLOSE)
    model.fit(table[["x", "z"]], y, freq_weights=table["freq"])
    for name in ("x", "z"):
        own = model.coefs_[name][["value", "sd"]].to_numpy()[0]
        np.testing.assert_allclose(own, [theirs.params[name], theirs.bse[name]], rtol=1e-6)
    np.testing.assert_allclose(model.deviance_, theirs.deviance, rtol=1e-8)
    if target in ("count", "two"):
        theirs = sm.GLM(y, sm.add_constant(table[["x", "z"]]), family=family, freq_weights=table["freq"]).fit(scale=1.0)
        np.testing.assert_allclose(model.aic_, theirs.aic, rtol=1e-8)


@pytest.mark.slow
def test_a_table_is_not_expanded():
    """Whose rows would take more memory than there is."""
    table = grouped(TABLE, "two")
    many = table.assign(freq=table["freq"] * 1_000_000)
    model = fitted(WideClassifier(interactions=None), many, "two", compressed=True)
    assert model._n_rows() == 1_000_000 * len(TABLE)


@pytest.mark.slow
@pytest.mark.parametrize("numeric", ["smooth", "quantile", "modl"])
def test_numbers_that_differ_by_rounding_are_dealt_alike(numeric):
    """Sums of tenths, such as .1 + .2 and .3, which the mean that is subtracted makes equal or not."""
    rng, n = np.random.default_rng(11), 250
    X = pd.DataFrame({"a": rng.choice(list("wxyz"), n), "b": rng.integers(0, 12, n).astype(str)})
    X = X.assign(i=rng.integers(0, 9, n), x=rng.normal(size=n).round(1), e=rng.uniform(0.5, 2, n).round(1))
    y = X["a"].map({"w": 0.0, "x": 0.5, "y": 1.0, "z": -1.0}).to_numpy() + X["i"].to_numpy() * 0.1
    y += rng.normal(size=n).round(1)
    rows = np.repeat(np.arange(n), freq := rng.integers(0, 6, n))
    one = WideRegressor(loss="squared_error", numeric=numeric, alpha=0.1).fit(X, y, freq_weights=freq)
    for order in (rows, rng.permutation(rows)):
        other = clone(one).fit(X.iloc[order].reset_index(drop=True), y[order])
        pd.testing.assert_frame_equal(one.interactions_, other.interactions_, rtol=1e-5)


def test_numbers_that_differ_by_rounding_have_one_rank():
    ranks, size = ranks_of(np.array([0.1 + 0.2, 0.3, 0.5, np.nan, -1.0]))
    assert ranks.tolist() == [1, 1, 2, 3, 0] and size == 4
    ranks, size = ranks_of(np.array([1.0, 1.0 + 1e-9, 2.0, 1.0]) * 1e6)
    assert ranks.tolist() == [0, 1, 2, 0] and size == 3
    assert ranks_of(np.array([np.nan, np.nan]))[1] == 1 and ranks_of(np.empty(0))[1] == 0
