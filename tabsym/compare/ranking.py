"""The ranking: contenders that did all folds, by mean score; those that did not, on the folds they did."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.compare.verdicts import CONSTANT, Pair, judge

Floats = NDArray[np.float64]


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
            beyond = scores[row["name"]] - scores[CONSTANT]
            row["folds_worse_than_baseline"] = int((beyond < 0 if settings["larger_is_better"] else beyond > 0).sum())
            row["worse_than_baseline"] = bool(beyond.mean() < 0 if settings["larger_is_better"] else beyond.mean() > 0)
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
    folds = entry["folds"]
    return np.array([folds[key]["scores"][metric] for key in sorted(folds, key=int)])


def _row(settings: dict[str, Any], name: str, entry: dict[str, Any]) -> dict[str, Any]:
    folds = [entry["folds"][key] for key in sorted(entry["folds"], key=int)]
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
        "unweighted": any(fold["unweighted"] for fold in folds),
    }


def _mean_of(folds: list[dict[str, Any]], metric: str) -> float | None:
    """Over all folds; None where one of them has too few rows for the metric."""
    scores = [fold["scores"][metric] for fold in folds]
    return None if None in scores else float(np.mean(scores))
