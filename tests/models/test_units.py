"""The units of the user: what `coefs_` say, read by hand, is the score; `coef_init` takes them; offsets count.

The formulas are drawn and read by `tests/formulas.py`, which knows nothing of the package.
"""

import math
import warnings

import numpy as np
import pandas as pd
import pytest

from tabsym import WideRegressor, WideSGDClassifier, WideSGDRegressor
from tests.formulas import (
    CATEGORIES,
    Block,
    Column,
    Dot,
    Function,
    disturb,
    draw_params,
    evaluate,
    factors_of,
    has_lone_scalar,
    key_of,
    lookup,
    random_formula,
    random_table,
    text_of,
)

REGRESSION = ["squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie"]
CLASSES = ["logistic", "multinomial", "hinge"]
LOSSES = REGRESSION + CLASSES
LOG_LINK = ("poisson", "gamma", "tweedie")
CANONICAL = ("squared_error", "poisson", "logistic", "multinomial")
RATES = {"adagrad": 0.05, "sgd": 1e-3, "rmsprop": 5e-3, "adam": 5e-3}
LEVELS = ["high", "low", "mid"]
X, Z = Column("x"), Column("z")


def w(*columns, name="w"):
    return Block(name, columns)


def rmse(y, p):
    return float(np.sqrt(np.mean((np.asarray(y) - np.asarray(p)) ** 2)))


def size_of(score):
    return max(1e-300, float(np.max(np.abs(score))))


def assert_equal_scores(got, want, tolerance=1e-9):
    """Equal relative to the size of the score."""
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * size_of(want))


def model_of(loss, formula=None, **options):
    """An online model; of classes the target says whether it is logistic or multinomial."""
    if loss in CLASSES:
        return WideSGDClassifier(formula, loss="hinge" if loss == "hinge" else "log_loss", **options)
    return WideSGDRegressor(formula, loss=loss, **options)


def random_target(loss, rng, n):
    """Valid values for a loss, of no particular meaning."""
    if loss == "multinomial":
        return rng.choice(LEVELS, n)
    if loss in CLASSES:
        return rng.choice(["no", "yes"], n)
    if loss == "poisson":
        return rng.poisson(2.0, n).astype(float)
    if loss in LOG_LINK:
        return rng.gamma(2.0, 1.0, n) + 0.05
    return None


def scores(model, table, offset=None):
    """The scores (n, K) behind the predictions."""
    if isinstance(model, WideSGDClassifier):
        found = model.decision_function(table, offset=offset)
        return found if found.ndim == 2 else found[:, None]
    found = model.predict(table, offset=offset)
    return (np.log(found) if model.loss in LOG_LINK else found)[:, None]


def columns_of(model):
    """The columns of `coefs_` that hold numbers."""
    return LEVELS if len(getattr(model, "classes_", ())) > 2 else ["value"]


def read(tree, model, table, offset=None):
    """The formula read by hand with `coefs_`, and the offset: (n, K)."""
    names = columns_of(model)
    found = np.column_stack([evaluate(tree, model.coefs_, table, name) for name in names])
    if offset is None:
        return found
    return found + (offset if np.ndim(offset) == 2 else np.asarray(offset)[:, None])


def random_offset(loss, rng, n):
    return rng.normal(0.0, 0.5, (n, len(LEVELS)) if loss == "multinomial" else n)


# -- the generator and the reader -------------------------------------------------------


class Lookup:
    """`w[a]` and `w[a, b]` in Python's own syntax."""

    def __init__(self, frame):
        self.table = lookup(frame, "value")

    def __getitem__(self, key):
        if key == 1:
            return next(iter(self.table.values()))
        return self.table[key_of(key if isinstance(key, tuple) else (key,))]


@pytest.mark.parametrize("seed", range(20))
def test_text_and_tree_say_the_same(seed):
    """Python reads the text, the oracle the tree: an oracle that misreads its own formula would be found here."""
    rng = np.random.default_rng(seed)
    tree, table = random_formula(rng), random_table(rng, 20)
    params = draw_params(tree, table, rng)
    names = {name: Lookup(frame) for name, frame in params.items()}
    names |= {"dot": lambda left, right, rank: float(np.dot(left, right)), "log1p": math.log1p, "sqrt": math.sqrt}
    wanted = [
        eval(text_of(tree), {}, {**names, **row})  # noqa: S307
        for row in table.to_dict("records")
    ]
    np.testing.assert_allclose(evaluate(tree, params, table), wanted, rtol=1e-12)


# -- coefs_ are the score --------------------------------------------------------------


def random_case(seed):
    """A formula, a table, a target, weights, offsets and a model, by turns over losses and optimizers."""
    rng = np.random.default_rng(seed)
    loss, optimizer = LOSSES[seed % 10], list(RATES)[(seed // 10 + seed) % 4]  # all pairs in 40 seeds
    standardize = seed // 60 % 2 == 0
    far = standardize and loss in ("squared_error", "absolute_error", "huber", "quantile") and optimizer != "sgd"
    table = random_table(rng, x_scale=float(rng.choice([0.02, 1.0, 30.0])) if far else 1.0)
    tree = random_formula(rng)
    y = random_target(loss, rng, len(table))
    if y is None:
        truth = evaluate(tree, draw_params(tree, table, rng), table)
        y = truth + rng.normal(0.0, 0.3 * truth.std() + 1e-3, len(table))
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], len(table)) * 10.0 ** rng.integers(-3, 4) if rng.random() < 0.5 else None
    offset = random_offset(loss, rng, len(table)) if rng.random() < 0.5 else None
    model = model_of(
        loss, text_of(tree), optimizer=optimizer, standardize=standardize,
        learning_rate=RATES[optimizer] * (0.01 if optimizer == "sgd" and loss in LOG_LINK else 1.0),
        gradient=str(rng.choice(["gse", "mean"])), batch_size=[16, 1, "full"][rng.integers(3)], max_iter=3,
        average=bool(rng.random() < 0.3), alpha=float(rng.choice([0.0, 1e-3])), random_state=seed,
    )  # fmt: skip
    return tree, table, y, weight, offset, model


@pytest.mark.parametrize("block", range(10))
def test_the_formula_read_with_params_is_the_score(block):
    """Scaling inside that is not undone, or undone twice, shows in the first formula that reads a block twice."""
    wrong = []
    for seed in range(10 * block, 10 * block + 10):
        tree, table, y, weight, offset, model = random_case(seed)
        model.fit(table, y, sample_weight=weight, offset=offset)
        kept = np.ones(len(table), dtype=bool) if weight is None else weight > 0
        shown = None if offset is None else offset[kept]
        got, want = scores(model, table[kept], shown), read(tree, model, table[kept], shown)
        error = np.abs(got - want).max() / size_of(want)
        if not error < 1e-9:
            wrong.append(f"seed {seed}, error {error:.1e}: {model}")
    assert not wrong, "\n".join(wrong)


def read_additive(model, table, columns, crosses, numeric, weight, offset=None):
    """The model without a formula, read by hand: one number per symbol and cross, slopes, flags of missing numbers."""
    names = columns_of(model)
    weight = np.ones(len(table)) if weight is None else weight
    out = np.empty((len(table), len(names)))
    for k, name in enumerate(names):
        total = np.full(len(table), model.coefs_["(intercept)"][name].iloc[0])
        for block in [*columns, *crosses]:
            numbers = lookup(model.coefs_[block], name)
            total += [numbers[key_of(row)] for row in table[block.split(":")].itertuples(index=False, name=None)]
        for column in numeric:
            gone = table[column].isna().to_numpy()
            mean = np.average(table[column][~gone], weights=weight[~gone])
            total += model.coefs_[column][name].iloc[0] * table[column].fillna(mean).to_numpy()
            if gone.any():
                total += model.coefs_[f"{column} is missing"][name].iloc[0] * gone
        out[:, k] = total
    return out if offset is None else out + np.reshape(offset, (len(table), -1))


@pytest.mark.parametrize("optimizer", list(RATES))
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson", "gamma", "logistic", "multinomial"])
def test_the_model_without_a_formula_read_with_params_is_the_score(loss, standardize, optimizer):
    """Means of numbers that leave weights out, or flags of missing numbers in other units, give other scores."""
    rng = np.random.default_rng(LOSSES.index(loss))
    table = random_table(rng, 200, x_scale=50.0 if standardize else 1.0)
    table.loc[rng.random(200) < 0.2, "x"] = np.nan
    y = random_target(loss, rng, 200)
    y = 1000 * rng.normal(5.0, 1.0, 200) + table["z"] if y is None else y
    y = y / 1000 if y.dtype == float and not standardize and loss in ("squared_error", "huber") else y
    weight, offset = rng.choice([0.5, 1.0, 4.0], 200), random_offset(loss, rng, 200)
    model = model_of(
        loss, interactions="pairwise", optimizer=optimizer, learning_rate=RATES[optimizer], standardize=standardize,
        max_iter=3, batch_size=8, random_state=0,
    ).fit(table, y, sample_weight=weight, offset=offset)  # fmt: skip
    want = read_additive(model, table, ["a", "b", "c"], ["a:b", "a:c", "b:c"], ["x", "z"], weight, offset)
    assert_equal_scores(scores(model, table, offset), want)


@pytest.mark.slow
@pytest.mark.parametrize("standardize", [True, False])
def test_params_are_the_score_after_partial_fit_with_new_symbols(standardize):
    """Grown entries, or units of a first batch that later calls mix up, would give other scores."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        tree, table = random_formula(rng), random_table(rng, 120)
        y = evaluate(tree, draw_params(tree, table, rng), table)
        model = WideSGDRegressor(
            text_of(tree), standardize=standardize, learning_rate=0.02, batch_size=8, random_state=0
        )
        first = (table["a"] != "k") & (table["c"] != "red")
        model.partial_fit(table[first], y[first], sample_weight=rng.uniform(0.5, 2.0, first.sum()))
        assert_equal_scores(model.predict(table[first]), evaluate(tree, model.coefs_, table[first]))
        model.partial_fit(table, y, offset=rng.normal(size=len(table)))
        assert_equal_scores(model.predict(table), evaluate(tree, model.coefs_, table))


def test_intervals_are_in_the_units_of_the_score():
    """The numbers of intervals and the intercept are amounts of the target, not of a scaled one."""
    rng = np.random.default_rng(3)
    table = random_table(rng, 300)
    y = 1e4 * (table["x"] > 1) + 5e5 + rng.normal(0.0, 100.0, 300)
    model = WideSGDRegressor(categorical_features=["a", "b", "c"], numeric="quantile", max_iter=5, random_state=0).fit(
        table, y
    )
    total = sum(frame["value"].mean() for frame in model.coefs_.values())
    assert abs(total - model.predict(table).mean()) < 3e4
    assert model.coefs_["(intercept)"]["value"].iloc[0] == pytest.approx(y.mean(), rel=0.1)


# -- exact data -------------------------------------------------------------------------

SHARED = {
    "w[a] * (x + z)": w("a") * (X + Z),
    "w[a] * (1 + x)": w("a") * (1 + X),
    "w[a] + w[a] * z": w("a") + w("a") * Z,
    "t[1] + t[1] * z": w(name="t") + w(name="t") * Z,
    "(1 + w[a]) * (1 + v[b])": (1 + w("a")) * (1 + w("b", name="v")),
}
PLAIN = {
    "w[a] - w[b]": w("a") - w("b"),
    "w[a] * x + c0[1]": w("a") * X + w(name="c0"),
    "w[a] * x + v[b] + c0[1]": w("a") * X + w("b", name="v") + w(name="c0"),
    "g[a] * m[c] * x": w("a", name="g") * w("c", name="m") * X,
    "g[a] * m[c] * x + c0[1]": w("a", name="g") * w("c", name="m") * X + w(name="c0"),
    "s[a, b] + 3 * z": w("a", "b", name="s") + 3 * Z,
    "w[a] * (2.5 * x) / (1 + z)": w("a") * (2.5 * X) / (1 + Z),
    "w[c] * log1p(x) + t[1] * z": w("c") * Function("log1p", X) + w(name="t") * Z,
}


def exact_data(tree, seed=0, n=200, x_scale=1.0):
    rng = np.random.default_rng(seed)
    table = random_table(rng, n, x_scale)
    truth = draw_params(tree, table, rng)
    if not factors_of(tree):
        truth = {name: frame + 1.5 for name, frame in truth.items()}
    return table, truth, evaluate(tree, truth, table)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("text", [*SHARED, *PLAIN])
def test_exact_data_is_fitted_exactly(text, standardize):
    """A scale of its own for each term makes another model of a formula that reads one block in several terms."""
    tree = {**SHARED, **PLAIN}[text]
    table, _, y = exact_data(tree)
    model = WideSGDRegressor(text, optimizer="adagrad", learning_rate=0.5, batch_size="full", max_iter=4000,
                             standardize=standardize, random_state=0).fit(table, y)  # fmt: skip
    assert rmse(y, model.predict(table)) < 1e-3 * y.std()
    assert_equal_scores(model.predict(table), evaluate(tree, model.coefs_, table))


@pytest.mark.parametrize("text", [*SHARED, *PLAIN])
def test_exact_data_is_fitted_by_the_automatic_rate(text):
    """Full batch, everything else by default: a rate or a number of epochs that stops short would be found."""
    tree = {**SHARED, **PLAIN}[text]
    table, _, y = exact_data(tree, seed=1, n=300)
    model = WideSGDRegressor(text, batch_size="full", random_state=0).fit(table, y)
    assert rmse(y, model.predict(table)) < 0.05 * y.std()


def test_identified_parameters_are_the_truth():
    """The scalar 2 of `t[1] + t[1] * z` is shown as 2, whatever is scaled inside."""
    table, truth, y = exact_data(SHARED["t[1] + t[1] * z"])
    for standardize in (True, False):
        model = WideSGDRegressor("t[1] + t[1] * z", optimizer="adagrad", learning_rate=0.5, batch_size="full",
                                 max_iter=3000, standardize=standardize).fit(table, y)  # fmt: skip
        assert model.coefs_["t"]["value"].iloc[0] == pytest.approx(truth["t"]["value"].iloc[0], rel=1e-3)
    table, truth, y = exact_data(SHARED["w[a] * (1 + x)"], x_scale=10.0)
    model = WideSGDRegressor("w[a] * (1 + x)", optimizer="adagrad", learning_rate=0.5, batch_size="full", max_iter=3000)
    found = model.fit(table, y).coefs_["w"]["value"]
    np.testing.assert_allclose(found[truth["w"].index], truth["w"]["value"], rtol=1e-2)


@pytest.mark.parametrize("block", range(5))
@pytest.mark.slow
def test_exact_data_is_recovered_from_near_the_truth(block):
    """From 10 % off, in the user's units, full-batch training reaches the truth of any formula; were `coef_init` read
    in other units, or the model another one, it would not. Adam wobbles at a steady rate, and ends with a small one."""
    wrong = []
    for seed in range(7 * block, 7 * block + 7):
        rng = np.random.default_rng(1000 + seed)
        tree, table = random_formula(rng), random_table(rng, 120)
        truth = draw_params(tree, table, rng)
        y, params = evaluate(tree, truth, table), disturb(truth, rng)
        assert rmse(y, evaluate(tree, params, table)) > 0.02 * y.std()
        for rate, max_iter in [(0.01, 1300), (0.002, 200)]:
            model = WideSGDRegressor(
                text_of(tree), coef_init=params, optimizer="adam", learning_rate=rate, max_iter=max_iter,
                batch_size="full", standardize=bool(seed % 2), random_state=0,
            )  # fmt: skip
            model.fit(table, y)
            params = model.coefs_
        if not rmse(y, model.predict(table)) < 0.003 * y.std():
            wrong.append(f"seed {1000 + seed}, {rmse(y, model.predict(table)) / y.std():.1e} sd: {model}")
    assert not wrong, "\n".join(wrong)


# -- other units, the same model --------------------------------------------------------

WITH_INTERCEPT = ["w[a] * x + v[b] + c0[1]", "g[a] * m[b] * x + c0[1]", "w[a] - w[b] + t[1] * x + c0[1]",
                  "s[a, b] * x + c0[1]", "dot(u[a], q[b], rank=2) + c0[1]", "w[a] * (x / z) + c0[1]",
                  "w[c] * 2.5 * x + t[1] * z + c0[1]", "w[a] * (1 + z) + c0[1]", None]  # fmt: skip
WITHOUT = ["w[a] * x", "g[a] * m[b] * x", "s[a, b]", "w[a] * x * z + v[b] * x", "g[a] * g[b]"]


@pytest.mark.parametrize("loss", ["squared_error", "huber", "absolute_error"])
@pytest.mark.parametrize("formula", WITH_INTERCEPT)
def test_other_units_give_the_same_model(formula, loss):
    """Anything left in raw units (a step, a start, `delta`) shows when prices are cents and metres are minutes."""
    rng = np.random.default_rng(7)
    table = random_table(rng, 200)
    y = table["x"] * table["a"].map(dict(zip("klmnp", range(5)))) + table["z"] + rng.normal(0.0, 0.5, 200)
    weight, offset = rng.uniform(0.2, 3.0, 200), rng.normal(size=200)
    max_iter = 3 if loss == "absolute_error" else "auto"  # its slope jumps, so that rounding grows from pass to pass
    one = WideSGDRegressor(formula, loss=loss, max_iter=max_iter, random_state=0).fit(table, y, weight, offset=offset)
    other = table.assign(x=60 * table["x"])
    two = WideSGDRegressor(formula, loss=loss, max_iter=max_iter, random_state=0).fit(
        other, 1000 * y + 7e5, weight, offset=1000 * offset
    )
    want = 1000 * one.predict(table, offset=offset) + 7e5
    np.testing.assert_allclose(two.predict(other, offset=1000 * offset), want, rtol=0, atol=1e-6 * 1000 * y.std())


@pytest.mark.parametrize("formula", WITHOUT)
def test_other_units_without_an_intercept(formula):
    """Without an intercept the target's scale is free, its origin is not."""
    rng = np.random.default_rng(8)
    table = random_table(rng, 200)
    y = (table["x"] * table["a"].map(dict(zip("klmnp", range(5)))) + rng.normal(0.0, 0.5, 200)).to_numpy()
    one = WideSGDRegressor(formula, random_state=0).fit(table, y).predict(table)
    other = table.assign(x=60 * table["x"])
    two = WideSGDRegressor(formula, random_state=0).fit(other, 1000 * y).predict(other)
    np.testing.assert_allclose(two, 1000 * one, rtol=0, atol=1e-6 * 1000 * y.std())


def test_other_units_of_numbers_with_missing_ones():
    """x -> 60 x - 3: a mean or a scale of the flag taken in raw units would show."""
    rng = np.random.default_rng(9)
    table = random_table(rng, 200)
    table.loc[rng.random(200) < 0.3, "x"] = np.nan
    y = table["x"].fillna(5.0) + table["z"] + rng.normal(0.0, 0.1, 200)
    one = WideSGDRegressor(random_state=0).fit(table, y).predict(table)
    other = table.assign(x=60 * table["x"] - 3)
    two = WideSGDRegressor(random_state=0).fit(other, 1000 * y + 7e5).predict(other)
    np.testing.assert_allclose(two, 1000 * one + 7e5, rtol=0, atol=1e-6 * 1000 * y.std())


@pytest.mark.parametrize("loss", ["logistic", "multinomial", "poisson", "gamma"])
def test_other_units_of_numbers_behind_a_link(loss):
    """Classes and log links have no scale of the target, but their numbers have units too."""
    rng = np.random.default_rng(10)
    table = random_table(rng, 200)
    y = random_target(loss, rng, 200)
    for formula in ("w[a] * x + c0[1]", "w[a] * (x / z) + t[1] * x + c0[1]", None):
        one = model_of(loss, formula, random_state=0).fit(table, y)
        other = table.assign(x=60 * table["x"])
        two = model_of(loss, formula, random_state=0).fit(other, y)
        np.testing.assert_allclose(scores(two, other), scores(one, table), rtol=0, atol=1e-6)


# -- coef_init --------------------------------------------------------------------------

STILL = {"learning_rate": 1e-12, "max_iter": 1}


def numbers_of(params):
    return {name: frame.drop(columns="count", errors="ignore") for name, frame in params.items()}


def assert_same_params(got, want, tolerance=1e-6):
    """Same blocks, symbols and numbers, relative to the largest number of the block (at least 1)."""
    assert set(got) == set(want)
    for name, frame in numbers_of(want).items():
        found = numbers_of(got)[name].set_axis([key_of(k if isinstance(k, tuple) else (k,)) for k in got[name].index])
        wanted = frame.set_axis([key_of(k if isinstance(k, tuple) else (k,)) for k in frame.index])
        assert set(found.index) == set(wanted.index), name
        found = found.reindex(wanted.index)[list(wanted.columns)].to_numpy(dtype=float)
        scale = max(1.0, np.abs(wanted.to_numpy(dtype=float)).max())
        np.testing.assert_allclose(found, wanted.to_numpy(dtype=float), rtol=0, atol=tolerance * scale, err_msg=name)


@pytest.mark.parametrize("mean", [-2.0, 0.0, 1.0, 3.0])
def test_another_origin_of_the_target_moves_predictions_by_as_much(mean):
    """Whole numbers, whose mean is exact: no mean is taken for none."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.r_[np.arange(1.0, 101.0), -np.arange(1.0, 101.0)])
    X = pd.DataFrame({"a": np.where(y > rng.normal(0.0, 60.0, 200), "u", "v")})
    model = WideRegressor(loss="squared_error")
    np.testing.assert_allclose(model.fit(X, y + mean).predict(X), model.fit(X, y).predict(X) + mean, atol=1e-6)


@pytest.mark.parametrize("optimizer", ["adagrad", "sgd", "adam", "rmsprop"])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.slow
def test_init_starts_where_the_last_fit_ended(standardize, optimizer):
    """A `coef_init` in the units of training, or one that vectors leave out, starts somewhere else."""
    for seed in range(10 if optimizer == "adagrad" else 5):
        rng = np.random.default_rng(seed)
        loss = ["squared_error", "poisson", "multinomial", "logistic", "huber"][seed % 5]
        tree, table = random_formula(rng), random_table(rng, 100)
        y = random_target(loss, rng, 100)
        y = 100 * rng.normal(size=100) + 500 if y is None else y
        y = y / 100 if loss in ("squared_error", "huber") and not standardize else y
        weight, offset = rng.uniform(0.5, 2.0, 100), random_offset(loss, rng, 100)
        model = model_of(loss, text_of(tree), standardize=standardize, optimizer=optimizer, max_iter=3,
                                learning_rate=RATES[optimizer], batch_size=10, random_state=0)  # fmt: skip
        model.fit(table, y, weight, offset=offset)
        before, score = model.coefs_, scores(model, table, offset)
        model.set_params(coef_init=before, **STILL).fit(table, y, weight, offset=offset)
        message = f"seed {seed}: {loss}, {tree}"
        np.testing.assert_allclose(
            scores(model, table, offset), score, rtol=0, atol=3e-6 * max(1.0, size_of(score)), err_msg=message
        )
        assert_same_params(model.coefs_, before, tolerance=3e-6)


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "logistic", "multinomial"])
def test_init_of_the_model_without_a_formula(loss):
    """Slopes, flags of missing numbers, crosses and the intercept go back in as they came out."""
    rng = np.random.default_rng(11)
    table = random_table(rng, 200, x_scale=50.0)
    table.loc[rng.random(200) < 0.2, "x"] = np.nan
    y = random_target(loss, rng, 200)
    y = 1000 * rng.normal(5.0, 1.0, 200) if y is None else y
    model = model_of(loss, interactions="pairwise", max_iter=3, random_state=0).fit(table, y)
    before, score = model.coefs_, scores(model, table)
    model.set_params(coef_init=before, **STILL).fit(table, y)
    np.testing.assert_allclose(scores(model, table), score, rtol=0, atol=3e-6 * size_of(score))
    assert_same_params(model.coefs_, before, tolerance=3e-6)


@pytest.mark.parametrize("standardize", [True, False])
def test_init_takes_numbers_frames_and_series_in_the_users_units(standardize):
    """A start of 100 on a target of about 104 is 100, not 100 standard deviations."""
    rng = np.random.default_rng(12)
    table = random_table(rng, 100, x_scale=20.0)
    y = 104 + 5 * rng.normal(size=100)
    start = {"w": pd.Series({category: 0.1 * place for place, category in enumerate("klmnp")}), "t": -0.5, "c0": 100.0}
    tree = w("a") * X + w(name="t") * Z + w(name="c0")
    model = WideSGDRegressor(
        "w[a] * x + t[1] * z + c0[1]", coef_init=start, standardize=standardize, loss="absolute_error", **STILL
    )
    model.fit(table, y)
    assert model.coefs_["c0"]["value"].iloc[0] == pytest.approx(100.0, rel=1e-6)
    assert model.coefs_["t"]["value"].iloc[0] == pytest.approx(-0.5, rel=1e-6)
    np.testing.assert_allclose(model.coefs_["w"]["value"][start["w"].index], start["w"], rtol=1e-6, atol=1e-9)
    assert_equal_scores(model.predict(table), evaluate(tree, model.coefs_, table))
    frame = {"w": start["w"].to_frame("value")}
    other = WideSGDRegressor(
        "w[a] * x + c0[1]", coef_init=frame, standardize=standardize, loss="absolute_error", **STILL
    )
    np.testing.assert_allclose(
        other.fit(table, y).coefs_["w"]["value"][start["w"].index], start["w"], rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("standardize", [True, False])
def test_init_as_one_number_is_in_the_users_units(standardize):
    """One number for every block: `w[a]` and `t[1]` start at 2 as they are shown."""
    rng = np.random.default_rng(13)
    table = random_table(rng, 100, x_scale=20.0)
    model = WideSGDRegressor("w[a] * x + t[1] * z", coef_init=2.0, standardize=standardize, **STILL)
    params = model.fit(table, 1000 * rng.normal(size=100)).coefs_
    np.testing.assert_allclose(params["w"]["value"], 2.0, rtol=1e-6)
    np.testing.assert_allclose(params["t"]["value"], 2.0, rtol=1e-6)


def test_init_may_leave_blocks_out():
    """A block that is not named starts as it would without `coef_init`."""
    rng = np.random.default_rng(14)
    table = random_table(rng, 100)
    y = 50 + 10 * rng.normal(size=100)
    formula = "g[a] * m[c] + w[b] * x + c0[1]"
    plain = WideSGDRegressor(formula, random_state=0, **STILL).fit(table, y).coefs_
    part = {"w": pd.Series(dict(zip("klmnp", [1.0, 2.0, 3.0, 4.0, 5.0])))}
    found = WideSGDRegressor(formula, random_state=0, coef_init=part, **STILL).fit(table, y).coefs_
    np.testing.assert_allclose(found["w"]["value"][list("klmnp")], [1.0, 2.0, 3.0, 4.0, 5.0], rtol=1e-6)
    for name in ("g", "m"):
        np.testing.assert_allclose(found[name]["value"], plain[name]["value"], rtol=1e-6)
    trained = WideSGDRegressor(formula, coef_init={}, random_state=0, max_iter=2).fit(table, y)
    same = WideSGDRegressor(formula, random_state=0, max_iter=2).fit(table, y)
    np.testing.assert_allclose(trained.predict(table), same.predict(table), rtol=1e-9)


def test_init_of_latent_vectors():
    """Vectors were once started at random whatever `coef_init` said."""
    rng = np.random.default_rng(15)
    table = random_table(rng, 100)
    tree = Dot(Block("u", ("a",), 2), Block("q", ("b",), 2))
    truth = draw_params(tree, table, rng)
    y = evaluate(tree, truth, table)
    model = WideSGDRegressor(text_of(tree), coef_init=truth, **STILL).fit(table, y)
    np.testing.assert_allclose(model.predict(table), y, rtol=0, atol=1e-6 * y.std())
    assert_same_params(model.coefs_, truth)


def test_init_refuses_blocks_that_are_not_there():
    """A misspelt block would start nowhere, silently."""
    table = random_table(np.random.default_rng(16), 50)
    for formula, init in (("w[a] + c0[1]", {"ww": 1.0}), (None, {"aa": 1.0}), ("w[a]", {"ww": pd.Series({"k": 1.0})})):
        with pytest.raises(ValueError, match=next(iter(init))):
            WideSGDRegressor(formula, coef_init=init).fit(table, table["z"])


@pytest.mark.parametrize("wrong", [np.nan, np.inf, "text"])
def test_init_refuses_what_is_no_number(wrong):
    """A start that is not finite would end as a model that is not."""
    table = random_table(np.random.default_rng(16), 50)
    for init in ({"w": wrong}, {"w": pd.Series({"k": wrong})}):
        with pytest.raises((ValueError, TypeError), match="w"):
            WideSGDRegressor("w[a] + c0[1]", coef_init=init).fit(table, table["z"])


def test_init_with_other_symbols_than_the_table():
    """Symbols that `coef_init` leaves out start neutral; numbers of symbols that the rows lack disturb no others."""
    rng = np.random.default_rng(17)
    table = random_table(rng, 100)
    start = pd.Series({"k": 3.0, "elsewhere": 1e6, "l": -2.0})
    model = WideSGDRegressor("w[a] + c0[1]", coef_init={"w": start}, **STILL).fit(table, rng.normal(size=100))
    found = model.coefs_["w"]["value"]
    found = found[["k", "l", "m", "n", "p"]]
    np.testing.assert_allclose(found - found["p"], [3.0, -2.0, 0.0, 0.0, 0.0], atol=1e-6)  # the mean is the intercept
    assert np.abs(model.predict(table)).max() < 100


# -- totals -----------------------------------------------------------------------------


def canonical_case(loss, seed):
    """Data that an optimizer has to work for: noisy, few rows for some symbols, weights and offsets."""
    rng = np.random.default_rng(seed)
    table = random_table(rng, 250)
    level = table["a"].map(dict(zip("klmnp", [-1.0, -0.5, 0.0, 0.5, 1.0]))).to_numpy() + table["x"].to_numpy()
    weight, offset = rng.choice([0.0, 0.5, 1.0, 5.0], 250), random_offset(loss, rng, 250)
    if loss == "squared_error":
        return table, 50 * (level + rng.normal(size=250)) + 300, weight, 20 * offset
    if loss == "poisson":
        return table, rng.poisson(np.exp(level - 1 + offset)).astype(float), weight, offset
    if loss == "logistic":
        return table, np.where(rng.random(250) < 1 / (1 + np.exp(-level - offset)), "yes", "no"), weight, offset
    return table, np.array(LEVELS)[np.argmax(rng.gumbel(size=(250, 3)) + offset, axis=1)], weight, offset


def totals(model, table, y, weight, offset):
    """Weighted sums of what was predicted and of what was seen, by class for classifiers."""
    if isinstance(model, WideSGDRegressor):
        return weight @ model.predict(table, offset=offset), weight @ y
    return weight @ model.predict_proba(table, offset=offset), weight @ (np.asarray(y)[:, None] == model.classes_)


def check_totals(model, loss, seed):
    table, y, weight, offset = canonical_case(loss, seed)
    for given_weight, given_offset in ((None, None), (weight, None), (None, offset), (weight, offset)):
        if given_offset is None or given_weight is not None or loss in CANONICAL:
            model.fit(table, y, sample_weight=given_weight, offset=given_offset)
            used = np.ones(len(table)) if given_weight is None else given_weight
            got, want = totals(model, table, y, used, given_offset)
            np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("optimizer", list(RATES))
@pytest.mark.parametrize("loss", CANONICAL)
def test_totals_add_up(loss, optimizer):
    """With a canonical link and an intercept the totals of training are met; steps that end anywhere miss them."""
    for formula in (None, "w[a] * x + v[c] + c0[1]"):
        model = model_of(loss, formula, optimizer=optimizer, max_iter=3, random_state=0)
        check_totals(model, loss, seed=18)


@pytest.mark.parametrize("loss", CANONICAL)
def test_totals_add_up_for_random_formulas(loss):
    """At the defaults too, for any formula with an intercept of its own."""
    table, y, weight, offset = canonical_case(loss, 19)
    for seed in range(12):
        tree = random_formula(np.random.default_rng(seed), intercept=True)
        assert has_lone_scalar(tree)
        model = model_of(loss, text_of(tree), max_iter=2, random_state=0)
        model.fit(table, y, weight, offset=offset)
        got, want = totals(model, table, y, weight, offset)
        np.testing.assert_allclose(got, want, rtol=1e-6, err_msg=str(tree))


@pytest.mark.parametrize(
    "options",
    [
        {"average": True},
        {"gradient": "mean"},
        {"batch_size": "full"},
        {"alpha": 0.1},
        {"alpha": 0.05, "l1_ratio": 1.0},
        {"standardize": False},
        {"schedule": "invscaling"},
    ],
)
@pytest.mark.parametrize("loss", CANONICAL)
def test_totals_add_up_with_other_options(loss, options):
    """Means of the path, penalties and raw units leave the intercept where it was, unless it is settled after them."""
    if loss == "squared_error" and "standardize" in options:
        options = {**options, "optimizer": "adagrad"}
    check_totals(model_of(loss, max_iter=2, random_state=0, **options), loss, seed=20)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", CANONICAL)
def test_totals_add_up_at_the_defaults(loss, seed):
    """No option given but the seed."""
    table, y, weight, offset = canonical_case(loss, 21)
    model = model_of(loss, random_state=seed).fit(table, y, weight, offset=offset)
    np.testing.assert_allclose(*totals(model, table, y, weight, offset), rtol=1e-6)


# -- offsets ----------------------------------------------------------------------------


@pytest.mark.parametrize("formula", [None, "w[a] + t[1] * x + c0[1]"])
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber"])
def test_a_large_constant_offset_changes_nothing(loss, formula):
    """y of about 1.5 over an offset of 1000: a start or a scale that leaves offsets out begins 1000 away."""
    rng = np.random.default_rng(22)
    table = random_table(rng, 300)
    y = 1.5 + table["a"].map(dict(zip("klmnp", [-1.0, -0.5, 0.0, 0.5, 1.0]))) + rng.normal(0.0, 0.1, 300)
    offset = np.full(300, 1000.0)
    plain = WideSGDRegressor(formula, loss=loss, random_state=0).fit(table, y)
    far = WideSGDRegressor(formula, loss=loss, random_state=0).fit(table, y, offset=offset)
    assert rmse(y, far.predict(table, offset=offset)) < 1.02 * rmse(y, plain.predict(table)) + 1e-6
    intercept = "(intercept)" if formula is None else "c0"
    shift = far.coefs_[intercept]["value"].iloc[0] - plain.coefs_[intercept]["value"].iloc[0]
    assert shift == pytest.approx(-1000, abs=1e-3)


@pytest.mark.parametrize("formula", [None, "w[a] + t[1] * x + c0[1]", "g[a] * m[b]", "(1 + w[a]) * (1 + v[b])",
                                     "dot(u[a], q[b], rank=2) + c0[1]"])  # fmt: skip
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("loss", ["squared_error", "huber", "quantile"])
def test_an_offset_is_the_same_as_taking_it_from_the_target(loss, standardize, formula):
    """For losses of y - score the two say the same; a scale of y that leaves the offset in says another thing."""
    rng = np.random.default_rng(23)
    table = random_table(rng, 200)
    residual = table["x"] + table["b"].map(dict(zip("klmnp", range(5)))) + rng.normal(0.0, 0.2, 200)
    offset, weight = 50 * rng.normal(size=200), rng.uniform(0.1, 2.0, 200)
    options = {"loss": loss, "standardize": standardize, "max_iter": 5, "random_state": 0}
    given = WideSGDRegressor(formula, **options).fit(table, residual + offset, weight, offset=offset)
    taken = WideSGDRegressor(formula, **options).fit(table, residual, weight)
    np.testing.assert_allclose(given.predict(table), taken.predict(table), rtol=0, atol=1e-7 * residual.std())


CLOSED_FORMS = {  # sums over a group: the maximum-likelihood factor for y and exp(offset)
    "poisson": lambda y, e, w: (w * y).sum() / (w * e).sum(),
    "gamma": lambda y, e, w: (w * y / e).sum() / w.sum(),
    "tweedie": lambda y, e, w: (w * y * e**-0.5).sum() / (w * e**0.5).sum(),  # power 1.5
}


@pytest.mark.parametrize("exposure", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("loss", LOG_LINK)
def test_exposures_of_any_size(loss, standardize, exposure):
    """Rates of groups are known in closed form; a start that leaves the exposure out is ten thousand times off."""
    rng = np.random.default_rng(24)
    table = random_table(rng, 300)[["a"]]
    exposures, weight = exposure * rng.uniform(0.5, 2.0, 300), rng.uniform(0.2, 3.0, 300)
    mean = table["a"].map(dict(zip("klmnp", [0.5, 1.0, 2.0, 4.0, 8.0]))).to_numpy()
    y = rng.poisson(mean).astype(float) if loss == "poisson" else mean * rng.gamma(4.0, 0.25, 300) + 1e-3
    model = WideSGDRegressor(
        loss=loss, standardize=standardize, batch_size="full", optimizer="adagrad", learning_rate=0.3, max_iter=1500
    ).fit(table, y, weight, offset=np.log(exposures))
    for category in "klmnp":
        rows = (table["a"] == category).to_numpy()
        want = CLOSED_FORMS[loss](y[rows], exposures[rows], weight[rows])
        got = model.predict(table[rows][:1], offset=[0.0])[0]
        assert got == pytest.approx(want, rel=1e-2)


@pytest.mark.parametrize("exposure", [1.0, 1e4])
def test_exposures_at_the_defaults(exposure):
    """Everything at its default: within 5 % of the best deviance of groups."""
    rng = np.random.default_rng(25)
    table = random_table(rng, 400)[["a", "c"]]
    exposures = exposure * rng.uniform(0.5, 2.0, 400)
    rate = table["a"].map(dict(zip("klmnp", [0.5, 1.0, 2.0, 4.0, 8.0]))).to_numpy() / exposure
    y = rng.poisson(rate * exposures).astype(float)
    model = WideSGDRegressor(loss="poisson", random_state=0).fit(table[["a"]], y, offset=np.log(exposures))
    best = np.empty(400)
    for category in "klmnp":
        rows = (table["a"] == category).to_numpy()
        best[rows] = exposures[rows] * y[rows].sum() / exposures[rows].sum()
    found = model.predict(table[["a"]], offset=np.log(exposures))
    assert deviance(y, found) < 1.05 * deviance(y, best)


def deviance(y, p):
    return float(2 * np.mean(np.where(y > 0, y * np.log(np.maximum(y, 1e-300) / p), 0.0) - (y - p)))


def test_gamma_is_free_of_the_unit_of_its_target():
    """y times e**3 with an offset of 3 is the same table to the gamma loss, step by step."""
    rng = np.random.default_rng(26)
    table, y = random_table(rng, 200), rng.gamma(2.0, 1.0, 200) + 0.05
    plain = WideSGDRegressor(loss="gamma", max_iter=3, random_state=0).fit(table, y)
    moved = WideSGDRegressor(loss="gamma", max_iter=3, random_state=0).fit(
        table, y * np.exp(3.0), offset=np.full(200, 3.0)
    )
    np.testing.assert_allclose(moved.predict(table), plain.predict(table), rtol=1e-7)


def test_offsets_of_the_multinomial_loss_are_by_class():
    """Labels that only the offsets explain: known ones leave nothing to learn, and they move the probabilities."""
    rng = np.random.default_rng(27)
    n = 400
    table, offset = random_table(rng, n), 2 * rng.normal(size=(n, 3))
    y = np.array(LEVELS)[np.argmax(offset + rng.gumbel(size=(n, 3)), axis=1)]
    options = {"batch_size": "full", "max_iter": 100, "random_state": 0}
    model = WideSGDClassifier("w[c] + c0[1]", **options).fit(table, y, offset=offset)
    np.testing.assert_allclose(model.decision_function(table, offset=offset), model.decision_function(table) + offset)
    odds = np.exp(model.decision_function(table, offset=offset))
    found = model.predict_proba(table, offset=offset)
    np.testing.assert_allclose(found, odds / odds.sum(axis=1, keepdims=True), rtol=1e-9)
    known = np.exp(offset) / np.exp(offset).sum(axis=1, keepdims=True)
    assert log_loss(y, found) < 1.02 * log_loss(y, known)
    blind = WideSGDClassifier("w[c] + c0[1]", **options).fit(table, y).predict_proba(table)
    assert log_loss(y, found) < 0.9 * log_loss(y, blind)
    ones = np.ones((n, 3))  # the same for all classes: nothing changes
    flat = WideSGDClassifier("w[c] + c0[1]", **options).fit(table, y, offset=offset + ones)
    np.testing.assert_allclose(flat.predict_proba(table, offset=offset), found, atol=1e-7)


def log_loss(y, p):
    return -np.mean(np.log(p[np.arange(len(y)), np.searchsorted(LEVELS, y)]))


@pytest.mark.parametrize("wrong", [np.zeros(60), np.zeros((60, 2)), np.zeros((60, 4)), np.zeros((60, 1))])
def test_other_shapes_of_multinomial_offsets_are_refused(wrong):
    """One number per row, added to every class, does nothing: it is an error that says what is needed."""
    rng = np.random.default_rng(28)
    table, y = random_table(rng, 60), rng.choice(LEVELS, 60)
    with pytest.raises(ValueError, match=r"(?s)offset.*\(60, 3\)|offset.*n_classes"):
        WideSGDClassifier(random_state=0).fit(table, y, offset=wrong)
    with pytest.raises(ValueError, match=r"(?s)offset.*\(60, 3\)|offset.*n_classes"):
        WideSGDClassifier(random_state=0).partial_fit(table, y, offset=wrong)
    model = WideSGDClassifier(random_state=0).fit(table, y)
    for method in (model.predict_proba, model.predict, model.decision_function):
        with pytest.raises(ValueError, match=r"(?s)offset.*\(60, 3\)|offset.*n_classes"):
            method(table, offset=wrong)


def test_offsets_by_class_are_refused_where_there_is_one_score():
    """(n, K) offsets are for the multinomial loss only."""
    rng = np.random.default_rng(29)
    table = random_table(rng, 60)
    with pytest.raises(ValueError, match="offset"):
        WideSGDRegressor().fit(table, table["z"], offset=np.zeros((60, 3)))
    with pytest.raises(ValueError, match="offset"):
        WideSGDClassifier().fit(table, rng.choice(["no", "yes"], 60), offset=np.zeros((60, 2)))


def test_offsets_of_two_classes():
    """The log odds of a first model are the offset of a second one, which then has nothing left to say."""
    rng = np.random.default_rng(30)
    table, known = random_table(rng, 1000), 1.5 * rng.normal(size=1000)
    y = np.where(rng.random(1000) < 1 / (1 + np.exp(-known)), "yes", "no")
    model = WideSGDClassifier("w[c] + c0[1]", batch_size="full", max_iter=100).fit(table, y, offset=known)
    np.testing.assert_allclose(model.decision_function(table, offset=known), model.decision_function(table) + known)
    assert np.abs(model.decision_function(table)).max() < 0.5
    assert model.predict_proba(table, offset=known)[:, 1].sum() == pytest.approx((y == "yes").sum(), rel=1e-6)


def test_missing_symbols_are_in_the_alphabet():
    """The tables of these tests hold missing symbols, so that their numbers are read by hand too."""
    assert None in CATEGORIES["c"]
    table = random_table(np.random.default_rng(31), 100)
    model = WideSGDRegressor("w[c] + s[b, c]", max_iter=2, random_state=0).fit(table, table["z"])
    assert None in [key_of((key,)) for key in model.coefs_["w"].index]
    assert any(key_of(key)[1] is None for key in model.coefs_["s"].index)


@pytest.mark.parametrize("kind", [WideRegressor, WideSGDRegressor])
@pytest.mark.parametrize("formula", [None, "w[g] + v[g]*x + c[1]"])
def test_a_slope_of_a_number_too_far_from_0_for_its_digits_is_told_of(kind, formula):
    """Predictions and the sum of `explain` differ by the rounding of the slope times the number."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"g": rng.choice(list("ab"), 200), "x": rng.normal(size=200)})
    y = 2.0 * table["x"] + (table["g"] == "a")
    options = {"numeric": "linear"} if formula is None else {}
    options |= {"loss": "squared_error"} if kind is WideRegressor else {"random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kind(formula, **options).fit(table.assign(x=table["x"] + 1e8), y)
    words = (
        r"The values of x are 1e\+13 with a standard deviation of .*, to about 1e-03 of what x adds; subtract a number"
    )
    with pytest.warns(UserWarning, match=words):
        kind(formula, **options).fit(table.assign(x=table["x"] + 1e13), y)
