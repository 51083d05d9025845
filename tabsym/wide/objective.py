"""What training lowers: the mean loss with its penalties, its slopes, and whether much of it is left."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize

from tabsym.wide.kernels import sum_by_entry
from tabsym.wide.kernels_newton import newton_sums
from tabsym.wide.options import Options
from tabsym.wide.program import Rows, Work

if TYPE_CHECKING:
    from tabsym.wide.descent import Task

Floats = NDArray[np.float64]

LOOK, LOOK_ON = 30, 0.001
"""To see whether a loss could fall by so much, steps of L-BFGS at most, while one brings such a share of it."""


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


class Objective:
    """The penalised mean loss of the rows `members`, whose weights sum to `total`."""

    def __init__(
        self, rows: Rows, members: NDArray[np.signedinteger[Any]], task: Task, options: Options, total: float
    ) -> None:
        self.rows, self.members, self.task, self.options, self._total = rows, members, task, options, total

    @cached_property
    def _work(self) -> Work:
        return Work.make(self.task.program, self.task.n_outputs, batches=False)

    def look(self, values: Floats) -> tuple[float, float | None]:
        """The penalised mean loss at values (E * K,) of the entries, and its decrement by single Newton steps.

        The latter is None where it says nothing: of a loss without curvature of its own, and under an l1 penalty.
        """
        found = self._slopes(values)
        return found.objective, found.decrement if self.task.loss.is_smooth and self.options.l1 == 0 else None

    def penalty(self, values: Floats) -> float:
        """Of values of the entries, per unit of weight."""
        if not self.is_penalised:
            return 0.0
        sizes = self.options.l1 * np.abs(values) + 0.5 * self.options.l2 * np.square(values)
        return float(self._reach @ sizes) / self._total

    @property
    def is_penalised(self) -> bool:
        return self.options.l1 > 0 or self.options.l2 > 0

    @property
    def can_tell(self) -> bool:
        """Whether `could_fall` says something: there is a curvature."""
        return self.task.loss.is_smooth

    def could_fall(self, begun: Floats, by: float) -> bool:
        """Whether the penalised mean loss could fall by so much from there: by Newton's single steps, or L-BFGS.

        Single steps say little where entries lean on each other, as those of products do; L-BFGS begins with each
        entry in units of its curvature, and gives up when its steps no longer bring much. Under an l1 penalty an entry
        is the difference of two that are not negative.
        """
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
        is_fixed = np.repeat(self.task.program.is_fixed, self.task.n_outputs)
        reach = np.full(len(is_fixed), self._total) if self.options.is_dense else self._weights_of_entries()
        reach[is_fixed] = 0.0
        return reach

    def _slopes(self, values: Floats) -> _Slopes:
        """Of the mean loss of the rows, penalised, at these values of the entries (E * K,)."""
        task, options, total = self.task, self.options, self._total
        gradient, curvature = np.zeros(len(values)), np.zeros(len(values))
        rule, bends = options.rule(task.loss, options.learning_rate), np.empty(task.n_outputs)
        lost = newton_sums(
            self.rows, self.members, task.program, task.neutral, rule, np.ascontiguousarray(values[:, None]),
            self._work, bends, gradient, curvature,
        )  # fmt: skip
        smooth = objective = float(lost) / total
        if self.is_penalised:
            gradient += options.l2 * self._reach * values
            curvature += options.l2 * self._reach
            smooth += 0.5 * options.l2 * float(self._reach @ np.square(values)) / total
            objective += self.penalty(values)
        return _Slopes(objective, smooth, gradient / total, curvature / total)

    def _weights_of_entries(self) -> Floats:
        """Weight of the rows that each entry appears in, (E * K,)."""
        rows, n_entries = self.rows, len(self.task.program.is_fixed)
        weight = rows.weight[self.members] if len(rows.weight) else rows.weight
        total = np.zeros(n_entries)
        sum_by_entry(rows.codes[self.members], weight, np.full(n_entries, -1, dtype=np.int64), total)
        return np.repeat(total, self.task.n_outputs)
