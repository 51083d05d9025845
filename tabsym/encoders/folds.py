"""The folds of cross-fitting: which rows an encoder or a stack is fitted on, and which rows it then encodes.

A number of folds, a splitter of scikit-learn (of groups, over time) or a list of splits becomes row numbers. Splits
that leak, and groups that no splitter keeps together, are refused; rows that no fold holds out are reported.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import PredefinedSplit, check_cv
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import type_of_target

from tabsym.warn import warn_user

Split = tuple[NDArray[Any], NDArray[Any]]


def split_rows(
    cv: Any, X: Any, y: NDArray[Any], *, classes: bool, random_state: Any = None, groups: Any = None
) -> list[Split]:
    """The (training, held-out) rows of each fold; a number of folds means shuffled ones.

    A row is held out once at most, by a model that has not seen it; or there is a `ValueError`. A splitter over time
    holds the first rows out never (`never_held`).

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
    refuse_lost_groups(cv, groups)
    numbered = isinstance(cv, Integral)
    splitter = check_cv(int(cv) if numbered else cv, y, classifier=classes)
    if numbered:
        splitter.shuffle, splitter.random_state = True, random_state
    if groups is None and _needs_groups(splitter):
        raise ValueError(
            f"cv={splitter!r} needs the group of each row; pass groups=... to fit (encoders: to fit_transform), "
            "or in a Pipeline have "
            "them routed by set_fit_request(groups=True)."
        )
    try:
        splits = list(splitter.split(X, y, check_groups(groups, len(y))))
    except ValueError as error:
        if not numbered:
            raise
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
            f"The training rows of {which} of cv hold one class only ({target.tolist()[0]!r}), from which no encoding "
            "can be fitted; use fewer folds or a stratified splitter (StratifiedGroupKFold)."
        )


def _holds_classes(target: NDArray[Any], cv: Any) -> bool:
    """Whether the target holds classes; whole numbers that hardly repeat are a quantity."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "many classes": answered below
        if type_of_target(target) not in ("binary", "multiclass"):
            return False
    return not isinstance(cv, Integral) or bool(np.unique(target, return_counts=True)[1].max() >= cv)


def refuse_lost_groups(cv: Any, groups: Any) -> None:
    """A `ValueError` where groups were given and `cv` would not look at them."""
    if groups is not None and (cv is None or isinstance(cv, Integral)):
        raise ValueError(f"cv={cv!r} would not keep groups together; pass a splitter such as cv=GroupKFold(5).")


def _needs_groups(splitter: Any) -> bool:
    """Whether a splitter asks for groups, as scikit-learn's say of themselves."""
    routing = getattr(splitter, "get_metadata_routing", None)
    return routing is not None and routing().split.requests.get("groups") is True


def check_groups(groups: Any, n_rows: int) -> NDArray[Any] | None:
    """The group of each row (n,), or a `ValueError`."""
    if isinstance(groups, str):
        raise TypeError(f"groups={groups!r} is text; pass the label of each row, such as X[{groups!r}].")
    if groups is None:
        return None
    found = column_or_1d(groups)
    if len(found) != n_rows:
        raise ValueError(f"The table has {n_rows} rows and groups {len(found)} values; pass one group for each row.")
    missing = pd.isna(found)
    if missing.any():
        raise ValueError(f"The group of row {int(np.argmax(missing))} is missing; give every row one.")
    return np.asarray(found)


def never_held(splits: Sequence[Split], n_rows: int) -> NDArray[np.int64]:
    """The rows that no fold holds out, as the first ones of a splitter over time."""
    held = np.zeros(n_rows, dtype=bool)
    for _, test in splits:
        held[test] = True
    return np.flatnonzero(~held)


def warn_of_prior(splits: Sequence[Split], n_rows: int) -> None:
    """A `UserWarning` where rows are held out in no fold, with their number."""
    found = len(never_held(splits, n_rows))
    if found:
        warn_user(
            f"cv holds {found:,} of {n_rows:,} rows out in no fold; they are encoded by the prior, a constant. "
            "Leave them out of training, or use a splitter that holds every row out."
        )


MANY_FOLDS, FEW_HELD_OUT = 10, 10.0
"""More folds than this, with fewer rows each on average, show a row's target by the mean of the other rows."""


def warn_of_small_folds(splits: Sequence[Split]) -> None:
    """A `UserWarning` where the mean of the rows that a fold learns from shows the targets of those that it holds out.

    A category that they lack is encoded by it: over m rows held out at a time its squared correlation with a row's
    target is about 1 / m (measured: .24 at 4 rows, .47 at 2, 1 at 1).
    """
    held = float(np.mean([len(test) for _, test in splits])) if splits else np.inf
    if len(splits) > MANY_FOLDS and held < FEW_HELD_OUT:
        warn_user(
            f"cv holds out {held:.3g} rows at a time: the mean of the others, which categories that they lack are "
            "encoded by, falls as these rows' targets rise, so that a column of ids predicts the target of training "
            "rows; use fewer folds, such as cv=5."
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
    held = np.zeros(n_rows, dtype=np.int64)
    out = []
    for fold, split in enumerate(splits):
        train, test = (_row_numbers(rows, n_rows, fold) for rows in split)
        seen = np.zeros(n_rows, dtype=bool)  # np.intersect1d takes longer than a model of the fold
        seen[train] = True
        if seen[test].any():
            raise ValueError(
                f"Fold {fold} of cv both trains on row {test[seen[test]].min()} and encodes it, which leaks; "
                "take the held-out rows out of the training rows."
            )
        held += np.bincount(test, minlength=n_rows)
        if len(test):
            out.append((train, test))
    if not out:
        raise ValueError("cv holds no row out; use a splitter that does, such as KFold, GroupKFold or TimeSeriesSplit.")
    if (held <= 1).all():
        return out
    row = int(np.argmax(held > 1))
    raise ValueError(
        f"cv holds row {row} out {held[row]} times ({int((held > 1).sum())} such rows), but a row can be encoded once "
        "only; use a splitter whose folds share no rows, such as KFold, GroupKFold or TimeSeriesSplit."
    )


def _row_numbers(rows: Any, n_rows: int, fold: int) -> NDArray[np.int64]:
    found = np.asarray(rows)
    found = np.flatnonzero(found) if found.dtype == bool else found.astype(np.int64)
    if len(found) and (found.min() < 0 or found.max() >= n_rows):
        raise ValueError(
            f"Fold {fold} of cv names a row outside 0 to {n_rows - 1}; make the splits for the table given to fit."
        )
    return found
