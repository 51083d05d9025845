"""Classes or a quantity: encoders that have to choose choose alike, and can be told."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import is_classifier

from tabsym import MODLEncoder, WideClassifier, WideEncoder, WideRegressor, WideSGDClassifier, WideSGDRegressor
from tests.options import ADDITIVE

RNG = np.random.default_rng(0)
N = 400
COLUMNS = {"city": RNG.choice(list("uvw"), N).tolist()}
X = pd.DataFrame(COLUMNS)
AMOUNTS = RNG.normal(size=N)
TARGETS = {
    "two numbers": (np.arange(N) % 2, True),
    "whole floats": (np.arange(N) % 3 + 0.0, True),
    "one fraction": (np.r_[0.5, np.arange(N - 1) % 3], False),
    "text": (np.array([f"y{i % 150}" for i in range(N)], dtype=object), True),
    "booleans": (np.arange(N) % 2 == 0, True),
    "100 numbers": (np.arange(N) % 100, True),
    "101 numbers": (np.arange(N) % 101, False),
    "prices": (RNG.integers(100, 10_000, N), False),
    "decimals": (np.array([Decimal(int(i)) / 4 for i in range(N)], dtype=object), False),
}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("name", TARGETS)
def test_both_encoders_choose_alike(name, frame):
    y, classes = TARGETS[name]
    assert is_classifier(WideEncoder().fit(frame(COLUMNS), y).model_) is classes
    assert hasattr(MODLEncoder().fit(frame(COLUMNS), y), "classes_") is classes


def test_prices_are_a_quantity():
    """Each price was a class of its own, and made a column."""
    prices = np.where(X["city"] == "u", 200, 100) + RNG.integers(0, 90, N)
    prices[:40] = np.arange(1000, 1040)
    out = WideEncoder().fit_transform(X, prices)
    assert list(out.columns) == ["city"]
    assert isinstance(WideEncoder().fit(X, prices).model_, WideRegressor)


@pytest.mark.parametrize("kind", ["classes", "continuous"])
def test_encoders_can_be_told(kind):
    y = np.arange(N) % 3
    encoder = WideEncoder(target_type=kind).fit(X, y)
    assert is_classifier(encoder.model_) is (kind == "classes")
    out = WideEncoder(target_type=kind).fit_transform(X, y)
    assert list(out.columns) == (["city_0", "city_1", "city_2"] if kind == "classes" else ["city"])


def test_folds_take_the_target_for_what_all_rows_say():
    """A training part without the only fraction would be of classes by itself."""
    y = np.r_[0.5, np.arange(N - 1) % 3]
    rows = np.arange(N)
    folds = [(rows[10:], rows[:10]), (rows[:10], rows[10:])]
    out = WideEncoder(cv=folds).fit_transform(X, y)
    model = WideRegressor(loss="squared_error", **ADDITIVE)
    apart = WideEncoder(model=model).fit(X[10:], y[10:]).transform(X[:10])
    pd.testing.assert_frame_equal(out[:10], apart)


def test_words_that_are_wrong_or_contradict_the_model():
    with pytest.raises(ValueError, match="target_type='binary' is not known; use 'auto', 'classes' or 'continuous'"):
        WideEncoder(target_type="binary").fit(X, AMOUNTS)
    classifiers, regressors = (WideClassifier, WideSGDClassifier), (WideRegressor, WideSGDRegressor)
    for models, kind in ((classifiers, "continuous"), (regressors, "classes")):
        for model in models:
            with pytest.raises(ValueError, match=rf"target_type='{kind}' contradicts model={model.__name__}\("):
                WideEncoder(model=model(), target_type=kind).fit(X, AMOUNTS)
    for model in (WideRegressor(), WideSGDRegressor(max_iter=1)):
        WideEncoder(model=model, target_type="continuous").fit(X, AMOUNTS)
