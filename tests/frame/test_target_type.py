"""Classes or a quantity: encoders that have to choose choose alike, and can be told."""

import datetime
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import is_classifier

from tabsym import (
    CrossFit,
    MODLEncoder,
    TIWSEncoder,
    WideClassifier,
    WideEncoder,
    WideRegressor,
    WideSGDClassifier,
    WideSGDRegressor,
)
from tabsym.compare.table.prepare import read_target
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
    "20 numbers": (np.arange(N) % 20, True),
    "60 numbers": (np.arange(N) % 60, False),
    "counts": (np.minimum(np.random.default_rng(1).poisson(0.5, N), 3), False),
    "ratings": (1 + np.minimum(np.random.default_rng(2).binomial(4, 0.6, N), 4), False),
    "prices": (RNG.integers(100, 10_000, N), False),
    "decimals": (np.array([Decimal(int(i)) / 4 for i in range(N)], dtype=object), False),
    "two dates": (pd.Series(pd.to_datetime(["2024-01-31", "2024-02-29"] * (N // 2))), True),
}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("name", TARGETS)
def test_both_encoders_choose_alike(name, frame):
    y, classes = TARGETS[name]
    assert is_classifier(WideEncoder().fit(frame(COLUMNS), y).model_) is classes
    assert hasattr(MODLEncoder().fit(frame(COLUMNS), y), "classes_") is classes


@pytest.mark.slow
@pytest.mark.parametrize("encoder", [MODLEncoder, TIWSEncoder, WideEncoder])
@pytest.mark.parametrize(
    "name", ["two numbers", "whole floats", "20 numbers", "60 numbers", "counts", "ratings", "text"]
)
def test_a_guess_is_said_with_the_option_that_decides(name, encoder):
    """60 whole numbers were 60 classes, silently."""
    y, classes = TARGETS[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        encoder().fit(X, y)
        encoder(target_type="classes" if classes else "continuous").fit(X, y)
    said = [str(one.message) for one in caught if "whole numbers of the target" in str(one.message)]
    assert len(said) == (name in ("whole floats", "20 numbers", "counts", "ratings"))
    if said:
        kind = "target_type='classes'" if classes else "target_type='continuous'"
        assert said[0].startswith(encoder.__name__) and said[0].endswith(f"or {kind} if they are.")


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in ("booleans", "decimals", "text")])
def test_compare_and_the_encoders_take_whole_numbers_for_the_same(name):
    y, classes = TARGETS[name]
    task = read_target(pd.Series(y), "y", None).task
    assert (task in ("binary", "multiclass")) is classes


@pytest.mark.parametrize("encoder", [MODLEncoder, TIWSEncoder, WideEncoder, CrossFit])
def test_weights_say_how_often_a_whole_number_occurs(encoder):
    """Each of 0 to 3 in as many rows, as labels are; by weights ever rarer, as counts are, and as repeated rows say."""
    values = np.arange(N) % 4
    weight = np.array([8, 4, 2, 1])[values]
    make = (lambda: CrossFit(TIWSEncoder())) if encoder is CrossFit else encoder
    repeated = np.repeat(np.arange(N), weight)
    names = [
        list(make().fit(X, values).get_feature_names_out()),
        list(make().fit(X.iloc[repeated].reset_index(drop=True), values[repeated]).get_feature_names_out()),
        list(make().fit(X, values, sample_weight=weight).get_feature_names_out()),
    ]
    assert names[2] == names[1]
    if encoder is not MODLEncoder:  # which has one column, of classes too
        assert names[0] != names[1]
    else:
        assert not hasattr(MODLEncoder().fit(X, values, sample_weight=weight), "classes_")
    if encoder is WideEncoder:
        assert list(make().fit(X, values, sample_weight=weight / weight.sum()).get_feature_names_out()) == names[1]


@pytest.mark.parametrize("encoder", [MODLEncoder, TIWSEncoder, WideEncoder])
def test_whole_numbers_of_weight_0_are_no_classes(encoder):
    """Thirty numbers of weight 0 beside two classes made a quantity of them."""
    values = np.r_[np.arange(30), np.arange(N - 30) % 2]
    fitted = encoder().fit(X, values, sample_weight=(np.arange(N) >= 30).astype(float))
    assert is_classifier(fitted.model_) if encoder is WideEncoder else list(fitted.classes_) == [0, 1]


def test_folds_of_crossfit_take_the_target_for_what_all_rows_say():
    """A fold of few rows, by itself, would take the counts for classes."""
    y = np.r_[np.zeros(200), np.ones(100), np.full(60, 2), np.full(30, 3), np.arange(10) % 4].astype(int)
    folds = [(np.arange(390), np.arange(390, N)), (np.arange(390, N), np.arange(390))]
    assert CrossFit(WideEncoder(cv=None), cv=folds).fit_transform(X, y).shape == (N, 1)


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


DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(i) for i in range(5)]


@pytest.mark.parametrize("encoder", [MODLEncoder(), TIWSEncoder(), WideEncoder()], ids=lambda e: type(e).__name__)
@pytest.mark.parametrize(
    "y",
    [
        pd.Series(pd.to_datetime(DAYS * 80)),
        pd.Series(DAYS * 80, dtype=object),
        np.array(DAYS * 80, dtype="M8[D]"),
        pd.Series(pd.to_timedelta(range(5), unit="h").tolist() * 80),
        pl.Series(DAYS * 80),
    ],
    ids=["moments", "objects", "numpy", "durations", "polars"],
)
def test_a_few_dates_are_neither_numbers_nor_classes_by_themselves(encoder, y):
    """The warning on few whole numbers could not write them; as objects they were classes, silently."""
    with pytest.raises(ValueError, match="must be numeric, but holds dates or durations"):
        encoder.fit(X, y)
    assert len(MODLEncoder(target_type="classes").fit(X, y).classes_) == 5


def test_fractions_as_objects_are_numbers():
    """They were classes, silently."""
    y = pd.Series([Fraction(i % 60, 7) for i in range(N)], dtype=object)
    means = TIWSEncoder(cv=None, smooth=0).fit_transform(X, y)["city"]
    np.testing.assert_allclose(means, y.astype(float).groupby(X["city"]).transform("mean"))
