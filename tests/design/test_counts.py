"""Bins of the number of training rows of a category, for the effect of counts: by hand, and what they promise."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from tabsym.design.sources import MIN_CATEGORIES, MIN_ROWS, CountEffect, merged_bins
from tabsym.models.start import frequent_count_effects

NOTHING = np.empty(0, dtype=np.int64)


def count_effect(counts, lowest):
    return CountEffect(0, ("k",), np.array(counts, dtype=np.int64), np.array(lowest, dtype=np.int64))


@pytest.mark.parametrize(
    ("rows", "categories", "kept"),
    [
        ([30, 30, 30], [5, 5, 5], [0, 1, 2]),  # as many as there must be
        ([29, 30, 30], [5, 5, 5], [0, 2]),
        ([30, 30, 30], [4, 5, 5], [0, 2]),
        ([30, 30, 29], [5, 5, 5], [0, 1]),  # the last one goes to the one before
        ([30, 30, 30], [5, 5, 4], [0, 1]),
        ([10, 10, 10], [5, 5, 5], [0]),
        ([1, 0, 1], [1, 0, 1], [0]),  # one there is always
        ([15, 15, 30], [2, 3, 5], [0, 2]),
    ],
)
def test_bins_of_counts_have_enough_rows_and_categories(rows, categories, kept):
    assert (MIN_ROWS, MIN_CATEGORIES) == (30, 5)
    lowest = np.arange(3)
    assert merged_bins(lowest, np.array(rows), np.array(categories)).tolist() == kept


@pytest.mark.parametrize("seed", range(20))
def test_bins_of_counts_are_no_larger_than_they_must_be(seed):
    rng = np.random.default_rng(seed)
    rows, categories = rng.integers(0, 60, 30), rng.integers(0, 9, 30)
    lowest = np.unique(np.r_[0, rng.integers(0, 30, 12)])
    kept = merged_bins(lowest, rows, categories)
    assert kept[0] == 0 and set(kept) <= set(lowest)
    bounds = [*kept, 30]
    for number, (first, last) in enumerate(pairwise(bounds)):
        if len(kept) > 1:
            assert rows[first:last].sum() >= MIN_ROWS and categories[first:last].sum() >= MIN_CATEGORIES
        inside = lowest[(lowest > first) & (lowest < last)]
        if len(inside) and number < len(kept) - 1:  # the last one may have taken up what is left
            shorter = slice(first, inside[-1])
            assert rows[shorter].sum() < MIN_ROWS or categories[shorter].sum() < MIN_CATEGORIES


def test_labels_of_counts_are_their_ends():
    assert count_effect([], [0, 1, 3, 4]).labels == ("0", "1 to 2", "3", "4 or more")
    assert count_effect([], [0]).labels == ("0 or more",)
    assert count_effect([], NOTHING).labels == ()


def test_a_row_is_not_counted_in_training_and_is_later():
    """Rows of training leave themselves out; a category of one row has no other, but is not unknown later."""
    effect = count_effect([1, 2, 5, 0], [0, 1, 4])
    codes = np.array([0, 1, 2, -1])
    assert effect.codes_in_training(codes).tolist() == [0, 1, 2, 0]
    assert effect.codes(codes).tolist() == [1, 1, 2, 0]
    assert effect.codes(np.array([3])).tolist() == [0]
    assert count_effect([], NOTHING).codes(codes).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("n_rows", "n_categories", "n_bins", "is_left_out"),
    [(350, 7, 3, True), (349, 7, 3, False), (400, 8, 3, True), (70, 7, 1, True), (70, 7, 2, False)],
)
def test_terms_of_fifty_rows_a_category_have_no_count_effect(n_rows, n_categories, n_bins, is_left_out):
    """Nor those whose counts are all in one bin; other blocks stay."""
    source = count_effect([5] * n_categories, range(n_bins))
    blocks = [SimpleNamespace(source=None), SimpleNamespace(source=1)]
    spec = SimpleNamespace(blocks=blocks, sources=[None, source])
    assert frequent_count_effects(spec, n_rows) == ([1] if is_left_out else [])
