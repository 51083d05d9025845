"""The winner: trained on all rows, used on new tables, written to a file without code and read back."""

import datetime as dt
import json
import sqlite3
import subprocess
import sys
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import tabsym
from tabsym import WideRegressor, compare, save
from tabsym.cli import main
from tabsym.compare import load
from tabsym.compare.comparison import train_best
from tabsym.compare.contenders import all_contenders, from_address
from tabsym.compare.metrics import choose_metric
from tabsym.compare.splits import SplitPlan
from tabsym.compare.table.files import ReadOptions
from tabsym.compare.table.prepare import RoleColumns, prepare
from tabsym.datasets import make_retail
from tabsym.export import from_spec, to_excel, to_spec, to_sql
from tests.oracles.excel_formulas import Book

pytestmark = pytest.mark.usefixtures("in_process")

SALES = make_retail(300)
SALES["day"] = pd.date_range("2024-01-01", periods=300).strftime("%d.%m.%Y")
PLAN = SplitPlan("random", None, 5, 1, 0)


def winner(contender, table=SALES, task="regression", tune=None):
    prepared = prepare(table, "sales", task=task)
    return train_best(contender, prepared, PLAN, choose_metric(task, None), tune, 0, 1)


def classes_of(n):
    return SALES.assign(sales=pd.qcut(SALES["sales"], n, labels=[f"class {j}" for j in range(n)]).astype(str))


@pytest.mark.slow
@pytest.mark.parametrize(  # tests/export/test_types.py has every contender with each of its tasks
    ("name", "task"),
    [
        ("wide", "binary"),
        ("wide-pairs", "regression"),
        ("onehot-linear", "multiclass"),
        ("lightgbm", "regression"),
        ("modl-xgboost", "multiclass"),
        ("constant", "binary"),
    ],
)
def test_it_comes_back_from_a_file_as_it_was(name, task, tmp_path):
    table = SALES if task == "regression" else classes_of(2 if task == "binary" else 3)
    model = winner(all_contenders()[name], table, task)
    back = load(model.save(tmp_path / "best.skops"))
    new = table.drop(columns="sales").sample(20, random_state=0)
    new.loc[new.index[0], "store"] = "never seen"
    np.testing.assert_array_equal(back.predict(new), model.predict(new))
    if task == "regression":
        with pytest.raises(TypeError, match="has no probabilities; use predict"):
            back.predict_proba(new)
    else:
        assert set(back.predict(new)) <= set(table["sales"])
        np.testing.assert_allclose(back.predict_proba(new).sum(axis=1), 1)


@pytest.mark.slow
def test_new_tables_of_any_kind_mean_the_same():
    model = winner(all_contenders()["wide"])
    want = model.predict(SALES.head(30))
    mixed = SALES.head(30)[SALES.columns[::-1]].drop(columns="sales").astype({"store": "category"})
    np.testing.assert_array_equal(model.predict(mixed), want)
    np.testing.assert_array_equal(model.predict(pl.from_pandas(SALES.head(30))), want)
    days = SALES.head(30).assign(day=pd.date_range("2024-01-01", periods=30))
    np.testing.assert_array_equal(model.predict(days), want)
    assert model.predict(SALES.head(0)).shape == (0,)
    with pytest.raises(ValueError, match="no column 'store', with which the model was trained"):
        model.predict(SALES.drop(columns="store"))


def test_files_are_read_by_what_the_columns_were_in_training(tmp_path):
    codes = pd.Series(["1.10", "1.20", "x"] * 60)
    table = pd.DataFrame({"code": codes, "size": [1.5, 2.0, 3.25] * 60, "sales": codes.map({"1.10": 9.0}).fillna(1.0)})
    prepared = prepare(table, "sales", reading=ReadOptions(categorical=["size"]), task="regression")
    own = from_address("mine", "tests.custom_contenders:ready")
    new, file = table.head(30).query("code == '1.10'"), tmp_path / "new.csv"
    new.to_csv(file, index=False)
    assert prepared.retyping.numbers == ["size", "sales"]
    assert any("'code' looks like numbers but is read as text" in note for note in prepared.notes)
    for contender in (all_contenders()["wide"], own):
        model = train_best(contender, prepared, PLAN, choose_metric("regression", None), None, 0, 1)
        np.testing.assert_array_equal(model.predict(file), model.predict(new))
    back = load(winner(all_contenders()["wide"], table).save(tmp_path / "best.skops"))
    np.testing.assert_allclose(back.predict(file), 9.0, atol=0.5)


def test_one_of_the_users_own_gets_its_own_columns():
    own = from_address("mine", "tests.custom_contenders:ready")
    table = SALES[["store", "colour", "sales"]].dropna()
    model = winner(own, table, tune="3")
    np.testing.assert_allclose(model.predict(table), own.make("regression", 0, 1).fit(
        table[["store", "colour"]], table["sales"]).predict(table[["store", "colour"]]))  # fmt: skip


def test_one_of_the_users_own_gets_the_columns_of_the_training_in_their_order(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60), "i": rng.integers(0, 9, 60)})
    table["sales"] = table["a"] - 2 * table["b"]
    model = winner(from_address("mine", "tests.custom_contenders:by_place"), table)
    want = model.predict(table)
    np.testing.assert_array_equal(model.predict(table[["b", "i", "sales", "a"]].assign(z="more")), want)
    with pytest.raises(ValueError, match="There is no column 'b', with which the model was trained"):
        model.predict(table.drop(columns="b"))
    back = load(model.save(tmp_path / "best.skops"))
    np.testing.assert_array_equal(back.predict(table[["i", "b", "a"]]), want)
    del vars(model)["columns"]  # as in files of earlier versions
    back = load(model.save(tmp_path / "old.skops"))
    np.testing.assert_array_equal(back.predict(table), want)


def test_what_the_model_has_is_in_the_estimator(tmp_path):
    model = load(winner(all_contenders()["wide"]).save(tmp_path / "best.skops"))
    assert len(model.estimator.coef_table())
    with pytest.raises(AttributeError, match=r"no attribute 'coef_table'; its model has it: \.estimator\.coef_table$"):
        model.coef_table()
    for name in ("nosuch", "_private", "__len__"):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match=f"no attribute '{name}'$"):
            getattr(model, name)


def test_what_cannot_be_written_without_code_says_so(tmp_path):
    model = winner(from_address("mine", "tests.custom_contenders:Mean"))
    model.estimator.made_by = lambda: None
    with pytest.raises(ValueError, match=r"without code, as its estimator.made_by .*leave that part out") as error:
        model.save(tmp_path / "best.skops")
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_strange_types_are_refused_unless_trusted(tmp_path):
    own = from_address("mine", "tests.custom_contenders:Mean")
    path = winner(own).save(tmp_path / "best.skops")
    with pytest.raises(ValueError, match=r"holds tests\.custom_contenders\.Mean, which tabsym does not know"):
        load(path)
    with pytest.raises(TypeError, match="is no list; pass full names"):
        load(path, trusted="tests.custom_contenders.Mean")
    assert load(path, trusted=["tests.custom_contenders.Mean"]).predict(SALES.head(2)).shape == (2,)


def test_functions_are_no_classes(tmp_path):
    import skops.io
    from sklearn.preprocessing import FunctionTransformer

    path = tmp_path / "evil.skops"
    skops.io.dump({"estimator": FunctionTransformer(pd.read_pickle)}, path)
    with pytest.raises(ValueError, match=r"holds .*read_pickle"):
        load(path)
    with pytest.raises(ValueError, match=r"holds .*read_pickle"):
        tabsym.load(save(FunctionTransformer(pd.read_pickle), path))


def test_a_model_is_no_winner_and_a_winner_is_a_model(tmp_path):
    path = save(WideRegressor().fit(SALES[["store"]], SALES["sales"]), tmp_path / "model.skops")
    with pytest.raises(ValueError, match=r"holds a WideRegressor, which is no winner .*read it by tabsym\.load"):
        load(path)
    model = winner(all_contenders()["constant"])
    assert tabsym.load(model.save(path)).label == model.label


@pytest.mark.slow
def test_a_boosters_bytes_can_be_refused(tmp_path):
    path = winner(all_contenders()["lightgbm"]).save(tmp_path / "best.skops")
    with pytest.raises(ValueError, match=r"a model of LightGBM in the library's own bytes.*allow_boosters=True"):
        load(path, allow_boosters=False)
    assert load(winner(all_contenders()["wide"]).save(path), allow_boosters=False).name == "wide"


@pytest.mark.slow
def test_save_best_from_the_shell(tmp_path, capsys):
    table, best = tmp_path / "sales.csv", tmp_path / "best.skops"
    SALES.to_csv(table, index=False)
    arguments = ["compare", str(table), "--target", "sales", "--contenders", "wide-additive", "--folds", "2"]
    assert main([*arguments, "--save-best", str(best), "--out", str(tmp_path / "out")]) == 0
    assert f"trained on all rows: {best}" in capsys.readouterr().out
    assert load(best).predict(table).shape == (300,)


def test_a_folder_that_is_not_there_is_said_before_anything_is_trained(tmp_path, capsys):
    table = tmp_path / "sales.csv"
    SALES.to_csv(table, index=False)
    out = tmp_path / "out"
    arguments = ["compare", str(table), "--target", "sales", "--out", str(out)]
    assert main([*arguments, "--save-best", str(tmp_path / "no" / "b.skops")]) == 2
    assert "The folder of save_best=" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.slow
def test_where_the_winner_goes_is_looked_at_before_anything_is_trained(tmp_path, monkeypatch):
    options = {"contenders": ["constant"], "folds": 2, "out": tmp_path / "o", "quiet": True}
    with pytest.raises(ValueError, match=r"is a folder; name a file in it, such as best\.skops"):
        compare(SALES, "sales", save_best=tmp_path, **options)
    assert not (tmp_path / "o").exists()
    compare(SALES, "sales", save_best=tmp_path / "best", **options)
    assert load(tmp_path / "best.skops").predict(SALES).shape == (300,)

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr("skops.io.dump", full)
    with pytest.warns(UserWarning, match=r"could not be written to .*full\.skops \(No space left on device\)"):
        done = compare(SALES, "sales", save_best=tmp_path / "full.skops", resume=True, **options)
    assert len(done.ranking) == 1
    assert done.best_file is None


@pytest.mark.slow
@pytest.mark.parametrize("factory", ["wide", "unsaved"])
def test_ones_own_best_is_saved_from_the_shell_or_the_status_says_not(tmp_path, factory, monkeypatch, capsys):
    """The first as the installed command runs, without the current folder on the path."""
    (tmp_path / "shop.py").write_text(
        "from sklearn.pipeline import make_pipeline\n"
        "from sklearn.preprocessing import FunctionTransformer\n"
        "from tabsym import WideRegressor\n"
        "def wide():\n"
        "    return WideRegressor(loss='squared_error', interactions=None)\n"
        "def unsaved():\n"
        "    return make_pipeline(FunctionTransformer(lambda X: X), wide())\n"
    )
    SALES.to_csv(tmp_path / "sales.csv", index=False)
    code = "import sys; sys.path.remove(''); from tabsym.cli import main; sys.exit(main(sys.argv[1:]))"
    arguments = ["compare", "sales.csv", "--target", "sales", "--contenders", "constant", "--folds", "2", "--quiet"]
    arguments += ["--contender", f"mine=shop:{factory}", "--save-best", "best.skops", "--out", "o"]
    monkeypatch.chdir(tmp_path)
    if factory == "wide":
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
        status, said = done.returncode, done.stderr
    else:
        status, said = main(arguments), capsys.readouterr().err
    assert (tmp_path / "best.skops").exists() == (factory == "wide"), said
    assert status == (0 if factory == "wide" else 1), said
    assert ("The best contender was not saved: " in said) == (factory == "unsaved"), said


@pytest.mark.slow
def test_the_best_of_an_earlier_run_is_asked_to_be_named_again(tmp_path):
    """Trained it must be made, and an earlier run's estimator is not kept."""
    rng = np.random.default_rng(0)
    a = rng.choice(list("uvw"), 200)
    table = pd.DataFrame({"a": a, "y": (a == "u") * 3.0 + rng.normal(size=200)})
    options = {"folds": 2, "out": tmp_path / "out", "quiet": True}
    compare(table, "y", contenders=["wide-additive"], **options)
    again = compare(table, "y", contenders=["constant"], resume=True, **options)
    with pytest.raises(ValueError, match="The best contender, 'wide-additive', is of an earlier run"):
        again.best.predict(table)
    compare(table, "y", contenders=["constant"], resume=True, save_best=tmp_path / "best.skops", **options)
    assert not (tmp_path / "best.skops").exists()


@pytest.mark.parametrize(
    ("role", "cell", "held"),
    [
        ("exposure", -1.0, "holds -1.0 in row 3; give a number above 0"),
        ("exposure", 0.0, "holds 0.0 in row 3; give a number above 0"),
        ("exposure", None, "holds a missing value in row 3; give a number above 0"),
        ("exposure", "n/a", "in row 3; give a number above 0"),
        ("exposure", "many", "holds 'many' in row 3; give a number above 0"),
        ("offset", None, "holds a missing value in row 3; give a number in each row"),
        ("offset", np.inf, "holds inf in row 3; give a number in each row"),
        ("offset", "many", "holds 'many' in row 3; give a number in each row"),
    ],
)
def test_exposures_and_offsets_of_later_rows_are_what_they_had_to_be_in_training(role, cell, held):
    table = SALES[["store", "sales"]].assign(sales=np.arange(300) % 4, e=np.linspace(0.5, 2, 300))
    prepared = prepare(table, "sales", task="count", roles=RoleColumns(**{role: "e"}))
    model = train_best(all_contenders()["wide"], prepared, PLAN, choose_metric("count", None), None, 0, 1)
    new = table.head(9).astype({"e": object})
    assert np.isfinite(model.predict(new)).all()
    new.loc[3, "e"] = cell
    with pytest.raises(ValueError, match=f"Column 'e', which the predictions need, .*{held}"):
        model.predict(new)


LATER = {
    "a word": (
        "amount",
        "call us",
        "held numbers in training and now holds 'call us' in 2 of its 30 cells; they count",
    ),
    "a number unlike the others": ("amount", "1.2.3", "held numbers in training and now holds '1.2.3' in 2 of its 30"),
    "a plain number": ("n", "many", "held numbers in training and now holds 'many' in 2 of its 30 cells"),
    "a flag": ("flag", "perhaps", "held True and False in training and now holds 'perhaps' in 2 of its 30 cells"),
    "a date": ("day", "soon", "held dates in training and now holds 'soon' in 2 of its 30 cells"),
    "a typed date": ("at", "soon", "held dates in training and now holds 'soon' in 2 of its 30 cells"),
}


@pytest.fixture(scope="module")
def of_all_types():
    table = SALES.assign(
        amount=[f"${value:,.2f}" for value in np.linspace(10, 5000, 300)],
        n=np.arange(300) % 17,
        flag=np.arange(300) % 3 == 0,
        at=pd.date_range("2024-01-01", periods=300, freq="31h"),
    )
    return (
        table,
        winner(all_contenders()["wide"], table),
        winner(from_address("mine", "tests.custom_contenders:Mean"), table),
    )


@pytest.mark.parametrize("kind", ["csv", "frame"])
@pytest.mark.parametrize("name", LATER)
def test_a_few_new_words_are_missing_with_a_warning(name, kind, of_all_types, tmp_path):
    column, word, says = LATER[name]
    table, model, _ = of_all_types
    new = table.head(30).astype({column: object})
    new.loc[[3, 7], column] = word
    missing = table.head(30).astype({column: object})
    missing.loc[[3, 7], column] = None
    if kind == "csv":
        new.to_csv(tmp_path / "new.csv", index=False)
    with pytest.warns(UserWarning, match=f"Column {column!r} {says}") as said:
        got = model.predict(tmp_path / "new.csv" if kind == "csv" else new)
    assert len(said) == 1
    np.testing.assert_allclose(got, model.predict(missing))


@pytest.mark.parametrize("name", LATER)
def test_a_column_of_new_words_is_refused(name, of_all_types):
    column, word, _ = LATER[name]
    table, model, _ = of_all_types
    new = table.head(30).astype({column: object})
    new.loc[:19, column] = word
    with pytest.raises(ValueError, match=rf"Column {column!r} held .* in 20 of its 30 cells; pass the column"):
        model.predict(new)


def test_words_in_columns_that_are_not_used_do_not_matter(of_all_types):
    table, model, _ = of_all_types
    new = table.head(30).assign(sales="not yet known", note="none")
    np.testing.assert_array_equal(model.predict(new), model.predict(table.head(30)))


def test_contenders_of_ones_own_get_numbers_too(of_all_types):
    table, _, model = of_all_types
    new = table.head(30)
    new.loc[3, "amount"] = "call us"
    with pytest.warns(
        UserWarning, match="Column 'amount' held numbers in training and now holds 'call us' in 1 of its"
    ):
        model.predict(new)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("wide", "regression"),
        ("onehot-linear", "multiclass"),
        ("target-lightgbm", "regression"),
        ("lightgbm", "multiclass"),
        ("wide-lightgbm", "multiclass"),
    ],
)
def test_flags_may_be_missing_in_later_rows(name, task):
    table = (SALES if task == "regression" else classes_of(3)).assign(flag=np.arange(300) % 3 == 0)
    new = table.head(30).astype({"flag": object})
    new.loc[[3, 7], "flag"] = None
    model = winner(all_contenders()[name], table, task)
    rest = [row for row in range(30) if row not in (3, 7)]
    np.testing.assert_array_equal(model.predict(new)[rest], model.predict(table.head(30))[rest])


@pytest.mark.slow
def test_blanks_around_names_are_those_of_the_file_and_missing_columns_are_named_together(tmp_path):
    """Headers of text files are read without blanks; those of frames and of Excel are, too."""
    model = winner(all_contenders()["onehot-linear"])
    same = model.predict(SALES)
    padded = SALES.rename(columns={"store": "store ", "day": " day"})
    padded.to_excel(tmp_path / "t.xlsx", index=False)
    padded.to_csv(tmp_path / "t.csv", index=False)
    for table in (padded, tmp_path / "t.xlsx", tmp_path / "t.csv"):
        np.testing.assert_allclose(model.predict(table), same)
    np.testing.assert_allclose(winner(all_contenders()["onehot-linear"], padded).predict(SALES), same)
    with pytest.raises(ValueError, match="There are no columns 'store', 'day', with which the model was trained"):
        model.predict(SALES.drop(columns=["store", "day"]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "kind"),
    [(("TRUE", "FALSE"), "pandas"), (("True", "False"), "pandas"), (("true", "false"), "parquet")],
)
def test_text_that_reads_as_booleans_stays_the_label(words, kind, tmp_path):
    """Of a frame or file with types; in CSV, which has none, they are booleans, as pandas reads them."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.choice(list("xyz"), 200), "y": rng.choice(words, 200)})
    table["y"] = np.where(table["a"] == "x", words[0], table["y"])
    given = table
    if kind == "parquet":
        given = tmp_path / "t.parquet"
        table.to_parquet(given)
    best = compare(given, "y", contenders=["wide"], folds=2, out=tmp_path / "out", quiet=True).best
    assert sorted(best.classes_) == sorted(words)
    assert (best.predict(table) == table["y"]).mean() > 0.5
    table.to_csv(tmp_path / "t.csv", index=False)
    best = compare(tmp_path / "t.csv", "y", contenders=["wide"], folds=2, out=tmp_path / "csv", quiet=True).best
    assert sorted(best.classes_) == [False, True]


CATEGORIES = {
    "whole": [1, 2, 3, 7],
    "whole beside missing": [1.0, 2.0, None, 7.0],
    "booleans": [True, False, True, False],
    "booleans beside missing": [True, False, None, True],
    "large and small": [1e6, 2.5, 1e-7, 3e15],
    "decimals": [Decimal("1.50"), Decimal("2.00"), Decimal("3.25"), Decimal("7.10")],
    "days": [dt.date(2020, 1, day) for day in (1, 2, 3, 4)],
    "midnights": [pd.Timestamp(2020, 1, day) for day in (1, 2, 3, 4)],
    "moments": [pd.Timestamp(2020, 1, 1, hour) for hour in (0, 8, 12, 13)],
    "text": ["a", "2.0", "1.10", "2020-01-01 00:00:00"],
    "codes like days": ["1234-56-7800", "1234-56-7811", "1234-56-9900", "1234-56-1200"],
    "zeros": [-0.0, 0.0, 2.0, 3.0],
    "beyond 2^63": np.array([2**63 + 1, 2**63 + 2, 2**63 + 3000, 4], dtype=np.uint64),
    "digits beyond floats": [Decimal("12345678901234567.1"), Decimal("12345678901234567.2"), Decimal(3), Decimal(4)],
}
INEXACT = ("zeros", "beyond 2^63", "digits beyond floats")  # whose text in an engine, and in Excel, is another


@pytest.mark.parametrize("name", CATEGORIES)
def test_exports_of_columns_named_as_categories_predict_as_the_winner(name, tmp_path):
    """Numbers, booleans and dates are text in a winner's model; an engine's text of them is another."""
    values = CATEGORIES[name]
    rng = np.random.default_rng(0)
    which = rng.choice(4, 400)
    cells = pd.Series([values[place] for place in which])
    table = pd.DataFrame({"row": range(400), "c": cells, "z": rng.normal(size=400)})
    table["y"] = np.array([0, 5, 1, 3])[which] + 0.1 * rng.normal(size=400)
    table.to_parquet(tmp_path / "t.parquet")
    options = {"categorical": ["c"], "drop": ["row"], "folds": 2, "quiet": True, "out": tmp_path / "out"}
    best = compare(tmp_path / "t.parquet", "y", contenders=["wide"], **options).best
    want = best.predict(tmp_path / "t.parquet")
    assert len(np.unique(want.round(1))) > 1
    with duckdb.connect() as base:
        base.execute(f"CREATE TABLE rows AS SELECT * FROM '{tmp_path / 't.parquet'}'")
        base.execute(to_sql(best, dialect="duckdb"))
        view = base.execute("SELECT * FROM rows_prediction ORDER BY row").df()
    assert len(view) == 400
    if name not in INEXACT:
        np.testing.assert_allclose(view["prediction"], want, rtol=1e-10)
    scorer = from_spec(json.loads(json.dumps(to_spec(best))))
    np.testing.assert_allclose(scorer.predict(pd.read_parquet(tmp_path / "t.parquet")), want, rtol=1e-10)
    if name in INEXACT:
        return
    if name != "large and small" and not isinstance(values[0], (str, dt.date)):
        book = Book(to_excel(best, tmp_path / "best.xlsx"))
        for row in range(12):
            cell = float(cells[row]) if isinstance(cells[row], Decimal) else cells[row]
            book.type_in({"z": table["z"][row]} | ({"c": cell} if pd.notna(cell) else {}))
            assert book.result("prediction") == pytest.approx(want[row], rel=1e-9)
    if not isinstance(values[0], (Decimal, dt.date)):  # which pandas writes to SQLite in ways of its own
        with sqlite3.connect(":memory:") as base:
            pd.read_parquet(tmp_path / "t.parquet").to_sql("rows", base, index=False)
            base.executescript(to_sql(best, dialect="sqlite"))
            found = [row[0] for row in base.execute('SELECT prediction FROM rows_prediction ORDER BY "row"')]
        np.testing.assert_allclose(found, want, rtol=1e-10)
