"""One contender's folds, in a process of their own.

A process apart gives a true peak of memory, survives libraries that abort,
and can be stopped at a time limit. It reads its job from a folder, writes its predictions there, and one line of JSON
per event to a pipe of its own. Scores are computed where all predictions come together.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from tabsym.compare.fitting import Data, Trained, read_budget, train, tune
from tabsym.compare.job import TOKEN, Work, private, read_job, read_work
from tabsym.compare.machine import PeakMemory, Stopwatch, lacked_memory, limit_memory, over_limit, was_busy
from tabsym.compare.splits import Split
from tabsym.compare.text import in_one_line, remedy_for_text

_WARM_ROWS = 300
_SINGLE_ROWS, _SINGLE_SECONDS = 20, 1.0


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
            is_own = job.own or job.address is not None
            remedy = remedy_for_text(error, work.data.X, work.model) if is_own else ""
            say({"fold": fold, "error": why(error) + remedy})
            return
        np.save(folder / f"prediction{fold}.npy", prediction, allow_pickle=False)
        say({"fold": fold} | result)


def run_fold(work: Work, split: Split) -> tuple[dict[str, Any], np.ndarray]:
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
    result = {
        "fit_seconds": fit.seconds,
        "fit_cpu_seconds": fit.cpu_seconds,  # of all threads: the same whatever else the machine does
        "busy": was_busy(fit.others, work.job.threads),
        "predict_seconds": predict_seconds,
        "predict_row_seconds": predict_seconds / len(test.y),
        "one_row_seconds": _one_row(trained, test),
        "peak_bytes": memory.bytes,
        "model_bytes": _size(trained.model),
        "unweighted": trained.unweighted,
    }
    return result | chosen, prediction


def _one_row(trained: Trained, test: Data) -> float:
    """Seconds for a table of one row: the median of a few."""
    seconds: list[float] = []
    for place in range(min(_SINGLE_ROWS, len(test.y))):
        row = test.rows(np.array([place]))
        start = time.perf_counter()
        trained.predict(row)
        seconds.append(time.perf_counter() - start)
        if sum(seconds) > _SINGLE_SECONDS:
            break
    return float(np.median(seconds))


def _warm_up(model: Any, data: Data, split: Split) -> None:
    """Load libraries and compile kernels before anything is timed."""
    places = split[0][:: max(1, len(split[0]) // _WARM_ROWS)]
    rows = data.rows(places)
    try:
        train(model, rows).predict(rows)
    except Exception:
        return  # what fails here fails in the first fold too, where it is reported


def _size(model: Any) -> int | None:
    try:
        return len(pickle.dumps(model))
    except Exception:
        return None


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[3])
