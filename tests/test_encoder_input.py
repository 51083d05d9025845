"""What encoders and wide models take for X, y and cols: as in category_encoders, pandas and polars alike."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.preprocessing import TargetEncoder

from tabsym import CrossFit, MODLEncoder, OneHotEncoder, WideClassifier, WideEncoder, WideRegressor
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


CROSS_FITS = [CrossFit(TargetEncoder(), random_state=0), CrossFit(WideEncoder(random_state=0), random_state=0)]


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


# -- a series ---------------------------------------------------------------------------------------------


@FRAMES
@named([*ENCODERS, *CROSS_FITS])
def test_a_series_is_a_frame_of_one_column(estimator, frame):
    one = frame({"city": COLUMNS["city"]})
    series = one["city"]
    expected = clone(estimator).fit_transform(one, Y)
    fitted = clone(estimator)
    out = fitted.fit_transform(series, Y)
    assert type(out) is type(expected)
    assert list(out.columns) == list(expected.columns)
    assert fitted.feature_names_in_.tolist() == ["city"]
    np.testing.assert_array_equal(np.asarray(out), np.asarray(expected))
    np.testing.assert_array_equal(np.asarray(fitted.transform(series)), np.asarray(fitted.transform(one)))


@pytest.mark.parametrize(
    "series", [pd.Series(COLUMNS["city"]), pl.Series(COLUMNS["city"]), pa.chunked_array([COLUMNS["city"]])],
    ids=["pandas", "polars", "pyarrow"],
)  # fmt: skip
@named([*ENCODERS, *CROSS_FITS])
def test_a_series_without_a_name_is_called_as_the_column_of_an_array(estimator, series):
    fitted = clone(estimator).fit(series, Y)
    assert fitted.n_features_in_ == 1
    assert not hasattr(fitted, "feature_names_in_")
    array = np.asarray(COLUMNS["city"], dtype=object)[:, None]
    expected = clone(estimator).fit(array, Y).get_feature_names_out().tolist()
    assert fitted.get_feature_names_out().tolist() == expected
    assert len(fitted.transform(series)) == N


@FRAMES
@named(MODELS)
def test_a_series_for_wide_models(estimator, frame):
    one = frame({"city": COLUMNS["city"]})
    model = clone(estimator).fit(one["city"], Y)
    assert list(model.params_["city"].index) == list(dict.fromkeys(COLUMNS["city"]))
    np.testing.assert_array_equal(model.predict(one["city"]), clone(estimator).fit(one, Y).predict(one))
    with pytest.raises(ValueError, match="Feature names unseen at fit time:\n- town"):
        model.predict(one["city"].rename("town"))


def test_a_series_keeps_its_index():
    series = pd.Series(COLUMNS["city"], index=range(7, 7 + N), name="city")
    for estimator in (OneHotEncoder(), CrossFit(TargetEncoder())):
        assert estimator.fit_transform(series, Y).index.equals(series.index)
