"""Models written as formulas: recovery, units, unseen symbols, growth, textbook cases, the paper's theorems."""

import re
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, SGDRegressor
from sklearn.metrics import log_loss

from tabsym import WideRegressor, WideSGDClassifier, WideSGDRegressor, load, save
from tabsym.design.formula import FormulaError
from tabsym.losses import Quantile, Tweedie
from tabsym.models.model import _means
from tabsym.optimizers import SGD


def zipf(rng, size, n):
    share = 1.0 / np.arange(1, size + 1)
    return rng.choice(size, n, p=share / share.sum())


def rmse(y, p):
    return np.sqrt(np.mean((np.asarray(y) - np.asarray(p)) ** 2))


def test_recovers_a_product_with_a_number():
    rng = np.random.default_rng(0)
    gamma, mu = rng.lognormal(0, 0.5, 200), rng.lognormal(0, 0.5, 5)
    a, b, x = zipf(rng, 200, 20_000), rng.integers(0, 5, 20_000), rng.gamma(3.0, size=20_000)
    truth = gamma[a] * mu[b] * x + 2.0
    table = pd.DataFrame({"a": a.astype(str), "b": b.astype(str), "x": x, "y": truth + rng.normal(0, 0.3, 20_000)})
    model = WideSGDRegressor("y ~ gamma[a] * mu[b] * x + b0[1]", max_iter=20, random_state=0).fit(table[:16_000])
    test = slice(16_000, None)
    assert rmse(table["y"][test], model.predict(table[test])) < 1.02 * rmse(table["y"][test], truth[test])
    found = model.coefs_["gamma"]
    known = found[found["rows"] >= 100]
    ratio = known["value"].to_numpy() / gamma[known.index.astype(int)]
    np.testing.assert_allclose(ratio, np.median(ratio), rtol=0.04)  # up to the scale that is not identified


def test_recovers_a_product_of_blocks_and_a_block_over_pairs():
    rng = np.random.default_rng(1)
    n = 40_000
    sizes = {"store": 100, "colour": 20, "size": 6}
    codes = {name: zipf(rng, size, n) for name, size in sizes.items()}
    factors = {name: rng.lognormal(0, 0.4, size) for name, size in sizes.items()}
    group, week = rng.integers(0, 8, n), rng.integers(0, 52, n)
    season = rng.lognormal(0, 0.4, (8, 52))
    truth = np.prod([factors[name][codes[name]] for name in sizes], axis=0) * season[group, week]
    table = pd.DataFrame({name: code.astype(str) for name, code in codes.items()})
    table = table.assign(group=group.astype(str), week=week.astype(str), sales=truth + rng.normal(0, 0.2, n))
    model = WideSGDRegressor(
        "sales ~ store[store] * colour[colour] * size[size] * season[group, week]", max_iter=20, random_state=0
    ).fit(table[:32_000])
    test = slice(32_000, None)
    assert rmse(table["sales"][test], model.predict(table[test])) < 1.02 * rmse(table["sales"][test], truth[test])
    seasons = model.coefs_["season"]["value"]
    wanted = [season[int(g), int(w)] for g, w in seasons.index]
    assert np.corrcoef(np.log(seasons), np.log(wanted))[0, 1] > 0.99


def test_recovers_one_block_read_by_two_columns():
    rng = np.random.default_rng(2)
    strength = rng.normal(0, 1, 50)
    home, away = rng.integers(0, 50, 20_000), rng.integers(0, 50, 20_000)
    margin = strength[home] - strength[away]
    wins = rng.random(20_000) < 1 / (1 + np.exp(-margin))
    table = pd.DataFrame({"home": home.astype(str), "away": away.astype(str)})
    model = WideSGDClassifier("w[home] - w[away]", max_iter=20, learning_rate=0.1, random_state=0).fit(table, wins)
    found = model.coefs_["w"]
    assert len(found) == 50
    assert np.corrcoef(found["value"], strength[found.index.astype(int)])[0, 1] > 0.98
    assert found["rows"].sum() == 2 * 20_000 - (home == away).sum()  # a team against itself counts once


def large(rng, n, **sizes):
    """Zipf codes by name, and the frame that holds them."""
    codes = {name: zipf(rng, size, n) for name, size in sizes.items()}
    return codes, pd.DataFrame({name: pd.Categorical(code.astype(str)) for name, code in codes.items()})


@pytest.mark.slow
def test_recovers_with_alphabets_of_two_thousand():
    """Test error within 2 % of the generating model's own, by eighty training rows per symbol."""
    rng = np.random.default_rng(0)
    n, train, test = 200_000, slice(0, 160_000), slice(160_000, None)
    codes, table = large(rng, n, a=2_000, b=50)
    gamma, mu, x = rng.lognormal(0, 0.5, 2_000), rng.lognormal(0, 0.5, 50), rng.gamma(3.0, size=n)
    truth = gamma[codes["a"]] * mu[codes["b"]] * x + 2.0
    table = table.assign(x=x, y=truth + rng.normal(0, 1.0, n))
    model = WideSGDRegressor("y ~ gamma[a] * mu[b] * x + b0[1]", max_iter=20, random_state=0).fit(table[train])
    assert rmse(table["y"][test], model.predict(table[test])) < 1.02 * rmse(table["y"][test], truth[test])

    codes, table = large(rng, n, store=2_000, colour=100, size=8, group=20, week=52)
    factors = {name: rng.lognormal(0, 0.4, codes[name].max() + 1) for name in ("store", "colour", "size")}
    season = rng.lognormal(0, 0.4, (20, 52))
    truth = season[codes["group"], codes["week"]] * np.prod([f[codes[name]] for name, f in factors.items()], axis=0)
    table["sales"] = truth + rng.normal(0, 0.5, n)
    model = WideSGDRegressor(
        "sales ~ store[store] * colour[colour] * size[size] * season[group, week]", max_iter=5, random_state=0
    ).fit(table[train])
    assert rmse(table["sales"][test], model.predict(table[test])) < 1.02 * rmse(table["sales"][test], truth[test])

    codes, table = large(rng, n, home=2_000, away=2_000)
    strength = rng.normal(0, 1, 2_000)
    p = 1 / (1 + np.exp(strength[codes["away"]] - strength[codes["home"]]))
    wins = rng.random(n) < p
    model = WideSGDClassifier("w[home] - w[away]", max_iter=5, learning_rate=0.2, random_state=0)
    model.fit(table[train], wins[train])
    assert log_loss(wins[test], model.predict_proba(table[test])) < 1.02 * log_loss(wins[test], p[test])


def test_products_for_several_classes():
    rng = np.random.default_rng(15)
    table = pd.DataFrame({"a": rng.choice(list("uvw"), 4000), "b": rng.choice(list("pq"), 4000)})
    y = np.where(table["b"] == "p", table["a"], "w")  # the class depends on the pair
    additive = WideSGDClassifier(max_iter=30, random_state=0).fit(table, y)
    product = WideSGDClassifier("g[a] * h[b] + w[a] + c[1]", max_iter=30, random_state=0).fit(table, y)
    assert product.score(table, y) > 0.99
    assert additive.score(table, y) > 0.6
    assert list(product.coefs_["g"].columns) == ["u", "v", "w", "rows"]


def test_latent_vectors_learn_what_a_sum_cannot():
    rng = np.random.default_rng(3)
    u, v = rng.normal(size=(30, 2)), rng.normal(size=(40, 2))
    user, item = rng.integers(0, 30, 20_000), rng.integers(0, 40, 20_000)
    y = (u[user] * v[item]).sum(axis=1)
    table = pd.DataFrame({"user": user.astype(str), "item": item.astype(str)})
    model = WideSGDRegressor("dot(u[user], v[item], rank=2) + b[1]", max_iter=40, random_state=0).fit(table, y)
    assert rmse(y, model.predict(table)) < 0.1 * y.std()
    assert list(model.coefs_["u"].columns) == ["value 1", "value 2", "rows"]
    assert model.coefs_["u"]["rows"].sum() == 20_000


def test_fixed_terms_and_offsets_are_taken_as_they_are():
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"a": rng.choice(list("uv"), 2000), "x": rng.normal(size=2000)})
    y = 3.0 * table["x"] + table["a"].map({"u": 1.0, "v": -1.0})
    model = WideSGDRegressor("3 * x + w[a]", max_iter=20, random_state=0).fit(table, y)
    assert rmse(y, model.predict(table)) < 1e-6
    same = WideSGDRegressor("w[a]", max_iter=20, random_state=0).fit(table, y, offset=3.0 * table["x"])
    np.testing.assert_allclose(same.predict(table, offset=3.0 * table["x"]), model.predict(table), atol=1e-6)


@pytest.mark.slow
def test_counts_with_exposure():
    rng = np.random.default_rng(5)
    n = 20_000
    table = pd.DataFrame({"a": rng.choice(list("uvw"), n)})
    exposure = rng.uniform(0.5, 3.0, n)
    rate = table["a"].map({"u": 0.2, "v": 1.0, "w": 3.0}).to_numpy()
    y = rng.poisson(rate * exposure)
    model = WideSGDRegressor("w[a] + b[1]", loss="poisson", batch_size="full", optimizer="sgd", learning_rate=0.1,
                             max_iter=800).fit(table, y, offset=np.log(exposure))  # fmt: skip
    for category in "uvw":
        rows = (table["a"] == category).to_numpy()
        want = y[rows].sum() / exposure[rows].sum()  # the maximum-likelihood rate
        assert model.predict(table[rows][:1], offset=[0.0])[0] == pytest.approx(want, rel=1e-4)


@pytest.mark.parametrize(
    ("loss", "best"),
    [
        ("absolute_error", np.median),
        (Quantile(0.9), lambda v: np.quantile(v, 0.9)),
        ("poisson", np.mean),
        ("gamma", np.mean),
        (Tweedie(1.3), np.mean),
        ("squared_error", np.mean),
    ],
)
@pytest.mark.slow
def test_losses_find_what_they_are_for(loss, best):
    """One symbol of its own per group: the best constant of each group is known."""
    rng = np.random.default_rng(6)
    groups = np.repeat(["u", "v", "w"], 500)
    y = rng.gamma(2.0, np.repeat([1.0, 5.0, 20.0], 500))
    table = pd.DataFrame({"g": groups})
    model = WideSGDRegressor(loss=loss, batch_size="full", optimizer="adam", learning_rate=0.02, max_iter=1500)
    found = model.fit(table, y).predict(pd.DataFrame({"g": ["u", "v", "w"]}))
    np.testing.assert_allclose(found, [best(y[groups == g]) for g in "uvw"], rtol=0.02)


def test_poisson_reaches_the_optimum_of_scikit_learn():
    rng = np.random.default_rng(7)
    table = pd.DataFrame({"a": rng.choice(list("uvw"), 1000), "x": rng.normal(size=1000)})
    y = rng.poisson(np.exp(table["a"].map({"u": 0.0, "v": 0.5, "w": 1.0}) + 0.3 * table["x"]))
    onehot = pd.get_dummies(table["a"]).assign(x=table["x"]).to_numpy(dtype=float)
    best = PoissonRegressor(alpha=0, tol=1e-10, max_iter=1000).fit(onehot, y).predict(onehot)
    for gradient in ("gse", "mean"):
        model = WideSGDRegressor(
            loss="poisson", optimizer="sgd", learning_rate=0.15, batch_size="full", max_iter=3000, gradient=gradient
        ).fit(table, y)
        np.testing.assert_allclose(model.predict(table), best, rtol=1e-4)


def test_hinge_separates_and_has_no_probabilities():
    rng = np.random.default_rng(8)
    table = pd.DataFrame({"a": rng.choice(list("uv"), 500), "x": rng.normal(size=500)})
    y = np.where(table["x"] + (table["a"] == "u") > 0.5, "yes", "no")
    model = WideSGDClassifier(loss="hinge", max_iter=30, random_state=0).fit(table, y)
    assert model.score(table, y) > 0.97
    assert set(model.predict(table)) == {"yes", "no"}
    assert not hasattr(model, "predict_proba")
    assert not hasattr(WideSGDClassifier(loss="hinge"), "predict_proba")
    with pytest.raises(AttributeError) as error:
        model.predict_proba(table)
    assert "has no probabilities" in str(error.value.__cause__)


# -- what surrounds a formula -----------------------------------------------------

RNG = np.random.default_rng(9)
TABLE = pd.DataFrame({"a": RNG.choice(list("uvw"), 600), "b": RNG.choice(list("pq"), 600), "x": RNG.gamma(2, size=600)})
TABLE["y"] = TABLE["a"].map({"u": 1.0, "v": 2.0, "w": 4.0}) * TABLE["b"].map({"p": 1.0, "q": 3.0}) * TABLE["x"]
PRODUCT = "y ~ g[a] * m[b] * x"


def test_the_target_may_lie_in_the_table_and_other_columns_do_not_matter():
    model = WideSGDRegressor(PRODUCT, max_iter=5, random_state=0).fit(TABLE.assign(other="text"))
    assert model.feature_names_in_.tolist() == ["a", "b", "x"]
    again = WideSGDRegressor(PRODUCT, max_iter=5, random_state=0).fit(TABLE[["x", "b", "a"]], TABLE["y"])
    np.testing.assert_array_equal(model.predict(TABLE), again.predict(TABLE[["b", "x", "a"]]))
    assert clone(model).formula == PRODUCT


def test_unseen_symbols_stand_for_the_mean_inside_a_product():
    model = WideSGDRegressor(PRODUCT, max_iter=30, random_state=0).fit(TABLE)
    g = model.coefs_["g"]
    mean = np.average(g["value"], weights=g["rows"])
    row = TABLE[TABLE["a"] == "v"].head(1)
    want = model.predict(row)[0] * mean / g.loc["v", "value"]
    assert model.predict(row.assign(a="never"))[0] == pytest.approx(want)
    with pytest.raises(ValueError, match="Column 'a' holds 'never'"):
        model.set_params(handle_unknown="error").predict(row.assign(a="never"))


def test_partial_fit_gives_a_new_factor_the_neutral_value():
    model = WideSGDRegressor(PRODUCT, learning_rate=1e-9, random_state=0)
    model.partial_fit(TABLE[TABLE["a"] != "w"])
    g = model.coefs_["g"]
    mean = np.average(g["value"], weights=g["rows"])
    model.partial_fit(TABLE[TABLE["a"] == "w"])
    assert model.coefs_["g"].loc["w", "value"] == pytest.approx(mean, rel=1e-6)


def test_starting_values():
    options = {"learning_rate": 1e-12, "max_iter": 1}
    model = WideSGDRegressor("g[a] * m[b] + s[b, a] + c[1]", **options).fit(TABLE, TABLE["y"])
    starts = {name: frame["value"].iloc[0] for name, frame in model.coefs_.items()}
    assert (starts["g"], starts["m"]) == pytest.approx((1.0, 1.0))
    assert starts["scale of g*m"] == pytest.approx(TABLE["y"].std(ddof=0))  # 1, in units of training
    assert (starts["s"], starts["c"]) == pytest.approx((0.0, TABLE["y"].mean()), abs=1e-9)
    given = WideSGDRegressor("g[a] * m[b] + c[1]", coef_init={"g": 2.0, "c": 0.5}, **options).fit(TABLE, TABLE["y"])
    plain = WideSGDRegressor("g[a] * m[b] + c[1]", coef_init={"m": 1.0}, **options).fit(TABLE, TABLE["y"])
    one = TABLE["y"].std(ddof=0) / plain.coefs_["scale of g*m"]["value"].iloc[0]  # a start of 1 of `m`
    starts = {name: frame["value"].iloc[0] for name, frame in given.coefs_.items()}
    assert starts == pytest.approx({"g": 1.0, "m": 1.0, "scale of g*m": 2.0 * one, "c": 0.5}, abs=1e-9)
    with pytest.raises(ValueError, match="coef_init names the term 'z'"):
        WideSGDRegressor("g[a]", coef_init={"z": 1.0}).fit(TABLE, TABLE["y"])


def test_additive_formulas_are_in_original_units():
    model = WideSGDRegressor("w[a] + beta[1] * x + b[1]", optimizer="sgd", learning_rate=0.3, batch_size="full",
                             max_iter=3000).fit(TABLE, TABLE["y"])  # fmt: skip
    onehot = pd.get_dummies(TABLE["a"]).assign(x=TABLE["x"]).to_numpy(dtype=float)
    best = LinearRegression().fit(onehot, TABLE["y"])
    assert model.coefs_["beta"]["value"].iloc[0] == pytest.approx(best.coef_[-1], rel=1e-5)
    row = TABLE.iloc[0]
    total = sum([model.coefs_["w"].loc[row["a"], "value"], model.coefs_["beta"]["value"].iloc[0] * row["x"],
                 model.coefs_["b"]["value"].iloc[0]])  # fmt: skip
    assert model.predict(TABLE.head(1))[0] == pytest.approx(total)


@pytest.mark.parametrize(
    ("formula", "change", "error", "message"),
    [
        ("w[nowhere] + b[1]", {}, FormulaError, "There is no column 'nowhere' in the table"),
        ("w[a] * b", {}, FormulaError, r"Column 'b' is categorical; write w\[b\]"),
        ("w[a] * x", {"x": np.nan}, ValueError, r"x in the formula has no finite value in row 0 \(x = nan\)"),
        ("w[a] * log(x)", {"x": -1.0}, ValueError, r"log\(x\) in the formula has no finite value in row 0 \(x = -1\)"),
        (["w[a]"], {}, TypeError, "formula must be text"),
        ("nothere ~ w[a]", {}, ValueError, "target 'nothere' is not in the table"),
    ],
)
def test_formulas_that_do_not_fit_the_table(formula, change, error, message):
    table = TABLE.assign(**{name: [value, *TABLE[name][1:]] for name, value in change.items()})
    with pytest.raises(error, match=message):
        WideSGDRegressor(formula).fit(table, None if "nothere" in formula else TABLE["y"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "gamma"}, "values above 0"),
        ({"loss": "poisson"}, "values of at least 0"),
        ({"schedule": "cosine"}, "schedule='cosine' is not known"),
        ({"schedule": "optimal", "optimizer": "sgd"}, "takes its rate from the penalty"),
        ({"schedule": "optimal", "alpha": 0.1}, "schedule='optimal' is for optimizer='sgd'"),
        ({"optimizer": "adamw"}, "optimizer='adamw' is not known; use 'sgd'"),
        ({"alpha": -1}, "alpha=-1 is not possible"),
        ({"alpha": 0.1, "l1_ratio": 2}, "l1_ratio=2 is not possible"),
        ({"l1_ratio": 0.5}, "l1_ratio=0.5 has no effect without a penalty; give alpha, or leave it out"),
        ({"power_t": 0.4}, "power_t=0.4 has no effect without schedule='invscaling'"),
        ({"validation_fraction": 0.2}, "validation_fraction=0.2 has no effect without early_stopping=True"),
        ({"max_iter": 3, "n_iter_no_change": 5}, "n_iter_no_change=5 has no effect where all max_iter epochs are made"),
        ({"formula": "w[a]", "interactions": "pairwise"}, "interactions='pairwise' has no meaning with a formula"),
        (
            {"formula": "w[a]", "categorical_features": ["b"]},
            r"categorical_features=\['b'\] has no meaning with a formula",
        ),
        ({"formula": "w[a]", "coef_init": "one"}, "coef_init='one' is not possible; use a finite number"),
    ],
)
def test_options_that_cannot_be(options, message):
    y = TABLE["y"].to_numpy() - (1e9 if options.get("loss") in ("gamma", "poisson") else 0)
    with pytest.raises(ValueError, match=message):
        WideSGDRegressor(**options).fit(TABLE[["a", "b"]], y)


@pytest.mark.parametrize(
    ("loss", "wrong", "message"),
    [
        (Quantile, 1.5, r"Quantile\(quantile=1.5\) is not possible; use a number above 0 and below 1"),
        (Tweedie, 2, r"Tweedie\(power=2\) is not possible; use a number above 1 and below 2"),
    ],
)
def test_numbers_of_losses_that_cannot_be(loss, wrong, message):
    with pytest.raises(ValueError, match=message):
        loss(wrong)


def test_l1_makes_zeros():
    rng = np.random.default_rng(10)
    noise = pd.DataFrame({"a": rng.integers(0, 300, 3000).astype(str)})
    y = rng.integers(0, 2, 3000)
    model = WideSGDClassifier(optimizer="sgd", learning_rate=0.1, alpha=1.0, l1_ratio=1.0, max_iter=3, random_state=0)
    model.fit(noise, y)
    assert (model.coefs_["a"]["value"] == 0).mean() > 0.5


def test_averaging_steadies_a_fast_rate():
    rng = np.random.default_rng(11)
    table = pd.DataFrame({"a": rng.choice(list("uvwxyz"), 5000)})
    y = table["a"].map(dict(zip("uvwxyz", range(6)))) + rng.normal(0, 3, 5000)
    means = y.groupby(table["a"]).mean()
    errors = {}
    for average in (False, True):
        model = WideSGDRegressor(
            "w[a]", optimizer="sgd", learning_rate=0.5, average=average, max_iter=5, random_state=0
        )
        model.fit(table, y)
        errors[average] = rmse(model.coefs_["w"]["value"].loc[means.index], means)
    assert errors[True] < 0.3 * errors[False]


def test_adaptive_rates_fall_when_the_loss_does_not():
    rng = np.random.default_rng(12)
    table = pd.DataFrame({"a": rng.choice(list("uv"), 300)})
    y = rng.normal(size=300)
    options = {"optimizer": "sgd", "learning_rate": 0.5, "max_iter": 300, "random_state": 0}
    steady = WideSGDRegressor("w[a]", schedule="constant", **options).fit(table, y)
    falling = WideSGDRegressor("w[a]", schedule="adaptive", tol=1e-4, **options).fit(table, y)
    assert falling.loss_curve_[-1] < steady.loss_curve_[-1]
    assert falling.n_iter_ < 300


# -- textbook cases -----------------------------------------------------------------

TEN = pd.DataFrame(
    {"x": [1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10], "y": [1.5, 3.5, 4.0, 6.5, 7.5, 8.0, 10.5, 11.0, 13.5, 14.0]}
)
LINE = "slope[1] * x + b[1]"


def by_hand(order, batch, rate, passes, slope=0.0, b=0.0):
    """Gradient trainer on (1/2)(y - p)**2, written out."""
    sequence = []
    for _ in range(passes):
        for first in range(0, 10, batch):
            rows = TEN.iloc[order[first : first + batch]]
            error = slope * rows["x"] + b - rows["y"]
            slope, b = slope - rate * (error * rows["x"]).mean(), b - rate * error.mean()
            sequence.append((slope, b))
    return sequence


@pytest.mark.parametrize("batch", [1, 5, 10])
def test_gradient_descent_by_hand(batch):
    """Ten rows, from zero, in the order given, at a constant rate: equal to the sequence written out."""
    for passes in (1, 2, 5):
        model = WideSGDRegressor(
            LINE, optimizer="sgd", learning_rate=0.01, batch_size=batch, max_iter=passes, shuffle=False,
            standardize=False, coef_init=0.0,
        ).fit(TEN[["x"]], TEN["y"])  # fmt: skip
        found = [model.coefs_[name]["value"].iloc[0] for name in ("slope", "b")]
        np.testing.assert_allclose(found, by_hand(list(range(10)), batch, 0.01, passes)[-1], rtol=1e-12)


def test_the_first_steps_to_three_decimals():
    """Worked on paper: batch trainer, rate .01; means of x y, y, x**2, x over the ten rows are 55.5, 8, 38.5, 5.5.

    Step 1: slope .01 * 55.5 = .555, b = .08. Step 2: slope + .01 (55.5 - .555 * 38.5 - .08 * 5.5) = .891925,
    b + .01 (8 - .555 * 5.5 - .08) = .128675.
    """
    found = []
    for steps in (1, 2):
        model = WideSGDRegressor(
            LINE,
            optimizer="sgd",
            learning_rate=0.01,
            batch_size="full",
            max_iter=steps,
            standardize=False,
            coef_init=0.0,
        ).fit(TEN[["x"]], TEN["y"])
        found.append([round(model.coefs_[name]["value"].iloc[0], 3) for name in ("slope", "b")])
    assert found == [[0.555, 0.08], [0.892, 0.129]]


def test_online_descent_equals_scikit_learns():
    model = WideSGDRegressor(LINE, optimizer="sgd", learning_rate=0.005, max_iter=7, shuffle=False, standardize=False,
                             coef_init=0.0).fit(TEN[["x"]], TEN["y"])  # fmt: skip
    other = SGDRegressor(penalty=None, learning_rate="constant", eta0=0.005, max_iter=7, tol=None, shuffle=False).fit(
        TEN[["x"]], TEN["y"]
    )
    found = [model.coefs_[name]["value"].iloc[0] for name in ("slope", "b")]
    np.testing.assert_allclose(found, [other.coef_[0], other.intercept_[0]], rtol=1e-10)


def test_logistic_formula_reaches_the_optimum():
    y = (TABLE["y"] + RNG.normal(0, 6, 600) > 6).astype(int)
    model = WideSGDClassifier(
        "w[a] + v[b] + slope[1] * x + c[1]", optimizer="sgd", learning_rate=0.6, batch_size="full", max_iter=6000
    ).fit(TABLE, y)
    onehot = pd.get_dummies(TABLE[["a", "b"]]).assign(x=TABLE["x"]).to_numpy(dtype=float)
    best = LogisticRegression(C=1e8, tol=1e-10, max_iter=10_000).fit(onehot, y)
    np.testing.assert_allclose(model.predict_proba(TABLE), best.predict_proba(onehot), atol=1e-4)


# -- the paper's appendix -------------------------------------------------------------


def test_gse_is_unbiased_for_the_symbols_mean_gradient():
    """Appendix B, by the kernels: a symbol's mean step over the batches that have it is its mean gradient.

    At a rate that leaves the parameters at zero, the squared loss has the
    gradient -y; under the mean estimator the same sum is the share of the
    symbol smaller.
    """
    rng = np.random.default_rng(13)
    n, batch, rate = 160_000, 16, 1e-9
    rows = pd.DataFrame({"a": np.where(rng.random(n) < 0.1, "rare", "other")})
    y = np.where(rows["a"] == "rare", rng.normal(1.0, 2.0, n), 0.0)
    has = (rows["a"] == "rare").to_numpy()
    n_batches = has.reshape(-1, batch).any(axis=1).sum()
    options = {"optimizer": "sgd", "learning_rate": rate, "batch_size": batch, "max_iter": 1, "shuffle": False}
    steps = {}
    for gradient in ("gse", "mean"):
        model = WideSGDRegressor("w[a]", gradient=gradient, standardize=False, **options).fit(rows, y)
        steps[gradient] = model.coefs_["w"].loc["rare", "value"] / rate
    error = 2.0 / np.sqrt(n_batches)
    assert steps["gse"] / n_batches == pytest.approx(y[has].mean(), abs=4 * error)
    assert steps["mean"] / (n / batch) == pytest.approx(0.1 * y[has].mean(), abs=4 * error)


def test_draws_until_a_symbol_occurs():
    """Appendix A: 1 / (1 - (1 - share)**batch) batches on average, by the updates that the symbol's number has had."""
    rng = np.random.default_rng(14)
    share, batch, n = 0.01, 32, 128_000
    table = pd.DataFrame({"a": np.where(rng.random(n) < share, "rare", "other")})
    model = WideSGDRegressor("w[a]", optimizer="adam", learning_rate=0.01, batch_size=batch, max_iter=1, random_state=0)
    fitted = model.fit(table, rng.normal(size=n)).model_
    updates = fitted.state[model.coefs_["w"].index.get_loc("rare"), fitted.columns.step]
    assert n / batch / updates == pytest.approx(1 / (1 - (1 - share) ** batch), rel=0.08)


def test_full_batch_gse_is_the_jacobi_step():
    """Squared loss over one-hot columns: one full-batch step moves each entry by its own mean residual."""
    model = WideSGDRegressor("w[a] + v[b]", optimizer=SGD(), learning_rate=0.4, batch_size="full", max_iter=1,
                             standardize=False).fit(TABLE, TABLE["y"])  # fmt: skip
    for block, column in (("w", "a"), ("v", "b")):
        want = 0.4 * TABLE.groupby(column)["y"].mean()
        np.testing.assert_allclose(model.coefs_[block]["value"].loc[want.index], want)


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("y ~ w[a] + x", r"adds 'x' without a coefficient, as an offset; write s\[1\]\*x .* or offset_column='x'"),
        ("y ~ w[a] + 1", r"adds the constant 1; write b\[1\] for an intercept"),
        ("y ~ w[a] + log(x + 9)", r"adds 'log\(\(x \+ 9\)\)' without a coefficient"),
        ("y ~ b[1] + (x | a)", r"has \(x \| a\), whose intercepts and slopes are estimated without a correlation"),
        ("y ~ b[1] + (1 + x|a)", r"has \(1 \+ x\|a\), .*; write \|\| in place of \|"),
    ],
)
def test_what_formulas_mean_elsewhere_is_told_of(formula, said):
    """R and statsmodels estimate a slope, an intercept or a correlation for what is written so."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.choice(list("pqr"), 200), "x": rng.normal(size=200), "y": rng.normal(size=200)})
    with pytest.warns(UserWarning, match=said):
        WideSGDRegressor(formula, random_state=0).fit(table)


FAR_FROM_ZERO = [
    ("b[1] + w[home] - w[away] + v[home] * {} - v[away] * {}", "v by year"),
    ("b[1] + w[home] + k[away] * m[home] * {}", "k by year"),
    ("b[1] + s[1] * {} + s(q) + v[q] * {}", "v by year"),
]


@pytest.mark.parametrize(("formula", "said"), FAR_FROM_ZERO)
def test_products_with_numbers_far_from_zero_are_told_of(formula, said):
    """The formula that the warning proposes has no warning, and predicts what the years decide."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.integers(0, 8, 3000).astype(str) for name in ("home", "away")})
    table["year"], table["q"] = rng.integers(2010, 2022, 3000), rng.normal(size=3000)
    by_home, by_away, since = rng.normal(size=8), rng.normal(size=8), table["year"] - 2015.0
    truth = {
        "v by year": (by_home[table["home"].astype(int)] - by_home[table["away"].astype(int)]) * since,
        "k by year": (by_home[table["home"].astype(int)] * by_away[table["away"].astype(int)]) * since,
    }[said]
    if "q" in formula:
        truth = np.cos(2 * table["q"]) * since
    y = truth + rng.normal(size=3000)
    far, near = formula.format("year", "year"), formula.format("(year - 2015)", "(year - 2015)")
    with pytest.warns(UserWarning, match=rf"multiplies {said}, .*; write \(year - 201[56]\)\."):
        WideRegressor(formula=far, random_state=0).fit(table, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = WideRegressor(formula=near, random_state=0).fit(table[:2000], y[:2000])
    assert np.corrcoef(fitted.predict(table[2000:]), truth[2000:])[0, 1] > 0.95


@pytest.mark.parametrize("formula", ["b[1] + w[home] + v[home] * year", "b[1] + (year || home)", "b[1] + s[1] * year"])
def test_centred_numbers_far_from_zero_are_not_told_of(formula):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"home": rng.choice(list("pqrs"), 500), "year": rng.integers(2010, 2022, 500)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = WideRegressor(formula=formula).fit(table, rng.normal(size=500))
    assert abs(model.model_.numerics[0].mean) > 10 * model.model_.numerics[0].spread_about(2015.0)  # it is far


@pytest.mark.parametrize("kind", [WideRegressor, WideSGDRegressor])
def test_where_nothing_is_shrunk_numbers_far_from_zero_are_not_told_of(kind):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"home": rng.choice(list("pqrs"), 500), "year": rng.integers(2010, 2022, 500)})
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        kind("b[1] + w[home]*year", loss="squared_error", alpha=0.0).fit(table, rng.normal(size=500))
    with pytest.warns(UserWarning, match="multiplies w by year, .* shrunk towards 0"):
        kind("b[1] + w[home]*year", loss="squared_error", alpha=0.01).fit(table, rng.normal(size=500))


@pytest.mark.parametrize(
    "formula",
    ["y ~ 2 * w[a] * x + s[1] * x + b[1]", "y ~ b[1] + (x || a)", "y ~ b[1] + (1 | a)", "y ~ b[1] + (0 + x | a)"],
)
def test_nothing_is_said_of_terms_that_have_coefficients(formula):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.choice(list("pqr"), 200), "x": rng.normal(size=200), "y": rng.normal(size=200)})
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        WideSGDRegressor(formula, random_state=0).fit(table)
    assert [str(one.message) for one in told if "without a coefficient" in str(one.message)] == []
    assert not any(issubclass(one.category, UserWarning) for one in told)


@pytest.mark.parametrize("kind", [WideRegressor, WideSGDRegressor])
@pytest.mark.parametrize("formula", ["f[x] + s[1]*x + c[1]", "f[x]*x + c[1]", "f[x] + s[1]*log1p(x) + c[1]"])
def test_a_column_is_a_number_and_categories_in_one_formula(formula, kind):
    """As with a copy of the column under another name, which was the remedy that the refusal named."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.integers(0, 6, 600)})
    y = 2.0 * X["x"] + rng.normal(size=6)[X["x"]] + 0.1 * rng.normal(size=600)
    options = {"loss": "squared_error", "random_state": 0}
    model = kind(formula, **options).fit(X, y)
    other = kind(formula.replace("[x]", "[k]"), **options).fit(X.assign(k=X["x"].astype(str)), y)
    np.testing.assert_allclose(model.predict(X), other.predict(X.assign(k=X["x"].astype(str))), rtol=1e-9)
    assert model.score(X, y) > 0.99
    with pytest.raises(ValueError, match=r"Column 'x' is categorical; write w\[x\]"):
        kind(formula, **options).fit(X.astype(str), y)


def test_gse_ends_at_the_ordinary_optimum_also_with_several_columns():
    """Not where every category weighs the same, as the paper on GSE has it: an estimate is 0 where the gradient is."""
    draw = np.random.default_rng(0)
    X = pd.DataFrame({"a": draw.choice(list("uvw"), 300, p=[0.9, 0.05, 0.05]), "b": draw.choice(list("pq"), 300)})
    X.loc[X["a"] == "u", "b"] = draw.choice(list("pq"), (X["a"] == "u").sum(), p=[0.8, 0.2])
    y = ((X["a"] == "v") * 2.0 + (X["b"] == "p") * (1.0 + (X["a"] == "w"))).to_numpy() + draw.normal(size=300)
    design = pd.get_dummies(X, dtype=float).to_numpy()
    own = sum(1.0 / X[name].map(X[name].value_counts()).to_numpy() for name in "ab")  # a row's, by its categories
    ordinary, alike = (
        design @ np.linalg.lstsq(np.sqrt(w)[:, None] * design, np.sqrt(w) * y)[0] for w in (np.ones(300), own)
    )
    options = {"optimizer": "sgd", "learning_rate": 0.3, "batch_size": "full", "max_iter": 3000, "tol": None}
    found = WideSGDRegressor("w[a] + v[b]", gradient="gse", standardize=False, **options).fit(X, y).predict(X)
    np.testing.assert_allclose(found, ordinary, atol=1e-6)
    assert np.abs(found - alike).max() > 0.05


def test_random_effects_and_smooths_as_lme4_and_mgcv_write_them(tmp_path):
    rng = np.random.RandomState(0)
    g, x, z = rng.randint(8, size=600), rng.randint(30, size=600), rng.rand(600)
    y = rng.randn(8)[g] + rng.randn(8)[g] * z + np.sin(x / 5) + 0.3 * rng.randn(600)
    table = pd.DataFrame({"g": g.astype(str), "x": x, "z": z, "y": y})
    named = WideRegressor(
        "y ~ c[1] + s[1] * z + w[g] + v[g] * z + f[x]", loss="squared_error", numeric={"x": "smooth"}
    ).fit(table)
    written = WideRegressor("y ~ c[1] + s[1] * z + (z || g) + s(x)", loss="squared_error").fit(table)
    assert list(written.coefs_) == ["c", "s", "1 | g", "z | g", "s(x)"]
    for one, other in (("1 | g", "w"), ("z | g", "v"), ("s(x)", "f")):
        pd.testing.assert_frame_equal(written.coefs_[one], named.coefs_[other], check_names=False)
    np.testing.assert_array_equal(written.predict(table), named.predict(table))
    assert "(1 | g) + (z | g) * z + s(x)" in written.summary()
    loaded = load(save(written, tmp_path / "model.skops"))
    np.testing.assert_array_equal(loaded.predict(table), written.predict(table))


@pytest.mark.parametrize("mean", [0.0, 10.0])
@pytest.mark.parametrize("formula", ["s(x) + (1 | g)", "s(x) + s(z) + (1 | g)", "f[x] + (z || g) + s[1] * z"])
def test_smooth_terms_have_an_intercept_also_where_a_formula_lacks_it(formula, mean, tmp_path):
    """Their level is not penalized. Categories took it, with variances of the size of the target's mean squared."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"x": rng.normal(size=400), "z": rng.normal(size=400), "g": rng.choice(list("abcd"), 400), "more": 1.0}
    )
    effect = table["g"].map({"a": -0.5, "b": 0.0, "c": 0.2, "d": 0.5})
    y = mean + np.sin(2 * table["x"]) + effect + 0.5 * rng.normal(size=400)
    options = {"loss": "squared_error", "count_effect": False}
    lacking = WideRegressor(formula, **options).fit(table, y)
    complete = WideRegressor(f"{formula} + c[1]", **options).fit(table, y)
    pd.testing.assert_frame_equal(lacking.variances_, complete.variances_)
    np.testing.assert_array_equal(lacking.coefs_["(intercept)"], complete.coefs_["c"])
    new = table[["g", "z", "x"]].assign(g="new", other=2.0)  # in any order, and more than needed
    for model in (lacking, load(save(lacking, tmp_path / "model.skops")), lacking.with_coefs({})):
        np.testing.assert_array_equal(model.predict(new), complete.predict(new))
    lacking.set_params(formula=None).fit(table[["x", "z", "g"]], y)
    with pytest.raises(ValueError, match="feature names"):
        lacking.predict(new)


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_a_dropped_smooth_term_leaves_the_level(loss):
    """Half of those without an effect are dropped: every prediction was 0 then, behind a log link 1."""
    n_dropped = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=300)
        y = 10.0 + rng.normal(size=300) if loss == "squared_error" else rng.poisson(10, size=300).astype(float)
        model = WideRegressor("s(x)", loss=loss).fit(pd.DataFrame({"x": x}), y)
        n_dropped += model.variances_.loc["s(x)", "variance"] == 0.0
        assert model.predict(pd.DataFrame({"x": x})).mean() == pytest.approx(y.mean(), rel=1e-3)
    assert n_dropped > 0


def test_an_intercept_is_added_to_penalized_smooth_terms_alone():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=200), "g": rng.choice(list("abcd"), 200), "y": rng.normal(size=200)})
    options = {"loss": "squared_error", "count_effect": False}
    assert list(WideRegressor("y ~ w[g]", **options).fit(table).coefs_) == ["w"]
    assert list(WideRegressor("y ~ s(x) + c[1]", **options).fit(table).coefs_) == ["s(x)", "c"]
    bins = WideRegressor("y ~ s(x)", alpha=0.0, loss="squared_error").fit(table).coefs_  # a mean for each
    assert list(bins) == ["s(x)"]
    means = table["y"].groupby(np.searchsorted(bins["s(x)"]["high"].to_numpy()[:-1], table["x"])).mean()
    np.testing.assert_allclose(bins["s(x)"]["value"], means, atol=1e-6)


@pytest.mark.parametrize(("formula", "message"), [("y ~ s(g)", "s(g) is for numbers"), ("y ~ s(q)", "no column 'q'")])
def test_a_smooth_of_no_number_is_refused(formula, message):
    table = pd.DataFrame({"g": list("ababab"), "x": range(6), "y": [1.0, 2, 3, 4, 5, 6]})
    with pytest.raises(ValueError, match=re.escape(message)):
        WideRegressor(formula, loss="squared_error").fit(table)


@pytest.mark.parametrize("formula", ["y ~ s(x) * w[g]", "y ~ s(x) * z + w[g]", "y ~ s(x) + w[g] * v[g]"])
def test_a_smooth_is_refused_where_terms_are_multiplied(formula):
    table = pd.DataFrame({"g": list("ababab"), "x": range(6), "z": 1.5, "y": [1.0, 2, 3, 4, 5, 6]})
    with pytest.raises(ValueError, match="not where terms are multiplied"):
        WideRegressor(formula, loss="squared_error").fit(table)


def test_a_smooth_needs_bins():
    table = pd.DataFrame({"g": list("ababab"), "x": range(6), "y": [1.0, 2, 3, 4, 5, 6]})
    with pytest.raises(ValueError, match="s\\(x\\) has no effect with numeric='linear'"):
        WideSGDRegressor("y ~ s(x) + w[g]").fit(table)


@pytest.mark.parametrize("alpha", ["auto", 0.01, 0.0])
@pytest.mark.parametrize(
    ("formula", "plain"),
    [
        ("w[g] + v[g]*(year - 2010)/10 + c[1]", "w[g] + v[g]*t + c[1]"),
        ("w[g] + (0.1*year - 201)*v[g] + s[1]*(0.1*year - 201) + c[1]", "w[g] + v[g]*t + s[1]*t + c[1]"),
        ("(year/10 - 201)*(v[g] + s[1]) + c[1]", "v[g]*t + s[1]*t + c[1]"),
        ("k[g]*m[h]*(year - 2010)*0.1 + c[1]", "k[g]*m[h]*t + c[1]"),
    ],
)
def test_a_number_that_is_centred_in_the_formula_is_one_number(formula, plain, alpha):
    """Expanded, its slopes would be those of a number far from 0, and penalized with what they take up there."""
    rng, n = np.random.default_rng(0), 600
    X = pd.DataFrame({"g": rng.choice(list("abcd"), n), "h": rng.choice(list("pq"), n)})
    X["year"] = rng.uniform(2000, 2020, n)
    X["t"] = (X["year"] - 2010) / 10
    y = X["g"].map({"a": 2.0, "b": 1.0, "c": 0.5, "d": 1.5}) * X["t"] + 0.3 * rng.normal(size=n)
    one, other = (WideRegressor(text, loss="squared_error", alpha=alpha).fit(X, y) for text in (formula, plain))
    np.testing.assert_allclose(one.predict(X), other.predict(X), atol=2e-3 if "m[h]" in formula else 1e-7)
    online, known = (WideSGDRegressor(text, random_state=0).fit(X, y) for text in (formula, plain))
    np.testing.assert_allclose(online.predict(X), known.predict(X), rtol=1e-6, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "scale"), [(1e-4, 1e-4), (1e-4, 1e4), (1e-6, 100.0)])
@pytest.mark.parametrize(("seed", "n", "q"), [(2, 2000, 40), (28, 2000, 40), (0, 20_000, 1300)])
def test_products_are_at_the_optimum_where_the_scales_of_factors_are_hardly_penalized(alpha, scale, seed, n, q):
    """`p[a]*m[b]` behind a log link, without an intercept: going on from the coefficients, L-BFGS gains nothing."""
    rng = np.random.default_rng(seed)
    a, b = rng.permutation(np.arange(n) % q), rng.integers(0, 3, n)
    rate = np.exp((1 + 0.4 * rng.normal(size=q))[a] * (1 + 0.4 * rng.normal(size=3))[b] - 1)
    y = rng.poisson(rate) * scale
    table = pd.DataFrame({"a": a.astype(str), "b": b.astype(str)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = WideRegressor("p[a]*m[b]", loss="poisson", alpha=alpha * y.mean()).fit(table, y)
    factors = [
        model.coefs_[name]["value"].reindex([str(one) for one in range(size)]).to_numpy()
        for name, size in (("p", q), ("m", 3))
    ]
    factors[0] = factors[0] * model.coefs_["scale of m*p"]["value"].iloc[0]
    share = np.sqrt(np.linalg.norm(factors[1]) / np.linalg.norm(factors[0]))
    start = np.concatenate([factors[0] * share, factors[1] / share])
    np.testing.assert_allclose(np.exp(start[:q][a] * start[q:][b]), model.predict(table), rtol=1e-9)

    def loss(theta):
        p, m = theta[:q], theta[q:]
        eta = p[a] * m[b]
        slopes = np.exp(eta) / y.mean() - y / y.mean()
        grad = np.append(np.bincount(a, slopes * m[b], q), np.bincount(b, slopes * p[a], 3)) + alpha * n * theta
        return (np.exp(eta) - y * eta).sum() / y.mean() + 0.5 * alpha * n * theta @ theta, grad

    options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-15, "gtol": 1e-9}
    least = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).fun
    assert loss(start)[0] - least < 2e-5 * model.dispersion_ / y.mean()


def test_smooth_terms_have_no_count_effect():
    """How full a cell of two numbers is was a term, with a p."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.uniform(size=500), "z": rng.uniform(size=500), "g": rng.choice(list("abcdefgh"), 500)})
    y = np.sin(6 * X["x"]) + X["z"] + rng.normal(0, 0.5, 500)
    model = WideRegressor("s(x) + s(z, by=g) + te(x, z) + (1 | g)", loss="squared_error").fit(X, y)
    assert [name for name in model.coefs_ if name.startswith("count of") and "(" in name] == []


def test_a_curve_by_a_number_is_refused():
    """mgcv's is z * f(x); cells of bins of both were fitted."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.uniform(size=300), "z": rng.uniform(size=300), "code": rng.integers(0, 4, 300)})
    with pytest.raises(ValueError, match=r"column 'z' holds numbers.*write v\[x\]\*z for a curve"):
        WideRegressor("s(x, by=z)", loss="squared_error").fit(X, X["x"])
    assert "s(x, by=code)" in WideRegressor("s(x, by=code)", loss="squared_error").fit(X, X["x"]).coefs_


@pytest.mark.parametrize(
    ("formula", "alpha", "by_rows"),
    [
        ("u[g] + s[g] * x + c[1]", "auto", False),
        ("u[g] + s[g] * x + c[1]", 1.0, False),
        ("u[g] + s[g] * x + c[1]", 0.0, True),
        ("u[g] + s[g] * x", "auto", True),  # no intercept has the mean of the levels
        ("u[g] + s[g] * x + m[1] * x + c[1]", "auto", False),
        ("u[g] + s[g] * x + m[1] * x + c[1]", 0.0, True),
    ],
)
def test_an_unknown_category_with_slopes_is_predicted_as_the_mean_of_the_known(formula, alpha, by_rows):
    """At every number: of the categories where they are random effects about an intercept, else of the rows."""
    rng, names = np.random.default_rng(0), ["g0", "g1", "g2", "g3"]
    g, x = rng.choice(4, 600, p=[0.6, 0.25, 0.1, 0.05]), rng.normal(2.0, 1.0, 600)
    y = np.array([0.0, 1.0, 2.0, 4.0])[g] + np.array([1.0, -1.0, 2.0, 3.0])[g] * x + 0.5 * rng.normal(size=600)
    X = pd.DataFrame({"g": np.array(names)[g], "x": x})
    counts = {"count_effect": False} if by_rows and alpha == "auto" else {}  # which has an intercept beside it
    model = WideRegressor(formula, loss="squared_error", alpha=alpha, **counts).fit(X, y)
    at = np.array([0.0, 2.0, 5.0])
    known = [model.predict(pd.DataFrame({"g": name, "x": at})) for name in names]
    weights = np.bincount(g) if by_rows else None
    found = model.predict(pd.DataFrame({"g": "new", "x": at}))
    np.testing.assert_allclose(found, np.average(known, axis=0, weights=weights), rtol=1e-6)


@pytest.mark.parametrize(
    ("formula", "remedy"),
    [
        ("b[1] + g", r"write w\[g\] for a coefficient of each category\."),
        ("s(x) + g + (1 | g)", r"\(1 \| g\) has a coefficient of each category; leave 'g' out"),
        ("s(x) + g + w[g]", r"w\[g\] has a coefficient of each category; leave 'g' out"),
        ("s[h]*g + b[1]", r"w\[g\] for a coefficient of each category, w\[h, g\] for one of each combination"),
        ("b[1] + (g | h)", r"\(1 \| h:g\) for one of each combination"),
    ],
)
def test_categories_as_a_number_are_one_message_with_the_remedy(formula, remedy):
    """Without a warning before it that advises a slope."""
    X = pd.DataFrame({"x": np.arange(40.0), "g": list("abcd") * 10, "h": list("ef") * 20})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(FormulaError, match=remedy):
            WideRegressor(formula).fit(X, np.arange(40.0))


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("mean", "is_told"), [(9.9, False), (10.1, True)])
def test_numbers_beyond_ten_deviations_from_0_are_told_of_where_they_are_multiplied(mean, sign, is_told):
    """Which the penalty of slopes by category makes a difference to; with a number near the mean to subtract."""
    z = np.tile([-1.0, 1.0], 30)  # of deviation 1, for any weights of pairs
    X = pd.DataFrame({"g": np.repeat(list("pqr"), 20), "x": sign * 20.0 * (mean + z)})
    y, weight = np.sin(np.arange(60.0)), np.repeat(np.resize([1.0, 2.0, 5.0], 30), 2)
    formulas = {"w[g] * x + b[1]": is_told, "w[g] * x + v[g] + b[1]": False, "s[1] * x + v[g] + b[1]": False}
    formulas["w[g] * (x / 10000) + b[1]"] = is_told  # in any unit
    for formula, wanted in formulas.items():
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            WideRegressor(formula, loss="squared_error").fit(X, y, weight)
        told = [str(one.message) for one in told if "whose values are far from 0" in str(one.message)]
        assert len(told) == wanted
        if wanted and "100" not in formula:
            words = f"w by x, whose values are far from 0 (mean {sign * 20.0 * mean:.6g}, standard deviation 20)"
            assert words in told[0] and told[0].endswith(f"write (x {'-' if sign > 0.0 else '+'} 200).")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # without a penalty it makes none
        WideRegressor("w[g] * x + b[1]", loss="squared_error", alpha=0.0).fit(X, y)


@pytest.mark.parametrize(("alpha", "l1_ratio"), [(0.0, 0.0), (1e-3, 0.0), (1e-3, 0.5), (1e-3, 1.0)])
def test_online_models_tell_of_far_numbers_where_coefficients_are_shrunk(alpha, l1_ratio):
    X = pd.DataFrame({"g": np.repeat(list("pqr"), 20), "x": 101.0 + np.tile([-1.0, 1.0], 30)})
    made = WideSGDRegressor("w[g] * x + b[1]", alpha=alpha, l1_ratio=l1_ratio, max_iter=2, random_state=0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        made.fit(X, np.sin(np.arange(60.0)))
    assert any("whose values are far from 0" in str(one.message) for one in told) == (alpha > 0.0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("far", "is_told"), [(0.99e10, False), (1.01e10, True)])
def test_slopes_of_numbers_of_which_a_double_holds_few_digits_are_told_of(far, sign, is_told):
    z = np.tile([-1.0, 1.0], 30)
    X = pd.DataFrame({"g": list("pqr") * 20, "x": sign * 20.0 * (far + z)})
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        WideRegressor(loss="squared_error", numeric="linear", interactions=None).fit(X, np.sin(np.arange(60.0)))
    told = [str(one.message) for one in told if "are rounded" in str(one.message)]
    assert len(told) == is_told
    if is_told:
        words = f"The values of x are {sign * 20.0 * far:.6g} with a standard deviation of 20, so that"
        assert told[0].startswith(words)
        assert "rounded, to about 1e-06 of what x adds" in told[0]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_factors_whose_mean_is_a_tenth_of_their_size_have_a_mean(sign):
    """Over training rows, the root mean square of 1 and -1 about a mean m being sqrt(1 + m * m)."""
    z, weights = np.array([1.0, -1.0, 1.0, -1.0]), np.array([3.0, 3.0, 0.5, 0.5])

    def mean_of(*means, source=0, z=z, weights=weights):
        theta = np.column_stack([sign * (mean + z) for mean in means])
        blocks = [SimpleNamespace(source=source)]
        spec = SimpleNamespace(coefs=lambda block: slice(0, len(z)), blocks=blocks)
        return _means(SimpleNamespace(spec=spec, theta=theta, weights=weights), 0)

    for mean in (0.102, 0.5, 3.0):
        np.testing.assert_allclose(mean_of(mean, 0.8), sign * np.array([mean, 0.8]))
    assert mean_of(0.099) is None and mean_of(0.8, 0.099) is None  # of one class or another
    assert mean_of(3.0, weights=np.zeros(4)) is None
    scalar = {"source": None, "z": np.zeros(1), "weights": np.zeros(1)}
    np.testing.assert_allclose(mean_of(0.01, 2.0, **scalar), sign * np.array([0.01, 2.0]))
    assert mean_of(0.0, **scalar) is None and mean_of(2.0, 0.0, **scalar) is None
