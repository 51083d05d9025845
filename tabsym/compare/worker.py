"""One contender's folds, in a process of their own.

A process apart gives a true peak of memory, survives libraries that abort,
and can be stopped at a time limit. It reads ``job.json`` and ``table.parquet``
from a folder and writes one line of JSON to standard output per event.
"""

from __future__ import annotations

import json
import pickle
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
from sklearn.base import clone

from tabsym.compare.contenders import all_contenders
from tabsym.compare.protocol import METRICS

MARK = "@tabsym "
_WARM_ROWS = 300


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


def main(folder: str) -> None:
    """Run the job in `folder`."""
    warnings.simplefilter("ignore")
    job = json.loads((Path(folder) / "job.json").read_text())
    table = pd.read_parquet(Path(folder) / "table.parquet")
    y = table.pop("__target__").to_numpy()
    splits = np.load(Path(folder) / "splits.npz")
    contender = all_contenders()[job["contender"]]
    model = contender.make(job["task"], job["seed"], job["threads"])
    _warm_up(model, table, y, job["task"], splits[f"train{job['todo'][0]}"])
    for fold in job["todo"]:
        train, test = splits[f"train{fold}"], splits[f"test{fold}"]
        try:
            result = run_fold(model, table, y, train, test, job["task"], job["n_classes"])
        except Exception as error:
            _say({"fold": fold, "error": f"{type(error).__name__}: {error}"})
            return
        _say({"fold": fold} | result)


def run_fold(
    model: Any, X: pd.DataFrame, y: np.ndarray, train: np.ndarray, test: np.ndarray, task: str, n_classes: int
) -> dict[str, Any]:
    """Fit on one fold's training rows, score on its test rows."""
    # a fresh index: some encoders pair rows of X and y by label
    X_train, X_test = X.iloc[train].reset_index(drop=True), X.iloc[test].reset_index(drop=True)
    y_train = y[train]
    if task != "regression":  # a fold can lack a class: code those it has
        present, y_train = np.unique(y_train, return_inverse=True)
    fresh = clone(model)
    with PeakMemory() as memory:
        start = time.perf_counter()
        fresh.fit(X_train, y_train)
        fit_seconds = time.perf_counter() - start
    start = time.perf_counter()
    prediction = fresh.predict(X_test) if task == "regression" else fresh.predict_proba(X_test)
    predict_seconds = time.perf_counter() - start
    if task != "regression":
        everything = np.zeros((len(test), n_classes))
        everything[:, present] = prediction
        prediction = everything
    if not np.isfinite(prediction).all():
        raise ValueError("The predictions hold NaN or infinity.")
    scores = {name: metric.score(y[test], prediction) for name, metric in METRICS[task].items()}
    if not np.isfinite(list(scores.values())).all():
        raise ValueError("A score is not finite: the target or the predictions are too large.")
    return {
        "scores": scores,
        "fit_seconds": fit_seconds,
        "predict_seconds": predict_seconds,
        "peak_bytes": memory.bytes,
        "model_bytes": _size(fresh),
    }


def _warm_up(model: Any, X: pd.DataFrame, y: np.ndarray, task: str, train: np.ndarray) -> None:
    """Load libraries and compile kernels before anything is timed."""
    rows = train[:: max(1, len(train) // _WARM_ROWS)]
    target = y[rows] if task == "regression" else np.unique(y[rows], return_inverse=True)[1]
    try:
        fresh = clone(model)
        fresh.fit(X.iloc[rows], target)
        fresh.predict(X.iloc[rows])
    except Exception:
        return  # what fails here fails in the first fold too, where it is reported


def _size(model: Any) -> int | None:
    try:
        return len(pickle.dumps(model))
    except Exception:
        return None


def _say(event: dict[str, Any]) -> None:
    sys.stdout.write(MARK + json.dumps(event) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
