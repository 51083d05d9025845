"""`to_spec` and `from_spec`: JSON that predicts as the model does, with numpy alone."""

import ast
import io
import json
import shutil
import subprocess
import sys
import tokenize
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from tabsym import (
    DateParts,
    MODLEncoder,
    OneHotEncoder,
    TIWSEncoder,
    WideClassifier,
    WideEncoder,
    WideRegressor,
    WideSGDRegressor,
)
from tabsym.export import from_spec, spec_schema, to_onnx, to_spec, to_sql
from tests.exported import CATEGORIES, MODELS, close, fitted, in_duckdb, new_rows, scores, table, target
from tests.formulas import random_formula, random_table
from tests.oracles.onnx_runs import run

SCORER = Path(sys.modules["tabsym.export.spec"].__file__).with_name("from_spec.py")
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "number": (int, float)}


def violations(value, schema, root, where="spec"):
    """What of a value a JSON Schema does not allow: of the words of a schema, those that ours has."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    if "oneOf" in schema and sum(not violations(value, one, root) for one in schema["oneOf"]) != 1:
        return [f"{where} is none of oneOf, or several"]
    if "const" in schema and value != schema["const"]:
        return [f"{where} is not {schema['const']}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where} is not in {schema['enum']}"]
    kinds = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", [])
    if kinds and not any(is_kind(value, kind) for kind in kinds):
        return [f"{where} is a {type(value).__name__}"]
    found = [f"{where} lacks {name}" for name in schema.get("required", ()) if name not in value]
    if isinstance(value, dict):
        known = schema.get("properties", {})
        if schema.get("additionalProperties", True) is False:
            found += [f"{where} has {name}" for name in value if name not in known]
        for name in set(value) & set(known):
            found += violations(value[name], known[name], root, f"{where}.{name}")
    if isinstance(value, list) and "items" in schema:
        for index, one in enumerate(value):
            found += violations(one, schema["items"], root, f"{where}[{index}]")
    return found


def is_kind(value, kind):
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def through_json(model):
    """The spec of a model as it comes out of a file, after a look at the schema."""
    spec = json.loads(json.dumps(to_spec(model), allow_nan=False))
    assert not violations(spec, spec_schema(), spec_schema())
    return spec


@pytest.mark.parametrize("name", MODELS)
def test_a_spec_predicts_as_the_model_does(name):
    model, new = fitted(name), new_rows()
    scorer = from_spec(through_json(model))
    own = scorer.decision_function(new) if hasattr(model, "classes_") else scorer.predict(new)
    assert close(own, scores(model, new), model, new)
    if hasattr(model, "classes_"):
        np.testing.assert_array_equal(scorer.predict(new), model.predict(new))
        np.testing.assert_array_equal(scorer.classes_, model.classes_)
        assert [type(one) for one in scorer.classes_.tolist()] == [type(one) for one in model.classes_.tolist()]
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(scorer.predict_proba(new), model.predict_proba(new), rtol=0, atol=1e-13)
    else:
        with pytest.raises(AttributeError, match="no probabilities"):
            scorer.predict_proba(new)


def test_count_effects_of_terms_times_a_number():
    """The two are one lookup in what is written: the term, times its number, and the effect of its counts."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(60, 300).astype(str)})
    y = 2.0 * rng.normal(size=60)[X["a"].astype(int)] + rng.normal(0.0, 0.5, 300)
    model = WideRegressor("2*f[a] + c[1]", loss="squared_error").fit(X, y)
    assert "count of f" in model.coefs_
    new = pd.DataFrame({"a": [*map(str, range(60)), "never seen"]})
    np.testing.assert_allclose(from_spec(to_spec(model)).predict(new), model.predict(new), rtol=1e-12)


@pytest.mark.filterwarnings("ignore:The formula of", "ignore:.* ended short of the optimum", "ignore:Training stopped")
@pytest.mark.parametrize("seed", range(30))
def test_random_formulas(seed):
    rng = np.random.default_rng(seed)
    tree, X, new = random_formula(rng), random_table(rng, 100), random_table(rng, 60)
    y = X["x"] + (X["a"] == "k") + rng.normal(size=len(X)) / 3
    online = WideSGDRegressor(str(tree), max_iter=2, random_state=0)
    model = (online if seed % 2 else WideRegressor(str(tree), loss="squared_error", max_iter=5)).fit(X, y)
    new.loc[:5, "a"], new.loc[3:9, "c"], new.loc[20:25, "b"] = "zz", "zz", None
    assert close(from_spec(through_json(model)).predict(new), model.predict(new), model, new)


DEVELOPMENT = {
    "amazon": "ACTION",
    "adult": "income",
    "usedcars": "price_usd",
    "titanic": "Survived",
    "kick": "IsBadBuy",
    "chicago_taxi": "tips",
    "rossmann": "Sales",
    "covtype_small": "Cover_Type",
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Column .* look like codes")
@pytest.mark.parametrize("name", DEVELOPMENT)
def test_development_tables(name, data_folder):
    rows = pd.read_parquet(Path(data_folder) / f"{name}.parquet").sample(frac=1, random_state=0).iloc[:2400]
    rows = rows.reset_index(drop=True)
    X, y = rows.drop(columns=DEVELOPMENT[name]), rows[DEVELOPMENT[name]]
    known = y.notna()
    is_class, half = y.nunique() < 20, len(X) // 2
    model = WideClassifier() if is_class else WideRegressor(loss="squared_error")
    model.fit(X[known][:half], y[known][:half])
    new = X[half:].reset_index(drop=True)  # in which some categories are unknown
    expected = scores(model, new)
    own = from_spec(through_json(model))
    assert close(own.decision_function(new) if is_class else own.predict(new), expected, model, new)
    view = in_duckdb(to_sql(model), new)
    columns = [one for one in view if str(one).startswith("score")] if is_class else ["prediction"]
    assert close(view[columns].to_numpy().reshape(expected.shape), expected, model, new)
    found = run(to_onnx(model), new)
    if is_class:
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(new), rtol=0, atol=1e-12)
    else:
        assert close(found["variable"][:, 0], expected, model, new)


def test_the_file_is_small_and_needs_numpy_alone(tmp_path):
    """It is copied to where nothing else is found, and predicts there."""
    text = SCORER.read_text()
    assert code_lines(text) <= 150
    model, new = fitted("defaults"), new_rows(40)
    shutil.copy(SCORER, tmp_path / "scorer.py")
    (tmp_path / "model.json").write_text(json.dumps(to_spec(model)))
    rows = {name: [None if pd.isna(one) else str(one) if name in ("day", "moment") else one for one in new[name]]
            for name in new.columns.drop("date")}  # fmt: skip
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    program = (
        "import json, sys; from scorer import from_spec; import datetime\n"
        "rows = json.load(open('rows.json'))\n"
        f"rows['date'] = [datetime.date.fromordinal(one) for one in {[one.toordinal() for one in new['date']]}]\n"
        "print(json.dumps(from_spec(json.load(open('model.json'))).predict(rows).tolist()))\n"
        "heavy = {'tabsym', 'pandas', 'scipy', 'sklearn', 'numba', 'narwhals'}\n"
        "assert not heavy & {name.partition('.')[0] for name in sys.modules}\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False, env={}
    )
    assert done.returncode == 0, done.stderr
    assert close(json.loads(done.stdout), model.predict(new), model, new)


def code_lines(text):
    """Lines without docstrings, comments and blanks."""
    documented = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            documented |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    layout = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return len({line for t in tokens if t.type not in layout for line in range(t.start[0], t.end[0] + 1)} - documented)


def test_the_schema_refuses_what_is_no_spec():
    spec = to_spec(fitted("slopes"))
    for change in (
        {"tabsym_spec": 2},
        {"link": "probit"},
        {"terms": None},
        {"more": 1},
        {"columns": [{"name": "x", "type": "colour"}]},
        {"codings": [{"categories": ["a"], "bounds": []}]},
    ):
        assert violations(spec | change, spec_schema(), spec_schema()), change
    with pytest.raises(ValueError, match="version 2, and this file reads 1"):
        from_spec(spec | {"tabsym_spec": 2})


@pytest.mark.parametrize(
    "values", [["1", "2"], [1, 2], [1.0, 2.5], [True, False]], ids=["text", "int", "float", "bool"]
)
def test_categories_of_other_types_are_unknown(values):
    """1, "1" and True stay apart; 1 and 1.0 are equal."""
    X = pd.DataFrame({"c": pd.Series(values * 20, dtype=object)})
    model = WideRegressor(loss="squared_error", categorical_features="all", alpha=0.0).fit(X, [0.0, 10.0] * 20)
    scorer = from_spec(through_json(model))
    middle = scorer.predict({"c": ["neither"]})[0]
    for other in ("1", 1, 1.0, True, np.int32(1), np.bool_(True), np.str_("1")):
        is_same = other == values[0] and isinstance(other, (bool, np.bool_)) == isinstance(values[0], bool)
        assert (scorer.predict({"c": [other]})[0] != middle) == is_same, other


def test_bounds_of_bins_are_exact_and_belong_below():
    X = pd.DataFrame({"x": np.arange(400) % 97 / 3})
    model = WideRegressor(loss="squared_error").fit(X, np.sin(X["x"]))
    spec = through_json(model)
    bounds = spec["codings"][0]["bounds"]
    below = np.unique(X["x"])[np.searchsorted(np.unique(X["x"]), bounds, side="right") - 1]
    assert len(bounds) > 30
    np.testing.assert_allclose(bounds, below, rtol=1e-13)  # a value each, with 14 digits, rounded up
    edges = {"x": [*bounds, *np.nextafter(bounds, np.inf), *np.nextafter(bounds, -np.inf)]}
    np.testing.assert_allclose(from_spec(spec).predict(edges), model.predict(pd.DataFrame(edges)), rtol=1e-14)


@pytest.mark.parametrize(
    "kind", ["frame", "polars", "arrow", "pyarrow", "arrays", "columns", "records", "array", "category"]
)
def test_rows_come_in_any_form(kind):
    X = pd.DataFrame({"s": ["a", "b", None, "c"] * 20, "x": [1.5, np.nan, 3.0, 4.0, 5.0] * 16})
    model = WideRegressor(loss="squared_error").fit(X, X["x"].fillna(0) + (X["s"] == "a"))
    new = pd.DataFrame({"s": ["a", None, "zz"], "x": [np.nan, 2.0, 9.0]})
    rows = {
        "frame": lambda: new,
        "polars": lambda: pl.from_pandas(new),
        "arrow": lambda: pd.DataFrame({"s": new["s"].astype("string[pyarrow]"), "x": new["x"].astype("Float64")}),
        "pyarrow": lambda: pa.Table.from_pandas(new),
        "arrays": lambda: {"x": pa.array(new["x"], from_pandas=True), "s": pa.array(new["s"]).dictionary_encode()},
        "columns": lambda: {"x": new["x"].to_numpy(), "s": new["s"].tolist(), "more": [1, 2, 3]},
        "records": lambda: [{"x": None, "s": "a", "more": 1}, {"s": None, "x": 2.0}, {"s": "zz", "x": 9}],
        "array": lambda: new.to_numpy(dtype=object),
        "category": lambda: new.astype({"s": "category"}),
    }[kind]()
    np.testing.assert_allclose(from_spec(through_json(model)).predict(rows), model.predict(new), rtol=1e-14)
    assert from_spec(to_spec(model)).predict([]).shape == (0,)


LABELS = {
    "whole numbers": [0, 1],
    "numpy's": [np.int64(7), np.int64(3)],
    "pairs": [("a", "x"), ("b", 2)],
    "index of pairs": pd.MultiIndex.from_tuples([("a", "x"), ("b", "y")]),
    "booleans": [True, False],
}


@pytest.mark.parametrize("labels", LABELS)
def test_labels_of_columns_that_are_no_text(labels):
    X = pd.DataFrame({"s": list("abab") * 10, "x": np.arange(40.0)}).set_axis(LABELS[labels], axis=1)
    model = WideRegressor(loss="squared_error").fit(X, np.arange(40.0) + 3 * (X.iloc[:, 0] == "a"))
    spec, expected = through_json(model), model.predict(X)
    for rows in (X, {label: X[label] for label in X}, X.to_dict("records"), X.to_numpy()):
        np.testing.assert_allclose(from_spec(spec).predict(rows), expected, rtol=1e-14)
    encoder = OneHotEncoder().fit(X)
    assert close_columns(from_spec(through_json(encoder)).transform(X), encoder.transform(X))


def close_columns(found, frame):
    return np.array_equal(np.column_stack(list(found.values())).astype(float), frame.to_numpy(dtype=float))


@pytest.mark.parametrize("labels", [["s", "x"], [0, 1]])
def test_a_series_and_a_mapping_to_values_are_rows(labels):
    X = pd.DataFrame({"s": list("abab") * 10, "x": np.arange(40.0)}).set_axis(labels, axis=1)
    model = WideRegressor(loss="squared_error").fit(X, np.arange(40.0) + 3 * (X.iloc[:, 0] == "a"))
    scorer = from_spec(through_json(model))
    np.testing.assert_allclose(scorer.predict(X.iloc[3]), model.predict(X.iloc[[3]]), rtol=1e-14)
    np.testing.assert_allclose(scorer.predict([X.iloc[3], X.iloc[5]]), model.predict(X.iloc[[3, 5]]), rtol=1e-14)
    for row in (X.iloc[3].to_dict(), {"more": "abc", **X.iloc[3].to_dict()}):
        np.testing.assert_allclose(scorer.predict(row), model.predict(X.iloc[[3]]), rtol=1e-14)


@pytest.mark.parametrize("wrong", [None, "model.json", 1, [], {"tabsym_spec": 2}], ids=str)
def test_what_is_no_spec_is_refused(wrong):
    with pytest.raises(ValueError, match="this file reads 1; pass what to_spec made"):
        from_spec(wrong)


def test_wrong_rows_are_refused():
    model = fitted("exposure")
    scorer = from_spec(to_spec(model))
    with pytest.raises(ValueError, match="no finite score"):
        scorer.predict(new_rows().assign(exposure=0.0))
    with pytest.raises(ValueError, match="'thirds' contains infinity"):
        scorer.predict(new_rows().assign(thirds=np.inf))
    with pytest.raises(TypeError, match="is text where a number is needed"):
        scorer.predict(new_rows().assign(thirds="3"))
    with pytest.raises(KeyError, match="thirds"):
        scorer.predict(new_rows().drop(columns="thirds"))


def test_unknown_categories_that_are_an_error():
    model = WideRegressor(loss="squared_error", handle_unknown="error", categorical_features=CATEGORIES)
    X = table()
    model.fit(X, target(X))
    scorer = from_spec(through_json(model))
    np.testing.assert_allclose(scorer.predict(X), model.predict(X), rtol=1e-12)
    with pytest.raises(ValueError, match="'text' holds a category that was not seen"):
        scorer.predict(X.assign(text="zz"))


def test_what_is_no_lookup_is_refused():
    X = table()[["text", "whole", "normal"]]
    y = target(table())
    similar = WideRegressor(loss="squared_error", handle_unknown="similar", interactions=None).fit(X, y)
    with pytest.raises(ValueError, match=r"term 'text' from its whole row, which is no lookup; set_params\(handle_unk"):
        to_spec(similar)
    to_spec(similar.set_params(handle_unknown="neutral"))
    with pytest.raises(TypeError, match="PCA is no wide model"):
        to_spec(PCA().fit([[1.0, 2.0], [2.0, 3.0]]))
    with pytest.raises(TypeError, match="Step 'onehotencoder' of the pipeline is a OneHotEncoder"):
        to_spec(make_pipeline(OneHotEncoder(), WideRegressor(loss="squared_error")).fit(X, y))
    with pytest.warns(UserWarning, match="fitted with offset=, which an export does not hold"):
        to_spec(WideRegressor(loss="squared_error").fit(X, y, offset=np.ones(len(y))))
    periods = pd.DataFrame({"p": pd.period_range("2024-01", periods=12, freq="M").astype(object).tolist() * 5})
    with pytest.raises(ValueError, match="has the type Period, which JSON does not hold"):
        to_spec(WideRegressor(loss="squared_error", alpha=0.0).fit(periods, np.arange(60.0)))


def test_count_effects_are_in_the_categories_and_in_the_default():
    """Of an unknown category the count is 0: the table's default is what the model adds for it."""
    rng = np.random.default_rng(0)
    counts = np.repeat(np.arange(200), rng.integers(1, 6, 200))
    X = pd.DataFrame({"c": [f"c{one}" for one in counts]})
    y = np.bincount(counts)[counts] + rng.normal(size=len(X)) / 2
    model = WideRegressor(loss="squared_error").fit(X, y)
    assert "count of c" in model.coefs_
    spec = through_json(model)
    assert [one["name"] for one in spec["tables"] if one["codings"]] == ["c"]
    (own,) = [one for one in spec["tables"] if one["codings"]]
    new = pd.DataFrame({"c": ["unknown"]})
    assert own["default"][0] == pytest.approx(model.predict(new)[0] - model.coefs_["(intercept)"]["value"].iloc[0])
    assert own["default"][0] < 0.0


@pytest.mark.parametrize("typed", [True, False], ids=["moments", "text"])
def test_parts_of_dates(typed):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"at": pd.Timestamp("2023-12-20") + pd.to_timedelta(rng.integers(0, 10**8, 400), unit="s")})
    X.loc[3:6, "at"] = pd.NaT
    y = X["at"].dt.month.fillna(3) + X["at"].dt.hour.fillna(1) / 3 + X["at"].dt.day_of_week.fillna(2)
    X = X if typed else X.assign(at=X["at"].dt.strftime("%d.%m.%Y %H:%M:%S"))
    model = make_pipeline(DateParts(), WideRegressor(loss="squared_error")).fit(X, y)
    assert {"month", "weekday", "hour"} <= {one.get("part") for one in through_json(model)["columns"]}
    np.testing.assert_allclose(from_spec(through_json(model)).predict(X), model.predict(X), rtol=1e-12)


def test_dates_with_and_without_a_zone_and_nanoseconds():
    stamps = pd.to_datetime(["2024-01-01 10:00:00.000000001", "2024-06-01 12:30:00.0"] * 20, format="ISO8601")
    X = pd.DataFrame({"zone": stamps.tz_localize("Europe/Berlin").floor("us"), "naive": stamps})
    for numeric in ("linear", "quantile"):
        model = WideRegressor(loss="squared_error", numeric=numeric).fit(X, [1.0, 2.0] * 20)
        np.testing.assert_allclose(from_spec(through_json(model)).predict(X), model.predict(X), rtol=1e-12)
    model = WideRegressor(loss="squared_error", categorical_features="all").fit(X, [1.0, 2.0] * 20)
    spec = through_json(model)
    np.testing.assert_allclose(from_spec(spec).predict(X), model.predict(X), rtol=1e-12)
    near = X.assign(naive=X["naive"].dt.floor("us"))  # another moment
    assert from_spec(spec).predict(near)[0] != from_spec(spec).predict(X)[0]


# -- encoders -----------------------------------------------------------------------------------------


def columns_equal(found, expected):
    assert list(found) == list(expected.columns)
    for name in expected:
        column = expected[name]
        if pd.api.types.is_numeric_dtype(column) and not isinstance(column.dtype, pd.CategoricalDtype):
            np.testing.assert_allclose(np.asarray(found[name], dtype=float), column.to_numpy(dtype=float), rtol=1e-14)
        else:
            assert [None if pd.isna(one) else one for one in found[name]] == [
                None if pd.isna(one) else one for one in column.astype(object)
            ]


def encoder_table(seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "s": rng.choice(np.array(["a", "b", "c", None, "d"], dtype=object), 400, p=[0.4, 0.3, 0.15, 0.1, 0.05]),
            "i": rng.integers(0, 9, 400),
            "x": np.where(rng.random(400) < 0.1, np.nan, rng.normal(size=400)),
        }
    )
    return X, np.digitize(X["x"].fillna(0) + (X["s"] == "a"), [0, 0.7])


def encoder_rows():
    new = encoder_table(1)[0]
    new.loc[:20, "s"], new.loc[30:50, "s"], new.loc[40:70, "x"], new.loc[5:9, "i"] = "zz", None, np.nan, 99
    return new


ENCODERS = [
    *(MODLEncoder(output=output, handle_missing=missing, handle_unknown=unknown)
      for output in ("group", "onehot", "probability") for missing in ("value", "return_nan")
      for unknown in ("value", "missing", "return_nan")),
    MODLEncoder(output="logodds"), MODLEncoder(output="onehot", drop_invariant=True),
    MODLEncoder(output="probability", splits={"s": [["a", "b"]], "x": [0, 0.7]}, special_codes={"i": [0, [3, 99]]}),
    *(OneHotEncoder(handle_missing=missing, handle_unknown=unknown, cols=["s", "i"], **options)
      for missing in ("value", "indicator", "return_nan", "ignore") for unknown in ("value", "indicator", "return_nan")
      for options in ({}, {"drop": "first"}, {"max_categories": 3, "drop_invariant": True})),
    *(WideEncoder(handle_missing=missing, handle_unknown=unknown, cols=["s", "i"])
      for missing in ("value", "return_nan") for unknown in ("value", "return_nan")),
    TIWSEncoder(handle_missing="return_nan", handle_unknown="return_nan", cols=["s", "i"]),
    TIWSEncoder(handle_missing="return_nan", handle_unknown="return_nan", cols=["s"], indicator=True),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda one: "".join(str(one).split()))
def test_encoders(encoder):
    X, y = encoder_table()
    encoder.fit(X, y)
    columns_equal(from_spec(through_json(encoder)).transform(encoder_rows()), encoder.transform(encoder_rows()))


def test_encoders_that_are_no_lookup_are_refused():
    X, y = encoder_table()
    with pytest.raises(ValueError, match=r"column 's' from their whole rows.*set_params\(handle_unknown='return_nan'"):
        to_spec(TIWSEncoder(cols=["s"]).fit(X, y))
    with pytest.raises(ValueError, match="'similar' finds the group of an unknown category of column 's'"):
        to_spec(MODLEncoder(handle_unknown="similar").fit(X, y))
    with pytest.raises(ValueError, match="handle_missing='error' raises an error for missing values of column 'i'"):
        to_spec(OneHotEncoder(handle_missing="error", cols=["i"]).fit(X))
    with pytest.raises(ValueError, match="'x' have bounds that 64-bit floats round"):
        large = pd.DataFrame({"x": 2**53 + np.arange(200)})
        to_spec(MODLEncoder().fit(large, np.arange(200) % 200 > 101))
    with pytest.raises(TypeError, match="DateParts is no encoder whose columns are lookup tables"):
        to_spec(DateParts().fit(X))


def test_an_encoder_that_refuses_unknown_categories():
    X, _ = encoder_table()
    encoder = OneHotEncoder(handle_unknown="error", cols=["s"]).fit(X)
    scorer = from_spec(through_json(encoder))
    columns_equal(scorer.transform(X), encoder.transform(X))
    with pytest.raises(ValueError, match="'s' holds a category that was not seen"):
        scorer.transform(encoder_rows())
