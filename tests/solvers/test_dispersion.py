"""The dispersion by which variances are estimated behind a log link, beside likelihoods and simulated laws."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar
from sklearn.metrics import d2_tweedie_score, mean_tweedie_deviance, r2_score

from tabsym import WideRegressor
from tabsym.losses import Tweedie
from tabsym.losses.loss import LOSSES as KINDS
from tabsym.solvers.newton.dispersion import (
    PositiveCounts,
    PowerOfWeights,
    WeightBins,
    WorkingDispersion,
    dispersion_of_deviance,
    expected_deviance,
    for_sparse,
    likely_power,
    sum_slopes,
)
from tests.oracles.variances import maximise_reml


def compound(rng, n, dispersion, power):
    """Sums of a Poisson number of gamma amounts, of mean 1 and variance `dispersion` (Joergensen 1987)."""
    counts = rng.poisson(1.0 / (dispersion * (2.0 - power)), n)
    shape, scale = (2.0 - power) / (power - 1.0), dispersion * (power - 1.0)
    return np.where(counts > 0, rng.gamma(np.maximum(counts, 1) * shape, scale), 0.0)


@pytest.mark.parametrize("shape", [0.3, 1.0, 7.0])
def test_of_gammas_deviance_it_is_the_maximum_likelihood_estimate(shape):
    y = np.random.default_rng(0).gamma(shape, 2.0, 500)
    deviance = mean_tweedie_deviance(y, np.full(500, y.mean()), power=2.0)
    assert dispersion_of_deviance(deviance, 2.0) == pytest.approx(1.0 / stats.gamma.fit(y, floc=0.0)[0], rel=1e-4)


@pytest.mark.parametrize("power", [1.1, 1.5, 1.9])
@pytest.mark.parametrize("dispersion", [0.05, 0.8, 3.0])
def test_the_expected_deviance_is_that_of_simulated_compound_laws(dispersion, power):
    rng = np.random.default_rng(1)
    y = compound(rng, 400_000, dispersion, power)
    assert y.var() == pytest.approx(dispersion, rel=0.03)
    deviance = mean_tweedie_deviance(y, np.ones(len(y)), power=power)
    assert expected_deviance(dispersion, power) == pytest.approx(deviance, rel=0.01)
    assert dispersion_of_deviance(expected_deviance(dispersion, power), power) == pytest.approx(dispersion, rel=1e-4)


@pytest.mark.parametrize("power", [1.0 + 1e-9, 1.01, 1.99, 2.0 - 1e-9])
def test_powers_near_1_and_2_have_dispersions_near_those_there(power):
    """Of 2 gamma's; the sums over events had no end, or no digits."""
    for dispersion in (0.01, 0.3, 1.5):
        deviance = expected_deviance(dispersion, power)
        assert dispersion_of_deviance(deviance, power) == pytest.approx(dispersion, rel=0.01)
        if power > 1.9:
            assert deviance == pytest.approx(expected_deviance(dispersion, 2.0), rel=0.02)
        else:  # scaled Poisson counts
            counts = np.random.default_rng(0).poisson(1.0 / dispersion, 400_000) * dispersion
            simulated = mean_tweedie_deviance(counts, np.ones(len(counts)), power=1.0)
            assert deviance == pytest.approx(simulated, rel=0.03)


@pytest.mark.parametrize("power", [1.2, 1.5, 2.0])
def test_small_and_large_deviances_have_a_dispersion(power):
    """A small one is the deviance itself; none is infinite, and a larger deviance has no smaller dispersion."""
    deviances = np.geomspace(1e-8, 1e4, 60)
    found = [dispersion_of_deviance(deviance, power) for deviance in deviances]
    assert found[0] == deviances[0] and np.isfinite(found).all() and (np.diff(found) >= 0.0).all()
    assert np.allclose(np.array(found)[deviances < 1e-2], deviances[deviances < 1e-2], rtol=0.01)


def test_the_bounds_by_hand():
    """100 counts, 20 of them 0; the squared error of a squared residual is 2 + dispersion, that of gamma 2 + 6."""
    counts = WorkingDispersion.of(KINDS["poisson"], 100.0, 100, 80, 0.5, 3.0)
    upper = 1.0 + 2.0 * np.sqrt(2.3 / 90.0)
    assert counts(0.3, np.nan, 90.0) == pytest.approx(0.3 * upper)  # below a count's .5
    assert counts(0.45, np.nan, 90.0) == 0.5
    assert counts(0.9, np.nan, 90.0) == 0.9
    assert counts(1e-3, np.nan, 20.0) == pytest.approx(0.8 * 0.5)  # by the degrees of freedom that are used
    amounts = WorkingDispersion.of(KINDS["gamma"], 100.0, 100, 100, 0.0, 3.0)
    of_deviance = dispersion_of_deviance(1.2, 2.0)
    assert amounts(0.8, 1.2, 90.0) == pytest.approx(of_deviance) and 0.8 < of_deviance < 0.8 * 1.5
    assert amounts(0.1, 1.2, 90.0) == pytest.approx(0.1 * (1.0 + 2.0 * np.sqrt(2.6 / 90.0)))
    rare = WorkingDispersion.of(KINDS["tweedie"], 1000.0, 1000, 400, 0.0, 3.0)
    assert rare(0.01, 0.01, 900.0) == pytest.approx(0.25 * 3.0)  # 100 positive targets over 400
    very_rare = WorkingDispersion.of(KINDS["tweedie"], 1000.0, 1000, 99, 0.0, 3.0)
    assert very_rare(0.01, 0.01, 900.0) == pytest.approx(3.0)  # that of the constant model, and no more
    common = WorkingDispersion.of(KINDS["tweedie"], 1000.0, 1000, 3000, 0.0, 3.0)
    assert common(0.01, 0.01, 900.0) < 0.02  # positive targets are no minority


@pytest.mark.parametrize(
    ("hessians", "weight", "wanted"),
    [
        ([1.0, 0.5, 1.0], [], 2.0),  # the second residual is beyond delta
        ([2.0, 0.5, 0.5], [2.0, 1.0, 0.5], 2.5),
        ([0.5, 0.25], [], 0.75),  # all are beyond: of none a variance would be infinite
        ([0.5, 0.25], [1.0, 3.0], 0.75),
    ],
)
def test_second_derivatives_of_hubers_loss_are_of_rows_within_delta(hessians, weight, wanted):
    assert sum_slopes(np.array(hessians), np.array(weight)) == pytest.approx(wanted)


LOSSES = {"poisson": "poisson", "gamma": "gamma", "tweedie": Tweedie(1.5)}


def noise(law, rng, n):
    if law == "poisson":
        return rng.poisson(1.0, n)
    return rng.gamma(1.0, 1.0, n) if law == "gamma" else compound(rng, n, 1.5, 1.5)


PRODUCTS = "f[c0] * g[c1] + h[c2] * k[c3] + c[1]"


@pytest.mark.parametrize(
    ("law", "formula", "worst"),
    [
        ("poisson", None, -0.1),
        ("gamma", None, -0.135),
        ("tweedie", None, -0.135),
        ("poisson", PRODUCTS, -0.03),
        ("gamma", PRODUCTS, -0.02),
        ("tweedie", PRODUCTS, -0.035),
    ],
)
@pytest.mark.filterwarnings("ignore:.*short of the optimum")
def test_few_rows_of_noise_are_not_followed(law, formula, worst):
    """D² of new rows in the mean of tables; by Pearson's dispersion it is below these.

    A dispersion that follows the fit was .63 for 1 (gamma, twenty columns of five categories, 120 rows), and each
    variance larger by it.
    """
    scores = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        size, n_columns, n_categories = (120, 20, 5) if formula is None else (150, 4, 12)
        X = pd.DataFrame(rng.integers(0, n_categories, (size + 2000, n_columns)).astype(str))
        X.columns = [f"c{number}" for number in range(n_columns)]
        y = noise(law, rng, len(X)).astype(float)
        model = WideRegressor(formula, loss=LOSSES[law]).fit(X[:size], y[:size])
        power = {"poisson": 1.0, "gamma": 2.0, "tweedie": 1.5}[law]
        scores.append(d2_tweedie_score(y[size:], model.predict(X[size:]), power=power))
    assert np.mean(scores) > worst


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["counts", "amounts", "no zeros", "zeros"])
def test_the_lowest_positive_targets_of_parts_are_those_of_all_rows(kind, weighted):
    """In whatever order the rows stand; of amounts up to the size class in which the last of them is."""
    rng = np.random.default_rng(0)
    y = {"counts": rng.poisson(0.9, 600) / 1.7, "amounts": rng.poisson(0.9, 600) * rng.gamma(2.0, size=600),
         "no zeros": rng.poisson(0.9, 600) + 1.0, "zeros": np.zeros(600)}[kind]  # fmt: skip
    weight = rng.uniform(0.5, 2.0, 600) if weighted else np.empty(0)
    n_zeros = int((y == 0.0).sum())
    lists = [y[y > 0.0], *([(y * weight)[y > 0.0]] if weighted else [])]
    wanted = max((np.sort(positive)[:n_zeros].mean() for positive in lists if n_zeros and len(positive)), default=0.0)
    for order in (np.arange(600), np.argsort(y)):
        own = weight[order] if weighted else weight
        halves = [PositiveCounts.of(y[order][at], own[at]) for at in (slice(0, 100), slice(100, 350), slice(350, None))]
        found = halves[0] + halves[1] + halves[2]
        assert found.n_zeros == n_zeros
        np.testing.assert_allclose(found.lowest(), wanted, rtol=1e-4 if kind == "amounts" or weighted else 1e-12)


# -- Weights that are no precisions ------------------------------------------------------------


def weighted_rows(power, seed=0, n=3_000):
    """Gradients, Hessians, weights and copies of rows whose squared residuals fall with a power of the weights."""
    rng = np.random.default_rng(seed)
    weight = np.exp(rng.normal(size=n))
    copies = rng.integers(1, 4, n)
    hessian = rng.uniform(0.5, 2.0, n)
    residual = rng.normal(size=n) * np.sqrt(hessian * weight**-power)
    return weight * copies * residual, weight * copies * hessian, weight * copies, copies


def sums_of(gradients, hessians, weight, copies, unit=1.0):
    return WeightBins.of(weight, copies).sums(gradients, hessians, weight, unit)


@pytest.mark.parametrize("power", [0.0, 0.3, 0.7])
def test_the_power_of_weights_is_that_of_maximum_likelihood_and_two_errors(power):
    """Beside the likelihood of normal residuals, minimized, with a standard error by its curvature."""
    gradients, hessians, weight, copies = weighted_rows(power)
    one = weight / copies
    squares = np.repeat(np.square(gradients) / (hessians * weight), copies)
    logs = np.repeat(np.log(one), copies)

    def loss(p):
        return len(logs) / 2 * np.log(np.mean(np.exp(p * logs) * squares)) - p / 2 * logs.sum()

    best = minimize_scalar(loss, bounds=(0.0, 2.0), method="bounded", options={"xatol": 1e-9}).x
    found = likely_power(sums_of(gradients, hessians, weight, copies))
    scaled = np.exp(best * logs) * squares
    slopes = (logs - logs.mean()) * (scaled / scaled.mean() - 1.0)
    step = 1e-3
    curvature = (loss(best + step) - 2.0 * loss(best) + loss(best - step)) / step**2
    error = np.sqrt(np.square(slopes).sum()) / 2.0 / curvature
    assert found == pytest.approx(best + 2.0 * error, abs=0.01)
    assert 0.01 < error < 0.05


def test_weights_are_precisions_unless_residuals_contradict_it():
    assert likely_power(sums_of(*weighted_rows(1.0))) == 1.0
    assert likely_power(sums_of(*weighted_rows(1.4))) == 1.0
    few = [own[:8] for own in weighted_rows(0.8)]
    assert likely_power(sums_of(*few)) == 1.0


def test_gradients_vary_by_kishs_design_effect_where_weights_are_unrelated():
    """The inflation beside simulated sums of gradients, over what their Hessians say."""
    gradients, hessians, weight, _ = weighted_rows(0.0, n=100_000)
    sums = sums_of(gradients, hessians, weight, None)
    power = PowerOfWeights(sums)
    inflation = power.inflation(sums, 0.0)
    assert power.value < 0.05
    pearson = np.mean(np.square(gradients) / hessians)
    assert inflation * pearson == pytest.approx(np.square(gradients).sum() / hessians.sum(), rel=0.05)
    precise = sums_of(*weighted_rows(1.0))
    before = power.value
    assert power.inflation(precise, 0.0) < inflation
    assert power.value == pytest.approx(before + 0.1)  # it rises slowly
    for _ in range(12):
        last = power.inflation(precise, 0.0)
    assert (power.value, last) == pytest.approx((1.0, 1.0))


def test_sums_of_parts_and_copies_are_those_of_the_rows():
    gradients, hessians, weight, copies = weighted_rows(0.4, n=500)
    whole = sums_of(gradients, hessians, weight, copies, 2.0)
    parts = [slice(0, 120), slice(120, None)]
    rows = gradients, hessians, weight, copies
    added = sum(sums_of(*(own[part] for own in rows), 2.0) for part in parts)
    np.testing.assert_allclose(added, whole, rtol=1e-10)
    repeated = (np.repeat(own / copies, copies) for own in (gradients, hessians, weight))
    np.testing.assert_allclose(sums_of(*repeated, None, 2.0), whole, rtol=1e-10)


WEIGHTS = {
    "exponential": lambda rng, n: rng.exponential(size=n) + 0.01,
    "lognormal": lambda rng, n: np.exp(1.5 * rng.normal(size=n)),
    "few heavy": lambda rng, n: rng.gamma(0.2, 5.0, n) + 1e-3,
}


def noisy_table(rng, n, n_categories, n_new=2_000):
    X = pd.DataFrame(rng.integers(0, n_categories, (n + n_new, 3)).astype(str), columns=["a", "b", "c"])
    score = sum(X[name].map(dict(zip(X[name].unique(), rng.normal(0.0, 0.3, 999), strict=False))) for name in X)
    return X, score.to_numpy()


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("formula", [None, "c[1] + u[a]*v[b]"])
def test_weights_that_are_unrelated_to_the_noise_do_not_follow_heavy_rows(weights, formula):
    """R² of new rows in the mean of tables; as precisions they gave -.1 to -.6 without a formula."""
    scores = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, score = noisy_table(rng, 600, 60)
        y = score + rng.normal(size=len(X))
        model = WideRegressor(formula, loss="squared_error", **({} if formula else {"interactions": None}))
        model.fit(X[:600], y[:600], sample_weight=WEIGHTS[weights](rng, 600))
        scores.append(r2_score(y[600:], model.predict(X[600:])))
    assert np.mean(scores) > -0.02


@pytest.mark.parametrize("weights", WEIGHTS)
def test_precisions_have_the_variances_of_reml(weights):
    """Weights to which squared residuals belong, beside the restricted likelihood of dense algebra."""
    rng = np.random.default_rng(3)
    group = rng.integers(0, 30, 400)
    weight = WEIGHTS[weights](rng, 400)
    weight /= weight.mean()
    y = rng.normal(0.0, 0.7, 30)[group] + rng.normal(size=400) / np.sqrt(weight)
    wanted, _ = maximise_reml(y, np.ones((400, 1)), np.eye(30)[group], weight)
    X = pd.DataFrame({"g": group.astype(str)})
    model = WideRegressor(loss="squared_error", count_effect=False, tol=1e-8, max_iter=5_000)
    model.fit(X, y, sample_weight=weight)
    assert model.variances_.loc["g", "variance"] == pytest.approx(wanted, rel=1e-3)


def test_the_variances_of_unrelated_weights_are_those_of_gradients():
    """Balanced groups of unrelated weights: the variance between is that of the groups' true effects, without bias."""
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        group = np.repeat(np.arange(100), 8)
        y = rng.normal(0.0, 0.5, 100)[group] + rng.normal(size=800)
        weight = np.exp(1.2 * rng.normal(size=800))
        model = WideRegressor(loss="squared_error", count_effect=False)
        model.fit(pd.DataFrame({"g": group.astype(str)}), y, sample_weight=weight)
        found.append(model.variances_.loc["g", "variance"])
    assert np.mean(found) == pytest.approx(0.25, rel=0.35)


def test_fletchers_terms_divide_down_to_nine_tenths():
    """As in mgcv: at -1 the dispersion would be infinite."""
    for fletcher in (-0.5, 0.0, 2.0, -0.89):
        assert for_sparse(3.0, fletcher) == pytest.approx(3.0 / (1.0 + fletcher))
    for fletcher in (-0.91, -1.0, -4.0):
        assert for_sparse(3.0, fletcher) == 3.0


def test_parts_tell_whole_numbers_below_256_apart():
    """By the leading bit of a number and seven more: of larger numbers those that share these are one size."""
    weight = np.empty(0)
    ((sizes, numbers, sums),) = PositiveCounts.of(np.arange(256.0), weight).by_size
    assert len(sizes) == 255 and (numbers == 1.0).all()
    np.testing.assert_array_equal(sums, np.arange(1.0, 256.0))
    ((sizes, numbers, sums),) = PositiveCounts.of(np.array([256.0, 257.0, 258.0, 512.0, 515.0, 516.0]), weight).by_size
    assert numbers.tolist() == [2.0, 1.0, 2.0, 1.0] and sums.tolist() == [513.0, 258.0, 1027.0, 516.0]


def test_bins_of_weights_are_eighths_of_powers_of_two_up_to_thirty():
    powers = np.array([-31.0, -30.0, -29.875, -0.125, -0.05, 0.0, 0.05, 0.125, 29.875, 30.0, 31.0])
    bins = WeightBins.of(2.0**powers, None)
    assert (bins.index - 240).tolist() == [-240, -240, -239, -1, 0, 0, 0, 1, 239, 240, 240]
    assert len(bins.counts) == 481 and bins.counts[240] == 3.0
    assert bins.logs[0] == pytest.approx(-61.0 * np.log(2.0)) and bins.logs[480] == pytest.approx(61.0 * np.log(2.0))
