"""Counts that add up: tables of a column's values by the target's."""

from tabsym.stats.contingency import Contingency, count_numbers, count_symbols, merge_tables

__all__ = ["Contingency", "count_numbers", "count_symbols", "merge_tables"]
