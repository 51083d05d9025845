"""Joint Newton steps for the unpenalized coefficients: the intercept and slopes.

Nearly collinear numeric columns (a list price and a net price), or one with a long tail and the intercept, are strongly
correlated: coordinate descent over them would converge very slowly, in more than hundreds of iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tabsym.solvers.newton.terms import SolverTerm

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
    keeps : bool
        Whether it never changes.
    """

    def __init__(self, information: Floats, *, keeps: bool) -> None:
        self._information = information
        self._inverses = [inverse_of(own, np.diag(own), SAME) for own in information]
        self._keeps, self._n_steps, self._furthest = keeps, 0, 0.0

    def steps(self, gradient: Floats) -> Floats:
        """The Newton steps (f, W) for gradients (f, W)."""
        return -np.column_stack([own @ slopes for own, slopes in zip(self._inverses, gradient.T, strict=True)])

    def steps_within(self, gradient: Floats, theta: Floats, signs: NDArray[np.int64]) -> Floats:
        """The same (f, 1) for one model, where slopes of a sign 1 or -1 keep to it: see `signed_steps`."""
        return signed_steps(self._information[0], gradient[:, 0], theta[:, 0], signs)[:, None]

    def note(self, reach: Floats) -> None:
        """Record the change of the linear predictors (n, K) by a whole step."""
        self._n_steps += 1
        self._furthest = max(self._furthest, float(np.abs(reach).max(initial=0.0)))

    @property
    def is_old(self) -> bool:
        """Whether the Hessians have changed: after a long step, or after several of any length."""
        return not self._keeps and (self._furthest > HARDLY or self._n_steps >= MAX_STEPS)


def inverse_of(left: Floats, sizes: Floats, least: float = NOTHING_LEFT) -> Floats:
    """The pseudo-inverse of the information `left`, whose diagonal was `sizes` before other terms were accounted for.

    Directions without information, such as the mean of a walk, which is confounded with the intercept, are set to 0.
    """
    if left.shape == (1, 1):
        return np.array([[1.0 / left[0, 0] if left[0, 0] > least * sizes[0] else 0.0]])
    if not np.isfinite(left).all():  # where coefficients diverge, no further
        return np.zeros_like(left)
    told = sizes > 0.0  # 0: a missing-value flag that is constant in one half
    root = np.sqrt(np.where(told, sizes, 1.0))
    lengths, axes = np.linalg.eigh(left / np.outer(root, root))
    inverse = np.where(lengths > least, 1.0 / np.maximum(lengths, least), 0.0)
    return np.where(np.outer(told, told), (axes * inverse) @ axes.T / np.outer(root, root), 0.0)


def signed_steps(information: Floats, gradient: Floats, theta: Floats, signs: NDArray[np.int64]) -> Floats:
    """Steps (f,) to the minimum of a quadratic where ``signs * (theta + steps)`` is not negative.

    The primal active-set method, from theta (f,), which is within the bounds: slopes at 0 stay there until their
    gradient leads inwards.
    """
    steps, at_zero = np.zeros(len(theta)), (signs != 0) & (theta == 0.0)
    for _ in range(20 * len(theta) + 20):
        free = np.flatnonzero(~at_zero)
        left = information[np.ix_(free, free)]
        own = gradient + information @ steps
        moves = np.zeros(len(theta))
        moves[free] = -inverse_of(left, np.diag(left), SAME) @ own[free] if len(free) else 0.0
        after = signs * (theta + steps + moves)
        crossing = np.flatnonzero(after < 0.0)
        if len(crossing):
            shares = np.abs((theta + steps)[crossing] / moves[crossing])
            first = crossing[int(np.argmin(shares))]
            steps += min(float(shares.min()), 1.0) * moves
            steps[first], at_zero[first] = -theta[first], True
            continue
        steps += moves
        own = gradient + information @ steps
        inwards = np.where(at_zero, -signs * own / np.sqrt(np.maximum(np.diag(information), 1e-300)), 0.0)
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


def length_of_step(scores: Floats, reach: Floats, most: float, loss: Callable[[Floats], float]) -> float:
    """The fraction of a step to take: halved until the loss decreases, where a change exceeds `most`.

    `scores` and `reach`, their change by the whole step: (n, K).
    """
    share = 1.0
    if not len(reach) or float(np.abs(reach).max()) <= most:
        return share
    before = loss(scores)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(MAX_HALVINGS):
            if loss(scores + share * reach) <= before:  # false for NaN
                return share
            share *= 0.5
    return 0.0
