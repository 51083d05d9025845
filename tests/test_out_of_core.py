"""Wide models fitted to tables larger than memory: what the same rows in memory give."""

import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tabsym import WideClassifier, WideRegressor
from tabsym.frame import read
from tabsym.models import coded_batches, out_of_core, wide
from tabsym.solvers.newton.block_descent import BlockDescent

RNG = np.random.default_rng(0)
N = 20_000
STORE, WEEK = RNG.choice(300, N), RNG.choice(12, N)
TABLE = pd.DataFrame({"store": STORE, "week": WEEK, "x": RNG.normal(size=N), "z": RNG.uniform(0.0, 5.0, N)})
SCORE = STORE % 7 * 0.3 + np.sin(2 * TABLE["x"]) + 0.2 * TABLE["z"] + STORE % 3 * WEEK % 5 * 0.2 - 2.0
TABLE["store"] = "s" + TABLE["store"].astype(str)
TABLE["week"] = TABLE["week"].map(lambda week: f"w{week}" if week else None)
TABLE.loc[TABLE.index % 40 == 7, "z"] = np.nan
TABLE["area"] = RNG.uniform(1.0, 3.0, N)
TABLE["weight"] = RNG.uniform(0.5, 2.0, N)
TABLE.loc[TABLE.index % 100 == 3, "weight"] = 0.0
TABLE["two"] = np.where(RNG.uniform(size=N) < 1.0 / (1.0 + np.exp(-SCORE)), "yes", "no")
TABLE["three"] = np.argmax(np.stack([SCORE, 0.5 + 0 * SCORE, -SCORE], 1) + RNG.gumbel(size=(N, 3)), 1)
TABLE["amount"] = SCORE + RNG.normal(size=N)
TABLE["count"] = RNG.poisson(TABLE["area"] * np.exp(0.3 * SCORE))
FEATURES = ["store", "week", "x", "z"]
SMALL = TABLE.iloc[:2_000]
GIVEN = {"interactions": [("store", "week"), ("week", "x")], "alpha": 1e-2, "tol": 1e-8, "max_iter": 500}


@pytest.fixture
def in_parts(monkeypatch):
    """Every table is read in batches, several of them a part; the numbers of parts of the fits so far."""
    n_parts, start = [], out_of_core.OneAfterTheOther

    def counted(parts):
        n_parts.append(len(parts))
        return start(parts)

    monkeypatch.setattr(out_of_core, "OneAfterTheOther", counted)
    monkeypatch.setattr(wide, "SAMPLE_ROWS", 0)
    monkeypatch.setattr(read, "BATCH_ROWS", 1_500)
    monkeypatch.setattr(coded_batches, "PART_ROWS", 3_000)
    return n_parts


def dataset_of(table):
    return ds.dataset(pa.Table.from_pandas(table, preserve_index=False))


def assert_same(model, other, rtol):
    for name, own in other.coefs_.items():
        found = model.coefs_[name].reindex(own.index)
        np.testing.assert_allclose(found.to_numpy(float), own.to_numpy(float), rtol=rtol, atol=rtol, err_msg=name)
    np.testing.assert_allclose(model.deviance_, other.deviance_, rtol=rtol)
    np.testing.assert_allclose(model.aic_, other.aic_, rtol=rtol)


@pytest.mark.parametrize(
    ("estimator", "target", "more"),
    [
        (WideClassifier(**GIVEN), "two", ["weight"]),
        (WideClassifier(**GIVEN, class_weight="balanced"), "three", []),
        (WideRegressor(loss="squared_error", **GIVEN), "amount", ["weight"]),
        (WideRegressor(loss="poisson", exposure_column="area", **GIVEN), "count", ["area"]),
        (WideRegressor(loss="gamma", numeric="linear", **GIVEN | {"interactions": None}), "area", ["weight"]),
    ],
    ids=["two classes", "three classes", "amounts", "counts", "slopes"],
)
def test_coefficients_are_those_in_memory(estimator, target, more, in_parts):
    columns = [*FEATURES, *more, target]
    weight = "weight" if "weight" in more else None
    features = [name for name in columns if name not in (weight, target)]
    in_memory = type(estimator)(**estimator.get_params())
    in_memory.fit(TABLE[features], TABLE[target], sample_weight=None if weight is None else TABLE[weight])
    model = estimator.fit(dataset_of(TABLE[columns]), target, sample_weight=weight)
    assert in_parts[0] > 4
    assert_same(model, in_memory, 1e-8)
    assert model.feature_names_in_.tolist() == features
    ask = "predict" if isinstance(estimator, WideRegressor) else "predict_proba"
    found, expected = (getattr(one, ask)(TABLE[features]) for one in (model, in_memory))
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("target", ["two", "count"])
def test_estimated_penalties_losses_and_interactions_are_those_in_memory(target, in_parts):
    kind = WideClassifier if target == "two" else WideRegressor
    columns = [*FEATURES, target]
    model, other = kind().fit(dataset_of(TABLE[columns]), target), kind().fit(TABLE[columns], target)
    assert [term.name for term in model.model_.spec.blocks] == [term.name for term in other.model_.spec.blocks]
    assert model.model_.loss == other.model_.loss
    assert_same(model, other, 1e-6)


def test_a_column_with_a_category_a_row_is_dropped_as_in_memory(in_parts):
    own = SMALL[[*FEATURES, "two"]].assign(receipt=[f"r{row}" for row in range(len(SMALL))])
    model, other = (WideClassifier(interactions=None).fit(X, "two") for X in (dataset_of(own), own))
    assert model.variances_.loc["receipt", "variance"] == 0.0
    assert_same(model, other, 1e-6)


@pytest.mark.parametrize("kind", ["file", "folder", "dataset", "polars", "duckdb"])
def test_tables_of_any_kind(kind, in_parts, tmp_path):
    own = SMALL[[*FEATURES, "amount"]]
    for part in range(2):
        pq.write_table(pa.Table.from_pandas(own.iloc[part::2], preserve_index=False), tmp_path / f"{part}.parquet")
    own = pd.concat([own.iloc[0::2], own.iloc[1::2]])
    pq.write_table(pa.Table.from_pandas(own, preserve_index=False), whole := tmp_path / "whole.pq")
    tables = {
        "file": str(whole),
        "folder": tmp_path,
        "dataset": ds.dataset(whole),
        "polars": pl.scan_parquet(whole),
        "duckdb": duckdb.read_parquet(str(whole)),
    }
    if kind == "folder":
        whole.unlink()
    model = WideRegressor(loss="squared_error").fit(tables[kind], "amount")
    assert_same(model, WideRegressor(loss="squared_error").fit(own, "amount"), 1e-6)


def test_small_tables_are_read_whole(tmp_path):
    own = SMALL[[*FEATURES, "weight", "two"]]
    pq.write_table(pa.Table.from_pandas(own, preserve_index=False), tmp_path / "rows.parquet")
    model = WideClassifier(n_posterior_samples=4).fit(tmp_path, "two", sample_weight="weight")
    other = WideClassifier(n_posterior_samples=4).fit(own.drop(columns="weight"), "two", own["weight"])
    assert_same(model, other, 1e-12)


def test_a_sample_misses_no_class_and_no_missing_number(in_parts, monkeypatch):
    monkeypatch.setattr(out_of_core, "SAMPLE_ROWS", 500)
    own = TABLE[[*FEATURES, "two"]].assign(z=TABLE["z"].fillna(1.0), late=np.nan)
    own.loc[N - 1, ["two", "z", "late"]] = "rare", np.nan, 1.0
    model = WideClassifier(interactions=None).fit(dataset_of(own), "two")
    assert model.classes_.tolist() == ["no", "rare", "yes"]
    assert model.model_.counts[model.model_.spec.coefs(0)].sum() == N
    assert "Missing" in model.coefs_["z"].index.astype(str).tolist()[0]


def test_formulas_that_are_sums(in_parts):
    formula = "amount ~ w[store] + w2[week] + s[1] * x + b[1]"
    own = TABLE[[*FEATURES, "amount"]]
    options = {"loss": "squared_error", "alpha": 1e-3, "tol": 1e-8, "max_iter": 1000}
    model = WideRegressor(formula, **options).fit(dataset_of(own))
    assert_same(model, WideRegressor(formula, **options).fit(own), 1e-8)


@pytest.mark.parametrize(
    ("options", "fit", "message"),
    [
        ({"n_posterior_samples": 8}, {}, "n_posterior_samples=8 needs all rows in memory"),
        ({"monotonic_cst": {"x": 1}}, {}, "monotonic_cst="),
        ({"handle_unknown": "similar"}, {}, "handle_unknown='similar' needs"),
        ({"loss": "huber"}, {}, "loss='huber' needs"),
        ({"formula": "w[store] * v[week] + b[1]"}, {}, "multiplies, shares or fixes terms"),
        ({"formula": "w[store] + v[week] * x + b[1]"}, {}, "slopes by category"),
        ({}, {"sample_weight": np.ones(2_000)}, "the name of one of its columns"),
        ({}, {"offset": np.ones(2_000)}, "name it by offset_column"),
        ({}, {"y": "amuont"}, "amuont"),
        ({"loss": "poisson"}, {}, "needs values of at least 0"),
    ],
)
def test_what_cannot_be_is_refused_and_the_model_stays(options, fit, message, in_parts):
    own = SMALL[[*FEATURES, "amount"]]
    model = WideRegressor(loss="squared_error", interactions=None).fit(own, "amount")
    before = model.predict(own[FEATURES])
    plain = {"interactions": "auto"} if "formula" in options else {}
    model.set_params(**{"loss": "squared_error"} | plain | options)
    with pytest.raises(ValueError, match=message):
        model.fit(dataset_of(own), **{"y": "amount"} | fit)
    model.set_params(handle_unknown="neutral")
    np.testing.assert_array_equal(model.predict(own[FEATURES]), before)


@pytest.mark.parametrize(
    ("column", "value", "message"), [("two", None, "target is missing"), ("x", np.inf, "infinity")]
)
def test_bad_values_are_named(column, value, message, in_parts):
    own = SMALL[[*FEATURES, "two"]].copy()
    own.loc[1_900, column] = value
    with pytest.raises(ValueError, match=message):
        WideClassifier().fit(dataset_of(own), "two")


def test_interruption_keeps_what_was_reached_and_leaves_no_files(in_parts, monkeypatch, tmp_path, capsys):
    sweep, calls = BlockDescent.sweep, []

    def interrupted(turns):
        calls.append(1)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return sweep(turns)

    monkeypatch.setattr(BlockDescent, "sweep", interrupted)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    model = WideClassifier(interactions=None, verbose=1)
    with pytest.raises(KeyboardInterrupt, match="the model is fitted"):
        model.fit(dataset_of(SMALL[[*FEATURES, "two"]]), "two")
    assert model.score(SMALL[FEATURES], SMALL["two"]) > 0.6
    assert not list(tmp_path.iterdir())
    assert "rows" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["three", "amount"])
def test_predictions_stream_to_parquet(target, in_parts, tmp_path):
    kind = WideRegressor if target == "amount" else WideClassifier
    model = kind(interactions=None).fit(SMALL[[*FEATURES, target]], target)
    rows = dataset_of(SMALL.assign(key=range(len(SMALL))))
    out = Path(tmp_path) / "predicted.parquet"
    assert model.predict_to_parquet(rows, out, keep=["key"]) == len(SMALL)
    found = pd.read_parquet(out)
    assert found["key"].tolist() == list(range(len(SMALL)))
    np.testing.assert_array_equal(found["prediction"], model.predict(SMALL[FEATURES]))
    if target == "three":
        shares = found[[f"probability_{label}" for label in model.classes_]].to_numpy()
        np.testing.assert_allclose(shares, model.predict_proba(SMALL[FEATURES]))


def test_a_folder_without_parquet_is_named(tmp_path):
    model = WideRegressor(loss="squared_error", interactions=None).fit(SMALL[[*FEATURES, "amount"]], "amount")
    for use in (
        lambda: model.fit(tmp_path, "amount"),
        lambda: model.predict_to_parquet(tmp_path, tmp_path / "out.parquet"),
    ):
        with pytest.raises(ValueError, match="holds no Parquet files"):
            use()
