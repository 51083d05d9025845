"""Stacks against the same made by hand of KFold, public predictions and the libraries' own arguments."""

import json
import os
import pickle
import re
import subprocess
import sys
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sklearn
from catboost import CatBoostClassifier, CatBoostRegressor, Pool
from category_encoders import TargetEncoder
from lightgbm import LGBMClassifier, LGBMRegressor
from scipy.special import softmax
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC
from xgboost import XGBClassifier, XGBRegressor

from tabsym import (
    CrossFit,
    TIWSEncoder,
    WideBoostClassifier,
    WideBoostRegressor,
    WideClassifier,
    WideEncoder,
    WideRegressor,
    WideSGDClassifier,
    WideSGDRegressor,
)
from tabsym.integrations import load_adapter
from tabsym.stacking import selection
from tabsym.stacking.layer import Plan, StackRows, adapter_of, default_booster, gentle_booster
from tabsym.stacking.selection import Learner, NestedCV, OutOfFoldMargins, PairedGains, folds_to_evaluate, second_plan
from tests.options import ADDITIVE
from tests.stack_tables import CODES, carriers_of

RNG = np.random.default_rng(0)
N = 600
X = pd.DataFrame(
    {
        "shop": RNG.integers(0, 25, N).astype(str),
        "kind": RNG.choice(["car", "van", "bus"], N),
        "price": RNG.normal(size=N),
        "age": RNG.normal(size=N),
    }
)
EFFECT = X["shop"].map({str(j): value for j, value in enumerate(RNG.normal(size=25))}).to_numpy()
SCORE = EFFECT + 1.5 * np.sign(X["price"] * X["age"]).to_numpy()  # which no sum of blocks can say
VALUES = SCORE + 0.3 * RNG.normal(size=N)
TWO = np.where(SCORE + 0.3 * RNG.normal(size=N) > 0, "yes", "no")
THREE = np.array(["low", "mid", "top"])[np.digitize(SCORE, [-1.0, 1.0])]
COUNTS = RNG.poisson(np.exp(SCORE)).astype(float)
FOLDS = KFold(3, shuffle=True, random_state=1)
RIDGE = ADDITIVE | {"alpha": 1e-3}
SQUARED = RIDGE | {"loss": "squared_error"}
SMALL = {"n_estimators": 15, "num_leaves": 7, "verbosity": -1, "n_jobs": 1}
ALL_ROUNDS = {"cv": FOLDS, "early_stopping": False}


def ranked(frame, train=X):
    """Symbols as ranks by frequency, ties by first appearance, by hand."""
    out = frame.copy()
    for name in ("shop", "kind"):
        counts = train[name].value_counts()
        first = {category: place for place, category in enumerate(train[name].drop_duplicates())}
        order = sorted(counts.index, key=lambda category, c=counts, f=first: (-c[category], f[category]))
        out[name] = frame[name].map({category: float(rank) for rank, category in enumerate(order)}).astype(float)
    return out


def crossed(wide, y, ask):
    """What clones say of the rows that they have not seen, by hand."""
    found = None
    for train, test in FOLDS.split(X):
        said = ask(clone(wide).fit(X.iloc[train], y[train]), X.iloc[test])
        found = np.zeros((N, *said.shape[1:])) if found is None else found
        found[test] = said
    return found


def test_numbers_on_top_of_margins_by_hand():
    wide, booster = WideRegressor(**SQUARED), LGBMRegressor(**SMALL)
    model = WideBoostRegressor(wide, booster, mode="margin", **ALL_ROUNDS).fit(X, VALUES)
    margins = crossed(wide, VALUES, lambda fitted, rows: fitted.predict(rows))
    trees = clone(booster).fit(ranked(X), VALUES, init_score=margins)
    wanted = clone(wide).fit(X, VALUES).predict(X) + trees.predict(ranked(X), raw_score=True)
    np.testing.assert_allclose(model.predict(X), wanted, atol=1e-8)
    assert model.score(X, VALUES) > model.wide_.score(X, VALUES) + 0.1
    assert (model.shares_, model.n_rounds_, model.evidence_) == ({"margin": 1.0}, {"margin": 15}, None)


def test_two_classes_on_top_of_margins_by_hand():
    wide, booster = WideClassifier(**RIDGE), XGBClassifier(n_estimators=15, max_depth=3, n_jobs=1)
    model = WideBoostClassifier(wide, booster, mode="margin", **ALL_ROUNDS).fit(X, TWO)
    margins = crossed(wide, TWO, lambda fitted, rows: fitted.decision_function(rows))
    trees = clone(booster).fit(ranked(X), (TWO == "yes").astype(int), base_margin=margins)
    start = clone(wide).fit(X, TWO).decision_function(X)
    np.testing.assert_allclose(
        model.decision_function(X), trees.predict(ranked(X), base_margin=start, output_margin=True), atol=2e-6
    )
    np.testing.assert_allclose(model.predict_proba(X), trees.predict_proba(ranked(X), base_margin=start), atol=1e-6)
    assert model.score(X, TWO) > model.wide_.score(X, TWO) + 0.05


def test_several_classes_on_top_of_margins_by_hand():
    wide = WideClassifier(**RIDGE)
    booster = CatBoostClassifier(iterations=15, depth=4, verbose=False, allow_writing_files=False, thread_count=1)
    model = WideBoostClassifier(wide, booster, mode="margin", codes="native", **ALL_ROUNDS).fit(X, THREE)
    margins = crossed(wide, THREE, lambda fitted, rows: fitted.decision_function(rows))
    codes, names = np.unique(THREE, return_inverse=True)[1], ["shop", "kind"]
    trees = clone(booster).fit(Pool(X, codes, cat_features=names, baseline=margins))
    start = clone(wide).fit(X, THREE).decision_function(X)
    raw = trees.predict(Pool(X, cat_features=names, baseline=start), prediction_type="RawFormulaVal")
    np.testing.assert_allclose(model.decision_function(X), raw, atol=1e-6)  # Newton stops within its tolerance
    np.testing.assert_allclose(model.predict_proba(X), softmax(raw, axis=1), atol=1e-6)
    assert set(model.predict(X)) == {"low", "mid", "top"}


@pytest.mark.slow
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize(
    "encoder",
    [TIWSEncoder(cols=["shop", "kind"]), CrossFit(TargetEncoder(cols=["shop", "kind"])), WideEncoder(random_state=0)],
    ids=["TIWS", "CrossFit", "Wide"],
)
def test_an_encoder_of_targets_codes_the_training_rows_out_of_fold_by_hand(encoder, is_weighted):
    weight = np.where(np.arange(N) % 3 == 0, 1.5, 0.75) if is_weighted else None
    told = {} if weight is None or isinstance(encoder, CrossFit) else {"sample_weight": weight}
    wide, booster = WideRegressor(**SQUARED), LGBMRegressor(**SMALL)
    model = WideBoostRegressor(wide, booster, mode="margin", codes=encoder, **ALL_ROUNDS)
    model.fit(X, VALUES, sample_weight=weight)
    coder = clone(encoder)
    frame = coder.fit_transform(X, VALUES, **told)
    assert np.abs(frame["shop"] - coder.transform(X)["shop"]).max() > 0.01  # the rows' own targets show
    margins = np.zeros(N)
    for train, test in FOLDS.split(X):
        own = None if weight is None else weight[train]
        margins[test] = clone(wide).fit(X.iloc[train], VALUES[train], sample_weight=own).predict(X.iloc[test])
    trees = clone(booster).fit(frame, VALUES, init_score=margins, sample_weight=weight)
    wanted = model.wide_.predict(X) + trees.predict(coder.transform(X), raw_score=True)
    np.testing.assert_allclose(model.predict(X), wanted, atol=1e-8)


@pytest.mark.slow
def test_an_encoder_of_targets_gets_labels_of_several_classes():
    """Numbers of 25 classes would be a quantity to it, and those of 6 skewed ones counts."""
    y = np.array([f"class {place % 25:02d}" for place in range(N)])
    encoder, booster = TIWSEncoder(cols=["shop", "kind"]), LGBMClassifier(**SMALL | {"n_estimators": 2})
    model = WideBoostClassifier(WideClassifier(**RIDGE), booster, mode="margin", codes=encoder, **ALL_ROUNDS).fit(X, y)
    wanted = encoder.fit(X, y).transform(X)
    assert model.booster_frame(X).shape[1] == wanted.shape[1] > 50
    np.testing.assert_allclose(model.booster_frame(X).to_numpy(), wanted.to_numpy(), atol=1e-12)


def test_catboost_by_its_adapter_is_a_pipeline_of_the_encoder():
    native = load_adapter("catboost").native("regression", random_state=0, n_jobs=1, codes=TIWSEncoder())
    native.set_params(booster__iterations=20).fit(X, VALUES)
    pipeline = make_pipeline(TIWSEncoder(), clone(native.booster)).fit(X, VALUES)
    np.testing.assert_allclose(native.predict(X), pipeline.predict(X), rtol=1e-9)


@pytest.mark.parametrize("loss", ["poisson", "tweedie"])
def test_log_links_by_hand(loss):
    wide, booster = WideRegressor(loss=loss, **RIDGE), LGBMRegressor(**SMALL)
    model = WideBoostRegressor(wide, booster, mode="margin", **ALL_ROUNDS).fit(X, COUNTS)
    margins = crossed(wide, COUNTS, lambda fitted, rows: np.log(fitted.predict(rows)))
    trees = clone(booster).set_params(objective=loss).fit(ranked(X), COUNTS, init_score=margins)
    raw = np.log(clone(wide).fit(X, COUNTS).predict(X)) + trees.predict(ranked(X), raw_score=True)
    np.testing.assert_allclose(model.predict(X), np.exp(raw), rtol=1e-7)


@pytest.mark.parametrize("booster", [None, HistGradientBoostingRegressor(max_iter=10)], ids=["library", "scikit-learn"])
@pytest.mark.parametrize(("unit", "word"), [(1e40, "divide"), (1e100, "divide"), (1e-40, "multiply")])
def test_a_target_beyond_the_floats_of_boosters_is_refused(booster, unit, word):
    with pytest.raises(ValueError, match=rf"boosters compute in 32-bit floats: {word} it by a constant"):
        WideBoostRegressor(booster=booster).fit(X, VALUES * unit)
    with pytest.raises(ValueError, match=rf"boosters compute in 32-bit floats: {word} it by a constant"):
        WideBoostRegressor(booster=booster).fit(X, VALUES, eval_set=(X, VALUES * unit))


@pytest.mark.parametrize("unit", [1e-30, 1e30])
def test_the_unit_of_the_target_does_not_matter(unit):
    plain, other = (
        WideBoostRegressor(wide=WideRegressor(**SQUARED), booster=LGBMRegressor(**SMALL), random_state=0).fit(X, y)
        for y in (VALUES, VALUES * unit)
    )
    assert plain.shares_.keys() == other.shares_.keys()
    np.testing.assert_allclose(other.predict(X) / unit, plain.predict(X), atol=1e-3)


def test_residuals_of_a_scikit_learn_regressor_by_hand():
    wide, booster = WideRegressor(**SQUARED), HistGradientBoostingRegressor(max_iter=10, early_stopping=False)
    model = WideBoostRegressor(wide, booster, mode="margin", **ALL_ROUNDS).fit(X, VALUES)
    margins = crossed(wide, VALUES, lambda fitted, rows: fitted.predict(rows))
    trees = clone(booster).fit(ranked(X).to_numpy(), VALUES - margins)
    wanted = clone(wide).fit(X, VALUES).predict(X) + trees.predict(ranked(X).to_numpy())
    np.testing.assert_allclose(model.predict(X), wanted, atol=1e-8)


@pytest.mark.parametrize("booster", [LGBMClassifier(**SMALL), HistGradientBoostingClassifier(max_iter=9),
                                     RandomForestClassifier(20, min_samples_leaf=5, random_state=0)])  # fmt: skip
def test_margins_as_a_column_by_hand(booster):
    wide = WideClassifier(**RIDGE)
    model = WideBoostClassifier(wide, booster, mode="feature", **ALL_ROUNDS).fit(X, TWO)
    margins = crossed(wide, TWO, lambda fitted, rows: fitted.decision_function(rows))
    trees = clone(booster).fit(ranked(X).assign(wide=margins), TWO == "yes")
    start = clone(wide).fit(X, TWO).decision_function(X)
    wanted = np.clip(trees.predict_proba(ranked(X).assign(wide=start)), 1e-7, 1)
    np.testing.assert_allclose(model.predict_proba(X), wanted / wanted.sum(axis=1, keepdims=True), atol=1e-7)


# -- what rows held out choose -----------------------------------------------------------------------------


def test_evidence_by_hand(monkeypatch):
    monkeypatch.setattr(selection, "MIN_HELD_OUT_ROWS", N)
    wide, booster = WideClassifier(**RIDGE), LGBMClassifier(**SMALL | {"n_estimators": 40})
    model = WideBoostClassifier(wide, booster, mode="margin", cv=FOLDS).fit(X, TWO)
    splits, truth = list(FOLDS.split(X)), (TWO == "yes").astype(int)
    chances = np.zeros(N)
    for fold, (train, test) in enumerate(splits):
        margins = np.full(N, np.nan)  # of training rows, by models that saw neither them nor the fold
        for other, (_, rows) in enumerate(splits):
            if other != fold:
                seen = np.setdiff1d(train, rows)
                margins[rows] = clone(wide).fit(X.iloc[seen], TWO[seen]).decision_function(X.iloc[rows])
        coded = ranked(X, X.iloc[train])
        trees = clone(booster).set_params(n_estimators=10)
        trees.fit(coded.iloc[train], truth[train], init_score=margins[train])
        start = clone(wide).fit(X.iloc[train], TWO[train]).decision_function(X.iloc[test])
        raw = start + trees.predict(coded.iloc[test], raw_score=True)
        chances[test] = 1 / (1 + np.exp(-raw))
    table = model.evidence_.set_index("rounds")["loss"]
    assert table[10] == pytest.approx(log_loss(truth, chances), abs=1e-9)
    assert model.n_rounds_["margin"] == table.idxmin() > 0
    alone = crossed(wide, TWO, lambda fitted, rows: fitted.predict_proba(rows)[:, 1])
    assert table[0] == pytest.approx(log_loss(truth, alone), abs=1e-9)


@pytest.mark.parametrize("early_stopping", ["folds", 0.2])
@pytest.mark.parametrize("mode", ["margin", "feature", "auto"])
def test_a_booster_that_hurts_is_left_out(early_stopping, mode):
    harmful = LGBMClassifier(**SMALL | {"learning_rate": 99.0})  # a tenth of 9 is a booster that helps
    y = np.where(EFFECT + np.random.default_rng(1).normal(size=N) > 0, "yes", "no")
    model = WideBoostClassifier(
        WideClassifier(**RIDGE), harmful, mode=mode, cv=3, early_stopping=early_stopping, random_state=0
    ).fit(X, y)
    assert (model.shares_, model.n_rounds_, model.boosters_) == ({"wide": 1.0}, {"wide": 0}, {})
    np.testing.assert_array_equal(model.predict_proba(X), model.wide_.predict_proba(X))
    np.testing.assert_array_equal(model.predict_proba(X), WideClassifier(**RIDGE).fit(X, y).predict_proba(X))


@pytest.mark.slow
def test_the_booster_alone_shares_the_answer(monkeypatch):
    monkeypatch.setattr(selection, "MIN_HELD_OUT_ROWS", N)
    wide, booster = WideClassifier(categorical_features="all", **ADDITIVE | {"alpha": 1.0}), LGBMClassifier(**SMALL)
    model = WideBoostClassifier(wide, booster, cv=FOLDS).fit(X, TWO)
    one, other = (model.shares_[mode] for mode in ("margin", "alone"))
    assert one + other == pytest.approx(1)
    assert min(one, other) > 0
    rounds, truth = model.n_rounds_, (TWO == "yes").astype(int)
    margins = crossed(wide, TWO, lambda fitted, rows: fitted.decision_function(rows))
    on_top = clone(booster).set_params(n_estimators=rounds["margin"]).fit(ranked(X), truth, init_score=margins)
    categories = X.astype({"shop": "category", "kind": "category"})
    alone = clone(booster).set_params(n_estimators=rounds["alone"]).fit(categories, truth)
    start = clone(wide).fit(X, TWO).decision_function(X) + on_top.predict(ranked(X), raw_score=True)
    wanted = one * start + other * alone.predict(categories, raw_score=True)
    difference = model.decision_function(X) - wanted
    assert np.quantile(np.abs(difference), 0.9) < 1e-6  # LightGBM breaks ties of categories by their order
    table = model.evidence_[model.evidence_["mode"] == "both"].set_index("share")["loss"]
    assert table.idxmin() == pytest.approx(other)
    apart = model.evidence_[model.evidence_["mode"] != "both"].groupby("mode")["loss"].min()
    assert [table[0.0], table[1.0]] == pytest.approx([apart["margin"], apart["alone"]])
    assert table.min() < apart.min()


BOX = pd.DataFrame(np.random.default_rng(1).uniform(-2, 2, size=(3000, 3)), columns=list("abc"))
WAVES = np.where(np.sin(4 * BOX["a"]) * np.sin(4 * BOX["b"]) > 0, "yes", "no")
"""Of two numbers that act together only, in many steps."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "y", "booster", "tried"),
    [
        (BOX, WAVES, None, ("margin", "trees as large as alone")),
        (X, TWO, LGBMClassifier(**SMALL), ("alone", "codes='ordinal'")),
    ],
    ids=["alone leads", "alone is behind"],
)
def test_the_loser_of_two_boosters_is_tried_once_more(table, y, booster, tried, monkeypatch):
    monkeypatch.setattr("tabsym.stacking.selection.MIN_ROWS_AGAIN", len(X))
    monkeypatch.setattr("tabsym.stacking.selection.MAX_NATIVE_CATEGORIES", 1)
    model = WideBoostClassifier(WideClassifier(**ADDITIVE), booster, cv=FOLDS, n_jobs=1).fit(table, y)
    rows = model.evidence_[model.evidence_["variant"] != ""]
    assert set(zip(rows["mode"], rows["variant"], strict=True)) == {tried}
    first = model.evidence_[model.evidence_["variant"] == ""].groupby("mode")["loss"].min()
    assert (first["alone"] < min(first["margin"], first["wide"])) == (table is BOX)
    assert f"{tried[0]} ({tried[1]}): " in model.summary()
    both = model.evidence_[model.evidence_["mode"] == "both"].set_index("share")["loss"]
    if table is BOX:
        assert rows["loss"].min() < first["margin"]
        assert both[0.0] == pytest.approx(rows["loss"].min())


def test_the_loser_of_two_boosters_is_tried_once_on_few_rows(monkeypatch):
    model = WideBoostClassifier(WideClassifier(**ADDITIVE), LGBMClassifier(**SMALL), cv=FOLDS, n_jobs=1)
    monkeypatch.setattr("tabsym.stacking.selection.MAX_NATIVE_CATEGORIES", 1)
    assert not model.fit(X, TWO).evidence_["variant"].any()
    monkeypatch.setattr("tabsym.stacking.selection.MIN_ROWS_AGAIN", len(X))
    assert clone(model).fit(X, TWO).evidence_["variant"].any()


@pytest.mark.parametrize(("n_categories", "tried"), [(100, set()), (101, {"codes='ordinal'"})])
def test_other_codes_are_tried_where_a_column_has_many_categories(n_categories, tried):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": np.resize(np.arange(n_categories), 1500).astype(str), "x": rng.normal(size=1500)})
    y = rng.normal(size=n_categories)[table["a"].astype(int)] + rng.normal(size=1500)
    model = WideBoostRegressor(WideRegressor(**ADDITIVE), LGBMRegressor(**SMALL), n_jobs=1).fit(table, y)
    assert set(model.evidence_["variant"]) - {""} == tried


def test_the_categories_of_a_column_are_those_of_all_splits():
    """One of 101 has a single row, which some split holds out, so that its booster has seen 100."""
    rng, codes = np.random.default_rng(0), np.resize(np.arange(100), 1500)
    codes[10] = 100
    table = pd.DataFrame({"a": codes.astype(str), "x": rng.normal(size=1500)})
    y = rng.normal(size=101)[codes] + rng.normal(size=1500)
    model = WideBoostRegressor(WideRegressor(**ADDITIVE), LGBMRegressor(**SMALL), cv=KFold(20), n_jobs=1).fit(table, y)
    assert (model.evidence_["folds"] > 1).all()
    assert set(model.evidence_["variant"]) - {""} == {"codes='ordinal'"}


def test_boosters_of_the_same_trees_and_codes_are_tried_once():
    start = Plan(LGBMClassifier(**SMALL), "margin", "ordinal", "binary")
    assert second_plan([start, replace(start, mode="alone", codes="native")], alone_leads=True) is None
    assert second_plan([start, replace(start, mode="alone")], alone_leads=False) is None


def evidence_of(mode, y, **options):
    """What was compared, of a small stack over three folds."""
    booster = LGBMClassifier(**SMALL | options)
    stack = WideBoostClassifier(WideClassifier(**RIDGE), booster, mode=mode, cv=FOLDS, random_state=0)
    return stack.fit(X, y).evidence_


def test_no_more_folds_than_tell_enough(monkeypatch):
    assert set(evidence_of("margin", TWO)["folds"]) == {1}
    monkeypatch.setattr(selection, "MIN_HELD_OUT_ROWS", N // 3 + 1)
    assert set(evidence_of("margin", TWO)["folds"]) == {2}


@pytest.mark.parametrize(("n_folds", "sizes"), [(4, [300, 300, 300, 450, 600]), (3, [200, 200, 400, 600])])
def test_the_booster_of_all_rows_starts_from_margins_of_models_that_were_evaluated(n_folds, sizes):
    """Of the evaluated fold by the clone without it, of others by the model without both."""
    fits, folds = [], KFold(n_folds, shuffle=True, random_state=1)

    class Counted(WideClassifier):
        def fit(self, X, y, sample_weight=None):
            fits.append(len(X))
            return super().fit(X, y, sample_weight)

    booster = LGBMClassifier(**SMALL)
    model = WideBoostClassifier(Counted(**RIDGE), booster, mode="margin", cv=folds, random_state=0).fit(X, TWO)
    assert sorted(fits) == sizes
    splits, margins = list(folds.split(X)), np.zeros(N)
    for fold, (train, test) in enumerate(splits):
        seen = train if fold == 0 else np.setdiff1d(train, splits[0][1])
        margins[test] = WideClassifier(**RIDGE).fit(X.iloc[seen], TWO[seen]).decision_function(X.iloc[test])
    trees = clone(booster).set_params(n_estimators=model.n_rounds_["margin"])
    trees.fit(ranked(X), TWO == "yes", init_score=margins)
    start = WideClassifier(**RIDGE).fit(X, TWO).decision_function(X)
    wanted = start + trees.predict(ranked(X), raw_score=True)
    np.testing.assert_allclose(model.decision_function(X), wanted, atol=1e-6)


@pytest.mark.parametrize("part", [{"booster": "xgb"}, {"wide": 3}, {"booster": LGBMClassifier}], ids=str)
def test_parts_that_are_no_estimators_are_named(part):
    name, value = next(iter(part.items()))
    with pytest.raises(TypeError, match=re.escape(f"{name}={value!r} is not an estimator; pass an instance")):
        WideBoostClassifier(**part).fit(pd.DataFrame({"a": list("uv") * 10}), [0, 1] * 10)


def test_a_gain_must_be_larger_than_its_standard_error():
    rng = np.random.default_rng(1)
    before, lost, weight = rng.random((3, 50))
    rows = StackRows(None, before, before[:, None], weight)
    parts = [StackRows(None, before[part], before[part, None], weight[part]) for part in (slice(20), slice(20, None))]
    for tally in (
        PairedGains.of(lost, before, rows),
        PairedGains.total(
            [PairedGains.of(lost[:20], before[:20], parts[0]), PairedGains.of(lost[20:], before[20:], parts[1])]
        ),
        PairedGains.of(lost, before, StackRows(None, before, before[:, None], 7 * weight)),
    ):
        gain = np.average(before - lost, weights=weight)
        error = np.sqrt(np.square(weight * (before - lost - gain)).sum()) / weight.sum()
        assert (tally.loss, tally.gain) == pytest.approx((np.average(lost, weights=weight), gain))
        assert tally.error == pytest.approx(error)
    for mean, is_certain in ((0.55, True), (0.45, False)):  # of two rows, whose standard error is 1 / sqrt(2)
        gains = mean / np.sqrt(2) + np.array([1.0, -1.0])
        plain = StackRows(None, gains, gains[:, None], None)
        assert PairedGains.of(-gains, 0 * gains, plain).is_certain == is_certain


# -- nested folds ------------------------------------------------------------------------------------------


def test_nested_margins_have_not_seen_the_fold():
    wide = WideClassifier(**ADDITIVE)
    splits, labels = list(FOLDS.split(X)), np.array(["no", "yes"])

    def with_turned(fold):
        y = TWO.copy()
        if fold is not None:
            test = splits[fold][1]
            y[test] = np.where(TWO[test] == "yes", "no", "yes")
        return NestedCV(OutOfFoldMargins(Learner(wide, X, y, None, labels), splits))

    plain, own, other = (with_turned(fold) for fold in (None, 0, 1))
    rows = plain.rows(0)
    np.testing.assert_array_equal(rows, splits[0][0])
    np.testing.assert_array_equal(plain.margins(0), own.margins(0))
    assert np.abs(plain.margins(1) - own.margins(1)).max() > 1.0
    assert np.abs(plain.margins(0) - other.margins(0)).max() > 1.0


@pytest.mark.parametrize("sizes", [(0, 20, 20), (1, 20, 20), (1, 1, 20), (2, 20, 20)])
@pytest.mark.parametrize("task", ["numbers", "classes"])
def test_rows_have_margins_where_their_model_has_something_to_learn_from(task, sizes):
    """Numbers as soon as one row is left, in neither of the two folds, and classes as soon as there are two of them."""
    n = sum(sizes)
    parts = [np.arange(*ends) for ends in pairwise(np.cumsum((0, *sizes)).tolist())]
    splits = [(np.setdiff1d(np.arange(n), part), part) for part in parts]
    if task == "numbers":
        y, wide, labels, n_needed = VALUES[:n], WideRegressor(**SQUARED), None, 1
    else:
        y, wide, labels, n_needed = np.resize(["no", "yes"], n), WideClassifier(**ADDITIVE), np.array(["no", "yes"]), 2
    nested = NestedCV(OutOfFoldMargins(Learner(wide, X[:n], y, None, labels), splits))
    for fold in range(3):
        left = {other: np.delete(y, np.concatenate([parts[fold], parts[other]])) for other in range(3) if other != fold}
        wanted = [parts[other] for other, targets in left.items() if len(set(targets)) >= n_needed]
        rows = np.concatenate([np.arange(0), *wanted])
        np.testing.assert_array_equal(nested.rows(fold), rows)
        if len(rows):
            assert nested.margins(fold).shape == (len(rows), 1)


def test_margins_to_train_on_are_of_models_of_the_other_folds():
    wide, labels = WideClassifier(**ADDITIVE), np.array(["no", "yes"])
    splits = list(FOLDS.split(X))
    crossed = OutOfFoldMargins(Learner(wide, X, TWO, None, labels), splits)
    evaluated, found = crossed.margins_of(1), crossed.margins()
    np.testing.assert_array_equal(found[splits[1][1]], evaluated)
    for train, test in splits:
        own = clone(wide).fit(X.iloc[train], TWO[train])
        np.testing.assert_array_equal(found[test, 0], own.decision_function(X.iloc[test]))


def test_the_wide_model_is_what_it_would_be_alone():
    wide = WideSGDClassifier(max_iter=2)
    model = WideBoostClassifier(wide, LGBMClassifier(**SMALL), mode="margin", cv=3, random_state=3).fit(X, TWO)
    alone = clone(wide).set_params(random_state=3).fit(X, TWO)
    np.testing.assert_array_equal(model.wide_.decision_function(X), alone.decision_function(X))


class Spy(KFold):
    """Remembers what it was asked to split."""

    seen: list = []

    def split(self, X, y=None, groups=None):
        self.seen.append((len(X), groups))
        return super().split(X, y, groups)


def test_rows_held_out_are_taken_before_the_folds():
    Spy.seen.clear()
    stack = WideBoostRegressor(WideRegressor(**SQUARED), LGBMRegressor(**SMALL), mode="margin", cv=Spy(3))
    model = stack.set_params(early_stopping=0.25, random_state=0).fit(X, VALUES)
    assert {rows for rows, _ in Spy.seen} == {450}
    np.testing.assert_allclose(model.wide_.predict(X), WideRegressor(**SQUARED).fit(X, VALUES).predict(X))


@pytest.mark.parametrize("early_stopping", [0.25, False])
@pytest.mark.parametrize("some", [True, False])
@pytest.mark.parametrize("kind", ["rows", "masks", "predefined"])
def test_a_list_of_splits_names_rows_of_the_table_given(kind, some, early_stopping, monkeypatch):
    """Also where rows of weight 0, or held out, are left out: groups were on both sides of a fold."""
    seen = []

    class Seen(OutOfFoldMargins):
        def __init__(self, learner, splits):
            seen.extend(tuple(learner.X.index[rows].tolist() for rows in split) for split in splits)
            seen.append(learner.X.index.tolist())
            super().__init__(learner, splits)

    monkeypatch.setattr("tabsym.stacking.base.OutOfFoldMargins", Seen)
    fold = np.arange(N) // 10 % 3
    cv = [(fold != one, fold == one) for one in range(3)]
    if kind == "rows":
        cv = [tuple(map(np.flatnonzero, split)) for split in cv]
    stack = WideBoostRegressor(WideRegressor(**SQUARED), LGBMRegressor(**SMALL), mode="margin", random_state=0)
    stack.set_params(cv=PredefinedSplit(fold) if kind == "predefined" else cv, early_stopping=early_stopping)
    stack.fit(X, VALUES, sample_weight=(np.arange(N) >= 30).astype(float) if some else None)
    *splits, rows = seen
    assert len(rows) == int((N - 30 * some) * (1 - early_stopping))
    assert splits == [tuple([row for row in rows if (fold[row] == one) == out] for out in (0, 1)) for one in range(3)]
    if kind == "rows":
        with pytest.raises(ValueError, match=f"Fold 0 of cv names a row outside 0 to {N - 1}; make the splits for"):
            stack.set_params(cv=[([0, 1], [2, N])]).fit(X, VALUES)


def test_weights_of_rows_held_out_count():
    stack = WideBoostRegressor(WideRegressor(**SQUARED), LGBMRegressor(**SMALL), mode="margin", cv=3, random_state=0)
    stack.set_params(early_stopping=0.25)
    weight = np.random.default_rng(0).integers(1, 4, N).astype(float)
    one, twice = (clone(stack).fit(X, VALUES, sample_weight=factor * weight) for factor in (1, 2))
    np.testing.assert_allclose(one.evidence_["loss"], twice.evidence_["loss"], rtol=1e-6)
    seed = np.random.RandomState(0).randint(2**31 - 1)
    train, test = (np.sort(part) for part in next(ShuffleSplit(1, test_size=0.25, random_state=seed).split(X)))
    wide = WideRegressor(**SQUARED).fit(X.iloc[train], VALUES[train], sample_weight=weight[train])
    lost = (wide.predict(X.iloc[test]) - VALUES[test]) ** 2 / 2
    assert one.evidence_["loss"][0] == pytest.approx(np.average(lost, weights=weight[test]), rel=1e-9)


@pytest.mark.parametrize("codes", ["ordinal", "native"])
def test_estimators_that_read_no_categories_get_numbers_alone_too(codes):
    """mode="auto" tries the booster alone on native categories, which a forest does not read."""
    booster = RandomForestClassifier(10, random_state=0)
    if codes == "native":  # asked for: a pipeline's encoder reads them
        booster = make_pipeline(OneHotEncoder(handle_unknown="ignore"), booster)
    stack = WideBoostClassifier(WideClassifier(**RIDGE), booster, cv=3, codes=codes, random_state=0).fit(X, TWO)
    assert stack.predict_proba(X).shape == (N, 2)
    assert set(stack.shares_) <= {"wide", "feature", "alone"}


def test_rounds_are_chosen_by_one_only():
    with pytest.raises(ValueError, match=r"early_stopping=False asks for all rounds .* leave one of the two out"):
        WideBoostClassifier(mode="margin", early_stopping=False).fit(X, TWO, eval_set=(X, TWO))
    for booster in (LGBMClassifier(early_stopping_round=5), XGBClassifier(early_stopping_rounds=5),
                    CatBoostClassifier(early_stopping_rounds=5)):  # fmt: skip
        with pytest.raises(ValueError, match=r"early_stopping_rounds?=5\) needs an evaluation set"):
            WideBoostClassifier(booster=booster).fit(X, TWO)


def test_an_evaluation_set_chooses_the_rounds():
    stack = WideBoostClassifier(WideClassifier(**RIDGE), LGBMClassifier(**SMALL), mode="margin", cv=FOLDS)
    model = stack.fit(X, TWO, eval_set=(X.head(200), TWO[:200]))
    table = model.evidence_.set_index("rounds")["loss"]
    start = log_loss(TWO[:200], model.wide_.predict_proba(X.head(200)))
    assert table[0] == pytest.approx(start)
    assert table[sum(model.n_rounds_.values())] == pytest.approx(log_loss(TWO[:200], model.predict_proba(X.head(200))))
    with pytest.raises(ValueError, match=r"'maybe'.*leave such rows out"):
        stack.fit(X, TWO, eval_set=(X.head(2), ["yes", "maybe"]))
    with pytest.raises(ValueError, match="one pair"):
        stack.fit(X, TWO, eval_set=X)


def test_groups_stay_together():
    groups = X["shop"].to_numpy()
    stack = WideBoostRegressor(WideRegressor(**SQUARED), LGBMRegressor(**SMALL), mode="margin", early_stopping=False)
    model = clone(stack).set_params(cv=GroupKFold(3)).fit(X, VALUES, groups=groups)
    margins = np.zeros(N)
    for train, test in GroupKFold(3).split(X, VALUES, groups):
        margins[test] = WideRegressor(**SQUARED).fit(X.iloc[train], VALUES[train]).predict(X.iloc[test])
    trees = LGBMRegressor(**SMALL).fit(ranked(X), VALUES, init_score=margins)
    wanted = model.wide_.predict(X) + trees.predict(ranked(X), raw_score=True)
    np.testing.assert_allclose(model.predict(X), wanted, atol=1e-8)
    with pytest.raises(ValueError, match="GroupKFold"):
        clone(stack).fit(X, VALUES, groups=groups)
    with pytest.raises(ValueError, match="needs the group"):
        clone(stack).set_params(cv=GroupKFold(3)).fit(X, VALUES)


def test_groups_are_routed():
    stack = WideBoostRegressor(WideSGDRegressor(), Ridge(), mode="margin", cv=Spy(3), early_stopping=False)
    Spy.seen.clear()
    with sklearn.config_context(enable_metadata_routing=True):
        cross_validate(stack.set_fit_request(groups=True), X, VALUES, params={"groups": np.arange(N)}, cv=2)
    assert all(len(groups) == rows for rows, groups in Spy.seen)


def test_rows_of_weight_zero_are_absent_and_weights_count():
    weight = np.where(np.arange(N) % 4 == 0, 0.0, 1.0 + (np.arange(N) % 3))
    kept = weight > 0
    stack = WideBoostClassifier(WideClassifier(**RIDGE), LGBMClassifier(**SMALL), cv=3, random_state=0, mode="margin")
    model = clone(stack).fit(X, TWO, sample_weight=weight)
    less = clone(stack).fit(X[kept], TWO[kept], sample_weight=weight[kept])
    np.testing.assert_array_equal(model.predict_proba(X), less.predict_proba(X))
    plain = clone(stack).fit(X[kept], TWO[kept])
    assert np.abs(plain.predict_proba(X) - less.predict_proba(X)).max() > 1e-3
    with pytest.raises(TypeError, match="takes no sample_weight"):
        from sklearn.neighbors import KNeighborsRegressor

        WideBoostRegressor(booster=KNeighborsRegressor(), wide=WideSGDRegressor(), mode="feature", codes="ordinal").fit(
            X[["price", "age"]], VALUES, sample_weight=np.ones(N)
        )


# -- estimators ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_copies_and_parts():
    stack = WideBoostClassifier(WideClassifier(**RIDGE), LGBMClassifier(**SMALL), mode="margin", cv=3, random_state=0)
    model = clone(stack).fit(X, TWO)
    again = clone(stack).fit(X, TWO)
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))  # noqa: S301
    assert not hasattr(stack.booster, "booster_") or stack.booster.fitted_ is False
    search = GridSearchCV(stack, {"booster__num_leaves": [3, 7], "wide__alpha": [1e-3]}, cv=2).fit(X, TWO)
    assert search.best_params_["booster__num_leaves"] in (3, 7)
    assert list(model.feature_names_in_) == list(X)
    assert model.boosters_["margin"].feature_name_ == list(X)
    assert model.predict(X.head(0)).shape == (0,)
    assert model.predict_proba(X.head(0)).shape == (0, 2)
    with pytest.raises(ValueError, match="Feature names unseen"):
        model.predict(X.rename(columns={"shop": "store"}))


def test_columns_for_the_booster():
    stack = WideBoostRegressor(WideRegressor(**SQUARED), LGBMRegressor(**SMALL), mode="margin", cv=FOLDS)
    model = stack.set_params(booster_cols=["price", "age"]).fit(X, VALUES)
    assert model.boosters_["margin"].feature_name_ == ["price", "age"]
    array = clone(stack).set_params(booster_cols=[0, 1]).fit(X[["price", "age"]].to_numpy(), VALUES)
    assert array.boosters_["margin"].feature_name_ == ["x0", "x1"]
    with pytest.raises(ValueError, match="'nosuch'"):
        stack.set_params(booster_cols="nosuch").fit(X, VALUES)


def test_the_link_that_all_rows_choose_is_that_of_every_fold():
    y = np.exp(SCORE) * np.random.default_rng(0).gamma(3, 1 / 3, N)
    wide = WideRegressor(loss="auto", **RIDGE)
    model = WideBoostRegressor(wide, LGBMRegressor(**SMALL), mode="margin", cv=3, random_state=0).fit(X, y)
    named = model.wide_.model_.loss.name
    assert named in ("squared_error", "poisson", "gamma", "tweedie")
    by_name = WideBoostRegressor(
        clone(wide).set_params(loss=named), LGBMRegressor(**SMALL), mode="margin", cv=3, random_state=0,
        early_stopping=False,
    ).fit(X, y)  # fmt: skip
    every = clone(model).set_params(early_stopping=False).fit(X, y)
    np.testing.assert_allclose(every.predict(X), by_name.predict(X))


@pytest.mark.filterwarnings("ignore:The least populated class")
def test_a_class_of_one_row():
    y = np.where(np.arange(N) == 5, "single", THREE)
    stack = WideBoostClassifier(WideSGDClassifier(), LGBMClassifier(**SMALL), mode="margin", cv=3, random_state=0)
    model = stack.fit(X, y)
    chances = model.predict_proba(X)
    assert chances.shape == (N, 4)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert list(model.classes_) == ["low", "mid", "single", "top"]


@pytest.mark.parametrize("place", range(4))
def test_a_class_of_one_row_takes_no_booster_away(place):
    """Whichever fold holds it out: one is evaluated whose training rows have it."""
    y = THREE.astype("<U9")
    y[150 * place] = "single"
    stack = WideBoostClassifier(
        WideClassifier(**RIDGE), LGBMClassifier(**SMALL), mode="margin", cv=KFold(4), random_state=0
    )
    assert set(stack.fit(X, y).evidence_["mode"]) == {"wide", "margin"}


def test_where_no_booster_can_be_tried_a_warning_names_the_class():
    fold = np.arange(N) % 3
    stack = WideBoostClassifier(WideClassifier(**RIDGE), LGBMClassifier(**SMALL), mode="margin", cv=GroupKFold(3))
    y = np.array(["uu", "vv", "ww"])[fold]
    words = (
        r"no booster was tried: .*, have no row of class '(uu|vv|ww)'; give more rows of it, leave it out, or choose"
    )
    with pytest.warns(UserWarning, match=words):
        model = stack.fit(X.drop(columns="kind"), y, groups=fold)
    assert model.shares_ == {"wide": 1.0}


def test_what_cannot_be_is_said_in_a_sentence():
    said = [
        (WideBoostClassifier(WideSGDClassifier(loss="hinge")), TWO, "hinge"),
        (WideBoostClassifier(booster=HistGradientBoostingClassifier(), mode="margin"), TWO, "mode='feature'"),
        (WideBoostRegressor(WideSGDRegressor(loss="poisson"), Ridge(), mode="margin"), COUNTS, "link 'log'"),
        (WideBoostRegressor(WideSGDRegressor(loss="poisson"), LGBMRegressor(objective="l2")), COUNTS, "'l2'"),
        (WideBoostRegressor(cv=None), VALUES, "cv=None"),
        (WideBoostRegressor(WideSGDRegressor(), cv=2), VALUES, "needs three folds"),
        (WideBoostRegressor(mode="both"), VALUES, "mode='both'"),
        (WideBoostRegressor(early_stopping=False), VALUES, "mode='auto'"),
        (WideBoostRegressor(early_stopping=7), VALUES, "early_stopping=7"),
        (WideBoostRegressor(WideSGDRegressor(), Ridge(), codes="hash"), VALUES, "codes='hash'"),
        (
            WideBoostRegressor(WideSGDRegressor(), Ridge(), mode="feature", codes="native"),
            VALUES,
            "use codes='ordinal', or a",
        ),
    ]
    for model, y, words in said:
        with pytest.raises(ValueError, match=words):
            model.fit(X, y)
    for model in (WideBoostClassifier(wide=WideSGDRegressor()), WideBoostClassifier(booster=LGBMRegressor())):
        with pytest.raises(TypeError, match="must be a"):
            model.fit(X, TWO)
    with pytest.raises(ValueError, match="predict_proba"):
        WideBoostClassifier(WideSGDClassifier(), LinearSVC(), mode="feature").fit(X, TWO)


@pytest.mark.parametrize(
    ("booster", "words"),
    [
        (LGBMClassifier(n_estimators=0), "LGBMClassifier asks for 0 rounds, which make no trees; use at least 1"),
        (LGBMClassifier(num_trees=0), "asks for 0 rounds"),
        (LGBMClassifier(n_estimators=None), "LGBMClassifier asks for rounds that are no number"),
        (LGBMClassifier(n_estimators="many"), "asks for rounds that are no number"),
        (XGBClassifier(n_estimators=-3), "XGBClassifier asks for -3 rounds"),
        (CatBoostClassifier(iterations=0), "CatBoostClassifier asks for 0 rounds"),
        (
            LGBMClassifier(boosting_type="rf"),
            r"\(boosting_type='rf'\) averages its trees, and can't start from margins",
        ),
        (LGBMClassifier(boosting="random_forest"), r"\(boosting='random_forest'\) averages its trees"),
        (LGBMClassifier(sigmoid=0.3), r"\(sigmoid=0.3\) has scores on another scale than those of a wide model"),
        (LGBMClassifier(pred_early_stop=True), r"\(pred_early_stop=True\) can't start from margins; leave pred_early"),
        (CatBoostClassifier(boost_from_average=True), r"\(boost_from_average=True\) can't start from margins"),
        (XGBClassifier(booster="gblinear"), r"XGBClassifier\(booster='gblinear'\) has no trees, and can't start"),
        (
            XGBClassifier(booster="dart"),
            r"\(booster='dart'\) does not add its trees to a margin in `predict`, and can't",
        ),
    ],
)
def test_boosters_whose_trees_do_not_add_up_to_a_margin_are_refused_before_anything_is_trained(
    monkeypatch, booster, words
):
    monkeypatch.setattr(WideClassifier, "fit", lambda *_, **__: pytest.fail("the wide model was trained"))
    for mode in ("auto", "margin"):
        with pytest.raises(ValueError, match=words):
            WideBoostClassifier(booster=booster, mode=mode).fit(X, TWO)
    margin = np.zeros(len(X))
    with pytest.raises(ValueError, match=words):
        adapter_of(booster).fit_margin(booster, X[["price"]].to_numpy(), TWO, margin)


FOREST = {"bagging_freq": 1, "bagging_fraction": 0.5, "n_estimators": 5, "verbose": -1}


@pytest.mark.parametrize("name", ["boosting", "boosting_type"])
def test_forests_beside_the_wide_model_as_a_feature_are_theirs(name):
    """LightGBM's raw scores of a forest are sums of its trees, its predictions are means."""
    forest = LGBMClassifier(**{name: "rf"}, **FOREST)
    model = WideBoostClassifier(WideClassifier(**RIDGE), forest, mode="feature", early_stopping=False).fit(X, TWO)
    own = model.boosters_["feature"].predict_proba(model.booster_frame(X))
    np.testing.assert_allclose(model.predict_proba(X), own, rtol=1e-9)
    forest = LGBMRegressor(**{name: "rf"}, **FOREST)
    wide = WideRegressor(**SQUARED)
    model = WideBoostRegressor(wide, forest, mode="feature", early_stopping=False).fit(X, 10 + VALUES)
    booster, frame = model.boosters_["feature"], model.booster_frame(X)
    np.testing.assert_allclose(model.predict(X), booster.predict(frame), rtol=1e-9)
    added = adapter_of(booster).contributions(booster, frame)
    np.testing.assert_allclose(added.sum(axis=2)[:, 0], booster.predict(frame), rtol=1e-9)


@pytest.mark.slow
def test_options_that_change_a_booster_s_link_are_refused_as_a_feature_too():
    for mode in ("feature", "margin"):
        with pytest.raises(ValueError, match="has scores on another scale"):
            WideBoostClassifier(booster=LGBMClassifier(sigmoid=0.3, **SMALL), mode=mode).fit(X, TWO)
        with pytest.raises(ValueError, match=r"LGBMRegressor\(reg_sqrt=True\) has scores on another scale"):
            WideBoostRegressor(booster=LGBMRegressor(reg_sqrt=True, **SMALL), mode=mode).fit(X, VALUES)
    plain = WideBoostRegressor(
        WideRegressor(**SQUARED), LGBMRegressor(sigmoid=0.3, **SMALL), mode="feature", **ALL_ROUNDS
    )
    assert np.isfinite(plain.fit(X, VALUES).predict(X)).all()  # which has no effect there


@pytest.mark.parametrize("mode", ["feature", "margin"])
@pytest.mark.parametrize("target", [TWO, THREE], ids=["two classes", "three"])
def test_a_class_of_which_no_row_is_held_out_is_refused(mode, target):
    """A booster of the other classes would have their chances in the wrong columns."""
    at = np.argsort(target != target[0], kind="stable")
    early = np.concatenate([at[: N // 12], np.flatnonzero(target != target[0])])
    splits = TimeSeriesSplit(4)
    with pytest.raises(ValueError, match=rf"holds out no row of class '{target[0]}'"):
        WideBoostClassifier(booster=LGBMClassifier(**SMALL), mode=mode, cv=splits, early_stopping=False).fit(
            X.iloc[early], target[early]
        )


@pytest.mark.slow
def test_a_class_that_the_rows_held_out_take_with_them_stays_a_class_of_the_stack():
    """The wide model of the other rows knows two of three; probabilities have three columns."""
    target, groups = np.where(X["shop"] == "3", "top", TWO), X["shop"].to_numpy()
    for seed in range(12):
        model = WideBoostClassifier(
            WideClassifier(**RIDGE), LGBMClassifier(**SMALL), early_stopping=0.2, cv=GroupKFold(4), random_state=seed
        )
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model.fit(X, target, groups=groups)
        if any("no booster was tried" in str(one.message) for one in told):
            break
    else:
        pytest.fail("no seed holds the shop out")
    assert model.shares_ == {"wide": 1.0}
    np.testing.assert_allclose(model.predict_proba(X), model.wide_.predict_proba(X), rtol=1e-9)


def test_catboost_s_own_cat_features_and_use_best_model():
    quiet = {"iterations": 5, "verbose": False, "allow_writing_files": False}
    wide = WideRegressor(**SQUARED)
    made = [
        WideBoostRegressor(wide, CatBoostRegressor(**quiet, **own), mode="margin", **ALL_ROUNDS)
        .fit(X, VALUES)
        .predict(X)
        for own in ({}, {"cat_features": ["kind"]})
    ]
    np.testing.assert_array_equal(*made)
    with pytest.raises(ValueError, match=r"\(use_best_model=True\) needs an evaluation set"):
        WideBoostRegressor(wide, CatBoostRegressor(**quiet, use_best_model=True)).fit(X, VALUES)


DART = {"n_estimators": 30, "num_leaves": 7, "verbosity": -1, "n_jobs": 1, "random_state": 0}


@pytest.mark.parametrize(
    ("mode", "booster"),
    [
        ("margin", LGBMRegressor(boosting_type="dart", drop_rate=0.5, **DART)),
        ("feature", LGBMRegressor(boosting_type="dart", drop_rate=0.5, **DART)),
        ("feature", LGBMRegressor(boosting="rf", bagging_freq=1, bagging_fraction=0.5, **DART)),
        ("feature", XGBRegressor(booster="dart", rate_drop=0.5, n_estimators=30, max_depth=3, n_jobs=1)),
        ("feature", XGBRegressor(booster="gblinear", n_estimators=30, n_jobs=1)),
    ],
    ids=["dart on margins", "dart", "forest", "XGBoost's dart", "linear"],
)
def test_boosters_whose_first_trees_are_no_model_are_evaluated_as_a_whole(mode, booster):
    """The evidence is the loss of models that were fitted by themselves with those rounds."""
    train, test = slice(0, 400), slice(400, N)
    stack = WideBoostRegressor(WideRegressor(**SQUARED), booster, mode=mode, cv=FOLDS, random_state=0)
    found = clone(stack).fit(X[train], VALUES[train], eval_set=(X[test], VALUES[test])).evidence_
    whole = clone(stack).set_params(early_stopping=False).fit(X[train], VALUES[train])
    lost = np.mean((whole.predict(X[test]) - VALUES[test]) ** 2) / 2
    assert found.loc[found["mode"] == mode, "rounds"].tolist() == [30]
    assert found.loc[found["mode"] == mode, "loss"].item() == pytest.approx(lost, rel=1e-6)


@pytest.mark.slow
def test_every_type_of_table_means_the_same():
    libraries = ["lightgbm", "xgboost", "catboost", "hist"]  # in one process: starting it costs as much as one of them
    done = subprocess.run(
        [sys.executable, "-m", "tests.stack_tables", *libraries],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, f"the process was ended ({done.returncode}): {done.stderr[-2000:]}"
    found = {}
    for line in done.stdout.splitlines():
        found |= json.loads(line) if line.startswith("{") else {}
    assert list(found) == libraries
    for library, cases in found.items():
        assert len(cases) == sum(len(carriers_of(library, codes)) for codes in CODES[library]) > 5
        assert {case: said for case, said in cases.items() if said != "equal"} == {}, library


@pytest.mark.parametrize(
    "booster",
    [
        CatBoostRegressor(objective="MAE", verbose=0, allow_writing_files=False),
        CatBoostRegressor(objective="RMSE", verbose=0, allow_writing_files=False),
        LGBMRegressor(application="l2", verbose=-1),
        LGBMRegressor(loss="l1", verbose=-1),
    ],
    ids=["catboost", "default", "application", "loss"],
)
def test_objectives_by_other_names_of_the_libraries_are_seen(booster):
    X = pd.DataFrame({"a": list("uvwx") * 20})
    wide = WideSGDRegressor(loss="poisson")
    with pytest.raises(ValueError, match="does not read scores as the wide model's loss 'poisson'"):
        WideBoostRegressor(wide, booster, mode="margin", early_stopping=False).fit(X, np.arange(80) % 4)


def test_an_alias_of_an_objective_with_the_right_link_stays():
    X = pd.DataFrame({"a": list("uvwx") * 20})
    booster = LGBMRegressor(app="tweedie", n_estimators=3, verbose=-1)
    model = WideBoostRegressor(WideSGDRegressor(loss="poisson"), booster, mode="margin", early_stopping=False)
    fitted = model.fit(X, np.arange(80) % 4).boosters_["margin"]
    assert fitted.booster_.params["objective"] == "tweedie"


def test_groups_are_one_for_each_row():
    X, y = pd.DataFrame({"a": list("uvwx") * 20}), np.arange(80.0)
    for groups in ([1, 2], np.arange(90) % 3):
        with pytest.raises(ValueError, match=r"groups \d+ values; pass one group for each row"):
            WideBoostRegressor(cv=GroupKFold(3)).fit(X, y, groups=groups)


def test_the_target_held_out_is_of_the_loss():
    X, y = pd.DataFrame({"a": list("uvwx") * 20}), np.arange(80) % 4
    with pytest.raises(ValueError, match="target of the held-out rows is -1 in row 1, but loss='poisson' needs"):
        WideBoostRegressor(WideSGDRegressor(loss="poisson")).fit(X, y, eval_set=(X, -y))


@pytest.mark.slow
@pytest.mark.parametrize("n_found", [1, 2])
def test_rare_counts_leave_out_folds_that_hold_none(n_found):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(list("abc"), 200), "x": rng.normal(size=200)})
    y = np.zeros(200)
    y[:n_found] = 3.0
    wide = WideSGDRegressor(loss="poisson")
    for booster in (LGBMRegressor(n_estimators=5, verbose=-1), None):
        model = WideBoostRegressor(wide, booster, random_state=0, cv=5).fit(X, y)
        assert np.isfinite(model.predict(X)).all()


def test_the_own_stopping_of_scikit_learns_boosters_is_refused():
    X, y = pd.DataFrame({"a": list("uvwx") * 20}), np.arange(80.0)
    booster = HistGradientBoostingRegressor(early_stopping=True)
    with pytest.raises(ValueError, match=r"early_stopping=True\) holds out rows of its own, but the stack"):
        WideBoostRegressor(booster=booster).fit(X, y)


def test_estimators_without_rounds_may_stop_by_themselves():
    X, y = pd.DataFrame({"a": list("uvwx") * 20}), np.array(["yes", "no"] * 40)
    booster = SGDClassifier(loss="log_loss", early_stopping=True, random_state=0)
    model = WideBoostClassifier(booster=booster, codes="ordinal", mode="feature", random_state=0).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_one_row_proves_nothing():
    from tabsym.stacking.layer import StackRows as Held

    rows = Held(None, np.array([1.0]), np.zeros((1, 1)), None)
    assert not PairedGains.of(np.array([0.0]), np.array([1.0]), rows).is_certain


@pytest.mark.parametrize("rows", ["one of a class", "one group"])
def test_shares_that_cannot_be_held_out_are_told_of(rows):
    X = pd.DataFrame({"a": list("uvwx") * 20})
    y = np.array(["yes", "no"] * 40)
    groups = None
    if rows == "one group":
        groups = np.zeros(80)
    else:
        y[0] = "rare"
    model = WideBoostClassifier(early_stopping=0.2, cv=GroupKFold(2) if groups is not None else 5)
    with pytest.raises(ValueError, match=r"early_stopping=0\.2 cannot be held out.*use 'folds'"):
        model.fit(X, y, groups=groups)


def test_boosters_that_read_no_missing_values_and_columns_that_are_not_there():
    X = pd.DataFrame({"a": list("uvwx") * 20, "x": [1.0, np.nan] * 40})
    with pytest.raises(ValueError, match="Ridge does not accept missing values; use a pipeline that imputes them"):
        WideBoostRegressor(booster=Ridge(), codes="ordinal").fit(X, np.arange(80.0))
    with pytest.raises(ValueError, match=r"booster_cols=\['nope'\]: "):
        WideBoostRegressor(booster_cols=["nope"]).fit(X, np.arange(80.0))
    with pytest.raises(ValueError, match="sample_weight must hold numbers, one for each row"):
        WideBoostRegressor().fit(X, np.arange(80.0), sample_weight=["a"] * 80)


def test_a_wide_model_that_ends_short_is_told_of_once():
    """Not once for each of a dozen clones, of which nobody sees the passes."""
    wide = WideRegressor(loss="squared_error", max_iter=1, **ADDITIVE)
    with pytest.warns(ConvergenceWarning, match="ended short of the optimum") as told:
        WideBoostRegressor(wide=wide, booster=LGBMRegressor(**SMALL), mode="margin", cv=FOLDS).fit(X, VALUES)
    assert sum("ended short" in str(one.message) for one in told) == 1


@pytest.mark.parametrize("codes", ["ordinal", "native"])
@pytest.mark.parametrize("n_filled", [0, 1])
def test_histogram_boosting_takes_empty_columns(codes, n_filled):
    """In all rows, or in those of some folds: scikit-learn fails on them."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(list("uvw"), 200), "x": rng.normal(size=200), "empty": np.nan})
    X.loc[: n_filled - 1, "empty"] = 5.0
    y = 2 * X["x"].gt(0) + X["a"].eq("u") + rng.normal(size=200)
    booster = HistGradientBoostingRegressor(max_iter=10, random_state=0)
    model = WideBoostRegressor(WideRegressor(**SQUARED), booster, codes=codes, mode="feature", cv=3, random_state=0)
    assert np.isfinite(model.fit(X, y).predict(X.assign(empty=1.0))).all()


def test_a_stack_has_the_seed_of_its_wide_model_and_tells_what_it_chose(capsys):
    stacks = [
        WideBoostRegressor(WideRegressor(**SQUARED), LGBMRegressor(**SMALL), cv=3, verbose=verbose).fit(X, VALUES)
        for verbose in (0, 1)
    ]
    assert stacks[0].random_state == WideRegressor().random_state == 0
    assert np.array_equal(stacks[0].predict(X), stacks[1].predict(X))
    told = capsys.readouterr().err
    assert told.count("wide: ") == 1 and " rounds, gain " in told
    text = stacks[0].summary()
    assert text.startswith("WideBoostRegressor: loss squared_error\n")
    assert told.strip() in text and text.endswith(stacks[0].wide_.summary())
    assert all(f"  {mode}: weight {share:g}" in text for mode, share in stacks[0].shares_.items())


def test_the_wide_model_of_a_stack_has_the_stacks_seed():
    """Without one it is what it would have been by itself; of a generator it is drawn."""
    own = WideRegressor().random_state
    for seed, wanted in ((None, {own}), (7, {7}), (np.int64(8), {8}), (np.random.RandomState(3), None)):
        stack = WideBoostRegressor(booster=LGBMRegressor(**SMALL), mode="margin", cv=3, random_state=seed)
        found = stack.fit(X[:200], VALUES[:200]).wide_.random_state
        assert found in wanted if wanted else found == np.random.RandomState(3).randint(2**31 - 1)


def test_a_summary_tells_the_rounds_of_each_candidate():
    """The best number of rounds is the only one here; of the wide model and of a mixture of both there is none."""
    model = WideBoostRegressor(WideRegressor(**SQUARED), LGBMRegressor(n_estimators=1, verbose=-1), cv=3).fit(X, VALUES)
    told = model.summary().partition("Held-out losses:\n")[2].partition("\n\n")[0].splitlines()
    rounds = {line.split(":")[0].strip(): " after 1 round," in line for line in told}
    assert rounds == {"wide": False, "margin": True, "alone": True, "both": False}
    best = model.evidence_.groupby("mode")["loss"].min()
    losses = {line.split(":")[0].strip(): float(re.split("[ ,]+", line.strip())[1]) for line in told}
    assert losses == pytest.approx(best.to_dict(), rel=1e-5)


@pytest.mark.parametrize("verbose", ["x", -1, 0.5, None])
def test_verbose_is_a_number_or_a_flag(verbose):
    X, y = pd.DataFrame({"a": ["u", "v"] * 10}), [0, 1] * 10
    with pytest.raises(ValueError, match=f"verbose={verbose!r} is not possible; use True, False or a whole number"):
        WideBoostClassifier(verbose=verbose).fit(X, y)


@pytest.mark.parametrize(
    ("wide", "y"),
    [
        (WideClassifier(), TWO),
        (WideClassifier(), THREE),
        (WideClassifier(n_posterior_samples=8, fixed={"age": 0.1}), TWO),
        (WideClassifier(handle_unknown="similar", alpha=0.01), TWO),
        (WideRegressor(loss="poisson"), COUNTS),
        (WideRegressor("b[1] + u[kind] * v[shop] + s[1] * price", loss="squared_error"), VALUES),
    ],
    ids=["two", "three", "draws", "similar", "poisson", "formula"],
)
def test_clones_of_folds_predict_as_fits_do_and_find_no_joint_posterior(wide, y):
    train, new = np.arange(400), np.arange(400, N)
    learner = Learner(wide, X, y, None, np.unique(y) if isinstance(wide, WideClassifier) else None)
    model, whole = learner.fit(train), clone(wide).fit(X[:400], y[:400])
    np.testing.assert_array_equal(model._margins(X.iloc[new]), whole._margins(X.iloc[new]))
    found = model.model_.uncertainty
    assert found is None or not (found.joint.size or found.samples is not None)


def test_codes_among_numbers_are_pointed_out_once_and_not_where_the_user_has_decided():
    draw = np.random.default_rng(0)
    codes = draw.integers(1, 60, 1500)
    table = pd.DataFrame({"g": draw.choice(list("abc"), 1500), "code": codes * 37})
    y = 2 * draw.normal(size=60)[codes] + draw.logistic(size=1500) > 0
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        WideBoostClassifier(booster=LGBMClassifier(**SMALL), cv=3, n_jobs=1).fit(table, y)
    found = [str(one.message) for one in said if "look like codes" in str(one.message)]
    assert len(found) == 1
    assert "numeric={'code': 'smooth'}" in found[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        WideClassifier(numeric={"code": "smooth"}).fit(table, y)


@pytest.mark.parametrize("options", [{"metric": "auc"}, {"metric": "binary_error"}])
def test_rounds_are_chosen_by_the_loss_of_the_wide_model_and_not_by_the_metric_of_the_booster(options):
    wide = WideClassifier(**ADDITIVE)
    valid = X[400:], TWO[400:]
    found = []
    for own in ({}, options):
        booster = LGBMClassifier(n_estimators=60, random_state=0, n_jobs=1, verbosity=-1, **own)
        stack = WideBoostClassifier(wide, booster, mode="margin", random_state=0, n_jobs=1)
        found.append(stack.fit(X[:400], TWO[:400], eval_set=valid))
    one, other = (stack.evidence_ for stack in found)
    pd.testing.assert_frame_equal(one, other)
    assert found[0].n_rounds_ == found[1].n_rounds_ == {"margin": one.loc[one["loss"].idxmin(), "rounds"]}
    alone = clone(wide).fit(X[:400], TWO[:400]).predict_proba(valid[0])
    assert one.loc[one["mode"] == "wide", "loss"].item() == pytest.approx(log_loss(valid[1], alone))


@pytest.mark.parametrize(
    ("options", "loss"),
    [
        ({"loss": "squared_error"}, lambda errors: np.square(errors) / 2),
        ({"scoring": "neg_root_mean_squared_error"}, np.square),
        ({"scoring": "neg_mean_absolute_error"}, np.abs),
    ],
)
def test_the_loss_of_the_rounds_is_that_of_the_wide_regressor(options, loss):
    booster = LGBMRegressor(n_estimators=60, random_state=0, n_jobs=1, verbosity=-1)
    stack = WideBoostRegressor(WideRegressor(**ADDITIVE, **options), booster, mode="margin", random_state=0)
    table = stack.fit(X[:400], VALUES[:400], eval_set=(X[400:], VALUES[400:])).evidence_
    alone = loss(VALUES[400:] - stack.wide_.predict(X[400:])).mean()
    assert table.loc[table["mode"] == "wide", "loss"].item() == pytest.approx(alone)


@pytest.mark.parametrize(
    ("sizes", "n"), [([100, 100, 100], 1), ([99, 99, 99], 2), ([50, 50, 50], 2), ([49, 50, 50], 3), ([9, 9, 9], 3)]
)
def test_as_many_folds_are_evaluated_as_hold_a_hundred_rows(sizes, n):
    every, bounds = np.arange(sum(sizes)), np.cumsum(sizes)[:-1]
    splits = [(np.setdiff1d(every, fold), fold) for fold in np.split(every, bounds)]
    learner = SimpleNamespace(y=np.zeros(len(every)), classes=None)
    assert folds_to_evaluate(NestedCV(SimpleNamespace(splits=splits, rows=every, learner=learner))) == list(range(n))


@pytest.mark.parametrize(("n_rows", "folds"), [(500, [3]), (250, [3, 2])])
def test_the_latest_folds_over_time_are_evaluated(n_rows, folds):
    """Those with most rows to train on, as many as hold 100 rows."""
    splits = list(TimeSeriesSplit(4).split(np.zeros((n_rows, 1))))
    rows = np.concatenate([test for _, test in splits])
    learner = SimpleNamespace(y=np.zeros(n_rows), classes=None)
    assert folds_to_evaluate(NestedCV(SimpleNamespace(splits=splits, rows=rows, learner=learner))) == folds


# -- the boosters by default -----------------------------------------------------------------------


@pytest.mark.parametrize("is_class", [False, True])
def test_boosters_by_default_are_gentle_whatever_is_installed(is_class, monkeypatch):
    """150 rounds of a rate of .1, all of them; without LightGBM those of scikit-learn, with its categories."""
    small, large = (default_booster(is_class, 7, 2, small=small) for small in (True, False))
    assert type(small) is type(large) is (LGBMClassifier if is_class else LGBMRegressor)
    wanted = {"n_estimators": 150, "learning_rate": 0.1, "random_state": 7, "n_jobs": 2, "verbosity": -1}
    for booster in (small, large):
        assert booster.get_params().items() >= wanted.items()
    assert (small.num_leaves, small.min_child_samples) == (7, 50)
    assert (large.num_leaves, large.min_child_samples) == (31, 20)  # LightGBM's own
    by_library = {name: gentle_booster(name, is_class, 7, 2) for name in ("xgboost", "catboost")}
    kinds = {"xgboost": XGBClassifier if is_class else XGBRegressor}
    kinds["catboost"] = CatBoostClassifier if is_class else CatBoostRegressor
    own = {"xgboost": ("n_estimators", "max_depth", "random_state"), "catboost": ("iterations", "depth", "random_seed")}
    for name, booster in by_library.items():
        assert isinstance(booster, kinds[name])
        params = booster.get_params()
        assert [params[option] for option in (*own[name], "learning_rate")] == [150, 3, 7, 0.1]
    assert by_library["xgboost"].get_params()["min_child_weight"] == 10
    monkeypatch.setattr("tabsym.stacking.layer.find_spec", lambda name: None)
    for booster in (default_booster(is_class, 7, 2), gentle_booster("hist-gradient-boosting", is_class, 7, 2)):
        assert type(booster) is (HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor)
        found = booster.get_params()
        assert (found["max_iter"], found["learning_rate"], found["random_state"]) == (150, 0.1, 7)
        assert found["early_stopping"] is False and found["categorical_features"] == "from_dtype"
