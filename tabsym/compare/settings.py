"""What was asked for, as it is written down; and the folder whose results are of the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tabsym.compare.facts import facts_of
from tabsym.compare.metrics import METRICS
from tabsym.compare.processes import Course
from tabsym.compare.results import Results, load_results
from tabsym.compare.splits import Split
from tabsym.compare.tuning import read_budget

_SAME = ("target", "task", "metric", "folds", "repeats", "split", "split_column", "seed", "tune", "data")


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
        **{role: getattr(prepared.roles, role) for role in ("weight", "exposure", "offset")},
        "tune": None if budget is None else str(budget),
        "seed": course.seed,
        "jobs": course.jobs,
        "time_limit": course.time_limit,
    }
    return options | facts_of(prepared)


def _test_over_train(splits: Sequence[Split]) -> float:
    return float(np.mean([len(test) / len(train) for train, test in splits]))


def open_folder(out: str | Path | None, name: str, resume: bool) -> Path:
    """The folder for results, made if need be; a new one each time where none is asked for.

    Raises
    ------
    ValueError
        It holds results already, and they are not to be resumed.
    """
    if out is not None:
        folder = Path(out)
        if (folder / "results.json").exists() and not resume:
            raise ValueError(f"{folder} holds results already; use resume (--resume) to go on, or another folder.")
    else:
        folder = Path(f"tabsym-compare-{name}")
        number = 1
        while (folder / "results.json").exists() and not resume:
            number += 1
            folder = Path(f"tabsym-compare-{name}-{number}")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def begin(folder: Path, settings: dict[str, Any], resume: bool) -> Results:
    """New results, or those in the folder to go on with.

    Raises
    ------
    ValueError
        Those in the folder are of another comparison.
    """
    if not resume or not (folder / "results.json").exists():
        return Results(settings)
    old = load_results(folder)
    for key in _SAME:
        if old.settings[key] != settings[key]:
            what = f"{key}: {old.settings[key]!r}, now {settings[key]!r}"
            if key == "data":
                what = "the rows or columns differ"
            raise ValueError(
                f"The results in {folder} are of another comparison ({what}); use the same settings, or another folder."
            )
    for entry in old.contenders.values():
        entry["error"] = None  # tried again
    return Results(settings, old.contenders)
