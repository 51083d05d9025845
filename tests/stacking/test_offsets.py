"""Stacks whose wide model has an offset or exposure column: every part starts from it, and none has it as a feature."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from tabsym import WideBoostClassifier, WideBoostRegressor, WideClassifier, WideRegressor, load, save
from tabsym.export import from_spec, to_spec, to_stack
from tests.stacking.test_stacking import ALL_ROUNDS, COUNTS, FOLDS, RIDGE, SCORE, SMALL, TWO, VALUES, N, X, ranked

RNG = np.random.default_rng(5)
YEARS = RNG.uniform(0.1, 9, N)
EXPOSED = X.assign(years=YEARS)
CLAIMS = RNG.poisson(np.exp(SCORE / 2 - 1) * YEARS).astype(float)
POISSON = WideRegressor(**RIDGE, loss="poisson", exposure_column="years")


def test_a_booster_of_counts_starts_from_margins_with_the_exposure_by_hand():
    booster = LGBMRegressor(**SMALL)
    model = WideBoostRegressor(POISSON, booster, mode="margin", **ALL_ROUNDS).fit(EXPOSED, CLAIMS)
    margins = np.zeros(N)
    for train, test in FOLDS.split(X):
        fitted = clone(POISSON).fit(EXPOSED.iloc[train], CLAIMS[train])
        margins[test] = np.log(fitted.predict(EXPOSED.iloc[test]))
    trees = clone(booster).set_params(objective="poisson").fit(ranked(X), CLAIMS, init_score=margins)
    start = clone(POISSON).fit(EXPOSED, CLAIMS).predict(EXPOSED)
    wanted = start * np.exp(trees.predict(ranked(X), raw_score=True))
    np.testing.assert_allclose(model.predict(EXPOSED), wanted, rtol=1e-8)
    assert list(model.booster_frame(EXPOSED)) == list(X)
    assert dict(zip(model.feature_names_in_, model.feature_importances_, strict=True))["years"] == 0.0
    np.testing.assert_allclose(model.explain(EXPOSED)["wide", "(offset)"], np.log(YEARS))


@pytest.fixture
def blended(monkeypatch):
    """The booster on margins and the booster alone share every prediction."""

    def both(self, one, other):
        return [replace(one.component, weight=0.75), replace(other.component, weight=0.25)]

    monkeypatch.setattr("tabsym.stacking.selection._Evaluator.blended", both)


@pytest.mark.parametrize("as_array", [False, True])
def test_predictions_are_proportional_to_the_exposure(as_array, tmp_path, blended):
    table, twice = (
        EXPOSED.drop(columns=["shop", "kind"]),
        EXPOSED.assign(years=2 * YEARS).drop(columns=["shop", "kind"]),
    )
    wide = POISSON
    if as_array:
        table, twice, wide = table.to_numpy(), twice.to_numpy(), clone(POISSON).set_params(exposure_column=2)
    model = WideBoostRegressor(wide, LGBMRegressor(**SMALL), random_state=0).fit(table, CLAIMS)
    assert set(model.boosters_) == {"margin", "alone"} and "years" not in model.booster_frame(table, "alone")
    np.testing.assert_allclose(model.predict(twice), 2 * model.predict(table), rtol=1e-10)
    np.testing.assert_allclose(np.exp(model.explain(table).sum(axis=1)), model.predict(table), rtol=1e-10)
    save(model, tmp_path / "stack.skops")
    again = load(tmp_path / "stack.skops")
    np.testing.assert_array_equal(again.predict(table), model.predict(table))


def test_a_booster_alone_starts_from_the_offset_by_hand(monkeypatch):
    monkeypatch.setattr("tabsym.stacking.selection._Evaluator.blended", lambda self, one, other: [other.component])
    model = WideBoostRegressor(POISSON, LGBMRegressor(**SMALL), codes="native").fit(EXPOSED, CLAIMS)
    frame, booster = model.booster_frame(EXPOSED), LGBMRegressor(**SMALL | {"n_estimators": model.n_rounds_["alone"]})
    trees = booster.set_params(objective="poisson").fit(frame, CLAIMS, init_score=np.log(YEARS))
    wanted = YEARS * np.exp(trees.predict(frame, raw_score=True))
    np.testing.assert_allclose(model.predict(EXPOSED), wanted, rtol=1e-8)
    with pytest.raises(ValueError, match="starts from exposure_column='years', which the files do not hold"):
        to_stack(model, "nowhere")


def test_residuals_of_a_regressor_are_without_the_offset(blended):
    wide = WideRegressor(**RIDGE, loss="squared_error", offset_column="known")
    booster = HistGradientBoostingRegressor(max_iter=5, early_stopping=False, random_state=0)
    model = WideBoostRegressor(wide, booster).fit(X.assign(known=YEARS), VALUES + YEARS)
    plain = WideBoostRegressor(clone(wide).set_params(offset_column=None), booster).fit(X, VALUES)
    assert model.n_rounds_ == plain.n_rounds_ and set(model.shares_) == {"margin", "alone"}
    np.testing.assert_allclose(model.predict(X.assign(known=YEARS)) - YEARS, plain.predict(X), atol=1e-6)


def test_scores_of_two_classes_move_with_the_offset():
    wide = WideClassifier(**RIDGE, offset_column="years")
    model = WideBoostClassifier(wide, n_jobs=1).fit(EXPOSED, TWO)
    moved = model.decision_function(EXPOSED.assign(years=YEARS + 1.5))
    np.testing.assert_allclose(moved, model.decision_function(EXPOSED) + 1.5, atol=1e-10)


def test_rows_to_predict_need_the_column(tmp_path):
    model = WideBoostRegressor(POISSON, LGBMRegressor(**SMALL), mode="margin", **ALL_ROUNDS).fit(EXPOSED, CLAIMS)
    with pytest.raises(ValueError, match="years"):
        model.predict(X)
    with pytest.raises(ValueError, match="exposure_column='years' holds 0 in row 3"):
        model.predict(EXPOSED.assign(years=np.where(np.arange(N) == 3, 0.0, YEARS)))
    np.testing.assert_allclose(from_spec(to_spec(model.wide_)).predict(EXPOSED), model.wide_.predict(EXPOSED))


HIST = HistGradientBoostingRegressor()
REFUSED = [
    (WideBoostRegressor(POISSON, mode="feature"), "mode='feature' makes scores a column.*use mode='margin'"),
    (WideBoostRegressor(POISSON, HIST), "HistGradientBoostingRegressor cannot start from scores with the link 'log'"),
    (
        WideBoostClassifier(WideClassifier(offset_column="years"), HistGradientBoostingClassifier()),
        "HistGradientBoostingClassifier cannot start from scores with the link 'logistic'",
    ),
    (WideBoostRegressor(POISSON, booster_cols=["price", "years"]), "booster_cols names 'years', which is no feature"),
    (
        WideBoostRegressor(clone(POISSON).set_params(exposure_column="month")),
        "exposure_column='month' is no column of the table",
    ),
]


@pytest.mark.parametrize(("model", "says"), REFUSED, ids=lambda one: re.sub(r"\W+", "-", str(one))[:40])
def test_what_cannot_start_from_an_offset_is_refused(model, says):
    y = TWO if isinstance(model, WideBoostClassifier) else COUNTS
    with pytest.raises(ValueError, match=says):
        model.fit(EXPOSED, y)


def test_the_column_is_any_name_of_a_table():
    table = pd.DataFrame({"a": X["shop"], "(offset)": YEARS, "x": X["price"]})
    wide = clone(POISSON).set_params(exposure_column="(offset)")
    model = WideBoostRegressor(wide, LGBMRegressor(**SMALL), mode="margin", **ALL_ROUNDS).fit(table, CLAIMS)
    np.testing.assert_allclose(np.exp(model.explain(table).sum(axis=1)), model.predict(table), rtol=1e-10)
