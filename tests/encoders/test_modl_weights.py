"""Weights that are shares, which encoders would take for next to no rows, are told of."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tabsym import CrossFit, MODLEncoder, TIWSEncoder

N = 200
X = pd.DataFrame({"x": np.arange(N)})
Y = (np.arange(N) >= 50).astype(int)


@pytest.mark.parametrize("method", ["fit", "fit_transform", "partial_fit"])
@pytest.mark.parametrize("total", [1, 0.099 * N])
def test_light_weights_are_told_of(method, total):
    with pytest.warns(UserWarning, match=rf"weights of 200 rows add up to {total:.4g}, .*multiply them by the number"):
        getattr(MODLEncoder(output="mean"), method)(X, Y, sample_weight=np.full(N, total / N))


@pytest.mark.parametrize("lazy", [False, True])
def test_light_weights_of_a_target_encoding_are_told_of(lazy):
    """By weights that sum to 1 all encodings were the mean, silently."""
    table = pd.DataFrame({"g": np.arange(N) % 5, "y": 1.0 * (np.arange(N) % 5), "w": 1 / N}).astype({"g": str})
    told = r"weights of 200 rows add up to 1, which TIWSEncoder .*shrinks encodings to the mean; .*multiply them by"
    with pytest.warns(UserWarning, match=told):
        rows = pl.from_pandas(table).lazy() if lazy else table
        light = TIWSEncoder(target_type="continuous").fit(rows, "y", sample_weight="w")
    assert np.ptp(np.asarray(light.transform(table[["g"]]))) < 0.2
    for encoder in (TIWSEncoder(target_type="continuous"), CrossFit(TIWSEncoder(cv=None, target_type="continuous"))):
        with pytest.warns(UserWarning, match="TIWSEncoder takes for the number of rows"):
            encoder.fit_transform(table[["g"]], table["y"], sample_weight=table["w"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            encoder.fit_transform(table[["g"]], table["y"], sample_weight=N * table["w"])


def test_the_remedy_is_one():
    shares = np.full(N, 1 / N)
    with pytest.warns(UserWarning, match="add up to 1"):
        assert MODLEncoder().fit(X, Y, sample_weight=shares).levels_ == {"x": 0.0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder = MODLEncoder().fit(X, Y, sample_weight=shares * len(shares) / shares.sum())
    assert encoder.partitions_["x"].bounds.tolist() == [49.5]


def test_what_is_no_share_is_not_told_of():
    few = np.isin(np.arange(N), np.arange(0, 100, 10)).astype(float)  # rows left out
    cases = [(few, 45.0, [[5, 0], [0, 5]]), (np.full(N, 0.11), 49.5, [[5.5, 0], [0, 16.5]]),
             (np.full(N, 1e6), 49.5, [[5e7, 0], [0, 1.5e8]])]  # fmt: skip
    for weight, bound, rows in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = MODLEncoder().fit(X, Y, sample_weight=weight).partitions_["x"]
        assert found.bounds.tolist() == [bound]
        np.testing.assert_allclose(found.target.counts, rows)
    alone = MODLEncoder().fit(X[few > 0], Y[few > 0])
    assert MODLEncoder().fit(X, Y, sample_weight=few).costs_ == alone.costs_
