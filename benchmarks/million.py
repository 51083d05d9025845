"""One million rows of ten string columns: wide models against one-hot + linear model.

Each contender runs in a process of its own, from the DataFrame to the fitted
model, on the same rows; ratios are to the first contender of the same run. "wide"
is the online model at its defaults, "wide by evidence" the solved one without
interactions and count effects. Memory is the peak of the process over what it
held before the fit.

    python benchmarks/million.py [--rows 1000000] [--repeats 3] [--dtype str|category]
    python benchmarks/million.py --contenders wide "wide by evidence"
    python benchmarks/million.py --solver --rows 5000000    # the solver alone, in one thread and in two
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

ALPHABETS = [10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 60_000, 100_000]
CONTENDERS = ["wide", "wide by evidence", "onehot+sgd", "onehot+logistic"]


def make_table(n_rows: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Zipf-distributed symbols; a logistic target with one normal effect per symbol (sd .5)."""
    rng = np.random.default_rng(seed)
    columns, score = {}, np.full(n_rows, -0.5)
    for place, size in enumerate(ALPHABETS):
        share = 1.0 / np.arange(1, size + 1)
        codes = rng.choice(size, n_rows, p=share / share.sum())
        score += rng.normal(0, 0.5, size)[codes]
        names = np.array([f"column{place}-symbol{j}" for j in range(size)], dtype=object)
        columns[f"x{place}"] = pd.Series(names[codes]).astype("str")
    return pd.DataFrame(columns), (rng.random(n_rows) < 1 / (1 + np.exp(-score))).astype(int)


def make_model(name: str):
    from sklearn.linear_model import LogisticRegression, SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    from tabsym import WideClassifier, WideSGDClassifier

    onehot = OneHotEncoder(handle_unknown="ignore")
    if name == "wide":
        return WideSGDClassifier(random_state=0, n_jobs=-1)
    if name == "wide by evidence":
        return WideClassifier(interactions=None, count_effect=False, random_state=0, n_jobs=-1)
    if name == "onehot+sgd":
        return make_pipeline(onehot, SGDClassifier(loss="log_loss", max_iter=5, tol=None, random_state=0, n_jobs=-1))
    return make_pipeline(onehot, LogisticRegression())


class Watch:
    """Peak resident memory while it is open, over what there was before (sampled every 10 ms)."""

    def __enter__(self) -> Watch:
        self.before = self.peak = resident()
        self.running = True
        self.thread = threading.Thread(target=self._sample)
        self.thread.start()
        return self

    def _sample(self) -> None:
        while self.running:
            self.peak = max(self.peak, resident())
            time.sleep(0.01)

    def __exit__(self, *_: object) -> None:
        self.running = False
        self.thread.join()

    @property
    def megabytes(self) -> float:
        return (self.peak - self.before) / 1e6


def resident() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:  # not Linux: the highest so far
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run_one(name: str, n_rows: int, dtype: str) -> dict:
    from sklearn.metrics import log_loss

    warnings.simplefilter("ignore")
    X, y = make_table(n_rows + n_rows // 10)
    if dtype == "category":
        X = X.astype("category")
    train, test = slice(0, n_rows), slice(n_rows, None)
    make_model(name).fit(X[:2000], y[:2000])  # whatever compiles or loads does so here
    X_train = X[train]
    model = make_model(name)
    with Watch() as watch:
        start = time.perf_counter()
        model.fit(X_train, y[train])
        seconds = time.perf_counter() - start
    loss = log_loss(y[test], model.predict_proba(X[test]))
    return {"name": name, "seconds": seconds, "loss": loss, "megabytes": watch.megabytes}


def time_solver(n_rows: int, repeats: int) -> None:
    """Print the solver's seconds in a fit of coded rows, by `n_jobs`, and whether coefficients have the same bits."""
    from tabsym import WideClassifier
    from tabsym.models import fitting

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    columns, score = {}, np.full(n_rows, -0.5)
    for place, size in enumerate(ALPHABETS):
        share = 1.0 / np.arange(1, size + 1)
        codes = rng.choice(size, n_rows, p=share / share.sum())
        score += rng.normal(0, 0.5, size)[codes]
        columns[f"x{place}"] = pd.Categorical.from_codes(codes, [f"symbol{j}" for j in range(size)])
    X, y = pd.DataFrame(columns), (rng.random(n_rows) < 1 / (1 + np.exp(-score))).astype(int)
    solve, spent = fitting.solve, []

    def timed(*given):
        start = time.perf_counter()
        found = solve(*given)
        spent.append(time.perf_counter() - start)
        return found

    fitting.solve = timed
    first = None
    for repeat in range(repeats + 1):  # the first compiles
        for n_jobs in (1, 2):
            model = WideClassifier(interactions=None, count_effect=False, random_state=0, n_jobs=n_jobs)
            model.fit(X if repeat else X[:2000], y if repeat else y[:2000])
            if repeat:
                first = model.model_.theta if first is None else first
                same = np.array_equal(model.model_.theta, first)
                print(f"n_jobs={n_jobs}: {spent[-1]:.2f} s, {model.n_iter_} sweeps, same bits: {same}", flush=True)
    one, two = np.array(spent[2:]).reshape(-1, 2).T
    print(f"two threads take {np.median(two / one):.2f} of the time of one (median of {repeats})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--dtype", choices=["str", "category"], default="str")
    parser.add_argument("--contenders", nargs="+", default=CONTENDERS, choices=CONTENDERS)
    parser.add_argument("--solver", action="store_true", help="the solver's time by n_jobs")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.solver:
        time_solver(args.rows, args.repeats)
        return
    if args.one:
        print(json.dumps(run_one(args.one, args.rows, args.dtype)))
        return
    print(f"{args.rows:,} rows, 10 {args.dtype} columns, alphabets {ALPHABETS}")
    print(f"{'':18}{'fit s':>8}{'ratio':>8}{'log-loss':>10}{'peak MB':>9}")
    ratios: dict[str, list[float]] = {name: [] for name in args.contenders}
    for repeat in range(args.repeats):
        base = None
        for name in args.contenders:
            command = [sys.executable, __file__, "--rows", str(args.rows), "--dtype", args.dtype, "--one", name]
            row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            base = base or row["seconds"]
            ratio = row["seconds"] / base
            ratios[name].append(ratio)
            print(f"{name:18}{row['seconds']:8.2f}{ratio:8.1f}{row['loss']:10.4f}{row['megabytes']:9.0f}", flush=True)
        print(f"-- run {repeat + 1} of {args.repeats}")
    print("median ratio to the wide model's fit:", {name: round(float(np.median(r)), 1) for name, r in ratios.items()})


if __name__ == "__main__":
    main()
