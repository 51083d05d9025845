"""The ranking by mean score: differences to the best, with an interval and a label by their significance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.compare.significance import ALPHA, ROUNDING, Pair, Tests, against_best

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
    _add_units(rows, scores, margin / MARGIN)


def _add_units(rows: list[dict[str, Any]], scores: dict[str, Floats], gain: float) -> None:
    """The gain that differences are given in percent of, and the one fold that makes an interval wide."""
    baseline = baseline_in(rows)
    significant = baseline is not None and baseline["p"] is not None and baseline["p"] < ALPHA
    best = scores[rows[0]["name"]]
    for row in rows:
        row["gain"] = gain if significant and gain > ROUNDING * abs(float(best.mean())) else None
        row["outlying_fold"] = None
        if row["verdict"] == INCONCLUSIVE:
            row["outlying_fold"] = outlying_fold(scores[row["name"]] - best)


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
        one: dict[str, Any] = {"label": entry["label"], "folds": len(entry["folds"]), "error": entry["error"]}
        one["score"] = float(scores_of(entry, metric).mean())
        if best:
            same = {fold: contenders[best[0]]["folds"][fold] for fold in entry["folds"]}
            one |= {
                "best": contenders[best[0]]["label"],
                "best_score": float(scores_of({"folds": same}, metric).mean()),
            }
        out.append(one)
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
    return {
        "name": name,
        "label": entry["label"],
        "score": float(scores.mean()),
        "sd": float(scores.std(ddof=1)) if len(scores) > 1 else 0.0,
        "scores": {metric: _mean_of(folds, metric) for metric in folds[0]["scores"]},
        "totals": [None if np.isnan(one) else float(one) for one in totals],
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


def _mean_of(folds: list[dict[str, Any]], metric: str) -> float | None:
    """Over all folds; None where one of them has too few rows for the metric."""
    scores = [fold["scores"][metric] for fold in folds]
    return None if None in scores else float(np.mean(scores))
