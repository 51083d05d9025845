"""`to_excel`: rate tables whose formulas score a row, evaluated by `excel_formulas`."""

import datetime as dt
import sys

import numpy as np
import openpyxl
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from tabsym import DateParts, WideClassifier, WideRegressor
from tabsym.export import to_csv, to_excel
from tests.exported import MODELS, fitted, new_rows, scores, table, target
from tests.formulas import random_formula, random_table
from tests.oracles.excel_formulas import Book


def cells(row):
    """A row as a person types it: empty cells where values are missing."""
    found = {}
    for name, value in row.items():
        if pd.isna(value) or value == "":
            found[name] = None
        elif isinstance(value, pd.Timestamp):
            found[name] = value.to_pydatetime()
        else:
            found[name] = value.item() if isinstance(value, np.generic) else value
    return found


def check(model, X, path, rows):
    book = Book(to_excel(model, path))
    expected, classes = scores(model, X), model.predict(X)
    size = np.std(expected) + 1.0
    for row in rows:
        book.type_in(cells(X.iloc[row]))
        own = np.atleast_1d(expected[row])
        if hasattr(model, "classes_") or len(own) > 1:
            found = [book.result("linear predictor", 2 + output) for output in range(len(own))]
            np.testing.assert_allclose(found, own, rtol=0, atol=1e-10 * size)
        label = book.result("prediction")
        if hasattr(model, "classes_"):
            assert type(label)(classes[row]) == label
            if hasattr(model, "predict_proba"):
                shares = [book.result("probability", 2 + place) for place in range(len(model.classes_))]
                np.testing.assert_allclose(shares, model.predict_proba(X.iloc[[row]])[0], atol=1e-10)
        else:
            assert label == pytest.approx(expected[row], abs=1e-10 * size)


@pytest.mark.parametrize("name", MODELS)
def test_a_row_that_is_typed_in_is_scored(name, tmp_path):
    new = new_rows()
    new = new[(new["text"] != "") & new["text"].notna() | (new.index < 30)].reset_index(drop=True)
    check(fitted(name), new, tmp_path / "rates.xlsx", [0, 5, 8, 12, 26, 30])


@pytest.mark.filterwarnings("ignore:The formula of", "ignore:.* ended short of the optimum")
@pytest.mark.parametrize("seed", range(300, 315))
def test_random_formulas(seed, tmp_path):
    rng = np.random.default_rng(seed)
    tree, X, new = random_formula(rng), random_table(rng, 100), random_table(rng, 20)
    y = X["x"] + (X["a"] == "k") + rng.normal(size=len(X)) / 3
    new.loc[:2, "a"], new.loc[2:4, "c"], new.loc[3, "b"] = "zz", "zz", None
    model = WideRegressor(str(tree), loss="squared_error", max_iter=5).fit(X, y)
    check(model, new, tmp_path / "rates.xlsx", range(6))


def test_text_is_never_a_formula(tmp_path):
    names = ["=cmd|' /C calc'!A0", "+1", "-2", "@SUM(A1)", "'quoted", "plain", "*", "A", "a"]
    X = pd.DataFrame({"=1+1": names * 20})
    y = np.arange(180) % 9
    model = WideRegressor(loss="squared_error", alpha=0.0).fit(X, y)
    path = to_excel(model, tmp_path / "rates.xlsx")
    for sheet in openpyxl.load_workbook(path):
        for row in sheet.iter_rows():
            for cell in row:
                text = str(cell.value)
                ours = text.startswith(("=IF(", "=SUM", "=$B", "='", "=B", "=C", "=EXP", "=A"))
                assert cell.data_type != "f" or (ours and not text.startswith("=cmd")), text
                if cell.value in names[:5]:
                    assert cell.data_type == "s" and cell.quotePrefix
    book = Book(path)
    for place, name in enumerate(names):  # text is matched by case, and without wildcards
        book.type_in({"=1+1": name})
        assert book.result("prediction") == pytest.approx(float(place), abs=1e-6)


def test_the_sheets_are_rate_tables(tmp_path):
    X, y = table(), target(table())
    X = X[["text", "thirds"]].replace({"text": {"": "empty"}})
    model = WideRegressor(loss="poisson", interactions=None, count_effect=False).fit(X, np.exp(y / 5))
    path = to_excel(model, tmp_path / "rates.xlsx")
    book = Book(path)
    sheet = openpyxl.load_workbook(path)["1 text"]
    heads = ["coefficient lower", "coefficient upper", "relativity lower", "relativity upper"]
    assert [cell.value for cell in sheet[1]] == ["text", "rows", "coefficient", "relativity", *heads]
    own = model.coef_table(level=0.95).query("term == 'text'").reset_index(drop=True)
    for place, line in own.iterrows():
        row = [book.cell("1 text", place + 2, column) for column in range(1, 9)]
        assert row[0] == ("(missing)" if line["category"] is None else line["category"]) and row[1] == line["rows"]
        np.testing.assert_allclose(
            np.array(row[2:], dtype=float),
            [
                line["value"],
                np.exp(line["value"]),
                line["lower"],
                line["upper"],
                np.exp(line["lower"]),
                np.exp(line["upper"]),
            ],
        )
    smooth = openpyxl.load_workbook(path)["2 thirds"]
    assert [cell.value for cell in smooth[1]][-2:] == ["bin 1 above", "bin 1 up to"]
    frame = model.coefs_["thirds"]
    highs = [row[-1].value for row in smooth.iter_rows(min_row=2)]
    assert highs[0] is highs[-1] is None  # of missing values and of the last bin
    assert highs[1:-1] == pytest.approx(frame["high"][1:-1].tolist(), rel=1e-15)


@pytest.mark.parametrize("name", ["pairs", "three classes", "offset"])
def test_files_have_what_the_sheets_have(name, tmp_path, monkeypatch):
    """Cell by cell, formulas computed: to_csv needs no openpyxl."""
    model = fitted(name)
    book = Book(to_excel(model, tmp_path / "rates.xlsx"))
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    files = to_csv(model, tmp_path / "new" / "rates")
    monkeypatch.undo()
    titles = [one for one in book.book.sheetnames if one not in ("score", "bins")]
    assert sorted(one.stem for one in files) == sorted(titles) and all(one.exists() for one in files)
    for file in files:
        sheet = book.book[file.stem]
        frame = pd.read_csv(file, keep_default_na=False, dtype=str)
        assert list(frame) == [cell.value for cell in sheet[1]] and len(frame) == sheet.max_row - 1
        for row in [0, len(frame) // 2, len(frame) - 1]:
            for column, text in enumerate(frame.iloc[row], 1):
                value = book.cell(file.stem, row + 2, column)
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    own = (
                        (pd.Timestamp(text) - pd.Timestamp("1899-12-30")).days
                        if text[:2] == "20" and "-" in text
                        else float(text)
                    )
                    assert own == pytest.approx(value, rel=1e-14)
                else:
                    assert text == ("" if value is None else str(value))


def of_bases(model, folder, base):
    """The CSV files by term, and the same lines of `coef_table`."""
    files = {
        file.stem.split(" ", 1)[1].replace("_", ":"): pd.read_csv(file) for file in to_csv(model, folder, base=base)
    }
    tables = dict(iter(model.coef_table(base=base).groupby("term", sort=False)))
    return files, tables


@pytest.fixture(scope="module")
def rates():
    rng = np.random.default_rng(0)
    make, use = rng.choice(4, 400, p=[0.4, 0.3, 0.2, 0.1]), rng.choice(2, 400)
    X = pd.DataFrame({"make": np.array(list("uvwx"))[make], "use": np.array(["p", "q"])[use]})
    X["age"] = rng.uniform(18, 70, 400).round(1)
    mean = np.exp(np.array([0.0, 0.4, -0.4, 0.8])[make] + use + X["age"] / 70)
    model = WideRegressor(loss="poisson", interactions=[("make", "use")], count_effect=False)
    return X, model.fit(X, rng.poisson(mean))


@pytest.mark.parametrize("base", [{"make": "x", "age": 30.0, "make:use": ("u", "q")}, "largest"], ids=str)
def test_bases_are_those_of_the_table_of_coefficients(rates, base, tmp_path):
    X, model = rates
    files, tables = of_bases(model, tmp_path, base)
    for name, lines in tables.items():
        if name not in files:  # dropped
            assert (lines["value"] == 0.0).all()
            continue
        heads = ["coefficient", "relativity", "coefficient lower", "coefficient upper"]
        heads += ["rows"] if lines["rows"].notna().all() else []  # not of the intercept
        found = files[name][heads].to_numpy(dtype=float)
        wanted = lines.rename(columns={"value": heads[0], "lower": heads[2], "upper": heads[3]})[heads]
        np.testing.assert_allclose(found, wanted.to_numpy(dtype=float), rtol=1e-9, atol=1e-12)
    make = files["make"].set_index("make")
    key = "x" if base != "largest" else X["make"].mode()[0]
    assert make.loc[key, "relativity"] == 1.0
    assert make.loc[key, "coefficient lower"] == make.loc[key, "coefficient upper"] == 0.0


def test_products_of_relativities_are_ratios_of_predictions(rates, tmp_path):
    X, model = rates
    files, _ = of_bases(model, tmp_path, "largest")
    made = model.predict(X)
    factor = np.full(len(X), float(files.pop("(intercept)")["relativity"].iloc[0]))
    for name, frame in files.items():
        if "bin 1 above" in frame:
            bins = np.searchsorted(frame["bin 1 up to"].iloc[:-1].to_numpy(), X[name].to_numpy())
            factor *= frame["relativity"].to_numpy()[bins]
        else:
            keys = list(frame.columns[: len(name.split(":"))])
            own = dict(zip(frame[keys].itertuples(index=False, name=None), frame["relativity"], strict=True))
            factor *= np.array([own[row] for row in X[keys].itertuples(index=False, name=None)])
    np.testing.assert_allclose(factor, made, rtol=1e-9)


@pytest.mark.parametrize("name", ["slopes", "three classes"])
def test_scores_stay_the_same_with_bases(name, tmp_path):
    new = new_rows()
    new = new[(new["text"] != "") & new["text"].notna()].reset_index(drop=True)
    model = fitted(name)
    book, expected = Book(to_excel(model, tmp_path / "rates.xlsx", base="largest")), scores(model, new)
    for row in (0, 8, 26):
        book.type_in(cells(new.iloc[row]))
        own = np.atleast_1d(expected[row])
        found = [book.result("linear predictor", 2 + output) for output in range(len(own))]
        np.testing.assert_allclose(found, own, rtol=0, atol=1e-9 * (np.std(expected) + 1.0))


@pytest.mark.parametrize("formula", ["f[home] - f[away] + c[1]", "f[home] - f[away]"])
@pytest.mark.parametrize("base", [{"f": "B"}, "largest"], ids=str)
def test_bases_of_terms_that_cancel_are_those_of_the_table_of_coefficients(formula, base, tmp_path):
    """Strengths of teams: what one less another is stays the same, and no intercept has anything to take up."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"home": rng.choice(list("ABC"), 300), "away": rng.choice(list("ABC"), 300)})
    strength = {"A": 0.0, "B": 0.5, "C": -1.0}
    score = X["home"].map(strength) - X["away"].map(strength) + 0.3
    y = np.where(score + rng.logistic(size=300) > 0, "won", "lost")
    model = WideClassifier(formula, alpha=0.01).fit(X, y)
    files, tables = of_bases(model, tmp_path, base)
    for name, part in tables.items():
        lines = files[name].set_index(files[name].columns[0])
        own = part.set_index("category" if name == "f" else "term")
        for column, other in (("coefficient", "value"), ("coefficient lower", "lower"), ("relativity", "relativity")):
            np.testing.assert_allclose(lines.loc[own.index, column], own[other], rtol=1e-9, atol=1e-12)
    new = pd.DataFrame({"home": ["A", "C", "B", "X"], "away": ["B", "B", "X", "C"]})
    book = Book(to_excel(model, tmp_path / "rates.xlsx", base=base))
    for row, expected in enumerate(scores(model, new)):
        book.type_in(cells(new.iloc[row]))
        assert book.result("linear predictor", 2) == pytest.approx(expected, abs=1e-9)


def test_bases_that_cannot_be_are_refused(rates, tmp_path):
    X, model = rates
    for base, message in (
        ({"make": "never"}, "has no category 'never'"),
        ({"colour": "red"}, "colour"),
        ("smallest", "base='smallest' is not possible; use {term: category}, 'largest' or None"),
    ):
        with pytest.raises((ValueError, KeyError), match=message):
            to_csv(model, tmp_path, base=base)
    product = WideRegressor("f[make] * g[use] * s + b[1]", loss="squared_error").fit(X.assign(s=1.0), X["age"])
    with pytest.raises(
        ValueError, match=r"base names 'f', whose coefficients are factors of a product .* leave it out"
    ):
        to_excel(product, tmp_path / "rates.xlsx", base={"f": "u"})


def test_edits_change_the_score(tmp_path):
    X = pd.DataFrame({"c": ["a", "b"] * 20})
    path = to_excel(WideRegressor(loss="squared_error").fit(X, [1.0, 3.0] * 20), tmp_path / "rates.xlsx")
    book = Book(path)
    book.type_in({"c": "a"})
    before = book.result("prediction")
    book.book["1 c"].cell(2, 3).value += 10.0
    book.type_in({"c": "a"})
    assert book.result("prediction") == pytest.approx(before + 10.0)


@pytest.mark.slow
def test_parts_of_dates(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"at": pd.Timestamp("2023-12-20") + pd.to_timedelta(rng.integers(0, 10**8, 300), unit="s")})
    X.loc[3:4, "at"] = pd.NaT
    y = X["at"].dt.month.fillna(3) + X["at"].dt.hour.fillna(1) / 3 + X["at"].dt.day_of_week.fillna(2)
    model = make_pipeline(DateParts(), WideRegressor(loss="squared_error")).fit(X, y)
    check(model, X, tmp_path / "rates.xlsx", [0, 1, 3, 100])


def test_what_a_sheet_cannot_hold_is_refused(tmp_path, monkeypatch):
    def of(values):
        return WideRegressor(loss="squared_error", alpha=0.0, categorical_features="all").fit(
            pd.DataFrame({"c": pd.Series(values * 20, dtype=object)}), [0.0, 1.0] * 20
        )

    for values, words in (
        (["(missing)", "b"], r"has a category '\(missing\)'"),
        (["a\x01", "b"], "holds a character that Excel files cannot"),
        (["a" * 40_000, "b"], "has 40,000 characters"),
        ([b"a", b"b"], "is no text, number or date"),
        ([10**15 + 1, 1], "is no text, number or date"),
    ):
        with pytest.raises(ValueError, match=words):
            to_excel(of(values), tmp_path / "rates.xlsx")
    dates = [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]
    check(of(dates), pd.DataFrame({"c": pd.Series([*dates, dt.date(2020, 1, 1)])}), tmp_path / "d.xlsx", [0, 1, 2])
    monkeypatch.setattr("tabsym.export.excel.MAX_ROWS", 2)
    with pytest.raises(ValueError, match="'c' has 2 coefficients, more than the 1 rows of a sheet"):
        to_excel(of(["a", "b"]), tmp_path / "rates.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ModuleNotFoundError, match=r'needs openpyxl: pip install "tabsym\[export\]"'):
        to_excel(of(["a", "b"]), tmp_path / "rates.xlsx")


def test_names_of_sheets(tmp_path):
    X = pd.DataFrame({"a" * 50: ["x", "y"] * 20, "history[1]/*?:\\'": ["u", "v", "w", "u"] * 10})
    model = WideClassifier(interactions=None, alpha=0.0).fit(X, [0, 1, 1, 0, 1, 0, 0, 1] * 5)
    check(model, X, tmp_path / "rates.xlsx", [0, 1, 2])
