"""The training loop: epochs, stopping, early stopping on rows that it holds out, a smaller rate after divergence.

``learning_rate="auto"`` is a rate by rule for the default optimizer, else the best of short trainings on a sample.

The state of a training, which the kernels update epoch by epoch, is here too.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from tabsym.categories import row_numbers
from tabsym.design.model_spec import ModelSpec, Program, Rows, Work
from tabsym.losses.loss import Loss, best_constant
from tabsym.messages import plural, warn_user
from tabsym.solvers.sgd.kernels import (
    finish,
    newton_sums,
    predict_margins,
    sum_by_entry,
    train_additive,
    train_batches,
    train_online,
)
from tabsym.solvers.sgd.options import ADAPTIVE_END, ADAPTIVE_FACTOR, SGD, Adagrad, Adam, Optimizer, Options, RMSprop
from tabsym.solvers.sgd.rules import Rule

# -- the state of a training -----------------------------------------------------------------------

Floats = NDArray[np.float64]
RowNumbers = NDArray[np.signedinteger[Any]]
State = tuple[Floats, int]
"""Coefficients with the optimizer's state, and the number of updates."""

CACHE_BYTES = 1 << 22
"""Code matrices above this are stored shuffled and read in runs of RUN rows.

Reading rows in random order costs a cache miss or two per row. The matrix is shuffled once, fully, when it is made;
then each epoch shuffles runs of consecutive rows (`benchmarks/evidence/constants.md`).
"""
RUN = 256

STEPS_DOWN = 16
"""The number of steps in which a decaying rate decreases within an epoch."""


@dataclass(frozen=True)
class Task:
    """The training problem: a program, a loss, and K outputs.

    `vectors`: (first coefficient, end, rank) of the terms of latent vectors.
    """

    program: Program
    loss: Loss
    n_outputs: int
    vectors: tuple[tuple[int, int, int], ...] = ()

    @property
    def neutral(self) -> Floats:
        """Values of the slots (slots, K) for unknown categories: training rows have none."""
        return np.zeros((len(self.program.columns), self.n_outputs))

    def mean_loss(self, margins: Floats, rows: Rows) -> float:
        """The weighted mean loss of rows at these linear predictors (n, K)."""
        return float(np.average(self.loss.values(margins, rows.y), weights=rows.shares))


def storage_order(n_rows: int, n_columns: int, shuffle: bool, rng: np.random.RandomState) -> RowNumbers | None:
    """The order in which to store rows, None for as they are."""
    if not shuffle or n_rows * n_columns * 4 <= CACHE_BYTES:
        return None
    return np.asarray(rng.permutation(row_numbers(n_rows)))


class Trainer:
    """State (E * K, width), and the epochs over `members` that update it; the state given is not changed."""

    def __init__(
        self,
        rows: Rows,
        members: RowNumbers,
        coef_weight: Floats,
        state: Floats,
        task: Task,
        options: Options,
        rng: np.random.RandomState,
        n_steps: int = 0,
    ) -> None:
        self.rows, self.members, self.coef_weight = rows, members, coef_weight
        self.task, self.options, self.rng = task, options, rng
        self.state, self.n_steps = state.copy(), n_steps
        self._given = state, n_steps
        self._order = members.copy() if options.shuffle else members
        self._total = float(rows.weight[members].sum()) if len(rows.weight) else float(len(members))
        self._batch = options.batch(len(members))
        # for a batch of one row gse and mean gradients are equal
        self._online = self._batch == 1 and not options.updates_all
        self._work = Work.make(task.program, task.n_outputs, batches=not self._online)
        self._neutral = task.neutral
        self._rule: Rule | None = None

    @property
    def updates_of_an_epoch(self) -> int:
        return -(-len(self.members) // self._batch)

    def restart(self) -> None:
        """Restore the initial state."""
        self.state[:], self.n_steps = self._given
        self._work = Work.make(self.task.program, self.task.n_outputs, batches=not self._online)

    def save(self) -> State:
        return self.state.copy(), self.n_steps

    def one_epoch(self, rate: float, until: float | None = None) -> float:
        """One epoch, at a rate that decays linearly to `until` where that is given: the mean loss of the rows.

        The loss of each batch is that before the update by it.
        """
        if self.options.shuffle:  # into the order: allocating in every epoch would cost more than the shuffle
            shuffle_rows(self.members, self._order, self.rows.codes.nbytes, self.rng)
        if until is None:
            return self._descend(self._order, rate) / self._total
        n_batches = self.updates_of_an_epoch
        terms = np.array_split(np.arange(n_batches), min(STEPS_DOWN, n_batches))
        lost = 0.0
        for index, term in enumerate(terms):
            part = self._order[term[0] * self._batch : (term[-1] + 1) * self._batch]
            lost += self._descend(part, rate + (until - rate) * (index + 0.5) / len(terms))
        return lost / self._total

    def margins(self, rows: Rows, *, at_start: bool = False) -> Floats:
        """Linear predictors (n, K) of rows, in the scale of training, currently or at the start."""
        state = self._given[0] if at_start else self.state
        coefs = np.ascontiguousarray(state[:, [self.options.columns.predicted]])
        out = np.empty((len(rows.codes), self.task.n_outputs))
        predict_margins(rows, self.task.program, self._neutral, coefs, out)
        return out

    def loss(self, members: RowNumbers) -> float:
        """The current mean loss of some of the rows, without penalties."""
        rows = self.rows if len(members) == len(self.rows.y) else self.rows.take(members, self.task.n_outputs)
        return self.task.mean_loss(self.margins(rows), rows)

    def newton_decrement(self) -> float:
        """The decrease of the mean loss, by its Hessian's diagonal, if each coefficient alone took its Newton step."""
        task, options, n_outputs = self.task, self.options, self.task.n_outputs
        values = self.state[:, options.columns.predicted].copy()
        gradient, hessian, space = np.zeros(len(values)), np.zeros(len(values)), np.empty(n_outputs)
        work = Work.make(task.program, n_outputs, batches=False)
        rule = options.rule(task.loss, options.learning_rate)
        newton_sums(
            self.rows, self.members, task.program, self._neutral, rule, values[:, None], work, space, gradient, hessian
        )
        gradient += options.l2 * self._penalty_weight * values
        hessian += options.l2 * self._penalty_weight
        lasso = options.l1 * self._penalty_weight
        gradient += np.where(values == 0.0, -np.clip(gradient, -lasso, lasso), lasso * np.sign(values))
        is_curved = hessian > 0
        return float(np.sum(np.square(gradient[is_curved]) / hessian[is_curved])) / (2.0 * self._total)

    def penalty(self, *, at_start: bool = False) -> float:
        """The penalty of the coefficients, currently or at the start, per unit of weight."""
        options = self.options
        if options.l1 == options.l2 == 0:
            return 0.0
        values = (self._given[0] if at_start else self.state)[:, 0]
        return (
            float(self._penalty_weight @ (options.l1 * np.abs(values) + 0.5 * options.l2 * np.square(values)))
            / self._total
        )

    @cached_property
    def _penalty_weight(self) -> Floats:
        """The weight of each coefficient's penalty: of its rows under gse, of all rows otherwise; 0 for scalars."""
        rows, is_fixed = self.rows, self.task.program.is_fixed
        weights = np.full(len(is_fixed), self._total)
        if not self.options.is_dense:
            weight = rows.weight[self.members] if len(rows.weight) else rows.weight
            weights[:] = 0.0
            sum_by_entry(rows.codes[self.members], weight, np.full(len(is_fixed), -1, dtype=np.int64), weights)
        return np.repeat(np.where(is_fixed, 0.0, weights), self.task.n_outputs)

    def _descend(self, order: RowNumbers, rate: float) -> float:
        """Train on rows in order; the sum of their losses."""
        task, options, rows, work = self.task, self.options, self.rows, self._work
        program, rule = task.program, self._rule_at(rate)
        if self._online and rule.simple and not len(program.constants):
            lost = train_additive(rows, order, self.coef_weight, program, rule, task.n_outputs, self.state, work)
        elif self._online:
            lost = train_online(
                rows, order, self.coef_weight, program, self._neutral, rule, self.n_steps, task.n_outputs, self.state,
                work,
            )  # fmt: skip
        else:
            lost = train_batches(
                rows, order, self._batch, options.is_dense, options.updates_all, self.coef_weight, program,
                self._neutral, rule, self.n_steps, task.n_outputs, self.state, work,
            )  # fmt: skip
        self.n_steps += -(-len(order) // self._batch)
        if rule.lazy:
            finish(self.n_steps, program, rule, task.n_outputs, self.state)
        return float(lost)

    def _rule_at(self, rate: float) -> Rule:
        """The options as passed to kernels; for the schedule "optimal" the rate is the highest one."""
        if self.options.optimal_cap is not None:
            return self.options.at_rate(rate).rule(self.task.loss, rate)
        if self._rule is None:
            self._rule = self.options.rule(self.task.loss, rate)
        return self._rule._replace(rate=rate)


def shuffle_rows(members: RowNumbers, order: RowNumbers, n_bytes: int, rng: np.random.RandomState) -> None:
    """Write `members` into `order`, shuffled: row by row, or by runs where the rows exceed the cache."""
    if n_bytes <= CACHE_BYTES:
        order[:] = members
        rng.shuffle(order)
        return
    n_whole = len(members) // RUN * RUN  # the rows left over come last
    runs = rng.permutation(n_whole // RUN)
    np.take(members[:n_whole].reshape(-1, RUN), runs, axis=0, out=order[:n_whole].reshape(-1, RUN), mode="clip")
    order[n_whole:] = members[n_whole:]


# -- epochs ---------------------------------------------------------------------------------------

SAMPLE = 1_000
"""The number of rows on which the initial loss is computed where it is used to detect divergence alone."""

NOISE_ROWS = 20
"""The bound on a diverging loss is raised by this over the number of rows, as the loss of few rows is noisy."""

TINY = 1e-12
"""Mean losses below this, in the scale of training, are rounding."""

LITTLE = 1e-4
"""Decreases below this fraction of the initial loss are ignored, as for targets without noise."""

SHORTEST = 4
"""With fewer epochs it is not checked whether the loss is still decreasing."""

OPTIMISM = 0.2
"""Expected optimism: each free parameter lowers the training log-loss by about 1/2; decreases below this fraction of
that are ignored."""


class Reference:
    """The reference for training losses.

    Attributes
    ----------
    min_loss : float
        The mean loss of perfect predictions.
    start : float
        The mean excess loss over `min_loss` at the start: of the optimal constant or the initial coefficients,
        whichever is larger; on a sample of rows unless more depends on it.
    lowest : float
        The smaller of the two.
    """

    def __init__(self, trainer: Trainer) -> None:
        members, weight = trainer.members, trainer.rows.weight
        self.min_loss = _min_loss(trainer.task, trainer.rows.y[members], weight[members] if len(weight) else weight)
        self._descent = trainer
        by_gain = trainer.options.tol is not None
        self._measure(members if by_gain else members[:: max(1, len(members) // SAMPLE)])

    def _measure(self, members: RowNumbers) -> None:
        """Compute the initial losses on these rows."""
        trainer, task = self._descent, self._descent.task
        rows = trainer.rows.take(members, task.n_outputs)
        offset = rows.offset.reshape(-1, task.n_outputs) if len(rows.offset) else None
        constant = best_constant(task.loss, rows.y, rows.shares, task.n_outputs, offset)
        margins = np.tile(constant, (len(rows.y), 1)) + (0.0 if offset is None else offset)
        starts = [task.mean_loss(margins, rows)]
        starts.append(task.mean_loss(trainer.margins(rows, at_start=True), rows) + trainer.penalty(at_start=True))
        min_loss = _min_loss(task, rows.y, rows.weight)
        self.start, self.lowest = (max(loss - min_loss, 0.0) for loss in (max(starts), min(starts)))
        self.is_sampled = len(members) < len(trainer.members)

    def has_diverged(self, loss: float) -> bool:
        """Whether a mean loss has diverged; a sample's initial loss is recomputed on all rows first."""
        if self._is_far(loss) and np.isfinite(loss) and self.is_sampled:
            self._measure(self._descent.members)
        return self._is_far(loss)

    def _is_far(self, loss: float) -> bool:
        trainer = self._descent
        max_excess = trainer.options.divergence * (1.0 + NOISE_ROWS / len(trainer.members)) * self.start + TINY
        return not loss - self.min_loss <= max_excess

    def gain(self, loss: float) -> float:
        """The decrease of the loss by training."""
        return max(self.min_loss + self.lowest - loss, 0.0)

    def is_falling(self, curve: list[float], fraction: float) -> bool:
        """Whether the last quarter of the epochs lowered the loss by more than this fraction, and noise."""
        if len(curve) < SHORTEST:
            return False
        quarter = len(curve) // 4
        decrease = float(np.mean(curve[-2 * quarter : -quarter]) - np.mean(curve[-quarter:]))
        excess, trainer = min(curve[-2:]) - self.min_loss, self._descent
        unit = 0.5 if trainer.task.loss.for_classes else excess  # for other losses the noise itself is the unit
        noise = OPTIMISM * len(trainer.state) / len(trainer.members) * unit
        return decrease > fraction * excess + noise + LITTLE * self.start


def _min_loss(task: Task, y: Floats, weight: Floats) -> float:
    """The mean loss of perfect predictions."""
    if not task.loss.log_link:  # all others have minimum 0
        return 0.0
    return float(np.average(task.loss.least(y), weights=weight if weight.any() else None))


COOLING = 0.5
"""The rate decays to zero over this fraction of the epochs before, where these ended by convergence."""

WINDOW = 0.25
"""The training loss has converged that did not improve over this fraction of the epochs, and `n_iter_no_change` of
them.

A loss that decreases by a power of the epochs, however slowly, decreases over that window by a fixed fraction.
"""

NEAR, NEAR_TOLS = 0.03, 30.0
"""It has not converged either where Newton steps of single coefficients would lower it by more than this fraction of
the gain so far, or that multiple of `tol`.

Noise hides slow coefficients, such as those of rare categories under the mean gradient; these steps detect most of them
(benchmarks/convergence: all fits that end 5 % of the gain above the optimum).
"""

MIN_UPDATES = 100
"""The window has at least this many updates: with a large rate losses oscillate before they converge."""


@dataclass(frozen=True)
class TrainingResult:
    """State after training, number of updates, and mean losses: of each epoch, and of held-out rows after it."""

    state: Floats
    n_steps: int
    loss_curve: list[float]
    validation_curve: list[float]
    interrupted: bool = False


class Diverged(Exception):
    """Training diverged; the argument is the loss."""


@dataclass
class TrainingLoop:
    """One training from one initial rate.

    Attributes
    ----------
    losses, curve : list of float
        The mean losses of its epochs, each row's before the update by it, and these plus the penalties.
    validation : list of float
        Held-out loss after each epoch.
    bests : list of float
        The lowest monitored loss up to each epoch since the rate last changed: held-out loss with early stopping; else
        the penalized loss of all rows after an epoch, which has less noise than `curve`.
    """

    trainer: Trainer
    reference: Reference
    held_out: RowNumbers
    rate: float
    curve: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    bests: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.best_state: tuple[Floats, int] | None = None
        self._start = np.inf
        if self.trainer.options.early_stopping:  # the start is epoch 0
            self._start = self.trainer.loss(self.held_out)
            self.bests.append(self._start)
            self.best_state = self.trainer.save()

    def run(self) -> TrainingResult:
        """Run the epochs; Ctrl-C ends them after the last complete one, if there is one.

        Raises
        ------
        Diverged
            The loss diverged, or is not finite.
        """
        try:
            self._run()
        except KeyboardInterrupt:
            if not self.curve:
                raise
            return self._outcome(interrupted=True)
        return self._outcome()

    def _run(self) -> None:
        options = self.trainer.options
        converged = self._run_epochs(options.epochs - options.n_cooling)
        constant_rate = len(self.curve)
        min_cooling = 1 if options.tol is None else options.n_iter_no_change
        n_cooling = min(options.n_cooling, max(min_cooling, round(COOLING * constant_rate)))
        for left in range(n_cooling, 0, -1):  # epochs over which the rate decays to zero
            self._step(self.rate * left / n_cooling, self.rate * (left - 1) / n_cooling)
        if options.early_stopping and min(self.validation) >= self._start:
            warn_user(
                f"No epoch lowered the loss of the held-out rows ({min(self.validation):.4g}, from {self._start:.4g}), "
                "and the model is that of the start; give a smaller learning_rate, or leave out columns such as ids.",
                ConvergenceWarning,
            )
            return
        if options.short is not None:
            converged = not self.reference.is_falling(self.curve[:constant_rate], options.short)
            converged = converged and (options.scaled or self._is_near_an_optimum(NEAR))
        elif options.tol is None:  # the number of epochs was given
            return
        elif converged and not options.early_stopping:
            converged = self._is_near_an_optimum(max(NEAR, NEAR_TOLS * options.tol))
        if not converged:
            self._warn()

    def _run_epochs(self, max_epochs: int) -> bool:
        """Epochs until the monitored loss has converged, at most `max_epochs`; whether it has."""
        options = self.trainer.options
        for _ in range(max_epochs):
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
        """Whether the best loss has not improved by `tol`, as a fraction of the gain so far, for long enough."""
        options = self.trainer.options
        patience = options.n_iter_no_change
        if not options.early_stopping and options.tol is not None:
            min_epochs = -(-MIN_UPDATES // self.trainer.updates_of_an_epoch)
            patience = max(patience, min_epochs, round(WINDOW * len(self.bests)))
        if len(self.bests) <= patience:
            return False
        gain = self._start - self.bests[-1] if options.early_stopping else self.reference.gain(self.bests[-1])
        return self.bests[-1 - patience] - self.bests[-1] <= (options.tol or 0.0) * gain

    def _is_near_an_optimum(self, fraction: float) -> bool:
        """Whether Newton steps of single coefficients would gain at most this fraction of the gain so far."""
        trainer, reference = self.trainer, self.reference
        if not trainer.task.loss.is_smooth:
            return True
        gain = reference.gain(trainer.loss(trainer.members) + trainer.penalty())
        return trainer.newton_decrement() <= fraction * gain + LITTLE * reference.start

    def _step(self, rate: float, until: float | None = None) -> None:
        """One epoch, recorded."""
        trainer, options = self.trainer, self.trainer.options
        penalty = trainer.penalty()
        self.losses.append(trainer.one_epoch(rate, until))
        self.curve.append(self.losses[-1] + penalty)
        if self.reference.has_diverged(self.curve[-1]):
            raise Diverged(self.curve[-1])
        if options.early_stopping:
            self.validation.append(trainer.loss(self.held_out))
        if options.verbose:
            print(
                f"epoch {len(self.curve)}/{options.epochs}  loss {(self.validation or self.losses)[-1]:.6g}",
                file=sys.stderr,
            )
        watched = self.curve[-1]
        if options.early_stopping:
            watched = self.validation[-1]
        elif options.tol is not None:
            watched = trainer.loss(trainer.members) + trainer.penalty()
        best = self.bests[-1] if self.bests else np.inf
        if options.early_stopping and watched < best:
            self.best_state = trainer.save()
        self.bests.append(min(watched, best))

    def _warn(self) -> None:
        n = len(self.curve)
        warn_user(
            f"Training did not converge in {plural(n, 'epoch')}; give more, e.g. "
            f"max_iter={4 * n}{_remedies(self.trainer.options)}.",
            ConvergenceWarning,
        )

    def _outcome(self, *, interrupted: bool = False) -> TrainingResult:
        state, n_steps = self.best_state or (self.trainer.state, self.trainer.n_steps)
        return TrainingResult(state, n_steps, self.losses, self.validation, interrupted)


def _remedies(options: Options) -> str:
    remedies = [] if options.scaled else ["standardize=True"]
    remedies += [] if options.tries else ["learning_rate='auto'"]
    if options.is_dense:
        remedies.append("gradient='gse'")
    return "".join(f", or {remedy}" for remedy in [*remedies, "WideClassifier or WideRegressor"])


Split = tuple[RowNumbers, RowNumbers]

STEP_BACK = 4.0
"""An automatic rate that diverges is divided by this, and training starts again."""


def train(
    rows: Rows,
    coef_weight: Floats,
    state: Floats,
    task: Task,
    options: Options,
    rng: np.random.RandomState,
    n_steps: int = 0,
    split: Split | None = None,
) -> TrainingResult:
    """Train a copy of `state` (E * K, width) for up to `options.epochs` epochs.

    Ends early where `tol` is set and the loss has converged, or with `early_stopping`, by the loss of the held-out rows
    of `split`; then the best state is returned, the initial one included. Ctrl-C ends it after the last complete epoch,
    if there is one.

    Raises
    ------
    ValueError
        The loss diverged, or is not finite.
    """
    training_rows, held_out = split or split_rows(len(rows.y), options, rng)
    trainer = Trainer(rows, training_rows, coef_weight, state, task, options, rng, n_steps)
    reference = Reference(trainer)
    rate = options.learning_rate
    for tries in range(options.tries, -1, -1):
        try:
            return TrainingLoop(trainer, reference, held_out, rate).run()
        except Diverged as diverged:
            if not tries:
                start = reference.start + reference.min_loss
                remedy = "try a learning_rate ten times smaller"
                if options.tries:  # all of which diverged
                    remedy = f"use {'WideClassifier or WideRegressor' if options.scaled else 'standardize=True'}"
                raise ValueError(
                    f"Training diverged (the loss became {diverged.args[0]:.4g}, from {start:.4g}) with "
                    f"learning_rate={rate:g}{' and larger ones' if options.tries else ''}; {remedy}."
                ) from None
        trainer.restart()
        rate /= STEP_BACK
    raise AssertionError("a try returns or raises")


def split_rows(n_rows: int, options: Options, rng: np.random.RandomState) -> Split:
    """The training rows, and the held-out rows for early stopping."""
    everything = row_numbers(n_rows)
    if not options.early_stopping:
        return everything, everything[:0]
    n_held_out = int(np.ceil(options.validation_fraction * n_rows))
    if n_held_out >= n_rows:
        raise ValueError(
            f"early_stopping holds out {n_held_out} of {n_rows} row(s), which leaves none to train on; "
            "give more rows, a smaller validation_fraction or early_stopping=False."
        )
    held_out = np.zeros(n_rows, dtype=bool)
    held_out[rng.permutation(n_rows)[:n_held_out]] = True
    return everything[~held_out], everything[held_out]


RATE, MAX_RATE, MAX_PRODUCT_RATE = 3.0, 0.5, 0.1
"""Adagrad's rate is RATE / (terms of a row), at most MAX_RATE, or MAX_PRODUCT_RATE.

The terms of a row are updated together, so that the linear predictor changes by rate times their number in the first
steps (``benchmarks/defaults.py``). Factors of a product amplify each other's noise.
"""

FIRST_RATES = {Adagrad: 1.0, SGD: 0.5, RMSprop: 0.05, Adam: 0.1}
"""For other optimizers, relative to Adagrad's: the start of a search, and the rate of a stream, which has no search."""

SEARCH_ROWS, SEARCH_SCORES = 8_192, 65_536
"""Rows of the sample that a search trains on, or linear predictors for multiclass."""

UPDATES, MIN_PASSES, MAX_PASSES = 300, 2, 30
"""The approximate number of updates by which a rate is evaluated, in epochs within these bounds."""

WIDE, NARROW, MAX_TRIALS = 4.0, 2.0, 12
"""Factors between the rates that are tried, first the wide one, then the narrow one about the best; and the largest
number of rates."""


def rule_of_thumb(optimizer: Optimizer, spec: ModelSpec) -> float:
    """A rate from the optimizer and the number of terms alone."""
    max_rate = MAX_RATE if spec.is_additive else MAX_PRODUCT_RATE
    scale = next(factor for kind, factor in FIRST_RATES.items() if isinstance(optimizer, kind))
    rate = min(max_rate, RATE / max(1, spec.n_terms)) * scale
    if isinstance(optimizer, SGD):  # the terms of a row step in the same direction, and must not overshoot
        rate = min(rate, 0.5 / (1 + spec.n_terms)) * (1.0 - optimizer.momentum)
    return rate


def is_known_to_do(options: Options, spec: ModelSpec) -> bool:
    """Whether the rule of thumb is used without a search: for the default, with sums of main effects and slopes."""
    online = options.batch_size == 1 and not options.is_dense and options.schedule in ("constant", "adaptive")
    return isinstance(options.optimizer, Adagrad) and online and spec.is_plain


def search_rate(
    rows: Rows,
    split: Split,
    coef_weight: Floats,
    state: Floats,
    task: Task,
    options: Options,
    rng: np.random.RandomState,
) -> float:
    """The rate of the lowest loss after a short training on a sample, by hill climbing from ``options.learning_rate``.

    The loss is that of the sample; with early stopping that of the held-out rows at the best epoch, where another rate
    must be better by a standard error, and at most WIDE times the first: a large rate can fit the training rows in its
    first epoch, and a few held-out rows by chance, where a smaller one only needs more epochs.
    """
    members, held_out = split
    n_rows = len(members)
    dearer = options.dearer_by(len(task.program.is_fixed), n_rows)
    size = min(n_rows, max(512, min(SEARCH_ROWS, SEARCH_SCORES // task.n_outputs) // dearer))
    sample = rows.take(members[np.sort(rng.permutation(n_rows)[:size])], task.n_outputs)
    validation = rows.take(held_out[:SEARCH_ROWS], task.n_outputs)
    seed = rng.randint(np.iinfo(np.int32).max)
    tried: dict[float, Floats] = {}

    def losses(rate: float) -> Floats:
        if rate not in tried:
            tried[rate] = _try(sample, validation, coef_weight, state, task, options.at_rate(rate), seed)
        return tried[rate]

    def is_better(rate: float, than: float) -> bool:
        if not np.isfinite(losses(than)).all():
            return bool(np.isfinite(losses(rate)).all())
        gain = losses(than) - losses(rate)
        with np.errstate(over="ignore"):  # for a rate far too large
            return bool(np.isfinite(gain).all() and gain.mean() > gain.std() / np.sqrt(len(gain)))

    best = options.learning_rate
    max_rate = WIDE * best if options.early_stopping else np.inf
    for factor in (WIDE, NARROW):
        for step in (factor, 1.0 / factor):
            while len(tried) < MAX_TRIALS and best * step <= max_rate and is_better(best * step, best):
                best *= step
        while not np.isfinite(losses(best)).all() and len(tried) < MAX_TRIALS:
            best /= factor**2
    return best


def _try(
    rows: Rows, validation: Rows, coef_weight: Floats, state: Floats, task: Task, options: Options, seed: int
) -> Floats:
    """The mean loss (1,) after a few epochs, the last with a decaying rate; infinite where it diverges.

    With early stopping the weighted loss of each row of `validation`, at the best epoch, and a constant rate.
    """
    trainer = Trainer(rows, row_numbers(len(rows.y)), coef_weight, state, task, options, np.random.RandomState(seed))
    n_epochs = int(np.clip(-(-UPDATES // trainer.updates_of_an_epoch), MIN_PASSES, MAX_PASSES))
    rate, best = options.learning_rate, np.array([np.inf])
    weights = 1.0 if validation.shares is None else validation.shares / validation.shares.mean()
    with np.errstate(all="ignore"):
        for left in range(n_epochs, 0, -1):
            falls = left == 1 and options.cools and not options.early_stopping
            if not np.isfinite(trainer.one_epoch(rate, 0.0 if falls else None)):
                break
            if options.early_stopping:
                losses = weights * task.loss.values(trainer.margins(validation), validation.y)
                best = losses if losses.mean() < best.mean() else best
            elif left == 1:
                best = np.array([task.mean_loss(trainer.margins(rows), rows) + trainer.penalty()])
    return best
