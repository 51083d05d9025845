"""What encoders and wide models take for X, y and columns: as in category_encoders, pandas and polars alike."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import permutation_test_score
from sklearn.preprocessing import OrdinalEncoder, TargetEncoder

from tabsym import (
    AugmentedModel,
    CrossFit,
    JitterTreeClassifier,
    MODLEncoder,
    OneHotEncoder,
    SelectiveNaiveBayesClassifier,
    TIWSEncoder,
    WideBoostRegressor,
    WideClassifier,
    WideEncoder,
    WideSGDClassifier,
    WideSGDRegressor,
)
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
    TIWSEncoder(),
    NativeCategories(),
]
MODELS = [WideSGDClassifier(max_iter=3, random_state=0), WideSGDRegressor(max_iter=3, random_state=0)]
FRAMES = pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])


CROSS_FITS = [CrossFit(TargetEncoder(), random_state=0), CrossFit(WideEncoder(random_state=0), random_state=0)]


def named(estimators):
    return pytest.mark.parametrize("estimator", estimators, ids=lambda e: type(e).__name__)


def encoded_by(encoder, frame, cols):
    """The columns that an encoder encodes."""
    fitted = clone(encoder).set_params(cols=cols).fit(frame, Y)
    return list(fitted.columns_ if hasattr(fitted, "columns_") else fitted.vocabularies_)


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
def test_categorical_features_of_wide_models(estimator, frame):
    X = frame(COLUMNS)
    estimator = clone(estimator)
    categories = estimator.set_params(categorical_features="all").fit(X, Y).coefs_["n"].index
    assert sorted(categories) == sorted(set(COLUMNS["n"]))
    one = X[["city", "n"]] if frame is pd.DataFrame else X.select("city", "n")
    estimator.set_params(categorical_features=["city"])
    by_dtype = clone(estimator).set_params(categorical_features="from_dtype").fit(one, Y)
    np.testing.assert_array_equal(clone(estimator).fit(one, Y).predict(one), by_dtype.predict(one))
    with pytest.raises(ValueError, match="Column 'all' holds text but is not in categorical_features"):
        estimator.fit(X, Y)
    with pytest.raises(ValueError, match="categorical_features='city' is not known; use 'from_dtype', 'all' or a list"):
        estimator.set_params(categorical_features="city").fit(one, Y)


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
    assert list(model.coefs_["city"].index) == list(dict.fromkeys(COLUMNS["city"]))
    np.testing.assert_array_equal(model.predict(one["city"]), clone(estimator).fit(one, Y).predict(one))
    with pytest.raises(ValueError, match="Feature names unseen at fit time:\n- town"):
        model.predict(one["city"].rename("town"))


def test_a_series_keeps_its_index():
    series = pd.Series(COLUMNS["city"], index=range(7, 7 + N), name="city")
    for estimator in (OneHotEncoder(), CrossFit(TargetEncoder())):
        assert estimator.fit_transform(series, Y).index.equals(series.index)


TEXT = [*COLUMNS["city"][:-2], None, float("nan")]


@pytest.mark.parametrize(
    "kind", [list, tuple, lambda text: np.array(text, dtype=object)], ids=["list", "tuple", "array"]
)
@named([*ENCODERS, *CROSS_FITS])
def test_text_in_one_dimension_is_a_column(estimator, kind):
    column = np.array(TEXT, dtype=object)[:, None]
    expected = clone(estimator).fit_transform(column, Y)
    fitted = clone(estimator)
    out = fitted.fit_transform(kind(TEXT), Y)
    assert type(out) is type(expected)
    assert fitted.n_features_in_ == 1
    pd.testing.assert_frame_equal(pd.DataFrame(out), pd.DataFrame(expected))
    pd.testing.assert_frame_equal(
        pd.DataFrame(fitted.transform(kind(TEXT[:3]))), pd.DataFrame(fitted.transform(column[:3]))
    )


@named(MODELS)
def test_text_in_one_dimension_for_wide_models(estimator):
    text = np.array(COLUMNS["city"])
    model = clone(estimator).fit(text, Y)
    np.testing.assert_array_equal(model.predict(text), clone(estimator).fit(text[:, None], Y).predict(text[:, None]))


@pytest.mark.parametrize(
    "values", [[1, 2, 3], [1.5, None, 2.5], [None, None, None], ["a", 1, 2], np.arange(3)], ids=str
)
@named([*ENCODERS, *MODELS])
def test_other_values_in_one_dimension_are_refused(estimator, values):
    """They could be a row as well as a column."""
    with pytest.raises(ValueError, match="Reshape your data"):
        clone(estimator).fit(values, [0, 1, 0])


@FRAMES
@named(ENCODERS[:3])
def test_names_in_and_out_as_category_encoders_call_them(estimator, frame):
    with pytest.raises(ValueError, match="not fitted yet"):
        clone(estimator).get_feature_names_in()
    assert not hasattr(clone(estimator), "feature_names_out_")
    fitted = clone(estimator).set_params(cols=["city"]).fit(frame(COLUMNS), Y)
    assert fitted.get_feature_names_in().tolist() == ["city", "n", "all"]
    assert fitted.feature_names_out_.tolist() == fitted.get_feature_names_out().tolist()
    assert clone(estimator).fit(np.array([COLUMNS["city"]]).T, Y).get_feature_names_in().tolist() == ["x0"]


@FRAMES
@named(ENCODERS)
def test_names_that_are_not_those_of_fit_are_refused(estimator, frame):
    fitted = clone(estimator).fit(frame({"city": COLUMNS["city"]}), Y)
    assert list(fitted.get_feature_names_out(["city"])) == list(fitted.get_feature_names_out())
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_; leave it out"):
        fitted.get_feature_names_out(["town"])


# -- names that are no text ---------------------------------------------------------------------------------

_TREES = HistGradientBoostingRegressor(max_iter=3)
OF_ALL_KINDS = [
    *ENCODERS, *CROSS_FITS, *MODELS, WideClassifier(), SelectiveNaiveBayesClassifier(), JitterTreeClassifier(),
    AugmentedModel(_TREES), WideBoostRegressor(booster=_TREES, cv=3, early_stopping=False, mode="feature"),
]  # fmt: skip
NUMBERED = pd.DataFrame({5: COLUMNS["city"], 3: COLUMNS["all"], 8: COLUMNS["n"]})
PAIRS = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "x")])


def values_of(fitted, table):
    return np.asarray(fitted.predict(table) if hasattr(fitted, "predict") else fitted.transform(table), dtype=object)


@named(OF_ALL_KINDS)
def test_names_that_are_no_text_are_positions(estimator):
    """As in scikit-learn; the fitted parts know columns by the names of fit all the same."""
    numbers = [[5, 3, 8], [0, 1, 2], pd.to_datetime(["2024-01-01", "2023-01-01", "2025-01-01"])]
    X = NUMBERED.set_axis(numbers[OF_ALL_KINDS.index(estimator) % 3], axis=1)  # as if there were none, for all
    fitted = clone(estimator).fit(X, Y)
    expected = values_of(fitted, X)
    assert not hasattr(fitted, "feature_names_in_")
    for others in (range(3), PAIRS, [11, 12, 13]):
        np.testing.assert_array_equal(values_of(fitted, X.set_axis(others, axis=1)), expected)
    np.testing.assert_array_equal(values_of(fitted, X.to_numpy(dtype=object)), expected)
    with pytest.warns(UserWarning, match="fitted without feature names"):
        np.testing.assert_array_equal(values_of(fitted, X.set_axis(list("abc"), axis=1)), expected)
    of_array = clone(estimator).fit(X.to_numpy(dtype=object), Y)
    np.testing.assert_array_equal(values_of(of_array, X), values_of(of_array, X.to_numpy(dtype=object)))


@named(OF_ALL_KINDS)
def test_names_that_are_no_text_in_another_order_are_refused(estimator):
    X = NUMBERED.set_axis([[5, 3, 8], [0, 1, 2], PAIRS][OF_ALL_KINDS.index(estimator) % 3], axis=1)
    fitted = clone(estimator).fit(X, Y)
    for order in ([1, 0, 2], [2, 0, 1]):
        with pytest.raises(ValueError, match="must be in the same order"):
            values_of(fitted, X.iloc[:, order])
    moved = X.set_axis([*NUMBERED.columns[1:], 99], axis=1)
    with pytest.raises(
        ValueError, match="unseen at fit time:\n- 99\nFeature names seen at fit time, yet now missing:\n- 5"
    ):
        values_of(clone(estimator).fit(NUMBERED, Y), moved)


# -- y in transform ---------------------------------------------------------------------------------------


@FRAMES
@named([MODLEncoder(output="mean"), WideEncoder(random_state=0), TIWSEncoder(), *CROSS_FITS])
def test_transform_takes_y_and_ignores_it(estimator, frame):
    """A row's own target must not reach its encoding by this door, however it is given."""
    data = frame({"city": COLUMNS["city"]})
    fitted = clone(estimator).fit(data, Y)
    expected = np.asarray(fitted.transform(data))
    for y in (Y, 1 - Y, pd.Series(Y, index=range(7, 7 + N)), None):
        np.testing.assert_array_equal(np.asarray(fitted.transform(data, y)), expected)
        np.testing.assert_array_equal(np.asarray(fitted.transform(data, y=y)), expected)


@FRAMES
@named([MODLEncoder(output="mean"), WideEncoder(random_state=0), TIWSEncoder(), *CROSS_FITS])
def test_transform_refuses_y_of_another_length(estimator, frame):
    data = frame({"city": COLUMNS["city"]})
    fitted = clone(estimator).fit(data, Y)
    for y in (Y[:-1], [*Y, 1], pl.Series(Y[:3])):
        with pytest.raises(ValueError, match=f"The table has {N} rows and y {len(y)}; .*leave it out"):
            fitted.transform(data, y)


# -- indexes ----------------------------------------------------------------------------------------------

X = pd.DataFrame(COLUMNS, index=range(7, 7 + N))
AMOUNT = pd.Series(RNG.normal(size=N) + Y, index=X.index)
METHODS = {
    OneHotEncoder: ["fit", "fit_transform"],
    MODLEncoder: ["fit", "fit_transform", "partial_fit"],
    WideEncoder: ["fit", "fit_transform"],
    TIWSEncoder: ["fit", "partial_fit", "fit_transform"],
    CrossFit: ["fit", "fit_transform"],
    WideSGDClassifier: ["fit", "partial_fit"],
    WideSGDRegressor: ["fit", "partial_fit"],
}
CASES = [
    pytest.param(one, method, id=f"{type(one).__name__}-{method}")
    for one in [OneHotEncoder(), MODLEncoder(), WideEncoder(random_state=0), TIWSEncoder(), CROSS_FITS[0], *MODELS]
    for method in METHODS[type(one)]
]


def learned(estimator, method, frame, y):
    """What a call gives, or what the fitted estimator then makes of the same rows."""
    fitted = clone(estimator)
    out = getattr(fitted, method)(frame, y)
    if method != "fit_transform":
        out = fitted.predict(frame) if hasattr(fitted, "predict") else fitted.transform(frame)
    return np.asarray(out)


@pytest.mark.parametrize(("estimator", "method"), CASES)
def test_a_target_with_other_labels_is_refused(estimator, method):
    """Of category_encoders' rule: above all the same labels in another order, which no length gives away."""
    call = getattr(clone(estimator), method)
    y = pd.Series(Y, index=X.index)
    frame = X[["city"]]
    swapped = y.iloc[[1, 0, *range(2, N)]]
    with pytest.raises(
        ValueError, match=r"X and y have different indexes: row 0 is 7 in X and 8 in y.*y.loc\[X.index\]"
    ):
        call(frame, swapped)
    with pytest.raises(ValueError, match=r"row 0 is 7 in X and 0 in y; .*pass y.to_numpy\(\)"):
        call(frame, y.reset_index(drop=True))
    with pytest.raises(ValueError, match="row 0 is 7 in X and 8 in y"):
        call(frame["city"], swapped.to_frame())
    expected = learned(estimator, method, frame, Y)
    for good in (y, y.set_axis(y.index.astype(object)), y.tolist(), pl.Series(y.tolist())):
        np.testing.assert_array_equal(learned(estimator, method, frame, good), expected)


@pytest.mark.parametrize(("estimator", "method"), CASES)
def test_a_table_without_labels_takes_any_index(estimator, method):
    """Rows go together as they lie, whatever the target's labels say of their order."""
    y = pd.Series(Y, index=X.index[::-1])
    for frame in (pl.DataFrame({"city": COLUMNS["city"]}), np.array([COLUMNS["city"]], dtype=object).T):
        found = learned(estimator, method, frame, y)
        np.testing.assert_array_equal(found, learned(estimator, method, frame, Y))
        by_label = learned(estimator, method, frame, y[::-1].to_numpy())
        assert isinstance(estimator, OneHotEncoder) or not np.array_equal(found, by_label)


@pytest.mark.parametrize(("estimator", "method"), CASES)
def test_a_table_numbered_anew_takes_labels_of_other_rows(estimator, method):
    """As skrub hands columns on in a fold; but not its own labels in another order."""
    frame = X[["city"]].reset_index(drop=True)
    found = learned(estimator, method, frame, pd.Series(Y, index=X.index))
    np.testing.assert_array_equal(found, learned(estimator, method, frame, Y))
    learned(estimator, method, frame, pd.Series(Y, index=[f"row {row}" for row in range(N)]))
    with pytest.raises(ValueError, match="X and y have different indexes: row 0 is 0 in X and 119 in y"):
        learned(estimator, method, frame, pd.Series(Y)[::-1])


@pytest.mark.parametrize(
    ("estimator", "argument"),
    [
        (OneHotEncoder(), "sample_weight"),
        (MODLEncoder(), "sample_weight"),
        (WideEncoder(random_state=0), "sample_weight"),
        (TIWSEncoder(), "sample_weight"),
        (CROSS_FITS[1], "groups"),
        (MODELS[0], "sample_weight"),
        (MODELS[1], "offset"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_other_arguments_with_other_labels_are_refused(estimator, argument):
    values = pd.Series(np.ones(N), index=X.index)
    clone(estimator).fit(X[["city"]], Y, **{argument: values})
    with pytest.raises(ValueError, match=f"X and {argument} have different indexes: row 0 is 7 in X and 126 in"):
        clone(estimator).fit(X[["city"]], Y, **{argument: values[::-1]})


def test_permutations_of_a_target_are_arrays():
    """scikit-learn shuffles the labels with the values: an error, of which the remedy is one."""
    model = WideSGDClassifier(max_iter=1, random_state=0)
    with pytest.raises(ValueError, match="X and y have different indexes"):
        permutation_test_score(model, X, pd.Series(Y, index=X.index), n_permutations=2)
    permutation_test_score(model, X, pd.Series(Y, index=X.index).to_numpy(), n_permutations=2)


def test_offsets_of_predictions():
    model = WideSGDRegressor(max_iter=1, random_state=0).fit(X, AMOUNT)
    with pytest.raises(ValueError, match="X and offset have different indexes: row 0 is 7 in X and 0 in offset"):
        model.predict(X, offset=pd.Series(np.zeros(N)))


def test_labels_that_are_missing_or_doubled_agree():
    labels = pd.Index([None, None, *map(str, range(N - 2))], dtype=object)
    frame, y = X[["city"]].set_axis(labels), pd.Series(Y, index=labels)
    WideSGDClassifier(max_iter=1).fit(frame, y)
    nothing = pd.Index([pd.NA, *range(1, N)], dtype="Int64")
    with pytest.raises(ValueError, match="row 0 is <NA> in X and 0 in y"):
        WideSGDClassifier(max_iter=1).fit(frame.set_axis(nothing), pd.Series(Y))
    pairs = pd.MultiIndex.from_arrays([["a"] * N, range(N)])
    with pytest.raises(ValueError, match=r"row 0 is \('a', 0\) in X and \('a', 119\) in y"):
        WideSGDClassifier(max_iter=1).fit(frame.set_axis(pairs), pd.Series(Y, index=pairs[::-1]))


@FRAMES
@pytest.mark.parametrize("encoder", ENCODERS[:4])
@pytest.mark.parametrize("other", [[1.5, None], ["k", "l"], pd.array([1, None], dtype="Int64")])
def test_arrays_hold_dates_beside_other_columns(frame, encoder, other):
    """Numpy had no common type for them, or made microseconds of the dates of polars."""
    days = pd.date_range("2024-01-01", periods=N)
    table = pd.DataFrame({"city": COLUMNS["city"], "day": days, "other": pd.Series(other).repeat(N // 2).array})
    given = table if frame is pd.DataFrame else pl.from_pandas(table)
    out = clone(encoder).set_params(cols=["city"], return_df=False).fit(given, Y).transform(given)
    assert out.shape[1] >= 3 and pd.to_datetime(pd.Series(out[:, -2])).tolist() == days.tolist()
    assert pd.isna(out[:, -1]).tolist() == table["other"].isna().tolist()


DICTIONARY = pa.table({
    "city": COLUMNS["city"], "other": pa.array((["q", None, "p", None] * N)[:N]).dictionary_encode()
})  # fmt: skip


@pytest.mark.parametrize("encoder", ENCODERS[:4])
def test_missing_values_of_arrow_dictionaries_stay_missing_in_arrays(encoder):
    """Arrow gives numpy the last category of the dictionary for them."""
    out = clone(encoder).set_params(cols=["city"], return_df=False).fit(DICTIONARY, Y).transform(DICTIONARY)
    assert out[:, -1].tolist() == DICTIONARY["other"].to_pylist()


@pytest.mark.parametrize("encoder", [TargetEncoder(), OrdinalEncoder(encoded_missing_value=-1)])
def test_other_encoders_see_missing_values_of_arrow_dictionaries(encoder):
    plain = DICTIONARY.cast(pa.schema([("city", pa.string()), ("other", pa.string())]))
    one, other = (CrossFit(clone(encoder), random_state=0) for _ in range(2))
    np.testing.assert_array_equal(
        np.asarray(one.fit_transform(DICTIONARY, Y)), np.asarray(other.fit_transform(plain, Y))
    )
    for table in (DICTIONARY, plain):
        np.testing.assert_array_equal(np.asarray(one.transform(table)), np.asarray(other.transform(plain)))


def test_a_target_that_is_a_table_of_one_dictionary():
    y = DICTIONARY.select(["other"])
    with pytest.raises(ValueError, match=f"missing in {N // 2} row"):
        WideClassifier().fit(DICTIONARY.select(["city"]), y)


def test_text_that_no_utf8_can_hold_is_named():
    table = pd.DataFrame({"t": pd.Series(["\ud800", "b", "c"] * 40, dtype=object)})
    for encoder in (MODLEncoder(), OneHotEncoder(use_cat_names=True)):
        with pytest.raises(ValueError, match=r"Encoding column 't' makes text that is no valid Unicode, '.*\\ud800"):
            encoder.fit_transform(table, [0, 1, 1] * 40)


@pytest.mark.slow
def test_views_of_text_are_taken_by_folds():
    table = pa.table({"m": pa.array(list("abcdef") * 30, pa.string_view()), "k": np.arange(180.0)})
    y = np.tile(np.arange(6.0), 30) + np.random.default_rng(0).normal(size=180)
    plain = table.set_column(0, "m", table["m"].cast(pa.string()))
    found, wanted = (WideEncoder().fit_transform(one, y) for one in (table, plain))
    assert found.equals(wanted)
    model = AugmentedModel(HistGradientBoostingRegressor(max_iter=5))
    pd.testing.assert_frame_equal(*(model.evaluate_unknown(one, y, "m", folds=2) for one in (table, plain)))
