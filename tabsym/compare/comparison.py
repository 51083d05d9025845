"""The result of a comparison."""

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
    """The result of a comparison.

    Attributes
    ----------
    ranking : pandas.DataFrame
        Contenders that completed all folds, best first: score, standard deviation over folds (`sd`), all metrics,
        difference to the best with its interval, p-values, significance in words (`verdict`), totals, times, memory,
        model size.
    summary : list of str
        The conclusions, in sentences.
    failures : dict of str -> str
        The reason of each contender that failed or was not run.
    folder : Path
        The folder of results.json, results.csv, report.html and the predictions.
    larger_is_better : bool
        Whether a larger value of the ranking metric is better.
    best : Winner
        The best contender, trained on all rows at the first access.
    """

    ranking: pd.DataFrame
    summary: list[str]
    failures: dict[str, str]
    folder: Path
    larger_is_better: bool
    _course: Course = field(repr=False)
    _contenders: dict[str, Contender] = field(repr=False)

    @property
    def not_installed(self) -> list[str]:
        """Names of contenders that were left out because their libraries are not installed."""
        return [name for name in self.failures if name in self._contenders and self._contenders[name].missing()]

    @cached_property
    def best(self) -> Winner:
        """The best contender trained on all rows: `predict`, `predict_proba`, `save`.

        Raises
        ------
        ValueError
            No contender completed all folds, or the best one is of an earlier run and not among the contenders now.
        """
        if not len(self.ranking):
            raise ValueError(
                "No contender completed all folds, so that there is no best one; see failures for the reasons."
            )
        name = self.ranking["name"].iloc[0]
        if name not in self._contenders:
            raise ValueError(
                f"The best contender, {name!r}, is of an earlier run and not among the contenders now; add it "
                "to contenders to train it."
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
