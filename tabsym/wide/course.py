"""One training at one learning rate: its epochs, how the rate falls, when they end, what is kept and warned of."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from tabsym.warn import warn_user
from tabsym.wide.convergence import LITTLE, Reference
from tabsym.wide.descent import Descent, RowNumbers
from tabsym.wide.options import Options
from tabsym.wide.schedules import ADAPTIVE_END, ADAPTIVE_FACTOR

Floats = NDArray[np.float64]

COOLING = 0.5
"""The rate falls to zero over this share of the epochs made before, where these ended by themselves."""

WINDOW = 0.25
"""The training loss has converged that did not improve over this share of the epochs, and `n_iter_no_change` of them.

A loss that falls by a power of the epochs, however slowly, falls over that window by a fixed share of what is left.
"""

NEAR, NEAR_TOLS = 0.03, 30.0
"""Nor has one that Newton's steps of single coefficients would lower by more than this share of what training has
gained, or that multiple of `tol`.

Noise hides slow coefficients, such as those of rare symbols under the mean gradient; these steps see most of what they
leave (benchmarks/convergence: all fits that end 5 % of the gain above the optimum).
"""

FEW_UPDATES = 100
"""Nor over fewer updates than these: losses oscillate at a fast rate before they converge."""


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
    """One training at one starting rate.

    Attributes
    ----------
    losses, curve : list of float
        The mean losses of its epochs, each row's before its own update, and these with their penalties.
    validation : list of float
        Of the held-out rows after each epoch.
    bests : list of float
        The least loss watched until each epoch since the rate last changed: of the held-out rows with early stopping;
        else the penalised loss of all rows after an epoch, which has less noise than `curve`.
    """

    descent: Descent
    reference: Reference
    held_out: RowNumbers
    rate: float
    curve: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    bests: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.kept: tuple[Floats, int] | None = None
        self._start = np.inf
        if self.descent.options.early_stopping:  # the start is epoch 0
            self._start = self.descent.loss(self.held_out)
            self.bests.append(self._start)
            self.kept = self.descent.save()

    def run(self) -> Outcome:
        """Make the epochs; Ctrl-C ends them after the one before, where there was one.

        Raises
        ------
        Diverged
            The loss ran away, or is not finite.
        """
        try:
            self._run()
        except KeyboardInterrupt:
            if not self.curve:
                raise
            return self._outcome(interrupted=True)
        return self._outcome()

    def _run(self) -> None:
        options = self.descent.options
        converged = self._run_epochs(options.epochs - options.n_cooling)
        constant_rate = len(self.curve)
        least = 1 if options.tol is None else options.n_iter_no_change
        self._cool(min(options.n_cooling, max(least, round(COOLING * constant_rate))))
        if options.early_stopping and min(self.validation) >= self._start:
            warn_user(
                f"No epoch lowered the loss of the held-out rows ({min(self.validation):.4g}, from {self._start:.4g}), "
                "and the model is that of the start; give a smaller learning_rate, or leave out columns such as ids.",
                ConvergenceWarning,
            )
            return
        if options.short is not None:
            converged = not self.reference.is_falling(self.curve[:constant_rate], options.short)
        elif options.tol is None:  # the number of epochs was given
            return
        elif converged and not options.early_stopping:
            converged = self._is_near_an_optimum(max(NEAR, NEAR_TOLS * options.tol))
        if not converged:
            self._warn()

    def _run_epochs(self, most: int) -> bool:
        """Epochs until the monitored loss has converged, at most `most`; whether it has."""
        options = self.descent.options
        for _ in range(most):
            self._step(self.rate)
            if not self._has_stalled():
                continue
            if options.schedule == "adaptive" and self.rate / ADAPTIVE_FACTOR >= ADAPTIVE_END:
                self.rate /= ADAPTIVE_FACTOR
                del self.bests[:-1]
            elif options.early_stopping or options.tol is not None or options.schedule == "adaptive":
                return True
        return False

    def _has_stalled(self) -> bool:
        """Whether the best loss has not improved by `tol`, as a share of what training has gained, for long enough."""
        options = self.descent.options
        patience = options.n_iter_no_change
        if not options.early_stopping and options.tol is not None:
            few = -(-FEW_UPDATES // self.descent.updates_of_an_epoch)
            patience = max(patience, few, round(WINDOW * len(self.bests)))
        if len(self.bests) <= patience:
            return False
        gain = self._start - self.bests[-1] if options.early_stopping else self.reference.gain(self.bests[-1])
        return self.bests[-1 - patience] - self.bests[-1] <= (options.tol or 0.0) * gain

    def _is_near_an_optimum(self, share: float) -> bool:
        """Whether Newton's steps of single coefficients would take no more than such a share of the gain."""
        descent, reference = self.descent, self.reference
        if not descent.task.loss.is_smooth:
            return True
        gain = reference.gain(descent.loss(descent.members) + descent.penalty())
        return descent.newton_decrement() <= share * gain + LITTLE * reference.start

    def _cool(self, n_epochs: int) -> None:
        """Epochs over which the rate falls to zero."""
        for left in range(n_epochs, 0, -1):
            self._step(self.rate * left / n_epochs, self.rate * (left - 1) / n_epochs)

    def _step(self, rate: float, until: float | None = None) -> None:
        """One epoch, noted."""
        descent, options = self.descent, self.descent.options
        penalty = descent.penalty()
        self.losses.append(descent.one_epoch(rate, until))
        self.curve.append(self.losses[-1] + penalty)
        if self.reference.has_diverged(self.curve[-1]):
            raise Diverged(self.curve[-1])
        if options.early_stopping:
            self.validation.append(descent.loss(self.held_out))
        if options.verbose:
            print(
                f"epoch {len(self.curve)}/{options.epochs}  loss {(self.validation or self.losses)[-1]:.6g}",
                file=sys.stderr,
            )
        watched = self.curve[-1]
        if options.early_stopping:
            watched = self.validation[-1]
        elif options.tol is not None:
            watched = descent.loss(descent.members) + descent.penalty()
        best = self.bests[-1] if self.bests else np.inf
        if options.early_stopping and watched < best:
            self.kept = descent.save()
        self.bests.append(min(watched, best))

    def _warn(self) -> None:
        n = len(self.curve)
        warn_user(
            f"Training did not converge in {n} epochs; give more, e.g. max_iter={4 * n}"
            f"{_other_remedy(self.descent.options)}.",
            ConvergenceWarning,
        )

    def _outcome(self, *, interrupted: bool = False) -> Outcome:
        state, n_steps = self.kept or (self.descent.state, self.descent.n_steps)
        return Outcome(state, n_steps, self.losses, self.validation, interrupted)


def _other_remedy(options: Options) -> str:
    remedies = [] if options.tries else ["learning_rate='auto'"]
    if options.is_dense:
        remedies.append("gradient='gse'")
    return "".join(f", or {remedy}" for remedy in [*remedies, "WideClassifier or WideRegressor"])
