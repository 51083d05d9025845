"""What is pointed out in a table: ids, codes as numbers, spellings that differ in case, far values."""

import datetime as dt
import re
import shlex

import numpy as np
import pandas as pd
import pytest

from tabsym.compare.table.features import hints
from tabsym.compare.table.files import ReadOptions
from tabsym.compare.table.prepare import prepare

RNG = np.random.default_rng(0)
N = 2000
Y = pd.Series(RNG.normal(size=N), name="y")


def said(column, name="c", target=Y, *, classes=False, taken=()):
    return hints(pd.DataFrame({name: column}), target, classes=classes, taken=taken)


IDS = {
    "text": [f"row {place}" for place in range(N)],
    "nearly all different": [f"row {min(place, N - 50)}" for place in range(N)],
    "counted": np.arange(N),
    "counted, shuffled": RNG.permutation(N) + 7,
    "in order": np.cumsum(RNG.integers(1, 100, N)),
}
NO_IDS = {
    "amounts": RNG.normal(size=N),
    "whole amounts": RNG.integers(0, 10**7, N),
    "few": [f"c{place % 100}" for place in range(N)],
    "halves": [f"c{place % (N // 2)}" for place in range(N)],
}


@pytest.mark.parametrize("name", IDS)
def test_ids_are_pointed_out(name):
    assert ["--drop c." in line for line in said(IDS[name])] == [True]
    assert said(IDS[name], taken=["c"]) == []


@pytest.mark.parametrize("name", NO_IDS)
def test_other_columns_are_no_ids(name):
    assert not any("--drop" in line for line in said(NO_IDS[name]))


@pytest.mark.parametrize("name", ["customer_id", "zip", "ZipCode", "customerId", "PLZ", "sku"])
def test_codes_by_name(name):
    assert ["--categorical" in line for line in said(RNG.integers(0, 50, N), name)] == [True]


@pytest.mark.parametrize("name", ["width", "paid", "codeine", "identity", "age"])
def test_names_that_only_hold_such_letters(name):
    assert said(RNG.integers(18, 80, N), name) == []


def test_columns_that_are_dropped_are_not_told_of(tmp_path):
    rng = np.random.default_rng(0)
    columns = {
        "amount": [f"{cents / 100:.2f} EUR" for cents in rng.integers(0, 9999, 60)],
        "word": [*map(str, range(1, 60)), "unknown"],
        "version": ["1.1", "1.10"] * 30,
        "duration": ["0 days 00:05:00"] * 59 + ["?"],
        "day": [f"2024-01-{day % 28 + 1:02d}" for day in range(59)] + ["unknown"],
        "mixed": ["1 kg", "2 lb"] * 30,
    }
    table = pd.DataFrame(columns | {"a": list("uv") * 30, "y": rng.normal(size=60)})
    table.to_csv(tmp_path / "t.csv", index=False)
    typed = table.assign(version=list("12") * 30, mixed=[1, "two"] * 30)
    for source in (tmp_path / "t.csv", typed):
        for name in columns:
            kept = prepare(source, "y").notes
            dropped = prepare(source, "y", drop=[name]).notes
            assert any(f"{name!r}" in note for note in kept), name
            assert [note for note in dropped if f"{name!r}" in note] == []
            assert set(columns) - {one for one in columns if any(f"{one!r}" in note for note in dropped)} == {name}
    ordered = prepare(tmp_path / "t.csv", "y", drop=["word"], time="word").notes
    assert any("'word'" in note and "as missing" in note for note in ordered)  # which cannot be ordered


def test_the_column_of_times_is_said_to_be_a_feature():
    table = pd.DataFrame({"year": np.arange(60) // 6, "a": list("uv") * 30, "y": np.arange(60.0)})
    (said,) = (note for note in prepare(table, "y", time="year").notes if "orders the rows" in note)
    assert said.startswith("Column 'year' orders the rows and is a feature, too")
    assert "drop=['year'] (--drop year)" in said
    for options in ({}, {"time": "year", "drop": ["year"]}):
        assert not any("'year'" in note for note in prepare(table, "y", **options).notes)


def test_codes_by_what_they_say_of_the_target():
    names = RNG.choice(10**5, 60, replace=False)
    codes = pd.Series(RNG.choice(names, N))
    effect = codes.map(dict(zip(names, RNG.normal(size=60), strict=True)))
    assert any("--categorical c" in line for line in said(codes, target=(Y + effect).rename("y")))
    assert said(codes) == []  # says nothing
    assert said(codes, target=(Y + codes / 2e4).rename("y")) == []  # an amount


def test_values_that_differ_in_case_or_blanks():
    words = pd.Series(np.resize(["NO ", "no", "yes", "Yes", "maybe"], N), name="y")
    (line,) = said(RNG.normal(size=N), target=words, classes=True)
    assert line.startswith("Classes of 'y' differ in case or blanks only: 'NO ' and 'no'; 'Yes' and 'yes';")
    (line,) = said(words)
    assert line.startswith("Categories of column 'c' differ")


def test_many_spellings_are_cut_after_five():
    words = [f"{start}{place}" for place in range(9) for start in "aA"]
    (line,) = said(RNG.choice(words, N))
    assert "and 4 more" in line


FAR = {
    "-200": (np.where(np.arange(N) % 50, RNG.uniform(0, 12, N), -200), -200),
    "-999": (np.where(np.arange(N) % 20, RNG.normal(size=N) * 5, -999), -999),
    "9999": (np.where(np.arange(N) % 20, RNG.integers(0, 120, N), 9999), 9999),
    "99": (np.where(np.arange(N) % 20, RNG.integers(0, 12, N), 99), 99),
}
NEAR = {
    "zeros": np.where(RNG.random(N) < 0.5, 0, RNG.uniform(100, 200, N)),
    "rare": np.where(np.arange(N) == 7, -999.0, RNG.normal(size=N)),
    "minus one": np.where(np.arange(N) % 5, RNG.integers(0, 300, N), -1),
    "flags": RNG.integers(0, 2, N),
    "a limit": np.minimum(RNG.exponential(30, N), 99),
}


@pytest.mark.parametrize("name", FAR)
def test_far_values_are_pointed_out(name):
    column, value = FAR[name]
    assert any(f"--na-values c={value}." in line for line in said(column))
    target = pd.Series(column, name="y")
    assert any(f"--na-values y={value}." in line for line in said(RNG.normal(size=N), target=target))
    frame = pd.DataFrame({"c": column, "y": Y})
    prepared = prepare(frame, "y", reading=ReadOptions(na_values={"c": [str(value)]}))
    assert prepared.X["c"].isna().sum() == (column == value).sum()
    assert not any("far from" in note for note in prepared.notes)


DAYS = pd.date_range("2020-01-01", periods=N, freq="D")
FAR_DATES = {
    "9999-12-31": (DAYS, "9999-12-31"),
    "1900-01-01": (DAYS, "1900-01-01"),
    "a birthday of 1900": (pd.date_range("1930-03-01", periods=N, freq="12D"), "1900-01-01"),
    "points": (DAYS.strftime("%d.%m.%Y"), "31.12.9999"),
    "moments": (DAYS.strftime("%Y-%m-%d %H:%M"), "9999-12-31 00:00"),
}


@pytest.mark.slow
@pytest.mark.parametrize("as_dates", [False, True])
@pytest.mark.parametrize("name", FAR_DATES)
def test_far_dates_are_pointed_out(name, as_dates):
    days, value = FAR_DATES[name]
    column = pd.Series(days.astype(str)).mask(np.arange(N) % 50 == 0, value)
    if as_dates:
        form = {"points": "%d.%m.%Y", "moments": "%Y-%m-%d %H:%M"}.get(name, "%Y-%m-%d")
        moments = [dt.datetime.strptime(cell, form) for cell in column]
        column = pd.Series(np.array(moments, dtype="datetime64[us]"))  # to_datetime of pandas 2 ends in 2262
        value = str(column.iloc[0])[:10]
    frame = pd.DataFrame({"d": column, "y": Y})
    (line,) = [note for note in prepare(frame, "y").notes if "far from its other values" in note]
    assert f"--na-values {repr(f'd={value}') if ' ' in value else f'd={value}'}." in line
    prepared = prepare(frame, "y", reading=ReadOptions(na_values={"d": [value]}))
    assert prepared.X["d"].isna().sum() == N // 50
    assert not any("far from" in note for note in prepared.notes)


@pytest.mark.parametrize("name", ["rare", "near"])
def test_dates_that_are_not_far(name):
    days = pd.Series(DAYS).mask(np.arange(N) % (50 if name == "near" else N) == 0, pd.Timestamp("2019-12-31"))
    assert not any("far from" in note for note in prepare(pd.DataFrame({"d": days, "y": Y}), "y").notes)


HOURS = pd.date_range("2021-03-04 05:00", periods=N, freq="7h")
IN_NUMBERS = {
    "year, month, day": (DAYS.strftime("%Y%m%d").astype(int), "20200101 for 2020-01-01"),
    "with gaps": (
        pd.Series(DAYS.strftime("%Y%m%d").astype(float)).mask(np.arange(N) % 7 == 3),
        "20200101 for 2020-01-01",
    ),
    "seconds": (HOURS.astype("int64") // 10 ** (9 if HOURS.unit == "ns" else 6), "for 2021-03-04"),
    "milliseconds": (HOURS.astype("datetime64[ms]").astype("int64"), "for 2021-03-04"),
}


@pytest.mark.parametrize("name", IN_NUMBERS)
def test_dates_as_numbers_are_pointed_out(name, tmp_path):
    column, shown = IN_NUMBERS[name]
    (line,) = said(column)
    assert line.startswith("Column 'c' has whole numbers that look like dates (")
    assert shown in line
    assert said(column, taken=["c"]) == []


@pytest.mark.parametrize(
    "column", [RNG.integers(19_000_101, 21_001_231, N), RNG.integers(10**9, 10**10, N), RNG.integers(0, 10**8, N)]
)
def test_numbers_that_are_no_dates(column):
    assert not any("dates" in line for line in said(column))


@pytest.mark.parametrize("name", NEAR)
def test_values_that_are_not_far(name):
    assert not any("far from" in line for line in said(NEAR[name]))


def test_rare_classes_are_cut_after_five():
    target = [f"k{place}" for place in range(9)] + ["a", "b"] * 200
    notes = prepare(pd.DataFrame({"x": range(409), "y": target}), "y", task="multiclass").notes
    (line,) = (note for note in notes if "fewer than 5 rows" in note)
    assert line.endswith("k4 (1) and 4 more.")


def test_options_that_are_named_can_be_pasted_into_a_shell(tmp_path):
    draw = np.random.default_rng(0)
    n = 300
    table = pd.DataFrame({"Listing ID": np.arange(n), "Price (EUR)": [f"€ {k}" for k in draw.integers(1, 99, n)]})
    table["far one"] = np.where(draw.random(n) < 0.1, -999, draw.integers(1, 50, n))
    notes = prepare(table.assign(y=draw.choice(["a", "b"], n)), "y").notes
    commands = [part.rstrip(".;") for note in notes for part in re.findall(r"--[a-z-]+ .+?(?= to | for |$)", note)]
    words = [shlex.split(command) for command in commands]
    assert {"--drop", "--categorical", "--na-values"} <= {one[0] for one in words}
    assert all(len(one) == 2 for one in words)
    assert {"Listing ID", "Price (EUR)", "far one=-999"} <= {one[1] for one in words}


@pytest.mark.parametrize(
    ("write", "is_said"),
    [
        ("#{}", True),
        ("No. {}", True),
        ("approx {} miles", True),
        ("{}-20", True),
        ("{}h 30m", True),
        ("5'{}\"", True),
        ("A{}", False),
        ("{}-{}-{}", False),
        ("street {}, Ulm, and more text of {} kinds: {}", False),
        ("town", False),
    ],
)
def test_numbers_among_other_signs_are_pointed_out(write, is_said):
    numbers = np.random.default_rng(0).integers(1, 99, 300)
    table = pd.DataFrame({"c": [write.format(k, k, k) for k in numbers], "y": numbers % 2})
    notes = [note for note in prepare(table, "y").notes if "'c'" in note]
    assert any("numbers among other signs" in note and repr(table["c"][0]) in note for note in notes) == is_said
