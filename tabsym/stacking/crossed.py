"""Margins of a wide model: out of fold for training, of new rows afterwards.

A booster that starts from margins of rows which the wide model was trained on believes them too much, and learns
little of what is left: so each training row gets the margin of a model that has not seen it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import clone

from tabsym.encoders.folds import Split
from tabsym.encoders.pieces import take_rows
from tabsym.estimators.refitting import refit_of

Floats = NDArray[np.float64]
Places = NDArray[Any]
Ask = Callable[[Places, Places], Floats]
"""(rows to learn from, other rows) -> margins (m, K) of the latter."""


def margins_of(wide: Any, X: Any, classes: NDArray[Any] | None) -> Floats:
    """Scores (n, K) of a fitted wide model before its link: K is 1 for numbers and for two classes.

    A class that the model has not seen is as probable as one row more would have made it.
    """
    scores = wide._margins(X)
    if classes is None:
        return np.asarray(scores)
    if len(classes) == 2:
        return _of_two(scores)
    if scores.shape[1] == 1:  # two classes of several, in this fold
        scores = np.column_stack([np.zeros(len(scores)), scores[:, 0]])
    rare = logsumexp(scores, axis=1) - np.log(1.0 + wide.n_rows_seen_ / max(wide.n_iter_, 1))
    out = np.repeat(rare[:, None], len(classes), axis=1)
    out[:, np.searchsorted(classes, wide.classes_)] = scores
    return out


def fitted_wide(wide: Any, X: Any, y: NDArray[Any], weight: Floats | None) -> Any:
    """A clone, fitted."""
    return clone(wide).fit(X, y, sample_weight=weight)


def asking_clones(wide: Any, X: Any, y: NDArray[Any], weight: Floats | None, classes: NDArray[Any] | None) -> Ask:
    """Margins by clones of the wide model, which choose everything again."""

    def ask(train: Places, wanted: Places) -> Floats:
        model = fitted_wide(wide, take_rows(X, train), y[train], None if weight is None else weight[train])
        return margins_of(model, take_rows(X, wanted), classes)

    return ask


def asking(
    wide: Any, fitted: Any, X: Any, y: NDArray[Any], weight: Floats | None, classes: NDArray[Any] | None
) -> Ask:
    """Margins by models that hold what `fitted` chose of all rows, where it chose what is dear; else by clones."""
    clones = asking_clones(wide, X, y, weight, classes)
    target = y if classes is None else np.searchsorted(classes, y)
    refit = refit_of(fitted, X, np.asarray(target, dtype=np.float64), weight)
    if refit is None:
        return clones

    def ask(train: Places, wanted: Places) -> Floats:
        if classes is not None and len(np.unique(target[train])) < len(classes):
            return clones(train, wanted)  # nothing holds the intercept of a class without rows
        scores = refit.scores(train, wanted)
        return _of_two(scores) if classes is not None and len(classes) == 2 else scores

    return ask


def _of_two(scores: Floats) -> Floats:
    return np.asarray(scores if scores.shape[1] == 1 else scores[:, 1:] - scores[:, :1])


def cross_margins(ask: Ask, splits: list[Split]) -> Floats:
    """The margin (n, K) of each row by a model fitted on the other folds."""
    parts = [ask(train, test) for train, test in splits]
    found = np.zeros((sum(map(len, parts)), parts[0].shape[1]))
    for (_, test), margins in zip(splits, parts, strict=True):
        found[test] = margins
    return found


class Nested:
    """For each fold the margins of its training rows, by models that have seen neither them nor the fold.

    A booster that is to be judged on a fold must not be trained on margins that know its targets: what they hold of
    the fold's rows comes back with the sign turned, and stacks look worse than they are (benchmarks/stacking). Two
    folds share a model, so that there are k (k - 1) / 2; those of a fold are fitted when it is asked for.
    """

    def __init__(self, ask: Ask, y: NDArray[Any], splits: list[Split], *, is_class: bool) -> None:
        if len(splits) < 3:
            raise ValueError(
                f"early_stopping='folds' needs three folds, and cv makes {len(splits)}; use cv=3 or more, or hold rows "
                "out by early_stopping=0.1."
            )
        self._ask, self._y, self._splits, self._is_class = ask, y, splits, is_class
        self._known: dict[tuple[int, int], Floats] = {}

    def rows(self, fold: int) -> Places:
        """The training rows of a fold that have margins: without those whose model would have one class to learn of."""
        others = [other for other in range(len(self._splits)) if other != fold and self._can_learn(fold, other)]
        return np.sort(np.concatenate([self._splits[other][1] for other in others])) if others else np.arange(0)

    def margins(self, fold: int) -> Floats:
        """Margins (m, K) of these rows."""
        parts = {other: self._of(other, fold) for other in range(len(self._splits)) if other != fold}
        known = {other: part for other, part in parts.items() if part is not None}
        places = np.concatenate([self._splits[other][1] for other in known])
        return np.concatenate(list(known.values()))[np.argsort(places)]

    def _rows_without(self, fold: int, other: int) -> Places:
        return np.setdiff1d(self._splits[fold][0], self._splits[other][1], assume_unique=True)

    def _can_learn(self, fold: int, other: int) -> bool:
        y = self._y[self._rows_without(fold, other)]
        return not self._is_class or not (y == y[0]).all()

    def _of(self, wanted: int, beside: int) -> Floats | None:
        """Margins of a fold's rows, by the model that has seen neither it nor the other."""
        if not self._can_learn(wanted, beside):
            return None
        if (wanted, beside) not in self._known:
            one, other = self._splits[wanted][1], self._splits[beside][1]
            both = self._ask(self._rows_without(wanted, beside), np.concatenate([one, other]))
            self._known[wanted, beside], self._known[beside, wanted] = both[: len(one)], both[len(one) :]
        return self._known[wanted, beside]
