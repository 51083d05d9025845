"""A damaged folder is mended fold by fold: what is not whole is forgotten, with a sentence, and run anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tabsym.compare.events import read_prediction, wrong_with
from tabsym.compare.processes import Course
from tabsym.compare.results import Results, prediction_path


def mend(results: Results, folder: Path, course: Course) -> list[str]:
    """Forget what is damaged in `results`; a sentence for each.

    Raises
    ------
    ValueError
        A part of the folder is a link, so that predictions would be written elsewhere.
    """
    said = []
    for name in list(results.contenders):
        entry = results.contenders[name]
        if not isinstance(entry, dict) or not isinstance(entry.get("label"), str) or not _is_dict(entry.get("folds")):
            del results.contenders[name]
            said.append(f"{name}: its entry in results.json is damaged and forgotten; it is run anew if asked for.")
            continue
        _refuse_links(prediction_path(folder, name, 0).parent, folder)
        entry["error"] = None
        for fold in list(entry["folds"]):
            why = _wrong(entry["folds"][fold], fold, prediction_path(folder, name, _number(fold, course)), course)
            if why:
                del entry["folds"][fold]
                said.append(f"{name}: its fold {fold!r} is forgotten and run anew if asked for: {why}.")
    return said


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def _number(fold: str, course: Course) -> int:
    """The number of a fold; -1 where there is no such fold."""
    return next((number for number in range(len(course.splits)) if str(number) == fold), -1)


def _refuse_links(parent: Path, folder: Path) -> None:
    for path in (parent, parent.parent):
        if path.is_symlink():
            raise ValueError(f"{path} is a link to elsewhere; remove it, or choose another folder than {folder}.")


def _wrong(result: Any, fold: str, path: Path, course: Course) -> str | None:
    number = _number(fold, course)
    if number < 0:
        return "there is no such fold"
    why = "its entry in results.json is damaged"
    if not isinstance(result, dict) or "error" in result or wrong_with(result | {"fold": number}, [number]):
        return why
    scores = result.get("scores")
    if not isinstance(scores, dict) or course.metric.name not in scores:
        return why
    if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in scores.values()):
        return why
    if not np.isfinite(scores[course.metric.name]):
        return why
    for totals in (result.get("observed"), result.get("predicted")):
        if not isinstance(totals, list) or not all(isinstance(one, int | float) for one in totals):
            return why
    try:
        read_prediction(path, len(course.splits[number][1]), len(course.prepared.classes))
    except ValueError as error:
        if path.is_symlink():
            path.unlink()  # the link alone
        return str(error)
    return None
