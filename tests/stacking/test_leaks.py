"""Nothing that a training row is encoded by comes from its own fold: its fold's targets can be anything."""

from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from category_encoders import CatBoostEncoder
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit
from sklearn.preprocessing import TargetEncoder

from tabsym import (
    CrossFit,
    MODLEncoder,
    TIWSEncoder,
    WideClassifier,
    WideEncoder,
    WideRegressor,
    WideSGDClassifier,
    WideSGDRegressor,
)
from tabsym.stacking.selection import Learner, NestedCV, OutOfFoldMargins
from tests.options import ADDITIVE

N, CATEGORIES = 180, 45
RNG = np.random.default_rng(0)
OF = RNG.integers(0, CATEGORIES, N)
SIDE = RNG.normal(size=CATEGORIES)
X = pd.DataFrame(
    {
        "g": [f"s{i}" for i in OF],
        "h": np.array(list("abcde"))[RNG.integers(0, 5, CATEGORIES)][OF],
        "z": SIDE[OF],
        "n": RNG.normal(size=N),
        "key": [f"row {i}" for i in range(N)],
    }
)
SCORE = 2.0 * (X["h"] == "a") + SIDE[OF] + 0.5 * RNG.normal(size=N)
TARGETS = {
    "amounts": SCORE.to_numpy(),
    "two classes": (np.median(SCORE) < SCORE).to_numpy().astype(int),
    "three classes": np.digitize(SCORE, np.quantile(SCORE, [0.4, 0.7])),
}
SPLITTERS = {
    "rows": KFold(4),
    "groups": GroupKFold(4),
    "predefined": PredefinedSplit(RNG.integers(0, 3, N)),
    "blocks": [(np.setdiff1d(np.arange(N), np.arange(a, b)), np.arange(a, b)) for a, b in pairwise([0, 30, 110, N])],
}
SMOOTH = ADDITIVE | {"numeric": "smooth"}


def solved(task, **options):
    return WideRegressor(loss="squared_error", **options) if task == "amounts" else WideClassifier(**options)


def online(task, **options):
    return (WideSGDRegressor if task == "amounts" else WideSGDClassifier)(max_iter=3, random_state=0, **options)


ENCODERS = {
    "tiws": lambda task: TIWSEncoder(),
    "tiws of some columns, passed numbers": lambda task: TIWSEncoder(cols=["g", "h"], numeric="passthrough"),
    "tiws in quantiles, names, rows alone": lambda task: TIWSEncoder(numeric="quantile", names=True, context="row"),
    "tiws of the poster": lambda task: TIWSEncoder(method="poster", idf_rows="known+self"),
    "tiws with an indicator": lambda task: TIWSEncoder(indicator=True, handle_unknown="return_nan", smooth=3.0),
    "modl": lambda task: MODLEncoder(output="mean" if task == "amounts" else "probability", prove=False),
    "wide": lambda task: WideEncoder(model=solved(task, **SMOOTH)),
    "wide of steps": lambda task: WideEncoder(model=online(task)),
    "wide by intervals": lambda task: WideEncoder(model=online(task, numeric="modl")),
    "crossfit of scikit-learn's": lambda task: CrossFit(
        TargetEncoder(target_type={"amounts": "continuous", "two classes": "binary"}.get(task, "multiclass"))
    ),
    "crossfit of tiws": lambda task: CrossFit(TIWSEncoder(cv=None, cols=["g", "h"])),
    "crossfit of another's": lambda task: CrossFit(CatBoostEncoder()),
}


def moved(y, rows, task):
    """The targets of some rows changed; every class stays in each part."""
    out = y.copy()
    out[rows] = -3.0 * y[rows] + 50.0 if task == "amounts" else np.roll(y[rows], 7)[::-1]
    assert (out[rows] != y[rows]).any()
    return out


def folds_of(splitter, y):
    cv = SPLITTERS[splitter]
    if isinstance(cv, list):
        return cv
    return list(cv.split(X, y, OF) if splitter == "groups" else cv.split(X))


CASES = [  # a CatBoostEncoder takes one number
    (name, task) for name in ENCODERS for task in TARGETS if (name, task) != ("crossfit of another's", "three classes")
]


@pytest.mark.parametrize(
    ("splitter", "name", "task"), [(list(SPLITTERS)[number % 4], *case) for number, case in enumerate(CASES)]
)
def test_targets_of_a_fold_do_not_touch_its_encoding(splitter, name, task):
    y, encoder = TARGETS[task], ENCODERS[name](task)
    if name == "crossfit of scikit-learn's":
        encoder = encoder.set_params(encoder__smooth=2.0)
    columns = X[["g", "h"]] if "scikit" in name else X[["h", "z"]] if name == "modl" else X.drop(columns="key")
    before = clone(encoder).set_params(cv=folds_of(splitter, y)).fit_transform(columns, y)
    rows = folds_of(splitter, y)[1][1]
    after = clone(encoder).set_params(cv=folds_of(splitter, y)).fit_transform(columns, moved(y, rows, task))
    before, after = pd.DataFrame(before), pd.DataFrame(after)
    pd.testing.assert_frame_equal(before.iloc[rows], after.iloc[rows], check_exact=True)
    others = np.setdiff1d(np.arange(N), rows)
    assert not before.iloc[others].equals(after.iloc[others]), "nothing is learned"


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("task", TARGETS)
@pytest.mark.parametrize("method", ["documents", "poster"])
def test_tiws_encodes_rows_as_an_encoder_of_the_other_folds(method, task, frame):
    y, table = TARGETS[task], frame(X.to_dict("list"))
    kind = "continuous" if task == "amounts" else "classes"
    encoder = TIWSEncoder(method=method, cols=["g", "h"], indicator=True, target_type=kind)
    whole = np.asarray(clone(encoder).set_params(cv=GroupKFold(4)).fit_transform(table, y, groups=OF))
    for train, test in GroupKFold(4).split(X, y, OF):
        apart = clone(encoder).fit(table[train] if frame is pl.DataFrame else table.iloc[train], y[train])
        new = apart.transform(table[test] if frame is pl.DataFrame else table.iloc[test])
        np.testing.assert_array_equal(whole[test], np.asarray(new))


@pytest.mark.parametrize("task", TARGETS)
@pytest.mark.parametrize("splitter", ["rows", "groups"])
def test_rows_as_if_unseen_know_nothing_of_their_fold_either(splitter, task):
    y, encoder = TARGETS[task], TIWSEncoder(cols=["g", "h"], cv=folds_of(splitter, TARGETS[task]))
    rows = folds_of(splitter, y)[0][1]
    before, after = (np.asarray(clone(encoder).augment(X, of)[0]) for of in (y, moved(y, rows, task)))
    for part in (rows, rows + N):
        np.testing.assert_array_equal(before[part], after[part])
    assert (before != after).any()


@pytest.mark.parametrize("name", ["tiws", "tiws of the poster", "wide", "wide of steps", "crossfit of tiws"])
def test_a_key_of_rows_does_not_predict(name):
    y = np.random.default_rng(1).normal(size=N)
    table = pd.DataFrame({"g": X["key"], "z": X["z"], "h": X["h"]})
    out = ENCODERS[name]("amounts").fit_transform(table, y)["g"].to_numpy(dtype=float)
    assert np.ptp(out) < 1e-9 or np.corrcoef(out, y)[0, 1] < 0.1


@pytest.mark.slow
def test_the_rule_for_unseen_categories_and_the_cuts_of_numbers_are_the_folds():
    """Categories of few rows, and uninformative columns: leaks made the rows' own targets show (review, F2)."""
    gains = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        of = np.repeat(np.arange(30), 4)
        table = pd.DataFrame({"g": [f"s{i}" for i in of], **{f"z{j}": rng.normal(size=30)[of] for j in range(3)}})
        y = rng.normal(size=30)[of] + rng.normal(size=120)
        encoder = TIWSEncoder(cols=["g"], cv=GroupKFold(5))
        gains.append(np.corrcoef(encoder.fit_transform(table, y, groups=of)["g"], y)[0, 1])
    assert np.nanmean(gains) < 0.05


@pytest.mark.parametrize("task", TARGETS)
@pytest.mark.parametrize("options", [SMOOTH, {}], ids=["additive", "default"])
def test_margins_that_a_booster_starts_from_know_nothing_of_their_fold(options, task):
    y = TARGETS[task]
    model = solved(task, **options)
    classes = None if task == "amounts" else np.unique(y)
    splits, columns = list(KFold(4).split(X)), X[["g", "h", "z"]]

    def margins(target):
        crossed = OutOfFoldMargins(Learner(model, columns, target, None, classes), splits)
        return crossed.margins(), NestedCV(crossed).of_all([0])

    rows = splits[1][1]
    for before, after in zip(margins(y), margins(moved(y, rows, task)), strict=True):
        np.testing.assert_array_equal(before[rows], after[rows])
        assert (before != after).any()
