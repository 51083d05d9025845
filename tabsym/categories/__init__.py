"""Categories and their codes, interactions of columns, the code matrix, and counts by category and by pair."""

from tabsym.categories.categories import UNSEEN, Categories, Cross
from tabsym.categories.coding import CodeMatrix, RawCodes, csr, encode_column, encode_columns, gather, row_numbers
from tabsym.categories.contingency import (
    CodedValues,
    Contingency,
    PairCounts,
    code_numbers,
    code_categories,
    count_pairs,
    merge_tables,
)
from tabsym.categories.kernels import count_codes, count_column

__all__ = [
    "UNSEEN",
    "Categories",
    "CodeMatrix",
    "CodedValues",
    "Contingency",
    "Cross",
    "PairCounts",
    "RawCodes",
    "code_numbers",
    "code_symbols",
    "count_codes",
    "count_column",
    "count_pairs",
    "csr",
    "encode_column",
    "encode_columns",
    "gather",
    "merge_tables",
    "row_numbers",
]
