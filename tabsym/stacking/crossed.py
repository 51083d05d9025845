"""Margins of a wide model: out of fold for training, of new rows afterwards.

A booster that starts from margins of rows which the wide model was trained on believes them too much, and learns
little of what is left: so each training row gets the margin of a model that has not seen it.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import clone

from tabsym.encoders.folds import Split
from tabsym.encoders.pieces import take_rows

Floats = NDArray[np.float64]


def margins_of(wide: Any, X: Any, classes: NDArray[Any] | None) -> Floats:
    """Scores (n, K) of a fitted wide model before its link: K is 1 for numbers and for two classes.

    A class that the model has not seen is as probable as one row more would have made it.
    """
    scores = wide._margins(X)
    if classes is None:
        return np.asarray(scores)
    if len(classes) == 2:
        return np.asarray(scores if scores.shape[1] == 1 else scores[:, 1:] - scores[:, :1])
    if scores.shape[1] == 1:  # two classes of several, in this fold
        scores = np.column_stack([np.zeros(len(scores)), scores[:, 0]])
    rare = logsumexp(scores, axis=1) - np.log(1.0 + wide.n_rows_seen_ / max(wide.n_iter_, 1))
    out = np.repeat(rare[:, None], len(classes), axis=1)
    out[:, np.searchsorted(classes, wide.classes_)] = scores
    return out


def fitted_wide(wide: Any, X: Any, y: NDArray[Any], weight: Floats | None) -> Any:
    """A clone, fitted."""
    return clone(wide).fit(X, y, sample_weight=weight)


def cross_margins(
    wide: Any, X: Any, y: NDArray[Any], weight: Floats | None, splits: list[Split], classes: NDArray[Any] | None
) -> Floats:
    """The margin (n, K) of each row by a clone of the wide model fitted on the other folds."""
    found: Floats | None = None
    for train, test in splits:
        model = fitted_wide(wide, take_rows(X, train), y[train], None if weight is None else weight[train])
        margins = margins_of(model, take_rows(X, test), classes)
        if found is None:
            found = np.zeros((len(y), margins.shape[1]))
        found[test] = margins
    assert found is not None
    return found


def nested_margins(
    wide: Any, X: Any, y: NDArray[Any], weight: Floats | None, splits: list[Split], classes: NDArray[Any] | None
) -> list[Floats]:
    """For each fold the margins (n, K) of its training rows, by models that have seen neither them nor the fold.

    A booster that is to be judged on a fold must not be trained on margins that know its targets: what they hold of
    the fold's rows comes back with the sign turned, and stacks look worse than they are (benchmarks/stacking). Two
    folds share a model, so that there are k (k - 1) / 2. Rows of the fold itself are NaN, and those whose model would
    have one class to learn from.
    """
    if len(splits) < 3:
        raise ValueError(
            f"early_stopping='folds' needs three folds, and cv makes {len(splits)}; use cv=3 or more, or hold rows out "
            "by early_stopping=0.1."
        )
    found: list[Floats] = []
    for (one, (train, test)), (other, (_, other_test)) in combinations(enumerate(splits), 2):
        rows = np.setdiff1d(train, other_test, assume_unique=True)
        if classes is not None and (y[rows] == y[rows[0]]).all():
            continue
        model = fitted_wide(wide, take_rows(X, rows), y[rows], None if weight is None else weight[rows])
        for fold, wanted in ((one, other_test), (other, test)):
            margins = margins_of(model, take_rows(X, wanted), classes)
            if not found:
                found = [np.full((len(y), margins.shape[1]), np.nan) for _ in splits]
            found[fold][wanted] = margins
    return found or [np.full((len(y), 1), np.nan) for _ in splits]
