"""The folds of cross-fitting, and the base of tabsym's own supervised encoders, which encode training rows by them.

A number of folds, a splitter of scikit-learn (of groups, over time) or a list of splits becomes row numbers. Splits
that leak, and groups that no splitter keeps together, are refused; rows that no fold holds out are reported.
`CrossFit`, in `crossfit`, does for any other encoder what `OutOfFoldEncoder` does for tabsym's.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import PredefinedSplit, check_cv
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import type_of_target

from tabsym.encoders.base import ColumnEncoder
from tabsym.frame import Table, check_same_rows, check_weights, split_columns
from tabsym.messages import Instance, Number, check_option, plural, warn_user

Floats = NDArray[np.float64]


Split = tuple[NDArray[Any], NDArray[Any]]


class _Splitter(Instance):
    def allows(self, value: Any) -> bool:
        """Whether a value is an object with `split`: text has such a method too, and a class needs to be called."""
        return not isinstance(value, (str, bytes, type)) and callable(getattr(value, "split", None))


class _Splits(Instance):
    def allows(self, value: Any) -> bool:
        """Whether a value has elements, as far as that is known without using up an iterator."""
        is_number = isinstance(value, np.ndarray) and value.ndim == 0
        return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)) and not is_number


CV = (
    Number(at_least=2, whole=True, of="folds"),
    _Splitter(object, "a splitter such as GroupKFold(5)"),
    _Splits(Iterable, "a list of pairs (training rows, held-out rows)"),
)
"""Allowed values of `cv`; encoders have None besides."""


def split_rows(
    cv: Any, X: Any, y: NDArray[Any], *, classes: bool, random_state: Any = None, groups: Any = None
) -> list[Split]:
    """The (training, held-out) rows of each fold; a number of folds means shuffled ones.

    A row is held out once at most, by a model that has not seen it; or there is a `ValueError`. A splitter over time
    holds the first rows out never (`never_held_out`).

    Parameters
    ----------
    cv : int, splitter or iterable of splits (of row numbers, or of masks)
    X : table or array of n rows
        Only for the splitter, which may look at it.
    y : ndarray of shape (n,)
    classes : bool
        Whether a number of folds is stratified by `y`.
    random_state : int, RandomState or None
        Of the shuffle.
    groups : array-like of shape (n,), optional
        For splitters such as GroupKFold.
    """
    check_option("cv", cv, CV)
    refuse_lost_groups(cv, groups)
    group = check_groups(groups, len(y))
    numbered = isinstance(cv, Integral)
    _refuse_other_rows(cv, len(y))
    if not numbered and not hasattr(cv, "split"):
        return check_rows_once(list(cv), len(y))
    splitter = cv
    if numbered:
        splitter = check_cv(int(cv), y, classifier=classes)
        splitter.shuffle, splitter.random_state = True, random_state
    routing = getattr(splitter, "get_metadata_routing", None)  # by which scikit-learn's say whether they need groups
    if groups is None and routing is not None and routing().split.requests.get("groups") is True:
        raise ValueError(
            f"cv={splitter!r} needs the group of each row; pass groups=... to fit (encoders: to fit_transform), "
            "or in a Pipeline have "
            "them routed by set_fit_request(groups=True)."
        )
    try:
        splits = list(splitter.split(X, y, group))
    except ValueError as error:
        if not numbered:
            raise ValueError(f"cv={cv!r} does not split {plural(len(y), 'row')}: {error}") from error
        raise ValueError(f"{error} Each row is encoded by the other folds; set cv={cv} to fewer of them.") from None
    return check_rows_once(splits, len(y))


def split_by_target(
    cv: Any, X: Any, target: NDArray[Any], kind: str | None, *, random_state: Any = None, groups: Any = None
) -> list[Split]:
    """As `split_rows`, stratified where the target (n,) holds classes, of which each training part must have two.

    `kind`: the encoder's own `target_type`, which says so where it is "continuous".
    """
    classes = kind != "continuous" and _holds_classes(target, cv)
    splits = split_rows(cv, X, target, classes=classes, random_state=random_state, groups=groups)
    if not classes or (target == target[0]).all():
        return splits
    for fold, (train, _) in enumerate(splits):
        refuse_one_class(target[train], f"fold {fold}")
    return splits


def refuse_one_class(target: NDArray[Any], which: str) -> None:
    """A `ValueError` where all training rows of a fold have one class; `target`: of these rows."""
    if len(target) and (target == target[0]).all():
        raise ValueError(
            f"The training rows of {which} of cv hold one class only ({target.tolist()[0]!r}), from which nothing "
            "can be learned; use fewer folds or a stratified splitter (StratifiedGroupKFold)."
        )


def _holds_classes(target: NDArray[Any], cv: Any) -> bool:
    """Whether the target holds classes; whole numbers that hardly repeat are a quantity."""
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):  # of numbers beyond 2**63, which are cast
        warnings.simplefilter("ignore", UserWarning)  # "many classes": answered below
        if type_of_target(target) not in ("binary", "multiclass"):
            return False
    return not isinstance(cv, Integral) or bool(np.unique(target, return_counts=True)[1].max() >= cv)


def refuse_lost_groups(cv: Any, groups: Any) -> None:
    """A `ValueError` where groups were given and `cv` would not look at them."""
    if groups is not None and (cv is None or isinstance(cv, Integral)):
        raise ValueError(f"cv={cv!r} would not keep groups together; pass a splitter such as cv=GroupKFold(5).")


def check_groups(groups: Any, n_rows: int) -> NDArray[Any] | None:
    """The group of each row (n,), or a `ValueError`."""
    if isinstance(groups, str):
        raise TypeError(f"groups={groups!r} is text; pass the label of each row, such as X[{groups!r}].")
    if groups is None:
        return None
    try:
        labels = column_or_1d(groups)
    except ValueError:
        raise ValueError(f"groups={_shown(groups)} is no list of labels; pass one a row, such as X['shop'].") from None
    if len(labels) != n_rows:
        raise ValueError(
            f"The table has {plural(n_rows, 'row')} and groups {plural(len(labels), 'value')}; pass one group for "
            "each row."
        )
    missing = pd.isna(labels)
    if missing.any():
        raise ValueError(f"The group of row {int(np.argmax(missing))} is missing; give every row one.")
    return np.asarray(labels)


def never_held_out(splits: Sequence[Split], n_rows: int) -> NDArray[np.int64]:
    """The rows that no fold holds out, as the first ones of a splitter over time."""
    is_held_out = np.zeros(n_rows, dtype=bool)
    for _, test in splits:
        is_held_out[test] = True
    return np.flatnonzero(~is_held_out)


def warn_of_prior(splits: Sequence[Split], n_rows: int) -> None:
    """A `UserWarning` where rows are held out in no fold, with their number."""
    n_others = len(never_held_out(splits, n_rows))
    if n_others:
        warn_user(
            f"cv holds {n_others:,} of {n_rows:,} rows out in no fold; {'it is' if n_others == 1 else 'they are'} "
            "encoded by the prior, a constant. Leave them out of training, or use a splitter that holds every row out."
        )


MANY_FOLDS, FEW_HELD_OUT = 10, 10.0
"""More folds than this, with fewer rows each on average, show a row's target by the mean of the other rows."""


def warn_of_small_folds(splits: Sequence[Split]) -> None:
    """A `UserWarning` where the mean of the rows that a fold learns from shows the targets of those that it holds out.

    A category that they lack is encoded by it: over m rows held out at a time its squared correlation with a row's
    target is about 1 / m (measured: .24 at 4 rows, .47 at 2, 1 at 1).
    """
    n_held_out = float(np.mean([len(test) for _, test in splits])) if splits else np.inf
    if len(splits) > MANY_FOLDS and n_held_out < FEW_HELD_OUT:
        warn_user(
            f"cv holds out {n_held_out:.3g} row{'s' * (n_held_out != 1)} at a time: the mean of the others, which "
            "categories that they lack are encoded by, falls as these rows' targets rise, so that a column of ids "
            "predicts the target of training rows; use fewer folds, such as cv=5."
        )


def warn_of_lost_categories(columns: Mapping[str, NDArray[np.integer]], splits: Sequence[Split]) -> None:
    """A `UserWarning` where folds hold out categories that their training rows lack, with the number of such rows.

    `columns`: codes (n,) of the categories, by name of the column.
    """
    lost = dict.fromkeys(columns, 0)
    rows, total = 0, 0
    for train, test in splits:
        unknown = np.zeros(len(test), dtype=bool)
        for name, codes in columns.items():
            missing = ~np.isin(codes[test], codes[train])
            lost[name] += int(missing.sum())
            unknown |= missing
        rows, total = rows + int(unknown.sum()), total + len(test)
    if rows:
        warn_user(
            f"cv holds out {rows:,} of {total:,} rows with categories that are in none of their fold's training rows "
            f"(most often of column {max(lost, key=lambda name: lost[name])!r}); they are encoded as unknown. Drop "
            "such columns, or use a splitter that spreads their categories over folds."
        )


def cv_of_rows(cv: Any, rows: NDArray[np.integer], n_rows: int) -> Any:
    """The `cv` by which to split some rows of a table of `n_rows`.

    A list of splits, and PredefinedSplit, name rows of the table as it was given: those that are left out are taken out
    of them, and the others numbered anew. A number and other splitters split what is left.
    """
    _refuse_other_rows(cv, n_rows)
    listed = cv.split() if isinstance(cv, PredefinedSplit) else cv
    if len(rows) == n_rows or hasattr(listed, "split") or not isinstance(listed, Iterable):
        return cv
    positions = np.full(n_rows, -1)
    positions[rows] = np.arange(len(rows))
    splits = [(positions[train], positions[test]) for train, test in check_rows_once(list(listed), n_rows)]
    return [(train[train >= 0], test[test >= 0]) for train, test in splits]


def check_rows_once(splits: Sequence[Split], n_rows: int) -> list[Split]:
    """The splits as row numbers, or a `ValueError` where they hold no row out, one twice, or one that they train on.

    Folds that hold nothing out are left out.
    """
    if not len(splits):
        raise ValueError(
            "cv makes no fold: it is empty, or an iterator that was used up before; give a splitter, or the splits as "
            "a list."
        )
    times = np.zeros(n_rows, dtype=np.int64)
    out = []
    for fold, split in enumerate(splits):
        train, test = (_row_numbers(rows, n_rows, fold) for rows in _pair(split, fold))
        seen = np.zeros(n_rows, dtype=bool)  # np.intersect1d takes longer than a model of the fold
        seen[train] = True
        if seen[test].any():
            raise ValueError(
                f"Fold {fold} of cv both trains on row {test[seen[test]].min()} and encodes it, which leaks; "
                "take the held-out rows out of the training rows."
            )
        times += np.bincount(test, minlength=n_rows)
        if len(test):
            out.append((train, test))
    if not out:
        raise ValueError("cv holds no row out; use a splitter that does, such as KFold, GroupKFold or TimeSeriesSplit.")
    if (times <= 1).all():
        return out
    row = int(np.argmax(times > 1))
    raise ValueError(
        f"cv holds row {row} out {times[row]} times ({int((times > 1).sum())} such rows), but a row can be encoded "
        "once only; use a splitter whose folds share no rows, such as KFold, GroupKFold or TimeSeriesSplit."
    )


def _refuse_other_rows(cv: Any, n_rows: int) -> None:
    """A `ValueError` for a PredefinedSplit of another number of rows: it would leave the others out of all folds."""
    if isinstance(cv, PredefinedSplit) and len(cv.test_fold) != n_rows:
        raise ValueError(
            f"cv is a PredefinedSplit of {plural(len(cv.test_fold), 'row')} and the table has {n_rows:,}; give it the "
            "fold of each row, -1 for rows that no fold holds out."
        )


def _pair(split: Any, fold: int) -> Split:
    """The training and the held-out rows of a fold, as arrays of one dimension."""
    try:
        train, test = (np.asarray(rows) for rows in split)
    except (TypeError, ValueError):  # no pair, or rows of several lengths
        train = test = np.empty(())
    if train.ndim != 1 or test.ndim != 1:
        raise ValueError(
            f"Fold {fold} of cv is {_shown(split)}, which is no pair (training rows, held-out rows); give both as row "
            "numbers or as masks."
        )
    return train, test


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:60]}..."


def _row_numbers(numbers: NDArray[Any], n_rows: int, fold: int) -> NDArray[np.int64]:
    if numbers.dtype == bool:
        if len(numbers) != n_rows:
            raise ValueError(
                f"Fold {fold} of cv has a mask of {plural(len(numbers), 'row')} and the table has {n_rows:,}; make "
                "the splits for the table given to fit."
            )
        numbers = np.flatnonzero(numbers)
    if len(numbers) and numbers.dtype.kind not in "iu":
        raise ValueError(
            f"Fold {fold} of cv holds {numbers[:1].tolist()[0]!r}, which is no row number; give positions from 0 on."
        )
    numbers = numbers.astype(np.int64)
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= n_rows):
        raise ValueError(
            f"Fold {fold} of cv names a row outside 0 to {n_rows - 1}; make the splits for the table given to fit."
        )
    return numbers


# -- encoders by folds -----------------------------------------------------------------------------


FittedRows = tuple[NDArray[Any], Any]
"""Rows that a fold holds out, and what was fitted on its training rows."""
FoldFitter = tuple[NDArray[Any], bool, Callable[[NDArray[Any], NDArray[Any]], Any]]
"""What folds are stratified by (n_rows,), whether it is codes of classes, and (training, held-out rows) -> fitted."""


class OutOfFoldEncoder(ColumnEncoder):
    """Base of the encoders with the options `cv` and `random_state`; not public."""

    _allowed_options: Mapping[str, tuple[Any, ...]] = {**ColumnEncoder._allowed_options, "cv": (*CV, None)}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    # -- for the encoders to fill in -------------------------------------------

    def _shows_target(self) -> bool:
        """Whether the encoding of a row leaks its target, so that a model trained on it overfits."""
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
        table, encoder = self._read_as_fitted(X), copy(self)
        encoder.cv = cv
        weight = check_weights(sample_weight, len(table))
        if self.handle_unknown == "error" and weight is not None and not weight.all():
            self._encode_table(table)  # a category of rows of weight 0 alone is not in the training data
        return self._put_together(table, encoder._out_of_fold(table, y, weight, groups))

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
        """The encoded columns (n_rows,) by name, each row by what was fitted without it, else the prior."""
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
        kept = {name: self._kept_names(state) for name, state in self.columns_.items()}
        return self._assembled(table, {name: {new: encoded[new] for new in names} for name, names in kept.items()})
