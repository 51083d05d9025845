"""Processes of contenders: started, forked where that is safe, waited for and killed; and what runs in them.

A new process takes seconds to import the libraries. On Linux it is therefore a fork of one that has imported them, so
that each contender still has a process of its own that begins in the same state. That gives a true peak of memory,
survives libraries that abort, and can be stopped at a time limit. A process reads its job from a folder, writes its
predictions there, and one line of JSON per event to a pipe of its own. Scores are computed where all predictions come
together.

`Runner` has one process per contender: started, listened to, stopped at the time limit, its results kept as they
arrive.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import secrets
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from sklearn.base import clone

from tabsym.compare.contenders import Contender
from tabsym.compare.fitting import Data, Trained, read_budget, train, tune
from tabsym.compare.job import (
    TOKEN,
    Channel,
    Job,
    Measurements,
    Process,
    RunConfig,
    Tail,
    WorkerJob,
    private,
    read_events,
    read_job,
    read_prediction,
    read_work,
    write_job,
    write_table,
    wrong_with,
)
from tabsym.compare.live import Live
from tabsym.compare.machine import (
    PREFIX,
    PeakMemory,
    Stopwatch,
    adopt_orphans,
    kill_descendants,
    lacked_memory,
    limit_memory,
    over_limit,
    renew,
    temporary_folders,
    thread_settings,
    threads_of_each,
    was_busy,
)
from tabsym.compare.metrics import score_fold
from tabsym.compare.results import Results
from tabsym.compare.splits import Split
from tabsym.compare.text import in_one_line, remedy_for_role, remedy_for_text

CAN_FORK = sys.platform == "linux"  # macOS's own libraries do not survive a fork, and Windows knows none
_WARM_ROWS = 300
_SINGLE_ROWS, _SINGLE_SECONDS = 20, 1.0
_STEP = 0.5  # seconds between two looks at a process without output

# It ends with its parent from its first moment on, as the libraries take seconds to import.
_PROGRAM = f"""
import os, shutil, signal, sys, threading, time

def end_with(parent, folder):
    while os.getppid() == parent:
        time.sleep(0.2)
    if os.path.basename(folder).startswith({PREFIX!r}):
        shutil.rmtree(folder, ignore_errors=True)
    if "tabsym.compare.machine" in sys.modules:
        sys.modules["tabsym.compare.machine"].kill_descendants()
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)

def watch(parent, folder):
    threading.Thread(target=end_with, args=(parent, folder), daemon=True).start()

watch(int(sys.argv[2]), os.path.dirname(sys.argv[1]))
from tabsym.compare import workers
if len(sys.argv) > 4:
    sys.argv[2:] = workers.fork_when_asked(int(sys.argv[4]))
    watch(int(sys.argv[2]), "")  # where it alone has ended, the comparison goes on
workers.main(sys.argv[1], sys.argv[3])
"""


class Workers:
    """Starts one process after another for the jobs in a folder.

    Parameters
    ----------
    folder : path
        Where each job's files are.
    environment : dict
        Of the processes.
    """

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder, self._environment = folder, environment
        self._server: subprocess.Popen[bytes] | None = None

    def start(self, channel: Channel) -> Process:
        """A process that runs the job in the folder and sends events to `channel`."""
        if not CAN_FORK:
            return self._popen([channel.name], channel.descriptors)
        if self._server is None or self._server.poll() is not None:  # a contender can end it
            self.close()
            self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._server = self._popen(["", str(theirs.fileno())], [theirs.fileno()])
            self._printed = Tail(self._server.stdout)
        try:
            return Forked(self._server.pid, self._connection, channel)
        except OSError as error:
            raise OSError(
                f"no process could be started: {last_words(self._server.wait(), self._printed.text())}"
            ) from error

    def _popen(self, arguments: list[str], descriptors: tuple[int, ...] | list[int]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(self._folder), str(os.getpid()), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=descriptors,
            start_new_session=True,
            env=self._environment,
        )

    def stop(self) -> None:
        """Kill the process that is forked and all that it started, from whatever thread; `start` then fails."""
        if self._server is not None:
            kill_descendants(self._server.pid, first=self._server.kill)

    def close(self) -> None:
        """End the process that is forked and all that it started, if there is one."""
        if self._server is not None:
            self.stop()
            self._server.wait()
            self._connection.close()
            self._server = None


class Forked:
    """A process that the one at the other end of a connection, its parent, has forked and waits for."""

    def __init__(self, parent: int, connection: socket.socket, channel: Channel) -> None:
        self._parent, self._connection = parent, connection
        self.returncode: int | None = None
        reader, writer = os.pipe()
        self.stdout: IO[bytes] | None = os.fdopen(reader, "rb")
        try:
            socket.send_fds(connection, [b"start"], [writer, *channel.descriptors])
        finally:
            os.close(writer)
        self.pid = self._receive()

    def _is_there(self, timeout: float | None) -> bool:
        """Whether the parent sends something within `timeout` seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while not select.select([self._connection], [], [], _STEP if end is None else min(_STEP, timeout or 0.0))[0]:
            if end is not None and time.monotonic() >= end:
                return False
            with suppress(ProcessLookupError):  # which a contender may have stopped
                os.kill(self._parent, signal.SIGCONT)
        return True

    def _receive(self) -> int:
        self._is_there(None)
        message = self._connection.recv(64)
        if not message:
            raise ConnectionResetError("The process that forks has ended.")
        return int(json.loads(message))

    def poll(self) -> int | None:
        """The status; None while it runs."""
        if self.returncode is None and self._is_there(0.0):
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The status, when it has ended.

        Raises
        ------
        subprocess.TimeoutExpired
            It has not ended after `timeout` seconds.
        """
        if self.returncode is None:
            if not self._is_there(timeout):
                raise subprocess.TimeoutExpired("worker", timeout or 0.0)
            try:
                self.returncode = self._receive()
            except OSError:  # its parent was killed, and it ends with it
                self.returncode = -signal.SIGKILL
        return self.returncode


def fork_when_asked(descriptor: int) -> list[str]:
    """Fork as often as the comparison asks for it; in each fork, the arguments of the worker."""
    connection = socket.socket(fileno=descriptor)
    adopt_orphans()
    gc.freeze()  # so that memory stays shared
    child = 0
    while True:
        message, descriptors, *_ = socket.recv_fds(connection, 64, 2)
        if child:
            os.waitpid(child, 0)  # only now: until then its number is no other process's
        if not message:
            sys.exit()
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            break
        for number in descriptors:
            os.close(number)
        os.setpgid(child, child)  # before its number is known, so that it can be killed with what it starts
        connection.send(json.dumps(child).encode())
        ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        kill_descendants(but=child)  # what it left behind, in sessions of its own too
        status = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        with suppress(OSError):  # the comparison has ended
            connection.send(json.dumps(status).encode())
    connection.close()
    os.setpgid(0, 0)
    printed, events = descriptors
    for number in (1, 2):
        os.dup2(printed, number)
    os.close(printed)
    return [str(parent), str(events)]


def kill_group(process: Process) -> None:
    """Kill a worker and the processes that it started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif isinstance(process, subprocess.Popen) and process.poll() is None:
        process.kill()


def last_words(status: int, errors: str) -> str:
    """Why a process ended that had more to do: the signal that killed it, or its last line."""
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        hint = ", which often means that the machine ran out of memory" if name == "SIGKILL" else ""
        return f"the process was killed by {name}{hint},"
    lines = [
        line for line in errors.strip().splitlines() if "RuntimeWarning" not in line and "<frozen runpy>" not in line
    ]
    return f"the process ended with status {status} ({lines[-1].strip() if lines else 'no message'})"


# -- in the process of a contender


def main(folder: str, channel: str) -> None:
    """Run the job in `folder`; events go to `channel`, a descriptor or a file."""
    warnings.simplefilter("ignore")
    secret = Path(folder) / TOKEN
    token = secret.read_text()
    secret.unlink()  # before any code of the user's is loaded
    pipe = private(channel)
    try:
        _run(Path(folder), token, pipe)
    finally:
        os.close(pipe)


def _run(folder: Path, token: str, pipe: int) -> None:
    def say(event: dict[str, Any]) -> None:
        line = memoryview((json.dumps(event | {"token": token}, default=str) + "\n").encode())
        while line:
            line = line[os.write(pipe, line) :]

    job = read_job(folder)

    def why(error: Exception) -> str:
        limit = job.memory_limit
        return over_limit(limit) if limit is not None and lacked_memory(error) else in_one_line(error)

    try:
        if job.memory_limit is not None:
            limit_memory(job.memory_limit)
        work = read_work(folder, job)
    except Exception as error:
        say({"fold": None, "error": f"it could not be made: {why(error)}"})
        return
    _warm_up(work.model, work.data, work.splits[work.job.todo[0]])
    for fold in work.job.todo:
        try:
            result, prediction = run_fold(work, work.splits[fold])
        except Exception as error:
            is_custom = job.custom or job.address is not None
            remedy = remedy_for_text(error, work.data.X, work.model) + remedy_for_role(error) if is_custom else ""
            say({"fold": fold, "error": why(error) + remedy})
            return
        np.save(folder / f"prediction{fold}.npy", prediction, allow_pickle=False)
        say({"fold": fold} | result)


def run_fold(work: WorkerJob, split: Split) -> tuple[dict[str, Any], np.ndarray]:
    """Choose settings and fit on one fold's training rows, predict its test rows; times, memory, predictions."""
    fit_on, test = work.data.rows(split[0]), work.data.rows(split[1])
    model, chosen = work.model, {}
    budget = read_budget(work.job.tune)
    if budget is not None:
        inside = work.plan.inside(split[0], work.data.y, work.job.task)
        tuned = tune(model, work.space, fit_on, inside, work.metric, budget, work.job.seed)
        model = clone(model).set_params(**tuned.params)
        chosen = {"tune_seconds": tuned.seconds, "tried": tuned.tried, "failed": tuned.failed, "params": tuned.params}
    with PeakMemory() as memory, Stopwatch() as fit:
        trained = train(model, fit_on)
    start = time.perf_counter()
    prediction = trained.predict(test)
    predict_seconds = time.perf_counter() - start
    measured = Measurements(
        fit_seconds=fit.seconds,
        fit_cpu_seconds=fit.cpu_seconds,
        predict_seconds=predict_seconds,
        predict_row_seconds=predict_seconds / len(test.y),
        one_row_seconds=_one_row(trained, test),
        peak_bytes=memory.bytes,
        model_bytes=_size(trained.model),
    )
    result = asdict(measured) | {"busy": was_busy(fit.others, work.job.threads), "unweighted": trained.unweighted}
    return result | chosen, prediction


def _one_row(trained: Trained, test: Data) -> float:
    """Seconds for a table of one row: the median of a few."""
    seconds: list[float] = []
    for index in range(min(_SINGLE_ROWS, len(test.y))):
        row = test.rows(np.array([index]))
        start = time.perf_counter()
        trained.predict(row)
        seconds.append(time.perf_counter() - start)
        if sum(seconds) > _SINGLE_SECONDS:
            break
    return float(np.median(seconds))


def _warm_up(model: Any, data: Data, split: Split) -> None:
    """Load libraries and compile kernels before anything is timed."""
    indices = split[0][:: max(1, len(split[0]) // _WARM_ROWS)]
    rows = data.rows(indices)
    try:
        train(model, rows).predict(rows)
    except Exception:
        return  # what fails here fails in the first fold too, where it is reported


def _size(model: Any) -> int | None:
    try:
        return len(pickle.dumps(model))
    except Exception:
        return None


# -- one process per contender ---------------------------------------------------------------------

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
        waiting, config = deque(contenders), self.config

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
        """The requested folds that a contender has not done."""
        done = self.results.entry(contender.name, contender.label)["folds"]
        asked = range(len(self.config.splits)) if self.only is None else self.only
        return [fold for fold in asked if str(fold) not in done]

    def _serve(self, waiting: deque[Contender], folder: Path, ended: threading.Event) -> None:
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

    def _serve_all(self, waiting: deque[Contender], folder: Path, workers: Workers) -> None:
        while True:
            try:
                contender = waiting.popleft()
            except IndexError:  # another thread may have taken the last one
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

    def _stop(self, waiting: deque[Contender]) -> None:
        self._interrupted.set()
        waiting.clear()
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
    timer = threading.Timer(seconds or 0.0, kill)
    if seconds is not None:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
