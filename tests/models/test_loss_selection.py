"""loss="auto": scores as scikit-learn has them, and which log link is tried."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer, mean_absolute_error, mean_poisson_deviance, root_mean_squared_error
from threadpoolctl import threadpool_info, threadpool_limits

from tabsym import WideRegressor, WideSGDRegressor
from tabsym.design.content import ShuffledRows
from tabsym.losses.loss import LOSSES
from tabsym.models import loss_selection as linking
from tabsym.models.loss_selection import Scoring, power_of_variance
from tests.options import ADDITIVE

ERRORS = {"neg_root_mean_squared_error": root_mean_squared_error, "neg_mean_absolute_error": mean_absolute_error}
OPTIONS = ADDITIVE | {"loss": "auto"}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", [*ERRORS, "neg_mean_poisson_deviance"])
def test_scores_are_those_of_scikit_learn_with_weights_and_without(name, weighted):
    rng = np.random.RandomState(0)
    predicted, y = rng.gamma(2.0, size=(2, 50))
    weight = rng.uniform(size=50) if weighted else None
    error = ERRORS.get(name, mean_poisson_deviance)(y, predicted, sample_weight=weight)
    assert Scoring(name).score(predicted, y, weight) == pytest.approx(-error, rel=1e-12)


def test_a_scorer_of_ones_own_gets_the_weight_of_rows():
    predicted, y, weight = np.array([[1.0, 4.0], [2.0, 2.0], [1.0, 3.0]])
    scorer = make_scorer(mean_absolute_error, greater_is_better=False)
    assert Scoring(scorer).score(predicted, y, weight) == pytest.approx(-(1.0 + 3.0 * 2.0) / 4.0)


@pytest.mark.parametrize("n", [3, 400])
@pytest.mark.parametrize("power", [0.0, 1.0, 1.5, 2.0, 3.0])
def test_the_power_of_variances_is_found_whatever_the_unit(power, n):
    """Worked by hand: residuals that go exactly with a power of the mean, in any unit of the target."""
    mean, rng = np.random.RandomState(0).gamma(3.0, size=n), np.random.RandomState(1)
    side = rng.choice([-1.0, 1.0], n)
    for unit in (1e-3, 1.0, 1e6):
        y = unit * (mean + 0.1 * side * mean ** (power / 2.0))
        assert power_of_variance(unit * mean, y, None) == pytest.approx(power, abs=1e-9)


def test_weights_of_the_power_are_repetition_and_exact_predictions_do_no_harm():
    rng = np.random.RandomState(0)
    mean, weight = rng.gamma(3.0, size=300), rng.randint(1, 4, 300)
    y = mean * np.exp(rng.normal(size=300))
    repeated = power_of_variance(np.repeat(mean, weight), np.repeat(y, weight), None)
    assert power_of_variance(mean, y, weight.astype(float)) == pytest.approx(repeated, rel=1e-9)
    assert np.isfinite(power_of_variance(mean, mean, None))
    assert np.isfinite(power_of_variance(np.append(mean, 0.0), np.append(y, 1.0), None))
    assert np.isfinite(power_of_variance(np.ones(300), y, None))  # there is no slope: any number will do


def products(n, draw, seed=0):
    rng = np.random.RandomState(seed)
    codes = rng.randint(12, size=(2, n))
    effects = rng.normal(0.0, 0.8, (2, 12))
    mean = 10.0 * np.exp(effects[0, codes[0]] + effects[1, codes[1]])
    return pd.DataFrame({"a": codes[0].astype(str), "b": codes[1].astype(str)}), draw(rng, mean)


def gammas(rng, mean):
    return mean * rng.gamma(3.0, 1.0 / 3.0, len(mean))


def counts(rng, mean):
    return rng.poisson(mean) + 0.01


@pytest.mark.parametrize(("draw", "tried"), [(gammas, "gamma"), (counts, "tweedie")], ids=["gamma", "counts"])
def test_of_large_tables_the_nearest_log_link_is_tried_alone(draw, tried):
    """By the variance of rows held out; with less than 5,000 rows both others are tried."""
    table, y = products(6000, draw)
    large = WideRegressor(**OPTIONS).fit(table, y).losses_
    assert set(large["loss"]) == {"squared_error", "poisson", tried}
    small = WideRegressor(**OPTIONS).fit(table[:3000], y[:3000]).losses_
    assert set(small["loss"]) == {"squared_error", "poisson", "gamma", "tweedie"}


def test_with_zeros_tweedie_is_tried_however_variances_go():
    table, y = products(6000, gammas)
    y[::500] = 0.0
    found = WideRegressor(**OPTIONS).fit(table, y).losses_
    assert set(found["loss"]) == {"squared_error", "poisson", "tweedie"}


def test_terms_without_coefficients_are_part_of_the_predictions_that_are_scored():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(list("uvw"), 3000), "x": rng.normal(size=3000)})
    y = 20.0 + X["a"].map({"u": -1.0, "v": 0.0, "w": 1.0}) + 3.0 * X["x"] + rng.normal(0.0, 0.5, 3000)
    losses = WideRegressor("f[a] + 3*x + c[1]", random_state=0).fit(X, y).losses_.set_index("loss")["score"]
    assert losses["squared_error"] == pytest.approx(-0.5, rel=0.05)  # minus the root of the mean square of the noise


@pytest.mark.slow
def test_counts_get_poisson_unless_tweedie_is_certainly_better(monkeypatch):
    """However rows are dealt: on half of the random states tweedie is a little better, never by much."""
    table, y = products(800, lambda rng, mean: rng.poisson(mean / 10.0).astype(float))
    table["time"] = 1.0
    best = set()
    for seed in range(8):
        options = OPTIONS | {"exposure_column": "time", "random_state": seed}
        model = WideRegressor(**options).fit(table, y)
        least = model.losses_["loss"].iloc[0]
        best.add(least)
        assert model.loss_ == "poisson"
        with monkeypatch.context() as patch:
            patch.setattr(linking, "ERRORS", -np.inf)  # any gain is enough
            assert WideRegressor(**options).fit(table, y).loss_ == least
            patch.setattr(linking, "ERRORS", np.inf)
            rates = WideRegressor(**options).fit(table, y / 2.0)  # no whole numbers
            assert rates.loss_ == rates.losses_["loss"].iloc[0]
    assert best == {"poisson", "tweedie"}


@pytest.mark.parametrize("scoring", ["neg_root_mean_squared_error", "neg_mean_poisson_deviance"])
def test_the_error_of_a_gain_is_that_of_the_jackknife(scoring):
    rng = np.random.default_rng(0)
    y, weight = rng.poisson(2.0, 210).astype(float), rng.uniform(1.0, 2.0, 210)
    said = {"poisson": rng.uniform(1.0, 3.0, 210), "tweedie": rng.uniform(1.0, 3.0, 210)}
    held_out = SimpleNamespace(y=y, weight_of_one=weight, copies=None)
    content = rng.integers(0, 2**63, 210).astype(np.uint64)
    trial = SimpleNamespace(
        held_out=held_out, predicted=said, scoring=Scoring(scoring), rng=np.random.RandomState(0), _content=content
    )
    gain, error = linking._LossTrial.gain(trial, "tweedie", "poisson")
    _, blocks = ShuffledRows(np.arange(210), content, None).deal(20, np.random.RandomState(0))
    assert set(np.bincount(blocks)) == {10, 11}

    def difference(rows):
        lost = root_mean_squared_error if "root" in scoring else mean_poisson_deviance
        of = {name: lost(y[rows], own[rows], sample_weight=weight[rows]) for name, own in said.items()}
        return of["poisson"] - of["tweedie"]

    left_out = [difference(blocks != block) for block in range(20)]
    assert gain == pytest.approx(difference(np.full(210, True)))
    assert error == pytest.approx(np.sqrt(19 / 20 * np.sum((left_out - np.mean(left_out)) ** 2)))


def test_tweedies_own_power_decides_which_is_nearest(monkeypatch):
    """Of variances that go with the power 1.7 tweedie's 1.9 is nearer than gamma's 2, and its 1.2 is not."""

    def draw(rng, mean):
        return mean + 0.2 * rng.choice([-1.0, 1.0], len(mean)) * mean**0.85

    table, y = products(6000, draw)
    assert y.min() > 0
    for power, tried in ((1.9, "tweedie"), (1.2, "gamma")):
        monkeypatch.setitem(LOSSES, "tweedie", replace(LOSSES["tweedie"], parameter=power))
        found = WideRegressor(**OPTIONS).fit(table, y).losses_
        assert set(found["loss"]) == {"squared_error", "poisson", tried}


@pytest.mark.parametrize("scoring", ["neg_mean_poisson_deviance", "neg_mean_gamma_deviance"])
def test_deviances_choose_among_links_though_sums_predict_less_than_0(scoring):
    """Of predictions below 0, as those of squared loss may be, they have no score."""
    table, y = products(1500, gammas)
    plain = WideRegressor(**OPTIONS | {"loss": "squared_error"}).fit(table[:900], y[:900])
    assert plain.predict(table[900:]).min() < 0
    found = WideRegressor(scoring=scoring, **OPTIONS).fit(table, y).losses_
    assert found["loss"].iloc[-1] == "squared_error" and found["score"].iloc[-1] == -np.inf
    assert np.isfinite(found["score"].iloc[:-1]).all() and len(found) == 4


def test_a_scorer_that_scores_no_loss_is_refused():
    table, y = products(1500, gammas)
    y[:100] = 0.0
    with pytest.raises(ValueError, match="neg_mean_gamma_deviance' can't score numbers with these targets"):
        WideRegressor(scoring="neg_mean_gamma_deviance", **OPTIONS).fit(table, y)


def test_weights_that_cannot_be_added_up_are_refused():
    table, y = products(300, gammas)
    with pytest.raises(ValueError, match="sample_weight is up to 1e\\+308, too large to be added up"):
        WideSGDRegressor().fit(table, y, sample_weight=1e308)
    WideSGDRegressor().fit(table, y, sample_weight=1e300)


def test_losses_are_compared_in_one_blas_thread(monkeypatch):
    """Two that wait for each other took 9 s for a fit of .2 s where another process had a core."""
    threads = []

    def watched(*given):
        threads.extend(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
        return solve(*given)

    solve = linking.solve_parameters
    monkeypatch.setattr(linking, "solve_parameters", watched)
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(list("pqr"), 300)})
    with threadpool_limits(2, user_api="blas"):
        before = [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]
        WideRegressor(**OPTIONS).fit(X, rng.poisson(3.0, 300))
        after = [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]
    assert set(before) == {2} and after == before
    assert threads and set(threads) == {1}


@pytest.mark.parametrize(("n", "losses"), [(29, {"squared_error"}), (30, {"squared_error", "poisson"})])
def test_losses_are_compared_from_thirty_rows_on(n, losses):
    y = np.random.default_rng(0).poisson(3.0, n)
    model = WideRegressor().fit(pd.DataFrame({"a": (list("uvw") * n)[:n]}), y)
    assert set(model.losses_["loss"]) == losses


def test_what_was_compared_is_there_after_a_fit():
    with pytest.raises(NotFittedError, match="This WideRegressor instance is not fitted yet"):
        WideRegressor().losses_  # noqa: B018
