"""Selection of the components of a stack: boosters are evaluated on held-out rows, from margins out of fold.

Each row's margin is by a wide model that has not seen it, also within the training rows of a fold: a booster that
starts from margins of rows which the wide model was trained on relies on them too much, and learns little of the rest.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tabsym.encoders.folds import Split
from tabsym.frame.frames import take_rows
from tabsym.losses.loss import Loss
from tabsym.messages import warn_user
from tabsym.stacking.layer import Layer, Plan, StackRows, margins_of, rounds_of

Floats = NDArray[np.float64]
Indices = NDArray[Any]


@dataclass(frozen=True)
class Learner:
    """A wide model, unfitted, and the rows that it learns from."""

    wide: Any
    X: Any
    y: NDArray[Any]
    weight: Floats | None
    classes: NDArray[Any] | None

    def fit(self, train: Indices) -> Any:
        """A clone fitted on some rows, for its margins only.

        Of clones that did not converge, or read codes as numbers, there is no warning: the model of all rows, which has
        the same options, gives it.
        """
        weight = None if self.weight is None else self.weight[train]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = clone(self.wide)
            model._only_predicts = True  # without what else a fit computes
            return model.fit(take_rows(self.X, train), self.y[train], sample_weight=weight)

    def margins(self, model: Any, rows: Indices) -> Floats:
        """Of a fitted clone, of some rows."""
        return margins_of(model, take_rows(self.X, rows), self.classes)


class OutOfFoldMargins:
    """Margins out of fold, each fold's by a clone that has seen its training rows, made on first use.

    Variances, interactions and intervals are the clone's, too: those of all rows leak the targets of the held-out rows.
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
    def rows(self) -> Indices:
        """The rows that a fold holds out, ascending: a splitter over time leaves the first ones out."""
        return np.sort(np.concatenate([test for _, test in self.splits]))

    def margins(self) -> Floats:
        """The margin (m, K) of each of these rows, to train on."""
        parts = [self.margins_of(fold) for fold in range(len(self.splits))]
        return np.concatenate(parts)[np.argsort(np.concatenate([test for _, test in self.splits]))]


class NestedCV:
    """For each fold the margins of its training rows, by models that have seen neither them nor the fold.

    A booster that is to be evaluated on a fold must not be trained on margins that know its targets: what they hold of
    the fold's rows comes back with the sign turned, and stacks look worse than they are (benchmarks/stacking). There
    are k - 1 models for each evaluated fold; two folds share a model. They are fitted from scratch, as clones are,
    so that their margins serve the booster of all rows, too, and no further clones are fitted for it.

    Of a splitter over time, a fold's training rows with margins are those of the folds before, whose models have not
    seen it anyway.
    """

    def __init__(self, out_of_fold: OutOfFoldMargins) -> None:
        if len(out_of_fold.splits) < 3:
            raise ValueError(
                f"early_stopping='folds' needs three folds, and cv makes {len(out_of_fold.splits)}; use cv=3 or more, "
                "or hold rows out by early_stopping=0.1."
            )
        self.out_of_fold, self._learner, self._splits = out_of_fold, out_of_fold.learner, out_of_fold.splits
        self._known: dict[tuple[int, int], Floats] = {}
        self._known_parts: dict[int, dict[int, Indices]] = {}

    def rows(self, fold: int) -> Indices:
        """The training rows of a fold that have margins: without those whose model would have one class to learn of."""
        parts = list(self._parts(fold).values())
        return np.sort(np.concatenate(parts)) if parts else np.arange(0)

    def margins(self, fold: int) -> Floats:
        """Margins (m, K) of these rows."""
        parts = self._parts(fold)
        margins = np.concatenate([self._of(other_fold, fold) for other_fold in parts])
        return margins[np.argsort(np.concatenate(list(parts.values())))]

    def of_all(self, evaluated: list[int]) -> Floats:
        """Margins (m, K) of all rows that folds hold out, by models that the `evaluated` folds needed anyway.

        Each row's by a model that has not seen it: of the rows of an evaluated fold by its own clone, of the others by
        the model that has not seen the first evaluated fold either, or by the fold's clone where that model has no
        margins for some of its rows.
        """
        first = evaluated[0]
        parts, margins = self._parts(first), []
        for fold, (_, test) in enumerate(self._splits):
            is_known = fold in parts and len(parts[fold]) == len(test) and fold not in evaluated
            margins.append(self._of(fold, first) if is_known else self.out_of_fold.margins_of(fold))
        return np.concatenate(margins)[np.argsort(np.concatenate([test for _, test in self._splits]))]

    def _parts(self, fold: int) -> dict[int, Indices]:
        """The training rows of a fold by the other fold that holds them out.

        Without other folds whose model, which has seen neither fold, would have one class to learn of.
        """
        if fold not in self._known_parts:
            parts = self._known_parts[fold] = {}
            for other_fold, (_, test) in enumerate(self._splits):
                rows = test[np.isin(test, self._splits[fold][0], assume_unique=True)]
                if other_fold == fold or not len(rows):
                    continue
                y = self._learner.y[self._rows_without(other_fold, fold)]
                if len(y) and (self._learner.classes is None or not (y == y[0]).all()):
                    parts[other_fold] = rows
        return self._known_parts[fold]

    def _rows_without(self, fold: int, other_fold: int) -> Indices:
        """The rows that a fold trains on and the other does not hold out."""
        return np.setdiff1d(self._splits[fold][0], self._splits[other_fold][1], assume_unique=True)

    def _of(self, fold: int, other_fold: int) -> Floats:
        """Margins of those of a fold's rows that the other trains on, by a model that has seen neither."""
        if (fold, other_fold) not in self._known:
            train = self._rows_without(fold, other_fold)
            if len(train) == len(self._splits[fold][0]):  # a fold over time: its model knows nothing of later ones
                return self._learner.margins(self.out_of_fold.clone(fold), self._parts(other_fold)[fold])
            model = self._learner.fit(train)
            self._known[fold, other_fold] = self._learner.margins(model, self._parts(other_fold)[fold])
            if np.array_equal(train, self._rows_without(other_fold, fold)):
                self._known[other_fold, fold] = self._learner.margins(model, self._parts(fold)[other_fold])
        return self._known[fold, other_fold]


MIN_HELD_OUT_ROWS = 100
"""The number of held-out rows at which no further fold is evaluated: each costs as many fits of the wide model again.
On 7,000 rows or five folds the stack was no better beyond noise on nine tables (benchmarks/stacking)."""


@dataclass(frozen=True)
class ValidationSplit:
    """Rows to evaluate a booster on, and rows to train it on, whose margins are made on first use.

    `plain`: those to train on, without margins; `y`: the target of those that get them.
    """

    held_out: StackRows
    plain: StackRows
    y: NDArray[Any]
    make: Callable[[], StackRows]

    @cached_property
    def seen(self) -> StackRows:
        """The rows to train on, with margins."""
        return self.make()


def folds_to_evaluate(nested: NestedCV) -> list[int]:
    """The folds to evaluate on, as many as hold enough rows.

    Of a splitter over time the latest folds, which have most rows to train on. Folds whose training rows lack a class
    come last.
    """
    out_of_fold = nested.out_of_fold
    folds = list(range(len(out_of_fold.splits)))
    if len(out_of_fold.rows) < len(out_of_fold.learner.y):
        folds.sort(key=lambda fold: -len(nested.rows(fold)))
    y, classes = out_of_fold.learner.y, out_of_fold.learner.classes
    n_classes = 0 if classes is None else len(classes)
    folds.sort(key=lambda fold: not can_be_learned(y[nested.rows(fold)], n_classes))
    sizes = np.cumsum([len(out_of_fold.splits[fold][1]) for fold in folds])
    return folds[: 1 + int(np.searchsorted(sizes, MIN_HELD_OUT_ROWS))]


def splits_of_folds(plain: StackRows, nested: NestedCV, folds: list[int]) -> list[ValidationSplit]:
    """Validation splits of folds, trained on margins that know nothing of the fold; `plain`: rows without margins."""
    out_of_fold = nested.out_of_fold

    def split_of(fold: int) -> ValidationSplit:
        train, test = out_of_fold.splits[fold]
        with_margins = nested.rows(fold)
        return ValidationSplit(
            replace(taken(plain, test), margins=out_of_fold.margins_of(fold)),
            taken(plain, train),
            plain.y[with_margins],
            lambda: replace(taken(plain, with_margins), margins=nested.margins(fold)),
        )

    return [split_of(fold) for fold in folds]


def taken(rows: StackRows, positions: NDArray[Any]) -> StackRows:
    """Some of the rows."""
    weight = None if rows.weight is None else rows.weight[positions]
    return StackRows(take_rows(rows.X, positions), rows.y[positions], rows.margins[positions], weight)


STANDARD_ERRORS = 0.5
"""The gain over the wide model, in standard errors, from which a booster is taken. On a quarter of the rows, 1 leaves
out boosters that help on compas and amazon; on three times as many rows, 1 was best (benchmarks/stacking)."""


@dataclass(frozen=True)
class PairedGains:
    """Losses of rows, and gains over a baseline: `sums` of w, w loss, w gain, w^2, w^2 gain, w^2 gain^2."""

    sums: Floats

    @classmethod
    def of(cls, losses: Floats, baseline: Floats, rows: StackRows) -> PairedGains:
        """From losses (n,), and those (n,) of the baseline."""
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        gain, square = baseline - losses, weight**2
        parts = [weight, weight * losses, weight * gain, square, square * gain, square * gain**2]
        return cls(np.array([part.sum() for part in parts]))

    @classmethod
    def total(cls, parts: Sequence[PairedGains]) -> PairedGains:
        """Of all rows of the parts."""
        return cls(np.sum([part.sums for part in parts], axis=0))

    @property
    def loss(self) -> float:
        """The mean loss."""
        return float(self.sums[1] / self.sums[0])

    @property
    def gain(self) -> float:
        """The mean gain."""
        return float(self.sums[2] / self.sums[0])

    @property
    def error(self) -> float:
        """The standard error of the gain; of one row there is none."""
        gain = self.gain
        if self.sums[0] ** 2 < 1.5 * self.sums[3]:
            return np.inf
        square = self.sums[5] - 2 * gain * self.sums[4] + gain**2 * self.sums[3]
        return float(np.sqrt(max(square, 0.0)) / self.sums[0])

    @property
    def is_certain(self) -> bool:
        """Whether the gain is worth what it takes."""
        return self.gain > STANDARD_ERRORS * self.error


Criterion = Callable[[Floats, NDArray[Any]], Floats]
"""(scores (n, K), target (n,)) -> the loss of each row (n,)."""

WEIGHTS = [position / 10 for position in range(11)]
"""Of the booster alone, in the blend."""
STAGES = 40
"""The number of numbers of rounds that are compared."""


@dataclass(frozen=True)
class Component:
    """A component of the stack: a plan after some rounds (None: the wide model alone), and its weight."""

    plan: Plan | None
    n_rounds: int
    weight: float

    @property
    def mode(self) -> str:
        """How it starts from the wide model; "wide" for that alone."""
        return "wide" if self.plan is None else self.plan.mode


@dataclass(frozen=True)
class Selection:
    """One component, or two, the larger weight first; and what was compared."""

    components: list[Component]
    table: pd.DataFrame | None


@dataclass(frozen=True)
class _Evaluated:
    """A component, its scores for the held-out rows of each split, their losses, and the gains of all splits.

    `n_categories`: the maximum that a column of the booster had.
    """

    component: Component
    scores: list[Floats]
    losses: list[Floats]
    gains: PairedGains
    n_categories: int = 0


@dataclass(frozen=True)
class _Curve:
    """A booster of a split: the losses of the held-out rows by rounds, and their scores where the loss is least."""

    layer: Layer
    split: ValidationSplit
    every: int
    gains: dict[int, PairedGains]
    best: tuple[int, Floats]

    def at(self, rounds: int) -> PairedGains:
        """After the last round, where a booster found nothing more to split before."""
        return self.gains[self._position(rounds)]

    def scores(self, rounds: int) -> Floats:
        """Scores (n, K) of the held-out rows."""
        rows, wanted = self.split.held_out, self._position(rounds)
        if wanted == self.best[0]:  # of one split always
            return self.best[1]
        return next(scores for done, scores in self.layer.path(rows.X, rows.margins, self.every) if done == wanted)

    def _position(self, rounds: int) -> int:
        return max((count for count in self.gains if count <= rounds), default=min(self.gains))


MIN_ROWS_AGAIN = 1_000
"""With fewer rows no second plan is tried: it took a sixth of a fit and gained nothing beyond noise
(benchmarks/stacking)."""

MAX_NATIVE_CATEGORIES = 100
"""The booster alone gets other codes only where a column has more categories than this: with fewer, splits by sets of
them lost nothing to splits by their ranks, and the second fit took a fifth of the time (benchmarks/stacking)."""


def select(
    plans: list[Plan], splits: list[ValidationSplit], loss: Loss, criterion: Criterion, n_classes: int
) -> Selection:
    """The plan and number of rounds of the lowest loss on held-out rows, and how much a second one adds.

    The best booster on top of the wide model (or that model alone) and the best booster without it are averaged,
    if that has a lower loss: their errors differ. The worse of the two is fitted once more, with what the other has
    (`second_plan`), of `MIN_ROWS_AGAIN` rows and more; with other codes, of more than `MAX_NATIVE_CATEGORIES`.

    Parameters
    ----------
    plans : list of Plan
        One that starts from the wide model, and one without it or none.
    splits : list of ValidationSplit
        Those whose training rows lack a class, or hold one number only, are left out.
    loss : Loss
        Of the wide model.
    criterion : callable
    n_classes : int
        0 for numbers.
    """
    usable = [
        split for split in splits if can_be_learned(split.y, n_classes) and can_be_learned(split.plain.y, n_classes)
    ]
    if not usable:
        _warn_of_no_booster(plans[0], splits)
    evaluator = _Evaluator(usable or splits, loss, criterion)
    started = evaluator.alone
    alone: _Evaluated | None = None
    for plan in plans if usable else []:
        evaluated = evaluator.evaluate(plan)
        if plan.mode == "alone":
            alone = evaluated
        elif evaluated.gains.is_certain and evaluated.gains.loss < started.gains.loss:
            started = evaluated
    if alone is None:
        return Selection([started.component], pd.DataFrame(evaluator.records))
    n_rows = len(usable[0].plain.y) + len(usable[0].held_out.y)
    again = second_plan(plans, alone_leads=alone.gains.loss < started.gains.loss)
    if again is not None and again.mode == "alone" and alone.n_categories <= MAX_NATIVE_CATEGORIES:
        again = None
    if again is not None and n_rows >= MIN_ROWS_AGAIN:
        evaluated = evaluator.evaluate(again)
        if again.mode == "alone":
            alone = evaluated if evaluator.is_better(evaluated, alone) else alone
        else:
            started = evaluated if evaluator.is_better(evaluated, started) else started
    return Selection(evaluator.blended(started, alone), pd.DataFrame(evaluator.records))


def _warn_of_no_booster(plan: Plan, splits: list[ValidationSplit]) -> None:
    """A `UserWarning` where no booster can be tried."""
    if plan.classes is None:
        what, remedy = "one number only as their target", "more rows, or another cv"
    else:
        present = np.unique(np.concatenate([split.y for split in splits]))
        absent = plan.classes[np.setdiff1d(np.arange(len(plan.classes)), present)].tolist()
        what = f"no row of class {absent[0]!r}" if absent else "no row of one class or another"
        remedy = f"more rows of {'it' if absent else 'rare classes'}, leave {'it' if absent else 'them'} out"
    warn_user(
        "The stack is its wide model alone, and no booster was tried: rows to train one on, other than those held out, "
        f"have {what}; give {remedy}, or choose early_stopping=False and a mode."
    )


def second_plan(plans: list[Plan], *, alone_leads: bool) -> Plan | None:
    """One plan more: the worse of two, with what may have decided it; None where both have the same.

    Where the booster alone leads, trees on top of margins may have been too small. Where it does not, categories may
    be too many for splits by sets of them.
    """
    if len(plans) < 2:
        return None
    start, alone = plans
    if alone_leads:
        again = replace(start, booster=alone.booster, variant="trees as large as alone")
    else:
        again = replace(alone, codes=start.codes, variant=f"codes={start.codes!r}")
    return None if again in plans else again


class _Evaluator:
    """The validation splits, the wide model alone in them, and a record of what was compared."""

    def __init__(self, splits: list[ValidationSplit], loss: Loss, criterion: Criterion) -> None:
        self.splits, self._loss, self._criterion = splits, loss, criterion
        self.records: list[dict[str, Any]] = []
        margins = [split.held_out.margins for split in splits]
        losses = self._losses(margins)
        self.alone = _Evaluated(Component(None, 0, 1.0), margins, losses, self._paired_gains(losses, losses))
        self._record("wide", "", 0, 0.0, self.alone.gains)

    def evaluate(self, plan: Plan) -> _Evaluated:
        """A plan after its best number of rounds."""
        every = max(1, rounds_of(plan.booster) // STAGES)
        curves = [self._curve(plan, position, every) for position in range(len(self.splits))]
        counts = sorted({count for curve in curves for count in curve.gains})
        gains_by_count = {count: PairedGains.total([curve.at(count) for curve in curves]) for count in counts}
        for count, gains in gains_by_count.items():
            self._record(plan.mode, plan.variant, count, float(plan.mode == "alone"), gains)
        best = min(gains_by_count, key=lambda count: (gains_by_count[count].loss, count))
        scores = [curve.scores(best) for curve in curves]
        max_categories = max(curve.layer.max_categories for curve in curves)
        return _Evaluated(
            Component(plan, best, 1.0), scores, self._losses(scores), gains_by_count[best], max_categories
        )

    def is_better(self, candidate: _Evaluated, current: _Evaluated) -> bool:
        """Whether a candidate is certain to gain over the current one."""
        return self._paired_gains(candidate.losses, current.losses).is_certain

    def blended(self, started: _Evaluated, alone: _Evaluated) -> list[Component]:
        """The components, the larger weight first: `started` alone, unless a blend with `alone` is certain to gain."""
        blends: dict[float, PairedGains] = {}
        for weight in WEIGHTS:
            pairs = zip(started.scores, alone.scores, strict=True)
            mixed = [(1 - weight) * first + weight * second for first, second in pairs]
            blends[weight] = self._paired_gains(self._losses(mixed), started.losses)
            self._record("both", "", -1, weight, blends[weight])
        weight = min(blends, key=lambda weight: (blends[weight].loss, weight))
        weight = weight if blends[weight].is_certain else 0.0
        components = [replace(started.component, weight=round(1 - weight, 10)), replace(alone.component, weight=weight)]
        return sorted(
            (component for component in components if component.weight > 0), key=lambda component: -component.weight
        )

    def _curve(self, plan: Plan, position: int, every: int) -> _Curve:
        """Of a split, after every few rounds of all that the booster asks for."""
        split, baseline = self.splits[position], self.alone.losses[position]
        rows = split.held_out
        train = split.plain if plan.mode == "alone" else split.seen  # a booster alone reads no margins
        layer = Layer(plan, self._loss, train)
        gains: dict[int, PairedGains] = {}
        best, min_loss = (0, rows.margins), np.inf
        for count, scores in layer.path(rows.X, rows.margins, every):
            gains[count] = PairedGains.of(self._criterion(scores, rows.y), baseline, rows)
            if gains[count].loss < min_loss:
                best, min_loss = (count, scores), gains[count].loss
        return _Curve(layer, split, every, gains, best)

    def _losses(self, scores: list[Floats]) -> list[Floats]:
        """The losses of the scores of each split."""
        pairs = zip(scores, self.splits, strict=True)
        return [self._criterion(split_scores, split.held_out.y) for split_scores, split in pairs]

    def _paired_gains(self, losses: list[Floats], baseline: list[Floats]) -> PairedGains:
        """Of losses in the splits."""
        parts = zip(losses, baseline, self.splits, strict=True)
        return PairedGains.total([PairedGains.of(loss, base, split.held_out) for loss, base, split in parts])

    def _record(self, mode: str, variant: str, rounds: int, weight: float, gains: PairedGains) -> None:
        row: dict[str, Any] = {"mode": mode, "rounds": rounds, "share": weight, "loss": gains.loss}
        row |= {"gain": gains.gain, "error": gains.error, "folds": len(self.splits), "variant": variant}
        self.records.append(row)


def can_be_learned(y: NDArray[Any], n_classes: int) -> bool:
    """Whether a booster can learn from a target: libraries refuse those of one number, and of zeros."""
    n_distinct = len(np.unique(y))
    return n_distinct == n_classes if n_classes else n_distinct > 1
