"""Bad input gets one sentence that names the column or value and the remedy."""

import copy
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_selector

from tabsym import (
    MODLEncoder,
    OneHotEncoder,
    TIWSEncoder,
    WideBoostClassifier,
    WideClassifier,
    WideEncoder,
    WideRegressor,
    WideSGDClassifier,
    WideSGDRegressor,
)
from tabsym.encoders import NativeCategories
from tabsym.frame import read_table
from tests.options import GLM

CLASSIFIERS, REGRESSORS = (WideClassifier, WideSGDClassifier), (WideRegressor, WideSGDRegressor)
ESTIMATORS = [OneHotEncoder(), WideClassifier(), WideSGDClassifier(max_iter=2, random_state=0)]
OF_CLASSES = pytest.mark.parametrize("model", CLASSIFIERS)
OF_NUMBERS = pytest.mark.parametrize("model", REGRESSORS)
Y = [0, 1, 0, 1]


def table(**changes):
    return pd.DataFrame({"a": ["u", "v", "u", "w"], "n": [1.0, 2.0, 3.0, 4.0]} | changes)


def sentence(error):
    return str(error.value)


@pytest.fixture(params=ESTIMATORS, ids=lambda e: type(e).__name__)
def estimator(request):
    return copy.deepcopy(request.param)


def test_empty_table(estimator):
    with pytest.raises(ValueError, match="no rows"):
        estimator.fit(table().iloc[:0], [])


def test_no_columns(estimator):
    with pytest.raises(ValueError, match="at least one column"):
        estimator.fit(pd.DataFrame(index=range(4)), Y)


def test_duplicate_columns(estimator):
    frame = table()
    frame.columns = ["a", "a"]
    with pytest.raises(ValueError, match="Duplicate column name 'a': rename"):
        estimator.fit(frame, Y)


@pytest.mark.parametrize("names", [["a", 0], [0, "a"], ["a", ("b", 1)]])
def test_names_are_all_text_or_none_is(estimator, names):
    with pytest.raises(TypeError, match="Feature names are only supported if all input features have string names"):
        estimator.fit(table().set_axis(pd.Index(names, dtype=object), axis=1), Y)


def test_names_that_are_equal_as_text_are_duplicates(estimator):
    frame = table().set_axis(pd.Index([("a", 1), _Named()], dtype=object), axis=1)
    with pytest.raises(ValueError, match="Duplicate column name"):
        estimator.fit(frame, Y)
    assert estimator.fit(table().set_axis([1, 0], axis=1), Y).n_features_in_ == 2


class _Named:
    """Another object with the text of a tuple."""

    def __str__(self):
        return str(("a", 1))


def test_duplicate_columns_of_arrow(estimator):
    frame = pa.Table.from_arrays([pa.array(["u"] * 4), pa.array(["v"] * 4)], names=["a", "a"])
    with pytest.raises(ValueError, match="Duplicate column name 'a': rename"):
        estimator.fit(frame, Y)


def test_missing_column_at_transform(estimator):
    fitted = estimator.fit(table(), Y)
    with pytest.raises(ValueError, match=r"now missing:\n- n"):
        use(fitted, table().drop(columns="n"))


def test_columns_in_another_order(estimator):
    fitted = estimator.fit(table(), Y)
    with pytest.raises(ValueError, match="same order"):
        use(fitted, table()[["n", "a"]])


@pytest.mark.parametrize("values", [["u", 1, "v", 2], ["u", 1.5, None, "v"], [True, "u", "v", "w"]])
def test_mixed_types(estimator, values):
    with pytest.raises(TypeError, match=r"Column 'a' mixes types.*astype\(str\)"):
        estimator.fit(table(a=pd.Series(values, dtype=object)), Y)


@pytest.mark.parametrize("values", [[1, "v", "u", 1.5], [1.5, "u", "v", 2], [Decimal(1), 2, "u", 1.5]])
def test_the_types_that_are_named_cannot_go_together(values):
    """Whole numbers and fractions can: they were named where text was the matter."""
    with pytest.raises(TypeError, match=r"mixes types: .* is str") as error:
        read_table(table(a=pd.Series(values, dtype=object)))
    assert re.findall(r" is (\w+)", sentence(error)).count("str") == 1


@pytest.mark.parametrize("values", [pd.period_range("2024-01", periods=3, freq="M"), pd.interval_range(0, 3)])
def test_extension_types_of_arrow(values):
    """pandas' own said that it cannot interpret ArrowPeriodType as a data type."""
    X = pa.Table.from_pandas(pd.DataFrame({"a": pd.Series(values)}))
    with pytest.raises(TypeError, match=r"Column 'a' has the type extension.*neither categorical nor numeric; convert"):
        read_table(X)


@pytest.mark.parametrize("value", [["x"], {"x": 1}, ("x",)])
def test_nested_values_of_pandas(estimator, value):
    with pytest.raises(TypeError, match="Column 'a' holds nested values"):
        estimator.fit(table(a=pd.Series([value] * 4, dtype=object)), Y)


def test_nested_values_of_polars_and_arrow(estimator):
    columns = {"a": [["x"], ["y"], [], ["z"]], "n": [1.0, 2.0, 3.0, 4.0]}
    for frame in (pl.DataFrame(columns), pa.table(columns)):
        with pytest.raises(TypeError, match="Column 'a' holds nested values"):
            estimator.fit(frame, Y)


@OF_NUMBERS
def test_infinite_number(model):
    with pytest.raises(ValueError, match="Column 'n' contains infinity; replace"):
        model().fit(table(n=[1.0, np.inf, 2.0, 3.0]), Y)
    fitted = model().fit(table(), Y)
    with pytest.raises(ValueError, match="Column 'n' contains infinity"):
        fitted.predict(table(n=[1.0, -np.inf, 2.0, 3.0]))


@OF_CLASSES
def test_one_class_target(model):
    with pytest.raises(ValueError, match=r"1 class only \('yes'\)"):
        model().fit(table(), ["yes"] * 4)
    with pytest.raises(ValueError, match="1 class only"):
        model().fit(table(), Y, sample_weight=[1, 0, 1, 0])


@pytest.mark.parametrize("y", [[0, None, 1, 0], [0.0, np.nan, 1.0, 0.0], ["a", None, "b", "a"]])
@pytest.mark.parametrize("model", CLASSIFIERS + REGRESSORS)
def test_missing_target(model, y):
    with pytest.raises(ValueError, match=r"missing in 1 row\(s\), first in row 1"):
        model().fit(table(), pd.Series(y))


@pytest.mark.parametrize(
    "y",
    [
        ["a", np.nan, "b", "a"],
        [True, pd.NA, False, True],
        np.array(["a", pd.NA, "b", "a"], dtype=object),
        pd.array([True, None, False, True], dtype="boolean"),
        pd.Series(["a", None, "b", "a"], dtype="string"),
        pd.Series([True, None, False, True], dtype="boolean"),
        np.ma.masked_array([0.0, 7.0, 1.0, 0.0], mask=[0, 1, 0, 0]),
    ],
    ids=str,
)
@pytest.mark.parametrize("model", CLASSIFIERS + REGRESSORS)
def test_missing_target_of_any_type(model, y):
    with pytest.raises(ValueError, match=r"missing in 1 row\(s\), first in row 1"):
        model().fit(table(), y)


@pytest.mark.parametrize("y", [5, {0: 1}, np.array([], dtype=object)], ids=str)
@pytest.mark.parametrize("model", CLASSIFIERS + REGRESSORS)
def test_a_target_that_is_no_column(model, y):
    with pytest.raises(ValueError, match=r"should be a 1d array|4 rows and the target 0"):
        model().fit(table(), y)


@pytest.mark.parametrize("value", [{"x": 1}, ["x"], {"x"}], ids=str)
@pytest.mark.parametrize("model", CLASSIFIERS + REGRESSORS)
def test_nested_values_in_the_target(model, value):
    with pytest.raises(TypeError, match="The target holds nested values such as"):
        model().fit(table(), pd.Series([value] * 4))


@pytest.mark.parametrize("rows", [{"a": ["u", "v"]}, [{"a": "u"}, {"a": "v"}]], ids=["columns", "rows"])
def test_dicts_are_no_table(estimator, rows):
    with pytest.raises(TypeError, match=r"takes a table, and got dicts; make one of them: pandas\.DataFrame"):
        estimator.fit(rows, [0, 1])


def test_a_structured_array_is_no_table(estimator):
    rows = np.array([("u", 1.0), ("v", 2.0)] * 2, dtype=[("a", "U1"), ("n", float)])
    for X in (rows, rows.view(np.recarray)):
        with pytest.raises(TypeError, match=r"got a structured array; make one of it: pandas\.DataFrame"):
            estimator.fit(X, Y)
    estimator.fit(pd.DataFrame(rows), Y)


@OF_NUMBERS
def test_infinite_target(model):
    with pytest.raises(ValueError, match="row 2 of the target is infinite"):
        model().fit(table(), [0.0, 1.0, np.inf, 2.0])


@OF_CLASSES
def test_target_of_another_length(model):
    with pytest.raises(ValueError, match="4 rows and the target 3"):
        model().fit(table(), [0, 1, 0])


@OF_NUMBERS
def test_text_target_of_a_regression(model):
    with pytest.raises(ValueError, match="must be numeric"):
        model().fit(table(), ["a", "b", "a", "b"])


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1, -1, 1, 1], "negative"),
        ([1, np.nan, 1, 1], "NaN"),
        ([0, 0, 0, 0], "zero for every row"),
        ([1, 1], "expected"),
    ],
)
@OF_CLASSES
def test_bad_weights(model, weights, words):
    with pytest.raises(ValueError, match=words):
        model().fit(table(), Y, sample_weight=weights)


def test_a_masked_weight_is_missing():
    with pytest.raises(ValueError, match="NaN"):
        WideClassifier().fit(table(), Y, sample_weight=np.ma.masked_array([1.0] * 4, mask=[0, 1, 0, 0]))


@pytest.mark.parametrize("kind", [list, tuple])
def test_rows_in_a_list_keep_their_types(kind):
    rows = kind([kind(row) for row in (["u", 1.5, True], ["v", np.nan, False], ["u", 2.5, True], ["w", 4.0, True])])
    frame = pd.DataFrame(list(rows), columns=["x0", "x1", "x2"])
    one, other = (WideClassifier().fit(X, Y) for X in (rows, frame))
    assert one.predict_proba(rows).tolist() == other.predict_proba(frame).tolist()
    assert one.coefs_["x0"].index.tolist() == other.coefs_["x0"].index.tolist()
    assert "low" in one.coefs_["x1"]


def test_masked_values_of_an_array_are_missing():
    values = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0], [4.0, 8.0]])
    masked = np.ma.masked_array(values, mask=values == 6.0)
    one, other = (WideRegressor().fit(X, Y) for X in (masked, np.where(values == 6.0, np.nan, values)))
    assert one.predict(masked).tolist() == other.predict(masked).tolist()
    assert one.coefs_["x1"]["low"].isna().any()


def test_text_where_numbers_were():
    fitted = OneHotEncoder(cols=["k"]).fit(pd.DataFrame({"k": [1, 2, 3]}))
    with pytest.raises(TypeError, match="Column 'k' held numbers in fit and holds text now"):
        fitted.transform(pd.DataFrame({"k": ["1", "2", "3"]}))


@OF_NUMBERS
def test_a_number_column_that_becomes_text(model):
    fitted = model().fit(table(), Y)
    with pytest.raises(ValueError, match="Column 'n' holds text where numbers are needed"):
        fitted.predict(table(n=["x", "y", "z", "x"]))


def test_categories_are_matched_by_value_not_by_code():
    X = table(a=pd.Categorical(["u", "v", "u", "w"], categories=["w", "v", "u"]))
    fitted = OneHotEncoder(use_cat_names=True).fit(X)
    other = table(a=pd.Categorical(["u", "v", "u", "w"], categories=["new", "u", "w", "v"]))
    pd.testing.assert_frame_equal(fitted.transform(X), fitted.transform(other))
    pd.testing.assert_frame_equal(fitted.transform(X), fitted.transform(table()))
    for model in (WideRegressor(), WideSGDRegressor(max_iter=3, random_state=0)):
        model.fit(X, [1.0, 2.0, 3.0, 4.0])
        np.testing.assert_array_equal(model.predict(X), model.predict(other))


def test_integer_categories_with_missing_match_floats():
    fitted = OneHotEncoder(cols=["k"]).fit(pd.DataFrame({"k": [1, 2, 3]}))
    out = fitted.transform(pd.DataFrame({"k": [1.0, np.nan, 3.0]}))
    assert out.to_numpy().tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 1]]


def test_no_rows_at_transform(make_frame):
    frame = make_frame({"a": ["u", "v", "u", "w"], "n": [1.0, 2.0, 3.0, 4.0]})
    empty = frame.limit(0) if hasattr(frame, "limit") else frame[:0]
    for model in (WideClassifier(), WideSGDClassifier(max_iter=1)):
        assert model.fit(frame, Y).predict_proba(empty).shape == (0, 2)
    out = OneHotEncoder().fit(frame).transform(empty)
    assert (out.collect() if hasattr(out, "collect") else out).shape[0] == 0


def test_a_batch_of_one_row():
    fitted = WideSGDClassifier(max_iter=1, interactions="pairwise").fit(table(b=["x", "y", "x", "y"]), Y)
    assert fitted.predict_proba(table(b=["x", "y", "x", "y"]).iloc[[2]]).shape == (1, 2)
    fitted.partial_fit(table(b=["x", "y", "x", "y"]).iloc[[2]], [1])


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("optimizer", "lbfgs"),
        ("gradient", "sum"),
        ("learning_rate", 0),
        ("learning_rate", "fast"),
        ("batch_size", 0),
        ("max_iter", 1.5),
        ("alpha", -1),
        ("loss", "hinge2"),
        ("handle_unknown", "guess"),
        ("interactions", 0),
        ("validation_fraction", 1.0),
        ("average", 10),
        ("shuffle", None),
        ("standardize", "False"),
        ("early_stopping", 0.5),
    ],
)
def test_wrong_options_of_online_models_are_named(option, value):
    for model in (WideSGDClassifier, WideSGDRegressor):
        with pytest.raises(ValueError, match=f"{option}={value!r}"):
            model(**{option: value}).fit(table(), Y)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_iter", 1.5),
        ("alpha", -1),
        ("alpha", "none"),
        ("handle_unknown", "guess"),
        ("interactions", 0),
        ("numeric", "cubic"),
        ("count_effect", "no"),
        ("tol", 0),
        ("n_init", 0),
        ("n_posterior_samples", -1),
    ],
)
def test_wrong_options_of_solved_models_are_named(option, value):
    for model in (WideClassifier, WideRegressor):
        with pytest.raises(ValueError, match=f"{option}={value!r}"):
            model(**{option: value}).fit(table(), Y)


def test_wrong_losses_of_solved_regressors_are_named():
    for loss in ("hinge2", "absolute_error"):
        with pytest.raises(ValueError, match=f"loss={loss!r}"):
            WideRegressor(loss=loss).fit(table(), Y)


@pytest.mark.parametrize("encoder", [OneHotEncoder, MODLEncoder, TIWSEncoder, WideEncoder, NativeCategories])
@pytest.mark.parametrize("cols", [make_column_selector(dtype_include=object), slice(None)], ids=["selector", "slice"])
def test_cols_that_are_no_columns(encoder, cols):
    """scikit-learn's selectors, for one: "object is not iterable"."""
    with pytest.raises(TypeError, match=r"cols=.* is not possible; use a list of columns"):
        encoder(cols=cols).fit(table(), Y)


def test_cols_that_are_not_there():
    with pytest.raises(ValueError, match="cols names column 'z'"):
        OneHotEncoder(cols=["z"]).fit(table())
    with pytest.raises(ValueError, match="cols names column 'city'"):
        OneHotEncoder(cols="city").fit(table())
    for model in CLASSIFIERS:
        with pytest.raises(ValueError, match="Column 'a' holds text but is not in categorical_features"):
            model(categorical_features=["n"]).fit(table(), Y)
        with pytest.raises(ValueError, match="categorical_features names column 'z'"):
            model(categorical_features=["a", "z"]).fit(table(), Y)


def test_a_failing_partial_fit_leaves_the_model_as_it_was():
    X = table()
    model = WideSGDClassifier(random_state=0).partial_fit(X, Y)
    before = model.model_.state.copy(), model.predict_proba(X), copy.deepcopy(model.__dict__)
    bad = [
        (table(a=["new", "v", "u", "w"], n=[1, np.inf, 1, 1]), Y),
        (table(a=["new", "v", "u", "w"]), [0, 1, 2, 0]),
        (X.drop(columns="n"), Y),
    ]
    for frame, y in bad:
        with pytest.raises((ValueError, TypeError)):
            model.partial_fit(frame, y)
    np.testing.assert_array_equal(model.model_.state, before[0])
    np.testing.assert_array_equal(model.predict_proba(X), before[1])
    twin = WideSGDClassifier(random_state=0).partial_fit(X, Y).partial_fit(X, Y)
    np.testing.assert_array_equal(model.partial_fit(X, Y).predict_proba(X), twin.predict_proba(X))


def test_divergence_is_said():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"n": rng.normal(size=200), "a": rng.choice(list("uvw"), 200)})
    with pytest.raises(ValueError, match=r"diverged.*learning_rate"):
        WideSGDRegressor(optimizer="sgd", learning_rate=1e6, max_iter=20).fit(X, rng.normal(size=200))


def use(fitted, frame):
    return fitted.transform(frame) if hasattr(fitted, "transform") else fitted.predict(frame)


@pytest.mark.parametrize(
    "model",
    [
        WideSGDRegressor(),
        WideRegressor(loss="squared_error", **GLM),
        WideSGDRegressor("w[1] * x + b[1]"),
        WideRegressor("w[1] * x + b[1]", loss="squared_error"),
    ],
)
def test_numbers_too_large_to_square_are_named(model):
    """A slope became 0, under a warning of numpy's that named no column."""
    X = pd.DataFrame({"x": [1.0, 2.0, -1e300, 3.0] * 10})
    with pytest.raises(ValueError, match=r"'x' is -1e\+300 in row 2, whose square is no finite number; drop"):
        model.fit(X, np.arange(40.0))


def test_a_smooth_effect_squares_no_number():
    X = pd.DataFrame({"x": [1.0, 2.0, -1e300, 3.0] * 10})
    y = [0, 5, 20, 1] * 10
    np.testing.assert_allclose(WideRegressor(alpha=0.0).fit(X, y).predict(X), y, atol=1e-6)


@pytest.mark.parametrize("kind", [WideClassifier, WideSGDClassifier, MODLEncoder, TIWSEncoder, WideBoostClassifier])
@pytest.mark.parametrize("value", [0, "2", 1.5, True])
def test_numbers_of_threads_that_are_none(kind, value):
    with pytest.raises(ValueError, match=r"n_jobs=.* is not possible; use None, a number of threads, or -1"):
        kind(n_jobs=value).fit(table(), Y)


@pytest.mark.parametrize("value", [0, -1, 2.5, "x", True])
def test_numbers_of_levels_that_are_none(value):
    with pytest.raises(ValueError, match=f"max_levels={value!r}"):
        NativeCategories(max_levels=value).fit(table())


LATE = {
    "objects": lambda frame: frame.assign(n=None),
    "polars": lambda frame: pl.from_pandas(frame.assign(n=None)).with_columns(n=pl.lit(None)),
    "arrow": lambda frame: pa.table({"a": frame["a"].tolist(), "n": pa.nulls(len(frame))}),
}


@pytest.mark.parametrize("first", LATE)
@pytest.mark.parametrize("kind", [WideSGDClassifier, TIWSEncoder])
def test_numbers_after_rows_without_a_value_or_a_type(kind, first):
    """Each number would be a category of its own."""
    rows = table()
    model = kind().partial_fit(LATE[first](rows), Y)
    with pytest.raises(TypeError, match=r"Column 'n' had no value in the rows before, .* holds numbers now"):
        model.partial_fit(rows, Y)
    kind().partial_fit(rows.assign(n=np.nan), Y).partial_fit(rows, Y)
    name = "cols" if kind is TIWSEncoder else "categorical_features"
    kind(**{name: ["a", "n"]}).partial_fit(LATE[first](rows), Y).partial_fit(rows, Y)


def test_rows_by_name_that_lack_one():
    """A name that other rows have may be a typing error; None is a missing value, and further names are left out."""
    model = WideRegressor(loss="squared_error").fit(table(), [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(ValueError, match="Row 1 lacks 'n', which other rows have; give it in every row, as None"):
        model.predict([{"a": "u", "n": 1.0}, {"a": "u", "N": 2.0}])
    assert len(model.predict([{"a": "u", "n": 1.0}, {"a": "u", "n": None}])) == 2
    assert len(model.predict([{"a": "u", "n": 1.0, "more": 3}, {"n": 1.0, "a": "u"}])) == 2
    assert model.predict([]).shape == (0,)


@pytest.mark.parametrize("name", ["sample_weight", "freq_weights"])
@pytest.mark.parametrize(
    "values", [pd.to_timedelta([1, 2, 3, 4], unit="s"), pd.to_datetime([1, 2, 3, 4]), np.array([1, 2, 3, 4j])]
)
def test_weights_of_other_types(name, values):
    with pytest.raises(TypeError, match=f"{name} must hold .*numbers, one for each row .its type is"):
        WideClassifier().fit(table(), Y, **{name: values})
    with pytest.raises(ValueError, match="offset must hold numbers, one per row"):
        WideClassifier().fit(table(), Y, offset=values)


@pytest.mark.parametrize("name", [7, 0.5, ("a", 1), None, pd.Timestamp("2020-01-01")], ids=repr)
def test_columns_are_asked_for_by_their_names_even_where_these_are_no_text(name):
    rows = np.tile([1.0, 2.0, 3.0], 10)
    table = pd.DataFrame({0: rows, 1: rows[::-1]}).set_axis(pd.Index([name, 3.25], dtype=object), axis=1)
    assert OneHotEncoder(cols=[name]).fit_transform(table).shape == (30, 4)
    model = WideRegressor(categorical_features=[name], loss="squared_error").fit(table, rows)
    assert len(model.coefs_[str(name)]) >= 3
