"""Wide models over Dask: what the same rows in memory give, on a cluster in this process."""

import pickle

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster, default_client
from sklearn.base import clone
from tabsym_dask import DaskWideClassifier, DaskWideRegressor, engine

from tabsym import WideClassifier, WideRegressor, load, save

RNG = np.random.default_rng(0)
N = 3_000
STORE, WEEK = RNG.choice(90, N), RNG.choice(7, N)
TABLE = pd.DataFrame({"store": STORE, "week": WEEK, "x": RNG.normal(size=N)})
SCORE = STORE % 7 * 0.3 + np.sin(2 * TABLE["x"]) + STORE % 3 * WEEK % 5 * 0.2 - 1.2
TABLE["store"] = "s" + TABLE["store"].astype(str)
TABLE["week"] = TABLE["week"].map(lambda week: f"w{week}" if week else None)
TABLE.loc[TABLE.index % 40 == 7, "x"] = np.nan
TABLE["weight"] = RNG.uniform(0.5, 2.0, N)
TABLE["two"] = np.where(RNG.uniform(size=N) < 1.0 / (1.0 + np.exp(-SCORE)), "yes", "no")
TABLE["three"] = np.array(list("uvw"))[
    np.argmax(np.stack([SCORE, 0.5 + 0 * SCORE, -SCORE], 1) + RNG.gumbel(size=(N, 3)), 1)
]
TABLE["amount"] = SCORE + RNG.normal(size=N)
TABLE["count"] = RNG.poisson(np.exp(0.3 * SCORE))
FEATURES = ["store", "week", "x"]
GIVEN = {"interactions": [("store", "week"), ("week", "x")], "alpha": 1e-2, "tol": 1e-8, "max_iter": 3000}


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=4, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def frame_of(columns, n_parts=5):
    return dd.from_pandas(TABLE[columns], npartitions=n_parts)


def assert_same(model, other, rtol):
    for name, own in other.coefs_.items():
        found = model.coefs_[name].reindex(own.index)
        np.testing.assert_allclose(found.to_numpy(float), own.to_numpy(float), rtol=rtol, atol=rtol, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "options", "target", "weight"),
    [
        (DaskWideClassifier, {}, "two", "weight"),
        (DaskWideClassifier, {"alpha": 0.1, "max_iter": 200}, "three", None),
        (DaskWideRegressor, {"loss": "squared_error"}, "amount", None),
        (
            DaskWideRegressor,
            {"loss": "poisson", "numeric": "linear", "interactions": [("store", "week")]},
            "count",
            None,
        ),
    ],
    ids=["two classes", "three classes", "amounts", "counts"],
)
def test_coefficients_are_those_of_one_machine(client, kind, options, target, weight):
    options = GIVEN | options
    columns = [*FEATURES, *([weight] if weight else []), target]
    model = kind(client, **options).fit(frame_of(columns), target, sample_weight=weight)
    local = kind._local(**options)
    local.fit(TABLE[FEATURES], TABLE[target], sample_weight=None if weight is None else TABLE[weight])
    assert_same(model, local, 1e-8)
    assert type(model.to_local()) is kind._local
    np.testing.assert_array_equal(model.to_local().predict(TABLE[FEATURES]), model.predict(TABLE[FEATURES]))


@pytest.mark.slow
def test_the_given_client_does_the_work_where_another_is_the_default(client):
    """Also where the given one's workers are fewer, and where the other has none of the partitions."""
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as other:
        assert default_client() is other
        frame = frame_of([*FEATURES, "two"])
        started = {id(one): one.cluster.scheduler.transition_counter for one in (client, other)}
        model = DaskWideClassifier(client, **GIVEN).fit(frame, "two")
        assert client.cluster.scheduler.transition_counter > started[id(client)]
        assert other.cluster.scheduler.transition_counter == started[id(other)]
        assert default_client() is other
        second = DaskWideClassifier(other, **GIVEN).fit(frame, "two")
        assert other.cluster.scheduler.transition_counter > started[id(other)]
    local = WideClassifier(**GIVEN).fit(TABLE[[*FEATURES, "two"]], "two")
    assert_same(model, local, 1e-8)
    assert_same(second, local, 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("few", [1, 2])
def test_sums_travel_along_a_tree(client, few, monkeypatch):
    """Of four workers the client asks one or two, and these ask the others."""
    monkeypatch.setattr(engine, "FEW", few)
    asked, ask = [], engine.OnWorkers.ask
    monkeypatch.setattr(
        engine.OnWorkers, "ask", lambda own, *given: asked.append((len(own.asked), len(own.actors))) or ask(own, *given)
    )
    model = DaskWideClassifier(client, **GIVEN).fit(frame_of([*FEATURES, "two"]), "two")
    assert_same(model, WideClassifier(**GIVEN).fit(TABLE[[*FEATURES, "two"]], "two"), 1e-8)
    assert set(asked) == {(few, 4)}


@pytest.mark.slow
def test_predictions_are_lazy_and_of_the_same_partitions(client):
    frame = frame_of([*FEATURES, "three"])
    model = DaskWideClassifier(interactions=None).fit(frame[FEATURES], frame["three"])
    local = WideClassifier(interactions=None).fit(TABLE[FEATURES], TABLE["three"])
    shares, classes = model.predict_proba(frame), model.predict(frame)
    assert shares.npartitions == classes.npartitions == frame.npartitions
    assert shares.columns.tolist() == model.classes_.tolist() == ["u", "v", "w"]
    np.testing.assert_allclose(shares.compute().to_numpy(), local.predict_proba(TABLE[FEATURES]), atol=1e-4)
    assert (classes.compute() == model.classes_[shares.compute().to_numpy().argmax(1)]).all()


def test_options_of_predictions_of_a_dask_frame_are_refused(client):
    """Predictions without standard deviations, and without the offset, came back without a word."""
    frame = frame_of([*FEATURES, "amount", "two"])
    model = DaskWideRegressor(client, loss="squared_error", **GIVEN).fit(frame[[*FEATURES, "amount"]], "amount")
    with pytest.raises(ValueError, match=r"predict takes no return_std with a Dask frame; ask to_local\(\) about"):
        model.predict(frame[FEATURES], return_std=True)
    with pytest.raises(ValueError, match=r"predict takes no offset with a Dask frame; fit with offset_column"):
        model.predict(frame[FEATURES], offset=np.ones(N))
    with pytest.raises(TypeError, match="predict has no option 'std'"):
        model.predict(frame[FEATURES], std=True)
    assert len(model.predict(frame[FEATURES], offset=None, return_std=False)) == N
    classifier = DaskWideClassifier(client, **GIVEN).fit(frame[[*FEATURES, "two"]], "two")
    with pytest.raises(ValueError, match="predict_proba takes no offset with a Dask frame"):
        classifier.predict_proba(frame[FEATURES], offset=np.ones(N))


@pytest.mark.parametrize("target", ["two", "three"])
def test_linear_predictors_and_contributions_are_lazy(client, target):
    """They are those of the local model, partition by partition, also of one without rows; all rows came at once."""
    frame = frame_of([*FEATURES, target])
    model = DaskWideClassifier(client, **GIVEN | {"max_iter": 100}).fit(frame, target)
    local, rows = model.to_local(), TABLE[FEATURES]
    for part, expected in ((frame, rows), (frame.map_partitions(lambda rows: rows[rows.index > 2_000]), rows[2_001:])):
        margins, explained = model.decision_function(part), model.explain(part)
        assert margins.npartitions == explained.npartitions == frame.npartitions
        np.testing.assert_array_equal(margins.compute().to_numpy(), local.decision_function(expected))
        pd.testing.assert_frame_equal(explained.compute(), local.explain(expected))
    columns = model.decision_function(frame).columns
    assert list(columns) == (["u", "v", "w"] if target == "three" else ["decision"])
    with pytest.raises(ValueError, match="decision_function takes no return_std with a Dask frame"):
        model.decision_function(frame, return_std=True)
    np.testing.assert_array_equal(model.decision_function(rows), local.decision_function(rows))


def test_contributions_hold_the_exposure_of_each_row(client):
    frame = frame_of(["store", "weight", "count"])
    model = DaskWideRegressor(client, exposure_column="weight", loss="poisson", interactions=None).fit(frame, "count")
    explained = model.explain(frame).compute()
    np.testing.assert_allclose(explained["(offset)"], np.log(TABLE["weight"]))
    np.testing.assert_allclose(np.exp(explained.sum(axis=1)), model.predict(frame).compute())


def test_what_needs_all_rows_at_once_takes_no_dask_frame(client, tmp_path):
    """They read all rows into memory without a word; `fit(offset=...)` ended in Python's TypeError."""
    frame = frame_of([*FEATURES, "amount"])
    model = DaskWideRegressor(client, loss="squared_error", **GIVEN).fit(frame, "amount")
    X, y, rows = frame[FEATURES], frame["amount"], TABLE[FEATURES]
    with pytest.raises(ValueError, match=r"score takes rows in memory, .* X.partitions\[0\].compute\(\), or give a"):
        model.score(X, y)
    with pytest.raises(ValueError, match="score takes rows in memory"):
        model.score(rows, y)
    with pytest.raises(ValueError, match=r"report takes rows in memory, .* or leave X and y out"):
        model.report(tmp_path / "model.html", X, y)
    with pytest.raises(ValueError, match="plot_explanation takes rows in memory"):
        model.plot_explanation(X)
    with pytest.raises(ValueError, match=r"to_shap takes rows in memory, .* or call explain, which is lazy"):
        model.to_shap(X)
    with pytest.raises(ValueError, match=r"predict_to_parquet takes no Dask frame, .* predict\(X\).to_frame\(\)"):
        model.predict_to_parquet(X, tmp_path / "predicted.parquet")
    assert model.score(rows, TABLE["amount"]) == model.to_local().score(rows, TABLE["amount"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("offset", r"fit takes no offset with a Dask frame; fit with offset_column \(or exposure_column\), or the"),
        ("freq_weights", "fit takes no freq_weights with a Dask frame; fit without it, or the local class on rows"),
        ("eval_set", "fit has no option 'eval_set'"),
    ],
)
def test_options_of_fit_that_need_rows_in_memory_are_refused(client, option, message):
    frame = frame_of(["x", "amount"])
    with pytest.raises((ValueError, TypeError), match=message):
        DaskWideRegressor(client).fit(frame, "amount", **{option: frame["x"]})


def test_estimated_penalties_and_the_loss_are_near_those_of_one_machine(client):
    model = DaskWideRegressor().fit(frame_of([*FEATURES, "count"]), "count")
    local = WideRegressor().fit(TABLE[[*FEATURES, "count"]], "count")
    assert model.model_.loss == local.model_.loss
    np.testing.assert_allclose(model.predict(TABLE[FEATURES]), local.predict(TABLE[FEATURES]), rtol=0.05)


@pytest.mark.slow
def test_a_fit_is_repeated_bit_by_bit(client):
    """Wherever Dask computes the partitions: estimated penalties, loss and interactions depend on the table alone."""
    first, *others = (DaskWideRegressor().fit(frame_of([*FEATURES, "count"]), "count") for _ in range(3))
    for other in others:
        np.testing.assert_array_equal(first.predict(TABLE[FEATURES]), other.predict(TABLE[FEATURES]))


@pytest.mark.slow
def test_partitions_without_rows_are_left_out(client, tmp_path):
    frame = frame_of([*FEATURES, "two"], n_parts=4)
    model = DaskWideClassifier(client, **GIVEN).fit(frame.map_partitions(lambda part: part[part.index < 700]), "two")
    local = WideClassifier(**GIVEN).fit(TABLE.loc[:699, [*FEATURES, "two"]], "two")
    assert_same(model, local, 1e-8)
    save(model.to_local(), tmp_path / "model.tabsym")
    np.testing.assert_array_equal(
        load(tmp_path / "model.tabsym").predict(TABLE[FEATURES]), local.predict(TABLE[FEATURES])
    )
    with pytest.raises(ValueError, match="no rows"):
        DaskWideClassifier(client).fit(frame.map_partitions(lambda part: part[:0]), "two")


def test_clones_and_pickles_keep_options(client):
    model = DaskWideClassifier(client, alpha=0.5, numeric="linear")
    copy = clone(model)
    assert copy.client is client
    assert copy.get_params() == model.get_params()
    assert copy.get_params().keys() == {"client", *WideClassifier().get_params()}
    assert pickle.loads(pickle.dumps(model)).client is None  # noqa: S301


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"monotonic_cst": {"x": 1}}, "two", "monotonic_cst"),
        ({}, TABLE["two"].to_numpy(), "name of a column, or a Dask series"),
        ({}, dd.from_pandas(TABLE["two"], npartitions=2), "repartition one of them"),
        ({}, "nosuch", "nosuch"),
        ({"categorical_features": ["nosuch"]}, "two", "nosuch"),
    ],
)
def test_what_cannot_be_is_refused(client, options, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        DaskWideClassifier(client, **options).fit(frame_of([*FEATURES, "two"]), y)


@pytest.mark.parametrize(
    "cells", [["a", 1] * 100, ["a"] * 100 + [1] * 100, ["2020"] * 100 + [pd.Timestamp("2020")] * 100]
)
def test_columns_of_several_types_are_refused_in_a_sentence(client, cells):
    with dask.config.set({"dataframe.convert-string": False}):
        X = pd.DataFrame({"g": pd.Series(cells, dtype=object), "y": RNG.normal(size=200)})
        with pytest.raises(TypeError, match=r"A column mixes types, .*[Ff]ield g|column g .*; convert it to one type"):
            DaskWideRegressor(client).fit(dd.from_pandas(X, npartitions=2), "y")


@pytest.mark.slow
def test_targets_in_another_order_than_the_table_are_refused(client):
    """As by the local estimators: the labels of a series say which rows are meant, and nothing else does."""
    frame, target = frame_of(FEATURES), frame_of(["amount"])["amount"]
    sorted_ = target.map_partitions(lambda part: part.sort_values())
    with pytest.raises(ValueError, match="X and y have different indexes"):
        DaskWideRegressor(client).fit(frame, sorted_)
    with pytest.raises(ValueError, match="X and sample_weight have different indexes"):
        DaskWideRegressor(client).fit(frame, target, sample_weight=sorted_)
    options = {"loss": "squared_error", "interactions": None}
    found = DaskWideRegressor(client, **options).fit(frame, target).predict(TABLE[FEATURES])
    named = DaskWideRegressor(client, **options).fit(frame_of([*FEATURES, "amount"]), "amount")
    np.testing.assert_array_equal(found, named.predict(TABLE[FEATURES]))


def test_a_lost_worker_is_said_and_no_sum_is_wrong(client, monkeypatch):
    ask, calls = engine.WorkerRows.answer, []

    def answer(rows, how, what, arguments):
        calls.append(what)
        if len(calls) > 40:
            raise ValueError("Worker holding Actor was lost.  Status: error")
        return ask(rows, how, what, arguments)

    monkeypatch.setattr(engine.WorkerRows, "answer", answer)
    model = DaskWideClassifier(client, interactions=None)
    with pytest.raises(RuntimeError, match="A worker was lost during the fit"):
        model.fit(frame_of([*FEATURES, "two"]), "two")
    assert not hasattr(model, "model_")
