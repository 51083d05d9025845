"""Results as they arrive: kept in one JSON file, written anew after every fold, with the predictions beside it."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.compare.ranking import rank

FORMAT = 3
_FIELDS = ("fit_seconds", "fit_cpu_seconds", "predict_seconds", "one_row_seconds", "peak_bytes", "model_bytes")


@dataclass
class Results:
    """Settings, and by contender: label, folds done, and what went wrong."""

    settings: dict[str, Any]
    contenders: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(
        self, name: str, label: str, fold: int, result: dict[str, Any],
        prediction: NDArray[np.float64] | None = None, folder: Path | None = None,
    ) -> None:  # fmt: skip
        """A fold's result, and its predictions in a file."""
        self.entry(name, label)["folds"][str(fold)] = result
        if prediction is not None and folder is not None:
            path = prediction_path(folder, name, fold)
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, prediction, allow_pickle=False)

    def fail(self, name: str, label: str, why: str) -> None:
        """Why a contender did not finish."""
        self.entry(name, label)["error"] = why

    def entry(self, name: str, label: str) -> dict[str, Any]:
        """What is known of a contender."""
        return self.contenders.setdefault(name, {"label": label, "folds": {}, "error": None})

    def save(self, folder: Path, ranking: list[dict[str, Any]] | None = None) -> None:
        """Write results.json and results.csv; a crash in the middle leaves the old files whole."""
        body = {"format": FORMAT, "settings": self.settings, "contenders": self.contenders}
        body["ranking"] = rank(self.settings, self.contenders) if ranking is None else ranking
        _replace(folder / "results.json", json.dumps(body, indent=1, ensure_ascii=False, default=str))
        rows = [
            [name, entry["label"], fold, metric, value, *(r.get(field) for field in _FIELDS)]
            for name, entry in self.contenders.items()
            for fold, r in entry["folds"].items()
            for metric, value in r["scores"].items()
        ]
        temporary = folder / "results.csv.part"
        temporary.unlink(missing_ok=True)
        with temporary.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["contender", "label", "fold", "metric", "score", *_FIELDS])
            writer.writerows(rows)
        temporary.replace(folder / "results.csv")


def prediction_path(folder: Path, name: str, fold: int) -> Path:
    """Where a contender's predictions of a fold's test rows are."""
    safe = "".join(c if c.isalnum() or c in "-_." else f"%{ord(c):x}" for c in name)
    safe = safe.replace(".", "%2e") if not safe.strip(".") else safe  # no other folder than its own
    return folder / "predictions" / safe / f"{fold}.npy"


def load_prediction(folder: Path, name: str, fold: int) -> NDArray[np.float64] | None:
    """Those predictions; None where the file is gone."""
    path = prediction_path(folder, name, fold)
    return np.load(path, allow_pickle=False) if path.exists() else None


def load_results(folder: Path) -> Results:
    """Read results.json back, to resume or to report.

    Raises
    ------
    ValueError
        It was written by another version of tabsym, or is not whole.
    """
    path = folder / "results.json"
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):  # no JSON, or no text
        body = None
    if isinstance(body, dict) and body.get("format", FORMAT) != FORMAT:
        raise ValueError(f"The results in {folder} are of another version of tabsym; choose another folder.")
    if not isinstance(body, dict) or not all(isinstance(body.get(part), dict) for part in ("settings", "contenders")):
        raise ValueError(f"{path} is damaged and cannot be gone on with; remove it, or choose another folder.")
    return Results(body["settings"], body["contenders"])


def _replace(path: Path, text: str) -> None:
    temporary = path.with_suffix(path.suffix + ".part")
    temporary.unlink(missing_ok=True)  # a link would lead elsewhere
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
