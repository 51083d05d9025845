"""Interactions within one category: of its rows only, with a variance of their own."""

import numpy as np
import pandas as pd
import pyarrow.dataset
import pytest
from sklearn.metrics import log_loss, root_mean_squared_error

from tabsym import WideClassifier, WideRegressor, WideSGDRegressor, load, save
from tabsym.export import from_spec, to_csv, to_spec, to_sql
from tabsym.interactions import AutoInteractions
from tabsym.interactions.gains import CodeColumn, HeldOutGains
from tabsym.interactions.search import _Search, choose_crosses
from tabsym.losses.loss import LOSSES
from tabsym.models import wide
from tabsym.models.out_of_core import fit as out_of_core
from tabsym.models.out_of_core import parts

SHOPS, WEEKS = list("stuvwxyz"), list("0123456789")
NAMED = [({"carrier": None}, "shop", "week")]


def table(n=6000, seed=0, within=2.0):
    """Parcels whose carrier is missing have a mean for each shop and week; others one for each carrier."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "carrier": rng.choice(["a", "b", "c", None], n, p=[0.5, 0.3, 0.1, 0.1]),
            "shop": rng.choice(SHOPS, n),
            "week": rng.choice(WEEKS, n),
            "weight": rng.gamma(2.0, 1.0, n),
        }
    )
    mean = pd.Series(within * rng.normal(size=80), [a + b for a in SHOPS for b in WEEKS])
    own = np.where(X["carrier"].isna(), (X["shop"] + X["week"]).map(mean), X["carrier"] == "a")
    return X, own.astype(float), rng


def with_unknown(X):
    X = X.copy()
    X.loc[:9, "shop"], X.loc[10:19, "carrier"] = "new", 99.0 if X["carrier"].dtype == float else "other"
    return X


@pytest.mark.parametrize("seed", range(3))
def test_what_is_of_one_category_only_is_found_and_predicts_better(seed):
    X, mean, rng = table(12_000, seed)
    y = mean + rng.normal(size=len(X))
    model = WideRegressor(loss="squared_error", random_state=0).fit(X[:6000], y[:6000])
    chosen = model.interactions_.set_index("interaction")
    assert chosen.loc["carrier is missing:shop:week", "order"] == 3
    plain = WideRegressor(loss="squared_error", interactions=AutoInteractions(), random_state=0).fit(X[:6000], y[:6000])
    errors = [root_mean_squared_error(mean[6000:], one.predict(X[6000:])) for one in (model, plain)]
    assert errors[0] < 0.7 * errors[1]


def test_classes_have_them_too():
    X, mean, rng = table(30_000, within=3.0)
    y = rng.random(len(X)) < 1 / (1 + np.exp(-mean - 0.5 * (X["shop"] == "s") * X["carrier"].isna()))
    halves = slice(0, 15_000), slice(15_000, None)
    losses = []
    for interactions in ("auto", AutoInteractions(penalty=15.0, folds=4)):
        model = WideClassifier(interactions=interactions, random_state=0).fit(X[halves[0]], y[halves[0]])
        losses.append(log_loss(y[halves[1]], model.predict_proba(X[halves[1]])[:, 1]))
        if interactions == "auto":
            assert "carrier is missing:shop:week" in model.interactions_["interaction"].tolist()
    assert losses[0] < losses[1]


@pytest.mark.parametrize("seed", range(4))
def test_a_pair_of_one_category_alone_has_none_within_it(seed):
    X, _, rng = table(seed=seed)
    own = X["shop"].map(dict(zip(SHOPS, 3 * rng.normal(size=8)))) * X["carrier"].isna()
    y = own + X["week"].map(dict(zip(WEEKS, rng.normal(size=10)))) + rng.normal(size=len(X))
    chosen = WideRegressor(loss="squared_error", random_state=0).fit(X, y).interactions_["interaction"].tolist()
    assert chosen == ["carrier:shop"]


@pytest.mark.parametrize("weighted", [False, True])
def test_coefficients_are_those_of_ridge_on_the_rows_of_the_category(weighted):
    X, mean, rng = table()
    y, weight = mean + rng.normal(size=len(X)), rng.integers(1, 4, len(X)).astype(float) if weighted else None
    X = X[["carrier", "shop", "week"]]
    model = WideRegressor(loss="squared_error", interactions=NAMED, count_effect=False, tol=1e-6)
    model.fit(X, y, sample_weight=weight)
    columns, penalties = [np.ones((len(X), 1))], [0.0]
    keys = {name: X[name].fillna("none") for name in X}
    keys["carrier is missing:shop:week"] = (X["shop"] + X["week"]).where(X["carrier"].isna())
    for name, key in keys.items():
        variance = model.variances_.loc[name, "variance"]
        if variance > 0.0:
            columns.append(pd.get_dummies(key).to_numpy(dtype=float))
            penalties += [model.dispersion_ / variance] * columns[-1].shape[1]
    Z, w = np.hstack(columns), np.ones(len(X)) if weight is None else weight / weight.mean()
    theta = np.linalg.solve((Z.T * w) @ Z + np.diag(penalties), (Z.T * w) @ y)
    np.testing.assert_allclose(model.predict(X), Z @ theta, atol=1e-4)


def test_effects_add_up_and_rows_of_other_categories_have_none():
    X, mean, rng = table()
    y = mean + 2.0 * X["carrier"].isna() + rng.normal(size=len(X))  # a mean of its own
    model = WideRegressor(loss="squared_error", interactions=NAMED).fit(X, y)
    parts = model.explain(X)
    np.testing.assert_allclose(parts.sum(axis=1), model.predict(X), atol=1e-9)
    assert (parts.loc[X["carrier"].notna(), "carrier is missing:shop:week"] == 0.0).all()
    frame = model.coefs_["carrier is missing:shop:week"]
    assert frame["rows"].sum() == X["carrier"].isna().sum()
    own = parts["carrier is missing:shop:week"]
    shares = model.variances_
    assert shares.loc["carrier is missing:shop:week", "coefficients"] == len(frame) == 80
    total = {name: float(np.var(parts[name])) for name in parts if name != "(intercept)"}
    wanted = sum(total[n] / (3 if ":" in n else 1) for n in total if n.startswith("carrier")) / sum(total.values())
    assert model.feature_importances_[0] == pytest.approx(wanted, rel=1e-6)
    assert np.var(own) > 0.0
    changed = model.with_coefs({"carrier is missing:shop:week": {frame.index[0]: 50.0}})
    moved = changed.predict(X) - model.predict(X)
    cell = (X["shop"] == frame.index[0][1]) & (X["week"] == frame.index[0][2]) & X["carrier"].isna()
    assert np.ptp(moved[cell]) < 1e-9
    assert np.abs(moved[cell]).min() > 10.0
    assert np.ptp(moved[~cell]) < 1e-9


@pytest.mark.parametrize("base", [None, "largest", {"carrier": "b", "shop": "u"}])
def test_tables_of_coefficients_add_up_with_any_base(base):
    X, mean, rng = table()
    model = WideRegressor(loss="squared_error", interactions=NAMED, numeric="linear", count_effect=False)
    model.fit(X[["carrier", "shop", "week"]], mean + rng.normal(size=len(X)))
    values = model.coef_table(base=base)
    of = {
        (term, category if isinstance(category, tuple) else (category,)): value
        for term, category, value in zip(values["term"], values["category"], values["value"], strict=True)
    }
    of = {(term, tuple(None if pd.isna(one) else one for one in key)): value for (term, key), value in of.items()}
    keys = {name: [(None if pd.isna(one) else one,) for one in X[name]] for name in ("carrier", "shop", "week")}
    cells = [(None, shop, week) for shop, week in zip(X["shop"], X["week"], strict=True)]
    own = [of["carrier is missing:shop:week", cell] if carrier == (None,) else 0.0
           for cell, carrier in zip(cells, keys["carrier"], strict=True)]  # fmt: skip
    added = of["(intercept)", (None,)] + sum(np.array([of[name, key] for key in keys[name]]) for name in keys) + own
    np.testing.assert_allclose(added, model.predict(X[["carrier", "shop", "week"]]), atol=1e-9)


def test_a_base_within_one_category_is_refused(tmp_path):
    X, mean, _ = table(1000)
    model = WideRegressor(loss="squared_error", interactions=NAMED).fit(X, mean)
    wanted = {"carrier is missing:shop:week": (None, "s", "0")}
    for ask in (model.coef_table, lambda base: to_csv(model, tmp_path, base=base)):
        with pytest.raises(ValueError, match=r"base names 'carrier is missing:shop:week'.*no intercept can take up"):
            ask(base=wanted)


def test_an_unknown_combination_is_uncertain_in_its_category_only():
    X, mean, rng = table()
    model = WideRegressor(loss="squared_error", interactions=NAMED, n_posterior_samples=400, random_state=0)
    model.fit(X, mean + rng.normal(size=len(X)))
    new = pd.concat([X[X["carrier"].isna()][:1], X[X["carrier"] == "a"][:1]]).assign(shop="new")
    deviations = model.predict(new, return_std=True)[1]
    prior = np.sqrt(model.variances_.loc["carrier is missing:shop:week", "variance"])
    assert deviations[0] == pytest.approx(prior, rel=0.2)
    assert deviations[1] < 0.3 * prior


def with_number(X):
    """The same rows with a numeric column, missing where the carrier is."""
    return X.assign(carrier=np.where(X["carrier"].isna(), np.nan, X["weight"].round(1)))


@pytest.mark.slow
@pytest.mark.parametrize("is_number", [False, True])
def test_files_and_exports_predict_the_same(tmp_path, is_number):
    duckdb = pytest.importorskip("duckdb")
    X, mean, rng = table()
    X = with_number(X) if is_number else X
    model = WideRegressor(loss="squared_error", random_state=0).fit(X, mean + rng.normal(size=len(X)))
    assert "carrier is missing:shop:week" in model.coefs_
    new, wanted = with_unknown(X), model.predict(with_unknown(X))
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict(new), wanted)
    pd.testing.assert_frame_equal(again.interactions_, model.interactions_)
    np.testing.assert_allclose(np.ravel(from_spec(to_spec(model)).predict(new)), wanted, atol=1e-12)
    with duckdb.connect() as connection:
        connection.register("given", new.assign(number=range(len(new))))
        connection.execute("create table rows as select * from given")
        connection.execute(to_sql(model, dialect="duckdb"))
        found = connection.execute("select prediction from rows_prediction order by number").df()
    np.testing.assert_allclose(found["prediction"], wanted, atol=1e-9)


@pytest.mark.parametrize("interactions", ["auto", NAMED])
@pytest.mark.parametrize("is_number", [False, True])
def test_tables_on_disk_have_them_too(tmp_path, monkeypatch, interactions, is_number):
    opened = []
    engine = out_of_core.OneAfterTheOther

    def counted(*args):
        opened.append(engine(*args))
        return opened[-1]

    monkeypatch.setattr(out_of_core, "OneAfterTheOther", counted)
    monkeypatch.setattr(wide, "SAMPLE_ROWS", 0)
    monkeypatch.setattr(parts, "PART_ROWS", 2_500)
    X, mean, rng = table()
    X = with_number(X) if is_number else X
    y = mean + rng.normal(size=len(X))
    X.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    options = {"loss": "squared_error", "interactions": interactions, "random_state": 0}
    in_memory = WideRegressor(**options).fit(X, y)
    on_disk = WideRegressor(**options).fit(pyarrow.dataset.dataset(tmp_path / "rows.parquet"), "y")
    assert len(opened) == 1
    assert "carrier is missing:shop:week" in on_disk.coefs_
    np.testing.assert_allclose(on_disk.predict(X), in_memory.predict(X), atol=1e-9)


def test_order_and_copies_of_rows_do_not_matter():
    X, mean, rng = table()
    y, copies = mean + rng.normal(size=len(X)), rng.integers(1, 4, len(X))
    options = {"loss": "squared_error", "random_state": 0}
    model = WideRegressor(**options).fit(X, y)
    order = rng.permutation(len(X))
    turned = X[X.columns[::-1]]
    other = WideRegressor(**options).fit(turned.iloc[order], y[order])
    np.testing.assert_allclose(other.predict(turned), model.predict(X), atol=1e-9)
    repeated = np.repeat(np.arange(len(X)), copies)
    counted = WideRegressor(**options).fit(X, y, freq_weights=copies)
    other = WideRegressor(**options).fit(X.iloc[repeated], y[repeated])
    assert "carrier is missing:shop:week" in counted.coefs_
    pd.testing.assert_frame_equal(counted.interactions_, other.interactions_)
    np.testing.assert_allclose(counted.predict(X), other.predict(X), atol=1e-9)


def test_numbers_as_categories_and_bins_within_one():
    X, _, rng = table()
    X["carrier"] = pd.Categorical(X["carrier"].map({"a": 3, "b": 5, "c": 7}).fillna(9).astype(int))
    y = (
        np.sin(3 * X["weight"])
        * (X["carrier"] == 9)
        * X["shop"].map(dict(zip(SHOPS, rng.normal(size=8)))).astype(float)
    )
    y = 3 * y + rng.normal(size=len(X))
    model = WideRegressor(loss="squared_error", interactions=[({"carrier": 9}, "shop", "weight")]).fit(X, y)
    of_numpy = WideRegressor(loss="squared_error", interactions=[({"carrier": np.int64(9)}, "shop", "weight")])
    assert to_sql(of_numpy.fit(X, y)) == to_sql(model)
    names = [f"carrier=9:shop:weight{bins}" for bins in ("", " (4 bins)", " (16 bins)")]
    assert set(names) <= set(model.coefs_)
    assert "carrier=9:shop:weight" in model.explain(X)
    assert model.score(X, y) > WideRegressor(loss="squared_error", interactions=None).fit(X, y).score(X, y) + 0.1


def test_online_models_take_them_where_they_are_asked_for():
    X, mean, rng = table(12_000)
    y = mean + rng.normal(size=len(X))
    model = WideSGDRegressor(interactions=AutoInteractions(within_categories=True), random_state=0).fit(X, y)
    assert "carrier is missing:shop:week" in model.coefs_
    assert model.predict(X).mean() == pytest.approx(y.mean(), abs=1e-6)
    assert np.isfinite(model.partial_fit(X[:100], y[:100]).predict(X)).all()
    named = WideSGDRegressor(interactions=NAMED, random_state=0).fit(with_number(X), y)
    assert (named.explain(with_number(X))["carrier is missing:shop:week"][X["carrier"].notna()] == 0.0).all()


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ([({"carrier": "zz"}, "shop", "week")], r"names 'zz' of 'carrier', and no row has it; it has"),
        ([({"weight": 1.0}, "shop", "week")], "names 1.0 of 'weight', a numeric column"),
        ([({"weight": None}, "shop", "week")], "names missing, None, of 'weight', which no row lacks"),
        ([({"carier": "a"}, "shop")], "names 'carier', and there is no such column; there is 'carrier'"),
        ([({"carrier": "a"},)], "no pair or triple of different columns"),
        ([({"carrier": ["a"]}, "shop")], "no pair or triple of different columns"),
        ([({}, "shop")], "no pair or triple of different columns"),
        ([({"carrier": "a"}, "carrier")], "no pair or triple of different columns"),
        ([({"carrier": "a"}, {"shop": "s"})], "no pair or triple of different columns"),
        ([({"carrier": "a"}, "shop"), ("shop", {"carrier": "a"})], "twice; leave one of them out"),
    ],
)
def test_wrong_names_are_named(named, message):
    X, mean, _ = table(300)
    with pytest.raises(ValueError, match=message):
        WideRegressor(interactions=named).fit(X, mean)


def test_missing_and_a_category_of_that_name_are_two():
    X, mean, rng = table()
    X["carrier"] = X["carrier"].replace("b", "missing")
    named = [({"carrier": None}, "shop", "week"), ({"carrier": "missing"}, "shop", "week")]
    model = WideRegressor(loss="squared_error", interactions=named).fit(X, mean + rng.normal(size=len(X)))
    rows = [model.coefs_[name]["rows"].sum() for name in ("carrier is missing:shop:week", "carrier=missing:shop:week")]
    assert rows == [X["carrier"].isna().sum(), (X["carrier"] == "missing").sum()]


@pytest.mark.slow
def test_many_columns_do_not_fit_the_category_by_chance():
    X, _, rng = table(8000)
    noise = pd.DataFrame({f"c{i}": rng.choice(WEEKS, len(X)) for i in range(250)})
    own = X["shop"].map(dict(zip(SHOPS, 3 * rng.normal(size=8)))) * X["carrier"].isna()
    y = rng.random(len(X)) < 1 / (1 + np.exp(-own))
    model = WideClassifier(random_state=0).fit(pd.concat([X, noise], axis=1), y)
    chosen = model.interactions_["interaction"].tolist()
    assert "carrier:shop" in chosen
    assert not [name for name in chosen if "missing" in name]


def test_a_constrained_column_is_named_in_words():
    X, mean, _ = table(300)
    with pytest.raises(ValueError, match=r"names \('carrier is missing', 'weight'\), and monotonic_cst constrains"):
        WideRegressor(interactions=[({"carrier": None}, "weight")], monotonic_cst={"weight": 1}).fit(X, mean)


def effects_of_cells(X, rng, size):
    """An effect of each shop in each week."""
    return (X["shop"] + X["week"]).map(dict(zip([a + b for a in SHOPS for b in WEEKS], size * rng.normal(size=80))))


def test_most_rows_are_no_category_of_their_own():
    X, _, rng = table()
    y = effects_of_cells(X, rng, 2.0) * (X["carrier"] == "a") + rng.normal(size=len(X))
    chosen = WideRegressor(loss="squared_error", random_state=0).fit(X, y).interactions_["interaction"].tolist()
    assert {"carrier:shop", "shop:week"} <= set(chosen)
    assert not [name for name in chosen if "=" in name]


def test_a_pair_of_all_categories_leads_into_none():
    X, _, rng = table()
    pair = (X["carrier"].fillna("none") + X["shop"]).map(
        dict(zip([a + b for a in ("a", "b", "c", "none") for b in SHOPS], 2.0 * rng.normal(size=32)))
    )
    y = pair + 0.3 * effects_of_cells(X, rng, 2.0) * X["carrier"].isna() + rng.normal(size=len(X))
    chosen = WideRegressor(loss="squared_error", random_state=0).fit(X, y).interactions_["interaction"].tolist()
    assert "carrier:shop" in chosen
    assert not [name for name in chosen if "missing" in name]


def codes_of_one_category(n_own, n=4000):
    """Codes of three columns, the first of which is 0 in `n_own` rows, where the others interact; and a target."""
    rng = np.random.default_rng(0)
    codes = {"own": np.r_[np.zeros(n_own, dtype=int), rng.integers(1, 4, n - n_own)]}
    codes |= {"a": rng.integers(0, 3, n), "b": rng.integers(0, 3, n)}
    effect = 3.0 * (codes["a"] == 1) + 4.0 * ((codes["a"] + codes["b"]) % 3 == 0)
    y = effect * (codes["own"] == 0) + 0.3 * rng.normal(size=n)
    return codes, y - y.mean(), (np.arange(n) % 2).astype(np.int8)


def search_of_codes(codes, y, fold, penalty):
    columns = [
        CodeColumn(name, own.astype(np.int32), own.max() + 1, np.arange(own.max() + 1)) for name, own in codes.items()
    ]
    held_out = HeldOutGains(np.zeros((1, len(y), 2)), fold, y, np.empty(0), LOSSES["squared_error"])
    return columns, held_out, AutoInteractions(folds=2, within_categories=True, penalty=penalty)


@pytest.mark.parametrize(
    ("n_own", "times", "is_one"),
    [(99, 1, False), (100, 1, True), (1000, 1, True), (1001, 1, False), (49, 2, False), (50, 2, True), (1000, 2, True),
     (1001, 2, False)],
)  # fmt: skip
def test_a_category_of_its_own_has_a_hundred_rows_and_a_quarter_of_all_at_most(n_own, times, is_one):
    """Rows, and not rows of the table where each stands for two."""
    codes, y, fold = codes_of_one_category(n_own)
    columns, held_out, options = search_of_codes(codes, y, fold, penalty=1.0)
    if times > 1:
        scores, copies = np.zeros((1, len(y), 2)), np.full(len(y), times)
        held_out = HeldOutGains(scores, fold, y, copies.astype(float), LOSSES["squared_error"], copies)
    search = _Search(columns, held_out, options, n_jobs=1)
    search.take(search.pairs(), round_=1)
    assert "own" in {name for one in search.chosen for name in one.columns}
    assert [search.columns[column].name for (column, code), _ in search._within if code == 0][:1] == ["own"] * is_one


@pytest.mark.parametrize("elsewhere", [0.0, 0.44, 0.46, 1.0])
def test_a_category_of_its_own_has_half_of_the_gain_of_the_pair(elsewhere):
    """Of the gain of ridge steps on the other fold, where the others have an effect that is so many times as large."""
    rng, n, penalty = np.random.default_rng(0), 4000, 5.0
    own, a = np.r_[np.zeros(800, dtype=int), rng.integers(1, 4, n - 800)], rng.integers(0, 3, n)
    y = 2.0 * (a == 1) * np.where(own == 0, 1.0, elsewhere) * np.where(own == 3, -1.0, 1.0) + 0.3 * rng.normal(size=n)
    y, fold = y - y.mean(), (np.arange(n) % 2).astype(np.int8)
    gains, cells = np.zeros(n), 3 * own + a
    for cell in np.unique(cells):
        for held in (0, 1):
            rows, others = (cells == cell) & (fold == held), y[(cells == cell) & (fold != held)]
            gains[rows] = y[rows] ** 2 - (y[rows] - others.sum() / (len(others) + penalty)) ** 2
    share = gains[own == 0].sum() / gains.sum()
    assert (share > 0.5) == (elsewhere < 0.45)
    columns, held_out, options = search_of_codes({"own": own, "a": a}, y, fold, penalty)
    search = _Search(columns, held_out, options, n_jobs=1)
    search.take(search.pairs(), round_=1)
    assert [one.columns for one in search.chosen] == [("own", "a")]
    at = [column.name for column in search.columns].index("own")
    assert ([category for category, _ in search._within] == [(at, 0)]) == (share > 0.5)


def test_effects_within_a_category_have_an_eighth_of_the_penalty():
    """The gain of each interaction is that of ridge steps on the other fold, after those chosen before it."""
    codes, y, fold = codes_of_one_category(400)
    chosen = choose_crosses(*search_of_codes(codes, y, fold, penalty=50.0))
    assert [one.within is None for one in chosen[-2:]] == [True, False]
    scores, each = np.zeros((len(y), 2)), np.arange(len(y))

    def gain(cells, rows, penalty):
        """Mean gain of the squared error, half of it, of steps by cell, which are added to the scores."""
        before = np.square(y - scores[each, fold])
        for trained_without in (0, 1):
            for cell in np.unique(cells[rows]):
                own = rows & (cells == cell)
                left = (y - scores[:, trained_without])[own & (fold != trained_without)]
                scores[own, trained_without] += left.sum() / (len(left) + penalty)
        return (before - np.square(y - scores[each, fold])).mean() / 2

    for one in chosen[:-1]:
        cells = sum(codes[name] * 10**place for place, name in enumerate(one.columns))
        assert gain(cells, np.full(len(y), True), 50.0) == pytest.approx(one.gain, rel=1e-6)
    gain(codes["a"], codes["own"] == 0, 50.0 / 8)  # a single column there that gains is added first
    assert gain(codes["a"] + 10 * codes["b"], codes["own"] == 0, 50.0 / 8) == pytest.approx(chosen[-1].gain, rel=1e-6)


def test_a_bin_of_a_number_is_no_category():
    X, _, rng = table(8000)
    X["weight"] = X["weight"].where(rng.random(len(X)) > 0.05)
    y = effects_of_cells(X, rng, 3.0) * (X["weight"] > X["weight"].quantile(0.9)) + rng.normal(size=len(X))
    chosen = WideRegressor(loss="squared_error", random_state=0).fit(X, y).interactions_["interaction"].tolist()
    assert {"shop:weight", "week:weight"} & set(chosen)
    assert not [name for name in chosen if "missing" in name]


def test_rows_of_other_categories_get_no_effect_of_counts():
    X, mean, rng = table(3000)
    X["parcel"] = np.minimum(rng.zipf(1.3, len(X)), 2000).astype(str)  # many combinations of few rows
    model = WideRegressor(
        loss="squared_error", interactions=[("shop", "parcel"), ({"carrier": None}, "shop", "parcel")]
    )
    rows = X.groupby(["shop", "parcel"])["parcel"].transform("size")
    names = list(model.fit(X, mean + np.log(rows) + rng.normal(size=len(X))).coefs_)
    assert "count of shop:parcel" in names
    assert "carrier is missing:shop:parcel" in names
    assert "count of carrier is missing:shop:parcel" not in names
