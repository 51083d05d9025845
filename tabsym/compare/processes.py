"""One process per contender: started, listened to, stopped at the time limit, its results kept as they arrive."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tabsym.compare.contenders import Contender
from tabsym.compare.job import Job, write_job, write_table
from tabsym.compare.live import Live
from tabsym.compare.metrics import Metric
from tabsym.compare.prepare import Prepared
from tabsym.compare.results import Results
from tabsym.compare.scores import score_fold
from tabsym.compare.splits import Plan, Split
from tabsym.compare.words import in_one_line
from tabsym.compare.worker import MARK


@dataclass(frozen=True)
class Course:
    """What is to be run, and how; the same for every contender."""

    prepared: Prepared
    plan: Plan
    splits: list[Split]
    metric: Metric
    time_limit: float | None
    tune: str | None
    seed: int
    jobs: int


@dataclass
class Runner:
    """Runs contenders over the folds, `jobs` at a time, and keeps what they say in `results`; `only`: some of them."""

    course: Course
    results: Results
    folder: Path
    live: Live
    only: Sequence[int] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def run(self, contenders: list[Contender]) -> None:
        """Run all; an interruption, SIGTERM too, stops the processes, saves and goes on to the caller."""
        waiting: queue.SimpleQueue[Contender] = queue.SimpleQueue()
        for contender in contenders:
            waiting.put(contender)
        with _sigterm_interrupts(), _workplace(self.course) as places:
            threads = [threading.Thread(target=self._serve, args=(waiting, place)) for place in places]
            try:
                for thread in threads:
                    thread.start()
                for thread in threads:
                    while thread.is_alive():
                        thread.join(0.2)  # in steps, so that Ctrl-C is heard
            except KeyboardInterrupt:
                self._stop(waiting)
                for thread in threads:
                    thread.join()
                self.results.save(self.folder)
                self.live.note(
                    f"Interrupted; what was done is in {self.folder}: go on with --resume --out {self.folder}."
                )
                raise

    def _serve(self, waiting: queue.SimpleQueue[Contender], place: Path) -> None:
        """One contender after another, until none waits."""
        while True:
            try:
                contender = waiting.get_nowait()
            except queue.Empty:
                return
            done = set(self.results.entry(contender.name, contender.label)["folds"])
            asked = range(len(self.course.splits)) if self.only is None else self.only
            todo = [fold for fold in asked if str(fold) not in done]
            if todo:
                self._run_one(contender, todo, place)
            self.live.update(self.results)

    def _stop(self, waiting: queue.SimpleQueue[Contender]) -> None:
        while not waiting.empty():
            waiting.get_nowait()
        for process in list(self._processes):
            process.kill()

    def _run_one(self, contender: Contender, todo: list[int], place: Path) -> None:
        self.live.begin(contender.label)
        threads = max(1, cores() // self.course.jobs)
        try:
            write_job(place, self._job(contender, todo, threads), contender, self.course.metric)
        except TypeError as error:
            self._fail(contender, str(error))
            return
        started = time.monotonic()
        with (place / "errors.txt").open("w") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "tabsym.compare.worker", str(place)],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=os.environ | {"OMP_NUM_THREADS": str(threads)},
            )
            self._processes.append(process)
            with process:
                done = self._listen(contender, process, place)
            self._processes.remove(process)
        if done < len(todo) and not self.results.entry(contender.name, contender.label)["error"]:
            limit = self.course.time_limit
            timed_out = limit is not None and time.monotonic() - started >= limit
            words = (place / "errors.txt").read_text(errors="replace")
            why = f"stopped at the time limit of {limit:g} s" if timed_out else last_words(process.returncode, words)
            self._fail(contender, f"{why} after {self._n_done(contender)} of {len(self.course.splits)} folds")

    def _job(self, contender: Contender, todo: list[int], threads: int) -> Job:
        course = self.course
        plan = {name: value for name, value in vars(course.plan).items() if name != "keys"}
        return Job(
            contender.name, contender.address, contender.raw and contender.address is None, course.prepared.task,
            len(course.prepared.classes), todo, course.seed, threads, course.metric.name, course.tune, plan,
        )  # fmt: skip

    def _listen(self, contender: Contender, process: subprocess.Popen[str], place: Path) -> int:
        """Keep what the process says until it ends; how many folds it did."""
        with _stop_after(self.course.time_limit, process.kill):
            done = 0
            assert process.stdout is not None
            for line in process.stdout:
                if not line.startswith(MARK):
                    continue
                event = json.loads(line[len(MARK) :])
                fold = event.pop("fold")
                if "error" in event:
                    self._fail(contender, event["error"] if fold is None else f"fold {fold + 1}: {event['error']}")
                elif self._keep(contender, fold, event, place / f"prediction{fold}.npy"):
                    done += 1
                else:  # no fold of it can be scored
                    process.kill()
                    break
            process.wait()
        return done

    def _keep(self, contender: Contender, fold: int, result: dict[str, object], path: Path) -> bool:
        """Score a fold's predictions and keep all of it; False where they cannot be scored."""
        prediction = np.load(path, allow_pickle=False)
        path.unlink()
        course = self.course
        try:
            result |= score_fold(course.prepared, course.splits[fold][1], prediction, course.metric)
        except Exception as error:  # the user's own metric may raise anything
            self._fail(contender, f"fold {fold + 1}: {in_one_line(error)}")
            return False
        with self._lock:
            self.results.add(contender.name, contender.label, fold, result, prediction, self.folder)
            self.results.save(self.folder)
            self.live.update(self.results)
        return True

    def _fail(self, contender: Contender, why: str) -> None:
        with self._lock:
            self.results.fail(contender.name, contender.label, why)
            self.results.save(self.folder)
            self.live.update(self.results)

    def _n_done(self, contender: Contender) -> int:
        return len(self.results.entry(contender.name, contender.label)["folds"])


def cores() -> int:
    """The processors that this process may use, which can be fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Terminated(KeyboardInterrupt):
    """SIGTERM came, as from a scheduler or a container that is stopped."""


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """SIGTERM as Ctrl-C, so that no rows stay behind in temporary folders; a handler of the user's own stays."""

    def interrupt(*_: object) -> None:
        raise Terminated

    in_main = threading.current_thread() is threading.main_thread()  # no other thread may set handlers
    if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def _stop_after(seconds: float | None, kill: Callable[[], None]) -> Iterator[None]:
    timer = None if seconds is None else threading.Timer(seconds, kill)
    if timer:
        timer.start()
    try:
        yield
    finally:
        if timer:
            timer.cancel()


def last_words(status: int, errors: str) -> str:
    """Why a process ended that had more to do: the signal that killed it, or its last line."""
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        hint = ", which is what a machine sends that runs out of memory" if name == "SIGKILL" else ""
        return f"the process was killed by {name}{hint},"
    lines = [
        line for line in errors.strip().splitlines() if "RuntimeWarning" not in line and "<frozen runpy>" not in line
    ]
    return f"the process ended with status {status} ({lines[-1].strip() if lines else 'no message'})"


@contextmanager
def _workplace(course: Course) -> Iterator[list[Path]]:
    """Temporary folders, one per job, that share the table and the folds."""
    with tempfile.TemporaryDirectory(prefix="tabsym-") as name:
        shared = Path(name) / "shared"
        shared.mkdir()
        write_table(shared, course.prepared, course.splits, course.plan)
        places = [Path(name) / f"worker{job}" for job in range(max(1, course.jobs))]
        for place in places:
            place.mkdir()
            for path in shared.iterdir():
                (place / path.name).symlink_to(path)
        yield places
