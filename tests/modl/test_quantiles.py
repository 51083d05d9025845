"""Grids of quantiles: the boundaries nearest to them, by the definition and one by one."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tabsym.modl.partition import ends_of, ends_of_equal_parts, labels_of, quantile_boundaries
from tests.oracles import modl as naive_modl


@given(st.lists(st.integers(1, 300), min_size=2, max_size=30), st.sampled_from([1.0, 0.5, 1 / 3]))
@settings(max_examples=60, deadline=None)
def test_quantiles_next_to_boundaries_are_all_that_matter(sizes, weight):
    """The 2**10 quantiles of few blocks, by those next to boundaries, and one by one."""
    sizes = [*sizes, 3100]
    before = np.concatenate([[0.0], np.cumsum(np.array(sizes) * weight)])
    total, places = before[-1], before[1:]
    chosen = set()
    for target in total * np.arange(1, 2**10) / 2**10:
        above = int(np.searchsorted(places, target))
        if above == 0:
            chosen.add(0)
            continue
        up, down = places[above] - target, target - places[above - 1]
        chosen.add(above - 1 if down < up or (down == up and target <= total / 2) else above)
    assert quantile_boundaries(before, 10).tolist() == [i + 1 for i in sorted(chosen | {len(places) - 1})]


def test_quantiles_as_near_to_two_boundaries_go_down_in_the_lower_half():
    rng = np.random.RandomState(0)
    tables = [[1] * 12, [2] * 7, [3] * 10, *(rng.randint(1, 4, 20).tolist() for _ in range(20))]
    for sizes in tables:
        before = np.concatenate([[0.0], np.cumsum(sizes)])
        for granularity in range(1, naive_modl.gmax(sum(sizes))):
            ours = quantile_boundaries(before, granularity)
            inner = [end for end in ours.tolist() if end < len(sizes)]
            assert inner == naive_modl.quantile_grid(sizes, granularity)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=20), st.integers(1, 30))
def test_equal_parts_end_at_or_above_the_quantiles(sizes, n):
    before = np.cumsum(sizes)
    above = {next(i for i, rows in enumerate(before) if rows >= before[-1] * k / n) + 1 for k in range(1, n)}
    ends = ends_of_equal_parts(np.array(sizes), n)
    assert ends.tolist() == sorted(above | {len(sizes)})
    labels = labels_of(ends, len(sizes))
    assert labels.tolist() == sorted(labels.tolist())
    assert ends_of(labels).tolist() == ends.tolist()
