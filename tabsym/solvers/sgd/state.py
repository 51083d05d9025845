"""The state of a training, which the kernels update epoch by epoch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.categories import row_numbers
from tabsym.design.model_spec import Program, Rows, Work
from tabsym.losses.loss import Loss
from tabsym.solvers.sgd.kernels import (
    finish,
    newton_sums,
    predict_margins,
    sum_by_entry,
    train_additive,
    train_batches,
    train_online,
)
from tabsym.solvers.sgd.options import Options
from tabsym.solvers.sgd.rules import Rule

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
        self._online = self._batch == 1 and not options.must_sweep
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
        shown = np.ascontiguousarray(state[:, [self.options.columns.shown]])
        out = np.empty((len(rows.codes), self.task.n_outputs))
        predict_margins(rows, self.task.program, self._neutral, shown, out)
        return out

    def loss(self, members: RowNumbers) -> float:
        """The current mean loss of some of the rows, without penalties."""
        rows = self.rows if len(members) == len(self.rows.y) else self.rows.take(members, self.task.n_outputs)
        return self.task.mean_loss(self.margins(rows), rows)

    def newton_decrement(self) -> float:
        """The decrease of the mean loss, by its Hessian's diagonal, if each coefficient alone took its Newton step."""
        task, options, n_outputs = self.task, self.options, self.task.n_outputs
        values = self.state[:, options.columns.shown].copy()
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
                rows, order, self._batch, options.is_dense, options.must_sweep, self.coef_weight, program,
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
