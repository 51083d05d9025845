"""Pictures: what the axes hold is what the model, or the rows, say."""

import sys

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from tabsym import MODLEncoder, WideClassifier, WideRegressor, WideSGDRegressor, plots

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(scope="module")
def sales():
    rng = np.random.default_rng(0)
    n = 3000
    X = pd.DataFrame({"week": [f"W{k}" for k in rng.integers(1, 13, n)], "price": rng.gamma(4.0, 5.0, n).round(2)})
    X["group"] = rng.choice(["hat", "shoe", "coat"], n)
    X["shop"] = [f"S{k}" for k in rng.integers(1, 5, n) * rng.integers(1, 4, n)]  # S12, S9, ...: few are frequent
    X = X[(X["week"] != "W7") | (X["group"] != "hat")].reset_index(drop=True)
    week = X["week"].str[1:].astype(int)
    eta = np.sin(week + 2 * (X["group"] == "hat") + 4 * (X["group"] == "coat")) - 0.03 * X["price"]
    eta += 0.1 * X["shop"].str[1:].astype(int)
    return X, rng.poisson(np.exp(1.0 + eta))


@pytest.fixture(scope="module")
def model(sales):
    return WideRegressor(loss="poisson", interactions=[("group", "week")]).fit(*sales)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_relativities_to_a_base_are_those_of_the_table(model):
    axes = model.plot_term("shop", scale="response", base="S3", level=0.9)
    table = model.coef_table(base={"shop": "S3"}, level=0.9).query("term == 'shop'").sort_values("value")
    labels = [text.get_text().partition(" ")[0] for text in axes.get_yticklabels()]
    assert labels == table["category"].tolist()
    lines, points = axes.collections[:2]
    np.testing.assert_allclose(points.get_offsets()[:, 0], table["value"])
    np.testing.assert_allclose([one[:, 0] for one in lines.get_segments()], table[["lower", "upper"]])
    ticks = {text.get_text(): place for text, place in zip(axes.get_xticklabels(), axes.get_xticks(), strict=True)}
    assert ticks["1"] == 0.0  # the base
    for text, place in ticks.items():
        assert np.exp(place) == pytest.approx(float(text), rel=1e-3)
    assert "relativity" in axes.get_xlabel()


def test_the_largest_category_is_a_base_as_in_the_table(model, sales):
    largest = sales[0]["shop"].value_counts().index[0]
    points = [model.plot_term("shop", base=base).collections[1].get_offsets()[:, 0] for base in ("largest", largest)]
    np.testing.assert_allclose(*points)
    assert 0.0 in points[0]
    assert "the base" in model.plot_term("shop", base="largest", scale="response").get_xlabel()
    axes = model.plot_term("price", base="largest")  # of bins, and of terms without a base
    at = model.coefs_["price"]["rows"].idxmax()
    table = model.coef_table(base={"price": at}).query("term == 'price'")
    assert set(np.round(axes.lines[0].get_ydata(), 9)) >= set(np.round(table["value"], 9))
    model.plot_term("(intercept)", base="largest")


def test_a_category_called_largest_is_the_base_where_there_is_one():
    X = pd.DataFrame({"size": ["largest", "small", "small", "middle", "middle", "middle"] * 20})
    named = WideRegressor().fit(X, [9.0, 1.0, 1.1, 3.0, 3.1, 3.2] * 20)
    values = named.coefs_["size"]["value"] - named.coefs_["size"]["value"]["largest"]
    drawn = named.plot_term("size", base="largest").collections[1].get_offsets()[:, 0]
    np.testing.assert_allclose(np.sort(drawn), np.sort(values))


def test_most_frequent_categories_are_shown_and_the_title_says_of_how_many(model, sales):
    axes = model.plot_term("shop", top=4)
    frequent = sales[0]["shop"].value_counts()
    shown = [text.get_text().split()[0] for text in axes.get_yticklabels()]
    assert frequent[shown].min() >= frequent.drop(shown).max()
    assert axes.get_title(loc="left").startswith(f"shop (the 4 most frequent of {len(frequent)};")


def test_numbers_are_drawn_to_scale_over_their_rows(model, sales):
    axes, frame = model.plot_term("price"), model.coefs_["price"]
    steps = axes.lines[0]
    np.testing.assert_array_equal(steps.get_xdata()[1:-1], frame["high"][:-1])
    np.testing.assert_array_equal(steps.get_ydata()[:-1], frame["value"])
    assert steps.get_drawstyle() == "steps-post"
    rows = frame["rows"].to_numpy()
    assert rows.sum() == len(sales[0])
    areas = np.array([bar.get_width() * bar.get_height() for bar in axes.patches])
    is_cut = np.array([bar.get_height() for bar in axes.patches]) > 0.1599
    np.testing.assert_allclose((areas / rows)[~is_cut], np.median(areas / rows), rtol=1e-9)
    assert (areas / rows)[is_cut].max(initial=0.0) <= np.median(areas / rows) * (1 + 1e-9)


def test_a_cross_is_a_heatmap_in_the_order_of_its_columns(model):
    axes = model.plot_term("group:week")
    weeks = [f"W{k}" for k in range(1, 13)]
    assert [text.get_text() for text in axes.get_xticklabels()] == weeks
    grid, values = axes.images[0].get_array(), model.coefs_["group:week"]["value"]
    groups = [text.get_text() for text in axes.get_yticklabels()]
    assert sorted(groups) == ["coat", "hat", "shoe"]
    for row, group in enumerate(groups):
        for column, week in enumerate(weeks):
            cell = grid[row, column]
            assert np.ma.is_masked(cell) or np.isnan(cell) if (group, week) == ("hat", "W7") else (
                cell == pytest.approx(values[group, week])
            )  # fmt: skip


def test_bins_of_a_heatmap_lie_in_order_and_more_than_thirty_are_capped():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(
        {"name": rng.choice([f"{a}{b}" for a in "abcdefg" for b in "vwxyz"], 4000), "n": rng.normal(size=4000)}
    )
    y = X["n"] * (X["name"] < "c") + 0.1 * rng.normal(size=4000)
    axes = WideRegressor(loss="squared_error", interactions=[("name", "n")]).fit(X, y).plot_term("name:n")
    assert axes.get_ylabel() == "name (the 30 most frequent of 35)"
    ends = [float(text.get_text().strip("(]≤> ").split(",")[0]) for text in axes.get_xticklabels()]
    assert ends == sorted(ends)
    means = np.nanmean(np.ma.filled(axes.images[0].get_array().astype(float), np.nan), axis=1)
    assert means[0] > means[-1]


def test_the_whole_model_has_its_most_important_terms_first(model):
    axes = model.plot(top=2)
    assert len(axes) == 2
    titles = [one.get_title(loc="left") for one in axes]
    names = list(model.coefs_)
    assert titles[0].startswith("group:week (")
    assert all(any(title.startswith(f"{name} (") for name in names) for title in titles)
    fractions = [float(title.partition("(")[2].partition("%")[0]) for title in titles]
    assert fractions == sorted(fractions, reverse=True)
    assert axes[0].figure.patch.get_alpha() == 0.0
    online = WideSGDRegressor(random_state=0, max_iter=2).fit(pd.DataFrame({"a": list("uv") * 9}), [1.0, 2.0] * 9)
    assert len(online.plot()) == 1
    with pytest.raises(ValueError, match="top=0 is not possible"):
        model.plot(top=0)


def test_a_waterfall_ends_at_the_prediction_and_its_ticks_are_predictions(model, sales):
    X, y = sales
    axes = model.plot_explanation(X, row=5, scale="response", top=2)
    start, end = (line.get_xdata()[0] for line in axes.lines[-2:])
    made = model.explain(X).iloc[5]
    assert end == pytest.approx(made.sum())
    assert start == pytest.approx(made["(intercept)"])
    assert np.exp(end) == pytest.approx(model.predict(X.iloc[[5]])[0])
    for place, text in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True):
        assert float(text.get_text()) == pytest.approx(np.exp(place), rel=0.01)
    factors = [float(text.get_text()[1:]) for text in axes.texts]
    assert np.prod(factors) == pytest.approx(np.exp(end - start), rel=0.02)
    classes = WideClassifier(interactions=None).fit(X, y > 2)
    axes = classes.plot_explanation(X, row=5, scale="response")
    assert axes.get_xlabel() == "probability"
    end = axes.lines[-1].get_xdata()[0]
    assert expit(end) == pytest.approx(classes.predict_proba(X.iloc[[5]])[0, 1])
    three = WideClassifier(interactions=None, numeric="linear").fit(X, np.digitize(y, [2, 5]))
    with pytest.raises(ValueError, match="each class has its own; use 'link'"):
        three.plot_explanation(X, scale="response")
    for wrong in ("probability", None):
        with pytest.raises(ValueError, match=f"scale={wrong!r} is not known; use 'link' or 'response'"):
            model.plot_explanation(X, scale=wrong)


def test_lift_double_lift_and_calibration_are_means_of_tenths():
    rng = np.random.default_rng(2)
    p = rng.permutation(np.linspace(0.05, 0.95, 1000))
    y = np.where(rng.random(1000) < p, "yes", "no")
    tenth = pd.qcut(p, 10, labels=False)
    came = pd.Series(y == "yes").groupby(tenth).mean()
    axes = plots.lift(y, np.column_stack([1 - p, p]))
    np.testing.assert_allclose(axes.lines[0].get_ydata(), came)
    np.testing.assert_allclose(axes.lines[1].get_ydata(), pd.Series(p).groupby(tenth).mean())
    points = plots.calibration(y == "yes", p).lines[1]
    np.testing.assert_allclose(points.get_ydata(), came)
    other = 0.5 * p + 0.25
    by_ratio = pd.qcut(other / p, 10, labels=False)
    axes = plots.double_lift(y, p, other, labels=["p", "shrunk"])
    for line, values in zip(axes.lines, (y == "yes", p, other), strict=True):
        np.testing.assert_allclose(line.get_ydata(), pd.Series(values).groupby(by_ratio).mean())
    refused = [
        ((y, p[:-1]), "prediction has 999 values and y has 1000"),
        ((["a", "b", "c"], p[:3]), "3 classes"),
        (([1.0, np.nan], p[:2]), "y holds values that are not finite"),
    ]
    for wrong, words in refused:
        with pytest.raises(ValueError, match=words):
            plots.lift(*wrong)


def test_cells_of_a_grid_are_rows_over_those_of_independence():
    x = np.arange(600.0)
    encoder = MODLEncoder(target_type="continuous").fit(pd.DataFrame({"x": x}), np.where(x < 200, 0.0, 5.0) + x % 2)
    axes = encoder.plot_grid("x")
    mesh = axes.collections[0]
    corners = mesh.get_coordinates()
    areas = np.diff(corners[..., 0], axis=1)[:-1] * np.diff(corners[..., 1], axis=0)[:, :-1]
    rows = np.ma.filled(2.0 ** mesh.get_array(), 0.0) * areas * 600
    assert rows.sum() == pytest.approx(600)
    np.testing.assert_allclose(rows.sum(axis=0), encoder.parts("x")["rows"])
    assert sorted(rows[rows > 1].round().astype(int).tolist())[-1] <= 400
    with pytest.raises(ValueError, match="use plot_partition"):
        MODLEncoder().fit(pd.DataFrame({"x": x}), x < 200).plot_grid("x")


def test_without_matplotlib_the_sentence_names_the_extra(model, sales, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in (model.plot, lambda: model.plot_term("shop"), lambda: plots.lift([0, 1], [0.2, 0.7])):
        with pytest.raises(ModuleNotFoundError, match=r'pip install "tabsym\[plot\]"'):
            draw()
