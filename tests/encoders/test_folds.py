"""Folds of cross-fitting: rows of one group never share a fold, and what cannot work is said in a sentence."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    PredefinedSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder

from tabsym import CrossFit, MODLEncoder, TIWSEncoder, WideBoostClassifier, WideClassifier, WideEncoder
from tabsym.encoders.folds import check_rows_once

RNG = np.random.default_rng(0)
N = 300
GROUPS = RNG.integers(0, 30, N)
COLUMNS = {"city": RNG.choice(list("uvw"), N).tolist(), "n": RNG.normal(size=N).tolist()}
Y = ((np.array(COLUMNS["city"]) == "u") ^ (RNG.random(N) < 0.2)).astype(int)
ENCODERS = [
    MODLEncoder(output="probability"),
    WideEncoder(),
    TIWSEncoder(),
    CrossFit(TargetEncoder(target_type="binary")),
]
FRAMES = pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
EACH = pytest.mark.parametrize("encoder", ENCODERS, ids=lambda e: type(e).__name__)


class Watched(GroupKFold):
    """GroupKFold that remembers its folds."""

    seen: list

    def split(self, X, y=None, groups=None):
        Watched.seen = list(super().split(X, y, groups))
        return iter(Watched.seen)


def fitted_with(encoder, cv):
    return clone(encoder).set_params(cv=cv)


@FRAMES
@EACH
def test_rows_of_a_group_never_share_a_fold(encoder, frame):
    X = frame({"city": COLUMNS["city"]})
    splits = list(GroupKFold(4).split(X, Y, GROUPS))
    expected = fitted_with(encoder, splits).fit_transform(X, Y)
    for groups in (GROUPS, GROUPS.tolist(), pd.Series([f"g{group:02}" for group in GROUPS]), pl.Series(GROUPS)):
        out = fitted_with(encoder, Watched(4)).fit_transform(X, Y, groups=groups)
        assert type(out) is type(expected)
        np.testing.assert_array_equal(np.asarray(out), np.asarray(expected))
        assert len(Watched.seen) == 4
        for train, test in Watched.seen:
            assert not set(GROUPS[train]) & set(GROUPS[test])


@FRAMES
@EACH
def test_groups_are_routed_through_a_pipeline(encoder, frame):
    X = frame({"city": COLUMNS["city"]})
    expected = np.asarray(fitted_with(encoder, GroupKFold(4)).fit_transform(X, Y, groups=GROUPS))
    with sklearn.config_context(enable_metadata_routing=True):
        inside = fitted_with(encoder, Watched(4)).set_fit_request(groups=True)
        pipeline = make_pipeline(inside, LogisticRegression()).fit(X, Y, groups=GROUPS)
        assert all(not set(GROUPS[train]) & set(GROUPS[test]) for train, test in Watched.seen)
        alone = LogisticRegression().fit(expected, Y)
        np.testing.assert_allclose(pipeline[-1].coef_, alone.coef_)
        scores = cross_validate(pipeline, X, Y, cv=GroupKFold(3), params={"groups": GROUPS}, error_score="raise")
        assert scores["test_score"].mean() > 0.6


@EACH
def test_groups_that_are_missing_or_lost(encoder):
    X = pd.DataFrame(COLUMNS)[["city"]]
    for cv in (GroupKFold(4), StratifiedGroupKFold(4), LeaveOneGroupOut()):
        with pytest.raises(ValueError, match=r"needs the group of each row; .*groups=.*set_fit_request\(groups=True\)"):
            fitted_with(encoder, cv).fit_transform(X, Y)
    for cv in (5, None):
        with pytest.raises(ValueError, match=f"cv={cv} would not keep groups together; pass a splitter such as"):
            fitted_with(encoder, cv).fit_transform(X, Y, groups=GROUPS)
    for groups, words in (
        (GROUPS[:9], "300 rows and groups 9 values; pass one group for each row"),
        (3, r"groups=3 is no list of labels; pass one a row, such as X\['shop'\]"),
        (np.c_[GROUPS, GROUPS], r"groups=array\(.*is no list of labels; pass one a row"),
        (np.r_[GROUPS[:2], np.nan, GROUPS[3:]], "The group of row 2 is missing; give every row one"),
    ):
        with pytest.raises(ValueError, match=words):
            fitted_with(encoder, GroupKFold(4)).fit_transform(X, Y, groups=groups)


def test_an_encoding_without_the_target_needs_no_groups():
    """So that a search over `output` can send them always."""
    X = pd.DataFrame(COLUMNS)
    for groups in (None, GROUPS):
        out = MODLEncoder(cv=GroupKFold(4)).fit_transform(X, Y, groups=groups)
        pd.testing.assert_frame_equal(out, MODLEncoder().fit_transform(X, Y))


def test_the_first_row_that_leaks_is_named():
    rows = np.arange(6)
    with pytest.raises(ValueError, match="Fold 0 of cv both trains on row 2 and encodes it, which leaks"):
        check_rows_once([(np.array([5, 4, 2]), np.array([3, 2, 5]))], 6)
    assert len(check_rows_once([(rows[:3], rows[3:]), (rows[3:], rows[:3]), (rows, rows[:0])], 6)) == 2


@EACH
def test_features_made_twice_are_the_same_by_default(encoder):
    X = pd.DataFrame(COLUMNS)[["city"]]

    def made(**options):
        return np.asarray(clone(encoder).set_params(**options).fit_transform(X, Y))

    np.testing.assert_array_equal(made(), made())
    assert not np.array_equal(made(random_state=None), made(random_state=None))


@FRAMES
@pytest.mark.parametrize("encoder", ENCODERS[:2], ids=lambda e: type(e).__name__)
def test_a_symbol_that_the_other_folds_lack_is_not_unknown(encoder, frame):
    """It was seen in fit: handle_unknown='error' made fit_transform fail on every table with a rare symbol."""
    X = frame({"city": ["rare", *COLUMNS["city"][1:]]})
    strict = clone(encoder).set_params(handle_unknown="error")
    np.testing.assert_array_equal(
        np.asarray(strict.fit_transform(X, Y)), np.asarray(clone(encoder).fit_transform(X, Y))
    )
    with pytest.raises(ValueError, match=r"Column 'city' holds 'never' .* which is not in the training data"):
        strict.transform(frame({"city": ["never"]}))


@FRAMES
@pytest.mark.parametrize("encoder", ENCODERS[:3], ids=lambda e: type(e).__name__)
def test_error_refuses_categories_of_rows_of_weight_zero_alone(encoder, frame):
    X = frame({"city": ["u", "v"] * 20 + ["w"], "n": np.arange(41.0)})
    y, weight = np.r_[np.tile([0, 1, 1, 0], 10), 1], np.r_[np.ones(40), 0.0]
    strict = clone(encoder).set_params(handle_unknown="error", target_type="classes")
    for crossfit in (strict, CrossFit(strict)):
        with pytest.raises(ValueError, match="Column 'city' holds 'w' \\(row 40\\), which is not in the training data"):
            crossfit.fit_transform(X, y, sample_weight=weight)
        some = crossfit.fit_transform(X[:40], y[:40], sample_weight=np.r_[0.0, np.ones(39)])
        assert len(some) == 40  # a row of weight 0 whose category others have is encoded


def used_up():
    splits = iter([(np.arange(150), np.arange(150, N))])
    list(splits)
    return splits


class SplitsNothing:
    def split(self, X, y=None, groups=None):
        raise ValueError("nothing to split")


ALLOWED = (
    r"use a whole number of folds of at least 2, a splitter such as GroupKFold\(5\) ?(,|or) "
    r"a list of pairs \(training rows, held-out rows\)"
)
REFUSED = {
    **{f"{cv!r}": (cv, rf"^cv={re.escape(repr(cv))} is not possible; {ALLOWED}") for cv in (0, 1, -3, True, False)},
    **{f"{cv!r}": (cv, rf"^cv={re.escape(repr(cv))} is not possible; {ALLOWED}") for cv in (2.5, 5.0, "5", {})},
    "array": (np.array(5), rf"^cv=array\(5\) is not possible; {ALLOWED}"),
    "class": (GroupKFold, rf"^cv=<class .*GroupKFold'> is not possible; {ALLOWED}"),
    "empty": ([], "^cv makes no fold: it is empty, or an iterator that was used up before; give a splitter, or"),
    "used up": (used_up(), "^cv makes no fold: it is empty, or an iterator that was used up before; give a splitter"),
    "numbers": ([1, 2], r"^Fold 0 of cv is 1, which is no pair \(training rows, held-out rows\); give both as row"),
    "text": (["ab"], r"^Fold 0 of cv is 'ab', which is no pair"),
    "pair of numbers": ([(1, 2)], r"^Fold 0 of cv is \(1, 2\), which is no pair"),
    "three": ([([0], [1], [2])], r"^Fold 0 of cv is \(\[0\], \[1\], \[2\]\), which is no pair"),
    "fractions": ([([0, 1], [2.5])], "^Fold 0 of cv holds 2.5, which is no row number; give positions from 0 on"),
    "short masks": ([([True, False], [False, True])], "^Fold 0 of cv has a mask of 2 rows and the table has 300; make"),
    "other rows": (PredefinedSplit([0, 1]), "^cv is a PredefinedSplit of 2 rows and the table has 300; give it the"),
    "own": (SplitsNothing(), "^cv=<.*SplitsNothing object.* does not split 300 rows: nothing to split$"),
    "too many": (StratifiedKFold(301), r"^cv=StratifiedKFold\(n_splits=301.*\) does not split 300 rows: "),
}
STACK = WideBoostClassifier(WideClassifier(interactions=None), HistGradientBoostingClassifier(max_iter=2))


@pytest.mark.parametrize("encoder", [*ENCODERS, STACK], ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("case", REFUSED)
def test_other_values_of_cv_are_refused_in_a_sentence(encoder, case):
    cv, words = REFUSED[case]
    estimator = clone(encoder)
    estimator.cv = cv
    with pytest.raises(ValueError, match=words):
        (estimator.fit if encoder is STACK else estimator.fit_transform)(pd.DataFrame(COLUMNS), Y)


@EACH
@pytest.mark.parametrize("cv", [0, True, 2.5, "5", GroupKFold], ids=repr)
def test_fit_refuses_them_as_fit_transform_does(encoder, cv):
    with pytest.raises(ValueError, match=r"^cv=.* is not possible; use a whole number of folds of at least 2, .* None"):
        fitted_with(encoder, cv).fit(pd.DataFrame(COLUMNS)[["city"]], Y)


@EACH
def test_splits_are_row_numbers_or_masks_in_any_container(encoder):
    X, half = pd.DataFrame(COLUMNS)[["city"]], np.arange(N) < N // 2
    masks, numbers = [(half, ~half), (~half, half)], [np.flatnonzero(half), np.flatnonzero(~half)]
    expected = np.asarray(fitted_with(encoder, masks).fit_transform(X, Y))
    for cv in (
        (numbers, numbers[::-1]),
        [[rows.tolist() for rows in numbers], [rows.tolist() for rows in numbers[::-1]]],
        [(pd.Series(one), pd.Series(other)) for one, other in masks],
        PredefinedSplit(np.where(half, 0, 1)),
        KFold(2),
    ):
        np.testing.assert_array_equal(np.asarray(fitted_with(encoder, cv).fit_transform(X, Y)), expected)
