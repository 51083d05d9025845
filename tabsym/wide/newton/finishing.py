"""Newton's steps of all coefficients together, where block coordinate descent converges slowly.

Where terms are nearly collinear (a price that its group determines but for a few per cent, an intercept and a term
without a penalty) each sweep lowers the objective by little, and sweeps end parts of a standard error away from the
optimum. With the inverse information of all coefficients, which their deviations need too, a few steps are enough
(iteratively reweighted least squares; McCullagh and Nelder 1989, section 2.5).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from tabsym.wide.newton.joint import MOST_ENTRIES, Information
from tabsym.wide.newton.turns import Turns
from tabsym.wide.slopes import MULTINOMIAL

Floats = NDArray[np.float64]

MOST_STEPS, MOST_HALVINGS = 8, 10
"""Steps, and halves of one that does not lower the objective."""

RIDGE_OF_DIAGONAL = 1e-10
"""Of the diagonal, added to it: the mean of a block and the intercept need not be identified."""


def finish(turns: Turns, dispersion: float, close: float) -> int:
    """Go on until no coefficient moves by more than `close` standard errors of it: how many steps it took.

    Of a model of one score and some hundred coefficients; others are left as they are.
    """
    places = [place for place in range(len(turns.pieces)) if not turns.silent[place]]
    if turns.loss.code == MULTINOMIAL or sum(turns.pieces[place].size for place in places) > MOST_ENTRIES:
        return 0
    for n_steps in range(MOST_STEPS):
        steps, fall = _steps(turns, places)
        if not fall > 0.5 * close**2 * dispersion or not _take(turns, places, steps):
            return n_steps
    return MOST_STEPS


def _steps(turns: Turns, places: list[int]) -> tuple[list[Floats], float]:
    """Newton's steps of the pieces, and half their decrement; 0 where they cannot be found."""
    slopes, _ = turns.pulls()
    gradients = []
    for place in places:
        piece = turns.pieces[place]
        seen = piece.codes >= 0
        own = (slopes * piece.x if len(piece.x) else slopes)[seen]
        pull = piece.pull_back(turns.theta[place], turns.precision[place])[:, 0]
        gradients.append(np.bincount(piece.codes[seen], own, minlength=piece.size) + pull)
    gradient = np.concatenate(gradients)
    information = Information(turns, {}).of(places)
    size = np.diag(information)
    information[np.diag_indices_from(information)] += np.where(size > 0.0, RIDGE_OF_DIAGONAL * size, 1.0)
    try:
        moves = -cho_solve(cho_factor(information, lower=True, overwrite_a=True), gradient)
    except (LinAlgError, ValueError):
        return [], 0.0
    ends = np.cumsum([len(one) for one in gradients])[:-1]
    return [move[:, None] for move in np.split(moves, ends)], -0.5 * float(gradient @ moves)


def _take(turns: Turns, places: list[int], steps: list[Floats]) -> bool:
    """Take the steps, or a half or quarter of them, that lower the objective; whether there are any."""
    theta, before = list(turns.theta), _objective(turns, places)
    share = 1.0
    for _ in range(MOST_HALVINGS):
        moved = list(theta)
        for place, step in zip(places, steps, strict=True):
            moved[place] = theta[place] + share * step
        turns.put(moved)
        if _objective(turns, places) <= before:
            return True
        share *= 0.5
    turns.put(theta)
    return False


def _objective(turns: Turns, places: list[int]) -> float:
    """The loss of the rows, and the penalties."""
    penalties = (turns.precision[place] * turns.pieces[place].length(turns.theta[place]) for place in places)
    with np.errstate(over="ignore", invalid="ignore"):
        return turns.total * turns.mean_loss() + 0.5 * sum(penalties)
