"""Block coordinate descent over rows that are stored in parts, by sums over these: out of core, or on a cluster.

The same steps as `BlockDescent`, of the same terms in the same order; sums differ by rounding. An `Engine` calls the
methods of the parts: `OneAfterTheOther` here, workers in Dask's adapter; `partition` has what a part computes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tabsym.losses.kernels import HUBER, LOGISTIC, MULTINOMIAL, POISSON, SQUARED
from tabsym.losses.loss import Loss, normal_likelihood, root_by_sums, settle_softmax
from tabsym.solvers.newton.block_descent import LITTLE, BlockDescent, SampledRows
from tabsym.solvers.newton.information import Information
from tabsym.solvers.newton.posteriors import SingleOutputPosteriors
from tabsym.solvers.newton.posteriors_classes import ClassHessians, MulticlassPosteriors
from tabsym.solvers.newton.steps import JointSteps, length_of_step, rank_of_information
from tabsym.solvers.newton.terms import SolverTerm

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

    far = np.inf

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
        return self._facts.lowest[0]

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
        terms = [replace(term, codes=np.concatenate(own), x=np.concatenate(x)) for term, own, x in parts]
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


def draw_rows(n_rows: int, n_drawn: int, rng: np.random.RandomState) -> NDArray[np.int64]:
    """Numbers of different rows, at random."""
    if n_rows <= MAX_PERMUTED:
        return rng.permutation(n_rows)[:n_drawn]
    drawn = np.unique(rng.randint(n_rows, size=n_drawn + n_drawn // 50, dtype=np.int64))
    return rng.permutation(drawn)[:n_drawn]


class _InformationInParts(Information):
    has_rows = False

    def sum_pairs(self, indices: Sequence[int]) -> Floats:
        return np.asarray(self.solver._sums.ask("pairs", list(indices))[0])  # type: ignore[attr-defined]

    def sum_cross(
        self, index: int, others: Sequence[int], start: tuple[Floats, Floats] | None = None
    ) -> tuple[Floats, Floats]:
        diagonal, sums = self.solver._sums.ask("cross_sums", index, list(others))  # type: ignore[attr-defined]
        return diagonal, sums

    def sum_weights(
        self, index: int, others: Sequence[int], start: tuple[Floats, Floats, Floats] | None = None
    ) -> tuple[Floats, Floats, Floats]:
        diagonal, shared, pairs = self.solver._sums.ask("weights", index, list(others))  # type: ignore[attr-defined]
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
