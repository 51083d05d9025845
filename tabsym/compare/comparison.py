"""What a comparison gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

from tabsym.compare.best import Winner, train_best
from tabsym.compare.contenders import Contender
from tabsym.compare.machine import threads_of_each
from tabsym.compare.processes import Course


@dataclass(frozen=True)
class Comparison:
    """What a comparison gave.

    Attributes
    ----------
    ranking : pandas.DataFrame
        Complete contenders, best first: score, spread over folds, all metrics, difference to the best with its
        interval, p-value and verdict, totals, times, memory, model size.
    finding : list of str
        What can be said of it, and what not, in sentences.
    failures : dict of str -> str
        What went wrong, by contender.
    folder : Path
        Where results.json, results.csv, report.html and the predictions are.
    larger_is_better : bool
        Of the metric that ranks.
    best : Winner
        The best contender trained on all rows, when it is first asked for.
    """

    ranking: pd.DataFrame
    finding: list[str]
    failures: dict[str, str]
    folder: Path
    larger_is_better: bool
    _course: Course = field(repr=False)
    _contenders: dict[str, Contender] = field(repr=False)

    @property
    def not_installed(self) -> list[str]:
        """Names of contenders that were left out, as their libraries are absent."""
        return [name for name in self.failures if name in self._contenders and self._contenders[name].missing()]

    @cached_property
    def best(self) -> Winner:
        """The best contender trained on all rows: `predict`, `predict_proba`, `save`.

        Raises
        ------
        ValueError
            No contender completed all folds, or the best is of a run that this one went on with, and not chosen now.
        """
        if not len(self.ranking):
            raise ValueError("No contender completed all folds, so there is no best one.")
        name = self.ranking["name"].iloc[0]
        if name not in self._contenders:
            raise ValueError(
                f"The best contender, {name!r}, is of the run before and was not chosen now; name it among contenders, "
                "too, to train it."
            )
        course, contender = self._course, self._contenders[name]
        return train_best(
            contender,
            course.prepared,
            course.plan,
            course.metric,
            course.tune,
            course.seed,
            threads_of_each(1, course.threads),
        )
