"""A target by its name: from every kind of frame, lazy ones collected once or counted by their engine."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tabsym import (
    AugmentedModel,
    CrossFit,
    JitterTreeRegressor,
    MODLEncoder,
    OneHotEncoder,
    TIWSEncoder,
    WideBoostRegressor,
    WideClassifier,
    WideEncoder,
    WideRegressor,
    WideSGDClassifier,
    WideSGDRegressor,
)
from tabsym.datasets import make_retail
from tests.options import GLM

SALES = make_retail(150)[["store", "colour", "price", "sales"]]
FRAMES = {"pandas": SALES, "polars": pl.from_pandas(SALES), "lazy": pl.from_pandas(SALES).lazy()}
ESTIMATORS = {
    "WideRegressor": WideRegressor(loss="squared_error", **GLM),
    "WideSGDRegressor": WideSGDRegressor(random_state=0),
    "formula": WideSGDRegressor("sales ~ store[store] + colour[colour]", random_state=0),
    "JitterTreeRegressor": JitterTreeRegressor(),
    "WideBoostRegressor": WideBoostRegressor(random_state=0),
    "AugmentedModel": AugmentedModel(WideSGDRegressor(random_state=0)),
}
ENCODERS = [OneHotEncoder(use_cat_names=True), MODLEncoder(), TIWSEncoder(), WideEncoder(random_state=0)]
ENCODERS += [CrossFit(TIWSEncoder())]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators(name):
    X = SALES.drop(columns="sales")
    want = ESTIMATORS[name].fit(X, SALES["sales"]).predict(X)
    for frame in FRAMES.values():
        np.testing.assert_array_equal(ESTIMATORS[name].fit(frame, "sales").predict(X), want)


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda one: type(one).__name__)
def test_encoders(encoder):
    X = SALES.drop(columns="sales")
    want = pd.DataFrame(encoder.fit_transform(X, SALES["sales"]))
    for name, frame in FRAMES.items():
        got = encoder.fit_transform(frame, "sales")
        got = got if name == "pandas" else got.lazy().collect().to_pandas()
        assert sorted(got) == sorted(want)  # engines know no order of appearance: theirs is that of the categories
        pd.testing.assert_frame_equal(got[want.columns].astype("str"), want.astype("str"))
        assert encoder.fit(frame, "sales").n_features_in_ == 3


@pytest.mark.parametrize("model", [WideRegressor, WideSGDRegressor])
def test_what_cannot_be_named(model):
    with pytest.raises(ValueError, match="no column 'sale' to predict; the table's first columns are 'store'"):
        model().fit(SALES, "sale")
    lazy = FRAMES["lazy"]
    with pytest.raises(TypeError, match=rf"y is lazy .*: {model.__name__}\(\)\.fit\(table, 'NAME'\)"):
        model().fit(lazy.drop("sales"), lazy.select("sales"))


@pytest.mark.parametrize("path", ["rows.csv", Path("folder")])
@pytest.mark.parametrize(
    "estimator", [WideSGDClassifier(), OneHotEncoder(), MODLEncoder()], ids=lambda one: type(one).__name__
)
def test_paths_are_read_by_solved_models_only(estimator, path):
    name = type(estimator).__name__
    with pytest.raises(TypeError, match=rf"X is a path, '{path}', which {name} does not read; .*dataset\(path\)"):
        estimator.fit(path, "sales")


@pytest.mark.parametrize("model", [WideClassifier, WideSGDClassifier])
def test_arrays_have_no_names(model):
    with pytest.raises(TypeError, match="X is no table with names; pass y as an array"):
        model().fit(SALES[["store"]].to_numpy(), "sales")
