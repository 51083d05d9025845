"""Fitted columns in their own values: bounds, labels, dates, and uninformative columns."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tabsym import MODLEncoder, WideSGDClassifier
from tests.modl_data import NUMBER, TARGETS, N, X, Y


def cut(values):
    """The encoder of a column whose values differ in class."""
    values = np.repeat(np.asarray(values), 100)
    return MODLEncoder().fit(pd.DataFrame({"x": values}), np.arange(len(values)) // 100 % 2)


def test_intervals_are_right_closed():
    encoder = cut([1.0, 2.0])
    assert encoder.partitions_["x"].bounds.tolist() == [1.5]
    out = encoder.transform(pd.DataFrame({"x": [1.5, np.nextafter(1.5, 2)]}))["x"]
    assert out.tolist() == ["]-inf; 1.5]", "]1.5; +inf["]


@pytest.mark.parametrize(
    "values",
    [
        [1.0, np.nextafter(1.0, 2), np.nextafter(np.nextafter(1.0, 2), 2)],
        [-np.nextafter(1.0, 2), -1.0],
        [0.0, 5e-324, 1e-323, 1.5e-323, 2.5e-323],
        [-1e-323, -5e-324, 0.0],
        [-1.7e308, -1e300, 1e300, 1.7e308],
        np.array([-(2**63), -(2**62), 0, 2**62, 2**63 - 1]),
        np.array([0, 2**64 - 1], dtype=np.uint64),
    ],
)
def test_neighbouring_and_extreme_values_are_told_apart(values):
    encoder = cut(values)
    fitted = encoder.partitions_["x"]
    assert fitted.partition.n_parts == len(values)
    assert np.isfinite(fitted.bounds).all()
    assert len(set(fitted.labels)) == len(values)
    assert encoder.transform(pd.DataFrame({"x": values}))["x"].cat.codes.tolist() == list(range(len(values)))
    back = encoder.inverse_transform(encoder.transform(pd.DataFrame({"x": values})))["x"]
    np.testing.assert_array_equal(back, np.asarray(values, dtype=float))


def test_labels_of_whole_numbers_are_exact():
    assert cut([20240101, 20240102]).partitions_["x"].labels == ["]-inf; 20240101.5]", "]20240101.5; +inf["]
    assert cut([1e6, 3e6]).partitions_["x"].labels == ["]-inf; 2000000]", "]2000000; +inf["]
    assert cut([0.1, 0.21]).partitions_["x"].labels == ["]-inf; 0.155]", "]0.155; +inf["]
    assert cut([1e20, 3e20]).partitions_["x"].labels == ["]-inf; 2e+20]", "]2e+20; +inf["]


def test_infinite_values_are_errors():
    for value in (np.inf, -np.inf):
        with pytest.raises(ValueError, match="Column 'x' contains infinity; replace"):
            MODLEncoder().fit(X.assign(x=value), Y)
        with pytest.raises(ValueError, match="Column 'x' contains infinity; replace"):
            MODLEncoder().fit(X, Y).transform(X.assign(x=value))


def test_small_and_empty_columns():
    frame = pd.DataFrame({"k": 1.0, "text": "t", "gone": np.nan, "none": None, "g": X["g"]})
    for y in TARGETS.values():
        encoder = MODLEncoder().fit(frame, y)
        assert [encoder.levels_[name] for name in ("k", "text", "gone", "none")] == [0] * 4
        labels = {name: one.labels for name, one in encoder.partitions_.items() if name != "g"}
        assert labels == {
            "k": ["]-inf; +inf["],
            "text": ["{t}"],
            "gone": ["{Missing}"],  # an empty column has no type
            "none": ["{Missing}"],
        }
        assert encoder.transform(frame).notna().all(axis=None)
        out = MODLEncoder(drop_invariant=True).fit(frame, y)
        assert list(out.transform(frame)) == ["g"]
        assert out.invariant_cols_ == ["k", "text", "gone", "none"]
    tiny = MODLEncoder().fit(X[:2], [0, 1])
    assert tiny.transform(X[:2]).shape == (2, 2)
    assert tiny.transform(X[:1]).shape == (1, 2)
    one = MODLEncoder(target_type="continuous").fit(X[:1], [2.5])
    assert one.levels_ == {"x": 0.0, "g": 0.0}
    with pytest.raises(ValueError, match="1 class only"):
        MODLEncoder().fit(X[:1], [0])
    with pytest.raises(ValueError, match="has no rows"):
        MODLEncoder().fit(X[:0], [])


def test_booleans_dates_and_numbers_of_other_types():
    flags = pd.DataFrame({"flag": NUMBER > 0, "null": pd.Series([True, False, None] * (N // 3), dtype="boolean")})
    encoder = MODLEncoder().fit(flags, (NUMBER > 0).astype(int))
    assert sorted(encoder.partitions_["flag"].labels) == ["{False}", "{True}"]
    days = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=N, freq="D", tz="Europe/Paris")})
    days.loc[3, "day"] = pd.NaT
    encoder = MODLEncoder().fit(days, (np.arange(N) >= 200).astype(int))
    assert encoder.partitions_["day"].partition.n_parts == 2
    assert encoder.transform(days)["day"].cat.codes.tolist() == [0] * 200 + [1] * 220
    whole = MODLEncoder().fit(X[["x"]], Y)
    for values in (
        pd.array(NUMBER, dtype="Float64"),
        NUMBER.astype(np.float32),
        pd.array(NUMBER, dtype="double[pyarrow]"),
    ):
        other = MODLEncoder().fit(pd.DataFrame({"x": values}), Y)
        assert other.partitions_["x"].partition.n_parts == whole.partitions_["x"].partition.n_parts
        assert other.costs_ == whole.costs_


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_intervals_of_dates_are_labelled_by_dates(make):
    days = pd.date_range("2020-01-01", periods=400, freq="D")
    X = make({"day": list(days.to_pydatetime()), "hour": list((days + pd.Timedelta("5h30min")).to_pydatetime())})
    y = np.where(np.arange(400) < 150, 0, 1)
    encoder = MODLEncoder().fit(X, y)
    assert encoder.partitions_["day"].labels == ["]-inf; 2020-05-29]", "]2020-05-29; +inf["]  # the 150th day
    assert encoder.partitions_["hour"].labels == ["]-inf; 2020-05-29 17:30]", "]2020-05-29 17:30; +inf["]
    half = make({"day": list(days.to_pydatetime()[:200])})
    merged = MODLEncoder().partial_fit(half, y[:200]).partial_fit(half, y[:200])
    assert merged.partitions_["day"].labels == ["]-inf; 2020-05-29]", "]2020-05-29; +inf["]
    wide = WideSGDClassifier(numeric="modl").fit(X, y)
    assert wide.coefs_["day"].index.tolist() == ["]-inf; 2020-05-29]", "]2020-05-29; +inf["]
