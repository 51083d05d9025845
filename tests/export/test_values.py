"""What users' tables and options bring into a fitted state: symbols of any kind, types of columns, plain containers."""

import datetime
import json
import pickle
from collections import OrderedDict
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import FunctionTransformer, TargetEncoder

from tabsym import (
    AugmentedModel,
    CrossFit,
    MODLEncoder,
    OneHotEncoder,
    TIWSEncoder,
    WideBoostClassifier,
    WideRegressor,
    WideSGDRegressor,
    load,
    save,
)
from tabsym.export import from_spec, to_excel, to_onnx, to_spec, to_sql
from tabsym.frame.dtypes import read_type, written_type

Y = np.arange(60.0) % 4
CATEGORIES = {
    "dates": [datetime.date(2024, 1, day) for day in (1, 2, 3)],
    "times": [datetime.time(day, 30) for day in (1, 2, 3)],
    "decimals": [Decimal("1.10"), Decimal("2"), Decimal("3.5")],
    "bytes": [b"a", b"\xff", b"c"],
    "flags": [True, False, True],
    "mixed": ["1", 1, 2.5],
    "missing": ["a", None, "b"],
    "tuples": [("a", 1), ("b", 2), ("a", 2)],
    "moments": [pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-02 10:00"), pd.NaT],
    "zones": [pd.Timestamp("2024-01-01", tz="Europe/Berlin"), pd.Timestamp("2024-01-02", tz="Europe/Berlin")] * 2,
    "zones of dateutil": [pd.Timestamp(f"2024-01-0{day}", tz="dateutil/Europe/Berlin") for day in (1, 2, 3)],
    "durations": [pd.Timedelta("1h"), pd.Timedelta("2h"), pd.Timedelta("3h")],
    "surrogates": ["\ud800", "é", "\x00"],
    "numbers": [10**20, 2, -1],
    "intervals": [pd.Interval(0, 1), pd.Interval(1, 2), pd.Interval(2, 3)],
    "periods": [pd.Period("2024-01"), pd.Period("2024-02"), pd.Period("2024-03")],
}


@pytest.mark.parametrize("kind", CATEGORIES)
@pytest.mark.parametrize("estimator", [OneHotEncoder(), WideSGDRegressor(random_state=0), WideRegressor()])
def test_symbols_of_any_kind(kind, estimator, tmp_path):
    values = (CATEGORIES[kind] * 60)[:60]
    X = pd.DataFrame({"a": pd.Categorical(pd.Series(values, dtype=object))})
    model = estimator.fit(X, Y)
    back = load(save(model, tmp_path / "model.skops"))
    method = "transform" if isinstance(model, OneHotEncoder) else "predict"
    np.testing.assert_array_equal(np.asarray(getattr(back, method)(X)), np.asarray(getattr(model, method)(X)))


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "-03:00"])
@pytest.mark.parametrize("library", ["pyarrow", "pandas", "polars"])
@pytest.mark.parametrize("estimator", [OneHotEncoder(cols="all"), WideRegressor(categorical_features="all")])
def test_moments_in_a_time_zone_that_are_those_of_python(estimator, library, zone, tmp_path):
    at = pa.array([1_700_000_000 + 3600 * (row % 5) for row in range(60)], pa.timestamp("s", zone))
    if library == "polars":
        X = pl.DataFrame({"at": pl.Series(at.cast(pa.timestamp("ms", "Etc/GMT+3" if zone[0] == "-" else zone)))})
    else:
        X = pd.DataFrame({"at": pd.array(at, pd.ArrowDtype(at.type))}) if library == "pandas" else pa.table({"at": at})
    model = estimator.fit(X, Y)
    back = load(save(model, tmp_path / "model.skops"))
    if isinstance(model, OneHotEncoder):
        assert str(back.inverse_transform(back.transform(X))) == str(X)
    else:
        assert back.predict(X).tolist() == model.predict(X).tolist()
        assert list(map(str, back.coefs_["at"].index)) == list(map(str, model.coefs_["at"].index))


@pytest.mark.parametrize("kind", [kind for kind in CATEGORIES if kind != "mixed"])  # whose rest is of another family
def test_symbols_of_any_kind_that_are_compared_with_others(kind, tmp_path):
    """Those seen and those observed, which columns of documents hold beside their alphabets."""
    values = (CATEGORIES[kind] * 60)[:60]
    X = pd.DataFrame({"a": pd.Categorical(pd.Series(values, dtype=object)), "b": list("uvwx") * 15})
    seen = np.arange(60) % len(CATEGORIES[kind]) != 1
    encoder = TIWSEncoder(cols="all", target_type="continuous", context="observed").fit(X[seen], Y[seen]).observe(X)
    back = load(save(encoder, tmp_path / "model.skops"))
    np.testing.assert_array_equal(back.transform(X).to_numpy(), encoder.transform(X).to_numpy())


def test_dates_in_groups(tmp_path):
    X = pd.DataFrame({"day": np.repeat(pd.date_range("2024-01-01", periods=4), 15), "b": list("uvw") * 20})
    encoder = MODLEncoder(cols="all", numeric="passthrough").fit(X, np.arange(60) // 15 % 2)
    back = load(save(encoder, tmp_path / "model.skops"))
    assert back.partitions_["day"].groups == encoder.partitions_["day"].groups
    assert back.transform(X).equals(encoder.transform(X)) and len(encoder.partitions_["day"].groups) == 2


TYPES = [
    *((np.dtype(name), "pandas") for name in ("float64", "int8", "bool", "O", "M8[s]", "m8[ns]", "U5")),
    *((pd.api.types.pandas_dtype(name), "pandas") for name in (
        "Int64", "boolean", "Float32", "datetime64[ns, Europe/Berlin]", "period[D]", "interval[int64, right]",
        "string", "str", "int64[pyarrow]", "string[pyarrow]", "Sparse[float]", "Sparse[int]", "Sparse[bool]",
    )),
    (pd.ArrowDtype(pa.timestamp("us", "UTC")), "pandas"),
    (pd.ArrowDtype(pa.decimal128(10, 2)), "pandas"),
    (pd.SparseDtype(object, "a"), "pandas"),
    *((pd.Series(values, dtype="category").dtype, "pandas") for values in (
        ["b", "a"], [3, 1], [1.5], [True, False], pd.date_range("2024", periods=2), pd.interval_range(0, 3),
        pd.date_range("2024", periods=2, tz="Europe/Berlin"), pd.period_range("2024-01", periods=2, freq="M"),
        pd.timedelta_range("1h", periods=2),
    )),
    (pd.CategoricalDtype(["x", "y"], ordered=True), "pandas"),
    (pd.CategoricalDtype(), "pandas"),
    *((dtype, "polars") for dtype in (
        pl.String(), pl.Int8(), pl.Boolean(), pl.Categorical(), pl.Enum(["u", "v"]), pl.Datetime("ms", "UTC"),
        pl.Duration("ns"), pl.Date(), pl.Decimal(10, 2),
    )),
    *((dtype, "pyarrow") for dtype in (
        pa.string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()), pa.timestamp("s", "UTC"), pa.int64(),
    )),
]  # fmt: skip


@pytest.mark.parametrize("dtype, library", TYPES, ids=str)
def test_types_of_columns_are_written_as_plain_values(dtype, library):
    written = written_type(dtype, library)
    back = read_type(written)
    assert back == dtype and type(back) is type(dtype)
    if isinstance(dtype, pd.CategoricalDtype):
        assert dtype.categories is None or dtype.categories.dtype == back.categories.dtype


def test_what_is_no_type_is_refused():
    for written in (["pickle", b""], ["polars", "read_csv", {}], ["polars", "nothing", {}]):
        with pytest.raises(ValueError, match="is no"):
            read_type(written)


def test_inverse_of_categories_survives(tmp_path):
    X = pd.DataFrame({"a": pd.Categorical(["u", "v", "u"] * 20, categories=["v", "u", "w"], ordered=True)})
    for encoder in (OneHotEncoder(), MODLEncoder()):
        back = load(save(encoder.fit(X, Y > 1), tmp_path / "model.skops"))
        old = pickle.loads(pickle.dumps(encoder))  # noqa: S301
        if isinstance(encoder, OneHotEncoder):
            want = encoder.inverse_transform(encoder.transform(X))
            pd.testing.assert_frame_equal(back.inverse_transform(back.transform(X)), want)
            pd.testing.assert_frame_equal(old.inverse_transform(old.transform(X)), want)


@pytest.mark.parametrize(
    "values",
    [
        pd.arrays.SparseArray([0.0, 1.0, np.nan] * 20),
        pd.arrays.SparseArray([True, False] * 30),
        pd.arrays.SparseArray(["a", "b"] * 30, dtype=pd.SparseDtype(object, "a")),
        np.arange(60, dtype=">i4"),
        np.arange(60, dtype=">f8"),
    ],
    ids=lambda values: str(values.dtype),
)
def test_inverse_of_rare_types_survives(values, tmp_path):
    X = pd.DataFrame({"a": pd.Series(values)})
    encoder = OneHotEncoder(cols="all").fit(X)
    back = load(save(encoder, tmp_path / "model.skops"))
    for one in (encoder, back):
        pd.testing.assert_frame_equal(one.inverse_transform(one.transform(X)), X)


def test_plain_values_of_options(tmp_path):
    options = {
        "a": {1, 2}, "b": OrderedDict(x=1), "c": {None: 1, 2: 2, 2.5: 3, True: 4}, "d": slice(1, None), "e": (),
        "f": np.array([["a", 1], [None, 2.5]], dtype=object), "g": np.float32(1.5), "h": b"\x00", "i": bytearray(b"a"),
        "j": [float("inf"), 10**30, "\ud800", "\n"], "k": np.dtype("M8[s]"), "l": {np.int64(3): "x"}, "m": np.int64,
    }  # fmt: skip
    options["twice"] = [options["b"], options["b"]]
    back = load(save(FunctionTransformer(kw_args=options), tmp_path / "model.skops")).kw_args
    assert {name: back[name] for name in "abcdeghijklm"} == {name: options[name] for name in "abcdeghijklm"}
    assert back["f"].tolist() == options["f"].tolist() and back["f"].shape == (2, 2)
    assert type(back["b"]) is OrderedDict and back["twice"][0] is back["twice"][1] is back["b"]
    assert [type(key) for key in back["c"]] == [type(key) for key in options["c"]]


def test_what_cannot_be_written_is_a_sentence_and_no_file(tmp_path):
    holds_itself = []
    holds_itself.append(holds_itself)
    path = tmp_path / "model.skops"
    for value in ({("a", 1): 2}, lambda: 1, pd.DataFrame({"a": [1]}), holds_itself, {1: "a", "1": "b"}, iter([1])):
        with pytest.raises(ValueError, match=r"^FunctionTransformer cannot be written to a file without code") as error:
            save(FunctionTransformer(kw_args={"x": value}), path)
        assert "\n" not in str(error.value) and not path.exists()
    for nothing in (1, {"a": 1}, WideRegressor):
        with pytest.raises(ValueError, match="is no estimator; save takes one"):
            save(nothing, path)
    search = GridSearchCV(WideRegressor(interactions=None), {"loss": ["squared_error"]}, cv=2)
    search.fit(pd.DataFrame({"a": list("uv") * 10}), np.arange(20.0))
    with pytest.raises(ValueError, match="holds the results of a search, which files without code do not"):
        save(search, path)
    assert load(save(search.best_estimator_, path)).loss == "squared_error"


@pytest.mark.parametrize("write", [to_spec, to_sql, to_onnx, to_excel])
def test_intervals_of_pandas_cut_are_refused_with_what_to_do(write, tmp_path):
    X = pd.DataFrame({"age": pd.cut(np.arange(60.0), [-1, 20, 40, 60])})
    model = WideRegressor(loss="squared_error").fit(X, Y + (np.arange(60) > 40))
    words = r"Interval\(-1, 20.*astype\(str\)\), or .* numeric={column: \[18, 25, 40\]}"
    with pytest.raises(ValueError, match=words):
        write(model, tmp_path / "a.xlsx") if write is to_excel else write(model)
    as_text = WideRegressor(loss="squared_error").fit(X.astype(str), Y + (np.arange(60) > 40))
    assert "(20, 40]" in to_sql(as_text)


@pytest.mark.slow
def test_views_wide_integers_and_dates_in_what_a_booster_gets():
    """A text view of Arrow, integers of 128 bits of polars; dates are a sentence that names the column."""
    from lightgbm import LGBMClassifier

    y, text = Y > 1, ["u", "v", "w"] * 20
    view = pa.table({"k": pa.array(text).cast(pa.string_view()), "g": ["x", "y"] * 30})
    plain = view.cast(pa.schema([("k", pa.string()), ("g", pa.string())]))
    stack = WideBoostClassifier(random_state=0).fit(view, y)
    np.testing.assert_array_equal(stack.predict_proba(plain), stack.predict_proba(view))
    wide = pl.DataFrame({"k": text, "n": pl.Series(range(60)).cast(pl.Int128)})
    model = AugmentedModel(LGBMClassifier(n_estimators=5, verbose=-1)).fit(wide, y)
    other = AugmentedModel(LGBMClassifier(n_estimators=5, verbose=-1)).fit(wide.cast({"n": pl.Float64}), y)
    np.testing.assert_array_equal(model.predict_proba(wide), other.predict_proba(wide.cast({"n": pl.Float64})))
    dates = pd.DataFrame({"k": text, "day": pd.date_range("2024-01-01", periods=60)})
    with pytest.raises(TypeError, match=r"^Column 'day' holds dates or durations, which LGBMClassifier does not take"):
        AugmentedModel(LGBMClassifier(verbose=-1)).fit(dates, y)


@pytest.mark.parametrize("y", [np.arange(60) % 2, np.arange(60) % 3, np.arange(60.0)], ids=["two", "three", "numbers"])
def test_a_cross_fitted_encoder_of_scikit_learn_comes_back(y, tmp_path):
    X = pd.DataFrame({"a": list("uvwxyz") * 10, "b": list("pq") * 30})
    model = CrossFit(TargetEncoder()).fit(X, y)
    np.testing.assert_array_equal(load(save(model, tmp_path / "x.skops")).transform(X), model.transform(X))


def test_the_part_that_cannot_be_written_is_named(tmp_path):
    X = pd.DataFrame({"a": list("uvwxyz") * 10})
    model = CrossFit(TargetEncoder()).fit(X, np.arange(60) % 2)
    model.encoder_.own_table_ = {"a": pd.Series([1.0])}
    wanted = (
        r"^CrossFit cannot be written .*, as its encoder_\.own_table_\['a'\] is a pandas\.Series .*leave that part out"
    )
    with pytest.raises(ValueError, match=wanted):
        save(model, tmp_path / "x.skops")
    assert not list(tmp_path.iterdir())


def test_a_scorer_reads_rows_as_a_service_has_them():
    """Missing text passes through as it is; and columns of other lengths are told."""
    X = pd.DataFrame({"a": list("xy") * 50, "b": list("uuvv") * 25})
    model = WideRegressor(loss="squared_error", interactions=None).fit(X, np.tile([1.0, 5.0, 4.0, 8.0], 25))
    scorer = from_spec(json.loads(json.dumps(to_spec(model))))
    with pytest.raises(ValueError, match="Column 'b' is of length 1, and the first one of 2"):
        scorer.predict({"a": ["x", "y"], "b": ["u"]})
    T = pd.DataFrame({"a": list("xyx") * 20, "t": ["p", None, "q"] * 20})
    encoder = MODLEncoder(cols=["a"], output="mean").fit(T, np.arange(60.0))
    passed = from_spec(to_spec(encoder)).transform({name: T[name].tolist() for name in T})["t"]
    assert [None if pd.isna(one) else one for one in passed[:3]] == ["p", None, "q"]


def test_encoders_that_take_infinite_numbers_are_not_exported():
    X = pd.DataFrame({"x": [*np.random.default_rng(0).normal(size=98), np.inf, -np.inf]})
    encoder = MODLEncoder(output="mean", handle_infinite="extreme").fit(X, np.arange(100.0))
    for export in (to_spec, to_sql):
        with pytest.raises(ValueError, match="handle_infinite='extreme' takes infinite numbers"):
            export(encoder)
