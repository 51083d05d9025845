"""Column kinds over every frame, and alphabets against the oracle."""

import bisect
import datetime
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabsym import CrossFit, MODLEncoder, OneHotEncoder, TIWSEncoder, WideEncoder
from tabsym.categories import UNSEEN, Categories, encode_columns
from tabsym.categories.coding import interval_codes, keys_of, search_cache
from tabsym.frame import Kind, read_table
from tests.conftest import FRAMES, as_frame
from tests.oracles import online as naive


def test_kinds_are_the_same_in_every_frame(make_frame):
    table = read_table(make_frame({"s": ["u", None], "i": [1, 2], "f": [1.0, None], "b": [True, False]}))
    assert [column.kind for column in table.columns] == [Kind.CATEGORICAL, Kind.NUMERIC, Kind.NUMERIC, Kind.BOOLEAN]
    assert table["f"].values[0] == 1.0
    assert np.isnan(table["f"].values[1])
    assert table["b"].values.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", "int64[pyarrow]", "double[pyarrow]"])
def test_nullable_columns_of_pandas(dtype):
    column = read_table(pd.DataFrame({"n": pd.Series([1, None, 0], dtype=dtype)})).columns[0]
    assert column.kind is (Kind.BOOLEAN if dtype == "boolean" else Kind.NUMERIC)
    np.testing.assert_array_equal(column.values, [1.0, np.nan, 0.0])


def test_dates_are_days():
    days = [datetime.datetime(1970, 1, 2), datetime.datetime(1970, 1, 3, 12), None]
    for frame in (pd.DataFrame({"d": days}), pl.DataFrame({"d": days}), pa.table({"d": days})):
        column = read_table(frame).columns[0]
        assert column.kind is Kind.NUMERIC
        np.testing.assert_array_equal(column.values, [1.0, 2.5, np.nan])
    only = pl.DataFrame({"d": [datetime.date(1970, 1, 3)]})
    assert read_table(only).columns[0].values.tolist() == [2.0]
    zoned = pd.DataFrame({"d": pd.to_datetime(["1970-01-02 02:00+02:00"])})
    assert read_table(zoned).columns[0].values.tolist() == [1.0]


NUMBERS = [2.5, None, -0.25, 2.5, 17.0]
TRUTHS = [True, False, False, True, True]
DAYS = [datetime.date(2024, 2, 29), None, datetime.date(1969, 12, 31), datetime.date(1970, 1, 1), None]


def floats(values):
    return np.array([np.nan if one is None else one for one in values])


def decimals(values, dtype):
    return pa.array([None if one is None else Decimal(str(one)) for one in values], dtype)


def of_arrow(array):
    return pd.Series(pd.array(array, dtype=pd.ArrowDtype(array.type)))


SPARSE = pd.arrays.SparseArray
RARE_TYPES = {
    "decimal256": (NUMBERS, lambda values: decimals(values, pa.decimal256(50, 2))),
    "decimal256 in pandas": (NUMBERS, lambda values: of_arrow(decimals(values, pa.decimal256(50, 2)))),
    "big-endian floats": (NUMBERS, lambda values: pd.Series(floats(values).astype(">f8"))),
    "sparse floats": (NUMBERS, lambda values: pd.Series(SPARSE(floats(values)))),
    "sparse booleans": (TRUTHS, lambda values: pd.Series(SPARSE(values))),
    "date64": (DAYS, lambda values: pa.array(values, pa.date64())),
    "date64 in pandas": (DAYS, lambda values: of_arrow(pa.array(values, pa.date64()))),
    **{
        name: (NUMBERS, lambda values, name=name: decimals(values, getattr(pa, name)(5, 2)))
        for name in ("decimal32", "decimal64")
        if hasattr(pa, name)  # pyarrow 19 on
    },
}


def table_of(values):
    return read_table(pa.table({"x": values}) if isinstance(values, pa.Array) else pd.DataFrame({"x": values}))


@pytest.mark.parametrize("times", [1, 30])
@pytest.mark.parametrize(("plain", "make"), RARE_TYPES.values(), ids=RARE_TYPES)
def test_columns_of_rare_types_are_those_of_plain_types(plain, make, times):
    column, wanted = (table_of(values).columns[0] for values in (make(plain * times), pd.Series(plain * times)))
    assert (column.kind, column.measure) == (wanted.kind, wanted.measure)
    np.testing.assert_array_equal(column.values, wanted.values)
    raw = encode_columns([column])[0]
    assert [None if code < 0 else raw.categories[code] for code in raw.codes.tolist()] == plain * times


TEXTS = ["b", None, "a", "b", "é"]
VIEWS = {
    "views": (TEXTS, lambda values: pa.array(values, pa.string_view())),
    "views in pandas": (TEXTS, lambda values: of_arrow(pa.array(values, pa.string_view()))),
    "views of bytes": ([b"b", None, b"a"], lambda values: of_arrow(pa.array(values, pa.binary_view()))),
}


@pytest.mark.parametrize(("plain", "make"), (RARE_TYPES | VIEWS).values(), ids=RARE_TYPES | VIEWS)
def test_rows_of_columns_of_rare_types_are_those_of_plain_types(plain, make):
    rows = np.array([2, 0, 1, 0])
    (column,) = table_of(make(plain)).taken(rows).columns
    raw = encode_columns([column])[0]
    assert [None if code < 0 else raw.categories[code] for code in raw.codes.tolist()] == [plain[row] for row in rows]
    if column.kind is not Kind.CATEGORICAL:
        wanted = table_of(pd.Series(plain)).columns[0].values[rows]
        np.testing.assert_array_equal(column.values, wanted)


def test_decimals_of_arrow_are_the_nearest_floats():
    """As text and every other library reads them: Arrow's cast is off by a bit in a seventh of all prices."""
    prices = [Decimal(cents) / 100 for cents in range(-3000, 3000)]
    wanted = [float(price) for price in prices]
    array = pa.array(prices, pa.decimal128(18, 2))
    for frame in (pa.table({"x": array}), pa.table({"x": pa.chunked_array([array[:7], array[7:]])})):
        assert read_table(frame)["x"].values.tolist() == wanted
    assert read_table(pd.DataFrame({"x": of_arrow(array)}))["x"].values.tolist() == wanted


def test_arrays_get_names_and_object_arrays_their_kinds():
    table = read_table(np.array([["u", 1.5], ["v", 2.5]], dtype=object))
    assert table.names == ["x0", "x1"]
    assert [column.kind for column in table.columns] == [Kind.CATEGORICAL, Kind.NUMERIC]


categories = st.lists(st.one_of(st.none(), st.sampled_from(["a", "b", "ä", "", "a b", "Z"])), max_size=40)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(categories, categories, st.sampled_from(FRAMES))
def test_alphabets_equal_the_oracle_in_every_frame(fit, later, kind):
    if not fit or not any(fit):
        return

    def raw(values):
        frame = as_frame({"a": values}, kind)
        return encode_columns(read_table(frame, allow_empty=True).columns)[0]

    vocabulary, codes = Categories.fit("a", raw(fit))
    want, want_symbols = naive.factorize(fit)
    assert vocabulary.inverse(codes).tolist() == fit
    assert set(vocabulary.categories) == set(want_symbols)
    if kind != "pandas-category":
        assert codes.tolist() == want
        assert vocabulary.categories.tolist() == want_symbols
    if not any(later):
        return
    seen = vocabulary.transform(raw(later))
    for value, code in zip(later, seen.tolist(), strict=True):
        assert code == (vocabulary.categories.tolist().index(value) if value in want_symbols else UNSEEN)
    grown, codes = vocabulary.grow(raw(later))
    assert grown.categories[: len(vocabulary)].tolist() == vocabulary.categories.tolist()
    assert grown.inverse(codes).tolist() == later
    assert len(set(grown.categories.tolist())) == len(grown)


def test_all_kinds_of_missing_are_one_code():
    values = pd.Series(["u", None, np.nan, pd.NA, "v"], dtype=object)
    raw = encode_columns(read_table(pd.DataFrame({"a": values})).columns)[0]
    assert raw.codes.tolist() == [0, -1, -1, -1, 1]


NOON = datetime.datetime(2024, 3, 1, 12, tzinfo=datetime.UTC)
SAME = {
    "numbers": [2, 2.0, Decimal(2), Decimal("2.00")],
    "fractions": [0.25, Decimal("0.25"), Decimal("0.2500")],
    "durations": [datetime.timedelta(1, 5), pd.Timedelta(days=1, seconds=5), pd.Timedelta("1D 5s").as_unit("ns")],
    "dates": [datetime.date(2024, 3, 1), datetime.datetime(2024, 3, 1), pd.Timestamp("2024-03-01")],
    "moments": [NOON, NOON.astimezone(datetime.timezone(datetime.timedelta(hours=5))),
                pd.Timestamp(NOON).tz_convert("Europe/Berlin")],
}  # fmt: skip


def test_equal_categories_have_one_key():
    """Which rows are held out goes by keys: the same for a table in every library and time zone."""
    found = {name: set(keys_of(values).tolist()) for name, values in SAME.items()}
    assert {name: len(keys) for name, keys in found.items()} == dict.fromkeys(SAME, 1)
    assert len(set.union(*found.values())) == len(SAME)


def test_declared_categories_that_never_occur_have_no_code():
    column = pd.Categorical(["b", "b"], categories=["a", "b", "c"])
    for frame in (pd.DataFrame({"a": column}), pa.table({"a": pa.array(column)})):
        raw = encode_columns(read_table(frame).columns)[0]
        assert raw.categories.tolist() == ["b"]
        assert raw.codes.tolist() == [0, 0]


def test_threads_change_nothing():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"c{j}": rng.choice(list("uvwxyz"), 120_000) for j in range(4)})
    columns = read_table(frame).columns
    for one, two in zip(encode_columns(columns, 1), encode_columns(columns, 2), strict=True):
        assert (one.codes == two.codes).all()
        assert one.categories.tolist() == two.categories.tolist()


@pytest.mark.parametrize("index", [pa.uint8(), pa.int8(), pa.int64()])
def test_arrow_dictionaries_of_any_index_and_with_missing_as_a_member(index):
    dictionaries = {
        "plain": pa.array(["b", None, "a", "b"]).dictionary_encode().cast(pa.dictionary(index, pa.string())),
        "null inside": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0], index), pa.array(["b", None, "a"])),
        "unused": pa.DictionaryArray.from_arrays(pa.array([2, None, 0, 2], index), pa.array(["a", "never", "b"])),
    }
    for name, array in dictionaries.items():
        [raw] = encode_columns(read_table(pa.table({"s": array})).columns)
        vocabulary, codes = Categories.fit("s", raw)
        assert sorted(vocabulary.categories[:2]) == ["a", "b"], name
        assert vocabulary.inverse(codes).tolist() == ["b", None, "a", "b"], name


@pytest.mark.parametrize(
    "estimator", [OneHotEncoder(), MODLEncoder(), WideEncoder(), TIWSEncoder(), CrossFit(MODLEncoder())]
)
def test_streams_are_refused_in_a_sentence_where_a_table_is_needed(estimator):
    table = pa.table({"a": list("abcabc")})
    y = [0, 1, 0, 1, 0, 1]
    streams = {"generator": (one for one in [table]), "InMemoryDataset": pa.dataset.dataset(table)}
    for name, stream in streams.items():
        with pytest.raises(TypeError, match=rf"takes a table, and got a stream \({name}\): pass a frame"):
            estimator.fit_transform(stream, y)
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    with pytest.raises(TypeError, match="got a stream"):
        estimator.fit(reader, y)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats(-60_000, 60_000, width=16), max_size=40, unique=True),
    st.lists(st.one_of(st.floats(width=16), st.integers(-9, 9).map(float)), max_size=40),
    st.integers(0, 3),
)
@pytest.mark.slow
def test_intervals_are_right_closed_and_nan_is_missing(bounds, values, first):
    bounds = sorted(bounds)
    wanted = [-7 if math.isnan(value) else first + bisect.bisect_left(bounds, value) for value in values + bounds]
    found = interval_codes(search_cache(np.array(bounds)), np.array(values + bounds), missing=-7, first=first)
    assert found.tolist() == wanted
    assert found.dtype == np.int32


@pytest.mark.parametrize("n_bounds", [0, 1, 15, 16, 17, 255, 256, 257, 289, 1000, 5000])
def test_intervals_of_many_bounds(n_bounds):
    bounds = np.arange(n_bounds, dtype=np.float64)
    values = np.concatenate([bounds, bounds + 0.5, [-np.inf, np.inf, np.nan]])
    wanted = np.concatenate([np.arange(n_bounds), np.arange(n_bounds) + 1, [0, n_bounds, -1]])
    np.testing.assert_array_equal(interval_codes(search_cache(bounds), values, missing=-1), wanted)


@pytest.mark.parametrize("n", [8, 300])
def test_categories_of_an_enum_are_in_the_order_that_the_user_gave(n):
    values = [["s", None, "r", "t"][i % 4] for i in range(n)]
    kinds = ["t", "unused", "r", "s"]
    enums = pl.DataFrame({"c": pl.Series(values, dtype=pl.Enum(kinds))})
    categories = pd.DataFrame({"c": pd.Categorical(values, categories=kinds)})
    for frame in (enums, categories):
        (raw,) = encode_columns([read_table(frame, caller="test")["c"]])
        assert raw.categories.tolist() == ["t", "r", "s"]
        assert [raw.categories[code] if code >= 0 else None for code in raw.codes] == values


@pytest.mark.parametrize("kind", [pd.Series, pl.Series])
def test_a_series_is_a_column_called_as_it_is_and_without_a_name_as_columns_of_arrays_are(kind):
    unnamed = kind(["u", "v"])
    named, unnamed = read_table(unnamed.rename("size")), read_table(unnamed)
    assert (named.names, named.named) == (["size"], True)
    assert (unnamed.names, unnamed.named) == (["x0"], False)
    array = read_table(np.array([["u"], ["v"]], dtype=object))
    assert (array.names, array.named) == (["x0"], False)
    assert unnamed.columns[0].series.to_list() == named.columns[0].series.to_list() == ["u", "v"]
