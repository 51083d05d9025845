"""A few rows take another road than many: the same answers, of every frame, at a cost that does not grow."""

import copy
import datetime
import pickle
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabsym import MODLEncoder, WideRegressor, WideSGDRegressor
from tabsym.categories import UNSEEN, Categories, RawCodes, encode_columns
from tabsym.categories.coding import FEW
from tabsym.encoders import NativeCategories
from tabsym.frame import Column, Kind, match_features, read_table, remember_features
from tests.conftest import FRAMES, as_frame

MOMENT = datetime.datetime(2020, 1, 2, 3, 4, 5)
VALUES = {
    "text": st.sampled_from(["a", "b", "ä", "", "a b", "Z"]),
    "floats": st.sampled_from([0.0, -0.0, 1.5, float("nan"), 1e300]),
    "integers": st.integers(-3, 3),
    "flags": st.booleans(),
    "moments": st.sampled_from([MOMENT, MOMENT.replace(year=1960), MOMENT.replace(microsecond=7)]),
    "days": st.sampled_from([MOMENT.date(), datetime.date(1960, 2, 29)]),
}
EXTRA = ["polars-categorical", "polars-enum", "pyarrow-dictionary", "pandas-pyarrow"]


def rows_of(kind_of_values):
    return st.lists(st.one_of(st.none(), VALUES[kind_of_values]), min_size=1, max_size=8)


def frame_of(values, kind):
    if kind == "polars-categorical":
        return pl.DataFrame({"a": pl.Series(values, dtype=pl.Categorical)})
    if kind == "polars-enum":
        return pl.DataFrame({"a": pl.Series(values, dtype=pl.Enum(["Z", "a", "b", "ä", "", "a b"]))})
    if kind == "pyarrow-dictionary":
        return pa.table({"a": pa.array(values).dictionary_encode()})
    if kind == "pandas-pyarrow":
        return pa.table({"a": pa.array(values)}).to_pandas(types_mapper=pd.ArrowDtype)
    return as_frame({"a": values}, kind)


def first_rows(frame, n_rows):
    if isinstance(frame, pl.LazyFrame):
        return frame.collect().head(n_rows)
    return frame.slice(0, n_rows) if isinstance(frame, (pl.DataFrame, pa.Table)) else frame.iloc[:n_rows]


def column_of(frame):
    return read_table(frame, allow_empty=True).columns[0]


def raw_of(frame):
    return encode_columns([column_of(frame)])[0]


@settings(deadline=None, max_examples=60)
@given(st.data(), st.sampled_from(list(VALUES)))
def test_a_small_table_is_coded_like_its_rows_in_a_large_one(data, content):
    kind = data.draw(st.sampled_from(FRAMES + (EXTRA if content == "text" else ["pandas-pyarrow"])))
    rows = data.draw(rows_of(content))
    many = frame_of(rows * (FEW // len(rows) + 2), kind)
    few = first_rows(many, len(rows))
    small, large = raw_of(few), raw_of(many)
    assert small.categories.tolist() == large.categories.tolist()
    assert list(map(type, small.categories)) == list(map(type, large.categories))
    assert small.codes.tolist() == large.codes[: len(rows)].tolist()
    assert repr(-0.0) not in map(repr, large.categories)
    fitted, codes = Categories.fit("a", large)
    again, _ = Categories.fit("a", small)
    assert again.categories.tolist() == fitted.categories.tolist()
    assert fitted.transform(small).tolist() == codes[: len(rows)].tolist()
    if content != "text":
        np.testing.assert_array_equal(column_of(few).values, column_of(many).values[: len(rows)])


@settings(deadline=None, max_examples=60)
@given(st.data(), st.sampled_from(FRAMES))
def test_few_symbols_are_looked_up_like_many(data, kind):
    categories = data.draw(st.lists(VALUES["text"], min_size=1, max_size=6))
    vocabulary, _ = Categories.fit("a", raw_of(frame_of([f"s{j}" for j in range(2 * FEW)] + categories, kind)))
    asked = [*dict.fromkeys(categories), "never", *(f"s{j}" for j in range(FEW))]
    few = raw_of(frame_of(asked[:6], kind))
    many = raw_of(frame_of(asked, kind))
    assert len(many.categories) > FEW
    assert vocabulary.transform(few).tolist() == vocabulary.transform(many)[:6].tolist()


def test_wrapped_columns_are_made_only_where_they_are_asked_for(make_frame):
    frame = make_frame({"s": ["u", None], "n": [1.0, None]})
    table = read_table(frame)
    assert [column.name for column in table.columns] == ["s", "n"]
    assert table["s"].series.to_list()[0] == "u"
    other = Column("t", Kind.CATEGORICAL, table["s"].series)
    assert encode_columns([other])[0].categories.tolist() == ["u"]
    assert encode_columns([copy.deepcopy(table["s"]).renamed("z")])[0].categories.tolist() == ["u"]
    assert pickle.loads(pickle.dumps(table["n"])).values[0] == 1.0  # noqa: S301
    with pytest.raises(AttributeError, match="no attribute 'serie'"):
        _ = table["s"].serie


def test_values_of_the_users_memory_cannot_be_written_to():
    frame = pd.DataFrame({"n": [1.0, 2.0], "m": [3.0, 4.0]})
    for one in (frame, pl.DataFrame({"n": [1.0, 2.0]}), pa.table({"n": [1.0, 2.0]})):
        values = read_table(one)["n"].values
        assert values.flags.c_contiguous
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 7.0
    strided = read_table(pd.DataFrame(np.arange(6.0).reshape(3, 2), columns=["n", "m"]))["n"].values
    assert strided.flags.c_contiguous
    assert strided.tolist() == [0.0, 2.0, 4.0]


ALL_MISSING = {
    "object": pd.DataFrame([{"x": None}] * 2),
    "objects of NA": pd.DataFrame({"x": pd.Series([pd.NA, None], dtype=object)}),
    "float": pd.DataFrame({"x": [np.nan, np.nan]}),
    "str": pd.DataFrame({"x": pd.Series([None, None], dtype="str")}),
    "category": pd.DataFrame({"x": pd.Categorical([None, None], categories=["u"])}),
    "no categories": pd.DataFrame({"x": pd.Categorical([None, None])}),
    "Int64": pd.DataFrame({"x": pd.Series([None, None], dtype="Int64")}),
    "boolean": pd.DataFrame({"x": pd.Series([None, None], dtype="boolean")}),
    "NaT": pd.DataFrame({"x": pd.to_datetime([None, None])}),
    "pandas arrow null": pd.DataFrame({"x": pd.Series([None, None], dtype=pd.ArrowDtype(pa.null()))}),
    "polars Null": pl.DataFrame([{"x": None}] * 2),
    "polars String": pl.DataFrame({"x": [None, None]}, schema={"x": pl.String}),
    "polars Enum": pl.DataFrame({"x": [None, None]}, schema={"x": pl.Enum(["u"])}),
    "polars Categorical": pl.DataFrame({"x": [None, None]}, schema={"x": pl.Categorical}),
    "arrow null": pa.table({"x": [None, None]}),
    "arrow dictionary": pa.table({"x": pa.array([None, None], pa.dictionary(pa.int32(), pa.string()))}),
}


@pytest.mark.parametrize("times", [1, FEW])
@pytest.mark.parametrize("name", ALL_MISSING)
def test_missing_values_of_any_type_are_numbers_and_symbols(name, times):
    frame = ALL_MISSING[name]
    many = {"pandas": lambda: pd.concat([frame] * times), "polars": lambda: pl.concat([frame] * times)}
    frame = many.get(type(frame).__module__.split(".")[0], lambda: pa.concat_tables([frame] * times))()
    column = column_of(frame)
    assert np.isnan(column.values).all()
    assert len(column.values) == 2 * times
    [raw] = encode_columns([column])
    assert raw.codes.tolist() == [-1] * (2 * times)
    assert raw.categories.tolist() == []
    with_missing, _ = Categories.fit("x", RawCodes(np.array([0, -1]), np.array(["u"], dtype=object)))
    assert with_missing.transform(raw).tolist() == [1] * (2 * times)


NUMBERS = {
    "a record": (pd.DataFrame([{"x": 1.5, "a": "u"}, {"x": None, "a": "v"}], dtype=object), [1.5, np.nan]),
    "a row": (pd.DataFrame({"x": [1, 2], "f": [1.5, 2.5], "a": ["u", "v"]}).iloc[1].to_frame().T, [2.0]),
    "integers": (pd.DataFrame({"x": pd.Series([1, None, 2], dtype=object)}), [1.0, np.nan, 2.0]),
    "NA": (pd.DataFrame({"x": pd.Series([1, pd.NA, 2.5], dtype=object)}), [1.0, np.nan, 2.5]),
    "decimals": (pd.DataFrame({"x": pd.Series([Decimal("1.5"), None], dtype=object)}), [1.5, np.nan]),
    "flags": (pd.DataFrame({"x": pd.Series([True, None, False], dtype=object)}), [1.0, np.nan, 0.0]),
    "categories": (pd.DataFrame({"x": pd.Categorical([3, None, 1])}), [3.0, np.nan, 1.0]),
    "moments": (pd.DataFrame({"x": pd.Series([pd.Timestamp("1970-01-02"), None], dtype=object)}), [1.0, np.nan]),
    "zones": (pd.DataFrame({"x": pd.Series([pd.Timestamp("1970-01-02 02:00+02:00")], dtype=object)}), [1.0]),
    "days": (pd.DataFrame({"x": pd.Series([datetime.date(1970, 1, 3)], dtype=object)}), [2.0]),
    "durations": (pd.DataFrame({"x": pd.Series([datetime.timedelta(hours=12)], dtype=object)}), [0.5]),
    "a mixture": (pd.DataFrame({"x": pd.Categorical([Fraction(1, 2), True, 2, None])}), [0.5, 1.0, 2.0, np.nan]),
    "arrow dictionary": (pa.table({"x": pa.array([1.5, None]).dictionary_encode()}), [1.5, np.nan]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_any_type_are_read_where_they_are_asked_for(name):
    frame, want = NUMBERS[name]
    np.testing.assert_array_equal(column_of(frame).values, want)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"x": pd.Series([None, "1.5", "abc"], dtype=object)}),
        pd.DataFrame({"x": pd.Series([None, "1.5", "abc"], dtype="str")}),
        pd.DataFrame({"x": pd.Series([None, "1.5", "abc"], dtype="string[python]")}),
        pd.DataFrame({"x": pd.Series([None, "1.5", "abc"], dtype="category")}),
        pl.DataFrame({"x": [None, "1.5", "abc"]}),
        pl.DataFrame({"x": pl.Series([None, "1.5", "abc"], dtype=pl.Categorical)}),
        pa.table({"x": [None, "1.5", "abc"]}),
    ],
)
def test_text_is_never_parsed(frame):
    with pytest.raises(ValueError, match=r"Column 'x' holds text.*such as '1\.5' in row 1.*convert it to numbers"):
        _ = column_of(frame).values


def test_numbers_too_large_are_refused_with_their_row():
    column = column_of(pd.DataFrame({"x": pd.Series([1, None, 10**400], dtype=object)}))
    with pytest.raises(ValueError, match=r"Column 'x'.*in row 2"):
        _ = column.values


FLOATS = [0.0, -0.0, float("nan"), None, 1.0]


def frames_of_floats(values):
    yield pd.DataFrame({"x": pd.Series(values, dtype=float)})
    yield pd.DataFrame({"x": pd.Series(values, dtype=object)})
    yield pd.DataFrame({"x": pd.Series(pa.array(values), dtype=pd.ArrowDtype(pa.float64()))})
    yield pl.DataFrame({"x": values}, strict=False)
    yield pa.table({"x": values})
    yield pa.table({"x": pa.chunked_array([values[:2], values[2:]])})
    dictionary = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None, 3]), pa.array([0.0, -0.0, float("nan"), 1.0]))
    yield pa.table({"x": pa.chunked_array([dictionary] * (len(values) // 5))})


@pytest.mark.parametrize("times", [1, FEW])
@pytest.mark.parametrize("start", [0, 1])
def test_floats_are_the_same_symbols_in_every_frame(times, start):
    values = ([0.0, -0.0] if start == 0 else [-0.0, 0.0]) + FLOATS[2:]
    whole, _ = Categories.fit("x", raw_of(pd.DataFrame({"x": [1, 0]})))
    for frame in frames_of_floats(values * times):
        raw = raw_of(frame)
        assert raw.codes.tolist() == [0, 0, -1, -1, 1] * times
        assert [repr(category) for category in raw.categories] == ["0.0", "1.0"]
        vocabulary, codes = Categories.fit("x", raw)
        assert vocabulary.transform(raw).tolist() == codes.tolist()
        assert vocabulary.transform(raw_of(pd.DataFrame({"x": [1, 0, 2] * times}))).tolist() == [1, 0, UNSEEN] * times
        assert whole.transform(raw).tolist() == [1, 1, UNSEEN, UNSEEN, 0] * times


def test_numbers_of_a_row_of_objects_match_those_of_fit():
    frame = pd.DataFrame({"k": [1, 2], "f": [0.5, 1.5], "b": [True, False], "a": ["u", "v"]})
    row = frame.iloc[1].to_frame().T
    for name in frame.columns:
        vocabulary, codes = Categories.fit(name, encode_columns([read_table(frame)[name]])[0])
        [raw] = encode_columns([read_table(row)[name]])
        assert vocabulary.transform(raw).tolist() == codes[1:].tolist()
        assert {type(category) for category in raw.categories} <= {int, float, bool, str}


def test_moments_match_across_frames():
    frames = [pd.DataFrame({"d": [MOMENT]}), pl.DataFrame({"d": [MOMENT]}), pa.table({"d": [MOMENT]})]
    frames.append(pa.table({"d": pa.array([MOMENT], pa.timestamp("ns"))}))
    for fitted in frames:
        vocabulary, _ = Categories.fit("d", raw_of(fitted))
        for later in frames:
            assert vocabulary.transform(raw_of(later)).tolist() == [0]


@pytest.mark.parametrize("n_rows", [1, 3 * FEW])
def test_categories_that_never_occur_are_never_looked_at(n_rows):
    declared = [f"c{j}" for j in range(20_000)]
    values = (["c19999", "c7", None, "c300"] * n_rows)[:n_rows]
    used = [category for category in ("c7", "c300", "c19999") if category in values]
    frames = [
        pd.DataFrame({"a": pd.Categorical(values, categories=declared)}),
        pa.table({"a": pa.array(pd.Categorical(values, categories=declared))}),
    ]
    for frame in frames:
        raw = raw_of(frame)
        assert raw.categories.tolist() == used
        assert [None if code < 0 else raw.categories[code] for code in raw.codes.tolist()] == values
    raw = raw_of(pl.DataFrame({"a": pl.Series(values, dtype=pl.Enum(declared))}))
    assert sorted(raw.categories) == sorted(used)
    assert [None if code < 0 else raw.categories[code] for code in raw.codes.tolist()] == values


def test_arrow_dictionaries_that_hold_a_symbol_twice():
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0] * 40), pa.array(["u", "v", "u"]))
    for array in (twice, twice[:4]):
        raw = raw_of(pa.table({"a": array}))
        assert raw.categories.tolist() == ["u", "v"]
        assert raw.codes.tolist()[:4] == [0, 1, 0, 0]


def test_alphabets_are_pickled_without_what_they_can_make_again():
    vocabulary, _ = Categories.fit("a", raw_of(pd.DataFrame({"a": [f"s{j}" for j in range(500)]})))
    bare = len(pickle.dumps(vocabulary))
    few, many = (raw_of(pd.DataFrame({"a": [f"s{j}" for j in range(n)]})) for n in (3, 400))
    want = vocabulary.transform(few).tolist(), vocabulary.transform(many).tolist()
    assert len(pickle.dumps(vocabulary)) == bare
    for twin in (pickle.loads(pickle.dumps(vocabulary)), copy.copy(vocabulary), copy.deepcopy(vocabulary)):  # noqa: S301
        assert set(vars(twin)) == {"name", "categories"}
        assert (twin.transform(few).tolist(), twin.transform(many).tolist()) == want


def test_threads_may_share_an_alphabet():
    vocabulary, codes = Categories.fit("a", raw_of(pd.DataFrame({"a": [f"s{j}" for j in range(2000)]})))
    rows = [raw_of(pd.DataFrame({"a": [f"s{j}"]})) for j in range(200)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(vocabulary.transform, rows))
    assert [one.tolist() for one in found] == [[code] for code in codes[:200].tolist()]


def test_renamed_columns_say_their_new_name_in_messages():
    class Fitted:
        pass

    fitted = Fitted()
    remember_features(fitted, read_table(pd.DataFrame({"n": [1.0]})))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        table = match_features(fitted, read_table(np.array([["u"]], dtype=object)))
    with pytest.raises(ValueError, match=r"Column 'n' holds text.*'u' in row 0"):
        _ = table["n"].values


@pytest.mark.parametrize(
    "fitted",
    [
        WideRegressor(),
        WideSGDRegressor(random_state=0, max_iter=3),
        MODLEncoder(output="mean", target_type="continuous", cv=None),
        NativeCategories(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_numbers_of_fit_are_read_as_numbers_whatever_their_type_is_now(fitted):
    frame = pd.DataFrame({"x": [1.0, 2.0, np.nan, 4.0] * 20, "a": ["u", "v", "u", "w"] * 20})
    fitted = fitted.fit(frame, np.arange(80.0))
    use = fitted.transform if hasattr(fitted, "transform") else fitted.predict
    for row in (1, 2):
        want = pd.DataFrame(np.asarray(use(frame.iloc[[row]])))
        x = None if row == 2 else 2.0
        record = {"x": x, "a": frame["a"][row]}
        for one in (
            pd.DataFrame([record]),
            pd.DataFrame([record], dtype=object),
            frame.iloc[row].to_frame().T,
            pl.DataFrame([record]),
            pa.Table.from_pylist([record]),
        ):
            pd.testing.assert_frame_equal(pd.DataFrame(np.asarray(use(one))), want, check_dtype=False)
    with pytest.raises(ValueError, match="Column 'x' holds text where numbers are needed"):
        use(pd.DataFrame([{"x": "2.0", "a": "u"}]))
