"""Counts that add up: tables of a column's values by the target's."""

from tabsym.stats.contingency import CodedValues, Contingency, code_numbers, code_symbols, merge_tables
from tabsym.stats.pairs import PairCounts, count_pairs

__all__ = ["CodedValues", "Contingency", "PairCounts", "code_numbers", "code_symbols", "count_pairs", "merge_tables"]
