"""numeric="modl" and "quantile": numeric columns of wide models as intervals."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from sklearn.base import clone

import tabsym
from tabsym import MODLEncoder, WideClassifier, WideRegressor, WideSGDClassifier, WideSGDRegressor
from tabsym.export import from_spec, to_spec
from tabsym.frame import read_table
from tabsym.losses.loss import LOSSES
from tabsym.models.bins import QUANTILES, Ordered, plan_cuts, rounded_up
from tabsym.models.data import Training


def wave(n=3000, seed=0):
    """A target that rises and falls with a number, and depends on a symbol."""
    rng = np.random.RandomState(seed)
    X = pd.DataFrame({"x": rng.uniform(0, 10, n).round(2), "c": rng.choice(list("uvw"), n), "n": rng.rand(n)})
    score = 2 * np.sin(X["x"]) + X["c"].map({"u": -1, "v": 0, "w": 1})
    return X, (rng.rand(n) < 1 / (1 + np.exp(-score))).astype(int).to_numpy(copy=True), score.to_numpy()


def test_modl_intervals_are_those_of_the_encoder():
    X, y, _ = wave()
    model = WideSGDClassifier(numeric="modl", random_state=0).fit(X, y)
    encoder = MODLEncoder(cols=["x"], n_candidates=1).fit(X, y)
    by_hand = WideSGDClassifier(random_state=0).fit(encoder.transform(X), y)
    assert model.coefs_["x"].index.tolist() == encoder.partitions_["x"].labels
    assert len(model.coefs_["x"]) > 4
    # the same entries in another order, so the same sums in another order
    assert np.allclose(model.predict_proba(X), by_hand.predict_proba(encoder.transform(X)), atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["many", "ties", "missing", "one value", "nothing"])
def test_coarse_and_fine_intervals_of_one_look_are_those_of_two(kind, weighted):
    rng = np.random.RandomState(0)
    x = {
        "many": rng.normal(size=500),
        "ties": rng.geometric(0.3, 500).astype(float),
        "missing": np.where(rng.rand(500) < 0.3, np.nan, rng.normal(size=500)),
        "one value": np.ones(500),
        "nothing": np.full(500, np.nan),
    }[kind]
    column = read_table(pd.DataFrame({"x": x}))["x"]
    weight = rng.randint(1, 5, 500).astype(float) if weighted else None
    ordered = Ordered(column, weight)
    coarse, fine = ordered.cut_twice()
    alone = ordered.cut(QUANTILES)
    finely = ordered.cut_finely(alone)
    for one, other in ((coarse, alone), (fine, finely)):
        assert one.bounds.tolist() == other.bounds.tolist()
        assert (one.labels, one.missing) == (other.labels, other.missing)
    assert set(coarse.bounds) <= set(fine.bounds)


@pytest.mark.parametrize("n_parts", [8, 10, 32, 96, 288])
@pytest.mark.parametrize("n", [1, 2, 9, 30, 333, 1_000])
def test_quantiles_are_numpys_and_those_of_repeated_rows(n, n_parts):
    rng = np.random.RandomState(n)
    x, times = rng.normal(size=n).round(1), rng.randint(1, 4, n)
    column = read_table(pd.DataFrame({"x": x}))["x"]
    shares = np.arange(1, n_parts) / n_parts
    want = np.append(np.quantile(x, shares, method="inverted_cdf"), x.max())
    np.testing.assert_array_equal(Ordered(column, None).quantiles(n_parts), want)
    of_copies = Ordered(column, times.astype(float), times).quantiles(n_parts)
    repeated = Ordered(read_table(pd.DataFrame({"x": np.repeat(x, times)}))["x"], None)
    np.testing.assert_array_equal(of_copies, repeated.quantiles(n_parts))


@pytest.mark.parametrize(("n", "bins"), [(300, 64), (1_800, 64), (10_000, 128), (40_000, 288), (1_000_000, 1_024)])
def test_numbers_have_more_fine_bins_where_there_are_more_rows(n, bins):
    x = np.random.RandomState(0).rand(n + n // 3)
    x[::4][: n // 3] = np.nan  # missing values do not count
    fine = Ordered(read_table(pd.DataFrame({"x": x}))["x"], None).cut_twice()[1]
    assert len(fine.bounds) + 1 == bins


@pytest.mark.parametrize(("n", "missing"), [(1000, 0), (1000, 400), (5, 0)])
def test_interactions_are_chosen_by_eight_bins_of_equal_frequency(n, missing):
    """Of smooth numbers; bins of others are what is asked for."""
    x = np.random.RandomState(0).permutation(n).astype(float)
    x[:missing] = np.nan
    X = pd.DataFrame({"x": x, "z": np.arange(float(n))})
    training = Training(read_table(X), np.arange(float(n)), None, None)
    config = WideRegressor(loss="squared_error", numeric={"z": "quantile"})._config()
    cuts = plan_cuts(config, training, LOSSES["squared_error"])
    assert list(cuts.searched) == ["x"]
    known = np.sort(x[~np.isnan(x)])
    wanted = np.unique(np.quantile(known, np.arange(1, 8) / 8, method="inverted_cdf"))
    np.testing.assert_array_equal(cuts.searched["x"].bounds, wanted[wanted < known[-1]])


def of_14_digits(value):
    """The least decimal number of 14 digits whose float is no smaller."""
    exact = Decimal(value)
    last = Decimal(1).scaleb(exact.adjusted() - 13)
    below, above = (exact.quantize(last, way) for way in (ROUND_FLOOR, ROUND_CEILING))
    return float(below) if float(below) >= value else float(above)


@pytest.mark.parametrize("size", [1e-5, 1e-3, 1.0, 1e3, 1e8])
def test_edges_have_14_digits_and_are_no_smaller(size):
    rng = np.random.default_rng(0)
    edges = np.sort(size * np.concatenate([rng.normal(size=200), np.round(rng.normal(size=50), 2)]))
    column = read_table(pd.DataFrame({"x": edges}))["x"]
    found = rounded_up(column, edges)
    assert found.tolist() == [edge if edge == np.floor(edge) else of_14_digits(edge) for edge in edges]
    assert (found >= edges).all() and (found != edges).sum() > 100
    for short in (0.1, -7.3, 1234.56, 1 / 3):
        assert rounded_up(column, np.array([short])).tolist() == [of_14_digits(short)]


def test_edges_that_lie_close_or_are_no_fractions_are_exact():
    """Where they would move by more than a thousandth of a bin, to 14 digits 1e-13; and beyond powers of ten of 22."""
    column = read_table(pd.DataFrame({"x": [0.5]}))["x"]
    third = 1.0 / 3.0
    step = of_14_digits(third) - third
    near, far = np.array([third, third + 500.0 * step]), np.array([third, third + 2000.0 * step])
    assert rounded_up(column, near)[0] == third < rounded_up(column, far)[0]
    ending = np.array([1.0 / 7.0, third - 500.0 * step, third])  # the last bin is as wide as the one before
    assert rounded_up(column, ending)[[0, 2]].tolist() == [of_14_digits(1.0 / 7.0), third]
    beginning = np.array([third, third + 500.0 * step, 5.0 / 7.0])
    assert rounded_up(column, beginning)[[0, 2]].tolist() == [third, of_14_digits(5.0 / 7.0)]
    for exact in ([1e15 + 1.0, 1e16 / 3.0], [third * 1e-10, 1.0], [np.nextafter(4.0, 5.0), 7.0]):
        edges = np.array(exact)
        found = rounded_up(column, edges)
        assert found[0] == edges[0] or (exact[0] > 3.9 and found[0] == of_14_digits(edges[0]))
    days = read_table(pd.DataFrame({"x": pd.to_datetime(["2024-01-01"])}))["x"]
    assert rounded_up(days, np.array([third])).tolist() == [third]


def test_a_column_that_says_nothing_keeps_its_slope():
    X, y, _ = wave()
    params = WideSGDClassifier(numeric="modl", random_state=0).fit(X, y).coefs_
    assert params["n"].index.tolist() == ["n"]


@pytest.mark.parametrize("numeric", ["modl", "quantile"])
@pytest.mark.slow
def test_intervals_beat_slopes_where_the_target_is_no_line(numeric):
    X, y, score = wave()
    new, truth, _ = wave(seed=1)
    linear = WideSGDClassifier(random_state=0).fit(X, y).score(new, truth)
    assert WideSGDClassifier(numeric=numeric, random_state=0).fit(X, y).score(new, truth) > linear + 0.06
    X, score = X[:1000], score[:1000]
    linear = WideSGDRegressor(random_state=0).fit(X, score).score(X, score)
    assert WideSGDRegressor(numeric=numeric, random_state=0).fit(X, score).score(X, score) > linear + 0.3


def test_quantiles_are_values_and_right_closed():
    X = pd.DataFrame({"x": np.repeat(np.arange(64.0), 5)})
    y = np.tile([0, 1], 160)
    model = WideSGDClassifier(numeric="quantile", random_state=0).fit(X, y)
    frame = model.coefs_["x"]
    assert len(frame) == 32
    assert frame["rows"].tolist() == [10] * 32
    assert frame.index[0] == "]-inf; 1]"
    assert frame.index[-1] == "]61; +inf["
    low, high = model.decision_function(pd.DataFrame({"x": [1.0, 1.0001]}))
    assert np.isclose(low - high, frame["value"].iloc[0] - frame["value"].iloc[1])


@pytest.mark.parametrize("far", [1e12, 1e14])
@pytest.mark.parametrize("numeric", ["smooth", "quantile", "modl"])
def test_numbers_far_from_0_have_the_bins_of_those_near_it(numeric, far):
    """Of eighths, which are exact there: edges of 14 digits had merged values a tenth apart, and left 5 bins of 64."""
    x = np.random.default_rng(0).integers(0, 400, 1000) / 8
    y = np.sin(x / 5) > np.random.default_rng(1).normal(size=1000)
    here, there = (pd.DataFrame({"x": x + by}) for by in (0.0, far))
    found, wanted = (WideClassifier(numeric=numeric).fit(X, y).predict_proba(X) for X in (there, here))
    np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_missing_numbers_are_an_interval_of_their_own():
    X, y, _ = wave()
    X.loc[:200, "x"] = np.nan
    y[:201] = 1
    model = WideSGDClassifier(numeric="modl", random_state=0).fit(X, y)
    assert model.coefs_["x"].index[0] == "Missing"
    assert model.coefs_["x"]["rows"].iloc[0] == 201
    assert model.coefs_["x"]["value"].iloc[0] == model.coefs_["x"]["value"].max()


def test_a_missing_number_that_fit_has_not_seen_adds_nothing():
    X, y, _ = wave()
    model = WideSGDClassifier(numeric="modl", random_state=0).fit(X, y)
    row = X.head(1).assign(x=np.nan)
    expected = model.coefs_["c"].loc[row["c"].iloc[0], "value"] + model.coefs_["(intercept)"]["value"].iloc[0]
    expected += model.coefs_["n"]["value"].iloc[0] * row["n"].iloc[0]
    assert np.isclose(model.decision_function(row)[0], expected)


def test_intervals_take_part_in_crosses():
    rng = np.random.RandomState(0)
    X = pd.DataFrame({"x": rng.rand(4000), "c": rng.choice(["u", "v"], 4000)})
    y = ((X["x"] > 0.5) == (X["c"] == "u")).astype(int)
    one = WideSGDClassifier(numeric="quantile", random_state=0).fit(X, y)
    two = WideSGDClassifier(numeric="quantile", interactions="pairwise", random_state=0).fit(X, y)
    assert one.score(X, y) < 0.6
    assert two.score(X, y) > 0.97
    assert two.coefs_["c:x"].index.names == ["c", "x"]


def test_every_frame_weights_and_clones():
    X, y, _ = wave(800)
    model = WideSGDClassifier(numeric="modl", random_state=0)
    first = model.fit(X, y).predict_proba(X)
    assert np.array_equal(clone(model).fit(pl.from_pandas(X), y).predict_proba(pl.from_pandas(X)), first)
    weight = np.ones(len(y))
    weight[:300] = 0
    part = clone(model).fit(X, y, sample_weight=weight).coefs_["x"]
    rest = clone(model).fit(X[300:], y[300:]).coefs_["x"]
    assert part.index.tolist() == rest.index.tolist()


def test_what_is_refused():
    X, y, _ = wave(200)
    with pytest.raises(ValueError, match="numeric='modl' chooses bins from all rows at hand"):
        WideSGDClassifier(numeric="modl").partial_fit(X, y)
    with pytest.raises(ValueError, match="numeric='bins' is not known"):
        WideSGDClassifier(numeric="bins").fit(X, y)
    with pytest.raises(
        ValueError, match="numeric='modl' has no effect, as the formula has no column of fractions in brackets"
    ):
        WideSGDRegressor("y ~ w[c] + b[1]", numeric="modl").fit(X.assign(y=1.0))
    fitted = WideSGDClassifier(numeric="modl", random_state=0).fit(X, y)
    before = fitted.coefs_["x"]["value"].to_numpy().copy()
    fitted.partial_fit(X, y)  # the intervals are there: rows only move the numbers
    assert not np.array_equal(fitted.coefs_["x"]["value"].to_numpy(), before)


def ages(n=1500):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(17, 90, n), "g": rng.choice(list("abc"), n)})
    return X, rng.poisson(np.exp(0.8 * (X["age"] < 25) + 0.3 * (X["g"] == "a"))).astype(float)


CUTS = [18, 25, 40, 65]


@pytest.mark.parametrize(
    "cuts", [CUTS, tuple(CUTS), np.array(CUTS), pd.Series(CUTS)], ids=["list", "tuple", "array", "series"]
)
def test_cut_points_of_ones_own_are_those_of_a_glm_of_pandas_cut(cuts):
    X, y = ages()
    model = WideRegressor(loss="poisson", numeric={"age": cuts}, alpha=0.0, interactions=None, count_effect=False).fit(
        X, y
    )
    bands = pd.cut(X["age"], [-np.inf, *CUTS, np.inf])
    frame = model.coefs_["age"]
    assert list(zip(frame["low"], frame["high"])) == [(one.left, one.right) for one in bands.cat.categories]
    assert frame["rows"].tolist() == bands.value_counts(sort=False).tolist()
    glm = smf.glm("y ~ C(band) + g", X.assign(y=y, band=bands.cat.codes), family=sm.families.Poisson()).fit(scale="X2")
    table = model.coef_table(base={"age": 17}).query("term == 'age'").set_index("high")
    for band, high in enumerate(CUTS[1:], 1):
        found = table.loc[high]
        assert found["value"] == pytest.approx(glm.params[f"C(band)[T.{band}]"], abs=1e-3)
        assert found["sd"] == pytest.approx(glm.bse[f"C(band)[T.{band}]"], rel=1e-3)


@pytest.mark.parametrize(
    ("kind", "formula", "term"),
    [(WideRegressor, None, "age"), (WideSGDRegressor, None, "age"), (WideRegressor, "w[age] + v[g] + c[1]", "w")],
)
def test_cut_points_of_ones_own_stay_in_files(tmp_path, kind, formula, term):
    X, y = ages()
    model = clone(kind(formula, loss="poisson", numeric={"age": CUTS}, random_state=0)).fit(X, y)
    tabsym.save(model, tmp_path / "m.skops")
    again = tabsym.load(tmp_path / "m.skops")
    assert again.coefs_[term]["high"].tolist() == [*CUTS, np.inf]
    at_the_edges = pd.DataFrame({"age": [18, 18.5, 25, 25.001, 65, 66, np.nan], "g": "a"})
    wanted = model.predict(at_the_edges)
    assert len(set(wanted.round(12))) == 6
    np.testing.assert_array_equal(again.predict(at_the_edges), wanted)
    np.testing.assert_allclose(from_spec(to_spec(model)).predict(at_the_edges.to_dict("list")), wanted)
    assert wanted[1] == wanted[2]  # (18, 25]


@pytest.mark.parametrize(
    ("cuts", "sentence"),
    [
        ([25, 18], "has 25 before 18; give each cut point once, in ascending order"),
        ([18, 18], "has 18 twice"),
        ([18, np.inf], "holds inf, and cut points are finite numbers"),
        ([np.nan], "holds nan, and"),
        (["18"], "holds '18', and"),
        ([True], "holds True, and"),
        ([], "is an empty list; give at least one cut point"),
        ("bands", "or a list of cut points"),
    ],
)
@pytest.mark.parametrize("kind", [WideClassifier, WideRegressor, WideSGDClassifier, WideSGDRegressor])
def test_cut_points_that_are_none_are_refused(kind, cuts, sentence):
    X, y = ages(60)
    with pytest.raises(ValueError, match=r"numeric\['age'\]") as raised:
        kind(numeric={"age": cuts}).fit(X, y > 1)
    assert sentence in str(raised.value)


def test_cut_points_beside_all_values_are_told_of():
    X, y = ages()
    decades = WideRegressor(loss="poisson", numeric={"age": range(20, 90, 10)}).fit(X, y)
    assert decades.coefs_["age"]["high"].tolist() == [*range(20, 90, 10), np.inf]
    with pytest.warns(UserWarning, match=r"numeric\['age'\] has cut points from 0.25 to 0.65, and all values"):
        WideRegressor(loss="poisson", numeric={"age": [0.25, 0.65]}).fit(X, y)
    with pytest.raises(ValueError, match="numeric names 'g', which is a categorical column"):
        WideRegressor(loss="poisson", numeric={"g": [1, 2]}).fit(X, y)
