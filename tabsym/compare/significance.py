"""Tests of contenders against the best: the variance of a mean difference, p-values, intervals.

A mean difference of two contenders is uncertain for two reasons. One is the choice of the rows that were tested, which
is measured on thousands of them. The other is the training, which is what the differences of the folds scatter beyond
what the rows explain; training sets overlap, so that it is corrected as Nadeau and Bengio (2003) do, and the
comparisons of one table lend each other strength in estimating it (after Smyth 2004). P-values are adjusted, step
down, for all pairs of contenders and not only for those with the best, as the best was picked by the same scores.
Error rates and power of this and of other tests, by simulation: benchmarks/verdicts.md.

Where no rows are at hand (a metric of the user's own), all of the scatter is the training's: the corrected resampled
t-test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Floats = NDArray[np.float64]

ALPHA = 0.05
ROUNDING = 1e-9
"""Mean differences below this share of the scores are rounding."""
_MIN_RATIO, _MAX_RATIO = 0.01, 1e6  # of a comparison's scatter to what rows explain, where comparisons share it
_MAX_FREEDOM = 1e4


@dataclass(frozen=True)
class Pair:
    """The difference of two contenders on the test rows.

    `rows`: the variance of the mean difference over all folds that comes from the choice of `n` test rows; rows that
    are tested in several repeats count once. `within`: the same for one fold, on average.
    """

    rows: float
    within: float
    n: int


@dataclass(frozen=True)
class Tests:
    """For each comparison: two-sided p alone, p among all pairs, the mean difference and its 95 % interval."""

    p: Floats
    p_adjusted: Floats
    difference: Floats
    low: Floats
    high: Floats


def pair_of_rows(
    differences: list[Floats],
    weight: Floats | None,
    tests: Sequence[NDArray[np.int64]],
    clusters: NDArray[np.int64] | None = None,
) -> Pair:
    """The variance that the choice of rows (or clusters) gives the mean difference, and the difference of a fold.

    `tests`: the rows of each fold, of all repeats. Clusters are few, one a fold perhaps: their deviations are from the
    mean of all folds, those of rows from their fold's.
    """
    n = 1 + max(int((test if clusters is None else clusters[test]).max()) for test in tests)
    total, times = np.zeros(n), np.zeros(n, dtype=np.int64)
    weights = [np.ones(len(test)) if weight is None else weight[test] for test in tests]
    means = [float(np.average(one, weights=w)) for one, w in zip(differences, weights, strict=True)]
    within = []
    for difference, w, mean, test in zip(differences, weights, means, tests, strict=True):
        off = w / w.sum() * (difference - (mean if clusters is None else np.mean(means)))
        held, position = np.unique(test if clusters is None else clusters[test], return_inverse=True)
        share = np.bincount(position, off)  # a unit's share of its fold's score, less the mean
        n_free = len(held) - 1 if clusters is None else len(held)
        within.append(float((share**2).sum()) * len(held) / max(n_free, 1))
        total[held] += share
        times[held] += 1
    n_tested = int((times > 0).sum())
    lost = 1.0 if clusters is None else n_tested / max(n_tested - 1, 1)  # of clusters a degree of freedom counts
    rows = lost * float((total**2).sum()) / len(tests) ** 2
    return Pair(rows, lost * float(np.mean(within)), n_tested)


def against_best(differences: Floats, pairs: list[Pair | None], test_over_train: float, scale: Floats) -> Tests:
    """Each contender tested against the best.

    Parameters
    ----------
    differences : (K - 1, J)
        Scores less the best's, in each of J folds (of all repeats).
    pairs : of K - 1
        The difference on the rows; None where there are none.
    test_over_train : float
        Test rows over training rows of a fold.
    scale : (K - 1,)
        The size of the scores, beside which a difference can be rounding.
    """
    folds, mean = differences.shape[1], differences.mean(axis=1)
    scatter = differences.var(axis=1, ddof=1) if folds > 1 else np.zeros(len(mean))
    explained = np.array([0.0 if pair is None else pair.within for pair in pairs])
    n = np.array([2 if pair is None else pair.n for pair in pairs])
    rows = np.array([0.0 if pair is None else pair.rows for pair in pairs]) * (1 + test_over_train)
    scatter, freedom = _shared(scatter, explained, folds - 1.0, (ROUNDING * scale) ** 2)
    training = np.maximum(scatter - explained, 0.0) * (1 / folds + test_over_train)
    variance = rows + training
    error = np.sqrt(variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.where(variance > 0, variance**2 / (training**2 / freedom + rows**2 / (n - 1)), 1.0)
        t = np.where(np.abs(mean) <= ROUNDING * scale, 0.0, np.abs(mean) / error)
    p = 2 * stats.t.sf(t, freedom)
    half = stats.t.isf(ALPHA / 2, freedom) * error
    return Tests(p, adjusted_for_pairs(p), mean, mean - half, mean + half)


def _shared(scatter: Floats, explained: Floats, freedom: float, rounding: Floats) -> tuple[Floats, Floats]:
    """The scatter of each comparison drawn to what the others scatter, and its degrees of freedom.

    What is shared is the ratio to what rows explain; its mean is geometric, so that a contender that diverges does
    not hide the others' differences. The logarithms of sample variances vary by trigamma(f / 2) of themselves; the
    less the ratios vary beyond that, the more weight has their mean. Two comparisons or one share nothing.
    """
    known = (explained > 0) & (np.maximum(scatter, explained) > rounding)
    own = np.full(len(scatter), max(freedom, 1.0))
    if known.sum() < 3 or freedom < 1:
        return scatter, own
    ratio = np.clip(scatter[known] / explained[known], _MIN_RATIO, _MAX_RATIO)
    logs = np.log(ratio) - special.digamma(freedom / 2) + np.log(freedom / 2)
    beyond = float(np.log(ratio).var(ddof=1) - special.polygamma(1, freedom / 2))
    more = _MAX_FREEDOM if beyond <= 0 else min(2 * _inverse_trigamma(beyond), _MAX_FREEDOM)
    out = scatter.copy()
    out[known] = (more * np.exp(logs.mean()) * explained[known] + freedom * scatter[known]) / (more + freedom)
    own[known] += more
    return out, own


def _inverse_trigamma(y: float) -> float:
    """x with trigamma(x) = y, by Newton's method on 1 / trigamma (Smyth 2004, appendix)."""
    if y > 1e7:
        return float(1 / np.sqrt(y))
    if y < 1e-6:
        return 1 / y
    x = 0.5 + 1 / y
    for _ in range(50):
        trigamma = float(special.polygamma(1, x))
        step = trigamma * (1 - trigamma / y) / float(special.polygamma(2, x))
        x += step
        if abs(step) < 1e-8 * x:
            break
    return x


def adjusted_for_pairs(p: Floats) -> Floats:
    """P-values (K - 1,) against the best, step down: the smallest times the pairs of K, the next of K - 1, ..."""
    left = len(p) + 1 - np.arange(len(p))
    order = np.argsort(p, kind="stable")
    out = np.empty(len(p))
    out[order] = np.maximum.accumulate(np.minimum(p[order] * left * (left - 1) / 2, 1.0))
    return out
