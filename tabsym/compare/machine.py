"""What a comparison takes of the machine: processors, threads, time, memory, and a temporary folder.

A folder has one owner, who holds a lock in it that goes away with its process. What a killed comparison left in the
temporary folder is removed by the worker that outlives it, or else by the next comparison of the same user.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from tabsym.compare.text import in_one_line

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
)
_MIN_SECONDS = 0.2
"""Of a fit: in less the counters of processors, which tick a hundred times a second, are too coarse."""


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
        said = [line for line in what.splitlines() if not line.startswith("  ")]  # without a traceback's source text
        return _NO_MEMORY.search("\n".join(said)) is not None
    causes = (what.__cause__, what.__context__)
    words = in_one_line(what) if isinstance(what, Exception) else ""
    return isinstance(what, MemoryError) or lacked_memory(words) or any(map(lacked_memory, filter(None, causes)))


def over_limit(gigabytes: float) -> str:
    """The failure reason of a contender that got no memory."""
    return f"took more than the memory limit of {gigabytes:g} GB"


def cores() -> int:
    """The processors that this process may use, which can be fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_of_each(jobs: int, asked: int | None = None) -> int:
    """Threads of a contender: as requested, else the user's OMP_NUM_THREADS, else an equal share of the processors."""
    if asked is not None:
        return asked
    variable = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(variable) if variable.isdecimal() and int(variable) else max(1, cores() // jobs)


def thread_settings(threads: int, asked: int | None = None) -> dict[str, str]:
    """Environment variables that hold libraries to these threads; what the user has set stays, unless requested."""
    settings = {name: str(threads) for name in THREAD_VARIABLES}
    return settings if asked is not None else settings | {n: os.environ[n] for n in settings if os.environ.get(n)}


def adopt_orphans() -> None:
    """Make this process the parent of those below it whose own parents end (Linux), so that they can be found."""
    if sys.platform == "linux":
        set_child_subreaper = 36
        ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)


def kill_descendants(pid: int | None = None, *, but: int = 0, first: Callable[[], None] = lambda: None) -> None:
    """Kill all processes below one, by default this, but one of its children; `first` is called when they are known."""
    for _ in range(_ROUNDS):  # what is started meanwhile is found in the next
        try:
            children = [child for child in psutil.Process(pid).children(recursive=True) if child.pid != but]
        except psutil.NoSuchProcess:
            children = []
        first()
        for process in children:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        if pid is None:
            for process in children:
                with suppress(ChildProcessError):
                    os.waitpid(process.pid, 0)
        if not children or pid is not None:
            return


_ROUNDS = 10


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
        """The most so far, over what there was before."""
        return int(max(self._most, self._process.memory_info().rss) - self._before)


class Stopwatch:
    """The clock's and the processors' time of what is done while it is open.

    Attributes
    ----------
    seconds, cpu_seconds : float
        By the clock, and of all threads of this process and of its ended children.
    others : float or None
        Processors that other processes kept busy, in the mean; None where the time was too short to measure.
    """

    def __enter__(self) -> Stopwatch:
        self._busy, self._process = _busy_seconds(), _process_seconds()
        self._start = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._start
        self.cpu_seconds = _process_seconds() - self._process
        others = _busy_seconds() - self._busy - self.cpu_seconds
        self.others = max(others, 0.0) / self.seconds if self.seconds >= _MIN_SECONDS else None


def was_busy(others: float | None, threads: int) -> bool:
    """Whether other processes took processors that a contender with this number of threads could have used."""
    return others is not None and others + threads > (psutil.cpu_count() or 1) + 0.5


def _process_seconds() -> float:
    children = os.times()  # which ticks a hundred times a second only
    return time.process_time() + children.children_user + children.children_system


def _busy_seconds() -> float:
    """Seconds that all processors together were not idle."""
    times: Any = psutil.cpu_times()
    waiting = times.idle + getattr(times, "iowait", 0.0) + getattr(times, "guest", 0.0)
    return float(sum(times) - waiting - getattr(times, "guest_nice", 0.0))


try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

NAME = ".lock"


@contextmanager
def owned(folder: Path) -> Iterator[None]:
    """Hold the folder for this comparison.

    Raises
    ------
    ValueError
        Another comparison holds it, or its lock cannot be opened.
    """
    if fcntl is None:
        yield
        return
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(folder / NAME, flags, 0o644)
    except OSError as error:  # a folder, or a link to elsewhere
        raise ValueError(
            f"{folder / NAME} cannot be opened ({error.strerror}); remove it, or choose another folder than {folder}."
        ) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"Another comparison is writing to {folder}; wait until it has ended, or choose another folder."
            ) from None
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(descriptor)


def is_free(folder: Path) -> bool:
    """Whether a folder was locked once and is not any more; False where locks are not known."""
    if fcntl is None:
        return False
    descriptor = os.open(folder / NAME, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


PREFIX = "tabsym-compare-"
_MAKING = "tabsym-making-"
_MIN_AGE = 60.0
"""Seconds after which a folder that was never finished, and so never locked, is abandoned."""


@contextmanager
def temporary_folders(n_workers: int, write: Callable[[Path], None]) -> Iterator[list[Path]]:
    """Folders, one for each worker, that share what `write` puts into a folder."""
    _remove_abandoned()
    made = Path(tempfile.mkdtemp(prefix=_MAKING))
    folder = made.with_name(PREFIX + made.name.removeprefix(_MAKING))
    try:
        with owned(made):  # locked before it has the name by which abandoned ones are found
            made.rename(folder)
            (folder / "shared").mkdir()
            write(folder / "shared")
            yield [folder / f"worker{job}" for job in range(n_workers)]
    finally:
        for path in (made, folder):
            shutil.rmtree(path, ignore_errors=True)


def renew(folder: Path) -> None:
    """Make a worker's folder anew: the contender before may have done anything to it."""
    folder.unlink() if folder.is_symlink() else shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in (folder.parent / "shared").iterdir():
        try:
            os.link(path, folder / path.name)  # whoever removes it removes no one else's
        except OSError:
            shutil.copyfile(path, folder / path.name)


def _remove_abandoned() -> None:
    """Remove the folders of this user whose comparisons are gone."""
    if not hasattr(os, "getuid"):
        return
    for folder in Path(tempfile.gettempdir()).glob("tabsym-*-*"):
        with suppress(OSError):
            if folder.is_symlink() or not folder.is_dir() or folder.stat().st_uid != os.getuid():
                continue
            unfinished = folder.name.startswith(_MAKING) and time.time() - folder.stat().st_mtime > _MIN_AGE
            if unfinished or (folder.name.startswith(PREFIX) and is_free(folder)):
                shutil.rmtree(folder, ignore_errors=True)
