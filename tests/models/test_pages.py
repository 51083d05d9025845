"""What fitted models write and show as HTML: complete, escaped, without scripts; and what they hand to shap."""

import re
import sys
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr

from tabsym import MODLEncoder, WideClassifier, WideRegressor, WideSGDClassifier, WideSGDRegressor
from tabsym.models.inspection import page as page_module
from tests.compare.test_report import Page

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = 1200
    names = rng.choice([EVIL, "<b>b", "c"], n, p=[0.4, 0.4, 0.2])
    X = pd.DataFrame({EVIL: names, "g": rng.choice(list("uvw"), n), "x": rng.normal(size=n)})
    X.loc[:1, EVIL] = "rare"
    y = X["x"] ** 2 + (X[EVIL] == EVIL) + 2.0 * ((X["g"] == "u") & (X[EVIL] == "c")) + 0.3 * rng.normal(size=n)
    return X, y


@pytest.fixture(scope="module")
def model(rows):
    return WideRegressor(loss="squared_error", interactions=[("g", EVIL)]).fit(*rows)


def check(text, *, is_page):
    """No script, nothing from elsewhere, and names as text."""
    page = Page(text)
    assert "script" not in page.elements
    assert "b" not in page.elements
    assert not re.search(r"https?:|url\(|@import|<link|srcset|href", re.sub(r'src="data:[^"]*"', "", text))
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert EVIL in page.text
    assert ("html" in page.elements) == is_page
    return page


@pytest.mark.slow
def test_the_report_has_its_sections_and_escapes_names(model, rows, tmp_path):
    X, y = rows
    held = X.head(300).assign(g="new")
    assert model.report(tmp_path / "m.html", held, y[:300]) == tmp_path / "m.html"
    page = check((tmp_path / "m.html").read_text(encoding="utf-8"), is_page=True)
    for heading in ("What to be careful with", "Terms by importance", "Effects", "Interactions", "Calibration and lift",
                    "Worst segments"):  # fmt: skip
        assert heading in page.text
    assert "300 rows (100.0%) have a category of 'g' that fit has not seen" in page.text
    assert f"R2 {model.score(held, y[:300]):.3f}" in page.text
    assert "Rare: 1 of the 4 categories" in page.text
    assert "Unknown categories add nothing" in page.text
    alts = [image["alt"] for image in page.images]
    assert set(alts) >= {"Coefficients of x", f"Coefficients of g:{EVIL}", "Calibration", "Lift by decile"}
    policy = next(value for _, name, value in page.attributes if name == "content" and "default-src" in value)
    assert "script-src" not in policy and policy.startswith("default-src 'none'")


@pytest.mark.slow
def test_without_rows_the_report_says_what_is_left_out(model, rows, tmp_path):
    page = check(model.report(tmp_path / "m.html", title=f"mine {EVIL}").read_text(encoding="utf-8"), is_page=True)
    assert "They need rows, and none were given" in page.text
    assert page.titles == [f"mine {EVIL}"]
    with pytest.raises(ValueError, match="X is given without y"):
        model.report(tmp_path / "n.html", rows[0])
    with pytest.raises(ValueError, match="X is None; give X too"):
        model.report(tmp_path / "n.html", y=rows[1])
    with pytest.raises(ValueError, match="There is no folder"):
        model.report(tmp_path / "none" / "n.html")
    assert not (tmp_path / "n.html").exists()


def test_bins_are_named_as_in_the_pictures(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "flag": rng.integers(0, 2, 400),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 9, 400), "D"),
        }
    )
    X.loc[:40, "day"] = pd.NaT
    model = WideRegressor(interactions=None).fit(X, X["flag"] + rng.normal(0.0, 0.1, 400) + (X["day"].dt.day > 5))
    page = Page(model.report(tmp_path / "m.html").read_text(encoding="utf-8"))
    names = {row[-1] for row in page.rows if row[0] == "flag"}
    assert names == {"> 0, ≤ 0"}
    firsts = [row[0] for row in page.rows]
    assert firsts[firsts.index("bin") :].count("> 0") == 1
    assert "(missing)" in firsts
    assert any(re.fullmatch(r"\(2024-01-\d\d( 12:00:00)?, 2024-01-\d\d( 12:00:00)?\]", name) for name in firsts)
    assert not [name for name in [*names, *firsts] if "inf" in name]


@pytest.mark.slow
def test_reports_of_classes_and_of_separated_terms(rows, tmp_path):
    X, y = rows
    three = WideClassifier(interactions=None).fit(X, pd.cut(y, 3, labels=list("abc")).astype(str))
    page = Page(three.report(tmp_path / "a.html", X, three.predict(X)).read_text(encoding="utf-8"))
    assert "accuracy 1.000" in page.text
    assert "each class has its own" in page.text
    with pytest.warns(match="separation"):
        apart = WideClassifier("f[g] + c[1]", alpha=0.0, tol=1e-6).fit(X, X["g"] == "u")
    page = Page(apart.report(tmp_path / "b.html", X, X["g"] == "u").read_text(encoding="utf-8"))
    assert "Separation: 'f' predict" in page.text
    assert "normalized Gini 1.000" in page.text  # 2 AUC - 1


def test_what_explains_is_muted_and_what_is_told_is_not(tmp_path, monkeypatch):
    """Each paragraph of the page of a model and of the notebook, by how it begins."""
    monkeypatch.setattr(page_module, "MAX_TERMS", 1)
    monkeypatch.setattr(page_module, "MAX_COEFFICIENTS", 2)
    monkeypatch.setattr(page_module, "_MAX_SEGMENTS", 2)
    rng = np.random.default_rng(0)
    X = pd.DataFrame(list(product("pqr", repeat=3)) * 10, columns=["g", "h", "none"])
    y = 1.0 * (X["g"] == "p") + 0.5 * (X["h"] == "q") + 0.1 * rng.normal(size=270)
    y -= y.groupby(X["none"]).transform("mean")  # which has no effect then
    model = WideRegressor(loss="squared_error", interactions=None).fit(X, y)

    def told(text):
        found = re.findall(r'<p( class="muted")?>(.*?)</p>', text, re.DOTALL)
        return [(bool(muted), words.split()[0]) for muted, words in found]

    terms = [(True, f"{len(model.model_.spec.blocks)}"), (True, "Dropped,")]
    pictures = [(True, "They"), (True, "2"), (True, "1")]  # what they show; 2 of 3 coefficients; 1 further term
    before = [terms[0], (True, "Fraction:"), terms[1], (False, "g[g]"), *pictures]
    without = model.report(tmp_path / "a.html").read_text(encoding="utf-8")
    assert told(without) == [*before, (False, "They")]
    given = model.report(tmp_path / "b.html", X, y).read_text(encoding="utf-8")
    rows = [(False, "270"), (True, "Rows"), *[(True, "2")] * 3]  # of each column 2 of 3 segments
    assert told(given) == [*before, *rows]
    assert told(model._repr_html_()) == [(False, "WideRegressor:"), *terms, (False, "g[g]")]


def shown_coefficients(model, name):
    """The headings, the lines of the table and the sentence below it."""
    page = Page(page_module._coefficients(model, name))
    lines = [[cell.replace("\u2212", "-") for cell in row] for row in page.rows]
    return lines[0], lines[1:], page.text.partition("".join(page.rows[-1]))[2]


def as_shown(frame, keys, counts):
    """Lines of a frame: numbers in four digits, counts whole, unknown ones as a dash."""
    return [
        [key, *("-" if pd.isna(value) else f"{value:,.0f}" if column in counts else f"{value:.4g}"
                for column, value in row.items())]
        for key, (_, row) in zip(keys, frame.iterrows(), strict=True)
    ]  # fmt: skip


def test_coefficients_are_listed_by_frequency_and_bins_in_order(monkeypatch):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"g": np.repeat(list("pqrs"), [400, 1700, 400, 500]), "x": rng.choice(9, 3000) / 4.0 - 1.0})
    X.loc[:9, "x"] = np.nan
    model = WideRegressor(loss="squared_error", interactions=None)
    model.fit(X, (X["g"] == "q") + X["x"].fillna(3.0) ** 2 + 0.1 * rng.normal(size=3000))
    frame = model.coefs_["g"]
    heads, lines, below = shown_coefficients(model, "g")
    assert heads == ["category", "value", "sd", "rows"]
    assert lines == as_shown(frame.loc[list("qspr")], "qspr", ["rows"])  # of equally frequent ones the first first
    assert lines[0][3] == "1,700" and not below
    frame = model.coefs_["x"]
    heads, lines, below = shown_coefficients(model, "x")
    assert heads == ["bin", "value", "sd", "rows"]
    ends = [f"{end:.4g}" for end in frame["low"].iloc[2:]]
    inner = [f"({low}, {high}]" for low, high in pairwise(ends)]
    keys = ["(missing)", f"\u2264 {ends[0]}", *inner, f"> {ends[-1]}"]
    assert lines == as_shown(frame[["value", "sd", "rows"]], keys, ["rows"]) and not below
    monkeypatch.setattr(page_module, "MAX_COEFFICIENTS", 4)
    heads, lines, below = shown_coefficients(model, "g")
    assert len(lines) == 4 and not below
    heads, fewer, below = shown_coefficients(model, "x")
    assert len(fewer) == 4 and below == f"4 of {len(keys)}."
    monkeypatch.setattr(page_module, "MAX_COEFFICIENTS", 3)
    assert shown_coefficients(model, "g")[1:] == (lines[:3], "3 of 4.")


def test_classes_called_as_the_columns_beside_them_have_theirs():
    """Those of bounds and of rows have other names then."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"g": rng.choice(list("pqr"), 600), "x": rng.choice(9, 600) / 4.0 - 1.0})
    y = np.where(X["x"] > 0.5, "high", np.where(X["x"] < -0.5, "low", "rows"))
    model = WideClassifier(interactions=None).fit(X, np.where(rng.random(600) < 0.2, "low", y))
    values = ["high", "low", "rows"]
    for name in ("g", "x"):
        heads, lines, _ = shown_coefficients(model, name)
        assert heads[1:4] == values and heads[-1] == "training rows" and len(heads) == 8
        frame = model.coefs_[name]
        frame = frame.loc[frame["training rows"].sort_values(ascending=False).index] if name == "g" else frame
        columns = [*values, *(f"sd {value}" for value in values), "training rows"]
        assert lines == as_shown(frame[columns], [line[0] for line in lines], ["training rows"])


def test_vectors_and_unknown_deviations_are_listed_too():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.choice(list("pqrst"), 400) for name in "ab"})
    y = rng.normal(size=400)
    made = WideSGDRegressor("dot(u[a], v[b], rank=2) + d[1]", max_iter=2, random_state=0).fit(X, y)
    heads, lines, _ = shown_coefficients(made, "u")
    frame = made.coefs_["u"]
    assert heads == ["category", *map(str, frame.columns)] and len(frame.columns) == 3
    frame = frame.iloc[np.argsort(-frame["rows"].to_numpy(), kind="stable")]
    assert lines == as_shown(frame, frame.index, ["rows"])


def test_notebooks_show_fitted_models_and_scikit_learns_diagram_before(model, rows):
    page = check(model._repr_html_(), is_page=False)
    assert page.rows[0][:2] == ["term", "fraction"]
    fractions = [float(row[1].rstrip("%")) for row in page.rows[1:]]
    assert fractions == sorted(fractions, reverse=True)
    sizes = dict(zip(model.feature_names_in_, model.feature_importances_, strict=True))
    shown = {row[0]: float(row[1].rstrip("%")) / 100 for row in page.rows[1:]}
    assert shown["x"] == pytest.approx(sizes["x"], abs=6e-4)
    assert model._repr_mimebundle_()["text/html"] == model._repr_html_()
    for new in (WideRegressor(), MODLEncoder(), WideSGDClassifier()):
        assert "sk-container-id" in new._repr_html_()
    assert "sk-container-id" in estimator_html_repr(make_pipeline(model))
    encoder = MODLEncoder().fit(rows[0], rows[1] > 1)
    page = check(encoder._repr_html_(), is_page=False)
    assert [row[0] for row in page.rows[1:4]] == list(encoder.levels_)


def test_bars_are_the_fractions_of_the_largest(model):
    text = model._repr_html_()
    widths = [float(width) for width in re.findall(r'class="bar" style="width: ([\d.]+)rem"', text)]
    sizes = model.variances_["variance"]  # of as many terms
    fractions = [float(row[1].rstrip("%")) for row in Page(text).rows[1:]]
    assert len(widths) == len(fractions) == len(sizes)
    np.testing.assert_allclose(widths, 6.0 * np.array(fractions) / fractions[0], atol=0.02)
    assert max(widths) == widths[0] == 6.0 and min(widths) < 3.0


def test_factors_of_products_are_by_the_spread_of_their_coefficients():
    """Whose variance depends on the other factors; of vectors over all of their components."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.choice(list("pqrst"), 400) for name in "abc"})
    number = {name: X[name].map(dict(zip("pqrst", rng.normal(size=5), strict=True))) for name in "abc"}
    y = number["a"] * number["b"] + 0.2 * number["c"] + 0.1 * rng.normal(size=400)
    made = WideSGDRegressor("dot(u[a], v[b], rank=2) + w[c] + d[1]", max_iter=20, random_state=0).fit(X, y)
    values = {name: made.coefs_[name].iloc[:, : 1 if name == "w" else 2] for name in "uvw"}
    spreads = {name: float(np.std(value.to_numpy())) for name, value in values.items()}
    rows = Page(made._repr_html_()).rows[1:]
    wanted = sorted(spreads, key=spreads.get, reverse=True)
    assert [row[0] for row in rows] == wanted and wanted[-1] == "w"
    assert {tuple(row[1:6]) for row in rows} == {("-", "", "5", "-", "-")}
    ends = {row[0]: row[6:8] for row in rows}
    assert ends == {name: [f"{v.to_numpy().min():.3g}", f"{v.to_numpy().max():.3g}"] for name, v in values.items()}
    assert {row[0]: bool(row[8]) for row in rows} == {"u": False, "v": False, "w": True}  # vectors have no order
    for name in "uvw":
        frames = {**made.coefs_, name: made.coefs_[name].copy()}
        frames[name][values[name].columns[-1]] = 10.0 * np.arange(5)
        assert page_module.important_terms(made.model_, frames)[0] == (name, None)


def test_pages_show_the_variances_where_they_are_estimated(model, rows):
    shown = {row[0]: row[4:6] for row in Page(model._repr_html_()).rows[1:]}
    wanted = {name: [f"{row.sd:.3g}", f"{row.edf:,.1f}"] for name, row in model.variances_.iterrows()}
    assert shown == wanted and len(shown) == 4
    free = WideRegressor(loss="squared_error", interactions=None, alpha={"g": 0.0}).fit(*rows)
    assert {row[0]: row[4] for row in Page(free._repr_html_()).rows}["g"] == "unpenalized"
    online = WideSGDRegressor(max_iter=2, random_state=0).fit(*rows)
    assert {tuple(row[4:6]) for row in Page(online._repr_html_()).rows[1:]} == {("-", "-")}


def test_explanations_for_shap_add_up_to_the_linear_predictor(model, rows, monkeypatch):
    X, y = rows
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ModuleNotFoundError, match="pip install shap"):
        model.to_shap(X)

    def explanation(values, base_values, data, **names):
        return SimpleNamespace(values=values, base_values=base_values, data=data, **names)

    monkeypatch.setitem(sys.modules, "shap", SimpleNamespace(Explanation=explanation))
    made = model.to_shap(X)
    np.testing.assert_allclose(made.values.sum(axis=1) + made.base_values, model.predict(X))
    assert made.values.shape == made.data.shape == (len(X), len(made.feature_names))
    at = made.feature_names.index("x")
    np.testing.assert_allclose(made.data[:, at].astype(float), X["x"])
    assert abs(made.values[:, at].mean()) < 1e-8  # against the training rows
    cross = made.feature_names.index(f"g:{EVIL}")
    assert made.data[5, cross] == f"{X['g'][5]} | {X[EVIL][5]}"
    three = WideClassifier(interactions=None).fit(X, pd.cut(y, 3, labels=list("abc")).astype(str))
    made = three.to_shap(X.head(20))
    np.testing.assert_allclose(made.values.sum(axis=1) + made.base_values, three.decision_function(X.head(20)))
    assert made.output_names == ["a", "b", "c"]


@pytest.mark.parametrize("sample_weight", [None, np.linspace(0.5, 2.0, 60)])
def test_rows_with_an_exposure_are_rates_that_weigh_by_it(sample_weight):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"g": list("pqr") * 20, "e": rng.uniform(0.5, 2.0, 60)})
    y = rng.poisson(X["e"]).astype(float)
    made = WideRegressor(loss="poisson", exposure_column="e", interactions=None).fit(X, y)
    rows = page_module.rows_of_report(made, X, y, sample_weight, None)
    np.testing.assert_allclose(rows.observed[:, 0], y / X["e"])
    np.testing.assert_allclose(rows.predicted[:, 0], made.predict(X) / X["e"])
    np.testing.assert_allclose(rows.weight, X["e"] * (1.0 if sample_weight is None else sample_weight))
    np.testing.assert_array_equal(rows.sample_weight, np.ones(60) if sample_weight is None else sample_weight)


# -- the sections of rows ----------------------------------------------------------------------------


def sections(model, X, y, monkeypatch, weight=None, offset=None):
    """The sections of rows, with their figures by name."""
    figures = {}
    monkeypatch.setattr(page_module, "image", lambda figure, alt: figures.setdefault(alt, figure) and "")
    rows = page_module.rows_of_report(model, X, y, weight, offset)
    return Page("".join(page_module.sections_of_rows(model, rows))), figures, rows


def tenths(predicted, observed):
    """Mean predicted and observed by tenths of rows, of predictions that all differ."""
    part = pd.qcut(predicted, 10, labels=False)
    return np.array([[predicted[part == k].mean(), observed[part == k].mean()] for k in range(10)])


def test_calibration_and_lift_are_those_of_the_rows(monkeypatch):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"g": rng.choice(list("pqr"), 500), "x": rng.normal(size=500)})
    y = np.where(rng.random(500) < 1 / (1 + np.exp(-X["x"] - (X["g"] == "p"))), "yes", "no")
    model = WideClassifier(numeric="linear", interactions=None).fit(X, y)
    page, figures, rows = sections(model, X, y, monkeypatch)
    p = model.predict_proba(X)[:, 1]
    wanted = tenths(p, (y == "yes").astype(float))
    assert rows.task == "binary" and rows.names == ["yes"]
    assert f"500 rows; accuracy {np.mean(model.predict(X) == y):.3f}; mean of yes " in page.text
    assert f"mean of yes {np.mean(y == 'yes'):.4g} observed and {p.mean():.4g} predicted; normalized Gini" in page.text
    (ax,) = figures["Calibration"].axes
    curve = [line.get_xydata() for line in ax.lines if len(line.get_xydata()) == 10]
    np.testing.assert_allclose(curve, [wanted])
    assert ax.get_xlabel() == "predicted (means of tenths of the rows)" and ax.get_ylabel() == "observed"
    assert ax.get_legend() is None  # of one curve
    assert "calibration" in ax.get_title(loc="left") + ax.get_title(loc="right")
    (ax,) = figures["Lift by decile"].axes
    lines = {line.get_label(): line.get_ydata() for line in ax.lines}
    np.testing.assert_allclose(lines["predicted"], wanted[:, 0])
    np.testing.assert_allclose(lines["observed"], wanted[:, 1])
    assert {text.get_text() for text in ax.get_legend().get_texts()} >= {"predicted", "observed"}
    assert ax.get_xlabel() == "decile of the prediction, lowest first" and ax.get_ylabel() == "mean"
    assert "lift" in ax.get_title(loc="left") + ax.get_title(loc="right")
    at = page.rows.index(["decile", "rows", "predicted", "observed", "lift"])
    share = np.mean(y == "yes")
    assert page.rows[at + 1 : at + 11] == [
        [f"{k + 1}", "50", f"{wanted[k, 0]:.4g}", f"{wanted[k, 1]:.4g}", f"{wanted[k, 1] / share:.3f}"]
        for k in range(10)
    ]


def test_the_most_frequent_classes_are_calibrated_in_one_picture(monkeypatch):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"g": rng.choice(list("pqr"), 900), "x": rng.normal(size=900)})
    names = np.array([f"a class of many letters {k}" for k in range(8)])
    y = rng.choice(names, 900, p=np.array([1, 8, 2, 7, 3, 6, 4, 5]) / 36)
    model = WideClassifier(numeric="linear", interactions=None, alpha=1.0).fit(X, y)
    page, figures, rows = sections(model, X, y, monkeypatch)
    assert rows.task == "multiclass" and list(figures) == ["Calibration"]
    assert "normalized Gini" not in page.text and "each class has its own" in page.text
    (ax,) = figures["Calibration"].axes
    diagonal, *curves = (line.get_xydata() for line in ax.lines)
    np.testing.assert_array_equal(diagonal, [[0, 0], [1, 1]])
    p = model.predict_proba(X)
    for name, curve in zip(names[[1, 3, 5, 7, 6, 4]], curves, strict=True):  # six, the most frequent first
        np.testing.assert_allclose(curve, tenths(p[:, list(names).index(name)], (y == name).astype(float)))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a class of many let\u2026"] * 6
    weight = np.where(y == names[0], 100.0, 1.0)
    _, figures, _ = sections(model, X, y, monkeypatch, weight)
    assert "mean of" in page.text and len(figures["Calibration"].axes[0].lines) == 7
    means = np.average(figures["Calibration"].axes[0].lines[1].get_ydata())  # the heaviest class is first
    assert means > 0.5


def test_unseen_categories_are_counted(monkeypatch):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"g": rng.choice(list("pqr"), 200), "h": rng.choice(list("uv"), 200), "x": rng.normal(size=200)})
    y = X["x"] + (X["g"] == "p") + rng.normal(size=200)
    model = WideRegressor(loss="squared_error", numeric="linear", interactions=[("g", "h")]).fit(X, y)
    new = X.copy()
    new.loc[[3], "g"], new.loc[:2, "h"] = "new", "other"
    page, _, _ = sections(model, new, y, monkeypatch)
    assert "1 row (0.5%) has a category of 'g' that fit has not seen." in page.text
    assert "3 rows (1.5%) have a category of 'h' that fit has not seen." in page.text
    assert page.text.count("that fit has not seen") == 2
    assert "fit has not seen" not in sections(model, X, y, monkeypatch)[0].text


@pytest.mark.parametrize(
    ("loss", "task", "score"),
    [("poisson", "count", "D2"), ("gamma", "regression", "D2"), ("squared_error", "regression", "R2"),
     (None, "count", "R2")],
)  # fmt: skip
def test_the_sections_of_amounts_have_the_errors_of_their_loss(loss, task, score, monkeypatch):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"g": rng.choice(list("pq"), 400), "x": rng.normal(size=400)})
    y = rng.poisson(np.exp(1.0 + 0.3 * X["x"])) + 1.0
    model = WideRegressor(**({} if loss is None else {"loss": loss}), interactions=None).fit(X, y)
    page, _, rows = sections(model, X, y, monkeypatch)
    assert rows.task == task and rows.score.startswith(score) and rows.score.endswith(f"{model.score(X, y):.3f}")
    assert f"; mean {y.mean():.4g} observed and {model.predict(X).mean():.4g} predicted" in page.text
    at = page.rows.index(["category", "rows", "observed", "predicted", "observed - predicted", "s.e.", "z"])
    head = page.rows[at:]
    (line,) = (row for row in head if row[0] == "p")
    own, n = (X["g"] == "p").to_numpy(), int((X["g"] == "p").sum())
    residual = y[own] - model.predict(X)[own]
    variance = np.square(residual).sum()  # of the sum; of counts at least the expected one
    variance = max(variance, model.predict(X)[own].sum()) if task == "count" else variance
    z = residual.sum() / np.sqrt(variance)
    assert line == ["p", f"{n}", f"{y[own].mean():.4g}", f"{model.predict(X)[own].mean():.4g}",
                    f"{residual.mean():+.3g}", f"{np.sqrt(variance) / n:.2g}", f"{z:+.1f}"]  # fmt: skip


def test_dates_of_more_than_three_years_are_years():
    for days, wanted in ((3 * 366, ["2020-01", "2023-01"]), (3 * 366 + 1, ["2020", "2023"])):
        dates = pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta([0, days], "D"))
        X = pd.DataFrame({"day": np.repeat(dates.to_numpy(), 40)})
        model = WideRegressor(loss="squared_error", interactions=None).fit(X, np.arange(80.0))
        rows = page_module.rows_of_report(model, X, np.arange(80.0), None, None)
        assert page_module._cells_of(rows.table["day"]).unique().tolist() == wanted


def test_segments_of_columns_that_matter_come_first_and_two_are_open():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.choice(list("pqrst"), 2000) for name in "abcd"})
    effect = {"a": 0.2, "b": 1.0, "c": 0.5, "d": 0.05}
    y = sum(effect[name] * X[name].map(dict(zip("pqrst", range(5)))) for name in "abcd") + rng.normal(size=2000)
    model = WideRegressor(loss="squared_error", interactions=None).fit(X, y)
    order = model.feature_importances_
    assert list(X.columns[np.argsort(-order)]) == list("bcad")
    rows = page_module.rows_of_report(model, X, y, None, None)
    text = "".join(page_module.sections_of_rows(model, rows))
    found = re.findall(r"<details( open)?><summary>([^<]*)</summary>", text)
    assert found == [("", "deciles"), (" open", "b"), (" open", "c"), ("", "a"), ("", "d")]
    assert "0 of 20 differences are marked: they are beyond" in text
    wrong = y + 1.0 * (X["d"] == "q") - 1.0 * (X["d"] == "r")
    rows = page_module.rows_of_report(model, X, wrong, None, None)
    text = "".join(page_module.sections_of_rows(model, rows))
    found = re.findall(r"<details( open)?><summary>([^<]*)</summary>", text)
    assert (" open", "d (2 marked)") in found
    marked = re.findall(r'<tr class="flagged"><td[^>]*>([^<]*)<', text)
    assert sorted(marked) == ["q", "r"]


# -- words of the report -----------------------------------------------------------------------------


def test_the_report_says_what_its_pictures_show():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"g": rng.choice(list("pqr"), 300), "x": rng.normal(size=300)})
    y = rng.poisson(2.0, 300) + 1.0
    amounts = {loss: WideRegressor(loss=loss, interactions=None).fit(X, y) for loss in ("poisson", "squared_error")}
    two, three = (WideClassifier(interactions=None).fit(X, np.minimum(y, top)) for top in (2, 3))
    hinge = WideSGDClassifier(loss="hinge", max_iter=2, random_state=0).fit(X, y > 2)
    told = {
        "Relativities: factors of the mean of the term": amounts["poisson"],
        "They show the difference from the mean, in units of the target. ": amounts["squared_error"],
        "Odds ratios to the mean of the term: 2 is twice the odds": two,
        "They show the ratio to the mean, of the class to the geometric mean of all. ": three,
        "They show the difference from the mean, of the decision function. ": hinge,
    }
    for words, model in told.items():
        assert page_module._units(model).startswith(words)
        assert page_module._units(model).endswith("Bands and lines are intervals of 95 %.")


def test_lists_of_names_are_cut_after_six():
    assert page_module._names(list("abcdef")) == "'a', 'b', 'c', 'd', 'e', 'f'"
    assert page_module._names(list("abcdefg")) == "'a', 'b', 'c', 'd', 'e', 'f', ..."
    assert page_module._names(["x" * 40, "y" * 41]) == f"'{'x' * 40}', '{'y' * 39}\u2026'"


def test_effects_end_at_the_outer_bounds_of_numbers_and_of_dates():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.choice([1.0, 2.0, 4.0, 8.0], 400), "g": rng.choice(list("pq"), 400)})
    X["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.choice([0, 2, 6, 20], 400), "D")
    y = X["x"] + X["day"].dt.day + 0.1 * rng.normal(size=400)
    model = WideRegressor(loss="squared_error", interactions=None).fit(X, y)
    told = next(one for one in page_module.cautions(model) if "stays the same" in one)
    assert "x (1 and 4)" in told and "day (2024-01-01 and 2024-01-07)" in told
