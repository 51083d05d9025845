"""Events of a worker: a pipe of their own, apart from whatever the user's code prints, and a check of every one."""

from __future__ import annotations

import json
import math
import os
import subprocess
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
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


_KEPT = 1 << 16  # bytes of what a contender prints
_POLL = 0.05


class Channel:
    """Where a worker's events come from: a pipe that it inherits, or a file where processes inherit none (Windows)."""

    def __init__(self, place: Path) -> None:
        self._file: Path | None = None if os.name == "posix" else place / "events"
        self.descriptors: tuple[int, ...] = ()
        if self._file is not None:
            self._file.write_bytes(b"")
            self.name = str(self._file)
            return
        self._reader, writer = os.pipe()
        self.descriptors, self.name = (writer,), str(writer)

    def open(self, process: subprocess.Popen[bytes]) -> IO[bytes]:
        """The stream of events, after the process was started."""
        if self._file is not None:
            return _Followed(self._file, process)  # type: ignore[return-value]
        os.close(self.descriptors[0])
        self.descriptors = ()
        self._stream = os.fdopen(self._reader, "rb")
        self._reader = -1
        return self._stream

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)
        if self._file is None:
            self._stream.close() if self._reader < 0 else os.close(self._reader)


class _Followed:
    """Lines of a file that another process writes, until it has ended."""

    def __init__(self, path: Path, process: subprocess.Popen[bytes]) -> None:
        self._path, self._process, self._at = path, process, 0

    def readline(self, limit: int) -> bytes:
        """The next line, of `limit` bytes at most; empty when the process has ended and nothing is left."""
        while True:
            ended = self._process.poll() is not None
            with self._path.open("rb") as file:
                file.seek(self._at)
                line = file.readline(limit)
            if line.endswith(b"\n") or len(line) >= limit:
                self._at += len(line)
                return line
            if ended:
                return b""
            time.sleep(_POLL)


@contextmanager
def open_channel(place: Path) -> Iterator[Channel]:
    """A channel for the events of the worker in a folder."""
    channel = Channel(place)
    try:
        yield channel
    finally:
        channel.close()


class Tail:
    """The end of what a process prints, read as it comes, so that nothing fills the disk."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        assert stream is not None
        self._stream, self._end = stream, b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._stream:
            while chunk := os.read(self._stream.fileno(), _KEPT):
                self._end = (self._end + chunk)[-_KEPT:]

    def text(self) -> str:
        """What was printed last, after the process has ended."""
        self._thread.join(1.0)  # a process that it left behind can keep the stream open
        return self._end.decode("utf-8", errors="replace")


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
        return None if fits else "its process sent an error that is not text"
    if type(fold) is not int or fold not in todo:
        return f"its process sent a result for an unexpected fold ({fold!r})"
    tuned = any(name in event for name in (*_TUNED, "params"))
    for name in (*_NUMBERS, *(_TUNED if tuned else ())):
        value = event.get(name)
        unknown = name == "model_bytes" and name in event and value is None
        if not unknown and not (is_number(value) and value >= 0):
            return f"its process sent a {name} that is not a number"
    if tuned and not isinstance(event.get("params"), dict):
        return "its process sent invalid settings"
    if type(event.get("unweighted")) is not bool:
        return "its process did not report whether weights were used"
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
        raise ValueError("the file of its prediction is missing")
    try:
        values = np.load(path, allow_pickle=False)
    except Exception:  # damaged files raise almost anything
        raise ValueError("the file of its prediction is damaged") from None
    why = wrong_prediction(values, n_rows, n_classes)
    if why:
        raise ValueError(why)
    return np.asarray(values, dtype=np.float64)


def wrong_prediction(values: Any, n_rows: int, n_classes: int) -> str | None:
    """Why these values are no prediction of `n_rows` rows; None where they are one."""
    shape = (n_rows, n_classes) if n_classes else (n_rows,)
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiu":
        return "its prediction is not an array of numbers"
    if values.shape != shape:
        return f"its prediction has shape {values.shape}, not {shape}"
    if not np.isfinite(values).all():
        return "its prediction contains NaN or infinity"
    if n_classes and ((values < -_OFF).any() or (values > 1 + _OFF).any()):
        return "its probabilities are not between 0 and 1"
    if n_classes and n_rows and np.abs(values.sum(axis=1) - 1).max() > _OFF:
        return "its probabilities do not sum to 1 in every row"
    return None


def private(channel: str) -> int:
    """A descriptor for the events that no process started from here inherits."""
    if not channel.isdecimal():
        return os.open(channel, os.O_WRONLY | os.O_APPEND)
    own = os.dup(int(channel))
    os.close(int(channel))
    os.set_inheritable(own, False)
    return own
