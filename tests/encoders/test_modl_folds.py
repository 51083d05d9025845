"""MODLEncoder's cross-fitting: each row encoded by the other folds."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, KFold, RepeatedKFold

from tabsym import CrossFit, MODLEncoder
from tests.modl_data import TARGETS, N, X, Y

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("output", ["probability", "logodds", "mean"])
def test_random_keys_do_not_predict(output):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    for n_keys, more in ((2000, {"x": rng.normal(size=2000)}), (100, {})):
        keys = pd.DataFrame({"key": rng.integers(0, n_keys, 2000).astype(str), **more})
        for cv in (3, None):  # the criterion does not fit noise, so that even cv=None says nothing here
            out = MODLEncoder(output=output, cv=cv).fit_transform(keys, y)
            for name in out:
                assert abs(roc_auc_score(y, out[name]) - 0.5) < 0.06, (name, n_keys, cv)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("output", ["probability", "logodds", "mean"])
def test_each_row_is_encoded_by_the_other_folds(output, target):
    rng = np.random.default_rng(0)
    y, folds = TARGETS[target], list(KFold(3).split(X))
    if (output, target) in (("mean", "classes"), ("logodds", "amounts")):
        with pytest.raises(ValueError, match=f"output='{output}' needs .*; use "):
            MODLEncoder(output=output, cv=folds).fit_transform(X, y)
        return
    weight = rng.integers(0, 3, N).astype(float)
    encoder = MODLEncoder(output=output, cv=folds)
    out = encoder.fit_transform(X, y, sample_weight=weight)
    for train, test in folds:
        by_hand = (output, target) == ("probability", "amounts")
        apart = MODLEncoder(output="group" if by_hand else output, cv=None)
        apart.fit(X.iloc[train], y[train], sample_weight=weight[train])
        if not by_hand:
            pd.testing.assert_frame_equal(out.iloc[test], apart.transform(X.iloc[test]))
            continue
        for name, state in encoder.partitions_.items():  # the target's intervals are those of all rows
            of_train, of_test = (apart.transform(X.iloc[rows])[name].cat.codes.to_numpy() for rows in (train, test))
            cell = np.searchsorted(state.target.bounds, y[train], side="left")
            counts = np.zeros((of_train.max() + 1, len(state.target.names)))
            np.add.at(counts, (of_train, cell), weight[train])
            shares = (counts + 1) / (counts.sum(axis=1, keepdims=True) + counts.shape[1])
            np.testing.assert_allclose(out.iloc[test].filter(regex=f"^{name}_"), shares[of_test])
    again = clone(encoder).set_params(cv=None)
    pd.testing.assert_frame_equal(again.fit_transform(X, y), again.transform(X))


@pytest.mark.parametrize("limits", [{"max_parts": 3}, {"max_parts": 4, "min_part_count": 9}])
def test_each_row_is_encoded_by_intervals_as_good_as_those_of_a_fit(limits):
    """A fold needs no proof, but all that is searched under a limit."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.random(600)})
    y = rng.random(600) < np.where(np.searchsorted([0.2, 0.35, 0.5, 0.7, 0.85], X["x"]) % 2, 0.85, 0.15)
    folds = list(KFold(3).split(X))
    out = MODLEncoder(output="probability", cv=folds, **limits).fit_transform(X, y)
    for train, test in folds:
        apart = MODLEncoder(output="probability", **limits).fit(X.iloc[train], y[train])
        assert apart.partitions_["x"].partition.n_parts == limits["max_parts"]
        pd.testing.assert_frame_equal(out.iloc[test], apart.transform(X.iloc[test]))


def test_crossfit_outside_is_cross_fitting_inside():
    folds = list(KFold(4).split(X))
    inside = MODLEncoder(output="probability", cv=folds).fit_transform(X, Y)
    outside = CrossFit(MODLEncoder(output="probability", cv=None), cv=folds).fit_transform(X, Y)
    pd.testing.assert_frame_equal(inside, outside)
    groups = CrossFit(MODLEncoder(), cv=folds).fit_transform(X, Y)
    assert isinstance(groups["x"].dtype, pd.CategoricalDtype)


def test_a_class_that_a_fold_has_not_is_rare_there():
    y = np.where(np.arange(N) == 7, 2, Y)
    for output in ("probability", "logodds"):
        with pytest.warns(UserWarning, match="least populated class"):
            out = MODLEncoder(output=output).fit_transform(X, y)
        assert list(out) == ["x_0", "x_1", "x_2", "g_0", "g_1", "g_2"]
        assert out.notna().all(axis=None)
        if output == "probability":
            np.testing.assert_allclose(out[["x_0", "x_1", "x_2"]].sum(axis=1), 1)
            assert out["x_2"].between(1e-4, 0.05).all()


def test_folds_that_share_rows_or_hold_one_class():
    with pytest.raises(ValueError, match="cv holds row 0 out 2 times"):
        MODLEncoder(output="mean", cv=RepeatedKFold(n_splits=3, n_repeats=2)).fit_transform(X, Y)
    first = np.flatnonzero(Y == 0), np.flatnonzero(Y == 1)
    out = MODLEncoder(output="mean", cv=[first, first[::-1]]).fit_transform(X, Y)
    np.testing.assert_array_equal(out["x"], 1 - Y)  # all that a fold of one class knows
    with pytest.raises(ValueError, match=r"number of splits n_splits=5 greater than .*set cv=5 to fewer"):
        MODLEncoder(output="mean").fit_transform(X[:4], [0, 1, 0, 1])


def test_means_of_folds_whose_target_is_constant():
    X = pd.DataFrame({"a": list("xyzw") * 10})
    y = np.where(np.arange(40) == 3, 7.0, 3.0)
    encoder = MODLEncoder(output="mean", target_type="continuous")
    for target in (y, np.full(40, 3.0)):
        encoded = encoder.fit_transform(X, target)["a"]
        assert encoded.between(3.0, 4.0).all()
        assert encoded.iloc[3] == 3.0  # by parts learned without it


@pytest.mark.parametrize("output", ["mean", "probability"])
def test_categories_that_a_fold_lacks_have_the_group_of_their_donors(output):
    """With handle_unknown="similar", as refits of the other folds encode new rows."""
    rng = np.random.default_rng(0)
    car = rng.integers(0, 40, 2000)
    y = np.where(car % 2 == 0, 10.0, 20.0) + rng.normal(size=2000)
    X = pd.DataFrame({"model": [f"m{one}" for one in car], "kind": np.where(car % 2 == 0, "car", "van")})
    options = {"cols": ["model"], "target_type": "classes" if output == "probability" else "continuous"}
    target = (y > 15).astype(int) if output == "probability" else y
    weight = rng.integers(0, 3, 2000).astype(float)
    encoder = MODLEncoder(output=output, handle_unknown="similar", cv=GroupKFold(4), **options)
    for each in (None, weight):
        found = encoder.fit_transform(X, target, groups=car, sample_weight=each).drop(columns="kind").to_numpy()
        for train, test in GroupKFold(4).split(X, target, car):
            refit = clone(encoder).set_params(cv=None)
            refit.fit(X.iloc[train], target[train], None if each is None else each[train])
            np.testing.assert_allclose(found[test], refit.transform(X.iloc[test]).drop(columns="kind").to_numpy())
    if output == "mean":
        assert np.sqrt(np.mean((found[:, 0] - y) ** 2)) < 1.1


@pytest.mark.parametrize("seed", [0, 1])
def test_parts_of_folds_are_those_of_refits(seed):
    """Also with proofs: folds were searched without, now and then for dearer parts than a fit on the same rows."""
    rng = np.random.default_rng(seed)
    for _ in range(15):
        n = int(rng.integers(100, 400))
        x, cuts = rng.normal(size=n), np.sort(rng.normal(size=4))
        y = (rng.random(n) < rng.uniform(0.1, 0.9, 5)[np.searchsorted(cuts, x)]).astype(int)
        X, cv = pd.DataFrame({"x": x}), KFold(3, shuffle=True, random_state=0)
        encoder = MODLEncoder(output="probability", criterion="khiops", prove=True, cv=cv)
        found = encoder.fit_transform(X, y).to_numpy()
        for train, test in cv.split(X):
            refit = clone(encoder).set_params(cv=None).fit(X.iloc[train], y[train])
            np.testing.assert_allclose(found[test], refit.transform(X.iloc[test]).to_numpy())
