"""`to_sql`: views that predict as the model does, on DuckDB and SQLite, whatever columns and categories are called."""

import datetime as dt
import sqlite3
import sys

import duckdb
import numpy as np
import pandas as pd
import pytest
import sqlglot
from sklearn.pipeline import make_pipeline

from tabsym import DateParts, WideClassifier, WideRegressor, WideSGDRegressor
from tabsym.encoders import OneHotEncoder
from tabsym.export import to_sql
from tabsym.export.sql import last_microsecond
from tests.exported import CATEGORIES, MODELS, close, fitted, in_duckdb, in_sqlite, new_rows, scores, table, target
from tests.formulas import random_formula, random_table

OTHERS = ["postgres", "snowflake", "bigquery", "tsql", "spark"]
DATES_AS_NUMBERS = {"slopes", "three classes", "hinge", "online classes"}


@pytest.mark.parametrize("engine", [in_duckdb, in_sqlite])
@pytest.mark.parametrize("name", MODELS)
def test_a_view_predicts_as_the_model_does(name, engine):
    model, new = fitted(name), new_rows()
    if engine is in_sqlite and name in DATES_AS_NUMBERS:
        with pytest.raises(ValueError, match=r"column 'day' takes dates as numbers.*sqlite"):
            to_sql(model, dialect="sqlite")
        return
    view = engine(to_sql(model), new)
    first = view.columns.get_loc(new.columns[0])
    assert list(view.columns[first : first + len(new.columns)]) == list(new.columns)
    expected = scores(model, new)
    if not hasattr(model, "classes_"):
        assert close(view["prediction"], expected, model, new)
        return
    own = view[[one for one in view if one.startswith("score")]].to_numpy().reshape(expected.shape)
    assert close(own, expected, model, new)
    labels = view["prediction"].astype(bool) if model.classes_.dtype == bool else view["prediction"]
    assert (labels.to_numpy() == model.predict(new)).all()
    shares = view[[f"probability_{one}" for one in model.classes_]] if hasattr(model, "predict_proba") else None
    if shares is not None:
        np.testing.assert_allclose(shares, model.predict_proba(new), rtol=0, atol=1e-13)


@pytest.mark.filterwarnings("ignore:The formula of", "ignore:.* ended short of the optimum", "ignore:Training stopped")
@pytest.mark.parametrize("seed", range(100, 130))
def test_random_formulas(seed):
    rng = np.random.default_rng(seed)
    tree, X, new = random_formula(rng), random_table(rng, 100), random_table(rng, 60)
    y = X["x"] + (X["a"] == "k") + rng.normal(size=len(X)) / 3
    online = WideSGDRegressor(str(tree), max_iter=2, random_state=0)
    model = (online if seed % 2 else WideRegressor(str(tree), loss="squared_error", max_iter=5)).fit(X, y)
    new.loc[:5, "a"], new.loc[3:9, "c"], new.loc[20:25, "b"] = "zz", "zz", None
    engine = in_sqlite if seed % 10 == 0 else in_duckdb
    assert close(engine(to_sql(model), new)["prediction"], model.predict(new), model, new)


STRANGE = ['"; DROP TABLE "rows"; --', "it''s", "a\\", "b'); DROP TABLE rows; --", "{}", "%s", "\n", "é\u200b", "", "'"]


@pytest.mark.parametrize("engine", [in_duckdb, in_sqlite])
def test_names_and_categories_are_never_code(engine):
    names = [name for name in STRANGE if name]
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.choice(np.array([*STRANGE, None], dtype=object), 300) for name in names[:5]})
    X[names[5]] = rng.normal(size=300)
    y = X[names[5]] + sum(X[name].fillna("-").str.len() / (3 + place) for place, name in enumerate(names[:5]))
    cross = [(names[0], names[3]), (names[1], names[5])]
    model = WideRegressor(loss="squared_error", interactions=cross, numeric="quantile").fit(X, y)
    own = 'rows"; DROP TABLE x; --'
    view = engine(to_sql(model, own), X, own)
    assert close(view["prediction"], model.predict(X), model, X)
    classes = WideClassifier(interactions=None).fit(X, np.array(["it's", 'a"b', "c;--"])[np.digitize(y, [3, 6])])
    view = engine(to_sql(classes, own), X, own)
    assert (view["prediction"] == classes.predict(X)).all()


def test_each_statement_is_one_of_four():
    """What is written creates two kinds of things, and fills one; nothing is dropped or replaced."""
    model = fitted("pairs")
    heads = {line.split(" ", 2)[0] + " " + line.split(" ", 2)[1] for line in to_sql(model).split(";\n\n")}
    assert heads == {"CREATE TABLE", "INSERT INTO", "CREATE VIEW"}


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_dialects_that_run_here(dialect):
    model, new = fitted("two classes"), new_rows()
    if dialect == "sqlite":
        model = WideRegressor(loss="squared_error", categorical_features=CATEGORIES).fit(table(), target(table()))
    text = to_sql(model, "rows", dialect)
    view = (in_duckdb if dialect == "duckdb" else in_sqlite)(text, new)
    assert close(view["score" if dialect == "duckdb" else "prediction"], scores(model, new), model, new)
    assert ("IS NOT DISTINCT FROM" in text) == (dialect == "duckdb")


@pytest.mark.parametrize("dialect", OTHERS)
def test_dialects_by_sqlglot_are_read_by_it(dialect):
    """Each statement parses in its own dialect, and means what the ANSI one does where DuckDB runs it again."""
    X, new = table()[["text", "thirds", "flag"]], new_rows()[["text", "thirds", "flag"]]
    model = WideClassifier(interactions="pairwise", numeric="quantile").fit(X, target(table()) > 2)
    text = to_sql(model, "rows", dialect)
    parsed = [one for part in text.split("GO\n") for one in sqlglot.parse(part, read=dialect)]
    assert all(isinstance(one, (sqlglot.exp.Create, sqlglot.exp.Insert)) for one in parsed if one is not None)
    assert not any(isinstance(one, sqlglot.exp.Command) for one in parsed)
    if dialect != "tsql":  # whose types and collations DuckDB has not
        again = ";\n".join(one.sql(dialect="duckdb") for one in parsed if one is not None)
        assert close(in_duckdb(again, new)["score"], model.decision_function(new), model, new)
    else:
        assert "NVARCHAR(4000)" in text and "COLLATE Latin1_General_BIN2" in text and "\nGO\n" in "\n" + text


def test_a_missing_library_and_wrong_arguments(monkeypatch):
    model = fitted("offset")
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(ModuleNotFoundError, match=r'needs sqlglot: pip install "tabsym\[export\]"'):
        to_sql(model, dialect="spark")
    assert to_sql(model)
    with pytest.raises(ValueError, match=r"dialect='oracle' is not known; use 'ansi', 'sqlite'"):
        to_sql(model, dialect="oracle")


def test_what_a_view_cannot_do_is_refused():
    X, y = table(), target(table())
    error = WideRegressor(loss="squared_error", handle_unknown="error", interactions=None)
    with pytest.raises(ValueError, match=r"handle_unknown='error' raises an error for unknown categories of column 't"):
        to_sql(error.fit(X[["text", "thirds"]], y))
    with pytest.raises(ValueError, match="a column 'Prediction', as the view would have"):
        to_sql(WideRegressor(loss="squared_error").fit(X[["text"]].set_axis(["Prediction"], axis=1), y))
    times = pd.DataFrame({"c": pd.Series([dt.time(8), dt.time(9)] * 150, dtype=object)})
    with pytest.raises(ValueError, match=r"Column 'c' holds datetime\.time\(8, 0\), for which SQL has no literal"):
        to_sql(WideRegressor(loss="squared_error", alpha=0.0).fit(times, y))
    spans = pd.DataFrame({"d": pd.to_timedelta(np.arange(300), unit="s")})
    with pytest.raises(ValueError, match="Column 'd' holds durations"):
        to_sql(WideRegressor(loss="squared_error").fit(spans, np.arange(300.0)))
    nul = pd.DataFrame({"c": ["a\0b", "c"] * 150})
    with pytest.raises(ValueError, match="holds a NUL character"):
        to_sql(WideRegressor(loss="squared_error", alpha=0.0).fit(nul, y))


@pytest.mark.parametrize("dialect", ["ansi", "duckdb", "sqlite", "bigquery", "tsql", "spark"])
def test_columns_that_differ_in_case_only_are_refused(dialect):
    """DuckDB gives the second another name, and reads the first by either."""
    X = table()[["text", "thirds"]].set_axis(["size", "Size"], axis=1)
    model = WideRegressor(loss="squared_error", interactions=None).fit(X, target(table()))
    with pytest.raises(ValueError, match=f"'size' and 'Size' differ in case only, which {dialect} does not tell apart"):
        to_sql(model, dialect=dialect)
    with pytest.raises(ValueError, match="'size' and 'Size' differ in case only"):
        to_sql(OneHotEncoder().fit(X), dialect=dialect)
    assert '"Size"' in to_sql(model, dialect="postgres")


@pytest.mark.parametrize("engine", [in_duckdb, in_sqlite])
@pytest.mark.parametrize("kind", ["int64", "float64", "bool"])
def test_a_column_that_is_a_category_and_a_number(engine, kind):
    rng = np.random.default_rng(0)
    year = rng.integers(2000, 2009, 400) if kind != "bool" else rng.integers(0, 2, 400)
    X = pd.DataFrame({"year": year.astype(kind)})
    y = 0.3 * year + rng.normal(size=9)[year % 9] + rng.normal(size=400)
    model = WideRegressor("w[year] + s[1]*year + c[1]", loss="squared_error", alpha={"w": 0.1}).fit(X, y)
    np.testing.assert_allclose(engine(to_sql(model), X)["prediction"], model.predict(X), rtol=1e-10)


def test_class_names_that_differ_in_case_only():
    """Names of columns that an engine takes for the same are told apart by numbers."""
    X = table()[["text", "whole", "normal"]]
    model = WideClassifier(interactions=None).fit(X, np.array(["A", "a", "B"])[np.digitize(target(table()), [1, 3])])
    view = in_duckdb(to_sql(model), X)
    assert {"probability_A", "probability_a_2", "probability_B"} <= set(view)
    np.testing.assert_allclose(view[["probability_A", "probability_B", "probability_a_2"]], model.predict_proba(X))


def test_extreme_scores_neither_overflow_nor_vanish():
    model = WideClassifier("a[c] + b[1]", alpha=0.0).fit(pd.DataFrame({"c": list("uvuv")}), [0, 1, 1, 0])
    model = model.with_coefs({"a": {"u": 5000.0, "v": -5000.0}})
    X = pd.DataFrame({"c": ["u", "v", None]})
    for engine in (in_duckdb, in_sqlite):
        np.testing.assert_allclose(engine(to_sql(model), X)["probability_1"], model.predict_proba(X)[:, 1], atol=1e-12)


def test_missing_numbers_without_a_fill_and_nan():
    """In a formula they give NULL; NaN of DuckDB is missing in bins."""
    X = pd.DataFrame({"c": ["a", "b"] * 50, "x": np.arange(100.0)})
    model = WideRegressor("w[c] * x + b[1]", loss="squared_error").fit(X, X["x"])
    assert in_duckdb(to_sql(model), X.assign(x=X["x"].where(X["x"] > 5)))["prediction"].isna().sum() == 6
    smooth = WideRegressor(loss="squared_error").fit(X.assign(x=X["x"].where(X["x"] > 5)), X["x"])
    base = duckdb.connect()
    base.execute("CREATE TABLE rows (c VARCHAR, x DOUBLE); INSERT INTO rows VALUES ('a', 'NaN'), ('a', NULL)")
    base.execute(to_sql(smooth))
    first, second = (row[0] for row in base.execute("SELECT prediction FROM rows_prediction").fetchall())
    assert first == second == pytest.approx(smooth.predict(pd.DataFrame({"c": ["a"], "x": [np.nan]}))[0], rel=1e-12)


@pytest.mark.slow
def test_parts_of_dates():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"at": pd.Timestamp("2023-12-20") + pd.to_timedelta(rng.integers(0, 10**8, 400), unit="s")})
    X.loc[3:6, "at"] = pd.NaT
    y = X["at"].dt.month.fillna(3) + X["at"].dt.hour.fillna(1) / 3 + X["at"].dt.day_of_week.fillna(2)
    for numeric in ("smooth", "linear"):
        model = make_pipeline(DateParts(), WideRegressor(loss="squared_error", numeric=numeric)).fit(X, y)
        view = in_duckdb(to_sql(model), X)
        np.testing.assert_allclose(view["prediction"], model.predict(X), rtol=1e-12)
    with pytest.raises(ValueError, match=r"Column 'at' holds dates \(moments\), of which .* bigquery has no text"):
        to_sql(model, dialect="bigquery")
    text = X.assign(at=X["at"].dt.strftime("%d.%m.%Y %H:%M"))
    model = make_pipeline(DateParts(), WideRegressor(loss="squared_error")).fit(text, y)
    with pytest.raises(ValueError, match=r"Column 'at' holds dates \(%d\.%m\.%Y %H:%M\)"):
        to_sql(model)


def test_moments_at_the_bounds_of_bins():
    """Bounds are moments of rows: the last microsecond whose days, rounded, are not above."""
    rng = np.random.default_rng(0)
    micro = rng.integers(-(10**15), 2 * 10**15, 2000)
    per_day = 86_400 * 10**6
    for one in micro.tolist():
        days = one // per_day + one % per_day / per_day
        last = last_microsecond(days)
        assert last >= one and last // per_day + last % per_day / per_day == days
        after = last + 1
        assert after // per_day + after % per_day / per_day > days
    X = pd.DataFrame({"t": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 10**13, 500), unit="us")})
    model = WideRegressor(loss="squared_error", numeric="quantile").fit(X, rng.normal(size=500))
    assert close(in_duckdb(to_sql(model), X)["prediction"], model.predict(X), model, X)
    given = X.astype({"t": "datetime64[ns]"})  # a TIMESTAMP_NS there
    view = in_duckdb(to_sql(model, dialect="duckdb"), given, nanoseconds=True)
    assert close(view["prediction"], model.predict(X), model, X)


def test_a_schema_and_an_empty_table():
    model = fitted("offset")
    base = duckdb.connect()
    base.register("given", new_rows())
    base.execute('CREATE SCHEMA "of sales"; CREATE TABLE "of sales"."rows" AS SELECT * FROM given LIMIT 0')
    base.execute(to_sql(model, "of sales.rows"))
    assert base.execute('SELECT * FROM "of sales"."rows_prediction"').fetchall() == []


def test_dates_of_python_and_large_numbers():
    X = pd.DataFrame({"n": [2**53 + 1, 2**53, -5] * 40, "d": [dt.date(2024, 2, 29), dt.date(1900, 1, 1), None] * 40})
    model = WideRegressor(loss="squared_error", categorical_features="all", alpha=0.0, interactions=None)
    model.fit(X, [1.0, 2.0, 3.0] * 40)
    base = duckdb.connect()
    base.execute("CREATE TABLE rows (n BIGINT, d DATE)")
    base.execute(
        "INSERT INTO rows VALUES (9007199254740993, '2024-02-29'), (9007199254740992, '1900-01-01'), (-5, NULL)"
    )
    base.execute(to_sql(model))
    found = [row[0] for row in base.execute("SELECT prediction FROM rows_prediction ORDER BY prediction").fetchall()]
    np.testing.assert_allclose(found, model.predict(X[:3]), rtol=1e-12)


MOMENTS = pd.Series(pd.to_datetime(["2024-02-29 00:00:00", "2024-03-01 08:30:00", "1900-01-01 00:00:00"] * 40))


@pytest.mark.parametrize(
    ("kept", "written"),
    [
        (MOMENTS, ["2024-02-29", "2024-03-01 08:30:00", "1900-01-01 00:00:00"]),
        (MOMENTS, ["2024-02-29T00:00:00", "2024-03-01 08:30", "1900-01-01 00:00:00.000000"]),
        (MOMENTS + pd.Timedelta("1us"), [f"{one}.000001" for one in MOMENTS[:3]]),
        (MOMENTS.dt.date, ["2024-02-29", "2024-03-01", "1900-01-01 00:00:00"]),
        (MOMENTS.dt.tz_localize("UTC"), ["2024-02-29", "2024-03-01 08:30:00+00:00", "1900-01-01 00:00:00"]),
        (
            MOMENTS.dt.tz_localize("UTC").dt.tz_convert("Europe/Paris"),
            ["2024-02-29 01:00:00+01:00", "2024-03-01 09:30:00+01:00", "1900-01-01 00:00:00.000000+00:00"],
        ),
    ],
)
@pytest.mark.parametrize("bins", [False, True])
def test_dates_that_are_text_match_in_each_of_their_forms(kept, written, bins):
    options = {"numeric": {"d": [0, 19_782]}} if bins else {"categorical_features": ["d"]}
    model = WideRegressor(loss="squared_error", alpha=1e-3, interactions=None, **options)
    X = pd.DataFrame({"d": kept})
    X.loc[3, "d"] = None
    model.fit(X, [1.0, 2.0, 7.0] * 40)
    base = sqlite3.connect(":memory:")
    pd.DataFrame({"d": [*written, None]}).to_sql("rows", base, index=False)
    base.executescript(to_sql(model, dialect="sqlite"))
    found = [row[0] for row in base.execute("SELECT prediction FROM rows_prediction").fetchall()]
    np.testing.assert_allclose(found, model.predict(X[:4]), rtol=1e-12)


def test_sqlite_of_python_is_new_enough_for_ansi():
    assert sqlite3.sqlite_version_info >= (3, 39)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
@pytest.mark.parametrize("is_feature", [True, False])
def test_columns_of_the_names_that_are_computed_do_not_replace_them(dialect, is_feature):
    """A `score` of an earlier model, which this one knows but does not use, or does not know."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"g": rng.choice(list("abc"), 400), "score": rng.integers(0, 5, 400) * 1.0})
    table["probability_yes"], table["prediction"] = 7.0, "never"
    y = np.where((table["g"] == "a") + rng.normal(size=400) > 0.5, "yes", "no")
    used = ["g", "score", "probability_yes"] if is_feature else ["g"]
    model = WideClassifier(interactions=None, numeric={"score": [1, 3]} if is_feature else "smooth").fit(table[used], y)
    amounts = WideRegressor(loss="squared_error", interactions=None).fit(table[["g"]], (y == "yes") * 1.0)
    for one, ask in ((model, "predict"), (amounts, "predict")):
        text = to_sql(one, table="sales", dialect=dialect)
        if dialect == "duckdb":
            engine = duckdb.connect()
            engine.register("given", table)
            engine.execute("CREATE TABLE sales AS SELECT * FROM given")
            engine.execute(text)
            found = engine.execute("SELECT prediction FROM sales_prediction").fetchall()
        else:
            engine = sqlite3.connect(":memory:")
            table.to_sql("sales", engine, index=False)
            engine.executescript(text)
            found = engine.execute("SELECT prediction FROM sales_prediction").fetchall()
        found, wanted = np.array([row[0] for row in found]), getattr(one, ask)(table[used if one is model else ["g"]])
        np.testing.assert_array_equal(found, wanted) if one is model else np.testing.assert_allclose(found, wanted)


def test_moments_of_six_digits_with_a_t_are_binned_as_with_a_blank():
    rng = np.random.default_rng(0)
    day = pd.Timestamp("2024-03-01") + pd.Series(pd.to_timedelta(rng.integers(0, 6 * 86_400 * 10**6, 500), "us"))
    y = 5 * np.sin(4 * np.asarray((day - day.min()) / pd.Timedelta(days=1))) + 0.1 * rng.normal(size=500)
    table = pd.DataFrame({"d": day})
    model = WideRegressor(loss="squared_error", numeric="quantile", interactions=None).fit(table, y)
    for written in (str, lambda one: one.isoformat()):
        engine = sqlite3.connect(":memory:")
        engine.execute("CREATE TABLE sales (k, d)")
        engine.executemany("INSERT INTO sales VALUES (?, ?)", [(k, written(one)) for k, one in enumerate(day)])
        engine.executescript(to_sql(model, table="sales", dialect="sqlite"))
        found = engine.execute("SELECT prediction FROM sales_prediction ORDER BY k").fetchall()
        np.testing.assert_allclose([row[0] for row in found], model.predict(table), rtol=1e-12)


@pytest.mark.parametrize("dialect", ["ansi", "duckdb", "sqlite"])
def test_moments_at_the_ends_of_the_calendar_are_not_missing(dialect):
    """ "Valid to" 9999-12-31 23:59:59 was in no bin, nor was the first of January of the year 1."""
    rng = np.random.default_rng(0)
    days = np.datetime64("2024-01-01") + rng.integers(0, 300, 400)
    days = days.astype("datetime64[us]")
    days[:60], days[60:100] = np.datetime64("9999-12-31T23:59:59"), np.datetime64("0001-01-01")
    days[100:130] = np.datetime64("NaT")
    X = pd.DataFrame({"valid_to": days})
    y = np.repeat([5.0, -5.0, 20.0, 0.0], [60, 40, 30, 270]) + 0.1 * rng.normal(size=400)
    model = WideRegressor(loss="squared_error").fit(X, y)
    new = X.iloc[[0, 70, 110, 200]].reset_index(drop=True)
    if dialect == "sqlite":
        base = sqlite3.connect(":memory:")
        new.astype(str).replace("NaT", None).to_sql("rows", base, index=False)
        base.executescript(to_sql(model, dialect=dialect))
        found = [row[0] for row in base.execute("SELECT prediction FROM rows_prediction")]
    else:
        found = in_duckdb(to_sql(model, dialect=dialect), new)["prediction"]
    np.testing.assert_allclose(found, model.predict(new), rtol=1e-9)


def test_the_largest_numbers_are_in_bins():
    X = pd.DataFrame({"x": np.repeat([-np.finfo(float).max, 0.5, 1.5, np.finfo(float).max], 50)})
    y = np.repeat([5.0, 0.0, 1.0, -5.0], 50) + 0.01 * np.random.default_rng(0).normal(size=200)
    model = WideRegressor(loss="squared_error").fit(X, y)
    np.testing.assert_allclose(in_duckdb(to_sql(model), X)["prediction"], model.predict(X), rtol=1e-9)


def test_sqlite_joins_no_more_than_64_tables():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({f"c{column}": rng.choice(list("abc"), 300) for column in range(70)})
    model = WideRegressor(loss="squared_error", interactions=None, alpha=0.1, count_effect=False)
    model.fit(X, rng.normal(size=300))
    with pytest.raises(ValueError, match="SQLite joins at most 64"):
        to_sql(model, dialect="sqlite")
    assert "JOIN" in to_sql(model)


def test_the_first_moment_has_the_type_of_its_column_in_bigquery():
    at = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(200) * 7, unit="h")
    for X, kind in ((pd.DataFrame({"at": at}), "DATETIME"), (pd.DataFrame({"at": at.tz_localize("UTC")}), "TIMESTAMP")):
        text = to_sql(WideRegressor(loss="squared_error").fit(X, np.arange(200.0)), dialect="bigquery")
        view = text[text.index("CREATE VIEW") :]
        assert f" AS {kind})" in view
        assert " AS DATETIME)" not in view or kind == "DATETIME"
