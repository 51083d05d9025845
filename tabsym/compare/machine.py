"""What a contender may use of the machine, and what others used meanwhile: processors, threads, processor time."""

from __future__ import annotations

import os
import time
from typing import Any

import psutil

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
)
_MIN_SECONDS = 0.2
"""Of a fit: in less the counters of processors, which tick a hundred times a second, say nothing."""


def cores() -> int:
    """The processors that this process may use, which can be fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_of_each(jobs: int, asked: int | None = None) -> int:
    """Threads of a contender: as asked for, else the user's OMP_NUM_THREADS, else an equal share of the processors."""
    if asked is not None:
        return asked
    variable = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(variable) if variable.isdecimal() and int(variable) else max(1, cores() // jobs)


def thread_settings(threads: int, asked: int | None = None) -> dict[str, str]:
    """Environment variables that hold libraries to these threads; what the user has set stays, unless asked for."""
    settings = {name: str(threads) for name in THREAD_VARIABLES}
    return settings if asked is not None else settings | {n: os.environ[n] for n in settings if os.environ.get(n)}


class Stopwatch:
    """The clock's and the processors' time of what is done while it is open.

    Attributes
    ----------
    seconds, cpu_seconds : float
        By the clock, and of all threads of this process and of its ended children.
    others : float or None
        Processors that other processes kept busy, in the mean; None where the time was too short to tell.
    """

    def __enter__(self) -> Stopwatch:
        self._busy, self._own = _busy_seconds(), _own_seconds()
        self._start = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._start
        self.cpu_seconds = _own_seconds() - self._own
        others = _busy_seconds() - self._busy - self.cpu_seconds
        self.others = max(others, 0.0) / self.seconds if self.seconds >= _MIN_SECONDS else None


def was_busy(others: float | None, threads: int) -> bool:
    """Whether other processes took processors that a contender of so many threads could have used."""
    return others is not None and others + threads > (psutil.cpu_count() or 1) + 0.5


def _own_seconds() -> float:
    children = os.times()  # which ticks a hundred times a second only
    return time.process_time() + children.children_user + children.children_system


def _busy_seconds() -> float:
    """Seconds that all processors together were not idle."""
    times: Any = psutil.cpu_times()
    waiting = times.idle + getattr(times, "iowait", 0.0) + getattr(times, "guest", 0.0)
    return float(sum(times) - waiting - getattr(times, "guest_nice", 0.0))
