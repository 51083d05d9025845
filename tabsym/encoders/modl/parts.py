"""Rows by their parts: the interval or group of each value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import UNSEEN, RawCodes, encode_columns
from tabsym.encoders.base import MISSING, refuse_missing
from tabsym.encoders.modl.column import MODLColumn
from tabsym.modl import Groups, Intervals
from tabsym.table import Column, Kind, Table, exact_values

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Handling:
    """How missing values and unknown categories are encoded: the encoder's options of these names."""

    handle_missing: str
    handle_unknown: str

    def of_folds(self) -> Handling:
        """For held-out rows, whose categories are all known to `fit`: those that the other folds lack are no error."""
        unknown = "value" if self.handle_unknown in ("error", "similar") else self.handle_unknown
        return replace(self, handle_unknown=unknown)


def parts_of_rows(table: Table, states: dict[str, MODLColumn], handling: Handling) -> dict[str, NDArray[Any]]:
    """The part of each row (n,), by column; UNSEEN and MISSING where they are to be NaN."""
    symbolic = [table[name] for name, state in states.items() if state.alphabet is not None]
    raws = dict(zip([column.name for column in symbolic], encode_columns(symbolic), strict=True))
    return {
        name: _group_of(state, raws[name], handling)
        if name in raws
        else _interval_of(state, table[name], handling.handle_missing)
        for name, state in states.items()
    }


def _interval_of(state: MODLColumn, column: Column, handle_missing: str) -> NDArray[np.int64]:
    assert isinstance(state.fitted, Intervals)
    column = as_numbers(column)
    missing = np.isnan(column.values)
    column.check_measure(state.fitted.measure)
    parts = state.fitted.parts(column.values if state.fitted.bound_rests is None else exact_values(column, always=True))
    if handle_missing == "error":
        refuse_missing(column.name, missing)
    return np.where(missing, MISSING, parts) if handle_missing == "return_nan" else parts


def _group_of(state: MODLColumn, raw: RawCodes, handling: Handling) -> NDArray[np.int64]:
    assert isinstance(state.fitted, Groups) and state.alphabet is not None and state.part_of is not None
    missing = raw.codes < 0
    if handling.handle_missing == "error":
        refuse_missing(state.name, missing)
    codes = state.alphabet.transform(raw)
    unseen = (codes == UNSEEN) & ~missing
    if unseen.any() and handling.handle_unknown == "error":
        row = int(np.argmax(unseen))
        raise ValueError(
            f"Column {state.name!r} holds {raw.symbols[raw.codes[row]]!r} (row {row}), which is not in the "
            "training data; fit on rows that have it, or set handle_unknown to something other than 'error'."
        )
    default = state.fitted.default
    if handling.handle_unknown == "missing" and state.alphabet.has_missing:
        default = int(state.part_of[state.alphabet.missing_code])
    parts = np.append(state.part_of, default)[codes]  # UNSEEN, -1, reads the last
    if handling.handle_unknown == "return_nan":
        parts = np.where(unseen, UNSEEN, parts)
    return np.where(missing, MISSING, parts) if handling.handle_missing == "return_nan" else parts


def as_numbers(column: Column) -> Column:
    """A column that held numbers in fit: where all its values are missing now, its type may not say so."""
    if column.kind is Kind.SYMBOLIC and column.series.is_null().all():
        return replace(column, kind=Kind.NUMERIC)
    return column
