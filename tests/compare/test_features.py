"""The feature columns: what training learned is applied to later rows, whatever type they come in."""

import datetime
from decimal import Decimal
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabsym.compare.table.features import learn_features
from tabsym.compare.table.files import ReadOptions
from tabsym.compare.table.files import read as read_source
from tabsym.compare.table.prepare import prepare

KINDS = ("categories", "number", "boolean", "moments")


def learn(values, categorical=(), notes=None):
    return learn_features(pd.DataFrame({"c": values}), list(categorical), [] if notes is None else notes)


def applied(trained_on, later, categorical=()):
    """The columns that later rows give, missing values as None."""
    frame = learn(trained_on, categorical).apply(pd.DataFrame({"c": later}))
    return {name: [None if pd.isna(value) else value for value in frame[name].tolist()] for name in frame.columns}


def objects(*values):
    return pd.Series(values, dtype=object)


def days(*dates):
    return [None if date is None else float((pd.Timestamp(date) - pd.Timestamp("1970-01-01")).days) for date in dates]


# Symbols: the same value is the same symbol, whatever type it comes in.

FIVE_AND_NONE = {
    "floats": pd.Series([5.0, None]),
    "nullable": pd.Series([5, None], dtype="Int64"),
    "objects": objects(5, None),
    "objects that are floats": objects(5.0, None),
    "text": pd.Series(["5", None]),
    "categories": pd.Series(["5", None], dtype="category"),
    "categories of numbers": pd.Series([5, None], dtype="category"),
    "arrow": pd.Series([5, None], dtype="int64[pyarrow]"),
}


@pytest.mark.parametrize("later", FIVE_AND_NONE.values(), ids=FIVE_AND_NONE)
@pytest.mark.parametrize("trained_on", [pd.Series([5, 6, 7]), pd.Series(["5", "6", "x"])], ids=["numbers", "text"])
def test_a_whole_number_is_the_same_symbol_in_any_type(trained_on, later):
    assert applied(trained_on, later, ["c"]) == {"c": ["5", None]}


def test_other_numbers_as_symbols():
    assert applied(pd.Series([0.5, -2.0, 1e6]), pd.Series([0.5, -2.0, None, 1e6]), ["c"]) == {
        "c": ["0.5", "-2", None, "1000000"]
    }


def test_infinite_numbers_as_symbols():
    column = pd.Series([1.5, np.inf, -np.inf])
    got = applied(column, column, ["c"])["c"]
    assert len(set(got)) == 3


INFINITE = {
    "floats": pd.Series([1.5, np.inf, 2.0, -np.inf, 3.0]),
    "nullable": pd.Series([1.5, np.inf, 2.0, -np.inf, 3.0], dtype="Float64"),
    "objects": objects(1.5, float("inf"), 2, float("-inf"), 3),
    "arrow": pd.Series([1.5, np.inf, 2.0, -np.inf, 3.0], dtype="double[pyarrow]"),
    "categories": pd.Series([1.5, np.inf, 2.0, -np.inf, 3.0], dtype="category"),
}


@pytest.mark.parametrize("values", INFINITE.values(), ids=INFINITE)
def test_infinite_numbers_are_missing_in_every_type_as_in_text(values):
    y = pd.Series([1.0, 2.5, 3.0, 4.5, 5.0])
    made = prepare(pd.DataFrame({"c": values, "y": y}), "y")
    assert made.X["c"].isna().tolist() == made.raw["c"].isna().tolist() == [False, True, False, True, False]
    assert "Column 'c' has 2 infinite values, which count as missing." in made.notes
    text = prepare(pd.DataFrame({"c": values.astype(str), "y": y}), "y", reading=ReadOptions(numeric=["c"]))
    assert text.X["c"].isna().tolist() == made.X["c"].isna().tolist()


@pytest.mark.parametrize(
    "later", [pd.Series([0.5, np.inf, 1.0]), objects(0.5, "inf", 1.0), pd.Series(["0.5", "inf", "1"])]
)
def test_infinite_numbers_of_later_rows_are_missing_with_a_warning(later):
    with pytest.warns(UserWarning, match=r"'c' held .*numbers in training and now holds '?inf'? in 1 of its 3 cells"):
        assert applied(pd.Series([0.5, 2.0]), later) == {"c": [0.5, None, 1.0]}


def test_booleans_as_symbols():
    assert applied(pd.Series(["True", "False", "x"]), pd.Series([True, False])) == {"c": ["True", "False"]}
    assert applied(pd.Series([True, False]), objects(True, None), ["c"]) == {"c": ["True", None]}


TEXT = {
    "str": "str",
    "object": object,
    "category": "category",
    "arrow": "string[pyarrow]",
    "python": "string[python]",
}


@pytest.mark.parametrize("before", TEXT.values(), ids=TEXT)
@pytest.mark.parametrize("after", TEXT.values(), ids=TEXT)
def test_text_in_any_type(before, after):
    got = applied(pd.Series(["a", "b", None], dtype=before), pd.Series(["b", None, "new"], dtype=after))
    assert got == {"c": ["b", None, "new"]}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(-(10**9), 10**9)), min_size=1, max_size=20))
def test_symbols_of_whole_numbers_are_their_digits(values):
    want = [None if value is None else str(value) for value in values]
    assert applied(pd.Series([1, 2]), pd.Series(values, dtype="float64"), ["c"])["c"] == want
    assert applied(pd.Series([1, 2]), pd.Series(values, dtype="Int64"), ["c"])["c"] == want
    assert applied(pd.Series([1, 2]), pd.Series(values, dtype=object), ["c"])["c"] == want


# Numbers.

SIX_AND_NONE = {
    "floats": pd.Series([6.0, None]),
    "nullable": pd.Series([6, None], dtype="Int64"),
    "small": pd.Series([6, None], dtype="float32"),
    "arrow": pd.Series([6, None], dtype="int64[pyarrow]"),
    "objects": objects(6, None),
    "mixed objects": objects(6.0, None),
    "numpy objects": objects(np.int64(6), np.nan),
    "categories": pd.Series([6, None], dtype="category"),
}


@pytest.mark.parametrize("later", SIX_AND_NONE.values(), ids=SIX_AND_NONE)
@pytest.mark.parametrize("dtype", ["int64", "float64", "Int64", "uint8"])
def test_a_number_in_any_type(dtype, later):
    assert applied(pd.Series([5, 6, 7], dtype=dtype), later) == {"c": [6.0, None]}


def test_numbers_kept_as_objects_in_training():
    """Whatever they are taken for, a later row is taken for the same."""
    trained_on = objects(5, 6.5, None)
    assert applied(trained_on, pd.Series([5, 6.5, None])) == applied(trained_on, trained_on)


def test_decimals_of_parquet_are_numbers_later():
    assert applied(pd.Series([1.5, 2.25]), objects(Decimal("1.50"), None)) == {"c": [1.5, None]}


@pytest.mark.parametrize("dtype", ["str", object, "category"])
@pytest.mark.parametrize("values", [["a", "b"], ["5", "x"], [None, "unknown"]])
def test_numbers_that_are_text_now_are_refused_in_a_sentence(dtype, values):
    with pytest.raises(ValueError, match="'c'") as error:
        applied(pd.Series([5, 6, 7]), pd.Series(values, dtype=dtype))
    assert str(error.value).endswith(".")
    assert "np." not in str(error.value)
    assert "number" in str(error.value)
    words = [value for value in values if value not in (None, "5")]
    assert any(repr(word) in str(error.value) for word in words)  # the stranger, not a number written as text


def test_a_number_column_that_is_empty_now():
    for later in (objects(None, None), pd.Series([np.nan, np.nan]), pd.Series([None, None], dtype="str")):
        assert applied(pd.Series([5, 6]), later) == {"c": [None, None]}


def test_durations_keep_their_missing_values():
    got = applied(pd.to_timedelta(pd.Series([1, None, 3]), unit="D"), pd.to_timedelta(pd.Series([1, None]), unit="D"))
    assert got["c"][0] is not None
    assert got["c"][1] is None


# Booleans.

BOOLEANS = {
    "plain": pd.Series([True, False]),
    "nullable": pd.Series([True, False], dtype="boolean"),
    "objects": objects(True, False),
    "arrow": pd.Series([True, False], dtype="bool[pyarrow]"),
    "whole numbers": pd.Series([1, 0]),
    "numbers": pd.Series([1.0, 0.0]),
    "text": pd.Series(["True", "False"]),
}
MISSING = {
    "nullable": pd.Series([True, None], dtype="boolean"),
    "objects": objects(True, None),
    "numpy objects": objects(np.True_, np.nan),
    "numbers": pd.Series([1.0, np.nan]),
    "arrow": pd.Series([True, None], dtype="bool[pyarrow]"),
}


@pytest.mark.parametrize("later", BOOLEANS.values(), ids=BOOLEANS)
def test_a_boolean_in_any_type(later):
    """True stays true and false stays false, or the column is refused in a sentence."""
    try:
        got = applied(pd.Series([True, False, True]), later)
    except ValueError as error:
        assert "'c'" in str(error)
        assert pd.api.types.is_string_dtype(later)
        return
    assert got == {"c": [True, False]}


@pytest.mark.parametrize("later", MISSING.values(), ids=MISSING)
def test_a_boolean_that_lacks_values(later):
    assert applied(pd.Series([True, False]), later) == {"c": [1.0, None]}


@pytest.mark.parametrize("name", ["nullable", "objects", "arrow"])
def test_a_boolean_trained_with_missing_values(name):
    """Whatever it is taken for, a later row is taken for the same."""
    trained_on = MISSING["objects"]
    assert applied(trained_on, MISSING[name]) == applied(trained_on, trained_on)
    assert applied(trained_on, BOOLEANS[name])["c"][:1] == applied(trained_on, trained_on)["c"][:1]
    assert applied(trained_on, BOOLEANS["plain"]) == applied(trained_on, BOOLEANS[name])


@pytest.mark.parametrize("later", [pd.Series(["yes", "no"]), pd.Series([3, 7]), pd.Series(["yes", None])])
def test_what_is_no_boolean_is_refused_in_a_sentence(later):
    with pytest.raises(ValueError, match="'c'") as error:
        applied(pd.Series([True, False]), later)
    assert str(error.value).endswith(".")


# Dates.

WRITTEN = {
    "ISO": ["2024-02-29", "2024-12-13", "1969-07-20"],
    "ISO with time": ["2024-02-29T10:00:00", "2024-12-13T23:59:59", "1969-07-20T00:00:00"],
    "German": ["29.02.2024", "13.12.2024", "20.07.1969"],
    "American": ["02/29/2024", "12/13/2024", "07/20/1969"],
    "English": ["29/02/2024", "13/12/2024", "20/07/1969"],
    "Japanese": ["2024/02/29", "2024/12/13", "1969/07/20"],
    "Dutch": ["29-02-2024", "13-12-2024", "20-07-1969"],
}
MOMENTS = pd.to_datetime(pd.Series(["2024-02-29", "2024-12-13", "1969-07-20"]))
PARTS = {
    "c": days("2024-02-29", "2024-12-13", "1969-07-20"),
    "c month": ["02", "12", "07"],
    "c week": ["09", "50", "29"],
    "c weekday": ["Thu", "Fri", "Sun"],
}


def daily(parts):
    """Without the time of day, which one way of writing the dates has."""
    return {name: values for name, values in parts.items() if name not in ("c hour", "c minute")}


def floored(parts):
    return parts | {"c": [None if day is None else float(np.floor(day)) for day in parts["c"]]}


@pytest.mark.parametrize(("text", "dtype"), list(product(WRITTEN.values(), TEXT.values()))[::3])
def test_dates_written_in_any_way(text, dtype):
    notes = []
    column = pd.Series(text, dtype=dtype)
    features = learn(column, notes=notes)
    assert list(features.parts) == ["c"]
    assert len(notes) == 1
    assert "'c' contains dates" in notes[0]
    assert floored(daily(applied(column, column))) == PARTS


LATER = list(product(WRITTEN.values(), ["s", "ns"], [None, "UTC", "Europe/Berlin"]))[::5]  # each text and each type


@pytest.mark.parametrize(("text", "unit", "zone"), LATER)
def test_dates_as_text_in_training_and_as_moments_later(text, unit, zone):
    later = MOMENTS.dt.as_unit(unit)
    later = later if zone is None else later.dt.tz_localize(zone)
    assert daily(applied(pd.Series(text), later)) == PARTS


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "America/New_York"])
def test_moments_in_training_and_later(zone):
    moments = MOMENTS if zone is None else MOMENTS.dt.tz_localize(zone)
    assert applied(moments, moments) == PARTS
    assert applied(moments, MOMENTS) == PARTS
    assert applied(MOMENTS, moments) == PARTS
    assert applied(moments, pd.Series(WRITTEN["ISO"])) == PARTS


@pytest.mark.parametrize("name", ["German", "English", "Dutch"])
def test_moments_in_training_and_text_later_is_read_right_or_refused(name):
    """The first date can be read both ways, the second cannot."""
    later = pd.Series({"German": "01.02.2024", "English": "01/02/2024", "Dutch": "01-02-2024"}[name]).repeat(2)
    later.iloc[1] = WRITTEN[name][1]
    try:
        got = applied(MOMENTS, later.reset_index(drop=True))
    except ValueError as error:
        assert "'c'" in str(error)
        return
    assert got["c"] == days("2024-02-01", "2024-12-13")


def test_days_of_python():
    """As parquet files and pyarrow tables have them."""
    column = objects(datetime.date(2024, 2, 29), datetime.date(2024, 12, 13), datetime.date(1969, 7, 20))
    assert list(learn(column).parts) == ["c"]
    assert applied(column, column) == PARTS
    assert applied(MOMENTS, column) == PARTS
    assert applied(column, MOMENTS) == PARTS


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_days_of_other_libraries(library):
    columns = {"c": [datetime.date(2024, 2, 29), None, datetime.date(1969, 7, 20)]}
    frame = read_source(pl.DataFrame(columns) if library == "polars" else pa.table(columns)).frame
    features = learn_features(frame, [], [])
    assert list(features.parts) == ["c"]
    assert features.apply(frame)["c month"].tolist()[::2] == ["02", "07"]
    assert features.apply(frame)["c"].isna().tolist() == [False, True, False]


@pytest.mark.parametrize("trained_on", [MOMENTS, pd.Series(WRITTEN["ISO"])], ids=["moments", "text"])
def test_dates_that_change_their_zone_in_summer(trained_on):
    text = pd.Series(["2024-03-01T12:00:00+01:00", "2024-06-01T12:00:00+02:00", None])
    got = applied(trained_on, text)
    assert floored(got)["c"] == days("2024-03-01", "2024-06-01", None)
    assert floored(applied(text, text))["c month"] == ["03", "06", None]


@pytest.mark.parametrize("trained_on", [MOMENTS, pd.Series(WRITTEN["ISO"])], ids=["moments", "text"])
def test_missing_dates(trained_on):
    for later in (pd.Series(["2024-02-29", None]), pd.to_datetime(pd.Series(["2024-02-29", None]))):
        assert applied(trained_on, later) == {
            "c": days("2024-02-29", None),
            "c month": ["02", None],
            "c week": ["09", None],
            "c weekday": ["Thu", None],
        }
    empty = {"c": [None], "c month": [None], "c week": [None], "c weekday": [None]}
    for later in (objects(None), pd.Series([np.nan]), pd.to_datetime(objects(None)), pd.Series([None], dtype="str")):
        assert applied(trained_on, later) == empty


@pytest.mark.parametrize("trained_on", [MOMENTS, pd.Series(WRITTEN["ISO"])], ids=["moments", "text"])
@pytest.mark.parametrize(
    "later",
    [pd.Series(["red", "green"]), pd.Series([3.5, 4.5]), pd.Series([True, False])],
    ids=["words", "numbers", "booleans"],
)
def test_dates_that_are_something_else_now_are_refused_in_a_sentence(trained_on, later):
    with pytest.raises(ValueError, match="'c'") as error:
        applied(trained_on, later)
    assert str(error.value).endswith(".")


def test_a_few_dates_that_never_were_are_missing():
    text = pd.Series([f"2024-01-{day:02d}" for day in range(1, 29)] + ["0000-00-00"])
    got = applied(text, text)
    assert got["c"][:28] == days(*text[:28])
    assert got["c"][28] is None


def test_the_parts_of_a_date_never_take_a_column_of_the_users():
    frame = pd.DataFrame({"day": MOMENTS, "day month": ["x", "y", "z"], "day weekday": [1.0, 2.0, 3.0]})
    got = learn_features(frame, [], []).apply(frame)
    columns = [got[name].tolist() for name in got.columns]
    assert ["x", "y", "z"] in columns
    assert [1.0, 2.0, 3.0] in columns
    assert ["02", "12", "07"] in columns
    assert ["09", "50", "29"] in columns
    assert len(columns) == 6


def test_dates_asked_for_as_symbols_stay_symbols():
    text = pd.Series(WRITTEN["ISO"])
    assert applied(text, text, ["c"]) == {"c": WRITTEN["ISO"]}


@pytest.mark.parametrize(
    "values", [["1-2", "3-4"], ["12.5.1", "1.2"], ["10:30", "11:00"], ["01234", "5678"], ["a-b-c", "2024-01-01"]]
)
def test_text_that_is_no_date(values):
    features = learn(pd.Series(values))
    assert list(features.parts) == []
    assert features.kinds == {"c": "categories"}


# Columns.

FRAME = pd.DataFrame(
    {
        "n": [1.5, 2.5, None],
        "s": ["a", "b", None],
        "b": [True, False, True],
        "d": WRITTEN["German"],
        "m": MOMENTS,
        "code": [1, 2, 3],
        "empty": [None, None, None],
    }
)
NAMES = ["n", "s", "b"]
NAMES += [*("d", "d month", "d week", "d weekday"), *("m", "m month", "m week", "m weekday"), "code"]


def test_kinds_and_notes():
    notes = []
    features = learn_features(FRAME, ["code"], notes)
    assert [features.kinds[name] for name in ("n", "s", "b", "m", "code")] == [
        *("number", "categories", "boolean", "moments", "categories")
    ]
    assert list(features.parts) == ["d", "m"]
    assert "empty" not in features.kinds
    assert any("'empty' has no values" in note for note in notes)
    got = features.apply(FRAME)
    assert list(got.columns) == NAMES
    assert got["n"].dtype == np.float64
    assert got["b"].dtype == bool
    assert got["code"].tolist() == ["1", "2", "3"]


@pytest.mark.parametrize("rows", [[], [1], [2, 0], [0, 1, 2] * 5])
def test_rows_do_not_depend_on_each_other(rows):
    features = learn_features(FRAME, ["code"], [])
    whole = features.apply(FRAME)
    got = features.apply(FRAME.iloc[rows])
    assert len(got) == len(rows)
    pd.testing.assert_frame_equal(
        got.reset_index(drop=True), whole.iloc[rows].reset_index(drop=True), check_dtype=bool(rows)
    )


@pytest.mark.parametrize("frame", [FRAME.iloc[:0], FRAME.iloc[:0].astype(object)], ids=["typed", "objects"])
def test_no_rows(frame):
    got = learn_features(FRAME, ["code"], []).apply(frame)
    assert got.shape == (0, len(NAMES))
    assert list(got.columns) == NAMES


def test_other_order_further_columns_and_index():
    features = learn_features(FRAME, ["code"], [])
    later = FRAME[FRAME.columns[::-1]].assign(target=1).set_axis([7, 7, 9])
    pd.testing.assert_frame_equal(features.apply(later).reset_index(drop=True), features.apply(FRAME))


@pytest.mark.parametrize("name", ["n", "s", "b", "d", "m", "code"])
def test_a_column_that_is_not_there_is_named(name):
    with pytest.raises(ValueError, match=f"'{name}'") as error:
        learn_features(FRAME, ["code"], []).apply(FRAME.drop(columns=name))
    assert str(error.value).endswith(".")


def test_what_was_given_is_left_as_it_was():
    before = FRAME.copy(deep=True)
    learn_features(FRAME, ["code"], []).apply(FRAME)
    pd.testing.assert_frame_equal(FRAME, before)
