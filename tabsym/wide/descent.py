"""A training under way: the state that the kernels move, pass by pass."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize

from tabsym.codes import row_numbers
from tabsym.wide.kernels import finish, predict_margins, sum_by_entry, train_additive, train_batches, train_online
from tabsym.wide.kernels_newton import newton_sums
from tabsym.wide.losses import Loss
from tabsym.wide.optimizers import FTRL
from tabsym.wide.options import Options
from tabsym.wide.program import Program, Rows, Work
from tabsym.wide.rules import Rule, rebase_ftrl

Floats = NDArray[np.float64]
RowNumbers = NDArray[np.signedinteger[Any]]
State = tuple[Floats, int]
"""Parameters with the optimizer's memory, and the updates so far."""

CACHE_BYTES = 1 << 22
"""Code matrices above this are stored shuffled and read in runs of RUN rows.

A row in random order costs a cache miss or two, two thirds of an epoch over a
million rows. The matrix is shuffled once, fully, when it is made; then each
epoch shuffles runs of rows that lie together.
"""
RUN = 256

STEPS_DOWN = 16
"""In so many steps a rate falls within a pass."""

LOOK, LOOK_ON = 30, 0.001
"""To see whether a loss could fall by so much, steps of L-BFGS at most, while one brings such a share of it."""


@dataclass(frozen=True)
class Task:
    """What is trained: a program, a loss, and K outputs.

    `vectors`: (first entry, end, rank) of the blocks of latent vectors.
    """

    program: Program
    loss: Loss
    n_outputs: int
    vectors: tuple[tuple[int, int, int], ...] = ()

    @property
    def neutral(self) -> Floats:
        """Of the slots (slots, K): rows that are trained on have no unseen symbols."""
        return np.zeros((len(self.program.columns), self.n_outputs))

    def mean_loss(self, margins: Floats, rows: Rows) -> float:
        """The weighted mean loss of rows with these scores (n, K)."""
        return float(np.average(self.loss.values(margins, rows.y), weights=rows.shares))


def storage_order(n_rows: int, n_columns: int, shuffle: bool, rng: np.random.RandomState) -> RowNumbers | None:
    """The order in which to lay rows down, None for as they are."""
    if not shuffle or n_rows * n_columns * 4 <= CACHE_BYTES:
        return None
    return np.asarray(rng.permutation(row_numbers(n_rows)))


class _Slopes(NamedTuple):
    """Of the mean loss with its penalties: the whole, and that without l1 with its slopes by entry."""

    objective: float
    smooth: float
    gradient: Floats
    curvature: Floats

    @property
    def decrement(self) -> float:
        """What the objective would fall by if every entry took Newton's step alone."""
        bent = self.curvature > 0
        return float(np.sum(np.square(self.gradient[bent]) / self.curvature[bent])) / 2.0


class Descent:
    """State (E * K, width), and the passes over `members` that move it; the state given is left as it is."""

    def __init__(
        self,
        rows: Rows,
        members: RowNumbers,
        entry_weight: Floats,
        state: Floats,
        task: Task,
        options: Options,
        rng: np.random.RandomState,
        n_steps: int = 0,
    ) -> None:
        self.rows, self.members, self.entry_weight = rows, members, entry_weight
        self.task, self.options, self.rng = task, options, rng
        self.state, self.n_steps = state.copy(), n_steps
        self._given = state, n_steps
        self._order = members.copy() if options.shuffle else members
        self._total = float(rows.weight[members].sum()) if len(rows.weight) else float(len(members))
        self._batch = options.batch(len(members))
        # a batch of one row has the same mean over its symbols and over its rows
        self._online = self._batch == 1 and not options.must_sweep
        self._work = Work.make(task.program, task.n_outputs, batches=not self._online)
        self._neutral = task.neutral
        self._rule: Rule | None = None

    @property
    def updates_of_a_pass(self) -> int:
        return -(-len(self.members) // self._batch)

    def restart(self) -> None:
        """Back to where it began."""
        self.restore(self._given)

    def save(self) -> State:
        return self.state.copy(), self.n_steps

    def restore(self, saved: State) -> None:
        self.state[:], self.n_steps = saved
        self._work = Work.make(self.task.program, self.task.n_outputs, batches=not self._online)

    def one_pass(self, rate: float, until: float | None = None) -> float:
        """One epoch, at a rate that falls evenly to `until` where that is given: the mean loss of the rows.

        That of each batch is before its own update.
        """
        if self.options.shuffle:
            self._shuffle()
        if until is None:
            return self._descend(self._order, rate) / self._total
        n_batches = self.updates_of_a_pass
        pieces = np.array_split(np.arange(n_batches), min(STEPS_DOWN, n_batches))
        lost = 0.0
        for place, piece in enumerate(pieces):
            part = self._order[piece[0] * self._batch : (piece[-1] + 1) * self._batch]
            lost += self._descend(part, rate + (until - rate) * (place + 0.5) / len(pieces))
        return lost / self._total

    def margins(self, rows: Rows, *, at_start: bool = False) -> Floats:
        """Scores (n, K) of rows, in units of training, as things stand or stood at the start."""
        state = self._given[0] if at_start else self.state
        shown = np.ascontiguousarray(state[:, [self.options.columns.shown]])
        out = np.empty((len(rows.codes), self.task.n_outputs))
        predict_margins(rows, self.task.program, self._neutral, shown, out)
        return out

    def look(self) -> tuple[float, float | None]:
        """The penalised mean loss as things stand, and what it would fall by if every entry took Newton's step alone.

        The latter is None where it says nothing: of a loss without curvature of its own, and under an l1 penalty.
        """
        found = self._slopes(self.state[:, self.options.columns.shown])
        return found.objective, found.decrement if self.task.loss.is_smooth and self.options.l1 == 0 else None

    def penalty(self, *, at_start: bool = False) -> float:
        """Of the parameters as they stand or stood at the start, per unit of weight."""
        if not self.is_penalised:
            return 0.0
        return self._penalty_of((self._given[0] if at_start else self.state)[:, 0])

    @property
    def is_penalised(self) -> bool:
        """Whether the optimum is that of a penalised mean loss; ftrl's penalties are beside sums over all passes."""
        return (self.options.l1 > 0 or self.options.l2 > 0) and not isinstance(self.options.optimizer, FTRL)

    @property
    def can_tell(self) -> bool:
        """Whether `could_fall` says something: there is a curvature, and an optimum that does not move."""
        options = self.options
        moves = isinstance(options.optimizer, FTRL) and (options.l1 > 0 or options.l2 > 0)
        return self.task.loss.is_smooth and not moves

    def could_fall(self, state: Floats, by: float) -> bool:
        """Whether the penalised mean loss could fall by so much from a state: by Newton's single steps, or L-BFGS.

        Single steps say little where entries lean on each other, as those of products do; L-BFGS begins with each
        entry in units of its curvature, and gives up when its steps no longer bring much. Under an l1 penalty an entry
        is the difference of two that are not negative.
        """
        begun = state[:, self.options.columns.shown].copy()
        here = self._slopes(begun)
        has_corners = self.is_penalised and self.options.l1 > 0
        if not has_corners and not here.decrement <= by:
            return True
        unit = 1.0 / np.sqrt(np.where(here.curvature > 0, here.curvature, 1.0))
        corners = self.options.l1 * self._reach / self._total * unit if has_corners else np.zeros(0)

        def objective(z: Floats) -> tuple[float, Floats]:
            if not has_corners:
                found = self._slopes(begun + z * unit)
                return (found.objective - here.objective) / by, found.gradient * unit / by
            plus, minus = np.split(z, 2)
            found = self._slopes((plus - minus) * unit)
            slope = found.gradient * unit
            value = found.smooth + float(corners @ (plus + minus)) - here.objective
            return value / by, np.concatenate([corners + slope, corners - slope]) / by

        def enough(intermediate_result: OptimizeResult) -> None:
            if intermediate_result.fun < -1.0:
                raise StopIteration

        first = np.zeros(len(begun))
        if has_corners:
            first = np.concatenate([np.maximum(begun, 0.0), np.maximum(-begun, 0.0)]) / np.tile(unit, 2)
        with np.errstate(all="ignore"):  # a step too far is one that it takes back
            there = minimize(
                objective, first, jac=True, method="L-BFGS-B", callback=enough,
                bounds=[(0.0, None)] * len(first) if has_corners else None,
                options={"maxiter": LOOK, "ftol": LOOK_ON, "gtol": 0.0},
            )  # fmt: skip
        return bool(there.fun < -1.0)

    @cached_property
    def _reach(self) -> Floats:
        """Weight that each entry's penalty counts for: of its own rows under gse, of all rows otherwise; scalars 0."""
        reach = np.full(len(self.state), self._total) if self.options.is_dense else self._weights_of_entries()
        reach[np.repeat(self.task.program.is_fixed, self.task.n_outputs)] = 0.0
        return reach

    def _penalty_of(self, values: Floats) -> float:
        sizes = self.options.l1 * np.abs(values) + 0.5 * self.options.l2 * np.square(values)
        return float(self._reach @ sizes) / self._total

    def _slopes(self, values: Floats) -> _Slopes:
        """Of the mean loss of the rows, penalised, at these values of the entries (E * K,)."""
        task, options, total = self.task, self.options, self._total
        gradient, curvature = np.zeros(len(values)), np.zeros(len(values))
        rule, bends = options.rule(task.loss, options.learning_rate), np.empty(task.n_outputs)
        lost = newton_sums(
            self.rows, self.members, task.program, self._neutral, rule, np.ascontiguousarray(values[:, None]),
            self._work, bends, gradient, curvature,
        )  # fmt: skip
        smooth = objective = float(lost) / total
        if self.is_penalised:
            gradient += options.l2 * self._reach * values
            curvature += options.l2 * self._reach
            smooth += 0.5 * options.l2 * float(self._reach @ np.square(values)) / total
            objective += self._penalty_of(values)
        return _Slopes(objective, smooth, gradient / total, curvature / total)

    def _weights_of_entries(self) -> Floats:
        """Weight of the rows of each row of the state."""
        rows, n_entries = self.rows, len(self.task.program.is_fixed)
        weight = rows.weight[self.members] if len(rows.weight) else rows.weight
        total = np.zeros(n_entries)
        sum_by_entry(rows.codes[self.members], weight, np.full(n_entries, -1, dtype=np.int64), total)
        return np.repeat(total, self.task.n_outputs)

    def _descend(self, order: RowNumbers, rate: float) -> float:
        """Train on rows in order: the sum of their losses."""
        task, options, rows, work = self.task, self.options, self.rows, self._work
        program, rule = task.program, self._rule_at(rate)
        if isinstance(options.optimizer, FTRL):
            penalised = np.repeat(~program.is_fixed, task.n_outputs).astype(np.float64)
            rebase_ftrl(self.state, rate, options.l1, options.l2, options.optimizer.beta, penalised)
        if self._online and rule.simple and not len(program.constants):
            lost = train_additive(rows, order, self.entry_weight, program, rule, task.n_outputs, self.state, work)
        elif self._online:
            lost = train_online(
                rows, order, self.entry_weight, program, self._neutral, rule, self.n_steps, task.n_outputs, self.state,
                work,
            )  # fmt: skip
        else:
            lost = train_batches(
                rows, order, self._batch, options.is_dense, options.must_sweep, self.entry_weight, program,
                self._neutral, rule, self.n_steps, task.n_outputs, self.state, work,
            )  # fmt: skip
        self.n_steps += -(-len(order) // self._batch)
        if rule.lazy:
            finish(self.n_steps, program, rule, task.n_outputs, self.state)
        return float(lost)

    def _rule_at(self, rate: float) -> Rule:
        """The options as the kernels read them; of the schedule "optimal" the rate is the highest one."""
        if self.options.optimal_cap is not None:
            return self.options.at_rate(rate).rule(self.task.loss, rate)
        if self._rule is None:
            self._rule = self.options.rule(self.task.loss, rate)
        return self._rule._replace(rate=rate)

    def _shuffle(self) -> None:
        """Shuffle the members into the order (new memory in every epoch would cost more than the shuffle)."""
        shuffle_rows(self.members, self._order, self.rows.codes.nbytes, self.rng)


def shuffle_rows(members: RowNumbers, order: RowNumbers, n_bytes: int, rng: np.random.RandomState) -> None:
    """Write `members` into `order`, shuffled: row by row, or by runs where the rows take more than a cache."""
    if n_bytes <= CACHE_BYTES:
        order[:] = members
        rng.shuffle(order)
        return
    n_whole = len(members) // RUN * RUN  # the rows left over come last
    runs = rng.permutation(n_whole // RUN)
    np.take(members[:n_whole].reshape(-1, RUN), runs, axis=0, out=order[:n_whole].reshape(-1, RUN), mode="clip")
    order[n_whole:] = members[n_whole:]


def take_rows(rows: Rows, places: RowNumbers, n_outputs: int) -> Rows:
    """Some rows of a coded table."""
    offset = rows.offset.reshape(-1, n_outputs)[places].ravel() if len(rows.offset) else rows.offset
    weight = rows.weight[places] if len(rows.weight) else rows.weight
    return Rows(rows.codes[places], rows.x[places], rows.y[places], weight, offset)
