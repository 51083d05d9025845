"""Losses: value, gradient and Hessian by the linear predictor, link, valid targets, deviance, the optimal constant.

Each formula is in one place, a kernel, by the code of the loss. The optimal constant is where an intercept starts,
and its correction where an intercept ends.

Codes are those of `losses.LOSSES`; numba freezes module globals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln, logsumexp, softmax, xlogy

from tabsym.jit import by_parts, inlined, kernel, kernels_by

# -- kernels: value, gradient and Hessian ----------------------------------------------------------

ROUNDING = 1e-13
"""Residuals below this times 1 + abs(score) count as 0, so that the sign at a median, where a fit starts, is 0."""

SQUARED, LOGISTIC, MULTINOMIAL, ABSOLUTE, HUBER, QUANTILE, HINGE, POISSON, GAMMA, TWEEDIE = range(10)

TWEEDIE_1_5 = 100
"""Tweedie's loss of power 1.5 for rows stored as exp(score / 2), from which value and derivatives follow."""


@inlined
def _miss_of(score, target):
    """For the logistic loss: the margin, exp(-abs(margin)), and 1 - p of the class that occurred."""
    margin = score if target > 0 else -score
    small = np.exp(-abs(margin))
    return margin, small, (small if margin > 0 else 1.0) / (1.0 + small)


@inlined
def loss_of_one(score, target, loss, parameter):
    """(value, gradient, Hessian) of a loss with one linear predictor; where the second derivative is 0, a substitute.

    absolute, quantile, hinge: 1. huber: that of the parabola that touches the loss here and lies above it elsewhere.
    """
    if loss == LOGISTIC:
        margin, small, miss = _miss_of(score, target)
        value = np.log1p(small) + (0.0 if margin > 0 else -margin)
        return value, (-miss if target > 0 else miss), miss * (1.0 - miss)
    if loss == SQUARED:
        return 0.5 * (score - target) ** 2, score - target, 1.0
    return _other_loss(score, target, loss, parameter)


@inlined
def stepped(value, step, loss):
    """The stored transform of a row's linear predictor after a step of a coefficient without a numeric factor.

    Rows are stored as residuals (squared), exp(-score) (logistic), exp(score) (poisson), exp(score / 2) (TWEEDIE_1_5)
    or the target times exp(-score) (gamma), else as scores. Where that is an exp, the step is passed as an exp too,
    computed once per coefficient.
    """
    if loss in (LOGISTIC, POISSON, GAMMA, TWEEDIE_1_5):
        return value * step
    return value + step


@inlined
def gradients_at(value, target, loss, parameter, least):
    """Gradient and Hessian, at least `least`, of a row's loss from its stored transform."""
    if loss == SQUARED:
        return value, 1.0
    if loss == LOGISTIC:
        p = 1.0 / (1.0 + value)
        return (p - 1.0 if target > 0 else p), max(p * (1.0 - p), least)
    if loss == POISSON:
        return value - target, max(value, least)
    if loss == GAMMA:
        return 1.0 - value, max(value, least)
    if loss == TWEEDIE_1_5:
        share = target / value
        return value - share, max(0.5 * (value + share), least)
    _, slope, hess = _other_loss(value, target, loss, parameter)
    return slope, max(hess, least)


@kernel
def _other_loss(score, target, loss, parameter):
    if loss == HINGE:
        side = 1.0 if target > 0 else -1.0
        shortfall = 1.0 - side * score
        return max(0.0, shortfall), (-side if shortfall > 0.0 else 0.0), 1.0
    error = score - target
    size = abs(error)
    if size <= ROUNDING * (1.0 + abs(score)):
        error = size = 0.0
    if loss == ABSOLUTE:
        return size, np.sign(error), 1.0
    if loss == HUBER:
        if size <= parameter:
            return 0.5 * error * error, error, 1.0
        return parameter * (size - 0.5 * parameter), np.copysign(parameter, error), parameter / size
    if loss == QUANTILE:
        if error < 0.0:
            return -parameter * error, -parameter, 1.0
        return (1.0 - parameter) * error, ((1.0 - parameter) if error > 0.0 else 0.0), 1.0
    if loss == POISSON:  # log links from here on
        mean = np.exp(score)
        return mean - target * score, mean - target, mean
    if loss == GAMMA:
        share = target * np.exp(-score)
        return score + share, 1.0 - share, share
    second = np.exp((2.0 - parameter) * score)  # tweedie, 1 < power < 2
    first = np.exp((1.0 - parameter) * score) if target > 0.0 else 0.0  # which may be infinite
    return (
        second / (2.0 - parameter) - target * first / (1.0 - parameter),
        second - target * first,
        (2.0 - parameter) * second + (parameter - 1.0) * target * first,
    )


@inlined
def slopes_of_many(scores, target):
    """Scores (K,) -> gradient, softmax minus indicator, in place; returns the loss."""
    top = scores[0]
    for k in range(1, len(scores)):
        top = max(top, scores[k])
    target_score = scores[target]
    total = 0.0
    for k in range(len(scores)):
        scores[k] = np.exp(scores[k] - top)
        total += scores[k]
    for k in range(len(scores)):
        scores[k] /= total
    scores[target] -= 1.0
    return np.log(total) + top - target_score


@kernels_by
def losses_of_rows(loss):
    """Value, gradient and Hessian (n,) of each row's loss, margins (n, 1)."""

    def losses_of_rows(margins, y, parameter, values, slopes, hessians):
        for i in range(len(y)):
            values[i], slopes[i], hessians[i] = loss_of_one(margins[i, 0], y[i], loss, parameter)

    return losses_of_rows


@kernels_by
def slope_of_shift(loss):
    """Sums over rows of the gradient and the Hessian of the loss at margins (n, 1) + shift."""

    def slope_of_shift(margins, y, weight, parameter, shift):
        slopes, hessians = 0.0, 0.0
        for i in range(len(y)):
            if loss == LOGISTIC:  # without the logarithm of its value
                _, _, miss = _miss_of(margins[i, 0] + shift, y[i])
                slope, hess = (-miss if y[i] > 0 else miss), miss * (1.0 - miss)
            else:
                _, slope, hess = loss_of_one(margins[i, 0] + shift, y[i], loss, parameter)
            share = weight[i] if len(weight) else 1.0
            slopes += share * slope
            hessians += share * hess
        return slopes, hessians

    return slope_of_shift


@kernel
def sum_softmax(odds, growth, share, p, predicted, hess):
    """Weighted sums of the softmax and of its derivative, into predicted (K,) and hess (K, K), at odds (n, K) * growth.

    `share` (n,) are the weights, `p` (K,) is work space. Probabilities near 0 are left out of the derivative, where
    they would take most of the time.
    """
    n_classes = len(growth)
    for k in range(n_classes):
        predicted[k] = 0.0
        for j in range(n_classes):
            hess[k, j] = 0.0
    for i in range(len(odds)):
        total = 0.0
        for k in range(n_classes):
            p[k] = odds[i, k] * growth[k]
            total += p[k]
        for k in range(n_classes):
            p[k] /= total
            weighted = share[i] * p[k]
            predicted[k] += weighted
            hess[k, k] += weighted
            if p[k] > 1e-9:
                for j in range(k + 1):
                    hess[k, j] -= weighted * p[j]
    for k in range(n_classes):
        for j in range(k):
            hess[j, k] = hess[k, j]


# -- losses of models -----------------------------------------------------------------------------

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
        return "log_loss" if self.code in (LOGISTIC, MULTINOMIAL) else self.name

    @property
    def for_classes(self) -> bool:
        return self.code in (LOGISTIC, HINGE, MULTINOMIAL)

    @property
    def is_smooth(self) -> bool:
        """Whether the loss has a second derivative, as Newton's method needs."""
        return self.code not in (ABSOLUTE, QUANTILE, HINGE)

    @property
    def variance_power(self) -> float | None:
        """Of the losses with a log link: the variance is proportional to this power of the mean."""
        powers = {POISSON: 1.0, GAMMA: 2.0, TWEEDIE: self.parameter}
        return powers.get(self.code)

    def predict(self, margins: Floats) -> Floats:
        """The inverse link: margins (n, n_outputs) -> values (n, 1) or probabilities (n, classes)."""
        if self.code == LOGISTIC:
            positive = expit(margins[:, 0])
            return np.column_stack([1.0 - positive, positive])
        if self.code == MULTINOMIAL:
            return np.asarray(softmax(margins, axis=1))
        return np.exp(margins) if self.log_link else margins

    def values(self, margins: Floats, y: Floats) -> Floats:
        """The loss of each row (n,)."""
        values = np.empty(len(y))

        def fill_part(number: int, part: slice) -> None:
            if self.code == MULTINOMIAL:
                chosen = np.take_along_axis(margins[part], y[part].astype(np.int64)[:, None], axis=1)[:, 0]
                values[part] = np.logaddexp.reduce(margins[part], axis=1) - chosen
            else:
                values[part] = self.rows(margins[part], y[part])[0]

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
        if self.code == POISSON:
            return np.asarray(y - xlogy(y, y))
        if self.code == GAMMA:
            return np.log(y) + 1.0
        if self.code == TWEEDIE:
            return np.asarray(y ** (2 - p) * (1 / (2 - p) - 1 / (1 - p)))
        return np.zeros(len(y))


LOSSES = {
    loss.name: loss
    for loss in [
        Loss("squared_error", SQUARED, scales=True, canonical=True),
        Loss("absolute_error", ABSOLUTE, scales=True),
        Loss("huber", HUBER, scales=True, argument="delta", parameter=1.35),
        Loss("quantile", QUANTILE, scales=True, argument="quantile", parameter=0.5),
        Loss("poisson", POISSON, log_link=True, canonical=True, lowest=0.0),
        Loss("gamma", GAMMA, log_link=True, lowest=0.0, lowest_open=True),
        Loss("tweedie", TWEEDIE, log_link=True, lowest=0.0, argument="power", parameter=1.5),
        Loss("logistic", LOGISTIC, canonical=True),
        Loss("hinge", HINGE),
        Loss("multinomial", MULTINOMIAL, canonical=True),
    ]
}
"""The losses by name; formulas with p the prediction and s the score, p = s or exp(s):

squared_error (y - p)**2 / 2; absolute_error |y - p|; huber, squared within delta and linear beyond;
quantile q (y - p) above, (1 - q)(p - y) below; poisson p - y s; gamma s + y / p;
tweedie p**(2 - k) / (2 - k) - y p**(1 - k) / (1 - k) with 1 < k < 2; logistic (two classes);
hinge max(0, 1 - (+-1) s); multinomial (softmax).
"""

RATES = {LOGISTIC: -1.0, POISSON: 1.0, GAMMA: -1.0, TWEEDIE_1_5: 0.5}
"""Rows of these losses are stored as exp(rate * score), gamma's as that times the target, where there are many steps: a
step is then a factor, computed once per coefficient instead of one exp per row."""


def as_kept(loss: Loss) -> tuple[int, float]:
    """The code and parameter of a loss in kernels that work on stored transforms."""
    if loss.code == TWEEDIE and loss.parameter == 1.5:
        return TWEEDIE_1_5, 0.0
    return loss.code, loss.parameter


def keep(scores: Floats, y: Floats, code: int, max_exponent: float) -> Floats:
    """The stored transforms of rows for `as_kept`'s code (see `stepped`); exponents are clipped to `max_exponent`.

    Scores and targets of shapes that broadcast.
    """
    if code == SQUARED:
        return scores - y
    if code not in RATES:
        return scores.copy()
    values = np.exp(np.clip(RATES[code] * scores, -max_exponent, max_exponent))
    return values * y if code == GAMMA else values


def scores_of_kept(values: Floats, y: Floats, code: int) -> Floats:
    """The linear predictors of rows from their stored transforms."""
    if code == SQUARED:
        return values + y
    if code not in RATES:
        return values
    with np.errstate(divide="ignore"):
        return np.log(values / y if code == GAMMA else values) / RATES[code]


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
    total_deviance, likelihood = deviance(loss, margins, y, weight), np.nan
    w = np.ones(len(y)) if weight is None else weight
    times = np.ones(len(y)) if copies is None else copies
    if loss.code == SQUARED:
        likelihood = normal_likelihood(total_deviance, float(w.sum()), float(times @ np.log(w / times)))
    elif loss.code in (LOGISTIC, MULTINOMIAL):
        likelihood = -0.5 * total_deviance
    elif loss.code == POISSON:
        likelihood = -0.5 * total_deviance - float(w @ (loss.least(y) + gammaln(y + 1.0)))
    elif loss.code == GAMMA and dispersion > 0.0:
        shape, ratio = w / times / dispersion, y * np.exp(-margins[:, 0])
        likelihood = float(times @ (shape * (np.log(shape * ratio) - ratio) - gammaln(shape) - np.log(y)))
    return total_deviance, likelihood


def normal_likelihood(deviance: float, total: float, logs: float) -> float:
    """The log-likelihood at the maximum-likelihood variance, by the sums of the weights and of their logarithms.

    A row's variance is that over its weight, as in weighted least squares.
    """
    return 0.5 * (logs - total * (np.log(2.0 * np.pi * deviance / total) + 1.0)) if deviance > 0.0 else np.inf


MAX_STEPS, MAX_STEP = 50, 5.0
"""Newton's method: the most steps, and the largest step on the scale of the linear predictor."""

NEAR = 1e-4
"""Totals whose relative difference is below this converge to rounding in one more step."""


def best_constant(loss: Loss, y: Floats, weights: Floats | None, n_outputs: int, offset: Floats | None) -> Floats:
    """The constant linear predictor (n_outputs,) that minimises the loss, next to the offset (n, n_outputs).

    Where a class has no rows yet (in `partial_fit`), half a row of mean weight is added to each class, so that its
    linear predictor is finite.
    """
    margins = np.zeros((len(y), n_outputs)) if offset is None else offset
    if loss.code in (LOGISTIC, MULTINOMIAL):
        relative = None if weights is None else weights / weights.mean()
        counts = np.bincount(y.astype(np.int64), relative, max(n_outputs, 2)).astype(np.float64)
        counts = counts if counts.all() else counts + 0.5
        log_share = np.log(counts / counts.sum())
        start = log_share[1:] - log_share[:1] if loss.code == LOGISTIC else log_share - log_share.mean()
        return start if offset is None else start + settled_shift(loss, margins + start, y, weights)
    if loss.code == HINGE:
        return _best_hinge(y, weights, margins[:, 0])
    if loss.log_link:
        return _best_log(loss, y, weights, margins[:, 0])
    y = y - margins[:, 0]
    if loss.code == HUBER:
        middle = np.quantile(y, 0.5, weights=weights, method="inverted_cdf")
        return np.array([middle + _root(loss, np.full((len(y), 1), middle), y, weights)])
    if loss.code in (ABSOLUTE, QUANTILE):
        share = loss.parameter if loss.code == QUANTILE else 0.5
        return np.array([np.quantile(y, share, weights=weights, method="inverted_cdf")])
    return np.array([np.average(y, weights=weights)])


def _best_hinge(y: Floats, weights: Floats | None, offset: Floats) -> Floats:
    """Where the slope of the mean loss passes 0: from minus the fraction of class 1 it rises by the weight of each row
    where that row's margin is 1.
    """
    is_first = y > 0
    fraction = np.average(is_first, weights=weights)
    at_margin = np.where(is_first, 1.0, -1.0) - offset
    return np.array([np.quantile(at_margin, fraction, weights=weights, method="inverted_cdf")])


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
    if loss.code == MULTINOMIAL:
        relative = np.full(len(y), 1.0 / len(y)) if weights is None else weights / weights.sum()
        observed: Floats = np.bincount(y.astype(np.int64), relative, margins.shape[1]).astype(np.float64)
        return settle_softmax(softmax_sums(margins, relative), observed)
    if loss.code == LOGISTIC and (y > 0).all() != (y > 0).any():
        return np.array([_root(loss, margins, y, weights)])
    if loss.code == LOGISTIC or (loss.code == POISSON and not y.any()):
        return np.zeros(1)  # one class, or all counts 0: there is no finite shift
    return np.array([_root(loss, margins, y, weights)])


def _root(loss: Loss, margins: Floats, y: Floats, weights: Floats | None) -> float:
    """The root of the gradient of a convex loss: Newton's method with bracketing."""
    weight = np.empty(0) if weights is None else weights
    size = float(np.average(np.abs(y), weights=weights)) or 1.0
    total = float(len(y)) if weights is None else float(weights.sum())
    kernel = slope_of_shift(loss.code)

    def sums(shift: float) -> tuple[float, float]:
        results = by_parts(lambda _, part: kernel(margins[part], y[part], weight[part], loss.parameter, shift), len(y))
        gradients, hessians = zip(*results, strict=True)
        return sum(gradients), sum(hessians)

    return root_by_sums(loss, sums, size * total)


def root_by_sums(loss: Loss, sums: Callable[[float], tuple[float, float]], size: float) -> float:
    """The same by the `sums` of gradients and Hessians over rows at a shift; `size`: that of absolute targets."""
    shift, low, high = 0.0, -np.inf, np.inf
    for _ in range(MAX_STEPS):
        slope, hess = sums(shift)
        step = slope / max(hess, 1e-300)
        if loss.code == SQUARED or abs(slope) <= NEAR * size:
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
