"""MODL for a numeric target, by its public face, against an exhaustive search over every grid of small tables."""

import numpy as np
import pandas as pd
import pytest

from tabsym import MODLEncoder
from tests.oracles import modl as naive_modl

CLOSE = 1e-4  # of the cost
TABLES = 300

# Khiops 11.0.1, data preparation for a numeric target, one column: rows by source value (numbers and symbols in
# order) and target value, its parts (ends of intervals, or the group of each symbol), ends of the target's
# intervals, and the cost as reported (construction + preparation + data, six digits each).
KHIOPS = [
    {
        "symbolic": False,
        "table": [[10, 1, 0, 0], [11, 0, 0, 0], [1, 10, 0, 0], [0, 0, 9, 2], [0, 2, 10, 1], [0, 1, 0, 9]],
        "parts": [3, 6],
        "target": [2, 4],
        "cost": 191.76798,
    },
    {
        "symbolic": True,
        "table": [
            [0, 2, 0, 21],
            [0, 1, 0, 2],
            [0, 1, 2, 1],
            [2, 3, 0, 1],
            [20, 1, 0, 1],
            [2, 1, 0, 0],
            [2, 1, 0, 0],
            [0, 3, 2, 0],
            [2, 0, 1, 1],
            [0, 2, 2, 1],
        ],
        "parts": [1, 0, 0, 0, 2, 0, 0, 0, 0, 0],
        "target": [1, 3, 4],
        "cost": 248.43745,
    },
    {
        "symbolic": False,
        "table": [[11, 1, 0, 1, 0], [0, 9, 0, 2, 1], [2, 0, 9, 1, 0], [1, 0, 1, 9, 2]],
        "parts": [2, 4],
        "target": [2, 5],
        "cost": 141.90245,
    },
    {
        "symbolic": True,
        "table": [
            [2, 3, 2, 0],
            [0, 2, 0, 0],
            [0, 0, 1, 21],
            [4, 0, 1, 3],
            [23, 1, 1, 0],
            [3, 0, 0, 1],
            [1, 1, 2, 4],
            [1, 0, 4, 1],
            [2, 1, 2, 0],
        ],
        "parts": [0, 0, 2, 0, 1, 0, 0, 0, 0],
        "target": [1, 3, 4],
        "cost": 287.64005,
    },
    {
        "symbolic": False,
        "table": [[9, 0, 4, 0], [9, 0, 0, 1], [2, 9, 1, 1], [0, 0, 9, 1], [0, 2, 0, 9]],
        "parts": [2, 5],
        "target": [1, 4],
        "cost": 167.30978,
    },
    {
        "symbolic": True,
        "table": [
            [0, 3, 0, 0],
            [0, 2, 1, 1],
            [20, 0, 0, 1],
            [2, 0, 0, 21],
            [3, 1, 2, 1],
            [0, 1, 2, 3],
            [0, 0, 0, 2],
            [1, 0, 1, 2],
            [0, 1, 4, 0],
        ],
        "parts": [0, 0, 2, 1, 0, 0, 0, 0, 0],
        "target": [1, 3, 4],
        "cost": 233.82415,
    },
    {
        "symbolic": False,
        "table": [[9, 1, 0, 1, 0], [0, 9, 0, 0, 1], [1, 0, 10, 0, 0], [0, 1, 0, 9, 0], [1, 1, 0, 1, 9]],
        "parts": [3, 5],
        "target": [3, 5],
        "cost": 152.76812,
    },
    {
        "symbolic": True,
        "table": [
            [20, 1, 0, 0, 2],
            [2, 1, 0, 0, 2],
            [4, 0, 0, 2, 0],
            [0, 1, 0, 0, 3],
            [3, 2, 2, 1, 0],
            [3, 0, 0, 0, 20],
            [0, 0, 0, 2, 1],
            [0, 1, 0, 3, 0],
            [1, 1, 1, 1, 2],
        ],
        "parts": [1, 0, 0, 0, 0, 2, 0, 0, 0],
        "target": [1, 4, 5],
        "cost": 272.96355,
    },
    {
        "symbolic": False,
        "table": [[9, 1, 1, 0], [9, 0, 1, 1], [0, 9, 1, 1], [0, 1, 9, 0], [1, 0, 1, 9]],
        "parts": [2, 5],
        "target": [1, 4],
        "cost": 152.62612,
    },
    {
        "symbolic": True,
        "table": [
            [0, 2, 1, 0],
            [0, 4, 0, 0],
            [1, 0, 0, 2],
            [4, 0, 0, 0],
            [0, 0, 0, 21],
            [0, 0, 3, 0],
            [0, 1, 2, 1],
            [3, 1, 4, 0],
            [0, 3, 2, 0],
            [20, 2, 0, 0],
        ],
        "parts": [0, 0, 0, 0, 2, 0, 0, 0, 0, 1],
        "target": [1, 3, 4],
        "cost": 234.57195,
    },
]


def random_table(rng, *, categorical):
    """Counts by source and target value, at most 6 by 6 (some of 7 symbols), from noise to a clear signal."""
    n_sources = rng.integers(2, 8 if categorical and rng.random() < 0.1 else 7)
    n_targets = rng.integers(2, 7)
    table = rng.poisson(rng.choice([0.3, 1, 3, 10]), (n_sources, n_targets))
    kind = rng.integers(4)
    strength = rng.choice([2, 5, 15, 40])
    if kind == 1:  # a line, or for symbols a line in no order
        places = np.arange(n_sources) * n_targets // n_sources
        if categorical:
            places = rng.permutation(places)
        table[np.arange(n_sources), places] += strength
    elif kind == 2:  # two levels
        low = np.arange(n_sources) < rng.integers(1, n_sources)
        if categorical:
            low = rng.permutation(low)
        cut = rng.integers(1, n_targets)
        table[np.ix_(low, np.arange(cut))] += strength
        table[np.ix_(~low, np.arange(cut, n_targets))] += strength
    elif kind == 3:  # the spread changes, not the mean
        table[n_sources // 2 :, [0, -1]] += strength
        table[: n_sources // 2, n_targets // 2] += strength
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    return table if table.size and table.sum() > 2 else random_table(rng, categorical=categorical)


def fitted(table, *, categorical):
    """Our cost, and the parts of the source and ends of the target's intervals that it is for."""
    source, target = np.nonzero(table)
    times = table[source, target]
    source, target = np.repeat(source, times), np.repeat(target, times)
    X = pd.DataFrame({"x": [f"s{value}" for value in source] if categorical else source})
    encoder = MODLEncoder(target_type="continuous", n_candidates=1).fit(X, target * 1.5)
    part = np.zeros(len(table), dtype=int)
    part[source] = encoder.transform(X)["x"].cat.codes
    bounds = np.asarray(encoder.partitions_["x"].target.bounds)
    ends = [*np.searchsorted(np.arange(table.shape[1]) * 1.5, bounds).tolist(), table.shape[1]]
    if not categorical:
        part = np.append(np.flatnonzero(np.diff(part)) + 1, len(table))
    return encoder.costs_["x"], part.tolist(), ends


@pytest.mark.parametrize("categorical", [False, True])
def test_the_oracle_searches_every_grid(categorical):
    rng = np.random.default_rng(1)
    sources = naive_modl.all_labels if categorical else naive_modl.all_ends
    for _ in range(10):
        table = random_table(rng, categorical=categorical)[:4, :4]
        table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        costs = [
            naive_modl.grid_cost(table, one, ends, categorical)
            for one in sources(len(table))
            for ends in naive_modl.all_ends(table.shape[1])
        ]
        cost, parts, ends = naive_modl.best_grid(table, categorical)
        assert cost == pytest.approx(min(costs), rel=1e-12)
        assert naive_modl.grid_cost(table, parts, ends, categorical) == pytest.approx(cost, rel=1e-12)


@pytest.mark.parametrize("record", KHIOPS)
def test_the_oracle_counts_as_khiops_does(record):
    cost = naive_modl.grid_cost(np.array(record["table"]), record["parts"], record["target"], record["symbolic"])
    assert cost == pytest.approx(record["cost"], abs=1.1e-3)


@pytest.mark.parametrize("categorical", [False, True])
def test_costs_are_those_of_the_grids_returned(categorical):
    rng = np.random.default_rng(2)
    for _ in range(40):
        table = random_table(rng, categorical=categorical)
        cost, parts, ends = fitted(table, categorical=categorical)
        assert naive_modl.grid_cost(table, parts, ends, categorical) == pytest.approx(cost, abs=1e-5)


@pytest.mark.parametrize("categorical", [False, True])
@pytest.mark.slow
def test_grids_are_optimal(categorical):
    rng = np.random.default_rng(3)
    misses = []
    for number in range(TABLES // 2):
        table = random_table(rng, categorical=categorical)
        cost, _, _ = fitted(table, categorical=categorical)
        best, parts, ends = naive_modl.best_grid(table, categorical)
        assert cost > best * (1 - 1e-6), (number, table.tolist(), "below the optimum")
        if cost > best * (1 + CLOSE):
            misses.append((number, round(cost / best - 1, 5), parts, ends))
    assert not misses, f"{len(misses)} of {TABLES // 2}, worst {max(miss[1] for miss in misses)}: {misses[:10]}"
