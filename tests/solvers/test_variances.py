"""Solved models, with alpha="auto" and with numbers, against dense algebra, brute force and known answers."""

import warnings
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.dataset
import pytest
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn.metrics import mean_tweedie_deviance

from tabsym import WideClassifier, WideRegressor, WideSGDClassifier, WideSGDRegressor
from tabsym.losses import Huber, Tweedie
from tabsym.losses.loss import LOSSES as BY_NAME
from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.information import inverse
from tabsym.solvers.newton.joint import MAX_STEPS, finish
from tabsym.solvers.newton.kernels_coefs import evaluate_ridge
from tabsym.solvers.newton.kernels_walk import evaluate_walk
from tabsym.solvers.newton.posteriors_classes import walk_of_classes
from tabsym.solvers.newton.terms import Prior, SolverTerm, unordered_ratio
from tabsym.solvers.newton.variances import Aitken, prior_of_variances, with_prior
from tests.options import ADDITIVE, GLM
from tests.oracles import online as naive
from tests.oracles import variances as naive_evidence
from tests.oracles.variances import INTERCEPT, Problem
from tests.solver import by_softmax, inner, working

EXACT = {"tol": 3e-9, "max_iter": 10_000}
LOSSES = ["squared_error", "huber", "poisson", "gamma", "tweedie", "logistic", "multinomial"]
LOG_LINK = ("poisson", "gamma", "tweedie")
PARAMETER = {"huber": 0.8, "tweedie": 1.4}
OBJECTS = {"huber": Huber(0.8), "tweedie": Tweedie(1.4)}
CROSSED = {1: None, 2: "pairwise"}
LEVELS = ["high", "low", "mid"]


def estimator(loss, *, standardize=False, **options):
    """The estimator of a loss, in the user's units, solved exactly."""
    options = ADDITIVE | EXACT | options
    is_of_classes = loss in ("logistic", "multinomial")
    model = WideClassifier(**options) if is_of_classes else WideRegressor(loss=OBJECTS.get(loss, loss), **options)
    return inner(model, standardize=standardize)


def draw_target(loss, score, rng):
    """A target that follows a score of size one."""
    n = len(score)
    if loss in ("squared_error", "huber"):
        return score + rng.normal(0.0, 0.7, n)
    if loss == "poisson":
        return rng.poisson(np.exp(score)).astype(float)
    if loss == "gamma":
        return rng.gamma(2.0, 0.5 * np.exp(score)) + 1e-6
    if loss == "tweedie":
        return np.where(rng.random(n) < 0.2, 0.0, rng.gamma(2.0, 0.6 * np.exp(score)))
    if loss == "logistic":
        return (rng.random(n) < expit(score)).astype(float)
    return np.argmax(np.column_stack([score, -score, 0 * score]) + rng.gumbel(size=(n, 3)), axis=1).astype(float)


def rich_table(loss, seed=0, n=400):
    """Symbols with missing ones, numbers with missing ones, a target with a cross in it, weights, offsets."""
    rng = np.random.default_rng(seed)
    a, c = rng.choice(6, n, p=np.array([8, 5, 3, 2, 1, 1]) / 20), rng.choice(4, n)
    x, z = rng.normal(1.0, 2.0, n), rng.normal(size=n)
    cross = rng.normal(0.0, 0.6, (6, 4))
    score = np.array([0.8, -0.8, 0.3, -0.3, 0.5, -1.0])[a] + np.array([0.5, -0.5, 0.9, 0.0])[c] + cross[a, c]
    score += 0.2 * x - 0.3 * z
    y = draw_target(loss, score, rng)
    names_of_a = np.array(["u", "v", "w", None, "s", "t"], dtype=object)
    table = pd.DataFrame({"a": names_of_a[a], "c": np.array(list("pqrk"))[c], "x": x, "z": z})
    table.loc[rng.random(n) < 0.1, "x"] = np.nan
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], n, p=[0.1, 0.3, 0.4, 0.2])
    offset = rng.normal(0.0, 0.5, (n, 3) if loss == "multinomial" else n)
    return table, y, weight, offset


def labels_of(loss, y):
    """The target as the estimator gets it."""
    if loss == "multinomial":
        return np.array(LEVELS)[y.astype(int)]
    return np.where(y > 0, "yes", "no") if loss == "logistic" else y


def key_of(key):
    return tuple(naive_evidence.plain(part) for part in key) if isinstance(key, tuple) else naive_evidence.plain(key)


def lookup(frame, column):
    """Key -> number, of one column of a block of `coefs_`."""
    return {key_of(key): value for key, value in zip(frame.index, frame[column], strict=True)}


def read(model, design, prefix=""):
    """What `coefs_` say, as theta (p, K) of a design; with "sd" the standard deviations, of blocks of symbols only."""
    names = LEVELS if len(getattr(model, "classes_", ())) > 2 else ["value"]
    theta = np.full((design.matrix.shape[1], len(names)), np.nan)
    for block, places in design.places.items():
        if prefix and block in design.flat:
            continue
        for k, name in enumerate(names):
            column = prefix if prefix and len(names) == 1 else f"{prefix} {name}".strip()
            frame = model.coefs_[block]
            if block in design.flat:
                theta[places, k] = frame[column].iloc[0]
                continue
            numbers = lookup(frame, column)
            assert set(numbers) == set(design.keys[block])
            theta[places, k] = [numbers[key] for key in design.keys[block]]
    return theta


def centred(theta, design, loss):
    """Theta with what is free taken out: scores of classes may all move together, by numbers without a penalty."""
    if loss != "multinomial":
        return theta
    theta = theta.copy()
    theta[design.flat_places] -= theta[design.flat_places].mean(axis=1, keepdims=True)
    return theta


def assert_is_optimum(problem, design, theta):
    """Objective to 1e-8 and parameters to 2e-6 of the dense optimum."""
    best = problem.best()
    assert problem.objective(theta) == pytest.approx(problem.objective(best), rel=1e-8)
    got, want = centred(theta, design, problem.loss), centred(best, design, problem.loss)
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-6 * max(1.0, np.abs(want).max()))


def problem_of(design, y, loss, share, precision, offset=None):
    n_outputs = 3 if loss == "multinomial" else 1
    penalty = naive_evidence.ridge(design, precision)
    return Problem(design.matrix, y, loss, share, penalty, offset, PARAMETER.get(loss, 0.0), n_outputs)


def problem_of_evidence(design, y, loss, model, weight=None, offset=None):
    """What the fitted variances and dispersion say is minimised."""
    weight = np.ones(len(y)) if weight is None else weight / weight.mean()
    precision = {name: 1 / max(model.variances_.loc[name, "variance"], 1e-12) for name in design.blocks}
    return problem_of(design, y, loss, weight / working(model), precision, offset)


# -- the oracle against itself ------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_oracle_losses_are_those_of_the_definitions(loss):
    rng = np.random.default_rng(0)
    scores, k = rng.normal(size=(20, 3 if loss == "multinomial" else 1)), PARAMETER.get(loss, 0.0)
    y = rng.integers(0, 2, 20) + (0.0 if loss in ("logistic", "multinomial") else 0.25)
    value, slope, hess = naive_evidence.losses(loss, scores, y, k)
    np.testing.assert_allclose(value, [naive.loss_value(s, t, loss, k) for s, t in zip(scores, y)], rtol=1e-12)
    np.testing.assert_allclose(slope, [naive.slope(s, t, loss, k) for s, t in zip(scores, y)], atol=1e-8)
    for j in range(scores.shape[1]):
        step = 1e-6 * np.eye(scores.shape[1])[j]
        _, above, _ = naive_evidence.losses(loss, scores + step, y, k)
        _, below, _ = naive_evidence.losses(loss, scores - step, y, k)
        np.testing.assert_allclose(hess[:, :, j], (above - below) / 2e-6, atol=1e-8)


def test_oracle_optimum_of_the_squared_loss_is_ridge_regression():
    table, y, _, _ = rich_table("squared_error")
    design = naive_evidence.build(table, ["a", "c"], ["x", "z"], crosses=2)
    problem = problem_of(design, y, "squared_error", np.full(len(y), 1 / len(y)), dict.fromkeys(design.blocks, 0.3))
    want = np.linalg.solve(design.matrix.T @ design.matrix / len(y) + problem.penalty, design.matrix.T @ y / len(y))
    np.testing.assert_allclose(problem.best()[:, 0], want, atol=1e-10)


# -- known answers ------------------------------------------------------------------------

DYESTUFF = {
    "A": [1545, 1440, 1440, 1520, 1580],
    "B": [1540, 1555, 1490, 1560, 1495],
    "C": [1595, 1550, 1605, 1510, 1560],
    "D": [1445, 1440, 1595, 1465, 1545],
    "E": [1595, 1630, 1515, 1635, 1625],
    "F": [1520, 1455, 1450, 1480, 1445],
}


def dyestuff():
    X = pd.DataFrame({"batch": np.repeat(list(DYESTUFF), 5)})
    return X, np.concatenate([np.array(values, dtype=float) for values in DYESTUFF.values()])


def anova(yields):
    """REML of a balanced one-way spec by sums of squares: variance between, variance within, predictions."""
    groups, size = yields.shape
    means, grand = yields.mean(axis=1), yields.mean()
    within = ((yields - means[:, None]) ** 2).sum() / (groups * (size - 1))
    between = (size * ((means - grand) ** 2).sum() / (groups - 1) - within) / size
    return between, within, (means - grand) * size * between / (size * between + within)


def test_oracle_reml_is_anova_where_the_layout_is_balanced():
    X, y = dyestuff()
    between, within, blups = anova(y.reshape(6, 5))
    assert (between, within) == (pytest.approx(1764.05, abs=0.005), pytest.approx(2451.25, abs=0.005))
    design = naive_evidence.build(X, ["batch"])
    Z, ones = design.matrix[:, :6], np.ones((30, 1))
    assert naive_evidence.maximise_reml(y, ones, Z) == pytest.approx((between, within), rel=1e-5)
    np.testing.assert_allclose(naive_evidence.predict_random_effects(y, ones, Z, between, within)[0], blups)
    variance, phi, theta, _ = naive_evidence.fellner_schall(design, "batch", y, "squared_error")
    assert (variance, phi) == (pytest.approx(between, rel=1e-8), pytest.approx(within, rel=1e-8))
    np.testing.assert_allclose(theta[:6, 0], blups, rtol=1e-7)


@pytest.mark.parametrize("weighted", [False, True], ids=["alike", "weighted"])
@pytest.mark.slow
def test_oracle_fellner_schall_is_reml_where_the_layout_is_not(weighted):
    X, y = unbalanced(0, slope=True)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 4.0], len(y)) if weighted else np.ones(len(y))
    weight /= weight.mean()
    design = naive_evidence.build(X, ["g"], ["x"])
    Z, fixed = design.matrix[:, design.places["g"]], design.matrix[:, design.flat_places]
    variance, phi, theta, problem = naive_evidence.fellner_schall(design, "g", y, "squared_error", weight=weight)
    assert (variance, phi) == pytest.approx(naive_evidence.maximise_reml(y, fixed, Z, weight), rel=1e-5)
    if weighted:
        return
    blups, sd = naive_evidence.predict_random_effects(y, fixed, Z, variance, phi)
    np.testing.assert_allclose(theta[design.places["g"], 0], blups, atol=1e-9)
    np.testing.assert_allclose(np.sqrt(np.diag(problem.covariance_of_block(design, theta, "g"))), sd, rtol=1e-9)


def test_oracle_walk_has_free_levels():
    penalty = naive_evidence.walk([-1, 0, 1, 2])
    jumps = np.array([[0, 0, 0, 0], [0, 1, -1, 0], [0, -1, 2, -1], [0, 0, -1, 1]])
    beside = np.array([3, -1, -1, -1]) / 3
    np.testing.assert_allclose(penalty, jumps + 9 / 4 * np.outer(beside, beside))
    np.testing.assert_allclose(penalty.sum(axis=1), 0.0, atol=1e-15)


@pytest.mark.parametrize("standardize", [True, False])
def test_dyestuff(standardize):
    X, y = dyestuff()
    between, within, blups = anova(y.reshape(6, 5))
    model = estimator("squared_error", standardize=standardize).fit(X, y)
    shrinkage = 5 * between / (5 * between + within)
    sd = np.sqrt(between * (1 - shrinkage) * 5 / 6)  # of a batch about the mean of all
    assert {"variance", "edf", "coefficients"} <= set(model.variances_.columns)
    assert model.variances_.index.tolist() == ["batch"]
    assert model.variances_.loc["batch", "variance"] == pytest.approx(between, rel=1e-6)
    assert model.variances_.loc["batch", "edf"] == pytest.approx(5 * shrinkage, rel=1e-6)
    assert model.variances_.loc["batch", "coefficients"] == 6
    assert model.dispersion_ == pytest.approx(within, rel=1e-6)
    np.testing.assert_allclose(model.coefs_["batch"]["value"], blups, rtol=1e-6)
    np.testing.assert_allclose(model.coefs_["batch"]["sd"], sd, rtol=1e-6)
    assert model.coefs_[INTERCEPT]["value"].iloc[0] == pytest.approx(1527.5, rel=1e-9)
    assert model.coefs_[INTERCEPT]["sd"].iloc[0] == pytest.approx(19.383, abs=0.001)  # as lme4 and others print it


def test_the_default_tolerance_is_near_enough():
    X, y = dyestuff()
    model = WideRegressor(loss="squared_error", **ADDITIVE).fit(X, y)
    assert model.variances_.loc["batch", "variance"] == pytest.approx(1764.05, rel=0.01)
    np.testing.assert_allclose(model.coefs_["batch"]["value"], anova(y.reshape(6, 5))[2], rtol=0.01, atol=0.1)


def unbalanced(seed, *, slope):
    """A random intercept by group, groups of 1 to 20 rows; with a slope, or without."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(14), rng.integers(1, 21, 14))
    x = rng.normal(3.0, 2.0, len(group)) + 0.1 * group
    y = 4.0 + rng.normal(0.0, 1.5, 14)[group] + rng.normal(0.0, 2.0, len(group)) + (0.7 * x if slope else 0.0)
    X = pd.DataFrame({"g": [f"g{j}" for j in group]})
    return (X.assign(x=x) if slope else X), y


@cache
def reml_of_unbalanced(seed, slope):
    X, y = unbalanced(seed, slope=slope)
    design = naive_evidence.build(X, ["g"], ["x"] if slope else [])
    Z, fixed = design.matrix[:, design.places["g"]], design.matrix[:, design.flat_places]
    return Z, fixed, naive_evidence.maximise_reml(y, fixed, Z)


@pytest.mark.parametrize(
    ("seed", "slope", "standardize"), [(0, True, True), (0, False, False), (1, True, False), (1, False, True)]
)
@pytest.mark.slow
def test_unbalanced_is_reml(seed, slope, standardize):
    X, y = unbalanced(seed, slope=slope)
    Z, fixed, (variance, phi) = reml_of_unbalanced(seed, slope)
    model = estimator("squared_error", standardize=standardize).fit(X, y)
    assert model.variances_.loc["g", "variance"] == pytest.approx(variance, rel=1e-4)  # as flat as a likelihood is
    assert model.dispersion_ == pytest.approx(phi, rel=1e-4)
    fitted = model.variances_.loc["g", "variance"], model.dispersion_
    blups, _ = naive_evidence.predict_random_effects(y, fixed, Z, *fitted)
    both, q = np.column_stack([Z, fixed]), Z.shape[1]
    held = np.diag([*np.full(q, 1 / fitted[0]), *np.zeros(fixed.shape[1])])
    beside = np.eye(q) - 1 / q  # categories are shown about their mean
    sd = np.sqrt(np.diag(beside @ np.linalg.inv(both.T @ both / fitted[1] + held)[:q, :q] @ beside))
    np.testing.assert_allclose(model.coefs_["g"]["value"], blups, atol=1e-6)
    np.testing.assert_allclose(model.coefs_["g"]["sd"], sd, rtol=1e-6)


@pytest.mark.parametrize("slope", [False, True])
@pytest.mark.slow
def test_weights_are_precisions(slope):
    """Rows of a weight are known better: restricted likelihood with variances phi / weight."""
    X, y = unbalanced(2, slope=slope)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 4.0], len(y))
    design = naive_evidence.build(X, ["g"], ["x"] if slope else [])
    Z, fixed = design.matrix[:, design.places["g"]], design.matrix[:, design.flat_places]
    want = naive_evidence.maximise_reml(y, fixed, Z, weight / weight.mean())
    model = estimator("squared_error").fit(X, y, sample_weight=weight)
    assert (model.variances_.loc["g", "variance"], model.dispersion_) == pytest.approx(want, rel=1e-4)
    again = estimator("squared_error").fit(X, y, sample_weight=1000 * weight)
    assert again.variances_.loc["g", "variance"] == pytest.approx(model.variances_.loc["g", "variance"], rel=1e-8)


def test_units_of_the_target_are_units_of_the_variance():
    X, y = unbalanced(3, slope=True)
    one = estimator("squared_error").fit(X, y)
    two = estimator("squared_error").fit(X, 100 * y + 7)
    assert two.variances_.loc["g", "variance"] == pytest.approx(1e4 * one.variances_.loc["g", "variance"], rel=1e-6)
    assert two.dispersion_ == pytest.approx(1e4 * one.dispersion_, rel=1e-6)
    np.testing.assert_allclose(two.coefs_["g"]["sd"], 100 * one.coefs_["g"]["sd"], rtol=1e-6)


def test_a_column_that_says_nothing_is_shrunk_to_nothing():
    """Groups that differ less than chance would have it: the restricted likelihood is highest at no variance."""
    rng = np.random.default_rng(0)
    group, y = np.repeat(np.arange(20), 10), rng.normal(size=200)
    y -= 0.9 * (np.bincount(group, y) / 10)[group]
    assert anova(y.reshape(20, 10))[0] < 0
    model = estimator("squared_error").fit(pd.DataFrame({"g": group.astype(str)}), y)
    assert 0 <= model.variances_.loc["g", "edf"] < 1
    assert np.abs(model.coefs_["g"]["value"]).max() < 0.05
    switched_off = model.variances_.loc["g", "variance"] == 0.0
    assert model.coefs_["g"]["sd"].isna().all() if switched_off else np.isfinite(model.coefs_["g"]["sd"]).all()


# -- the optimum for given variances ------------------------------------------------------


@pytest.mark.parametrize("how", ["plain", "weights and offsets"])
@pytest.mark.parametrize("crosses", [1, 2])
@pytest.mark.parametrize("loss", LOSSES)
def test_alpha_reaches_the_dense_optimum(loss, crosses, how):
    table, y, weight, offset = rich_table(loss)
    weight, offset = (weight, offset) if how != "plain" else (np.ones(len(y)), None)
    model = estimator(loss, alpha=0.02, interactions=CROSSED[crosses])
    model.fit(table, labels_of(loss, y), sample_weight=None if how == "plain" else weight, offset=offset)
    kept = weight > 0
    design = naive_evidence.build(table[kept], ["a", "c"], ["x", "z"], crosses=crosses, weight=weight[kept])
    precision, share = dict.fromkeys(design.blocks, 0.02), weight[kept] / weight.sum()
    problem = problem_of(design, y[kept], loss, share, precision, None if offset is None else offset[kept])
    if loss == "huber":
        problem.parameter = model.model_.loss.parameter
    assert_is_optimum(problem, design, read(model, design))


def test_alpha_is_in_units_of_training_where_these_are_standardised():
    table, y, weight, _ = rich_table("squared_error")
    model = estimator("squared_error", alpha=0.05, standardize=True).fit(table, y, sample_weight=weight)
    kept = weight > 0
    design = naive_evidence.build(table[kept], ["a", "c"], ["x", "z"], weight=weight[kept])
    mean = np.average(y, weights=weight)
    posterior = np.sqrt(np.average((y - mean) ** 2, weights=weight))
    share = weight[kept] / weight.sum()
    problem = problem_of(
        design, (y[kept] - mean) / posterior, "squared_error", share, dict.fromkeys(design.blocks, 0.05)
    )
    theta = read(model, design) / posterior
    theta[design.places[INTERCEPT]] -= mean / posterior
    assert_is_optimum(problem, design, theta)


@pytest.mark.parametrize("how", ["plain", "weights and offsets"])
@pytest.mark.parametrize("loss", LOSSES)
def test_evidence_reaches_the_dense_optimum_at_its_variances(loss, how):
    table, y, weight, offset = rich_table(loss, seed=1)
    weight, offset = (weight, offset) if how != "plain" else (np.ones(len(y)), None)
    model = estimator(loss, interactions="pairwise")
    model.fit(table, labels_of(loss, y), sample_weight=None if how == "plain" else weight, offset=offset)
    kept = weight > 0
    design = naive_evidence.build(table[kept], ["a", "c"], ["x", "z"], crosses=2, weight=weight[kept])
    assert set(model.variances_.index) == {"a", "c", "a:c"}
    if loss in ("logistic", "multinomial"):
        assert model.dispersion_ == 1.0
    offset = None if offset is None else offset[kept]
    problem = problem_of_evidence(design, y[kept], loss, model, weight[kept], offset)
    if loss == "huber":
        problem.parameter = model.model_.loss.parameter
    theta = read(model, design)
    assert_is_optimum(problem, design, theta)
    if loss == "huber":
        return  # which has two curvatures to choose from
    assert_fellner_schall(problem, design, theta, model)


def assert_fellner_schall(problem, design, theta, model):
    """Every variance is that of the numbers over their effective entries; deviations are of all terms together."""
    sd, deviations = read(model, design, "sd"), naive_evidence.shown_deviations(problem, design, theta)
    deviations = deviations * np.sqrt(model.dispersion_ / working(model))
    for name in design.blocks:
        row, numbers = model.variances_.loc[name], theta[design.places[name]]
        edf = naive_evidence.effective(problem, design, theta, name)
        if row["variance"] == 0.0:
            assert np.isnan(sd[design.places[name]]).all()
        else:
            np.testing.assert_allclose(sd[design.places[name]], deviations[design.places[name]], rtol=1e-3, atol=1e-5)
        assert row["edf"] == pytest.approx(edf, rel=1e-3, abs=1e-3)
        if row["variance"] > 1e-6:
            assert row["variance"] == pytest.approx(np.sum(numbers**2) / edf, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["additive", "in parts", "product"])
def test_dispersions_of_rare_counts_are_about_1(kind, monkeypatch):
    """Pearson's statistic of a penalized model was .7: five rows with .2 counts for each category (review)."""
    if kind == "in parts":
        monkeypatch.setattr("tabsym.models.wide.SAMPLE_ROWS", 0)
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        a, b = rng.integers(0, 400, 2000), rng.integers(0, 20, 2000)
        rate = 0.2 * np.exp(0.7 * rng.normal(size=400)[a] + 0.5 * rng.normal(size=20)[b])
        table = pd.DataFrame({"a": a.astype(str), "b": b.astype(str), "y": rng.poisson(rate)})
        formula = "y ~ w[a] + v[b] + c[1]" if kind != "product" else "y ~ w[a] + c[1] * v[b]"
        options = {} if kind == "product" else {"count_effect": False}
        model = WideRegressor(formula, loss="poisson", **options)
        data = pyarrow.dataset.dataset(pyarrow.Table.from_pandas(table)) if kind == "in parts" else table
        found.append(model.fit(data).dispersion_)
    assert np.mean(found) == pytest.approx(1.0, abs=0.05), found


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "gamma", "tweedie"])
def test_dispersion(loss):
    table, y, weight, _ = rich_table(loss, seed=2)
    table, y, weight = table[weight > 0], y[weight > 0], weight[weight > 0]
    design = naive_evidence.build(table, ["a"], ["x", "z"], weight=weight)
    model = estimator(loss).fit(table.drop(columns="c"), y, sample_weight=weight)
    problem = problem_of_evidence(design, y, loss, model, weight)
    theta = read(model, design)
    edf = naive_evidence.effective(problem, design, theta, "a") + len(design.flat_places)
    mean = model.predict(table.drop(columns="c"))
    power = {"squared_error": 0, "poisson": 1, "gamma": 2}.get(loss, PARAMETER["tweedie"])
    relative = weight / weight.mean()
    pearson = relative @ (np.square(y - mean) / np.abs(mean) ** power) / (len(y) - edf)
    fletcher = np.mean(relative * power * (y - mean) / mean)  # 2012; of gamma's 0 at the optimum
    assert model.dispersion_ == pytest.approx(pearson / (1.0 + fletcher), rel=1e-3)


# -- logistic: Laplace --------------------------------------------------------------------


def logistic_groups(seed):
    rng = np.random.default_rng(seed)
    group = rng.choice(12, 400, p=np.arange(1, 13) / 78)
    return [f"g{j}" for j in group], (rng.random(400) < expit(0.5 + rng.normal(0, 1.0, 12)[group])).astype(int)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_logistic_is_laplace_at_its_variance_and_fellner_schall_at_its_optimum(seed):
    groups, y = logistic_groups(seed)
    X = pd.DataFrame({"g": groups})
    model = estimator("logistic").fit(X, y)
    names, mode, sd = naive_evidence.laplace_logistic(groups, y, model.variances_.loc["g", "variance"])
    np.testing.assert_allclose(model.coefs_["g"]["value"].loc[names], mode[1:], atol=1e-6)
    chance = expit(mode[0] + pd.Series(mode[1:], index=names)[groups].to_numpy())
    columns = np.column_stack([np.ones(len(y)), np.asarray(groups)[:, None] == np.asarray(names)])
    held = np.diag([0.0, *np.full(len(names), 1 / model.variances_.loc["g", "variance"])])
    whole = np.linalg.inv(columns.T @ ((chance * (1 - chance))[:, None] * columns) + held)
    np.testing.assert_allclose(sd, np.sqrt(np.diag(whole)), rtol=1e-6)  # both ways to write Laplace's posterior
    beside = np.eye(len(names)) - 1 / len(names)
    about = np.sqrt(np.diag(beside @ whole[1:, 1:] @ beside))
    np.testing.assert_allclose(model.coefs_["g"]["sd"].loc[names], about, rtol=1e-6)
    assert model.coefs_[INTERCEPT]["value"].iloc[0] == pytest.approx(mode[0], abs=1e-6)
    design = naive_evidence.build(X, ["g"])
    variance, _, _, _ = naive_evidence.fellner_schall(design, "g", y.astype(float), "logistic")
    assert model.variances_.loc["g", "variance"] == pytest.approx(variance, rel=1e-5)
    posterior = np.sum(mode[1:] ** 2) / (len(names) - np.sum(sd[1:] ** 2) / model.variances_.loc["g", "variance"])
    assert model.variances_.loc["g", "variance"] == pytest.approx(posterior, rel=1e-5)


def test_logistic_at_a_given_alpha_is_laplace():
    groups, y = logistic_groups(3)
    model = estimator("logistic", alpha=1 / (400 * 0.8)).fit(pd.DataFrame({"g": groups}), y)
    names, mode, _ = naive_evidence.laplace_logistic(groups, y, 0.8)
    np.testing.assert_allclose(model.coefs_["g"]["value"].loc[names], mode[1:], atol=1e-6)


# -- what must not matter -----------------------------------------------------------------


def rows_of(frame):
    """Key -> numbers of a block, without the counts and standard deviations."""
    values = frame[
        [name for name in frame.columns if name not in ("rows", "low", "high") and not name.startswith("sd")]
    ]
    return dict(zip(map(key_of, frame.index), values.to_numpy(), strict=True))


def assert_same_params(one, two, rename=lambda key: key, atol=1e-7):
    assert list(one) == list(two)
    for name, frame in one.items():
        got = rows_of(two[name])
        for key, row in rows_of(frame).items():
            np.testing.assert_allclose(got[rename(key)], row, atol=atol)


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_are_repetitions(loss):
    table, y, _, _ = rich_table(loss, seed=3, n=200)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), times)
    model = estimator(loss, alpha=0.05, interactions="pairwise")
    weighted = model.fit(table, labels_of(loss, y), sample_weight=times).coefs_
    repeated = model.fit(table.iloc[rows], labels_of(loss, y)[rows]).coefs_
    assert_same_params(weighted, repeated)


@pytest.mark.parametrize("loss", ["squared_error", "logistic", "multinomial"])
def test_order_of_rows_and_names_of_symbols_do_not_matter(loss):
    table, y, weight, _ = rich_table(loss, seed=4)
    model = estimator(loss, interactions="pairwise")
    one = model.fit(table, labels_of(loss, y), sample_weight=weight).coefs_
    order = np.random.default_rng(0).permutation(len(y))
    two = model.fit(table.iloc[order], labels_of(loss, y)[order], sample_weight=weight[order]).coefs_
    assert_same_params(one, two, atol=1e-6)
    names = {"u": "8", "v": "7", "w": "zz", "s": "a", "t": "0"}
    renamed = table.assign(a=table["a"].map(names).astype(object).where(table["a"].notna(), None))
    three = model.fit(renamed, labels_of(loss, y), sample_weight=weight).coefs_

    def rename(key):
        return (names.get(key[0], key[0]), *key[1:]) if isinstance(key, tuple) else names.get(key, key)

    assert_same_params(one, three, rename=rename, atol=1e-6)


@pytest.mark.parametrize(
    ("loss", "samples"),
    [("squared_error", 0), ("squared_error", 8), ("logistic", 0), ("logistic", 8), ("multinomial", 0)],
)
def test_the_same_twice_to_the_last_bit(loss, samples):
    table, y, weight, offset = rich_table(loss)
    options = {"interactions": "pairwise", "tol": 1e-3, "max_iter": 200, "n_posterior_samples": samples}
    one, two = (
        estimator(loss, n_jobs=jobs, **options, random_state=3).fit(
            table, labels_of(loss, y), sample_weight=weight, offset=offset
        )
        for jobs in (1, 2)
    )
    for name, frame in one.coefs_.items():
        assert np.array_equal(frame.to_numpy(), two.coefs_[name].to_numpy(), equal_nan=True)
    pd.testing.assert_frame_equal(one.variances_, two.variances_, check_exact=True)
    if samples:
        ask = "predict" if loss == "squared_error" else "decision_function"
        for got, want in zip(getattr(one, ask)(table, return_std=True), getattr(two, ask)(table, return_std=True)):
            assert np.array_equal(got, want)


def test_without_draws_the_seed_does_not_matter():
    table, y, _, _ = rich_table("logistic")
    one, two = (estimator("logistic", random_state=seed).fit(table, y).coefs_ for seed in (0, 1))
    for name, frame in one.items():
        assert np.array_equal(frame.to_numpy(), two[name].to_numpy(), equal_nan=True)


# -- joint standard deviations, by draws --------------------------------------------------


def additive(loss, seed, n, sizes, sigmas):
    """A table whose symbols occur by Zipf's law; numbers of symbols drawn with the sigmas: (X, y, truth)."""
    rng = np.random.default_rng(seed)
    table, truth, score = {}, {}, np.full(n, 0.5)
    for j, (size, sigma) in enumerate(zip(sizes, sigmas, strict=True)):
        chances = 1.0 / np.arange(1, size + 1)
        codes, numbers = rng.choice(size, n, p=chances / chances.sum()), rng.normal(0.0, sigma, size)
        score += numbers[codes]
        table[f"c{j}"] = [f"s{code}" for code in codes]
        truth[f"c{j}"] = pd.Series(numbers, index=[f"s{code}" for code in range(size)])
    y = score + rng.normal(size=n) if loss == "squared_error" else (rng.random(n) < expit(score)).astype(int)
    return pd.DataFrame(table), y, truth


@pytest.mark.parametrize("loss", ["squared_error", "logistic"])
def test_draws_find_the_joint_posterior(loss):
    X, y, _ = additive(loss, 0, 600, (8, 15, 25), (1.0, 0.6, 0.5))
    model = estimator(loss, tol=3e-6, max_iter=2000, n_posterior_samples=2000).fit(X, y)
    design = naive_evidence.build(X, list(X))
    problem = problem_of_evidence(design, y.astype(float), loss, model)
    covariance = problem.covariance(read(model, design))
    for name in X:
        places = design.places[name]
        sd = lookup(model.coefs_[name], "sd")
        beside = np.eye(len(places)) - 1 / len(places)
        want = np.sqrt(np.diag(beside @ covariance[np.ix_(places, places)] @ beside))
        np.testing.assert_allclose([sd[key] for key in design.keys[name]], want, rtol=0.08)
    ask = model.predict if loss == "squared_error" else model.decision_function
    score, std = ask(X, return_std=True)
    np.testing.assert_allclose(score, ask(X), rtol=1e-12)
    want = np.sqrt(np.einsum("ia,ab,ib->i", design.matrix, covariance, design.matrix))
    np.testing.assert_allclose(std, want, rtol=0.12)
    assert np.mean(std / want) == pytest.approx(1.0, abs=0.04)


def test_draws_of_a_multinomial_model_are_refused():
    table, y, _, _ = rich_table("multinomial", n=600)
    with pytest.raises(ValueError, match="one linear predictor; leave it out for more than two classes"):
        estimator("multinomial", alpha=0.0, n_posterior_samples=8).fit(table, labels_of("multinomial", y))


def test_what_was_never_seen_has_the_variance_of_its_block():
    X, y, _ = additive("squared_error", 0, 600, (8, 15, 25), (1.0, 0.6, 0.5))
    model = estimator("squared_error", tol=1e-3, n_posterior_samples=2000).fit(X, y)
    row = X.head(1)
    flat = row.assign(c0="never", c1="never", c2="never")
    design = naive_evidence.build(X, list(X))
    covariance = problem_of_evidence(design, y, "squared_error", model).covariance(read(model, design))
    variances = model.variances_["variance"]
    _, std = model.predict(flat, return_std=True)
    assert std[0] ** 2 == pytest.approx(covariance[-1, -1] + variances.sum(), rel=0.05)
    _, std = model.predict(row.assign(c1="never"), return_std=True)
    kept = [design.places[name][design.keys[name].index(row[name].iloc[0])] for name in ("c0", "c2")] + [-1]
    want = covariance[np.ix_(kept, kept)].sum() + variances["c1"]
    assert std[0] ** 2 == pytest.approx(want, rel=0.1)


def test_std_of_a_log_link_is_of_the_mean():
    table, y, _, offset = rich_table("poisson")
    model = estimator("poisson", tol=1e-3, n_posterior_samples=200).fit(table, y, offset=offset)
    mean, std = model.predict(table, offset=offset, return_std=True)
    np.testing.assert_allclose(mean, model.predict(table, offset=offset), rtol=1e-12)
    other, std_of_other = model.predict(table, return_std=True)
    np.testing.assert_allclose(std / mean, std_of_other / other, rtol=1e-10)  # sd of the score knows no offset
    design = naive_evidence.build(table, ["a", "c"], ["x", "z"])
    covariance = problem_of_evidence(design, y, "poisson", model, offset=offset).covariance(read(model, design))
    covariance = covariance * model.dispersion_ / working(model)
    want = np.sqrt(np.einsum("ia,ab,ib->i", design.matrix, covariance, design.matrix))
    assert np.mean(std / mean / want) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("crosses", [1, 2])
@pytest.mark.parametrize("loss", ["squared_error", "poisson", "logistic"])
def test_the_default_tolerance_ends_near_the_optimum(loss, crosses):
    """Within a tenth of a standard deviation; blocks sum to nothing there, as the intercept is free to take it all."""
    table, y, _, _ = rich_table(loss, n=1000)
    model = estimator(loss, interactions=CROSSED[crosses], tol=1e-3, max_iter=200, standardize=True)
    model.fit(table, labels_of(loss, y))
    design = naive_evidence.build(table, ["a", "c"], ["x", "z"], crosses=crosses)
    problem = problem_of_evidence(design, y, loss, model)
    best, theta = problem.best(), read(model, design)
    sd = np.sqrt(np.diag(problem.covariance(best)))
    for name in design.blocks:
        assert abs(best[design.places[name]].sum()) < 1e-8
    worst = float((np.abs(theta - best)[:, 0] / np.maximum(sd, 1e-3)).max())
    assert worst < 0.1


# -- coverage -----------------------------------------------------------------------------

COVERAGE = {
    "squared, one block": ("squared_error", 40, 2000, (200,), (0.6,), 0),
    "squared, one small block": ("squared_error", 100, 2000, (40,), (0.5,), 0),
    "squared, three blocks": ("squared_error", 40, 3000, (30, 100, 300), (1.0, 0.6, 0.3), 32),
    "logistic, one block": ("logistic", 40, 6000, (100,), (0.8,), 0),
    "logistic, three blocks": ("logistic", 30, 6000, (30, 60, 100), (1.0, 0.8, 0.5), 32),
}


def errors_over_sd(loss, seed, n, sizes, sigmas, samples):
    """(truth - found) / sd of every symbol that occurs."""
    X, y, truth = additive(loss, seed, n, sizes, sigmas)
    model = estimator(loss, tol=1e-3, max_iter=200, n_posterior_samples=samples, random_state=seed).fit(X, y)
    frames = [(model.coefs_[name], truth[name]) for name in X]
    frames = [(frame, true[frame.index] - true[frame.index].mean()) for frame, true in frames]  # as it is shown
    return np.concatenate([((frame["value"] - true[frame.index]) / frame["sd"]).to_numpy() for frame, true in frames])


@pytest.mark.parametrize("name", COVERAGE)
@pytest.mark.slow
def test_intervals_cover_the_truth(name):
    """The truth's own numbers, by the intervals' nominal share within 3 points.

    Numbers of a block err together, by what its mean and the intercept can hand to each other: so many tables.
    """
    loss, n_tables, *options = COVERAGE[name]
    errors = [np.abs(errors_over_sd(loss, seed, *options)) for seed in range(n_tables)]
    for z, nominal in ((1.2816, 0.80), (1.96, 0.95)):
        covered = np.mean([np.mean(error < z) for error in errors])
        assert abs(covered - nominal) < 0.03, f"{nominal:.0%} intervals cover {covered:.1%}"


# -- numeric="smooth" ---------------------------------------------------------------------


def cuts_of(frame):
    """Upper bounds of the intervals of a block, read from their names, in order."""
    names = [name for name in frame.index if name != "Missing"]
    assert names[-1].endswith("+inf[")
    return np.array([float(name.split(";")[1].strip(" ]")) for name in names[:-1]])


def wave(loss, *, missing, n=800):
    rng = np.random.default_rng(5)
    x, c = rng.integers(0, 40, n).astype(float), rng.choice(list("pqrst"), n)
    score = np.sin(x / 6) + pd.Series(c).map(dict(zip("pqrst", [0.5, -0.5, 0.0, 0.9, -0.4]))).to_numpy()
    y = draw_target(loss, score, rng)
    x = np.where(rng.random(n) < 0.1, np.nan, x) if missing else x
    return pd.DataFrame({"c": c, "x": x}), y


def assert_same_walk(got, want, keys, atol):
    """Equal but for the level, which the intercept takes as well; the missing entry apart."""
    walk = [place for place, key in enumerate(keys) if key != -1]
    np.testing.assert_allclose(got[walk] - got[walk].mean(axis=0), want[walk] - want[walk].mean(axis=0), atol=atol)


@pytest.mark.parametrize("missing", [False, True], ids=["all there", "some missing"])
@pytest.mark.parametrize("loss", ["squared_error", "poisson", "logistic", "multinomial"])
def test_smooth_reaches_the_dense_optimum_of_the_walk(loss, missing):
    table, y = wave(loss, missing=missing)
    model = estimator(loss, numeric="smooth").fit(table, labels_of(loss, y))
    frame = model.coefs_["x"]
    assert (frame.index[0] == "Missing") == missing
    cuts = cuts_of(frame)
    assert len(cuts) > 15
    design = naive_evidence.build(table, ["c"], cuts={"x": cuts})
    problem = problem_of_evidence(design, y, loss, model)
    own = np.ix_(design.places["x"], design.places["x"])
    shape, variance = naive_evidence.walk(design.keys["x"]), model.variances_.loc["x", "variance"]
    problem.penalty[own] = shape / variance
    best = problem.best()
    design.keys["x"] = list(frame.index)  # both in the order of the intervals, missing values first
    theta = read(model, design)
    want, got = problem.scores(best), problem.scores(theta)
    if loss == "multinomial":
        want, got = want - want.mean(axis=1, keepdims=True), got - got.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(got, want, atol=1e-4)
    codes = [-1] * missing + list(range(len(cuts) + 1))
    assert_same_walk(theta[design.places["x"]], best[design.places["x"]], codes, atol=1e-4)
    steps = theta[design.places["x"]]
    edf = naive_evidence.effective(problem, design, best, "x") - best.shape[1]  # the level of a walk has no penalty
    rounding = 2e-2 if loss == "multinomial" else 1e-3  # unpenalized means are inverted with the others there
    if missing:  # is shown about the mean over rows; its penalty is about a level that the intercept makes least
        shares = np.diag(shape)[[0]] / np.diag(shape)[0]
        steps = steps - shares[:, None] * steps[:1]
    assert variance == pytest.approx(np.sum(steps * (shape @ steps)) / edf, rel=rounding)


@pytest.mark.parametrize("apart", [0, 1, 2])
@pytest.mark.parametrize("precision", [0.01, 3.0, 3e4])
@pytest.mark.parametrize(("q", "k"), [(2, 3), (9, 4), (31, 7)])
def test_walks_of_classes_are_as_uncertain_as_dense_algebra_says(q, k, precision, apart):
    """Block by block, beside one matrix of all intervals and classes, joint with the intercepts."""
    rng = np.random.default_rng(q)
    q += apart

    def curvature_of_rows():
        chances = rng.dirichlet(np.ones(k), size=30)
        return np.diag(chances.sum(axis=0)) - chances.T @ chances

    own = np.array([curvature_of_rows() for _ in range(q)])
    whole = own.sum(axis=0) + curvature_of_rows()  # and of rows without an interval, which tell the intercepts alone
    penalty = np.kron(naive_evidence.walk_beside_missing(q, apart), np.eye(k))
    hessian, shared = np.zeros((q, k, q, k)), np.concatenate(list(own))
    hessian[np.arange(q), :, np.arange(q)] = own
    joint = np.block([[hessian.reshape(q * k, q * k) + precision * penalty, shared], [shared.T, whole]])
    covariance = np.linalg.pinv(joint, rcond=1e-10, hermitian=True)[: q * k, : q * k]
    beside = np.kron(np.eye(q), np.eye(k) - 1.0 / k)  # what is common to all classes is nobody's
    want = np.diag(beside @ covariance @ beside).reshape(q, k)
    term = SolverTerm(0, np.zeros(1, np.int32), np.empty(0), q, Prior.WALK, apart)
    found = walk_of_classes(term, own, own, precision, whole)
    np.testing.assert_allclose(found.variances(), want, rtol=0.005)
    numbers = (q - 1) * k
    edf = [max(numbers - precision * trace, 0.0) for trace in (found.penalized, np.trace(penalty @ covariance))]
    assert edf[0] == pytest.approx(edf[1], abs=0.02, rel=0.001)


def test_smooth_numbers_of_several_classes_are_as_certain_as_those_of_two():
    """The level that all classes share is in no row: its uncertainty, which nothing bounds, was in every number's."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=3000)
    score = np.column_stack([np.zeros(3000), np.sin(2 * x)])
    X = pd.DataFrame({"x": x})
    classes = np.argmax(score + rng.gumbel(size=score.shape), axis=1)
    options = ADDITIVE | {"numeric": "smooth"}
    two = WideClassifier(**options).fit(X, classes).coefs_["x"]
    both = by_softmax(WideClassifier(**options)).fit(X, classes).coefs_["x"]
    ratio = both["sd 1"] / (0.5 * two["sd"])  # half the difference of two classes, beside their mean
    assert ratio.between(0.9, 1.1).mean() > 0.9, ratio.describe()


def test_smooth_follows_a_wave():
    table, y = wave("squared_error", missing=True)
    new = pd.DataFrame({"c": "r", "x": np.arange(40.0)})
    found = estimator("squared_error", numeric="smooth", tol=1e-3).fit(table, y).predict(new)
    error = found - np.sin(new["x"] / 6)
    assert np.std(error) < 0.12


# -- explain ------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_explanations_add_up_to_the_score(loss):
    table, y, weight, offset = rich_table(loss)
    model = estimator(loss, interactions="pairwise")
    model.fit(table, labels_of(loss, y), sample_weight=weight, offset=offset)
    new = table.copy()
    new.loc[:20, "c"] = "never"
    found = model.explain(new)
    assert len(found) == len(new)
    if loss == "multinomial":
        assert isinstance(found.columns, pd.MultiIndex)
        scores = model.decision_function(new, offset=offset) - offset
        for k, level in enumerate(LEVELS):
            np.testing.assert_allclose(found.xs(level, axis=1, level=1).sum(axis=1), scores[:, k], atol=1e-10)
        return
    scores = (model.decision_function if loss == "logistic" else model.predict)(new, offset=offset)
    scores = np.log(scores) if loss in LOG_LINK else scores
    np.testing.assert_allclose(found.sum(axis=1) + offset, scores, atol=1e-10)
    numbers = lookup(model.coefs_["a"], "value")
    nothing = pd.Series(np.zeros(len(new)))  # of a term that is switched off, and left out
    np.testing.assert_allclose(found.get("a", nothing), [numbers[key_of(key)] for key in new["a"]], atol=1e-12)
    assert (found.get("c", nothing).iloc[:21] == 0).all()
    assert (found.get("a:c", nothing).iloc[:21] == 0).all()


def test_explain_is_for_online_models_too_and_keeps_the_index():
    table, y, _, _ = rich_table("squared_error")
    table.index = np.arange(len(table)) + 1000
    model = WideSGDRegressor(max_iter=2, random_state=0).fit(table, y)
    found = model.explain(table)
    np.testing.assert_allclose(found.sum(axis=1), model.predict(table), atol=1e-10)


def crossing_lines(n=400):
    """Slopes by category of a number far from 0, all categories alike at its mean."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"g": rng.choice(list("abcd"), n), "z": rng.uniform(10, 11, n), "x": rng.normal(3, 1, n)})
    y = table["g"].map({"a": 2.0, "b": -1.0, "c": 0.5, "d": -1.5}) * (table["z"] - table["z"].mean())
    y += 0.3 * rng.normal(size=n)
    return table, y - y.groupby(table["g"]).transform("mean")


@pytest.mark.parametrize(
    ("loss", "formula", "dropped"),
    [
        ("squared_error", "c[1] + (z || g)", {"1 | g"}),
        ("squared_error", "w[g] + v[g]*z", {"w"}),
        ("squared_error", "w[g] + v[g]*z + u[g]*x + s[1]*z + c[1]", {"w", "u"}),
        ("squared_error", "w[g] + v[g]*z + s(x, by=g) + c[1]", {"w"}),
        ("tweedie", "c[1] + s[1]*z + (z || g)", {"1 | g"}),
        ("tweedie", "w[g] + v[g]*z + s(x, by=g) + c[1]", {"w"}),
        ("logistic", "c[1] + (z || g)", {"1 | g"}),
        ("multinomial", "c[1] + s[1]*z + (z || g)", {"1 | g"}),
    ],
)
def test_explanations_add_up_where_an_intercept_beside_slopes_is_dropped(loss, formula, dropped):
    table, y = crossing_lines()
    is_of_classes = loss in ("logistic", "multinomial")
    if is_of_classes:  # each row as often in each class as its probability says: no noise
        scores = np.outer(y, [-1.0, 1.0] if loss == "logistic" else [-1.0, 0.0, 1.0])
        labels = LEVELS[: scores.shape[1]]
        rows = pd.concat([table] * len(labels), ignore_index=True)
        weight = softmax(5 * scores, axis=1).T.ravel()
        model = WideClassifier(formula).fit(rows, np.repeat(labels, len(table)), sample_weight=weight)
    else:
        y = np.exp(y) if loss == "tweedie" else y
        model = WideRegressor(formula, loss=OBJECTS.get(loss, loss)).fit(table, y)
    new = pd.concat([table.head(20), table.head(3).assign(g="never")])
    found, scores = model.explain(new), (model.decision_function if is_of_classes else model.predict)(new)
    assert dropped <= set(model.variances_.query("variance == 0").index)
    assert not dropped & set(found.columns.get_level_values(0))
    total = found.sum(axis=1) if loss != "multinomial" else found.T.groupby(level=1).sum().T
    np.testing.assert_allclose(total, np.log(scores) if loss in LOG_LINK else scores, atol=1e-9)


def test_dropped_intercepts_beside_slopes_are_what_predictions_by_hand_need():
    table, y = crossing_lines()
    model = WideRegressor("w[g] + v[g]*z + s[1]*z + c[1]", loss="squared_error").fit(table, y)
    value = {name: frame["value"] for name, frame in model.coefs_.items()}
    assert model.variances_.loc["w", "variance"] == 0.0
    by_hand = value["c"].iloc[0] + value["s"].iloc[0] * table["z"]
    by_hand += table["g"].map(value["w"]) + table["g"].map(value["v"]) * table["z"]
    np.testing.assert_allclose(by_hand, model.predict(table), atol=1e-10)
    away = table["z"] - table["z"].mean()
    found = model.explain(table)
    assert set(found.columns) == {"c", "s", "v"}
    np.testing.assert_allclose(found["v"], table["g"].map(value["v"]) * away, atol=1e-10)
    np.testing.assert_allclose(found["s"], value["s"].iloc[0] * away, atol=1e-10)


# -- what is refused ----------------------------------------------------------------------

REFUSED = {
    "absolute": lambda: WideRegressor(loss="absolute_error"),
    "quantile": lambda: WideRegressor(loss="quantile"),
    "hinge": lambda: WideRegressor(loss="hinge"),
    "auto online": lambda: WideSGDRegressor(alpha="auto"),
    "auto online, of classes": lambda: WideSGDClassifier(alpha="auto"),
    "another word": lambda: WideRegressor(alpha="proof"),
    "negative": lambda: WideRegressor(alpha=-1.0),
    "smooth online": lambda: WideSGDRegressor(numeric="smooth"),
    "newton online": lambda: WideSGDRegressor(optimizer="newton"),
    "tol": lambda: WideRegressor(tol=-1.0),
    "max_iter": lambda: WideRegressor(max_iter=0),
    "n_posterior_samples": lambda: WideRegressor(n_posterior_samples=-1),
}


def assert_sentence(refusal):
    text = str(refusal.value)
    assert len(text) > 30
    assert text.endswith(".")


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    table, y, _, _ = rich_table("logistic")
    with pytest.raises(ValueError) as refusal:
        REFUSED[name]().fit(table, y)
    assert_sentence(refusal)


def test_solved_models_have_no_partial_fit():
    for model in (WideClassifier(), WideRegressor()):
        assert not hasattr(model, "partial_fit")


def test_std_without_samples_is_refused():
    table, y, _, _ = rich_table("logistic")
    for model in (WideRegressor(), WideSGDRegressor(max_iter=1)):
        with pytest.raises(ValueError, match="n_posterior_samples=32") as refusal:
            model.fit(table, y).predict(table, return_std=True)
        assert_sentence(refusal)
    with pytest.raises(ValueError, match="n_posterior_samples=32") as refusal:
        WideClassifier().fit(table, y).decision_function(table, return_std=True)
    assert_sentence(refusal)


@pytest.mark.parametrize("nested", [False, True])
def test_draws_of_intercepts_and_blocks_are_those_of_the_whole_posterior(nested):
    """Joint standard deviations against the inverse of the whole Hessian: what no row tells apart wanders together."""
    rng = np.random.default_rng(7)
    a = rng.integers(0, 4, 900)
    b = 10 * a + rng.integers(0, 5, 900) if nested else rng.integers(0, 30, 900)
    X = pd.DataFrame({"a": a.astype(str), "b": [f"{one:03}" for one in b]})
    y = rng.normal(size=4)[a] + 0.5 * rng.normal(size=100)[b] + rng.normal(size=900)
    model = WideRegressor(loss="squared_error", **ADDITIVE, n_posterior_samples=4000)
    inner(model, rare_rows=0).fit(X, y)
    categories = {name: sorted(X[name].unique()) for name in "ab"}
    columns = [np.ones((900, 1))] + [(X[[name]].to_numpy() == categories[name]).astype(float) for name in "ab"]
    rows = [model.dispersion_ / float(model.variances_["variance"][name]) for name in "ab"]
    held = np.concatenate([[0.0], *(np.full(len(categories[name]), own) for name, own in zip("ab", rows, strict=True))])
    Z = np.hstack(columns)
    beside = np.eye(len(held))
    for own in (slice(1, 1 + len(categories["a"])), slice(1 + len(categories["a"]), None)):
        beside[own, own] -= 1 / len(held[own])
    want = np.sqrt(model.dispersion_ * np.diag(beside @ np.linalg.inv(Z.T @ Z + np.diag(held)) @ beside))
    found = np.concatenate(
        [model.coefs_["(intercept)"]["sd"], *(model.coefs_[name]["sd"].loc[categories[name]] for name in "ab")]
    )
    np.testing.assert_allclose(found, want, rtol=0.06)


@pytest.mark.parametrize("loss", ["poisson", "tweedie", "gamma"])
@pytest.mark.parametrize("alpha", ["auto", 0.0])
@pytest.mark.parametrize("unit", [1e-9, 1e-3])
def test_targets_behind_log_links_in_another_unit(loss, alpha, unit):
    """Every score moves by the unit's logarithm, and nothing else does; the dispersion has the loss's unit."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"a": rng.choice(list("abcde"), 800), "b": rng.integers(0, 20, 800).astype(str)})
    y = 0.3 * rng.poisson(np.exp(0.8 * (X["a"] == "a"))) + (1.0 if loss == "gamma" else 0.0)
    offset = rng.normal(scale=0.1, size=800)
    one, other = (WideRegressor(loss=loss, **ADDITIVE, alpha=alpha).fit(X, y * c, offset=offset) for c in (1.0, unit))
    predicted = [model.predict(X, offset=offset) for model in (one, other)]
    np.testing.assert_allclose(predicted[1], unit * predicted[0], rtol=1e-9)
    np.testing.assert_allclose(other.coefs_["a"]["sd"], one.coefs_["a"]["sd"], rtol=1e-9)
    power = {"poisson": 1.0, "tweedie": 0.5, "gamma": 0.0}[loss]
    assert other.dispersion_ == pytest.approx(unit**power * one.dispersion_, rel=1e-9)
    for model, c in ((one, 1.0), (other, unit)):
        scores = np.log(predicted[0] * c)[:, None]
        assert model.loss_curve_[-1] == pytest.approx(model.model_.loss.values(scores, y * c).mean(), rel=1e-9)


@pytest.mark.parametrize("unit", [1e-3, 1e4])
@pytest.mark.parametrize("loss", ["poisson", "tweedie", "gamma"])
def test_crosses_behind_log_links_in_another_unit(loss, unit):
    """What is weighed against a penalty must not depend on whether sales are counted in cents or in thousands."""
    rng = np.random.default_rng(4)
    X = pd.DataFrame({name: rng.integers(0, 12, 3000).astype(str) for name in "abc"})
    cell = rng.normal(scale=0.7, size=(12, 12))[X["a"].astype(int), X["b"].astype(int)]
    y = rng.gamma(3.0, np.exp(cell) / 3.0)
    options = {"loss": loss, "interactions": "auto", "random_state": 0}
    plain = [WideSGDRegressor(**options).fit(X, y * c).interactions_ for c in (1.0, unit)]
    assert list(plain[1]["interaction"]) == list(plain[0]["interaction"])
    assert "a:b" in list(plain[0]["interaction"])
    one, other = (WideRegressor(**options, numeric="linear").fit(X, y * c) for c in (1.0, unit))
    np.testing.assert_allclose(other.predict(X), unit * one.predict(X), rtol=1e-7)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_tweedie_of_power_one_and_a_half_is_no_loss_of_its_own(weighted):
    """It has kernels of its own, as its parts are roots; powers beside it go through an exp per row."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame({name: rng.integers(0, 130, 2500).astype(str) for name in "ab"})
    X["x"] = rng.normal(size=2500)
    level = np.exp(0.5 * rng.normal(size=130))[X["a"].astype(int)] * np.exp(0.3 * X["x"])
    y = rng.poisson(1.5, 2500) * level
    weight = rng.uniform(0.5, 2.0, 2500) if weighted else None
    own, beside = (
        WideRegressor(loss=Tweedie(power), **ADDITIVE).fit(X, y, sample_weight=weight) for power in (1.5, 1.5 + 1e-7)
    )
    np.testing.assert_allclose(own.predict(X), beside.predict(X), rtol=1e-5)
    np.testing.assert_allclose(own.coefs_["a"]["sd"], beside.coefs_["a"]["sd"], rtol=1e-5)
    assert own.dispersion_ == pytest.approx(beside.dispersion_, rel=1e-5)


@pytest.mark.parametrize("more", [0.0, 3.0])
@pytest.mark.parametrize("apart", [None, 0, 1, 2], ids=["ridge", "walk", "walk with missing", "two beside a walk"])
def test_blocks_weighed_in_one_go_are_those_of_whole_matrices(apart, more):
    """The part of a penalty that a posterior has, jointly with a level that `more` other information is on."""
    rng = np.random.default_rng(6)
    q, precision = 7, 2.5
    curvature, theta = rng.uniform(0.2, 4.0, (q, 1)), rng.normal(size=(q, 1))
    penalty = np.eye(q)
    if apart is not None:
        penalty = naive_evidence.walk_beside_missing(q, apart)
    whole = np.zeros((q + 1, q + 1))
    whole[:q, :q] = np.diag(curvature[:, 0]) + precision * penalty
    whole[q, :q] = whole[:q, q] = curvature[:, 0]
    whole[q, q] = curvature.sum() + more
    if apart is not None and more == 0.0:  # the level of a walk is the intercept's, which has no variance then
        expected = np.trace(penalty @ np.linalg.pinv(whole[:q, :q]))
    else:
        expected = np.trace(penalty @ np.linalg.inv(whole)[:q, :q])
    if apart is None:
        penalized, length = evaluate_ridge(curvature[:, 0], theta[:, 0], precision, more, 1e-5)
    else:
        share = unordered_ratio(q - apart)
        penalized, length = evaluate_walk(
            curvature[:, 0], theta[:, 0], apart, share, precision, 1e-8, *np.empty((2, q))
        )
    assert penalized == pytest.approx(expected, rel=1e-6)
    assert length == pytest.approx(float(theta[:, 0] @ penalty @ theta[:, 0]))


def test_symbols_that_never_meet_a_class_are_uncertain_and_not_nan():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"b": rng.integers(0, 40, 300).astype(str), "same": 1.0})
    y = rng.choice(list("xyz"), 300)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("error", RuntimeWarning)
        model = WideClassifier(**GLM).fit(X, y)
        drawn = WideRegressor(loss="squared_error", **GLM, n_posterior_samples=16).fit(X, (y == "x") * 1.0)
    assert ["separates" in str(one.message) for one in told] == [True]
    posterior = model.coefs_["b"][["sd x", "sd y", "sd z"]]
    met = pd.crosstab(X["b"], y).loc[posterior.index]
    assert not posterior.isna().any(axis=None)
    assert np.isinf(posterior[met.to_numpy() == 0].stack()).all()
    assert (model.coefs_["same"][list("xyz")].iloc[0] == 0.0).all()
    assert drawn.coefs_["same"]["value"].iloc[0] == 0.0


def test_the_chosen_loss_is_the_same_each_time():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.choice(list("abc"), 200)})
    y = rng.poisson(2, 200)
    one, other = (WideRegressor(**GLM).fit(X, y).losses_ for _ in range(2))
    pd.testing.assert_frame_equal(one, other)


@pytest.mark.parametrize("scoring", ["neg_log_loss", "roc_auc", "accuracy", lambda model, X, y: 1.0])
def test_scorers_of_other_things_are_told_of(scoring):
    X = pd.DataFrame({"a": list("abcd") * 20})
    with pytest.raises(ValueError, match=r"can't score numbers with these targets and weights \(.*[^.]\); use") as told:
        WideRegressor(scoring=scoring).fit(X, np.arange(80.0) + 1, sample_weight=np.arange(80.0) % 3 + 1)
    assert "_Known" not in str(told.value)
    assert " at 0x" not in str(told.value)


def test_scores_that_are_no_number_are_told_of():
    X = pd.DataFrame({"a": list("abcd") * 20})
    with pytest.raises(ValueError, match="gave NaN; use a scorer that gives a number"):
        WideRegressor(scoring=lambda model, X, y: np.nan).fit(X, np.arange(80.0) + 1)


def test_updates_that_shrink_by_a_ratio_are_extrapolated_to_their_limit():
    """By hand: moves of 1, 1/2, 1/4, ... come to 2; the next move after a longer one is a plain one."""
    aitken, at = Aitken(3), np.arange(3)
    np.testing.assert_array_equal(aitken.times(at, np.array([1.0, 1.0, 1.0])), [1.0, 1.0, 1.0])
    np.testing.assert_allclose(aitken.times(at, np.array([0.5, -0.5, 2.0])), [2.0, 1.0, 1.0])  # also not where it turns
    np.testing.assert_allclose(aitken.times(at, np.array([0.25, -0.25, 2.0])), [1.0, 2.0, 20.0])  # nor where it grows


@pytest.mark.parametrize("seed", range(3))
def test_a_variance_of_0_is_reached_at_the_usual_tolerance(seed):
    """Of small tables: updates creep towards 0, and ended at .03 where 0 was their limit."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.choice(list("abcdef"), 250), "b": rng.choice([f"v{i}" for i in range(40)], 250)})
    y = np.where(rng.logistic(size=250) + 2.0 * (X["a"] < "c") > 1.0, "yes", "no")
    found, limit = (
        WideClassifier(interactions=None, count_effect=False, tol=tol).fit(X, y).predict_proba(X)[:, 1]
        for tol in (1e-3, 1e-7)
    )
    np.testing.assert_allclose(found, limit, atol=0.01)


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_interactions_are_held_out_alike_in_any_order_of_columns(seed, classes):
    rng = np.random.RandomState(seed)
    X = pd.DataFrame({name: rng.choice(list("abcdefgh"), 120) for name in ("a", "b", "c")})
    y = (X["a"] < "d") * 1.0 + (X["b"] == X["c"]) + rng.normal(size=120)
    model = WideClassifier(interactions="pairwise") if classes else WideRegressor(interactions="pairwise")
    y = y > 0.5 if classes else y
    one, two = (model.fit(table, y).explain(table).sum(axis=1) for table in (X, X[["c", "a", "b"]]))
    np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("target", ["amounts", "counts", "classes"])
@pytest.mark.parametrize("seed", [0, 4])
def test_which_of_two_numbers_explains_does_not_depend_on_the_order_of_columns(seed, target):
    rng = np.random.RandomState(seed)
    z = rng.normal(size=150)
    X = pd.DataFrame({f"x{k}": z + rng.normal(size=150) / 3 for k in range(4)})
    y = np.exp(z + rng.normal(size=150) / 2)
    if target == "classes":
        y, model = y > 1, WideClassifier(interactions=None)
    else:
        model = WideRegressor() if target == "amounts" else WideRegressor(loss="poisson", interactions=None)
    one, two = (model.fit(table, y).explain(table).sum(axis=1) for table in (X, X[X.columns[::-1]]))
    np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_joint_steps_reach_the_optimum_from_afar(loss):
    """The information of the first step does not: it is another one there."""
    rng = np.random.RandomState(0)
    codes = [rng.randint(0, size, 400).astype(np.int32) for size in (1, 5, 8)]
    y = (rng.rand(400) < 0.3).astype(float) if loss == "logistic" else rng.poisson(2.0, 400).astype(float)
    terms = [
        SolverTerm(block, own, np.empty(0), own.max() + 1, Prior.RIDGE if block else Prior.FLAT)
        for block, own in enumerate(codes)
    ]
    solver = BlockDescent(terms, y, np.empty(0), np.zeros((400, 1)), BY_NAME[loss])
    solver.precision[1:] = 2.0
    solver.put([np.full((1, 1), 2.5), *(rng.normal(size=(term.size, 1)) / 2 for term in terms[1:])])
    n_steps, is_reached = finish(solver, 1.0, 1e-6)
    score = sum(theta[own, 0] for theta, own in zip(solver.theta, codes, strict=True))
    residual = y - (expit(score) if loss == "logistic" else np.exp(score))
    for index, (own, theta) in enumerate(zip(codes, solver.theta, strict=True)):
        gradient = np.bincount(own, residual, minlength=len(theta)) - (2.0 if index else 0.0) * theta[:, 0]
        np.testing.assert_allclose(gradient, 0.0, atol=1e-4)
    assert is_reached and 2 < n_steps < MAX_STEPS


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_an_interaction_of_nearly_unique_combinations_does_not_explain_the_noise(seed):
    """Fewer than a fifth of the rows share theirs: with it the dispersion of counts was .03 to .17."""
    rng, n = np.random.default_rng(seed), 600
    a, b = rng.integers(0, 100, n), rng.integers(0, 30, n)
    X = pd.DataFrame({"a": a.astype(str), "b": b.astype(str)})
    score = 0.3 * rng.normal(size=100)[a] + np.where(rng.normal(size=30) > 0, 0.5, -6.0)[b]
    y = rng.poisson(np.exp(score)).astype(float)
    model = WideRegressor(loss="poisson", interactions="pairwise", count_effect=False).fit(X, y)
    assert model.dispersion_ > 0.3
    assert model.variances_.loc["a:b", "variance"] == 0.0


def mostly_zeros(seed, n, share):
    """Amounts that most rows have not, with categories of one row or two, two numbers, and new rows."""
    rng, size = np.random.default_rng(seed), n + 3000
    X = pd.DataFrame(
        {
            "id": rng.integers(0, int(0.8 * n), size).astype(str),
            "g": rng.integers(0, n // 8, size).astype(str),
            "x": rng.normal(size=size),
            "z": np.exp(2.0 * rng.normal(size=size)),
        }
    )
    score = 0.7 * rng.normal(size=n // 8)[X["g"].astype(int)] + 0.5 * np.sin(2.0 * X["x"].to_numpy())
    has = {
        "at random": rng.random(size) < share,
        "by its categories": score > np.quantile(score, 1.0 - share),
    }
    return X, score, has, rng


MOSTLY_ZERO = ["poisson", "tweedie"], ["at random", "by its categories"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "share", "loss", "which"),
    [
        *((200, 0.1, *case) for case in product(*MOSTLY_ZERO)),
        (1000, 0.05, "poisson", "by its categories"),
        (1000, 0.05, "tweedie", "at random"),
        (3000, 0.05, "poisson", "at random"),
        (3000, 0.05, "tweedie", "by its categories"),
    ],
)
def test_targets_that_are_mostly_zero_do_not_end_shrinkage(n, share, loss, which):
    """Ids and bins fitted the few others exactly: the deviance of new rows was up to 1e8 times the constant model's."""
    power = 1.0 if loss == "poisson" else 1.5
    ratios = []
    for seed in range(4):
        X, score, has, rng = mostly_zeros(seed, n, share)
        amounts = rng.poisson(3.0 * np.exp(score)) if loss == "poisson" else np.exp(score + rng.normal(size=len(X)))
        y = np.where(has[which], amounts, 0.0)
        found = WideRegressor(loss=loss).fit(X[:n], y[:n]).predict(X[n:])
        constant = np.full(len(found), y[:n].mean())
        ratios.append(deviance(y[n:], found, power) / deviance(y[n:], constant, power))
    assert max(ratios) < 2.0
    assert np.mean(ratios) < (1.15 if which == "at random" else 0.9)


def deviance(y, mean, power):
    """Of poisson's loss (1) or tweedie's."""
    if power == 1.0:
        return np.mean(2.0 * (np.where(y > 0, y * np.log(np.where(y > 0, y, 1.0) / mean), 0.0) - y + mean))
    return np.mean(
        2.0
        * (
            y ** (2.0 - power) / ((1.0 - power) * (2.0 - power))
            - y * mean ** (1.0 - power) / (1.0 - power)
            + mean ** (2.0 - power) / (2.0 - power)
        )
    )


# Several terms: REML by dense algebra.


def dense_reml(y, effects):
    """Variances of effects, designs (n, q), and of the noise by restricted maximum likelihood, over their ratios."""
    ones = np.ones((len(y), 1))
    design = np.column_stack([ones, *effects])
    gram, right, sizes = design.T @ design, design.T @ y, [own.shape[1] for own in effects]

    def deviance(logs):
        ratios = np.exp(logs)
        penalty = np.concatenate(
            [[0.0], *(np.full(size, 1 / ratio) for size, ratio in zip(sizes, ratios, strict=True))]
        )
        lower = np.linalg.cholesky(gram + np.diag(penalty))
        left = y @ y - np.square(solve_triangular(lower, right, lower=True)).sum()
        noise = left / (len(y) - 1)
        logs_of = 2 * np.log(np.diag(lower)).sum() + np.dot(sizes, logs)
        return (len(y) - 1) * np.log(noise) + logs_of, noise

    found = minimize(lambda logs: deviance(logs)[0], np.full(len(effects), -0.5), method="Nelder-Mead", tol=1e-8)
    noise = deviance(found.x)[1]
    return np.exp(found.x) * noise, noise


@pytest.mark.parametrize("rows", [3, 10])
@pytest.mark.parametrize("formula", ["w[a] + u[a, b] + c[1]", "c[1] + (1 | a/b)", "w[a] + v[h] + u[a, b] + c[1]"])
@pytest.mark.parametrize("parts", [False, True])
def test_variances_of_nested_terms_are_those_of_reml(formula, rows, parts, monkeypatch):
    """Degrees of freedom given the others left nothing for the larger term (review)."""
    rng = np.random.default_rng(rows)
    a, b = np.repeat(np.arange(40), 3 * rows), np.tile(np.repeat(np.arange(3), rows), 40)
    h = np.where(rng.random(len(a)) < 0.8, a % 12, rng.integers(0, 12, len(a)))  # mostly nested, too
    effects = 0.7 * rng.normal(size=40)[a] + rng.normal(size=(40, 3))[a, b] + 0.5 * rng.normal(size=12)[h]
    y = effects + rng.normal(size=len(a))
    groupings = [a, a * 3 + b, h][: 3 if "v[h]" in formula else 2]
    wanted, noise = dense_reml(y, [np.eye(own.max() + 1)[own] for own in groupings])
    table = pd.DataFrame({"a": a.astype(str), "b": b.astype(str), "h": h.astype(str), "y": y})
    model = WideRegressor(f"y ~ {formula}", loss="squared_error", count_effect=False, tol=1e-6, max_iter=2000)
    if parts:
        monkeypatch.setattr("tabsym.models.wide.SAMPLE_ROWS", 0)
        model.fit(pyarrow.dataset.dataset(pyarrow.Table.from_pandas(table)))
    else:
        model.fit(table)
    names = ["1 | a", "1 | a:b"] if "|" in formula else ["w", "u", "v"]
    found = model.variances_.loc[names[: len(groupings)], "variance"]
    np.testing.assert_allclose(found, wanted, rtol=5e-3, atol=2e-3)
    assert model.dispersion_ == pytest.approx(noise, rel=2e-3)


@pytest.mark.parametrize("rows", [2, 6])
def test_variances_of_nested_columns_are_those_of_reml_by_default(rows):
    """Also where interactions are searched, of which a column and one within it have none."""
    rng = np.random.default_rng(rows)
    a, b = np.repeat(np.arange(40), 3 * rows), np.tile(np.repeat(np.arange(3), rows), 40)
    y = 0.7 * rng.normal(size=40)[a] + rng.normal(size=(40, 3))[a, b] + rng.normal(size=len(a))
    wanted, noise = dense_reml(y, [np.eye(40)[a], np.eye(120)[a * 3 + b]])
    table = pd.DataFrame({"a": a.astype(str), "ab": np.char.add(a.astype(str), np.char.add("-", b.astype(str)))})
    model = WideRegressor(loss="squared_error", count_effect=False, tol=1e-6, max_iter=2000).fit(table, y)
    assert model.interactions_.empty
    np.testing.assert_allclose(model.variances_.loc[["a", "ab"], "variance"], wanted, rtol=5e-3)
    assert model.dispersion_ == pytest.approx(noise, rel=2e-3)


def test_the_variance_of_a_curve_beside_categories_is_that_of_reml():
    """A random walk is a sum of independent differences; numbers that categories tell something of."""
    rng = np.random.default_rng(0)
    g = rng.integers(0, 25, 500)
    x = rng.normal(size=500) + 0.1 * g
    y = np.sin(2 * x) + 0.5 * rng.normal(size=25)[g] + 0.5 * rng.normal(size=500)
    table = pd.DataFrame({"x": x, "g": g.astype(str), "y": y})
    options = {"loss": "squared_error", "count_effect": False, "tol": 1e-6, "max_iter": 2000}
    model = WideRegressor("y ~ s(x) + w[g] + c[1]", **options).fit(table)
    curve = next(name for name in model.coefs_ if "x" in name)
    bins = np.searchsorted(model.coefs_[curve]["high"].to_numpy()[:-1], x)
    increments = (bins[:, None] > np.arange(bins.max())).astype(float)
    wanted, noise = dense_reml(y, [increments, np.eye(25)[g]])
    found = model.variances_.loc[[curve, "w"], "variance"]
    np.testing.assert_allclose(found, wanted, rtol=1e-2)
    assert model.dispersion_ == pytest.approx(noise, rel=5e-3)


@pytest.mark.parametrize("seed", range(3))
def test_variances_of_curves_by_category_are_those_of_reml(seed):
    """Coefficients of each category at 4, 16 and 32 bins about a common walk: four variances, some of them 0."""
    rng, n = np.random.default_rng(seed), 360
    g, x = rng.integers(0, 3, n), rng.normal(size=n)
    y = np.sin(2 * x) + np.array([0.0, 1.0, -1.0])[g] * x + 0.5 * rng.normal(size=n)
    table = pd.DataFrame({"x": x, "g": g.astype(str), "y": y})
    options = {"loss": "squared_error", "count_effect": False, "tol": 1e-7, "max_iter": 5000}
    model = WideRegressor("y ~ s(x, by=g) + c[1]", **options).fit(table)
    bins = np.searchsorted(model.coefs_["s(x)"]["high"].to_numpy()[:-1], x)
    effects = [(bins[:, None] > np.arange(bins.max())).astype(float)]
    for n_bins in (4, 16, 32):  # of as many rows each, up to a value
        edges = np.sort(x)[np.ceil(np.arange(1, n_bins) / n_bins * n).astype(int) - 1]
        _, cells = np.unique(g * n_bins + np.searchsorted(edges, x), return_inverse=True)
        effects.append(np.eye(cells.max() + 1)[cells])
    wanted, noise = dense_reml(y, effects)
    found = model.variances_.loc[["s(x)", "s(x, by=g) (4 bins)", "s(x, by=g) (16 bins)", "s(x, by=g)"], "variance"]
    np.testing.assert_allclose(found, wanted, rtol=1e-2, atol=2e-4)
    assert model.dispersion_ == pytest.approx(noise, rel=1e-3)


@pytest.mark.parametrize(
    ("limit", "is_joint"),
    [
        ({"MAX_OTHERS": 41}, True),
        ({"MAX_OTHERS": 40}, False),
        ({"MAX_CROSS_LARGEST": 4920}, True),
        ({"MAX_CROSS_LARGEST": 4919}, False),
    ],
)
def test_posteriors_are_joint_up_to_the_limits_of_their_matrices(limit, is_joint, monkeypatch):
    """Of 40 coefficients and the intercept beside 120, each limit at that number and one below."""
    for name, value in limit.items():
        monkeypatch.setattr(f"tabsym.solvers.newton.information.{name}", value)
    rng = np.random.default_rng(0)
    a, b = np.repeat(np.arange(40), 6), np.tile(np.repeat(np.arange(3), 2), 40)
    y = 0.7 * rng.normal(size=40)[a] + rng.normal(size=(40, 3))[a, b] + rng.normal(size=240)
    wanted, _ = dense_reml(y, [np.eye(40)[a], np.eye(120)[a * 3 + b]])
    table = pd.DataFrame({"a": a.astype(str), "b": b.astype(str), "y": y})
    options = {"loss": "squared_error", "count_effect": False, "tol": 1e-6, "max_iter": 2000}
    model = WideRegressor("y ~ w[a] + u[a, b] + c[1]", **options).fit(table)
    found = model.variances_.loc[["w", "u"], "variance"]
    assert np.allclose(found, wanted, rtol=5e-3) == is_joint, (found, wanted)


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
@pytest.mark.parametrize("formula", ["y ~ w[a]", "y ~ s(x)", "y ~ c[1]", "y ~ w[a] + s(x)"])
def test_formulas_of_few_terms_fit_without_a_word(formula, loss, capfd):
    """Of one term without an intercept nothing is beside it, and LAPACK complained of an empty matrix."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.choice(list("abcd"), 300), "x": rng.normal(size=300), "y": rng.poisson(2.0, 300)})
    model = WideRegressor(formula, loss=loss).fit(table)
    assert np.isfinite(model.predict(table)).all()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("guess", ["right", "wrong", "none", "in part"])
def test_an_inverse_by_its_likely_null_space_is_the_pseudoinverse(guess):
    """Of information whose diagonal is not 1: scaled to that, as everywhere."""
    rng = np.random.default_rng(3)
    null = np.array([[1.0, 1.0, 1.0, 0.0, 0.0, -1.0], [0.0, 0.0, 0.0, 1.0, 1.0, -1.0]]).T
    rows = rng.normal(size=(9, 6)) * [1.0, 2.0, 0.3, 1.0, 4.0, 1.0]
    rows -= rows @ null @ np.linalg.pinv(null)
    information = rows.T @ rows
    root = np.sqrt(np.diag(information))
    wanted = np.linalg.pinv(information / np.outer(root, root), rcond=1e-10, hermitian=True) / np.outer(root, root)
    given = {"right": null, "wrong": np.eye(6)[:, :2], "none": null[:, :0], "in part": null[:, :1]}[guess]
    found, unread, unknown = inverse(information, given)
    np.testing.assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())
    assert not unread.any()
    np.testing.assert_allclose(np.linalg.matrix_rank(np.column_stack([unknown, null]), tol=1e-8), 2)


# -- Few events -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "n_rows", "n_positive", "n_terms", "wanted"),
    [
        ("logistic", 300, 15, 1, 0.75),
        ("logistic", 300, 285, 1, 0.75),
        ("logistic", 300, 60, 12, 0.0),
        ("logistic", 300, 60, 24, 0.5),
        ("logistic", 300, 15, 24, 0.875),
        ("poisson", 300, 30, 3, 0.5),
        ("tweedie", 300, 30, 3, 0.5),
        ("poisson", 40, 30, 8, 0.0),  # most are no zeros
        ("poisson", 40, 30, 10, 0.2),
        ("gamma", 30, 30, 6, 0.0),
        ("squared_error", 300, 3, 60, 0.0),
        ("squared_error", 60, 3, 30, 0.6),
        ("squared_error", 60, 3, 0, 0.0),
        ("multinomial", 300, 3, 100, 0.0),
    ],
)
def test_the_prior_of_variances_is_of_little_information(loss, n_rows, n_positive, n_terms, wanted):
    assert prior_of_variances(BY_NAME[loss], n_rows, n_positive, n_terms) == pytest.approx(wanted)


def test_the_prior_by_hand():
    """Pooled: (2 + 6 / 3) / (1 + 3) is 1, and 3 in units of the second term."""
    edf, squares = with_prior(np.array([1.0, 3.0]), np.array([2.0, 6.0]), 0.5, np.array([1.0, 3.0]))
    np.testing.assert_allclose(edf, [1.75, 3.75])
    np.testing.assert_allclose(squares, [2.5, 7.5])
    same = np.array([1.0, 3.0]), np.array([2.0, 6.0])
    for found, given in zip(with_prior(*same, 0.0, np.ones(2)), same, strict=True):
        np.testing.assert_array_equal(found, given)


@pytest.mark.parametrize("n_categories", [2, 4])
def test_variances_with_a_prior_beside_dense_algebra(n_categories):
    """Forty rows of twelve columns: updates of precisions by all coefficients' covariance, until they settle."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.integers(0, n_categories, (40, 12)).astype(str)).add_prefix("c")
    y = X["c0"].astype(int) + 0.7 * (X["c1"] == "1") + 0.5 * rng.normal(size=40)
    model = WideRegressor(loss="squared_error", interactions=None, count_effect=False, tol=1e-9, max_iter=20_000)
    model.fit(X, y)
    weight, n = 1.0 - 40 / (5 * 12), 40
    groups = [np.array(X[name].to_numpy()[:, None] == np.unique(X[name]), dtype=float) for name in X]
    design = np.column_stack([np.ones(n), *groups])
    owner = np.concatenate([[-1], *(np.full(own.shape[1], at) for at, own in enumerate(groups))])
    precision = np.full(12, 3.0)
    for _ in range(4_000):
        penalty = np.diag(np.where(owner < 0, 0.0, precision[owner]))
        covariance = np.linalg.inv(design.T @ design + penalty)
        theta = covariance @ design.T @ y
        used = np.array(
            [(owner == at).sum() - precision[at] * np.diag(covariance)[owner == at].sum() for at in range(12)]
        )
        squares = np.array([np.square(theta[owner == at]).sum() for at in range(12)])
        dispersion = np.square(y - design @ theta).sum() / (n - 1.0 - used.sum())
        pooled = squares.sum() / used.sum()
        precision = np.minimum(dispersion * (used + 1.5 * weight) / (squares + weight * pooled), 1e9)
    wanted = dispersion / precision
    found = model.variances_["variance"].reindex(X.columns).to_numpy()
    assert (wanted > 0.01).sum() >= 1
    np.testing.assert_allclose(found, wanted, rtol=0.03, atol=2e-3)


@pytest.mark.parametrize(("target", "worst"), [("classes", -0.15), ("counts", -0.1), ("amounts", -0.5)])
@pytest.mark.parametrize("formula", [None, "c[1] + u[c0]*v[c1] + a[c2]*b[c3]"])
def test_a_few_events_are_not_followed_by_many_columns(target, worst, formula):
    """D² of new rows where no column has an effect; by restricted likelihood it was -.4, -.2 and -1.3."""
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(rng.integers(0, 2, (5_300, 30)).astype(str)).add_prefix("c")
        counts = rng.poisson(0.03, len(X))
        y = counts.astype(float) if target == "counts" else np.array([rng.gamma(2.0, 0.5, one).sum() for one in counts])
        if np.count_nonzero(y[:300]) < 3:
            continue
        if target == "classes":
            y = (y > 0).astype(int)
            p = WideClassifier(formula).fit(X[:300], y[:300]).predict_proba(X[300:])[:, 1]
            lost = [-np.mean(np.log(np.where(y[300:] == 1, one, 1.0 - one))) for one in (p, y[:300].mean())]
        else:
            power = 1.0 if target == "counts" else 1.5
            model = WideRegressor(formula, loss="poisson" if target == "counts" else "tweedie").fit(X[:300], y[:300])
            predicted = model.predict(X[300:]), np.full(5_000, y[:300].mean())
            lost = [mean_tweedie_deviance(y[300:], one, power=power) for one in predicted]
        found.append(1.0 - lost[0] / lost[1])
    assert np.mean(found) > worst


def test_thirty_columns_of_sixty_rows_are_not_followed():
    """R² of new rows where no column has an effect; by restricted likelihood it was -.3."""
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(rng.integers(0, 2, (2_060, 30)).astype(str)).add_prefix("c")
        y = rng.normal(size=len(X))
        model = WideRegressor(loss="squared_error").fit(X[:60], y[:60])
        found.append(1.0 - np.mean(np.square(y[60:] - model.predict(X[60:]))) / np.var(y[60:]))
    assert np.mean(found) > -0.2
