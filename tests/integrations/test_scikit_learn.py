"""Encoders and wide models inside scikit-learn's and skrub's tools: what comes out is what the steps give one by one.

Expected values are written down, or computed by numpy, or by the same steps in a loop of this file; pandas and polars.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import StackingClassifier, StackingRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tabsym import MODLEncoder, OneHotEncoder, TIWSEncoder, WideEncoder, WideSGDClassifier, WideSGDRegressor

pytestmark = pytest.mark.slow

FRAMES = pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
N = 240
_RNG = np.random.default_rng(0)
CITY = _RNG.choice(list("uvwxyz"), N)
KIND = _RNG.choice(["car", "van"], N)
SIZE = _RNG.normal(size=N).round(3)
_SCORE = np.select([CITY == "u", CITY == "v", CITY == "w"], [2.0, 1.0, -1.5], 0.0) + (KIND == "van") + SIZE
Y = (_SCORE + _RNG.logistic(size=N) > 0).astype(int)
AMOUNT = _SCORE + _RNG.normal(size=N)
COLUMNS = {"city": CITY.tolist(), "kind": KIND.tolist(), "size": SIZE.tolist()}


def part(X, places):
    """Rows of a frame of either kind."""
    return X.iloc[places] if isinstance(X, pd.DataFrame) else X[np.asarray(places).tolist()]


def onehot_by_numpy(train, test):
    """0/1 columns of the training symbols in order of first appearance."""
    categories = list(dict.fromkeys(train))
    return np.array([[float(value == category) for category in categories] for value in test])


def wide(**options):
    return WideSGDClassifier(random_state=0, max_iter=3, **options)


# -- ColumnTransformer ------------------------------------------------------------------------------------


@FRAMES
def test_one_hot_in_a_column_transformer(frame):
    X = frame({"a": ["p", "q", "p", "r"], "n": [1.0, 2.0, 3.0, 4.0], "b": ["s", "s", "t", "s"]})
    columns = ColumnTransformer(
        [("code", OneHotEncoder(use_cat_names=True), ["a", "b"])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    )
    want = [[1, 0, 0, 1, 0, 1.0], [0, 1, 0, 1, 0, 2.0], [1, 0, 0, 0, 1, 3.0], [0, 0, 1, 1, 0, 4.0]]
    np.testing.assert_array_equal(np.asarray(columns.fit_transform(X)), want)
    assert columns.get_feature_names_out().tolist() == ["a_p", "a_q", "a_r", "b_s", "b_t", "n"]
    new = frame({"a": ["r", "new"], "n": [5.0, 6.0], "b": ["t", "s"]})
    np.testing.assert_array_equal(np.asarray(columns.transform(new)), [[0, 0, 1, 0, 1, 5.0], [0, 0, 0, 1, 0, 6.0]])


@pytest.mark.parametrize(("frame", "output"), [(pd.DataFrame, "pandas"), (pl.DataFrame, "polars")])
def test_a_column_transformer_gives_frames(frame, output):
    X = frame(COLUMNS)
    columns = ColumnTransformer(
        [("code", OneHotEncoder(use_cat_names=True), ["kind"]), ("scale", StandardScaler(), ["size"])]
    )
    found = columns.set_output(transform=output).fit_transform(X)
    assert isinstance(found, frame)
    first = KIND[0]
    other = "van" if first == "car" else "car"
    assert list(found.columns) == [f"code__kind_{first}", f"code__kind_{other}", "scale__size"]
    np.testing.assert_array_equal(found[f"code__kind_{first}"].to_numpy(), first == KIND)
    np.testing.assert_allclose(found["scale__size"].to_numpy(), (SIZE - SIZE.mean()) / SIZE.std())


@FRAMES
def test_sparse_one_hot_in_a_column_transformer(frame):
    columns = ColumnTransformer(
        [("code", OneHotEncoder(sparse_output=True), ["city", "kind"])], remainder="passthrough", sparse_threshold=1.0
    )
    found = columns.fit_transform(frame(COLUMNS))
    want = np.hstack([onehot_by_numpy(CITY, CITY), onehot_by_numpy(KIND, KIND), SIZE[:, None]])
    np.testing.assert_array_equal(found.toarray(), want)


@FRAMES
def test_modl_means_in_a_column_transformer(frame):
    """Two groups of symbols, of which one in ten and nine in ten are 1."""
    categories = np.repeat(list("abcd"), 100)
    y = np.tile(np.arange(100) < 10, 4) ^ np.repeat([False, False, True, True], 100)
    X = frame({"s": categories.tolist(), "n": np.arange(400.0).tolist()})
    columns = ColumnTransformer([("groups", MODLEncoder(output="mean"), ["s"])], remainder="passthrough")
    found = np.asarray(columns.fit(X, y.astype(int)).transform(X))
    np.testing.assert_allclose(found[:, 0].astype(float), np.repeat([0.1, 0.1, 0.9, 0.9], 100))
    np.testing.assert_array_equal(found[:, 1].astype(float), np.arange(400.0))


@FRAMES
def test_modl_out_of_fold_in_a_column_transformer(frame):
    """`fit_transform` hands the target on, so that training rows are encoded by the other folds, as alone."""
    X, encoder = frame(COLUMNS), MODLEncoder(output="logodds", cv=KFold(4))
    columns = ColumnTransformer([("groups", encoder, ["city", "size"])], remainder="drop")
    alone = clone(encoder).fit_transform(X[["city", "size"]], Y)
    found = np.asarray(columns.fit_transform(X, Y), dtype=float)
    np.testing.assert_array_equal(found, np.asarray(alone, dtype=float))
    assert not np.array_equal(found, np.asarray(columns.transform(X), dtype=float))


@FRAMES
def test_tiws_in_a_column_transformer(frame):
    """A seen symbol that nothing draws is its mean; the training rows are encoded by the other folds."""
    X, encoder = frame(COLUMNS), TIWSEncoder(smooth=0.0, cv=KFold(4))
    columns = ColumnTransformer([("mean", encoder, ["city"])], remainder="drop")
    means = pd.Series(Y).groupby(CITY).mean()
    found = np.asarray(columns.fit(X, Y).transform(X), dtype=float)[:, 0]
    np.testing.assert_allclose(found, means[CITY].to_numpy())
    crossed = np.asarray(columns.fit_transform(X, Y), dtype=float)[:, 0]
    for rest, fold in KFold(4).split(CITY):
        others = pd.Series(Y[rest]).groupby(CITY[rest]).mean()
        np.testing.assert_allclose(crossed[fold], others[CITY[fold]].to_numpy())


def test_two_encoders_side_by_side():
    X = pd.DataFrame(COLUMNS)
    columns = ColumnTransformer(
        [
            ("codes", OneHotEncoder(), ["kind"]),
            ("wide", WideEncoder(random_state=0, cv=KFold(3)), ["city"]),
            ("numbers", "passthrough", make_column_selector(dtype_include="number")),
        ]
    )
    crossed = WideEncoder(random_state=0, cv=KFold(3)).fit_transform(X[["city"]], Y)
    want = np.column_stack([onehot_by_numpy(KIND, KIND), crossed["city"], SIZE])
    np.testing.assert_array_equal(columns.fit_transform(X, Y), want)


# -- Pipeline ---------------------------------------------------------------------------------------------


@FRAMES
def test_one_hot_and_logistic_regression(frame):
    train, test = np.arange(N) < 180, np.arange(N) >= 180
    X = frame(COLUMNS)
    model = make_pipeline(OneHotEncoder(), LogisticRegression(tol=1e-10, max_iter=1000))
    found = model.fit(part(X, np.flatnonzero(train)), Y[train]).predict_proba(part(X, np.flatnonzero(test)))
    by_hand = [
        np.hstack([onehot_by_numpy(CITY[train], CITY[of]), onehot_by_numpy(KIND[train], KIND[of]), SIZE[of, None]])
        for of in (train, test)
    ]
    want = LogisticRegression(tol=1e-10, max_iter=1000).fit(by_hand[0], Y[train]).predict_proba(by_hand[1])
    np.testing.assert_allclose(found, want, atol=1e-8)


@FRAMES
@pytest.mark.parametrize(
    "encoder",
    [
        MODLEncoder(output="onehot", prove=False),
        MODLEncoder(output="mean", prove=False),
        TIWSEncoder(),
        WideEncoder(random_state=0),
    ],
    ids=["modl-onehot", "modl-mean", "tiws", "wide"],
)
def test_an_encoder_under_ridge(frame, encoder):
    train, test = np.arange(180), np.arange(180, N)
    X = frame(COLUMNS)
    model = make_pipeline(clone(encoder), Ridge()).fit(part(X, train), AMOUNT[train])
    alone = clone(encoder)
    ridge = Ridge().fit(np.asarray(alone.fit_transform(part(X, train), AMOUNT[train]), dtype=float), AMOUNT[train])
    want = ridge.predict(np.asarray(alone.transform(part(X, test)), dtype=float))
    np.testing.assert_allclose(model.predict(part(X, test)), want)


def test_a_wide_model_behind_other_steps():
    X = pd.DataFrame(COLUMNS)
    scale = ColumnTransformer(
        [("scale", StandardScaler(), ["size"])], remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    found = make_pipeline(scale, wide()).fit(X, Y).predict_proba(X)
    scaled = X.assign(size=(SIZE - SIZE.mean()) / SIZE.std())[["size", "city", "kind"]]
    np.testing.assert_allclose(found, wide().fit(scaled, Y).predict_proba(scaled), atol=1e-12)


# -- StackingClassifier, StackingRegressor ----------------------------------------------------------------


@FRAMES
def test_a_wide_model_in_a_stack(frame):
    X, folds = frame(COLUMNS), StratifiedKFold(3, shuffle=True, random_state=0)
    members = [("wide", wide()), ("codes", make_pipeline(OneHotEncoder(), LogisticRegression()))]
    stack = StackingClassifier(members, LogisticRegression(), cv=folds).fit(X, Y)
    crossed, new = np.empty((N, 2)), np.empty((N, 2))
    for place, (_, member) in enumerate(members):
        for rest, fold in folds.split(np.zeros(N), Y):
            crossed[fold, place] = clone(member).fit(part(X, rest), Y[rest]).predict_proba(part(X, fold))[:, 1]
        new[:, place] = clone(member).fit(X, Y).predict_proba(X)[:, 1]
    want = LogisticRegression().fit(crossed, Y).predict_proba(new)
    np.testing.assert_allclose(stack.predict_proba(X), want, atol=1e-12)


@FRAMES
def test_a_wide_regressor_in_a_stack(frame):
    X, folds = frame(COLUMNS), KFold(3)
    member = WideSGDRegressor(random_state=0, max_iter=3)
    stack = StackingRegressor([("wide", member)], LinearRegression(), cv=folds).fit(X, AMOUNT)
    crossed = cross_val_predict(member, X, AMOUNT, cv=folds)[:, None]
    want = LinearRegression().fit(crossed, AMOUNT).predict(clone(member).fit(X, AMOUNT).predict(X)[:, None])
    np.testing.assert_allclose(stack.predict(X), want)


# -- GridSearchCV -----------------------------------------------------------------------------------------


@FRAMES
def test_a_search_over_a_wide_model(frame):
    X, folds = frame(COLUMNS), StratifiedKFold(3)
    grid = {"alpha": [1e-6, 1.0], "interactions": [None, "pairwise"]}
    search = GridSearchCV(wide(), grid, cv=folds, scoring="neg_log_loss").fit(X, Y)
    for params, found in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        losses = []
        for rest, fold in folds.split(np.zeros(N), Y):
            model = wide(**params).fit(part(X, rest), Y[rest])
            losses.append(log_loss(Y[fold], model.predict_proba(part(X, fold))))
        assert found == pytest.approx(-np.mean(losses), rel=1e-12)
    best = wide(**search.best_params_).fit(X, Y)
    np.testing.assert_array_equal(search.predict_proba(X), best.predict_proba(X))


@FRAMES
def test_a_search_over_an_encoder_in_a_pipeline(frame):
    X, folds = frame(COLUMNS), KFold(3)
    model = make_pipeline(OneHotEncoder(), Ridge())
    grid = {"onehotencoder__min_frequency": [None, 50], "ridge__alpha": [0.1, 10.0]}
    search = GridSearchCV(model, grid, cv=folds, scoring="neg_mean_squared_error").fit(X, AMOUNT)
    for params, found in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        errors = [
            np.mean((_ridge_by_hand(rest, fold, *params.values()) - AMOUNT[fold]) ** 2) for rest, fold in folds.split(X)
        ]
        assert found == pytest.approx(-np.mean(errors), rel=1e-8)


def _ridge_by_hand(rest, fold, least, alpha):
    """Predictions of ridge regression over 0/1 columns, symbols of fewer rows than `least` sharing one."""

    def codes(values):
        rows = pd.Series(values[rest]).value_counts()
        rare = set() if least is None else set(rows.index[rows < least])
        merged = np.array(["(rare)" if value in rare else value for value in values], dtype=object)
        return onehot_by_numpy(merged[rest], merged)

    columns = np.hstack([codes(CITY), codes(KIND), SIZE[:, None]])
    centre, mean = columns[rest].mean(axis=0), AMOUNT[rest].mean()
    inner = columns[rest] - centre
    w = np.linalg.solve(inner.T @ inner + alpha * np.eye(inner.shape[1]), inner.T @ (AMOUNT[rest] - mean))
    return mean + (columns[fold] - centre) @ w


# -- CalibratedClassifierCV -------------------------------------------------------------------------------


@FRAMES
@pytest.mark.parametrize("model", [wide(), make_pipeline(OneHotEncoder(), LogisticRegression())], ids=["wide", "codes"])
def test_calibration_by_isotonic_regression(frame, model):
    X, folds = frame(COLUMNS), StratifiedKFold(3)
    found = CalibratedClassifierCV(model, method="isotonic", cv=folds).fit(X, Y).predict_proba(X)[:, 1]
    want = np.zeros(N)
    for rest, fold in folds.split(np.zeros(N), Y):
        fitted = clone(model).fit(part(X, rest), Y[rest])
        isotonic = IsotonicRegression(out_of_bounds="clip").fit(fitted.decision_function(part(X, fold)), Y[fold])
        want += isotonic.predict(fitted.decision_function(X)) / 3
    np.testing.assert_allclose(found, want, atol=1e-12)


def test_calibration_of_three_classes_adds_up():
    """One against the rest by sigmoids, whose shares are made to add up to 1."""
    y = np.digitize(_SCORE, [-0.5, 1.5])
    X = pd.DataFrame(COLUMNS)
    found = CalibratedClassifierCV(wide(), method="sigmoid", cv=StratifiedKFold(3)).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (found.argmax(axis=1) == y).mean() > 0.6  # the most frequent class: .4


# -- skrub ------------------------------------------------------------------------------------------------

CARDINALITY = 5  # of more symbols than this a column is one of many: `city`, not `kind`


def vectorizer(encoder):
    from skrub import TableVectorizer

    return TableVectorizer(cardinality_threshold=CARDINALITY, high_cardinality=encoder)


@FRAMES
@pytest.mark.parametrize(
    "encoder",
    [
        OneHotEncoder(),
        MODLEncoder(output="mean", cv=KFold(4)),
        TIWSEncoder(smooth=0.0, cv=KFold(4)),
        WideEncoder(random_state=0, cv=KFold(4)),
    ],
    ids=["onehot", "modl", "tiws", "wide"],
)
def test_a_table_vectorizer_of_skrub(frame, encoder):
    """`city` as our encoder alone has it, out of fold in training; `kind` as a 0/1 column; `size` as it is."""
    X = frame(COLUMNS)
    city = part(X[["city"]], np.arange(N))
    vectorize = vectorizer(encoder)
    for found, alone in (
        (vectorize.fit_transform(X, Y), (fitted := clone(encoder)).fit_transform(city, Y)),
        (vectorize.transform(X), fitted.transform(city)),
    ):
        assert isinstance(found, frame)
        names = list(alone.columns)
        np.testing.assert_allclose(found[names].to_numpy(), alone.to_numpy(), atol=1e-7)  # skrub's numbers: float32
        np.testing.assert_allclose(found["size"].to_numpy(), SIZE, atol=1e-6)
        (kind,) = set(found.columns) - {*names, "size"}
        np.testing.assert_array_equal(found[kind].to_numpy(), kind.removeprefix("kind_") == KIND)


@FRAMES
def test_a_pipeline_of_skrub(frame):
    train, test = np.arange(180), np.arange(180, N)
    X = frame(COLUMNS)
    model = make_pipeline(vectorizer(TIWSEncoder(smooth=0.0, cv=None)), Ridge()).fit(part(X, train), AMOUNT[train])
    means = pd.Series(AMOUNT[train]).groupby(CITY[train]).mean()
    by_hand = np.column_stack([means[CITY], KIND == "van", SIZE])
    want = Ridge().fit(by_hand[train], AMOUNT[train]).predict(by_hand[test])
    np.testing.assert_allclose(model.predict(part(X, test)), want, rtol=1e-5)


@pytest.mark.parametrize(
    "encoder",
    [OneHotEncoder(), MODLEncoder(output="mean"), TIWSEncoder(), WideEncoder(random_state=0)],
    ids=["onehot", "modl", "tiws", "wide"],
)
def test_rows_of_a_fold_in_skrub(encoder):
    """skrub numbers the rows of each column anew, and hands the target's labels on."""
    rows = np.random.default_rng(1).permutation(N)[:180]
    X, y = pd.DataFrame(COLUMNS).iloc[rows], pd.Series(Y).iloc[rows]
    found = vectorizer(encoder).fit_transform(X, y)
    alone = clone(encoder).fit_transform(X[["city"]], y)
    np.testing.assert_allclose(found[list(alone.columns)].to_numpy(), alone.to_numpy(), atol=1e-7)
    assert found.index.equals(X.index)


def test_skrub_encodes_each_column_alone():
    """Two columns of many symbols: each gets a clone, which sees that column only."""
    X = pd.DataFrame(COLUMNS | {"other": np.random.default_rng(2).choice(list("abcdefgh"), N)})
    encoder = WideEncoder(random_state=0, cv=None)
    found = vectorizer(encoder).fit_transform(X, Y)
    for name in ("city", "other"):
        np.testing.assert_allclose(found[name], clone(encoder).fit_transform(X[[name]], Y)[name], atol=1e-7)
