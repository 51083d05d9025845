"""What encoders and wide models take for X, y and cols: as in category_encoders, pandas and polars alike."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from tabsym import MODLEncoder, OneHotEncoder, WideClassifier, WideEncoder, WideRegressor
from tabsym.encoders import NativeCategories

RNG = np.random.default_rng(0)
N = 120
COLUMNS = {"city": RNG.choice(list("uvw"), N).tolist(), "n": RNG.integers(0, 4, N).tolist()}
COLUMNS["all"] = RNG.choice(["p", "q"], N).tolist()
Y = (np.array(COLUMNS["city"]) == "u").astype(int) ^ (RNG.random(N) < 0.2)
ENCODERS = [
    OneHotEncoder(),
    MODLEncoder(numeric="passthrough"),
    WideEncoder(random_state=0),
    NativeCategories(),
]
MODELS = [WideClassifier(epochs=3, random_state=0), WideRegressor(epochs=3, random_state=0)]
FRAMES = pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])


def named(estimators):
    return pytest.mark.parametrize("estimator", estimators, ids=lambda e: type(e).__name__)


def encoded_by(encoder, frame, cols):
    """The columns that an encoder encodes."""
    fitted = clone(encoder).set_params(cols=cols).fit(frame, Y)
    return list(fitted.columns_ if hasattr(fitted, "columns_") else fitted.alphabets_)


# -- cols -------------------------------------------------------------------------------------------------


@FRAMES
@named(ENCODERS)
def test_cols_is_a_name_or_all(estimator, frame):
    X = frame(COLUMNS)
    assert encoded_by(estimator, X, "city") == ["city"]
    assert encoded_by(estimator, X, "all") == ["city", "n", "all"]
    assert encoded_by(estimator, X, ["all"]) == ["all"]
    assert encoded_by(estimator, X, None) == ["city", "all"]


@named(ENCODERS)
def test_cols_is_a_position_of_an_array(estimator):
    X = np.array([COLUMNS["city"], COLUMNS["all"]]).T
    assert encoded_by(estimator, X, 1) == ["x1"]


@FRAMES
@named(MODELS)
def test_cols_of_wide_models(estimator, frame):
    X = frame(COLUMNS)
    estimator = clone(estimator)
    symbols = estimator.set_params(cols="all").fit(X, Y).params_["n"].index
    assert sorted(symbols) == sorted(set(COLUMNS["n"]))
    one = X[["city", "n"]] if frame is pd.DataFrame else X.select("city", "n")
    named = estimator.set_params(cols="city").fit(one, Y)
    np.testing.assert_array_equal(named.predict(one), estimator.set_params(cols=["city"]).fit(one, Y).predict(one))
    with pytest.raises(ValueError, match="Column 'all' holds symbols but is not in cols"):
        estimator.fit(X, Y)
