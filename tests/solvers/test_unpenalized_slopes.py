"""Unpenalized slopes: numbers that are collinear, long-tailed, far from where an exp is a number."""

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import sparse
from scipy.optimize import minimize
from scipy.sparse.linalg import splu
from scipy.special import logsumexp, softmax

from tabsym import WideClassifier, WideRegressor
from tabsym.losses import Tweedie
from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.joint import _EliminatedOfClasses
from tabsym.solvers.newton.steps import JointSteps, inverse_of
from tests.options import ADDITIVE, GLM
from tests.solver import inner

N = 1500


def alike(distance):
    """Two numbers that differ by `distance`, and what they tell together."""
    rng = np.random.default_rng(0)
    u, e = rng.normal(size=(2, N))
    return pd.DataFrame({"u": u, "u2": u + distance * e, "v": rng.normal(size=N)}), e, rng


def optimum(X, loss_of, n_scores):
    """The least mean loss of an intercept and slopes, by L-BFGS in axes without correlation."""
    design = np.column_stack([np.ones(len(X)), np.linalg.qr(X - X.mean())[0] * np.sqrt(len(X))])

    def loss(beta):
        return loss_of(design @ beta.reshape(-1, n_scores))

    start = np.zeros(design.shape[1] * n_scores)
    return minimize(loss, start, method="BFGS", options={"gtol": 1e-8}).fun


@pytest.mark.parametrize("distance", [0.1, 0.03, 0.003])
@pytest.mark.parametrize("loss", ["squared_error", "poisson", "gamma"])
def test_amounts_of_numbers_that_are_nearly_the_same(distance, loss):
    X, e, rng = alike(distance)
    y = 2 * e + rng.normal(size=N) if loss == "squared_error" else rng.poisson(np.exp(0.5 * e)) + 0.1

    def loss_of(score):
        score = score[:, 0]
        if loss == "squared_error":
            return np.mean((y - score) ** 2) / 2
        return np.mean(np.exp(score) - y * score) if loss == "poisson" else np.mean(y * np.exp(-score) + score)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = WideRegressor(loss=loss, **ADDITIVE).fit(X, y)
    predicted = model.predict(X)
    score = predicted if loss == "squared_error" else np.log(predicted)
    assert loss_of(score[:, None]) == pytest.approx(optimum(X, loss_of, 1), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("distance", [0.1, 0.003])
@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson", "tweedie"])
def test_what_numbers_say_together_is_what_counts(distance, loss):
    """Not whether it is said by two that are nearly the same, or by one and their difference."""
    X, e, rng = alike(distance)
    y = 2 * e + rng.standard_t(3, size=N) if loss in ("squared_error", "huber") else rng.poisson(np.exp(0.5 * e)) + 0.0
    model = WideRegressor(loss=loss, **ADDITIVE, tol=3e-7)
    plain = model.fit(X.assign(u2=e), y).predict(X.assign(u2=e))
    np.testing.assert_allclose(model.fit(X, y).predict(X), plain, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("distance", [0.1, 0.03, 0.003])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_classes_of_numbers_that_are_nearly_the_same(distance, n_classes, weighted):
    X, e, rng = alike(distance)
    score = np.outer(e, np.linspace(-2, 2, n_classes))
    y = np.argmax(score + rng.gumbel(size=score.shape), axis=1)
    weight = rng.uniform(0.1, 2.0, N) if weighted else np.ones(N)

    def loss_of(score):
        return np.average(logsumexp(score, axis=1) - score[np.arange(N), y], weights=weight)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = WideClassifier(**ADDITIVE).fit(X, y, sample_weight=weight if weighted else None)
    found = loss_of(np.log(model.predict_proba(X)))
    assert found == pytest.approx(optimum(X, loss_of, n_classes), abs=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("tail", [1, 3, 4])
def test_a_number_with_a_long_tail_ends_at_the_same_optimum_in_any_unit(tail, n_classes):
    """Beside the intercept, as it is and standardised; the scores of its largest are beyond what an exp can hold."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=N)
    X = pd.DataFrame({"a": rng.choice(list("abcd"), N), "u": np.exp(tail * z)})
    noisy = z + rng.normal(size=N)
    y = (noisy > 0).astype(int) + (noisy > 1.5) * (n_classes == 3)
    options = ADDITIVE | {"tol": 1e-5, "alpha": 0.01}
    plain = inner(WideClassifier(**options), standardize=False).fit(X, y)
    found = WideClassifier(**options).fit(X, y)
    np.testing.assert_allclose(found.predict_proba(X), plain.predict_proba(X), atol=2e-3)
    assert found.loss_curve_[-1] < np.mean(-np.log(np.bincount(y)[y] / N)) - 0.02


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_few_rows_of_huge_weight(seed, n_classes):
    """Numbers are then in units of next to nothing, and steps were beyond any exp."""
    rng = np.random.RandomState(seed)
    X = pd.DataFrame({"a": rng.choice(list("abc"), 60), "u": rng.randn(60) * 3 + 5})
    weight = np.where(rng.rand(60) < 0.05, 1e8, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = WideClassifier(**ADDITIVE, alpha=0.1).fit(X, np.arange(60) % n_classes, sample_weight=weight)
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_offsets_far_beyond_an_exp(n_classes):
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"a": rng.choice(list("ab"), 80), "u": rng.normal(size=80)})
    y = np.arange(80) % n_classes
    offset = np.zeros((80, n_classes)) if n_classes > 2 else np.zeros(80)
    offset[0] = (800.0 * (np.arange(n_classes) != y[0])) if n_classes > 2 else (-800.0 if y[0] else 800.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = WideClassifier(**ADDITIVE, alpha=0.1).fit(X, y, offset=offset)
    assert 9 < model.loss_curve_[-1] < 12  # 800 of 80 rows


def test_numbers_that_say_the_same_and_nothing():
    rng = np.random.default_rng(0)
    u = rng.normal(size=N)
    X = pd.DataFrame({"u": u, "same": u, "double": 2 * u, "one": 1.0, "a": rng.choice(list("ab"), N)})
    y = u + rng.normal(size=N)
    alone = WideRegressor(loss="squared_error", **ADDITIVE).fit(X[["u", "a"]], y)
    found = WideRegressor(loss="squared_error", **ADDITIVE).fit(X, y)
    np.testing.assert_allclose(found.predict(X), alone.predict(X[["u", "a"]]), atol=1e-4)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_amounts_of_numbers_without_a_mean(seed, loss):
    """A whole step of Newton's goes beyond any number here: steps are halved until the loss falls."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.standard_cauchy(60), "v": rng.standard_cauchy(60)})
    mean = np.exp(np.clip(0.7 * X["x"], -8, 8))
    y = rng.poisson(mean) if loss == "poisson" else mean * rng.gamma(2, 0.5, 60) + 1e-3
    found = WideRegressor(loss=loss, **GLM, tol=3e-6).fit(X, y)
    z = np.column_stack([np.ones(60), X / X.std()])

    def loss_of(beta):
        score = np.clip(z @ beta, -700, 700)
        return np.mean(np.exp(score) - y * score if loss == "poisson" else y * np.exp(-score) + score)

    level = np.array([np.log(y.mean()), 0.0, 0.0])
    least = min(minimize(loss_of, level, method=method, tol=1e-10).fun for method in ("Nelder-Mead", "BFGS"))
    predicted = found.predict(X)
    score = np.log(np.maximum(predicted, 1e-300))
    own = np.mean(predicted - y * score if loss == "poisson" else y / predicted + score)
    assert own <= least + 1e-3 * max(1.0, abs(least))


@pytest.mark.parametrize("distance", [0.3, 0.01])
@pytest.mark.parametrize("n_classes", [0, 2])
def test_draws_of_numbers_that_are_nearly_the_same(distance, n_classes):
    """Drawn by turns they crept, and were up to fifty times too certain."""
    X, e, rng = alike(distance)
    y = 2 * e + rng.normal(size=N)
    y = (y > 0).astype(int) if n_classes else y
    exact, drawn = (
        WideClassifier(**ADDITIVE, n_posterior_samples=n_samples)
        if n_classes
        else WideRegressor(loss="squared_error", **ADDITIVE, n_posterior_samples=n_samples)
        for n_samples in (0, 300)
    )
    exact.fit(X, y)
    drawn.fit(X, y)
    for name in X:
        assert drawn.coefs_[name]["sd"].iloc[0] == pytest.approx(exact.coefs_[name]["sd"].iloc[0], rel=0.15)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("distance", [0.5, 0.02])
@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_an_intercept_is_as_uncertain_as_slopes_together_make_it(standardize, distance, n_classes):
    """At the raw zero of numbers that lie far from it, jointly with their slopes, which lean on each other."""
    X, e, rng = alike(distance)
    X += [5.0, 5.0, -2.0]
    score = np.outer(e, np.arange(max(n_classes, 2)))
    y = np.argmax(score + rng.gumbel(size=score.shape), axis=1) if n_classes else 2 * e + rng.normal(size=N)
    options = ADDITIVE | {"tol": 3e-7, "alpha": 0.1}
    model = WideClassifier(**options) if n_classes else WideRegressor(loss="squared_error", **options)
    inner(model, standardize=standardize).fit(X, y)
    design = np.column_stack([np.ones(N), X])
    if n_classes == 0:
        want = np.sqrt(model.dispersion_ * np.diag(np.linalg.inv(design.T @ design)))[:, None]
    else:
        p = model.predict_proba(X)
        q = [p[:, 1:]] if n_classes == 2 else [p]
        hessian = np.zeros((4 * q[0].shape[1],) * 2)
        for row, chances in zip(design, q[0], strict=True):
            hessian += np.kron(np.outer(row, row), np.diag(chances) - np.outer(chances, chances))
        k = q[0].shape[1]
        beside = np.kron(np.eye(4), np.eye(k) - (1.0 / k if k > 1 else 0.0))
        scale = np.kron(np.sqrt(np.mean(np.square(design), axis=0)), np.ones(k))
        inverse = np.linalg.pinv(hessian / np.outer(scale, scale), rcond=1e-11, hermitian=True) / np.outer(scale, scale)
        want = np.sqrt(np.diag(beside @ inverse @ beside)).reshape(4, k)
    names = ["(intercept)", *X]
    sd = [f"sd {c}" for c in range(3)] if n_classes == 3 else ["sd"]
    found = np.array([model.coefs_[name][sd].to_numpy()[0] for name in names])
    np.testing.assert_allclose(found, want, rtol=2e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("start", [300.0, 800.0])
def test_starts_far_beyond_an_exp(start, n_classes):
    """The optimum, or a warning that it is not: no rows whose linear predictor is no number."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(list("abc"), 90)})
    y = np.arange(90) % n_classes
    table = pd.DataFrame(0.0, index=list("abc"), columns=range(n_classes))
    table.loc["b", 0] = start
    best = WideClassifier(**ADDITIVE, alpha=0.1).fit(X, y).predict_proba(X)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        init = {"a": table if n_classes > 2 else table[0]}
        found = inner(WideClassifier(**ADDITIVE, alpha=0.1), init=init).fit(X, y).predict_proba(X)
    words = [str(one.message) for one in told]
    assert all("short of the optimum" in one for one in words), words
    assert np.isfinite(found).all()
    assert words or np.allclose(found, best, atol=1e-3)


def test_numbers_that_rows_say_nothing_of_have_no_part():
    """Flags of missing values of which these rows have none, beside numbers of any size."""
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(50, 6)) * [1.0, 1e6, 0.0, 1e-6, 0.0, 1.0]
    information = columns.T @ columns
    found = inverse_of(information, np.diag(information), 1e-12)
    some = [0, 1, 3, 5]
    wanted = np.zeros((6, 6))
    wanted[np.ix_(some, some)] = np.linalg.inv(information[np.ix_(some, some)])
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=0)


@pytest.mark.parametrize("value", [0.1, 0.7, 1 / 3, 1e5 + 0.1, -0.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_numbers", [0, 4])
def test_a_constant_number_says_nothing(value, weighted, n_numbers):
    """However its mean rounds, alone and among others."""
    rng = np.random.default_rng(1)
    for n in (300, 777):
        X = pd.DataFrame({f"x{place}": rng.normal(size=n) for place in range(n_numbers)})
        X["a"] = rng.integers(0, 5, n).astype(str)
        y = 3 + X["a"].astype(int) + rng.normal(size=n)
        weight = rng.uniform(size=n) if weighted else None
        X.insert(n_numbers // 2, "k", value)
        model = WideRegressor(loss="squared_error", **ADDITIVE).fit(X, y, sample_weight=weight)
        assert model.coefs_["k"]["value"].abs().max() < 1e-9
        alone = WideRegressor(loss="squared_error", **ADDITIVE).fit(X.drop(columns="k"), y, sample_weight=weight)
        np.testing.assert_allclose(model.predict(X), alone.predict(X.drop(columns="k")), rtol=1e-3)


@pytest.mark.parametrize(
    "information",
    [[[0.0]], [[2.0]], [[1.0, 1.0], [1.0, 1.0]], [[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 0.0]]],
    ids=["nothing", "one", "confounded", "one without rows"],
)
def test_directions_without_information_have_no_inverse(information):
    matrix = np.array(information)
    np.testing.assert_allclose(inverse_of(matrix, np.diag(matrix)), np.linalg.pinv(matrix), atol=1e-12)


def test_what_others_leave_nothing_of_has_no_inverse():
    assert inverse_of(np.array([[1e-13]]), np.ones(1)) == 0.0


def test_no_step_is_taken_where_information_overflows():
    """The Hessian of one row is infinite, and the other categories' information is not."""
    information = np.array([[np.inf, np.inf, 2.0], [np.inf, np.inf, 0.0], [2.0, 0.0, 2.0]])
    steps = JointSteps(information[None], is_constant=False).steps(np.ones((3, 1)))
    assert (steps == 0.0).all()


def within(values, *codes):
    """Values less the means of their categories, in turn until nothing changes."""
    values = np.asarray(values, dtype=float)
    for _ in range(200):
        for own in codes:
            values = values - (np.bincount(own, values) / np.bincount(own))[own]
    return values


@pytest.mark.parametrize("n_units", [40, 3000])
@pytest.mark.parametrize("ratio", [1.0, 1e-2, 1e-3, 1e-4])
def test_a_slope_that_categories_nearly_determine_is_at_the_optimum(n_units, ratio):
    """A panel: populations differ by far more between cities than over the years; the slope is that of the latter."""
    rng = np.random.default_rng(0)
    n = max(2000, 8 * n_units)
    city, year = np.arange(n) % n_units, np.arange(n) // n_units % 7
    size, change = rng.normal(size=n_units), ratio * rng.normal(size=n)
    y = rng.normal(0, 2, n_units)[city] + 0.3 * np.arange(7)[year] + 0.1 * change / ratio + rng.normal(size=n)
    table = pd.DataFrame({"city": city.astype(str), "year": year.astype(str), "size": size[city] + change})
    own, target = within(change, city, year), within(y, city, year)
    slope = own @ target / (own @ own)
    sd = np.sqrt(np.square(target - slope * own).sum() / (n - n_units - 7) / (own @ own))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = WideRegressor(loss="squared_error", alpha=0.0, numeric="linear", count_effect=False, interactions=None)
        model.fit(table, y)
    found = model.coefs_["size"].iloc[0]
    assert abs(found["value"] - slope) < 2e-3 * sd
    assert found["sd"] == pytest.approx(sd, rel=1e-4)


@pytest.mark.parametrize("formula", ["w[home] - w[away] + s[1]*d + c[1]", "v[home]*z + s[1]*d*z + c[1]"])
@pytest.mark.parametrize("kind", ["squared", "logistic", "poisson"])
def test_formulas_whose_terms_nearly_determine_others_are_at_the_optimum(formula, kind):
    """Where the same number is without what the categories say of it, the coefficient is the same."""
    rng = np.random.default_rng(1)
    n, size = 4000, rng.normal(0, 3000, 12)
    home = rng.integers(0, 12, n)
    away = (home + rng.integers(1, 12, n)) % 12
    change, z = rng.normal(size=n), rng.normal(size=n)
    between = size[home] - size[away] if "away" in formula else 45_000.0
    score = (0.2 if kind == "logistic" else 0.12) * change * (z if "z" in formula else 1.0)
    table = pd.DataFrame({"home": home.astype(str), "away": away.astype(str), "z": z})
    if kind == "squared":
        model, y = WideRegressor(loss="squared_error", alpha=0.0, formula=formula), score + rng.normal(size=n)
    elif kind == "poisson":
        model, y = WideRegressor(loss="poisson", alpha=0.0, formula=formula), rng.poisson(np.exp(score))
    else:
        model, y = WideClassifier(alpha=0.0, formula=formula), rng.random(n) < 1 / (1 + np.exp(-score))
    want = model.fit(table.assign(d=change), y).coefs_["s"].iloc[0]
    found = model.fit(table.assign(d=between + change), y).coefs_["s"].iloc[0]
    assert abs(found["value"] - want["value"]) < 2e-3 * want["sd"]
    assert found["sd"] == pytest.approx(want["sd"], rel=1e-3)
    assert abs(want["value"]) > 3 * want["sd"]


@pytest.mark.parametrize("classes", [2, 3])
def test_coefficients_that_cancel_are_no_separation(classes):
    """Those of cities beside their population are large, and so are their deviations, but no row is nearly certain."""
    rng = np.random.default_rng(2)
    city, size, change = rng.integers(0, 30, 1500), np.exp(rng.normal(12, 1.5, 30)), rng.normal(0, 100, 1500)
    score = 0.3 * change / 100 + rng.normal(0, 0.5, 30)[city]
    y = np.argmax(np.outer(score, np.arange(classes)) + rng.gumbel(size=(1500, classes)), axis=1)
    table = pd.DataFrame({"city": city.astype(str), "size": size[city] + change})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = WideClassifier("w[city] + s[1]*size + c[1]", alpha=0.0).fit(table, y)
    cities = model.coefs_["w"].filter(regex="^(?!rows)").to_numpy()
    assert np.isfinite(cities).all() and np.abs(cities).max() > 6.0


@pytest.mark.parametrize("ratio", [1.0, 1e-2, 1e-3])
def test_a_slope_beside_two_large_terms_is_at_the_optimum(ratio):
    """Workers who change between firms: two terms of over a thousand categories, and what varies within both."""
    rng = np.random.default_rng(0)
    n_workers, n_firms, n_years = 2500, 1300, 6
    worker, n = np.repeat(np.arange(n_workers), n_years), n_workers * n_years
    first, second = rng.integers(0, n_firms, (2, n_workers))
    firm = np.where(np.tile(np.arange(n_years) < 3, n_workers), first[worker], second[worker])
    change = ratio * rng.normal(size=n)
    y = rng.normal(size=n_workers)[worker] + rng.normal(size=n_firms)[firm] + 0.05 * change / ratio + rng.normal(size=n)
    table = pd.DataFrame({"worker": worker.astype(str), "firm": firm.astype(str)})
    table["x"] = rng.normal(size=n_workers)[worker] + change
    own, target = within(change, worker, firm), within(y, worker, firm)
    slope = own @ target / (own @ own)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = WideRegressor("u[worker] + v[firm] + s[1]*x + c[1]", loss="squared_error", alpha=0.0).fit(table, y)
    found = model.coefs_["s"].iloc[0]
    assert abs(found["value"] - slope) < 2e-3 * found["sd"]
    assert found["sd"] == pytest.approx(np.sqrt(model.dispersion_ / (own @ own)), rel=0.1)  # of so many, conditional


@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_separation_in_a_formula_that_multiplies_is_told_of(alpha):
    """One category has one class; with a penalty there is an optimum, and nothing to say."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"g": rng.choice(list("pqr"), 600), "h": rng.choice(list("xy"), 600)})
    table["z"] = rng.normal(size=600)
    y = np.where(table["z"] * (table["g"] == "p") * 4 + rng.logistic(size=600) > 0, "yes", "no")
    y = np.where(table["g"] == "q", np.where(table["z"] > 0, "yes", "no"), y)  # decided by the sign of z
    model = WideClassifier("k[g]*m[h]*z + w[g] + c[1]", alpha=alpha)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(table, y)
    assert any("grow without end" in str(one.message) for one in told) == (alpha == 0.0)


@pytest.mark.parametrize(("power", "far"), [(1.2, 1e4), (1.5, 3e3), (1.5, 1e6), (1.8, 2e3)])
def test_a_target_of_0_far_out_does_not_stop_a_tweedie_fit(power, far):
    """Its mean is 0, and what else there is of it is 0 times infinity; the optimum is that of the other rows."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=2000)
    y = rng.gamma(1.0, np.exp(0.5 * x)) * (rng.random(2000) < 0.7)
    x[0], y[0] = -far, 0.0
    table = pd.DataFrame({"x": x, "y": y})
    model = WideRegressor("y ~ s[1]*x + c[1]", loss=Tweedie(power), alpha=0.0)
    found, want = (model.fit(rows).coefs_["s"].iloc[0] for rows in (table, table[1:]))
    assert abs(found["value"] - want["value"]) < 0.02 * want["sd"]


def test_gamma_with_weights_of_many_orders_ends_at_the_optimum():
    """Steps by the information, which is not the Hessian, converge linearly; the gradients are 0 in the end."""
    rng = np.random.default_rng(10)
    n, k = 300, 30
    a, b, x = rng.integers(0, k, n), rng.integers(0, k, n), rng.normal(size=n)
    y, weight = rng.gamma(0.5, 2.0, n) + 1e-9, 10.0 ** rng.uniform(-4, 4, n)
    table = pd.DataFrame({"a": a.astype(str), "b": b.astype(str), "x": x, "y": y})
    model = WideRegressor("y ~ w[a] + v[b] + s[1]*x + c[1]", loss="gamma", alpha=0.0)
    mean = model.fit(table, sample_weight=weight).predict(table)
    slope, curvature = weight * (1.0 - y / mean), weight
    scale = model.dispersion_ * weight.mean()
    for codes in (a, b):
        gradient, information = np.bincount(codes, slope), np.bincount(codes, curvature)
        assert np.abs(gradient / np.sqrt(information * scale)).max() < 2e-3
    assert abs((slope * x).sum()) / np.sqrt((weight * x * x).sum() * scale) < 2e-3


@pytest.mark.parametrize("kind", ["logistic", "poisson"])
@pytest.mark.parametrize("far", [1e5, 1e6, 1e7])
def test_a_row_that_is_certain_says_nothing_however_far_out(kind, far):
    """Its Hessian is 0, of which any lower bound times the square of the number would be information."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=2000)
    if kind == "poisson":
        y, model = rng.poisson(np.exp(0.5 * x)), WideRegressor("s[1]*x + c[1]", loss="poisson", alpha=0.0)
    else:
        y, model = rng.random(2000) < 1 / (1 + np.exp(-0.5 * x)), WideClassifier("s[1]*x + c[1]", alpha=0.0)
    x[0], y[0] = -far, 0
    table = pd.DataFrame({"x": x})
    found, want = (model.fit(table[rows], y[rows]).coefs_["s"].iloc[0] for rows in (slice(None), slice(1, None)))
    assert abs(found["value"] - want["value"]) < 1e-3 * want["sd"]
    assert found["sd"] == pytest.approx(want["sd"], rel=5e-3)


@pytest.mark.parametrize("alpha", [0.0, 1e-3])
def test_penalties_that_are_given_for_every_term_are_those_of_a_number(alpha):
    """Several classes, and a number that categories nearly determine; beside L-BFGS."""
    rng = np.random.default_rng(3)
    n, n_cities, n_kinds, k = 3000, 30, 8, 3
    city = rng.integers(0, n_cities, n)
    kind = np.where(rng.random(n) < 0.05, rng.integers(0, n_kinds, n), city % n_kinds)
    size = 0.3 * city + 0.05 * rng.normal(size=n)
    scores = 0.5 * rng.normal(size=(n_cities, k))[city] + 0.5 * rng.normal(size=(n_kinds, k))[kind]
    y = np.argmax(scores + rng.gumbel(size=(n, k)), axis=1)
    z = (size - size.mean()) / size.std()
    design = np.column_stack([np.eye(n_cities)[city], np.eye(n_kinds)[kind], z, np.ones(n)])
    penalties = np.append(np.full(n_cities + n_kinds, alpha * n), [0.0, 0.0])[:, None]

    def loss(beta):
        beta = beta.reshape(-1, k)
        eta = design @ beta
        total = logsumexp(eta, axis=1, keepdims=True)
        slopes = design.T @ (np.exp(eta - total) - np.eye(k)[y]) + penalties * beta
        return (total[:, 0] - eta[np.arange(n), y]).sum() + 0.5 * (penalties * beta**2).sum(), slopes.ravel()

    options = {"maxiter": 50_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-8, "maxcor": 50}
    want = minimize(loss, np.zeros(design.shape[1] * k), jac=True, method="L-BFGS-B", options=options).x
    slope = want.reshape(-1, k)[-2]
    table = pd.DataFrame({"city": city.astype(str), "kind": kind.astype(str), "size": size})
    for given in (alpha, {"city": alpha, "kind": alpha}):
        plain = {"numeric": "linear", "interactions": None, "count_effect": False}
        model = WideClassifier(alpha=given, **plain).fit(table, y)
        found = model.coefs_["size"].to_numpy().ravel()
        assert np.abs(found[:k] - (slope - slope.mean()) / size.std()).max() < 5e-3 * found[k:].min()


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "alpha", [0.0, {"worker": 0.0, "firm": 0.0, "year": 0.0}, {"worker": 1e-6, "firm": 1e-6, "year": 1.0}, 1e-6]
)
def test_two_large_terms_that_few_rows_connect_are_at_the_optimum(alpha, weighted, monkeypatch):
    """Workers and firms, of which few change; beside sparse normal equations."""
    rng = np.random.default_rng(2)
    n_workers, n_firms, n_years = 4500, 1500, 5
    worker, year = np.repeat(np.arange(n_workers), n_years), np.tile(np.arange(n_years), n_workers)
    firm = rng.integers(0, n_firms, n_workers)[worker]
    for t in range(1, n_years):
        own = np.arange(n_workers) * n_years + t
        firm[own] = np.where(rng.random(n_workers) < 0.05, rng.integers(0, n_firms, n_workers), firm[own - 1])
    n = len(worker)
    y = 0.4 * rng.normal(size=n_workers)[worker] + 0.4 * rng.normal(size=n_firms)[firm] + 0.4 * rng.normal(size=n)
    columns = ((worker, n_workers), (firm, n_firms), (year, n_years), (np.zeros(n, dtype=int), 1))
    design = sparse.hstack([sparse.csr_array((np.ones(n), (np.arange(n), own)), (n, q)) for own, q in columns]).tocsr()
    weight = rng.exponential(size=n) ** 2 if weighted else np.ones(n)
    given = list(alpha.values()) if isinstance(alpha, dict) else [alpha] * 3
    penalty = np.repeat(np.append(given, 0.0) * weight.sum(), [n_workers, n_firms, n_years, 1])
    turned = (design * weight[:, None]).T
    solved = splu((turned @ design + sparse.diags_array(penalty + 1e-9)).tocsc())
    beta = solved.solve(turned @ y)
    for _ in range(8):
        beta += solved.solve(turned @ (y - design @ beta) - penalty * beta)
    table = pd.DataFrame({"worker": worker.astype(str), "firm": firm.astype(str), "year": year.astype(str)})
    model = WideRegressor(loss="squared_error", alpha=alpha, interactions=None, count_effect=False)
    update_blocks, made = BlockDescent.update_blocks, []
    monkeypatch.setattr(BlockDescent, "update_blocks", lambda solver: made.append(1) or update_blocks(solver))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(table, y, sample_weight=weight if weighted else None)
    assert model.n_iter_ > len(made)  # iterations, and joint steps
    np.testing.assert_allclose(model.predict(table), design @ beta, atol=1e-4)


@pytest.mark.slow
def test_an_unpenalized_term_that_a_large_firm_nearly_determines_is_at_the_optimum():
    """Beside large penalized terms: the firm has nearly all rows of its region, and hardly a penalty for so many."""
    rng = np.random.default_rng(0)
    n, n_workers, n_firms = 20_000, 1600, 1300
    worker, firm = rng.integers(0, n_workers, n), rng.integers(0, n_firms, n)
    firm[: n // 3] = 0
    region = np.where(firm == 0, 0, 1 + firm % 3)
    y = 0.4 * rng.normal(size=n_workers)[worker] + 0.4 * rng.normal(size=n_firms)[firm] + 0.4 * rng.normal(size=n)
    columns = ((worker, n_workers), (firm, n_firms), (region, 4), (np.zeros(n, dtype=int), 1))
    design = sparse.hstack([sparse.csr_array((np.ones(n), (np.arange(n), own)), (n, q)) for own, q in columns]).tocsr()
    alpha = {"worker": 1e-3, "firm": 2e-4, "region": 0.0}
    penalty = np.repeat(np.append(list(alpha.values()), 0.0) * n, [n_workers, n_firms, 4, 1])
    solved = splu((design.T @ design + sparse.diags_array(penalty + 1e-9)).tocsc())
    beta = solved.solve(design.T @ y)
    for _ in range(8):
        beta += solved.solve(design.T @ (y - design @ beta) - penalty * beta)
    table = pd.DataFrame({"worker": worker.astype(str), "firm": firm.astype(str), "region": region.astype(str)})
    model = WideRegressor(loss="squared_error", alpha=alpha, interactions=None, count_effect=False).fit(table, y)
    found = model.coefs_["region"]["value"].loc[list("0123")].to_numpy()
    regions = beta[n_workers + n_firms : -1]
    np.testing.assert_allclose(found - found[1], regions - regions[1], atol=1e-4)


@pytest.mark.slow
def test_several_classes_and_slopes_of_as_many_categories_solve_the_score_equations():
    """Two terms are the largest: by category and output, fitted probabilities and classes have the same sums."""
    rng = np.random.default_rng(0)
    n, n_cities, k = 12_000, 240, 3
    city, x = rng.integers(0, n_cities, n), rng.normal(size=n)
    level, slope = 0.5 * rng.normal(size=(2, n_cities, k))
    y = np.argmax(level[city] + slope[city] * x[:, None] + rng.gumbel(size=(n, k)), axis=1)
    table = pd.DataFrame({"city": city.astype(str), "x": x})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # means are not unique without penalties
        model = WideClassifier("u[city] + v[city]*x + c[1]", alpha=0.0).fit(table, y)
    left = model.predict_proba(table) - np.eye(k)[y]
    for own in (left, left * x[:, None]):
        sums = np.stack([np.bincount(city, one) for one in own.T])
        assert np.abs(sums).max() < 1e-2  # of 50 rows


@pytest.mark.parametrize("factor", [None, (np.eye(3), True)], ids=["singular", "regular"])
@pytest.mark.parametrize("gradient", [1.0, np.inf], ids=["finite", "infinite"])
def test_systems_of_classes_that_cannot_be_solved_give_no_steps(factor, gradient):
    system = _EliminatedOfClasses(0, np.eye(3)[None], np.zeros((1, 3, 3)), factor)
    steps, decrease = system.steps([np.full((1, 3), gradient), np.ones((1, 3))])
    if factor is None or gradient == np.inf:
        assert (steps, decrease) == ([], 0.0)
    else:  # by identity matrices: half the squared length of the gradients
        np.testing.assert_allclose(steps, -np.ones((2, 1, 3)))
        assert decrease == pytest.approx(3.0)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.0, 1e-4])
def test_several_classes_and_a_large_term_are_at_the_optimum(alpha):
    """Beyond one matrix: 1,260 coefficients of cities, which nearly determine a number; beside Newton steps."""
    rng = np.random.default_rng(0)
    n, n_cities, n_kinds, k = 6_000, 420, 10, 3
    city = rng.integers(0, n_cities, n)
    kind = np.where(rng.random(n) < 0.1, rng.integers(0, n_kinds, n), city % n_kinds)
    size = 0.3 * rng.normal(size=n_cities)[city] + 0.03 * rng.normal(size=n)
    scores = 0.4 * rng.normal(size=(n_cities, k))[city] + np.outer(size, [0.0, 3.0, 6.0])
    y = np.argmax(scores + rng.gumbel(size=(n, k)), axis=1)
    z = (size - size.mean()) / size.std()
    columns = ((city, n_cities), (kind, n_kinds), (np.zeros(n, dtype=int), 1))
    parts = [sparse.csr_array((np.ones(n), (np.arange(n), own)), (n, q)) for own, q in columns]
    design = sparse.hstack([*parts, sparse.csr_array(z[:, None])]).tocsr()
    penalties = np.append(np.full(n_cities + n_kinds, alpha * n), [0.0, 0.0])[:, None]
    beta = np.zeros((design.shape[1], k))
    for _ in range(30):
        p = softmax(design @ beta, axis=1)
        slopes = (design.T @ (p - np.eye(k)[y]) + penalties * beta).ravel()
        by_class = [
            [(design.T @ (design * (p[:, [one]] * ((one == other) - p[:, [other]])))).toarray() for other in range(k)]
            for one in range(k)
        ]
        hessian = np.array(by_class).transpose(2, 0, 3, 1).reshape(beta.size, beta.size)
        inverse = np.linalg.inv(hessian + np.diag(np.repeat(penalties[:, 0], k) + 1e-9))
        beta = beta - (inverse @ slopes).reshape(-1, k)
        if slopes @ inverse @ slopes < 1e-10:
            break
    table = pd.DataFrame({"city": city.astype(str), "kind": kind.astype(str), "size": size})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # separation without penalties, and coefficients that are not unique
        model = WideClassifier(alpha=alpha, numeric="linear", interactions=None, count_effect=False).fit(table, y)
    found = model.coefs_["size"].filter(regex="^[012]$").to_numpy().ravel()
    slope = (beta[-1] - beta[-1].mean()) / size.std()
    contrast = np.zeros((beta.shape[0], k))
    contrast[-1] = np.eye(k)[0] - 1 / k
    sd = np.sqrt(contrast.ravel() @ inverse @ contrast.ravel()) / size.std()
    assert np.abs(found - slope).max() < 5e-3 * sd
    assert np.abs(slope).max() > 3 * sd


MORE = {
    "a sum of others": lambda X: 2.0 * X["a"] - X["b"],
    "a constant": lambda X: np.ones(len(X)),
    "another": lambda X: np.cos(np.arange(len(X))),
}


@pytest.mark.parametrize("more", MORE)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["squared_error", "gamma"])
def test_a_number_that_others_determine_takes_no_degree_of_freedom(loss, weighted, more):
    """The dispersion is Pearson's over rows less the rank of the design, as by statsmodels."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    X["c"] = MORE[more](X)
    mean, weight = X["a"] - X["b"], rng.uniform(0.5, 2.0, 60) if weighted else None
    y = rng.gamma(2.0, np.exp(0.3 * mean)) if loss == "gamma" else mean + rng.normal(size=60)
    rank = np.linalg.matrix_rank(np.column_stack([np.ones(60), X]))
    assert rank == (4 if more == "another" else 3)
    family = sm.families.Gamma(sm.families.links.Log()) if loss == "gamma" else sm.families.Gaussian()
    share = np.ones(60) if weight is None else weight / weight.mean()
    design = np.column_stack([np.ones(60), X.iloc[:, : rank - 1]])
    wanted = sm.GLM(y, design, family=family, var_weights=share).fit(tol=1e-12, scale="X2").scale
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of coefficients that are not unique
        model = WideRegressor(loss=loss, numeric="linear", interactions=None, tol=1e-9).fit(X, y, weight)
    assert model.dispersion_ == pytest.approx(wanted, rel=1e-6)
    assert model.model_.uncertainty.total_edf == pytest.approx(rank)


@pytest.mark.parametrize("more", ["a sum of others", "a constant"])
def test_nor_beside_categories_whose_variance_is_estimated(more):
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200), "g": rng.choice(list("pqrstuvw"), 200)})
    effects = dict(zip("pqrstuvw", rng.normal(size=8), strict=True))
    y = X["a"] - X["b"] + X["g"].map(effects) + rng.normal(size=200)
    options = {"loss": "squared_error", "numeric": "linear", "interactions": None, "tol": 1e-9, "max_iter": 500}
    plain, beside = (WideRegressor(**options).fit(table, y) for table in (X, X.assign(c=MORE[more](X))))
    assert beside.dispersion_ == pytest.approx(plain.dispersion_, rel=1e-6)
    np.testing.assert_allclose(beside.variances_.loc["g"], plain.variances_.loc["g"], rtol=1e-5)
