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


@pytest.mark.parametrize("target_type", ["classes", "continuous"])
def test_the_order_of_rows_decides_nothing_under_fractional_weights(target_type):
    """Sums of the same weights in another order differ by rounding, which decided between equally frequent ones."""
    rng = np.random.default_rng(0)
    for n in range(12, 52, 4):
        X = pd.DataFrame({"c": rng.choice(list("abcdefgh"), n), "n": rng.integers(0, 5, n)})
        y, weight = rng.integers(0, 3, n), rng.choice([0.73, 1.46, 2.19, 5.11], n)
        found = []
        for order in (np.arange(n), *(rng.permutation(n) for _ in range(6))):
            encoder = MODLEncoder(target_type=target_type).fit(X.iloc[order], y[order], weight[order])
            parts = encoder.partitions_
            found.append(({name: one.labels for name, one in parts.items()}, parts["c"].default, encoder.costs_))
        assert all(one == found[0] for one in found)


def test_weights_of_any_size_are_counted():
    X = pd.DataFrame({"c": list("abab") * 10, "n": np.arange(40.0)})
    y, weight = [0, 1, 1, 1] * 10, np.tile([0.3, 0.7], 20)
    shares = []
    for unit in (1.0, 1e-300, 1e150):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # they weigh less than a row
            parts = MODLEncoder(target_type="classes", splits={"c": [["a"], ["b"]]}).fit(X, y, weight * unit).parts("c")
        shares.append(parts["rows"].to_numpy() / parts["rows"].sum())
    np.testing.assert_allclose(shares, np.tile([0.3, 0.7], (3, 1)), rtol=1e-12)
