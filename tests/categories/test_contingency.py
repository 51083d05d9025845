"""Counts of a column that was coded once: for any rows they are those of these rows alone."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from tabsym.categories import code_categories, code_numbers, contingency, encode_column, merge_tables
from tabsym.frame import read_table

RNG = np.random.default_rng(0)
N = 400
NUMBERS = np.where(RNG.random(N) < 0.1, np.nan, RNG.integers(0, 60, N) / 4)
CATEGORIES = [None if RNG.random() < 0.1 else f"s{RNG.integers(0, 50)}" for _ in range(N)]
ROWS = np.flatnonzero(RNG.random(N) < 0.3)
WHOLE = RNG.integers(1, 5, N).astype(float)
FRACTIONS = RNG.random(N) + 1e-9


def coded(kind, rows=slice(None)):
    if kind == "numbers":
        return code_numbers(NUMBERS[rows])
    frame = pd.DataFrame if kind == "pandas" else pl.DataFrame
    found = encode_column(read_table(frame({"s": np.array(CATEGORIES, dtype=object)[rows].tolist()}))["s"])
    return code_categories(found.codes, found.categories)


def dense(table):
    return table.counts.toarray() if sparse.issparse(table.counts) else table.counts


@pytest.mark.parametrize("kind", ["numbers", "pandas", "polars"])
@pytest.mark.parametrize("n_targets", [2, 100])  # dense and sparse counts
@pytest.mark.parametrize("weight", [None, WHOLE, FRACTIONS], ids=["rows", "whole", "fractions"])
def test_counts_of_rows_are_those_of_a_table_of_these_rows(kind, n_targets, weight):
    target, targets = RNG.integers(0, n_targets, N), np.arange(n_targets)
    of_rows = coded(kind).count(target, targets, weight, ROWS)
    alone = coded(kind, ROWS).count(target[ROWS], targets, None if weight is None else weight[ROWS])
    assert of_rows.values.tolist() == alone.values.tolist()
    assert (of_rows.lows is None) is (kind != "numbers")
    np.testing.assert_allclose(dense(of_rows), dense(alone), rtol=0 if weight is not FRACTIONS else 1e-14)
    assert (of_rows.sizes > 0).all()
    assert len(of_rows.values) < len(coded(kind).values)  # those that the rows do not hold are left out


@pytest.mark.parametrize("kind", ["numbers", "pandas", "polars"])
def test_rows_and_the_other_rows_are_the_whole(kind):
    target, targets = RNG.integers(0, 3, N), np.arange(3)
    column = coded(kind)
    others = np.setdiff1d(np.arange(N), ROWS)
    both = merge_tables(*(column.count(target, targets, WHOLE, rows) for rows in (ROWS, others)))
    whole = column.count(target, targets, WHOLE)
    assert both.values.tolist() == whole.values.tolist()
    np.testing.assert_array_equal(both.counts, whole.counts)


def test_counts_by_hand():
    table = code_numbers(np.array([2.0, np.nan, 1.0, 2.0])).count(np.array([0, 1, 1, 1]), np.array([5, 7]))
    assert table.values.tolist() == [-np.inf, 1.0, 2.0]
    assert table.counts.tolist() == [[0, 1], [0, 1], [1, 1]]
    codes = np.array([1, -1, 0, 1])
    table = code_categories(codes, np.array(["b", "a"], dtype=object)).count(np.array([0, 1, 1, 1]), np.array([5, 7]))
    assert table.values.tolist() == ["a", "b", None]
    assert table.counts.tolist() == [[1, 1], [0, 1], [0, 1]]


def test_a_sketch_is_of_the_rows_counted(monkeypatch):
    monkeypatch.setattr(contingency, "SKETCH_ABOVE", 20)
    column = code_numbers(np.arange(100.0))
    few = column.count(np.zeros(100, dtype=int), np.arange(1), rows=np.arange(10))
    assert (few.values.tolist(), few.error) == (list(range(10)), 0)
    assert len(column.count(np.zeros(100, dtype=int), np.arange(1)).values) <= 21
