"""What a model costs: the pieces of the criteria, and costs worked by hand."""

import numpy as np
import pytest

from tabsym.modl import Settings, discretize, grouping_cost, interval_cost
from tabsym.modl.criterion import (
    garbage_priors,
    group_prior,
    interval_prior,
    ln_code_sum,
    ln_partitions,
    ln_universal,
)
from tests.oracles import modl as naive_modl


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
    assert discretize(counts, Settings(criterion="page")).n_parts == 2


def test_priors_of_groups_are_those_of_the_specification():
    for n_modalities in (2, 5, 6, 7, 8, 9, 20):
        known = {"n_rows": 500.0, "n_modalities": n_modalities, "n_candidates": 3, "granularity": 4}
        ours = group_prior("khiops", n_modalities, **known)
        theirs = [naive_modl._grouping_prior(500, k, n_modalities, 0, 4, 3) for k in range(2, n_modalities + 1)]
        np.testing.assert_allclose(ours[1:], theirs, atol=1e-9)
        assert ours[0] == np.log(2)
        for size in range(1, n_modalities + 1):
            theirs = [
                naive_modl._grouping_prior(500, k, n_modalities, size, 4, 3)
                if k > 1 and size < n_modalities
                else np.inf
                for k in range(1, n_modalities + 1)
            ]
            np.testing.assert_allclose(garbage_priors(n_modalities, size, **known), theirs, atol=1e-9)
            assert np.isfinite(theirs).any() == (n_modalities >= 7 and size <= n_modalities - 2)


def test_priors_of_intervals_are_those_of_the_specification():
    for n_rows, granularity in ((500, 1), (500, 4), (500, 9), (16, 4), (17, 5)):
        ours = interval_prior("khiops", 12, n_rows=float(n_rows), n_candidates=3, granularity=granularity)
        theirs = [naive_modl._interval_prior(n_rows, k, granularity, 3) for k in range(2, 13)]
        np.testing.assert_allclose(ours[1:], theirs, atol=1e-9)
        assert ours[0] == np.log(2)
