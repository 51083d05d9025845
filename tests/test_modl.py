"""MODL on contingency tables: against the reference records, brute force, and identities."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tabsym.modl import discretize, group, grouping_cost, groups, interval_cost, intervals
from tabsym.modl.criterion import ln_code_sum, ln_partitions, ln_universal, parts_cost
from tabsym.modl.grid import Options, Rows
from tabsym.modl.grid_search import cut_jointly
from tabsym.modl.shares import ByShare
from tests import naive_modl

CANDIDATES = {"Iris": 4, "Adult": 14, "Adult7": 11}
"""What reproduces the construction costs that Khiops reports."""
ROUNDING = 5e-7


# -- the reference -------------------------------------------------------------------------------


@pytest.fixture
def records(data_folder):
    path = Path(data_folder) / "modl_reference.json"
    return [one for one in json.loads(path.read_text())["records"] if "contingency" in one]


def numeric(records):
    return [one for one in records if one["type"] == "Numerical"]


def symbolic(records):
    return [one for one in records if one["type"] != "Numerical"]


def counts_of(record):
    return np.array(record["contingency"]["counts"], dtype=float)


def khiops_ends(record):
    values = [-np.inf if v is None else v for v in record["contingency"]["values"]]
    bounds = [-np.inf if b is None else b for b in record["khiops_bounds"]]
    return [*np.searchsorted(values, bounds, side="right").tolist(), len(values)]


def khiops_labels(record):
    place = {symbol: i for i, members in enumerate(record["khiops_groups"]) for symbol in members}
    other = place.get("", place.get(None))
    return [place.get(symbol, other) for symbol in record["contingency"]["values"]]


def khiops_null(record):
    counts = counts_of(record)
    return interval_cost(counts, [len(counts)], criterion="khiops")


def test_there_are_records_of_both_kinds(records):
    assert len(numeric(records)) == 12
    assert len(symbolic(records)) == 16


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
    for record in symbolic(records):
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
        found = discretize(counts, n_candidates=CANDIDATES[record["dataset"]])
        assert found.cost <= record["khiops_cost_recomputed"] + ROUNDING
        assert abs(found.cost - record["khiops_criterion_optimum"]) <= ROUNDING
        page = discretize(counts, criterion="page")
        assert abs(page.cost - record["seed_optimum"]) <= ROUNDING
        for one in (found, page):
            assert one.is_optimal
            assert one.lower_bound <= one.cost
            ends = np.append(np.flatnonzero(np.diff(one.labels)) + 1, len(counts))
            n_candidates = CANDIDATES[record["dataset"]]
            again = interval_cost(counts, ends, criterion=one.criterion, n_candidates=n_candidates)
            assert again == pytest.approx(one.cost, rel=1e-12)


def test_groups_are_optimal_and_never_above_khiops(records):
    for record in symbolic(records):
        counts = counts_of(record)
        n_candidates = CANDIDATES[record["dataset"]]
        found = group(counts, n_candidates=n_candidates)
        assert found.is_best_without_garbage or counts.shape[1] > 2
        assert found.cost <= record["khiops_cost_recomputed"] + ROUNDING, record["variable"]
        if record.get("khiops_criterion_optimum") is not None:
            assert abs(found.cost - record["khiops_criterion_optimum"]) <= ROUNDING
            assert group(counts, n_candidates=n_candidates, time_limit=60).is_optimal
        page = group(counts, criterion="page")
        best = record.get("seed_optimum") or record["seed_best_local_search"]
        assert abs(page.cost - best) <= ROUNDING, record["variable"]
        for one in (found, page):
            again = grouping_cost(counts, one.labels, criterion=one.criterion, n_candidates=n_candidates)
            assert again == pytest.approx(one.cost, rel=1e-12)


# -- pieces of the criteria ---------------------------------------------------------------------


def test_partitions_of_a_set_by_exact_integers():
    for n in (1, 2, 5, 12, 60, 200):
        ours = ln_partitions(n, n)
        assert np.allclose(ours, [naive_modl.ln_partitions(n, g) for g in range(1, n + 1)], rtol=0, atol=1e-9)
    assert ln_partitions(50_000, 2)[1] == pytest.approx(49_999 * np.log(2))


def test_universal_code_sums_to_one():
    for m in (1, 7, 100, 1999):
        total = sum(np.exp(-ln_universal(k, m)) for k in range(1, m + 1))
        assert total == pytest.approx(1.0)
    assert ln_universal(5, 31) == pytest.approx(naive_modl.rissanen(5, 31))
    for m in (2500, 70_000):  # Khiops' integral instead of the sum
        assert ln_code_sum(m) == pytest.approx(naive_modl._ln_norm(m), abs=2e-6)


def test_worked_by_hand():
    # 12 rows, two pure halves. One interval: ln 12 + ln C(12, 0) + ln 13 + ln C(12, 6) = ln(12 * 13 * 924).
    counts = np.array([[6.0, 0.0], [0.0, 6.0]])
    assert interval_cost(counts, [2], criterion="page") == pytest.approx(np.log(12 * 13 * 924))
    # Two: ln 12 + ln C(13, 1) + 2 ln 7.
    assert interval_cost(counts, [1, 2], criterion="page") == pytest.approx(np.log(12 * 13 * 49))
    # Two groups of two symbols: ln 2 + ln B(2, 2) + 2 ln 7, B(2, 2) = 2.
    assert grouping_cost(counts, [0, 1], criterion="page") == pytest.approx(np.log(2 * 2 * 49))
    assert discretize(counts, criterion="page").n_parts == 2


# -- exact = brute force ------------------------------------------------------------------------


def tables(blocks, classes):
    """Small tables of whole counts, each block with a row at least."""
    cell = st.integers(0, 9)
    sizes = st.tuples(st.integers(1, blocks), st.integers(2, classes))
    lists = sizes.flatmap(
        lambda size: st.lists(st.lists(cell, min_size=size[1], max_size=size[1]), min_size=size[0], max_size=size[0])
    )
    return lists.map(lambda rows: np.array(rows, dtype=float)).filter(lambda t: (t.sum(axis=1) > 0).all())


@settings(max_examples=60, deadline=None)
@given(tables(8, 3), st.sampled_from(["page", "khiops"]))
def test_intervals_equal_brute_force(counts, criterion):
    assume(counts.sum() >= 2)
    best, _ = naive_modl.best_intervals(counts.astype(int), criterion)
    found = discretize(counts, criterion=criterion)
    assert found.cost == pytest.approx(best, abs=1e-7)
    assert found.is_optimal
    assert found.lower_bound <= best + 1e-7


@settings(max_examples=60, deadline=None)
@given(tables(6, 3), st.sampled_from(["page", "khiops"]))
def test_groups_equal_brute_force(counts, criterion):
    assume(counts.sum() >= 2)
    best, _ = naive_modl.best_groups(counts.astype(int), criterion)
    found = group(counts, criterion=criterion)
    assert found.cost == pytest.approx(best, abs=1e-7)
    assert found.is_optimal


@settings(max_examples=30, deadline=None)
@given(tables(6, 2), st.sampled_from(["page", "khiops"]))
def test_cuts_along_the_class_shares_are_optimal_groups(counts, criterion):
    """Two classes: the road for many modalities, taken on tables small enough to look at every partition."""
    assume(counts.sum() >= 2 and counts.shape[1] == 2 and len(counts) > 1)
    best, _ = naive_modl.best_groups(counts.astype(int), criterion)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "MOST_SUBSETS", 1)
        found = group(counts, criterion=criterion)
    assert found.cost == pytest.approx(best, abs=1e-7)
    assert found.is_optimal


def test_garbage_group():
    """Most modalities say nothing: a model with a garbage group, which costs what the definition says."""
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
            patch.setattr(groups, "MOST_SUBSETS", 1)
            unasked = group(counts)
            found = group(counts, time_limit=60)
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
    again = group(counts, time_limit=60)
    assert again.cost <= found.cost
    assert again.lower_bound <= again.cost
    assert again.gap < 1e-4
    short = group(counts, time_limit=1e-3)
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

    def note(grounds, bounds, best, granularity, rng, most_work):
        seen.append(bounds)
        return best, granularity, -np.inf

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "bound_garbage", note)
        group(counts)
    assert seen[0].below(np.array([10.0])) <= parts_cost(parts)


def test_bounds_where_nothing_is_better_off_outside_the_garbage():
    """At a high price no modality is: there is no model to offer then, and no error."""
    rng = np.random.RandomState(0)
    pure = np.stack([np.full(60, 20.0), np.zeros(60)], axis=1)
    pure[:30, 0] = 400 * np.arange(1, 31)
    pure[30] = [193, 5]
    found = group(pure)
    assert found.is_best_without_garbage
    assert found.lower_bound <= found.cost
    for _ in range(5):
        ones = rng.binomial(3, 0.01, 20)
        counts = np.stack([3 - ones, ones], axis=1).astype(float)
        found = group(counts, time_limit=60)
        assert found.n_parts == 1
        assert found.is_optimal


def test_gains_of_groups_equal_the_integrals():
    """The kernels of the garbage bound: each run's integral, and the best runs, against sums over a fine grid."""
    rng = np.random.RandomState(0)
    counts = rng.randint(0, 30, (7, 2)) + 1.0
    units = ByShare(counts)
    cost = units.costs(0.4) + rng.uniform(1, 4, len(units.counts))
    for price in (0.3, 2.0):
        found = units.gained(cost, price, 4)
        exact = naive_modl.gains_beside_garbage(units.counts, units.times, cost - price, 4)
        assert (found >= exact - 1e-9).all()  # from above, as a bound on costs has to be
        np.testing.assert_allclose(found, exact, atol=0.02 * len(found))
        labels = units.groups(cost, price, 4)
        for groups_, most in zip(labels, exact, strict=False):
            assert len(groups_) == len(counts)
            inside = [-grouping_parts(counts[groups_ == g]) for g in np.unique(groups_[groups_ > 0])]
            reward = (cost - price)[units.place][groups_ > 0].sum()
            assert (
                most - 1.0 < sum(inside) + reward <= most + 1e-9
            )  # a model gains as much, but for what is on the verge


def grouping_parts(counts):
    return parts_cost(counts.sum(axis=0)[None, :])


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
        found = discretize(counts, criterion=criterion, monotonic=True)
        assert found.cost == pytest.approx(best, abs=1e-7)


@settings(max_examples=30, deadline=None)
@given(tables(8, 3), st.integers(1, 4), st.integers(1, 12))
def test_limits_on_parts_equal_brute_force(counts, most, least):
    assume(counts.sum() >= 2)
    sizes = counts.sum(axis=1)

    def allowed(ends):
        return len(ends) <= most and (len(ends) == 1 or min(np.add.reduceat(sizes, [0, *ends[:-1]])) >= least)

    candidates = [ends for ends in naive_modl.all_ends(len(counts)) if allowed(ends)]
    best = min(naive_modl.interval_cost(counts.astype(int), ends, "page") for ends in candidates)
    found = discretize(counts, criterion="page", max_parts=most, min_part_count=least)
    assert found.cost == pytest.approx(best, abs=1e-7)
    assert found.n_parts <= most
    grouped = group(counts, criterion="page", max_parts=most, min_part_count=least)
    assert grouped.n_parts <= most
    assert grouped.n_parts == 1 or grouped.counts.sum(axis=1).min() >= least


# -- identities -----------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(tables(10, 4), st.sampled_from(["page", "khiops"]), st.randoms(use_true_random=False))
def test_classes_and_modalities_can_be_renamed(counts, criterion, random):
    assume(counts.sum() >= 2)
    classes, symbols = list(range(counts.shape[1])), list(range(len(counts)))
    random.shuffle(classes)
    random.shuffle(symbols)
    assert discretize(counts[:, classes], criterion=criterion).cost == pytest.approx(
        discretize(counts, criterion=criterion).cost
    )
    assert group(counts[symbols][:, classes], criterion=criterion).cost == pytest.approx(
        group(counts, criterion=criterion).cost
    )


@settings(max_examples=25, deadline=None)
@given(tables(10, 3), st.sampled_from(["page", "khiops"]))
@example(np.array([[0.0, 3.0], [7.0, 6.0]]), "khiops")  # 16 rows and a hair are not 17
def test_fractional_counts_agree_with_whole_ones(counts, criterion):
    """The road through ln Gamma, on counts a hair away from whole ones."""
    assume(counts.sum() >= 2)
    whole = discretize(counts, criterion=criterion)
    almost = discretize(counts * (1 + 1e-12), criterion=criterion)
    assert almost.cost == pytest.approx(whole.cost, abs=1e-6)


def test_groups_of_proportional_modalities_are_never_split():
    rng = np.random.RandomState(1)
    base = rng.randint(1, 9, (5, 3))
    counts = np.concatenate([base, 2 * base, 3 * base]).astype(float)
    found = group(counts, criterion="page")
    assert np.array_equal(found.labels[:5], found.labels[5:10])
    assert np.array_equal(found.labels[:5], found.labels[10:])


# -- large columns --------------------------------------------------------------------------------


def steps(n, n_steps, seed, classes=2):
    """Blocks of one row, classes by a step function of the place."""
    rng = np.random.RandomState(seed)
    shares = rng.dirichlet(np.ones(classes) * 0.6, size=n_steps)
    drawn = (rng.rand(n)[:, None] > np.cumsum(shares[np.arange(n) * n_steps // n], axis=1)).sum(axis=1)
    counts = np.zeros((n, classes))
    counts[np.arange(n), np.minimum(drawn, classes - 1)] = 1
    return counts


@pytest.mark.parametrize("criterion", ["page", "khiops"])
@pytest.mark.parametrize(("n_steps", "classes"), [(1, 2), (20, 2), (60, 3)])
def test_many_blocks_come_near_the_certified_optimum(criterion, n_steps, classes):
    counts = steps(20_000, n_steps, 0, classes)
    near = discretize(counts, criterion=criterion)
    best = discretize(counts, criterion=criterion, time_limit=120)
    assert best.is_optimal
    assert best.cost * (1 - 1e-12) <= near.cost <= best.cost * (1 + 1e-4)


def test_time_limit_returns_the_best_so_far_with_a_bound():
    counts = steps(60_000, 40, 1)
    hasty = discretize(counts, time_limit=0.05)
    patient = discretize(counts)
    assert hasty.lower_bound <= patient.cost
    assert hasty.cost <= hasty.null_cost


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


def test_exact_limit_is_what_it_says():
    assert intervals.MOST_EXACT == 4096
    counts = steps(4000, 6, 2)
    assert discretize(counts).is_optimal


# -- edges ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["page", "khiops"])
def test_columns_that_say_nothing_are_one_part(criterion):
    for counts in ([[3.0, 4.0]], [[1.0, 0.0]], [[5.0, 5.0], [5.0, 5.0]], [[7.0, 0.0], [2.0, 0.0]]):
        for found in (discretize(np.array(counts), criterion=criterion), group(np.array(counts), criterion=criterion)):
            assert found.n_parts == 1
            assert found.level == 0.0
            assert found.cost == found.null_cost


# -- regression -----------------------------------------------------------------------------------


def joint(table, *, symbolic):
    source, target = np.nonzero(table)
    rows = Rows(source, target, *table.shape, table[source, target].astype(float))
    return cut_jointly(rows, Options(symbolic, "khiops", 1, None, 1, False, None))


def naive_joint_cost(table, grid, *, symbolic):
    ends = [*(np.flatnonzero(np.diff(grid.target_labels)) + 1).tolist(), table.shape[1]]
    if symbolic:
        return naive_modl.regression_grouping_cost(table, grid.source.labels.tolist(), ends, garbage=None)
    cuts = [*(np.flatnonzero(np.diff(grid.source.labels)) + 1).tolist(), len(table)]
    return naive_modl.regression_interval_cost(table, cuts, ends)


@pytest.mark.parametrize("symbolic", [False, True])
def test_joint_grids_cost_what_the_definition_says_and_come_near_the_best(symbolic):
    rng = np.random.RandomState(4)
    informative = 0
    for strength in (0, 4, 12):
        table = rng.randint(0, 3, (5, 5))
        table += strength * np.eye(5, dtype=int)[:, rng.permutation(5) if symbolic else np.arange(5)]
        table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        grid = joint(table, symbolic=symbolic)
        naive = naive_joint_cost(table, grid, symbolic=symbolic)
        assert grid.source.cost == pytest.approx(naive, abs=1e-6)
        search = naive_modl.best_regression_groups if symbolic else naive_modl.best_regression_intervals
        best = search(table)[0]
        assert best - 1e-6 <= grid.source.cost <= best * 1.01
        informative += grid.source.n_parts > 1
    assert informative >= 1


def test_noise_is_no_grid():
    rng = np.random.RandomState(5)
    rows = Rows(np.arange(500), rng.permutation(500), 500, 500)
    found = cut_jointly(rows, Options(False, "khiops", 1, None, 1, False, None))
    assert found.source.n_parts == 1
    assert found.source.level == 0.0


# -- degenerate tables --------------------------------------------------------------------------------


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
    assert intervals.quantile_boundaries(before, 10).tolist() == [i + 1 for i in sorted(chosen | {len(places) - 1})]


@pytest.mark.parametrize("criterion", ["khiops", "page"])
@pytest.mark.parametrize(
    "counts",
    [[[1, 0]], [[3]], [[3], [2]], np.ones((30, 1)), np.ones((6, 2)), np.ones((14, 3)), [[0.4, 0], [0, 0.4]]],
)
def test_tables_of_one_row_one_class_or_equal_counts_are_one_part(counts, criterion):
    for search in (discretize, group):
        for options in ({}, {"max_parts": 2}, {"min_part_count": 3}):
            found = search(np.array(counts, dtype=float), criterion=criterion, **options)
            assert found.n_parts == 1
            assert found.level == 0
            assert found.cost == found.null_cost


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


def test_classes_of_no_rows_change_the_cost_and_not_the_search():
    counts = np.c_[np.repeat([[9, 0], [0, 9], [9, 0]], 9, axis=0), np.zeros(27)]
    for search in (discretize, group):
        found = search(counts)
        assert found.n_parts == (3 if search is discretize else 2)
        assert found.counts[:, 2].sum() == 0


def test_no_bound_is_claimed_for_groups_of_a_least_size():
    """With a least size the best groups need not lie together by class share: then nothing is proved."""
    rng = np.random.RandomState(0)
    counts = rng.randint(1, 30, (20, 2)).astype(float)
    for criterion in ("page", "khiops"):
        assert group(counts, criterion=criterion, min_part_count=100).lower_bound == -np.inf
        assert group(counts, criterion=criterion).is_best_without_garbage
