"""Repair of a damaged folder: folds that are not complete are ignored, with a message, and run again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tabsym.compare.events import is_number, read_prediction, wrong_with
from tabsym.compare.processes import Course
from tabsym.compare.results import DIGEST, Results, digest_of, prediction_path
from tabsym.compare.scores import score_fold

_KNOWN = ("label", "folds", "error", "address", "made_by")  # of a contender; anything else is passed over
_DAMAGED = "its entry in results.json is damaged"
_CLOSE = 1e-9


def mend(results: Results, folder: Path, course: Course) -> list[str]:
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
            why = _wrong(entry["folds"][fold], fold, name, folder, course)
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
    if not all(isinstance(entry.get(key), str | None) for key in ("address", "made_by")):
        return False
    texts = [name, entry.get("label"), *(entry.get(key) or "" for key in ("address", "made_by"))]
    if not all(isinstance(text, str) for text in texts) or any(_is_half(text) for text in texts):
        return False
    return len(prediction_path(Path(), name, 0).parent.name) < 255


def _is_half(text: Any) -> bool:
    """Whether it has half a character of UTF-16, which no file can hold."""
    return any("\ud800" <= c <= "\udfff" for c in text)


def _wrong(result: Any, fold: str, name: str, folder: Path, course: Course) -> str | None:
    """Why a fold is not what was written, if it is not."""
    number = next((number for number in range(len(course.splits)) if str(number) == fold), None)
    if number is None:
        return "there is no such fold"
    path = prediction_path(folder, name, number)
    try:
        rows = course.splits[number][1]
        prediction = read_prediction(path, len(rows), len(course.prepared.classes))
    except ValueError as error:
        if path.is_symlink():
            path.unlink()  # the link alone
        return str(error)
    if not _is_result(result, number, course):
        return _DAMAGED
    if DIGEST in result:
        return None if result[DIGEST] == digest_of(result, prediction) else "its entry or its prediction was changed"
    try:  # of an earlier version
        scored = score_fold(course.prepared, rows, prediction, course.metric)
    except Exception:  # the user's own metric may raise anything
        return "its prediction cannot be scored"
    if not all(_close(result[part], scored[part]) for part in scored):
        return "its scores do not match its prediction"
    result |= scored
    return None


def _is_result(result: Any, number: int, course: Course) -> bool:
    """Whether this has all that a fold's result has, and of the right types."""
    if not isinstance(result, dict) or "error" in result or wrong_with(result | {"fold": number}, [number]):
        return False
    if (course.tune is not None) != ("params" in result):
        return False
    scores, totals = result.get("scores"), [result.get("observed"), result.get("predicted")]
    if not isinstance(scores, dict) or not is_number(scores.get(course.metric.name)):
        return False
    if not all(score is None or is_number(score) for score in scores.values()):
        return False
    return all(isinstance(total, list) and all(map(is_number, total)) for total in totals)


def _close(old: Any, new: Any) -> bool:
    """Whether scores or totals are those computed now, rounding apart."""
    if isinstance(new, dict):
        return list(old) == list(new) and _close(list(old.values()), list(new.values()))
    if len(old) != len(new) or [one is None for one in old] != [one is None for one in new]:
        return False
    known = [(a, b) for a, b in zip(old, new, strict=True) if a is not None]
    return all(bool(np.isclose(a, b, rtol=_CLOSE, atol=_CLOSE)) for a, b in known)
