"""Models without penalties whose terms determine each other: what the rows determine has a standard deviation.

Stores within regions: differences of stores of one region are estimable, others are not. Beside statsmodels, with one
coefficient a store.
"""

import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from sklearn.exceptions import ConvergenceWarning

import tabsym
import tabsym.losses
from tabsym import WideClassifier, WideRegressor
from tests.options import GLM

N = 400
RNG = np.random.default_rng(0)
REGION = RNG.integers(0, 3, N)
STORE = 3 * REGION + RNG.integers(0, 3, N)
X = pd.DataFrame(
    {"region": [f"r{one}" for one in REGION], "store": [f"s{one}" for one in STORE], "u": RNG.normal(size=N)}
)
ETA = 0.2 * STORE - 0.5 + 0.3 * X["u"]
TARGETS = {
    "squared_error": (ETA + RNG.normal(size=N), sm.families.Gaussian()),
    "poisson": (RNG.poisson(np.exp(ETA)), sm.families.Poisson()),
    "log_loss": ((RNG.random(N) < 1 / (1 + np.exp(-ETA))).astype(int), sm.families.Binomial()),
}
STORES = [f"s{one}" for one in range(9)]
DESIGN = pd.get_dummies(X["store"])[STORES].assign(u=X["u"]).astype(float)


def fitted(loss, **options):
    y = TARGETS[loss][0]
    model = WideClassifier() if loss == "log_loss" else WideRegressor(loss=loss)
    with pytest.warns(UserWarning, match="not unique"):
        return model.set_params(**GLM | {"numeric": "linear"} | options).fit(X, y)


def peer_of(loss):
    y, family = TARGETS[loss]
    return sm.GLM(y, DESIGN, family=family).fit(scale=None if loss == "log_loss" else "X2")


@pytest.mark.slow
@pytest.mark.parametrize("loss", TARGETS)
def test_differences_within_a_region_have_the_deviations_of_statsmodels(loss, tmp_path):
    tabsym.save(fitted(loss), tmp_path / "model.skops")
    model = tabsym.load(tmp_path / "model.skops")
    peer = peer_of(loss)
    for one, other in combinations(range(9), 2):
        found = model.contrast("store", STORES[one], STORES[other])
        if one // 3 != other // 3:
            assert np.isinf(found["sd"])
            continue
        c = np.eye(10)[one] - np.eye(10)[other]
        assert found["value"] == pytest.approx(c @ peer.params, abs=1e-4)
        assert found["sd"] == pytest.approx(np.sqrt(c @ peer.cov_params() @ c), rel=1e-4)
    assert np.isinf(model.contrast("region", "r0", "r1")["sd"])
    assert np.isinf(model.coefs_["store"]["sd"]).all()
    assert np.isfinite(model.coefs_["u"]["sd"].iloc[0])


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_differences_of_stores_of_few_rows_are_as_estimable_as_those_of_many(seed):
    """Those of two regions had a deviation, those of one region none, where one of the stores had few rows."""
    rng = np.random.default_rng(seed)
    sizes = np.array([1500, 3, 20, 2, 900, 400])  # three stores a region
    store = rng.permutation(np.repeat(np.arange(6), sizes))
    table = pd.DataFrame({"region": store // 3, "store": store}).astype(str)
    y = 0.3 * store + rng.normal(size=len(store))
    with pytest.warns(UserWarning, match="not unique"):
        model = WideRegressor("r[region] + s[store] + c[1]", loss="squared_error", alpha=0.0).fit(table, y)
    residuals = y - (np.bincount(store, y) / sizes)[store]
    noise = residuals @ residuals / (len(y) - 6)
    for one, other in combinations(range(6), 2):
        wanted = np.sqrt(noise * (1 / sizes[one] + 1 / sizes[other])) if one // 3 == other // 3 else np.inf
        assert model.contrast("s", str(one), str(other))["sd"] == pytest.approx(wanted, rel=1e-3)


@pytest.mark.parametrize("n_stores", [300, 1500])
def test_differences_of_many_stores_are_estimable_within_a_region_only(n_stores):
    """In one matrix, and of 1,500 beside one: those of two regions had a deviation there."""
    rng = np.random.default_rng(0)
    store = np.append(np.arange(n_stores), rng.integers(0, n_stores, 7 * n_stores))
    table = pd.DataFrame({"region": store % 3, "store": store}).astype(str)
    y = rng.normal(size=len(store))
    with pytest.warns(UserWarning, match="not unique"):
        model = WideRegressor("r[region] + s[store] + c[1]", loss="squared_error", alpha=0.0).fit(table, y)
    rows = np.bincount(store)
    residuals = y - (np.bincount(store, y) / rows)[store]
    noise = residuals @ residuals / (len(y) - n_stores)
    for one, other in ((0, 3), (4, 7), (0, 1), (2, 4)):
        wanted = np.sqrt(noise * (1 / rows[one] + 1 / rows[other])) if (one - other) % 3 == 0 else np.inf
        assert model.contrast("s", str(one), str(other))["sd"] == pytest.approx(wanted, rel=1e-3)
    assert np.isinf(model.coefs_["s"]["sd"]).all()


@pytest.mark.parametrize("loss", TARGETS)
def test_the_intercept_of_base_categories_is_a_cell(loss):
    model = fitted(loss)
    peer = peer_of(loss)
    base = model.coef_table(base={"region": "r1", "store": "s4"}).set_index("term").loc["(intercept)"]
    assert base["value"] == pytest.approx(peer.params["s4"], abs=1e-4)
    assert base["sd"] == pytest.approx(peer.bse["s4"], rel=1e-4)
    nowhere = model.coef_table(base={"region": "r1", "store": "s8"}).set_index("term").loc["(intercept)"]
    assert np.isinf(nowhere["sd"])


@pytest.mark.parametrize("loss", TARGETS)
def test_predictions_of_combinations_that_training_has_are_certain(loss):
    model = fitted(loss, n_posterior_samples=800)
    peer = peer_of(loss)
    rows = DESIGN.to_numpy()[:40]
    wanted = np.sqrt(np.einsum("ij,jk,ik->i", rows, peer.cov_params(), rows))
    of = model.decision_function if loss == "log_loss" else model.predict
    value, sd = of(X[:40], return_std=True)
    if loss == "poisson":
        sd = sd / value
    np.testing.assert_allclose(sd, wanted, rtol=0.15)
    unseen = pd.DataFrame({"region": ["r0", "r1", "new"], "store": ["s3", "s3", "s3"], "u": 0.0})
    np.testing.assert_array_equal(np.isfinite(of(unseen, return_std=True)[1]), [False, True, False])


def test_differences_of_several_classes_are_those_of_the_multinomial_logit():
    y = np.array(list("klm"))[RNG.integers(0, 3, N)]
    with pytest.warns(UserWarning, match="not unique"):
        model = WideClassifier(**GLM | {"numeric": "linear"}).fit(X, y)
    peer = sm.MNLogit(y, DESIGN).fit(disp=0, maxiter=100)
    covariance = peer.cov_params().to_numpy()
    beside = (np.eye(3) - 1 / 3)[:, 1:]  # less the mean over classes; the first is the base
    for one, other in ((0, 1), (3, 5), (7, 8)):
        found = model.contrast("store", STORES[one], STORES[other])
        c = np.kron(beside, np.eye(10)[one] - np.eye(10)[other])
        np.testing.assert_allclose(found["sd"], np.sqrt(np.diag(c @ covariance @ c.T)), rtol=2e-3)
    assert np.isinf(model.contrast("store", "s0", "s3")["sd"]).all()
    slopes = model.coefs_["u"].filter(like="sd").to_numpy()
    c = np.kron(beside, np.eye(10)[9])
    np.testing.assert_allclose(slopes.ravel(), np.sqrt(np.diag(c @ covariance @ c.T)), rtol=2e-3)


def test_main_effects_and_their_interaction():
    """The sum of the three coefficients is a cell's mean; differences of those of the interaction alone are unknown."""
    both = X.assign(a=X["region"], b=np.array(list("xyz"))[RNG.integers(0, 3, N)])[["a", "b"]]
    y = TARGETS["squared_error"][0]
    with pytest.warns(UserWarning, match="not unique"):
        model = WideRegressor(loss="squared_error", **GLM | {"interactions": [("a", "b")]}).fit(both, y)
    assert np.isinf(model.contrast("a:b", ("r0", "x"), ("r0", "y"))["sd"])
    base = model.coef_table(base={"a": "r0", "b": "x", "a:b": ("r0", "x")}).set_index("term").loc["(intercept)"]
    cell = y[(both["a"] == "r0") & (both["b"] == "x")]
    assert base["value"] == pytest.approx(cell.mean(), abs=1e-4)
    assert base["sd"] == pytest.approx(np.sqrt(model.dispersion_ / len(cell)), rel=1e-4)


@pytest.mark.parametrize("apart", [0.0, 1e-10, 1e-8, 1e-6, 1e-5])
def test_slopes_of_nearly_the_same_column_are_told_of(apart):
    columns = pd.DataFrame({"u": X["u"], "v": X["u"] + apart * RNG.normal(size=N)})
    y = X["u"] + RNG.normal(size=N)
    with pytest.warns(UserWarning, match="coefficients of 'u', 'v' are not unique"):
        model = WideRegressor(loss="squared_error", numeric="linear", interactions=None, alpha=0.0).fit(columns, y)
    assert np.isinf(model.coefs_["u"]["sd"]).all()
    assert np.isinf(model.coefs_["v"]["sd"]).all()
    peer = sm.OLS(y, sm.add_constant(X["u"])).fit()
    intercept = model.coef_table().set_index("term").loc["(intercept)"]
    assert intercept["value"] == pytest.approx(peer.params["const"], abs=5e-3)
    assert intercept["sd"] == pytest.approx(peer.bse["const"], rel=2e-2)


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "gamma"])
@pytest.mark.parametrize(("n", "n_groups"), [(200, 195), (100, 98), (40, 38)])
def test_few_residual_degrees_of_freedom(loss, n, n_groups):
    """The dispersion is Pearson's statistic over those that are left, not over a share of the rows."""
    rng = np.random.default_rng(n)
    table = pd.DataFrame({"g": [f"c{i % n_groups}" for i in range(n)], "x": rng.normal(size=n)})
    table["y"] = rng.normal(size=n) if loss == "squared_error" else 1.0 + rng.poisson(4.0, size=n)
    model = WideRegressor("y ~ w[g] + s[1]*x + c[1]", loss=loss, alpha=0.0, count_effect=False, tol=1e-6).fit(table)
    family = {
        "squared_error": sm.families.Gaussian(),
        "poisson": sm.families.Poisson(),
        "gamma": sm.families.Gamma(sm.families.links.Log()),
    }[loss]
    design = pd.get_dummies(table["g"], dtype=float).assign(x=table["x"])
    theirs = sm.GLM(table["y"], design, family=family, hasconst=True).fit(scale="X2", wls_method="qr")
    assert model.dispersion_ == pytest.approx(theirs.scale, rel=1e-3)
    assert model.coefs_["s"]["sd"].iloc[0] == pytest.approx(theirs.bse["x"], rel=1e-3)


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "gamma"])
@pytest.mark.parametrize("formula", ["y ~ u[s, d] + c[1]", "y ~ a[s] * b[d] + c[1]"])
def test_a_saturated_model_has_no_deviations_and_says_so(loss, formula, tmp_path):
    table = pd.DataFrame({"s": list("mmff"), "d": list("ynyn"), "y": [15.0, 25.0, 10.0, 30.0]})
    with pytest.warns(UserWarning, match="no residual degrees of freedom"):
        model = WideRegressor(formula, loss=loss, alpha=0.0).fit(table)
    assert np.isnan(model.dispersion_)
    assert model.coef_table()[["sd", "lower", "upper", "p"]].isna().all(axis=None)
    assert np.isfinite(model.coef_table()["value"]).all()
    tabsym.save(model, tmp_path / "saturated.tabsym")
    assert np.isnan(tabsym.load(tmp_path / "saturated.tabsym").dispersion_)
    assert model.summary()


@pytest.mark.parametrize("share", [0.02, 0.2, 0.8])
@pytest.mark.parametrize("loss", ["log_loss", "poisson", 1.5])
def test_an_indicator_that_decides_the_target_has_no_estimate(loss, share):
    """As the same column as categories: without a penalty the slope of the indicator is infinite."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"b": (rng.random(600) < share).astype(int), "x": rng.normal(size=600)})
    free = rng.random(600) < 0.4 if loss == "log_loss" else rng.poisson(1.0, 600)
    few = share < 0.5  # which value is mostly there
    table["y"] = np.where(table["b"] == few, 0, free)
    table["text"] = table["b"].map({0: "no", 1: "yes"})
    fitted = {}
    for column, term in (("b", "s[1]*b"), ("text", "s[text]")):
        options = {} if loss == "log_loss" else {"loss": tabsym.losses.Tweedie(1.5) if loss == 1.5 else loss}
        model = (WideClassifier if loss == "log_loss" else WideRegressor)(
            f"y ~ {term} + t[1]*x + c[1]", alpha=0.0, **options
        )
        with pytest.warns(ConvergenceWarning, match="'s' separates the target completely"):
            fitted[column] = model.fit(table)
        assert np.isinf(model.coefs_["s"]["sd"]).all()
        assert model.coef_table().set_index("term").loc[["s"], "p"].isna().all()
    both = [fitted[column].coefs_["t"].iloc[0] for column in ("b", "text")]
    assert both[0]["value"] == pytest.approx(both[1]["value"], rel=1e-3)
    assert both[0]["sd"] == pytest.approx(both[1]["sd"], rel=1e-3)


def test_an_indicator_with_an_event_has_an_estimate():
    """One event in 3,000 rows: statsmodels' deviation, and no warning."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"b": np.repeat([0, 1], [4000, 3000])})
    table["y"] = np.where(table["b"] == 1, 0, rng.random(7000) < 0.4)
    table.loc[5000, "y"] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = WideClassifier("y ~ s[1]*b + c[1]", alpha=0.0, tol=1e-6).fit(table)
    theirs = sm.GLM(table["y"], sm.add_constant(table["b"].astype(float)), family=sm.families.Binomial()).fit()
    assert model.coefs_["s"]["sd"].iloc[0] == pytest.approx(theirs.bse["b"], rel=1e-3)
