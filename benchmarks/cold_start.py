"""Processor seconds of a first fit: import, fit and predict in a fresh process, without compiled kernels and with.

Kernels are compiled by numba when they are first used, and kept on disk (`NUMBA_CACHE_DIR`, or `__pycache__` beside
the sources). Here every estimator runs in processes of its own with such a folder: empty (cold), then the same again
(warm). 3,000 rows of two symbolic columns and two numbers; times are the least of `--repeats` pairs of processes.

    OMP_NUM_THREADS=1 python benchmarks/cold_start.py [--repeats 3] [--only NAME ...]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from typing import Any

N_ROWS = 3000
CASES = {
    "WideClassifier": ("WideClassifier", 2),
    "WideClassifier, three classes": ("WideClassifier", 3),
    "WideRegressor": ("WideRegressor", 0),
    "WideSGDClassifier": ("WideSGDClassifier", 2),
    "WideBoostClassifier": ("WideBoostClassifier", 2),
    "MODLEncoder": ("MODLEncoder", 2),
}
"""By name the estimator, at its defaults, and the number of classes, 0 for a regression."""


def run_once(name: str) -> None:
    """In a fresh process: print the processor seconds of importing, fitting and predicting."""
    warnings.simplefilter("ignore")
    began = time.process_time()
    import numpy as np
    import pandas as pd

    import tabsym

    estimator, n_classes = CASES[name]
    model: Any = getattr(tabsym, estimator)()
    imported = time.process_time()
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "a": rng.choice(list("abcdefgh"), N_ROWS),
            "b": rng.choice(list("pqrstu"), N_ROWS),
            "c": rng.normal(size=N_ROWS),
            "d": rng.normal(size=N_ROWS),
        }
    )
    score = X["c"] + (X["a"] == "a") + rng.normal(size=N_ROWS)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes)) if n_classes else score
    start = time.process_time()
    model.fit(X, y)
    fitted = time.process_time()
    next(getattr(model, how) for how in ("predict_proba", "predict", "transform") if hasattr(model, how))(X)
    print(imported - began, fitted - start, time.process_time() - fitted)


def seconds_of(name: str) -> list[list[float]]:
    """Import, fit and predict, cold and warm."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        command = [sys.executable, __file__, "--in-process", name]
        runs = [subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(2)]
    return [[float(word) for word in run.stdout.split()] for run in runs]


def main() -> None:
    """Print the table of README.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--in-process", choices=CASES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.in_process:
        run_once(given.in_process)
        return
    print("| | cold: import | fit | predict | all | warm: import | fit | predict | all |")
    print("| --- |" + " --- |" * 8)
    for name in given.only:
        pairs = [seconds_of(name) for _ in range(given.repeats)]
        best = [min((pair[which] for pair in pairs), key=sum) for which in range(2)]
        cells = [f"{number:.2f}" for one in best for number in (*one, sum(one))]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
