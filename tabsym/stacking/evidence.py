"""Whether a booster helps a wide model, and after how many rounds it stops: by rows that it has not seen.

In-sample a booster always helps. On rows held out some do not: over margins that already hold what thousands of
symbols tell, or on few rows. Round 0 of a booster on top of margins is the wide model alone, so that a booster which
hurts is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.encoders.folds import Split
from tabsym.encoders.pieces import take_rows
from tabsym.stacking.layer import Layer, Plan, Rows, rounds_of
from tabsym.wide.losses import Loss

Floats = NDArray[np.float64]
Criterion = Callable[[Floats, NDArray[Any]], Floats]
"""(scores (n, K), target (n,)) -> what each row loses (n,)."""

SHARES = [place / 10 for place in range(11)]
"""Of the booster alone, in the answer."""
STAGES = 40
"""So many numbers of rounds are compared."""


@dataclass(frozen=True)
class Trial:
    """Rows to train a booster on, and rows to judge it by."""

    seen: Rows
    held_out: Rows


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
class _Curve:
    """The loss of a trial's rows held out by rounds, and the booster that made it."""

    layer: Layer
    trial: Trial
    every: int
    losses: dict[int, float]

    def at(self, rounds: int) -> float:
        """After the last round, where a booster found nothing more to split before."""
        return self.losses[self._place(rounds)]

    def scores(self, rounds: int) -> Floats:
        """Scores (n, K) of the rows held out."""
        rows, wanted = self.trial.held_out, self._place(rounds)
        return next(found for done, found in self.layer.path(rows.X, rows.margins, self.every) if done == wanted)

    def _place(self, rounds: int) -> int:
        return max((one for one in self.losses if one <= rounds), default=min(self.losses))


def trials_of_folds(rows: Rows, splits: list[Split], nested: list[Floats]) -> list[Trial]:
    """A trial for each fold of cross-fitting: trained on margins that know nothing of it, judged on those out of fold.

    `nested`: as `nested_margins` made them.
    """
    trials = []
    for (train, test), margins in zip(splits, nested, strict=True):
        known = train[np.isfinite(margins[train, 0])]
        trials.append(Trial(taken(replace(rows, margins=margins), known), taken(rows, test)))
    return trials


def taken(rows: Rows, places: NDArray[Any]) -> Rows:
    """Some of the rows."""
    weight = None if rows.weight is None else rows.weight[places]
    return Rows(take_rows(rows.X, places), rows.y[places], rows.margins[places], weight)


def judge(plans: list[Plan], trials: list[Trial], loss: Loss, criterion: Criterion, n_classes: int) -> Verdict:
    """Every plan after every number of rounds on the rows held out; what loses least, and what it shares with whom.

    The best of what starts from the wide model (itself among it) and the best booster that stands alone share the
    answer, as far as that loses less: both err, and hardly in the same rows.

    Parameters
    ----------
    plans : list of Plan
    trials : list of Trial
        Those whose training rows lack a class are left out.
    loss : Loss
        Of the wide model.
    criterion : callable
    n_classes : int
        0 for numbers.
    """
    usable = [trial for trial in trials if n_classes == 0 or len(np.unique(trial.seen.y)) == n_classes]
    judged = usable or trials
    total = sum(_weight(trial.held_out) for trial in judged)
    alone = sum(_lost(criterion, trial.held_out.margins, trial.held_out) for trial in judged) / total
    records: list[dict[str, Any]] = [{"mode": "wide", "rounds": 0, "share": 0.0, "loss": alone}]
    best = [(alone, Member(None, 0, 1.0), [trial.held_out.margins for trial in judged])]
    for plan in plans if usable else []:
        curves = [_curve(plan, trial, loss, criterion) for trial in usable]
        found = {
            rounds: sum(curve.at(rounds) for curve in curves) / total
            for rounds in sorted({rounds for curve in curves for rounds in curve.losses})
        }
        share = float(plan.mode == "alone")
        records += [{"mode": plan.mode, "rounds": r, "share": share, "loss": value} for r, value in found.items()]
        rounds = min(found, key=lambda count: (found[count], count))
        best.append((found[rounds], Member(plan, rounds, 1.0), [curve.scores(rounds) for curve in curves]))
    started = min((one for one in best if one[1].mode != "alone"), key=lambda one: one[0])
    others = [one for one in best if one[1].mode == "alone"]
    if not others:
        return Verdict([started[1]], pd.DataFrame(records))
    other = min(others, key=lambda one: one[0])
    lost = {share: _lost_by(started[2], other[2], share, usable, criterion) / total for share in SHARES}
    records += [{"mode": "both", "rounds": -1, "share": share, "loss": value} for share, value in lost.items()]
    share = min(lost, key=lambda one: (lost[one], one))
    members = [replace(started[1], share=round(1 - share, 10)), replace(other[1], share=share)]
    shared = sorted((one for one in members if one.share > 0), key=lambda one: -one.share)
    return Verdict(shared, pd.DataFrame(records))


def _lost_by(one: list[Floats], other: list[Floats], share: float, trials: list[Trial], criterion: Criterion) -> float:
    """The loss of a mean of scores, the other's with some share."""
    mixed = [(1 - share) * first + share * second for first, second in zip(one, other, strict=True)]
    return sum(_lost(criterion, scores, trial.held_out) for scores, trial in zip(mixed, trials, strict=True))


def _curve(plan: Plan, trial: Trial, loss: Loss, criterion: Criterion) -> _Curve:
    every = max(1, rounds_of(plan.booster) // STAGES)
    held_out = trial.held_out
    layer = Layer(plan, loss, trial.seen)
    staged = layer.path(held_out.X, held_out.margins, every)
    return _Curve(layer, trial, every, {rounds: _lost(criterion, scores, held_out) for rounds, scores in staged})


def _lost(criterion: Criterion, scores: Floats, rows: Rows) -> float:
    lost = criterion(scores, rows.y)
    return float(lost.sum() if rows.weight is None else lost @ rows.weight)


def _weight(rows: Rows) -> float:
    return float(len(rows) if rows.weight is None else rows.weight.sum())
