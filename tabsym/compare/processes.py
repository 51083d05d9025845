"""One process per contender: started, listened to, stopped at the time limit, its results kept as they arrive."""

from __future__ import annotations

import os
import queue
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tabsym.compare.contenders import Contender
from tabsym.compare.job import (
    TOKEN,
    Channel,
    Job,
    Process,
    RunConfig,
    Tail,
    read_events,
    read_prediction,
    write_job,
    write_table,
    wrong_with,
)
from tabsym.compare.live import Live
from tabsym.compare.machine import lacked_memory, over_limit, renew, temporary_folders, thread_settings, threads_of_each
from tabsym.compare.metrics import score_fold
from tabsym.compare.results import Results
from tabsym.compare.text import in_one_line
from tabsym.compare.workers import Workers, kill_group, last_words

_TO_END = 5.0
"""Seconds for a worker to end after its last fold."""


@dataclass
class Runner:
    """Runs contenders over the folds, `jobs` at a time, and keeps their results in `results`; `only`: some of them."""

    config: RunConfig
    results: Results
    folder: Path
    live: Live
    only: Sequence[int] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _interrupted: threading.Event = field(default_factory=threading.Event)
    _workers: list[Workers] = field(default_factory=list)
    _processes: list[Process] = field(default_factory=list)
    _folder_error: OSError | None = None

    def run(self, contenders: list[Contender]) -> None:
        """Run all; an interruption, SIGTERM too, stops the processes, saves and goes on to the caller."""
        waiting: queue.SimpleQueue[Contender] = queue.SimpleQueue()
        for contender in contenders:
            waiting.put(contender)
        config = self.config

        def write(folder: Path) -> None:
            write_table(folder, config.prepared, config.splits, config.plan)

        with _signals_interrupt(), temporary_folders(max(1, config.jobs), write) as folders:
            # A Thread.join that Ctrl-C interrupts takes the thread for ended, so that events say who has ended.
            ended = [threading.Event() for _ in folders]
            pairs = zip(folders, ended, strict=True)
            threads = [threading.Thread(target=self._serve, args=(waiting, *pair)) for pair in pairs]
            try:
                for thread in threads:
                    thread.start()
                for event in ended:
                    while not event.wait(0.2):  # in steps, so that Ctrl-C is heard
                        pass
            except KeyboardInterrupt:
                self._stop(waiting)
                for thread, event in zip(threads, ended, strict=True):
                    if thread.ident is not None:  # it was started
                        event.wait()
                self.results.save(self.folder)
                self.live.note(
                    f"Interrupted; the results so far are in {self.folder}. To continue: --resume --out {self.folder}."
                )
                raise
        if self._folder_error is not None:
            raise OSError(
                f"The results in {self.folder} cannot be written ({self._folder_error}); earlier results are kept. "
                f"To continue: --resume --out {self.folder}."
            )
        for contender in contenders:
            if self._todo(contender) and not self.results.entry(contender.name, contender.label)["error"]:
                self._fail(contender, "it was not run")

    def _todo(self, contender: Contender) -> list[int]:
        """The folds that a contender was asked for and has not done."""
        done = self.results.entry(contender.name, contender.label)["folds"]
        asked = range(len(self.config.splits)) if self.only is None else self.only
        return [fold for fold in asked if str(fold) not in done]

    def _serve(self, waiting: queue.SimpleQueue[Contender], folder: Path, ended: threading.Event) -> None:
        """One contender after another, until none waits."""
        config = self.config
        threads = threads_of_each(config.jobs, config.threads)
        workers = Workers(folder, os.environ | thread_settings(threads, config.threads))
        self._workers.append(workers)
        try:
            self._serve_all(waiting, folder, workers)
        except FolderError as error:
            self._folder_error = error.why
            self._stop(waiting)
        finally:
            workers.close()
            ended.set()

    def _serve_all(self, waiting: queue.SimpleQueue[Contender], folder: Path, workers: Workers) -> None:
        while True:
            try:
                contender = waiting.get_nowait()
            except queue.Empty:
                return
            todo = self._todo(contender)
            try:
                if todo:
                    self._run_one(contender, todo, folder, workers)
                self.live.update(self.results)
            except FolderError:
                raise
            except Exception as error:  # whatever it is, it is this contender's alone
                why = self._reached(contender, "interrupted") if self._interrupted.is_set() else in_one_line(error)
                self._fail(contender, why)

    def _stop(self, waiting: queue.SimpleQueue[Contender]) -> None:
        self._interrupted.set()
        with suppress(queue.Empty):
            while True:
                waiting.get_nowait()
        for process in list(self._processes):
            kill_group(process)
        for workers in list(self._workers):
            workers.stop()

    def _run_one(self, contender: Contender, todo: list[int], folder: Path, workers: Workers) -> None:
        self.live.begin(contender.label)
        threads = threads_of_each(self.config.jobs, self.config.threads)
        config = self.config
        job = Job(
            contender.name, contender.address, contender.raw and contender.address is None, config.prepared.task,
            len(config.prepared.classes), todo, config.seed, threads, config.metric.name, config.tune,
            config.memory_limit, {name: value for name, value in vars(config.plan).items() if name != "keys"},
        )  # fmt: skip
        try:
            renew(folder)
            write_job(folder, job, contender, config.metric)
        except TypeError as error:
            self._fail(contender, str(error))
            return
        started = time.monotonic()
        token = secrets.token_hex(16)
        (folder / TOKEN).write_text(token)
        with closing(Channel(folder)) as channel:
            process = workers.start(channel)
            printed = Tail(process.stdout)
            self._processes.append(process)
            try:
                if self._interrupted.is_set():  # after `_stop` had looked for processes
                    kill_group(process)
                events = read_events(channel.open(process), token)
                done = self._listen(contender, process, events, todo, folder)
                if done == len(todo):  # it may end by itself, and remove what its libraries made
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(_TO_END)
            finally:
                kill_group(process)
                process.wait()
                self._processes.remove(process)
        if done < len(todo) and not self.results.entry(contender.name, contender.label)["error"]:
            limit, memory = config.time_limit, config.memory_limit
            words = printed.text()
            if self._interrupted.is_set():
                why = "interrupted"
            elif limit is not None and time.monotonic() - started >= limit:
                why = f"stopped at the time limit of {limit:g} s"
            elif memory is not None and lacked_memory(words):
                why = over_limit(memory)
            else:
                why = last_words(process.wait(), words)
            self._fail(contender, self._reached(contender, why))

    def _listen(
        self, contender: Contender, process: Process, events: Iterator[dict[str, Any]],
        todo: list[int], folder: Path,
    ) -> int:  # fmt: skip
        """Keep what the process says until it ends; how many folds it did."""
        left = list(todo)
        with _stop_after(self.config.time_limit, lambda: kill_group(process)):
            for event in events:
                why = wrong_with(event, left)
                if why:
                    self._fail(contender, why)
                    break
                fold = event.pop("fold")
                if "error" in event:
                    self._fail(contender, event["error"] if fold is None else f"fold {fold + 1}: {event['error']}")
                    break  # its last word; what comes after it was not sent by us
                elif self._keep(contender, fold, event, folder / f"prediction{fold}.npy"):
                    left.remove(fold)
                else:  # no fold of it can be scored
                    break
                if not left:
                    break
            else:
                process.wait()
        return len(todo) - len(left)

    def _keep(self, contender: Contender, fold: int, result: dict[str, object], path: Path) -> bool:
        """Score a fold's predictions and keep all of it; False where they cannot be scored."""
        config = self.config
        try:
            prediction = read_prediction(path, len(config.splits[fold][1]), len(config.prepared.classes))
            path.unlink()
            result |= score_fold(config.prepared, config.splits[fold][1], prediction, config.metric)
        except Exception as error:  # the user's own metric may raise anything
            self._fail(contender, f"fold {fold + 1}: {in_one_line(error)}")
            return False
        with self._lock:
            with _of_folder():
                self.results.add(contender.name, contender.label, fold, result, prediction, self.folder)
                self.results.save(self.folder)
            self.live.update(self.results)
        return True

    def _fail(self, contender: Contender, why: str) -> None:
        with self._lock:
            self.results.fail(contender.name, contender.label, why)
            with _of_folder():
                self.results.save(self.folder)
            self.live.update(self.results)

    def _reached(self, contender: Contender, why: str) -> str:
        done = len(self.results.entry(contender.name, contender.label)["folds"])
        return f"{why} after {done} of {len(self.config.splits)} folds"


class FolderError(Exception):
    """The folder of the results cannot be written: no contender's fault, and it ends the comparison."""

    def __init__(self, why: OSError) -> None:
        super().__init__(str(why))
        self.why = why


@contextmanager
def _of_folder() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FolderError(error) from error


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP came, as from a scheduler, a container or a terminal that is closed."""

    def __init__(self, number: int = signal.SIGTERM) -> None:
        super().__init__()
        self.number = number


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP as Ctrl-C, so that no rows stay in temporary folders; handlers of the user's own stay."""

    def interrupt(number: int, *_: object) -> None:
        raise Terminated(number)

    in_main = threading.current_thread() is threading.main_thread()  # no other thread may set handlers
    names = ("SIGTERM", "SIGHUP") if in_main else ()
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    ours = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


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
