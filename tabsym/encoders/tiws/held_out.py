"""Out-of-fold encoding: known categories by the other folds, or as if unknown by the other categories."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import UNSEEN
from tabsym.encoders.tiws.rows import RowEncoding
from tabsym.table import Table

Floats = NDArray[np.float64]

MOST_ALONE = 20
"""Of more categories, several are left out together: left out alone, the mean of the others reveals its own."""
SYMBOL_FOLDS = 10
FEWEST_SYMBOLS = 3
"""Columns of fewer have nothing to say of a category that is left out."""


@dataclass(frozen=True)
class FittedFold:
    """The rows of a table that are held out, as a table of their own, and what the training rows taught."""

    rows: NDArray[np.int64]
    table: Table
    encoding: RowEncoding

    def as_unseen(self, name: str, random_state: Any) -> Floats:
        """Estimates (m, q) of the rows: of categories that training has, by its other categories."""
        fitted = self.encoding.columns[name].fitted
        codes, raw = self.encoding.codes(self.table, name)
        groups = folds_of_symbols(fitted.sums.rows, random_state)
        values = np.append(fitted.held_out(groups), np.zeros((1, fitted.estimates.shape[1])), axis=0)[codes]
        if (codes == UNSEEN).any():
            found = self.encoding.unseen(self.table, name)
            values[found.rows] = fitted.unseen_estimates(found.unseen)[found.which]
        if self.encoding.handle_missing == "return_nan":
            values[raw.codes < 0] = np.nan
        return values


def rows_of(table: Table, rows: NDArray[Any]) -> Table:
    """Some rows of a table, whose columns keep their kinds."""
    columns = tuple(replace(column, series=column.series[rows]) for column in table.columns)
    return Table(columns, n_rows=len(rows), native=None, named=table.named)


def folds_of_symbols(rows: Floats, random_state: Any) -> NDArray[np.int64]:
    """The group (l,) that each category is left out with: alone where there are few."""
    if len(rows) <= MOST_ALONE:
        return np.arange(len(rows))
    rng = np.random.RandomState(random_state) if not isinstance(random_state, np.random.RandomState) else random_state
    return rng.permutation(len(rows)) % SYMBOL_FOLDS
