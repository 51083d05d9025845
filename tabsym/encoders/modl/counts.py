"""Contingency tables of columns and target, all that a partition is learned from; those of two pieces add up."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import encode_column
from tabsym.codes.threads import in_threads
from tabsym.encoders.base import refuse_missing
from tabsym.encoders.modl.target import CodedTarget
from tabsym.stats import CodedValues, Contingency, code_numbers, code_symbols, merge_tables
from tabsym.table import Column, Kind

Floats = NDArray[np.float64]

_FEW_ROWS = 100_000  # below, threads cost more than they save
_LIGHT = 0.1  # weight of a row below which weights were more likely shares than rows


def warn_of_light_weights(weight: Floats | None) -> None:
    """A `UserWarning` where weights add up to far fewer rows than there are: the criterion counts rows."""
    if weight is None:
        return
    n_rows, total = int(np.count_nonzero(weight)), float(weight.sum())
    if total < _LIGHT * n_rows:
        warn(
            f"The weights of {n_rows:,} rows add up to {total:.4g}, and MODL takes that for the number of rows, of "
            "which little can be learned; where weights are shares, multiply them by the number of rows: "
            "sample_weight * len(sample_weight) / sample_weight.sum().",
            UserWarning,
            stacklevel=4,
        )


def code_column(column: Column, *, discretize: bool, allow_missing: bool) -> CodedValues:
    """A column to be counted: a numeric one by value if `discretize`, else as symbols."""
    if discretize and column.kind is Kind.NUMERIC:
        if not allow_missing:
            refuse_missing(column.name, np.isnan(column.values))
        return code_numbers(column.values, column.measure)
    raw = encode_column(column)
    if not allow_missing:
        refuse_missing(column.name, raw.codes < 0)
    return code_symbols(raw.codes, raw.symbols)


def count_columns(
    columns: list[Column],
    code: Callable[[Column], CodedValues],
    target: CodedTarget,
    weight: Floats | None,
    rows: NDArray[np.int64] | None,
    *,
    n_jobs: int | None,
) -> dict[str, Contingency]:
    """The counts of columns, coded by `code`, over some rows, all if None."""

    def count(column: Column) -> Contingency:
        return code(column).count(target.codes, target.values, weight, rows)

    found = in_threads(count, columns, n_jobs if len(target.codes) >= _FEW_ROWS else 1)
    return {column.name: one for column, one in zip(columns, found, strict=True)}


def add_counts(before: dict[str, Contingency], now: dict[str, Contingency]) -> dict[str, Contingency]:
    """The counts so far and those of a further piece."""
    for name, one in now.items():
        _check_piece(name, before[name], one)
    return {name: merge_tables(before[name], one) for name, one in now.items()}


def _check_piece(column: str, before: Contingency, now: Contingency) -> None:
    """A `TypeError` where a column's counts cannot be added: numbers to symbols, or text to other symbols."""
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
    """What the symbols are; None where there is but the missing one."""
    first = next((symbol for symbol in symbols if symbol is not None), None)
    if first is None:
        return None
    number = isinstance(first, Real) and not isinstance(first, (bool, np.bool_))
    return f"symbols of type {'number' if number else type(first).__name__}"
