"""Lazy frames: counted by their engine as the collected table is counted, and encoded without being collected."""

import datetime
import shutil
from decimal import Decimal
from functools import cache
from importlib.util import find_spec

import duckdb
import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from tabsym import MODLEncoder, OneHotEncoder, TIWSEncoder, WideEncoder
from tabsym.categories import lazy
from tabsym.frame import read_table

N = 600
FEATURES = ["word", "many", "flag", "price", "day", "cost", "moment"]
ENGINES = {
    "polars": lambda frame: frame.lazy(),
    "duckdb": lambda frame: duckdb.from_arrow(frame.to_arrow()),
    "ibis": lambda frame: pytest.importorskip("ibis").memtable(frame.to_arrow()),
    "pyspark": lambda frame: spark().createDataFrame(frame.to_arrow()).cache(),
}
NEEDS = {"ibis": find_spec("ibis"), "pyspark": find_spec("pyspark") and shutil.which("java")}
OF_ENGINES = [
    pytest.param(name, marks=pytest.mark.skipif(not NEEDS.get(name, True), reason=f"optional engine: {needs}"))
    for name, needs in {
        "polars": "", "duckdb": "", "ibis": 'pip install "ibis-framework[duckdb]"',
        "pyspark": "pip install pyspark, which needs a Java runtime",
    }.items()
]  # fmt: skip


@cache
def spark():
    """A session of one thread; moments without a time zone stay so."""
    from pyspark.sql import SparkSession

    options = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    return SparkSession.builder.master("local[1]").config(map=options).getOrCreate()


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    word = rng.choice(["b", "a", "c", None], N)
    price = [
        None if i % 7 == 0 else float("nan") if i % 11 == 0 else float(x)
        for i, x in enumerate(rng.integers(0, 40, N) / 4)
    ]
    noise = rng.normal(size=N)
    level = np.where(word == "a", 1.0, 0.0) + np.nan_to_num(np.array(price, dtype=float)) / 4
    start = datetime.datetime(2020, 1, 1)
    return pl.DataFrame(
        {
            "word": word.tolist(),
            "many": [f"m{code}" for code in rng.integers(0, 90, N)],
            "flag": rng.choice([True, False, None], N).tolist(),
            "price": price,
            "day": [start.date() + datetime.timedelta(int(day)) for day in rng.integers(0, 20, N)],
            "cost": [Decimal(int(cost)) / 4 for cost in rng.integers(0, 9, N)],
            "moment": [start + datetime.timedelta(minutes=int(one)) for one in rng.integers(0, 10**6, N)],
            "weight": rng.integers(0, 3, N),
            "row": np.arange(N),
            "amount": np.round(level + noise, 1),
            "kind": np.where(level + noise > 1.5, "yes", "no"),
        }
    )


@pytest.fixture(params=OF_ENGINES)
def engine(request):
    return ENGINES[request.param]


def collected(native):
    """As polars, in the order of the column `row`."""
    frame = nw.from_native(native).collect().to_native()
    return (frame if isinstance(frame, pl.DataFrame) else pl.from_arrow(frame)).sort("row")


def assert_same(got, want):
    assert got.columns == want.columns
    for name in want.columns:
        one, other = got[name], want[name]
        if isinstance(other.dtype, (pl.Enum, pl.Categorical)):  # which DuckDB has not
            other = other.cast(pl.String)
            one = one.cast(pl.String)
        assert one.dtype == other.dtype, name
        if other.dtype.is_float():
            np.testing.assert_allclose(one.to_numpy(), other.to_numpy(), rtol=1e-12, err_msg=name)
        else:
            assert one.to_list() == other.to_list(), name


def test_categories_are_those_that_a_loop_counts(engine, table):
    encoder = OneHotEncoder(cols=FEATURES, min_frequency=20).fit(engine(table.select(FEATURES)))
    for name in FEATURES:
        times = {}
        for value in table[name].fill_nan(None).to_list() if name == "price" else table[name].to_list():
            times[value] = times.get(value, 0) + 1
        known = encoder.categories_[name].tolist()
        assert known == sorted(one for one in times if one is not None) + [None] * (None in times)
        assert {type(one) for one in known} == {type(one) for one in times}
        rare = encoder.infrequent_categories_[name]
        assert (set() if rare is None else set(rare.tolist())) == {one for one in times if times[one] < 20}


def test_declared_categories_keep_their_order(table):
    order = pl.Enum(["c", "zero", "b", "a"])
    frame = table.select(pl.col("word").cast(order))
    encoder = OneHotEncoder().fit(frame.lazy())
    assert encoder.categories_["word"].tolist() == ["c", "b", "a", None]
    relation = duckdb.from_arrow(frame.to_arrow())
    assert OneHotEncoder().fit(relation).categories_["word"].tolist()[-1] is None


@pytest.mark.parametrize("target", ["kind", "amount"])
def test_parts_are_those_of_the_collected_table(engine, table, target):
    weight = "weight" if target == "kind" else None
    frame = table.select(*FEATURES, target, *([weight] if weight else []))
    want = MODLEncoder(prove=False).fit(frame.select(FEATURES), frame[target], frame[weight] if weight else None)
    got = MODLEncoder(prove=False).fit(engine(frame), target, weight)
    assert got.costs_ == want.costs_
    for name, one in want.partitions_.items():
        assert got.partitions_[name].labels == one.labels
        np.testing.assert_array_equal(got.partitions_[name].target.counts, one.target.counts)
    assert got.feature_names_in_.tolist() == FEATURES and got.n_cells_ == {}


@pytest.mark.parametrize("target", ["kind", "amount"])
def test_contexts_are_those_of_the_collected_table(engine, table, target):
    for numeric, weight in (("modl", "weight"), ("quantile", "weight"), ({"price": [2.0, 5.0]}, None)):
        frame = table.select(*FEATURES, target, *([weight] if weight else []))
        want = TIWSEncoder(numeric=numeric).fit(
            frame.select(FEATURES), frame[target], None if not weight else frame[weight]
        )
        got = TIWSEncoder(numeric=numeric).fit(engine(frame), target, weight)
        for one, other in zip(got.counts_.words, want.counts_.words, strict=True):
            if hasattr(other, "edges"):
                assert one.edges.tolist() == other.edges.tolist() and one.missing == other.missing
            else:
                assert one.vocabulary.categories.tolist() == other.vocabulary.categories.tolist()
        for which, block in want.counts_.pairs.blocks.items():
            assert (got.counts_.pairs.blocks[which] != block).nnz == 0
        for number, sums in want.counts_.sums.items():
            other = got.counts_.sums[number]
            assert other.rows.tolist() == sums.rows.tolist()
            np.testing.assert_allclose(other.means + other.origin, sums.means + sums.origin, rtol=1e-12)
            np.testing.assert_allclose(other.squares, sums.squares, rtol=1e-12, atol=1e-9)


@pytest.mark.slow
def test_transform_is_lazy_and_equal(engine, table):
    new = table.with_columns(
        word=pl.when(pl.col("row") % 13 == 0).then(pl.lit("new")).otherwise("word"),
        many=pl.when(pl.col("row") % 17 == 0).then(pl.format("n{}", pl.col("row") % 50)).otherwise("many"),
    )
    text = ["word", "many", "flag"]
    for encoder, target in (
        (OneHotEncoder(cols=[*text, "day", "cost"], handle_missing="return_nan", handle_unknown="indicator"), "kind"),
        (MODLEncoder(cols=FEATURES), "kind"),
        (MODLEncoder(cols=FEATURES, output="onehot", special_codes={"moment": [table["moment"][0]]}), "kind"),
        (MODLEncoder(cols=FEATURES, output="mean", handle_unknown="return_nan", handle_missing="return_nan"), "amount"),
        (TIWSEncoder(cols=text, indicator=True), "amount"),
        (TIWSEncoder(cols=text, handle_missing="return_nan", handle_unknown="return_nan", context="row"), "kind"),
        (WideEncoder(cols=text), "amount"),
    ):
        frame = table.select(*FEATURES, "row", target)
        encoder.fit(frame, target)
        given = engine(new.select(frame.columns))
        got = encoder.transform(given)
        assert type(got) is type(given)
        want = encoder.transform(new.select(frame.columns).drop(target)).with_columns(new[target])
        assert_same(collected(got), want)


def test_nothing_but_groups_is_collected(engine, table, monkeypatch):
    rows, collect = [], nw.LazyFrame.collect

    def spy(self, *args, **kwargs):
        out = collect(self, *args, **kwargs)
        rows.append(len(out))
        return out

    monkeypatch.setattr(nw.LazyFrame, "collect", spy)
    frame = engine(table.select("word", "many", "price", "kind"))
    OneHotEncoder().fit_transform(frame, "kind")
    assert max(rows) == table["many"].n_unique()
    rows.clear()
    MODLEncoder(prove=False).fit_transform(frame, "kind")
    assert max(rows) <= 2 * 90
    rows.clear()
    TIWSEncoder(cols="word", numeric="quantile").fit(frame, "kind").transform(frame)
    assert max(rows) <= 4 * 90


def test_many_numbers_are_counted_in_cells(engine, table, monkeypatch):
    monkeypatch.setattr(lazy, "MAX_VALUES", 25)
    monkeypatch.setattr("tabsym.encoders.modl_counts.MAX_TARGET_CELLS", 10)
    frame = table.select("price", "moment", "amount", yes=table["kind"] == "yes")
    rows = lazy.lazy_rows(engine(frame), "yes", None, "here", supervised=True)
    counting = MODLEncoder(prove=False)
    counting.fit(engine(frame.drop("amount")), "yes")
    assert counting.n_cells_ == {"price": 25, "moment": 25}
    fitted = counting.partitions_["price"]
    assert 0 < fitted.error <= 2 * N / 25 and "counted in cells" in counting.describe("price")
    whole = MODLEncoder(prove=False).fit(frame.select("price", "moment"), frame["yes"])
    assert counting.partitions_["price"].partition.n_parts == whole.partitions_["price"].partition.n_parts
    np.testing.assert_allclose(counting.levels_["price"], whole.levels_["price"], rtol=0.1)
    groups = lazy.sizes_of(rows.in_cells("moment", 25)[0].groups([nw.col("tabsym_cell_moment")]))
    assert len(groups) == 25 and set(groups.tolist()) <= {N / 25 - 1, N / 25, N / 25 + 1}
    values = frame["price"].to_numpy()  # by the same cuts, a loop counts the same rows
    inside = fitted.parts(values)
    classes = frame["yes"].to_numpy()
    counts = [
        [int(((inside == part) & (classes == one)).sum()) for one in (False, True)]
        for part in range(len(fitted.labels))
    ]
    assert fitted.target.counts.tolist() == counts
    amounts = MODLEncoder(prove=False).fit(engine(frame.select("price", "amount")), "amount")
    assert amounts.n_cells_ == {"amount": 10, "price": 25}
    total = sum(part.mean * part.rows for part in amounts.parts("price").itertuples())
    np.testing.assert_allclose(total, frame["amount"].sum(), rtol=1e-12)


def test_bins_of_moments_are_those_of_the_collected_column(engine, request):
    """The bounds among them values themselves, before 1970 too."""
    rng, kind = np.random.default_rng(0), request.node.callspec.id
    for unit, each in {"ms": 1, "us": 10**3, "ns": 10**6}.items() if kind == "polars" else [("us", 10**3)]:
        parts = pl.Series(rng.integers(-(10**9), 10**9, 40) * each + rng.integers(0, 3, 40))
        frame = pl.DataFrame({"row": np.arange(40), "naive": parts.cast(pl.Datetime(unit))})
        frame = frame.with_columns(zoned=pl.col("naive").dt.replace_time_zone("UTC"))
        if kind not in ("ibis", "pyspark"):  # which have no durations in narwhals
            frame = frame.with_columns(since=parts.cast(pl.Duration(unit)))
        rows = nw.from_native(engine(frame))
        for name in frame.columns[1:]:
            values = read_table(frame.select(name), caller="here")[name].values
            bounds = np.sort(np.append(values[:9], values[9:18] + 1e-9))
            found = rows.select("row", bin=lazy.number_of_bin(rows, name, bounds)).collect()
            found = np.asarray(found["bin"].to_numpy())[np.argsort(found["row"].to_numpy())]
            np.testing.assert_array_equal(found, np.searchsorted(bounds, values), err_msg=name)


def test_quantiles_are_numpys(engine, table):
    shares, values = np.arange(1, 10) / 10, table["price"].to_numpy()
    known = ~np.isnan(values)
    for name, weights in ((None, None), ("weight", table["weight"].to_numpy().astype(float)[known])):
        rows = lazy.lazy_rows(engine(table), None, name, "here", supervised=False)
        want = np.quantile(values[known], shares, weights=weights, method="inverted_cdf")
        np.testing.assert_array_equal(rows.quantiles("price", shares), want)


def test_quantiles_do_not_depend_on_the_unit_of_weights(engine):
    rng = np.random.default_rng(0)
    shares = np.arange(1, 10) / 10
    for n in range(20, 60, 4):
        values, weight = rng.integers(0, 30, n) * 1.0, rng.integers(1, 4, n)
        want = np.quantile(np.repeat(values, weight), shares, method="inverted_cdf")
        for unit in (0.1, 0.7, 3.0):
            frame = engine(pl.DataFrame({"x": values, "w": weight * unit}))
            rows = lazy.lazy_rows(frame, None, "w", "here", supervised=False)
            np.testing.assert_array_equal(rows.quantiles("x", shares), want)


def test_sentences(engine, table):
    frame = engine(table.select("word", "many", "weight", "kind"))
    with pytest.raises(TypeError, match=r"sample_weight is ndarray, and X a lazy frame, .*: sample_weight='NAME'"):
        MODLEncoder().fit(frame, "kind", np.ones(N))
    with pytest.raises(ValueError, match="There is no column 'mass' of weights; the table's first columns are 'word'"):
        OneHotEncoder().fit(frame, "kind", "mass")
    with pytest.raises(ValueError, match=r"the target is missing in \d+ row"):
        TIWSEncoder().fit(engine(table.select("many", "word")), "word")
    with pytest.raises(ValueError, match="sample_weight contains a negative value"):
        TIWSEncoder().fit(engine(table.select("many", "kind", w=-table["weight"])), "kind", "w")
    with pytest.raises(ValueError, match="Column 'word' holds missing values"):
        OneHotEncoder(handle_missing="error").fit(frame, "kind")
    fitted = OneHotEncoder(handle_unknown="error", cols="many").fit(frame, "kind", "weight")
    other = table.select("word", many=pl.lit("else"))
    with pytest.raises(ValueError, match="Column 'many' holds 'else', which is not in the training data"):
        fitted.transform(engine(other))
    with pytest.raises(TypeError, match="Column 'many' is of type Int64 now"):
        fitted.transform(engine(table.select("word", many="row")))
    with pytest.raises(ValueError, match="Feature names seen at fit time, yet now missing"):
        fitted.transform(engine(table.select("word")))


@pytest.mark.parametrize(
    "encoder",
    [
        OneHotEncoder(drop_invariant=True),
        OneHotEncoder(drop="first"),
        MODLEncoder(drop_invariant=True),
        TIWSEncoder(drop_invariant=True),
        WideEncoder(drop_invariant=True),
    ],
)
def test_a_lazy_frame_of_which_no_column_is_left_is_refused(engine, table, encoder):
    """The collected one has no column then; an engine selects none, which narwhals said in its own words."""
    constant = table.select(one=pl.lit("k"), other=pl.lit("m"), amount="amount")
    fitted = clone(encoder).fit(engine(constant), "amount") if not isinstance(encoder, OneHotEncoder) else None
    fitted = fitted or clone(encoder).fit(engine(constant.drop("amount")))
    assert fitted.transform(constant.drop("amount")).columns == []
    with pytest.raises(ValueError, match=r"No column is left of the lazy frame: .* encode the collected frame"):
        fitted.transform(engine(constant.drop("amount")))


def test_weights_by_name_of_a_collected_table(table):
    frame = table.select("word", "price", "weight", "kind")
    got = MODLEncoder().fit(frame, "kind", "weight")
    want = MODLEncoder().fit(frame.select("word", "price"), frame["kind"], frame["weight"])
    assert got.costs_ == want.costs_
    assert TIWSEncoder().fit_transform(frame, "kind", "weight").columns == ["word", "price"]


@pytest.mark.slow
@pytest.mark.parametrize("encoder", [MODLEncoder(output="logodds"), TIWSEncoder(), OneHotEncoder(use_cat_names=True)])
def test_dask_frames_are_counted_and_stay_lazy(encoder):
    frames = pytest.importorskip("dask.dataframe")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.choice(list("abcd"), 300), "b": rng.choice(list("xyz"), 300)})
    rows["y"] = np.where(rows["a"].isin(["a", "b"]) ^ (rng.random(300) < 0.2), "hi", "lo")
    new = pd.DataFrame({"a": ["a", "new", None, "d"], "b": ["x", "y", "z", "new"]})
    expected = clone(encoder).fit(rows, "y").transform(new)
    lazy = (
        clone(encoder)
        .fit(frames.from_pandas(rows, npartitions=3), "y")
        .transform(frames.from_pandas(new, npartitions=2))
    )
    assert not isinstance(lazy, pd.DataFrame)
    found = lazy.compute()[list(expected)]
    np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=1e-12)


def test_names_that_duckdb_does_not_tell_apart_are_refused():
    """`project('sum("s_a")')` gave the sum of "s_A"."""
    rows = pl.DataFrame({"s": ["a", "A", "a"] * 10})
    encoder = OneHotEncoder(use_cat_names=True).fit(rows)
    with pytest.raises(ValueError, match="columns 's_a' and 's_A', which DuckDB does not tell apart"):
        encoder.transform(duckdb.sql("SELECT * FROM rows"))
    assert encoder.transform(rows.lazy()).collect()["s_a"].sum() == 20


def test_a_type_of_the_engine_alone_is_told_of():
    with_ids = duckdb.sql("SELECT ('00000000-0000-0000-0000-00000000000' || i % 10)::UUID AS u FROM range(30) t(i)")
    encoder = OneHotEncoder(cols=["u"]).fit(with_ids)
    with pytest.raises(TypeError, match=r"Column 'u' has a type of the engine .* CAST\(... AS VARCHAR\)"):
        encoder.transform(with_ids)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("wanted", ["handle_unknown", "handle_missing"])
def test_the_posters_estimates_are_over_all_documents_that_are_unknown(engine, wanted):
    """Those that become NaN among them, which were not collected: estimates of the others were other ones."""
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({"a": rng.choice(list("uvwx"), 200), "b": rng.choice(list("pqr"), 200), "y": rng.random(200)})
    options = {"handle_unknown": "return_nan", "handle_missing": "return_nan"} | {wanted: "value"}
    encoder = TIWSEncoder(method="poster", cols="a", target_type="continuous", **options).fit(frame, "y")
    new = pl.DataFrame({"a": ["u", "new", "other", None, "new", None], "b": list("pqrrrq")})
    want = encoder.transform(new)["a"].to_numpy()
    got = nw.from_native(encoder.transform(ENGINES[engine](new))).collect(backend="polars").to_native()
    assert np.isnan(want).sum() == (2 if wanted == "handle_unknown" else 3)
    np.testing.assert_allclose(np.sort(got["a"].to_numpy()), np.sort(want), rtol=1e-9)
