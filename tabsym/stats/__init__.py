"""Counts that add up: tables of a column's values by the target's."""

from tabsym.stats.contingency import CodedValues, Contingency, code_numbers, code_symbols, merge_tables

__all__ = ["CodedValues", "Contingency", "code_numbers", "code_symbols", "merge_tables"]
