"""Whether a booster helps a wide model, and after how many rounds it stops: by rows that it has not seen.

In-sample a booster always helps. On rows held out some do not: over margins that already hold what thousands of
categories explain, or on few rows. Round 0 of a booster on top of margins is the wide model alone, so that a booster
which hurts is left out. Of 40 numbers of rounds and 11 shares the best looks better than it is: what is more than the
wide model must gain more than half a standard error over the rows.
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

ERRORS = 0.5
"""What is more than the wide model must gain so many standard errors: judged by a quarter of the rows, 1 leaves out
boosters that help on compas and amazon; judged by three times as many rows, 1 was best (benchmarks/stacking)."""


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
    """A booster of a trial, what its rows held out lose by rounds, and their scores where that is least."""

    layer: Layer
    trial: Trial
    every: int
    tallies: dict[int, PairedGains]
    best: tuple[int, Floats]

    def at(self, rounds: int) -> PairedGains:
        """After the last round, where a booster found nothing more to split before."""
        return self.tallies[self._place(rounds)]

    def scores(self, rounds: int) -> Floats:
        """Scores (n, K) of the rows held out."""
        rows, wanted = self.trial.held_out, self._place(rounds)
        if wanted == self.best[0]:  # of one trial always
            return self.best[1]
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
            found = court.hear(plan)
            if found.gains.is_certain and found.gains.loss < started.gains.loss:
                started = found
    members = [started.member]
    for plan in plans if usable else []:
        if plan.mode == "alone":
            members = court.shared(started, court.hear(plan))
    return Verdict(members, pd.DataFrame(court.records))


class _Court:
    """The trials, the wide model alone in them, and a record of what was compared."""

    def __init__(self, trials: list[Trial], loss: Loss, criterion: Criterion) -> None:
        self.trials, self._loss, self._criterion = trials, loss, criterion
        self.records: list[dict[str, Any]] = []
        margins = [trial.held_out.margins for trial in trials]
        lost = self._lost(margins)
        self.alone = _Standing(Member(None, 0, 1.0), margins, lost, self._paired_gains(lost, lost))
        self._record("wide", 0, 0.0, self.alone.gains)

    def hear(self, plan: Plan) -> _Standing:
        """A plan after its best number of rounds."""
        every = max(1, rounds_of(plan.booster) // STAGES)
        curves = [self._curve(plan, place, every) for place in range(len(self.trials))]
        counts = sorted({count for curve in curves for count in curve.tallies})
        found = {count: PairedGains.total([curve.at(count) for curve in curves]) for count in counts}
        for count, gains in found.items():
            self._record(plan.mode, count, float(plan.mode == "alone"), gains)
        best = min(found, key=lambda count: (found[count].loss, count))
        scores = [curve.scores(best) for curve in curves]
        return _Standing(Member(plan, best, 1.0), scores, self._lost(scores), found[best])

    def shared(self, one: _Standing, other: _Standing) -> list[Member]:
        """Who answers, the larger share first: the first alone, unless it is certain to gain by the other."""
        found = self._shares(one, other.scores)
        for share, gains in found.items():
            self._record("both", -1, share, gains)
        share = min(found, key=lambda share: (found[share].loss, share))
        share = share if found[share].is_certain else 0.0
        members = [replace(one.member, share=round(1 - share, 10)), replace(other.member, share=share)]
        return sorted((member for member in members if member.share > 0), key=lambda member: -member.share)

    def _shares(self, one: _Standing, scores: list[Floats]) -> dict[float, PairedGains]:
        found = {}
        for share in SHARES:
            mixed = [(1 - share) * first + share * second for first, second in zip(one.scores, scores, strict=True)]
            found[share] = self._paired_gains(self._lost(mixed), one.lost)
        return found

    def _curve(self, plan: Plan, place: int, every: int) -> _Curve:
        """Of a trial, after every few rounds of all that the booster asks for."""
        trial, before = self.trials[place], self.alone.lost[place]
        rows = trial.held_out
        layer = Layer(plan, self._loss, trial.rows_for(plan))
        found: dict[int, PairedGains] = {}
        best, least = (0, rows.margins), np.inf
        for count, scores in layer.path(rows.X, rows.margins, every):
            found[count] = PairedGains.of(self._criterion(scores, rows.y), before, rows)
            if found[count].loss < least:
                best, least = (count, scores), found[count].loss
        return _Curve(layer, trial, every, found, best)

    def _lost(self, scores: list[Floats]) -> list[Floats]:
        """What scores of the trials lose."""
        return [self._criterion(own, trial.held_out.y) for own, trial in zip(scores, self.trials, strict=True)]

    def _paired_gains(self, lost: list[Floats], before: list[Floats]) -> PairedGains:
        """Of losses in the trials."""
        parts = zip(lost, before, self.trials, strict=True)
        return PairedGains.total([PairedGains.of(own, other, trial.held_out) for own, other, trial in parts])

    def _record(self, mode: str, rounds: int, share: float, gains: PairedGains) -> None:
        row = {"mode": mode, "rounds": rounds, "share": share, "loss": gains.loss}
        self.records.append(row | {"gain": gains.gain, "error": gains.error, "folds": len(self.trials)})


def _tells(y: NDArray[Any], n_classes: int) -> bool:
    """Whether a booster can learn from a target: libraries refuse those of one number, and of zeros."""
    found = len(np.unique(y))
    return found == n_classes if n_classes else found > 1
