"""What was asked for, as it is written down; and the folder whose results are of the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tabsym.compare.contenders import Contender
from tabsym.compare.facts import facts_of, fingerprint_of_splits
from tabsym.compare.machine import threads_of_each
from tabsym.compare.metrics import METRICS
from tabsym.compare.processes import Course
from tabsym.compare.results import Results, check_places, load_results
from tabsym.compare.splits import Split
from tabsym.compare.tuning import read_budget

_SAME = (
    "target", "task", "metric", "folds", "repeats", "split", "split_column", "weight", "exposure", "offset", "seed",
    "tune", "data", "splits",
)  # fmt: skip
_HASHED = {"data": "the rows or columns differ", "splits": "the rows of the folds differ"}


def settings_of(course: Course, table: str) -> dict[str, Any]:
    """What was asked for and what it rests on, as it is written down."""
    prepared, plan = course.prepared, course.plan
    budget = read_budget(course.tune)
    options = {
        "table": table,
        "target": prepared.target.name,
        "metric": course.metric.name,
        "metrics": list(dict.fromkeys([*METRICS[prepared.task], course.metric.name])),
        "larger_is_better": course.metric.larger_is_better,
        "folds": plan.folds,
        "repeats": plan.repeats,
        "n_splits": len(course.splits),
        "test_over_train": _test_over_train(course.splits),
        "split": plan.how,
        "split_column": plan.column,
        "splits": fingerprint_of_splits(course.splits),
        **{role: getattr(prepared.roles, role) for role in ("weight", "exposure", "offset")},
        "tune": None if budget is None else str(budget),
        "seed": course.seed,
        "jobs": course.jobs,
        "threads": threads_of_each(course.jobs, course.threads),
        "time_limit": course.time_limit,
        "memory_limit": course.memory_limit,
    }
    return options | facts_of(prepared)


def _test_over_train(splits: Sequence[Split]) -> float:
    return float(np.mean([len(test) / len(train) for train, test in splits]))


def open_folder(out: str | Path | None, name: str, resume: bool) -> Path:
    """The folder for results, made if need be; a new one each time where none is asked for.

    Raises
    ------
    ValueError
        It holds results already, and they are not to be resumed; or it cannot be made.
    """
    if out is not None:
        folder = Path(out)
        if (folder / "results.json").exists() and not resume:
            raise ValueError(
                f"{folder} contains results already; use resume (--resume) to continue them, or choose another folder."
            )
    else:
        folder = Path(f"tabsym-compare-{name}")
        number = 1
        while (folder / "results.json").exists() and not resume:
            number += 1
            folder = Path(f"tabsym-compare-{name}-{number}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"The folder {str(folder)!r} for results cannot be made ({error.strerror}); name another by out (--out)."
        ) from None
    return folder


def begin(folder: Path, settings: dict[str, Any], resume: bool) -> Results:
    """New results, or those in the folder to go on with.

    Raises
    ------
    ValueError
        Those in the folder are of another comparison, or the folder cannot hold results.
    """
    check_places(folder)
    if not resume or not (folder / "results.json").exists():
        return Results(settings)
    old = load_results(folder)
    for key in _SAME:
        if old.settings.get(key) != settings[key]:
            what = _HASHED.get(key, f"{key}: {_shown(old.settings.get(key))}, now {settings[key]!r}")
            raise ValueError(
                f"The results in {folder} are of a comparison with other settings ({what}); use the same settings, or "
                "choose another folder."
            )
    for entry in old.contenders.values():
        if isinstance(entry, dict):
            entry["error"] = None  # tried again
    return Results(settings, old.contenders)


def _shown(value: Any) -> str:
    """A setting as it is read, whatever it is."""
    simple = value is None or isinstance(value, str | int | float)
    return f"{value!r:.100}" if simple else "something else"


def forget_changed(results: Results, chosen: Sequence[Contender]) -> list[str]:
    """Drop the folds of contenders of the user's own that are made by something else now; a sentence for each."""
    said = []
    for contender in chosen:
        entry = results.entry(contender.name, contender.label)
        entry["label"] = contender.label
        why = _changed(entry, contender) if entry["folds"] else None
        if why is not None:
            entry["folds"] = {}
            said.append(f"{contender.name} is run again: {why}.")
        entry["address"], entry["made_by"] = contender.address, contender.made_by
    return said


def _changed(entry: dict[str, Any], contender: Contender) -> str | None:
    """What has changed since the folds that are there, if anything; what earlier versions wrote does not say."""
    before, now = entry.get("address"), contender.address
    if before != now:
        return f"it was {before or 'an estimator'}, and is {now or 'an estimator'} now"
    what = "the estimator or its space" if now is None else f"the code of {now.partition(':')[0]}"
    if not contender.raw or "made_by" not in entry:
        return None
    if contender.made_by is None:
        return f"whether {what} has changed is unknown"
    return f"{what} has changed" if entry["made_by"] != contender.made_by else None
