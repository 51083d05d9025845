"""Dates and durations through MODL: cut as numbers, shown, checked and given back as what they are."""

import datetime
import zoneinfo
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from tabsym import (
    MODLEncoder,
    OneHotEncoder,
    TIWSEncoder,
    WideBoostRegressor,
    WideClassifier,
    WideEncoder,
    WideRegressor,
    WideSGDClassifier,
    WideSGDRegressor,
)
from tabsym.frame import Kind, read_table

N = 200
START = datetime.datetime(2024, 1, 1)
MOMENTS = [START + datetime.timedelta(hours=7 * i, microseconds=123_457) for i in range(N)]
DAYS = [START.date() + datetime.timedelta(days=i) for i in range(N)]
Y = (np.arange(N) >= 80).astype(int)
PARIS = zoneinfo.ZoneInfo("Europe/Paris")
COLUMNS = {
    "pandas ns": pd.Series(MOMENTS).astype("datetime64[ns]"),
    "pandas s": pd.Series(MOMENTS).astype("datetime64[s]"),
    "pandas zone": pd.Series(MOMENTS).dt.tz_localize("America/New_York"),
    "pandas utc ms": pd.Series(MOMENTS).dt.tz_localize("UTC").astype("datetime64[ms, UTC]"),
    "pandas arrow": pd.Series(MOMENTS, dtype=pd.ArrowDtype(pa.timestamp("us", "Europe/Paris"))),
    "pandas days": pd.Series(DAYS, dtype=object),
    "pandas moments": pd.Series(MOMENTS, dtype=object),
    "pandas moments of a zone": pd.Series([one.replace(tzinfo=PARIS) for one in MOMENTS], dtype=object),
    "pandas timestamps": pd.Series([pd.Timestamp(one) for one in MOMENTS], dtype=object),
    "pandas timedelta": pd.Series([one - START for one in MOMENTS]),
    "pandas object timedelta": pd.Series([one - START for one in MOMENTS], dtype=object),
    "pandas int32": pd.Series(range(N), dtype="int32"),
    "pandas Int64": pd.Series([None, *range(1, N)], dtype="Int64"),
    "pandas category": pd.Series(pd.Categorical(["u", "v"] * (N // 2), categories=["v", "w", "u"], ordered=True)),
    "pandas flags": pd.Series(Y > 0),
    "polars Date": pl.Series(DAYS),
    "polars ms": pl.Series(MOMENTS, dtype=pl.Datetime("ms")),
    "polars zone": pl.Series(MOMENTS, dtype=pl.Datetime("us"))
    .dt.replace_time_zone("UTC")
    .dt.convert_time_zone("Asia/Tokyo"),
    "polars Duration": pl.Series([one - START for one in MOMENTS]),
    "polars Enum": pl.Series(["u", "v"] * (N // 2), dtype=pl.Enum(["v", "w", "u"])),
    "polars UInt8": pl.Series(range(N), dtype=pl.UInt8),
    "pyarrow zone": pa.array(MOMENTS, pa.timestamp("ms", "Europe/Paris")),
    "pyarrow date": pa.array(DAYS, pa.date32()),
}


def table_of(column):
    if isinstance(column, pa.Array):
        return pa.table({"x": column})
    return column.to_frame("x")


def values_of(frame):
    return frame["x"].to_pylist() if isinstance(frame, pa.Table) else list(frame["x"])


def type_in(frame):
    return frame.schema.field("x").type if isinstance(frame, pa.Table) else frame["x"].dtype


@pytest.mark.parametrize("return_df", [True, False])
@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_values_of_parts_have_the_type_of_fit(column, return_df):
    frame = table_of(column)
    encoder = MODLEncoder(return_df=return_df).fit(frame, Y)
    encoded = encoder.transform(frame)
    back = encoder.set_params(return_df=True).inverse_transform(encoded)
    assert type(back) is type(frame)
    assert type_in(back) == type_in(frame)
    found = set(values_of(back))
    assert len(found) == encoder.partitions_["x"].partition.n_parts
    assert found <= set(values_of(frame))


@pytest.mark.parametrize("cls", [datetime.date, datetime.datetime, pd.Timestamp])
def test_objects_of_dates_are_dates(cls):
    values = DAYS if cls is datetime.date else [cls(one.year, one.month, one.day) for one in DAYS]
    objects = pd.DataFrame({"x": pd.Series([*values[:-1], None], dtype=object)})
    column = read_table(objects)["x"]
    assert column.kind is Kind.NUMERIC
    days = pl.DataFrame({"x": [*DAYS[:-1], None]})
    np.testing.assert_array_equal(column.values, read_table(days)["x"].values)
    got, want = MODLEncoder().fit(objects, Y), MODLEncoder().fit(days, Y)
    assert (
        got.partitions_["x"].labels
        == want.partitions_["x"].labels
        == ["Missing or ]-inf; 2024-03-20]", "]2024-03-20; +inf["]
    )
    assert list(OneHotEncoder().fit_transform(objects)) == ["x"]  # as it leaves polars' dates alone


FAR = [datetime.datetime(9999, 12, 31, 12), None, datetime.datetime(1, 1, 1, 12), datetime.datetime(2024, 1, 1, 12)]
FAR_DAYS = [None if one is None else one.date() for one in FAR]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"x": pd.Series(FAR, dtype="datetime64[us]")}),
        pd.DataFrame({"x": pd.Series(FAR, dtype="datetime64[s]").dt.tz_localize("UTC")}),
        pd.DataFrame({"x": pd.Series(FAR, dtype=object)}),
        pd.DataFrame({"x": pd.Series(FAR_DAYS, dtype=object)}),
        pd.DataFrame({"x": pd.Series([one and one.replace(tzinfo=datetime.UTC) for one in FAR], dtype=object)}),
        pl.DataFrame({"x": FAR}),
        pl.DataFrame({"x": FAR_DAYS}),
        pa.table({"x": pa.array(FAR)}),
        pa.table({"x": pa.array(FAR_DAYS)}),
    ],
)
def test_years_beyond_the_reach_of_nanoseconds(frame):
    """The end of the year 9999, which stands for "never" in many a table, was in 1816."""
    column = read_table(frame)["x"]
    want = np.array([2932896, np.nan, -719162, 19723])
    np.testing.assert_array_equal(np.floor(column.values), want)
    rows = [0, 2, 3] * 20
    many = frame.take(rows) if isinstance(frame, (pd.DataFrame, pa.Table)) else frame[rows]
    encoder = MODLEncoder().fit(many, [1, 0, 1] * 20)
    back = encoder.inverse_transform(encoder.transform(many))
    assert {str(one)[:10] for one in values_of(back)} <= {str(one)[:10] for one in FAR}


def test_moments_are_the_same_in_every_unit():
    values = [
        read_table(pd.DataFrame({"x": pd.Series(MOMENTS).astype(f"datetime64[{unit}]")}))["x"].values
        for unit in ("ns", "us")
    ]
    np.testing.assert_array_equal(*values)


def test_objects_of_durations_are_durations():
    column = read_table(pd.DataFrame({"x": pd.Series([datetime.timedelta(hours=12), None], dtype=object)}))["x"]
    assert column.kind is Kind.NUMERIC
    np.testing.assert_array_equal(column.values, [0.5, np.nan])


ZONED = {
    "pandas": lambda moments, zone: pd.DataFrame({"x": pd.Series(moments).dt.tz_localize("UTC").dt.tz_convert(zone)}),
    "polars": lambda moments, zone: pl.DataFrame(
        {"x": pl.Series(moments).dt.replace_time_zone("UTC").dt.convert_time_zone(zone)}
    ),
    "objects": lambda moments, zone: pd.DataFrame(
        {
            "x": pd.Series(
                [one.replace(tzinfo=datetime.UTC).astimezone(zoneinfo.ZoneInfo(zone)) for one in moments], dtype=object
            )
        }
    ),
    "pyarrow": lambda moments, zone: pa.table({"x": pa.array(moments, pa.timestamp("us", zone))}),
}


@pytest.mark.parametrize("make", ZONED.values(), ids=ZONED)
def test_labels_are_in_the_columns_own_zone(make):
    hours = [START + datetime.timedelta(hours=i) for i in range(N)]  # in UTC; the cut is half past 7 on January 4
    for zone, text in (
        ("UTC", "2024-01-04 07:30"),
        ("America/New_York", "2024-01-04 02:30"),
        ("Asia/Kolkata", "2024-01-04 13:00"),
    ):
        encoder = MODLEncoder().fit(make(hours, zone), Y)
        assert encoder.partitions_["x"].labels == [f"]-inf; {text}]", f"]{text}; +inf["]
        for model in (WideClassifier(numeric="modl"), WideSGDClassifier(numeric="modl")):
            wide = model.fit(make(hours, zone), Y)
            assert wide.coefs_["x"].index.tolist() == encoder.partitions_["x"].labels


@pytest.mark.parametrize("make", [ZONED["pandas"], ZONED["polars"]], ids=["pandas", "polars"])
def test_labels_of_local_days_are_days(make):
    midnights = [START + datetime.timedelta(days=i, hours=5) for i in range(60)]  # in New York
    encoder = MODLEncoder().fit(make(midnights, "America/New_York"), (np.arange(60) >= 30).astype(int))
    assert encoder.partitions_["x"].labels == ["]-inf; 2024-01-30]", "]2024-01-30; +inf["]


def test_an_hour_that_comes_twice_shows_its_offset():
    minutes = [datetime.datetime(2024, 10, 27) + datetime.timedelta(minutes=i) for i in range(180)]
    y = ((np.arange(180) >= 31) & (np.arange(180) < 91)).astype(int)  # from 0:30:30 to 1:30:30 in UTC
    labels = MODLEncoder().fit(ZONED["pandas"](minutes, "Europe/Paris"), y).partitions_["x"].labels
    first, second = "2024-10-27 02:30:30+02:00", "2024-10-27 02:30:30+01:00"
    assert labels == [f"]-inf; {first}]", f"]{first}; {second}]", f"]{second}; +inf["]


HELD = {
    "dates": [START, START + datetime.timedelta(1)] * 10,
    "dates with a time zone": [one.replace(tzinfo=datetime.UTC) for one in (START, START + datetime.timedelta(1))] * 10,
    "durations": [datetime.timedelta(1), datetime.timedelta(2)] * 10,
    "numbers": [19723.0, 19724.0] * 10,
}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda columns: pd.DataFrame(columns, dtype=object)],
                         ids=["pandas", "polars", "objects"])  # fmt: skip
@pytest.mark.parametrize("now", HELD)
@pytest.mark.parametrize("before", HELD)
def test_dates_numbers_and_durations_are_told_apart(make, before, now):
    if make not in (pd.DataFrame, pl.DataFrame) and "numbers" in (before, now):
        return  # objects of numbers are symbols
    y = [0, 1] * 10
    encoder = MODLEncoder().partial_fit(make({"x": HELD[before]}), y)
    piece = make({"x": HELD[now]})
    if before == now:
        encoder.transform(piece)
        encoder.partial_fit(piece, y)
        return
    with pytest.raises(TypeError, match=rf"Column 'x' held {before} in fit and holds {now} now \(such as .*convert it"):
        encoder.transform(piece)
    with pytest.raises(TypeError, match=f"Column 'x' held {before} before and holds {now} now; convert it"):
        encoder.partial_fit(piece, y)
    missing = make({"x": [*HELD[now][:2], None]})[2:]
    assert len(encoder.transform(missing)) == 1  # of missing values any type will do


WIDE = {
    "solved": WideRegressor(loss="squared_error", interactions=None),
    "linear": WideRegressor(loss="squared_error", interactions=None, numeric="linear"),
    "formula": WideRegressor("s(x) + c[1]", loss="squared_error"),
    "online": WideSGDRegressor(random_state=0),
    "stack": WideBoostRegressor(random_state=0),
}


@cache
def wide_fitted(model, make, before):
    return clone(WIDE[model]).fit(make({"x": HELD[before]}), np.arange(20.0) % 2 * 9.0)


@pytest.mark.parametrize("model", WIDE)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("now", HELD)
@pytest.mark.parametrize("before", HELD)
def test_wide_models_tell_dates_numbers_and_durations_apart(model, make, before, now):
    fitted = wide_fitted(model, make, before)
    piece = make({"x": HELD[now]})
    if before == now:
        fitted.predict(piece)
        return
    for predict in (fitted.predict, fitted.explain) if hasattr(fitted, "coefs_") else (fitted.predict,):
        with pytest.raises(TypeError, match=rf"'x' held {before} in fit and holds {now} now \(such as .*convert it"):
            predict(piece)
    missing = make({"x": [*HELD[now][:2], None]})[2:]
    assert len(fitted.predict(missing)) == 1  # of missing values any type will do


def test_cells_in_sentences_are_written_as_python_writes_them():
    model = WideSGDRegressor(random_state=0).fit(pd.DataFrame({"x": HELD["dates"]}), np.arange(20.0))
    with pytest.raises(TypeError, match=r"holds numbers now \(such as 2\.5\); convert it"):
        model.predict(pd.DataFrame({"x": [np.nan, 2.5]}))


def test_later_rows_of_an_online_model_hold_what_its_first_ones_did():
    y = np.arange(20.0)
    model = WideSGDRegressor(random_state=0).partial_fit(pd.DataFrame({"x": HELD["dates"]}), y)
    with pytest.raises(TypeError, match="Column 'x' held dates in fit and holds numbers now"):
        model.partial_fit(pd.DataFrame({"x": HELD["numbers"]}), y)
    model = WideSGDRegressor(random_state=0).partial_fit(pd.DataFrame({"x": [np.nan] * 20}), y)
    for _ in range(2):  # a piece of missing values says nothing of the type
        model.partial_fit(pd.DataFrame({"x": HELD["dates"]}), y)
    with pytest.raises(TypeError, match="Column 'x' held dates in fit and holds numbers now"):
        model.predict(pd.DataFrame({"x": HELD["numbers"]}))


@pytest.mark.parametrize("encoder", [OneHotEncoder(cols="all"), WideEncoder(cols="all"), TIWSEncoder(cols="all")])
def test_dates_with_and_without_a_zone_are_no_categories_of_one_column(encoder):
    fitted = encoder.fit(pd.DataFrame({"x": HELD["dates"]}), np.arange(20.0) + 0.5)
    with pytest.raises(TypeError, match="'x' held moments in fit and holds moments with a time zone now"):
        fitted.transform(pd.DataFrame({"x": HELD["dates with a time zone"]}))


def test_other_zones_are_the_same_moments():
    hours = [START + datetime.timedelta(hours=i) for i in range(N)]
    encoder = MODLEncoder().fit(ZONED["pandas"](hours, "UTC"), Y)
    for zone in ("Europe/Paris", "America/New_York"):
        assert encoder.transform(ZONED["pandas"](hours, zone))["x"].cat.codes.tolist() == Y.tolist()


def test_a_piece_of_missing_values_says_nothing_of_the_type():
    missing = pd.DataFrame({"x": pd.to_datetime([None] * 20)})
    dates = pd.DataFrame({"x": HELD["dates"]})
    encoder = MODLEncoder().partial_fit(missing, [0, 1] * 10).partial_fit(dates, [0, 1] * 10)
    assert encoder.partitions_["x"].labels == ["Missing", "]-inf; 2024-01-01]", "]2024-01-01; +inf["]
    floats = pd.DataFrame({"x": [np.nan] * 20})
    encoder = MODLEncoder().partial_fit(floats, [0, 1] * 10).partial_fit(dates, [0, 1] * 10)
    assert encoder.partitions_["x"].labels[-1] == "]2024-01-01; +inf["
