"""The local search over groups: against exact programs, with garbage groups and without."""

import numpy as np
import pytest

from tabsym.modl import Settings, group, grouping_cost, groups
from tabsym.modl.criterion import GARBAGE_FROM
from tabsym.modl.grouping import GroupSearch, join, move, polish, state_of
from tabsym.modl.partition import cheapest
from tests.oracles import modl as naive_modl
from tests.oracles import modl_groups as naive_groups

CLOSE = 1e-4  # of the cost
MISSED = [
    # two modalities of the same counts that are better in a group each, so that the others can be garbage
    [[43, 148], [36, 146], [11, 33], [29, 84], [11, 45], [31, 138], [6, 24], [28, 128], [24, 29], [27, 140], [35, 130],
     [24, 29], [22, 81]],
    [[31, 57], [9, 27], [25, 39], [23, 44], [37, 84], [51, 1], [24, 56], [43, 103], [8, 21], [69, 118]],
    [[72, 40], [24, 16], [12, 9], [17, 11], [47, 89], [60, 40], [29, 19], [61, 36], [70, 41], [75, 65], [68, 66],
     [58, 59], [65, 43], [53, 25]],
]  # fmt: skip
"""Tables of which the local search did not find the best groups, 4e-4 to 2e-3 of the cost above them."""


def mostly_silent(rng, n_categories, n_classes):
    """Few symbols say something, the others have the same class shares."""
    shares = np.tile(rng.dirichlet(np.full(n_classes, 5.0)), (n_categories, 1))
    telling = rng.permutation(n_categories)[: rng.integers(2, max(3, n_categories // 3) + 1)]
    shares[telling] = rng.dirichlet(np.full(n_classes, 0.3), len(telling))
    counts = np.array(
        [rng.multinomial(size, share) for size, share in zip(rng.integers(20, 200, n_categories), shares)]
    )
    return counts if (counts.sum(axis=0) > 0).all() else mostly_silent(rng, n_categories, n_classes)


def grouped_locally(counts, **options):
    """By the roads for many modalities."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "MAX_SUBSETS", 1)
        return group(np.array(counts, dtype=float), Settings(**options))


def tasks_of(counts, *, joined):
    """What a local search stands on at each granularity that may have a garbage group."""
    search = GroupSearch(counts, Settings())
    for units in search.families():
        if units.n_modalities >= GARBAGE_FROM:
            yield search.task(search.joined(units) if joined else units)


def naive_cost(task, counts, grouping):
    """What the definition says that it costs, at its granularity and with its garbage group or none."""
    labels, garbage = grouping.labels[task.units.labels].tolist(), grouping.garbage
    return naive_modl.grouping_cost(
        counts, labels, "khiops", granularity=task.units.granularity, garbage=False if garbage is None else garbage
    )


def one_large_group(rng, task):
    """Groupings at random, one group larger than the others: the garbage, where that is cheaper."""
    n = len(task.units)
    for n_groups in (3, 4, 5):
        size = rng.integers(2, n)
        labels = np.where(np.arange(n) < size, 0, rng.integers(0, n_groups, n))
        yield task.price(rng.permutation(labels))


def perturbed(rng, labels):
    """A few units in other groups, or in one of their own."""
    labels, some = labels.copy(), rng.permutation(len(labels))[: rng.integers(1, 5)]
    labels[some] = rng.integers(0, labels.max() + 2, len(some))
    return labels


def test_local_search_comes_near_every_partition():
    """More than two classes: the road for many modalities against the subset program."""
    rng = np.random.RandomState(3)
    for criterion in ("page", "khiops"):
        for _ in range(6):
            shares = rng.dirichlet(np.ones(4), size=4)
            counts = np.array([rng.multinomial(rng.randint(5, 200), shares[rng.randint(4)]) for _ in range(11)])
            best = group(counts.astype(float), Settings(criterion=criterion)).cost
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(groups, "MAX_SUBSETS", 1)
                found = group(counts.astype(float), Settings(criterion=criterion))
            assert best - 1e-6 <= found.cost <= best * (1 + 1e-4)
            assert found.lower_bound == -np.inf


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.slow
def test_limits_hold_beyond_every_partition(classes):
    """More modalities than are looked at by subsets: local search, garbage groups too."""
    rng = np.random.RandomState(classes)
    tables = [
        rng.poisson(rng.choice([1, 8], (25, 1)) * rng.dirichlet(np.ones(classes), 25) * classes) for _ in range(8)
    ]
    tables += [mostly_silent(np.random.default_rng(seed), 25, classes) for seed in range(4)]
    with_garbage = 0
    for table in tables:
        counts = table[table.sum(axis=1) > 0].astype(float)
        for criterion in ("khiops", "page"):
            for most, least in ((2, 1), (3, 20), (None, 40), (4, 1000)):
                found = group(counts, Settings(criterion=criterion, max_parts=most, min_part_count=least))
                assert found.n_parts <= (most or 25)
                assert found.n_parts == 1 or found.counts.sum(axis=1).min() >= least
                assert found.cost <= found.null_cost
                np.testing.assert_allclose(grouping_cost(counts, found.labels, criterion=criterion), found.cost)
                with_garbage += found.garbage is not None
    assert with_garbage >= 4


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_categories", [7, 8, 9, 10, 11, 12, 14])
@pytest.mark.slow
def test_groups_beside_garbage_come_near_every_partition(n_categories, n_classes):
    rng = np.random.default_rng(n_categories * 10 + n_classes)
    with_garbage, far = 0, []
    for number in range(15):
        counts = mostly_silent(rng, n_categories, n_classes)
        best, theirs = naive_groups.best_groups(counts, "khiops")
        with_garbage += naive_modl.grouping_choice(counts, theirs)[1] is not None
        found = grouped_locally(counts)
        assert found.cost == pytest.approx(naive_modl.grouping_cost(counts, found.labels.tolist(), "khiops"))
        assert best - 1e-6 <= found.cost <= best * (1 + 2e-3)
        assert found.lower_bound <= best + 1e-6
        far += [(number, found.cost / best - 1)] if found.cost > best * (1 + CLOSE) else []
    assert with_garbage >= 6
    assert len(far) <= (1 if (n_classes, n_categories) == (2, 14) else 0), far


@pytest.mark.parametrize("counts", MISSED)
@pytest.mark.slow
def test_groups_beside_garbage_that_were_missed(counts):
    best, _ = naive_groups.best_groups(counts, "khiops")
    assert grouped_locally(counts).cost <= best * (1 + CLOSE)


def moved(task, start, rng):
    return cheapest(start, task.price(move(task, start.labels, rng.permutation(len(task.units)))[1]))


def joined_by_two(task, start, _):
    return cheapest(start, task.price(join(task, state_of(task, start.labels))[1][start.labels]))


@pytest.mark.parametrize("step", [moved, joined_by_two, polish])
@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_costs_never_rise_and_are_those_of_the_definition(n_classes, joined, step):
    rng, order = np.random.default_rng(n_classes), np.random.RandomState(0)
    garbage_before, garbage_after, lower = 0, 0, 0
    for n_categories in (7, 8, 10, 12, 14, 20, 30, 40):
        counts = mostly_silent(rng, n_categories, n_classes)
        counts[n_categories // 2] = 2 * counts[0]  # one unit where proportional modalities are joined
        for task in tasks_of(counts, joined=joined):
            for start in one_large_group(rng, task):
                end = step(task, start, order)
                assert start.cost == pytest.approx(naive_cost(task, counts, start), abs=1e-6)
                assert end.cost == pytest.approx(naive_cost(task, counts, end), abs=1e-6)
                assert end.cost <= start.cost
                garbage_before += start.garbage is not None
                garbage_after += end.garbage is not None
                lower += end.cost < start.cost - 1
    assert garbage_before >= 5
    assert garbage_after >= 1  # joins look at every number of groups, most of which end without garbage
    assert lower >= 20


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sweeps_of_moves_that_cost_more_in_all_are_not_kept(n_classes):
    """Each move out of the garbage is priced as the first one; of groups that have settled some sweeps cost nats."""
    rng = np.random.default_rng(n_classes)
    for n_categories in (7, 8, 10, 12, 14, 20, 30, 40) * 3:
        for task in tasks_of(mostly_silent(rng, n_categories, n_classes), joined=False):
            for start in one_large_group(rng, task):
                _, settled, _ = move(task, start.labels, np.arange(len(task.units)))
                again = move(task, settled, np.random.RandomState(1).permutation(len(task.units)))[1]
                assert task.price(again).cost <= task.price(settled).cost + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(("n_classes", "share"), [(2, 0.65), (3, 0.9)])
def test_polish_brings_perturbed_groups_back_to_the_optimum(n_classes, share):
    """Garbage groups that were perturbed: the exact program's groups come back, most of the time."""
    rng, order = np.random.default_rng(n_classes), np.random.RandomState(0)
    back, garbage = [], 0
    for n_categories in (8, 9, 10, 11, 12, 13, 14) * 3:
        counts = mostly_silent(rng, n_categories, n_classes)
        best, labels = naive_groups.best_groups(counts, "khiops")
        granularity, theirs = naive_modl.grouping_choice(counts, labels)
        if theirs is None:
            continue
        task = next(one for one in tasks_of(counts, joined=False) if one.units.granularity == granularity)
        of_unit = np.zeros(len(task.units), dtype=np.int64)
        of_unit[task.units.labels] = labels
        optimum = task.price(of_unit)
        assert optimum.cost == pytest.approx(best, abs=1e-6)
        assert optimum.garbage == theirs
        assert polish(task, optimum, order).cost == pytest.approx(best, abs=1e-6)  # nothing is cheaper
        for _ in range(8):
            start = task.price(perturbed(rng, of_unit))
            found = polish(task, start, order)
            assert best - 1e-6 <= found.cost <= start.cost
            garbage += start.garbage is not None
            back.append(found.cost < best + 1e-6)
    assert garbage >= 40
    assert len(back) >= 80
    assert np.mean(back) >= share


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_joins_beside_garbage_find_the_groups_that_were_split(n_classes):
    rng, joined, tried = np.random.default_rng(n_classes + 10), 0, 0
    for n_categories in (9, 10, 11, 12, 13, 14) * 8:
        counts = mostly_silent(rng, n_categories, n_classes)
        best, labels = naive_groups.best_groups(counts, "khiops")
        granularity, garbage = naive_modl.grouping_choice(counts, labels)
        if garbage is None:
            continue
        task = next(one for one in tasks_of(counts, joined=False) if one.units.granularity == granularity)
        of_unit = np.zeros(len(task.units), dtype=np.int64)
        of_unit[task.units.labels] = labels
        outside = np.flatnonzero(of_unit != garbage)
        if len(outside) == len(set(of_unit[outside])):
            continue
        of_unit[outside] = of_unit.max() + 1 + np.arange(len(outside))  # each in a group of its own
        start = task.price(of_unit)
        found = joined_by_two(task, start, None)
        assert found.cost <= start.cost
        tried += start.garbage is not None
        joined += start.garbage is not None and found.cost < best + 1e-6
    assert tried >= 5
    assert joined >= 0.7 * tried
