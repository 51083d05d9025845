"""The loop over epochs: row order, one pass of a kernel, stopping."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabsym.wide.kernels import predict_margins, sum_weights, train_batches, train_online
from tabsym.wide.losses import Loss
from tabsym.wide.optimizers import ADAM_CODE, Optimizer

Floats = NDArray[np.float64]

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
    gradient: str
    batch_size: int | None  # None: all rows
    epochs: int
    l2: float
    shuffle: bool
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    tol: float | None
    verbose: int


@dataclass(frozen=True)
class Data:
    """A coded training set; `weight` is empty or has mean 1 over the rows."""

    codes: NDArray[np.int32]
    x: Floats
    y: Floats
    weight: Floats

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True)
class Outcome:
    """State after training, the mean loss of each epoch, and of the held-out rows where there are any."""

    state: Floats
    loss_curve: list[float]
    validation_curve: list[float]


def storage_order(n_rows: int, n_blocks: int, shuffle: bool, rng: np.random.RandomState) -> NDArray[np.int64] | None:
    """The order in which to lay rows down, None for as they are."""
    if not shuffle or n_rows * n_blocks * 4 <= CACHE_BYTES:
        return None
    return rng.permutation(n_rows)


def train(
    data: Data, state: Floats, n_entries: int, loss: Loss, n_outputs: int, options: Options, rng: np.random.RandomState
) -> Outcome:
    """Train a copy of `state` ((entries + d + 1) * K, s) for up to `options.epochs` epochs.

    Ends early where `tol` is set and the loss (of the held-out rows with
    `early_stopping`, else of training) has not fallen by `tol` in
    `n_iter_no_change` epochs; with `early_stopping` the best state is kept.
    """
    state = state.copy()
    rows, held_out = _split(len(data), options, rng)
    entry_weight = _entry_weights(data, n_entries)
    curve: list[float] = []
    validation: list[float] = []
    best_state, best, waited = state, np.inf, 0
    order = rows.copy() if options.shuffle else rows
    for epoch in range(options.epochs):
        if options.shuffle:
            _shuffle(rows, order, data.codes.nbytes, rng)
        lost = _one_pass(data, entry_weight, order, state, loss, n_outputs, options)
        total = data.weight[order].sum() if len(data.weight) else len(order)
        curve.append(lost / total)
        _refuse_divergence(curve[-1], options.learning_rate)
        if options.early_stopping:
            validation.append(_held_out_loss(data, held_out, state, loss, n_outputs))
        watched = (validation or curve)[-1]
        if options.verbose:
            print(f"epoch {epoch + 1}/{options.epochs}  loss {watched:.6g}", file=sys.stderr)
        improved = watched < best - (options.tol or 0.0)
        waited = 0 if improved else waited + 1
        if watched < best:
            best = watched
            best_state = state.copy() if options.early_stopping else state
        if (options.early_stopping or options.tol is not None) and waited >= options.n_iter_no_change:
            break
    return Outcome(best_state if options.early_stopping else state, curve, validation)


def _one_pass(
    data: Data, entry_weight: Floats, order: NDArray[np.int64], state: Floats, loss: Loss, n_outputs: int, o: Options
) -> float:
    rule = (loss.code, o.optimizer.code, o.learning_rate, o.l2, o.optimizer.hyper, n_outputs, state)
    dense = o.gradient == "mean"
    batch = len(order) if o.batch_size is None else min(o.batch_size, len(order))
    sweep = dense and (o.l2 > 0 or o.optimizer.code == ADAM_CODE)
    rows = (data.codes, data.x, data.y, data.weight, entry_weight, order)
    if batch == 1 and not sweep:  # a batch of one row has the same mean over its symbols and over its rows
        weights = np.ones_like(entry_weight) if dense else entry_weight
        return float(train_online(*rows[:4], weights, order, *rule))
    return float(train_batches(*rows, batch, dense, sweep, *rule))


def _split(n_rows: int, options: Options, rng: np.random.RandomState) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    everything = np.arange(n_rows)
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


def _shuffle(rows: NDArray[np.int64], order: NDArray[np.int64], n_bytes: int, rng: np.random.RandomState) -> None:
    """Write `rows` into `order`, shuffled (new memory in every epoch would cost more than the shuffle)."""
    if n_bytes <= CACHE_BYTES:
        order[:] = rows
        rng.shuffle(order)
        return
    n_whole = len(rows) // RUN * RUN  # the rows left over come last
    runs = rng.permutation(n_whole // RUN)
    np.take(rows[:n_whole].reshape(-1, RUN), runs, axis=0, out=order[:n_whole].reshape(-1, RUN), mode="clip")


def _entry_weights(data: Data, n_entries: int) -> Floats:
    """The mean weight of the rows of each entry (entries,), 1 where there are none.

    A weighted batch divides by (rows in the batch) * (mean weight of the
    symbol's rows). Over all rows that is the sum of the symbol's weights;
    over one row it keeps the row's weight, which dividing by the weight of
    the batch itself would cancel.
    """
    if not len(data.weight):
        return np.empty(0)
    total = sum_weights(data.codes, data.weight, n_entries)
    rows = sum_weights(data.codes, np.ones(len(data)), n_entries)
    return np.divide(total, rows, out=np.ones(n_entries), where=rows > 0)


def _held_out_loss(data: Data, rows: NDArray[np.int64], state: Floats, loss: Loss, n_outputs: int) -> float:
    margins = predict_margins(data.codes[rows], data.x[rows], n_outputs, state)
    weights = data.weight[rows] if len(data.weight) else None
    if weights is not None and not weights.any():
        weights = None
    return float(np.average(loss.values(margins, data.y[rows]), weights=weights))


def _refuse_divergence(value: float, rate: float) -> None:
    if not np.isfinite(value):
        raise ValueError(
            f"Training diverged (the loss became {value}) with learning_rate={rate:g}; "
            "try a learning_rate ten times smaller."
        )
