"""Targets of regressions: numbers of any type, and nothing that only looks like them; classes of any type."""

import datetime
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from tabsym import (
    JitterPredictor,
    JitterTreeClassifier,
    MODLEncoder,
    TIWSEncoder,
    WideClassifier,
    WideRegressor,
    WideSGDClassifier,
    WideSGDRegressor,
)
from tabsym.frame import check_classes, check_regression_target

DAY = datetime.date(2020, 1, 2)
MOMENT = datetime.datetime(2020, 1, 2, 3)
TEXTS = [
    ["1", "2", "3"],
    np.array(["1", "2", "3"]),
    np.array([b"1", b"2", b"3"]),
    np.array([1, "2", 3], dtype=object),
    pd.Series(["1", "2", "3"]),
    pd.Series(["1", "2", "3"], dtype="string[pyarrow]"),
    pd.Series(["1", "2", "3"], dtype="category"),
    pl.Series(["1", "2", "3"]),
    pl.Series(["1", "2", "3"], dtype=pl.Categorical),
    pa.chunked_array([["1", "2", "3"]]),
]
MOMENTS = [
    [DAY] * 3,
    [MOMENT] * 3,
    pd.Series([MOMENT] * 3),
    pd.Series([MOMENT] * 3).dt.tz_localize("UTC"),
    pd.Series([MOMENT - MOMENT] * 3),
    np.array(["2020-01-02"] * 3, dtype="datetime64[D]"),
    np.array([1, 2, 3], dtype="timedelta64[s]"),
    pl.Series([DAY] * 3),
    pl.Series([MOMENT] * 3),
    pl.Series([MOMENT - MOMENT] * 3),
    pa.chunked_array([[MOMENT] * 3]),
]
NUMBERS = [
    [1, 0, 1],
    [True, False, True],
    [Decimal("1.0"), Decimal("0.0"), Decimal("1.0")],
    np.array([1, 0.0, True], dtype=object),
    np.array([np.float32(1), np.int8(0), np.bool_(True)], dtype=object),
    pd.Series([1, 0, 1], dtype="Int64"),
    pd.Series([True, False, True], dtype="boolean"),
    pd.Series([1, 0, 1], dtype="category"),
    pd.Series([1, 0, 1], dtype="double[pyarrow]"),
    pl.Series([Decimal("1.0"), Decimal("0.0"), Decimal("1.0")]),
    pl.Series([True, False, True]),
    pa.chunked_array([[1, 0, 1]]),
]


@pytest.mark.parametrize("y", TEXTS)
def test_text_is_no_target_of_a_regression(y):
    with pytest.raises(ValueError, match=r"must be numeric, but holds values such as b?'?1'?.*pd\.to_numeric"):
        check_regression_target(y, 3)


@pytest.mark.parametrize("y", MOMENTS)
def test_dates_and_durations_are_no_target_of_a_regression(y):
    with pytest.raises(ValueError, match=r"must be numeric, but holds dates or durations.*total_seconds"):
        check_regression_target(y, 3)


@pytest.mark.parametrize("y", NUMBERS)
def test_numbers_of_any_type_are_targets(y):
    out = check_regression_target(y, 3)
    assert out.dtype == np.float64
    assert out.tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([1.0, -1e200, 2.0], r"Row 1 of the target is -1e\+200, and its square.*divide the target by a constant"),
        ([1, 2, 10**400], r"Row 2 of the target is an integer too large for a float.*divide the target"),
    ],
)
def test_a_target_without_a_finite_square_is_refused(y, words):
    with pytest.raises(ValueError, match=words):
        check_regression_target(y, 3)
    assert check_regression_target([1e150], 1)[0] == 1e150


@pytest.mark.parametrize(
    "model",
    [
        WideSGDRegressor(),
        WideRegressor(),
        WideRegressor(loss="squared_error"),
        MODLEncoder(target_type="continuous", output="mean"),
    ],
)
def test_estimators_refuse_them(model):
    table = pd.DataFrame({"a": ["u", "v", "u"]})
    for y, words in ((TEXTS[0], "must be numeric"), (MOMENTS[2], "dates or durations"), ([0, 1e200, 1], "square")):
        with pytest.raises(ValueError, match=words):
            model.fit(table, y)


def test_nullable_booleans_by_themselves_are_booleans():
    X = pd.DataFrame({"a": list("uv") * 5})
    y = pd.Series([True, False] * 5, dtype="boolean")
    for given in (y, y.values, y.to_numpy()):
        for model in (WideSGDClassifier(), WideClassifier()):
            assert model.fit(X, given).classes_.tolist() == [False, True]


@pytest.mark.parametrize(
    "classes",
    [
        [DAY, DAY + datetime.timedelta(1)],
        [MOMENT, MOMENT + datetime.timedelta(1)],
        [datetime.timedelta(1), datetime.timedelta(2)],
        [pd.Timestamp(MOMENT, tz="UTC"), pd.Timestamp(MOMENT + datetime.timedelta(1), tz="UTC")],
        [pd.Period("2020", "Y"), pd.Period("2021", "Y")],
        [pd.Interval(0, 1), pd.Interval(1, 2)],
        [1.0, 2.0],
        [Decimal("1"), Decimal("2")],
    ],
)
@pytest.mark.parametrize(
    "model",
    [
        WideClassifier(interactions=None),
        WideSGDClassifier(random_state=0),
        JitterTreeClassifier(random_state=0),
        JitterPredictor(WideClassifier(interactions=None), TIWSEncoder(target_type="classes")),
    ],
)
def test_classes_of_any_type_are_scored(classes, model):
    X = pd.DataFrame({"a": [*"xyxy"] * 20, "b": [*"pq"] * 40})
    y = pd.Series(classes * 40, dtype=object)
    model = clone(model).fit(X, y)
    assert model.score(X, y) == model.score(X, y.tolist()) == 1.0
    y[:20] = classes[1]
    assert model.score(X, y) == 0.875


def test_objects_that_are_infinite_are_no_classes():
    X = pd.DataFrame({"a": [*"xy"] * 2})
    for y in (np.array([1.0, np.inf] * 2, dtype=object), [Decimal(1), Decimal("inf")] * 2):
        with pytest.raises(ValueError, match="row 1 of the target is infinite"):
            WideClassifier().fit(X, y)


def test_huge_numbers_are_no_classes_without_a_warning_of_numpy():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="continuous values, which are not classes"):
            check_classes(np.array([1e300, -2e300, 3e299]), 3)
