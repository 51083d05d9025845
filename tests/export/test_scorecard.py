"""`scorecard`: points that add up to what the model says, for every row."""

import math

import numpy as np
import pandas as pd
import pytest

from tabsym import WideClassifier, WideRegressor, WideSGDClassifier
from tabsym.export import scorecard


def people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "home": rng.choice(np.array(["own", "rent", None], dtype=object), n),
            "job": rng.choice(np.array(["a", "b", "c"]), n),
            "income": np.where(rng.random(n) < 0.1, np.nan, rng.gamma(2.0, 1.0, n)),
        }
    )
    logit = X["income"].fillna(0) + (X["home"] == "own") - 1.5 * ((X["job"] == "a") & (X["home"] == "rent"))
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(1 - logit)), "paid", "late")


@pytest.fixture(scope="module")
def model():
    X, y = people()
    return WideClassifier(numeric="quantile", interactions=[("home", "job")]).fit(X, y)


def score_by_hand(card, X, column="points"):
    """Look each row up in the card, as a person would."""
    total = np.zeros(len(X))
    for term, part in card.groupby("term", sort=False):
        if term == "(intercept)":
            total += part[column].item()
            continue
        columns, found = term.split(":"), []
        points = dict(zip(part["category"], part[column], strict=True))
        if part["low"].notna().any():
            bins = part.dropna(subset="low")
            for value in X[term]:
                own = bins[(bins["low"] < value) & (value <= bins["high"])]
                found.append(points["Missing"] if math.isnan(value) else own[column].item())
        else:
            for row in X[columns].itertuples(index=False):
                values = tuple(None if pd.isna(one) else one for one in row)
                key = values[0] if len(columns) == 1 else values
                found.append(points.get(key, points["(unknown)"]))
        total += found
    return total


@pytest.mark.parametrize("base", [None, "largest", {"home": "rent", "income": 1.0, "home:job": ("own", "a")}])
@pytest.mark.parametrize("good", ["paid", "late"])
def test_points_add_up_to_the_score(model, base, good):
    X, _ = people(60, seed=1)
    X.loc[:5, "home"], X.loc[4:8, "job"] = "boat", "z"
    card = scorecard(model, 600, 30, 20, good=good, base=base)
    share = model.predict_proba(X)[:, list(model.classes_).index(good)]
    expected = 600 + 20 * np.log2(share / (1 - share) / 30)  # 600 at 30 to 1, 20 more where that doubles
    np.testing.assert_allclose(score_by_hand(card, X), expected, rtol=0, atol=1e-9)
    if base == "largest":
        alone = card.query("term != '(intercept)'")
        assert (alone.loc[alone.groupby("term")["rows"].idxmax(), "points"] == 0).all()
    if isinstance(base, dict):
        assert card.query("term == 'home' and category == 'rent'")["points"].item() == 0


def test_missing_numbers_that_training_lacked_have_a_row():
    X = pd.DataFrame({"x": np.arange(80.0)})
    model = WideSGDClassifier(numeric="quantile", random_state=0).fit(X, np.arange(80) % 50 > 20)
    new = pd.DataFrame({"x": [np.nan, 3.0]})
    card = scorecard(model, 0, 1, math.log(2))  # points are log odds
    np.testing.assert_allclose(score_by_hand(card, new), model.decision_function(new))
    assert card["category"].tolist()[-2:] == ["Missing", None]


def test_rounded_points_say_by_how_much(model):
    X, _ = people(60, seed=2)
    card = scorecard(model, decimals=0)
    exact = scorecard(model)
    assert (card["points"] == card["points"].round()).all()
    off = score_by_hand(card, X) - score_by_hand(exact, X)
    np.testing.assert_allclose(off, score_by_hand(card, X, "rounding"), atol=1e-9)
    assert 0 < np.abs(card["rounding"]).max() <= 0.5 and "rounding" not in exact


def test_a_card_of_two_categories_by_hand():
    """Odds of 3 to 1 and of 1 to 3, without a penalty."""
    X = pd.DataFrame({"c": ["a"] * 400 + ["b"] * 400})
    y = np.repeat([1, 0, 1, 0], [300, 100, 100, 300])
    card = scorecard(WideClassifier(alpha=0.0, count_effect=False).fit(X, y), 100, 1, 10).set_index("category")
    per_log = 10 / math.log(2)
    points = card["points"]
    assert points["a"] - points["b"] == pytest.approx(per_log * math.log(9), rel=1e-4)
    assert points["a"] + points[None] == pytest.approx(100 + per_log * math.log(3), rel=1e-4)
    assert card["rows"].tolist()[:2] == [400, 400] and card["rows"].iloc[-1] == 800


def test_what_has_no_scorecard_is_refused(model):
    X, y = people(120)
    X = X[["home", "income"]]
    with pytest.raises(ValueError, match="two classes, and the model predicts no classes"):
        scorecard(WideRegressor(loss="squared_error").fit(X[["home"]], np.arange(120.0)))
    with pytest.raises(ValueError, match="the model has 3 classes"):
        scorecard(WideSGDClassifier(max_iter=1, random_state=0).fit(X[["home"]], np.arange(120) % 3))
    with pytest.raises(ValueError, match="its loss is no log-loss"):
        scorecard(WideSGDClassifier(loss="hinge", max_iter=1, random_state=0).fit(X[["home"]], y))
    with pytest.raises(ValueError, match=r"term 'income' multiplies a number.*numeric='smooth' or 'quantile'"):
        scorecard(WideClassifier(numeric="linear").fit(X, y))
    product = WideSGDClassifier("u[home] * v[job] + b[1]", max_iter=1, random_state=0)
    with pytest.raises(ValueError, match="is a product, and the points of a scorecard add up"):
        scorecard(product.fit(people(120)[0], y))
    with pytest.raises(ValueError, match="offset column 'income'"):
        scorecard(WideClassifier(offset_column="income").fit(X.fillna({"income": 0}), y))
    for options, words in (
        ({"good": "bad"}, "good='bad' is none of the classes; use 'late' or 'paid'"),
        ({"base": {"town": "Ulm"}}, "base names 'town', which is no term with categories; use 'home'"),
        ({"base": {"home": "Ulm"}}, r"base\['home'\] is 'Ulm', which is none of the categories"),
        ({"base": 3}, "base=3 is not possible"),
        ({"odds": 0}, "odds=0 is not possible"),
        ({"pdo": "20"}, "pdo='20' is not"),
        ({"decimals": -1}, "decimals=-1 is not possible"),
    ):
        with pytest.raises(ValueError, match=words):
            scorecard(model, **options)
    named = X.assign(home="(unknown)").assign(home=lambda one: np.where(one.index % 2, "x", one["home"]))
    with pytest.raises(ValueError, match=r"has a category '\(unknown\)'"):
        scorecard(WideClassifier(alpha=0.0).fit(named[["home"]], y))
