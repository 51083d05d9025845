"""Whether a booster helps a wide model, and after how many rounds it stops: by rows that it has not seen.

In-sample a booster always helps. On rows held out some do not: over margins that already hold what thousands of
categories explain, or on few rows. Round 0 of a booster on top of margins is the wide model alone, so that a booster
which hurts is left out. Of 40 numbers of rounds and 11 shares the best looks better than it is: what is more than the
wide model must gain more than a standard error over the rows.

The first fold scouts: a booster that does not help there at all is left out, and one that has its best rounds early is
not trained for longer on the other folds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.losses.loss import Loss
from tabsym.stacking.layer import Layer, Plan, Rows, rounds_of
from tabsym.stacking.out_of_fold import Trial

Floats = NDArray[np.float64]

ERRORS = 1.0
"""What is more than the wide model must gain so many standard errors: of 0, .5, 1, 1.5 and 2 the one at which no table
of ten lost to its better part in benchmarks/stacking/rules.py (mean -2.22 %; -2.27 at 0, -1.90 at 2)."""


@dataclass(frozen=True)
class PairedGains:
    """What rows lose, and gain over something simpler: `sums` of w, w loss, w gain, w^2, w^2 gain, w^2 gain^2."""

    sums: Floats

    @classmethod
    def of(cls, lost: Floats, before: Floats, rows: Rows) -> PairedGains:
        """Losses (n,), and those (n,) of what is simpler."""
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        gain, square = before - lost, weight**2
        parts = [weight, weight * lost, weight * gain, square, square * gain, square * gain**2]
        return cls(np.array([part.sum() for part in parts]))

    @classmethod
    def total(cls, parts: Sequence[PairedGains]) -> PairedGains:
        return cls(np.sum([part.sums for part in parts], axis=0))

    @property
    def loss(self) -> float:
        return float(self.sums[1] / self.sums[0])

    @property
    def gain(self) -> float:
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
        return self.gain > ERRORS * self.error


Criterion = Callable[[Floats, NDArray[Any]], Floats]
"""(scores (n, K), target (n,)) -> what each row loses (n,)."""

SHARES = [place / 10 for place in range(11)]
"""Of the booster alone, in the answer."""
STAGES = 40
"""So many numbers of rounds are compared."""
SCOUTS = 1_000
"""Folds of fewer rows held out tell too little by themselves, and are cheap. Scouts cost .03 % in rules.py (retail)."""
LONGER, MIN_FRACTION = 1.5, 0.2
"""Where the best rounds of the first fold were few, the others have so many times these, or this share of all more."""


@dataclass(frozen=True)
class Member:
    """What takes part in the answer: a plan after some rounds (None: the wide model alone), and its share."""

    plan: Plan | None
    n_rounds: int
    share: float

    @property
    def mode(self) -> str:
        return "wide" if self.plan is None else self.plan.mode


@dataclass(frozen=True)
class Verdict:
    """One member, or two that share the answer, the larger share first; and what was compared."""

    members: list[Member]
    table: pd.DataFrame | None


@dataclass(frozen=True)
class _Standing:
    """A member, with its scores of the rows held out of each trial, what these lose, and in all."""

    member: Member
    scores: list[Floats]
    lost: list[Floats]
    gains: PairedGains


@dataclass(frozen=True)
class _Curve:
    """A booster of a trial, and what its rows held out lose by rounds."""

    layer: Layer
    trial: Trial
    every: int
    tallies: dict[int, PairedGains]

    def at(self, rounds: int) -> PairedGains:
        """After the last round, where a booster found nothing more to split before."""
        return self.tallies[self._place(rounds)]

    def best(self) -> int:
        return min(self.tallies, key=lambda count: (self.tallies[count].loss, count))

    def scores(self, rounds: int) -> Floats:
        """Scores (n, K) of the rows held out."""
        rows, wanted = self.trial.held_out, self._place(rounds)
        return next(found for done, found in self.layer.path(rows.X, rows.margins, self.every) if done == wanted)

    def _place(self, rounds: int) -> int:
        return max((one for one in self.tallies if one <= rounds), default=min(self.tallies))


def judge(plans: list[Plan], trials: list[Trial], loss: Loss, criterion: Criterion, n_classes: int) -> Verdict:
    """Every plan after every number of rounds on the rows held out; what loses least, and what it shares with whom.

    The best of what starts from the wide model (itself among it) and the best booster that stands alone share the
    answer, as far as that loses less: both err, and hardly in the same rows.

    Parameters
    ----------
    plans : list of Plan
    trials : list of Trial
        Those whose training rows lack a class, or hold one number only, are left out.
    loss : Loss
        Of the wide model.
    criterion : callable
    n_classes : int
        0 for numbers.
    """
    usable = [trial for trial in trials if _tells(trial.y, n_classes) and _tells(trial.plain.y, n_classes)]
    court = _Court(usable or trials, loss, criterion)
    started = court.alone
    for plan in plans if usable else []:
        if plan.mode != "alone":
            found = court.hear(plan, lambda scout: scout.at(scout.best()).gain > 0)
            if found is not None and found.gains.is_certain and found.gains.loss < started.gains.loss:
                started = found
    members = [started.member]
    for plan in plans if usable else []:
        if plan.mode == "alone":
            found = court.hear(plan, lambda scout: court.share(started, [scout.scores(scout.best())]) > 0)
            members = court.shared(started, found) if found is not None else members
    return Verdict(members, pd.DataFrame(court.records))


class _Court:
    """The trials, the wide model alone in them, and a record of what was compared."""

    def __init__(self, trials: list[Trial], loss: Loss, criterion: Criterion) -> None:
        self.trials, self._loss, self._criterion = trials, loss, criterion
        self.records: list[dict[str, Any]] = []
        margins = [trial.held_out.margins for trial in trials]
        lost = self._lost(margins)
        self.alone = _Standing(Member(None, 0, 1.0), margins, lost, self._paired_gains(lost, lost))
        self._record("wide", 0, 0.0, self.alone.gains, len(trials))

    def hear(self, plan: Plan, promises: Callable[[_Curve], bool]) -> _Standing | None:
        """A plan after its best number of rounds; None where the first fold does not promise that it helps."""
        total = rounds_of(plan.booster)
        every = max(1, total // STAGES)
        scout = self._curve(plan, 0, every, None)
        is_scouted = len(self.trials) > 1 and len(self.trials[0].held_out) >= SCOUTS
        if is_scouted and not promises(scout):
            self._record_path(plan, scout.tallies, 1)
            return None
        most = max(LONGER * scout.best(), scout.best() + MIN_FRACTION * total) if is_scouted else total
        most = min(total, every * int(np.ceil(most / every)))
        others = [self._curve(plan, place, every, most) for place in range(1, len(self.trials))]
        curves = [scout, *others]
        counts = sorted({count for curve in curves for count in curve.tallies if count <= most})
        found = {count: PairedGains.total([curve.at(count) for curve in curves]) for count in counts}
        self._record_path(plan, found, len(curves))
        best = min(found, key=lambda count: (found[count].loss, count))
        scores = [curve.scores(best) for curve in curves]
        return _Standing(Member(plan, best, 1.0), scores, self._lost(scores), found[best])

    def share(self, one: _Standing, scores: list[Floats]) -> float:
        """The share of other scores, of the first trials, at which they and a member's lose least."""
        return _best_share(self._shares(one, scores))

    def shared(self, one: _Standing, other: _Standing) -> list[Member]:
        """Who answers, the larger share first: the first alone, unless it is certain to gain by the other."""
        found = self._shares(one, other.scores)
        for share, gains in found.items():
            self._record("both", -1, share, gains, len(other.scores))
        share = _best_share(found)
        share = share if found[share].is_certain else 0.0
        members = [replace(one.member, share=round(1 - share, 10)), replace(other.member, share=share)]
        return sorted((member for member in members if member.share > 0), key=lambda member: -member.share)

    def _shares(self, one: _Standing, scores: list[Floats]) -> dict[float, PairedGains]:
        found = {}
        for share in SHARES:
            mixed = [(1 - share) * first + share * second for first, second in zip(one.scores, scores, strict=False)]
            found[share] = self._paired_gains(self._lost(mixed), one.lost)
        return found

    def _curve(self, plan: Plan, place: int, every: int, most: int | None) -> _Curve:
        """Of a trial; `most`: rounds, None for all that the booster asks for."""
        trial, before = self.trials[place], self.alone.lost[place]
        rows = trial.held_out
        layer = Layer(plan, self._loss, trial.rows_for(plan), most if most != rounds_of(plan.booster) else None)
        staged = layer.path(rows.X, rows.margins, every)
        found = {count: PairedGains.of(self._criterion(scores, rows.y), before, rows) for count, scores in staged}
        return _Curve(layer, trial, every, found)

    def _lost(self, scores: list[Floats]) -> list[Floats]:
        """Of scores of the first trials."""
        return [self._criterion(own, trial.held_out.y) for own, trial in zip(scores, self.trials, strict=False)]

    def _paired_gains(self, lost: list[Floats], before: list[Floats]) -> PairedGains:
        """Of losses in the first trials."""
        parts = zip(lost, before, self.trials, strict=False)
        return PairedGains.total([PairedGains.of(own, other, trial.held_out) for own, other, trial in parts])

    def _record_path(self, plan: Plan, found: dict[int, PairedGains], folds: int) -> None:
        for count, gains in found.items():
            self._record(plan.mode, count, float(plan.mode == "alone"), gains, folds)

    def _record(self, mode: str, rounds: int, share: float, gains: PairedGains, folds: int) -> None:
        row = {"mode": mode, "rounds": rounds, "share": share, "loss": gains.loss}
        self.records.append(row | {"gain": gains.gain, "error": gains.error, "folds": folds})


def _tells(y: NDArray[Any], n_classes: int) -> bool:
    """Whether a booster can learn from a target: libraries refuse those of one number, and of zeros."""
    found = len(np.unique(y))
    return found == n_classes if n_classes else found > 1


def _best_share(found: dict[float, PairedGains]) -> float:
    return min(found, key=lambda share: (found[share].loss, share))
