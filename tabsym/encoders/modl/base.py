"""How a MODL encoder works: a piece of a table is counted, its columns are partitioned, rows encoded by their parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tabsym.codes.threads import in_threads
from tabsym.encoders.base import numeric_matrix
from tabsym.encoders.modl.column import MODLColumn, encoded_column, estimates, plain_column
from tabsym.encoders.modl.counts import code_column, count_columns, warn_of_light_weights
from tabsym.encoders.modl.options import check_modl_options, settings_of
from tabsym.encoders.modl.parts import (
    Handling,
    as_numbers,
    look_up,
    parts_of_rows,
    sparse_onehot,
)
from tabsym.encoders.modl.report import PartitionReport
from tabsym.encoders.modl.show import print_heads
from tabsym.encoders.modl.target import (
    CodedTarget,
    code_further_classes,
    code_target,
    is_classification,
)
from tabsym.encoders.out_of_fold import OutOfFoldEncoder
from tabsym.modl import Groups, Intervals, fit_column
from tabsym.stats import CodedValues, Contingency
from tabsym.table import (
    Column,
    Labels,
    Table,
    check_same_rows,
    check_weights,
    match_features,
    read_table,
    remember_features,
    symbolic_columns,
    type_of,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Fold:
    """Rows that are learned from, those of weight above 0; rows that are encoded; the target with the values known."""

    known: NDArray[np.int64]
    held_out: NDArray[np.int64]
    target: CodedTarget


class MODLBase(PartitionReport, OutOfFoldEncoder):
    """Base of `MODLEncoder`, which has the options and what users call; not public."""

    def _count(
        self, X: Any, y: Any, sample_weight: Any, *, first: bool = True
    ) -> tuple[Table, dict[str, Contingency], bool]:
        """Check everything; the table, each column's counts, and whether the target holds classes."""
        who = type(self).__name__
        self._check_words()
        check_modl_options(self)
        check_same_rows(X, y=y, sample_weight=sample_weight)
        table = read_table(X, who=who)
        if not first:
            table = match_features(self, table)
        weight = check_weights(sample_weight, len(table))
        warn_of_light_weights(weight)
        target = self._target(y, len(table), first)
        columns = self._columns_of(table) if first else self._columns_as_before(table)
        rows = None if weight is None or (weight > 0).all() else np.flatnonzero(weight > 0)
        if rows is not None:
            target = target.present_in(rows)
            if target.is_classes and first and len(target.values) < 2:
                raise ValueError(
                    f"{who} needs at least 2 classes, but rows of weight above 0 have 1 class only "
                    f"({target.values.tolist()[0]!r}); choose other weights or more rows."
                )
        return table, self._tables(columns, target, weight, rows), target.is_classes

    def _target(self, y: Any, n_rows: int, first: bool) -> CodedTarget:
        who = type(self).__name__
        classes = is_classification(y, n_rows, self.target_type, who) if first else self._classes
        if classes and not first:
            return code_further_classes(y, n_rows, getattr(self, "classes_", None), who)
        return code_target(y, n_rows, classes=classes, who=who)

    def _columns_of(self, table: Table) -> list[Column]:
        """The columns to encode."""
        if self.cols is None and self.numeric == "discretize":
            return list(table.columns)
        return symbolic_columns(table, self.cols, booleans=False)

    def _columns_as_before(self, table: Table) -> list[Column]:
        """The columns of a further piece, those that held numbers as numbers."""
        return [as_numbers(table[n]) if state.alphabet is None else table[n] for n, state in self.columns_.items()]

    def _tables(
        self, columns: list[Column], target: CodedTarget, weight: Floats | None, rows: NDArray[np.int64] | None
    ) -> dict[str, Contingency]:
        """The counts of columns over some rows, all if None."""
        return count_columns(columns, self._coded, target, weight, rows, n_jobs=self.n_jobs)

    def _coded(self, column: Column) -> CodedValues:
        return code_column(
            column, discretize=self.numeric == "discretize", allow_missing=self.handle_missing != "error"
        )

    def _partition(self, tables: dict[str, Contingency], classes: bool) -> dict[str, Intervals | Groups]:
        settings = settings_of(self, len(tables))

        def learn(table: Contingency) -> Intervals | Groups:
            return fit_column(table, settings, classes=classes)

        return dict(zip(tables, in_threads(learn, list(tables.values()), self.n_jobs), strict=True))

    def _learn(
        self, table: Table | None, tables: dict[str, Contingency], classes: bool, *, remember: bool = True
    ) -> None:
        """Partition every column of the counts; nothing of self changes before all is done."""
        if self.monotonic and classes and any(len(one.targets) > 2 for one in tables.values()):
            raise ValueError("monotonic=True needs two classes or a continuous target; set it to False.")
        fitted = self._partition(tables, classes)
        states = [encoded_column(name, one, self.output) for name, one in fitted.items()]
        if self.verbose:
            print_heads(fitted)
        if table is not None and remember:
            remember_features(self, table)
            self._names_in = table.names
            self._types_in = {column.name: type_of(column) for column in table.columns}
        self.columns_ = {state.name: state for state in states}
        self._classes = classes
        if classes and states:
            self.classes_ = next(iter(tables.values())).targets
        constant = [name for state in states for name in state.constant_names()]
        self.invariant_cols_ = constant if self.drop_invariant else []

    def _codes(self, table: Table) -> dict[str, NDArray[Any]]:
        """The part of each row; UNSEEN and MISSING where they are to be NaN."""
        return parts_of_rows(table, self.columns_, self._handling())

    def _handling(self) -> Handling:
        return Handling(self.handle_missing, self.handle_unknown, self.unseen)

    def _column_names(self, state: MODLColumn) -> list[str]:
        return state.names

    def _encode_column(self, state: MODLColumn, codes: NDArray[Any]) -> list[Any]:
        if state.values is None:
            return [self._as_categories(codes, state)]
        values = look_up(state.values, codes)
        return list((values.astype(np.int8) if self.output == "onehot" and not self._can_be_nan() else values).T)

    def _as_categories(self, codes: NDArray[Any], state: MODLColumn) -> Any:
        """Labels in frames; in arrays, which have no categories, the numbers of the parts."""
        if self.return_df and hasattr(self, "feature_names_in_"):
            return Labels(codes, state.fitted.labels, isinstance(state.fitted, Intervals))
        return np.where(codes < 0, np.nan, codes) if self._can_be_nan() else codes

    def _can_be_nan(self) -> bool:
        """Whether some row can be encoded as NaN; types of output go by this, so that no batch changes them."""
        return "return_nan" in (self.handle_missing, self.handle_unknown)

    def _encode_table(self, table: Table) -> Any:
        if not self.sparse_output:
            return super()._encode_table(table)
        untouched = [name for name in table.names if name not in self.columns_]
        blocks = numeric_matrix(table, untouched, type(self).__name__)
        for name, codes in self._codes(table).items():
            state = self.columns_[name]
            blocks[name] = sparse_onehot(state, codes, set(self._kept_names(state)))
        return sparse.hstack([blocks[name] for name in table.names], format="csr")

    def _shows_target(self) -> bool:
        return self.output in ("probability", "logodds", "mean")

    def _out_of_fold(self, table: Table, y: Any, weight: Floats | None, groups: Any) -> dict[str, Floats]:
        """The encoded columns (n_rows,) by name, each row by parts that were learned without it."""
        target = code_target(y, len(table), classes=self._classes, who=type(self).__name__)
        values = target.codes if self._classes else target.values[target.codes]
        folds = []
        for train, test in self._folds(values, groups, classes=self._classes):
            known = train if weight is None else train[weight[train] > 0]
            folds.append(Fold(known, test, target.present_in(known)))

        def encode(state: MODLColumn) -> Floats:
            return self._column_out_of_fold(table, state, weight, folds)

        states = list(self.columns_.values())
        found = in_threads(encode, states, self.n_jobs)
        pairs = zip(states, found, strict=True)
        return {new: column for state, values in pairs for new, column in zip(state.names, values.T, strict=True)}

    def _column_out_of_fold(self, table: Table, state: MODLColumn, weight: Floats | None, folds: list[Fold]) -> Floats:
        """An encoded column (n_rows, outputs): coded once, its counts and parts made anew for each fold."""
        settings = settings_of(self, len(self.columns_))
        if self._classes:  # nobody sees the folds' certificates; a regression's parts would not be those of a fit
            settings = replace(settings, prove=False)
        handling = self._handling().of_folds()
        coded = self._coded(table[state.name])
        out = np.zeros((len(table), len(state.names)))
        for fold in folds:
            counts = coded.count(fold.target.codes, fold.target.values, weight, fold.known)
            fitted = fit_column(counts, settings, classes=self._classes)
            held_out = _rows_of(table[state.name], fold.held_out)
            parts = parts_of_rows(held_out, {state.name: plain_column(state.name, fitted)}, handling)[state.name]
            out[fold.held_out] = look_up(self._fold_values(state.name, fitted, counts), parts)
        return out

    def _fold_values(self, name: str, fitted: Intervals | Groups, table: Contingency) -> Floats:
        """What a fold's parts (I,) are encoded as, in the output columns of all rows (I, outputs)."""
        if self.output == "mean":
            if self._classes and len(table.targets) == 1:  # a fold of one class
                return np.full((fitted.partition.n_parts, 1), float(table.targets[0] == self.classes_[-1]))
            return np.asarray(fitted.target.means)[:, None]
        target = self.columns_[name].fitted.target
        if target.bounds is None:
            place = np.searchsorted(self.classes_, table.targets)
        else:
            place = np.searchsorted(target.bounds, table.targets, side="left")
        shape = fitted.partition.n_parts, len(target.names)
        return estimates(table.summed(fitted.partition.labels, place, shape), self.output)


def _rows_of(column: Column, rows: NDArray[np.int64]) -> Table:
    """Some rows of one column, whose kind stays."""
    return Table((replace(column, series=column.series[rows]),), n_rows=len(rows), native=None, named=True)
