"""Contingency tables of columns and target, all that a partition is learned from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import CodedValues, Contingency, code_numbers, code_symbols, encode_column
from tabsym.codes.threads import in_threads
from tabsym.encoders.base import refuse_missing
from tabsym.encoders.modl.parts import as_numbers
from tabsym.encoders.modl.target import CodedTarget, code_further_classes, code_target, is_classification
from tabsym.table import Column, Kind, Table, exact_values, symbolic_columns
from tabsym.warn import warn_user

Floats = NDArray[np.float64]

_FEW_ROWS = 100_000  # below, threads cost more than they save
_LIGHT = 0.1  # weight of a row below which weights were more likely shares than rows


class Counted(NamedTuple):
    """The counts of each column, and whether the target holds classes."""

    tables: dict[str, Contingency]
    is_classes: bool


@dataclass(frozen=True)
class Counting:
    """How tables are counted: the encoder's options of these names, and what it is called in errors."""

    who: str
    cols: Any
    numeric: str
    target_type: str
    handle_missing: str
    n_jobs: int | None
    whole: bool = True  # False: tables are pieces of a longer one, in which an empty column may have values yet

    def first_piece(self, table: Table, y: Any, weight: Floats | None) -> Counted:
        """Of a whole table, or the first piece of one: the columns to encode, and what the target holds."""
        classes = is_classification(y, len(table), self.target_type, self.who)
        target = code_target(y, len(table), classes=classes, who=self.who)
        columns = self._chosen(table)
        target, rows = _with_weight(target, weight)
        if classes and len(target.values) < 2:
            raise ValueError(
                f"{self.who} needs at least 2 classes, but rows of weight above 0 have 1 class only "
                f"({target.values.tolist()[0]!r}); choose other weights or more rows."
            )
        return self._count(columns, target, weight, rows)

    def further_piece(
        self, table: Table, y: Any, weight: Floats | None, before: Counted, classes: NDArray[Any] | None
    ) -> Counted:
        """Of a further piece: the same columns, those that held numbers as numbers; `classes`: those so far."""
        if before.is_classes:
            target = code_further_classes(y, len(table), classes, self.who)
        else:
            target = code_target(y, len(table), classes=False, who=self.who)
        columns = [as_numbers(table[n]) if one.is_numeric else table[n] for n, one in before.tables.items()]
        target, rows = _with_weight(target, weight)
        return self._count(columns, target, weight, rows)

    def coded(self, column: Column) -> CodedValues:
        """A column to be counted: a numeric one by value if numbers are discretized, else as categories."""
        if self.numeric == "discretize" and column.kind is Kind.NUMERIC and not (self.whole and column.is_empty):
            if self.handle_missing == "error":
                refuse_missing(column.name, np.isnan(column.values))
            return code_numbers(exact_values(column, always=not self.whole), column.measure)
        raw = encode_column(column)
        if self.handle_missing == "error":
            refuse_missing(column.name, raw.codes < 0)
        return code_symbols(raw.codes, raw.symbols)

    def _chosen(self, table: Table) -> list[Column]:
        """The columns to encode."""
        if self.cols is None and self.numeric == "discretize":
            return list(table.columns)
        return symbolic_columns(table, self.cols, booleans=False, whole=self.whole)

    def _count(
        self, columns: list[Column], target: CodedTarget, weight: Floats | None, rows: NDArray[np.int64] | None
    ) -> Counted:
        """The counts over some rows, all if None."""

        def count(column: Column) -> Contingency:
            return self.coded(column).count(target.codes, target.values, weight, rows)

        found = in_threads(count, columns, self.n_jobs if len(target.codes) >= _FEW_ROWS else 1)
        tables = {column.name: one for column, one in zip(columns, found, strict=True)}
        return Counted(tables, target.is_classes)


def _with_weight(target: CodedTarget, weight: Floats | None) -> tuple[CodedTarget, NDArray[np.int64] | None]:
    """The target of the rows of weight above 0, and those rows; None where they are all."""
    if weight is None or (weight > 0).all():
        return target, None
    rows = np.flatnonzero(weight > 0)
    return target.present_in(rows), rows


def warn_of_light_weights(weight: Floats | None) -> None:
    """A `UserWarning` where weights add up to far fewer rows than there are: the criterion counts rows."""
    if weight is None:
        return
    n_rows, total = int(np.count_nonzero(weight)), float(weight.sum())
    if total < _LIGHT * n_rows:
        warn_user(
            f"The weights of {n_rows:,} rows add up to {total:.4g}, which MODL takes for the number of "
            "rows, so that it finds few intervals and groups; if weights are proportions, multiply them by the number "
            "of rows: sample_weight * len(sample_weight) / sample_weight.sum().",
        )
