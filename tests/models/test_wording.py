"""What summaries, pages, pictures and messages say at their edges: as many as are shown, one more, one, and none."""

import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold

from tabsym import (
    CrossFit,
    OneHotEncoder,
    WideBoostRegressor,
    WideClassifier,
    WideEncoder,
    WideRegressor,
    WideSGDClassifier,
    WideSGDRegressor,
)
from tabsym.interactions import AutoInteractions
from tabsym.messages import plural
from tabsym.models.inspection import page
from tabsym.models.inspection.explain import category_range
from tabsym.stacking.base import _lines_of
from tests.compare.test_report import Page
from tests.options import ADDITIVE, GLM

SQUARED = {"loss": "squared_error"}
NAMES = list("abcdefghijklmnop")


def numbers(n_columns, n_rows=60, seed=0):
    return pd.DataFrame(np.random.default_rng(seed).normal(size=(n_rows, n_columns)), columns=NAMES[:n_columns])


def cautions(model, beginning):
    """The one sentence of a page's cautions that begins so; "" for none."""
    found = [sentence for sentence in page.cautions(model) if sentence.startswith(beginning)]
    assert len(found) < 2
    return "".join(found)


def quoted(names):
    return ", ".join(map(repr, names))


# -- lists that are cut ---------------------------------------------------------------------


@pytest.mark.parametrize(("n_columns", "more"), [(10, ""), (11, ", ...")])
def test_an_unknown_column_of_a_formula_is_told_the_first_ten(n_columns, more):
    X = numbers(n_columns)
    wanted = f"There is no column 'z' in the table; it has {quoted(NAMES[:10])}{more}."
    with pytest.raises(ValueError, match=re.escape(wanted)):
        WideRegressor("s[1] * z + c[1]", **SQUARED).fit(X, X["a"])


@pytest.mark.parametrize(("n_columns", "more"), [(6, ""), (7, ", ...")])
def test_the_cautions_of_a_page_name_six_slopes(n_columns, more):
    X = numbers(n_columns)
    found = cautions(WideRegressor(**SQUARED, **GLM).fit(X, X["a"]), "Extrapolation: the effect of")
    assert found.startswith(f"Extrapolation: the effect of {quoted(NAMES[:6])}{more} is linear")


@pytest.mark.parametrize(("n_columns", "end"), [(8, ")."), (9, "), ...")])
def test_the_cautions_of_a_page_name_the_ends_of_eight_curves(n_columns, end):
    X = numbers(n_columns, 200)
    y = np.sin(X).sum(axis=1)  # so that no term is dropped
    found = cautions(WideRegressor(**SQUARED, interactions=None).fit(X, y), "Extrapolation: beyond")
    assert re.findall(r"(\w) \(\S+ and \S+\)", found) == NAMES[:8] and found.endswith(end)


@pytest.mark.parametrize(("n", "shown"), [(6, "f, e, d, c, b, a"), (7, "g, f, e ... c, b, a")])
def test_a_range_has_three_categories_of_each_end(n, shown):
    assert category_range(pd.Series(np.arange(n), index=NAMES[:n])) == shown
    X = pd.DataFrame({"k": np.tile(NAMES[:n], 20)})
    model = WideRegressor(**SQUARED, **GLM).fit(X, np.tile(np.arange(n) * 1.0, 20))
    assert re.search(rf"^k .*  {re.escape(shown)}$", model.summary(), re.MULTILINE)
    assert {row[0]: row[-1] for row in Page(model._repr_html_()).rows}["k"] == shown


def test_a_summary_has_the_ten_largest_shares():
    X = numbers(11, 400)
    y = X.to_numpy() @ np.arange(11.0, 0.0, -1.0)
    told = WideRegressor(**SQUARED, **GLM).fit(X, y).summary()
    shares = told.partition("share of the linear predictor's variance: ")[2].splitlines()[0]
    assert [share.split()[0] for share in shares.split(", ")] == NAMES[:10]
    nothing = pd.DataFrame({"k": np.tile(["u", "v"], 200)})  # the means are the same: the term is dropped
    model = WideRegressor(**SQUARED, **ADDITIVE).fit(nothing, np.repeat(np.arange(200.0), 2))
    assert "share of the linear predictor's variance: none\ndropped (variance estimated as 0): k" in model.summary()


def test_a_summary_leaves_out_shares_below_a_thousandth():
    X = numbers(2, 400)
    slopes = np.array([1.0, 0.035])
    for times, shown in ((1.0, ["a", "b"]), (0.5, ["a"])):  # shares of .12 and .03 %
        told = WideRegressor(**SQUARED, **GLM).fit(X, X.to_numpy() @ (slopes * [1.0, times])).summary()
        shares = told.partition("share of the linear predictor's variance: ")[2].splitlines()[0]
        assert [share.split()[0] for share in shares.split(", ")] == shown


@pytest.mark.parametrize("n", [1, 2, 6])
def test_columns_that_look_like_codes_are_named_up_to_the_fifth(n):
    rng = np.random.default_rng(0)
    codes = rng.integers(10_000, 99_999, 25)
    X = pd.DataFrame({f"zip code {k}": codes[rng.integers(0, 25, 300)] for k in range(n)})
    names = list(X)
    what = f"Column {names[0]!r} holds" if n == 1 else f"Columns {quoted(names[:5])} hold"
    with pytest.warns(UserWarning, match=f"^{re.escape(what)} whole numbers that look like codes") as told:
        WideRegressor(**SQUARED, **GLM).fit(X, rng.normal(size=300))
    assert f"categorical_features={names!r}" in str(told[0].message)  # all of them


def test_penalized_terms_are_named_up_to_the_fifth():
    X = pd.DataFrame(np.random.default_rng(0).choice(list("uv"), (80, 6)), columns=NAMES[:6])
    model = WideRegressor(**SQUARED, **ADDITIVE).fit(X, np.arange(80.0))
    with pytest.raises(ValueError, match=re.escape(f"The terms {quoted(NAMES[:5])} are penalized")):
        model.likelihood_ratio_test(model)


@pytest.mark.parametrize("n_pairs", [0, 5, 6])
def test_what_a_search_found_is_told_up_to_the_fifth(n_pairs, capsys):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.choice(list("uv"), (800, 4)), columns=NAMES[:4])
    signs = np.where(X == "u", 1.0, -1.0)
    pairs = [(i, j) for i in range(4) for j in range(i)][:n_pairs]
    y = sum((signs[:, i] * signs[:, j] for i, j in pairs), rng.normal(0.0, 0.3, 800))
    model = WideRegressor(**SQUARED, interactions=AutoInteractions(max_order=2), verbose=1).fit(X, y)
    line = next(one for one in capsys.readouterr().err.splitlines() if "interactions searched: " in one)
    told = line.partition("interactions searched: ")[2].partition(" and ")
    names = model.interactions_["interaction"].tolist()
    assert len(names) == n_pairs
    assert told[0] == (", ".join(names[:5]) or "none")
    assert told[2] == ("1 more" if n_pairs == 6 else "")


# -- one and none ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "told"), [((5,), ""), ((4,), "1 of the 3 | (4.0% of"), ((5, 4, 3), "2 of the 5 | (6.5% of")]
)
@pytest.mark.parametrize("alpha", ["auto", 0.0])
def test_categories_below_five_rows_are_rare(sizes, told, alpha):
    X = pd.DataFrame({"k": [*np.repeat(NAMES[: len(sizes)], sizes), *["many", "more"] * 48]})
    y = np.random.default_rng(0).normal(size=len(X)) + 3.0 * (X["k"] == "more")
    found = cautions(WideRegressor(**SQUARED, **ADDITIVE | {"alpha": alpha}).fit(X, y), "Rare")
    wanted = told.replace("|", "categories of 'k' have fewer than 5 training rows")
    assert found == (f"Rare: {wanted} the rows); they are shrunk towards the mean." if told else "")
    online = cautions(WideSGDRegressor(max_iter=2, random_state=0).fit(X, y), "Rare")
    assert online == found.replace("; they are shrunk towards the mean", "")


def test_a_page_counts_terms_and_coefficients_of_all_classes():
    X = pd.DataFrame({"k": list("uvw") * 40})
    three = WideClassifier(**ADDITIVE).fit(X, np.random.default_rng(0).choice(list("abc"), 120))
    assert page.facts(three).startswith("2 terms with 12 coefficients; ")  # (3 categories + 1) * 3 classes
    model = WideRegressor(loss="poisson", **GLM).fit(X, np.arange(120.0) % 7)
    wanted = [f"2 terms with 4 coefficients; 3.0 effective degrees of freedom; deviance {model.deviance_:,.4g}",
              f"AIC {model.aic_:,.4g}; dispersion {model.dispersion_:,.4g}; {model.n_iter_} iterations"]  # fmt: skip
    assert page.facts(model) == "; ".join(wanted)
    tweedie = WideRegressor(loss="tweedie", **GLM).fit(X, np.arange(120.0) % 7)
    assert np.isnan(tweedie.aic_) and "AIC" not in page.facts(tweedie)
    online = WideSGDRegressor(max_iter=3, random_state=0).fit(X, np.arange(120.0))
    assert page.facts(online) == f"2 terms with 4 coefficients; {online.n_iter_} iterations"


@pytest.mark.parametrize(("n", "more"), [(40, ""), (41, "40 of 41.")])
def test_a_page_has_the_forty_most_frequent_categories(n, more):
    counts = np.random.default_rng(0).permutation(n) + 1
    X = pd.DataFrame({"k": np.repeat([f"k{i:02}" for i in range(n)], counts)})
    model = WideRegressor(**SQUARED, **GLM).fit(X, np.arange(float(len(X))))
    text = page._coefficients(model, "k")
    made = Page(text)
    wanted = pd.Series(counts, index=[f"k{i:02}" for i in range(n)]).sort_values(ascending=False)[:40]
    assert {row[0]: int(row[-1]) for row in made.rows[1:]} == wanted.to_dict()
    assert [int(row[-1]) for row in made.rows[1:]] == wanted.tolist()
    assert re.findall(r">(\d+ of \d+\.)<", text) == [more] * bool(more)


@pytest.mark.parametrize(
    ("n", "more"), [(2, ""), (3, "1 further term is not drawn."), (4, "2 further terms are not drawn.")]
)
def test_a_page_says_how_many_terms_are_not_drawn(n, more, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(page, "MAX_TERMS", 2)
    X = numbers(n)
    text = page._pictures(WideRegressor(**SQUARED, **GLM).fit(X, X["a"]), NAMES[:n])
    assert [image["alt"] for image in Page(text).images] == ["Coefficients of a", "Coefficients of b"]
    assert "".join(re.findall(r">(\d+ further [^<]*)<", text)) == more


@pytest.mark.parametrize(("n", "wanted"), [(0, []), (1, ["1 row (12.5%) has"]), (2, ["2 rows (25.0%) have"])])
def test_a_page_counts_rows_of_unknown_categories(n, wanted):
    X = pd.DataFrame({"k": list("uv") * 20, "x": np.arange(40.0)})
    model = WideRegressor(**SQUARED, **ADDITIVE).fit(X, np.arange(40.0))
    rows = page.rows_of_report(model, X[:8].assign(k=["new"] * n + ["u"] * (8 - n)), np.arange(8.0), None, None)
    assert page._unseen(model, rows) == [f"{one} a category of 'k' that fit has not seen." for one in wanted]


@pytest.mark.parametrize(("n", "more"), [(12, []), (13, ["12 of 13."])])
def test_a_page_has_twelve_segments_of_a_column(n, more):
    X = pd.DataFrame({"k": np.tile(NAMES[:n], 40)})
    y = np.tile(np.arange(n) * 1.0, 40) + np.random.default_rng(0).normal(size=len(X))
    model = WideRegressor(**SQUARED, **ADDITIVE).fit(X, y)
    rows = page.rows_of_report(model, X, y, None, None)
    text = "".join(page._segments(model, rows, rows.of_output(0)))
    assert len(Page(text).rows) == 1 + 12 and re.findall(r">(\d+ of \d+\.)<", text) == more


@pytest.mark.parametrize(("days", "form"), [(3 * 366, r"\d{4}-\d\d"), (3 * 366 + 1, r"\d{4}")])
def test_dates_are_segments_by_month_up_to_three_years(days, form):
    first = pd.Timestamp("2020-03-01")
    X = pd.DataFrame({"day": [first, first + pd.Timedelta(days=60), first + pd.Timedelta(days=days)]})
    model = WideRegressor(**SQUARED, **GLM).fit(pd.concat([X] * 20), np.arange(60.0))
    column = page.rows_of_report(model, X, np.arange(3.0), None, None).table["day"]
    assert all(re.fullmatch(form, text) for text in page._cells_of(column))


def test_a_picture_of_the_model_says_of_how_many_terms():
    pytest.importorskip("matplotlib")
    X = numbers(3, 200)
    model = WideRegressor(**SQUARED, **GLM).fit(X, X.sum(axis=1))
    titles = {top: model.plot(top=top)[0].figure.get_suptitle() for top in (2, 3, 4)}
    whole = "linear predictor by term"
    assert titles == {2: f"{whole}, the 2 most important of 3 terms", 3: whole, 4: whole}


@pytest.mark.parametrize(("n", "more"), [(12, ""), (13, "; 12 of 13")])
def test_a_panel_says_how_many_categories_it_has(n, more):
    pytest.importorskip("matplotlib")
    X = pd.DataFrame({"k": np.tile(NAMES[:n], 20)})
    panel = WideRegressor(**SQUARED, **GLM).fit(X, np.tile(np.arange(n) * 1.0, 20)).plot()[0]
    assert len(panel.get_yticklabels()) == 12
    assert panel.get_title(loc="left") == f"k (100.0% of the variance{more})"


def test_rounds_are_counted_in_words():
    def row(rounds, **more):
        return {"mode": "margin", "rounds": rounds, "loss": 0.25, "gain": 0.1, "error": 0.02, **more}

    end = ", gain 0.1 (standard error 0.02)"
    assert _lines_of([row(1)]) == [f"  margin: 0.25 after 1 round{end}"]
    assert _lines_of([row(2)]) == [f"  margin: 0.25 after 2 rounds{end}"]
    assert _lines_of([row(1000, variant="deep")]) == [f"  margin (deep): 0.25 after 1,000 rounds{end}"]
    assert _lines_of([row(0) | {"mode": "wide"}]) == ["  wide: 0.25"]
    assert _lines_of([row(10), row(20) | {"loss": 0.2}, row(30)]) == [f"  margin: 0.2 after 20 rounds{end}"]
    assert _lines_of([row(10), row(20)]) == [f"  margin: 0.25 after 10 rounds{end}"]  # the fewest of equal ones


@pytest.mark.parametrize(("n_rounds", "words"), [(1, "1 round"), (2, "2 rounds")])
def test_the_summary_of_a_stack_counts_rounds(n_rounds, words):
    lightgbm = pytest.importorskip("lightgbm")
    X = pd.DataFrame({"k": list("uvw") * 40, "x": np.arange(120.0)})
    booster = lightgbm.LGBMRegressor(n_estimators=n_rounds, verbose=-1)
    wide = WideRegressor(**SQUARED, **ADDITIVE)
    model = WideBoostRegressor(wide, booster, mode="margin", early_stopping=False, random_state=0)
    assert model.fit(X, X["x"]).summary().splitlines()[1] == f"  margin: weight 1, {words}"


# -- what is shown ----------------------------------------------------------------------------


def test_axes_say_what_coefficients_are():
    """Ratios to the mean, or to the base: of means, of odds, or of a class to the geometric mean of all."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"k": list("uvw") * 40})
    y = rng.integers(0, 2, 120)
    fits = {
        "squared_error": WideRegressor(**SQUARED, **ADDITIVE).fit(X, y + 1.0),
        "gamma": WideRegressor(loss="gamma", **ADDITIVE).fit(X, y + 1.0),
        "two": WideClassifier(**ADDITIVE).fit(X, y),
        "three": WideClassifier(**ADDITIVE).fit(X, rng.integers(0, 3, 120)),
        "hinge": WideSGDClassifier(loss="hinge", max_iter=2, random_state=0).fit(X, y),
    }
    wanted = {
        ("squared_error", False): "difference from the mean, in units of the target",
        ("gamma", False): "difference of the logarithm",
        ("gamma", True): "relativity to the mean",
        ("two", False): "difference of log odds",
        ("two", True): "odds ratio to the mean",
        ("three", False): "difference of the logarithm, of the class to the geometric mean of all",
        ("three", True): "ratio to the mean, of the class to the geometric mean of all",
        ("hinge", False): "difference from the mean, of the decision function",
    }
    assert {key: page.unit_of(fits[key[0]].model_, key[1]) for key in wanted} == wanted
    based = {key: text.replace("the mean", "the base", 1) for key, text in wanted.items()}
    assert {key: page.unit_of(fits[key[0]].model_, key[1], "u") for key in wanted} == based
    shown = {
        name: page._units(model).removesuffix(" Bands and lines are intervals of 95 %.") for name, model in fits.items()
    }
    assert shown == {
        "squared_error": "They show the difference from the mean, in units of the target.",
        "gamma": "Relativities: factors of the mean of the term, 1.2 is 20 % more.",
        "two": "Odds ratios to the mean of the term: 2 is twice the odds.",
        "three": "They show the ratio to the mean, of the class to the geometric mean of all.",
        "hinge": "They show the difference from the mean, of the decision function.",
    }


def test_a_waterfall_names_what_the_row_has():
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"k": rng.choice(["u", "v"], 200), "g": rng.choice(["p", "q"], 200), "x": rng.normal(size=200)})
    X.loc[0] = ["u", "q", 1234567.125]
    X.loc[1] = ["u", None, np.nan]
    y = rng.normal(size=200) + (X["k"] == "u") * (X["g"] == "q") + (X["k"] == "u") + X["g"].isna()
    model = WideRegressor(**SQUARED, numeric="linear", interactions=[("k", "g")], alpha=1.0, count_effect=False).fit(
        X, y
    )
    labels = {label.get_text() for label in model.plot_explanation(X, row=0, top=20).get_yticklabels()}
    assert labels >= {"k = u", "g = q", "x = 1.23457e+06", "k:g = u | q"}
    labels = {label.get_text() for label in model.plot_explanation(X, row=1, top=20).get_yticklabels()}
    assert labels >= {"k = u", "g = (missing)", "k:g = u | (missing)"}


@pytest.mark.parametrize(
    ("others", "end"),
    [
        ("", "."),
        ("y", "; it has values for 'y', which training has not."),
        ("ABCD", "; it has values for 'A', 'B', 'C', which training has not."),
    ],
)
def test_rows_without_a_given_value_are_counted_with_the_values_of_none(others, end):
    given = {"u": 1.0, "v": 2.0, **dict.fromkeys(others, 3.0)}
    X = pd.DataFrame({"k": [*"uv" * 10, "w", "w"], "x": np.arange(22.0)})
    wanted = "fixed['k'] has no value for 2 rows, such as of 'w', and adds 0 there" + end
    with pytest.warns(UserWarning, match=f"^{re.escape(wanted)}$"):
        WideRegressor(**SQUARED, **GLM, fixed={"k": given}).fit(X, X["x"])


def test_titles_name_the_class_where_one_of_several_is_drawn():
    """Bins that are points, a curve, and categories; those of all classes together are called as the term."""
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"flag": rng.integers(0, 2, 300), "x": rng.normal(size=300), "k": rng.choice(list("uvw"), 300)})
    score = np.column_stack([np.sin(2 * X["x"]), X["flag"], 1.0 * (X["k"] == "u")]) * 4.0
    y = np.array(list("abc"))[np.argmax(score + rng.gumbel(size=(300, 3)), axis=1)]
    three = WideClassifier(interactions=None, count_effect=False).fit(X, y)
    two = WideClassifier(interactions=None, count_effect=False).fit(X, y == "a")
    for term in ("flag", "x", "k"):
        titles = [
            model.plot_term(term, **options).get_title(loc="left").partition(" (")[0]
            for model, options in ((three, {}), (three, {"output": "b"}), (two, {}))
        ]
        assert titles == [term if term != "k" else "k: a", f"{term}: b", term]


# -- one of what is counted -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "words", "said"),
    [
        (0, ("row",), "0 rows"),
        (1, ("row",), "1 row"),
        (2_000, ("row",), "2,000 rows"),
        (1, ("category", "categories"), "1 category"),
        (3, ("category", "categories"), "3 categories"),
    ],
)
def test_a_count_has_its_noun(n, words, said):
    assert plural(n, *words) == said


def test_a_page_of_one_term_says_so():
    """It was "1 terms with 1 coefficients" and "1 iterations"."""
    X = pd.DataFrame({"a": ["u", "v"] * 20})
    model = WideRegressor("c[1]", alpha=0.0, **SQUARED).fit(X, np.arange(40.0))
    assert page.facts(model).startswith("1 term with 1 coefficient; 1.0 effective degrees of freedom; ")
    model.n_iter_ = 1
    assert page.facts(model).endswith("; 1 iteration")


def test_fits_of_one_row_or_epoch_say_so():
    X, y = pd.DataFrame({"a": list("uvwx") * 10}), [0, 1] * 20
    model = WideSGDClassifier(max_iter=1, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="did not converge in 1 epoch; give more"):
        model.fit(X, y)
    online = WideSGDClassifier().partial_fit(X[:1], y[:1], classes=[0, 1])
    assert ", 1 row in all, repeats counted" in online.summary()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: WideRegressor().fit(X[:1], [1.0, 2.0]), "The table has 1 row and the target 2 values: found input"),
        (
            lambda X: WideRegressor(categorical_features=[True]).fit(X.assign(b=1.0), np.arange(20.0)),
            "is a mask of 1 column, and the table has 2;",
        ),
        (
            lambda X: WideRegressor(monotonic_cst=[1, 0], **SQUARED).fit(X, np.arange(20.0)),
            "monotonic_cst has 2 directions, and the table has 1 column; give",
        ),
        (
            lambda X: WideRegressor(**SQUARED).fit(X, np.arange(20.0)).predict(X[:1], offset=[1.0, 2.0]),
            "but the table has 1 row; give one number per row",
        ),
        (
            lambda X: OneHotEncoder(cols=[3]).fit(X.to_numpy()),
            "asks for column 3, but the table has 1 column.",
        ),
        (
            lambda X: CrossFit(WideEncoder(), cv=GroupKFold(2)).fit_transform(X, np.arange(20.0), groups=[1]),
            "The table has 20 rows and groups 1 value; pass one group for each row",
        ),
    ],
)
def test_errors_of_one_row_or_column_say_so(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call(pd.DataFrame({"a": list("uvwxy") * 4}))


@pytest.mark.parametrize(
    ("bounds", "named"), [([0.0], {"> 0, ≤ 0", "≤ 0, > 0"}), ([0.0, 0.5], {"bins between 0 and 0.5"})]
)
def test_a_page_names_two_bins_and_the_ends_of_more(bounds, named):
    X = numbers(1, 90)
    model = WideRegressor(**SQUARED, interactions=None, numeric={"a": bounds}, alpha=1e-3).fit(X, X["a"])
    (row,) = Page(page.terms_table(model)).rows[1:]
    assert row[-1] in named and row[3] == str(len(bounds) + 1)


@pytest.mark.parametrize(("bounds", "told"), [([0.0], ""), ([0.0, 0.5], "(0 and 0.5).")])
def test_two_bins_have_no_outer_bounds(bounds, told):
    X = numbers(1, 90)
    model = WideRegressor(**SQUARED, interactions=None, numeric={"a": bounds}, alpha=1e-3).fit(X, X["a"])
    assert cautions(model, "Extrapolation: beyond").partition("same: a ")[2] == told


def test_a_page_names_no_category_of_a_slope():
    X = numbers(1)
    (row,) = Page(page.terms_table(WideRegressor(**SQUARED, **GLM).fit(X, 2.0 * X["a"]))).rows[1:]
    assert [row[0], row[3], *row[6:]] == ["a", "1", "2", "2", ""]


# -- what to be careful with ----------------------------------------------------------------

NEUTRAL = "Unknown categories add nothing: they are predicted as the mean of their term."
ASSOCIATIONS = "Coefficients describe associations, given the other terms; they are not effects of a change."
SHRUNK = "Rare: 1 of the 4 categories of 'g' have fewer than 5 training rows (1.1% of the rows)"


def factorial(n_rare):
    """Three columns of three categories, each combination ten times; some rows of a fourth category of one column."""
    X = pd.DataFrame(list(product("pqr", repeat=3)) * 10, columns=["g", "h", "none"])
    X.loc[: n_rare - 1, "g"] = "rare"
    return X, 1.0 * (X["g"] == "p") + 0.5 * (X["h"] == "q") + 0.1 * np.random.default_rng(0).normal(size=270)


def test_cautions_of_a_solved_model():
    X, y = factorial(0)
    y -= y.groupby(X["none"]).transform("mean")  # which has no effect then
    dropped = "Dropped: the variance of 'none' is estimated as 0, so that they have no effect."
    assert page.cautions(WideRegressor(**SQUARED, interactions=None).fit(X, y)) == [NEUTRAL, dropped, ASSOCIATIONS]
    given = WideRegressor(**SQUARED, interactions=None, alpha=1e-3, handle_unknown="error").fit(X, y)
    assert page.cautions(given) == ["Unknown categories are refused at prediction.", ASSOCIATIONS]
    given = WideRegressor(**SQUARED, interactions=None, alpha=1e-3, handle_unknown="similar").fit(X, y)
    similar = "Unknown categories are predicted as the known ones that they resemble in the other columns."
    assert page.cautions(given) == [similar, ASSOCIATIONS]


@pytest.mark.parametrize(("n_rare", "told"), [(3, [f"{SHRUNK}; they are shrunk towards the mean."]), (5, [])])
def test_cautions_of_rare_categories_where_they_are_shrunk(n_rare, told):
    X, y = factorial(n_rare)
    model = WideRegressor(**SQUARED, interactions=None, alpha=1e-3, count_effect=False).fit(X, y)
    assert page.cautions(model) == [*told, NEUTRAL, ASSOCIATIONS]


def test_cautions_of_an_online_model():
    X, y = factorial(3)
    model = WideSGDRegressor(interactions=None, max_iter=2, random_state=0).fit(X, y)
    no_intervals = "Coefficients have no intervals, as the model was trained online."
    assert page.cautions(model) == [no_intervals, f"{SHRUNK}.", NEUTRAL, ASSOCIATIONS]


@pytest.mark.filterwarnings("ignore:.*separation", "ignore:.*are not unique")
def test_cautions_of_coefficients_that_are_not_known():
    X, y = factorial(0)
    X["half"] = X["g"].map({"p": "a", "q": "a", "r": "b"})
    aliased = WideRegressor("u[g] + v[half] + w[h] + c[1]", alpha=0.0, **SQUARED).fit(X, y)
    unknown = [name for name, frame in aliased.coefs_.items() if np.isinf(frame["sd"]).any()]
    assert unknown == ["u", "v"]
    assert page.cautions(aliased) == [
        "Aliased: some coefficients of 'u', 'v' are not unique, as other terms determine them or no row has them; "
        "their standard deviations are infinite, and predictions are not affected.",
        NEUTRAL,
        ASSOCIATIONS,
    ]
    apart = WideClassifier("u[g] + w[h] + c[1]", alpha=0.0).fit(X, (X["g"] == "p") | (np.arange(270) % 7 < 3))
    assert apart.model_.uncertainty.separated == ("u",)
    assert page.cautions(apart) == [
        "Separation: 'u' predict the target completely in some rows; without penalties their maximum likelihood "
        "estimates are infinite, and what is shown is where the solver ended. Standard deviations of the term are "
        "infinite, but not of differences of its other categories (contrast).",
        NEUTRAL,
        ASSOCIATIONS,
    ]
    both = WideClassifier("u[g] + v[half] + w[h] + c[1]", alpha=0.0)
    found = page.cautions(both.fit(X, (X["h"] == "q") | (np.arange(270) % 7 < 3)))
    assert [sentence.partition(" predict")[0].partition(" are not")[0] for sentence in found[:2]] == [
        "Separation: 'w'",
        "Aliased: some coefficients of 'u', 'v'",
    ]
