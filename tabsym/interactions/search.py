"""Choice of interactions of categorical columns: those with a significant gain on held-out rows.

An additive model is trained without each of a few folds. The gain of an interaction is the decrease of the held-out
loss of a fold by one coefficient per observed combination: one Newton step from that model's linear predictors on its
training rows. (Steps from *out-of-fold* linear predictors would be biased: that of a row in one fold comes from a model
trained on the others, so that the step for a held-out row depends on its own label;
`benchmarks/evidence/constants.md`.)

Interactions are evaluated one after another, the most significant on a sample first. One with a gain is added to the
model, so that a similar one gains little afterwards. The order matters where one interaction can replace another.

Where most of the gain of a pair is that of one category of a few rows, such as "missing", the rows of this category may
be a population of their own, with effects of another size: further interactions are searched within it, which have a
variance of their own in the model (`benchmarks/interactions/README.md`, "Within one category").

`choose_crosses`, from code columns to a list of `Chosen`, is where another criterion, without held-out rows, would go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import combinations, product
from math import comb
from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from tabsym.categories import UNSEEN
from tabsym.design.plan import Within
from tabsym.interactions.gains import CodeColumn, EvaluatedInteraction, HeldOutGains, Sorted
from tabsym.interactions.kernels import sum_gains
from tabsym.jit import in_threads, number_of_threads

MAX_EXCEPTIONS = 0.01
"""A column counts as a function of another with at most this fraction of the rows as exceptions: their interaction
is redundant. So a nearly constant column is in no interaction."""


MAX_TOGETHER = 0.8
"""Two columns differ where fewer of the row pairs of equal category in the one are equal in the other.

Nearly equal columns have far more such pairs; this check avoids most passes over all rows.
"""

HOPELESS = -2.0
"""A pair whose gain on the sample is below this many standard errors is not evaluated on all rows."""

MAX_PAIRS = 5_000
"""The maximum number of pairs that are evaluated on all rows, those that gain most on the sample."""

SLACK = 2.0
"""Candidates whose gain is this many standard errors below the minimum are not evaluated again after others are
chosen."""

THREADED_ROWS = 100_000
"""With fewer rows threads take longer to start than they save (`benchmarks/evidence/constants.md`)."""

MIN_GAIN_FRACTION, MAX_ROW_FRACTION, MIN_ROWS = 0.5, 0.25, 100
"""A pair is one of a single category where this category has at least that fraction of its gain, at most that
fraction of the rows, and at least that many of them."""

PENALTY_WITHIN, ERRORS_WITHIN, ERRORS_ALONE = 0.125, 6.0, 2.0
"""The penalty of steps within one category, over that of others, as effects there are large; and the minimum gain of an
interaction within one category, in standard errors, as the category was chosen by the same rows, and of a single column
there: more columns than rows would fit those by chance."""

_TINY = 1e-300


@dataclass(frozen=True)
class AutoInteractions:
    """Options of the search of interactions: pairs, then triples, by the gain on held-out rows.

    ``interactions="auto"`` is this search, too. In `WideClassifier` and `WideRegressor` with ``alpha="auto"`` it has
    ``folds=4``, ``within_categories=True``, and: for regression ``significance=3.5, false_discoveries=.05,
    penalty=30``; for several classes the same with ``significance=3``; for two classes ``significance=1.5,
    false_discoveries=.05`` (``.2`` from 10,000 rows on), ``triple_share=.3, penalty=15``. Give these to change one of
    them alone.

    Parameters
    ----------
    max_order : int, default 3
        2 for pairs, 3 for triples too, where all three of their pairs were chosen.
    rounds : int, default 1
        How often to go through the pairs, then the triples; those not chosen are evaluated again.
    folds : int, default 2
        Models are trained without one of these, and interactions evaluated on it.
    threshold : float, default 2e-5
        Least gain per row, in units of the loss (with the target standardized where the loss is squared).
    significance : float, default 3.0
        Least gain in standard errors, by the squares of the gradients of held-out rows.
    false_discoveries : float, default 0.0
        Bound on the false discovery rate of the chosen interactions (Benjamini and Hochberg): the more pairs there are,
        and the fewer of them gain, the more standard errors each must gain. 0: `significance` alone.
    triple_share : float, default 0.0
        Least gain of a triple, as a fraction of the largest gain of a pair. Triples are many, and have many levels.
    penalty : float, default 7.0
        Ridge penalty of the steps by which interactions are evaluated (not of the model that is trained later).
    max_crosses : int, default 100
        The most interactions that are chosen.
    max_rows : int, default 200_000
        Larger tables are evaluated on a random sample of this many rows.
    within_categories : bool, default False
        Whether to look for pairs within one category, of its rows only, where a chosen pair is mostly of that category
        (`interactions="auto"` with ``alpha="auto"`` does).

    Examples
    --------
    >>> from tabsym import WideClassifier
    >>> from tabsym.interactions import AutoInteractions
    >>> WideClassifier(interactions=AutoInteractions(max_order=2, max_crosses=5))
    WideClassifier(interactions=AutoInteractions(...))
    """

    max_order: int = 3
    rounds: int = 1
    folds: int = 2
    threshold: float = 2e-5
    significance: float = 3.0
    false_discoveries: float = 0.0
    triple_share: float = 0.0
    penalty: float = 7.0
    max_crosses: int = 100
    max_rows: int = 200_000
    within_categories: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.within_categories, bool):
            raise ValueError(
                f"AutoInteractions(within_categories={self.within_categories!r}) is not possible; use True or False."
            )
        if self.within_categories and self.max_order == 2:
            raise ValueError(
                "AutoInteractions(within_categories=True, max_order=2) is not possible, as pairs within one category "
                "are of three columns; use max_order=3."
            )
        for field in fields(self):
            if field.name not in _MINIMA:
                continue
            value, minimum = getattr(self, field.name), _MINIMA[field.name]
            kind, word = (Integral, "a whole number") if isinstance(field.default, int) else (Real, "a number")
            good = isinstance(value, kind) and not isinstance(value, bool) and minimum <= float(value) < np.inf
            if not good or (field.name == "penalty" and value == 0):
                raise ValueError(
                    f"AutoInteractions({field.name}={value!r}) is not possible; use {word} "
                    f"{'above' if field.name == 'penalty' else 'of at least'} {minimum}."
                )
        if self.false_discoveries >= 1:
            raise ValueError(
                f"AutoInteractions(false_discoveries={self.false_discoveries!r}) is not possible; use a share below 1."
            )
        if self.max_order > 3:
            raise ValueError(f"AutoInteractions(max_order={self.max_order}) is not possible; use 2 or 3.")


_MINIMA: dict[str, float] = {
    "max_order": 2,
    "rounds": 1,
    "folds": 2,
    "threshold": 0,
    "significance": 0,
    "false_discoveries": 0,
    "triple_share": 0,
    "penalty": 0,
    "max_crosses": 1,
    "max_rows": 100,
}


FOR_REGRESSION = AutoInteractions(
    significance=3.5, false_discoveries=0.05, folds=4, penalty=30.0, within_categories=True
)
"""Default of "auto" with ``alpha="auto"``, for regression: more folds leave more rows to learn from, and with a larger
penalty interactions of many levels gain too; `false_discoveries` bounds those of many columns
(`benchmarks/interactions/README.md`)."""


FOR_CLASSES = replace(FOR_REGRESSION, significance=3.0)
"""The same for several classes: of covtype_small's interactions more are found, and the log-loss is lower
(`benchmarks/interactions/README.md`)."""


FOR_BINARY = replace(FOR_REGRESSION, penalty=15.0, significance=1.5, triple_share=0.3)
"""The same for two classes: ``alpha="auto"`` shrinks weak effects, so that more interactions can be let in.
`false_discoveries` keeps out those of additive data; `triple_share` halves the time of a fit with many triples
(`benchmarks/evidence/constants.md`)."""


MANY_ROWS = 10_000
FOR_MANY_ROWS = replace(FOR_BINARY, false_discoveries=0.2)
"""The same for at least MANY_ROWS rows, where standard errors are reliable and a higher false discovery rate is
harmless (`benchmarks/evidence/constants.md`)."""


@dataclass(frozen=True)
class Chosen:
    """A chosen interaction: its columns, gain per row with its standard error, round, and number of observed levels.

    `within`: the category whose rows alone it is of, if any; `choose_crosses` has its code in the table for it.
    """

    columns: tuple[str, ...]
    gain: float
    error: float
    round: int
    coefs: int
    within: Within | None = None


@dataclass(frozen=True)
class _Candidate:
    """A candidate interaction: a sorted column, which may be an interaction itself, and one more column.

    `within`: the index of a column and the code, in the search, of the one category in which both columns interact.
    """

    left: Sorted
    right: CodeColumn
    indices: tuple[int, ...]  # of its columns
    within: tuple[int, int] | None = None

    @property
    def key(self) -> tuple[int, ...]:
        """What it is known by among those that are chosen."""
        return self.indices if self.within is None else (*self.indices, *self.within)


@dataclass(frozen=True)
class _Taken:
    cells: Sorted
    gain: float


def choose_crosses(
    columns: Sequence[CodeColumn], held_out: HeldOutGains, options: AutoInteractions, n_jobs: int | None = None
) -> list[Chosen]:
    """The interactions to add, in the order they were found; `held_out`, trained before, is updated by them.

    Parameters
    ----------
    columns : the columns that may interact
    held_out : HeldOutGains
    options : AutoInteractions
    n_jobs : int or None
        Threads; the result is the same for any number.
    """
    search = _Search(columns, held_out, options, n_jobs)
    for round_ in range(1, options.rounds + 1):
        before = len(search.chosen)
        search.take(search.pairs(), round_)
        if options.max_order > 2:
            search.take(search.triples(), round_)
        if options.max_order > 2 and options.within_categories:
            search.take(search.within_categories(), round_)
        if len(search.chosen) == before:
            break
    return search.chosen


class _Search:
    """The state of a search: the interactions chosen so far.

    Columns are identified by their indices among those of several categories, the largest first; of equivalent ones,
    such as a name and its id, one is kept.
    """

    def __init__(
        self, columns: Sequence[CodeColumn], held_out: HeldOutGains, options: AutoInteractions, n_jobs: int | None
    ) -> None:
        self.held_out, self.options = held_out, options
        self.n_jobs = n_jobs if len(held_out.fold) >= THREADED_ROWS else 1
        self.chosen: list[Chosen] = []
        self._rank = {column.name: rank for rank, column in enumerate(columns)}
        self._sorted: list[Sorted] = []  # without those that partition the rows as one before them does
        for column in sorted(columns, key=lambda column: -column.size):
            cells = Sorted(column, held_out.copies)
            if column.size > 1 and not any(_is_same(cells, earlier) for earlier in self._sorted):
                self._sorted.append(cells)
        self.columns = [sorted_column.column for sorted_column in self._sorted]
        self._taken: dict[tuple[int, ...], _Taken] = {}
        self._within: list[tuple[tuple[int, int], int]] = []  # categories that pairs are of, with the other column
        self._errors = options.significance  # minimum gain of an interaction in standard errors

    def pairs(self) -> list[_Candidate]:
        """Pairs not yet chosen that are not hopeless on a sample, the most significant first."""
        candidates = [
            _Candidate(self._sorted[left], self.columns[right], (left, right))
            for left, right in combinations(range(len(self.columns)), 2)
            if (left, right) not in self._taken
        ]
        evident = in_threads(partial(self._in_errors, thinned=True), candidates, self.n_jobs)
        order = sorted(range(len(candidates)), key=lambda index: (-evident[index], index))
        return [candidates[index] for index in order[:MAX_PAIRS] if evident[index] > HOPELESS]

    def triples(self) -> list[_Candidate]:
        """Triples of which all three pairs were chosen, those whose pairs gained most first."""
        gains = {indices: taken.gain for indices, taken in self._taken.items() if len(indices) == 2}
        candidates: list[tuple[float, _Candidate]] = []
        for (first, second), third in product(gains, range(len(self.columns))):
            indices, pairs = (first, second, third), [(first, second), (first, third), (second, third)]
            if second < third and indices not in self._taken and all(pair in gains for pair in pairs):
                cells = self._taken[first, second].cells
                candidates.append((sum(gains[pair] for pair in pairs), _Candidate(cells, self.columns[third], indices)))
        return [candidate for _, candidate in sorted(candidates, key=lambda scored: (-scored[0], scored[1].indices))]

    def within_categories(self) -> list[_Candidate]:
        """Pairs within the category that a chosen pair is of, of this pair's other column and any third one.

        Effects of single columns within it that gain are added to the models first: those of the chosen pair were
        shrunk, and would be credited to pairs.
        """
        candidates: dict[tuple[int, ...], _Candidate] = {}
        for column, code in dict.fromkeys(category for category, _ in self._within):
            same = CodeColumn("", np.zeros(len(self.held_out.fold), dtype=np.int32), 1)
            for index in (number for number in range(len(self.columns)) if number != column):
                left = Sorted(self._restricted(index, column, code), self.held_out.copies)
                evaluated = self._evaluate(_Candidate(left, same, (index,), (column, code)))
                if evaluated.gain > ERRORS_ALONE * evaluated.error:
                    self.held_out.add(evaluated)
                else:
                    self.held_out.drop(evaluated)
        for (column, code), partner in self._within:
            left = Sorted(self._restricted(partner, column, code), self.held_out.copies)
            for third in set(range(len(self.columns))) - {column, partner}:
                indices = (min(partner, third), max(partner, third))
                candidate = _Candidate(left, self.columns[third], indices, (column, code))
                if candidate.key not in self._taken:
                    candidates.setdefault(candidate.key, candidate)
        return [candidates[key] for key in sorted(candidates)]

    def _restricted(self, index: int, column: int, code: int) -> CodeColumn:
        """A column in the rows of one category of another."""
        whole, within = self.columns[index], self.columns[column].codes == code
        return replace(whole, codes=np.where(within, whole.codes, np.int32(UNSEEN)))

    def take(self, candidates: list[_Candidate], round_: int) -> None:
        """Evaluate candidates one by one given those chosen before, and choose those that gain.

        One batch per number of threads at a time; after one is chosen, the others are evaluated again.
        """
        n_threads = number_of_threads(self.n_jobs)
        self._errors, fdr = self.options.significance, self.options.false_discoveries
        are_within = bool(candidates) and candidates[0].within is not None
        if candidates and (fdr or are_within):
            gains = np.array(in_threads(self._in_errors, candidates, self.n_jobs))
            are_pairs = len(candidates[0].indices) == 2 and not are_within
            n_tests = comb(len(self.columns), 2) if are_pairs else len(candidates)
            if are_within:
                self._errors = ERRORS_WITHIN
            else:
                self._errors = max(self._errors, min_errors(gains, fdr, n_tests))
            candidates = [
                candidates[at] for at in np.argsort(-gains, kind="stable") if gains[at] > self._errors - SLACK
            ]
        while candidates and len(self.chosen) < self.options.max_crosses:
            n_done = 0
            evaluated = in_threads(self._evaluate, candidates[:n_threads], n_threads)
            for candidate, evaluation in zip(candidates, evaluated):
                n_done += 1
                if self._is_evident(candidate, evaluation) and self._take(candidate, evaluation, round_):
                    break
                self.held_out.drop(evaluation)
            candidates = candidates[n_done:]

    def _evaluate(self, candidate: _Candidate, *, thinned: bool = False) -> EvaluatedInteraction:
        penalty = self.options.penalty
        if candidate.within is not None:
            penalty *= PENALTY_WITHIN
        return self.held_out.evaluate(candidate.left, candidate.right, penalty, thinned=thinned)

    def _in_errors(self, candidate: _Candidate, *, thinned: bool = False) -> float:
        """The gain of a candidate on all rows, or on a sample, in standard errors."""
        evaluated = self._evaluate(candidate, thinned=thinned)
        self.held_out.drop(evaluated)
        return evaluated.gain / max(evaluated.error, _TINY)

    def _is_evident(self, candidate: _Candidate, evaluated: EvaluatedInteraction) -> bool:
        """Whether a candidate gains enough, and significantly; triples by a part of what the best pair gains."""
        min_gain = self.options.threshold
        if len(candidate.indices) == 3 and self.options.triple_share:
            largest = max(taken.gain for indices, taken in self._taken.items() if len(indices) == 2)
            min_gain = max(min_gain, self.options.triple_share * largest)
        return evaluated.gain > min_gain and evaluated.gain > self._errors * evaluated.error

    def _take(self, candidate: _Candidate, evaluated: EvaluatedInteraction, round_: int) -> bool:
        """Choose a candidate unless it is redundant: add its steps to the linear predictors."""
        left, right = candidate.left, candidate.right
        if left.determines(right, MAX_EXCEPTIONS * left.n_rows):
            return False
        cells = Sorted(
            CodeColumn(f"{left.column.name}:{right.name}", evaluated.codes, evaluated.n_cells), self.held_out.copies
        )
        if any(_is_same(cells, taken.cells) for taken in self._taken.values()):
            return False
        names = sorted((self.columns[index].name for index in candidate.indices), key=self._rank.__getitem__)
        within = None
        if candidate.within is not None:
            column, code = candidate.within
            categories = self.columns[column].categories
            assert categories is not None
            within = Within(self.columns[column].name, int(categories[code]))
        elif len(names) == 2 and self.options.within_categories:
            self._note_category(candidate, evaluated)
        self.chosen.append(Chosen(tuple(names), evaluated.gain, evaluated.error, round_, cells.column.size, within))
        self.held_out.add(evaluated)
        self._taken[candidate.key] = _Taken(cells, evaluated.gain)
        return True

    def _note_category(self, pair: _Candidate, evaluated: EvaluatedInteraction) -> None:
        """Note the category that a pair is of, if there is one."""
        indices = pair.indices
        if all(self.columns[index].categories is None for index in indices):
            return
        rows, copies = pair.left.rows[1], self.held_out.copies
        gains = self.held_out.gains_of_rows(evaluated, rows)
        for index, partner in (indices, indices[::-1]):
            column = self.columns[index]
            if column.categories is None:
                continue
            by_category = np.zeros(column.size)
            sum_gains(rows, column.codes, gains, by_category)
            by_category[column.categories < 0] = -np.inf
            category = int(by_category.argmax())
            in_category = column.codes == category
            n_rows = int(np.count_nonzero(in_category) if copies is None else copies[in_category].sum())
            is_small = MIN_ROWS <= n_rows <= MAX_ROW_FRACTION * self.held_out.n_rows
            if is_small and by_category[category] >= MIN_GAIN_FRACTION * gains.sum():
                self._within.append(((index, category), partner))


def min_errors(gains: NDArray[np.float64], fdr: float, n_tests: int) -> float:
    """The minimum gain in standard errors that bounds the false discovery rate (Benjamini and Hochberg 1995, step 1).

    Parameters
    ----------
    gains : (c,)
        Of the candidates, in standard errors.
    fdr : float
        The bound.
    n_tests : int
        How many candidates there were, with those that were left out before.
    """
    allowed = fdr * np.arange(1, len(gains) + 1) / n_tests
    good = np.flatnonzero(norm.sf(np.sort(gains)[::-1]) <= allowed)
    return float(norm.isf(allowed[good[-1] if len(good) else 0]))


def _is_same(cells: Sorted, other: Sorted) -> bool:
    """Whether two columns, or interactions, partition the rows alike."""
    max_exceptions = MAX_EXCEPTIONS * cells.n_rows
    if abs(cells.n_rows - other.n_rows) > max_exceptions:  # one is within a category
        return False
    if abs(cells.column.size - other.column.size) > max_exceptions:  # an exception adds or removes a category
        return False
    if other.fraction_together(cells.column) < MAX_TOGETHER:
        return False
    return other.determines(cells.column, max_exceptions) and cells.determines(other.column, max_exceptions)
