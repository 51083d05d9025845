"""Results as they arrive: kept in one JSON file, written anew after every fold, with the predictions beside it."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.compare.ranking import rank

FORMAT = 3
DIGEST = "digest"
_MOST_WORDS = 500
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
        if prediction is not None and folder is not None:
            path = prediction_path(folder, name, fold)
            path.parent.mkdir(parents=True, exist_ok=True)
            file = io.BytesIO()
            np.save(file, prediction, allow_pickle=False)
            _replace(path, file.getvalue())
            result = result | {DIGEST: digest_of(result, prediction)}
        self.entry(name, label)["folds"][str(fold)] = result

    def fail(self, name: str, label: str, why: str) -> None:
        """Why a contender did not finish: in one line that can be printed everywhere, whatever its code says."""
        words = why[: _MOST_WORDS - 1] + "…" if len(why) > _MOST_WORDS else why
        self.entry(name, label)["error"] = "".join(c if c.isprintable() else " " for c in words) or "an error"

    def entry(self, name: str, label: str) -> dict[str, Any]:
        """What is known of a contender."""
        return self.contenders.setdefault(name, {"label": label, "folds": {}, "error": None})

    def save(self, folder: Path, ranking: list[dict[str, Any]] | None = None) -> None:
        """Write results.json and results.csv; a crash in the middle leaves the old files whole."""
        body = {"format": FORMAT, "settings": self.settings, "contenders": self.contenders}
        body["ranking"] = rank(self.settings, self.contenders) if ranking is None else ranking
        _replace(folder / "results.json", _encoded(json.dumps(body, indent=1, ensure_ascii=False, default=str)))
        rows = [
            [name, entry["label"], fold, metric, value, *(r.get(field) for field in _FIELDS)]
            for name, entry in self.contenders.items()
            for fold, r in entry["folds"].items()
            for metric, value in r["scores"].items()
        ]
        file = io.StringIO(newline="")
        writer = csv.writer(file)
        writer.writerow(["contender", "label", "fold", "metric", "score", *_FIELDS])
        writer.writerows(rows)
        _replace(folder / "results.csv", _encoded(file.getvalue()))


def digest_of(result: dict[str, Any], prediction: NDArray[np.float64]) -> str:
    """Of a fold's result and its predictions: what is damaged later has another."""
    known = {name: value for name, value in result.items() if name != DIGEST}
    digest = hashlib.sha256(json.dumps(known, sort_keys=True, default=str).encode())
    digest.update(np.ascontiguousarray(prediction, dtype=np.float64).tobytes())
    return digest.hexdigest()[:16]


def check_places(folder: Path) -> None:
    """Look whether results can be written below `folder`, and nowhere else.

    Raises
    ------
    ValueError
        A folder of predictions is a link or a file, or a folder stands where a file is to be written.
    """
    predictions = folder / "predictions"
    _refuse(predictions, folder, "folder")
    for path in sorted(predictions.iterdir()) if predictions.is_dir() else []:
        _refuse(path, folder, "folder")
        for file in sorted(path.glob("*.npy*")):
            _refuse(file, folder, "file")
    for name in ("results.json", "results.csv", "report.html"):
        _refuse(folder / name, folder, "file")
        _refuse(folder / f"{name}.part", folder, "file")


def _refuse(path: Path, folder: Path, wanted: str) -> None:
    """`wanted`: "file", which may also be a link that is replaced, or "folder"."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if wanted == "file":
        link = stat.S_ISLNK(mode) and path.name != "report.html"  # which is written through
        if stat.S_ISREG(mode) or link:
            return
    elif stat.S_ISDIR(mode):
        return
    what = "a link to another place" if stat.S_ISLNK(mode) else "a folder" if stat.S_ISDIR(mode) else f"no {wanted}"
    raise ValueError(f"{path} is {what}; remove it, or choose another folder than {folder}.")


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
        body = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    except (ValueError, RecursionError, OSError):  # no JSON, no text, or not to be read
        body = None
    if isinstance(body, dict) and body.get("format", FORMAT) != FORMAT:
        raise ValueError(f"The results in {folder} were written by another version of tabsym; choose another folder.")
    if not isinstance(body, dict) or not all(isinstance(body.get(part), dict) for part in ("settings", "contenders")):
        raise ValueError(
            f"{path} is damaged, so that the comparison cannot be continued; remove the file, or choose another folder."
        )
    return Results(body["settings"], body["contenders"])


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", errors="backslashreplace")  # half a character of UTF-16, which JSON writes so, too


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_suffix(path.suffix + ".part")
    temporary.unlink(missing_ok=True)  # a link would lead elsewhere
    temporary.write_bytes(content)
    temporary.replace(path)
