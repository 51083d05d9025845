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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from heapq import heapify, heappop, heappush
from itertools import combinations
from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray

from tabsym.codes.threads import in_threads
from tabsym.wide.gains import add_steps, gain_of_cross, number_cells, sort_rows
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
    folds : int, default 2
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
    folds: int = 2
    threshold: float = 2e-5
    significance: float = 2.0
    penalty: float = 2.0
    sweeps: int = 0
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
    "folds": 1,
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


class Part:
    """The rows under a model that has not seen some of them.

    Parameters
    ----------
    scores : (n, K)
        Of all rows under that model. Moved by `add`.
    held_out : (n,) int8
        1 for the rows that the model has not seen.
    y, weight : (n,)
        Target in units of training, and weights, empty for none.
    """

    def __init__(self, scores: Floats, held_out: NDArray[np.int8], y: Floats, weight: Floats, loss: Loss) -> None:
        self.scores, self.held_out, self.y, self.weight, self.loss = scores, held_out, y, weight, loss
        self.total = float((weight * held_out).sum()) if len(weight) else float(held_out.sum())
        self.pulls = np.empty((len(y), 2 * scores.shape[1]), dtype=np.float32)
        self.find_pulls()

    def find_pulls(self) -> None:
        """Gradients and curvatures at the scores as they are."""
        loss, k = self.loss, self.scores.shape[1]
        slope, bend = np.empty(k), np.empty(k)
        pulls_of_rows(self.scores, self.y, self.weight, loss.code, loss.parameter, slope, bend, self.pulls)


class Sorted:
    """A column whose rows lie together by symbol in each part, ready to be crossed with others."""

    def __init__(self, column: CodeColumn, parts: Sequence[Part]) -> None:
        self.column, self.parts = column, parts
        self.rows = [self._sort(part) for part in parts]

    def _sort(self, part: Part) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        starts = np.zeros(2 * self.column.size + 1, dtype=np.int64)
        order = np.empty(len(self.column.codes), dtype=np.int32)
        return starts, order[: sort_rows(self.column.codes, part.held_out, starts, order)]

    def weigh(self, other: CodeColumn, penalty: float) -> tuple[float, float]:
        """The cross with another column: mean gain per held-out row, and its standard error over rows."""
        gain = squares = total = 0.0
        for (starts, order), part in zip(self.rows, self.parts):
            sums = np.zeros((other.size, part.pulls.shape[1]))
            more, more_squares = gain_of_cross(starts, order, other.codes, part.pulls, penalty, sums)
            gain, squares, total = gain + more, squares + more_squares, total + part.total
        mean = gain / total
        return mean, float(np.sqrt(max(squares - gain * mean, 0.0))) / total

    def add(self, other: CodeColumn, penalty: float) -> None:
        """Add the Newton steps of the cross with another column to the scores of every part."""
        for (starts, order), part in zip(self.rows, self.parts):
            sums = np.zeros((other.size, part.pulls.shape[1]))
            add_steps(starts, order, other.codes, part.pulls, penalty, sums, part.scores)
            part.find_pulls()

    def cross(self, other: CodeColumn) -> tuple[CodeColumn, int]:
        """The cross with another column as a column, and how many rows keep the other from being a function."""
        codes = np.full(len(self.column.codes), -1, dtype=np.int32)
        starts, order = self.rows[0]
        n_cells, strays = number_cells(starts, order, other.codes, np.zeros((other.size, 2), dtype=np.int64), codes)
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
    columns: Sequence[CodeColumn], parts: Sequence[Part], options: AutoCrosses, n_jobs: int | None = None
) -> list[Chosen]:
    """The crosses worth learning, best first within a round; the scores of `parts` move along.

    Parameters
    ----------
    columns : what may be crossed
    parts : the same rows, each with others held out
    options : AutoCrosses
    n_jobs : int or None
        Threads; the result is the same for any number.
    """
    search = _Search(columns, parts, options, n_jobs)
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
        self, columns: Sequence[CodeColumn], parts: Sequence[Part], options: AutoCrosses, n_jobs: int | None
    ) -> None:
        self.columns, self.parts, self.options, self.n_jobs = columns, parts, options, n_jobs
        self.chosen: list[Chosen] = []
        self._taken: list[_Taken] = []
        self._closed: set[tuple[int, ...]] = set()  # taken, or found to say nothing new
        by_size = sorted(range(len(columns)), key=lambda place: (-columns[place].size, place))
        self._live = [place for place in by_size if columns[place].size > 1]
        self._sorted = {place: Sorted(columns[place], parts) for place in self._live[:-1]}

    def pairs(self) -> list[_Candidate]:
        """All pairs; the larger alphabet is sorted by, the smaller one summed over."""
        return self._weigh(
            (self._sorted[left], right, _key(left, right))
            for left, right in combinations(self._live, 2)
            if _key(left, right) not in self._closed
        )

    def triples(self) -> list[_Candidate]:
        """The pairs taken with one more column each; a triple is weighed once, however it is made."""
        made: dict[tuple[int, ...], tuple[Sorted, int, tuple[int, ...]]] = {}
        for pair in self._taken:
            for third in self._live if len(pair.places) == 2 else ():
                key = _key(*pair.places, third)
                if third not in pair.places and key not in self._closed:
                    made.setdefault(key, (pair.cells, third, key))
        return self._weigh(made.values())

    def take_best(self, candidates: list[_Candidate], round_: int) -> int:
        """Take candidates, best first, each weighed against all that was taken before; how many were."""
        options, before = self.options, len(self.chosen)
        heap = [(-c.gain, c.places, c) for c in candidates if self._is_evident(c)]
        heapify(heap)
        while heap and len(self.chosen) < options.max_crosses:
            _, places, candidate = heappop(heap)
            if candidate.weighed < len(self.chosen):
                candidate.gain, candidate.error = candidate.left.weigh(candidate.right, options.penalty)
                candidate.weighed = len(self.chosen)
            if not self._is_evident(candidate):
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
        if strays <= FEW_STRAYS * len(cells.codes) or any(self._same(cells, taken) for taken in self._taken):
            return
        names = tuple(self.columns[place].name for place in candidate.places)
        self.chosen.append(Chosen(names, candidate.gain, candidate.error, round_, cells.size))
        candidate.left.add(candidate.right, self.options.penalty)
        self._taken.append(_Taken(candidate.places, Sorted(cells, self.parts)))

    def _same(self, cells: CodeColumn, taken: _Taken) -> bool:
        """Whether two crosses part the rows alike, as those of a name and of its id do."""
        few = FEW_STRAYS * len(cells.codes)
        if not 0.5 < cells.size / taken.cells.column.size < 2.0:
            return False
        joint, strays = taken.cells.cross(cells)
        return strays <= few and Sorted(cells, self.parts[:1]).cross(taken.cells.column)[1] <= few

    def _weigh(self, crosses: Iterable[tuple[Sorted, int, tuple[int, ...]]]) -> list[_Candidate]:
        jobs, penalty = list(crosses), self.options.penalty
        results = in_threads(lambda job: job[0].weigh(self.columns[job[1]], penalty), jobs, self.n_jobs)
        return [
            _Candidate(left, self.columns[right], key, *result, len(self.chosen))
            for (left, right, key), result in zip(jobs, results)
        ]


def _key(*places: int) -> tuple[int, ...]:
    return tuple(sorted(places))
