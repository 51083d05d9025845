"""One training at one starting rate: its passes, how the rate moves, when they end, what is kept and said."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from tabsym.warn import warn_user
from tabsym.wide.convergence import FAR, NEAR, Ground
from tabsym.wide.descent import Descent, RowNumbers, State, take_rows
from tabsym.wide.optimizers import Adagrad
from tabsym.wide.options import Options
from tabsym.wide.schedules import ADAPTIVE_END, ADAPTIVE_FACTOR

Floats = NDArray[np.float64]

COOLING = 0.25
"""Share of the passes over which an automatic rate falls to zero, where passes go on until the loss has settled."""

AGAINST_NOISE = "shrink rare symbols by optimizer='newton', l2='evidence'"

FEW_UPDATES = 10
"""Automatic passes bear with a loss that does not fall for so many updates at least."""

FASTER, SLOWER, SPAN = 1.1, 0.5, 4
"""By what a rate rises and falls where it follows the loss, and every how many passes where that is noisy."""


@dataclass(frozen=True)
class Outcome:
    """State after training, updates so far, and the mean losses: of each epoch, and of held-out rows after it."""

    state: Floats
    n_steps: int
    loss_curve: list[float]
    validation_curve: list[float]
    interrupted: bool = False


class Diverged(Exception):
    """The loss that said so."""


@dataclass
class Course:
    """One training at one starting rate; `curve`: the penalised `losses` of its passes, by which it is judged."""

    descent: Descent
    ground: Ground
    held_out: RowNumbers
    rate: float
    curve: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    best: float = np.inf
    waited: int = 0

    def __post_init__(self) -> None:
        options = self.descent.options
        self.patience = options.n_iter_no_change
        if options.converges:  # a pass of few updates says little
            self.patience = max(self.patience, -(-FEW_UPDATES // self.descent.updates_of_a_pass))
        self.kept: tuple[Floats, int] | None = None

    def run(self) -> Outcome:
        """Make the passes; Ctrl-C ends them after the one before, where there was one.

        Raises
        ------
        Diverged
            The loss ran away, or is not finite.
        """
        options = self.descent.options
        try:
            if options.converges and not self.stops_itself:
                self._run_in_rounds()
            else:
                self._run_passes(options.epochs - self.n_cooling)
                self._cool(min(self.n_cooling, max(1, round(COOLING * len(self.curve)))))
                if options.short is not None and not self.stops_itself and self._falls_by(options.short):
                    self._warn_of_passes(fits_noise=False, is_worse=False)
        except KeyboardInterrupt:
            if not self.curve:
                raise
            return self._outcome(interrupted=True)
        return self._outcome()

    @property
    def cools(self) -> bool:
        return self.descent.options.cools and not self.descent.options.early_stopping

    @property
    def n_cooling(self) -> int:
        """How many of a given number of passes are at a falling rate at most."""
        options = self.descent.options
        return max(1, round(options.epochs * options.cooling)) if self.cools else 0

    @property
    def stops_itself(self) -> bool:
        """Whether the options say themselves when training ends."""
        options = self.descent.options
        return options.early_stopping or options.tol is not None

    def _run_passes(self, most: int) -> None:
        for _ in range(most):
            self._step(self.rate)
            if self._is_over():
                break

    def _falls_by(self, share: float) -> bool:
        """Whether the last passes, but for those at a falling rate, still lowered the loss by such a share."""
        return self.ground.is_falling(self.curve[: len(self.curve) - self.n_cooling], share)

    def _run_in_rounds(self) -> None:
        """Passes until the loss stands still, a few at a falling rate, and a look whether that is an optimum.

        If not, another such round, at least twice as long; the best end of a round is kept. A warning where no pass
        is left for a round that is needed.
        """
        descent, options, ground = self.descent, self.descent.options, self.ground
        first_rate = self.rate
        best, best_decrement, ends = np.inf, None, 0
        while True:
            begun = len(self.curve)
            self._run_round(begun, least=2 * ends)
            ends = len(self.curve) - begun
            if self.cools:
                self._cool(max(1, round(COOLING * ends)))
            loss, decrement = descent.look()
            if not np.isfinite(loss):
                raise Diverged(loss)
            if loss < best:
                best, best_decrement = loss, decrement
                self.kept = descent.state.copy(), descent.n_steps
            excess = ground.excess(best)
            falls = ground.is_falling(self.curve[begun : begun + ends], FAR)
            if self.kept is None or not descent.objective.can_tell:
                return
            settled = not falls and (best_decrement is None or best_decrement <= ground.allowed(excess, NEAR))
            is_last = loss > best or options.epochs - len(self.curve) < max(ground.least_passes, ends)
            if settled or is_last:
                shown = descent.shown(self.kept[0])
                if not descent.objective.could_fall(shown, by=ground.rest(excess)):
                    return
                if is_last:
                    self._warn_of_passes(fits_noise=ground.fits_noise(excess), is_worse=loss > best)
                    return
                if not descent.objective.could_fall(shown, by=ground.rest_with_noise(excess)):
                    self._warn_of_noise()
                    return
            self.rate = first_rate
            self.patience *= 2

    def _run_round(self, begun: int, least: int) -> None:
        """Passes until the loss stands still, and at least so many; an adaptive rate ends them itself."""
        options, descent = self.descent.options, self.descent
        left = options.epochs - begun
        most = max(1, round(left / (1.0 + COOLING))) if self.cools else left
        driven = options.tries > 0 and descent.updates_of_a_pass == 1
        saved = [descent.save()]
        while len(self.curve) - begun < most:
            try:
                self._step(self.rate)
            except Diverged:
                if not driven or len(saved) < 2:
                    raise
            curve = self.curve[begun:]
            if driven:
                self._drive(saved)
            elif options.schedule == "invscaling" and options.tries and len(curve) % SPAN == 0 and len(curve) > SPAN:
                falls = np.mean(curve[-SPAN:]) <= np.mean(curve[-2 * SPAN : -SPAN])
                self.rate *= FASTER if falls else SLOWER  # it would come to rest before it is there
            if (
                self._is_over()
                if options.schedule == "adaptive"
                else len(curve) >= least and self.ground.stands_still(curve)
            ):
                return

    def _drive(self, saved: list[State]) -> None:
        """With one update a pass, whose losses have no noise: a rate that rises while they fall.

        A loss that rose tells of the update before: it is taken back, and made again at a smaller rate.
        """
        rises = len(self.curve) > 1 and len(saved) > 1 and not self.curve[-1] <= self.curve[-2] * (1 + 1e-12)
        if rises:
            self.descent.restore(saved[-2])
            self.curve[-1], self.losses[-1] = self.curve[-2], self.losses[-2]
            del saved[-1]
            self.rate *= SLOWER
        else:
            saved.append(self.descent.save())
            del saved[:-2]
            self.rate *= FASTER

    def _cool(self, n_passes: int) -> None:
        """Passes over which the rate falls to zero."""
        for left in range(n_passes, 0, -1):
            self._step(self.rate * left / n_passes, self.rate * (left - 1) / n_passes)

    def _step(self, rate: float, until: float | None = None) -> None:
        """One pass, noted."""
        descent, options = self.descent, self.descent.options
        penalty = descent.penalty()
        self.losses.append(descent.one_pass(rate, until))
        loss = self.losses[-1] + penalty
        self.curve.append(loss)
        if self.ground.has_diverged(loss):
            raise Diverged(loss)
        if options.early_stopping:
            self.validation.append(self._held_out_loss())
        watched = (self.validation or self.curve)[-1]
        if options.verbose:
            print(
                f"epoch {len(self.curve)}/{options.epochs}  loss {(self.validation or self.losses)[-1]:.6g}",
                file=sys.stderr,
            )
        self.waited = 0 if watched < self.best - self._tolerance() else self.waited + 1
        if watched < self.best:
            self.best = watched
            if options.early_stopping:
                self.kept = descent.state.copy(), descent.n_steps

    def _tolerance(self) -> float:
        """By how much a loss must fall to have fallen."""
        options = self.descent.options
        if options.tol is not None:
            return options.tol
        return 1e-4 * abs(self.ground.excess(self.curve[-1])) if options.converges else 0.0

    def _is_over(self) -> bool:
        """Whether training should end before all its epochs are made; an adaptive rate falls first."""
        options = self.descent.options
        if self.waited >= self.patience:
            if options.schedule == "adaptive" and self.rate / ADAPTIVE_FACTOR >= ADAPTIVE_END:
                self.rate, self.waited = self.rate / ADAPTIVE_FACTOR, 0
            else:
                return self.stops_itself or options.schedule == "adaptive"
        return False

    def _held_out_loss(self) -> float:
        task = self.descent.task
        rows = take_rows(self.descent.rows, self.held_out, task.n_outputs)
        return task.mean_loss(self.descent.margins(rows), rows)

    def _warn_of_passes(self, *, fits_noise: bool, is_worse: bool) -> None:
        why = "as more of them ended higher" if is_worse else "the most that epochs='auto' makes of so many rows"
        self._warn(
            f"Training stopped after {len(self.curve)} passes ({why}) short of an optimum; give more epochs, e.g. "
            f"epochs={4 * len(self.curve)}{_other_remedy(self.descent.options)}"
            f"{', or ' + AGAINST_NOISE if fits_noise else ''}."
        )

    def _warn_of_noise(self) -> None:
        self._warn(
            f"Training stopped after {len(self.curve)} passes short of an optimum, as what is left of the loss is no "
            f"more than so many parameters fit by chance; {AGAINST_NOISE}, or give epochs= to go on."
        )

    @staticmethod
    def _warn(sentence: str) -> None:
        warn_user(sentence, ConvergenceWarning)

    def _outcome(self, *, interrupted: bool = False) -> Outcome:
        state, n_steps = self.descent.state, self.descent.n_steps
        if self.kept is not None and (self.descent.options.early_stopping or not interrupted):
            state, n_steps = self.kept
        return Outcome(state, n_steps, self.losses, self.validation, interrupted)


def _other_remedy(options: Options) -> str:
    if not options.tries:
        return ", or learning_rate='auto'"
    if options.batch_size is None or options.batch_size > 1:
        return ", or a smaller batch_size" + (", or gradient='gse'" if options.is_dense else "")
    return "" if isinstance(options.optimizer, Adagrad) else ", or optimizer='adagrad', the default"
