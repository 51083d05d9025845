"""Encoders that learn from the target: their own training rows are encoded by what other folds taught."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.encoders.base import ColumnEncoder
from tabsym.encoders.folds import Split, check_each_row_once, split_rows
from tabsym.table import Table, check_weights, read_table

Floats = NDArray[np.float64]


class OutOfFoldEncoder(ColumnEncoder):
    """Base of the encoders with the options `cv` and `random_state`; not public."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    # -- for the encoders to fill in -------------------------------------------

    def _shows_target(self) -> bool:
        """Whether the encoding of a row tells its target, so that a model trained on it would be misled."""
        return True

    def _out_of_fold(self, table: Table, y: Any, weight: Floats | None) -> dict[str, Floats]:
        """The encoded columns (n_rows,) by name, each row by what was learned without it."""
        raise NotImplementedError

    # -- scikit-learn's method ----------------------------------------------------

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and encode; where the encoding estimates the target, each row by what the other folds taught (see `cv`).

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        dataframe, ndarray or csr_array of shape (n_rows, n_columns_out)
        """
        self.fit(X, y, sample_weight)
        if not self._shows_target() or self.cv is None or not self.columns_:
            return self.transform(X)
        table = read_table(X, who=type(self).__name__)
        encoded = self._out_of_fold(table, y, check_weights(sample_weight, len(table)))
        return self._assembled(
            table,
            {name: {new: encoded[new] for new in self._kept_names(state)} for name, state in self.columns_.items()},
        )

    # -- pieces ---------------------------------------------------------------------

    def _folds(self, target: NDArray[Any], *, classes: bool) -> list[Split]:
        """The (training, held-out) rows of each fold; `target` (n_rows,) holds codes of classes, or numbers."""
        rows = np.zeros((len(target), 1))
        splits = split_rows(self.cv, rows, target, classes=classes, random_state=self.random_state)
        return check_each_row_once(splits, len(target))

    def _unfilled(self, n_rows: int) -> dict[str, Floats]:
        """The output columns (n_rows,) by name, before any fold."""
        return {name: np.zeros(n_rows) for state in self.columns_.values() for name in self._column_names(state)}
