"""Training one contender: exposures, offsets, weights, classes that are absent, names of the user's own."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from tabsym_xgboost import XGBLabelClassifier

from tabsym import TIWSEncoder
from tabsym.compare.contenders import all_contenders
from tabsym.compare.estimators import FilledEncoder
from tabsym.compare.fitting import Budget, Data, _unknown_names, train, tune, weights_for
from tabsym.compare.metrics import METRICS
from tabsym.compare.target_encoded import PlainPolynomialWrapper, PlainTargetEncoder

N = 200


class Recorder(RegressorMixin, BaseEstimator):
    """Keeps what it is trained with; predicts the number of the row."""

    def fit(self, X, y, sample_weight=None):
        self.X_, self.y_, self.weight_ = X, np.array(y), sample_weight
        return self

    def predict(self, X):
        return np.arange(len(X), dtype=float)


class Unweighted(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.y_ = np.array(y)
        return self

    def predict(self, X):
        return np.ones((len(X), 1))


class Step(TransformerMixin, BaseEstimator):
    """A step that takes weights."""

    def fit(self, X, y=None, sample_weight=None):
        self.weight_ = sample_weight
        return self

    def transform(self, X):
        return X


class PlainStep(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


class Namer(ClassifierMixin, BaseEstimator):
    """Its classes in an order of its own; the most probable is the class in the column `truth`."""

    def __init__(self, order="sorted"):
        self.order = order

    def fit(self, X, y):
        self.y_ = np.array(y)
        classes = sorted(set(y.tolist()), reverse=self.order == "reversed")
        self.classes_ = np.array(classes, dtype=np.asarray(y).dtype)
        return self

    def predict_proba(self, X):
        return np.array([[0.9 if c == truth else 0.1 / 9 for c in self.classes_] for truth in X["truth"]])


def numbers(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    return rng, X


# Counts with an exposure.


def poisson_with_offset(X, y, offset, weight):
    """Newton's method on the likelihood of y ~ Poisson(exp(b + X w + offset))."""
    design = np.column_stack([np.ones(len(X)), X])
    w = np.zeros(design.shape[1])
    w[0] = np.log((weight * y).sum() / (weight * np.exp(offset)).sum())
    for _ in range(100):
        mu = np.exp(design @ w + offset)
        step = np.linalg.solve((design * (weight * mu)[:, None]).T @ design, design.T @ (weight * (y - mu)))
        w += step
        if np.abs(step).max() < 1e-13:
            break
    return w


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_an_exposure_is_the_offset_of_a_poisson_model(weighted, seed):
    rng, X = numbers(seed)
    exposure = rng.uniform(0.05, 3, N)
    weight = rng.gamma(2, 1, N) if weighted else None
    y = rng.poisson(exposure * np.exp(0.3 + X.to_numpy() @ [0.5, -0.4, 0.2])).astype(float)
    data = Data(X, y, "count", exposure=exposure, weight=weight)
    trained = train(PoissonRegressor(alpha=0, tol=1e-12, max_iter=10_000, solver="newton-cholesky"), data)
    w = poisson_with_offset(X.to_numpy(), y, np.log(exposure), np.ones(N) if weight is None else weight)
    assert trained.model.intercept_ == pytest.approx(w[0], abs=1e-6)
    np.testing.assert_allclose(trained.model.coef_, w[1:], atol=1e-6)
    want = exposure * np.exp(w[0] + X.to_numpy() @ w[1:])
    np.testing.assert_allclose(trained.predict(data), want, rtol=1e-6)
    total = weight if weighted else np.ones(N)
    assert (total * trained.predict(data)).sum() == pytest.approx((total * y).sum())
    assert not trained.unweighted


def test_predictions_grow_with_the_exposure():
    rng, X = numbers()
    y = rng.poisson(2.0, N).astype(float)
    trained = train(PoissonRegressor(), Data(X, y, "count", exposure=rng.uniform(1, 2, N)))
    one = trained.predict(Data(X, y, "count", exposure=np.ones(N)))
    np.testing.assert_allclose(trained.predict(Data(X, y, "count", exposure=np.full(N, 2.5))), 2.5 * one)


def test_the_rate_and_the_weight_that_a_contender_sees():
    y, exposure, weight = np.array([0.0, 1, 6]), np.array([0.5, 2.0, 3.0]), np.array([1.0, 10.0, 100.0])
    X = pd.DataFrame({"a": [1, 2, 3]})
    for w, want in ((None, exposure), (weight, exposure * weight)):
        data = Data(X, y, "count", exposure=exposure, weight=w)
        trained = train(Recorder(), data)
        np.testing.assert_array_equal(trained.model.y_, [0, 0.5, 2])
        np.testing.assert_allclose(trained.model.weight_, want / want.mean())  # beside each other
        np.testing.assert_array_equal(trained.predict(data), [0, 2, 6])  # rows 0, 1, 2 times the exposure


@pytest.mark.parametrize(
    "model", [Unweighted(), KNeighborsRegressor(), make_pipeline(Step(), Unweighted())], ids=["own", "knn", "pipeline"]
)
def test_an_exposure_needs_weights(model):
    rng, X = numbers()
    with pytest.raises(ValueError, match="sample_weight"):
        train(model, Data(X, rng.poisson(1.0, N), "count", exposure=np.ones(N)))


# Amounts with an offset.


def test_an_offset_is_taken_off_and_added():
    rng, X = numbers()
    offset = rng.normal(10, 5, N)
    y = offset + X.to_numpy() @ [1.0, 2.0, 3.0] + 4
    later = Data(X, y, "regression", offset=rng.normal(0, 100, N))
    trained = train(LinearRegression(), Data(X, y, "regression", offset=offset))
    np.testing.assert_allclose(trained.model.coef_, [1, 2, 3])
    np.testing.assert_allclose(trained.predict(later), X.to_numpy() @ [1.0, 2.0, 3.0] + 4 + later.offset)
    assert not train(Unweighted(), Data(X, y, "regression", offset=offset)).unweighted  # needs no weights


def test_offsets_and_weights_together():
    rng, X = numbers()
    offset, weight = rng.normal(size=N), rng.gamma(1, 1, N)
    data = Data(X, rng.normal(size=N), "regression", offset=offset, weight=weight)
    trained = train(DummyRegressor(), data)
    np.testing.assert_allclose(trained.predict(data), offset + np.average(data.y - offset, weights=weight))


# Weights.


def test_weights_reach_the_steps_of_nested_pipelines_that_take_them():
    rng, X = numbers()
    weight = rng.gamma(1, 1, N)
    inner = Pipeline([("plain", PlainStep()), ("step", Step()), ("nothing", "passthrough")])
    model = Pipeline([("first", Step()), ("skip", None), ("inner", inner), ("out", make_pipeline(Step(), Recorder()))])
    data = Data(X, rng.normal(size=N), "regression", weight=weight)
    trained = train(model, data)
    fitted = trained.model
    assert not trained.unweighted
    np.testing.assert_allclose(fitted["first"].weight_, weight / weight.mean())
    np.testing.assert_allclose(fitted["out"][0].weight_, weight / weight.mean())
    np.testing.assert_allclose(fitted["out"][1].weight_, weight / weight.mean())


def test_weights_reach_a_pipeline_within_that_ends_in_a_transformer():
    rng, X = numbers()
    weight = rng.gamma(1, 1, N)
    model = Pipeline([("inner", Pipeline([("a", PlainStep()), ("b", Step())])), ("out", Recorder())])
    fitted = train(model, Data(X, rng.normal(size=N), "regression", weight=weight)).model
    np.testing.assert_allclose(fitted["inner"]["b"].weight_, weight / weight.mean())
    np.testing.assert_allclose(fitted["out"].weight_, weight / weight.mean())


def test_a_step_before_one_that_takes_none_is_weighted_too():
    """ "Every step of a pipeline that takes them", wherever in it."""
    rng, X = numbers()
    weight = rng.gamma(1, 1, N)
    model = Pipeline([("inner", Pipeline([("b", Step()), ("a", PlainStep())])), ("out", Recorder())])
    fitted = train(model, Data(X, rng.normal(size=N), "regression", weight=weight)).model
    np.testing.assert_allclose(fitted["inner"]["b"].weight_, weight / weight.mean())


@pytest.mark.parametrize(
    "model",
    [Unweighted(), make_pipeline(Step(), Unweighted()), make_pipeline(Step(), make_pipeline(Step(), Unweighted()))],
)
def test_weights_are_left_out_and_it_is_said_where_the_last_step_takes_none(model):
    rng, X = numbers()
    y = rng.normal(size=N)
    assert weights_for(model, np.ones(N)) == {}
    trained = train(model, Data(X, y, "regression", weight=rng.gamma(1, 1, N)))
    assert trained.unweighted
    assert not train(model, Data(X, y, "regression")).unweighted
    assert trained.predict(Data(X, y, "regression")).shape == (N,)


def test_without_weights_none_are_handed_over():
    rng, X = numbers()
    assert train(make_pipeline(Step(), Recorder()), Data(X, rng.normal(size=N), "regression")).model[1].weight_ is None


def test_weighted_scaling_and_regression_are_those_of_repeated_rows():
    rng, X = numbers()
    times = rng.integers(0, 4, N)
    y = rng.normal(size=N)
    model = make_pipeline(StandardScaler(), LinearRegression())
    weighted = train(model, Data(X, y, "regression", weight=times.astype(float)))
    rows = np.repeat(np.arange(N), times)
    repeated = train(model, Data(X, y, "regression").rows(rows))
    np.testing.assert_allclose(
        weighted.predict(Data(X, y, "regression")), repeated.predict(Data(X, y, "regression")), atol=1e-10
    )
    np.testing.assert_allclose(weighted.model[0].mean_, X.iloc[rows].mean())


def test_the_model_itself_stays_untrained():
    rng, X = numbers()
    model = make_pipeline(Step(), Recorder())
    data = Data(X, rng.normal(size=N), "regression", weight=np.ones(N), offset=np.ones(N))
    before = data.y.copy()
    train(model, data)
    assert not hasattr(model[1], "y_")
    np.testing.assert_array_equal(data.y, before)


@pytest.mark.parametrize("exposure", [None, np.linspace(0.5, 2, N)], ids=["weights", "exposures"])
def test_weights_reach_a_search_over_something_that_takes_them(exposure):
    """Such a search hands on whatever its fit is given, so it takes weights if what it searches does."""
    rng, X = numbers()
    data = Data(X, rng.poisson(1.0, N).astype(float), "count", weight=rng.gamma(1, 1, N), exposure=exposure)
    for inner, name in ((PoissonRegressor(), "alpha"), (make_pipeline(PoissonRegressor()), "poissonregressor__alpha")):
        searched = train(GridSearchCV(inner, {name: [0.1]}, cv=2), data)
        plain = train(PoissonRegressor(alpha=0.1), data)
        assert not searched.unweighted
        np.testing.assert_allclose(searched.predict(data), plain.predict(data))


# Classes.


@settings(max_examples=60, deadline=None)
@given(st.sets(st.integers(0, 5), min_size=2, max_size=5), st.integers(0, 1000))
def test_a_class_that_training_lacks_gets_probability_zero(present, seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(sorted(present), 60)
    y[: len(present)] = sorted(present)
    X = pd.DataFrame({"a": y + 0.0})
    data = Data(X, y, "multiclass", 6)
    p = train(DecisionTreeClassifier(), data).predict(data)
    assert p.shape == (60, 6)
    np.testing.assert_array_equal(p, np.eye(6)[y])  # the tree tells them apart
    prior = train(DummyClassifier(), data).predict(data)
    np.testing.assert_allclose(prior, np.tile(np.bincount(y, minlength=6) / 60, (60, 1)))


@pytest.mark.parametrize("names", [None, ["n", "y"], [0, 1], [False, True], [10, -5]])
def test_two_classes_of_which_one_is_never_trained_on(names):
    names = None if names is None else np.array(names)
    X = pd.DataFrame({"a": np.zeros(5)})
    trained = train(DummyClassifier(), Data(X, np.ones(5, dtype=np.int64), "binary", 2, names=names))
    np.testing.assert_array_equal(trained.predict(Data(X, np.zeros(5), "binary", 2, names=names)), [[0, 1]] * 5)


NAMES = {
    "sorted": np.array(["a", "b", "c", "d"]),
    "any order": np.array(["low", "mid", "high", "top"]),
    "objects": np.array(["zz", "b", "y", "a"], dtype=object),
    "numbers": np.array([10, -3, 7, 0]),
}


@pytest.mark.parametrize("order", ["sorted", "reversed"])
@pytest.mark.parametrize("lacking", [None, 0, 2, 3])
@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_the_users_names_arrive_and_their_columns_are_found(names, lacking, order):
    codes = np.arange(40) % 4
    codes = codes[codes != lacking]
    X = pd.DataFrame({"truth": names[codes]})
    data = Data(X, codes, "multiclass", 4, names=names)
    trained = train(Namer(order), data)
    assert trained.model.y_.tolist() == names[codes].tolist()
    p = trained.predict(data)
    np.testing.assert_array_equal(p.argmax(axis=1), codes)
    np.testing.assert_allclose(p[np.arange(len(codes)), codes], 0.9)
    if lacking is not None:
        assert (p[:, lacking] == 0).all()


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize(
    "model",
    [
        KNeighborsClassifier(1),
        make_pipeline(StandardScaler(), LogisticRegression(C=1e4)),
        GridSearchCV(DecisionTreeClassifier(), {"max_depth": [None]}, cv=2),
    ],
    ids=["knn", "pipeline", "search"],
)
def test_names_with_contenders_of_scikit_learn(model, names):
    codes = np.random.default_rng(0).permutation(np.arange(80) % 4)
    X = pd.DataFrame(np.eye(4)[codes], columns=list("wxyz"))
    data = Data(X, codes, "multiclass", 4, names=names)
    np.testing.assert_array_equal(train(model, data).predict(data).argmax(axis=1), codes)


class Nameless(BaseEstimator):
    """A classifier that keeps its classes to itself: columns are in sorted order, as everywhere in scikit-learn."""

    def fit(self, X, y):
        self._known = np.unique(y)
        return self

    def predict_proba(self, X):
        return (np.asarray(X["truth"])[:, None] == self._known[None, :]) * 1.0


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_a_contender_without_classes_is_taken_to_sort_them(names):
    codes = np.arange(40) % 4
    data = Data(pd.DataFrame({"truth": names[codes]}), codes, "multiclass", 4, names=names)
    np.testing.assert_array_equal(train(Nameless(), data).predict(data).argmax(axis=1), codes)


def test_names_play_no_role_for_numbers():
    X = pd.DataFrame({"a": [1, 2, 3]})
    assert train(Recorder(), Data(X, np.array([1.0, 2, 3]), "regression")).model.y_.tolist() == [1, 2, 3]


def test_weights_of_classes():
    y = np.array([0, 0, 2, 2])
    data = Data(pd.DataFrame({"a": np.zeros(4)}), y, "multiclass", 3, weight=np.array([1.0, 1.0, 2.0, 4.0]))
    np.testing.assert_allclose(train(DummyClassifier(), data).predict(data), [[0.25, 0, 0.75]] * 4)


# Rows and frames.


def rows_of(X, places):
    """The rows of a frame at these places, as `Data` has them."""
    return Data(X, np.zeros(len(X)), "regression").rows(places).X


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_rows_of_any_frame(make):
    columns = {"a": list(range(10)), "s": [f"s{k}" for k in range(10)]}
    places = np.array([7, 0, 7, 3])
    taken = rows_of(make(columns), places)
    assert type(taken) is type(make(columns))
    got = taken.to_pydict() if make is pa.table else {name: list(taken[name]) for name in columns}
    assert got == {name: [values[place] for place in places] for name, values in columns.items()}
    assert len(rows_of(make(columns), np.empty(0, dtype=np.int64))) == 0


def test_rows_have_an_index_of_their_own_and_keep_types():
    X = pd.DataFrame(
        {"a": pd.array([1, None, 3], dtype="Int64"), "c": pd.Categorical(["x", "y", "x"])}, index=["r", "r", "q"]
    )
    taken = rows_of(X, np.array([2, 1]))
    assert taken.index.tolist() == [0, 1]
    assert (taken.dtypes == X.dtypes).all()
    assert X.index.tolist() == ["r", "r", "q"]


def test_rows_of_all_that_belongs_to_them():
    rng, X = numbers()
    parts = {name: rng.uniform(1, 2, N) for name in ("y", "weight", "exposure", "offset")}
    names = np.array(["a", "b"])
    places = np.array([5, 3, 150])
    rows = Data(X, task="count", names=names, n_classes=2, **parts).rows(places)
    for name, values in parts.items():
        np.testing.assert_array_equal(getattr(rows, name), values[places])
    assert rows.X["a"].tolist() == X["a"].iloc[places].tolist()
    assert rows.names is names
    assert (rows.task, rows.n_classes) == ("count", 2)
    bare = Data(X, parts["y"], "count").rows(places)
    assert bare.weight is bare.exposure is bare.offset is None


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_reach_the_contender_as_they_are(make):
    rng = np.random.default_rng(0)
    frame = make({"a": rng.normal(size=50), "b": rng.normal(size=50)})
    data = Data(frame, rng.normal(size=50), "regression")
    rows = data.rows(np.arange(40))
    assert type(train(Recorder(), rows).model.X_) is type(frame)
    trained = train(HistGradientBoostingRegressor(), rows)
    later = data.rows(np.arange(40, 50))
    assert trained.predict(later).shape == (10,)
    np.testing.assert_array_equal(trained.predict(later), trained.predict(data)[40:])


@pytest.mark.parametrize(
    ("task", "model"),
    [("multiclass", DecisionTreeClassifier()), ("regression", LinearRegression()), ("count", PoissonRegressor())],
)
def test_no_rows(task, model):
    _, X = numbers()
    data = Data(X, np.arange(N) % 3, task, 3)
    out = train(model, data).predict(data.rows(np.empty(0, dtype=np.int64)))
    assert out.shape == ((0, 3) if task == "multiclass" else (0,))


def test_predictions_of_one_column_are_numbers():
    rng, X = numbers()
    data = Data(X, rng.normal(size=N), "regression", offset=np.arange(float(N)))
    np.testing.assert_array_equal(train(Unweighted(), data).predict(data), 1 + np.arange(float(N)))


def test_classes_named_by_fractions_are_handed_over_as_codes():
    """scikit-learn takes fractions for amounts, and its classifiers refuse them."""
    codes = np.arange(40) % 2
    data = Data(pd.DataFrame({"x": codes * 1.0}), codes, "binary", 2, names=np.array([0.5, 1.5]))
    probability = train(LogisticRegression(C=1e6), data).predict(data)
    np.testing.assert_array_equal(probability.argmax(axis=1), codes)


# Weights, in every contender that comes with the package.

WEIGHED = [
    pytest.param(name, task, id=f"{name}-{task}")
    for name, one in all_contenders().items()
    for task in ("binary", "multiclass", "regression", "count")
    if name != "constant" and task in one.tasks
]


@pytest.mark.parametrize(("name", "task"), WEIGHED)
def test_every_contender_takes_weights_in_each_step_that_learns_from_the_target(name, task):
    model = all_contenders()[name].estimator(task, 0, 1, "a", "log_loss")
    names = list(weights_for(model, np.ones(3)))
    assert names
    while isinstance(model, Pipeline):
        for step, one in model.steps[:-1]:
            assert not get_tags(one).target_tags.required or f"{step}__sample_weight" in names
        names = [rest.split("__", 1)[1] for rest in names if rest.startswith(f"{model.steps[-1][0]}__")]
        model = model.steps[-1][1]
    inner = getattr(model, "estimator", None)
    assert inner is None or weights_for(inner, np.ones(3))


@pytest.mark.parametrize("classes", [2, 3])
def test_rows_of_hardly_any_weight_do_not_move_classes_by_xgboost(classes):
    rng, X = numbers()
    y = rng.integers(0, classes, N)
    weight = np.where(np.arange(N) % 2, 1.0, 1e-9)
    other = np.where(weight < 1, (y + 1) % classes, y)
    model = XGBLabelClassifier(n_estimators=10)
    full = X[weight == 1.0]
    one, two = (clone(model).fit(X, target, sample_weight=weight).predict_proba(full) for target in (y, other))
    np.testing.assert_allclose(one, two, atol=1e-5)
    plain = clone(model).fit(X, y).predict_proba(full)
    assert np.abs(one - plain).max() > 0.1


@pytest.mark.parametrize("classes", [None, 3])
def test_weights_of_the_target_encoding_are_repeated_rows(classes):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(list("abcde"), N), "b": rng.choice(["x", None], N), "n": rng.normal(size=N)})
    y = rng.normal(size=N) if classes is None else rng.integers(0, classes, N)
    times = rng.integers(0, 4, N)
    times[X["a"] == "e"], times[:20] = 0, 1  # classes in the same order of appearance
    encoder = PlainTargetEncoder() if classes is None else PlainPolynomialWrapper(PlainTargetEncoder())
    weighed = clone(encoder).fit(X, y, sample_weight=times.astype(float))
    rows = np.repeat(np.arange(N), times)
    repeated = clone(encoder).fit(X.iloc[rows].reset_index(drop=True), y[rows])
    pd.testing.assert_frame_equal(weighed.transform(X), repeated.transform(X))
    assert "_weight" not in vars(weighed)


def test_neighbours_of_unknown_categories_count_by_their_weight():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(list("abcde"), N), "n": rng.normal(size=N)})
    y, weight = rng.normal(size=N), rng.integers(0, 3, N).astype(float)
    fill = FilledEncoder(TIWSEncoder(cols=["a"], cv=None, numeric="passthrough"), "a")
    found = fill.fit(X, y, sample_weight=weight).transform(X.assign(a="new"))["a"].to_numpy()
    near = np.abs(X["n"].to_numpy()[:, None] - X["n"].to_numpy()).argsort(axis=1)[:, :40]
    wanted = (weight[near] * y[near]).sum(axis=1) / weight[near].sum(axis=1)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


class Backwards(ClassifierMixin, BaseEstimator):
    """Logistic regression with its classes in reverse order."""

    def fit(self, X, y):
        self.inner_ = LogisticRegression().fit(X, y)
        self.classes_ = self.inner_.classes_[::-1]
        return self

    def predict_proba(self, X):
        return self.inner_.predict_proba(X)[:, ::-1]


@pytest.mark.parametrize("names", [[1.0, 2.0, 3.0], [0.5, 1.5, 2.5], ["a", "b", "c"], None])
def test_classes_of_a_model_are_read_in_its_order(names):
    rng, X = numbers()
    y = rng.integers(1, 3, N)  # one class is absent
    data = Data(X, y, "multiclass", n_classes=3, names=None if names is None else np.array(names))
    found = train(Backwards(), data).predict(data)
    np.testing.assert_allclose(found[:, 1:], LogisticRegression().fit(X, y).predict_proba(X))
    assert not found[:, 0].any()


def test_a_search_space_with_a_name_that_is_no_parameter_fails():
    rng, X = numbers()
    data = Data(X, rng.normal(size=N), "regression")
    halves = np.arange(0, N, 2), np.arange(1, N, 2)
    metric = METRICS["regression"]["rmse"]
    pipe = make_pipeline(StandardScaler(), Ridge())
    with pytest.raises(ValueError, match=r"names \['ridge__alhpa'\], which its set_params\(\) does not take"):
        tune(pipe, {"ridge__alhpa": [1.0]}, data, halves, metric, Budget(settings=3), 0)
    steps = {"ridge": [PoissonRegressor(), Ridge()], "ridge__warm_start": [True]}  # a parameter of one of them
    found = tune(pipe, steps, data, halves, metric, Budget(settings=3), 0)
    assert (found.tried, found.failed) == (3, 2)


@pytest.mark.parametrize(("name", "task"), WEIGHED)
def test_every_contender_takes_its_own_search_space(name, task):
    """CatBoost lists the parameters that were given only, and takes others."""
    contender = all_contenders()[name]
    assert _unknown_names(contender.estimator(task, 0, 1, "a", "log_loss"), contender.space(task), 0) == []


def test_weights_of_a_fit_that_failed_are_forgotten():
    X = pd.DataFrame({"a": list("abcd") * 10})
    y = np.arange(40.0)
    for encoder in (PlainTargetEncoder(handle_missing="error"), PlainPolynomialWrapper(PlainTargetEncoder())):
        labels = y if isinstance(encoder, PlainTargetEncoder) else np.arange(40) % 3
        with pytest.raises((ValueError, AttributeError)):
            encoder.fit(X.assign(a=None) if labels is y else X, labels if labels is y else None, sample_weight=y)
        found = encoder.fit(X, labels).transform(X)
        pd.testing.assert_frame_equal(found, clone(encoder).fit(X, labels).transform(X))
