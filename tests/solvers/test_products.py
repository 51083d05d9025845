"""Products of factors with estimated variances: one optimum whatever the start, and variances of mean-1 factors."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from tabsym import WideClassifier, WideRegressor
from tabsym.models import solving
from tabsym.solvers.newton.formulas import Objective


def draw(seed, n_rows, sizes, deviations):
    """Codes of two columns, and factors of mean about 1."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(size, size=n_rows) for size in sizes]
    factors = [1.0 + sd * rng.normal(size=size) for size, sd in zip(sizes, deviations, strict=True)]
    frame = pd.DataFrame({name: [f"{name}{code}" for code in one] for name, one in zip("gh", codes, strict=True)})
    return rng, frame, codes, factors


def fitted(formula, frame, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return WideRegressor(formula, **options).fit(frame, y)


def only_one_matters(seed, n_rows, sizes):
    """Counts by the second column alone, few of them, so that the other factor has no variance."""
    rng = np.random.default_rng(seed)
    effects = rng.normal(size=sizes[1]) * 1.2
    codes = [rng.integers(size, size=n_rows) for size in sizes]
    frame = pd.DataFrame({name: [f"{name}{code}" for code in one] for name, one in zip("gh", codes, strict=True)})
    return frame, rng.poisson(np.exp(effects[codes[1]] - 1.0))


@pytest.mark.parametrize("seed", range(4))
def test_a_factor_without_effect_leaves_the_fit_of_the_other_alone(seed):
    frame, y = only_one_matters(seed, 800, (10, 29))
    alone = fitted("b[h] + c[1]", frame, y, loss="poisson")
    for n_init, random_state in ((1, 0), (3, 1), (3, 2)):
        options = {"loss": "poisson", "n_init": n_init, "random_state": random_state}
        model = fitted("a[g]*b[h] + c[1]", frame, y, **options)
        assert model.deviance_ <= 1.01 * alone.deviance_
        assert np.exp(np.log(model.predict(frame)) - np.log(alone.predict(frame))).std() < 0.15


@pytest.mark.parametrize("formula", ["a[g]*b[h] + c[1]", "c[1] + b[h]*a[g]"])
def test_variances_are_those_of_factors_of_mean_one(formula):
    rng, frame, (g, h), (a, b) = draw(3, 6_000, (60, 60), (0.3, 0.5))
    y = 5.0 + 2.0 * a[g] * b[h] + 0.5 * rng.normal(size=len(g))
    sd = fitted(formula, frame, y).variances_["sd"]
    assert sd["a"] == pytest.approx((a / a.mean()).std(ddof=1), rel=0.06)
    assert sd["b"] == pytest.approx((b / b.mean()).std(ddof=1), rel=0.06)


def test_variances_do_not_depend_on_the_start_or_the_order_of_factors():
    rng, frame, (g, h), (a, b) = draw(4, 1_500, (20, 12), (0.4, 0.4))
    y = rng.poisson(np.exp(0.5 + 0.5 * a[g] * b[h]))
    one = fitted("a[g]*b[h] + c[1]", frame, y, loss="poisson", n_init=1)
    other = fitted("b[h]*a[g] + c[1]", frame, y, loss="poisson", n_init=5, random_state=7)
    np.testing.assert_allclose(other.variances_.loc[["a", "b"], "sd"], one.variances_.loc[["a", "b"], "sd"], rtol=0.02)
    np.testing.assert_allclose(other.predict(frame), one.predict(frame), rtol=0.01)


def test_factors_of_either_sign_are_found():
    """Whose means are about 0, so that no mean can be the unit of variances."""
    rng = np.random.default_rng(5)
    g, h = rng.integers(15, size=3_000), rng.integers(15, size=3_000)
    a, b = rng.normal(size=15), rng.normal(size=15)
    frame = pd.DataFrame({"g": [f"g{one}" for one in g], "h": [f"h{one}" for one in h]})
    truth = (a - a.mean())[g] * (b - b.mean())[h]
    model = fitted("a[g]*b[h] + c[1]", frame, truth + rng.normal(size=3_000))
    assert np.square(model.predict(frame) - truth).mean() < 0.03  # thirty coefficients: .01


FORMULAS = ["a[g]*b[h] + c[1]", "a[g]*b[h]*d[k]*x", "a[g]*b[h] + a[g]*d[k]", "a[g]*(1 + b[h])", "w[1]*a[g]*a[g]*b[h]"]


@pytest.mark.parametrize("n_classes", [0, 3])
@pytest.mark.parametrize("formula", FORMULAS)
def test_gradients_of_the_objective_are_its_differences(formula, n_classes, monkeypatch):
    """Also by the factors that scale the penalties of others; and no exchange of scale changes the penalty."""
    rng, found = np.random.default_rng(1), []
    frame = pd.DataFrame({name: [f"{name}{code}" for code in rng.integers(4, size=200)] for name in "ghk"})
    frame["x"] = rng.normal(2.0, 1.0, 200)
    y = rng.integers(n_classes, size=200) if n_classes else rng.gamma(2.0, 1.0, 200)

    def keep(spec, rows, task, *args):
        found.append(Objective(spec, rows, task, centred=True))
        return fit_formula(spec, rows, task, *args)

    fit_formula = solving.fit_formula
    monkeypatch.setattr(solving, "fit_formula", keep)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (WideClassifier(formula) if n_classes else WideRegressor(formula, loss="squared_error")).fit(frame, y)
    objective = found[0]
    k = objective.task.n_outputs
    for index, _ in objective.penalized():
        objective.precision[index] = rng.uniform(20.0, 200.0)
    phi = objective.shared(1.0 + rng.normal(0.0, 0.3, objective.spec.n_coefs * k))
    value, gradient = objective.value(phi)
    step = 1e-5 * np.eye(len(phi))
    differences = [(objective.value(phi + one)[0] - objective.value(phi - one)[0]) / 2e-5 for one in step]
    np.testing.assert_allclose(gradient, differences, atol=1e-6 * np.abs(gradient).max())
    for direction in objective_scales(objective).T:
        times = np.repeat(np.exp(direction), np.array(objective.spec.sizes) * k)
        assert objective.value(phi * times)[0] == pytest.approx(value, rel=1e-9)


def objective_scales(objective):
    """Directions of the logarithms of blocks' scales in which no product changes, by the factors of the terms."""
    factors = np.zeros((len(objective.spec.fitted_terms), len(objective.spec.blocks)))
    for number, term in enumerate(objective.spec.fitted_terms):
        for factor in term.factors:
            factors[number, factor.block] += 1.0
    _, sizes, rows = np.linalg.svd(factors)
    return rows[(sizes > 1e-9).sum() :].T
