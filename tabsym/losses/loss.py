"""Losses: link, code in the kernels, valid targets, and deviance.

The formulas of value, gradient and Hessian are in `kernels`, once; optimal constants are in `constants`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln, softmax, xlogy

from tabsym.losses import kernels as slopes
from tabsym.losses.kernels import losses_of_rows

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
        return "log_loss" if self.code in (slopes.LOGISTIC, slopes.MULTINOMIAL) else self.name

    @property
    def for_classes(self) -> bool:
        return self.code in (slopes.LOGISTIC, slopes.HINGE, slopes.MULTINOMIAL)

    @property
    def is_smooth(self) -> bool:
        """Whether the loss has a second derivative, as Newton's method needs."""
        return self.code not in (slopes.ABSOLUTE, slopes.QUANTILE, slopes.HINGE)

    @property
    def variance_power(self) -> float | None:
        """Of the losses with a log link: the variance is proportional to this power of the mean."""
        powers = {slopes.POISSON: 1.0, slopes.GAMMA: 2.0, slopes.TWEEDIE: self.parameter}
        return powers.get(self.code)

    def predict(self, margins: Floats) -> Floats:
        """The inverse link: margins (n, n_outputs) -> values (n, 1) or probabilities (n, classes)."""
        if self.code == slopes.LOGISTIC:
            positive = expit(margins[:, 0])
            return np.column_stack([1.0 - positive, positive])
        if self.code == slopes.MULTINOMIAL:
            return np.asarray(softmax(margins, axis=1))
        return np.exp(margins) if self.log_link else margins

    def values(self, margins: Floats, y: Floats) -> Floats:
        """The loss of each row (n,)."""
        if self.code == slopes.MULTINOMIAL:
            own = np.take_along_axis(margins, y.astype(np.int64)[:, None], axis=1)[:, 0]
            return np.asarray(np.logaddexp.reduce(margins, axis=1) - own)
        return self.rows(margins, y)[0]

    def rows(self, margins: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Value, gradient and Hessian (n,) of each row's loss, for one linear predictor."""
        value, slope, hess = np.empty(len(y)), np.empty(len(y)), np.empty(len(y))
        losses_of_rows(self.code)(margins, y, self.parameter, value, slope, hess)
        return value, slope, hess

    def least(self, y: Floats) -> Floats:
        """The loss of each row (n,) under a perfect prediction; the excess over it is half a deviance."""
        p = self.parameter
        if self.code == slopes.POISSON:
            return np.asarray(y - xlogy(y, y))
        if self.code == slopes.GAMMA:
            return np.log(y) + 1.0
        if self.code == slopes.TWEEDIE:
            return np.asarray(y ** (2 - p) * (1 / (2 - p) - 1 / (1 - p)))
        return np.zeros(len(y))


LOSSES = {
    loss.name: loss
    for loss in [
        Loss("squared_error", slopes.SQUARED, scales=True, canonical=True),
        Loss("absolute_error", slopes.ABSOLUTE, scales=True),
        Loss("huber", slopes.HUBER, scales=True, argument="delta", parameter=1.35),
        Loss("quantile", slopes.QUANTILE, scales=True, argument="quantile", parameter=0.5),
        Loss("poisson", slopes.POISSON, log_link=True, canonical=True, lowest=0.0),
        Loss("gamma", slopes.GAMMA, log_link=True, lowest=0.0, lowest_open=True),
        Loss("tweedie", slopes.TWEEDIE, log_link=True, lowest=0.0, argument="power", parameter=1.5),
        Loss("logistic", slopes.LOGISTIC, canonical=True),
        Loss("hinge", slopes.HINGE),
        Loss("multinomial", slopes.MULTINOMIAL, canonical=True),
    ]
}
"""The losses by name; formulas with p the prediction and s the score, p = s or exp(s):

squared_error (y - p)**2 / 2; absolute_error |y - p|; huber, squared within delta and linear beyond;
quantile q (y - p) above, (1 - q)(p - y) below; poisson p - y s; gamma s + y / p;
tweedie p**(2 - k) / (2 - k) - y p**(1 - k) / (1 - k) with 1 < k < 2; logistic (two classes);
hinge max(0, 1 - (+-1) s); multinomial (softmax).
"""

RATES = {slopes.LOGISTIC: -1.0, slopes.POISSON: 1.0, slopes.GAMMA: -1.0, slopes.HALVES: 0.5}
"""Rows of these losses are stored as exp(rate * score), gamma's as that times the target, where there are many steps: a
step is then a factor, computed once per coefficient instead of one exp per row."""


def as_kept(loss: Loss) -> tuple[int, float]:
    """The code and parameter of a loss in kernels that work on stored transforms."""
    if loss.code == slopes.TWEEDIE and loss.parameter == 1.5:
        return slopes.HALVES, 0.0
    return loss.code, loss.parameter


def keep(scores: Floats, y: Floats, code: int, far: float) -> Floats:
    """The stored transforms of rows for `as_kept`'s code (see `kernels.stepped`); exponents are clipped to `far`.

    Scores and targets of shapes that broadcast.
    """
    if code == slopes.SQUARED:
        return scores - y
    if code not in RATES:
        return scores.copy()
    values = np.exp(np.clip(RATES[code] * scores, -far, far))
    return values * y if code == slopes.GAMMA else values


def scores_of_kept(values: Floats, y: Floats, code: int) -> Floats:
    """The linear predictors of rows from their stored transforms."""
    if code == slopes.SQUARED:
        return values + y
    if code not in RATES:
        return values
    with np.errstate(divide="ignore"):
        return np.log(values / y if code == slopes.GAMMA else values) / RATES[code]


def deviance(loss: Loss, margins: Floats, y: Floats, weight: Floats | None) -> float:
    """Twice the excess loss over that of a perfect prediction, summed over rows by their relative weight."""
    above = loss.values(margins, y) - loss.least(y)
    return 2.0 * float(above.sum() if weight is None else above @ weight)


def log_likelihood(
    loss: Loss,
    margins: Floats,
    y: Floats,
    weight: Floats | None,
    dispersion: float,
    copies: NDArray[np.int64] | None = None,
) -> float:
    """Log-likelihood of targets (n,) at linear predictors (n, K); NaN where it has no closed form.

    For the squared loss at the maximum-likelihood variance, as in ordinary least squares; for gamma at the dispersion.
    Weights are those of all copies of a row, of which there are `copies` (n,).
    """
    w = np.ones(len(y)) if weight is None else weight
    if loss.code == slopes.SQUARED:
        total = float(w.sum())
        spread = deviance(loss, margins, y, weight) / total
        return -0.5 * total * (np.log(2.0 * np.pi * spread) + 1.0) if spread > 0.0 else np.inf
    if loss.code in (slopes.LOGISTIC, slopes.MULTINOMIAL):
        return -0.5 * deviance(loss, margins, y, weight)
    if loss.code == slopes.POISSON:
        return -float(w @ (loss.values(margins, y) + gammaln(y + 1.0)))
    if loss.code == slopes.GAMMA and dispersion > 0.0:
        times = np.ones(len(y)) if copies is None else copies
        shape, ratio = w / times / dispersion, y * np.exp(-margins[:, 0])
        return float(times @ (shape * (np.log(shape * ratio) - ratio) - gammaln(shape) - np.log(y)))
    return np.nan
