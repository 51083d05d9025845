"""`monotonic_cst` of a stack: its predictions keep the direction, whatever the booster, the mode and the codes."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from catboost import CatBoostClassifier, CatBoostRegressor
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier, XGBRegressor

from tabsym import MODLEncoder, WideBoostClassifier, WideBoostRegressor, WideClassifier, WideRegressor, load, save
from tests.options import ADDITIVE

N = 400
SIZES = ["S", "M", "L", "XL"]
RNG = np.random.default_rng(0)
PRICE = np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N))
X = pd.DataFrame(
    {
        "price": PRICE,
        "size": pd.Categorical(RNG.choice(SIZES, N, p=[0.1, 0.5, 0.3, 0.1]), categories=SIZES, ordered=True),
        "promotion": RNG.choice(np.array([True, False, None], dtype=object), N),
        "width": RNG.normal(size=N),
        "shop": RNG.choice(list("abcdefgh"), N),
    }
)
SCORE = np.sin(3 * X["price"].fillna(0)) + X["size"].cat.codes * X["width"] / 2 + (X["shop"] == "a")
AMOUNTS = (SCORE + RNG.normal(size=N)).to_numpy()
TARGETS = {
    "squared_error": AMOUNTS,
    "poisson": RNG.poisson(np.exp(np.clip(SCORE, -3, 2))),
    "classes": (AMOUNTS > 0).astype(int),
}
FEW = {"n_estimators": 25, "n_jobs": 1}
CAT = {"iterations": 25, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
BOOSTERS = {
    "default": (None, None),
    "lightgbm": (LGBMRegressor(verbosity=-1, **FEW), LGBMClassifier(verbosity=-1, **FEW)),
    "xgboost": (XGBRegressor(**FEW), XGBClassifier(**FEW)),
    "catboost": (CatBoostRegressor(**CAT), CatBoostClassifier(**CAT)),
    "sklearn": (HistGradientBoostingRegressor(max_iter=25), HistGradientBoostingClassifier(max_iter=25)),
}
FALLING = {"price": -1, "size": 1, "promotion": -1}


def stack(target, booster, directions, **options):
    """Of a wide model that is monotone, unfitted; `booster`: its name in `BOOSTERS`."""
    regressor, classifier = BOOSTERS[booster]
    if target == "classes":
        return WideBoostClassifier(WideClassifier(monotonic_cst=directions, **ADDITIVE), classifier, **options)
    wide = WideRegressor(loss=target, monotonic_cst=directions, **ADDITIVE)
    return WideBoostRegressor(wide, regressor, **options)


def in_polars(frame):
    sizes = frame["size"].astype(str)
    return pl.from_pandas(frame.assign(size=sizes, promotion=frame["promotion"].astype("boolean"))).with_columns(
        pl.col("size").cast(pl.Enum(SIZES))
    )


def wrong_steps(model, directions, convert=lambda frame: frame):
    """The largest step against a direction, as a fraction of the range of scores, over rows that differ in a column."""
    worst = 0.0
    for name, direction in directions.items():
        steps = {"price": np.linspace(-3, 3, 50), "size": np.array(SIZES), "promotion": np.array([False, True])}[name]
        rows = X.iloc[np.repeat(np.arange(0, N, 20), len(steps))].reset_index(drop=True)
        values = np.tile(steps, len(rows) // len(steps))
        rows[name] = pd.Categorical(values, SIZES, ordered=True) if name == "size" else values
        scores = np.asarray(getattr(model, "decision_function", model.predict)(convert(rows))).reshape(-1, len(steps))
        worst = max(worst, float((-direction * np.diff(scores, axis=1)).max() / np.ptp(scores)))
    return worst


@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.parametrize("mode", ["auto", "margin", "feature"])
@pytest.mark.parametrize("target", TARGETS)
def test_predictions_keep_the_directions_of_the_wide_model(target, mode, booster):
    if (target, mode, booster) == ("poisson", "margin", "sklearn") or (mode, booster) == ("margin", "sklearn"):
        mode = "feature"  # HistGradientBoosting starts from margins of an identity link only
    codes = {"auto": "ordinal", "margin": "native", "feature": "group"}[mode]
    model = stack(target, booster, FALLING, mode=mode, codes=codes).fit(X, TARGETS[target])
    assert wrong_steps(model, FALLING) < 1e-6


@pytest.mark.parametrize("mode", ["margin", "feature"])
def test_without_the_directions_the_steps_are_seen(mode):
    """That `wrong_steps` could fail: the booster alone goes the other way."""
    model = WideBoostRegressor(WideRegressor(loss="squared_error", **ADDITIVE), mode=mode).fit(X, AMOUNTS)
    assert wrong_steps(model, FALLING) > 0.01


def test_the_same_of_polars_and_from_a_file(tmp_path):
    model = stack("squared_error", "default", FALLING).fit(in_polars(X), AMOUNTS)
    assert wrong_steps(model, FALLING, in_polars) < 1e-6
    save(model, tmp_path / "model.tabsym")
    again = load(tmp_path / "model.tabsym")
    np.testing.assert_array_equal(again.predict(in_polars(X)), model.predict(in_polars(X)))
    np.testing.assert_allclose(stack("squared_error", "default", FALLING).fit(X, AMOUNTS).predict(X), model.predict(X))


def test_directions_by_position_of_an_array():
    numbers = X[["width", "price"]].to_numpy()
    wide = WideRegressor(loss="squared_error", monotonic_cst=[0, -1], **ADDITIVE)
    model = WideBoostRegressor(wide).fit(numbers, AMOUNTS)
    grid = np.column_stack([np.repeat(numbers[::20, 0], 40), np.tile(np.linspace(-3, 3, 40), N // 20)])
    assert (np.diff(model.predict(grid).reshape(-1, 40), axis=1) <= 1e-9).all()


@pytest.mark.parametrize(
    "own",
    [
        LGBMRegressor(monotone_constraints=[0, 0, 0, 1, 0], verbosity=-1, **FEW),
        LGBMRegressor(mc=[-1, 0, 0, 1, 0], verbosity=-1, **FEW),
        XGBRegressor(monotone_constraints="(0,1,0,1)", **FEW),
        XGBRegressor(monotone_constraints={"width": 1}, **FEW),
        CatBoostRegressor(monotone_constraints={"width": 1}, **CAT),
        CatBoostRegressor(monotone_constraints="3:1", **CAT),
        HistGradientBoostingRegressor(monotonic_cst={"width": 1}, max_iter=25),
    ],
    ids=str,
)
def test_constraints_that_the_booster_has_itself_are_kept_beside(own):
    wide = WideRegressor(loss="squared_error", monotonic_cst=FALLING, **ADDITIVE)
    model = WideBoostRegressor(wide, own, mode="margin").fit(X, AMOUNTS)
    booster = model.boosters_["margin"]
    (given,) = [v for k, v in booster.get_params().items() if k in ("monotone_constraints", "monotonic_cst", "mc")]
    assert list(given) == [-1, 1, -1, 1, 0]
    assert wrong_steps(model, FALLING) < 1e-6


def test_contradictions_are_refused():
    wide = WideRegressor(loss="squared_error", monotonic_cst={"price": -1}, **ADDITIVE)
    opposite = LGBMRegressor(monotone_constraints=[1, 0, 0, 0, 0], verbosity=-1)
    with pytest.raises(ValueError, match="opposite directions of 'price'; leave out the booster's"):
        WideBoostRegressor(wide, opposite).fit(X, AMOUNTS)
    for constraints in ({"colour": 1}, [0, 0, 0, 0, 0, 1], "(1, up)", "up", {-1: 1}):
        strange = XGBRegressor(monotone_constraints=constraints)
        with pytest.raises(ValueError, match=r"constraints .* are not of the columns that it sees, 'price', 'size'"):
            WideBoostRegressor(wide, strange).fit(X, AMOUNTS)


def test_a_booster_that_cannot_be_asked_is_refused():
    wide = WideRegressor(loss="squared_error", monotonic_cst={"price": -1}, **ADDITIVE)
    forest = RandomForestRegressor(5, random_state=0)
    with pytest.raises(ValueError, match=r"RandomForestRegressor may go the other way; use a booster of LightGBM"):
        WideBoostRegressor(wide, forest).fit(X, AMOUNTS)


@pytest.mark.parametrize(
    "booster",
    [
        XGBRegressor(objective="reg:absoluteerror", n_estimators=60, n_jobs=1),
        HistGradientBoostingRegressor(loss="absolute_error", max_iter=60),
        make_pipeline(StandardScaler(), HistGradientBoostingRegressor(monotonic_cst=[1, 0], max_iter=25)),
    ],
    ids=str,
)
def test_a_fitted_booster_that_goes_the_other_way_is_refused(booster):
    """Trees whose leaves are medians break their own constraints; a pipeline's may be of other columns."""
    wide = WideRegressor(loss="squared_error", monotonic_cst={"price": -1}, **ADDITIVE)
    with pytest.raises(ValueError, match="does not keep the direction of 'price', which monotonic_cst"):
        WideBoostRegressor(wide, booster, mode="margin").fit(X[["price", "width"]], AMOUNTS)


def test_codes_without_the_order_of_a_column_are_refused():
    wide = WideRegressor(loss="squared_error", monotonic_cst={"price": -1}, **ADDITIVE)
    grouped = MODLEncoder(numeric="discretize")
    with pytest.raises(ValueError, match=r"'price', which codes=.* passes to the booster in another order"):
        WideBoostRegressor(wide, codes=grouped, mode="margin").fit(X, AMOUNTS)
    options = {"mode": "margin", "early_stopping": False, "booster_cols": ["shop", "width"]}
    model = WideBoostRegressor(wide, codes=grouped, **options).fit(X, AMOUNTS)
    assert wrong_steps(model, {"price": -1}) < 1e-6


def test_constraints_of_the_booster_alone_are_warned_of():
    """The wide model under it may go the other way."""
    booster = LGBMRegressor(monotone_constraints=[-1, 0, 0, 0, 0], verbosity=-1, **FEW)
    with pytest.warns(
        UserWarning, match="monotone_constraints of the booster is kept by its trees, and the wide model"
    ):
        WideBoostRegressor(WideRegressor(loss="squared_error", **ADDITIVE), booster).fit(X, AMOUNTS)
