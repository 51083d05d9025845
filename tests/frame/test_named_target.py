"""A target by its name: from every kind of frame, lazy ones collected once or counted by their engine."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from tabsym import (
    AugmentedModel,
    CrossFit,
    JitterPredictor,
    JitterTreeClassifier,
    JitterTreeRegressor,
    MODLEncoder,
    OneHotEncoder,
    SelectiveNaiveBayesClassifier,
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
    "WideBoostRegressor": WideBoostRegressor(WideRegressor(loss="squared_error", **GLM), random_state=0),
    "AugmentedModel": AugmentedModel(WideSGDRegressor(random_state=0)),
    "JitterPredictor": JitterPredictor(make_pipeline(OneHotEncoder(), Ridge()), TIWSEncoder()),
}
ENCODERS = [OneHotEncoder(use_cat_names=True), MODLEncoder(), TIWSEncoder(), WideEncoder(random_state=0)]
ENCODERS += [CrossFit(TIWSEncoder())]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators(name):
    X = SALES.drop(columns="sales")
    want = ESTIMATORS[name].fit(X, SALES["sales"]).predict(X)
    score = ESTIMATORS[name].score(X, SALES["sales"])
    for kind, frame in FRAMES.items():
        fitted = clone(ESTIMATORS[name]).fit(frame, "sales")
        np.testing.assert_array_equal(fitted.predict(X), want)
        if kind != "lazy":
            assert fitted.score(frame, "sales") == score


@pytest.mark.parametrize("model", [JitterTreeClassifier(), SelectiveNaiveBayesClassifier()])
def test_classifiers_are_scored_by_the_name(model):
    dear = SALES.drop(columns="sales").assign(dear=np.where(SALES["sales"] > 3, "yes", "no"))
    fitted = model.fit(dear, "dear")
    accuracy = np.mean(fitted.predict(dear.drop(columns="dear")) == dear["dear"])
    assert fitted.score(dear, "dear") == fitted.score(pl.from_pandas(dear), "dear") == accuracy


@pytest.mark.slow
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
