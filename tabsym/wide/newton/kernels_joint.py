"""Kernel of the joint information: sums over rows by pairs of entries."""

from __future__ import annotations

from tabsym.jit import kernel


@kernel
def sum_pairs(left, right, values, sums):
    """Add values (n,) of rows to sums (q, r) at their entries of two blocks, codes (n,) each, -1 for none."""
    for i in range(len(values)):
        if left[i] >= 0 and right[i] >= 0:
            sums[left[i], right[i]] += values[i]
