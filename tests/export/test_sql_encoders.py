"""`to_sql` of encoders: views that encode as `transform` does, on DuckDB and SQLite."""

import numpy as np
import pandas as pd
import pytest
import sqlglot

from tabsym import CrossFit, MODLEncoder, OneHotEncoder, TIWSEncoder, WideEncoder, WideRegressor
from tabsym.export import to_sql
from tests.exported import in_duckdb, in_sqlite, new_rows, table, target

COLUMNS = ["text", "whole", "fraction", "flag", "thirds", "normal"]
ENCODERS = {
    "groups": MODLEncoder(),
    "parts as NaN": MODLEncoder(handle_missing="return_nan", handle_unknown="return_nan"),
    "shares": MODLEncoder(output="probability", handle_missing="return_nan"),
    "log odds": MODLEncoder(output="logodds", handle_unknown="missing"),
    "parts as columns": MODLEncoder(output="onehot", handle_unknown="return_nan", drop_invariant=True),
    "numbers of parts": MODLEncoder(return_df=False, criterion="page"),
    "one-hot": OneHotEncoder(cols=["text", "flag"]),
    "one-hot of NaN": OneHotEncoder(
        cols=["text", "fraction"], handle_missing="return_nan", handle_unknown="return_nan"
    ),
    "indicator": OneHotEncoder(cols=["text", "whole"], handle_unknown="indicator", handle_missing="indicator"),
    "coefficients": WideEncoder(cols=["text", "flag", "fraction"]),
    "estimates": TIWSEncoder(cols=["text"], handle_unknown="return_nan", handle_missing="return_nan"),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_a_view_encodes_as_transform_does(name):
    X, new = table(200)[COLUMNS], new_rows()[COLUMNS]
    encoder = ENCODERS[name].fit(X, target(table(200)) > 2)
    expected = pd.DataFrame(encoder.transform(new))
    text = to_sql(encoder, keep=["row number"])
    for engine in (in_duckdb, in_sqlite):
        view = engine(text, new, view="encoded")
        assert list(view) == ["row number", *encoder.get_feature_names_out()]
        for place, column in enumerate(expected):
            found, own = view.iloc[:, place + 1], expected[column]
            if isinstance(own.dtype, pd.CategoricalDtype) or own.dtype.kind in "OTU" or str(own.dtype) == "str":
                assert found.fillna("none").tolist() == own.astype(object).fillna("none").tolist(), column
            else:
                np.testing.assert_allclose(
                    found.to_numpy(np.float64, na_value=np.nan), own.to_numpy(np.float64), rtol=1e-12, atol=1e-12
                )


def test_dates_and_names_that_are_no_code():
    X, new = table(200)[["day", "moment", "text"]], new_rows()[["day", "moment", "text"]]
    X, new = (one.set_axis(["day", "moment", '"; DROP'], axis=1) for one in (X, new))
    encoder = MODLEncoder().fit(X, target(table(200)) > 2)
    view = in_duckdb(to_sql(encoder, keep=["row number"]), new, view="encoded")
    for column in X:
        assert view[column].tolist() == encoder.transform(new)[column].tolist()


@pytest.mark.parametrize("dialect", ["postgres", "snowflake", "bigquery", "tsql", "spark"])
def test_other_dialects_are_read_by_sqlglot(dialect):
    X = table(200)[["text", "thirds"]]
    encoder = MODLEncoder(output="logodds").fit(X, target(table(200)) > 2)
    text = to_sql(encoder, "a.rows", dialect)
    parsed = [one for part in text.split("GO\n") for one in sqlglot.parse(part, read=dialect)]
    assert all(isinstance(one, (sqlglot.exp.Create, sqlglot.exp.Insert)) for one in parsed if one is not None)


def test_what_a_view_cannot_do_is_refused():
    X, y = table(100)[["text", "thirds"]], target(table(100)) > 2
    with pytest.raises(
        ValueError, match="handle_unknown='error' raises an error for unknown categories of column 'text'"
    ):
        to_sql(MODLEncoder(handle_unknown="error").fit(X, y))
    with pytest.raises(ValueError, match="two columns 'text'; leave that out of keep"):
        to_sql(MODLEncoder().fit(X, y), keep=["text"])
    nothing = OneHotEncoder(drop_invariant=True).fit(pd.DataFrame({"a": list("kkkk")}))
    with pytest.raises(ValueError, match=r"makes no column, .* name columns to keep, or fit"):
        to_sql(nothing)
    assert to_sql(nothing, keep=["a"])
    with pytest.raises(ValueError, match="whole rows, which is no lookup"):
        to_sql(TIWSEncoder(cols=["text"]).fit(X, y))
    with pytest.raises(TypeError, match="CrossFit is no wide model"):
        to_sql(CrossFit(WideEncoder(cols=["text"])).fit(X, y))
    with pytest.raises(ValueError, match="keep is for encoders"):
        to_sql(WideRegressor(loss="squared_error").fit(X, np.arange(100.0)), keep=["text"])
