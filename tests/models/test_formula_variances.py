"""Formulas by evidence: variances and deviations of blocks that rows read twice, of vectors, of products.

The oracle differentiates a score that is written out here, number by number, and inverts whole matrices.
"""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.linalg import null_space
from scipy.optimize import minimize
from scipy.special import expit, softmax

from tabsym import WideClassifier, WideRegressor
from tabsym.losses import Huber
from tabsym.solvers.newton import formula_posteriors, formulas


def games(seed=0, n_teams=14, n_rows=260):
    """Pairs of teams (n, 2), and a number of each team."""
    rng = np.random.RandomState(seed)
    home = rng.randint(n_teams, size=n_rows)
    away = (home + 1 + rng.randint(n_teams - 1, size=n_rows)) % n_teams
    return rng, home, away, rng.normal(0, 0.8, n_teams)


def frame(**columns):
    return pd.DataFrame({name: values.astype(str) for name, values in columns.items()})


def numbers_of(*of, **options):
    return frame_of(*of, **options).to_numpy()


def frame_of(model, block, size, what="value"):
    """Parameters or deviations (size, rank) of a block, or of all outputs, in the order of the symbols."""
    found = model.coefs_[block].loc[[str(i) for i in range(size)]]
    return found[[column for column in found.columns if ("sd" in str(column)) == (what == "sd") and column != "rows"]]


def slopes_by(score, numbers, step=1e-5):
    """Derivatives (n, p) of a score by all its numbers."""
    moved = np.eye(len(numbers)) * step
    return np.stack([(score(numbers + one) - score(numbers - one)) / (2 * step) for one in moved], axis=1)


def posterior(jacobian, hessians, own, flat, precision, mean_of=None):
    """Covariance of numbers jointly with flat ones; their effective number. `mean_of`: components held to means."""
    q = len(own)
    penalty = np.eye(q)
    for component in mean_of if mean_of is not None else []:
        share = np.zeros(q)
        share[list(component)] = 1.0
        penalty -= np.outer(share, share) / share.sum()
    both = jacobian[:, [*own, *flat]]
    hessian = both.T @ (hessians[:, None] * both)
    hessian[:q, :q] += precision * penalty
    covariance = np.linalg.inv(hessian)
    held = q - (len(mean_of) if mean_of is not None else 0)
    return covariance, held - precision * np.trace(penalty @ covariance[:q, :q])


def about_mean(covariance):
    """Deviations (q,) about the mean over categories, which no difference tells."""
    beside = np.eye(len(covariance)) - 1.0 / len(covariance)
    return np.sqrt(np.diag(beside @ covariance @ beside))


def restricted_likelihood(z, x, y):
    """The variances of numbers by symbol and of the rows that maximise it: of what is orthogonal to x, by axes of z."""
    beside = null_space(x.T)
    scales, axes = np.linalg.eigh(beside.T @ z @ z.T @ beside)
    along = axes.T @ beside.T @ y

    def lost(logs):
        of_numbers, of_rows = np.exp(logs)
        variances = of_numbers * scales + of_rows
        return 0.5 * (np.log(variances) + along**2 / variances).sum()

    return np.exp(minimize(lost, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9}).x)


@pytest.mark.parametrize("slope", [False, True], ids=["intercept", "slope"])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.slow
def test_differences_of_one_block_have_the_variances_of_restricted_likelihood(seed, slope):
    rng, home, away, strength = games(seed)
    n, q = len(home), len(strength)
    x = np.stack([np.ones(n), rng.normal(2, 1, n)], axis=1)[:, : 1 + slope]
    y = strength[home] - strength[away] + x.sum(axis=1) + rng.normal(0, 1.0, n)
    z = np.eye(q)[home] - np.eye(q)[away]
    table = frame(home=home, away=away)
    if slope:
        table["x"] = x[:, 1]
    formula = "w[home] - w[away] + c[1]" + (" + k[1]*x" if slope else "")
    model = WideRegressor(formula, loss="squared_error").fit(table, y)
    of_numbers, of_rows = restricted_likelihood(z, x, y)
    assert model.variances_.loc["w", "variance"] == pytest.approx(of_numbers, rel=0.01)
    assert model.dispersion_ == pytest.approx(of_rows, rel=1e-3)
    both = np.concatenate([z, x], axis=1)
    penalty = np.diag([1.0 / of_numbers] * q + [0.0] * x.shape[1])
    covariance = np.linalg.inv(both.T @ both / of_rows + penalty)
    sd = np.sqrt(np.diag(covariance))
    assert numbers_of(model, "w", q, "sd")[:, 0] == pytest.approx(about_mean(covariance[:q, :q]), rel=0.01)
    if slope:
        assert model.coefs_["k"]["sd"].iloc[0] == pytest.approx(sd[-1], rel=0.01)
    else:
        assert model.coefs_["c"]["sd"].iloc[0] == pytest.approx(sd[q], rel=0.01)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_paired_comparisons_of_classes(weighted):
    rng, home, away, strength = games(3, n_rows=900)
    q = len(strength)
    y = (rng.random_sample(len(home)) < expit(strength[home] - strength[away] + 0.3)).astype(int)
    weight = rng.choice([1.0, 2.0, 3.0], len(y)) if weighted else None
    model = WideClassifier("w[home] - w[away] + c[1]")
    model.fit(frame(home=home, away=away), y, sample_weight=weight)
    numbers = np.append(numbers_of(model, "w", q)[:, 0], model.coefs_["c"]["value"])
    jacobian = slopes_by(lambda p: p[home] - p[away] + p[q], numbers)
    p = expit(jacobian @ numbers)
    hessians = p * (1 - p) * (1.0 if weight is None else weight / weight.mean())
    variance = model.variances_.loc["w", "variance"]
    covariance, edf = posterior(jacobian, hessians, range(q), [q], 1.0 / variance)
    assert model.variances_.loc["w", "edf"] == pytest.approx(edf, rel=1e-3)
    assert numbers_of(model, "w", q, "sd")[:, 0] == pytest.approx(about_mean(covariance[:q, :q]), rel=1e-3)
    assert variance == pytest.approx(np.square(numbers[:q]).sum() / edf, rel=0.02)


def test_vectors_have_a_matrix_for_each_symbol_and_are_held_to_their_mean():
    rng = np.random.RandomState(5)
    a, b = rng.randint(12, size=800), rng.randint(9, size=800)
    u, v = rng.normal(0, 1, (12, 2)), rng.normal(0, 1, (9, 2))
    y = (u[a] * v[b]).sum(axis=1) + 0.5 + rng.normal(0, 0.5, 800)
    formula = "dot(u[a], v[b], rank=2) + c[1]"
    model = WideRegressor(formula, loss="squared_error").fit(frame(a=a, b=b), y)
    left, right = numbers_of(model, "u", 12), numbers_of(model, "v", 9)
    numbers = np.concatenate([left.ravel(), right.ravel(), model.coefs_["c"]["value"]])

    def score(p):
        return (p[:24].reshape(12, 2)[a] * p[24:42].reshape(9, 2)[b]).sum(axis=1) + p[42]

    assert score(numbers) == pytest.approx(model.predict(frame(a=a, b=b)), abs=1e-8)
    jacobian, hessians = slopes_by(score, numbers), np.full(800, 1.0 / model.dispersion_)
    information, penalty = jacobian.T @ (hessians[:, None] * jacobian), np.zeros((43, 43))
    for block, size, own in (("u", 12, slice(0, 24)), ("v", 9, slice(24, 42))):
        about = np.kron(np.eye(size) - 1.0 / size, np.eye(2))
        penalty[own, own] = about / model.variances_.loc[block, "variance"]
    edf = np.trace(np.linalg.pinv(information + penalty, rcond=1e-12, hermitian=True) @ information)
    assert model.model_.uncertainty.total_edf == pytest.approx(edf, rel=1e-4)
    for block, size, own in (("u", 12, range(24)), ("v", 9, range(24, 42))):
        precision = 1.0 / model.variances_.loc[block, "variance"]
        components = [range(0, 2 * size, 2), range(1, 2 * size, 2)]
        covariance, edf = posterior(jacobian, hessians, own, [42], precision, components)
        sd = np.sqrt(np.diag(covariance)[: len(own)]).reshape(size, 2)
        assert numbers_of(model, block, size, "sd") == pytest.approx(sd, rel=1e-3)
        assert model.variances_.loc[block, "edf"] == pytest.approx(edf, rel=1e-3)
    lengths = {block: np.square(one - one.mean(axis=0)).sum() for block, one in (("u", left), ("v", right))}
    assert_shared(model, lengths)
    assert model.variances_.loc["u", "variance"] == pytest.approx(model.variances_.loc["v", "variance"], rel=1e-6)


def assert_shared(model, lengths):
    """Of two factors, rows tell the product of the variances: both start alike, and stay so."""
    found = model.variances_.loc[list(lengths)]
    product = np.prod([length / found.loc[block, "edf"] for block, length in lengths.items()])
    assert found["variance"].prod() == pytest.approx(product, rel=0.02)


def test_factors_of_products_are_held_to_their_mean():
    rng = np.random.RandomState(6)
    a, b, x = rng.randint(15, size=900), rng.randint(10, size=900), rng.normal(1, 1, 900)
    g, m = 1 + rng.normal(0, 0.4, 15), 2 + rng.normal(0, 0.5, 10)
    y = g[a] * m[b] * x - 1.0 + rng.normal(0, 0.7, 900)
    table = frame(a=a, b=b).assign(x=x)
    model = WideRegressor("g[a]*m[b]*x + c[1]", loss="squared_error").fit(table, y)
    scale = model.coefs_["scale of g*m"]["value"].iloc[0]
    numbers = np.concatenate([scale * numbers_of(model, "g", 15), numbers_of(model, "m", 10)]).ravel()
    numbers = np.append(numbers, model.coefs_["c"]["value"])
    sizes = {"g": scale, "m": 1.0}  # variances are of factors of mean 1, as they are shown
    jacobian = slopes_by(lambda p: p[:15][a] * p[15:25][b] * x + p[25], numbers)
    hessians = np.full(900, 1.0 / model.dispersion_)
    held = {}
    for block, own in (("g", range(15)), ("m", range(15, 25))):
        variance = model.variances_.loc[block, "variance"] * sizes[block] ** 2
        held[block] = 1.0 / variance
        _, edf = posterior(jacobian, hessians, own, [25], 1.0 / variance, [range(len(own))])
        assert model.variances_.loc[block, "edf"] == pytest.approx(edf, rel=1e-3)
        assert variance == pytest.approx(len(own) * np.var(numbers[list(own)]) / edf, rel=0.02)
    information = jacobian.T @ (hessians[:, None] * jacobian)
    hessian = information.copy()
    for block, own in (("g", slice(0, 15)), ("m", slice(15, 25))):
        hessian[own, own] += held[block] * (np.eye(own.stop - own.start) - 1.0 / (own.stop - own.start))
    covariance = np.linalg.inv(hessian)
    assert model.model_.uncertainty.total_edf == pytest.approx(np.trace(covariance @ information), rel=1e-4)
    for block, own, codes in (("g", slice(0, 15), a), ("m", slice(15, 25), b)):
        share, values = np.bincount(codes) / len(codes), numbers[own]
        mean = share @ values
        by = (np.eye(len(values)) - np.outer(values / mean, share)) / mean  # of factors over their mean
        sd = np.sqrt(np.diag(by @ covariance[own, own] @ by.T))
        assert numbers_of(model, block, len(values), "sd")[:, 0] == pytest.approx(sd, rel=1e-3)
        assert share @ numbers_of(model, block, len(values))[:, 0] == pytest.approx(1.0)


def test_several_classes_have_joint_deviations():
    rng, home, away, strength = games(8, n_rows=900)
    q, k = len(strength), 3
    scores = np.stack([strength[home] - strength[away], -strength[home], np.zeros(len(home))], axis=1)
    y = np.array([rng.choice(k, p=softmax(row)) for row in scores])
    model = WideClassifier("w[home] - w[away] + c[1]").fit(frame(home=home, away=away), y)
    jacobian = np.concatenate([np.eye(q)[home] - np.eye(q)[away], np.ones((len(home), 1))], axis=1)
    p = model.predict_proba(frame(home=home, away=away))
    found, edf, precision = numbers_of(model, "w", q, "sd"), 0.0, 1.0 / model.variances_.loc["w", "variance"]
    for output in range(k):
        hessians = p[:, output] * (1 - p[:, output])
        edf += posterior(jacobian, hessians, range(q), [q], precision)[1]
    assert model.variances_.loc["w", "edf"] == pytest.approx(edf, rel=2e-3)
    between = p[:, :, None] * (np.eye(k) - p[:, None, :])  # deviations are those of all classes together
    information = np.einsum("np,nkl,nq->kplq", jacobian, between, jacobian).reshape(k * (q + 1), -1)
    penalty = np.kron(np.eye(k), np.diag([precision] * q + [0.0]))
    less = np.kron(np.eye(k) - 1.0 / k, np.eye(q + 1))  # the mean over the classes
    covariance = less @ np.linalg.pinv(information + penalty, rcond=1e-10) @ less
    for output in range(k):
        own = slice(output * (q + 1), output * (q + 1) + q)
        assert found[:, output] == pytest.approx(about_mean(covariance[own, own]), rel=2e-3)


def test_a_given_penalty_has_deviations_too():
    rng, home, away, strength = games(9)
    n, q = len(home), len(strength)
    y = strength[home] - strength[away] + rng.normal(0, 1, n)
    model = WideRegressor("w[home] - w[away] + c[1]", loss="squared_error", alpha=0.01).fit(
        frame(home=home, away=away), y
    )
    z = np.concatenate([np.eye(q)[home] - np.eye(q)[away], np.ones((n, 1))], axis=1)
    variance = model.variances_.loc["w", "variance"]
    covariance, edf = posterior(z, np.full(n, 1 / model.dispersion_), range(q), [q], 1 / variance)
    assert numbers_of(model, "w", q, "sd")[:, 0] == pytest.approx(about_mean(covariance[:q, :q]), rel=1e-3)
    left = n - 1 - edf
    assert model.dispersion_ == pytest.approx(np.square(y - model.predict(frame(home=home, away=away))).sum() / left)


def test_many_entries_are_drawn(monkeypatch):
    rng, home, away, strength = games(10, n_teams=60, n_rows=600)
    y = strength[home] - strength[away] + rng.normal(0, 1, len(home))
    table = frame(home=home, away=away)
    monkeypatch.setattr(formulas, "MAX_COEFS", 0)  # each block by itself
    exact = WideRegressor("w[home] - w[away] + c[1]", loss="squared_error").fit(table, y)
    monkeypatch.setattr(formula_posteriors, "MAX_DENSE", 10)
    drawn = WideRegressor("w[home] - w[away] + c[1]", loss="squared_error").fit(table, y)
    assert drawn.variances_.loc["w", "variance"] == pytest.approx(exact.variances_.loc["w", "variance"], rel=0.02)
    ratio = numbers_of(drawn, "w", 60, "sd") / numbers_of(exact, "w", 60, "sd")
    assert np.abs(ratio - 1).max() < 0.06
    assert np.abs(ratio.mean() - 1) < 0.01
    assert (ratio != 1).all()


def test_no_penalty_and_symbols_that_no_row_tells_apart():
    """Without a penalty the level of differences is anyone's: deviations are finite, and predictions as they were."""
    rng, home, away, strength = games(11)
    y = strength[home] - strength[away] + rng.normal(0, 1, len(home))
    table = frame(home=home, away=away)
    model = WideRegressor("w[home] - w[away] + c[1]", loss="squared_error", alpha=0.0).fit(table, y)
    sd = numbers_of(model, "w", len(strength), "sd")
    assert np.isfinite(sd).all()
    assert (sd > 0).all()


@pytest.mark.parametrize(
    ("formula", "not_unique"),
    [
        ("w[a] - w[b] + c[1]", ""),
        ("w[a] + w[b] + v[a] + u[b] + c[1]", "wvuc"),
        ("w[a] + w[b] + v[a] + u[g] + c[1]", ""),
        ("w[a] * v[g] + c[1]", ""),
        ("w[a] * v[g] + u[a] + c[1]", "vuc"),
        ("w[a] * v[g] + u[a] + t[g] + c[1]", "wvutc"),
        ("w[a] * v[g] * x + u[a] * x + c[1]", "vu"),
        ("w[a] * v[g] + u[b] * x + s[1] * x + c[1]", ""),
    ],
)
@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_what_terms_of_a_formula_can_exchange_has_an_infinite_deviation(formula, not_unique, loss):
    """Such as the mean of a factor beside the effects of the other one's categories, which it is multiplied by."""
    rng = np.random.default_rng(0)
    n = 1500
    X = pd.DataFrame(
        {"a": rng.choice(list("pqrs"), n), "b": rng.choice(list("pqrs"), n), "g": rng.choice(list("uvw"), n)}
    )
    X["x"] = rng.normal(2.0, 0.5, n)
    effect = X["a"].map(dict(zip("pqrs", [0.2, 0.5, 0.6, 0.9]))) * X["g"].map({"u": 1.0, "v": 1.4, "w": 2.0})
    score = (effect - 0.3 * X["b"].map({"p": 0.0, "q": 1.0, "r": 2.0, "s": 0.5})).to_numpy()
    y = score + rng.normal(0, 0.1, n) if loss == "squared_error" else rng.poisson(np.exp(2.0 + score))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = WideRegressor(formula, loss=loss, alpha=0.0).fit(X, y)
    told = [str(one.message) for one in told if "are not unique" in str(one.message)]
    assert len(told) == (not_unique != "")
    for name in [name for name in model.coefs_ if not name.startswith("scale")]:
        sd = model.coefs_[name]["sd"]
        assert np.isinf(sd).any() == (name in not_unique), name
        assert name == "c" or not told or (f"{name!r}" in told[0]) == (name in not_unique)
    penalized = WideRegressor(formula, loss=loss, alpha="auto").fit(X, y)
    assert all(np.isfinite(frame["sd"].dropna()).all() for frame in penalized.coefs_.values() if "sd" in frame)


SCORES = {
    "w[a] - w[b] + g[h] + c[1]": lambda p, x: p[:6][x["a"]] - p[:6][x["b"]] + p[6:9][x["h"]] + p[9],
    "w[a] - w[b] + g[a] + c[1]": lambda p, x: p[:6][x["a"]] - p[:6][x["b"]] + p[6:12][x["a"]] + p[12],
    "w[a] + w[b] + s[1]*x + c[1]": lambda p, x: p[:6][x["a"]] + p[:6][x["b"]] + p[6] * x["x"] + p[7],
    "g[a]*m[h] + c[1]": lambda p, x: p[:6][x["a"]] * p[6:9][x["h"]] + p[9],
    "g[a]*m[h] + w[a] + c[1]": lambda p, x: p[:6][x["a"]] * p[6:9][x["h"]] + p[9:15][x["a"]] + p[15],
    "dot(u[a], v[h], rank=2) + c[1]": (
        lambda p, x: (p[:12].reshape(6, 2)[x["a"]] * p[12:18].reshape(3, 2)[x["h"]]).sum(axis=1) + p[18]
    ),
}


def shared_table(n=600):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(6, size=n), "b": rng.integers(6, size=n), "h": rng.integers(3, size=n)})
    X["x"] = rng.normal(2, 1, n)
    strength, level = np.array([1.0, 0.6, 0.1, -0.3, -0.8, 0.4]), np.array([0.5, 1.0, 2.0])
    score = strength[X["a"]] * level[X["h"]] - strength[X["b"]]
    return X, score, rng


def as_text(X):
    return X.assign(**{name: X[name].astype(str) for name in "abh"})


@pytest.mark.parametrize("loss", ["squared_error", "gamma"])
@pytest.mark.parametrize("formula", SCORES)
def test_degrees_of_freedom_without_a_penalty_are_the_rank_of_the_derivatives(formula, loss):
    X, score, rng = shared_table()
    y = score + rng.normal(size=len(X)) if loss == "squared_error" else rng.gamma(4.0, np.exp(0.3 * score) / 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # coefficients that are not unique, and starts that did not converge
        model = WideRegressor(formula, loss=loss, alpha=0.0).fit(as_text(X), y)
    score_of, rows = SCORES[formula], {name: X[name].to_numpy() for name in X}
    size = model.model_.spec.n_coefs
    anywhere = np.random.default_rng(1).normal(1.0, 0.5, size)
    rank = np.linalg.matrix_rank(slopes_by(lambda p: score_of(p, rows), anywhere, 1e-4), tol=1e-5)
    assert rank < size
    assert model.aic_ == pytest.approx(2 * rank - 2 * model.model_.uncertainty.log_likelihood, abs=1e-5)
    found = model.predict(as_text(X))
    errors = y - found if loss == "squared_error" else y / found - 1.0
    assert model.dispersion_ == pytest.approx(np.square(errors).sum() / (len(y) - rank), rel=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_dispersion_of_hubers_loss_without_outliers_is_that_of_least_squares(weighted):
    """Of a block that two columns share; of residuals within delta its loss is the squared one."""
    sm = pytest.importorskip("statsmodels.api")
    X, score, rng = shared_table(200)
    weight = rng.gamma(2.0, size=len(X)) if weighted else np.ones(len(X))
    y = score + rng.normal(size=len(X)) / np.sqrt(weight)
    options = {"loss": Huber(1e3), "alpha": 0.0, "tol": 1e-10, "max_iter": 5000}
    model = WideRegressor("w[a] - w[b] + s[1]*x + c[1]", **options)
    model.fit(as_text(X), y, sample_weight=weight if weighted else None)
    design = np.column_stack([np.eye(6)[X["a"]] - np.eye(6)[X["b"]], np.ones(len(X)), X["x"]])
    peer = sm.WLS(y, design[:, 1:], weights=weight / weight.mean()).fit()
    assert model.dispersion_ == pytest.approx(peer.scale, rel=1e-5)
    assert model.coefs_["s"]["sd"].iloc[0] == pytest.approx(peer.bse[-1], rel=1e-4)


@pytest.mark.parametrize("family", ["Gaussian", "Poisson"])
def test_differences_without_a_penalty_are_a_glm_of_their_design(family):
    sm = pytest.importorskip("statsmodels.api")
    X, score, rng = shared_table(200)
    y = score + rng.normal(size=len(X)) if family == "Gaussian" else rng.poisson(np.exp(0.3 * score))
    loss = {"Gaussian": "squared_error", "Poisson": "poisson"}[family]
    design = np.column_stack([np.eye(6)[X["a"]] - np.eye(6)[X["b"]], np.ones(len(X)), X["x"]])
    options = {"loss": loss, "alpha": 0.0, "tol": 1e-10, "max_iter": 5000}
    larger = WideRegressor("w[a] - w[b] + s[1]*x + c[1]", **options).fit(as_text(X), y)
    smaller = WideRegressor("s[1]*x + c[1]", **options).fit(as_text(X), y)
    kind = getattr(sm.families, family)
    wide, narrow = (sm.GLM(y, columns, family=kind()).fit() for columns in (design[:, 1:], design[:, 6:]))
    assert larger.aic_ == pytest.approx(wide.aic, rel=1e-5)
    assert larger.bic_ == pytest.approx(wide.bic_llf, rel=1e-5)
    quasi = sm.GLM(y, design[:, 1:], family=kind()).fit(scale="X2")  # the first category is the base
    assert larger.dispersion_ == pytest.approx(quasi.scale, rel=1e-5)
    assert larger.coefs_["s"]["sd"].iloc[0] == pytest.approx(quasi.bse[-1], rel=1e-4)
    difference = quasi.t_test([0.0, 1.0, 0.0, -1.0, 0.0, 0.0, 0.0])
    found = larger.contrast("w", "2", "4")
    assert found["value"] == pytest.approx(difference.effect.item(), rel=1e-4)
    assert found["sd"] == pytest.approx(difference.sd.item(), rel=1e-4)
    test = larger.likelihood_ratio_test(smaller)
    assert test["df"] == 5
    gain = narrow.deviance - wide.deviance
    assert test["statistic"] == pytest.approx(gain if family == "Poisson" else gain / 5 / wide.scale, rel=1e-4)
    assert family == "Poisson" or test["df_residual"] == wide.df_resid


def test_what_penalized_terms_of_a_formula_share_counts_once():
    X, score, rng = shared_table()
    y = score + rng.normal(size=len(X))
    formula = "w[a] - w[b] + g[a] + c[1]"
    model = WideRegressor(formula, loss="squared_error", alpha=0.01).fit(as_text(X), y)
    rows = {name: X[name].to_numpy() for name in X}
    jacobian = slopes_by(lambda p: SCORES[formula](p, rows), np.zeros(13))
    uncertainty = model.model_.uncertainty
    held = model.dispersion_ / model.variances_["variance"]
    assert held["w"] == pytest.approx(0.01 * len(y))
    penalty = np.diag(np.r_[np.full(6, held["w"]), np.full(6, held["g"]), 0.0])
    information = jacobian.T @ jacobian
    edf = np.trace(np.linalg.solve(information + penalty, information))
    assert uncertainty.total_edf == pytest.approx(edf, rel=1e-6)
    assert edf < uncertainty.edf.sum() - 0.3
    left = len(y) - edf
    assert model.dispersion_ == pytest.approx(np.square(y - model.predict(as_text(X))).sum() / left)


@pytest.mark.parametrize("alpha", [0.0, "auto"])
@pytest.mark.parametrize("weighted", [False, True])
def test_degrees_of_freedom_of_several_classes_are_those_of_all_together(alpha, weighted):
    X, score, rng = shared_table(900)
    y = np.array([rng.choice(3, p=softmax([one, -one, 0.0])) for one in score])
    weight = rng.choice([1.0, 2.0], len(y)) if weighted else None
    formula = "w[a] - w[b] + g[h] + c[1]"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # coefficients are not unique
        model = WideClassifier(formula, alpha=alpha).fit(as_text(X), y, sample_weight=weight)
    rows = {name: X[name].to_numpy() for name in X}
    one = slopes_by(lambda p: SCORES[formula](p, rows), np.zeros(10))
    p = model.predict_proba(as_text(X))
    by = np.ones(len(y)) if weight is None else weight / weight.mean()
    information = np.zeros((30, 30))
    for row, shares, times in zip(one, p, by, strict=True):
        information += times * np.kron(np.diag(shares) - np.outer(shares, shares), np.outer(row, row))
    if alpha == 0.0:
        want = 2 * np.linalg.matrix_rank(one)
    else:
        variance = model.variances_["variance"]
        penalty = np.diag(np.tile(np.r_[np.full(6, 1 / variance["w"]), np.full(3, 1 / variance["g"]), 0.0], 3))
        inverse = np.linalg.pinv(information + penalty, rcond=1e-12, hermitian=True)
        want = np.trace(inverse @ information)
    assert model.model_.uncertainty.total_edf == pytest.approx(want, rel=1e-4)
    assert model.aic_ == pytest.approx(2 * want - 2 * model.model_.uncertainty.log_likelihood, rel=1e-6)


@pytest.mark.parametrize(
    "formula", ["w[a]*v[b] + c[1]", "w[a]*v[b] + w[a] + s[1]*x + c[1]", "w[a]*v[b]*x + s[1]*x + c[1]"]
)
@pytest.mark.parametrize("kind", ["classes", "three", "poisson", "squared_error"])
@pytest.mark.parametrize("weighted", [False, True])
def test_totals_of_products_with_an_intercept_add_up(formula, kind, weighted):
    """The intercept, and the slope, are determined whatever the variances of factors are: their gradients are 0."""
    rng = np.random.RandomState(3)
    n = 500
    a, b, x = rng.randint(9, size=n), rng.randint(6, size=n), rng.normal(2.0, 1.0, n)
    score = 0.8 * rng.gamma(6, 1 / 6, 9)[a] * rng.gamma(6, 1 / 6, 6)[b] + 0.2 * x
    weight = rng.uniform(0.2, 3.0, n) if weighted else None
    table = frame(a=a, b=b).assign(x=x)
    if kind in ("classes", "three"):
        y = np.digitize(score + rng.logistic(0, 0.7, n), [1.3] if kind == "classes" else [0.9, 1.7])
        model = WideClassifier(formula).fit(table, y, sample_weight=weight)
        missed = np.eye(y.max() + 1)[y] - model.predict_proba(table)
    else:
        y = rng.poisson(np.exp(score)) if kind == "poisson" else score + rng.normal(0, 0.5, n)
        model = WideRegressor(formula, loss=kind).fit(table, y, sample_weight=weight)
        missed = (y - model.predict(table))[:, None]
    weight = np.ones(n) if weight is None else weight
    size = weight @ np.abs(missed).sum(axis=1)
    np.testing.assert_allclose(weight @ missed, 0.0, atol=1e-6 * size)
    if "s[1]" in formula:
        np.testing.assert_allclose((weight * x) @ missed, 0.0, atol=1e-5 * size)


@pytest.mark.parametrize("alpha", ["auto", 0.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_factors_that_are_multiplied_twice_have_mean_one_too(alpha, weighted):
    """w times c and v over c squared are the same predictions: the level is in the scale, whatever the unit is."""
    rng = np.random.RandomState(0)
    n = 900
    a, b = rng.randint(6, size=n), rng.randint(4, size=n)
    y = 4 * rng.gamma(8, 1 / 8, 6)[a] ** 2 * rng.gamma(8, 1 / 8, 4)[b] + rng.normal(0, 0.5, n)
    weight = rng.uniform(0.2, 2.0, n) if weighted else np.ones(n)
    table = frame(a=a, b=b)
    made = [
        WideRegressor("w[a]**2*v[b]", loss="squared_error", alpha=alpha).fit(table, unit * y, sample_weight=weight)
        for unit in (1, 100)
    ]
    w, v = (frame_of(made[0], name, size)["value"].to_numpy() for name, size in (("w", 6), ("v", 4)))
    scale = made[0].coefs_["scale of v*w*w"]["value"].iloc[0]
    np.testing.assert_allclose([np.average(w[a], weights=weight), np.average(v[b], weights=weight)], 1.0, rtol=1e-9)
    np.testing.assert_allclose(made[0].predict(table), scale * w[a] ** 2 * v[b], rtol=1e-9)
    for name in ("w", "v"):
        np.testing.assert_allclose(*(model.coefs_[name][["value", "sd"]] for model in made), rtol=2e-3)
    same = made[0].with_coefs({"w": made[0].coefs_["w"]["value"]})
    np.testing.assert_allclose(same.predict(table), made[0].predict(table), rtol=1e-9)
    assert "factors of a product over their mean, times one scale" in made[0].summary()
    if alpha == "auto":
        return
    raw = np.concatenate([w, scale * v])

    def shown(raw):
        return np.concatenate(
            [raw[:6] / np.average(raw[a], weights=weight), raw[6:] / np.average(raw[6 + b], weights=weight)]
        )

    jacobian = slopes_by(lambda numbers: numbers[a] ** 2 * numbers[6 + b], raw)
    left = made[0].dispersion_
    covariance = left * np.linalg.pinv(jacobian.T @ (jacobian * (weight / weight.mean())[:, None]))
    by = slopes_by(shown, raw)
    expected = np.sqrt(np.diag(by @ covariance @ by.T))
    found = np.concatenate([frame_of(made[0], name, size, "sd")["sd"] for name, size in (("w", 6), ("v", 4))])
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.slow
def test_a_summary_says_of_factors_what_is_true():
    """Factors of products that another term uses, or whose mean is near 0, are shown as they are."""
    rng = np.random.RandomState(0)
    table = frame(a=rng.randint(5, size=300), b=rng.randint(4, size=300))
    y = rng.normal(size=300)
    shown = "factors of a product over their mean"
    assert shown in WideRegressor("w[a]*v[b] + c[1]", loss="squared_error").fit(table, y).summary()
    for formula in ("w[a]*w[b] + c[1]", "w[a]*v[b] + w[a] + c[1]"):
        assert "over their mean" not in WideRegressor(formula, loss="squared_error").fit(table, y).summary()
    both = WideRegressor("w[a]*v[b] + u[a]*u[b] + u[a] + c[1]", loss="squared_error").fit(table, y).summary()
    assert "factors of v*w over their mean" in both
    classes = WideClassifier("w[a]*v[b] + c[1]").fit(table, rng.randint(3, size=300))
    assert ("over their mean" in classes.summary()) == ("scale of v*w" in classes.coefs_)
    assert shown in WideClassifier("w[a]*v[b]").fit(table, rng.randint(3, size=300)).summary()


@pytest.mark.parametrize(
    ("child", "parent", "wanted"),
    [
        ([0, None, 1, 2, 2], [0, 1, None, 1, 1], [0, -1, 1]),  # the second is in no row with a parent
        ([None, 0, 1, None], [1, 1, 1, 0], [1, 1]),
        ([0, 0, 1], [0, 1, 1], None),  # the first has two
        ([None, None], [0, 1], []),
        ([0, 1, 2, 0], [2, 0, 2, None], [2, 0, 2]),
    ],
)
def test_the_parent_of_a_coefficient_is_that_of_all_its_rows(child, parent, wanted):
    def derivatives(positions):
        rows = [row for row, at in enumerate(positions) if at is not None]
        columns = [at for at in positions if at is not None]
        values = np.arange(1.0, len(rows) + 1)
        return sparse.csr_array((values, (rows, columns)), shape=(len(positions), max(columns, default=-1) + 1))

    above = formula_posteriors._parents_of(derivatives(child), derivatives(parent))
    assert (None if above is None else above.tolist()) == wanted


@pytest.mark.parametrize(("bound", "largest"), [("MAX_COEFS", 2 * 3), ("MAX_VISITS", 2 * 3 * 50)])
def test_the_joint_posterior_is_of_as_many_coefficients_and_rows_as_its_bounds(bound, largest, monkeypatch):
    """Two outputs with three coefficients each, and 50 rows."""
    phi, precision, known = np.zeros(6), np.ones(2), (np.eye(6), np.eye(6))
    objective = SimpleNamespace(
        spec=SimpleNamespace(n_coefs=3),
        task=SimpleNamespace(n_outputs=2),
        rows=SimpleNamespace(y=np.zeros(50)),
        precision=precision,
        joint={phi.tobytes() + precision.tobytes(): known},
    )
    monkeypatch.setattr(formulas, bound, largest)
    assert formulas._joint_posterior(objective, phi) is known
    monkeypatch.setattr(formulas, bound, largest - 1)
    assert formulas._joint_posterior(objective, phi) is None


def test_an_unknown_category_adds_the_variance_of_its_level_and_of_its_slope_at_the_mean_of_the_number():
    """What is known of the rest is little beside it, with 60 categories."""
    rng, n, m = np.random.default_rng(0), 4000, 60
    g, x = rng.integers(0, m, n), rng.normal(5.0, 1.0, n)
    y = rng.normal(0.0, 1.5, m)[g] + rng.normal(0.0, 0.8, m)[g] * (x - 5.0) + 0.3 * x + 0.5 * rng.normal(size=n)
    X = pd.DataFrame({"g": [f"g{k}" for k in g], "x": x})
    options = {"loss": "squared_error", "n_posterior_samples": 300, "random_state": 0}
    model = WideRegressor("u[g] + s[g] * x + b[1] * x + c[1]", **options).fit(X, y)
    new = pd.DataFrame({"g": "new", "x": [x.mean(), x.mean() + 2.0, x.mean() - 1.0, 0.0]})
    variance = model.variances_["variance"]
    wanted = np.sqrt(variance["u"] + variance["s"] * (new["x"] - x.mean()) ** 2)
    found = model.predict(new, return_std=True)[1]
    assert found == pytest.approx(wanted.to_numpy(), rel=0.03) and (found > wanted).all()


@pytest.mark.parametrize("fraction_missing", [0.0, 0.1])
def test_the_deviation_of_a_curve_is_that_of_its_walk_about_the_mean(fraction_missing):
    """(q^2 - 1) / (6 q) for q bins whose differences have a variance of 1, of which the bin of missing is none."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    y = np.sin(2.0 * x) + 0.3 * rng.normal(size=600)
    X = pd.DataFrame({"x": np.where(rng.random(600) < fraction_missing, np.nan, x)})
    model = WideRegressor(loss="squared_error").fit(X, y)
    q = int(model.coefs_["x"]["low"].notna().sum())
    assert q == len(model.coefs_["x"]) - bool(fraction_missing)
    walks = np.tril(np.ones((q, q)), -1)  # the coefficients of a walk from 0, by its steps
    about = walks - walks.mean(axis=0)
    row = model.variances_.loc["x"]
    assert row["sd"] == pytest.approx(np.sqrt(row["variance"] * np.square(about).sum() / q))


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_levels_move_between_terms_at_the_least_penalty_and_predictions_stay(loss, monkeypatch):
    """The mean of a term is the intercept's, and those of its groups are shared with the groups' term."""
    rng = np.random.RandomState(0)
    a, b, fine = rng.randint(4, size=300), rng.randint(3, size=300), np.r_[np.arange(8), rng.randint(8, size=292)]
    eta = rng.normal(0, 0.5, 8)[fine] + rng.normal(1, 0.3, 4)[a] * rng.normal(1, 0.3, 3)[b]
    y = rng.poisson(np.exp(eta)) if loss == "poisson" else eta + rng.normal(0, 0.3, 300)
    calls, recenter = [], formula_posteriors.CommonLevels.recenter

    def recorded(self, phi, precision):
        calls.append((self._spec, phi.copy(), precision.copy(), recenter(self, phi, precision)))
        return calls[-1][-1].copy()

    monkeypatch.setattr(formula_posteriors.CommonLevels, "recenter", recorded)
    X = frame(a=a, b=b, fine=fine, groups=fine // 2)
    WideRegressor("u[a] * v[b] + w[fine] + z[groups] + d[1]", loss=loss).fit(X, y)
    known = [call for call in calls if (call[2][[block.name in "wz" for block in call[0].blocks]] > 0.0).all()]
    assert len(known) > 5
    for spec, before, precision, after in known:
        index = {block.name: number for number, block in enumerate(spec.blocks)}
        own = {name: spec.coefs(number) for name, number in index.items()}
        for name in "uv":
            np.testing.assert_array_equal(after[own[name]], before[own[name]])

        def added(phi, own=own):
            return phi[own["w"]] + phi[own["z"]].repeat(2) + phi[own["d"]]

        np.testing.assert_allclose(added(after), added(before), rtol=1e-9, atol=1e-9)
        w, z = (precision[index[name]] * after[own[name]] for name in "wz")  # the slopes of half the penalty
        size = max(np.abs(w).max(), np.abs(z).max())
        assert abs(z.sum()) <= 1e-5 * size and np.abs(w.reshape(4, 2).sum(axis=1) - z).max() <= 1e-5 * size
