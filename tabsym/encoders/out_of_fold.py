"""The base of tabsym's own supervised encoders: their training rows are encoded out of fold (see `folds`).

`CrossFit`, in `crossfit`, does the same for any other encoder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.encoders.base import ColumnEncoder
from tabsym.encoders.folds import Split, refuse_lost_groups, split_rows, warn_of_prior, warn_of_small_folds
from tabsym.frame import Table, check_same_rows, check_weights, split_columns

Floats = NDArray[np.float64]
FittedRows = tuple[NDArray[Any], Any]
"""Rows that a fold holds out, and what was learned from its training rows."""
FoldFitter = tuple[NDArray[Any], bool, Callable[[NDArray[Any], NDArray[Any]], Any]]
"""What folds are stratified by (n_rows,), whether it is codes of classes, and (training, held-out rows) -> fitted."""


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

    def _fold_fitter(self, table: Table, y: Any, weight: Floats | None) -> FoldFitter:
        """How a fold of the rows of fit is fitted."""
        raise NotImplementedError

    def _priors(self, table: Table) -> dict[str, NDArray[Any]]:
        """The output columns (n_rows,) by name, of rows that no fold holds out."""
        raise NotImplementedError

    def _fold_columns(self, fold: Any) -> Mapping[str, NDArray[Any]]:
        """The output columns (m,) of a fold's held-out rows, by name, from what was fitted."""
        return fold

    # -- scikit-learn's methods ---------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Any:
        """Learn from all rows.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,), or the name of its column in X
        sample_weight : array-like of shape (n_rows,), optional
            Rows of weight 0 count as absent.
        groups : array-like of shape (n_rows,), optional
            Taken for `fit_transform`'s sake (``set_fit_request(groups=True)``); all rows are used here.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            In a sentence that names the column; also where the indexes of pandas contradict each other.
        """
        check_same_rows(X, groups=groups)
        return super().fit(X, y, sample_weight)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Any:
        """Fit, and encode; where the encoding estimates the target, each row by the other folds (see `cv`).

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
            A lazy frame is collected where folds are needed.
        y : array-like of shape (n_rows,), or the name of a column of X
        sample_weight : array-like of shape (n_rows,), or the name of a column of X, optional
        groups : array-like of shape (n_rows,), optional
            For a `cv` that keeps groups together, such as GroupKFold.

        Returns
        -------
        dataframe, ndarray or csr_array of shape (n_rows, n_columns_out)

        Raises
        ------
        ValueError
            As `fit`; and where `cv` holds a row out twice, needs groups, or would not look at them.

        Warns
        -----
        UserWarning
            Where rows are held out in no fold, as the first of TimeSeriesSplit: they have the prior.
        """
        if not self._shows_target() or self.cv is None:
            lazy = self._as_lazy(X, refit=True) if isinstance(y, str) else None
            if lazy is not None:
                return self._fit_transform_lazily(lazy, y, sample_weight)
        X, y, sample_weight = split_columns(X, y, sample_weight, type(self).__name__)
        if self._shows_target():
            refuse_lost_groups(self.cv, groups)
        self.fit(X, y, sample_weight, groups)
        if not self._shows_target() or self.cv is None:
            return self.transform(X)
        return self._by_folds(X, y, sample_weight, self.cv, groups)

    def transform(self, X: Any, y: Any = None) -> Any:
        """Encode a table: a frame of the kind it has, an array with ``return_df=False``.

        Parameters
        ----------
        X : dataframe or array-like of shape (n_rows, n_columns)
            With the columns of fit; 0 rows are allowed.
        y : ignored
            Taken because category_encoders' supervised encoders take it. Rows are encoded by what all rows taught, also
            those of training: encodings out of fold come from `fit_transform` alone.

        Returns
        -------
        dataframe, ndarray or csr_array of shape (n_rows, n_columns_out)

        Raises
        ------
        ValueError, TypeError
            In a sentence that names the column.
        """
        lazy = self._as_lazy(X)
        return self._encode_table(self._read_as_fitted(X, y)) if lazy is None else self._encode_lazily(lazy)

    # -- pieces ---------------------------------------------------------------------

    def _by_folds(self, X: Any, y: Any, sample_weight: Any, cv: Any, groups: Any = None) -> Any:
        """The rows of fit, each encoded by the folds of `cv` that do not hold it."""
        if not self.columns_:
            return self.transform(X)
        table, own = self._read_as_fitted(X), copy(self)
        own.cv = cv
        return self._put_together(table, own._out_of_fold(table, y, check_weights(sample_weight, len(table)), groups))

    def _folds(self, target: NDArray[Any], groups: Any, *, classes: bool) -> list[Split]:
        """The (training, held-out) rows of each fold; `target` (n_rows,) holds codes of classes, or numbers.

        A `UserWarning` says of how many rows the encoding is the prior, as no fold holds them out.
        """
        rows = np.zeros((len(target), 1))
        splits = split_rows(self.cv, rows, target, classes=classes, random_state=self.random_state, groups=groups)
        warn_of_prior(splits, len(target))
        warn_of_small_folds(splits)
        return splits

    def _fitted_folds(self, table: Table, y: Any, weight: Floats | None, groups: Any) -> Iterator[FittedRows]:
        """Of each fold the held-out rows, and what its training rows taught."""
        target, classes, fit = self._fold_fitter(table, y, weight)
        return ((held_out, fit(train, held_out)) for train, held_out in self._folds(target, groups, classes=classes))

    def _out_of_fold(self, table: Table, y: Any, weight: Floats | None, groups: Any) -> dict[str, NDArray[Any]]:
        """The encoded columns (n_rows,) by name, each row by what was learned without it, else the prior."""
        return self._filled(table, self._fitted_folds(table, y, weight, groups))

    def _filled(self, table: Table, folds: Iterable[FittedRows]) -> dict[str, NDArray[Any]]:
        """The priors, with the rows that folds hold out encoded by these."""
        encoded = self._priors(table)
        for rows, fold in folds:
            columns = self._fold_columns(fold)
            for name, column in encoded.items():
                column[rows] = columns[name]  # a KeyError is better than the prior where a fold lacks a column
        return encoded

    def _put_together(self, table: Table, encoded: dict[str, NDArray[Any]]) -> Any:
        """The table with these output columns (n_rows,), by name, in place of what they encode."""
        return self._assembled(
            table,
            {name: {new: encoded[new] for new in self._kept_names(state)} for name, state in self.columns_.items()},
        )
