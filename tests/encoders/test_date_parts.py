"""Columns of dates by their parts: the public transformer, and what the contenders of a comparison get."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tabsym import DateParts
from tabsym.compare import compare
from tabsym.compare.table.files import ReadOptions
from tabsym.compare.table.prepare import prepare
from tabsym.frame.meaning import date_format

pytestmark = pytest.mark.usefixtures("in_process")

HOURS = pd.date_range("2023-12-30 22:30", periods=400, freq="7h")


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_parts_are_those_of_python(make):
    X = make({"at": HOURS.to_numpy(), "n": range(400)})
    parts = DateParts()
    got = parts.fit_transform(X)
    assert isinstance(got, make)
    want = HOURS.to_pydatetime()
    names = ["at", "at month", "at week", "at weekday", "at hour", "n"]
    assert list(got.columns) == names == parts.get_feature_names_out().tolist()
    assert list(got["at month"]) == [f"{day.month:02d}" for day in want]
    assert list(got["at week"]) == [f"{day.isocalendar().week:02d}" for day in want]
    assert list(got["at weekday"]) == [day.strftime("%a") for day in want]
    assert list(got["at hour"]) == [f"{day.hour:02d}" for day in want]
    days = [(day - datetime.datetime(1970, 1, 1)) / datetime.timedelta(days=1) for day in want]
    np.testing.assert_allclose(np.asarray(got["at"], dtype=float), days)


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_days_are_the_same_to_the_last_bit_in_every_unit(unit):
    """Else a moment at the bound of a bin is in the next one where the table was read in another unit."""
    micro = np.random.default_rng(0).integers(0, 2 * 10**15, 500)
    X = pd.DataFrame({"at": micro.astype("datetime64[us]")}).astype({"at": f"datetime64[{unit}]"})
    per_day = 86_400 * 10**6
    want = [one // per_day + one % per_day / per_day for one in micro.tolist()]
    assert DateParts().fit_transform(X)["at"].tolist() == want


@pytest.mark.parametrize("dtype", [pa.date32(), pa.date64(), pa.timestamp("s")], ids=str)
def test_dates_of_arrow_in_pandas(dtype):
    days = [datetime.date(2024, 2, 29), None, datetime.date(1969, 12, 31)]
    dates = pd.Series(pd.array(pa.array(days, pa.date32()).cast(dtype), dtype=pd.ArrowDtype(dtype)), [5, 4, 3])
    X = pd.DataFrame({"at": dates})
    for got in (DateParts().fit_transform(X), DateParts().fit(pa.table({"at": days})).transform(X)):
        assert got.index.tolist() == [5, 4, 3]
        assert got.columns.tolist() == ["at", "at month", "at week", "at weekday"]
        assert got["at"].fillna(0.5).tolist() == [19782, 0.5, -1]
        assert got["at weekday"].fillna("").tolist() == ["Thu", "", "Wed"]


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table], ids=["polars", "pyarrow"])
def test_set_output_gives_pandas(make):
    days = [datetime.date(2024, 2, 29), datetime.date(1969, 12, 31)]
    got = DateParts().set_output(transform="pandas").fit_transform(make({"at": days, "n": [1, 2]}))
    assert isinstance(got, pd.DataFrame)
    assert got["at"].tolist() == [19782, -1] and got["n"].dtype == np.int64


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table], ids=["polars", "pyarrow"])
def test_other_columns_stay_as_they_are(make):
    """Text, whole numbers and flags whose first value is missing, beside a date that is."""
    day = datetime.datetime(2024, 2, 29)
    columns = {"a": [None, "x", "y"], "n": [None, 2, 3], "f": [None, True, False], "at": [None, day, day]}
    X = make(columns)
    got = DateParts().fit_transform(X)
    for name in ("a", "n", "f"):
        assert got[name].to_pylist() == columns[name] if make is pa.table else got[name].equals(X[name])
    month, days = (got[name].to_pylist() if make is pa.table else got[name].to_list() for name in ("at month", "at"))
    assert month == [None, "02", "02"] and days == [None, 19782.0, 19782.0]


def test_types_of_arrow_stay():
    """Small integers, decimals and dictionaries came back as other types, and 2**63 as an OverflowError."""
    columns = {
        "small": pa.array([1, None, 3], pa.int8()),
        "large": pa.array([2**63, 2**64 - 1, None], pa.uint64()),
        "exact": pa.array([decimal.Decimal("1.1"), None, decimal.Decimal("2")], pa.decimal128(10, 2)),
        "words": pa.array(["a", "b", None]).dictionary_encode(),
        "at": pa.array([datetime.date(2024, 2, 29), None, datetime.date(1969, 12, 31)]),
    }
    X = pa.table(columns)
    got = DateParts().fit_transform(X)
    assert got.select(list(columns)[:-1]).equals(X.select(list(columns)[:-1]))
    assert got.schema.field("at").type == pa.float64()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_types_are_the_same_in_every_batch(make):
    """Rows without a date had columns of no type."""
    X = make({"at": np.array(["2024-02-29", "NaT", "1969-12-31"], "M8[ms]"), "n": [1, 2, 3]})
    parts = DateParts().fit(X)

    def types(encoded):
        return [str(dtype) for dtype in (encoded.schema.types if make is pa.table else encoded.dtypes)]

    assert types(parts.transform(X[1:2])) == types(parts.transform(X)) == types(parts.transform(X[:0]))


def test_only_parts_that_training_rows_have():
    days = pd.DataFrame({"at": pd.date_range("2024-01-01", periods=9)})
    assert DateParts().fit(days).parts_ == {"at": ["month", "week", "weekday"]}
    noon = days + pd.Timedelta(hours=12)
    assert DateParts().fit(noon).parts_ == {"at": ["month", "week", "weekday"]}
    minutes = pd.DataFrame({"at": pd.date_range("2024-01-01", periods=9, freq="17min")})
    parts = DateParts().fit(minutes)
    assert parts.parts_ == {"at": ["month", "week", "weekday", "hour", "minute"]}
    assert parts.transform(days)["at hour"].tolist() == ["00"] * 9


@pytest.mark.parametrize(
    ("text", "dayfirst", "want"),
    [
        ("03/04/2024", None, "03"),
        ("03/04/2024", True, "04"),
        ("03/04/2024", False, "03"),
        ("03.04.2024", None, "04"),
        ("03-04-2024", None, "04"),
        ("03-04-2024 10:30", False, "03"),
        ("2024-04-03T10:30", None, "04"),
        ("3 Apr 2024", None, "04"),
        ("April 3, 2024", None, "04"),
        ("03/04/24 10:30", None, "03"),
        ("03/04/2024 08:15 PM", None, "03"),
    ],
)
def test_ways_of_writing(text, dayfirst, want):
    frame = pd.DataFrame({"d": [text] * 20})
    assert DateParts(dayfirst=dayfirst).fit_transform(frame)["d month"].unique().tolist() == [want]


def test_missing_dates_and_words_for_them():
    frame = pd.DataFrame({"d": ["2024-02-29", None, "N/A", "?", "2024-03-01"] * 4})
    got = DateParts().fit_transform(frame)
    assert got["d"].isna().sum() == 12
    assert got["d month"].dropna().tolist() == ["02", "03"] * 4


def test_what_is_no_date_is_refused():
    with pytest.raises(ValueError, match="'c' holds no dates"):
        DateParts(["c"]).fit(pd.DataFrame({"c": ["a", "b"]}))
    parts = DateParts().fit(pd.DataFrame({"c": ["2024-01-01", "2024-01-02"]}))
    with pytest.raises(ValueError, match="'c' held dates in training and now holds 'red'"):
        parts.transform(pd.DataFrame({"c": ["red", "green"]}))
    with pytest.raises(ValueError, match="no column 'c'"):
        parts.transform(pd.DataFrame({"d": ["2024-01-01"]}))
    with pytest.raises(ValueError, match="no column 'x'"):
        DateParts(["x"]).fit(pd.DataFrame({"c": ["a", "b"]}))


def note_of(dates, **options):
    frame = pd.DataFrame({"d": dates, "y": np.arange(len(dates)) % 5 / 3})
    return next(note for note in prepare(frame, "y", reading=ReadOptions(**options)).notes if "dates" in note)


def test_the_order_of_day_and_month_is_said():
    assert "the month before the day, though all cells could be read the other way: --dayfirst" in note_of(
        ["03/04/2024", "05/06/2024"] * 9
    )
    assert "(the day before the month)" in note_of(["13/04/2024", "05/06/2024"] * 9)
    assert "(the month before the day)" in note_of(["03/14/2024", "05/06/2024"] * 9)
    assert "(the day before the month, though" in note_of(["03/04/2024", "05/06/2024"] * 9, dayfirst=True)
    assert "before the" not in note_of(["2024-03-04", "2024-05-06"] * 9)


PARIS = pd.date_range("2024-03-28", periods=240, freq="h", tz="Europe/Paris")  # summer time begins on March 31
ZONED = {
    "pandas": lambda path: PARIS.to_series(),
    "objects": lambda path: pd.Series(PARIS.to_pydatetime(), dtype=object),
    "offsets of their own": lambda path: pd.Series(
        [one.replace(tzinfo=datetime.timezone(one.utcoffset())) for one in PARIS.to_pydatetime()], dtype=object
    ),
    "polars": lambda path: pl.from_pandas(pd.DataFrame({"at": PARIS}))["at"],
    "text": lambda path: pd.Series([one.isoformat() for one in PARIS]),
    "text with blanks": lambda path: pd.Series([f" {one:%Y-%m-%d %H:%M} {one:%z} " for one in PARIS]),
    "csv": None,
    "parquet": None,
    "json": None,
}


def zoned(kind, folder):
    """The moments in one kind of table, beside a target."""
    rest = {"y": np.arange(240) % 7 / 3}
    if kind == "polars":
        return pl.DataFrame({"at": ZONED[kind](folder), **rest})
    if ZONED[kind] is not None:
        return pd.DataFrame({"at": ZONED[kind](folder).to_numpy(dtype=object) if kind != "pandas" else PARIS, **rest})
    frame, path = pd.DataFrame({"at": PARIS, **rest}), folder / f"t.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        frame.to_parquet(path)
    else:
        frame.astype({"at": str}).to_json(path, orient="records")
    return path


@pytest.mark.parametrize("kind", ZONED)
def test_the_local_clock_counts_where_the_offset_from_utc_changes(kind, tmp_path):
    prepared = prepare(zoned(kind, tmp_path), "y")
    hours = [f"{one.hour:02d}" for one in PARIS.to_pydatetime()]
    assert prepared.X["at hour"].tolist() == hours
    assert prepared.X["at"].iloc[-1] == (PARIS[-1].tz_localize(None) - pd.Timestamp(0)) / pd.Timedelta(days=1)
    (line,) = [note for note in prepared.notes if "'at' contains dates" in note]
    assert line.endswith("; its times are those of the local clock as written, without the offset from UTC.")
    assert DateParts().fit_transform(pd.DataFrame({"at": PARIS}))["at hour"].tolist() == hours


def test_nothing_is_said_of_offsets_where_there_are_none():
    assert "offset" not in note_of(["2024-03-04 10:30", "2024-05-06 11:45"] * 9)


FAR = {
    "iso": ["9999-12-31", "1500-01-01", "2024-02-29"],
    "points": ["31.12.9999", "01.01.1500", "29.02.2024"],
    "dates": [datetime.date(9999, 12, 31), datetime.date(1500, 1, 1), datetime.date(2024, 2, 29)],
    "moments": [datetime.datetime(9999, 12, 31), datetime.datetime(1500, 1, 1), datetime.datetime(2024, 2, 29)],
    "seconds": pd.Series(np.array(["9999-12-31", "1500-01-01", "2024-02-29"], dtype="M8[s]")),
}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("name", FAR)
def test_dates_beyond_nanoseconds(name, make):
    X = make({"d": np.tile(FAR[name], 9).tolist() if name != "seconds" else list(FAR[name]) * 9})
    got = DateParts().fit_transform(X)
    days = [
        (datetime.date(*one) - datetime.date(1970, 1, 1)).days for one in ((9999, 12, 31), (1500, 1, 1), (2024, 2, 29))
    ]
    assert list(got["d"])[:3] == days
    assert list(got["d month"])[:3] == ["12", "01", "02"]


@pytest.mark.parametrize(
    ("cells", "month"),
    [
        ([" 2024-04-03 ", "2024-04-30"], "04"),
        (["2024-04", "2024-04"], "04"),
        (["04/2024", "04/2024"], "04"),
        (["Apr 2024", "Apr 2024"], "04"),
        (["Apr-24", "Apr-23"], "04"),
        (["03/04/2024, 08:15:00", "13/04/2024, 08:15:00"], "04"),
    ],
)
def test_blanks_around_and_dates_without_a_day(cells, month):
    got = DateParts().fit_transform(pd.DataFrame({"d": cells * 20}))
    assert got["d month"].unique().tolist() == [month]


UNREAD = {
    "both orders": ["03/14/2024", "14/03/2024"],
    "iso and points": ["2024-03-14", "14.03.2024"],
    "another language": ["14. März 2024", "2. Oktober 2023"],
}


@pytest.mark.parametrize("name", UNREAD)
def test_what_looks_like_dates_and_is_not_read_is_said(name):
    frame = pd.DataFrame({"d": UNREAD[name] * 20, "y": np.arange(40) % 5 / 3})
    prepared = prepare(frame, "y")
    assert prepared.features.kinds == {"d": "categories"}
    (line,) = [note for note in prepared.notes if "'d' looks like dates but is read as text" in note]
    assert all(repr(cell) in line for cell in UNREAD[name])


@pytest.mark.parametrize("cells", [["09:45", "17:05"], ["9:45 AM", "5:05 pm"], ["49:30:00", "7:05:10.5"]])
def test_times_of_day_are_said(cells):
    line = next(note for note in prepare(pd.DataFrame({"d": cells * 20, "y": range(40)}), "y").notes if "'d'" in note)
    assert line.startswith(f"Column 'd' contains times such as {cells[0]!r} and is read as text;")


@pytest.mark.parametrize("cells", [["1.2.0", "1.12.0"], ["2010-11", "2013-14"], ["555-12-1234", "555-13-4321"]])
def test_what_is_no_date_is_left_without_a_line(cells):
    notes = prepare(pd.DataFrame({"d": cells * 20, "y": range(40)}), "y").notes
    assert not any("date" in note for note in notes)


@pytest.mark.slow
def test_an_effect_of_the_hour_is_found(tmp_path):
    """y is 10 at 8 o'clock and noise of 1: without the hour the error is 2.2."""
    rng = np.random.default_rng(0)
    at = pd.date_range("2024-01-01", periods=3000, freq="h")
    y = 10.0 * (at.hour == 8) + rng.normal(size=3000)
    text = at.strftime("%d/%m/%Y %H:%M")
    for place, dates in enumerate((at, text)):
        frame = pd.DataFrame({"at": dates, "y": y})
        result = compare(frame, "y", contenders=["wide", "lightgbm"], folds=3, out=tmp_path / str(place), quiet=True)
        scores = result.ranking.set_index("name")["score"]
        assert scores["wide"] < 1.05
        assert scores["lightgbm"] < 1.2


@pytest.mark.parametrize("shuffled", [False, True])
def test_day_or_month_first_is_decided_by_all_cells(shuffled):
    """The first 200 rows of a file by time may lie within twelve days; so may 95 % of all."""
    days = [f"{day:02}/01/2024" for day in range(1, 14) for _ in range(60 if day < 13 else 30)]
    column = pd.Series(days)
    column = column.sample(frac=1.0, random_state=0).reset_index(drop=True) if shuffled else column
    assert date_format(column) == "%d/%m/%Y"
    found = DateParts().fit_transform(pd.DataFrame({"at": column}))
    assert (found["at month"] == "01").all()
    other = column.str.replace(r"(\d\d)/(\d\d)/", r"\2/\1/", regex=True)
    assert date_format(other) == "%m/%d/%Y"
