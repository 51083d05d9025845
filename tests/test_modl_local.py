"""The local search over groups: against exact programs, with garbage groups and without."""

import numpy as np
import pytest

from tabsym.modl import group, grouping_cost, groups


def test_local_search_comes_near_every_partition():
    """More than two classes: the road for many modalities against the subset program."""
    rng = np.random.RandomState(3)
    for criterion in ("page", "khiops"):
        for _ in range(6):
            shares = rng.dirichlet(np.ones(4), size=4)
            counts = np.array([rng.multinomial(rng.randint(5, 200), shares[rng.randint(4)]) for _ in range(11)])
            best = group(counts.astype(float), criterion=criterion).cost
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(groups, "MOST_SUBSETS", 1)
                found = group(counts.astype(float), criterion=criterion)
            assert best - 1e-6 <= found.cost <= best * (1 + 1e-4)
            assert found.lower_bound == -np.inf


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_limits_hold_beyond_every_partition(classes):
    """More modalities than are looked at by subsets: local search, garbage groups too."""
    rng = np.random.RandomState(classes)
    for _ in range(8):
        counts = rng.poisson(rng.choice([1, 8], (25, 1)) * rng.dirichlet(np.ones(classes), 25) * classes)
        counts = counts[counts.sum(axis=1) > 0].astype(float)
        for criterion in ("khiops", "page"):
            for most, least in ((2, 1), (3, 20), (None, 40), (4, 1000)):
                found = group(counts, criterion=criterion, max_parts=most, min_part_count=least)
                assert found.n_parts <= (most or 25)
                assert found.n_parts == 1 or found.counts.sum(axis=1).min() >= least
                assert found.cost <= found.null_cost
                np.testing.assert_allclose(grouping_cost(counts, found.labels, criterion=criterion), found.cost)
