"""MODL's groups of symbols, against brute force and exact programs."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tabsym import MODLEncoder
from tabsym.modl import Settings, group, groups
from tests.modl_data import tables
from tests.oracles import modl as naive_modl
from tests.oracles import modl_groups as naive_groups

CLOSE = 1e-4  # of the cost
CRITERIA = ["khiops", "page"]
SIZES = [(6, 3, 40), (7, 2, 60), (7, 3, 60), (8, 3, 40), (13, 2, 60), (13, 3, 30), (14, 5, 20), (18, 2, 4)]


def random_counts(rng, n_categories, n_classes):
    """From noise to clear, with rare symbols or without."""
    shares = rng.dirichlet(np.full(n_classes, rng.choice([0.5, 2, 8])), n_categories)
    if rng.random() < 0.4:  # few kinds of symbols
        shares = shares[rng.integers(0, 3, n_categories)]
    sizes = rng.integers(1, rng.choice([6, 30, 80]), n_categories)
    if rng.random() < 0.5:
        sizes[: n_categories // 2] = rng.integers(1, 4, n_categories // 2)
    counts = np.array([rng.multinomial(size, share) for size, share in zip(sizes, shares)])
    return counts if (counts.sum(axis=0) > 0).all() else random_counts(rng, n_categories, n_classes)


def fitted(counts, criterion):
    """Our cost, the group of each symbol, and the bound that comes with them."""
    categories, classes = np.nonzero(counts)
    times = counts[categories, classes]
    X = pd.DataFrame({"x": [f"s{category:02}" for category in np.repeat(categories, times)]})
    y = [f"c{label}" for label in np.repeat(classes, times)]
    encoder = MODLEncoder(target_type="classes", n_candidates=1, criterion=criterion).fit(X, y)
    label = np.zeros(len(counts), dtype=int)
    label[np.repeat(categories, times)] = encoder.transform(X)["x"].cat.codes
    return encoder.costs_["x"], label.tolist(), encoder.partitions_["x"].partition.lower_bound


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.slow
def test_the_exact_program_is_enumeration(criterion):
    rng = np.random.default_rng(1)
    for n_categories in [3, 4, 5, 6, 6, 6, 6, 7]:
        counts = random_counts(rng, n_categories, rng.integers(2, 6))
        cost, labels = naive_groups.best_groups(counts, criterion)
        assert cost == pytest.approx(naive_modl.best_groups(counts, criterion)[0], rel=1e-12)
        assert naive_modl.grouping_cost(counts, labels, criterion) == pytest.approx(cost, rel=1e-12)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.slow
def test_two_classes_are_grouped_in_runs(criterion):
    rng = np.random.default_rng(2)
    with_garbage = 0
    for _ in range(60):
        counts = random_counts(rng, rng.integers(7, 13), 2)
        cost, labels = naive_groups.best_groups(counts, criterion)
        assert cost == pytest.approx(naive_groups.best_groups(counts, criterion, by_runs=False)[0], rel=1e-12)
        assert naive_modl.grouping_cost(counts, labels, criterion) == pytest.approx(cost, rel=1e-12)
        with_garbage += criterion == "khiops" and naive_modl.grouping_choice(counts, labels)[1] is not None
    assert with_garbage >= (criterion == "khiops")


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(("n_categories", "n_classes", "tables"), SIZES)
@pytest.mark.slow
def test_groups_are_optimal(criterion, n_categories, n_classes, tables):
    rng = np.random.default_rng(n_categories * 10 + n_classes)
    misses = []
    for number in range(tables):
        counts = random_counts(rng, n_categories, n_classes)
        cost, labels, bound = fitted(counts, criterion)
        best, theirs = naive_groups.best_groups(counts, criterion)
        assert naive_modl.grouping_cost(counts, labels, criterion) == pytest.approx(cost, abs=1e-5)
        assert cost > best * (1 - 1e-6), (number, counts.tolist(), "below the optimum")
        if bound > best + 1e-5 or cost > best * (1 + CLOSE):
            misses.append((number, round(cost / best - 1, 6), "bound too high" if bound > best + 1e-5 else "", theirs))
    assert not misses, f"{len(misses)} of {tables}, worst {max(miss[1] for miss in misses)}: {misses[:10]}"


@settings(max_examples=60, deadline=None)
@given(tables(6, 3), st.sampled_from(["page", "khiops"]))
def test_groups_equal_brute_force(counts, criterion):
    assume(counts.sum() >= 2)
    best, _ = naive_modl.best_groups(counts.astype(int), criterion)
    found = group(counts, Settings(criterion=criterion))
    assert found.cost == pytest.approx(best, abs=1e-7)
    assert found.is_optimal


@settings(max_examples=30, deadline=None)
@given(tables(6, 2), st.sampled_from(["page", "khiops"]))
def test_cuts_along_the_class_shares_are_optimal_groups(counts, criterion):
    """Two classes: the road for many modalities, taken on tables small enough to look at every partition."""
    assume(counts.sum() >= 2 and counts.shape[1] == 2 and len(counts) > 1)
    best, _ = naive_modl.best_groups(counts.astype(int), criterion)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "MAX_SUBSETS", 1)
        found = group(counts, Settings(criterion=criterion))
    assert found.cost == pytest.approx(best, abs=1e-7)
    assert found.is_optimal


def test_groups_of_proportional_modalities_are_never_split():
    rng = np.random.RandomState(1)
    base = rng.randint(1, 9, (5, 3))
    counts = np.concatenate([base, 2 * base, 3 * base]).astype(float)
    found = group(counts, Settings(criterion="page"))
    assert np.array_equal(found.labels[:5], found.labels[5:10])
    assert np.array_equal(found.labels[:5], found.labels[10:])


@pytest.mark.parametrize("classes", [2, 5])
def test_fifty_thousand_modalities(classes):
    rng = np.random.RandomState(0)
    shares = rng.dirichlet(np.ones(classes) * 0.5, size=8)
    truth = rng.randint(0, 8, 50_000)
    counts = np.array([rng.multinomial(20, shares[k]) for k in truth], dtype=float)
    found = group(counts)
    together = [np.bincount(found.labels[truth == k]).max() / (truth == k).sum() for k in range(8)]
    assert 2 <= found.n_parts <= 12
    assert np.mean(together) > 0.6
    assert found.level > 0.1


def test_no_bound_is_claimed_for_groups_of_a_least_size():
    """With a least size the best groups need not lie together by class share: then nothing is proved."""
    rng = np.random.RandomState(0)
    counts = rng.randint(1, 30, (20, 2)).astype(float)
    for criterion in ("page", "khiops"):
        assert group(counts, Settings(criterion=criterion, min_part_count=100)).lower_bound == -np.inf
        assert group(counts, Settings(criterion=criterion)).is_best_without_garbage
