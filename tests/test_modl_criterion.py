"""What a model costs: the pieces of the criteria, and costs worked by hand."""

import numpy as np
import pytest

from tabsym.modl import discretize, grouping_cost, interval_cost
from tabsym.modl.criterion import ln_code_sum, ln_partitions, ln_universal
from tests import naive_modl


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
