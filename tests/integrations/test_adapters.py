"""Native contenders: any frame in, unseen and missing symbols safe, the library's own result out."""

from functools import cache

import lightgbm
import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import LabelEncoder

from tabsym.compare.contenders import native_hist
from tabsym.encoders import NativeCategories
from tabsym.integrations import load_adapter
from tests.conftest import FRAMES, as_frame

RNG = np.random.default_rng(0)
N = 300
COLUMNS = {
    "colour {x}": RNG.choice(["red", "blue", None, "grün"], N).tolist(),
    "shop": [f"s{j}" for j in RNG.integers(0, 30, N)],
    "price": RNG.normal(size=N).tolist(),
}
VALUES = np.array([len(str(c)) for c in COLUMNS["colour {x}"]]) + np.array(COLUMNS["price"])
BOOSTERS = ["lightgbm", "xgboost", "catboost"]


def native(name, task):
    if name == "hist":
        return native_hist(task, 0, 1)
    model = load_adapter(name).native(task, random_state=0, n_jobs=1)
    return model.set_params(booster__n_estimators=30)


def target(task):
    if task == "regression":
        return VALUES
    return LabelEncoder().fit_transform(np.digitize(VALUES, [4] if task == "binary" else [3, 5]))


@cache
def reference(name, task):
    return native(name, task).fit(pd.DataFrame(COLUMNS), target(task)).predict(pd.DataFrame(COLUMNS))


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("name", [*BOOSTERS, "hist"])
def test_every_frame_gives_the_same_predictions(name, kind):
    """Each library takes every kind of frame and every task, in turn: what is read does not depend on the task."""
    task = ["regression", "binary", "multiclass"][(FRAMES.index(kind) + len(name)) % 3]
    frame = as_frame(COLUMNS, kind)
    got = native(name, task).fit(frame, target(task)).predict(frame)
    np.testing.assert_array_equal(got, reference(name, task))
    assert len(got) == N


@pytest.mark.parametrize("name", [*BOOSTERS, "hist"])
def test_unseen_symbols_are_alike_and_never_another_symbol(name):
    train = pd.DataFrame({"country": ["Germany", "France", "Mexico"] * 100})
    y = np.array([0.0, 10.0, 20.0] * 100)
    model = native(name, "regression").fit(train, y)
    unseen = model.predict(pd.DataFrame({"country": ["England", "Nicaragua", "Zambia", "Albania"]}))
    assert np.ptp(unseen) == 0
    together = model.predict(pd.DataFrame({"country": ["England", "Germany", "France", "Mexico"]}))
    np.testing.assert_allclose(together[1:], model.predict(train.head(3)))
    assert together[0] == unseen[0]


def test_lightgbm_native_is_lightgbm():
    X = pd.DataFrame(COLUMNS)
    ours = native("lightgbm", "regression").fit(X, VALUES)
    frame = NativeCategories().fit_transform(X)
    theirs = lightgbm.LGBMRegressor(n_estimators=30, random_state=0, n_jobs=1, verbosity=-1).fit(frame, VALUES)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(frame))


def test_more_than_255_levels_for_hist_gradient_boosting():
    X = pd.DataFrame({"k": [f"k{j}" for j in RNG.integers(0, 1000, 3000)]})
    codes = NativeCategories(max_levels=254).fit(X)
    assert codes.transform(X)["f0"].nunique() == 254
    counts = X["k"].value_counts()
    rare, frequent = counts.index[-1], counts.index[0]
    out = codes.transform(pd.DataFrame({"k": [rare, "never", frequent, None]}))["f0"]
    assert out[0] == out[1] != out[2]
    assert pd.isna(out[3])
    assert np.isfinite(native_hist("regression", 0, 1).fit(X, RNG.normal(size=3000)).predict(X)).all()


def test_words_for_catboost():
    X = pd.DataFrame({"a": ["u", None, "v"], "n": [1.0, None, 2.0]})
    out = NativeCategories(output="text").fit(X.iloc[:2]).transform(X)
    assert out["f0"].tolist() == ["u", "(missing)", "(unknown)"]
    assert np.isnan(out["f1"][1])
