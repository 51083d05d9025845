"""Intervals of ordered blocks, and monotone ones: against brute force, by identities, and of large columns."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tabsym.modl import Settings, cuts, discretize, group, intervals, kernels
from tests.modl_data import steps, tables
from tests.oracles import modl as naive_modl


@settings(max_examples=60, deadline=None)
@given(tables(8, 3), st.sampled_from(["page", "khiops"]))
def test_intervals_equal_brute_force(counts, criterion):
    assume(counts.sum() >= 2)
    best, _ = naive_modl.best_intervals(counts.astype(int), criterion)
    found = discretize(counts, Settings(criterion=criterion))
    assert found.cost == pytest.approx(best, abs=1e-7)
    assert found.is_optimal
    assert found.lower_bound <= best + 1e-7


@settings(max_examples=30, deadline=None)
@given(tables(8, 3), st.integers(1, 4), st.integers(1, 12))
def test_limits_on_parts_equal_brute_force(counts, most, least):
    assume(counts.sum() >= 2)
    sizes = counts.sum(axis=1)

    def allowed(ends):
        return len(ends) <= most and (len(ends) == 1 or min(np.add.reduceat(sizes, [0, *ends[:-1]])) >= least)

    candidates = [ends for ends in naive_modl.all_ends(len(counts)) if allowed(ends)]
    best = min(naive_modl.interval_cost(counts.astype(int), ends, "page") for ends in candidates)
    found = discretize(counts, Settings(criterion="page", max_parts=most, min_part_count=least))
    assert found.cost == pytest.approx(best, abs=1e-7)
    assert found.n_parts <= most
    grouped = group(counts, Settings(criterion="page", max_parts=most, min_part_count=least))
    assert grouped.n_parts <= most
    assert grouped.n_parts == 1 or grouped.counts.sum(axis=1).min() >= least


@settings(max_examples=20, deadline=None)
@given(tables(7, 2))
def test_monotone_intervals_equal_brute_force(counts):
    assume(counts.sum() >= 2 and counts.shape[1] == 2)

    def is_monotone(ends):
        parts = np.array(naive_modl.merge_intervals(counts, ends))
        steps = np.diff(parts[:, 1] / parts.sum(axis=1))
        return (steps >= -1e-12).all() or (steps <= 1e-12).all()

    for criterion in ("page", "khiops"):
        best = min(
            naive_modl.interval_cost(counts.astype(int), ends, criterion)
            for ends in naive_modl.all_ends(len(counts))
            if is_monotone(ends)
        )
        found = discretize(counts, Settings(criterion=criterion, monotonic=True))
        assert found.cost == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("criterion", ["page", "khiops"])
@pytest.mark.parametrize("shape", [np.negative, np.exp, lambda x: np.where(x < 0.5, 0.0, x)])
def test_monotone_intervals_without_a_proof_are_as_good_and_search_few_boundaries(criterion, shape, monkeypatch):
    """A search costs as much as pairs of boundaries: in regression, where there are hundreds of searches, minutes."""
    rng = np.random.default_rng(2)
    x = np.sort(rng.normal(size=900))
    target = np.digitize(shape(x) + rng.normal(size=900), [-1.0, 0.0, 1.0, 2.0])
    counts, searched = np.eye(5)[target], []

    def noting(cumulative, *rest, original=kernels.monotone_cuts):
        searched.append(cumulative.shape[1] - 1)
        return original(cumulative, *rest)

    monkeypatch.setattr(kernels, "monotone_cuts", noting)
    asked = {"value": target.astype(float), "min_parts": 2}
    found = discretize(counts, Settings(criterion, monotonic=True, prove=False), **asked)
    assert max(searched) <= 450
    assert found.lower_bound == -np.inf
    proven = discretize(counts, Settings(criterion, monotonic=True), **asked)
    assert max(searched) > 450
    assert found.cost <= proven.cost * (1 + 3e-3)
    means = found.counts @ np.arange(5) / found.counts.sum(axis=1)
    assert found.n_parts > 1 and (np.all(np.diff(means) > 0) or np.all(np.diff(means) < 0))


@settings(max_examples=25, deadline=None)
@given(tables(10, 3), st.sampled_from(["page", "khiops"]))
@example(np.array([[0.0, 3.0], [7.0, 6.0]]), "khiops")  # 16 rows and a hair are not 17
def test_fractional_counts_agree_with_whole_ones(counts, criterion):
    """The road through ln Gamma, on counts a hair away from whole ones."""
    assume(counts.sum() >= 2)
    whole = discretize(counts, Settings(criterion=criterion))
    almost = discretize(counts * (1 + 1e-12), Settings(criterion=criterion))
    assert almost.cost == pytest.approx(whole.cost, abs=1e-6)


@pytest.mark.parametrize("criterion", ["page", "khiops"])
@pytest.mark.parametrize(("n_steps", "classes"), [(1, 2), (20, 2), (60, 3)])
def test_many_blocks_come_near_the_certified_optimum(criterion, n_steps, classes):
    counts = steps(20_000, n_steps, 0, classes)
    near = discretize(counts, Settings(criterion=criterion))
    best = discretize(counts, Settings(criterion=criterion, time_limit=120))
    assert best.is_optimal
    assert best.cost * (1 - 1e-12) <= near.cost <= best.cost * (1 + 1e-4)


class Clock:
    """A second passes with every look at it."""

    def __init__(self):
        self.seconds = itertools.count(1.0)

    def monotonic(self):
        return next(self.seconds)


def test_time_limit_returns_the_best_so_far_with_a_bound(monkeypatch):
    counts = steps(1500, 20, 1)
    truth = discretize(counts)
    costs, bounds = [], []
    for limit in (3, 10, 20, 30, 40, 50, 60, 70, 80, 90, 300):
        clock = Clock()
        monkeypatch.setattr(cuts, "time", clock)
        found = discretize(counts, Settings(time_limit=float(limit)))
        ends = [*(np.flatnonzero(np.diff(found.labels)) + 1).tolist(), len(counts)]
        assert found.cost == pytest.approx(naive_modl.interval_cost(counts, ends, "khiops"), abs=1e-6)
        assert found.lower_bound <= truth.cost + 1e-9
        assert found.is_optimal == (found.lower_bound > truth.cost - 1e-9)
        costs.append(found.cost)
        bounds.append(found.lower_bound)
    assert truth.cost * 1.01 < costs[0] < truth.null_cost
    assert costs == sorted(costs, reverse=True)
    assert bounds == sorted(bounds)
    assert bounds[0] == -math.inf
    assert any(-math.inf < bound < truth.cost - 1 for bound in bounds)
    assert costs[-1] == pytest.approx(truth.cost)
    assert bounds[-1] == pytest.approx(truth.cost)


def test_exact_limit_is_what_it_says():
    assert intervals.MAX_EXACT == 4096
    counts = steps(4000, 6, 2)
    assert discretize(counts).is_optimal


def few_classes_a_block(seed, n_blocks=9, n_classes=11):
    rng = np.random.RandomState(seed)
    counts = np.zeros((n_blocks, n_classes), dtype=int)
    np.add.at(counts, (np.repeat(np.arange(n_blocks), 2), rng.randint(0, n_classes, 2 * n_blocks)), rng.randint(1, 4))
    counts[n_blocks // 2] += 1  # a block with rows of every class
    return counts


@pytest.mark.parametrize("least", [1, 9])
@pytest.mark.parametrize("seed", range(4))
def test_many_classes_of_which_a_block_has_few_equal_brute_force(seed, least):
    counts = few_classes_a_block(seed)
    sizes = counts.sum(axis=1)
    partitions = [
        ends
        for ends in naive_modl.all_ends(len(counts))
        if len(ends) == 1 or min(np.add.reduceat(sizes, [0, *ends[:-1]])) >= least
    ]
    best = min(naive_modl.interval_cost(counts, ends, "page") for ends in partitions)
    found = discretize(counts.astype(float), Settings(criterion="page", min_part_count=least))
    assert found.cost == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("of_target", [False, True])
@pytest.mark.parametrize("whole", [True, False])
def test_the_best_single_cut_is_found(whole, of_target):
    for seed in range(4):
        counts = few_classes_a_block(seed).astype(float)
        boundaries, n_classes = np.array([1, 2, 4, 5, 7, 8, 9]), counts.shape[1]
        grids = intervals.CutGrids(boundaries[None], np.array([7]), np.array([[0.0, 3.0]]), np.array([False]), [0])
        table = cuts.factorials_of(np.cumsum(counts, axis=0).T) if whole else np.empty(0)
        found = grids.cut(counts, table, min_rows=4.0, of_target=of_target)
        costs = {}
        for cut in boundaries[:-1].tolist():
            parts = naive_modl.merge_intervals(counts.astype(int), [cut, len(counts)])
            cost = naive_modl.parts_cost(parts)
            if of_target:  # frequencies are not coded
                cost -= sum(naive_modl.ln_choose(int(part.sum()) + n_classes - 1, n_classes - 1) for part in parts)
            if min(part.sum() for part in parts) >= 4:
                costs[cut] = cost + 3.0
        assert found.cost == pytest.approx(min(costs.values()), abs=1e-9)
        assert found.ends.tolist() == [min(costs, key=costs.get), len(counts)]
