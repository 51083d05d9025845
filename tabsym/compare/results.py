"""Results as they arrive: kept in one JSON file, written anew after every fold, next to the predictions.

Read back, folds of a damaged folder that are not complete are ignored, with a message, and run again. The predictions
give the contribution of each test row to the difference of two contenders, for its variance over rows.
"""

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

from tabsym.compare.job import MEASURED, RunConfig, is_number, read_prediction, wrong_with
from tabsym.compare.metrics import Metric, score_fold
from tabsym.compare.ranking import Pair, pair_of_rows, rank
from tabsym.compare.splits import Split
from tabsym.compare.table.prepare import Prepared
from tabsym.compare.text import MAX_FOLDER_NAME, folder_name

FORMAT = 3
DIGEST = "digest"
_MAX_WORDS = 500


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
        words = why[: _MAX_WORDS - 1] + "…" if len(why) > _MAX_WORDS else why
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
            [name, entry["label"], fold, metric, value, *(r.get(field) for field in MEASURED)]
            for name, entry in self.contenders.items()
            for fold, r in entry["folds"].items()
            for metric, value in r["scores"].items()
        ]
        file = io.StringIO(newline="")
        writer = csv.writer(file)
        writer.writerow(["contender", "label", "fold", "metric", "score", *MEASURED])
        writer.writerows(rows)
        _replace(folder / "results.csv", _encoded(file.getvalue()))


def digest_of(result: dict[str, Any], prediction: NDArray[np.float64]) -> str:
    """Of a fold's result and its predictions: what is damaged later has another."""
    known = {name: value for name, value in result.items() if name != DIGEST}
    digest = hashlib.sha256(json.dumps(known, sort_keys=True, default=str).encode())
    digest.update(np.ascontiguousarray(prediction, dtype=np.float64).tobytes())
    return digest.hexdigest()[:16]


def check_paths(folder: Path) -> None:
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
    return folder / "predictions" / folder_name(name) / f"{fold}.npy"


def load_prediction(folder: Path, name: str, fold: int) -> NDArray[np.float64] | None:
    """Those predictions; None where the file is gone."""
    path = prediction_path(folder, name, fold)
    return np.load(path, allow_pickle=False) if path.exists() else None


def load_predictions(folder: Path, name: str, splits: list[Split]) -> list[NDArray[np.float64]] | None:
    """The predictions of all folds; None where one is gone, or is of other rows."""
    predictions = []
    for fold, (_, test) in enumerate(splits):
        prediction = load_prediction(folder, name, fold)
        if prediction is None or len(prediction) != len(test):
            return None
        predictions.append(prediction)
    return predictions


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


Floats = NDArray[np.float64]


def pairs_with(
    best: str, others: list[str], prepared: Prepared, splits: list[Split], metric: Metric, folder: Path,
    clusters: NDArray[np.int64] | None = None,
) -> dict[str, Pair]:  # fmt: skip
    """By contender, how its rows differ from the best's; without those whose predictions or rows cannot be had.

    `clusters` (n,): groups or categories that are held out whole, which then are the sampling units instead of rows.
    """
    if metric.by_row is None:
        return {}
    mine = _by_row(best, prepared, splits, metric, folder)
    if mine is None:
        return {}
    pairs, tests = {}, [test for _, test in splits]
    for name in others:
        theirs = _by_row(name, prepared, splits, metric, folder)
        if theirs is not None:
            differences = [b - a for a, b in zip(mine, theirs, strict=True)]
            pairs[name] = pair_of_rows(differences, prepared.weight, tests, clusters)
    return pairs


def clustered_errors(
    names: list[str], prepared: Prepared, splits: list[Split], metric: Metric, folder: Path, clusters: NDArray[np.int64]
) -> dict[str, float]:
    """By contender, the standard error of its score that comes from the choice of groups or categories."""
    errors, tests = {}, [test for _, test in splits]
    for name in names if metric.by_row is not None else []:
        scores = _by_row(name, prepared, splits, metric, folder)
        if scores is not None:
            errors[name] = float(np.sqrt(pair_of_rows(scores, prepared.weight, tests, clusters).rows))
    return errors


def _by_row(name: str, prepared: Prepared, splits: list[Split], metric: Metric, folder: Path) -> list[Floats] | None:
    """What each test row of each fold adds to a contender's score."""
    assert metric.by_row is not None
    predictions = load_predictions(folder, name, splits)
    if predictions is None:
        return None
    weights = [None if prepared.weight is None else prepared.weight[test] for _, test in splits]
    tests = (test for _, test in splits)
    return [metric.by_row(prepared.y[test], p, w) for test, p, w in zip(tests, predictions, weights, strict=True)]


_MADE_BY = ("address", "made_by", "versions")
_KNOWN = ("label", "folds", "error", *_MADE_BY)  # of a contender; anything else is passed over
_DAMAGED = "its entry in results.json is damaged"
_CLOSE = 1e-9


def mend(results: Results, folder: Path, config: RunConfig) -> list[str]:
    """Forget what is damaged in `results`, which `settings.begin` read; a sentence for each."""
    said = []
    for name in list(results.contenders):
        entry = results.contenders[name]
        if not _is_entry(name, entry):
            del results.contenders[name]
            said.append(f"{_short(name)}: {_DAMAGED[4:]} and is ignored; the contender is run again if it is chosen.")
            continue
        entry = results.contenders[name] = {key: entry[key] for key in _KNOWN if key in entry} | {"error": None}
        for fold in list(entry["folds"]):
            why = _wrong(entry["folds"][fold], fold, name, folder, config)
            if why:
                del entry["folds"][fold]
                said.append(
                    f"{_short(name)}: fold {_short(fold)} is ignored and run again if the contender is chosen: {why}."
                )
    return said


def _short(text: str) -> str:
    return text if text.isprintable() and len(text) <= 60 else f"{text!a:.60}"


def _is_entry(name: str, entry: Any) -> bool:
    """Whether this is a contender's entry, and its name one that a folder can have."""
    if not isinstance(entry, dict) or not isinstance(entry.get("folds"), dict):
        return False
    if not all(isinstance(entry.get(key), str | None) for key in _MADE_BY):
        return False
    texts: list[Any] = [name, entry.get("label"), *(entry.get(key) or "" for key in _MADE_BY)]
    if not all(isinstance(text, str) for text in texts):
        return False
    if any("\ud800" <= c <= "\udfff" for text in texts for c in text):  # half a character of UTF-16: no file holds it
        return False
    return len(folder_name(name).encode()) <= MAX_FOLDER_NAME


def _wrong(result: Any, fold: str, name: str, folder: Path, config: RunConfig) -> str | None:
    """Why a fold is not what was written, if it is not."""
    number = next((number for number in range(len(config.splits)) if str(number) == fold), None)
    if number is None:
        return "there is no such fold"
    path = prediction_path(folder, name, number)
    try:
        rows = config.splits[number][1]
        prediction = read_prediction(path, len(rows), len(config.prepared.classes))
    except ValueError as error:
        if path.is_symlink():
            path.unlink()  # the link alone
        return str(error)
    if not _is_result(result, number, config):
        return _DAMAGED
    if DIGEST in result:
        return None if result[DIGEST] == digest_of(result, prediction) else "its entry or its prediction was changed"
    try:  # of an earlier version
        scored = score_fold(config.prepared, rows, prediction, config.metric)
    except Exception:  # the user's own metric may raise anything
        return "its prediction cannot be scored"
    if not all(_close(result[part], scored[part]) for part in scored):
        return "its scores do not match its prediction"
    result |= scored
    return None


def _is_result(result: Any, number: int, config: RunConfig) -> bool:
    """Whether this has all that a fold's result has, and of the right types."""
    if not isinstance(result, dict) or "error" in result or wrong_with(result | {"fold": number}, [number]):
        return False
    if (config.tune is not None) != ("params" in result):
        return False
    scores, totals = result.get("scores"), [result.get("observed"), result.get("predicted")]
    if not isinstance(scores, dict) or not is_number(scores.get(config.metric.name)):
        return False
    if not all(score is None or is_number(score) for score in scores.values()):
        return False
    return all(isinstance(total, list) and all(map(is_number, total)) for total in totals)


def _close(old: Any, new: Any) -> bool:
    """Whether scores or totals are those computed now, rounding apart."""
    if isinstance(new, dict):
        return list(old) == list(new) and _close(list(old.values()), list(new.values()))
    if len(old) != len(new) or [score is None for score in old] != [score is None for score in new]:
        return False
    known = [(a, b) for a, b in zip(old, new, strict=True) if a is not None]
    return all(bool(np.isclose(a, b, rtol=_CLOSE, atol=_CLOSE)) for a, b in known)
