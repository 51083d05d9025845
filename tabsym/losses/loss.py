"""Losses: link, code in the kernels, valid targets, deviance, and the optimal constant.

The formulas of value, gradient and Hessian are in `kernels`, once. The optimal constant is where an intercept starts,
and its correction where an intercept ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, gammaln, logsumexp, softmax, xlogy

from tabsym.losses import kernels
from tabsym.losses.kernels import losses_of_rows, slope_of_shift, sum_softmax
from tabsym.threads import by_parts

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Loss:
    """A loss by name.

    Attributes
    ----------
    name : str
    code : int
        Its code in kernels (functions as arguments would miss numba's disk cache).
    scales : bool
        Whether the target may be standardized inside: the loss depends on differences.
    log_link : bool
        Whether the prediction is exp(score).
    canonical : bool
        Whether at the optimum of an intercept predictions and targets have the same sum.
    lowest : float
        The least valid target; `lowest_open` where that itself is not valid.
    argument : str
        The attribute of an object of `tabsym.losses` that sets `parameter`, empty for none.
    parameter : float
        huber's delta, the quantile, tweedie's power.
    """

    name: str
    code: int
    scales: bool = False
    log_link: bool = False
    canonical: bool = False
    lowest: float = -np.inf
    lowest_open: bool = False
    argument: str = ""
    parameter: float = 0.0

    @property
    def public_name(self) -> str:
        """The name in the public interface: for classification the link follows from the number of classes."""
        return "log_loss" if self.code in (kernels.LOGISTIC, kernels.MULTINOMIAL) else self.name

    @property
    def for_classes(self) -> bool:
        return self.code in (kernels.LOGISTIC, kernels.HINGE, kernels.MULTINOMIAL)

    @property
    def is_smooth(self) -> bool:
        """Whether the loss has a second derivative, as Newton's method needs."""
        return self.code not in (kernels.ABSOLUTE, kernels.QUANTILE, kernels.HINGE)

    @property
    def variance_power(self) -> float | None:
        """Of the losses with a log link: the variance is proportional to this power of the mean."""
        powers = {kernels.POISSON: 1.0, kernels.GAMMA: 2.0, kernels.TWEEDIE: self.parameter}
        return powers.get(self.code)

    def predict(self, margins: Floats) -> Floats:
        """The inverse link: margins (n, n_outputs) -> values (n, 1) or probabilities (n, classes)."""
        if self.code == kernels.LOGISTIC:
            positive = expit(margins[:, 0])
            return np.column_stack([1.0 - positive, positive])
        if self.code == kernels.MULTINOMIAL:
            return np.asarray(softmax(margins, axis=1))
        return np.exp(margins) if self.log_link else margins

    def values(self, margins: Floats, y: Floats) -> Floats:
        """The loss of each row (n,)."""
        values = np.empty(len(y))

        def fill_part(number: int, own: slice) -> None:
            if self.code == kernels.MULTINOMIAL:
                chosen = np.take_along_axis(margins[own], y[own].astype(np.int64)[:, None], axis=1)[:, 0]
                values[own] = np.logaddexp.reduce(margins[own], axis=1) - chosen
            else:
                values[own] = self.rows(margins[own], y[own])[0]

        by_parts(fill_part, len(y))
        return values

    def rows(self, margins: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Value, gradient and Hessian (n,) of each row's loss, for one linear predictor."""
        value, slope, hess = np.empty(len(y)), np.empty(len(y)), np.empty(len(y))
        losses_of_rows(self.code)(margins, y, self.parameter, value, slope, hess)
        return value, slope, hess

    def least(self, y: Floats) -> Floats:
        """The loss of each row (n,) under a perfect prediction; the excess over it is half a deviance."""
        p = self.parameter
        if self.code == kernels.POISSON:
            return np.asarray(y - xlogy(y, y))
        if self.code == kernels.GAMMA:
            return np.log(y) + 1.0
        if self.code == kernels.TWEEDIE:
            return np.asarray(y ** (2 - p) * (1 / (2 - p) - 1 / (1 - p)))
        return np.zeros(len(y))


LOSSES = {
    loss.name: loss
    for loss in [
        Loss("squared_error", kernels.SQUARED, scales=True, canonical=True),
        Loss("absolute_error", kernels.ABSOLUTE, scales=True),
        Loss("huber", kernels.HUBER, scales=True, argument="delta", parameter=1.35),
        Loss("quantile", kernels.QUANTILE, scales=True, argument="quantile", parameter=0.5),
        Loss("poisson", kernels.POISSON, log_link=True, canonical=True, lowest=0.0),
        Loss("gamma", kernels.GAMMA, log_link=True, lowest=0.0, lowest_open=True),
        Loss("tweedie", kernels.TWEEDIE, log_link=True, lowest=0.0, argument="power", parameter=1.5),
        Loss("logistic", kernels.LOGISTIC, canonical=True),
        Loss("hinge", kernels.HINGE),
        Loss("multinomial", kernels.MULTINOMIAL, canonical=True),
    ]
}
"""The losses by name; formulas with p the prediction and s the score, p = s or exp(s):

squared_error (y - p)**2 / 2; absolute_error |y - p|; huber, squared within delta and linear beyond;
quantile q (y - p) above, (1 - q)(p - y) below; poisson p - y s; gamma s + y / p;
tweedie p**(2 - k) / (2 - k) - y p**(1 - k) / (1 - k) with 1 < k < 2; logistic (two classes);
hinge max(0, 1 - (+-1) s); multinomial (softmax).
"""

RATES = {kernels.LOGISTIC: -1.0, kernels.POISSON: 1.0, kernels.GAMMA: -1.0, kernels.TWEEDIE_1_5: 0.5}
"""Rows of these losses are stored as exp(rate * score), gamma's as that times the target, where there are many steps: a
step is then a factor, computed once per coefficient instead of one exp per row."""


def as_kept(loss: Loss) -> tuple[int, float]:
    """The code and parameter of a loss in kernels that work on stored transforms."""
    if loss.code == kernels.TWEEDIE and loss.parameter == 1.5:
        return kernels.TWEEDIE_1_5, 0.0
    return loss.code, loss.parameter


def keep(scores: Floats, y: Floats, code: int, far: float) -> Floats:
    """The stored transforms of rows for `as_kept`'s code (see `kernels.stepped`); exponents are clipped to `far`.

    Scores and targets of shapes that broadcast.
    """
    if code == kernels.SQUARED:
        return scores - y
    if code not in RATES:
        return scores.copy()
    values = np.exp(np.clip(RATES[code] * scores, -far, far))
    return values * y if code == kernels.GAMMA else values


def scores_of_kept(values: Floats, y: Floats, code: int) -> Floats:
    """The linear predictors of rows from their stored transforms."""
    if code == kernels.SQUARED:
        return values + y
    if code not in RATES:
        return values
    with np.errstate(divide="ignore"):
        return np.log(values / y if code == kernels.GAMMA else values) / RATES[code]


def deviance(loss: Loss, margins: Floats, y: Floats, weight: Floats | None) -> float:
    """Twice the excess loss over that of a perfect prediction, summed over rows by their relative weight."""
    above = loss.values(margins, y)
    if loss.log_link:  # the least of all others is 0
        above -= loss.least(y)
    return 2.0 * float(above.sum() if weight is None else above @ weight)


def deviance_and_likelihood(
    loss: Loss,
    margins: Floats,
    y: Floats,
    weight: Floats | None,
    dispersion: float,
    copies: NDArray[np.int64] | None = None,
) -> tuple[float, float]:
    """Deviance and log-likelihood of targets (n,) at linear predictors (n, K), the latter NaN without a closed form.

    For the squared loss at the maximum-likelihood variance, as in weighted least squares; for gamma at the dispersion.
    Weights are those of all copies of a row, of which there are `copies` (n,).
    """
    found = deviance(loss, margins, y, weight)
    return found, _log_likelihood(loss, found, margins, y, weight, dispersion, copies)


def _log_likelihood(
    loss: Loss,
    deviance: float,
    margins: Floats,
    y: Floats,
    weight: Floats | None,
    dispersion: float,
    copies: NDArray[np.int64] | None,
) -> float:
    w = np.ones(len(y)) if weight is None else weight
    times = np.ones(len(y)) if copies is None else copies
    if loss.code == kernels.SQUARED:
        return normal_likelihood(deviance, float(w.sum()), float(times @ np.log(w / times)))
    if loss.code in (kernels.LOGISTIC, kernels.MULTINOMIAL):
        return -0.5 * deviance
    if loss.code == kernels.POISSON:
        return -0.5 * deviance - float(w @ (loss.least(y) + gammaln(y + 1.0)))
    if loss.code == kernels.GAMMA and dispersion > 0.0:
        shape, ratio = w / times / dispersion, y * np.exp(-margins[:, 0])
        return float(times @ (shape * (np.log(shape * ratio) - ratio) - gammaln(shape) - np.log(y)))
    return np.nan


def normal_likelihood(deviance: float, total: float, logs: float) -> float:
    """The log-likelihood at the maximum-likelihood variance, by the sums of the weights and of their logarithms.

    A row's variance is that over its weight, as in weighted least squares.
    """
    return 0.5 * (logs - total * (np.log(2.0 * np.pi * deviance / total) + 1.0)) if deviance > 0.0 else np.inf


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
    if loss.code in (kernels.LOGISTIC, kernels.MULTINOMIAL):
        relative = None if weights is None else weights / weights.mean()
        counts = np.bincount(y.astype(np.int64), relative, max(n_outputs, 2)).astype(np.float64)
        counts = counts if counts.all() else counts + 0.5
        log_share = np.log(counts / counts.sum())
        start = log_share[1:] - log_share[:1] if loss.code == kernels.LOGISTIC else log_share - log_share.mean()
        return start if offset is None else start + settled_shift(loss, own + start, y, weights)
    if loss.code == kernels.HINGE:
        return _best_hinge(y, weights, own[:, 0])
    if loss.log_link:
        return _best_log(loss, y, weights, own[:, 0])
    y = y - own[:, 0]
    if loss.code == kernels.HUBER:
        middle = np.quantile(y, 0.5, weights=weights, method="inverted_cdf")
        return np.array([middle + _root(loss, np.full((len(y), 1), middle), y, weights)])
    if loss.code in (kernels.ABSOLUTE, kernels.QUANTILE):
        share = loss.parameter if loss.code == kernels.QUANTILE else 0.5
        return np.array([np.quantile(y, share, weights=weights, method="inverted_cdf")])
    return np.array([np.average(y, weights=weights)])


def _best_hinge(y: Floats, weights: Floats | None, offset: Floats) -> Floats:
    side = np.where(y > 0, 1.0, -1.0)
    if not offset.any():
        return np.array([1.0 if np.average(side, weights=weights) > 0 else -1.0])
    bounds = float(-1.0 - offset.max()), float(1.0 - offset.min())
    if bounds[0] >= bounds[1]:
        return np.array([bounds[0]])
    found = minimize_scalar(
        lambda c: np.average(np.maximum(0.0, 1.0 - side * (offset + c)), weights=weights), bounds=bounds
    )
    return np.array([found.x])


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


def settled_shift(loss: Loss, margins: Floats, y: Floats, weights: Floats | None) -> Floats:
    """The shift (K,) of linear predictors (n, K) for which predictions sum to the targets; for canonical links.

    Sums are weighted; for classification they are those of each class. Classes without a row are left unchanged.
    """
    if loss.code == kernels.MULTINOMIAL:
        relative = np.full(len(y), 1.0 / len(y)) if weights is None else weights / weights.sum()
        observed: Floats = np.bincount(y.astype(np.int64), relative, margins.shape[1]).astype(np.float64)
        return settle_softmax(softmax_sums(margins, relative), observed)
    if loss.code == kernels.LOGISTIC and (y > 0).all() != (y > 0).any():
        return np.array([_root(loss, margins, y, weights)])
    if loss.code == kernels.LOGISTIC or (loss.code == kernels.POISSON and not y.any()):
        return np.zeros(1)  # one class, or all counts 0: there is no finite shift
    return np.array([_root(loss, margins, y, weights)])


def _root(loss: Loss, margins: Floats, y: Floats, weights: Floats | None) -> float:
    """The root of the gradient of a convex loss: Newton's method with bracketing."""
    weight = np.empty(0) if weights is None else weights
    size = float(np.average(np.abs(y), weights=weights)) or 1.0
    total = float(len(y)) if weights is None else float(weights.sum())
    kernel = slope_of_shift(loss.code)

    def sums(shift: float) -> tuple[float, float]:
        found = by_parts(lambda _, own: kernel(margins[own], y[own], weight[own], loss.parameter, shift), len(y))
        gradients, hessians = zip(*found, strict=True)
        return sum(gradients), sum(hessians)

    return root_by_sums(loss, sums, size * total)


def root_by_sums(loss: Loss, sums: Callable[[float], tuple[float, float]], size: float) -> float:
    """The same by the `sums` of gradients and Hessians over rows at a shift; `size`: that of absolute targets."""
    shift, low, high = 0.0, -np.inf, np.inf
    for _ in range(MAX_STEPS):
        slope, hess = sums(shift)
        step = slope / max(hess, 1e-300)
        if loss.code == kernels.SQUARED or abs(slope) <= NEAR * size:
            return shift - step
        low, high = (shift, high) if slope < 0 else (low, shift)
        step = float(np.clip(step, -MAX_STEP, MAX_STEP))
        shift = shift - step if low < shift - step < high else 0.5 * (low + high)
    return shift


def softmax_sums(margins: Floats, relative: Floats) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Sums over rows, weighted by `relative` (n,), of probabilities (K,) and of their derivatives (K, K) at a shift."""
    n_classes = margins.shape[1]
    odds, p = np.exp(margins - margins.max(axis=1, keepdims=True)), np.empty(n_classes)

    def sums(shift: Floats) -> tuple[Floats, Floats]:
        predicted, hess = np.empty(n_classes), np.empty((n_classes, n_classes))
        sum_softmax(odds, np.exp(shift - shift.max()), relative, p, predicted, hess)
        return predicted, hess

    return sums


def settle_softmax(sums: Callable[[Floats], tuple[Floats, Floats]], observed: Floats) -> Floats:
    """The shift (K,) for which the probabilities of `sums` add up to the shares `observed` (K,) of the classes."""
    present = observed > 0
    shift, best_shift, best = np.zeros(len(observed)), np.zeros(len(observed)), np.inf
    for _ in range(MAX_STEPS):
        predicted, hess = sums(shift)
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
