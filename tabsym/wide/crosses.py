"""Which crosses of symbolic columns to learn: those that gain on rows held out.

For each of a few folds there is a model that has not seen it. A cross is
worth what a number per observed pair, one Newton step from that model's
scores on the rows it has seen, takes off the loss of the fold it has not.
(Steps made of *out-of-fold* scores would not do: the score of a row in one
fold comes from a model that has seen the others, so the step for a held-out
row leans against the row's own label. On amazon such gains were negative for
35 of 36 pairs, and ranked them worse than chance.)

The best cross is taken, its steps are added to the scores, and the others are
weighed anew when their turn comes: what is redundant then gains nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from heapq import heapify, heappop, heappush
from itertools import combinations
from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray

from tabsym.codes.threads import in_threads
from tabsym.wide.gains import gain_of_cross, number_cells, sort_rows, steps_of_cross
from tabsym.wide.losses import Loss
from tabsym.wide.newton import pulls_of_rows

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

FEW_STRAYS = 0.01
"""A column is a function of another where no larger share of the rows strays from it: their cross says nothing new."""

NEARLY_BEST = 0.7
"""A cross is taken once it is worth this share of what the next one was when last weighed (gains mostly shrink)."""


@dataclass(frozen=True)
class AutoCrosses:
    """How ``interactions="auto"`` chooses crosses, and how they are trained.

    Parameters
    ----------
    max_order : int, default 3
        2 for pairs, 3 for triples that extend chosen pairs too.
    rounds : int, default 2
        How often all candidates are weighed; triples enter in the second round.
    folds : int, default 3
        Models are trained without one of these, and crosses weighed on it.
    threshold : float, default 2e-5
        Least gain per row, in units of the loss (with the target scaled to spread 1 where the loss is squared).
    significance : float, default 2.0
        Least gain in its own standard errors over rows.
    penalty : float, default 2.0
        Ridge penalty on each number of a symbol or cross, when weighed and when trained.
    sweeps : int, default 4
        Newton sweeps over all numbers after the stochastic training; 0 for none. Not for the losses
        without a curvature: absolute, quantile, hinge.
    max_crosses : int, default 40
    max_rows : int, default 200_000
        Larger tables are weighed on a random sample of this many rows.
    """

    max_order: int = 3
    rounds: int = 2
    folds: int = 3
    threshold: float = 2e-5
    significance: float = 2.0
    penalty: float = 2.0
    sweeps: int = 4
    max_crosses: int = 40
    max_rows: int = 200_000

    def __post_init__(self) -> None:
        for field in fields(self):
            value, least = getattr(self, field.name), _LEAST[field.name]
            kind, word = (Integral, "a whole number") if isinstance(field.default, int) else (Real, "a number")
            good = isinstance(value, kind) and not isinstance(value, bool) and least <= value < np.inf
            if not good or (field.name == "penalty" and value == 0):
                raise ValueError(
                    f"AutoCrosses({field.name}={value!r}) is not possible; use {word} "
                    f"{'above' if field.name == 'penalty' else 'of at least'} {least}."
                )
        if self.max_order > 3:
            raise ValueError(f"AutoCrosses(max_order={self.max_order}) is not possible; use 2 or 3.")


_LEAST: dict[str, float] = {
    "max_order": 2,
    "rounds": 1,
    "folds": 2,
    "threshold": 0,
    "significance": 0,
    "penalty": 0,
    "sweeps": 0,
    "max_crosses": 1,
    "max_rows": 100,
}


@dataclass(frozen=True)
class CodeColumn:
    """A column that can be crossed: codes (n,) below `size`, -1 for none."""

    name: str
    codes: Codes
    size: int


@dataclass(frozen=True)
class Chosen:
    """A cross that was chosen: its columns, mean gain per row with its standard error, round, and observed cells."""

    columns: tuple[str, ...]
    gain: float
    error: float
    round: int
    entries: int


class Evidence:
    """The rows that crosses are weighed on, under models that have not seen a fold.

    Parameters
    ----------
    scores : (n, F K)
        Column v K + k: output k of the model that has not seen fold v. Moved by `add`.
    fold : (n,) int8
    y, weight : (n,) target in units of training, and weights, empty for none
    """

    def __init__(self, scores: Floats, fold: NDArray[np.int8], y: Floats, weight: Floats, loss: Loss, penalty: float):
        self.scores, self.fold, self.y, self.weight = scores, fold, y, weight
        self.loss, self.penalty = loss, penalty
        self.n_folds = int(fold.max()) + 1
        self.n_outputs = scores.shape[1] // self.n_folds
        self.total = float(weight.sum()) if len(weight) else float(len(y))
        self.pulls = np.empty((len(y), 2 * scores.shape[1]))
        self._find_pulls()

    def add(self, steps: Floats) -> None:
        """Add a cross's steps to the scores."""
        self.scores += steps
        self._find_pulls()

    def _find_pulls(self) -> None:
        slope, bend = np.empty(self.n_outputs), np.empty(self.n_outputs)
        pulls_of_rows(
            self.scores, self.y, self.weight, self.loss.code, self.loss.parameter, self.n_outputs, slope, bend,
            self.pulls,
        )  # fmt: skip

    def gains_of_rows(self, steps: Floats) -> Floats:
        """What the steps gain on each row (n,) under the model that has not seen it."""
        rows = np.arange(len(self.y))
        total = np.zeros(len(self.y))
        for k in range(self.n_outputs):
            place = self.fold.astype(np.int64) * self.n_outputs + k
            step, pull, bend = steps[rows, place], self.pulls[rows, 2 * place], self.pulls[rows, 2 * place + 1]
            total -= step * (pull + 0.5 * step * bend)
        return total


class Sorted:
    """A column whose rows lie together by symbol, ready to be crossed with others."""

    def __init__(self, column: CodeColumn, evidence: Evidence) -> None:
        self.column = column
        self.starts = np.zeros(column.size + 1, dtype=np.int64)
        order = np.empty(len(column.codes), dtype=np.int32)
        self.order = order[: sort_rows(column.codes, self.starts, order)]
        self.fold = evidence.fold[self.order]

    def weigh(self, others: Sequence[CodeColumn], evidence: Evidence) -> list[tuple[float, int, int]]:
        """For each other column: mean held-out gain per row of the cross, its cells, its strays."""
        pulls = evidence.pulls[self.order]
        found = []
        for other in others:
            gain, cells, strays = gain_of_cross(
                self.starts, self.order, other.codes, self.fold, pulls, evidence.penalty, evidence.n_folds,
                evidence.n_outputs, *_work(other.size, 4 * evidence.scores.shape[1]),
            )  # fmt: skip
            found.append((gain / evidence.total, int(cells), int(strays)))
        return found

    def steps(self, other: CodeColumn, evidence: Evidence) -> Floats:
        """Newton steps (n, F K) of the cross with another column."""
        out = np.zeros_like(evidence.scores)
        steps_of_cross(
            self.starts, self.order, other.codes, self.fold, evidence.pulls[self.order], evidence.penalty,
            evidence.n_folds, evidence.n_outputs, *_work(other.size, 4 * evidence.scores.shape[1]), out,
        )  # fmt: skip
        return out

    def cross(self, other: CodeColumn) -> CodeColumn:
        """The cross with another column as a column."""
        codes = np.full(len(self.column.codes), -1, dtype=np.int32)
        _, hits, touched = _work(other.size, 0)
        n_cells = number_cells(self.starts, self.order, other.codes, hits, touched, codes)
        return CodeColumn(f"{self.column.name}:{other.name}", codes, int(n_cells))


def _work(size: int, width: int) -> tuple[Floats, NDArray[np.int32], NDArray[np.int32]]:
    return np.zeros((size, width)), np.zeros(size, dtype=np.int32), np.empty(size, dtype=np.int32)


@dataclass
class _Candidate:
    """A cross that may be chosen: a sorted column, which may be a cross itself, and another."""

    left: Sorted
    right: CodeColumn
    places: tuple[int, ...]  # of its columns
    gain: float
    cells: int
    strays: int
    weighed: int  # how many crosses had been taken when it was last weighed

    def weigh(self, evidence: Evidence, now: int) -> None:
        self.gain = self.left.weigh([self.right], evidence)[0][0]
        self.weighed = now


def choose_crosses(
    columns: Sequence[CodeColumn], evidence: Evidence, options: AutoCrosses, n_jobs: int | None = None
) -> list[Chosen]:
    """The crosses worth learning, best first within a round; `evidence` moves along.

    Parameters
    ----------
    columns : what may be crossed
    evidence : Evidence
    options : AutoCrosses
    n_jobs : int or None
        Threads; the result is the same for any number.
    """
    search = _Search(columns, evidence, options, n_jobs)
    for round_ in range(1, options.rounds + 1):
        candidates = search.pairs()
        if round_ > 1 and options.max_order > 2:
            candidates += search.triples()
        if not search.take_best(candidates, round_):
            break
    return search.chosen


class _Search:
    """The state of a search: what was taken, and what need not be weighed again."""

    def __init__(
        self, columns: Sequence[CodeColumn], evidence: Evidence, options: AutoCrosses, n_jobs: int | None
    ) -> None:
        self.columns, self.evidence, self.options, self.n_jobs = columns, evidence, options, n_jobs
        self.chosen: list[Chosen] = []
        self._pairs: list[_Candidate] = []  # those taken
        self._useless: set[tuple[int, ...]] = set()  # crosses of a column with a function of it
        self._taken: set[tuple[int, ...]] = set()
        by_size = sorted(range(len(columns)), key=lambda place: (-columns[place].size, place))
        self._live = [place for place in by_size if columns[place].size > 1]
        self._sorted: dict[int, Sorted] = {}
        self._is_first = True

    def pairs(self) -> list[_Candidate]:
        """All pairs that may gain; the larger alphabet is sorted by, the smaller one summed over."""
        for place in self._live:
            if place not in self._sorted:
                self._sorted[place] = Sorted(self.columns[place], self.evidence)
        jobs = [
            (self._sorted[left], (left,), [right for right in self._live[at + 1 :] if self._is_open((left, right))])
            for at, left in enumerate(self._live)
        ]
        found = self._weigh(jobs)
        if self._is_first:
            found = self._sift(found)
            self._is_first = False
        return found

    def triples(self) -> list[_Candidate]:
        """The chosen pairs with one more column each; a triple is weighed once, however it is made."""
        jobs = []
        made: set[tuple[int, ...]] = set()
        for pair in self._pairs:
            thirds = [
                third
                for third in self._live
                if third not in pair.places
                and _key(*pair.places, third) not in made
                and self._is_open((*pair.places, third))
            ]
            made.update(_key(*pair.places, third) for third in thirds)
            if thirds:
                jobs.append((Sorted(pair.left.cross(pair.right), self.evidence), pair.places, thirds))
        most = FEW_STRAYS * len(self.evidence.y)
        return [candidate for candidate in self._weigh(jobs) if candidate.strays > most]

    def take_best(self, candidates: list[_Candidate], round_: int) -> int:
        """Take candidates, best first, each weighed against all that was taken before; how many were."""
        options, before = self.options, len(self.chosen)
        heap = [(-c.gain, c.places, c) for c in candidates if c.gain > options.threshold]
        heapify(heap)
        while heap and len(self.chosen) < options.max_crosses:
            _, places, candidate = heappop(heap)
            if candidate.weighed < len(self.chosen):
                candidate.weigh(self.evidence, len(self.chosen))
            if candidate.gain <= options.threshold:
                continue
            if heap and candidate.gain < -NEARLY_BEST * heap[0][0] and heap[0][2].weighed < len(self.chosen):
                heappush(heap, (-candidate.gain, places, candidate))
                continue
            self._take(candidate, round_)
        return len(self.chosen) - before

    def _take(self, candidate: _Candidate, round_: int) -> None:
        """Take a candidate if its gain is more than chance, and add its steps to the scores."""
        evidence = self.evidence
        steps = candidate.left.steps(candidate.right, evidence)
        gains = evidence.gains_of_rows(steps)
        error = float(np.sqrt(np.sum((gains - candidate.gain) ** 2))) / evidence.total
        self._taken.add(candidate.places)
        if candidate.gain <= self.options.significance * error:
            return
        names = tuple(self.columns[place].name for place in candidate.places)
        self.chosen.append(Chosen(names, candidate.gain, error, round_, candidate.cells))
        if len(names) == 2:
            self._pairs.append(candidate)
        evidence.add(steps)

    def _is_open(self, places: tuple[int, ...]) -> bool:
        """Whether a cross was not taken yet, and no column in it is a function of another."""
        return _key(*places) not in self._taken and not any(
            _key(*two) in self._useless for two in combinations(places, 2)
        )

    def _weigh(self, jobs: list[tuple[Sorted, tuple[int, ...], list[int]]]) -> list[_Candidate]:
        results = in_threads(
            lambda job: job[0].weigh([self.columns[place] for place in job[2]], self.evidence), jobs, self.n_jobs
        )
        return [
            _Candidate(left, self.columns[right], _key(*places, right), *result, len(self.chosen))
            for (left, places, rights), weighed in zip(jobs, results)
            for right, result in zip(rights, weighed)
        ]

    def _sift(self, found: list[_Candidate]) -> list[_Candidate]:
        """Note which columns are functions of others; of two that are so both ways (a name and its id) keep one."""
        most = FEW_STRAYS * len(self.evidence.y)
        functions = [candidate for candidate in found if candidate.strays <= most]
        self._useless.update(candidate.places for candidate in functions)
        doubles = set()
        for candidate in functions:
            right = next(place for place in candidate.places if self.columns[place] is candidate.right)
            left = sum(candidate.places) - right
            if self._sorted[right].weigh([self.columns[left]], self.evidence)[0][2] <= most:
                doubles.add(max(left, right))
        self._live = [place for place in self._live if place not in doubles]
        return [c for c in found if c.places not in self._useless and not doubles.intersection(c.places)]


def _key(*places: int) -> tuple[int, ...]:
    return tuple(sorted(places))
