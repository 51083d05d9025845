"""Steps that several terms take at once, where one term after the other would take long.

Joint Newton steps of the unpenalized coefficients, the intercept and slopes (`JointSteps`): nearly collinear numeric
columns (a list price and a net price), or one with a long tail and the intercept, are strongly correlated, and
coordinate descent over them would converge very slowly, in more than hundreds of iterations.

Recentering: the mean of a term's coefficients moves to a coarser term; predictions stay, and the penalty decreases. The
mean of an interaction's coefficients over a category moves to that category's main effect, as far as the penalty of
this one allows, and likewise slopes by city to slopes by region; the mean of all coefficients of a term that every row
has moves to the intercept, and that of slopes by category to their common slope (hierarchical centering, Gelfand, Sahu
and Carlin 1995). Block coordinate descent alone converges slowly along these directions.

Terms of few coefficients (`SmallTerms`) are updated one after the other in one compiled call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tabsym.categories import count_column
from tabsym.jit import address_of, address_of_kernel
from tabsym.losses.loss import LOGISTIC, SQUARED, Loss
from tabsym.solvers.newton.kernels_coefs import evaluate_blocks, recenter, recenter_to_intercept, update_small_blocks
from tabsym.solvers.newton.kernels_rows import move_and_sum, move_and_sum_squared
from tabsym.solvers.newton.kernels_walk import evaluate_walk, step_walk
from tabsym.solvers.newton.rows import LANES, SingleOutputRows, lanes_of
from tabsym.solvers.newton.terms import NEXT_TO_NOTHING, Prior, SolverTerm

Floats = NDArray[np.float64]


SAME = 1e-12
"""Eigenvalues below this, of the information scaled to diagonal 1, count as 0: the columns are collinear."""

NOTHING_LEFT, ROUNDING = 1e-5, 1e-9
"""Information on the unpenalized coefficients that remains given a term, relative to all of it; less counts as none.
For walks, whose mean is confounded with the intercept, the first; for other terms rounding alone, the second: a larger
bound would make standard deviations too small (`benchmarks/evidence/constants.md`)."""

HARDLY, MAX_STEPS = 0.3, 4
"""The information matrix is reused while no linear predictor moves by more than this, for at most this many steps:
computing it costs the number of rows times the square of the number of columns."""

MAX_HALVINGS = 30
"""The most halvings of a step that does not lower the loss."""


def columns_of(terms: Sequence[SolverTerm], n_rows: int) -> Floats:
    """The design matrix (n, f) of terms of one coefficient each."""
    return np.column_stack([
        np.empty((n_rows, 0)),
        *(np.where(term.codes >= 0, term.x if len(term.x) else 1.0, 0.0) for term in terms),
    ])  # fmt: skip


class JointSteps:
    """Joint Newton steps of all unpenalized terms, by an information matrix that is reused while rows hardly move.

    Parameters
    ----------
    information : (W, f, f)
        Of each model, or class.
    is_constant : bool
        Whether the information never changes.
    """

    def __init__(self, information: Floats, *, is_constant: bool) -> None:
        self._information = information
        self._inverses = [inverse_of(matrix, np.diag(matrix), SAME) for matrix in information]
        self._is_constant, self._n_steps, self._furthest = is_constant, 0, 0.0

    def steps(self, gradient: Floats) -> Floats:
        """The Newton steps (f, W) for gradients (f, W)."""
        return -np.column_stack([inverse @ slopes for inverse, slopes in zip(self._inverses, gradient.T, strict=True)])

    def steps_within(self, gradient: Floats, theta: Floats, signs: NDArray[np.int64]) -> Floats:
        """The same (f, 1) for one model, where slopes of a sign 1 or -1 keep to it: see `signed_steps`."""
        return signed_steps(self._information[0], gradient[:, 0], theta[:, 0], signs)[:, None]

    def note(self, farthest: float) -> None:
        """Record the largest change of a linear predictor by a whole step."""
        self._n_steps += 1
        self._furthest = max(self._furthest, farthest)

    @property
    def is_old(self) -> bool:
        """Whether the Hessians have changed: after a long step, or after several of any length."""
        return not self._is_constant and (self._furthest > HARDLY or self._n_steps >= MAX_STEPS)


def inverse_of(left: Floats, sizes: Floats, tol: float = NOTHING_LEFT) -> Floats:
    """The pseudo-inverse of the information `left`, whose diagonal was `sizes` before other terms were accounted for.

    Directions without information, such as the mean of a walk, which is confounded with the intercept, are set to 0.
    """
    if left.shape == (1, 1):
        return np.array([[1.0 / left[0, 0] if left[0, 0] > tol * sizes[0] else 0.0]])
    if not np.isfinite(left).all():  # where coefficients diverge, no further
        return np.zeros_like(left)
    is_informed = sizes > 0.0  # 0: a missing-value flag that is constant in one half
    root = np.sqrt(np.where(is_informed, sizes, 1.0))
    lengths, axes = np.linalg.eigh(left / np.outer(root, root))
    inverse = np.where(lengths > tol, 1.0 / np.maximum(lengths, tol), 0.0)
    return np.where(np.outer(is_informed, is_informed), (axes * inverse) @ axes.T / np.outer(root, root), 0.0)


def signed_steps(information: Floats, gradient: Floats, theta: Floats, signs: NDArray[np.int64]) -> Floats:
    """Steps (f,) to the minimum of a quadratic where ``signs * (theta + steps)`` is not negative.

    The primal active-set method, from theta (f,), which is within the bounds: slopes at 0 stay there until their
    gradient leads inwards.
    """
    steps, at_zero = np.zeros(len(theta)), (signs != 0) & (theta == 0.0)
    for _ in range(20 * len(theta) + 20):
        free = np.flatnonzero(~at_zero)
        left = information[np.ix_(free, free)]
        current = gradient + information @ steps
        moves = np.zeros(len(theta))
        moves[free] = -inverse_of(left, np.diag(left), SAME) @ current[free] if len(free) else 0.0
        after = signs * (theta + steps + moves)
        crossing = np.flatnonzero(after < 0.0)
        if len(crossing):
            fractions = np.abs((theta + steps)[crossing] / moves[crossing])
            first = crossing[int(np.argmin(fractions))]
            steps += min(float(fractions.min()), 1.0) * moves
            steps[first], at_zero[first] = -theta[first], True
            continue
        steps += moves
        current = gradient + information @ steps
        inwards = np.where(at_zero, -signs * current / np.sqrt(np.maximum(np.diag(information), 1e-300)), 0.0)
        size = float(np.abs(gradient / np.sqrt(np.maximum(np.diag(information), 1e-300))).max(initial=0.0))
        if inwards.max(initial=0.0) <= ROUNDING * size:
            break
        at_zero[int(np.argmax(inwards))] = False
    beyond = at_zero | (signs * (theta + steps) < 0.0)  # the latter by rounding
    steps[beyond] = -theta[beyond]
    return steps


def rank_of(columns: Floats) -> int:
    """The rank of a design matrix (n, f): below f where columns are collinear."""
    return rank_of_information(columns.T @ columns)


def rank_of_information(information: Floats) -> int:
    """The same from the information matrix (f, f)."""
    sizes = np.diag(information)
    root = np.sqrt(np.where(sizes > 0.0, sizes, 1.0))
    return int(np.count_nonzero(np.linalg.eigvalsh(information / np.outer(root, root)) > SAME))


def length_of_step(farthest: float, max_change: float, loss: Callable[[float], float]) -> float:
    """The fraction of a step to take: halved until the loss decreases, where a change exceeds `max_change`.

    `farthest`: the largest change of a linear predictor by the whole step; `loss`: that after a fraction of it.
    """
    fraction = 1.0
    if farthest <= max_change:
        return fraction
    before = loss(0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(MAX_HALVINGS):
            if loss(fraction) <= before:  # false for NaN
                return fraction
            fraction *= 0.5
    return 0.0


MIN_DECREASE, MAX_WAIT = 3e-4, 8
"""Two classes: an interaction whose recentering lowers the penalty by less than this fraction of the iteration's
decrease is recentered half as often, at least every eighth iteration; otherwise twice as often (`benchmarks/evidence`,
"Waiting")."""


SAME_SLOPE = 1e-9
"""A relative difference below this, of a slope from a sum of other columns, is rounding."""


class SolverState(Protocol):
    """What recentering uses of a solver: its terms, their coefficients and precisions."""

    terms: list[SolverTerm]
    y: Floats
    loss: Loss
    theta: list[Floats]
    precision: Floats
    dropped: NDArray[np.bool_]
    covers: NDArray[np.bool_]
    together: list[int]

    @property
    def joint_columns(self) -> Floats: ...


@dataclass
class Relation:
    """A term each of whose coefficients is nested in one coefficient of another term.

    `parent` (q,): the index of that coefficient; `n_children` (p,): the number of nested coefficients of each parent.
    `wait`: iterations between two recenterings, of which `left` remain.
    """

    index: int
    parent_term: int
    parent: NDArray[np.int32]
    n_children: Floats
    wait: int = 1
    left: int = 1

    def is_due(self) -> bool:
        """Whether to recenter in this iteration; called once per iteration."""
        self.left -= 1
        return self.left == 0

    def wait_on(self, *, is_small: bool) -> None:
        """Set the interval to the next recentering, longer where the decrease was small."""
        self.wait = min(2 * self.wait, MAX_WAIT) if is_small else max(self.wait // 2, 1)
        self.left = self.wait


class Recentering:
    """The terms that are recentered, their parents, and the iterations in which it happens.

    Parameters
    ----------
    solver : SolverState
    """

    def __init__(self, solver: SolverState) -> None:
        self._solver = solver
        self._min_decrease = MIN_DECREASE if solver.loss.code == LOGISTIC else 0.0
        indices = {term.block: index for index, term in enumerate(solver.terms)}
        self._relations: list[list[Relation]] = [[] for _ in solver.terms]
        for index, term in enumerate(solver.terms):
            for block, parent in term.within.items():
                n_children = np.zeros(solver.terms[indices[block]].size, dtype=np.int64)
                count_column(parent, n_children)
                self._relations[index].append(Relation(index, indices[block], parent, n_children.astype(np.float64)))
        ones = (index for index, term in enumerate(solver.terms) if term.prior is Prior.FLAT and term.is_constant)
        self.intercept = next((index for index in ones if solver.covers[index]), None)
        self._slopes: dict[int, Floats | None] = {}
        self._plan: list[tuple[int, list[Relation], int | None, Floats | None]] = []
        self._ridges = np.array([term.prior is Prior.RIDGE for term in solver.terms])
        self._planned_for = np.zeros(len(solver.terms), dtype=np.bool_)

    def slope_of(self, index: int) -> Floats | None:
        """The changes (f,) of the jointly updated terms that compensate a shift of all slopes by category by -1.

        None where the numeric column is no linear combination of theirs: then there is no common slope. A centred
        column is one, together with the intercept.
        """
        solver = self._solver
        if not len(solver.terms[index].x) or not solver.together:
            return None
        if index not in self._slopes:
            multiplied = columns_of([solver.terms[index]], len(solver.y))[:, 0]
            coefs = np.asarray(np.linalg.lstsq(solver.joint_columns, multiplied, rcond=SAME)[0], dtype=np.float64)
            left = np.linalg.norm(multiplied - solver.joint_columns @ coefs)
            self._slopes[index] = coefs if left <= SAME_SLOPE * np.linalg.norm(multiplied) else None
        return self._slopes[index]

    def recenter(self, decrease: float) -> None:
        """Recenter the terms that are due, after an iteration that lowered the objective by `decrease`."""
        solver = self._solver
        is_recentered = self.recentered()
        if not np.array_equal(is_recentered, self._planned_for):
            self._plan = [
                (index, self.above(index, is_recentered), self.level_of(index), self.slope_of(index))
                for index in np.flatnonzero(is_recentered).tolist()
            ]
            self._planned_for = is_recentered
        # small terms first, which predicts better (`benchmarks/evidence/constants.md`)
        for index, relations, level, slope in self._plan:
            for relation in relations:
                if relation.is_due():
                    relation.wait_on(is_small=self._recenter_interaction(relation) < self._min_decrease * decrease)
            if level is not None:
                recenter_to_intercept(solver.theta[index], solver.theta[level])
            if slope is not None:  # the mean of slopes by category is the common slope's
                theta = solver.theta
                mean = theta[index].mean(axis=0)
                theta[index] -= mean
                for i, by in zip(solver.together, slope.tolist(), strict=True):
                    theta[i] = theta[i] + by * mean

    def _recenter_interaction(self, relation: Relation) -> float:
        """Recenter an interaction; returns the decrease of the penalty."""
        solver, index, parent_term = self._solver, relation.index, relation.parent_term
        theta, upper = solver.theta[index], solver.theta[parent_term]
        work = np.empty_like(upper)
        precision, parent_precision = solver.precision[index], solver.precision[parent_term]
        return float(recenter(relation.parent, relation.n_children, precision, parent_precision, theta, upper, work))

    def recentered(self) -> NDArray[np.bool_]:
        """Which terms are recentered: ridge terms that are penalized and not dropped."""
        solver = self._solver
        return self._ridges & ~solver.dropped & (solver.precision > 0.0) & (solver.precision < np.inf)

    def above(self, index: int, recentered: NDArray[np.bool_]) -> list[Relation]:
        """The relations of a term to its nearest parent terms, of those that are `recentered` too.

        A parent of one of these is skipped: it receives the mean from that one in the next iteration.
        """
        relations = [relation for relation in self._relations[index] if recentered[relation.parent_term]]
        passed_on = {further.parent_term for relation in relations for further in self._relations[relation.parent_term]}
        return [relation for relation in relations if relation.parent_term not in passed_on]

    def level_of(self, index: int) -> int | None:
        """The index of the intercept where every row has a coefficient: the two means are confounded then."""
        return self.intercept if not len(self._solver.terms[index].x) and self._solver.covers[index] else None


_CODES = np.empty(0, dtype=np.int32)
_CODES.flags.writeable = False
_NOTHING = np.empty(0)

MAX_SMALL_SIZE = 2048
"""Terms of up to this many coefficients are updated in one compiled call: a call for each would cost more than it
saves."""


class SmallTerms:
    """Terms of few coefficients without a numeric factor, updated one after the other in one compiled call.

    Parameters
    ----------
    indices : sequence of int
        Their indices among all terms.
    terms : sequence of Term
        All terms.
    rows : SingleOutputRows
    theta, curvature : list of (q, W)
        Of all terms; those of the small terms become views of one array, which is updated in place.
    """

    def __init__(
        self,
        indices: Sequence[int],
        terms: Sequence[SolverTerm],
        rows: SingleOutputRows,
        theta: list[Floats],
        curvature: list[Floats],
    ) -> None:
        self.indices, self.rows = list(indices), rows
        self._at = np.array(self.indices, dtype=np.intp)
        self._blocks = {index: block for block, index in enumerate(self.indices)}
        self._terms = [terms[index] for index in indices]
        width = rows.width
        self._starts = np.cumsum([0, *(term.size * width for term in self._terms)])
        self._theta, self._curvature = (self._side_by_side(arrays) for arrays in (theta, curvature))
        self._codes = [rows.codes(term) for term in self._terms]  # kept alive: kernels read them by address
        self._codes_at = np.array([address_of(codes) for codes in self._codes], dtype=np.intp)
        self._walks = np.array([term.prior is Prior.WALK for term in self._terms])
        self._free = np.array([term.prior is Prior.FLAT for term in self._terms])
        self._n_unordered = np.array([term.n_unordered for term in self._terms])
        self._lanes = np.array([lanes_of(term.size) for term in self._terms])
        self._known = np.zeros(len(indices), dtype=np.bool_)
        max_size = int(np.diff(self._starts).max(initial=0)) + width
        self._ratios = np.array([term.unordered_ratio for term in self._terms])
        self._work, self._moves = np.empty((4, max_size)), np.empty((2, max_size))
        self._grads, self._slopes = np.empty((LANES * max_size, 2)), np.empty(LANES * max_size)

    @staticmethod
    def fits(term: SolverTerm) -> bool:
        """Whether a term is small and has no numeric factor."""
        return term.size <= MAX_SMALL_SIZE and not len(term.x)

    def _side_by_side(self, values: list[Floats]) -> Floats:
        stacked = np.concatenate([values[index].ravel() for index in self.indices])
        for index, start, end in zip(self.indices, self._starts, self._starts[1:], strict=False):
            values[index] = stacked[start:end].reshape(values[index].shape)
        return stacked

    def update_blocks(self, dropped: NDArray[np.bool_], precision: Floats, max_step: float) -> tuple[int, float]:
        """Update each term that is not dropped; the number of updates, and the decrease of the objective."""
        blocks = np.flatnonzero(~dropped[self._at])
        if not len(blocks):
            return 0, 0.0
        rows = self.rows
        before, steps = rows.pending_update(self._terms[blocks[0]], plain=True)
        precisions = precision[self._at]
        precisions[self._free] = 0.0
        gradient, right, pivots, level = self._work
        kernel = move_and_sum(rows.code, not len(rows.weight))
        decrease = update_small_blocks(
            _address_of(kernel), _address_of(move_and_sum_squared) if rows.code == SQUARED else 0,
            _address_of(step_walk) if self._walks.any() else 0, blocks, address_of(rows.codes(before)), steps,
            self._codes_at, _CODES, _NOTHING, self._starts, self._walks, self._n_unordered, self._ratios, precisions,
            NEXT_TO_NOTHING, max_step, rows.y, rows.weight, *rows.transformed(), rows.width, self._lanes, self._known,
            self._theta, self._curvature, gradient, right, pivots, level, self._grads, self._slopes, self._moves,
        )  # fmt: skip
        last = self._terms[blocks[-1]]
        rows.set_pending(last, self._moves[(len(blocks) - 1) % 2, : (1 + last.size) * rows.width].copy())
        return len(blocks), float(decrease)

    def evaluate(
        self,
        indices: Sequence[int],
        precision: Floats,
        covers: NDArray[np.bool_],
        information: float,
        evaluated: Floats,
    ) -> None:
        """Degrees of freedom in the penalty and sum of squares, into (a, 2), of small terms among `indices` (a,).

        For one model; `information` is that on the intercept, with which the posterior variances are joint.
        """
        asked = np.array([self._blocks.get(index, -1) for index in indices], dtype=np.intp)
        is_small = asked >= 0
        results, (forward, space) = np.empty((np.count_nonzero(is_small), 2)), self._work[:2]
        evaluate_blocks(
            _address_of(evaluate_walk) if self._walks.any() else 0, asked[is_small], self._starts, self._walks,
            self._n_unordered, self._ratios, precision[self._at], covers[self._at], information, NEXT_TO_NOTHING,
            ROUNDING, self._theta, self._curvature, forward, space, results,
        )  # fmt: skip
        evaluated[is_small] = results


_ARGUMENTS_BY_LOSS = (_CODES, *[_NOTHING] * 2, _CODES, *[_NOTHING] * 4, 0.0, 0, np.empty((0, 2)))
_ARGUMENTS: dict[Any, tuple[Any, ...]] = {
    move_and_sum_squared: (_CODES, *[_NOTHING] * 2, _CODES, *[_NOTHING] * 3, 0, _NOTHING),
    step_walk: (*[_NOTHING] * 3, 0, 0, *[0.0] * 4, *[_NOTHING] * 4),
    evaluate_walk: (*[_NOTHING] * 2, 0, *[0.0] * 3, *[_NOTHING] * 2),
}
"""Arguments of the kernels' types, by which they are compiled; of `move_and_sum`, which there is for each loss."""


@cache
def _address_of(called: Any) -> int:
    """The address of a kernel that kernels of several terms call."""
    return address_of_kernel(called, _ARGUMENTS.get(called, _ARGUMENTS_BY_LOSS))
