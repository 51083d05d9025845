"""Folds of cross-fitting: rows of one group never share a fold, and what cannot work is said in a sentence."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, StratifiedGroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder

from tabsym import CrossFit, MODLEncoder, TIWSEncoder, WideEncoder
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
