"""Joint Newton steps of the unpenalized coefficients (intercept and slopes).

Numbers that say nearly the same (a list price and a net price), or one with a long tail beside the intercept, pull at
each other so hard that turns one by one would creep: hundreds of sweeps later they were far from the optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tabsym.solvers.newton.terms import SolverTerm

Floats = NDArray[np.float64]

SAME = 1e-12
"""Of the information on numbers scaled to 1 each: directions with less are none, since the numbers say the same."""

NOTHING_LEFT, ROUNDING = 1e-5, 1e-9
"""Of the information on the unpenalized coefficients: so little beside a walk, whose level no difference holds, is
none; beside other blocks less is rounding. (With 1e-5 there, too, the level of a block of large variance, and a slope
of numbers far from 0, counted as known: deviations were up to a third too small.)"""

HARDLY, MAX_STEPS = 0.3, 4
"""An information is kept while no score moves by more than this, for so many steps at most: it takes as long to make
as rows times the square of how many numbers there are."""

MAX_HALVINGS = 30
"""Of a step that does not lower the loss."""


def columns_of(terms: Sequence[SolverTerm], n_rows: int) -> Floats:
    """What each term, which is one number, is multiplied by in each row (n, f)."""
    return np.column_stack([
        np.empty((n_rows, 0)),
        *(np.where(term.codes >= 0, term.x if len(term.x) else 1.0, 0.0) for term in terms),
    ])  # fmt: skip


class JointSteps:
    """Newton's steps of all terms together, by an information that is kept while rows hardly move.

    Parameters
    ----------
    information : (W, f, f)
        Of each model, or class.
    keeps : bool
        Whether it never changes.
    """

    def __init__(self, information: Floats, *, keeps: bool) -> None:
        self._inverses = [inverse_of(own, np.diag(own), SAME) for own in information]
        self._keeps, self._n_steps, self._furthest = keeps, 0, 0.0

    def steps(self, gradient: Floats) -> Floats:
        """The steps (f, W) for gradients (f, W)."""
        return -np.column_stack([own @ slopes for own, slopes in zip(self._inverses, gradient.T, strict=True)])

    def note(self, reach: Floats) -> None:
        """How far a whole step moves the scores (n, K)."""
        self._n_steps += 1
        self._furthest = max(self._furthest, float(np.abs(reach).max(initial=0.0)))

    @property
    def is_old(self) -> bool:
        """Whether rows have other curvatures by now: after a long step, or some of any length."""
        return not self._keeps and (self._furthest > HARDLY or self._n_steps >= MAX_STEPS)


def inverse_of(left: Floats, sizes: Floats, least: float = NOTHING_LEFT) -> Floats:
    """The inverse of the information that is left of `sizes`; along what nothing is left of, 0.

    The level of a walk is nobody's: the intercept takes it, and it has no part in a penalty.
    """
    if left.shape == (1, 1):
        return np.array([[1.0 / left[0, 0] if left[0, 0] > least * sizes[0] else 0.0]])
    told = sizes > 0.0  # a flag for missing values of which a half has none: its coefficient is not identified
    root = np.sqrt(np.where(told, sizes, 1.0))
    lengths, axes = np.linalg.eigh(left / np.outer(root, root))
    inverse = np.where(lengths > least, 1.0 / np.maximum(lengths, least), 0.0)
    return np.where(np.outer(told, told), (axes * inverse) @ axes.T / np.outer(root, root), 0.0)


def rank_of(columns: Floats) -> int:
    """How many numbers the rows tell of those that multiply columns (n, f): fewer than f where some say the same."""
    return rank_of_information(columns.T @ columns)


def rank_of_information(information: Floats) -> int:
    """The same from the information (f, f) on these numbers."""
    sizes = np.diag(information)
    root = np.sqrt(np.where(sizes > 0.0, sizes, 1.0))
    return int(np.count_nonzero(np.linalg.eigvalsh(information / np.outer(root, root)) > SAME))


def length_of_step(scores: Floats, reach: Floats, most: float, loss: Callable[[Floats], float]) -> float:
    """The share of a step to take, 1 or halves of it: where it moves a score by more than `most`, the loss must fall.

    `scores` and what the whole step adds to them, `reach`: (n, K).
    """
    share = 1.0
    if not len(reach) or float(np.abs(reach).max()) <= most:
        return share
    before = loss(scores)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(MAX_HALVINGS):
            if loss(scores + share * reach) <= before:  # no for NaN
                return share
            share *= 0.5
    return 0.0
