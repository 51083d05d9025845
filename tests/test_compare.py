"""The comparison: folds, statistics, files, resuming, failures, the command line."""

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

from tabsym import compare
from tabsym.cli import main
from tabsym.compare import contenders as registry
from tabsym.compare.contenders import Contender, all_contenders
from tabsym.compare.prepare import prepare, read_path
from tabsym.compare.processes import Runner
from tabsym.compare.protocol import make_splits
from tabsym.compare.report import summary
from tabsym.compare.results import Results, corrected_t_test, rank
from tabsym.datasets import make_retail

SALES = make_retail(600)
QUICK = ["constant", "wide", "onehot-linear"]


@pytest.fixture
def done(tmp_path):
    return compare(SALES, "sales", contenders=QUICK, folds=3, out=tmp_path / "out", quiet=True)


def test_files_and_ranking(done):
    assert set(done.ranking["name"]) == set(QUICK)
    assert not done.failures
    body = json.loads((done.folder / "results.json").read_text())
    assert body["settings"]["n_splits"] == 3
    assert {row["name"] for row in body["ranking"]} == set(QUICK)
    table = pd.read_csv(done.folder / "results.csv")
    assert len(table) == 3 * 3 * 3  # contenders, folds, metrics
    linear = table[(table.contender == "onehot-linear") & (table.metric == "rmse")]["score"]
    row = done.ranking.set_index("name").loc["onehot-linear"]
    assert row["score"] == pytest.approx(linear.mean())
    assert row["spread"] == pytest.approx(linear.std())
    page = (done.folder / "report.html").read_text()
    assert page.count("data:image/svg+xml") == 2
    assert "http" not in re.sub(r"data:[^\"]*", "", page)  # self-contained


def test_scores_are_those_of_the_folds(done):
    prepared = prepare(SALES, "sales")
    splits = make_splits(prepared.X, prepared.y, "regression", folds=3, repeats=1, seed=0, unseen=None)
    want = [np.sqrt(np.mean((prepared.y[test] - prepared.y[train].mean()) ** 2)) for train, test in splits]
    assert done.ranking.set_index("name").loc["constant", "score"] == pytest.approx(np.mean(want))


def test_resume_runs_only_what_is_missing(done, monkeypatch):
    path = done.folder / "results.json"
    body = json.loads(path.read_text())
    del body["contenders"]["wide"]["folds"]["2"]
    body["contenders"]["constant"]["folds"]["0"]["scores"]["rmse"] = 123.0  # must be kept, not run again
    path.write_text(json.dumps(body))
    again = compare(SALES, "sales", contenders=QUICK, folds=3, out=done.folder, resume=True, quiet=True)
    after = json.loads(path.read_text())
    assert after["contenders"]["constant"]["folds"]["0"]["scores"]["rmse"] == 123.0
    assert len(after["contenders"]["wide"]["folds"]) == 3
    assert len(again.ranking) == 3


def test_resume_refuses_another_comparison(done):
    with pytest.raises(ValueError, match=r"another comparison \(seed"):
        compare(SALES, "sales", folds=3, seed=1, out=done.folder, resume=True, quiet=True)
    with pytest.raises(ValueError, match="holds results already"):
        compare(SALES, "sales", folds=3, out=done.folder, quiet=True)


def test_a_failing_contender_is_reported_and_the_rest_go_on(tmp_path, monkeypatch):
    broken = Contender("broken", "Broken <b>", lambda task, seed, jobs: None, order=-1)
    # the worker process does not know it, so it dies there, as a library that aborts does
    monkeypatch.setattr("tabsym.compare.run.all_contenders", lambda: {"broken": broken} | all_contenders())
    chosen = ["broken", "constant", "wide"]
    result = compare(SALES, "sales", contenders=chosen, folds=2, out=tmp_path / "o", quiet=True)
    assert "the process ended with status 1 (KeyError: 'broken')" in result.failures["broken"]
    assert set(result.ranking["name"]) == {"constant", "wide"}
    page = (result.folder / "report.html").read_text()
    assert "Left out or failed" in page
    assert "Broken &lt;b&gt;" in page


def test_targets_without_a_finite_square_are_refused(tmp_path):
    huge = SALES.assign(sales=np.random.default_rng(0).normal(size=len(SALES)) * 1e200)
    with pytest.raises(ValueError, match="its square is no finite number; divide the target"):
        compare(huge, "sales", contenders=["wide"], folds=2, out=tmp_path / "o", quiet=True)


def test_time_limit_keeps_what_was_done(tmp_path):
    result = compare(
        SALES, "sales", contenders=["constant", "catboost"], folds=3, time_limit=0.05, out=tmp_path / "o", quiet=True
    )
    assert "time limit of 0.05 s after 0 of 3 folds" in result.failures["catboost"]
    assert (result.folder / "report.html").exists()


def test_a_contender_that_was_stopped_says_how_far_it_came(tmp_path):
    results = Results({"metric": "auc", "n_splits": 5})
    runner = Runner(None, [()] * 5, results, tmp_path, None, 10.0, 0, 1)
    contender = all_contenders()["wide"]
    assert runner._so_far(contender) == " after 0 of 5 folds"
    for fold, auc in enumerate([0.8, 0.9]):
        results.add("wide", "Wide", fold, {"scores": {"auc": auc}})
    assert runner._so_far(contender) == " after 2 of 5 folds (mean auc of these 0.85)"


def test_hist_gradient_boosting_survives_a_class_of_one_row():
    model = all_contenders()["hist-gradient-boosting"].make("multiclass", 0, 1)
    model.set_params(**{f"{model.steps[-1][0]}__early_stopping": True, f"{model.steps[-1][0]}__max_iter": 2})
    y = np.array([0, 1] * 30 + [2])
    assert model.fit(SALES[["store", "price"]].head(61), y).predict_proba(SALES[["store", "price"]]).shape == (600, 3)


def test_missing_library_is_left_out_with_a_remedy():
    contender = Contender("x", "X", lambda task, seed, jobs: None, requires={"nosuchlibrary": "tabsym[x]"})
    assert contender.missing() == "X is left out: it needs nosuchlibrary; pip install 'tabsym[x]'"


def test_every_file_of_contenders_takes_part():
    names = list(all_contenders())
    assert {"wide", "wide-pairs", "onehot-linear", "target-lightgbm", "lightgbm", "xgboost", "catboost"} <= set(names)
    assert "hist-gradient-boosting" in names
    assert names[0] == "constant"
    assert len(list(registry.__path__)) == 1


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_all_contenders_on_every_task(task, tmp_path):
    table = SALES.head(240).copy()
    if task != "regression":
        table["sales"] = pd.qcut(table["sales"], 2 if task == "binary" else 3, labels=False).map(lambda c: f"class {c}")
    names = [name for name in all_contenders() if "catboost" not in name]  # slow, and the same wrapper for all tasks
    result = compare(table, "sales", contenders=names, folds=2, out=tmp_path / "o", quiet=True)
    assert not result.failures
    assert len(result.ranking) == len(names)


def test_unseen_holds_out_whole_symbols(tmp_path):
    prepared = prepare(SALES, "sales")
    splits = make_splits(prepared.X, prepared.y, "regression", folds=3, repeats=2, seed=0, unseen="store")
    assert len(splits) == 6
    for train, test in splits:
        assert not set(prepared.X["store"].iloc[train]) & set(prepared.X["store"].iloc[test])
    with pytest.raises(ValueError, match="no column 'shop' to hold"):
        compare(SALES, "sales", unseen="shop", out=tmp_path / "o", quiet=True)
    result = compare(SALES, "sales", unseen="store", contenders=QUICK, folds=3, out=tmp_path / "p", quiet=True)
    assert len(result.ranking) == 3


def test_corrected_t_test_by_hand():
    differences = np.array([0.1, 0.3, 0.2, 0.4, 0.0])
    t = 0.2 / np.sqrt(differences.var(ddof=1) * (1 / 5 + 1 / 4))
    assert corrected_t_test(differences, 0.2) == pytest.approx(2 * stats.t.sf(t, 4))
    plain = stats.ttest_1samp(differences, 0).pvalue
    assert corrected_t_test(differences, 0.2) > plain
    assert corrected_t_test(differences, 0.0) == pytest.approx(plain)
    assert corrected_t_test(np.zeros(5), 0.2) == 1.0


def test_ranking_puts_the_better_first_and_adjusts():
    settings = {"task": "binary", "metric": "auc", "n_splits": 3, "test_share": 1 / 3}
    results = Results(settings)
    rng = np.random.default_rng(0)
    for name, level in (("low", 0.6), ("high", 0.9), ("middle", 0.89)):
        for fold in range(3):
            extra = {"fit_seconds": 1.0, "predict_seconds": 1.0, "peak_bytes": 1, "model_bytes": None}
            results.add(name, name, fold, {"scores": {"auc": level + rng.normal() / 100}} | extra)
    results.add("partial", "partial", 0, {"scores": {"auc": 1.0}})
    rows = rank(results)
    assert [row["name"] for row in rows] == ["high", "middle", "low"]
    assert rows[0]["p"] is None
    assert rows[2]["p"] < 0.05 < rows[1]["p"]
    assert rows[2]["p_adjusted"] == pytest.approx(min(1, 2 * rows[2]["p"]))
    assert rows[1]["p_adjusted"] >= rows[1]["p"]


CSV = (
    '"Straße";"città, où";Datum;Artikel;Preis;Preis ohne;leer\n'
    '"Hauptstr. ""Nord""";Genève;01.02.2024;00123;1.5;10;\n'
    ';"Zürich; See";15.03.2024;00456;;20;\n'
) * 40


def test_a_csv_with_quotes_blanks_dates_and_accents(tmp_path):
    path = tmp_path / "Verkäufe.csv"
    path.write_text(CSV.replace("Preis ohne", "Preis ohne", 1), encoding="utf-8")
    lines = CSV.splitlines()
    path.write_text(
        "\n".join([lines[0]] + [line for line in lines if not line.startswith('"Straße"')]), encoding="utf-8"
    )
    prepared = prepare(path, "Preis ohne")
    assert prepared.task == "binary"
    assert list(prepared.X.columns) == [
        "Straße",
        "città, où",
        "Datum",
        "Datum month",
        "Datum weekday",
        "Artikel",
        "Preis",
    ]
    assert prepared.X["Straße"].iloc[0] == 'Hauptstr. "Nord"'
    assert pd.isna(prepared.X["Straße"].iloc[1])
    assert prepared.X["città, où"].iloc[1] == "Zürich; See"
    assert prepared.X["Datum month"].iloc[:2].tolist() == ["02", "03"]
    assert prepared.X["Artikel"].iloc[0] == "00123"
    assert any("leer" in note for note in prepared.notes)
    result = compare(path, "Preis ohne", contenders=QUICK, folds=2, out=tmp_path / "o", quiet=True)
    assert not result.failures


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "arrow", "jsonl"])
def test_every_format_reads_the_same(ending, tmp_path):
    path = tmp_path / f"table.{ending}"
    frame = SALES.head(50)[["store", "colour", "price", "sales"]]
    if ending in ("csv", "tsv"):
        frame.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    elif ending == "parquet":
        frame.to_parquet(path)
    elif ending == "arrow":
        frame.to_feather(path)
    else:
        frame.to_json(path, orient="records", lines=True)
    back = read_path(path)
    assert back["store"].tolist() == frame["store"].tolist()
    np.testing.assert_allclose(back["price"], frame["price"])
    assert back["colour"].isna().tolist() == frame["colour"].isna().tolist()


def test_latin_1_and_unknown_files(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("name,y\nGenève,1\nZürich,2\n".encode("latin-1"))
    assert read_path(path)["name"].tolist() == ["Genève", "Zürich"]
    with pytest.raises(FileNotFoundError, match=r"no file .*nosuch\.csv"):
        read_path(tmp_path / "nosuch.csv")
    (tmp_path / "t.xyz").write_text("")
    with pytest.raises(ValueError, match=r"t\.xyz has an ending"):
        read_path(tmp_path / "t.xyz")


def test_tasks_are_found():
    base = pd.DataFrame({"a": list("uvwx") * 30})
    assert prepare(base.assign(y=["yes", "no"] * 60), "y").task == "binary"
    assert prepare(base.assign(y=[True, False] * 60), "y").task == "binary"
    assert prepare(base.assign(y=list("rst") * 40), "y").task == "multiclass"
    assert prepare(base.assign(y=[0, 1, 2] * 40), "y").task == "multiclass"
    assert prepare(base.assign(y=np.arange(120.0)), "y").task == "regression"
    assert prepare(base.assign(y=[0.5, 1.5, 2.5] * 40), "y").task == "regression"
    assert prepare(base.assign(y=[0, 1, 2] * 40), "y", task="regression").task == "regression"
    holes = prepare(base.assign(y=[1.5, None, 2.5] * 40), "y")
    assert len(holes.y) == 80
    assert "40 rows without a target" in holes.notes[0]
    with pytest.raises(ValueError, match="one value only"):
        prepare(base.assign(y=1), "y")
    with pytest.raises(ValueError, match="no column 'z'"):
        prepare(base, "z")


def test_polars_tables_and_symbolic_numbers(tmp_path):
    frame = pl.DataFrame({"code": [1, 2, 3] * 40, "y": [1.0, 5.0, 2.0] * 40})
    prepared = prepare(frame, "y", symbolic=["code"])
    assert prepared.X["code"].tolist()[:3] == ["1", "2", "3"]


def test_names_from_data_are_escaped(tmp_path):
    evil = "<script>alert(1)</script> $x_1$"
    table = pd.DataFrame({evil: ["<b>", "y"] * 40, "t&<i>": [1.0, 2.5] * 40})
    result = compare(table, "t&<i>", contenders=["constant", "wide"], folds=2, out=tmp_path / "o", quiet=True)
    page = (result.folder / "report.html").read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "<i>" not in page


def test_command_line(tmp_path, capsys):
    path = tmp_path / "sales.csv"
    SALES.head(200).to_csv(path, index=False)
    out = str(tmp_path / "out")
    arguments = [
        "compare",
        str(path),
        "--target",
        "sales",
        "--contenders",
        "constant,wide",
        "--folds",
        "2",
        "--out",
        out,
    ]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "Wide model" in said
    assert "report.html" in said
    assert main(arguments) == 2
    assert "--resume" in capsys.readouterr().err
    assert main(["compare", str(path)]) == 2
    assert "--target NAME" in capsys.readouterr().err
    assert main(["compare", str(path), "--target", "sales", "--contenders", "nosuch"]) == 2
    assert "nosuch" in capsys.readouterr().err


def test_the_function_is_there_whatever_was_imported_first():
    code = (
        "import tabsym.compare.worker, tabsym; assert callable(tabsym.compare); from tabsym import compare; compare()"
    )
    code = code.replace("compare()", "assert callable(compare)")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_leftover_linear_sanity():
    """The one-hot contender is what it says: equal to least squares by hand up to its ridge."""
    table = pd.DataFrame({"a": list("uv") * 50, "y": [1.0, 3.0] * 50})
    model = all_contenders()["onehot-linear"].make("regression", 0, 1).fit(table[["a"]], table["y"])
    want = LinearRegression().fit(pd.get_dummies(table[["a"]]), table["y"]).predict(pd.get_dummies(table[["a"]]))
    np.testing.assert_allclose(model.predict(table[["a"]]), want, atol=0.05)


def test_the_finding_names_ties_the_fastest_and_too_few_folds():
    def row(label, score, seconds, p):
        return {"name": label, "label": label, "score": score, "fit_seconds": seconds, "p_adjusted": p}

    ranking = [row("A", 0.9, 10.0, None), row("B", 0.89, 2.0, 0.3), row("C", 0.5, 0.1, 0.01)]
    text = summary(ranking, {"metric": "auc", "n_splits": 5})
    assert text == (
        "A has the best mean auc (0.9). No detectable difference to it on this table: B."
        " Of these, B fits fastest, 5.0 times as fast as the best."
    )
    assert "With 2 folds, differences that matter" in summary(ranking, {"metric": "auc", "n_splits": 2})
    assert "Every other contender is detectably worse" in summary(ranking[::2], {"metric": "auc", "n_splits": 5})
    assert summary([], {"metric": "auc", "n_splits": 5}) == "No contender completed all folds."


def write(folder, text, name="t.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


ROWS = "".join(f"{'uvw'[j % 3]};{j},5;{j % 7}\n" for j in range(60))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"t\.csv is empty"),
        ("a,b,a\n1,2,3\n", r"Column 'a' appears twice in the header of t\.csv"),
        ("a,b\n1,2\n1,2,3,4\n", r"t\.csv is not a table of equal rows.*line 3"),
    ],
)
def test_files_that_are_no_tables_say_so(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_path(write(tmp_path, text))


def test_decimal_commas_are_numbers_where_semicolons_separate(tmp_path):
    frame = read_path(write(tmp_path, "a;price;n\n" + ROWS))
    assert frame["price"].tolist()[:2] == [0.5, 1.5]
    assert prepare(write(tmp_path, "a;price;n\n" + ROWS), "price").task == "regression"


def test_a_number_with_stray_text_is_no_set_of_classes(tmp_path):
    rows = ROWS.replace("17,5", "oops")
    with pytest.raises(ValueError, match=r"text with 60 different values in 60 rows \(such as 'oops' in row 17\)"):
        prepare(write(tmp_path, "a;price;n\n" + rows.replace(",5", ".5")), "price")
    with pytest.raises(ValueError, match=r"not numeric \(such as 'oops' in row 17\)"):
        prepare(write(tmp_path, "a;price;n\n" + rows.replace(",5", ".5")), "price", task="regression")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jobs": 0}, "jobs=0 is not possible; use at least 1"),
        ({"repeats": 0}, "repeats=0 is not possible"),
        ({"folds": 1}, "folds=1 is not possible; use at least 2"),
        ({"time_limit": -5}, "time_limit=-5 is not possible"),
        ({"unseen": "price"}, r"is read as a number; .*--symbolic price"),
        ({"drop": ["sales"]}, "'sales' is the target and is to be dropped"),
    ],
)
def test_options_that_cannot_be(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        compare(SALES, "sales", contenders=["constant"], out=tmp_path / "o", quiet=True, **options)


def test_a_name_where_a_list_belongs(tmp_path):
    with pytest.raises(TypeError, match=r"contenders must be a list, not the text 'wide'; pass contenders=\['wide'\]"):
        compare(SALES, "sales", contenders="wide", out=tmp_path / "o")


def test_a_column_of_keys_is_noted():
    keys = SALES.assign(key=[f"k{j}" for j in range(len(SALES))])
    assert any("'key' has another symbol in every row" in note for note in prepare(keys, "sales").notes)


def test_no_winner_where_the_constant_is_level():
    def row(name, score, p):
        return {"name": name, "label": name, "score": score, "fit_seconds": 1.0, "p_adjusted": p}

    text = summary([row("wide", 0.51, None), row("constant", 0.5, 0.6)], {"metric": "auc", "n_splits": 5})
    assert text.endswith("nothing here detectably predicts the target.")
