"""OneHotEncoder back to the table: symbols, and the types they had in fit."""

import datetime
import itertools
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tabsym import OneHotEncoder
from tabsym.frame import read_table, restored, type_of

MOMENTS = [datetime.datetime(2024, 3, 31, 1, 30, 0, 123456), datetime.datetime(2020, 1, 1), None]
DAYS = [datetime.date(2024, 2, 29), None, datetime.date(1969, 7, 20)]
PANDAS = {
    "object": pd.Series(["a", "b", None], dtype=object),
    "str": pd.Series(["a", None, "b"], dtype="str"),
    "string": pd.Series(["a", None, "b"], dtype="string"),
    "ordered": pd.Series(["a", "b", None], dtype=pd.CategoricalDtype(["c", "b", "a"], ordered=True)),
    "category of ints": pd.Series([3, 1, None], dtype=pd.CategoricalDtype([1, 2, 3])),
    "int16": pd.Series([3, 1, 3], dtype="int16"),
    "bool": pd.Series([True, False, True]),
    "Int64": pd.Series([3, 1, None], dtype="Int64"),
    "boolean": pd.Series([True, None, False], dtype="boolean"),
    "float32": pd.Series([1.5, None, 2.5], dtype="float32"),
    "datetime": pd.Series(MOMENTS).astype("datetime64[ms]"),
    "datetime with zone": pd.Series(MOMENTS).dt.tz_localize("America/New_York"),
    "timedelta": pd.Series([datetime.timedelta(1), None, datetime.timedelta(2)]),
    "arrow text": pd.Series(["a", None, "b"], dtype=pd.ArrowDtype(pa.string())),
    "arrow int": pd.Series([3, None, 1], dtype=pd.ArrowDtype(pa.int32())),
    "arrow zone": pd.Series(MOMENTS, dtype=pd.ArrowDtype(pa.timestamp("us", "Europe/Paris"))),
    "arrow date": pd.Series(DAYS, dtype=pd.ArrowDtype(pa.date32())),
}
POLARS = {
    "String": pl.Series(["a", None, "b"]),
    "Categorical": pl.Series(["a", None, "b"], dtype=pl.Categorical),
    "Enum": pl.Series(["a", None, "b"], dtype=pl.Enum(["c", "b", "a"])),
    "UInt8": pl.Series([3, None, 1], dtype=pl.UInt8),
    "Boolean": pl.Series([True, None, False]),
    "Date": pl.Series(DAYS),
    "Datetime": pl.Series(MOMENTS, dtype=pl.Datetime("ms")),
    "zone": pl.Series(MOMENTS, dtype=pl.Datetime("us")).dt.replace_time_zone("America/New_York"),
    "Duration": pl.Series([datetime.timedelta(1), None, datetime.timedelta(2)]),
}
ARROW = {
    "string": pa.array(["a", None, "b"]),
    "dictionary": pa.array(["a", None, "b"]).dictionary_encode(),
    "int8": pa.array([3, None, 1], pa.int8()),
    "zone": pa.array(MOMENTS, pa.timestamp("ms", "Europe/Paris")),
    "date": pa.array(DAYS, pa.date32()),
}


def assert_same(back, frame):
    if isinstance(frame, pd.DataFrame):
        pd.testing.assert_frame_equal(back, frame)
    elif isinstance(frame, pl.DataFrame):
        assert back.schema == frame.schema
        assert back.equals(frame, null_equal=True)
    else:
        assert back.schema == frame.schema
        assert back.to_pylist() == frame.to_pylist()


FRAMES = [
    *(pytest.param(series.to_frame("x"), id=f"pandas {name}") for name, series in PANDAS.items()),
    *(pytest.param(series.to_frame("x"), id=f"polars {name}") for name, series in POLARS.items()),
    *(pytest.param(pa.table({"x": array}), id=f"pyarrow {name}") for name, array in ARROW.items()),
]


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("sparse_output", [False, True])
def test_symbols_come_back_in_the_type_of_fit(frame, sparse_output):
    encoder = OneHotEncoder(cols=["x"], sparse_output=sparse_output).fit(frame)
    encoder = pickle.loads(pickle.dumps(encoder))  # noqa: S301
    assert_same(encoder.inverse_transform(encoder.transform(frame)), frame)


@pytest.mark.parametrize("frame", FRAMES)
def test_untouched_columns_keep_their_type(frame):
    if isinstance(frame, pd.DataFrame):
        frame = frame.assign(y=["u", "v", "u"]).set_index(pd.Index([7, 3, 5], name="key"))
    elif isinstance(frame, pl.DataFrame):
        frame = frame.with_columns(y=pl.Series(["u", "v", "u"]))
    else:
        frame = frame.append_column("y", pa.array(["u", "v", "u"]))
    encoder = OneHotEncoder(cols=["y"]).fit(frame)
    assert_same(encoder.inverse_transform(encoder.transform(frame)), frame)


def test_numbers_of_a_sparse_matrix_get_their_type():
    tables = {name: read_table(series.to_frame("x")) for name, series in PANDAS.items()}
    frame = pd.DataFrame({name: PANDAS[name] for name, table in tables.items() if table["x"].kind != "symbolic"})
    assert len(frame.columns) >= 8
    encoder = OneHotEncoder(sparse_output=True).fit(frame)
    pd.testing.assert_frame_equal(encoder.inverse_transform(encoder.transform(frame)), frame)


def test_missing_where_the_type_has_none():
    frame = pd.DataFrame({"i": [1, 2], "b": [True, False]})
    encoder = OneHotEncoder(cols=["i", "b"]).fit(frame)
    back = encoder.inverse_transform(np.array([[0, 1, 0, 0], [0, 0, 1, 0]]))
    assert back["i"].tolist()[0] == 2
    assert np.isnan(back["i"][1])
    assert back["b"].tolist() == [None, True]


def test_an_encoding_in_another_kind_of_frame():
    encoder = OneHotEncoder().fit(pl.DataFrame({"x": ["a", "b"]}))
    back = encoder.inverse_transform(pd.DataFrame({"x_1": [0, 1], "x_2": [1, 0]}))
    assert isinstance(back, pd.DataFrame)
    assert back["x"].tolist() == ["b", "a"]


def test_objects_of_dates_come_back_of_days():
    for value in (datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2, 3), pd.Timestamp("2024-01-02 03:00")):
        column = read_table(pd.DataFrame({"x": pd.Series([value, None], dtype=object)}))["x"]
        back = restored(np.asarray(column.values), type_of(column), "pandas")
        assert back.dtype == object
        assert back[0] == value
        assert isinstance(back[0], datetime.datetime) is isinstance(value, datetime.datetime)
        assert pd.isna(back[1])


CATEGORIES = 4_000
ROWS = pd.DataFrame({"a": [f"s{i:04d}" for i in range(CATEGORIES)] * 3, "n": 1.5})
ROWS["a"] = ROWS["a"].astype(object)


HANDLINGS = list(
    itertools.product(*(OneHotEncoder._allowed_options[name] for name in ("handle_unknown", "handle_missing")))
)


@pytest.mark.filterwarnings("ignore:Found unknown")
@pytest.mark.parametrize(("handle_unknown", "handle_missing"), HANDLINGS[::3])
@pytest.mark.slow
def test_sparse_never_becomes_dense(handle_unknown, handle_missing):
    """Dense, this is 384 MB; one row of NaN is 48 kB."""
    odd = ROWS.copy()
    if handle_unknown != "error":
        odd.loc[5, "a"] = "new"
    if handle_missing != "error":
        odd.loc[9, "a"] = None
    options = {"handle_missing": handle_missing, "handle_unknown": handle_unknown, "sparse_output": True}
    encoder = OneHotEncoder(**options).fit(ROWS)
    encoder.inverse_transform(encoder.transform(odd))
    tracemalloc.start()
    try:
        OneHotEncoder(drop_invariant=True, **options).fit_transform(ROWS)
        out = encoder.fit(ROWS).transform(odd)
        back = encoder.inverse_transform(out)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12e6
    assert out.shape == (len(odd), len(encoder.get_feature_names_out()))
    nans = np.isnan(out[:, :CATEGORIES].toarray()[[5, 9]]).all(axis=1).tolist()
    assert nans == [handle_unknown == "return_nan", handle_missing == "return_nan"]
    assert back["a"].drop([5, 9]).tolist() == odd["a"].drop([5, 9]).tolist()
    assert back["n"].tolist() == odd["n"].tolist()


def test_too_many_rows_of_nan_are_refused():
    encoder = OneHotEncoder(sparse_output=True, handle_unknown="return_nan").fit(ROWS)
    with pytest.raises(ValueError, match=r"would take 24,000,000 .* column 'a' \(6,000 rows, 4,000 output"):
        encoder.transform(ROWS.assign(a=["new", "s0000"] * 6_000))


def test_the_greatest_of_several_is_the_symbol_in_both_kinds():
    from scipy import sparse

    encoder = OneHotEncoder().fit(pd.DataFrame({"x": ["a", "b", "c"]}))
    soft = np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.1], [0.0, -1.0, 0.0], [np.nan, np.nan, np.nan], [0, 0, 0.1]])
    for encoding in (soft, sparse.csr_array(soft), sparse.coo_matrix(soft), sparse.csc_array(soft)):
        back = encoder.inverse_transform(encoding)["x"]
        assert [None if pd.isna(one) else one for one in back] == ["b", "a", None, None, "c"]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_rows_of_nan_that_could_be_missing_or_unknown(frame, recwarn):
    X, new = frame({"a": ["x", None], "b": ["p", "q"]}), frame({"a": ["x", "y"], "b": ["p", "q"]})
    both = OneHotEncoder(handle_missing="return_nan", handle_unknown="return_nan").fit(X)
    with pytest.warns(UserWarning, match="Rows of NaN in the encoding of column 'a' were missing or unknown") as caught:
        back = both.inverse_transform(both.transform(new))
    assert caught[0].filename == __file__
    assert_same(back, X)
    recwarn.clear()
    both.inverse_transform(both.transform(new[:1]))
    for options in ({"handle_missing": "return_nan"}, {"handle_unknown": "return_nan"}):
        one = OneHotEncoder(**options).fit(X)
        one.inverse_transform(one.transform(X))
    assert not recwarn.list


@pytest.mark.parametrize("options", [{}, {"return_df": False}, {"sparse_output": True}])
def test_columns_of_one_category_that_was_dropped(options):
    X = pd.DataFrame({"c": ["a", "a", "a"], "d": pd.Categorical([2, 2, 2])}, index=[7, 8, 9])
    encoder = OneHotEncoder(drop="first", **options).fit(X)
    encoded = encoder.transform(X)
    assert encoded.shape == (3, 0)
    back = encoder.inverse_transform(encoded)
    if options:
        np.testing.assert_array_equal(np.asarray(back), X.to_numpy())
    else:
        pd.testing.assert_frame_equal(back, X)
    with pytest.raises(ValueError, match="transform makes no columns"):
        OneHotEncoder(drop="first").fit(X).inverse_transform(X)


@pytest.mark.parametrize("frame", [pl.DataFrame, pa.table])
def test_a_frame_without_columns_has_no_rows_in_some_libraries(frame):
    X = frame({"c": ["a", "a"]})
    encoder = OneHotEncoder(drop="first").fit(X)
    with pytest.raises(ValueError, match="without columns has no rows; encode with return_df=False"):
        encoder.inverse_transform(encoder.transform(X))
    kept = OneHotEncoder(drop="first", return_df=False).fit(X)
    assert kept.inverse_transform(kept.transform(X)).tolist() == [["a"], ["a"]]
