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

STAGES = 40
"""So many numbers of rounds are compared."""


@dataclass(frozen=True)
class Trial:
    """Rows to train a booster on, and rows to judge it by."""

    seen: Rows
    held_out: Rows


@dataclass(frozen=True)
class Verdict:
    """The best plan (None: the wide model alone), its rounds, and what was compared."""

    plan: Plan | None
    n_rounds: int
    table: pd.DataFrame | None


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
    """Every plan after every number of rounds on the rows held out; the one of least loss.

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
    records: list[dict[str, Any]] = [{"mode": "wide", "rounds": 0, "loss": alone, "plan": None}]
    for plan in plans if usable else []:
        curves = [_curve(plan, trial, loss, criterion) for trial in usable]
        for rounds in sorted(set().union(*curves)):
            lost = sum(_at(curve, rounds) for curve in curves) / total
            records.append({"mode": plan.mode, "rounds": rounds, "loss": lost, "plan": plan})
    best = min(records, key=lambda record: (record["loss"], record["rounds"]))
    shown = pd.DataFrame(records).drop(columns="plan").sort_values(["mode", "rounds"], ignore_index=True)
    return Verdict(best["plan"], int(best["rounds"]), shown)


def _curve(plan: Plan, trial: Trial, loss: Loss, criterion: Criterion) -> dict[int, float]:
    """The loss of the held-out rows by rounds."""
    every = max(1, rounds_of(plan.booster) // STAGES)
    held_out = trial.held_out
    layer = Layer(plan, loss, trial.seen)
    staged = layer.path(held_out.X, held_out.margins, every)
    return {rounds: _lost(criterion, scores, held_out) for rounds, scores in staged}


def _at(curve: dict[int, float], rounds: int) -> float:
    """The loss after some rounds; after the last, where a booster found nothing more to split."""
    return curve[max((one for one in curve if one <= rounds), default=min(curve))]


def _lost(criterion: Criterion, scores: Floats, rows: Rows) -> float:
    lost = criterion(scores, rows.y)
    return float(lost.sum() if rows.weight is None else lost @ rows.weight)


def _weight(rows: Rows) -> float:
    return float(len(rows) if rows.weight is None else rows.weight.sum())
