"""Khiops' garbage group, and the bound on models that have one."""

import numpy as np
import pytest

from tabsym.modl import Settings, group, grouping_cost, groups
from tabsym.modl.criterion import parts_cost
from tabsym.modl.garbage import ByProportion, bound_by_integral
from tests.oracles import modl as naive_modl


def test_garbage_group():
    """Most categories are uninformative: a model with a garbage group, which costs as much as by the definition."""
    rng = np.random.RandomState(0)
    for n_modalities in (11, 40):  # every partition is looked at, and the local search
        counts = np.full((n_modalities, 2), 250) + rng.randint(-3, 4, (n_modalities, 2))
        counts[0], counts[1] = [500, 3], [4, 500]
        found = group(counts.astype(float))
        assert found.garbage is not None
        assert found.counts[found.garbage].sum() > 250 * (n_modalities - 2)
        assert found.cost == pytest.approx(naive_modl.grouping_cost(counts, found.labels.tolist(), "khiops"))
        assert found.cost < naive_modl.grouping_cost(counts, found.labels.tolist(), "khiops", garbage=False) - 1
        assert grouping_cost(counts, found.labels) == pytest.approx(found.cost)


def test_the_bound_holds_for_models_with_a_garbage_group():
    """Two classes: the bound of the road for many modalities, against every partition and every garbage group."""
    rng = np.random.RandomState(2)
    tight = 0
    for _ in range(8):
        shares = rng.beta(1, 1, size=3)
        sizes = rng.randint(3, 400, 11)
        ones = rng.binomial(sizes, shares[rng.randint(3, size=11)])
        counts = np.stack([sizes - ones, ones], axis=1).astype(float)
        truth = group(counts)
        assert truth.is_optimal
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(groups, "MAX_SUBSETS", 1)
            unasked = group(counts)
            found = group(counts, Settings(time_limit=60))
        assert unasked.lower_bound <= truth.cost + 1e-6 <= unasked.cost + 2e-6
        assert truth.cost - 1e-6 <= found.cost <= truth.cost * (1 + 1e-4)
        assert found.lower_bound <= truth.cost + 1e-6
        tight += found.is_optimal
    assert tight >= 7


def planted_garbage():
    """300 modalities of which three say something, and the groups they were made of."""
    rng = np.random.RandomState(3)
    counts = np.stack([rng.poisson(60, 300), rng.poisson(40, 300)], axis=1).astype(float)
    counts[:3] = [[400, 5], [3, 300], [200, 30]]
    planted = np.full(300, 3)
    planted[:3] = range(3)
    return counts, planted


def test_many_modalities_are_bounded_in_the_time_that_is_given():
    counts, planted = planted_garbage()
    found = group(counts)
    assert found.garbage is not None
    assert found.cost <= grouping_cost(counts, planted) + 1e-6
    assert found.lower_bound == -np.inf  # takes time, which has to be asked for
    again = group(counts, Settings(time_limit=60))
    assert again.cost <= found.cost
    assert again.gap < 1e-4
    short = group(counts, Settings(time_limit=1e-3))
    assert short.lower_bound == -np.inf


@pytest.mark.parametrize("seed", range(4))
def test_few_of_many_rare_modalities_are_found_beside_the_garbage(seed):
    """More proportional modalities than others: those with more rows tell more, though the shares are the same."""
    rng = np.random.RandomState(seed)
    sizes = np.concatenate([rng.randint(20, 60, 15), rng.randint(1, 4, 600)])
    chance = np.where(sizes > 10, rng.choice([0.02, 0.9], len(sizes)), 0.3)
    ones = rng.binomial(sizes, chance)
    counts = np.stack([sizes - ones, ones], axis=1).astype(float)
    planted = np.where(sizes > 10, np.where(chance > 0.5, 0, 1), 2)
    assert group(counts).cost <= grouping_cost(counts, planted) + 1e-6


def test_bounds_on_any_groups_hold_for_groups_that_are_not_in_a_row():
    """Beyond the number of parts where they cost least, groups apart from the row of class shares cost less."""
    counts = np.array(
        [[326, 2602], [10, 1], [399, 2611], [2, 15], [280, 2730], [18, 87], [2918, 48], [482, 2597], [376, 39],
         [624, 57], [185, 17], [345, 44], [438, 40], [327, 50], [313, 29], [53, 5], [559, 76], [33, 5], [618, 60],
         [8, 0], [236, 29], [516, 54], [17, 1], [514, 60], [123, 19]], dtype=float)  # fmt: skip
    apart = np.array([7, 9, 5, 6, 8, 4, 0, 4, 2, 2, 2, 3, 2, 3, 2, 2, 3, 3, 2, 0, 3, 2, 1, 3, 3])
    parts = np.array([counts[apart == k].sum(axis=0) for k in range(10)])
    seen = []

    def note(tasks, bounds, best, rng, most_work):
        seen.append(bounds)
        return best, -np.inf

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "bound_garbage", note)
        group(counts)
    assert 0 < seen[0].below(np.array([10.0]))[0] <= parts_cost(parts)


def test_bounds_where_nothing_is_better_off_outside_the_garbage():
    """At a high price no modality is: there is no model to offer then, and no error."""
    rng = np.random.RandomState(0)
    pure = np.stack([np.full(60, 20.0), np.zeros(60)], axis=1)
    pure[:30, 0] = 400 * np.arange(1, 31)
    pure[30] = [193, 5]
    found = group(pure)
    assert found.is_best_without_garbage
    assert np.isfinite(found.lower_bound)
    for _ in range(5):
        ones = rng.binomial(3, 0.01, 20)
        counts = np.stack([3 - ones, ones], axis=1).astype(float)
        found = group(counts, Settings(time_limit=60))
        assert found.n_parts == 1
        assert found.is_optimal


def test_gains_of_groups_equal_the_integrals():
    """The kernels of the garbage bound: each run's integral, and the best runs, against sums over a fine grid."""
    rng = np.random.RandomState(0)
    counts = rng.randint(0, 30, (7, 2)) + 1.0
    units = ByProportion(counts)
    cost = units.costs(0.4) + rng.uniform(1, 4, len(units.counts))
    for price in (0.3, 2.0):
        found = units.gained(cost, price, 4)
        exact = naive_modl.gains_beside_garbage(units.counts, units.times, cost - price, 4)
        assert (found >= exact - 1e-9).all()  # from above, as a bound on costs has to be
        np.testing.assert_allclose(found, exact, atol=0.02 * len(found))
        labels = units.groups(cost, price, 4)
        assert len(labels) == 3
        for groups_, most in zip(labels, exact, strict=False):
            assert len(groups_) == len(counts)
            inside = [-grouping_parts(counts[groups_ == g]) for g in np.unique(groups_[groups_ > 0])]
            reward = (cost - price)[units.position][groups_ > 0].sum()
            assert (
                most - 1.0 < sum(inside) + reward <= most + 1e-9
            )  # a model gains as much, but for what is on the verge


def grouping_parts(counts):
    return parts_cost(counts.sum(axis=0)[None, :])


def test_integrals_over_the_garbages_share_equal_sums_over_a_fine_grid():
    rng = np.random.RandomState(1)
    counts = rng.randint(0, 30, (9, 2)) + 1.0
    units = ByProportion(counts)
    shares = (np.arange(2000) + 0.5) / 2000
    for price in (0.5, 3.0):
        found = bound_by_integral(units, price, 4, np.full(4, np.inf))[0]
        gained = [units.gained(units.costs(q), price, 4) - units.times @ units.costs(q) for q in shares]
        exact = np.log(2000) - np.logaddexp.reduce(gained, axis=0)
        assert (found <= exact + 1e-6).all()  # from below, as a bound on costs has to be
        np.testing.assert_allclose(found, exact, atol=0.3)
