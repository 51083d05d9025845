"""Folds over time: rows that no fold holds out have the prior, models learn of the past alone, boosters start later."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from catboost import CatBoostClassifier
from category_encoders import TargetEncoder as OtherTargetEncoder
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import PredefinedSplit, TimeSeriesSplit
from sklearn.preprocessing import StandardScaler, TargetEncoder
from xgboost import XGBClassifier

from tabsym import (
    AugmentedModel,
    CrossFit,
    MODLEncoder,
    TIWSEncoder,
    WideBoostClassifier,
    WideBoostRegressor,
    WideClassifier,
    WideEncoder,
    WideRegressor,
)
from tests.options import ADDITIVE

RNG = np.random.default_rng(0)
N, FIRST = 240, 60
X = pd.DataFrame({"a": RNG.choice(list("uvwx"), N), "n": RNG.normal(size=N)})
EFFECT = X["a"].map(dict(zip("uvwx", (-1.5, 0.0, 0.5, 1.5), strict=True))).to_numpy() + X["n"].to_numpy()
TARGETS = {
    "two": np.where(EFFECT + RNG.normal(size=N) > 0, "yes", "no"),
    "three": np.array(["low", "mid", "top"])[np.digitize(EFFECT + RNG.normal(size=N), [-0.7, 0.7])],
    "amounts": 5 + EFFECT + RNG.normal(size=N),
}
TIME = TimeSeriesSplit(3)
SPLITS = list(TIME.split(X))
WEIGHT = RNG.uniform(0.5, 2.0, N)
RIDGE = ADDITIVE | {"alpha": 1e-2}
SMALL = {"n_estimators": 12, "num_leaves": 5, "verbosity": -1, "n_jobs": 1}
HELD = np.arange(FIRST, N)


def encoder_of(name, task):
    return {
        "modl": MODLEncoder(output="mean" if task == "amounts" else "probability", cols=["a"]),
        "wide": WideEncoder(),
        "tiws": TIWSEncoder(),
        "poster": TIWSEncoder(method="poster"),
        "sklearn": CrossFit(make_column_transformer((TargetEncoder(), ["a"]), remainder="passthrough")),
    }[name]


def prior_of(name, y):
    """What a row is encoded as that nothing is known of, by the mean or the shares of the target."""
    numbers = y.dtype.kind == "f"
    rows = None if numbers else np.unique(y, return_counts=True)[1]
    if name == "wide":
        return np.zeros(1 if numbers or len(rows) == 2 else len(rows))
    if name == "modl":
        return np.array([y.mean()]) if numbers else (rows + 1) / (N + len(rows))
    if name == "tiws":  # the centre of the symbols' means: that of a symbol without any other column
        return TIWSEncoder().fit(X[["a"]], y).transform(pd.DataFrame({"a": ["never"]})).to_numpy()[0]
    means = np.array([y.mean()]) if numbers else rows / N
    return means[1:] if len(means) == 2 else means


def encoded(encoder, y, X=X, **options):
    """Encoded rows, and the sentences of the warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UserWarning)
        out = encoder.fit_transform(X, y, **options)
    return out, [str(one.message) for one in found if one.category is UserWarning]


NAMES = pytest.mark.parametrize("name", ["modl", "wide", "tiws", "poster", "sklearn"])
TASKS = pytest.mark.parametrize("task", TARGETS)


@TASKS
@NAMES
def test_rows_are_encoded_by_the_past_and_the_first_by_the_prior(name, task):
    y, encoder = TARGETS[task], encoder_of(name, task)
    out, said = encoded(encoder.set_params(cv=TIME), y)
    assert len(said) == 1
    assert said[0].startswith("cv holds 60 of 240 rows out in no fold; they are encoded by the prior")
    out = np.asarray(out)
    for train, test in SPLITS:
        assert train.max() < test.min()
        past = clone(encoder).set_params(cv=None).fit(X.iloc[train], y[train])
        np.testing.assert_allclose(out[test], np.asarray(past.transform(X.iloc[test])), rtol=1e-12)
    prior, first = prior_of(name, y), out[:FIRST]
    np.testing.assert_allclose(first[:, : len(prior)], np.tile(prior, (FIRST, 1)), rtol=1e-12)
    assert (first[:, : len(prior)] == first[:1, : len(prior)]).all()
    np.testing.assert_array_equal(first[:, -1], X["n"][:FIRST])


@TASKS
@NAMES
def test_no_target_of_its_own_is_in_a_row_that_no_fold_holds_out(name, task):
    y, encoder = TARGETS[task], encoder_of(name, task).set_params(cv=TIME)
    turned = y.copy()
    turned[:FIRST] = y[:FIRST][::-1]
    before, after = (np.asarray(encoded(encoder, target)[0])[:FIRST] for target in (y, turned))
    shown = before.shape[1] - 1
    assert len(np.unique(after[:, :shown], axis=0)) == 1
    if name != "tiws":
        np.testing.assert_allclose(after, before, rtol=1e-12)
    leaky = np.asarray(clone(encoder).set_params(cv=None).fit_transform(X, y))[:FIRST]
    assert len(np.unique(leaky[:, :shown], axis=0)) > 1


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@NAMES
def test_missing_values_and_weights_of_folds_over_time(name, frame):
    y, encoder = TARGETS["amounts"], encoder_of(name, "amounts").set_params(cv=TIME)
    categories = [None if row % 7 == 0 else category for row, category in enumerate(X["a"])]
    table = frame({"a": categories, "n": X["n"].tolist()})
    weights = {} if name == "sklearn" else {"sample_weight": WEIGHT}
    if name != "sklearn":
        encoder.set_params(handle_missing="return_nan")
    out, said = encoded(encoder, y, table, **weights)
    assert len(said) == 1
    assert type(out) is type(table) or name == "sklearn"
    values = np.asarray(out)[:, 0].astype(float)
    for train, test in SPLITS:
        own = {key: weight[train] for key, weight in weights.items()}
        past = clone(encoder).set_params(cv=None).fit(table[train.min() : train.max() + 1], y[train], **own)
        wanted = np.asarray(past.transform(table[test.min() : test.max() + 1]))[:, 0].astype(float)
        np.testing.assert_allclose(values[test], wanted, rtol=1e-12)
    known = values[:FIRST][np.arange(FIRST) % 7 > 0]
    assert len(np.unique(known)) == 1
    assert np.isnan(values[:FIRST][np.arange(FIRST) % 7 == 0]).all() or name == "sklearn"
    if name in ("modl", "poster"):  # of the rows with a symbol, too, for the one
        seen = np.ones(N, dtype=bool) if name == "modl" else np.arange(N) % 7 >= 0
        np.testing.assert_allclose(known[0], np.average(y[seen], weights=WEIGHT[seen]))


def test_any_encoder_over_time():
    y = TARGETS["two"]
    out, said = encoded(CrossFit(OtherTargetEncoder(), cv=TIME), (y == "yes").astype(int))
    np.testing.assert_allclose(out["a"][:FIRST], (y == "yes").mean())
    np.testing.assert_array_equal(out["n"], X["n"])
    assert sum("in no fold" in one for one in said) == 1
    scaled = make_column_transformer((TargetEncoder(), ["a"]), (StandardScaler(), ["n"]))
    out, _ = encoded(CrossFit(scaled, cv=TIME), y)
    assert len(out[:FIRST].drop_duplicates()) == 1  # what is no column of the table is a constant
    assert out.iloc[FIRST:, 1].nunique() == N - FIRST

    class Picky(TransformerMixin, BaseEstimator):
        def fit(self, X, y):
            if X.duplicated(keep=False).all():
                raise ValueError("all rows are alike")
            return self

        def transform(self, X):
            return X

    with pytest.raises(
        ValueError, match=r"cv holds row 0 out in no fold \(60 such rows\), and Picky has no prior.*alike"
    ):
        encoded(CrossFit(Picky(), cv=TIME), y)


def test_rows_of_no_fold_need_not_be_the_first():
    place = np.arange(N) % 4 - 1  # of every four rows the first is in no fold
    out, said = encoded(MODLEncoder(output="mean", cols=["a"], cv=PredefinedSplit(place)), TARGETS["amounts"])
    assert said[0].startswith("cv holds 60 of 240")
    np.testing.assert_allclose(out["a"][place < 0], TARGETS["amounts"].mean())
    for fold in range(3):
        past = MODLEncoder(output="mean", cols=["a"]).fit(X[place != fold], TARGETS["amounts"][place != fold])
        np.testing.assert_allclose(out["a"][place == fold], past.transform(X[place == fold])["a"])


@pytest.mark.parametrize("indicator", [False, True])
def test_rows_twice_over_time(indicator):
    y, encoder = (TARGETS["two"] == "yes").astype(int), TIWSEncoder(cv=TIME, indicator=indicator)
    once, _ = encoded(clone(encoder), y)
    with pytest.warns(UserWarning, match="cv holds 60 of 240 rows out in no fold"):
        rows, target, weight = encoder.augment(X, y)
    np.testing.assert_array_equal(rows[:N], once)
    first = rows["a"].to_numpy()[np.r_[:FIRST, N : N + FIRST]]
    assert len(np.unique(first)) == 1
    assert len(rows) == len(target) == len(weight) == 2 * N
    if indicator:
        assert (rows["a_unknown"].to_numpy()[np.r_[:FIRST, N : 2 * N]] == 1).all()
        assert (rows["a_unknown"].to_numpy()[FIRST:N] == 0).all()
    model = AugmentedModel(LogisticRegression(), encoder=clone(encoder))
    with pytest.warns(UserWarning, match="cv holds 60 of 240 rows out in no fold"):
        model.fit(X, y)
    assert model.score(X, y) > 0.7


# -- stacks ------------------------------------------------------------------------------------------------------


def margins_by_hand(wide, y, weight, splits=SPLITS):
    """Scores of the wide model of each fold's training rows, of the rows it holds out; NaN elsewhere."""
    found = None
    for train, test in splits:
        own = clone(wide).fit(X.iloc[train], y[train], sample_weight=None if weight is None else weight[train])
        scores = own.predict(X.iloc[test]) if y.dtype.kind == "f" else own.decision_function(X.iloc[test])
        found = np.full((N, *scores.shape[1:]), np.nan) if found is None else found
        found[test] = scores
    return found


def coded(frame, train):
    """The booster's columns: symbols by their rank in training, the most frequent first."""
    ranks = {category: rank for rank, category in enumerate(train["a"].value_counts().index)}
    return frame.assign(a=frame["a"].map(ranks))


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@TASKS
def test_a_booster_over_time_by_hand(task, weight):
    y, numbers = TARGETS[task], task == "amounts"
    wide = WideRegressor(loss="squared_error", **RIDGE) if numbers else WideClassifier(**RIDGE)
    booster = (LGBMRegressor if numbers else LGBMClassifier)(**SMALL)
    stack = (WideBoostRegressor if numbers else WideBoostClassifier)(
        wide, booster, mode="margin", cv=TIME, early_stopping=False
    )
    with pytest.warns(UserWarning, match=r"cv holds 60 of 240 rows out in no fold: they have no margin") as said:
        stack.fit(X, y, sample_weight=weight)
    assert sum("in no fold" in str(one.message) for one in said) == 1
    each = None if weight is None else weight / weight.mean()
    margins = margins_by_hand(wide, y, each)
    target = y if numbers else np.unique(y, return_inverse=True)[1]
    table = coded(X.iloc[HELD], X.iloc[HELD])
    own = None if each is None else each[HELD]
    trees = clone(booster).fit(table, target[HELD], init_score=margins[HELD], sample_weight=own)
    whole = clone(wide).fit(X, y, sample_weight=each)
    on = trees.predict(coded(X, X.iloc[HELD]), raw_score=True)
    if numbers:
        np.testing.assert_allclose(stack.predict(X), whole.predict(X) + on, rtol=1e-9)
    else:
        np.testing.assert_allclose(stack.decision_function(X), whole.decision_function(X) + on, atol=1e-9)


def test_evidence_over_time_by_hand(monkeypatch):
    monkeypatch.setattr("tabsym.stacking.selection.MIN_HELD_OUT_ROWS", N)
    y, wide = TARGETS["two"], WideClassifier(**RIDGE)
    booster = LGBMClassifier(**SMALL | {"n_estimators": 40})
    with pytest.warns(UserWarning, match="cv holds 60 of 240 rows out in no fold"):
        model = WideBoostClassifier(wide, booster, mode="margin", cv=TIME).fit(X, y)
    truth, margins = (y == "yes").astype(int), margins_by_hand(wide, y, None)
    chances, judged = np.full(N, np.nan), np.arange(2 * FIRST, N)  # the first fold has no margins to train on
    for train, test in SPLITS[1:]:
        known = train[train >= FIRST]
        trees = clone(booster).set_params(n_estimators=10)
        trees.fit(coded(X.iloc[known], X.iloc[known]), truth[known], init_score=margins[known])
        raw = margins[test] + trees.predict(coded(X.iloc[test], X.iloc[known]), raw_score=True)
        chances[test] = 1 / (1 + np.exp(-raw))
    table = model.evidence_.set_index("rounds")
    assert table["loss"][10] == pytest.approx(log_loss(truth[judged], chances[judged]), abs=1e-9)
    alone = 1 / (1 + np.exp(-margins[judged]))
    assert table["loss"][0] == pytest.approx(log_loss(truth[judged], alone), abs=1e-9)


def test_the_latest_folds_judge(monkeypatch):
    monkeypatch.setattr("tabsym.stacking.selection.MIN_HELD_OUT_ROWS", FIRST)
    y, wide = TARGETS["two"], WideClassifier(**RIDGE)
    with pytest.warns(UserWarning, match="in no fold"):
        model = WideBoostClassifier(wide, LGBMClassifier(**SMALL), mode="margin", cv=TIME).fit(X, y)
    table, last = model.evidence_.set_index("rounds"), SPLITS[-1][1]
    chances = 1 / (1 + np.exp(-margins_by_hand(wide, y, None)[last]))
    assert (table["folds"] == 1).all()
    assert table["loss"][0] == pytest.approx(log_loss(y[last] == "yes", chances), abs=1e-9)


@pytest.mark.parametrize("early_stopping", ["folds", 0.25, False])
@pytest.mark.parametrize(
    "booster",
    [
        LGBMClassifier(**SMALL),
        XGBClassifier(n_estimators=12, max_depth=2, n_jobs=1),
        CatBoostClassifier(iterations=12, depth=2, verbose=0, thread_count=1, allow_writing_files=False),
    ],
    ids=["lightgbm", "xgboost", "catboost"],
)
def test_boosters_over_time(booster, early_stopping):
    y = TARGETS["three"]
    stack = WideBoostClassifier(
        WideClassifier(**RIDGE), booster, mode="margin", cv=TIME, early_stopping=early_stopping, random_state=0
    )
    with pytest.warns(UserWarning, match=r"cv holds \d+ of \d+ rows out in no fold"):
        stack.fit(X, y)
    assert stack.score(X, y) > 0.6
    np.testing.assert_allclose(stack.predict_proba(X).sum(axis=1), 1)


def test_a_table_of_its_own_judges_over_time():
    y, wide, new = TARGETS["two"], WideClassifier(**RIDGE), slice(180, N)
    booster = LGBMClassifier(**SMALL)
    with pytest.warns(UserWarning, match="cv holds 45 of 180 rows out in no fold"):
        stack = WideBoostClassifier(wide, booster, mode="margin", cv=TIME)
        stack.fit(X[:180], y[:180], eval_set=(X[new], y[new]))
    splits, known = list(TIME.split(X[:180])), np.arange(45, 180)
    margins = margins_by_hand(wide, y, None, splits)[known]
    truth = (y == "yes").astype(int)
    table = coded(X.iloc[known], X.iloc[known])
    trees = clone(booster).fit(table, truth[known], init_score=margins)
    start = clone(wide).fit(X[:180], y[:180]).decision_function(X[new])
    raw = start + trees.predict(coded(X[new], X.iloc[known]), raw_score=True)
    wanted = log_loss(truth[new], 1 / (1 + np.exp(-raw)))
    assert stack.evidence_.set_index("rounds")["loss"][12] == pytest.approx(wanted, abs=1e-9)


def test_a_booster_without_margins_is_trained_on_all_rows(monkeypatch):
    sizes = []

    class Counted(LGBMClassifier):
        def fit(self, X, y, **options):
            sizes.append((len(X), "init_score" in options and options["init_score"] is not None))
            return super().fit(X, y, **options)

    with pytest.warns(UserWarning, match="in no fold"):
        WideBoostClassifier(WideClassifier(**RIDGE), Counted(**SMALL), cv=TIME).fit(X, TARGETS["two"])
    assert {size for size, on_margin in sizes if on_margin} <= {60, 120, 180}
    assert {size for size, on_margin in sizes if not on_margin} <= {120, 180, 240}
    assert sizes
