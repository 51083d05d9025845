"""Which test should `tabsym compare` use to say "worse than the best"? Error rates and power, by simulation.

Learners are real and small; tables come from generators whose population is
known. On every simulated table 14 contenders are equal in expectation (the same
learner with randomness of its own at each fit, or, "mirror", learners that miss
one column each of a table whose columns are exchangeable), and one more is made
worse by 1, 5 and 26 % with noise in its predictions, calibrated on many training
sets and a large test set (AUC: 1 - AUC grows by that share). Measured: how often
any equal contender is declared worse than the best observed (`worse` = 0,
nominal 5 %), and how often the worse one is (power, beside K - 1 equal ones).
All tests see the same tables. Groups of 2 and 6 are disjoint groups of the 14;
the standard error (`se`) is over tables, so it allows for that.

    OMP_NUM_THREADS=1 python benchmarks/verdicts.py           # about 20 minutes of one core
    OMP_NUM_THREADS=1 python benchmarks/verdicts.py --quick   # a few minutes; writes nothing unless --out is given

Results go to benchmarks/results/verdicts.csv, the summary to the screen;
benchmarks/verdicts.md says what follows from it. The test chosen is `verdict`.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import sklearn
from scipy import special, stats
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

EQUAL = 14  # contenders that are equal; one more is the base of the worse ones
LEVELS = (0.01, 0.05, 0.26)
ALPHA = 0.05
TINY = 1e-300
NOTHING = 1e-9  # a difference below this share of the scores is rounding


# ---- the test chosen: numpy in, p-values and intervals out ----


def verdict(
    scores: np.ndarray, rows: np.ndarray, folds: np.ndarray, alpha: float = ALPHA
) -> tuple[int, np.ndarray, np.ndarray]:
    """The best of K contenders, p-values of the others against it, and intervals of their differences to it.

    scores: (K, R, J), a loss (AUC: its negative) by contender, repeat and fold.
    rows: (K, R, n), by row, values whose mean over a fold is the fold's score
    (see `rmse`, `log_loss`, `auc`). folds: (R, n), the fold of each row, from 0.
    Returns the index of the best, p (K,), adjusted for all pairs (1 for the
    best), and intervals (K, 2) of score minus the best's, not adjusted.
    """
    best = int(scores.mean((1, 2)).argmin())
    moments = Moments(scores, rows, folds).against(best, list(range(len(scores))))
    error, df = chosen(moments)
    t = statistic(moments, error)
    raw = 2 * stats.t.sf(np.abs(t), df)
    p = adjusted_for_pairs(raw[None])[0]
    half = stats.t.isf(alpha / 2, df) * error
    d = moments.d
    others = np.arange(len(scores)) != best
    p_all, interval = np.ones(len(scores)), np.zeros((len(scores), 2))
    p_all[others] = p
    interval[others] = np.stack([d - half, d + half], -1)
    return best, p_all, interval


@dataclass
class Against:
    """What the tests need of each comparison with the best; arrays end in an axis of K - 1 comparisons."""

    d: np.ndarray  # mean difference to the best
    s2: np.ndarray  # variance of the J x R differences of folds
    v: np.ndarray  # what rows alone would make of s2: mean over folds of variance of row differences / rows
    rows: np.ndarray  # variance of the mean over rows, averaged over repeats first
    scale: np.ndarray  # size of the scores
    wins: np.ndarray  # the best wins every fold
    folds: int
    repeats: int
    n: int


class Moments:
    """Scores by fold, and covariances of contenders over rows, within folds: enough for every pair."""

    def __init__(self, scores: np.ndarray, rows: np.ndarray, folds: np.ndarray):
        k, repeats, n_folds = scores.shape
        n = rows.shape[2]
        self.scores, self.n = scores, n
        within = np.zeros((k, k))
        centred = np.zeros((k, n))
        for r in range(repeats):
            for j in range(n_folds):
                here = np.flatnonzero(folds[r] == j)
                part = rows[:, r, here] - rows[:, r, here].mean(1, keepdims=True)
                within += part @ part.T / ((len(here) - 1) * len(here))
                centred[:, here] += part / repeats
        self.v = _of_differences(within / (repeats * n_folds))
        self.rows = _of_differences(centred @ centred.T / ((n - n_folds) * n))

    def against(self, best: int, group: list[int]) -> Against:
        others = [i for i in group if i != best]
        _, repeats, n_folds = self.scores.shape
        differences = (self.scores[others] - self.scores[best]).reshape(len(others), -1)
        s2 = differences.var(axis=1, ddof=1) if differences.shape[1] > 1 else np.zeros(len(others))
        scale = np.abs(self.scores[others]).mean((1, 2)) + np.abs(self.scores[best]).mean()
        return Against(
            differences.mean(1),
            s2,
            self.v[best, others],
            self.rows[best, others],
            scale,
            (differences > NOTHING * scale[:, None]).all(1),
            n_folds,
            repeats,
            self.n,
        )


def _of_differences(covariance: np.ndarray) -> np.ndarray:
    variance = np.diag(covariance)
    return np.maximum(variance[:, None] + variance - 2 * covariance, 0)


def statistic(m: Against, error: np.ndarray) -> np.ndarray:
    """t; 0 where the difference is rounding, infinite where it is not and nothing varies."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(m.d) <= NOTHING * m.scale, 0.0, m.d / error)


def corrected(m: Against) -> float:
    """Nadeau and Bengio: 1/(folds in all) + test share / (1 - test share)."""
    return 1 / (m.folds * m.repeats) + 1 / (m.folds - 1)


def two_parts(m: Against, upper: float | None = None, s2: np.ndarray | None = None, df=None):
    """Standard error and df: rows, plus training, t2 (1/(JR) + 1/(J - 1)), t2 = what s2 has beyond the rows."""
    s2 = m.s2 if s2 is None else s2
    df = m.folds * m.repeats - 1 if df is None else df
    if upper is not None:
        s2 = s2 * df / stats.chi2.ppf(upper, df)
    training = np.maximum(s2 - m.v, 0) * corrected(m)
    variance = m.rows + training
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = variance**2 / (training**2 / df + m.rows**2 / (m.n - 1))
    return np.sqrt(variance), np.where(variance > 0, freedom, 1.0)


def two_parts_moderated(m: Against):
    """Two parts, where the ratios s2 / v of the comparisons are drawn to their geometric mean (after Smyth 2004).

    The less the ratios differ beyond chance, the more weight has the mean. It
    is geometric, so that a contender that diverges does not hide the others'
    differences; the factor makes it the mean where all ratios are equal.
    """
    df = m.folds * m.repeats - 1.0
    some = np.maximum(m.s2, m.v) > (NOTHING * m.scale) ** 2  # the others are the best itself, up to rounding
    ratio = np.where(some, np.clip(m.s2 / np.maximum(m.v, TINY), 0.01, 1e6), 1.0)
    d0 = prior_freedom(ratio, df)
    logs = np.log(ratio) - special.digamma(df / 2) + np.log(df / 2)
    s2 = (d0 * np.exp(logs.mean(-1, keepdims=True)) * m.v + df * m.s2) / (d0 + df)
    return two_parts(m, s2=s2, df=df + d0)


def chosen(m: Against):
    """The same, with the rows counted as those of a training set: their part over (1 - test share)."""
    return two_parts_moderated(replace(m, rows=m.rows * m.folds / (m.folds - 1)))


def prior_freedom(s2: np.ndarray, df: float) -> np.ndarray:
    """How many degrees of freedom the mean of several variances is worth beside one; 0 for fewer than 3.

    The logarithms of sample variances vary by trigamma(df / 2) of themselves;
    what they vary more is trigamma(d0 / 2).
    """
    if s2.shape[-1] < 3:
        return np.zeros((*s2.shape[:-1], 1))
    beyond = np.log(np.maximum(s2, TINY)).var(-1, ddof=1, keepdims=True) - special.polygamma(1, df / 2)
    y = np.maximum(beyond, 1e-4)
    x = 0.5 + 1 / y
    for _ in range(30):  # Newton's method, as limma's trigammaInverse
        tri = special.polygamma(1, x)
        x = np.maximum(x + tri * (1 - tri / y) / special.polygamma(2, x), 1e-8)
    return np.where(beyond > 1e-4, 2 * x, 1e4)


def adjusted_for_pairs(p: np.ndarray) -> np.ndarray:
    """Step down as Holm, but the i-th smallest times the pairs among the contenders left: the best is chosen too."""
    k = p.shape[-1] + 1
    left = k - np.arange(k - 1)
    return _step_down(p, left * (left - 1) / 2)


def holm(p: np.ndarray) -> np.ndarray:
    return _step_down(p, p.shape[-1] - np.arange(p.shape[-1]))


def _step_down(p: np.ndarray, times: np.ndarray) -> np.ndarray:
    order = p.argsort(-1)
    worst = np.maximum.accumulate(np.minimum(np.take_along_axis(p, order, -1) * times, 1), -1)
    result = np.empty_like(p)
    np.put_along_axis(result, order, worst, -1)
    return result


# ---- the other candidates ----


def earlier(m: Against):
    return np.sqrt(m.s2 * corrected(m)), np.full(m.s2.shape, m.folds * m.repeats - 1.0)


def rows_only(m: Against):
    return np.sqrt(m.rows), np.full(m.rows.shape, 1e6)


def moderated(m: Against):
    """Smyth 2004: the variances of the comparisons shrunk to each other."""
    df = m.folds * m.repeats - 1.0
    e = np.log(np.maximum(m.s2, TINY)) - special.digamma(df / 2) + np.log(df / 2)
    d0 = prior_freedom(m.s2, df)
    with np.errstate(divide="ignore", invalid="ignore"):
        prior = np.exp(e.mean(-1, keepdims=True) + special.digamma(d0 / 2) - np.log(d0 / 2))
    s2 = np.where(d0 > 0, (d0 * prior + df * m.s2) / (d0 + df), m.s2)
    return np.sqrt(s2 * corrected(m)), df + np.broadcast_to(d0, s2.shape)


def two_parts_prior(m: Against, ratio: float = 2.0, prior: float = 4.0):
    """Two parts, as if `prior` more degrees of freedom had shown s2 = ratio x v."""
    df = m.folds * m.repeats - 1.0
    return two_parts(m, s2=(prior * ratio * m.v + df * m.s2) / (prior + df), df=prior + df)


@cache
def _critical(kind: str, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Critical |t| at ALPHA by df: all pairs of k (Tukey), or k - 1 against one with correlation 1/2 (Dunnett)."""
    w = np.linspace(0, 14, 1401)
    x = np.linspace(-9, 9, 721)
    phi = stats.norm.pdf(x) * (x[1] - x[0])
    if kind == "tukey":
        cdf = k * (phi * (stats.norm.cdf(x + np.sqrt(2) * w[:, None]) - stats.norm.cdf(x)) ** (k - 1)).sum(1)
    else:
        span = stats.norm.cdf(x + np.sqrt(2) * w[:, None]) - stats.norm.cdf(x - np.sqrt(2) * w[:, None])
        cdf = (phi * span ** (k - 1)).sum(1)
    freedom = np.exp(np.linspace(0, np.log(1e5), 60))
    critical = []
    for df in freedom:
        s = np.sqrt(stats.chi2.ppf((np.arange(4000) + 0.5) / 4000, df) / df)
        low, high = 0.5, 200.0
        for _ in range(40):
            t = np.sqrt(low * high)
            low, high = (t, high) if np.interp(t * s, w, cdf, right=1).mean() < 1 - ALPHA else (low, t)
        critical.append(high)
    return np.log(freedom), np.log(critical)


def beyond_critical(t: np.ndarray, df: np.ndarray, kind: str) -> np.ndarray:
    log_df, log_critical = _critical(kind, t.shape[-1] + 1)
    return np.abs(t) > np.exp(np.interp(np.log(df), log_df, log_critical))


ERRORS: dict[str, Callable] = {
    "A": earlier,
    "B": rows_only,
    "C": two_parts,
    "C20": partial(two_parts, upper=0.2),
    "D": moderated,
    "CD": two_parts_moderated,
    "P": two_parts_prior,
    "V": chosen,
}
ADJUSTMENTS = ("none", "holm", "dunnett", "tukey", "pairs")
TESTS = [f"{e}-{a}" for e in ERRORS for a in ADJUSTMENTS] + ["wins"]


def declared(m: Against) -> dict[str, np.ndarray]:
    """Which comparisons each test declares; every array is (groups, K - 1)."""
    result = {"wins": m.wins}
    for name, error_of in ERRORS.items():
        error, df = error_of(m)
        t = statistic(m, error)
        p = 2 * stats.t.sf(np.abs(t), df)
        result[f"{name}-none"] = p <= ALPHA
        result[f"{name}-holm"] = holm(p) <= ALPHA
        result[f"{name}-pairs"] = adjusted_for_pairs(p) <= ALPHA
        for kind in ("dunnett", "tukey"):
            result[f"{name}-{kind}"] = beyond_critical(t, df, kind)
    return result


# ---- metrics: the score of a fold, and values by row whose mean is the score ----


def rmse(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Delta method: (squared error / rmse + rmse) / 2."""
    squared = (y - predicted) ** 2
    root = np.sqrt(squared.mean(-1, keepdims=True))
    return (squared / root + root) / 2


def log_loss(y: np.ndarray, logit: np.ndarray) -> np.ndarray:
    return np.logaddexp(0, np.where(y == 1, -logit, logit))


def auc(y: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Minus AUC (so that less is better), by row as influence (DeLong)."""
    positive = y == 1
    n, n_positive = len(y), positive.sum()
    ranks = stats.rankdata(score, axis=-1)
    above = np.empty(score.shape)  # share of the other class on the right side
    own = stats.rankdata(score[..., positive], axis=-1)
    above[..., positive] = (ranks[..., positive] - own) / (n - n_positive)
    own = stats.rankdata(score[..., ~positive], axis=-1)
    above[..., ~positive] = 1 - (ranks[..., ~positive] - own) / n_positive
    area = above[..., positive].mean(-1, keepdims=True)
    return -(area + (above - area) * np.where(positive, n / n_positive, n / (n - n_positive)))


# ---- tables ----


def friedman(rng: np.random.Generator, n: int):
    x = rng.random((n, 10))
    f = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    return x, f + 2 * rng.standard_normal(n)


def friedman_classes(rng: np.random.Generator, n: int):
    x, y = friedman(rng, n)
    return x, (y - 14.4 + 2 * rng.logistic(size=n) > 0).astype(float)


def linear(rng: np.random.Generator, n: int):
    x = rng.standard_normal((n, 20))
    return x, 0.3 * x.sum(1) + rng.standard_normal(n)


def linear_classes(rng: np.random.Generator, n: int):
    x = rng.standard_normal((n, 20))
    return x, (0.5 * x.sum(1) + rng.logistic(size=n) > 0).astype(float)


def heavy(rng: np.random.Generator, n: int):
    """Columns that matter unequally; noise of Student's t with 3 degrees of freedom."""
    x = rng.standard_normal((n, 20))
    return x, x @ (0.6 * 0.85 ** np.arange(20)) + rng.standard_t(3, n)


def mirror(rng: np.random.Generator, n: int):
    """15 exchangeable columns."""
    x = rng.standard_normal((n, EQUAL + 1))
    return x, np.sin(2 * x).sum(1) + 0.5 * x.sum(1) + rng.standard_normal(n)


def categories(rng: np.random.Generator, n: int):
    """15 columns of 30 symbols, frequent and rare; two classes."""
    population = np.random.default_rng(5)
    effects = population.normal(0, 0.5, (15, 30))
    share = 1 / np.arange(1, 31)
    x = rng.choice(30, (n, 15), p=share / share.sum())
    return x, (effects[np.arange(15), x].sum(1) + rng.logistic(size=n) > 0).astype(float)


# ---- learners: predictions (logits for classes) of 15 contenders that are equal in expectation ----


def ridge(rng: np.random.Generator, x, y, test):
    """Ridge on a random half of the columns, drawn anew at each fit; least squares on 0/1 is not used for classes."""
    gram, moment, mean = x.T @ x, x.T @ (y - y.mean()), y.mean()
    result = []
    for _ in range(EQUAL + 1):
        c = rng.permutation(x.shape[1])[: x.shape[1] // 2]
        result.append(mean + test[:, c] @ np.linalg.solve(gram[np.ix_(c, c)] + np.eye(len(c)), moment[c]))
    return np.array(result)


def logistic(rng: np.random.Generator, x, y, test):
    """Logistic regression, penalty 1, on a random half of the columns, drawn anew at each fit."""
    result = []
    for _ in range(EQUAL + 1):
        c = rng.permutation(x.shape[1])[: x.shape[1] // 2]
        z, w = x[:, c], np.zeros(len(c))
        for _ in range(5):
            p = special.expit(z @ w)
            w = w + np.linalg.solve((z.T * (p * (1 - p))) @ z + np.eye(len(c)), z.T @ (y - p) - w)
        result.append(test[:, c] @ w)
    return np.array(result)


def trees(rng: np.random.Generator, x, y, test, classes=False, leaf=3, bag=1):
    """Trees with random splits; with `bag`, means of several on bootstrap samples; logits of smoothed shares."""
    x, test = np.float32(x), np.float32(test)
    result = np.zeros((EQUAL + 1, len(test)))
    for k in range(EQUAL + 1):
        for _ in range(bag):
            here = rng.integers(len(x), size=len(x)) if bag > 1 else slice(None)
            tree = ExtraTreeRegressor(
                min_samples_leaf=leaf, max_features=0.5, random_state=int(rng.integers(2**31))
            ).fit(x[here], y[here], check_input=False)
            at = tree.tree_.apply(test)
            value = tree.tree_.value[at, 0, 0]
            if classes:
                size = tree.tree_.n_node_samples[at]
                value = (value * size + 1) / (size + 2)
            result[k] += value / bag
    return special.logit(result) if classes else result


def mirror_tree(rng: np.random.Generator, x, y, test):
    """No randomness: tree of depth 5 on all columns but the k-th."""
    x, test = np.float32(x), np.float32(test)
    result = []
    for k in range(EQUAL + 1):
        tree = DecisionTreeRegressor(max_depth=5, min_samples_leaf=5, random_state=0)
        tree.fit(np.delete(x, k, 1), y, check_input=False)
        result.append(tree.tree_.predict(np.delete(test, k, 1))[:, 0])
    return np.array(result)


def mirror_neighbours(rng: np.random.Generator, x, y, test):
    """No randomness: 10 nearest neighbours in all columns but the k-th."""
    distance = (test**2).sum(1)[:, None] + (x**2).sum(1) - 2 * test @ x.T
    result = []
    for k in range(EQUAL + 1):
        near = np.argpartition(distance - (test[:, k, None] - x[:, k]) ** 2, 10, axis=1)[:, :10]
        result.append(y[near].mean(1))
    return np.array(result)


def naive_bayes(rng: np.random.Generator, x, y, test):
    """Naive Bayes, smoothed, on 8 of the 15 columns of symbols, drawn anew at each fit."""
    weights = np.empty((x.shape[1], 30))
    for c in range(x.shape[1]):
        ones = np.bincount(x[:, c], y, 30) + 1
        zeros = np.bincount(x[:, c], 1 - y, 30) + 1
        weights[c] = np.log(ones / ones.sum()) - np.log(zeros / zeros.sum())
    prior = special.logit((y.sum() + 1) / (len(y) + 2))
    values = weights[np.arange(x.shape[1]), test]
    return np.array([prior + values[:, rng.permutation(15)[:8]].sum(1) for _ in range(EQUAL + 1)])


@cache
def _noise_of_mixed(n: int) -> float:
    """The noise that makes ridge on all columns as bad, in expectation, as ridge on a random half."""
    rng = np.random.default_rng(11)
    halves, whole = [], []
    for _ in range(150):
        x, y = heavy(rng, n)
        test, truth = heavy(rng, 4000)
        halves.append(((truth - ridge(rng, x, y, test)) ** 2).reshape(EQUAL + 1, 20, 200))
        error = truth - y.mean() - test @ np.linalg.solve(x.T @ x + np.eye(20), x.T @ (y - y.mean()))
        whole.append((error.reshape(20, 200), rng.standard_normal((20, 200))))
    target = np.mean([np.sqrt(h.mean(-1)).mean() for h in halves])
    low, high = 0.0, 10.0
    for _ in range(30):
        middle = (low + high) / 2
        rmse_ = np.mean([np.sqrt(((e + middle * z) ** 2).mean(-1)).mean() for e, z in whole])
        low, high = (middle, high) if rmse_ < target else (low, middle)
    return high


def mixed(rng: np.random.Generator, x, y, test):
    """Every second contender is stable: ridge on all columns, with noise that makes it as bad as `ridge`."""
    result = ridge(rng, x, y, test)
    stable = y.mean() + test @ np.linalg.solve(x.T @ x + np.eye(20), x.T @ (y - y.mean()))
    shape = result[::2].shape
    result[::2] = stable + _noise_of_mixed(100 * round(len(x) / 100)) * rng.standard_normal(shape)
    return result


def boosting(rng: np.random.Generator, x, y, test):
    result = []
    for _ in range(EQUAL + 1):
        model = HistGradientBoostingClassifier(
            max_iter=10, max_leaf_nodes=8, max_features=0.3, learning_rate=0.3, early_stopping=False,
            random_state=int(rng.integers(2**31)),
        )  # fmt: skip
        result.append(model.fit(x, y).decision_function(test))
    return np.array(result)


@dataclass(frozen=True)
class Situation:
    name: str
    table: Callable
    learner: Callable
    n: int
    folds: int
    repeats: int
    tables: int  # simulated in the full form
    classes: bool = False

    @property
    def metrics(self) -> dict[str, Callable]:
        return {"log-loss": log_loss, "auc": auc} if self.classes else {"rmse": rmse}


def situations() -> list[Situation]:
    one_tree = partial(trees, classes=True, leaf=5)
    bagged = partial(trees, classes=True, leaf=5, bag=5)
    result = []
    for name, table, learner, classes, plan in (
        ("ridge", linear, ridge, False, [(200, 5, 5, 300), (1000, 5, 5, 300), (5000, 5, 5, 150), (1000, 10, 1, 300)]),
        ("ridge, heavy tails", heavy, ridge, False, [(200, 5, 5, 300), (1000, 5, 5, 300), (5000, 5, 5, 150)]),
        ("mixed", heavy, mixed, False, [(1000, 5, 5, 300)]),
        ("trees", friedman, trees, False, [(200, 5, 5, 150), (1000, 5, 5, 120), (5000, 5, 1, 40), (1000, 10, 1, 80)]),
        ("bagged trees", friedman, partial(trees, bag=5), False, [(200, 5, 3, 30), (1000, 5, 1, 60)]),
        ("mirror trees", mirror, mirror_tree, False, [(200, 5, 5, 50), (1000, 5, 1, 80), (5000, 5, 1, 20)]),
        ("mirror neighbours", mirror, mirror_neighbours, False, [(200, 5, 5, 80), (1000, 5, 1, 60)]),
        ("logistic", linear_classes, logistic, True, [(200, 5, 5, 40), (1000, 5, 3, 70), (5000, 5, 1, 40)]),
        ("trees", friedman_classes, one_tree, True, [(200, 5, 5, 40), (1000, 5, 3, 70), (5000, 5, 1, 30)]),
        ("bagged trees", friedman_classes, bagged, True, [(1000, 5, 1, 40)]),
        ("naive Bayes, symbols", categories, naive_bayes, True, [(200, 5, 5, 80), (1000, 5, 5, 80), (5000, 5, 3, 40)]),
        ("naive Bayes, symbols", categories, naive_bayes, True, [(1000, 10, 1, 80)]),
        ("boosting", friedman_classes, boosting, True, [(1000, 5, 1, 20)]),
    ):
        result += [Situation(name, table, learner, *numbers, classes) for numbers in plan]
    return result


# ---- simulation ----


def calibrated(s: Situation, rng: np.random.Generator) -> dict[str, list[float]]:
    """By metric: the noise in predictions that makes the expected score worse by each level."""
    found: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {m: [] for m in s.metrics}
    for _ in range(8):
        x, y = s.table(rng, s.n - s.n // s.folds)
        test, truth = s.table(rng, 2000)
        predicted = s.learner(rng, x, y, test)
        for metric in s.metrics:
            found[metric].append((truth, predicted))
    draws = rng.standard_normal((8, EQUAL + 1, 2000))
    result: dict[str, list[float]] = {}
    for metric, function in s.metrics.items():

        def expected(noise: float, metric=metric, function=function) -> float:
            values = [function(y, p + noise * z).mean() for (y, p), z in zip(found[metric], draws)]
            return float(np.mean(values)) + (metric == "auc")  # 1 - AUC

        base = expected(0)
        result[metric] = []
        for level in LEVELS:
            low, high = 0.0, 64.0
            for _ in range(22):
                middle = (low + high) / 2
                low, high = (middle, high) if expected(middle) < base * (1 + level) else (low, middle)
            result[metric].append(high)
    return result


def simulated(s: Situation, rng: np.random.Generator, noise: dict[str, list[float]]):
    """One table: by metric, row values of 14 equal and 3 worse contenders (17, R, n), and folds (R, n)."""
    x, y = s.table(rng, s.n)
    folds = np.empty((s.repeats, s.n), dtype=int)
    values = {metric: np.empty((EQUAL + len(LEVELS), s.repeats, s.n)) for metric in s.metrics}
    for r in range(s.repeats):
        order = rng.permutation(s.n)
        if s.classes:  # stratified
            order = order[np.argsort(y[order], kind="stable")]
        folds[r, order] = np.arange(s.n) % s.folds
        for j in range(s.folds):
            train, test = np.flatnonzero(folds[r] != j), np.flatnonzero(folds[r] == j)
            predicted = s.learner(rng, x[train], y[train], x[test])
            for metric, function in s.metrics.items():
                worse = [predicted[EQUAL] + size * rng.standard_normal(len(test)) for size in noise[metric]]
                values[metric][:, r, test] = function(y[test], np.vstack([predicted[:EQUAL], worse]))
    return values, folds


def fold_means(values: np.ndarray, folds: np.ndarray) -> np.ndarray:
    k, repeats, _ = values.shape
    n_folds = folds.max() + 1
    scores = np.empty((k, repeats, n_folds))
    for r in range(repeats):
        for j in range(n_folds):
            scores[:, r, j] = values[:, r, folds[r] == j].mean(1)
    return scores


def groups() -> list[tuple[int, float, list[int]]]:
    """(K, how much worse one is, contenders)."""
    result = [(2, 0.0, [i, i + 1]) for i in range(0, EQUAL, 2)]
    result += [(6, 0.0, list(range(6))), (6, 0.0, list(range(6, 12))), (14, 0.0, list(range(14)))]
    for place, level in enumerate(LEVELS):
        worse = EQUAL + place
        result += [(2, level, [i, worse]) for i in range(0, EQUAL, 4)]
        result += [(6, level, [*range(5), worse]), (6, level, [*range(5, 10), worse])]
        result += [(14, level, [*range(13), worse])]
    return result


def gathered(s: Situation, tables: int, seed: int) -> dict[tuple, tuple]:
    """By metric, repeats, K and level: number of the table, comparisons, and which of them is the worse contender."""
    rng = np.random.default_rng([seed, s.n, s.folds])
    noise = calibrated(s, rng)
    kept: dict[tuple, list] = {}
    for number in range(tables):
        values, folds = simulated(s, rng, noise)
        for metric, rows in values.items():
            scores = fold_means(rows, folds)
            for repeats in (1, 3, 5):
                if repeats > s.repeats:
                    continue
                starts = range(s.repeats) if repeats == 1 else [0]
                for start in starts:
                    part = slice(start, start + repeats)
                    moments = Moments(scores[:, part], rows[:, part], folds[part])
                    means = moments.scores.mean((1, 2))
                    for k, level, group in groups():
                        best = min(group, key=lambda i: means[i])
                        ours = moments.against(best, group)
                        others = [i for i in group if i != best]
                        is_worse = np.array([level > 0 and i >= EQUAL for i in others])
                        kept.setdefault((metric, repeats, k, level), []).append((number, ours, is_worse))
    result = {}
    for key, entries in sorted(kept.items()):
        stacked = {f: np.array([getattr(e[1], f) for e in entries]) for f in ("d", "s2", "v", "rows", "scale", "wins")}
        ours = Against(**stacked, folds=s.folds, repeats=key[1], n=s.n)
        result[key] = np.array([e[0] for e in entries]), ours, np.array([e[2] for e in entries])
    return result


def rates(s: Situation, comparisons: dict[tuple, tuple]) -> list[dict]:
    """How often each test says "worse"."""
    result = []
    for (metric, repeats, k, level), (number, ours, is_worse) in comparisons.items():
        said = declared(ours)
        row = {
            "learner": s.name, "metric": metric, "n": s.n, "folds": s.folds, "repeats": repeats,
            "contenders": k, "worse": level, "tables": int(number.max()) + 1,
        }  # fmt: skip
        v, s2 = ours.v.mean(), ours.s2.mean()
        row["training_share"] = float(np.clip(1 - v / s2, 0, 1)) if s2 > 0 else 0.0
        count = np.bincount(number)
        for test in TESTS:
            hit = (said[test] & (is_worse if level else True)).any(1)
            rate = np.bincount(number, hit) / count
            row[test] = float(rate.mean())
            if test == "C-holm":
                row["se"] = float(rate.std(ddof=1) / np.sqrt(len(rate)))
        result.append(row)
    return result


# ---- special cases ----


def rotated(rng: np.random.Generator) -> str:
    """Ridge beside ridge with rotated columns: the same predictions up to rounding."""
    x, y = linear(rng, 400)
    q = np.linalg.qr(rng.standard_normal((20, 20)))[0]
    folds = (rng.permutation(400) % 5)[None]
    rows = np.empty((2, 1, 400))
    for j in range(5):
        a, b = folds[0] != j, folds[0] == j
        for i, z in enumerate((x, x @ q)):
            w = np.linalg.solve(z[a].T @ z[a] + np.eye(20), z[a].T @ y[a])
            rows[i, 0, b] = rmse(y[b], z[b] @ w)
    return _said(rows, folds)


def diverging(rng: np.random.Generator) -> str:
    """Log-loss 2.3 and 3.7 in two folds of five where the best has .004 (1000 rows)."""
    folds = (np.arange(1000) % 5)[None]
    rows = rng.exponential(0.004, (2, 1, 1000))
    for fold, loss in ((1, 2.3), (3, 3.7)):
        rows[1, 0, folds[0] == fold] = rng.exponential(loss, 200)
    return _said(rows, folds)


def every_fold(rng: np.random.Generator) -> str:
    """26 % worse in every fold, more and less (1000 rows)."""
    folds = (np.arange(1000) % 5)[None]
    rows = rng.exponential(0.5, (2, 1, 1000))
    rows[1] = rows[0] * (1 + np.array([0.10, 0.15, 0.20, 0.35, 0.50]))[folds] * rng.uniform(0.5, 1.5, 1000)
    return _said(rows, folds)


def _said(rows: np.ndarray, folds: np.ndarray) -> str:
    scores = fold_means(rows, folds)
    best, _, _ = verdict(scores, rows, folds)
    m = Moments(scores, rows, folds).against(best, list(range(len(rows))))
    parts = []
    for name, error_of in ERRORS.items():
        error, df = error_of(m)
        parts.append(f"{name} {2 * stats.t.sf(abs(statistic(m, error)[0]), df[0]):.3g}")
    return f"difference {m.d[0]:.3g}; p: " + ", ".join(parts) + f"; wins every fold: {bool(m.wins[0])}"


# ---- report ----

SHOWN = ["A-none", "A-holm", "B-holm", "C-none", "C-holm", "C-dunnett", "C-pairs", "C20-holm", "D-holm", "CD-holm",
         "CD-pairs", "P-pairs", "V-none", "V-holm", "V-pairs", "V-tukey", "wins"]  # fmt: skip


def table(rows: list[dict], tests: list[str]) -> str:
    heads = ["learner", "metric", "n", "J", "R", "K", "training", *tests]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for r in rows:
        cells = [r["learner"], r["metric"], r["n"], r["folds"], r["repeats"], r["contenders"]]
        numbers = [f"{100 * r['training_share']:.0f}", *(f"{100 * r[t]:.1f}" for t in tests)]
        lines.append("| " + " | ".join(map(str, [*cells, *numbers])) + " |")
    return "\n".join(lines)


def summary(rows: list[dict], tests: list[str]) -> str:
    """Mean and worst error rate by rows and K, and mean power, of each test."""
    lines = ["| test | " + " | ".join(_cells(rows)) + " |", "|" + "---|" * (len(_cells(rows)) + 1)]
    for test in tests:
        lines.append(f"| {test} | " + " | ".join(f(test) for f in _cells(rows).values()) + " |")
    return "\n".join(lines)


def _cells(rows: list[dict]) -> dict[str, Callable[[str], str]]:
    def some(small: bool, k: int, level: float, repeats: int | None) -> list[dict]:
        return [
            r for r in rows
            if (r["n"] < 1000) == small and r["contenders"] == k and r["worse"] == level
            and (repeats is None or r["repeats"] == repeats)
        ]  # fmt: skip

    result: dict[str, Callable[[str], str]] = {}
    for small, word in ((True, "n<1000"), (False, "n>=1000")):
        for k in (2, 6, 14):
            here = some(small, k, 0.0, None)
            result[f"error {word} K={k}"] = lambda t, here=here: _worst(here, t)
    for level in LEVELS:
        for k in (2, 14):
            for repeats in (1, 3):
                here = some(False, k, level, repeats)
                result[f"power {level:.0%} K={k} R={repeats}"] = lambda t, here=here: _mean(here, t)
    return result


def _worst(rows: list[dict], test: str) -> str:
    return f"{_mean(rows, test)} / {100 * max((r[test] for r in rows), default=np.nan):.1f}"


def _mean(rows: list[dict], test: str) -> str:
    return f"{100 * np.mean([r[test] for r in rows]):.1f}" if rows else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few tables; a few minutes")
    parser.add_argument("--only", help="situations whose learner has this in its name")
    parser.add_argument("--share", type=float, default=1.0, help="share of the tables of the full form")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    out = options.out or (None if options.quick else Path(__file__).parent / "results" / "verdicts.csv")
    sklearn.set_config(assume_finite=True, skip_parameter_validation=True)
    rows: list[dict] = []
    for s in situations():
        if options.only and options.only not in s.name:
            continue
        start = time.perf_counter()
        tables = max(4, int(s.tables * (0.05 if options.quick else options.share)))
        rows += rates(s, gathered(s, tables, options.seed))
        print(f"<!-- {s.name} n={s.n} J={s.folds} R={s.repeats} classes={s.classes}: "
              f"{tables} tables, {time.perf_counter() - start:.0f} s -->", flush=True)  # fmt: skip
        if out:
            with out.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
                writer.writeheader()
                for row in rows:
                    writer.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})
    print("\nError rate, % (any equal contender declared worse; mean / worst situation), and power, %\n")
    print(summary(rows, TESTS))
    print("\nError rate, %, by situation\n")
    print(table([r for r in rows if r["worse"] == 0], SHOWN))
    print("\nPower, %, by situation (5 % worse)\n")
    print(table([r for r in rows if r["worse"] == 0.05], SHOWN))
    rng = np.random.default_rng(options.seed)
    print("\nRotated ridge:", rotated(rng))
    print("Diverges in 2 of 5 folds:", diverging(rng))
    print("26 % worse, more and less, in every fold:", every_fold(rng))


if __name__ == "__main__":
    main()
