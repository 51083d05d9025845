"""What the tests of exports share: tables, models over all that a model can hold, and how close is equal."""

import datetime as dt
import sqlite3

import duckdb
import numpy as np
import pandas as pd

from tabsym import WideClassifier, WideRegressor, WideSGDClassifier, WideSGDRegressor

CATEGORIES = ["text", "whole", "fraction", "flag", "date"]
WITH_DAY = [*CATEGORIES, "day"]


def table(n=300, seed=0):
    """A column of each type that a model takes, and missing values in all that can have them."""
    rng = np.random.default_rng(seed)
    days = [dt.datetime(2024, 1, 1) + dt.timedelta(days=int(k)) for k in rng.integers(0, 60, n)]
    return pd.DataFrame(
        {
            "text": rng.choice(np.array(["a", "A", "it's", None, "", "--;\n", "1"], dtype=object), n),
            "whole": rng.integers(0, 5, n),
            "fraction": rng.choice([0.1, 2.5, np.nan, 1 / 3], n),
            "flag": rng.choice([True, False], n),
            "date": np.array([day.date() for day in days], dtype=object),
            "day": pd.Series(days),
            "moment": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 6 * 10**12, n), unit="us"),
            "thirds": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 100, n) / 3),
            "normal": rng.normal(size=n),
            "exposure": rng.uniform(0.5, 1.5, n),
        }
    )


def new_rows(n=120):
    """Rows with unknown categories, and missing values in all columns that can have them."""
    rows = table(n, seed=1)
    rows.loc[:20, "text"] = "never seen"
    rows.loc[5:9, "whole"] = 77
    rows.loc[10:30, "thirds"] = np.nan
    rows.loc[25:45, "fraction"] = 9.75
    rows.loc[40:50, "normal"] = np.nan
    rows.loc[55:58, "moment"] = pd.NaT
    rows.loc[59:62, "date"] = dt.date(1999, 12, 31)
    return rows


def target(X, seed=2):
    noise = np.random.default_rng(seed).normal(size=len(X))
    return noise + X["thirds"].fillna(10) / 10 + 2 * (X["text"] == "a") + X["day"].dt.day / 10


def _regressor(**options):
    return lambda: WideRegressor(**{"loss": "squared_error", "categorical_features": CATEGORIES} | options)


MODELS = {
    "defaults": (_regressor(), "number"),
    "pairs": (
        _regressor(interactions="pairwise", numeric="quantile", categorical_features=[*CATEGORIES, "day"]),
        "number",
    ),
    "slopes": (_regressor(numeric="linear"), "number"),
    "exposure": (_regressor(loss="poisson", exposure_column="exposure"), "count"),
    "offset": (_regressor(offset_column="exposure", interactions=None), "number"),
    "two classes": (lambda: WideClassifier(categorical_features=CATEGORIES), "text"),
    "three classes": (lambda: WideClassifier(categorical_features=CATEGORIES, numeric="linear"), "whole"),
    "true and false": (lambda: WideClassifier(categorical_features=CATEGORIES, count_effect=False), "flag"),
    "hinge": (lambda: WideSGDClassifier(categorical_features=CATEGORIES, loss="hinge", random_state=0), "text"),
    "online classes": (lambda: WideSGDClassifier(categorical_features=CATEGORIES, random_state=0), "whole"),
    "online": (lambda: WideSGDRegressor(categorical_features=CATEGORIES, numeric="quantile", random_state=0), "number"),
}


def fitted(name, without=()):
    """A model, on the table without some columns."""
    make, kind = MODELS[name]
    X = table()
    y, model = target(X), make()
    model.set_params(categorical_features=[one for one in model.categorical_features if one not in without])
    known = {
        "number": y,
        "count": np.maximum(y, 0).round(),
        "text": np.where(y > 2, "y'es", "no"),
        "whole": np.digitize(y, [1, 3]) * 10,
        "flag": y > 2,
    }
    return model.fit(X.drop(columns=list(without)), known[kind])


def close(found, expected, model, X):
    """Whether predictions are equal to 1e-12 of what makes the linear predictors: their spread, or larger terms."""
    spread = np.std(expected) + np.abs(model.explain(X).to_numpy()).max()
    return np.abs(np.asarray(found, dtype=np.float64) - expected).max() <= 1e-12 * spread


def scores(model, X):
    """What a model says before classes are made of it."""
    return model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)


def in_duckdb(text, X, name="rows", view="prediction", nanoseconds=False):
    """The view over a table, row by row; dates are of microseconds, as pandas 3 has them, but for `nanoseconds`."""
    base = duckdb.connect()
    dates = {} if nanoseconds else dict.fromkeys(X.select_dtypes("datetime"), "datetime64[us]")
    base.register("given", X.astype(dates).assign(**{"row number": range(len(X))}))
    quoted = name.replace('"', '""')
    base.execute(f'CREATE TABLE "{quoted}" AS SELECT * FROM given')
    for column in set(X) & {"date"}:
        base.execute(f'ALTER TABLE "{quoted}" ALTER "{column}" TYPE DATE')
    base.execute(text)
    return base.execute(f'SELECT * FROM "{quoted}_{view}" ORDER BY "row number"').df()


def in_sqlite(text, X, name="rows", view="prediction"):
    base = sqlite3.connect(":memory:")
    written = X.assign(**{"row number": range(len(X))})
    for column in written:
        if written[column].dtype.kind == "M":
            whole = not (written[column].dt.microsecond > 0).any()
            written[column] = written[column].dt.strftime("%Y-%m-%d %H:%M:%S" + ("" if whole else ".%f"))
    if "date" in written:
        written["date"] = written["date"].astype(str)
    written.to_sql(name, base, index=False)
    base.executescript(text)
    quoted = name.replace('"', '""')
    return pd.read_sql(f'SELECT * FROM "{quoted}_{view}" ORDER BY "row number"', base)
