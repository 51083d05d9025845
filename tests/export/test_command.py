"""``tabsym export`` and ``tabsym predict``, of saved models and of winners of comparisons."""

import json
import re

import duckdb
import numpy as np
import onnx
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from tabsym import (
    MODLEncoder,
    OneHotEncoder,
    SelectiveNaiveBayesClassifier,
    WideBoostRegressor,
    WideClassifier,
    WideEncoder,
    WideRegressor,
    save,
)
from tabsym.cli import main
from tabsym.compare.comparison import train_best
from tabsym.compare.contenders import all_contenders
from tabsym.compare.metrics import choose_metric
from tabsym.compare.splits import SplitPlan
from tabsym.compare.table.files import ReadOptions
from tabsym.compare.table.prepare import RoleColumns, prepare
from tabsym.export import from_spec, to_onnx, to_spec, to_sql
from tests.oracles.excel_formulas import Book
from tests.oracles.onnx_runs import run

PLAN = SplitPlan("random", None, 2, 1, 0)


def sales(n=300, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "store": rng.integers(1, 30, n),
            "colour": rng.choice(["red", "blue"], n),
            "at": (pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 600, n), unit="D")).strftime(
                "%Y-%m-%d"
            ),
            "price": np.where(rng.random(n) < 0.1, np.nan, rng.gamma(2.0, 9.0, n)),
            "days": rng.integers(1, 9, n),
        }
    )
    frame["sold"] = rng.poisson(frame["days"] * (1 + (frame["colour"] == "red") + frame["store"] % 3))
    return frame


@pytest.fixture
def saved(tmp_path):
    X = sales().drop(columns=["sold", "days", "at"])
    y = np.where(sales()["sold"] > 8, "many", "few")
    model = WideClassifier(categorical_features=["store", "colour"]).fit(X, y)
    return model, X, save(model, tmp_path / "best.tabsym")


def test_export_writes_each_kind(saved, tmp_path, capsys):
    model, X, path = saved
    for to in ("json", "sql", "xlsx", "onnx"):
        assert main(["export", str(path), "--to", to]) == 0
        assert capsys.readouterr().out == f"{tmp_path / 'best'}.{to}\n"
    spec = json.loads((tmp_path / "best.json").read_text())
    assert spec == json.loads(json.dumps(to_spec(model)))
    assert (from_spec(spec).predict(X) == model.predict(X)).all()
    assert onnx.load(tmp_path / "best.onnx") == to_onnx(model)
    assert (tmp_path / "best.sql").read_text(encoding="utf-8") == to_sql(model)
    book = Book(tmp_path / "best.xlsx")
    book.type_in({"store": 3, "colour": "red", "price": 10.0})
    row = pd.DataFrame({"store": [3], "colour": ["red"], "price": [10.0]})
    assert book.result("linear predictor") == pytest.approx(model.decision_function(row)[0])
    assert main(["export", str(path), "--to", "json", "--base", "largest"]) == 2
    assert "--base is for --to xlsx and --to csv" in capsys.readouterr().err
    assert main(["export", str(path), "--to", "csv", "--base", "largest", "--out", str(tmp_path / "to base")]) == 0
    based = pd.read_csv(tmp_path / "to base" / "1 store.csv")
    assert based["coefficient"][based["rows"].idxmax()] == 0.0 and (based["coefficient"] != 0.0).sum() > 1
    assert capsys.readouterr().out == f"{tmp_path / 'to base'}\n"
    assert main(["export", str(path), "--to", "csv"]) == 0
    folder = tmp_path / "best-rates"
    assert capsys.readouterr().out == f"{folder}\n" and (folder / "1 store.csv").exists()
    own = tmp_path / "other.txt"
    assert main(["export", str(path), "--to", "sql", "--table", "x.y", "--dialect", "spark", "--out", str(own)]) == 0
    assert own.read_text(encoding="utf-8") == to_sql(model, "x.y", "spark")


def test_export_says_what_is_wrong(saved, tmp_path, capsys):
    _, _, path = saved
    for arguments, words in (
        (["--to", "json", "--dialect", "spark"], "--dialect is for --to sql; leave it out"),
        (["--to", "xlsx", "--table", "t"], "--table is for --to sql; leave it out"),
        (["--to", "sql", "--dialect", "oracle"], "dialect='oracle' is not known"),
    ):
        assert main(["export", str(path), *arguments]) == 2
        assert words in capsys.readouterr().err
    assert main(["export", str(tmp_path / "nowhere.skops"), "--to", "json"]) == 2
    assert "nowhere.skops" in capsys.readouterr().err


def test_predict_writes_the_rows_with_their_predictions(saved, tmp_path, capsys):
    model, X, path = saved
    table, out = tmp_path / "new.csv", tmp_path / "out.csv"
    X.to_csv(table, index=False)
    assert main(["predict", str(path), str(table)]) == 0
    text = capsys.readouterr().out
    assert main(["predict", str(path), str(table), "--out", str(out)]) == 0
    assert out.read_text() == text and capsys.readouterr().out == ""
    found = pd.read_csv(out)
    assert list(found) == [*X, "probability_few", "probability_many", "prediction"]
    assert (found["prediction"] == model.predict(X)).all()
    np.testing.assert_allclose(found["probability_many"], model.predict_proba(X)[:, 1], rtol=1e-12)
    X.assign(prediction=1).to_csv(table, index=False)
    assert main(["predict", str(path), str(table)]) == 2
    assert "has a column 'prediction'" in capsys.readouterr().err


def winner(frame, target, task, *, reading=None, name="wide", **roles):
    prepared = prepare(frame, target, task=task, reading=reading, roles=RoleColumns(**roles))
    return train_best(all_contenders()[name], prepared, PLAN, choose_metric(task, None), None, 0, 1)


@pytest.mark.parametrize("task", ["count", "regression", "binary"])
def test_winners_of_comparisons(task, tmp_path):
    frame = sales()
    frame = frame if task != "binary" else frame.assign(sold=np.where(frame["sold"] > 8, "many", "few"))
    roles = {"count": {"exposure": "days"}, "regression": {"offset": "days"}, "binary": {}}[task]
    best = winner(frame, "sold", task, reading=ReadOptions(categorical=["store"]), **roles)
    new = sales(seed=1)
    path = best.save(tmp_path / "best.tabsym")
    if task == "regression" and best.estimator.loss_ != "squared_error":
        with pytest.raises(ValueError, match="log link plus the offset 'days'"):
            to_spec(best)
        return
    assert main(["export", str(path), "--to", "json"]) == 0
    scorer = from_spec(json.loads((tmp_path / "best.json").read_text()))
    base = duckdb.connect()
    base.register("given", new.assign(number=range(len(new))))
    base.execute("CREATE TABLE rows AS SELECT * FROM given")
    base.execute(to_sql(best))
    view = base.execute("SELECT prediction FROM rows_prediction ORDER BY number").df()["prediction"]
    expected = best.predict(new)
    if task == "binary":
        assert (scorer.predict(new) == expected).all() and (view == expected).all()
        np.testing.assert_allclose(scorer.predict_proba(new), best.predict_proba(new), atol=1e-12)
    else:
        np.testing.assert_allclose(scorer.predict(new), expected, rtol=1e-10)
        plain = new.assign(at=new["at"].astype(str)) if "at" in scorer.spec["features"] else new
        by_row = json.loads(plain[scorer.spec["features"]].to_json(orient="records"))
        assert "days" in scorer.spec["features"]
        np.testing.assert_allclose(scorer.predict(by_row), expected, rtol=1e-10)  # what features names suffices
        np.testing.assert_allclose(view, expected, rtol=1e-10)


@pytest.mark.parametrize("task", ["count", "multiclass"])
def test_winners_as_onnx_take_categories_as_text(task, tmp_path):
    frame, new = sales().drop(columns="at"), sales(seed=1)
    frame = frame if task == "count" else frame.assign(sold=np.digitize(frame["sold"], [5, 10]))
    roles = {"exposure": "days"} if task == "count" else {}
    best = winner(frame, "sold", task, reading=ReadOptions(categorical=["store"]), **roles)
    assert main(["export", str(best.save(tmp_path / "best.tabsym")), "--to", "onnx"]) == 0
    found = run(onnx.load(tmp_path / "best.onnx"), new.assign(store=new["store"].astype(str)))
    if task == "count":
        np.testing.assert_allclose(found["variable"][:, 0], best.predict(new), rtol=1e-12)
    else:
        assert found["label"].tolist() == best.predict(new).tolist()
        np.testing.assert_allclose(found["probabilities"], best.predict_proba(new), atol=1e-12)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("hist-gradient-boosting", "is no wide model"),
        ("onehot-linear", "is no wide model"),
    ],
)
def test_winners_that_have_no_onnx(name, words, tmp_path, capsys):
    frame = sales(120).drop(columns=["at", "days"])
    path = winner(frame, "sold", "count", name=name).save(tmp_path / "best.skops")
    assert main(["export", str(path), "--to", "onnx"]) == 2
    assert words in capsys.readouterr().err and not (tmp_path / "best.onnx").exists()


@pytest.mark.slow
def test_winners_that_read_text_take_numbers(tmp_path, capsys):
    """From a CSV file of "$1,234.00", dates and several classes to each export and to predictions."""
    amounts = np.random.default_rng(5).gamma(2.0, 900.0, 300)
    frame = sales().assign(price=[f"${one:,.2f}" for one in amounts]).drop(columns="days")
    frame.loc[::17, "price"] = None
    kinds = np.array(["low", "mid", "top"])[np.digitize(amounts + 300 * (frame["colour"] == "red"), [1_200, 2_400])]
    frame = frame.assign(sold=kinds)
    frame.to_csv(tmp_path / "new.csv", index=False)
    best = winner(frame, "sold", "multiclass", reading=ReadOptions(categorical=["store"]))
    path, numbers = str(best.save(tmp_path / "best.tabsym")), frame.assign(price=np.round(amounts, 2))
    numbers.loc[::17, "price"] = np.nan
    for to in ("json", "sql", "xlsx", "csv", "onnx"):
        assert main(["export", path, "--to", to]) == 0
        assert re.search(
            r"Column 'price' was read from text such as '\$.*', and the export takes numbers; make that \d+\.\d+ where",
            capsys.readouterr().err,
        )
    shares = best.predict_proba(frame)
    scorer = from_spec(json.loads((tmp_path / "best.json").read_text()))
    np.testing.assert_allclose(scorer.predict_proba(numbers), shares, atol=1e-12)
    base = duckdb.connect()
    base.register("given", numbers.assign(number=range(len(numbers))))
    base.execute("CREATE TABLE rows AS SELECT * FROM given")
    base.execute((tmp_path / "best.sql").read_text(encoding="utf-8"))
    view = base.execute("SELECT * FROM rows_prediction ORDER BY number").df()
    names = [f"probability_{one}" for one in best.classes_]
    np.testing.assert_allclose(view[names], shares, atol=1e-12)
    assert (view["prediction"] == best.predict(frame)).all()
    given = numbers.assign(store=numbers["store"].astype(str), at=pd.to_datetime(numbers["at"]))
    found = run(onnx.load(tmp_path / "best.onnx"), given)
    np.testing.assert_allclose(found["probabilities"], shares, atol=1e-12)
    assert main(["predict", path, str(tmp_path / "new.csv"), "--out", str(tmp_path / "said.csv")]) == 0
    np.testing.assert_allclose(pd.read_csv(tmp_path / "said.csv")[names], shares, atol=1e-12)


def test_predict_reads_a_file_as_its_model_was_told_to(tmp_path):
    """An encoding that would be detected as another one: names in the output are those of the file."""
    frame = sales()
    frame["colour"] = frame["colour"].map({"red": "жш", "blue": "лщ"})
    frame.to_csv(tmp_path / "t.csv", index=False, encoding="koi8-r")
    path = str(winner(tmp_path / "t.csv", "sold", "count", reading=ReadOptions(encoding="koi8-r")).save(tmp_path / "b"))
    assert main(["predict", path, str(tmp_path / "t.csv"), "--out", str(tmp_path / "said.csv")]) == 0
    found = pd.read_csv(tmp_path / "said.csv")
    assert found["colour"].tolist() == frame["colour"].tolist()
    assert found.groupby("colour")["prediction"].nunique().min() > 1


@pytest.mark.slow
def test_predict_reads_the_sheet_of_the_training_or_that_it_is_given(tmp_path, capsys):
    first, second = sales(), sales(seed=1)
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        first.to_excel(book, sheet_name="first", index=False)
        second.to_excel(book, sheet_name="second", index=False)
    first.to_excel(tmp_path / "one.xlsx", sheet_name="other", index=False)
    best = winner(tmp_path / "t.xlsx", "sold", "count", reading=ReadOptions(sheet="second"))
    plain = winner(second, "sold", "count")
    path, out = str(best.save(tmp_path / "b.skops")), tmp_path / "said.csv"
    np.testing.assert_allclose(best.predict(tmp_path / "t.xlsx"), plain.predict(second), rtol=1e-9)
    for table, options, rows in (
        ("t.xlsx", [], second),
        ("t.xlsx", ["--sheet", "first"], first),
        ("one.xlsx", [], first),
    ):
        assert main(["predict", path, str(tmp_path / table), "--out", str(out), *options]) == 0
        assert capsys.readouterr().err == ""
        np.testing.assert_allclose(pd.read_csv(out)["prediction"], plain.predict(rows), rtol=1e-9)
    other = str(plain.save(tmp_path / "plain.skops"))
    assert main(["predict", other, str(tmp_path / "t.xlsx"), "--out", str(out)]) == 0
    assert "Sheet 'first' was read, and not 'second'; name another one by sheet (--sheet)." in capsys.readouterr().err
    assert main(["predict", path, str(tmp_path / "t.xlsx"), "--sheet", "third"]) == 2
    assert "has no sheet 'third' with rows; there are 'first', 'second'" in capsys.readouterr().err


def test_winners_that_no_export_holds_are_refused():
    with pytest.raises(ValueError, match="'red' of column 'colour' were read as missing"):
        to_spec(winner(sales(), "sold", "count", reading=ReadOptions(na_values={"colour": ["red"]})))
    with pytest.raises(TypeError, match="is no wide model"):
        to_spec(winner(sales(), "sold", "count", name="constant"))


def test_a_regressor_without_names_predicts_by_the_command(tmp_path):
    model = WideRegressor(loss="squared_error").fit(np.arange(40.0).reshape(-1, 2), np.arange(20.0))
    assert from_spec(to_spec(model)).predict(np.array([[4.0, 5.0]]))[0] == model.predict([[4.0, 5.0]])[0]


@pytest.mark.slow
def test_predict_reads_files_for_models_that_are_no_wide_models(tmp_path, capsys):
    """Some have a `model_` of their own; encoders are told to have no predictions."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(["1", "2", "03"], 200), "price": rng.choice(["$5", "$6.50"], 200)})
    X["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 200), unit="D")
    X["x"] = rng.normal(size=200)
    y = np.where((rng.random(200) < 0.3) != (X["a"] == "03"), "yes", "no")
    X.to_csv(tmp_path / "new.csv", index=False)
    for model in (
        SelectiveNaiveBayesClassifier(),
        make_pipeline(WideClassifier(interactions=None)),
        make_pipeline(OneHotEncoder(cols=["a", "price"]), WideClassifier(interactions=None)),
        make_pipeline(MODLEncoder(output="probability"), LogisticRegression()),
    ):
        fitted = model.fit(X, y)
        path = save(fitted, tmp_path / "model.skops")
        assert main(["predict", str(path), str(tmp_path / "new.csv"), "--out", str(tmp_path / "said.csv")]) == 0
        assert pd.read_csv(tmp_path / "said.csv")["prediction"].tolist() == fitted.predict(X).tolist()
    path = save(WideEncoder().fit(X, y), tmp_path / "model.skops")
    assert main(["predict", str(path), str(tmp_path / "new.csv")]) == 2
    assert "is a WideEncoder, which has no predictions" in capsys.readouterr().err


@pytest.mark.parametrize(
    "model", [WideRegressor(), WideRegressor(categorical_features="all"), "stack", make_pipeline(WideRegressor())]
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_predict_gives_a_models_columns_the_types_that_they_had_in_fit(model, ending, tmp_path):
    """Text that a comparison would read as numbers, flags, durations or dates, and dates, stay what they were."""
    rng, n = np.random.default_rng(0), 300
    start = pd.Timestamp("2024-01-01")
    X = pd.DataFrame(
        {
            "digits": rng.choice(["1", "2", "03"], n),
            "price": rng.choice(["$6.50", "$7.00"], n),
            "flag": rng.choice(["true", "false"], n),
            "term": rng.choice(["3 kg", "10 days"], n),
            "text of dates": (start + pd.to_timedelta(rng.integers(0, 300, n), unit="D")).strftime("%d/%m/%Y"),
            "at": start + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
            "span": pd.to_timedelta(rng.integers(0, 300, n), unit="s"),
            "whole": rng.integers(0, 5, n),
            "yes": rng.random(n) < 0.5,
            "x": rng.normal(size=n),
        }
    )
    y = X["x"] + (X["digits"] == "03") + 2 * (X["price"] == "$7.00") + X["whole"] + rng.normal(size=n)
    X.loc[::9, ["digits", "price", "x", "at"]] = None
    fitted = (WideBoostRegressor(random_state=0) if model == "stack" else model).fit(X, y)
    path, table = save(fitted, tmp_path / "model.skops"), tmp_path / f"new.{ending}"
    X.to_csv(table, index=False) if ending == "csv" else X.to_parquet(table)
    assert main(["predict", str(path), str(table), "--out", str(tmp_path / "said.csv")]) == 0
    np.testing.assert_allclose(pd.read_csv(tmp_path / "said.csv")["prediction"], fitted.predict(X), rtol=1e-9)
