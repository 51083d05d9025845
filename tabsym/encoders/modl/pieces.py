"""Counts of the pieces of a table add up, where the pieces hold the same columns of the same types."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from tabsym.codes import Contingency, merge_tables
from tabsym.encoders.modl.target import check_target_piece


def check_mergeable(one: Any, other: Any) -> None:
    """A `ValueError` or `TypeError` where the counts of two encoders cannot be added."""
    for encoder in (one, other):
        if not hasattr(encoder, "tables_"):
            raise ValueError("merge needs the counts, which fit does not keep; fit both encoders by partial_fit.")
    if set(one.tables_) != set(other.tables_) or one._classes != other._classes:
        raise ValueError(
            "merge needs encoders of the same columns and kind of target; these have "
            f"{sorted(one.tables_)} and {sorted(other.tables_)}."
        )
    if one._classes:
        check_target_piece(one.classes_, other.classes_)


def add_counts(before: dict[str, Contingency], now: dict[str, Contingency]) -> dict[str, Contingency]:
    """The counts so far and those of a further piece."""
    for name, one in now.items():
        _check_piece(name, before[name], one)
    return {name: merge_tables(before[name], one) for name, one in now.items()}


def _check_piece(column: str, before: Contingency, now: Contingency) -> None:
    """A `TypeError` where a column's counts cannot be added: numbers to categories, or text to other categories."""
    kinds = [_kind_of(one) for one in (before, now)]
    if before.is_numeric != now.is_numeric or (None not in kinds and kinds[0] != kinds[1]):
        kinds = [kind or "missing values only" for kind in kinds]
        raise TypeError(
            f"Column {column!r} held {kinds[0]} before and holds {kinds[1]} now; convert it to one type in every piece."
        )


def _kind_of(table: Contingency) -> str | None:
    """What a column holds; None where there is no value but the missing one."""
    if table.is_missing_only:
        return None
    return str(table.measure) if table.is_numeric else _kind_of_symbols(table.values)


def _kind_of_symbols(symbols: Any) -> str | None:
    """What the categories are; None where there is but the missing one."""
    first = next((symbol for symbol in symbols if symbol is not None), None)
    if first is None:
        return None
    number = isinstance(first, Real) and not isinstance(first, (bool, np.bool_))
    return f"categories of type {'number' if number else type(first).__name__}"
