"""The searches of MODL against records of what Khiops found on public tables."""

import json
from pathlib import Path

import numpy as np
import pytest

from tabsym.modl import Settings, discretize, group, grouping_cost, interval_cost

CANDIDATES = {"Iris": 4, "Adult": 14, "Adult7": 11}
"""What reproduces the construction costs that Khiops reports."""


ROUNDING = 5e-7


@pytest.fixture
def records(data_folder):
    path = Path(data_folder) / "modl_reference.json"
    return [one for one in json.loads(path.read_text())["records"] if "contingency" in one]


def numeric(records):
    return [one for one in records if one["type"] == "Numerical"]


def categorical(records):
    return [one for one in records if one["type"] != "Numerical"]


def counts_of(record):
    return np.array(record["contingency"]["counts"], dtype=float)


def khiops_ends(record):
    values = [-np.inf if v is None else v for v in record["contingency"]["values"]]
    bounds = [-np.inf if b is None else b for b in record["khiops_bounds"]]
    return [*np.searchsorted(values, bounds, side="right").tolist(), len(values)]


def khiops_labels(record):
    place = {category: i for i, members in enumerate(record["khiops_groups"]) for category in members}
    other = place.get("", place.get(None))
    return [place.get(category, other) for category in record["contingency"]["values"]]


def khiops_null(record):
    counts = counts_of(record)
    return interval_cost(counts, [len(counts)], criterion="khiops")


def test_there_are_records_of_both_kinds(records):
    assert len(numeric(records)) == 12
    assert len(categorical(records)) == 16


def test_costs_and_levels_of_khiops_intervals(records):
    for record in numeric(records):
        counts, ends = counts_of(record), khiops_ends(record)
        n_candidates = CANDIDATES[record["dataset"]]
        cost = interval_cost(counts, ends, n_candidates=n_candidates)
        assert abs(cost - record["khiops_cost_recomputed"]) <= ROUNDING, record["variable"]
        at_granularity = interval_cost(
            counts, ends, n_candidates=n_candidates, granularity=record["khiops_granularity"]
        )
        assert abs(at_granularity - cost) <= ROUNDING
        assert abs(1 - cost / khiops_null(record) - record["khiops_level"]) <= 5e-6
        page = interval_cost(counts, ends, criterion="page")
        assert abs(page - record["seed_cost_khiops_partition"]) <= ROUNDING
        null = interval_cost(counts, [len(counts)], criterion="page")
        assert abs(null - record["seed_cost_null"]) <= ROUNDING


def test_costs_and_levels_of_khiops_groups(records):
    for record in categorical(records):
        counts, labels = counts_of(record), khiops_labels(record)
        left, garbage = record["khiops_V_and_garbage"]
        assert garbage == 0
        cost = grouping_cost(
            counts,
            labels,
            n_candidates=CANDIDATES[record["dataset"]],
            granularity=record["khiops_granularity"],
            n_modalities=left,
        )
        assert abs(cost - record["khiops_cost_recomputed"]) <= ROUNDING, record["variable"]
        assert abs(1 - cost / khiops_null(record) - record["khiops_level"]) <= 5e-6
        page = grouping_cost(counts, labels, criterion="page")
        assert abs(page - record["seed_cost_khiops_partition"]) <= ROUNDING
        null = grouping_cost(counts, [0] * len(counts), criterion="page")
        assert abs(null - record["seed_cost_null"]) <= ROUNDING


def test_intervals_are_optimal_and_never_above_khiops(records):
    for record in numeric(records):
        counts = counts_of(record)
        found = discretize(counts, Settings(n_candidates=CANDIDATES[record["dataset"]]))
        assert found.cost <= record["khiops_cost_recomputed"] + ROUNDING
        assert abs(found.cost - record["khiops_criterion_optimum"]) <= ROUNDING
        page = discretize(counts, Settings(criterion="page"))
        assert abs(page.cost - record["seed_optimum"]) <= ROUNDING
        for one in (found, page):
            assert one.is_optimal
            ends = np.append(np.flatnonzero(np.diff(one.labels)) + 1, len(counts))
            n_candidates = CANDIDATES[record["dataset"]]
            again = interval_cost(counts, ends, criterion=one.criterion, n_candidates=n_candidates)
            assert again == pytest.approx(one.cost, rel=1e-12)


def test_groups_are_optimal_and_never_above_khiops(records):
    for record in categorical(records):
        counts = counts_of(record)
        n_candidates = CANDIDATES[record["dataset"]]
        found = group(counts, Settings(n_candidates=n_candidates))
        assert found.is_best_without_garbage or counts.shape[1] > 2
        assert found.cost <= record["khiops_cost_recomputed"] + ROUNDING, record["variable"]
        if record.get("khiops_criterion_optimum") is not None:
            assert abs(found.cost - record["khiops_criterion_optimum"]) <= ROUNDING
            assert group(counts, Settings(n_candidates=n_candidates, time_limit=60)).is_optimal
        page = group(counts, Settings(criterion="page"))
        best = record.get("seed_optimum") or record["seed_best_local_search"]
        assert abs(page.cost - best) <= ROUNDING, record["variable"]
        for one in (found, page):
            again = grouping_cost(counts, one.labels, criterion=one.criterion, n_candidates=n_candidates)
            assert again == pytest.approx(one.cost, rel=1e-12)
