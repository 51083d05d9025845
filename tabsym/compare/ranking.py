"""The ranking by mean score: differences to the best, tested, with an interval and a label by their significance.

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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Floats = NDArray[np.float64]

CONSTANT = "constant"
"""The name of the baseline, from which gains are measured."""
BEST, WORSE, EQUIVALENT = "best", "worse", "practically equivalent"
UNADJUSTED = "worse before adjustment for multiple comparisons"
UNSTABLE, INCONCLUSIVE = "unstable across folds", "no significant difference"
MARGIN = 0.01
"""Of the best's gain over the baseline: a smaller difference is practically none."""
_FOLD_APART = 0.2  # of the standard deviation over folds: what is left of it without the one fold


def judge(
    rows: list[dict[str, Any]], scores: dict[str, Floats], pairs: dict[str, Pair], settings: dict[str, Any]
) -> None:
    """Add to each row of a ranking, best first: its difference with an interval, p-values, and a label (`verdict`).

    `BEST`; `EQUIVALENT`: the interval is within `MARGIN` of the best's gain over the baseline, significant or not;
    `WORSE`: significant after adjustment for all pairs; `UNADJUSTED`: significant before adjustment only; `UNSTABLE`:
    not significant because scores vary so much over folds: worse than the baseline in some where the best is not, where
    the baseline is worse than the best overall; `INCONCLUSIVE`: none of these.

    `gain`: the best's gain over the baseline, the unit of all differences; None where there is no baseline or no
    significant gain. `outlying_fold`: the fold whose difference alone makes the interval wide.
    """
    for row in rows:
        row |= {"verdict": BEST, "p": None, "p_adjusted": None, "low": 0.0, "high": 0.0, "gain": None}
    if len(rows) < 2:
        return
    best, others = rows[0]["name"], [row["name"] for row in rows[1:]]
    tests = _tests(scores, best, others, pairs, settings)
    margin = 0.0  # where there is no baseline
    if CONSTANT in scores and best != CONSTANT:
        margin = MARGIN * abs(float(scores[best].mean() - scores[CONSTANT].mean()))
    for position, row in enumerate(rows[1:]):
        for what in ("p", "p_adjusted", "difference", "low", "high"):
            row[what] = float(getattr(tests, what)[position])
        if max(abs(row["low"]), abs(row["high"])) <= margin:
            row["verdict"] = EQUIVALENT
        elif row["p_adjusted"] < ALPHA:
            row["verdict"] = WORSE
        else:
            row["verdict"] = UNADJUSTED if row["p"] < ALPHA else INCONCLUSIVE
    if any(row["name"] == CONSTANT and row["verdict"] == WORSE for row in rows):
        for row in rows[1:]:
            if row["verdict"] != WORSE and row.get("folds_unstable"):
                row["verdict"] = UNSTABLE
    baseline, gain = baseline_in(rows), margin / MARGIN
    significant = baseline is not None and baseline["p"] is not None and baseline["p"] < ALPHA
    for row in rows:
        row["gain"] = gain if significant and gain > ROUNDING * abs(float(scores[best].mean())) else None
        inconclusive = row["verdict"] == INCONCLUSIVE
        row["outlying_fold"] = outlying_fold(scores[row["name"]] - scores[best]) if inconclusive else None


def baseline_in(ranking: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The row of the baseline in a ranking, if it is there."""
    return next((row for row in ranking if row["name"] == CONSTANT), None)


def outlying_fold(differences: Floats) -> int | None:
    """The fold (from 1) without which the differences hardly vary any more; None where there is none."""
    if len(differences) < 3 or differences.std() == 0:
        return None
    left = np.array([np.delete(differences, fold).std(ddof=1) for fold in range(len(differences))])
    fold = int(left.argmin())
    return fold + 1 if left[fold] < _FOLD_APART * differences.std(ddof=1) else None


def _tests(
    scores: dict[str, Floats], best: str, others: list[str], pairs: dict[str, Pair], settings: dict[str, Any]
) -> Tests:
    """Of differences; over time, where losses grow or fall with what is predicted, p-values are of their ratios."""
    scale = np.array([np.abs(scores[name]).mean() + np.abs(scores[best]).mean() for name in others])
    differences = np.array([scores[name] - scores[best] for name in others])
    tests = against_best(differences, [pairs.get(name) for name in others], settings["test_over_train"], scale)
    positive = all((scores[name] > 0).all() for name in (best, *others))
    if settings["split"] == "time" and positive and not settings["larger_is_better"]:
        ratios = np.log(np.array([scores[name] / scores[best] for name in others]))
        of_ratios = against_best(ratios, [None] * len(others), settings["test_over_train"], np.ones(len(others)))
        return replace(tests, p=of_ratios.p, p_adjusted=of_ratios.p_adjusted)
    return tests


def rank(
    settings: dict[str, Any], contenders: dict[str, dict[str, Any]], pairs: dict[str, Pair] | None = None
) -> list[dict[str, Any]]:
    """Complete contenders, best mean score first, each with its difference to the best.

    With `pairs`, by contender the variance over rows of its difference to the best, also its significance.
    """
    names = complete(settings, contenders)
    rows = [_row(settings, name, contenders[name]) for name in names]
    scores = {name: scores_of(contenders[name], settings["metric"]) for name in names}
    for row in rows:
        difference = scores[row["name"]] - scores[names[0]]
        row["difference"], row["best_score"] = float(difference.mean()), rows[0]["score"]
        worse = difference < 0 if settings["larger_is_better"] else difference > 0
        row["folds_lost"] = int(worse.sum())
        row["folds_won"] = int((difference != 0).sum() - worse.sum())
        if CONSTANT in scores and row["name"] != CONSTANT:
            sign = -1.0 if settings["larger_is_better"] else 1.0
            beyond, of_best = (sign * (scores[name] - scores[CONSTANT]) for name in (row["name"], names[0]))
            row["folds_worse_than_baseline"] = int((beyond > 0).sum())
            row["folds_unstable"] = int(((beyond > 0) & (of_best <= 0)).sum())
            row["worse_than_baseline"] = bool(beyond.mean() > 0)
    if pairs is not None:
        judge(rows, scores, pairs, settings)
    return rows


def complete(settings: dict[str, Any], contenders: dict[str, dict[str, Any]]) -> list[str]:
    """Names of those that did all folds, best first."""
    names = [name for name, entry in contenders.items() if len(entry["folds"]) == settings["n_splits"]]
    sign = -1.0 if settings["larger_is_better"] else 1.0
    return sorted(names, key=lambda name: sign * scores_of(contenders[name], settings["metric"]).mean())


def partial(settings: dict[str, Any], contenders: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that completed some folds, compared with the best of the ranking on the same folds."""
    best = complete(settings, contenders)[:1]
    metric, out = settings["metric"], []
    for entry in contenders.values():
        if not 0 < len(entry["folds"]) < settings["n_splits"]:
            continue
        row: dict[str, Any] = {"label": entry["label"], "folds": len(entry["folds"]), "error": entry["error"]}
        row["score"] = float(scores_of(entry, metric).mean())
        if best:
            same = {fold: contenders[best[0]]["folds"][fold] for fold in entry["folds"]}
            row["best"] = contenders[best[0]]["label"]
            row["best_score"] = float(scores_of({"folds": same}, metric).mean())
        out.append(row)
    return out


def scores_of(entry: dict[str, Any], metric: str) -> Floats:
    """One contender's scores, fold by fold."""
    return np.array([fold["scores"][metric] for fold in _folds_of(entry)])


def _folds_of(entry: dict[str, Any]) -> list[dict[str, Any]]:
    return [entry["folds"][key] for key in sorted(entry["folds"], key=int)]


def _row(settings: dict[str, Any], name: str, entry: dict[str, Any]) -> dict[str, Any]:
    folds = _folds_of(entry)
    scores = scores_of(entry, settings["metric"])

    def median(what: str) -> float:
        return float(np.median([fold[what] for fold in folds]))

    sizes = [fold["model_bytes"] for fold in folds if fold["model_bytes"] is not None]
    observed = np.sum([fold["observed"] for fold in folds], axis=0)
    predicted = np.sum([fold["predicted"] for fold in folds], axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        totals = np.where(observed != 0, predicted / observed, np.nan)
    by_metric = {metric: [fold["scores"][metric] for fold in folds] for metric in folds[0]["scores"]}
    return {
        "name": name,
        "label": entry["label"],
        "score": float(scores.mean()),
        "sd": float(scores.std(ddof=1)) if len(scores) > 1 else 0.0,
        # None where a fold has too few rows for the metric
        "scores": {
            name: None if None in of_folds else float(np.mean(of_folds)) for name, of_folds in by_metric.items()
        },
        "totals": [None if np.isnan(total) else float(total) for total in totals],
        "fit_seconds": median("fit_seconds"),
        "fit_cpu_seconds": median("fit_cpu_seconds"),
        "busy": sum(bool(fold.get("busy")) for fold in folds) > len(folds) / 2,
        "predict_seconds": median("predict_seconds"),
        "predict_row_seconds": median("predict_row_seconds"),
        "one_row_seconds": median("one_row_seconds"),
        "peak_bytes": int(max(fold["peak_bytes"] for fold in folds)),
        "model_bytes": int(np.median(sizes)) if sizes else None,
        "tune_seconds": median("tune_seconds") if "tune_seconds" in folds[0] else None,
        "tried": min(fold["tried"] for fold in folds) if "tried" in folds[0] else None,
        "untuned": sum(1 < fold.get("tried", 0) <= fold["failed"] + 1 for fold in folds),
        "unweighted": any(fold["unweighted"] for fold in folds),
    }


# -- tests of contenders against the best -----------------------------------------------------------

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
    means = [float(np.average(difference, weights=w)) for difference, w in zip(differences, weights, strict=True)]
    within = []
    for difference, w, mean, test in zip(differences, weights, means, tests, strict=True):
        off = w / w.sum() * (difference - (mean if clusters is None else np.mean(means)))
        units, position = np.unique(test if clusters is None else clusters[test], return_inverse=True)
        share = np.bincount(position, off)  # a unit's share of its fold's score, less the mean
        n_free = len(units) - 1 if clusters is None else len(units)
        within.append(float((share**2).sum()) * len(units) / max(n_free, 1))
        total[units] += share
        times[units] += 1
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
        The size of the scores, compared with which a difference can be rounding.
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
    freedoms = np.full(len(scatter), max(freedom, 1.0))
    if known.sum() < 3 or freedom < 1:
        return scatter, freedoms
    ratio = np.clip(scatter[known] / explained[known], _MIN_RATIO, _MAX_RATIO)
    logs = np.log(ratio) - special.digamma(freedom / 2) + np.log(freedom / 2)
    beyond = float(np.log(ratio).var(ddof=1) - special.polygamma(1, freedom / 2))
    more = _MAX_FREEDOM if beyond <= 0 else min(2 * _inverse_trigamma(beyond), _MAX_FREEDOM)
    out = scatter.copy()
    out[known] = (more * np.exp(logs.mean()) * explained[known] + freedom * scatter[known]) / (more + freedom)
    freedoms[known] += more
    return out, freedoms


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
