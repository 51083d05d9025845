"""What the tests of MODL share: the rows of an encoder's tests, and tables of counts."""

import numpy as np
import pandas as pd
from hypothesis import strategies as st

RNG = np.random.default_rng(0)
N = 420
NUMBER = RNG.normal(size=N).round(2)
X = pd.DataFrame({"x": NUMBER, "g": RNG.choice(list("abcdefgh"), N)})
SCORE = X["x"] + X["g"].map(dict(zip("abcdefgh", [2, 2, 2, 0, 0, -2, -2, -2], strict=True)))
Y = (SCORE + RNG.logistic(size=N) / 2 > 0).astype(int).to_numpy()
THREE = np.array(["high", "low", "mid"])[np.digitize(SCORE, [-1, 1])]
AMOUNT = (SCORE + RNG.normal(size=N) / 2).to_numpy()
TARGETS = {"binary": Y, "classes": THREE, "amounts": AMOUNT}


def same_parts(a, b):
    """Two encoders found the same parts, at the same cost."""
    assert list(a.partitions_) == list(b.partitions_)
    for name, one in a.partitions_.items():
        other = b.partitions_[name]
        assert one.labels == other.labels
        np.testing.assert_allclose(one.target.counts, other.target.counts)
        np.testing.assert_allclose(one.partition.cost, other.partition.cost, rtol=1e-12)


def tables(blocks, classes):
    """Small tables of whole counts, each block with a row at least."""
    cell = st.integers(0, 9)
    sizes = st.tuples(st.integers(1, blocks), st.integers(2, classes))
    lists = sizes.flatmap(
        lambda size: st.lists(st.lists(cell, min_size=size[1], max_size=size[1]), min_size=size[0], max_size=size[0])
    )
    return lists.map(lambda rows: np.array(rows, dtype=float)).filter(lambda t: (t.sum(axis=1) > 0).all())


def steps(n, n_steps, seed, classes=2):
    """Blocks of one row, classes by a step function of the place."""
    rng = np.random.RandomState(seed)
    shares = rng.dirichlet(np.ones(classes) * 0.6, size=n_steps)
    drawn = (rng.rand(n)[:, None] > np.cumsum(shares[np.arange(n) * n_steps // n], axis=1)).sum(axis=1)
    counts = np.zeros((n, classes))
    counts[np.arange(n), np.minimum(drawn, classes - 1)] = 1
    return counts
