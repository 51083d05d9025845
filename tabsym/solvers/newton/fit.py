"""An additive model from its pieces: the optimum for a penalty, or for variances that the table tells."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import count_column
from tabsym.losses.kernels import MULTINOMIAL
from tabsym.losses.loss import Loss
from tabsym.solvers.newton.block_descent import Turns
from tabsym.solvers.newton.heldout import MANY_ENTRIES, HeldOut, halves_of
from tabsym.solvers.newton.joint import finish
from tabsym.solvers.newton.posterior import Draws
from tabsym.solvers.newton.terms import Piece, Prior
from tabsym.solvers.newton.variances import Evidence
from tabsym.solvers.sgd.optimizers import CLOSE, ROUGHLY_CLOSE, Newton

Floats = NDArray[np.float64]

MOST_HELD_OUT = 200_000
"""Variances by rows held out are found on a random sample of larger tables, as crosses are chosen on one."""

FEW_ROWS, MORE_SPLITS = 10_000, 3
"""Of tables of so many rows variances are the means, in logarithms, of more than one split into halves, as those of one
depend on which rows fall where: of ten random states the worst cost up to .0029 of loss beside variances by evidence
(3,000 rows, 200 categories), of three splits .0007. Of larger tables they depend on it less, and splits take longer:
amazon's AUC is .8977 with three splits for .8969, its fit takes a third longer."""

AFTERWARDS = 30.0
"""Variances of common blocks need to settle so many times less once those of rare ones are known. The longer they move
beside symbols that explain their own rows, the worse: settled as before, titanic's log-loss is .003 higher, kick's
.0004, amazon's .0002 and its AUC .0005 lower, six others are level; kept as they were, amazon's AUC is .0013 lower."""


MEANWHILE = 4.0
"""And so many times less while rare ones of classes are out, as they will move again: amazon takes 28 sweeps for 43.
Clicks' AUC is .0016 lower, at the same log-loss; kick loses .0001 of each, four other tables are level. Fifteen times
less costs clicks .0024, and saves little more. For amounts four times less costs chicago_taxi .7 % of its MAE."""


MORE_SWEEPS, MORE_BESIDE_VARIANCES = 12, 4
"""At most, once the objective hardly falls: coefficients that sweeps move slowly are still away from the optimum by
parts of their standard error then. Fewer where variances were estimated, which err by more than that."""

FEW_SHARED = 0.02
"""Blocks of which no larger share of the rows have an entry in common with another row say nothing: such as an id's.
Their variance and the noise of rows are one and the same, and what was found for them was chance: of 3,000 rows of
noise the dispersion was .01 in 9 of 16 tables, not 1 (with a fiftieth in pairs .6 to 1, with a tenth .85 to 1)."""


@dataclass(frozen=True)
class Rows:
    """Target (n,) and weights (n,), empty for none, in units of training; `start` (n, K): the offset."""

    y: Floats
    weight: Floats
    start: Floats


@dataclass(frozen=True)
class Optimum:
    """Where a fit ends: parameters `turns.theta`, variances `evidence`, how many sweeps, and whether all stand."""

    turns: Turns
    evidence: Evidence
    n_sweeps: int
    converged: bool
    interrupted: bool = False


@dataclass(frozen=True)
class Solved:
    """What a fit comes to, in units of training, piece by piece.

    Attributes
    ----------
    theta, sd : list of (q, K)
        Parameters, and their posterior standard deviations.
    variance, effective : list of float
        Prior variance (infinite for what is not held back) and effective number of entries of each piece.
    dispersion, working : float
        Pearson's, which deviations go by, and that which variances were found with.
    draws : list of (q, M) or None
        About the parameters.
    flat, together : list of int, (f, f, K) or None
        The pieces that nothing holds back, and their covariances where there are no draws.
    loss : float
        Mean of the rows.
    n_sweeps : int
    converged, drawn, interrupted : bool
        Whether the optimum was reached, whether the draws stand, and whether Ctrl-C ended the fit.
    """

    theta: list[Floats]
    sd: list[Floats]
    variance: list[float]
    effective: list[float]
    dispersion: float
    working: float
    draws: list[Floats] | None
    flat: list[int]
    together: Floats | None
    loss: float
    n_sweeps: int
    converged: bool
    drawn: bool
    interrupted: bool


def find_optimum(
    pieces: Sequence[Piece],
    rows: Rows,
    loss: Loss,
    newton: Newton,
    penalty: float | None,
    theta: Sequence[Floats],
    rng: np.random.RandomState,
    held: Sequence[float] | None = None,
    fixed: Mapping[int, float] | None = None,
) -> Optimum:
    """The optimum from `theta`: with a ridge `penalty` on the mean loss, or None for variances by evidence.

    `held`: precisions of the pieces that were estimated elsewhere. `fixed`: precisions of some pieces that are given,
    while the variances of the others are estimated. Ctrl-C ends it where it is.
    """
    turns = Turns(pieces, rows.y, rows.weight, rows.start, loss)
    turns.put(theta)
    if newton.verbose:
        turns.report = Sweeps()
    evidence = Evidence(turns)
    estimates = penalty is None and held is None
    if held is not None:
        _hold(turns, held)
    elif penalty is not None:
        for place, piece in enumerate(turns.pieces):
            turns.precision[place] = 0.0 if piece.prior is Prior.FLAT else penalty * turns.total
    interrupted, n_sweeps, converged = False, 0, False
    try:
        n_sweeps, stood = _find_variances(turns, evidence, rows, newton, rng, fixed or {}) if estimates else (0, True)
        more, converged = turns.settle(newton.tol, newton.max_passes, surely=penalty is not None)
        n_sweeps, converged = n_sweeps + more, converged and stood
        dispersion = evidence.dispersion
        if evidence.has_dispersion and not estimates:
            dispersion = max(turns.dispersion(), 1e-12 * turns.spread)
        if turns.loss.code != MULTINOMIAL:
            few = MORE_BESIDE_VARIANCES if estimates else MORE_SWEEPS
            most = few if newton.close >= CLOSE else newton.max_passes
            more, is_close = turns.polish(dispersion, newton.close, most)
            n_sweeps += (
                more if is_close or newton.close >= ROUGHLY_CLOSE else more + finish(turns, dispersion, newton.close)
            )
    except KeyboardInterrupt:
        interrupted = True
        turns.put(list(turns.theta))  # a sweep may have ended half way
    turns.balance()
    if not estimates:
        _weigh(turns, evidence)
    evidence.take_pearson()
    return Optimum(turns, evidence, n_sweeps, converged, interrupted)


class Sweeps:
    """A line on standard error about every second: how many sweeps, and what the last one lowered the objective by."""

    def __init__(self) -> None:
        self._n_sweeps, self._shown = 0, time.monotonic()

    def __call__(self, fall: float) -> None:
        self._n_sweeps += 1
        if time.monotonic() - self._shown >= 1.0:
            self._shown = time.monotonic()
            print(f"{self._n_sweeps} sweeps, the objective falls by {fall:.3g} a row", file=sys.stderr)


def _hold(turns: Turns, precisions: Sequence[float]) -> None:
    """Give pieces their precisions; what is held at 0 says nothing, wherever it started."""
    for place, precision in enumerate(precisions):
        if precision == np.inf:
            turns.silence(place)
        else:
            turns.precision[place] = precision


def _find_variances(
    turns: Turns,
    evidence: Evidence,
    rows: Rows,
    newton: Newton,
    rng: np.random.RandomState,
    fixed: Mapping[int, float],
) -> tuple[int, bool]:
    """Variances by evidence; of blocks with few rows a symbol, on rows held out.

    How many sweeps it took, and whether those by evidence stand at last.
    """
    evidence.start()
    for place, piece in enumerate(turns.pieces):
        if _is_unique(piece) and place not in fixed:
            turns.silence(place)
            evidence.effective[place] = 0.0
    turns.precision[list(fixed)] = list(fixed.values())
    held = [
        place
        for place, piece in enumerate(turns.pieces)
        if piece.prior is not Prior.FLAT and not turns.silent[place] and place not in fixed
    ]
    rare = [place for place in held if turns.n_outputs == 1 and _is_rare(turns, place, newton.rare_rows)]
    common = [place for place in held if place not in rare]
    if evidence.has_dispersion or not rare:
        n_sweeps, stood = evidence.find(held, newton.tol, newton.max_passes, passing=rare)
        rare = [place for place in rare if not turns.silent[place]]
    else:
        n_sweeps, stood = _find_without(turns, evidence, common, rare, newton)
    if not rare:
        for place in fixed:
            evidence.spread(place)
        return n_sweeps, stood
    logs = []
    for _ in range(MORE_SPLITS if len(rows.y) <= FEW_ROWS else 1):
        halves = _two_halves(turns, rows, rng)
        halves.precision, halves.silent = turns.precision.copy(), turns.silent.copy()
        held_out = HeldOut(halves, evidence.dispersion)
        logs.append(np.log(held_out.tune(rare)))
    turns.precision[rare] = np.exp(np.mean(logs, axis=0))
    if not evidence.has_dispersion:  # of amounts they are where their evidence had them
        turns.put([held_out.of_all_rows(place) if place in rare else theta for place, theta in enumerate(turns.theta)])
    more, stood = evidence.find(common, AFTERWARDS * newton.tol, newton.max_passes)
    for place in [*rare, *common, *fixed]:
        if not turns.silent[place]:
            evidence.spread(place)
    evidence.move(())
    return n_sweeps + more, stood


def _two_halves(turns: Turns, rows: Rows, rng: np.random.RandomState) -> Turns:
    """Two models of half the rows each, which start at the level of all; of a large table, of a random sample."""
    pieces = turns.pieces
    if len(rows.y) > MOST_HELD_OUT:
        some = np.sort(rng.permutation(len(rows.y))[:MOST_HELD_OUT])
        weight = rows.weight[some] if len(rows.weight) else rows.weight
        rows = Rows(rows.y[some], weight, rows.start[some])
        pieces = [
            replace(piece, codes=piece.codes[some], x=piece.x[some] if len(piece.x) else piece.x) for piece in pieces
        ]
    column = halves_of(rows.y, turns.loss, rng)
    halves = Turns(pieces, rows.y, rows.weight, rows.start, turns.loss, column, n_models=2)
    start = []
    for piece, theta in zip(pieces, turns.theta, strict=True):
        is_free = piece.prior is Prior.FLAT
        start.append(np.column_stack([theta, theta]) if is_free else np.zeros((piece.size, 2)))
    halves.put(start)
    return halves


def _find_without(
    turns: Turns, evidence: Evidence, common: list[int], rare: list[int], newton: Newton
) -> tuple[int, bool]:
    """Variances of common blocks while the rare ones are out: as `Evidence.find`.

    Symbols seen once explain their own rows, of classes as far as their variance lets them, and would leave the others
    nothing to explain.
    """
    waiting = [turns.precision[place] for place in rare]
    for place in rare:
        turns.silent[place] = True
    found = evidence.find(common, MEANWHILE * newton.tol, newton.max_passes)
    for place, precision in zip(rare, waiting, strict=True):
        turns.silent[place], turns.precision[place] = False, precision
    return found


def _is_unique(piece: Piece) -> bool:
    """Whether hardly any two rows share an entry, as of an id: what one says of its row may be noise."""
    if piece.prior is not Prior.RIDGE or 2 * piece.size < len(piece.codes):
        return False
    counts = np.zeros(piece.size)
    count_column(piece.codes, counts)
    return float(counts[counts > 1].sum()) < FEW_SHARED * len(piece.codes)


def _is_rare(turns: Turns, place: int, rows: float) -> bool:
    piece = turns.pieces[place]
    return piece.prior is Prior.RIDGE and piece.size >= MANY_ENTRIES and len(turns.y) < rows * piece.size


def _weigh(turns: Turns, evidence: Evidence) -> None:
    """Effective entries and dispersion for penalties that were given."""
    for place, piece in enumerate(turns.pieces):
        if turns.silent[place]:
            evidence.effective[place] = 0.0
        elif piece.prior is not Prior.FLAT:
            evidence.spread(place)
    evidence.move(())


def with_certainty(optimum: Optimum, newton: Newton, rng: np.random.RandomState) -> Solved:
    """The optimum, and how certain each parameter is."""
    turns, evidence = optimum.turns, optimum.evidence
    draws = Draws(turns, newton.draws, rng) if newton.draws else None
    root = np.sqrt(evidence.pearson)
    flat = evidence.spreads.flat
    together = evidence.spreads.of_flat() if flat and draws is None else None
    sd = []
    for place, theta in enumerate(turns.theta):
        if turns.silent[place]:
            variances = np.zeros_like(theta)
        elif draws is not None:
            variances = draws.variances(place)
        elif together is not None and place in flat:
            variances = together[flat.index(place), flat.index(place)][None]
        else:
            variances = evidence.spread(place).variances
        sd.append(root * np.sqrt(variances))
    found = None if draws is None else [root * one for one in draws.found]
    variance = [evidence.variance(place) for place in range(len(turns.pieces))]
    return Solved(
        turns.theta, sd, variance, evidence.effective.tolist(), evidence.pearson, evidence.dispersion, found, flat,
        None if together is None else evidence.pearson * together, turns.mean_loss(), optimum.n_sweeps,
        optimum.converged, draws is None or draws.settled, optimum.interrupted,
    )  # fmt: skip
