"""What a contender may use of the machine, and what others used meanwhile: processors, threads, processor time."""

from __future__ import annotations

import os
import re
import sys
import threading
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


_NO_MEMORY = re.compile(
    r"bad.?alloc|MemoryError|out of memory|memory allocation|(cannot|unable to|failed to|could not) allocate"
    r"|can't start new thread",
    re.IGNORECASE,
)


def can_limit_memory() -> bool:
    """Whether the system refuses a process more memory than it was allowed."""
    return sys.platform == "linux"


def limit_memory(gigabytes: float) -> None:
    """Refuse this process, and those that it starts, more than so much memory over what it has now."""
    import resource

    most = psutil.Process().memory_info().data + int(gigabytes * 1e9)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def lacked_memory(what: BaseException | str) -> bool:
    """Whether an error, or what a process printed before it was aborted, is of memory that was refused."""
    if isinstance(what, str):
        return _NO_MEMORY.search(what) is not None
    causes = (what.__cause__, what.__context__)
    return isinstance(what, MemoryError) or lacked_memory(str(what)) or any(map(lacked_memory, filter(None, causes)))


def over_limit(gigabytes: float) -> str:
    """What is said of a contender that was refused memory."""
    return f"took more than the memory limit of {gigabytes:g} GB"


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


class PeakMemory:
    """The most resident memory while open, over what there was before, in bytes; sampled every 5 ms."""

    def __enter__(self) -> PeakMemory:
        self._process = psutil.Process()
        self._before = self._most = self._process.memory_info().rss
        self._open = True
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while self._open:
            self._most = max(self._most, self._process.memory_info().rss)
            time.sleep(0.005)

    def __exit__(self, *_: object) -> None:
        self._open = False
        self._thread.join()

    @property
    def bytes(self) -> int:
        return int(max(self._most, self._process.memory_info().rss) - self._before)


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
