"""One process per contender: started, listened to, stopped at the time limit, its results kept as they arrive."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tabsym.compare.contenders import Contender
from tabsym.compare.live import Live
from tabsym.compare.prepare import Prepared
from tabsym.compare.protocol import Split
from tabsym.compare.results import Results
from tabsym.compare.worker import MARK


@dataclass
class Runner:
    """Runs contenders over the folds, `jobs` at a time, and keeps what they say in `results`."""

    prepared: Prepared
    splits: list[Split]
    results: Results
    folder: Path
    live: Live
    time_limit: float | None
    seed: int
    jobs: int
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def run(self, contenders: list[Contender]) -> None:
        """Run all; an interruption stops the processes, saves and goes on to the caller."""
        waiting: queue.SimpleQueue[Contender] = queue.SimpleQueue()
        for contender in contenders:
            waiting.put(contender)
        with _workplace(self.prepared, self.splits, self.jobs) as places:
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
            todo = [fold for fold in range(len(self.splits)) if str(fold) not in done]
            if todo:
                self._run_one(contender, todo, place)
            self.live.update(self.results)

    def _stop(self, waiting: queue.SimpleQueue[Contender]) -> None:
        while not waiting.empty():
            waiting.get_nowait()
        for process in list(self._processes):
            process.kill()

    def _run_one(self, contender: Contender, todo: list[int], place: Path) -> None:
        threads = max(1, (os.cpu_count() or 1) // self.jobs)
        self._write_job(contender, todo, threads, place)
        self.live.begin(contender.label)
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
                done = self._listen(contender, process)
            self._processes.remove(process)
        entry = self.results.entry(contender.name, contender.label)
        if done < len(todo) and not entry["error"]:
            timed_out = self.time_limit is not None and time.monotonic() - started >= self.time_limit
            why = f"stopped at the time limit of {self.time_limit:g} s" if timed_out else _last_words(process, place)
            self._fail(contender, why + self._so_far(contender))

    def _write_job(self, contender: Contender, todo: list[int], threads: int, place: Path) -> None:
        job = {
            "contender": contender.name,
            "task": self.prepared.task,
            "n_classes": len(self.prepared.classes),
            "todo": todo,
            "seed": self.seed,
            "threads": threads,
        }
        (place / "job.json").write_text(json.dumps(job))

    def _listen(self, contender: Contender, process: subprocess.Popen[str]) -> int:
        """Keep what the process says until it ends; how many folds it did."""
        timer = threading.Timer(self.time_limit, process.kill) if self.time_limit else None
        if timer:
            timer.start()
        done = 0
        assert process.stdout is not None
        for line in process.stdout:
            if not line.startswith(MARK):
                continue
            event = json.loads(line[len(MARK) :])
            if "error" in event:
                self._fail(contender, f"fold {event['fold'] + 1}: {event['error']}")
                continue
            done += 1
            with self._lock:
                self.results.add(contender.name, contender.label, event.pop("fold"), event)
                self.results.save(self.folder)
                self.live.update(self.results)
        process.wait()
        if timer:
            timer.cancel()
        return done

    def _fail(self, contender: Contender, why: str) -> None:
        with self._lock:
            self.results.fail(contender.name, contender.label, why)
            self.results.save(self.folder)
            self.live.update(self.results)

    def _so_far(self, contender: Contender) -> str:
        """What a contender that did not finish had reached; it is not ranked by it."""
        metric = self.results.settings["metric"]
        folds = self.results.entry(contender.name, contender.label)["folds"].values()
        scores = [fold["scores"][metric] for fold in folds]
        text = f" after {len(scores)} of {len(self.splits)} folds"
        return f"{text} (mean {metric} of these {np.mean(scores):.5g})" if scores else text


def _last_words(process: subprocess.Popen[str], place: Path) -> str:
    lines = (place / "errors.txt").read_text(errors="replace").strip().splitlines()
    return f"the process ended with status {process.returncode} ({lines[-1] if lines else 'no message'})"


@contextmanager
def _workplace(prepared: Prepared, splits: list[Split], jobs: int) -> Iterator[list[Path]]:
    """Temporary folders, one per job, that share the table and the folds."""
    with tempfile.TemporaryDirectory(prefix="tabsym-") as name:
        shared: dict[str, Any] = {
            "table.parquet": Path(name) / "table.parquet",
            "splits.npz": Path(name) / "splits.npz",
        }
        prepared.X.assign(__target__=prepared.y).to_parquet(shared["table.parquet"])
        arrays: dict[str, Any] = {f"train{j}": train for j, (train, _) in enumerate(splits)}
        arrays |= {f"test{j}": test for j, (_, test) in enumerate(splits)}
        np.savez(shared["splits.npz"], allow_pickle=False, **arrays)
        places = [Path(name) / f"worker{job}" for job in range(max(1, jobs))]
        for place in places:
            place.mkdir()
            for file, path in shared.items():
                (place / file).symlink_to(path)
        yield places
