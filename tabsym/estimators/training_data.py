"""What a call to fit gives, checked and brought into the units of training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import count_codes
from tabsym.estimators.wide_options import check_formula, check_offset
from tabsym.table import Table, check_weights, read_table
from tabsym.wide.formula import parse
from tabsym.wide.kernels import sum_weights
from tabsym.wide.layout import Layout
from tabsym.wide.model import WideModel
from tabsym.wide.program import Rows

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Training:
    """What a call to fit gives, checked: table, target, and weights and offset where there are any."""

    table: Table
    y: Floats
    weight: Floats | None
    offset: Floats | None

    def weighted_rows(self) -> Training:
        """Without the rows of weight zero, which count as absent: their symbols are unseen."""
        if self.weight is None or self.weight.all():
            return self
        keep = self.weight > 0
        rows = np.flatnonzero(keep)
        columns = tuple(replace(column, series=column.series[rows]) for column in self.table.columns)
        table = replace(self.table, columns=columns, n_rows=len(rows))
        offset = None if self.offset is None else self.offset[keep]
        return Training(table, self.y[keep], self.weight[keep], offset)


def read_training(estimator: Any, X: Any, y: Any, sample_weight: Any, offset: Any) -> tuple[Table, Any, Any, Any]:
    """The checked table, its target column where `y` does not give one, weights and offset."""
    who = type(estimator).__name__
    table = read_table(X, who=who)
    formula = None if estimator.formula is None else parse(check_formula(estimator.formula))
    if isinstance(y, str):
        raise ValueError(f"y={y!r} names a column, which is for streams; pass the column itself, table[{y!r}].")
    if y is None and formula is not None and formula.target is not None:
        if formula.target not in table.names:
            raise ValueError(f"The formula's target {formula.target!r} is not in the table; add it, or pass y.")
        y = table[formula.target].series
    table = estimator._used_columns(table)
    weight = check_weights(sample_weight, len(table))
    return table, y, weight, None if offset is None else check_offset(offset, len(table))


def count_rows_of_entries(codes: NDArray[np.int32], layout: Layout) -> NDArray[np.int64]:
    """Rows that select each entry (entries,)."""
    if layout.compiled.program.shared:  # a row can select an entry twice
        rows = np.zeros(layout.n_entries)
        sum_weights(codes, np.ones(len(codes)), rows)
        return rows.astype(np.int64)
    return count_codes(codes, layout.n_entries)


def find_units(y: Floats, weight: Floats | None, *, centre: bool) -> tuple[float, float]:
    """Mean and scale of the target in training; without a scalar to take the mean up, only a scale."""
    mean = float(np.average(y, weights=weight)) if centre else 0.0
    spread = float(np.sqrt(np.average((y - mean) ** 2, weights=weight)))
    return mean, spread if spread > 1e-12 * max(1.0, abs(mean)) else 1.0


def in_units(y: Floats, mean: float, scale: float) -> Floats:
    """The target in the units of training; classes, which have none, are not copied."""
    return y if (mean, scale) == (0.0, 1.0) else (y - mean) / scale


def add_offset(fixed: Floats, offset: Floats | None, order: Any, scale: float) -> Floats:
    """The fixed part of the formula and the user's offset, in the units of training; `fixed` is in order already."""
    if offset is None:
        return fixed
    offset = (offset if order is None else offset[order]) / scale
    return offset if not len(fixed) else fixed + offset


def lay_out(model: WideModel, codes: Any | None, training: Training, order: Any, n_jobs: int | None) -> Rows:
    """A coded table as the kernels read it, rows in `order`."""
    rows = model.layout.stack(codes, training.table, order, model.target_scale, n_jobs)
    target = in_units(training.y, model.target_mean, model.target_scale)
    weight = np.empty(0) if training.weight is None else training.weight / training.weight.mean()
    offset = add_offset(rows.offset, training.offset, order, model.target_scale)
    if order is not None:
        target = target[order]
        weight = weight[order] if len(weight) else weight
    return rows._replace(y=target, weight=weight, offset=offset)
