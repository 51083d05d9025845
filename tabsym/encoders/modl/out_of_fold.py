"""Rows encoded out of fold: by parts that were learned on the other folds, in the output columns of all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.categories import Contingency, encode_column
from tabsym.categories.threads import in_threads
from tabsym.encoders.lookups import MISSING
from tabsym.encoders.modl.column import Handling, MODLColumn, estimates, look_up, parts_of_rows, plain_column
from tabsym.encoders.modl.counts import CodedTarget, Counting
from tabsym.encoders.out_of_fold import Split
from tabsym.frame import Column, Table
from tabsym.modl import Groups, Intervals, Settings, fit_column

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Fold:
    """Rows that are learned from, those of weight above 0; rows that are encoded; the target with the values known."""

    known: NDArray[np.int64]
    held_out: NDArray[np.int64]
    target: CodedTarget


def folds_of(splits: Sequence[Split], target: CodedTarget, weight: Floats | None) -> list[Fold]:
    """The folds of these (training, held-out) rows."""
    folds = []
    for train, test in splits:
        known = train if weight is None else train[weight[train] > 0]
        folds.append(Fold(known, test, target.present_in(known)))
    return folds


@dataclass(frozen=True)
class OutOfFold:
    """How rows are encoded out of fold.

    Attributes
    ----------
    counting, output, handling
        As all rows were counted and are encoded.
    settings : dict of str -> Settings
        As each column was partitioned.
    classes : (J,) or None
        Those of all rows; None where the target holds numbers.
    """

    counting: Counting
    settings: dict[str, Settings]
    output: str
    handling: Handling
    classes: NDArray[Any] | None

    def columns(
        self, table: Table, states: list[MODLColumn], weight: Floats | None, folds: list[Fold]
    ) -> dict[str, Floats]:
        """The output columns (n,) by name."""

        def encode(state: MODLColumn) -> Floats:
            return self._column(table, state, weight, folds)

        found = in_threads(encode, states, self.counting.n_jobs)
        pairs = zip(states, found, strict=True)
        return {new: column for state, values in pairs for new, column in zip(state.names, values.T, strict=True)}

    def _column(self, table: Table, state: MODLColumn, weight: Floats | None, folds: list[Fold]) -> Floats:
        """An encoded column (n, outputs): coded once, its counts and parts made anew for each fold."""
        settings, is_classes = self.settings[state.name], self.classes is not None
        if is_classes:  # nobody sees the folds' certificates; a regression's parts would not be those of a fit
            settings = replace(settings, prove=False)
        handling = self.handling.of_folds()
        coded = self.counting.coded(table[state.name])
        out = look_up(self._prior(state), self._no_parts(table[state.name], state))
        for fold in folds:
            counts = coded.count(fold.target.codes, fold.target.values, weight, fold.known)
            fitted = fit_column(counts, settings, classes=is_classes)
            held_out = _rows_of(table[state.name], fold.held_out)
            parts = parts_of_rows(held_out, {state.name: plain_column(state.name, fitted)}, handling)[state.name]
            out[fold.held_out] = look_up(self._values(state, fitted, counts), parts)
        return out

    def _prior(self, state: MODLColumn) -> Floats:
        """What one part of all rows would be encoded as (1, outputs): rows that no fold holds out."""
        target = state.fitted.target
        if self.output == "mean":
            return np.atleast_2d(np.average(np.asarray(target.means), weights=target.counts.sum(axis=1)))
        return estimates(target.counts.sum(axis=0, keepdims=True), self.output)

    def _no_parts(self, column: Column, state: MODLColumn) -> NDArray[np.int64]:
        """The one part there is (n,), MISSING where that is to be NaN."""
        parts = np.zeros(len(column.series), dtype=np.int64)
        if self.handling.handle_missing == "return_nan":
            number = isinstance(state.fitted, Intervals)
            parts[np.isnan(column.values) if number else encode_column(column).codes < 0] = MISSING
        return parts

    def _values(self, state: MODLColumn, fitted: Intervals | Groups, table: Contingency) -> Floats:
        """What a fold's parts (I,) are encoded as, in the output columns of all rows (I, outputs)."""
        if self.output == "mean":
            if self.classes is not None and len(table.targets) == 1:  # a fold of one class
                return np.full((fitted.partition.n_parts, 1), float(table.targets[0] == self.classes[-1]))
            return np.asarray(fitted.target.means)[:, None]
        target = state.fitted.target
        if target.bounds is None:
            assert self.classes is not None
            place = np.searchsorted(self.classes, table.targets)
        else:
            place = np.searchsorted(target.bounds, table.targets, side="left")
        shape = fitted.partition.n_parts, len(target.names)
        return estimates(table.summed(fitted.partition.labels, place, shape), self.output)


def _rows_of(column: Column, rows: NDArray[np.int64]) -> Table:
    """Some rows of one column, whose kind stays."""
    return Table((replace(column, series=column.series[rows]),), n_rows=len(rows), native=None, named=True)
