"""A sample of a table of more rows than were asked for, or than fit into memory: the same wherever the rows are."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import psutil
import pyarrow.dataset as ds
import pytest

from tabsym.cli import main
from tabsym.compare import compare, load
from tabsym.compare.comparison import train_best
from tabsym.compare.contenders import all_contenders
from tabsym.compare.metrics import choose_metric
from tabsym.compare.splits import SplitPlan
from tabsym.compare.table.files import ReadOptions, read_some
from tabsym.compare.table.prepare import RoleColumns, prepare
from tabsym.models import wide

N = 6_000
SHARES = {"a": 0.7, "b": 0.27, "c": 0.025, "d": 0.005}


@pytest.fixture(scope="module")
def rows():
    draw = np.random.default_rng(0)
    y = draw.choice(list(SHARES), N, p=list(SHARES.values()))
    return pd.DataFrame({"row": np.arange(N), "town": draw.choice(["Ulm", "Bonn", None], N), "y": y})


@pytest.fixture(params=["frame", "csv", "parquet", "folder", "dataset", "polars", "duckdb"])
def table(request, rows, tmp_path):
    match request.param:
        case "frame":
            return rows
        case "csv":
            rows.to_csv(tmp_path / "t.csv", index=False)
            return tmp_path / "t.csv"
        case "polars":
            return pl.from_pandas(rows).lazy()
        case "duckdb":
            return duckdb.from_arrow(pl.from_pandas(rows).to_arrow())
    (tmp_path / "t").mkdir()
    for part in range(3):
        rows[part::3].to_parquet(tmp_path / "t" / f"{part}.parquet", index=False)
    rows.to_parquet(tmp_path / "t.parquet", index=False)
    if request.param == "parquet":
        return tmp_path / "t.parquet"
    return tmp_path / "t" if request.param == "folder" else ds.dataset(tmp_path / "t")


def test_a_sample_has_the_classes_in_their_proportions(table, rows):
    source, _, said = read_some(table, ReadOptions(), "y", 1_000, 3)
    found = source.frame.astype({"row": int}).merge(rows, on="row", suffixes=("", "_all"))
    assert len(found) == len(source.frame) == found["row"].nunique() == 1_000
    assert (found["y"] == found["y_all"]).all()
    assert (found["town"].fillna("").replace("", None) == found["town_all"]).sum() == found["town_all"].notna().sum()
    counts, whole = found["y"].value_counts(), rows["y"].value_counts()
    for one in SHARES:
        assert abs(counts[one] - whole[one] / N * 1_000) <= 1
    assert "6,000 rows, of which a sample of 1,000, stratified by 'y'" in said
    assert "--max-rows" in said
    again, *_ = read_some(table, ReadOptions(), "y", 1_000, 3)
    other, *_ = read_some(table, ReadOptions(), "y", 1_000, 4)
    pd.testing.assert_frame_equal(again.frame, source.frame)
    assert set(other.frame["row"]) != set(source.frame["row"])
    everything, _, said = read_some(table, ReadOptions(), "y", N, 0)
    assert (len(everything.frame), said) == (N, "")


@pytest.mark.parametrize("n_distinct", [21, N])
def test_numbers_are_sampled_evenly(rows, n_distinct, tmp_path):
    rows.assign(y=np.arange(N) % n_distinct).to_parquet(tmp_path / "t.parquet")
    source, *_ = read_some(tmp_path / "t.parquet", ReadOptions(), "y", 2_000, 0)
    assert len(source.frame) == 2_000
    assert source.frame["row"].is_monotonic_increasing
    assert abs(source.frame["row"].mean() - N / 2) < 4 * N / np.sqrt(12 * 2_000)


def test_as_many_rows_as_fit_into_memory(rows, tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    rows.to_parquet(path)
    size = rows.memory_usage(deep=True, index=False).sum()
    available = psutil.virtual_memory()._replace(available=5 * size)  # for half of the rows
    monkeypatch.setattr(psutil, "virtual_memory", lambda: available)
    source, _, said = read_some(path, ReadOptions(), "y", None, 0)
    assert 0.3 * N < len(source.frame) < 0.7 * N
    assert "as more may not fit into memory" in said
    assert prepare(path, "y").notes[0] == said
    assert len(read_some(rows, ReadOptions(), "y", None, 0)[0].frame) == N  # which is in memory


def test_missing_classes_and_targets_that_are_not_there(rows, tmp_path):
    some = rows.assign(y=rows["y"].where(rows["row"] % 4 > 0, None))
    some.to_parquet(tmp_path / "t.parquet")
    for table in (some, tmp_path / "t.parquet"):
        source, *_ = read_some(table, ReadOptions(), "y", 400, 0)
        assert abs(source.frame["y"].isna().sum() - 100) <= 1
        with pytest.raises(ValueError, match="There is no column 'z'"):
            prepare(table, "z", max_rows=400)
    with pytest.raises(ValueError, match=r"sep \(--sep\) is for text files such as CSV; leave it out for t.parquet"):
        prepare(tmp_path / "t.parquet", "y", max_rows=400, reading=ReadOptions(sep=";"))


@pytest.mark.parametrize("max_rows", [None, 400])
def test_columns_in_the_names_of_folders_are_features(max_rows, rows, tmp_path):
    rows.assign(year=2020 + np.arange(len(rows)) % 3).to_parquet(tmp_path / "t", partition_cols=["year"])
    prepared = prepare(tmp_path / "t", "y", max_rows=max_rows)
    assert set(prepared.X["year"]) == {2020, 2021, 2022}


@pytest.mark.slow
def test_a_comparison_of_a_sample(rows, tmp_path):
    rows.to_parquet(tmp_path / "t.parquet")
    options = {"contenders": ["constant"], "folds": 2, "out": tmp_path / "o", "quiet": True, "max_rows": 900}
    done = compare(tmp_path / "t.parquet", "y", **options)
    page = (tmp_path / "o" / "report.html").read_text()
    assert "of which a sample of 900" in page
    assert len(done.best.predict(rows)) == N
    assert compare(tmp_path / "t.parquet", "y", resume=True, **options).ranking["name"].tolist() == ["constant"]
    with pytest.raises(ValueError, match="max_rows=0 is not possible"):
        compare(rows, "y", max_rows=0)


# -- the winner --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sales():
    draw = np.random.default_rng(1)
    town, week = draw.choice(["Ulm", "Bonn", "Kiel", None], N), draw.integers(0, 40, N)
    x = draw.normal(size=N)
    score = (town == "Ulm") + 0.02 * week + np.sin(x)
    table = pd.DataFrame({"town": town, "week": [f"w{one}" for one in week], "x": x, "open": draw.random(N) < 0.5})
    table.loc[::50, "x"] = np.nan
    table["day"] = pd.date_range("2023-01-01", periods=N, freq="h").strftime("%d.%m.%Y")
    table["price"] = [f"${1000 + 100 * one:,.2f}" for one in score]
    table["area"], table["weight"] = draw.uniform(1, 3, N), draw.uniform(0.5, 2, N)
    table["amount"] = np.where(np.arange(N) % 70 == 3, np.nan, 100 * score + draw.normal(size=N))
    table["count"] = draw.poisson(table["area"] * np.exp(0.5 * score - 1))
    table["class"] = np.where(draw.logistic(size=N) < score - 1, "sold", "kept")
    return table


FEATURES = ["town", "week", "x", "open", "day", "price"]


def winner_of(table, name, target, **options):
    prepared = prepare(table, target, **options)
    plan, metric = SplitPlan("random", None, 5, 1, 0), choose_metric(prepared.task, None)
    return train_best(all_contenders()[name], prepared, plan, metric, None, 0, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "roles", "kind"),
    [
        ("class", {"weight": "weight"}, "frame"),
        ("amount", {"offset": "area"}, "csv"),
        ("amount", {"offset": "area"}, "folder"),
        ("count", {"exposure": "area", "weight": "weight"}, "polars"),
    ],
)
def test_the_wide_model_is_trained_on_all_rows(target, roles, kind, sales, tmp_path):
    own = sales[[*FEATURES, *roles.values(), target]]
    table = own
    if kind == "csv":
        own.to_csv(table := tmp_path / "t.csv", index=False)
    if kind == "polars":
        table = pl.from_pandas(own).lazy()
    if kind == "folder":
        (table := tmp_path / "t").mkdir()
        for part in range(2):
            own[part * N // 2 : (part + 1) * N // 2].to_parquet(table / f"{part}.parquet", index=False)
    task = {"amount": "regression", "count": "count", "class": "binary"}[target]
    options = {"task": task, "roles": RoleColumns(**roles)}
    model = winner_of(table, "wide", target, max_rows=1_500, **options)
    n_rows = int(own[target].notna().sum())
    assert model.trained_on == f"all {n_rows:,} rows"
    assert model.estimator.coefs_["town"]["rows"].sum() == n_rows
    ask = "predict_proba" if task == "binary" else "predict"
    found, expected = (getattr(one, ask)(own) for one in (model, winner_of(own, "wide", target, **options)))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_out_of_core_where_rows_are_many(sales, monkeypatch):
    own = sales[[*FEATURES, "class"]]
    expected = winner_of(own, "wide", "class").predict_proba(own)
    monkeypatch.setattr(wide, "SAMPLE_ROWS", 1_000)
    model = winner_of(own, "wide", "class", max_rows=1_500)
    np.testing.assert_allclose(model.predict_proba(own), expected, rtol=1e-6)


def test_rows_that_cannot_be_read_as_the_sample_train_no_winner(sales):
    """A class, and a target, that the sample lacks: the sample trains the winner, and it is said why."""
    own = sales[["town", "x", "amount"]].assign(kind=[f"k{row % 25}" for row in range(N)])
    own.loc[5, "kind"] = "rare"
    model = winner_of(own.drop(columns="amount"), "wide", "kind", max_rows=500)
    assert "the sample has no row of class 'rare' of 'kind'" in model.trained_on
    assert model.trained_on.startswith("the sample of 500 rows: not on all rows, as ")
    assert len(model.classes_) == 25


@pytest.mark.parametrize("name", ["wide", "onehot-linear"])
@pytest.mark.slow
def test_which_rows_trained_the_winner_is_said(name, sales, tmp_path, capsys):
    sales[[*FEATURES, "class"]].to_parquet(tmp_path / "t.parquet")
    given = [str(tmp_path / "t.parquet"), "--target", "class", "--max-rows", "900", "--folds", "2"]
    given += ["--contenders", name, "--out", str(tmp_path / "o"), "--save-best", str(tmp_path / "best")]
    assert main(["compare", *given]) == 0
    rows = {
        "wide": "trained on all 6,000 rows",
        "onehot-linear": "trained on the sample of 900 rows: this contender needs all rows in memory",
    }[name]
    printed = " ".join(capsys.readouterr().out.split())
    assert f"{rows}: {tmp_path / 'best.skops'}".replace(" ", "") in printed.replace(" ", "")
    assert f"was {rows}." in (tmp_path / "o" / "report.html").read_text()
    assert load(tmp_path / "best.skops").trained_on == rows.removeprefix("trained on ")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["frame", "parquet"])
def test_rare_classes_have_their_part_of_the_sample(kind, seed, tmp_path):
    """Three classes of 20 rows, and 60 positives, among 20,000: their parts of 1,000 are 1 and 3."""
    rng = np.random.default_rng(seed)
    classes = np.full(20_000, "common", dtype=object)
    classes[rng.choice(20_000, 60, replace=False)] = np.repeat(["r1", "r2", "r3"], 20)
    for target, parts in ((classes, {"r1": 1, "r2": 1, "r3": 1}), ((classes != "common").astype(int), {1: 3})):
        own = pd.DataFrame({"x": rng.normal(size=20_000), "y": target})
        table = own
        if kind == "parquet":
            own.to_parquet(table := tmp_path / "t.parquet")
        found, _, note = read_some(table, ReadOptions(), "y", 1_000, seed)
        counts = found.frame["y"].value_counts()
        assert {one: counts[one] for one in parts} == parts
        assert counts.sum() == 1_000
        assert "sample of 1,000, stratified by 'y', is" in note


@pytest.mark.parametrize("kind", ["frame", "lazy"])
def test_samples_that_are_not_stratified_are_called_random(kind):
    rng = np.random.default_rng(0)
    for target in (rng.normal(size=3_000), rng.integers(0, 21, 3_000).astype(str)):
        own = pl.DataFrame({"x": rng.normal(size=3_000), "y": target})
        table = own.lazy() if kind == "lazy" else own.to_pandas()
        found, _, note = read_some(table, ReadOptions(), "y", 500, 0)
        assert len(found.frame) == 500
        assert "of which a random sample of 500 is compared" in note


def test_samples_of_many_rare_classes_are_no_larger_than_asked_for():
    own = pd.DataFrame({"x": np.arange(2_000.0), "y": ["most"] * 1_985 + [f"r{one}" for one in range(15)]})
    found, *_ = read_some(own, ReadOptions(), "y", 100, 0)
    assert len(found.frame) == 100
    assert found.frame["y"].nunique() == 16


@pytest.mark.parametrize("kind", ["parquet", "lazy"])
def test_targets_of_categories_that_no_row_has_and_missing_ones(kind, tmp_path):
    rng = np.random.default_rng(0)
    values = pd.Categorical(rng.choice(["a", "b"], 3_000), categories=["a", "b", *map(str, range(30))])
    own = pd.DataFrame({"x": rng.normal(size=3_000), "y": values})
    own.loc[::7, "y"] = None
    table = pl.from_pandas(own).lazy()
    if kind == "parquet":
        own.to_parquet(table := tmp_path / "t.parquet")
    found, _, note = read_some(table, ReadOptions(), "y", 500, 0)
    assert len(found.frame) == 500
    assert "stratified by 'y'" in note
    assert found.frame["y"].isna().sum() == pytest.approx(500 / 7, abs=1)
