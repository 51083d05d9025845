"""Options that are each right alone, together: weights, offsets, growth, early stopping, averages, batches, order."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit

from tabsym import WideSGDClassifier, WideSGDRegressor
from tabsym.losses import Huber
from tabsym.optimizers import SGD, Adagrad, Adam
from tests.oracles import online

pytestmark = pytest.mark.slow

OPTIMIZERS = {"adagrad": 0.1, "sgd": 0.02, "rmsprop": 0.01, "adam": 0.02}
GRADIENTS = ["gse", "mean"]
BATCHES = [1, 7, "full"]
LOSSES = ["squared_error", "poisson", "gamma", "huber", "absolute_error", "logistic", "multinomial", "hinge"]
OF_CLASSES = {"logistic": "log_loss", "multinomial": "log_loss", "hinge": "hinge"}  # of two classes, three and two
FORMULAS = [None, "w[a] * x + v[b] + c0[1]", "g[a] * m[b] + t[1] * x + c0[1]", "w[a] * (1 + x)"]


def estimator(loss, formula=None, **options):
    if loss in OF_CLASSES:
        return WideSGDClassifier(formula, loss=OF_CLASSES[loss], **options)
    return WideSGDRegressor(formula, loss=loss, **options)


def make(loss="squared_error", n=240, seed=0):
    """A table of two symbols and a number, and a target with some sense in it."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"a": rng.choice(list("klmnp"), n), "b": rng.choice(list("uvw"), n), "x": rng.gamma(3, 0.4, n)}
    )
    level = table["a"].map(dict(zip("klmnp", [-1.0, -0.5, 0.0, 0.5, 1.0]))).to_numpy() + 0.5 * table["x"].to_numpy()
    if loss == "poisson":
        return table, rng.poisson(np.exp(level)).astype(float)
    if loss == "gamma":
        return table, np.exp(level) * rng.gamma(3.0, 0.3, n) + 0.01
    if loss == "multinomial":
        return table, np.array(["high", "low", "mid"])[
            np.argmax(np.outer(level, [1, -1, 0]) + rng.gumbel(size=(n, 3)), 1)
        ]
    if loss in OF_CLASSES:
        return table, np.where(rng.random(n) < 1 / (1 + np.exp(-level)), "yes", "no")
    return table, 40 * level + 200 + 10 * rng.normal(size=n)


def scores(model, table):
    return model.decision_function(table) if isinstance(model, WideSGDClassifier) else model.predict(table)


def assert_same(one, two, table, tolerance=1e-7):
    """Two models give the same scores, relative to how far scores lie apart."""
    want = scores(two, table)
    np.testing.assert_allclose(scores(one, table), want, rtol=0, atol=tolerance * max(np.ptp(want), 1e-3))


def turns(*lists, every=1):
    """Some of all combinations, each value of each list in turn."""
    return list(itertools.product(*lists))[::every]


WAYS = turns(OPTIMIZERS, GRADIENTS, BATCHES, every=2)


def options_for(optimizer, gradient, batch_size, **others):
    return {"optimizer": optimizer, "learning_rate": OPTIMIZERS[optimizer], "gradient": gradient,
            "batch_size": batch_size, "max_iter": 4, "random_state": 0, **others}  # fmt: skip


# -- weights ----------------------------------------------------------------------------


@pytest.mark.parametrize(("optimizer", "gradient", "loss"), turns(OPTIMIZERS, GRADIENTS, LOSSES, every=3))
@pytest.mark.parametrize("average", [False, True])
def test_whole_weights_are_repeated_rows(optimizer, gradient, loss, average):
    """A mean, scale, start, count, penalty or intercept that leaves weights out differs from the repeated table."""
    table, y = make(loss)
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 4, len(table))
    repeat = np.repeat(np.arange(len(table)), weight)
    offset = rng.normal(0, 0.3, (len(table), 3) if loss == "multinomial" else len(table))
    formula = FORMULAS[LOSSES.index(loss) % len(FORMULAS)]
    if loss in ("poisson", "gamma") and formula == "w[a] * (1 + x)":
        formula = None
    options = options_for(optimizer, gradient, "full", average=average, alpha=0.011, l1_ratio=1 / 11)
    one = estimator(loss, formula, **options).fit(table, y, weight, offset=offset)
    two = estimator(loss, formula, **options).fit(
        table.iloc[repeat].reset_index(drop=True), y[repeat], offset=offset[repeat]
    )
    assert_same(one, two, table)


@pytest.mark.parametrize(("optimizer", "gradient"), turns(OPTIMIZERS, GRADIENTS))
@pytest.mark.parametrize("formula", ["dot(u[a], q[b], rank=2) + c0[1]", "dot(u[a], u[b], rank=3) + s[a, b]"])
def test_whole_weights_are_repeated_rows_for_vectors(optimizer, gradient, formula):
    """Latent vectors divide by the weight of their rows too, not by the number of rows."""
    table, y = make("logistic")
    weight = np.where(table["a"].isin(["k", "l"]), 1, 5) + np.random.default_rng(1).integers(0, 2, len(table))
    repeat = np.repeat(np.arange(len(table)), weight)
    options = options_for(optimizer, gradient, "full", alpha=0.1, standardize=False)
    one = WideSGDClassifier(formula, **options).fit(table, y, weight)
    two = WideSGDClassifier(formula, **options).fit(table.iloc[repeat].reset_index(drop=True), y[repeat])
    assert_same(one, two, table)


@pytest.mark.parametrize(("optimizer", "gradient", "batch_size"), turns(OPTIMIZERS, GRADIENTS, BATCHES))
@pytest.mark.parametrize("loss", ["squared_error", "poisson", "logistic"])
def test_only_relative_weights_matter_in_fit(optimizer, gradient, batch_size, loss):
    """A start smoothed by raw counts, or a sum that is taken for a mean, changes with the unit of the weights."""
    table, y = make(loss)
    weight = np.random.default_rng(2).uniform(0.2, 3.0, len(table))
    options = options_for(optimizer, gradient, batch_size, average=batch_size == 7, alpha=0.01)
    formula = FORMULAS[BATCHES.index(batch_size)]
    for scale in (1000.0, 1e-6):
        one = estimator(loss, formula, **options).fit(table, y, weight)
        two = estimator(loss, formula, **options).fit(table, y, scale * weight)
        assert_same(two, one, table, tolerance=1e-6)


@pytest.mark.parametrize("options", [{}, {"early_stopping": True}, {"early_stopping": True, "average": True},
                                     {"interactions": "pairwise"}, {"numeric": "quantile"}])  # fmt: skip
@pytest.mark.parametrize("loss", LOSSES)
def test_only_relative_weights_matter_at_the_defaults(loss, options):
    """Automatic rates, numbers of epochs, quantiles and held-out losses use shares of the weight, not amounts."""
    table, y = make(loss)
    weight = np.random.default_rng(3).uniform(0.2, 3.0, len(table))
    one = estimator(loss, random_state=0, **options).fit(table, y, weight)
    two = estimator(loss, random_state=0, **options).fit(table, y, 1000 * weight)
    assert one.n_iter_ == two.n_iter_
    assert_same(two, one, table, tolerance=1e-6)


@pytest.mark.parametrize(("optimizer", "gradient", "batch_size"), WAYS)
def test_equal_weights_are_no_weights(optimizer, gradient, batch_size):
    """Weights that are all 7 change nothing."""
    table, y = make()
    options = options_for(optimizer, gradient, batch_size)
    plain = WideSGDRegressor(**options).fit(table, y)
    assert_same(WideSGDRegressor(**options).fit(table, y, np.full(len(table), 7.0)), plain, table)


@pytest.mark.parametrize(("optimizer", "gradient", "batch_size"), WAYS)
@pytest.mark.parametrize("early_stopping", [False, True])
def test_rows_of_no_weight_are_absent(optimizer, gradient, batch_size, early_stopping):
    """Wild numbers, targets and offsets, and symbols of their own, in rows of weight 0: nothing may look at them."""
    table, y = make()
    rng = np.random.default_rng(4)
    gone = rng.random(len(table)) < 0.3
    wild = table.assign(a=table["a"].where(~gone, "wild"), x=table["x"].where(~gone, 1e6))
    offset, weight = rng.normal(size=len(table)), rng.uniform(0.5, 2.0, len(table))
    options = options_for(optimizer, gradient, batch_size, early_stopping=early_stopping)
    one = WideSGDRegressor(**options).fit(wild, np.where(gone, -1e9, y), np.where(gone, 0.0, weight),
                                       offset=np.where(gone, 1e8, offset))  # fmt: skip
    kept = ~gone
    two = WideSGDRegressor(**options).fit(
        table[kept].reset_index(drop=True), y[kept], weight[kept], offset=offset[kept]
    )
    assert_same(one, two, table[kept])
    assert "wild" not in one.coefs_["a"].index


WILD = {
    "x": lambda t, y, o, light: (t.assign(x=t["x"].where(~light, 300.0)), y, o),
    "y": lambda t, y, o, light: (t, np.where(light, y + 1e5, y), o),
    "offset": lambda t, y, o, light: (t, y, np.where(light, 1e5, o)),
}


@pytest.mark.parametrize(
    ("what", "loss"),
    [("x", "squared_error"), ("x", "huber"), ("x", "absolute_error"), ("x", "gamma"), ("x", "logistic"),
     ("y", "squared_error"), ("y", "huber"), ("y", "absolute_error"), ("offset", "huber"),
     ("offset", "absolute_error"), ("offset", "logistic")],
)  # fmt: skip
@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "adam"])
def test_rows_of_hardly_any_weight_change_nothing(what, loss, optimizer):
    """Scales and centres of numbers and of the target, spreads, starts: each has to be weighted."""
    table, y = make(loss)
    light = np.random.default_rng(5).random(len(table)) < 0.4
    offset = np.zeros(len(table))
    weight = np.where(light, 1e-15, 1.0)
    wild, target, moved = WILD[what](table, y, offset, light)
    options = options_for(optimizer, "gse", "full")
    with_them = estimator(loss, **options).fit(wild, target, weight, offset=moved)
    heavy = table[~light].reset_index(drop=True)
    without = estimator(loss, **options).fit(heavy, y[~light], offset=offset[~light])
    assert_same(with_them, without, heavy, tolerance=1e-4)


def test_quantile_intervals_are_weighted():
    """Far numbers of no weight to speak of would take half of the cuts."""
    table, y = make(n=400)
    far = np.arange(400) % 2 == 0
    table["x"] = table["x"] + 1000.0 * far
    options = options_for("sgd", "gse", "full", numeric="quantile")
    with_them = WideSGDRegressor(**options).fit(table, y, np.where(far, 1e-12, 1.0))
    near = table[~far].reset_index(drop=True)
    without = WideSGDRegressor(**options).fit(near, y[~far])
    assert abs(len(with_them.coefs_["x"]) - len(without.coefs_["x"])) <= 2
    assert np.corrcoef(with_them.predict(near), without.predict(near))[0, 1] > 0.99


# -- order ------------------------------------------------------------------------------


@pytest.mark.parametrize(("optimizer", "gradient", "loss"), turns(OPTIMIZERS, GRADIENTS, LOSSES, every=3))
@pytest.mark.parametrize("shuffle", [False, True])
def test_the_order_of_rows_does_not_matter_at_full_batch(optimizer, gradient, loss, shuffle):
    """Weights or offsets that stay behind when rows move, and starts that depend on which symbol comes first."""
    table, y = make(loss)
    rng = np.random.default_rng(6)
    weight = rng.uniform(0.0, 3.0, len(table))
    offset = rng.normal(0, 0.5, (len(table), 3) if loss == "multinomial" else len(table))
    order = rng.permutation(len(table))
    options = options_for(optimizer, gradient, "full", shuffle=shuffle, average=shuffle)
    formula = FORMULAS[LOSSES.index(loss) % 3]
    one = estimator(loss, formula, **options).fit(table, y, weight, offset=offset)
    moved = table.iloc[order].reset_index(drop=True)
    two = estimator(loss, formula, **options).fit(moved, y[order], weight[order], offset=offset[order])
    assert_same(two, one, table)


@pytest.mark.parametrize("batch_size", BATCHES)
@pytest.mark.parametrize("loss", ["squared_error", "logistic", "multinomial"])
def test_the_order_of_columns_does_not_matter(loss, batch_size):
    """Offsets of codes, or slopes of another column, would come with another order."""
    table, y = make(loss)
    table["z"] = np.random.default_rng(7).normal(100.0, 30.0, len(table))
    options = options_for("adagrad", "gse", batch_size, interactions="pairwise")
    one = estimator(loss, **options).fit(table, y)
    other = table[["z", "b", "x", "a"]]
    two = estimator(loss, **options).fit(other, y)
    np.testing.assert_allclose(scores(two, other), scores(one, table), rtol=1e-6, atol=1e-9)


def test_without_memory_the_two_estimators_are_one_at_batches_of_one_row():
    """SGD, one row at a time: a symbol's mean gradient is the row's gradient under both estimators."""
    table, y = make()
    options = options_for("sgd", "gse", 1)
    gse = WideSGDRegressor(**options).fit(table, y)
    assert_same(WideSGDRegressor(**{**options, "gradient": "mean"}).fit(table, y), gse, table)


@pytest.mark.parametrize(
    ("optimizer", "gradient", "batch_size"),
    turns(OPTIMIZERS, GRADIENTS, [1, 7, 64]),
)
@pytest.mark.parametrize("shuffle", [True, False])
def test_offsets_and_weights_stay_with_their_rows(optimizer, batch_size, shuffle, gradient):
    """Offsets a hundred times the signal and wild targets of no weight: one row out of step ruins the fit."""
    table, y = make(n=400)
    y = (y - y.mean()) / y.std()
    rng = np.random.default_rng(8)
    offset = 100 * rng.normal(size=400)
    light = np.arange(400) % 4 == 0
    target = y + offset + np.where(light, 1000 * rng.choice([-1, 1], 400), 0.0)
    weight = np.where(light, 1e-9, rng.uniform(0.5, 2.0, 400))
    options = options_for(optimizer, gradient, batch_size, shuffle=shuffle, average=batch_size == 7)
    model = WideSGDRegressor(**options).fit(table, target, weight, offset=offset)
    error = (model.predict(table, offset=offset) - offset - y)[~light]
    assert np.sqrt(np.mean(error**2)) < 1.3


def wide_table(n=140_000):
    """More than 4 MB of codes, a signal in the first column."""
    rng = np.random.default_rng(9)
    codes = rng.integers(0, 20, (n, 8))
    names = [f"s{j}" for j in range(20)]
    table = pd.DataFrame({f"c{j}": pd.Categorical.from_codes(codes[:, j], names) for j in range(8)})
    assert codes.size * 4 > 2**22
    return rng, table, (codes[:, 0] - 9.5) / 6


LARGE = [{"batch_size": 64}, {"batch_size": 1}, {"batch_size": 64, "early_stopping": True},
         {"batch_size": 256, "average": True}]  # fmt: skip


@pytest.mark.parametrize("options", LARGE, ids=str)
def test_large_tables_keep_rows_offsets_and_weights_together(options):
    """Large tables may be stored in another order: the target, the offset and the weight have to come along."""
    rng, table, signal = wide_table()
    n = len(table)
    offset, light = 100 * rng.normal(size=n), rng.random(n) < 0.25
    y = signal + offset + 0.1 * rng.normal(size=n) + np.where(light, 1000 * rng.choice([-1, 1], n), 0.0)
    weight = np.where(light, 1e-9, rng.uniform(0.5, 2.0, n))
    model = WideSGDRegressor(optimizer="adagrad", max_iter=2, random_state=0, **options)
    model.fit(table, y, weight, offset=offset)
    head = table[:20_000]
    error = model.predict(head, offset=offset[:20_000]) - offset[:20_000] - signal[:20_000]
    assert np.sqrt(np.mean(error[~light[:20_000]] ** 2)) < 0.2
    if "early_stopping" in options:
        assert model.validation_curve_[-1] < model.validation_curve_[0] * 1.5
    else:
        assert weight @ model.predict(table, offset=offset) == pytest.approx(weight @ y, abs=1e-6 * (weight @ abs(y)))


def test_large_tables_of_classes_keep_offsets_by_class():
    """(n, K) offsets move with their rows too."""
    rng, table, _ = wide_table()
    n = len(table)
    offset = 3 * rng.normal(size=(n, 3))
    y = np.array(["high", "low", "mid"])[np.argmax(offset + rng.gumbel(size=(n, 3)), axis=1)]
    model = WideSGDClassifier("w[c0] + c[1]", batch_size=64, max_iter=1, random_state=0)
    model.fit(table, y, offset=offset)
    assert np.abs(model.decision_function(table[:1000])).max() < 1.0
    found = model.predict_proba(table, offset=offset).sum(axis=0)
    np.testing.assert_allclose(found, (y[:, None] == model.classes_).sum(axis=0), rtol=1e-6)


# -- averages ---------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", list(OPTIMIZERS))
@pytest.mark.parametrize("gradient", GRADIENTS)
def test_the_average_is_the_mean_of_the_path(optimizer, gradient):
    """At full batch the path is the sequence of models of 1, 2, ... epochs; weights and offsets are on it too."""
    table, y = make()
    rng = np.random.default_rng(10)
    weight, offset = rng.uniform(0.2, 3.0, len(table)), 20 * rng.normal(size=len(table))
    options = options_for(optimizer, gradient, "full")
    path = []
    for n_epochs in range(1, 6):
        model = WideSGDRegressor(**{**options, "max_iter": n_epochs}).fit(table, y, weight, offset=offset)
        path.append({name: model.coefs_[name]["value"] for name in ("a", "b", "x")})
    model = WideSGDRegressor(**{**options, "max_iter": 5}, average=True).fit(table, y, weight, offset=offset)
    for name in ("a", "b", "x"):
        mean = sum(step[name] for step in path) / len(path)
        np.testing.assert_allclose(model.coefs_[name]["value"][mean.index], mean, rtol=1e-7, atol=1e-8)


# -- early stopping ---------------------------------------------------------------------


def test_held_out_loss_is_weighted():
    """Half of the rows have no weight to speak of and a loss 2,500 times as large: the curve must not show them."""
    n = 800
    table = pd.DataFrame({"a": ["k"] * n})
    light = np.arange(n) % 2 == 0
    sign = np.where(np.arange(n) // 2 % 2 == 0, 1.0, -1.0)
    y = sign * np.where(light, 50.0, 1.0)
    offset = 10 * np.random.default_rng(11).normal(size=n)
    model = WideSGDRegressor("c0[1] + w[a]", standardize=False, early_stopping=True, validation_fraction=0.3,
                          learning_rate=1e-12, max_iter=1, random_state=0)  # fmt: skip
    model.fit(table, y + offset, np.where(light, 1e-9, 1.0), offset=offset)
    assert model.validation_curve_[0] == pytest.approx(0.5, rel=0.1)  # 1**2 / 2 of each heavy row
    model.fit(table, y + offset, np.where(light, 1.0, 1e-9), offset=offset)
    assert model.validation_curve_[0] == pytest.approx(1250, rel=0.1)


def test_held_out_log_loss_is_weighted():
    """Three in four rows say yes among those that count; the others, all no, would double the loss."""
    n = 800
    table = pd.DataFrame({"a": ["k"] * n})
    light = np.arange(n) % 2 == 0
    y = np.where(light | (np.arange(n) % 8 == 1), "no", "yes")
    model = WideSGDClassifier("c0[1] + w[a]", early_stopping=True, validation_fraction=0.3, learning_rate=1e-12,
                           max_iter=1, random_state=0).fit(table, y, np.where(light, 1e-9, 1.0))  # fmt: skip
    assert model.validation_curve_[0] == pytest.approx(-0.75 * np.log(0.75) - 0.25 * np.log(0.25), rel=0.25)


def slow_and_noisy():
    """Rows that are learned slowly by a slope, and pairs of rows of opposite noise that only overfit."""
    rng = np.random.default_rng(12)
    n = 300
    x = np.concatenate([rng.normal(size=n), np.zeros(n)])
    categories = ["slow"] * n + [f"p{j}" for j in range(n // 2) for _ in range(2)]
    y = np.concatenate([3 * x[:n], np.tile([30.0, -30.0], n // 2)])
    return pd.DataFrame({"s": categories, "x": x}), y, np.array(["p" in category for category in categories])


@pytest.mark.parametrize("gradient", GRADIENTS)
def test_the_best_epoch_is_that_of_the_weighted_loss(gradient):
    """Rows of hardly any weight overfit at once; only an unweighted held-out loss would stop for them."""
    table, y, noisy = slow_and_noisy()
    if gradient == "mean":
        y = np.where(noisy, 20 * y, y)
    options = {"optimizer": SGD(), "learning_rate": 0.1, "batch_size": "full", "max_iter": 25, "random_state": 0,
               "early_stopping": True, "validation_fraction": 0.3, "standardize": False}  # fmt: skip
    model = WideSGDRegressor("w[s] + t[1] * x + c0[1]", gradient=gradient, **options)
    model.fit(table, y, np.where(noisy, 1e-7, 1.0))
    assert model.n_iter_ == 25
    assert np.argmin(model.validation_curve_) == 24
    assert model.coefs_["t"]["value"].iloc[0] == pytest.approx(3 * (1 - 0.9**25), rel=0.1)
    assert model.fit(table, y, np.where(noisy, 1.0, 1e-7)).n_iter_ < 12  # and for them it does stop


RULES = {"sgd": SGD(momentum=0.8), "adagrad": Adagrad(0.1), "adam": Adam()}
STATES = {"sgd": {"momentum": 0.8}, "adagrad": {"start": 0.1}, "adam": {"eps": 1e-8}}


@pytest.mark.parametrize(("optimizer", "gradient", "batch_size"), turns(RULES, GRADIENTS, [7, "full"]))
@pytest.mark.parametrize(("loss", "tol", "patience"), [("squared_error", None, 3), ("logistic", 0.1, 2)])
def test_early_stopping_is_that_of_a_loop_of_epochs(optimizer, gradient, batch_size, loss, tol, patience):
    """One epoch after another by the slow oracle, the held-out loss by its definition, and the best epoch kept."""
    rng, n, rate = np.random.default_rng(14), 150, {"sgd": 0.1, "adagrad": 0.3, "adam": 0.1}[optimizer]
    code, offset = rng.integers(0, 25, n), 0.5 * rng.normal(size=n)
    score = 1.5 * rng.normal(size=25)[code] + offset
    y = score + rng.normal(size=n) if loss == "squared_error" else (rng.random(n) < expit(score)).astype(float)
    table = pd.DataFrame({"a": code.astype(str)})
    model = estimator(
        loss, "w[a] + c[1]", optimizer=RULES[optimizer], gradient=gradient, batch_size=batch_size, tol=tol,
        learning_rate=rate, early_stopping=True, validation_fraction=0.3, n_iter_no_change=patience, max_iter=60,
        shuffle=False, standardize=False, random_state=0,
    ).fit(table, y, offset=offset)  # fmt: skip

    held = np.isin(np.arange(n), np.random.RandomState(0).permutation(n)[:45])
    rule = online.Rule(optimizer, rate, **STATES[optimizer])
    terms = [(1.0, None, [("code", 0, 0)]), (1.0, None, [("fixed", 25)])]

    def mean_loss(theta, rows):
        scores = theta[code, 0] + theta[25, 0] + offset
        return np.mean([online.loss_value([scores[i]], y[i], loss) for i in np.flatnonzero(rows)])

    def at_constant(constant):
        return np.append(np.zeros(25), constant)[:, None]

    everything = np.ones(n, dtype=bool)
    theta = at_constant(minimize_scalar(lambda c: mean_loss(at_constant(c), everything), bracket=(-3, 3), tol=1e-12).x)
    start = mean_loss(theta, held)
    curve, thetas, bests = [], [theta], [start]
    while len(curve) < 60:
        theta = online.train(
            code[~held, None], None, y[~held], terms, theta, loss=loss, rule=rule, gradient=gradient,
            batch=105 if batch_size == "full" else batch_size, offset=offset[~held],
        )  # fmt: skip
        thetas.append(theta)
        curve.append(mean_loss(theta, held))
        bests.append(min(bests[-1], curve[-1]))
        if len(bests) > patience and bests[-1 - patience] - bests[-1] <= (tol or 0.0) * (start - bests[-1]):
            break
    np.testing.assert_allclose(model.validation_curve_, curve, rtol=1e-6)
    kept = int(np.argmin([start, *curve]))
    assert kept > 0
    best = thetas[kept]
    np.testing.assert_allclose(scores(model, table), best[code, 0] + best[25, 0], atol=1e-6)


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "logistic", "multinomial"])
def test_held_out_rows_bring_their_offsets(loss):
    """Rows whose targets only the offset explains: without it the held-out loss is far above the noise."""
    rng = np.random.default_rng(13)
    n = 600
    table = pd.DataFrame({"a": rng.choice(list("klm"), n)})
    offset = 3 * rng.normal(size=(n, 3) if loss == "multinomial" else n)
    if loss == "squared_error":
        y = 30 * offset + rng.normal(size=n)
        offset = 30 * offset
    elif loss == "poisson":
        y = rng.poisson(np.exp(offset)).astype(float)
    elif loss == "logistic":
        y = np.where(rng.random(n) < 1 / (1 + np.exp(-offset)), "yes", "no")
    else:
        y = np.array(["high", "low", "mid"])[np.argmax(offset + rng.gumbel(size=(n, 3)), axis=1)]
    model = estimator(loss, "w[a] + c0[1]", early_stopping=True, validation_fraction=0.3, max_iter=5,
                            learning_rate=0.01, batch_size=16, standardize=False, random_state=0)  # fmt: skip
    model.fit(table, y, offset=offset)
    assert min(model.validation_curve_) < {"squared_error": 1.0, "logistic": 0.5, "multinomial": 0.7}.get(loss, np.inf)
    assert np.abs(model.decision_function(table) if loss in ("logistic", "multinomial") else 0).max() < 1.0


# -- partial_fit ------------------------------------------------------------------------


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("loss", ["squared_error", "poisson", "logistic", "multinomial"])
@pytest.mark.parametrize(("optimizer", "gradient", "batch_size"), turns(OPTIMIZERS, GRADIENTS, [1, 5]))
def test_pieces_are_one_epoch_of_their_rows(optimizer, gradient, batch_size, loss, average):
    """The means of terms are moved to the intercept after each piece: averages of updates before and after add up."""
    table, y = make(loss)
    whole = options_for(optimizer, gradient, batch_size, average=average, max_iter=1, shuffle=False)
    whole |= {"standardize": False, "coef_init": 0.0}
    y = (y - y.mean()) / y.std() if loss == "squared_error" else y
    pieces = estimator(loss, **whole)
    for first in range(0, len(table), 60):
        rows = slice(first, first + 60)
        pieces.partial_fit(table[rows], y[rows])
    assert_same(pieces, estimator(loss, **whole).fit(table, y), table)


STEPS = turns(GRADIENTS, BATCHES)
STREAM = {"optimizer": SGD(), "learning_rate": 0.01, "standardize": False, "random_state": 0}


def moves(weights, first=None, **options):
    """How far the block of a second call's symbol moves, by the weight of that call."""
    table, y = make("logistic")
    found = {}
    for weight in weights:
        model = WideSGDClassifier("w[a] + c0[1]", **{**STREAM, **options})
        model.partial_fit(table, y, sample_weight=None if first is None else np.full(len(table), first))
        before = model.coefs_["w"]["value"].copy()
        rows = table["a"] == "k"
        model.partial_fit(table[rows], np.repeat("yes", rows.sum()), sample_weight=np.full(rows.sum(), weight))
        found[weight] = (model.coefs_["w"]["value"] - before)["k"]
    return found


@pytest.mark.parametrize(("gradient", "batch_size"), STEPS)
def test_weights_of_later_calls_are_relative_to_the_first(gradient, batch_size):
    """Weights divided by their own call's mean cancel: a call of weight .01 moved as far as one of weight 100."""
    found = moves([0.01, 1.0, 10.0], gradient=gradient, batch_size=batch_size)
    assert 0 < found[0.01] < 0.05 * found[1.0]
    assert found[10.0] > 2 * found[1.0]
    plain = moves([1.0], first=1.0, gradient=gradient, batch_size=batch_size)
    assert plain[1.0] == pytest.approx(found[1.0], rel=1e-9)


@pytest.mark.parametrize(("gradient", "batch_size"), STEPS)
def test_the_unit_of_the_weights_of_all_calls_does_not_matter(gradient, batch_size):
    """First call 1 and second 2, or first 1000 and second 2000."""
    one = moves([2.0], first=1.0, gradient=gradient, batch_size=batch_size)[2.0]
    two = moves([2000.0], first=1000.0, gradient=gradient, batch_size=batch_size)[2000.0]
    assert two == pytest.approx(one, rel=1e-7)


@pytest.mark.parametrize(("optimizer", "batch_size"), turns(OPTIMIZERS, BATCHES))
@pytest.mark.parametrize("average", [False, True])
def test_growth_leaves_other_symbols_alone(optimizer, batch_size, average):
    """Under gse a call with new symbols only, weighted and with offsets, moves none of the old ones."""
    table, y = make()
    model = WideSGDRegressor("w[a] + c0[1]", **options_for(optimizer, "gse", batch_size, average=average))
    old = table["a"] != "p"
    rng = np.random.default_rng(14)
    model.partial_fit(table[old], y[old], sample_weight=rng.uniform(0.5, 2.0, old.sum()))
    before = model.coefs_["w"]
    model.partial_fit(table[~old], y[~old] + 50, sample_weight=rng.uniform(0.5, 2.0, (~old).sum()),
                      offset=rng.normal(size=(~old).sum()))  # fmt: skip
    after = model.coefs_["w"]
    known, was = after["value"][before.index], before["value"]
    np.testing.assert_allclose(known - known.iloc[0], was - was.iloc[0], rtol=1e-9, atol=1e-9)  # the mean is another
    assert after.loc["p", "value"] != 0
    assert after.loc["p", "rows"] == (~old).sum()


@pytest.mark.parametrize("gradient", GRADIENTS)
def test_steps_of_a_new_symbol(gradient):
    """Adam's corrections count the symbol's own updates under gse, all updates under mean: also for a grown symbol."""
    calls, rate = 30, 0.01
    model = WideSGDRegressor("w[a]", optimizer=Adam(), learning_rate=rate, gradient=gradient, batch_size="full",
                          standardize=False, random_state=0)  # fmt: skip
    for _ in range(calls):
        model.partial_fit(pd.DataFrame({"a": ["k", "l"]}), [3.0, -2.0])
    model.partial_fit(pd.DataFrame({"a": ["new", "new"]}), [5.0, 5.0])
    t = 1 if gradient == "gse" else calls + 1
    want = rate * (0.1 / (1 - 0.9**t)) / np.sqrt(0.001 / (1 - 0.999**t))
    assert model.coefs_["w"].loc["new", "value"] == pytest.approx(want, rel=1e-5)


def test_offsets_of_streams_of_calls():
    """A first call's scale and centre that leave the offset out make steps of the size of the offset."""
    table, y = make()
    y = (y - y.mean()) / y.std() + 1.5
    model = WideSGDRegressor(random_state=0)
    for start in range(0, 240, 40):
        part = slice(start, start + 40)
        model.partial_fit(table[part], y[part] + 1000, offset=np.full(40, 1000.0))
    error = model.predict(table, offset=np.full(240, 1000.0)) - 1000 - y
    assert np.sqrt(np.mean(error**2)) < 0.8


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("optimizer", list(OPTIMIZERS))
def test_growth_with_weights_equals_growth_without_where_they_are_equal(optimizer, average):
    """Weights of 3 in every call change nothing, for old symbols and new ones."""
    table, y = make()
    old = table["a"] != "p"
    models = []
    for weight in (None, 3.0):
        model = WideSGDRegressor("w[a] * x + c0[1]", **options_for(optimizer, "gse", 7, average=average))
        for rows in (old, ~old, old | ~old):
            given = None if weight is None else np.full(rows.sum(), weight)
            model.partial_fit(table[rows], y[rows], sample_weight=given)
        models.append(model)
    assert_same(*models, table)


# -- huber ------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e5])
def test_delta_is_in_units_of_the_spread(scale):
    """A tiny `delta` makes medians, a huge one means, whatever the unit: in raw units one of the two is lost."""
    rng = np.random.default_rng(15)
    table = pd.DataFrame({"a": np.repeat(["k", "l"], 300)})
    y = np.where(table["a"] == "k", 3.0, 5.0) + rng.normal(size=600)
    y = scale * np.where(rng.random(600) < 0.2, y + 20, y)
    groups = pd.Series(y).groupby(table["a"])
    for delta, best, near in ((0.02, groups.median(), 0.2), (1e4, groups.mean(), 0.05)):
        rate = 0.02 / delta if delta < 1 else 0.05
        model = WideSGDRegressor("w[a] + c0[1]", loss=Huber(delta), optimizer="sgd", learning_rate=rate,
                              batch_size="full", max_iter=1500).fit(table, y)  # fmt: skip
        for category in "kl":
            found = model.predict(pd.DataFrame({"a": [category]}))[0]
            assert found == pytest.approx(best[category], abs=near * scale)


UNITS = [
    {},
    {"batch_size": "full", "early_stopping": True, "average": True},
    {"batch_size": 32, "gradient": "mean", "alpha": 0.011, "l1_ratio": 1 / 11},
    {"max_iter": 3, "interactions": "pairwise", "coef_init": {"x": 0.5}},
]


@pytest.mark.parametrize(
    ("loss", "optimizer", "options"),
    turns(
        ["huber", "squared_error", "absolute_error", "quantile", "poisson", "gamma", "tweedie"],
        OPTIMIZERS, UNITS, every=3,
    ),
    ids=str,
)  # fmt: skip
def test_the_unit_of_the_target_does_not_matter(loss, optimizer, options):
    """`delta`, starts, tolerances, penalties and steps follow the target: prices in cents are those in thousands."""
    log_link = loss in ("poisson", "gamma", "tweedie")
    table, y = make("gamma" if log_link else "squared_error")
    rng = np.random.default_rng(16)
    weight, offset = rng.uniform(0.2, 3.0, len(table)), rng.normal(0, 0.5, len(table))
    fits = {}
    for unit in (1.0, 1e-6, 1e5):
        moved = 1.0 if log_link else unit  # a logarithm, and what is added to it, have no unit
        own = options | ({"coef_init": {"x": 0.5 * moved}} if "coef_init" in options else {})
        model = WideSGDRegressor(loss=loss, optimizer=optimizer, random_state=0, **own)
        model.fit(table, unit * y, weight, offset=moved * offset)
        fits[unit] = model.n_iter_, model.predict(table, offset=moved * offset) / unit
    for n_epochs, values in fits.values():
        assert n_epochs == fits[1.0][0]
        np.testing.assert_allclose(values, fits[1.0][1], rtol=1e-6)
    assert np.corrcoef(fits[1.0][1], y)[0, 1] > 0.3  # and something is learned


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson", "gamma", "tweedie"])
def test_the_unit_of_the_target_does_not_matter_to_streams(loss, optimizer):
    log_link = loss in ("poisson", "gamma", "tweedie")
    table, y = make("gamma" if log_link else "squared_error")
    fits = {}
    for unit in (1.0, 1e-6, 1e5):
        model = WideSGDRegressor(loss=loss, optimizer=optimizer, random_state=0)
        for start in range(0, 240, 80):
            rows = slice(start, start + 80)
            model.partial_fit(table[rows], unit * y[rows], offset=np.full(80, 0.1 if log_link else 0.1 * unit))
        fits[unit] = model.predict(table) / unit
    for values in fits.values():
        np.testing.assert_allclose(values, fits[1.0], rtol=1e-6)


def test_rates_of_a_hundred_thousandth_are_learned():
    """Gradients of the size of such a target said nothing beside Adagrad's first accumulator."""
    rng = np.random.default_rng(17)
    codes = rng.integers(0, 8, 20_000)
    truth = np.exp(rng.normal(0, 1, 8))[codes]
    y = 1e-5 * rng.gamma(2, truth / 2)
    table = pd.DataFrame({"a": codes}).astype(str)
    for loss in ("poisson", "tweedie", "gamma"):
        means = pd.Series(y).groupby(codes).transform("mean").to_numpy()  # each category's optimum
        found = WideSGDRegressor(loss=loss, random_state=0).fit(table, y).predict(table)
        assert np.abs(np.log(found / means)).max() < 0.05


def test_huber_on_prices_is_as_good_as_on_small_numbers():
    """At the default `delta` on targets of about 250,000."""
    table, y = make()
    prices = 250_000 + 1000 * (y - y.mean())
    model = WideSGDRegressor(loss="huber", random_state=0).fit(table, prices)
    squared = WideSGDRegressor(loss="squared_error", random_state=0).fit(table, prices)
    assert model.score(table, prices) > squared.score(table, prices) - 0.02
