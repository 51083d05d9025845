"""Block coordinate descent: each term takes its exact Newton step while the others are held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from tabsym.losses.constants import settled_shift
from tabsym.losses.kernels import GAMMA, HUBER, MULTINOMIAL, SQUARED, TWEEDIE
from tabsym.losses.loss import Loss
from tabsym.solvers.newton.fixed_effects import ROUNDING, JointSteps, columns_of, length_of_step
from tabsym.solvers.newton.kernels_sweep import take_turns, weigh_blocks
from tabsym.solvers.newton.recentering import Recentering
from tabsym.solvers.newton.rows import LANES, ONE_MODEL, MulticlassRows, SingleOutputRows, lanes_of
from tabsym.solvers.newton.terms import NEXT_TO_NOTHING, Prior, SolverTerm

Floats = NDArray[np.float64]

_CODES = np.empty(0, dtype=np.int32)
_NOTHING = np.empty(0)

FEW_FOR_CALLS = 2048
"""Coefficients, up to which steps by themselves would take longer to call than the exp of each one by one does here."""


class SmallTerms:
    """Terms of few coefficients that nothing multiplies, side by side.

    Parameters
    ----------
    indices : sequence of int
        Theirs among all.
    terms : sequence of Term
        All of them.
    rows : SingleOutputRows
    theta, curvature : list of (q, W)
        Of all terms; those of these become parts of one array, and are moved in place.
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
        self._theta, self._curvature = (self._side_by_side(one) for one in (theta, curvature))
        self._codes = [rows.codes(term) for term in self._terms]  # kept, as kernels read them by their addresses
        self._codes_at = np.array([_address(codes) for codes in self._codes], dtype=np.intp)
        self._walks = np.array([term.prior is Prior.WALK for term in self._terms])
        self._free = np.array([term.prior is Prior.FLAT for term in self._terms])
        self._aparts = np.array([term.apart for term in self._terms])
        self._lanes = np.array([lanes_of(term.size) for term in self._terms])
        self._known = np.zeros(len(indices), dtype=np.bool_)
        most = int(np.diff(self._starts).max(initial=0)) + width
        self._work, self._moves = np.empty((4, most)), np.empty((2, most))
        self._grads, self._slopes = np.empty((LANES * most, 2)), np.empty(LANES * most)

    @staticmethod
    def is_one(term: SolverTerm) -> bool:
        """Whether a term is one."""
        return term.size <= FEW_FOR_CALLS and not len(term.x)

    def _side_by_side(self, values: list[Floats]) -> Floats:
        flat = np.concatenate([values[index].ravel() for index in self.indices])
        for index, start, end in zip(self.indices, self._starts, self._starts[1:], strict=False):
            values[index] = flat[start:end].reshape(values[index].shape)
        return flat

    def sweep(self, dropped: NDArray[np.bool_], precision: Floats, most: float) -> tuple[int, float]:
        """A turn for each that is not silent: how many there were, and what they lower the objective by."""
        blocks = np.flatnonzero(~dropped[self._at])
        if not len(blocks):
            return 0, 0.0
        rows = self.rows
        before, steps = rows.hand_over(self._terms[blocks[0]], plain=True)
        held = precision[self._at]
        held[self._free] = 0.0
        gradient, right, pivots, level = self._work
        decrease = take_turns(
            blocks, _address(rows.codes(before)), steps, self._codes_at, _CODES, _NOTHING, self._starts, self._walks,
            self._aparts, held, NEXT_TO_NOTHING, most, rows.y, rows.weight, *rows.kept(), rows.width, self._lanes,
            self._known, self._theta, self._curvature, gradient, right, pivots, level, self._grads, self._slopes,
            self._moves,
        )  # fmt: skip
        last = self._terms[blocks[-1]]
        rows.take_over(last, self._moves[(len(blocks) - 1) % 2, : (1 + last.size) * rows.width].copy())
        return len(blocks), float(decrease)

    def weigh(
        self, indices: Sequence[int], precision: Floats, covers: NDArray[np.bool_], information: float, weighed: Floats
    ) -> None:
        """Of those that are among `indices` (a,): the variances' part in the penalty, and the length, into (a, 2).

        Of one model; `information` on the number that all rows have, with which the variances are joint.
        """
        asked = np.array([self._blocks.get(index, -1) for index in indices], dtype=np.intp)
        mine = asked >= 0
        own = np.empty((np.count_nonzero(mine), 2))
        weigh_blocks(
            asked[mine], self._starts, self._walks, self._aparts, precision[self._at], covers[self._at], information,
            NEXT_TO_NOTHING, ROUNDING, self._theta, self._curvature, self._work, np.empty(1), own,
        )  # fmt: skip
        weighed[mine] = own


def _address(codes: NDArray[np.int32]) -> int:
    return int(codes.__array_interface__["data"][0])


MAX_STEP = 2.0
"""Of a score at once, where the loss is no parabola: far from the optimum its curvature says little."""

PARABOLAS = SQUARED, HUBER
"""Losses below the parabola of their slope and curvature everywhere, so that any step lowers them."""


def target_scale_of(y: Floats, weight: Floats, loss: Loss) -> float:
    """The mean square of targets (n,) about their mean, 1 where there is none; of Huber's loss, delta's at most.

    A few outliers, which that loss is for, can be all of their spread.
    """
    shares = weight if len(weight) and weight.any() else None
    posterior = float(np.average(np.square(y - np.average(y, weights=shares)), weights=shares)) or 1.0
    return min(posterior, loss.parameter**2) if loss.code == HUBER else posterior


class BlockDescent:
    """Parameters of the terms, and where rows stand under them.

    Parameters
    ----------
    terms : sequence of Term
    y, weight : (n,)
        In units of training; weight empty for none.
    start : (n, K)
        Scores before any term: the offset.
    loss : Loss
    column : (n,) int8
        The model that sees the row; empty for one model that sees all.
    n_models : int
    """

    def __init__(
        self,
        terms: Sequence[SolverTerm],
        y: Floats,
        weight: Floats,
        start: Floats,
        loss: Loss,
        column: NDArray[np.int8] = ONE_MODEL,
        n_models: int = 1,
    ) -> None:
        self.terms, self.y, self.weight, self.loss = list(terms), y, weight, loss
        self.n_outputs = start.shape[1]
        self.rows: SingleOutputRows | MulticlassRows
        if loss.code == MULTINOMIAL:
            self.rows = MulticlassRows(y, weight, start)
        else:
            self.rows = SingleOutputRows(y, weight, start[:, 0], loss, column, n_models)
        self.theta = [np.zeros((term.size, self.rows.width)) for term in self.terms]
        self.curvature = [np.zeros((term.size, self.rows.width)) for term in self.terms]
        self.precision = np.zeros(len(self.terms))
        self.dropped = np.zeros(len(self.terms), dtype=np.bool_)
        self.n_moves = 0
        self.total = float(weight.sum()) if len(weight) else float(len(y))
        self.covers = np.array([term.codes.min(initial=0) >= 0 for term in self.terms])
        self.recentering = Recentering(self)
        self._most = np.inf if loss.code in PARABOLAS else MAX_STEP
        self.target_scale = target_scale_of(y - start[:, 0], weight, loss) if loss.scales else 1.0
        flat = [index for index, term in enumerate(self.terms) if term.prior is Prior.FLAT]
        self._joint: JointSteps | None = None
        self.report: Callable[[float], None] = lambda decrease: None  # of every sweep, what it lowered the objective by
        self.together = flat if len(flat) > 1 or any(len(self.terms[index].x) for index in flat) else []

    def sweep(self) -> float:
        """A turn for every term; what that lowers the objective by, as far as its curvature tells, per row."""
        decrease = self._turn_together() if self.together else 0.0
        small = self.small
        if small is not None:
            n_moves, more = small.sweep(self.dropped, self.precision, self._most)
            self.n_moves, decrease = self.n_moves + n_moves, decrease + more
        done = {*self.together, *(small.indices if small else ())}
        decrease += sum(
            self.turn(index) for index in range(len(self.terms)) if index not in done and not self.dropped[index]
        )
        self.recentering.recenter(decrease)
        self.report(decrease / self.total)
        return decrease / self.total

    @cached_property
    def small(self) -> SmallTerms | None:
        """The first terms of those that step alone, as they are in order of their size."""
        alone = [index for index in range(len(self.terms)) if index not in self.together]
        indices = list(takewhile(lambda index: SmallTerms.is_one(self.terms[index]), alone))
        if len(indices) < 2 or not isinstance(self.rows, SingleOutputRows):
            return None
        return SmallTerms(indices, self.terms, self.rows, self.theta, self.curvature)

    def settle(self, tol: float, most: int, *, surely: bool = False) -> tuple[int, bool]:
        """Sweep until one lowers the objective by less than `tol` per row: how many there were, and whether it did.

        `surely`: and until no more is left by how falls shrink from one sweep to the next: where sweeps creep,
        each lowers the objective by little, and much is left.
        """
        before = np.inf
        for n_sweeps in range(1, most + 1):
            decrease = self.sweep()
            left = decrease * decrease / (before - decrease) if before > decrease and surely else decrease
            if max(decrease, left) < tol * self.scale():
                return n_sweeps, True
            before = decrease
        return most, False

    def polish(self, dispersion: float, close: float, most: int) -> tuple[int, bool]:
        """Sweep on until what is left moves no coefficient by more than `close` standard errors of it.

        The fall of the objective that is left, over the dispersion, is half the square of that step in standard
        errors. At most `most` sweeps; how many there were, and whether that is all that is left.
        """
        before, enough = np.inf, 0.5 * close**2 * dispersion
        for n_sweeps in range(1, most + 1):
            decrease = self.total * self.sweep()
            left = decrease * decrease / (before - decrease) if before > decrease else decrease
            if max(decrease, left) < enough:
                return n_sweeps, True
            before = decrease
        return most, False

    def balance(self) -> None:
        """Move the intercept so that predictions add up to the targets, where the loss is canonical."""
        index = self.recentering.intercept
        if index is None or not self.loss.canonical or self.loss.code == MULTINOMIAL:
            return
        weight = self.weight if len(self.weight) else None
        for _ in range(2):  # the second step from where the first was all but right: to rounding
            scores = self.scores()
            shift = settled_shift(self.loss, scores, self.y, weight)
            if np.isfinite(shift).all():
                self.theta[index] = self.theta[index] + shift
                self.rows.stand_at(scores + shift)
                self.n_moves += 1

    def scale(self, dispersion: float | None = None) -> float:
        """What a change of the loss is measured by; the dispersion of the rows is found now where it is not known.

        Of amounts their spread; behind a log link, where targets have a mean of 1, the dispersion where it is above 1.
        """
        if self.loss.scales or self.loss.for_classes:
            return self.target_scale
        return max(1.0, self.dispersion() if dispersion is None else dispersion)

    def dispersion(self) -> float:
        """Squared gradients of the rows over their mean curvature, without regard to degrees of freedom.

        Behind a log link rows with a small mean weigh less in it than in Pearson's, which few of them can decide: with
        that one variances are too small, and retail's error is 2.4 % larger.
        """
        assert isinstance(self.rows, SingleOutputRows)
        squares, curvature = self.rows.sum_pulls()
        return squares / curvature

    def expected_curvature(self) -> Floats:
        """Fisher's information of rows (n,), times their weight, for losses of one score.

        That of Newton's steps, but for gamma and tweedie, whose observed curvature has the target in it.
        """
        weight = self.weight if len(self.weight) else np.ones(len(self.y))
        if self.loss.code == GAMMA:
            return weight
        if self.loss.code == TWEEDIE:
            return np.asarray(weight * np.exp((2.0 - self.loss.parameter) * self.scores()[:, 0]))
        return self.grads()[1]

    def pearson(self) -> float:
        """Pearson's statistic, a row: squared residuals over the variance function, by weight.

        `dispersion` without a log link, where that is the same, and of Huber's loss, which has no variance function.
        """
        if not self.loss.log_link:
            return self.dispersion()
        gradients, expected = self.grads()[0], self.expected_curvature()
        seen = expected > 0.0
        return float((np.square(gradients[seen]) / expected[seen]).sum() / self.total)

    def turn(self, index: int) -> float:
        """A step of one term; half its Newton decrement."""
        term, theta, precision = self.terms[index], self.theta[index], self.precision[index]
        if isinstance(self.rows, SingleOutputRows) and term.prior is not Prior.WALK:
            held = 0.0 if term.prior is Prior.FLAT else precision
            own = self.curvature[index]
            self.n_moves += 1
            self.curvature[index], decrease = self.rows.take_ridge_turn(term, theta, own, held, self._most)
            return decrease
        gradient, curvature = self.rows.collect(term)
        self.curvature[index] = curvature
        step = term.step_of_classes if self.loss.code == MULTINOMIAL else term.step
        steps, decrease = step(gradient, curvature, theta, precision, self._most)
        self._move_rows(index, steps)
        return decrease

    def _turn_together(self) -> float:
        """One step of the unpenalized coefficients; half its Newton decrement."""
        scores = self.scores()
        self.rows.stand_at(scores)
        gradient = self.rows.slopes_together(self.flat_columns)
        if self._joint is None or self._joint.is_old:
            information = self.rows.information_together(self.flat_columns)
            self._joint = JointSteps(information, keeps=self.loss.code == SQUARED)
            for number, index in enumerate(self.together):
                self.curvature[index] = information[:, number, number][None]
        steps = self._joint.steps(gradient)
        reach = self.rows.reach(self.flat_columns, steps)
        share = length_of_step(scores, reach, self._most, self.mean_loss_at)
        self._joint.note(reach)
        for number, index in enumerate(self.together):
            self.theta[index] = self.theta[index] + share * steps[number]
        self.rows.stand_at(scores + share * reach)
        self.n_moves += 1
        return 0.5 * share * abs(float((gradient * steps).sum()))

    @cached_property
    def flat_columns(self) -> Floats:
        """What the terms that step together are multiplied by (n, f)."""
        return columns_of([self.terms[index] for index in self.together], len(self.y))

    def drop(self, index: int) -> None:
        """A term that says nothing: its coefficients at 0, and no more turns."""
        if not self.dropped[index]:
            self._move(index, -self.theta[index])
            self.dropped[index], self.precision[index] = True, np.inf

    def own_curvature(self, index: int) -> Floats:
        """Curvature (q, W) of each coefficient by itself; of a multinomial loss that of a turn is a bound."""
        if self.loss.code != MULTINOMIAL:
            return self.curvature[index]
        return self.rows.own_curvature(self.terms[index])

    def mean_loss(self) -> float:
        """Of the rows, each under the model that sees it."""
        return self.mean_loss_at(self.scores())

    def scores(self) -> Floats:
        """Scores (n, K) of the rows, each under the model that sees it."""
        scores = self.rows.scores()
        if self.rows.far < np.inf and not (np.abs(scores) < self.rows.far).all():
            return self.rows.scores_by_sums(self.terms, self.theta)
        return scores

    def mean_loss_at(self, scores: Floats) -> float:
        """Of the rows at other scores (n, K)."""
        return self.mean_of(self.loss.values(scores, self.y))

    def mean_of(self, losses: Floats) -> float:
        """Of losses (n,) of the rows, by their weight."""
        return float(np.average(losses, weights=self.weight if len(self.weight) else None))

    def grads(self) -> tuple[Floats, Floats]:
        """Slopes and curvatures (n,) of rows times their weights, for losses of one score."""
        assert isinstance(self.rows, SingleOutputRows)
        return self.rows.grads()

    def put(self, theta: Sequence[Floats]) -> None:
        """Go on from other parameters."""
        self.theta = [np.array(values, order="C") for values in theta]
        self.__dict__.pop("small", None)  # whose parameters these were not
        self.rows.stand_at(self.rows.scores_by_sums(self.terms, self.theta))
        self.n_moves += 1

    def _move(self, index: int, steps: Floats) -> None:
        self.theta[index] += steps
        self._move_rows(index, steps)

    def _move_rows(self, index: int, steps: Floats) -> None:
        self.n_moves += 1
        self.rows.move(self.terms[index], steps)
