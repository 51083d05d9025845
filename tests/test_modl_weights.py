"""Weights that are shares, which MODL would take for next to no rows, are told of."""

import warnings

import numpy as np
import pandas as pd
import pytest

from tabsym import MODLEncoder

N = 200
X = pd.DataFrame({"x": np.arange(N)})
Y = (np.arange(N) >= 50).astype(int)


@pytest.mark.parametrize("method", ["fit", "fit_transform", "partial_fit"])
@pytest.mark.parametrize("total", [1, 0.099 * N])
def test_light_weights_are_told_of(method, total):
    with pytest.warns(UserWarning, match=rf"weights of 200 rows add up to {total:.4g}, .*multiply them by the number"):
        getattr(MODLEncoder(output="mean"), method)(X, Y, sample_weight=np.full(N, total / N))


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
