"""Alphabets (value <-> code), crosses of columns, and the code matrix."""

from tabsym.codes.alphabet import UNSEEN, Alphabet
from tabsym.codes.cross import Cross
from tabsym.codes.kernels import count_codes, count_column
from tabsym.codes.matrix import CodeMatrix, csr, gather, row_numbers
from tabsym.codes.raw import RawCodes, encode_column, encode_columns

__all__ = [
    "UNSEEN",
    "Alphabet",
    "CodeMatrix",
    "Cross",
    "RawCodes",
    "count_codes",
    "count_column",
    "csr",
    "encode_column",
    "encode_columns",
    "gather",
    "row_numbers",
]
