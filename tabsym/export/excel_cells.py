"""Cells of Excel sheets: text that is never a formula, references, and names of sheets."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

MAX_TEXT, MAX_TITLE, MAX_WHOLE = 32_767, 31, 10**15
"""Characters of a cell and of a sheet's name, and a number that keeps all its digits."""


class Text(str):
    """Text that is no formula."""


def write_row(sheet: Any, row: int, cells: Sequence[Any]) -> None:
    """Write cells from the first column on."""
    for column, value in enumerate(cells, 1):
        put(sheet.cell(row, column), value)


def put(cell: Any, value: Any) -> None:
    """Set a cell; text is kept as text whatever it begins with, so that no category is a formula."""
    from openpyxl.utils.exceptions import IllegalCharacterError

    if not isinstance(value, Text):
        cell.value = value
        return
    if len(value) > MAX_TEXT:
        raise ValueError(
            f"The text {value[:40]!r}... has {len(value):,} characters, more than a cell of a sheet holds."
        )
    try:
        cell.value = str(value)
    except IllegalCharacterError:
        raise ValueError(f"The text {str(value)[:40]!r} holds a character that Excel files cannot.") from None
    cell.data_type = "s"
    if value[:1] in ("=", "+", "-", "@", "'"):
        cell.quotePrefix = True


def cell_of(value: Any) -> Any:
    """A category or class as a cell.

    Raises
    ------
    ValueError
        Cells do not hold its type.
    """
    if isinstance(value, str):
        return Text(value)
    fits = isinstance(value, (bool, float, dt.date)) or (isinstance(value, int) and abs(value) < MAX_WHOLE)
    if fits and getattr(value, "tzinfo", None) is None:
        return value.to_pydatetime() if hasattr(value, "to_pydatetime") else value
    raise ValueError(f"The category {value!r} is no text, number or date of a sheet; make the column text before fit.")


def number(value: float) -> str:
    return f"({value!r})" if value < 0 else repr(float(value))


def rounded_up(value: float) -> float:
    """A number of the 16 digits that openpyxl writes, which is not below: a bound of bins belongs to the bin below."""
    return float(Context(prec=16, rounding=ROUND_CEILING).create_decimal(Decimal(value)))


def letter(column: int) -> str:
    from openpyxl.utils import get_column_letter

    return str(get_column_letter(column))


def title(text: str) -> str:
    """A name for a sheet."""
    return re.sub(r"[\[\]:*?/\\\x00-\x1f]", "_", text)[:MAX_TITLE].strip("'")


def quoted(sheet: str) -> str:
    return "'" + sheet.replace("'", "''") + "'"
