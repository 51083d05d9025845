"""The dispersion: Pearson's, which is reported, and the one by which variance components are estimated.

Both take sample weights for precisions, as a GLM does: the variance of a row is the dispersion over its weight. Where
squared residuals do not fall with uneven weights, variance components are estimated by the variance that gradients
have then (`PowerOfWeights`).

Behind a log link Pearson's statistic is too small where variances follow the residuals of few rows: a fit that follows
the largest targets has a smaller dispersion, and therefore larger variances, with which it follows them more closely.
The deviance of the same rows depends less on the largest targets, and the dispersion of counts is about 1 a priori
(`benchmarks/evidence/README.md`, "Few rows").
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import digamma, gammaln

from tabsym.frame.target import Copies, of_one_copy
from tabsym.losses.loss import GAMMA, POISSON, Loss

Floats = NDArray[np.float64]

MIN_LEFT, NONE_LEFT = 0.05, 0.5
"""The smallest fraction of the rows that are residual degrees of freedom of penalized terms, whose number is estimated;
and the number below which a model is saturated: unpenalized terms have whole degrees of freedom, up to rounding."""

MIN_DISPERSION, MIN_POSITIVE = 0.1, 100
"""Behind a log link, where most targets are 0, the dispersion is at least the first times that of the constant model,
and `MIN_POSITIVE` over the number of positive targets (at most 1) where that is more. Zeros whose means go to 0 have no
residual, and where ids or many bins fit the few others the dispersion would go to 0, and with it all shrinkage
(`benchmarks/evidence/README.md`, "Many zeros").

Counts and continuous targets with any zeros, by poisson's and tweedie's loss: the dispersion is also at least the mean
of the lowest positive targets, as many as are 0, times the degrees of freedom of a row. Those are counts of 1, or
targets of one sale, whose size is about the dispersion (of a compound Poisson law the mean of squares over the mean;
where the variance is proportional to the mean to a power p, to the power of 2 - p). The more degrees of freedom are
used, the less informative the residuals are about it."""

N_ERRORS = 2.0
"""Standard errors of Pearson's statistic by which the dispersion may be larger than it says."""

LOWEST, LARGEST = 1e-3, 1e3
"""Dispersions that are found from a deviance: below, both are the same up to a thousandth."""

MIN_POWER, MAX_POWER = 1.001, 1.999
"""Powers of compound laws; nearer to 1 and 2, where sums over events have few digits, these are taken for them."""

UNEVEN = 1.8
"""The design effect of weights above which their power is estimated; weights below are precisions, as in a GLM,
whatever the residuals are."""

BINS_TO_DOUBLE, MAX_BIN = 8, 240
"""Bins of weights from one to the double, and on each side of 1: up to 2^30."""

POWER_STEP, MAX_LEVERAGE = 0.1, 0.9
"""The most by which the power rises in one update of the variances, and the largest leverage of a row.

Variances that are too large let the model follow heavy rows, whose residuals are then as small as those of precise rows
would be; so variances are found first by a small power, where the constant model's residuals say so."""

MIN_FLETCHER = -0.9
"""The smallest mean of Fletcher's terms for which Pearson's dispersion is divided by 1 plus that mean, as in mgcv: at
-1 it would be infinite."""


def sum_slopes(hessians: Floats, weight: Floats) -> float:
    """The sum of Huber's second derivatives (n,), 0 beyond delta, times weights, from Hessians for steps.

    The sum of the latter over this, squared, is by how much the variances of coefficients exceed the sum of squared
    gradients over Hessians (Huber 1964).
    """
    weight = weight if len(weight) else np.ones(len(hessians))
    inside = float(weight[hessians >= (1.0 - 1e-9) * weight].sum())
    return inside if inside > 0.0 else float(hessians.sum())


def pearson_sums(power: float, gradients: Floats, expected: Floats, weight: Floats) -> tuple[float, float]:
    """Pearson's statistic, and the weighted sum of Fletcher's terms.

    Of gradients and expected Hessians (n,), times weights; the variance is proportional to the mean to the `power`.
    Fletcher's term is the relative change of the variance from the mean to the target, to first order (Fletcher 2012).
    """
    is_informed = expected > 0.0
    gradients, expected = gradients[is_informed], expected[is_informed]
    w = weight[is_informed] if len(weight) else 1.0
    return float((np.square(gradients) / expected).sum()), -power * float((w * gradients / expected).sum())


def for_sparse(pearson: float, fletcher: float) -> float:
    """Pearson's dispersion of a penalized model, divided by 1 plus the mean of Fletcher's terms, as mgcv divides it.

    Where means are small the statistic of a model that follows single events is too small: .7 for 1 of counts of mean
    .2 with five rows for each category (`benchmarks/uncertainty/README.md`).
    """
    return pearson / (1.0 + fletcher) if fletcher > MIN_FLETCHER else pearson


def lowest_positive(y: Floats, weight: Floats, copies: Copies) -> tuple[float, int]:
    """The mean of the lowest positive targets (n,), as many as are 0, or 0 without either; the number that are 0.

    Or of their products with the weight of a copy, where that is more: of rates by exposure they are counts.
    """
    is_zero, number = y <= 0.0, np.ones(len(y), dtype=np.int64) if copies is None else copies
    n_zeros = int(number[is_zero].sum())
    if n_zeros == 0 or is_zero.all():
        return 0.0, n_zeros
    targets = [y, y * of_one_copy(weight, copies)] if len(weight) else [y]
    means = []
    for values in targets:
        positive = values[~is_zero]
        order = np.argsort(positive)
        times = number[~is_zero][order]
        among = np.clip(n_zeros - (np.cumsum(times) - times), 0, times)  # how often each is among the lowest
        means.append(float(np.average(positive[order], weights=among)))
    return max(means), n_zeros


BITS = 7
"""Bits after the leading one by which parts of a table count positive targets: whole numbers below 256 are told
apart."""


@dataclass(frozen=True)
class PositiveCounts:
    """How many targets of a part are 0, and how many positive ones there are by size, with their sums.

    Those of several parts add up to those of all their rows, as means of the lowest positive targets of parts do not:
    in a table that is sorted by its target a part has none but zeros.

    Attributes
    ----------
    n_zeros : int
    by_size : one or two of (sizes (m,), numbers of targets (m,), their sums (m,))
        Of the targets, and with weights of their products with these, rising.
    """

    n_zeros: int
    by_size: tuple[tuple[NDArray[np.int64], Floats, Floats], ...]

    @classmethod
    def of(cls, y: Floats, weight: Floats) -> PositiveCounts:
        is_positive = y > 0.0
        positive = [y[is_positive], (y * weight)[is_positive]] if len(weight) else [y[is_positive]]
        counted = (_by_size(_sizes(values), np.ones(len(values)), values) for values in positive)
        return cls(int(np.count_nonzero(~is_positive)), tuple(counted))

    def __add__(self, other: PositiveCounts) -> PositiveCounts:
        pairs = zip(self.by_size, other.by_size, strict=True)
        merged = (
            _by_size(*(np.concatenate(both) for both in zip(counts, other_counts, strict=True)))
            for counts, other_counts in pairs
        )
        return PositiveCounts(self.n_zeros + other.n_zeros, tuple(merged))

    def lowest(self) -> float:
        """What `lowest_positive` finds of all rows; of targets of one size that are not all among the lowest, by their
        mean.
        """
        means = [0.0]
        for _, numbers, sums in self.by_size:
            among = np.clip(self.n_zeros - (np.cumsum(numbers) - numbers), 0.0, numbers)
            if among.any():
                means.append(float((sums / numbers) @ among / among.sum()))
        return max(means)


def _sizes(values: Floats) -> NDArray[np.int64]:
    mantissa, exponent = np.frexp(values)
    return exponent.astype(np.int64) * 2**BITS + np.floor((2.0 * mantissa - 1.0) * 2**BITS).astype(np.int64)


def _by_size(sizes: NDArray[np.int64], numbers: Floats, sums: Floats) -> tuple[NDArray[np.int64], Floats, Floats]:
    distinct, position = np.unique(sizes, return_inverse=True)
    added = [np.asarray(np.bincount(position, values, len(distinct)), dtype=np.float64) for values in (numbers, sums)]
    return distinct, added[0], added[1]


@dataclass(frozen=True)
class WorkingDispersion:
    """The dispersion by which variances are estimated behind a log link.

    Attributes
    ----------
    loss : Loss
    total : float
        The sum of the rows' weights.
    lower_bound : float
        See `MIN_DISPERSION`.
    event : float
        The dispersion of counts by Poisson's law, or of sums of single claims, in the units of the target; 0 for
        targets that have no zeros.
    """

    loss: Loss
    total: float
    lower_bound: float
    event: float

    @classmethod
    def of(
        cls, loss: Loss, total: float, n_rows: int, n_positive: int, lowest: float, constant: float
    ) -> WorkingDispersion:
        """From numbers of rows, the result of `lowest_positive`, and the dispersion of the constant model."""
        lower_bound = 0.0
        if 0 < 2 * n_positive < n_rows:
            lower_bound = max(MIN_DISPERSION, min(MIN_POSITIVE / n_positive, 1.0)) * constant
        assert loss.variance_power is not None
        event = 0.0 if loss.code == GAMMA else lowest ** (2.0 - loss.variance_power)
        return cls(loss, total, lower_bound, event)

    @property
    def by_deviance(self) -> bool:
        """Whether the deviance is needed: not for counts."""
        return self.loss.code != POISSON

    def __call__(self, estimate: float, deviance: float, left: float) -> float:
        """An estimate by squared residuals, or up to the end of its confidence interval what else is likely.

        For gamma's and tweedie's loss that is the dispersion by the deviance, for counts that of Poisson's law. The
        variance of a squared residual, over the dispersion squared, is 2 + p (2 p - 1) dispersion at a mean of 1, where
        the variance is the mean to the power p (Joergensen 1987). Both estimates are over the degrees of freedom that
        are `left`.
        """
        power = self.loss.variance_power
        assert power is not None
        likely = dispersion_of_deviance(deviance, power) if self.by_deviance else self.event
        error = math.sqrt((2.0 + power * (2.0 * power - 1.0) * estimate) / left)
        bound_by_zeros = self.event * (1.0 - left / self.total)
        return max(estimate, min(likely, estimate * (1.0 + N_ERRORS * error)), self.lower_bound, bound_by_zeros)


@dataclass(frozen=True)
class WeightBins:
    """The rows by their weight, in bins 9 % wide.

    Attributes
    ----------
    index : (n,)
    times : (n,) or None
        The copies of each row.
    counts, logs : (bins,)
        Number of rows and sum of the logarithms of their weights.
    """

    index: NDArray[np.intp]
    times: Floats | None
    counts: Floats
    logs: Floats

    @classmethod
    def of(cls, weight: Floats, copies: Copies) -> WeightBins:
        """By weights (n,) that are relative to their mean, times copies (n,)."""
        weight_of_copy = of_one_copy(weight, copies)
        index = np.clip(np.rint(BINS_TO_DOUBLE * np.log2(weight_of_copy)) + MAX_BIN, 0, 2 * MAX_BIN).astype(np.intp)
        times = None if copies is None else copies.astype(np.float64)
        counts = np.bincount(index, times, 2 * MAX_BIN + 1).astype(np.float64)
        of_rows = np.log(weight_of_copy) if times is None else times * np.log(weight_of_copy)
        return cls(index, times, counts, np.bincount(index, of_rows, 2 * MAX_BIN + 1).astype(np.float64))

    def sums(self, gradients: Floats, hessians: Floats, weight: Floats, unit: float) -> Floats:
        """Sums by bin (bins, 4) by which `PowerOfWeights` goes; those of parts of the rows add up.

        Of gradients and Hessians (n,) times weights (n,); `unit`: of squared residuals.
        """
        scale = np.maximum(hessians, 1e-300) * weight * unit
        squares = np.divide(np.square(gradients), scale, out=np.zeros(len(scale)), where=scale > 0.0)  # as of weight 0
        first = squares if self.times is None else self.times * squares
        of_squares = (np.bincount(self.index, values, len(self.counts)) for values in (first, first * squares))
        return np.column_stack([self.counts, self.logs, *of_squares])


class PowerOfWeights:
    """The power p of the weights, from 0 to 1, of which the dispersion of a row is a constant over weight^p.

    At 1 weights are precisions; at 0 they are unrelated to the noise, as sampling and importance weights are, and the
    variance of sums of gradients is larger by Kish's design effect. The estimate is that of maximum likelihood for
    normal residuals plus two of its standard errors, which hold for other distributions too: weights are precisions
    unless the residuals contradict it. Without it terms are fitted to single heavy rows (`benchmarks/weights.md`).

    Attributes
    ----------
    value : float
    """

    def __init__(self, at_constant: Floats) -> None:
        self.value = likely_power(at_constant)

    def inflation(self, sums: Floats, leverage: float) -> float:
        """Update the power by sums of rows (`WeightBins.sums`): by how much it raises the variance of gradients.

        `leverage`: that of a row of weight 1, degrees of freedom over the sum of the weights.
        """
        if self.value == 1.0:  # precisions, and remain so
            return 1.0
        self.value = min(likely_power(sums, leverage), self.value + POWER_STEP)
        counts, logs = sums[sums[:, 0] > 0.0, :2].T
        scaled_counts = counts * np.exp((1.0 - self.value) * logs / counts)
        weights = np.exp(logs / counts)
        return float((scaled_counts @ weights) / (counts @ weights) * counts.sum() / scaled_counts.sum())


def likely_power(sums: Floats, leverage: float = 0.0) -> float:
    """The largest likely power of the weights, at most 1, by the result of `WeightBins.sums`."""
    counts, logs, squares, fourth = sums[sums[:, 0] > 0.0].T
    logs = logs / counts
    left = 1.0 - np.minimum(leverage * np.exp(logs), MAX_LEVERAGE)
    squares, fourth = squares / left, fourth / left**2
    centred = logs - counts @ logs / counts.sum()

    def slope(power: float) -> float:
        """The derivative of minus the log likelihood; it rises."""
        return float((centred * np.exp(power * centred)) @ squares)

    if slope(1.0) <= 0.0:
        return 1.0
    power = brentq(slope, 0.0, 1.0, xtol=1e-6) if slope(0.0) < 0.0 else 0.0
    scaled = np.exp(power * centred)
    mean = scaled @ squares / counts.sum()
    information = np.square(centred) @ (scaled * squares) / mean
    variance = np.square(centred) @ (scaled**2 * fourth / mean**2 - 2.0 * scaled * squares / mean + counts)
    return float(min(power + N_ERRORS * math.sqrt(max(variance, 0.0)) / information, 1.0))


def dispersion_of_deviance(deviance: float, power: float) -> float:
    """The dispersion at which a row of mean 1 has this expected deviance, the variance being mean to the `power`.

    For gamma's law (a power of 2) that is the maximum-likelihood estimate.
    """
    if deviance <= LOWEST:
        return deviance
    if expected_deviance(LARGEST, power) <= deviance:
        return LARGEST
    log_ends = math.log(LOWEST / 2.0), math.log(LARGEST)
    log_dispersion = brentq(lambda log: expected_deviance(math.exp(log), power) - deviance, *log_ends, xtol=1e-6)
    return math.exp(log_dispersion)


def expected_deviance(dispersion: float, power: float) -> float:
    """The expected deviance of a row of mean 1, by gamma's law (a power of 2) or Tweedie's (between 1 and 2).

    Of gamma's law with shape a it is 2 (log(a) - digamma(a)). Of a compound Poisson law the terms that are linear in
    the target y cancel in the mean, which leaves E[y^(2 - p)]: a sum over the numbers of events, of moments of gamma
    distributions (Joergensen 1987).
    """
    if power == 2.0:
        return 2.0 * float(-math.log(dispersion) - digamma(1.0 / dispersion))
    power = min(max(power, MIN_POWER), MAX_POWER)
    rate, shape = 1.0 / (dispersion * (2.0 - power)), (2.0 - power) / (power - 1.0)
    half_width = 12.0 * math.sqrt(rate) + 30.0  # numbers of events further off have no probability
    events = np.arange(max(math.floor(rate - half_width), 1.0), rate + half_width)
    logs = events * math.log(rate) - rate - gammaln(events + 1.0)
    logs += (2.0 - power) * math.log(dispersion * (power - 1.0))
    logs += gammaln(events * shape + 2.0 - power) - gammaln(events * shape)
    return float(2.0 * (1.0 - np.exp(logs).sum()) / ((power - 1.0) * (2.0 - power)))
