"""Products of factors with estimated variances: one optimum whatever the start, and variances of mean-1 factors."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from tabsym import WideRegressor


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
    frame, effects = {}, rng.normal(size=sizes[1]) * 1.2
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
