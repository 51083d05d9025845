"""What a comparison and the processes of its contenders hand to each other.

A job is in files of a temporary folder. Events of a worker come by a pipe of their own, apart from whatever the user's
code prints, and each is checked.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO, Any, Protocol, TypeGuard

import cloudpickle
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tabsym.compare.contenders import Contender, all_contenders, from_address
from tabsym.compare.fitting import Data
from tabsym.compare.metrics import METRICS, Metric
from tabsym.compare.splits import Split, SplitPlan
from tabsym.compare.table.prepare import CLASSES, Prepared

TABLE, RAW, ARRAYS = "table.parquet", "raw.pickle", "arrays.npz"
CUSTOM, METRIC, TOKEN = "custom.pickle", "metric.pickle", "token"


@dataclass(frozen=True)
class RunConfig:
    """What is to be run, and how; the same for every contender."""

    prepared: Prepared
    plan: SplitPlan
    splits: list[Split]
    metric: Metric
    time_limit: float | None
    tune: str | None
    seed: int
    jobs: int
    threads: int | None = None
    memory_limit: float | None = None


@dataclass(frozen=True)
class Job:
    """One contender's work: which folds, and with what."""

    contender: str
    address: str | None
    custom: bool
    task: str
    n_classes: int
    todo: list[int]
    seed: int
    threads: int
    metric: str
    tune: str | None
    memory_limit: float | None
    plan: dict[str, Any]


def write_table(folder: Path, prepared: Prepared, splits: list[Split], plan: SplitPlan) -> None:
    """What all contenders share."""
    prepared.X.to_parquet(folder / TABLE)
    _dump(folder / RAW, {"X": prepared.raw, "names": prepared.target.classes if prepared.task in CLASSES else None})
    arrays: dict[str, Any] = {name: getattr(prepared, name) for name in ("y", "weight", "exposure", "offset")}
    arrays = {name: values for name, values in (arrays | {"keys": plan.keys}).items() if values is not None}
    for j, (train, test) in enumerate(splits):
        arrays |= {f"train{j}": train, f"test{j}": test}
    np.savez(folder / ARRAYS, allow_pickle=False, **arrays)


def write_job(folder: Path, job: Job, contender: Contender, metric: Metric) -> None:
    """One contender's job; an estimator of the user's own travels as it is.

    Raises
    ------
    TypeError
        It cannot be handed to another process.
    """
    (folder / "job.json").write_text(json.dumps(asdict(job)))
    if job.custom:
        model = contender.estimator(job.task, job.seed, job.threads, None, job.metric)
        _dump(folder / CUSTOM, (model, contender.space(job.task)))
    if METRICS[job.task].get(metric.name) is not metric and job.tune is not None:
        _dump(folder / METRIC, metric)


def _dump(path: Path, what: Any) -> None:
    try:
        path.write_bytes(cloudpickle.dumps(what))
    except Exception as error:
        raise TypeError(
            f"it cannot be sent to another process ({type(error).__name__}: {error}); "
            "define it in a module and name it by address, 'package.module:factory'"
        ) from None


def _load(path: Path) -> Any:
    return cloudpickle.loads(path.read_bytes())  # of the comparison's own folder


@dataclass(frozen=True)
class WorkerJob:
    """A job as its process reads it."""

    job: Job
    model: Any
    space: dict[str, Any]
    data: Data
    splits: dict[int, Split]
    plan: SplitPlan
    metric: Metric


def read_job(folder: Path) -> Job:
    """The job in a folder."""
    return Job(**json.loads((folder / "job.json").read_text()))


def read_work(folder: Path, job: Job) -> WorkerJob:
    """Read all that a job needs, and make its estimator."""
    arrays = np.load(folder / ARRAYS)
    model, space, raw = _estimator(folder, job)
    shared: dict[str, Any] = _load(folder / RAW) if raw else {"X": pd.read_parquet(folder / TABLE), "names": None}
    weight, exposure, offset = (arrays.get(name) for name in ("weight", "exposure", "offset"))
    data = Data(shared["X"], arrays["y"], job.task, job.n_classes, weight, exposure, offset, shared["names"])
    splits = {fold: (arrays[f"train{fold}"], arrays[f"test{fold}"]) for fold in job.todo}
    plan = SplitPlan(**job.plan, keys=arrays.get("keys"))
    metric = METRICS[job.task].get(job.metric)
    if metric is None:
        path = folder / METRIC
        metric = _load(path) if path.exists() else next(iter(METRICS[job.task].values()))
    return WorkerJob(job, model, space, data, splits, plan, metric)


def _estimator(folder: Path, job: Job) -> tuple[Any, dict[str, Any], bool]:
    """The estimator, its space, and whether it gets the user's own columns."""
    if job.custom:
        model, space = _load(folder / CUSTOM)
        return model, space, True
    address = job.address
    contender = all_contenders()[job.contender] if address is None else from_address(job.contender, address)
    model = contender.estimator(job.task, job.seed, job.threads, SplitPlan(**job.plan).unseen, job.metric)
    return model, contender.space(job.task), contender.raw


_LONGEST = 1 << 20
_OFF = 1e-3


@dataclass(frozen=True)
class Measurements:
    """What a contender took on a fold: a field more is in the worker's result, in its check, and in results.csv.

    Processor time is of all threads: the same whatever else the machine does. `one_row_seconds`: to predict a table of
    one row; `model_bytes`: None where the model cannot be pickled.
    """

    fit_seconds: float
    fit_cpu_seconds: float
    predict_seconds: float
    predict_row_seconds: float
    one_row_seconds: float
    peak_bytes: float
    model_bytes: float | None


MEASURED = tuple(field.name for field in fields(Measurements))
_TUNED = ("tune_seconds", "tried", "failed")


_KEPT = 1 << 16  # bytes of what a contender prints
_POLL = 0.05


class Process(Protocol):
    """What is used of a worker's process, in the words of `subprocess.Popen`."""

    pid: int
    stdout: IO[bytes] | None

    @property
    def returncode(self) -> int | None:
        """Status of a process that has ended, the negative number of a signal that ended it."""

    def poll(self) -> int | None:
        """The status; None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """The status, when it has ended."""


class Channel:
    """Where a worker's events come from: a pipe that it inherits, or a file where processes inherit none (Windows)."""

    def __init__(self, folder: Path) -> None:
        self._file: Path | None = None if os.name == "posix" else folder / "events"
        self.descriptors: tuple[int, ...] = ()
        if self._file is not None:
            self._file.write_bytes(b"")
            self.name = str(self._file)
            return
        self._reader, writer = os.pipe()
        self.descriptors, self.name = (writer,), str(writer)

    def open(self, process: Process) -> IO[bytes]:
        """The stream of events, after the process was started."""
        if self._file is not None:
            return _Followed(self._file, process)  # type: ignore[return-value]
        os.close(self.descriptors[0])
        self.descriptors = ()
        self._stream = os.fdopen(self._reader, "rb")
        self._reader = -1
        return self._stream

    def close(self) -> None:
        """Close what is open of the pipe."""
        for descriptor in self.descriptors:
            os.close(descriptor)
        if self._file is None:
            self._stream.close() if self._reader < 0 else os.close(self._reader)


class _Followed:
    """Lines of a file that another process writes, until it has ended."""

    def __init__(self, path: Path, process: Process) -> None:
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
    for name in (*MEASURED, *(_TUNED if tuned else ())):
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
    descriptor = os.dup(int(channel))
    os.close(int(channel))
    os.set_inheritable(descriptor, False)
    return descriptor
