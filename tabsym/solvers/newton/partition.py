"""The rows of one part of a table, and the sums over them that a solver needs.

A part may be a range of memory maps, or the partition of a worker: rows stay where they are, and only sums by
coefficient travel, whatever the number of rows. The four calls of the protocol are `Shard.load` (its constructor),
`update` (apply a step to the linear predictors, and sum gradients and Hessians of the next term), `loss` and
`predictor`; the other methods are sums that variances, joint steps and posteriors need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.frame.weights import totals_of_classes
from tabsym.losses.kernels import MULTINOMIAL, SQUARED, slope_of_shift
from tabsym.losses.loss import Loss, deviance_and_likelihood, softmax_sums
from tabsym.solvers.newton.block_descent import BlockDescent
from tabsym.solvers.newton.dispersion import lowest_positive
from tabsym.solvers.newton.information import Information
from tabsym.solvers.newton.posteriors import SingleOutputPosteriors
from tabsym.solvers.newton.posteriors_classes import MulticlassPosteriors
from tabsym.solvers.newton.rows import ONE_MODEL, MulticlassRows, SingleOutputRows
from tabsym.solvers.newton.steps import columns_of
from tabsym.solvers.newton.terms import Prior, SolverTerm

Floats = NDArray[np.float64]
_NOTHING = np.empty(0)


@dataclass(frozen=True)
class Facts:
    """The sums over the rows of a part that a solver needs before it starts; see `Shard.facts`."""

    n_rows: int
    total: float
    squares: float
    """Sums of weights, and of their squares."""
    covers: NDArray[np.bool_]
    moments: tuple[float, float]
    """Weighted mean of the target less its offset, and the sum of squares about it."""
    positive: int
    """How many targets are above 0."""
    lowest: tuple[float, int]
    """See `lowest_positive`; of all parts the mean by their numbers of zeros."""
    least: float
    """The sum of the losses of a perfect prediction."""

    def __add__(self, other: Facts) -> Facts:
        total = self.total + other.total
        step = other.moments[0] - self.moments[0]
        mean = self.moments[0] + step * (other.total / total)
        squares = self.moments[1] + other.moments[1] + step**2 * (self.total * other.total / total)
        covers = self.covers & other.covers
        n_zeros = self.lowest[1] + other.lowest[1]
        lowest = (self.lowest[0] * self.lowest[1] + other.lowest[0] * other.lowest[1]) / max(n_zeros, 1)
        return Facts(
            self.n_rows + other.n_rows,
            total,
            self.squares + other.squares,
            covers,
            (mean, squares),
            self.positive + other.positive,
            (lowest, n_zeros),
            self.least + other.least,
        )


class Shard(BlockDescent):
    """The rows of a part: what `BlockDescent` is for all of them, without coefficients.

    Parameters
    ----------
    terms : sequence of SolverTerm
        Of these rows.
    y, weight, start : as of `BlockDescent`
    loss : Loss
    values : (n,), or (n, K) for several classes, optional
        The array in which linear predictors are stored, such as a memory map.
    users_y : (n,), optional
        The target in the user's units.
    """

    def __init__(
        self,
        terms: Sequence[SolverTerm],
        y: Floats,
        weight: Floats,
        start: Floats,
        loss: Loss,
        values: Floats | None = None,
        users_y: Floats | None = None,
    ) -> None:
        self.terms, self.y, self.weight, self.start, self.loss = list(terms), y, weight, start, loss
        self.users_y = y if users_y is None else users_y
        self.n_outputs = start.shape[1]
        if loss.code == MULTINOMIAL:
            self.rows = (
                MulticlassRows(y, weight, start) if values is None else _ClassesInArray(values, y, weight, start)
            )
        elif values is None:
            self.rows = SingleOutputRows(y, weight, start[:, 0], loss, ONE_MODEL, 1)
        else:
            self.rows = _RowsInArray(values, y, weight, start[:, 0], loss)
        self.precision = np.zeros(len(self.terms))
        self.dropped = np.zeros(len(self.terms), dtype=np.bool_)
        self.n_moves = 0
        self.copies = None
        self.total = float(weight.sum()) if len(weight) else float(len(y))
        self.covers = np.array([term.codes.min(initial=0) >= 0 for term in self.terms])
        self.together = [
            index for index, term in enumerate(self.terms) if term.prior is Prior.FLAT
        ]  # all that can be updated jointly; the solver decides

    def facts(self) -> Facts:
        """The sums over these rows that the solver needs before it starts; those of all parts are added up."""
        squares = float(np.square(self.weight).sum()) if len(self.weight) else float(len(self.y))
        weights = self.weight if len(self.weight) else None
        residual = self.y - self.start[:, 0]
        mean = float(np.average(residual, weights=weights))
        squared = np.square(residual - mean)
        return Facts(
            len(self.y),
            self.total,
            squares,
            self.covers,
            (mean, float(squared.sum() if weights is None else squared @ weights)),
            int(np.count_nonzero(self.y > 0.0)),
            lowest_positive(self.y, self.weight, None),
            self.mean_least * self.total if self.loss.log_link else 0.0,
        )

    def scores(self) -> Floats:
        """Linear predictors (n, K) as stored: the solver has the coefficients, from which they could be summed anew."""
        return self.rows.scores()

    # -- the four calls -------------------------------------------------------------

    def update(self, before: tuple[int, Floats] | None, index: int, whole: bool) -> tuple[Floats, ...]:
        """Sums of gradients (q, W) of a term, and with `whole` its Hessians, after the steps of the term `before`."""
        if before is not None:
            self.rows.move(self.terms[before[0]], before[1])
            self.n_moves += 1
        term = self.terms[index]
        if self.loss.code == SQUARED and not whole:
            self.rows._curvatures.setdefault(term.block, _NOTHING)  # type: ignore[union-attr]
        gradient, curvature = self.rows.collect(term)
        sums = (np.array(gradient), np.array(curvature)) if whole else (np.array(gradient),)
        if self.loss.code == SQUARED:
            self.rows._curvatures[term.block] = _NOTHING  # type: ignore[union-attr]  # the solver has their sum
        if isinstance(self.rows, SingleOutputRows):
            self.rows._sums = np.empty((0, 2))  # of one part after the other
        return sums

    def predictor(self, theta: Sequence[Floats]) -> tuple[()]:
        """Set the linear predictors to those of coefficients."""
        self.rows.set_predictor(self.rows.scores_by_sums(self.terms, list(theta)))
        self.n_moves += 1
        return ()

    def loss_now(self, delta_eta: Floats | None = None) -> tuple[float]:
        """The sum of the rows' losses, times weights; with `delta_eta` (f, W) after a joint step."""
        scores = self.rows.scores()
        if delta_eta is not None:
            scores = scores + self.rows.delta_eta(self._columns(), delta_eta)
        return (self.mean_loss_at(scores) * self.total,)

    # -- steps of unpenalized terms, and of the intercept ------------------------------

    def move(self, index: int, steps: Floats) -> tuple[()]:
        """Add the steps (q, W) of a term's coefficients."""
        self.rows.move(self.terms[index], steps)
        self.rows.scores()  # applied at once
        self.n_moves += 1
        return ()

    def slopes_together(self) -> tuple[Floats]:
        """Gradients (f, W) of the unpenalized coefficients."""
        self.rows.set_predictor(self.rows.scores())
        return (self.rows.slopes_together(self._columns()),)

    def information_together(self) -> tuple[Floats]:
        return (self.rows.information_together(self._columns()),)

    def farthest(self, steps: Floats) -> float:
        """The largest change of a linear predictor by steps (f, W) of the unpenalized coefficients."""
        return float(np.abs(self.rows.delta_eta(self._columns(), steps)).max(initial=0.0))

    def move_together(self, steps: Floats) -> tuple[()]:
        self.rows.set_predictor(self.rows.scores() + self.rows.delta_eta(self._columns(), steps))
        self.n_moves += 1
        return ()

    def shift(self, by: Any) -> tuple[()]:
        """Add a number, or one a class (K,), to all linear predictors."""
        self.rows.set_predictor(self.rows.scores() + by)
        self.n_moves += 1
        return ()

    def slope_of_shift(self, by: float) -> tuple[float, float]:
        """Sums of gradients and Hessians after a shift of all linear predictors."""
        return slope_of_shift(self.loss.code)(self.rows.scores(), self.y, self.weight, self.loss.parameter, by)

    def softmax_of_shift(self, by: Floats, total: float) -> tuple[Floats, Floats]:
        """Sums of probabilities and of their derivatives after a shift (K,), by weights over a total."""
        weight = self.row_weights
        return softmax_sums(self.rows.scores(), weight / total)(by)

    def size_of_target(self) -> tuple[Any]:
        """The weighted sum of absolute targets; of several classes, the weight (K,) of each."""
        if self.loss.code == MULTINOMIAL:
            weight = self.weight if len(self.weight) else None
            return (totals_of_classes(self.y.astype(np.int64), self.n_outputs, weight),)
        return (float(np.abs(self.y) @ self.weight if len(self.weight) else np.abs(self.y).sum()),)

    # -- sums for variances and posteriors ---------------------------------------------

    def squares(self) -> tuple[float, float]:
        """Sums of squared gradients and of Hessians."""
        assert isinstance(self.rows, SingleOutputRows)
        return self.rows.sum_gradients()

    def counts(self, index: int) -> tuple[Floats]:
        return (self.count_rows(index),)

    def hessian_diagonals(self, index: int) -> tuple[Floats]:
        return (np.array(self.rows.hessian_diagonal(self.terms[index])),)

    def gradients_of(self, indices: Sequence[int]) -> tuple[Floats, ...]:
        return tuple(self.gradients(indices))

    def posterior_sums(self, what: str, index: int) -> tuple[Floats]:
        """A sum that `SingleOutputPosteriors` needs: "shared", "curvature" or "information"."""
        sums = SingleOutputPosteriors(self)
        if what == "information":
            return (sums._unpenalized_information(),)
        return (sums._shared(index) if what == "shared" else sums.sum_curvature(index),)

    def class_sums(self, index: int, alone: bool) -> tuple[Floats, ...]:
        """Hessian matrices of a term's coefficients, and cross-derivatives with unpenalized terms: lower triangles."""
        sums, term = _ClassSums(self), self.terms[index]
        hessians = sums._triangles(term.codes, term.x * term.x, term.size)
        return (hessians,) if alone else (hessians, *sums.shared_triangles(term))

    def unpenalized_class_sums(self) -> tuple[Floats]:
        return (_ClassSums(self)._unpenalized_information(),)

    def pairs(self, indices: Sequence[int]) -> tuple[Floats]:
        return (Information(self, {}).sum_pairs(indices),)

    def cross_sums(
        self, index: int, others: Sequence[int], start: tuple[Floats, Floats] | None = None
    ) -> tuple[Floats, Floats]:
        """The sums of `Information.sum_cross`, added to `start`, those of other parts."""
        return Information(self, {}).sum_cross(index, others, start)

    def weights(
        self, index: int, others: Sequence[int], start: tuple[Floats, Floats, Floats] | None = None
    ) -> tuple[Floats, Floats, Floats]:
        """The sums of `Information.sum_weights`, added to `start`, those of other parts."""
        return Information(self, {}).sum_weights(index, others, start)

    def weighted_pairs(self, indices: Sequence[int]) -> tuple[Floats]:
        """Pairs of terms of one coefficient each without the loss, for the rank of their design."""
        weight = self.row_weights
        columns = self._columns_of(indices)
        return (columns.T @ (weight[:, None] * columns),)

    def likelihood(
        self, loss: Loss, scale: float, shift: float, dispersion: float
    ) -> tuple[float, float, float, float]:
        """Deviance and log likelihood of the rows in the user's units; the sums of their weights and of the logs."""
        margins = self.rows.scores() * scale + shift
        weight = self.weight if len(self.weight) else None
        return (
            *deviance_and_likelihood(loss, margins, self.users_y, weight, dispersion),
            self.total,
            float(np.log(self.weight).sum()),
        )

    def some_rows(self, rows: NDArray[np.int64] | None) -> tuple[list[Floats], list[Floats], Floats, Floats, Floats]:
        """Codes and factors of all terms, target, weights and offset of some rows, or of all."""
        at: Any = slice(None) if rows is None else rows
        codes = [np.array(term.codes[at]) for term in self.terms]
        factors = [np.array(term.x[at]) if len(term.x) else term.x for term in self.terms]
        weight = np.array(self.weight[at]) if len(self.weight) else self.weight
        return codes, factors, np.array(self.y[at]), weight, np.array(self.start[at])

    def _columns(self) -> Floats:
        return self._columns_of(self.together)

    def _columns_of(self, indices: Sequence[int]) -> Floats:
        return columns_of([self.terms[index] for index in indices], len(self.y))


class _ClassSums(MulticlassPosteriors):
    """Of a part, whose rows' matrices are not cached."""

    keeps_matrices = False


class _InArray:
    """Rows whose linear predictors are stored in a given array."""

    _array: Floats

    @property
    def _values(self) -> Floats:
        return self._array

    @_values.setter
    def _values(self, values: Floats) -> None:
        self._array[...] = values


class _RowsInArray(_InArray, SingleOutputRows):
    def __init__(self, values: Floats, y: Floats, weight: Floats, start: Floats, loss: Loss) -> None:
        self._array = values
        super().__init__(y, weight, start, loss, ONE_MODEL, 1)


class _ClassesInArray(_InArray, MulticlassRows):
    def __init__(self, values: Floats, y: Floats, weight: Floats, start: Floats) -> None:
        self._array = values
        super().__init__(y, weight, start)
