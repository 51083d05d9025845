"""What is to be predicted: the task that a target's values suggest, said in a sentence, and the target as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.frame import MAX_CLASSES, check_regression_target, kind_of_whole_numbers
from tabsym.validation import check_option

TASKS = ("binary", "multiclass", "regression", "count")
CLASSES = ("binary", "multiclass")

_AMOUNTS = "for a continuous target: --task regression"
_NAMES = "for classes: --task multiclass"
_EVENTS = "for counts of events: --task count"


@dataclass(frozen=True)
class Target:
    """The target of a comparison.

    `y`: for classes codes into `classes`, which hold the user's own values; else floats. `reading`: how the
    target was taken, and how to take it otherwise.
    """

    name: str
    task: str
    y: NDArray[Any]
    classes: NDArray[Any]
    reading: str


def read_target(values: pd.Series, name: str, task: str | None) -> Target:
    """The target, its task guessed where none is given.

    Raises
    ------
    ValueError
        The values do not fit the task.
    """
    name, values = str(name), values.infer_objects()
    if not len(values):
        raise ValueError(f"The target {name!r} is missing in every row; choose another target.")
    check_option("task", task, [*TASKS, None])
    if values.nunique() < 2:
        only = values.iloc[0]
        only = only.item() if isinstance(only, np.generic) else only
        raise ValueError(f"The target {name!r} has one value only ({only!r}); choose another target.")
    if is_number(values) and not np.isfinite(values.to_numpy(dtype=np.float64)).all():
        raise ValueError(f"The target {name!r} contains an infinite value; drop such rows.")
    guess, why = _guess(values, name)
    reading = f"Target {name!r}: {why}." if task is None else f"Target {name!r}: task {task!r}, as requested."
    task = task or guess
    if task in CLASSES:
        _check_classes(values, name, task)
        codes, classes = pd.factorize(values, sort=True)
        return Target(name, task, codes.astype(np.int64), np.asarray(classes), reading)
    return Target(name, task, _numbers(values, name, task), np.empty(0), reading)


def is_number(values: pd.Series) -> bool:
    """Whether a column holds numbers, booleans not among them."""
    return pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)


def _guess(values: pd.Series, name: str) -> tuple[str, str]:
    """The task, and why with the way to another."""
    distinct = values.nunique()
    if distinct == 2:
        shown = " and ".join(str(value) for value in sorted(values.unique(), key=str))
        return "binary", f"two values ({shown}), read as two classes" + (f"; {_AMOUNTS}" if is_number(values) else "")
    if not is_number(values):
        return "multiclass", f"{distinct} values that are not numbers, read as classes"
    numbers = values.to_numpy(dtype=np.float64)
    whole = bool(np.isfinite(numbers).all() and (numbers == np.round(numbers)).all())
    if not whole or distinct > MAX_CLASSES:
        further = f"; {_EVENTS}" if whole and numbers.min() >= 0 else ""
        further += f"; {_NAMES}" if distinct <= MAX_CLASSES else ""
        return "regression", f"{distinct:,} different numbers, read as a continuous target{further}"
    low, high = int(numbers.min()), int(numbers.max())
    few = f"{distinct} whole numbers from {low} to {high}"
    kind = kind_of_whole_numbers(numbers, name)
    if kind == "counts":
        return "count", f"{few}, most of them small, read as counts; {_AMOUNTS}, {_NAMES}"
    if kind == "ratings":
        return "regression", f"{few} in a row, read as ratings, that is as a continuous target; {_NAMES}, {_EVENTS}"
    return "multiclass", f"{few}, read as labels of {distinct} classes; {_AMOUNTS}, {_EVENTS}"


def _check_classes(values: pd.Series, name: str, task: str) -> None:
    distinct = values.nunique()
    if task == "binary" and distinct > 2:
        raise ValueError(f"The target {name!r} has {distinct} classes, so task='binary' does not fit.")
    if task == "multiclass" and distinct == 2:
        raise ValueError(f"The target {name!r} has two classes; use task='binary'.")
    if is_number(values) and distinct > max(MAX_CLASSES, len(values) // 2):
        raise ValueError(f"The target {name!r} has {distinct} numeric values; use task='regression'.")
    if not is_number(values) and distinct > max(MAX_CLASSES, len(values) // 10):
        raise ValueError(
            f"The target {name!r} is text with {distinct:,} different values in {len(values):,} rows "
            f"({_stranger(values)}), too many to be classes; if it is numeric, correct or clear such "
            "values, else choose another target."
        )


def _numbers(values: pd.Series, name: str, task: str) -> NDArray[np.float64]:
    if not is_number(values) and not pd.api.types.is_bool_dtype(values):
        raise ValueError(
            f"The target {name!r} is not numeric ({_stranger(values)}), so task={task!r} does not fit; "
            "correct or clear such values."
        )
    numbers = check_regression_target(values.to_numpy(dtype=np.float64), len(values), caller="compare")
    if task == "count" and numbers.min() < 0:
        raise ValueError(
            f"The target {name!r} contains {numbers.min():g}, and counts are 0 or more; use task='regression'."
        )
    return numbers


def _stranger(values: pd.Series) -> str:
    """A value that is no number, and its row."""
    strange = pd.to_numeric(values, errors="coerce").isna().to_numpy()
    place = int(np.argmax(strange))
    return f"such as {str(values.iloc[place])!r} in row {values.index[place]}"
