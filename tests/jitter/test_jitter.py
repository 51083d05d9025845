"""JitterPredictor: seen rows untouched, unseen ones by brute force, calibration that can say no."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, TargetEncoder
from sklearn.svm import LinearSVC

from tabsym import JitterPredictor, TIWSEncoder
from tabsym.encoders import NativeCategories, NativePipeline
from tabsym.integrations import load_adapter
from tabsym.jitter.averaging import raw_scores
from tabsym.jitter.predictor import _error
from tabsym.jitter.replacing import MAX_COMBINATIONS, Donors, Mixture
from tabsym.tiws.column import Unseen as Documents
from tests.conftest import as_frame
from tests.oracles.jitter import replace_and_average

LIBRARIES = ["lightgbm", "xgboost", "catboost", "hist"]
TASKS = ["regression", "binary", "multiclass"]
N = 600


def table(seed=0, n=N):
    """The symbol `a` is of one of three sorts, which `k` tells; `b` is of its own."""
    random = np.random.default_rng(seed)
    a = random.integers(0, 9, n)
    kind = np.where(random.random(n) < 0.9, a % 3, random.integers(0, 3, n))
    number = random.normal(size=n)
    number[random.random(n) < 0.1] = np.nan
    b = random.choice(list("uvwxyz"), n)
    X = pd.DataFrame(
        {
            "a": [f"m{v}" for v in a],
            "k": [f"k{v}" for v in kind],
            "b": b,
            "n": number,
            "z": random.integers(0, 3, n) * 1.0,
        }
    )
    score = (a % 3) * 1.5 + np.nan_to_num(number) + 0.3 * random.normal(size=n) + (b < "w")
    return X, score


X, SCORE = table()
TARGETS = {
    "regression": SCORE,
    "binary": (np.median(SCORE) < SCORE).astype(int),
    "multiclass": np.digitize(SCORE, np.quantile(SCORE, [0.33, 0.67])),
}


def unseen_rows():
    new = table(1, 24)[0]
    new.loc[::2, "a"] = "new"
    new.loc[::3, "b"] = "q"
    new.loc[5, "a"] = "other"
    return new


NEW = unseen_rows()
HIT = ~(NEW["a"].isin(X["a"]) & NEW["b"].isin(X["b"])).to_numpy()


def booster_of(library, task, trees=12):
    if library == "hist":
        kind = HistGradientBoostingClassifier
        if task in ("regression", "count"):
            kind = partial(HistGradientBoostingRegressor, loss="poisson" if task == "count" else "squared_error")
        booster = kind(max_iter=trees, categorical_features="from_dtype", random_state=0, early_stopping=False)
        return NativePipeline([("categories", NativeCategories(max_levels=254)), ("booster", booster)])
    model = load_adapter(library).native(task, random_state=0, n_jobs=1)
    return model.set_params(booster__n_estimators=trees)


_FITTED = {}


def fitted(library, task):
    if (library, task) not in _FITTED:
        encoder = TIWSEncoder(cols=["a", "b"], target_type="continuous" if task == "regression" else "classes")
        _FITTED[library, task] = booster_of(library, task).fit(X, TARGETS[task]), encoder.fit(X, TARGETS[task])
    return _FITTED[library, task]


def method_of(task):
    return "predict" if task == "regression" else "predict_proba"


def linear():
    """A pipeline of scikit-learn, and its encoder."""
    columns = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["a", "b", "k"]))
    encoder = TIWSEncoder(cols=["a", "b"], target_type="classes")
    return make_pipeline(columns, LogisticRegression()).fit(X, TARGETS["binary"]), encoder.fit(X, TARGETS["binary"])


class Spy:
    """A model that keeps what it was asked."""

    def __init__(self, model):
        self.model, self.asked = model, []

    def __getattr__(self, name):
        found = getattr(self.model, name)
        if name not in ("predict", "predict_proba"):
            return found

        def ask(frame, *args, **options):
            self.asked.append(frame)
            return found(frame, *args, **options)

        return ask


# -- rows that were seen, and those that were not -------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_seen_rows_are_the_models_own_and_the_others_brute_force(library, task):
    model, encoder = fitted(library, task)
    jitter = JitterPredictor(model, encoder)
    method = method_of(task)
    own = getattr(model, method)(NEW[~HIT])
    got, std = getattr(jitter, method)(NEW, return_std=True)
    assert np.array_equal(got[~HIT], own)
    assert not std[~HIT].any()
    wanted, spread = replace_and_average(model, encoder, NEW, ["a", "b"], method)
    np.testing.assert_allclose(got[HIT], wanted[HIT], rtol=0, atol=1e-12)
    np.testing.assert_allclose(std[HIT], spread[HIT], rtol=0, atol=1e-8)
    everything = getattr(model, method)(X)
    assert getattr(jitter, method)(X).tobytes() == everything.tobytes()
    labels = jitter.predict(NEW)
    assert np.array_equal(labels[~HIT], model.predict(NEW[~HIT]))
    if task != "regression":
        assert np.array_equal(labels[HIT], model.classes_[got[HIT].argmax(axis=1)])


def test_seen_rows_go_in_one_call_on_exactly_these_rows():
    model, encoder = linear()
    spy = Spy(model)
    JitterPredictor(spy, encoder).predict_proba(NEW)
    pd.testing.assert_frame_equal(spy.asked[0], NEW[~HIT])
    for frame in spy.asked[1:]:
        assert set(frame["a"]) <= set(X["a"])
        assert set(frame["b"]) <= set(X["b"])
    spy.asked.clear()
    JitterPredictor(spy, encoder).predict_proba(X)
    assert len(spy.asked) == 1
    assert spy.asked[0] is X


@pytest.mark.parametrize("average", ["probability", "raw"])
def test_all_weight_on_a_donor_is_predicting_with_it(monkeypatch, average):
    model, encoder = fitted("lightgbm", "binary")

    def one(fitted, unseen, own=None, rule=None):
        weights = np.zeros((len(unseen), len(fitted.donors)))
        weights[:, 2] = 1.0
        return weights

    monkeypatch.setattr("tabsym.tiws.column.FittedColumn.weights", one)
    got, std = JitterPredictor(model, encoder, average=average).predict_proba(NEW, return_std=True)
    known = {name: encoder.columns_[name].fitted for name in "ab"}
    replaced = NEW.copy()
    for name, column in known.items():
        replaced.loc[~NEW[name].isin(X[name]), name] = column.categories[column.donors[2]]
    np.testing.assert_allclose(got, model.predict_proba(replaced), rtol=0, atol=1e-15)
    assert not std.any()


@pytest.mark.parametrize("library", LIBRARIES)
def test_raw_scores_are_averaged_before_the_link(library):
    model, encoder = fitted(library, "binary")
    score = raw_scores(model)
    got = JitterPredictor(model, encoder, average="raw").predict_proba(NEW)

    class Scores:
        predict = staticmethod(score)

    wanted, _ = replace_and_average(Scores, encoder, NEW, ["a", "b"], "predict")
    np.testing.assert_allclose(got[HIT, 1], 1 / (1 + np.exp(-wanted[HIT])), rtol=0, atol=1e-12)
    assert np.array_equal(got[~HIT], model.predict_proba(NEW[~HIT]))


def test_decision_function_is_the_mean_of_scores():
    model, encoder = linear()
    got = JitterPredictor(model, encoder).decision_function(NEW)
    wanted, _ = replace_and_average(model, encoder, NEW, ["a", "b"], "decision_function")
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12)
    assert not hasattr(JitterPredictor(*fitted("xgboost", "binary")), "decision_function")
    assert not hasattr(JitterPredictor(*fitted("lightgbm", "regression")), "predict_proba")


def test_draws_come_near_the_mixture():
    model, encoder = fitted("lightgbm", "regression")
    jitter = JitterPredictor(model, encoder)
    exact, std = jitter.predict(NEW, return_std=True)
    drawn, drawn_std = jitter.predict(NEW, return_std=True, n_draws=4000, random_state=0)
    assert np.abs(drawn - exact).max() < 5 * std.max() / np.sqrt(4000)
    np.testing.assert_allclose(drawn_std, std, atol=0.05)
    assert np.array_equal(drawn, jitter.predict(NEW, n_draws=4000, random_state=0))
    assert np.array_equal(drawn[~HIT], model.predict(NEW[~HIT]))
    once = jitter.predict(NEW, n_draws=1, random_state=1)
    answers = {value for category in X["a"].unique() for value in model.predict(NEW.assign(a=category))}
    only_a = HIT & NEW["b"].isin(X["b"]).to_numpy()
    assert set(once[only_a]) <= answers


def test_few_donors_are_the_heaviest_and_weigh_one_together():
    model, encoder = fitted("lightgbm", "regression")
    rows = NEW[NEW["b"].isin(X["b"])]
    donors = JitterPredictor(model, encoder, max_donors=2).donors(rows, "a")
    assert len(JitterPredictor(model, encoder).donors(rows, "a", n_donors=20)) > 4
    got = JitterPredictor(model, encoder, max_donors=2).predict(rows)
    for category in ("new", "other"):
        two = donors[donors["category"] == category]
        mine = (rows["a"] == category).to_numpy()
        answers = np.stack([model.predict(rows[mine].assign(a=donor)) for donor in two["donor"]])
        np.testing.assert_allclose(got[mine], two["weight"].to_numpy() @ answers, atol=1e-12)


class Counting(Ridge):
    """How many rows it was asked about."""

    def predict(self, X):
        self.asked_ = len(X)
        return np.arange(len(X)) * 1.0


@pytest.mark.parametrize(("most", "asked"), [({}, 64), ({"max_donors": 7}, 7), ({"max_donors": None}, 100)])
def test_donors_are_64_if_nothing_is_said(most, asked):
    frame = pd.DataFrame({"a": [f"a{i}" for i in range(100)] * 3, "b": list("pqr") * 100})
    encoder = TIWSEncoder(cols="a", target_type="continuous").fit(frame, np.arange(300))
    model = Counting().fit([[0.0], [1.0]], [0.0, 1.0])
    JitterPredictor(model, encoder, **most).predict(pd.DataFrame({"a": ["new"], "b": ["p"]}))
    assert model.asked_ == asked


def test_combinations_are_bounded_and_whole_where_they_are_few():
    random = np.random.default_rng(0)
    sizes = [100, 90, 20]
    weights = [random.random((2, size)) for size in sizes]
    weights = [one / one.sum(axis=1, keepdims=True) for one in weights]
    documents = np.array([[0, -1, -1], [1, -1, 1], [0, 1, -1], [0, 0, 0]])
    mixture = Mixture.of([Donors(documents[:, j], weights[j]) for j in range(3)], None)
    assert mixture.sizes[:2].tolist() == [100, 2000]
    assert (mixture.sizes[2:] <= MAX_COMBINATIONS).all()
    chunks = list(mixture.chunks())
    rows, shares = (np.concatenate([chunk[part] for chunk in chunks]) for part in (0, 2))
    categories = np.concatenate([np.stack(chunk[1], axis=1) for chunk in chunks])
    np.testing.assert_allclose(np.bincount(rows, shares), 1.0, atol=1e-12)
    assert len({(row, *category) for row, category in zip(rows.tolist(), categories.tolist(), strict=True)}) == len(
        rows
    )
    at = rows == 1
    np.testing.assert_allclose(
        shares[at], weights[0][1, categories[at, 0]] * weights[2][1, categories[at, 2]], rtol=1e-12
    )
    kept = set(categories[rows == 2, 0])
    assert kept == set(np.argsort(-weights[0][0])[: len(kept)])
    donors = [Donors(documents[:, j], weights[j]) for j in range(3)]
    few = Mixture.of(donors, 64)
    assert few.sizes[:2].tolist() == [64, 64 * 20]
    assert (few.sizes[2:] <= MAX_COMBINATIONS).all()
    assert few.cut.tolist() == [False, False, True, True]
    assert Mixture.of(donors, 64, combined=False).sizes[2:].tolist() == [64 * 64, 64 * 64 * 20]
    assert not Mixture.of(donors, 64, combined=False).cut.any()


def test_rows_may_come_in_parts(monkeypatch):
    model, encoder = fitted("lightgbm", "binary")
    wanted = JitterPredictor(model, encoder, average="raw").predict_proba(NEW, return_std=True)
    monkeypatch.setattr("tabsym.jitter.averaging.MAX_WEIGHTS", 30)
    monkeypatch.setattr("tabsym.jitter.replacing.CHUNK", 7)
    got = JitterPredictor(model, encoder, average="raw").predict_proba(NEW, return_std=True)
    np.testing.assert_allclose(got[0], wanted[0], rtol=0, atol=1e-14)
    np.testing.assert_allclose(got[1], wanted[1], rtol=0, atol=1e-9)


def test_spread_of_more_combinations_than_are_combined(monkeypatch):
    model, encoder = fitted("lightgbm", "regression")
    wanted, std = JitterPredictor(model, encoder).predict(NEW, return_std=True)
    monkeypatch.setattr("tabsym.jitter.replacing.MAX_COMBINATIONS", 12)
    got, drawn = JitterPredictor(model, encoder).predict(NEW, return_std=True, random_state=0)
    two = ~(NEW["a"].isin(X["a"]) | NEW["b"].isin(X["b"])).to_numpy()
    assert two.any()
    assert np.array_equal(std[~two], drawn[~two])
    assert np.array_equal(got[~two], wanted[~two])
    assert not np.array_equal(got[two], wanted[two])
    np.testing.assert_allclose(drawn[two], std[two], rtol=0.2)


# -- tables of every kind -------------------------------------------------------------------------


def plain(frame):
    return {name: [None if pd.isna(v) else v for v in frame[name].tolist()] for name in frame}


@pytest.mark.parametrize("library", ["lightgbm", "catboost"])
def test_every_frame_gives_the_same(library, make_frame):
    model, encoder = fitted(library, "binary")
    wanted = JitterPredictor(model, encoder).predict_proba(NEW)
    got = JitterPredictor(model, encoder).predict_proba(make_frame(plain(NEW)))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-15)


@pytest.mark.parametrize("kind", ["pandas-str", "pandas-object", "pandas-category", "polars", "pyarrow"])
def test_donors_come_in_the_users_own_frame(kind):
    model, encoder = fitted("lightgbm", "binary")
    given = as_frame(plain(NEW), kind)
    spy = Spy(model)
    JitterPredictor(spy, encoder).predict_proba(given)
    assert len(spy.asked) == 2
    for frame in spy.asked:
        assert type(frame) is type(given)
        if kind == "pandas-category":
            assert isinstance(frame["a"].dtype, pd.CategoricalDtype)
            assert not {"new", "other"} & set(frame["a"].cat.categories)
        elif kind.startswith("pandas"):
            assert frame.dtypes.equals(given.dtypes)
        else:
            assert frame.schema == given.schema


@pytest.mark.parametrize("make", [lambda f: f.to_numpy(dtype=object), lambda f: f.to_numpy(dtype=object).tolist()])
def test_arrays_and_lists(make):
    columns = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), [0, 1, 2]))
    names = ["a", "k", "b"]
    model = make_pipeline(columns, LogisticRegression()).fit(make(X[names]), TARGETS["binary"])
    encoder = TIWSEncoder(cols=[0, 2], target_type="classes").fit(make(X[names]), TARGETS["binary"])
    same = encoder.unseen_rows(make(NEW[names]), "x0")
    assert len(same.rows)
    got = JitterPredictor(model, encoder).predict_proba(make(NEW[names]))
    by_name = make_pipeline(columns, LogisticRegression()).fit(X[names], TARGETS["binary"])
    named = TIWSEncoder(cols=["a", "b"], target_type="classes").fit(X[names], TARGETS["binary"])
    np.testing.assert_allclose(got, JitterPredictor(by_name, named).predict_proba(NEW[names]), atol=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
def test_single_rows_and_no_rows(library):
    model, encoder = fitted(library, "multiclass")
    jitter = JitterPredictor(model, encoder)
    one = jitter.predict_proba(NEW.iloc[[0]])
    wanted, _ = replace_and_average(model, encoder, NEW.iloc[[0]], ["a", "b"], "predict_proba")
    np.testing.assert_allclose(one, wanted, atol=1e-12)
    assert jitter.predict_proba(NEW.head(0)).shape == (0, 3)
    assert jitter.predict(NEW.head(0)).shape == (0,)


def test_no_rows_where_the_model_refuses_them():
    jitter = JitterPredictor(*linear())
    assert jitter.predict_proba(NEW.head(0)).shape == (0, 2)
    assert jitter.predict(NEW.head(0)).shape == (0,)
    assert jitter.decision_function(NEW.head(0)).shape == (0,)
    values, std = jitter.predict_proba(NEW.head(0), return_std=True)
    assert values.shape == std.shape == (0, 2)


def test_missing_is_unseen_where_training_had_none():
    model, encoder = fitted("lightgbm", "regression")
    rows = NEW.assign(a=None, b="u")
    donors = JitterPredictor(model, encoder).donors(rows, "a")
    assert donors["category"].isna().all()
    wanted, _ = replace_and_average(model, encoder, rows, ["a", "b"], "predict")
    np.testing.assert_allclose(JitterPredictor(model, encoder).predict(rows), wanted, atol=1e-12)


@pytest.mark.parametrize("kind", ["enum", "enum of more", "categorical", "dictionary"])
def test_category_types_of_polars_and_arrow(kind):
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    model, encoder = fitted("lightgbm", "binary")
    columns = plain(NEW)
    if kind == "dictionary":
        given = pa.table({**columns, "a": pa.array(columns["a"]).dictionary_encode()})
    else:
        levels = sorted({*columns["a"], *(X["a"] if kind == "enum of more" else ())})
        dtype = pl.Categorical if kind == "categorical" else pl.Enum(levels)
        given = pl.DataFrame(columns).with_columns(pl.col("a").cast(dtype))
    wanted = JitterPredictor(model, encoder).predict_proba(NEW)
    jitter = JitterPredictor(model, encoder)
    np.testing.assert_allclose(jitter.predict_proba(given), wanted, rtol=0, atol=1e-15)
    seen = given.filter(pa.array(~HIT)) if kind == "dictionary" else given.filter(pl.Series(~HIT))
    assert jitter.calibrate(seen, TARGETS["binary"][: len(seen)]).calibration_["a"].default > 0


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost", "hist", "target encoder"])
def test_models_without_an_adapter(library):
    """Category columns as the libraries take them, and scikit-learn's own pipelines."""
    names = ["a", "b", "n"]
    dtypes = {"a": "category", "b": "category"} if library != "catboost" else {"a": object, "b": object}
    train = X[names].astype(dtypes)
    y = np.array(["low", "high"], dtype=object)[TARGETS["binary"]]
    coded = library == "xgboost"
    if library == "target encoder":
        columns = make_column_transformer((TargetEncoder(), ["a", "b"]))
        model = make_pipeline(columns, LogisticRegression())
    elif library == "catboost":
        catboost = pytest.importorskip("catboost")
        model = catboost.CatBoostClassifier(
            n_estimators=10, verbose=False, allow_writing_files=False, cat_features=["a", "b"], thread_count=1
        )
    else:
        model = booster_of(library, "binary").steps[-1][1]
    model.fit(train, TARGETS["binary"] if coded else y)
    encoder = TIWSEncoder(cols=["a", "b"], target_type="classes").fit(train, y)

    class AsTrained:
        @staticmethod
        def predict(frame):
            return model.predict_proba(frame.astype(train.dtypes))

    given = NEW[names].astype(dtypes)
    jitter = JitterPredictor(model, encoder)
    got = jitter.predict_proba(given)
    wanted, _ = replace_and_average(AsTrained, encoder, NEW[names], ["a", "b"], "predict")
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12 if library != "xgboost" else 1e-7)
    labels = jitter.predict(given)
    assert np.array_equal(labels, jitter.classes_[got.argmax(axis=1)])
    assert np.array_equal(labels[~HIT], np.ravel(model.predict(NEW.loc[~HIT, names].astype(train.dtypes))))
    used = jitter.calibrate(train, TARGETS["binary"] if coded else y, n_rows=100).describe()
    assert np.isfinite(used["default"]).all()


@pytest.mark.parametrize("method", ["documents", "poster"])
def test_rows_by_themselves_do_not_depend_on_each_other(method):
    model, _ = fitted("lightgbm", "regression")
    encoder = TIWSEncoder(
        cols=["a", "b"], target_type="continuous", context="row", method=method, idf_rows="known+self"
    ).fit(X, SCORE)
    jitter = JitterPredictor(model, encoder)
    whole = jitter.predict(NEW)
    order = np.random.default_rng(0).permutation(len(NEW))
    np.testing.assert_allclose(jitter.predict(NEW.iloc[order]), whole[order], atol=1e-12)
    np.testing.assert_allclose(jitter.predict(NEW.iloc[:1]), whole[:1], atol=1e-12)


def test_the_posters_weights_are_its_similarities():
    model, _ = fitted("lightgbm", "regression")
    encoder = TIWSEncoder(cols=["a"], target_type="continuous", method="poster").fit(X, SCORE)
    rows = NEW[~NEW["a"].isin(X["a"])]
    donors = JitterPredictor(model, encoder).donors(rows, "a", n_donors=20)
    fitted_column = encoder.columns_["a"].fitted
    estimates = dict(zip(fitted_column.categories, fitted_column.estimates[:, 0], strict=True))
    by_category = donors.groupby("category")[["donor", "weight"]].apply(
        lambda d: d["weight"] @ d["donor"].map(estimates)
    )
    wanted = dict(zip(rows["a"], encoder.transform(rows)["a"], strict=True))
    for category, value in by_category.items():
        assert value == pytest.approx(wanted[category], abs=1e-12)
    assert JitterPredictor(model, encoder).calibrate(X, SCORE, n_rows=100).calibration_["a"].calibrated > 0


# -- XGBoost --------------------------------------------------------------------------------------


def test_xgboost_never_gets_an_unknown_level(monkeypatch):
    xgboost = pytest.importorskip("xgboost")
    names = ["a", "b", "n"]
    train = X[names].astype({"a": "category", "b": "category"})
    model = xgboost.XGBRegressor(n_estimators=5, enable_categorical=True, n_jobs=1).fit(train, SCORE)
    encoder = TIWSEncoder(cols=["a", "b"], target_type="continuous").fit(train, SCORE)
    levels = pd.CategoricalDtype([*sorted(set(X["a"])), "m1x", "new", "other"])
    given = NEW[names].astype({"a": levels, "b": "category"})
    asked = []
    own = xgboost.XGBRegressor.predict

    def spy(self, frame, *args, **options):
        asked.append(frame)
        return own(self, frame, *args, **options)

    monkeypatch.setattr(xgboost.XGBRegressor, "predict", spy)
    jitter = JitterPredictor(model, encoder)
    got = jitter.predict(given)
    jitter.calibrate(train, SCORE, n_rows=60)
    jitter.calibration_ = {name: replace(found, used="default") for name, found in jitter.calibration_.items()}
    jitter.predict(given)
    jitter.predict(given[~HIT])
    JitterPredictor(model, encoder, columns="a").predict(given)
    assert len(asked) > 8
    for frame in asked:
        for name in "ab":
            assert set(frame[name].cat.categories) <= set(X[name])
    plain_rows = NEW[names].assign(**{c: NEW[c].where(NEW[c].isin(X[c]), X[c].iloc[0]) for c in "ab"})
    assert np.array_equal(got[~HIT], model.predict(plain_rows[~HIT].astype(train.dtypes)))
    assert {one.unknown_as for one in jitter.calibration_.values()} == {"missing"}


# -- calibration ------------------------------------------------------------------------------------


def columns_of_cars(told, seed=0):
    """Twenty-four cars in three sorts; `body` tells the sort, or nothing."""
    random = np.random.default_rng(seed)
    car = random.integers(0, 24, 1500)
    body = car % 3 if told else random.integers(0, 3, 1500)
    frame = pd.DataFrame(
        {"car": [f"c{v}" for v in car], "body": [f"b{v}" for v in body], "n": random.normal(size=1500)}
    )
    effect = (car % 3) * 2.0 if told else random.normal(size=24)[car] * 2
    return frame, effect + 0.3 * frame["n"] + 0.3 * random.normal(size=1500)


@pytest.mark.parametrize("average", ["probability", "raw"])
@pytest.mark.parametrize("task", ["regression", "binary"])
def test_calibration_reports_what_it_found(task, average):
    frame, y = columns_of_cars(told=True)
    y = y if task == "regression" else (y > 2).astype(int)
    held = frame["car"].isin(["c0", "c1", "c2", "c3", "c4", "c5"])
    model = booster_of("lightgbm", task).fit(frame[~held], y[~held])
    encoder = TIWSEncoder(cols=["car"], target_type="auto").fit(frame[~held], y[~held])
    jitter = JitterPredictor(model, encoder, average=average).calibrate(frame[~held], y[~held])
    found = jitter.calibration_["car"]
    assert found.calibrated <= found.uncalibrated
    assert found.rows == 800
    assert found.categories == 18
    report = jitter.describe()
    assert report["used"].tolist() == [found.used]
    assert report.columns.tolist()[:4] == ["column", "used", "rate", "name_rate"]


def blind_to_body(frame, y):
    """A model that sees the car alone: all it can learn of new ones comes through donors."""
    columns = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["car"]))
    return make_pipeline(columns, Ridge(alpha=0.1)).fit(frame, y)


def test_calibration_helps_cars_that_were_held_out():
    frame, y = columns_of_cars(told=True)
    held = frame["car"].isin(["c0", "c1", "c2", "c3", "c4", "c5"])
    model = blind_to_body(frame[~held], y[~held])
    encoder = TIWSEncoder(cols=["car"], target_type="continuous").fit(frame[~held], y[~held])
    jitter = JitterPredictor(model, encoder).calibrate(frame[~held], y[~held])
    found = jitter.calibration_["car"]
    assert found.used == "jitter"
    assert found.default - found.calibrated > found.error
    loss = np.mean((jitter.predict(frame[held]) - y[held]) ** 2)
    assert loss < 0.3 * np.mean((model.predict(frame[held]) - y[held]) ** 2)


def test_calibration_falls_back_where_documents_are_noise():
    frame, y = columns_of_cars(told=False)
    held = frame["car"].isin(["c0", "c1", "c2", "c3", "c4", "c5"])
    model = blind_to_body(frame[~held], y[~held])
    encoder = TIWSEncoder(cols=["car"], target_type="continuous").fit(frame[~held], y[~held])
    jitter = JitterPredictor(model, encoder)
    before = jitter.predict(frame[held])
    jitter.calibrate(frame[~held], y[~held])
    assert jitter.calibration_["car"].used == "default"
    assert jitter.describe()["used"].tolist() == ["default"]
    assert np.array_equal(jitter.predict(frame[held]), model.predict(frame[held]))
    assert not np.array_equal(before, model.predict(frame[held]))


@pytest.mark.parametrize("seed", range(6))
def test_donors_of_a_column_that_the_model_does_not_use_are_not_used(seed):
    """All losses were the same up to rounding, which decided."""
    random = np.random.default_rng(seed)
    X = pd.DataFrame({"a": random.choice(list("uvwx"), 90), "b": random.choice(list("pqr"), 90)})
    y = (random.random(90) < X["b"].map({"p": 0.2, "q": 0.5, "r": 0.9})).astype(int)
    columns = make_column_transformer((OneHotEncoder(), ["b"]))
    model = make_pipeline(columns, LogisticRegression()).fit(X, y)
    jitter = JitterPredictor(model, TIWSEncoder(cols="a", target_type="classes").fit(X, y)).calibrate(X, y)
    found = jitter.describe().iloc[0]
    assert found["used"] == "default"
    np.testing.assert_allclose(found[["uncalibrated", "calibrated"]].astype(float), found["default"], rtol=1e-12)


@pytest.mark.slow
def test_calibration_leaves_the_rows_own_symbol_out_and_finds_the_best_rate():
    from tabsym.tiws.unknown import RATES

    frame, y = columns_of_cars(told=True, seed=3)
    model = blind_to_body(frame, y)
    encoder = TIWSEncoder(cols=["car"], target_type="continuous").fit(frame, y)
    rows, target = frame.head(25), np.asarray(y)[:25]
    found = JitterPredictor(model, encoder).calibrate(rows, target).calibration_["car"]
    fitted = encoder.columns_["car"].fitted
    losses = []
    for rate in RATES:
        total = 0.0
        for row in range(25):
            code = fitted.categories.index(rows["car"].iloc[row])
            between = fitted.between(fitted.as_unseen(np.array([code])))
            logits = -rate * between.distances[0] / fitted.rule.unit
            weights = fitted.rule.known * np.exp(logits)
            weights[fitted.donors == code] = 0.0
            tried = rows.iloc[[row] * len(weights)].assign(car=[fitted.categories[k] for k in fitted.donors])
            answers = model.predict(tried)
            total += (np.average(answers, weights=weights) - target[row]) ** 2
        losses.append(total / 25)
    assert found.calibrated == pytest.approx(min(losses), rel=1e-9)
    rule = found.rule or fitted.rule
    assert losses[RATES.index(rule.rate)] == pytest.approx(min(losses), rel=1e-9)


def test_the_error_is_over_symbols():
    random = np.random.default_rng(0)
    difference, group, weight = random.normal(1.0, 1.0, 50), np.arange(50) % 5, random.random(50)
    mean = (difference * weight).sum() / weight.sum()
    residuals = []
    for category in range(5):
        mine = group == category
        residuals.append(sum(w * (d - mean) for w, d in zip(weight[mine], difference[mine], strict=True)))
    wanted = np.sqrt(5 / 4 * sum(r * r for r in residuals)) / weight.sum()
    assert _error(difference, group, weight) == pytest.approx(wanted, rel=1e-12)
    assert _error(difference, np.zeros(50, dtype=int), weight) == np.inf


def test_a_model_that_refuses_what_it_has_not_seen_needs_donors():
    frame, y = columns_of_cars(told=False)
    columns = make_column_transformer((OneHotEncoder(), ["car"]))
    model = make_pipeline(columns, Ridge()).fit(frame, y)
    encoder = TIWSEncoder(cols=["car"], target_type="continuous").fit(frame, y)
    jitter = JitterPredictor(model, encoder).calibrate(frame, y, n_rows=100)
    assert jitter.calibration_["car"].used == "jitter"
    assert np.isnan(jitter.calibration_["car"].default)
    again = pickle.loads(pickle.dumps(jitter))  # noqa: S301
    rows = frame.head(5).assign(car="new")
    assert np.array_equal(again.predict(rows), jitter.predict(rows))


def test_calibration_of_many_donors_names_and_counts():
    random = np.random.default_rng(0)
    code = random.integers(0, 150, 1500)
    frame = pd.DataFrame({"car": [f"sort{v % 3} {v}" for v in code], "n": random.normal(size=1500)})
    y = random.poisson(np.exp(code % 3 / 2))
    model = booster_of("lightgbm", "count").fit(frame, y)
    encoder = TIWSEncoder(cols=["car"], target_type="continuous", names=True).fit(frame, y)
    jitter = JitterPredictor(model, encoder).calibrate(frame, y, loss="poisson", sample_weight=np.ones(1500))
    found = jitter.calibration_["car"]
    assert (found.rule or encoder.columns_["car"].fitted.rule).name_rate > 0
    assert found.calibrated <= found.uncalibrated


# -- as an estimator ----------------------------------------------------------------------------------


def test_it_is_an_estimator():
    model, encoder = fitted("lightgbm", "binary")
    jitter = JitterPredictor(model, encoder, max_donors=3)
    again = clone(jitter)
    assert again.model is model
    assert again.encoder is encoder
    assert again.get_params(deep=False) == jitter.get_params(deep=False)
    assert is_classifier(jitter)
    assert is_regressor(JitterPredictor(*fitted("lightgbm", "regression")))
    assert jitter.classes_.tolist() == [0, 1]
    assert list(jitter.feature_names_in_) == list(X)
    assert 0.7 < jitter.score(NEW, (table(1, 24)[1] > np.median(SCORE)).astype(int)) <= 1
    assert jitter.fit(X, TARGETS["binary"]).model_ is model


def test_parts_that_are_not_fitted_are_cloned_and_fitted():
    model, encoder = booster_of("lightgbm", "regression"), TIWSEncoder(cols=["a", "b"], target_type="continuous")
    jitter = JitterPredictor(model, encoder)
    with pytest.raises(NotFittedError, match="model of this JitterPredictor is not fitted"):
        jitter.predict(NEW)
    jitter.fit(X, SCORE)
    assert jitter.model_ is not model
    assert not hasattr(encoder, "columns_")
    np.testing.assert_array_equal(jitter.predict(NEW), JitterPredictor(*fitted("lightgbm", "regression")).predict(NEW))


def test_cross_validation_fits_it_anew():
    model, encoder = booster_of("lightgbm", "binary", 3), TIWSEncoder(cols=["a", "b"], target_type="classes")
    scores = cross_val_score(JitterPredictor(model, encoder), X, TARGETS["binary"], cv=2)
    assert (scores > 0.6).all()


def test_chosen_columns_only():
    model, encoder = fitted("lightgbm", "regression")
    rows = NEW.assign(b=NEW["b"].where(NEW["a"].isin(X["a"]), "u"))
    only = JitterPredictor(model, encoder, columns="a").predict(rows)
    b_only = ~rows["b"].isin(X["b"]).to_numpy()
    assert b_only.any()
    assert np.array_equal(only[b_only], model.predict(rows[b_only]))


def test_errors_are_sentences():
    model, encoder = fitted("lightgbm", "binary")
    wrong = [
        ({"average": "median"}, "average='median' is not known"),
        ({"max_donors": 0}, "max_donors=0 is not possible"),
        ({"columns": ["k"]}, "columns names 'k', which the encoder does not encode"),
    ]
    for options, message in wrong:
        with pytest.raises(ValueError, match=message):
            JitterPredictor(model, encoder, **options).predict(NEW)
    with pytest.raises(TypeError, match="encoder takes a TIWSEncoder, not LogisticRegression"):
        JitterPredictor(model, LogisticRegression()).predict(NEW)
    with pytest.raises(ValueError, match="n_draws=0 is not possible"):
        JitterPredictor(model, encoder).predict(NEW, n_draws=0)
    with pytest.raises(ValueError, match="loss='poisson' is not known for classifiers"):
        JitterPredictor(model, encoder).calibrate(X, TARGETS["binary"], loss="poisson")
    with pytest.raises(ValueError, match="Every row has an unknown category or weight 0"):
        JitterPredictor(model, encoder).calibrate(NEW[HIT], np.arange(HIT.sum()) % 2)
    with pytest.raises(ValueError, match=r"not among the classes .* or fit the model on all classes"):
        JitterPredictor(model, encoder).calibrate(X, np.arange(len(X)) % 3)
    with pytest.raises(ValueError, match="feature names should match"):
        JitterPredictor(model, encoder).predict(NEW.drop(columns="k"))
    columns = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["a", "b"]))
    ridge = make_pipeline(columns, Ridge()).fit(X, SCORE)
    with pytest.raises(ValueError, match="Ridge has none; use average='probability'"):
        JitterPredictor(ridge, encoder, average="raw").predict(NEW)
    machine = make_pipeline(columns, LinearSVC()).fit(X, TARGETS["binary"])
    with pytest.raises(ValueError, match="LinearSVC lacks; use average='raw'"):
        JitterPredictor(machine, encoder).predict(NEW)
    assert set(JitterPredictor(machine, encoder, average="raw").predict(NEW)) == {0, 1}


class _AtTheEnd:
    """A generator that draws what rounding can make of the largest share."""

    def random(self, n):
        return np.ones(n)


def test_a_draw_at_the_end_is_the_last_donor_that_is_kept():
    """And not the first of the next document, nor one that was left out."""
    weights = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
    for most, last in ((None, [2, 0]), (2, [1, 1])):
        mixture = Mixture.of([Donors(np.array([0, 1]), weights)], most)
        ((rows, (drawn,), shares),) = mixture.draws(4, _AtTheEnd())
        assert rows.tolist() == [0, 1] and drawn.tolist() == last and shares.tolist() == [1, 1]


def test_by_the_poster_no_symbol_is_its_own_donor():
    encoder = TIWSEncoder(cols=["a"], target_type="continuous", method="poster").fit(X, SCORE)
    fitted = encoder.columns_["a"].fitted
    places = np.arange(len(fitted.donors))
    documents = fitted.pairs.documents(fitted.number, fitted.donors)
    seen = Documents(documents, [fitted.categories[code] for code in fitted.donors], fitted.sums.rows[fitted.donors])
    own = np.where(places % 3 == 0, -1, places)
    weights = fitted.weights(seen, np.where(own < 0, -1, fitted.donors[own]))
    plain = fitted.weights(seen)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    for row, place in enumerate(own):
        if place < 0:
            np.testing.assert_array_equal(weights[row], plain[row])
        else:
            assert plain[row, place] > 0 and weights[row, place] == 0
