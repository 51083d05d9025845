"""Events of a worker: a pipe of their own, apart from whatever the user's code prints, and a check of every one."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

_LONGEST = 1 << 20
_OFF = 1e-3
_NUMBERS = (
    "fit_seconds", "fit_cpu_seconds", "predict_seconds", "predict_row_seconds", "one_row_seconds", "peak_bytes",
    "model_bytes",
)  # fmt: skip
_TUNED = ("tune_seconds", "tried", "failed")


def read_events(pipe: IO[bytes], token: str) -> Iterator[dict[str, Any]]:
    """The events that carry the token of this job; anything else in the pipe is passed over."""
    while line := pipe.readline(_LONGEST):
        try:
            event = json.loads(line.decode("utf-8", errors="replace"))
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict) and event.pop("token", None) == token:
            yield event


def wrong_with(event: dict[str, Any], todo: Collection[int]) -> str | None:
    """What is wrong with an event, if anything; `todo`: the folds that are still to come."""
    fold = event.get("fold")
    if "error" in event:
        fits = isinstance(event["error"], str) and (fold is None or type(fold) is int)
        return None if fits else "its process sent an error that is no text"
    if type(fold) is not int or fold not in todo:
        return f"its process sent a result of a fold that it was not asked for ({fold!r})"
    tuned = any(name in event for name in (*_TUNED, "params"))
    for name in (*_NUMBERS, *(_TUNED if tuned else ())):
        value = event.get(name)
        unknown = name == "model_bytes" and name in event and value is None
        if not unknown and not (is_number(value) and value >= 0):
            return f"its process sent {name} that is no number"
    if tuned and not isinstance(event.get("params"), dict):
        return "its process sent settings that are none"
    if type(event.get("unweighted")) is not bool:
        return "its process did not say whether weights were used"
    return None


def is_number(value: Any) -> TypeGuard[float]:
    """A finite number of ordinary size, not text or a truth value."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def read_prediction(path: Path, n_rows: int, n_classes: int) -> NDArray[np.float64]:
    """The prediction of a fold; `n_classes`: 0 for numbers.

    Raises
    ------
    ValueError
        The file is absent or damaged, or what it holds is no prediction of these rows.
    """
    if path.is_symlink() or not path.is_file():
        raise ValueError("the file of its prediction is absent")
    try:
        values = np.load(path, allow_pickle=False)
    except Exception:  # damaged files raise almost anything
        raise ValueError("the file of its prediction is damaged") from None
    why = wrong_prediction(values, n_rows, n_classes)
    if why:
        raise ValueError(why)
    return np.asarray(values, dtype=np.float64)


def wrong_prediction(values: Any, n_rows: int, n_classes: int) -> str | None:
    """Why these values are no prediction of so many rows, if they are none."""
    shape = (n_rows, n_classes) if n_classes else (n_rows,)
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiu":
        return "its prediction is no array of numbers"
    if values.shape != shape:
        return f"its prediction has shape {values.shape}, not {shape}"
    if not np.isfinite(values).all():
        return "its prediction holds NaN or infinity"
    if n_classes and ((values < -_OFF).any() or (values > 1 + _OFF).any()):
        return "its probabilities are not between 0 and 1"
    if n_classes and n_rows and np.abs(values.sum(axis=1) - 1).max() > _OFF:
        return "its probabilities do not sum to 1 in every row"
    return None


def private(descriptor: int) -> int:
    """A copy of a descriptor that no process started from here inherits; the original is closed."""
    own = os.dup(descriptor)
    os.close(descriptor)
    os.set_inheritable(own, False)
    return own
