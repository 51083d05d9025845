"""Columns of dates by their parts: the public transformer, and what the contenders of a comparison get."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tabsym import DateParts
from tabsym.compare import compare
from tabsym.compare.prepare import prepare
from tabsym.compare.reading import ReadOptions

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
