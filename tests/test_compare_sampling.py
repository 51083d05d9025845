"""A sample of a table of more rows than were asked for, or than fit into memory: the same wherever the rows are."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import psutil
import pyarrow.dataset as ds
import pytest

from tabsym.compare import compare
from tabsym.compare.prepare import prepare
from tabsym.compare.reading import ReadOptions
from tabsym.compare.sampling import read_some

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
    source, said = read_some(table, ReadOptions(), "y", 1_000, 3)
    found = source.frame.astype({"row": int}).merge(rows, on="row", suffixes=("", "_all"))
    assert len(found) == len(source.frame) == found["row"].nunique() == 1_000
    assert (found["y"] == found["y_all"]).all()
    assert (found["town"].fillna("").replace("", None) == found["town_all"]).sum() == found["town_all"].notna().sum()
    counts, whole = found["y"].value_counts(), rows["y"].value_counts()
    for one in SHARES:
        assert abs(counts[one] - whole[one] / N * 1_000) <= 1
    assert "6,000 rows, of which a sample of 1,000, stratified by 'y'" in said
    assert "--max-rows" in said
    again, _ = read_some(table, ReadOptions(), "y", 1_000, 3)
    other, _ = read_some(table, ReadOptions(), "y", 1_000, 4)
    pd.testing.assert_frame_equal(again.frame, source.frame)
    assert set(other.frame["row"]) != set(source.frame["row"])
    everything, said = read_some(table, ReadOptions(), "y", N, 0)
    assert (len(everything.frame), said) == (N, "")


@pytest.mark.parametrize("n_distinct", [21, N])
def test_numbers_are_sampled_evenly(rows, n_distinct, tmp_path):
    rows.assign(y=np.arange(N) % n_distinct).to_parquet(tmp_path / "t.parquet")
    source, _ = read_some(tmp_path / "t.parquet", ReadOptions(), "y", 2_000, 0)
    assert len(source.frame) == 2_000
    assert source.frame["row"].is_monotonic_increasing
    assert abs(source.frame["row"].mean() - N / 2) < 4 * N / np.sqrt(12 * 2_000)


def test_as_many_rows_as_fit_into_memory(rows, tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    rows.to_parquet(path)
    size = rows.memory_usage(deep=True, index=False).sum()
    available = psutil.virtual_memory()._replace(available=5 * size)  # for half of the rows
    monkeypatch.setattr(psutil, "virtual_memory", lambda: available)
    source, said = read_some(path, ReadOptions(), "y", None, 0)
    assert 0.3 * N < len(source.frame) < 0.7 * N
    assert "as more may not fit into memory" in said
    assert prepare(path, "y").notes[0] == said
    assert len(read_some(rows, ReadOptions(), "y", None, 0)[0].frame) == N  # which is in memory


def test_missing_classes_and_targets_that_are_not_there(rows, tmp_path):
    some = rows.assign(y=rows["y"].where(rows["row"] % 4 > 0, None))
    some.to_parquet(tmp_path / "t.parquet")
    for table in (some, tmp_path / "t.parquet"):
        source, _ = read_some(table, ReadOptions(), "y", 400, 0)
        assert abs(source.frame["y"].isna().sum() - 100) <= 1
        with pytest.raises(ValueError, match="There is no column 'z'"):
            prepare(table, "z", max_rows=400)
    with pytest.raises(ValueError, match=r"sep \(--sep\) is for text files such as CSV; leave it out for t.parquet"):
        prepare(tmp_path / "t.parquet", "y", max_rows=400, reading=ReadOptions(sep=";"))


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
