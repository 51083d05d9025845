"""``monotonic_cst``: the constrained optimum beside quadratic programs of scipy, no violations, and what is refused."""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from tabsym import WideClassifier, WideRegressor, load, save
from tabsym.solvers.newton.joint import _share_within
from tabsym.solvers.newton.terms import NEXT_TO_NOTHING, Prior, SolverTerm
from tests.solver import working

CLOSE = {"tol": 1e-6, "max_iter": 2_000, "interactions": None, "count_effect": False}
SIZES = ["S", "M", "L", "XL"]


def table(n=300, seed=0):
    """Columns whose effects are not monotone in the sample, a few missing."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "price": np.where(rng.random(n) < 0.1, np.nan, rng.gamma(2.0, 1.0, n)),
            "size": pd.Categorical(rng.choice(SIZES, n), categories=SIZES, ordered=True),
            "shop": rng.choice([f"s{index}" for index in range(6)], n),
            "year": rng.integers(0, 5, n),
        }
    )
    eta = np.sin(3 * X["price"].fillna(1.0)) - 0.3 * X["price"].fillna(1.0) + 0.3 * (X["size"].cat.codes == 1)
    eta = (eta + 0.2 * (X["shop"] == "s1") + rng.normal(0, 0.1, n)).to_numpy()
    return X, eta, rng


def target(loss, eta, rng):
    if loss == "poisson":
        return rng.poisson(np.exp(eta)).astype(float)
    return eta + rng.normal(size=len(eta)) if loss == "squared_error" else (rng.random(len(eta)) < expit(eta)) * 1


# -- the optimum -----------------------------------------------------------


class Oracle:
    """Minimize a loss plus penalties by quadratic programs in nonnegative steps (scipy's NNLS), halved where needed.

    Every coefficient of the design is a sum of free numbers and of steps of one sign along an order.
    """

    def __init__(self, loss, y, weight, offset):
        self.loss, self.y, self.weight, self.offset = loss, y, weight, offset
        self.columns, self.free, self.penalties = [np.ones(len(y))], [True], []

    def walk(self, values, bounds, precision, direction):
        """Bins (low, high] of a number; the first coefficient is 0, missing values about the mean of the others."""
        known, n_bins = ~np.isnan(values), len(bounds) + 1
        bins = np.searchsorted(bounds, values, side="left")
        first = len(self.columns)
        for step in range(1, n_bins):
            self.columns.append(direction * (known & (bins >= step)).astype(float))
            self.free.append(direction == 0)
            if direction == 0:
                self.columns[-1] = (known & (bins >= step)).astype(float)
            self.penalties.append((precision, {first + step - 1: 1.0}))
        if not known.all():
            self.columns.append((~known).astype(float))
            self.free.append(True)
            share = 6.0 * n_bins / (n_bins**2 - 1.0)
            means = {first + step - 1: -(direction or 1) * (n_bins - step) / n_bins for step in range(1, n_bins)}
            self.penalties.append((precision * share, {len(self.columns) - 1: 1.0} | means))

    def ridge(self, codes, n, precision, direction=0):
        """Categories; in their order where there is a direction: then a free first one, and steps."""
        first = len(self.columns)
        for code in range(n):
            is_step = direction and code > 0
            self.columns.append(direction * (codes >= code).astype(float) if is_step else (codes == code).astype(float))
            if direction and code == 0:
                self.columns[-1] = np.ones(len(codes))
            self.free.append(not is_step)
        for code in range(n):
            by = {first: 1.0} | {first + step: direction for step in range(1, code + 1)}
            self.penalties.append((precision, by if direction else {first + code: 1.0}))

    def slope(self, x, direction):
        self.columns.append(direction * x)
        self.free.append(False)

    def scores(self):
        """The linear predictor at the optimum."""
        D, free = np.array(self.columns).T, np.array(self.free)
        root = np.zeros((len(self.penalties), D.shape[1]))
        for row, (precision, by) in enumerate(self.penalties):
            root[row, list(by)] = np.sqrt(precision) * np.array(list(by.values()))
        split = np.column_stack([np.eye(len(free)), -np.eye(len(free))[:, free]])
        x = np.zeros(D.shape[1])
        for _ in range(100):
            eta = self.offset + D @ x
            value, slope, hessian_of = self.values(eta)
            half = np.sqrt(self.weight * hessian_of)
            left = np.vstack([half[:, None] * D, root])
            right = np.concatenate([half * (D @ x) - self.weight * slope / half, np.zeros(len(root))])
            step = split @ nnls(left @ split, right, maxiter=100_000)[0] - x
            before = value @ self.weight + 0.5 * np.square(root @ x).sum()
            share = 1.0
            while share > 1e-9:
                to = x + share * step
                after = self.values(self.offset + D @ to)[0] @ self.weight + 0.5 * np.square(root @ to).sum()
                if after <= before:
                    break
                share /= 2
            x = x + share * step
            if np.abs(D @ step).max() < 1e-12:
                break
        return self.offset + D @ x

    def values(self, eta):
        if self.loss == "squared_error":
            return 0.5 * np.square(self.y - eta), eta - self.y, np.ones(len(eta))
        if self.loss == "poisson":
            return np.exp(eta) - self.y * eta, np.exp(eta) - self.y, np.exp(eta)
        p = expit(eta)
        return np.logaddexp(0, eta) - self.y * eta, p - self.y, p * (1 - p)


def oracle_of(model, X, loss, y, weight, offset):
    """The oracle of a fitted model, at its variances."""
    oracle = Oracle(loss, y, weight, offset)
    precision = working(model) / model.variances_["variance"]  # missing for slopes and dropped terms
    cst = model.monotonic_cst
    for name in ("price", "year"):
        frame = model.coefs_[name]
        if "high" in frame:
            bounds = frame["high"].dropna().to_numpy()[:-1]
            if np.isfinite(precision[name]):
                oracle.walk(X[name].to_numpy(dtype=float), bounds, precision[name], cst.get(name, 0))
        else:
            oracle.slope(X[name].to_numpy(dtype=float), cst[name])
    if np.isfinite(precision["size"]):
        oracle.ridge(X["size"].cat.codes.to_numpy(), len(SIZES), precision["size"], cst.get("size", 0))
    if np.isfinite(precision["shop"]):
        oracle.ridge(X["shop"].str[1:].astype(int).to_numpy(), 6, precision["shop"])
    return oracle


LOSSES = ["squared_error", "poisson", "log_loss"]
CASES = [
    ({"price": -1}, {}),
    ({"price": 1, "size": -1, "year": -1}, {}),
    ({"price": -1, "size": 1}, {"alpha": 0.01}),
    ({"price": -1, "year": -1}, {"numeric": {"year": "linear"}}),
    ({"price": 1, "size": 1, "year": 1}, {"alpha": 1e-4, "numeric": {"year": "linear"}}),
]


@pytest.mark.parametrize(("loss", "cst", "options"), [(loss, *case) for number, loss in enumerate(LOSSES)
                                                      for case in CASES[number::2]])  # fmt: skip
def test_the_constrained_optimum_at_the_same_variances(loss, cst, options):
    X, eta, rng = table()
    y = target(loss, eta, rng)
    weight, offset = rng.integers(1, 4, len(y)).astype(float), rng.normal(0, 0.2, len(y))
    kind = WideClassifier if loss == "log_loss" else WideRegressor
    more = {} if loss == "log_loss" else {"loss": loss}
    model = kind(monotonic_cst=cst, **CLOSE | options | more).fit(X, y, sample_weight=weight, offset=offset)
    found = model.explain(X).sum(axis=1).to_numpy() + offset
    free = kind(**CLOSE | options | more).fit(X, y, sample_weight=weight, offset=offset)
    expected = oracle_of(model, X, loss, y, weight / weight.mean(), offset).scores()
    assert np.abs(found - expected).max() < 1e-6
    apart = np.abs(free.explain(X).sum(axis=1).to_numpy() + offset - found).max()
    assert apart > 1e-3  # the constraint binds
    if "alpha" not in options:
        assert model.variances_["variance"].equals(free.variances_["variance"])  # those of the fit without it


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 25), st.sampled_from([1e-3, 1.0, 1e3]), st.booleans(), st.booleans())
def test_a_step_is_the_optimum_of_its_quadratic_program(seed, size, precision, is_walk, has_missing):
    rng = np.random.default_rng(seed)
    apart, prior = int(has_missing), Prior.WALK if is_walk else Prior.RIDGE
    q = size + apart
    chain = np.arange(apart, q)[:: rng.choice([1, -1])]
    term = SolverTerm(0, np.zeros(1, np.int32), np.empty(0), q, prior, apart if is_walk else 0, chain=chain)
    hessians_of, gradient = rng.gamma(1.0, 10.0, q), rng.normal(0.0, 30.0, (q, 1))
    theta = term.feasible(rng.normal(size=(q, 1)) * rng.integers(0, 2), hessians_of[:, None])
    hessian, penalty = np.diag(hessians_of), precision * np.eye(q)
    if is_walk:
        jumps, beside = np.diff(np.eye(q)[apart:], axis=0), np.eye(q)[:apart]
        beside[:, apart:] = -1.0 / size
        penalty = precision * (jumps.T @ jumps + 6.0 * size / (size**2 - 1.0) * beside.T @ beside)
        penalty[range(apart, q), range(apart, q)] += NEXT_TO_NOTHING
    hessian = hessian + penalty
    slope = gradient[:, 0] + penalty @ theta[:, 0]
    steps = np.array([np.isin(np.arange(q), chain[start:]) for start in range(size)]).T.astype(float)
    free = np.column_stack([np.eye(q)[:, :apart], steps[:, :1]])
    by = np.column_stack([free, -free, steps[:, 1:]])
    lower = np.linalg.cholesky(hessian)
    best = by @ nnls(lower.T @ by, lower.T @ (theta[:, 0] - np.linalg.solve(hessian, slope)), maxiter=10_000)[0]

    def value(at):
        step = at - theta[:, 0]
        return 0.5 * step @ hessian @ step + slope @ step

    moved = theta.copy()
    made, decrease = term.monotone_step(gradient, hessians_of[:, None].copy(), moved, precision)
    assert term.is_feasible(moved)
    assert np.allclose(moved - theta, made)
    assert np.isclose(decrease, -value(moved[:, 0]), rtol=1e-7, atol=1e-9)
    assert value(moved[:, 0]) <= value(best) + 1e-9 * (1.0 + abs(value(best)))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000))
def test_a_joint_step_is_cut_where_it_leaves_the_constraints(seed):
    """At the first of two terms that ends, and only as far as is needed: a little more is outside."""
    rng = np.random.default_rng(seed)
    chain = rng.permutation(6)[:5]
    terms = [
        SolverTerm(0, np.zeros(1, np.int32), np.empty(0), 6, Prior.RIDGE, chain=chain),
        SolverTerm(1, np.zeros(1, np.int32), np.ones(1), 1, Prior.FLAT, sign=-1),
    ]
    theta = [rng.normal(size=(6, 1)), -rng.gamma(1.0, size=(1, 1))]
    theta[0][chain, 0] = np.sort(theta[0][chain, 0])
    steps = [rng.normal(size=one.shape) for one in theta]
    solver = SimpleNamespace(terms=terms, theta=theta)
    share = _share_within(solver, [0, 1], steps)

    def is_within(share):
        moved = [own + share * step for own, step in zip(theta, steps, strict=True)]
        return (np.diff(moved[0][chain, 0]) >= 0.0).all() and (moved[1] <= 0.0).all()

    assert 0.0 < share <= 1.0
    assert is_within(share * (1 - 1e-9))
    assert share == 1.0 or not is_within(share * (1 + 1e-9))


# -- no violations -----------------------------------------------------------


def violations(model, X, name, direction, grid):
    """How often a prediction goes the wrong way over a grid, the other columns held."""
    found = 0
    for row in range(0, len(X), 40):
        rows = X.iloc[[row]].loc[lambda one: one.index.repeat(len(grid))].reset_index(drop=True)
        rows[name] = pd.Categorical(grid, categories=SIZES, ordered=True) if name == "size" else grid
        for values in (model.predict(rows), model.decision_function(rows) if hasattr(model, "classes_") else []):
            found += int((direction * np.diff(np.asarray(values, dtype=float)) < 0).sum())
    return found


GRIDS = {"price": np.linspace(-1.0, 15.0, 2_000), "year": np.linspace(-3, 9, 300), "size": SIZES}


@pytest.mark.parametrize("numeric", ["smooth", "linear", "quantile", "modl"])
@pytest.mark.parametrize("loss", ["auto", "huber", "gamma", "tweedie", "log_loss"])
def test_predictions_never_go_the_wrong_way(loss, numeric):
    X, eta, rng = table(600, seed=3)
    y = target("log_loss", eta, rng) if loss == "log_loss" else rng.gamma(2.0, np.exp(eta) / 2.0)
    cst = {"price": -1, "size": 1, "year": -1}
    model = WideClassifier() if loss == "log_loss" else WideRegressor(loss=loss)
    model.set_params(numeric=numeric, monotonic_cst=cst).fit(X, y)
    for name, direction in cst.items():
        assert violations(model, X, name, direction, GRIDS[name]) == 0
    assert not [name for name in model.interactions_["interaction"] if set(name.split(":")) & set(cst)]


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 2**31),
    st.dictionaries(st.sampled_from(["price", "year", "size"]), st.sampled_from([-1, 1]), min_size=1),
    st.sampled_from(["smooth", "linear", "quantile"]),
    st.sampled_from(["squared_error", "poisson", "log_loss"]),
    st.sampled_from(["auto", 0.0, 0.1]),
)
def test_any_directions_hold(seed, cst, numeric, loss, alpha):
    X, eta, rng = table(int(np.random.default_rng(seed).integers(20, 200)), seed)
    y = target(loss, eta, rng)
    if loss == "log_loss":
        y[:2] = 0, 1
    model = WideClassifier() if loss == "log_loss" else WideRegressor(loss=loss)
    model.set_params(numeric=numeric, alpha=alpha, monotonic_cst=cst, interactions=None).fit(X, y)
    for name, direction in cst.items():
        grid = GRIDS[name] if name != "size" else [size for size in SIZES if size in set(X["size"])]
        assert violations(model, X, name, direction, grid) == 0


@pytest.mark.parametrize("numeric", ["smooth", "linear", "quantile"])
def test_an_optimum_that_is_monotone_stays_as_it_is(numeric):
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"x": rng.uniform(0, 1, 2_000), "a": rng.choice(list("uvw"), 2_000)})
    y = 50.0 * X["x"] + 10.0 * (X["x"] > 0.75) + (X["a"] == "u") + rng.normal(0, 0.01, 2_000)
    options = {"numeric": numeric, "loss": "squared_error", "interactions": None}
    free = WideRegressor(**options).fit(X, y)
    assert (np.diff(free.coefs_["x"]["value"]) >= 0).all()
    held = WideRegressor(monotonic_cst={"x": 1}, **options).fit(X, y)
    assert (free.predict(X) == held.predict(X)).all()
    for name in free.coefs_:
        pd.testing.assert_frame_equal(free.coefs_[name], held.coefs_[name], check_exact=True)


def test_opposite_directions_leave_a_constant():
    X, _, rng = table()
    X = X[["price"]].dropna()
    y = 2.0 * X["price"] + 0.1 * rng.normal(size=len(X))
    for numeric in ("smooth", "linear", "quantile"):
        model = WideRegressor(loss="squared_error", numeric=numeric, monotonic_cst={"price": -1}, alpha=1e-3)
        found = model.fit(X, y).predict(X)
        assert found.max() == found.min() == pytest.approx(y.mean(), rel=1e-9)


# -- categories --------------------------------------------------------------


def test_categories_go_by_their_order_in_pandas_and_polars():
    pl = pytest.importorskip("polars")
    X, _, rng = table()
    y = X["size"].cat.codes.map({0: 1.0, 1: 3.0, 2: 2.0, 3: 4.0}).astype(float) + 0.1 * rng.normal(size=len(X))
    options = {"loss": "squared_error", "alpha": 0.0, "monotonic_cst": {"size": 1}, "interactions": None}
    model = WideRegressor(**options).fit(X[["size"]], y)
    means = model.predict(pd.DataFrame({"size": pd.Categorical(SIZES, categories=SIZES, ordered=True)}))
    rows = X["size"].value_counts()
    middle = y[X["size"].isin(["M", "L"])].mean()
    assert rows.min() > 0
    expected = [y[X["size"] == "S"].mean(), middle, middle, y[X["size"] == "XL"].mean()]
    assert means == pytest.approx(expected, rel=1e-9)
    assert means[1] == means[2]
    enum = pl.DataFrame({"size": pl.Series(X["size"].tolist(), dtype=pl.Enum(SIZES))})
    assert WideRegressor(**options).fit(enum, y).predict(enum) == pytest.approx(model.predict(X[["size"]]), abs=1e-12)


def test_booleans_have_an_order_and_missing_categories_are_free():
    rng = np.random.default_rng(0)
    alarm, size = rng.random(200) < 0.5, rng.choice([*SIZES, None], 200)
    X = pd.DataFrame({"alarm": alarm, "size": pd.Categorical(size, categories=SIZES, ordered=True)})
    y = np.where(alarm, 1.0, 0.0) + np.where(X["size"].isna(), 9.0, 0.0) - X["size"].cat.codes + rng.normal(size=200)
    model = WideRegressor(loss="squared_error", monotonic_cst={"alarm": -1, "size": 1}, interactions=None).fit(X, y)
    shown = model.coefs_["alarm"]["value"]
    assert shown[True] == shown[False]
    sizes = model.coefs_["size"]["value"]
    assert sizes[sizes.index.isna()].item() > sizes[sizes.index.notna()].max() + 5
    falling = WideRegressor(loss="squared_error", monotonic_cst={"alarm": 1}, interactions=None).fit(X, y)
    assert falling.coefs_["alarm"]["value"][True] > falling.coefs_["alarm"]["value"][False]


def test_a_constrained_category_has_no_count_effect():
    rng = np.random.default_rng(2)
    names = [f"c{index:03}" for index in range(150)]
    X = pd.DataFrame({"a": pd.Categorical(rng.choice(names, 400), categories=names, ordered=True)})
    y = rng.normal(size=400) + np.log1p(X["a"].map(X["a"].value_counts()).astype(float))
    assert "count of a" in WideRegressor(loss="squared_error").fit(X, y).coefs_
    assert "count of a" not in WideRegressor(loss="squared_error", monotonic_cst={"a": 1}).fit(X, y).coefs_


# -- formulas ------------------------------------------------------------------


def test_formulas_by_brackets_slopes_and_functions():
    X, eta, rng = table()
    X["price"] = X["price"].fillna(1.0)
    frame = X.assign(y=target("squared_error", eta, rng))
    cst = {"price": 1, "size": 1}
    made = {"loss": "squared_error", "monotonic_cst": cst}
    brackets = WideRegressor("y ~ w[price] + v[size] + b[1]", **made).fit(frame)
    assert (np.diff(brackets.coefs_["w"]["value"]) >= 0).all()
    assert violations(brackets, frame.drop(columns="y"), "size", 1, SIZES) == 0
    for text, direction in {
        "s[1]*log(price)": 1,
        "s[1]*exp(0 - price)": 1,
        "s[1]*log(1 + 2*price)": -1,
        "s[1]*price": -1,
        "s[1]*(price / -2)": -1,
    }.items():
        made["monotonic_cst"] = {"price": direction}
        model = WideRegressor(f"y ~ {text} + b[1]", **made).fit(frame)
        at = model.predict(frame.head(2).assign(price=[1.0, 2.0]))
        assert direction * (at[1] - at[0]) >= 0.0
    for text in (
        "s[1]*abs(price)",
        "s[1]*(1 / price)",
        "s[1]*price*year",
        "s[shop]*price",
        "w[price, shop]",
        "price + w[shop]",
    ):
        with pytest.raises(ValueError, match=r"monotonic_cst names 'price'"):
            WideRegressor(f"y ~ {text} + b[1]", **made).fit(frame)
    with pytest.raises(ValueError, match="for sums of terms"):
        WideRegressor("y ~ w[price] + u[size] * v[shop] + b[1]", **made).fit(frame)


# -- as an estimator --------------------------------------------------------------


def test_clone_search_and_files(tmp_path):
    X, eta, rng = table()
    y = target("squared_error", eta, rng)
    model = WideRegressor(loss="squared_error", monotonic_cst={"price": -1}).fit(X, y)
    assert clone(model).monotonic_cst == {"price": -1}
    save(model, tmp_path / "model.skops")
    back = load(tmp_path / "model.skops")
    assert (back.predict(X) == model.predict(X)).all()
    assert back.summary() == model.summary()
    assert "monotonic (in no interaction): price not increasing" in model.summary()
    assert "monotonic" not in WideRegressor(loss="squared_error").fit(X, y).summary()
    grid = {"monotonic_cst": [None, {"price": -1}, [-1, 0, 0, 1]]}
    search = GridSearchCV(WideRegressor(loss="squared_error", interactions=None), grid, cv=2).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_directions_by_position_are_those_by_name():
    X, eta, rng = table()
    y = target("poisson", eta, rng)
    options = {"loss": "poisson", "interactions": None, "exposure_column": "e"}
    X["e"] = rng.uniform(0.5, 2.0, len(X))
    by_name = WideRegressor(monotonic_cst={"price": -1, "size": 0}, **options).fit(X, y).predict(X)
    for given_ in ([-1, 0, 0, 0, 0], np.array([-1, 0, 0, 0, 0])):
        assert (WideRegressor(monotonic_cst=given_, **options).fit(X, y).predict(X) == by_name).all()
    with pytest.raises(ValueError, match="has 2 directions, and the table has 5 columns"):
        WideRegressor(monotonic_cst=[-1, 0], **options).fit(X, y)
    with pytest.raises(ValueError, match="monotonic_cst names 'e', which is no feature"):
        WideRegressor(monotonic_cst={"e": 1}, **options).fit(X, y)


def test_samples_weights_of_zero_and_repeats():
    X, eta, rng = table()
    y = target("squared_error", eta, rng)
    weight = rng.integers(0, 3, len(y))
    options = {
        "loss": "squared_error",
        "monotonic_cst": {"price": -1},
        "interactions": None,
        "alpha": 0.01,
        "tol": 1e-8,
    }
    options |= {"numeric": "quantile", "count_effect": False}
    weighted = WideRegressor(**options).fit(X, y, sample_weight=weight)
    rows = np.repeat(np.arange(len(y)), weight)
    repeated = WideRegressor(**options).fit(X.iloc[rows], y[rows])
    assert weighted.predict(X) == pytest.approx(repeated.predict(X), abs=1e-6)
    sampled = WideRegressor(n_posterior_samples=16, **options).fit(X, y)
    assert np.isfinite(sampled.predict(X, return_std=True)[1]).all()


REFUSED = [
    ({"monotonic_cst": "price"}, "use a mapping from column"),
    ({"monotonic_cst": {"price": 2}}, r"monotonic_cst\['price'\]=2 is not possible"),
    ({"monotonic_cst": [True, 0, 0, 0]}, r"monotonic_cst\[0\]=True is not possible"),
    ({"monotonic_cst": {"price": 0}}, "constrains no column; leave it out"),
    ({"monotonic_cst": {"prize": 1}}, "names 'prize', which is no feature of the model; there is 'price'"),
    ({"monotonic_cst": {"shop": 1}}, "names 'shop', whose categories have no order; make it an ordered Categorical"),
    ({"monotonic_cst": {"price": 1}, "interactions": [("price", "shop")]}, "leave one of them out"),
    ({"monotonic_cst": {"year": 1}, "formula": "w[shop] + b[1]"}, "names 'year', which is no feature"),
    ({"monotonic_cst": [1, 0, 0, 0], "formula": "w[price] + b[1]"}, "by position has no meaning with a formula"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_has_no_effect_is_a_sentence(options, message):
    X, eta, rng = table()
    with pytest.raises(ValueError, match=message):
        WideRegressor(loss="squared_error", **options).fit(X, target("squared_error", eta, rng))


def test_more_than_two_classes_are_refused():
    X, _, rng = table()
    with pytest.raises(ValueError, match="for two classes, and there are 3"):
        WideClassifier(monotonic_cst={"price": 1}).fit(X, rng.choice(list("abc"), len(X)))


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
@pytest.mark.parametrize("seed", range(3))
def test_more_coefficients_than_rows_leave_a_constrained_fit_that_is_one(loss, seed):
    """What is not unique without a constraint cancels between terms, and does not where one is moved."""
    rng = np.random.default_rng(seed)
    n = 150
    X = pd.DataFrame({name: rng.normal(size=n) for name in "xzt"})
    X = X.assign(x=2 * X["x"] + 10, id=rng.integers(0, n // 5, n).astype(str), g=rng.choice(list("abcdefg"), n))
    mean = np.exp(-0.5 + 0.05 * X["x"].to_numpy())
    y = rng.poisson(mean) if loss == "poisson" else mean * rng.gamma(1, 1, n)
    y = np.where(rng.random(n) < 0.6, y, 0.0) if loss == "tweedie" else y
    options = {
        "loss": loss,
        "alpha": 0.0,
        "interactions": None,
        "count_effect": False,
        "numeric": {"x": [8.0, 10.0, 12.0]},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        model = WideRegressor(monotonic_cst={"x": 1}, **options).fit(X, y)
        free = WideRegressor(**options).fit(X, y)
    steps = model.coefs_["x"]["value"].to_numpy()
    assert (np.diff(steps) >= -1e-9).all()
    assert model.deviance_ < free.deviance_ + 2.0  # of some hundred
    assert np.isfinite(model.predict(X)).all()
    assert len(model.term_table())
