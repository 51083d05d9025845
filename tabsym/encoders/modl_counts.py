"""Contingency tables of columns and target, all that a partition is fitted on; those of batches add up.

Rows are encoded out of fold by parts that were fitted on the counts of the other folds, in the output columns of all
rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.categories import encode_column
from tabsym.categories.contingency import CodedValues, Contingency, code_categories, code_numbers, merge_tables
from tabsym.categories.lazy import MAX_TARGET_CELLS, LazyRows, LazyTarget, sizes_of
from tabsym.encoders.base import refuse_missing
from tabsym.encoders.lookups import MISSING
from tabsym.encoders.modl_column import MODLColumn, Output, estimates, look_up, parts_of_rows, with_donors
from tabsym.encoders.tiws import TIWSEncoder
from tabsym.frame import (
    Column,
    Kind,
    Table,
    categorical_columns,
    check_classes,
    check_regression_target,
    check_target,
    exact_values,
    holds_classes,
    name_of_target,
)
from tabsym.frame.target import refuse_large_sums
from tabsym.jit import in_threads
from tabsym.modl import Groups, Intervals, Settings, fit_column
from tabsym.tiws.counts import counted_rows

Floats = NDArray[np.float64]

MAX_TARGETS = 65_536
"""Continuous targets with more distinct values are binned into this number of bins, each at its mean."""
_FEW_ROWS = 100_000  # below, threads cost more than they save
LIGHT_FOR_MODL = "MODL", "it finds few intervals and groups"  # see `warn_of_light_weights`


# -- the target: classes or numbers, coded ---------------------------------------------------------


@dataclass(frozen=True)
class CodedTarget:
    """The target of each row: codes (n,) into the distinct `values` (T,), ascending."""

    codes: NDArray[Any]
    values: NDArray[Any]
    is_classes: bool

    def present_in(self, rows: NDArray[np.int64]) -> CodedTarget:
        """With the values of these rows only; the codes of the other rows are then any."""
        used = np.bincount(self.codes[rows], minlength=len(self.values)) > 0
        return CodedTarget((np.cumsum(used) - 1)[self.codes], self.values[used], self.is_classes)


def code_target(y: Any, n_rows: int, *, classes: bool, caller: str) -> CodedTarget:
    """The target of a whole table, or of the first piece of one."""
    if classes:
        target = check_classes(y, n_rows, caller=caller)
        return CodedTarget(target.codes, target.classes, True)
    values = check_regression_target(y, n_rows, caller=caller)
    targets, codes = np.unique(values, return_inverse=True)
    codes = codes.ravel()
    if len(targets) > MAX_TARGETS:  # cells of neighbouring values of nearly equal size, and their means
        sizes = np.bincount(codes)
        cell = (np.cumsum(sizes) - sizes) * MAX_TARGETS // len(values)
        codes = np.cumsum(np.append(0, np.diff(cell) > 0))[codes]
        targets = np.bincount(codes, values) / np.bincount(codes)
    return CodedTarget(codes, targets, False)


def check_target_piece(before: Any, now: Any) -> None:
    """A `TypeError` where the classes of two pieces are numbers in one and text in the other."""
    kinds = ["numbers" if np.asarray(target).dtype.kind in "biuf" else "text" for target in (before, now)]
    if len(before) and kinds[0] != kinds[1]:
        raise TypeError(
            f"The target held {kinds[0]} before and holds {kinds[1]} now (such as {np.asarray(now).tolist()[0]!r}); "
            "convert it to one type in every piece."
        )


# -- counts ----------------------------------------------------------------------------------------


class Counted(NamedTuple):
    """The counts of each column, and whether the target holds classes."""

    tables: dict[str, Contingency]
    is_classes: bool


@dataclass(frozen=True)
class Counting:
    """How tables are counted: the encoder's options of these names, and what it is called in errors."""

    caller: str
    cols: Any
    numeric: str
    target_type: str
    handle_missing: str
    n_jobs: int | None
    few_are_classes: bool  # where the target's type is a guess
    whole: bool = True  # False: tables are pieces of a longer one, in which an empty column may have values yet

    def first_piece(self, table: Table, y: Any, weight: Floats | None) -> Counted:
        """Of a whole table, or the first piece of one: the columns to encode, and what the target holds."""
        values, name = check_target(y, len(table), self.caller), name_of_target(y)
        classes = holds_classes(
            values, self.target_type, self.caller, name, few_are_classes=self.few_are_classes, rows=weight
        )
        target = code_target(y, len(table), classes=classes, caller=self.caller)
        if not classes:
            refuse_large_sums(target.values[target.codes], weight, self.caller)
        columns = self._chosen(table)
        target, rows = _with_weight(target, weight)
        if classes and len(target.values) < 2:
            raise ValueError(
                f"{self.caller} needs at least 2 classes, but rows of weight above 0 have 1 class only "
                f"({target.values.tolist()[0]!r}); choose other weights or more rows."
            )
        return self._count(columns, target, weight, rows)

    def lazily(self, rows: LazyRows) -> Counted:
        """Of a whole lazy frame, counted by its engine."""
        rows.warn_of_light_weights(*LIGHT_FOR_MODL)
        rows, target, classes = self._lazy_target(rows)
        tables = {}
        for column in self._chosen(rows.table):
            if self.handle_missing == "error":
                rows.refuse_missing(column.name)
            numeric = self.numeric == "discretize" and column.kind is Kind.NUMERIC and not column.is_empty
            table = rows.numbers_by_target(column.name, target) if numeric else None
            if table is None:
                groups = rows.groups([nw.col(column.name), target.key])
                coded = self.coded(rows.read(groups, "k0", column.name))
                table = coded.count(target.codes(rows, groups, "k1"), target.values, sizes_of(groups))
            tables[column.name] = table
        return Counted(tables, classes)

    def _lazy_target(self, rows: LazyRows) -> tuple[LazyRows, LazyTarget, bool]:
        """The target as a key of groups, a continuous one of many values in cells; whether it holds classes."""
        name = rows.target
        assert name is not None
        if self.target_type != "classes" and rows.is_number(name) and rows.n_distinct(name) > MAX_TARGET_CELLS:
            rows, cell = rows.in_cells(name, MAX_TARGET_CELLS)
            groups = rows.groups([nw.col(cell)], y=nw.col(name).cast(nw.Float64))
            means = check_regression_target(groups["y"].to_numpy() / sizes_of(groups), len(groups), caller=self.caller)
            order = np.argsort(means)
            codes = np.argsort(order)
            return rows, LazyTarget.of(nw.col(cell), means[order], rows.read(groups, "k0", cell), codes), False
        groups = rows.groups([nw.col(name)])
        column = rows.read(groups, "k0", name)
        series, n = column.series.to_native(), len(groups)
        values = check_target(series, n, self.caller)
        classes = holds_classes(
            values, self.target_type, self.caller, name, few_are_classes=self.few_are_classes, rows=sizes_of(groups)
        )
        target = code_target(series, n, classes=classes, caller=self.caller)
        return rows, LazyTarget.of(nw.col(name), target.values, column, target.codes), classes

    def further_piece(
        self, table: Table, y: Any, weight: Floats | None, before: Counted, classes: NDArray[Any] | None
    ) -> Counted:
        """Of a further piece: the same columns, those that held numbers as numbers; `classes`: those so far."""
        if before.is_classes:  # it may hold one class only, or new ones
            new = pd.unique(check_target(y, len(table), self.caller))
            known = new[:0] if classes is None else classes
            check_target_piece(known, new)
            coded = check_classes(y, len(table), classes=np.union1d(known, new), caller=self.caller)
            target = CodedTarget(coded.codes, coded.classes, True)
        else:
            target = code_target(y, len(table), classes=False, caller=self.caller)
        columns = [table[n].as_numbers() if counts.is_numeric else table[n] for n, counts in before.tables.items()]
        target, rows = _with_weight(target, weight)
        return self._count(columns, target, weight, rows)

    def coded(self, column: Column, rows: NDArray[np.int64] | None = None) -> CodedValues:
        """A column to be counted: a numeric one by value if numbers are discretized, else as categories.

        A column without a number in `rows` (those of weight above 0; None: all) has missing values for its category.
        """
        is_numeric = self.numeric == "discretize" and column.kind is Kind.NUMERIC
        if is_numeric and self.whole:
            is_numeric = not column.is_empty and (rows is None or not np.isnan(column.values[rows]).all())
        if is_numeric:
            if self.handle_missing == "error":
                refuse_missing(column.name, np.isnan(column.values))
            return code_numbers(exact_values(column, always=not self.whole), column.measure)
        raw = encode_column(column)
        if self.handle_missing == "error":
            refuse_missing(column.name, raw.codes < 0)
        return code_categories(raw.codes, raw.categories)

    def _chosen(self, table: Table) -> list[Column]:
        """The columns to encode."""
        if self.cols is None and self.numeric == "discretize":
            return list(table.columns)
        return categorical_columns(table, self.cols, booleans=False, whole=self.whole)

    def _count(
        self, columns: list[Column], target: CodedTarget, weight: Floats | None, rows: NDArray[np.int64] | None
    ) -> Counted:
        """The counts over some rows, all if None."""

        def count(column: Column) -> Contingency:
            return self.coded(column, rows).count(target.codes, target.values, weight, rows)

        counted = in_threads(count, columns, self.n_jobs if len(target.codes) >= _FEW_ROWS else 1)
        tables = {column.name: counts for column, counts in zip(columns, counted, strict=True)}
        return Counted(tables, target.is_classes)


def _with_weight(target: CodedTarget, weight: Floats | None) -> tuple[CodedTarget, NDArray[np.int64] | None]:
    """The target of the rows of weight above 0, and those rows; None where they are all."""
    rows = counted_rows(weight)
    return target if rows is None else target.present_in(rows), rows


# -- batches ---------------------------------------------------------------------------------------


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
    """The counts so far and those of a further piece; a `TypeError` where one column holds text and other things."""
    for name, counts in now.items():
        kinds = [_kind_of(table) for table in (before[name], counts)]
        if before[name].is_numeric != counts.is_numeric or (None not in kinds and kinds[0] != kinds[1]):
            was, is_now = (kind or "missing values only" for kind in kinds)
            raise TypeError(
                f"Column {name!r} held {was} before and holds {is_now} now; convert it to one type in every piece."
            )
    return {name: merge_tables(before[name], counts) for name, counts in now.items()}


def _kind_of(table: Contingency) -> str | None:
    """What a column holds; None where there is no value but the missing one."""
    if table.is_missing_only:
        return None
    if table.is_numeric:
        return str(table.measure)
    first = next((category for category in table.values if category is not None), None)
    if first is None:
        return None
    number = isinstance(first, Real) and not isinstance(first, (bool, np.bool_))
    return f"categories of type {'number' if number else type(first).__name__}"


# -- out of fold -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fold:
    """Rows for fitting, those of weight above 0; rows that are encoded; the target with the values known.

    `donors`: with ``handle_unknown="similar"``, fitted on the former, where the latter have categories that these lack.
    """

    known: NDArray[np.int64]
    held_out: NDArray[np.int64]
    target: CodedTarget
    donors: TIWSEncoder | None = None


@dataclass(frozen=True)
class OutOfFold:
    """How rows are encoded out of fold.

    Attributes
    ----------
    counting, how
        As all rows were counted and are encoded.
    settings : dict of str -> Settings
        As each column was partitioned.
    classes : (J,) or None
        Those of all rows; None where the target holds numbers.
    proves : bool
        Whether proofs were requested; by default a classification's folds are searched without, in half the time.
    """

    counting: Counting
    settings: dict[str, Settings]
    how: Output
    classes: NDArray[Any] | None
    proves: bool

    def columns(
        self, table: Table, states: list[MODLColumn], weight: Floats | None, folds: list[Fold]
    ) -> dict[str, Floats]:
        """The output columns (n,) by name."""

        def encode(state: MODLColumn) -> Floats:
            return self._column(table, state, weight, folds)

        encoded = in_threads(encode, states, self.counting.n_jobs)
        pairs = zip(states, encoded, strict=True)
        return {new: column for state, values in pairs for new, column in zip(state.names, values.T, strict=True)}

    def _column(self, table: Table, state: MODLColumn, weight: Floats | None, folds: list[Fold]) -> Floats:
        """An encoded column (n, outputs): coded once, its counts and parts made anew for each fold."""
        settings, is_classes = self.settings[state.name], self.classes is not None
        if is_classes and not self.proves:  # a regression's parts would not be those of a fit
            settings = replace(settings, prove=False)
        how = self.how
        if how.handle_unknown in ("error", "similar"):  # fit knows all categories: what a fold lacks is no error
            how = replace(how, handle_unknown="value")
        coded = self.counting.coded(table[state.name])
        out = look_up(self._prior(state), self._no_parts(table[state.name], state))
        for fold in folds:
            counts = coded.count(fold.target.codes, fold.target.values, weight, fold.known)
            fitted = fit_column(counts, settings, classes=is_classes)
            held_out = Table((table[state.name],), len(table), native=None, named=True).taken(fold.held_out)
            states = {state.name: MODLColumn.of(state.name, fitted, [state.name], None)}
            parts = parts_of_rows(held_out, states, how)
            if fold.donors is not None and state.vocabulary is not None:
                parts = with_donors(fold.donors, table.taken(fold.held_out), states, parts)
            out[fold.held_out] = look_up(self._values(state, fitted, counts), parts[state.name])
        return out

    def _prior(self, state: MODLColumn) -> Floats:
        """What one part of all rows would be encoded as (1, outputs): rows that no fold holds out."""
        target = state.fitted.target
        if self.how.output == "mean":
            return np.atleast_2d(np.average(np.asarray(target.means), weights=target.counts.sum(axis=1)))
        return estimates(target.counts.sum(axis=0, keepdims=True), self.how.output)

    def _no_parts(self, column: Column, state: MODLColumn) -> NDArray[np.int64]:
        """The one part there is (n,), MISSING where that is to be NaN."""
        parts = np.zeros(len(column.series), dtype=np.int64)
        if self.how.handle_missing == "return_nan":
            number = isinstance(state.fitted, Intervals)
            parts[np.isnan(column.values) if number else encode_column(column).codes < 0] = MISSING
        return parts

    def _values(self, state: MODLColumn, fitted: Intervals | Groups, table: Contingency) -> Floats:
        """What a fold's parts (I,) are encoded as, in the output columns of all rows (I, outputs)."""
        if self.how.output == "mean":
            if self.classes is not None and len(table.targets) == 1:  # a fold of one class
                return np.full((fitted.partition.n_parts, 1), float(table.targets[0] == self.classes[-1]))
            return np.asarray(fitted.target.means)[:, None]
        target = state.fitted.target
        if target.bounds is None:
            assert self.classes is not None
            position = np.searchsorted(self.classes, table.targets)
        else:
            position = np.searchsorted(target.bounds, table.targets, side="left")
        shape = fitted.partition.n_parts, len(target.names)
        return estimates(table.summed(fitted.partition.labels, position, shape), self.how.output)
