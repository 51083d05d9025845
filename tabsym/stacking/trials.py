"""Rows that a booster is judged by, and what it is trained on meanwhile: folds of the training rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.stacking.crossed import Crossed, Nested
from tabsym.stacking.layer import Plan, Rows
from tabsym.table.frames import take_rows

ENOUGH = 7_000
"""Rows held out, with which no more folds are judged by: a bound on the fits, which was not tuned. Fewer rows err more
(kick, fold 1), more cost as many fits of the wide model again."""


@dataclass(frozen=True)
class Trial:
    """Rows to judge a booster by, and rows to train it on, whose margins are made when they are asked for.

    `plain`: those to train on, without margins; `y`: the target of those that get them.
    """

    held_out: Rows
    plain: Rows
    y: NDArray[Any]
    make: Callable[[], Rows]

    @cached_property
    def seen(self) -> Rows:
        return self.make()

    def rows_for(self, plan: Plan) -> Rows:
        """What a booster is trained on; one that stands alone reads no margins."""
        return self.plain if plan.mode == "alone" else self.seen


def trials_of_folds(plain: Rows, crossed: Crossed) -> list[Trial]:
    """Trials of folds, as many as hold enough rows: trained on margins that know nothing of the fold.

    Of a splitter over time the latest folds, which have most rows to train on.

    `plain`: the rows of training, without margins.
    """
    nested = Nested(crossed)

    def trial(fold: int) -> Trial:
        train, test = crossed.splits[fold]
        known = nested.rows(fold)
        return Trial(
            replace(taken(plain, test), margins=crossed.margins_of(fold)),
            taken(plain, train),
            plain.y[known],
            lambda: replace(taken(plain, known), margins=nested.margins(fold)),
        )

    folds = list(range(len(crossed.splits)))
    if len(crossed.rows) < len(plain):
        folds.sort(key=lambda fold: -len(nested.rows(fold)))
    sizes = np.cumsum([len(crossed.splits[fold][1]) for fold in folds])
    return [trial(fold) for fold in folds[: 1 + int(np.searchsorted(sizes, ENOUGH))]]


def taken(rows: Rows, places: NDArray[Any]) -> Rows:
    """Some of the rows."""
    weight = None if rows.weight is None else rows.weight[places]
    return Rows(take_rows(rows.X, places), rows.y[places], rows.margins[places], weight)
