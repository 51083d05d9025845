"""The search over numbers of parts: what is cheaper, and bounds that hold for every number at once."""

import math

import numpy as np
import pytest

from tabsym.modl.cuts import Best, Bounds, CutTask, PricedSearch, certify, is_cheaper, solve_at
from tests.oracles import modl as naive_modl

PRICES = (-2.0, 0.0, 0.5, 2.0, 5.0, 20.0)


def search_of(counts):
    task = CutTask.of(counts, 1.0, math.inf)
    return PricedSearch(task, np.arange(1, len(counts) + 1))


def least_parts(counts):
    """The least cost of the parts, by their number: every partition is looked at."""
    least = np.full(len(counts), np.inf)
    for ends in naive_modl.all_ends(len(counts)):
        cost = naive_modl.parts_cost(naive_modl.merge_intervals(counts, ends))
        least[len(ends) - 1] = min(least[len(ends) - 1], cost)
    return least


def small_tables():
    rng = np.random.RandomState(0)
    for classes in (2, 2, 3, 4):
        yield rng.poisson(rng.choice([1, 9], (9, 1)) * rng.dirichlet(np.ones(classes), 9)) + np.eye(classes)[0]
    for classes, weight in ((8, 1), (13, 4)):  # few classes a block, as values of a regression have
        counts = np.zeros((9, classes))
        np.add.at(counts, (np.repeat(np.arange(9), 2), rng.randint(0, classes, 18) // 3 * 2), weight)
        counts[4] = weight  # a block of every class
        yield counts


def test_what_is_cheaper():
    assert is_cheaper(5.0, math.inf)
    assert is_cheaper(-5.0, math.inf)
    assert is_cheaper(4.9, 5.0)
    assert is_cheaper(-5.0, -4.9)
    assert not is_cheaper(5.0, 5.0)
    assert not is_cheaper(5.0 - 1e-12, 5.0)  # rounding
    assert not is_cheaper(-5.0 - 1e-12, -5.0)
    assert not is_cheaper(math.inf, math.inf)
    assert not is_cheaper(math.nan, math.inf)


def test_each_pass_bounds_every_number_of_parts_and_meets_its_own():
    numbers = np.arange(1.0, 10)
    for counts in small_tables():
        search, least = search_of(counts), least_parts(counts)
        bounds, best, prior = Bounds(), Best(math.inf, np.array([len(counts)])), np.zeros(len(counts))
        for price in PRICES:
            found = solve_at(search, price, prior, best, bounds, 0)
            assert found.parts_cost == pytest.approx(least[len(found.ends) - 1], abs=1e-9)
            below = bounds.below(numbers)
            assert (below <= least + 1e-9).all()
            assert below[len(found.ends) - 1] == pytest.approx(found.parts_cost, abs=1e-9)
        assert best.cost == pytest.approx(min(least), abs=1e-9)
        positive = bounds.of_any_parts()
        assert positive.prices == [0.0, 0.5, 2.0, 5.0, 20.0]
        assert (positive.below(numbers) <= np.minimum.accumulate(least) + 1e-9).all()


def test_passes_by_number_are_the_best_of_each_number():
    for counts in small_tables():
        found = search_of(counts).by_number(len(counts))
        np.testing.assert_allclose([one.parts_cost for one in found], least_parts(counts), atol=1e-9)
        assert [len(one.ends) for one in found] == list(range(1, len(counts) + 1))


def test_the_bound_of_a_search_that_stops_is_what_it_knows():
    """The best model is infinitely dear, so that the bound is not cut off at its cost."""
    prior = np.arange(9.0) ** 1.5
    for counts in small_tables():
        search, least = search_of(counts), least_parts(counts)
        for prices in (PRICES[:1], PRICES[2:4], PRICES):
            bounds = Bounds()
            for price in prices:
                solve_at(search, price, prior, Best(-math.inf, np.empty(0)), bounds, 0)
            known = {1: least[0], 9: least[8]}
            nothing = Best(math.inf, np.empty(0))
            bound = certify(search, prior, nothing, bounds, known, 0, -math.inf)
            highest = bounds.below(np.arange(1.0, 10))
            highest[[0, 8]] = least[[0, 8]]
            assert bound == pytest.approx((highest + prior).min(), abs=1e-9)
            assert bound <= (least + prior).min() + 1e-9
            best = Best(math.inf, np.empty(0))
            bound = certify(search, prior, best, bounds, known, 0, math.inf)
            assert bound == pytest.approx((least + prior).min(), abs=1e-9)
            assert best.cost == pytest.approx(bound, abs=1e-9)


def test_costs_of_fractional_rows_are_brought_up_to_date_by_log_gamma():
    rng = np.random.RandomState(3)
    counts = np.zeros((10, 9))
    counts[np.arange(10), rng.randint(0, 9, 10)] = rng.uniform(0.2, 3.0, 10)
    counts[np.arange(10), rng.randint(0, 9, 10)] += rng.uniform(0.2, 3.0, 10)

    def cost(part):
        rows, n_classes = float(part.sum()), len(part)
        codes = math.lgamma(rows + n_classes) - math.lgamma(n_classes) - math.lgamma(rows + 1)
        return codes + math.lgamma(rows + 1) - sum(math.lgamma(count + 1) for count in part.tolist())

    for price in PRICES:
        found = search_of(counts).solve(price)
        partitions = [naive_modl.merge_intervals(counts, ends) for ends in naive_modl.all_ends(len(counts))]
        least = min(sum(map(cost, parts)) + price * len(parts) for parts in partitions)
        assert found.parts_cost + price * len(found.ends) == pytest.approx(least, abs=1e-9)
        parts = naive_modl.merge_intervals(counts, found.ends.tolist())
        assert found.parts_cost == pytest.approx(sum(map(cost, parts)), abs=1e-9)
