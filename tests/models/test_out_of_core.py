"""Wide models fitted to tables larger than memory: what the same rows in memory give."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import warnings
import zlib
from pathlib import Path
from types import SimpleNamespace

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tabsym import WideClassifier, WideRegressor
from tabsym.compare.table.prepare import prepare
from tabsym.frame import read
from tabsym.models import wide
from tabsym.models.out_of_core import cache as row_cache
from tabsym.models.out_of_core import fit as out_of_core
from tabsym.models.out_of_core import parts
from tabsym.solvers.newton import information
from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.partitioned import DescentInParts, Facts

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
    monkeypatch.setattr(parts, "PART_ROWS", 3_000)
    return n_parts


def dataset_of(table):
    return ds.dataset(pa.Table.from_pandas(table, preserve_index=False))


def assert_same(model, other, rtol):
    for name, own in other.coefs_.items():
        found = model.coefs_[name].reindex(own.index)
        np.testing.assert_allclose(found.to_numpy(float), own.to_numpy(float), rtol=rtol, atol=rtol, err_msg=name)
    np.testing.assert_allclose(model.deviance_, other.deviance_, rtol=rtol)
    np.testing.assert_allclose(model.aic_, other.aic_, rtol=rtol)


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("target", ["two", "count"])
def test_estimated_penalties_losses_and_interactions_are_those_in_memory(target, in_parts):
    kind = WideClassifier if target == "two" else WideRegressor
    columns = [*FEATURES, target]
    model, other = kind().fit(dataset_of(TABLE[columns]), target), kind().fit(TABLE[columns], target)
    assert [term.name for term in model.model_.spec.blocks] == [term.name for term in other.model_.spec.blocks]
    assert model.model_.loss == other.model_.loss
    assert_same(model, other, 1e-6)


@pytest.mark.parametrize("by", ["count", "x"])
def test_penalties_of_counts_do_not_depend_on_the_order_of_the_rows(by, in_parts):
    """Which are the lowest positive counts, that the dispersion goes by, no part can tell alone."""
    table = TABLE.assign(count=np.random.default_rng(1).poisson(0.3 * TABLE["area"]), many=np.arange(N) % 4_000)
    table = table.sort_values(by)[["many", "week", "count", "area"]].astype({"many": str})
    options = {"loss": "poisson", "interactions": None, "exposure_column": "area"}
    model = WideRegressor(**options).fit(dataset_of(table), "count")
    other = WideRegressor(**options).fit(table.drop(columns="count"), table["count"])
    assert in_parts.pop() > 3
    np.testing.assert_allclose(model.variances_["variance"], other.variances_["variance"], rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("loss", ["squared_error", "gamma"])
def test_variances_beside_uneven_weights_are_those_in_memory(loss, in_parts):
    """Weights that are unrelated to the noise: by how much they count is found from all rows."""
    y = TABLE["amount"] if loss == "squared_error" else np.exp(0.5 * TABLE["amount"])
    X = TABLE[["store", "week"]].assign(weight=np.exp(1.5 * np.random.default_rng(0).normal(size=N)))
    options = {"loss": loss, "interactions": None}
    model = WideRegressor(**options).fit(dataset_of(X.assign(y=y)), "y", sample_weight="weight")
    other = WideRegressor(**options).fit(X[["store", "week"]], y, sample_weight=X["weight"])
    assert in_parts.pop() > 3
    assert other.model_.uncertainty.working > 1.5 * other.dispersion_
    np.testing.assert_allclose(model.variances_["variance"], other.variances_["variance"], rtol=1e-3, atol=1e-6)


def test_a_column_with_a_category_a_row_is_dropped_as_in_memory(in_parts):
    own = SMALL[[*FEATURES, "two"]].assign(receipt=[f"r{row}" for row in range(len(SMALL))])
    model, other = (WideClassifier(interactions=None).fit(X, "two") for X in (dataset_of(own), own))
    assert model.variances_.loc["receipt", "variance"] == 0.0
    assert_same(model, other, 1e-6)


@pytest.mark.parametrize(
    ("X", "alpha"),
    [
        ({"b": np.tile([*"pqrst"], 200)}, 0.0),
        ({"key": [f"k{row}" for row in range(1_000)]}, "auto"),
        ({"same": ["x"] * 1_000}, "auto"),
    ],
    ids=["groups", "keys", "a constant"],
)
def test_an_intercept_that_does_not_move_is_the_mean_of_the_target(X, alpha, in_parts):
    for seed in range(5):  # by rounding the intercept moves for some of them
        own = pd.DataFrame(X).assign(y=5.0 + np.random.default_rng(seed).normal(size=1_000))
        options = {"loss": "squared_error", "interactions": None, "alpha": alpha}
        model, other = (WideRegressor(**options).fit(rows, "y") for rows in (dataset_of(own), own))
        np.testing.assert_allclose(*(one.predict(own[[*X]]) for one in (model, other)), rtol=1e-8)


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


@pytest.mark.slow
@pytest.mark.parametrize("weight", [None, "weight"])
def test_text_in_views_is_text(weight, in_parts):
    """Arrow takes no rows of views."""
    columns = [*FEATURES, "two", *([weight] if weight else [])]
    plain = pa.Table.from_pandas(SMALL[columns], preserve_index=False)
    views = plain
    for name in ("store", "week", "two"):
        views = views.set_column(views.column_names.index(name), name, views[name].cast(pa.string_view()))
    models = [WideClassifier(**GIVEN).fit(ds.dataset(own), "two", sample_weight=weight) for own in (plain, views)]
    found, wanted = (model.predict_proba(own.select(FEATURES)) for model, own in zip(models, (views, plain)))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("read", [str, ds.dataset, pl.read_parquet, pq.read_table])
def test_the_index_that_pandas_wrote_into_a_file_is_said(read, tmp_path):
    own = SMALL[[*FEATURES, "amount"]].sample(frac=1.0, random_state=0)
    own.to_parquet(path := tmp_path / "rows.parquet")
    with pytest.warns(UserWarning, match="'__index_level_0__' is the index of the pandas frame .* index=False"):
        WideRegressor(loss="squared_error", interactions=None).fit(read(path), "amount")
    own.to_parquet(path, index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WideRegressor(loss="squared_error", interactions=None).fit(read(path), "amount")


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


@pytest.mark.slow
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize(
    "options", [{}, {"alpha": 1e-3}, {"class_weight": "balanced"}], ids=["estimated", "given", "balanced"]
)
def test_totals_of_several_classes_add_up(options, weight, in_parts):
    """As the link is canonical, in memory and in parts."""
    own = TABLE.iloc[:3_000][["store", "x", "three", "weight"]]
    columns = ["store", "x", "three", *([weight] if weight else [])]
    sums = ["w[store] + s[1] * x", "w[store] * x", "w[store] + s[1] * x"]
    models = [WideClassifier(f"three ~ {formula} + c[1]", **options) for formula in sums]
    for model in models[:2]:
        model.fit(own[["store", "x", "three"]], sample_weight=own[weight] if weight else None)
    models[2].fit(dataset_of(own[columns]), sample_weight=weight)
    y = own["three"].to_numpy()
    times = own[weight].to_numpy() if weight else np.ones(len(own))
    if "class_weight" in options:
        times = times / np.bincount(y, times)[y]
    for model in models:
        np.testing.assert_allclose(times @ model.predict_proba(own[["store", "x"]]), np.bincount(y, times), rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("class_weight", ["balanced", {"no": 1.0, "rare": 40.0, "yes": 2.0}])
def test_class_weights_are_those_of_all_rows(class_weight, in_parts, monkeypatch):
    """A sample has other shares of the classes, more so of a rare one, of which it has a row at least."""
    monkeypatch.setattr(out_of_core, "SAMPLE_ROWS", 200)
    own = TABLE[["store", "week", "two"]].copy()
    own.loc[np.arange(20) * 90, "two"] = "rare"
    options = {"alpha": 1.0, "interactions": None, "count_effect": False, "tol": 1e-8, "class_weight": class_weight}
    for kept in (own, own[own["two"] != "no"]):
        labels = set(kept["two"])
        given = (
            {one: w for one, w in class_weight.items() if one in labels}
            if isinstance(class_weight, dict)
            else "balanced"
        )
        model, other = (
            WideClassifier(**options | {"class_weight": given}).fit(X, "two") for X in (dataset_of(kept), kept)
        )
        assert_same(model, other, 1e-6)
        np.testing.assert_allclose(
            model.term_table()["edf"].to_numpy(float), other.term_table()["edf"].to_numpy(float), rtol=1e-6
        )


@pytest.mark.parametrize("loss", ["log_loss", "poisson"])
def test_nested_fits_are_of_the_same_rows_wherever_these_are(loss, in_parts):
    """Weights in their own unit, and offsets of other rows, as in memory."""
    rng, n = np.random.default_rng(1), 1500
    X = pd.DataFrame({"g": rng.choice(list("abcd"), n), "h": rng.choice(list("xyz"), n)})
    y = rng.poisson(1.0 + (X["h"] == "x"))
    weight, offset = rng.integers(1, 4, n).astype(float), rng.normal(0, 0.3, n)
    table = X.assign(y=y > 1 if loss == "log_loss" else y, weight=weight, offset=offset)
    other = table.assign(offset=table.groupby("weight")["offset"].transform(rng.permutation))  # of the same sums
    larger, smaller = "g_[g] + h_[h] + b[1]", "g_[g] + b[1]"

    def fit(formula, rows, on_disk, **options):
        named = {} if loss == "log_loss" else {"loss": loss}
        model = (WideClassifier if loss == "log_loss" else WideRegressor)(formula, alpha=0.0, **named, **options)
        if on_disk:
            return model.fit(dataset_of(rows), "y", sample_weight="weight")
        features = rows.drop(columns=["y", "weight"])
        return model.fit(features, rows["y"], sample_weight=rows["weight"])

    memory, disk = (fit(larger, table, place) for place in (False, True))
    wanted = memory.likelihood_ratio_test(fit(smaller, table, False))
    for found in (
        memory.likelihood_ratio_test(fit(smaller, table, True)),
        disk.likelihood_ratio_test(fit(smaller, table, False)),
        disk.likelihood_ratio_test(fit(smaller, table, True)),
    ):
        pd.testing.assert_series_equal(found, wanted, rtol=1e-4)
    moved = {"offset_column": "offset"}
    first, second = (fit(formula, rows, True, **moved) for formula, rows in ((larger, table), (smaller, other)))
    with pytest.raises(ValueError, match="have different offsets"):
        first.likelihood_ratio_test(second)


def test_formulas_that_are_sums(in_parts):
    formula = "amount ~ w[store] + w2[week] + s[1] * x + b[1]"
    own = TABLE[[*FEATURES, "amount"]]
    options = {"loss": "squared_error", "alpha": 1e-3, "tol": 1e-8, "max_iter": 1000}
    model = WideRegressor(formula, **options).fit(dataset_of(own))
    assert_same(model, WideRegressor(formula, **options).fit(own), 1e-8)


@pytest.mark.parametrize("numeric", ["linear", "smooth"])
@pytest.mark.parametrize(("loss", "target"), [("squared_error", "amount"), ("poisson", "count"), ("log_loss", "two")])
def test_deviations_of_more_terms_than_are_joint_are_those_in_memory(loss, target, numeric, in_parts, monkeypatch):
    """Beside slopes each term's is by sums over the parts, jointly with the unpenalized coefficients."""
    monkeypatch.setattr(information, "MAX_OTHERS", 0)
    monkeypatch.setattr(read, "BATCH_ROWS", 300)
    monkeypatch.setattr(parts, "PART_ROWS", 600)
    own = SMALL[["store", "week", "x", "z", target]]
    estimator = WideClassifier if target == "two" else WideRegressor
    options = {"loss": loss} if target != "two" else {}
    options |= {"interactions": None, "numeric": {"x": numeric, "z": "linear"}, "tol": 1e-7, "max_iter": 300}
    model = estimator(**options).fit(dataset_of(own), target)
    assert in_parts[0] > 2
    other = estimator(**options).fit(own.drop(columns=target), own[target])
    assert_same(model, other, 1e-6)
    np.testing.assert_allclose(model.variances_, other.variances_, rtol=1e-6)


@pytest.mark.parametrize("named", [["week", "code"], ["week", "code", "area"], ["week"]])
def test_numbers_that_are_categories_by_name_are_so_beside_an_exposure(named, in_parts):
    """The exposure itself is none, named or not."""
    own = TABLE[["week", "x", "area", "count"]].assign(code=STORE % 7)
    options = {"loss": "poisson", "exposure_column": "area", "categorical_features": named, "numeric": "linear"}
    options |= GIVEN | {"interactions": None}
    model = WideRegressor(**options).fit(dataset_of(own), "count")
    assert in_parts[0] > 4
    assert_same(model, WideRegressor(**options).fit(own.drop(columns="count"), own["count"]), 1e-8)
    assert len(model.coefs_["code"]) == (7 if "code" in named else 1)
    assert "area" not in model.coefs_


@pytest.mark.parametrize(("target", "weight"), [("count", "weight"), ("three", None)])
def test_degrees_of_freedom_of_terms_that_determine_each_other_are_those_in_memory(target, weight, in_parts):
    kind, options = (WideRegressor, {"loss": "poisson"}) if target == "count" else (WideClassifier, {})
    own = TABLE.iloc[:7_000].assign(day=np.arange(7_000) % 9 * 1.0)[["week", "day", "weight", target]]
    formula = f"{target} ~ w[week] + f[day] + s[1] * day + u[week, day] + c[1]"
    models = []
    for rows, given in ((dataset_of(own), weight), (own, weight and own[weight])):
        with pytest.warns(UserWarning, match="the coefficients of 's', 'f', 'w', 'u' are not unique"):
            models.append(kind(formula, alpha=0.0, **options).fit(rows, sample_weight=given))
    assert in_parts[0] > 1
    found, expected = ((one.aic_, one.bic_, one.model_.uncertainty.dispersion) for one in models)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    sd, expected = (one.model_.uncertainty.sd for one in models)
    np.testing.assert_allclose(sd, expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("options", "fit", "message"),
    [
        ({"n_posterior_samples": 8}, {}, "n_posterior_samples=8 needs all rows in memory"),
        ({"monotonic_cst": {"x": 1}}, {}, "monotonic_cst="),
        ({"handle_unknown": "similar"}, {}, "handle_unknown='similar' needs"),
        ({"loss": "huber"}, {}, "loss='huber' needs"),
        ({"n_init": 5}, {}, "n_init=5 has no effect on a sum of terms"),
        ({"formula": "w[store] * v[week] + b[1]"}, {}, "multiplies or shares terms"),
        ({"formula": "w[store] + log1p(z) + b[1]"}, {}, r"adds log1p\(z\) without a coefficient"),
        ({"formula": "w[store] + 2 + b[1]"}, {}, "adds 2 without a coefficient"),
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


def test_a_class_of_weight_zero_is_absent_by_its_rows_and_refused_by_its_class(in_parts):
    own = SMALL[[*FEATURES, "three"]].copy()
    first = own["three"].iloc[0]
    own["weight"] = (own["three"] != first) * 1.0
    there = own[own["weight"] > 0].reset_index(drop=True)
    model = WideClassifier(**GIVEN).fit(dataset_of(own), "three", sample_weight="weight")
    wanted = WideClassifier(**GIVEN).fit(there[FEATURES], there["three"])
    assert model.classes_.tolist() == wanted.classes_.tolist() == sorted(there["three"].unique())
    np.testing.assert_allclose(model.predict_proba(own[FEATURES]), wanted.predict_proba(own[FEATURES]), atol=1e-5)
    with pytest.raises(ValueError, match=f"class_weight gives class {first} the weight 0, .* leave its rows out"):
        WideClassifier(class_weight={first: 0.0}).fit(dataset_of(own.drop(columns="weight")), "three")


@pytest.mark.parametrize(
    ("column", "value", "message"), [("two", None, "target is missing"), ("x", np.inf, "infinity")]
)
def test_bad_values_are_named(column, value, message, in_parts):
    own = SMALL[[*FEATURES, "two"]].copy()
    own.loc[1_900, column] = value
    with pytest.raises(ValueError, match=message):
        WideClassifier().fit(dataset_of(own), "two")


def test_interruption_keeps_what_was_reached_and_leaves_no_files(in_parts, monkeypatch, tmp_path, capsys):
    update_blocks, calls = BlockDescent.update_blocks, []

    def interrupted(turns):
        calls.append(1)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return update_blocks(turns)

    monkeypatch.setattr(BlockDescent, "update_blocks", interrupted)
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


def test_columns_in_the_names_of_folders_are_columns(in_parts, tmp_path):
    own = SMALL[[*FEATURES, "amount"]].assign(year=2020 + np.arange(len(SMALL)) % 3)
    own.to_parquet(tmp_path / "parted", partition_cols=["year"])
    for year, rows in own.groupby("year"):  # with the column in the files, as some tools write it
        (tmp_path / "both" / f"year={year}").mkdir(parents=True)
        rows.to_parquet(tmp_path / "both" / f"year={year}" / "rows.parquet", index=False)
    want = WideRegressor(loss="squared_error").fit(own.sort_values("year", kind="stable"), "amount")
    for folder in ("parted", "both"):
        model = WideRegressor(loss="squared_error").fit(tmp_path / folder, "amount")
        assert "year" in model.feature_names_in_
        X = own[model.feature_names_in_]
        np.testing.assert_allclose(model.predict(X), want.predict(own[want.feature_names_in_]), rtol=1e-6)
    model.predict_to_parquet(tmp_path / "parted", tmp_path / "out.parquet", keep=["year"])
    assert set(pd.read_parquet(tmp_path / "out.parquet")["year"]) == {2020, 2021, 2022}


def test_files_of_a_folder_have_the_same_columns_and_types_that_go_together(tmp_path):
    own = pd.DataFrame({"s": ["u", "v"] * 5, "x": np.arange(10), "y": np.arange(10.0)})

    def folder_of(name, second, first=own):
        (tmp_path / name).mkdir()
        first.to_parquet(tmp_path / name / "a.parquet")
        second.to_parquet(tmp_path / name / "b.parquet")
        return tmp_path / name

    for second, words in (
        (own.assign(z=1), r"Column 'z' is in b\.parquet and not in a\.parquet of the folder"),
        (own.drop(columns="x"), r"Column 'x' is in a\.parquet and not in b\.parquet of the folder"),
        (own.assign(x="text"), r"Column 'x' is of the type large_string in b\.parquet, and of another in other files"),
    ):
        folder = folder_of(words.split("'")[1] + str(second.shape[1]), second)
        for use in (lambda: WideRegressor().fit(folder, "y"), lambda: prepare(folder, "y")):  # noqa: B023
            with pytest.raises(ValueError, match=words):
                use()
    first = own.assign(s=own["s"].astype("category"), none=None)
    second = own.assign(x=own["x"] + 0.5, none="some")[own["x"] > 2]  # whose index is a column of the file
    whole = read.Batches(folder_of("types", second, first)).whole().to_pandas()
    assert whole["x"].tolist() == [*range(10), *(x + 0.5 for x in range(3, 10))]
    assert whole["s"].tolist() == [*own["s"], *own["s"][3:]]
    assert whole["none"].tolist()[-1] == "some"
    assert list(whole) == ["s", "x", "y", "none"]


@pytest.mark.parametrize("kind", [BlockDescent, DescentInParts])
def test_halved_joint_steps_decrease_the_loss_by_half_of_what_is_left(kind, in_parts, monkeypatch):
    """To first order in the fraction of a Newton step: the whole one decreases a parabola by its height."""
    update, noted, module = kind._update_together, [], sys.modules[kind.__module__]

    def noting(solver):
        noted.append((solver.total * solver.mean_loss(), update(solver)))
        return noted[-1][1]

    monkeypatch.setattr(kind, "_update_together", noting)
    monkeypatch.setattr(module, "length_of_step", lambda *_: 0.5)
    rows = TABLE[["x", "z", "count"]]
    model = WideRegressor(loss="poisson", numeric="linear", interactions=None, alpha=0.0, tol=1e-10)
    model.fit(*((dataset_of(rows), "count") if kind is DescentInParts else (rows.drop(columns="count"), rows["count"])))
    loss, decrease = np.array(noted).T
    left = loss - loss[-1]
    near = (left > 0.001) & (left < 1.0)
    assert near.sum() >= 4
    np.testing.assert_allclose(decrease[near], 0.5 * left[near], rtol=0.05)


# -- rows that are kept for the next fit -------------------------------------------------------------

KILLED = """
import os, signal, sys
from tabsym import WideClassifier, messages
from tabsym.frame import read
from tabsym.models import wide
from tabsym.models.out_of_core import cache as row_cache
from tabsym.models.out_of_core import parts
from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.partitioned import DescentInParts, Facts

wide.SAMPLE_ROWS, read.BATCH_ROWS, parts.PART_ROWS = 0, 500, 700
stages = {"coding": (parts.Reader, "read", 3), "files": (row_cache.RowCache, "_write", 2),
          "list": (row_cache.Path, "replace", 1), "terms": (parts.Part, "load", 2),
          "iterations": (BlockDescent, "update_blocks", 3)}

def fit_and_be_killed(stage, folder, cache):
    owner, name, after = stages[stage]
    method, calls = getattr(owner, name), []

    def killing(*given):
        calls.append(1)
        if len(calls) == after:
            os.kill(os.getpid(), signal.SIGKILL)
        return method(*given)

    setattr(owner, name, killing)
    WideClassifier().fit(folder, "two", cache_dir=cache)

for line in sys.stdin:
    process = os.fork()
    if process == 0:
        fit_and_be_killed(*eval(line))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def killed_fit():
    """A function that fits in a process of its own, which a stage kills: its exit code. One process imports for all."""
    with subprocess.Popen(
        [sys.executable, "-c", KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:

        def fit(stage, folder, cache):
            server.stdin.write(f"{(stage, str(folder), str(cache))}\n")
            server.stdin.flush()
            return int(server.stdout.readline())

        yield fit
        server.stdin.close()


@pytest.fixture
def kept(in_parts, monkeypatch, tmp_path):
    """A folder of two Parquet files, one to keep rows in, and the batches that were coded."""
    monkeypatch.setattr(read, "BATCH_ROWS", 500)
    monkeypatch.setattr(parts, "PART_ROWS", 700)
    folder, coded, method = tmp_path / "rows", [], parts.Reader.read
    folder.mkdir()
    for part in range(2):
        write_part(folder, part)
    monkeypatch.setattr(parts.Reader, "read", lambda own, batch: coded.append(1) or method(own, batch))
    return folder, tmp_path / "cache", coded


def write_part(folder, part, **changed):
    own = SMALL[[*FEATURES, "weight", "two", "three", "amount"]].iloc[part::2].assign(**changed)
    pq.write_table(pa.Table.from_pandas(own, preserve_index=False), folder / f"{part}.parquet")


def in_cache(cache):
    return sorted(path.name.partition("-")[0] for path in (cache / "_tabsym").iterdir())


def assert_equal(model, other):
    np.testing.assert_array_equal(model.model_.theta, other.model_.theta)
    np.testing.assert_array_equal(model.model_.counts, other.model_.counts)
    assert model.deviance_ == other.deviance_


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["coding", "files", "list", "terms", "iterations"])
def test_a_killed_fit_leaves_all_coded_rows_or_none(stage, kept, killed_fit):
    folder, cache, coded = kept
    assert killed_fit(stage, folder, cache) == -signal.SIGKILL
    has_rows = stage in ("terms", "iterations")
    assert ("rows.json" in in_cache(cache)) == has_rows
    model = WideClassifier().fit(folder, "two", cache_dir=cache)
    assert bool(coded) != has_rows
    assert in_cache(cache) == ["lock", "rows", "rows.json"]
    assert_equal(model, WideClassifier().fit(folder, "two"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second", "target", "weight"),
    [
        (WideClassifier(), WideClassifier(alpha=0.1, interactions=None, numeric="linear"), "two", "weight"),
        (WideClassifier(), WideClassifier(class_weight="balanced"), "three", None),
        (WideRegressor(), WideRegressor(loss="squared_error", offset_column=None), "amount", "weight"),
        (WideRegressor(offset_column="z", loss="squared_error"),) * 2 + ("amount", None),
    ],
    ids=["two classes", "three classes", "amounts", "offset"],
)
def test_other_options_take_the_rows_that_were_coded(first, second, target, weight, kept, capsys):
    folder, cache, coded = kept
    for part in range(2):
        write_part(folder, part, z=1.0)
    given = {"y": target, "sample_weight": weight}
    assert_equal(first.fit(folder, **given, cache_dir=cache), type(first)(**first.get_params()).fit(folder, **given))
    n_coded = len(coded)
    second.set_params(verbose=1).fit(ds.dataset(folder), **given, cache_dir=str(cache))
    assert len(coded) == n_coded
    n_rows = (SMALL["weight"] > 0).sum() if weight else len(SMALL)
    assert f"{n_rows:,} coded rows of an earlier fit" in capsys.readouterr().err
    assert_equal(second, type(second)(**second.get_params()).fit(folder, **given))


def test_an_interrupted_fit_keeps_its_coded_rows(kept, monkeypatch):
    folder, cache, coded = kept

    def interrupted(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(BlockDescent, "update_blocks", interrupted)
        with pytest.raises(KeyboardInterrupt):
            WideClassifier(interactions=None).fit(folder, "two", cache_dir=cache)
    n_coded = len(coded)
    assert in_cache(cache) == ["lock", "rows", "rows.json"]
    WideClassifier(interactions=None).fit(folder, "two", cache_dir=cache)
    assert len(coded) == n_coded


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "options", "fit", "message"),
    [
        (lambda folder: write_part(folder, 1, x=2.0), {}, {}, "1.parquet'"),
        (lambda folder: write_part(folder, 2), {}, {}, "2.parquet'"),
        (lambda folder: (folder / "1.parquet").unlink(), {}, {}, "1.parquet'"),
        (lambda folder: None, {}, {"y": "three"}, "differ from those of this fit in the target;"),
        (lambda folder: None, {}, {"sample_weight": "weight"}, "differ from those of this fit in sample_weight;"),
        (lambda folder: None, {"random_state": 1}, {}, "differ from those of this fit in random_state;"),
        (
            lambda folder: None,
            {"categorical_features": ["store", "week"]},
            {},
            "differ from those of this fit in categorical_features;",
        ),
        (lambda folder: None, {"offset_column": "x"}, {}, "differ from those of this fit in the offset;"),
    ],
)
def test_rows_of_other_files_or_options_are_coded_again(change, options, fit, message, kept):
    folder, cache, coded = kept
    WideClassifier(interactions=None).fit(folder, "two", cache_dir=cache)
    n_coded = len(coded)
    change(folder)
    model, other = (WideClassifier(interactions=None, **options) for _ in range(2))
    fit = {"y": "two"} | fit
    with pytest.warns(UserWarning, match=message) as warned:
        model.fit(folder, **fit, cache_dir=cache)
    assert len(warned) == 1
    assert len(coded) > n_coded
    assert in_cache(cache) == ["lock", "rows", "rows.json"]
    assert_equal(model, other.fit(folder, **fit))


def damage(path):
    """One bit of the file, and neither its size nor its time."""
    times, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def emptied(path):
    path.write_bytes(b"")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "how"),
    [
        *(("rows.json", how) for how in (damage, Path.unlink, emptied)),
        *(("rows-*/1", how) for how in (damage, Path.unlink, emptied)),
        *((name, damage) for name in ("rows-*/6", "rows-*/0.arrow", "rows-*/sample.arrow")),  # read as the other files
    ],
)
def test_damaged_rows_are_coded_again(name, how, kept):
    folder, cache, coded = kept
    plain = WideClassifier(interactions=None).fit(folder, "two", cache_dir=cache)
    n_coded = len(coded)
    (path,) = (cache / "_tabsym").glob(name)
    how(path)
    model = WideClassifier(interactions=None)
    if path.exists() or name != "rows.json":
        with pytest.warns(UserWarning, match="are damaged .* the rows are coded again"):
            model.fit(folder, "two", cache_dir=cache)
    else:
        model.fit(folder, "two", cache_dir=cache)
    assert len(coded) > n_coded
    assert_equal(model, plain)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda listed: listed["parts"][0].update(n_rows=10**9), "has another size"),
        (lambda listed: listed["parts"][0]["codes"][0].reverse(), "damaged"),
        (lambda listed: listed["parts"][0].update(y=["../lock", 0]), "is no file of the folder"),
        (lambda listed: listed.update(folder="../.."), "is no file of the folder"),
        (lambda listed: listed["categories"].reverse() or swap(listed["categories"]), "codes of no category"),
        (lambda listed: listed["parts"][0].update(y=listed["parts"][0]["numbers"][0][1]), "codes of no category"),
        (lambda listed: listed.pop("parts"), "damaged"),
    ],
)
def test_a_list_that_was_made_up_is_refused(change, message, kept):
    """With the right checksums: what it says is checked, too."""
    folder, cache, _ = kept
    plain = WideClassifier(interactions=None).fit(folder, "two", cache_dir=cache)
    path = cache / "_tabsym" / "rows.json"
    listed = json.loads(path.read_text().partition("\n")[2])
    change(listed)
    text = json.dumps(listed)
    path.write_text(f"{zlib.crc32(text.encode())}\n{text}")
    with pytest.warns(UserWarning, match=message):
        model = WideClassifier(interactions=None).fit(folder, "two", cache_dir=cache)
    assert_equal(model, plain)


def swap(categories):
    """The files of two columns."""
    categories[0][1], categories[1][1] = categories[1][1], categories[0][1]


@pytest.mark.slow
def test_two_fits_at_once_in_a_folder(kept, monkeypatch):
    """The second codes for itself, and neither disturbs the other."""
    folder, cache, _ = kept
    plain = WideClassifier(interactions=None).fit(folder, "two")
    load, models = out_of_core.fit_read, {}

    def beside(estimator, *given):
        if estimator.verbose == 0 and "other" not in models:
            models["other"] = None
            with pytest.warns(UserWarning, match="Another fit holds cache_dir="):
                models["other"] = WideClassifier(interactions=None).fit(folder, "two", cache_dir=cache)
        return load(estimator, *given)

    monkeypatch.setattr(out_of_core, "fit_read", beside)
    models["one"] = WideClassifier(interactions=None).fit(folder, "two", cache_dir=cache)
    assert in_cache(cache) == ["lock", "rows", "rows.json"]
    for model in models.values():
        assert_equal(model, plain)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int64", "float64", "bool", "datetime64[ns]", "category", "object"])
def test_categories_of_any_type_are_kept(dtype, kept):
    folder, cache, coded = kept
    week = SMALL["week"].str[1:].fillna("13").astype(int)
    values = week > 5 if dtype == "bool" else week.astype(str) if dtype in ("category", "object") else week
    for part in range(2):
        write_part(folder, part, week=values.astype(dtype))
    options = {"interactions": None, "categorical_features": ["store", "week"]}
    plain = WideClassifier(**options).fit(folder, "two", cache_dir=cache)
    n_coded = len(coded)
    model = WideClassifier(**options).fit(folder, "two", cache_dir=cache)
    assert len(coded) == n_coded
    assert_equal(model, plain)
    assert model.coefs_["week"].index.tolist() == plain.coefs_["week"].index.tolist()


def test_a_loss_that_the_kept_target_does_not_allow_is_refused(kept):
    folder, cache, coded = kept
    WideRegressor(loss="squared_error", interactions=None).fit(folder, "amount", cache_dir=cache)
    n_coded = len(coded)
    with pytest.raises(ValueError, match="needs values of at least 0"):
        WideRegressor(loss="poisson", interactions=None).fit(folder, "amount", cache_dir=cache)
    assert len(coded) == n_coded
    assert in_cache(cache) == ["lock", "rows", "rows.json"]


def test_the_folder_of_the_table_may_be_that_of_the_kept_rows(kept):
    folder, _, coded = kept
    plain = WideClassifier(interactions=None).fit(folder, "two", cache_dir=folder)
    n_coded = len(coded)
    assert_equal(WideClassifier(interactions=None).fit(folder, "two", cache_dir=folder), plain)
    assert len(coded) == n_coded


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (lambda folder: SMALL[[*FEATURES, "two"]], "is in memory"),
        (lambda folder: dataset_of(SMALL[[*FEATURES, "two"]]), "InMemoryDataset"),
        (pl.scan_parquet, "LazyFrame"),
        (lambda folder: ds.dataset(folder).filter(ds.field("x") > 0), "this dataset is filtered"),
    ],
    ids=["frame", "dataset in memory", "polars", "filter"],
)
def test_rows_are_kept_of_files_only(table, message, kept):
    folder, cache, _ = kept
    with pytest.raises(ValueError, match=message):
        WideClassifier().fit(table(folder), "two", cache_dir=cache)
    assert not cache.exists()


def test_a_cache_of_a_table_that_is_read_whole_has_no_effect(kept, monkeypatch):
    folder, cache, _ = kept
    monkeypatch.setattr("tabsym.models.wide.SAMPLE_ROWS", 10**6)
    with pytest.warns(UserWarning, match="has no effect: tables of up to 1,000,000 rows are read whole"):
        WideClassifier(interactions=None).fit(folder, "two", cache_dir=cache)
    assert not cache.exists()


def test_a_cache_that_is_a_file_is_named(kept, tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(ValueError, match="taken' is no folder that can be written to"):
        WideClassifier().fit(kept[0], "two", cache_dir=tmp_path / "taken")


def test_rows_that_cannot_be_kept_are_fitted(kept, monkeypatch):
    folder, cache, _ = kept

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(row_cache.RowCache, "_write", full)
    with pytest.warns(UserWarning, match="are not kept in cache_dir=.*No space left on device"):
        model = WideClassifier(interactions=None).fit(folder, "two", cache_dir=cache)
    assert in_cache(cache) == ["lock"]
    assert_equal(model, WideClassifier(interactions=None).fit(folder, "two"))


@pytest.mark.parametrize("source", ["path", "lazy", "duckdb"])
def test_a_table_without_rows_is_a_file_without_rows_and_names_are_kept_apart(source, tmp_path):
    X = pd.DataFrame({"a": ["u", "v"] * 50, "prediction": np.arange(100.0), "y": [1.0, 3.0] * 50})
    model = WideRegressor().fit(X[["a", "y"]], "y")
    out = tmp_path / "out.parquet"
    X.to_parquet(tmp_path / "full.parquet")
    X.iloc[:0].astype({"a": "str"}).to_parquet(tmp_path / "none.parquet")

    def rows(name):
        path = tmp_path / f"{name}.parquet"
        return {"path": path, "lazy": pl.scan_parquet(path), "duckdb": duckdb.read_parquet(str(path))}[source]

    assert model.predict_to_parquet(rows("full"), out, keep=["a"]) == 100
    assert model.predict_to_parquet(rows("none"), out, keep=["a"]) == 0
    found = pd.read_parquet(out)
    assert list(found) == ["a", "prediction"] and len(found) == 0
    with pytest.raises(
        ValueError, match="Column 'prediction' is in keep, and the predictions are called so; rename it"
    ):
        model.predict_to_parquet(rows("full"), out, keep=["a", "prediction"])


@pytest.mark.parametrize("mean", [-1000.0, 1e6])
def test_targets_far_from_0_are_fitted_as_in_memory(mean, tmp_path, in_parts):
    """Of an identity link the target's mean is no exponent."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.choice(list("pqr"), 500), "y": mean + rng.normal(size=500)})
    table.to_parquet(tmp_path / "t.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = WideRegressor(loss="squared_error").fit(tmp_path / "t.parquet", "y")
    want = WideRegressor(loss="squared_error").fit(table, "y")
    np.testing.assert_allclose(found.predict(table[["a"]]), want.predict(table[["a"]]), rtol=1e-9)


@pytest.mark.parametrize("kind", ["two", "three", "poisson", "tweedie"])
def test_rows_far_out_are_fitted_as_in_memory(kind, tmp_path, in_parts):
    """Linear predictors beyond what an exponential is a number of."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=1500)
    mean, model = np.exp(0.5 * x), WideRegressor("y ~ s[1]*x + c[1]", alpha=0.0)
    if kind in ("two", "three"):
        classes = "pqr"[: 2 + (kind == "three")]
        scores = np.outer(0.5 * x, range(len(classes))) + rng.gumbel(size=(1500, len(classes)))
        y, model = np.array(list(classes))[scores.argmax(axis=1)], WideClassifier("y ~ s[1]*x + c[1]", alpha=0.0)
        y[0] = "p"
    else:
        y = rng.poisson(mean).astype(float) * (1.0 if kind == "poisson" else rng.gamma(1.0, 1.0, 1500))
        y[0], model = 0.0, model.set_params(loss=kind)
    x[0] = -5e3
    table = pd.DataFrame({"x": x, "y": y})
    table.to_parquet(tmp_path / "t.parquet")
    found = model.fit(tmp_path / "t.parquet").coefs_["s"].iloc[0]
    want = model.fit(table).coefs_["s"].iloc[0]
    np.testing.assert_allclose(found.to_numpy(float), want.to_numpy(float), rtol=2e-3)


def test_predictions_take_the_place_of_a_file_when_all_are_there(tmp_path, monkeypatch):
    """The file may be that which is read; what ends half way leaves none behind."""
    monkeypatch.setattr(read, "BATCH_ROWS", 500)
    rows = SMALL[["store", "x"]]
    path, out = tmp_path / "rows.parquet", tmp_path / "out.parquet"
    rows.to_parquet(path)
    model = WideRegressor(loss="squared_error", interactions=None).fit(rows, SMALL["amount"])
    wanted = model.predict(rows)
    strict = WideRegressor(loss="squared_error", interactions=None, handle_unknown="error").fit(rows, SMALL["amount"])
    late = rows.copy()
    late.loc[len(late) - 1, "store"] = "never"
    late.to_parquet(tmp_path / "late.parquet")
    with pytest.raises(ValueError, match=r"In the rows from [0-9,]+00 on: .*never"):
        strict.predict_to_parquet(tmp_path / "late.parquet", out)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["late.parquet", "rows.parquet"]
    assert model.predict_to_parquet(path, path, keep=["store", "x"]) == len(rows)
    again = pd.read_parquet(path)
    np.testing.assert_allclose(again["prediction"], wanted)
    pd.testing.assert_frame_equal(again[["store", "x"]], rows.reset_index(drop=True), check_dtype=False)
    for frame in (rows, pa.Table.from_pandas(rows), {"store": ["s1"], "x": [1.0]}):
        with pytest.raises(TypeError, match="use predict for a table in memory"):
            model.predict_to_parquet(frame, out)


@pytest.mark.parametrize("sizes", [(4, 3, 3), (1, 8, 1), (10,)])
def test_a_sample_over_parts_has_different_rows_of_all_parts(sizes):
    """As many as were asked for, each row of the table as often as any other, those next to a bound of parts too."""
    own = np.split(np.arange(10.0), np.cumsum(sizes)[:-1])
    engine = SimpleNamespace(
        at=lambda part, what, rows: ((), (), *[own[part][slice(None) if rows is None else rows]] * 3)
    )
    solver = SimpleNamespace(y=np.arange(10.0), _n_rows=list(sizes), engine=engine, terms=())
    for n in range(1, 12):
        counts = np.zeros(10)
        for seed in range(200):
            _, y, weight, start, _ = DescentInParts.sample(solver, n, np.random.RandomState(seed))
            assert len(y) == min(n, 10) and (np.diff(y) > 0).all()
            np.testing.assert_array_equal(y, weight)
            np.testing.assert_array_equal(y, start)
            counts[y.astype(int)] += 1
        rate = min(n, 10) / 10
        assert np.abs(counts - 200 * rate).max() <= 5 * np.sqrt(200 * rate * (1 - rate))


def test_rows_of_a_sample_in_batches_are_as_many_as_asked_and_any_as_often():
    """Beside those that it must not miss; a sample of samples is one of all rows."""
    batches = [pa.table({"row": rows}) for rows in np.split(np.arange(60), [7, 30, 31, 50])]
    counts, wanted = np.zeros((2, 60)), {1: [3], 3: [0, 18]}  # rows 10 and 31 + 0 and 31 + 18
    for seed in range(400):
        rng = np.random.RandomState(seed)
        halves, whole = [parts.RowSample(12, rng) for _ in range(2)], parts.RowSample(12, rng)
        for number, batch in enumerate(batches):
            whole.add(batch, wanted.get(number, ()))
            halves[number % 2].add(batch, wanted.get(number, ()))
        (found, keys), of_both = whole.with_keys(), parts.rows_of_smallest([one.with_keys() for one in halves], 12)
        assert len(keys) == 12 and np.count_nonzero(keys == -1.0) == 3
        assert whole.table().equals(found)
        for number, sample in enumerate((found, of_both)):
            rows = sample["row"].to_numpy()
            assert len(np.unique(rows)) == 12
            counts[number, rows] += 1
    others = np.delete(counts, [10, 31, 49], axis=1)
    np.testing.assert_array_equal(counts[:, [10, 31, 49]], 400)
    rate = 9 / 57
    assert np.abs(others - 400 * rate).max() <= 5 * np.sqrt(400 * rate * (1 - rate))


def test_all_rows_of_a_table_no_larger_than_the_sample_stay_in_order():
    sample = parts.RowSample(9, np.random.RandomState(0))
    for rows in ([5, 1], [8, 3, 9], [2, 7, 0, 4]):
        sample.add(pa.table({"row": rows}), [])
    assert sample.table()["row"].to_pylist() == [5, 1, 8, 3, 9, 2, 7, 0, 4]


def test_the_mean_and_spread_of_two_parts_are_those_of_all_rows():
    y, weight = RNG.normal(size=50), RNG.uniform(0.5, 2.0, 50)
    y[20:] += 7.0  # the mean of the second part is another

    def facts(own):
        mean = np.average(y[own], weights=weight[own])
        total, squares = weight[own].sum(), weight[own] @ np.square(y[own] - mean)
        return Facts(len(y[own]), total, np.square(weight[own]).sum(), np.ones(1, bool), (mean, squares), 0, 0, 0.0)

    both, whole = facts(slice(20)) + facts(slice(20, None)), facts(slice(None))
    assert both.moments == pytest.approx(whole.moments) and both.total == pytest.approx(whole.total)
    assert (both.n_rows, both.squares) == (50, pytest.approx(whole.squares))
