"""The comparison: folds, statistics, files, resuming, failures, the command line."""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression

from tabsym import cli, compare
from tabsym.cli import main
from tabsym.compare.contenders import Contender, all_contenders, choose
from tabsym.compare.ranking import partial, rank
from tabsym.compare.results import load_results
from tabsym.compare.splits import make_plan
from tabsym.compare.table.files import ReadOptions
from tabsym.compare.table.prepare import RoleColumns, prepare
from tabsym.compare.text import summary
from tabsym.compare.workers import last_words
from tabsym.datasets import make_retail
from tests.compare.reading import read_typed
from tests.in_process import contenders_in_process

pytestmark = pytest.mark.usefixtures("in_process")

SALES = make_retail(600)
QUICK = ["constant", "wide", "onehot-linear"]


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    with contenders_in_process():
        return compare(SALES, "sales", contenders=QUICK, folds=3, out=tmp_path_factory.mktemp("first"), quiet=True)


@pytest.fixture
def done(first, tmp_path):
    """A comparison whose folder may be changed."""
    return dataclasses.replace(first, folder=shutil.copytree(first.folder, tmp_path / "out"))


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
    assert row["sd"] == pytest.approx(linear.std())
    page = (done.folder / "report.html").read_text()
    assert page.count("data:image/svg+xml") == 5  # by fold, by time, reliability, deciles, Lorenz curves
    assert not re.search(r"https?:|src=\"(?!data:)|url\(", re.sub(r"data:[^\"]*", "data:", page))  # self-contained


def test_scores_are_those_of_the_folds(done):
    prepared = prepare(SALES, "sales")
    splits = make_plan(prepared.frame, folds=3, repeats=1, seed=0).splits(prepared.y, "regression")
    want = [np.sqrt(np.mean((prepared.y[test] - prepared.y[train].mean()) ** 2)) for train, test in splits]
    assert done.ranking.set_index("name").loc["constant", "score"] == pytest.approx(np.mean(want))


@pytest.mark.slow
def test_resume_runs_only_what_is_missing(done, monkeypatch):
    path = done.folder / "results.json"
    body = json.loads(path.read_text())
    del body["contenders"]["wide"]["folds"]["2"]
    before = body["contenders"]["constant"]["folds"]  # its times, too, must be kept and not measured again
    path.write_text(json.dumps(body))
    again = compare(SALES, "sales", contenders=QUICK, folds=3, out=done.folder, resume=True, quiet=True)
    after = json.loads(path.read_text())
    assert after["contenders"]["constant"]["folds"] == before
    assert len(after["contenders"]["wide"]["folds"]) == 3
    assert len(again.ranking) == 3


def test_resume_refuses_another_comparison(done):
    with pytest.raises(ValueError, match=r"a comparison with other settings \(seed"):
        compare(SALES, "sales", folds=3, seed=1, out=done.folder, resume=True, quiet=True)
    with pytest.raises(ValueError, match=r"a comparison with other settings \(tune: None, now '3 settings'"):
        compare(SALES, "sales", folds=3, tune=3, out=done.folder, resume=True, quiet=True)
    with pytest.raises(ValueError, match="contains results already"):
        compare(SALES, "sales", folds=3, out=done.folder, quiet=True)


@pytest.mark.parametrize(
    "text", ['{"format": 3}', '{"format": 3, "sett', "[]", '{"settings": 1, "contenders": {}}', ""]
)
def test_damaged_results_are_told_of(tmp_path, text):
    path = write(tmp_path, text, "results.json")
    with pytest.raises(ValueError) as error:
        load_results(tmp_path)
    assert str(error.value).startswith(
        f"{path} is damaged, so that the comparison cannot be continued; remove the file"
    )
    with pytest.raises(ValueError, match=r"were written by another version of tabsym; choose another folder\."):
        load_results(write(tmp_path, '{"format": 2}', "results.json").parent)


def test_resume_refuses_other_weights_exposures_and_folds(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": list("uvwx") * 30, "n": rng.poisson(1.0, 120), "size": rng.uniform(1, 2, 120)})
    table["fold"] = np.arange(120) % 3
    of_table = {"target": "n", "task": "count", "contenders": ["constant"], "out": tmp_path / "o", "quiet": True}
    compare(table, **of_table, weight="size", fold_column="fold")
    of_table["resume"] = True
    with pytest.raises(ValueError, match=r"a comparison with other settings \(weight: 'size', now None\)"):
        compare(table, **of_table, exposure="size", fold_column="fold")
    with pytest.raises(
        ValueError, match=r"with other settings \(the rows of the folds differ\); use the same settings"
    ):
        compare(table.assign(fold=table["fold"].sample(frac=1, random_state=0).to_numpy()), **of_table,
                weight="size", fold_column="fold")  # fmt: skip
    assert len(compare(table, **of_table, weight="size", fold_column="fold").ranking) == 1


@pytest.mark.parametrize("names", [{"a": "b", "b": "a"}, {"a": "c"}])
def test_resume_refuses_columns_of_other_names(names, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "y"])
    options = {"target": "y", "contenders": ["constant"], "folds": 2, "out": tmp_path / "o", "quiet": True}
    compare(table, **options)
    with pytest.raises(ValueError, match=r"with other settings \(the names of the columns differ\)"):
        compare(table.rename(columns=names), resume=True, **options)
    assert len(compare(table, resume=True, **options).ranking) == 1


@pytest.mark.slow
def test_a_failing_contender_is_reported_and_the_rest_go_on(tmp_path, monkeypatch):
    broken = Contender("broken", "Broken <b>", lambda task, seed, jobs: None, order=-1)
    # the worker process does not know it, so it dies there, as a library that aborts does
    monkeypatch.setattr("tabsym.compare.contenders.all_contenders", lambda: {"broken": broken} | all_contenders())
    chosen = ["broken", "constant", "wide"]
    result = compare(SALES, "sales", contenders=chosen, folds=2, out=tmp_path / "o", quiet=True)
    assert "it could not be made: KeyError: 'broken'" in result.failures["broken"]
    assert set(result.ranking["name"]) == {"constant", "wide"}
    page = (result.folder / "report.html").read_text()
    assert "Failed or not run" in page
    assert "Broken &lt;b&gt;" in page


def test_targets_without_a_finite_square_are_refused(tmp_path):
    huge = SALES.assign(sales=np.random.default_rng(0).normal(size=len(SALES)) * 1e200)
    with pytest.raises(ValueError, match="its square is no finite number; divide the target"):
        compare(huge, "sales", contenders=["wide"], folds=2, out=tmp_path / "o", quiet=True)


def test_results_are_kept_where_what_columns_say_fails(tmp_path, monkeypatch):
    def fail(*_):
        raise OverflowError("too large\nfor a float")

    monkeypatch.setattr("tabsym.compare.run.column_levels", fail)
    result = compare(SALES.head(60), "sales", contenders=["constant"], folds=2, out=tmp_path / "o", quiet=True)
    assert result.ranking["name"].tolist() == ["constant"]
    why = "The report leaves out the Levels of the columns: OverflowError: too large"
    assert json.loads((tmp_path / "o" / "results.json").read_text())["settings"]["notes"][-1] == why
    assert f"<li>{why}</li>".replace("'", "&#39;") in (tmp_path / "o" / "report.html").read_text()


def test_targets_without_a_finite_square_are_refused_before_training(tmp_path):
    huge = SALES.assign(sales=np.linspace(-1e200, 1e200, len(SALES)))
    with pytest.raises(ValueError, match="Row 0 of the target is -1e\\+200, and its square is no finite number"):
        compare(huge, "sales", contenders=["constant"], folds=2, out=tmp_path / "o", quiet=True)
    assert not (tmp_path / "o").exists()


SIGNALLED = """
import os, signal, sys, threading, time
from pathlib import Path
from tabsym import compare
from tabsym.cli import main
from tabsym.datasets import make_retail

place, out = Path(os.environ["TMPDIR"]), Path(sys.argv[1])

def end(name):
    while not list(place.glob("tabsym-*/worker0/job.json")):
        time.sleep(0.05)
    os.kill(os.getpid(), getattr(signal, name))

def ended_by(name, work):
    threading.Thread(target=end, args=(name,), daemon=True).start()
    try:
        print(name, work(), list(place.iterdir()))
    except KeyboardInterrupt:
        print(name, "interrupted", list(place.iterdir()))
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL

def command(folder):
    return main(["compare", "--contenders", "constant", "--folds", "2", "--out", str(out / folder), "--quiet"])

ended_by("SIGTERM", lambda: command("first"))
ended_by("SIGINT", lambda: command("second"))
of_a_function = {"contenders": ["constant"], "folds": 2, "out": out / "third", "quiet": True}
ended_by("SIGTERM", lambda: compare(make_retail(60), "sales", **of_a_function))
"""


@pytest.mark.slow
def test_signals_leave_no_rows_behind_and_are_the_status_of_the_command(tmp_path):
    """As a shell has it: 128 and the signal; the function raises KeyboardInterrupt. One process, to save time."""
    place = tmp_path / "temporary"
    place.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED, str(tmp_path)],
        env=os.environ | {"TMPDIR": str(place)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["SIGTERM 143 []", "SIGINT 130 []", "SIGTERM interrupted []"]
    assert not list(place.iterdir())
    assert all((tmp_path / folder / "results.json").exists() for folder in ("first", "second", "third"))


def test_resume_wants_a_folder_and_says_where_there_is_nothing_to_go_on_with(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="resume needs the folder of the results: add out='FOLDER'"):
        compare(SALES, "sales", contenders=["constant"], folds=2, resume=True, quiet=True)
    assert not list(tmp_path.iterdir())
    compare(SALES, "sales", contenders=["constant"], folds=2, resume=True, out=tmp_path / "o")
    assert f"There are no results in {tmp_path / 'o'} to continue" in capsys.readouterr().out


@pytest.mark.processes
@pytest.mark.slow
def test_time_limit_keeps_what_was_done(tmp_path):
    result = compare(
        SALES, "sales", contenders=["constant", "catboost"], folds=3, time_limit=0.05, out=tmp_path / "o", quiet=True
    )
    assert "time limit of 0.05 s after 0 of 3 folds" in result.failures["catboost"]
    assert (result.folder / "report.html").exists()


def test_some_folds_are_compared_with_the_same_folds_of_the_best(done):
    path = done.folder / "results.json"
    body = json.loads(path.read_text())
    body["contenders"]["wide"]["folds"].pop("1")
    body["contenders"]["wide"]["error"] = "stopped at the time limit of 1 s after 2 of 3 folds"
    found = partial(body["settings"], body["contenders"])
    best = min(("constant", "onehot-linear"), key=lambda name: np.mean(scores(body, name, "012")))
    assert [one["label"] for one in found] == ["Wide model"]
    assert found[0]["score"] == pytest.approx(np.mean(scores(body, "wide", "02")))
    assert found[0]["best_score"] == pytest.approx(np.mean(scores(body, best, "02")))
    assert "wide" not in [row["name"] for row in rank(body["settings"], body["contenders"])]
    sentences = summary(rank(body["settings"], body["contenders"], {}), found, body["settings"])
    assert any("Wide model completed 2 of 3 folds and is not ranked: rmse" in one for one in sentences)


def scores(body, name, folds):
    return [body["contenders"][name]["folds"][fold]["scores"]["rmse"] for fold in folds]


@pytest.mark.parametrize(
    ("status", "errors", "words"),
    [
        (-9, "", "the process was killed by SIGKILL, which often means that the machine ran out of memory,"),
        (-11, "frame.py:1: RuntimeWarning: 'x' found in sys.modules", "the process was killed by SIGSEGV,"),
        (1, "RuntimeWarning: found in sys.modules\nMemoryError: no room", "status 1 (MemoryError: no room)"),
        (3, "", "status 3 (no message)"),
    ],
)
def test_how_a_process_ended(status, errors, words):
    assert words in last_words(status, errors)


def test_hist_gradient_boosting_survives_a_class_of_one_row():
    model = all_contenders()["hist-gradient-boosting"].make("multiclass", 0, 1)
    model.set_params(**{f"{model.steps[-1][0]}__early_stopping": True, f"{model.steps[-1][0]}__max_iter": 2})
    y = np.array([0, 1] * 30 + [2])
    assert model.fit(SALES[["store", "price"]].head(61), y).predict_proba(SALES[["store", "price"]]).shape == (600, 3)


def test_missing_library_is_left_out_with_a_remedy():
    contender = Contender("x", "X", lambda task, seed, jobs: None, requires={"nosuchlibrary": "tabsym[x]"})
    assert contender.missing() == "X was not run, as nosuchlibrary is not installed: pip install 'tabsym[x]'"


def test_built_in_contenders_take_part_the_baseline_first():
    names = [name for name, one in all_contenders().items() if not one.for_unseen]
    assert {"wide", "wide-pairs", "onehot-linear", "target-lightgbm", "lightgbm", "xgboost", "catboost"} <= set(names)
    assert "hist-gradient-boosting" in names
    assert names[0] == "constant"


FEW = ["store", "group", "price", "promotion", "sales"]
"""Columns of each kind: with all, the fits of wide models in stacks take most of the time."""


@pytest.mark.parametrize("task", ["multiclass", "count"])  # tests/export/test_types.py trains each for other tasks
@pytest.mark.slow
def test_all_contenders_take_part_together(task, tmp_path):
    table = SALES.head(240)[FEW].copy()
    if task == "multiclass":
        table["sales"] = pd.qcut(table["sales"], 3, labels=False).map(lambda c: f"class {c}")
    if task == "count":
        table["sales"] = (table["sales"] / 10).round()
    every = all_contenders().values()  # CatBoost is slow, and the same wrapper for all tasks
    names = [one.name for one in every if not ("catboost" in one.name or one.for_unseen or one.by_name)]
    names = ["constant", *names[1 + (task == "count") :: 2]]
    result = compare(table, "sales", task=task, contenders=names, folds=2, out=tmp_path / "o", quiet=True)
    assert not result.failures
    assert len(result.ranking) == len(names)
    if task == "count":  # of one scale: none answers with logarithms
        assert all(0.5 < row[0] < 2 for row in result.ranking["totals"])


@pytest.mark.parametrize("task", ["binary", "count"])
@pytest.mark.slow
def test_some_contenders_take_part_where_they_are_named(task, tmp_path):
    table = SALES.head(160)[FEW].copy()
    table["sales"] = (table["sales"] / 10).round() if task == "count" else table["sales"] > table["sales"].median()
    named = [name for name, one in all_contenders().items() if one.by_name]
    also = {"wide-xgboost", "wide-catboost", "wide-hist-gradient-boosting", "tiws-lightgbm", "naive-bayes"}
    assert set(named) == also
    if task == "count":  # the same wrappers: each of the two tasks has its own, with one that both have
        named = ["wide-xgboost", "wide-hist-gradient-boosting", "tiws-lightgbm"]
    else:
        named = ["wide-catboost", "tiws-lightgbm", "naive-bayes"]
    assert not set(named) & {one.name for one in choose(None, task)}
    result = compare(table, "sales", task=task, contenders=named, folds=2, out=tmp_path / "o", quiet=True)
    assert not result.failures
    assert set(result.ranking["name"]) == {*named, "constant"}


@pytest.mark.slow
def test_unseen_holds_out_whole_symbols(tmp_path):
    with pytest.raises(ValueError, match="no column 'shop' to split by"):
        compare(SALES, "sales", unseen="shop", out=tmp_path / "o", quiet=True)
    result = compare(SALES, "sales", unseen="store", contenders=QUICK, folds=3, out=tmp_path / "p", quiet=True)
    assert len(result.ranking) == 3
    assert "whole categories of &#39;store&#39; held out" in (result.folder / "report.html").read_text()


CSV = (
    '"Straße";"città, où";Datum;Artikel;Preis;Preis ohne;leer\n'
    '"Hauptstr. ""Nord""";Genève;01.02.2024;00123;1.5;10;\n'
    ';"Zürich; See";15.03.2024;00456;;20;\n'
) * 40


@pytest.mark.slow
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
        "Datum week",
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
    back, _ = read_typed(path)
    assert back["store"].tolist() == frame["store"].tolist()
    np.testing.assert_allclose(back["price"], frame["price"])
    assert back["colour"].isna().tolist() == frame["colour"].isna().tolist()


def test_latin_1_and_unknown_files(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("name,y\nGenève,1\nZürich,2\n".encode("latin-1"))
    assert read_typed(path)[0]["name"].tolist() == ["Genève", "Zürich"]
    with pytest.raises(FileNotFoundError, match=r"no file .*nosuch\.csv"):
        read_typed(tmp_path / "nosuch.csv")
    (tmp_path / "t.xyz").write_text("")
    with pytest.raises(ValueError, match=r"t\.xyz has an unknown ending"):
        read_typed(tmp_path / "t.xyz")


def test_polars_tables_and_symbolic_numbers(tmp_path):
    frame = pl.DataFrame({"code": [1, 2, 3] * 40, "y": [1.0, 5.0, 2.0] * 40})
    prepared = prepare(frame, "y", reading=ReadOptions(categorical=["code"]))
    assert prepared.X["code"].tolist()[:3] == ["1", "2", "3"]


def test_names_from_data_are_escaped(tmp_path):
    evil = "<script>alert(1)</script> $x_1$"
    table = pd.DataFrame({evil: ["<b>", "y"] * 40, "t&<i>": [1.0, 2.5] * 40})
    result = compare(table, "t&<i>", contenders=["constant", "wide"], folds=2, out=tmp_path / "o", quiet=True)
    page = (result.folder / "report.html").read_text()
    assert page.count("<script>") == 1  # the page's own, which sorts tables
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
    assert "<i>" not in page
    shown = result._repr_html_()
    assert "<script" not in shown and "<i>" not in shown and 'src="data:image/svg+xml' in shown
    assert all(sentence.split()[0] in shown for sentence in result.summary)
    assert shown.count("<tr>") == 1 + len(result.ranking)
    (result.folder / "results.json").unlink()
    assert result.ranking["label"][0] in result._repr_html_()


@pytest.mark.processes
@pytest.mark.slow
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


@pytest.mark.slow
def test_python_m_is_the_command():
    command = [sys.executable, "-m", "tabsym", "compare", "nowhere.csv", "--target", "y"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "tabsym: There is no file 'nowhere.csv'.\n")


@pytest.mark.slow
def test_the_function_is_there_whatever_was_imported_first():
    code = (
        "import tabsym.compare.workers, tabsym; assert callable(tabsym.compare); from tabsym import compare; compare()"
    )
    code = code.replace("compare()", "assert callable(compare)")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_leftover_linear_sanity():
    """The one-hot contender is what it says: equal to least squares by hand up to its ridge."""
    table = pd.DataFrame({"a": list("uv") * 50, "y": [1.0, 3.0] * 50})
    model = all_contenders()["onehot-linear"].make("regression", 0, 1).fit(table[["a"]], table["y"])
    want = LinearRegression().fit(pd.get_dummies(table[["a"]]), table["y"]).predict(pd.get_dummies(table[["a"]]))
    np.testing.assert_allclose(model.predict(table[["a"]]), want, atol=0.05)


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
        read_typed(write(tmp_path, text))


def test_decimal_commas_are_numbers_where_semicolons_separate(tmp_path):
    frame, _ = read_typed(write(tmp_path, "a;price;n\n" + ROWS))
    assert frame["price"].tolist()[:2] == [0.5, 1.5]
    assert prepare(write(tmp_path, "a;price;n\n" + ROWS), "price").task == "regression"


def test_a_number_with_stray_text_is_no_set_of_classes(tmp_path):
    rows = ROWS.replace("17,5", "oops")
    prepared = prepare(write(tmp_path, "a;price;n\n" + rows), "price")
    assert prepared.task == "regression"
    assert len(prepared.y) == 59
    assert any("1 cell that is not a number ('oops') as missing" in note for note in prepared.notes)
    assert any("1 row without a target is" in note for note in prepared.notes)
    strays = pd.DataFrame(
        {"a": ["x", "y"] * 30, "price": [f"{row}.5" if row % 3 else f"{row} apples, or so" for row in range(60)]}
    )
    with pytest.raises(
        ValueError, match=r"text with 60 different values in 60 rows \(such as '0 apples, or so' in row"
    ):
        prepare(strays, "price")
    with pytest.raises(ValueError, match=r"not numeric \(such as '0 apples, or so' in row"):
        prepare(strays, "price", task="regression")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jobs": 0}, "jobs=0 is not possible; use a whole number of at least 1"),
        ({"repeats": 0}, "repeats=0 is not possible"),
        ({"folds": 1}, "folds=1 is not possible; use a whole number of at least 2"),
        ({"time_limit": -5}, "time_limit=-5 is not possible"),
        ({"unseen": "price"}, r"is read as a number; .*--categorical price"),
        ({"groups": "store", "time": "week"}, "groups and time cannot go together"),
        ({"repeats": 2, "fold_column": "store"}, "repeats=2 is not possible: splits by column are always the same"),
        (
            {"folds": 3, "fold_column": "store"},
            "folds=3 has no effect with fold_column='store', which has [0-9]+ folds",
        ),
        (
            {"exposure": "price"},
            r"exposure='price' is for counts, and the task is 'regression'; for amounts, .* with weight='price' "
            r"\(--weight price\) in place of exposure \(--exposure\), .* use task='count' \(--task count\)\.",
        ),
        ({"weight": "store"}, "The weight 'store' is not numeric"),
        ({"weight": "sales"}, "'sales' is the target and cannot be the weight"),
        ({"tune": "soon"}, "tune='soon' is not a budget"),
        ({"metric": max}, "A custom metric needs a name and a direction"),
        ({"metric": "auc"}, "metric='auc' is not known for regression targets"),
        ({"drop": ["sales"]}, "'sales' is the target and cannot be dropped"),
        ({"categorical": ["sales"]}, "'sales' is the target and not a feature; remove it from categorical"),
        ({"categorical": ["week"], "drop": ["week"]}, "'week' is in drop and in categorical; remove it from one"),
        ({"time": "sales"}, "'sales' is the target and cannot split the rows; name another time column"),
        ({"unseen": "sales"}, "'sales' is the target and cannot split the rows; name another unseen column"),
        ({"unseen": "store", "drop": ["store"]}, "Column 'store' is not a feature, as it is dropped"),
    ],
)
def test_options_that_cannot_be(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        compare(SALES, "sales", contenders=["constant"], out=tmp_path / "o", quiet=True, **options)


def test_an_exposure_of_classes_has_no_use():
    table = pd.DataFrame({"a": list("uvwx") * 9, "e": np.arange(1.0, 37.0), "y": [0, 1] * 18})
    with pytest.raises(
        ValueError,
        match=r"and the task is 'binary'; leave it out, or if the target counts events, use task='count' "
        r"\(--task count\)\.",
    ):
        prepare(table, "y", roles=RoleColumns(exposure="e"))


@pytest.mark.parametrize(
    ("option", "words", "want"),
    [
        ("--drop", ["A,B", "C"], {"drop": ["A", "B", "C"]}),
        ("--categorical", ["A", "B"], {"categorical": ["A", "B"]}),
        ("--numeric", ["A", "B"], {"numeric": ["A", "B"]}),
        ("--na-values", ["?,-", "A=-200"], {"na_values": ["?", "-", "A=-200"]}),
        ("--contenders", ["wide", "lightgbm"], {"contenders": ["wide", "lightgbm"]}),
    ],
)
def test_lists_that_are_given_twice_add_up(option, words, want, monkeypatch):
    asked = {}
    monkeypatch.setattr(cli, "_COMMANDS", {"compare": lambda args: asked.update(args) or True})
    for _ in range(2):  # what one command line adds is not the default of the next one
        assert main(["compare", "t.csv", *(part for word in words for part in (option, word))]) == 0
        assert {name: asked[name] for name in want} == want
    assert main(["compare", "t.csv"]) == 0
    assert asked[next(iter(want))] is None


def test_a_folder_in_which_nothing_was_compared_takes_the_corrected_command(tmp_path):
    of = {"folds": 2, "out": tmp_path / "o", "quiet": True}
    failed = compare(SALES, "sales", contenders={"mine": "tests.custom_contenders:nosuch"}, **of)
    assert list(failed.failures) == ["mine"]
    done = compare(SALES, "sales", contenders={"mine": "tests.custom_contenders:Mean"}, **of)
    assert not done.failures and set(done.ranking["name"]) == {"mine", "constant"}
    with pytest.raises(ValueError, match="contains results already"):
        compare(SALES, "sales", contenders={"mine": "tests.custom_contenders:nosuch"}, **of)


def test_the_baseline_that_was_asked_for_alone_is_a_result(tmp_path):
    of = {"contenders": ["constant"], "folds": 2, "out": tmp_path / "o", "quiet": True}
    compare(SALES, "sales", **of)
    with pytest.raises(ValueError, match="contains results already"):
        compare(SALES, "sales", **of)


@pytest.mark.parametrize("nobody", [[], {}])
def test_contenders_that_name_nobody(nobody):
    with pytest.raises(ValueError, match="contenders is empty; name at least one, or leave it out for 'all'"):
        choose(nobody, "regression")


def test_a_name_where_a_list_belongs(tmp_path):
    with pytest.raises(TypeError, match=r"contenders must be a list, not the text 'wide'; pass contenders=\['wide'\]"):
        compare(SALES, "sales", contenders="wide", out=tmp_path / "o")


def test_a_column_of_keys_is_noted():
    keys = SALES.assign(key=[f"k{j}" for j in range(len(SALES))])
    assert any("'key' has a different value in nearly every row" in note for note in prepare(keys, "sales").notes)


@pytest.mark.parametrize("kind", ["text", "dates"])
def test_dates_that_are_target_or_held_out_are_called_dates(kind, tmp_path):
    days = pd.date_range("2024-01-01", periods=90)
    table = pd.DataFrame({"a": [0.5, 1.5, 2.0] * 30, "at": days.strftime("%d.%m.%Y") if kind == "text" else days})
    table["y"] = np.arange(90.0)
    for task in (None, "regression", "multiclass"):
        with pytest.raises(ValueError, match="The target 'at' contains dates, which are not predicted; make numbers"):
            prepare(table, "at", task=task)
    options = {"contenders": ["constant"], "out": tmp_path / "o", "quiet": True}
    with pytest.raises(ValueError, match=r"Column 'at' is read as dates; .*\(--categorical at\)"):
        compare(table, "y", unseen="at", **options)
    assert len(compare(table, "y", unseen="at", categorical=["at"], **options).ranking) == 1


def test_a_word_that_was_read_as_missing_is_named_where_it_splits_the_rows(tmp_path):
    groups = ["unknown" if row < 3 else f"{row % 20}" for row in range(90)]
    table = pd.DataFrame({"a": [0.5, 1.5, 2.0] * 30, "g": groups, "y": np.arange(90.0)})
    options = {"contenders": ["constant"], "out": tmp_path / "o", "quiet": True}
    with pytest.raises(ValueError, match=r"3 missing values, as it is read .*'unknown'.*\(--categorical g\)"):
        compare(table, "y", groups="g", **options)
    with pytest.raises(ValueError, match=r"as it is read as numbers .*'unknown'.*; fill them or drop the rows\.$"):
        compare(table, "y", time="g", **options)
    assert len(compare(table, "y", groups="g", categorical=["g"], **options).ranking) == 1
