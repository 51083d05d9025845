"""WideEncoder: what it returns, that it does not leak, and its options."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, RepeatedKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from tabsym import WideClassifier, WideEncoder, WideRegressor, WideSGDClassifier, WideSGDRegressor

RNG = np.random.default_rng(0)
N = 800
X = pd.DataFrame({"a": RNG.choice(list("uvw"), N), "n": RNG.normal(size=N), "b": RNG.choice(["p", "q", None], N)})
SCORE = X["a"].map({"u": 2.0, "v": -2.0, "w": 0.0}) + X["n"]
Y = (SCORE + RNG.logistic(size=N) > 0).astype(int)


def test_the_default_model_has_one_term_a_column():
    amounts = np.exp(SCORE)  # which a log link would say better
    for y, kind in ((Y, WideClassifier), (amounts, WideRegressor)):
        model = WideEncoder(random_state=0).fit(X, y).model_
        assert type(model) is kind
        assert set(model.coefs_) == {"a", "b", "n", "(intercept)"}
    assert model.loss_ == "squared_error"


def test_transform_gives_the_parameters_in_place():
    encoder = WideEncoder(random_state=0).fit(X, Y)
    out = encoder.transform(X)
    assert list(out.columns) == ["a", "n", "b"]
    params = encoder.model_.coefs_
    plain = params["a"]["value"].loc[X["a"]].to_numpy()
    np.testing.assert_allclose(out["a"], plain - plain.mean(), atol=1e-12)
    np.testing.assert_array_equal(out["n"], X["n"])
    missing = X["b"].isna()
    values = params["b"]["value"].to_numpy()[params["b"].index.get_indexer(X["b"].where(~missing, None))]
    np.testing.assert_allclose(out["b"], values - values.mean(), atol=1e-12)
    assert encoder.transform(pd.DataFrame({"a": ["never"], "n": [0.0], "b": ["p"]}))["a"].tolist() == [0.0]


def test_each_row_is_encoded_by_a_model_that_has_not_seen_it():
    encoder = WideEncoder(cv=GroupKFold(4), random_state=0)
    folds = list(GroupKFold(4).split(X, Y, np.arange(N) % 4))
    encoder.set_params(cv=folds)
    out = encoder.fit_transform(X, Y)
    for train, test in folds:
        apart = WideEncoder(random_state=0).fit(X.iloc[train], Y[train]).transform(X.iloc[test])
        np.testing.assert_array_equal(out.iloc[test], apart)
    leaky = encoder.set_params(cv=None).fit_transform(X, Y)
    pd.testing.assert_frame_equal(leaky, encoder.transform(X))


def test_folds_that_share_rows_and_columns_by_position():
    with pytest.raises(ValueError, match="cv holds row 0 out 2 times"):
        WideEncoder(cv=RepeatedKFold(n_splits=3, n_repeats=2), random_state=0).fit_transform(X, Y)
    array = X[["a", "b"]].fillna("none").to_numpy()
    out = WideEncoder(cols=[1], random_state=0).fit_transform(array, Y)
    assert out["x0"].tolist() == array[:, 0].tolist()
    assert out["x1"].dtype == float


def test_random_keys_do_not_predict():
    """Pure noise: a column of keys must not help, though each key's own rows are in training."""
    keys = pd.DataFrame({"key": RNG.integers(0, 300, 2000).astype(str)})
    y = RNG.integers(0, 2, 2000)
    for make, most in (
        (lambda: WideEncoder(random_state=0), 0.56),
        (lambda: WideEncoder(cv=None, random_state=0), 1.0),
    ):
        encoded = make().fit_transform(keys, y)
        auc = cross_val_score(LogisticRegression(), encoded, y, scoring="roc_auc", cv=5).mean()
        assert auc < most
        leaks = auc > 0.7
        assert leaks == (most == 1.0)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_several_classes_give_a_column_each_in_any_frame(kind):
    y = np.array(["low", "mid", "high"])[np.digitize(SCORE, [-1, 1])]
    frame = kind({"a": X["a"].tolist(), "n": X["n"].tolist()})
    out = WideEncoder(random_state=0).fit_transform(frame, y)
    assert isinstance(out, kind)
    assert list(out.columns) == ["a_high", "a_low", "a_mid", "n"]


def test_classes_that_a_fold_lacks_are_0_and_those_it_has_on_the_scale_of_all():
    """Of two classes left of three, the one coefficient is the difference of two: such a fold was all 0."""
    y = np.where(SCORE > 0.3, "low", "high").astype(object)
    y[0] = "mid"
    frame, folds = X[["a", "n"]].copy(), list(KFold(4).split(X))
    frame.loc[1, "a"] = "never"  # in the fold's training rows
    out = WideEncoder(cv=folds, handle_unknown="return_nan").fit_transform(frame, y)
    train, test = folds[0]
    apart = WideEncoder(handle_unknown="return_nan").fit(frame.iloc[train], y[train]).transform(frame.iloc[test])["a"]
    assert np.flatnonzero(apart.isna()).tolist() == [1]
    np.testing.assert_allclose(out["a_low"].iloc[test], apart / 2)
    np.testing.assert_allclose(out["a_high"].iloc[test], -apart / 2)
    np.testing.assert_array_equal(out["a_mid"].iloc[test], 0 * apart)
    spreads = [out.iloc[rows].groupby(frame["a"])["a_low"].mean().std() for _, rows in folds]
    assert max(spreads) < 1.3 * min(spreads)


def test_a_class_of_weight_0_counts_as_absent_in_every_fold():
    y = np.array(["low", "mid", "high"])[np.digitize(SCORE, [-1, 1])]
    folds, weight = list(KFold(4).split(X)), np.where(y == "high", 0.0, 1.0)
    out = WideEncoder(cv=folds).fit_transform(X[["a"]], y, sample_weight=weight)
    seen = np.where(weight == 0, "low", y)
    pd.testing.assert_frame_equal(out, WideEncoder(cv=folds).fit_transform(X[["a"]], seen, sample_weight=weight))


def test_a_fold_that_trains_on_one_class_is_told_of():
    halves = [np.flatnonzero(Y == 0), np.flatnonzero(Y == 1)]
    for weight, y in ((None, Y), (np.where(X["n"] > 2, 0, 1), np.where(X["n"] > 2, 1 - Y, Y))):
        with pytest.raises(ValueError, match=r"rows of a fold of cv hold one class only \(0\).*use fewer folds"):
            WideEncoder(cv=[halves, halves[::-1]]).fit_transform(X, y, sample_weight=weight)


def test_regression_weights_and_the_users_own_model():
    weight = np.where(X["a"] == "u", 0.0, 1.0)
    model = WideSGDRegressor(max_iter=30, random_state=0)
    encoder = WideEncoder(model=model, random_state=0).fit(X, SCORE, sample_weight=weight)
    assert not hasattr(model, "model_")
    assert encoder.transform(X)["a"][X["a"] == "u"].eq(0).all()  # rows of weight 0 count as absent
    with pytest.raises(ValueError, match="model has a formula"):
        WideEncoder(model=WideSGDClassifier("w[a]")).fit(X, Y)
    with pytest.raises(ValueError, match="handle_unknown='error', and the encoder treats unknown categories itself"):
        WideEncoder(model=WideSGDClassifier(handle_unknown="error")).fit(X, Y)
    for given in (["a"], "all", None, np.array([True, False, False])):
        with pytest.raises(ValueError, match=r"model has categorical_features=.*; leave it out there, .* cols"):
            WideEncoder(model=WideRegressor(categorical_features=given)).fit(X, SCORE)
    with pytest.raises(ValueError, match="requires y to be passed"):
        WideEncoder().fit(X)


def test_words_for_missing_and_unknown():
    encoder = WideEncoder(handle_missing="return_nan", handle_unknown="return_nan", random_state=0).fit(X, Y)
    out = encoder.transform(pd.DataFrame({"a": ["u", "never"], "n": [0.0, 0.0], "b": [None, "p"]}))
    assert np.isnan(out.loc[1, "a"])
    assert np.isnan(out.loc[0, "b"])
    assert out.notna().sum().sum() == 4
    with pytest.raises(ValueError, match="handle_unknown='zero' is not known"):
        WideEncoder(handle_unknown="zero").fit(X, Y)
    with pytest.raises(ValueError, match="Column 'a' holds 'never'"):
        WideEncoder(handle_unknown="error").fit(X, Y).transform(X.head(1).assign(a="never"))


@pytest.mark.slow
def test_in_a_pipeline_with_groups_of_columns():
    pipeline = make_pipeline(WideEncoder(cols=["a"], random_state=0), HistGradientBoostingClassifier(max_iter=20))
    assert cross_val_score(pipeline, X[["a", "n"]], Y, scoring="roc_auc").mean() > 0.8
    assert WideEncoder(cols=["a"]).fit(X, Y).get_feature_names_out().tolist() == ["a", "n", "b"]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_numeric_columns_are_covariates_or_stay_out_of_the_model(kind):
    """The effect of a symbol with the numbers held fixed; or without them, as if they were not in the table."""
    n = np.where(X["a"] == "u", 1.0, -1.0) + 0.1 * X["n"]  # says nearly all that the symbol says
    frame = kind({"a": X["a"].tolist(), "n": n.tolist(), "flag": (n > 0).tolist()})
    alone = kind({"a": X["a"].tolist()})
    y = 3 * n.to_numpy()
    fixed = WideEncoder().fit(frame, y)
    free = WideEncoder(numeric="passthrough").fit(frame, y)
    assert set(fixed.model_.coefs_) > {"a", "n", "flag"}
    assert "n" not in free.model_.coefs_
    spread = {one: np.ptp(np.asarray(one.transform(frame))[:, 0].astype(float)) for one in (fixed, free)}
    assert spread[fixed] < 1
    assert spread[free] > 5
    for encode in (lambda e, t: e.fit(t, y).transform(t), lambda e, t: e.fit_transform(t, y)):
        out = encode(WideEncoder(numeric="passthrough"), frame)
        np.testing.assert_array_equal(out["a"], encode(WideEncoder(), alone)["a"])
        assert out["n"].to_list() == n.to_list()
        assert out["flag"].dtype == frame["flag"].dtype


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_infinite_values_outside_the_model_come_out_as_they_went_in(kind):
    numbers = np.r_[np.inf, -np.inf, X["n"][2:]].tolist()
    frame = kind({"a": X["a"].tolist(), "n": numbers})
    for out in (
        WideEncoder(numeric="passthrough", cols="a").fit_transform(frame, Y),
        WideEncoder(numeric="passthrough").fit(frame, Y).transform(frame),
    ):
        assert out["n"].to_list() == numbers
    with pytest.raises(ValueError, match="Column 'n' contains infinity; replace"):
        WideEncoder().fit(frame, Y)
    with pytest.raises(ValueError, match="numeric='drop' is not known; use 'covariate' or 'passthrough'"):
        WideEncoder(numeric="drop").fit(frame, Y)


def test_a_model_of_no_columns_is_none():
    encoder = WideEncoder(numeric="passthrough")
    pd.testing.assert_frame_equal(encoder.fit_transform(X[["n"]], Y), X[["n"]])
    assert encoder.model_ is None
    with pytest.raises(ValueError, match="requires y to be passed"):
        encoder.fit(X[["n"]])


@pytest.mark.parametrize("model", [None, WideRegressor()], ids=["default", "loss by fold"])
def test_rows_out_of_fold_and_new_rows_lie_on_one_level(model):
    """A constant can lie in any column of a sum: the levels of folds were up to two standard deviations apart.

    And where a model chooses its loss, here the squared error or one with a log link, the folds take that of all rows.
    """
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 12, 1500)
    frame = pd.DataFrame({"kind": kind.astype(str), "make": (kind // 3 + 10 * (rng.random(1500) < 0.02)).astype(str)})
    y = 100 + 5 * rng.normal(size=12)[kind] + rng.normal(size=1500)
    encoder = WideEncoder(model=model, target_type="continuous", random_state=0)
    apart = encoder.fit_transform(frame, y) - encoder.transform(frame)
    assert (apart.mean().abs() < 0.02 * encoder.transform(frame).std()).all()
    assert encoder.transform(frame).mean().abs().max() < 1e-9
