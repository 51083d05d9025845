"""Models each of which has not seen one fold: where rows stand under them, and what pulls there.

Where a loss lets rows be kept at an exp of their scores (or at their residuals), a step costs one exp per symbol.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from tabsym.wide.curvature import add_steps, kept_pulls, logistic_pulls, pulls_of_rows, softmax_pulls
from tabsym.wide.losses import RATES, Loss, as_kept, keep, scores_of_kept
from tabsym.wide.slopes import GAMMA, HALVES, LOGISTIC, MULTINOMIAL, POISSON, SQUARED

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

MOST_STEP = 20.0
"""Of a score at once: so odds may become 0 or infinite, but never 0 times infinite."""

FAR = 40.0
"""Of a score where rows are kept at an exp of it, behind a log link: rows that start beyond it start here, as pulls are
kept in single precision."""


class FoldModels:
    """The models that have not seen a fold: scores (K, n, F) of the rows, and the pulls (K, n, 2 F) there."""

    kept: type = np.float64  # what steps are kept in

    def __init__(self, scores: Floats, y: Floats, weight: Floats, loss: Loss) -> None:
        self._scores, self._y, self._weight, self._loss = scores, y, weight, loss
        self.pulls = np.empty((*scores.shape[:2], 2 * scores.shape[2]), dtype=np.float32)
        self._find_pulls()

    def add(self, codes: Codes, x: Floats, steps: Floats) -> None:
        """Add steps (K, symbols, F) to the scores."""
        for own, scores in zip(steps, self._scores):
            add_steps(codes, x, own, scores)
        self._find_pulls()

    def current_scores(self) -> Floats:
        """The scores with the steps added since."""
        return self._scores.copy()

    def _find_pulls(self) -> None:
        slope, loss = np.empty(len(self._scores)), self._loss
        pulls_of_rows(self._scores, self._y, self._weight, loss.code, loss.parameter, slope, self.pulls)


class _LogisticModels(FoldModels):
    """Of the logistic loss: exp(-score) of the rows moves, as a step then takes an exp per symbol, none per row."""

    kept = np.float32

    def add(self, codes: Codes, x: Floats, steps: Floats) -> None:
        codes, steps = _by_row(codes, x, steps)
        self._grow(codes, steps[0])

    def _find_pulls(self) -> None:
        self._target = (self._y > 0).astype(np.float32)
        self._odds = np.ones(self._scores.shape[1:], dtype=np.float32)
        self._grow(np.arange(self._scores.shape[1], dtype=np.int32), self._scores[0])

    def _grow(self, codes: Codes, steps: Floats) -> None:
        growth = np.negative(steps, dtype=np.float32, casting="same_kind")
        np.exp(np.clip(growth, -MOST_STEP, MOST_STEP, out=growth), out=growth)
        logistic_pulls(codes, growth, self._target, self._weight, self._odds, self.pulls[0])

    def current_scores(self) -> Floats:
        return -np.log(self._odds, dtype=np.float64)[None]


class _KeptModels(FoldModels):
    """Of squared loss, whose residuals move, and of losses behind a log link, where an exp of the score does so."""

    def add(self, codes: Codes, x: Floats, steps: Floats) -> None:
        codes, steps = _by_row(codes, x, steps)
        growth = steps[0]
        if self._rate is not None:
            growth = np.exp(np.clip(self._rate * growth, -MOST_STEP, MOST_STEP))
        self._grow(codes, growth)

    def _find_pulls(self) -> None:
        self._code, _ = as_kept(self._loss)
        self._rate, scores = RATES.get(self._code), self._scores[0]
        self._values = keep(scores, self._y[:, None], self._code, FAR)
        neutral = np.full((1, scores.shape[1]), 0.0 if self._rate is None else 1.0)
        self._grow(np.zeros(len(scores), dtype=np.int32), neutral)

    def _grow(self, codes: Codes, growth: Floats) -> None:
        kept_pulls(codes, growth, self._y, self._weight, self._code, self._values, self.pulls[0])

    def current_scores(self) -> Floats:
        return scores_of_kept(self._values, self._y[:, None], self._code)[None]


class _SoftmaxModels(FoldModels):
    """Of several classes: probabilities move, as a step then takes an exp per symbol, none per row."""

    def add(self, codes: Codes, x: Floats, steps: Floats) -> None:
        codes, steps = _by_row(codes, x, steps)
        growth = np.exp(np.clip(steps, -MOST_STEP, MOST_STEP))
        softmax_pulls(codes, growth, self._y, self._weight, self._values, self.pulls)

    def _find_pulls(self) -> None:
        super()._find_pulls()
        self._values = np.ascontiguousarray(softmax(self._scores, axis=0))

    def current_scores(self) -> Floats:
        """Up to a number common to the classes."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._values))


def _by_row(codes: Codes, x: Floats, steps: Floats) -> tuple[Codes, Floats]:
    """Codes and steps (K, symbols, F); of a number that all rows multiply by x, a step for each row."""
    return (np.arange(len(x), dtype=np.int32), x[:, None] * steps) if len(x) else (codes, steps)


def models_of(loss: Loss) -> type[FoldModels]:
    """The models of a loss, kept where their steps are cheapest."""
    if loss.code == LOGISTIC:
        return _LogisticModels
    if loss.code == MULTINOMIAL:
        return _SoftmaxModels
    return _KeptModels if as_kept(loss)[0] in (SQUARED, POISSON, GAMMA, HALVES) else FoldModels
