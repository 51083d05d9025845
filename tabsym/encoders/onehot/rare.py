"""Which categories of a column are rare, and share an output column: by scikit-learn's rule, or category_encoders'."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RareRule:
    """What makes a category rare.

    `smallest`: fewer rows than so many, or than this share of all; `at_most`: so many output columns.
    `needs_two`: category_encoders' habit, by which a group has two categories or more and leaves one beside it.
    """

    smallest: float | None = None
    at_most: int | None = None
    needs_two: bool = False
    with_missing: bool | str = True
    name: str | None = None

    def name_of(self, symbols: NDArray[Any]) -> str:
        """What the infrequent categories are called together."""
        if self.name is not None:
            return self.name
        if not self.needs_two:
            return "infrequent"
        texts = sorted(str(symbol) for symbol in symbols if symbol is not None)
        return "_".join(texts if len(texts) == len(symbols) else [*texts, "nan"])


def find_rare(counts: NDArray[Any], n_rows: float, missing: int, rule: RareRule) -> NDArray[np.int64]:
    """Codes of the infrequent categories.

    Parameters
    ----------
    counts : (M,)
        Rows, or weights, of each category.
    n_rows : float
        Of the whole column.
    missing : int
        The code of the missing category, below 0 where there is none.
    rule : RareRule
    """
    rare = np.zeros(len(counts), dtype=bool)
    if rule.smallest is not None:
        whole = isinstance(rule.smallest, Integral)
        rare = counts < (rule.smallest if whole else rule.smallest * n_rows)
    if missing >= 0 and rule.with_missing is not True:
        rare[missing] = rule.with_missing == "force" and bool(rare.any())
    rare |= _beyond(counts, rare, missing, rule)
    named = np.ones(len(counts), dtype=bool)
    if missing >= 0:
        named[missing] = False
    if rule.needs_two and (rare.sum() < 2 or rare[named].all() or not counts[rare].sum() > 0):
        rare[:] = False
    return np.flatnonzero(rare)


def _beyond(counts: NDArray[Any], rare: NDArray[np.bool_], missing: int, rule: RareRule) -> NDArray[np.bool_]:
    """The smallest categories, so that no more than `at_most` output columns are left; of equal ones the first."""
    out = np.zeros(len(counts), dtype=bool)
    if rule.at_most is None or len(counts) - rare.sum() + rare.any() <= rule.at_most:
        return out
    kept_apart = missing if missing >= 0 and rule.with_missing is False else -1
    order = [code for code in np.argsort(counts, kind="stable").tolist() if code != kept_apart]
    common = rule.at_most - 1 - (kept_apart >= 0)
    out[order[: max(len(order) - common, 0)] if common > 0 else order] = True
    if missing >= 0 and rule.with_missing == "force":
        out[missing] = True
    return out
