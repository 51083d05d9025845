"""Block coordinate descent over rows that are stored in parts, by sums over these: out of core, or on a cluster.

The same steps as `BlockDescent`, of the same terms in the same order; sums differ by rounding. An `Engine` calls the
methods of the parts: `OneAfterTheOther` here, workers in Dask's adapter.

A `Shard` has the rows of one part of a table, and the sums over them that a solver needs. A part may be a range of
memory maps, or the partition of a worker: rows stay where they are, and only sums by coefficient travel, whatever the
number of rows. The four calls of the protocol are `Shard.load` (its constructor), `update` (apply a step to the linear
predictors, and sum gradients and Hessians of the next term), `loss` and `predictor`; the other methods are sums that
variances, joint steps and posteriors need.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tabsym.frame.target import totals_of_classes
from tabsym.losses.loss import (
    HUBER,
    LOGISTIC,
    MULTINOMIAL,
    POISSON,
    SQUARED,
    Loss,
    deviance_and_likelihood,
    normal_likelihood,
    root_by_sums,
    settle_softmax,
    slope_of_shift,
    softmax_sums,
)
from tabsym.solvers.newton.block_descent import LITTLE, BlockDescent, SampledRows
from tabsym.solvers.newton.dispersion import PositiveCounts
from tabsym.solvers.newton.information import Information
from tabsym.solvers.newton.posteriors import SingleOutputPosteriors
from tabsym.solvers.newton.posteriors_classes import ClassHessians, MulticlassPosteriors
from tabsym.solvers.newton.rows import ONE_MODEL, MulticlassRows, SingleOutputRows
from tabsym.solvers.newton.steps import JointSteps, columns_of, length_of_step, rank_of_information
from tabsym.solvers.newton.terms import Prior, SolverTerm

Floats = NDArray[np.float64]
_NOTHING = np.empty(0)


class Engine(Protocol):
    """The parts, which have a `Shard` each, wherever they are, and calls of their methods."""

    def every(self, what: str, *arguments: Any) -> list[Any]:
        """What the method `what` of each part, or of its shard, returns, in the order of the parts."""
        ...

    def total(self, what: str, *arguments: Any) -> Any:
        """The sums over parts of the arrays and numbers that it returns."""
        ...

    def at(self, part: int, what: str, *arguments: Any) -> Any:
        """What it returns for one part."""
        ...


ADDING = ("cross_sums", "weights")
"""Methods of shards that add to the sums of other parts, passed last."""


class OneAfterTheOther:
    """Parts in this process, one after the other: memory for one is enough."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = list(parts)

    def every(self, what: str, *arguments: Any) -> list[Any]:
        return [part.ask(what, *arguments) for part in self.parts]

    def total(self, what: str, *arguments: Any) -> Any:
        if what in ADDING:  # to one array, as each would be large
            sums = None
            for part in self.parts:
                sums = part.ask(what, *arguments, sums)
            return sums
        return add_up(part.ask(what, *arguments) for part in self.parts)

    def at(self, part: int, what: str, *arguments: Any) -> Any:
        return self.parts[part].ask(what, *arguments)


def add_up(sums: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Sums of arrays and numbers, element by element."""
    return tuple(reduce(lambda total, more: [_plus(a, b) for a, b in zip(total, more, strict=True)], sums))


def _plus(total: Any, more: Any) -> Any:
    if isinstance(total, np.ndarray) and total.flags.writeable and total.dtype == more.dtype:
        total += more  # the first part's array, of which there is no other reference
        return total
    return total + more


class _RowsInParts:
    """The rows of `BlockDescent`, by sums; the steps of a term are sent with the next call."""

    max_score = np.inf

    def __init__(self, engine: Engine, loss: Loss, width: int) -> None:
        self._engine, self.width = engine, width
        self._is_squared = loss.code == SQUARED
        self._pending: tuple[int, Floats] | None = None
        self._curvatures: dict[int, Floats] = {}
        self.indices: dict[int, int] = {}

    def ask(self, what: str, *arguments: Any) -> Any:
        """A sum over all rows, after the pending steps."""
        self.apply_pending()
        return self._engine.total(what, *arguments)

    def every(self, what: str, *arguments: Any) -> list[Any]:
        self.apply_pending()
        return self._engine.every(what, *arguments)

    def collect(self, term: SolverTerm) -> tuple[Floats, Floats]:
        index = self.indices[term.block]
        before, self._pending = self._pending, None
        known = index in self._curvatures
        sums = self._engine.total("update", before, index, not known)
        if known:
            return sums[0], self._curvatures[index]
        if self._is_squared:
            self._curvatures[index] = sums[1]
        return sums[0], sums[1]

    def move(self, term: SolverTerm, steps: Floats) -> None:
        self.apply_pending()
        self._pending = self.indices[term.block], np.array(steps)

    def hessian_diagonal(self, term: SolverTerm) -> Floats:
        return self.ask("hessian_diagonals", self.indices[term.block])[0]

    def apply_pending(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            self._engine.every("move", *pending)

    def forget(self) -> None:
        """Drop the pending steps."""
        self._pending = None


class DescentInParts(BlockDescent):
    """`BlockDescent` over the shards of an engine.

    Parameters
    ----------
    engine : Engine
    terms : sequence of SolverTerm
        Without rows: their codes are not used.
    loss : Loss
    n_outputs : int
    """

    def __init__(self, engine: Engine, terms: Sequence[SolverTerm], loss: Loss, n_outputs: int) -> None:
        facts = reduce(lambda part, more: part + more, parts := engine.every("facts"))
        self.engine, self.loss, self.n_outputs = engine, loss, n_outputs
        self._n_rows = [part.n_rows for part in parts]
        no_codes = np.broadcast_to(np.int32(0), (facts.n_rows,))  # as many as rows, without memory
        no_factors = np.broadcast_to(1.0, (facts.n_rows,))
        self.terms = [replace(term, codes=no_codes, x=no_factors if len(term.x) else term.x) for term in terms]
        self.y, self.weight = np.broadcast_to(0.0, (facts.n_rows,)), _NOTHING
        self._facts, self.copies, self.n_rows = facts, None, facts.n_rows
        rows = _RowsInParts(engine, loss, n_outputs)
        rows.indices = {term.block: index for index, term in enumerate(self.terms)}
        self.rows = rows  # type: ignore[assignment]
        self._sums = rows
        self.total, self.covers = facts.total, facts.covers
        variance = facts.moments[1] / facts.total or 1.0
        self.target_scale = 1.0 if not loss.scales else variance
        if loss.code == HUBER:
            self.target_scale = min(variance, loss.parameter**2)
        self._start_at_zero()
        self.makes_posteriors = _ClassPosteriors if loss.code == MULTINOMIAL else _Posteriors
        self.makes_information = _InformationInParts

    def balance(self) -> None:
        """Set the intercept so that the predictions add up to the target, for canonical links."""
        index = self.recentering.intercept
        if index is None or not self.loss.canonical:
            return
        size: Any = self._sums.ask("size_of_target")[0]
        for _ in range(2):
            if self.loss.code in (LOGISTIC, POISSON) and size in (0.0, self.total):
                return  # of one class, or all 0: there is no finite shift
            shift: Any
            if self.loss.code == MULTINOMIAL:
                shift = settle_softmax(lambda by: self._sums.ask("softmax_of_shift", by, self.total), size / self.total)
            else:
                shift = root_by_sums(self.loss, lambda by: self._sums.ask("slope_of_shift", by), size or self.total)
            if np.isfinite(shift).all():
                self.theta[index] = self.theta[index] + shift
                self._sums.every("shift", shift)
                self.n_moves += 1
            if np.abs(shift).max() < LITTLE:
                return

    def dispersion(self) -> float:
        squares, curvature = self._sums.ask("squares")
        return float(squares / curvature)

    def sums_by_weight(self, unit: float) -> Floats:
        return np.asarray(self._sums.ask("weight_sums", unit)[0])

    def pearson_sums(self) -> tuple[float, float, float, float]:
        squares, hessians, slopes, terms = map(float, self._sums.ask("pearson_sums"))
        return squares, hessians, slopes, terms

    def mean_loss(self, delta_eta: Floats | None = None) -> float:
        return float(self._sums.ask("loss_now", delta_eta)[0] / self.total)

    @cached_property
    def mean_least(self) -> float:
        return self._facts.least / self.total

    def least_predicted(self) -> float:
        return min(self._sums.every("least_predicted"))

    def gradients(self, indices: Sequence[int]) -> list[Floats]:
        return list(self._sums.ask("gradients_of", list(indices)))

    def count_rows(self, index: int) -> Floats:
        return np.asarray(self._sums.ask("counts", index)[0])

    def count_positive(self) -> int:
        return self._facts.positive

    def lowest_positive(self) -> float:
        return self._facts.positives.lowest()

    def design_effect(self) -> float:
        return self._facts.squares * self._facts.n_rows / self.total**2

    def rank_together(self) -> int:
        return rank_of_information(self._sums.ask("weighted_pairs", self.together)[0])

    def likelihood(self, loss: Loss, scale: float, shift: float, dispersion: float) -> tuple[float, float]:
        """Deviance and log likelihood of the rows in the user's units."""
        deviance, likely, total, logs = self._sums.ask("likelihood", loss, scale, shift, dispersion)
        if loss.code == SQUARED:  # at the variance of all rows
            likely = normal_likelihood(deviance, total, logs)
        return float(deviance), float(likely)

    def sample(self, max_rows: int, rng: np.random.RandomState) -> SampledRows:
        """The terms, target, weights and offset of at most `max_rows` rows, drawn over all parts."""
        n_rows = len(self.y)
        some = np.sort(draw_rows(n_rows, max_rows, rng)) if n_rows > max_rows else None
        samples, first = [], 0
        for part, n in enumerate(self._n_rows):
            at = None if some is None else some[(some >= first) & (some < first + n)] - first
            samples.append(self.engine.at(part, "some_rows", at))
            first += n
        codes, factors, y, weight, start = zip(*samples, strict=True)
        parts = zip(self.terms, zip(*codes, strict=True), zip(*factors, strict=True), strict=True)
        terms = [
            replace(term, codes=np.concatenate(codes_of_parts), x=np.concatenate(x))
            for term, codes_of_parts, x in parts
        ]
        return terms, np.concatenate(y), np.concatenate(weight), np.concatenate(start), None

    def put(self, theta: Sequence[Floats]) -> None:
        self.theta = [np.array(values, order="C") for values in theta]
        self._sums.forget()
        self.engine.every("predictor", self.theta)
        self.n_moves += 1

    def _update_together(self) -> float:
        gradient = self._sums.ask("slopes_together")[0]
        if self._joint is None or self._joint.is_old:
            information = self._sums.ask("information_together")[0]
            self._joint = JointSteps(information, is_constant=self.loss.code == SQUARED)
            for number, index in enumerate(self.together):
                self.curvature[index] = information[:, number, number][None]
        steps = self._joint.steps(gradient)
        farthest = max(self._sums.every("farthest", steps))
        fraction = length_of_step(
            farthest, self._max_step, lambda fraction: self.mean_loss(fraction * steps if fraction else None)
        )
        self._joint.note(farthest)
        for number, index in enumerate(self.together):
            self.theta[index] = self.theta[index] + fraction * steps[number]
        self._sums.every("move_together", fraction * steps)
        self.n_moves += 1
        return 0.5 * fraction * abs(float((gradient * steps).sum()))


MAX_PERMUTED = 50_000_000
"""Of more rows a sample is drawn without an order of all of them."""


def draw_rows(n_rows: int, n_sampled: int, rng: np.random.RandomState) -> NDArray[np.int64]:
    """Numbers of different rows, at random."""
    if n_rows <= MAX_PERMUTED:
        return rng.permutation(n_rows)[:n_sampled]
    sampled = np.unique(rng.randint(n_rows, size=n_sampled + n_sampled // 50, dtype=np.int64))
    return rng.permutation(sampled)[:n_sampled]


class _InformationInParts(Information):
    has_rows = False

    def sum_pairs(self, indices: Sequence[int]) -> Floats:
        return np.asarray(self.solver._sums.ask("pairs", list(indices))[0])  # type: ignore[attr-defined]

    def sum_cross(
        self, index: int, other_terms: Sequence[int], start: tuple[Floats, Floats] | None = None
    ) -> tuple[Floats, Floats]:
        diagonal, sums = self.solver._sums.ask("cross_sums", index, list(other_terms))  # type: ignore[attr-defined]
        return diagonal, sums

    def sum_weights(
        self, index: int, other_terms: Sequence[int], start: tuple[Floats, Floats, Floats] | None = None
    ) -> tuple[Floats, Floats, Floats]:
        diagonal, shared, pairs = self.solver._sums.ask("weights", index, list(other_terms))  # type: ignore[attr-defined]
        return diagonal, shared, pairs


class _Posteriors(SingleOutputPosteriors):
    solver: DescentInParts

    def _shared(self, index: int) -> Floats:
        return self._now("shared", index, lambda: self.solver._sums.ask("posterior_sums", "shared", index)[0])

    def sum_curvature(self, index: int) -> Floats:
        return self._now("curvature", index, lambda: self.solver._sums.ask("posterior_sums", "curvature", index)[0])

    def _unpenalized_information(self) -> Floats:
        return self._now("information", -1, lambda: self.solver._sums.ask("posterior_sums", "information", -1)[0])


class _ClassPosteriors(MulticlassPosteriors):
    solver: DescentInParts

    def _coefs(self, term: SolverTerm) -> ClassHessians:
        index = self.solver.rows.indices[term.block]  # type: ignore[union-attr]
        alone = bool(self._is_intercept_alone and not len(term.x) and self.solver.covers[index])
        hessians, *shared = self.solver._sums.ask("class_sums", index, alone)
        return ClassHessians(hessians, None if alone else shared, self.solver.n_outputs)

    def _unpenalized_information(self) -> Floats:
        self._forget()
        if self._information is None:
            self._information = self.solver._sums.ask("unpenalized_class_sums")[0]
        return self._information


# -- the rows of one part --------------------------------------------------------------------------


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
    positives: PositiveCounts
    """By which the lowest positive targets of all parts are found."""
    least: float
    """The sum of the losses of a perfect prediction."""

    def __add__(self, other: Facts) -> Facts:
        total = self.total + other.total
        step = other.moments[0] - self.moments[0]
        mean = self.moments[0] + step * (other.total / total)
        squares = self.moments[1] + other.moments[1] + step**2 * (self.total * other.total / total)
        covers = self.covers & other.covers
        return Facts(
            self.n_rows + other.n_rows,
            total,
            self.squares + other.squares,
            covers,
            (mean, squares),
            self.positive + other.positive,
            self.positives + other.positives,
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
            PositiveCounts.of(self.y, self.weight),
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

    def weight_sums(self, unit: float) -> tuple[Floats]:
        return (self.sums_by_weight(unit),)

    def counts(self, index: int) -> tuple[Floats]:
        return (self.count_rows(index),)

    def hessian_diagonals(self, index: int) -> tuple[Floats]:
        assert isinstance(self.rows, MulticlassRows)
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
        self, index: int, other_terms: Sequence[int], start: tuple[Floats, Floats] | None = None
    ) -> tuple[Floats, Floats]:
        """The sums of `Information.sum_cross`, added to `start`, those of other parts."""
        return Information(self, {}).sum_cross(index, other_terms, start)

    def weights(
        self, index: int, other_terms: Sequence[int], start: tuple[Floats, Floats, Floats] | None = None
    ) -> tuple[Floats, Floats, Floats]:
        """The sums of `Information.sum_weights`, added to `start`, those of other parts."""
        return Information(self, {}).sum_weights(index, other_terms, start)

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
