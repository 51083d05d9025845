"""Results as they arrive: kept in one JSON file, written anew after every fold, and ranked."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from tabsym.compare.protocol import METRICS, Metric

FORMAT = 1
_FIELDS = ("fit_seconds", "predict_seconds", "peak_bytes", "model_bytes")


@dataclass
class Results:
    """Settings, and by contender: label, folds done, and what went wrong."""

    settings: dict[str, Any]
    contenders: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, name: str, label: str, fold: int, result: dict[str, Any]) -> None:
        entry = self.entry(name, label)
        entry["folds"][str(fold)] = result

    def fail(self, name: str, label: str, why: str) -> None:
        self.entry(name, label)["error"] = why

    def entry(self, name: str, label: str) -> dict[str, Any]:
        return self.contenders.setdefault(name, {"label": label, "folds": {}, "error": None})

    def save(self, folder: Path) -> None:
        """Write results.json and results.csv; a crash in the middle leaves the old files whole."""
        body = {"format": FORMAT, "settings": self.settings, "contenders": self.contenders}
        body["ranking"] = rank(self)
        _replace(folder / "results.json", json.dumps(body, indent=1, ensure_ascii=False))
        rows = [
            [name, entry["label"], fold, metric, value, *(r[field] for field in _FIELDS)]
            for name, entry in self.contenders.items()
            for fold, r in entry["folds"].items()
            for metric, value in r["scores"].items()
        ]
        temporary = folder / "results.csv.part"
        with temporary.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["contender", "label", "fold", "metric", "score", *_FIELDS])
            writer.writerows(rows)
        temporary.replace(folder / "results.csv")


def load_results(folder: Path) -> Results:
    """Read results.json back, to resume or to report."""
    body = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return Results(body["settings"], body["contenders"])


def _replace(path: Path, text: str) -> None:
    temporary = path.with_suffix(path.suffix + ".part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def rank(results: Results) -> list[dict[str, Any]]:
    """The ranking: complete contenders by mean score, best first, each against the best.

    The paired difference to the best is tested by the corrected resampled
    t-test (Nadeau and Bengio 2003), which allows for training sets that
    overlap; p-values are adjusted for the number of comparisons (Holm).
    """
    metric = METRICS[results.settings["task"]][results.settings["metric"]]
    n_folds = results.settings["n_splits"]
    complete = [name for name, entry in results.contenders.items() if len(entry["folds"]) == n_folds]
    sign = -1.0 if metric.larger_is_better else 1.0
    scores = {name: _scores(results, name, metric) for name in complete}
    complete.sort(key=lambda name: sign * scores[name].mean())
    rows = [_row(results, name, scores[name]) for name in complete]
    for row in rows[1:]:
        difference = scores[row["name"]] - scores[complete[0]]
        row["difference"] = float(difference.mean())
        row["p"] = corrected_t_test(difference, results.settings["test_share"])
    _adjust(rows[1:])
    return rows


def corrected_t_test(differences: np.ndarray, test_share: float) -> float:
    """Two-sided p of the mean of paired differences over J folds, variance times (1/J + n_test/n_train)."""
    folds = len(differences)
    spread = differences.std(ddof=1) if folds > 1 else 0.0
    if spread == 0:
        return 1.0 if differences.mean() == 0 else 0.0
    scale = spread * np.sqrt(1 / folds + test_share / (1 - test_share))
    return float(2 * stats.t.sf(abs(differences.mean()) / scale, folds - 1))


def _scores(results: Results, name: str, metric: Metric) -> np.ndarray:
    folds = results.contenders[name]["folds"]
    return np.array([folds[key]["scores"][metric.name] for key in sorted(folds, key=int)])


def _row(results: Results, name: str, scores: np.ndarray) -> dict[str, Any]:
    folds = results.contenders[name]["folds"].values()
    sizes = [r["model_bytes"] for r in folds if r["model_bytes"] is not None]
    return {
        "name": name,
        "label": results.contenders[name]["label"],
        "score": float(scores.mean()),
        "spread": float(scores.std(ddof=1)) if len(scores) > 1 else 0.0,
        "difference": 0.0,
        "p": None,
        "fit_seconds": float(np.median([r["fit_seconds"] for r in folds])),
        "predict_seconds": float(np.median([r["predict_seconds"] for r in folds])),
        "peak_bytes": int(max(r["peak_bytes"] for r in folds)),
        "model_bytes": int(np.median(sizes)) if sizes else None,
    }


def _adjust(rows: list[dict[str, Any]]) -> None:
    """Holm's adjustment of the p-values, in place."""
    running = 0.0
    by_p = sorted(rows, key=lambda row: row["p"])
    for place, row in enumerate(by_p):
        running = max(running, min(1.0, row["p"] * (len(by_p) - place)))
        row["p_adjusted"] = running
