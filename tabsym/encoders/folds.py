"""Which rows are learned from and which are encoded: the folds of cross-fitting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

Split = tuple[NDArray[Any], NDArray[Any]]


def split_rows(
    cv: Any, X: Any, y: NDArray[Any], *, classes: bool, random_state: Any = None, groups: Any = None
) -> list[Split]:
    """The (training, held-out) rows of each fold; a number of folds means shuffled ones.

    Parameters
    ----------
    cv : int, splitter or iterable of splits
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
    splitter = check_cv(cv, y, classifier=classes)
    if hasattr(splitter, "shuffle") and isinstance(cv, int):
        splitter.shuffle, splitter.random_state = True, random_state
    return list(splitter.split(X, y, groups))


def check_each_row_once(splits: Sequence[Split], n_rows: int) -> list[Split]:
    """The splits as row numbers, or a `ValueError` where they do not hold each row out once, unseen.

    Folds that hold nothing out are left out.
    """
    held = np.zeros(n_rows, dtype=np.int64)
    out = []
    for fold, split in enumerate(splits):
        train, test = (_row_numbers(rows, n_rows, fold) for rows in split)
        seen = np.intersect1d(train, test)
        if len(seen):
            raise ValueError(
                f"Fold {fold} of cv both trains on row {seen[0]} and encodes it, which leaks; "
                "take the held-out rows out of the training rows."
            )
        held += np.bincount(test, minlength=n_rows)
        if len(test):
            out.append((train, test))
    if (held == 1).all():
        return out
    row = int(np.argmax(held != 1))
    times = "never" if held[row] == 0 else f"{held[row]} times"
    raise ValueError(
        f"cv holds row {row} out {times} ({int((held != 1).sum())} such rows), but each row must be encoded exactly "
        "once; use a splitter that partitions the rows, such as KFold or GroupKFold."
    )


def _row_numbers(rows: Any, n_rows: int, fold: int) -> NDArray[np.int64]:
    found = np.asarray(rows)
    found = np.flatnonzero(found) if found.dtype == bool else found.astype(np.int64)
    if len(found) and (found.min() < 0 or found.max() >= n_rows):
        raise ValueError(
            f"Fold {fold} of cv names a row outside 0 to {n_rows - 1}; make the splits for the table given to fit."
        )
    return found
