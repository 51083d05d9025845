"""Counts of pairs of symbols: against counting one by one, and how they add up."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tabsym.categories import count_pairs


def counted(columns, sizes, weight):
    """By two columns, (codes of the first, codes of the second)."""
    found = {}
    for a in range(len(columns)):
        for b in range(a + 1, len(columns)):
            table = np.zeros((sizes[a], sizes[b]))
            for row, one in enumerate(weight):
                if columns[a][row] >= 0 and columns[b][row] >= 0:
                    table[columns[a][row], columns[b][row]] += one
            found[a, b] = table
    return found


def tables(seed, n, sizes):
    rng = np.random.default_rng(seed)
    return [rng.integers(-1, size, n).astype(np.int32) for size in sizes]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 60), st.lists(st.integers(1, 9), min_size=1, max_size=4), st.booleans())
@example(seed=0, n=1, sizes=[1, 1], weighted=True)  # one row of a weight is no table without weights
def test_pairs_are_counted(seed, n, sizes, weighted):
    columns = tables(seed, n, sizes)
    weight = np.random.default_rng(seed).uniform(0.1, 2, n) if weighted else None
    pairs = count_pairs(columns, sizes, weight)
    truth = counted(columns, sizes, np.ones(n) if weight is None else weight)
    assert set(pairs.blocks) == set(truth)
    for which, table in truth.items():
        block = pairs.blocks[which]
        assert block.has_canonical_format
        np.testing.assert_allclose(block.toarray(), table)
    for column, size in enumerate(sizes):
        documents = pairs.documents(column).toarray()
        assert documents.shape == (size, sum(sizes))
        np.testing.assert_allclose(pairs.totals(column), documents.sum(axis=0))
        some = np.arange(size)[::-2]
        np.testing.assert_allclose(pairs.documents(column, some).toarray(), documents[some])
        for other in range(len(sizes)):
            own = documents[:, pairs.offsets[other] : pairs.offsets[other + 1]]
            want = np.zeros((size, size)) if other == column else truth.get((column, other))
            np.testing.assert_allclose(own, truth[other, column].T if want is None else want)


@pytest.mark.parametrize("weighted", [False, True])
def test_pieces_add_up_and_only_what_is_wanted_is_counted(weighted):
    sizes = [4, 7, 3, 5]
    columns = tables(1, 400, sizes)
    weight = np.random.default_rng(0).uniform(0.1, 2, 400) if weighted else None
    whole = count_pairs(columns, sizes, weight)
    halves = [
        count_pairs([one[part] for one in columns], sizes, None if weight is None else weight[part])
        for part in (slice(0, 150), slice(150, 400))
    ]
    added = halves[0] + halves[1]
    for which, block in whole.blocks.items():
        np.testing.assert_allclose(added.blocks[which].toarray(), block.toarray())
    some = count_pairs(columns, sizes, weight, wanted=[2])
    assert set(some.blocks) == {(0, 2), (1, 2), (2, 3)}
    threads = count_pairs([np.tile(one, 60) for one in columns], sizes, None, n_jobs=2)
    alone = count_pairs([np.tile(one, 60) for one in columns], sizes, None, n_jobs=1)
    assert all((threads.blocks[which] != block).nnz == 0 for which, block in alone.blocks.items())


def test_more_symbols_come_in_between():
    columns = tables(2, 50, [3, 2])
    pairs = count_pairs(columns, [3, 2])
    grown = pairs.grown([5, 2], [np.array([4, 0, 2]), np.array([1, 0])])
    table = np.zeros((5, 2))
    table[np.ix_([4, 0, 2], [1, 0])] = pairs.blocks[0, 1].toarray()
    np.testing.assert_allclose(grown.blocks[0, 1].toarray(), table)
