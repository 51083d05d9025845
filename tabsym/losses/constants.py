"""The optimal constant prediction, where an intercept starts, and the correction of the intercept at the end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from tabsym.losses import kernels as slopes
from tabsym.losses.kernels import slope_of_shift, sum_softmax
from tabsym.losses.loss import Loss

Floats = NDArray[np.float64]

MAX_STEPS, MAX_STEP = 50, 5.0
"""Newton's method: the most steps, and the largest step on the scale of the linear predictor."""

NEAR, STILL = 1e-4, 1e-12
"""Totals whose relative difference is below the first converge to rounding in one more step; below the second they
have."""


def best_constant(loss: Loss, y: Floats, weights: Floats | None, n_outputs: int, offset: Floats | None) -> Floats:
    """The constant linear predictor (n_outputs,) that minimises the loss, next to the offset (n, n_outputs).

    Where a class has no rows yet (in `partial_fit`), half a row of mean weight is added to each class, so that its
    linear predictor is finite.
    """
    own = np.zeros((len(y), n_outputs)) if offset is None else offset
    if loss.code in (slopes.LOGISTIC, slopes.MULTINOMIAL):
        counts = _class_weights(y, weights, max(n_outputs, 2))
        log_share = np.log(counts / counts.sum())
        start = log_share[1:] - log_share[:1] if loss.code == slopes.LOGISTIC else log_share - log_share.mean()
        return start if offset is None else start + settled_shift(loss, own + start, y, weights)
    if loss.code == slopes.HINGE:
        return _best_hinge(y, weights, own[:, 0])
    if loss.log_link:
        return _best_log(loss, y, weights, own[:, 0])
    y = y - own[:, 0]
    if loss.code == slopes.HUBER:
        middle = np.quantile(y, 0.5, weights=weights, method="inverted_cdf")
        return np.array([middle + _root(loss, np.full((len(y), 1), middle), y, weights)])
    if loss.code in (slopes.ABSOLUTE, slopes.QUANTILE):
        share = loss.parameter if loss.code == slopes.QUANTILE else 0.5
        return np.array([np.quantile(y, share, weights=weights, method="inverted_cdf")])
    return np.array([np.average(y, weights=weights)])


def _class_weights(y: Floats, weights: Floats | None, n_classes: int) -> Floats:
    relative = None if weights is None else weights / weights.mean()
    counts = np.bincount(y.astype(np.int64), relative, n_classes).astype(np.float64)
    return counts if counts.all() else counts + 0.5


def _best_hinge(y: Floats, weights: Floats | None, offset: Floats) -> Floats:
    side = np.where(y > 0, 1.0, -1.0)
    if not offset.any():
        return np.array([1.0 if np.average(side, weights=weights) > 0 else -1.0])
    bounds = float(-1.0 - offset.max()), float(1.0 - offset.min())
    return _search(lambda c: np.maximum(0.0, 1.0 - side * (offset + c)), weights, bounds)


def _best_log(loss: Loss, y: Floats, weights: Floats | None, offset: Floats) -> Floats:
    """For a log link: the ratio of two sums, in closed form, by their logarithms, as offsets may differ by much."""
    power = loss.variance_power
    assert power is not None
    share = np.ones(len(y)) if weights is None else weights
    if not (share * y).any():
        return np.array([-float(offset.max())])
    if offset.min() == offset.max():
        return np.log([np.average(y, weights=weights)]) - offset[0]
    above, below = logsumexp((1.0 - power) * offset, b=share * y), logsumexp((2.0 - power) * offset, b=share)
    return np.array([above - below])


def _search(values: object, weights: Floats | None, bounds: tuple[float, float]) -> Floats:
    if bounds[0] >= bounds[1]:
        return np.array([bounds[0]])
    found = minimize_scalar(lambda c: np.average(values(c), weights=weights), bounds=bounds)  # type: ignore[operator]
    return np.array([found.x])


def settled_shift(loss: Loss, margins: Floats, y: Floats, weights: Floats | None) -> Floats:
    """The shift (K,) of linear predictors (n, K) for which predictions sum to the targets; for canonical links.

    Sums are weighted; for classification they are those of each class. Classes without a row are left unchanged.
    """
    if loss.code == slopes.MULTINOMIAL:
        return _settle_softmax(margins, y.astype(np.int64), weights)
    if loss.code == slopes.LOGISTIC and (y > 0).all() != (y > 0).any():
        return np.array([_root(loss, margins, y, weights)])
    if loss.code == slopes.LOGISTIC or (loss.code == slopes.POISSON and not y.any()):
        return np.zeros(1)  # one class, or all counts 0: there is no finite shift
    return np.array([_root(loss, margins, y, weights)])


def _root(loss: Loss, margins: Floats, y: Floats, weights: Floats | None) -> float:
    """The root of the gradient of a convex loss: Newton's method with bracketing."""
    weight = np.empty(0) if weights is None else weights
    size = float(np.average(np.abs(y), weights=weights)) or 1.0
    total = float(len(y)) if weights is None else float(weights.sum())
    sums = slope_of_shift(loss.code)
    return root_by_sums(loss, lambda shift: sums(margins, y, weight, loss.parameter, shift), size * total)


def root_by_sums(loss: Loss, sums: Callable[[float], tuple[float, float]], size: float) -> float:
    """The same by the `sums` of gradients and Hessians over rows at a shift; `size`: that of absolute targets."""
    shift, low, high = 0.0, -np.inf, np.inf
    for _ in range(MAX_STEPS):
        slope, hess = sums(shift)
        step = slope / max(hess, 1e-300)
        if loss.code == slopes.SQUARED or abs(slope) <= NEAR * size:
            return shift - step
        low, high = (shift, high) if slope < 0 else (low, shift)
        step = float(np.clip(step, -MAX_STEP, MAX_STEP))
        shift = shift - step if low < shift - step < high else 0.5 * (low + high)
    return shift


def _settle_softmax(margins: Floats, classes: NDArray[np.int64], weights: Floats | None) -> Floats:
    n_classes = margins.shape[1]
    relative = np.full(len(classes), 1.0 / len(classes)) if weights is None else weights / weights.sum()
    observed: Floats = np.bincount(classes, relative, n_classes).astype(np.float64)
    present = observed > 0
    odds = np.exp(margins - margins.max(axis=1, keepdims=True))
    shift, best_shift, best = np.zeros(n_classes), np.zeros(n_classes), np.inf
    p, predicted, hess = np.empty(n_classes), np.empty(n_classes), np.empty((n_classes, n_classes))
    for _ in range(MAX_STEPS):
        sum_softmax(odds, np.exp(shift - shift.max()), relative, p, predicted, hess)
        excess = float(np.abs(predicted / np.where(present, observed, 1.0) - 1.0)[present].max())
        if excess < best:
            best, best_shift = excess, shift.copy()
        shift = shift - _softmax_step(hess, predicted, observed, present)
        if excess <= NEAR:
            best_shift = shift
            break
    return best_shift - best_shift.mean() if present.all() else best_shift


def _softmax_step(hess: Floats, predicted: Floats, observed: Floats, present: NDArray[np.bool_]) -> Floats:
    """Newton step; where it is too long, that of iterative proportional fitting."""
    out = np.zeros(len(observed))
    step = np.linalg.lstsq(hess[np.ix_(present, present)], (predicted - observed)[present], rcond=1e-14)[0]
    if not np.isfinite(step).all() or np.abs(step).max() > MAX_STEP:
        step = np.clip(np.log(np.maximum(predicted[present], 1e-300) / observed[present]), -MAX_STEP, MAX_STEP)
    out[present] = step
    return out
