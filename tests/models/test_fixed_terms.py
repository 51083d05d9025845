"""``fixed``: terms with given coefficients are an offset in the fit and a term of the model."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from tabsym import WideClassifier, WideRegressor, load, save
from tabsym.models.export_terms import to_terms

REGION = {"north": 0.5, "south": -0.25, "east": 0.0}
PLAIN = {"interactions": None}


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "region": rng.choice(["north", "south", "east", "west"], n),
            "shop": rng.choice([f"s{index}" for index in range(8)], n),
            "price": rng.gamma(2.0, 1.0, n),
            "k": rng.integers(0, 3, n),
        }
    )
    eta = X["region"].map(REGION).fillna(0.0) + 0.3 * (X["shop"] == "s1") - 0.2 * X["price"]
    return X, eta.to_numpy(), rng


def target(kind, loss, eta, rng):
    if kind is WideClassifier:
        return rng.random(len(eta)) < 1 / (1 + np.exp(-eta))
    return rng.poisson(np.exp(eta)).astype(float) if loss == "poisson" else eta + rng.normal(size=len(eta))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (WideRegressor, {"loss": "squared_error"}),
        (WideRegressor, {"loss": "poisson"}),
        (WideRegressor, {"loss": "poisson", "alpha": 0.0, "n_posterior_samples": 8}),
        (WideClassifier, {}),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_fixed_term_is_an_offset_with_a_name(kind, options, weighted):
    X, eta, rng = table()
    y = target(kind, options.get("loss"), eta, rng)
    weight = rng.integers(0, 3, len(y)).astype(float) if weighted else None
    added = X["region"].map(REGION).fillna(0.0).to_numpy()
    own = rng.normal(0, 0.1, len(y))
    fixed = kind(fixed={"region": REGION}, **options | PLAIN).fit(X, y, weight, offset=own)
    offset = kind(**options | PLAIN).fit(X.drop(columns="region"), y, weight, offset=own + added)
    expected = offset.explain(X.drop(columns="region")).sum(axis=1) + added
    made = fixed.explain(X)
    assert np.allclose(made.sum(axis=1), expected, rtol=0, atol=1e-12)
    assert (made["region"] == added).all()
    frame = fixed.coefs_["region"]
    assert frame["value"].to_dict() == REGION
    assert (frame["sd"] == 0.0).all()
    used = X["region"] if weight is None else X["region"][weight > 0]
    assert frame["rows"].to_dict() == {name: int((used == name).sum()) for name in REGION}
    assert "region" not in fixed.variances_.index
    assert fixed.aic_ == pytest.approx(offset.aic_, rel=1e-9)
    line = next(line for line in fixed.summary().splitlines() if line.startswith("region"))
    assert "fixed" in line
    assert "region" not in "".join(line for line in fixed.summary().splitlines() if line.startswith("dropped"))
    assert fixed.feature_importances_[0] > 0.0
    new = X.head(3).assign(region=["north", "never seen", None])
    assert np.allclose(fixed.explain(new)["region"], [0.5, 0.0, 0.0])
    contrast = fixed.contrast("region", "north", "south")
    assert contrast["value"] == 0.75
    assert contrast["sd"] == 0.0
    if "n_posterior_samples" in options:
        found, sd = fixed.predict(new, return_std=True, offset=np.zeros(3))
        other, other_sd = offset.predict(new.drop(columns="region"), return_std=True, offset=np.zeros(3))
        assert (sd / found).tolist() == pytest.approx((other_sd / other).tolist())


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_what_a_fit_found_can_be_fixed(loss):
    """Categories, bins, numbers as categories: as `coefs_` has them, with other columns fitted as before."""
    X, eta, rng = table()
    X.loc[::9, "price"] = np.nan
    y = target(WideRegressor, loss, eta, rng) if loss == "squared_error" else rng.poisson(1.0, len(X)).astype(float)
    options = {"loss": loss, "alpha": 0.01, "tol": 1e-8, "categorical_features": ["region", "shop", "k"]} | PLAIN
    first = WideRegressor(**options).fit(X, y)
    given = {name: first.coefs_[name] for name in ("price", "k")} | {"region": first.coefs_["region"]["value"]}
    second = WideRegressor(fixed=given, **options).fit(X, y)
    assert second.predict(X) == pytest.approx(first.predict(X), abs=1e-6)
    for name in given:
        assert second.coefs_[name]["value"].to_dict() == first.coefs_[name]["value"].to_dict()
        assert second.coefs_[name]["rows"].to_dict() == first.coefs_[name]["rows"].to_dict()
    assert second.coefs_["price"][["low", "high"]].equals(first.coefs_["price"][["low", "high"]])


def test_a_slope_and_terms_of_formulas():
    X, eta, rng = table()
    y = target(WideRegressor, "squared_error", eta, rng)
    options = {"loss": "squared_error"} | PLAIN
    slope = WideRegressor(fixed={"price": -0.2}, **options).fit(X, y)
    beside = WideRegressor(**options).fit(X.drop(columns="price"), y, offset=-0.2 * X["price"])
    expected = beside.explain(X.drop(columns="price")).sum(axis=1) - 0.2 * X["price"]
    assert np.allclose(slope.predict(X), expected, atol=1e-12)
    assert slope.explain(X).sum(axis=1).to_numpy() == pytest.approx(slope.predict(X), abs=1e-12)
    assert slope.coefs_["price"]["value"].tolist() == [-0.2]
    frame = X.assign(y=y)
    fixed = {"w": REGION, "s": -0.2}
    text = "y ~ w[region] + v[shop] + 2*s[1]*log(price) + b[1]"
    formula = WideRegressor(text, loss="squared_error", fixed=fixed).fit(frame)
    added = X["region"].map(REGION).fillna(0.0) - 0.4 * np.log(X["price"])
    other = WideRegressor("y ~ v[shop] + b[1]", loss="squared_error").fit(frame, offset=added)
    assert np.allclose(formula.explain(frame).sum(axis=1), other.explain(frame).sum(axis=1) + added, atol=1e-12)
    product = WideRegressor("y ~ w[region] + v[shop]*u[k] + b[1]", loss="squared_error", fixed={"w": REGION}).fit(frame)
    assert product.coefs_["w"]["value"].to_dict() == REGION
    assert np.isfinite(product.predict(frame)).all()


def test_several_classes_have_a_number_each():
    X, _, rng = table()
    y = rng.choice(list("abc"), len(X))
    given = {"north": [0.5, 0.0, -0.5], "south": (0.0, 1.0, 0.0)}
    model = WideClassifier(fixed={"region": given, "k": [0.1, 0.0, 0.0]}, **PLAIN).fit(X, y)
    added = np.array([given.get(name, [0.0] * 3) for name in X["region"]]) + np.outer(X["k"], [0.1, 0.0, 0.0])
    other = WideClassifier(**PLAIN).fit(X[["shop", "price"]], y, offset=added)
    assert np.allclose(model.predict_proba(X), other.predict_proba(X[["shop", "price"]], offset=added), atol=1e-9)
    again = WideClassifier(fixed={"region": model.coefs_["region"], "k": [0.1, 0.0, 0.0]}, **PLAIN).fit(X, y)
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    for wrong in (REGION, {"north": [0.5, np.nan, 0.0]}, {"north": [0.5, 0.0]}):
        with pytest.raises(ValueError, match="3 finite numbers, one for each class"):
            WideClassifier(fixed={"region": wrong}).fit(X, y)


def test_a_slope_is_given_as_coefs_have_it_and_a_category_by_its_name():
    """A mapping by the term's own name is a slope for numbers, and for categories one that is called so."""
    X, eta, rng = table(100)
    frame = X.assign(y=target(WideRegressor, "squared_error", eta, rng), region=X["region"].replace("north", "region"))
    text, options = "y ~ s[1]*price + v[shop] + b[1]", {"loss": "squared_error"}
    first = WideRegressor(text, **options).fit(frame)
    by_number = WideRegressor(text, fixed={"s": float(first.coefs_["s"]["value"].iloc[0])}, **options).fit(frame)
    by_frame = WideRegressor(text, fixed={"s": first.coefs_["s"]}, **options).fit(frame)
    np.testing.assert_array_equal(by_frame.predict(frame), by_number.predict(frame))
    named = WideRegressor(fixed={"region": {"region": 0.5}}, **options, **PLAIN)
    with pytest.warns(UserWarning, match="no value for"):
        named.fit(frame[["region", "shop"]], frame["y"])
    np.testing.assert_allclose(named.explain(frame[["region", "shop"]])["region"], 0.5 * (frame["region"] == "region"))


def test_missing_numbers_of_a_given_slope_are_the_mean():
    x = np.array([1.0, 2.0, np.nan, 5.0, 4.0] * 8)
    y, weight = 3.0 + 0.5 * np.where(np.isnan(x), 3.5, x), np.tile([1.0, 1.0, 7.0, 2.0, 1.0], 8)  # mean 17 / 5 = 3.4
    model = WideRegressor(loss="squared_error", fixed={"x": 0.5}, **PLAIN).fit(pd.DataFrame({"x": x}), y, weight)
    added = model.explain(pd.DataFrame({"x": [1.0, np.nan, 5.0]}))["x"]
    np.testing.assert_allclose(np.diff(added), [0.5 * 2.4, 0.5 * 1.6])


def test_interactions_leave_fixed_columns_out():
    X, _, rng = table(2_000)
    same = (X["region"] == "north") == (X["shop"] < "s4")
    y = same * 3.0 + rng.normal(size=len(X))
    free = WideRegressor(loss="squared_error").fit(X, y)
    assert "region" in "".join(free.interactions_["interaction"])
    fixed = WideRegressor(loss="squared_error", fixed={"region": REGION}).fit(X, y)
    assert "region" not in "".join(fixed.interactions_["interaction"])


def test_clone_search_and_files(tmp_path):
    X, eta, rng = table()
    y = target(WideRegressor, "squared_error", eta, rng)
    first = WideRegressor(loss="squared_error", **PLAIN).fit(X, y)
    for number, given in enumerate(({"region": REGION}, {"k": {0: 0.5}}, {"price": first.coefs_["price"], "k": 0.1})):
        model = WideRegressor(loss="squared_error", fixed=given, **PLAIN).fit(X, y)
        save(model, tmp_path / f"{number}.skops")
        back = load(tmp_path / f"{number}.skops")
        assert (back.predict(X) == model.predict(X)).all()
        assert back.coefs_["k"].equals(model.coefs_["k"])
        assert (clone(back).fit(X, y).predict(X) == model.predict(X)).all()
    grid = {"fixed": [None, {"region": pd.Series(REGION)}]}
    search = GridSearchCV(WideRegressor(loss="squared_error", **PLAIN), grid, cv=2).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_all_columns_may_be_fixed():
    X, eta, _ = table()
    model = WideRegressor(loss="squared_error", fixed={"region": REGION}, **PLAIN).fit(X[["region"]], eta)
    added = X["region"].map(REGION).fillna(0.0)
    assert model.predict(X[["region"]]) == pytest.approx((added + (eta - added).mean()).to_numpy(), abs=1e-9)


REFUSED = [
    ({"fixed": {}}, "use a mapping from term"),
    ({"fixed": {"region": "north"}}, r"fixed\['region'\]='north' is not possible"),
    ({"fixed": {"religion": REGION}}, "names 'religion', which is no feature of the table; there is 'region'"),
    ({"fixed": {"region": 0.5}}, "one number for categories"),
    ({"fixed": {"region": {"north": np.nan}}}, "give a finite number for each category"),
    ({"fixed": {"region": {"north": "much"}}}, "holds 'much'; give a finite number for each category"),
    ({"fixed": {"region": {"nord": 1.0}}}, "has no category of column 'region'"),
    ({"fixed": {"region": {1: 1.0}}}, "of another type than the values of column 'region'"),
    ({"fixed": {"region": REGION}, "interactions": [("region", "shop")]}, "a fixed column is in no interaction"),
    ({"fixed": {"price": 1.0}, "numeric": {"price": "linear"}}, "numeric names 'price', which is fixed"),
    ({"fixed": {"price": 1.0}, "monotonic_cst": {"price": 1}}, "names 'price', which has no term in the model"),
    ({"fixed": {"region": REGION}, "loss": "auto"}, "name the loss"),
    ({"fixed": {"price": pd.DataFrame({"value": [1.0, 2.0], "low": [-np.inf, 2.0], "high": [1.0, np.inf]})}}, "gaps"),
    ({"fixed": {"u": REGION}, "formula": "w[region] + b[1]"}, "no term of the formula; it has w, b"),
    (
        {"fixed": {"region": REGION}, "formula": "w[region] + b[1]"},
        "it has w, b; the coefficients of column 'region' are in the term 'w'",
    ),
    ({"fixed": {"w": REGION}, "formula": "w[region]*v[shop] + b[1]"}, "have a term of their own"),
    ({"fixed": {"b": 1.0}, "formula": "w[region] + b[1]"}, "have a term of their own"),
    ({"fixed": {"s": REGION}, "formula": "s[1]*price + b[1]"}, "for a slope; give one number"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_has_no_effect_is_a_sentence(options, message):
    X, eta, rng = table()
    with pytest.raises(ValueError, match=message):
        WideRegressor(**{"loss": "squared_error"} | options).fit(X, target(WideRegressor, "", eta, rng))


INF = np.inf


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ([-INF, 2.0], [1.0, INF]),  # a gap
        ([-INF, 1.0, 3.0], [1.0, 2.0, INF]),  # after others that meet
        ([-INF, 1.0], [2.0, INF]),  # an overlap
        ([0.0, 1.0], [1.0, INF]),  # the lowest have none
        ([-INF, 1.0], [1.0, 9.0]),  # the highest have none
        ([-INF, 1.0, 1.0], [1.0, 1.0, INF]),  # (1, 1] is empty
        ([np.nan, np.nan, -INF], [np.nan, np.nan, INF]),  # missing numbers have two
        ([np.nan], [np.nan]),
        ([np.nan, -INF], [1.0, INF]),
    ],
)
def test_bins_that_are_given_hold_each_number_once(low, high):
    X, eta, _ = table(60)
    given = pd.DataFrame({"low": low, "high": high, "value": np.arange(len(low)) * 0.5})
    with pytest.raises(ValueError, match="has bins with gaps or overlaps"):
        WideRegressor(loss="squared_error", fixed={"price": given}, **PLAIN).fit(X, eta)


@pytest.mark.parametrize("columns", [["low", "high", "value"], ["value", "high", "low"]])
def test_bins_that_are_given_may_be_in_any_order(columns):
    """Numbers in (low, high], and the missing one, have the values given."""
    x = np.tile([0.5, 1.0, 1.5, 2.0, 2.5, np.nan], 10)
    given = pd.DataFrame(
        {"low": [2.0, -INF, np.nan, 1.0], "high": [INF, 1.0, np.nan, 2.0], "value": [4.0, 1.0, -1.0, 2.0]}
    )
    wanted = np.tile([1.0, 1.0, 2.0, 2.0, 4.0, -1.0], 10)
    model = WideRegressor(loss="squared_error", fixed={"x": given[columns]}, **PLAIN).fit(
        pd.DataFrame({"x": x}), wanted
    )
    np.testing.assert_allclose(model.predict(pd.DataFrame({"x": x})), wanted, atol=1e-12)
    np.testing.assert_allclose(model.explain(pd.DataFrame({"x": x[:6]}))["x"], wanted[:6])


def test_a_category_is_given_once_and_bins_are_of_numbers():
    X, eta, _ = table(60)
    twice = pd.Series([1.0, 2.0, 0.5], index=["north", "south", "north"])
    missing = pd.Series([1.0, 2.0, 0.5], index=["north", None, np.nan])
    for given in (twice, missing):
        with pytest.raises(ValueError, match="has a category twice"):
            WideRegressor(loss="squared_error", fixed={"region": given}, **PLAIN).fit(X, eta)
    bins = pd.DataFrame({"low": [-INF, 1.0], "high": [1.0, INF], "value": [0.0, 1.0]})
    with pytest.raises(ValueError, match="has bins, and column 'region' is categorical"):
        WideRegressor(loss="squared_error", fixed={"region": bins}, **PLAIN).fit(X, eta)


def test_categories_without_a_value_are_told(recwarn):
    X = pd.DataFrame({"region": ["north", "south", None] * 20})
    y = np.arange(60.0)
    options = {"loss": "squared_error"} | PLAIN
    WideRegressor(fixed={"region": {"north": 1.0, "south": 0.0, None: 0.5}}, **options).fit(X, y)
    assert not recwarn.list
    with pytest.warns(
        UserWarning, match=r"no value for 20 rows, such as of 'south', and adds 0 there; it has values f"
    ):
        WideRegressor(fixed={"region": {"north": 1.0, "suoth": 0.2, None: 0.5}}, **options).fit(X, y)
    with pytest.warns(UserWarning, match=r"it has values for 'a', 'b', 'c', which training has not"):
        WideRegressor(fixed={"region": {"north": 1.0} | dict.fromkeys("abcd", 0.2)}, **options).fit(X, y)
    with pytest.warns(UserWarning, match=r"no value for 40 rows, such as of 'south', and adds 0 there\.$"):
        WideRegressor(fixed={"region": {"north": 1.0}}, **options).fit(X, y)


def test_numbers_in_sentences_are_written_as_python_writes_them():
    X, y = pd.DataFrame({"k": [1, 3, 2] * 10}), np.arange(30.0)
    options = {"loss": "squared_error"} | PLAIN
    with pytest.warns(UserWarning, match=r"no value for 20 rows, such as of 3, and adds 0"):
        WideRegressor(fixed={"k": {1: 0.5}}, **options).fit(X, y)
    with pytest.raises(ValueError, match=r"has no category of column 'k', such as 1; give values"):
        WideRegressor(fixed={"k": {7: 0.5}}, **options).fit(X, y)


@pytest.mark.parametrize("unknown", ["neutral", "similar"])
def test_unknown_categories_of_given_terms_add_nothing(unknown):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"g": rng.choice(list("abcd"), 300), "h": rng.choice(list("xyz"), 300)})
    given = {"x": 2.0, "y": 3.0, "z": 4.0}
    y = X["h"].map(given) + (X["g"] == "a") + rng.normal(0, 0.3, 300)
    model = WideRegressor(loss="squared_error", fixed={"h": given}, interactions=None, handle_unknown=unknown).fit(X, y)
    new = pd.DataFrame({"g": ["a", "a"], "h": ["x", "never"]})
    found = model.predict(new)
    assert found[0] - found[1] == pytest.approx(2.0)


@pytest.mark.parametrize("labels", [["a", "b", "c"], ["low", "mid", "high"], ["rows", "sd a", "value"], [1, 2, 3]])
def test_given_coefficients_of_several_classes_are_read_by_name(labels, tmp_path):
    """As `coefs_` has them, whatever the classes are called, and in any order of the classes."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"g": rng.choice(list("pqr"), 400), "z": rng.normal(size=400), "x": rng.normal(size=400)})
    y = np.array(labels, dtype=object)[rng.integers(0, 3, 400)]
    y = y.astype(int) if labels == [1, 2, 3] else y
    numeric = {"z": [-0.5, 0.5], "x": "linear"}
    model = WideClassifier(interactions=None, numeric=numeric).fit(X, y)
    columns = [str(label) for label in model.classes_]
    for names in (["g"], ["z"], ["g", "z"], ["x"]):
        given = {name: model.coefs_[name] for name in names}
        made, left = [], {name: how for name, how in numeric.items() if name not in names}
        for frames in (given, {name: frame[frame.columns[::-1]] for name, frame in given.items()}):
            again = WideClassifier(interactions=None, numeric=left, fixed=frames).fit(X, y)
            for name in names:
                found, wanted = (one.coefs_[name].iloc[:, :3].sort_index() for one in (again, model))
                assert [str(column) for column in found.columns] == columns
                np.testing.assert_allclose(found.to_numpy(), wanted.to_numpy(), rtol=1e-9)
            save(again, tmp_path / "m.skops")
            made.append(load(tmp_path / "m.skops").predict_proba(X))
        np.testing.assert_array_equal(*made)
    slope = WideClassifier(interactions=None, numeric="linear").fit(X[["x"]], y == y[0])
    same = WideClassifier(interactions=None, numeric="linear", fixed={"x": slope.coefs_["x"]}).fit(X[["x"]], y == y[0])
    np.testing.assert_allclose(same.predict_proba(X[["x"]]), slope.predict_proba(X[["x"]]), rtol=1e-3)


@pytest.mark.parametrize("base", [None, {"k": "a"}])
def test_a_given_term_whose_one_category_is_the_base_stays_in_an_export(base):
    """Its category has 0 then, and all others what that had, in the class that has it."""
    X = pd.DataFrame({"g": list("pqpqpqrr") * 6, "k": list("aabb") * 12})
    y = np.resize(list("xyzzy"), 48)
    fixed = {"k": {"a": [0.5, 0.0, 0.0]}}
    with pytest.warns(UserWarning, match="no value for 24 rows"):
        model = WideClassifier(fixed=fixed, **PLAIN).fit(X, y)
    terms = to_terms(model, base)
    for row in range(8):
        score = np.zeros(3)
        for term in terms.terms:
            (factor,) = term.lookups
            table = terms.tables[factor.table]
            code = 0
            if table.codings:
                categories = terms.codings[table.codings[0]].categories.tolist()
                value = X[table.name][row]
                code = categories.index(value) if value in categories else -1
            score += term.constant * (table.values[code] if code >= 0 else table.default)[factor.component]
        found = model.decision_function(X.iloc[[row]])[0]
        np.testing.assert_allclose(score - score.mean(), found - found.mean(), atol=1e-12)
