"""Joint grids of a column and a regression's target, on counts; see test_modl_regression for the encoder."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tabsym.modl import Settings, grouping_cost, interval_cost, joint_cuts
from tabsym.modl.criterion import lumps_by_granularity, target_cost
from tabsym.modl.grid import GridRows, GridSearch, Shared, Sources, with_target
from tabsym.modl.groups import regroup
from tabsym.modl.joint_cuts import cut_jointly
from tabsym.modl.partition import ends_of, labels_of
from tests.oracles import modl as naive_modl


def grid_cost(table, source, target, *, categorical):
    """What the parts of the source cost with the intervals of the target as classes, and what these cost."""
    joined = np.stack([np.bincount(target, row) for row in table])
    parts = grouping_cost(joined, source) if categorical else interval_cost(joined, ends_of(np.asarray(source)))
    return parts + target_cost("khiops", joined.sum(axis=0), joined.sum())


def joint(table, *, categorical):
    source, target = np.nonzero(table)
    rows = GridRows(source, target, *table.shape, table[source, target].astype(float))
    return cut_jointly(rows, Sources(categorical, Settings()))


def naive_joint_cost(table, grid, *, categorical):
    ends = [*(np.flatnonzero(np.diff(grid.target_labels)) + 1).tolist(), table.shape[1]]
    if categorical:
        return naive_modl.regression_grouping_cost(table, grid.source.labels.tolist(), ends, garbage=None)
    cuts = [*(np.flatnonzero(np.diff(grid.source.labels)) + 1).tolist(), len(table)]
    return naive_modl.regression_interval_cost(table, cuts, ends)


@pytest.mark.parametrize("categorical", [False, True])
def test_joint_grids_cost_what_the_definition_says_and_come_near_the_best(categorical):
    rng = np.random.RandomState(4)
    informative = 0
    for strength in (0, 4, 12):
        table = rng.randint(0, 3, (5, 5))
        table += strength * np.eye(5, dtype=int)[:, rng.permutation(5) if categorical else np.arange(5)]
        table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        grid = joint(table, categorical=categorical)
        naive = naive_joint_cost(table, grid, categorical=categorical)
        assert grid.source.cost == pytest.approx(naive, abs=1e-6)
        search = naive_modl.best_regression_groups if categorical else naive_modl.best_regression_intervals
        best = search(table)[0]
        assert best - 1e-6 <= grid.source.cost <= best * 1.01
        informative += grid.source.n_parts > 1
    assert informative >= 1


def test_noise_is_no_grid():
    rng = np.random.RandomState(5)
    rows = GridRows(np.arange(500), rng.permutation(500), 500, 500)
    found = cut_jointly(rows, Sources(False, Settings()))
    assert found.source.n_parts == 1
    assert found.source.level == 0.0


@pytest.mark.parametrize("categorical", [False, True])
@pytest.mark.slow
def test_grids_too_large_to_look_at_each_cost_what_the_definition_says(categorical):
    """More targets than cells they are cut on at first: the cuts slide among all of them."""
    rng = np.random.RandomState(1)
    n, n_sources = 1500, 25
    source = rng.randint(0, n_sources, n)
    target = np.argsort(np.argsort(np.sin(source / 4) * 4 + rng.normal(size=n)))
    table = np.zeros((n_sources, n), dtype=int)
    table[source, target] = 1
    grid = joint(table, categorical=categorical)
    assert grid.source.n_parts > 2
    assert grid.source.cost == pytest.approx(naive_joint_cost(table, grid, categorical=categorical), abs=1e-4)
    again = grid_cost(table, grid.source.labels.tolist(), grid.target_labels.tolist(), categorical=categorical)
    assert again == pytest.approx(grid.source.cost, abs=1e-8)


@pytest.mark.parametrize("categorical", [False, True])
@pytest.mark.slow
def test_the_search_for_large_grids_finds_the_best_of_small_ones(categorical, monkeypatch):
    monkeypatch.setattr(joint_cuts, "every_grid", lambda *_: None)
    rng = np.random.RandomState(2)
    informative = 0
    for strength in (0, 4, 8, 12, 16, 20):
        table = rng.randint(0, 3, (6, 6))
        table += strength * np.eye(6, dtype=int)[:, rng.permutation(6) if categorical else np.arange(6)]
        table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        best = naive_modl.best_grid(table, categorical)[0]
        assert (
            best - 1e-6
            <= joint(table, categorical=categorical).source.cost
            <= best * (1.005 if categorical else 1.0001)
        )
        informative += best < np.log(2) + naive_modl.ln_fact(table.sum()) - 1
    assert informative >= 3


def many_symbols(seed, n_categories=230, n=1600):
    """A quarter of the symbols say something; the others are for a garbage group."""
    rng = np.random.RandomState(seed)
    level = np.where(rng.random_sample(n_categories) < 0.25, rng.choice([-1.5, 1.5], n_categories), 0.0)
    source = np.concatenate([np.arange(n_categories), rng.randint(0, n_categories, n - n_categories)])
    y = np.round(level[source] + rng.normal(size=n), 1)
    target = np.unique(y, return_inverse=True)[1]
    return GridRows(source, target, n_categories, int(target.max()) + 1)


@pytest.mark.slow
def test_target_cuts_are_changed_with_groups_of_many_symbols_near_those_found():
    """Searching new groups for each change would be too dear; without any change the cost was 10080.28."""
    rows = many_symbols(8)
    grid = cut_jointly(rows, Sources(True, Settings()))
    assert grid.cost <= 10079.04
    again = grid_cost(rows.table(None, None), grid.source.labels, grid.target_labels, categorical=True)
    assert again == pytest.approx(grid.cost, abs=1e-6)


def test_groups_near_others_are_never_dearer_for_the_same_classes():
    rows, sources = many_symbols(8), Sources(True, Settings())
    rng = np.random.RandomState(0)
    classes = rows.table(None, np.arange(rows.n_targets) * 4 // rows.n_targets)
    found = sources.partition(classes, Shared(rows, Settings()), quick=False)
    labels = found.labels.copy()
    units = np.flatnonzero(classes.sum(axis=1) >= 4)
    labels[rng.choice(units, 12, replace=False)] = rng.randint(0, found.n_parts, 12)
    start = replace(found, labels=labels, counts=np.zeros_like(found.counts))
    near = regroup(classes, start, Settings(), lumps_by_granularity(classes.sum(axis=1)))
    finer = grouping_cost(classes, labels.tolist(), granularity=found.granularity, n_modalities=None)
    assert near.cost <= finer
    assert near.cost == pytest.approx(grouping_cost(classes, near.labels.tolist()), abs=1e-6)
    assert near.cost <= found.cost + 1.0


def rows_of(seed, n=90, n_sources=6, n_targets=40, weighted=False):
    rng = np.random.RandomState(seed)
    target = np.append(np.arange(n_targets), rng.randint(0, n_targets, n - n_targets))
    source = np.clip(target * n_sources // n_targets + rng.randint(-1, 2, n), 0, n_sources - 1)
    source[:n_sources] = np.arange(n_sources)
    weight = rng.choice([0.5, 1.0, 2.25], n) if weighted else None
    return GridRows(source, target, n_sources, n_targets, weight)


def slid_one_by_one(table, ends):
    """Each cut at its best place between its neighbours, but not between targets of one and the same source."""
    ends, moved = list(ends), True

    def cost(low, high):
        counts = table[:, low:high].sum(axis=1)
        return math.lgamma(counts.sum() + 1) - sum(math.lgamma(count + 1) for count in counts)

    pure = [int(np.argmax(column)) if np.count_nonzero(column) == 1 else None for column in table.T]
    while moved:
        moved = False
        for i in range(len(ends) - 1):
            left, right = ends[i - 1] if i else 0, ends[i + 1]
            places = {cut: cost(left, cut) + cost(cut, right) for cut in range(left + 1, right)}
            alike = {cut for cut in places if pure[cut] is not None and pure[cut] == pure[cut - 1]} - {ends[i]}
            best = min((cut for cut in places if cut not in alike), key=places.__getitem__)
            if places[best] < places[ends[i]] - 1e-9:
                ends[i], moved = best, True
    return ends


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_target_cuts_slide_to_the_best_places_between_their_neighbours(seed, weighted):
    rows = rows_of(seed, weighted=weighted)
    search = GridSearch(rows, Sources(False, Settings()))
    source = search.source_given(np.arange(40) // 20, quick=False)
    start = np.array([3, 9, 21, 30, 40])
    grid = with_target(rows, search.sources, source, 0.0, labels_of(start, 40))
    moved = search.slide(grid)
    assert ends_of(moved.target_labels).tolist() == slid_one_by_one(rows.table(source.labels, None), start)
    assert moved.cost < grid.cost


def test_of_many_cuts_those_cheapest_to_remove_are_changed():
    rng = np.random.RandomState(0)
    rows = GridRows(np.repeat(np.arange(150), 2), rng.permutation(300), 150, 300)
    quick, thorough = (GridSearch(rows, Sources(False, Settings(prove=prove))) for prove in (False, True))
    parts, labels = np.arange(150), np.arange(300) // 2
    joined = joint_cuts._cheapest_joins(rows.table(parts, labels), 10)
    table = rows.table(parts, labels).astype(int)
    costs = []
    for cut in range(149):
        ends = [end for end in range(1, 151) if end != cut + 1]
        columns = np.array(naive_modl.merge_intervals(table.T, ends)).T
        costs.append(naive_modl.parts_cost(columns) + sum(naive_modl.ln_fact(int(n)) for n in columns.sum(axis=0)))
    assert np.sort(np.array(costs)[joined]) == pytest.approx(np.sort(costs)[:10])
    of_source = joint_cuts._cheapest_joins(rows.table(parts, labels).T, 10, shift=149)
    costs = [
        naive_modl.parts_cost(naive_modl.merge_intervals(table, np.delete(np.arange(1, 151), cut)))
        for cut in range(149)
    ]
    assert np.sort(np.array(costs)[of_source]) == pytest.approx(np.sort(costs)[:10])
    n_quick, n_thorough = (sum(1 for _ in joint_cuts.changed(search, parts, labels)) for search in (quick, thorough))
    assert n_quick < 0.95 * n_thorough


@pytest.mark.slow
@pytest.mark.parametrize("prove", [False, True])
def test_a_column_that_determines_the_target_is_cut_into_as_many_intervals_as_pay(prove):
    """Near the cost of the best grid of equally frequent intervals on both sides, whatever their number."""
    n = 8192
    found = cut_jointly(GridRows(np.arange(n), np.arange(n), n, n), Sources(False, Settings(prove=prove)))
    costs = {}
    for number in (*range(30, 100, 7), 32, 64):
        ends = [n * part // number for part in range(1, number + 1)]
        sizes = np.diff([0, *ends])
        costs[number] = naive_modl.grid_cost_of_counts(np.ones(n), np.diag(sizes), ends, False)
    assert min(costs, key=costs.get) == 64  # quantiles of a power of two are the cheapest to describe
    assert found.cost <= 1.001 * min(costs.values())
    assert found.cost == pytest.approx(
        naive_modl.grid_cost_of_counts(
            np.ones(n), found.source.counts.astype(int), ends_of(found.source.labels).tolist(), False
        ),
        abs=1e-4,
    )
