"""Margins out of fold: each row's by a wide model that has not seen it, also within the training rows of a fold.

A booster that starts from margins of rows which the wide model was trained on believes them too much, and learns
little of what is left.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tabsym.encoders.out_of_fold import Split
from tabsym.frame.frames import take_rows

Floats = NDArray[np.float64]
Places = NDArray[Any]


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


@dataclass(frozen=True)
class Learner:
    """A wide model, unfitted, and the rows that it learns from."""

    wide: Any
    X: Any
    y: NDArray[Any]
    weight: Floats | None
    classes: NDArray[Any] | None

    def fit(self, train: Places) -> Any:
        """A clone fitted on some rows, for its margins only.

        Of clones that did not converge, or read codes as numbers, there is no warning: the model of all rows, which has
        the same options, gives it.
        """
        weight = None if self.weight is None else self.weight[train]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = clone(self.wide)
            model._only_predicts = True  # without what else a fit finds
            return model.fit(take_rows(self.X, train), self.y[train], sample_weight=weight)

    def margins(self, model: Any, rows: Places) -> Floats:
        """Of a fitted clone, of some rows."""
        return margins_of(model, take_rows(self.X, rows), self.classes)


class Crossed:
    """Margins out of fold, each fold's by a clone that has seen its training rows, made when they are asked for.

    Also variances, crosses and intervals are the clone's own: those of all rows know the rows' own targets.
    """

    def __init__(self, learner: Learner, splits: list[Split]) -> None:
        self.learner, self.splits = learner, splits
        self._clones: dict[int, Any] = {}
        self._margins: dict[int, Floats] = {}

    def clone(self, fold: int) -> Any:
        """The wide model that knows nothing of a fold."""
        if fold not in self._clones:
            self._clones[fold] = self.learner.fit(self.splits[fold][0])
        return self._clones[fold]

    def margins_of(self, fold: int) -> Floats:
        """Margins (m, K) of the rows of a fold."""
        if fold not in self._margins:
            self._margins[fold] = self.learner.margins(self.clone(fold), self.splits[fold][1])
        return self._margins[fold]

    @cached_property
    def rows(self) -> Places:
        """The rows that a fold holds out, ascending: a splitter over time leaves the first ones out."""
        return np.sort(np.concatenate([test for _, test in self.splits]))

    def margins(self) -> Floats:
        """The margin (m, K) of each of these rows, to train on."""
        parts = [self.margins_of(fold) for fold in range(len(self.splits))]
        return np.concatenate(parts)[np.argsort(np.concatenate([test for _, test in self.splits]))]


FOLDS = 4
"""With fewer, models that have not seen two folds have seen too few rows for the margins of the last booster."""


class Nested:
    """For each fold the margins of its training rows, by models that have seen neither them nor the fold.

    A booster that is to be evaluated on a fold must not be trained on margins that know its targets: what they hold of
    the fold's rows comes back with the sign turned, and stacks look worse than they are (benchmarks/stacking). There
    are k - 1 models for each fold that is asked for; two folds share a model. They find everything anew, as clones do,
    so that their margins serve the booster of all rows, too, and no further clones are fitted for it.

    Of a splitter over time, a fold's training rows with margins are those of the folds before, whose models have not
    seen it anyway.
    """

    def __init__(self, crossed: Crossed) -> None:
        if len(crossed.splits) < 3:
            raise ValueError(
                f"early_stopping='folds' needs three folds, and cv makes {len(crossed.splits)}; use cv=3 or more, or "
                "hold rows out by early_stopping=0.1."
            )
        self.crossed, self._learner, self._splits = crossed, crossed.learner, crossed.splits
        self._known: dict[tuple[int, int], Floats] = {}

    def rows(self, fold: int) -> Places:
        """The training rows of a fold that have margins: without those whose model would have one class to learn of."""
        others = [self._rows_of(other, fold) for other in self._others(fold)]
        return np.sort(np.concatenate(others)) if others else np.arange(0)

    def margins(self, fold: int) -> Floats:
        """Margins (m, K) of these rows."""
        others = self._others(fold)
        positions = np.concatenate([self._rows_of(other, fold) for other in others])
        return np.concatenate([self._of(other, fold) for other in others])[np.argsort(positions)]

    def of_all(self, evaluated: list[int]) -> Floats:
        """Margins (m, K) of all rows that folds hold out, by models that the `evaluated` folds needed anyway.

        Each row's by a model that has not seen it: of the rows of an evaluated fold by its own clone, of the others by
        the model that has not seen the first evaluated fold either. Another fold's clone is fitted where that model
        has no margins for some of its rows, or, of three folds, has seen a third of the table only.
        """
        first, enough = evaluated[0], len(self._splits) >= FOLDS
        known = [
            fold
            for fold in (self._others(first) if enough else [])
            if len(self._rows_of(fold, first)) == len(self._splits[fold][1])
        ]
        parts = [
            self._of(fold, first) if fold in known and fold not in evaluated else self.crossed.margins_of(fold)
            for fold in range(len(self._splits))
        ]
        return np.concatenate(parts)[np.argsort(np.concatenate([test for _, test in self._splits]))]

    def _others(self, fold: int) -> list[int]:
        return [
            other
            for other in range(len(self._splits))
            if other != fold and len(self._rows_of(other, fold)) and self._can_learn(other, fold)
        ]

    def _can_learn(self, wanted: int, beside: int) -> bool:
        y = self._learner.y[self._rows_without(wanted, beside)]
        return len(y) > 0 and (self._learner.classes is None or not (y == y[0]).all())

    def _rows_of(self, wanted: int, beside: int) -> Places:
        """The rows that a fold holds out and the one beside trains on."""
        test = self._splits[wanted][1]
        return test[np.isin(test, self._splits[beside][0], assume_unique=True)]

    def _rows_without(self, wanted: int, beside: int) -> Places:
        """The rows that a fold trains on and the one beside does not hold out."""
        return np.setdiff1d(self._splits[wanted][0], self._splits[beside][1], assume_unique=True)

    def _of(self, wanted: int, beside: int) -> Floats:
        """Margins of those of a fold's rows that the one beside trains on, by a model that has seen neither."""
        if (wanted, beside) not in self._known:
            train = self._rows_without(wanted, beside)
            if len(train) == len(self._splits[wanted][0]):  # a fold over time: its model knows nothing of later ones
                return self._learner.margins(self.crossed.clone(wanted), self._rows_of(wanted, beside))
            model = self._learner.fit(train)
            self._known[wanted, beside] = self._learner.margins(model, self._rows_of(wanted, beside))
            if np.array_equal(train, self._rows_without(beside, wanted)):
                self._known[beside, wanted] = self._learner.margins(model, self._rows_of(beside, wanted))
        return self._known[wanted, beside]
