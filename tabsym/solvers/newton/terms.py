"""The terms of an additive model as the solver sees them: the coefficient that each row selects, and their prior."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tabsym.categories.kernels import take_numbers
from tabsym.design.content import Keys, content_of_rows
from tabsym.frame.target import Copies, of_one_copy
from tabsym.solvers.newton.kernels_coefs import step_ridge, sum_products_of
from tabsym.solvers.newton.kernels_rows import step_classes
from tabsym.solvers.newton.kernels_walk import (
    pool_isotonic,
    solve_centred_walk,
    step_monotone,
    step_walk,
    step_walk_of_classes,
)

Floats = NDArray[np.float64]
_NO_CHAIN = np.empty(0, dtype=np.intp)

NEXT_TO_NOTHING = 1e-8
"""A small ridge on walks: their prior is improper, as the penalty on differences leaves the mean free."""


class Prior(Enum):
    """The prior, and hence the penalty, of the coefficients of a term."""

    FLAT = "flat"
    """None: the intercept, slopes."""
    RIDGE = "ridge"
    """Coefficients are independent, normal with mean 0."""
    WALK = "walk"
    """First-order random walk: differences of neighbouring coefficients are normal with mean 0, as for bins of a
    number."""


def unordered_ratio(n_walk: int) -> float:
    """The precision of unordered coefficients over the walk's: they have the variance of the walk's coefficients.

    The coefficients of a walk of J, whose neighbours differ by a variance of 1, vary about their mean by (J^2 - 1) / (6
    J). The variance of the differences would shrink missing values too much (`benchmarks/evidence/constants.md`).
    """
    return 6.0 * n_walk / (n_walk * n_walk - 1.0) if n_walk > 1 else 1.0


@dataclass(frozen=True, eq=False)
class SolverTerm:
    """One term of an additive model.

    Attributes
    ----------
    block : int
        Its index in the spec.
    codes : (n,) int32
        The coefficient that each row selects, -1 for none.
    x : (n,)
        The numeric factor of the coefficient; empty for 1.
    size : int
        Number of coefficients.
    prior : Prior
    n_unordered : int
        Number of coefficients at the start that are not part of the walk: missing values. They are normal about its
        mean, with the marginal variance of its coefficients.
    within : mapping of block -> (q,) int32
        For an interaction: the coefficients of other terms in which its coefficients are nested, such as the main
        effects'.
    chain : (m,) intp
        Indices of coefficients that must not decrease in this order; empty for none. Of one linear predictor.
    sign : int
        Of a slope that must not be negative (1) or positive (-1); else 0.
    name : str
        Of the column or interaction.
    keys : callable or None
        A number for each coefficient (q,) that its meaning determines, where that of its code depends on the rows.
    """

    block: int
    codes: NDArray[np.int32]
    x: Floats
    size: int
    prior: Prior
    n_unordered: int = 0
    within: Mapping[int, NDArray[np.int32]] = field(default_factory=dict)
    chain: NDArray[np.intp] = field(default_factory=lambda: _NO_CHAIN)
    sign: int = 0
    name: str = ""
    keys: Callable[[], Keys] | None = None

    def at(self, rows: NDArray[np.signedinteger]) -> SolverTerm:
        """The term of some rows."""
        codes = np.empty(len(rows), dtype=np.int32)
        take_numbers(self.codes, rows, codes)
        return replace(self, codes=codes, x=self.x[rows] if len(self.x) else self.x)

    @property
    def is_monotone(self) -> bool:
        """Whether its coefficients are constrained."""
        return self.sign != 0 or len(self.chain) > 1

    def is_feasible(self, theta: Floats) -> bool:
        """Whether coefficients (q, 1) are within the constraint."""
        return bool((self.sign * theta >= 0.0).all() and (np.diff(theta[self.chain, 0]) >= 0.0).all())

    def feasible(self, theta: Floats, curvature: Floats) -> Floats:
        """Coefficients (q, 1) within the constraint near to given ones, by their Hessian's diagonal (q, 1)."""
        feasible = np.where(self.sign * theta < 0.0, 0.0, theta)
        if len(self.chain) > 1:
            values, weights = theta[self.chain, 0], curvature[self.chain, 0]
            weights = np.maximum(weights, NEXT_TO_NOTHING * max(float(weights.max()), 1.0))
            pool_isotonic(values, weights, np.empty(len(values), dtype=np.int64), *np.empty((2, len(values))))
            feasible[self.chain, 0] = values
        return feasible

    def face(self, theta: Floats) -> Floats:
        """The moves (q, m) that leave equal coefficients (q, 1) of the chain equal, and a slope of 0 at 0."""
        if self.sign != 0:
            return np.eye(self.size)[:, theta[:, 0] != 0.0]
        pool = np.zeros(self.size, dtype=np.intp)
        pool[self.chain[1:]] = np.cumsum(np.diff(theta[self.chain, 0]) > 0.0)
        off_chain = np.setdiff1d(np.arange(self.size), self.chain)
        pool[off_chain] = pool.max() + 1 + np.arange(len(off_chain))
        return np.eye(int(pool.max()) + 1)[pool]

    @property
    def n_penalized(self) -> int:
        """The number of penalized coefficients, or of penalized differences."""
        if self.prior is Prior.FLAT:
            return 0
        return self.size if self.prior is Prior.RIDGE else self.size - 1

    @property
    def unordered_ratio(self) -> float:
        """The precision of the unordered coefficients, about the mean of the walk, over the walk's."""
        return unordered_ratio(self.size - self.n_unordered)

    @property
    def is_constant(self) -> bool:
        """Whether the term is one coefficient without a numeric factor."""
        return self.size == 1 and not len(self.x)

    def penalty_gradient(self, theta: Floats, precision: float) -> Floats:
        """The gradient (q, W) of the penalty, which is half of `precision` times `length`."""
        if self.prior is Prior.FLAT or not np.isfinite(precision):
            return np.zeros_like(theta)
        grad = precision * theta
        if self.prior is Prior.WALK:
            walk = theta[self.n_unordered :]
            grad[: self.n_unordered] = precision * self.unordered_ratio * self._about_mean(theta)
            jumps = precision * np.diff(walk, axis=0)
            grad[self.n_unordered :] = NEXT_TO_NOTHING * walk - grad[: self.n_unordered].sum(axis=0) / max(len(walk), 1)
            grad[self.n_unordered : -1] -= jumps
            grad[self.n_unordered + 1 :] += jumps
        return grad

    def length(self, theta: Floats) -> float:
        """The sum of squares in the penalty."""
        if self.prior is Prior.WALK:
            about_mean = self.unordered_ratio * np.square(self._about_mean(theta)).sum()
            return float(about_mean + np.square(np.diff(theta[self.n_unordered :], axis=0)).sum())
        return float(np.square(theta).sum())

    def _about_mean(self, theta: Floats) -> Floats:
        """Differences (n_unordered, W) between the unordered coefficients and the mean of the walk."""
        return theta[: self.n_unordered] - theta[self.n_unordered :].sum(axis=0) / max(self.size - self.n_unordered, 1)

    def step(
        self, gradient: Floats, curvature: Floats, theta: Floats, precision: float, max_step: float = np.inf
    ) -> tuple[Floats, float]:
        """Newton steps (q, W), added to theta, each at most `max_step` in size; and half the Newton decrement."""
        steps = np.empty_like(theta)
        if self.prior is Prior.WALK:
            assert theta.flags.c_contiguous, "it moves in place"
            right, pivots, level = np.empty((3, theta.size))
            decrease = step_walk(
                gradient.ravel(), curvature.ravel(), theta.ravel(), self.n_unordered, theta.shape[1],
                self.unordered_ratio, precision, NEXT_TO_NOTHING, max_step, right, pivots, level, steps.ravel(),
            )  # fmt: skip
        else:
            ridge = 0.0 if self.prior is Prior.FLAT else precision
            assert theta.flags.c_contiguous, "it moves in place"
            flat_steps, right = steps.ravel(), np.empty(theta.size)
            step_ridge(gradient.ravel(), curvature.ravel(), theta.ravel(), ridge, max_step, right, flat_steps)
            decrease = 0.5 * sum_products_of(right, flat_steps)
        return steps, float(decrease)

    def monotone_step(
        self, gradient: Floats, curvature: Floats, theta: Floats, precision: float, max_step: float = np.inf
    ) -> tuple[Floats, float]:
        """As `step`, within the constraint of a `chain`: theta (q, 1) is so before and after."""
        n, is_walk = len(self.chain), self.prior is Prior.WALK
        steps, numbers, starts = np.empty_like(theta), np.empty((8, n)), np.empty(n + 1, dtype=np.int64)
        off_chain = np.setdiff1d(np.arange(self.size), self.chain)
        precision_along, ridge, off_precision = precision, NEXT_TO_NOTHING, precision * self.unordered_ratio
        if not is_walk:
            precision_along, ridge, off_precision = 0.0, precision, precision
        decrease = step_monotone(
            gradient[:, 0], curvature[:, 0], theta[:, 0], self.chain, off_chain, precision_along, ridge, off_precision,
            is_walk, max_step, numbers, starts, steps[:, 0],
        )  # fmt: skip
        return steps, float(decrease)

    def step_of_classes(
        self, gradient: Floats, curvature: Floats, theta: Floats, precision: float, max_step: float
    ) -> tuple[Floats, float]:
        """The same for multiclass, (q, K): `curvature` is the sum of the rows' probabilities."""
        if self.prior is Prior.FLAT:
            return self.step(gradient, curvature, theta, precision, max_step)
        right, steps = np.empty((2, *theta.shape))
        if self.prior is Prior.RIDGE:
            step_classes(gradient, curvature, theta, precision, max_step, right, steps)
        else:
            q, k = theta.shape
            left, level, blocks = np.empty((q, k, k)), np.empty((q, k, 1 + k)), np.empty((3, k, 1 + k))
            step_walk_of_classes(
                gradient, curvature, theta, self.n_unordered, self.unordered_ratio, precision, NEXT_TO_NOTHING,
                max_step, left, level, blocks, right, steps,
            )  # fmt: skip
        return steps, 0.5 * float(np.vdot(right, steps))

    def solve(self, curvature: Floats, precision: float, right: Floats) -> Floats:
        """The inverse of Hessian plus penalty, times `right` (q, W)."""
        if self.prior is Prior.FLAT:
            return np.divide(right, curvature, out=np.zeros_like(right), where=curvature > 0)
        if self.prior is Prior.RIDGE:
            both = curvature + precision
            return np.divide(right, both, out=np.zeros_like(right), where=both > 0)
        width, (pivots, level, out) = right.shape[1], np.empty((3, right.size))
        for first in range(self.n_unordered * width, (1 + self.n_unordered) * width):
            solve_centred_walk(
                curvature.ravel(), first, width, self.unordered_ratio, precision, NEXT_TO_NOTHING, right.ravel(),
                pivots, level, out,
            )  # fmt: skip
        return out.reshape(right.shape)


def side_by_side(terms: Sequence[SolverTerm], indices: Sequence[int]) -> list[slice]:
    """The coefficients of each of some terms, where these stand side by side."""
    return [slice(a, b) for a, b in pairwise(np.cumsum([0, *(terms[index].size for index in indices)]).tolist())]


def content_of_terms(terms: Sequence[SolverTerm], y: Floats, weight: Floats, start: Floats, copies: Copies) -> Keys:
    """The content of rows (n,): what the terms read of each, target (n,), weight of a copy (n,) and offset (n, K)."""
    coded, numbers = [], []
    for term in terms:
        if term.size > 1 or term.codes.min(initial=0) < 0:
            coded.append((term.name, term.codes, term.keys() if term.keys else np.arange(term.size, dtype=np.uint64)))
        if len(term.x):
            numbers.append((f"{term.name} times", term.x))
    return content_of_rows(coded, numbers, y, of_one_copy(weight, copies), start if start.any() else start[:0])
