"""What holds for intervals and groups alike: names do not matter, and degenerate tables are one part."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tabsym.modl import Settings, discretize, group
from tests.modl_data import tables


@settings(max_examples=25, deadline=None)
@given(tables(10, 4), st.sampled_from(["page", "khiops"]), st.randoms(use_true_random=False))
def test_classes_and_modalities_can_be_renamed(counts, criterion, random):
    assume(counts.sum() >= 2)
    classes, categories = list(range(counts.shape[1])), list(range(len(counts)))
    random.shuffle(classes)
    random.shuffle(categories)
    assert discretize(counts[:, classes], Settings(criterion=criterion)).cost == pytest.approx(
        discretize(counts, Settings(criterion=criterion)).cost
    )
    assert group(counts[categories][:, classes], Settings(criterion=criterion)).cost == pytest.approx(
        group(counts, Settings(criterion=criterion)).cost
    )


@pytest.mark.parametrize("criterion", ["page", "khiops"])
def test_columns_that_say_nothing_are_one_part(criterion):
    for counts in ([[3.0, 4.0]], [[1.0, 0.0]], [[5.0, 5.0], [5.0, 5.0]], [[7.0, 0.0], [2.0, 0.0]]):
        for found in (
            discretize(np.array(counts), Settings(criterion=criterion)),
            group(np.array(counts), Settings(criterion=criterion)),
        ):
            assert found.n_parts == 1
            assert found.level == 0.0
            assert found.cost == found.null_cost


@pytest.mark.parametrize("criterion", ["khiops", "page"])
@pytest.mark.parametrize(
    "counts",
    [[[1, 0]], [[3]], [[3], [2]], np.ones((30, 1)), np.ones((6, 2)), np.ones((14, 3)), [[0.4, 0], [0, 0.4]]],
)
def test_tables_of_one_row_one_class_or_equal_counts_are_one_part(counts, criterion):
    for search in (discretize, group):
        for options in ({}, {"max_parts": 2}, {"min_part_count": 3}):
            found = search(np.array(counts, dtype=float), Settings(criterion=criterion, **options))
            assert found.n_parts == 1
            assert found.level == 0
            assert found.cost == found.null_cost


def test_classes_of_no_rows_change_the_cost_and_not_the_search():
    counts = np.c_[np.repeat([[9, 0], [0, 9], [9, 0]], 9, axis=0), np.zeros(27)]
    for search in (discretize, group):
        found = search(counts)
        assert found.n_parts == (3 if search is discretize else 2)
        assert found.counts[:, 2].sum() == 0
