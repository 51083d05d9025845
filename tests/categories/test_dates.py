"""Dates as categories: of databases and lazy frames as of the same table in memory, and those that Python has not."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tabsym import OneHotEncoder, TIWSEncoder, WideRegressor
from tabsym.models import wide
from tabsym.models.out_of_core import parts

duckdb = pytest.importorskip("duckdb")
RNG = np.random.default_rng(0)
N = 900
DAYS = RNG.integers(0, 40, N)
TABLE = pd.DataFrame({"row": np.arange(N), "t": pd.Timestamp("2024-03-20 03:00") + pd.to_timedelta(DAYS, unit="D")})
TABLE["ns"] = TABLE["t"] + pd.to_timedelta(DAYS % 3, unit="ns")
TABLE["y"] = DAYS % 7 + 2.0 * (DAYS % 3) + RNG.normal(0, 0.1, N)
TYPES = {  # as SQL has them, across a change of summer time
    "timestamp": "t::timestamp",
    "seconds": "t::timestamp_s",
    "milliseconds": "t::timestamp_ms",
    "nanoseconds": "ns::timestamp_ns",
    "a time zone": "t::timestamptz",
    "days": "t::date",
}


@pytest.fixture
def connection():
    made = duckdb.connect()
    made.execute("SET timezone = 'Europe/Berlin'")
    made.register("given", TABLE)
    return made


@pytest.mark.parametrize(
    "options", [{"numeric": "smooth"}, {"categorical_features": ["t"]}], ids=["numbers", "categories"]
)
@pytest.mark.parametrize("kind", TYPES)
def test_moments_of_duckdb_are_those_of_the_table_in_memory(kind, options, connection, monkeypatch):
    def rows():
        return connection.sql(f"SELECT {TYPES[kind]} AS t, y FROM given")

    table = rows().to_arrow_table()
    X, y = table.select(["t"]), table["y"].to_numpy()
    model = WideRegressor(loss="squared_error", alpha=1.0, tol=1e-8, interactions=None, count_effect=False, **options)
    expected = model.fit(X, y).predict(X)
    assert len(set(expected.tolist())) > 20
    np.testing.assert_allclose(model.fit(rows(), "y").predict(X), expected, atol=1e-8)
    monkeypatch.setattr(wide, "SAMPLE_ROWS", 0)  # read in parts
    monkeypatch.setattr(parts, "PART_ROWS", 300)
    np.testing.assert_allclose(model.fit(rows(), "y").predict(X), expected, atol=1e-8)


@pytest.mark.parametrize("encoder", [OneHotEncoder(cols=["t"]), TIWSEncoder(cols=["t"])])
@pytest.mark.parametrize("kind", TYPES)
def test_categories_of_moments_are_counted_by_duckdb_as_in_memory(kind, encoder, connection):
    rows = connection.sql(f"SELECT row, {TYPES[kind]} AS t, y FROM given")
    fitted = encoder.fit(rows, "y")
    X = rows.to_arrow_table().drop_columns(["y"])
    found = fitted.transform(rows.project("row, t")).df().sort_values("row").to_numpy(dtype=float)
    expected = fitted.transform(X).to_pandas().sort_values("row").to_numpy(dtype=float)
    np.testing.assert_allclose(found, expected)
    assert len(set(map(tuple, found[:, 1:].round(6)))) == len(set(X["t"].to_pylist()))


@pytest.mark.parametrize("n_days", [5, 200])
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("kind", ["moments", "moments of a zone", "durations"])
def test_categories_of_moments_in_frames_of_polars(kind, unit, n_days):
    moments = pd.Timestamp("2024-03-20") + pd.to_timedelta(RNG.integers(0, n_days, 150), unit="D")
    moments = moments + pd.to_timedelta(np.arange(150) % 3, unit="ns")
    column = pl.Series("t", moments).cast(pl.Datetime(unit))
    if kind == "durations":
        column = column - pl.Series([pd.Timestamp("2024-01-01")]).cast(pl.Datetime(unit))
    elif kind != "moments":
        column = column.dt.replace_time_zone("Europe/Berlin")
    table = pl.DataFrame({"t": column, "y": column.to_physical() % 7 + np.arange(150) % 3 + 0.5})
    n_categories = len(set(column.to_physical().to_list()))
    for rows in (table, table.lazy()):
        for encoder in (OneHotEncoder(cols=["t"]).fit(rows, "y"), TIWSEncoder(cols=["t"]).fit(rows, "y")):
            found = encoder.transform(table.select("t"))
            assert encoder.transform(table.lazy().select("t")).collect().equals(found)
            assert not np.isnan(found.to_numpy()).any()
            assert isinstance(encoder, TIWSEncoder) or found.n_unique() == n_categories
    codes = OneHotEncoder(cols=["t"]).fit(table, "y")
    assert codes.inverse_transform(codes.transform(table.select("t")))["t"].equals(column)


@pytest.mark.parametrize("n_rows", [3, 200])
@pytest.mark.parametrize("kind", ["timestamp", "timestamptz", "date"])
def test_infinite_dates_are_refused_by_name(kind, n_rows, connection):
    rows = connection.sql(
        f"SELECT (DATE '2024-01-01' + (i % 5)::INTEGER)::{kind} AS t, i AS y FROM range({n_rows}) AS of_i(i) "
        f"UNION ALL SELECT 'infinity'::{kind}, 1"
    )
    says = "Column 't' holds dates before the year 1 or after 9999 .* make them missing, or the column text"
    for given in (rows, rows.to_arrow_table(), pl.from_arrow(rows.to_arrow_table())):
        with pytest.raises(ValueError, match=says):
            OneHotEncoder(cols=["t"]).fit(given)


def test_the_first_and_the_last_date_are_categories():
    days = [dt.date.min, dt.date.max, None, dt.date(1970, 1, 1)] * 30
    moments = [None if day is None else dt.datetime.combine(day, dt.time.max) for day in days]
    for values in (days, moments):
        for table in (pl.DataFrame({"t": values}), pa.table({"t": values})):
            assert len(OneHotEncoder(cols=["t"]).fit(table).get_feature_names_out()) == 4
