"""The loop over epochs: row order, one pass of a kernel, stopping."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.codes import row_numbers
from tabsym.wide.kernels import finish, predict_margins, sum_weights, train_additive, train_batches, train_online
from tabsym.wide.losses import Loss
from tabsym.wide.optimizers import FTRL, Adagrad, AdamW, Optimizer, StateColumns
from tabsym.wide.program import Program, Rows, Work
from tabsym.wide.rules import Rule
from tabsym.wide.schedules import ADAPTIVE_END, ADAPTIVE_FACTOR, schedule_numbers

Floats = NDArray[np.float64]
RowNumbers = NDArray[np.signedinteger[Any]]

CACHE_BYTES = 1 << 22
"""Code matrices above this are stored shuffled and read in runs of RUN rows.

A row in random order costs a cache miss or two: half a million misses were
two thirds of an epoch over a million rows. The matrix is shuffled once, fully,
when it is made; then each epoch shuffles runs of rows that lie together
(.13 s an epoch against .29 s for a full shuffle, .12 s in storage order).
"""
RUN = 256


@dataclass(frozen=True)
class Options:
    """How to train; names as in the estimators."""

    optimizer: Optimizer
    learning_rate: float
    schedule: str = "constant"
    power_t: float = 0.5
    gradient: str = "gse"
    batch_size: int | None = 1  # None: all rows
    epochs: int = 1
    l1: float = 0.0
    l2: float = 0.0
    average: bool = False
    shuffle: bool = True
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 2
    tol: float | None = None
    verbose: int = 0

    @property
    def is_dense(self) -> bool:
        return self.gradient == "mean"

    @property
    def must_sweep(self) -> bool:
        """Whether absent entries move at every update in a way that only moving them all gets right."""
        if not self.is_dense:
            return False
        if (self.l1 > 0 or self.l2 > 0) and not isinstance(self.optimizer, FTRL):
            return True
        decays = isinstance(self.optimizer, AdamW) and self.optimizer.weight_decay > 0
        return decays and (self.average or self.schedule != "constant")

    @property
    def is_lazy(self) -> bool:
        """Whether absent entries take the steps they missed when they are next read."""
        moves = self.optimizer.moves_on or self.average or self.schedule in ("optimal", "invscaling")
        return self.is_dense and moves and not self.must_sweep

    @property
    def columns(self) -> StateColumns:
        """What the state of an entry keeps."""
        keep_steps = self.is_lazy or self.schedule in ("optimal", "invscaling")
        return StateColumns.plan(self.optimizer, keep_steps=keep_steps, keep_mean=self.average)

    def rule(self, loss: Loss, rate: float) -> Rule:
        """The options as the kernels read them."""
        code, parameter, start = schedule_numbers(self.schedule, self.power_t, self.l2, loss)
        eps, beta1, beta2 = self.optimizer.coefficients
        return Rule(
            loss=loss.code,
            parameter=loss.parameter,
            optimizer=self.optimizer.code,
            rate=rate,
            schedule=code,
            schedule_parameter=parameter,
            schedule_start=start,
            l1=self.l1,
            l2=self.l2,
            penalised_decay=float(getattr(self.optimizer, "weight_decay", 0.0)),
            eps=eps,
            beta1=beta1,
            beta2=beta2,
            nesterov=bool(getattr(self.optimizer, "nesterov", False)),
            step_column=self.columns.step,
            mean_column=self.columns.mean,
            lazy=self.is_lazy,
            simple=isinstance(self.optimizer, Adagrad) and self.l1 == self.l2 == 0 and self.columns.step < 0,
        )


@dataclass(frozen=True)
class Task:
    """What is trained: a program with the neutral values of its slots, a loss, and K outputs.

    `vectors`: (first entry, end, rank) of the blocks of latent vectors.
    """

    program: Program
    neutral: Floats
    loss: Loss
    n_outputs: int
    vectors: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class Outcome:
    """State after training, updates so far, and the mean losses: of each epoch, and of held-out rows after it."""

    state: Floats
    n_steps: int
    loss_curve: list[float]
    validation_curve: list[float]
    interrupted: bool = False


def storage_order(n_rows: int, n_columns: int, shuffle: bool, rng: np.random.RandomState) -> RowNumbers | None:
    """The order in which to lay rows down, None for as they are."""
    if not shuffle or n_rows * n_columns * 4 <= CACHE_BYTES:
        return None
    return np.asarray(rng.permutation(row_numbers(n_rows)))


def train(
    rows: Rows, state: Floats, task: Task, options: Options, rng: np.random.RandomState, n_steps: int = 0
) -> Outcome:
    """Train a copy of `state` (E * K, width) for up to `options.epochs` epochs.

    Ends early where `tol` is set and the loss (of the held-out rows with
    `early_stopping`, else of training) has not fallen by `tol` in
    `n_iter_no_change` epochs; with `early_stopping` the best state is kept.
    Ctrl-C ends it after the epoch before, where there was one.
    """
    state = state.copy()
    here, held_out = _split(len(rows.y), options, rng)
    entry_weight = _entry_weights(rows, task, options)
    curve: list[float] = []
    validation: list[float] = []
    best_state, best, waited, rate = state, np.inf, 0, options.learning_rate
    order = here.copy() if options.shuffle else here
    for epoch in range(options.epochs):
        if options.shuffle:
            _shuffle(here, order, rows.codes.nbytes, rng)
        try:
            lost, n_steps = _one_pass(rows, order, entry_weight, state, task, options, rate, n_steps)
        except KeyboardInterrupt:
            if not curve:
                raise
            return Outcome(best_state if options.early_stopping else state, n_steps, curve, validation, True)
        total = rows.weight[order].sum() if len(rows.weight) else len(order)
        curve.append(lost / total)
        _refuse_divergence(curve[-1], rate)
        if options.early_stopping:
            validation.append(_held_out_loss(rows, held_out, state, task, options))
        watched = (validation or curve)[-1]
        if options.verbose:
            print(f"epoch {epoch + 1}/{options.epochs}  loss {watched:.6g}", file=sys.stderr)
        improved = watched < best - (options.tol or 0.0)
        waited = 0 if improved else waited + 1
        if watched < best:
            best = watched
            best_state = state.copy() if options.early_stopping else state
        if waited >= options.n_iter_no_change:
            if options.schedule == "adaptive" and rate / ADAPTIVE_FACTOR >= ADAPTIVE_END:
                rate, waited = rate / ADAPTIVE_FACTOR, 0
            elif options.early_stopping or options.tol is not None or options.schedule == "adaptive":
                break
    return Outcome(best_state if options.early_stopping else state, n_steps, curve, validation)


def _one_pass(
    rows: Rows,
    order: RowNumbers,
    entry_weight: Floats,
    state: Floats,
    task: Task,
    options: Options,
    rate: float,
    n_steps: int,
) -> tuple[float, int]:
    """One epoch: the sum of the losses, and the updates so far."""
    rule = options.rule(task.loss, rate)
    batch = len(order) if options.batch_size is None else min(options.batch_size, len(order))
    online = batch == 1 and not options.must_sweep  # a batch of one row has the same mean over its symbols and its rows
    work = Work.make(task.program, task.n_outputs, batches=not online)
    if online and rule.simple and not len(task.program.constants):
        lost = train_additive(rows, order, entry_weight, task.program, rule, task.n_outputs, state, work)
    elif online:
        lost = train_online(
            rows, order, entry_weight, task.program, task.neutral, rule, n_steps, task.n_outputs, state, work
        )
    else:
        lost = train_batches(
            rows, order, batch, options.is_dense, options.must_sweep, entry_weight, task.program, task.neutral,
            rule, n_steps, task.n_outputs, state, work,
        )  # fmt: skip
    n_steps += -(-len(order) // batch)
    if rule.lazy:
        finish(n_steps, task.program, rule, task.n_outputs, state)
    return float(lost), n_steps


def _split(n_rows: int, options: Options, rng: np.random.RandomState) -> tuple[RowNumbers, RowNumbers]:
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


def _shuffle(rows: RowNumbers, order: RowNumbers, n_bytes: int, rng: np.random.RandomState) -> None:
    """Write `rows` into `order`, shuffled (new memory in every epoch would cost more than the shuffle)."""
    if n_bytes <= CACHE_BYTES:
        order[:] = rows
        rng.shuffle(order)
        return
    n_whole = len(rows) // RUN * RUN  # the rows left over come last
    runs = rng.permutation(n_whole // RUN)
    np.take(rows[:n_whole].reshape(-1, RUN), runs, axis=0, out=order[:n_whole].reshape(-1, RUN), mode="clip")


def _entry_weights(rows: Rows, task: Task, options: Options) -> Floats:
    """The mean weight of the rows of each entry (entries,), 1 where there are none; under "mean" 1 throughout.

    A weighted batch divides by (rows in the batch) * (mean weight of the
    symbol's rows). Over all rows that is the sum of the symbol's weights;
    over one row it keeps the row's weight, which dividing by the weight of
    the batch itself would cancel.
    """
    if not len(rows.weight):
        return np.empty(0)
    n_entries = len(task.program.is_fixed)
    if options.is_dense:
        return np.ones(n_entries)
    total, times = np.zeros(n_entries), np.zeros(n_entries)
    sum_weights(rows.codes, rows.weight, total)
    sum_weights(rows.codes, np.ones(len(rows.y)), times)
    mean = np.divide(total, times, out=np.ones(n_entries), where=times > 0)
    for start, end, rank in task.vectors:  # codes select the first number of a vector
        mean[start:end] = np.repeat(mean[start:end:rank], rank)
    return mean


def _held_out_loss(rows: Rows, held_out: RowNumbers, state: Floats, task: Task, options: Options) -> float:
    part = Rows(
        rows.codes[held_out],
        rows.x[held_out],
        rows.y[held_out],
        *(column[held_out] if len(column) else column for column in (rows.weight, rows.offset)),
    )
    shown = np.ascontiguousarray(state[:, [options.columns.shown]])
    margins = np.empty((len(held_out), task.n_outputs))
    predict_margins(part, task.program, task.neutral, shown, margins)
    weights = part.weight if len(part.weight) and part.weight.any() else None
    return float(np.average(task.loss.values(margins, part.y), weights=weights))


def _refuse_divergence(value: float, rate: float) -> None:
    if not np.isfinite(value):
        raise ValueError(
            f"Training diverged (the loss became {value}) with learning_rate={rate:g}; "
            "try a learning_rate ten times smaller."
        )
