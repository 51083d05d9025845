"""The comparison: every treatment of categories on one table, under the same folds."""

from tabsym.compare.run import Comparison, compare

__all__ = ["Comparison", "compare"]
