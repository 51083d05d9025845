"""What `NativeCategories` takes a column for: the same whatever type carries it, or one sentence."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

from tabsym import OneHotEncoder
from tabsym.encoders import NativeCategories

DAYS = [datetime.date(2024, 1, 1), datetime.date(2024, 1, 3)]


def objects(values):
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def of_objects(values):
    return pd.DataFrame({"c": pd.Series(objects(values), dtype=object)})


def of_categories(values):
    return pd.DataFrame({"c": pd.Categorical(objects(values))})


def in_polars(values):
    return pl.DataFrame({"c": pl.Series(values, dtype=pl.Object)})


def in_array(values):
    return objects(values)[:, None]


OBJECTS = [of_objects, in_polars, in_array]


def read(fitted, frame):
    """The values that a booster gets: levels as they are called, numbers as they are, None for missing."""
    column = fitted.transform(frame)["f0"]
    return [None if pd.isna(value) else value for value in column.tolist()]


# -- what has an obvious meaning --------------------------------------------------------------------------

NUMBERS = {
    "whole": ([1, 2, None], [1.0, 2.0, None]),
    "whole and not": ([1, 2.5, None], [1.0, 2.5, None]),
    "of numpy": ([np.int8(1), np.float32(2.5), float("nan")], [1.0, 2.5, None]),
    "decimals": ([Decimal("1.5"), Decimal("2"), None], [1.5, 2.0, None]),
    "decimals and others": ([Decimal("1.5"), 2, 0.5], [1.5, 2.0, 0.5]),
    "fractions": ([Fraction(1, 2), None, 1], [0.5, None, 1.0]),
    "beyond 64 bits": ([10**30, 1, None], [1e30, 1.0, None]),
    "booleans": ([True, False, None], [1.0, 0.0, None]),
    "booleans of numpy": ([np.True_, pd.NA, np.False_], [1.0, None, 0.0]),
    "beside NaT": ([1, pd.NaT, 2], [1.0, None, 2.0]),
    "booleans beside NaT": ([True, pd.NaT, False], [1.0, None, 0.0]),
    "dates": ([*DAYS, None], [19723.0, 19725.0, None]),
    "durations": ([datetime.timedelta(hours=12), None, pd.NaT], [0.5, None, None]),
}


@pytest.mark.parametrize(("values", "numbers"), NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("make", OBJECTS)
def test_objects_that_are_numbers_are_numbers(make, values, numbers):
    fitted = NativeCategories().fit(make(values))
    assert fitted.categorical_ == []
    for frame in (make(values), *([pd.DataFrame({"c": numbers})] if make is not in_array else [])):
        if "d" not in type(values[0]).__name__:  # dates and durations are no numbers (below)
            assert read(fitted, frame) == numbers
    assert read(fitted, make(values)) == numbers


CATEGORIES = {
    "text": ["u", "v", "u", None],
    "bytes": [b"u", b"\xff", b"u", None],
    "times": [datetime.time(1), datetime.time(2), datetime.time(1), None],
    "text beside NaT": ["u", "v", "u", pd.NaT],
    "periods": [pd.Period("2024-01"), pd.Period("2024-02"), pd.Period("2024-01"), None],
}


@pytest.mark.parametrize("values", CATEGORIES.values(), ids=CATEGORIES)
@pytest.mark.parametrize("fit", [*OBJECTS[:2], of_categories])
@pytest.mark.parametrize("now", [*OBJECTS[:2], of_categories])
def test_objects_that_are_symbols_are_symbols(fit, now, values):
    fitted = NativeCategories().fit(fit(values))
    assert fitted.categorical_ == ["f0"]
    assert read(fitted, now(values)) == ["c0", "c1", "c0", None]


@pytest.mark.parametrize("times", [1, 100], ids=["few rows", "many"])
def test_bytes_are_symbols_in_every_library(times):
    values = [b"u", b"v", None, b"u"] * times
    arrow = pa.array(values, pa.binary(1))
    frames = [
        of_objects(values),
        in_polars(values),
        pl.DataFrame({"c": pl.Series(values, dtype=pl.Binary)}),
        pa.table({"c": arrow}),
        *(pa.table({"c": arrow.cast(pa.binary()).cast(kind)}) for kind in (pa.binary(), pa.large_binary())),
        pa.table({"c": pa.array(values, pa.binary_view())}),
        pd.DataFrame({"c": pd.array(values, dtype=pd.ArrowDtype(pa.binary()))}),
        of_categories(values),
    ]
    for frame in frames:
        fitted = NativeCategories(output="text").fit(frame)
        for now in frames:
            assert read(fitted, now) == ["b'u'", "b'v'", "(missing)", "b'u'"] * times


@pytest.mark.parametrize("times", [1, 100], ids=["few rows", "many"])
def test_numbers_of_every_library_are_one(times):
    values = [1, 2, None, 1] * times
    decimals = [None if value is None else Decimal(value) for value in values]
    frames = [
        pd.DataFrame({"c": values}),
        of_objects(values),
        of_objects(decimals),
        in_polars(decimals),
        pd.DataFrame({"c": pd.array(values, dtype="Int64")}),
        pd.DataFrame({"c": pd.arrays.SparseArray([1.0, 2.0, np.nan, 1.0] * times)}),
        *(pl.DataFrame({"c": pl.Series(values, dtype=kind)}) for kind in (pl.UInt8, pl.Int128, pl.Float32)),
        pl.DataFrame({"c": pl.Series(decimals, dtype=pl.Decimal(10, 2))}),
        pa.table({"c": pa.array(decimals, pa.decimal256(50, 2))}),
        pd.DataFrame({"c": pd.array(decimals, dtype=pd.ArrowDtype(pa.decimal256(50, 2)))}),
        pa.table({"c": pa.array(values, pa.int8())}),
    ]
    for frame in frames:
        fitted = NativeCategories().fit(frame)
        for now in [*frames, of_categories(values), pa.table({"c": pa.array(values).dictionary_encode()})]:
            assert read(fitted, now) == [1.0, 2.0, None, 1.0] * times


def test_categories_of_numbers_are_symbols_because_their_type_says_so():
    fitted = NativeCategories().fit(of_categories([1, 2, None]))
    for now in (of_objects([2, None, 3]), pd.DataFrame({"c": [2.0, np.nan, 3.0]}), of_categories([2, None, 3])):
        assert read(fitted, now) == ["c1", None, None]


def test_rows_of_lists_keep_their_numbers():
    """numpy makes text of the numbers in rows of text and numbers."""
    fitted = NativeCategories().fit([["u", 1], ["v", 2.5], ["u", 4]])
    assert fitted.categorical_ == ["f0"]
    np.testing.assert_array_equal(fitted.transform([["v", 3]])["f1"], [3.0])
    with pytest.warns(UserWarning, match="fitted without feature names"):
        assert fitted.transform(pd.DataFrame({"a": ["v"], "n": [3]})).to_numpy().tolist() == [["c1", 3.0]]


def test_levels_are_in_the_order_of_the_rows_in_every_type():
    values = ["w", "u", None, "v", "u"]
    dictionary = pa.DictionaryArray.from_arrays(pa.array([2, 0, None, 1, 0]), pa.array(["u", "v", "w"]))
    for frame in (
        of_objects(values),
        of_categories(values),
        pl.DataFrame({"c": pl.Series(values, dtype=pl.Enum(["u", "v", "w"]))}),
        pa.table({"c": dictionary}),
    ):
        for most, levels in ((None, ["c0", "c1", None, "c2", "c1"]), (2, ["c1", "c0", None, "c1", "c0"])):
            fitted = NativeCategories(max_levels=most).fit(frame)
            assert read(fitted, frame) == levels


def test_encoders_read_objects_as_symbols_all_the_same():
    """category_encoders' contract: what is told here is of the native boosters only."""
    assert OneHotEncoder().fit_transform(of_objects([1, 2, 1])).shape == (3, 2)
    with pytest.raises(TypeError, match="Column 'c' has the type Binary"):
        OneHotEncoder().fit(pl.DataFrame({"c": [b"u"]}))


# -- what has none ----------------------------------------------------------------------------------------

MIXTURES = {
    "text and numbers": (["u", 1.5], r"mixes types: 'u' is str and 1.5 is float.*astype\(str\)"),
    "text and bytes": (["u", b"u"], r"mixes types: 'u' is str and b'u' is bytes.*astype\(str\)"),
    "text and booleans": (["u", True], r"mixes types: 'u' is str and True is bool.*astype\(str\)"),
    "numbers and booleans": ([2, True], r"mixes types: 2 is int and True is bool.*astype\(str\)"),
    "tuples": ([(1, 2), None], r"holds nested values \(such as \(1, 2\)\).*turn each value into one"),
    "dicts": ([{"k": 1}, None], r"holds nested values \(such as \{'k': 1\}\).*turn each value into one"),
    "text and tuples": (["u", (1, 2)], r"holds nested values \(such as \(1, 2\)\).*turn each value into one"),
}


@pytest.mark.parametrize(("values", "words"), MIXTURES.values(), ids=MIXTURES)
@pytest.mark.parametrize("make", OBJECTS[:2])
def test_mixtures_are_refused(make, values, words):
    with pytest.raises(TypeError, match=f"^Column 'c' {words}"):
        NativeCategories().fit(make([*values, None, float("nan")]))
    fitted = NativeCategories().fit(make(["u", "v"]))
    with pytest.raises(TypeError, match=f"^Column 'c' {words}"):
        fitted.transform(make(values))


@pytest.mark.parametrize("late", [2.5, 2, True, b"u", (1, 2)])
def test_mixtures_are_seen_far_down(late):
    """`read_table` looks at the first objects only; the late ones became symbols without a word."""
    frame = of_objects([*["u", "v"] * 500, late])
    with pytest.raises(TypeError, match=r"^Column 'c' (mixes types: 'u' is str and|holds nested values)"):
        NativeCategories().fit(frame)
    with pytest.raises(TypeError, match=r"^Column 'c' (mixes types: 'u' is str and|holds nested values)"):
        NativeCategories().fit(of_objects(["u", "v"])).transform(frame)


@pytest.mark.parametrize("values", [["u", 1], [(1, 2), "u", 0.5], [1, "1"], [b"u", "u"]])
def test_mixtures_in_categories_are_refused(values):
    """As text, CatBoost would take 1 and "1" for one symbol."""
    with pytest.raises(TypeError, match=r"^Column 'c' (mixes types|holds nested values)"):
        NativeCategories().fit(of_categories(values))
    assert read(NativeCategories().fit(of_categories([1, 2.5])), of_categories([2.5, 1])) == ["c1", "c0"]


def test_another_meaning_than_in_fit_is_refused():
    numbers, categories = NativeCategories().fit(of_objects([1, 2])), NativeCategories().fit(of_objects(["1", "2"]))
    with pytest.raises(ValueError, match="Column 'c' holds text where numbers are needed"):
        numbers.transform(of_objects(["1", "2"]))
    for make in (of_objects, in_polars, of_categories):
        with pytest.raises(TypeError, match=r"Column 'c' held text in fit and holds numbers now.*convert it"):
            categories.transform(make([1, 2]))


DATES = [
    pd.DataFrame({"c": pd.to_datetime(DAYS)}),
    of_objects(DAYS),
    of_categories(DAYS),
    pl.DataFrame({"c": DAYS}),
    pa.table({"c": pa.array(DAYS).dictionary_encode()}),
]


@pytest.mark.parametrize("dates", DATES)
def test_dates_are_no_numbers(dates):
    fitted = NativeCategories().fit(DATES[0])
    assert read(fitted, dates) == [19723.0, 19725.0]
    assert read(fitted, of_objects([None])) == read(fitted, pd.DataFrame({"c": [np.nan]})) == [None]
    with pytest.raises(TypeError, match=r"Column 'c' held dates in fit and holds numbers now.*convert it"):
        fitted.transform(pd.DataFrame({"c": [19723.0]}))
    with pytest.raises(TypeError, match=r"Column 'c' held numbers in fit and holds dates now.*convert it"):
        NativeCategories().fit(pd.DataFrame({"c": [1.0]})).transform(dates)


def test_infinite_numbers_in_objects_are_refused_in_fit():
    with pytest.raises(ValueError, match="Column 'c' contains infinity; replace"):
        NativeCategories().fit(of_objects([1.0, float("inf")]))


# -- words for CatBoost -----------------------------------------------------------------------------------


def test_words_that_are_symbols_of_the_column():
    """An unseen symbol must not be another one, whatever that is called."""
    X = of_objects(["(unknown)", "(missing)", "u"])
    fitted = NativeCategories(output="text").fit(X)
    now = of_objects(["(unknown)", "(missing)", "u", "new", None])
    assert read(fitted, now) == ["(unknown)", "(missing)", "u", "((unknown))", "((missing))"]


def test_arrow_extension_types_are_coded_by_value():
    import uuid

    values = [uuid.UUID(int=1), uuid.UUID(int=2), None] * 100
    frame = pd.DataFrame({"c": pd.array(values, dtype=pd.ArrowDtype(pa.uuid()))})
    fitted = NativeCategories().fit(frame)
    assert read(fitted, frame) == read(fitted, of_objects(values)) == ["c0", "c1", None] * 100


def test_transform_before_fit_is_told_of():
    with pytest.raises(NotFittedError, match="NativeCategories instance is not fitted yet"):
        NativeCategories().transform(pd.DataFrame({"a": ["k"]}))
