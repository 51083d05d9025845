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
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import combinations
from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray

from tabsym.codes.threads import in_threads
from tabsym.wide.gains import add_steps, gain_of_cross, gain_of_cross_in_general, keep_evident, number_cells, sort_rows
from tabsym.wide.losses import Loss
from tabsym.wide.curvature import pulls_of_rows

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

FEW_STRAYS = 0.01
"""A column is a function of another where no larger share of the rows strays from it: their cross says nothing new."""

ALIKE = 1.1
"""Crosses whose numbers of cells differ by no more are looked at for whether they are the same."""

PAIRS_OF_TRIPLE = 2
"""A triple is weighed where so many of its three pairs were taken."""

NEARLY_BEST = 0.5
"""A cross is taken once it is worth this share of what the next one was when last weighed (gains mostly shrink)."""


@dataclass(frozen=True)
class AutoCrosses:
    """How ``interactions="auto"`` chooses crosses.

    Parameters
    ----------
    max_order : int, default 3
        2 for pairs, 3 for triples that extend chosen pairs too.
    rounds : int, default 2
        How often all candidates are weighed; triples enter in the second round.
    folds : int, default 2
        Models are trained without one of these, and crosses weighed on it.
    threshold : float, default 2e-5
        Least gain per row, in units of the loss (with the target scaled to spread 1 where the loss is squared).
    significance : float, default 2.0
        Least gain in its own standard errors over rows.
    penalty : float, default 2.0
        Ridge penalty that shrinks the steps that crosses are weighed by (not what is trained later).
    max_crosses : int, default 40
    max_rows : int, default 200_000
        Larger tables are weighed on a random sample of this many rows.
    """

    max_order: int = 3
    rounds: int = 2
    folds: int = 2
    threshold: float = 2e-5
    significance: float = 2.0
    penalty: float = 2.0
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
    """The rows that crosses are weighed on, under models each of which has not seen one fold.

    Parameters
    ----------
    scores : (n, F K)
        Of all rows under all models, at v K + k output k of the one that has not seen fold v. Moved by `add`.
    fold : (n,) int8
    y, weight : (n,)
        Target in units of training, and weights, empty for none.
    """

    def __init__(
        self, scores: Floats, fold: NDArray[np.int8], y: Floats, weight: Floats, loss: Loss, penalty: float
    ) -> None:
        self.scores, self.fold, self.y, self.weight, self.loss = scores, fold, y, weight, loss
        self.penalty = penalty
        self.n_folds = int(fold.max()) + 1
        self.total = float(weight.sum()) if len(weight) else float(len(y))
        self.pulls = np.empty((len(y), 2 * scores.shape[1]), dtype=np.float32)
        self.find_pulls()
        own = np.square(self.pulls[:, ::2], dtype=np.float64)
        if len(weight):
            own /= weight[:, None]
        self.dispersion = float(own.sum() / self.pulls[:, 1::2].sum(dtype=np.float64))
        """Variance of gradients over their curvature: 1 for a logistic model that holds."""

    def find_pulls(self) -> None:
        """Gradients and curvatures at the scores as they are."""
        n_outputs = self.scores.shape[1] // self.n_folds
        loss, slope = self.loss, np.empty(n_outputs)
        pulls_of_rows(self.scores, self.y, self.weight, loss.code, loss.parameter, n_outputs, slope, self.pulls)

    def cells(self, column: CodeColumn) -> Codes:
        """What the kernels read of a column: codes and folds in one number."""
        return column.codes * np.int32(self.n_folds) + self.fold

    def sums(self, column: CodeColumn) -> Floats:
        """What the kernels work in."""
        return np.zeros((column.size * self.n_folds, self.pulls.shape[1]))


class Sorted:
    """A column whose rows lie together by symbol, ready to be crossed with others."""

    def __init__(self, column: CodeColumn, evidence: Evidence) -> None:
        self.column, self.evidence = column, evidence
        self.starts = np.zeros(column.size + 1, dtype=np.int64)
        order = np.empty(len(column.codes), dtype=np.int32)
        self.order = order[: sort_rows(column.codes, self.starts, order)]

    @cached_property
    def evident(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """`starts` and `order` of the symbols that more than one fold has."""
        starts, order = np.zeros_like(self.starts), np.empty_like(self.order)
        n_symbols, n_rows = keep_evident(self.starts, self.order, self.evidence.fold, starts, order)
        return starts[: n_symbols + 1], order[:n_rows]

    def weigh(self, others: Sequence[CodeColumn]) -> list[tuple[float, float]]:
        """Mean held-out gain per row of the cross with each other column, and its standard error."""
        evidence = self.evidence
        starts, order = self.evident
        pulls = np.take(evidence.pulls, order, axis=0)
        is_plain = evidence.scores.shape[1] == evidence.n_folds == 2  # one output
        found = []
        for other in others:
            cells, sums, penalty = evidence.cells(other), evidence.sums(other), evidence.penalty
            if is_plain:
                gain, variance = gain_of_cross(starts, order, cells, pulls, penalty, sums)
            else:
                folds = evidence.n_folds
                gain, variance = gain_of_cross_in_general(starts, order, cells, pulls, penalty, folds, sums)
            found.append((gain / evidence.total, float(np.sqrt(variance * evidence.dispersion)) / evidence.total))
        return found

    def add(self, other: CodeColumn) -> None:
        """Add the Newton steps of the cross with another column to the scores."""
        evidence = self.evidence
        add_steps(
            self.starts, self.order, evidence.cells(other), evidence.fold, evidence.pulls, evidence.penalty,
            evidence.n_folds, evidence.sums(other), evidence.scores,
        )  # fmt: skip
        evidence.find_pulls()

    def cross(self, other: CodeColumn) -> tuple[CodeColumn, int]:
        """The cross with another column as a column, and how many rows keep the other from being a function."""
        codes = np.full(len(self.column.codes), -1, dtype=np.int32)
        seen = np.zeros((other.size, 2), dtype=np.int64)
        n_cells, strays = number_cells(self.starts, self.order, other.codes, seen, codes)
        return CodeColumn(f"{self.column.name}:{other.name}", codes, int(n_cells)), int(strays)


@dataclass
class _Candidate:
    """A cross that may be chosen: a sorted column, which may be a cross itself, and another."""

    left: Sorted
    right: CodeColumn
    places: tuple[int, ...]  # of its columns
    gain: float
    error: float
    weighed: int  # how many crosses had been taken when it was last weighed


@dataclass(frozen=True)
class _Taken:
    places: tuple[int, ...]
    cells: Sorted


def choose_crosses(
    columns: Sequence[CodeColumn], evidence: Evidence, options: AutoCrosses, n_jobs: int | None = None
) -> list[Chosen]:
    """The crosses worth learning, best first within a round; the scores of `evidence` move along.

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
        self._taken: list[_Taken] = []
        self._closed: set[tuple[int, ...]] = set()  # taken, or not worth weighing again
        by_size = sorted(range(len(columns)), key=lambda place: (-columns[place].size, place))
        self._live = [place for place in by_size if columns[place].size > 1]
        self._sorted = {place: Sorted(columns[place], evidence) for place in self._live[:-1]}

    def pairs(self) -> list[_Candidate]:
        """All pairs but those that lost before; the larger alphabet is sorted by, the smaller one summed over."""
        found = self._weigh(
            [
                (self._sorted[left], (left,), [r for r in self._live[at + 1 :] if _key(left, r) not in self._closed])
                for at, left in enumerate(self._live[:-1])
            ]
        )
        self._closed.update(candidate.places for candidate in found if candidate.gain <= 0)
        return found

    def triples(self) -> list[_Candidate]:
        """Triples that hold `PAIRS_OF_TRIPLE` of the pairs taken, each weighed once."""
        pairs = {taken.places for taken in self._taken if len(taken.places) == 2}
        made: set[tuple[int, ...]] = set()
        jobs = []
        for taken in self._taken:
            thirds = []
            for third in self._live if taken.places in pairs else ():
                key = _key(*taken.places, third)
                held = sum(two in pairs for two in combinations(key, 2))
                if third not in taken.places and key not in self._closed | made and held >= PAIRS_OF_TRIPLE:
                    made.add(key)
                    thirds.append(third)
            jobs.append((taken.cells, taken.places, thirds))
        return self._weigh(jobs)

    def take_best(self, candidates: list[_Candidate], round_: int) -> int:
        """Take candidates, best first, each weighed against all that was taken before; how many were."""
        options, before = self.options, len(self.chosen)
        heap = [(-c.gain, c.places, c) for c in candidates if self._is_evident(c)]
        heapify(heap)
        while heap and len(self.chosen) < options.max_crosses:
            _, places, candidate = heappop(heap)
            if candidate.weighed < len(self.chosen):
                candidate.gain, candidate.error = candidate.left.weigh([candidate.right])[0]
                candidate.weighed = len(self.chosen)
            if not self._is_evident(candidate):
                self._closed.add(places)
                continue
            if heap and candidate.gain < -NEARLY_BEST * heap[0][0] and heap[0][2].weighed < len(self.chosen):
                heappush(heap, (-candidate.gain, places, candidate))
                continue
            self._take(candidate, round_)
        return len(self.chosen) - before

    def _is_evident(self, candidate: _Candidate) -> bool:
        options = self.options
        return candidate.gain > options.threshold and candidate.gain > options.significance * candidate.error

    def _take(self, candidate: _Candidate, round_: int) -> None:
        """Take a candidate if it says something new, and add its steps to the scores."""
        self._closed.add(candidate.places)
        cells, strays = candidate.left.cross(candidate.right)
        if strays <= FEW_STRAYS * len(cells.codes) or any(self._is_same(cells, taken) for taken in self._taken):
            return
        names = tuple(self.columns[place].name for place in candidate.places)
        self.chosen.append(Chosen(names, candidate.gain, candidate.error, round_, cells.size))
        candidate.left.add(candidate.right)
        self._taken.append(_Taken(candidate.places, Sorted(cells, self.evidence)))

    def _is_same(self, cells: CodeColumn, taken: _Taken) -> bool:
        """Whether two crosses part the rows alike, as those of a name and of its id do."""
        if not 1 / ALIKE < cells.size / taken.cells.column.size < ALIKE:
            return False
        few = FEW_STRAYS * len(cells.codes)
        return taken.cells.cross(cells)[1] <= few and Sorted(cells, self.evidence).cross(taken.cells.column)[1] <= few

    def _weigh(self, jobs: list[tuple[Sorted, tuple[int, ...], list[int]]]) -> list[_Candidate]:
        """Weigh crosses of a sorted column, which is made of columns at places, with columns at other places."""
        jobs = [job for job in jobs if job[2]]
        results = in_threads(lambda job: job[0].weigh([self.columns[place] for place in job[2]]), jobs, self.n_jobs)
        return [
            _Candidate(left, self.columns[right], _key(*places, right), *result, len(self.chosen))
            for (left, places, rights), weighed in zip(jobs, results)
            for right, result in zip(rights, weighed)
        ]


def _key(*places: int) -> tuple[int, ...]:
    return tuple(sorted(places))
